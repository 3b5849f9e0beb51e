/* function_modes.h: training and evaluation are one function in the language; here it becomes one function for each. */
#ifndef AMP_PASSES_COMMON_FUNCTION_MODES_H
#define AMP_PASSES_COMMON_FUNCTION_MODES_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The copy of `forward` in f32 that autocast makes if the model asks for evaluation in f32. */
#define FORWARD_IN_F32 "forward_fp32"

typedef struct Mode {
    const char *name;                  /* of the function */
    bool training;                     /* dropout drops, batch norm uses the batch */
    bool (*wants)(const char *result); /* results that it keeps */
} Mode;

/* "loss", "loss.*", "metric.*" and "update.*": what train blocks and `update` ask for.  All others are the model's own
 * results. */
bool result_is_of_training(const char *name);
/* "update.*": the next value of a buffer, which only a training step needs. */
bool result_is_update(const char *name);

/* The value of a result; NO_VAL: there is no such result. */
Val result_find(const Func *f, const char *name);

/* |f| in a mode: the results that the mode wants, with the ops and inputs that they need and no others. */
Func *mode_make(const Func *f, const Mode *mode);

#ifdef __cplusplus
}
#endif

#endif
