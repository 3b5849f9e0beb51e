/* product_select.c: which instruction sets this machine has, and so which kernels run on it. */
#include <string.h>

#include "base/error.h"
#include "runtime/device/cpu/product/kernels.h"
#include "runtime/device/cpu/product/product.h"

/* ---- what the machine has ---------------------------------------------------------------------------------------- */

/* Asks the compiler's run-time library, which reads cpuid and xgetbv. */

#if defined(__x86_64__)

unsigned amp_cpu_features(void) {
    unsigned features = 0;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v3")) features |= AMP_CPU_X86_64_V3;
    if (__builtin_cpu_supports("x86-64-v4")) features |= AMP_CPU_X86_64_V4;
    if (__builtin_cpu_supports("avx512bf16")) features |= AMP_CPU_AVX512_BF16;
    return features;
}

#else

unsigned amp_cpu_features(void) { return 0; }

#endif

/* ---- the kernels for it ------------------------------------------------------------------------------------------ */

/* Slowest first; each level includes those before it. */
static const struct Level {
    const char *isa;
    unsigned needs; /* AMP_CPU_* */
    const amp_product_kernels *f32, *bf16;
} levels[] = {
    {"portable", 0, &amp_product_portable_f32, &amp_product_portable_bf16},
#if defined(__x86_64__)
    {"avx2", AMP_CPU_X86_64_V3, &amp_product_avx2_f32, &amp_product_avx2_bf16},
    {"avx512", AMP_CPU_X86_64_V4, &amp_product_avx512_f32, &amp_product_avx512_bf16_widened},
    {"avx512_bf16", AMP_CPU_X86_64_V4 | AMP_CPU_AVX512_BF16, &amp_product_avx512_f32, &amp_product_avx512_bf16},
#endif
};

enum { LEVEL_COUNT = sizeof levels / sizeof *levels };

static int has(const struct Level *level) { return (amp_cpu_features() & level->needs) == level->needs; }

static const struct Level *best_level(void) {
    const struct Level *level = &levels[LEVEL_COUNT - 1];
    while (!has(level)) level--; /* ends at "portable", which needs nothing */
    return level;
}

static const struct Level *named_level(const char *isa, amp_error *err) {
    for (size_t i = 0; i < LEVEL_COUNT; i++) {
        if (strcmp(levels[i].isa, isa) != 0) continue;
        if (has(&levels[i])) return &levels[i];
        amp_fail(err, AMP_UNSUPPORTED, "this machine cannot run the matrix products for \"%s\"; its best are \"%s\"",
                 isa, best_level()->isa);
        return NULL;
    }
    amp_fail(
        err, AMP_NOT_FOUND,
        "there are no matrix products for an instruction set \"%s\"; known are \"portable\", and on x86-64 \"avx2\", "
        "\"avx512\" and \"avx512_bf16\"",
        isa);
    return NULL;
}

const amp_product_kernels *amp_product_select(amp_dtype operand, const char *isa, amp_error *err) {
    if (operand != AMP_DT_F32 && operand != AMP_DT_BF16) {
        amp_fail(err, AMP_INVALID_ARGUMENT, "the CPU multiplies matrices of f32 or bf16, not of %s",
                 amp_dtype_name(operand));
        return NULL;
    }
    const struct Level *level = isa ? named_level(isa, err) : best_level();
    if (!level) return NULL;
    return operand == AMP_DT_F32 ? level->f32 : level->bf16;
}
