/* train.c: train blocks: their inputs, what they see of the model, their statements in order, and which parameters
 * each trains. */
#include "frontend/train.h"

/* ---- inputs ---------------------------------------------------------------------------------------------- */

/* The same input in another train block, or NULL. */
static const Binding *earlier_input(const Elab *e, const char *name) {
    for (int i = 0; i < e->trains.len; i++) {
        const Binding *b = table_get(&e->trains.data[i]->names, name);
        if (b) return b;
    }
    return NULL;
}

static Item share_input(Elab *e, const Name *name, const Binding *first, Dtype dtype, const Shape *shape) {
    if (first->item.kind != ITEM_TENSOR) return ERROR_ITEM;
    Val v = first->item.tensor;
    if (ir_dtype(e->f, v) == dtype && shape_equal(ir_shape(e->f, v), shape)) return first->item;
    Diag *diag = report(e, name->loc, "another train block has '%s' as %s", name->text, item_describe(e, &first->item));
    diag_note(e->d, diag, first->name->loc, "here");
    return ERROR_ITEM;
}

static void add_train_input(Elab *e, const Stmt *s) {
    Dtype dtype;
    Shape shape;
    Item item = ERROR_ITEM;
    Name *name = s->declare.name;
    if (table_get(&e->frame->names, name->text)) {
        bind_error(e, name);
        return;
    }
    const Binding *first = earlier_input(e, name->text);
    if (elaborate_input_type(e, s->declare.type, &dtype, &shape))
        item = first ? share_input(e, name, first, dtype, &shape) : item_tensor(add_input(e, name, dtype, shape));
    bind(e, name, item);
}

void begin_train(Elab *e, const Decl *train) {
    Frame *frame = arena_new(e->a, Frame);
    *frame = (Frame){.unit = e->units.data[0], .decl = train, .scope = ""};
    e->frame = frame;
    for (int i = 0; i < train->body.len; i++)
        if (train->body.data[i]->kind == STMT_INPUT) add_train_input(e, train->body.data[i]);
    vec_push(e->a, &e->trains, frame);
}

/* ---- the model ------------------------------------------------------------------------------------------- */

static bool is_visible(const Elab *e, const Frame *model, const Binding *b) {
    if (b->item.kind == ITEM_PARAM || b->item.kind == ITEM_ERROR) return true;
    if (b->item.kind == ITEM_TENSOR && ir_value(e->f, b->item.tensor)->kind == VAL_INPUT) return true;
    for (int i = 0; i < model->decl->results.len; i++)
        if (!strcmp(model->decl->results.data[i]->text, b->name->text)) return true;
    return false;
}

/* Its inputs, results and params; the train inputs are there already. */
static void see_model(Elab *e, Frame *train, const Frame *model) {
    for (int i = 0; i < model->names.entries.len; i++) {
        Binding *b = model->names.entries.data[i].value;
        if (!is_visible(e, model, b)) continue;
        const Binding *own = table_get(&train->names, b->name->text);
        if (own) {
            Diag *diag = report(e, own->name->loc, "the model has '%s' already", own->name->text);
            diag_note(e->d, diag, b->name->loc, "here");
        } else if (b->live) {
            table_set(e->a, &train->names, b->name->text, b);
        }
    }
}

static void check_model_name(Elab *e, const Decl *train, const Decl *model) {
    if (!strcmp(train->name->text, model->name->text)) return;
    Diag *diag = report(e, train->name->loc, "there is no model '%s'", train->name->text);
    diag_note(e->d, diag, model->name->loc, "the model is '%s'", model->name->text);
}

/* ---- the block ------------------------------------------------------------------------------------------- */

static void elaborate_train_statement(Elab *e, TrainBlock *b, const Stmt *s) {
    switch (s->kind) {
    case STMT_INPUT: break; /* begin_train */
    case STMT_BIND: elaborate_setting(e, b, s); break;
    case STMT_METRIC: elaborate_metric(e, s); break;
    case STMT_LOSS: elaborate_named_loss(e, b, s); break;
    case STMT_GROUP: elaborate_group(e, b, s); break;
    default: report_misplaced(e, s, "train"); break;
    }
}

