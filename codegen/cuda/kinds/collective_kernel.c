/* collective_kernel.c: a vector that ranks add up in the middle of a program (sum_ranks).  The kernel copies it, which
 * is the sum of one rank alone; where there are more the runtime asks for a collective in its place. */
#include "codegen/cuda/cuda_kernel.h"

enum { THREADS = 256 };

amp_status cuda_emit_collective(CudaKernel *ck) {
    ck->body->launch.extent[0] = ck->w->cols;
    ck->body->launch.per[0] = THREADS;
    ck->how = "a vector";
    cuda_add_size(ck, "count", ck->w->cols);
    AMP_TRY(cuda_open_function(ck, THREADS));
    emit_line(&ck->e, "const int64_t i = (int64_t)blockIdx.x * %d + threadIdx.x;", THREADS);
    emit_line(&ck->e, "if (i < count) b1[i] = b0[i];");
    cuda_close_function(ck);
    return AMP_OK;
}
