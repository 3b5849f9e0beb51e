/* program_time.c: see roofline.h. */
#include "tools/roofline/program_time.h"

#include <stdio.h>

ProgramRefusal program_time(const Gpu *gpu, const amp_tables *cuda, const amp_program *p, amp_sizes sizes, Form form,
                            KernelTime *each, ProgramTime *out) {
    const RooflineTables tables = {p->buffers, cuda->states};
    *out = (ProgramTime){.launches = p->kernel_count};
    for (int32_t i = 0; i < p->kernel_count; i++) {
        KernelTime t;
        const RooflineStatus why = roofline_kernel(gpu, &tables, &p->cuda_kernels[i], sizes, form, &t);
        if (each) each[i] = t;
        if (why) return (ProgramRefusal){why, &p->cuda_kernels[i], t.instruction};
        out->flops += t.flops;
        out->bytes += t.bytes;
        out->microseconds += t.microseconds;
    }
    return (ProgramRefusal){.why = ROOFLINE_OK};
}

void program_refusal_text(const ProgramRefusal *r, const Gpu *gpu, char *out, size_t size) {
    if (r->why == ROOFLINE_NO_INSTRUCTION)
        snprintf(out, size,
                 "%s has no %s, which kernel %s needs; choose a later GPU, or compile with --precision fp16 or fp32",
                 gpu->name, instruction_name(r->instruction), r->kernel->name);
    else
        snprintf(out, size, "kernel %s: what it computes is not known, or damaged: compile the model again",
                 r->kernel->name);
}

const char *scaled(double v, char out[16]) {
    static const char prefixes[] = " kMGTP";
    int i = 0;
    while (v >= 999.5 && prefixes[i + 1]) v /= 1000, i++;
    snprintf(out, 16, v < 9.995 && i ? "%.2f %c" : v < 99.95 && i ? "%.1f %c" : "%.0f %c", v, prefixes[i]);
    return out;
}
