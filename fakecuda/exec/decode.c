/* decode.c: from an instruction of the PTX to one that runs: who decodes which opcode; functions; modifiers and
 * operands.
 */
#include "fakecuda/exec/inner.h"

#include <stddef.h>
#include <stdlib.h>

/* ---- modifiers and operands -------------------------------------------------------------------------------------- */

/* Operands: registers, immediates, special registers, variables, addresses. */

/* ---- modifiers ---- */

static bool in_list(const char *word, const char *const *list) {
    for (; *list; list++)
        if (!strcmp(*list, word)) return true;
    return false;
}

static bool is_type(const char *word) {
    for (int t = PTX_NONE + 1; t < PTX_TYPE_COUNT; t++)
        if (!strcmp(ptx_type_name((PtxType)t), word)) return true;
    return false;
}

bool only_modifiers(Decoder *d, const char *const *known) {
    for (int i = 0; i < d->ptx->modifier_count; i++) {
        const char *word = d->ptx->modifiers[i];
        if (!in_list(word, known) && !is_type(word)) return refuse(d, "what .%s means here is not known", word);
    }
    return true;
}

const char *one_modifier(const Decoder *d, const char *const *known) {
    for (int i = 0; i < d->ptx->modifier_count; i++)
        for (const char *const *k = known; *k; k++)
            if (!strcmp(d->ptx->modifiers[i], *k)) return *k;
    return NULL;
}

PtxSpace modifier_space(const Decoder *d) {
    static const struct {
        const char *name;
        PtxSpace space;
    } spaces[] = {
        {"param", PTX_PARAM},   {"param::entry", PTX_PARAM}, {"param::func", PTX_PARAM},      {"global", PTX_GLOBAL},
        {"shared", PTX_SHARED}, {"shared::cta", PTX_SHARED}, {"shared::cluster", PTX_SHARED}, {"local", PTX_LOCAL},
        {"const", PTX_CONST}};
    for (size_t k = 0; k < sizeof spaces / sizeof *spaces; k++)
        if (ptx_has(d->ptx, spaces[k].name)) return spaces[k].space;
    return PTX_SPACE_NONE;
}

/* ---- operands ---- */

bool decode_constant(Decoder *d, uint64_t bits, int bytes, Operand *to) {
    Function *f = d->function;
    if (bytes == 4) bits = (uint32_t)bits;
    for (int k = 0; k < f->constant_count; k++) {
        *to = f->constant_list[k].operand;
        if (f->constant_list[k].bits == bits && to->bytes == bytes) return true;
    }
    if (f->constant_count == f->constant_room) {
        int room = f->constant_room ? 2 * f->constant_room : 32;
        struct Constant *grown = realloc(f->constant_list, (size_t)room * sizeof *grown);
        if (!grown) return refuse(d, "no memory");
        f->constant_list = grown;
        f->constant_room = room;
    }
    *to = (Operand){BASE_CONSTANTS, (uint8_t)bytes, (uint8_t)(8 * bytes), f->constant_bytes};
    f->constant_bytes += (uint32_t)(bytes * LANES);
    f->constant_list[f->constant_count++] = (struct Constant){bits, *to};
    return true;
}

static uint64_t float_bits(const PtxOperand *o, int bytes) {
    uint64_t bits = o->bits;
    if (bytes == 8 && !o->is_double) {
        uint32_t low = (uint32_t)bits;
        float single;
        memcpy(&single, &low, 4);
        double wide = single;
        memcpy(&bits, &wide, 8);
    } else if (bytes == 4 && o->is_double) {
        double wide;
        memcpy(&wide, &bits, 8);
        float single = (float)wide;
        uint32_t low;
        memcpy(&low, &single, 4);
        bits = low;
    }
    return bits;
}

static Operand special_lanes(int special, int bytes) {
    size_t at = bytes == 8 ? offsetof(WarpLanes, special64) + (size_t)special * LANES * 8
                           : offsetof(WarpLanes, special) + (size_t)special * LANES * 4;
    return (Operand){BASE_WARP, (uint8_t)bytes, (uint8_t)(8 * bytes), (uint32_t)at};
}

