/* embed_compile.c: a program that writes a model as text, compiles it and trains it, all in its own process. */
#include <stdio.h>

#include "amp/amp.h"
#include "amp/compile.h"

/* XOR, the smallest thing that needs a hidden layer. */
static const char model_text[] = "amp 1\n"
                                 "model xor(x: f32[N, 2]) -> logits {\n"
                                 "    h      = gelu(linear(x; out = 32) as hidden)\n"
                                 "    logits = linear(h; out = 2) as head\n"
                                 "}\n"
                                 "train xor {\n"
                                 "    input  targets: i32[N]\n"
                                 "    loss      = cross_entropy(logits, targets)\n"
                                 "    metric    acc = accuracy(logits, targets)\n"
                                 "    optimizer = adamw(lr = 0.01)\n"
                                 "}\n"
                                 "precision fp16 { loss_scale = dynamic(init = 1024.0) }\n";

static int fail(const amp_error *err) {
    fprintf(stderr, "embed_compile: %s\n", err->message);
    return 1;
}

static void print_diagnostic(void *user, const char *text, int is_error) {
    (void)user;
    (void)is_error;
    fputs(text, stderr);
}

static int compile(const char *output) {
    amp_error err;
    amp_compile_result *result;
    amp_compile_options options = {
        .struct_size = sizeof options,
        .name = "xor.amp",
        .text = model_text,
        .text_size = sizeof model_text - 1,
        .output = output,
        .diagnostic = print_diagnostic,
    };
    if (amp_compile(&options, &result, &err)) return fail(&err);
    amp_compile_result_release(result);
    return 0;
}

int main(int argc, char **argv) {
    static const float x[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    static const int y[4] = {0, 1, 1, 0};
    const void *inputs[] = {x, y};
    const char *path = argc > 1 ? argv[1] : "./xor.so";
    amp_error err;
    amp_model *model;
    amp_params *params;
    amp_session *session;
    amp_session_options options = {.struct_size = sizeof options, .capacity.n = 4, .threads = 1};
    amp_step_report report;
    double loss, accuracy;
    if (compile(path)) return 1;
    if (amp_model_load(path, NULL, &model, &err) || amp_params_create(model, NULL, &params, &err) ||
        amp_session_create(model, params, &options, &session, &err))
        return fail(&err);
    for (int i = 0; i < 500; i++)
        if (amp_step(session, inputs, (amp_sizes){.n = 4}, &report, &err)) return fail(&err);
    if (amp_eval(session, inputs, (amp_sizes){.n = 4}, &loss, &accuracy, &err)) return fail(&err);
    printf("xor after %d steps: loss %.4f, accuracy %.2f, loss scale %g\n", (int)report.step, loss, accuracy,
           report.scale);
    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
    return accuracy == 1.0 ? 0 : 1;
}
