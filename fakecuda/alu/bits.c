/* bits.c: logic, shifts, bit fields, bit counts, and bytes picked from words; mov, and choices between two values. */
#include "fakecuda/alu/integer_lanes.h"

ALU_FOR_UNSIGNED(ALU_BINARY, and, (Unsigned)(a &b))
ALU_FOR_UNSIGNED(ALU_BINARY, or, (Unsigned)(a | b))
ALU_FOR_UNSIGNED(ALU_BINARY, xor, (Unsigned)(a ^ b))
ALU_FOR_UNSIGNED(ALU_UNARY, not, (Unsigned)~a)
ALU_FOR_UNSIGNED(ALU_UNARY, cnot, (Unsigned)(a == 0))

/* Of predicates, whose immediates are true where they are not 0: NVRTC writes -1. */
ALU_BINARY(and_pred, u32, a &&b)
ALU_BINARY(or_pred, u32, a || b)
ALU_BINARY(xor_pred, u32, !a != !b)
ALU_UNARY(not_pred, u32, !a)

/* Amounts beyond the width count as the width. */
ALU_FOR_UNSIGNED(ALU_SHIFT, shl, b >= BITS ? (Unsigned)0 : (Unsigned)((Wide)a << b))
ALU_FOR_UNSIGNED(ALU_SHIFT, shr, b >= BITS ? (Unsigned)0 : (Unsigned)(a >> b))
ALU_FOR_SIGNED(ALU_SHIFT, shr, a >> (b >= BITS ? BITS - 1 : b))

#define RESULT_32(name, t, LANE, ...) /* a 32-bit result of any type */                                                \
    static void name##_##t(ALU_ARGS) {                                                                                 \
        ALU_UNUSED;                                                                                                    \
        uint32_t *d = dst[0];                                                                                          \
        const LANE *x = src[0];                                                                                        \
        ALU_EACH_LANE(active, LANE a = x[i]; d[i] = (uint32_t)(__VA_ARGS__));                                          \
    }
RESULT_32(popc, u32, uint32_t, __builtin_popcount(a))
RESULT_32(popc, u64, uint64_t, __builtin_popcountll(a))
RESULT_32(clz, u32, uint32_t, a ? __builtin_clz(a) : 32)
RESULT_32(clz, u64, uint64_t, a ? __builtin_clzll(a) : 64)

/* The highest bit that differs from the sign (of an unsigned number: that is 1); with .shiftamt how far it is from the
 * top. */
#define BFIND(t, LANE, SIGNED, BITS, CLZ)                                                                              \
    static void bfind_##t(ALU_ARGS) {                                                                                  \
        ALU_UNUSED;                                                                                                    \
        uint32_t *d = dst[0];                                                                                          \
        const LANE *x = src[0];                                                                                        \
        bool from_top = op->mods & ALU_SHIFTAMT;                                                                       \
        ALU_EACH_LANE(active, LANE a = (SIGNED)x[i] < 0 ? (LANE)~x[i] : x[i];                                          \
                      d[i] = !a         ? 0xffffffffu                                                                  \
                             : from_top ? (uint32_t)CLZ(a)                                                             \
                                        : (uint32_t)(BITS - 1 - CLZ(a)));                                              \
    }
BFIND(u32, uint32_t, int64_t, 32, __builtin_clz)
BFIND(s32, uint32_t, int32_t, 32, __builtin_clz)
BFIND(u64, uint64_t, AluS128, 64, __builtin_clzll)
BFIND(s64, uint64_t, int64_t, 64, __builtin_clzll)

static uint64_t reversed(uint64_t x, int bits) {
    uint64_t r = 0;
    for (int i = 0; i < bits; ++i) r |= (x >> i & 1) << (bits - 1 - i);
    return r;
}
ALU_UNARY(brev, u32, reversed(a, BITS))
ALU_UNARY(brev, u64, reversed(a, BITS))

/* ---- fields ------------------------------------------------------------------------------------------------------ */

static uint64_t low_bits(unsigned n) { return n >= 64 ? ~0ull : (1ull << n) - 1; }

static uint64_t extract(uint64_t a, unsigned pos, unsigned len, unsigned bits, bool is_signed) {
    if (len == 0) return 0;
    unsigned last = pos + len - 1 < bits - 1 ? pos + len - 1 : bits - 1;
    uint64_t fill = is_signed && a >> last & 1 ? ~0ull : 0, got = pos < bits ? a >> pos : 0;
    unsigned taken = pos < bits ? last - pos + 1 : 0;
    return (got & low_bits(taken)) | (fill & ~low_bits(taken));
}

