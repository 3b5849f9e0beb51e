/* processor.c: see processor.h.  Reads cpuid and xgetbv itself: compilers differ in what __builtin_cpu_supports knows.
 * Bits: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID. */
#include "base/processor.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>

enum { EAX, EBX, ECX, EDX, REGISTERS };

typedef struct Leaf {
    unsigned reg[REGISTERS];
} Leaf;

static Leaf leaf(unsigned number, unsigned part) {
    Leaf l = {{0}};
    if (!__get_cpuid_count(number, part, &l.reg[EAX], &l.reg[EBX], &l.reg[ECX], &l.reg[EDX])) l = (Leaf){{0}};
    return l;
}

/* Whether all |bits| of a register are set. */
static bool has(const Leaf *l, int reg, unsigned bits) { return (l->reg[reg] & bits) == bits; }

#define BIT(n) (1u << (n))

/* The registers that the system saves: bit 1 SSE, 2 AVX, 5 to 7 AVX-512. */
static uint32_t saved_registers(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

enum { SAVES_AVX = 0x6, SAVES_AVX512 = 0xe6 };

unsigned amp_cpu_features(void) {
    const Leaf basic = leaf(1, 0), extended = leaf(7, 0), more = leaf(7, 1), amd = leaf(0x80000001, 0);
    const unsigned fma = BIT(12), movbe = BIT(22), osxsave = BIT(27), avx = BIT(28), f16c = BIT(29);
    const unsigned bmi1 = BIT(3), avx2 = BIT(5), bmi2 = BIT(8);
    const unsigned avx512 = BIT(16) | BIT(17) | BIT(28) | BIT(30) | BIT(31); /* F, DQ, CD, BW, VL */
    unsigned features = 0;
    if (!has(&basic, ECX, fma | movbe | osxsave | avx | f16c) || !has(&extended, EBX, bmi1 | avx2 | bmi2) ||
        !has(&amd, ECX, BIT(5) /* LZCNT */))
        return 0;
    const uint32_t saved = saved_registers();
    if ((saved & SAVES_AVX) != SAVES_AVX) return 0;
    features |= AMP_CPU_X86_64_V3;
    if (has(&extended, EBX, BIT(29))) features |= AMP_CPU_SHA;
    if (!has(&extended, EBX, avx512) || (saved & SAVES_AVX512) != SAVES_AVX512) return features;
    features |= AMP_CPU_X86_64_V4;
    if (has(&more, EAX, BIT(5))) features |= AMP_CPU_AVX512_BF16;
    return features;
}

#elif defined(__aarch64__)

unsigned amp_cpu_features(void) { return AMP_CPU_NEON; } /* part of the architecture */

#else

unsigned amp_cpu_features(void) { return 0; }

#endif
