/* lookup.c: finding what a module holds: functions, values, ops, attributes, states, results. */
#include "ir/ir.h"

/* ---- functions --------------------------------------------------------------------------------------------------- */

Func *ir_func_find(const Module *m, const char *name) {
    for (int i = 0; i < m->funcs.len; i++)
        if (!strcmp(m->funcs.data[i]->name, name)) return m->funcs.data[i];
    return NULL;
}

Func *ir_program(const Module *m, ProgramKind kind) {
    for (int i = 0; i < m->funcs.len; i++)
        if (m->funcs.data[i]->kind == kind) return m->funcs.data[i];
    return NULL;
}

Region *ir_region(Func *f, uint32_t region) {
    return region == 0 || region > (uint32_t)f->regions.len ? NULL : &f->regions.data[region - 1];
}

/* ---- values and ops ---------------------------------------------------------------------------------------------- */

Value *ir_value(const Func *f, Val v) { return v.id < (uint32_t)f->values.len ? f->values.data[v.id] : NULL; }

Op *ir_op(const Func *f, OpId o) { return o.id < (uint32_t)f->ops.len ? f->ops.data[o.id] : NULL; }

OpId ir_op_id(const Func *f, const Op *o) {
    if (ir_op(f, o->id) == o) return o->id;
    for (int i = 1; i < f->ops.len; i++) /* a copied struct carries the id of its original */
        if (f->ops.data[i] == o) return (OpId){(uint32_t)i};
    return (OpId){0};
}

Op *ir_def(const Func *f, Val v) {
    const Value *value = ir_value(f, v);
    return value && value->kind == VAL_RESULT ? ir_op(f, value->def) : NULL;
}

Dtype ir_dtype(const Func *f, Val v) { return ir_value(f, v)->dtype; }

const Shape *ir_shape(const Func *f, Val v) { return &ir_value(f, v)->shape; }

AttrValue *ir_attr(const Op *o, const char *name) {
    const AttrSpec *specs = ir_op_info[o->code].attrs;
    for (int i = 0; i < MAX_ATTRS && specs[i].type != ATTR_END; i++)
        if (!strcmp(specs[i].name, name)) return (AttrValue *)&o->attr[i];
    return NULL;
}

/* ---- states, results, calls -------------------------------------------------------------------------------------- */

State *ir_state_find(const Module *m, const char *name) { return table_get(&m->state_names, name); }

State *ir_state_of(const Func *f, Val v) {
    const Value *value = ir_value(f, v);
    return value && value->kind == VAL_STATE ? ir_state_find(f->module, value->name) : NULL;
}

const Result *ir_find_result(const Func *f, const char *name) {
    uintptr_t number = (uintptr_t)table_get(&f->result_names, name);
    return number ? &f->results.data[number - 1] : NULL;
}

const Result *ir_result_of_kind(const Func *f, ResultKind kind, int32_t block) {
    for (int i = 0; i < f->results.len; i++)
        if (f->results.data[i].kind == kind && f->results.data[i].block == block) return &f->results.data[i];
    return NULL;
}

State *ir_result_state(const Func *f, const Result *r) {
    return r->kind == RESULT_GRADIENT || r->kind == RESULT_UPDATE ? ir_state_find(f->module, r->of) : NULL;
}

CallArg *ir_call_arg(const Call *c, const char *name) {
    for (int i = 0; i < c->args.len; i++)
        if (!strcmp(c->args.data[i].name, name)) return &c->args.data[i];
    return NULL;
}
