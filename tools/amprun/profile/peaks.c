/* peaks.c: see profile.h. */
#include "tools/amprun/profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/processor.h"
#include "runtime/device/cpu/level.h"
#include "runtime/device/cpu/pool.h"
#include "runtime/device/cpu/product/product.h"
#include "runtime/device/cuda/cuda_driver.h"
#include "tools/roofline/gpus.h"
#include "tools/roofline/program_time.h"

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

static amp_status measure_copy(amp_pool *pool, Peaks *out, amp_error *err) {
    char *arrays[2] = {malloc(COPY_BYTES), malloc(COPY_BYTES)};
    if (arrays[0] && arrays[1]) {
        memset(arrays[1], 1, COPY_BYTES); /* pages that were never written are all the same one */
        out->bytes = 2.0 * COPY_BYTES / best_of(pool, copy_chunk, arrays, COPY_BYTES / CHUNK);
    }
    free(arrays[0]);
    free(arrays[1]);
    return out->bytes > 0 ? AMP_OK : amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to measure how fast memory is");
}

/* ---- a product in the cache -------------------------------------------------------------------------------------- */

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

static double measure_products(amp_pool *pool, const amp_product_kernels *kernels, float *operands) {
    Products products = {kernels, operands};
    const int64_t tasks = (int64_t)TASKS_PER_THREAD * amp_pool_threads(pool);
    const double units = (double)tasks * REPEATS * TILE * AMP_PRODUCT_COLS * UNITS;
    const double terms = units * (kernels->operand == AMP_DT_BF16 ? 2 : 1); /* a unit of bf16 is two of them */
    return 2 * terms / best_of(pool, multiply, &products, tasks);
}

static float *make_operands(amp_error *err) {
    const size_t bytes = sizeof(float) * UNITS * 2 * TILE;
    float *operands = aligned_alloc(64, bytes);
    if (operands) memset(operands, 0, bytes);
    else amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to measure products");
    return operands;
}

/* The kernels of both types that a session of this level has. */
static amp_status measure_both_products(amp_pool *pool, const amp_cpu_level *level, Peaks *out,
                                        const amp_product_kernels *kernels[2], amp_error *err) {
    kernels[0] = amp_product_select(AMP_DT_F32, level->product, err);
    kernels[1] = kernels[0] ? amp_product_select(AMP_DT_BF16, level->product, err) : NULL;
    if (!kernels[1]) return AMP_UNSUPPORTED;
    float *operands = make_operands(err);
    if (!operands) return AMP_OUT_OF_MEMORY;
    out->flops[AMP_INSTRUCTION_FMA] = out->flops[AMP_INSTRUCTION_PLAIN] = measure_products(pool, kernels[0], operands);
    out->flops[AMP_INSTRUCTION_MMA_BF16] = measure_products(pool, kernels[1], operands);
    free(operands);
    return AMP_OK;
}

/* How fast bf16 are in the other one of AVX-512's two ways, where |used| is one of them and the machine has both. */
static void say_other_way(amp_pool *pool, const amp_product_kernels *used, Peaks *out) {
    const amp_product_kernels *by_f32 = amp_product_select(AMP_DT_BF16, "avx512", NULL),
                              *by_bf16 = amp_product_select(AMP_DT_BF16, "avx512_bf16", NULL),
                              *other = used == by_f32    ? by_bf16
                                       : used == by_bf16 ? by_f32
                                                         : NULL;
    float *operands = other ? make_operands(NULL) : NULL;
    char rate[16];
    const size_t length = strlen(out->source);
    if (operands)
        snprintf(out->source + length, sizeof out->source - length, " (by %s %sFLOP/s)", other->name,
                 scaled(measure_products(pool, other, operands), rate));
    free(operands);
}

