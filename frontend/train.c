/* train.c: train blocks: their inputs, what they see of the model, their losses and metrics, what else they set, and
 * which parameters each trains. */
#include "frontend/elaborate.h"

#include <math.h>

typedef enum SettingKind {
    SETTING_LOSS,
    SETTING_OPTIMIZER,
    SETTING_CLIP_NORM,
    SETTING_CLIP_VALUE,
    SETTING_ACCUMULATE,
    SETTING_EVERY,
    SETTING_EMA,
    SETTING_DATA_PARALLEL,
    SETTING_COUNT
} SettingKind;

typedef struct TrainBlock {
    const Decl *decl;
    Train train;
    const Stmt *seen[SETTING_COUNT]; /* the statement that set each */
    const Stmt *first_named_loss;
    VEC(Val) losses;
    bool wrong_loss; /* reported */
} TrainBlock;

/* ---- inputs ----------------------------------------------------------------------------------------------- */

/* The input of the same name in an earlier train block, or NULL. */
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
    Diag *diag =
        elab_error(e, name->loc, "another train block declares '%s' as %s", name->text, item_describe(e, &first->item));
    diag_note(e->d, diag, first->name->loc, "here");
    return ERROR_ITEM;
}

static void add_train_input(Elab *e, const Stmt *s) {
    Dtype dtype;
    Shape shape;
    Item item = ERROR_ITEM;
    Name *name = s->declare.name;
    if (table_get(&e->frame->names, name->text)) {
        elab_error_twice(e, name);
        return;
    }
    const Binding *first = earlier_input(e, name->text);
    if (elab_input_type(e, s->declare.type, &dtype, &shape))
        item = first ? share_input(e, name, first, dtype, &shape) : item_tensor(elab_add_input(e, name, dtype, shape));
    elab_bind(e, name, item);
}

void elab_begin_train(Elab *e, const Decl *train) {
    Frame *frame = arena_new(e->a, Frame);
    *frame = (Frame){.unit = e->units.data[0], .decl = train, .scope = ""};
    e->frame = frame;
    for (int i = 0; i < train->body.len; i++)
        if (train->body.data[i]->kind == STMT_INPUT) add_train_input(e, train->body.data[i]);
    vec_push(e->a, &e->trains, frame);
}

/* ---- the model -------------------------------------------------------------------------------------------- */

static bool is_visible(const Elab *e, const Frame *model, const Binding *b) {
    if (b->item.kind == ITEM_PARAM || b->item.kind == ITEM_ERROR) return true;
    if (b->item.kind == ITEM_TENSOR && ir_value(e->f, b->item.tensor)->kind == VAL_INPUT) return true;
    for (int i = 0; i < model->decl->results.len; i++)
        if (!strcmp(model->decl->results.data[i]->text, b->name->text)) return true;
    return false;
}

/* Makes its inputs, results and params visible; the train inputs already are. */
static void see_model(Elab *e, Frame *train, const Frame *model) {
    train->model = model;
    for (int i = 0; i < model->names.entries.len; i++) {
        Binding *b = model->names.entries.data[i].value;
        if (!is_visible(e, model, b)) continue;
        const Binding *own = table_get(&train->names, b->name->text);
        if (own) {
            Diag *diag = elab_error(e, own->name->loc, "the model already has '%s'", own->name->text);
            diag_note(e->d, diag, b->name->loc, "here");
        } else if (b->live) {
            table_set(e->a, &train->names, b->name->text, b);
        }
    }
}

static void check_model_name(Elab *e, const Decl *train, const Decl *model) {
    if (!strcmp(train->name->text, model->name->text)) return;
    Diag *diag = elab_error(e, train->name->loc, "there is no model '%s'", train->name->text);
    diag_note(e->d, diag, model->name->loc, "the model is '%s'", model->name->text);
}

/* ---- losses and metrics: the value ------------------------------------------------------------------------ */

