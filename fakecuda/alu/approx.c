/* approx.c: the approximate instructions.  Each is computed in float64 and rounded, then moved by an amount that
 * depends on the seed, the instruction and the operands, and stays within the error that the document allows.  Zeros,
 * infinities and NaN are exact, and so is a result that the document gives for one of them. */
#include "fakecuda/alu/number.h"

#include <math.h>

typedef enum BoundKind { ULPS, RELATIVE, ABSOLUTE } BoundKind;
typedef struct Bound {
    BoundKind kind;
    double size; /* ULPS: of the correctly rounded result */
} Bound;

typedef struct ApproxFunction {
    double (*of)(double a, double b);
    Bound (*bound)(double a);
    double largest; /* magnitude of a result; 0: any */
} ApproxFunction;

/* ---- functions and their bounds (PTX ISA, the description of each instruction) ----------------------------------- */

static double ex2_of(double a, double b) { return (void)b, exp2(a); }
static double lg2_of(double a, double b) { return (void)b, log2(a); }
static double rcp_of(double a, double b) { return (void)b, 1 / a; }
static double rsqrt_of(double a, double b) { return (void)b, 1 / sqrt(a); }
static double sqrt_of(double a, double b) { return (void)b, sqrt(a); }
static double sin_of(double a, double b) { return (void)b, sin(a); }
static double cos_of(double a, double b) { return (void)b, cos(a); }
static double tanh_of(double a, double b) { return (void)b, tanh(a); }
static double div_full_of(double a, double b) { return a / b; }
static double div_approx_of(double a, double b) { /* a * (1 / b), where 1 / b is zero for a large b */
    return fabs(b) > 0x1p126 ? a * copysign(0, b) : a / b;
}

static Bound two_ulps(double a) { return (void)a, (Bound){ULPS, 2}; }
static Bound one_ulp(double a) { return (void)a, (Bound){ULPS, 1}; }
static Bound lg2_bound(double a) { return a > 0.5 && a < 2 ? (Bound){ABSOLUTE, 0x1p-22} : (Bound){RELATIVE, 0x1p-22}; }
static Bound rsqrt_bound(double a) { return (void)a, (Bound){RELATIVE, 0x1p-23 * 1.0717734625362931}; /* 2^-22.9 */ }
static Bound sqrt_bound(double a) { return (void)a, (Bound){RELATIVE, 0x1p-23}; }
static Bound sine_bound(double a) { /* 2^-20.5, 2^-14.7; nothing is said of larger angles */
    return fabs(a) <= 6.283185307179586 ? (Bound){ABSOLUTE, 0x1p-21 * 1.4142135623730951}
                                        : (Bound){ABSOLUTE, 0x1p-15 * 1.2311444133449163};
}
static Bound tanh_bound(double a) { return (void)a, (Bound){RELATIVE, 0x1p-11}; }
static Bound tanh_f16_bound(double a) { return (void)a, (Bound){ABSOLUTE, 0x1p-11 * 1.0090516}; /* 2^-10.987 */ }
static Bound tanh_bf16_bound(double a) { return (void)a, (Bound){ABSOLUTE, 0x1p-8}; }
static Bound ex2_f16_bound(double a) { return (void)a, (Bound){RELATIVE, 0x1p-10 * 1.0717734625362931}; /* 2^-9.9 */ }
static Bound ex2_bf16_bound(double a) { return (void)a, (Bound){RELATIVE, 0x1p-7}; }

static const ApproxFunction ex2 = {ex2_of, two_ulps, 0}, lg2 = {lg2_of, lg2_bound, 0}, rcp = {rcp_of, one_ulp, 0},
                            rsqrt = {rsqrt_of, rsqrt_bound, 0}, square_root = {sqrt_of, sqrt_bound, 0},
                            sine = {sin_of, sine_bound, 1}, cosine = {cos_of, sine_bound, 1},
                            tanh32 = {tanh_of, tanh_bound, 1}, tanh_f16 = {tanh_of, tanh_f16_bound, 1},
                            tanh_bf16 = {tanh_of, tanh_bf16_bound, 1}, ex2_f16 = {ex2_of, ex2_f16_bound, 0},
                            ex2_bf16 = {ex2_of, ex2_bf16_bound, 0}, div_full = {div_full_of, two_ulps, 0},
                            div_approx = {div_approx_of, two_ulps, 0};

/* ---- the error --------------------------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t x) { /* the finaliser of SplitMix64 (Steele, Lea, Flood 2014) */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static uint64_t hash_of(const AluContext *c, const AluOp *op, uint64_t a, uint64_t b) {
    return mixed(mixed(mixed(c->seed) ^ op->salt) ^ mixed(a + 0x9e3779b97f4a7c15ull) ^
                 (b << 1 | 1) * 0xd1342543de82ef95ull);
}

