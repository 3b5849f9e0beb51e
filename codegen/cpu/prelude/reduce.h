/* reduce.h: sums along a row: 16 partial sums of the columns c % 16, then c and c + 8, + 4, + 2, + 1 are added.
 *
 * Sums of columns: runs of rows, which are added with what each addition loses. */

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

/* *sum += x, and *lost gets what the rounding took (TwoSum: Knuth, The Art of Computer Programming 2, 4.2.2). */
INLINE void plus_kept(vf *sum, vf *lost, vf x) {
    const vf s = *sum + x, y = s - *sum;
    *lost += (*sum - (s - y)) + (x - y);
    *sum = s;
}

/* Infinite sums lose what is no number. */
INLINE vf plus_lost(vf sum, vf lost) { return select_vf(lost == lost, sum + lost, sum); }
