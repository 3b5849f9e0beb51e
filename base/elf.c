/* elf.c: sections of an ELF file in memory (System V ABI, "Object Files"; the ELF-64 object file format). */
#include "base/elf.h"

#include <string.h>

/* Positions of fields in the file: numbers are read byte by byte, so that no alignment is needed. */
enum {
    HEADER_SIZE = 64,
    IDENT_CLASS = 4,
    IDENT_DATA = 5,
    CLASS_64 = 2,
    LITTLE_ENDIAN_DATA = 1,
    E_MACHINE = 18,
    E_PHOFF = 32,
    E_SHOFF = 40,
    E_PHENTSIZE = 54,
    E_PHNUM = 56,
    E_SHENTSIZE = 58,
    E_SHNUM = 60,
    E_SHSTRNDX = 62,

    SEGMENT_SIZE = 56,
    P_TYPE = 0,
    P_OFFSET = 8,
    P_VADDR = 16,
    P_FILESZ = 32,
    P_MEMSZ = 40,

    SECTION_SIZE = 64,
    SH_NAME = 0,
    SH_TYPE = 4,
    SH_OFFSET = 24,
    SH_SIZE = 32,
    TYPE_NOBITS = 8
};

typedef struct Range {
    uint64_t offset, length;
} Range;

typedef struct Elf {
    const uint8_t *data;
    uint64_t size, sections; /* bytes, count */
    uint64_t table;          /* offset of the section headers */
    Range names;
} Elf;

static uint64_t read_le(const uint8_t *at, int bytes) {
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--) v = v << 8 | at[i];
    return v;
}

static bool inside(const Elf *e, Range r) { return r.offset <= e->size && r.length <= e->size - r.offset; }

static const uint8_t *section_header(const Elf *e, uint64_t index) { return e->data + e->table + index * SECTION_SIZE; }

static Range section_range(const Elf *e, uint64_t index) {
    const uint8_t *h = section_header(e, index);
    return (Range){read_le(h + SH_OFFSET, 8), read_le(h + SH_TYPE, 4) == TYPE_NOBITS ? 0 : read_le(h + SH_SIZE, 8)};
}

static bool is_elf64(const uint8_t *data, size_t size) {
    return size >= HEADER_SIZE && !memcmp(data, "\177ELF", 4) && data[IDENT_CLASS] == CLASS_64 &&
           data[IDENT_DATA] == LITTLE_ENDIAN_DATA;
}

static amp_status open_elf(Elf *e, amp_error *err) {
    if (!is_elf64(e->data, e->size)) return amp_fail(err, AMP_BAD_FILE, "not an ELF64 little-endian file");
    e->table = read_le(e->data + E_SHOFF, 8);
    e->sections = read_le(e->data + E_SHNUM, 2);
    uint64_t names = read_le(e->data + E_SHSTRNDX, 2);
    if (read_le(e->data + E_SHENTSIZE, 2) != SECTION_SIZE || e->sections == 0)
        return amp_fail(err, AMP_BAD_FILE, "the ELF file has no section headers; it was cut off or stripped of them");
    if (!inside(e, (Range){e->table, e->sections * SECTION_SIZE}))
        return amp_fail(err, AMP_BAD_FILE,
                        "the ELF section headers end after the file does; it was cut off or damaged");
    if (names >= e->sections)
        return amp_fail(err, AMP_BAD_FILE, "the ELF header names section %u for names, but there are %u",
                        (unsigned)names, (unsigned)e->sections);
    e->names = section_range(e, names);
    if (!inside(e, e->names)) return amp_fail(err, AMP_BAD_FILE, "the ELF section names are outside the file");
    return AMP_OK;
}

static bool is_called(const Elf *e, uint64_t index, const char *name) {
    uint64_t at = read_le(section_header(e, index) + SH_NAME, 4), bytes = strlen(name) + 1;
    return at <= e->names.length && bytes <= e->names.length - at &&
           !memcmp(e->data + e->names.offset + at, name, bytes);
}

amp_status amp_elf_section(const void *file, size_t size, const char *name, size_t *offset, size_t *length,
                           amp_error *err) {
    Elf e = {.data = file, .size = size};
    AMP_TRY(open_elf(&e, err));
    for (uint64_t i = 0; i < e.sections; i++) {
        if (!is_called(&e, i, name)) continue;
        Range r = section_range(&e, i);
        if (!inside(&e, r)) return amp_fail(err, AMP_BAD_FILE, "section %s is outside the file", name);
        *offset = (size_t)r.offset;
        *length = (size_t)r.length;
        return AMP_OK;
    }
    return amp_fail(err, AMP_NOT_FOUND, "no section %s", name);
}

/* Program headers: of no bytes where there are none, or they are not in the file. */
static Range segments(const Elf *e) {
    if (!is_elf64(e->data, e->size) || read_le(e->data + E_PHENTSIZE, 2) != SEGMENT_SIZE) return (Range){0};
    const Range table = {read_le(e->data + E_PHOFF, 8), read_le(e->data + E_PHNUM, 2) * SEGMENT_SIZE};
    return inside(e, table) ? table : (Range){0};
}

size_t amp_elf_loaded(const void *file, size_t size) {
    const Elf e = {.data = file, .size = size};
    const Range table = segments(&e);
    uint64_t end = table.offset + table.length;
    if (!table.length) return size;
    for (uint64_t at = 0; at < table.length; at += SEGMENT_SIZE) {
        const uint8_t *h = e.data + table.offset + at;
        const Range r = {read_le(h + P_OFFSET, 8), read_le(h + P_FILESZ, 8)};
        if (!inside(&e, r)) return size;
        if (r.offset + r.length > end) end = r.offset + r.length;
    }
    return (size_t)end;
}

bool amp_elf_segment(const void *file, size_t size, uint32_t type, uint64_t *address, uint64_t *length) {
    const Elf e = {.data = file, .size = size};
    const Range table = segments(&e);
    for (uint64_t at = 0; at < table.length; at += SEGMENT_SIZE) {
        const uint8_t *h = e.data + table.offset + at;
        if (read_le(h + P_TYPE, 4) != type) continue;
        *address = read_le(h + P_VADDR, 8);
        *length = read_le(h + P_MEMSZ, 8);
        return true;
    }
    return false;
}

int amp_elf_machine(const void *file, size_t size) {
    const uint8_t *data = file;
    return is_elf64(data, size) ? (int)read_le(data + E_MACHINE, 2) : -1;
}
