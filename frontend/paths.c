/* paths.c: the published names of parameters, and the paths of ops: "h.0.attn.c_attn.weight". */
#include "frontend/elaborate.h"

const char *join_path(Elab *e, const char *scope, const char *name) {
    return *scope ? arena_printf(e->a, "%s.%s", scope, name) : name;
}

/* How often a name was asked for: where the search for a free number begins. */
typedef struct NameCount {
    int next;
} NameCount;

/* The name, or where it is taken the name with the separator and the first free number. */
static const char *take_name(Elab *e, Table *taken, const char *name, char separator) {
    NameCount *count = table_get(taken, name);
    if (count) {
        const char *base = name;
        do name = arena_printf(e->a, "%s%c%d", base, separator, count->next++);
        while (table_get(taken, name));
    }
    NameCount *first = arena_new(e->a, NameCount);
    first->next = 1;
    table_set(e->a, taken, name, first);
    return name;
}

const char *unique_path(Elab *e, const char *scope, const char *name) {
    return take_name(e, &e->paths, join_path(e, scope, name), '_');
}

const char *unique_value_name(Elab *e, const char *name) {
    return take_name(e, &e->value_names, join_path(e, e->frame->scope, name), '.');
}

static bool put_index(Elab *e, Text *t, const Expr *index) {
    Item item = evaluate(e, index);
    if (item.kind == ITEM_ERROR) return false;
    if (item.kind == ITEM_INT && !item.i.n && item.i.mul >= 0) {
        text_printf(t, ".%lld", (long long)item.i.mul);
        return true;
    }
    report(e, index->loc, "an index in a path is an int from 0 on; this is %s", item_describe(e, &item));
    return false;
}

const char *path_text(Elab *e, const Path *path) {
    Text t;
    text_init(&t, e->a);
    bool good = true;
    for (int i = 0; i < path->parts.len; i++) {
        const PathPart *part = &path->parts.data[i];
        if (part->word) text_printf(&t, "%s%s", i ? "." : "", part->word->text);
        else good = put_index(e, &t, part->index) && good;
    }
    return good ? text_str(&t) : NULL;
}
