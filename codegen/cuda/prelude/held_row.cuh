/* held_row.cuh: operands of a row in shared memory (row_kernel.c).  Each thread copies the elements that it reads
 * later, so no thread waits for another. */

/* How many columns the launch's shared memory has places for, of BYTES each: a multiple of UNIT. */
template <int BYTES, int UNIT> INLINE int32_t columns_held() {
    uint32_t size;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size));
    return size / BYTES / UNIT * UNIT;
}

/* V neighbours at once if they are |TOGETHER|, side by side at a multiple of their size, and |left| has as many; else
 * one by one those that there are. */
template <int V, bool TOGETHER, typename T> INLINE void hold(T *to, const T *from, int32_t left) {
    constexpr int STEP = TOGETHER ? V : 1, BYTES = STEP * sizeof(T);
    UNROLL
    for (int i = 0; i < V; i += STEP) {
        if (i + STEP > left) break;
        if constexpr (HAS_ASYNC_COPIES && BYTES >= 4) copy_async<BYTES>(shared_address(to + i), from + i, true);
        else {
            UNROLL
            for (int k = i; k < i + STEP; k++) to[k] = from[k];
        }
    }
}
