/* elf.h: sections of an ELF file in memory, which may be damaged. */
#ifndef AMP_BASE_ELF_H
#define AMP_BASE_ELF_H

#include <stdbool.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the first section called |name| is in the |size| bytes of an ELF64 little-endian file.  Nothing outside
 * |file| is read, whatever it holds.  AMP_BAD_FILE: no such ELF file, or a header that points outside it;
 * AMP_NOT_FOUND: a sound file without that section.  The message does not name the file: its reader does. */
amp_status amp_elf_section(const void *file, size_t size, const char *name, size_t *offset, size_t *length,
                           amp_error *err);

/* How many bytes of the file, from its first, a loader maps: what only tools read follows.  |size| where there are no
 * program headers, or they point outside. */
size_t amp_elf_loaded(const void *file, size_t size);

/* The first segment of |type| (p_type: PT_GNU_RELRO is 0x6474E552), as it is in memory: its address in the file's own
 * terms, and its bytes.  false: none. */
bool amp_elf_segment(const void *file, size_t size, uint32_t type, uint64_t *address, uint64_t *length);

/* The machine that the code is for (e_machine: EM_X86_64 is 62), or -1 where |file| is no ELF64 little-endian file. */
int amp_elf_machine(const void *file, size_t size);

#ifdef __cplusplus
}
#endif

#endif
