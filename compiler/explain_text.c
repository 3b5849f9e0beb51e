/* explain_text.c: decisions as people read them. */
#include "compiler/explain.h"

static void tell_types(Text *t, const Decision *d) {
    for (int i = 0; i < d->operands.len; i++)
        text_printf(t, "%s%s", i ? " x " : "", amp_dtype_name(d->operands.data[i]));
    text_printf(t, "%s%s", d->operands.len ? " -> " : "", amp_dtype_name(d->out));
    Opcode code = ir_opcode(d->op);
    if (code && (ir_op_info[code].flags & PRODUCT)) text_puts(t, ", accumulates in f32");
}

/* A line of a policy with its columns closed up. */
static void tell_policy_line(Text *t, const char *line) {
    for (const char *c = line; *c; c++)
        if (*c != ' ' || c[1] != ' ') text_putc(t, *c);
}

static void tell_reason(Text *t, const Decision *d) {
    const Reason *r = d->reason;
    text_puts(t, "  because    ");
    if (r->is_override) text_printf(t, "override at %s:%d   %s", r->where.file, r->where.line, r->rule);
    else {
        text_printf(t, "%s.policy:%d   ", r->origin ? r->origin : "?", r->line);
        tell_policy_line(t, d->policy_text ? d->policy_text : r->rule);
    }
    if (r->because) text_printf(t, "   because \"%s\"", r->because);
    if (r->relation) text_printf(t, "   (%s %s)", r->relation, r->neighbour);
    text_putc(t, '\n');
}

/* The word of a list stands before its first line only. */
static void tell_label(Text *t, const char *label, int *told) { text_printf(t, "  %-11s", (*told)++ ? "" : label); }

static void tell_casts(Text *t, const ExplainFacts *x, const Decision *d) {
    for (int i = 0, told = 0; i < d->casts.len; i++) {
        const CastNote *c = &d->casts.data[i];
        tell_label(t, "casts", &told);
        text_puts(t, c->value);
        text_pad_to(t, 34);
        text_printf(t, "%s -> %s", amp_dtype_name(c->from), amp_dtype_name(c->to));
        const char *place = explain_cast_place(x, c);
        if (place) text_printf(t, "   %s", place);
        text_putc(t, '\n');
    }
}

static void tell_kernels(Text *t, const ExplainFacts *x, const Decision *d) {
    const ExplainNumbers *kernels = explain_kernels(x, d->path);
    for (int i = 0, told = 0; i < kernels->len; i++) {
        const Kernel *k = x->f->kernels.data[kernels->data[i]];
        tell_label(t, "kernel", &told);
        text_printf(t, "%s  %s\n", k->name, k->title);
    }
}

static void tell_use(Text *t, const ExplainUse *u) {
    text_printf(t, "   %s: %d registers, %d bytes of shared memory, ", u->arch, u->registers, u->shared_bytes);
    if (u->spill_bytes) text_printf(t, "%d bytes spilled", u->spill_bytes);
    else text_puts(t, "no spills");
    if (u->stack_bytes) text_printf(t, ", %d bytes of stack", u->stack_bytes);
}

/* Where machine code was made: each kernel and what it needs. */
static void tell_cuda_kernels(Text *t, const ExplainFacts *x, const Decision *d) {
    const ExplainNumbers *kernels = explain_cuda_kernels(x, d->path);
    for (int i = 0, told = 0; i < kernels->len; i++) {
        const Kernel *k = x->cuda->kernels.data[kernels->data[i]];
        const ExplainUses *uses = explain_uses(x, k);
        for (int u = 0; u < uses->len; u++) {
            tell_label(t, "on CUDA", &told);
            if (u) text_puts(t, "   ");
            else text_puts(t, k->name);
            tell_use(t, &uses->data[u]);
            text_putc(t, '\n');
        }
    }
}

static void tell_removed(Text *t, const ExplainFacts *x, const Decision *d) {
    const ExplainNumbers *removed = explain_removed(x, d->path);
    for (int i = 0, told = 0; i < removed->len; i++) {
        const Removed *r = &x->m->removed.data[removed->data[i]];
        tell_label(t, "gradient", &told);
        text_puts(t, r->value);
        text_pad_to(t, 34);
        text_printf(t, "removed: %s\n", r->what);
    }
}

static void tell_decision(Text *t, const ExplainFacts *x, const Decision *d) {
    text_puts(t, d->path);
    text_pad_to(t, 28);
    tell_types(t, d);
    text_pad_to(t, 88);
    text_printf(t, "%s:%d\n", d->pos.file ? d->pos.file : "?", d->pos.line);
    tell_reason(t, d);
    tell_casts(t, x, d);
    tell_kernels(t, x, d);
    tell_cuda_kernels(t, x, d);
    tell_removed(t, x, d);
    text_putc(t, '\n');
}

/* Roundings that simplify removed from what came from no op of the forward graph. */
static void tell_other_removed(Text *t, const ExplainFacts *x) {
    const Module *m = x->m;
    bool *told_above = arena_array(m->arena, bool, m->removed.len + 1);
    for (int k = 0; k < m->decisions.len; k++) {
        const ExplainNumbers *removed = explain_removed(x, m->decisions.data[k].path);
        for (int i = 0; i < removed->len; i++) told_above[removed->data[i]] = true;
    }
    for (int i = 0, told = 0; i < m->removed.len; i++) {
        const Removed *r = &m->removed.data[i];
        if (told_above[i]) continue;
        text_printf(t, "%s  %s.%s: %s\n", told++ ? "" : "roundings removed by simplify\n", r->func, r->value, r->what);
    }
}

int explain_as_text(Text *t, const ExplainSource *s, const char *glob) {
    int found = 0;
    const Module *m = s->m;
    ExplainFacts facts = explain_facts(s);
    text_printf(t, "%s: policy %s, low precision %s\n\n", m->name, m->policy_name, amp_dtype_name(m->low));
    for (int i = 0; i < m->decisions.len; i++)
        if (!glob || text_glob_match(glob, m->decisions.data[i].path)) {
            tell_decision(t, &facts, &m->decisions.data[i]);
            found++;
        }
    if (!glob) tell_other_removed(t, &facts);
    return found;
}
