/* carry_moves.c: ops between a permute and the one that takes it back work in the order before both.
 *
 *     %q = permute(%x; dims = (0, 2, 1, 3)) : f16[N, 4, 128, 32]        heads, as attention gives them
 *     %t = expand(%sines) : f32[N, 4, 128, 32]                          %u = reshape(%sines) : f32[1, 128, 1, 32]
 *     %m = mul(%q, %t)                                             =>   %t = expand(%u) : f32[N, 128, 4, 32]
 *     %z = permute(%m; dims = (0, 2, 1, 3)) : f32[N, 128, 4, 32]        %m = mul(%x, %t)
 *
 * So no kernel only moves what another has made.  What is between may be elementwise, cut or put together along any
 * dim, and repeat what is smaller; nothing else may read it.
 */
#include "passes/common/common.h"
#include "targets/target.h"

enum { MOST_OPS = 64 };

typedef struct Between { /* the ops that make |last|'s operand from what other permutes give */
    Func *f;
    int *uses;         /* by value id */
    const Dims *order; /* of |last| */
    Op *op[MOST_OPS];
    int count;
    bool meets; /* one of those permutes is the inverse */
} Between;

static bool is_scalar(const Func *f, Val v) {
    Dim count;
    return shape_count(ir_shape(f, v), &count) && dim_is_one(count);
}

static int old_dim(const Dims *order, int i) {
    return (int)(order->at[i] < 0 ? order->at[i] + order->count : order->at[i]);
}

static bool takes_back(const Dims *order, const Op *o) {
    const Dims *first = &ir_attr(o, "dims")->dims;
    for (int i = 0; i < order->count; i++)
        if (first->count != order->count || old_dim(first, old_dim(order, i)) != i) return false;
    return true;
}

static Shape reordered(const Shape *s, const Dims *order) {
    Shape out = {.rank = s->rank};
    for (int i = 0; i < s->rank; i++) out.d[i] = s->d[old_dim(order, i)];
    return out;
}

/* With ones in front of its dims, as it is seen where it is repeated. */
static Shape aligned(const Shape *s, int rank) {
    Shape out = {.rank = rank};
    for (int i = 0; i < rank; i++) out.d[i] = i < rank - s->rank ? dim_const(1) : s->d[i - (rank - s->rank)];
    return out;
}

/* Dims that are not one come in the same order after |order|. */
static bool keeps_elements(const Shape *s, const Dims *order) {
    int last = -1;
    for (int i = 0; i < order->count; i++) {
        const int dim = old_dim(order, i);
        if (dim_is_one(s->d[dim])) continue;
        if (dim < last) return false;
        last = dim;
    }
    return true;
}

/* ---- which ops are between --------------------------------------------------------------------------------------- */

static bool is_in(const Between *b, const Op *o) {
    for (int i = 0; i < b->count; i++)
        if (b->op[i] == o) return true;
    return false;
}

static bool has_any_order(const Op *o) {
    const OpInfo *info = &ir_op_info[o->code];
    if (o->code == OP_slice || o->code == OP_concat || o->code == OP_pad) return true;
    return info->flags & ELEMENTWISE && !(info->flags & RANDOM) && o->code != OP_iota && o->code != OP_broadcast &&
           o->n_out == 1;
}

static bool visit(Between *b, Val v);

static bool visit_operands(Between *b, const Op *o) {
    for (int n = 0; n < o->n_in; n++)
        if (!is_scalar(b->f, o->in[n]) && !visit(b, o->in[n])) return false;
    return true;
}

static bool visit_expand(Between *b, const Op *o) {
    const Shape s = aligned(ir_shape(b->f, o->in[0]), b->order->count);
    return is_scalar(b->f, o->in[0]) || keeps_elements(&s, b->order);
}

static bool visit(Between *b, Val v) {
    Op *o = ir_def(b->f, v);
    if (!o || ir_shape(b->f, v)->rank != b->order->count) return false;
    if (o->code == OP_permute) {
        b->meets = true;
        return takes_back(b->order, o);
    }
    if (is_in(b, o)) return true;
    if (b->count == MOST_OPS || (o->code != OP_expand && !has_any_order(o))) return false;
    b->op[b->count++] = o;
    return o->code == OP_expand ? visit_expand(b, o) : visit_operands(b, o);
}

/* Whether nothing but |last| and ops between reads what is between. */
static bool is_closed(const Between *b, const Op *last) {
    for (int i = 0; i < b->count; i++) {
        const Val v = b->op[i]->out[0];
        int inside = v.id == last->in[0].id;
        for (int j = 0; j < b->count; j++)
            for (int n = 0; n < b->op[j]->n_in; n++) inside += b->op[j]->in[n].id == v.id;
        if (inside != b->uses[v.id]) return false;
    }
    return true;
}

