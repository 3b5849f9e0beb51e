/* compile_text.c: see compile_text.h. */
#include "tests/fuzz/compile_text.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { MEMORY = 512 << 20, MOST_OPS = 500 };

static void count_errors(void *user, const char *text, int32_t is_error) {
    (void)text;
    *(int *)user += is_error;
}

void fuzz_compile(amp_compile_options o) {
    amp_allocator allocator = fuzz_allocator(MEMORY);
    amp_compile_result *result = NULL;
    amp_error err = {0};
    int errors = 0;
    o.struct_size = sizeof o;
    o.allocator = &allocator;
    o.max_ops = MOST_OPS;
    o.diagnostic = count_errors;
    o.user = &errors;
    amp_status status = amp_compile(&o, &result, &err);
    if (status == AMP_BAD_SOURCE && !errors && o.emit == AMP_EMIT_IR)
        fuzz_fail("refused without a diagnostic: %s", err.message);
    if (status == AMP_INTERNAL || status == AMP_OUT_OF_MEMORY || status == AMP_IO)
        fuzz_fail("%s: %s", amp_status_name(status), err.message);
    if (status && !*err.message) fuzz_fail("refused without a message");
    if (!status != (result != NULL)) fuzz_fail("status %d, result %p", (int)status, (void *)result);
    amp_compile_result_release(result);
    fuzz_check_freed();
}
