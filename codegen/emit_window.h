/* emit_window.h: loops over the windows of channels-last images, as every target writes them.
 *
 * i0, i1, i2 are sample, row and column of the result's pixel; `pixel` is the row of the operand that a loop body reads. */
#ifndef AMP_CODEGEN_EMIT_WINDOW_H
#define AMP_CODEGEN_EMIT_WINDOW_H

#include "codegen/emit.h"

/* Whether every window lies inside the image: no element of one is padding. */
bool emit_is_inside(const Windows *g);
/* Loops over the elements (kh, kw) of the window of result pixel (i1, i2); py, px: the operand's pixel, inside the image. */
void emit_open_windows(Emitter *e, const Windows *g);
/* Loops over the windows that hold the result's pixel (i1, i2), by its place (kh, kw) in them, ascending: those of rows py with
 * kh = i1 + padding - py * stride inside the window.  Windows that do not overlap hold it once. */
void emit_open_holders(Emitter *e, const Windows *g);
void emit_close_windows(Emitter *e); /* ends either */

/* In a loop over taps.  py, px: the pixel of x under element (kh, kw) of the window of y's pixel (|oy|, |ox|). */
void emit_input_pixel(Emitter *e, const Windows *g, const char *sample, const char *oy, const char *ox);
/* py, px: the pixel of y whose window's element (kh, kw) lies on x's pixel (i1, i2). */
void emit_output_pixel(Emitter *e, const Windows *g);

#endif
