/* mma.c: mma.sync: which forms there are, and where the lanes hold the elements of the matrices (PTX ISA, "Matrix
 * Fragments for mma").
 *
 * Lane l, g = l / 4, q = l % 4, element i of the lane's registers, lower half first:
 *   16-bit A: row g + 8 * (i / 2 % 2), k = 2q + i % 2 + 8 * (i / 4)    B: k = 2q + i % 2 + 8 * (i / 2), column g
 *   tf32   A: row g + 8 * (i % 2), k = q + 4 * (i / 2)                 B: k = q + 4 * i, column g
 *   C, D: row g + 8 * (i / 2), column 2q + i % 2 */
#include "fakecuda/alu/tensor_core.h"

typedef struct MmaForm {
    const char *name;
    int arch, k, type, sum;
} MmaForm;

static const MmaForm forms[] = {
    {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 75, 8, PTX_F16, PTX_F32},
    {"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", 75, 8, PTX_F16, PTX_F16},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 80, 16, PTX_F16, PTX_F32},
    {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", 80, 16, PTX_F16, PTX_F16},
    {"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", 80, 8, PTX_BF16, PTX_F32},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 80, 16, PTX_BF16, PTX_F32},
    {"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", 80, 4, PTX_TF32, PTX_F32},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 80, 8, PTX_TF32, PTX_F32},
};

/* Two numbers of 16 bits side by side. */
static void spread(uint32_t word, uint32_t *to) {
    to[0] = word & 0xffff;
    to[1] = word >> 16;
}

static void gather_a(const AluMma *m, const uint32_t *const a[], uint32_t to[TENSOR_MAX_K][TENSOR_M]) {
    for (int r = 0; r < m->a_regs; ++r)
        for (int l = 0; l < ALU_LANES; ++l) {
            int q = l % 4, k = 2 * q + 8 * (r / 2), row = l / 4 + 8 * (r % 2);
            if (m->a_type == PTX_TF32) to[q + 4 * (r / 2)][row] = a[r][l];
            else to[k][row] = a[r][l] & 0xffff, to[k + 1][row] = a[r][l] >> 16;
        }
}

static void gather_b(const AluMma *m, const uint32_t *const b[], uint32_t to[TENSOR_MAX_K][TENSOR_N]) {
    for (int r = 0; r < m->b_regs; ++r)
        for (int l = 0; l < ALU_LANES; ++l) {
            int g = l / 4, q = l % 4, k = 2 * q + 8 * r;
            if (m->b_type == PTX_TF32) to[q + 4 * r][g] = b[r][l];
            else to[k][g] = b[r][l] & 0xffff, to[k + 1][g] = b[r][l] >> 16;
        }
}

static void gather_c(const AluMma *m, const uint32_t *const c[], uint32_t to[TENSOR_M][TENSOR_N]) {
    for (int half = 0; half < 2; ++half)
        for (int l = 0; l < ALU_LANES; ++l) {
            uint32_t *at = &to[l / 4 + 8 * half][2 * (l % 4)];
            if (m->c_type == PTX_F16) spread(c[half][l], at);
            else at[0] = c[2 * half][l], at[1] = c[2 * half + 1][l];
        }
}

static void scatter_d(const AluMma *m, uint32_t from[TENSOR_M][TENSOR_N], uint32_t *const d[]) {
    for (int half = 0; half < 2; ++half)
        for (int l = 0; l < ALU_LANES; ++l) {
            const uint32_t *at = &from[l / 4 + 8 * half][2 * (l % 4)];
            if (m->d_type == PTX_F16) d[half][l] = at[0] | at[1] << 16;
            else d[2 * half][l] = at[0], d[2 * half + 1][l] = at[1];
        }
}

static void run_mma(const AluContext *c, const AluMma *m, uint32_t *const d[], const uint32_t *const a[],
                    const uint32_t *const b[], const uint32_t *const acc[]) {
    int length = c->arch >= 90 ? 16 : 8; /* of a block, in 16-bit numbers */
    if (m->a_type == PTX_TF32) length /= 2;
    TensorTask task;
    task.k = m->k, task.block = length < m->k ? length : m->k, task.bits = c->arch >= 90 ? 25 : 24;
    task.factor = m->a_type, task.sum = m->c_type;
    gather_a(m, a, task.a);
    gather_b(m, b, task.b);
    gather_c(m, acc, task.c);
    if (c->exact) tensor_multiply_exact(&task);
    else tensor_multiply(&task);
    scatter_d(m, task.c, d);
}

int alu_find_mma(const AluContext *c, const char *full, AluMma *out, const char **why) {
    *why = NULL;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; ++i) {
        const MmaForm *f = &forms[i];
        if (strcmp(f->name, full) != 0) continue;
        if (f->arch > c->arch) {
            *why = "needs sm_80 or higher";
            return -2;
        }
        int per_register = f->type == PTX_TF32 ? 1 : 2, sums = f->sum == PTX_F16 ? 2 : 4;
        *out = (AluMma){.m = TENSOR_M,
                        .n = TENSOR_N,
                        .k = f->k,
                        .a_regs = (uint8_t)(f->k / 2 / per_register),
                        .b_regs = (uint8_t)(f->k / 4 / per_register),
                        .c_regs = (uint8_t)sums,
                        .d_regs = (uint8_t)sums,
                        .run = run_mma,
                        .a_type = f->type,
                        .b_type = f->type,
                        .c_type = f->sum,
                        .d_type = f->sum};
        return 0;
    }
    if (strncmp(full, "mma.", 4) != 0) return -1;
    *why = "the stand-in knows mma.sync of m16n8k8 and m16n8k16 for f16 and bf16, and of m16n8k4 and m16n8k8 for tf32";
    return -2;
}
