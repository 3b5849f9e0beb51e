/* control.c: branches, calls, the end of threads. */
#include "fakecuda/exec/inner.h"

#include <stdlib.h>

/* ---- branches ---- */

static Step run_bra(Warp *w, const Inst *i) { return strand_branch(w, w->active, i->target, i->join); }

static Step run_bra_uni(Warp *w, const Inst *i) {
    uint32_t rest = w->strand->active & ~w->active;
    if (rest)
        return fault(w, i, __builtin_ctz(rest), EXEC_LAUNCH_FAILED,
                     "bra.uni: lanes 0x%08x do not branch with the others", rest);
    w->strand->pc = i->target;
    return STEP_JUMPED;
}

bool decode_bra(Decoder *d, Inst *i) {
    static const char *const known[] = {"uni", NULL};
    if (!only_modifiers(d, known)) return false;
    if (d->ptx->operand_count != 1 || d->ptx->operands[0].kind != PTX_OP_LABEL) return refuse(d, "it goes to a label");
    i->target = d->ptx->operands[0].index;
    i->run = ptx_has(d->ptx, "uni") ? run_bra_uni : run_bra;
    return true;
}

typedef struct BranchTable {
    Operand index;
    const PtxOperand *labels;
    int count;
} BranchTable;

/* One target at a time: its lanes part from the others, which come here again. */
static Step run_brx(Warp *w, const Inst *i) {
    const BranchTable *t = i->more;
    int lane = __builtin_ctz(w->active);
    uint64_t index = lane_value(w, &t->index, lane);
    if (index >= (uint64_t)t->count)
        return fault(w, i, lane, EXEC_ILLEGAL_INSTRUCTION, "index %llu of a table of %d", (unsigned long long)index,
                     t->count);
    uint32_t taken = 0, rest;
    FOR_LANES(l, w->active) taken |= (uint32_t)(lane_value(w, &t->index, (int)l) == index) << l;
    rest = w->active & ~taken;
    Strand *s = w->strand, others = *s;
    if (s->active != w->active && rest)
        return fault(w, i, lane, EXEC_ILLEGAL_INSTRUCTION,
                     "a brx.idx with a guard and several targets is not supported");
    if (rest) {
        Join *j = s->join;
        if (i->join >= 0 && !(j && !j->callee && j->frame == s->frame && j->pc == i->join))
            s->join = strand_join(w, i->join, s->active, NULL);
        others = *s;
        others.active = rest;
        s->active = taken;
        s->pc = t->labels[index].index;
        strand_add(w, &others);
        return STEP_JUMPED;
    }
    return strand_branch(w, taken, t->labels[index].index, i->join);
}

bool decode_brx(Decoder *d, Inst *i) {
    const PtxOperand *o = d->ptx->operands;
    if (d->ptx->operand_count != 2 || o[1].kind != PTX_OP_LIST || !o[1].count || o[1].items[0].kind != PTX_OP_LABEL)
        return refuse(d, "a list of labels is needed");
    BranchTable *t = module_new(d->function->module, sizeof *t);
    *t = (BranchTable){.labels = o[1].items, .count = o[1].count};
    i->run = run_brx;
    i->more = t;
    return decode_source(d, &o[0], 4, &t->index);
}

/* ---- the end of threads ---- */

static Step run_exit(Warp *w, const Inst *i) {
    (void)i;
    strand_leave(w, w->active);
    return STEP_JUMPED;
}

static Step run_ret(Warp *w, const Inst *i);

bool decode_exit(Decoder *d, Inst *i) {
    (void)d;
    i->run = run_exit;
    return true;
}

bool decode_ret(Decoder *d, Inst *i) {
    i->run = d->function->ptx->is_entry ? run_exit : run_ret;
    return true;
}

static Step run_trap(Warp *w, const Inst *i) {
    return fault(w, i, __builtin_ctz(w->active), EXEC_LAUNCH_FAILED, "the kernel stops itself");
}

bool decode_trap(Decoder *d, Inst *i) {
    (void)d;
    i->run = run_trap;
    return true;
}

