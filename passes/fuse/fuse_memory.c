/* fuse_memory.c: values that are recomputed, or made where they are read, instead of being kept in memory.
 *
 * Recomputed: a value that is computed from less memory than it fills, in each kernel that reads it.
 *
 *   k1 { %d = window_max_grad(%dy, %which)              k1 { %d = window_max_grad(%dy, %which)
 *        %s = reduce_sum(%d) }                     =>        %s = reduce_sum(%d) }
 *   k2 { %e = sub(%d, %m) }                             k2 { %d.2 = window_max_grad(%dy, %which)
 *                                                            %e = sub(%d.2, %m) }
 *
 * The gradient of pooling with windows that do not overlap is the operand spread over the larger image: reading the
 * operand again takes less time than writing and reading the result.  Only if all readers can recompute it, so that
 * it is never in memory.
 *
 * Inlined: elementwise ops that only pooling reads, computed where it reads them (ir_takes_inlined).
 *
 *   k1 { %b = mul(%h, %scale)              k2 { %b = mul(%h, %scale)
 *        %y = add(%b, %bias) }       =>         %y = add(%b, %bias)
 *   k2 { %p, %w = window_max(%y) }              %p, %w = window_max(%y) }
 *
 * Each element of %y is still computed once, and never in memory.  Only kernels all of whose ops can move.
 */
#include "passes/fuse/fuse.h"

/* ---- recomputed -------------------------------------------------------------------------------------------------- */

enum { WORTH_IT = 4 }; /* elements computed from each that is read */

typedef struct Light { /* by value id */
    bool is;           /* it costs less to recompute than to keep */
    bool blocked;      /* some reader needs it in memory */
} Light;

static bool spreads(const Func *f, const Op *o) {
    if (o->code != OP_window_max_grad) return false;
    Windows g = ir_windows(f, o);
    return g.kh <= g.stride[0] && g.kw <= g.stride[1] && g.stride[0] * g.stride[1] >= WORTH_IT;
}

/* A spread value, or a cast of one in the same kernel. */
static void find_light(const Fuse *z, Light *light) {
    for (int g = 0; g < fuse_group_count(z); g++)
        for (int i = 0; i < fuse_group(z, g)->ops.len; i++) {
            const Op *o = fuse_group_op(z, g, i);
            bool cast = o->code == OP_cast && light[o->in[0].id].is && fuse_home_of(z, o->in[0]) == g;
            if (spreads(z->f, o) || cast) light[o->out[0].id].is = true;
        }
}

static bool can_have_own(const Fuse *z, int g, const Op *user, int operand) {
    const Group *group = fuse_group(z, g);
    bool kind = group->kind == KERNEL_TILE || group->kind == KERNEL_ROW || group->kind == KERNEL_COLUMN;
    return kind && !ir_reads_memory(z->f, user, operand) && user->code != OP_assign &&
           shape_is_matrix(ir_shape(z->f, user->in[operand]), group->rows, group->cols);
}

static void find_blocked(const Fuse *z, Light *light) {
    for (int i = 0; i < z->f->results.len; i++) light[z->f->results.data[i].value.id].blocked = true;
    for (int g = 0; g < fuse_group_count(z); g++)
        for (int i = 0; i < fuse_group(z, g)->ops.len; i++) {
            const Op *o = fuse_group_op(z, g, i);
            for (int n = 0; n < o->n_in; n++)
                if (fuse_home_of(z, o->in[n]) != g && !can_have_own(z, g, o, n)) light[o->in[n].id].blocked = true;
        }
}

typedef struct Own { /* what one group recomputes */
    Fuse *z;
    const Light *light;
    OpIds ops;
    VEC(Copy) copies;
} Own;

/* |v| recomputed in the group, after the values in registers that it is computed from. */
static Val make_own(Own *own, Val v) {
    Fuse *z = own->z;
    for (int i = 0; i < own->copies.len; i++)
        if (own->copies.data[i].of.id == v.id) return own->copies.data[i].copy;
    Op *copy = fuse_clone(z, ir_def(z->f, v));
    for (int i = 0; i < copy->n_in; i++) {
        const Op *def = ir_def(z->f, copy->in[i]);
        bool copied = def && fuse_node(z, def)->copied && fuse_node(z, def)->home == fuse_home_of(z, v);
        const Light *light = &own->light[copy->in[i].id];
        if ((light->is && !light->blocked) || copied) copy->in[i] = make_own(own, copy->in[i]);
    }
    vec_push(z->a, &own->ops, copy->id);
    vec_push(z->a, &own->copies, ((Copy){v, copy->out[0]}));
    return copy->out[0];
}

