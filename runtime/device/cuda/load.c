/* load.c: see load.h. */
#define _XOPEN_SOURCE 700
#include "runtime/device/cuda/load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "cuda_sdk/nvrtc.h"
#include "runtime/device/cuda/cache.h"

/* ---- images ------------------------------------------------------------------------------------------------------ */

enum { MAX_THREADS = 64, MAX_ARCHITECTURES = 64 };

/* One function that no image of the model serves at once.  A thread of its own may work on it: its memory is malloc's
 * (the allocator NULL), not the application's. */
typedef struct CompileJob {
    const amp_model_cuda_function *function;
    amp_cuda_image *image;
    amp_status status;
    amp_error error;
} CompileJob;

typedef struct CompileWork {
    const amp_cuda_compile_options *options;
    const char *prelude;
    const amp_nvrtc *nvrtc;
    amp_cuda_cache *cache;
    int arch; /* that NVRTC compiles for */
    bool cubin, quick;
    CompileJob *jobs;
    int count;
    atomic_int next, done, compiled;
} CompileWork;

/* ---- images of the model ---- */

static bool image_at(const amp_model_cuda_function *f, uint32_t i, amp_model_cuda_image *out) {
    if (i < f->images.count) *out = ((const amp_model_cuda_image *)f->images.data)[i];
    return i < f->images.count;
}

/* Code with a suffix (sm_90a) runs on exactly its architecture; the PTX of others on every later one, too. */
static bool runs_on(const amp_model_cuda_image *image, int arch) {
    if (image->is_cubin || image->suffix) return image->arch == (uint32_t)arch;
    return image->arch <= (uint32_t)arch;
}

static bool take_from_model(const amp_model_cuda_function *f, int arch, bool cubin, amp_cuda_image *out) {
    amp_model_cuda_image best = {0}, image;
    for (uint32_t i = 0; image_at(f, i, &image); i++) {
        bool better = image.arch > best.arch || (image.arch == best.arch && image.suffix > best.suffix);
        if (!image.is_cubin == !cubin && runs_on(&image, arch) && better) best = image;
    }
    if (!best.arch) return false;
    *out = (amp_cuda_image){.data = best.data,
                            .size = (size_t)best.size,
                            .is_cubin = cubin,
                            .origin = AMP_CUDA_FROM_MODEL,
                            .arch = (int)best.arch,
                            .registers = best.registers,
                            .shared_bytes = best.shared_bytes,
                            .spill_bytes = best.spill_bytes,
                            .stack_bytes = best.stack_bytes};
    return true;
}

/* ---- the cache and NVRTC ---- */

/* What NVRTC compiles; NULL: out of memory. */
static char *text_of(const CompileWork *w, const amp_model_cuda_function *f, size_t *size) {
    const amp_model_cuda_range all = {0, (uint32_t)strlen(w->prelude)};
    const amp_model_cuda_range *parts = f->prelude.at ? f->prelude.at : &all;
    const uint32_t count = f->prelude.at ? f->prelude.count : 1;
    *size = strlen(f->source) + 1;
    for (uint32_t i = 0; i < count; i++) *size += parts[i].size;
    char *text = amp_alloc(NULL, *size), *to = text;
    for (uint32_t i = 0; text && i < count; to += parts[i++].size) memcpy(to, w->prelude + parts[i].at, parts[i].size);
    if (text) strcpy(to, f->source);
    return text;
}

static amp_cuda_cache_key key_of(const CompileWork *w, const char *text) {
    const char *parts[] = {text, amp_nvrtc_build(w->nvrtc), AMP_NVRTC_OPTIONS, AMP_NVRTC_LEAN, AMP_NVRTC_QUICK};
    return amp_cuda_cache_key_of(parts, w->quick ? 5 : 4, amp_nvrtc_version(w->nvrtc), w->arch, w->cubin);
}

static bool take_from_cache(const CompileWork *w, const amp_cuda_cache_key *key, amp_cuda_image *out) {
    amp_cuda_cache_entry e;
    if (!amp_cuda_cache_get(w->cache, key, &e)) return false;
    *out = (amp_cuda_image){.data = e.image, /* the cache's allocator is malloc, too */
                            .size = e.size,
                            .is_cubin = e.is_cubin,
                            .owned = true,
                            .origin = AMP_CUDA_FROM_CACHE,
                            .arch = w->arch,
                            .registers = e.registers,
                            .shared_bytes = e.shared_bytes,
                            .spill_bytes = e.spill_bytes,
                            .stack_bytes = e.stack_bytes};
    return true;
}

