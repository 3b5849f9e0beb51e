/* tensor_core.c: see tensor_core.h. */
#include "fakecuda/alu/tensor_core.h"

#include <math.h>

static const TensorFormat f16 = {16, 10, -14, 0}, bf16 = {16, 7, -126, 0}, tf32 = {32, 23, -126, 13},
                          f32 = {32, 23, -126, 0};

const TensorFormat *tensor_format(int type) {
    switch (type) {
    case PTX_F16: return &f16;
    case PTX_BF16: return &bf16;
    case PTX_TF32: return &tf32;
    default: return &f32;
    }
}

double tensor_value(const TensorFormat *f, uint32_t bits) {
    if (f == &f16) return alu_f16_to_f32((uint16_t)bits);
    return alu_bits_f32(f == &bf16 ? bits << 16 : bits >> f->skipped << f->skipped);
}

uint32_t tensor_rounded(const TensorFormat *f, double exact) {
    if (exact != exact) return f == &f16 ? 0x7fff : ALU_NAN_F32;
    if (f == &f16) return (uint32_t)alu_pack(&alu_f16, alu_from_double(exact), ALU_NEAREST, 0);
    return (uint32_t)alu_pack(&alu_f32, alu_from_double(exact), fabs(exact) >= 0x1p128 ? ALU_NEAREST : ALU_TO_ZERO, 0);
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

enum { LOWEST = -126, NO_EXPONENT = -4096, BIAS = 127 };

typedef int32_t Ints __attribute__((vector_size(TENSOR_N * sizeof(int32_t)))); /* one for each column */
typedef float Floats __attribute__((vector_size(TENSOR_N * sizeof(float))));
#define INLINE static inline __attribute__((always_inline))
#define CHOOSE(condition, yes, no)                                                                                     \
    (((yes) & (condition)) | ((no) & ~(condition))) /* conditions are all ones or zeros */

/* Infinities and NaN become zeros that are marked; true where there are any. */
INLINE bool split(const uint32_t *bits, int count, TensorFormat f, TensorTerms *out) {
    int top = (1 << (f.bits - 1 - f.fraction_bits)) - 1;
    float unit = alu_bits_f32((uint32_t)(BIAS - f.fraction_bits) << 23);
    Ints found = {0};
    for (int i = 0; i < count; i += TENSOR_N) {
        Ints x;
        memcpy(&x, bits + i, sizeof x);
        Ints sign = (x >> (f.bits - 1)) << 31, biased = x >> f.fraction_bits & top;
        Ints fraction = x & ((1 << f.fraction_bits) - (1 << f.skipped));
        Ints special = biased == top, is_subnormal = biased == 0;
        Ints normal = BIAS << 23 | fraction << (23 - f.fraction_bits);
        Ints subnormal = (Ints)(__builtin_convertvector(fraction, Floats) * unit);
        Ints sig = (CHOOSE(is_subnormal, subnormal, normal) | sign) & ~special;
        Ints low = CHOOSE(fraction == 0, NO_EXPONENT + (Ints){0}, f.emin + (Ints){0});
        Ints exp = CHOOSE(special, NO_EXPONENT + (Ints){0}, CHOOSE(is_subnormal, low, biased - 1 + f.emin));
        memcpy(out->sig + i, &sig, sizeof sig);
        memcpy(out->exp + i, &exp, sizeof exp);
        memcpy(out->special + i, &special, sizeof special);
        found |= special;
    }
    int32_t any = 0;
    for (int j = 0; j < TENSOR_N; ++j) any |= found[j];
    return any;
}

/* One row of one block: the sums, in units of 2^(exponent - bits). */
INLINE void row_sums(const float *sig_a, const int32_t *exp_a, const float *sig_b, const int32_t *exp_b,
                     const float *sig_c, const int32_t *exp_c, int block, int bits, double *sums, int32_t *exponents) {
    Ints of_c, largest, part[2] = {{0}}; /* of the first eight terms, of the others */
    Floats c;
    memcpy(&of_c, exp_c, sizeof of_c);
    memcpy(&c, sig_c, sizeof c);
    largest = CHOOSE(of_c > LOWEST, of_c, LOWEST);
    for (int k = 0; k < block; ++k) {
        Ints e;
        memcpy(&e, exp_b + k * TENSOR_N, sizeof e);
        e += exp_a[k];
        largest = CHOOSE(e > largest, e, largest);
    }
    /* Terms are scaled by a power of two, made of its exponent's bits (0: too small to count) and lose their fraction.
     * A term is below 2^(bits + 2): eight of them, of 27 bits at most, fit 31. */
    Ints at = BIAS + bits - largest;
    for (int half = 0; half < 2; ++half) {
        int last = half == 0 && block > 8 ? 8 : block;
        for (int k = half * 8; k < last; ++k) {
            Ints e;
            Floats b;
            memcpy(&e, exp_b + k * TENSOR_N, sizeof e);
            memcpy(&b, sig_b + k * TENSOR_N, sizeof b);
            e += exp_a[k] + at;
            e = (e & (e > BIAS - 3)) << 23;
            part[half] += __builtin_convertvector(sig_a[k] * b * (Floats)e, Ints);
        }
    }
    of_c += at;
    of_c = (of_c & (of_c > BIAS - 3)) << 23;
    Ints cut = __builtin_convertvector(c * (Floats)of_c, Ints);
    for (int j = 0; j < TENSOR_N; ++j) sums[j] = (double)part[0][j] + (double)part[1][j] + (double)cut[j];
    memcpy(exponents, &largest, sizeof largest);
}

/* Cut off after 24 digits; false where some result is not a normal f32. */
INLINE bool row_to_f32(const double *sums, const int32_t *exponents, int bits, uint32_t *d) {
    int32_t odd = 0;
    for (int j = 0; j < TENSOR_N; ++j) odd |= (sums[j] != 0) & ((exponents[j] < bits + LOWEST) | (exponents[j] > 120));
    if (odd) return false;
    for (int j = 0; j < TENSOR_N; ++j) {
        double kept = alu_bits_f64(alu_f64_bits(sums[j]) & ~((1ull << 29) - 1));
        d[j] = alu_f32_bits((float)(kept * alu_bits_f64((uint64_t)(int64_t)(exponents[j] - bits + 1023) << 52)));
    }
    return true;
}

INLINE bool any(const int32_t *marks, int count) {
    int32_t found = 0;
    for (int i = 0; i < count; ++i) found |= marks[i];
    return found;
}

/* A sum with an infinity or NaN in it is what float64 makes of it: it cannot overflow. */
static double special_sum(const TensorTask *t, int row, int column, int first) {
    double sum = tensor_value(t->sum, t->c[row * TENSOR_N + column]);
    for (int k = first; k < first + t->block; ++k)
        sum += tensor_value(t->factor, t->a[row * TENSOR_MAX_K + k]) *
               tensor_value(t->factor, t->b[k * TENSOR_N + column]);
    return sum;
}

/* The columns of a row in whose sums there is an infinity or NaN. */
static void row_specials(const TensorTask *t, int row, int first, uint32_t *d) {
    for (int j = 0; j < TENSOR_N; ++j) {
        double sum = special_sum(t, row, j, first);
        if (!isfinite(sum)) d[j] = tensor_rounded(t->sum, sum);
    }
}

INLINE void multiply(const TensorTask *t) {
    TensorTerms a, b, c;
    bool special_a = split(t->a, TENSOR_M * TENSOR_MAX_K, *t->factor, &a);
    bool special_b = split(t->b, TENSOR_MAX_K * TENSOR_N, *t->factor, &b);
    for (int first = 0; first < t->k; first += t->block) {
        bool special_c = split(t->c, TENSOR_M * TENSOR_N, *t->sum, &c);
        for (int row = 0; row < TENSOR_M; ++row) {
            int in_a = row * TENSOR_MAX_K + first, in_b = first * TENSOR_N, in_c = row * TENSOR_N;
            uint32_t d[TENSOR_N];
            double sums[TENSOR_N];
            int32_t exponents[TENSOR_N];
            row_sums(a.sig + in_a, a.exp + in_a, b.sig + in_b, b.exp + in_b, c.sig + in_c, c.exp + in_c, t->block,
                     t->bits, sums, exponents);
            if (t->sum != &f32 || !row_to_f32(sums, exponents, t->bits, d))
                for (int j = 0; j < TENSOR_N; ++j)
                    d[j] = tensor_rounded(t->sum, ldexp(sums[j], exponents[j] - t->bits));
            if (special_b || (special_a && any(a.special + in_a, t->block)) ||
                (special_c && any(c.special + in_c, TENSOR_N)))
                row_specials(t, row, first, d);
            memcpy(t->c + in_c, d, sizeof d);
        }
    }
}

static void multiply_anywhere(const TensorTask *t) { multiply(t); }
#if defined(__x86_64__)
__attribute__((target("avx2"))) static void multiply_avx2(const TensorTask *t) { multiply(t); }
#endif

void tensor_multiply(const TensorTask *t) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        multiply_avx2(t);
        return;
    }
