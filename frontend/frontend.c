/* frontend.c: from the main file to the elaborated module: reading includes, collecting declarations, elaborating in
 * order. */
#include "frontend/elaborate.h"
#include "frontend/parse.h"

#include "base/hash.h"

enum { DEFAULT_MAX_OPS = 250000, MAX_FILES = 256, LANGUAGE_VERSION = 1 };

/* ---- files ------------------------------------------------------------------------------------------------ */

static void check_version(Elab *e, const File *file) {
    const Decl *first = file->decls.len ? file->decls.data[0] : NULL;
    Loc start = {file->source, 0, 0};
    if (!first || first->kind != DECL_VERSION) {
        elab_error(e, first ? first->loc : start,
                   "the first line of a file must be `amp %d`, the version of the language", LANGUAGE_VERSION);
        return;
    }
    if (first->value->i != LANGUAGE_VERSION)
        elab_error(e, first->value->loc, "this compiler supports version %d of the language", LANGUAGE_VERSION);
    for (int i = 1; i < file->decls.len; i++)
        if (file->decls.data[i]->kind == DECL_VERSION)
            elab_error(e, file->decls.data[i]->loc, "`amp` is allowed only on the first line");
}

static Unit *find_unit(const Elab *e, const char *source_name) {
    for (int i = 0; i < e->units.len; i++)
        if (!strcmp(e->units.data[i]->file->source->name, source_name)) return e->units.data[i];
    return NULL;
}

static Unit *unit_new(Arena *a, File *file, bool is_prelude) {
    Unit *unit = arena_new(a, Unit);
    unit->file = file;
    unit->is_prelude = is_prelude;
    const Source *source = file->source;
    vec_push(a, &unit->lines, 0);
    for (size_t i = 0; i < source->len; i++)
        if (source->text[i] == '\n') vec_push(a, &unit->lines, (uint32_t)i + 1);
    return unit;
}

static void add_unit(Elab *e, const Source *source, bool is_prelude) {
    File *file = frontend_parse(e->a, e->d, source);
    if (!file) return;
    vec_push(e->a, &e->units, unit_new(e->a, file, is_prelude));
    check_version(e, file);
}

static void add_include(Elab *e, const Unit *unit, const Decl *d) {
    const Source *source = NULL;
    if (e->options->find_include)
        source = e->options->find_include(e->options->user, d->name->text, unit->file->source->name);
    if (e->options->no_includes)
        elab_error(e, d->name->loc, "include is not allowed here: the caller has turned it off");
    else if (!source)
        diag_help(e->d, elab_error(e, d->name->loc, "cannot read the file \"%s\"", d->name->text),
                  "its name is relative to the file that includes it");
    else if (e->units.len == MAX_FILES) elab_error(e, d->loc, "a program has at most %d files", MAX_FILES);
    else if (!find_unit(e, source->name)) add_unit(e, source, false);
}

/* Included files are appended to the list that the loop walks. */
static void read_includes(Elab *e) {
    for (int i = 0; i < e->units.len; i++) {
        const DeclVec *decls = &e->units.data[i]->file->decls;
        for (int k = 0; k < decls->len; k++)
            if (decls->data[k]->kind == DECL_INCLUDE) add_include(e, e->units.data[i], decls->data[k]);
    }
}

static void read_prelude(Elab *e) {
    Source *source = arena_new(e->a, Source);
    *source = (Source){"prelude.amp", frontend_prelude_text, strlen(frontend_prelude_text)};
    add_unit(e, source, true);
}

/* ---- declarations ----------------------------------------------------------------------------------------- */

typedef struct Program {
    const Decl *model, *precision;
    VEC(const Decl *) trains;
} Program;

/* A call passes tensors by position, so those with a default must come last. */
static void check_defaults(Elab *e, const Decl *d) {
    for (int i = 1; i < d->tensors.len; i++) {
        const Parameter *before = &d->tensors.data[i - 1], *p = &d->tensors.data[i];
        if (!before->initial || p->initial) continue;
        Diag *diag = elab_error(e, p->name->loc, "'%s' has no default but follows '%s', which has one", p->name->text,
                                before->name->text);
        diag_help(e->d, diag, "tensors are given by position: put '%s' first, or write `%s = none`", p->name->text,
                  p->name->text);
        return;
    }
}

