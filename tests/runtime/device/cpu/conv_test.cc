// Image products against plain loops in float64: windows of every kind, odd sizes, every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tests/runtime/device/cpu/emulated/emulated.h"
#include "tests/runtime/device/cpu/images.h"

namespace {

struct Target {
    amp_dtype operand;
    const char *isa;
};

std::ostream &operator<<(std::ostream &out, const Target &t) {
    return out << amp_dtype_name(t.operand) << "_" << t.isa;
}

constexpr uint32_t kKinds[] = {AMP_WINDOW_CONV, AMP_WINDOW_CONV_DATA, AMP_WINDOW_CONV_WEIGHT};

using Memory = std::unique_ptr<char, decltype(&free)>;

// Exactly |bytes| bytes, full of NaN.
Memory Scratch(size_t bytes) {
    char *memory = static_cast<char *>(aligned_alloc(64, std::max<size_t>(bytes, 64)));
    memset(memory, 0xff, bytes);
    return {memory, &free};
}

// Operands of one product and its result.
class Product {
  public:
    Product(const amp_product_kernels *kernels, const Geometry &g, uint32_t kind, bool integers)
        : kind_(kind), operand_(kernels->operand) {
        conv.kernels = kernels;
        conv.window = WindowOf(g, kind);
        conv.n = g.n;
        conv.epilogue = Epilogue;
        conv.ctx = this;
        const amp_model_window &w = conv.window;
        const int64_t x_pixels = g.n * w.h * w.w, y_pixels = g.n * w.oh * w.ow, taps = int64_t(w.kh) * w.kw;
        const bool data = kind == AMP_WINDOW_CONV_DATA;
        a_pixels_ = data ? y_pixels : x_pixels, a_channels_ = data ? w.oc : w.c;
        const bool weight = kind == AMP_WINDOW_CONV_WEIGHT, grouped = w.groups > 1;
        const int64_t inputs = w.c / g.groups;
        b_rows_ = weight ? y_pixels : taps * (grouped ? inputs : a_channels_);
        b_cols_ = data && !grouped ? w.c : w.oc;
        rows_ = data ? x_pixels : weight ? taps * inputs : y_pixels, cols_ = data ? w.c : w.oc;
        a = MakeValues(operand_, a_pixels_ * a_channels_, 1, integers);
        b = MakeValues(operand_, b_rows_ * b_cols_, 2, integers);
    }

    // Whether images with few channels lie in rows or in panels.
    Values Run(bool dense, bool reverse = false) {
        const bool in_pairs = operand_ == AMP_DT_BF16 && conv.window.groups <= 1;
        const uint32_t weights = in_pairs ? AMP_LAYOUT_PAIRS : AMP_LAYOUT_PANELS;
        const bool weight_gradient = kind_ == AMP_WINDOW_CONV_WEIGHT;
        Packed pa(operand_, Layout(a_channels_, dense), a_pixels_, a_channels_, a);
        Packed pb(operand_, weight_gradient ? Layout(b_cols_, dense) : weights, b_rows_, b_cols_, b);
        Memory thread = Scratch(amp_conv_thread_bytes(&conv)), shared = Scratch(amp_conv_shared_bytes(&conv));
        conv.a = pa.image();
        if (weight_gradient) conv.dy = pb.image();
        else conv.b = pb.data();
        conv.b_panel_stride = RoundUp32(b_rows_) * 32 / (operand_ == AMP_DT_BF16 ? 2 : 1);
        conv.shared = reinterpret_cast<float *>(shared.get());
        result_.assign(size_t(rows_ * cols_), NAN);
        tiles_.clear();
        const int64_t tasks = amp_conv_tasks(&conv), second = amp_conv_second_tasks(&conv);
        for (int64_t i = 0; i < tasks; i++) amp_conv_task(&conv, reverse ? tasks - 1 - i : i, thread.get());
        for (int64_t i = 0; i < second; i++) amp_conv_second_task(&conv, reverse ? second - 1 - i : i, thread.get());
        EXPECT_EQ(int64_t(tiles_.size()), RoundUp32(rows_) / 32 * (RoundUp32(cols_) / 32));
        return result_;
    }

