/* fuse_order.c: when ops run: before all other kernels, or as late as their users allow.
 *
 * Early: ops that depend on nothing that other kernels make, and that tensors need.
 *
 *   scalars   %r = div(1, %scale), by which every gradient is multiplied: all in one kernel
 *   counts    %n = reduce_sum(%valid) over labels, by which the gradient of a mean is divided: known before the first
 *             product, it lets a loss and its gradient share one kernel
 *
 * Delayed: an op whose result is used only together with something that is made later waits for that, so that no tensor
 * is kept in memory in between.
 *
 *   %m = lt(%zero, %y)         %y is an activation, kept anyway; the mask would be one more tensor
 *   %d = select(%m, %dy, ..)   so lt waits for the kernel that makes %dy, and %m stays in a register
 *
 */
#include "passes/fuse/fuse.h"

/* ---- early ------------------------------------------------------------------------------------------------------- */

typedef struct Early {
    Fuse *z;
    bool *wanted; /* by value id: an op that is not a scalar needs it */
    bool *ready;  /* by value id: available before all kernels that are not early */
    bool *small;  /* by value id: computed elementwise from inputs of at most one number per sample */
    int front;    /* the group of scalars; -1: none yet */
    int count;    /* the last group that counts; -1: none */
} Early;

/* A count reduces all samples to one number. */
static bool is_count(const Fuse *z, const Op *o) {
    return fuse_reduction(z->f, o) == REDUCTION_COLUMN && !ir_shape(z->f, o->out[0])->rank;
}

static void find_wanted(Early *e) {
    const Func *f = e->z->f;
    for (int i = f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, i);
        bool wants = !fuse_is_scalar(f, o) && o->n_out && !is_count(e->z, o);
        for (int r = 0; r < o->n_out; r++) wants = wants || e->wanted[o->out[r].id];
        for (int n = 0; n < o->n_in && wants; n++) e->wanted[o->in[n].id] = true;
    }
}

/* Labels of sequences, one after the other. */
static bool is_labels_in_a_row(const Func *f, const Op *o) {
    return o->code == OP_reshape && !ir_def(f, o->in[0]) && ir_dtype(f, o->in[0]) == AMP_DT_I32 &&
           ir_shape(f, o->out[0])->rank == 1;
}

static bool is_small(const Early *e, const Op *o) {
    const Func *f = e->z->f;
    if (o->code == OP_const || is_labels_in_a_row(f, o)) return true;
    bool small =
        ir_op_info[o->code].flags & ELEMENTWISE && !(ir_op_info[o->code].flags & (RANDOM | EFFECT)) && o->n_out == 1;
    small = small && !o->after;
    if (small && ir_shape(f, o->out[0])->rank > 1) return false;
    for (int n = 0; n < o->n_in && small; n++)
        small = !ir_reads_elements(o, n) ||
                (ir_def(f, o->in[n]) ? e->small[o->in[n].id] : ir_shape(f, o->in[n])->rank <= 1);
    return small;
}

/* The ops that only the count needs so far join its kernel. */
static void make_pending(Fuse *z, Val v) {
    Op *def = fuse_maker(z, v, true);
    if (!def || fuse_node(z, def)->home != NOWHERE) return;
    for (int n = 0; n < def->n_in; n++) make_pending(z, def->in[n]);
    fuse_set_pending(z, def);
}

static void hoist_count(Early *e, Op *o) {
    make_pending(e->z, o->in[0]);
    if (e->count < 0 || !fuse_fits(e->z, e->count, o)) e->count = fuse_open_early(e->z, o);
    fuse_append(e->z, e->count, o);
    e->ready[o->out[0].id] = true;
}

/* Whether a group that counts makes an operand of the scalar. */
static bool reads_count(const Early *e, const Op *o) {
    for (int n = 0; n < o->n_in; n++)
        if (e->count >= 0 && fuse_home_of(e->z, o->in[n]) > e->front && fuse_home_of(e->z, o->in[n]) <= e->count)
            return true;
    return false;
}

static void hoist_scalar(Early *e, Op *o) {
    int home = e->front;
    if (reads_count(e, o)) {
        home = e->count;
        if (!fuse_fits(e->z, home, o)) home = e->count = fuse_open_early(e->z, o);
    } else if (home < 0) home = e->front = fuse_open_early(e->z, o);
    fuse_append(e->z, home, o);
}

