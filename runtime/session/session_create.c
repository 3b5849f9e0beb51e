/* session_create.c: making and freeing sessions: states, bound programs, device; what that takes. */
#include "runtime/session/session.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/names.h"
#include "runtime/model/state.h"

/* ---- states ------------------------------------------------------------------------------------------------------ */

bool amp_session_holds(const amp_session *s, int32_t index) {
    const amp_model *model = s->model;
    if (amp_state_lives_in_params(model, index, NULL)) return false;
    return s->training || amp_program_uses_state(model->eval, index) || amp_program_uses_state(model->infer, index) ||
           amp_program_uses_state(model->eval_fp32, index) || amp_program_uses_state(model->infer_fp32, index);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static uint64_t held_bytes(const amp_session *s) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < s->model->state_count; i++)
        if (amp_session_holds(s, i)) bytes += amp_state_block_bytes(s->model, s->states.blocks, i);
    return bytes;
}

static uint64_t bytes_of_role(const amp_session *s, uint32_t role) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < s->model->state_count; i++)
        if (s->model->states[i].role == role && (!s->published || s->states.bound[i]))
            bytes += amp_ranks_share_master(s->ranks, i) ? amp_master_bytes(s->ranks->shares[i])
                                                         : amp_state_bytes(&s->model->states[i]);
    return bytes;
}

/* That somebody else publishes while a session reads a version is nothing that this session waits for. */
static uint64_t params_bytes(const amp_session *s) {
    const amp_params *p = s->params;
    if (s->published)
        return bytes_of_role(s, AMP_STATE_PARAM) + bytes_of_role(s, AMP_STATE_BUFFER) +
               bytes_of_role(s, AMP_STATE_DERIVED);
    return p->memory.bytes + sizeof *p + sizeof *p->published + atomic_load(&p->published->bytes);
}

/* Shares of masters. */
static uint64_t device_shares(const amp_session *s) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < s->model->state_count; i++)
        if (amp_ranks_share_master(s->ranks, i)) bytes += amp_master_bytes(s->ranks->shares[i]);
    return bytes;
}

static uint64_t device_bytes(const amp_session *s) {
    if (!amp_session_has_device_memory(s)) return 0;
    return s->device_arena.bytes + s->params->residency->bytes + device_shares(s) +
           s->device->type->device_memory->bytes(s->device, true);
}

/* What allocators do not see. */
static uint64_t other_bytes(const amp_session *s) {
    if (!amp_session_has_device_memory(s)) return 0;
    return device_bytes(s) + s->device->type->device_memory->bytes(s->device, false);
}

void amp_session_get_memory(const amp_session *s, amp_memory_info *out) {
    if (!out) return;
    *out = (amp_memory_info){0};
    if (!s) return;
    *out = (amp_memory_info){
        .params = bytes_of_role(s, AMP_STATE_PARAM) + bytes_of_role(s, AMP_STATE_BUFFER),
        .derived = bytes_of_role(s, AMP_STATE_DERIVED),
        .moments = held_bytes(s),
        .activations = s->arena.bytes,
        .total = s->memory.bytes + sizeof *s + params_bytes(s) + other_bytes(s),
        .device = device_bytes(s),
        .model = (s->model->owner ? s->model->owner : s->model)->library_bytes,
    };
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) {
        const amp_bound_program *b = &s->programs[i];
        out->activations += amp_bound_program_temporaries(b);
        out->outputs += b->kept_bytes;
    }
    /* Threads, scratch of products, and the tables that the session itself needs; with device memory, what the
     * host keeps besides. */
    out->scratch = out->total - out->params - out->derived - out->moments - out->activations - out->outputs;
}

/* ---- making: states ---------------------------------------------------------------------------------------------- */

enum { MAX_THREADS = 1024 };

/* What a session is made with, read and checked. */
typedef struct Request {
    amp_session_options o;
    amp_cpu_options cpu;
    amp_cuda_options cuda;
    amp_inspect_options inspect;
    const amp_device_type *type;
    amp_model *target; /* the model as the device runs it */
} Request;

static bool lives_in_session(const amp_model *model, int32_t index, const void *ctx) {
    (void)model;
    return amp_session_holds(ctx, index);
}

static size_t list_bytes(const amp_session *s) { return (size_t)s->model->state_count * sizeof(void *); }

