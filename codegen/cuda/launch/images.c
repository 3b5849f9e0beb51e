/* images.c: the functions of a model, compiled by NVRTC for the architectures that were asked for: machine code and PTX
 * of each.
 *
 * Memory of the compilation's arena is taken before NVRTC is opened, because it may jump away. */
#define _GNU_SOURCE /* sched_getaffinity */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "cuda_sdk/nvrtc.h"
#include "codegen/codegen.h"
#include "codegen/cuda/cuda.h"

enum { MAX_ARCHS = 16, MAX_THREADS = 16, IMAGES_PER_JOB = 2 };

typedef struct Arch {
    int number;
    char suffix;
} Arch;

typedef struct Job { /* one function, for one architecture */
    int function;
    Arch arch;
    const char *text, *name;
    amp_status status;
    amp_error error;
    CudaImage image[IMAGES_PER_JOB];
} Job;

typedef struct Work {
    const amp_nvrtc *nvrtc;
    amp_allocator allocator;
    Job *jobs;
    int count;
    atomic_int next, done;
    const CodegenProgress *progress;
    bool cancelled;
} Work;

/* ---- "sm_80,sm_90a" ---------------------------------------------------------------------------------------------- */

static amp_status wrong_arch(const char *at, amp_error *err) {
    return amp_fail(err, AMP_INVALID_ARGUMENT,
                    "gpu arch '%.*s': names such as sm_80 or sm_90a, with commas between them, at most %d",
                    (int)strcspn(at, ","), at, MAX_ARCHS);
}

static amp_status read_archs(const char *text, Arch *out, int *count, amp_error *err) {
    *count = 0;
    for (const char *at = text;; at++) {
        char *end;
        if (strncmp(at, "sm_", 3) || *count == MAX_ARCHS) return wrong_arch(at, err);
        long number = strtol(at + 3, &end, 10);
        if (end == at + 3 || number < 1 || number > 9999) return wrong_arch(at, err);
        out[*count] = (Arch){.number = (int)number, .suffix = *end == 'a' || *end == 'f' ? *end : 0};
        if (out[(*count)++].suffix) end++;
        if (!*end) return AMP_OK;
        if (*end != ',') return wrong_arch(at, err);
        at = end;
    }
}

/* ---- one job ----------------------------------------------------------------------------------------------------- */

static void *keep(const Work *w, const void *data, size_t size) {
    void *copy = amp_alloc(&w->allocator, size);
    if (copy) memcpy(copy, data, size);
    return copy;
}

static void fill_images(const Work *w, Job *j, const amp_nvrtc_result *r) {
    const amp_nvrtc_kernel_use *use = r->use_count ? &r->uses[0] : NULL;
    CudaImage base = {
        .function = j->function,
        .arch = j->arch.number,
        .suffix = j->arch.suffix,
        .registers = use ? use->registers : -1,
        .shared_bytes = use ? use->shared_bytes : -1,
        .spill_bytes = use ? use->spill_stores + use->spill_loads : -1,
        .stack_bytes = use ? use->stack_bytes : -1,
        .seconds = r->seconds,
    };
    j->image[0] = j->image[1] = base;
    j->image[0].is_cubin = true;
    j->image[0].data = keep(w, r->cubin, j->image[0].size = r->cubin_size);
    j->image[1].data = keep(w, r->ptx, j->image[1].size = r->ptx_size);
    if (!j->image[0].data || !j->image[1].data)
        j->status = amp_fail(&j->error, AMP_OUT_OF_MEMORY, "no memory for the machine code of %s", j->name);
}

static void run_job(const Work *w, Job *j) {
    amp_nvrtc_result result = {0};
    amp_nvrtc_job job = {
        .source = j->text, .name = j->name, .arch = j->arch.number, .suffix = j->arch.suffix, .cubin = true};
    j->status = amp_nvrtc_compile_lean(w->nvrtc, &job, AMP_NVRTC_LEAN, &result, &j->error);
    if (!j->status) fill_images(w, j, &result);
    amp_nvrtc_result_free(w->nvrtc, &result);
}

static void *run_jobs(void *work) {
    Work *w = work;
    for (int i; (i = atomic_fetch_add(&w->next, 1)) < w->count; atomic_fetch_add(&w->done, 1)) run_job(w, &w->jobs[i]);
    return NULL;
}

/* The caller is told, by its own thread. */
static bool begin(const Work *w, const Job *j) {
    char what[160];
    const char suffix[] = {j->arch.suffix, 0};
    if (!w->progress->begin) return true;
    snprintf(what, sizeof what, "nvrtc %s sm_%d%s", j->name, j->arch.number, suffix);
    return w->progress->begin(w->progress->user, what, atomic_load(&w->done), w->count);
}

/* |first| is begun already. */
static void run_jobs_aloud(Work *w, int first) {
    for (int i = first; i < w->count; i = atomic_fetch_add(&w->next, 1)) {
        w->cancelled = i != first && !begin(w, &w->jobs[i]);
        if (w->cancelled) break;
        run_job(w, &w->jobs[i]);
        atomic_fetch_add(&w->done, 1);
    }
    if (w->cancelled) atomic_store(&w->next, w->count);
}

/* Those that this process may use. */
static int processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

/* This thread and, where the system gives them, others.  It takes the first job before they start: so the caller is
 * told of one at least, and may end the call there. */