/* A metric with a value per sample is their mean. */
static Val mean_over_batch(Elab *e, const Expr *x, Val v) {
    const Shape *s = ir_shape(e->f, v);
    if (s->rank != 1 || !s->d[0].n || ir_dtype(e->f, v) != AMP_DT_F32) return v;
    Item mean = elab_emit(e, x->loc, ir_op_new(e->f, OP_mean, &v, 1), &x->loc);
    return mean.kind == ITEM_TENSOR ? mean.tensor : NO_VAL;
}

/* A scalar value named |name|, or NO_VAL after an error. */
static Val scalar(Elab *e, const Name *name, const Expr *x, bool takes_samples) {
    int made_from = e->f->values.len;
    Item item = elab_eval(e, x);
    Val v = item.kind == ITEM_ERROR ? NO_VAL : elab_as_tensor(e, x->loc, &item);
    if (v.id && takes_samples) v = mean_over_batch(e, x, v);
    if (!v.id) return NO_VAL;
    item = item_tensor(v);
    if (ir_shape(e->f, v)->rank || ir_dtype(e->f, v) != AMP_DT_F32) {
        Diag *diag = elab_error(e, x->loc, "%s is one float; this is %s", takes_samples ? "a metric" : "the loss",
                                item_describe(e, &item));
        bool is_float = ir_dtype(e->f, v) == AMP_DT_F32;
        diag_help(e->d, diag,
                  is_float ? "mean(...) reduces it to one"
                           : "to_f32(...) converts it to floats, mean(...) reduces them to one");
        return NO_VAL;
    }
    if ((int)v.id >= made_from && ir_def(e->f, v)) ir_rename(e->f, v, elab_unique_value_name(e, name->text));
    elab_tell_binding(e, name, &item);
    return v;
}

/* ---- averages --------------------------------------------------------------------------------------------- */

static void bind_average(Elab *e, Name *name, const char *result) {
    elab_bind(e, name, (Item){.kind = ITEM_AVERAGE, .s = result});
    name->use.read = true;
}

static bool is_average(void *user, const Expr *x) {
    const Binding *b = x->kind == EXPR_NAME ? elab_find(user, x->name->text) : NULL;
    return b && b->item.kind == ITEM_AVERAGE;
}

/* The state of the function that ops are appended to. */
typedef struct FuncState {
    Func *f;
    Table value_names;
    OriginVec origins;
} FuncState;

static void swap_function(Elab *e, FuncState *other) {
    FuncState own = {e->f, e->value_names, e->origins};
    e->f = other->f;
    e->value_names = other->value_names;
    e->origins = other->origins;
    *other = own;
}

/* A metric of averages: its ops go to the function `metrics`, whose inputs are the averages. */
static bool add_metric_of_averages(Elab *e, const Name *name, const Expr *x, const char *result) {
    if (!e->averages) {
        e->averages = arena_new(e->a, FuncState);
        e->averages->f = ir_program_new(e->m, PROGRAM_METRICS);
    }
    swap_function(e, e->averages);
    e->averaging = e->frame;
    Val v = scalar(e, name, x, false);
    if (v.id) ir_add_result(e->f, result, v);
    e->averaging = NULL;
    swap_function(e, e->averages);
    return v.id != 0;
}

/* ---- losses and metrics ----------------------------------------------------------------------------------- */

static void add_loss(Elab *e, TrainBlock *b, const Name *name, const Expr *x, const char *result) {
    Val v = scalar(e, name, x, false);
    if (!v.id) b->wrong_loss = true;
    if (!v.id) return;
    ir_add_result(e->f, result, v);
    vec_push(e->a, &b->losses, v);
}

static void report_two_ways(Elab *e, Loc loc, const Stmt *first) {
    Diag *diag = elab_error(e, loc, "several losses are written as `loss NAME = ...`, each with a name");
    diag_note(e->d, diag, first->loc, "another is here");
}

static void elaborate_loss(Elab *e, TrainBlock *b, const Stmt *s) {
    Name *name = s->bind.names.data[0];
    if (b->first_named_loss) report_two_ways(e, s->loc, b->first_named_loss);
    add_loss(e, b, name, s->bind.value, b->train.loss);
    bind_average(e, name, b->train.loss);
}