/* amp_session_make_device_memory fills them. */
static amp_status make_state_lists(amp_session *s, amp_error *err) {
    const amp_allocator *a = &s->memory.allocator;
    s->states.held = amp_alloc_zeroed(a, list_bytes(s));
    s->states.host = amp_alloc_zeroed(a, list_bytes(s));
    s->states.bound = amp_alloc_zeroed(a, list_bytes(s));
    if (s->states.held && s->states.host && s->states.bound) return AMP_OK;
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for a session", s->model->desc.name);
}

/* What make_states would allocate is counted, but for |bound|, which programs are planned with. */
static amp_status count_states(amp_session *s, amp_error *err) {
    const amp_allocator *a = &s->memory.allocator;
    s->states.bound = amp_alloc_zeroed(a, list_bytes(s));
    if (!s->states.bound)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to plan a session", s->model->desc.name);
    amp_states_plan(s->model, s->states.blocks, lives_in_session, s, &s->memory);
    return AMP_OK;
}

/* Of a moment that ranks divide, the rank's share. */
static amp_status initialise_moment(amp_session *s, int32_t i, amp_error *err) {
    const amp_model_state *state = &s->model->states[i];
    const size_t bytes = (size_t)amp_model_state_elements(state) * sizeof(float);
    float *rows = amp_alloc_aligned(&s->memory.allocator, bytes, AMP_MEMORY_ALIGN);
    if (!rows) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to initialise its moments", s->model->desc.name);
    amp_initialise(state, 0, rows);
    amp_status status = amp_session_set_state(s, i, rows, err);
    amp_free_aligned(&s->memory.allocator, rows, bytes, AMP_MEMORY_ALIGN);
    return status;
}

/* Those that do not start as zero. */
static amp_status initialise_moments(amp_session *s, amp_error *err) {
    for (int32_t i = 0; i < s->model->state_count; i++) {
        const amp_model_state *state = &s->model->states[i];
        if (state->role == AMP_STATE_MOMENT && state->init && s->states.bound[i]) AMP_TRY(initialise_moment(s, i, err));
    }
    return AMP_OK;
}

static amp_status make_states(amp_session *s, uint64_t seed, amp_error *err) {
    const amp_model *m = s->model;
    const amp_allocator *a = &s->memory.allocator;
    if (amp_session_has_device_memory(s)) return make_state_lists(s, err);
    if (s->sizes_only) return count_states(s, err);
    AMP_TRY(amp_states_alloc(m, s->states.blocks, lives_in_session, s, a, &s->states.held, err));
    AMP_TRY(amp_states_initialise(m, s->states.held, seed, a, err));
    s->states.bound = amp_alloc_zeroed(a, list_bytes(s));
    if (!s->states.bound) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for a session", m->desc.name);
    s->states.host = s->states.held;
    for (int32_t i = 0; i < m->state_count; i++)
        s->states.bound[i] = s->states.held[i] ? s->states.held[i]
                             : s->published    ? NULL
                                               : amp_params_states(s->params, &s->params_user)[i];
    if (s->published) amp_session_read_newest(s);
    int64_t *seed_state = amp_session_seed(s);
    if (seed_state) *seed_state = (int64_t)seed;
    return initialise_moments(s, err);
}

/* ---- making: programs -------------------------------------------------------------------------------------------- */

static void plan_program(amp_session *s, const amp_bound_program *bound) {
    const size_t own = amp_bound_program_temporaries(bound);
    amp_counted_allocator_plan(&s->memory, bound->kept_bytes);
    if (own) amp_counted_allocator_plan(&s->memory, own);
}

static amp_capacity capacity_of(const amp_session *s) {
    return (amp_capacity){s->capacity, s->tokens, s->model->desc.length_unit};
}

