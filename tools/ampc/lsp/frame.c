/* frame.c: see server.h. */
#include "tools/ampc/lsp/server.h"

#include <stdlib.h>
#include <strings.h>

/* A model has at most 4 MiB, and JSON at most six bytes for one of its. */
enum { MOST_BYTES = 32 << 20, LINE = 256 };

/* A line without its end, cut where it is longer than |line|.  False: the stream ended. */
static bool read_line(FILE *from, char line[LINE]) {
    size_t length = 0;
    int c;
    while ((c = getc(from)) != EOF && c != '\n')
        if (length < LINE - 1) line[length++] = (char)c;
    if (length && line[length - 1] == '\r') length--;
    line[length] = 0;
    return c != EOF;
}

/* The length that a header says; -1: the line is another header, or says no length. */
static long long content_length(const char *line) {
    static const char name[] = "Content-Length:";
    char *end;
    if (strncasecmp(line, name, sizeof name - 1) != 0) return -1;
    const char *value = line + sizeof name - 1 + strspn(line + sizeof name - 1, " \t");
    if (!*value || strspn(value, "0123456789") != strlen(value)) return -1;
    return strtoll(value, &end, 10); /* LLONG_MAX where it is larger */
}

static void skip(FILE *from, long long size) {
    while (size-- > 0 && getc(from) != EOF) {
    }
}

Frame frame_read(FILE *from, Arena *a) {
    static const char no_length[] = "a message begins with the header Content-Length: BYTES and an empty line";
    char line[LINE];
    long long size = -1;
    do {
        if (!read_line(from, line)) return (Frame){.kind = FRAME_END};
        if (content_length(line) >= 0) size = content_length(line);
    } while (*line);
    if (size < 0) return (Frame){FRAME_WRONG, no_length, 0};
    if (size > MOST_BYTES) {
        skip(from, size);
        return (Frame){FRAME_WRONG, arena_printf(a, "a message has at most %d bytes, not %lld", MOST_BYTES, size), 0};
    }
    char *text = arena_alloc(a, (size_t)size + 1);
    if (fread(text, 1, (size_t)size, from) < (size_t)size) return (Frame){.kind = FRAME_END};
    return (Frame){FRAME_MESSAGE, text, (size_t)size};
}

void frame_write(FILE *to, const char *json, size_t size) {
    fprintf(to, "Content-Length: %zu\r\n\r\n", size);
    fwrite(json, 1, size, to);
    fflush(to);
}