static void elaborate_named_loss(Elab *e, TrainBlock *b, const Stmt *s) {
    Name *name = s->assign.name;
    const char *result = amp_result_text(e->a, RESULT_NAMED_LOSS, NO_BLOCK, name->text);
    if (b->seen[SETTING_LOSS]) report_two_ways(e, s->loc, b->seen[SETTING_LOSS]);
    if (table_get(&e->frame->names, name->text)) elab_error_twice(e, name);
    else if (table_get(&e->measures, result))
        elab_error(e, name->loc, "another train block has a loss '%s'", name->text);
    table_set(e->a, &e->measures, result, name);
    add_loss(e, b, name, s->assign.value, result);
    if (!b->first_named_loss) bind_average(e, name_new(e->a, s->loc, "loss"), b->train.loss);
    if (!b->first_named_loss) b->first_named_loss = s;
    bind_average(e, name, result);
}

static void elaborate_metric(Elab *e, const Stmt *s) {
    Name *name = s->assign.name;
    const Expr *x = s->assign.value;
    const char *result = amp_result_text(e->a, RESULT_METRIC, NO_BLOCK, name->text);
    bool good = true;
    if (table_get(&e->frame->names, name->text)) elab_error_twice(e, name);
    else if (table_get(&e->measures, result))
        elab_error(e, name->loc, "another train block has a metric '%s'", name->text);
    table_set(e->a, &e->measures, result, name);
    if (expr_any(x, is_average, e)) {
        good = add_metric_of_averages(e, name, x, result);
    } else {
        Val v = scalar(e, name, x, true);
        if (v.id) ir_add_result(e->f, result, v);
        good = v.id != 0;
    }
    if (good) vec_push(e->a, &e->m->metrics, name->text);
    bind_average(e, name, result);
}

static Val add_loss_result(Elab *e, Loc loc, const Val *losses, int count, const char *name) {
    Val sum = losses[0];
    for (int i = 1; i < count; i++) {
        Val in[2] = {sum, losses[i]};
        Loc locs[2] = {loc, loc};
        Item item = elab_emit(e, loc, ir_op_new(e->f, OP_add, in, 2), locs);
        if (item.kind != ITEM_TENSOR) return NO_VAL;
        sum = item.tensor;
    }
    if (count > 1) ir_rename(e->f, sum, elab_unique_value_name(e, name));
    ir_add_result(e->f, name, sum);
    return sum;
}

/* ---- settings --------------------------------------------------------------------------------------------- */

static void set_optimizer(Elab *e, TrainBlock *b, const Stmt *s) {
    elab_signature(e, s->bind.value, SIGNATURE_OPTIMIZER, &b->train.optimizer);
}

static double positive(Elab *e, const Stmt *s, bool finite) {
    const Expr *x = s->bind.value;
    Item item = elab_eval_static(e, x, s->bind.names.data[0]->text, STATIC_FLOAT);
    if (item.kind == ITEM_ERROR) return 0;
    if (item.f > 0 && (elab_is_finite_f32(item.f) || (!finite && isinf(item.f)))) return item.f;
    Diag *diag = elab_error(e, x->loc, "%s must be %s; this is %s", s->bind.names.data[0]->text,
                            finite       ? "finite and more than 0"
                            : item.f > 0 ? "finite as an f32, or inf, which clips nothing"
                                         : "more than 0",
                            item_describe(e, &item));
    elab_help_infinite_f32(e, diag, item.f);
    return 0;
}

/* inf clips nothing, and has the norm reported. */
static void set_clip_norm(Elab *e, TrainBlock *b, const Stmt *s) { b->train.clip_norm = positive(e, s, false); }
static void set_clip_value(Elab *e, TrainBlock *b, const Stmt *s) { b->train.clip_value = positive(e, s, true); }

