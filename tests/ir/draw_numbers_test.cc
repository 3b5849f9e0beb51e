// The numbers that random numbers are drawn by: of each sample the same, whatever n and T, and no two alike.
#include "ir/draw_numbers.h"

#include <set>

#include "tests/ir/ir_test.h"

namespace {

const Dim n = dim_n(1, 1), t = dim_t(1, 1);

Dim C(int64_t v) { return dim_const(v); }

Dim Times(Dim a, Dim b) {
    Dim d = {};
    EXPECT_TRUE(dim_times(a, b, &d));
    return d;
}

Shape Of(std::vector<Dim> dims) { return shape_of(static_cast<int>(dims.size()), dims.data()); }

int64_t Count(const Shape &s, Sizes at) {
    int64_t count = 1;
    for (int i = 0; i < s.rank; i++) count *= dim_eval(s.d[i], at);
    return count;
}

int64_t Number(const Shape &s, Sizes at, std::vector<int64_t> coordinates) {
    int64_t index = 0;
    for (int i = 0; i < s.rank; i++) index = index * dim_eval(s.d[i], at) + coordinates[static_cast<size_t>(i)];
    const DrawNumbers d = ir_draw_numbers(&s);
    return ir_draw_number(&d, index, at);
}

TEST(DrawNumbers, WithoutTheyAreIndices) {
    for (const Shape &s : {Of({}), Of({n}), Of({n, C(784)}), Of({n, C(2), C(3), C(5)}), Of({C(7), C(9)}), Of({t, C(4)}),
                           Of({Times(n, C(6)), C(5)}), Of({n, n}), Of({dim_n(1, 2), C(8)}), Of({C(1), t, C(3)})}) {
        const DrawNumbers d = ir_draw_numbers(&s);
        EXPECT_TRUE(d.in_order);
        EXPECT_EQ(ir_draw_number(&d, 17, {4, 3}), 17);
    }
    const Shape rows = Of({n, C(2), C(3)}), pairs = Of({n, n}), halves = Of({dim_n(1, 2), C(8)});
    EXPECT_TRUE(ir_draw_numbers(&rows).by_sample);
    EXPECT_EQ(ir_draw_numbers(&rows).each, 6);
    EXPECT_FALSE(ir_draw_numbers(&pairs).by_sample);
    EXPECT_FALSE(ir_draw_numbers(&halves).by_sample);
}

TEST(DrawNumbers, AreWhatTheRuleSays) {
    const int64_t most = LARGEST_T;
    EXPECT_EQ(Number(Of({n, t, C(96)}), {8, 64}, {3, 5, 7}), (3 * most + 5) * 96 + 7);
    EXPECT_EQ(Number(Of({n, C(4), t, t}), {8, 64}, {3, 2, 5, 7}), ((3 * 4 + 2) * most + 5) * most + 7);
    EXPECT_EQ(Number(Of({t, n, C(96)}), {8, 64}, {5, 3, 7}), (3 * most + 5) * 96 + 7);
    EXPECT_EQ(Number(Of({C(10), n}), {8, 1}, {4, 3}), 3 * 10 + 4);
    EXPECT_EQ(Number(Of({Times(n, t), C(2)}), {8, 64}, {3 * 64 + 5, 1}), (3 * most + 5) * 2 + 1);
    EXPECT_EQ(Number(Of({Times(n, t)}), {8, 64}, {3 * 64 + 5}), 3 * most + 5);
    EXPECT_EQ(Number(Of({n, dim_t(1, 2), C(3)}), {8, 64}, {3, 5, 1}), (3 * most + 5) * 3 + 1);
    EXPECT_EQ(Number(Of({n, Times(C(3), t), C(2)}), {8, 64}, {1, 5, 1}), (3 * most + 5) * 2 + 1);
}

// With a T that has a number, too: of any shape that is numbered by sample.
TEST(DrawNumbers, DependOnNeitherNNorT) {
    const auto shapes = [](Dim length) {
        return std::vector<Shape>{Of({n, length, C(3)}),
                                  Of({n, C(2), length, length}),
                                  Of({length, n, C(3)}),
                                  Of({length, length, n}),
                                  Of({n, C(2), length}),
                                  Of({C(2), n, length, C(1)}),
                                  Of({length, length}),
                                  Of({Times(n, C(2)), length}),
                                  Of({Times(n, length), C(2)}),
                                  Of({Times(n, length)}),
                                  Of({C(5), n}),
                                  Of({n, Times(length, length)}),
                                  Of({length, Times(n, C(2)), C(3)})};
    };
    for (int64_t length : {1, 2, 5}) {
        const std::vector<Shape> open = shapes(t), fixed = shapes(dim_sized(length));
        for (size_t i = 0; i < open.size(); i++) {
            const DrawNumbers a = ir_draw_numbers(&open[i]), b = ir_draw_numbers(&fixed[i]);
            EXPECT_EQ(a.by_sample, b.by_sample) << i;
            EXPECT_EQ(a.each, b.each) << i;
            std::set<int64_t> seen;
            const int64_t count = Count(open[i], {3, length});
            for (int64_t e = 0; e < count; e++) {
                EXPECT_EQ(ir_draw_number(&a, e, {3, length}), ir_draw_number(&b, e, {3, 1})) << i << " at " << e;
                seen.insert(ir_draw_number(&a, e, {3, length}));
            }
            EXPECT_EQ(static_cast<int64_t>(seen.size()), count) << i;
            EXPECT_LT(*seen.rbegin(), a.by_sample ? 3 * a.each : a.each) << i;
        }
    }
    for (const std::vector<int64_t> &at : std::vector<std::vector<int64_t>>{{1, 1, 2, 3}, {0, 3, 1, 1}, {1, 2, 1, 0}})
        for (const Shape &s : {Of({n, t, C(3), t}), Of({t, t, n, C(4)}), Of({C(2), t, t, n})})
            EXPECT_EQ(Number(s, {4, 4}, at), Number(s, {9, 700}, at));
}

} // namespace
