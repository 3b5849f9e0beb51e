/* exchange_device.c: what ranks exchange, where collectives run on the device: beside micro_step, from the kernel on
 * that completes their states, and the host waits for none of them.
 *
 *   device      micro_step                          | statistics_step, for each micro-batch of all | apply_step
 *   beside it         | bucket 0 | bucket 1 | ..  | rest
 *
 * Where ranks have shares (zero1) weights are copied into messages after apply_step, gathered, and copied back.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/messages.h"
#include "runtime/ranks/rank_exchange.h"

static const amp_device_memory_calls *calls_of(const amp_exchange *x) {
    return x->ranks->session.device->type->device_memory;
}

static size_t list_bytes(const amp_exchange *x) {
    return (size_t)x->model->collective_count * sizeof(amp_device_collective);
}

amp_status amp_exchange_on_device(amp_exchange *x, amp_error *err) {
    if (!x->on_device || !calls_of(x)->enqueue || !x->comm->calls->enqueue) return AMP_OK;
    x->enqueued = amp_alloc_zeroed(&x->ranks->session.memory->allocator, list_bytes(x));
    return x->enqueued
               ? AMP_OK
               : amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for the messages of a step", x->model->desc.name);
}

/* A gather's memory is filled after micro_step. */
static int32_t begins_after(const amp_exchange *x, int32_t i) {
    const amp_model *m = x->model;
    if (amp_program_sums_on_device(m->train_step)) return AMP_DEVICE_AT_END;
    const amp_model_collective *c = &m->collectives[i];
    const int32_t before = i ? x->enqueued[i - 1].after : 0, last = amp_collective_last_use(m, c);
    if (c->op == AMP_EXCHANGE_GATHER_BATCHES || last + 1 >= m->train_step->kernel_count) return AMP_DEVICE_AT_END;
    return last > before ? last : before;
}

amp_collective_op amp_exchange_engine_op(const amp_model_collective *c) {
    static const amp_collective_op ops[] = {
        [AMP_EXCHANGE_ALL_REDUCE] = AMP_COLLECTIVE_ALL_REDUCE,
        [AMP_EXCHANGE_GATHER_BATCHES] = AMP_COLLECTIVE_ALL_GATHER,
        [AMP_EXCHANGE_ALL_REDUCE_TREE] = AMP_COLLECTIVE_ALL_REDUCE_TREE,
        [AMP_EXCHANGE_REDUCE_SCATTER] = AMP_COLLECTIVE_REDUCE_SCATTER,
        [AMP_EXCHANGE_REDUCE_SCATTER_TREE] = AMP_COLLECTIVE_REDUCE_SCATTER_TREE,
        [AMP_EXCHANGE_ALL_GATHER] = AMP_COLLECTIVE_ALL_GATHER,
    };
    return ops[c->op];
}

/* Whether the message has memory of its own. */
static bool is_owned(const amp_exchange *x, int32_t i) {
    const uint32_t op = x->model->collectives[i].op;
    return op == AMP_EXCHANGE_GATHER_BATCHES ||
           (op == AMP_EXCHANGE_ALL_GATHER && !amp_collective_in_place(x->model, i));
}

static void *shared_memory(const amp_exchange *x, int32_t i) {
    const amp_model_collective *c = &x->model->collectives[i];
    if (c->op == AMP_EXCHANGE_ALL_GATHER) return x->messages[amp_collective_of_gradients(x->model, i)].data;
    return x->ranks->session.states->bound[c->states[0]];
}

amp_status amp_exchange_place(const amp_exchange *x, int32_t i, amp_error *err) {
    const amp_model_collective *c = &x->model->collectives[i];
    const bool after_step = c->op == AMP_EXCHANGE_ALL_GATHER;
    amp_message *m = &x->messages[i];
    amp_device_memory *memory = calls_of(x)->memory(x->ranks->session.device);
    if (is_owned(x, i)) {
        AMP_TRY(memory->type->allocate(memory, m->bytes, &m->data, err));
        AMP_TRY(memory->type->clear(memory, m->data, m->bytes, err)); /* what is between weights travels too */
    } else m->data = shared_memory(x, i);
    x->enqueued[i] = (amp_device_collective){.op = amp_exchange_engine_op(c),
                                             .dtype = after_step ? AMP_DT_F32 : (amp_dtype)c->dtype,
                                             .data = m->data,
                                             .count = m->count,
                                             .what = c->what,
                                             .after = after_step ? AMP_DEVICE_AT_END : begins_after(x, i)};
    return AMP_OK;
}

/* Those before apply_step are the first ones. */
static int32_t count_before_update(const amp_exchange *x) {
    int32_t count = 0;
    while (count < x->model->collective_count && x->model->collectives[count].op != AMP_EXCHANGE_ALL_GATHER) count++;
    return count;
}

amp_status amp_exchange_attach(const amp_exchange *x, amp_error *err) {
    const amp_device_exchange all = {x->model->train_step, x->enqueued, count_before_update(x)};
    return x->enqueued ? calls_of(x)->attach(x->ranks->session.device, x->comm, &all, err) : AMP_OK;
}

amp_status amp_exchange_enqueue(const amp_exchange *x, amp_error *err) {
    return calls_of(x)->enqueue(x->ranks->session.device, err);
}

amp_status amp_exchange_enqueue_gathers(const amp_exchange *x, amp_error *err) {
    const int32_t before = count_before_update(x);
    AMP_TRY(calls_of(x)->enqueue_list(x->ranks->session.device, x->enqueued + before,
                                      x->model->collective_count - before, err));
    return amp_exchange_use(x, err);
}

amp_status amp_exchange_use(const amp_exchange *x, amp_error *err) {
    return x->enqueued ? x->comm->calls->use(x->comm, err) : AMP_OK;
}

void amp_exchange_leave_device(const amp_exchange *x) {
    amp_device_memory *memory = calls_of(x)->memory(x->ranks->session.device);
    calls_of(x)->detach(x->ranks->session.device);
    for (int32_t i = 0; x->messages && i < x->model->collective_count; i++)
        if (is_owned(x, i)) memory->type->release(memory, x->messages[i].data);
    amp_free(&x->ranks->session.memory->allocator, x->enqueued, list_bytes(x));
}