static uint64_t insert(uint64_t a, uint64_t b, unsigned pos, unsigned len, unsigned bits) {
    if (pos >= bits) return b;
    uint64_t mask = low_bits(len) << pos;
    return (b & ~mask) | (a << pos & mask);
}

/* Of 32 bits a place and a length are the lowest 8 bits of their operands.  Of 64 bits they are the whole operands: the
 * document limits them to 255 without saying how, and this is what an H200 with driver 580.159 does. */
#define WITHIN(x) (BITS == 32 ? (x)&0xff : (x) < 0xff ? (x) : 0xff)

#define BFE(t)                                                                                                         \
    static void bfe_##t(ALU_ARGS) {                                                                                    \
        ALU_BEGIN(t)                                                                                                   \
        const uint32_t *y = src[1], *z = src[2];                                                                       \
        ALU_EACH_LANE(active, d[i] = (Unsigned)extract(x[i], WITHIN(y[i]), WITHIN(z[i]), BITS, (Type)-1 < 1));         \
    }
BFE(u32)
BFE(s32)
BFE(u64)
BFE(s64)
#define BFI(t)                                                                                                         \
    static void bfi_##t(ALU_ARGS) {                                                                                    \
        ALU_BEGIN(t)                                                                                                   \
        const Lane *y = src[1];                                                                                        \
        const uint32_t *z = src[2], *w = src[3];                                                                       \
        ALU_EACH_LANE(active, d[i] = (Unsigned)insert(x[i], y[i], WITHIN(z[i]), WITHIN(w[i]), BITS));                  \
    }
BFI(u32)
BFI(u64)

/* ---- words of 32 bits -------------------------------------------------------------------------------------------- */

#define WORDS(name, ...) /* a, b, c_, e: the operands that there are; absent ones are the first */                     \
    static void name(ALU_ARGS) {                                                                                       \
        ALU_UNUSED;                                                                                                    \
        uint32_t *d = dst[0];                                                                                          \
        const uint32_t *x = src[0], *y = op->sources > 1 ? src[1] : x, *z = op->sources > 2 ? src[2] : x,              \
                       *w = op->sources > 3 ? src[3] : x;                                                              \
        ALU_EACH_LANE(active, uint32_t a = x[i]; uint32_t b = y[i]; uint32_t c_ = z[i]; uint32_t e = w[i]; (void)c_;   \
                      (void)e; d[i] = (__VA_ARGS__));                                                                  \
    }

/* Bit 4p + 2q + r of the table is the result where the bits of a, b, c are p, q, r. */
static inline uint32_t lookup3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t r = 0;
    for (uint32_t k = 0; k < 8; ++k)
        r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c) & (0 - (table >> k & 1));
    return r;
}
WORDS(lop3, lookup3(a, b, c_, e))

static uint32_t shift_pair(uint32_t a, uint32_t b, uint32_t by, uint32_t mods) { /* of b:a, 64 bits */
    uint64_t pair = (uint64_t)b << 32 | a;
    by = mods & ALU_CLAMP ? (by > 32 ? 32 : by) : by & 31;
    return mods & ALU_LEFT ? (uint32_t)(pair << by >> 32) : (uint32_t)(pair >> by);
}
WORDS(shf, shift_pair(a, b, c_, op->mods))

static int picked_byte(int mode, uint32_t control,
                       int at) { /* which of the 8 bytes of b:a byte |at| of the result is; 8: with its sign spread */
    int k = control & 3;
    switch (mode) {
    case ALU_F4E: return k + at;
    case ALU_B4E: return (k - at) & 7;
    case ALU_RC8: return k;
    case ALU_ECL: return at > k ? at : k;
    case ALU_ECR: return at < k ? at : k;
    case ALU_RC16: return (k & 1) * 2 + (at & 1);
    default: return control >> (4 * at) & 15;
    }
}

static uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t control, int mode) {
    uint64_t pair = (uint64_t)b << 32 | a;
    uint32_t r = 0;
    for (int at = 0; at < 4; ++at) {
        int from = picked_byte(mode, control, at);
        uint32_t byte = pair >> (8 * (from & 7)) & 0xff;
        if (from & 8) byte = byte & 0x80 ? 0xff : 0;
        r |= byte << (8 * at);
    }
    return r;
}
WORDS(prmt, pick_bytes(a, b, c_, op->compare))

