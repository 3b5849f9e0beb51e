// Layouts: the formulas of docs/design/kernels.md, round trips, padding, exact sizes.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/runtime/runtime_c.h"

namespace {

const int64_t sizes[] = {1, 2, 10, 31, 32, 33, 64, 65};

int64_t Up(int64_t v) { return (v + 31) / 32 * 32; }

// As the documentation has them, independent of the code's form.
int64_t Documented(uint32_t layout, int64_t rows, int64_t cols, int64_t r, int64_t c) {
    int64_t R = Up(rows), C = Up(cols);
    switch (layout) {
    case AMP_LAYOUT_PANELS: return (c / 32) * R * 32 + r * 32 + c % 32;
    case AMP_LAYOUT_PAIRS: return (c / 32) * R * 32 + (r / 2) * 64 + (c % 32) * 2 + r % 2;
    case AMP_LAYOUT_PANELS_T: return (r / 32) * C * 32 + c * 32 + r % 32;
    case AMP_LAYOUT_PAIRS_T: return (r / 32) * C * 32 + (c / 2) * 64 + (r % 32) * 2 + c % 2;
    default: return r * cols + c;
    }
}

TEST(Layout, IndexIsAsDocumentedAndOneToOne) {
    for (uint32_t layout = AMP_LAYOUT_ROWS; layout <= AMP_LAYOUT_PAIRS_T; layout++)
        for (int64_t rows : sizes)
            for (int64_t cols : sizes) {
                size_t bytes;
                ASSERT_TRUE(amp_layout_bytes(layout, AMP_DT_F32, rows, cols, &bytes));
                std::set<int64_t> seen;
                for (int64_t r = 0; r < rows; r++)
                    for (int64_t c = 0; c < cols; c++) {
                        int64_t i = amp_layout_index(layout, rows, cols, r, c);
                        ASSERT_EQ(i, Documented(layout, rows, cols, r, c));
                        ASSERT_LT((size_t)i * 4, bytes);
                        ASSERT_TRUE(seen.insert(i).second);
                    }
            }
}

TEST(Layout, RoundTripsWithZeroPadding) {
    for (uint32_t layout = AMP_LAYOUT_ROWS; layout <= AMP_LAYOUT_PAIRS_T; layout++)
        for (uint32_t storage : {AMP_DT_F32, AMP_DT_F16, AMP_DT_BF16})
            for (int64_t rows : sizes)
                for (int64_t cols : sizes) {
                    size_t bytes;
                    ASSERT_TRUE(amp_layout_bytes(layout, storage, rows, cols, &bytes));
                    std::vector<float> in((size_t)(rows * cols)), out(in.size());
                    for (size_t i = 0; i < in.size(); i++) in[i] = (float)(i % 251) - 100; // exact in bf16
                    std::vector<unsigned char> memory(bytes, 0xff);
                    amp_layout_from_f32(memory.data(), layout, storage, rows, cols, in.data());
                    amp_layout_to_f32(memory.data(), layout, storage, rows, cols, out.data());
                    ASSERT_EQ(in, out);
                    double sum = 0, expected = 0;
                    size_t elements = bytes / amp_storage_size(storage);
                    for (size_t i = 0; i < elements; i++)
                        sum += std::abs(amp_load_element(memory.data(), storage, (int64_t)i));
                    for (float v : in) expected += std::abs(v);
                    ASSERT_EQ(sum, expected) << "padding is not zero";
                }
}

TEST(Layout, BytesAreRoundedUpTo128) {
    const struct {
        uint32_t layout, storage;
        int64_t rows, cols;
        size_t bytes;
    } cases[] = {{AMP_LAYOUT_ROWS, AMP_DT_F32, 1, 1, 128},         {AMP_LAYOUT_ROWS, AMP_DT_F32, 1, 33, 256},
                 {AMP_LAYOUT_PANELS, AMP_DT_F32, 1, 1, 4096},      {AMP_LAYOUT_PAIRS, AMP_DT_BF16, 33, 1, 4096},
                 {AMP_LAYOUT_PANELS_T, AMP_DT_F32, 33, 65, 24576}, {AMP_LAYOUT_ROWS, AMP_DT_BOOL, 3, 11, 256}};
    for (const auto &c : cases) {
        size_t bytes = 0;
        ASSERT_TRUE(amp_layout_bytes(c.layout, c.storage, c.rows, c.cols, &bytes));
        EXPECT_EQ(bytes, c.bytes);
    }
}

TEST(Layout, OverflowIsSeen) {
    size_t bytes;
    EXPECT_FALSE(amp_layout_bytes(AMP_LAYOUT_ROWS, AMP_DT_F32, -1, 1, &bytes));
    EXPECT_FALSE(amp_layout_bytes(AMP_LAYOUT_ROWS, AMP_DT_F32, (int64_t)1 << 38, (int64_t)1 << 38, &bytes));
    EXPECT_FALSE(amp_layout_bytes(AMP_LAYOUT_PANELS, AMP_DT_F64, (int64_t)1 << 31, (int64_t)1 << 30, &bytes) &&
                 bytes < ((size_t)1 << 62));
    EXPECT_FALSE(amp_layout_bytes(AMP_LAYOUT_ROWS, AMP_DT_F32, INT64_MAX, 1, &bytes));
}

TEST(Layout, ElementsOfEveryType) {
    unsigned char memory[32];
    for (uint32_t t = AMP_DT_F32; t <= AMP_DT_F8V; t++) {
        amp_store_element(memory, t, 1, 1);
        EXPECT_EQ(amp_load_element(memory, t, 1), 1) << amp_dtype_name((amp_dtype)t);
    }
    amp_store_element(memory, AMP_DT_I64, 0, -5e12);
    EXPECT_EQ(amp_load_element(memory, AMP_DT_I64, 0), -5e12);
}

TEST(Layout, StatesAsMatrices) {
    amp_model_state s = {};
    int64_t rows, cols;
    amp_state_matrix(&s, &rows, &cols);
    EXPECT_EQ(rows * 100 + cols, 101);
    s.rank = 1, s.dims[0] = 7;
    amp_state_matrix(&s, &rows, &cols);
    EXPECT_EQ(rows * 100 + cols, 107);
    s.rank = 3, s.dims[1] = 3, s.dims[2] = 5;
    amp_state_matrix(&s, &rows, &cols);
    EXPECT_EQ(rows * 100 + cols, 2105);
}

} // namespace
