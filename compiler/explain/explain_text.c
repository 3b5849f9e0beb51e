/* explain_text.c: why each op has its dtype, as text for people. */
#include <stdlib.h>
#include <string.h>

#include "compiler/casts.h"
#include "compiler/explain/explain.h"
#include "ir/state_type.h"
#include "ir/words.h"
#include "targets/target.h"

/* Whether a kernel adds up a product of the op as tensor cores do. */
static bool follows_device(const ExplainFacts *x, const char *path) {
    const ExplainNumbers *kernels = explain_kernels(x, path);
    for (int i = 0; i < kernels->len; i++) {
        const Kernel *k = x->f->kernels.data[kernels->data[i]];
        for (int j = 0; j < k->count; j++) {
            const Op *o = ir_op_at(x->f, k->first + j);
            if (o->path && !strcmp(o->path, path) && target_follows_device(x->f, o)) return true;
        }
    }
    return false;
}

/* Of an op of a group, what it names is named as the group is. */
static const char *name_in(const ExplainGroup *g, Arena *a, const char *path) {
    if (!g || !g->ops.len) return g ? text_path_pattern(a, path) : path; /* what a group has to have in common */
    return explain_name_like(a, g->name, path);
}

static void tell_types(Text *t, const ExplainFacts *x, const Decision *d) {
    for (int i = 0; i < d->operands.len; i++)
        text_printf(t, "%s%s", i ? " x " : "", amp_dtype_name(d->operands.data[i]));
    text_printf(t, "%s%s", d->operands.len ? " -> " : "", amp_dtype_name(d->out));
    Opcode code = ir_opcode(d->op);
    if (!code || !(ir_op_info[code].flags & PRODUCT)) return;
    text_puts(t, ", accumulates in f32");
    if (follows_device(x, d->path)) text_printf(t, " as %s", ir_sums_names[x->m->sums]);
}

/* A line of a policy with its columns closed up. */
static void tell_policy_line(Text *t, const char *line) {
    for (const char *c = line; *c; c++)
        if (*c != ' ' || c[1] != ' ') text_putc(t, *c);
}

void explain_tell_reason(Text *t, const Module *m, const Decision *d) {
    const Reason *r = d->reason;
    if (r->is_override) text_printf(t, "override at %s:%d   %s", r->where.file, r->where.line, r->rule);
    else {
        const bool is_file = m->policy_origin && r->origin && m->policy_name && !strcmp(r->origin, m->policy_name) &&
                             strcmp(m->policy_origin, m->policy_name);
        if (is_file) text_printf(t, "%s:%d   ", m->policy_origin, r->line);
        else text_printf(t, "%s.policy:%d   ", r->origin ? r->origin : "?", r->line);
        tell_policy_line(t, d->policy_text ? d->policy_text : r->rule);
    }
    if (r->because) text_printf(t, "   because \"%s\"", r->because);
    if (r->relation) text_printf(t, "   (%s %s)", r->relation, r->neighbour);
}

typedef struct Number { /* as a text has it */
    const char *at;
    size_t length;
} Number;

static bool is_less(Number a, Number b) {
    return a.length != b.length ? a.length < b.length : strncmp(a.at, b.at, a.length) < 0;
}

/* The |index|th number of a text; of no length: there are fewer. */
static Number number_at(const char *text, int index) {
    static const char digits[] = "0123456789";
    Number n = {text + strcspn(text, digits), 0};
    for (n.length = strspn(n.at, digits); index && n.length; index--) {
        n.at += n.length + strcspn(n.at + n.length, digits);
        n.length = strspn(n.at, digits);
    }
    return n;
}

/* "7", or of all ops of the group "7 to 9". */
static void put_range(Text *t, const ExplainGroup *g, const Module *m, int index) {
    Number least = {0}, most = {0};
    for (int i = 0; i < g->ops.len; i++) {
        const Number n = number_at(m->decisions.data[g->ops.data[i]].reason->because, index);
        if (!i || is_less(n, least)) least = n;
        if (!i || is_less(most, n)) most = n;
    }
    text_write(t, least.at, least.length);
    if (is_less(least, most)) text_printf(t, " to %.*s", (int)most.length, most.at);
}

/* What a policy found out in numbers may differ in a group, whose words are the same: "f32 would move 4096 to 65536
 * bytes more".  Of a group that has no ops yet the words alone. */
