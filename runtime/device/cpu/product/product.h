/* product.h: matrix products on the CPU, C = A * B, on packed operands, one 32 x 32 tile of C at a time.
 *
 * Operands are addressed in units of four bytes: one f32, or two bf16 that are neighbours along k (the even k in the
 * low half).  "k" below counts units.  Sums are f32.
 *
 * Numerics.  Every element of C is one chain of additions over ascending k that begins with 0 or with what C held:
 *   f32   avx2, avx512:  c = fma(a[k], b[k], c).  The same bits for both.
 *         portable:      c = c + a[k] * b[k], two roundings.
 *   bf16  avx2, avx512:  c = fma(a.odd, b.odd, c), then c = fma(a.even, b.even, c).
 *         avx512_bf16:   c = vdpbf16ps(c, a, b), which Intel's manual (SDM volume 2, VDPBF16PS) defines as those two
 *                        steps, with subnormal numbers taken and left as zero.
 *         portable:      the same two steps with a product and a sum each; the product of two bf16 is exact in f32.
 *         So all have the same bits where no operand, product or sum is subnormal and no product overflows.  avx2 and
 *         avx512 widen operands in the cache and multiply them as f32, or in the loop: the same steps.
 * How rows are grouped never changes bits, nor does splitting k in two products if the second one accumulates.
 * NaN and infinity go through as IEEE 754 says.
 */
#ifndef AMP_RUNTIME_DEVICE_CPU_PRODUCT_PRODUCT_H
#define AMP_RUNTIME_DEVICE_CPU_PRODUCT_PRODUCT_H

#include <stdbool.h>

#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    AMP_PRODUCT_ROWS = 32,             /* rows of a tile of C, at most */
    AMP_PRODUCT_COLS = 32,             /* columns of a tile of C, and of a panel of B */
    AMP_PRODUCT_PREFETCH_BYTES = 4096, /* what one prefetch address means: a 32 x 32 tile of f32 */
    AMP_PRODUCT_PREFETCH_MAX = 8,
    AMP_PRODUCT_FEW_ROWS = 4 /* rows of A for which B is not widened ahead */
};

/* How the rows of A are in memory.  |block| is the run of k that is adjacent in a row: 32 units of f32, 16 of bf16
 * pairs. */
typedef enum amp_product_form {
    /* A [M, K] stored as panels [K / 32][rows][32].
     * Row m, unit k is at  m * block + k % block + (k / block) * a_block_stride. */
    AMP_PRODUCT_BLOCKED = 0,
    /* A [K, M] stored as panels [M / 32][K][32], or bf16 pairs [M / 32][K / 2][32][2].
     * Row m < 32, unit k is at  k * 32 + m, or at  k * a_step + m;  a_block_stride is not read. */
    AMP_PRODUCT_TRANSPOSED = 1
} amp_product_form;

/* ---- one tile ---- */

typedef struct amp_product_tile {
    const void *a;
    const void *b; /* [k][32] units, contiguous */
    float *c;      /* [rows][32]; 64-byte alignment is best, 4 is enough (likewise for a and b) */
    amp_product_form form;
    int accumulate;         /* 1: begin with what c holds; 0: with zero */
    int64_t a_block_stride; /* units; BLOCKED */
    int64_t a_step;         /* units; TRANSPOSED: from one step of k to the next; 0: 32 */
    int64_t k;              /* units, >= 0 */
    int64_t rows;           /* 1 .. AMP_PRODUCT_ROWS */
    int64_t cols;           /* columns of C that are wanted, 0: all; the others may become zero */
    int64_t prefetch_count;
    /* Addresses of 4 KiB each, fetched into the cache evenly over the k loop; never read, so they may be anything. */
    const void *const *prefetch;
} amp_product_tile;

/* ---- one tile whose rows of A are anywhere: image products ---- */

/* A piece of k in which every row of A is contiguous, and B is. */
typedef struct amp_gather_run {
    int64_t first_k; /* its place in B, units */
    int64_t length;  /* units */
} amp_gather_run;

