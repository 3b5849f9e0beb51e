/* inspect_cpu.c: what this machine can do at most: a copy in memory, and the inner loop of a session's products on
 * operands that stay in the cache, on the threads of a session. */
#include <stdlib.h>
#include <string.h>

#include "amp/inspect.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/processor.h"
#include "runtime/device/cpu/level.h"
#include "runtime/device/cpu/pool.h"
#include "runtime/device/cpu/product/product.h"

enum { TRIES = 5 };

/* Seconds of the quickest try. */
static double best_of(amp_pool *pool, amp_pool_task task, void *ctx, int64_t count) {
    double best = 0;
    for (int i = 0; i < TRIES; i++) {
        const double start = amp_seconds();
        amp_pool_run(pool, task, ctx, count);
        const double seconds = amp_seconds() - start;
        if (!i || seconds < best) best = seconds;
    }
    return best > 0 ? best : 1e-9;
}

/* ---- a copy in memory -------------------------------------------------------------------------------------------- */

enum { COPY_BYTES = 128 << 20, CHUNK = 1 << 20 };

static void copy_chunk(void *arrays, int64_t i, int32_t thread) {
    char *const *array = arrays;
    (void)thread;
    memcpy(array[0] + i * CHUNK, array[1] + i * CHUNK, CHUNK);
}

static amp_status measure_copy(amp_pool *pool, amp_cpu_rates *out, amp_error *err) {
    char *arrays[2] = {amp_alloc(NULL, COPY_BYTES), amp_alloc(NULL, COPY_BYTES)};
    if (arrays[0] && arrays[1]) {
        memset(arrays[1], 1, COPY_BYTES); /* pages that were never written are all the same one */
        out->bytes = 2.0 * COPY_BYTES / best_of(pool, copy_chunk, arrays, COPY_BYTES / CHUNK);
    }
    for (int i = 0; i < 2; i++) amp_free(NULL, arrays[i], arrays[i] ? COPY_BYTES : 0);
    return out->bytes > 0 ? AMP_OK : amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to measure how fast memory is");
}

/* ---- products in the cache --------------------------------------------------------------------------------------- */

enum { UNITS = 256, TILE = AMP_PRODUCT_ROWS, REPEATS = 100, TASKS_PER_THREAD = 16 };

typedef struct Products {
    const amp_product_kernels *kernels;
    float *operands; /* A [UNITS / 32][TILE][32], then B [UNITS][32]: zeros, of both types */
} Products;

static void multiply(void *products, int64_t i, int32_t thread) {
    const Products *p = products;
    _Alignas(64) float c[TILE * AMP_PRODUCT_COLS];
    const amp_product_tile tile = {.a = p->operands,
                                   .b = p->operands + UNITS * TILE,
                                   .c = c,
                                   .a_block_stride = (int64_t)TILE * (p->kernels->operand == AMP_DT_BF16 ? 16 : 32),
                                   .k = UNITS,
                                   .rows = TILE};
    (void)i, (void)thread;
    for (int r = 0; r < REPEATS; r++) p->kernels->tile(&tile);
}

static double measure_product(amp_pool *pool, const amp_product_kernels *kernels, float *operands) {
    Products products = {kernels, operands};
    const int64_t tasks = (int64_t)TASKS_PER_THREAD * amp_pool_threads(pool);
    const double units = (double)tasks * REPEATS * TILE * AMP_PRODUCT_COLS * UNITS;
    const double terms = units * (kernels->operand == AMP_DT_BF16 ? 2 : 1); /* a unit of bf16 is two of them */
    return 2 * terms / best_of(pool, multiply, &products, tasks);
}

/* AVX-512 has two ways to multiply bf16: the one that is not |used|, if this machine has both. */
static const amp_product_kernels *other_way(const amp_product_kernels *used) {
    const amp_product_kernels *by_f32 = amp_product_select(AMP_DT_BF16, "avx512", NULL),
                              *by_bf16 = amp_product_select(AMP_DT_BF16, "avx512_bf16", NULL);
    return used == by_f32 ? by_bf16 : used == by_bf16 ? by_f32 : NULL;
}

/* Of the kernels that a session of this level has. */
static amp_status measure_products(amp_pool *pool, const char *isa, amp_cpu_rates *out, amp_error *err) {
    enum { BYTES = sizeof(float) * UNITS * 2 * TILE, ALIGN = 64 };
    const amp_product_kernels *f32 = amp_product_select(AMP_DT_F32, isa, err),
                              *bf16 = f32 ? amp_product_select(AMP_DT_BF16, isa, err) : NULL;
    if (!bf16) return AMP_UNSUPPORTED;
    const amp_product_kernels *other = other_way(bf16);
    float *operands = amp_alloc_zeroed_aligned(NULL, BYTES, ALIGN);
    if (!operands) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to measure products");
    out->f32_by = f32->name;
    out->bf16_by = bf16->name;
    out->other_by = other ? other->name : NULL;
    out->f32 = measure_product(pool, f32, operands);
    out->bf16 = measure_product(pool, bf16, operands);
    if (other) out->other = measure_product(pool, other, operands);
    amp_free_aligned(NULL, operands, BYTES, ALIGN);
    return AMP_OK;
}

/* ---- the machine ------------------------------------------------------------------------------------------------- */

static amp_status measure(const amp_measure_options *o, const amp_cpu_level *level, amp_cpu_rates *out,
                          amp_error *err) {
    const amp_allocator allocator = amp_allocator_or_default(NULL);
    amp_pool *pool;
    AMP_TRY(amp_pool_create(o->threads, &allocator, &pool, err));
    out->threads = amp_pool_threads(pool);
    amp_status status = amp_pool_begin(pool, out->threads, err);
    if (!status) {
        if (o->memory) status = measure_copy(pool, out, err);
        if (!status) status = measure_products(pool, level->product, out, err);
        amp_pool_end(pool);
    }
    amp_pool_destroy(pool);
    return status;
}

amp_status amp_cpu_measure(const amp_measure_options *options, amp_cpu_rates *out, amp_error *err) {
    amp_measure_options o;
    const amp_cpu_level *level = NULL;
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_cpu_measure: out is NULL");
    *out = (amp_cpu_rates){.processors = amp_pool_processors()};
    AMP_TRY(amp_options_read(&o, sizeof o, options, "amp_measure_options", err));
    if (o.threads < 0) return amp_fail(err, AMP_INVALID_ARGUMENT, "threads %d: must be at least 0", o.threads);
    const amp_status status = amp_cpu_level_choose(amp_cpu_features(), o.isa, o.model, &level, err);
    out->level = level ? level->name : NULL;
    return status ? status : measure(&o, level, out, err);
}
