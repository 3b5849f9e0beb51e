/* cuda_driver.c: see cuda_driver.h. */
#define _GNU_SOURCE /* RTLD_NODELETE */
#include "runtime/device/cuda/cuda_driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"

/* ---- what a call that failed means ------------------------------------------------------------------------------- */

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
    const bool peer = latch->first.code == AMP_PEER_FAILED; /* the device is all right */
    return amp_fail(err, latch->first.code, "%s%s", peer ? "" : "the device failed earlier: ", latch->first.message);
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
    /* What a call waited for may have been ended by what is in the latch since. */
    if (result == CU_SUCCESS || result == AMP_CUDA_NOT_CALLED) return amp_cuda_latch_check(latch, err);
    amp_error own, *to = err ? err : &own; /* the latch wants the message even where the caller does not */
    amp_status status =
        amp_fail(to, amp_cuda_result_status(result), "%s: %s (%d): %s%s", amp_cuda_call_symbol(call),
                 text_or(driver->get_error_name, result, "an error without a name"), result,
                 text_or(driver->get_error_string, result, "the driver has no text for it"), advice(result));
    if (amp_cuda_result_is_fatal(result)) amp_cuda_latch_set(latch, to);
    return status;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* The loader's path, and where the driver of the host is under WSL. */
static const char *const library_names[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};

static amp_status fail_library(const char *why, amp_error *err) {
    if (why && !strstr(why, strerror(ENOENT)))
        return amp_fail(err, AMP_BAD_FILE, "NVIDIA's driver library cannot be opened: %s", why);
    return amp_fail(
        err, AMP_NOT_FOUND,
        "no NVIDIA driver: libcuda.so.1 is not in the loader's path; install NVIDIA's driver (525 or newer), "
        "in a container start it with GPU access (--gpus all), or use the device \"cpu\"");
}

