/* weight_copy.h: values of published weights into the states of a model, and back: piece by piece, so that no tensor is
 * held beside the states. */
#ifndef AMP_RUNTIME_FILES_WEIGHT_COPY_H
#define AMP_RUNTIME_FILES_WEIGHT_COPY_H

#include "runtime/files/weight_match.h"

/* That no finite value becomes infinite in the type of its state: f32 of an f64 tensor, or f16.
 * AMP_MISMATCH, AMP_IO. */
amp_status amp_weight_check_range(const amp_weight_match *match, amp_error *err);
/* The tensors of a match without differences into |states| (by state of the model).  AMP_OUT_OF_MEMORY before anything
 * is changed; AMP_IO: where that was found, what comes before it is loaded. */
amp_status amp_weight_load(const amp_weight_match *match, void *const *states, amp_weights_report *report,
                           amp_error *err);
/* The states as a file with the names and shapes of the match's files; tensors that are ignored are copied. */
amp_status amp_weight_save(const amp_weight_match *match, void *const *states, const char *path,
                           const amp_metadata *metadata, int32_t metadata_count, amp_error *err);

#endif
