/* explain_fold.c: a loop is unrolled, so that a network over 256 steps has each op of a step 256 times.  They are
 * printed once, except ops that differ in something, such as the first step's. */
#include <string.h>

#include "compiler/explain/explain.h"

/* The text of the op as one of a group, and its place. */
static const char *group_key(const ExplainFacts *x, const Decision *d) {
    Text t;
    text_init(&t, x->m->arena);
    text_printf(&t, "%s:%d:%d\n", d->pos.file ? d->pos.file : "", d->pos.line, d->pos.column);
    explain_tell_decision(&t, x, d, &(ExplainGroup){.name = text_path_key(x->m->arena, d->path)});
    return text_str(&t);
}

const char *explain_join_names(Arena *a, const char *name, const char *path) {
    Text t;
    text_init(&t, a);
    while (true) {
        const size_t length = strcspn(name, "."), other = strcspn(path, ".");
        const char *key = text_path_key(a, arena_strndup(a, path, other));
        if (length == other && !strncmp(name, path, length)) text_write(&t, name, length);
        else text_printf(&t, "%s%s", key, strcmp(key, "*") ? "*" : "");
        name += length, path += other;
        if (!*name || !*path) return text_str(&t);
        text_putc(&t, '.');
        name++, path++;
    }
}

static size_t scope_length(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? (size_t)(dot - path) : 0;
}

/* Layers fold from two on.  In one scope, as the steps of a loop are, from four on: fewer are of one step or layer. */
static bool repeats(const Module *m, const ExplainGroup *g) {
    const char *first = m->decisions.data[g->ops.data[0]].path;
    const char *last = m->decisions.data[g->ops.data[g->ops.len - 1]].path;
    const size_t length = scope_length(first);
    const bool one_scope = length == scope_length(last) && !strncmp(first, last, length);
    return g->ops.len >= (one_scope ? 4 : 2);
}

static ExplainGroup *new_group(Arena *a, const char *path) {
    ExplainGroup *g = arena_new(a, ExplainGroup);
    *g = (ExplainGroup){.name = path};
    return g;
}

/* By number in |told|: the group of its key. */
static ExplainGroup **find_groups(const ExplainFacts *x, const ExplainNumbers *told) {
    Arena *a = x->m->arena;
    ExplainGroup **found = arena_array(a, ExplainGroup *, told->len + 1);
    Table by_key = {0};
    for (int i = 0; i < told->len; i++) {
        const Decision *d = &x->m->decisions.data[told->data[i]];
        const char *key = group_key(x, d);
        ExplainGroup *g = table_get(&by_key, key);
        if (!g) {
            g = new_group(a, d->path);
            table_set(a, &by_key, key, g);
        }
        g->name = explain_join_names(a, g->name, d->path);
        vec_push(a, &g->ops, told->data[i]);
        found[i] = g;
    }
    return found;
}

ExplainGroups explain_groups(const ExplainFacts *x, const ExplainNumbers *told, bool each) {
    Arena *a = x->m->arena;
    ExplainGroups groups = {0};
    ExplainGroup **found = each ? NULL : find_groups(x, told);
    for (int i = 0; i < told->len; i++) {
        const bool folds = found && repeats(x->m, found[i]);
        if (folds && found[i]->ops.data[0] != told->data[i]) continue;
        ExplainGroup *g = folds ? found[i] : new_group(a, x->m->decisions.data[told->data[i]].path);
        if (!folds) vec_push(a, &g->ops, told->data[i]);
        vec_push(a, &groups, g);
    }
    return groups;
}

/* Whether a name ends in any number, as in a loop's steps: layers differ in whole parts. */
static bool counts_within_parts(const char *pattern) {
    for (const char *star = strchr(pattern, '*'); star; star = strchr(star + 1, '*'))
        if (star > pattern && star[-1] != '.') return true;
    return false;
}

const char *explain_name_like(Arena *a, const char *group, const char *path) {
    return counts_within_parts(group) ? text_path_pattern(a, path) : text_path_layers(a, path);
}

void explain_fold_line(Arena *a, Table *lines, const char *pattern, const char *text) {
    FoldedLine *line = table_get(lines, pattern);
    if (!line) {
        line = arena_new(a, FoldedLine);
        *line = (FoldedLine){.text = text};
        table_set(a, lines, pattern, line);
    }
    line->count++;
}

void explain_tell_lines(Text *t, const char *title, const Table *lines) {
    for (int i = 0; i < lines->entries.len; i++) {
        const FoldedLine *line = lines->entries.data[i].value;
        if (!i) text_printf(t, "%s\n", title);
        if (line->count == 1) text_printf(t, "%s\n", line->text);
        else text_printf(t, "%s   %d times\n", lines->entries.data[i].key, line->count);
    }
}
