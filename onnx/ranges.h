/* ranges.h: between which numbers values are: weights by looking, others as the user has measured them. */
#ifndef AMP_ONNX_RANGES_H
#define AMP_ONNX_RANGES_H

#include "onnx/decide.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct OnnxLoss { /* elements of a weight */
    uint64_t over, under; /* that the low type makes infinite; that it makes zero, and are not */
} OnnxLoss;

/* Of all float weights and Constants, by value, into |ranges| and |losses|.  |low|: the OnnxDtype that makes losses. */
amp_status onnx_weight_ranges(const OnnxModel *model, const OnnxIndex *index, int low, OnnxMagnitude *ranges,
                              OnnxLoss *losses, amp_error *err);

/* Adds what a JSON text says: {"VALUE": [LEAST, GREATEST], ...}; of weights more is known.  |name| is the text's, for
 * messages.  |unknown| (may be NULL): how many names are of no value.  AMP_BAD_FILE, also if all are. */
amp_status onnx_read_ranges(const char *text, size_t size, const char *name, const OnnxIndex *index,
                            OnnxMagnitude *ranges, int64_t *unknown, amp_error *err);

#ifdef __cplusplus
}
#endif

#endif
