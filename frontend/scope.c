/* scope.c: names: binding and reading them, the iterations of `repeat`, names never read, and the block that a call
 * means. */
#include "frontend/elaborate.h"

/* Each binding in the text is recorded once, however often it is elaborated. */
static void remember_bound(Elab *e, Name *name) {
    if (name->use.bound) return;
    name->use.bound = true;
    vec_push(e->a, &e->bound, name);
}

/* Metrics of averages are computed in a function of their own. */
void elab_tell_binding(Elab *e, const Name *name, const Item *item) {
    if (!e->options->bindings) return;
    FrontendBinding b = {.loc = name->loc, .is_state = item->kind == ITEM_PARAM};
    if (e->frame->unit->is_prelude || e->averaging || item->kind == ITEM_ERROR || item->kind == ITEM_AVERAGE) return;
    if (item->kind == ITEM_TENSOR) b.v = item->tensor;
    else b.text = b.is_state ? item->param->name : item_describe(e, item);
    vec_push(e->a, e->options->bindings, b);
}

void elab_bind(Elab *e, Name *name, Item item) {
    elab_tell_binding(e, name, &item);
    Frame *frame = e->frame;
    Binding *b = table_get(&frame->names, name->text);
    if (!b) {
        b = arena_new(e->a, Binding);
        table_set(e->a, &frame->names, name->text, b);
    }
    if (!b->live) {
        b->live = true;
        b->level = frame->level;
        vec_push(e->a, &frame->locals, b);
    }
    remember_bound(e, name);
    if (b->level < frame->level) name->use.read = true; /* carried to the next iteration */
    b->name = name;
    b->item = item;
}

Binding *elab_find(const Elab *e, const char *text) {
    Binding *b = table_get(&e->frame->names, text);
    if (b && b->live) return b;
    Binding *constant = table_get(&e->frame->unit->consts, text);
    Binding *seen = e->frame->model && !constant ? table_get(&e->frame->model->names, text) : NULL;
    return seen && seen->live && seen->item.kind == ITEM_TENSOR ? seen : constant;
}

/* ---- reading ---------------------------------------------------------------------------------------------- */

static void note_const_elsewhere(Elab *e, Diag *diag, const Name *name) {
    for (int i = 0; i < e->units.len; i++) {
        const Binding *b = table_get(&e->units.data[i]->consts, name->text);
        if (b) diag_note(e->d, diag, b->name->loc, "this const '%s' is visible only in its own file", name->text);
    }
}

static void report_unknown(Elab *e, const Name *name) {
    Diag *diag = elab_error(e, name->loc, "there is no '%s' here", name->text);
    const Binding *dead = table_get(&e->frame->names, name->text);
    if (dead) {
        diag_note(e->d, diag, dead->name->loc, "this '%s' is local to one iteration of its repeat", name->text);
        diag_help(e->d, diag, "bind '%s' before the repeat to keep its value", name->text);
        return;
    }
    const Table *names = &e->frame->names, *consts = &e->frame->unit->consts;
    const char **words = arena_array(e->a, const char *, names->entries.len + consts->entries.len + 1);
    int count = 0;
    for (int i = 0; i < names->entries.len; i++)
        if (((Binding *)names->entries.data[i].value)->live) words[count++] = names->entries.data[i].key;
    for (int i = 0; i < consts->entries.len; i++) words[count++] = consts->entries.data[i].key;
    elab_help_nearest(e, diag, name->text, words, count);
    if (e->frame->decl && e->frame->decl->kind == DECL_TRAIN)
        diag_help(e->d, diag, "train sees the names of the model's body, and the names, losses and metrics above");
    note_const_elsewhere(e, diag, name);
    if (!diag->notes.len) diag_help(e->d, diag, "bind it before it is read: %s = ...", name->text);
}

/* The first read makes the parameter an input of `forward`. */
static Item read_param(Elab *e, const Binding *b) {
    Val before = elab_updated_before(e, b->item.param);
    if (before.id) return item_tensor(before);
    Val v = ir_use_state(e->f, b->item.param);
    elab_set_origin(e, v, e->frame->layer ? b->item.param->name : b->name->text, b->name->loc);
    return item_tensor(v);
}

/* The average of a result of `forward` is an input of the function `metrics`; values computed in `metrics` already
 * exist there. */
