// random_test.cc: Philox's known answers, and what is made of its words.
#include "base/random.h"

#include <gtest/gtest.h>

#include "base/hash.h"

// The known answers that come with Random123 (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
    const struct {
        uint64_t key;
        uint32_t counter[4], out[4];
    } table[] = {
        {0, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX,
         {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822,
         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (const auto &row : table) {
        uint32_t out[4];
        amp_philox4x32(row.key, row.counter, out);
        for (int i = 0; i < 4; i++) EXPECT_EQ(out[i], row.out[i]);
    }
}

TEST(Philox, ElementsAreTheWordsOfTheirBlock) {
    const uint32_t path = amp_hash32("drop1");
    for (uint64_t element = 0; element < 64; element++) {
        const uint32_t counter[4] = {path, 5, 2, static_cast<uint32_t>(element / 4)};
        uint32_t out[4];
        amp_philox4x32(42, counter, out);
        EXPECT_EQ(amp_random_u32(42, path, 5, 2, element), out[element % 4]);
    }
}

TEST(RandomUnit, CoversZeroToBelowOne) {
    EXPECT_EQ(amp_random_unit(0), 0.0f);
    EXPECT_EQ(amp_random_unit(0xFF), 0.0f);
    EXPECT_EQ(amp_random_unit(0x80000000), 0.5f);
    EXPECT_EQ(amp_random_unit(0xFFFFFFFF), 1.0f - 0x1p-24f);
}

TEST(RandomUnit, MeanAndVarianceAreUniform) {
    const int n = 100000;
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        double u = amp_random_unit(amp_random_u32(7, 1, 2, 3, static_cast<uint64_t>(i)));
        sum += u, squares += u * u;
    }
    double mean = sum / n, variance = squares / n - mean * mean;
    EXPECT_NEAR(mean, 0.5, 0.005); /* 5 standard errors are 0.0046 */
    EXPECT_NEAR(variance, 1.0 / 12, 0.002);
}