/* The place of a variable as a number; dynamic shared memory of a function is known only to the launch. */
static bool variable_operand(Decoder *d, const PtxVariable *v, int64_t offset, int bytes, Operand *to) {
    uint64_t place;
    if (!decode_variable(d, v, &place)) return false;
    if (v->space == PTX_LOCAL) return refuse(d, "an address of local memory can only be moved or accessed");
    if (place != NO_PLACE) return decode_constant(d, place + (uint64_t)offset, bytes, to);
    if (offset) return refuse(d, "an offset to dynamic shared memory in a function that is no entry: not supported");
    size_t at = bytes == 8 ? offsetof(WarpLanes, dynamic_shared64) : offsetof(WarpLanes, dynamic_shared);
    *to = (Operand){BASE_WARP, (uint8_t)bytes, (uint8_t)(8 * bytes), (uint32_t)at};
    return true;
}

static bool function_operand(Decoder *d, const PtxOperand *o, Operand *to) {
    int at = function_index(d->function->module, o->name);
    if (at < 0) return refuse(d, "%s is neither a variable nor a function", o->name);
    return decode_constant(d, d->function->module->memory->base + WINDOW_CODE + 16 * (uint64_t)at, 8, to);
}

bool decode_source(Decoder *d, const PtxOperand *o, int bytes, Operand *to) {
    switch (o->kind) {
    case PTX_OP_REGISTER:
        *to = d->function->registers[o->index];
        if (bytes && to->bytes != bytes)
            return refuse(d, "%s has %d bits", d->function->ptx->registers[o->index].name, to->width);
        return true;
    case PTX_OP_INTEGER: return decode_constant(d, o->bits, bytes ? bytes : 4, to);
    case PTX_OP_FLOAT:
        if (!bytes) bytes = o->is_double ? 8 : 4;
        return decode_constant(d, float_bits(o, bytes), bytes, to);
    case PTX_OP_SPECIAL: *to = special_lanes(o->index, bytes ? bytes : 4); return true;
    case PTX_OP_VARIABLE:
        return o->variable ? variable_operand(d, o->variable, o->offset, bytes ? bytes : 8, to)
                           : function_operand(d, o, to);
    case PTX_OP_FUNCTION: return function_operand(d, o, to);
    default: return refuse(d, "an operand of a kind that is not expected here");
    }
}

bool decode_result(Decoder *d, const PtxOperand *o, int bytes, Operand *to) {
    if (o->kind == PTX_OP_SINK) {
        *to = (Operand){BASE_WARP, (uint8_t)(bytes ? bytes : 8), 64, offsetof(WarpLanes, sink)};
        return true;
    }
    if (o->kind != PTX_OP_REGISTER) return refuse(d, "a result that is no register");
    return decode_source(d, o, bytes, to);
}

bool decode_variable(Decoder *d, const PtxVariable *v, uint64_t *place) {
    const Function *f = d->function;
    const PtxModule *module = f->module->ptx;
    const struct {
        const PtxVariable *list;
        int count;
        const uint64_t *places;
    } all[] = {{f->ptx->params, f->ptx->param_count, f->param_places},
               {f->ptx->results, f->ptx->result_count, f->result_places},
               {f->ptx->locals, f->ptx->local_count, f->local_places},
               {module->variables, module->variable_count, f->module_places}};
    for (int k = 0; k < 4; k++) {
        if (v < all[k].list || v >= all[k].list + all[k].count) continue;
        *place = all[k].places[v - all[k].list];
        if (*place == NO_PLACE && !(v->space == PTX_SHARED && v->is_extern && !f->ptx->is_entry))
            return refuse(d, "%s has no place in memory", v->name);
        return true;
    }
    return refuse(d, "%s is declared nowhere", v->name);
}

