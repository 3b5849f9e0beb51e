// emulated.h: product kernels by instruction set: the machine's, or AVX-512's emulated where it lacks that.
#ifndef AMP_TESTS_EMULATED_EMULATED_H
#define AMP_TESTS_EMULATED_EMULATED_H

#include <cstring>

#include "runtime/device/cpu/product/product.h"
#include "tests/base/sanitizer.h"

#ifdef __x86_64__
extern "C" const amp_product_kernels amp_emulated_avx512_f32, amp_emulated_avx512_bf16_widened,
    amp_emulated_avx512_bf16;

inline const amp_product_kernels *EmulatedKernels(amp_dtype operand, const char *isa) {
    if (amp_test_address_sanitizer) return nullptr; // emulation would take minutes
    bool has_avx2 = amp_product_select(operand, "avx2", nullptr) != nullptr;
    if (!has_avx2 || (strcmp(isa, "avx512") && strcmp(isa, "avx512_bf16"))) return nullptr;
    if (operand == AMP_DT_F32) return &amp_emulated_avx512_f32;
    return strcmp(isa, "avx512") ? &amp_emulated_avx512_bf16 : &amp_emulated_avx512_bf16_widened;
}
#else
inline const amp_product_kernels *EmulatedKernels(amp_dtype, const char *) { return nullptr; }
#endif

// As amp_product_select.
inline const amp_product_kernels *SelectOrEmulate(amp_dtype operand, const char *isa, amp_error *err) {
    const amp_product_kernels *kernels = amp_product_select(operand, isa, err);
    return kernels ? kernels : EmulatedKernels(operand, isa);
}

#endif
