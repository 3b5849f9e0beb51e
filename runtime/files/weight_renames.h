/* weight_renames.h: finding the --rename that would make published weights fit a model. */
#ifndef AMP_RUNTIME_FILES_WEIGHT_RENAMES_H
#define AMP_RUNTIME_FILES_WEIGHT_RENAMES_H

#include "runtime/files/weight_match.h"

enum { AMP_RENAMES_MOST = 4, AMP_RENAME_TEXT = 320 };

typedef struct amp_weight_renames {
    amp_allocator allocator;
    amp_weights_options options; /* with the rules that were found after those that were given */
    const char **rules;          /* of |options| */
    size_t rules_bytes;
    int count;
    char found[AMP_RENAMES_MOST][AMP_RENAME_TEXT];
    amp_weight_match match; /* under |options| */
} amp_weight_renames;

/* Each rule that is found leaves fewer differences than there were without it.  False: no memory.  To be freed in
 * either case; stays where it is. */
bool amp_weight_renames_find(amp_weight_renames *renames, const amp_weight_match *match);
void amp_weight_renames_free(amp_weight_renames *renames);

#endif
