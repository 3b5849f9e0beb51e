/* session_device_memory.c: where everything of a session is in device memory. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"
#include "runtime/session/session.h"

/* ---- which states ------------------------------------------------------------------------------------------------ */

static bool is_scalar(const amp_model_state *s) { return s->role == AMP_STATE_COUNTER || s->role == AMP_STATE_SCALER; }

/* The program only reads them. */
static bool is_of_header(const amp_model_state *s) {
    return s->counter == AMP_COUNTER_MICRO || s->counter == AMP_COUNTER_SEED;
}

/* ---- scalars ----------------------------------------------------------------------------------------------------- */

static bool is_scalar_output(const amp_model_buffer *b) {
    return b->kind == AMP_BUFFER_OUTPUT && !amp_dim_varies(&b->rows) && !amp_dim_varies(&b->cols) &&
           b->rows.mul * b->cols.mul == 1;
}

static size_t next_scalar(size_t *at) {
    size_t here = *at;
    *at += AMP_DEVICE_MEMORY_ALIGN;
    return here;
}

static void plan_states(amp_session *s, size_t *scalar_at) {
    for (int32_t i = 0; i < s->model->state_count; i++) {
        const amp_model_state *state = &s->model->states[i];
        scalar_at[i] = AMP_NO_SCALAR;
        if (!amp_session_holds(s, i) || !is_scalar(state)) continue;
        scalar_at[i] = next_scalar(is_of_header(state) ? &s->readback->header_bytes : &s->readback->state_bytes);
    }
}

/* The host reads one of them. */
static bool has_read_flag(const amp_program *p) {
    for (int32_t i = 0; i < p->result_count; i++)
        if (p->buffers[p->results[i].buffer].kind == AMP_BUFFER_FLAG) return true;
    return false;
}

/* Together, so that one fill clears them.  There may be one for each gradient. */
static void plan_flags(const amp_bound_program *b, size_t *at) {
    for (int32_t i = 0; i < b->program->buffer_count; i++)
        if (b->program->buffers[i].kind == AMP_BUFFER_FLAG) b->scalar_at[i] = next_scalar(at);
}

static void plan_program(amp_session *s, amp_bound_program *b, const size_t *scalar_at) {
    const amp_program *p = b->program;
    for (int32_t i = 0; p && i < p->buffer_count; i++) b->scalar_at[i] = AMP_NO_SCALAR;
    if (p && has_read_flag(p)) plan_flags(b, &s->readback->bytes);
    for (int32_t i = 0; p && i < p->buffer_count; i++)
        if (is_scalar_output(&p->buffers[i])) b->scalar_at[i] = next_scalar(&s->readback->bytes);
    for (int32_t i = 0; p && i < p->buffer_count; i++) {
        const amp_model_buffer *buffer = &p->buffers[i];
        if (buffer->kind == AMP_BUFFER_STATE && !is_of_header(&s->model->states[buffer->index]))
            b->scalar_at[i] = scalar_at[buffer->index];
    }
}

static size_t scalars_bytes(const amp_session *s) { return s->readback->bytes + s->readback->header_bytes; }

static amp_status plan_scalars(amp_session *s, size_t *scalar_at, amp_error *err) {
    plan_states(s, scalar_at);
    s->readback->bytes = s->readback->state_bytes;
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) plan_program(s, &s->programs[i], scalar_at);
    if (s->inputs_in == AMP_INPUTS_DEVICE) {
        const size_t faults = (size_t)s->model->all_input_count * sizeof(amp_index_fault);
        s->readback->faults_at = s->readback->bytes;
        s->readback->bytes +=
            (faults + AMP_DEVICE_MEMORY_ALIGN - 1) / AMP_DEVICE_MEMORY_ALIGN * AMP_DEVICE_MEMORY_ALIGN;
    }
    s->readback->block_bytes = s->readback->bytes;
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) {
        const amp_program *p = s->programs[i].program;
        if (p && !has_read_flag(p)) plan_flags(&s->programs[i], &s->readback->block_bytes);
    }
    s->readback->host = amp_alloc_zeroed(&s->memory.allocator, scalars_bytes(s));
    if (!s->readback->host)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its scalars", s->model->desc.name);
    s->readback->header = s->readback->host + s->readback->bytes;
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) s->programs[i].scalars = s->readback->host;
    for (int32_t i = 0; i < s->model->state_count; i++) {
        bool in_header = is_of_header(&s->model->states[i]);
        if (scalar_at[i] != AMP_NO_SCALAR)
            s->states.host[i] = (in_header ? s->readback->header : s->readback->host) + scalar_at[i];
    }
    return AMP_OK;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* In a separate allocation a buffer ends where its last element does, so that sanitizers see any overrun. */
