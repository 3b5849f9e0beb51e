/* declarations.c: const, model and precision. */
#include "frontend/elaborate.h"

#include "ir/words.h"

#include "base/text.h"
#include "base/names.h"

/* ---- -D NAME=VALUE ---------------------------------------------------------------------------------------- */

static bool is_definable(const Decl *d) { return d->kind == DECL_CONST || d->kind == DECL_SIZE; }

static Decl *find_definable(const Unit *unit, const char *name) {
    for (int i = 0; i < unit->file->decls.len; i++) {
        Decl *d = unit->file->decls.data[i];
        if (is_definable(d) && !strcmp(d->name->text, name)) return d;
    }
    return NULL;
}

bool elab_parse_int(const char *s, int64_t *out) {
    bool negative = *s == '-';
    if (negative) s++;
    if (!*s) return false;
    for (*out = 0; *s; s++) {
        if (*s < '0' || *s > '9') return false;
        if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, *s - '0', out)) return false;
    }
    if (negative) *out = -*out;
    return true;
}

/* The literal that a -D option gives, at the location of the const that it replaces. */
static Expr *parse_value(Elab *e, const char *text, Loc loc) {
    int64_t i;
    double f;
    if (elab_parse_int(text, &i)) {
        Expr *x = expr_new(e->a, EXPR_INT, loc);
        x->i = i;
        return x;
    }
    if (decimal_parse(text, strlen(text), &f)) {
        Expr *x = expr_new(e->a, EXPR_FLOAT, loc);
        x->f = f;
        return x;
    }
    if (strcmp(text, "true") && strcmp(text, "false")) return NULL;
    Expr *x = expr_new(e->a, EXPR_BOOL, loc);
    x->b = !strcmp(text, "true");
    return x;
}

static void report_unknown_define(Elab *e, const Unit *main, const FrontendDefine *define) {
    Diag *diag =
        diag_error(e->d, (Loc){0}, "-D %s: %s has no const of that name", define->name, main->file->source->name);
    Table names = {0};
    for (int i = 0; i < main->file->decls.len; i++) {
        Decl *d = main->file->decls.data[i];
        if (is_definable(d)) table_set(e->a, &names, d->name->text, d);
    }
    elab_help_choice_of_key(e, diag, define->name, &names);
}

void elab_apply_defines(Elab *e, Unit *main) {
    for (int i = 0; i < e->options->define_count; i++) {
        const FrontendDefine *define = &e->options->defines[i];
        Decl *d = find_definable(main, define->name);
        if (d && d->kind == DECL_SIZE) continue; /* elab_size */
        Expr *value = d ? parse_value(e, define->value, d->value->loc) : NULL;
        if (!d) report_unknown_define(e, main, define);
        else if (!value)
            diag_error(e->d, (Loc){0}, "-D %s=%s: the value is not an integer, a float, true or false", define->name,
                       define->value);
        else d->value = value;
    }
}

/* ---- const NAME = value ----------------------------------------------------------------------------------- */

static Item check_const(Elab *e, const Decl *d, Item value) {
    if (value.kind == ITEM_ERROR) return value;
    bool is_plain =
        value.kind == ITEM_FLOAT || value.kind == ITEM_BOOL || value.kind == ITEM_STRING || value.kind == ITEM_INT;
    if (is_plain && !(value.kind == ITEM_INT && dim_varies(value.i))) return value;
    return elab_error_item(e, d->value->loc, "const %s is %s; a const is an int, a float, a bool or a string",
                           d->name->text, item_describe(e, &value));
}

void elab_consts(Elab *e, Unit *unit) {
    Frame *frame = arena_new(e->a, Frame), *outer = e->frame;
    *frame = (Frame){.unit = unit, .scope = ""};
    e->frame = frame;
    for (int i = 0; i < unit->file->decls.len; i++) {
        Decl *d = unit->file->decls.data[i];
        if (d->kind == DECL_SIZE) elab_size(e, unit, d);
        if (d->kind != DECL_CONST) continue;
        if (elab_find(e, d->name->text)) {
            elab_error_twice(e, d->name);
            continue;
        }
        Binding *b = arena_new(e->a, Binding);
        *b = (Binding){.name = d->name, .item = check_const(e, d, elab_eval(e, d->value)), .live = true};
        table_set(e->a, &unit->consts, d->name->text, b);
        elab_tell_binding(e, d->name, &b->item);
        if (b->item.kind == ITEM_INT && unit == e->units.data[0]) {
            struct NamedInt named = {d->name->text, b->item.i.mul};
            vec_push(e->a, &e->m->consts, named);
        }
    }
    e->frame = outer;
}