/* |step|: of training, whose gradients or values may have to be kept. */
static amp_status bind(amp_session *s, amp_bound_program *bound, const amp_program *program, bool step,
                       const amp_inspect_options *inspect, amp_error *err) {
    if (!program) return AMP_OK;
    bool keep = step && inspect->keep_values, norm = step && inspect->grad_norm;
    amp_bound_options o = {
        .capacity = capacity_of(s),
        .sharing = inspect->separate_buffers ? AMP_OWN_ALLOCATIONS
                   : keep                    ? AMP_OWN_ARENA
                   : norm                    ? AMP_KEEP_RESULTS
                                             : AMP_SHARE_ARENA,
        .watch = keep || norm,
        .device_memory = amp_session_has_device_memory(s),
        .sizes_only = s->sizes_only,
    };
    AMP_TRY(amp_bound_program_make(bound, program, &o, s->states.bound, &s->memory.allocator, err));
    if (s->sizes_only) plan_program(s, bound);
    size_t bytes = amp_bound_program_arena_bytes(bound);
    if (bytes > s->arena.bytes) s->arena.bytes = bytes;
    return AMP_OK;
}

static amp_status make_arena(amp_session *s, amp_error *err) {
    if (s->arena.bytes == 0 || amp_session_has_device_memory(s)) return AMP_OK;
    if (s->sizes_only) {
        amp_counted_allocator_plan(&s->memory, s->arena.bytes);
        return AMP_OK;
    }
    s->arena.memory = amp_arena_alloc(&s->memory.allocator, s->arena.bytes);
    if (!s->arena.memory)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu bytes of activations at capacity %lld",
                        s->model->desc.name, s->arena.bytes, (long long)s->capacity.n);
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) {
        amp_bound_program *b = &s->programs[i];
        if (amp_bound_program_arena_bytes(b)) amp_bound_program_use_arena(b, s->arena.memory);
    }
    return AMP_OK;
}

static amp_status make_programs(amp_session *s, const Request *r, amp_error *err) {
    const amp_model *m = s->model;
    bool in_fp32 = r->o.precision && !strcmp(r->o.precision, AMP_FULL_PRECISION);
    const amp_program *const programs[AMP_SESSION_PROGRAMS] = {
        [AMP_RUN_TRAIN_STEP] = s->training ? m->train_step : NULL,
        [AMP_RUN_APPLY_STEP] = s->training ? m->apply_step : NULL,
        [AMP_RUN_EVAL] = in_fp32 && m->eval_fp32 ? m->eval_fp32 : m->eval,
        [AMP_RUN_INFER] = in_fp32 && m->infer_fp32 ? m->infer_fp32 : m->infer,
        [AMP_RUN_FIGURES] = m->figures,
        [AMP_RUN_METRICS] = m->metrics,
        [AMP_RUN_REFRESH] = s->published ? NULL : m->refresh,
        [AMP_RUN_STATISTICS] = s->training ? m->statistics_step : NULL,
    };
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) {
        bool step = i == AMP_RUN_TRAIN_STEP || i == AMP_RUN_APPLY_STEP;
        AMP_TRY(bind(s, &s->programs[i], programs[i], step, &r->inspect, err));
    }
    return make_arena(s, err);
}

/* ---- lifetime ---------------------------------------------------------------------------------------------------- */

static amp_status check_program(const amp_session_options *o, const amp_model *m, amp_error *err) {
    AMP_TRY(amp_program_check(o->program, err));
    if (!o->precision) return AMP_OK;
    if (strcmp(o->precision, AMP_FULL_PRECISION))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "precision %s: NULL (as compiled) or fp32", o->precision);
    if (amp_model_has_fp32(m)) return AMP_OK;
    return amp_fail(err, AMP_UNSUPPORTED,
                    "%s: FP32 forms of eval and infer were not compiled; ampc --eval-precision fp32 adds them",
                    m->desc.name);
}

static amp_input_memory inputs_in(const amp_cuda_options *o) {
    return o->device_inputs ? AMP_INPUTS_DEVICE : o->pinned_inputs ? AMP_INPUTS_PINNED : AMP_INPUTS_HOST;
}