#endif
    multiply_anywhere(t);
}

/* ---- exact sums -------------------------------------------------------------------------------------------------- */

/* Sums of products without any error but one rounding: a fixed-point number that is wide enough for every product. */

/* 2^-352 .. 2^288: products of tf32 numbers are multiples of 2^-272 below 2^256, and have 53 digits as float64. */
enum { DIGITS = 20, DIGIT_BITS = 32, LOWEST_BIT = -352 };

typedef struct Sum {
    int64_t digits[DIGITS]; /* each with its own sign; carries are only made at the end */
} Sum;

static void add(Sum *s, double term) { /* zero, or a normal number within the range */
    uint64_t bits = alu_f64_bits(term);
    int exponent = (int)(bits >> 52 & 0x7ff);
    if (exponent == 0) return;
    int at = exponent - 1075 - LOWEST_BIT, digit = at / DIGIT_BITS;
    bool negative = bits >> 63;
    AluWide shifted = (AluWide)((bits & ((1ull << 52) - 1)) | 1ull << 52) << (at % DIGIT_BITS);
    for (int i = 0; i < 3; ++i) {
        int64_t part = (int64_t)(uint32_t)(shifted >> (DIGIT_BITS * i));
        s->digits[digit + i] += negative ? -part : part;
    }
}

