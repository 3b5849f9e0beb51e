// The driver: how a product is divided into tasks, and that the tasks together are the product.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "tests/runtime/device/cpu/emulated/emulated.h"
#include "tests/runtime/device/cpu/packed_operands.h"

namespace {

struct Shape {
    int64_t m, n, k;
};

constexpr Shape kShapes[] = {{1, 1, 1},     {1, 10, 7},     {10, 1, 33},  {32, 32, 32},   {33, 65, 31},
                             {128, 10, 64}, {70, 129, 100}, {257, 96, 5}, {140, 200, 300}};

struct Scratch {
    explicit Scratch(const amp_product_kernels *kernels)
        : memory{static_cast<float *>(aligned_alloc(64, amp_product_scratch_bytes(kernels))), &free} {}
    std::unique_ptr<float, decltype(&free)> memory;
    float *get() { return memory.get(); }
};

// Collects C from the epilogue's calls, and checks their arguments.
struct Collector {
    int64_t m, n;
    Matrix c;
    std::set<std::pair<int64_t, int64_t>> tiles;

    Collector(int64_t rows, int64_t cols) : m(rows), n(cols), c{rows, round_up(cols, 32), {}} {
        c.values.assign(size_t(c.rows * c.cols), 0.0f);
    }

    static void epilogue(void *ctx, const float *c, int64_t row0, int64_t rows, int64_t col0) {
        static_cast<Collector *>(ctx)->take(c, row0, rows, col0);
    }

    void take(const float *tile, int64_t row0, int64_t rows, int64_t col0) {
        EXPECT_EQ(row0 % 32, 0);
        EXPECT_EQ(col0 % 32, 0);
        EXPECT_EQ(rows, std::min<int64_t>(32, m - row0));
        EXPECT_LT(col0, n);
        EXPECT_TRUE(tiles.emplace(row0, col0).second) << "tile " << row0 << ", " << col0 << " came twice";
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < 32; j++) c.at(row0 + r, col0 + j) = tile[r * 32 + j];
    }
};

// The shape alone, for what needs no operands.
amp_product shape_only(int64_t m, int64_t n, int64_t k) {
    amp_product p{};
    p.m = m, p.n = n, p.k = k;
    return p;
}

TEST(Product, IsTheProductInAnyOrderOfTasks) {
    for (amp_dtype operand : {AMP_DT_F32, AMP_DT_BF16})
        for (const Shape &s : kShapes)
            for (amp_product_form form : {AMP_PRODUCT_BLOCKED, AMP_PRODUCT_TRANSPOSED})
                for (bool reverse : {false, true}) {
                    SCOPED_TRACE(testing::Message() << s.m << " x " << s.n << " x " << s.k << ", form " << form);
                    const Matrix a = integers(operand, s.m, s.k, 1), b = integers(operand, s.k, s.n, 2);
                    PackedProduct packed(operand, a, b, form);
                    Collector collector(s.m, s.n);
                    packed.product.epilogue = Collector::epilogue;
                    packed.product.ctx = &collector;
                    const amp_product_kernels *kernels = amp_product_select(operand, nullptr, nullptr);
                    Scratch scratch(kernels);
                    const int64_t tasks = amp_product_tasks(&packed.product);
                    for (int64_t i = 0; i < tasks; i++)
                        amp_product_task(kernels, &packed.product, reverse ? tasks - 1 - i : i, scratch.get());
                    EXPECT_EQ(int64_t(collector.tiles.size()), round_up(s.m, 32) / 32 * (round_up(s.n, 32) / 32));
                    for (int64_t r = 0; r < s.m; r++)
                        for (int64_t j = 0; j < round_up(s.n, 32); j++)
                            ASSERT_EQ(collector.c.at(r, j), exact_product(a, b, r, j).value) << r << ", " << j;
                }
}

std::vector<float> sums_of(const amp_product_kernels *kernels, amp_product p) {
    Collector collector(p.m, p.n);
    p.epilogue = Collector::epilogue;
    p.ctx = &collector;
    Scratch scratch(kernels);
    for (int64_t i = 0; i < amp_product_tasks(&p); i++) amp_product_task(kernels, &p, i, scratch.get());
    return collector.c.values;
}

// Rows of round_up(n, 32): whether the first n of each have the same bits.
bool same_columns(const std::vector<float> &x, const std::vector<float> &y, int64_t n) {
    bool same = x.size() == y.size();
    for (size_t row = 0; same && row < x.size(); row += size_t(round_up(n, 32)))
        same = !memcmp(&x[row], &y[row], size_t(n) * sizeof(float));
    return same;
}

