/* program_time.h: the model of time (roofline.h) over all launches of a program for CUDA. */
#ifndef AMP_TOOLS_PROGRAM_TIME_H
#define AMP_TOOLS_PROGRAM_TIME_H

#include "tools/roofline/roofline.h"

typedef struct ProgramTime {
    int launches;
    double flops, bytes, microseconds;
} ProgramTime;

/* The kernel of which no time is known, and why; ROOFLINE_OK: of none. */
typedef struct ProgramRefusal {
    RooflineStatus why;
    const amp_model_cuda_kernel *kernel;
    uint32_t instruction; /* that the GPU lacks */
} ProgramRefusal;

/* |program| of the tables for "cuda", at |sizes|.  |out| is complete only where no kernel is refused.
 * |each| (may be NULL): room for one of every kernel. */
ProgramRefusal program_time(const Gpu *gpu, const amp_tables *cuda, const amp_program *program, amp_sizes sizes,
                            Form form, KernelTime *each, ProgramTime *out);

/* "H100 has no mma f16, which ...": the words for a person. */
void program_refusal_text(const ProgramRefusal *r, const Gpu *gpu, char *out, size_t size);

/* "12.3 M": three digits and a prefix, " " for none.  Writes into |out| and returns it. */
const char *scaled(double v, char out[16]);

#endif
