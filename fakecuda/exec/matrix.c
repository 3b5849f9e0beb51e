/* matrix.c: 8 x 8 matrices of 16-bit elements between shared memory and the lanes of a warp; products of matrices.
 *
 * Lane l holds of each matrix row l / 4, columns 2 * (l % 4) and the next; transposed: column l / 4, rows 2 * (l % 4)
 * and the next. */
#include "fakecuda/exec/inner.h"

typedef struct MatrixMove {
    PtxSpace space;
    Address address;
    Operand registers[4];
    int count;
    bool transposed;
} MatrixMove;

/* Where the low (k = 0) or high half of lane l's register is in the matrix. */
static void element(const MatrixMove *m, int l, int k, int *row, int *column) {
    int outer = l / 4, inner = 2 * (l % 4) + k;
    *row = m->transposed ? inner : outer;
    *column = m->transposed ? outer : inner;
}

/* Lanes 8j..8j+7 bring the addresses of the rows of matrix j. */
static bool row_bytes(Warp *w, const Inst *i, int j, int how, uint8_t *rows[8], const uint8_t value[8][16]) {
    const MatrixMove *m = i->more;
    uint64_t address[LANES], offset[8];
    address_lanes(w, &m->address, address);
    for (int r = 0; r < 8; r++) {
        int lane = 8 * j + r;
        offset[r] = address[lane];
        PtxSpace space = m->space == PTX_SPACE_NONE ? access_resolve(w, &offset[r]) : m->space;
        if (space != PTX_SHARED)
            return fault(w, i, lane, EXEC_ILLEGAL_ADDRESS, "row %d of matrix %d is not in shared memory: 0x%llx", r, j,
                         (unsigned long long)offset[r]),
                   false;
        rows[r] = access_shared(w, i, lane, offset[r], 16, how, value ? value[r] : NULL);
        if (!rows[r]) return false;
    }
    count_matrix_rows(w->block, offset);
    return true;
}

static Step run_ldmatrix(Warp *w, const Inst *i) {
    const MatrixMove *m = i->more;
    uint32_t out[4][LANES];
    for (int j = 0; j < m->count; j++) {
        uint8_t *rows[8];
        if (!row_bytes(w, i, j, ACCESS_READ, rows, NULL)) return STEP_FAULT;
        for (int l = 0; l < LANES; l++)
            for (int k = 0; k < 2; k++) {
                int row, column;
                element(m, l, k, &row, &column);
                memcpy((uint8_t *)&out[j][l] + 2 * k, rows[row] + 2 * column, 2);
            }
    }
    for (int j = 0; j < m->count; j++) memcpy(lanes_of(w, &m->registers[j]), out[j], sizeof out[j]);
    w->block->counters.shared_accesses++;
    return STEP_NEXT;
}

static Step run_stmatrix(Warp *w, const Inst *i) {
    const MatrixMove *m = i->more;
    for (int j = 0; j < m->count; j++) {
        uint8_t value[8][16], *rows[8];
        const uint32_t *in = lanes_of(w, &m->registers[j]);
        for (int l = 0; l < LANES; l++)
            for (int k = 0; k < 2; k++) {
                int row, column;
                element(m, l, k, &row, &column);
                memcpy(value[row] + 2 * column, (const uint8_t *)&in[l] + 2 * k, 2);
            }
        if (!row_bytes(w, i, j, ACCESS_WRITE, rows, value)) return STEP_FAULT;
        for (int r = 0; r < 8; r++) memcpy(rows[r], value[r], 16);
    }
    w->block->counters.shared_accesses++;
    return STEP_NEXT;
}

static Step run_movmatrix(Warp *w, const Inst *i) {
    uint16_t matrix[8][8];
    uint32_t out[LANES];
    memcpy(matrix, lanes_of(w, &i->src[0]), sizeof matrix);
    for (int l = 0; l < LANES; l++)
        out[l] = matrix[2 * (l % 4)][l / 4] | (uint32_t)matrix[2 * (l % 4) + 1][l / 4] << 16;
    memcpy(lanes_of(w, &i->dst[0]), out, sizeof out);
    return STEP_NEXT;
}

static bool decode_vector(Decoder *d, const PtxOperand *o, int count, bool result, Operand *to) {
    bool vector = o->kind == PTX_OP_VECTOR;
    if ((vector ? o->count : 1) != count) return refuse(d, "a vector of %d registers is needed", count);
    for (int k = 0; k < count; k++)
        if (!(result ? decode_result : decode_source)(d, vector ? &o->items[k] : o, 4, &to[k])) return false;
    return true;
}

