/* report.c: findings as compilers print warnings, and as JSON. */
#include "base/json.h"
#include "compiler/explain/explain.h"
#include "compiler/lint/lint.h"

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* The line of the precision block that helps; NULL: none does. */
static const char *line_to_add(Arena *a, const Finding *f) {
    return f->word ? arena_printf(a, "\"%s\": %s", f->pattern, f->word) : f->setting;
}

static void add_help(Diags *d, Diag *diag, const Finding *f) {
    const char *line = line_to_add(d->arena, f);
    if (line) diag_help(d, diag, "`%s' in the precision block%s%s", line, f->help ? "; " : "", f->help ? f->help : "");
    else if (f->help) diag_help(d, diag, "%s", f->help);
}

/* "fc1.linear: ", "h.0.mlp.exp and 11 more: " */
static const char *subject(Arena *a, const LintPaths *paths) {
    const char *first = paths->data[0];
    if (!first[0]) return "";
    if (paths->len == 1) return arena_printf(a, "%s: ", first);
    return arena_printf(a, "%s and %d more: ", first, paths->len - 1);
}

static void put_finding(Text *t, const LintInput *in, const Finding *f) {
    Diags d;
    diags_init(&d, t->arena);
    const Source *source = f->pos.line ? session_find_source(in->session, f->pos.file) : NULL;
    const Loc loc = source ? loc_at(source, f->pos.line, f->pos.column) : (Loc){0};
    Diag *diag = diag_warning(&d, loc, "%s: %s%s", f->id, subject(t->arena, &f->paths), f->text);
    add_help(&d, diag, f);
    if (!source && f->pos.line) text_printf(t, "%s:%d:%d: ", f->pos.file, f->pos.line, f->pos.column);
    diag_format(t, diag);
}

/* IR may lack the line that names its source. */
static const char *name_of(const LintInput *in) { return in->m->source_name ? in->m->source_name : in->m->name; }

void lint_as_text(Text *t, const LintInput *in, const Findings *list) {
    for (int i = 0; i < list->len; i++) put_finding(t, in, &list->data[i]);
    text_printf(t, "%s: %d finding%s", name_of(in), list->len, list->len == 1 ? "" : "s");
    for (int k = 0, told = 0; amp_lint_check(k, NULL); k++) {
        int count = 0;
        for (int i = 0; i < list->len; i++) count += list->data[i].id == amp_lint_check(k, NULL);
        if (count) text_printf(t, "%s%s %d", told++ ? ", " : ": ", amp_lint_check(k, NULL), count);
    }
    text_putc(t, '\n');
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

typedef struct Report {
    Arena *arena;
    const LintInput *in;
    const Findings *list;
} Report;

static void put_json_finding(amp_json_writer *w, Arena *a, const Finding *f) {
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "id", f->id);
    explain_put_place(w, f->pos);
    amp_json_put_string(w, "message", f->text);
    amp_json_put_string(w, "line_to_add", line_to_add(a, f));
    amp_json_put_string(w, "help", f->help);
    amp_json_begin_array(w, "paths");
    for (int i = 0; i < f->paths.len; i++)
        if (f->paths.data[i][0]) amp_json_put_string(w, NULL, f->paths.data[i]);
    amp_json_end_array(w);
    amp_json_end_object(w);
}

static void put_report(amp_json_writer *w, const void *of) {
    const Report *r = of;
    amp_json_put_string(w, "model", name_of(r->in));
    amp_json_put_string(w, "policy", r->in->m->policy_name);
    amp_json_put_int(w, "batch", r->in->want.batch);
    amp_json_begin_array(w, "findings");
    for (int i = 0; i < r->list->len; i++) put_json_finding(w, r->arena, &r->list->data[i]);
    amp_json_end_array(w);
    amp_json_begin_array(w, "checks");
    const char *about;
    for (int i = 0; amp_lint_check(i, &about); i++) {
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "id", amp_lint_check(i, NULL));
        amp_json_put_string(w, "about", about);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

amp_status lint_as_json(Text *t, const LintInput *in, const Findings *list, amp_error *err) {
    return explain_json_text(t, t->arena, put_report, &(Report){t->arena, in, list}, err);
}