static void put_into_cache(const CompileWork *w, const amp_cuda_cache_key *key, const amp_cuda_image *image) {
    amp_cuda_cache_entry e = {(void *)image->data, image->size,        image->is_cubin,   image->registers,
                              image->shared_bytes, image->spill_bytes, image->stack_bytes};
    amp_cuda_cache_put(w->cache, key, &e);
}

/* Takes the part that is wanted out of |r|. */
static void take_from_result(const CompileWork *w, amp_nvrtc_result *r, amp_cuda_image *out) {
    char **data = w->cubin ? &r->cubin : &r->ptx;
    const amp_nvrtc_kernel_use *use = r->use_count ? &r->uses[0] : NULL;
    *out = (amp_cuda_image){.data = *data,
                            .size = w->cubin ? r->cubin_size : r->ptx_size,
                            .is_cubin = w->cubin,
                            .owned = true,
                            .origin = AMP_CUDA_FROM_NVRTC,
                            .arch = w->arch,
                            .registers = use ? use->registers : -1,
                            .shared_bytes = use ? use->shared_bytes : -1,
                            .spill_bytes = use ? use->spill_stores + use->spill_loads : -1,
                            .stack_bytes = use ? use->stack_bytes : -1,
                            .compile_seconds = r->seconds};
    *data = NULL;
}

static amp_status compile(const CompileWork *w, const char *text, const char *name, amp_cuda_image *out,
                          amp_error *err) {
    amp_nvrtc_result result;
    static const char *const quick[] = {AMP_NVRTC_QUICK};
    amp_nvrtc_job job = {
        .source = text, .name = name, .arch = w->arch, .cubin = w->cubin, .options = quick, .option_count = w->quick};
    amp_status status = amp_nvrtc_compile_lean(w->nvrtc, &job, AMP_NVRTC_LEAN, &result, err);
    if (status) return status;
    take_from_result(w, &result, out);
    amp_nvrtc_result_free(w->nvrtc, &result);
    return out->data ? AMP_OK : amp_fail(err, AMP_INTERNAL, "%s: NVRTC compiled it, but returned no code", name);
}

static amp_status compile_job(CompileWork *w, const CompileJob *job, const char *text, amp_error *err) {
    const amp_cuda_cache_key key = key_of(w, text);
    if (take_from_cache(w, &key, job->image)) return AMP_OK;
    AMP_TRY(compile(w, text, job->function->entry, job->image, err));
    put_into_cache(w, &key, job->image);
    atomic_fetch_add(&w->compiled, 1);
    return AMP_OK;
}

static void run_job(CompileWork *w, CompileJob *job) {
    size_t size;
    char *text = text_of(w, job->function, &size);
    if (text) job->status = compile_job(w, job, text, &job->error);
    else
        job->status =
            amp_fail(&job->error, AMP_OUT_OF_MEMORY, "%s: out of memory before compiling", job->function->entry);
    amp_free(NULL, text, text ? size : 0);
}

static void *run_jobs(void *work) {
    CompileWork *w = work;
    for (int i; (i = atomic_fetch_add(&w->next, 1)) < w->count; atomic_fetch_add(&w->done, 1)) run_job(w, &w->jobs[i]);
    return NULL;
}

/* The same by the thread that called the library, which says how far all of them are. */
static void run_jobs_aloud(CompileWork *w) {
    for (int i; (i = atomic_fetch_add(&w->next, 1)) < w->count;) {
        run_job(w, &w->jobs[i]);
        int done = atomic_fetch_add(&w->done, 1) + 1;
        if (atomic_load(&w->compiled) && done < w->count)
            amp_log_say(w->options->log, AMP_LOG_PROGRESS, "%d of %d CUDA kernels are ready for sm_%d", done, w->count,
                        w->arch);
    }
}

static void say_origins(const CompileWork *w) {
    int compiled = atomic_load(&w->compiled);
    const char *folder = amp_cuda_cache_folder(w->cache);
    amp_log_say(w->options->log, AMP_LOG_INFO,
                "the model has no machine code for sm_%d (%s): %d CUDA kernel%s compiled by NVRTC, %d taken from the "
                "cache%s%s",
                w->options->arch, w->options->device_name ? w->options->device_name : "this device", compiled,
                compiled == 1 ? "" : "s", w->count - compiled, *folder ? " in " : "", folder);
    if (w->arch != w->options->arch)
        amp_log_say(w->options->log, AMP_LOG_WARNING,
                    "NVRTC in %s knows no sm_%d: the kernels are PTX for sm_%d, which the driver compiles in every "
                    "process; install a newer NVRTC",
                    amp_nvrtc_path(w->nvrtc), w->options->arch, w->arch);
    if (w->quick)
        amp_log_say(w->options->log, AMP_LOG_INFO,
                    "AMPC_CUDA_COMPILE is quick: NVRTC optimises little, and kernels run slower");
    if (!w->cache && compiled)
        amp_log_say(
            w->options->log, AMP_LOG_WARNING,
            "there is no cache for CUDA kernels, so they are compiled in every process: set AMPC_CACHE_DIR to a "
            "folder of yours that no other user may write to, or compile the model with --gpu-arch sm_%d",
            w->options->arch);
}

