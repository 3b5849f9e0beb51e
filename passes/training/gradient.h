/* gradient.h: the gradient of each op. */
#ifndef AMP_PASSES_TRAINING_GRADIENT_H
#define AMP_PASSES_TRAINING_GRADIENT_H

#include "passes/training/backward.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Gradient {
    /* Gives Backward.op's operands their gradients; false: an error is in the diagnostics. */
    bool (*make)(Backward *b);
    /* Their names in paths of backward ops; none where there is one operand, or any number. */
    const char *operands[NAMED_OPERANDS];
    Opcode op; /* of (dy, x) or (dy, y), that gives dx; where that is all */
} Gradient;

/* By opcode, one table a file; an op is in one of them. */
extern const Gradient gradient_elementwise_ops[OP_COUNT], gradient_image_ops[OP_COUNT], gradient_move_ops[OP_COUNT],
    gradient_norm_ops[OP_COUNT], gradient_product_ops[OP_COUNT], gradient_reduce_ops[OP_COUNT];
enum { GRADIENT_TABLES = 6 };
extern const Gradient *const gradient_tables[GRADIENT_TABLES];
const Gradient *gradient_of(Opcode code); /* NULL: the op has none, or NO_GRADIENT */

#ifdef __cplusplus
}
#endif

#endif
