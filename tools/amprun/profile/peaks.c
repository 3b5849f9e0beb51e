/* peaks.c: see profile.h. */
#include "tools/amprun/profile/profile.h"

#include <string.h>

#include "base/error.h"
#include "tools/roofline/gpus.h"
#include "tools/roofline/program_time.h"

/* ---- the CPU ----------------------------------------------------------------------------------------------------- */

static amp_status measure(const Args *a, const amp_model *model, bool memory, amp_cpu_rates *out, amp_error *err) {
    const amp_measure_options options = {.struct_size = sizeof options,
                                         .model = model,
                                         .isa = a->cpu.isa,
                                         .threads = (int32_t)a->threads,
                                         .memory = memory};
    return amp_cpu_measure(&options, out, err);
}

static amp_status find_of_cpu(const Args *a, Peaks *out, amp_error *err) {
    amp_cpu_rates r;
    char copy[16], f32[16], bf16[16];
    AMP_TRY(measure(a, NULL, true, &r, err));
    out->bytes = r.bytes;
    out->flops[AMP_INSTRUCTION_FMA] = out->flops[AMP_INSTRUCTION_PLAIN] = r.f32;
    out->flops[AMP_INSTRUCTION_MMA_BF16] = r.bf16;
    snprintf(out->source, sizeof out->source, "measured on %d thread%s, %s: %sB/s copied, %sFLOP/s f32, %sFLOP/s bf16",
             r.threads, r.threads == 1 ? "" : "s", r.level, scaled(r.bytes, copy), scaled(r.f32, f32),
             scaled(r.bf16, bf16));
    return AMP_OK;
}

amp_status peaks_of_products(const Args *a, const amp_model *model, amp_cpu_rates *out, char source[PEAKS_SOURCE],
                             amp_error *err) {
    char f32[16], bf16[16], other[16];
    AMP_TRY(measure(a, model, false, out, err));
    const int length = snprintf(
        source, PEAKS_SOURCE, "products on %d thread%s: %sFLOP/s f32 by %s, %sFLOP/s bf16 by %s", out->threads,
        out->threads == 1 ? "" : "s", scaled(out->f32, f32), out->f32_by, scaled(out->bf16, bf16), out->bf16_by);
    if (out->other_by)
        snprintf(source + length, PEAKS_SOURCE - (size_t)length, " (by %s %sFLOP/s)", out->other_by,
                 scaled(out->other, other));
    return AMP_OK;
}

/* ---- GPUs -------------------------------------------------------------------------------------------------------- */

static void take_gpu(const Gpu *gpu, Peaks *out) {
    out->bytes = 1e9 * gpu->copy;
    out->flops[AMP_INSTRUCTION_PLAIN] = out->flops[AMP_INSTRUCTION_FMA] = 1e12 * gpu->fp32;
    out->flops[AMP_INSTRUCTION_MMA_F16] = 1e12 * gpu->fp16;
    out->flops[AMP_INSTRUCTION_MMA_BF16] = 1e12 * gpu->bf16;
    out->flops[AMP_INSTRUCTION_MMA_TF32] = 1e12 * gpu->tf32;
}

static amp_status look_up_gpu(const Args *a, Peaks *out, amp_error *err) {
    amp_gpu_info device;
    AMP_TRY(amp_gpu_at(a->cuda.index, &device, err));
    const bool is_stand_in = strstr(device.name, "(fakecuda)") != NULL; /* it is named after a GPU, and is none */
    const Gpu *gpu = is_stand_in ? NULL : gpu_of_device(device.name);
    if (gpu) take_gpu(gpu, out);
    if (gpu) snprintf(out->source, sizeof out->source, "not measured: those of %s by %s", gpu->full, gpu->source);
    else snprintf(out->source, sizeof out->source, "not measured, and not known of %s", device.name);
    return AMP_OK;
}

amp_status peaks_find(const Args *a, Peaks *out, amp_error *err) {
    *out = (Peaks){0};
    return a->device && !strcmp(a->device, "cuda") ? look_up_gpu(a, out, err) : find_of_cpu(a, out, err);
}
