// Tensor-core products against a slow implementation of the model (arXiv 2511.10909) in exact integers, and against
// exact sums; layouts as the document words them.
#include "fakecuda/alu/alu_test.h"

#include <functional>
#include <memory>

namespace {

struct Form {
    const char *name;
    int k;
    Shape factor; // bits of an element; tf32 by the upper 19 of its 32
    bool tf32, half_sums;
    int arch;
};
const Shape TF32_SHAPE{19, 11, -126, 0x3ffff};
const Form kForms[] = {
    {"m16n8k8.row.col.f32.f16.f16.f32", 8, F16, false, false, 75},
    {"m16n8k8.row.col.f16.f16.f16.f16", 8, F16, false, true, 75},
    {"m16n8k16.row.col.f32.f16.f16.f32", 16, F16, false, false, 80},
    {"m16n8k16.row.col.f16.f16.f16.f16", 16, F16, false, true, 80},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 8, BF16, false, false, 80},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 16, BF16, false, false, 80},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 4, TF32_SHAPE, true, false, 80},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 8, TF32_SHAPE, true, false, 80},
};
const int kArchitectures[] = {75, 80, 86, 89, 90, 120};

struct Matrices { // bits of the elements
    uint32_t a[16][16] = {}, b[16][8] = {}, c[16][8] = {};
};

AluMma find(const AluContext &ctx, const Form &f) {
    AluMma m{};
    const char *why = nullptr;
    EXPECT_EQ(alu_find_mma(&ctx, (std::string("mma.sync.aligned.") + f.name).c_str(), &m, &why), 0)
        << f.name << (why ? why : "");
    EXPECT_EQ(m.m, 16);
    EXPECT_EQ(m.n, 8);
    EXPECT_EQ(m.k, f.k);
    return m;
}

// Where the document puts element i of a lane ("Matrix Fragments for mma.m16n8k..").
void place_a(const Form &f, int lane, int i, int *row, int *col) {
    int group = lane >> 2, in_group = lane % 4;
    if (f.tf32) {
        *row = i == 0 || i == 2 ? group : group + 8;
        *col = i < 2 ? in_group : in_group + 4;
    } else {
        *row = (i >= 0 && i < 2) || (i >= 4 && i < 6) ? group : group + 8;
        *col = in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);
    }
}
void place_b(const Form &f, int lane, int i, int *row, int *col) {
    int group = lane >> 2, in_group = lane % 4;
    *row = f.tf32 ? (i == 0 ? in_group : in_group + 4) : in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0);
    *col = group;
}
void place_c(int lane, int i, int *row, int *col) {
    *row = i < 2 ? lane >> 2 : (lane >> 2) + 8;
    *col = lane % 4 * 2 + (i & 1);
}

