// Every instruction set's tile function against float64, and the promises of product.h about bits.
#include <gtest/gtest.h>

#include <limits>

#include "tests/runtime/device/cpu/emulated/emulated.h"
#include "tests/runtime/device/cpu/packed_operands.h"

namespace {

constexpr amp_product_form kForms[] = {AMP_PRODUCT_BLOCKED, AMP_PRODUCT_TRANSPOSED};
constexpr int64_t kDepths[] = {1, 2, 3, 31, 32, 33, 64, 95, 257};

using Tile = std::vector<float>;

// The tile of the first 32 x 32 elements; what the kernel leaves alone stays |fill|.
Tile run(const amp_product_kernels *kernels, const PackedProduct &p, float fill = -7.0f) {
    Tile c(32 * 32, fill);
    amp_product_tile tile = p.tile(c.data());
    kernels->tile(&tile);
    return c;
}

// Bits, so that NaN equals itself and 0 is not -0.
testing::AssertionResult same_bits(const Tile &x, const Tile &y) {
    for (size_t i = 0; i < x.size(); i++)
        if (memcmp(&x[i], &y[i], sizeof(float)) != 0)
            return testing::AssertionFailure()
                   << "row " << i / 32 << ", column " << i % 32 << ": " << x[i] << " and " << y[i];
    return testing::AssertionSuccess();
}

// Nothing where all elements are within |scale| times their bound of the float64 product; else what is wrong.
std::string compare(const Tile &c, const Matrix &a, const Matrix &b, double scale) {
    for (int64_t r = 0; r < a.rows; r++)
        for (int64_t j = 0; j < 32; j++) {
            Exact exact = exact_product(a, b, r, j);
            double error = std::fabs(c[size_t(r * 32 + j)] - exact.value);
            if (!(error <= scale * exact.bound))
                return "row " + std::to_string(r) + ", column " + std::to_string(j) + ": " + std::to_string(error);
        }
    return "";
}

class ProductKernels : public testing::TestWithParam<Target> {
  protected:
    void SetUp() override {
        amp_error err;
        kernels_ = SelectOrEmulate(operand(), GetParam().isa, &err);
        if (!kernels_ && err.code == AMP_UNSUPPORTED) GTEST_SKIP() << err.message;
        ASSERT_NE(kernels_, nullptr) << err.message;
        ASSERT_STREQ(kernels_->name, GetParam().isa);
        ASSERT_EQ(kernels_->operand, operand());
    }

    amp_dtype operand() const { return GetParam().operand; }
    PackedProduct pack(const Matrix &a, const Matrix &b, amp_product_form form) const {
        return {operand(), a, b, form};
    }

