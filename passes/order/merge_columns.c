/* merge_columns.c: sums down the same columns become one kernel, which reads each of its operands once.
 *
 *   k40 { %s = reduce_sum(%dy; dims = (1)) }        k40 { %s = reduce_sum(%dy; dims = (1))
 *   k41 { %t = mul(%dy, %x)                    =>         %t = mul(%dy, %x)
 *         %u = reduce_sum(%t; dims = (1)) }               %u = reduce_sum(%t; dims = (1)) }
 *
 * On a target where a launch costs more than a few threads more would give: the sums of a norm's gradient, and the two
 * that add them over all samples; the mean of a batch norm and the squares around it, for which a kernel of one row a
 * sample goes over its rows again.  One of the two moves to the other, if nothing between needs it and little is kept
 * in memory meanwhile.
 *
 * After kernels have been gathered (gather.c), those that are left alone are merged even if they share nothing: sums of
 * a bias and of a norm.
 */
#include "passes/order/kernel_order.h"

enum {
    FARTHEST = 64, /* kernels between the two, before one of them moves */
    MOST_SUMS = 4  /* of a kernel: each takes a turn at the block's shared memory */
};

typedef struct Columns { /* what a column kernel walks over */
    Dim rows, cols;
    int sums;
} Columns;

static bool is_sum(const Op *o) { return ir_op_info[o->code].flags & REDUCE && o->code != OP_reduce_or; }

static Columns measure_columns(const Func *f, const KernelOps *k) {
    Columns c = {.sums = 0};
    for (int i = 0; i < k->ops.len; i++) {
        const Op *o = ir_op(f, k->ops.data[i]);
        if (is_sum(o) && !c.sums++) shape_matrix(ir_shape(f, o->in[0]), &c.rows, &c.cols);
    }
    return c;
}

static bool is_whole(const Func *f, const Columns *c, Val v) {
    return shape_is_matrix(ir_shape(f, v), c->rows, c->cols);
}

/* The position in |k| of the op that makes |v|; -1: none of them. */
static int position_in(const Func *f, const KernelOps *k, Val v) {
    const Op *def = ir_def(f, v);
    for (int i = 0; i < k->ops.len && def; i++)
        if (k->ops.data[i].id == def->id.id) return i;
    return -1;
}

/* ---- what the second kernel reads of the first ------------------------------------------------------------------- */

typedef struct Following {
    const Func *f;
    const KernelOps *first, *second;
    Columns columns;
    bool reads;                   /* the second reads something of the first */
    bool reduced[KERNEL_MAX_OPS]; /* by op of the second: made from what the first has reduced */
} Following;

/* Whether an op may have operand |n| in a register, if the first kernel makes it.  Notes what is reduced. */
static bool takes_operand(Following *x, int op, int n) {
    const Op *o = ir_op(x->f, x->second->ops.data[op]);
    const int own = position_in(x->f, x->second, o->in[n]);
    if (own >= 0) x->reduced[op] |= x->reduced[own];
    if (own >= 0 || position_in(x->f, x->first, o->in[n]) < 0) return true;
    x->reads = true;
    x->reduced[op] |= !is_whole(x->f, &x->columns, o->in[n]);
    const bool memory = ir_reads_memory(x->f, o, n) && !ir_is_segment_expand(x->f, o, x->second->kernel->segment);
    return !memory && ir_def(x->f, o->in[n])->code != OP_reduce_or;
}

/* Whether the second may have all that it reads of the first in registers.  Where it needs what that reduces before its
 * own sums, it goes over its rows again. */
static bool may_follow(Following *x) {
    const bool again = x->second->kernel->segment.mul || target_repeats_columns(x->f, x->columns.rows);
    for (int i = 0; i < x->second->ops.len; i++) {
        const Op *o = ir_op(x->f, x->second->ops.data[i]);
        for (int n = 0; n < o->n_in; n++)
            if (!takes_operand(x, i, n)) return false;
        if (x->reduced[i] && !again && o->n_out && is_whole(x->f, &x->columns, is_sum(o) ? o->in[0] : o->out[0]))
            return false;
    }
    return true;
}

/* Whether both read all of an operand. */
static bool share_operand(const Func *f, const Columns *c, const Kernel *a, const Kernel *b) {
    for (int i = 0; i < a->reads.len; i++)
        for (int j = 0; j < b->reads.len; j++)
            if (a->reads.data[i] == b->reads.data[j] && is_whole(f, c, f->buffers.data[a->reads.data[i] - 1]->value))
                return true;
    return false;
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

typedef struct Merging {
    KernelOrder order;
    const bool *alone; /* by kernel: no neighbour does the same; NULL: it does not matter, they must share something */
} Merging;

static bool may_merge(const Merging *m, int first, int second) {
    const KernelOrder *o = &m->order;
    const Func *f = o->list.f;
    const KernelOps *a = &o->list.at.data[first], *b = &o->list.at.data[second];
    if (a->kernel->kind != KERNEL_COLUMN || !dim_equal(a->kernel->segment, b->kernel->segment)) return false;
    if (m->alone && !(m->alone[first] && m->alone[second])) return false;
    if (a->kernel->pred.id != b->kernel->pred.id || a->ops.len + b->ops.len > KERNEL_MAX_OPS) return false;
    const Columns of_a = measure_columns(f, a), of_b = measure_columns(f, b);
    if (!dim_equal(of_a.rows, of_b.rows) || !dim_equal(of_a.cols, of_b.cols)) return false;
    if (of_a.sums + of_b.sums > MOST_SUMS) return false;
    Following x = {.f = f, .first = a, .second = b, .columns = of_b};
    return may_follow(&x) && (m->alone || x.reads || share_operand(f, &of_b, a->kernel, b->kernel));
}

/* One of the two moves to the other. */
static bool meet(KernelOrder *o, int first, int second) {
    for (int up = 1; up >= 0; up--) {
        const int moves = up ? second : first, stays = up ? first : second;
        if (kernel_order_keeps(o, moves, stays, up) > o->most_kept || !kernel_order_may_move(o, moves, stays, up))
            continue;
        kernel_order_move(o, moves, stays, up);
        return true;
    }
    return false;
}

/* Merges |kernel| into one before it, which takes its number; -1: there is none. */
static int merge_back(Merging *m, int kernel) {
    KernelOrder *o = &m->order;
    int steps = 0;
    for (int i = o->before[kernel]; i >= 0 && steps++ < FARTHEST; i = o->before[i]) {
        if (!may_merge(m, i, kernel) || !meet(o, i, kernel)) continue;
        kernel_order_merge(o, i, kernel);
        return i;
    }
    return -1;
}

static bool merge(Func *f, bool any) {
    Merging m = {.order = kernel_order_open(f), .alone = any ? kernels_alone(f) : NULL};
    for (int i = m.order.first, then; i >= 0; i = then) {
        then = m.order.next[i];
        for (int k = i; k >= 0 && kernel_order_at(&m.order, k)->kind == KERNEL_COLUMN;) k = merge_back(&m, k);
    }
    return kernel_order_close(&m.order);
}

static bool merge_columns(Func *f) { return merge(f, false); }

bool pass_merge_columns(PassContext *c) { return order_kernels(c, merge_columns); }

static bool merge_lone_columns(Func *f) { return merge(f, true); }

bool pass_merge_lone_columns(PassContext *c) { return order_kernels(c, merge_lone_columns); }
