/* weight_report.h: the differences between published weights and a model in words. */
#ifndef AMP_RUNTIME_FILES_WEIGHT_REPORT_H
#define AMP_RUNTIME_FILES_WEIGHT_REPORT_H

#include "runtime/files/weight_match.h"

/* AMP_OK if there are no differences, or with |partial| none that asks for a choice.  Else AMP_MISMATCH: the counts,
 * what would mend them, and the names, grouped by pattern and bounded; the options' |difference| is called for each. */
amp_status amp_weight_report(const amp_weight_match *match, amp_error *err);

/* Text of at most the size of a message, which is cut where it would be longer. */
typedef struct amp_bounded_text {
    size_t length;
    char text[sizeof(((amp_error *)0)->message)];
} amp_bounded_text;
void amp_bounded_put(amp_bounded_text *to, const char *format, ...) AMP_PRINTF(2, 3);

/* Options that would mend differences, as words for a message: "rename 'transformer.*=*'".  Empty: none is known. */
void amp_weight_proposals(const amp_weight_match *match, amp_bounded_text *to);
/* Whether the file has the entry's shape the other way round. */
bool amp_weight_is_turned(const amp_weight_match *match, const amp_weight_difference *difference);

#endif
