/* cpu_features.c: asks the compiler's run-time library, which reads cpuid and xgetbv. */
#include "runtime/device/cpu/product/cpu_features.h"

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