    const amp_product_kernels *kernels_ = nullptr;
};

TEST_P(ProductKernels, IntegersAreExactForEveryRowCountAndDepth) {
    for (int64_t k : kDepths) {
        const Matrix b = integers(operand(), k, 32, 1);
        for (int64_t rows = 1; rows <= 32; rows++) {
            const Matrix a = integers(operand(), rows, k, unsigned(rows));
            for (amp_product_form form : kForms)
                ASSERT_EQ(compare(run(kernels_, pack(a, b, form)), a, b, 0.0), "")
                    << rows << " rows, k " << k << ", form " << form;
        }
    }
}

TEST_P(ProductKernels, RandomIsWithinTheErrorBound) {
    for (int64_t k : kDepths) {
        const Matrix a = normals(operand(), 32, k, 2), b = normals(operand(), k, 32, 3);
        for (amp_product_form form : kForms)
            ASSERT_EQ(compare(run(kernels_, pack(a, b, form)), a, b, 1.0), "") << "k " << k << ", form " << form;
    }
}

// The comparison itself: one wrong element of A, B or C is seen.
TEST_P(ProductKernels, PlantedFaultIsSeen) {
    const Matrix a = normals(operand(), 32, 33, 4), b = normals(operand(), 33, 32, 5);
    PackedProduct wrong_a = pack(a, b, AMP_PRODUCT_BLOCKED), wrong_b = wrong_a;
    wrong_a.product.a = wrong_a.a.data();
    wrong_b.product.b = wrong_b.b.data();
    wrong_a.a[5 * 32 / size_t(per_unit(operand())) + 3] ^= 0x00100000u;
    wrong_b.b[7 * 32 + 9] ^= 0x00100000u;
    EXPECT_NE(compare(run(kernels_, wrong_a), a, b, 1.0), "");
    EXPECT_NE(compare(run(kernels_, wrong_b), a, b, 1.0), "");
    Tile c = run(kernels_, pack(a, b, AMP_PRODUCT_BLOCKED));
    c[31 * 32 + 31] *= 1.0f + 1e-3f;
    EXPECT_NE(compare(c, a, b, 1.0), "");
}

TEST_P(ProductKernels, BothFormsOfAGiveTheSameBits) {
    const Matrix a = normals(operand(), 32, 131, 6), b = normals(operand(), 131, 32, 7);
    EXPECT_TRUE(
        same_bits(run(kernels_, pack(a, b, AMP_PRODUCT_BLOCKED)), run(kernels_, pack(a, b, AMP_PRODUCT_TRANSPOSED))));
}

TEST_P(ProductKernels, RowGroupingNeverChangesBits) {
    const Matrix a = normals(operand(), 32, 70, 8), b = normals(operand(), 70, 32, 9);
    for (amp_product_form form : kForms) {
        const PackedProduct p = pack(a, b, form);
        const Tile whole = run(kernels_, p);
        const int64_t a_row = form == AMP_PRODUCT_BLOCKED ? 32 / per_unit(operand()) : 1;
        for (int64_t rows = 1; rows < 32; rows++) {
            Tile parts(32 * 32);
            for (int64_t row = 0; row < 32; row += rows) {
                amp_product_tile tile = p.tile(parts.data() + row * 32);
                tile.a = p.a.data() + row * a_row;
                tile.rows = std::min(rows, 32 - row);
                kernels_->tile(&tile);
            }
            ASSERT_TRUE(same_bits(whole, parts)) << "groups of " << rows << ", form " << form;
        }
    }
}

// Transposed at every unit of k; blocked where a block ends, for a split A begins with a block.
TEST_P(ProductKernels, SplittingKNeverChangesBits) {
    const Matrix a = normals(operand(), 29, 150, 10), b = normals(operand(), 150, 32, 11);
    for (amp_product_form form : kForms) {
        const PackedProduct p = pack(a, b, form);
        const Tile whole = run(kernels_, p);
        const int64_t block = form == AMP_PRODUCT_BLOCKED ? 32 / per_unit(operand()) : 1;
        const int64_t a_block = form == AMP_PRODUCT_BLOCKED ? p.product.a_block_stride : 32;
        for (int64_t k = 0; k < p.product.k; k += block) {
            Tile parts(32 * 32, -7.0f);
            amp_product_tile tile = p.tile(parts.data());
            tile.k = k;
            kernels_->tile(&tile);
            tile.a = p.a.data() + k / block * a_block;
            tile.b = p.b.data() + k * 32;
            tile.k = p.product.k - k;
            tile.accumulate = 1;
            kernels_->tile(&tile);
            ASSERT_TRUE(same_bits(whole, parts)) << "split at unit " << k << ", form " << form;
        }
    }
}

TEST_P(ProductKernels, NoDepthIsZeroOrWhatWasThere) {
    const PackedProduct p = pack(normals(operand(), 32, 1, 12), normals(operand(), 1, 32, 13), AMP_PRODUCT_BLOCKED);
    Tile c(32 * 32, 3.0f);
    amp_product_tile tile = p.tile(c.data());
    tile.k = 0;
    tile.accumulate = 1;
    kernels_->tile(&tile);
    EXPECT_TRUE(same_bits(c, Tile(32 * 32, 3.0f)));
    tile.accumulate = 0;
    kernels_->tile(&tile);
    EXPECT_TRUE(same_bits(c, Tile(32 * 32, 0.0f)));
}

TEST_P(ProductKernels, WantedColumnsHaveTheBitsOfAllColumns) {
    for (amp_product_form form : kForms) {
        const PackedProduct p = pack(normals(operand(), 13, 67, 16), normals(operand(), 67, 32, 17), form);
        const Tile whole = run(kernels_, p);
        for (int64_t cols = 1; cols <= 32; cols++) {
            Tile c(32 * 32, -7.0f);
            amp_product_tile tile = p.tile(c.data());
            tile.cols = cols;
            kernels_->tile(&tile);
            for (size_t i = 0; i < c.size(); i++) {
                const bool wanted = int64_t(i % 32) < cols || i / 32 >= 13;
                ASSERT_TRUE(c[i] == whole[i] || (!wanted && c[i] == 0.0f)) << cols << " columns, element " << i;
            }
        }
    }
}

TEST_P(ProductKernels, WritesNothingPastItsRows) {
    const Matrix b = normals(operand(), 5, 32, 14);
    for (int64_t rows = 1; rows < 32; rows++) {
        const Tile c = run(kernels_, pack(normals(operand(), rows, 5, 15), b, AMP_PRODUCT_TRANSPOSED), 0.125f);
        for (size_t i = size_t(rows) * 32; i < c.size(); i++) ASSERT_EQ(c[i], 0.125f) << rows << " rows, element " << i;
    }
}

TEST_P(ProductKernels, NanAndInfinityStayInTheirRowAndColumn) {
    const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    for (amp_product_form form : kForms) {
        Matrix a = make_matrix(operand(), 32, 40, [] { return 1.0f; });
        Matrix b = make_matrix(operand(), 40, 32, [] { return 1.0f; });
        a.at(3, 17) = nan;
        a.at(9, 33) = inf;
        a.at(12, 2) = inf;
        b.at(2, 20) = 0.0f;
        const Tile c = run(kernels_, pack(a, b, form));
        for (int64_t r = 0; r < 32; r++)
            for (int64_t j = 0; j < 32; j++) {
                const float got = c[size_t(r * 32 + j)];
                if (r == 3 || (r == 12 && j == 20)) ASSERT_TRUE(std::isnan(got)) << r << ", " << j; /* inf * 0 */
                else if (r == 9 || r == 12) ASSERT_EQ(got, inf) << r << ", " << j;
                else ASSERT_EQ(got, j == 20 ? 39.0f : 40.0f) << r << ", " << j;
            }
    }
}

// Prefetching never reads: addresses of nothing are allowed, in any number, and bits stay.
TEST_P(ProductKernels, PrefetchAddressesAreHarmless) {
    const Tile somewhere(1024);
    const void *const addresses[] = {nullptr, reinterpret_cast<void *>(8), somewhere.data(),
                                     reinterpret_cast<void *>(~uintptr_t(0) - 4095), somewhere.data()};
    for (int64_t k : kDepths) {
        const Matrix a = normals(operand(), 32, k, 16), b = normals(operand(), k, 32, 17);
        for (amp_product_form form : kForms) {
            const PackedProduct p = pack(a, b, form);
            const Tile plain = run(kernels_, p);
            for (int64_t count = 1; count <= 5; count++) {
                Tile c(32 * 32);
                amp_product_tile tile = p.tile(c.data());
                tile.prefetch = addresses;
                tile.prefetch_count = count;
                kernels_->tile(&tile);
                ASSERT_TRUE(same_bits(plain, c)) << count << " addresses, k " << k << ", form " << form;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, ProductKernels,
                         testing::Values(Target{AMP_DT_F32, "portable"}, Target{AMP_DT_F32, "avx2"},
                                         Target{AMP_DT_F32, "avx512"}, Target{AMP_DT_BF16, "portable"},
                                         Target{AMP_DT_BF16, "avx2"}, Target{AMP_DT_BF16, "avx512"},
                                         Target{AMP_DT_BF16, "avx512_bf16"}),
                         testing::PrintToStringParamName());

// ---- between instruction sets ----

// Equal bits of |x| and |y|; skips where the machine lacks one of them.
void expect_same_bits(amp_dtype operand, const char *x, const char *y) {
    const amp_product_kernels *kx = SelectOrEmulate(operand, x, nullptr), *ky = SelectOrEmulate(operand, y, nullptr);
    if (!kx || !ky) GTEST_SKIP() << "this machine has not both " << x << " and " << y;
    for (int64_t k : kDepths) {
        const PackedProduct p(operand, normals(operand, 32, k, 18), normals(operand, k, 32, 19), AMP_PRODUCT_BLOCKED);
        ASSERT_TRUE(same_bits(run(kx, p), run(ky, p))) << "k " << k;
    }
}

TEST(ProductBits, F32OfAvx2AndAvx512AreEqual) { expect_same_bits(AMP_DT_F32, "avx2", "avx512"); }
TEST(ProductBits, WidenedBf16OfAvx2AndAvx512AreEqual) { expect_same_bits(AMP_DT_BF16, "avx2", "avx512"); }
TEST(ProductBits, Bf16InstructionsAreTheWidenedChain) { expect_same_bits(AMP_DT_BF16, "avx512", "avx512_bf16"); }
TEST(ProductBits, WidenedBf16OfPortableAndAvx2AreEqual) { expect_same_bits(AMP_DT_BF16, "portable", "avx2"); }

// What the contract says in product.h, spelled out.
TEST(ProductBits, F32IsOneChainOfFusedMultiplyAdds) {
    const amp_product_kernels *kernels = amp_product_select(AMP_DT_F32, "avx2", nullptr);
    if (!kernels) GTEST_SKIP() << "this machine has no AVX2";
    const Matrix a = normals(AMP_DT_F32, 32, 77, 20), b = normals(AMP_DT_F32, 77, 32, 21);
    Tile chain(32 * 32, 0.0f);
    for (int64_t r = 0; r < 32; r++)
        for (int64_t j = 0; j < 32; j++)
            for (int64_t k = 0; k < 77; k++)
                chain[size_t(r * 32 + j)] = std::fmaf(a.padded(r, k), b.padded(k, j), chain[size_t(r * 32 + j)]);
    EXPECT_TRUE(same_bits(chain, run(kernels, PackedProduct(AMP_DT_F32, a, b, AMP_PRODUCT_BLOCKED))));
}

TEST(ProductBits, WidenedBf16AddsTheOddElementFirst) {
    const amp_product_kernels *kernels = amp_product_select(AMP_DT_BF16, "portable", nullptr);
    ASSERT_NE(kernels, nullptr);
    const Matrix a = normals(AMP_DT_BF16, 32, 78, 22), b = normals(AMP_DT_BF16, 78, 32, 23);
    Tile chain(32 * 32, 0.0f);
    for (int64_t r = 0; r < 32; r++)
        for (int64_t j = 0; j < 32; j++)
            for (int64_t k = 0; k < 78; k += 2)
                for (int64_t odd : {1, 0})
                    chain[size_t(r * 32 + j)] =
                        std::fmaf(a.padded(r, k + odd), b.padded(k + odd, j), chain[size_t(r * 32 + j)]);
    EXPECT_TRUE(same_bits(chain, run(kernels, PackedProduct(AMP_DT_BF16, a, b, AMP_PRODUCT_BLOCKED))));
}

} // namespace
