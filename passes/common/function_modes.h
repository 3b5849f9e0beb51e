/* function_modes.h: training and evaluation are one function in the language; here it becomes one function for each. */
#ifndef AMP_PASSES_COMMON_FUNCTION_MODES_H
#define AMP_PASSES_COMMON_FUNCTION_MODES_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Mode {
    ProgramKind kind;               /* of the function */
    bool training;                  /* dropout drops, batch norm uses the batch */
    bool (*wants)(ResultKind kind); /* results that it keeps */
} Mode;

/* Losses, metrics and updates: what train blocks and `update` ask for.  All others are the model's own results. */
bool result_is_of_training(ResultKind kind);

/* The value of a result; NO_VAL: there is no such result. */
Val result_value(const Result *r);

/* |f| in a mode: the results that the mode wants, with the ops and inputs that they need and no others. */
Func *mode_make(const Func *f, const Mode *mode);

#ifdef __cplusplus
}
#endif

#endif
