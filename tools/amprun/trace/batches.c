/* batches.c: see tracer.h. */
#include "tools/amprun/trace/tracer.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

Batches batches_new(const amp_model *model) {
    amp_model_info info;
    amp_model_get_info(model, &info);
    return (Batches){.model = model, .inputs = info.input_count, .micro_batches = (int)info.accumulate};
}

static void free_step(const Batches *b, StepBatch *step) {
    for (int i = 0; i < step->count; i++) {
        for (int j = 0; step->micro[i].arrays && j < b->inputs; j++) free(step->micro[i].arrays[j]);
        free(step->micro[i].arrays);
    }
    free(step->micro);
}

void batches_clear(Batches *b) {
    for (int i = 0; i < b->count; i++) free_step(b, &b->step[i]);
    b->count = 0;
    b->bytes = 0;
}

void batches_free(Batches *b) {
    batches_clear(b);
    free(b->step);
    *b = (Batches){0};
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static amp_status no_memory(amp_error *err) {
    return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to keep the batches of a step");
}

/* The last step where it is not complete, else a new one. */
static amp_status open_step(Batches *b, StepBatch **out, amp_error *err) {
    *out = b->count ? &b->step[b->count - 1] : NULL;
    if (*out && (*out)->count < b->micro_batches) return AMP_OK;
    if (b->count == b->room) {
        StepBatch *more = realloc(b->step, sizeof *more * (size_t)(2 * b->room + 1));
        if (!more) return no_memory(err);
        b->step = more;
        b->room = 2 * b->room + 1;
    }
    MicroBatch *micro = calloc((size_t)b->micro_batches, sizeof *micro);
    if (!micro) return no_memory(err);
    b->step[b->count] = (StepBatch){.micro = micro};
    *out = &b->step[b->count++];
    return AMP_OK;
}

static amp_status copy_input(Batches *b, int index, const void *from, amp_sizes sizes, void **to, amp_error *err) {
    amp_tensor_info info;
    AMP_TRY(amp_model_input_at(b->model, index, sizes, &info, err));
    size_t bytes = amp_dtype_size(info.dtype);
    for (int i = 0; i < info.rank; i++) bytes *= (size_t)info.dims[i];
    *to = malloc(bytes ? bytes : 1);
    if (!*to) return no_memory(err);
    memcpy(*to, from, bytes);
    b->bytes += bytes;
    return AMP_OK;
}

amp_status batches_add(Batches *b, const void *const *inputs, amp_sizes sizes, amp_error *err) {
    StepBatch *step;
    AMP_TRY(open_step(b, &step, err));
    MicroBatch *micro = &step->micro[step->count++];
    micro->sizes = sizes;
    micro->arrays = calloc((size_t)b->inputs + 1, sizeof *micro->arrays);
    if (!micro->arrays) return no_memory(err);
    for (int i = 0; i < b->inputs; i++) AMP_TRY(copy_input(b, i, inputs[i], sizes, &micro->arrays[i], err));
    return AMP_OK;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

amp_status batches_run(const StepBatch *batch, amp_session *session, amp_step_report *report, amp_error *err) {
    for (int i = 0; i < batch->count; i++) {
        const MicroBatch *micro = &batch->micro[i];
        const amp_status status = amp_step(session, (const void *const *)micro->arrays, micro->sizes, report, err);
        if (status && status != AMP_SCALE_AT_FLOOR) return status;
    }
    return AMP_OK;
}
