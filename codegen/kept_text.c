/* kept_text.c: see kept_text.h. */
#define ZLIB_CONST /* of what it reads */
#include "codegen/kept_text.h"

#include <limits.h>
#include <zlib.h>

/* ---- packed ------------------------------------------------------------------------------------------------------ */

enum { CHUNK = 64 << 10, QUICK = 6, SMALL = 9 };

/* zlib's memory is the arena's, too. */
static void *take(void *arena, uInt count, uInt size) { return arena_alloc(arena, (size_t)count * size); }
static void give_back(void *arena, void *memory) { (void)arena, (void)memory; }

typedef int Step(z_stream *z, int flush);

/* Goes through |size| bytes.  True: the stream has its end there. */
static bool pass_through(z_stream *z, Step *step, const char *bytes, size_t size, Text *out) {
    char *chunk = arena_alloc(z->opaque, CHUNK);
    int result = Z_OK;
    z->next_in = (const Bytef *)bytes;
    while (result == Z_OK) {
        const uInt part = size < CHUNK ? (uInt)size : CHUNK;
        if (!z->avail_in) z->avail_in = part, size -= part;
        z->next_out = (Bytef *)chunk;
        z->avail_out = CHUNK;
        result = step(z, size ? Z_NO_FLUSH : Z_FINISH);
        text_write(out, chunk, CHUNK - z->avail_out);
        /* with Z_FINISH, Z_BUF_ERROR asks for more room, unless all of it was left */
        if (result == Z_BUF_ERROR && !z->avail_out) result = Z_OK;
    }
    return result == Z_STREAM_END && !z->avail_in && !size;
}

static void pack(const char *bytes, size_t size, int level, Text *out) {
    Arena *memory = arena_child(out->arena);
    z_stream z = {.zalloc = take, .zfree = give_back, .opaque = memory};
    if (deflateInit(&z, level) == Z_OK) (void)pass_through(&z, deflate, bytes, size, out);
    arena_free(memory);
}

void kept_text_pack(const Text *text, Text *out) { pack(text_str(text), text->len, QUICK, out); }
void kept_text_pack_small(const char *bytes, size_t size, Text *out) { pack(bytes, size, SMALL, out); }

/* The first byte of every zlib stream of the usual window. */
bool kept_text_is_packed(const char *bytes, size_t size) { return size && bytes[0] == 0x78; }

bool kept_text_unpack(const char *bytes, size_t size, Text *out) {
    Arena *memory = arena_child(out->arena);
    z_stream z = {.zalloc = take, .zfree = give_back, .opaque = memory};
    const bool whole = inflateInit(&z) == Z_OK && pass_through(&z, inflate, bytes, size, out);
    arena_free(memory);
    return whole;
}

/* ---- as C -------------------------------------------------------------------------------------------------------- */

/* By the assembler, because a variable's section is one that the loader maps. */
void kept_text_section(Text *c, const char *section, const Text *bytes) {
    enum { PER_LINE = 64 };
    const char *s = text_str(bytes);
    text_printf(c, "__asm__(\".pushsection \" %s \",\\\"\\\"\\n\"", section);
    for (size_t i = 0; i < bytes->len; i++) {
        const unsigned char b = (unsigned char)s[i];
        if (i % PER_LINE == 0) text_puts(c, i ? "\\\"\\n\"\n    \".ascii \\\"" : "\n    \".ascii \\\"");
        const char octal[] = {'\\', '\\', (char)('0' + (b >> 6)), (char)('0' + (b >> 3 & 7)), (char)('0' + (b & 7))};
        text_write(c, octal, sizeof octal);
    }
    text_puts(c, bytes->len ? "\\\"\\n\"\n    \".popsection\");\n\n" : "\n    \".popsection\");\n\n");
}
