/* fuzz.h: what the fuzz targets share. A target is a file with LLVMFuzzerTestOneInput (libFuzzer's interface); linked
 * with libFuzzer it is fuzzed (tests/fuzz/run), linked with replay.c it reads the kept corpus once (tools/test). */
#ifndef AMP_TESTS_FUZZ_FUZZ_H
#define AMP_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "amp/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* malloc with a limit: a target that needs more than |most| bytes at once has found an error. Ends the program. */
amp_allocator fuzz_allocator(size_t most);
/* Everything has come back; else ends the program. */
void fuzz_check_freed(void);

/* The input as a file, whose path stays the same for the process. */
const char *fuzz_file(const uint8_t *data, size_t size);

/* Ends the program with a message: the input breaks a promise. */
void fuzz_fail(const char *format, ...) AMP_PRINTF(1, 2);

#endif