    std::string Compare(const Values &got, double scale) const {
        const Sums exact = NaiveProduct(conv.window, conv.n, a, b);
        if (exact.rows != rows_ || exact.cols != cols_) return "the shapes differ";
        for (size_t i = 0; i < got.size(); i++) {
            // gamma_n sum |a||b| with n roundings, at most one per term and one for the product (Higham, (3.5)).
            const double bound = std::ldexp(2.0 * double(Depth()), -24) * exact.magnitude[i];
            if (!(std::fabs(got[i] - exact.value[i]) <= scale * bound))
                return "row " + std::to_string(int64_t(i) / cols_) + ", column " + std::to_string(int64_t(i) % cols_) +
                       ": " + std::to_string(got[i]) + ", not " + std::to_string(exact.value[i]);
        }
        return "";
    }

    // Images in rows must be dense in units.
    bool HasUnits() const {
        const int64_t k = kind_ == AMP_WINDOW_CONV_DATA ? conv.window.oc : conv.window.c;
        return operand_ != AMP_DT_BF16 || k % 2 == 0 || kind_ == AMP_WINDOW_CONV_WEIGHT;
    }

    amp_conv conv{};
    Values a, b;

  private:
    static uint32_t Layout(int64_t channels, bool dense) {
        return dense && channels < 32 ? AMP_LAYOUT_ROWS : AMP_LAYOUT_PANELS;
    }
    int64_t Depth() const {
        const amp_model_window &w = conv.window;
        if (kind_ == AMP_WINDOW_CONV_WEIGHT) return b_rows_ + 40;
        if (w.groups <= 1) return b_rows_ + 2;
        return int64_t(w.kh) * w.kw * (kind_ == AMP_WINDOW_CONV_DATA ? w.oc : w.c) / w.groups + 2;
    }

    static void Epilogue(void *ctx, const float *c, int64_t row0, int64_t rows, int64_t col0) {
        static_cast<Product *>(ctx)->Take(c, row0, rows, col0);
    }
    void Take(const float *c, int64_t row0, int64_t rows, int64_t col0) {
        EXPECT_EQ(row0 % 32, 0);
        EXPECT_EQ(rows, std::min<int64_t>(32, rows_ - row0));
        EXPECT_TRUE(tiles_.emplace(row0, col0).second) << "tile " << row0 << ", " << col0 << " came twice";
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < 32; j++) {
                if (col0 + j < cols_) result_[size_t((row0 + r) * cols_ + col0 + j)] = c[r * 32 + j];
                else ASSERT_EQ(c[r * 32 + j], 0.0f) << "past the last column";
            }
    }

    uint32_t kind_;
    amp_dtype operand_;
    int64_t a_pixels_, a_channels_, b_rows_, b_cols_, rows_, cols_;
    Values result_;
    std::set<std::pair<int64_t, int64_t>> tiles_;
};

