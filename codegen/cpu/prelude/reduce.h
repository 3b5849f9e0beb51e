/* reduce.h: along a row 16 partial results of the columns c % 16, then c and c + 8, + 4, + 2, + 1 are combined.
 *
 * Sums of floats keep what their additions lose, along rows and down columns, and are made in blocks of a fixed size
 * from the start of the line, which are added in ascending order: so neither the error nor the order depends on how
 * long the line is, and a mean of equal numbers is that number. */

#if W == 16
#define LANES_DOWN(v, n)                                                                                               \
    __builtin_shufflevector(v, v, n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define EIGHT_LANES(p, combine) combine((p)[0], LANES_DOWN((p)[0], 8))
#elif W == 8
#define LANES_DOWN(v, n) __builtin_shufflevector(v, v, n, n + 1, n + 2, n + 3, 4, 5, 6, 7)
#define EIGHT_LANES(p, combine) combine((p)[0], (p)[1])
#else
#define LANES_DOWN(v, n) __builtin_shufflevector(v, v, n, n + 1, 2, 3)
#endif
/* Only the lanes that lead to lane 0 are meant. */
#if W == 4
#define FOUR_LANES(p, combine) combine(combine((p)[0], (p)[2]), combine((p)[1], (p)[3]))
#else
#define FOUR_LANES(p, combine) combine(EIGHT_LANES(p, combine), LANES_DOWN(EIGHT_LANES(p, combine), 4))
#endif
#define DEFINE_TREE(name, vector, type)                                                                                \
    INLINE type tree_##name(const vector *partial) {                                                                   \
        vector t = FOUR_LANES(partial, name);                                                                          \
        t = name(t, LANES_DOWN(t, 2));                                                                                 \
        t = name(t, LANES_DOWN(t, 1));                                                                                 \
        return t[0];                                                                                                   \
    }
DEFINE_TREE(plus_vf, vf, float)
DEFINE_TREE(times_vf, vf, float)
DEFINE_TREE(max_vf, vf, float)
DEFINE_TREE(min_vf, vf, float)
DEFINE_TREE(plus_vi, vi, int32_t)
DEFINE_TREE(max_vi, vi, int32_t)
DEFINE_TREE(min_vi, vi, int32_t)

/* *sum += x, and *lost gets what the rounding took: all of it if |*sum| >= |x|, else but for an error of the last place
 * of x (Fast2Sum: Dekker, A floating-point technique for extending the available precision, 1971). */
INLINE void plus_kept(vf *sum, vf *lost, vf x) {
    const vf s = *sum + x;
    *lost += (*sum - s) + x;
    *sum = s;
}

/* A block and what it lost (TwoSum: Knuth, The Art of Computer Programming 2, 4.2.2). */
INLINE void plus_block(vf *sum, vf *lost, vf block, vf block_lost) {
    const vf s = *sum + block, y = s - *sum;
    *lost += ((*sum - (s - y)) + (block - y)) + block_lost;
    *sum = s;
}

/* Infinite sums lose what is no number. */
INLINE vf lost_of(vf lost) { return keep_vf(lost, lost == lost); }

INLINE vf sum_kept(vf sum, vf lost) { return sum + lost_of(lost); }
INLINE vf mean_kept(vf sum, vf lost, double count) {
    return float_vd((double_vf(sum) + double_vf(lost_of(lost))) / splat_d(count));
}

/* Of 16 columns. */
typedef float four_f __attribute__((vector_size(16), aligned(4), may_alias));
typedef double four_d __attribute__((vector_size(32)));

INLINE double tree_kept(const vf *sum, const vf *lost) {
    float kept[2][16];
    four_d part[4], all;
    for (int q = 0; q < 16 / W; q++) {
        store_f32(kept[0] + q * W, sum[q]);
        store_f32(kept[1] + q * W, lost_of(lost[q]));
    }
    for (int i = 0; i < 4; i++)
        part[i] = __builtin_convertvector(*(const four_f *)(kept[0] + 4 * i), four_d) +
                  __builtin_convertvector(*(const four_f *)(kept[1] + 4 * i), four_d);
    all = (part[0] + part[2]) + (part[1] + part[3]);
    return (all[0] + all[2]) + (all[1] + all[3]);
}
