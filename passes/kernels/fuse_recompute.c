/* fuse_recompute.c: what is made from less memory than it fills is made again in each kernel that reads it.
 *
 *   k1 { %d = window_max_grad(%dy, %which)              k1 { %d = window_max_grad(%dy, %which)
 *        %s = reduce_sum(%d) }                     =>        %s = reduce_sum(%d) }
 *   k2 { %e = sub(%d, %m) }                             k2 { %d.2 = window_max_grad(%dy, %which)
 *                                                            %e = sub(%d.2, %m) }
 *
 * The gradient of pooling with windows that do not overlap is the operand spread over the larger image: reading that
 * again takes less time than writing and reading the result.  Only where all readers can have their own, so that it
 * never lies in memory.
 */
#include "passes/kernels/fuse.h"

enum { WORTH_IT = 4 }; /* elements made from each that is read */

typedef struct Light { /* by value id */
    bool is, blocked;  /* some reader needs it in memory */
} Light;

static bool spreads(const Func *f, const Op *o) {
    if (o->code != OP_window_max_grad) return false;
    Windows g = ir_windows(f, o);
    return g.kh <= g.stride[0] && g.kw <= g.stride[1] && g.stride[0] * g.stride[1] >= WORTH_IT;
}

/* Spread, or a cast of that in the same kernel. */
static void find_light(const Fuse *z, Light *light) {
    for (int g = 0; g < z->groups.len; g++)
        for (int i = 0; i < z->groups.data[g].ops.len; i++) {
            const Op *o = ir_op(z->f, z->groups.data[g].ops.data[i]);
            bool cast = o->code == OP_cast && light[o->in[0].id].is && fuse_home_of(z, o->in[0]) == g;
            if (spreads(z->f, o) || cast) light[o->out[0].id].is = true;
        }
}

static bool can_have_own(const Fuse *z, int g, const Op *user, int operand) {
    const Group *group = &z->groups.data[g];
    bool kind = group->kind == KERNEL_TILE || group->kind == KERNEL_ROW || group->kind == KERNEL_COLUMN;
    Dim rows, cols;
    return kind && !ir_reads_memory(z->f, user, operand) && user->code != OP_assign &&
           shape_matrix(ir_shape(z->f, user->in[operand]), &rows, &cols) && dim_equal(rows, group->rows) &&
           dim_equal(cols, group->cols);
}

static void find_blocked(const Fuse *z, Light *light) {
    for (int i = 0; i < z->f->results.len; i++) light[z->f->results.data[i].value.id].blocked = true;
    for (int g = 0; g < z->groups.len; g++)
        for (int i = 0; i < z->groups.data[g].ops.len; i++) {
            const Op *o = ir_op(z->f, z->groups.data[g].ops.data[i]);
            for (int n = 0; n < o->n_in; n++)
                if (fuse_home_of(z, o->in[n]) != g && !can_have_own(z, g, o, n)) light[o->in[n].id].blocked = true;
        }
}

typedef struct Own { /* what one group makes again */
    Fuse *z;
    const Light *light;
    int group;
    VEC(OpId) ops;
    VEC(Copy) copies;
} Own;

/* |v| made in the group, and before it what it is made from in registers. */
static Val make_own(Own *own, Val v) {
    Fuse *z = own->z;
    for (int i = 0; i < own->copies.len; i++)
        if (own->copies.data[i].of.id == v.id) return own->copies.data[i].copy;
    Op *copy = fuse_clone(z, ir_def(z->f, v));
    for (int i = 0; i < copy->n_in; i++) {
        const Op *def = ir_def(z->f, copy->in[i]);
        bool copied = def && fuse_node(z, def)->copied && fuse_node(z, def)->home == fuse_home_of(z, v);
        if (own->light[copy->in[i].id].is || copied) copy->in[i] = make_own(own, copy->in[i]);
    }
    fuse_node(z, copy)->home = own->group;
    vec_push(z->a, &own->ops, copy->id);
    vec_push(z->a, &own->copies, ((Copy){v, copy->out[0]}));
    return copy->out[0];
}

static void recompute_in(Fuse *z, int g, const Light *light) {
    Own own = {.z = z, .light = light, .group = g};
    Group *group = &z->groups.data[g];
    for (int i = 0; i < group->ops.len; i++) {
        Op *o = ir_op(z->f, group->ops.data[i]);
        for (int n = 0; n < o->n_in; n++)
            if (light[o->in[n].id].is && !light[o->in[n].id].blocked && fuse_home_of(z, o->in[n]) != g)
                o->in[n] = make_own(&own, o->in[n]);
    }
    for (int i = 0; i < group->ops.len && own.ops.len; i++) vec_push(z->a, &own.ops, group->ops.data[i]);
    if (own.ops.len) group->ops.data = own.ops.data, group->ops.len = own.ops.len, group->ops.cap = own.ops.cap;
}

/* What its own kernel does not read either is not made there.  Readers come behind: from the last kernel to the first. */
static void drop_unread(Fuse *z, const Light *light, int known) {
    bool *read = arena_array(z->a, bool, z->f->values.len + 1);
    for (int i = 0; i < z->f->results.len; i++) read[z->f->results.data[i].value.id] = true;
    for (int g = z->groups.len - 1; g >= 0; g--) {
        Group *group = &z->groups.data[g];
        int first = group->ops.len;
        for (int i = first - 1; i >= 0; i--) {
            const Op *o = ir_op(z->f, group->ops.data[i]);
            if (o->n_out && (int)o->out[0].id < known && light[o->out[0].id].is && !read[o->out[0].id]) continue;
            for (int n = 0; n < o->n_in; n++) read[o->in[n].id] = true;
            group->ops.data[--first] = group->ops.data[i];
        }
        group->ops.len -= first;
        memmove(group->ops.data, group->ops.data + first, sizeof *group->ops.data * (size_t)group->ops.len);
    }
}

void fuse_recompute(Fuse *z) {
    int known = z->f->values.len;
    Light *light = arena_array(z->a, Light, known + 1);
    find_light(z, light);
    find_blocked(z, light);
    for (int g = 0; g < z->groups.len; g++) recompute_in(z, g, light);
    drop_unread(z, light, known);
}
