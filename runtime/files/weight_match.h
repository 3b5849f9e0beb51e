/* weight_match.h: which tensor of published weights each parameter and buffer of a model takes, and every way in which
 * they do not fit.
 *
 *     names of the files --ignore--> --rename, one rule after the other--> names of the model
 *
 * Nothing is loaded here.
 */
#ifndef AMP_RUNTIME_FILES_WEIGHT_MATCH_H
#define AMP_RUNTIME_FILES_WEIGHT_MATCH_H

#include "amp/weights.h"
#include "runtime/files/state_file.h"
#include "base/safetensors/weight_files.h"

enum { AMP_NO_ENTRY = -1 /* no parameter has the name */, AMP_IGNORED = -2 /* is not wanted */ };

typedef struct amp_weight_difference {
    amp_weights_difference kind;
    int32_t entry;  /* -1: EXTRA */
    int32_t tensor; /* -1: MISSING */
    int32_t other;  /* of TWICE: the first tensor of that name */
} amp_weight_difference;

typedef struct amp_weight_match {
    amp_allocator allocator;
    const amp_state_list *list;
    const amp_weight_files *files;
    const amp_weights_options *options;
    /* By tensor of the files. */
    const char **names; /* as the model would have it */
    char **renamed;     /* the same, where a rule made it; else NULL */
    int32_t *entry_of;  /* an entry of the list, AMP_NO_ENTRY or AMP_IGNORED; also of a second tensor of that name */
    /* By entry of the list. */
    int32_t *tensor_of; /* -1: none, or with |partial| none that fits */
    bool *fresh;        /* keeps its value, whatever is in the files */
    bool *transposed;   /* [a, b] in the files, [b, a] in the model */
    amp_weight_difference *differences;
    int32_t tensor_count, entry_count, difference_count;
} amp_weight_match;

/* AMP_INVALID_ARGUMENT: a rule that is none.  AMP_MISMATCH: one that matches no name.  Differences are no error here.
 * The list, the files and the options outlive the match. */
amp_status amp_weight_match_make(amp_weight_match *match, const amp_state_list *list, const amp_weight_files *files,
                                 const amp_weights_options *options, amp_error *err);
void amp_weight_match_free(amp_weight_match *match);

/* The shape that the files should have for an entry: the model's, or where it is transposed the other way round. */
void amp_weight_match_dims(const amp_weight_match *match, int32_t entry, int64_t dims[AMP_SAFETENSORS_MAX_RANK]);
/* Whether two tensors of the files have the same type, shape and bytes; |chunk| is room for two pieces. */
enum { AMP_WEIGHT_PIECE = 128 << 10 /* bytes that are read at once */ };
amp_status amp_weight_same_bytes(const amp_weight_files *files, int32_t a, int32_t b, char *chunk, bool *same,
                                 amp_error *err);

#endif
