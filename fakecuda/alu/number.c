#include "fakecuda/alu/number.h"

const AluFormat alu_f16 = {16, 11, -14, 0x7fff}, alu_bf16 = {16, 8, -126, 0x7fff},
                alu_f32 = {32, 24, -126, ALU_NAN_F32}, alu_f64 = {64, 53, -1022, ALU_NAN_F64};

const AluFormat *alu_format(int type, int *parts) {
    *parts = type == PTX_F16X2 || type == PTX_BF16X2 || type == ALU_F32X2 ? 2 : 1;
    switch (type) {
    case PTX_F16:
    case PTX_F16X2: return &alu_f16;
    case PTX_BF16:
    case PTX_BF16X2: return &alu_bf16;
    case PTX_F32:
    case ALU_F32X2: return &alu_f32;
    case PTX_F64: return &alu_f64;
    default: return NULL;
    }
}

static int length(AluWide x) { /* bits up to the leading one */
    uint64_t high = (uint64_t)(x >> 64), low = (uint64_t)x;
    if (high) return 128 - __builtin_clzll(high);
    return low ? 64 - __builtin_clzll(low) : 0;
}

/* Shifts right by any amount; what is lost makes the last bit 1. */
static AluWide shift_sticky(AluWide x, int by) {
    if (by <= 0) return x;
    if (by >= 128) return x != 0;
    AluWide kept = x >> by;
    return kept | ((kept << by) != x);
}

static AluValue zero(bool negative) { return (AluValue){ALU_ZERO, negative, 0, 0}; }
static AluValue infinity(bool negative) { return (AluValue){ALU_INF, negative, 0, 0}; }
static AluValue nan_value(void) { return (AluValue){ALU_NOT_A_NUMBER, false, 0, 0}; }

AluValue alu_unpack(const AluFormat *f, uint64_t bits, uint32_t mods) {
    int fraction_bits = f->digits - 1;
    uint64_t fraction = bits & ((1ull << fraction_bits) - 1);
    bool negative = bits >> (f->bits - 1) & 1;
    int top = (1 << (f->bits - f->digits)) - 1, biased = (int)(bits >> fraction_bits) & top;
    if (biased == top) return fraction ? nan_value() : infinity(negative);
    if (biased == 0) {
        if (!fraction || mods & ALU_FTZ) return zero(negative);
        return (AluValue){ALU_NUMBER_, negative, f->emin - fraction_bits, fraction};
    }
    return (AluValue){ALU_NUMBER_, negative, f->emin + biased - 1 - fraction_bits, fraction | 1ull << fraction_bits};
}

/* Whether a magnitude with |rest| below its last kept bit goes up: |rest| 0 exact, 1 below half, 2 half, 3 above. */
static bool goes_up(AluRounding rounding, bool negative, bool odd, int rest) {
    switch (rounding) {
    case ALU_TO_ZERO:
    case ALU_INT_TO_ZERO: return false;
    case ALU_DOWN:
    case ALU_INT_DOWN: return negative && rest;
    case ALU_UP:
    case ALU_INT_UP: return !negative && rest;
    case ALU_NEAREST_AWAY: return rest >= 2;
    default: return rest == 3 || (rest == 2 && odd);
    }
}

/* sig >> drop, rounded. */
static AluWide shift_rounded(AluWide sig, int drop, AluRounding rounding, bool negative) {
    if (drop <= 0) return sig << -drop;
    AluWide kept = drop >= 128 ? 0 : sig >> drop;
    int rest = 1; /* drop > 128: below half */
    if (drop <= 128) {
        AluWide half = (AluWide)1 << (drop - 1), below = sig & (half - 1);
        rest = (sig & half ? 2 : 0) + (below != 0);
    }
    return kept + goes_up(rounding, negative, kept & 1, rest);
}

/* Finite magnitudes to the bits below the sign, infinity where they are too large. */
static uint64_t round_magnitude(const AluFormat *f, AluValue v, AluRounding rounding) {
    int fraction_bits = f->digits - 1, e = v.exp + length(v.sig) - 1;
    uint64_t inf = (uint64_t)((1 << (f->bits - f->digits)) - 1) << fraction_bits;
    if (e > 1 - f->emin) return inf;
    if (e < f->emin) e = f->emin;
    uint64_t kept = (uint64_t)shift_rounded(v.sig, e - fraction_bits - v.exp, rounding, v.negative);
    /* Without its leading one a normal number's fraction adds to its exponent, and a carry goes where it must. */
    uint64_t one = 1ull << fraction_bits;
    if (kept < one) return kept;
    uint64_t bits = ((uint64_t)(e - f->emin + 1) << fraction_bits) + (kept - one);
    return bits < inf ? bits : inf;
}

static bool overflows_to_infinity(AluRounding rounding, bool negative) {
    return !(rounding == ALU_TO_ZERO || (rounding == ALU_DOWN && !negative) || (rounding == ALU_UP && negative));
}