// D of the instruction.
void multiply(const AluContext &ctx, const Form &f, const Matrices &in, uint32_t d[16][8]) {
    AluMma m = find(ctx, f);
    ASSERT_NE(m.run, nullptr);
    int packed = f.tf32 ? 1 : 2, sums = f.half_sums ? 2 : 1;
    ASSERT_EQ(m.a_regs, 16 * f.k / 32 / packed);
    ASSERT_EQ(m.b_regs, 8 * f.k / 32 / packed);
    ASSERT_EQ(m.c_regs, 4 / sums);
    ASSERT_EQ(m.d_regs, 4 / sums);
    static uint32_t ra[4][32], rb[4][32], rc[4][32], rd[4][32];
    memset(ra, 0, sizeof ra), memset(rb, 0, sizeof rb), memset(rc, 0, sizeof rc);
    int row, col;
    for (int l = 0; l < 32; ++l) {
        for (int i = 0; i < m.a_regs * packed; ++i)
            place_a(f, l, i, &row, &col), ra[i / packed][l] |= in.a[row][col] << (packed == 2 ? 16 * (i % 2) : 0);
        for (int i = 0; i < m.b_regs * packed; ++i)
            place_b(f, l, i, &row, &col), rb[i / packed][l] |= in.b[row][col] << (packed == 2 ? 16 * (i % 2) : 0);
        for (int i = 0; i < 4; ++i)
            place_c(l, i, &row, &col), rc[i / sums][l] |= in.c[row][col] << (sums == 2 ? 16 * (i % 2) : 0);
    }
    const uint32_t *a[] = {ra[0], ra[1], ra[2], ra[3]}, *b[] = {rb[0], rb[1], rb[2], rb[3]},
                   *c[] = {rc[0], rc[1], rc[2], rc[3]};
    uint32_t *to[] = {rd[0], rd[1], rd[2], rd[3]};
    m.run(&ctx, &m, to, a, b, c);
    for (int l = 0; l < 32; ++l)
        for (int i = 0; i < 4; ++i) {
            place_c(l, i, &row, &col);
            d[row][col] = sums == 2 ? rd[i / 2][l] >> (16 * (i % 2)) & 0xffff : rd[i][l];
        }
    m.run(&ctx, &m, const_cast<uint32_t **>(c), a, b, c); // D may be C
    for (int r = 0; r < m.d_regs; ++r) ASSERT_EQ(memcmp(rc[r], rd[r], sizeof rd[r]), 0) << f.name;
}

uint64_t element(const Form &f, uint32_t bits) { return f.tf32 ? bits >> 13 : bits; }
const Shape &sum_shape(const Form &f) { return f.half_sums ? F16 : F32; }
bool special(const Shape &s, uint64_t bits) {
    return (low(bits, s.bits - 1) >> (s.digits - 1)) == low(~0ull, s.bits - s.digits);
}

int exponent(const Shape &s, uint64_t bits) {
    int biased = int(low(bits, s.bits - 1) >> (s.digits - 1));
    return s.emin + (biased ? biased - 1 : 0);
}
F128 power(int e) { return e < -500 ? power(e + 500) * F128(std::ldexp(1.0, -500)) : F128(std::ldexp(1.0, e)); }

// The model.
uint64_t expected(int arch, const Form &f, const Matrices &m, int row, int col) {
    int bits = arch >= 90 ? 25 : 24, block = (arch >= 90 ? 16 : 8) / (f.tf32 ? 2 : 1);
    const Shape &s = sum_shape(f);
    uint64_t c = m.c[row][col];
    for (int first = 0; first < f.k; first += block) {
        int last = std::min(f.k, first + block), largest = -126;
        bool odd = special(s, c);
        double plain = is_nan(s, c) ? NAN : double(value(s, c));
        struct Term {
            F128 v;
            int e;
        };
        std::vector<Term> terms;
        if (!odd) terms.push_back({value(s, c), exponent(s, c)});
        for (int k = first; k < last; ++k) {
            uint64_t a = element(f, m.a[row][k]), b = element(f, m.b[k][col]);
            odd |= special(f.factor, a) || special(f.factor, b);
            plain += (is_nan(f.factor, a) ? NAN : double(value(f.factor, a))) *
                     (is_nan(f.factor, b) ? NAN : double(value(f.factor, b)));
            if (!odd)
                terms.push_back(
                    {value(f.factor, a) * value(f.factor, b), exponent(f.factor, a) + exponent(f.factor, b)});
        }
        if (odd) {
            uint64_t inf = rounded(s, F128(INFINITY), "rn");
            c = std::isnan(plain) ? s.nan : plain > 0 ? inf : inf | 1ull << (s.bits - 1);
            continue;
        }
        for (const Term &t : terms)
            if (t.v != 0) largest = std::max(largest, t.e);
        S128 sum = 0;
        for (const Term &t : terms) sum += S128(t.v * power(bits - largest)); // toward zero
        F128 x = F128(sum) * power(largest - bits);
        bool over = (x < 0 ? -x : x) >= F128(0x1p127) * 2;
        c = rounded(s, x, f.half_sums || over ? "rn" : "rz");
    }
    return c;
}

