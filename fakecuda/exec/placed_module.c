/* placed_module.c: a module in device memory: its functions decoded, its variables placed. */
#include "fakecuda/exec/inner.h"

#include <stdlib.h>

/* ---- where variables are ----------------------------------------------------------------------------------------- */

/* Global and constant ones in device memory, shared ones at offsets of a block's memory, the others in their call's.
 *
 * A shared variable of the module counts for the kernels that use it.  What functions other than kernels use is at the
 * same place for all kernels, since a function is decoded once. */

typedef void VisitFn(Function *f, const PtxVariable *v);

static void visit_operand(Function *f, const PtxOperand *o, VisitFn *visit) {
    if (o->variable) visit(f, o->variable);
    if (o->base) visit_operand(f, o->base, visit);
    for (int k = 0; k < o->count; k++) visit_operand(f, &o->items[k], visit);
}

static void visit_variables(Function *f, VisitFn *visit) {
    for (int k = 0; k < f->ptx->count; k++)
        for (int j = 0; j < f->ptx->code[k].operand_count; j++) visit_operand(f, &f->ptx->code[k].operands[j], visit);
}

static uint64_t align_up(uint64_t at, uint64_t to) { return to > 1 ? (at + to - 1) / to * to : at; }

/* Index of a shared variable of the module; -1: it is none. */
static int shared_index(const ExecModule *m, const PtxVariable *v) {
    bool ours = v >= m->ptx->variables && v < m->ptx->variables + m->ptx->variable_count;
    return ours && v->space == PTX_SHARED ? (int)(v - m->ptx->variables) : -1;
}

static bool is_dynamic(const PtxVariable *v) { return v->space == PTX_SHARED && v->is_extern; }

static void place_for_functions(Function *f, const PtxVariable *v) {
    ExecModule *m = f->module;
    int k = shared_index(m, v);
    if (k < 0 || is_dynamic(v) || m->addresses[k] != NO_PLACE) return;
    m->addresses[k] = align_up(m->shared_end, v->align);
    m->shared_end = (uint32_t)(m->addresses[k] + v->bytes);
}

static void need_shared_end(Function *f, uint64_t end) {
    if (end > f->static_shared) f->static_shared = (uint32_t)end;
}

static void place_for_entry(Function *f, const PtxVariable *v) {
    int k = shared_index(f->module, v);
    if (is_dynamic(v) && v->align > f->dynamic_align) f->dynamic_align = (uint32_t)v->align;
    if (k < 0 || is_dynamic(v) || f->module_places[k] != NO_PLACE) return;
    uint64_t at = f->module->addresses[k];
    if (at == NO_PLACE) at = align_up(f->static_shared, v->align);
    f->module_places[k] = at;
    need_shared_end(f, at + v->bytes);
}

static void place_dynamic(Function *f, const PtxVariable *v) {
    int k = shared_index(f->module, v);
    uint64_t align = f->dynamic_align > 16 ? f->dynamic_align : 16;
    if (k >= 0 && is_dynamic(v)) f->module_places[k] = align_up(f->static_shared, align);
}

/* .local, and .param of calls. */
static void place_locals(Function *f) {
    f->local_places = module_new(f->module, (size_t)f->ptx->local_count * sizeof(uint64_t));
    for (int k = 0; k < f->ptx->local_count; k++) {
        const PtxVariable *v = &f->ptx->locals[k];
        f->local_places[k] = NO_PLACE;
        uint32_t *end = v->space == PTX_LOCAL ? &f->local_bytes : v->space == PTX_PARAM ? &f->param_bytes : NULL;
        if (!end) continue;
        f->local_places[k] = align_up(*end, v->align);
        *end = (uint32_t)(f->local_places[k] + v->bytes);
    }
}

static void place_locals_shared(Function *f) {
    uint32_t *end = f->ptx->is_entry ? &f->static_shared : &f->module->shared_end;
    for (int k = 0; k < f->ptx->local_count; k++) {
        const PtxVariable *v = &f->ptx->locals[k];
        if (v->space != PTX_SHARED || is_dynamic(v)) continue;
        f->local_places[k] = align_up(*end, v->align);
        *end = (uint32_t)(f->local_places[k] + v->bytes);
    }
    if (!f->ptx->is_entry) return;
    uint64_t align = f->dynamic_align > 16 ? f->dynamic_align : 16;
    for (int k = 0; k < f->ptx->local_count; k++)
        if (is_dynamic(&f->ptx->locals[k])) f->local_places[k] = align_up(f->static_shared, align);
    visit_variables(f, place_dynamic);
}

/* Parameters of an entry: the block that the launch brings.  Of a function: its call's own memory, before its .param
 * variables. */
