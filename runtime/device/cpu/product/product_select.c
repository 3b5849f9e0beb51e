/* product_select.c: which kernels run on this machine. */
#include <string.h>

#include "base/error.h"
#include "base/processor.h"
#include "runtime/device/cpu/product/kernels.h"
#include "runtime/device/cpu/product/product.h"

/* Slowest first; each level includes those before it. */
static const struct Level {
    const char *isa;
    unsigned needs;      /* AMP_CPU_* */
    bool slow_somewhere; /* its instruction for bf16; it is taken by its name alone there */
    const amp_product_kernels *f32, *bf16;
} levels[] = {
    {"portable", 0, false, &amp_product_portable_f32, &amp_product_portable_bf16},
#if defined(__x86_64__)
    {"avx2", AMP_CPU_X86_64_V3, false, &amp_product_avx2_f32, &amp_product_avx2_bf16},
    {"avx512", AMP_CPU_X86_64_V4, false, &amp_product_avx512_f32, &amp_product_avx512_bf16_widened},
    {"avx512_bf16", AMP_CPU_X86_64_V4 | AMP_CPU_AVX512_BF16, true, &amp_product_avx512_f32, &amp_product_avx512_bf16},
#elif defined(__aarch64__)
    {"neon", AMP_CPU_NEON, false, &amp_product_neon_f32, &amp_product_neon_bf16},
#endif
};

enum { LEVEL_COUNT = sizeof levels / sizeof *levels };

static int has(unsigned features, const struct Level *level) { return (features & level->needs) == level->needs; }

static const struct Level *best_level(unsigned features, bool has_slow_bf16) {
    const struct Level *level = &levels[LEVEL_COUNT - 1];
    while (!has(features, level) || (level->slow_somewhere && has_slow_bf16))
        level--; /* ends at "portable", which needs nothing */
    return level;
}

static const struct Level *named_level(unsigned features, const char *isa, amp_error *err) {
    for (size_t i = 0; i < LEVEL_COUNT; i++) {
        if (strcmp(levels[i].isa, isa) != 0) continue;
        if (has(features, &levels[i])) return &levels[i];
        amp_fail(err, AMP_UNSUPPORTED, "this machine cannot run the matrix products for \"%s\"; its best are \"%s\"",
                 isa, best_level(features, false)->isa);
        return NULL;
    }
    amp_fail(err, AMP_NOT_FOUND,
             "there are no matrix products for an instruction set \"%s\"; known are \"portable\", on x86-64 \"avx2\", "
             "\"avx512\" and \"avx512_bf16\", on AArch64 \"neon\"",
             isa);
    return NULL;
}

const amp_product_kernels *amp_product_select_for(unsigned features, bool has_slow_bf16, amp_dtype operand,
                                                  const char *isa, amp_error *err) {
    if (operand != AMP_DT_F32 && operand != AMP_DT_BF16) {
        amp_fail(err, AMP_INVALID_ARGUMENT, "the CPU multiplies matrices of f32 or bf16, not of %s",
                 amp_dtype_name(operand));
        return NULL;
    }
    const struct Level *level = isa ? named_level(features, isa, err) : best_level(features, has_slow_bf16);
    if (!level) return NULL;
    return operand == AMP_DT_F32 ? level->f32 : level->bf16;
}

const amp_product_kernels *amp_product_select(amp_dtype operand, const char *isa, amp_error *err) {
    return amp_product_select_for(amp_cpu_features(), amp_product_has_slow_bf16(), operand, isa, err);
}
