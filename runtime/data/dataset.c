/* dataset.c: amp_dataset: batches in a ring of slots, which a thread fills and the caller empties.
 *
 * Batch k since the thread was started is in slot k % slots.  The thread owns the slots of batches |filled| and later,
 * the caller those before; the caller gives slots back by raising |released|.  Each side sleeps on the word that the
 * other one changes, and neither holds a lock, so that a process that was forked finds none locked.
 */
#define _GNU_SOURCE /* syscall */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "amp/data.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/thread.h"
#include "runtime/model/model.h"

enum { ALIGNMENT = 64, DEFAULT_AHEAD = 2, AHEAD_LIMIT = 1024, STACK = 8 << 20 };

typedef struct Slot {
    void **arrays; /* by input */
    amp_sizes sizes;
    amp_status status;
    amp_error error;
} Slot;

struct amp_dataset {
    atomic_int references;
    amp_model *model;
    amp_dataset_options options;
    int32_t inputs, slots;
    size_t *bytes; /* of an array, by input */
    Slot *slot;
    int64_t position; /* the batch that is given next */
    bool started;     /* the thread, and not joined since */
    bool in_call;
    pid_t process; /* that the thread is in */
    pthread_t thread;
    int64_t first;                     /* batch 0 of the thread */
    atomic_llong filled, released;     /* since it was started */
    atomic_int filled_word, room_word; /* changed with |filled|, with |released| and |quit| */
    atomic_bool quit;
};

/* ---- filling ----------------------------------------------------------------------------------------------------- */

static const char *reason(const Slot *s) {
    return s->error.message[0] ? s->error.message : "the callback gave no reason";
}

/* What the callback says is checked, and its text gets the batch. */
static void check_filled(const amp_dataset *d, Slot *s, int64_t index) {
    amp_error said = {.code = s->status}, length;
    if (s->status < AMP_OK || s->status > AMP_PEER_FAILED)
        s->status = amp_fail(&said, AMP_INVALID_ARGUMENT, "batch %lld: %s (status %d, which amp_status does not have)",
                             (long long)index, reason(s), (int)s->status);
    else if (s->status) amp_fail(&said, s->status, "batch %lld: %s", (long long)index, reason(s));
    else if (s->sizes.n < 0 || s->sizes.n > d->options.capacity.n)
        s->status = amp_fail(&said, AMP_INVALID_ARGUMENT,
                             "batch %lld: the callback says that it has %lld samples; there is "
                             "room for %lld (capacity)",
                             (long long)index, (long long)s->sizes.n, (long long)d->options.capacity.n);
    else if (s->sizes.n && amp_length_check(d->model, s->sizes.t, 1, d->options.capacity.t, "the callback", &length))
        s->status = amp_fail(&said, AMP_INVALID_ARGUMENT, "batch %lld: %s", (long long)index, length.message);
    else if (d->options.tokens && s->sizes.n * s->sizes.t > d->options.tokens)
        s->status =
            amp_fail(&said, AMP_INVALID_ARGUMENT,
                     "batch %lld: the callback says that it has n * t = %lld * %lld; there is room for %lld "
                     "(tokens)",
                     (long long)index, (long long)s->sizes.n, (long long)s->sizes.t, (long long)d->options.tokens);
    s->error = said;
}

static void fill(const amp_dataset *d, Slot *s, int64_t index) {
    s->sizes = d->options.capacity;
    s->error = (amp_error){0};
    s->status = d->options.fill(d->options.user, index, s->arrays, d->options.capacity, &s->sizes, &s->error);
    check_filled(d, s, index);
}

/* False: the thread is to end. */
static bool wait_for_room(amp_dataset *d, long long batch) {
    for (;;) {
        int seen = atomic_load(&d->room_word);
        if (atomic_load(&d->quit)) return false;
        if (batch < atomic_load(&d->released) + d->slots) return true;
        amp_futex_wait(&d->room_word, seen);
    }
}