// ---- data -----------------------------------------------------------------------------------------------------------

uint32_t from_float(const Form &f, float x) {
    if (f.tf32) return bits_of(x);
    return f.factor.digits == 11 ? alu_f32_to_f16(x) : alu_f32_to_bf16(x);
}
uint32_t sum_from_float(const Form &f, float x) { return f.half_sums ? alu_f32_to_f16(x) : bits_of(x); }

float gaussian(std::mt19937_64 &g) {
    std::normal_distribution<float> d;
    return d(g);
}

enum Data { GAUSSIAN, POSITIVE, WIDE, SUBNORMAL, CANCELLING, ANY_BITS, DATA };

Matrices random_matrices(const Form &f, Data data, std::mt19937_64 &g) {
    Matrices m;
    auto draw = [&](bool sum) -> uint32_t {
        float x = gaussian(g);
        auto make = [&](float y) { return sum ? sum_from_float(f, y) : from_float(f, y); };
        switch (data) {
        case POSITIVE: return make(std::fabs(x));
        case WIDE: return make(std::ldexp(x, int(g() % 25) - 12));
        case SUBNORMAL:
            return sum      ? uint32_t(g() % 64) | uint32_t(g() & 1) << (f.half_sums ? 15 : 31)
                   : f.tf32 ? uint32_t(g() % 64) << 13 | uint32_t(g() & 1) << 31
                            : uint32_t(g() % 64) | uint32_t(g() & 1) << 15;
        case ANY_BITS:
            return sum      ? (f.half_sums ? uint32_t(g() & 0xffff) : uint32_t(g()))
                   : f.tf32 ? uint32_t(g())
                            : uint32_t(g() & 0xffff);
        default: return make(g() % 5 ? x : 0);
        }
    };
    for (auto &row : m.a)
        for (uint32_t &x : row) x = draw(false);
    for (auto &row : m.b)
        for (uint32_t &x : row) x = draw(false);
    for (auto &row : m.c)
        for (uint32_t &x : row) x = draw(true);
    if (data == CANCELLING)
        for (auto &row : m.a)
            for (int k = 0; k + 1 < f.k; k += 2) row[k + 1] = row[k] ^ (f.tf32 ? 0x80000000u : 0x8000u);
    if (data == CANCELLING)
        for (int k = 0; k + 1 < f.k; k += 2)
            for (int n = 0; n < 8; ++n)
                m.b[k + 1][n] = m.b[k][n] + (m.b[k][n] && g() % 3 == 0 ? (f.tf32 ? 1u << 13 : 1u) : 0u);
    return m;
}

// ---- tests ----------------------------------------------------------------------------------------------------------

TEST(Mma, EveryElementHasItsPlace) {
    for (const Form &f : kForms) {
        AluContext ctx = context(90);
        for (int k = 0; k < f.k; ++k) {
            Matrices m;
            for (int row = 0; row < 16; ++row) m.a[row][k] = from_float(f, float(row + 1));
            for (int col = 0; col < 8; ++col) m.b[k][col] = from_float(f, float(16 << col & 0xff ? col + 17 : col + 1));
            for (int row = 0; row < 16; ++row)
                for (int col = 0; col < 8; ++col) m.c[row][col] = sum_from_float(f, float(row * 8 + col));
            uint32_t d[16][8];
            multiply(ctx, f, m, d);
            for (int row = 0; row < 16; ++row)
                for (int col = 0; col < 8; ++col) {
                    float b = float(16 << col & 0xff ? col + 17 : col + 1);
                    ASSERT_EQ(d[row][col], sum_from_float(f, float(row + 1) * b + float(row * 8 + col)))
                        << f.name << " " << row << " " << col << " " << k;
                }
        }
        // One element of A alone, one of B alone: only their row and column meet.
        for (int k = 0; k < f.k; ++k)
            for (int row = 0; row < 16; row += 5)
                for (int col = 0; col < 8; col += 3) {
                    Matrices m;
                    m.a[row][k] = from_float(f, 1), m.b[k][col] = from_float(f, 1);
                    uint32_t d[16][8];
                    multiply(ctx, f, m, d);
                    for (int r = 0; r < 16; ++r)
                        for (int c = 0; c < 8; ++c)
                            ASSERT_EQ(d[r][c], sum_from_float(f, r == row && c == col)) << f.name;
                }
    }
}

