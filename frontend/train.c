/* train.c: the train block: inputs, loss, metrics, optimizer. */
#include "frontend/elaborate.h"

/* ---- inputs ---------------------------------------------------------------------------------------------- */

Frame *begin_train(Elab *e, const Decl *train) {
    Frame *frame = arena_new(e->a, Frame);
    *frame = (Frame){.unit = e->units.data[0], .decl = train, .scope = ""};
    e->frame = frame;
    for (int i = 0; i < train->body.len; i++) {
        const Stmt *s = train->body.data[i];
        Dtype dtype;
        Shape shape;
        Item item = ERROR_ITEM;
        if (s->kind != STMT_INPUT) continue;
        if (table_get(&frame->names, s->declare.name->text)) {
            bind_error(e, s->declare.name);
            continue;
        }
        if (elaborate_type(e, s->declare.type, &dtype, &shape))
            item = item_tensor(add_input(e, s->declare.name, dtype, shape));
        bind(e, s->declare.name, item);
    }
    return frame;
}

/* The model's inputs, results and params; the train inputs are there already. */
static void see_model(Elab *e, Frame *train, const Frame *model) {
    for (int i = 0; i < model->names.entries.len; i++) {
        Binding *b = model->names.entries.data[i].value;
        bool is_input = b->item.kind == ITEM_TENSOR && ir_value(e->f, b->item.tensor)->kind == VAL_INPUT;
        bool is_result = false;
        for (int r = 0; r < model->decl->results.len; r++)
            is_result = is_result || !strcmp(model->decl->results.data[r]->text, b->name->text);
        if (!is_input && !is_result && b->item.kind != ITEM_PARAM && b->item.kind != ITEM_ERROR) continue;
        const Binding *own = table_get(&train->names, b->name->text);
        if (own) {
            Diag *diag = report(e, own->name->loc, "the model has '%s' already", own->name->text);
            diag_note(e->d, diag, b->name->loc, "here");
        } else if (b->live) {
            table_set(e->a, &train->names, b->name->text, b);
        }
    }
}

/* ---- loss and metrics ------------------------------------------------------------------------------------ */

/* A value per sample counts by its mean. */
static Val mean_over_batch(Elab *e, const Expr *x, Val v) {
    const Shape *s = ir_shape(e->f, v);
    if (s->rank != 1 || !s->d[0].n) return v;
    Item mean = emit_op(e, x->loc, ir_op_new(e->f, OP_mean, &v, 1), &x->loc);
    return mean.kind == ITEM_TENSOR ? mean.tensor : NO_VAL;
}

/* A scalar value named |name|, or NO_VAL after an error. */
static Val scalar(Elab *e, const Name *name, const Expr *x, bool takes_samples) {
    int made_from = e->f->values.len;
    Item item = evaluate(e, x);
    Val v = item.kind == ITEM_ERROR ? NO_VAL : as_tensor(e, x->loc, &item);
    if (v.id && takes_samples) v = mean_over_batch(e, x, v);
    if (!v.id) return NO_VAL;
    item = item_tensor(v);
    if (ir_shape(e->f, v)->rank || ir_dtype(e->f, v) != AMP_DT_F32) {
        Diag *diag = report(e, x->loc, "%s is one float; this is %s", takes_samples ? "a metric" : "the loss",
                            item_describe(e, &item));
        if (ir_dtype(e->f, v) == AMP_DT_F32) diag_help(e->d, diag, "mean(...) makes it one");
        return NO_VAL;
    }
    if ((int)v.id >= made_from) ir_rename(e->f, v, unique_value_name(e, name->text));
    return v;
}

static void bind_average(Elab *e, Name *name) {
    bind(e, name, (Item){.kind = ITEM_AVERAGE});
    name->use.read = true;
}

static void elaborate_loss(Elab *e, const Stmt *s) {
    Name *name = s->bind.names.data[0];
    Val v = scalar(e, name, s->bind.value, false);
    if (v.id) ir_add_result(e->f, "loss", v);
    bind_average(e, name);
}

