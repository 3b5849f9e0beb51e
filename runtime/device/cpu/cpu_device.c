/* cpu_device.c: the CPU as a device: which instruction set, how many threads. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/device/cpu/executor.h"
#include "runtime/device/cpu/product/cpu_features.h"

enum { SCRATCH_ALIGN = 64 };

typedef struct CpuDevice {
    amp_device base;
    amp_executor executor;
    int32_t task_capacity; /* counters in executor.next_task */
} CpuDevice;

static const struct {
    const char *name;
    int isa;
    unsigned features;   /* that the machine must have */
    const char *product; /* the most that products may use; NULL: all there is */
} levels[] = {
    {"v4", AMP_ISA_V4, AMP_CPU_X86_64_V4, NULL},
    {"v3", AMP_ISA_V3, AMP_CPU_X86_64_V3, "avx2"},
    {"portable", AMP_ISA_PORTABLE, 0, "portable"},
};

static amp_status choose_level(CpuDevice *d, const char *isa, amp_error *err) {
    unsigned features = amp_cpu_features();
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        bool runs = (features & levels[i].features) == levels[i].features;
        if (isa ? strcmp(isa, levels[i].name) : !runs) continue;
        if (!runs) return amp_fail(err, AMP_UNSUPPORTED, "isa %s: this processor does not have it", isa);
        d->executor.isa = levels[i].isa;
        d->executor.product_f32 = amp_product_select(AMP_DT_F32, levels[i].product, err);
        d->executor.product_bf16 =
            d->executor.product_f32 ? amp_product_select(AMP_DT_BF16, levels[i].product, err) : NULL;
        return d->executor.product_bf16 ? AMP_OK : AMP_UNSUPPORTED;
    }
    return amp_fail(err, AMP_NOT_FOUND, "isa %s: portable, v3 or v4", isa);
}

static size_t scratch_size(const CpuDevice *d) {
    return d->executor.scratch_stride * (size_t)amp_pool_threads(d->executor.pool);
}

static void cpu_destroy(amp_device *device) {
    CpuDevice *d = (CpuDevice *)device;
    if (!d) return;
    amp_allocator a = d->base.allocator;
    if (d->executor.pool) amp_free(&a, d->executor.scratch, scratch_size(d), SCRATCH_ALIGN);
    amp_pool_destroy(d->executor.pool);
    amp_free(&a, d->executor.next_task, (size_t)d->task_capacity * sizeof *d->executor.next_task, 16);
    amp_free(&a, d, sizeof *d, 16);
}

static amp_status cpu_create(const amp_device_options *options, const amp_allocator *allocator, amp_device **out,
                             amp_error *err) {
    *out = NULL;
    CpuDevice *d = amp_alloc_zeroed(allocator, sizeof *d, 16);
    if (!d) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the CPU device");
    d->base = (amp_device){.type = &amp_device_cpu, .allocator = *allocator};
    amp_status status = choose_level(d, options->isa, err);
    if (!status) status = amp_pool_create(options->threads, allocator, &d->executor.pool, err);
    d->executor.scratch_stride = (amp_product_scratch_bytes() + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
    if (!status) d->executor.scratch = amp_alloc_zeroed(allocator, scratch_size(d), SCRATCH_ALIGN);
    if (!status && !d->executor.scratch)
        status = amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the scratch of %d threads", options->threads);
    if (status) cpu_destroy(&d->base);
    else *out = &d->base;
    return status;
}

/* A counter per kernel of the longest program so far: after its first run a step allocates nothing. */
static amp_status reserve_counters(CpuDevice *d, int32_t kernels, amp_error *err) {
    if (kernels <= d->task_capacity) return AMP_OK;
    atomic_llong *counters = amp_alloc_zeroed(&d->base.allocator, (size_t)kernels * sizeof *counters, 16);
    if (!counters) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to run %d kernels", kernels);
    amp_free(&d->base.allocator, d->executor.next_task, (size_t)d->task_capacity * sizeof *counters, 16);
    d->executor.next_task = counters;
    d->task_capacity = kernels;
    return AMP_OK;
}

static amp_status cpu_run(amp_device *device, const amp_run *run, amp_error *err) {
    CpuDevice *d = (CpuDevice *)device;
    AMP_TRY(reserve_counters(d, run->program->kernel_count, err));
    amp_execute(&d->executor, run);
    return AMP_OK;
}

static size_t cpu_scratch_bytes(const amp_device *device) {
    const CpuDevice *d = (const CpuDevice *)device;
    return sizeof *d + scratch_size(d) + amp_pool_bytes(d->executor.pool) +
           (size_t)d->task_capacity * sizeof *d->executor.next_task;
}

const amp_device_type amp_device_cpu = {"cpu", cpu_create, cpu_destroy, cpu_run, cpu_scratch_bytes, true};
