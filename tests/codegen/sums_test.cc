// sums_test.cc: products that the CPU adds up as a device does, against mma.sync of the stand-in (fakecuda/alu), whose
// blocks fakecuda/alu/mma_test.cc holds against exact integers: every bit, on more than a thousand shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/rounding.h"
#include "fakecuda/alu/alu.h"
#include "tests/codegen/device_sums.h"

namespace {

struct Type {
    SumsType type;
    amp_dtype dtype;
    const char *mma;
    int step; // elements of k of an instruction
    double smallest, largest;
};
const Type kTypes[] = {
    {SUMS_F16, AMP_DT_F16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16, 0x1p-24, 65504},
    {SUMS_BF16, AMP_DT_BF16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 16, 0x1p-133, 0x1.FEp127},
    {SUMS_TF32, AMP_DT_TF32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 8, 0x1p-136, 0x1.FFCp127},
};

// What the elements are like.
enum Kind { NORMAL, WIDE, CANCELLING, TINY, HUGE_ONES, SPECIAL, KINDS };

float Rounded(const Type &t, double x) { return amp_round_dtype(t.dtype, static_cast<float>(x)); }

std::vector<float> Draw(const Type &t, Kind kind, size_t count, std::mt19937 *engine) {
    static const float specials[] = {INFINITY, -INFINITY, NAN, 0.0f, -0.0f};
    std::normal_distribution<double> normal;
    std::vector<float> x(count);
    const int lowest = std::ilogb(t.smallest), highest = std::ilogb(t.largest);
    for (size_t i = 0; i < count; i++) {
        double v = normal(*engine);
        const int span = highest - lowest + 1, at = static_cast<int>((*engine)() % static_cast<unsigned>(span));
        if (kind == WIDE) v = std::ldexp(v, lowest + at);
        if (kind == CANCELLING) v = (i % 2 ? -1 : 1) * std::ldexp(1 + 1e-3 * v, 5);
        if (kind == TINY) v *= t.smallest * 8;
        if (kind == HUGE_ONES) v *= t.largest / 4;
        x[i] = Rounded(t, v);
        if (kind == SPECIAL && (*engine)() % 97 == 0) x[i] = specials[(*engine)() % 5];
        if (kind != SPECIAL && !std::isfinite(x[i])) x[i] = Rounded(t, std::copysign(t.largest, v));
    }
    return x;
}

uint32_t Bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

uint32_t ElementBits(const Type &t, float x) {
    if (t.type == SUMS_F16) return alu_f32_to_f16(x);
    return t.type == SUMS_BF16 ? Bits(x) >> 16 : Bits(x);
}

// 16 x 8 elements of the product by instructions in a row, from 0 on.  Which lane holds what is "Matrix Fragments for
// mma" of the PTX document.
class Instructions {
  public:
    Instructions(const Type &t, int arch) : t_(t) {
        const char *why = nullptr;
        context_.arch = arch;
        EXPECT_EQ(alu_find_mma(&context_, t.mma, &mma_, &why), 0) << (why ? why : "");
    }

    template <class A, class B> void Tile(int64_t begin, int64_t end, const A &a, const B &b, float sums[16][8]) const {
        uint32_t ra[4][32], rb[2][32], rc[4][32] = {};
        uint32_t *d[4];
        const uint32_t *pa[4], *pb[2], *pc[4];
        for (int i = 0; i < 4; i++) d[i] = rc[i], pc[i] = rc[i], pa[i] = ra[i];
        for (int i = 0; i < 2; i++) pb[i] = rb[i];
        for (int64_t k = begin; k < end; k += t_.step) {
            memset(ra, 0, sizeof ra);
            memset(rb, 0, sizeof rb);
            const int packed = t_.step / 8;
            for (int lane = 0; lane < 32; lane++) {
                const int group = lane / 4, quad = lane % 4;
                for (int i = 0; i < 4 * packed; i++) {
                    const int row = group + 8 * (i / packed % 2), at = K(quad, i, 2 * packed);
                    if (k + at < end) ra[i / packed][lane] |= ElementBits(t_, a(row, k + at)) << Shift(i);
                }
                for (int i = 0; i < 2 * packed; i++) {
                    const int at = K(quad, i, packed);
                    if (k + at < end) rb[i / packed][lane] |= ElementBits(t_, b(k + at, group)) << Shift(i);
                }
            }
            mma_.run(&context_, &mma_, d, pa, pb, pc);
        }
        for (int lane = 0; lane < 32; lane++)
            for (int i = 0; i < 4; i++)
                memcpy(&sums[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2], &rc[i][lane], sizeof(float));
    }

