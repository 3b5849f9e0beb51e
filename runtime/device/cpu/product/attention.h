/* attention.h: attention and its gradients by tiles, which never store the scores (amp_model_attention in
 * amp/model_abi.h): softmax with a running maximum and sum (Milakov and Gimelshein, "Online normalizer calculation for
 * softmax", 2018), tile by tile (Dao et al., "FlashAttention", 2022).
 *
 * Scores are kept transposed: a tile has queries as columns, so that maximum and sum go down its rows lane by lane, and
 * the weights are the operand A of the product with v as they are.  The products are the kernels of product.h; what is
 * between them is the model's function, called once per tile.
 *
 * Every element of a result is one chain of sums in ascending order of keys or of queries, whatever the division into
 * tasks: the bits depend on nothing but the operands.
 */
#ifndef AMP_RUNTIME_DEVICE_CPU_PRODUCT_ATTENTION_H
#define AMP_RUNTIME_DEVICE_CPU_PRODUCT_ATTENTION_H

#include <stdbool.h>

#include "amp/model_abi.h"
#include "runtime/device/cpu/product/product.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of heads.  All in bytes. */
typedef struct amp_attention_rows {
    char *data;                               /* the first row of the first head; NULL: there are none */
    int64_t pitch;                            /* from one row to the next */
    int64_t stride[AMP_MODEL_BATCH_MAX_DIMS]; /* along each of |dims| */
} amp_attention_rows;

typedef struct amp_attention {
    const amp_product_kernels *kernels;
    void (*step)(void *ctx, const amp_attention_tile *tile);
    void *ctx;
    bool backward, causal, mask_is_one; /* mask_is_one: one number for all keys of a query */
    int32_t rank;                       /* of dims: 1 .. AMP_MODEL_BATCH_MAX_DIMS */
    int64_t dims[AMP_MODEL_BATCH_MAX_DIMS];
    int64_t share; /* heads of queries to a head of keys */
    int64_t queries, keys, width, v_width;
    amp_attention_rows q, k, v, mask, dy, sums, result[3];
    struct {
        const char *data;
        bool in_panels;
        int64_t rows, cols, element; /* element: its bytes */
    } y;
} amp_attention;

/* Bytes of scratch per thread, aligned to 64; the same for every |dims|. */
size_t amp_attention_thread_bytes(const amp_attention *attention);

/* Two phases of tasks, by shape alone; a phase's tasks may run in any order and at once.  The second may have none. */
int64_t amp_attention_tasks(const amp_attention *attention);
int64_t amp_attention_second_tasks(const amp_attention *attention);
void amp_attention_task(const amp_attention *attention, int64_t task, void *thread_scratch);
void amp_attention_second_task(const amp_attention *attention, int64_t task, void *thread_scratch);

#ifdef __cplusplus
}
#endif

#endif