static void add_block(Elab *e, const Unit *unit, const Decl *d) {
    Table *blocks = unit->is_prelude ? &e->prelude : &e->blocks;
    const Block *first = table_get(blocks, d->name->text);
    if (first) {
        Diag *diag = elab_error(e, d->name->loc, "there is already a block '%s'", d->name->text);
        diag_note(e->d, diag, first->decl->name->loc, "first here");
        return;
    }
    if (d->results.len > MAX_RESULTS || d->tensors.len > MAX_ARGS || d->statics.len > MAX_ARGS)
        elab_error(e, d->name->loc, "a block has at most %d arguments of each kind and %d results", MAX_ARGS,
                   MAX_RESULTS);
    check_defaults(e, d);
    Block *b = arena_new(e->a, Block);
    *b = (Block){.decl = d, .unit = unit};
    table_set(e->a, blocks, d->name->text, b);
}

static bool in_main_file(Elab *e, const Unit *unit, const Decl *d, const char *what) {
    if (unit != e->units.data[0])
        elab_error(e, d->loc, "%s is allowed only in the main file, not in an included one", what);
    return unit == e->units.data[0];
}

/* The only declaration of its kind; it must be in the main file. */
static void set_only(Elab *e, const Unit *unit, const Decl *d, const char *what, const Decl **only) {
    if (!in_main_file(e, unit, d, what)) return;
    if (*only) {
        Diag *diag = elab_error(e, d->loc, "there is already a %s", what);
        diag_note(e->d, diag, (*only)->loc, "first here");
    } else {
        *only = d;
    }
}

static void collect(Elab *e, Program *p) {
    for (int u = 0; u < e->units.len; u++) {
        const Unit *unit = e->units.data[u];
        for (int i = 0; i < unit->file->decls.len; i++) {
            const Decl *d = unit->file->decls.data[i];
            if (d->kind == DECL_BLOCK) add_block(e, unit, d);
            else if (d->kind == DECL_MODEL) set_only(e, unit, d, "model", &p->model);
            else if (d->kind == DECL_TRAIN && in_main_file(e, unit, d, "train")) vec_push(e->a, &p->trains, d);
            else if (d->kind == DECL_SIZE) in_main_file(e, unit, d, "size");
            else if (d->kind == DECL_PRECISION) set_only(e, unit, d, "precision", &p->precision);
        }
    }
}

/* ---- the module ------------------------------------------------------------------------------------------- */

static void set_source(const Elab *e, Module *m, const Source *main) {
    uint8_t digest[32];
    m->source_name = elab_recorded_name(e, main);
    m->source_path = main->name;
    m->source_text = main->text;
    amp_sha256_of(main->text, main->len, digest);
    amp_sha256_hex(digest, m->source_sha256);
}

static void elaborate_program(Elab *e, const Program *p) {
    elab_apply_defines(e, e->units.data[0]);
    for (int i = 0; i < e->units.len; i++) elab_consts(e, e->units.data[i]);
    if (!p->model && e->options->may_lack_model) return;
    if (!p->model) {
        Diag *diag = elab_error(e, (Loc){e->units.data[0]->file->source, 0, 0}, "the file has no model");
        diag_help(e->d, diag, "a model is model NAME(x: f32[N, 784]) -> y { ... }");
        return;
    }
    Frame *model = elab_begin_model(e, p->model);
    for (int i = 0; i < p->trains.len; i++) elab_begin_train(e, p->trains.data[i]);
    elab_model(e, model);
    elab_trains(e, model);
    elab_add_updates(e);
    if (p->precision) elab_precision(e, p->precision);
    if (!e->d->errors) elab_check_unread(e);
}

/* A value may get another name after it was bound. */
static void name_bindings(const Elab *e) {
    FrontendBindings *bindings = e->options->bindings;
    for (int i = 0; bindings && i < bindings->len; i++) {
        FrontendBinding *b = &bindings->data[i];
        if (b->v.id) b->value = ir_value(e->f, b->v)->name;
    }
}

Module *frontend_compile(Arena *a, Diags *d, const Source *main, const FrontendOptions *options) {
    Elab *e = arena_new(a, Elab);
    int errors = d->errors;
    *e = (Elab){.a = a, .d = d, .options = options, .max_ops = options->max_ops ? options->max_ops : DEFAULT_MAX_OPS};
    add_unit(e, main, false);
    if (d->errors == errors) read_includes(e);
    if (d->errors == errors) read_prelude(e);
    if (d->errors != errors) return NULL;
    Program p = {0};
    collect(e, &p);
    e->m = ir_module_new(a, p.model ? p.model->name->text : "");
    e->f = ir_program_new(e->m, PROGRAM_FORWARD);
    set_source(e, e->m, main);
    elaborate_program(e, &p);
    name_bindings(e);
    return d->errors == errors && p.model ? e->m : NULL;
}