uint64_t alu_pack(const AluFormat *f, AluValue v, AluRounding rounding, uint32_t mods) {
    int fraction_bits = f->digits - 1;
    uint64_t sign = (uint64_t)v.negative << (f->bits - 1), inf = (uint64_t)((1 << (f->bits - f->digits)) - 1)
                                                                 << fraction_bits;
    uint64_t one = (uint64_t)-f->emin + 1, bits = 0;
    one <<= fraction_bits; /* 1.0: its exponent is 0 */
    if (v.class_ == ALU_NOT_A_NUMBER) return mods & ALU_SAT ? 0 : f->nan;
    if (v.class_ == ALU_INF) bits = inf;
    if (v.class_ == ALU_NUMBER_) {
        bits = round_magnitude(f, v, rounding);
        if (bits == inf && !overflows_to_infinity(rounding, v.negative)) bits = inf - 1;
        if (mods & ALU_FTZ && bits >> fraction_bits == 0) bits = 0;
    }
    if (mods & ALU_SATFINITE && bits == inf) bits = inf - 1;
    if (mods & (ALU_SAT | ALU_RELU) && sign) return 0;
    if (mods & ALU_SAT && bits > one) bits = one;
    return bits | sign;
}

AluValue alu_from_integer(AluWide magnitude, bool negative) {
    return magnitude ? (AluValue){ALU_NUMBER_, negative, 0, magnitude} : zero(false);
}

AluValue alu_from_double(double x) { return alu_unpack(&alu_f64, alu_f64_bits(x), 0); }

AluValue alu_to_integer(AluValue v, AluRounding rounding) {
    if (v.class_ != ALU_NUMBER_ || v.exp >= 0) {
        int room = 127 - length(v.sig);
        if (v.class_ == ALU_NUMBER_ && v.exp <= room) return (AluValue){ALU_NUMBER_, v.negative, 0, v.sig << v.exp};
        return v;
    }
    AluWide whole = shift_rounded(v.sig, -v.exp, rounding, v.negative);
    return whole ? (AluValue){ALU_NUMBER_, v.negative, 0, whole} : zero(v.negative);
}

AluValue alu_negate(AluValue a) {
    a.negative = !a.negative;
    return a;
}

/* The leading one at bit 125: room for a carry, and far more bits below than a product of two f64 has. */
static AluValue to_top(AluValue a) {
    int up = 126 - length(a.sig);
    a.sig <<= up;
    a.exp -= up;
    return a;
}

AluValue alu_add(AluValue a, AluValue b, AluRounding rounding) {
    if (a.class_ == ALU_NOT_A_NUMBER || b.class_ == ALU_NOT_A_NUMBER) return nan_value();
    if (a.class_ == ALU_INF || b.class_ == ALU_INF) {
        if (a.class_ == b.class_ && a.negative != b.negative) return nan_value();
        return a.class_ == ALU_INF ? a : b;
    }
    if (a.class_ == ALU_ZERO && b.class_ == ALU_ZERO)
        return zero(a.negative == b.negative ? a.negative : rounding == ALU_DOWN);
    if (a.class_ == ALU_ZERO) return b;
    if (b.class_ == ALU_ZERO) return a;
    a = to_top(a), b = to_top(b);
    if (a.exp < b.exp || (a.exp == b.exp && a.sig < b.sig)) {
        AluValue t = a;
        a = b, b = t;
    }
    b.sig = shift_sticky(b.sig, a.exp - b.exp);
    a.sig = a.negative == b.negative ? a.sig + b.sig : a.sig - b.sig;
    return a.sig ? a : zero(rounding == ALU_DOWN);
}

AluValue alu_mul(AluValue a, AluValue b) {
    bool negative = a.negative != b.negative;
    if (a.class_ == ALU_NOT_A_NUMBER || b.class_ == ALU_NOT_A_NUMBER) return nan_value();
    if (a.class_ == ALU_INF || b.class_ == ALU_INF)
        return a.class_ == ALU_ZERO || b.class_ == ALU_ZERO ? nan_value() : infinity(negative);
    if (a.class_ == ALU_ZERO || b.class_ == ALU_ZERO) return zero(negative);
    return (AluValue){ALU_NUMBER_, negative, a.exp + b.exp, a.sig * b.sig};
}

AluValue alu_div(AluValue a, AluValue b) {
    bool negative = a.negative != b.negative;
    if (a.class_ == ALU_NOT_A_NUMBER || b.class_ == ALU_NOT_A_NUMBER ||
        (a.class_ == b.class_ && a.class_ != ALU_NUMBER_))
        return nan_value();
    if (a.class_ == ALU_INF || b.class_ == ALU_ZERO) return infinity(negative);
    if (a.class_ == ALU_ZERO || b.class_ == ALU_INF) return zero(negative);
    a = to_top(a);
    AluWide quotient = a.sig / b.sig; /* at least 125 - 53 bits: more than any format keeps */
    return (AluValue){ALU_NUMBER_, negative, a.exp - b.exp - 1, quotient << 1 | (quotient * b.sig != a.sig)};
}

static AluWide square_root(AluWide x, bool *exact) { /* of at most 126 bits, digit by digit */
    AluWide root = 0, rest = 0;
    for (int shift = 124; shift >= 0; shift -= 2) {
        rest = rest << 2 | (x >> shift & 3);
        AluWide trial = root << 2 | 1;
        root <<= 1;
        if (rest >= trial) rest -= trial, root |= 1;
    }
    *exact = rest == 0;
    return root;
}

AluValue alu_sqrt(AluValue a) {
    if (a.class_ == ALU_ZERO || a.class_ == ALU_NOT_A_NUMBER) return a;
    if (a.negative) return nan_value();
    if (a.class_ == ALU_INF) return a;
    a = to_top(a);
    if (a.exp & 1) a.sig >>= 1, a.exp += 1; /* its last bit is 0: it came from at most 64 bits */
    bool exact;
    AluWide root = square_root(a.sig, &exact);
    return (AluValue){ALU_NUMBER_, false, a.exp / 2 - 1, root << 1 | !exact};
}
