/* share.c: see share.h. */
#include "passes/launch/share.h"

#include "ir/operands.h"
#include "ir/places.h"

bool share_is_independent(const Func *f, const Launch *l, int k) {
    const Kernel *next = f->kernels.data[k];
    if (ir_is_still(f, next)) return false; /* it is in no launch, and none goes on beyond it */
    for (int i = l->first; i < l->first + l->count; i++)
        if (ir_touches(f, f->kernels.data[i], next, false) || ir_touches(f, next, f->kernels.data[i], false))
            return false;
    return true;
}

bool share_moves(const Func *f, const Kernel *k, Val v) {
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        for (int n = 0; n < o->n_in; n++)
            if (ir_reads_memory(f, o, n) && ir_memory_source(f, o->in[n]).id == v.id) return true;
    }
    return false;
}

bool share_is_same(const KernelFacts *a, const KernelFacts *b) {
    return a->code && b->code && !strcmp(a->code, b->code);
}

void share_add(const Func *f, Launch *l, int part, PartForm form, int stage, int kernel) {
    Arena *a = f->module->arena;
    if (part == l->parts.len) vec_push(a, &l->parts, ((LaunchPart){.stage = stage}));
    l->parts.data[part].form = form;
    vec_push(a, &l->parts.data[part].kernels, kernel);
    if (kernel >= l->first + l->count) l->count = kernel + 1 - l->first;
}

Launch share_launch_at(Sharing *s, int first) {
    Launch l = {.first = first};
    while (s->next < s->count && s->launches[s->next].first < first) s->next++; /* a launch before has taken it over */
    if (s->next < s->count && s->launches[s->next].first == first) return s->launches[s->next++];
    share_add(s->f, &l, 0, PART_BATCH, 0, first);
    return l;
}

static bool sums_grow(const KernelFacts *facts, const LaunchPart *part) {
    return facts[part->kernels.data[0]].sums_grow;
}

void share_order_parts(const KernelFacts *facts, Launch *l) {
    LaunchPart *parts = l->parts.data;
    for (int i = 1; i < l->parts.len; i++)
        for (int at = i; at > 0; at--) {
            const LaunchPart part = parts[at], before = parts[at - 1];
            if (before.stage < part.stage) break;
            if (before.stage == part.stage && (sums_grow(facts, &before) || !sums_grow(facts, &part))) break;
            parts[at] = before;
            parts[at - 1] = part;
        }
}

/* By kernel; NULL: there are none to share, or a kernel has no code, which code generation says. */
static const KernelFacts *facts_of(PassContext *c, int func) {
    const Func *f = c->m->funcs.data[func];
    amp_error err = {0};
    if (!c->options->describe || ir_is_exchange(f)) return NULL;
    if (!c->facts) c->facts = arena_array(c->m->arena, KernelFacts *, c->m->funcs.len);
    if (c->facts[func]) return c->facts[func];
    KernelFacts *facts = arena_array(c->m->arena, KernelFacts, f->kernels.len + 1);
    if (c->options->describe(f, facts, &err)) return NULL;
    return c->facts[func] = facts;
}

bool share_launches(PassContext *c, void (*grow)(Sharing *s, Launch *l)) {
    for (int i = 0; i < c->m->funcs.len; i++) {
        Func *f = c->m->funcs.data[i];
        Sharing s = {f, facts_of(c, i), f->launches.data, f->launches.len, 0};
        if (!s.facts) continue;
        memset(&f->launches, 0, sizeof f->launches);
        for (int k = 0; k < f->kernels.len;) {
            Launch l = share_launch_at(&s, k);
            if (!ir_is_still(f, f->kernels.data[k])) grow(&s, &l);
            if (l.count > 1) vec_push(c->m->arena, &f->launches, l);
            k += l.count;
        }
    }
    return true;
}

/* ---- launches that were read ------------------------------------------------------------------------------------- */

static bool has_part(const LaunchPart *part, const LaunchPart *of) {
    bool same = part->form == of->form && part->stage == of->stage && part->kernels.len <= of->kernels.len;
    for (int i = 0; i < part->kernels.len && same; i++) same = part->kernels.data[i] == of->kernels.data[i];
    return same;
}

/* Whether |grow| makes |l| of its first kernel, or goes beyond it. */
static bool grows(Sharing *s, const Launch *l, void (*grow)(Sharing *s, Launch *l)) {
    s->next = s->count;
    Launch grown = share_launch_at(s, l->first);
    grow(s, &grown);
    bool same = grown.by_columns == l->by_columns && grown.parts.len >= l->parts.len;
    for (int p = 0; p < l->parts.len && same; p++) same = has_part(&l->parts.data[p], &grown.parts.data[p]);
    return same;
}

static bool is_made(Sharing *s, const Launch *l) {
    const LaunchPart *first = &l->parts.data[0];
    if (l->by_columns) return grows(s, l, single_pass_grow);
    if (launch_has_stages(l)) return grows(s, l, supersteps_grow);
    if (first->form == PART_CHAIN) return l->parts.len == 1 && grows(s, l, chain_grow);
    for (int p = 0; p < l->parts.len; p++) {
        Launch batch = {.first = l->parts.data[p].kernels.data[0]};
        vec_push(s->f->module->arena, &batch.parts, l->parts.data[p]);
        if (l->parts.data[p].kernels.len > 1 && !grows(s, &batch, batch_grow)) return false;
    }
    return l->parts.len == 1 || bundle_fits(s, l);
}

const char *share_check(PassContext *c) {
    for (int i = 0; i < c->m->funcs.len; i++) {
        Func *f = c->m->funcs.data[i];
        Sharing s = {f, f->launches.len ? facts_of(c, i) : NULL, f->launches.data, f->launches.len, 0};
        for (int l = 0; l < s.count && s.facts; l++)
            if (!is_made(&s, &s.launches[l]))
                return arena_printf(c->m->arena, "%s: the kernels of the launch with %s may not share one", f->name,
                                    f->kernels.data[f->launches.data[l].first]->name);
    }
    return NULL;
}
