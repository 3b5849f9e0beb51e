/* result.c: see result.h. */
#include "compiler/result.h"

#include "base/error.h"

amp_status result_new(const amp_allocator *allocator, const void *data, size_t size, amp_compile_result **out,
                      amp_error *err) {
    *out = NULL;
    amp_allocator a = amp_allocator_or_default(allocator);
    amp_compile_result *r = amp_alloc_zeroed(&a, sizeof *r);
    char *copy = amp_alloc(&a, size + 1);
    if (!r || !copy) {
        amp_free(&a, r, sizeof *r);
        amp_free(&a, copy, size + 1);
        return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for %zu bytes of output", size);
    }
    memcpy(copy, data, size);
    copy[size] = 0;
    *r = (amp_compile_result){.allocator = a, .data = copy, .size = size};
    *out = r;
    return AMP_OK;
}

const void *amp_compile_result_data(const amp_compile_result *result, size_t *size) {
    *size = result ? result->size : 0;
    return result ? result->data : NULL;
}

void amp_compile_result_release(amp_compile_result *result) {
    if (!result) return;
    amp_allocator a = result->allocator;
    amp_free(&a, result->data, result->size + 1);
    amp_free(&a, result, sizeof *result);
}