bool decode_address(Decoder *d, const PtxOperand *o, Address *to) {
    *to = (Address){.offset = o->offset};
    const PtxOperand *base = o->base;
    if (o->kind != PTX_OP_ADDRESS || !base) return refuse(d, "an operand that is no address");
    if (base->kind == PTX_OP_INTEGER) {
        to->offset += (int64_t)base->bits;
        return true;
    }
    const PtxVariable *v = o->variable ? o->variable : base->variable;
    if (base->kind != PTX_OP_VARIABLE || !v) return decode_source(d, base, 0, &to->base);
    to->space = v->space;
    to->offset += base->offset;
    uint64_t place;
    if (!decode_variable(d, v, &place)) return false;
    if (place == NO_PLACE) return variable_operand(d, v, 0, 8, &to->base);
    to->offset += (int64_t)place;
    return true;
}

void address_lanes(const Warp *w, const Address *a, uint64_t to[LANES]) {
    uint64_t offset = (uint64_t)a->offset;
    if (a->space == PTX_LOCAL) offset += w->strand->frame->local_base;
    if (a->base.bytes == 8) {
        const uint64_t *base = lanes_of(w, &a->base);
        for (int l = 0; l < LANES; l++) to[l] = base[l] + offset;
    } else if (a->base.bytes == 4) {
        const uint32_t *base = lanes_of(w, &a->base);
        for (int l = 0; l < LANES; l++) to[l] = base[l] + offset;
    } else {
        for (int l = 0; l < LANES; l++) to[l] = offset;
    }
}

/* ---- opcodes and functions --------------------------------------------------------------------------------------- */

/* Who decodes what; every other opcode is arithmetic. */
static const struct Opcode {
    const char *name;
    DecodeFn *decode;
    Kind kind;
} opcodes[] = {
    {"mov", decode_mov, KIND_MOVE},
    {"cvta", decode_cvta, KIND_MOVE},
    {"isspacep", decode_isspacep, KIND_PRED},
    {"ld", decode_ld, KIND_LOAD},
    {"st", decode_st, KIND_STORE},
    {"atom", decode_atom, KIND_ATOMIC},
    {"red", decode_atom, KIND_ATOMIC},
    {"bra", decode_bra, KIND_CONTROL},
    {"brx", decode_brx, KIND_CONTROL},
    {"call", decode_call, KIND_CONTROL},
    {"ret", decode_ret, KIND_CONTROL},
    {"exit", decode_exit, KIND_CONTROL},
    {"trap", decode_trap, KIND_CONTROL},
    {"brkpt", decode_trap, KIND_CONTROL},
    {"bar", decode_bar, KIND_BARRIER},
    {"barrier", decode_bar, KIND_BARRIER},
    {"membar", decode_fence, KIND_BARRIER},
    {"fence", decode_fence, KIND_BARRIER},
    {"shfl", decode_shfl, KIND_WARP},
    {"vote", decode_vote, KIND_WARP},
    {"match", decode_match, KIND_WARP},
    {"activemask", decode_activemask, KIND_WARP},
    {"redux", decode_redux, KIND_WARP},
    {"elect", decode_elect, KIND_WARP},
    {"ldmatrix", decode_ldmatrix, KIND_LOAD},
    {"stmatrix", decode_stmatrix, KIND_STORE},
    {"movmatrix", decode_movmatrix, KIND_WARP},
    {"mma", decode_mma, KIND_TENSOR},
    {"cp", decode_cp, KIND_ASYNC},
    {"mbarrier", decode_mbarrier, KIND_ASYNC},
    {"prefetch", decode_nothing, KIND_LOAD},
    {"prefetchu", decode_nothing, KIND_LOAD},
    {"discard", decode_nothing, KIND_STORE},
    {"applypriority", decode_nothing, KIND_LOAD},
    {"nanosleep", decode_pause, KIND_CONTROL},
    {"griddepcontrol", decode_griddepcontrol, KIND_CONTROL},
    {"pmevent", decode_nothing, KIND_CONTROL},
    {"createpolicy", decode_later, KIND_LOAD},
    {"ldu", decode_later, KIND_LOAD},
    {"wgmma", decode_later, KIND_TENSOR},
    {"wmma", decode_later, KIND_TENSOR},
    {"tcgen05", decode_later, KIND_TENSOR},
    {"setmaxnreg", decode_later, KIND_CONTROL},
    {"mapa", decode_later, KIND_MOVE},
    {"getctarank", decode_later, KIND_MOVE},
    {"multimem", decode_later, KIND_ATOMIC},
    {"tensormap", decode_later, KIND_ASYNC},
    {"alloca", decode_later, KIND_MOVE},
    {"stacksave", decode_later, KIND_MOVE},
    {"stackrestore", decode_later, KIND_MOVE},
    {"tex", decode_later, KIND_LOAD},
    {"suld", decode_later, KIND_LOAD},
    {"sust", decode_later, KIND_STORE},
};

