/* policy_fuzz.c: a policy file, for a model that has ops of every class. */
#include "tests/fuzz/compile_text.h"
#include "tests/fuzz/fuzz.h"

static const char model[] = "amp 1\n"
                            "model m(x: f32[N, 4]) -> y {\n"
                            "    h = relu(linear(x; out = 3) as a) + 1.0\n"
                            "    y = linear(h; out = 2) as b\n"
                            "}\n"
                            "train m {\n"
                            "    input  t: i32[N]\n"
                            "    loss = cross_entropy(y, t)\n"
                            "    optimizer = sgd(lr = 0.1)\n"
                            "}\n"
                            "precision fp16 { }\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_compile((amp_compile_options){.name = "model.amp",
                                       .text = model,
                                       .text_size = sizeof model - 1,
                                       .emit = AMP_EMIT_IR,
                                       .stop_after = "autocast",
                                       .policy = fuzz_file(data, size)});
    return 0;
}
