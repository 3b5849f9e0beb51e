/* ops.c: the op table of ops.def, and names to opcodes. */
#include <math.h> /* INFINITY, in ops.def */

#include "ir/ir.h"
#include "ir/loss_scale.h"

/* clang-format off */
#define INT(name, v) {name, ATTR_INT, {.i = (v)}}
#define FLOAT(name, v) {name, ATTR_FLOAT, {.f = (v)}}
#define BOOL(name, v) {name, ATTR_BOOL, {.b = (v)}}
#define SYMBOL(name, v) {name, ATTR_SYMBOL, {.s = (v)}}
#define STRING(name, v) {name, ATTR_STRING, {.s = (v)}}
#define DIMS(name) {name, ATTR_DIMS, {.dims = {0}}}
#define PAIR(name, v) {name, ATTR_DIMS, {.dims = {2, {v, v}}}}
/* clang-format on */

const OpInfo ir_op_info[OP_COUNT] = {
#define OP(id, shape, ...) [OP_##id] = {.name = #id, __VA_ARGS__},
#include "ir/ops.def"
};

const char *const ir_stage_names[STAGE_COUNT] = {
#define STAGE(id, name) #name,
#include "ir/stages.def"
#undef STAGE
};

Opcode ir_opcode(const char *name) {
    for (int code = OP_NONE + 1; code < OP_COUNT; code++)
        if (!strcmp(ir_op_info[code].name, name)) return (Opcode)code;
    return OP_NONE;
}

const OpWord ir_op_words[] = {
#define WORD(name, kind) {#name, kind},
#include "ir/ops.def"
};
const int ir_op_word_count = sizeof ir_op_words / sizeof *ir_op_words;

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
