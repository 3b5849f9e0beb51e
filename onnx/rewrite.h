/* rewrite.h: a model with the types that were decided: casts, converted weights, types of values, reasons.
 *
 *     OnnxRewrite r = {.model = &model, .index = &index, .solution = &s, .decisions = &d, .arena = &arena};
 *     AMP_TRY(onnx_rewrite(&r, err));                           the index is of the old model from here on
 *
 * A value is cast once for each type that it is read in, right after it is made.  A weight that is read in two types is
 * there twice instead, and so is a Constant.  A Cast between float types that is there already says no more than in
 * which type its readers want the value, so it goes, and the readers get the value in the type that they have now.
 * Inputs and outputs of the model keep their names.  From IR version 10 on each node that was decided has its type and
 * the reason in its metadata, as "ampc.type" and "ampc.because". */
#ifndef AMP_ONNX_REWRITE_H
#define AMP_ONNX_REWRITE_H

#include "onnx/decide.h"
#include "onnx/onnx.h"
#include "onnx/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct OnnxRewrite {
    OnnxModel *model;
    const OnnxIndex *index;
    const OnnxSolution *solution;
    const OnnxDecisions *decisions;
    int low;            /* the policy's low type, an OnnxDtype */
    const char *policy; /* its name, for the model's metadata; NULL: nothing is said there */
    Arena *arena;
    /* What was done. */
    int64_t dropped, casts;     /* Cast nodes between float types: that went, and that came */
    int64_t converted, doubled; /* weights: in another type, and how many are there in both */
    struct OnnxRewriteState *state;
} OnnxRewrite;

amp_status onnx_rewrite(OnnxRewrite *r, amp_error *err);

#ifdef __cplusplus
}
#endif

#endif
