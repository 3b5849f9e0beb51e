/* explain_select.c: which ops explain was asked for, what there is where none matches, and the order in which ops and
 * casts are told. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/explain/explain.h"
#include "passes/passes.h"
#include "precision/policy.h"

static const char override_word[] = "override"; /* the rule of an op that a line of the model's precision decided */

amp_status explain_read_options(const amp_explain_options *from, amp_explain_options *out, amp_error *err) {
    AMP_TRY(amp_options_read(out, sizeof *out, from, "amp_explain_options", err));
    if (out->form < AMP_EXPLAIN_TEXT || out->form > AMP_EXPLAIN_HTML)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_explain_options: unknown form %d", (int)out->form);
    if (out->batch < 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "amp_explain_options: batch is %lld; it must be positive, or 0 for 32", (long long)out->batch);
    if (!out->batch) out->batch = PASSES_BATCH_HINT;
    if (out->sort && strcmp(out->sort, "bytes") != 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "unknown sort key '%s'; use 'bytes'", out->sort);
    return AMP_OK;
}

/* ---- filters: each looks at one thing of an op, and can name it -------------------------------------------------- */

static const char *word_of(const char *wanted) { return wanted ? wanted : ""; }

static bool matches_path(const amp_explain_options *w, const Decision *d) { return text_glob_match(w->path, d->path); }

static bool matches_op(const amp_explain_options *w, const Decision *d) {
    return policy_names_op(w->op, d->op, d->layer);
}

static bool matches_reason(const amp_explain_options *w, const Reason *r) {
    return !strcmp(w->rule, override_word) ? r->is_override : !strcmp(w->rule, r->rule);
}

static bool matches_rule(const amp_explain_options *w, const Decision *d) { return matches_reason(w, d->reason); }

static bool is_dtype(const amp_explain_options *w, Dtype t) { return !strcmp(w->dtype, amp_dtype_name(t)); }

static bool matches_dtype(const amp_explain_options *w, const Decision *d) {
    for (int i = 0; i < d->operands.len; i++)
        if (is_dtype(w, d->operands.data[i])) return true;
    return is_dtype(w, d->out);
}

static void name_paths(Arena *a, Table *names, const Decision *d) { table_set(a, names, d->path, names); }

static void name_ops(Arena *a, Table *names, const Decision *d) { table_set(a, names, d->op, names); }

static void name_rules(Arena *a, Table *names, const Decision *d) {
    table_set(a, names, d->reason->rule, names);
    if (d->reason->is_override) table_set(a, names, override_word, names);
}

static void name_dtypes(Arena *a, Table *names, const Decision *d) {
    for (int i = 0; i < d->operands.len; i++) table_set(a, names, amp_dtype_name(d->operands.data[i]), names);
    table_set(a, names, amp_dtype_name(d->out), names);
}

typedef struct Filter {
    size_t word; /* its field of amp_explain_options */
    bool (*matches)(const amp_explain_options *w, const Decision *d);
    void (*name)(Arena *a, Table *names, const Decision *d);
    const char *none; /* the message where no op matches: which ops, the word, what there is */
} Filter;

static const Filter filters[] = {
    {offsetof(amp_explain_options, path), matches_path, name_paths,
     "%s's path matches '%s'; '*' shows all; there are %s"},
    {offsetof(amp_explain_options, op), matches_op, name_ops, "%s is a '%s'; there are %s"},
    {offsetof(amp_explain_options, rule), matches_rule, name_rules, "%s has its dtype by rule '%s'; there are %s"},
    {offsetof(amp_explain_options, dtype), matches_dtype, name_dtypes, "%s reads or makes '%s'; there are %s"},
};
enum { FILTERS = sizeof filters / sizeof filters[0], NAMES_TOLD = 12 };

static const char *filter_word(const Filter *f, const amp_explain_options *w) {
    const char *word;
    memcpy(&word, (const char *)w + f->word, sizeof word);
    return word;
}

/* ---- the selection ----------------------------------------------------------------------------------------------- */

typedef VEC(const Decision *) Decisions;

/* "f16, f32 and 3 more": what a filter could have named. */
static const char *names_of(Arena *a, const Filter *f, const Decisions *among) {
    Table names = {0};
    Text t;
    text_init(&t, a);
    for (int i = 0; i < among->len; i++) f->name(a, &names, among->data[i]);
    const int count = names.entries.len, told = count > NAMES_TOLD + 1 ? NAMES_TOLD : count;
    for (int i = 0; i < told; i++) text_printf(&t, "%s%s", i ? ", " : "", names.entries.data[i].key);
    if (told < count) text_printf(&t, " and %d more", count - told);
    return text_str(&t);
}

/* "m.amp", "m.amp and n.amp" */
static const char *sources_name(Arena *a, const ExplainSource *const *sources, int count) {
    if (count < 2 || !strcmp(sources[0]->name, sources[1]->name)) return sources[0]->name;
    return arena_printf(a, "%s and %s", sources[0]->name, sources[1]->name);
}

static amp_status fail_none(Arena *a, const char *name, const Filter *f, const amp_explain_options *want,
                            const Decisions *among, bool narrowed, amp_error *err) {
    const char *who = narrowed ? "no op that the other filters leave" : "no op";
    const char *what = arena_printf(a, f->none, who, filter_word(f, want), names_of(a, f, among));
    return amp_fail(err, AMP_NOT_FOUND, "%s: %s", name, what);
}