static amp_status check_cuda(const amp_cuda_options *o, const amp_device_type *device, amp_error *err) {
    if (o->device_inputs && o->pinned_inputs)
        return amp_fail(
            err, AMP_INVALID_ARGUMENT,
            "device_inputs and pinned_inputs are both set: arrays are in one kind of memory; leave one at 0");
    if (inputs_in(o) && !(device->device_memory && device->device_memory->check_array))
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "%s_inputs: the device %s reads arrays of the host; take the device cuda, or leave it at 0",
                        o->device_inputs ? "device" : "pinned", device->name);
    if (o->index < 0) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_cuda_options: index %d: counts from 0", o->index);
    if (o->products < 0 || o->products > AMP_PRODUCTS_FASTEST)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_cuda_options: products %d: give one of AMP_PRODUCTS_*",
                        o->products);
    if (!(o->products_seconds >= 0 || o->products_seconds < 0))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_cuda_options: products_seconds is not a number");
    if (o->choices && o->products == AMP_PRODUCTS_OWN)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "amp_cuda_options: choices %s: with AMP_PRODUCTS_OWN nothing is chosen; leave one out",
                        o->choices);
    if ((o->products || o->choices || o->products_seconds != 0) && strcmp(device->name, "cuda") != 0)
        return amp_fail(
            err, AMP_INVALID_ARGUMENT,
            "amp_cuda_options: products %d: who makes products is chosen on the device cuda, and this is %s",
            o->products, device->name);
    return AMP_OK;
}

amp_status amp_device_type_find(const char *name, const amp_device_type **out, amp_error *err) {
    if (!name) name = amp_device_cpu.name;
    for (const amp_device_type *const *type = amp_device_types; *type; type++)
        if (!strcmp((*type)->name, name)) return *out = *type, AMP_OK;
    return amp_fail(err, AMP_NOT_FOUND, "device %s: this build has cpu, cuda and null", name);
}

static amp_status check_options(const amp_session_options *o, const amp_device_type **device, amp_error *err) {
    if (o->capacity.n < 1 || o->capacity.n > AMP_BATCH_LIMIT)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "capacity %lld: must be from 1 to %d", (long long)o->capacity.n,
                        AMP_BATCH_LIMIT);
    if (o->threads < 0 || o->threads > MAX_THREADS)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "threads %d: must be from 0 (one per processor) to %d", o->threads,
                        MAX_THREADS);
    return amp_device_type_find(o->device, device, err);
}

/* What a session on a device with memory of its own has code for from its creation on: steps, or inference.  Of any
 * other program, and for another n, the first run loads what is missing. */
static bool is_made_for(const amp_session *s, int program) {
    switch (program) {
    case AMP_RUN_FIGURES: return false;
    case AMP_RUN_INFER: return !s->training;
    case AMP_RUN_EVAL: return !s->training && !s->programs[AMP_RUN_INFER].program;
    case AMP_RUN_METRICS: return s->training;
    default: return true;
    }
}

/* |all|: every size that a call may have is to find what it needs; else the largest t is. */
static amp_status reserve_program(amp_session *s, const amp_program *p, bool all, amp_error *err) {
    const amp_capacity capacity = capacity_of(s);
    for (amp_sizes at = {0}; amp_capacity_next(&capacity, &at);) {
        AMP_TRY(s->device->type->reserve(s->device, p, at, err));
        if (!all) break;
    }
    return AMP_OK;
}

static amp_status reserve(amp_session *s, amp_error *err) {
    const bool all = !amp_session_has_device_memory(s);
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) {
        const amp_program *p = s->programs[i].program;
        if (p && (all || is_made_for(s, i))) AMP_TRY(reserve_program(s, p, all, err));
    }
    return AMP_OK;
}

static amp_status open_device(amp_session *s, const Request *r, amp_error *err) {
    const amp_device_type *type = r->type;
    amp_device_options options = {
        .threads = r->o.threads, .log = &s->log, .model = s->model, .cpu = &r->cpu, .cuda = &r->cuda};
    AMP_TRY(type->create(&options, &s->memory.allocator, &s->device, err));
    if (s->published) return AMP_OK;
    s->params_user = (amp_params_user){.trains = s->training, .capacity = s->capacity.n};
    return amp_params_enter(s->params, &s->params_user,
                            type->device_memory ? type->device_memory->memory(s->device) : NULL, s->model, err);
}

static amp_status join_ranks(amp_session *s, const Request *r, amp_error *err) {
    const amp_session_options *o = &r->o;
    const amp_ranked_session session = {.session = s,
                                        .model = s->model,
                                        .params = s->params,
                                        .device = s->device,
                                        .memory = &s->memory,
                                        .states = &s->states,
                                        .programs = s->programs,
                                        .program_count = AMP_SESSION_PROGRAMS,
                                        .capacity = s->capacity.n,
                                        .seed = o->seed,
                                        .products = r->cuda.products == AMP_PRODUCTS_FASTEST ? "fastest" : "same bits",
                                        .keeps_gradients = s->keeps_gradients,
                                        .sizes_only = s->sizes_only,
                                        .change_states = amp_session_change_states};
    return amp_ranks_join(&session, o->comm, &s->ranks, err);
}