/* ---- calls ---- */

typedef struct Argument {
    uint64_t place; /* in the caller's .param memory */
    uint64_t bytes;
} Argument;

typedef struct CallSite {
    Operand target; /* indirect: bytes != 0 */
    int callee;     /* index; -1: indirect or a built-in */
    Argument *arguments, *results;
    int argument_count, result_count;
} CallSite;

static uint8_t *lane_params(const Frame *f, uint32_t lane) {
    return f->params + (uint64_t)lane * f->function->param_bytes;
}

static Step call_function(Warp *w, const Inst *i, uint32_t lanes, int index) {
    const CallSite *c = i->more;
    Strand *s = w->strand;
    const Function *f = &w->block->module->functions[index];
    if (!f->code)
        return fault(w, i, __builtin_ctz(lanes), EXEC_ILLEGAL_INSTRUCTION, "%s is declared only: its code is not here",
                     f->ptx->name);
    if (f->ptx->param_count != c->argument_count || f->ptx->result_count != c->result_count)
        return fault(w, i, __builtin_ctz(lanes), EXEC_ILLEGAL_INSTRUCTION, "%s has %d parameters and %d results",
                     f->ptx->name, f->ptx->param_count, f->ptx->result_count);
    uint32_t base = s->frame->local_base + (s->frame->function->local_bytes + 15) / 16 * 16;
    if (base + f->local_bytes > w->block->local_bytes)
        return fault(w, i, __builtin_ctz(lanes), EXEC_ILLEGAL_ADDRESS,
                     "stack overflow: local memory of %u bytes is full", w->block->local_bytes);
    Frame *frame = frame_new(w, f);
    frame->caller = s->frame;
    frame->call = i;
    frame->local_base = base;
    FOR_LANES(l, lanes) {
        for (int k = 0; k < c->argument_count; k++) {
            uint64_t bytes =
                f->ptx->params[k].bytes < c->arguments[k].bytes ? f->ptx->params[k].bytes : c->arguments[k].bytes;
            memcpy(lane_params(frame, l) + f->param_places[k], lane_params(s->frame, l) + c->arguments[k].place, bytes);
        }
        if (f->local_bytes) memset(w->local_written + (uint64_t)l * w->block->local_bytes + base, 0, f->local_bytes);
    }
    uint32_t rest = s->active & ~lanes;
    Join *j = strand_join(w, s->pc + 1, s->active, NULL);
    if (rest) { /* they call something else, or nothing, and wait after the call */
        Strand others = *s;
        others.active = rest;
        others.join = j;
        strand_add(w, &others);
    }
    s->join = j;
    s->active = lanes;
    s->join = strand_join(w, s->pc + 1, lanes, frame);
    s->frame = frame;
    s->pc = 0;
    return STEP_JUMPED;
}

static Step run_ret(Warp *w, const Inst *i) {
    (void)i;
    Frame *frame = w->strand->frame;
    const Function *f = frame->function;
    const CallSite *c = frame->call->more;
    FOR_LANES(l, w->active)
    for (int k = 0; k < c->result_count; k++) {
        uint64_t bytes =
            f->ptx->results[k].bytes < c->results[k].bytes ? f->ptx->results[k].bytes : c->results[k].bytes;
        memcpy(lane_params(frame->caller, l) + c->results[k].place, lane_params(frame, l) + f->result_places[k], bytes);
    }
    return strand_return(w, w->active);
}

static Step run_call(Warp *w, const Inst *i) {
    return call_function(w, i, w->active, ((const CallSite *)i->more)->callee);
}

/* One function at a time: lanes that call another come here again. */
static Step run_call_indirect(Warp *w, const Inst *i) {
    const CallSite *c = i->more;
    int lane = __builtin_ctz(w->active);
    uint64_t target = lane_value(w, &c->target, lane), at = target - (w->block->memory->base + WINDOW_CODE);
    if (at % 16 || at / 16 >= (uint64_t)w->block->module->ptx->function_count)
        return fault(w, i, lane, EXEC_ILLEGAL_ADDRESS, "calls 0x%llx, which is no function",
                     (unsigned long long)target);
    uint32_t lanes = 0;
    FOR_LANES(l, w->active) lanes |= (uint32_t)(lane_value(w, &c->target, (int)l) == target) << l;
    return call_function(w, i, lanes, (int)(at / 16));
}

