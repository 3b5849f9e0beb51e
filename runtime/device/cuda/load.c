/* load.c: see load.h. */
#include "runtime/device/cuda/load.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

enum { LOG_BYTES = 1024 };

typedef struct Load {
    const amp_cuda_loader *loader;
    const char *prelude;
    const amp_model_cuda_function *functions;
    int count;
    amp_cuda_compile_options options;
    amp_cuda_image *images;
    amp_cuda_loaded *out;
} Load;

/* ---- one module ---- */

static bool refuses_machine_code(const amp_cuda_image *image, CuResult result) {
    return image->is_cubin && (result == CU_NO_BINARY_FOR_GPU || result == CU_INVALID_IMAGE);
}

/* |result|: the driver's, for an image that it may refuse. */
static amp_status load_module(const Load *l, int i, CuResult *result, amp_error *err) {
    const amp_cuda_loader *loader = l->loader;
    char log[LOG_BYTES] = "";
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_SIZE};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    AMP_TRY(amp_cuda_latch_check(loader->latch, err));
    *result = loader->driver->module_load(&l->out[i].module, l->images[i].data, 2, options, values);
    if (*result == CU_SUCCESS) return AMP_OK;
    l->out[i].module = NULL;
    amp_error why = {0};
    amp_status status = amp_cuda_result(loader->driver, loader->latch, CUDA_CALL_module_load, *result, &why);
    return amp_fail(err, status, "kernel %s: %s%s%.*s", l->functions[i].entry, why.message, *log ? ": " : "",
                    (int)strcspn(log, "\n"), log);
}

/* What the image does not say, the driver may know. */
static amp_status ask_attribute(const Load *l, CuFunction function, int attribute, int32_t *value, amp_error *err) {
    int read = 0;
    if (*value >= 0) return AMP_OK;
    AMP_TRY(CUDA_CHECKED(l->loader->driver, l->loader->latch, err, function_attribute, (&read, attribute, function)));
    *value = read;
    return AMP_OK;
}

static amp_status describe(const Load *l, int i, amp_error *err) {
    const amp_cuda_image *image = &l->images[i];
    amp_cuda_loaded *to = &l->out[i];
    const char *entry = l->functions[i].entry;
    AMP_TRY(
        CUDA_CHECKED(l->loader->driver, l->loader->latch, err, module_function, (&to->function, to->module, entry)));
    to->origin = image->origin;
    to->is_cubin = image->is_cubin;
    to->compile_seconds += image->compile_seconds;
    to->registers = image->registers;
    to->shared_bytes = image->shared_bytes;
    to->spill_bytes = image->spill_bytes;
    to->stack_bytes = image->stack_bytes;
    AMP_TRY(ask_attribute(l, to->function, CU_FUNC_REGISTERS, &to->registers, err));
    AMP_TRY(ask_attribute(l, to->function, CU_FUNC_SHARED_BYTES, &to->shared_bytes, err));
    return ask_attribute(l, to->function, CU_FUNC_LOCAL_BYTES, &to->stack_bytes, err);
}

/* Again with PTX. */
static amp_status load_as_ptx(Load *l, int i, amp_error *err) {
    CuResult result;
    l->out[i].compile_seconds += l->images[i].compile_seconds;
    amp_cuda_images_free(&l->images[i], 1);
    l->options.machine_code = false; /* and so for all that are not compiled yet */
    AMP_TRY(amp_cuda_compile(&l->options, l->prelude, &l->functions[i], 1, &l->images[i], err));
    return load_module(l, i, &result, err);
}

static amp_status load_function(Load *l, int i, amp_error *err) {
    CuResult result = CU_SUCCESS;
    amp_status status = load_module(l, i, &result, err);
    if (status && refuses_machine_code(&l->images[i], result)) status = load_as_ptx(l, i, err);
    return status ? status : describe(l, i, err);
}

/* ---- all ---- */

/* The one that is compiled alone, to see what the driver takes. */
static int shortest(const amp_model_cuda_function *functions, int count) {
    int best = 0;
    for (int i = 1; i < count; i++)
        if (strlen(functions[i].source) < strlen(functions[best].source)) best = i;
    return best;
}

static amp_status load_all(Load *l, amp_error *err) {
    int probe = shortest(l->functions, l->count);
    AMP_TRY(amp_cuda_latch_check(l->loader->latch, err));
    AMP_TRY(amp_cuda_compile(&l->options, l->prelude, &l->functions[probe], 1, &l->images[probe], err));
    AMP_TRY(load_function(l, probe, err));
    AMP_TRY(amp_cuda_compile(&l->options, l->prelude, l->functions, l->count, l->images, err));
    for (int i = 0; i < l->count; i++)
        if (i != probe) AMP_TRY(load_function(l, i, err));
    return AMP_OK;
}

amp_status amp_cuda_load(const amp_cuda_loader *loader, const char *prelude, const amp_model_cuda_function *functions,
                         int count, amp_cuda_loaded *out, amp_error *err) {
    memset(out, 0, (size_t)count * sizeof *out);
    if (count == 0) return AMP_OK;
    Load l = {.loader = loader, .prelude = prelude, .functions = functions, .count = count, .out = out};
    l.options = (amp_cuda_compile_options){.arch = loader->device->arch,
                                           .threads = loader->threads,
                                           .machine_code = true,
                                           .device_name = loader->device->name};
    size_t bytes = (size_t)count * sizeof *l.images;
    l.images = amp_alloc_zeroed(loader->allocator, bytes);
    if (!l.images) return amp_fail(err, AMP_OUT_OF_MEMORY, "out of memory before loading %d CUDA functions", count);
    amp_status status = load_all(&l, err);
    if (status) amp_cuda_unload(loader->driver, loader->latch, out, count);
    amp_cuda_images_free(l.images, count);
    amp_free(loader->allocator, l.images, bytes);
    return status;
}

void amp_cuda_unload(const CudaDriver *driver, const amp_cuda_latch *latch, amp_cuda_loaded *loaded, int count) {
    for (int i = 0; i < count; i++) {
        if (loaded[i].module && !amp_cuda_latch_is_set(latch)) driver->module_unload(loaded[i].module);
        loaded[i] = (amp_cuda_loaded){0};
    }
}