static void set_counter(const amp_session *s, uint32_t counter, double value) {
    const int32_t i = amp_model_counter(s->model, counter);
    if (i >= 0 && s->states.host[i]) amp_store_element(s->states.host[i], s->model->states[i].storage, 0, value);
}

/* Of models that can be trained by several ranks, also where there is one. */
static amp_status set_counters(const amp_session *s, amp_error *err) {
    if (amp_model_counter(s->model, AMP_COUNTER_FULL_BATCH) < 0) return AMP_OK;
    set_counter(s, AMP_COUNTER_RANKS, s->ranks ? s->ranks->comm->size : 1);
    set_counter(s, AMP_COUNTER_FIRST_MICRO, (double)amp_session_first_micro(s));
    set_counter(s, AMP_COUNTER_FULL_BATCH, (double)s->capacity.n);
    return amp_session_write_scalars(s, err);
}

static amp_status fill(amp_session *s, const Request *r, amp_error *err) {
    const amp_session_options *o = &r->o;
    AMP_TRY(open_device(s, r, err));
    if (o->comm && o->comm->size > 1 && s->training && s->device->type->computes) AMP_TRY(join_ranks(s, r, err));
    AMP_TRY(make_states(s, o->seed, err));
    AMP_TRY(amp_session_make_readback(s, err));
    AMP_TRY(make_programs(s, r, err));
    AMP_TRY(amp_session_make_selection(s, err));
    if (amp_session_has_device_memory(s))
        AMP_TRY(amp_session_make_device_memory(s, o->seed, r->inspect.separate_buffers, err));
    AMP_TRY(reserve(s, err));
    if (s->training && !s->sizes_only) AMP_TRY(set_counters(s, err));
    if (s->ranks) AMP_TRY(amp_ranks_meet(s->ranks, err));
    AMP_TRY(amp_session_agree_on_choices(s, err));
    return r->inspect.keep_values && s->training ? amp_session_list_values(s, err) : AMP_OK;
}

static amp_status read_request(amp_model *model, const amp_session_options *options, Request *r, amp_error *err) {
    AMP_TRY(amp_options_read(&r->o, sizeof r->o, options, "amp_session_options", err));
    AMP_TRY(amp_options_read(&r->cpu, sizeof r->cpu, r->o.cpu, "amp_cpu_options", err));
    AMP_TRY(amp_options_read(&r->cuda, sizeof r->cuda, r->o.cuda, "amp_cuda_options", err));
    AMP_TRY(amp_options_read(&r->inspect, sizeof r->inspect, r->o.inspect, "amp_inspect_options", err));
    if (!r->o.capacity.n) r->o.capacity.n = 1;
    AMP_TRY(check_options(&r->o, &r->type, err));
    AMP_TRY(check_cuda(&r->cuda, r->type, err));
    AMP_TRY(amp_model_for(model, r->type->name, &r->target, err));
    if (!r->o.capacity.t) r->o.capacity.t = model->desc.length_most;
    AMP_TRY(amp_length_check(model, r->o.capacity.t, 1, model->desc.length_most, "amp_session_options: capacity", err));
    AMP_TRY(amp_tokens_check(model, r->o.tokens, "amp_session_options", err));
    return check_program(&r->o, r->target, err);
}

static amp_status check_params(const Request *r, const amp_model *model, const amp_params *params, amp_error *err) {
    AMP_TRY(amp_params_check_model(params, model, err));
    if (r->o.published) return amp_session_check_published(params, model, r->type, err);
    if (params->lent)
        return amp_fail(err, AMP_WRONG_STATE,
                        "%s: a session has shares of the masters (zero1); create this one before it, or with published "
                        "= 1",
                        model->desc.name);
    return amp_params_check_masters(params, "amp_session_create", err);
}

