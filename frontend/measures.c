/* measures.c: losses and metrics: floats of a batch that become results of `forward`; and metrics that are computed
 * from the averages of others, in a function of their own. */
#include "frontend/train.h"

/* ---- one float ------------------------------------------------------------------------------------------- */

/* A value per sample counts by its mean. */
static Val mean_over_batch(Elab *e, const Expr *x, Val v) {
    const Shape *s = ir_shape(e->f, v);
    if (s->rank != 1 || !s->d[0].n || ir_dtype(e->f, v) != AMP_DT_F32) return v;
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
        bool is_float = ir_dtype(e->f, v) == AMP_DT_F32;
        diag_help(e->d, diag, is_float ? "mean(...) makes it one" : "to_f32(...) makes floats of it, mean(...) one");
        return NO_VAL;
    }
    if ((int)v.id >= made_from) ir_rename(e->f, v, unique_value_name(e, name->text));
    return v;
}

/* ---- averages -------------------------------------------------------------------------------------------- */

static void bind_average(Elab *e, Name *name, const char *result) {
    bind(e, name, (Item){.kind = ITEM_AVERAGE, .s = result});
    name->use.read = true;
}

static bool is_average(void *user, const Name *name) {
    const Binding *b = find_binding(user, name->text);
    return b && b->item.kind == ITEM_AVERAGE;
}

/* What belongs to the function that ops go to. */
typedef struct Target {
    Func *f;
    Table value_names;
    OriginVec origins;
} Target;

static void swap_target(Elab *e, Target *other) {
    Target own = {e->f, e->value_names, e->origins};
    e->f = other->f;
    e->value_names = other->value_names;
    e->origins = other->origins;
    *other = own;
}

/* A metric of averages: its ops go to the function `metrics`, whose inputs are the averages. */
static bool add_metric_of_averages(Elab *e, const Name *name, const Expr *x, const char *result) {
    if (!e->averages) {
        e->averages = arena_new(e->a, Target);
        e->averages->f = ir_func_new(e->m, "metrics");
    }
    swap_target(e, e->averages);
    e->averaging = e->frame;
    Val v = scalar(e, name, x, false);
    if (v.id) ir_add_result(e->f, result, v);
    e->averaging = NULL;
    swap_target(e, e->averages);
    return v.id != 0;
}

/* ---- statements ------------------------------------------------------------------------------------------ */

static void add_loss(Elab *e, TrainBlock *b, const Name *name, const Expr *x, const char *result) {
    Val v = scalar(e, name, x, false);
    if (!v.id) b->wrong_loss = true;
    if (!v.id) return;
    ir_add_result(e->f, result, v);
    vec_push(e->a, &b->losses, v);
}

static void report_two_ways(Elab *e, Loc loc, const Stmt *first) {
    Diag *diag = report(e, loc, "several losses are written as `loss NAME = ...`, each with a name");
    diag_note(e->d, diag, first->loc, "another is here");
}

void elaborate_loss(Elab *e, TrainBlock *b, const Stmt *s) {
    Name *name = s->bind.names.data[0];
    if (b->first_named_loss) report_two_ways(e, s->loc, b->first_named_loss);
    add_loss(e, b, name, s->bind.value, b->train.loss);
    bind_average(e, name, b->train.loss);
}

void elaborate_named_loss(Elab *e, TrainBlock *b, const Stmt *s) {
    Name *name = s->assign.name;
    const char *result = arena_printf(e->a, "loss.%s", name->text);
    if (b->seen[SETTING_LOSS]) report_two_ways(e, s->loc, b->seen[SETTING_LOSS]);
    if (table_get(&e->frame->names, name->text)) bind_error(e, name);
    else if (table_get(&e->measures, result)) report(e, name->loc, "another train block has a loss '%s'", name->text);
    table_set(e->a, &e->measures, result, name);
    add_loss(e, b, name, s->assign.value, result);
    if (!b->first_named_loss) bind_average(e, name_new(e->a, s->loc, "loss"), b->train.loss);
    if (!b->first_named_loss) b->first_named_loss = s;
    bind_average(e, name, result);
}

void elaborate_metric(Elab *e, const Stmt *s) {
    Name *name = s->assign.name;
    const Expr *x = s->assign.value;
    const char *result = arena_printf(e->a, "metric.%s", name->text);
    bool good = true;
    if (table_get(&e->frame->names, name->text)) bind_error(e, name);
    else if (table_get(&e->measures, result)) report(e, name->loc, "another train block has a metric '%s'", name->text);
    table_set(e->a, &e->measures, result, name);
    if (expr_any_name(x, is_average, e)) {
        good = add_metric_of_averages(e, name, x, result);
    } else {
        Val v = scalar(e, name, x, true);
        if (v.id) ir_add_result(e->f, result, v);
        good = v.id != 0;
    }
    if (good) vec_push(e->a, &e->m->metrics, name->text);
    bind_average(e, name, result);
}

Val add_loss_result(Elab *e, Loc loc, const Val *losses, int count, const char *name) {
    Val sum = losses[0];
    for (int i = 1; i < count; i++) {
        Val in[2] = {sum, losses[i]};
        Loc locs[2] = {loc, loc};
        Item item = emit_op(e, loc, ir_op_new(e->f, OP_add, in, 2), locs);
        if (item.kind != ITEM_TENSOR) return NO_VAL;
        sum = item.tensor;
    }
    if (count > 1) ir_rename(e->f, sum, unique_value_name(e, name));
    ir_add_result(e->f, name, sum);
    return sum;
}
