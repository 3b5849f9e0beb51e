/* graph.c: the graph of a step as checks ask about it. */
#include <math.h>
#include <string.h>

#include "compiler/casts.h"
#include "compiler/lint/lint.h"

bool is_low(Dtype t) { return t == AMP_DT_F16 || t == AMP_DT_BF16; }

Dtype lint_dtype(const LintFunc *g, const Op *o) { return o->n_out ? ir_dtype(g->f, o->out[0]) : AMP_DT_NONE; }

bool lint_is_forward(const Op *o) {
    return !casts_is_gradient(o) && (!o->reason || !strcmp(casts_phase(o), "forward"));
}

Sizes lint_at(const amp_lint_options *want) { return (Sizes){want->batch, ASSUMED_T}; }

LintFunc lint_func(Arena *a, const Func *f, Sizes at) {
    LintFunc g = {.f = f, .readers = arena_array(a, LintOps, f->values.len)};
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        for (int n = 0; n < o->n_in; n++) vec_push(a, &g.readers[o->in[n].id], o);
    }
    g.ranges = lint_ranges(a, &g, at);
    return g;
}

/* Ops that hand numbers on as they are. */
static bool is_view(const Op *o) {
    static const Opcode views[] = {OP_cast,  OP_reshape, OP_flatten, OP_transpose, OP_permute,
                                   OP_slice, OP_expand,  OP_detach,  OP_barrier};
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++)
        if (o->code == views[i]) return true;
    return false;
}

const Op *lint_maker(const LintFunc *g, Val v, Dtype *low) {
    for (;;) {
        const Op *o = ir_def(g->f, v);
        if (low && is_low(ir_dtype(g->f, v))) *low = ir_dtype(g->f, v);
        if (!o || !is_view(o)) return o;
        v = o->in[0];
    }
}

static Val behind_casts(const LintFunc *g, Val v) {
    for (;;) {
        const Op *o = ir_def(g->f, v);
        if (!o || (o->code != OP_cast && o->code != OP_detach && o->code != OP_barrier)) return v;
        v = o->in[0];
    }
}

bool lint_is_same(const LintFunc *g, Val a, Val b) { return behind_casts(g, a).id == behind_casts(g, b).id; }

bool lint_number(const LintFunc *g, Val v, double *out) {
    const Op *o = lint_maker(g, v, NULL);
    if (!o || (o->code != OP_const && o->code != OP_full) || !amp_dtype_size(ir_dtype(g->f, v))) return false;
    if (ir_dtype(g->f, o->out[0]) == AMP_DT_I32 || ir_dtype(g->f, o->out[0]) == AMP_DT_I64) return false;
    *out = ir_attr(o, "value")->f;
    return true;
}

bool lint_ends_in_f16(const LintFunc *g, const Op *o, const char **reader) {
    *reader = NULL;
    if (lint_dtype(g, o) == AMP_DT_F16) return true;
    if (lint_dtype(g, o) != AMP_DT_F32) return false;
    const LintOps *readers = &g->readers[o->out[0].id];
    for (int i = 0; i < readers->len; i++) {
        const Op *cast = readers->data[i];
        if (cast->code != OP_cast || lint_dtype(g, cast) != AMP_DT_F16 || !lint_is_forward(cast)) continue;
        *reader = cast->reason && cast->reason->neighbour ? cast->reason->neighbour : cast->path;
        return true;
    }
    return false;
}

const char *lint_f32_for_readers(Lint *x, const LintFunc *g, const Op *o, const char *otherwise) {
    const LintOps *readers = &g->readers[o->out[0].id];
    Text names;
    text_init(&names, x->arena);
    for (int i = 0; i < readers->len; i++) {
        const char *name = ir_op_info[readers->data[i]->code].name;
        if (!lint_is_forward(readers->data[i]) || !is_low(lint_dtype(g, readers->data[i]))) continue;
        if (strstr(text_str(&names), name)) continue;
        text_printf(&names, "%s%s", names.len ? ", " : "", name);
    }
    const char *too = names.len ? arena_printf(x->arena, "and f32 for what reads it: %s", text_str(&names)) : NULL;
    return too && otherwise ? arena_printf(x->arena, "%s; %s", too, otherwise) : too ? too : otherwise;
}

double lint_reduced(const LintFunc *g, const Op *o, Sizes at) {
    const Shape *s = ir_shape(g->f, o->in[0]);
    const Dims *dims = &ir_attr(o, "dims")->dims;
    double count = 1.0;
    for (int i = 0; i < s->rank; i++) {
        bool reduced = !dims->count;
        for (int k = 0; k < dims->count; k++) reduced = reduced || dims->at[k] == i || dims->at[k] + s->rank == i;
        if (reduced) count *= (double)dim_eval(s->d[i], at);
    }
    return count;
}

Range lint_range(const LintFunc *g, Val v) { return g->ranges[v.id]; }

double range_largest(Range r) { return fmax(fabs(r.low), fabs(r.high)); }
