/* conv.h: products over windows of images (amp_model_window in amp/model_abi.h), without copying the windows out.
 *
 * CONV and CONV_DATA: C [pixels, channels] in tiles of 32 x 32; each row of a tile has a pointer to the pixel that it
 * reads under each tap of the window, or to zeros where that pixel is outside the image.
 * CONV_WEIGHT: C [taps * channels of x, channels of y], summed over the pixels of y.  The samples fall into a number of
 * splits; the sums of each are added up in their order in a second phase.
 * Windows of 3 x 3 over f32 images of enough pixels and channels are computed by Winograd's products (conv_winograd.c).
 *
 * Numerics.  As in product.h: every element is one chain, over taps and then channels ascending (CONV, CONV_DATA; taps
 * that no row of a tile has are left out), or over pixels ascending within a split, and then over splits.  How many
 * splits there are follows from the window and n alone.  Winograd's products are 16 such chains, over channels (CONV,
 * CONV_DATA) or squares of 2 x 2 pixels, of sums of operands, and added up: whether a product is one of those follows
 * from the window alone.  There the error of an element is small beside the products of the whole squares, not beside
 * its own alone, though a weight gradient whose products are all 0 is 0; and NaN or infinity in a pixel makes NaN of
 * the 2 x 2 pixels of each square that reads it.
 */
#ifndef AMP_RUNTIME_DEVICE_CPU_PRODUCT_CONV_H
#define AMP_RUNTIME_DEVICE_CPU_PRODUCT_CONV_H

#include "amp/model_abi.h"
#include "runtime/device/cpu/product/product.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pixels x channels in PANELS, or ROWS with fewer than 32 channels. */
typedef struct amp_image {
    const void *data;
    int64_t pixel_stride; /* bytes from one pixel to the next */
    int64_t block_stride; /* bytes from one block of 32 channels to the next */
} amp_image;

typedef struct amp_conv {
    const amp_product_kernels *kernels;
    amp_model_window window; /* kind is not NONE; checked when the model was loaded */
    int64_t n;               /* samples, >= 1 */
    amp_image a;             /* CONV, CONV_WEIGHT: x; CONV_DATA: dy */
    amp_image dy;            /* CONV_WEIGHT */
    const void *b;           /* CONV, CONV_DATA: weights, panels of 32 columns */
    int64_t b_panel_stride;  /* units */
    int b_transposed;        /* CONV_DATA: CONV's weights as [taps * channels of x, channels of y], panels of 32 rows */
    amp_product_epilogue epilogue;
    void *ctx;
    int32_t prefetch_count; /* of results; read by CONV and CONV_DATA without groups */
    amp_product_prefetch prefetch[AMP_PRODUCT_PREFETCH_MAX];
    float *shared; /* amp_conv_shared_bytes, aligned to 64 */
} amp_conv;

/* Bytes of scratch per thread, and shared by all; both aligned to 64.  They read |window|, |n| and the kernels' operand
 * type alone; neither is less for a larger n. */
size_t amp_conv_thread_bytes(const amp_conv *conv);
size_t amp_conv_shared_bytes(const amp_conv *conv);

/* Tasks of the first phase, by shape alone; they may run in any order and at once.  Then, when all are done, the
 * tasks of the second phase, if there are any. */
int64_t amp_conv_tasks(const amp_conv *conv);
void amp_conv_task(const amp_conv *conv, int64_t task, void *thread_scratch);
int64_t amp_conv_second_tasks(const amp_conv *conv);
void amp_conv_second_task(const amp_conv *conv, int64_t task, void *thread_scratch);

#ifdef __cplusplus
}
#endif

#endif
