/* integer.c: sums, differences, quotients, extremes of integers, with and without the carry flag. */
#include "fakecuda/alu/lanes.h"

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

static const AluForm forms[] = {
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
ALU_FORMS(alu_forms_integer, forms);