typedef struct amp_gather_tile {
    const void *const *a; /* [run_count][rows]: where each row of A is */
    const amp_gather_run *runs;
    int64_t run_count; /* >= 0 */
    int64_t rows;      /* 1 .. AMP_PRODUCT_ROWS */
    const void *b;     /* [k][32] units */
    float *c;          /* row r of A belongs to c[c_row[r]][32] */
    const int32_t *c_row;
    int64_t cols;   /* as in amp_product_tile */
    int accumulate; /* likewise */
    int64_t prefetch_count;
    const void *const *prefetch; /* likewise */
    int64_t group;               /* depthwise: channels of x, and of y, of a group: 1, 2, 4, 8 or 16; 0: 1 */
} amp_gather_tile;

/* The transforms of conv_winograd.c, of f32; pixels that are read may be bf16.  A tile is 4 x 4 rows of 32 channels;
 * number i of a transformed tile is i * |step| floats after its first one. */
typedef struct amp_winograd_kernels {
    /* 16 pixels of an image, by lines, as a tile. */
    void (*image)(const void *const *pixels, float *out, int64_t step);
    /* 9 taps, each |rows| rows of 32 columns, as |rows| tiles. */
    void (*weights)(const float *const *taps, int64_t rows, float *out, int64_t step);
    /* Sums of products as 2 x 2 pixels of the result. */
    void (*result)(const float *sums, int64_t step, float *const *pixels);
    /* 2 x 2 pixels of a gradient dy as a tile. */
    void (*gradient)(const void *const *pixels, float *out, int64_t step);
    /* Sums of products as 9 taps of a weight gradient, each |rows| rows of 32 columns. */
    void (*taps)(const float *sums, int64_t rows, int64_t step, float *const *taps);
} amp_winograd_kernels;

/* How bf16 become operands of f32 products, where these are the faster ones: a unit is two steps of k, the odd element
 * first. */
typedef struct amp_widening {
    const struct amp_product_kernels *f32;
    /* [units][32] units as [2 * units][32]; the odd element is step |odd| of the two: 0, or, in their order, 1. */
    void (*steps)(const void *from, int64_t units, int odd, float *to);
    void (*rows)(const void *from, int64_t units, float *to); /* units along k, as 2 * units floats */
} amp_widening;

/* The kernels of one instruction set and operand type.  Static storage, immutable. */
typedef struct amp_product_kernels {
    const char *name;  /* "avx512" */
    amp_dtype operand; /* AMP_DT_F32 or AMP_DT_BF16 */
    void (*tile)(const amp_product_tile *tile);
    void (*gather)(const amp_gather_tile *tile); /* the runs in their order; the same numerics */
    /* Windows of narrow groups: a run is |group| rows of |b|, f32 [first_k + member][32], and |length| is not read; of
     * row r of A, 32 elements, each column's group is multiplied by them and added to its row of C, run by run and
     * member by member:  c = fma(a, b, c).  step != 0: |a| has the first row of each run, the others follow |step|
     * bytes apart, and the rows of C follow each other. */
    void (*depthwise)(const amp_gather_tile *tile, int64_t step);
    /* Their gradient: C[runs[i].first_k + member][32] = fma(a, b, c) over the rows of run i in their order; |b| has
     * |rows| rows of 32 elements, b_step bytes apart; |step| as above.  c_row is not read. */
    void (*depthwise_weight)(const amp_gather_tile *tile, int64_t step, int64_t b_step);
    /* |count| rows of 32 elements as steps of k, [units][32]: f32 as they are; bf16 as pairs of neighbours, the first
     * in the low half, zeros where the last one has none. */
    void (*pack)(const void *const *rows, int64_t count, void *out);
    /* 32 rows along k, of |units| units each, as steps of k: [units][32].  Rows may begin at any byte. */
    void (*transpose)(const void *const *rows, int64_t units, void *out);
    const amp_winograd_kernels *winograd; /* NULL: none for this operand type */
    const amp_widening *widening;         /* NULL: operands are multiplied as they are */
} amp_product_kernels;

