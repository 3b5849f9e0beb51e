/* decode.c: from an instruction of the PTX to one that runs: who decodes which opcode; functions. */
#include "fakecuda/exec/inner.h"

#include <stdlib.h>

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
    {"nanosleep", decode_nothing, KIND_CONTROL},
    {"griddepcontrol", decode_nothing, KIND_CONTROL},
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

/* Hints, which change nothing that can be seen. */
bool decode_nothing(Decoder *d, Inst *i) {
    if (strstr(d->ptx->full, "tensormap")) return refuse(d, "not supported");
    i->run = run_nothing;
    return true;
}

/* ---- functions ---- */

static const struct Opcode *find_opcode(const char *name) {
    for (size_t k = 0; k < sizeof opcodes / sizeof *opcodes; k++)
        if (!strcmp(opcodes[k].name, name)) return &opcodes[k];
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

static bool place_registers(Function *f, char *message, size_t size) {
    f->registers = module_new(f->module, (size_t)f->ptx->register_count * sizeof *f->registers);
    for (int k = 0; k < f->ptx->register_count; k++) {
        int bits = register_bits(f->ptx->registers[k].type), bytes = bits > 32 ? 8 : 4;
        if (bits > 64) {
            snprintf(message, size, "function %s: registers of 128 bits (%s) are not supported", f->ptx->name,
                     f->ptx->registers[k].name);
            return false;
        }
        f->registers[k] = (Operand){BASE_REGISTERS, (uint8_t)bytes, (uint8_t)bits, f->register_bytes};
        f->register_bytes += (uint32_t)(bytes * LANES);
    }
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
    f->live_registers = liveness_registers(f->ptx);
    return true;
}
