/* lower_rules.c: the table of rules, and what rules ask of the graph op. */
#include "passes/lower/lower.h"

#include "base/hash.h"

const LowerRow *const lower_tables[LOWER_TABLES] = {
    lower_activation_ops, lower_clip_ops,  lower_elementwise_ops, lower_image_ops,     lower_loss_ops,
    lower_metric_ops,     lower_move_ops,  lower_norm_ops,        lower_optimizer_ops, lower_product_ops,
    lower_reduce_ops,     lower_scale_ops, lower_schedule_ops,    lower_softmax_ops};

const LowerRow *lower_row(Opcode code) {
    for (int i = 0; i < LOWER_TABLES; i++)
        if (lower_tables[i][code].lower) return &lower_tables[i][code];
    bool is_same = ir_op_info[code].flags & ELEMENTWISE && ir_op_levels(code) == (GRAPH | CORE);
    return is_same ? &lower_same_op : NULL;
}

/* ---- the graph op ------------------------------------------------------------------------------------------------ */

double lower_float(const Lowering *l, const char *name) { return ir_attr(l->op, name)->f; }

bool lower_bool(const Lowering *l, const char *name) { return ir_attr(l->op, name)->b; }

int64_t lower_int(const Lowering *l, const char *name) { return ir_attr(l->op, name)->i; }

void lower_copy_attrs(const Lowering *l, Op *to) {
    const AttrSpec *specs = ir_op_info[to->code].attrs;
    for (int i = 0; i < MAX_ATTRS && specs[i].type != ATTR_END; i++) {
        const AttrValue *from = ir_attr(l->op, specs[i].name);
        if (from) to->attr[i] = *from;
    }
}

void lower_unsupported(Lowering *l, const char *fmt, ...) {
    Arena *a = l->f->module->arena;
    const Op *o = l->op;
    va_list args;
    va_start(args, fmt);
    const char *what = arena_vprintf(a, fmt, args);
    va_end(args);
    l->failed = true;
    place_error(l->c, o->pos, "%s: %s: not built yet: %s", o->path ? o->path : "?", ir_op_info[o->code].name, what);
}

/* ---- shared by graph ops ----------------------------------------------------------------------------------------- */

Val *lower_memo(Lowering *l, const char *fmt, ...) {
    Arena *a = l->f->module->arena;
    va_list args;
    va_start(args, fmt);
    const char *key = arena_vprintf(a, fmt, args);
    va_end(args);
    Memo **slot = &l->memos[amp_hash32(key) % MEMO_SLOTS];
    for (Memo *m = *slot; m; m = m->next)
        if (!strcmp(m->key, key)) return &m->value;
    Memo *memo = arena_new(a, Memo);
    *memo = (Memo){.key = key, .next = *slot};
    *slot = memo;
    return &memo->value;
}

Val lower_counter(Lowering *l, CounterKind kind) {
    Val *shared = lower_memo(l, "counter %s", amp_counter_word(kind));
    if (!shared->id) *shared = ir_use_state(l->f, ir_counter(l->f->module, kind, NO_BLOCK));
    return *shared;
}
