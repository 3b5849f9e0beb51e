/* bucket_order.c: on a device ranks send gradients in the order in which its kernels complete them.
 *
 *   micro_step    k7 writes %"fc2.weight/sum"   k8 %"fc1.weight/sum"   k9 %"fc1.bias/sum" and %"fc2.bias/sum"
 *
 *   all_reduce(%"fc2.weight/sum", %"fc2.bias/sum")        =>   all_reduce(%"fc2.weight/sum")
 *   all_reduce(%"fc1.weight/sum", %"fc1.bias/sum")             all_reduce(%"fc1.weight/sum")
 *                                                              all_reduce(%"fc1.bias/sum", %"fc2.bias/sum")
 *
 * The pass distribute has filled buckets in the order in which the backward pass makes gradients, before there were
 * kernels.  Where one kernel makes small sums of all layers, and ends last, each of those buckets would be complete
 * last.  A device's messages are also larger: what one costs whatever its size is more of what a step takes there.
 */
#include "passes/common/buckets.h"
#include "passes/kernels/layout.h"

/* By index of a state: the last kernel that reads or writes it. */
static int *last_uses(const Func *f) {
    const Module *m = f->module;
    int *last = arena_array(m->arena, int, m->states.len + 1);
    const Table numbers = number_states(m);
    for (int i = 0; i < f->kernels.len; i++) {
        const Kernel *k = f->kernels.data[i];
        for (int j = 0; j < k->count; j++) {
            const Op *o = ir_op_at(f, k->first + j);
            for (int n = 0; n < o->n_in; n++) {
                const State *s = ir_state_of(f, o->in[n]);
                if (s) last[*(const uint32_t *)table_get(&numbers, s->name) - 1] = i;
            }
        }
    }
    return last;
}

static bool adds_gradients(const Func *f, const Op *o) {
    const State *first = ir_state_of(f, o->in[0]);
    return o->code == OP_all_reduce && first->role == STATE_ACCUMULATOR && first->of;
}

/* |like|: one of those that are replaced. */
static Op *new_bucket(Func *f, const Op *like, const ReadyState *list, int taken, const char *because) {
    Arena *a = f->module->arena;
    Val *in = arena_array(a, Val, taken);
    for (int i = 0; i < taken; i++) in[i] = ir_use_state(f, list[i].sum);
    Op *o = ir_op_new(f, OP_all_reduce, in, taken);
    for (int i = 0; i < ir_attr_count(o->code); i++) o->attr[i] = like->attr[i];
    o->pos = like->pos;
    o->reason = ir_reason(f->module, like->reason ? like->reason->rule : "distribute");
    o->reason->because = because;
    return o;
}

static void number_bucket(KernelList *l, Op *o) {
    ir_attr(o, "bucket")->i = l->at.len;
    o->path = arena_printf(l->f->module->arena, "bucket.%d", l->at.len);
    KernelOps *k = kernel_list_insert(l, l->at.len, KERNEL_COLLECTIVE, o->path, o->pos);
    vec_push(l->f->module->arena, &k->ops, o->id);
}

static void fill_buckets(Func *f, const Op *like, ReadyState *list, int count, KernelList *l) {
    Arena *a = f->module->arena;
    buckets_sort(list, count);
    const int64_t room = buckets_size(list, count, target_of(f->module)->largest_bucket);
    for (int from = 0, taken; from < count; from += taken) {
        int64_t bytes;
        taken = buckets_take(list + from, count - from, room, &bytes);
        const char *because = arena_printf(a, "%d of %d gradients, %s", taken, count, bytes_text(a, bytes));
        number_bucket(l, new_bucket(f, like, list + from, taken, because));
    }
}

void order_buckets(Module *m) {
    Func *f = ir_program(m, PROGRAM_REDUCE_STEP);
    if (!f || m->distribution != DISTRIBUTE_DATA || !target_of(m)->largest_bucket) return;
    const int *last = last_uses(ir_program(m, PROGRAM_MICRO_STEP)), collectives = f->body.len;
    const Table numbers = number_states(m);
    ReadyState *list = arena_array(m->arena, ReadyState, m->states.len + 1);
    const Op *like = NULL;
    KernelList made = {.f = f};
    int count = 0;
    for (int i = 0; i < collectives; i++) {
        const Op *o = ir_op_at(f, i);
        for (int j = 0; adds_gradients(f, o) && j < o->n_in; j++) {
            const State *s = ir_state_of(f, o->in[j]);
            list[count++] = (ReadyState){.sum = s, .at = last[*(const uint32_t *)table_get(&numbers, s->name) - 1]};
            like = o;
        }
    }
    fill_buckets(f, like, list, count, &made);
    for (int i = 0; i < collectives; i++)
        if (!adds_gradients(f, ir_op_at(f, i))) number_bucket(&made, ir_op_at(f, i));
    kernel_list_close(&made);
}
