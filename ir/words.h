/* words.h: the words of the text form: which strings stand bare, and the names of enum values.  Shared by printer and
 * reader. */
#ifndef AMP_IR_WORDS_H
#define AMP_IR_WORDS_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A bare word: [A-Za-z_.][A-Za-z0-9_./+-]*, not one of the reserved words. */
bool word_starts(char c);
bool word_goes_on(char c);
bool word_is_reserved(const char *s);
/* After '%': [A-Za-z0-9_.]+ */
bool value_name_char(char c);

extern const char *const ir_role_names[STATE_STAGED + 1];
extern const char *const ir_kernel_kind_names[KERNEL_KINDS];
extern const char *const ir_distribution_names[DISTRIBUTE_ZERO1 + 1];
extern const char *const ir_order_names[ORDER_TREE + 1];
extern const char *const ir_sums_names[SUMS_SM_90 + 1];
extern const char *const ir_layout_names[LAYOUT_PAIRS_T + 1];
extern const char *const ir_buffer_kind_names[BUFFER_LOOK + 1];

/* Index of |word| in |names|, or -1. */
int word_index(const char *word, const char *const *names, int count);
/* AMP_DT_NONE for anything else. */
Dtype word_dtype(const char *word);

#ifdef __cplusplus
}
#endif

#endif