static size_t room_of(const amp_session *s, const amp_bound_program *b, int32_t i) {
    const amp_model_buffer *buffer = &b->program->buffers[i];
    if (!s->device_arena.separate) return b->plan.bytes[i];
    int64_t most = 0;
    for (amp_sizes at = {0}; amp_capacity_next(&b->options.capacity, &at);) {
        const int64_t elements = amp_model_dim_at(&buffer->rows, at) * amp_model_dim_at(&buffer->cols, at);
        most = elements > most ? elements : most;
    }
    return (size_t)most * amp_storage_size(buffer->storage);
}

static amp_state_block block_of(const amp_session *s, int32_t state) {
    if (s->states.blocks) return s->states.blocks[state];
    if (s->model->blocks) return s->model->blocks[state];
    return (amp_state_block){state, 0, amp_state_bytes(&s->model->states[state])};
}

static bool has_place(const amp_session *s, int32_t state) {
    return amp_session_holds(s, state) && !is_scalar(&s->model->states[state]);
}

/* The states of one message are one block. */
static void place_states(amp_session *s) {
    for (int32_t i = 0; i < s->model->state_count; i++) {
        const amp_state_block b = block_of(s, i);
        if (has_place(s, i) && b.first == i) s->states.held[i] = amp_device_arena_take(&s->device_arena, b.bytes);
    }
    for (int32_t i = 0; i < s->model->state_count; i++) {
        const amp_state_block b = block_of(s, i);
        char *block = s->states.held[b.first];
        if (has_place(s, i) && block) s->states.held[i] = block + b.at;
    }
}

static void place_temporaries(amp_session *s, amp_bound_program *b) {
    bool each = b->options.sharing == AMP_OWN_ALLOCATIONS;
    bool own = b->options.sharing == AMP_OWN_ARENA || b->options.sharing == AMP_KEEP_RESULTS;
    char *arena = own ? amp_device_arena_take(&s->device_arena, b->plan.arena) : NULL;
    for (int32_t i = 0; i < b->program->buffer_count; i++) {
        if (b->program->buffers[i].kind != AMP_BUFFER_TEMP) continue;
        if (each && !b->program->buffers[i].renamed)
            b->buffers[i] = amp_device_arena_take(&s->device_arena, room_of(s, b, i));
        else if (arena) b->buffers[i] = arena + b->plan.offset[i];
    }
    for (int32_t i = 0; each && i < b->program->buffer_count; i++) {
        const amp_model_buffer *buffer = &b->program->buffers[i];
        if (buffer->renamed) b->buffers[i] = b->buffers[buffer->place - 1];
    }
}

/* Twice: for kernels, and as they are when a run begins that is looked at.  Kernels of CUDA count; others would write
 * what they round, which takes more memory than is kept for it. */
static void place_looks(amp_session *s, amp_bound_program *b) {
    b->look_count = 0;
    for (int32_t i = 0; b->program->cuda_kernels && i < b->program->buffer_count; i++)
        if (b->program->buffers[i].kind == AMP_BUFFER_LOOK) b->look_count++;
    const size_t bytes = 2 * (size_t)b->look_count * sizeof *b->looks;
    amp_model_look_counts *at = b->looks = bytes ? amp_device_arena_take(&s->device_arena, bytes) : NULL;
    b->kept_bytes += bytes;
    for (int32_t i = 0; at && i < b->program->buffer_count; i++)
        if (b->program->buffers[i].kind == AMP_BUFFER_LOOK) b->buffers[i] = at++;
}