static const char *because_in(const ExplainGroup *g, const Module *m, const char *because) {
    Text t;
    if (!g || !because) return because;
    text_init(&t, m->arena);
    for (int index = 0;; index++) {
        const Number n = number_at(because, 0);
        text_write(&t, because, (size_t)(n.at - because));
        if (!n.length) return text_str(&t);
        if (g->ops.len) put_range(&t, g, m, index);
        because = n.at + n.length;
    }
}

static void tell_reason_in(Text *t, const Module *m, const Decision *d, const ExplainGroup *g) {
    Decision like = *d;
    Reason reason = *d->reason;
    if (reason.neighbour) reason.neighbour = name_in(g, m->arena, reason.neighbour);
    reason.because = because_in(g, m, reason.because);
    like.reason = &reason;
    explain_tell_reason(t, m, &like);
}

/* The word of a list is printed before its first line only. */
static void tell_label(Text *t, const char *label, int *told) { text_printf(t, "  %-11s", (*told)++ ? "" : label); }

/* "x   f32 -> f16   4704 N bytes   in kernel k02, once a call" */
static void tell_cast(Text *t, const char *value, Dtype from, Dtype to, const Cast *c, const char *place) {
    text_puts(t, value);
    text_pad_to(t, 34);
    text_printf(t, "%s -> %s", amp_dtype_name(from), amp_dtype_name(to));
    if (c) {
        text_puts(t, "   ");
        bytes_print(t, &c->bytes);
        text_puts(t, " bytes");
    }
    if (place) text_printf(t, "   %s", place);
}

static const char *place_in(const ExplainGroup *g, const ExplainFacts *x, CastPlace place) {
    if (g) place.kernel = NULL;
    return explain_place_text(x, place);
}

/* What the op reads in another dtype than it was made in; then what its gradient needs. */
static void tell_casts(Text *t, const ExplainFacts *x, const Decision *d, const ExplainGroup *g) {
    Arena *a = x->m->arena;
    const ExplainNumbers *asked = explain_casts_for(x, d->path);
    for (int i = 0, told = 0; i < d->casts.len; i++) {
        const CastNote *note = &d->casts.data[i];
        const Cast *c = explain_cast_of(x, note);
        tell_label(t, "casts", &told);
        tell_cast(t, name_in(g, a, note->value), note->from, note->to, c,
                  place_in(g, x, explain_note_place(x, d, note)));
        if (c && strcmp(c->asker, d->path)) text_printf(t, "   shared with %s", name_in(g, a, c->asker));
        text_putc(t, '\n');
    }
    for (int i = 0, told = 0; i < asked->len; i++) {
        const Cast *c = &x->graph_casts.data[asked->data[i]];
        if (!strcmp(c->phase, "forward")) continue; /* told above */
        tell_label(t, c->phase, &told);
        tell_cast(t, name_in(g, a, c->value), c->from, c->to, c, place_in(g, x, explain_place(x, c)));
        text_putc(t, '\n');
    }
}

/* "h.*.mlp: linear + bias" */
static void tell_title(Text *t, const ExplainGroup *g, const char *title) {
    const size_t length = strcspn(title, ":");
    text_printf(t, "  %s%s\n", name_in(g, t->arena, arena_strndup(t->arena, title, length)), title + length);
}

/* Kernels whose titles differ in the numbers of paths alone. */
typedef struct KernelLine {
    const char *title;
    int first, last, count;
} KernelLine;

/* Adds the kernels of an op; kernels of several ops are told together if they are at the same place of each. */
static void add_kernels(Arena *a, Table *lines, const Func *f, const ExplainNumbers *kernels) {
    for (int i = 0; i < kernels->len; i++) {
        const int number = kernels->data[i];
        const char *title = f->kernels.data[number]->title;
        const size_t path = strcspn(title, ":");
        const char *key = arena_printf(a, "%d %s%s", i, text_path_key(a, arena_strndup(a, title, path)), title + path);
        KernelLine *line = table_get(lines, key);
        if (!line) {
            line = arena_new(a, KernelLine);
            *line = (KernelLine){title, number, number, 1};
            table_set(a, lines, key, line);
        }
        line->count += number != line->last;
        line->last = number;
    }
}

