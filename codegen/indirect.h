/* indirect.h: ops that make their result from memory (docs/design/kernels.md).
 *   indirect.c          one op and its coordinates; sums of products
 *   indirect_move.c     reshape, permute, slice, pad, concat, expand, gather
 *   indirect_window.c   loops over the windows of images, and pooling
 *   indirect_resample.c images in another size
 *   indirect_lanes.c    where a thread makes several elements side by side, all of them at once
 *
 * i0, i1, .. are the coordinates of the result's element along its leading dimensions.
 */
#ifndef AMP_CODEGEN_INDIRECT_H
#define AMP_CODEGEN_INDIRECT_H

#include "codegen/emit.h"

/* `vf v12; { coordinates; v12 = ..; }` */
amp_status indirect_emit(Emitter *e, const Op *o);
/* What |o| reads from memory as its |n|th input. */
Memory indirect_memory(const Emitter *e, const Op *o, int n);
/* v12 = an inlined value (codegen/walk.h) at this row and column of its matrix, which |o| reads.  Opens |o|'s lanes. */
amp_status indirect_emit_inlined(Emitter *e, const Op *o, Val v, const char *row, const char *column);

amp_status indirect_emit_move(Emitter *e, const Op *o);
amp_status indirect_emit_window(Emitter *e, const Op *o);
amp_status indirect_emit_resample(Emitter *e, const Op *o);

/* ---- lanes (Emitter.lane_count) ---------------------------------------------------------------------------------- */

/* Whether neighbours in the result of |o| are neighbours in all that it reads, by whole vectors of |vector|. */
bool indirect_has_vectors(const Walk *w, const Op *o, int vector);
/* The bytes of the widest element that the kernel's ops read that way; 0: of none. */
int indirect_widest(const Walk *w);
/* The element, or the vector, at this row and column: an expression, in lanes where there are any.  Called outside of
 * them, where it may write a load. */
const char *indirect_read(Emitter *e, const Memory *m, const char *row, const char *column);
/* Code between these runs for each lane: v12 is the lane's result.  They write nothing if there are no lanes. */
void indirect_open_lanes(Emitter *e, const Op *o);
void indirect_close_lanes(Emitter *e);
void indirect_put_zero(Emitter *e, const Op *o); /* v12 = 0.0f */

/* ---- loops over taps, for sums of products ----------------------------------------------------------------------- */

/* py, px: the pixel of x under element (kh, kw) of the window of y's pixel (|oy|, |ox|). */
void indirect_input_pixel(Emitter *e, const Windows *g, const char *sample, const char *oy, const char *ox);
/* py, px: the pixel of y whose window's element (kh, kw) covers x's pixel (i1, i2). */
void indirect_output_pixel(Emitter *e, const Windows *g);

#endif
