/* device_sums.h: codegen/cpu/prelude/device_sums.h as a function of each architecture. */
#ifndef AMP_TESTS_CODEGEN_DEVICE_SUMS_H
#define AMP_TESTS_CODEGEN_DEVICE_SUMS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum SumsType { SUMS_F16, SUMS_BF16, SUMS_TF32 } SumsType;

typedef struct SumsMatrices { /* y [m, n] = a [m, k] b [k, n]; or a is [k, m], b [n, k] in memory */
    int64_t m, n, k;
    int ta, tb;
    int64_t part; /* elements of k that are added up by themselves */
    const float *a, *b;
    float *y;
} SumsMatrices;

void sums_as_sm_80(const SumsMatrices *x, SumsType type);
void sums_as_sm_90(const SumsMatrices *x, SumsType type);

#ifdef __cplusplus
}
#endif

#endif