static void elaborate_metric(Elab *e, const Stmt *s) {
    Name *name = s->assign.name;
    if (table_get(&e->frame->names, name->text)) bind_error(e, name);
    Val v = scalar(e, name, s->assign.value, true);
    if (v.id) {
        ir_add_result(e->f, arena_printf(e->a, "metric.%s", name->text), v);
        vec_push(e->a, &e->m->metrics, name->text);
    }
    bind_average(e, name);
}

/* ---- settings -------------------------------------------------------------------------------------------- */

static void elaborate_optimizer(Elab *e, const Stmt *s) {
    elaborate_signature(e, s->bind.value, SIGNATURE_OPTIMIZER, &e->m->optimizer);
}

static void not_built(Elab *e, const Stmt *s) { report_not_built(e, s->loc, s->bind.names.data[0]->text); }

typedef struct Setting {
    const char *name;
    bool required;
    void (*elaborate)(Elab *, const Stmt *);
} Setting;

static const Setting settings[] = {
    {"loss", true, elaborate_loss},   {"optimizer", true, elaborate_optimizer}, {"clip_norm", false, not_built},
    {"clip_value", false, not_built}, {"accumulate", false, not_built},
};

enum { SETTING_COUNT = sizeof settings / sizeof settings[0] };

static void elaborate_setting(Elab *e, const Stmt *s, const Stmt **seen) {
    const Name *name = s->bind.names.data[0];
    const char *names[SETTING_COUNT];
    for (int i = 0; i < SETTING_COUNT; i++) {
        names[i] = settings[i].name;
        if (strcmp(name->text, settings[i].name) || s->bind.names.len != 1) continue;
        if (seen[i]) {
            Diag *diag = report(e, name->loc, "%s is set twice", name->text);
            diag_note(e->d, diag, seen[i]->loc, "first here");
        } else {
            seen[i] = s;
            settings[i].elaborate(e, s);
        }
        return;
    }
    Diag *diag = report(e, name->loc, "train has no setting '%s'", name->text);
    help_nearest(e, diag, name->text, names, SETTING_COUNT);
}

/* ---- the block ------------------------------------------------------------------------------------------- */

static void elaborate_train_statement(Elab *e, const Stmt *s, const Stmt **seen) {
    switch (s->kind) {
    case STMT_INPUT: break; /* begin_train */
    case STMT_BIND: elaborate_setting(e, s, seen); break;
    case STMT_METRIC: elaborate_metric(e, s); break;
    case STMT_LOSS: report_not_built(e, s->loc, "a loss with a name"); break;
    case STMT_GROUP: report_not_built(e, s->loc, "group"); break;
    default: report_misplaced(e, s, "train"); break;
    }
}

static bool names_loss(const Decl *train) {
    for (int i = 0; i < train->body.len; i++)
        if (train->body.data[i]->kind == STMT_LOSS) return true;
    return false;
}

void elaborate_train(Elab *e, Frame *frame, const Frame *model) {
    const Decl *train = frame->decl;
    const Stmt *seen[SETTING_COUNT] = {NULL};
    e->frame = frame;
    e->m->has_train = true;
    see_model(e, frame, model);
    if (strcmp(train->name->text, model->decl->name->text)) {
        Diag *diag = report(e, train->name->loc, "there is no model '%s'", train->name->text);
        diag_note(e->d, diag, model->decl->name->loc, "the model is '%s'", model->decl->name->text);
    }
    if (train->only) report_not_built(e, train->only->loc, "train for a part of the parameters");
    for (int i = 0; i < train->body.len && !e->stopped; i++) elaborate_train_statement(e, train->body.data[i], seen);
    for (int i = 0; i < SETTING_COUNT; i++)
        if (settings[i].required && !seen[i] && !(i == 0 && names_loss(train)))
            report(e, train->loc, "train needs `%s = ...`", settings[i].name);
}
