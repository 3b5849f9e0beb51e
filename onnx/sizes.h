/* sizes.h: sizes of dimensions, with symbols by name: mul * (a product of symbols) / div + add.
 *
 * What that form does not hold, floor((T - 3) / 2) or P + T, becomes a symbol of its own, named by its text, so that
 * equal expressions are equal sizes.  A size that nothing is known of equals nothing, not even itself. */
#ifndef AMP_ONNX_SIZES_H
#define AMP_ONNX_SIZES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct OnnxSize {
    int64_t mul, div, add;
    uint32_t term; /* of OnnxSizes.terms; 0: no symbol, and the size is |add|; 1: unknown */
} OnnxSize;

typedef struct OnnxSymbol {
    const char *name;
    double typical; /* a value to compare sizes by */
    uint32_t term;  /* that it is alone */
} OnnxSymbol;

/* A product of symbols: in ascending order, as often as their power says. */
typedef struct OnnxTerm {
    const uint32_t *symbols;
    int count;
    double typical;
} OnnxTerm;

typedef struct OnnxSizes {
    Arena *arena, *scratch;
    VEC(OnnxSymbol) symbols;
    VEC(OnnxTerm) terms;
    Table by_name, by_symbols; /* terms */
    double typical;            /* of a name of the model */
} OnnxSizes;

void onnx_sizes_init(OnnxSizes *c, Arena *a, double typical);

OnnxSize onnx_size(int64_t value);
OnnxSize onnx_size_named(OnnxSizes *c, const char *name);
OnnxSize onnx_size_new(OnnxSizes *c); /* an input's without a name: equal to itself alone */
OnnxSize onnx_size_unknown(void);

bool onnx_size_is_number(OnnxSize s);
bool onnx_size_is_unknown(OnnxSize s);
bool onnx_size_is(OnnxSize s, int64_t value);
bool onnx_size_equal(OnnxSize a, OnnxSize b);

OnnxSize onnx_size_add(OnnxSizes *c, OnnxSize a, OnnxSize b);
OnnxSize onnx_size_sub(OnnxSizes *c, OnnxSize a, OnnxSize b);
OnnxSize onnx_size_mul(OnnxSizes *c, OnnxSize a, OnnxSize b);
OnnxSize onnx_size_divide(OnnxSizes *c, OnnxSize a, OnnxSize b); /* if that leaves no remainder */
OnnxSize onnx_size_floor(OnnxSizes *c, OnnxSize a, OnnxSize b);  /* the quotient, rounded down */
OnnxSize onnx_size_max(OnnxSizes *c, OnnxSize a, OnnxSize b);
OnnxSize onnx_size_min(OnnxSizes *c, OnnxSize a, OnnxSize b);

/* What it is if each name has its typical size. */
double onnx_size_typical(const OnnxSizes *c, OnnxSize s);
void onnx_size_print(const OnnxSizes *c, Text *t, OnnxSize s);

#ifdef __cplusplus
}
#endif

#endif