static void recompute_in(Fuse *z, int g, const Light *light) {
    Own own = {.z = z, .light = light};
    const Group *group = fuse_group(z, g);
    for (int i = 0; i < group->ops.len; i++) {
        Op *o = fuse_group_op(z, g, i);
        for (int n = 0; n < o->n_in; n++)
            if (light[o->in[n].id].is && !light[o->in[n].id].blocked && fuse_home_of(z, o->in[n]) != g)
                o->in[n] = make_own(&own, o->in[n]);
    }
    if (!own.ops.len) return;
    for (int i = 0; i < group->ops.len; i++) vec_push(z->a, &own.ops, group->ops.data[i]);
    fuse_set_ops(z, g, own.ops);
}

/* Drops values that their own kernel does not read.  From the last kernel to the first, since readers come later. */
static void drop_unread(Fuse *z, const Light *light, int known) {
    bool *read = ir_results(z->f, z->a);
    for (int g = fuse_group_count(z) - 1; g >= 0; g--) {
        int count = fuse_group(z, g)->ops.len, first = count;
        OpIds kept = {.data = arena_array(z->a, OpId, count + 1), .cap = count + 1};
        for (int i = count - 1; i >= 0; i--) {
            const Op *o = fuse_group_op(z, g, i);
            if (o->n_out && (int)o->out[0].id < known && light[o->out[0].id].is && !read[o->out[0].id]) continue;
            for (int n = 0; n < o->n_in; n++) read[o->in[n].id] = true;
            kept.data[--first] = o->id;
        }
        kept.len = count - first;
        memmove(kept.data, kept.data + first, sizeof *kept.data * (size_t)kept.len);
        if (first) fuse_set_ops(z, g, kept);
    }
}

void fuse_recompute(Fuse *z) {
    int known = z->f->values.len;
    Light *light = arena_array(z->a, Light, known + 1);
    find_light(z, light);
    find_blocked(z, light);
    for (int g = 0; g < fuse_group_count(z); g++) recompute_in(z, g, light);
    drop_unread(z, light, known);
}

/* ---- inlined ----------------------------------------------------------------------------------------------------- */

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
    for (int g = 0; g < fuse_group_count(z); g++)
        for (int i = 0; i < fuse_group(z, g)->ops.len; i++) {
            const Op *o = fuse_group_op(z, g, i);
            for (int n = 0; n < o->n_in; n++) note_reader(in, o->in[n], g);
            if (o->code == OP_assign) in->assigned[o->in[0].id] = g + 1;
        }
    for (int i = 0; i < z->f->results.len; i++) in->reader[z->f->results.data[i].value.id] = SHARED;
}

/* One element per column, or a single one. */
static bool is_along_columns(const Func *f, const Group *g, Val v) {
    Dim rows, cols;
    return shape_matrix(ir_shape(f, v), &rows, &cols) && dim_is_one(rows) &&
           (dim_is_one(cols) || dim_equal(cols, g->cols));
}

static bool is_whole(const Func *f, const Group *g, Val v) { return shape_is_matrix(ir_shape(f, v), g->rows, g->cols); }

/* Elementwise, independent of where it is computed, and of operands that no assign overwrites before group |to|. */
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

/* Whether all of group |from| serves |v| alone, which group |to| reads. */
static bool serves(const Inlining *in, int from, Val v, int to) {
    const Group *g = fuse_group(in->z, from), *h = fuse_group(in->z, to);
    if (g->kind != KERNEL_TILE || h->kind != KERNEL_TILE || (h->early && !g->early)) return false;
    if (g->guard.id != h->guard.id || !is_whole(in->z->f, g, v)) return false;
    for (int i = 0; i < g->ops.len; i++) {
        const Op *o = fuse_group_op(in->z, from, i);
        if (!can_move(in, g, o, to)) return false;
        if (in->reader[o->out[0].id] != (o->out[0].id == v.id ? to : NO_READER)) return false;
    }
    return in->uses[v.id] == 1;
}

/* The ops of group |from| run in |to|, before its own. */
static void merge(Fuse *z, int from, int to) {
    OpIds ops = {0};
    for (int i = 0; i < fuse_group(z, from)->ops.len; i++) vec_push(z->a, &ops, fuse_group(z, from)->ops.data[i]);
    for (int i = 0; i < fuse_group(z, to)->ops.len; i++) vec_push(z->a, &ops, fuse_group(z, to)->ops.data[i]);
    fuse_set_ops(z, to, ops);
    fuse_set_ops(z, from, (OpIds){0});
}

/* The operand of |o| that is in memory, if only |o| reads it. */
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
    for (int g = 0; g < fuse_group_count(z); g++)
        for (int i = 0; i < fuse_group(z, g)->ops.len; i++) {
            const Op *o = fuse_group_op(z, g, i);
            Val v = ir_takes_inlined(z->f, o) ? operand_of(&in, o, g) : NO_VAL;
            int from = v.id ? fuse_home_of(z, v) : NOWHERE;
            if (from < 0 || from == g || !serves(&in, from, v, g)) continue;
            merge(z, from, g);
            break; /* the group's ops have changed; one inlined operand is enough */
        }
}
