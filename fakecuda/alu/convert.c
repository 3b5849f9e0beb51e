/* convert.c: cvt, between all integer and floating-point types. */
#include "fakecuda/alu/half.h"
#include "fakecuda/alu/integer_lanes.h"
#include "fakecuda/alu/number.h"

#include <math.h>

float alu_f16_to_f32(uint16_t h) { return alu_bits_f32(alu_half_to_f32_bits(h)); }
uint16_t alu_f32_to_f16(float x) { return (uint16_t)alu_f32_bits_to_half(alu_f32_bits(x)); }
float alu_bf16_to_f32(uint16_t h) { return alu_bits_f32(alu_bhalf_to_f32_bits(h)); }
uint16_t alu_f32_to_bf16(float x) { return (uint16_t)alu_f32_bits_to_bhalf(alu_f32_bits(x)); }

static uint64_t get(const AluOp *op, const void *lanes, int i) {
    return op->source_bytes[0] == 8 ? ((const uint64_t *)lanes)[i] : ((const uint32_t *)lanes)[i];
}
static void put(const AluOp *op, void *lanes, int i, uint64_t value) {
    if (op->dst_bytes[0] == 8) ((uint64_t *)lanes)[i] = value;
    else ((uint32_t *)lanes)[i] = (uint32_t)value;
}
static uint64_t low_bits(uint64_t x, int bits) { return bits == 64 ? x : x & ((1ull << bits) - 1); }

/* A number of |bits| bits as one of 128. */
static AluS128 extended(uint64_t x, int bits, bool is_signed) {
    x = low_bits(x, bits);
    return is_signed && x >> (bits - 1) & 1 ? (AluS128)x - ((AluS128)1 << bits) : (AluS128)x;
}

static uint64_t clamped(AluS128 x, int bits, bool is_signed) {
    AluS128 low = is_signed ? -((AluS128)1 << (bits - 1)) : 0, high = ((AluS128)1 << (is_signed ? bits - 1 : bits)) - 1;
    return low_bits((uint64_t)(x < low ? low : x > high ? high : x), bits);
}

/* ---- integer to integer ------------------------------------------------------------------------------------------ */

static void integer_to_integer(ALU_ARGS) {
    (void)c;
    int from = alu_type_bits(op->from), to = alu_type_bits(op->type);
    bool from_signed = alu_type_is_signed(op->from), to_signed = alu_type_is_signed(op->type), sat = op->mods & ALU_SAT;
    for (uint32_t rest = active; rest; rest &= rest - 1) {
        int i = __builtin_ctz(rest);
        AluS128 x = extended(get(op, src[0], i), from, from_signed);
        put(op, dst[0], i, sat ? clamped(x, to, to_signed) : low_bits((uint64_t)x, to));
    }
}

/* Conversions of addresses and indices. */
static void widen_u32(ALU_ARGS) {
    ALU_UNUSED;
    uint64_t *d = dst[0];
    const uint32_t *x = src[0];
    ALU_EACH_LANE(active, d[i] = x[i]);
}
static void widen_s32(ALU_ARGS) {
    ALU_UNUSED;
    uint64_t *d = dst[0];
    const uint32_t *x = src[0];
    ALU_EACH_LANE(active, d[i] = (uint64_t)(int64_t)(int32_t)x[i]);
}
static void narrow_64(ALU_ARGS) {
    ALU_UNUSED;
    uint32_t *d = dst[0];
    const uint64_t *x = src[0];
    ALU_EACH_LANE(active, d[i] = (uint32_t)x[i]);
}

/* ---- with floating-point numbers --------------------------------------------------------------------------------- */

/* .ftz is about f32 alone. */
static uint32_t mods_for(const AluOp *op, const AluFormat *f) {
    return f == &alu_f32 ? op->mods : op->mods & ~(uint32_t)ALU_FTZ;
}

static uint64_t nan_as_integer(const AluFormat *from, int bits) {
    return from == &alu_f64 || bits == 64 ? 1ull << (bits - 1) : 0;
}