static bool decode_matrix_move(Decoder *d, Inst *i, const PtxOperand *registers, const PtxOperand *address, bool load) {
    static const char *const known[] = {"sync", "aligned", "m8n8",   "x1",          "x2",
                                        "x4",   "trans",   "shared", "shared::cta", NULL};
    if (!only_modifiers(d, known)) return false;
    if (!ptx_has(d->ptx, "m8n8") || d->ptx->types[0] != PTX_B16) return refuse(d, "not supported");
    MatrixMove *m = module_new(d->function->module, sizeof *m);
    m->space = modifier_space(d);
    m->transposed = ptx_has(d->ptx, "trans");
    m->count = ptx_has(d->ptx, "x4") ? 4 : ptx_has(d->ptx, "x2") ? 2 : 1;
    i->sync = SYNC_FULL;
    i->more = m;
    return decode_vector(d, registers, m->count, load, m->registers) && decode_address(d, address, &m->address);
}

bool decode_ldmatrix(Decoder *d, Inst *i) {
    i->run = run_ldmatrix;
    if (d->ptx->operand_count != 2) return refuse(d, "it takes two operands");
    return decode_matrix_move(d, i, &d->ptx->operands[0], &d->ptx->operands[1], true);
}

bool decode_stmatrix(Decoder *d, Inst *i) {
    i->run = run_stmatrix;
    if (d->function->module->context.arch < 90) return refuse(d, "needs sm_90 or higher");
    if (d->ptx->operand_count != 2) return refuse(d, "it takes two operands");
    return decode_matrix_move(d, i, &d->ptx->operands[1], &d->ptx->operands[0], false);
}

bool decode_movmatrix(Decoder *d, Inst *i) {
    static const char *const known[] = {"sync", "aligned", "m8n8", "trans", NULL};
    if (!only_modifiers(d, known)) return false;
    if (d->ptx->operand_count != 2) return refuse(d, "it takes two operands");
    i->run = run_movmatrix;
    i->sync = SYNC_FULL;
    return decode_result(d, &d->ptx->operands[0], 4, &i->dst[0]) &&
           decode_source(d, &d->ptx->operands[1], 4, &i->src[0]);
}

/* ---- mma ---- */

enum { MOST_REGISTERS = 8 };

typedef struct Mma {
    AluMma alu;
    Operand d[MOST_REGISTERS], a[MOST_REGISTERS], b[MOST_REGISTERS], c[MOST_REGISTERS];
} Mma;

static Step run_mma(Warp *w, const Inst *i) {
    const Mma *m = i->more;
    uint32_t *d[MOST_REGISTERS];
    const uint32_t *a[MOST_REGISTERS], *b[MOST_REGISTERS], *c[MOST_REGISTERS];
    for (int k = 0; k < m->alu.d_regs; k++) d[k] = lanes_of(w, &m->d[k]);
    for (int k = 0; k < m->alu.a_regs; k++) a[k] = lanes_of(w, &m->a[k]);
    for (int k = 0; k < m->alu.b_regs; k++) b[k] = lanes_of(w, &m->b[k]);
    for (int k = 0; k < m->alu.c_regs; k++) c[k] = lanes_of(w, &m->c[k]);
    m->alu.run(&w->block->module->context, &m->alu, d, a, b, c);
    w->block->counters.tensor_ops++;
    w->block->counters.tensor_flops += 2ull * (uint64_t)m->alu.m * (uint64_t)m->alu.n * (uint64_t)m->alu.k;
    return STEP_NEXT;
}

bool decode_mma(Decoder *d, Inst *i) {
    Mma *m = module_new(d->function->module, sizeof *m);
    const char *why = NULL;
    int found = alu_find_mma(&d->function->module->context, d->ptx->full, &m->alu, &why);
    if (found) return refuse(d, "%s", found == -1 || !why ? "not supported" : why);
    if (d->ptx->operand_count != 4) return refuse(d, "it takes four operands");
    if (m->alu.d_regs > MOST_REGISTERS || m->alu.a_regs > MOST_REGISTERS || m->alu.b_regs > MOST_REGISTERS ||
        m->alu.c_regs > MOST_REGISTERS)
        return refuse(d, "not supported");
    i->run = run_mma;
    i->sync = SYNC_FULL;
    i->more = m;
    const PtxOperand *o = d->ptx->operands;
    return decode_vector(d, &o[0], m->alu.d_regs, true, m->d) && decode_vector(d, &o[1], m->alu.a_regs, false, m->a) &&
           decode_vector(d, &o[2], m->alu.b_regs, false, m->b) && decode_vector(d, &o[3], m->alu.c_regs, false, m->c);
}
