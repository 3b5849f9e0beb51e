/* launch.h: the kernels of a program as launches: tables of operands, parameters, blocks. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_LAUNCH_H
#define AMP_RUNTIME_DEVICE_CUDA_LAUNCH_H

#include "runtime/device/cuda/context.h"
#include "runtime/device/cuda/load.h"
#include "runtime/device/cuda/upload.h"
#include "runtime/device/device.h"

typedef struct amp_cuda_launching { /* what all launches of a session have in common */
    amp_cuda_context *context;
    const amp_cuda_loaded *functions;
    const amp_cuda_upload *upload;
} amp_cuda_launching;

/* Operand tables and elements of batches of all kernels of |run|'s program at its n, one after the other; bytes 0:
 * there are none.  Inside the context; |stream| is waited for. */
typedef struct amp_cuda_tables {
    CuPointer memory;
    size_t bytes;
} amp_cuda_tables;
amp_status amp_cuda_tables_make(amp_cuda_tables *tables, const amp_cuda_launching *launching, const amp_run *run,
                                CuStream stream, const amp_allocator *allocator, amp_error *err);
void amp_cuda_tables_free(amp_cuda_tables *tables, amp_cuda_context *context);

/* Launches kernel |kernel| of |run| on |stream|.  *|tables|: where the tables of this kernel begin, then those of the
 * next. */
amp_status amp_cuda_launch(const amp_cuda_launching *launching, const amp_run *run, int32_t kernel, CuPointer *tables,
                           CuStream stream, amp_error *err);

/* Lets every function have the dynamic shared memory that its launches ask for. */
amp_status amp_cuda_allow_shared(const amp_cuda_launching *launching, const amp_model *model, amp_error *err);

#endif
