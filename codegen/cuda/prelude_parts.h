/* prelude_parts.h: of the functions that generated CUDA kernels call (cuda_prelude), those that one kernel needs.
 *
 * NVRTC takes longer to read all of them than to compile a small kernel.  The prelude is cut where a line is empty
 * outside of all braces; a kernel gets the paragraphs that define a name that it uses, and what those need in turn.
 * What a paragraph defines is read off its text; a macro DEFINE_X(suffix, ..) defines each name##suffix of its body.  A
 * name too many costs time; no name is too few: tests/codegen/cuda/prelude_test compiles the paragraphs of each.
 */
#ifndef AMP_CODEGEN_CUDA_PRELUDE_PARTS_H
#define AMP_CODEGEN_CUDA_PRELUDE_PARTS_H

#include "amp/model_abi.h"
#include "base/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CudaPrelude CudaPrelude;

/* Cuts |text|, which outlives it, as it does |a|. */
CudaPrelude *cuda_prelude_split(Arena *a, const char *text);
typedef VEC(amp_model_cuda_range) CudaRanges; /* of the text that was cut */
/* The paragraphs that |source| needs, in their order; calls that need the same give the same pointer.  |ranges|: where
 * they are; NULL: not wanted. */
const char *cuda_prelude_for(CudaPrelude *prelude, const char *source, CudaRanges *ranges);

#ifdef __cplusplus
}
#endif

#endif
