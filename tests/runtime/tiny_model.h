/* tiny_model.h: a model written by hand: logits = x w^T + b, cross entropy, SGD with momentum under a dynamic loss
 * scale.
 *
 * It uses every kind of kernel and buffer, panels and their transpose, a derived state, predicates and flags, so the
 * runtime can be tested without the compiler.  Its functions are plain loops; tests compute the same in double.
 */
#ifndef AMP_TESTS_RUNTIME_TINY_MODEL_H
#define AMP_TESTS_RUNTIME_TINY_MODEL_H

#include "amp/model_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TINY_FEATURES = 40, TINY_CLASSES = 10, TINY_IGNORE = -100, TINY_INTERVAL = 4 };
#define TINY_LEARNING_RATE 0.125f
#define TINY_MOMENTUM 0.5f
#define TINY_SCALE 1024.0f

AMP_API const amp_model_desc *amp_model_query(void);

#ifdef __cplusplus
}
#endif
#endif