TEST(Mma, SmallIntegersAreExact) {
    std::mt19937_64 g(1);
    for (const Form &f : kForms)
        for (int arch : kArchitectures) {
            if (arch < f.arch) continue;
            for (bool exact : {false, true}) {
                AluContext ctx = context(arch);
                ctx.exact = exact;
                Matrices m;
                int a[16][16], b[16][8], c[16][8];
                for (int i = 0; i < 16; ++i)
                    for (int k = 0; k < 16; ++k) m.a[i][k] = from_float(f, float(a[i][k] = int(g() % 17) - 8));
                for (int k = 0; k < 16; ++k)
                    for (int j = 0; j < 8; ++j) m.b[k][j] = from_float(f, float(b[k][j] = int(g() % 17) - 8));
                for (int i = 0; i < 16; ++i)
                    for (int j = 0; j < 8; ++j) m.c[i][j] = sum_from_float(f, float(c[i][j] = int(g() % 201) - 100));
                uint32_t d[16][8];
                multiply(ctx, f, m, d);
                for (int i = 0; i < 16; ++i)
                    for (int j = 0; j < 8; ++j) {
                        int sum = c[i][j];
                        for (int k = 0; k < f.k; ++k) sum += a[i][k] * b[k][j];
                        ASSERT_EQ(d[i][j], sum_from_float(f, float(sum))) << f.name << " sm_" << arch;
                    }
            }
        }
}

TEST(Mma, IsTheModel) {
    std::mt19937_64 g(2);
    for (const Form &f : kForms)
        for (int arch : kArchitectures) {
            if (arch < f.arch) continue;
            for (int data = 0; data < DATA; ++data)
                for (int round = 0; round < 3; ++round) {
                    Matrices m = random_matrices(f, Data(data), g);
                    uint32_t d[16][8];
                    multiply(context(arch), f, m, d);
                    for (int i = 0; i < 16; ++i)
                        for (int j = 0; j < 8; ++j)
                            ASSERT_EQ(d[i][j], expected(arch, f, m, i, j))
                                << f.name << " sm_" << arch << " data " << data << " at " << i << "," << j;
                }
        }
}

// Infinities and NaN in single places, among plain numbers: only what they meet is touched.
TEST(Mma, SpecialValues) {
    std::mt19937_64 g(3);
    for (const Form &f : kForms) {
        uint32_t inf = f.tf32                  ? 0x7f800000
                       : f.factor.digits == 11 ? 0x7c00
                                               : 0x7f80,
                 nan = f.tf32 ? 0x7fc00000 : 0x7fff, minus = f.tf32 ? 0x80000000u : 0x8000u;
        for (int round = 0; round < 12; ++round) {
            Matrices m = random_matrices(f, GAUSSIAN, g);
            m.a[g() % 16][g() % f.k] = round % 3 == 0 ? nan : inf | (round % 2 ? minus : 0);
            if (round % 4 == 1) m.b[g() % f.k][g() % 8] = inf;
            if (round % 4 == 2) m.c[g() % 16][g() % 8] = sum_from_float(f, round % 8 == 2 ? INFINITY : NAN);
            for (int arch : {80, 90}) {
                uint32_t d[16][8];
                multiply(context(arch), f, m, d);
                AluContext exact = context(arch);
                exact.exact = true;
                uint32_t e[16][8];
                multiply(exact, f, m, e);
                int odd = 0;
                for (int i = 0; i < 16; ++i)
                    for (int j = 0; j < 8; ++j) {
                        uint64_t x = expected(arch, f, m, i, j);
                        ASSERT_EQ(d[i][j], x) << f.name;
                        bool is_special = special(sum_shape(f), x);
                        odd += is_special;
                        ASSERT_EQ(special(sum_shape(f), e[i][j]), is_special) << f.name;
                        if (is_special) {
                            ASSERT_EQ(e[i][j], x) << f.name;
                        }
                    }
                ASSERT_GE(odd, 8);
            }
        }
    }
    // 0 * inf is NaN; inf - inf is NaN.
    Matrices m;
    const Form &f = kForms[2];
    m.a[0][0] = 0x7c00, m.a[1][0] = 0x7c00, m.b[0][1] = 0x3c00, m.c[1][1] = 0xff800000u;
    uint32_t d[16][8];
    multiply(context(90), f, m, d);
    EXPECT_EQ(d[0][0], 0x7fffffffu);
    EXPECT_EQ(d[0][1], 0x7f800000u);
    EXPECT_EQ(d[1][1], 0x7fffffffu);
    EXPECT_EQ(d[2][1], 0u);
}

