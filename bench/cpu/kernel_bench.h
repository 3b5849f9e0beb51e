/* kernel_bench.h: what the benches of kernels share: clock, memory, results, and the fastest that the multiply-add units go. */
#ifndef AMP_BENCH_CPU_KERNEL_BENCH_H
#define AMP_BENCH_CPU_KERNEL_BENCH_H

#include "runtime/device/cpu/product/product.h"

/* GFLOP/s: the best of |rounds| that each run |once| so often that it takes about |flop_per_round|. */
typedef struct BenchRun {
    void (*once)(void *ctx);
    void *ctx;
    double flop; /* of one run */
    int rounds;
    double flop_per_round;
} BenchRun;
double bench_gflops(const BenchRun *run);

/* Up to whole tiles. */
int64_t bench_round_up(int64_t x);
/* Whole pages of zeros, for free(); ends the program where there is no memory. */
void *bench_zeros(int64_t bytes);

/* Where bench_store, an epilogue, puts the tiles of a product. */
typedef struct BenchOutput {
    float *c;
    int64_t row_tiles;
} BenchOutput;
void bench_store(void *output, const float *c, int64_t row0, int64_t rows, int64_t col0);

/* GFLOP/s of one thread in the instructions of |kernels|; 0 where no peak loop has been written. */
double bench_peak(const amp_product_kernels *kernels);

/* "  12.3 GFLOP/s   45.6 %" of the peak, where that is known (not 0), and the end of the line. */
void bench_print(double gflops, double peak);

/* For f32 and bf16: kernels of the instruction set |isa| ("portable", "avx2", "avx512" or "avx512_bf16"; NULL: the best
 * of the machine), a line with their peak, then |shapes|.  The status of the program. */
int bench_operands(const char *program, const char *isa,
                   void (*shapes)(const amp_product_kernels *kernels, double peak, void *ctx), void *ctx);

#endif
