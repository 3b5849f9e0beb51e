/* driver.c: see driver.h. */
#define _GNU_SOURCE /* RTLD_NODELETE */
#include "runtime/device/cuda/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "runtime/device/cuda/error.h"

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

static amp_status check_ordinal(const CudaDriver *driver, int ordinal, amp_error *err) {
    int count = 0;
    AMP_TRY(CUDA_CHECKED(driver, NULL, err, device_count, (&count)));
    if (count == 0)
        return amp_fail(err, AMP_NOT_FOUND,
                        "no CUDA device: the NVIDIA driver (CUDA %d.%d) finds none; is CUDA_VISIBLE_DEVICES set to "
                        "leave one out?",
                        driver->version / 1000, driver->version % 1000 / 10);
    if (ordinal >= 0 && ordinal < count) return AMP_OK;
    return amp_fail(err, AMP_NOT_FOUND, "no CUDA device %d: there %s %d, numbered from 0", ordinal,
                    count == 1 ? "is" : "are", count);
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
    AMP_TRY(check_ordinal(driver, ordinal, err));
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