/* ---- functions that the driver brings ---- */

static void read_text(Warp *w, const Inst *i, int lane, const Argument *a, char *to, size_t room) {
    uint64_t address;
    size_t n = 0;
    memcpy(&address, lane_params(w->strand->frame, (uint32_t)lane) + a->place, 8);
    while (n + 1 < room) {
        const uint8_t *c = access_bytes(w, i, lane, PTX_SPACE_NONE, address + n, 1, ACCESS_READ, NULL);
        if (!c || !*c) break;
        to[n++] = (char)*c;
    }
    to[n] = 0;
}

static Step run_assert(Warp *w, const Inst *i) {
    const CallSite *c = i->more;
    int lane = __builtin_ctz(w->active);
    char text[4][200] = {"", "", "", ""};
    uint32_t line = 0;
    for (int k = 0; k < 4; k++)
        if (k != 2) read_text(w, i, lane, &c->arguments[k], text[k], sizeof text[k]);
    memcpy(&line, lane_params(w->strand->frame, (uint32_t)lane) + c->arguments[2].place, 4);
    return fault(w, i, lane, EXEC_ASSERT, "%s:%u: %s: assertion `%s` failed", text[1], line, text[3], text[0]);
}

/* What kernels print is not kept; the result is the number of arguments, which is not used. */
static Step run_vprintf(Warp *w, const Inst *i) {
    const CallSite *c = i->more;
    FOR_LANES(l, w->active)
    if (c->result_count) memset(lane_params(w->strand->frame, l) + c->results[0].place, 0, c->results[0].bytes);
    return STEP_NEXT;
}

/* ---- decoding ---- */

static bool decode_arguments(Decoder *d, const PtxOperand *list, Argument **to, int *count) {
    *to = module_new(d->function->module, (size_t)list->count * sizeof **to);
    *count = list->count;
    for (int k = 0; k < list->count; k++) {
        const PtxVariable *v = list->items[k].variable;
        if (!v || v->space != PTX_PARAM) return refuse(d, "only .param variables can be passed");
        if (!decode_variable(d, v, &(*to)[k].place)) return false;
        (*to)[k].bytes = v->bytes;
    }
    return true;
}

bool decode_call(Decoder *d, Inst *i) {
    static const char *const known[] = {"uni", NULL};
    if (!only_modifiers(d, known)) return false;
    CallSite *c = module_new(d->function->module, sizeof *c);
    const PtxOperand *o = d->ptx->operands, *end = o + d->ptx->operand_count;
    c->callee = -1;
    i->more = c;
    if (o < end && o->kind == PTX_OP_LIST && !decode_arguments(d, o++, &c->results, &c->result_count)) return false;
    if (o == end) return refuse(d, "no function is named");
    const PtxOperand *function = o++;
    if (o < end && o->kind == PTX_OP_LIST && !decode_arguments(d, o++, &c->arguments, &c->argument_count)) return false;
    if (function->kind == PTX_OP_REGISTER) {
        i->run = run_call_indirect;
        return decode_source(d, function, 8, &c->target);
    }
    if (!function->name) return refuse(d, "no function is named");
    int at = function_index(d->function->module, function->name);
    bool declared = at < 0 || d->function->module->ptx->functions[at].is_declaration;
    if (declared && !strcmp(function->name, "vprintf")) return i->run = run_vprintf, true;
    if (declared && !strcmp(function->name, "__assertfail"))
        return i->run = run_assert, c->argument_count >= 4 || refuse(d, "too few arguments");
    if (at < 0) return refuse(d, "%s is no function", function->name);
    c->callee = at;
    i->run = run_call;
    return true;
}
