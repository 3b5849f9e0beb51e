/* verify.c: what every module must be, checked between passes: the level's legality table, types, order of definition
 * and use, names, predicates, states, kernels and buffers.  Linear in the size of the module. */
#include "ir/verify.h"

/* ---- messages ---------------------------------------------------------------------------------------------------- */

bool verify_failed(const Verifying *c) { return c->wrong.len > 0; }

void verify_fail(Verifying *c, const char *fmt, ...) {
    if (verify_failed(c)) return;
    if (c->f) text_printf(&c->wrong, "%s: ", c->f->name);
    va_list args;
    va_start(args, fmt);
    text_vprintf(&c->wrong, fmt, args);
    va_end(args);
}

/* "train_step: %3 = linear (fc1.linear): ..." */
void verify_fail_op(Verifying *c, const Op *o, const char *fmt, ...) {
    if (verify_failed(c)) return;
    const Value *first = o->n_out ? ir_value(c->f, o->out[0]) : NULL;
    va_list args;
    va_start(args, fmt);
    const char *message = arena_vprintf(c->m->arena, fmt, args);
    va_end(args);
    verify_fail(c, "%s%s%s%s%s%s%s: %s", first ? "%" : "", first ? first->name : "", first ? " = " : "",
                ir_op_info[o->code].name, o->path ? " (" : "", o->path ? o->path : "", o->path ? ")" : "", message);
}

const char *verify_type_text(const Verifying *c, Dtype t, const Shape *s) {
    Text text;
    text_init(&text, c->m->arena);
    type_print(&text, t, s);
    return text_str(&text);
}

bool verify_is_second(Verifying *c, Table *seen, const char *name) {
    bool is_second = table_get(seen, name) != NULL;
    if (!is_second) table_set(c->scratch, seen, name, c);
    return is_second;
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static void check_states(Verifying *c) {
    for (int i = 0; i < c->m->states.len && !verify_failed(c); i++) {
        const State *s = c->m->states.data[i];
        if (ir_state_find(c->m, s->name) != s) verify_fail(c, "two states are called %s", s->name);
        for (int d = 0; d < s->shape.rank; d++)
            if (s->shape.d[d].n) verify_fail(c, "state %s depends on N", s->name);
        bool needs_owner = s->role == STATE_MOMENT || s->role == STATE_DERIVED || s->role == STATE_STAGED;
        if (needs_owner && (!s->of || !ir_state_find(c->m, s->of)))
            verify_fail(c, "state %s does not say of which state it is", s->name);
    }
}

static void check_funcs_differ(Verifying *c) {
    Table names = {0};
    for (int i = 0; i < c->m->funcs.len; i++)
        if (verify_is_second(c, &names, c->m->funcs.data[i]->name))
            verify_fail(c, "two functions are called %s", c->m->funcs.data[i]->name);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

bool verify_is_value(const Verifying *c, Val v) { return v.id != 0 && v.id < (uint32_t)c->f->values.len; }

bool verify_is_defined(const Verifying *c, Val v) { return verify_is_value(c, v) && c->defined[v.id]; }

bool verify_is_bool_scalar(const Verifying *c, Val v) {
    return ir_dtype(c->f, v) == AMP_DT_BOOL && ir_shape(c->f, v)->rank == 0;
}

void verify_define(Verifying *c, Val v) {
    const Value *value = ir_value(c->f, v);
    if (c->defined[v.id]) verify_fail(c, "%%%s is defined twice", value->name);
    if (ir_find(c->f, value->name).id != v.id) verify_fail(c, "%%%s: the name belongs to another value", value->name);
    c->defined[v.id] = true;
}

static void check_state_input(Verifying *c, const Value *v) {
    const State *s = ir_state_find(c->m, v->name);
    if (!s) verify_fail(c, "%%%s: the module has no such state", v->name);
    else if (s->dtype != v->dtype || !shape_equal(&s->shape, &v->shape))
        verify_fail(c, "%%%s is %s, the state %s", v->name, verify_type_text(c, v->dtype, &v->shape),
                    verify_type_text(c, s->dtype, &s->shape));
}

static void check_inputs(Verifying *c) {
    for (int i = 0; i < c->f->inputs.len && !verify_failed(c); i++) {
        Val v = c->f->inputs.data[i];
        if (!verify_is_value(c, v)) {
            verify_fail(c, "input %d is not a value", i + 1);
            return;
        }
        const Value *value = ir_value(c->f, v);
        if (value->kind == VAL_RESULT) verify_fail(c, "%%%s is the result of an op, not an input", value->name);
        if (value->kind == VAL_STATE) check_state_input(c, value);
        verify_define(c, v);
    }
}

static void check_plain_body(Verifying *c) {
    for (int i = 0; i < c->f->body.len && !verify_failed(c); i++) {
        verify_op(c, ir_op_at(c->f, i), i);
        if (!verify_failed(c)) verify_mark_assigned(c, i, 1);
    }
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static void check_func_results(Verifying *c) {
    Table names = {0};
    for (int i = 0; i < c->f->results.len && !verify_failed(c); i++) {
        const Result *r = &c->f->results.data[i];
        if (!verify_is_defined(c, r->value)) verify_fail(c, "result %s is not a value of the function", r->name);
        if (verify_is_second(c, &names, r->name)) verify_fail(c, "two results are called %s", r->name);
    }
}

static void check_body_ids(Verifying *c) {
    for (int i = 0; i < c->f->body.len; i++)
        if (!c->f->body.data[i].id || !ir_op(c->f, c->f->body.data[i]))
            verify_fail(c, "op %d of the body does not exist", i + 1);
}

static void check_func(Verifying *c, const Func *f) {
    c->f = f;
    c->defined = arena_array(c->scratch, bool, f->values.len);
    c->assigned = arena_array(c->scratch, bool, f->values.len);
    check_body_ids(c);
    verify_cover(c);
    check_inputs(c);
    if (verify_failed(c)) return;
    if (f->kernels.len == 0) check_plain_body(c);
    verify_kernels(c);
    verify_buffers(c);
    check_func_results(c);
}

const char *ir_verify(const Module *m) {
    Verifying c = {.m = m, .scratch = arena_child(m->arena)};
    text_init(&c.wrong, m->arena);
    check_states(&c);
    verify_calls(&c);
    check_funcs_differ(&c);
    for (int i = 0; i < m->funcs.len && !verify_failed(&c); i++) check_func(&c, m->funcs.data[i]);
    arena_free(c.scratch);
    return verify_failed(&c) ? text_str(&c.wrong) : NULL;
}
