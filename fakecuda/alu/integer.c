/* integer.c: integers: sums, differences, quotients, extremes, with and without the carry flag; products: low, high and
 * whole, with a third operand added, and dot products of small numbers. */
#include "fakecuda/alu/integer_lanes.h"

ALU_FOR_UNSIGNED(ALU_BINARY, add, (Unsigned)(a + b))
ALU_FOR_UNSIGNED(ALU_BINARY, sub, (Unsigned)(a - b))
ALU_FOR_SIGNED(ALU_UNARY, abs, a < 0 ? (Unsigned)(0 - (Unsigned)a) : (Unsigned)a)
ALU_FOR_SIGNED(ALU_UNARY, neg, 0 - (Unsigned)a)
ALU_FOR_INTEGERS(ALU_BINARY, min, a < b ? a : b)
ALU_FOR_INTEGERS(ALU_BINARY, max, a > b ? a : b)
ALU_FOR_INTEGERS(ALU_TERNARY, sad, (Unsigned)c_ + (a < b ? (Unsigned)b - (Unsigned)a : (Unsigned)a - (Unsigned)b))

/* The document leaves division by zero to the machine.  Here the quotient has all bits set and the remainder is the
 * dividend. */
ALU_FOR_UNSIGNED(ALU_BINARY, div, b ? (Unsigned)(a / b) : (Unsigned)-1)
ALU_FOR_UNSIGNED(ALU_BINARY, rem, b ? (Unsigned)(a % b) : (Unsigned)a)
ALU_FOR_SIGNED(ALU_BINARY, div, b == 0 ? (Unsigned)-1 : b == -1 ? (Unsigned)(0 - (Unsigned)a) : (Unsigned)(a / b))
ALU_FOR_SIGNED(ALU_BINARY, rem, b == 0 ? (Unsigned)a : b == -1 ? 0 : (Unsigned)(a % b))

#define CLAMP_S32(x) ((x) < INT32_MIN ? INT32_MIN : (x) > INT32_MAX ? INT32_MAX : (x))
ALU_BINARY(add_sat, s32, CLAMP_S32((Wide)a + b))
ALU_BINARY(sub_sat, s32, CLAMP_S32((Wide)a - b))
ALU_BINARY(min_relu, s32, (a < b ? a : b) > 0 ? (a < b ? a : b) : 0)
ALU_BINARY(max_relu, s32, (a > b ? a : b) > 0 ? (a > b ? a : b) : 0)

/* ---- two 16-bit numbers in a register ---------------------------------------------------------------------------- */

#define PAIRS(name, T, ...)                                                                                            \
    static void name(ALU_ARGS) {                                                                                       \
        ALU_UNUSED;                                                                                                    \
        uint32_t *d = dst[0];                                                                                          \
        const uint32_t *x = src[0], *y = src[1];                                                                       \
        bool relu = op->mods & ALU_RELU;                                                                               \
        (void)relu;                                                                                                    \
        ALU_EACH_LANE(                                                                                                 \
            active, uint32_t both = 0; for (int half = 0; half < 32; half += 16) {                                     \
                T a = (T)(x[i] >> half), b = (T)(y[i] >> half);                                                        \
                both |= (uint32_t)(uint16_t)(__VA_ARGS__) << half;                                                     \
            } d[i] = both);                                                                                            \
    }
#define AT_LEAST_0(x) (relu && (x) < 0 ? 0 : (x))
PAIRS(add_pairs, uint16_t, a + b)
PAIRS(min_u16x2, uint16_t, a < b ? a : b)
PAIRS(max_u16x2, uint16_t, a > b ? a : b)
PAIRS(min_s16x2, int16_t, AT_LEAST_0(a < b ? a : b))
PAIRS(max_s16x2, int16_t, AT_LEAST_0(a > b ? a : b))

/* ---- the carry flag ---------------------------------------------------------------------------------------------- */

