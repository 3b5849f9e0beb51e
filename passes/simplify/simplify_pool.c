/* simplify_pool.c: relu commutes with max pooling, and costs less behind it, forward and backward.
 *
 *   %r = relu(%x)                            %q, %w = max_pool2d(%x)
 *   %p, %w = max_pool2d(%r)             =>   %p = relu(%q)
 *   %dr = max_pool2d_grad(%dp, %w, %r)       %dq = relu_grad(%dp, %p)
 *   %dx = relu_grad(%dr, %r)                 %dx = max_pool2d_grad(%dq, %w, %x)
 *
 * No bit of %p and %dx changes: a window may choose another element only where its largest is not positive, and there
 * the gradient is zero.  Only where nothing else reads %r and %dr, and where pooling makes the image smaller.
 */
#include "passes/common/rewrite.h"
#include "passes/simplify/simplify.h"

typedef struct Pooled {
    const Op *pool;
    bool shared;        /* something else reads the relu's result */
    Val result, chosen; /* %p and %w, once they are made */
} Pooled;

typedef struct Commuting {
    Func *f;
    Renames renames;
    Pooled *pooled; /* by id of %r */
    const int *uses;
} Commuting;

static bool shrinks(const Op *pool) {
    const Dims *stride = &ir_attr(pool, "stride")->dims;
    return stride->at[0] > 1 || stride->at[stride->count - 1] > 1;
}

/* relu_grad of what max_pool2d_grad made for the same relu. */
static bool is_masked_pool_grad(const Commuting *c, const Op *o) {
    const Op *grad = o->code == OP_relu_grad ? ir_def(c->f, o->in[0]) : NULL;
    return grad && grad->code == OP_max_pool2d_grad && grad->in[2].id == o->in[1].id && c->uses[o->in[0].id] == 1;
}

static bool is_pattern(const Commuting *c, const Op *o, int operand) {
    switch (o->code) {
    case OP_max_pool2d: return shrinks(o);
    case OP_max_pool2d_grad: return operand == 2;
    case OP_relu_grad: return operand == 1 && is_masked_pool_grad(c, o);
    default: return false;
    }
}

static void note_reader(Commuting *c, const Op *o, int operand) {
    const Op *def = ir_def(c->f, o->in[operand]);
    if (!def || def->code != OP_relu) return;
    Pooled *p = &c->pooled[o->in[operand].id];
    if (!is_pattern(c, o, operand) || (o->code == OP_max_pool2d && p->pool)) p->shared = true;
    if (o->code == OP_max_pool2d) p->pool = o;
}

static void find_pooled(Commuting *c) {
    for (int i = 0; i < c->f->body.len; i++) {
        const Op *o = ir_op_at(c->f, i);
        for (int n = 0; n < o->n_in; n++) note_reader(c, o, n);
    }
    for (int i = 0; i < c->f->results.len; i++) c->pooled[c->f->results.data[i].value.id].shared = true;
}

static bool commutes(const Commuting *c, Val relu) { return c->pooled[relu.id].pool && !c->pooled[relu.id].shared; }

static Val replace(Commuting *c, Val from, Val to) {
    take_name(c->f, to, from);
    return c->renames.to[from.id] = to;
}

static void pool_before_relu(Commuting *c, const Op *pool) {
    const Op *relu = ir_def(c->f, pool->in[0]);
    Dtype t = ir_dtype(c->f, pool->out[0]);
    Pooled *p = &c->pooled[pool->in[0].id];
    Op *first = op_like(c->f, pool, relu->in);
    Val largest = ir_make_results(c->f, first, t, NULL);
    p->chosen = replace(c, pool->out[1], first->out[1]);
    p->result = replace(c, pool->out[0], ir_make_results(c->f, op_like(c->f, relu, &largest), t, NULL));
}

static void mask_before_scatter(Commuting *c, const Op *mask) {
    const Op *scatter = ir_def(c->f, mask->in[0]), *relu = ir_def(c->f, mask->in[1]);
    Dtype t = ir_dtype(c->f, mask->out[0]);
    const Pooled *p = &c->pooled[mask->in[1].id];
    Op *first = op_like(c->f, mask, (Val[]){scatter->in[0], p->result});
    Val masked = ir_make_results(c->f, first, t, NULL);
    Op *second = op_like(c->f, scatter, (Val[]){masked, p->chosen, relu->in[0]});
    replace(c, mask->out[0], ir_make_results(c->f, second, t, NULL));
}

/* What is replaced stays without readers, for ir_compact. */
void simplify_pooled_relus(Func *f) {
    Arena *a = f->module->arena;
    Commuting c = {.f = f, .renames = renames_new(f), .uses = ir_use_counts(f, a)};
    c.pooled = arena_array(a, Pooled, f->values.len + 1);
    find_pooled(&c);
    int count = f->body.len;
    const OpId *body = f->body.data;
    f->body.data = NULL;
    f->body.len = f->body.cap = 0;
    for (int i = 0; i < count; i++) {
        Op *o = ir_op(f, body[i]);
        renames_apply(&c.renames, o);
        vec_push(a, &f->body, body[i]);
        if (o->code == OP_max_pool2d && commutes(&c, o->in[0])) pool_before_relu(&c, o);
        else if (o->code == OP_relu_grad && commutes(&c, o->in[1]) && is_masked_pool_grad(&c, o))
            mask_before_scatter(&c, o);
    }
    renames_apply_results(&c.renames, f);
}