/* Bits [a, a + b). */
static uint32_t bit_mask(uint32_t a, uint32_t b, bool clamp) {
    if (clamp && a >= 32) return 0;
    if (clamp && b >= 32) return ~0u << a;
    a &= 31, b &= 31;
    return (uint32_t)(low_bits(b) << a);
}
WORDS(bmsk, bit_mask(a, b, op->mods &ALU_CLAMP))

static uint32_t extend_bits(uint32_t a, uint32_t b, uint32_t mods, bool is_signed) { /* the lowest b bits of a */
    uint32_t n = mods & ALU_CLAMP ? (b > 32 ? 32 : b) : b & 31;
    return (uint32_t)extract(a, 0, n, 32, is_signed);
}
WORDS(szext, extend_bits(a, b, op->mods, op->type == PTX_S32))

static uint32_t nth_set(uint32_t mask, uint32_t base, int32_t offset) {
    if (offset == 0) return mask >> (base & 31) & 1 ? base : 0xffffffffu;
    int64_t count = (offset > 0 ? (int64_t)offset : -(int64_t)offset) - 1;
    for (int64_t at = base; at >= 0 && at<32; at += offset> 0 ? 1 : -1)
        if (mask >> at & 1 && count-- == 0) return (uint32_t)at;
    return 0xffffffffu;
}
WORDS(fns, nth_set(a, b, (int32_t)c_))

#define FORM(opcode, type, needs, allows, operands, run)                                                               \
    { opcode, type, PTX_NONE, 0, 0, 0, needs, allows, operands, "int", run }
