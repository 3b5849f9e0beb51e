/* tiles.h: 32 x 32 tiles in the layouts of amp/model_abi.h.  In each of them a tile is 1024 neighbouring elements. */

typedef int32_t Tile[32][32] __attribute__((aligned(64))); /* element bits by row and column */

/* |count| tiles of |bytes| bytes, |stride| bytes apart, become zero: before a tile is written that ends at the last
 * row. */
INLINE void clear_tiles(void *tile, int64_t bytes, int64_t stride, int64_t count) {
    for (int64_t t = 0; t < count; t++)
        for (int64_t i = 0; i < bytes; i += 4 * W) *(vi_mem *)((char *)tile + t * stride + i) = (vi){0};
}

/* dst[c][r] = src[r][c] for a 16 x 16 block of 32-bit elements. */
#if W == 16
#define ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
/* Four perfect shuffles of 16 rows: each moves one bit of the row number into the column number. */
static __attribute__((noinline, unused)) void transpose_block(int32_t *dst, int64_t dst_stride, const int32_t *src,
                                                              int64_t src_stride) {
    vi a[16], b[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) a[i] = load_i32(src + i * src_stride);
#pragma GCC unroll 2
    for (int stage = 0; stage < 2; stage++) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) b[2 * i] = ZIP_LOW(a[i], a[i + 8]), b[2 * i + 1] = ZIP_HIGH(a[i], a[i + 8]);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) a[2 * i] = ZIP_LOW(b[i], b[i + 8]), a[2 * i + 1] = ZIP_HIGH(b[i], b[i + 8]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) store_i32(dst + i * dst_stride, a[i]);
}
#else
typedef int32_t v4 __attribute__((vector_size(16)));
typedef int32_t v4_mem __attribute__((vector_size(16), aligned(4), may_alias));
static __attribute__((noinline, unused)) void transpose_block(int32_t *dst, int64_t dst_stride, const int32_t *src,
                                                              int64_t src_stride) {
    for (int r = 0; r < 16; r += 4)
        for (int c = 0; c < 16; c += 4) {
            const int32_t *s = src + r * src_stride + c;
            int32_t *d = dst + c * dst_stride + r;
            const v4 r0 = *(const v4_mem *)s, r1 = *(const v4_mem *)(s + src_stride);
            const v4 r2 = *(const v4_mem *)(s + 2 * src_stride), r3 = *(const v4_mem *)(s + 3 * src_stride);
            const v4 a = __builtin_shufflevector(r0, r1, 0, 4, 1, 5), b = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
            const v4 e = __builtin_shufflevector(r2, r3, 0, 4, 1, 5), f = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
            *(v4_mem *)d = __builtin_shufflevector(a, e, 0, 1, 4, 5);
            *(v4_mem *)(d + dst_stride) = __builtin_shufflevector(a, e, 2, 3, 6, 7);
            *(v4_mem *)(d + 2 * dst_stride) = __builtin_shufflevector(b, f, 0, 1, 4, 5);
            *(v4_mem *)(d + 3 * dst_stride) = __builtin_shufflevector(b, f, 2, 3, 6, 7);
        }
}
#endif

INLINE void clear_missing_rows(Tile t, int64_t rows) {
    if (rows < 32) clear_tiles(t[rows], (32 - rows) * (int64_t)sizeof t[0], 0, 1);
}

/* [32 columns][32 rows] of 32-bit elements */
INLINE void write_panels_t(float *dst, Tile t, int64_t rows) {
    int32_t *d = (int32_t *)dst;
    clear_missing_rows(t, rows);
    for (int r = 0; r < 32; r += 16)
        for (int c = 0; c < 32; c += 16) transpose_block(d + c * 32 + r, 32, &t[r][c], 32);
}

/* [16 pairs of rows][32 columns][2] */
INLINE void write_pairs(uint16_t *dst, Tile t, int64_t rows) {
    int32_t *d = (int32_t *)dst;
    clear_missing_rows(t, rows);
    for (int r = 0; r < 32; r += 2)
        for (int c = 0; c < 32; c += W) store_i32(d + r * 16 + c, load_i32(&t[r][c]) | (load_i32(&t[r + 1][c]) << 16));
}

/* [16 pairs of columns][32 rows][2]: neighbouring columns become one word, then the words are transposed. */
INLINE void write_pairs_t(uint16_t *dst, Tile t, int64_t rows) {
    typedef uint64_t words_mem __attribute__((vector_size(4 * W), aligned(4), may_alias));
    typedef uint32_t pairs __attribute__((vector_size(2 * W)));
    typedef uint32_t pairs_mem __attribute__((vector_size(2 * W), aligned(4), may_alias));
    int32_t packed[32][16] __attribute__((aligned(64)));
    clear_missing_rows(t, rows);
    for (int r = 0; r < 32; r++)
        for (int c = 0; c < 32; c += W) {
            const vq q = (vq) * (const words_mem *)&t[r][c];
            *(pairs_mem *)&packed[r][c / 2] = __builtin_convertvector(q | (q >> 16), pairs);
        }
    for (int r = 0; r < 32; r += 16) transpose_block((int32_t *)dst + r, 32, packed[r], 16);
}

/* ---- the same, W elements of one row at a time, for kernels that walk whole rows; |dst| is the tile ---- */

INLINE void scatter_pairs(uint16_t *dst, vi bits, int64_t r, int64_t c) {
    int32_t *d = (int32_t *)dst + (r / 2) * 32 + c;
    store_i32(d, r % 2 ? load_i32(d) | (bits << 16) : bits);
}
INLINE void scatter_panels_t(float *dst, vi bits, int64_t r, int64_t c) {
    int32_t *d = (int32_t *)dst + c * 32 + r;
    for (int i = 0; i < W; i++) d[i * 32] = bits[i];
}
INLINE void scatter_pairs_t(uint16_t *dst, vi bits, int64_t r, int64_t c) {
    uint16_t *d = dst + (c / 2) * 64 + r * 2;
    for (int i = 0; i < W; i++) d[i / 2 * 64 + i % 2] = (uint16_t)bits[i];
}
/* The same for one row whose tile other tasks write too: |dst| is the row's first element. */
INLINE void scatter_row_pairs(uint16_t *dst, vi bits, int64_t c) {
    for (int i = 0; i < W; i++) dst[(c + i) * 2] = (uint16_t)bits[i];
}
INLINE void scatter_row_panels_t(float *dst, vi bits, int64_t c) { scatter_panels_t(dst, bits, 0, c); }
INLINE void scatter_row_pairs_t(uint16_t *dst, vi bits, int64_t c) { scatter_pairs_t(dst, bits, 0, c); }
