/* safetensors_fuzz.c: a safetensors file: what is accepted covers the file byte by byte and can be read. */
#include <stdlib.h>
#include <string.h>

#include "base/safetensors/safetensors.h"
#include "tests/fuzz/fuzz.h"

static void look_at(const amp_safetensors *file, size_t size) {
    size_t bytes = 0;
    unsigned sum = 0;
    for (int32_t i = 0; i < amp_safetensors_count(file); i++) {
        const amp_tensor_view *v = amp_safetensors_at(file, i);
        size_t elements = 1;
        for (int d = 0; d < v->rank; d++) elements *= (size_t)v->dims[d];
        for (size_t k = 0; k < v->bytes; k++) sum += ((const unsigned char *)v->data)[k];
        bytes += v->bytes;
        if (elements > v->bytes * 8) fuzz_fail("%zu elements in %zu bytes", elements, v->bytes);
        float *numbers = malloc((elements ? elements : 1) * sizeof *numbers);
        if (numbers) amp_tensor_to_f32(v, numbers, elements);
        free(numbers);
        const amp_tensor_view *same = amp_safetensors_find(file, v->name);
        if (!same || strcmp(same->name, v->name)) fuzz_fail("%s is not found", v->name);
    }
    if (bytes > size) fuzz_fail("tensors of %zu bytes in a file of %zu (%u)", bytes, size, sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    amp_allocator allocator = fuzz_allocator(97 * size + (1 << 20)); /* the bound of runtime/README.md */
    amp_safetensors *file = NULL;
    amp_error err = {0};
    const char *path = fuzz_file(data, size);
    amp_status status = amp_safetensors_open(path, &allocator, &file, &err);
    if (status && (status != AMP_BAD_FILE || strncmp(err.message, path, strlen(path))))
        fuzz_fail("%d: %s", (int)status, err.message);
    if (!status) look_at(file, size);
    amp_safetensors_close(file);
    fuzz_check_freed();
    return 0;
}
