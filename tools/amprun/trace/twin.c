/* twin.c: see tracer.h.
 *
 * Without fusion each core op has a kernel of its own and its result is in memory; the order of every sum, and every
 * rounding, is that of the fused model, so that the bits are the same.
 */
#include "amp/train.h"
#include "tools/amprun/trace/tracer.h"

#include "base/error.h"

static amp_status compile(const TwinSource *source, const TwinForm *form, amp_compile_result **out, amp_error *err) {
    const amp_compile_options options = {
        .struct_size = sizeof options,
        .name = source->args->model,
        .text = source->bytes,
        .text_size = source->size,
        .policy = form->policy,
        .overrides = form->overrides,
        .override_count = form->override_count,
        .no_pass = "fuse",
        .isa = source->args->cpu.isa ? source->args->cpu.isa : "native",
        .target = run_target(source->args),
    };
    return amp_compile(&options, out, err);
}

static amp_status make_trace(Twin *t, const TwinSource *source, const amp_compile_result *compiled, amp_error *err) {
    amp_compile_options options = {.struct_size = sizeof options, .name = source->args->model};
    options.text = amp_compile_result_data(compiled, &options.text_size);
    return amp_trace_create(&options, run_target(source->args), &t->trace, err);
}

static amp_status make_session(Twin *t, const TwinSource *source, const amp_compile_result *compiled, amp_error *err) {
    const Args *a = source->args;
    size_t size;
    const void *bytes = amp_compile_result_data(compiled, &size);
    const amp_params_options params = {.struct_size = sizeof params, .zeros = 1};
    const amp_session_options options = run_options_again(a, source->capacity, source->seed);
    const amp_model_options from = {.struct_size = sizeof from, .bytes = bytes, .size = size};
    AMP_TRY(amp_model_load(a->model, &from, &t->model, err));
    AMP_TRY(amp_params_create(t->model, &params, &t->params, err));
    AMP_TRY(amp_session_create(t->model, t->params, &options, &t->session, err));
    return amp_session_observe(t->session, amp_trace_observer(t->trace), err);
}

amp_status twin_open(Twin *t, const TwinSource *source, const TwinForm *form, amp_error *err) {
    amp_compile_result *compiled = NULL;
    *t = (Twin){0};
    amp_status status = compile(source, form, &compiled, err);
    if (!status) status = make_trace(t, source, compiled, err);
    if (!status) status = make_session(t, source, compiled, err);
    amp_compile_result_release(compiled);
    return status;
}

void twin_close(Twin *t) {
    amp_session_release(t->session);
    amp_params_release(t->params);
    amp_model_release(t->model);
    amp_trace_release(t->trace);
    *t = (Twin){0};
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

static amp_status set_state(Twin *t, const TwinState *from, amp_error *err) {
    amp_scaler_state state = {.step = from->at.step, .iteration = from->at.iteration};
    const bool is_whole = from->checkpoint != NULL;
    if (is_whole) AMP_TRY(amp_checkpoint_load(t->session, from->checkpoint, NULL, 0, err));
    else AMP_TRY(amp_params_load(t->params, from->params, NULL, NULL, err));
    if (is_whole && from->scale <= 0) return AMP_OK;
    if (is_whole) AMP_TRY(amp_session_get_scaler(t->session, &state, err));
    state.scale = from->scale > 0 ? (float)from->scale : 1;
    return amp_session_set_scaler(t->session, &state, err);
}

amp_status twin_step(Twin *t, const TwinState *state, const StepBatch *batch, TwinStep *out, amp_error *err) {
    *out = (TwinStep){.finding = {.struct_size = sizeof out->finding}};
    AMP_TRY(set_state(t, state, err));
    for (int i = 0; i < batch->count && !out->finding.fault; i++) {
        out->micro = i;
        const StepBatch one = {.count = 1, .micro = &batch->micro[i]};
        AMP_TRY(batches_run(&one, t->session, &out->report, err));
        AMP_TRY(amp_trace_find(t->trace, &out->finding, err));
    }
    return AMP_OK;
}
