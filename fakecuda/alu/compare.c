/* compare.c: setp and set.  A comparison has four outcomes: less, equal, greater, and unordered where there is a NaN;
 * each operator is the set of those where it holds. */
#include "fakecuda/alu/number.h"

enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };

static const uint8_t outcomes[] = {
    [ALU_EQ] = EQUAL,
    [ALU_NE] = LESS | GREATER,
    [ALU_LT] = LESS,
    [ALU_LE] = LESS | EQUAL,
    [ALU_GT] = GREATER,
    [ALU_GE] = GREATER | EQUAL,
    [ALU_LS] = LESS | EQUAL,
    [ALU_HS] = GREATER | EQUAL,
    [ALU_EQU] = EQUAL | UNORDERED,
    [ALU_NEU] = LESS | GREATER | UNORDERED,
    [ALU_LTU] = LESS | UNORDERED,
    [ALU_LEU] = LESS | EQUAL | UNORDERED,
    [ALU_GTU] = GREATER | UNORDERED,
    [ALU_GEU] = GREATER | EQUAL | UNORDERED,
    [ALU_NUM] = LESS | EQUAL | GREATER,
    [ALU_ISNAN] = UNORDERED,
};

static uint8_t wanted(const AluOp *op) {
    if (op->mods & ALU_LO) return LESS; /* .lo and .hi: of unsigned numbers */
    if (op->mods & ALU_HI) return GREATER;
    return outcomes[op->compare];
}

static inline uint32_t combined(int combine, uint32_t t, uint32_t p) {
    switch (combine) {
    case ALU_AND: return t & p;
    case ALU_OR: return t | p;
    case ALU_XOR: return t ^ p;
    default: return t;
    }
}

/* What follows the comparison: p = t with the third operand, q = !t with it. */
static void combine_lanes(const AluOp *op, void *const dst[2], const void *const src[4], uint32_t active,
                          const uint32_t *t) {
    uint32_t *p = dst[0], *q = dst[1];
    const uint32_t *with = op->combine ? src[2] : NULL;
    for (uint32_t rest = active; rest; rest &= rest - 1) {
        int i = __builtin_ctz(rest);
        uint32_t third = with ? with[i] & 1 : 0;
        if (p) p[i] = combined(op->combine, t[i], third);
        if (q) q[i] = combined(op->combine, !t[i], third);
    }
}

#define SETP(name, LANE, T, VALUE)                                                                                     \
    static void setp_##name(ALU_ARGS) {                                                                                \
        ALU_UNUSED;                                                                                                    \
        uint8_t set = wanted(op);                                                                                      \
        const bool less = set & LESS, equal = set & EQUAL, greater = set & GREATER, unordered = set & UNORDERED;       \
        (void)unordered;                                                                                               \
        const LANE *x = src[0], *y = src[1];                                                                           \
        bool ftz = op->mods & ALU_FTZ;                                                                                 \
        (void)ftz;                                                                                                     \
        uint32_t found[ALU_LANES], *t = dst[1] || op->combine ? found : dst[0];                                        \
        ALU_EACH_LANE(active, T a = VALUE(x[i]); T b = VALUE(y[i]);                                                    \
                      t[i] = (uint32_t)((less & (a < b)) | (equal & (a == b)) | (greater & (a > b)) |                  \
                                        (unordered & ((a != a) | (b != b)))));                                         \
        if (t == found) combine_lanes(op, dst, src, active, t);                                                        \
    }
#define AS_U16(v) ((uint16_t)(v))
#define AS_S16(v) ((int16_t)(v))
#define AS_S32(v) ((int32_t)(v))
#define AS_S64(v) ((int64_t)(v))
#define AS_IS(v) (v)
#define AS_F32(v) alu_bits_f32(ftz && !((v)&0x7f800000) ? 0 : (v))
#define AS_F64(v) alu_bits_f64(v)
#define AS_F16(v) half_value(op, (v))

