/* dtype.h: the precisions that a user can ask for, and the type that each computes in.  The compiler's word list; the
 * element types themselves are public (amp/base.h). */
#ifndef AMP_BASE_DTYPE_H
#define AMP_BASE_DTYPE_H

#include <stdbool.h>

#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Full precision: the word when nothing is asked for, and the only one that evaluation may use instead of the
 * model's. */
#define AMP_FULL_PRECISION "fp32"

typedef struct amp_precision {
    const char *word; /* "fp16": in a model, on the command line, in reports */
    amp_dtype low;    /* AMP_DT_F16: the `low` of its policies */
} amp_precision;

enum { AMP_PRECISION_COUNT = 4 };
extern const amp_precision amp_precisions[AMP_PRECISION_COUNT];

/* NULL: there is no such word. */
const amp_precision *amp_precision_find(const char *word);
/* "fp16" for AMP_DT_F16; "fp32" for a type that no precision has as its low type. */
const char *amp_precision_word(amp_dtype low);
/* Whether |name| ("f16") is the low type of some precision; |low| (may be NULL) is set if so. */
bool amp_low_type_of(const char *name, amp_dtype *low);

#ifdef __cplusplus
}
#endif

#endif
