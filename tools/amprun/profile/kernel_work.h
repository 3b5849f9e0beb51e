/* kernel_work.h: what a kernel has to move and to compute, from a model's tables.
 *
 * Bytes: each operand once where it is read, and once where it is written, as if nothing stayed in a cache.
 * Operations: on CUDA those that the model's tables state (amp_model_cuda_work).  The CPU's tables state none: there
 * they are those of products and attention, two for each term of a sum, and what is computed element by element is left
 * out.
 */
#ifndef AMP_TOOLS_AMPRUN_KERNEL_WORK_H
#define AMP_TOOLS_AMPRUN_KERNEL_WORK_H

#include <stdbool.h>

#include "runtime/model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct KernelWork {
    double bytes, flops;
    uint32_t instruction; /* AMP_INSTRUCTION_* of its products, as if the CPU had them; PLAIN: it has none */
} KernelWork;

/* Of kernel |index| of |program|, for |n| samples.  |model|: whose program it is (amp_model_for).  |watched|: the
 * session keeps values, so that the kernel writes those, too. */
KernelWork kernel_work_of(const amp_model *model, const amp_program *program, int32_t index, int64_t n, bool watched);

/* Whether the kernel writes this buffer of the program, and does not update it. */
bool kernel_writes(const amp_program *program, int32_t index, uint32_t buffer);

#ifdef __cplusplus
}
#endif

#endif
