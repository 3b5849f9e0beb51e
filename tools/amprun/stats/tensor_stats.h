/* tensor_stats.h: how large the numbers of a tensor are, and what shorter types would make of them. */
#ifndef AMP_TOOLS_AMPRUN_STATS_TENSOR_STATS_H
#define AMP_TOOLS_AMPRUN_STATS_TENSOR_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "amp/observe.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { EXPONENTS = 256, SHORT_TYPES = 4 };

/* A type that numbers could be rounded to, to nearest even.  Bounds are bits of f32, of magnitudes, and all between two
 * bins. */
typedef struct ShortType {
    const char *name;
    uint32_t kept_from;    /* below here a number becomes zero */
    uint32_t normal_from;  /* below here it loses bits, where it does not become zero */
    uint32_t too_large_at; /* from here on it becomes infinite, or NaN where the type has no infinity */
} ShortType;
extern const ShortType short_types[SHORT_TYPES]; /* f16, bf16, and OCP's e4m3 and e5m2 */

typedef struct ShortCounts {
    int64_t flushed, subnormal, overflow;
} ShortCounts;

typedef struct TensorStats {
    amp_dtype dtype;
    int64_t count, zeros, nans, infinities;
    /* Finite numbers but zero, by the exponent of f32, biased: [e] counts magnitudes from 2^(e - 127) on, [0] those
     * below 2^-126. */
    int64_t exponent[EXPONENTS];
    float largest; /* magnitude of the finite ones; 0: none */
    ShortCounts in[SHORT_TYPES];
} TensorStats;

TensorStats tensor_stats_of(amp_dtype dtype, const amp_number_bins *bins);
/* The members of a JSON object: "count": ... "e5m2": {...} */
void tensor_stats_json(FILE *to, const TensorStats *s);

#ifdef __cplusplus
}
#endif

#endif
