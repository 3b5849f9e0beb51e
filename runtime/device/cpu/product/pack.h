/* pack.h: operands whose rows are anywhere in memory, packed for the kernels of product.h.
 *
 * A unit is four bytes: one f32, or two bf16 that are neighbours along k.
 */
#ifndef AMP_RUNTIME_DEVICE_CPU_PRODUCT_PACK_H
#define AMP_RUNTIME_DEVICE_CPU_PRODUCT_PACK_H

#include "runtime/device/cpu/product/product.h"

enum { AMP_PACK_UNITS = 512 /* of columns, at most */ };

/* Asks for |bytes| of each of |count| rows at once: rows that are far apart are no stream that the hardware follows. */
static inline void amp_prefetch_rows(const char *row, int64_t pitch, int64_t count, int64_t bytes) {
    for (int64_t i = 0; i < count; i++, row += pitch)
        for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at, 0, 2);
    __asm__ volatile(""); /* gcc drops calls of a function that does nothing but prefetch */
}

/* Rows of memory that are steps of k: |count| of them, |pitch| bytes apart, |width| elements each, as [units][32] for
 * every 32 of these, |panel| bytes apart; zeros past |width|.  Written are whole blocks of 32 steps' units, or as many
 * as there are. */
void amp_pack_steps(const amp_product_kernels *kernels, const char *from, int64_t pitch, int64_t count, int64_t width,
                    char *to, int64_t panel);

/* Rows of memory that are columns: |width| <= 32 of them, |count| steps of k each, as [units][32]; zeros where there is
 * no column, and for the step that half a unit lacks. */
void amp_pack_columns(const amp_product_kernels *kernels, const char *from, int64_t pitch, int64_t count, int64_t width,
                      char *to);

#endif
