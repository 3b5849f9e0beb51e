/* checkpoint_fuzz.c: a checkpoint, and the same file as params, of the hand-written model of tests/runtime: refused
 * with nothing changed, or loaded whole and fit to train on. */
#include <stdlib.h>
#include <string.h>

#include "amp/amp.h"
#include "amp/train.h"
#include "runtime/model/model.h"
#include "tests/fuzz/fuzz.h"
#include "tests/runtime/tiny_model.h"

typedef struct Life {
    amp_model *model;
    amp_params *params;
    amp_session *session;
    float x[2][TINY_FEATURES];
    int32_t targets[2];
} Life;

static Life *life(void) {
    static Life l;
    amp_error err;
    if (l.session) return &l;
    amp_params_options seed = {.struct_size = sizeof seed, .seed = 7};
    amp_session_options o = {.struct_size = sizeof o, .capacity.n = 2, .threads = 1};
    if (amp_model_from_desc(amp_model_query(), "tiny", NULL, &l.model, &err) ||
        amp_params_create(l.model, &seed, &l.params, &err) ||
        amp_session_create(l.model, l.params, &o, &l.session, &err))
        fuzz_fail("%s", err.message);
    return &l;
}

enum { WEIGHTS = TINY_CLASSES * TINY_FEATURES };

static void weights(const Life *l, float out[2 * WEIGHTS]) {
    amp_error err;
    if (amp_params_get(l->params, "fc.weight", out, WEIGHTS, &err) ||
        amp_session_get_moment(l->session, "fc.weight/momentum", out + WEIGHTS, WEIGHTS, &err))
        fuzz_fail("%s", err.message);
}

static void load(Life *l, const char *path, int as_checkpoint) {
    static float before[2 * WEIGHTS], after[2 * WEIGHTS];
    amp_error err = {0};
    char extra[32];
    weights(l, before);
    amp_status status = as_checkpoint ? amp_checkpoint_load(l->session, path, extra, sizeof extra, &err)
                                      : amp_params_load(l->params, path, NULL, NULL, &err);
    weights(l, after);
    if (status && memcmp(before, after, sizeof before))
        fuzz_fail("refused, but it changed the weights: %s", err.message);
    if (status && strncmp(err.message, path, strlen(path)))
        fuzz_fail("the message does not name the file: %s", err.message);
    if (status == AMP_INTERNAL || status == AMP_OUT_OF_MEMORY || status == AMP_IO) fuzz_fail("%s", err.message);
    const void *inputs[] = {l->x, l->targets};
    status = amp_step(l->session, inputs, (amp_sizes){.n = 2}, NULL, &err);
    if (status && status != AMP_SCALE_AT_FLOOR) fuzz_fail("no step after it: %s", err.message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = fuzz_file(data, size);
    load(life(), path, 1);
    load(life(), path, 0);
    return 0;
}
