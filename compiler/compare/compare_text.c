/* compare_text.c: a comparison for people: an op that changed takes two or three lines, and so do all ops of
 * repeated layers that changed alike; equal casts share one line. */
#include <string.h>

#include "compiler/compare/compare.h"

enum { VALUES_NAMED = 4, ONLY_SHOWN = 40 };

/* Names the file if its name is not the name of the policy in it. */
static void tell_side(Text *t, const char *word, const ComparedSide *side) {
    const Module *m = side->source->m;
    const char *file = m->policy_origin;
    text_printf(t, "%s%s", word, side->source->name);
    text_pad_to(t, 36);
    explain_tell_precision(t, m, file);
    text_putc(t, '\n');
}

/* ---- ops --------------------------------------------------------------------------------------------------------- */

static void tell_operands(Text *t, const Decision *d) {
    for (int i = 0; i < d->operands.len; i++)
        text_printf(t, "%s%s", i ? " x " : "", amp_dtype_name(d->operands.data[i]));
}

/* "f16 -> f32"; of an op whose result stays, "reads f16 x i32 -> f32 x i32". */
static void tell_change(Text *t, const OpPair *p) {
    if (p->before->out != p->after->out) {
        text_printf(t, "%s -> %s", amp_dtype_name(p->before->out), amp_dtype_name(p->after->out));
        return;
    }
    text_puts(t, "reads ");
    tell_operands(t, p->before);
    text_puts(t, " -> ");
    tell_operands(t, p->after);
}

/* What a line holds once, with its number of occurrences: the reasons of a group's ops, the values of casts. */
typedef struct Counted {
    const char *key, *first; /* the op or value that has it first */
    int count;
} Counted;
typedef VEC(Counted) CountedList;

static void count_under(Arena *a, CountedList *list, const char *key, const char *of) {
    for (int i = 0; i < list->len; i++) {
        if (strcmp(list->data[i].key, key) != 0) continue;
        list->data[i].count++;
        return;
    }
    vec_push(a, list, ((Counted){key, of, 1}));
}

/* Of an op of a group, the op that it follows is named as the group is. */
static const char *reason_text(Arena *a, const ComparedSide *side, const Decision *d, const char *group) {
    Decision like = *d;
    Reason reason = *d->reason;
    Text t;
    text_init(&t, a);
    if (group && reason.neighbour) reason.neighbour = explain_name_like(a, group, reason.neighbour);
    like.reason = &reason;
    explain_tell_reason(&t, side->source->m, &like);
    return text_str(&t);
}

/* What most ops have comes first. */
static void put_most_common_first(CountedList *lines) {
    int most = 0;
    for (int i = 1; i < lines->len; i++)
        if (lines->data[i].count > lines->data[most].count) most = i;
    const Counted first = lines->data[most];
    for (int i = most; i > 0; i--) lines->data[i] = lines->data[i - 1];
    lines->data[0] = first;
}

static bool same_lines(const CountedList *x, const CountedList *y) {
    bool same = x->len == y->len;
    for (int i = 0; same && i < x->len; i++)
        same = x->data[i].count == y->data[i].count && !strcmp(x->data[i].key, y->data[i].key);
    return same;
}

static void tell_reasons(Text *t, const char *word, const CountedList *lines) {
    for (int i = 0; i < lines->len; i++) {
        const Counted *line = &lines->data[i];
        text_printf(t, "  %-9s%s", i ? "" : word, line->key);
        if (i && line->count > 1) text_printf(t, "   for %d ops", line->count);
        else if (i) text_printf(t, "   for %s", line->first);
        text_putc(t, '\n');
    }
}

/* "h.*.mlp.fc, 12 ops", and the remainder of its line. */
static void tell_group_name(Text *t, const char *word, const OpGroup *g) {
    text_printf(t, "%s%s", word, g->name);
    if (g->pairs.len > 1) text_printf(t, ", %d ops", g->pairs.len);
    text_pad_to(t, 36);
}

static void tell_place(Text *t, Pos pos) {
    text_pad_to(t, 88);
    text_printf(t, "%s:%d\n", pos.file ? pos.file : "?", pos.line);
}

static void tell_group(Text *t, const Comparison *c, const OpGroup *g) {
    CountedList before = {0}, after = {0};
    const char *group = g->pairs.len > 1 ? g->name : NULL;
    for (int i = 0; i < g->pairs.len; i++) {
        const OpPair *p = &g->pairs.data[i];
        count_under(t->arena, &before, reason_text(t->arena, &c->before, p->before, group), p->after->path);
        count_under(t->arena, &after, reason_text(t->arena, &c->after, p->after, group), p->after->path);
    }
    put_most_common_first(&before);
    put_most_common_first(&after);
    tell_group_name(t, "", g);
    tell_change(t, &g->pairs.data[0]);
    tell_place(t, g->pairs.data[0].after->pos);
    if (same_lines(&before, &after)) {
        tell_reasons(t, "both", &after);
        return;
    }
    tell_reasons(t, "before", &before);
    tell_reasons(t, "after", &after);
}