bool refuse(Decoder *d, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(d->why, sizeof d->why, format, args);
    va_end(args);
    return false;
}

bool decode_later(Decoder *d, Inst *i) {
    (void)i;
    return refuse(d, "not supported");
}

static Step run_refused(Warp *w, const Inst *i) {
    return fault(w, i, -1, EXEC_ILLEGAL_INSTRUCTION, "this instruction is not known: %s", (const char *)i->more);
}

static Step run_nothing(Warp *w, const Inst *i) {
    (void)w, (void)i;
    return STEP_NEXT;
}

static Step run_pause(Warp *w, const Inst *i) {
    (void)w, (void)i;
    return STEP_PAUSE;
}

/* A loop that waits for another block does not go on for as long as its warp may run. */
bool decode_pause(Decoder *d, Inst *i) {
    (void)d;
    i->run = run_pause;
    return true;
}

/* Hints, which change nothing that can be seen. */
bool decode_nothing(Decoder *d, Inst *i) {
    if (strstr(d->ptx->full, "tensormap")) return refuse(d, "not supported");
    i->run = run_nothing;
    return true;
}

/* ---- functions ---- */

static const struct Opcode *find_opcode(const char *name) {
    for (size_t k = 0; k < sizeof opcodes / sizeof *opcodes; k++)
        if (*opcodes[k].name == *name && !strcmp(opcodes[k].name, name)) return &opcodes[k];
    return NULL;
}

static void decode_one(Function *f, const PtxInstruction *ptx, Inst *i) {
    Decoder d = {.function = f, .ptx = ptx};
    const struct Opcode *opcode = find_opcode(ptx->opcode);
    i->ptx = ptx;
    i->kind = (uint8_t)(opcode ? opcode->kind : KIND_INT);
    i->target = i->join = -1;
    if (ptx->guard >= 0) {
        i->guarded = true;
        i->guard_negated = ptx->guard_negated;
        i->guard = f->registers[ptx->guard];
    }
    if ((opcode ? opcode->decode : decode_alu)(&d, i)) return;
    char *why = module_new(f->module, sizeof d.why);
    memcpy(why, d.why, sizeof d.why);
    i->alu = NULL;
    i->sync = SYNC_NONE;
    i->refused = true;
    i->run = run_refused;
    i->more = why;
}

static int register_bits(PtxType t) { return t == PTX_PRED ? 1 : 8 * ptx_type_bytes(t); }

/* ---- places of registers: those that do not live at the same time share one ---- */

typedef struct Places {
    Function *f;
    const int *first, *last;
    int *by_first;         /* registers in the order of |first| */
    int *live, live_count; /* those that have a place */
    uint32_t *free[2];     /* places of 4 and of 8 bytes a lane that are free */
    int free_count[2];
} Places;

/* Those that were needed for the last time before instruction |at|.  Not at it: its results must not be where its
 * operands are, since some instructions write the one before they have read the other. */
static void give_back(Places *p, int at) {
    int kept = 0;
    for (int k = 0; k < p->live_count; k++) {
        const int r = p->live[k], wide = p->f->registers[r].bytes == 8;
        if (p->last[r] >= at) p->live[kept++] = r;
        else p->free[wide][p->free_count[wide]++] = p->f->registers[r].offset;
    }
    p->live_count = kept;
}

static uint32_t take_place(Places *p, int bytes) {
    const int wide = bytes == 8;
    if (p->free_count[wide]) return p->free[wide][--p->free_count[wide]];
    const uint32_t place = p->f->register_bytes;
    p->f->register_bytes += (uint32_t)(bytes * LANES);
    return place;
}