static void place_params(Function *f) {
    f->param_places = module_new(f->module, (size_t)f->ptx->param_count * sizeof(uint64_t));
    f->result_places = module_new(f->module, (size_t)f->ptx->result_count * sizeof(uint64_t));
    if (f->ptx->is_entry) {
        for (int k = 0; k < f->ptx->param_count; k++) f->param_places[k] = f->ptx->param_offsets[k];
        f->param_bytes = (uint32_t)align_up(f->ptx->param_bytes, 16);
        return;
    }
    const struct {
        const PtxVariable *list;
        int count;
        uint64_t *places;
    } both[] = {{f->ptx->params, f->ptx->param_count, f->param_places},
                {f->ptx->results, f->ptx->result_count, f->result_places}};
    for (int b = 0; b < 2; b++)
        for (int k = 0; k < both[b].count; k++) {
            both[b].places[k] = align_up(f->param_bytes, both[b].list[k].align);
            f->param_bytes = (uint32_t)(both[b].places[k] + both[b].list[k].bytes);
        }
}

static bool place_globals(ExecModule *m, char *message, size_t size) {
    for (int k = 0; k < m->ptx->variable_count; k++) {
        const PtxVariable *v = &m->ptx->variables[k];
        m->addresses[k] = NO_PLACE;
        if (v->space != PTX_GLOBAL && v->space != PTX_CONST) continue;
        if (v->is_extern) return snprintf(message, size, "%s is extern: nothing is linked here", v->name), false;
        m->addresses[k] = exec_alloc(m->memory, v->bytes ? v->bytes : 1);
        if (!m->addresses[k]) return snprintf(message, size, "no device memory for %s", v->name), false;
        uint64_t at = m->addresses[k] - m->memory->base;
        if (v->init) memcpy(m->memory->bytes + at, v->init, v->bytes);
        else memset(m->memory->bytes + at, 0, v->bytes);
        memset(m->memory->written + at, 1, v->bytes);
    }
    return true;
}

/* Initializers that are addresses. */
static bool fill_addresses(ExecModule *m, char *message, size_t size) {
    for (int k = 0; k < m->ptx->variable_count; k++) {
        const PtxVariable *v = &m->ptx->variables[k];
        for (int a = 0; a < v->address_count; a++) {
            const struct PtxInitAddress *init = &v->addresses[a];
            const PtxVariable *of = ptx_variable(m->ptx, init->of);
            int function = function_index(m, init->of);
            if (!of && function < 0) return snprintf(message, size, "%s: %s is not known", v->name, init->of), false;
            uint64_t value =
                of ? m->addresses[of - m->ptx->variables] : m->memory->base + WINDOW_CODE + 16 * (uint64_t)function;
            if (value == NO_PLACE)
                return snprintf(message, size, "%s: the address of %s is no constant", v->name, init->of), false;
            value += (uint64_t)init->offset;
            memcpy(m->memory->bytes + (m->addresses[k] - m->memory->base) + init->at, &value, 8);
        }
    }
    return true;
}

static bool calls_something(const PtxFunction *f) {
    for (int k = 0; k < f->count; k++)
        if (!strcmp(f->code[k].opcode, "call")) return true;
    return false;
}

static bool place_variables(ExecModule *m, char *message, size_t size) {
    if (!place_globals(m, message, size) || !fill_addresses(m, message, size)) return false;
    m->shared_end = SHARED_BASE;
    for (int k = 0; k < m->ptx->function_count; k++) {
        Function *f = &m->functions[k];
        f->module_places = m->addresses;
        f->calls = calls_something(f->ptx);
        place_params(f);
        place_locals(f);
        if (f->ptx->is_entry) continue;
        visit_variables(f, place_for_functions);
        place_locals_shared(f);
    }
    for (int k = 0; k < m->ptx->function_count; k++) {
        Function *f = &m->functions[k];
        if (!f->ptx->is_entry) continue;
        size_t bytes = (size_t)m->ptx->variable_count * sizeof(uint64_t);
        f->module_places = module_new(m, bytes);
        for (int v = 0; v < m->ptx->variable_count; v++)
            f->module_places[v] = m->ptx->variables[v].space == PTX_SHARED ? NO_PLACE : m->addresses[v];
        f->static_shared = f->calls ? m->shared_end : SHARED_BASE;
        visit_variables(f, place_for_entry);
        place_locals_shared(f);
    }
    return true;
}

enum { NOT_MEASURED, MEASURING, MEASURED };

/* .local of the deepest chain of calls; -1 where it may call itself. */
static void measure_stack(Function *f) {
    if (f->state != NOT_MEASURED) {
        if (f->state == MEASURING) f->recursive = true;
        return;
    }
    f->state = MEASURING;
    uint32_t deepest = 0;
    for (int k = 0; k < f->ptx->count; k++) {
        const PtxInstruction *i = &f->ptx->code[k];
        if (strcmp(i->opcode, "call")) continue;
        bool direct = false;
        for (int j = 0; j < i->operand_count; j++) {
            int at = i->operands[j].kind == PTX_OP_FUNCTION ? function_index(f->module, i->operands[j].name) : -1;
            if (at < 0) continue;
            direct = true;
            Function *callee = &f->module->functions[at];
            measure_stack(callee);
            if (callee->stack_bytes > deepest) deepest = callee->stack_bytes;
            if (callee->recursive) f->recursive = true;
        }
        if (!direct) f->recursive = true; /* whatever it calls */
    }
    f->stack_bytes = (uint32_t)align_up(f->local_bytes, 16) + deepest;
    f->state = MEASURED;
}

