/* settings.c: what a train block sets besides its losses and metrics: optimizer, clipping, accumulation, groups. */
#include "frontend/train.h"

#include <math.h>

static void set_optimizer(Elab *e, TrainBlock *b, const Stmt *s) {
    elaborate_signature(e, s->bind.value, SIGNATURE_OPTIMIZER, &b->train.optimizer);
}

static double positive(Elab *e, const Stmt *s) {
    const Expr *x = s->bind.value;
    Item item = evaluate_static(e, x, s->bind.names.data[0]->text, STATIC_FLOAT);
    if (item.kind == ITEM_ERROR) return 0;
    if (item.f > 0 && isfinite(item.f)) return item.f;
    report(e, x->loc, "%s must be finite and more than 0; this is %s", s->bind.names.data[0]->text,
           item_describe(e, &item));
    return 0;
}

static void set_clip_norm(Elab *e, TrainBlock *b, const Stmt *s) { b->train.clip_norm = positive(e, s); }
static void set_clip_value(Elab *e, TrainBlock *b, const Stmt *s) { b->train.clip_value = positive(e, s); }

/* A step has as many micro-batches for all blocks. */
static void set_accumulate(Elab *e, TrainBlock *b, const Stmt *s) {
    (void)b;
    Item item = evaluate_static(e, s->bind.value, "accumulate", STATIC_INT);
    if (item.kind == ITEM_ERROR) return;
    int64_t given = item.i.mul;
    if (given < 1 || given > INT32_MAX) {
        report(e, s->bind.value->loc, "accumulate is the number of micro-batches of a step, 1 to %d; this is %lld",
               INT32_MAX, (long long)given);
    } else if (e->accumulate && e->m->accumulate != given) {
        Diag *diag = report(e, s->loc, "another train block accumulates %lld micro-batches; a step has one number",
                            (long long)e->m->accumulate);
        diag_note(e->d, diag, e->accumulate->loc, "here");
    } else {
        e->accumulate = s;
        e->m->accumulate = given;
    }
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
};

static void report_unknown(Elab *e, const Name *name) {
    const char *names[SETTING_COUNT];
    for (int i = 0; i < SETTING_COUNT; i++) names[i] = settings[i].name;
    Diag *diag = report(e, name->loc, "train has no setting '%s'", name->text);
    help_nearest(e, diag, name->text, names, SETTING_COUNT);
    diag_help(e->d, diag, "a quantity to be reported is written `metric %s = ...`", name->text);
}

void elaborate_setting(Elab *e, TrainBlock *b, const Stmt *s) {
    const Name *name = s->bind.names.data[0];
    for (int i = 0; i < SETTING_COUNT; i++) {
        if (strcmp(name->text, settings[i].name) || s->bind.names.len != 1) continue;
        if (b->seen[i]) {
            Diag *diag = report(e, name->loc, "%s is set twice", name->text);
            diag_note(e->d, diag, b->seen[i]->loc, "first here");
            if (i == SETTING_LOSS) diag_help(e->d, diag, "several losses are written as `loss NAME = ...`");
        } else {
            b->seen[i] = s;
            settings[i].set(e, b, s);
        }
        return;
    }
    report_unknown(e, name);
}

/* ---- group "*.bias": weight_decay = 0.0 ------------------------------------------------------------------ */

bool trains(const Train *train, const State *state) {
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
    Diag *diag = report(e, glob->loc, "no parameter that is trained here matches \"%s\"", glob->text);
    help_choice(e, diag, glob->text, names, count);
}

static bool rate(Elab *e, const Arg *arg, const char *what, double *out) {
    if (refuse_schedule(e, arg->value, what)) return false;
    Item item = evaluate_static(e, arg->value, what, STATIC_FLOAT);
    if (item.kind == ITEM_ERROR) return false;
    *out = item.f;
    if (item.f >= 0 && isfinite(item.f)) return true;
    report(e, arg->value->loc, "%s must be finite and at least 0; this is %s", what, item_describe(e, &item));
    return false;
}

static void set_frozen(Elab *e, const Arg *arg, TrainGroup *group) {
    Item item = evaluate_static(e, arg->value, "group: frozen", STATIC_BOOL);
    group->frozen = item.kind == ITEM_BOOL && item.b;
}

static void set_group_key(Elab *e, const Arg *arg, TrainGroup *group) {
    static const char *const keys[] = {"lr_scale", "weight_decay", "frozen"};
    const char *key = arg->name->text;
    if (!strcmp(key, keys[0])) group->has_lr_scale = rate(e, arg, "group: lr_scale", &group->lr_scale);
    else if (!strcmp(key, keys[1])) group->has_weight_decay = rate(e, arg, "group: weight_decay", &group->weight_decay);
    else if (!strcmp(key, keys[2])) set_frozen(e, arg, group);
    else help_choice(e, report(e, arg->name->loc, "a group has no setting '%s'", key), key, keys, 3);
}

void elaborate_group(Elab *e, TrainBlock *b, const Stmt *s) {
    TrainGroup group = {.pattern = s->group.glob->text, .lr_scale = 1.0, .pos = position(e, s->loc)};
    const ArgVec *args = &s->group.settings;
    for (int i = 0; i < args->len; i++) {
        bool twice = false;
        for (int k = 0; k < i; k++) twice = twice || !strcmp(args->data[k].name->text, args->data[i].name->text);
        if (twice) report(e, args->data[i].name->loc, "group: '%s' is given twice", args->data[i].name->text);
        else set_group_key(e, &args->data[i], &group);
    }
    check_group_matches(e, b, s->group.glob);
    vec_push(e->a, &b->train.groups, group);
}
