/* level.h: which instruction set the CPU runs a model in. */
#ifndef AMP_RUNTIME_DEVICE_CPU_LEVEL_H
#define AMP_RUNTIME_DEVICE_CPU_LEVEL_H

#include "runtime/model/model.h"

typedef struct amp_cpu_level {
    const char *name;
    int isa;             /* of the model's kernels: AMP_ISA_* */
    unsigned features;   /* that the machine must have */
    const char *product; /* the most that products may use; NULL: all there is */
} amp_cpu_level;

/* The level |isa|, or the best (NULL), of a machine with |features| (base/processor.h).  |model| may be NULL: any.
 * AMP_NOT_FOUND: no such level; AMP_UNSUPPORTED: the machine lacks it, or lacks what all the model's kernels need. */
amp_status amp_cpu_level_choose(unsigned features, const char *isa, const amp_model *model, const amp_cpu_level **out,
                                amp_error *err);

#endif