/* ---- model ------------------------------------------------------------------------------------------------ */

static void add_model_inputs(Elab *e, const Decl *model) {
    for (int i = 0; i < model->tensors.len; i++) {
        const Parameter *p = &model->tensors.data[i];
        Dtype dtype;
        Shape shape;
        Item item = ERROR_ITEM;
        bool twice = table_get(&e->frame->names, p->name->text) != NULL;
        if (twice) elab_error_twice(e, p->name);
        if (elab_input_type(e, p->type, &dtype, &shape) && !twice)
            item = item_tensor(elab_add_input(e, p->name, dtype, shape));
        if (!twice) elab_bind(e, p->name, item);
    }
}

/* An error if result |i| has the name of one before it. */
static bool is_second_result(Elab *e, const NameVec *results, int i) {
    const Name *name = results->data[i], *first = results->data[0];
    for (int k = 0; strcmp(first->text, name->text); k++) first = results->data[k + 1];
    if (first == name) return false;
    Diag *diag = elab_error(e, name->loc, "two results are called '%s'", name->text);
    diag_note(e->d, diag, first->loc, "first here");
    return true;
}

static void add_model_results(Elab *e, const Decl *model) {
    if (!model->results.len) {
        Diag *diag = elab_error(e, model->loc, "model %s has no results", model->name->text);
        diag_help(e->d, diag, "name them after the inputs: model %s(...) -> logits {", model->name->text);
    }
    for (int i = 0; i < model->results.len; i++) {
        Name *name = model->results.data[i];
        if (is_second_result(e, &model->results, i)) continue;
        if (!elab_find(e, name->text)) {
            Diag *diag =
                elab_error(e, name->loc, "model %s does not bind its result '%s'", model->name->text, name->text);
            elab_help_nearest_key(e, diag, name->text, &e->frame->names);
            if (!diag->notes.len) diag_help(e->d, diag, "bind it in the body: %s = ...", name->text);
            continue;
        }
        Item item = elab_read(e, name);
        if (item.kind == ITEM_TENSOR) ir_add_result(e->f, name->text, item.tensor);
        else if (item.kind != ITEM_ERROR)
            elab_error(e, name->loc, "a result is a tensor; %s is %s", name->text, item_describe(e, &item));
    }
}

static void elaborate_inits(Elab *e, const Decl *model) {
    for (int i = 0; i < model->body.len; i++)
        if (model->body.data[i]->kind == STMT_INIT) elab_param_init(e, model->body.data[i]);
}

Frame *elab_begin_model(Elab *e, const Decl *model) {
    Frame *frame = arena_new(e->a, Frame);
    *frame = (Frame){.unit = e->units.data[0], .decl = model, .scope = ""};
    e->frame = frame;
    add_model_inputs(e, model);
    return frame;
}

void elab_model(Elab *e, Frame *frame) {
    e->frame = frame;
    elab_body(e, &frame->decl->body);
    if (!e->d->errors) elaborate_inits(e, frame->decl); /* else params may be missing */
    add_model_results(e, frame->decl);
}

/* ---- precision -------------------------------------------------------------------------------------------- */

static void report_unknown_precision(Elab *e, const Name *name) {
    const char *words[AMP_PRECISION_COUNT];
    Text t;
    text_init(&t, e->a);
    for (int i = 0; i < AMP_PRECISION_COUNT; i++) {
        words[i] = amp_precisions[i].word;
        text_printf(&t, "%s%s", i ? ", " : "", words[i]);
    }
    Diag *diag = elab_error(e, name->loc, "there is no precision '%s'", name->text);
    elab_help_nearest(e, diag, name->text, words, AMP_PRECISION_COUNT);
    diag_help(e->d, diag, "precision is %s or a policy in quotes", text_str(&t));
}

static void set_word(Elab *e, const Decl *d) {
    e->m->precision_word = d->name->text;
    e->m->precision_is_file = d->is_string;
    e->m->precision_pos = elab_pos(e, d->name->loc);
    if (!d->is_string && !amp_precision_find(d->name->text)) report_unknown_precision(e, d->name);
}

/* dynamic(...), static(...), none */
static void set_loss_scale(Elab *e, const Stmt *s) {
    const Expr *x = s->bind.value;
    if (x->kind == EXPR_NONE) e->m->loss_scale = (Call){.name = "none", .pos = elab_pos(e, x->loc)};
    else elab_signature(e, x, SIGNATURE_LOSS_SCALE, &e->m->loss_scale);
}

