/* product.c: one product. Operands are copied from the device, all of it is done at once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rounding.h"
#include "fakecuda/alu/tensor_core.h"
#include "fakecuda/cublaslt/stand_in.h"

size_t type_bytes(int type) { return type == LT_F32 ? 4 : type == LT_F16 || type == LT_BF16 ? 2 : 0; }

/* ---- elements ---------------------------------------------------------------------------------------------------- */

static uint32_t bits_at(const struct CublasLtMatrix *l, const unsigned char *from, uint64_t row, uint64_t column) {
    uint32_t bits = 0;
    const size_t size = type_bytes(l->type);
    memcpy(&bits, from + (column * (uint64_t)l->ld + row) * size, size);
    return bits;
}

static float value_of(int type, uint32_t bits) {
    float value;
    if (type == LT_F16) return amp_f16_to_f32((uint16_t)bits);
    if (type == LT_BF16) return amp_bf16_to_f32((uint16_t)bits);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* NaN has the device's bits. */
static uint32_t bits_of(int type, float value) {
    uint32_t bits;
    if (type == LT_F16) return alu_f32_to_f16(value);
    if (type == LT_BF16) return alu_f32_to_bf16(value);
    memcpy(&bits, &value, sizeof bits);
    return value == value ? bits : ALU_NAN_F32;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

typedef struct Matrices { /* one of the batch, on the host */
    unsigned char *a, *b, *c, *d;
} Matrices;

static uint32_t factor(const Operand *o, const unsigned char *from, uint64_t k, uint64_t line, bool k_is_row) {
    const bool rows = k_is_row != o->transposed;
    return bits_at(&o->layout, from, rows ? k : line, rows ? line : k);
}

/* Steps of k from |first| to |end|, added to task->c in ascending order; outside of the matrices all is 0. */
static void add_steps(const Product *p, const Matrices *x, TensorTask *task, uint64_t row, uint64_t column,
                      uint64_t first, uint64_t end) {
    for (uint64_t from = first; from < end; from += (uint64_t)task->k) {
        memset(task->a, 0, sizeof task->a);
        memset(task->b, 0, sizeof task->b);
        for (uint64_t i = 0; i < (uint64_t)task->k && from + i < p->k; i++) {
            for (uint64_t j = 0; j < TENSOR_M && row + j < p->m; j++)
                task->a[i][j] = factor(&p->a, x->a, from + i, row + j, false);
            for (uint64_t j = 0; j < TENSOR_N && column + j < p->n; j++)
                task->b[i][j] = factor(&p->b, x->b, from + i, column + j, true);
        }
        tensor_multiply(task);
    }
}

static void tensor_chain(const Product *p, const Matrices *x, uint64_t row, uint64_t column, uint64_t first,
                         uint64_t end, float sums[TENSOR_M][TENSOR_N]) {
    const int type = p->a.layout.type, block = (p->arch >= 90 ? 16 : 8) / (type == LT_F32 ? 2 : 1);
    TensorTask task = {.k = type == LT_F32 ? 8 : 16,
                       .block = block,
                       .bits = p->arch >= 90 ? 25 : 24,
                       .factor = type == LT_F16    ? PTX_F16
                                 : type == LT_BF16 ? PTX_BF16
                                                   : PTX_TF32,
                       .sum = PTX_F32};
    add_steps(p, x, &task, row, column, first, end);
    memcpy(sums, task.c, sizeof task.c);
}

/* f32 by multiply-adds. */
static void fma_chain(const Product *p, const Matrices *x, uint64_t row, uint64_t column, uint64_t first, uint64_t end,
                      float sums[TENSOR_M][TENSOR_N]) {
    memset(sums, 0, sizeof(float[TENSOR_M][TENSOR_N]));
    for (uint64_t k = first; k < end; k++)
        for (uint64_t i = 0; i < TENSOR_M && row + i < p->m; i++)
            for (uint64_t j = 0; j < TENSOR_N && column + j < p->n; j++)
                sums[i][j] = fmaf(value_of(LT_F32, factor(&p->a, x->a, k, row + i, false)),
                                  value_of(LT_F32, factor(&p->b, x->b, k, column + j, true)), sums[i][j]);
}

/* A tile of sums, in one chain or in two. */
static void sum_tile(const Product *p, const Matrices *x, uint64_t row, uint64_t column,
                     float sums[TENSOR_M][TENSOR_N]) {
    const bool by_fma = p->compute == LT_COMPUTE_32F && p->a.layout.type == LT_F32;
    void (*const chain)(const Product *, const Matrices *, uint64_t, uint64_t, uint64_t, uint64_t,
                        float[TENSOR_M][TENSOR_N]) = by_fma ? fma_chain : tensor_chain;
    const uint64_t half = (p->k / 2 + 15) / 16 * 16;
    const uint64_t cut = p->algorithm == SPLIT || p->plant.kind == PLANT_ORDER ? half : p->k;
    float others[TENSOR_M][TENSOR_N];
    chain(p, x, row, column, 0, cut, sums);
    if (cut == p->k) return;
    chain(p, x, row, column, cut, p->k, others);
    for (int i = 0; i < TENSOR_M; i++)
        for (int j = 0; j < TENSOR_N; j++) sums[i][j] += others[i][j];
}

/* Rounding to even gives the one of the two neighbours whose lowest bit is 0. */
static bool is_tie(int type, float value) {
    const uint32_t bits = bits_of(type, value);
    const float rounded = value_of(type, bits), up = value_of(type, bits + 1), down = value_of(type, bits - 1);
    return rounded != value && bits && (value - rounded == up - value || value - rounded == down - value);
}

static void finish_element(const Product *p, const Matrices *x, const unsigned char *bias, uint64_t row,
                           uint64_t column, float sum) {
    const struct CublasLtMatrix *l = &p->d.layout;
    const size_t size = type_bytes(l->type);
    float value = p->alpha * sum;
    if (p->beta != 0) value += p->beta * value_of(p->c.layout.type, bits_at(&p->c.layout, x->c, row, column));
    if (p->bias) {
        uint32_t bits = 0;
        memcpy(&bits, bias + row * size, size);
        value += value_of(l->type, bits);
    }
    if (p->algorithm == WRONG && row + column == 0) value += 1 + value * 0.5f;
    uint32_t bits = bits_of(l->type, value);
    if (p->plant.kind == PLANT_TIE && is_tie(l->type, value)) bits ^= 1;
    memcpy(x->d + (column * (uint64_t)l->ld + row) * size, &bits, size);
}

static void multiply(const Product *p, const Matrices *x, const unsigned char *bias) {
    for (uint64_t row = 0; row < p->m; row += TENSOR_M)
        for (uint64_t column = 0; column < p->n; column += TENSOR_N) {
            float sums[TENSOR_M][TENSOR_N];
            sum_tile(p, x, row, column, sums);
            for (uint64_t i = 0; i < TENSOR_M && row + i < p->m; i++)
                for (uint64_t j = 0; j < TENSOR_N && column + j < p->n; j++)
                    finish_element(p, x, bias, row + i, column + j, sums[i][j]);
        }
}

/* ---- on the device ----------------------------------------------------------------------------------------------- */

static uint64_t bytes_of(const Operand *o) {
    const struct CublasLtMatrix *l = &o->layout;
    return l->rows && l->columns ? ((l->columns - 1) * (uint64_t)l->ld + l->rows) * type_bytes(l->type) : 0;
}

static uint64_t address_of(const Operand *o, int32_t batch) {
    return o->address + (uint64_t)(batch * o->layout.stride) * type_bytes(o->layout.type);
}

static unsigned char *must_alloc(uint64_t bytes) {
    unsigned char *memory = malloc(bytes + 1);
    if (!memory) abort();
    return memory;
}

/* Whether |batch| of this run has a wrong element, and which: counted as the caller of a row-major D does. */
static bool is_planted(const Product *p, int32_t batch, uint64_t run, uint64_t *at) {
    const uint64_t all = p->m * p->n;
    *at = p->plant.number * 2654435761U % (all * (uint64_t)p->d.layout.batch);
    if (p->plant.kind == PLANT_LATER) return *at %= all, !batch && run >= p->plant.number;
    if (p->plant.kind == PLANT_ROWS) return *at = p->plant.number * p->m, !batch && p->n > p->plant.number;
    if (p->plant.kind != PLANT_VALUE && p->plant.kind != PLANT_ULP) return false;
    return *at / all == (uint64_t)batch && (*at %= all, true);
}

static void plant(const Product *p, int32_t batch, uint64_t run, const Matrices *x) {
    const struct CublasLtMatrix *l = &p->d.layout;
    uint64_t at;
    if (!is_planted(p, batch, run, &at)) return;
    const uint64_t row = at % p->m, column = at / p->m, size = type_bytes(l->type);
    uint32_t bits = bits_at(l, x->d, row, column);
    const float value = value_of(l->type, bits);
    bits = p->plant.kind == PLANT_ULP ? bits ^ 1 : bits_of(l->type, value + 1 + value * 0.5F);
    memcpy(x->d + (column * (uint64_t)l->ld + row) * size, &bits, size);
}

/* What is between columns is the caller's. */
static bool write_columns(const Product *p, int32_t batch, void *context, const unsigned char *from) {
    const uint64_t size = type_bytes(p->d.layout.type), line = (uint64_t)p->d.layout.ld * size;
    const uint64_t to = address_of(&p->d, batch);
    for (uint64_t i = 0; i < p->n; i++)
        if (!fakecuda_write(context, to + i * line, from + i * line, p->m * size)) return false;
    return true;
}

/* False: the work is gone, which |p| may not be asked then. */
static bool run_one(const Product *p, int32_t batch, uint64_t run, void *context, const Matrices *x,
                    unsigned char *bias) {
    if (!fakecuda_read(context, address_of(&p->a, batch), x->a, bytes_of(&p->a)) ||
        !fakecuda_read(context, address_of(&p->b, batch), x->b, bytes_of(&p->b)))
        return false;
    if (p->beta != 0 && !fakecuda_read(context, address_of(&p->c, batch), x->c, bytes_of(&p->c))) return false;
    if (p->bias && !fakecuda_read(context, p->bias, bias, p->m * type_bytes(p->d.layout.type))) return false;
    multiply(p, x, bias);
    plant(p, batch, run, x);
    return write_columns(p, batch, context, x->d);
}

bool product_run(void *product, void *context) {
    const Product p = *(const Product *)product;
    const Matrices x = {must_alloc(bytes_of(&p.a)), must_alloc(bytes_of(&p.b)), must_alloc(bytes_of(&p.c)),
                        must_alloc(bytes_of(&p.d))};
    unsigned char *bias = must_alloc(p.m * sizeof(float));
    const uint64_t run = fault_run(p.algorithm);
    bool done = true;
    for (int32_t i = 0; i < p.d.layout.batch && done; i++) done = run_one(&p, i, run, context, &x, bias);
    free(x.a), free(x.b), free(x.c), free(x.d), free(bias);
    return done;
}

void product_drop(void *product) { free(product); }
