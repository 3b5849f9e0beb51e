/* narrow.h: a tile of a product whose operands have rows of fewer than 32 elements, as they are in memory: dense.
 *
 * In panels they would be mostly padding.  What the tile function needs otherwise is packed here, a piece of k at a
 * time, which the first-level cache holds.
 */
#ifndef AMP_RUNTIME_DEVICE_CPU_PRODUCT_NARROW_H
#define AMP_RUNTIME_DEVICE_CPU_PRODUCT_NARROW_H

#include "runtime/device/cpu/product/product.h"

static inline int amp_product_is_narrow(const amp_product *p) { return p->a_row || p->b_row; }

/* |tile| as for packed operands, but for |a|, |b| and |k|; it begins at row |row0| of C and at panel |panel|. */
void amp_narrow_tile(const amp_product_kernels *kernels, const amp_product *p, int64_t row0, int64_t panel,
                     amp_product_tile tile);

#endif