const Geometry kGeometries[] = {
    // n, h, w, c, oc, kh, kw, stride, padding, dilation
    {1, 1, 1, 1, 1, 1, 1, 1, 0, 1},
    {7, 5, 7, 1, 32, 3, 3, 1, 1, 1},
    {2, 9, 11, 3, 5, 7, 7, 2, 3, 1},
    {3, 8, 8, 32, 64, 3, 3, 1, 1, 1},
    {2, 7, 9, 64, 32, 3, 3, 2, 1, 1},
    {1, 13, 5, 33, 31, 3, 3, 1, 1, 1},
    {2, 6, 6, 64, 33, 1, 1, 1, 0, 1},
    {2, 7, 7, 34, 40, 1, 1, 2, 0, 1},
    {1, 17, 17, 4, 6, 3, 3, 1, 2, 2},
    {1, 9, 9, 6, 2, 5, 5, 3, 2, 1},
    {4, 4, 4, 96, 70, 3, 3, 1, 1, 1},
    {33, 2, 2, 32, 32, 3, 3, 1, 1, 1},
    {40, 1, 1, 64, 64, 3, 3, 1, 1, 1},
    {1, 40, 33, 2, 3, 3, 3, 1, 0, 1},
    {1, 5, 30, 32, 2, 1, 7, 1, 3, 1},
    {2, 7, 7, 8, 8, 2, 2, 3, 0, 1, 1},
    {2, 10, 6, 16, 16, 4, 4, 2, 1, 1},
    {1, 3, 3, 20, 20, 3, 3, 3, 3, 1},
    {2, 4, 4, 512, 34, 3, 3, 1, 1, 1},
    {1, 4, 4, 34, 1100, 2, 2, 2, 0, 1},
    {1, 3, 3, 1030, 2, 3, 3, 1, 1, 1},
    // 3 x 3 windows over many pixels: Winograd's products, of even and odd sizes, wide ones, with every padding
    {1, 8, 8, 32, 32, 3, 3, 1, 1, 1},
    {3, 9, 11, 64, 40, 3, 3, 1, 1, 1},
    {2, 10, 12, 96, 160, 3, 3, 1, 0, 1},
    {5, 7, 16, 32, 64, 3, 3, 1, 2, 1},
    {1, 5, 40, 33, 70, 3, 3, 1, 3, 1},
    {1, 4, 224, 32, 32, 3, 3, 1, 1, 1},
    {1, 3, 67, 64, 32, 3, 3, 1, 1, 1},
    {9, 14, 14, 64, 32, 3, 3, 1, 1, 1},
    {70, 4, 4, 64, 96, 3, 3, 1, 1, 1},
    {2, 66, 1, 32, 32, 3, 3, 1, 1, 1},
    // groups: narrow, of several blocks, across blocks, and depthwise
    {2, 6, 7, 16, 16, 3, 3, 1, 1, 1, 0, 4},
    {2, 9, 5, 64, 128, 3, 3, 2, 1, 1, 0, 8},
    // narrow groups of 2, 4, 8 and 16 channels, with strides, and with a last panel that is not full
    {2, 9, 7, 64, 64, 3, 3, 1, 1, 1, 0, 32},
    {2, 9, 7, 44, 44, 3, 3, 2, 1, 1, 0, 11},
    {1, 8, 11, 40, 40, 3, 2, 1, 0, 2, 2, 5},
    {3, 6, 9, 48, 48, 3, 3, 2, 1, 1, 1, 3},
    {2, 7, 7, 96, 96, 1, 5, 1, 2, 1, 0, 24},
    {1, 7, 6, 96, 72, 3, 3, 1, 1, 1, 0, 6},
    {2, 5, 5, 256, 256, 3, 3, 1, 2, 2, 0, 4},
    {1, 4, 9, 120, 80, 1, 3, 1, 1, 1, 0, 10},
    {2, 40, 3, 32, 32, 3, 3, 1, 1, 1, 0, 32},
    {2, 9, 11, 70, 70, 3, 3, 2, 1, 1, 0, 70},
    {3, 15, 15, 64, 64, 7, 7, 1, 3, 1, 0, 64},
    {1, 8, 9, 40, 40, 3, 2, 3, 0, 2, 1, 40},
    {2, 2, 2, 96, 96, 3, 3, 1, 1, 1, 0, 96},
    {1, 6, 50, 30, 30, 1, 40, 1, 0, 1},
    {3, 31, 1, 2, 2, 6, 1, 1, 2, 2},
    {1, 2, 2, 2, 2, 7, 7, 1, 3, 1},
};

class ImageProducts : public testing::TestWithParam<Target> {
  protected:
    void SetUp() override {
        amp_error err;
        kernels_ = SelectOrEmulate(GetParam().operand, GetParam().isa, &err);
        if (!kernels_ && err.code == AMP_UNSUPPORTED) GTEST_SKIP() << err.message;
        ASSERT_NE(kernels_, nullptr) << err.message;
    }
    void CheckExact(const Geometry &g) {
        for (uint32_t kind : kKinds) {
            Product p(kernels_, g, kind, true);
            if (!p.HasUnits()) continue;
            SCOPED_TRACE(testing::Message() << "kind " << kind << ", " << g);
            const Values dense = p.Run(true);
            ASSERT_EQ(p.Compare(dense, 0), "");
            ASSERT_EQ(p.Run(false), dense) << "panels";
        }
    }
    const amp_product_kernels *kernels_ = nullptr;
};

TEST_P(ImageProducts, IntegersAreExact) {
    for (const Geometry &g : kGeometries) CheckExact(g);
}

