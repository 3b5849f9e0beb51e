// Adding parts: every number of 16 bits, against the conversions of base; sizes around blocks; modes of the caller.
#include "runtime/comm/sums.h"

#include <gtest/gtest.h>

#include <cfenv>

#include "tests/runtime/comm/values.h"

namespace {

// x + 0 and x + y in f32, rounded once; NaN stays one.
TEST(Sums, EveryNumberOf16Bits) {
    for (amp_dtype dtype : {AMP_DT_F16, AMP_DT_BF16}) {
        constexpr size_t all = 65536;
        auto wide = [&](uint16_t h) { return dtype == AMP_DT_F16 ? amp_f16_to_f32(h) : amp_bf16_to_f32(h); };
        auto narrow = [&](float x) { return dtype == AMP_DT_F16 ? amp_f32_to_f16(x) : amp_f32_to_bf16(x); };
        for (uint16_t other :
             {0x0000, 0x8000, 0x0001, 0x3c01, 0x7bff, 0xfbff, 0x7f7f, 0x7c00, 0x7f80, 0xfc00, 0x8234}) {
            std::vector<uint16_t> parts(2 * all), out(all);
            for (size_t i = 0; i < all; i++) parts[i] = static_cast<uint16_t>(i), parts[all + i] = other;
            amp_sums_add(dtype, AMP_SUMS_LEFT, parts.data(), 2, all, out.data());
            for (size_t i = 0; i < all; i++) {
                const float wanted = wide(static_cast<uint16_t>(i)) + wide(other);
                if (std::isnan(wanted)) {
                    ASSERT_TRUE(std::isnan(wide(out[i]))) << i;
                    continue;
                }
                ASSERT_EQ(out[i], narrow(wanted)) << amp_dtype_name(dtype) << " " << i << " + " << other;
            }
        }
    }
}

TEST(Sums, SizesAroundBlocks) {
    for (amp_dtype dtype : {AMP_DT_F32, AMP_DT_F64, AMP_DT_F16, AMP_DT_BF16})
        for (size_t count : {0, 1, 2, 511, 512, 513, 1024, 1027})
            for (int32_t ranks : {1, 2, 3, 7}) {
                const size_t size = amp_dtype_size(dtype);
                std::vector<unsigned char> parts, out(count * size + 8, 0xaa);
                for (int32_t r = 0; r < ranks; r++) {
                    std::vector<unsigned char> one = Brought(dtype, r, count);
                    parts.insert(parts.end(), one.begin(), one.end());
                }
                amp_sums_add(dtype, AMP_SUMS_LEFT, parts.data(), ranks, count, out.data());
                for (size_t i = 0; i < count; i++) {
                    double wanted = 0;
                    LeftToRight(dtype, ranks, i, &wanted);
                    ASSERT_EQ(memcmp(out.data() + i * size, &wanted, size), 0) << amp_dtype_name(dtype) << " " << i;
                    const Sum sum = SumOf(dtype, ranks, i);
                    ASSERT_LE(std::fabs(Get(dtype, out.data(), i) - sum.exact), Bound(dtype, ranks, sum));
                }
                for (size_t i = 0; i < 8; i++) ASSERT_EQ(out[count * size + i], 0xaa) << "past the end";
            }
}

float Tree(const std::vector<float> &x, size_t from, size_t count) {
    if (count == 1) return x[from];
    size_t left = 1;
    while (2 * left < count) left *= 2;
    return Tree(x, from, left) + Tree(x, from + left, count - left);
}

TEST(Sums, OfATree) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    bool differs = false;
    for (int32_t ranks = 1; ranks <= 17; ranks++) {
        constexpr size_t count = 600;
        std::vector<float> parts(count * static_cast<size_t>(ranks)), out(count), left(count);
        for (float &x : parts) x = normal(random);
        amp_sums_add(AMP_DT_F32, AMP_SUMS_TREE, parts.data(), ranks, count, out.data());
        amp_sums_add(AMP_DT_F32, AMP_SUMS_LEFT, parts.data(), ranks, count, left.data());
        for (size_t i = 0; i < count; i++) {
            std::vector<float> x;
            for (size_t r = 0; r < static_cast<size_t>(ranks); r++) x.push_back(parts[r * count + i]);
            ASSERT_EQ(out[i], Tree(x, 0, x.size())) << ranks;
        }
        differs = differs || out != left;
        if (ranks < 4) {
            EXPECT_EQ(out, left);
        }
    }
    EXPECT_TRUE(differs) << "the orders are not the same";
}

TEST(Sums, InTheDefaultFloatEnvironment) {
    const float parts[2] = {1, 0x1p-25f};
    float out = 0;
    ASSERT_EQ(fesetround(FE_UPWARD), 0);
    amp_sums_add(AMP_DT_F32, AMP_SUMS_LEFT, parts, 2, 1, &out);
    EXPECT_EQ(fegetround(), FE_UPWARD);
    fesetround(FE_TONEAREST);
    EXPECT_EQ(out, 1.0f);
}

TEST(Sums, OfWhichTypes) {
    for (int dtype = 0; dtype < 20; dtype++)
        EXPECT_EQ(amp_sums_have(static_cast<amp_dtype>(dtype)),
                  dtype == AMP_DT_F32 || dtype == AMP_DT_F64 || dtype == AMP_DT_F16 || dtype == AMP_DT_BF16);
}

} // namespace
