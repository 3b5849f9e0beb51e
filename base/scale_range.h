/* scale_range.h: the loss scales that a step can use: f32 numbers that are normal and whose reciprocal, by which
 * gradients are unscaled, is normal too.  At 0, or where the reciprocal is infinite, one step makes every weight NaN
 * (0 * inf), though all gradients are finite; at inf every step is skipped for ever. */
#ifndef AMP_BASE_SCALE_RANGE_H
#define AMP_BASE_SCALE_RANGE_H

#include <stdbool.h>

#define AMP_SCALE_LEAST 0x1p-126
#define AMP_SCALE_MOST 0x1p+126
#define AMP_SCALE_RANGE "from 2^-126 (1.2e-38) to 2^126 (8.5e37)"

/* As the f32 that it becomes. */
static inline bool amp_scale_is_usable(double scale) {
    return (float)scale >= (float)AMP_SCALE_LEAST && (float)scale <= (float)AMP_SCALE_MOST;
}

/* The bounds that update_scale keeps, from the bounds in the model. */
static inline double amp_scale_floor(double min) { return min > AMP_SCALE_LEAST ? min : AMP_SCALE_LEAST; }
static inline double amp_scale_ceiling(double max) { return max < AMP_SCALE_MOST ? max : AMP_SCALE_MOST; }

#endif
