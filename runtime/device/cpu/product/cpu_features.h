/* cpu_features.h: which of the instruction sets that this project uses the machine has.
 *
 * The levels are those of the x86-64 psABI (https://gitlab.com/x86-psABIs/x86-64-ABI): v3 is AVX2, FMA and F16C, v4
 * adds AVX-512 F, BW, CD, DQ and VL.  "Has" means that the processor offers it and the operating system saves its
 * registers.
 */
#ifndef AMP_RUNTIME_DEVICE_CPU_PRODUCT_CPU_FEATURES_H
#define AMP_RUNTIME_DEVICE_CPU_PRODUCT_CPU_FEATURES_H

#ifdef __cplusplus
extern "C" {
#endif

enum { AMP_CPU_X86_64_V3 = 1 << 0, AMP_CPU_X86_64_V4 = 1 << 1, AMP_CPU_AVX512_BF16 = 1 << 2 };

/* The bits of this machine; 0 on anything but x86-64.  Thread-safe. */
unsigned amp_cpu_features(void);

#ifdef __cplusplus
}
#endif

#endif
