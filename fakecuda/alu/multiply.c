/* multiply.c: products of integers: low, high and whole, with a third operand added, and dot products of small
 * numbers. */
#include "fakecuda/alu/lanes.h"

#define LOW(a, b) ((Unsigned)(1u * (Unsigned)(a) * (Unsigned)(b)))
#define HIGH(a, b) ((Unsigned)(((Wide)(a) * (Wide)(b)) >> BITS))
ALU_FOR_UNSIGNED(ALU_BINARY, mul_lo, LOW(a, b))
ALU_FOR_INTEGERS(ALU_BINARY, mul_hi, HIGH(a, b))
ALU_FOR_UNSIGNED(ALU_TERNARY, mad_lo, (Unsigned)(LOW(a, b) + c_))
ALU_FOR_INTEGERS(ALU_TERNARY, mad_hi, (Unsigned)(HIGH(a, b) + (Unsigned)c_))
#define CLAMP_S32(x) ((x) < INT32_MIN ? INT32_MIN : (x) > INT32_MAX ? INT32_MAX : (x))
ALU_TERNARY(mad_hi_sat, s32, CLAMP_S32((((Wide)a * b) >> 32) + c_))

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

/* mad.cc and madc: the half of the product is made first, the carry is that of the sum. */
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

#define FORM(opcode, type, from, needs, allows, operands, run)                                                         \
    { opcode, type, from, 0, 0, 0, needs, allows, operands, "int", run }
#define HALVES(opcode, operands, name)                                                                                 \
    FORM(opcode, PTX_U16, 0, ALU_LO, 0, operands, name##_lo_u16),                                                      \
        FORM(opcode, PTX_S16, 0, ALU_LO, 0, operands, name##_lo_u16),                                                  \
        FORM(opcode, PTX_U32, 0, ALU_LO, 0, operands, name##_lo_u32),                                                  \
        FORM(opcode, PTX_S32, 0, ALU_LO, 0, operands, name##_lo_u32),                                                  \
        FORM(opcode, PTX_U64, 0, ALU_LO, 0, operands, name##_lo_u64),                                                  \
        FORM(opcode, PTX_S64, 0, ALU_LO, 0, operands, name##_lo_u64),                                                  \
        FORM(opcode, PTX_U16, 0, ALU_HI, 0, operands, name##_hi_u16),                                                  \
        FORM(opcode, PTX_S16, 0, ALU_HI, 0, operands, name##_hi_s16),                                                  \
        FORM(opcode, PTX_U32, 0, ALU_HI, 0, operands, name##_hi_u32),                                                  \
        FORM(opcode, PTX_S32, 0, ALU_HI, 0, operands, name##_hi_s32),                                                  \
        FORM(opcode, PTX_U64, 0, ALU_HI, 0, operands, name##_hi_u64),                                                  \
        FORM(opcode, PTX_S64, 0, ALU_HI, 0, operands, name##_hi_s64)
#define WIDES(opcode, operands, name)                                                                                  \
    FORM(opcode, PTX_U16, 0, ALU_WIDE, 0, operands, name##_u16),                                                       \
        FORM(opcode, PTX_S16, 0, ALU_WIDE, 0, operands, name##_s16),                                                   \
        FORM(opcode, PTX_U32, 0, ALU_WIDE, 0, operands, name##_u32),                                                   \
        FORM(opcode, PTX_S32, 0, ALU_WIDE, 0, operands, name##_s32)
#define CARRIES(opcode, needs, allows, operands)                                                                       \
    FORM(opcode, PTX_U32, 0, needs, allows, operands, mad_carry_u32),                                                  \
        FORM(opcode, PTX_S32, 0, needs, allows, operands, mad_carry_s32),                                              \
        FORM(opcode, PTX_U64, 0, needs, allows, operands, mad_carry_u64),                                              \
        FORM(opcode, PTX_S64, 0, needs, allows, operands, mad_carry_s64)
#define TYPES_24(opcode, needs, operands)                                                                              \
    FORM(opcode, PTX_U32, 0, needs, 0, operands, mul24), FORM(opcode, PTX_S32, 0, needs, 0, operands, mul24)
#define DOTS(opcode, needs)                                                                                            \
    FORM(opcode, PTX_U32, PTX_U32, needs, 0, "T=III", dot), FORM(opcode, PTX_U32, PTX_S32, needs, 0, "T=III", dot),    \
        FORM(opcode, PTX_S32, PTX_U32, needs, 0, "T=III", dot), FORM(opcode, PTX_S32, PTX_S32, needs, 0, "T=III", dot)

static const AluForm forms[] = {
    HALVES("mul", "T=TT", mul),
    HALVES("mad", "T=TTT", mad),
    WIDES("mul", "W=TT", mul_wide),
    WIDES("mad", "W=TTW", mad_wide),
    FORM("mad", PTX_S32, 0, ALU_HI | ALU_SAT, 0, "T=TTT", mad_hi_sat_s32),
    CARRIES("mad", ALU_CC | ALU_LO, 0, "T=TTT"),
    CARRIES("mad", ALU_CC | ALU_HI, 0, "T=TTT"),
    CARRIES("madc", ALU_LO, ALU_CC, "T=TTT+"),
    CARRIES("madc", ALU_HI, ALU_CC, "T=TTT+"),
    TYPES_24("mul24", ALU_LO, "T=TT"),
    TYPES_24("mul24", ALU_HI, "T=TT"),
    TYPES_24("mad24", ALU_LO, "T=TTT"),
    TYPES_24("mad24", ALU_HI, "T=TTT"),
    FORM("mad24", PTX_S32, 0, ALU_HI | ALU_SAT, 0, "T=TTT", mul24),
    DOTS("dp4a", 0),
    DOTS("dp2a", ALU_LO),
    DOTS("dp2a", ALU_HI),
};
ALU_FORMS(alu_forms_multiply, forms);