static bool can_be_early(const Early *e, const Op *o) {
    const Func *f = e->z->f;
    bool can = fuse_is_scalar(f, o) && o->n_out && !o->after;
    for (int n = 0; n < o->n_in && can; n++) can = !ir_def(f, o->in[n]) || e->ready[o->in[n].id];
    return can;
}

void fuse_hoist(Fuse *z) {
    const Func *f = z->f;
    Early e = {.z = z, .front = -1, .count = -1};
    e.wanted = arena_array(z->a, bool, f->values.len + 1);
    e.ready = arena_array(z->a, bool, f->values.len + 1);
    e.small = arena_array(z->a, bool, f->values.len + 1);
    find_wanted(&e);
    for (int i = 0; i < f->body.len; i++) { /* scalars first: counts may read them */
        Op *o = ir_op_at(f, i);
        bool can = can_be_early(&e, o);
        for (int r = 0; r < o->n_out; r++) e.ready[o->out[r].id] = can;
        if (can && e.wanted[o->out[0].id] && !fuse_node(z, o)->copied) hoist_scalar(&e, o);
        if (o->n_out) e.small[o->out[0].id] = is_small(&e, o);
    }
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        if (is_count(z, o) && e.small[o->in[0].id] && e.wanted[o->out[0].id]) hoist_count(&e, o);
        else if (fuse_node(z, o)->home == NOWHERE && !fuse_node(z, o)->copied && can_be_early(&e, o)) {
            for (int r = 0; r < o->n_out; r++) e.ready[o->out[r].id] = true;
            if (e.wanted[o->out[0].id]) hoist_scalar(&e, o);
        }
    }
}

/* ---- delayed -------------------------------------------------------------------------------------------------------
 *
 * Looks at one region: the core ops of one graph op.  Results of reductions and scalars are small, so they do not
 * wait.  A reduction is also tried in the kernel that makes what its users need besides it: there its result stays in
 * a register.
 */

typedef struct Run { /* ops of one region: body[from .. to) */
    const OpId *body;
    int from, to;
    int *bound;    /* by position: when what the op, or an op of the region that it reads, needs is there */
    int *until;    /* by position: when the first of its users runs; NO_USER: no user seen yet */
    bool *reduced; /* by position: computed from what a column kernel without segments knows only after all rows */
} Run;

/* Moments of a run: while a group runs, and when it has ended. */
static int during(int group) { return 2 * group; }
static int after(int group) { return 2 * group + 1; }
static int group_at(int moment) { return (moment - (moment & 1)) / 2; }

enum { NO_USER = INT32_MAX };

/* Position in the run of the op that makes |v|, or -1. */
static int position_of(const Fuse *z, const Run *run, Val v) {
    const Op *def = fuse_maker(z, v, true);
    int position = def ? fuse_node(z, def)->position : -1;
    return position >= run->from && position < run->to ? position - run->from : -1;
}

/* Whether operand |v|, made at position |inside| of the run or before it, is known only when its kernel has gone over
 * all rows. */
static bool is_reduced(const Fuse *z, const Run *run, int inside, Val v) {
    if (inside >= 0) return run->reduced[inside];
    const Op *def = fuse_maker(z, v, true);
    return def && fuse_node(z, def)->home >= 0 && fuse_node(z, def)->reduced &&
           !fuse_group(z, fuse_node(z, def)->home)->segment.mul;
}

static bool has_one_row(const Func *f, Val v) {
    Dim rows, cols;
    return shape_matrix(ir_shape(f, v), &rows, &cols) && dim_is_one(rows);
}

/* What goes over the rows again runs after the kernel that has reduced them. */
static void find_bounds(const Fuse *z, Run *run) {
    for (int i = run->from; i < run->to; i++) {
        const Op *o = ir_op(z->f, run->body[i]);
        int *bound = &run->bound[i - run->from];
        bool one_row = !o->n_out || has_one_row(z->f, o->out[0]);
        *bound = during(fuse_opened_in(z, o));
        for (int n = 0; n < o->n_in; n++) {
            if (!ir_reads_elements(o, n)) continue;
            int inside = position_of(z, run, o->in[n]);
            int made = inside >= 0 ? run->bound[inside] : during(fuse_made_in(z, o->in[n], true));
            bool reduced = is_reduced(z, run, inside, o->in[n]);
            if (reduced && one_row) run->reduced[i - run->from] = true;
            if (reduced && !one_row) made = after(group_at(made));
            if (made > *bound) *bound = made;
        }
    }
}

