/* float.c: arithmetic that IEEE 754 defines, in every format and rounding direction.  f32 and f64 to nearest are the
 * host's own (its environment must be the default one); all else is exact arithmetic on integers with one rounding. */
#include <math.h>

#include "fakecuda/alu/number.h"

/* ---- any format, any rounding ------------------------------------------------------------------------------------ */

typedef AluValue Compute(const AluValue v[3], AluRounding rounding);

static uint64_t lane_bits(const void *lanes, int i, int bytes) {
    return bytes == 8 ? ((const uint64_t *)lanes)[i] : ((const uint32_t *)lanes)[i];
}

static void run_exactly(ALU_ARGS, Compute *compute) {
    (void)c;
    int parts;
    const AluFormat *f = alu_format(op->type, &parts);
    AluRounding rounding = op->rounding ? (AluRounding)op->rounding : ALU_NEAREST;
    uint64_t mask = f->bits == 64 ? ~0ull : (1ull << f->bits) - 1;
    for (uint32_t rest = active; rest; rest &= rest - 1) {
        int i = __builtin_ctz(rest);
        uint64_t all = 0;
        for (int part = 0; part < parts; ++part) {
            AluValue v[3] = {{0}};
            for (int s = 0; s < op->sources; ++s)
                v[s] = alu_unpack(f, lane_bits(src[s], i, op->source_bytes[s]) >> (part * f->bits) & mask, op->mods);
            all |= alu_pack(f, compute(v, rounding), rounding, op->mods) << (part * f->bits);
        }
        if (op->dst_bytes[0] == 8) ((uint64_t *)dst[0])[i] = all;
        else ((uint32_t *)dst[0])[i] = (uint32_t)all;
    }
}

static AluValue compute_add(const AluValue v[3], AluRounding r) { return alu_add(v[0], v[1], r); }
static AluValue compute_sub(const AluValue v[3], AluRounding r) { return alu_add(v[0], alu_negate(v[1]), r); }
static AluValue compute_mul(const AluValue v[3], AluRounding r) { return (void)r, alu_mul(v[0], v[1]); }
static AluValue compute_fma(const AluValue v[3], AluRounding r) { return alu_add(alu_mul(v[0], v[1]), v[2], r); }
static AluValue compute_div(const AluValue v[3], AluRounding r) { return (void)r, alu_div(v[0], v[1]); }
static AluValue compute_rcp(const AluValue v[3], AluRounding r) {
    return (void)r, alu_div(alu_from_integer(1, false), v[0]);
}
static AluValue compute_sqrt(const AluValue v[3], AluRounding r) { return (void)r, alu_sqrt(v[0]); }

/* ---- f32 and f64 to nearest -------------------------------------------------------------------------------------- */

static inline uint32_t flushed(uint32_t x, bool ftz) { return ftz && !(x & 0x7f800000) ? x & 0x80000000 : x; }
static inline float operand32(uint32_t x, bool ftz) { return alu_bits_f32(flushed(x, ftz)); }
static inline uint32_t result32(float x, bool ftz) { return x != x ? ALU_NAN_F32 : flushed(alu_f32_bits(x), ftz); }
static inline uint64_t result64(double x) { return x != x ? ALU_NAN_F64 : alu_f64_bits(x); }

