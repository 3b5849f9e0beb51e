/* sharing.c: a block applied again with the parameters of an earlier call: `f(y) sharing first`.
 *
 * The body runs once more, with the scope of the first call.  Where it declares a parameter or state it gets the one
 * that the same declaration made at the same path then; scopes are numbered from the beginning again, so paths are the
 * same.  Ops get paths of their own, and so do dropout masks. */
#include "frontend/elaborate.h"

void elab_record_application(Elab *e, const Block *b, const Frame *frame, const Item *statics, int first_state) {
    Application *a = arena_new(e->a, Application);
    *a = (Application){
        .next = table_get(&e->applications, frame->scope),
        .block = b,
        .call = elab_user_loc(e, frame->call),
        .statics = statics,
        .first_state = first_state,
        .after_state = e->m->states.len,
    };
    table_set(e->a, &e->applications, frame->scope, a);
}

bool elab_refuse_sharing(Elab *e, const Expr *call) {
    if (!call->call.sharing) return false;
    elab_error(e, call->call.sharing->loc, "%s has no parameters to share", call->call.callee->text);
    return true;
}

const Application *elab_find_application(Elab *e, const Block *b, Loc loc, const char *path, const char *scope) {
    const char *callee = b->decl->name->text;
    const Application *first = table_get(&e->applications, scope), *found = first;
    while (found && found->block != b) found = found->next;
    if (found) return found;
    Diag *diag;
    if (first) {
        diag = elab_error(e, loc, "'%s' is a call of %s, not of %s", path, first->block->decl->name->text, callee);
        diag_note(e->d, diag, first->call, "it is here");
        return NULL;
    }
    diag = elab_error(e, loc, "no call before this one has the scope '%s' and parameters", path);
    if (!b->decl->is_inline) elab_help_nearest_key(e, diag, scope, &e->applications);
    if (!diag->notes.len) diag_help(e->d, diag, "name the first call: %s(...) as %s", callee, path);
    return NULL;
}

int elab_sharing_number(const Elab *e) { return e->sharing ? e->sharing->number : 0; }

Val elab_updated_before(const Elab *e, const State *state) {
    const Updated *last = e->updating ? table_get(&e->updates, state->name) : NULL;
    bool by_another = last && last->sharing != elab_sharing_number(e);
    return by_another ? e->update_results.data[last->result].value : NO_VAL;
}

State *elab_shared_state(Elab *e, const Stmt *s, const char *path, Dtype dtype, const Shape *shape) {
    const Application *of = e->sharing->of;
    const Declared *declared = table_get(&e->param_names, path);
    bool made_there =
        declared && declared->stmt == s && declared->index >= of->first_state && declared->index < of->after_state;
    if (!made_there) {
        Diag *diag = elab_error(e, s->declare.name->loc, "the call whose parameters are shared has no '%s'", path);
        diag_note(e->d, diag, of->call, "it is here");
        diag_help(e->d, diag, "both calls must need the same parameters");
        return NULL;
    }
    State *state = e->m->states.data[declared->index];
    if (state->dtype == dtype && shape_equal(&state->shape, shape)) return state;
    Item first = {.kind = ITEM_PARAM, .param = state};
    State again = {.dtype = dtype, .shape = *shape};
    Item now = {.kind = ITEM_PARAM, .param = &again};
    Diag *diag = elab_error(e, s->declare.name->loc, "'%s' is shared and %s; here it would have to be %s", path,
                            item_describe(e, &first), item_describe(e, &now));
    diag_note(e->d, diag, of->call, "it was made by this call");
    return NULL;
}
