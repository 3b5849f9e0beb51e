/* elf_digest.h: the SHA-256 that a model carries in a section of its own, against damage (not an attacker: loading a
 * model is running code). */
#ifndef AMP_CODEGEN_ELF_DIGEST_H
#define AMP_CODEGEN_ELF_DIGEST_H

#include "base/error.h"

/* Writes the digest of |file|, taken while the section AMP_MODEL_HASH_SECTION is zero, into that section. */
amp_status elf_write_digest(char *file, size_t size, amp_error *err);

#endif
