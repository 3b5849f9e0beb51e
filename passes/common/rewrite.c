/* rewrite.c: see rewrite.h. */
#include "passes/common/rewrite.h"

Renames renames_new(const Func *f) {
    return (Renames){.to = arena_array(f->module->arena, Val, f->values.len + 1), .count = f->values.len};
}

Val renames_get(const Renames *r, Val v) {
    while ((int)v.id < r->count && r->to[v.id].id) v = r->to[v.id];
    return v;
}

void renames_apply(const Renames *r, Op *o) {
    for (int i = 0; i < o->n_in; i++) o->in[i] = renames_get(r, o->in[i]);
    o->pred = renames_get(r, o->pred);
}

void renames_apply_results(const Renames *r, Func *f) {
    for (int i = 0; i < f->results.len; i++) f->results.data[i].value = renames_get(r, f->results.data[i].value);
    for (int i = 0; i < f->kernels.len; i++) f->kernels.data[i]->pred = renames_get(r, f->kernels.data[i]->pred);
}

bool is_numbered(const Func *f, Val v) {
    const char *name = ir_value(f, v)->name;
    return name[0] >= '0' && name[0] <= '9';
}

Op *op_like(Func *f, const Op *o, const Val *in) {
    Op *copy = ir_op_new(f, o->code, in, o->n_in);
    for (int i = 0; i < ir_attr_count(o->code); i++) copy->attr[i] = o->attr[i];
    copy->path = o->path;
    copy->layer = o->layer;
    copy->pos = o->pos;
    copy->reason = o->reason;
    copy->region = o->region;
    return copy;
}

void take_name(Func *f, Val to, Val from) {
    const char *name = ir_value(f, from)->name;
    if (to.id == from.id || is_numbered(f, from)) return;
    ir_rename(f, from, arena_printf(f->module->arena, "%s.old", name));
    ir_rename(f, to, name);
}

#define IN(t) (1u << AMP_DT_##t)

static const unsigned holders[AMP_DT_BOOL + 1] = {
    /* by |from|: the types that hold all its numbers */
    [AMP_DT_F16] = IN(F16) | IN(TF32) | IN(F32) | IN(F64),
    [AMP_DT_BF16] = IN(BF16) | IN(TF32) | IN(F32) | IN(F64),
    [AMP_DT_TF32] = IN(TF32) | IN(F32) | IN(F64),
    [AMP_DT_F32] = IN(F32) | IN(F64),
    [AMP_DT_F64] = IN(F64),
    [AMP_DT_U8] = IN(U8) | IN(I32) | IN(I64) | IN(F16) | IN(BF16) | IN(TF32) | IN(F32) | IN(F64),
    [AMP_DT_I32] = IN(I32) | IN(I64) | IN(F64),
    [AMP_DT_I64] = IN(I64),
    [AMP_DT_BOOL] = IN(BOOL),
};

bool holds_exactly(Dtype to, Dtype from) { return from <= AMP_DT_BOOL && (holders[from] >> to & 1u); }

bool is_float(Dtype t) { return (IN(F32) | IN(F16) | IN(BF16) | IN(TF32)) >> t & 1u; }

bool is_widening(const Func *f, const Op *o) {
    return o->code == OP_cast && holds_exactly(ir_dtype(f, o->out[0]), ir_dtype(f, o->in[0]));
}
