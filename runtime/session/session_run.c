/* session_run.c: runs of programs on the caller's arrays: amp_eval and amp_infer; session_step.c has amp_step. */
#include "runtime/session/session.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtypes.h"
#include "base/error.h"
#include "base/float_environment.h"
#include "base/hash.h"

/* ---- checks: before anything changes ----------------------------------------------------------------------------- */

amp_status amp_session_check_sizes(const amp_session *s, amp_sizes sizes, amp_error *err) {
    const int64_t n = sizes.n;
    if (n < 1 || n > s->capacity.n)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "n is %lld; this session takes 1 to %lld samples (its capacity)",
                        (long long)n, (long long)s->capacity.n);
    if (n % s->model->batch_multiple)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "n is %lld; %s takes multiples of %lld samples", (long long)n,
                        s->model->desc.name, (long long)s->model->batch_multiple);
    AMP_TRY(amp_length_check(s->model, sizes.t, 1, s->capacity.t, "a call of this session", err));
    if (!s->tokens || n * sizes.t <= s->tokens) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT,
                    "n * t is %lld * %lld = %lld; this session takes %lld at most (tokens): give it fewer samples, or "
                    "create one for more",
                    (long long)n, (long long)sizes.t, (long long)(n * sizes.t), (long long)s->tokens);
}

/* Indices address tables, and classes: one that is out of range would read elsewhere, or give a wrong loss in silence.
 */
static amp_status check_indices(const amp_model_input *in, const int32_t *index, amp_sizes sizes, amp_error *err) {
    int64_t per_sample = 1;
    for (uint32_t i = 1; i < in->rank; i++) per_sample *= amp_model_dim_at(&in->dims[i], sizes);
    int64_t count = per_sample * (in->rank ? amp_model_dim_at(&in->dims[0], sizes) : 1);
    for (int64_t i = 0; i < count; i++) {
        if (index[i] == in->index_ignore || (index[i] >= 0 && index[i] < in->index_bound)) continue;
        return amp_session_bad_index(in, i / per_sample, index[i], err);
    }
    return AMP_OK;
}

/* Kernels are C: they read numbers where a number can be. */
static amp_status check_alignment(const char *what, const char *name, const void *array, size_t align, amp_error *err) {
    if ((uintptr_t)array % align == 0) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT,
                    "%s %s: the array at %p is not aligned to its elements of %zu bytes; copy it", what, name, array,
                    align);
}

static amp_status check_input(const amp_session *s, const amp_model_buffer *buffer, const void *array, amp_sizes sizes,
                              amp_error *err) {
    const amp_model_input *in = &s->model->inputs[buffer->index];
    if (!array) return amp_fail(err, AMP_INVALID_ARGUMENT, "input %s is NULL", in->name);
    AMP_TRY(check_alignment("input", in->name, array, amp_dtype_size((amp_dtype)in->dtype), err));
    if (s->inputs_in) AMP_TRY(amp_session_check_memory(s, buffer, array, sizes, err));
    return in->index_bound && s->inputs_in != AMP_INPUTS_DEVICE ? check_indices(in, array, sizes, err) : AMP_OK;
}

