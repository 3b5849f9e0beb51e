/* diag_at.h: errors at places of the model text. */
#ifndef AMP_PASSES_COMMON_DIAG_AT_H
#define AMP_PASSES_COMMON_DIAG_AT_H

#include "passes/passes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An error at |pos|: with line and caret if the module holds its text, else with file, line and column in the
 * message. */
Diag *place_error(PassContext *c, Pos pos, const char *fmt, ...) AMP_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif

#endif