TEST_P(ImageProducts, IntegersAreExactForRandomWindows) {
    std::mt19937 random(5);
    const int32_t channels[] = {1, 2, 3, 5, 6, 31, 32, 33, 34, 64};
    auto upto = [&](int32_t n) { return int32_t(random() % uint32_t(n)); };
    for (int made = 0; made < 60;) {
        Geometry g{1 + upto(3), 1 + upto(13), 1 + upto(13), channels[upto(10)], channels[upto(10)], 1 + upto(7),
                   1 + upto(7), 1 + upto(3),  upto(4),      1 + upto(2)};
        if (upto(3) == 0) g.stride_w = 1 + upto(3);
        if (!IsSound(g)) continue;
        CheckExact(g);
        made++;
    }
}

// Of each third geometry: in all of them integers show which elements are multiplied.
TEST_P(ImageProducts, RandomIsWithinTheErrorBoundInAnyOrderOfTasks) {
    for (const Geometry &g : kGeometries)
        for (uint32_t kind : kKinds) {
            if ((&g - kGeometries) % 3 != 2) continue;
            Product p(kernels_, g, kind, false);
            if (!p.HasUnits()) continue;
            SCOPED_TRACE(testing::Message() << "kind " << kind << ", " << g);
            const Values forward = p.Run(true);
            ASSERT_EQ(p.Compare(forward, 1), "");
            ASSERT_EQ(p.Run(true, true), forward) << "in the opposite order";
        }
}

// An element of a weight gradient whose products are all 0 is 0, not the rounding error of sums that cancel.
TEST_P(ImageProducts, WeightGradientsOfZerosAreZero) {
    for (const Geometry &g : {Geometry{2, 8, 9, 64, 96, 3, 3, 1, 1, 1}, Geometry{40, 5, 4, 32, 33, 3, 3, 1, 2, 1},
                              Geometry{3, 6, 7, 32, 64, 3, 3, 1, 0, 1}}) {
        Product p(kernels_, g, AMP_WINDOW_CONV_WEIGHT, false);
        std::mt19937 random(3);
        for (float &x : p.a) x = random() % 16 ? 0 : x;
        for (float &x : p.b) x = random() % 16 ? 0 : x;
        const Values got = p.Run(true);
        const Sums exact = NaiveProduct(p.conv.window, p.conv.n, p.a, p.b);
        int64_t zeros = 0;
        for (size_t i = 0; i < got.size(); i++) {
            if (exact.magnitude[i] != 0) continue;
            zeros++;
            ASSERT_EQ(got[i], 0) << g << ": row " << int64_t(i) / g.oc << ", column " << int64_t(i) % g.oc;
        }
        EXPECT_GT(zeros, 100) << g;
    }
}

// The comparison itself: one wrong operand is seen.
TEST_P(ImageProducts, PlantedFaultIsSeen) {
    for (uint32_t kind : kKinds) {
        Product p(kernels_, kGeometries[3], kind, false);
        const Values got = p.Run(true);
        Product wrong = p;
        wrong.a[5] += 0.01f;
        EXPECT_NE(wrong.Compare(got, 1), "");
        wrong = p;
        wrong.b[7] += 0.01f;
        EXPECT_NE(wrong.Compare(got, 1), "");
    }
}

// What a session reserves for its capacity serves every smaller batch.
TEST_P(ImageProducts, ScratchGrowsWithN) {
    for (const Geometry &g : kGeometries)
        for (uint32_t kind : kKinds) {
            amp_conv conv{};
            conv.kernels = kernels_;
            conv.window = WindowOf(g, kind);
            size_t thread = 0, shared = 0;
            for (conv.n = 1; conv.n < 200; conv.n++) {
                ASSERT_LE(thread, amp_conv_thread_bytes(&conv)) << g << ", n " << conv.n;
                ASSERT_LE(shared, amp_conv_shared_bytes(&conv)) << g << ", n " << conv.n;
                thread = amp_conv_thread_bytes(&conv), shared = amp_conv_shared_bytes(&conv);
            }
        }
}

INSTANTIATE_TEST_SUITE_P(All, ImageProducts,
                         testing::Values(Target{AMP_DT_F32, "portable"}, Target{AMP_DT_F32, "avx2"},
                                         Target{AMP_DT_F32, "avx512"}, Target{AMP_DT_BF16, "portable"},
                                         Target{AMP_DT_BF16, "avx2"}, Target{AMP_DT_BF16, "avx512"},
                                         Target{AMP_DT_BF16, "avx512_bf16"}),
                         testing::PrintToStringParamName());

} // namespace
