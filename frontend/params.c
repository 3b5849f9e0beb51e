/* params.c: `param` and `init`. */
#include "frontend/elaborate.h"

typedef struct ParamPlace {
    Loc loc;
} ParamPlace;

/* Fans are counted along the first two dimensions. */
static bool needs_fans(const Call *init) {
    return !strncmp(init->name, "kaiming", 7) || !strncmp(init->name, "xavier", 6);
}

static bool check_init(Elab *e, Loc loc, const Call *init, const State *param) {
    if (!needs_fans(init) || param->shape.rank >= 2) return true;
    report(e, loc, "%s counts fans and needs two dimensions; %s has %d", init->name, param->name, param->shape.rank);
    return false;
}

static bool check_param_type(Elab *e, const Stmt *s, Dtype dtype, const Shape *shape) {
    if (dtype != AMP_DT_F32) {
        report(e, s->declare.type->loc, "a parameter is f32, not %s", amp_dtype_name(dtype));
        return false;
    }
    for (int i = 0; i < shape->rank; i++)
        if (shape->d[i].n) {
            report(e, s->declare.type->loc, "the shape of a parameter does not depend on N");
            return false;
        }
    return true;
}

static bool claim_path(Elab *e, const char *path, Loc loc) {
    const ParamPlace *first = table_get(&e->param_names, path);
    if (first) {
        Diag *diag = report(e, loc, "there is a parameter '%s' already", path);
        diag_note(e->d, diag, first->loc, "it is declared here");
        diag_help(e->d, diag, "name the call's scope with `as`; sharing is using the same param");
        return false;
    }
    ParamPlace *place = arena_new(e->a, ParamPlace);
    place->loc = user_place(e, loc);
    table_set(e->a, &e->param_names, path, place);
    return true;
}

static State *make_param(Elab *e, const Stmt *s) {
    Dtype dtype;
    Shape shape;
    Call init = {0};
    const char *path = s->declare.as ? path_text(e, s->declare.as) : s->declare.name->text;
    bool good = elaborate_type(e, s->declare.type, &dtype, &shape);
    good = elaborate_signature(e, s->declare.value, SIGNATURE_INITIALISER, &init) && good;
    if (!path || !good || !check_param_type(e, s, dtype, &shape)) return NULL;
    path = join_path(e, e->frame->scope, path);
    if (!claim_path(e, path, s->declare.name->loc)) return NULL;
    State *param = ir_state_new(e->m, path, STATE_PARAM, AMP_DT_F32, shape);
    param->init = init;
    param->pos = position(e, s->declare.name->loc);
    return check_init(e, s->declare.value->loc, &init, param) ? param : NULL;
}

void elaborate_param(Elab *e, const Stmt *s) {
    const State *param = make_param(e, s);
    Item item = ERROR_ITEM;
    if (param) item = (Item){.kind = ITEM_PARAM, .param = param};
    bind(e, s->declare.name, item);
}

/* init "h.*.weight" = normal(std = 0.02) */
void elaborate_init(Elab *e, const Stmt *s) {
    Call init = {0};
    if (!elaborate_signature(e, s->init.value, SIGNATURE_INITIALISER, &init)) return;
    int matched = 0;
    const char **names = arena_array(e->a, const char *, e->m->states.len + 1);
    for (int i = 0; i < e->m->states.len; i++) {
        State *param = e->m->states.data[i];
        names[i] = param->name;
        if (!text_glob_match(s->init.glob->text, param->name)) continue;
        matched++;
        if (check_init(e, s->init.value->loc, &init, param)) param->init = init;
    }
    if (matched) return;
    Diag *diag = report(e, s->init.glob->loc, "no parameter matches \"%s\"", s->init.glob->text);
    help_nearest(e, diag, s->init.glob->text, names, e->m->states.len);
}