static bool to_nearest(const AluOp *op) { return op->rounding <= ALU_NEAREST && !(op->mods & ALU_SAT); }
static bool has_fma(void) { return __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2"); }

/* Two kernels for each operation, made for f32 with |ftz| a constant, and for f64. */
#define KERNELS(name, attribute, F32, F64)                                                                             \
    attribute static inline __attribute__((always_inline)) void name##_f32_loop(                                       \
        void *const dst[2], const void *const src[4], int sources, uint32_t active, bool ftz) {                        \
        uint32_t *d = dst[0];                                                                                          \
        const uint32_t *x = src[0], *y = sources > 1 ? src[1] : x, *z = sources > 2 ? src[2] : x;                      \
        ALU_EACH_LANE(active, float a = operand32(x[i], ftz); float b = operand32(y[i], ftz);                          \
                      float e = operand32(z[i], ftz); (void)b; (void)e; d[i] = result32(F32, ftz));                    \
    }                                                                                                                  \
    attribute static void name##_f32(void *const dst[2], const void *const src[4], int sources, uint32_t active,       \
                                     bool ftz) {                                                                       \
        if (ftz) name##_f32_loop(dst, src, sources, active, true);                                                     \
        else name##_f32_loop(dst, src, sources, active, false);                                                        \
    }                                                                                                                  \
    attribute static void name##_f64(void *const dst[2], const void *const src[4], int sources, uint32_t active) {     \
        uint64_t *d = dst[0];                                                                                          \
        const uint64_t *x = src[0], *y = sources > 1 ? src[1] : x, *z = sources > 2 ? src[2] : x;                      \
        ALU_EACH_LANE(active, double a = alu_bits_f64(x[i]); double b = alu_bits_f64(y[i]);                            \
                      double e = alu_bits_f64(z[i]); (void)b; (void)e; d[i] = result64(F64));                          \
    }
KERNELS(add, , a + b, a + b)
KERNELS(sub, , a - b, a - b)
KERNELS(mul, , a *b, a *b)
KERNELS(div, , a / b, a / b)
KERNELS(rcp, , 1.0f / a, 1.0 / a)
KERNELS(sqrt, , sqrtf(a), sqrt(a))
KERNELS(fma, , fmaf(a, b, e), fma(a, b, e))
#if defined(__x86_64__)
#define WITH_FMA __attribute__((target("avx2,fma")))
KERNELS(fast_fma, WITH_FMA, __builtin_fmaf(a, b, e), __builtin_fma(a, b, e))
#else
#define has_fma() false
#define fast_fma_f32 fma_f32
#define fast_fma_f64 fma_f64
#endif

#define OPERATION(name, kernel32, kernel64)                                                                            \
    static void run_##name(ALU_ARGS) {                                                                                 \
        if (op->type == PTX_F32 && to_nearest(op)) kernel32(dst, src, op->sources, active, op->mods &ALU_FTZ);         \
        else if (op->type == PTX_F64 && to_nearest(op)) kernel64(dst, src, op->sources, active);                       \
        else run_exactly(c, op, dst, src, active, compute_##name);                                                     \
    }
OPERATION(add, add_f32, add_f64)
OPERATION(sub, sub_f32, sub_f64)
OPERATION(mul, mul_f32, mul_f64)
OPERATION(div, div_f32, div_f64)
OPERATION(rcp, rcp_f32, rcp_f64)
OPERATION(sqrt, sqrt_f32, sqrt_f64)
OPERATION(fma, (has_fma() ? fast_fma_f32 : fma_f32), (has_fma() ? fast_fma_f64 : fma_f64))

/* ---- signs and classes ------------------------------------------------------------------------------------------- */

static AluValue compute_neg(const AluValue v[3], AluRounding r) { return (void)r, alu_negate(v[0]); }
static AluValue compute_abs(const AluValue v[3], AluRounding r) {
    AluValue a = v[0];
    (void)r;
    a.negative = false;
    return a;
}

static void run_sign(ALU_ARGS) { /* neg, abs of f32 and f64: bits, but for NaN of f32, which is canonical */
    bool absolute = op->mods & ALU_ABS;
    if (op->type == PTX_F32) {
        uint32_t *d = dst[0], keep = absolute ? 0x7fffffffu : ~0u, flip = absolute ? 0 : 0x80000000u;
        const uint32_t *x = src[0];
        bool ftz = op->mods & ALU_FTZ;
        ALU_EACH_LANE(active, uint32_t a = flushed(x[i], ftz);
                      d[i] = (a & 0x7fffffffu) > 0x7f800000u ? ALU_NAN_F32 : (a & keep) ^ flip);
    } else if (op->type == PTX_F64) {
        uint64_t *d = dst[0], keep = absolute ? ~(1ull << 63) : ~0ull, flip = absolute ? 0 : 1ull << 63;
        const uint64_t *x = src[0];
        ALU_EACH_LANE(active, d[i] = (x[i] & keep) ^ flip);
    } else {
        run_exactly(c, op, dst, src, active, absolute ? compute_abs : compute_neg);
    }
}

