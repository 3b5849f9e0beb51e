/* infer_common.c: messages, results and checks that the shape rules share. */
#include "ir/infer.h"

#include "base/dtypes.h"

/* ---- messages ---------------------------------------------------------------------------------------------------- */

const char *infer_mismatch(const Inferring *c, const char *fmt, ...) {
    Arena *a = c->f->module->arena;
    const char *name = ir_op_info[c->o->code].name;
    va_list args;
    va_start(args, fmt);
    const char *what = arena_vprintf(a, fmt, args);
    va_end(args);
    c->out->wrong = arena_printf(a, "%s: %s", name, what);
    Text t;
    text_init(&t, a);
    text_printf(&t, "%s: %s", name, what);
    for (int i = 0; i < c->o->n_in; i++) {
        const Value *v = ir_value(c->f, c->o->in[i]);
        text_printf(&t, "%s%%%s is ", i ? ", " : ": ", v->name);
        type_print(&t, v->dtype, &v->shape);
    }
    return text_str(&t);
}

const char *infer_varies(const Inferring *c, Dim d, const char *what) {
    return dim_varies(d) ? infer_mismatch(c, "%s may not depend on %s", what, d.n ? "N" : "T") : NULL;
}

const char *infer_differing(const Inferring *c, const char *what, Dim a, Dim b) {
    Shape pair = shape_of(2, (Dim[]){a, b});
    return infer_mismatch(c, "%s differ, %s", what, shape_text(c->f->module->arena, &pair)); /* "[784, 512]" */
}

const char *infer_other_shape(const Inferring *c, const char *what, const Shape *is, const Shape *wanted) {
    return infer_mismatch(c, "%s is %s, not %s", what, shape_text(c->f->module->arena, is),
                          shape_text(c->f->module->arena, wanted));
}

/* ---- operands and results ---------------------------------------------------------------------------------------- */

const Shape *infer_in(const Inferring *c, int i) { return ir_shape(c->f, c->o->in[i]); }

const char *infer_result(Inferring *c, Dtype t, Shape s) {
    c->out->dtype[c->out->count] = t;
    c->out->shape[c->out->count++] = s;
    return NULL;
}

static bool is_short_float(Dtype t) { return amp_readable_dtype(t) == AMP_DT_F32; }

Dtype infer_dtype(const Inferring *c, int operand) {
    Dtype t = ir_dtype(c->f, c->o->in[operand]);
    return is_short_float(t) ? c->t : t;
}

const Value *infer_given(const Inferring *c, int i) { return i < c->o->n_out ? ir_value(c->f, c->o->out[i]) : NULL; }

int ir_dim_attr(const Op *o, const char *name, int rank) {
    int64_t dim = ir_attr(o, name)->i;
    return (int)(dim < 0 ? dim + rank : dim);
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

const char *infer_check_dim(const Inferring *c) {
    const AttrValue *dim = ir_attr(c->o, "dim");
    int rank = infer_in(c, 0)->rank;
    if (dim && (dim->i < -rank || dim->i >= rank))
        return infer_mismatch(c, "dim %lld is not one of the operand's", (long long)dim->i);
    return NULL;
}

const char *infer_check_scalars(const Inferring *c, int first, int end) {
    for (int i = first; i < end && i < c->o->n_in; i++)
        if (infer_in(c, i)->rank) return infer_mismatch(c, "operand %d is not a scalar", i + 1);
    return NULL;
}

const char *infer_check_like(const Inferring *c, int i, const char *what, const Shape *wanted) {
    return shape_equal(infer_in(c, i), wanted) ? NULL : infer_other_shape(c, what, infer_in(c, i), wanted);
}