#define LOGIC(opcode, operands, name)                                                                                  \
    FORM(opcode, PTX_B16, 0, 0, operands, name##_u16), FORM(opcode, PTX_B32, 0, 0, operands, name##_u32),              \
        FORM(opcode, PTX_B64, 0, 0, operands, name##_u64)
#define PRED(opcode, operands, run)                                                                                    \
    { opcode, PTX_PRED, PTX_NONE, 0, 0, 0, 0, 0, operands, "pred", run }
#define PAIR(opcode, small, large, operands, name)                                                                     \
    FORM(opcode, small, 0, 0, operands, name##_u32), FORM(opcode, large, 0, 0, operands, name##_u64)

static const AluForm bit_forms[] = {
    LOGIC("and", "T=TT", and),
    LOGIC("or", "T=TT", or),
    LOGIC("xor", "T=TT", xor),
    LOGIC("not", "T=T", not ),
    LOGIC("cnot", "T=T", cnot),
    PRED("and", "P=PP", and_pred_u32),
    PRED("or", "P=PP", or_pred_u32),
    PRED("xor", "P=PP", xor_pred_u32),
    PRED("not", "P=P", not_pred_u32),
    LOGIC("shl", "T=TI", shl),
    LOGIC("shr", "T=TI", shr),
    FORM("shr", PTX_U16, 0, 0, "T=TI", shr_u16),
    FORM("shr", PTX_U32, 0, 0, "T=TI", shr_u32),
    FORM("shr", PTX_U64, 0, 0, "T=TI", shr_u64),
    FORM("shr", PTX_S16, 0, 0, "T=TI", shr_s16),
    FORM("shr", PTX_S32, 0, 0, "T=TI", shr_s32),
    FORM("shr", PTX_S64, 0, 0, "T=TI", shr_s64),
    FORM("shf", PTX_B32, ALU_LEFT | ALU_WRAP, 0, "T=TTI", shf),
    FORM("shf", PTX_B32, ALU_LEFT | ALU_CLAMP, 0, "T=TTI", shf),
    FORM("shf", PTX_B32, ALU_RIGHT | ALU_WRAP, 0, "T=TTI", shf),
    FORM("shf", PTX_B32, ALU_RIGHT | ALU_CLAMP, 0, "T=TTI", shf),
    PAIR("popc", PTX_B32, PTX_B64, "I=T", popc),
    PAIR("clz", PTX_B32, PTX_B64, "I=T", clz),
    PAIR("brev", PTX_B32, PTX_B64, "T=T", brev),
    FORM("bfind", PTX_U32, 0, ALU_SHIFTAMT, "I=T", bfind_u32),
    FORM("bfind", PTX_S32, 0, ALU_SHIFTAMT, "I=T", bfind_s32),
    FORM("bfind", PTX_U64, 0, ALU_SHIFTAMT, "I=T", bfind_u64),
    FORM("bfind", PTX_S64, 0, ALU_SHIFTAMT, "I=T", bfind_s64),
    FORM("bfe", PTX_U32, 0, 0, "T=TII", bfe_u32),
    FORM("bfe", PTX_S32, 0, 0, "T=TII", bfe_s32),
    FORM("bfe", PTX_U64, 0, 0, "T=TII", bfe_u64),
    FORM("bfe", PTX_S64, 0, 0, "T=TII", bfe_s64),
    PAIR("bfi", PTX_B32, PTX_B64, "T=TTII", bfi),
    FORM("lop3", PTX_B32, 0, 0, "T=TTTI", lop3),
    FORM("prmt", PTX_B32, 0, ALU_MODE, "T=TTI", prmt),
    FORM("bmsk", PTX_B32, ALU_CLAMP, 0, "T=TT", bmsk),
    FORM("bmsk", PTX_B32, ALU_WRAP, 0, "T=TT", bmsk),
    FORM("szext", PTX_U32, ALU_CLAMP, 0, "T=TI", szext),
    FORM("szext", PTX_U32, ALU_WRAP, 0, "T=TI", szext),
    FORM("szext", PTX_S32, ALU_CLAMP, 0, "T=TI", szext),
    FORM("szext", PTX_S32, ALU_WRAP, 0, "T=TI", szext),
    FORM("fns", PTX_B32, 0, 0, "T=TII", fns),
};
ALU_FORMS(alu_forms_bits, bit_forms);

/* ---- moves and choices ------------------------------------------------------------------------------------------- */

ALU_FOR_UNSIGNED(ALU_UNARY, mov, a)

static void mov_pred(ALU_ARGS) {
    ALU_BEGIN(u32)
    ALU_EACH_LANE(active, d[i] = x[i] != 0);
}

#define SELP(t)                                                                                                        \
    static void selp_##t(ALU_ARGS) {                                                                                   \
        ALU_BEGIN(t)                                                                                                   \
        const Lane *y = src[1];                                                                                        \
        const uint32_t *p = src[2];                                                                                    \
        ALU_EACH_LANE(active, d[i] = (Unsigned)(p[i] ? x[i] : y[i]));                                                  \
    }
SELP(u16)
SELP(u32)
SELP(u64)

/* The selector is at least zero; NaN is not. */
#define SLCT(t)                                                                                                        \
    static void slct_##t(ALU_ARGS) {                                                                                   \
        ALU_BEGIN(t)                                                                                                   \
        const Lane *y = src[1];                                                                                        \
        const uint32_t *z = src[2];                                                                                    \
        bool is_float = op->from == PTX_F32, ftz = op->mods & ALU_FTZ;                                                 \
        ALU_EACH_LANE(active, bool subnormal = !(z[i] & 0x7f800000);                                                   \
                      bool zero = subnormal && (ftz || !(z[i] & 0x7fffff));                                            \
                      bool first = is_float ? alu_bits_f32(z[i]) >= 0 || zero : (int32_t)z[i] >= 0;                    \
                      d[i] = (Unsigned)(first ? x[i] : y[i]));                                                         \
    }
SLCT(u16)
SLCT(u32)
SLCT(u64)

#define MOVE(type, run)                                                                                                \
    { "mov", type, PTX_NONE, 0, 0, 0, 0, 0, "T=T", "move", run }
#define CHOOSE(type, size)                                                                                             \
    {"selp", type, PTX_NONE, 0, 0, 0, 0, 0, "T=TTP", "move", selp_##size},                                             \
        {"slct", type, PTX_S32, 0, 0, 0, 0, 0, "T=TTI", "move", slct_##size}, {                                        \
        "slct", type, PTX_F32, 0, 0, 0, 0, ALU_FTZ, "T=TTF", "move", slct_##size                                       \
    }
#define BOTH(type, size) MOVE(type, mov_##size), CHOOSE(type, size)

static const AluForm move_forms[] = {
    {"mov", PTX_PRED, PTX_NONE, 0, 0, 0, 0, 0, "P=P", "pred", mov_pred},
    BOTH(PTX_B16, u16),
    BOTH(PTX_U16, u16),
    BOTH(PTX_S16, u16),
    BOTH(PTX_B32, u32),
    BOTH(PTX_U32, u32),
    BOTH(PTX_S32, u32),
    BOTH(PTX_F32, u32),
    BOTH(PTX_B64, u64),
    BOTH(PTX_U64, u64),
    BOTH(PTX_S64, u64),
    BOTH(PTX_F64, u64),
};
ALU_FORMS(alu_forms_move, move_forms);
