/* look.c: looks at what ops round to f16, in steps and evaluations 1, 2, 4 .. 256 and each 500th, and says which make
 * infinities there or lose everything to zero: later ops may make finite numbers of both, and then no loss shows it.
 *
 * On the host the kernels of such a run write what they round, in f32, to memory that is there for this run alone, as
 * much as one kernel needs; it is counted after each.  On a device with memory of its own the kernels count it
 * themselves (codegen/cuda/prelude/look.cuh): the run is the same launches.  Nothing else changes, so the bits are
 * the same as in any other run. */
#include "runtime/session/session.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/matrix_layout.h"

enum { DOUBLES_UNTIL = 256, EACH = 500, FOUND_MOST = 8 };
static const uint32_t F16_KEPT_FROM = 0x33000001, F16_INFINITE_FROM = 0x477FF000, INFINITE = 0x7F800000;

typedef struct Found {
    int32_t buffer;
    int64_t count, infinite, lost; /* elements; of these, in f16 */
    float largest;
    bool all_lost; /* that are not zero */
} Found;

struct amp_looking { /* in one run */
    amp_bound_program *bound;
    size_t bytes; /* of all, with the memory that kernels write */
    int32_t found_count;
    Found found[FOUND_MOST];
    _Alignas(AMP_MEMORY_ALIGN) char memory[]; /* on a device: its counts */
};

/* ---- what a kernel has rounded ----------------------------------------------------------------------------------- */

static void tally(const amp_number_bins *bins, Found *f) {
#define AS_ELEMENT(bound) bound,
    static const uint32_t bounds[] = {AMP_BIN_BOUNDS(AS_ELEMENT)};
#undef AS_ELEMENT
    uint32_t start = 0, bound = 0;
    int64_t numbers = 0;
    for (int bin = 0; bin < AMP_NUMBER_BINS; bin++) {
        const bool is_finite = start < INFINITE;
        f->count += bins->count[bin];
        if (start && is_finite) numbers += bins->count[bin];
        if (start && start < F16_KEPT_FROM) f->lost += bins->count[bin];
        if (start >= F16_INFINITE_FROM && is_finite) f->infinite += bins->count[bin];
        const uint32_t power = ((start >> 23) + 1) << 23;
        start = bound < sizeof bounds / sizeof *bounds && bounds[bound] < power ? bounds[bound++] : power;
    }
    memcpy(&f->largest, &bins->largest, sizeof f->largest);
    f->all_lost = f->lost == numbers;
}

/* One zero too many is a fault where something is divided by it; elsewhere all of them have to be. */
static bool is_fault(const amp_model_buffer *b, const Found *f) {
    return f->infinite || (f->lost && (b->place || f->all_lost));
}

static void note(amp_looking *l, const Found *f) {
    if (is_fault(&l->bound->program->buffers[f->buffer], f) && l->found_count < FOUND_MOST)
        l->found[l->found_count++] = *f;
}

static void look_at(const amp_session *s, amp_looking *l, int32_t buffer, amp_sizes sizes) {
    const amp_model_buffer *b = &l->bound->program->buffers[buffer];
    const amp_counted what = {.memory = l->bound->buffers[buffer],
                              .layout = b->layout,
                              .storage = b->storage,
                              .rows = amp_model_dim_at(&b->rows, sizes),
                              .cols = amp_model_dim_at(&b->cols, sizes)};
    amp_number_bins bins = {0};
    amp_error ignored;
    Found f = {.buffer = buffer};
    if (amp_session_count(s, b->name, &what, &bins, &ignored)) return;
    tally(&bins, &f);
    note(l, &f);
}

bool amp_session_looks_at_kernels(const amp_session *s) { return s->look.now && !amp_session_has_device_memory(s); }

void amp_session_look(const amp_session *s, const amp_bound_program *bound, int32_t kernel, amp_sizes sizes) {
    const amp_model_kernel *k = &bound->program->kernels[kernel];
    for (uint32_t i = 0; i < k->operand_count; i++)
        if (bound->program->buffers[k->operands[i]].kind == AMP_BUFFER_LOOK)
            look_at(s, s->look.now, (int32_t)k->operands[i], sizes);
}

