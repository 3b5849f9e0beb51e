/* tensor_exact.c: sums of products without any error but one rounding: a fixed-point number that is wide enough for
 * every product. */
#include "fakecuda/alu/tensor.h"

#include <math.h>

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
