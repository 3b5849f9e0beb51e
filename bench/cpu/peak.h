/* peak.h: the fastest that the multiply-add units of this machine go, and the clock of the benches. */
#ifndef AMP_BENCH_CPU_PEAK_H
#define AMP_BENCH_CPU_PEAK_H

#include "runtime/device/cpu/product/product.h"

/* Of this thread. */
double bench_seconds(void);
/* GFLOP/s of one thread in the instructions of |kernels|; 0 where no peak loop has been written. */
double bench_peak(const amp_product_kernels *kernels);

#endif
