/* build.c: making modules: functions, values, ops, states, calls. */
#include "ir/names.h"

Module *ir_module_new(Arena *a, const char *name) {
    Module *m = arena_new(a, Module);
    m->arena = a;
    m->name = arena_strdup(a, name);
    m->accumulate = 1;
    m->least_batch = 1;
    return m;
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

Func *ir_func_new(Module *m, const char *name) {
    Func *f = arena_new(m->arena, Func);
    f->module = m;
    f->name = arena_strdup(m->arena, name);
    f->kind = amp_program_kind(name);
    vec_push(m->arena, &f->values, NULL); /* id 0 is "none" */
    vec_push(m->arena, &f->ops, NULL);
    vec_push(m->arena, &m->funcs, f);
    return f;
}

Func *ir_program_new(Module *m, ProgramKind kind) { return ir_func_new(m, amp_program_word(kind)); }

void ir_program_become(Func *f, ProgramKind kind) {
    f->kind = kind;
    f->name = amp_program_word(kind);
}

void ir_func_remove(Module *m, Func *f) {
    int kept = 0;
    for (int i = 0; i < m->funcs.len; i++)
        if (m->funcs.data[i] != f) m->funcs.data[kept++] = m->funcs.data[i];
    m->funcs.len = kept;
}

void ir_add_result(Func *f, const char *name, Val v) {
    Result r = {.name = arena_strdup(f->module->arena, name), .value = v};
    ResultName n = amp_result_name(r.name);
    r.kind = n.kind;
    r.block = n.block;
    r.of = n.of;
    vec_push(f->module->arena, &f->results, r);
    if (!table_get(&f->result_names, name))
        table_set(f->module->arena, &f->result_names, name, (void *)(uintptr_t)f->results.len);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

Val ir_find(const Func *f, const char *name) { return names_find(f, name); }

Val ir_new_value(Func *f, const char *hint, Dtype t, Shape s, ValKind kind) {
    Arena *a = f->module->arena;
    Value *value = arena_new(a, Value);
    *value = (Value){.name = names_unique(f, hint), .dtype = t, .shape = s, .kind = kind};
    Val v = {(uint32_t)f->values.len};
    vec_push(a, &f->values, value);
    names_add(f, v);
    return v;
}

void ir_rename(Func *f, Val v, const char *hint) {
    Value *value = ir_value(f, v);
    if (!strcmp(value->name, hint)) return;
    value->name = names_unique(f, hint);
    names_add(f, v);
}

Val ir_add_input(Func *f, const char *name, Dtype t, Shape s) {
    Val v = ir_new_value(f, name, t, s, VAL_INPUT);
    vec_push(f->module->arena, &f->inputs, v);
    return v;
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

State *ir_state_new(Module *m, const char *name, StateRole role, Dtype t, Shape s) {
    State *state = arena_new(m->arena, State);
    *state = (State){.name = arena_strdup(m->arena, name), .role = role, .dtype = t, .shape = s, .storage = t};
    if (role == STATE_COUNTER || role == STATE_SCALER) state->counter = amp_counter_name(name);
    vec_push(m->arena, &m->states, state);
    if (!table_get(&m->state_names, name)) table_set(m->arena, &m->state_names, name, state);
    return state;
}

static const struct {
    StateRole role;
    Dtype dtype;
} counters[COUNTER_KINDS] = {
#define COUNTER(kind, word, forms, role, type) [COUNTER_##kind] = {STATE_##role, AMP_DT_##type},
#include "base/names.def"
};

State *ir_counter_new(Module *m, CounterKind kind, int32_t block) {
    return ir_state_new(m, amp_counter_text(m->arena, kind, block), counters[kind].role, counters[kind].dtype,
                        shape_scalar());
}

State *ir_counter(Module *m, CounterKind kind, int32_t block) {
    State *s = ir_state_find(m, amp_counter_text(m->arena, kind, block));
    return s ? s : ir_counter_new(m, kind, block);
}

Shape ir_hwio_shape(const Shape *s) { return shape_of(4, (Dim[]){s->d[2], s->d[3], s->d[1], s->d[0]}); }

Shape ir_buffer_shape(const Func *f, const Buffer *b) {
    Shape s = *ir_shape(f, b->value);
    if (b->pitch) s.d[s.rank - 1] = dim_const(b->pitch);
    return s;
}

Shape ir_state_shape(const State *s) { return s->hwio ? ir_hwio_shape(&s->shape) : s->shape; }

Val ir_use_state(Func *f, const State *s) {
    Val v = names_find(f, s->name);
    if (v.id && ir_value(f, v)->kind == VAL_STATE) return v;
    if (v.id) { /* the state has the better claim to its name */
        Value *other = ir_value(f, v);
        other->name = names_unique(f, s->name);
        names_add(f, v);
    }
    v = ir_new_value(f, s->name, s->dtype, ir_state_shape(s), VAL_STATE);
    vec_push(f->module->arena, &f->inputs, v);
    return v;
}

/* ---- ops --------------------------------------------------------------------------------------------------------- */

Op *ir_op_new(Func *f, Opcode code, const Val *in, int n_in) {
    Arena *a = f->module->arena;
    Op *o = arena_new(a, Op);
    o->code = code;
    o->n_in = n_in;
    o->in = arena_array(a, Val, n_in + 1);
    if (n_in) memcpy(o->in, in, sizeof(Val) * (size_t)n_in);
    int attrs = ir_attr_count(code);
    o->attr = attrs ? arena_array(a, AttrValue, attrs) : NULL;
    for (int i = 0; i < attrs; i++) o->attr[i] = ir_op_info[code].attrs[i].initial;
    o->id = (OpId){(uint32_t)f->ops.len};
    vec_push(a, &f->ops, o);
    vec_push(a, &f->body, o->id);
    return o;
}

Val ir_result(Func *f, Op *o, const char *hint, Dtype t, Shape s) {
    Val v = ir_new_value(f, hint, t, s, VAL_RESULT);
    Value *value = ir_value(f, v);
    value->def = ir_op_id(f, o);
    value->out = o->n_out;
    Val *out = arena_array(f->module->arena, Val, o->n_out + 1);
    if (o->n_out) memcpy(out, o->out, sizeof(Val) * (size_t)o->n_out);
    out[o->n_out++] = v;
    o->out = out;
    return v;
}

/* A result that the op's maker gave (GIVEN) stays.  Where the shape rule fails, the results are scalars, so that the
 * caller has values to go on with and the verifier an op to name. */
Val ir_make_results(Func *f, Op *o, Dtype t, const char *hint) {
    InferredTypes types = {0};
    if (ir_infer(f, o, t, &types)) {
        types = (InferredTypes){.count = ir_op_arity(o->code).out};
        for (int i = 0; i < types.count; i++) types.dtype[i] = t;
    }
    for (int i = o->n_out; i < types.count; i++) ir_result(f, o, hint, types.dtype[i], types.shape[i]);
    return o->n_out ? o->out[0] : NO_VAL;
}

Val ir_emit(Func *f, Opcode code, Dtype t, const char *hint, int n_in, ...) {
    Val *in = arena_array(f->module->arena, Val, n_in + 1);
    va_list args;
    va_start(args, n_in);
    for (int i = 0; i < n_in; i++) in[i] = va_arg(args, Val);
    va_end(args);
    return ir_make_results(f, ir_op_new(f, code, in, n_in), t, hint);
}

Reason *ir_reason(Module *m, const char *rule) {
    Reason *r = arena_new(m->arena, Reason);
    r->rule = rule;
    return r;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

void ir_call_set(Arena *a, Call *c, const char *name, AttrType type, AttrValue v) {
    CallArg *arg = ir_call_arg(c, name);
    if (!arg) {
        CallArg added = {.name = arena_strdup(a, name)};
        vec_push(a, &c->args, added);
        arg = &c->args.data[c->args.len - 1];
    }
    arg->type = type;
    arg->value = v;
    if (type == ATTR_SYMBOL) arg->value.s = arena_strdup(a, v.s);
}