static amp_status open_library(void **out, amp_error *err) {
    const char *first = NULL;
    char text[300] = "";
    for (size_t i = 0; i < sizeof library_names / sizeof *library_names; i++) {
        *out = dlopen(library_names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (*out) return AMP_OK;
        const char *why = dlerror();
        if (why && !first) first = strncpy(text, why, sizeof text - 1);
    }
    return fail_library(first, err);
}

/* How a driver that lacks |symbol| names itself: it may well have the call for its version. */
static amp_status fail_symbol(void *library, const char *symbol, amp_error *err) {
    CuResult (*get_version)(int *) = NULL;
    void *address = dlsym(library, "cuDriverGetVersion");
    memcpy(&get_version, &address, sizeof address);
    int version = 0;
    if (!get_version || get_version(&version) != CU_SUCCESS || version <= 0)
        return amp_fail(err, AMP_BAD_FILE, "libcuda.so.1 is not NVIDIA's driver: it has no %s", symbol);
    return amp_fail(
        err, AMP_UNSUPPORTED,
        "the NVIDIA driver is too old: it has no %s and is for CUDA %d.%d; CUDA 12.0 is needed (driver 525 or "
        "newer)",
        symbol, version / 1000, version % 1000 / 10);
}

static amp_status fill_table(CudaDriver *driver, amp_error *err) {
    const struct {
        const char *symbol;
        void *member;
    } entries[] = {
#define CUDA_ENTRY(name, symbol, parameters) {#symbol, &driver->name},
        CUDA_DRIVER_CALLS(CUDA_ENTRY)
#undef CUDA_ENTRY
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *address = dlsym(driver->library, entries[i].symbol);
        if (!address) return fail_symbol(driver->library, entries[i].symbol, err);
        memcpy(entries[i].member, &address, sizeof address); /* POSIX: pointers to functions are like those to data */
    }
    return AMP_OK;
}

/* What cuInit says is more telling than a version, and a stub has none. */
static amp_status start(CudaDriver *driver, amp_error *err) {
    AMP_TRY(CUDA_CHECKED(driver, NULL, err, init, (0)));
    AMP_TRY(CUDA_CHECKED(driver, NULL, err, driver_version, (&driver->version)));
    if (driver->version >= AMP_CUDA_MIN_DRIVER) return AMP_OK;
    return amp_fail(err, AMP_UNSUPPORTED,
                    "the NVIDIA driver is too old: it is for CUDA %d.%d; CUDA 12.0 is needed (driver 525 or newer)",
                    driver->version / 1000, driver->version % 1000 / 10);
}

amp_status amp_cuda_driver_open(CudaDriver *out, amp_error *err) {
    memset(out, 0, sizeof *out);
    AMP_TRY(open_library(&out->library, err));
    amp_status status = fill_table(out, err);
    if (!status) status = start(out, err);
    if (status) amp_cuda_driver_close(out);
    return status;
}

void amp_cuda_driver_close(CudaDriver *driver) {
    if (driver->library) dlclose(driver->library);
    memset(driver, 0, sizeof *driver);
}

/* ---- devices ---- */

static amp_status check_ordinal(const CudaDriver *driver, int ordinal, int *count, amp_error *err) {
    AMP_TRY(CUDA_CHECKED(driver, NULL, err, device_count, (count)));
    if (*count == 0)
        return amp_fail(err, AMP_NOT_FOUND,
                        "no CUDA device: the NVIDIA driver (CUDA %d.%d) finds none; is CUDA_VISIBLE_DEVICES set to "
                        "leave one out?",
                        driver->version / 1000, driver->version % 1000 / 10);
    if (ordinal >= 0 && ordinal < *count) return AMP_OK;
    return amp_fail(err, AMP_NOT_FOUND, "no CUDA device %d: there %s %d, numbered from 0", ordinal,
                    *count == 1 ? "is" : "are", *count);
}

static amp_status read_attributes(const CudaDriver *driver, amp_cuda_device_info *info, amp_error *err) {
    int major = 0, minor = 0;
    const struct {
        int attribute, *value;
    } reads[] = {
        {CU_ATTR_CC_MAJOR, &major},
        {CU_ATTR_CC_MINOR, &minor},
        {CU_ATTR_MULTIPROCESSORS, &info->multiprocessors},
        {CU_ATTR_WARP_SIZE, &info->warp_size},
        {CU_ATTR_MAX_THREADS_PER_BLOCK, &info->max_threads_per_block},
        {CU_ATTR_MAX_SHARED_PER_BLOCK, &info->max_shared_bytes},
        {CU_ATTR_MAX_SHARED_PER_BLOCK_OPTIN, &info->max_shared_optin_bytes},
    };
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
        AMP_TRY(CUDA_CHECKED(driver, NULL, err, device_attribute, (reads[i].value, reads[i].attribute, info->device)));
    info->arch = 10 * major + minor;
    return AMP_OK;
}

amp_status amp_cuda_device_find(const CudaDriver *driver, int ordinal, amp_cuda_device_info *out, amp_error *err) {
    memset(out, 0, sizeof *out);
    out->ordinal = ordinal;
    AMP_TRY(check_ordinal(driver, ordinal, &out->devices, err));
    AMP_TRY(CUDA_CHECKED(driver, NULL, err, device_get, (&out->device, ordinal)));
    AMP_TRY(CUDA_CHECKED(driver, NULL, err, device_name, (out->name, sizeof out->name, out->device)));
    out->name[sizeof out->name - 1] = '\0';
    AMP_TRY(CUDA_CHECKED(driver, NULL, err, device_total_memory, (&out->memory_bytes, out->device)));
    AMP_TRY(read_attributes(driver, out, err));
    if (out->arch >= AMP_CUDA_MIN_ARCH) return AMP_OK;
    return amp_fail(
        err, AMP_UNSUPPORTED,
        "CUDA device %d (%s) has compute capability %d.%d, and 7.5 or newer is needed; use the device \"cpu\"", ordinal,
        out->name, out->arch / 10, out->arch % 10);
}

amp_status amp_cuda_check_precision(const amp_cuda_device_info *device, amp_dtype low, amp_error *err) {
    bool needs_newer = low == AMP_DT_BF16 || low == AMP_DT_TF32;
    if (!needs_newer || device->arch >= AMP_CUDA_MIN_ARCH_BF16) return AMP_OK;
    return amp_fail(err, AMP_UNSUPPORTED,
                    "CUDA device %d (%s) has compute capability %d.%d, which has no %s; compile the model with "
                    "--precision fp16, or use a device of 8.0 or newer",
                    device->ordinal, device->name, device->arch / 10, device->arch % 10, amp_dtype_name(low));
}
