/* precision.c: the precision block: word or policy, loss scale, overrides. */
#include "frontend/elaborate.h"

static const char *const words[] = {"fp16", "bf16", "tf32", "fp32"};
enum { WORD_COUNT = sizeof words / sizeof words[0] };

static void set_word(Elab *e, const Decl *d) {
    e->m->precision_word = d->name->text;
    e->m->precision_is_file = d->is_string;
    e->m->precision_pos = position(e, d->name->loc);
    for (int i = 0; i < WORD_COUNT; i++)
        if (d->is_string || !strcmp(words[i], d->name->text)) return;
    Diag *diag = report(e, d->name->loc, "there is no precision '%s'", d->name->text);
    help_nearest(e, diag, d->name->text, words, WORD_COUNT);
    diag_help(e->d, diag, "precision is fp16, bf16, tf32, fp32 or a policy in quotes");
}

/* dynamic(...), static(...), none */
static void set_loss_scale(Elab *e, const Stmt *s) {
    const Expr *x = s->bind.value;
    if (x->kind == EXPR_NONE) e->m->loss_scale = (Call){.name = "none", .pos = position(e, x->loc)};
    else elaborate_signature(e, x, SIGNATURE_LOSS_SCALE, &e->m->loss_scale);
}

/* fp32, so that evaluation in full precision can be chosen at run time. */
static void set_eval_precision(Elab *e, const Stmt *s) {
    Item item = evaluate_static(e, s->bind.value, "eval_precision", STATIC_SYMBOL);
    if (item.kind == ITEM_ERROR) return;
    if (!strcmp(item.s, "fp32")) {
        e->m->eval_precision = "fp32";
        return;
    }
    Diag *diag = report(e, s->bind.value->loc, "eval_precision cannot be '%s'", item.s);
    diag_help(e->d, diag, "eval_precision is fp32; without it evaluation runs in the precision of training");
}

static const struct {
    const char *name;
    void (*set)(Elab *, const Stmt *);
} settings[] = {{"loss_scale", set_loss_scale}, {"eval_precision", set_eval_precision}};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

static void elaborate_precision_setting(Elab *e, const Stmt *s, const Stmt **seen) {
    const char *names[SETTINGS];
    const Name *name = s->bind.names.data[0];
    for (int i = 0; i < SETTINGS; i++) {
        names[i] = settings[i].name;
        if (strcmp(name->text, names[i]) || s->bind.names.len != 1) continue;
        if (seen[i]) {
            Diag *diag = report(e, name->loc, "%s is set twice", name->text);
            diag_note(e->d, diag, seen[i]->loc, "first here");
        } else {
            seen[i] = s;
            settings[i].set(e, s);
        }
        return;
    }
    Diag *diag = report(e, name->loc, "precision has no setting '%s'", name->text);
    help_nearest(e, diag, name->text, names, SETTINGS);
    diag_help(e->d, diag, "an override has a colon: %s: f32", name->text);
}

/* Which ops, classes and paths there are is the policy's to say: autocast checks them. */
static void add_override(Elab *e, const Stmt *s) {
    Override o = {
        .pattern = s->override.pattern->text,
        .is_path = s->override.is_path,
        .word = s->override.word->text,
        .because = s->override.because ? s->override.because->text : NULL,
        .pos = position(e, s->loc),
    };
    vec_push(e->a, &e->m->overrides, o);
}

void elaborate_precision(Elab *e, const Decl *d) {
    Frame frame = {.unit = e->units.data[0], .decl = d, .scope = ""};
    const Stmt *seen[SETTINGS] = {NULL};
    e->frame = &frame;
    set_word(e, d);
    for (int i = 0; i < d->body.len; i++) {
        const Stmt *s = d->body.data[i];
        if (s->kind == STMT_BIND) elaborate_precision_setting(e, s, seen);
        else if (s->kind == STMT_OVERRIDE) add_override(e, s);
        else report_misplaced(e, s, "precision");
    }
    e->frame = NULL;
}
