/* processor.h: which instruction sets this machine has. */
#ifndef AMP_BASE_PROCESSOR_H
#define AMP_BASE_PROCESSOR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Levels of the x86-64 psABI (https://gitlab.com/x86-psABIs/x86-64-ABI, "Micro-Architecture Levels"): v3 is AVX2, FMA
 * and F16C, v4 adds AVX-512 F, BW, CD, DQ and VL; what is beyond; and the vectors of AArch64.
 * SHA is told where v3 is. */
enum { AMP_CPU_X86_64_V3 = 1, AMP_CPU_X86_64_V4 = 2, AMP_CPU_AVX512_BF16 = 4, AMP_CPU_NEON = 8, AMP_CPU_SHA = 16 };

/* What the processor has and the system lets programs use (it saves the registers).  Thread-safe. */
unsigned amp_cpu_features(void);

#ifdef __cplusplus
}
#endif

#endif