/* All train blocks share the micro-batches of a step. */
static void set_accumulate(Elab *e, TrainBlock *b, const Stmt *s) {
    (void)b;
    Item item = elab_eval_static(e, s->bind.value, "accumulate", STATIC_INT);
    if (item.kind == ITEM_ERROR) return;
    int64_t given = item.i.mul;
    if (given < 1 || given > INT32_MAX) {
        elab_error(e, s->bind.value->loc, "accumulate is the number of micro-batches of a step, 1 to %d; this is %lld",
                   INT32_MAX, (long long)given);
    } else if (e->accumulate && e->m->accumulate != given) {
        Diag *diag = elab_error(
            e, s->loc, "another train block accumulates %lld micro-batches; all train blocks must use the same number",
            (long long)e->m->accumulate);
        diag_note(e->d, diag, e->accumulate->loc, "here");
    } else {
        e->accumulate = s;
        e->m->accumulate = given;
    }
}

static void set_every(Elab *e, TrainBlock *b, const Stmt *s) {
    Item item = elab_eval_static(e, s->bind.value, "every", STATIC_INT);
    if (item.kind == ITEM_ERROR) return;
    int64_t given = item.i.mul;
    b->train.every = given;
    if (given < 1 || given > INT32_MAX) {
        elab_error(e, s->bind.value->loc, "every is a number of steps, 1 to %d; this is %lld", INT32_MAX,
                   (long long)given);
    } else if (given > 1 && e->trains.len == 1) {
        Diag *diag = elab_error(e, s->loc, "this is the only train block, so most steps would train nothing");
        diag_help(e->d, diag, "for an update after %lld batches: accumulate = %lld", (long long)given,
                  (long long)given);
    }
}

static void set_ema(Elab *e, TrainBlock *b, const Stmt *s) {
    Item item = elab_eval_static(e, s->bind.value, "ema", STATIC_FLOAT);
    if (item.kind == ITEM_ERROR) return;
    b->train.ema = item.f;
    if (item.f > 0 && item.f < 1) return;
    elab_error(e, s->bind.value->loc,
               "ema is the share of an average that a step keeps, more than 0 and less than 1; "
               "this is %s",
               item_describe(e, &item));
}

/* All train blocks are part of the same step. */
static void set_data_parallel(Elab *e, TrainBlock *b, const Stmt *s) {
    (void)b;
    Item item = elab_eval_static(e, s->bind.value, "data_parallel", STATIC_BOOL);
    if (item.kind != ITEM_ERROR && item.b) e->m->distribution = DISTRIBUTE_DATA;
}

static const struct Setting {
    const char *name;
    void (*set)(Elab *, TrainBlock *, const Stmt *);
} settings[SETTING_COUNT] = {
    [SETTING_LOSS] = {"loss", elaborate_loss},
    [SETTING_OPTIMIZER] = {"optimizer", set_optimizer},
    [SETTING_CLIP_NORM] = {"clip_norm", set_clip_norm},
    [SETTING_CLIP_VALUE] = {"clip_value", set_clip_value},
    [SETTING_ACCUMULATE] = {"accumulate", set_accumulate},
    [SETTING_EVERY] = {"every", set_every},
    [SETTING_EMA] = {"ema", set_ema},
    [SETTING_DATA_PARALLEL] = {"data_parallel", set_data_parallel},
};

/* A name of the block, unless it is likely to be a misspelt setting. */
static void elaborate_local(Elab *e, const Stmt *s) {
    const char *names[SETTING_COUNT];
    const Name *name = s->bind.names.data[0];
    for (int i = 0; i < SETTING_COUNT; i++) names[i] = settings[i].name;
    if (s->bind.names.len > 1 || !text_nearest(name->text, names, SETTING_COUNT)) {
        elab_binding(e, s);
        return;
    }
    Diag *diag = elab_error(e, name->loc, "train has no setting '%s'", name->text);
    elab_help_nearest(e, diag, name->text, names, SETTING_COUNT);
    diag_help(e->d, diag, "a value of the block needs another name");
}

