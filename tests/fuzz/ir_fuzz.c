/* ir_fuzz.c: IR of any stage, through the passes that are left and into C. */
#include "tests/fuzz/compile_text.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_compile((amp_compile_options){
        .name = "fuzz.ir", .text = (const char *)data, .text_size = size, .emit = AMP_EMIT_C, .target = "both"});
    return 0;
}
