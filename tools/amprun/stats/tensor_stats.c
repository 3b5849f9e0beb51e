/* tensor_stats.c: see stats.h. */
#include "tools/amprun/stats/stats.h"

#include <inttypes.h>
#include <string.h>

enum { MANTISSA_BITS = 23, INFINITE = 0x7F800000 };

/* Half of the smallest subnormal rounds to zero, as the even neighbour; half a unit above the largest number to what is
 * above it, but in e4m3, whose largest, 448, is even. */
const ShortType short_types[SHORT_TYPES] = {
    {"f16", 0x33000001, 0x38800000, 0x477FF000},  /* above 2^-25, 2^-14, 65520 */
    {"bf16", 0x00008001, 0x00800000, 0x7F7F8000}, /* above 2^-134, 2^-126, 3.3961e38 */
    {"e4m3", 0x3A800001, 0x3C800000, 0x43E80001}, /* above 2^-10, 2^-6, above 464 */
    {"e5m2", 0x37000001, 0x38800000, 0x47700000}, /* above 2^-17, 2^-14, 61440 */
};

/* ---- bins -------------------------------------------------------------------------------------------------------- */

/* Where each bin begins: the powers of two and AMP_BIN_BOUNDS, in order. */
static void fill_starts(uint32_t *start) {
#define AS_ELEMENT(bound) bound,
    static const uint32_t bounds[] = {AMP_BIN_BOUNDS(AS_ELEMENT)};
#undef AS_ELEMENT
    enum { BOUNDS = sizeof bounds / sizeof *bounds };
    for (uint32_t e = 0, bound = 0, bin = 0; e < EXPONENTS; e++) {
        start[bin++] = e << MANTISSA_BITS;
        while (bound < BOUNDS && bounds[bound] >> MANTISSA_BITS == e) start[bin++] = bounds[bound++];
    }
}

static void count_in(ShortCounts *c, const ShortType *t, uint32_t start, int64_t count) {
    if (start < t->kept_from) c->flushed += count;
    else if (start < t->normal_from) c->subnormal += count;
    else if (start >= t->too_large_at) c->overflow += count;
}

static void count_finite(TensorStats *s, uint32_t start, int64_t count) {
    s->exponent[start >> MANTISSA_BITS] += count;
    for (int i = 0; i < SHORT_TYPES; i++) count_in(&s->in[i], &short_types[i], start, count);
}

TensorStats tensor_stats_of(amp_dtype dtype, const amp_number_bins *bins) {
    TensorStats s = {.dtype = dtype};
    uint32_t start[AMP_NUMBER_BINS];
    fill_starts(start);
    for (int b = 0; b < AMP_NUMBER_BINS; b++) {
        s.count += bins->count[b];
        if (start[b] == 0) s.zeros += bins->count[b];
        else if (start[b] < INFINITE) count_finite(&s, start[b], bins->count[b]);
        else if (start[b] == INFINITE) s.infinities += bins->count[b];
        else s.nans += bins->count[b];
    }
    memcpy(&s.largest, &bins->largest, sizeof s.largest);
    return s;
}

/* ---- as text ----------------------------------------------------------------------------------------------------- */

static void put_exponents(FILE *to, const TensorStats *s) {
    int first = 0, last = EXPONENTS - 1;
    while (first < last && !s->exponent[first]) first++;
    while (last > first && !s->exponent[last]) last--;
    fprintf(to, "{\"from\": %d, \"counts\": [", first - 127);
    for (int e = first; e <= last && s->exponent[first]; e++)
        fprintf(to, "%s%" PRId64, e > first ? ", " : "", s->exponent[e]);
    fprintf(to, "]}");
}

/* Of a tensor without a finite number no zero, which would look like a tensor of zeros. */
static void put_largest(FILE *to, const TensorStats *s) {
    if (s->infinities + s->nans < s->count || !s->count) fprintf(to, "\"largest\": %.9g", (double)s->largest);
    else fprintf(to, "\"largest\": \"%s\"", s->infinities ? "inf" : "nan");
}

void tensor_stats_json(FILE *to, const TensorStats *s) {
    fprintf(to,
            "\"dtype\": \"%s\", \"count\": %" PRId64 ", \"zeros\": %" PRId64 ", \"nans\": %" PRId64
            ", \"infinities\": %" PRId64 ", ",
            amp_dtype_name(s->dtype), s->count, s->zeros, s->nans, s->infinities);
    put_largest(to, s);
    fprintf(to, ", \"exponents\": ");
    put_exponents(to, s);
    for (int i = 0; i < SHORT_TYPES; i++)
        fprintf(to, ", \"%s\": {\"flushed\": %" PRId64 ", \"subnormal\": %" PRId64 ", \"overflow\": %" PRId64 "}",
                short_types[i].name, s->in[i].flushed, s->in[i].subnormal, s->in[i].overflow);
}
