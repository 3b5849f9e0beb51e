/* minmax.c: the smaller and the larger of two floating-point numbers.  -0 is less than +0; a number wins over NaN
 * unless .NaN is said. */
#include "fakecuda/alu/number.h"

typedef struct Layout { /* of a format's bits */
    uint64_t sign, inf, nan;
} Layout;

static const Layout layout_f32 = {0x80000000u, 0x7f800000u, ALU_NAN_F32}, layout_f16 = {0x8000, 0x7c00, 0x7fff},
                    layout_bf16 = {0x8000, 0x7f80, 0x7fff}, layout_f64 = {1ull << 63, 0x7ffull << 52, ALU_NAN_F64};

static inline uint64_t flushed(uint64_t x, const Layout *f, bool ftz) { return ftz && !(x & f->inf) ? x & f->sign : x; }

static inline uint64_t extreme(uint64_t a, uint64_t b, const Layout *f, uint32_t mods, bool larger) {
    a = flushed(a, f, mods & ALU_FTZ), b = flushed(b, f, mods & ALU_FTZ);
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
#define FORM(opcode, type, arch, needs, allows, kind, run)                                                             \
    { opcode, type, PTX_NONE, arch, 0, 0, needs, allows, "T=TT", kind, run }
#define HALF(opcode, type, ftz, run)                                                                                   \
    FORM(opcode, type, 80, 0, ftz | ALU_NAN, "f16", run),                                                              \
        FORM(opcode, type, 86, ALU_XORSIGN | ALU_ABS, ftz | ALU_NAN, "f16", run)
#define FORMS(opcode, run)                                                                                             \
    FORM(opcode, PTX_F32, 0, 0, ALU_FTZ, "f32", run), FORM(opcode, PTX_F32, 80, ALU_NAN, ALU_FTZ, "f32", run),         \
        FORM(opcode, PTX_F32, 86, ALU_XORSIGN | ALU_ABS, ALU_FTZ | ALU_NAN, "f32", run),                               \
        FORM(opcode, PTX_F64, 0, 0, 0, "f64", run), HALF(opcode, PTX_F16, ALU_FTZ, run),                               \
        HALF(opcode, PTX_F16X2, ALU_FTZ, run), HALF(opcode, PTX_BF16, 0, run), HALF(opcode, PTX_BF16X2, 0, run)

static const AluForm forms[] = {FORMS("min", run_min), FORMS("max", run_max)};
ALU_FORMS(alu_forms_minmax, forms);