#define CARRY(name, t, ...)                                                                                            \
    static void name##_##t(ALU_ARGS) {                                                                                 \
        ALU_BEGIN(t)                                                                                                   \
        const Lane *y = (const Lane *)src[1];                                                                          \
        const uint32_t *in = op->carry_in ? (const uint32_t *)src[3] : NULL;                                           \
        uint32_t *out = op->carry_out ? (uint32_t *)dst[1] : NULL;                                                     \
        ALU_EACH_LANE(active, Wide a = x[i]; Wide b = y[i]; Wide flag = in ? in[i] & 1 : 0; Wide sum = __VA_ARGS__;    \
                      d[i] = (Lane)sum; if (out) out[i] = (uint32_t)(sum >> BITS) & 1);                                \
    }
CARRY(add_carry, u32, a + b + flag)
CARRY(add_carry, u64, a + b + flag)
CARRY(sub_carry, u32, a - b - flag)
CARRY(sub_carry, u64, a - b - flag)

#define FORM(opcode, type, needs, operands, run)                                                                       \
    { opcode, type, PTX_NONE, 0, 0, 0, needs, 0, operands, "int", run }
#define FORM90(opcode, type, needs, allows, run)                                                                       \
    { opcode, type, PTX_NONE, 90, 0, 0, needs, allows, "T=TT", "int", run }
