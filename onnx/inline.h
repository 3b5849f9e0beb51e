/* inline.h: local functions, put in where they are called. */
#ifndef AMP_ONNX_INLINE_H
#define AMP_ONNX_INLINE_H

#include "onnx/onnx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Puts the nodes of local functions in the place of the nodes that call them, in inner graphs and in functions too, and
 * removes the functions.  A function that imports another opset of a domain than the model is left as it is, and so are
 * its calls, unless that is an earlier one of ai.onnx in which its nodes mean the same.  Of a model that onnx_index has
 * accepted, whose index is not valid any more.  AMP_UNSUPPORTED: what comes out is too large. */
amp_status onnx_inline_functions(OnnxModel *model, Arena *arena, amp_error *err);

#ifdef __cplusplus
}
#endif

#endif