/* ---- the same in the order before -------------------------------------------------------------------------------- */

static void reorder_dim(const Between *b, Op *o, int rank) {
    const int dim = ir_dim_attr(o, "dim", rank);
    for (int i = 0; i < rank; i++)
        if (old_dim(b->order, i) == dim) ir_attr(o, "dim")->i = i;
}

/* What is repeated, with its dims where the result has them. */
static void align(Between *b, Op *o, OpIds *before) {
    const Shape s = aligned(ir_shape(b->f, o->in[0]), b->order->count), to = reordered(&s, b->order);
    if (is_scalar(b->f, o->in[0])) return;
    Op *view = ir_op_new(b->f, OP_reshape, &o->in[0], 1);
    view->path = o->path;
    view->layer = o->layer;
    view->pos = o->pos;
    view->region = o->region;
    o->in[0] = ir_result(b->f, view, NULL, ir_dtype(b->f, o->in[0]), to);
    b->f->body.len--; /* it is listed before |o| */
    vec_push(b->f->module->arena, before, view->id);
    vec_push(b->f->module->arena, before, o->id);
}

static void rename_ordered(Func *f, Val v, const Dims *order) {
    const char *name = ir_value(f, v)->name;
    Text t;
    if (name[0] >= '0' && name[0] <= '9') return;
    text_init(&t, f->module->arena);
    text_printf(&t, "%s.", name);
    for (int i = 0; i < order->count; i++) text_printf(&t, "%d", old_dim(order, i));
    ir_rename(f, v, text_str(&t));
}

static void carry(Between *b, OpIds *before) {
    Func *f = b->f;
    for (int i = 0; i < b->count; i++) {
        Op *o = b->op[i];
        const Val v = o->out[0];
        const Shape s = *ir_shape(f, v);
        for (int n = 0; n < o->n_in; n++) {
            const Op *def = ir_def(f, o->in[n]);
            if (o->code == OP_expand || !def || def->code != OP_permute || is_scalar(f, o->in[n])) continue;
            b->uses[o->in[n].id]--;
            o->in[n] = def->in[0];
            b->uses[o->in[n].id]++;
        }
        if (o->code == OP_slice || o->code == OP_concat || o->code == OP_pad) reorder_dim(b, o, s.rank);
        if (o->code == OP_expand) align(b, o, before);
        ir_value(f, v)->shape = reordered(&s, b->order);
        rename_ordered(f, v, b->order);
    }
}

/* ---- the function ------------------------------------------------------------------------------------------------ */

/* |before|: pairs of an op and the op that it goes before. */
static void insert(Func *f, const OpIds *before) {
    Arena *a = f->module->arena;
    OpIds body = {0};
    uint32_t *first = arena_array(a, uint32_t, f->ops.len + 1);
    for (int i = 0; i < before->len; i += 2) first[before->data[i + 1].id] = before->data[i].id;
    for (int i = 0; i < f->body.len; i++) {
        const OpId id = f->body.data[i];
        if (first[id.id]) vec_push(a, &body, (OpId){first[id.id]});
        vec_push(a, &body, id);
    }
    f->body.len = 0;
    for (int i = 0; i < body.len; i++) vec_push(a, &f->body, body.data[i]);
}

static void carry_moves(Func *f) {
    Arena *a = f->module->arena;
    OpIds before = {0};
    int *uses = ir_use_counts(f, a);
    Val *is = arena_array(a, Val, f->values.len + 1); /* what a permute gives that is gone */
    bool *is_result = ir_results(f, a);
    const int known = f->values.len;
    for (int i = f->body.len - 1; i >= 0; i--) { /* what is between comes before, and reads no permute that is gone */
        const Op *last = ir_op_at(f, i);
        if (last->code != OP_permute || is_result[last->out[0].id]) continue;
        Between b = {.f = f, .uses = uses, .order = &ir_attr(last, "dims")->dims};
        if (!visit(&b, last->in[0]) || !b.meets || !b.count || !is_closed(&b, last)) continue;
        carry(&b, &before);
        is[last->out[0].id] = last->in[0];
    }
    int kept = 0;
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        for (int n = 0; n < o->n_in; n++)
            if ((int)o->in[n].id <= known && is[o->in[n].id].id) o->in[n] = is[o->in[n].id];
        if (!o->n_out || (int)o->out[0].id > known || !is[o->out[0].id].id) f->body.data[kept++] = o->id;
    }
    f->body.len = kept;
    if (before.len) insert(f, &before);
}

bool pass_carry_moves(PassContext *c) { return each_func(c, carry_moves); }