amp_status explain_select(const amp_explain_options *want, const ExplainSource *const *sources, int count,
                          ExplainSelection *out, amp_error *err) {
    Arena *a = sources[count - 1]->m->arena;
    Decisions left = {0};
    *out = (ExplainSelection){.want = *want, .all = true};
    for (int k = 0; k < count; k++)
        for (int i = 0; i < sources[k]->m->decisions.len; i++)
            vec_push(a, &left, (const Decision *)&sources[k]->m->decisions.data[i]);
    for (int k = 0; k < FILTERS; k++) {
        if (!filter_word(&filters[k], want)) continue;
        Decisions matching = {0};
        for (int i = 0; i < left.len; i++)
            if (filters[k].matches(want, left.data[i])) vec_push(a, &matching, left.data[i]);
        if (!matching.len)
            return fail_none(a, sources_name(a, sources, count), &filters[k], want, &left, !out->all, err);
        out->all = false;
        left = matching;
    }
    for (int i = 0; i < left.len && !out->all; i++) table_set(a, &out->paths, left.data[i]->path, out);
    return AMP_OK;
}

bool explain_selects(const ExplainSelection *s, const char *path) { return s->all || table_get(&s->paths, path); }

/* Of an op that is selected, or, where only a path is asked for, with such a path. */
bool explain_selects_cast(const ExplainSelection *s, const Cast *c) {
    const amp_explain_options *w = &s->want;
    return explain_selects(s, c->asker) ||
           (w->path && !w->op && !w->rule && !w->dtype && text_glob_match(w->path, c->name));
}

bool explain_selects_row(const ExplainSelection *s, const Func *f, const Op *o) {
    const amp_explain_options *w = &s->want;
    if (w->path && !text_glob_match(w->path, word_of(o->path))) return false;
    if (w->op && !policy_names_op(w->op, ir_op_info[o->code].name, o->layer)) return false;
    if (w->rule && !matches_reason(w, o->reason)) return false;
    bool has = !w->dtype;
    for (int i = 0; !has && i < o->n_in; i++) has = is_dtype(w, ir_dtype(f, o->in[i]));
    for (int i = 0; !has && i < o->n_out; i++) has = is_dtype(w, ir_dtype(f, o->out[i]));
    return has;
}

bool explain_selects_param(const ExplainSelection *s, const char *name) {
    const amp_explain_options *w = &s->want;
    return !w->op && !w->rule && !w->dtype && (!w->path || text_glob_match(w->path, name));
}

/* ---- by bytes ---------------------------------------------------------------------------------------------------- */

typedef struct Weighed {
    int number, order;
    double bytes;
} Weighed;

/* The most first; among equal ones in the order of the model. */
static int compare_weighed(const void *a, const void *b) {
    const Weighed *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

typedef double Weigh(const ExplainFacts *x, int number, int64_t batch);

static double weigh_cast(const ExplainFacts *x, int number, int64_t batch) {
    return bytes_at(&x->graph_casts.data[number].bytes, batch);
}

/* All casts that the op asked for, in the backward pass too. */
static double weigh_decision(const ExplainFacts *x, int number, int64_t batch) {
    const ExplainNumbers *casts = explain_casts_for(x, x->m->decisions.data[number].path);
    double sum = 0;
    for (int i = 0; i < casts->len; i++) sum += weigh_cast(x, casts->data[i], batch);
    return sum;
}

static void put_in_order(const ExplainFacts *x, const ExplainSelection *which, ExplainNumbers *list, Weigh *weigh) {
    if (!which->want.sort) return;
    Weighed *all = arena_array(x->m->arena, Weighed, list->len + 1);
    for (int i = 0; i < list->len; i++)
        all[i] = (Weighed){list->data[i], i, weigh(x, list->data[i], which->want.batch)};
    qsort(all, (size_t)list->len, sizeof *all, compare_weighed);
    for (int i = 0; i < list->len; i++) list->data[i] = all[i].number;
}

/* ---- what is told ------------------------------------------------------------------------------------------------ */

/* With its layer, where that is told of. */
static bool is_folded(const ExplainFacts *x, const ExplainSelection *which, const char *path) {
    const char *layer = explain_layer_of(x, path);
    return layer && explain_selects(which, layer);
}

ExplainNumbers explain_selected(const ExplainFacts *x, const ExplainSelection *which, bool fold) {
    ExplainNumbers list = {0};
    for (int i = 0; i < x->m->decisions.len; i++) {
        const char *path = x->m->decisions.data[i].path;
        if (explain_selects(which, path) && !(fold && is_folded(x, which, path))) vec_push(x->m->arena, &list, i);
    }
    return list;
}

ExplainNumbers explain_told(const ExplainFacts *x, const ExplainSelection *which, bool fold) {
    ExplainNumbers list = explain_selected(x, which, fold);
    put_in_order(x, which, &list, weigh_decision);
    return list;
}

ExplainNumbers explain_told_casts(const ExplainFacts *x, const ExplainSelection *which) {
    ExplainNumbers list = {0};
    for (int i = 0; i < x->graph_casts.len; i++)
        if (explain_selects_cast(which, &x->graph_casts.data[i])) vec_push(x->m->arena, &list, i);
    put_in_order(x, which, &list, weigh_cast);
    return list;
}
