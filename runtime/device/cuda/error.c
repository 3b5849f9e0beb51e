/* error.c: see error.h. */
#include "runtime/device/cuda/error.h"

#include <stddef.h>

#include "base/error.h"

const char *amp_cuda_call_symbol(CudaCall call) {
    static const char *const symbols[CUDA_CALL_COUNT] = {
#define CUDA_SYMBOL(name, symbol, parameters) #symbol,
        CUDA_DRIVER_CALLS(CUDA_SYMBOL)
#undef CUDA_SYMBOL
    };
    return symbols[call];
}

/* NVIDIA's document of CUresult says of a fatal one that the process must be terminated or the context is unusable; of
 * 4 that the driver is shutting down; of 214 and 220 that memory or a link went wrong during a kernel. */
enum { FATAL = 1 };
static const struct {
    CuResult result;
    amp_status status;
    int fatal;
} meanings[] = {
    {CU_OUT_OF_MEMORY, AMP_OUT_OF_MEMORY, 0},
    {CU_DEINITIALIZED, AMP_DEVICE_FAILED, FATAL},
    {CU_STUB_LIBRARY, AMP_UNSUPPORTED, 0},
    {46 /* DEVICE_UNAVAILABLE */, AMP_UNSUPPORTED, 0},
    {CU_NO_DEVICE, AMP_NOT_FOUND, 0},
    {CU_INVALID_DEVICE, AMP_NOT_FOUND, 0},
    {CU_INVALID_IMAGE, AMP_BAD_FILE, 0},
    {CU_NO_BINARY_FOR_GPU, AMP_UNSUPPORTED, 0},
    {214 /* ECC_UNCORRECTABLE */, AMP_DEVICE_FAILED, FATAL},
    {CU_INVALID_PTX, AMP_BAD_FILE, 0},
    {220 /* NVLINK_UNCORRECTABLE */, AMP_DEVICE_FAILED, FATAL},
    {221 /* JIT_COMPILER_NOT_FOUND */, AMP_UNSUPPORTED, 0},
    {CU_UNSUPPORTED_PTX_VERSION, AMP_UNSUPPORTED, 0},
    {223 /* JIT_COMPILATION_DISABLED */, AMP_UNSUPPORTED, 0},
    {226 /* CONTAINED */, AMP_DEVICE_FAILED, FATAL},
    {CU_ILLEGAL_ADDRESS, AMP_DEVICE_FAILED, FATAL},
    {CU_LAUNCH_TIMEOUT, AMP_DEVICE_FAILED, FATAL},
    {709 /* CONTEXT_IS_DESTROYED */, AMP_DEVICE_FAILED, FATAL},
    {CU_ASSERT, AMP_DEVICE_FAILED, FATAL},
    {CU_HARDWARE_STACK_ERROR, AMP_DEVICE_FAILED, FATAL},
    {CU_ILLEGAL_INSTRUCTION, AMP_DEVICE_FAILED, FATAL},
    {CU_MISALIGNED_ADDRESS, AMP_DEVICE_FAILED, FATAL},
    {CU_INVALID_ADDRESS_SPACE, AMP_DEVICE_FAILED, FATAL},
    {CU_INVALID_PC, AMP_DEVICE_FAILED, FATAL},
    {CU_LAUNCH_FAILED, AMP_DEVICE_FAILED, FATAL},
    {721 /* TENSOR_MEMORY_LEAK */, AMP_DEVICE_FAILED, FATAL},
    {CU_NOT_PERMITTED, AMP_UNSUPPORTED, 0},
    {CU_NOT_SUPPORTED, AMP_UNSUPPORTED, 0},
    {CU_SYSTEM_NOT_READY, AMP_UNSUPPORTED, 0},
    {CU_SYSTEM_DRIVER_MISMATCH, AMP_UNSUPPORTED, 0},
    {804 /* COMPAT_NOT_SUPPORTED_ON_DEVICE */, AMP_UNSUPPORTED, 0},
    {810 /* MPS_CLIENT_TERMINATED */, AMP_DEVICE_FAILED, FATAL},
    {CU_STREAM_CAPTURE_UNSUPPORTED, AMP_WRONG_STATE, 0},
    {CU_STREAM_CAPTURE_INVALIDATED, AMP_WRONG_STATE, 0},
};

