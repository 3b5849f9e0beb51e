/* cpu_device.c: the CPU as a device: which instruction set, how many threads. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/float_environment.h"
#include "base/processor.h"
#include "runtime/device/cpu/count.h"
#include "runtime/device/cpu/executor.h"
#include "runtime/device/cpu/level.h"
#include "runtime/device/cpu/product/product.h"

enum { SCRATCH_ALIGN = 64 };

typedef struct CpuDevice {
    amp_device base;
    amp_executor executor;
    size_t shared_size;
} CpuDevice;

static amp_status choose_level(CpuDevice *d, const amp_device_options *options, const amp_cpu_level **out,
                               amp_error *err) {
    AMP_TRY(amp_cpu_level_choose(amp_cpu_features(), options->cpu->isa, options->model, out, err));
    const amp_cpu_level *level = *out;
    d->executor.isa = level->isa;
    d->executor.product_f32 = amp_product_select(AMP_DT_F32, level->product, err);
    d->executor.product_bf16 = d->executor.product_f32 ? amp_product_select(AMP_DT_BF16, level->product, err) : NULL;
    return d->executor.product_bf16 ? AMP_OK : AMP_UNSUPPORTED;
}

/* ---- memory: after its first run with a number of samples a program allocates nothing -----------------------------
 */

static size_t scratch_size(const CpuDevice *d) {
    return d->executor.scratch_stride * (size_t)amp_pool_threads(d->executor.pool);
}

static void cpu_destroy(amp_device *device) {
    CpuDevice *d = (CpuDevice *)device;
    if (!d) return;
    amp_allocator a = d->base.allocator;
    if (d->executor.pool) amp_free_aligned(&a, d->executor.scratch, scratch_size(d), SCRATCH_ALIGN);
    amp_executor_free(&d->executor, &a);
    amp_free_aligned(&a, d->executor.shared, d->shared_size, SCRATCH_ALIGN);
    amp_free(&a, d, sizeof *d);
}

/* What was reserved before holds nothing that is needed: it is freed first, so that a session never takes more than it
 * says. */

