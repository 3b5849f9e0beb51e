/* tensor_stats.c: see tensor_stats.h.
 *
 * Every number is counted by its exponent.  A bound of a short type lies within one exponent, so that only numbers of
 * that exponent are compared with it; of all others their exponent says it.
 */
#include "tools/amprun/stats/tensor_stats.h"

#include <inttypes.h>
#include <string.h>

enum { MANTISSA_BITS = 23, NOT_FINITE = 255 };

/* Half of the smallest subnormal rounds to zero, as the even neighbour; half a unit above the largest number to what is
 * above it, but in e4m3, whose largest, 448, is even. */
const ShortType short_types[SHORT_TYPES] = {
    {"f16", 0x33000000, 0x38800000, 0x477FF000},  /* 2^-25, 2^-14, 65520 */
    {"bf16", 0x00008000, 0x00800000, 0x7F7F8000}, /* 2^-134, 2^-126, 3.3961e38 */
    {"e4m3", 0x3A800000, 0x3C800000, 0x43E80001}, /* 2^-10, 2^-6, above 464 */
    {"e5m2", 0x37000000, 0x38800000, 0x47700000}, /* 2^-17, 2^-14, 61440 */
};

static unsigned exponent_of(uint32_t bits) { return bits >> MANTISSA_BITS; }

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

static void count_in(ShortCounts *c, const ShortType *t, uint32_t bits, int64_t times) {
    if (!bits) return;
    if (bits <= t->flushed_to) c->flushed += times;
    else if (bits < t->subnormal_below) c->subnormal += times;
    else if (bits >= t->infinite_from) c->overflow += times;
}

static bool divides(const ShortType *t, unsigned exponent) {
    return exponent == exponent_of(t->flushed_to) || exponent == exponent_of(t->subnormal_below) ||
           exponent == exponent_of(t->infinite_from);
}

/* Exponents whose numbers are looked at one by one. */
static void find_divided(bool *divided) {
    for (unsigned e = 0; e < EXPONENTS; e++) {
        divided[e] = e == 0 || e == NOT_FINITE;
        for (int i = 0; i < SHORT_TYPES; i++) divided[e] |= divides(&short_types[i], e);
    }
}

static void count_one(TensorStats *s, uint32_t bits) {
    const unsigned e = exponent_of(bits);
    if (e == NOT_FINITE) {
        if (bits << (32 - MANTISSA_BITS)) s->nans++;
        else s->infinities++;
        return;
    }
    if (!bits) s->zeros++;
    for (int i = 0; i < SHORT_TYPES; i++) count_in(&s->in[i], &short_types[i], bits, 1);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

void tensor_stats_add(TensorStats *s, const float *data, int64_t count) {
    int64_t found[EXPONENTS] = {0};
    bool divided[EXPONENTS];
    uint32_t largest;
    memcpy(&largest, &s->largest, sizeof largest);
    find_divided(divided);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &data[i], sizeof bits);
        bits &= 0x7FFFFFFF;
        const unsigned e = exponent_of(bits);
        found[e]++;
        if (divided[e]) count_one(s, bits);
        if (bits > largest && e != NOT_FINITE) largest = bits;
    }
    memcpy(&s->largest, &largest, sizeof largest);
    s->count += count;
    for (unsigned e = 0; e < EXPONENTS; e++) {
        s->exponent[e] += found[e];
        for (int i = 0; i < SHORT_TYPES && !divided[e]; i++)
            count_in(&s->in[i], &short_types[i], e << MANTISSA_BITS, found[e]);
    }
}

/* ---- as text ----------------------------------------------------------------------------------------------------- */

int64_t tensor_stats_numbers(const TensorStats *s, unsigned e) {
    if (e == NOT_FINITE) return 0;
    return e ? s->exponent[e] : s->exponent[0] - s->zeros;
}

static void put_exponents(FILE *to, const TensorStats *s) {
    unsigned first = 0, last = NOT_FINITE;
    while (first < last && !tensor_stats_numbers(s, first)) first++;
    while (last > first && !tensor_stats_numbers(s, last)) last--;
    fprintf(to, "{\"from\": %d, \"counts\": [", (int)first - 127);
    for (unsigned e = first; e <= last && tensor_stats_numbers(s, first); e++)
        fprintf(to, "%s%" PRId64, e > first ? ", " : "", tensor_stats_numbers(s, e));
    fprintf(to, "]}");
}

void tensor_stats_json(FILE *to, const TensorStats *s) {
    fprintf(to,
            "\"dtype\": \"%s\", \"count\": %" PRId64 ", \"zeros\": %" PRId64 ", \"nans\": %" PRId64
            ", \"infinities\": %" PRId64 ", \"largest\": %.9g, \"exponents\": ",
            amp_dtype_name(s->dtype), s->count, s->zeros, s->nans, s->infinities, (double)s->largest);
    put_exponents(to, s);
    for (int i = 0; i < SHORT_TYPES; i++)
        fprintf(to, ", \"%s\": {\"flushed\": %" PRId64 ", \"subnormal\": %" PRId64 ", \"overflow\": %" PRId64 "}",
                short_types[i].name, s->in[i].flushed, s->in[i].subnormal, s->in[i].overflow);
}