/* The fastest kernels for |operand| that this machine runs and that need no more than |isa|: "portable", "avx2",
 * "avx512" or "avx512_bf16", each including those before it; NULL means the machine's best.  (There is no separate
 * f32 kernel for "avx512_bf16": it gives "avx512".  Where its bf16 instruction is the slower way, by a table of
 * processors, the best is "avx512", too.)  NULL with |err| filled where the operand type has no product
 * (AMP_INVALID_ARGUMENT), the name is unknown (AMP_NOT_FOUND) or the machine lacks it (AMP_UNSUPPORTED).
 * Thread-safe. */
const amp_product_kernels *amp_product_select(amp_dtype operand, const char *isa, amp_error *err);
/* The same for a machine that has |features| (base/processor.h). */
const amp_product_kernels *amp_product_select_for(unsigned features, bool has_slow_bf16, amp_dtype operand,
                                                  const char *isa, amp_error *err);

/* Whether this machine multiplies bf16 faster as f32, if it has instructions for bf16 at all; and whether processors of
 * |vendor| (CPUID leaf 0, the registers EBX, EDX, ECX as text) and |signature| (leaf 1, EAX) do. */
bool amp_product_has_slow_bf16(void);
bool amp_product_bf16_is_slow(const char *vendor, unsigned signature);

/* ---- a whole product ---- */

/* Memory that the epilogue of tile (row tile t, panel p) will use: 4 KiB at base + p * panel_stride + t *
 * tile_stride. */
typedef struct amp_product_prefetch {
    const char *base;
    int64_t panel_stride, tile_stride; /* bytes */
} amp_product_prefetch;

/* The addresses of |count| of them for one tile. */
static inline void amp_product_addresses(const amp_product_prefetch *prefetch, int64_t count, int64_t row_tile,
                                         int64_t panel, const void **address) {
    for (int64_t i = 0; i < count; i++)
        address[i] = prefetch[i].base + panel * prefetch[i].panel_stride + row_tile * prefetch[i].tile_stride;
}

/* Called once per tile of C, while it is in the cache: the sums of rows row0 .. row0 + rows and columns col0 .. col0
 * + 32, as [rows][32].  row0 and col0 are multiples of 32; rows is 32 but in the last row tile.  Calls come from
 * several threads. */
typedef void (*amp_product_epilogue)(void *ctx, const float *c, int64_t row0, int64_t rows, int64_t col0);

/* C [m, n] = A [m, k] * B [k, n]. */
typedef struct amp_product {
    const void *a;
    const void *b;
    amp_product_form form;
    int32_t prefetch_count; /* <= AMP_PRODUCT_PREFETCH_MAX */
    int64_t m, n, k;        /* k in units; n is rounded up to 32 by the layout of B */
    int64_t a_block_stride; /* units; BLOCKED only */
    int64_t a_tile_stride;  /* units from one tile of 32 rows of A to the next */
    int64_t b_panel_stride; /* units from one panel of 32 columns of B to the next */
    /* Operands that are not packed but dense, for they have fewer than 32 columns: elements of a row, 0 where packed.
     * A [m, k] or, TRANSPOSED, [k, m]; B [k, n]. */
    int64_t a_row, b_row;
    int64_t steps; /* elements along k; read only for these */
    amp_product_epilogue epilogue;
    void *ctx;
    amp_product_prefetch prefetch[AMP_PRODUCT_PREFETCH_MAX];
} amp_product;

/* The number of tasks of the product.  It follows from the shape alone, never from the number of threads, so the bits
 * do not depend on it. Tasks may run in any order and at once; neighbours share operands, so handing them out in order
 * is best. */
int64_t amp_product_tasks(const amp_product *product);

/* What amp_product_task needs as scratch: bytes per thread, aligned to 64. */
size_t amp_product_scratch_bytes(const amp_product_kernels *kernels);

/* Runs task |task| (0 <= task < amp_product_tasks) on the calling thread. */
void amp_product_task(const amp_product_kernels *kernels, const amp_product *product, int64_t task, float *scratch);

#ifdef __cplusplus
}
#endif

#endif
