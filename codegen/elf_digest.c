/* elf_digest.c: see elf_digest.h.  The file comes from the linker that was just run, but nothing in it is trusted. */
#include "codegen/elf_digest.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "amp/model_abi.h"
#include "base/hash.h"

enum { DIGEST = 32 };

static bool inside(size_t size, uint64_t offset, uint64_t length) { return offset <= size && length <= size - offset; }

static bool read_section(const char *file, size_t size, const Elf64_Ehdr *e, uint64_t index, Elf64_Shdr *out) {
    uint64_t at = e->e_shoff + index * sizeof *out;
    if (e->e_shoff > size || e->e_shentsize != sizeof *out || !inside(size, at, sizeof *out)) return false;
    memcpy(out, file + at, sizeof *out);
    return true;
}

static bool has_name(const char *file, size_t size, const Elf64_Shdr *names, uint32_t name) {
    static const char wanted[] = AMP_MODEL_HASH_SECTION;
    if (!inside(size, names->sh_offset, names->sh_size) || !inside(names->sh_size, name, sizeof wanted)) return false;
    return !memcmp(file + names->sh_offset + name, wanted, sizeof wanted);
}

/* The section's offset in the file; 0: there is none of the right size. */
static uint64_t find_digest(const char *file, size_t size) {
    Elf64_Ehdr e;
    Elf64_Shdr names, s;
    if (size < sizeof e) return 0;
    memcpy(&e, file, sizeof e);
    if (memcmp(e.e_ident, ELFMAG, SELFMAG) || e.e_ident[EI_CLASS] != ELFCLASS64) return 0;
    if (!read_section(file, size, &e, e.e_shstrndx, &names)) return 0;
    for (uint64_t i = 0; i < e.e_shnum; i++)
        if (read_section(file, size, &e, i, &s) && has_name(file, size, &names, s.sh_name) && s.sh_size == DIGEST &&
            inside(size, s.sh_offset, DIGEST))
            return s.sh_offset;
    return 0;
}

amp_status elf_write_digest(char *file, size_t size, amp_error *err) {
    uint64_t at = find_digest(file, size);
    if (!at)
        return amp_fail(err, AMP_INTERNAL, "the linked model has no section %s of %d bytes", AMP_MODEL_HASH_SECTION,
                        DIGEST);
    uint8_t digest[DIGEST];
    memset(file + at, 0, DIGEST);
    amp_sha256_of(file, size, digest);
    memcpy(file + at, digest, DIGEST);
    return AMP_OK;
}
