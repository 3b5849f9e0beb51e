/* peaks.h: what a machine can do at most, which a profile compares with.
 *
 * On the CPU it is measured, on the threads of the session: a copy of 128 MiB, and the inner loop of the session's own
 * products (runtime/device/cpu/product) on operands that stay in the cache, each the best of some tries.  On CUDA
 * nothing can be measured beside a session, and it is what the table of GPUs (tools/roofline/gpus.c) says.
 */
#ifndef AMP_TOOLS_AMPRUN_PEAKS_H
#define AMP_TOOLS_AMPRUN_PEAKS_H

#include "amp/model_abi.h"
#include "tools/amprun/amprun.h"

typedef struct Peaks {
    double bytes;                               /* a second, read and written; 0: not known */
    double flops[AMP_INSTRUCTION_MMA_TF32 + 1]; /* a second, by AMP_INSTRUCTION_*; 0: not known */
    char source[256];                           /* a line for people */
} Peaks;

amp_status peaks_find(const Args *a, Peaks *out, amp_error *err);
/* Of the CPU's products alone: in f32 and in bf16.  |source| also names the kernels, and says how fast the machine's
 * other way to multiply bf16 is, where it has two. */
amp_status peaks_of_products(const Args *a, Peaks *out, amp_error *err);

#endif