static double to_double(const AluFormat *f, uint64_t bits) {
    if (f == &alu_f32) return alu_bits_f32((uint32_t)bits);
    return alu_bits_f64(alu_pack(&alu_f64, alu_unpack(f, bits, 0), ALU_NEAREST, 0));
}

static uint64_t from_double(const AluFormat *f, double x) {
    if (x != x) return f->nan;
    return f == &alu_f32 ? alu_f32_bits((float)x) : alu_pack(f, alu_from_double(x), ALU_NEAREST, 0);
}

/* |steps| values further from zero, never past zero or to infinity. */
static uint64_t stepped(const AluFormat *f, uint64_t bits, int steps) {
    uint64_t sign = 1ull << (f->bits - 1), inf = ((1ull << (f->bits - f->digits)) - 1) << (f->digits - 1);
    int64_t rest = (int64_t)(bits & (sign - 1)) + steps;
    return (bits & sign) | (uint64_t)(rest < 0 ? 0 : rest >= (int64_t)inf ? (int64_t)inf - 1 : rest);
}

static uint64_t perturbed(const AluFormat *f, double exact, Bound bound, uint64_t hash) {
    uint64_t rounded = from_double(f, exact);
    if (bound.kind == ULPS) {
        /* Where the exponent changes, an ulp is the smaller one. */
        double from = to_double(f, rounded), ulp = fabs(from - to_double(f, stepped(f, rounded, -1)));
        int steps = (int)(hash % (2 * (unsigned)bound.size + 1)) - (int)bound.size;
        uint64_t moved = stepped(f, rounded, steps);
        while (fabs(to_double(f, moved) - from) > bound.size * ulp) moved = stepped(f, moved, steps > 0 ? -1 : 1);
        return moved;
    }
    double error = bound.kind == RELATIVE ? bound.size * fabs(exact) : bound.size;
    double aim = exact + error * ((double)(hash >> 11) * 0x1p-52 - 1); /* anywhere within the bound */
    uint64_t moved = from_double(f, aim);
    while (moved != rounded && fabs(to_double(f, moved) - exact) > error)
        moved = stepped(f, moved, fabs(to_double(f, moved)) > fabs(exact) ? -1 : 1);
    return moved;
}

static bool plain(const AluFormat *f, uint64_t bits) { /* neither zero nor infinite nor NaN */
    return alu_unpack(f, bits, 0).class_ == ALU_NUMBER_;
}

static uint64_t flushed(const AluFormat *f, uint64_t bits, uint32_t mods) {
    uint64_t exponent = ((1ull << (f->bits - f->digits)) - 1) << (f->digits - 1);
    return mods & ALU_FTZ && !(bits & exponent) ? bits & 1ull << (f->bits - 1) : bits;
}

static uint64_t approximate(const AluContext *c, const AluOp *op, const AluFormat *f, const ApproxFunction *fn,
                            uint64_t a, uint64_t b) {
    a = flushed(f, a, op->mods), b = flushed(f, b, op->mods);
    double x = to_double(f, a), exact = fn->of(x, op->sources > 1 ? to_double(f, b) : 0);
    uint64_t r = from_double(f, exact);
    if (c->seed && plain(f, r) && plain(f, a)) {
        r = perturbed(f, exact, fn->bound(x), hash_of(c, op, a, b));
        if (fn->largest && fabs(to_double(f, r)) > fn->largest) r = from_double(f, copysign(fn->largest, exact));
    }
    return flushed(f, r, op->mods);
}

static void run_approximate(ALU_ARGS, const ApproxFunction *fn) {
    int parts;
    const AluFormat *f = alu_format(op->type, &parts);
    uint32_t *d = dst[0], mask = f->bits == 32 ? ~0u : 0xffffu;
    const uint32_t *x = src[0], *y = op->sources > 1 ? src[1] : x;
    for (uint32_t rest = active; rest; rest &= rest - 1) {
        int i = __builtin_ctz(rest);
        uint32_t both = 0;
        for (int at = 0; at < parts * f->bits; at += f->bits)
            both |= (uint32_t)approximate(c, op, f, fn, x[i] >> at & mask, op->sources > 1 ? y[i] >> at & mask : 0)
                    << at;
        d[i] = both;
    }
}

#define INSTRUCTION(name, function)                                                                                    \
    static void run_##name(ALU_ARGS) { run_approximate(c, op, dst, src, active, &function); }