/* "k08"; of several "k08 to k12, 5 kernels". */
static void tell_kernel_names(Text *t, const Func *f, const KernelLine *line) {
    text_puts(t, f->kernels.data[line->first]->name);
    if (line->count > 1) text_printf(t, " to %s, %d kernels", f->kernels.data[line->last]->name, line->count);
}

/* Nothing of a group that has no ops yet: they may be in different kernels. */
static void tell_kernels(Text *t, const ExplainFacts *x, const Decision *d, const ExplainGroup *g) {
    Table lines = {0};
    if (!g) add_kernels(t->arena, &lines, x->f, explain_kernels(x, d->path));
    for (int i = 0; g && i < g->ops.len; i++)
        add_kernels(t->arena, &lines, x->f, explain_kernels(x, x->m->decisions.data[g->ops.data[i]].path));
    for (int i = 0, told = 0; i < lines.entries.len; i++) {
        const KernelLine *line = lines.entries.data[i].value;
        tell_label(t, "kernel", &told);
        tell_kernel_names(t, x->f, line);
        tell_title(t, g, line->title);
    }
}

static void tell_use(Text *t, const ExplainUse *u) {
    text_printf(t, "   %s: %d registers, %d bytes of shared memory, ", u->arch, u->registers, u->shared_bytes);
    if (u->spill_bytes) text_printf(t, "%d bytes spilled", u->spill_bytes);
    else text_puts(t, "no spills");
    if (u->stack_bytes) text_printf(t, ", %d bytes of stack", u->stack_bytes);
}

/* Of a group, whose ops have theirs in the same order, all that are number |at| of an op. */
static void tell_cuda_names(Text *t, const ExplainFacts *x, const Decision *d, const ExplainGroup *g, int at) {
    KernelLine line = {.first = explain_cuda_kernels(x, d->path)->data[at], .count = 1};
    line.last = line.first;
    if (g && !g->ops.len) return;
    for (int i = 0; g && i < g->ops.len; i++) {
        const int number = explain_cuda_kernels(x, x->m->decisions.data[g->ops.data[i]].path)->data[at];
        line.count += number != line.last;
        line.last = number;
    }
    tell_kernel_names(t, x->cuda, &line);
}

/* Where machine code was made: each kernel and what it needs. */
static void tell_cuda_kernels(Text *t, const ExplainFacts *x, const Decision *d, const ExplainGroup *g) {
    const ExplainNumbers *kernels = explain_cuda_kernels(x, d->path);
    for (int i = 0, told = 0; i < kernels->len; i++) {
        const Kernel *k = x->cuda->kernels.data[kernels->data[i]];
        const ExplainUses *uses = explain_uses(x, k);
        for (int u = 0; u < uses->len; u++) {
            tell_label(t, "on CUDA", &told);
            if (u) text_puts(t, "   ");
            else tell_cuda_names(t, x, d, g, i);
            tell_use(t, &uses->data[u]);
            text_putc(t, '\n');
        }
    }
}

static void tell_removed(Text *t, const ExplainFacts *x, const Decision *d, const ExplainGroup *g) {
    const ExplainNumbers *removed = explain_removed(x, d->path);
    for (int i = 0, told = 0; i < removed->len; i++) {
        const Removed *r = &x->m->removed.data[removed->data[i]];
        tell_label(t, "gradient", &told);
        text_puts(t, name_in(g, t->arena, r->value));
        text_pad_to(t, 34);
        text_printf(t, "removed: %s\n", r->what);
    }
}

/* Whether tensor cores make its products, and which sizes keep them from being quick. */
static void tell_cores(Text *t, const ExplainFacts *x, const Decision *d) {
    const CoresKind kind = explain_cores(x, d);
    const ExplainNumbers *narrow = explain_narrow(x, d->path);
    const char *why = explain_cores_why(kind);
    int told = 0;
    if (kind == CORES_UNKNOWN || kind == CORES_NO_PRODUCT) return;
    tell_label(t, "on CUDA", &told);
    if (why) text_printf(t, "no tensor cores: %s\n", why);
    else text_printf(t, "tensor cores%s\n", narrow->len ? ", slowly" : "");
    for (int i = 0; i < narrow->len; i++) {
        const NarrowSize *n = &x->narrow_sizes.data[narrow->data[i]];
        tell_label(t, "", &told);
        text_printf(t, "%s; %s%s\n", tensor_cores_problem(t->arena, n), tensor_cores_remedy(t->arena, x->m, n),
                    n->is_worth ? "" : ", more than it brings");
    }
}