static void place_program(amp_session *s, amp_bound_program *b) {
    if (!b->program) return;
    b->kept_bytes = 0;
    for (int32_t i = 0; i < b->program->buffer_count; i++) {
        uint32_t kind = b->program->buffers[i].kind;
        bool kept = kind == AMP_BUFFER_OUTPUT || (kind == AMP_BUFFER_WATCH && b->options.watch);
        if (!kept || b->scalar_at[i] != AMP_NO_SCALAR) continue;
        b->buffers[i] = amp_device_arena_take(&s->device_arena, room_of(s, b, i));
        b->kept_bytes += room_of(s, b, i);
    }
    place_looks(s, b);
    place_temporaries(s, b);
}

/* Called twice: see device_memory.h. */
static void place_all(amp_session *s) {
    place_states(s);
    s->readback->block = amp_device_arena_take(&s->device_arena, s->readback->block_bytes);
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) place_program(s, &s->programs[i]);
    s->arena.memory = amp_device_arena_take(&s->device_arena, s->arena.bytes);
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) {
        amp_bound_program *b = &s->programs[i];
        if (s->arena.memory && amp_bound_program_arena_bytes(b)) amp_bound_program_use_arena(b, s->arena.memory);
    }
}

/* ---- addresses of states and scalars in programs ----------------------------------------------------------------- */

static void bind_scalars(amp_session *s, amp_bound_program *b) {
    size_t first = SIZE_MAX;
    for (int32_t i = 0; b->program && i < b->program->buffer_count; i++) {
        const amp_model_buffer *buffer = &b->program->buffers[i];
        if (buffer->kind == AMP_BUFFER_STATE) b->buffers[i] = s->states.bound[buffer->index];
        if (b->scalar_at[i] == AMP_NO_SCALAR) continue;
        b->buffers[i] = s->readback->block + b->scalar_at[i];
        if (buffer->kind != AMP_BUFFER_FLAG) continue;
        if (b->scalar_at[i] < first) first = b->scalar_at[i];
        b->flag_bytes += AMP_DEVICE_MEMORY_ALIGN;
    }
    if (b->flag_bytes) b->flags = s->readback->block + first;
}

/* Of a run whose arrays are in that memory or nearer to the host. */
static size_t input_bytes(const amp_session *s, amp_input_memory memory) {
    size_t most = 0;
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) {
        const amp_bound_program *b = &s->programs[i];
        size_t bytes = 0;
        if (amp_session_inputs_of(s, b) > memory) continue;
        for (int32_t j = 0; b->program && j < b->program->buffer_count; j++)
            if (b->program->buffers[j].kind == AMP_BUFFER_INPUT) bytes += b->plan.bytes[j];
        if (bytes > most) most = bytes;
    }
    return most;
}

/* At the capacity, by input of the model. */
static void measure_inputs(amp_session *s, size_t *bytes) {
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) {
        const amp_bound_program *b = &s->programs[i];
        for (int32_t j = 0; b->program && j < b->program->buffer_count; j++)
            if (b->program->buffers[j].kind == AMP_BUFFER_INPUT) bytes[b->program->buffers[j].index] = room_of(s, b, j);
    }
}

static amp_status reserve_inputs(amp_session *s, void **header, amp_error *err) {
    const amp_allocator *a = &s->memory.allocator;
    amp_input_room room = {.header = s->readback->header,
                           .header_bytes = s->readback->header_bytes,
                           .input_bytes = input_bytes(s, AMP_INPUTS_DEVICE),
                           .host_bytes = input_bytes(s, AMP_INPUTS_PINNED),
                           .staged_bytes = input_bytes(s, AMP_INPUTS_HOST),
                           .count = s->model->all_input_count};
    if (s->inputs_in == AMP_INPUTS_DEVICE) {
        room.inputs = s->model->inputs;
        room.faults = s->readback->block + s->readback->faults_at;
    }
    size_t list = (size_t)room.count * sizeof(size_t), *bytes = amp_alloc_zeroed(a, list);
    if (!bytes) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to list its inputs", s->model->desc.name);
    if (s->device_arena.separate) {
        measure_inputs(s, bytes);
        room.separate = bytes;
    }
    amp_status status = s->device->type->device_memory->reserve_inputs(s->device, &room, header, err);
    amp_free(a, bytes, list);
    return status;
}

