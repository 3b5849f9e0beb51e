/* lookup.c: finding things by name or by id: opcodes in the op table of ops.def, and what a module holds: functions,
 * values, ops, attributes, states, results.  The names of a function's values are unique. */
#include "ir/names.h"

#include <math.h> /* INFINITY, in ops.def */
#include <stdio.h>

#include "base/hash.h"
#include "ir/ir.h"
#include "ir/loss_scale.h"
#include "ir/state_type.h"

/* ---- the op table ------------------------------------------------------------------------------------------------ */

/* clang-format off */
#define INT(name, v) {name, ATTR_INT, {.i = (v)}}
#define FLOAT(name, v) {name, ATTR_FLOAT, {.f = (v)}}
#define BOOL(name, v) {name, ATTR_BOOL, {.b = (v)}}
#define SYMBOL(name, v) {name, ATTR_SYMBOL, {.s = (v)}}
#define STRING(name, v) {name, ATTR_STRING, {.s = (v)}}
#define DIMS(name) {name, ATTR_DIMS, {.dims = {0}}}
#define NUMBERS(name) {name, ATTR_NUMBERS, {.numbers = NULL}}
#define PAIR(name, v) {name, ATTR_DIMS, {.dims = {2, {v, v}}}}
/* clang-format on */

const OpInfo ir_op_info[OP_COUNT] = {
#define OP(id, shape, ...) [OP_##id] = {.name = #id, __VA_ARGS__},
#include "ir/ops.def"
};

const char *const ir_stage_names[STAGE_COUNT] = {
#define STAGE(id, name, ...) #name,
#include "ir/stages.def"
#undef STAGE
};

Opcode ir_opcode(const char *name) {
    for (int code = OP_NONE + 1; code < OP_COUNT; code++)
        if (!strcmp(ir_op_info[code].name, name)) return (Opcode)code;
    return OP_NONE;
}

const char *const ir_op_words[] = {
#define WORD(name) #name,
#include "ir/ops.def"
};
const int ir_op_word_count = sizeof ir_op_words / sizeof *ir_op_words;

static const struct Schedule {
    const char *name;
    Opcode op;
} schedules[] = {
    {"constant", OP_constant_rate}, {"cosine", OP_cosine_rate},       {"step", OP_step_rate},
    {"linear", OP_linear_rate},     {"one_cycle", OP_one_cycle_rate}, {"settable", OP_settable_rate},
};

Opcode ir_schedule_op(const char *name) {
    for (int i = 0; i < (int)(sizeof schedules / sizeof *schedules); i++)
        if (!strcmp(schedules[i].name, name)) return schedules[i].op;
    return OP_NONE;
}

const char *ir_schedule_name(Opcode code) {
    for (int i = 0; i < (int)(sizeof schedules / sizeof *schedules); i++)
        if (schedules[i].op == code) return schedules[i].name;
    return NULL;
}

int ir_op_levels(Opcode code) {
    const OpInfo *info = &ir_op_info[code];
    return (info->graph ? GRAPH : 0) | (info->core ? CORE : 0);
}

/* Operands of one alternative of a signature. */
static void count_operands(const char *s, int *least, int *most) {
    *least = *most = 0;
    for (; *s != '>'; s++) {
        if (*s == '?') (*least)--;
        else if (*s == '+') *most = MANY;
        else (*least)++, (*most)++;
    }
}

OpArity ir_op_arity(Opcode code) {
    const OpInfo *info = &ir_op_info[code];
    const char *at = info->graph ? info->graph : info->core;
    OpArity arity = {.in_min = MANY};
    if (!at) return (OpArity){0};
    arity.out = (int)strcspn(strchr(at, '>') + 1, "|");
    for (; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        int least, most;
        count_operands(at, &least, &most);
        if (least < arity.in_min) arity.in_min = least;
        if (most > arity.in_max) arity.in_max = most;
    }
    return arity;
}