/* ---- what a device has counted ----------------------------------------------------------------------------------- */

static const amp_device_memory_calls *calls_of(const amp_session *s) { return s->device->type->device_memory; }

static size_t counts_bytes(const amp_bound_program *b) { return (size_t)b->look_count * sizeof(amp_model_look_counts); }

amp_status amp_session_make_looks(const amp_session *s, const amp_bound_program *b, amp_error *err) {
    const size_t bytes = counts_bytes(b);
    if (!bytes) return AMP_OK;
    amp_model_look_counts *counts = amp_alloc_zeroed(&s->memory.allocator, bytes);
    if (!counts) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for what is looked at", b->program->name);
    amp_status status = calls_of(s)->write(s->device, b->looks, counts, bytes, err);
    for (int32_t i = 0; i < b->look_count; i++) counts[i].on = 1;
    if (!status) status = calls_of(s)->write(s->device, b->looks + b->look_count, counts, bytes, err);
    amp_free(&s->memory.allocator, counts, bytes);
    return status;
}

/* Runs that are not looked at leave it as it is: off. */
static amp_status turn_on(const amp_session *s, const amp_bound_program *b) {
    amp_error ignored;
    return calls_of(s)->copy(s->device, b->looks, b->looks + b->look_count, counts_bytes(b), &ignored);
}

static void note_counts(amp_looking *l, amp_sizes sizes) {
    const amp_model_look_counts *counts = (const void *)l->memory;
    for (int32_t i = 0, look = 0; i < l->bound->program->buffer_count; i++) {
        const amp_model_buffer *b = &l->bound->program->buffers[i];
        if (b->kind != AMP_BUFFER_LOOK) continue;
        const amp_model_look_counts *c = &counts[look++];
        Found f = {.buffer = i,
                   .count = amp_buffer_elements(b, sizes),
                   .infinite = (int64_t)c->infinite,
                   .lost = (int64_t)c->lost,
                   .all_lost = c->largest < F16_KEPT_FROM};
        memcpy(&f.largest, &c->largest, sizeof f.largest);
        note(l, &f);
    }
}

static void take_counts(const amp_session *s, amp_looking *l, amp_sizes sizes) {
    const size_t bytes = counts_bytes(l->bound);
    amp_error ignored;
    if (!calls_of(s)->read(s->device, l->memory, l->bound->looks, bytes, &ignored)) note_counts(l, sizes);
    (void)calls_of(s)->clear(s->device, l->bound->looks, bytes, &ignored);
}

/* ---- which runs -------------------------------------------------------------------------------------------------- */

static bool is_due(int64_t run) { return run <= DOUBLES_UNTIL ? !(run & (run - 1)) : run % EACH == 0; }

/* A step is looked at in all its micro-batches. */
static bool is_looked_at(amp_session *s, const amp_bound_program *b) {
    const int64_t index = b - s->programs, run = s->look.runs[index]++;
    if (index != AMP_RUN_TRAIN_STEP && index != AMP_RUN_EVAL && index != AMP_RUN_INFER) return false;
    if (!s->log.say || !s->training || !s->device->type->count_numbers) return false;
    return s->look.at_all || is_due((index == AMP_RUN_TRAIN_STEP ? run / s->model->accumulate : run) + 1);
}

static size_t bytes_of(const amp_model_buffer *b, amp_sizes sizes) {
    const size_t bytes =
        (size_t)(amp_model_dim_at(&b->rows, sizes) * amp_model_dim_at(&b->cols, sizes)) * sizeof(float);
    return (bytes / AMP_MEMORY_ALIGN + 1) * AMP_MEMORY_ALIGN;
}