/* ---- the module -------------------------------------------------------------------------------------------------- */

typedef struct Allocated {
    struct Allocated *next;
    void *bytes;
} Allocated;

void *module_new(ExecModule *m, size_t bytes) {
    enum { ALIGN = 64 };
    Allocated *a = malloc(sizeof *a);
    size_t rounded = (bytes + ALIGN) / ALIGN * ALIGN;
    void *p = aligned_alloc(ALIGN, rounded);
    if (!a || !p) abort(); /* the host has no memory left: nothing that a test is about */
    *a = (Allocated){m->allocated, p};
    m->allocated = a;
    return memset(p, 0, rounded);
}

int function_index(const ExecModule *m, const char *name) {
    int declared = -1;
    for (int k = 0; name && k < m->ptx->function_count; k++) {
        if (strcmp(m->ptx->functions[k].name, name)) continue;
        if (!m->ptx->functions[k].is_declaration) return k;
        declared = k;
    }
    return declared;
}

ExecModule *exec_module_load(ExecMemory *memory, const AluContext *context, const char *ptx, size_t length,
                             char *message, size_t size) {
    ExecModule *m = calloc(1, sizeof *m);
    if (!m) return snprintf(message, size, "no memory"), NULL;
    m->memory = memory;
    m->context = *context;
    if (!(m->ptx = ptx_parse(ptx, length, message, size))) return exec_module_free(m), NULL;
    if (m->ptx->target > context->arch) {
        snprintf(message, size, "PTX for sm_%d cannot run on sm_%d", m->ptx->target, context->arch);
        return exec_module_free(m), NULL;
    }
    m->addresses = module_new(m, (size_t)m->ptx->variable_count * sizeof(uint64_t));
    for (int k = 0; k < m->ptx->variable_count; k++) m->addresses[k] = NO_PLACE;
    m->functions = module_new(m, (size_t)m->ptx->function_count * sizeof *m->functions);
    for (int k = 0; k < m->ptx->function_count; k++)
        m->functions[k] = (Function){.ptx = &m->ptx->functions[k], .module = m, .index = k};
    if (!place_variables(m, message, size)) return exec_module_free(m), NULL;
    for (int k = 0; k < m->ptx->function_count; k++) {
        if (m->ptx->functions[k].is_declaration) continue;
        if (!decode_function(&m->functions[k], message, size)) return exec_module_free(m), NULL;
        measure_stack(&m->functions[k]);
    }
    return m;
}

void exec_module_free(ExecModule *m) {
    if (!m) return;
    for (int k = 0; m->addresses && k < m->ptx->variable_count; k++) {
        PtxSpace space = m->ptx->variables[k].space;
        if ((space == PTX_GLOBAL || space == PTX_CONST) && m->addresses[k] != NO_PLACE)
            exec_release(m->memory, m->addresses[k]);
    }
    if (m->ptx) ptx_free(m->ptx);
    while (m->allocated) {
        Allocated *a = m->allocated;
        m->allocated = a->next;
        free(a->bytes);
        free(a);
    }
    free(m);
}

const PtxModule *exec_module_ptx(const ExecModule *m) { return m->ptx; }

uint64_t exec_module_variable(const ExecModule *m, const char *name, uint64_t *bytes) {
    const PtxVariable *v = ptx_variable(m->ptx, name);
    if (!v || (v->space != PTX_GLOBAL && v->space != PTX_CONST)) return 0;
    if (bytes) *bytes = v->bytes;
    return m->addresses[v - m->ptx->variables];
}

static int live_registers(const ExecModule *m, const Function *f, int depth) {
    int most = f->live_registers, deepest = 0;
    for (int k = 0; depth < 8 && k < f->ptx->count; k++) {
        const PtxInstruction *i = &f->ptx->code[k];
        for (int j = 0; j < i->operand_count && !strcmp(i->opcode, "call"); j++) {
            int at = i->operands[j].kind == PTX_OP_FUNCTION ? function_index(m, i->operands[j].name) : -1;
            int callee = at < 0 ? 0 : live_registers(m, &m->functions[at], depth + 1);
            if (callee > deepest) deepest = callee;
        }
    }
    return most + deepest;
}

bool exec_kernel_info(const ExecModule *m, const char *entry, ExecKernelInfo *out) {
    int at = function_index(m, entry);
    if (at < 0 || !m->ptx->functions[at].is_entry) return false;
    const Function *f = &m->functions[at];
    int threads = 1024;
    const int *required = f->ptx->required_threads, *most = f->ptx->max_threads;
    const int *bound = required[0] ? required : most[0] ? most : NULL;
    if (bound) threads = bound[0] * (bound[1] ? bound[1] : 1) * (bound[2] ? bound[2] : 1);
    *out = (ExecKernelInfo){.max_threads = threads < 1024 ? threads : 1024,
                            .static_shared = (int)(f->static_shared - SHARED_BASE),
                            .param_bytes = (int)f->ptx->param_bytes,
                            .local_bytes = (int)f->stack_bytes,
                            .registers = live_registers(m, f, 0)};
    return true;
}