int ir_attr_count(Opcode code) {
    int count = 0;
    while (count < MAX_ATTRS && ir_op_info[code].attrs[count].type != ATTR_END) count++;
    return count;
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

Func *ir_func_find(const Module *m, const char *name) {
    for (int i = 0; i < m->funcs.len; i++)
        if (!strcmp(m->funcs.data[i]->name, name)) return m->funcs.data[i];
    return NULL;
}

Func *ir_program(const Module *m, ProgramKind kind) {
    for (int i = 0; i < m->funcs.len; i++)
        if (m->funcs.data[i]->kind == kind) return m->funcs.data[i];
    return NULL;
}

Region *ir_region(Func *f, uint32_t region) {
    return region == 0 || region > (uint32_t)f->regions.len ? NULL : &f->regions.data[region - 1];
}

/* ---- values and ops ---------------------------------------------------------------------------------------------- */

Value *ir_value(const Func *f, Val v) { return v.id < (uint32_t)f->values.len ? f->values.data[v.id] : NULL; }

Op *ir_op(const Func *f, OpId o) { return o.id < (uint32_t)f->ops.len ? f->ops.data[o.id] : NULL; }

OpId ir_op_id(const Func *f, const Op *o) {
    if (ir_op(f, o->id) == o) return o->id;
    for (int i = 1; i < f->ops.len; i++) /* a copied struct carries the id of its original */
        if (f->ops.data[i] == o) return (OpId){(uint32_t)i};
    return (OpId){0};
}

Op *ir_def(const Func *f, Val v) {
    const Value *value = ir_value(f, v);
    return value && value->kind == VAL_RESULT ? ir_op(f, value->def) : NULL;
}

Dtype ir_dtype(const Func *f, Val v) { return ir_value(f, v)->dtype; }

const Shape *ir_shape(const Func *f, Val v) { return &ir_value(f, v)->shape; }

AttrValue *ir_attr(const Op *o, const char *name) {
    const AttrSpec *specs = ir_op_info[o->code].attrs;
    for (int i = 0; i < MAX_ATTRS && specs[i].type != ATTR_END; i++)
        if (!strcmp(specs[i].name, name)) return (AttrValue *)&o->attr[i];
    return NULL;
}

/* ---- states, results, calls -------------------------------------------------------------------------------------- */

State *ir_state_find(const Module *m, const char *name) { return table_get(&m->state_names, name); }

State *ir_state_of(const Func *f, Val v) {
    const Value *value = ir_value(f, v);
    return value && value->kind == VAL_STATE ? ir_state_find(f->module, value->name) : NULL;
}

const Result *ir_find_result(const Func *f, const char *name) {
    uintptr_t number = (uintptr_t)table_get(&f->result_names, name);
    return number ? &f->results.data[number - 1] : NULL;
}

const Result *ir_result_of_kind(const Func *f, ResultKind kind, int32_t block) {
    for (int i = 0; i < f->results.len; i++)
        if (f->results.data[i].kind == kind && f->results.data[i].block == block) return &f->results.data[i];
    return NULL;
}

State *ir_result_state(const Func *f, const Result *r) {
    return r->kind == RESULT_GRADIENT || r->kind == RESULT_UPDATE ? ir_state_find(f->module, r->of) : NULL;
}

CallArg *ir_call_arg(const Call *c, const char *name) {
    for (int i = 0; i < c->args.len; i++)
        if (!strcmp(c->args.data[i].name, name)) return &c->args.data[i];
    return NULL;
}

/* ---- names of values --------------------------------------------------------------------------------------------- */

/* A hash table from names to value ids, by open addressing with linear probing.
 * A slot whose value has another name by now never compares equal, so renaming needs no deletion. */

enum { FIRST_CAPACITY = 32, MAX_NUMBER_DIGITS = 9 };

struct NameTable {
    uint32_t *slots; /* value ids; 0: empty */
    uint32_t cap, count;
    int64_t last_number;
    Table last_taken; /* hint to the last number that was put after it: thousands of values may want one name */
};

int64_t name_number(const char *name) {
    size_t n = strlen(name);
    if (n == 0 || n > MAX_NUMBER_DIGITS || (n > 1 && name[0] == '0')) return -1;
    int64_t number = 0;
    for (; *name; name++) {
        if (*name < '0' || *name > '9') return -1;
        number = number * 10 + (*name - '0');
    }
    return number;
}

static uint32_t slot_of(const struct NameTable *t, const char *name) { return amp_hash32(name) & (t->cap - 1); }

Val names_find(const Func *f, const char *name) {
    const struct NameTable *t = f->names;
    if (!t) return NO_VAL;
    for (uint32_t s = slot_of(t, name); t->slots[s]; s = (s + 1) & (t->cap - 1))
        if (!strcmp(ir_value(f, (Val){t->slots[s]})->name, name)) return (Val){t->slots[s]};
    return NO_VAL;
}

static void insert(struct NameTable *t, const char *name, Val v) {
    uint32_t s = slot_of(t, name);
    while (t->slots[s]) s = (s + 1) & (t->cap - 1);
    t->slots[s] = v.id;
    t->count++;
    int64_t number = name_number(name);
    if (number > t->last_number) t->last_number = number;
}

static struct NameTable *new_table(Arena *a, uint32_t cap) {
    struct NameTable *t = arena_new(a, struct NameTable);
    t->cap = cap;
    t->slots = arena_array(a, uint32_t, cap);
    return t;
}

void names_rebuild(Func *f) {
    uint32_t cap = FIRST_CAPACITY;
    while (cap < 2 * (uint32_t)f->values.len) cap *= 2;
    if (f->names && f->names->cap == cap) *f->names = (struct NameTable){.slots = f->names->slots, .cap = cap};
    else f->names = new_table(f->module->arena, cap);
    memset(f->names->slots, 0, sizeof *f->names->slots * cap);
    for (int i = 1; i < f->values.len; i++) insert(f->names, f->values.data[i]->name, (Val){(uint32_t)i});
}

/* Finds v among the values, too. */
static void grow(Func *f) {
    Table last_taken = f->names ? f->names->last_taken : (Table){0};
    names_rebuild(f);
    f->names->last_taken = last_taken;
}

void names_add(Func *f, Val v) {
    if (!f->names || 2 * f->names->count >= f->names->cap) grow(f);
    else insert(f->names, ir_value(f, v)->name, v);
}

static const char *next_number(const Func *f) {
    int64_t number = f->names ? f->names->last_number : 0;
    const char *name;
    do name = arena_printf(f->module->arena, "%lld", (long long)++number);
    while (names_find(f, name).id);
    return name;
}

const char *names_unique(const Func *f, const char *hint) {
    if (!hint) return next_number(f);
    Arena *a = f->module->arena;
    if (!names_find(f, hint).id) return arena_strdup(a, hint);
    int64_t number =
        (int64_t)(intptr_t)table_get(&f->names->last_taken, hint); /* the name is taken: there is a table */
    char buffer[256];
    const char *name = buffer;
    do {
        int n = snprintf(buffer, sizeof buffer, "%s.%lld", hint, (long long)++number);
        if ((size_t)n >= sizeof buffer) name = arena_printf(a, "%s.%lld", hint, (long long)number);
    } while (names_find(f, name).id);
    table_set(a, &f->names->last_taken, hint, (void *)(intptr_t)number);
    return arena_strdup(a, name);
}

/* ---- types of states --------------------------------------------------------------------------------------------- */

bool ir_state_type(const Call *c, StateType *out) {
    *out = (StateType){.dtype = AMP_DT_F32, .stochastic = true};
    if (!c->name || !strcmp(c->name, amp_dtype_name(AMP_DT_F32))) return true;
    if (!strcmp(c->name, STATE_TYPE_F8)) {
        out->dtype = AMP_DT_F8M;
        return true;
    }
    const CallArg *rounding = ir_call_arg(c, "rounding");
    if (rounding && rounding->type != ATTR_SYMBOL) return false;
    if (rounding) out->stochastic = !strcmp(rounding->value.s, ROUNDING_STOCHASTIC);
    if (rounding && !out->stochastic && strcmp(rounding->value.s, ROUNDING_NEAREST)) return false;
    out->dtype = !strcmp(c->name, amp_dtype_name(AMP_DT_BF16)) ? AMP_DT_BF16 : AMP_DT_F16;
    return !strcmp(c->name, amp_dtype_name(out->dtype));
}

bool ir_state_type_is_of_policy(const Module *m, const Call *c) {
    return c->pos.file && m->policy_origin && !strcmp(c->pos.file, m->policy_origin);
}