TEST(Mma, OverflowIsInfinite) {
    Matrices m;
    const Form &f = kForms[5];                                                       // bf16
    for (int k = 0; k < 16; ++k) m.a[0][k] = m.b[k][0] = 0x7f00, m.a[1][k] = 0xff00; // 2^127
    uint32_t d[16][8];
    multiply(context(90), f, m, d);
    EXPECT_EQ(d[0][0], 0x7f800000u);
    EXPECT_EQ(d[1][0], 0xff800000u);
}

F128 exact_sum(const Form &f, const Matrices &m, int i, int j, F128 *magnitude) {
    F128 sum = value(sum_shape(f), m.c[i][j]);
    *magnitude = sum < 0 ? -sum : sum;
    for (int k = 0; k < f.k; ++k) {
        F128 p = value(f.factor, element(f, m.a[i][k])) * value(f.factor, element(f, m.b[k][j]));
        sum += p;
        *magnitude += p < 0 ? -p : p;
    }
    return sum;
}

// Every block may lose (n + 1) units of 2^-F of its largest term (a normal one: subnormal numbers have the exponent of
// larger ones), and one rounding; all of it toward zero.
TEST(Mma, StaysWithinItsBound) {
    std::mt19937_64 g(4);
    for (const Form &f : kForms)
        for (int arch : kArchitectures) {
            if (arch < f.arch || f.half_sums) continue;
            int bits = arch >= 90 ? 25 : 24, n = std::min(f.k, (arch >= 90 ? 16 : 8) / (f.tf32 ? 2 : 1)), below = 0;
            for (Data data : {GAUSSIAN, POSITIVE, CANCELLING})
                for (int round = 0; round < 4; ++round) {
                    Matrices m = random_matrices(f, data, g);
                    uint32_t d[16][8];
                    multiply(context(arch), f, m, d);
                    for (int i = 0; i < 16; ++i)
                        for (int j = 0; j < 8; ++j) {
                            F128 magnitude, exact = exact_sum(f, m, i, j, &magnitude), got = F128(f32_of(d[i][j]));
                            double error = double(got - exact), bound = double(magnitude) * (f.k / n) *
                                                                        ((n + 1) * std::ldexp(1.0, 1 - bits) + 0x1p-23);
                            ASSERT_LE(std::fabs(error), bound) << f.name << " sm_" << arch;
                            if (data == POSITIVE) {
                                ASSERT_LE(error, 0) << "cut off, never rounded up";
                            }
                            below += error < 0;
                        }
                }
            EXPECT_GT(below, 0) << f.name;
        }
}