static uint64_t value_to_integer(AluValue v, AluRounding rounding, int bits, bool is_signed) {
    v = alu_to_integer(v, rounding);
    if (v.class_ == ALU_ZERO) return 0;
    bool huge = v.class_ == ALU_INF || v.exp != 0 || v.sig >> 100;
    AluS128 x = huge ? (AluS128)1 << 100 : (AluS128)v.sig;
    return clamped(v.negative ? -x : x, bits, is_signed);
}

static void float_to_integer(ALU_ARGS) {
    (void)c;
    int parts, bits = alu_type_bits(op->type);
    const AluFormat *f = alu_format(op->from, &parts);
    bool is_signed = alu_type_is_signed(op->type);
    for (uint32_t rest = active; rest; rest &= rest - 1) {
        int i = __builtin_ctz(rest);
        AluValue v = alu_unpack(f, low_bits(get(op, src[0], i), f->bits), mods_for(op, f));
        put(op, dst[0], i,
            v.class_ == ALU_NOT_A_NUMBER ? nan_as_integer(f, bits)
                                         : value_to_integer(v, op->rounding, bits, is_signed));
    }
}

static void integer_to_float(ALU_ARGS) {
    (void)c;
    int parts, bits = alu_type_bits(op->from);
    const AluFormat *f = alu_format(op->type, &parts);
    bool is_signed = alu_type_is_signed(op->from);
    for (uint32_t rest = active; rest; rest &= rest - 1) {
        int i = __builtin_ctz(rest);
        AluS128 x = extended(get(op, src[0], i), bits, is_signed);
        put(op, dst[0], i,
            alu_pack(f, alu_from_integer((AluWide)(x < 0 ? -x : x), x < 0), op->rounding, mods_for(op, f)));
    }
}

static uint64_t float_to_float(const AluOp *op, const AluFormat *to, const AluFormat *from, uint64_t bits) {
    AluValue v = alu_unpack(from, low_bits(bits, from->bits), mods_for(op, from));
    AluRounding rounding = op->rounding;
    if (rounding >= ALU_INT_NEAREST) {
        v = alu_to_integer(v, rounding);
        rounding = ALU_NEAREST; /* of a whole number that has few digits: exact */
    }
    return alu_pack(to, v, rounding, mods_for(op, to));
}

static void any_to_float(ALU_ARGS) {
    (void)c;
    int parts;
    const AluFormat *to = alu_format(op->type, &parts), *from = alu_format(op->from, &parts);
    ALU_EACH_LANE(active, put(op, dst[0], i, float_to_float(op, to, from, get(op, src[0], i))));
}

/* The first operand goes to the upper half. */
static void f32_to_pair(ALU_ARGS) {
    (void)c;
    int parts;
    const AluFormat *to = alu_format(op->type, &parts);
    uint32_t *d = dst[0];
    const uint32_t *x = src[0], *y = src[1];
    ALU_EACH_LANE(active, uint32_t high = (uint32_t)float_to_float(op, to, &alu_f32, x[i]);
                  uint32_t low = (uint32_t)float_to_float(op, to, &alu_f32, y[i]); d[i] = high << 16 | low);
}

static const AluFormat tf32_upper = {19, 11, -126, 0x3ffff}; /* tf32 without the 13 bits that are never read */

static void f32_to_tf32(ALU_ARGS) {
    (void)c;
    uint32_t *d = dst[0];
    const uint32_t *x = src[0];
    ALU_EACH_LANE(active, AluValue v = alu_unpack(&alu_f32, x[i], 0);
                  d[i] = v.class_ == ALU_NOT_A_NUMBER
                             ? ALU_NAN_F32
                             : (uint32_t)alu_pack(&tf32_upper, v, op->rounding, op->mods) << 13);
}

/* ---- the common ones, to nearest --------------------------------------------------------------------------------- */

#define FAST(name, FROM, EXPRESSION)                                                                                   \
    static void name(ALU_ARGS) {                                                                                       \
        ALU_UNUSED;                                                                                                    \
        uint32_t *d = dst[0];                                                                                          \
        const FROM *x = src[0];                                                                                        \
        ALU_EACH_LANE(active, FROM a = x[i]; d[i] = EXPRESSION);                                                       \
    }
