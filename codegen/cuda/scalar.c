/* scalar.c: one thread, scalars of any type. */
#include "codegen/cuda/cuda_kernel.h"

amp_status cuda_emit_scalar(CudaKernel *k) {
    AMP_TRY(cuda_open_function(k, 1, 0));
    AMP_TRY(cuda_emit_once(k));
    AMP_TRY(cuda_finish_once(k));
    cuda_close_function(k);
    return AMP_OK;
}
