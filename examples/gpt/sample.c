/* sample.c: writes text with a trained model over bytes, on amp/amp.h alone.
 *
 *     sample bytes.so bytes.safetensors [BYTES [TEMPERATURE [SEED]]] <PROMPT
 *
 * Any model with one input i32[N, T] of bytes and one result [N, T, 256], whose row t predicts byte t + 1 and sees
 * no later ones, will do. Of a model with a size T a call is as long as the text; of one length, always that long.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amp/amp.h"

enum { SYMBOLS = 256 };

static int fail(const char *message) {
    fprintf(stderr, "sample: %s\n", message);
    return 1;
}

/* Uniform in [0, 1): splitmix64 (Steele, Lea and Flood 2014). */
static double draw(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* A byte with probability softmax(logits / temperature). */
static int choose(const float *logits, double temperature, uint64_t *state) {
    double largest = logits[0], sum = 0.0;
    for (int i = 1; i < SYMBOLS; i++) largest = logits[i] > largest ? logits[i] : largest;
    for (int i = 0; i < SYMBOLS; i++) sum += exp((logits[i] - largest) / temperature);
    double left = draw(state) * sum;
    int i = 0;
    for (; i < SYMBOLS - 1; i++)
        if ((left -= exp((logits[i] - largest) / temperature)) < 0.0) break;
    return i;
}

typedef struct Window { /* the last bytes of the text; what comes after them is zeros, which no earlier row sees */
    int32_t *tokens;
    long length, used, unit; /* unit: of T, or 0 if the model has one length */
} Window;

static void append(Window *w, int byte) {
    if (w->used == w->length) memmove(w->tokens, w->tokens + 1, sizeof *w->tokens * (size_t)--w->used);
    w->tokens[w->used++] = byte;
}

static amp_sizes sizes_of(const Window *w) {
    return (amp_sizes){.n = 1, .t = w->unit ? (w->used + w->unit - 1) / w->unit * w->unit : 0};
}

static int write_text(amp_session *session, Window *w, float *logits, long bytes, double temperature, uint64_t seed) {
    amp_error err;
    const void *inputs[] = {w->tokens};
    void *outputs[] = {logits};
    for (long i = 0; i < bytes; i++) {
        if (amp_infer(session, inputs, sizes_of(w), outputs, &err)) return fail(err.message);
        int byte = choose(logits + (w->used - 1) * SYMBOLS, temperature, &seed);
        putchar(byte);
        append(w, byte);
    }
    putchar('\n');
    return 0;
}

static int run(amp_session *session, long length, long unit, long bytes, double temperature, uint64_t seed) {
    Window w = {calloc((size_t)length, sizeof *w.tokens), length, 0, unit};
    float *logits = malloc(sizeof *logits * (size_t)length * SYMBOLS);
    int failed = w.tokens && logits ? 0 : fail("out of memory");
    for (int byte; !failed && (byte = getchar()) != EOF;) {
        putchar(byte);
        append(&w, byte);
    }
    if (!failed && !w.used) append(&w, '\n');
    if (!failed) failed = write_text(session, &w, logits, bytes, temperature, seed);
    free(w.tokens);
    free(logits);
    return failed;
}

int main(int argc, char **argv) {
    amp_error err;
    amp_model *model = NULL;
    amp_params *params = NULL;
    amp_session *session = NULL;
    amp_model_info info;
    amp_tensor_info input;
    amp_session_options options = {.struct_size = sizeof options, .capacity.n = 1, .program = "infer"};
    if (argc < 3 || argc > 6)
        return fprintf(stderr, "usage: sample MODEL.so WEIGHTS.safetensors [BYTES [TEMPERATURE [SEED]]] <PROMPT\n"), 2;
    long bytes = argc > 3 ? atol(argv[3]) : 500;
    double temperature = argc > 4 ? atof(argv[4]) : 0.8;
    uint64_t seed = argc > 5 ? strtoull(argv[5], NULL, 10) : 0;
    if (bytes < 0 || !(temperature > 0.0)) return fail("BYTES is at least 0, and TEMPERATURE above 0");

    if (amp_model_load(argv[1], NULL, &model, &err)) return fail(err.message);
    amp_model_get_info(model, &info);
    if (amp_model_input_at(model, 0, (amp_sizes){1, info.length_most}, &input, &err)) return fail(err.message);
    long length = input.rank == 2 ? (long)input.dims[1] : 0, unit = (long)info.length_unit;
    char wanted[128] = "i32[N, T] -> f32[N, T, 256]";
    if (!unit) snprintf(wanted, sizeof wanted, "i32[N, %ld] -> f32[N, %ld, %d]", length, length, SYMBOLS);
    if (amp_model_expect(model, wanted, &err) || amp_params_create(model, NULL, &params, &err) ||
        amp_params_load(params, argv[2], NULL, NULL, &err) ||
        amp_session_create(model, params, &options, &session, &err))
        return fail(err.message);
    if (run(session, length, unit, bytes, temperature, seed)) return 1;

    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
    return 0;
}