FAST(f16_to_f32, uint32_t, alu_half_to_f32_bits(a))
FAST(bf16_to_f32, uint32_t, alu_bhalf_to_f32_bits(a))
FAST(f32_to_f16, uint32_t, alu_f32_bits_to_half(a))
FAST(f32_to_bf16, uint32_t, alu_f32_bits_to_bhalf(a))
FAST(s32_to_f32, uint32_t, alu_f32_bits((float)(int32_t)a))
FAST(u32_to_f32, uint32_t, alu_f32_bits((float)a))

/* To whole numbers, which stay f32 or become integers. */
static inline double whole(uint32_t bits, const AluOp *op) {
    float x = alu_bits_f32(op->mods & ALU_FTZ && !(bits & 0x7f800000) ? bits & 0x80000000 : bits);
    switch (op->rounding) {
    case ALU_INT_NEAREST: return rintf(x);
    case ALU_INT_TO_ZERO: return truncf(x);
    case ALU_INT_DOWN: return floorf(x);
    default: return ceilf(x);
    }
}
FAST(f32_to_whole, uint32_t, a << 1 > 0xff000000u ? ALU_NAN_F32 : alu_f32_bits((float)whole(a, op)))
FAST(f32_to_s32, uint32_t, a << 1 > 0xff000000u ? 0 : (uint32_t)(int32_t)fmin(fmax(whole(a, op), INT32_MIN), INT32_MAX))
FAST(f32_to_u32, uint32_t, a << 1 > 0xff000000u ? 0 : (uint32_t)fmin(fmax(whole(a, op), 0), UINT32_MAX))

#define FAST_PAIR(name, EXPRESSION)                                                                                    \
    static void name(ALU_ARGS) {                                                                                       \
        ALU_UNUSED;                                                                                                    \
        uint32_t *d = dst[0];                                                                                          \
        const uint32_t *x = src[0], *y = src[1];                                                                       \
        ALU_EACH_LANE(active, d[i] = EXPRESSION(x[i]) << 16 | EXPRESSION(y[i]));                                       \
    }
FAST_PAIR(f32_to_f16x2, alu_f32_bits_to_half)
FAST_PAIR(f32_to_bf16x2, alu_f32_bits_to_bhalf)

/* ---- cvt.pack ---------------------------------------------------------------------------------------------------- */