/* What else the layer does, in ops that are not told of by themselves. */
static void tell_keepers(Text *t, const ExplainFacts *x, const Decision *d, const ExplainGroup *g) {
    const ExplainNumbers *keepers = explain_keepers(x, d->path);
    if (!keepers->len) return;
    text_printf(t, "  statistics %d ops keep them: ", keepers->len);
    for (int i = 0; i < keepers->len; i++) {
        const char *path = x->m->decisions.data[keepers->data[i]].path, *dot = strrchr(path, '.');
        text_printf(t, "%s%s", i ? ", " : "", name_in(g, t->arena, dot ? dot + 1 : path));
    }
    text_putc(t, '\n');
}

void explain_tell_decision(Text *t, const ExplainFacts *x, const Decision *d, const ExplainGroup *g) {
    text_puts(t, g ? g->name : d->path);
    if (g && g->ops.len) text_printf(t, ", %d ops", g->ops.len);
    text_pad_to(t, 28);
    tell_types(t, x, d);
    text_pad_to(t, 88);
    text_printf(t, "%s:%d\n", d->pos.file ? d->pos.file : "?", d->pos.line);
    text_puts(t, "  because    ");
    tell_reason_in(t, x->m, d, g);
    text_putc(t, '\n');
    tell_casts(t, x, d, g);
    tell_keepers(t, x, d, g);
    tell_kernels(t, x, d, g);
    tell_cores(t, x, d);
    tell_cuda_kernels(t, x, d, g);
    tell_removed(t, x, d, g);
    text_putc(t, '\n');
}

static const char *removed_line(Arena *a, const Removed *r, const ExplainGroup *g) {
    return arena_printf(a, "  %s.%s: %s", r->func, name_in(g, a, r->value), r->what);
}

/* Roundings that simplify removed from what came from no op of the forward graph. */
static void tell_other_removed(Text *t, const ExplainFacts *x, const ExplainGroup *like) {
    const Module *m = x->m;
    Table lines = {0};
    bool *told_above = arena_array(m->arena, bool, m->removed.len + 1);
    for (int k = 0; k < m->decisions.len; k++) {
        const ExplainNumbers *removed = explain_removed(x, m->decisions.data[k].path);
        for (int i = 0; i < removed->len; i++) told_above[removed->data[i]] = true;
    }
    for (int i = 0; i < m->removed.len; i++) {
        const Removed *r = &m->removed.data[i];
        if (told_above[i]) continue;
        explain_fold_line(m->arena, &lines, removed_line(m->arena, r, like), removed_line(m->arena, r, NULL));
    }
    explain_tell_lines(t, "roundings removed by simplify", &lines);
}

static const char *cast_line(const ExplainFacts *x, const Cast *c, const ExplainGroup *g) {
    Arena *a = x->m->arena;
    Text t;
    text_init(&t, a);
    text_puts(&t, "             ");
    tell_cast(&t, name_in(g, a, c->value), c->from, c->to, c, place_in(g, x, explain_place(x, c)));
    text_printf(&t, "   for %s, %s:%d", name_in(g, a, c->asker), c->pos.file ? c->pos.file : "?", c->pos.line);
    return text_str(&t);
}

/* Casts that no decision asked for: casts in the model's text, and casts of buffers' updates. */
static void tell_other_casts(Text *t, const ExplainFacts *x, const ExplainSelection *which, const ExplainGroup *like) {
    Table paths = {0}, lines = {0};
    const Module *m = x->m;
    for (int i = 0; i < m->decisions.len; i++) table_set(m->arena, &paths, m->decisions.data[i].path, t);
    const ExplainNumbers casts = explain_told_casts(x, which);
    for (int i = 0; i < casts.len; i++) {
        const Cast *c = &x->graph_casts.data[casts.data[i]];
        if (table_get(&paths, c->asker)) continue;
        explain_fold_line(m->arena, &lines, cast_line(x, c, like), cast_line(x, c, NULL));
    }
    explain_tell_lines(t, "other casts", &lines);
}

