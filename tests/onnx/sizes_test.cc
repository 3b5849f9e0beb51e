// sizes_test.cc: arithmetic of sizes with symbols.
#include "onnx/sizes.h"

#include <gtest/gtest.h>

#include <string>

#include "onnx/onnx.h"

namespace {

class Sizes : public ::testing::Test {
  protected:
    Sizes() {
        arena_init(&arena, nullptr);
        onnx_sizes_init(&c, &arena, 10);
    }
    ~Sizes() override { arena_free(&arena); }

    std::string text(OnnxSize s) {
        Text t;
        text_init(&t, &arena);
        onnx_size_print(&c, &t, s);
        return text_str(&t);
    }
    OnnxSize named(const char *name) { return onnx_size_named(&c, name); }

    Arena arena;
    OnnxSizes c;
};

TEST_F(Sizes, NumbersAreComputed) {
    EXPECT_EQ(text(onnx_size_add(&c, onnx_size(3), onnx_size(4))), "7");
    EXPECT_EQ(text(onnx_size_sub(&c, onnx_size(3), onnx_size(4))), "-1");
    EXPECT_EQ(text(onnx_size_mul(&c, onnx_size(3), onnx_size(4))), "12");
    EXPECT_EQ(text(onnx_size_divide(&c, onnx_size(12), onnx_size(4))), "3");
    EXPECT_EQ(text(onnx_size_floor(&c, onnx_size(-7), onnx_size(2))), "-4");
    EXPECT_EQ(text(onnx_size_max(&c, onnx_size(3), onnx_size(4))), "4");
    EXPECT_EQ(text(onnx_size_min(&c, onnx_size(3), onnx_size(4))), "3");
}

TEST_F(Sizes, ProductsOfNamesAreOne) {
    OnnxSize n = named("N"), t = named("T");
    OnnxSize a = onnx_size_mul(&c, onnx_size_mul(&c, n, onnx_size(6)), t);
    OnnxSize b = onnx_size_mul(&c, onnx_size_mul(&c, t, n), onnx_size(6));
    EXPECT_TRUE(onnx_size_equal(a, b));
    EXPECT_EQ(text(a), "6*N*T");
    EXPECT_EQ(text(onnx_size_divide(&c, a, onnx_size_mul(&c, n, onnx_size(4)))), "3*T/2");
    EXPECT_TRUE(onnx_size_equal(onnx_size_divide(&c, a, t), onnx_size_mul(&c, n, onnx_size(6))));
    EXPECT_TRUE(onnx_size_is(onnx_size_divide(&c, a, a), 1));
    EXPECT_DOUBLE_EQ(onnx_size_typical(&c, a), 600);
}

TEST_F(Sizes, NumbersAreAddedAndTakenAway) {
    OnnxSize n = named("N");
    OnnxSize next = onnx_size_add(&c, n, onnx_size(1));
    EXPECT_EQ(text(next), "N + 1");
    EXPECT_TRUE(onnx_size_equal(onnx_size_sub(&c, next, onnx_size(1)), n));
    EXPECT_EQ(text(onnx_size_mul(&c, next, onnx_size(2))), "2*N + 2");
    EXPECT_TRUE(onnx_size_is(onnx_size_sub(&c, n, n), 0));
    EXPECT_EQ(text(onnx_size_add(&c, n, n)), "2*N");
}

TEST_F(Sizes, OtherExpressionsAreNamedByTheirText) {
    OnnxSize n = named("N"), p = named("P");
    OnnxSize a = onnx_size_add(&c, n, p), b = onnx_size_add(&c, p, n);
    EXPECT_TRUE(onnx_size_equal(a, b));
    EXPECT_EQ(text(a), "(N + P)");
    OnnxSize half = onnx_size_floor(&c, onnx_size_sub(&c, n, onnx_size(3)), onnx_size(2));
    EXPECT_EQ(text(half), "floor((N - 3)/(2))");
    EXPECT_DOUBLE_EQ(onnx_size_typical(&c, half), 3);
    EXPECT_TRUE(onnx_size_equal(half, onnx_size_floor(&c, onnx_size_sub(&c, n, onnx_size(3)), onnx_size(2))));
    EXPECT_TRUE(onnx_size_equal(onnx_size_floor(&c, onnx_size_mul(&c, n, onnx_size(4)), onnx_size(2)),
                                onnx_size_mul(&c, n, onnx_size(2))));
}

TEST_F(Sizes, WhatIsUnknownEqualsNothing) {
    OnnxSize u = onnx_size_unknown();
    EXPECT_FALSE(onnx_size_equal(u, u));
    EXPECT_EQ(text(onnx_size_add(&c, u, onnx_size(1))), "?");
    EXPECT_EQ(text(onnx_size_mul(&c, u, named("N"))), "?");
    EXPECT_EQ(text(onnx_size_mul(&c, u, onnx_size(0))), "0");
    EXPECT_EQ(text(onnx_size_divide(&c, named("N"), u)), "?");
    OnnxSize input = onnx_size_new(&c);
    EXPECT_TRUE(onnx_size_equal(input, input));
    EXPECT_FALSE(onnx_size_equal(input, onnx_size_new(&c)));
}

TEST_F(Sizes, OverflowIsUnknown) {
    OnnxSize big = onnx_size(INT64_MAX), n = named("N");
    EXPECT_EQ(text(onnx_size_add(&c, big, onnx_size(1))), "?");
    EXPECT_EQ(text(onnx_size_mul(&c, big, onnx_size(2))), "?");
    OnnxSize bigger = onnx_size_mul(&c, n, big);
    EXPECT_EQ(text(onnx_size_mul(&c, bigger, onnx_size(3))), "?");
    EXPECT_EQ(text(onnx_size_mul(&c, onnx_size(INT64_MIN), onnx_size(-1))), "?");
    EXPECT_EQ(text(onnx_size_floor(&c, onnx_size(INT64_MIN), onnx_size(-1))), "?");
    EXPECT_EQ(text(onnx_size_divide(&c, n, onnx_size(0))), "?");
    EXPECT_EQ(text(onnx_size_divide(&c, n, onnx_size(INT64_MIN))), "?");
}

TEST_F(Sizes, MemoryHasABound) {
    OnnxSize s = named("N");
    for (int i = 0; i < 1000000; i++) s = onnx_size_floor(&c, onnx_size_add(&c, s, onnx_size(i)), onnx_size(2));
    for (int i = 0; i < 200000; i++) onnx_size_new(&c);
    EXPECT_LE(c.terms.len, 100000);
    EXPECT_TRUE(onnx_size_is_unknown(onnx_size_new(&c)));
}

} // namespace
