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
 *
 * Where ranks have shares (zero1) a bucket's gradients that can be divided are a reduce_scatter, the others an
 * all_reduce beside it, and gather_step has an all_gather of the weights of each reduce_scatter.
 */
#include "passes/common/buckets.h"
#include "passes/fuse/kernel_list.h"
#include "passes/layout/layout.h"

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
    return (o->code == OP_all_reduce || o->code == OP_reduce_scatter) && first->role == STATE_ACCUMULATOR && first->of;
}

/* The collectives of a function, made anew. */
typedef struct Remade {
    Func *f;
    const Op *like[2]; /* one of those that are replaced: of gradients that stay whole, of what is divided */
    KernelList list;
} Remade;

typedef struct Regrouping {
    Remade reduce, gather; /* gather.f: NULL: there are no shares */
    int count;             /* gradients */
} Regrouping;

static void number_bucket(Remade *r, Op *o, const char *after) {
    Arena *a = r->f->module->arena;
    ir_attr(o, "bucket")->i = r->list.at.len;
    o->path = arena_printf(a, "bucket.%d%s", r->list.at.len, after);
    KernelOps *k = kernel_list_insert(&r->list, r->list.at.len, KERNEL_COLLECTIVE, o->path, o->pos);
    vec_push(a, &k->ops, o->id);
}

static void add_bucket(Remade *r, bool divided, const StateList *states, const char *after, const char *because) {
    const Op *like = r->like[divided];
    Val *in = arena_array(r->f->module->arena, Val, states->len + 1);
    for (int i = 0; i < states->len; i++) in[i] = ir_use_state(r->f, states->data[i]);
    Op *o = ir_op_new(r->f, like->code, in, states->len);
    for (int i = 0; i < ir_attr_count(o->code); i++) o->attr[i] = like->attr[i];
    o->pos = like->pos;
    o->reason = ir_reason(r->f->module, like->reason ? like->reason->rule : "distribute");
    o->reason->because = because;
    number_bucket(r, o, after);
}

/* Of a bucket, those that are divided or those that are not. */
static void add_part(Regrouping *g, const ReadyState *bucket, int taken, bool divided) {
    Module *m = g->reduce.f->module;
    StateList gradients = {0}, weights = {0};
    for (int i = 0; i < taken; i++) {
        if (bucket[i].fits != divided) continue;
        vec_push(m->arena, &gradients, bucket[i].sum);
        vec_push(m->arena, &weights, ir_state_find(m, bucket[i].sum->of));
    }
    if (!gradients.len) return;
    add_bucket(&g->reduce, divided, &gradients, "", bucket_text(m->arena, &gradients, g->count, "gradients"));
    if (divided)
        add_bucket(&g->gather, true, &weights, ".gather", bucket_text(m->arena, &weights, g->count, "weights"));
}

static void fill_buckets(Regrouping *g, ReadyState *list) {
    buckets_sort(list, g->count);
    const int64_t room = buckets_size(list, g->count, target_of(g->reduce.f->module)->largest_bucket);
    for (int from = 0, taken; from < g->count; from += taken) {
        int64_t bytes;
        taken = buckets_take(list + from, g->count - from, room, &bytes);
        add_part(g, list + from, taken, true);
        add_part(g, list + from, taken, false);
    }
}

static ReadyState *list_gradients(Regrouping *g, const int *last) {
    const Func *f = g->reduce.f;
    const Table numbers = number_states(f->module);
    ReadyState *list = arena_array(f->module->arena, ReadyState, f->module->states.len + 1);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        const bool divided = o->code == OP_reduce_scatter;
        if (!adds_gradients(f, o)) continue;
        g->reduce.like[divided] = o;
        for (int j = 0; j < o->n_in; j++) {
            const State *s = ir_state_of(f, o->in[j]);
            const int at = last[*(const uint32_t *)table_get(&numbers, s->name) - 1];
            list[g->count++] = (ReadyState){.sum = s, .at = at, .fits = divided};
        }
    }
    return list;
}

/* False: there is nothing to fill anew. */
static bool order_buckets(Module *m) {
    Func *f = ir_program(m, PROGRAM_REDUCE_STEP), *gather = ir_program(m, PROGRAM_GATHER_STEP);
    if (!f || !target_of(m)->largest_bucket) return false;
    Regrouping g = {.reduce = {.f = f, .list = {.f = f}}, .gather = {.f = gather, .list = {.f = gather}}};
    const int collectives = f->body.len;
    if (gather && gather->body.len) g.gather.like[1] = ir_op_at(gather, 0);
    ReadyState *list = list_gradients(&g, last_uses(ir_program(m, PROGRAM_MICRO_STEP)));
    fill_buckets(&g, list);
    for (int i = 0; i < collectives; i++)
        if (!adds_gradients(f, ir_op_at(f, i))) number_bucket(&g.reduce, ir_op_at(f, i), "");
    kernel_list_close(&g.reduce.list);
    if (gather) kernel_list_close(&g.gather.list);
    return true;
}

bool pass_buckets(PassContext *c) {
    if (!order_buckets(c->m)) return true;
    const Table state_numbers = number_states(c->m);
    for (int i = 0; i < c->m->funcs.len; i++)
        if (ir_is_exchange(c->m->funcs.data[i])) make_buffers(c->m->funcs.data[i], &state_numbers);
    return true;
}
