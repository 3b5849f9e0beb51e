/* infer_elementwise.c: shapes of ops that work element by element. */
#include "ir/infer.h"

/* ---- one shape ------------------------------------------------------------------------------- */

/* Of the ops with one shape, only these mix in a scalar, their second operand. */
static bool takes_scalar(Opcode code) { return code == OP_unscale || code == OP_clip_by_norm; }

static const char *const unary_names[] = {"abs", "silu", "softplus", "erf", "clamp", "pow", "rsqrt"};

/* unary_grad says of which op. */
static const char *check_of(const Inferring *c) {
    const char *of = c->o->code == OP_unary_grad ? ir_attr(c->o, "of")->s : NULL;
    if (c->o->code != OP_unary_grad) return NULL;
    for (size_t i = 0; of && i < sizeof unary_names / sizeof unary_names[0]; i++)
        if (!strcmp(of, unary_names[i])) return NULL;
    return infer_mismatch(c, "`of` names no op that has this gradient (%s)", of ? of : "");
}

const char *infer_same(Inferring *c) {
    bool is_scaling = takes_scalar(c->o->code);
    const char *wrong = is_scaling ? infer_check_scalars(c, 1, 2) : infer_check_dim(c);
    for (int i = 1; i < c->o->n_in && !is_scaling; i++)
        if (!shape_equal(infer_in(c, 0), infer_in(c, i))) return infer_mismatch(c, "shapes differ");
    if (!wrong) wrong = check_of(c);
    return wrong ? wrong : infer_result(c, infer_dtype(c, 0), *infer_in(c, 0));
}

const char *infer_same_new_dtype(Inferring *c) { return infer_result(c, c->t, *infer_in(c, 0)); }

/* ---- broadcasting ---------------------------------------------------------------------------- */

static const char *broadcast_all(const Inferring *c, Shape *s) {
    *s = *infer_in(c, 0);
    for (int i = 1; i < c->o->n_in; i++) {
        Shape wider;
        if (!shape_broadcast(s, infer_in(c, i), &wider)) return infer_mismatch(c, "shapes do not broadcast");
        *s = wider;
    }
    return NULL;
}

const char *infer_broadcast(Inferring *c) {
    Shape s;
    const char *wrong = broadcast_all(c, &s);
    return wrong ? wrong : infer_result(c, infer_dtype(c, 0), s);
}

const char *infer_compare(Inferring *c) {
    Shape s;
    const char *wrong = broadcast_all(c, &s);
    return wrong ? wrong : infer_result(c, AMP_DT_BOOL, s);
}

const char *infer_select(Inferring *c) {
    Shape s;
    const char *wrong = broadcast_all(c, &s);
    return wrong ? wrong : infer_result(c, infer_dtype(c, 1), s);
}

/* (dy, c): c was broadcast to dy. */
const char *infer_where_grad(Inferring *c) {
    Shape s;
    if (!shape_broadcast(infer_in(c, 0), infer_in(c, 1), &s) || !shape_equal(&s, infer_in(c, 0)))
        return infer_mismatch(c, "the condition does not broadcast to the gradient");
    infer_result(c, infer_dtype(c, 0), s);
    return infer_result(c, infer_dtype(c, 0), s);
}