static void elaborate_setting(Elab *e, TrainBlock *b, const Stmt *s) {
    const Name *name = s->bind.names.data[0];
    for (int i = 0; i < SETTING_COUNT; i++) {
        if (strcmp(name->text, settings[i].name) || s->bind.names.len != 1) continue;
        if (b->seen[i]) {
            Diag *diag = elab_error(e, name->loc, "%s is set twice", name->text);
            diag_note(e->d, diag, b->seen[i]->loc, "first here");
            if (i == SETTING_LOSS) diag_help(e->d, diag, "several losses are written as `loss NAME = ...`");
        } else {
            b->seen[i] = s;
            settings[i].set(e, b, s);
        }
        return;
    }
    elaborate_local(e, s);
}

/* ---- group "*.bias": weight_decay = 0.0 ------------------------------------------------------------------- */

static bool trains(const Train *train, const State *state) {
    return state->role == STATE_PARAM && (!train->only || text_glob_match(train->only, state->name));
}

static void check_group_matches(Elab *e, const TrainBlock *b, const Name *glob) {
    const char **names = arena_array(e->a, const char *, e->m->states.len + 1);
    int count = 0;
    for (int i = 0; i < e->m->states.len; i++) {
        if (!trains(&b->train, e->m->states.data[i])) continue;
        names[count++] = e->m->states.data[i]->name;
        if (text_glob_match(glob->text, e->m->states.data[i]->name)) return;
    }
    if (e->d->errors) return; /* parameters may be missing */
    Diag *diag = elab_error(e, glob->loc, "no parameter that is trained here matches \"%s\"", glob->text);
    elab_help_choice(e, diag, glob->text, names, count);
}

static bool rate(Elab *e, const Arg *arg, const char *what, double *out) {
    if (elab_refuse_schedule(e, arg->value, what)) return false;
    Item item = elab_eval_static(e, arg->value, what, STATIC_FLOAT);
    if (item.kind == ITEM_ERROR) return false;
    *out = item.f;
    if (item.f >= 0 && elab_is_finite_f32(item.f)) return true;
    Diag *diag =
        elab_error(e, arg->value->loc, "%s must be finite and at least 0; this is %s", what, item_describe(e, &item));
    elab_help_infinite_f32(e, diag, item.f);
    return false;
}

/* Whether |arg| is a bool, which |out| becomes. */
static bool choice(Elab *e, const Arg *arg, const char *what, bool *out) {
    Item item = elab_eval_static(e, arg->value, what, STATIC_BOOL);
    *out = item.kind == ITEM_BOOL && item.b;
    return item.kind == ITEM_BOOL;
}

/* What a program sets is the group's factor. */
static void set_group_optimizer(Elab *e, const Arg *arg, TrainGroup *group) {
    if (!elab_signature(e, arg->value, SIGNATURE_OPTIMIZER, &group->optimizer)) return;
    const CallArg *lr = ir_call_arg(&group->optimizer, "lr");
    if (!lr->call || strcmp(lr->call->name, "settable")) return;
    Diag *diag = elab_error(e, arg->value->loc, "the rate of an optimizer that a group gives is not settable");
    diag_help(e->d, diag, "give the group lr_scale = 1.0: a program sets that factor by amp_session_set_lr_scale");
}

static void set_group_key(Elab *e, const Arg *arg, TrainGroup *group) {
    static const char *const keys[] = {"lr_scale", "weight_decay", "frozen", "optimizer", "lazy"};
    const char *key = arg->name->text;
    if (!strcmp(key, keys[0])) group->has_lr_scale = rate(e, arg, "group: lr_scale", &group->lr_scale);
    else if (!strcmp(key, keys[1])) group->has_weight_decay = rate(e, arg, "group: weight_decay", &group->weight_decay);
    else if (!strcmp(key, keys[2])) group->has_frozen = choice(e, arg, "group: frozen", &group->frozen);
    else if (!strcmp(key, keys[3])) set_group_optimizer(e, arg, group);
    else if (!strcmp(key, keys[4])) group->has_lazy = choice(e, arg, "group: lazy", &group->lazy);
    else elab_help_choice(e, elab_error(e, arg->name->loc, "a group has no setting '%s'", key), key, keys, 5);
}