static void run_all(Work *w) {
    pthread_t threads[MAX_THREADS];
    int started = 0;
    w->cancelled = w->count && !begin(w, &w->jobs[0]);
    if (w->cancelled) return;
    atomic_store(&w->next, 1);
    int useful = processors();
    for (int i = 1; i < useful && i < w->count && started < MAX_THREADS; i++)
        if (!pthread_create(&threads[started], NULL, run_jobs, w)) started++;
    run_jobs_aloud(w, 0);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static const char *whole_text(const CudaModule *cuda, int function) {
    const CudaFunction *f = &cuda->functions.data[function];
    return arena_printf(cuda->module->arena, "%s%s", f->prelude, f->source);
}

/* What an architecture is too old for has no image for it. */
static Job *list_jobs(const CudaModule *cuda, const Arch *archs, int arch_count, int *count) {
    Job *jobs = arena_array(cuda->module->arena, Job, cuda->functions.len * arch_count + 1);
    *count = 0;
    for (int f = 0; f < cuda->functions.len; f++) {
        const char *text = whole_text(cuda, f);
        for (int a = 0; a < arch_count; a++)
            if (archs[a].number >= cuda->functions.data[f].min_arch)
                jobs[(*count)++] =
                    (Job){.function = f, .arch = archs[a], .text = text, .name = cuda->functions.data[f].entry};
    }
    return jobs;
}

static void free_image(const amp_allocator *a, const CudaImage *image) {
    amp_free(a, (void *)image->data, image->size);
}

static amp_status collect(const Work *w, CodegenImages *out, amp_error *err) {
    amp_status status = AMP_OK;
    out->data = amp_alloc(&w->allocator, (size_t)(w->count * IMAGES_PER_JOB + 1) * sizeof *out->data);
    out->room = w->count * IMAGES_PER_JOB + 1;
    if (!out->data)
        status = amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the machine code of %d functions", w->count);
    for (int i = 0; i < w->count; i++) {
        const Job *j = &w->jobs[i];
        if (j->status && !status) {
            status = j->status == AMP_BAD_SOURCE ? AMP_INTERNAL : j->status;
            amp_fail(err, status, "%s", j->error.message);
        }
        for (int n = 0; n < IMAGES_PER_JOB; n++) {
            if (!j->image[n].data) continue;
            if (out->data) out->data[out->count++] = j->image[n];
            else free_image(&w->allocator, &j->image[n]);
        }
    }
    return status;
}

amp_status codegen_cuda_images(const CudaModule *cuda, const char *archs, const CodegenProgress *progress,
                               const amp_allocator *allocator, CodegenImages *out, amp_error *err) {
    Arch list[MAX_ARCHS];
    int arch_count;
    amp_nvrtc *nvrtc = NULL;
    Work w = {.progress = progress, .allocator = amp_allocator_or_default(allocator)};
    *out = (CodegenImages){.allocator = w.allocator};
    AMP_TRY(read_archs(archs, list, &arch_count, err));
    w.jobs = list_jobs(cuda, list, arch_count, &w.count);
    AMP_TRY(amp_nvrtc_open(&w.allocator, &nvrtc, err));
    w.nvrtc = nvrtc;
    run_all(&w);
    amp_nvrtc_close(nvrtc);
    amp_status status = collect(&w, out, err);
    if (w.cancelled) status = amp_fail(err, AMP_CANCELLED, "cancelled while compiling CUDA kernels");
    if (status) codegen_cuda_images_free(out);
    return status;
}

void codegen_cuda_images_free(CodegenImages *images) {
    for (int i = 0; i < images->count; i++) free_image(&images->allocator, &images->data[i]);
    if (images->data) amp_free(&images->allocator, images->data, (size_t)images->room * sizeof *images->data);
    *images = (CodegenImages){0};
}

/* ---- one text ---------------------------------------------------------------------------------------------------- */

static const char *all_text(const CudaModule *cuda, Arch arch) {
    Text text;
    text_init(&text, cuda->module->arena);
    text_puts(&text, cuda_prelude);
    for (int f = 0; f < cuda->functions.len; f++)
        if (arch.number >= cuda->functions.data[f].min_arch) text_puts(&text, cuda->functions.data[f].source);
    return text_str(&text);
}

amp_status codegen_cuda_ptx(const CudaModule *cuda, const char *archs, const amp_allocator *allocator, char **bytes,
                            size_t *size, amp_error *err) {
    Arch list[MAX_ARCHS];
    int arch_count;
    amp_nvrtc *nvrtc = NULL;
    amp_nvrtc_result result = {0};
    Work w = {.allocator = amp_allocator_or_default(allocator)};
    AMP_TRY(read_archs(archs, list, &arch_count, err));
    amp_nvrtc_job job = {.source = all_text(cuda, list[0]),
                         .name = cuda->module->name,
                         .arch = list[0].number,
                         .suffix = list[0].suffix};
    AMP_TRY(amp_nvrtc_open(&w.allocator, &nvrtc, err));
    amp_status status = amp_nvrtc_compile(nvrtc, &job, &result, err);
    if (!status && !(*bytes = keep(&w, result.ptx, *size = strlen(result.ptx))))
        status = amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for %zu bytes of PTX", *size);
    amp_nvrtc_result_free(nvrtc, &result);
    amp_nvrtc_close(nvrtc);
    return status;
}
