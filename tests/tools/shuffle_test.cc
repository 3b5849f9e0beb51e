// shuffle_test.cc: the order of samples is a permutation that (seed, epoch) alone decides.
#include "tools/amprun/data/data_column.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

static std::vector<int64_t> Order(int64_t count, uint64_t seed, int64_t epoch) {
    std::vector<int64_t> order(static_cast<size_t>(count));
    shuffle(order.data(), count, seed, epoch);
    return order;
}

TEST(Shuffle, IsAPermutation) {
    for (int64_t count : {0, 1, 2, 3, 100, 60000}) {
        std::vector<int64_t> order = Order(count, 1, 0);
        std::sort(order.begin(), order.end());
        for (int64_t i = 0; i < count; i++) ASSERT_EQ(order[static_cast<size_t>(i)], i);
    }
}

TEST(Shuffle, DependsOnSeedAndEpochAlone) {
    EXPECT_EQ(Order(1000, 5, 3), Order(1000, 5, 3));
    EXPECT_NE(Order(1000, 5, 3), Order(1000, 6, 3));
    EXPECT_NE(Order(1000, 5, 3), Order(1000, 5, 4));
    EXPECT_NE(Order(1000, 5, 3), Order(1000, uint64_t{5} << 32, 3));
}

// A run of today must be repeatable tomorrow: resumed training and published results rest on these orders.
TEST(Shuffle, GoldenOrders) {
    EXPECT_EQ(Order(10, 0, 0), (std::vector<int64_t>{3, 4, 0, 7, 1, 9, 6, 8, 5, 2}));
    EXPECT_EQ(Order(10, 7, 2), (std::vector<int64_t>{8, 1, 3, 6, 4, 5, 2, 0, 9, 7}));
}

// Over 6000 epochs each of 6 samples is at each of 6 places about 1000 times (chi-squared, 25 degrees of freedom,
// 99.99 % below 60).
TEST(Shuffle, PlacesAreEquallyLikely) {
    double seen[6][6] = {};
    for (int64_t epoch = 0; epoch < 6000; epoch++) {
        std::vector<int64_t> order = Order(6, 11, epoch);
        for (size_t place = 0; place < 6; place++) seen[place][order[place]]++;
    }
    double chi_squared = 0;
    for (auto &place : seen)
        for (double count : place) chi_squared += std::pow(count - 1000.0, 2) / 1000.0;
    EXPECT_LT(chi_squared, 60.0);
}