static void tell_total(Text *t, const char *name, const CastTotal *total) {
    text_printf(t, "  %s", name);
    text_pad_to(t, 22);
    text_printf(t, "%6d", total->count);
    text_printf(t, "%8d   ", total->fused);
    bytes_print(t, &total->bytes);
    text_putc(t, '\n');
}

void explain_tell_totals(Text *t, Arena *a, const CastTotals *totals) {
    text_puts(t, "casts                  count   fused   bytes read and written\n");
    for (int i = 0; i < totals->pairs.len; i++) {
        const CastTotal *pair = &totals->pairs.data[i];
        tell_total(t, arena_printf(a, "%s -> %s", amp_dtype_name(pair->from), amp_dtype_name(pair->to)), pair);
    }
    tell_total(t, "all", &totals->all);
}

void explain_tell_state_type(Text *t, const char *what, const Call *type) {
    if (!type->name) return;
    text_printf(t, ", %s ", what);
    ir_print_call(t, type);
}

/* With its line where the policy says so, not the model. */
static void tell_type(Text *t, const Module *m, const char *what, const Call *type) {
    explain_tell_state_type(t, what, type);
    if (ir_state_type_is_of_policy(m, type)) text_printf(t, " by %s:%d", type->pos.file, type->pos.line);
}

void explain_tell_precision(Text *t, const Module *m, const char *file) {
    text_printf(t, "policy %s", m->policy_name);
    if (file && strcmp(file, arena_printf(t->arena, "%s.policy", m->policy_name)) != 0) text_printf(t, " of %s", file);
    text_printf(t, ", low precision %s", amp_dtype_name(m->low));
    tell_type(t, m, "masters", &m->masters);
    tell_type(t, m, "moments", &m->moments);
    if (m->pad) text_puts(t, ", rows padded for tensor cores");
}

/* What it costs that terms of a loss are means over different counts, where a step is divided. */
static void tell_terms(Text *t, const Module *m) {
    int64_t bytes = 0;
    int most = 0;
    for (int i = 0; i < m->states.len; i++) {
        const State *s = m->states.data[i];
        if (s->role != STATE_ACCUMULATOR || !s->slot || strncmp(s->slot, "sum.", 4)) continue;
        const int number = atoi(s->slot + 4);
        int64_t elements = 1;
        for (int d = 0; d < s->shape.rank; d++) elements *= s->shape.d[d].mul;
        bytes += elements * (int64_t)amp_dtype_size(s->dtype);
        if (number > most) most = number;
    }
    if (!most) return;
    text_printf(t, "terms of a loss are means over different counts: %d backward passes in each micro-batch, and ",
                most + 1);
    text_printf(t, "%lld bytes more for sums of gradients\n", (long long)bytes);
}

void explain_as_text(Text *t, const ExplainSource *s, const ExplainSelection *which) {
    const Module *m = s->m;
    ExplainFacts facts = explain_facts(s);
    text_printf(t, "%s: ", m->name);
    explain_tell_precision(t, m, NULL);
    if (m->sums != SUMS_IEEE) text_printf(t, ", sums of the CPU as %s", ir_sums_names[m->sums]);
    text_puts(t, "\n\n");
    const bool each = which->want.all;
    if (each) facts.keepers = (Table){0}; /* these are told of by themselves */
    const ExplainNumbers told = explain_told(&facts, which, !each);
    const ExplainGroups groups = explain_groups(&facts, &told, each);
    for (int i = 0; i < groups.len; i++) {
        const ExplainGroup *g = groups.data[i];
        explain_tell_decision(t, &facts, &m->decisions.data[g->ops.data[0]], g->ops.len > 1 ? g : NULL);
    }
    const ExplainGroup *like = each ? NULL : &(ExplainGroup){0};
    tell_other_casts(t, &facts, which, like);
    if (which->all) tell_other_removed(t, &facts, like);
    explain_params_as_text(t, m, which);
    if (t->len < 2 || t->data[t->len - 2] != '\n') text_putc(t, '\n');
    if (!s->graph) {
        text_puts(t, "casts are not counted: this IR has lost its graph\n");
        return;
    }
    CastTotals totals = explain_cast_totals(&facts, which);
    explain_tell_totals(t, m->arena, &totals);
    if (which->all) tell_terms(t, m);
    if (which->all) exchange_cost_tell(t, m, s->cores.cuda);
}
