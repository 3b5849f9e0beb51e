/* comment.h: what a kernel is, for people who read the generated text. */
#ifndef AMP_CODEGEN_CUDA_COMMENT_H
#define AMP_CODEGEN_CUDA_COMMENT_H

#include "codegen/walk.h"

/* "k17  cross_entropy: log_softmax + nll_loss           mlp.amp:14\n *   row over [n, 10] in train_step": lines of a
 * comment that is open. */
void cuda_comment_title(Text *t, const Walk *w);
/* Operands with their types, then one line per op, with why it has its type. */
void cuda_comment_body(Text *t, const Walk *w);

#endif
