/* kernels.h: the kernels of each instruction set, for product_select.c alone.
 *
 * Each is defined in a file that is compiled for its instruction set; so nothing in such a file may be called before
 * product_select.c has asked the machine.
 */
#ifndef AMP_RUNTIME_DEVICE_CPU_PRODUCT_KERNELS_H
#define AMP_RUNTIME_DEVICE_CPU_PRODUCT_KERNELS_H

#include "runtime/device/cpu/product/product.h"

extern const amp_product_kernels amp_product_portable_f32, amp_product_portable_bf16;
#if defined(__x86_64__)
extern const amp_product_kernels amp_product_avx2_f32, amp_product_avx2_bf16;
extern const amp_product_kernels amp_product_avx512_f32, amp_product_avx512_bf16_widened;
extern const amp_product_kernels amp_product_avx512_bf16;
/* For the file of amp_product_avx512_bf16. */
void amp_product_avx512_bf16_tile(const amp_product_tile *tile);
void amp_product_avx512_bf16_gather(const amp_gather_tile *tile);
#endif
#if defined(__aarch64__)
extern const amp_product_kernels amp_product_neon_f32, amp_product_neon_bf16;
#endif

#endif