static void tell_changed(Text *t, const Comparison *c) {
    const OpGroups groups = compare_group(t->arena, &c->changed);
    for (int i = 0; i < groups.len; i++) tell_group(t, c, groups.data[i]);
}

static void tell_only(Text *t, const char *word, const ComparedSide *side) {
    OpPairs alone = {0};
    for (int i = 0; i < side->only.len; i++) vec_push(t->arena, &alone, ((OpPair){side->only.data[i], NULL}));
    const OpGroups groups = compare_group(t->arena, &alone);
    int told = 0;
    for (int i = 0; i < groups.len && i < ONLY_SHOWN; i++) {
        const Decision *d = groups.data[i]->pairs.data[0].before;
        tell_group_name(t, arena_printf(t->arena, "only %s", word), groups.data[i]);
        text_printf(t, "%s %s", d->op, amp_dtype_name(d->out));
        tell_place(t, d->pos);
        told += groups.data[i]->pairs.len;
    }
    if (told < side->only.len) text_printf(t, "only %sand %d more; --json lists them\n", word, side->only.len - told);
}

/* ---- casts ------------------------------------------------------------------------------------------------------- */

static bool alike(const Cast *x, const Cast *y) {
    return x->from == y->from && x->to == y->to && !strcmp(x->phase, y->phase);
}

/* What is cast, values of repeated layers as one: "h.*.y (12), x". */
static void tell_values(Text *t, const CountedList *names, int count) {
    for (int i = 0; i < names->len && i < VALUES_NAMED; i++) {
        const Counted *n = &names->data[i];
        text_printf(t, "%s%s", i ? ", " : "", n->count > 1 ? n->key : n->first);
        if (n->count > 1) text_printf(t, " (%d)", n->count);
        count -= n->count;
    }
    if (count) text_printf(t, " and %d more", count);
}

/* One line for the casts that are like the |first|th, which no earlier one is. */
static void tell_alike(Text *t, const char *word, const CastList *casts, int first) {
    const Cast *like = casts->data[first];
    Bytes bytes = {0};
    CountedList names = {0};
    int count = 0;
    for (int i = first; i < casts->len; i++) {
        if (!alike(like, casts->data[i])) continue;
        const char *value = casts->data[i]->value;
        count_under(t->arena, &names, text_path_pattern(t->arena, value), value);
        bytes_add(&bytes, &casts->data[i]->bytes);
        count++;
    }
    text_printf(t, "  %s   %s -> %s  %s", word, amp_dtype_name(like->from), amp_dtype_name(like->to), like->phase);
    text_pad_to(t, 36);
    tell_values(t, &names, count);
    text_puts(t, "   ");
    bytes_print(t, &bytes);
    text_puts(t, " bytes\n");
}

static void tell_casts(Text *t, const char *word, const CastList *casts) {
    for (int i = 0; i < casts->len; i++) {
        bool is_first = true;
        for (int j = 0; is_first && j < i; j++) is_first = !alike(casts->data[j], casts->data[i]);
        if (is_first) tell_alike(t, word, casts, i);
    }
}

static void tell_total(Text *t, const char *word, const CastTotal *total) {
    text_printf(t, "  %s%6d casts, %d fused", word, total->count, total->fused);
    text_pad_to(t, 36);
    bytes_print(t, &total->bytes);
    text_puts(t, " bytes\n");
}

static void tell_totals(Text *t, const Comparison *c) {
    if (!c->counts_casts) {
        text_puts(t, "casts are not compared: IR of one side has lost its graph\n");
        return;
    }
    text_puts(t, "casts\n");
    tell_casts(t, "gone", &c->before.casts);
    tell_casts(t, "came", &c->after.casts);
    tell_total(t, "before", &c->before.totals.all);
    tell_total(t, "after ", &c->after.totals.all);
}

/* ---- the comparison ---------------------------------------------------------------------------------------------- */

void compare_as_text(Text *t, const Comparison *c) {
    tell_side(t, "before   ", &c->before);
    tell_side(t, "after    ", &c->after);
    text_putc(t, '\n');
    tell_changed(t, c);
    tell_only(t, "before   ", &c->before);
    tell_only(t, "after    ", &c->after);
    if (compare_is_same(c)) text_puts(t, "no difference: ");
    text_printf(t, "%d of %d ops changed", c->changed.len, c->matched);
    if (c->other_reason.len) text_printf(t, "; same dtypes by another line: %d", c->other_reason.len);
    text_putc(t, '\n');
    tell_totals(t, c);
}
