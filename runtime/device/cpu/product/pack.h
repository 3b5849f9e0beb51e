/* pack.h: operands whose rows are anywhere in memory, packed for the kernels of product.h.
 *
 * A unit is four bytes: one f32, or two bf16 that are neighbours along k.
 */
#ifndef AMP_RUNTIME_DEVICE_CPU_PRODUCT_PACK_H
#define AMP_RUNTIME_DEVICE_CPU_PRODUCT_PACK_H

#include "runtime/device/cpu/product/product.h"

enum { AMP_PACK_UNITS = 512 /* of columns, at most */ };

/* Rows of memory that are steps of k: |count| of them, |pitch| bytes apart, |width| <= 32 elements each, as
 * [units][32] with zeros past |width|.  Written are whole blocks of 32 steps' units, or as many as there are. */
void amp_pack_steps(const amp_product_kernels *kernels, const char *from, int64_t pitch, int64_t count, int64_t width,
                    char *to);

/* Rows of memory that are columns: |width| <= 32 of them, |count| steps of k each, as [units][32]; zeros where there is
 * no column, and for the step that half a unit lacks. */
void amp_pack_columns(const amp_product_kernels *kernels, const char *from, int64_t pitch, int64_t count, int64_t width,
                      char *to);

#endif
