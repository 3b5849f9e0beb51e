/* precision.c: the precision block: word or policy, loss scale, overrides. */
#include "frontend/elaborate.h"

static const char *const words[] = {"fp16", "bf16", "tf32", "fp32"};
enum { WORD_COUNT = sizeof words / sizeof words[0] };

static void set_word(Elab *e, const Decl *d) {
    e->m->precision_word = d->name->text;
    e->m->precision_is_file = d->is_string;
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

static void elaborate_precision_setting(Elab *e, const Stmt *s, const Stmt **loss_scale) {
    static const char *const names[] = {"loss_scale", "eval_precision"};
    const Name *name = s->bind.names.data[0];
    if (!strcmp(name->text, "eval_precision")) {
        report_not_built(e, s->loc, "eval_precision");
    } else if (strcmp(name->text, "loss_scale")) {
        Diag *diag = report(e, name->loc, "precision has no setting '%s'", name->text);
        help_nearest(e, diag, name->text, names, 2);
    } else if (*loss_scale) {
        Diag *diag = report(e, name->loc, "loss_scale is set twice");
        diag_note(e->d, diag, (*loss_scale)->loc, "first here");
    } else {
        *loss_scale = s;
        set_loss_scale(e, s);
    }
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
    const Stmt *loss_scale = NULL;
    e->frame = &frame;
    set_word(e, d);
    for (int i = 0; i < d->body.len; i++) {
        const Stmt *s = d->body.data[i];
        if (s->kind == STMT_BIND) elaborate_precision_setting(e, s, &loss_scale);
        else if (s->kind == STMT_OVERRIDE) add_override(e, s);
        else report_misplaced(e, s, "precision");
    }
    e->frame = NULL;
}
