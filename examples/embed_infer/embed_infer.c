/* embed_infer.c: a C program that classifies pictures with a trained model, on amp/amp.h alone.
 *
 *     zcat t10k-images-idx3-ubyte.gz | embed_infer mlp.so mlp.safetensors
 *
 * Reads pictures in MNIST's form (IDX, unsigned bytes) from standard input, and prints the class of each.  Any model
 * with one f32 input of as many numbers as a picture has pixels, and one result [N, classes], will do.
 */
#include <stdio.h>
#include <stdlib.h>

#include "amp/amp.h"

enum { BATCH = 32 };

static int fail(const char *message) {
    fprintf(stderr, "embed_infer: %s\n", message);
    return 1;
}

/* The header of an IDX file of rank 3: the number of pictures and of pixels in each; 0 where it is none. */
static long read_header(long *pixels) {
    unsigned char h[16];
    if (fread(h, 1, sizeof h, stdin) != sizeof h || h[2] != 8 || h[3] != 3) return 0;
    *pixels = (long)(h[10] << 8 | h[11]) * (h[14] << 8 | h[15]);
    return (long)h[4] << 24 | h[5] << 16 | h[6] << 8 | h[7];
}

static long read_batch(float *x, long wanted, long pixels) {
    long i = 0;
    for (; i < wanted * pixels; i++) {
        int byte = getchar();
        if (byte == EOF) break;
        x[i] = (float)byte / 255.0f;
    }
    return i / pixels;
}

static int largest(const float *logits, long classes) {
    int best = 0;
    for (int c = 1; c < classes; c++)
        if (logits[c] > logits[best]) best = c;
    return best;
}

static int classify(amp_session *session, long count, long pixels, long classes) {
    amp_error err;
    float *x = malloc(sizeof *x * (size_t)(BATCH * pixels)),
          *logits = malloc(sizeof *logits * (size_t)(BATCH * classes));
    const void *inputs[] = {x};
    void *outputs[] = {logits};
    int failed = x && logits ? 0 : fail("out of memory");
    for (long done = 0; !failed && done < count; done += BATCH) {
        long wanted = count - done < BATCH ? count - done : BATCH;
        if (read_batch(x, wanted, pixels) != wanted) failed = fail("standard input ends within the pictures");
        else if (amp_infer(session, inputs, (amp_sizes){.n = wanted}, outputs, &err)) failed = fail(err.message);
        for (long i = 0; !failed && i < wanted; i++) printf("%d\n", largest(logits + i * classes, classes));
    }
    free(x);
    free(logits);
    return failed;
}

int main(int argc, char **argv) {
    amp_error err;
    amp_model *model = NULL;
    amp_params *params = NULL;
    amp_session *session = NULL;
    amp_tensor_info input, result;
    amp_session_options options = {.struct_size = sizeof options, .capacity.n = BATCH, .program = "infer"};
    long pixels = 0, count, numbers = 1;
    if (argc != 3) return fprintf(stderr, "usage: embed_infer MODEL.so WEIGHTS.safetensors <IMAGES\n"), 2;

    if (amp_model_load(argv[1], NULL, &model, &err) || amp_params_create(model, NULL, &params, &err) ||
        amp_params_load(params, argv[2], NULL, NULL, &err) ||
        amp_session_create(model, params, &options, &session, &err) ||
        amp_model_input_at(model, 0, (amp_sizes){.n = 1}, &input, &err) ||
        amp_model_result_at(model, 0, (amp_sizes){.n = 1}, &result, &err))
        return fail(err.message);
    for (int i = 1; i < input.rank; i++) numbers *= (long)input.dims[i];
    if (!(count = read_header(&pixels))) return fail("standard input holds no IDX pictures (rank 3, unsigned bytes)");
    if (pixels != numbers) return fail("the model's input has another number of pixels than the pictures");
    if (classify(session, count, pixels, (long)result.dims[result.rank - 1])) return 1;

    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
    return 0;
}