static Val find_average(const Elab *e, const char *result) {
    for (int i = 0; i < e->f->results.len; i++)
        if (!strcmp(e->f->results.data[i].name, result)) return e->f->results.data[i].value;
    return ir_find(e->f, result);
}

static Item read_average(Elab *e, const Name *name, const Binding *b) {
    if (!e->averaging) {
        Diag *diag =
            elab_error(e, name->loc, "'%s' is known only after the batch; only metrics can read it", name->text);
        diag_note(e->d, diag, b->name->loc, "it is defined here");
        return ERROR_ITEM;
    }
    Val v = find_average(e, b->item.s);
    if (!v.id) v = ir_add_input(e->f, b->item.s, AMP_DT_F32, shape_scalar());
    elab_set_origin(e, v, b->name->text, b->name->loc);
    return item_tensor(v);
}

/* A metric of averages is computed after the batches, when the tensors of a batch no longer exist. */
static Item report_mixed_with_average(Elab *e, const Name *name, const Binding *b) {
    Diag *diag = elab_error(e, name->loc, "'%s' is a per-batch value and cannot be mixed with averages", name->text);
    diag_note(e->d, diag, b->name->loc, "'%s' is defined here", name->text);
    diag_help(e->d, diag, "compute what needs it as a separate metric, and read that metric");
    return ERROR_ITEM;
}

Item elab_read(Elab *e, const Name *name) {
    Binding *b = elab_find(e, name->text);
    if (b) {
        b->name->use.read = true;
        if (b->item.kind == ITEM_AVERAGE) return read_average(e, name, b);
        bool is_tensor = b->item.kind == ITEM_TENSOR || b->item.kind == ITEM_PARAM;
        if (is_tensor && e->averaging && e->averaging == e->frame) return report_mixed_with_average(e, name, b);
        return b->item.kind == ITEM_PARAM ? read_param(e, b) : b->item;
    }
    if (!strcmp(name->text, "inf")) return (Item){.kind = ITEM_FLOAT, .f = __builtin_inf()};
    report_unknown(e, name);
    return ERROR_ITEM;
}

void elab_error_twice(Elab *e, const Name *name) {
    const Binding *b = elab_find(e, name->text);
    Diag *diag = elab_error(e, name->loc, "'%s' is declared twice", name->text);
    if (b) diag_note(e->d, diag, b->name->loc, "first here");
}

/* ---- iterations of repeat --------------------------------------------------------------------------------- */

void elab_begin_iteration(Elab *e) { e->frame->level++; }

void elab_end_iteration(Elab *e) {
    Frame *frame = e->frame;
    while (frame->locals.len && frame->locals.data[frame->locals.len - 1]->level == frame->level)
        frame->locals.data[--frame->locals.len]->live = false;
    frame->level--;
}

/* ---- names never read ------------------------------------------------------------------------------------- */

static bool mark_name(void *user, const Expr *x) {
    Binding *b = x->kind == EXPR_NAME ? elab_find(user, x->name->text) : NULL;
    if (b) b->name->use.read = true;
    return false;
}

void elab_mark_read(Elab *e, const StmtVec *untaken) { body_any(untaken, NULL, mark_name, e); }

static bool is_in_prelude(const Elab *e, const Name *name) {
    return name->loc.source == e->units.data[e->units.len - 1]->file->source;
}

void elab_check_unread(Elab *e) {
    for (int i = 0; i < e->bound.len; i++) {
        const Name *name = e->bound.data[i];
        if (name->use.read || is_in_prelude(e, name)) continue;
        diag_help(e->d, elab_error(e, name->loc, "'%s' is never read", name->text), "use it or remove it");
    }
}

/* ---- blocks ----------------------------------------------------------------------------------------------- */

bool block_takes(const Block *b, int tensors) {
    const ParameterVec *declared = &b->decl->tensors;
    if (tensors > declared->len) return false;
    return tensors == declared->len || declared->data[tensors].initial;
}

Block *elab_find_block(const Elab *e, const char *name, int tensors) {
    Block *user = table_get(&e->blocks, name), *layer = table_get(&e->prelude, name);
    return user && block_takes(user, tensors) ? user : layer && block_takes(layer, tensors) ? layer : NULL;
}
