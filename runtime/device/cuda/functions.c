/* functions.c: see functions.h. */
#include "runtime/device/cuda/functions.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/cuda_launch.h"

enum { STATIC_SHARED_LIMIT = 48 * 1024 /* more must be asked for */ };

static size_t loaded_bytes(const amp_cuda_functions *f) { return (size_t)f->model->function_count * sizeof *f->loaded; }

static size_t wanted_bytes(const amp_cuda_functions *f) { return (size_t)f->model->function_count * sizeof *f->wanted; }

amp_status amp_cuda_check_functions(const amp_model *m, const amp_cuda_device_info *device, amp_error *err) {
    for (int32_t i = 0; i < m->program_count; i++)
        for (int32_t j = 0; j < m->programs[i].kernel_count; j++) {
            const amp_model_cuda_kernel *k = &m->programs[i].cuda_kernels[j];
            const amp_model_cuda_function *last = &m->functions[k->choices.at[k->choices.count - 1].function];
            if (!amp_cuda_function_suits(last, device->arch))
                return amp_fail(err, AMP_UNSUPPORTED,
                                "%s: the kernel %s needs sm_%u, and %s is sm_%d; compile the model with --precision "
                                "fp16",
                                m->desc.name, last->entry, last->min_arch, device->name, device->arch);
        }
    return AMP_OK;
}

amp_status amp_cuda_functions_make(amp_cuda_functions *f, amp_cuda_context *c, const amp_model *model, int threads,
                                   const amp_log *log, const amp_allocator *allocator, amp_error *err) {
    *f = (amp_cuda_functions){
        .loader = {&c->driver, &c->latch, &c->info, allocator, threads, log}, .context = c, .model = model};
    f->loaded = amp_alloc_zeroed(allocator, loaded_bytes(f));
    f->wanted = amp_alloc_zeroed(allocator, wanted_bytes(f));
    if (f->loaded && f->wanted) return amp_cuda_check_functions(model, &c->info, err);
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to load its kernels", model->desc.name);
}

void amp_cuda_functions_free(amp_cuda_functions *f) {
    if (!f->context) return;
    if (f->loaded) amp_cuda_unload(&f->context->driver, &f->context->latch, f->loaded, f->model->function_count);
    amp_free(f->loader.allocator, f->loaded, loaded_bytes(f));
    amp_free(f->loader.allocator, f->wanted, wanted_bytes(f));
    *f = (amp_cuda_functions){0};
}

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

/* The most that a choice of |function| asks for, of those that the device can launch. */
static uint32_t most_shared(const amp_cuda_functions *f, uint32_t function) {
    const int device = f->context->info.max_shared_optin_bytes;
    uint32_t most = 0;
    for (int32_t i = 0; i < f->model->program_count; i++)
        for (int32_t j = 0; j < f->model->programs[i].kernel_count; j++) {
            const amp_model_cuda_kernel *k = &f->model->programs[i].cuda_kernels[j];
            for (uint32_t c = 0; c < k->choices.count; c++)
                if (k->choices.at[c].function == function && k->choices.at[c].shared_bytes > most &&
                    amp_cuda_choice_fits(k, c, device))
                    most = k->choices.at[c].shared_bytes;
        }
    return most;
}

static amp_status allow_shared(const amp_cuda_functions *f, uint32_t function, CuFunction loaded, amp_error *err) {
    const amp_cuda_device_info *device = &f->context->info;
    const uint32_t bytes = most_shared(f, function);
    if (bytes + AMP_CUDA_FIXED_SHARED <= STATIC_SHARED_LIMIT) return AMP_OK;
    if (bytes > (uint32_t)device->max_shared_optin_bytes)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: kernel %s takes %u bytes of shared memory; %s has %d",
                        f->model->desc.name, f->model->functions[function].entry, bytes, device->name,
                        device->max_shared_optin_bytes);
    return AMP_CUDA(f->context, err, function_set_attribute, (loaded, CU_FUNC_MAX_DYNAMIC_SHARED, (int)bytes));
}

/* A multiprocessor divides one memory into L1 and shared memory.  Launches for which the driver chooses different parts
 * cannot be on it together, which may keep them from overlapping.  Not measured, so only if it is asked for: all
 * functions prefer the most shared memory. */
static amp_status prefer_equal_parts(const amp_cuda_functions *f, CuFunction loaded, amp_error *err) {
    enum { ALL_OF_IT = 100 };
    const char *overlap = getenv("AMPC_OVERLAP");
    if (!overlap || strcmp(overlap, "equal") != 0) return AMP_OK;
    return AMP_CUDA(f->context, err, function_set_attribute, (loaded, CU_FUNC_PREFERRED_CARVEOUT, ALL_OF_IT));
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* Functions that are loaded together, one after the other. */
typedef struct Missing {
    uint32_t *numbers; /* of the model */
    amp_model_cuda_function *functions;
    amp_cuda_loaded *loaded;
    int count;
} Missing;

static bool is_missing(const amp_cuda_functions *f, int32_t i) { return f->wanted[i] && !f->loaded[i].module; }

static amp_status load_missing(amp_cuda_functions *f, Missing *m, amp_error *err) {
    amp_cuda_context *c = f->context;
    m->count = 0;
    for (int32_t i = 0; i < f->model->function_count; i++) {
        if (!is_missing(f, i)) continue;
        m->numbers[m->count] = (uint32_t)i;
        m->functions[m->count++] = f->model->functions[i];
    }
    AMP_TRY(amp_cuda_load(&f->loader, f->model->desc.cuda->prelude, m->functions, m->count, m->loaded, err));
    amp_status status = AMP_OK;
    for (int i = 0; i < m->count && !status; i++) {
        status = allow_shared(f, m->numbers[i], m->loaded[i].function, err);
        if (!status) status = prefer_equal_parts(f, m->loaded[i].function, err);
    }
    if (status) amp_cuda_unload(&c->driver, &c->latch, m->loaded, m->count);
    for (int i = 0; i < m->count && !status; i++) f->loaded[m->numbers[i]] = m->loaded[i];
    return status;
}

amp_status amp_cuda_functions_load(amp_cuda_functions *f, amp_error *err) {
    const amp_allocator *a = f->loader.allocator;
    size_t count = 0;
    for (int32_t i = 0; i < f->model->function_count; i++) count += is_missing(f, i);
    if (!count) return AMP_OK;
    Missing m = {.numbers = amp_alloc(a, count * sizeof *m.numbers),
                 .functions = amp_alloc(a, count * sizeof *m.functions),
                 .loaded = amp_alloc(a, count * sizeof *m.loaded)};
    amp_status status =
        m.numbers && m.functions && m.loaded
            ? load_missing(f, &m, err)
            : amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to load its kernels", f->model->desc.name);
    amp_free(a, m.numbers, count * sizeof *m.numbers);
    amp_free(a, m.functions, count * sizeof *m.functions);
    amp_free(a, m.loaded, count * sizeof *m.loaded);
    return status;
}