static void run_neg(ALU_ARGS) { run_sign(c, op, dst, src, active); }
static void run_abs(ALU_ARGS) {
    AluOp with = *op;
    with.mods |= ALU_ABS;
    run_sign(c, &with, dst, src, active);
}

static void copysign_f32(ALU_ARGS) { /* the sign of a, the magnitude of b: C has them the other way round */
    ALU_UNUSED;
    uint32_t *d = dst[0];
    const uint32_t *x = src[0], *y = src[1];
    ALU_EACH_LANE(active, d[i] = (x[i] & 0x80000000u) | (y[i] & 0x7fffffffu));
}
static void copysign_f64(ALU_ARGS) {
    ALU_UNUSED;
    uint64_t *d = dst[0];
    const uint64_t *x = src[0], *y = src[1];
    ALU_EACH_LANE(active, d[i] = (x[i] & 1ull << 63) | (y[i] & ~(1ull << 63)));
}

static bool has_property(const AluFormat *f, uint64_t bits, int property) {
    AluValue v = alu_unpack(f, bits, 0);
    bool subnormal = v.class_ == ALU_NUMBER_ && v.sig >> (f->digits - 1) == 0;
    switch (property) {
    case ALU_FINITE: return v.class_ <= ALU_NUMBER_;
    case ALU_INFINITE: return v.class_ == ALU_INF;
    case ALU_NUMBER: return v.class_ != ALU_NOT_A_NUMBER;
    case ALU_NOTANUMBER: return v.class_ == ALU_NOT_A_NUMBER;
    case ALU_SUBNORMAL: return subnormal;
    default: return v.class_ <= ALU_NUMBER_ && !subnormal; /* zeros are normal here */
    }
}