static void say_trimmed(const CompileWork *w, int removed) {
    if (removed)
        amp_log_say(w->options->log, AMP_LOG_INFO,
                    "%d CUDA kernel%s that had not been used for longest left the cache, which is full; "
                    "AMPC_CACHE_LIMIT sets its size",
                    removed, removed == 1 ? "" : "s");
}

/* This thread and, where the system gives them, others. */
static void run_all(CompileWork *w) {
    pthread_t threads[MAX_THREADS];
    int started = 0;
    long wanted = w->options->threads > 0 ? w->options->threads : sysconf(_SC_NPROCESSORS_ONLN);
    while (started + 1 < wanted && started + 1 < w->count && started < MAX_THREADS &&
           !pthread_create(&threads[started], NULL, run_jobs, w))
        started++;
    run_jobs_aloud(w);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

/* Exactly this architecture or, from an older NVRTC, PTX for the newest one below it. */
static bool choose_target(CompileWork *w) {
    int archs[MAX_ARCHITECTURES], count = amp_nvrtc_architectures(w->nvrtc, archs, MAX_ARCHITECTURES);
    w->arch = 0;
    for (int i = 0; i < count && i < MAX_ARCHITECTURES; i++)
        if (archs[i] <= w->options->arch && archs[i] > w->arch) w->arch = archs[i];
    w->cubin = w->options->machine_code && w->arch == w->options->arch;
    const char *how = getenv("AMPC_CUDA_COMPILE");
    w->quick = how && !strcmp(how, "quick") && amp_nvrtc_version(w->nvrtc) >= AMP_NVRTC_QUICK_VERSION;
    return w->arch > 0;
}

static void fail_all(CompileWork *w, const amp_error *error) {
    for (int i = 0; i < w->count; i++) {
        w->jobs[i].status = error->code;
        w->jobs[i].error = *error;
    }
}

/* Close with amp_nvrtc_close(*out), which is NULL after an error. */
static amp_status open_compiler(CompileWork *w, amp_nvrtc **out, amp_error *err) {
    *out = NULL;
    AMP_TRY(amp_nvrtc_open(NULL, out, err));
    w->nvrtc = *out;
    if (choose_target(w)) return AMP_OK;
    amp_status status = amp_fail(err, AMP_UNSUPPORTED, "NVRTC in %s knows no architecture as old as sm_%d",
                                 amp_nvrtc_path(*out), w->options->arch);
    amp_nvrtc_close(*out);
    w->nvrtc = *out = NULL;
    return status;
}

static void make_all(CompileWork *w) {
    amp_error err = {0};
    amp_nvrtc *nvrtc;
    if (open_compiler(w, &nvrtc, &err)) {
        fail_all(w, &err);
        return;
    }
    w->cache = amp_cuda_cache_open(NULL);
    run_all(w);
    say_origins(w);
    say_trimmed(w, amp_cuda_cache_close(w->cache));
    amp_nvrtc_close(nvrtc);
}

/* ---- all images ---- */

static amp_status fail_job(const amp_cuda_compile_options *o, const CompileJob *job, amp_error *err) {
    const char *name = o->device_name ? o->device_name : "this device";
    if (job->status == AMP_BAD_SOURCE)
        return amp_fail(err, AMP_INTERNAL, "the model's CUDA code does not compile for sm_%d: %s", o->arch,
                        job->error.message);
    if (job->status == AMP_OUT_OF_MEMORY) return amp_fail(err, job->status, "%s", job->error.message);
    return amp_fail(err, job->status,
                    "the model has no code for sm_%d (%s), and it cannot be compiled here: compile the model with "
                    "`ampc --gpu-arch sm_%d`, or: %s",
                    o->arch, name, o->arch, job->error.message);
}

/* Those that the model serves are done; the others become jobs. */
static void list_jobs(CompileWork *w, const amp_model_cuda_function *functions, int count, amp_cuda_image *images) {
    const amp_cuda_compile_options *o = w->options;
    for (int i = 0; i < count; i++) {
        if (!amp_cuda_function_suits(&functions[i], o->arch)) continue;
        if (images[i].data || (o->machine_code && take_from_model(&functions[i], o->arch, true, &images[i]))) continue;
        w->jobs[w->count++] = (CompileJob){.function = &functions[i], .image = &images[i]};
    }
}

static amp_status finish_jobs(const CompileWork *w, amp_error *err) {
    const CompileJob *first = NULL; /* of those that the model's PTX serves in the end */
    int served = 0;
    for (int i = 0; i < w->count; i++) {
        const CompileJob *job = &w->jobs[i];
        if (!job->status) continue;
        if (!take_from_model(job->function, w->options->arch, false, job->image)) return fail_job(w->options, job, err);
        if (!served++) first = job;
    }
    if (first)
        amp_log_say(w->options->log, AMP_LOG_WARNING,
                    "%d CUDA kernel%s run from the model's PTX, which the driver compiles in every process: %s", served,
                    served == 1 ? "" : "s", first->error.message);
    return AMP_OK;
}

static bool is_cached(const CompileWork *w, const amp_model_cuda_function *f) {
    amp_cuda_image image = {0};
    size_t size;
    char *text = text_of(w, f, &size);
    if (!text) return false;
    const amp_cuda_cache_key key = key_of(w, text);
    const bool cached = take_from_cache(w, &key, &image);
    amp_cuda_images_free(&image, 1);
    amp_free(NULL, text, size);
    return cached;
}

static amp_cuda_origin origin_of(const CompileWork *w, const amp_model_cuda_function *f, bool *is_ptx) {
    amp_cuda_image image = {0};
    *is_ptx = false;
    if (w->options->machine_code && take_from_model(f, w->options->arch, true, &image)) return AMP_CUDA_FROM_MODEL;
    if (w->nvrtc) return is_cached(w, f) ? AMP_CUDA_FROM_CACHE : AMP_CUDA_FROM_NVRTC;
    *is_ptx = take_from_model(f, w->options->arch, false, &image);
    return *is_ptx ? AMP_CUDA_FROM_MODEL : AMP_CUDA_FROM_NOWHERE;
}

amp_status amp_cuda_find_origins(const amp_cuda_compile_options *options, const char *prelude,
                                 const amp_model_cuda_function *functions, int count, amp_cuda_origins *out,
                                 amp_error *err) {
    CompileWork w = {.options = options, .prelude = prelude};
    CompileJob missing = {0};
    amp_nvrtc *nvrtc;
    *out = (amp_cuda_origins){0};
    missing.status = open_compiler(&w, &nvrtc, &missing.error);
    if (nvrtc) w.cache = amp_cuda_cache_open(NULL);
    amp_status status = AMP_OK;
    for (int i = 0; i < count && !status; i++) {
        bool is_ptx;
        if (!amp_cuda_function_suits(&functions[i], options->arch)) continue;
        const amp_cuda_origin origin = origin_of(&w, &functions[i], &is_ptx);
        out->from[origin]++;
        out->model_ptx += is_ptx;
        if (origin == AMP_CUDA_FROM_NOWHERE) status = fail_job(options, &missing, err);
    }
    amp_cuda_cache_close(w.cache);
    amp_nvrtc_close(nvrtc);
    return status;
}

amp_status amp_cuda_compile(const amp_cuda_compile_options *options, const char *prelude,
                            const amp_model_cuda_function *functions, int count, amp_cuda_image *images,
                            amp_error *err) {
    CompileWork w = {.options = options, .prelude = prelude};
    size_t bytes = ((size_t)count + 1) * sizeof *w.jobs;
    w.jobs = amp_alloc_zeroed(NULL, bytes);
    if (!w.jobs) return amp_fail(err, AMP_OUT_OF_MEMORY, "out of memory before compiling %d CUDA functions", count);
    list_jobs(&w, functions, count, images);
    amp_status status = AMP_OK;
    if (w.count > 0) {
        make_all(&w);
        status = finish_jobs(&w, err);
    }
    amp_free(NULL, w.jobs, bytes);
    return status;
}

void amp_cuda_images_free(amp_cuda_image *images, int count) {
    for (int i = 0; i < count; i++) {
        if (images[i].owned) amp_free(NULL, (void *)images[i].data, images[i].size);
        images[i] = (amp_cuda_image){0};
    }
}

/* ---- in the driver ----------------------------------------------------------------------------------------------- */

enum { LOG_BYTES = 1024 };

typedef struct Load {
    amp_cuda_loader *loader;
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
    amp_error why = {0}, whole = {0};
    amp_status status = amp_cuda_result(loader->driver, NULL, CUDA_CALL_module_load, *result, &why);
    status = amp_fail(&whole, status, "kernel %s: %s%s%.*s", l->functions[i].entry, why.message, *log ? ": " : "",
                      (int)strcspn(log, "\n"), log);
    if (amp_cuda_result_is_fatal(*result)) amp_cuda_latch_set(loader->latch, &whole); /* it names the kernel, too */
    return amp_fail(err, status, "%s", whole.message);
}

/* What the image does not say, the driver may know. */
static amp_status ask_attribute(const Load *l, CuFunction function, int attribute, int32_t *value, amp_error *err) {
    int read = 0;
    if (*value >= 0) return AMP_OK;
    AMP_TRY(CUDA_CHECKED(l->loader->driver, l->loader->latch, err, function_attribute, (&read, attribute, function)));
    *value = read;
    return AMP_OK;
}

/* Whatever a function says of itself: no architecture before sm_90 has the instruction. */
static bool can_wait(const amp_model_cuda_function *f, int arch) {
    enum { FIRST = 90 };
    const char *overlap = getenv("AMPC_OVERLAP");
    if (overlap && !strcmp(overlap, "0")) return false;
    return f->waits_from && arch >= FIRST && (uint32_t)arch >= f->waits_from;
}

static amp_status describe(const Load *l, int i, amp_error *err) {
    const amp_cuda_image *image = &l->images[i];
    amp_cuda_loaded *to = &l->out[i];
    const char *entry = l->functions[i].entry;
    AMP_TRY(
        CUDA_CHECKED(l->loader->driver, l->loader->latch, err, module_function, (&to->function, to->module, entry)));
    to->origin = image->origin;
    to->is_cubin = image->is_cubin;
    to->waits = can_wait(&l->functions[i], image->arch);
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
    l->loader->as_ptx = true;
    l->options.machine_code = false; /* and so for all that are not compiled yet */
    amp_log_say(l->options.log, AMP_LOG_WARNING,
                "the driver takes no machine code for sm_%d: it compiles PTX itself, in every process",
                l->options.arch);
    AMP_TRY(amp_cuda_compile(&l->options, l->prelude, &l->functions[i], 1, &l->images[i], err));
    return load_module(l, i, &result, err);
}

static amp_status load_function(Load *l, int i, amp_error *err) {
    CuResult result = CU_SUCCESS;
    amp_status status = load_module(l, i, &result, err);
    if (status && refuses_machine_code(&l->images[i], result)) status = load_as_ptx(l, i, err);
    return status ? status : describe(l, i, err);
}

/* ---- all functions ---- */

/* The one that is compiled alone, to see what the driver takes; -1: none suits the device. */
static int shortest(const Load *l) {
    int best = -1;
    for (int i = 0; i < l->count; i++)
        if (amp_cuda_function_suits(&l->functions[i], l->options.arch) &&
            (best < 0 || strlen(l->functions[i].source) < strlen(l->functions[best].source)))
            best = i;
    return best;
}

static amp_status probe(Load *l, amp_error *err) {
    const int first = shortest(l);
    if (l->loader->probed || first < 0) return AMP_OK;
    AMP_TRY(amp_cuda_compile(&l->options, l->prelude, &l->functions[first], 1, &l->images[first], err));
    AMP_TRY(load_function(l, first, err));
    l->loader->probed = true;
    return AMP_OK;
}

static amp_status load_all(Load *l, amp_error *err) {
    AMP_TRY(amp_cuda_latch_check(l->loader->latch, err));
    AMP_TRY(probe(l, err));
    AMP_TRY(amp_cuda_compile(&l->options, l->prelude, l->functions, l->count, l->images, err));
    for (int i = 0; i < l->count; i++)
        if (!l->out[i].module && l->images[i].data) AMP_TRY(load_function(l, i, err));
    return AMP_OK;
}

amp_status amp_cuda_load(amp_cuda_loader *loader, const char *prelude, const amp_model_cuda_function *functions,
                         int count, amp_cuda_loaded *out, amp_error *err) {
    memset(out, 0, (size_t)count * sizeof *out);
    if (count == 0) return AMP_OK;
    Load l = {.loader = loader, .prelude = prelude, .functions = functions, .count = count, .out = out};
    l.options = (amp_cuda_compile_options){.arch = loader->device->arch,
                                           .threads = loader->threads,
                                           .machine_code = !loader->as_ptx,
                                           .device_name = loader->device->name,
                                           .log = loader->log};
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
