/* policy_diff.c: which names two policies decide differently, as data, for people and for tools. */
#include <string.h>

#include "compiler/explain/explain.h"
#include "ir/state_type.h"
#include "compiler/policy/policy_report.h"

static const char everything[] = "*";

/* ---- names ------------------------------------------------------------------------------------------------------- */

static NameClass class_of(Arena *a, const Policy *p, const char *name) {
    for (int i = 0; i < p->entries.len; i++)
        if (!strcmp(p->entries.data[i].name, name)) return (NameClass){p->entries.data[i].line, true};
    const char *dot = strchr(name, '.');
    if (dot) return (NameClass){policy_line(p, dot + 1, arena_strndup(a, name, (size_t)(dot - name))), false};
    const bool is_op = ir_opcode(name) || policy_is_foreign(name);
    return (NameClass){is_op ? policy_line(p, name, NULL) : NULL, false};
}

static bool same_class(const NameClass *x, const NameClass *y) {
    return x->line && y->line ? x->line->op_class == y->line->op_class : x->line == y->line;
}

static void compare_name(Arena *a, PolicyDiff *d, const char *name) {
    const NamePair pair = {name, class_of(a, d->before, name), class_of(a, d->after, name)};
    d->names++;
    if (!same_class(&pair.before, &pair.after)) vec_push(a, &d->changed, pair);
}

static void compare_names(Arena *a, PolicyDiff *d, const Policy *of) {
    for (int i = 0; i < of->entries.len; i++) {
        const char *name = of->entries.data[i].name;
        const bool told = of == d->after && class_of(a, d->before, name).listed;
        if (!told && strcmp(name, everything) != 0) compare_name(a, d, name);
    }
}

PolicyDiff policy_diff(Arena *a, const Policy *before, const Policy *after) {
    PolicyDiff d = {.before = before, .after = after};
    compare_names(a, &d, before);
    if (after != before) compare_names(a, &d, after);
    compare_name(a, &d, everything);
    return d;
}

static const char *version_of(const Policy *p) { return p->version ? p->version : "none"; }

static const char *state_type_of(Arena *a, const Call *type) {
    return type->name ? policy_state_type(a, type) : amp_dtype_name(AMP_DT_F32);
}

static bool same_state_type(const Call *x, const Call *y) {
    StateType types[2];
    ir_state_type(x, &types[0]);
    ir_state_type(y, &types[1]);
    return types[0].dtype == types[1].dtype &&
           (types[0].dtype == AMP_DT_F32 || types[0].stochastic == types[1].stochastic);
}