// Widened once for many tiles, bf16 have the bits of a tile by itself: two steps a pair, the odd one first.
TEST(Product, WhatIsWidenedAheadHasTheBitsOfItsTiles) {
    for (const char *isa : {"avx2", "avx512"}) {
        const amp_product_kernels *kernels = SelectOrEmulate(AMP_DT_BF16, isa, nullptr),
                                  *portable = amp_product_select(AMP_DT_BF16, "portable", nullptr);
        if (!kernels) continue;
        ASSERT_NE(kernels->widening, nullptr) << isa;
        ASSERT_EQ(kernels->widening->f32, SelectOrEmulate(AMP_DT_F32, isa, nullptr));
        for (const Shape &s : {Shape{4, 40, 70}, Shape{5, 40, 70}, Shape{140, 200, 300}, Shape{33, 300, 513}})
            for (amp_product_form form : {AMP_PRODUCT_BLOCKED, AMP_PRODUCT_TRANSPOSED}) {
                const PackedProduct p(AMP_DT_BF16, normals(AMP_DT_BF16, s.m, s.k, 3), normals(AMP_DT_BF16, s.k, s.n, 4),
                                      form);
                EXPECT_TRUE(same_columns(sums_of(kernels, p.product), sums_of(portable, p.product), s.n))
                    << isa << ": " << s.m << " x " << s.n << " x " << s.k << ", form " << form;
            }
    }
}

bool padding_is_zero(const std::vector<float> &x, int64_t n) {
    for (size_t i = 0; i < x.size(); i++)
        if (int64_t(i) % round_up(n, 32) >= n && x[i] != 0) return false;
    return true;
}

// Dense operands give the bits of packed ones, nothing past their end is read (the sanitizers would see it), and what
// is past the last column is zero.
TEST(Product, NarrowOperandsNeedNoPacking) {
    constexpr Shape narrow[] = {{1, 1, 1},    {5, 3, 7},     {33, 10, 31}, {10, 7, 200},  {31, 31, 129},
                                {16, 100, 9}, {1, 40, 1000}, {100, 1, 65}, {70, 17, 300}, {4, 5, 31}};
    for (amp_dtype operand : {AMP_DT_F32, AMP_DT_BF16})
        for (const char *isa : {"portable", "avx2", "avx512", "avx512_bf16"})
            for (const Shape &s : narrow)
                for (amp_product_form form : {AMP_PRODUCT_BLOCKED, AMP_PRODUCT_TRANSPOSED}) {
                    const amp_product_kernels *kernels = amp_product_select(operand, isa, nullptr);
                    if (!kernels) continue; // this processor does not have it
                    SCOPED_TRACE(testing::Message() << amp_dtype_name(operand) << " " << isa << " " << s.m << " x "
                                                    << s.n << " x " << s.k << ", form " << form);
                    Matrix a = normals(operand, s.m, s.k, 1), b = normals(operand, s.k, s.n, 2);
                    if (s.k > 2) a.at(0, s.k - 1) = INFINITY; // reaches its own row alone
                    PackedProduct packed(operand, a, b, form);
                    const std::vector<float> expected = sums_of(kernels, packed.product);
                    const Matrix stored = form == AMP_PRODUCT_BLOCKED ? a : transposed(a);
                    const std::vector<unsigned char> a_rows = dense(operand, stored), b_rows = dense(operand, b);
                    for (bool narrow_a : {false, true})
                        for (bool narrow_b : {false, true}) {
                            if ((narrow_a && stored.cols >= 32) || (narrow_b && b.cols >= 32)) continue;
                            amp_product p = packed.product;
                            if (narrow_a) p.a = a_rows.data(), p.a_row = stored.cols;
                            if (narrow_b) p.b = b_rows.data(), p.b_row = b.cols;
                            p.steps = s.k;
                            const std::vector<float> sums = sums_of(kernels, p);
                            EXPECT_TRUE(same_columns(sums, expected, s.n))
                                << (narrow_a ? "A" : "") << (narrow_b ? "B" : "") << " dense";
                            EXPECT_TRUE(!narrow_b || padding_is_zero(sums, s.n));
                        }
                }
}

TEST(Product, NothingToDoIsNoTask) {
    for (const Shape &s : {Shape{0, 32, 32}, Shape{32, 0, 32}, Shape{0, 0, 0}}) {
        amp_product p = shape_only(s.m, s.n, s.k);
        EXPECT_EQ(amp_product_tasks(&p), 0) << s.m << " x " << s.n << " x " << s.k;
    }
}