/* bf16 is bf16(). */
static void set_state_type(Elab *e, const Stmt *s, Call *out) {
    Expr x = *s->bind.value;
    if (x.kind == EXPR_NAME) {
        x.kind = EXPR_CALL;
        x.call = (CallExpr){.callee = s->bind.value->name};
    }
    elab_signature(e, &x, SIGNATURE_STATE_TYPE, out);
}

static void set_masters(Elab *e, const Stmt *s) { set_state_type(e, s, &e->m->masters); }
static void set_moments(Elab *e, const Stmt *s) { set_state_type(e, s, &e->m->moments); }

/* What gradients travel in between ranks. */
static void set_reduce(Elab *e, const Stmt *s) {
    Item item = elab_eval_static(e, s->bind.value, "reduce", STATIC_SYMBOL);
    if (item.kind == ITEM_ERROR) return;
    const Dtype t = word_dtype(item.s);
    if (t != AMP_DT_F32 && t != AMP_DT_BF16 && t != AMP_DT_F16) {
        Diag *diag = elab_error(e, s->bind.value->loc, "reduce cannot be '%s'", item.s);
        diag_help(e->d, diag, "ranks exchange gradients in f32 (as without it), bf16 or f16");
        return;
    }
    e->m->reduce = t;
    e->m->reduce_pos = elab_pos(e, s->loc);
}

static void set_pad(Elab *e, const Stmt *s) {
    const Expr *x = s->bind.value;
    if (x->kind == EXPR_NAME && !elab_find(e, x->name->text)) {
        Diag *diag = elab_error(e, x->loc, "pad cannot be '%s'", x->name->text);
        diag_help(e->d, diag, "pad can only be true or false");
        return;
    }
    Item item = elab_eval_static(e, s->bind.value, "pad", STATIC_BOOL);
    if (item.kind != ITEM_ERROR) e->m->pad = item.b;
}

/* Full precision only: a model can then be evaluated in it at run time. */
static void set_eval_precision(Elab *e, const Stmt *s) {
    Item item = elab_eval_static(e, s->bind.value, "eval_precision", STATIC_SYMBOL);
    if (item.kind == ITEM_ERROR) return;
    if (!strcmp(item.s, AMP_FULL_PRECISION)) {
        e->m->eval_precision = AMP_FULL_PRECISION;
        return;
    }
    Diag *diag = elab_error(e, s->bind.value->loc, "eval_precision cannot be '%s'", item.s);
    diag_help(e->d, diag,
              "eval_precision can only be " AMP_FULL_PRECISION
              "; without it, evaluation runs in the precision of training");
}

static const struct {
    const char *name;
    void (*set)(Elab *, const Stmt *);
} settings[] = {{"loss_scale", set_loss_scale},
                {"eval_precision", set_eval_precision},
                {"masters", set_masters},
                {"moments", set_moments},
                {"pad", set_pad},
                {"reduce", set_reduce}};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

static void elaborate_precision_setting(Elab *e, const Stmt *s, const Stmt **seen) {
    const char *names[SETTINGS];
    const Name *name = s->bind.names.data[0];
    for (int i = 0; i < SETTINGS; i++) {
        names[i] = settings[i].name;
        if (strcmp(name->text, names[i]) || s->bind.names.len != 1) continue;
        if (seen[i]) {
            Diag *diag = elab_error(e, name->loc, "%s is set twice", name->text);
            diag_note(e->d, diag, seen[i]->loc, "first here");
        } else {
            seen[i] = s;
            settings[i].set(e, s);
        }
        return;
    }
    Diag *diag = elab_error(e, name->loc, "precision has no setting '%s'", name->text);
    elab_help_nearest(e, diag, name->text, names, SETTINGS);
    diag_help(e->d, diag, "an override has a colon: %s: f32", name->text);
}

/* Ops, classes and paths depend on the policy, so autocast checks them. */
static void add_override(Elab *e, const Stmt *s) {
    Override o = {
        .pattern = s->override.pattern->text,
        .is_path = s->override.is_path,
        .word = s->override.word->text,
        .because = s->override.because ? s->override.because->text : NULL,
        .pos = elab_pos(e, s->loc),
    };
    vec_push(e->a, &e->m->overrides, o);
}

void elab_precision(Elab *e, const Decl *d) {
    Frame frame = {.unit = e->units.data[0], .decl = d, .scope = ""};
    const Stmt *seen[SETTINGS] = {NULL};
    e->frame = &frame;
    set_word(e, d);
    for (int i = 0; i < d->body.len; i++) {
        const Stmt *s = d->body.data[i];
        if (s->kind == STMT_BIND) elaborate_precision_setting(e, s, seen);
        else if (s->kind == STMT_OVERRIDE) add_override(e, s);
        else elab_error_misplaced(e, s, "precision");
    }
    e->frame = NULL;
}