bool policy_diff_is_same(const PolicyDiff *d) {
    const Policy *x = d->before, *y = d->after;
    return same_state_type(&x->masters, &y->masters) && same_state_type(&x->moments, &y->moments) && !d->changed.len &&
           x->algorithm == y->algorithm && x->low == y->low && !strcmp(version_of(x), version_of(y));
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* A file is told by its path, and by the name in it. */
static void tell_side(Text *t, const char *word, const Policy *p) {
    const bool is_file = strcmp(p->source->name, arena_printf(t->arena, "%s.policy", p->name)) != 0;
    text_printf(t, "%s%s", word, is_file ? p->source->name : p->name);
    text_pad_to(t, 36);
    if (is_file) text_printf(t, "policy %s, ", p->name);
    policy_tell_head(t, p);
    text_putc(t, '\n');
}

/* "f32_out  min-cast.policy:18"; the file without its folder. */
static void tell_class(Text *t, const Policy *p, const NameClass *c, int column) {
    const char *file = p->source->name, *slash = strrchr(file, '/');
    text_puts(t, c->line ? policy_class_words[c->line->op_class] : "-");
    text_pad_to(t, column + 9);
    if (!c->line) text_puts(t, "by its ops");
    else text_printf(t, "%s:%d%s", slash ? slash + 1 : file, c->line->line, c->listed ? "" : " (not listed)");
}

static void tell_pair(Text *t, const PolicyDiff *d, const NamePair *p) {
    text_puts(t, strcmp(p->name, everything) != 0 ? p->name : "* (all other ops)");
    text_pad_to(t, 36);
    tell_class(t, d->before, &p->before, 36);
    text_pad_to(t, 80);
    tell_class(t, d->after, &p->after, 80);
    text_putc(t, '\n');
}

static void tell_head(Text *t, const char *what, const char *before, const char *after, const char *means) {
    if (strcmp(before, after) != 0) text_printf(t, "%-12s%s -> %s%s\n", what, before, after, means);
}

/* Ops of other systems; a policy may have many. */
static int count_foreign(const PolicyDiff *d) {
    int count = 0;
    for (int i = 0; i < d->changed.len; i++) count += policy_is_foreign(d->changed.data[i].name);
    return count;
}

void policy_diff_as_text(Text *t, const PolicyDiff *d) {
    const Policy *x = d->before, *y = d->after;
    tell_side(t, "before   ", x);
    tell_side(t, "after    ", y);
    text_putc(t, '\n');
    for (int i = 0; i < d->changed.len; i++)
        if (!policy_is_foreign(d->changed.data[i].name)) tell_pair(t, d, &d->changed.data[i]);
    if (policy_diff_is_same(d)) text_puts(t, "no difference: ");
    text_printf(t, "%d of %d names changed their class", d->changed.len, d->names);
    const int foreign = count_foreign(d);
    if (foreign) text_printf(t, ", %d of them ops that no model here has; --json lists them", foreign);
    text_putc(t, '\n');
    tell_head(t, "version", version_of(x), version_of(y), "");
    tell_head(t, "low", amp_dtype_name(x->low), amp_dtype_name(y->low), "   what is lowered has another dtype");
    tell_head(t, "algorithm", policy_algorithm_words[x->algorithm], policy_algorithm_words[y->algorithm],
              "   ops of the same class may have another dtype");
    tell_head(t, "masters", state_type_of(t->arena, &x->masters), state_type_of(t->arena, &y->masters), "");
    tell_head(t, "moments", state_type_of(t->arena, &x->moments), state_type_of(t->arena, &y->moments), "");
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_side(amp_json_writer *w, Arena *a, const char *key, const Policy *p) {
    amp_json_begin_object(w, key);
    policy_put_head(w, a, p);
    amp_json_end_object(w);
}

static void put_class(amp_json_writer *w, const char *key, const NameClass *c) {
    amp_json_begin_object(w, key);
    amp_json_put_string(w, "class", c->line ? policy_class_words[c->line->op_class] : NULL);
    if (c->line) amp_json_put_int(w, "line", c->line->line);
    else amp_json_put_null(w, "line");
    amp_json_put_bool(w, "listed", c->listed);
    amp_json_end_object(w);
}

typedef struct Told {
    Arena *arena;
    const PolicyDiff *diff;
} Told;

static void put_diff(amp_json_writer *w, const void *of) {
    const Told *told = of;
    const PolicyDiff *d = told->diff;
    put_side(w, told->arena, "before", d->before);
    put_side(w, told->arena, "after", d->after);
    amp_json_put_bool(w, "same", policy_diff_is_same(d));
    amp_json_put_int(w, "names", d->names);
    amp_json_begin_array(w, "changed");
    for (int i = 0; i < d->changed.len; i++) {
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "name", d->changed.data[i].name);
        amp_json_put_bool(w, "foreign", policy_is_foreign(d->changed.data[i].name));
        put_class(w, "before", &d->changed.data[i].before);
        put_class(w, "after", &d->changed.data[i].after);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

amp_status policy_diff_as_json(Text *t, Arena *a, const PolicyDiff *d, amp_error *err) {
    return explain_json_text(t, a, put_diff, &(Told){a, d}, err);
}