static float half_value(const AluOp *op, uint32_t bits) {
    bool bf16 = op->type == PTX_BF16 || op->type == PTX_BF16X2;
    if (op->mods & ALU_FTZ && !(bits & 0x7c00)) return 0;
    return bf16 ? alu_bf16_to_f32((uint16_t)bits) : alu_f16_to_f32((uint16_t)bits);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtautological-compare" /* a != a, of integers */
SETP(u16, uint32_t, uint16_t, AS_U16)
SETP(s16, uint32_t, int16_t, AS_S16)
SETP(u32, uint32_t, uint32_t, AS_IS)
SETP(s32, uint32_t, int32_t, AS_S32)
SETP(u64, uint64_t, uint64_t, AS_IS)
SETP(s64, uint64_t, int64_t, AS_S64)
SETP(f32, uint32_t, float, AS_F32)
SETP(f64, uint64_t, double, AS_F64)
SETP(f16, uint32_t, float, AS_F16)
#pragma GCC diagnostic pop

/* Two comparisons, of the lower halves into p and of the upper ones into q. */
static void setp_halves(ALU_ARGS) {
    uint32_t x[ALU_LANES], y[ALU_LANES];
    AluOp half = *op;
    for (int part = 0; part < 2; ++part) {
        for (int i = 0; i < ALU_LANES; ++i) {
            x[i] = ((const uint32_t *)src[0])[i] >> (16 * part) & 0xffff;
            y[i] = ((const uint32_t *)src[1])[i] >> (16 * part) & 0xffff;
        }
        void *to[2] = {dst[part], NULL};
        const void *from[4] = {x, y, op->combine ? src[2] : NULL, NULL};
        if (to[0]) setp_f16(c, &half, to, from, active);
    }
}

/* ---- set: the result is a number --------------------------------------------------------------------------------- */

static AluFn *setp_of(int type) {
    switch (type) {
    case PTX_B16:
    case PTX_U16: return setp_u16;
    case PTX_S16: return setp_s16;
    case PTX_B32:
    case PTX_U32: return setp_u32;
    case PTX_S32: return setp_s32;
    case PTX_B64:
    case PTX_U64: return setp_u64;
    case PTX_S64: return setp_s64;
    case PTX_F32: return setp_f32;
    case PTX_F64: return setp_f64;
    case PTX_F16:
    case PTX_BF16: return setp_f16;
    default: return setp_halves;
    }
}

static uint32_t when_true(int type) { /* all bits, or 1.0; of one half where the operands are halves */
    switch (type) {
    case PTX_F32: return 0x3f800000;
    case PTX_F16:
    case PTX_F16X2: return 0x3c00;
    case PTX_BF16:
    case PTX_BF16X2: return 0x3f80;
    case PTX_U16:
    case PTX_S16: return 0xffff;
    default: return 0xffffffffu;
    }
}

static void run_set(ALU_ARGS) {
    uint32_t low[ALU_LANES], high[ALU_LANES], *d = dst[0], value = when_true(op->type);
    bool halves = op->from == PTX_F16X2 || op->from == PTX_BF16X2;
    AluOp compare = *op;
    compare.type = op->from;
    void *to[2] = {low, halves ? high : NULL};
    setp_of(op->from)(c, &compare, to, src, active);
    if (halves) value &= 0xffff;
    ALU_EACH_LANE(active, d[i] = (low[i] ? value : 0) | (halves && high[i] ? value << 16 : 0));
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define SETP_FORM(type, arch, compare, allows, kind, run)                                                              \
    {"setp", type, PTX_NONE, arch, 0, 0, compare, allows, "P|P=TT", kind, run}, {                                      \
        "setp", type, PTX_NONE, arch, 0, 0, compare | ALU_COMBINE, allows, "P|P=TTP", kind, run                        \
    }
#define SETP_INT(type, run)                                                                                            \
    SETP_FORM(type, 0, ALU_COMPARE, ALU_ORDER | ALU_UNSIGNEDS, "int", run), SETP_FORM(type, 0, ALU_LO, 0, "int", run), \
        SETP_FORM(type, 0, ALU_HI, 0, "int", run)
#define SET_FORM(type, from, arch, compare, allows, kind)                                                              \
    {"set", type, from, arch, 0, 0, compare, allows, "T=FF", kind, run_set}, {                                         \
        "set", type, from, arch, 0, 0, compare | ALU_COMBINE, allows, "T=FFP", kind, run_set                           \
    }
#define SET_FROM(from, arch, compare, allows, kind)                                                                    \
    SET_FORM(PTX_U32, from, arch, compare, allows, kind), SET_FORM(PTX_S32, from, arch, compare, allows, kind)
#define SET_BY(from, compare, allows, kind)                                                                            \
    SET_FROM(from, 0, compare, allows, kind), SET_FORM(PTX_F32, from, 0, compare, allows, kind)
#define SET_32(from, allows, kind) SET_BY(from, ALU_COMPARE, allows, kind)
#define SET_UNSIGNED(from)                                                                                             \
    SET_BY(from, ALU_COMPARE, ALU_ORDER | ALU_UNSIGNEDS, "int"), SET_BY(from, ALU_LO, 0, "int"),                       \
        SET_BY(from, ALU_HI, 0, "int")
#define SET_HALF(type, two, arch, allows)                                                                              \
    SET_FROM(type, arch, ALU_COMPARE, allows, "f16"), SET_FORM(PTX_U16, type, arch, ALU_COMPARE, allows, "f16"),       \
        SET_FORM(PTX_S16, type, arch, ALU_COMPARE, allows, "f16"),                                                     \
        SET_FORM(type, type, arch, ALU_COMPARE, allows, "f16"), SET_FROM(two, arch, ALU_COMPARE, allows, "f16"),       \
        SET_FORM(two, two, arch, ALU_COMPARE, allows, "f16")

static const AluForm forms[] = {
    SETP_FORM(PTX_B16, 0, ALU_COMPARE, 0, "int", setp_u16),
    SETP_FORM(PTX_B32, 0, ALU_COMPARE, 0, "int", setp_u32),
    SETP_FORM(PTX_B64, 0, ALU_COMPARE, 0, "int", setp_u64),
    SETP_INT(PTX_U16, setp_u16),
    SETP_INT(PTX_U32, setp_u32),
    SETP_INT(PTX_U64, setp_u64),
    SETP_FORM(PTX_S16, 0, ALU_COMPARE, ALU_ORDER, "int", setp_s16),
    SETP_FORM(PTX_S32, 0, ALU_COMPARE, ALU_ORDER, "int", setp_s32),
    SETP_FORM(PTX_S64, 0, ALU_COMPARE, ALU_ORDER, "int", setp_s64),
    SETP_FORM(PTX_F32, 0, ALU_COMPARE, ALU_ORDER | ALU_FLOATS | ALU_FTZ, "f32", setp_f32),
    SETP_FORM(PTX_F64, 0, ALU_COMPARE, ALU_ORDER | ALU_FLOATS, "f64", setp_f64),
    SETP_FORM(PTX_F16, 0, ALU_COMPARE, ALU_ORDER | ALU_FLOATS | ALU_FTZ, "f16", setp_f16),
    SETP_FORM(PTX_F16X2, 0, ALU_COMPARE, ALU_ORDER | ALU_FLOATS | ALU_FTZ, "f16", setp_halves),
    SETP_FORM(PTX_BF16, 90, ALU_COMPARE, ALU_ORDER | ALU_FLOATS, "f16", setp_f16),
    SETP_FORM(PTX_BF16X2, 90, ALU_COMPARE, ALU_ORDER | ALU_FLOATS, "f16", setp_halves),
    SET_32(PTX_B16, 0, "int"),
    SET_32(PTX_B32, 0, "int"),
    SET_32(PTX_B64, 0, "int"),
    SET_UNSIGNED(PTX_U16),
    SET_UNSIGNED(PTX_U32),
    SET_UNSIGNED(PTX_U64),
    SET_32(PTX_S16, ALU_ORDER, "int"),
    SET_32(PTX_S32, ALU_ORDER, "int"),
    SET_32(PTX_S64, ALU_ORDER, "int"),
    SET_32(PTX_F32, ALU_ORDER | ALU_FLOATS | ALU_FTZ, "f32"),
    SET_32(PTX_F64, ALU_ORDER | ALU_FLOATS, "f64"),
    SET_HALF(PTX_F16, PTX_F16X2, 0, ALU_ORDER | ALU_FLOATS | ALU_FTZ),
    SET_HALF(PTX_BF16, PTX_BF16X2, 90, ALU_ORDER | ALU_FLOATS),
};
ALU_FORMS(alu_forms_compare, forms);
