/* functions.h: the functions of a session's launches, each loaded when a program first needs it. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_FUNCTIONS_H
#define AMP_RUNTIME_DEVICE_CUDA_FUNCTIONS_H

#include "runtime/device/cuda/context.h"
#include "runtime/device/cuda/load.h"
#include "runtime/model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* AMP_UNSUPPORTED: |device| (arch, name) is too old for the last choice of a kernel.  No other choice takes its
 * place. */
amp_status amp_cuda_check_functions(const amp_model *model, const amp_cuda_device_info *device, amp_error *err);

/* The device and n choose one of the functions that a kernel may have, and a session may never evaluate.  So a function
 * is compiled and loaded once a program at an n needs it: for what a session is made for at its capacity, when it is
 * created (amp_device_type.reserve); else when the graph of an n is made, before its capture begins. */
typedef struct amp_cuda_functions {
    amp_cuda_loader loader;
    amp_cuda_context *context;
    const amp_model *model;
    amp_cuda_loaded *loaded; /* by function of the model; |module| NULL: not loaded */
    bool *wanted;            /* by function: for amp_cuda_functions_load */
} amp_cuda_functions;

/* |threads|, |log|: of amp_cuda_loader.  The context and the model outlive it. */
amp_status amp_cuda_functions_make(amp_cuda_functions *functions, amp_cuda_context *context, const amp_model *model,
                                   int threads, const amp_log *log, const amp_allocator *allocator, amp_error *err);
void amp_cuda_functions_free(amp_cuda_functions *functions); /* zeros: a no-op */

/* Loads the functions that are wanted and not loaded, all of them or none, and allows each the shared memory that its
 * launches ask for.  Inside the context. */
amp_status amp_cuda_functions_load(amp_cuda_functions *functions, amp_error *err);

#ifdef __cplusplus
}
#endif

#endif
