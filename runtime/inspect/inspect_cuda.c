/* inspect_cuda.c: what this machine has for CUDA, by the functions by which sessions look for it. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cuda_sdk/cublaslt.h"
#include "cuda_sdk/nvrtc.h"
#include "runtime/device/cuda/cache.h"
#include "runtime/device/cuda/cuda_driver.h"
#include "runtime/device/cuda/functions.h"
#include "runtime/device/cuda/load.h"
#include "runtime/inspect/inspect_tables.h"

/* ---- software ---------------------------------------------------------------------------------------------------- */

static void set_path(amp_cuda_found *out, const char *path) { snprintf(out->path, sizeof out->path, "%s", path); }

static amp_status find_driver(amp_cuda_found *out, amp_error *err) {
    CudaDriver driver;
    int count;
    AMP_TRY(amp_cuda_driver_open(&driver, err));
    amp_library_path(driver.library, out->path, sizeof out->path);
    out->version = driver.version;
    out->devices = driver.device_count(&count) ? 0 : count;
    amp_cuda_driver_close(&driver);
    return AMP_OK;
}

static amp_status find_nvrtc(amp_cuda_found *out, amp_error *err) {
    enum { ARCHS = 64 };
    amp_nvrtc *nvrtc;
    int archs[ARCHS];
    AMP_TRY(amp_nvrtc_open(NULL, &nvrtc, err));
    int count = amp_nvrtc_architectures(nvrtc, archs, ARCHS);
    if (count > ARCHS) count = ARCHS;
    set_path(out, amp_nvrtc_path(nvrtc));
    out->version = amp_nvrtc_version(nvrtc);
    out->least_arch = count ? archs[0] : 0;
    out->most_arch = count ? archs[count - 1] : 0;
    amp_nvrtc_close(nvrtc);
    return AMP_OK;
}

/* For the driver that is there. */
static amp_status find_cublaslt(amp_cuda_found *out, amp_error *err) {
    CudaDriver driver;
    amp_cublaslt cublaslt;
    const int version = amp_cuda_driver_open(&driver, NULL) ? 0 : driver.version;
    amp_cuda_driver_close(&driver);
    AMP_TRY(amp_cublaslt_open(&cublaslt, version, err));
    amp_library_path(cublaslt.library, out->path, sizeof out->path);
    out->version = cublaslt.version;
    return AMP_OK;
}

static amp_status find_cache(amp_cuda_found *out, amp_error *err) {
    amp_cuda_cache *cache = amp_cuda_cache_open(NULL);
    if (!cache)
        return amp_fail(err, AMP_NOT_FOUND,
                        "no cache of compiled kernels: AMPC_CACHE_LIMIT is 0, or AMPC_CACHE_DIR, XDG_CACHE_HOME or "
                        "HOME must name a folder of yours that no other user may write to");
    set_path(out, amp_cuda_cache_folder(cache));
    amp_cuda_cache_close(cache);
    return AMP_OK;
}

amp_status amp_cuda_find(amp_cuda_software what, amp_cuda_found *out, amp_error *err) {
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_cuda_find: out is NULL");
    *out = (amp_cuda_found){0};
    switch (what) {
    case AMP_CUDA_DRIVER: return find_driver(out, err);
    case AMP_CUDA_NVRTC: return find_nvrtc(out, err);
    case AMP_CUDA_CACHE: return find_cache(out, err);
    case AMP_CUDA_CUBLASLT: return find_cublaslt(out, err);
    }
    return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_cuda_find: there is no software %d", (int)what);
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

amp_status amp_gpu_at(int32_t index, amp_gpu_info *out, amp_error *err) {
    CudaDriver driver;
    amp_cuda_device_info found;
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_gpu_at: out is NULL");
    *out = (amp_gpu_info){0};
    AMP_TRY(amp_cuda_driver_open(&driver, err));
    const amp_status status = amp_cuda_device_find(&driver, index, &found, err);
    amp_cuda_driver_close(&driver);
    if (status) return status;
    *out = (amp_gpu_info){
        .index = index, .arch = found.arch, .multiprocessors = found.multiprocessors, .memory = found.memory_bytes};
    snprintf(out->name, sizeof out->name, "%s", found.name);
    return AMP_OK;
}

static amp_cuda_device_info device_of(const amp_gpu_info *gpu) {
    amp_cuda_device_info device = {.ordinal = gpu->index, .arch = gpu->arch};
    snprintf(device.name, sizeof device.name, "%s", gpu->name);
    return device;
}

amp_status amp_model_check_gpu(const amp_model *model, const amp_gpu_info *gpu, amp_error *err) {
    static const amp_dtype lows[] = {AMP_DT_F16, AMP_DT_BF16, AMP_DT_TF32, AMP_DT_F32};
    if (!model || !gpu) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_model_check_gpu: model or gpu is NULL");
    const amp_cuda_device_info device = device_of(gpu);
    for (size_t i = 0; model->desc.low && i < sizeof lows / sizeof lows[0]; i++)
        if (!strcmp(model->desc.low, amp_dtype_name(lows[i]))) return amp_cuda_check_precision(&device, lows[i], err);
    return AMP_OK;
}

/* ---- a model's kernels ------------------------------------------------------------------------------------------- */

amp_status amp_model_kernel_sources(const amp_model *model, const amp_gpu_info *gpu, int32_t ptx_alone,
                                    amp_kernel_sources *out, amp_error *err) {
    const amp_model *m;
    amp_cuda_origins found = {0};
    if (!gpu || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_model_kernel_sources: gpu or out is NULL");
    *out = (amp_kernel_sources){0};
    AMP_TRY(amp_inspect_target("amp_model_kernel_sources", model, "cuda", &m, err));
    const amp_cuda_device_info device = device_of(gpu);
    const amp_cuda_compile_options options = {
        .arch = gpu->arch, .threads = 1, .machine_code = !ptx_alone, .device_name = gpu->name};
    AMP_TRY(amp_cuda_check_functions(m, &device, err));
    const amp_status status =
        amp_cuda_find_origins(&options, m->desc.cuda->prelude, m->functions, m->function_count, &found, err);
    *out = (amp_kernel_sources){.model = found.from[AMP_CUDA_FROM_MODEL],
                                .model_ptx = found.model_ptx,
                                .cache = found.from[AMP_CUDA_FROM_CACHE],
                                .nvrtc = found.from[AMP_CUDA_FROM_NVRTC]};
    return status;
}