static amp_status measure_all_products(amp_pool *pool, const Args *a, Peaks *out, amp_error *err) {
    const amp_cpu_level *level;
    const amp_product_kernels *kernels[2];
    char f32[16], bf16[16];
    AMP_TRY(amp_cpu_level_choose(amp_cpu_features(), a->cpu.isa, NULL, &level, err));
    AMP_TRY(measure_both_products(pool, level, out, kernels, err));
    snprintf(out->source, sizeof out->source, "products on %d thread%s: %sFLOP/s f32 by %s, %sFLOP/s bf16 by %s",
             amp_pool_threads(pool), amp_pool_threads(pool) == 1 ? "" : "s",
             scaled(out->flops[AMP_INSTRUCTION_FMA], f32), kernels[0]->name,
             scaled(out->flops[AMP_INSTRUCTION_MMA_BF16], bf16), kernels[1]->name);
    say_other_way(pool, kernels[1], out);
    return AMP_OK;
}

/* ---- the machine ------------------------------------------------------------------------------------------------- */

static amp_status measure(amp_pool *pool, const Args *a, Peaks *out, amp_error *err) {
    const amp_cpu_level *level;
    const amp_product_kernels *kernels[2];
    char copy[16], f32[16], bf16[16];
    AMP_TRY(amp_cpu_level_choose(amp_cpu_features(), a->cpu.isa, NULL, &level, err));
    AMP_TRY(measure_copy(pool, out, err));
    AMP_TRY(measure_both_products(pool, level, out, kernels, err));
    snprintf(out->source, sizeof out->source, "measured on %d thread%s, %s: %sB/s copied, %sFLOP/s f32, %sFLOP/s bf16",
             amp_pool_threads(pool), amp_pool_threads(pool) == 1 ? "" : "s", level->name, scaled(out->bytes, copy),
             scaled(out->flops[AMP_INSTRUCTION_FMA], f32), scaled(out->flops[AMP_INSTRUCTION_MMA_BF16], bf16));
    return AMP_OK;
}

typedef amp_status (*Measure)(amp_pool *pool, const Args *a, Peaks *out, amp_error *err);

static amp_status measure_cpu(const Args *a, Measure what, Peaks *out, amp_error *err) {
    const amp_allocator allocator = amp_allocator_or_default(NULL);
    amp_pool *pool;
    AMP_TRY(amp_pool_create((int32_t)a->threads, &allocator, &pool, err));
    amp_status status = amp_pool_begin(pool, amp_pool_threads(pool), err);
    if (!status) {
        status = what(pool, a, out, err);
        amp_pool_end(pool);
    }
    amp_pool_destroy(pool);
    return status;
}

static void take_gpu(const Gpu *gpu, Peaks *out) {
    out->bytes = 1e9 * gpu->copy;
    out->flops[AMP_INSTRUCTION_PLAIN] = out->flops[AMP_INSTRUCTION_FMA] = 1e12 * gpu->fp32;
    out->flops[AMP_INSTRUCTION_MMA_F16] = 1e12 * gpu->fp16;
    out->flops[AMP_INSTRUCTION_MMA_BF16] = 1e12 * gpu->bf16;
    out->flops[AMP_INSTRUCTION_MMA_TF32] = 1e12 * gpu->tf32;
}

static amp_status look_up_gpu(const Args *a, Peaks *out, amp_error *err) {
    CudaDriver driver;
    amp_cuda_device_info device;
    AMP_TRY(amp_cuda_driver_open(&driver, err));
    const amp_status status = amp_cuda_device_find(&driver, a->cuda.index, &device, err);
    amp_cuda_driver_close(&driver);
    if (status) return status;
    const bool is_stand_in = strstr(device.name, "(fakecuda)") != NULL; /* it is named after a GPU, and is none */
    const Gpu *gpu = is_stand_in ? NULL : gpu_of_device(device.name);
    if (gpu) take_gpu(gpu, out);
    if (gpu) snprintf(out->source, sizeof out->source, "not measured: those of %s by %s", gpu->full, gpu->source);
    else snprintf(out->source, sizeof out->source, "not measured, and not known of %s", device.name);
    return AMP_OK;
}

amp_status peaks_find(const Args *a, Peaks *out, amp_error *err) {
    *out = (Peaks){0};
    return a->device && !strcmp(a->device, "cuda") ? look_up_gpu(a, out, err) : measure_cpu(a, measure, out, err);
}

amp_status peaks_of_products(const Args *a, Peaks *out, amp_error *err) {
    *out = (Peaks){0};
    return measure_cpu(a, measure_all_products, out, err);
}
