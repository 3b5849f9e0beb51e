/* idx_fuzz.c: an IDX file, plain or gzip. */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tests/robustness/idx_counted.h"

enum { DEFLATE = 1032 /* bytes that one of deflate can stand for */, FIRST = 64 << 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    IdxArray array = {0};
    size_t most, count = 1;
    volatile unsigned sum = 0; /* so that every byte is read */
    const char *message = idx_counted(fuzz_file(data, size), &array, &most);
    if (most > 2 * DEFLATE * size + FIRST) fuzz_fail("%zu bytes for a file of %zu", most, size);
    if (!message != (array.data != NULL)) fuzz_fail("says %s", message ? message : "nothing");
    for (int i = 0; i < array.rank; i++) count *= (size_t)array.dims[i];
    for (size_t i = 0; array.data && i < count; i++) sum += array.data[i];
    (void)sum;
    free(array.data);
    return 0;
}
