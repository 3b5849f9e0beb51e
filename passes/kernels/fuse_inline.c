/* fuse_inline.c: what only pooling reads is made where it reads it (ir_takes_inlined).
 *
 *   k1 { %b = mul(%h, %scale)              k2 { %b = mul(%h, %scale)
 *        %y = add(%b, %bias) }       =>         %y = add(%b, %bias)
 *   k2 { %p, %w = window_max(%y) }              %p, %w = window_max(%y) }
 *
 * Each element of %y is still made once, and it never lies in memory.  Only kernels all of whose ops can move.
 */
#include "passes/kernels/fuse.h"

enum { NO_READER = -1, SHARED = -2 };

typedef struct Inlining {
    Fuse *z;
    int *reader;   /* by value id: the only group that reads it besides its own, NO_READER, or SHARED */
    int *uses;     /* by value id: ops that read it */
    int *assigned; /* by value id of a state: one more than the group that assigns it */
} Inlining;

static void note_reader(Inlining *in, Val v, int g) {
    in->uses[v.id]++;
    if (fuse_home_of(in->z, v) == g) return;
    in->reader[v.id] = in->reader[v.id] == NO_READER || in->reader[v.id] == g ? g : SHARED;
}

static void find_readers(Inlining *in) {
    Fuse *z = in->z;
    for (int i = 0; i <= z->f->values.len; i++) in->reader[i] = NO_READER;
    for (int g = 0; g < z->groups.len; g++)
        for (int i = 0; i < z->groups.data[g].ops.len; i++) {
            const Op *o = ir_op(z->f, z->groups.data[g].ops.data[i]);
            for (int n = 0; n < o->n_in; n++) note_reader(in, o->in[n], g);
            if (o->code == OP_assign) in->assigned[o->in[0].id] = g + 1;
        }
    for (int i = 0; i < z->f->results.len; i++) in->reader[z->f->results.data[i].value.id] = SHARED;
}

/* One element per column, or one at all. */
static bool is_along_columns(const Func *f, const Group *g, Val v) {
    Dim rows, cols;
    return shape_matrix(ir_shape(f, v), &rows, &cols) && dim_is_one(rows) &&
           (dim_is_one(cols) || dim_equal(cols, g->cols));
}

static bool is_whole(const Func *f, const Group *g, Val v) {
    Dim rows, cols;
    return shape_matrix(ir_shape(f, v), &rows, &cols) && dim_equal(rows, g->rows) && dim_equal(cols, g->cols);
}

/* Elementwise, the same at each place, and of nothing that an assign overwrites before group |to|. */
static bool can_move(const Inlining *in, const Group *g, const Op *o, int to) {
    const Func *f = in->z->f;
    bool placed = o->code == OP_iota || o->code == OP_broadcast || ir_op_info[o->code].flags & RANDOM;
    bool simple = ir_op_info[o->code].flags & ELEMENTWISE || o->code == OP_const || ir_is_view(f, o);
    if (placed || !simple || o->n_out != 1) return false;
    for (int i = -1; i < o->n_in; i++) {
        Val v = i < 0 ? o->out[0] : o->in[i];
        if (!is_whole(f, g, v) && !is_along_columns(f, g, v)) return false;
        if (in->assigned[v.id] && in->assigned[v.id] <= to + 1) return false;
    }
    return true;
}

/* All of group |from| serves |v| alone. */
static bool serves(const Inlining *in, int from, Val v, int to) {
    const Group *g = &in->z->groups.data[from], *h = &in->z->groups.data[to];
    if (g->kind != KERNEL_TILE || h->kind != KERNEL_TILE || (h->early && !g->early)) return false;
    if (g->guard.id != h->guard.id || !is_whole(in->z->f, g, v)) return false;
    for (int i = 0; i < g->ops.len; i++) {
        const Op *o = ir_op(in->z->f, g->ops.data[i]);
        if (!can_move(in, g, o, to)) return false;
        if (in->reader[o->out[0].id] != (o->out[0].id == v.id ? to : NO_READER)) return false;
    }
    return in->uses[v.id] == 1;
}

/* Group |from| goes into |to|, in front. */
static void merge(Fuse *z, int from, int to) {
    Group *g = &z->groups.data[from], *h = &z->groups.data[to];
    for (int i = 0; i < g->ops.len; i++) fuse_node(z, ir_op(z->f, g->ops.data[i]))->home = to;
    for (int i = 0; i < h->ops.len; i++) vec_push(z->a, &g->ops, h->ops.data[i]);
    h->ops.data = g->ops.data, h->ops.len = g->ops.len, h->ops.cap = g->ops.cap;
    g->ops.data = NULL;
    g->ops.len = g->ops.cap = 0;
}

/* The operand as it stands in memory, if only |o| reads it. */
static Val operand_of(const Inlining *in, const Op *o, int g) {
    Val v = o->in[0];
    while (fuse_home_of(in->z, v) == g) {
        const Op *def = ir_def(in->z->f, v);
        if (!ir_is_seen_through(in->z->f, def) || in->uses[v.id] != 1) return NO_VAL;
        v = def->in[0];
    }
    return v;
}

void fuse_inline(Fuse *z) {
    int count = z->f->values.len + 1;
    Inlining in = {.z = z, .reader = arena_array(z->a, int, count), .uses = arena_array(z->a, int, count)};
    in.assigned = arena_array(z->a, int, count);
    find_readers(&in);
    for (int g = 0; g < z->groups.len; g++)
        for (int i = 0; i < z->groups.data[g].ops.len; i++) {
            const Op *o = ir_op(z->f, z->groups.data[g].ops.data[i]);
            Val v = ir_takes_inlined(z->f, o) ? operand_of(&in, o, g) : NO_VAL;
            int from = v.id ? fuse_home_of(z, v) : NOWHERE;
            if (from < 0 || from == g || !serves(&in, from, v, g)) continue;
            merge(z, from, g);
            break; /* the ops have moved; one such operand is enough */
        }
}