static amp_status make(const Request *r, amp_params *params, bool sizes_only, amp_session **out, amp_error *err) {
    const amp_session_options *o = &r->o;
    const amp_allocator *allocator = &params->model->allocator;
    amp_session *s = amp_alloc_zeroed(allocator, sizeof *s);
    if (!s) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for a session", r->target->desc.name);
    amp_counted_allocator_init(&s->memory, allocator);
    atomic_init(&s->references, 1);
    amp_model_retain(s->model = r->target);
    amp_params_retain(s->params = params);
    s->capacity = o->capacity;
    s->tokens = o->tokens;
    s->log = (amp_log){o->log, o->log_user};
    s->look.at_all = r->inspect.looks_at_all != 0;
    s->published = o->published != 0;
    s->inputs_in = inputs_in(&r->cuda);
    s->training = amp_model_trains(s->model) && !o->program && !o->published;
    s->keeps_gradients = r->inspect.keep_values || r->inspect.grad_norm;
    s->sizes_only = sizes_only;
    amp_status status = fill(s, r, err);
    if (status) amp_session_release(s);
    else *out = s;
    return status;
}

amp_status amp_session_create(amp_model *model, amp_params *params, const amp_session_options *options,
                              amp_session **out, amp_error *err) {
    Request r;
    if (out) *out = NULL;
    if (!model || !params || !out)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_create: model, params or out is NULL");
    AMP_TRY(read_request(model, options, &r, err));
    AMP_TRY(check_params(&r, model, params, err));
    return make(&r, params, false, out, err);
}

/* |params| NULL: fresh ones; only their sizes if |sizes_only|. */
static amp_status params_to_plan(const Request *r, amp_model *model, amp_params *params, bool sizes_only,
                                 amp_params **out, amp_error *err) {
    const amp_params_options zeros = {.struct_size = sizeof zeros, .zeros = 1};
    if (!params && sizes_only) return amp_params_create_sizes(model, out, err);
    if (!params) AMP_TRY(amp_params_create(model, &zeros, &params, err));
    else amp_params_retain(params);
    amp_status status = check_params(r, model, params, err);
    if (status) amp_params_release(params);
    else *out = params;
    return status;
}

amp_status amp_session_plan(amp_model *model, amp_params *params, const amp_session_options *options,
                            amp_memory_info *out, amp_error *err) {
    Request r;
    amp_session *s;
    amp_params *used;
    if (out) *out = (amp_memory_info){0};
    if (!model || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_plan: model or out is NULL");
    AMP_TRY(read_request(model, options, &r, err));
    const bool sizes_only = !r.type->device_memory && !r.o.published;
    AMP_TRY(params_to_plan(&r, model, params, sizes_only, &used, err));
    amp_status status = make(&r, used, sizes_only, &s, err);
    amp_params_release(used);
    if (status) return status;
    amp_session_get_memory(s, out);
    amp_session_release(s);
    return AMP_OK;
}

void amp_session_retain(amp_session *session) {
    if (session) atomic_fetch_add_explicit(&session->references, 1, memory_order_relaxed);
}

void amp_session_release(amp_session *s) {
    if (!s || atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) != 1) return;
    amp_model *model = s->model;
    const amp_allocator *a = &s->memory.allocator;
    bool device_memory = amp_session_has_device_memory(s);
    if (device_memory) s->device->type->device_memory->settle(s->device);
    amp_session_free_values(s);
    if (s->ranks) amp_ranks_leave(s->ranks);
    amp_session_free_selection(s);
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) amp_bound_program_free(&s->programs[i], a);
    amp_session_free_readback(s);
    amp_free(a, s->states.bound, list_bytes(s));
    if (device_memory) {
        amp_free(a, s->states.host, list_bytes(s));
        amp_free(a, s->states.held, list_bytes(s));
    } else {
        amp_arena_free(a, s->arena.memory, s->arena.bytes);
        amp_states_free(model, s->states.blocks, s->states.held, a);
    }
    amp_free(a, s->states.blocks, s->states.blocks ? (size_t)model->state_count * sizeof *s->states.blocks : 0);
    amp_device_arena_free(&s->device_arena, a);
    if (s->device) s->device->type->destroy(s->device);
    amp_params_leave(s->params, &s->params_user);
    amp_published_drop(s->params->published, s->version);
    amp_params_release(s->params);
    amp_free(&model->allocator, s, sizeof *s);
    amp_model_release(model);
}