  private:
    int Shift(int i) const { return t_.step == 16 ? 16 * (i % 2) : 0; }
    // Of element |i|; |half| elements are in the lower half of k.
    int K(int quad, int i, int half) const {
        return t_.step == 16 ? 2 * quad + i % 2 + 8 * (i / half) : quad + 4 * (i / half);
    }
    const Type &t_;
    AluContext context_ = {};
    AluMma mma_ = {};
};

struct Shape {
    int64_t m, n, k, part;
    bool ta, tb;
};

void ExpectTheBitsOfTheStandIn(const Type &t, int arch, const Shape &s, Kind kind, std::mt19937 *engine) {
    const auto a = Draw(t, kind, static_cast<size_t>(s.m * s.k), engine),
               b = Draw(t, kind, static_cast<size_t>(s.k * s.n), engine);
    std::vector<float> y(static_cast<size_t>(s.m * s.n), -1.0f);
    const SumsMatrices x = {s.m, s.n, s.k, s.ta, s.tb, s.part, a.data(), b.data(), y.data()};
    (arch == 80 ? sums_as_sm_80 : sums_as_sm_90)(&x, t.type);
    const Instructions mma(t, arch);
    for (int64_t row = 0; row < s.m; row += 16)
        for (int64_t col = 0; col < s.n; col += 8) {
            auto of_a = [&](int r, int64_t k) {
                const int64_t at = s.ta ? k * s.m + row + r : (row + r) * s.k + k;
                return row + r < s.m ? a[static_cast<size_t>(at)] : 0.0f;
            };
            auto of_b = [&](int64_t k, int c) {
                const int64_t at = s.tb ? (col + c) * s.k + k : k * s.n + col + c;
                return col + c < s.n ? b[static_cast<size_t>(at)] : 0.0f;
            };
            float want[16][8], sums[16][8];
            for (int64_t k = 0; k < s.k; k += s.part) {
                mma.Tile(k, std::min(s.k, k + s.part), of_a, of_b, sums);
                for (int r = 0; r < 16; r++)
                    for (int c = 0; c < 8; c++)
                        want[r][c] = s.part >= s.k ? sums[r][c] : (k ? want[r][c] : 0.0f) + sums[r][c];
            }
            for (int r = 0; r < 16 && row + r < s.m; r++)
                for (int c = 0; c < 8 && col + c < s.n; c++) {
                    const float got = y[static_cast<size_t>((row + r) * s.n + col + c)];
                    if (std::isnan(got) && std::isnan(want[r][c])) continue;
                    ASSERT_EQ(Bits(got), Bits(want[r][c]))
                        << amp_dtype_name(t.dtype) << " sm_" << arch << " " << s.m << " x " << s.k << " x " << s.n
                        << " ta " << s.ta << " tb " << s.tb << " part " << s.part << " kind " << kind << " at "
                        << row + r << ", " << col + c << ": " << got << ", not " << want[r][c];
                }
        }
}

int64_t Below(std::mt19937 *engine, int64_t end) {
    return 1 + static_cast<int64_t>((*engine)() % static_cast<unsigned>(end));
}

// 180 shapes of each type and architecture, 1,080 in all.
TEST(SumsTest, AThousandShapes) {
    std::mt19937 engine(11);
    int shapes = 0;
    for (const Type &t : kTypes)
        for (int arch : {80, 90})
            for (int i = 0; i < 180; i++, shapes++) {
                Shape s = {Below(&engine, 40), Below(&engine, 40), Below(&engine, i % 11 ? 200 : 3000), 0,
                           engine() % 2 != 0,  engine() % 2 != 0};
                s.part = i % 7 ? s.k : 64 * Below(&engine, 4);
                ExpectTheBitsOfTheStandIn(t, arch, s, static_cast<Kind>(i % KINDS), &engine);
                if (HasFailure()) return;
            }
    EXPECT_GE(shapes, 1000);
}

// The test can fail: the two architectures, and IEEE sums, are not the same.
TEST(SumsTest, ArchitecturesDiffer) {
    const Type &t = kTypes[0];
    std::mt19937 engine(3);
    const int64_t k = 1000;
    const auto a = Draw(t, NORMAL, k, &engine), b = Draw(t, NORMAL, k, &engine);
    float older, newer, plain = 0.0f;
    SumsMatrices x = {1, 1, k, 0, 0, k, a.data(), b.data(), &older};
    sums_as_sm_80(&x, t.type);
    x.y = &newer;
    sums_as_sm_90(&x, t.type);
    for (size_t i = 0; i < a.size(); i++) plain = std::fma(a[i], b[i], plain);
    EXPECT_NE(older, newer);
    EXPECT_NE(newer, plain);
    EXPECT_NEAR(older, plain, 1e-2);
    EXPECT_NEAR(newer, plain, 1e-2);
}

// What the page says of blocks: 2^25 and 1 meet in one of 25 places, and are cut off below 24.
TEST(SumsTest, CutsOffBelowTheLargestTerm) {
    float a[16] = {4096.0f}, b[16] = {4096.0f}, y; // 2^24
    a[1] = 1.0f, b[1] = 0.75f;
    a[2] = 1.0f, b[2] = 0.75f;
    const SumsMatrices x = {1, 1, 16, 0, 0, 16, a, b, &y};
    sums_as_sm_80(&x, SUMS_F16);
    EXPECT_EQ(y, 0x1p24f) << "0.75 is less than one place";
    sums_as_sm_90(&x, SUMS_F16);
    EXPECT_EQ(y, 0x1p24f) << "half a place each: 1, which 24 digits do not hold";
    a[0] = b[0] = 2048.0f; // 2^22
    sums_as_sm_80(&x, SUMS_F16);
    EXPECT_EQ(y, 0x1p22f + 1.5f) << "0.75 is three places of a quarter, whose sum 24 digits hold but for the last";
}

} // namespace
