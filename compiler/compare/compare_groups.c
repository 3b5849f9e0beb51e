/* compare_groups.c: ops of repeated layers that changed alike, so that a person reads of them once. */
#include <string.h>

#include "compiler/compare/compare.h"

static void put_decision(Text *t, const Decision *d) {
    if (!d) return;
    text_printf(t, " %s:%d:%d %s ", d->pos.file ? d->pos.file : "", d->pos.line, d->pos.column, d->op);
    for (int i = 0; i < d->operands.len; i++) text_printf(t, "%s x ", amp_dtype_name(d->operands.data[i]));
    text_printf(t, "%s", amp_dtype_name(d->out));
    const Reason *r = d->reason;
    if (r->is_override) text_printf(t, " override %s:%d", r->where.file, r->where.line);
    else text_printf(t, " %s:%d %s", r->origin ? r->origin : "", r->line, r->rule);
}

/* What ops of a group have in common.  Which op they follow, and what a policy says of numbers, may differ. */
static const char *group_key(Arena *a, const char *path, const OpPair *p) {
    Text t;
    text_init(&t, a);
    text_puts(&t, path);
    put_decision(&t, p->before);
    text_puts(&t, " ->");
    put_decision(&t, p->after);
    return text_str(&t);
}

OpGroups compare_group(Arena *a, const OpPairs *pairs) {
    OpGroups groups = {0};
    Table by_key = {0};
    for (int i = 0; i < pairs->len; i++) {
        const OpPair *p = &pairs->data[i];
        const char *path = (p->after ? p->after : p->before)->path;
        const char *key = group_key(a, text_path_key(a, path), p);
        OpGroup *g = table_get(&by_key, key);
        if (!g) {
            g = arena_new(a, OpGroup);
            *g = (OpGroup){.name = path};
            table_set(a, &by_key, key, g);
            vec_push(a, &groups, g);
        } else {
            g->name = explain_join_names(a, g->name, path);
        }
        vec_push(a, &g->pairs, *p);
    }
    return groups;
}
