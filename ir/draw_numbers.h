/* draw_numbers.h: the number of each element of a tensor, which its random number is drawn by.
 *
 * A tensor has samples if N is a factor of one dimension, of its first power and undivided.  Element (sample, place):
 *
 *     number = sample * each + place
 *
 * |place| counts the elements of a sample in row-major order of the other dimensions, and |each| is how many there
 * are, as if T were LARGEST_T.  So a sample's numbers depend on neither T, nor the samples beside it, nor on which
 * dimension N is.  Of N * T samples come first, then T.
 *
 *     [N, 784]        n * 784 + i, the row-major index
 *     [N, T, 96]      n * (LARGEST_T * 96) + t * 96 + i
 *     [N, 4, T, T]    n * (4 * LARGEST_T * LARGEST_T) + (h * LARGEST_T + t) * LARGEST_T + s
 *     [T, N, 96]      n * (LARGEST_T * 96) + t * 96 + i
 *
 * Without samples it is |place|; if N occurs in another way ([N, N], N / 2), the row-major index.
 */
#ifndef AMP_IR_DRAW_NUMBERS_H
#define AMP_IR_DRAW_NUMBERS_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A factor of the index of a row or of a column: (index / inner) % size is counted in steps of |stride|. */
typedef struct DrawPart {
    Dim size, inner;
    int64_t stride;
} DrawPart;

typedef struct DrawNumbers {
    bool in_order;               /* numbers are row-major indices: there are no parts */
    bool by_sample;              /* there are samples */
    int64_t each;                /* numbers of a sample; of the tensor, if it has none */
    int rows, count;             /* parts of the rows; of rows and columns (shape_matrix) */
    DrawPart part[MAX_RANK + 1]; /* N * T has two */
} DrawNumbers;

DrawNumbers ir_draw_numbers(const Shape *s);
/* Of the queries [..., H, T] of attention, from the shape [..., H, T, D]; keys come within them, and this is how many
 * they count as. */
DrawNumbers ir_draw_numbers_of_queries(const Shape *q);
int64_t ir_draw_keys(Dim keys);
/* Of the element with this row-major index. */
int64_t ir_draw_number(const DrawNumbers *d, int64_t index, Sizes at);

#ifdef __cplusplus
}
#endif

#endif