INSTRUCTION(ex2, ex2)
INSTRUCTION(lg2, lg2)
INSTRUCTION(rcp, rcp)
INSTRUCTION(rsqrt, rsqrt)
INSTRUCTION(sqrt, square_root)
INSTRUCTION(sin, sine)
INSTRUCTION(cos, cosine)
INSTRUCTION(tanh, tanh32)
INSTRUCTION(tanh_f16, tanh_f16)
INSTRUCTION(tanh_bf16, tanh_bf16)
INSTRUCTION(ex2_f16, ex2_f16)
INSTRUCTION(ex2_bf16, ex2_bf16)
INSTRUCTION(div_full, div_full)
INSTRUCTION(div_approx, div_approx)

/* ---- f64: starting points of Newton's method, from and to the upper halves of the numbers ------------------------ */

static double upper_half(double x) { return alu_bits_f64(alu_f64_bits(x) & ~0xffffffffull); }
static double flushed_f64(double x) { return fabs(x) < 0x1p-1022 ? copysign(0, x) : x; }

static uint64_t gross(const AluContext *c, const AluOp *op, uint64_t x, double (*of)(double a, double b)) {
    double r = flushed_f64(upper_half(of(flushed_f64(upper_half(alu_bits_f64(x))), 0)));
    if (r != r) return ALU_NAN_F64;
    bool next = c->seed && r != 0 && fabs(r) < 0x1p1023 && hash_of(c, op, x, 0) & 1; /* a finite neighbour */
    return alu_f64_bits(r) + ((uint64_t)next << 32);
}

static void run_gross(ALU_ARGS, double (*of)(double a, double b)) {
    uint64_t *d = dst[0];
    const uint64_t *x = src[0];
    ALU_EACH_LANE(active, d[i] = gross(c, op, x[i], of));
}
static void run_rcp_gross(ALU_ARGS) { run_gross(c, op, dst, src, active, rcp_of); }
static void run_rsqrt_gross(ALU_ARGS) { run_gross(c, op, dst, src, active, rsqrt_of); }

static void run_rsqrt_f64(ALU_ARGS) { /* correctly rounded up to the rounding of the root; no error is added */
    ALU_UNUSED;
    uint64_t *d = dst[0];
    const uint64_t *x = src[0];
    ALU_EACH_LANE(active, double r = 1 / sqrt(alu_bits_f64(x[i])); d[i] = r != r ? ALU_NAN_F64 : alu_f64_bits(r));
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define FORM(opcode, type, arch, needs, allows, operands, run)                                                         \
    { opcode, type, PTX_NONE, arch, 0, 0, needs, allows, operands, "special", run }
#define F32(opcode, run) FORM(opcode, PTX_F32, 0, ALU_APPROX, ALU_FTZ, "T=T", run)

static const AluForm forms[] = {
    F32("ex2", run_ex2),
    F32("lg2", run_lg2),
    F32("rcp", run_rcp),
    F32("rsqrt", run_rsqrt),
    F32("sqrt", run_sqrt),
    F32("sin", run_sin),
    F32("cos", run_cos),
    FORM("tanh", PTX_F32, 0, ALU_APPROX, 0, "T=T", run_tanh),
    FORM("tanh", PTX_F16, 0, ALU_APPROX, 0, "T=T", run_tanh_f16),
    FORM("tanh", PTX_F16X2, 0, ALU_APPROX, 0, "T=T", run_tanh_f16),
    FORM("tanh", PTX_BF16, 90, ALU_APPROX, 0, "T=T", run_tanh_bf16),
    FORM("tanh", PTX_BF16X2, 90, ALU_APPROX, 0, "T=T", run_tanh_bf16),
    FORM("ex2", PTX_F16, 0, ALU_APPROX, 0, "T=T", run_ex2_f16),
    FORM("ex2", PTX_F16X2, 0, ALU_APPROX, 0, "T=T", run_ex2_f16),
    FORM("ex2", PTX_BF16, 90, ALU_APPROX | ALU_FTZ, 0, "T=T", run_ex2_bf16),
    FORM("ex2", PTX_BF16X2, 90, ALU_APPROX | ALU_FTZ, 0, "T=T", run_ex2_bf16),
    FORM("div", PTX_F32, 0, ALU_FULL, ALU_FTZ, "T=TT", run_div_full),
    FORM("div", PTX_F32, 0, ALU_APPROX, ALU_FTZ, "T=TT", run_div_approx),
    FORM("rcp", PTX_F64, 0, ALU_APPROX | ALU_FTZ, 0, "T=T", run_rcp_gross),
    FORM("rsqrt", PTX_F64, 0, ALU_APPROX | ALU_FTZ, 0, "T=T", run_rsqrt_gross),
    FORM("rsqrt", PTX_F64, 0, ALU_APPROX, 0, "T=T", run_rsqrt_f64),
};
ALU_FORMS(alu_forms_approx, forms);