/* Ends after a failure and after the end of the data, too. */
static void *fill_ahead(void *dataset) {
    amp_dataset *d = dataset;
    bool more = true;
    for (long long batch = 0; more && wait_for_room(d, batch); batch++) {
        Slot *s = &d->slot[batch % d->slots];
        fill(d, s, d->first + batch);
        more = !s->status && s->sizes.n;
        atomic_store(&d->filled, batch + 1);
        atomic_fetch_add(&d->filled_word, 1);
        amp_futex_wake(&d->filled_word, 1);
    }
    return NULL;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void wake_thread(amp_dataset *d) {
    atomic_fetch_add(&d->room_word, 1);
    amp_futex_wake(&d->room_word, 1);
}

/* The thread of a parent process is not here. */
static void stop_thread(amp_dataset *d) {
    if (d->started && d->process == getpid()) {
        atomic_store(&d->quit, true);
        wake_thread(d);
        pthread_join(d->thread, NULL);
    }
    d->started = false;
}

static amp_status start_thread(amp_dataset *d, amp_error *err) {
    d->process = getpid();
    d->first = d->position;
    atomic_store(&d->filled, 0);
    atomic_store(&d->released, 0);
    atomic_store(&d->quit, false);
    int failed = amp_thread_start(&d->thread, STACK, fill_ahead, d);
    if (failed)
        return amp_fail_errno(err, AMP_UNSUPPORTED, failed,
                              "a thread that fills batches could not be started; ahead = -1 needs none");
    d->started = true;
    return AMP_OK;
}

/* Not called in a child process by a thread that the parent had in another call. */
static amp_status check_process(amp_dataset *d, amp_error *err) {
    if (!d->started || d->process == getpid()) return AMP_OK;
    if (d->in_call)
        return amp_fail(err, AMP_WRONG_STATE,
                        "the process was forked while another thread was in a call of this dataset: make a new one in "
                        "the child");
    d->started = false;
    return AMP_OK;
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

/* Gives back the slot of the batch before, and waits for this one's. */
static amp_status take_filled(amp_dataset *d, const Slot **out, amp_error *err) {
    if (!d->started) AMP_TRY(start_thread(d, err));
    long long batch = d->position - d->first;
    atomic_store(&d->released, batch);
    wake_thread(d);
    for (;;) {
        int seen = atomic_load(&d->filled_word);
        if (atomic_load(&d->filled) > batch) break;
        amp_futex_wait(&d->filled_word, seen);
    }
    *out = &d->slot[batch % d->slots];
    return AMP_OK;
}

static amp_status take(amp_dataset *d, const Slot **out, amp_error *err) {
    if (d->options.ahead >= 0) return take_filled(d, out, err);
    fill(d, &d->slot[0], d->position);
    *out = &d->slot[0];
    return AMP_OK;
}

static amp_status next(amp_dataset *d, const void *const **inputs, amp_sizes *sizes, amp_error *err) {
    const Slot *s = NULL;
    AMP_TRY(take(d, &s, err));
    if (s->status || !s->sizes.n) stop_thread(d); /* it has ended: this batch is asked for again */
    if (s->status) return amp_fail(err, s->status, "%s", s->error.message);
    if (!s->sizes.n) return AMP_OK;
    *inputs = (const void *const *)s->arrays;
    *sizes = s->sizes;
    d->position++;
    return AMP_OK;
}

amp_status amp_dataset_next(amp_dataset *dataset, const void *const **inputs, amp_sizes *sizes, amp_error *err) {
    if (!dataset || !inputs || !sizes)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_dataset_next: dataset, inputs or sizes is NULL");
    *inputs = NULL;
    *sizes = (amp_sizes){0};
    AMP_TRY(check_process(dataset, err));
    dataset->in_call = true;
    amp_status status = next(dataset, inputs, sizes, err);
    dataset->in_call = false;
    return status;
}

amp_status amp_dataset_seek(amp_dataset *dataset, int64_t index, amp_error *err) {
    if (!dataset) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_dataset_seek: dataset is NULL");
    if (index < 0) return amp_fail(err, AMP_INVALID_ARGUMENT, "batch %lld: they are counted from 0", (long long)index);
    AMP_TRY(check_process(dataset, err));
    dataset->in_call = true;
    stop_thread(dataset);
    dataset->position = index;
    dataset->in_call = false;
    return AMP_OK;
}

int64_t amp_dataset_position(const amp_dataset *dataset) { return dataset ? dataset->position : 0; }

/* ---- making ------------------------------------------------------------------------------------------------------ */

static amp_status measure_input(const amp_dataset *d, int32_t i, amp_sizes sizes, size_t *most, amp_error *err) {
    amp_tensor_info info;
    AMP_TRY(amp_model_input_at(d->model, i, sizes, &info, err));
    size_t bytes = amp_dtype_size(info.dtype);
    for (int32_t k = 0; k < info.rank; k++)
        if (!amp_size_mul(bytes, (size_t)info.dims[k], &bytes))
            return amp_fail(err, AMP_OUT_OF_MEMORY, "batches of %lld samples of %s are too large",
                            (long long)d->options.capacity.n, info.name);
    if (bytes > *most) *most = bytes;
    return AMP_OK;
}

static amp_status measure_inputs(amp_dataset *d, amp_error *err) {
    const amp_capacity capacity = {d->options.capacity, d->options.tokens, d->model->desc.length_unit};
    for (int32_t i = 0; i < d->inputs; i++)
        for (amp_sizes at = {0}; amp_capacity_next(&capacity, &at);)
            AMP_TRY(measure_input(d, i, at, &d->bytes[i], err));
    return AMP_OK;
}

static amp_status allocate(amp_dataset *d, amp_error *err) {
    const amp_allocator *a = &d->model->allocator;
    d->bytes = amp_alloc_zeroed(a, (size_t)d->inputs * sizeof *d->bytes);
    d->slot = amp_alloc_zeroed(a, (size_t)d->slots * sizeof *d->slot);
    if (d->bytes && d->slot) AMP_TRY(measure_inputs(d, err));
    bool there = d->bytes && d->slot;
    for (int32_t i = 0; there && i < d->slots; i++) {
        d->slot[i].arrays = amp_alloc_zeroed(a, (size_t)d->inputs * sizeof(void *));
        there = d->slot[i].arrays != NULL;
        for (int32_t k = 0; there && k < d->inputs; k++)
            there = (d->slot[i].arrays[k] = amp_alloc_zeroed_aligned(a, d->bytes[k], ALIGNMENT)) != NULL;
    }
    if (there) return AMP_OK;
    return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for %d batches of %lld samples; ask for fewer (capacity, ahead)",
                    d->slots, (long long)d->options.capacity.n);
}

static amp_status check_options(const amp_model *model, amp_dataset_options *o, amp_error *err) {
    if (!o->fill)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_dataset_create: options, or the function fill in it, is NULL");
    if (!o->capacity.t) o->capacity.t = model->desc.length_most;
    AMP_TRY(amp_length_check(model, o->capacity.t, 1, model->desc.length_most, "amp_dataset_options: capacity", err));
    AMP_TRY(amp_tokens_check(model, o->tokens, "amp_dataset_options", err));
    AMP_TRY(amp_program_check(o->program, err));
    if (!o->capacity.n) o->capacity.n = 1;
    if (!o->ahead) o->ahead = DEFAULT_AHEAD;
    if (o->capacity.n < 0 || o->capacity.n > AMP_BATCH_LIMIT)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "capacity is %lld; it must be from 1 to %d",
                        (long long)o->capacity.n, AMP_BATCH_LIMIT);
    if (o->ahead < -1 || o->ahead > AHEAD_LIMIT)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "ahead is %d; it must be from 1 to %d, 0 (%d) or -1 (none)",
                        o->ahead, AHEAD_LIMIT, DEFAULT_AHEAD);
    if (o->first < 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "first is %lld; batches are counted from 0", (long long)o->first);
    return AMP_OK;
}

