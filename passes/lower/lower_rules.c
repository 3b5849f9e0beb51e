/* lower_rules.c: the table of rules, and what rules ask of the graph op. */
#include "passes/lower/lower.h"

#include "base/hash.h"

typedef struct RuleEntry {
    LowerFn function;
    FormRule form;
} RuleEntry;

static const RuleEntry table[LOWER_RULE_COUNT] = {
#define ENTRY(id, function, form) [id] = {function, form},
    LOWER_RULES(ENTRY)
#undef ENTRY
};

LowerFn lower_rule(LowerRule rule) { return table[rule].function; }

FormRule lower_form_rule(LowerRule rule) { return table[rule].form; }

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

Val lower_counter(Lowering *l, const char *name) {
    Val *shared = lower_memo(l, "counter %s", name);
    if (!shared->id) {
        Module *m = l->f->module;
        State *s = ir_state_find(m, name);
        if (!s) s = ir_state_new(m, name, STATE_COUNTER, AMP_DT_I64, shape_scalar());
        *shared = ir_use_state(l->f, s);
    }
    return *shared;
}