static void sort_by_first(Places *p, int count) {
    const int n = p->f->ptx->count;
    int *at = calloc((size_t)n + 2, sizeof *at);
    if (!at) abort(); /* the host has no memory left */
    for (int r = 0; r < count; r++) at[p->first[r] + 1]++;
    for (int k = 0; k <= n; k++) at[k + 1] += at[k];
    for (int r = 0; r < count; r++) p->by_first[at[p->first[r]]++] = r;
    free(at);
}

/* By linear scan: Poletto and Sarkar 1999.  A lane's value is changed by that lane alone, on its own way through the
 * function: so lanes that have parted do not disturb one another. */
static void share_places(Function *f, const int *first, const int *last) {
    const int count = f->ptx->register_count;
    int *room = calloc(2 * (size_t)count + 1, sizeof *room);
    uint32_t *places = calloc(2 * (size_t)count + 1, sizeof *places);
    if (!room || !places) abort(); /* the host has no memory left */
    Places p = {.f = f, .first = first, .last = last, .by_first = room, .live = room + count};
    p.free[0] = places;
    p.free[1] = places + count;
    sort_by_first(&p, count);
    for (int k = 0; k < count; k++) {
        const int r = p.by_first[k];
        give_back(&p, first[r]);
        f->registers[r].offset = take_place(&p, f->registers[r].bytes);
        p.live[p.live_count++] = r;
    }
    free(room);
    free(places);
}

static bool place_registers(Function *f, char *message, size_t size) {
    const int count = f->ptx->register_count;
    f->registers = module_new(f->module, (size_t)count * sizeof *f->registers);
    for (int k = 0; k < count; k++) {
        int bits = register_bits(f->ptx->registers[k].type), bytes = bits > 32 ? 8 : 4;
        if (bits > 64) {
            snprintf(message, size, "function %s: registers of 128 bits (%s) are not supported", f->ptx->name,
                     f->ptx->registers[k].name);
            return false;
        }
        f->registers[k] = (Operand){BASE_REGISTERS, (uint8_t)bytes, (uint8_t)bits, 0};
    }
    int *first = calloc(2 * (size_t)count + 1, sizeof *first);
    if (!first) abort(); /* the host has no memory left */
    f->live_registers = liveness(f->ptx, first, first + count);
    share_places(f, first, first + count);
    free(first);
    f->carry = (Operand){BASE_REGISTERS, 4, 1, f->register_bytes};
    f->register_bytes += 4 * LANES;
    return true;
}

static void make_constants(Function *f) {
    f->constants = module_new(f->module, f->constant_bytes + 64);
    for (int k = 0; k < f->constant_count; k++) {
        const struct Constant *c = &f->constant_list[k];
        uint8_t *to = f->constants + c->operand.offset;
        for (int l = 0; l < LANES; l++) memcpy(to + l * c->operand.bytes, &c->bits, c->operand.bytes);
    }
    free(f->constant_list);
    f->constant_list = NULL;
}

bool decode_function(Function *f, char *message, size_t size) {
    if (!place_registers(f, message, size)) return false;
    int count = f->ptx->count;
    f->code = module_new(f->module, (size_t)(count + 1) * sizeof *f->code);
    int *joins = module_new(f->module, (size_t)(count + 1) * sizeof *joins);
    cfg_post_dominators(f->ptx, joins);
    for (int k = 0; k < count; k++) {
        decode_one(f, &f->ptx->code[k], &f->code[k]);
        f->code[k].join = joins[k];
    }
    /* The end of the text is a return too. */
    PtxInstruction *end = module_new(f->module, sizeof *end);
    *end = (PtxInstruction){.text = "ret",
                            .line = count ? f->ptx->code[count - 1].line : f->ptx->line,
                            .guard = -1,
                            .opcode = "ret",
                            .full = "ret"};
    decode_one(f, end, &f->code[count]);
    f->code[count].join = -1;
    f->count = count + 1;
    make_constants(f);
    return true;
}