static amp_status bind_all(amp_session *s, const size_t *scalar_at, amp_error *err) {
    const amp_device_memory_calls *calls = s->device->type->device_memory;
    void *header;
    AMP_TRY(reserve_inputs(s, &header, err));
    AMP_TRY(calls->reserve_readback(s->device, s->readback->block, s->readback->bytes, err));
    for (int32_t i = 0; i < s->model->state_count; i++) {
        char *base = is_of_header(&s->model->states[i]) ? header : s->readback->block;
        s->states.bound[i] = scalar_at[i] != AMP_NO_SCALAR ? base + scalar_at[i]
                             : s->states.held[i]           ? s->states.held[i]
                                                           : amp_params_states(s->params, &s->params_user)[i];
    }
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) bind_scalars(s, &s->programs[i]);
    return AMP_OK;
}

/* ---- first values ------------------------------------------------------------------------------------------------ */

/* Bytes to copy: the first state of a block covers the whole block, padding included. */
static size_t bytes_from(const amp_session *s, int32_t state) {
    const amp_state_block b = block_of(s, state);
    return b.first == state ? b.bytes : amp_state_bytes(&s->model->states[state]);
}

static amp_status initialise(amp_session *s, uint64_t seed, float *rows, amp_error *err) {
    for (int32_t i = 0; i < s->model->state_count; i++) {
        const amp_model_state *state = &s->model->states[i];
        if (!amp_session_holds(s, i)) continue;
        amp_initialise(state, seed, rows);
        if (s->states.host[i]) amp_store_element(s->states.host[i], state->storage, 0, amp_initial_scalar(state));
        else if (!state->init && !amp_ranks_share_moment(s->ranks, i))
            AMP_TRY(
                s->device_arena.memory->type->clear(s->device_arena.memory, s->states.held[i], bytes_from(s, i), err));
        else AMP_TRY(amp_session_set_state(s, i, rows, err));
    }
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) AMP_TRY(amp_session_make_looks(s, &s->programs[i], err));
    int64_t *seed_state = amp_session_seed(s);
    if (seed_state) *seed_state = (int64_t)seed;
    if (s->readback->block_bytes)
        AMP_TRY(s->device_arena.memory->type->clear(s->device_arena.memory, s->readback->block,
                                                    s->readback->block_bytes, err));
    return amp_session_write_scalars(s, err);
}

static amp_status initialise_states(amp_session *s, uint64_t seed, amp_error *err) {
    size_t bytes = amp_states_largest(s->model) * sizeof(float);
    float *rows = amp_alloc_aligned(&s->memory.allocator, bytes, AMP_MEMORY_ALIGN);
    if (!rows) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to initialise its states", s->model->desc.name);
    amp_status status = initialise(s, seed, rows, err);
    amp_free_aligned(&s->memory.allocator, rows, bytes, AMP_MEMORY_ALIGN);
    return status;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static amp_status place(amp_session *s, size_t *scalar_at, uint64_t seed, bool separate, amp_error *err) {
    AMP_TRY(plan_scalars(s, scalar_at, err));
    amp_device_arena_begin(&s->device_arena, s->device->type->device_memory->memory(s->device), separate);
    place_all(s);
    AMP_TRY(amp_device_arena_allocate(&s->device_arena, &s->memory.allocator, err));
    place_all(s);
    AMP_TRY(amp_device_arena_end(&s->device_arena, err));
    AMP_TRY(bind_all(s, scalar_at, err));
    return initialise_states(s, seed, err);
}

amp_status amp_session_make_device_memory(amp_session *s, uint64_t seed, bool separate, amp_error *err) {
    const amp_allocator *a = &s->memory.allocator;
    size_t bytes = (size_t)s->model->state_count * sizeof(size_t);
    size_t *scalar_at = amp_alloc_zeroed(a, bytes);
    if (!scalar_at) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for a session", s->model->desc.name);
    amp_status status = place(s, scalar_at, seed, separate, err);
    amp_free(a, scalar_at, bytes);
    return status;
}