amp_status amp_dataset_create(amp_model *model, const amp_dataset_options *options, amp_dataset **out, amp_error *err) {
    amp_dataset_options o;
    if (out) *out = NULL;
    if (!model || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_dataset_create: model or out is NULL");
    AMP_TRY(amp_options_read(&o, sizeof o, options, "amp_dataset_options", err));
    AMP_TRY(check_options(model, &o, err));
    amp_dataset *d = amp_alloc_zeroed(&model->allocator, sizeof *d);
    if (!d) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for a dataset");
    atomic_init(&d->references, 1);
    d->model = model;
    amp_model_retain(model);
    d->options = o;
    d->position = o.first;
    d->inputs = o.program ? model->model_input_count : model->input_count;
    d->slots = o.ahead < 0 ? 1 : o.ahead + 1;
    amp_status status = allocate(d, err);
    if (status) amp_dataset_release(d);
    else *out = d;
    return status;
}

void amp_dataset_retain(amp_dataset *dataset) {
    if (dataset) atomic_fetch_add_explicit(&dataset->references, 1, memory_order_relaxed);
}

static void free_slot(const amp_dataset *d, const Slot *s) {
    const amp_allocator *a = &d->model->allocator;
    for (int32_t k = 0; s->arrays && k < d->inputs; k++) amp_free_aligned(a, s->arrays[k], d->bytes[k], ALIGNMENT);
    amp_free(a, s->arrays, (size_t)d->inputs * sizeof(void *));
}

void amp_dataset_release(amp_dataset *d) {
    if (!d || atomic_fetch_sub_explicit(&d->references, 1, memory_order_acq_rel) != 1) return;
    amp_model *model = d->model;
    stop_thread(d);
    for (int32_t i = 0; d->slot && i < d->slots; i++) free_slot(d, &d->slot[i]);
    amp_free(&model->allocator, d->slot, (size_t)d->slots * sizeof *d->slot);
    amp_free(&model->allocator, d->bytes, (size_t)d->inputs * sizeof *d->bytes);
    amp_free(&model->allocator, d, sizeof *d);
    amp_model_release(model);
}
