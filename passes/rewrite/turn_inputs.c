/* turn_inputs.c: images as convolutions read them, made of an input once, by one kernel.
 *
 *     %h  = cast(%x) : f16[N, 3, 224, 224]                %t = permute(%x; dims = (0, 2, 3, 1)) : f32[N, 224, 224, 3]
 *     %t  = permute(%h; dims = (0, 2, 3, 1))              %i = cast(%t) : f16[N, 224, 224, 3]
 *     %y  = conv(%t, %w)                             =>   %y = conv(%i, %w)
 *     %h2 = cast(%x) : f16[N, 3, 224, 224]                %dw = conv_weight(%i, %dy)
 *     %t2 = permute(%h2; dims = (0, 2, 3, 1))
 *     %dw = conv_weight(%t2, %dy)
 *
 * Movement reads memory, so what is rounded before it would be stored first.  The forward product and the weight's
 * gradient have a copy each from lower on, so that nothing is kept where memory is short of all; here it costs more to
 * read the image again.
 */
#include "passes/common/common.h"
#include "targets/target.h"

enum { MAX_CHAIN = 6 };

typedef struct Chain { /* from an input to what a convolution reads, in this order */
    Op *op[MAX_CHAIN];
    int count;
} Chain;

typedef VEC(Chain) Chains;

static bool find_chain(const Func *f, Val v, Chain *out) {
    Op *last_first[MAX_CHAIN];
    int count = 0;
    for (Op *o = ir_def(f, v); o; o = ir_def(f, v)) {
        const bool moves = o->code == OP_cast || o->code == OP_permute || o->code == OP_reshape;
        if (!moves || count == MAX_CHAIN || o->after) return false;
        last_first[count++] = o;
        v = o->in[0];
    }
    *out = (Chain){.count = count};
    for (int i = 0; i < count; i++) out->op[i] = last_first[count - 1 - i];
    return count && ir_value(f, v)->kind == VAL_INPUT;
}

/* ---- the same twice ---------------------------------------------------------------------------------------------- */

static bool is_same(const Func *f, const Op *a, const Op *b) {
    if (a->code != b->code || ir_dtype(f, a->out[0]) != ir_dtype(f, b->out[0])) return false;
    if (a->code == OP_permute) {
        const Dims *x = &ir_attr(a, "dims")->dims, *y = &ir_attr(b, "dims")->dims;
        if (x->count != y->count || memcmp(x->at, y->at, sizeof x->at[0] * (size_t)x->count)) return false;
    }
    return shape_equal(ir_shape(f, a->out[0]), ir_shape(f, b->out[0]));
}

static bool are_same(const Func *f, const Chain *a, const Chain *b) {
    if (a->count != b->count || a->op[0]->in[0].id != b->op[0]->in[0].id) return false;
    for (int i = 0; i < a->count; i++)
        if (!is_same(f, a->op[i], b->op[i])) return false;
    return true;
}

/* ---- rounded last ------------------------------------------------------------------------------------------------ */

/* What an op is, but for its operand and its result. */
static void take(Op *o, const Op *from) {
    o->code = from->code;
    o->attr = from->attr;
    o->path = from->path;
    o->layer = from->layer;
    o->pos = from->pos;
    o->reason = from->reason;
}

/* A cast before movement goes after it, where nothing else reads what is between. */
static void round_last(Func *f, const Chain *c, const int *uses) {
    const Op first = *c->op[0];
    if (first.code != OP_cast || c->count < 2 || ir_dtype(f, first.in[0]) != AMP_DT_F32) return;
    for (int i = 0; i + 1 < c->count; i++)
        if (uses[c->op[i]->out[0].id] != 1 || c->op[i + 1]->code == OP_cast) return;
    for (int i = 0; i + 1 < c->count; i++) {
        Op *o = c->op[i];
        const Shape s = *ir_shape(f, c->op[i + 1]->out[0]);
        take(o, c->op[i + 1]);
        o->n_out = 0;
        c->op[i + 1]->in[0] = ir_result(f, o, NULL, AMP_DT_F32, s);
    }
    take(c->op[c->count - 1], &first);
}

/* ---- the function ------------------------------------------------------------------------------------------------ */

/* What was made of an input and is not read any more. */
static void drop_unread(Func *f, const bool *of_input, int *uses) {
    int kept = f->body.len;
    for (int i = f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, i);
        if (of_input[o->id.id] && !uses[o->out[0].id]) uses[o->in[0].id]--;
        else f->body.data[--kept] = f->body.data[i];
    }
    f->body.len -= kept;
    if (f->body.len) memmove(f->body.data, f->body.data + kept, sizeof *f->body.data * (size_t)f->body.len);
}

static void turn_inputs(Func *f) {
    Arena *a = f->module->arena;
    Chains made = {0};
    bool *of_input = arena_array(a, bool, f->ops.len + 1);
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        Chain c;
        if (!ir_is_convolution(o) || !find_chain(f, o->in[0], &c)) continue;
        int known = 0;
        while (known < made.len && !are_same(f, &made.data[known], &c)) known++;
        if (known == made.len) vec_push(a, &made, c);
        const Chain *first = &made.data[known];
        for (int j = 0; j < c.count; j++) of_input[c.op[j]->id.id] = true;
        o->in[0] = first->op[first->count - 1]->out[0];
    }
    int *uses = ir_use_counts(f, a);
    drop_unread(f, of_input, uses);
    for (int i = 0; i < made.len; i++) round_last(f, &made.data[i], uses);
}

bool pass_turn_inputs(PassContext *c) { return each_func(c, turn_inputs); }
