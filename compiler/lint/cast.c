/* cast.c: an op whose type differs from everything around it.
 *
 *   f32 between 16-bit types: every kernel computes in f32 and rounds its result, so the op in 16 bits gives the same
 *   numbers as the op in f32 with a cast after it.
 *   16 bits between f32: two roundings.  A product gains by them, anything else does not.
 *
 * Ops with parameters are left alone: another type would round those too. */
#include <string.h>

#include "compiler/lint/lint.h"

typedef struct Around {
    Dtype low;
    int casts; /* of operands and results */
} Around;

/* What exp, pow and sums make may be beyond f16: other checks say what helps there. */
static bool may_overflow(const LintFunc *g, const Op *o) {
    const char *reader;
    const Opcode growing[] = {OP_exp, OP_expm1, OP_pow, OP_sum, OP_cumsum, OP_norm, OP_var, OP_prod, OP_mul};
    for (size_t i = 0; i < sizeof growing / sizeof growing[0]; i++)
        if (o->code == growing[i])
            return lint_ends_in_f16(g, o, &reader) && !(range_largest(lint_range(g, o->out[0])) <= F16_MAX);
    return false;
}

static bool computes(const LintFunc *g, const Op *o) {
    const int skipped = EFFECT | OPTIMIZER | BACKWARD | LEADS;
    return o->code != OP_cast && o->n_in && o->n_out == 1 && !(ir_op_info[o->code].flags & skipped) && o->reason &&
           !may_overflow(g, o);
}

/* A cast that nothing else of the forward pass reads goes where |o| has the other type. */
static bool is_alone(const LintFunc *g, const Op *cast, const Op *o) {
    const LintOps *readers = &g->readers[cast->out[0].id];
    for (int i = 0; i < readers->len; i++)
        if (readers->data[i] != o && lint_is_forward(readers->data[i])) return false;
    return true;
}

/* All operands are of the other kind of type, or casts from it, or numbers of the model. */
static bool reads_casts(const LintFunc *g, const Op *o, bool from_low, Around *a) {
    double number;
    int data = 0;
    for (int i = 0; i < o->n_in; i++) {
        const Dtype t = ir_dtype(g->f, o->in[i]);
        const Op *maker = ir_def(g->f, o->in[i]);
        if (t == AMP_DT_I32 || t == AMP_DT_I64 || t == AMP_DT_BOOL || lint_number(g, o->in[i], &number)) continue;
        if (from_low && is_low(t)) a->low = t; /* f32_out: it reads them as they are */
        else if (maker && maker->code == OP_cast && lint_is_forward(maker) &&
                 is_low(ir_dtype(g->f, maker->in[0])) == from_low && is_low(t) != from_low) {
            a->low = from_low ? ir_dtype(g->f, maker->in[0]) : t;
            a->casts += is_alone(g, maker, o);
        } else return false;
        data++;
    }
    return data > 0;
}

static bool is_result(const LintFunc *g, Val v) {
    for (int i = 0; i < g->f->results.len; i++)
        if (g->f->results.data[i].value.id == v.id) return true;
    return false;
}

/* All readers of the forward pass are casts to |low|, or with |low| NONE to f32. */
static bool ends_in_casts(const LintFunc *g, const Op *o, Dtype low, Around *a) {
    const LintOps *readers = &g->readers[o->out[0].id];
    int casts = 0;
    if (is_result(g, o->out[0])) return false;
    for (int i = 0; i < readers->len; i++) {
        const Op *reader = readers->data[i];
        if (!lint_is_forward(reader)) continue;
        if (reader->code != OP_cast || lint_dtype(g, reader) != (low ? low : AMP_DT_F32)) return false;
        casts++;
    }
    a->casts += casts;
    return casts > 0;
}

static void tell(Lint *x, const Op *o, bool in_f32, const Around *a) {
    const char *name = ir_op_info[o->code].name, *low = amp_dtype_name(a->low), *word = in_f32 ? "low" : "f32";
    const char *help = in_f32 ? "kernels compute in f32 and round once: the forward pass gives the same numbers"
                              : "two roundings less; what it makes is stored in 4 bytes";
    if (o->reason->is_override) {
        help = arena_printf(x->arena, "leave out line %d of %s", o->reason->where.line, o->reason->where.file);
        word = NULL;
    }
    const char *casts = a->casts == 1 ? "1 cast" : arena_printf(x->arena, "%d casts", a->casts);
    if (in_f32) lint_add(x, o, word, help, "%s is f32 between %s and %s: %s", name, low, low, casts);
    else lint_add(x, o, word, help, "%s is %s between f32 and f32: %s", name, low, casts);
}

/* With words of a person, or by the bytes that either type moves (algorithm min_cut). */
static bool is_decided_with_care(const Lint *x, const Op *o) {
    return (o->reason->is_override && o->reason->because) ||
           (x->in->m->batch_hint && !strcmp(o->reason->rule, "follow"));
}

void lint_cast(Lint *x, const LintFunc *g, const Op *o) {
    Around a = {0};
    if (!computes(g, o) || is_decided_with_care(x, o)) return;
    const Dtype t = lint_dtype(g, o);
    if (t == AMP_DT_F32 && reads_casts(g, o, true, &a) && ends_in_casts(g, o, a.low, &a)) tell(x, o, true, &a);
    if (is_low(t) && !(ir_op_info[o->code].flags & PRODUCT) && reads_casts(g, o, false, &a) &&
        ends_in_casts(g, o, AMP_DT_NONE, &a))
        tell(x, o, false, &a);
}
