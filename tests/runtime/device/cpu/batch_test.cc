// Batches of products: every element against float64 in any order of the tasks, whatever the strides; and the same bits
// as one product of packed operands.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>

#include "runtime/device/cpu/product/batch.h"
#include "tests/runtime/device/cpu/emulated/emulated.h"
#include "tests/runtime/device/cpu/packed_operands.h"

namespace {

struct Case {
    std::vector<int64_t> dims;
    int64_t m, n, k;
    bool in_columns, ta, tb, broadcast;
    int64_t gap; // unused elements between rows in memory; -1: all rows are one
};

std::ostream &operator<<(std::ostream &out, const Case &c) {
    for (int64_t d : c.dims) out << d << " x ";
    return out << "(" << c.m << " x " << c.n << " x " << c.k << ")" << (c.in_columns ? " in columns" : "")
               << (c.ta ? " ta" : "") << (c.tb ? " tb" : "") << (c.broadcast ? " broadcast" : "") << " gap " << c.gap;
}

// One operand: [batch][down][across], rows |gap| apart or all one; NaN where nothing is read.
struct Operand {
    std::vector<char> bytes;
    amp_batch_operand at{};
    int64_t size, down, across, pitch;
    std::vector<int64_t> stride;
    amp_dtype dtype;

    Operand(amp_dtype t, const Case &c, int64_t down_, int64_t across_, bool broadcast, unsigned seed)
        : size(t == AMP_DT_BF16 ? 2 : 4), down(down_), across(across_), pitch(c.gap < 0 ? 0 : across_ + c.gap),
          dtype(t) {
        const int64_t apart = pitch ? pitch : across;
        int64_t count = pitch ? down * pitch : across;
        stride.resize(c.dims.size());
        for (size_t i = c.dims.size(); i-- > 0;) {
            stride[i] = broadcast && i == 0 ? 0 : count;
            if (stride[i]) count *= c.dims[i];
        }
        bytes.assign(size_t(count * size), char(0xFF));
        std::mt19937 random(seed);
        std::normal_distribution<float> normal;
        for (int64_t row = 0; row < count / apart; row++)
            for (int64_t j = 0; j < across; j++) Put(row * apart + j, normal(random));
        at.data = bytes.data();
        at.pitch = pitch * size;
        for (size_t i = 0; i < stride.size(); i++) at.stride[i] = stride[i] * size;
    }
    void Put(int64_t i, float v) {
        const uint16_t h = amp_f32_to_bf16(v);
        memcpy(bytes.data() + i * size, size == 2 ? static_cast<const void *>(&h) : &v, size_t(size));
    }
    float Get(int64_t i) const {
        uint16_t h;
        float v;
        if (size == 4) memcpy(&v, bytes.data() + i * 4, 4);
        else memcpy(&h, bytes.data() + i * 2, 2), v = amp_bf16_to_f32(h);
        return v;
    }
    Matrix Of(int64_t product, const Case &c) const {
        int64_t from = 0;
        for (size_t i = c.dims.size(); i-- > 0; product /= c.dims[i]) from += product % c.dims[i] * stride[i];
        Matrix m{down, across, {}};
        for (int64_t r = 0; r < down; r++)
            for (int64_t j = 0; j < across; j++) m.values.push_back(Get(from + r * pitch + j));
        return m;
    }
};

struct Result {
    int64_t rows, cols;
    std::vector<float> values;
    std::set<std::pair<int64_t, int64_t>> tiles;

    static void Take(void *ctx, const float *c, int64_t row0, int64_t rows, int64_t col0) {
        auto *self = static_cast<Result *>(ctx);
        EXPECT_EQ(row0 % 32 + col0 % 32, 0);
        EXPECT_EQ(rows, std::min<int64_t>(32, self->rows - row0));
        EXPECT_TRUE(self->tiles.emplace(row0, col0).second) << "tile " << row0 << ", " << col0 << " came twice";
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = col0; j < std::min(col0 + 32, self->cols); j++)
                self->values[size_t((row0 + r) * self->cols + j)] = c[r * 32 + j - col0];
    }
};

Result run(amp_batch *batch, const Case &c, int64_t products, bool reverse) {
    const int64_t beside = c.in_columns ? c.dims.back() : 1;
    Result result{products / beside * c.m, beside * c.n, {}, {}};
    result.values.assign(size_t(result.rows * result.cols), -7.0f);
    batch->epilogue = Result::Take;
    batch->ctx = &result;
    const size_t bytes = (amp_batch_thread_bytes(batch) + 63) / 64 * 64;
    std::unique_ptr<char, decltype(&free)> scratch(static_cast<char *>(aligned_alloc(64, bytes)), &free);
    memset(scratch.get(), 0xFF, bytes);
    const int64_t tasks = amp_batch_tasks(batch);
    for (int64_t i = 0; i < tasks; i++) amp_batch_task(batch, reverse ? tasks - 1 - i : i, scratch.get());
    EXPECT_EQ(int64_t(result.tiles.size()), (result.rows + 31) / 32 * ((result.cols + 31) / 32));
    return result;
}

