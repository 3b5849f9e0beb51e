/* fuse_early.c: what runs before all other kernels, because it depends on nothing that they make and tensors need it.
 *
 *   scalars   %r = div(1, %scale), by which every gradient is multiplied: all in one kernel
 *   counts    %n = reduce_sum(%valid) over labels, by which the gradient of a mean is divided: known before the first
 *             product, it lets a loss and its gradient stand in one kernel
 */
#include "passes/kernels/fuse.h"

typedef struct Early {
    Fuse *z;
    bool *wanted; /* by value id: something that is no scalar needs it */
    bool *ready;  /* by value id: no kernel but an early one makes it */
    bool *small;  /* by value id: made of inputs of at most one number per sample, element by element */
    int front;    /* the kernel of scalars; -1: none yet */
    int count;    /* the last kernel that counts; -1: none */
} Early;

/* A count is a fold of all samples to one number. */
static bool is_count(const Fuse *z, const Op *o) {
    return fuse_fold(z->f, o) == FOLD_COLUMN && !ir_shape(z->f, o->out[0])->rank;
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

static bool is_small(const Early *e, const Op *o) {
    const Func *f = e->z->f;
    if (o->code == OP_const) return true;
    bool small =
        ir_op_info[o->code].flags & ELEMENTWISE && !(ir_op_info[o->code].flags & (RANDOM | EFFECT)) && o->n_out == 1;
    if (small && ir_shape(f, o->out[0])->rank > 1) return false;
    for (int n = 0; n < o->n_in && small; n++)
        small = !ir_reads_elements(o, n) ||
                (ir_def(f, o->in[n]) ? e->small[o->in[n].id] : ir_shape(f, o->in[n])->rank <= 1);
    return small;
}

/* What only the count needs so far goes where that goes. */
static void make_pending(Fuse *z, Val v) {
    Op *def = fuse_behind(z, v, true);
    if (!def || fuse_node(z, def)->home != NOWHERE) return;
    fuse_node(z, def)->home = PENDING;
    for (int n = 0; n < def->n_in; n++) make_pending(z, def->in[n]);
}

static void hoist_count(Early *e, Op *o) {
    make_pending(e->z, o->in[0]);
    if (e->count < 0 || !fuse_fits(e->z, e->count, o)) e->count = fuse_open_early(e->z, o);
    fuse_append(e->z, e->count, o);
    e->ready[o->out[0].id] = true;
}

/* Whether a kernel that counts makes what the scalar needs. */
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
    bool can = fuse_is_scalar(f, o) && o->n_out;
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
    for (int i = 0; i < f->body.len; i++) { /* scalars first: a kernel that counts may read them */
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