static void elaborate_group(Elab *e, TrainBlock *b, const Stmt *s) {
    TrainGroup group = {.pattern = s->group.glob->text, .lr_scale = 1.0, .pos = elab_pos(e, s->loc)};
    const ArgVec *args = &s->group.settings;
    for (int i = 0; i < args->len; i++) {
        bool twice = false;
        for (int k = 0; k < i; k++) twice = twice || !strcmp(args->data[k].name->text, args->data[i].name->text);
        if (twice) elab_error(e, args->data[i].name->loc, "group: '%s' is given twice", args->data[i].name->text);
        else set_group_key(e, &args->data[i], &group);
    }
    check_group_matches(e, b, s->group.glob);
    vec_push(e->a, &b->train.groups, group);
}

/* ---- the block -------------------------------------------------------------------------------------------- */

static void elaborate_train_statement(Elab *e, TrainBlock *b, const Stmt *s) {
    switch (s->kind) {
    case STMT_INPUT: break; /* elab_begin_train */
    case STMT_BIND: elaborate_setting(e, b, s); break;
    case STMT_METRIC: elaborate_metric(e, s); break;
    case STMT_LOSS: elaborate_named_loss(e, b, s); break;
    case STMT_GROUP: elaborate_group(e, b, s); break;
    case STMT_CHECKPOINT: elab_error_misplaced(e, s, "train; put it into a block, and call that here"); break;
    default: elab_error_misplaced(e, s, "train"); break;
    }
}

static Val block_loss(Elab *e, TrainBlock *b) {
    if (!b->seen[SETTING_OPTIMIZER]) elab_error(e, b->decl->loc, "train needs `optimizer = ...`");
    if (!b->seen[SETTING_LOSS] && !b->first_named_loss) elab_error(e, b->decl->name->loc, "train needs `loss = ...`");
    if (!b->losses.len || b->wrong_loss) return NO_VAL;
    if (!b->first_named_loss) return b->losses.data[0]; /* already a result */
    return add_loss_result(e, b->decl->loc, b->losses.data, b->losses.len, b->train.loss);
}

/* Returns the block's loss; NO_VAL after an error. */
static Val elaborate_train(Elab *e, int index, const Frame *model) {
    Frame *frame = e->trains.data[index];
    const Decl *d = frame->decl;
    TrainBlock b = {.decl = d};
    b.train = (Train){.only = d->only ? d->only->text : NULL, .pos = elab_pos(e, d->loc)};
    b.train.loss = amp_result_text(e->a, RESULT_LOSS, e->trains.len == 1 ? NO_BLOCK : index, NULL);
    e->frame = frame;
    see_model(e, frame, model);
    check_model_name(e, d, model->decl);
    for (int i = 0; i < d->body.len && !e->stopped; i++) elaborate_train_statement(e, &b, d->body.data[i]);
    Val loss = block_loss(e, &b);
    vec_push(e->a, &e->m->trains, b.train);
    return loss;
}

/* ---- who trains what -------------------------------------------------------------------------------------- */

static void check_has_params(Elab *e, int index) {
    const Decl *d = e->trains.data[index]->decl;
    const char **names = arena_array(e->a, const char *, e->m->states.len + 1);
    int count = 0;
    for (int i = 0; i < e->m->states.len; i++) {
        if (trains(&e->m->trains.data[index], e->m->states.data[i])) return;
        if (e->m->states.data[i]->role == STATE_PARAM) names[count++] = e->m->states.data[i]->name;
    }
    if (!d->only) {
        elab_error(e, d->loc, "model %s has no parameters to train", d->name->text);
        return;
    }
    Diag *diag = elab_error(e, d->only->loc, "no parameter matches \"%s\"", d->only->text);
    elab_help_choice(e, diag, d->only->text, names, count);
}