#define SIX(opcode, operands, name)                                                                                    \
    FORM(opcode, PTX_U16, 0, operands, name##_u16), FORM(opcode, PTX_U32, 0, operands, name##_u32),                    \
        FORM(opcode, PTX_U64, 0, operands, name##_u64), FORM(opcode, PTX_S16, 0, operands, name##_s16),                \
        FORM(opcode, PTX_S32, 0, operands, name##_s32), FORM(opcode, PTX_S64, 0, operands, name##_s64)
#define ANY_SIGN(opcode, name) /* the bits of the result are the same */                                               \
    FORM(opcode, PTX_U16, 0, "T=TT", name##_u16), FORM(opcode, PTX_U32, 0, "T=TT", name##_u32),                        \
        FORM(opcode, PTX_U64, 0, "T=TT", name##_u64), FORM(opcode, PTX_S16, 0, "T=TT", name##_u16),                    \
        FORM(opcode, PTX_S32, 0, "T=TT", name##_u32), FORM(opcode, PTX_S64, 0, "T=TT", name##_u64)
#define SIGNED(opcode, name)                                                                                           \
    FORM(opcode, PTX_S16, 0, "T=T", name##_s16), FORM(opcode, PTX_S32, 0, "T=T", name##_s32),                          \
        FORM(opcode, PTX_S64, 0, "T=T", name##_s64)
#define FLAG(opcode, needs, allows, operands, name)                                                                    \
    {opcode, PTX_U32, PTX_NONE, 0, 0, 0, needs, allows, operands, "int", name##_u32},                                  \
        {opcode, PTX_S32, PTX_NONE, 0, 0, 0, needs, allows, operands, "int", name##_u32},                              \
        {opcode, PTX_U64, PTX_NONE, 0, 0, 0, needs, allows, operands, "int", name##_u64}, {                            \
        opcode, PTX_S64, PTX_NONE, 0, 0, 0, needs, allows, operands, "int", name##_u64                                 \
    }

static const AluForm integer_forms[] = {
    ANY_SIGN("add", add),
    ANY_SIGN("sub", sub),
    SIGNED("abs", abs),
    SIGNED("neg", neg),
    SIX("min", "T=TT", min),
    SIX("max", "T=TT", max),
    SIX("sad", "T=TTT", sad),
    SIX("div", "T=TT", div),
    SIX("rem", "T=TT", rem),
    FORM("add", PTX_S32, ALU_SAT, "T=TT", add_sat_s32),
    FORM("sub", PTX_S32, ALU_SAT, "T=TT", sub_sat_s32),
    FORM90("min", PTX_S32, ALU_RELU, 0, min_relu_s32),
    FORM90("max", PTX_S32, ALU_RELU, 0, max_relu_s32),
    FORM90("add", ALU_U16X2, 0, 0, add_pairs),
    FORM90("add", ALU_S16X2, 0, 0, add_pairs),
    FORM90("min", ALU_U16X2, 0, 0, min_u16x2),
    FORM90("max", ALU_U16X2, 0, 0, max_u16x2),
    FORM90("min", ALU_S16X2, 0, ALU_RELU, min_s16x2),
    FORM90("max", ALU_S16X2, 0, ALU_RELU, max_s16x2),
    FLAG("add", ALU_CC, 0, "T=TT", add_carry),
    FLAG("sub", ALU_CC, 0, "T=TT", sub_carry),
    FLAG("addc", 0, ALU_CC, "T=TT+", add_carry),
    FLAG("subc", 0, ALU_CC, "T=TT+", sub_carry),
};
ALU_FORMS(alu_forms_integer, integer_forms);

/* ---- products ---------------------------------------------------------------------------------------------------- */

#define LOW(a, b) ((Unsigned)(1u * (Unsigned)(a) * (Unsigned)(b)))
#define HIGH(a, b) ((Unsigned)(((Wide)(a) * (Wide)(b)) >> BITS))
ALU_FOR_UNSIGNED(ALU_BINARY, mul_lo, LOW(a, b))
ALU_FOR_INTEGERS(ALU_BINARY, mul_hi, HIGH(a, b))
ALU_FOR_UNSIGNED(ALU_TERNARY, mad_lo, (Unsigned)(LOW(a, b) + c_))
ALU_FOR_INTEGERS(ALU_TERNARY, mad_hi, (Unsigned)(HIGH(a, b) + (Unsigned)c_))
/* The document has it saturate; on an H200 with driver 580.159 it wraps. */
ALU_TERNARY(mad_hi_sat, s32, (Unsigned)(HIGH(a, b) + (Unsigned)c_))

/* The result, and what is added, are twice as wide as the factors. */
#define WIDE(t, RESULT)                                                                                                \
    static void mul_wide_##t(ALU_ARGS) {                                                                               \
        ALU_TYPE_##t;                                                                                                  \
        ALU_UNUSED, (void)sizeof(Unsigned);                                                                            \
        RESULT *d = dst[0];                                                                                            \
        const uint32_t *x = src[0], *y = src[1];                                                                       \
        ALU_EACH_LANE(active, d[i] = (RESULT)((Wide)(Type)x[i] * (Wide)(Type)y[i]));                                   \
    }                                                                                                                  \
    static void mad_wide_##t(ALU_ARGS) {                                                                               \
        ALU_TYPE_##t;                                                                                                  \
        ALU_UNUSED, (void)sizeof(Unsigned);                                                                            \
        RESULT *d = dst[0];                                                                                            \
        const uint32_t *x = src[0], *y = src[1];                                                                       \
        const RESULT *z = src[2];                                                                                      \
        ALU_EACH_LANE(active, d[i] = (RESULT)((Wide)(Type)x[i] * (Wide)(Type)y[i]) + z[i]);                            \
    }
WIDE(u16, uint32_t)
WIDE(s16, uint32_t)
WIDE(u32, uint64_t)
WIDE(s32, uint64_t)

/* mad.cc and madc: the half of the product is made first, the carry comes from the sum. */
#define MAD_CARRY(t, LANE)                                                                                             \
    static void mad_carry_##t(ALU_ARGS) {                                                                              \
        ALU_BEGIN(t)                                                                                                   \
        const Lane *y = (const Lane *)src[1], *z = (const Lane *)src[2];                                               \
        const uint32_t *in = op->carry_in ? (const uint32_t *)src[3] : NULL;                                           \
        uint32_t *out = op->carry_out ? (uint32_t *)dst[1] : NULL;                                                     \
        bool high = op->mods & ALU_HI;                                                                                 \
        ALU_EACH_LANE(active, Type a = (Type)x[i]; Type b = (Type)y[i]; Unsigned half = high ? HIGH(a, b) : LOW(a, b); \
                      AluU128 sum = (AluU128)half + z[i] + (in ? in[i] & 1 : 0); d[i] = (Lane)sum;                     \
                      if (out) out[i] = (uint32_t)(sum >> BITS) & 1);                                                  \
    }
MAD_CARRY(u32, uint32_t)
MAD_CARRY(s32, uint32_t)
MAD_CARRY(u64, uint64_t)
MAD_CARRY(s64, uint64_t)

/* ---- products of 24 bits ----------------------------------------------------------------------------------------- */

static int64_t of_24_bits(uint32_t x, bool is_signed) {
    x &= 0xffffff;
    return is_signed && x >> 23 ? (int64_t)x - (1 << 24) : (int64_t)x;
}

static void mul24(ALU_ARGS) { /* and mad24 */
    ALU_UNUSED;
    uint32_t *d = dst[0];
    const uint32_t *x = src[0], *y = src[1], *z = op->sources == 3 ? src[2] : NULL;
    bool is_signed = op->type == PTX_S32, high = op->mods & ALU_HI, sat = op->mods & ALU_SAT;
    for (int i = 0; i < ALU_LANES; ++i) {
        if (!(active >> i & 1)) continue;
        int64_t product = of_24_bits(x[i], is_signed) * of_24_bits(y[i], is_signed);
        uint32_t half = (uint32_t)((uint64_t)product >> (high ? 16 : 0));
        int64_t sum = (int64_t)(int32_t)half + (z ? (int32_t)z[i] : 0);
        d[i] = sat ? (uint32_t)CLAMP_S32(sum) : (uint32_t)sum;
    }
}

/* ---- dot products ------------------------------------------------------------------------------------------------ */

static int64_t part(uint32_t x, int at, int bits, bool is_signed) {
    uint32_t v = x >> at & ((1u << bits) - 1);
    return is_signed && v >> (bits - 1) ? (int64_t)v - (1ll << bits) : (int64_t)v;
}

static void dot(ALU_ARGS) { /* dp4a: 4 products of 8 bits; dp2a: 2 of 16 bits and 8 bits, the lower or upper two of b */
    ALU_UNUSED;
    uint32_t *d = dst[0];
    const uint32_t *x = src[0], *y = src[1], *z = src[2];
    bool two = op->mods & (ALU_LO | ALU_HI);
    int bits = two ? 16 : 8, first = op->mods & ALU_HI ? 16 : 0;
    for (int i = 0; i < ALU_LANES; ++i) {
        if (!(active >> i & 1)) continue;
        int64_t sum = 0;
        for (int k = 0; k < 32 / bits; ++k)
            sum += part(x[i], k * bits, bits, op->type == PTX_S32) * part(y[i], first + 8 * k, 8, op->from == PTX_S32);
        d[i] = z[i] + (uint32_t)sum;
    }
}

#define PRODUCT(opcode, type, from, needs, allows, operands, run)                                                      \
    { opcode, type, from, 0, 0, 0, needs, allows, operands, "int", run }
#define HALVES(opcode, operands, name)                                                                                 \
    PRODUCT(opcode, PTX_U16, 0, ALU_LO, 0, operands, name##_lo_u16),                                                   \
        PRODUCT(opcode, PTX_S16, 0, ALU_LO, 0, operands, name##_lo_u16),                                               \
        PRODUCT(opcode, PTX_U32, 0, ALU_LO, 0, operands, name##_lo_u32),                                               \
        PRODUCT(opcode, PTX_S32, 0, ALU_LO, 0, operands, name##_lo_u32),                                               \
        PRODUCT(opcode, PTX_U64, 0, ALU_LO, 0, operands, name##_lo_u64),                                               \
        PRODUCT(opcode, PTX_S64, 0, ALU_LO, 0, operands, name##_lo_u64),                                               \
        PRODUCT(opcode, PTX_U16, 0, ALU_HI, 0, operands, name##_hi_u16),                                               \
        PRODUCT(opcode, PTX_S16, 0, ALU_HI, 0, operands, name##_hi_s16),                                               \
        PRODUCT(opcode, PTX_U32, 0, ALU_HI, 0, operands, name##_hi_u32),                                               \
        PRODUCT(opcode, PTX_S32, 0, ALU_HI, 0, operands, name##_hi_s32),                                               \
        PRODUCT(opcode, PTX_U64, 0, ALU_HI, 0, operands, name##_hi_u64),                                               \
        PRODUCT(opcode, PTX_S64, 0, ALU_HI, 0, operands, name##_hi_s64)
#define WIDES(opcode, operands, name)                                                                                  \
    PRODUCT(opcode, PTX_U16, 0, ALU_WIDE, 0, operands, name##_u16),                                                    \
        PRODUCT(opcode, PTX_S16, 0, ALU_WIDE, 0, operands, name##_s16),                                                \
        PRODUCT(opcode, PTX_U32, 0, ALU_WIDE, 0, operands, name##_u32),                                                \
        PRODUCT(opcode, PTX_S32, 0, ALU_WIDE, 0, operands, name##_s32)
#define CARRIES(opcode, needs, allows, operands)                                                                       \
    PRODUCT(opcode, PTX_U32, 0, needs, allows, operands, mad_carry_u32),                                               \
        PRODUCT(opcode, PTX_S32, 0, needs, allows, operands, mad_carry_s32),                                           \
        PRODUCT(opcode, PTX_U64, 0, needs, allows, operands, mad_carry_u64),                                           \
        PRODUCT(opcode, PTX_S64, 0, needs, allows, operands, mad_carry_s64)
#define TYPES_24(opcode, needs, operands)                                                                              \
    PRODUCT(opcode, PTX_U32, 0, needs, 0, operands, mul24), PRODUCT(opcode, PTX_S32, 0, needs, 0, operands, mul24)
#define DOTS(opcode, needs)                                                                                            \
    PRODUCT(opcode, PTX_U32, PTX_U32, needs, 0, "T=III", dot),                                                         \
        PRODUCT(opcode, PTX_U32, PTX_S32, needs, 0, "T=III", dot),                                                     \
        PRODUCT(opcode, PTX_S32, PTX_U32, needs, 0, "T=III", dot),                                                     \
        PRODUCT(opcode, PTX_S32, PTX_S32, needs, 0, "T=III", dot)

static const AluForm product_forms[] = {
    HALVES("mul", "T=TT", mul),
    HALVES("mad", "T=TTT", mad),
    WIDES("mul", "W=TT", mul_wide),
    WIDES("mad", "W=TTW", mad_wide),
    PRODUCT("mad", PTX_S32, 0, ALU_HI | ALU_SAT, 0, "T=TTT", mad_hi_sat_s32),
    CARRIES("mad", ALU_CC | ALU_LO, 0, "T=TTT"),
    CARRIES("mad", ALU_CC | ALU_HI, 0, "T=TTT"),
    CARRIES("madc", ALU_LO, ALU_CC, "T=TTT+"),
    CARRIES("madc", ALU_HI, ALU_CC, "T=TTT+"),
    TYPES_24("mul24", ALU_LO, "T=TT"),
    TYPES_24("mul24", ALU_HI, "T=TT"),
    TYPES_24("mad24", ALU_LO, "T=TTT"),
    TYPES_24("mad24", ALU_HI, "T=TTT"),
    PRODUCT("mad24", PTX_S32, 0, ALU_HI | ALU_SAT, 0, "T=TTT", mul24),
    DOTS("dp4a", 0),
    DOTS("dp2a", ALU_LO),
    DOTS("dp2a", ALU_HI),
};
ALU_FORMS(alu_forms_multiply, product_forms);