TEST(Mma, ArchitecturesAddDifferently) {
    std::mt19937_64 g(5);
    int differ = 0;
    for (int round = 0; round < 10; ++round) {
        Matrices m = random_matrices(kForms[2], GAUSSIAN, g);
        uint32_t d80[16][8], d90[16][8], d86[16][8], d120[16][8];
        multiply(context(80), kForms[2], m, d80), multiply(context(90), kForms[2], m, d90);
        multiply(context(86), kForms[2], m, d86), multiply(context(120), kForms[2], m, d120);
        differ += memcmp(d80, d90, sizeof d80) != 0;
        EXPECT_EQ(memcmp(d80, d86, sizeof d80), 0);
        EXPECT_EQ(memcmp(d90, d120, sizeof d90), 0);
    }
    EXPECT_EQ(differ, 10);
}

TEST(Mma, ExactSumsAreRoundedOnce) {
    std::mt19937_64 g(6);
    AluContext ctx = context(80);
    ctx.exact = true;
    for (const Form &f : kForms)
        for (Data data : {GAUSSIAN, POSITIVE, WIDE, SUBNORMAL, CANCELLING})
            for (int round = 0; round < 4; ++round) {
                Matrices m = random_matrices(f, data, g);
                uint32_t d[16][8];
                multiply(ctx, f, m, d);
                for (int i = 0; i < 16; ++i)
                    for (int j = 0; j < 8; ++j) {
                        F128 magnitude, exact = exact_sum(f, m, i, j, &magnitude); // these fit 113 digits
                        ASSERT_EQ(d[i][j] & (exact == 0 ? 0x7fffffff : 0xffffffff), rounded(sum_shape(f), exact, "rn"))
                            << f.name << " data " << data;
                    }
            }
    // Terms 2^200 apart: only what cancels exactly goes.
    Matrices m;
    const Form &f = kForms[5];
    m.a[0][0] = 0x7180, m.b[0][0] = 0x7180; // 2^100 * 2^100
    m.a[0][1] = 0xf180, m.b[1][0] = 0x7180;
    m.a[0][2] = 0x3f80, m.b[2][0] = 0x3f80;
    m.a[0][3] = 0x0080, m.b[3][0] = 0x3f80; // 2^-126
    m.c[0][0] = bits_of(0x1p-24f);
    uint32_t d[16][8];
    multiply(ctx, f, m, d);
    EXPECT_EQ(d[0][0], bits_of(1 + 0x1p-23f)); // 1 + 2^-24 + 2^-126 is above the middle
    ctx.exact = false;
    multiply(ctx, f, m, d);
    EXPECT_EQ(d[0][0], 0u); // the model loses all of it
}

TEST(Mma, LowBitsOfTf32AreIgnored) {
    std::mt19937_64 g(7);
    for (const Form &f : kForms) {
        if (!f.tf32) continue;
        Matrices m = random_matrices(f, GAUSSIAN, g), cut = m;
        for (auto &row : cut.a)
            for (uint32_t &x : row) x &= ~0x1fffu;
        for (auto &row : cut.b)
            for (uint32_t &x : row) x &= ~0x1fffu;
        uint32_t d[16][8], e[16][8];
        multiply(context(80), f, m, d), multiply(context(80), f, cut, e);
        EXPECT_EQ(memcmp(d, e, sizeof d), 0);
    }
}

TEST(Mma, Refused) {
    AluMma m{};
    const char *why = nullptr;
    AluContext turing = context(75), hopper = context(90);
    for (const Form &f : kForms)
        if (f.arch > 75) {
            EXPECT_EQ(alu_find_mma(&turing, (std::string("mma.sync.aligned.") + f.name).c_str(), &m, &why), -2)
                << f.name;
            EXPECT_STREQ(why, "needs sm_80 or higher");
        }
    EXPECT_EQ(alu_find_mma(&hopper, "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32", &m, &why), -2);
    EXPECT_NE(why, nullptr);
    EXPECT_EQ(alu_find_mma(&hopper, "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", &m, &why), -2);
    EXPECT_EQ(alu_find_mma(&hopper, "add.f32", &m, &why), -1);
}

} // namespace
