/* slow_bf16.c: processors that have AVX512_BF16, and multiply bf16 faster as f32.
 *
 * On these VDPBF16PS of 512 bits starts every second cycle, and multiplies 32 pairs; two multiply-adds of 16 f32 start
 * in each.  Emerald Rapids, GFLOP/s of a core: products of bf16 98 to 106, of f32 152 to 194; Sapphire Rapids has the
 * same cores.  A table and no measurement, for that would give one machine two results.  bench/cpu/product_bench shows
 * both rates, and tests/runtime/device/cpu/bf16_rate_test.cc compares them with the table.
 */
#include <string.h>

#include "runtime/device/cpu/product/product.h"

static const struct SlowBf16 {
    const char *vendor;
    unsigned family, model;
} slow[] = {
    {"GenuineIntel", 6, 0x8f}, /* Sapphire Rapids */
    {"GenuineIntel", 6, 0xcf}, /* Emerald Rapids */
};

/* Family and model have extensions: Intel's manual, volume 2, CPUID, leaf 1; AMD's is the same for these. */
bool amp_product_bf16_is_slow(const char *vendor, unsigned signature) {
    const unsigned base = signature >> 8 & 15, family = base + (base == 15 ? signature >> 20 & 255 : 0);
    const unsigned model = (signature >> 4 & 15) | (signature >> 16 & 15) << 4;
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
        if (!strcmp(vendor, slow[i].vendor) && family == slow[i].family && model == slow[i].model) return true;
    return false;
}

#if defined(__x86_64__)

#include <cpuid.h>

bool amp_product_has_slow_bf16(void) {
    unsigned vendor[4] = {0}, highest, signature, ebx, ecx, edx; /* 12 characters and a zero */
    return __get_cpuid(0, &highest, &vendor[0], &vendor[2], &vendor[1]) &&
           __get_cpuid(1, &signature, &ebx, &ecx, &edx) && amp_product_bf16_is_slow((const char *)vendor, signature);
}

#else

bool amp_product_has_slow_bf16(void) { return false; }

#endif
