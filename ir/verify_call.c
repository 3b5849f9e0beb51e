/* verify_call.c: arguments of initialisers, optimizers, schedules and loss scales have the types that the passes read
 * them as: IR that a person writes may say anything. */
#include "ir/verify.h"

static bool is_number(const CallArg *a) { return a->type == ATTR_INT || a->type == ATTR_FLOAT; }

/* What the op that the call becomes has by that name; NULL: an operand, or the call becomes no op. */
static const AttrSpec *find_spec(Opcode code, const char *name) {
    if (code == OP_NONE) return NULL;
    const AttrSpec *specs = ir_op_info[code].attrs;
    for (int i = 0; i < MAX_ATTRS && specs[i].type != ATTR_END; i++)
        if (!strcmp(specs[i].name, name)) return &specs[i];
    return NULL;
}

/* Arguments that become no attribute and are read as numbers. */
static const char *const numbers[] = {
#define INITIALISER(name, rank, least, most, first, second) first, second,
#include "base/names.def"
    "init", "growth",       "backoff", "interval", "min", "max", "value", /* loss scales */
    "lr",   "weight_decay",                                               /* optimizers */
};

/* An argument that nothing reads may be anything. */
static bool fits(Opcode code, const CallArg *a) {
    const AttrSpec *spec = find_spec(code, a->name);
    if (spec) return spec->type == ATTR_FLOAT ? is_number(a) : a->type == spec->type;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i] && !strcmp(numbers[i], a->name)) return is_number(a);
    return true;
}

static void check_call(Verifying *c, const char *what, const Call *call, Opcode code) {
    for (int i = 0; i < call->args.len && !verify_failed(c); i++) {
        const CallArg *a = &call->args.data[i];
        if (!fits(code, a)) verify_fail(c, "%s %s: argument %s has the wrong type", what, call->name, a->name);
        else if (a->call)
            check_call(c, "schedule", a->call, ir_opcode(arena_printf(c->scratch, "%s_rate", a->call->name)));
    }
}

void verify_calls(Verifying *c) {
    const Module *m = c->m;
    for (int i = 0; i < m->states.len; i++)
        if (m->states.data[i]->init.name) check_call(c, "initialiser", &m->states.data[i]->init, OP_NONE);
    for (int i = 0; i < m->trains.len; i++)
        if (m->trains.data[i].optimizer.name)
            check_call(c, "optimizer", &m->trains.data[i].optimizer, ir_opcode(m->trains.data[i].optimizer.name));
    if (m->loss_scale.name) check_call(c, "loss scale", &m->loss_scale, OP_NONE);
}