/* Gives each its memory, from |memory|; NULL: takes it away.  How much the kernel with the most has. */
static size_t place(const amp_bound_program *b, char *memory, amp_sizes sizes) {
    size_t most = 0;
    for (int32_t i = 0; i < b->program->kernel_count; i++) {
        const amp_model_kernel *k = &b->program->kernels[i];
        size_t used = 0;
        for (uint32_t j = 0; j < k->operand_count; j++) {
            const amp_model_buffer *buffer = &b->program->buffers[k->operands[j]];
            if (buffer->kind != AMP_BUFFER_LOOK) continue;
            b->buffers[k->operands[j]] = memory ? memory + used : NULL;
            used += bytes_of(buffer, sizes);
        }
        if (used > most) most = used;
    }
    return most;
}

static void leave(amp_session *s) {
    amp_free_aligned(&s->memory.allocator, s->look.now, s->look.now->bytes, AMP_MEMORY_ALIGN);
    s->look.now = NULL;
}

void amp_session_begin_look(amp_session *s, amp_bound_program *b, amp_sizes sizes) {
    if (!is_looked_at(s, b)) return;
    const bool on_device = amp_session_has_device_memory(s);
    const size_t bytes = on_device ? counts_bytes(b) : place(b, NULL, sizes);
    amp_looking *l = bytes ? amp_alloc_zeroed_aligned(&s->memory.allocator, sizeof *l + bytes, AMP_MEMORY_ALIGN) : NULL;
    if (!l) return;
    l->bound = b;
    l->bytes = sizeof *l + bytes;
    s->look.now = l;
    if (!on_device) place(b, l->memory, sizes);
    else if (turn_on(s, b)) leave(s);
}

/* ---- saying it --------------------------------------------------------------------------------------------------- */

/* Once of each op. */
static bool was_said(amp_session *s, int32_t decision) {
    for (int32_t i = 0; i < s->look.said_count; i++)
        if (s->look.said[i] == decision) return true;
    if (s->look.said_count == AMP_LOOKS_SAID) return true;
    s->look.said[s->look.said_count++] = decision;
    return false;
}

static void say(amp_session *s, const amp_looking *l, const Found *f) {
    static const char *const what[AMP_SESSION_PROGRAMS] = {
        [AMP_RUN_TRAIN_STEP] = "step", [AMP_RUN_EVAL] = "evaluation", [AMP_RUN_INFER] = "inference"};
    const int64_t index = l->bound - s->programs, k = index == AMP_RUN_TRAIN_STEP ? s->model->accumulate : 1;
    const long long run = (long long)((s->look.runs[index] + k - 1) / k);
    const amp_model_buffer *b = &l->bound->program->buffers[f->buffer];
    const amp_model_decision *d = &s->model->decisions[b->index];
    const char *file = d->file ? d->file : s->model->desc.name;
    if (was_said(s, b->index)) return;
    if (f->infinite)
        amp_log_say(&s->log, AMP_LOG_NUMBERS,
                    "%s %lld: %s (%s, %s:%d) makes infinities in f16, whatever the loss is: %lld of %lld numbers are "
                    "above 65504, up to %.4g; in the precision block: \"%s\": f32",
                    what[index], run, d->path, d->op, file, d->line, (long long)f->infinite, (long long)f->count,
                    (double)f->largest, d->path);
    else
        amp_log_say(&s->log, AMP_LOG_NUMBERS,
                    "%s %lld: %s (%s, %s:%d) loses %s to zero in f16, whatever the loss is: %lld of %lld numbers are "
                    "at most 2^-25 and not zero; in the precision block: \"%s\": f32",
                    what[index], run, d->path, d->op, file, d->line,
                    f->all_lost ? "everything" : "what something is divided by", (long long)f->lost,
                    (long long)f->count, d->path);
}

void amp_session_end_look(amp_session *s, amp_sizes sizes, amp_status status) {
    amp_looking *l = s->look.now;
    if (!l) return;
    if (amp_session_has_device_memory(s)) take_counts(s, l, sizes);
    else place(l->bound, NULL, (amp_sizes){0});
    for (int32_t i = 0; i < l->found_count && !status; i++) say(s, l, &l->found[i]);
    leave(s);
}
