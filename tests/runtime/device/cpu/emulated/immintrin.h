/* immintrin.h: the AVX-512 instructions that the products use, made of AVX2's, so that their kernels are tested on
 * machines that lack AVX-512.  Shadows the compiler's header; each computes what Intel's intrinsics guide says.
 * VDPBF16PS is its two fused multiply-adds, the odd elements first; the tests hold no subnormal numbers, which it
 * flushes. */
#ifndef AMP_TESTS_EMULATED_IMMINTRIN_H
#define AMP_TESTS_EMULATED_IMMINTRIN_H

#include_next <immintrin.h>
#include <stdint.h>
#include <string.h>

typedef float emulated_m512 __attribute__((vector_size(64)));
typedef int32_t emulated_m512i __attribute__((vector_size(64)));

#define EMULATED static inline __attribute__((always_inline, unused))

EMULATED emulated_m512 emulated_setzero_ps(void) { return (emulated_m512){0}; }
EMULATED emulated_m512 emulated_set1_ps(float x) { return (emulated_m512){0} + x; }
EMULATED emulated_m512i emulated_set1_epi32(int x) { return (emulated_m512i){0} + x; }
EMULATED emulated_m512i emulated_slli_epi32(emulated_m512i v, int n) { return v << n; }
EMULATED emulated_m512i emulated_cvtepu16_epi32(__m256i v) {
    uint16_t from[16];
    emulated_m512i to;
    memcpy(from, &v, sizeof from);
    for (int i = 0; i < 16; i++) to[i] = from[i];
    return to;
}
EMULATED emulated_m512i emulated_and_si512(emulated_m512i a, emulated_m512i b) { return a & b; }
EMULATED emulated_m512 emulated_castsi512_ps(emulated_m512i v) { return (emulated_m512)v; }

EMULATED emulated_m512 emulated_loadu_ps(const void *p) {
    emulated_m512 v;
    memcpy(&v, p, sizeof v);
    return v;
}

EMULATED emulated_m512i emulated_loadu_si512(const void *p) { return (emulated_m512i)emulated_loadu_ps(p); }
EMULATED void emulated_storeu_ps(void *p, emulated_m512 v) { memcpy(p, &v, sizeof v); }

EMULATED emulated_m512 emulated_fmadd_ps(emulated_m512 a, emulated_m512 b, emulated_m512 c) {
    __m256 x[2], y[2], z[2];
    memcpy(x, &a, sizeof x), memcpy(y, &b, sizeof y), memcpy(z, &c, sizeof z);
    for (int i = 0; i < 2; i++) z[i] = _mm256_fmadd_ps(x[i], y[i], z[i]);
    memcpy(&c, z, sizeof z);
    return c;
}

EMULATED emulated_m512 emulated_dpbf16_ps(emulated_m512 c, emulated_m512i a, emulated_m512i b) {
    const int upper = (int)0xffff0000u;
    c = emulated_fmadd_ps((emulated_m512)(a & upper), (emulated_m512)(b & upper), c);
    return emulated_fmadd_ps((emulated_m512)(a << 16), (emulated_m512)(b << 16), c);
}

EMULATED emulated_m512 emulated_permutexvar_ps(emulated_m512i from, emulated_m512 v) {
    emulated_m512 to;
    for (int i = 0; i < 16; i++) to[i] = v[from[i] & 15];
    return to;
}

EMULATED emulated_m512 emulated_permute_ps(emulated_m512 v, int order) { /* the same in each four lanes */
    emulated_m512 to;
    for (int i = 0; i < 16; i++) to[i] = v[i / 4 * 4 + (order >> i % 4 * 2 & 3)];
    return to;
}

#define __m512 emulated_m512
#define __m512i emulated_m512i
#define __m512bh emulated_m512i
#define _mm512_setzero_ps emulated_setzero_ps
#define _mm512_set1_ps emulated_set1_ps
#define _mm512_set1_epi32 emulated_set1_epi32
#define _mm512_slli_epi32 emulated_slli_epi32
#define _mm512_cvtepu16_epi32 emulated_cvtepu16_epi32
#define _mm512_and_si512 emulated_and_si512
#define _mm512_castsi512_ps emulated_castsi512_ps
#define _mm512_loadu_ps emulated_loadu_ps
#define _mm512_loadu_si512 emulated_loadu_si512
#define _mm512_storeu_ps emulated_storeu_ps
#define _mm512_fmadd_ps emulated_fmadd_ps
#define _mm512_dpbf16_ps emulated_dpbf16_ps
#undef _mm512_permute_ps /* a macro of clang */
#define _mm512_permute_ps emulated_permute_ps
#define _mm512_permutexvar_ps emulated_permutexvar_ps

/* Beside the real ones. */
#define amp_product_avx512_f32 amp_emulated_avx512_f32
#define amp_product_avx512_bf16_widened amp_emulated_avx512_bf16_widened
#define amp_product_avx512_bf16 amp_emulated_avx512_bf16
#define amp_product_avx512_bf16_tile amp_emulated_avx512_bf16_tile
#define amp_product_avx512_bf16_gather amp_emulated_avx512_bf16_gather

#endif
