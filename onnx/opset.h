/* opset.h: a model in a later opset, where no node of it means anything else. */
#ifndef AMP_ONNX_OPSET_H
#define AMP_ONNX_OPSET_H

#include "onnx/onnx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether each of |nodes|, and of the graphs in them, does in opset |to| of ai.onnx what it does in |from|, an earlier
 * one. */
bool onnx_means_the_same(const OnnxNodes *nodes, int64_t from, int64_t to);

/* The model states opset |to| of ai.onnx, and an IR version that has it.  Most changes of an op allow more types or add
 * an attribute with a default; a node of an op that changed in another way is AMP_UNSUPPORTED.  AMP_INVALID_ARGUMENT:
 * |to| is older than what the model has, or newer than what is known. */
amp_status onnx_raise_opset(OnnxModel *model, const OnnxIndex *index, int64_t to, Arena *arena, amp_error *err);

#ifdef __cplusplus
}
#endif

#endif