static amp_status check_inputs(const amp_session *s, const amp_bound_program *b, const void *const *inputs,
                               amp_sizes sizes, amp_error *err) {
    for (int32_t i = 0; i < b->program->input_end; i++) {
        const amp_model_buffer *buffer = &b->program->buffers[i];
        if (buffer->kind != AMP_BUFFER_INPUT) continue;
        if (!inputs) return amp_fail(err, AMP_INVALID_ARGUMENT, "inputs is NULL");
        AMP_TRY(check_input(s, buffer, inputs[buffer->index], sizes, err));
    }
    return AMP_OK;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* The ABI's buffers are not const because most are written; inputs are only read. */
static void bind_inputs(amp_bound_program *b, const void *const *inputs) {
    for (int32_t i = 0; i < b->program->input_end; i++)
        if (b->program->buffers[i].kind == AMP_BUFFER_INPUT)
            b->buffers[i] = (void *)(uintptr_t)inputs[b->program->buffers[i].index];
}

/* Masters and saved buffers; "refresh" writes what is derived from them. */
static bool writes_params(const amp_session *s, const amp_bound_program *b) {
    return b == &s->programs[AMP_RUN_TRAIN_STEP] || b == &s->programs[AMP_RUN_APPLY_STEP];
}

/* What derives weights, and metrics of averages, is no part of what an application computes. */
static bool is_observed(const amp_session *s, const amp_bound_program *b) {
    return s->observer.kernel && b != &s->programs[AMP_RUN_REFRESH] && b != &s->programs[AMP_RUN_METRICS] &&
           b != &s->programs[AMP_RUN_FIGURES] && b != &s->programs[AMP_RUN_STATISTICS];
}

amp_status amp_session_run_bound(const amp_session *s, const amp_bound_program *b, amp_sizes sizes, amp_error *err) {
    amp_run run = {.program = b->program,
                   .buffers = b->buffers,
                   .sizes = sizes,
                   .inputs_in = amp_session_inputs_of(s, b),
                   .flags = b->flags,
                   .flag_bytes = b->flag_bytes,
                   .params = s->params->residency->memory,
                   .writes_params = writes_params(s, b) || b == &s->programs[AMP_RUN_REFRESH],
                   .poisons_temporaries = b->options.sharing == AMP_OWN_ALLOCATIONS && !b->options.watch};
    if (b == &s->programs[AMP_RUN_INFER] && s->selection.hash) {
        run.needed = s->selection.needed;
        run.selection = s->selection.hash;
    }
    if (b == &s->programs[AMP_RUN_STATISTICS]) run.batches = s->batches;
    if (s->ranks) AMP_TRY(amp_ranks_before_run(s->ranks, &run, s->step.micro, err));
    run.looked_at = s->look.now != NULL;
    const amp_observed_run observed = {s, b, sizes};
    if (is_observed(s, b) || amp_session_looks_at_kernels(s)) {
        run.after_kernel = amp_session_observe_kernel;
        run.watcher = &observed;
        run.watcher_waits = s->observer.kernel && !s->observer.does_not_wait;
    }
    if (s->device->type->device_memory && writes_params(s, b)) amp_params_changed_on_device(s->params);
    if (writes_params(s, b)) amp_params_written_by(s->params, &s->params_user);
    bool began = true;
    run.began = &began;
    const amp_status status = s->device->type->run(s->device, &run, err);
    if (began && b == amp_session_last_program(s)) s->readback->half = true;
    return status;
}

amp_status amp_session_refresh(amp_session *s, amp_error *err) {
    amp_params *p = s->params;
    atomic_bool *stale = amp_params_stale(p, &s->params_user);
    if (!s->device->type->computes || !atomic_load(stale)) return AMP_OK;
    pthread_mutex_lock(&p->refreshing);
    amp_status status = s->ranks ? amp_ranks_take_params(s->ranks, err) : amp_params_reach_device(p, err);
    if (!status && s->programs[AMP_RUN_REFRESH].program && atomic_load(stale))
        status = amp_session_run_bound(s, &s->programs[AMP_RUN_REFRESH], amp_model_least_sizes(s->model), err);
    if (!status) atomic_store(stale, false);
    pthread_mutex_unlock(&p->refreshing);
    return status;
}

amp_status amp_session_run(amp_session *s, amp_bound_program *b, const void *const *inputs, amp_sizes sizes,
                           amp_error *err) {
    AMP_TRY(amp_session_check_sizes(s, sizes, err));
    AMP_TRY(check_inputs(s, b, inputs, sizes, err));
    if (s->published) amp_session_read_newest(s);
    else AMP_TRY(amp_session_refresh(s, err));
    bind_inputs(b, inputs);
    amp_session_begin_look(s, b, sizes);
    const amp_status status = amp_session_run_bound(s, b, sizes, err);
    amp_session_end_look(s, sizes, status);
    return status;
}

/* ---- inference: results are computed into the caller's arrays ---------------------------------------------------- */

static size_t selection_bytes(const amp_program *p) {
    return (size_t)p->result_count + (size_t)p->kernel_count + (size_t)p->buffer_count;
}

static size_t instead_bytes(const amp_program *p) {
    return (size_t)p->result_count * (sizeof(void *) + sizeof(size_t));
}

amp_status amp_session_make_selection(amp_session *s, amp_error *err) {
    const amp_program *p = s->programs[AMP_RUN_INFER].program;
    const amp_allocator *a = &s->memory.allocator;
    amp_selection *x = &s->selection;
    if (!p) return AMP_OK;
    x->wanted = amp_alloc_zeroed(a, selection_bytes(p));
    x->instead = amp_alloc_zeroed(a, instead_bytes(p));
    if (!x->wanted || !x->instead)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for a session", s->model->desc.name);
    x->needed = x->wanted + p->result_count;
    x->live = x->needed + p->kernel_count;
    x->bytes = (size_t *)(void *)(x->instead + p->result_count);
    return AMP_OK;
}

void amp_session_free_selection(amp_session *s) {
    const amp_program *p = s->programs[AMP_RUN_INFER].program;
    const amp_allocator *a = &s->memory.allocator;
    amp_selection *x = &s->selection;
    for (int32_t i = 0; x->bytes && i < p->result_count; i++) amp_free(a, x->instead[i], x->bytes[i]);
    if (x->wanted) amp_free(a, x->wanted, selection_bytes(p));
    if (x->instead) amp_free(a, x->instead, instead_bytes(p));
}

static bool is_output(const amp_bound_program *b, int32_t result) {
    return b->program->buffers[b->program->results[result].buffer].kind == AMP_BUFFER_OUTPUT;
}

/* What a kernel reads and writes is in the memory of |buffer|: of another one that it is a part or a new shape of. */
static int32_t memory_of(const amp_program *p, int32_t buffer) {
    const amp_model_buffer *b = &p->buffers[buffer];
    for (int32_t i = 0; i < p->buffer_count && b->place && (b->renamed || b->part); i++) {
        buffer = (int32_t)b->place - 1;
        b = &p->buffers[buffer];
    }
    return buffer;
}

static bool writes_live(const amp_program *p, int32_t kernel, const uint8_t *live) {
    for (uint32_t i = 0; i < amp_operand_count(p, kernel); i++) {
        const int32_t buffer = (int32_t)amp_operand_buffer(p, kernel, i);
        if (p->buffers[buffer].first_kernel == kernel && live[memory_of(p, buffer)]) return true;
    }
    return false;
}

/* From the end on: a kernel is needed if it writes what is wanted, or what a needed kernel reads. */
static void find_needed(const amp_program *p, amp_selection *x) {
    amp_xxh64 hash;
    memset(x->live, 0, (size_t)p->buffer_count);
    for (int32_t i = 0; i < p->result_count; i++)
        if (x->wanted[i]) x->live[memory_of(p, p->results[i].buffer)] = 1;
    for (int32_t k = p->kernel_count - 1; k >= 0; k--) {
        x->needed[k] = writes_live(p, k, x->live);
        if (!x->needed[k]) continue;
        for (uint32_t i = 0; i < amp_operand_count(p, k); i++)
            x->live[memory_of(p, (int32_t)amp_operand_buffer(p, k, i))] = 1;
        const int32_t predicate = p->kernels ? p->kernels[k].predicate : AMP_MODEL_NONE;
        if (predicate >= 0) x->live[memory_of(p, predicate)] = 1;
    }
    amp_xxh64_init(&hash);
    amp_xxh64_update(&hash, x->needed, (size_t)p->kernel_count);
    x->hash = amp_xxh64_final(&hash) | 1;
}

static void select_results(amp_session *s, void *const *outputs) {
    const amp_program *p = s->programs[AMP_RUN_INFER].program;
    amp_selection *x = &s->selection;
    bool all = true, same = true;
    for (int32_t i = 0; i < p->result_count; i++) {
        const uint8_t wanted = outputs[i] != NULL;
        all &= wanted;
        same &= wanted == x->wanted[i];
        x->wanted[i] = wanted;
    }
    if (all) x->hash = 0;
    else if (!same || !x->hash) find_needed(p, x);
}

/* A result that is not wanted, and that a kernel writes beside what is needed. */
static amp_status take_instead(amp_session *s, int32_t result, amp_error *err) {
    const amp_bound_program *b = &s->programs[AMP_RUN_INFER];
    const amp_model_buffer *buffer = &b->program->buffers[b->program->results[result].buffer];
    amp_selection *x = &s->selection;
    const int32_t kernel = buffer->first_kernel;
    if (x->instead[result] || kernel < 0 || kernel >= b->program->kernel_count || !x->needed[kernel]) return AMP_OK;
    const size_t bytes = b->plan.bytes[b->program->results[result].buffer];
    void *memory = amp_alloc_zeroed(&s->memory.allocator, bytes);
    if (!memory)
        return amp_fail(err, AMP_OUT_OF_MEMORY,
                        "no memory for %zu bytes of result %s, which is computed with others though it is not wanted",
                        bytes, b->program->results[result].name);
    x->instead[result] = memory;
    x->bytes[result] = bytes;
    return AMP_OK;
}

/* Two results may share a buffer: the later one that is wanted is where it is computed, the other is copied. */
static amp_status bind_outputs(amp_session *s, void *const *outputs, amp_error *err) {
    amp_bound_program *b = &s->programs[AMP_RUN_INFER];
    const amp_model_result *results = b->program->results;
    for (int32_t i = 0; i < b->program->result_count; i++)
        if (is_output(b, i)) b->buffers[results[i].buffer] = NULL;
    for (int32_t i = 0; i < b->program->result_count; i++)
        if (is_output(b, i) && outputs[i]) b->buffers[results[i].buffer] = outputs[i];
    for (int32_t i = 0; i < b->program->result_count; i++) {
        void **bound = &b->buffers[results[i].buffer];
        if (!is_output(b, i) || *bound) continue;
        AMP_TRY(take_instead(s, i, err));
        *bound = s->selection.instead[i];
    }
    return AMP_OK;
}

static amp_status copy_others(amp_session *s, amp_sizes sizes, void *const *outputs, amp_error *err) {
    const amp_bound_program *b = &s->programs[AMP_RUN_INFER];
    for (int32_t i = 0; i < b->program->result_count; i++) {
        int32_t buffer = b->program->results[i].buffer;
        if (outputs[i] && b->buffers[buffer] != outputs[i])
            AMP_TRY(amp_session_read_buffer(s, b, buffer, sizes, outputs[i], err));
    }
    return AMP_OK;
}

static amp_status check_outputs(const amp_program *p, void *const *outputs, amp_error *err) {
    if (!outputs) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_infer: outputs is NULL");
    for (int32_t i = 0; i < p->result_count; i++) {
        const amp_model_result *r = &p->results[i];
        AMP_TRY(check_alignment("result", r->name, outputs[i], amp_dtype_size(amp_readable_dtype(r->dtype)), err));
    }
    return AMP_OK;
}

amp_status amp_infer(amp_session *session, const void *const *inputs, amp_sizes sizes, void *const *outputs,
                     amp_error *err) {
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    if (!session) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_infer: session is NULL");
    amp_bound_program *infer = &session->programs[AMP_RUN_INFER];
    if (!infer->program)
        return amp_fail(err, AMP_WRONG_STATE, "amp_infer: %s was compiled without infer", session->model->desc.name);
    AMP_TRY(check_outputs(infer->program, outputs, err));
    select_results(session, outputs);
    if (!amp_session_has_device_memory(session)) AMP_TRY(bind_outputs(session, outputs, err));
    AMP_TRY(amp_session_run(session, infer, inputs, sizes, err));
    if (session->inputs_in == AMP_INPUTS_DEVICE) {
        AMP_TRY(amp_session_start_readback(session, &(amp_readback_run){.sizes = sizes}, err));
        AMP_TRY(amp_session_settle(session, true, err));
    }
    return copy_others(session, sizes, outputs, err);
}
