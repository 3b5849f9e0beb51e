/* loss_scale.h: the arguments that `loss_scale = dynamic(...)` may leave out: torch.amp.GradScaler's numbers, and
 * bounds of our own.  Macros, because the op table, the language's signatures and the scale pass need them as
 * constants. */
#ifndef AMP_IR_LOSS_SCALE_H
#define AMP_IR_LOSS_SCALE_H

#define LOSS_SCALE_INIT 65536.0
#define LOSS_SCALE_GROWTH 2.0
#define LOSS_SCALE_BACKOFF 0.5
#define LOSS_SCALE_INTERVAL 2000
#define LOSS_SCALE_MIN 1.0
#define LOSS_SCALE_MAX 16777216.0

#endif
