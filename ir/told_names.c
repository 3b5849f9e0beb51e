/* told_names.c: what values are called where people read of them: a value that the model's text names by that name,
 * any other by the path of its op; what an op makes on the way to its result, by that path and the core op. */
#include "ir/ir.h"

static bool is_number(const char *name) { return name[strspn(name, "0123456789")] == 0; }

/* By value: an op of the same region reads it. */
static bool *find_inner(const Func *f) {
    bool *inner = arena_array(f->module->arena, bool, f->values.len + 1);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        for (int n = 0; n < o->n_in; n++) {
            const Op *def = ir_def(f, o->in[n]);
            if (def && o->region && def->region == o->region) inner[o->in[n].id] = true;
        }
    }
    return inner;
}

static const char *unused(Arena *a, const Table *taken, const char *name) {
    const char *with_number = name;
    for (int i = 1; table_get(taken, with_number); i++) with_number = arena_printf(a, "%s_%d", name, i);
    return with_number;
}

static const char *name_by_op(const Func *f, const Op *o, Val v, const bool *inner, const Table *taken) {
    Arena *a = f->module->arena;
    const char *path = o->region ? ir_region((Func *)(uintptr_t)f, o->region)->path : o->path;
    if (!path) return ir_value(f, v)->name;
    if (inner[v.id]) path = arena_printf(a, "%s.%s", path, ir_op_info[o->code].name);
    return unused(a, taken, path);
}

const char *const *ir_told_names(const Func *f) {
    Arena *a = f->module->arena;
    const char **told = arena_array(a, const char *, f->values.len + 1);
    const bool *inner = find_inner(f);
    Table taken = {0};
    for (int i = 1; i < f->values.len; i++) {
        told[i] = f->values.data[i]->name;
        if (!is_number(told[i])) table_set(a, &taken, told[i], &told[i]);
    }
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        for (int r = 0; r < o->n_out; r++) {
            const char **name = &told[o->out[r].id];
            if (!is_number(*name)) continue;
            *name = name_by_op(f, o, o->out[r], inner, &taken);
            table_set(a, &taken, *name, name);
        }
    }
    return told;
}