/* Digits between 0 and 2^32 - 1, but for the sign of the last. */
static void carry(Sum *s) {
    for (int i = 0; i + 1 < DIGITS; ++i) {
        int64_t up = s->digits[i] >> DIGIT_BITS;
        s->digits[i] &= 0xffffffff;
        s->digits[i + 1] += up;
    }
}

static AluValue value(Sum *s) {
    carry(s);
    bool negative = s->digits[DIGITS - 1] < 0;
    if (negative) {
        for (int i = 0; i < DIGITS; ++i) s->digits[i] = -s->digits[i];
        carry(s);
    }
    int top = DIGITS - 1;
    while (top >= 0 && s->digits[top] == 0) --top;
    if (top < 0) return alu_from_integer(0, false);
    AluWide sig = 0;
    bool below = false;
    for (int i = 0; i <= top; ++i) {
        int place = i - (top - 3); /* four digits are kept */
        if (place >= 0) sig |= (AluWide)(uint64_t)s->digits[i] << (DIGIT_BITS * place);
        else below |= s->digits[i] != 0;
    }
    return (AluValue){ALU_NUMBER_, negative, LOWEST_BIT + DIGIT_BITS * (top - 3), sig | below};
}

static uint32_t exact_sum(const TensorTask *t, double c, const double *a, const double *b) {
    Sum sum = {{0}};
    double rough = c; /* cannot overflow */
    add(&sum, isfinite(c) ? c : 0);
    for (int k = 0; k < t->k; ++k) {
        double product = a[k] * b[k * TENSOR_N];
        rough += product;
        add(&sum, isfinite(product) ? product : 0);
    }
    if (!isfinite(rough)) return tensor_rounded(t->sum, rough);
    const AluFormat *to = t->sum == tensor_format(PTX_F16) ? &alu_f16 : &alu_f32;
    return (uint32_t)alu_pack(to, value(&sum), ALU_NEAREST, 0);
}

void tensor_multiply_exact(const TensorTask *t) {
    double a[TENSOR_M * TENSOR_MAX_K], b[TENSOR_MAX_K * TENSOR_N];
    for (int i = 0; i < TENSOR_M * TENSOR_MAX_K; ++i) a[i] = tensor_value(t->factor, t->a[i]);
    for (int i = 0; i < TENSOR_MAX_K * TENSOR_N; ++i) b[i] = tensor_value(t->factor, t->b[i]);
    for (int row = 0; row < TENSOR_M; ++row)
        for (int column = 0; column < TENSOR_N; ++column) {
            uint32_t *c = &t->c[row * TENSOR_N + column];
            *c = exact_sum(t, tensor_value(t->sum, *c), a + row * TENSOR_MAX_K, b + column);
        }
}
