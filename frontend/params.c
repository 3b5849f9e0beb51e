/* params.c: `param`, `state`, `update` and `init`. */
#include "frontend/elaborate.h"

typedef struct ParamPlace {
    Loc loc;
} ParamPlace;

/* Fans are counted along the first two dimensions. */
static bool needs_fans(const Call *init) {
    return !strncmp(init->name, "kaiming", 7) || !strncmp(init->name, "xavier", 6);
}

static bool check_init(Elab *e, Loc loc, const Call *init, const State *param) {
    if (param->dtype == AMP_DT_I64) {
        if (!strcmp(init->name, "zeros") || !strcmp(init->name, "ones")) return true;
        report(e, loc, "an i64 begins with zeros() or ones(), not with %s(...)", init->name);
        return false;
    }
    if (!needs_fans(init) || param->shape.rank >= 2) return true;
    report(e, loc, "%s counts fans and needs two dimensions; %s has %d", init->name, param->name, param->shape.rank);
    return false;
}

/* A parameter is f32; a state may be a counter too. */
static bool check_state_type(Elab *e, const Stmt *s, Dtype dtype, const Shape *shape) {
    bool is_param = s->kind == STMT_PARAM;
    if (dtype != AMP_DT_F32 && (is_param || dtype != AMP_DT_I64)) {
        report(e, s->declare.type->loc, is_param ? "a parameter is f32, not %s" : "a state is f32 or i64, not %s",
               amp_dtype_name(dtype));
        return false;
    }
    for (int i = 0; i < shape->rank; i++)
        if (shape->d[i].n) {
            report(e, s->declare.type->loc, "the shape of a %s does not depend on N", is_param ? "parameter" : "state");
            return false;
        }
    return true;
}

static bool claim_path(Elab *e, const char *path, Loc loc) {
    const ParamPlace *first = table_get(&e->param_names, path);
    if (first) {
        Diag *diag = report(e, loc, "there is a parameter or state '%s' already", path);
        diag_note(e->d, diag, first->loc, "it is declared here");
        diag_help(e->d, diag, "name the call's scope with `as`; sharing is using the same param");
        return false;
    }
    ParamPlace *place = arena_new(e->a, ParamPlace);
    place->loc = user_place(e, loc);
    table_set(e->a, &e->param_names, path, place);
    return true;
}

static State *make_state(Elab *e, const Stmt *s) {
    Dtype dtype;
    Shape shape;
    Call init = {0};
    const char *path = s->declare.as ? path_text(e, s->declare.as) : s->declare.name->text;
    if (e->averaging) {
        report(e, s->loc, "a metric of averages has no parameters");
        return NULL;
    }
    bool good = elaborate_type(e, s->declare.type, &dtype, &shape);
    good = elaborate_signature(e, s->declare.value, SIGNATURE_INITIALISER, &init) && good;
    if (!path || !good || !check_state_type(e, s, dtype, &shape)) return NULL;
    path = join_path(e, e->frame->scope, path);
    if (!claim_path(e, path, s->declare.name->loc)) return NULL;
    State *state = ir_state_new(e->m, path, s->kind == STMT_PARAM ? STATE_PARAM : STATE_BUFFER, dtype, shape);
    state->init = init;
    state->pos = position(e, s->declare.name->loc);
    return check_init(e, s->declare.value->loc, &init, state) ? state : NULL;
}

void elaborate_param(Elab *e, const Stmt *s) {
    const State *state = make_state(e, s);
    Item item = ERROR_ITEM;
    if (state) item = (Item){.kind = ITEM_PARAM, .param = state};
    bind(e, s->declare.name, item);
}

/* ---- update ---------------------------------------------------------------------------------------------- */

/* The state that the name stands for, not updated before. */
static const State *state_to_update(Elab *e, const Name *name) {
    const Binding *b = find_binding(e, name->text);
    if (!b) read_name(e, name); /* reports it */
    if (!b || b->item.kind == ITEM_ERROR) return NULL;
    b->name->use.read = true;
    if (b->item.kind != ITEM_PARAM || b->item.param->role != STATE_BUFFER) {
        Diag *diag =
            report(e, name->loc, "update writes a state; '%s' is %s", name->text,
                   b->item.kind == ITEM_PARAM ? "a parameter, which training writes" : item_describe(e, &b->item));
        diag_note(e->d, diag, user_place(e, b->name->loc), "'%s' comes from here", name->text);
        return NULL;
    }
    const ParamPlace *first = table_get(&e->updates, b->item.param->name);
    if (!first) return b->item.param;
    Diag *diag = report(e, name->loc, "state '%s' is updated twice", b->item.param->name);
    diag_note(e->d, diag, first->loc, "first here");
    return NULL;
}

static bool fits_state(Elab *e, Loc loc, const State *state, Val v) {
    Item value = item_tensor(v), wanted = {.kind = ITEM_PARAM, .param = state};
    if (ir_dtype(e->f, v) == state->dtype && shape_equal(ir_shape(e->f, v), &state->shape)) return true;
    report(e, loc, "state '%s' is %s; its next value is %s", state->name, item_describe(e, &wanted),
           item_describe(e, &value));
    return false;
}

/* The next value, in training only, becomes a result of `forward`, behind all others. */
void elaborate_update(Elab *e, const Stmt *s) {
    const State *state = state_to_update(e, s->assign.name);
    Item item = evaluate(e, s->assign.value);
    Val v = item.kind == ITEM_ERROR ? NO_VAL : as_tensor(e, s->assign.value->loc, &item);
    if (!state || !v.id || !fits_state(e, s->assign.value->loc, state, v)) return;
    ParamPlace *place = arena_new(e->a, ParamPlace);
    place->loc = user_place(e, s->loc);
    table_set(e->a, &e->updates, state->name, place);
    Result result = {arena_printf(e->a, "update.%s", state->name), v};
    vec_push(e->a, &e->update_results, result);
}

void add_updates(Elab *e) {
    for (int i = 0; i < e->update_results.len; i++)
        ir_add_result(e->f, e->update_results.data[i].name, e->update_results.data[i].value);
}

/* ---- init ------------------------------------------------------------------------------------------------ */

/* init "h.*.weight" = normal(std = 0.02) */
void elaborate_init(Elab *e, const Stmt *s) {
    Call init = {0};
    if (!elaborate_signature(e, s->init.value, SIGNATURE_INITIALISER, &init)) return;
    int matched = 0;
    const char **names = arena_array(e->a, const char *, e->m->states.len + 1);
    int count = 0;
    for (int i = 0; i < e->m->states.len; i++) {
        State *param = e->m->states.data[i];
        if (param->role != STATE_PARAM) continue;
        names[count++] = param->name;
        if (!text_glob_match(s->init.glob->text, param->name)) continue;
        matched++;
        if (check_init(e, s->init.value->loc, &init, param)) param->init = init;
    }
    if (matched) return;
    Diag *diag = report(e, s->init.glob->loc, "no parameter matches \"%s\"", s->init.glob->text);
    help_choice(e, diag, s->init.glob->text, names, count);
}