static Val block_loss(Elab *e, TrainBlock *b) {
    if (!b->seen[SETTING_OPTIMIZER]) report(e, b->decl->loc, "train needs `optimizer = ...`");
    if (!b->seen[SETTING_LOSS] && !b->first_named_loss) report(e, b->decl->name->loc, "train needs `loss = ...`");
    if (!b->losses.len || b->wrong_loss) return NO_VAL;
    if (!b->first_named_loss) return b->losses.data[0]; /* it is the result already */
    return add_loss_result(e, b->decl->loc, b->losses.data, b->losses.len, b->train.loss);
}

/* Returns the block's loss; NO_VAL after an error. */
static Val elaborate_train(Elab *e, int index, const Frame *model) {
    Frame *frame = e->trains.data[index];
    const Decl *d = frame->decl;
    TrainBlock b = {.decl = d};
    b.train = (Train){.only = d->only ? d->only->text : NULL, .pos = position(e, d->loc)};
    b.train.loss = e->trains.len == 1 ? "loss" : arena_printf(e->a, "loss.%d", index);
    e->frame = frame;
    see_model(e, frame, model);
    check_model_name(e, d, model->decl);
    for (int i = 0; i < d->body.len && !e->stopped; i++) elaborate_train_statement(e, &b, d->body.data[i]);
    Val loss = block_loss(e, &b);
    vec_push(e->a, &e->m->trains, b.train);
    return loss;
}

/* ---- who trains what ------------------------------------------------------------------------------------- */

static void check_has_params(Elab *e, int index) {
    const Decl *d = e->trains.data[index]->decl;
    const char **names = arena_array(e->a, const char *, e->m->states.len + 1);
    int count = 0;
    for (int i = 0; i < e->m->states.len; i++) {
        if (trains(&e->m->trains.data[index], e->m->states.data[i])) return;
        if (e->m->states.data[i]->role == STATE_PARAM) names[count++] = e->m->states.data[i]->name;
    }
    if (!d->only) {
        report(e, d->loc, "model %s has no parameters to train", d->name->text);
        return;
    }
    Diag *diag = report(e, d->only->loc, "no parameter matches \"%s\"", d->only->text);
    help_choice(e, diag, d->only->text, names, count);
}

static void check_apart(Elab *e, int first, int second) {
    const Decl *a = e->trains.data[first]->decl, *b = e->trains.data[second]->decl;
    for (int i = 0; i < e->m->states.len; i++) {
        const State *state = e->m->states.data[i];
        if (!trains(&e->m->trains.data[first], state) || !trains(&e->m->trains.data[second], state)) continue;
        Diag *diag =
            report(e, b->only ? b->only->loc : b->loc, "parameter '%s' is trained by two train blocks", state->name);
        diag_note(e->d, diag, a->only ? a->only->loc : a->loc, "the other is here");
        if (!a->only || !b->only) diag_help(e->d, diag, "each says for which parameters: train NAME for \"gen.*\" {");
        return;
    }
}

void elaborate_trains(Elab *e, const Frame *model) {
    VEC(Val) losses = {0};
    for (int i = 0; i < e->trains.len && !e->stopped; i++) {
        Val loss = elaborate_train(e, i, model);
        if (loss.id) vec_push(e->a, &losses, loss);
    }
    if (e->d->errors) return; /* parameters and losses may be missing */
    for (int i = 0; i < e->trains.len; i++) {
        check_has_params(e, i);
        for (int k = 0; k < i; k++) check_apart(e, k, i);
    }
    if (e->trains.len > 1) add_loss_result(e, e->trains.data[0]->decl->loc, losses.data, losses.len, "loss");
    e->m->has_train = e->trains.len > 0;
}
