/* micro_kernel.h: what every instance of micro_kernel.inc shares: units, and prefetching spread over the k loop.
 *
 * Why spread: a tile whose epilogue updates weights and moments needs 12 KiB or more from memory.  One prefetch per
 * step of k overlaps that with arithmetic; the same prefetches issued at once fill the queue of outstanding misses and
 * stall.
 */
#ifndef AMP_RUNTIME_DEVICE_CPU_PRODUCT_MICRO_KERNEL_H
#define AMP_RUNTIME_DEVICE_CPU_PRODUCT_MICRO_KERNEL_H

#include <stdbool.h>

#include "runtime/device/cpu/product/product.h"

enum { CACHE_LINE = 64, REGION_LINES = AMP_PRODUCT_PREFETCH_BYTES / CACHE_LINE };

/* Four bytes of an operand, whatever type they were stored as. */
typedef uint32_t __attribute__((may_alias, aligned(4))) unit;
typedef float __attribute__((may_alias, aligned(4))) f32_unit;

/* The first lane of each lane's group, where groups have 2, 4 or 8 lanes. */
static const int32_t first_of_2[16] = {0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14};
static const int32_t first_of_4[16] = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
static const int32_t first_of_8[16] = {0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8};

static inline int64_t wanted_cols(int64_t cols) { return cols ? cols : AMP_PRODUCT_COLS; }

/* The columns of a row of C that no strip computes. */
static inline void clear_from(float *row, int64_t col) {
    __builtin_memset(row + col, 0, (size_t)(AMP_PRODUCT_COLS - col) * sizeof *row);
}

static inline int64_t min_i64(int64_t x, int64_t y) { return x < y ? x : y; }

typedef struct prefetch_cursor {
    const void *const *next; /* region after this one */
    int64_t regions;         /* left, with this one */
    uintptr_t line;          /* next line of this region; a number, for it may point nowhere */
    int64_t steps;           /* steps of k left in this region */
    int64_t lines_per_k;     /* 0 when all is done; a power of two, so that it divides a region */
} prefetch_cursor;

/* |steps| of k are to bring in |count| regions. */
static inline void prefetch_begin(prefetch_cursor *p, const void *const *regions, int64_t count, int64_t steps) {
    *p = (prefetch_cursor){.next = regions, .regions = count};
    if (count <= 0 || steps <= 0) return;
    p->lines_per_k = 1;
    while (p->lines_per_k < REGION_LINES && p->lines_per_k * steps < count * REGION_LINES) p->lines_per_k *= 2;
    p->line = (uintptr_t)*p->next++;
    p->steps = REGION_LINES / p->lines_per_k;
}

/* How many of |k| steps can go on without a new region. */
static inline int64_t prefetch_run(const prefetch_cursor *p, int64_t k) {
    return p->lines_per_k ? min_i64(k, p->steps) : k;
}

static inline void prefetch_advance(prefetch_cursor *p, int64_t k) {
    __asm__("" : "+m"(p->lines_per_k)); /* read anew, or gcc makes a copy of the caller's loops for when it is 0 */
    if (!p->lines_per_k) return;
    p->line += (uintptr_t)(k * p->lines_per_k * CACHE_LINE);
    p->steps -= k;
    if (p->steps > 0) return;
    if (--p->regions > 0) {
        p->line = (uintptr_t)*p->next++;
        p->steps = REGION_LINES / p->lines_per_k;
    } else {
        p->lines_per_k = 0;
    }
}

#endif