static int meaning_of(CuResult result) { /* -1: none */
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (meanings[i].result == result) return (int)i;
    return -1;
}

bool amp_cuda_result_is_fatal(CuResult result) {
    int i = meaning_of(result);
    return i >= 0 && meanings[i].fatal;
}

amp_status amp_cuda_result_status(CuResult result) {
    if (result == CU_SUCCESS) return AMP_OK;
    int i = meaning_of(result);
    return i >= 0 ? meanings[i].status : AMP_INTERNAL;
}

/* ---- the latch ---- */

enum { LATCH_OPEN, LATCH_WRITING, LATCH_SET };

bool amp_cuda_latch_is_set(const amp_cuda_latch *latch) {
    return latch && __atomic_load_n(&latch->state, __ATOMIC_ACQUIRE) == LATCH_SET;
}

amp_status amp_cuda_latch_check(const amp_cuda_latch *latch, amp_error *err) {
    if (!amp_cuda_latch_is_set(latch)) return AMP_OK;
    return amp_fail(err, latch->first.code, "the device failed earlier: %s", latch->first.message);
}

void amp_cuda_latch_set(amp_cuda_latch *latch, const amp_error *first) {
    int open = LATCH_OPEN;
    if (!latch ||
        !__atomic_compare_exchange_n(&latch->state, &open, LATCH_WRITING, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    latch->first = *first;
    __atomic_store_n(&latch->state, LATCH_SET, __ATOMIC_RELEASE);
}

/* ---- results ---- */

static const char *text_or(CuResult (*get)(CuResult, const char **), CuResult result, const char *otherwise) {
    const char *text = NULL;
    return get && get(result, &text) == CU_SUCCESS && text ? text : otherwise;
}

static const char *advice(CuResult result) {
    static const struct {
        CuResult result;
        const char *text;
    } advices[] = {
        {CU_STUB_LIBRARY, "; the libcuda.so.1 that was found is the toolkit's stub: take its folder out of "
                          "LD_LIBRARY_PATH and install NVIDIA's driver"},
        {46 /* DEVICE_UNAVAILABLE */, "; another process holds the GPU (nvidia-smi shows which): wait for its end"},
        {CU_NO_DEVICE, "; the NVIDIA driver finds no GPU: is CUDA_VISIBLE_DEVICES set to leave it out? else use the "
                       "device \"cpu\""},
        {CU_SYSTEM_NOT_READY, "; the system's services for GPUs do not run yet (nvidia-fabricmanager)"},
        {CU_SYSTEM_DRIVER_MISMATCH, "; restart the machine after installing a driver"},
        {CU_UNSUPPORTED_PTX_VERSION, "; NVRTC or the model's PTX is newer than the driver: install a newer driver or "
                                     "the NVRTC of the driver's CUDA version"},
    };
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
        if (advices[i].result == result) return advices[i].text;
    return "";
}

amp_status amp_cuda_result(const CudaDriver *driver, amp_cuda_latch *latch, CudaCall call, CuResult result,
                           amp_error *err) {
    if (result == CU_SUCCESS) return AMP_OK;
    amp_error own, *to = err ? err : &own; /* the latch wants the message even where the caller does not */
    amp_status status =
        amp_fail(to, amp_cuda_result_status(result), "%s: %s (%d): %s%s", amp_cuda_call_symbol(call),
                 text_or(driver->get_error_name, result, "an error without a name"), result,
                 text_or(driver->get_error_string, result, "the driver does not know it"), advice(result));
    if (amp_cuda_result_is_fatal(result)) amp_cuda_latch_set(latch, to);
    return status;
}