TEST(Product, NoDepthGivesZeros) {
    Collector collector(40, 40);
    amp_product p = shape_only(40, 40, 0);
    const Units operand(64 * 64);
    p.a = p.b = operand.data();
    p.epilogue = Collector::epilogue;
    p.ctx = &collector;
    collector.c.values.assign(collector.c.values.size(), 5.0f);
    Scratch scratch(amp_product_select(AMP_DT_F32, nullptr, nullptr));
    for (int64_t i = 0; i < amp_product_tasks(&p); i++)
        amp_product_task(amp_product_select(AMP_DT_F32, nullptr, nullptr), &p, i, scratch.get());
    EXPECT_EQ(collector.tiles.size(), 4u);
    for (float x : collector.c.values) EXPECT_EQ(x, 0.0f);
}

// A task costs 1024 x k sums a tile, 32 a cycle at best: the amount is between what handing it out costs and what 64
// threads can share.
TEST(Product, TasksAreNeitherTinyNorFew) {
    for (const Shape &s : {Shape{128, 1024, 1024}, Shape{1024, 1024, 128}, Shape{1024, 784, 64}, Shape{4096, 768, 3072},
                           Shape{32, 50257, 768}}) {
        amp_product p = shape_only(s.m, s.n, s.k);
        const int64_t tiles = round_up(s.m, 32) / 32 * (round_up(s.n, 32) / 32), tasks = amp_product_tasks(&p);
        EXPECT_GE(tasks, std::min<int64_t>(tiles, 50)) << s.m << " x " << s.n << " x " << s.k;
        EXPECT_GE(tiles * s.k / tasks, 256) << s.m << " x " << s.n << " x " << s.k;
    }
    for (const Shape &s : {Shape{32, 10, 784}, Shape{128, 10, 32}, Shape{64, 64, 64}}) {
        amp_product p = shape_only(s.m, s.n, s.k);
        EXPECT_EQ(amp_product_tasks(&p), 1) << s.m << " x " << s.n << " x " << s.k;
    }
}

// ---- prefetching, seen by kernels of this test's own ----

// What the tile function was asked to prefetch, tile by tile.
thread_local std::vector<std::vector<const void *>> *asked;

const amp_product_kernels kRecorder = {
    "recorder",
    AMP_DT_F32,
    [](const amp_product_tile *t) { asked->emplace_back(t->prefetch, t->prefetch + t->prefetch_count); },
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr};

// The same, for bf16 that are widened.
const amp_widening kNoWidening = {&kRecorder, [](const void *, int64_t, int, float *) {},
                                  [](const void *, int64_t, float *) {}};
const amp_product_kernels kWideRecorder = {"recorder", AMP_DT_BF16, nullptr, nullptr, nullptr,
                                           nullptr,    nullptr,     nullptr, nullptr, &kNoWidening};

struct Visit {
    int64_t row_tile, panel;
};

// Tiles of a widened product are computed piece by piece of k: the last one prefetches.
void check_prefetches(const amp_product_kernels *kernels, int64_t k, size_t pieces) {
    std::vector<std::vector<const void *>> requests;
    std::vector<Visit> visits;
    asked = &requests;
    amp_product p = shape_only(7 * 32 - 5, 9 * 32, k);
    p.ctx = &visits;
    p.epilogue = [](void *ctx, const float *, int64_t row0, int64_t, int64_t col0) {
        static_cast<std::vector<Visit> *>(ctx)->push_back({row0 / 32, col0 / 32});
    };
    char memory[2] = {};
    p.prefetch_count = 2;
    p.prefetch[0] = {memory, 7 * 4096, 4096};
    p.prefetch[1] = {memory + 1, 7 * 2048, 2048};
    Scratch scratch(kernels);
    const int64_t tasks = amp_product_tasks(&p);
    ASSERT_GT(tasks, 1);
    for (int64_t i = 0; i < tasks; i++) amp_product_task(kernels, &p, i, scratch.get());

    ASSERT_EQ(visits.size(), 7u * 9u);
    ASSERT_EQ(requests.size(), visits.size() * pieces);
    if (pieces > 1)
        requests.erase(std::remove_if(requests.begin(), requests.end() - 1, [](auto &r) { return r.empty(); }),
                       requests.end() - 1);
    ASSERT_EQ(requests.size(), visits.size());
    for (size_t i = 0; i + 1 < visits.size(); i++) {
        ASSERT_EQ(requests[i].size(), 2u);
        const Visit &next = visits[i + 1];
        EXPECT_EQ(requests[i][0], memory + next.panel * 7 * 4096 + next.row_tile * 4096) << "tile " << i;
        EXPECT_EQ(requests[i][1], memory + 1 + next.panel * 7 * 2048 + next.row_tile * 2048) << "tile " << i;
    }
    EXPECT_TRUE(requests.back().empty());
}

TEST(Product, EachTilePrefetchesForTheOneAfterIt) {
    check_prefetches(&kRecorder, 64, 1);
    check_prefetches(&kWideRecorder, 64, 1);
    check_prefetches(&kWideRecorder, 300, 3);
}

} // namespace
