/* compare_text.c: a comparison for people: an op that changed takes two or three lines, casts one for those that are
 * alike. */
#include <string.h>

#include "compiler/compare.h"

enum { VALUES_NAMED = 4, ONLY_SHOWN = 40 };

static void tell_side(Text *t, const char *word, const ComparedSide *side) {
    const Module *m = side->source->m;
    text_printf(t, "%s%s", word, side->source->name);
    text_pad_to(t, 36);
    text_printf(t, "policy %s, low precision %s\n", m->policy_name, amp_dtype_name(m->low));
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

static const char *reason_text(Arena *a, const ComparedSide *side, const Decision *d) {
    Text t;
    text_init(&t, a);
    explain_tell_reason(&t, side->source->m, d);
    return text_str(&t);
}

static void tell_pair(Text *t, const Comparison *c, const OpPair *p) {
    const char *before = reason_text(t->arena, &c->before, p->before);
    const char *after = reason_text(t->arena, &c->after, p->after);
    const Pos pos = p->after->pos;
    text_puts(t, p->after->path);
    text_pad_to(t, 36);
    tell_change(t, p);
    text_pad_to(t, 88);
    text_printf(t, "%s:%d\n", pos.file ? pos.file : "?", pos.line);
    if (!strcmp(before, after)) {
        text_printf(t, "  both     %s\n", after);
        return;
    }
    text_printf(t, "  before   %s\n  after    %s\n", before, after);
}

static void tell_only(Text *t, const char *word, const ComparedSide *side) {
    for (int i = 0; i < side->only.len && i < ONLY_SHOWN; i++) {
        const Decision *d = side->only.data[i];
        text_printf(t, "only %s%s", word, d->path);
        text_pad_to(t, 36);
        text_printf(t, "%s %s", d->op, amp_dtype_name(d->out));
        text_pad_to(t, 88);
        text_printf(t, "%s:%d\n", d->pos.file ? d->pos.file : "?", d->pos.line);
    }
    if (side->only.len > ONLY_SHOWN)
        text_printf(t, "only %sand %d more; --json lists them\n", word, side->only.len - ONLY_SHOWN);
}

/* ---- casts ------------------------------------------------------------------------------------------------------- */

static bool alike(const Cast *x, const Cast *y) {
    return x->from == y->from && x->to == y->to && !strcmp(x->phase, y->phase);
}

/* One line for the casts that are like the |first|th, which no earlier one is. */
static void tell_alike(Text *t, const char *word, const CastList *casts, int first) {
    const Cast *like = casts->data[first];
    Bytes bytes = {0};
    int count = 0;
    Text names;
    text_init(&names, t->arena);
    for (int i = first; i < casts->len; i++) {
        if (!alike(like, casts->data[i])) continue;
        if (count < VALUES_NAMED) text_printf(&names, "%s%s", count ? ", " : "", casts->data[i]->value);
        bytes_add(&bytes, &casts->data[i]->bytes);
        count++;
    }
    text_printf(t, "  %s   %s -> %s  %s", word, amp_dtype_name(like->from), amp_dtype_name(like->to), like->phase);
    text_pad_to(t, 36);
    text_puts(t, text_str(&names));
    if (count > VALUES_NAMED) text_printf(t, " and %d more", count - VALUES_NAMED);
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
    for (int i = 0; i < c->changed.len; i++) tell_pair(t, c, &c->changed.data[i]);
    tell_only(t, "before   ", &c->before);
    tell_only(t, "after    ", &c->after);
    if (compare_is_same(c)) text_puts(t, "no difference: ");
    text_printf(t, "%d of %d ops changed", c->changed.len, c->matched);
    if (c->other_reason.len) text_printf(t, "; same dtypes by another line: %d", c->other_reason.len);
    text_putc(t, '\n');
    tell_totals(t, c);
}