static amp_status reserve_scratch(CpuDevice *d, size_t per_thread, amp_error *err) {
    size_t stride = (per_thread + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
    int32_t threads = amp_pool_threads(d->executor.pool);
    if (stride <= d->executor.scratch_stride) return AMP_OK;
    amp_free_aligned(&d->base.allocator, d->executor.scratch, scratch_size(d), SCRATCH_ALIGN);
    d->executor.scratch_stride = 0;
    d->executor.scratch = amp_alloc_zeroed_aligned(&d->base.allocator, stride * (size_t)threads, SCRATCH_ALIGN);
    if (!d->executor.scratch)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the scratch of %d threads", threads);
    d->executor.scratch_stride = stride;
    return AMP_OK;
}

static amp_status reserve_shared(CpuDevice *d, size_t bytes, amp_error *err) {
    if (bytes <= d->shared_size) return AMP_OK;
    amp_free_aligned(&d->base.allocator, d->executor.shared, d->shared_size, SCRATCH_ALIGN);
    d->shared_size = 0;
    d->executor.shared = amp_alloc_zeroed_aligned(&d->base.allocator, bytes, SCRATCH_ALIGN);
    if (!d->executor.shared) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for %zu bytes of partial sums", bytes);
    d->shared_size = bytes;
    return AMP_OK;
}

static amp_status cpu_reserve(amp_device *device, const amp_program *program, amp_sizes sizes, amp_error *err) {
    CpuDevice *d = (CpuDevice *)device;
    amp_executor_needs needs = amp_executor_needs_of(&d->executor, program, sizes);
    AMP_TRY(reserve_scratch(d, needs.per_thread, err));
    return reserve_shared(d, needs.shared, err);
}

/* ---- what was chosen --------------------------------------------------------------------------------------------- */

/* The largest instruction set that the model has kernels of its own for, up to the one that is used. */
static const char *isa_of_kernels(const CpuDevice *d, const amp_model *m) {
    static const char *const names[AMP_ISA_COUNT] = {"portable", "v3", "v4"};
    const amp_program *p = m && m->program_count ? &m->programs[0] : NULL;
    int isa = d->executor.isa;
    while (p && p->kernel_count && isa > 0 && !p->kernels[0].run[isa]) isa--;
    return names[isa];
}

static void say_choice(const CpuDevice *d, const amp_device_options *o, const char *level) {
    int32_t threads = amp_pool_threads(d->executor.pool), processors = amp_pool_processors();
    const char *kernels = isa_of_kernels(d, o->model);
    const bool fewer = strcmp(level, "neon") != 0 && strcmp(kernels, level) != 0;
    amp_log_say(o->log, AMP_LOG_INFO, "cpu: %d thread%s%s, instruction set %s%s%s", threads, threads == 1 ? "" : "s",
                o->cpu->run_tasks ? " of the application's" : "", level,
                fewer ? " for products; the model's kernels are " : "", fewer ? kernels : "");
    if (d->executor.product_bf16->widening && (amp_cpu_features() & AMP_CPU_AVX512_BF16) && amp_product_has_slow_bf16())
        amp_log_say(o->log, AMP_LOG_INFO,
                    "cpu: products of bf16 are multiplied as f32: this processor's instructions for bf16 are slower");
    if (threads > processors && !o->cpu->run_tasks)
        amp_log_say(o->log, AMP_LOG_WARNING, "cpu: %d threads share %d processor%s; more are not faster", threads,
                    processors, processors == 1 ? "" : "s");
    if (!o->cpu->isa && fewer)
        amp_log_say(o->log, AMP_LOG_WARNING,
                    "cpu: the model has kernels for %s at most, and this processor is %s: compile it without --isa",
                    kernels, level);
}

static amp_status cpu_create(const amp_device_options *options, const amp_allocator *allocator, amp_device **out,
                             amp_error *err) {
    *out = NULL;
    CpuDevice *d = amp_alloc_zeroed(allocator, sizeof *d);
    if (!d) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the CPU device");
    d->base = (amp_device){.type = &amp_device_cpu, .allocator = *allocator};
    const amp_cpu_level *level = NULL;
    d->executor.log = options->log;
    amp_status status = choose_level(d, options, &level, err);
    const amp_outside_threads outside = {options->cpu->run_tasks, options->cpu->user};
    if (!status) status = amp_executor_make(&d->executor, options->threads, &outside, allocator, err);
    if (!status) status = reserve_scratch(d, amp_product_scratch_bytes(d->executor.product_f32), err);
    if (status) {
        cpu_destroy(&d->base);
        return status;
    }
    say_choice(d, options, level->name);
    *out = &d->base;
    return status;
}

static void begin_batch(const amp_micro_batches *b, int64_t i) {
    if (b->number) *b->number = b->first + i;
    if (b->to) memcpy(b->to, (const char *)b->from + (size_t)i * b->bytes, b->bytes);
}

static amp_status cpu_run(amp_device *device, const amp_run *run, amp_error *err) {
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    CpuDevice *d = (CpuDevice *)device;
    AMP_TRY(cpu_reserve(device, run->program, run->sizes, err));
    for (int64_t i = 0; i < run->batches.count; i++) {
        begin_batch(&run->batches, i);
        AMP_TRY(amp_execute(&d->executor, run, err));
    }
    return run->batches.count ? AMP_OK : amp_execute(&d->executor, run, err);
}

/* An observer counts between kernels, for which the threads are there. */
static amp_status cpu_count_numbers(amp_device *device, const amp_counted *what, amp_number_bins *to, amp_error *err) {
    amp_executor *e = &((CpuDevice *)device)->executor;
    const bool is_between_runs = !e->runs;
    if (is_between_runs) AMP_TRY(amp_pool_begin(e->pool, amp_pool_threads(e->pool), err));
    amp_count_numbers(e->pool, what, to);
    if (is_between_runs) amp_pool_end(e->pool);
    return AMP_OK;
}

static amp_status cpu_finish_counts(amp_device *device, amp_error *err) {
    (void)device, (void)err;
    return AMP_OK;
}

const amp_device_type amp_device_cpu = {.name = "cpu",
                                        .create = cpu_create,
                                        .destroy = cpu_destroy,
                                        .reserve = cpu_reserve,
                                        .run = cpu_run,
                                        .computes = true,
                                        .count_numbers = cpu_count_numbers,
                                        .finish_counts = cpu_finish_counts};