// The bits of one product of packed operands.
std::vector<float> packed(const amp_product_kernels *kernels, const Matrix &a, const Matrix &b) {
    const PackedProduct p(kernels->operand, a, b, AMP_PRODUCT_TRANSPOSED);
    std::vector<float> out(size_t(a.rows * b.cols)), tile(1024);
    for (int64_t r = 0; r < a.rows; r += 32)
        for (int64_t j = 0; j < b.cols; j += 32) {
            amp_product_tile t = p.tile(tile.data());
            t.a = p.a.data() + r / 32 * p.product.a_tile_stride;
            t.b = p.b.data() + j / 32 * p.product.b_panel_stride;
            t.rows = std::min<int64_t>(32, a.rows - r);
            kernels->tile(&t);
            for (int64_t y = r; y < std::min(r + 32, a.rows); y++)
                for (int64_t x = j; x < std::min(j + 32, b.cols); x++)
                    out[size_t(y * b.cols + x)] = tile[size_t((y - r) * 32 + x - j)];
        }
    return out;
}

void check(const amp_product_kernels *kernels, const Case &c) {
    SCOPED_TRACE(testing::Message() << amp_dtype_name(kernels->operand) << " " << kernels->name << " " << c);
    const Operand a(kernels->operand, c, c.ta ? c.k : c.m, c.ta ? c.m : c.k, false, 1),
        b(kernels->operand, c, c.tb ? c.n : c.k, c.tb ? c.k : c.n, c.broadcast, 2);
    amp_batch batch{};
    batch.kernels = kernels;
    batch.rank = int32_t(c.dims.size());
    batch.in_columns = c.in_columns;
    std::copy(c.dims.begin(), c.dims.end(), batch.dims);
    batch.m = c.m, batch.n = c.n, batch.k = c.k;
    batch.a = a.at, batch.b = b.at;
    batch.a.transposed = c.ta, batch.b.transposed = c.tb;
    const int64_t products = std::accumulate(c.dims.begin(), c.dims.end(), int64_t{1}, std::multiplies<int64_t>());
    const Result got = run(&batch, c, products, false), again = run(&batch, c, products, true);
    ASSERT_EQ(got.values, again.values);
    const int64_t beside = c.in_columns ? c.dims.back() : 1;
    for (int64_t p = 0; p < products; p++) {
        const Matrix x = c.ta ? transposed(a.Of(p, c)) : a.Of(p, c), y = c.tb ? transposed(b.Of(p, c)) : b.Of(p, c);
        const std::vector<float> want = packed(kernels, x, y);
        for (int64_t r = 0; r < c.m; r++)
            for (int64_t j = 0; j < c.n; j++) {
                const float v = got.values[size_t((p / beside * c.m + r) * got.cols + p % beside * c.n + j)];
                const Exact exact = exact_product(x, y, r, j);
                ASSERT_NEAR(double(v), exact.value, 4 * exact.bound) << p << ": " << r << ", " << j;
                ASSERT_EQ(v, want[size_t(r * c.n + j)]) << p << ": " << r << ", " << j;
            }
    }
}

class BatchTest : public testing::TestWithParam<Target> {};

TEST_P(BatchTest, IsEveryProductInAnyOrderOfTasks) {
    const amp_product_kernels *kernels = SelectOrEmulate(GetParam().operand, GetParam().isa, nullptr);
    if (!kernels) GTEST_SKIP() << "this machine lacks " << GetParam().isa;
    struct Size {
        std::vector<int64_t> dims;
        int64_t m, n, k;
    };
    const Size sizes[] = {{{1}, 1, 1, 1},       {{3, 2}, 5, 7, 3},     {{2, 3}, 32, 32, 16},
                          {{2, 2}, 33, 20, 31}, {{40}, 1, 9, 8},       {{2, 2}, 64, 48, 1},
                          {{1, 3}, 7, 65, 40},  {{2, 1, 2}, 48, 1, 2}, {{2}, 40, 40, 1100}};
    int64_t turn = 0;
    for (const Size &s : sizes)
        for (int flags = 0; flags < 8; flags++, turn++)
            check(kernels, {s.dims, s.m, s.n, s.k, (flags & 4) != 0, (flags & 1) != 0, (flags & 2) != 0, turn % 3 == 0,
                            turn % 5 - 1});
}

// Long sums come in chunks of k, whose sums wait; several panels and row tiles in one task.
TEST_P(BatchTest, ChunksOfLongSumsContinueEachOther) {
    const amp_product_kernels *kernels = SelectOrEmulate(GetParam().operand, GetParam().isa, nullptr);
    if (!kernels) GTEST_SKIP() << "this machine lacks " << GetParam().isa;
    for (int flags = 0; flags < 4; flags++)
        check(kernels, {{1, 2}, 40, 70, 1025, flags == 3, (flags & 1) != 0, (flags & 2) != 0, false, 0});
}

INSTANTIATE_TEST_SUITE_P(Kernels, BatchTest,
                         testing::Values(Target{AMP_DT_F32, "portable"}, Target{AMP_DT_BF16, "portable"},
                                         Target{AMP_DT_F32, "avx2"}, Target{AMP_DT_BF16, "avx2"},
                                         Target{AMP_DT_F32, "avx512"}, Target{AMP_DT_BF16, "avx512"},
                                         Target{AMP_DT_BF16, "avx512_bf16"}, Target{AMP_DT_F32, "neon"},
                                         Target{AMP_DT_BF16, "neon"}),
                         [](const testing::TestParamInfo<Target> &info) {
                             return std::string(amp_dtype_name(info.param.operand)) + "_" + info.param.isa;
                         });

} // namespace