static bool is_small_result(const Fuse *z, const Op *o) {
    return fuse_reduction(z->f, o) != REDUCTION_NONE || (o->n_out && !ir_shape(z->f, o->out[0])->rank);
}

/* Of tensors it reads |v| and nothing else. */
static bool reads_one(const Func *f, const Op *o, Val v) {
    for (int i = 0; i < o->n_in; i++)
        if (o->in[i].id != v.id && ir_shape(f, o->in[i])->rank) return false;
    return true;
}

/* An op is for folds where each of its users is a reduction, needs the result of one of the region, or is for folds. */
static void find_folds(Fuse *z, const Run *run) {
    int count = run->to - run->from;
    bool *folded = arena_array(z->a, bool, count), *other = arena_array(z->a, bool, count);
    bool *others = arena_array(z->a, bool, count), *used = arena_array(z->a, bool, count);
    for (int i = 0; i < count; i++) {
        const Op *o = ir_op(z->f, run->body[run->from + i]);
        for (int n = 0; n < o->n_in; n++) {
            int inside = position_of(z, run, o->in[n]);
            const Op *def = inside >= 0 ? ir_op(z->f, run->body[run->from + inside]) : NULL;
            folded[i] = folded[i] || (def && (folded[inside] || ir_op_info[def->code].flags & REDUCE));
        }
    }
    for (int i = count - 1; i >= 0; i--) {
        const Op *o = ir_op(z->f, run->body[run->from + i]);
        bool fold = ir_op_info[o->code].flags & REDUCE, outside = fuse_node(z, o)->last_user >= run->to;
        Node *node = fuse_edit(z, o);
        node->for_fold = used[i] && !other[i] && !outside && !fold && ir_op_info[o->code].flags & ELEMENTWISE;
        node->for_fold_alone = node->for_fold && !others[i];
        for (int n = 0; n < o->n_in; n++) {
            int inside = ir_reads_elements(o, n) ? position_of(z, run, o->in[n]) : -1;
            if (inside < 0) continue;
            used[inside] = true;
            other[inside] = other[inside] || !(fold || folded[i] || node->for_fold);
            others[inside] = others[inside] || !(fold || (node->for_fold_alone && reads_one(z->f, o, o->in[n])));
        }
    }
}

/* From the last op to the first: an op waits as long as the user that waits least. */
static void find_delays(Fuse *z, Run *run) {
    for (int i = run->to - 1; i >= run->from; i--) {
        const Op *o = ir_op(z->f, run->body[i]);
        int at = i - run->from;
        bool used_outside = fuse_node(z, o)->last_user >= run->to;
        bool free_to_wait = run->until[at] != NO_USER && !used_outside && !is_small_result(z, o);
        int until = free_to_wait && run->until[at] > run->bound[at] ? run->until[at] : run->bound[at];
        Node *node = fuse_edit(z, o);
        bool ended = until & 1 && !(o->n_out && has_one_row(z->f, o->out[0]));
        node->not_before = group_at(until) + ended;
        node->meeting_group = run->until[at] == NO_USER ? -1 : group_at(run->until[at]);
        for (int n = 0; n < o->n_in; n++) {
            int inside = ir_reads_elements(o, n) ? position_of(z, run, o->in[n]) : -1;
            if (inside >= 0 && until < run->until[inside]) run->until[inside] = until;
        }
    }
}

void fuse_delay(Fuse *z, const OpId *body, int count, int at) {
    Run run = {.body = body, .from = at, .to = at};
    uint32_t region = ir_op(z->f, body[at])->region;
    while (run.to < count && ir_op(z->f, body[run.to])->region == region) run.to++;
    run.bound = arena_array(z->a, int, run.to - run.from);
    run.reduced = arena_array(z->a, bool, run.to - run.from);
    run.until = arena_array(z->a, int, run.to - run.from);
    for (int i = 0; i < run.to - run.from; i++) run.until[i] = NO_USER;
    find_bounds(z, &run);
    find_folds(z, &run);
    find_delays(z, &run);
}
