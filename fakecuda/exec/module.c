/* module.c: a module in device memory: its functions decoded, its variables placed. */
#include "fakecuda/exec/places.h"

#include <stdlib.h>

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
