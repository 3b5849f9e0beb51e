/* compare.c: amp_compare: matches the ops of two models by their paths, and their casts by what they cast. */
#include "compiler/compare/compare.h"

#include <string.h>

#include "base/error.h"

/* ---- ops --------------------------------------------------------------------------------------------------------- */

/* Things under a key, which are taken one by one in their order. */
typedef struct Queue {
    VEC(const void *) items;
    int taken;
} Queue;

static void queue_put(Arena *a, Table *t, const char *key, const void *item) {
    Queue *q = table_get(t, key);
    if (!q) {
        q = arena_new(a, Queue);
        *q = (Queue){0};
        table_set(a, t, key, q);
    }
    vec_push(a, &q->items, item);
}

static const void *queue_take(const Table *t, const char *key) {
    Queue *q = table_get(t, key);
    return q && q->taken < q->items.len ? q->items.data[q->taken++] : NULL;
}

static bool same_dtypes(const Decision *x, const Decision *y) {
    if (x->out != y->out || x->operands.len != y->operands.len) return false;
    for (int i = 0; i < x->operands.len; i++)
        if (x->operands.data[i] != y->operands.data[i]) return false;
    return true;
}

static bool same_text(const char *x, const char *y) { return x == y || (x && y && !strcmp(x, y)); }

/* Lines of a model move when something else is edited, lines of a policy are what decides. */
static bool same_reason(const Reason *x, const Reason *y) {
    if (x->is_override != y->is_override || strcmp(x->rule, y->rule)) return false;
    return x->is_override || (same_text(x->origin, y->origin) && x->line == y->line);
}

static void compare_op(Arena *a, Comparison *c, const Decision *before, const Decision *after) {
    const OpPair pair = {before, after};
    if (strcmp(before->op, after->op)) { /* another op under the same name */
        vec_push(a, &c->before.only, before);
        vec_push(a, &c->after.only, after);
        return;
    }
    c->matched++;
    if (!same_dtypes(before, after)) vec_push(a, &c->changed, pair);
    else if (!same_reason(before->reason, after->reason)) vec_push(a, &c->other_reason, pair);
}

static void compare_ops(Arena *a, Comparison *c, const ExplainSelection *which) {
    const Module *before = c->before.source->m, *after = c->after.source->m;
    Table of_before = {0}, met = {0};
    for (int i = 0; i < before->decisions.len; i++)
        queue_put(a, &of_before, before->decisions.data[i].path, &before->decisions.data[i]);
    for (int i = 0; i < after->decisions.len; i++) {
        const Decision *d = &after->decisions.data[i], *was = queue_take(&of_before, d->path);
        if (!explain_selects(which, d->path)) continue;
        if (was) compare_op(a, c, was, d);
        else vec_push(a, &c->after.only, d);
    }
    for (int i = 0; i < before->decisions.len; i++) { /* decisions without a match, in their order */
        const char *path = before->decisions.data[i].path;
        if (table_get(&met, path)) continue;
        table_set(a, &met, path, c);
        for (const Decision *d; (d = queue_take(&of_before, path));)
            if (explain_selects(which, path)) vec_push(a, &c->before.only, d);
    }
}

/* ---- casts ------------------------------------------------------------------------------------------------------- */

/* Which op a shared cast is made for depends on which reads it first, and names count: neither is part of the key. */
static const char *cast_key(Arena *a, const Cast *c) {
    return arena_printf(a, "%s %s %s %s", c->phase, c->value, amp_dtype_name(c->from), amp_dtype_name(c->to));
}

static void casts_without(Arena *a, const ComparedSide *side, const ComparedSide *other, const ExplainSelection *which,
                          CastList *out) {
    Table others = {0};
    for (int i = 0; i < other->facts.graph_casts.len; i++)
        queue_put(a, &others, cast_key(a, &other->facts.graph_casts.data[i]), &other->facts.graph_casts.data[i]);
    for (int i = 0; i < side->facts.graph_casts.len; i++) {
        const Cast *c = &side->facts.graph_casts.data[i];
        if (!queue_take(&others, cast_key(a, c)) && explain_selects_cast(which, c)) vec_push(a, out, c);
    }
}

/* ---- the comparison ---------------------------------------------------------------------------------------------- */

static void open_side(ComparedSide *side, const ExplainSource *source, const ExplainSelection *which) {
    side->source = source;
    side->facts = explain_facts(source);
    side->totals = explain_cast_totals(&side->facts, which);
}

Comparison compare_sources(Arena *a, const ExplainSource *before, const ExplainSource *after,
                           const ExplainSelection *which) {
    Comparison c = {.counts_casts = before->graph && after->graph};
    open_side(&c.before, before, which);
    open_side(&c.after, after, which);
    compare_ops(a, &c, which);
    if (!c.counts_casts) return c;
    casts_without(a, &c.before, &c.after, which, &c.before.casts);
    casts_without(a, &c.after, &c.before, which, &c.after.casts);
    return c;
}

bool compare_is_same(const Comparison *c) {
    return !c->changed.len && !c->before.only.len && !c->after.only.len && !c->before.casts.len && !c->after.casts.len;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

typedef struct CompareArguments {
    const amp_compile_options *before;
    const amp_explain_options *which;
} CompareArguments;

static amp_status compare_sessions(Session *one, Session *other, const amp_explain_options *want,
                                   amp_compile_result **out, amp_error *err) {
    ExplainSource before = {0}, after = {0};
    const ExplainSource *sources[] = {&before, &after};
    ExplainSelection which = {0};
    Text t;
    AMP_TRY(explain_open(one, &before, err));
    AMP_TRY(explain_open(other, &after, err));
    AMP_TRY(explain_select(want, sources, 2, &which, err));
    const Comparison c = compare_sources(&other->arena, &before, &after, &which);
    text_init(&t, &other->arena);
    if (want->form == AMP_EXPLAIN_JSON) AMP_TRY(compare_as_json(&t, &c, err));
    else compare_as_text(&t, &c);
    return session_give_text(other, &t, out, err);
}

static amp_status compare(Session *after, const void *arguments, amp_compile_result **out, amp_error *err) {
    const CompareArguments *a = arguments;
    amp_explain_options want;
    Session *before = arena_new(&after->arena, Session);
    AMP_TRY(explain_read_options(a->which, &want, err));
    if (want.form > AMP_EXPLAIN_JSON)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_compare: unknown form %d; a comparison is text or JSON",
                        (int)want.form);
    AMP_TRY(session_init(before, a->before, err));
    after->beside = before;
    if (setjmp(before->arena.out_of_memory)) return session_out_of_memory(before, err);
    return compare_sessions(before, after, &want, out, err);
}

amp_status amp_compare(const amp_compile_options *before, const amp_compile_options *after,
                       const amp_explain_options *which, amp_compile_result **out, amp_error *err) {
    return session_call("amp_compare", after, compare, &(CompareArguments){before, which}, out, err);
}