static void run_testp(ALU_ARGS) {
    (void)c;
    int parts;
    const AluFormat *f = alu_format(op->type, &parts);
    uint32_t *d = dst[0];
    ALU_EACH_LANE(active, d[i] = has_property(f, lane_bits(src[0], i, op->source_bytes[0]), op->compare));
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define FORM(opcode, type, arch, flops, roundings, needs, allows, operands, kind, run)                                 \
    { opcode, type, PTX_NONE, arch, flops, roundings, needs, allows, operands, kind, run }
#define SUM(opcode, run) /* also products: those that round to nearest where no rounding is given */                   \
    FORM(opcode, PTX_F32, 0, 1, ALU_R_NONE | ALU_R_FLOAT, 0, ALU_FTZ | ALU_SAT, "T=TT", "f32", run),                   \
        FORM(opcode, PTX_F64, 0, 1, ALU_R_NONE | ALU_R_FLOAT, 0, 0, "T=TT", "f64", run),                               \
        FORM(opcode, PTX_F16, 0, 1, ALU_R_NONE | ALU_R_NEAREST, 0, ALU_FTZ | ALU_SAT, "T=TT", "f16", run),             \
        FORM(opcode, PTX_F16X2, 0, 1, ALU_R_NONE | ALU_R_NEAREST, 0, ALU_FTZ | ALU_SAT, "T=TT", "f16", run),           \
        FORM(opcode, PTX_BF16, 90, 1, ALU_R_NONE | ALU_R_NEAREST, 0, 0, "T=TT", "f16", run),                           \
        FORM(opcode, PTX_BF16X2, 90, 1, ALU_R_NONE | ALU_R_NEAREST, 0, 0, "T=TT", "f16", run),                         \
        FORM(opcode, ALU_F32X2, 100, 1, ALU_R_NONE | ALU_R_FLOAT, 0, ALU_FTZ, "T=TT", "f32", run)
#define IEEE(opcode, operands, run)                                                                                    \
    FORM(opcode, PTX_F32, 0, 0, ALU_R_FLOAT, 0, ALU_FTZ, operands, "f32", run),                                        \
        FORM(opcode, PTX_F64, 0, 0, ALU_R_FLOAT, 0, 0, operands, "f64", run)
#define SIGN(opcode, run)                                                                                              \
    FORM(opcode, PTX_F32, 0, 0, 0, 0, ALU_FTZ, "T=T", "f32", run),                                                     \
        FORM(opcode, PTX_F64, 0, 0, 0, 0, 0, "T=T", "f64", run),                                                       \
        FORM(opcode, PTX_F16, 0, 0, 0, 0, ALU_FTZ, "T=T", "f16", run),                                                 \
        FORM(opcode, PTX_F16X2, 0, 0, 0, 0, ALU_FTZ, "T=T", "f16", run),                                               \
        FORM(opcode, PTX_BF16, 80, 0, 0, 0, 0, "T=T", "f16", run),                                                     \
        FORM(opcode, PTX_BF16X2, 80, 0, 0, 0, 0, "T=T", "f16", run)

static const AluForm float_forms[] = {
    SUM("add", run_add),
    SUM("sub", run_sub),
    SUM("mul", run_mul),
    FORM("fma", PTX_F32, 0, 2, ALU_R_FLOAT, 0, ALU_FTZ | ALU_SAT, "T=TTT", "f32", run_fma),
    FORM("fma", PTX_F64, 0, 2, ALU_R_FLOAT, 0, 0, "T=TTT", "f64", run_fma),
    FORM("fma", PTX_F16, 0, 2, ALU_R_NEAREST, 0, ALU_FTZ | ALU_SAT, "T=TTT", "f16", run_fma),
    FORM("fma", PTX_F16X2, 0, 2, ALU_R_NEAREST, 0, ALU_FTZ | ALU_SAT, "T=TTT", "f16", run_fma),
    FORM("fma", PTX_F16, 80, 2, ALU_R_NEAREST, ALU_RELU, ALU_FTZ, "T=TTT", "f16", run_fma),
    FORM("fma", PTX_F16X2, 80, 2, ALU_R_NEAREST, ALU_RELU, ALU_FTZ, "T=TTT", "f16", run_fma),
    FORM("fma", PTX_BF16, 80, 2, ALU_R_NEAREST, 0, ALU_RELU, "T=TTT", "f16", run_fma),
    FORM("fma", PTX_BF16X2, 80, 2, ALU_R_NEAREST, 0, ALU_RELU, "T=TTT", "f16", run_fma),
    FORM("fma", ALU_F32X2, 100, 2, ALU_R_FLOAT, 0, ALU_FTZ, "T=TTT", "f32", run_fma),
    FORM("mad", PTX_F32, 0, 2, ALU_R_FLOAT, 0, ALU_FTZ | ALU_SAT, "T=TTT", "f32", run_fma),
    FORM("mad", PTX_F64, 0, 2, ALU_R_FLOAT, 0, 0, "T=TTT", "f64", run_fma),
    IEEE("div", "T=TT", run_div),
    IEEE("rcp", "T=T", run_rcp),
    IEEE("sqrt", "T=T", run_sqrt),
    SIGN("neg", run_neg),
    SIGN("abs", run_abs),
    FORM("copysign", PTX_F32, 0, 0, 0, 0, 0, "T=TT", "f32", copysign_f32),
    FORM("copysign", PTX_F64, 0, 0, 0, 0, 0, "T=TT", "f64", copysign_f64),
    FORM("testp", PTX_F32, 0, 0, 0, ALU_MODE, 0, "P=T", "f32", run_testp),
    FORM("testp", PTX_F64, 0, 0, 0, ALU_MODE, 0, "P=T", "f64", run_testp),
};
ALU_FORMS(alu_forms_float, float_forms);

/* ---- extremes ---------------------------------------------------------------------------------------------------- */

/* -0 is less than +0; a number wins over NaN unless .NaN is said. */

typedef struct Layout { /* of a format's bits */
    uint64_t sign, inf, nan;
} Layout;

static const Layout layout_f32 = {0x80000000u, 0x7f800000u, ALU_NAN_F32}, layout_f16 = {0x8000, 0x7c00, 0x7fff},
                    layout_bf16 = {0x8000, 0x7f80, 0x7fff}, layout_f64 = {1ull << 63, 0x7ffull << 52, ALU_NAN_F64};

static inline uint64_t flushed_bits(uint64_t x, const Layout *f, bool ftz) {
    return ftz && !(x & f->inf) ? x & f->sign : x;
}

static inline uint64_t extreme(uint64_t a, uint64_t b, const Layout *f, uint32_t mods, bool larger) {
    a = flushed_bits(a, f, mods & ALU_FTZ), b = flushed_bits(b, f, mods & ALU_FTZ);
    uint64_t sign = (a ^ b) & f->sign;
    bool a_nan = (a & ~f->sign) > f->inf, b_nan = (b & ~f->sign) > f->inf;
    if (mods & ALU_ABS) a &= ~f->sign, b &= ~f->sign;
    /* As integers: negative numbers run the other way. */
    int64_t ka = a & f->sign ? -(int64_t)(a & ~f->sign) - 1 : (int64_t)a,
            kb = b & f->sign ? -(int64_t)(b & ~f->sign) - 1 : (int64_t)b;
    uint64_t r = (larger ? ka >= kb : ka <= kb) ? a : b;
    if (a_nan || b_nan) {
        if (mods & ALU_NAN || (a_nan && b_nan)) return f->nan;
        r = a_nan ? b : a;
    }
    return mods & ALU_XORSIGN ? (r & ~f->sign) | sign : r;
}

static void run_extreme(const AluOp *op, void *const dst[2], const void *const src[4], uint32_t active, bool larger) {
    uint32_t mods = op->mods;
    if (op->type == PTX_F64) {
        uint64_t *d = dst[0];
        const uint64_t *x = src[0], *y = src[1];
        ALU_EACH_LANE(active, d[i] = extreme(x[i], y[i], &layout_f64, mods, larger));
        return;
    }
    uint32_t *d = dst[0];
    const uint32_t *x = src[0], *y = src[1];
    if (op->type == PTX_F32) {
        ALU_EACH_LANE(active, d[i] = (uint32_t)extreme(x[i], y[i], &layout_f32, mods, larger));
        return;
    }
    const Layout *f = op->type == PTX_BF16 || op->type == PTX_BF16X2 ? &layout_bf16 : &layout_f16;
    bool two = op->type == PTX_F16X2 || op->type == PTX_BF16X2;
    ALU_EACH_LANE(active, uint64_t low = extreme(x[i] & 0xffff, y[i] & 0xffff, f, mods, larger);
                  uint64_t high = two ? extreme(x[i] >> 16, y[i] >> 16, f, mods, larger) : 0;
                  d[i] = (uint32_t)(high << 16 | low));
}

static void run_min(ALU_ARGS) { (void)c, run_extreme(op, dst, src, active, false); }
static void run_max(ALU_ARGS) { (void)c, run_extreme(op, dst, src, active, true); }

/* .NaN and .xorsign.abs came later than min and max themselves. */
#define EXTREME(opcode, type, arch, needs, allows, kind, run)                                                          \
    { opcode, type, PTX_NONE, arch, 0, 0, needs, allows, "T=TT", kind, run }
#define EXTREME_HALF(opcode, type, ftz, run)                                                                           \
    EXTREME(opcode, type, 80, 0, ftz | ALU_NAN, "f16", run),                                                           \
        EXTREME(opcode, type, 86, ALU_XORSIGN | ALU_ABS, ftz | ALU_NAN, "f16", run)
#define EXTREMES(opcode, run)                                                                                          \
    EXTREME(opcode, PTX_F32, 0, 0, ALU_FTZ, "f32", run), EXTREME(opcode, PTX_F32, 80, ALU_NAN, ALU_FTZ, "f32", run),   \
        EXTREME(opcode, PTX_F32, 86, ALU_XORSIGN | ALU_ABS, ALU_FTZ | ALU_NAN, "f32", run),                            \
        EXTREME(opcode, PTX_F64, 0, 0, 0, "f64", run), EXTREME_HALF(opcode, PTX_F16, ALU_FTZ, run),                    \
        EXTREME_HALF(opcode, PTX_F16X2, ALU_FTZ, run), EXTREME_HALF(opcode, PTX_BF16, 0, run),                         \
        EXTREME_HALF(opcode, PTX_BF16X2, 0, run)

static const AluForm extreme_forms[] = {EXTREMES("min", run_min), EXTREMES("max", run_max)};
ALU_FORMS(alu_forms_minmax, extreme_forms);