static void pack_integers(ALU_ARGS) { /* the first operand above the second, both above what is left of the third */
    (void)c;
    int bits = alu_type_bits(op->type);
    bool is_signed = alu_type_is_signed(op->type);
    uint32_t *d = dst[0];
    const uint32_t *x = src[0], *y = src[1], *z = op->sources == 3 ? src[2] : NULL;
    ALU_EACH_LANE(active, uint32_t high = (uint32_t)clamped((int32_t)x[i], bits, is_signed);
                  uint32_t low = (uint32_t)clamped((int32_t)y[i], bits, is_signed);
                  d[i] = (z ? z[i] << (2 * bits) : 0) | high << bits | low);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define FORM(type, from, arch, roundings, needs, allows, operands, run)                                                \
    { "cvt", type, from, arch, 0, roundings, needs, allows, operands, "cvt", run }
#define FOR_INTEGERS(M, type)                                                                                          \
    M(type, PTX_U8), M(type, PTX_U16), M(type, PTX_U32), M(type, PTX_U64), M(type, PTX_S8), M(type, PTX_S16),          \
        M(type, PTX_S32), M(type, PTX_S64)
#define FOR_LARGER(M, type) /* not of 8 bits */                                                                        \
    M(type, PTX_U16), M(type, PTX_U32), M(type, PTX_U64), M(type, PTX_S16), M(type, PTX_S32), M(type, PTX_S64)
#define INT_INT(type, from) FORM(type, from, 0, 0, 0, ALU_SAT, "T=F", integer_to_integer)
#define INT_TO_FLOAT(type, from) FORM(type, from, 0, ALU_R_FLOAT, 0, ALU_SAT, "T=F", integer_to_float)
#define INT_TO_F32(type, from) FORM(type, from, 0, ALU_R_FLOAT, 0, ALU_SAT | ALU_FTZ, "T=F", integer_to_float)
#define INT_TO_BF16(type, from) FORM(type, from, 90, ALU_R_FLOAT, 0, 0, "T=F", integer_to_float)
#define FLOAT_TO_INT(from, type) FORM(type, from, 0, ALU_R_INTEGER, 0, ALU_SAT, "T=F", float_to_integer)
#define F32_TO_INT(from, type) FORM(type, from, 0, ALU_R_INTEGER, 0, ALU_SAT | ALU_FTZ, "T=F", float_to_integer)
#define BF16_TO_INT(from, type) FORM(type, from, 90, ALU_R_INTEGER, 0, 0, "T=F", float_to_integer)
#define WIDER(type, from, arch, allows) FORM(type, from, arch, 0, 0, allows, "T=F", any_to_float)
#define NARROWER(type, from, arch, roundings, allows) FORM(type, from, arch, roundings, 0, allows, "T=F", any_to_float)
#define SAME(type, arch, allows) FORM(type, type, arch, ALU_R_NONE | ALU_R_INTEGER, 0, allows, "T=F", any_to_float)

static const AluForm forms[] = {
    FORM(PTX_U64, PTX_U32, 0, 0, 0, 0, "T=F", widen_u32),
    FORM(PTX_S64, PTX_U32, 0, 0, 0, 0, "T=F", widen_u32),
    FORM(PTX_S64, PTX_S32, 0, 0, 0, 0, "T=F", widen_s32),
    FORM(PTX_U64, PTX_S32, 0, 0, 0, 0, "T=F", widen_s32),
    FORM(PTX_U32, PTX_U64, 0, 0, 0, 0, "T=F", narrow_64),
    FORM(PTX_U32, PTX_S64, 0, 0, 0, 0, "T=F", narrow_64),
    FORM(PTX_S32, PTX_U64, 0, 0, 0, 0, "T=F", narrow_64),
    FORM(PTX_S32, PTX_S64, 0, 0, 0, 0, "T=F", narrow_64),
    FOR_INTEGERS(INT_INT, PTX_U8),
    FOR_INTEGERS(INT_INT, PTX_U16),
    FOR_INTEGERS(INT_INT, PTX_U32),
    FOR_INTEGERS(INT_INT, PTX_U64),
    FOR_INTEGERS(INT_INT, PTX_S8),
    FOR_INTEGERS(INT_INT, PTX_S16),
    FOR_INTEGERS(INT_INT, PTX_S32),
    FOR_INTEGERS(INT_INT, PTX_S64),

    FORM(PTX_F32, PTX_S32, 0, ALU_R_NEAREST, 0, 0, "T=F", s32_to_f32),
    FORM(PTX_F32, PTX_U32, 0, ALU_R_NEAREST, 0, 0, "T=F", u32_to_f32),
    FOR_INTEGERS(INT_TO_FLOAT, PTX_F16),
    FOR_INTEGERS(INT_TO_F32, PTX_F32),
    FOR_INTEGERS(INT_TO_FLOAT, PTX_F64),
    FOR_LARGER(INT_TO_BF16, PTX_BF16),
    FORM(PTX_S32, PTX_F32, 0, ALU_R_INTEGER, 0, ALU_SAT | ALU_FTZ, "T=F", f32_to_s32),
    FORM(PTX_U32, PTX_F32, 0, ALU_R_INTEGER, 0, ALU_SAT | ALU_FTZ, "T=F", f32_to_u32),
    FOR_INTEGERS(FLOAT_TO_INT, PTX_F16),
    FOR_INTEGERS(F32_TO_INT, PTX_F32),
    FOR_INTEGERS(FLOAT_TO_INT, PTX_F64),
    FOR_LARGER(BF16_TO_INT, PTX_BF16),

    FORM(PTX_F32, PTX_F16, 0, 0, 0, ALU_FTZ, "T=F", f16_to_f32),
    FORM(PTX_F32, PTX_BF16, 80, 0, 0, 0, "T=F", bf16_to_f32),
    FORM(PTX_F16, PTX_F32, 0, ALU_R_NEAREST, 0, 0, "T=F", f32_to_f16),
    FORM(PTX_BF16, PTX_F32, 80, ALU_R_NEAREST, 0, 0, "T=F", f32_to_bf16),
    WIDER(PTX_F32, PTX_F16, 0, ALU_FTZ | ALU_SAT),
    WIDER(PTX_F64, PTX_F16, 0, ALU_SAT),
    WIDER(PTX_F64, PTX_F32, 0, ALU_FTZ | ALU_SAT),
    WIDER(PTX_F64, PTX_BF16, 90, 0),
    WIDER(PTX_F32, PTX_BF16, 90, ALU_FTZ),
    NARROWER(PTX_F16, PTX_F32, 0, ALU_R_FLOAT, ALU_FTZ | ALU_SAT),
    NARROWER(PTX_F16, PTX_F64, 0, ALU_R_FLOAT, ALU_SAT),
    NARROWER(PTX_F32, PTX_F64, 0, ALU_R_FLOAT, ALU_FTZ | ALU_SAT),
    NARROWER(PTX_F16, PTX_F32, 0, ALU_R_FLOAT2, ALU_SATFINITE),
    NARROWER(PTX_F16, PTX_F32, 80, ALU_R_FLOAT2, ALU_RELU | ALU_SATFINITE),
    NARROWER(PTX_BF16, PTX_F32, 80, ALU_R_FLOAT2, ALU_RELU | ALU_SATFINITE),
    NARROWER(PTX_BF16, PTX_F32, 80, ALU_R_FLOAT, ALU_FTZ),
    NARROWER(PTX_BF16, PTX_F64, 90, ALU_R_FLOAT, 0),
    NARROWER(PTX_BF16, PTX_F16, 90, ALU_R_FLOAT, 0),
    NARROWER(PTX_F16, PTX_BF16, 90, ALU_R_FLOAT, 0),
    FORM(PTX_F32, PTX_F32, 0, ALU_R_INTEGER, 0, ALU_FTZ, "T=F", f32_to_whole),
    SAME(PTX_F32, 0, ALU_FTZ | ALU_SAT),
    SAME(PTX_F64, 0, ALU_SAT),
    SAME(PTX_F16, 0, ALU_SAT),
    SAME(PTX_BF16, 90, 0),

    FORM(PTX_F16X2, PTX_F32, 80, ALU_R_NEAREST, 0, 0, "T=FF", f32_to_f16x2),
    FORM(PTX_BF16X2, PTX_F32, 80, ALU_R_NEAREST, 0, 0, "T=FF", f32_to_bf16x2),
    FORM(PTX_F16X2, PTX_F32, 80, ALU_R_FLOAT2, 0, ALU_RELU | ALU_SATFINITE, "T=FF", f32_to_pair),
    FORM(PTX_BF16X2, PTX_F32, 80, ALU_R_FLOAT2, 0, ALU_RELU | ALU_SATFINITE, "T=FF", f32_to_pair),
    FORM(PTX_TF32, PTX_F32, 80, ALU_R_AWAY, 0, ALU_SATFINITE, "T=F", f32_to_tf32),
    FORM(PTX_TF32, PTX_F32, 90, ALU_R_FLOAT2, 0, ALU_RELU, "T=F", f32_to_tf32),
    FORM(PTX_TF32, PTX_F32, 100, ALU_R_FLOAT2, ALU_SATFINITE, ALU_RELU, "T=F", f32_to_tf32),

    FORM(PTX_U16, PTX_S32, 0, 0, ALU_PACK | ALU_SAT, 0, "I=FF", pack_integers),
    FORM(PTX_S16, PTX_S32, 0, 0, ALU_PACK | ALU_SAT, 0, "I=FF", pack_integers),
    FORM(PTX_U8, PTX_S32, 0, 0, ALU_PACK | ALU_SAT, 0, "I=FFC", pack_integers),
    FORM(PTX_S8, PTX_S32, 0, 0, ALU_PACK | ALU_SAT, 0, "I=FFC", pack_integers),
};
ALU_FORMS(alu_forms_convert, forms);
