/* level.c: see level.h. */
#include "runtime/device/cpu/level.h"

#include <string.h>

#include "base/error.h"
#include "base/processor.h"

/* The best first. */
static const amp_cpu_level levels[] = {
    {"v4", AMP_ISA_V4, AMP_CPU_X86_64_V4, NULL},
    {"v3", AMP_ISA_V3, AMP_CPU_X86_64_V3, "avx2"},
    {"neon", AMP_ISA_PORTABLE, AMP_CPU_NEON, NULL}, /* the same kernels: four lanes are its registers */
    {"portable", AMP_ISA_PORTABLE, 0, "portable"},
};
enum { LEVELS = sizeof levels / sizeof levels[0] };

/* A model of one instruction set has no functions for smaller ones. */
static amp_status check_model(const amp_cpu_level *level, const char *isa, const amp_model *m, amp_error *err) {
    if (!m || level->isa >= m->lowest_isa) return AMP_OK;
    const char *sets = amp_model_isa_name(m, 0);
    if (isa)
        return amp_fail(
            err, AMP_UNSUPPORTED,
            "isa %s: model %s was compiled for %s alone (ampc --isa native); compile it without --isa native", isa,
            m->desc.name, sets);
    return amp_fail(err, AMP_UNSUPPORTED,
                    "model %s was compiled for the instruction set %s alone (ampc --isa native), which this processor "
                    "does not have; compile it on this machine, or without --isa native for every machine",
                    m->desc.name, sets);
}

amp_status amp_cpu_level_choose(unsigned features, const char *isa, const amp_model *model, const amp_cpu_level **out,
                                amp_error *err) {
    for (int i = 0; i < LEVELS; i++) {
        bool runs = (features & levels[i].features) == levels[i].features;
        if (isa ? strcmp(isa, levels[i].name) : !runs) continue;
        if (!runs) return amp_fail(err, AMP_UNSUPPORTED, "isa %s: this processor does not have it", isa);
        *out = &levels[i];
        return check_model(*out, isa, model, err);
    }
    return amp_fail(err, AMP_NOT_FOUND, "unknown isa %s; use portable, v3 or v4 (x86-64), or neon (AArch64)", isa);
}