/* The statement of a block's group. */
static const Stmt *group_line(const Decl *d, int group) {
    for (int i = 0; i < d->body.len; i++)
        if (d->body.data[i]->kind == STMT_GROUP && !group--) return d->body.data[i];
    return NULL;
}

/* A block that trains nothing: its groups freeze all parameters, or those that they leave have a factor of 0, which a
 * program may change.  The line that counts is the last of those that decide. */
static void check_updates(Elab *e, int index) {
    const Decl *d = e->trains.data[index]->decl;
    const Train *train = &e->m->trains.data[index];
    int last = NO_BLOCK, unfrozen = 0;
    for (int i = 0; i < e->m->states.len; i++) {
        const State *s = e->m->states.data[i];
        if (!trains(train, s)) continue;
        const ParamTraining t = ir_param_training(e->m, s->name);
        const bool stays = t.lr_scale != NO_BLOCK && train->groups.data[t.lr_scale].lr_scale == 0;
        if (t.frozen == NO_BLOCK && !stays) return;
        const int by = t.frozen == NO_BLOCK ? t.lr_scale : t.frozen;
        if (by > last) last = by;
        unfrozen += t.frozen == NO_BLOCK;
    }
    const Stmt *line = group_line(d, last);
    if (unfrozen) {
        Diag *diag =
            diag_warning(e->d, line->loc, "train %s changes no parameter: lr_scale is 0 for all that no group freezes",
                         d->name->text);
        diag_help(e->d, diag, "a program can set it: amp_session_set_lr_scale");
    } else {
        Diag *diag =
            elab_error(e, line->loc, "train %s trains nothing: its groups freeze all of its parameters, the last here",
                       d->name->text);
        diag_help(e->d, diag, "a later group may take some back: group \"head.*\": frozen = false");
    }
}

static Loc optimizer_line(const Decl *d) {
    for (int i = 0; i < d->body.len; i++) {
        const Stmt *s = d->body.data[i];
        if (s->kind == STMT_BIND && !strcmp(s->bind.names.data[0]->text, settings[SETTING_OPTIMIZER].name))
            return s->loc;
    }
    return d->loc;
}

/* The block's optimizer trains something: its rate is what a program sets and reads. */
static void check_optimizer(Elab *e, int index) {
    for (int i = 0; i < e->m->states.len; i++) {
        const State *s = e->m->states.data[i];
        if (!trains(&e->m->trains.data[index], s)) continue;
        const ParamTraining t = ir_param_training(e->m, s->name);
        if (t.frozen == NO_BLOCK && t.optimizer == NO_BLOCK) return;
    }
    Diag *diag = elab_error(e, optimizer_line(e->trains.data[index]->decl),
                            "optimizer: groups give another to all parameters that train %s changes",
                            e->trains.data[index]->decl->name->text);
    diag_help(e->d, diag, "make one of these the optimizer of the block");
}

static void check_apart(Elab *e, int first, int second) {
    const Decl *a = e->trains.data[first]->decl, *b = e->trains.data[second]->decl;
    for (int i = 0; i < e->m->states.len; i++) {
        const State *state = e->m->states.data[i];
        if (!trains(&e->m->trains.data[first], state) || !trains(&e->m->trains.data[second], state)) continue;
        Diag *diag = elab_error(e, b->only ? b->only->loc : b->loc, "parameter '%s' is trained by two train blocks",
                                state->name);
        diag_note(e->d, diag, a->only ? a->only->loc : a->loc, "the other is here");
        if (!a->only || !b->only)
            diag_help(e->d, diag, "say which parameters each one trains: train NAME for \"gen.*\" {");
        return;
    }
}

void elab_trains(Elab *e, const Frame *model) {
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
    for (int i = 0; i < e->trains.len && !e->d->errors; i++) check_updates(e, i);
    for (int i = 0; i < e->trains.len && !e->d->errors; i++) check_optimizer(e, i);
    if (e->trains.len > 1)
        add_loss_result(e, e->trains.data[0]->decl->loc, losses.data, losses.len, amp_result_word(RESULT_LOSS));
    e->m->has_train = e->trains.len > 0;
}
