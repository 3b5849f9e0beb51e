/* language_fuzz.c: model text, through every pass up to a plan. */
#include "tests/fuzz/compile_text.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_compile(
        (amp_compile_options){.name = "fuzz.amp", .text = (const char *)data, .text_size = size, .emit = AMP_EMIT_IR});
    return 0;
}
