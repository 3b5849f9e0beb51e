// images.h: images and windows for the tests of image products, and what the products are by plain loops in float64.
#ifndef AMP_TESTS_RUNTIME_DEVICE_CPU_IMAGES_H
#define AMP_TESTS_RUNTIME_DEVICE_CPU_IMAGES_H

#include <cmath>
#include <cstring>
#include <functional>
#include <ostream>
#include <random>
#include <vector>

#include "base/rounding.h"
#include "runtime/device/cpu/product/conv.h"

struct Geometry {
    int64_t n;
    int32_t h, w, c, oc, kh, kw, stride, padding, dilation;
    int32_t stride_w = 0; // 0: as of rows
    int32_t groups = 1;
};

inline std::ostream &operator<<(std::ostream &out, const Geometry &g) {
    return out << "n " << g.n << ", image " << g.h << "x" << g.w << ", channels " << g.c << " -> " << g.oc
               << ", kernel " << g.kh << "x" << g.kw << ", stride " << g.stride << "/"
               << (g.stride_w ? g.stride_w : g.stride) << ", padding " << g.padding << ", dilation " << g.dilation
               << ", groups " << g.groups;
}

inline amp_model_window WindowOf(const Geometry &g, uint32_t kind) {
    amp_model_window w{};
    w.kind = kind;
    w.h = g.h, w.w = g.w, w.c = g.c, w.oc = g.oc, w.kh = g.kh, w.kw = g.kw;
    w.stride[0] = g.stride, w.stride[1] = g.stride_w ? g.stride_w : g.stride;
    w.padding[0] = w.padding[1] = g.padding;
    w.dilation[0] = w.dilation[1] = g.dilation;
    w.groups = g.groups == 1 ? 0 : g.groups;
    w.oh = (g.h + 2 * g.padding - g.dilation * (g.kh - 1) - 1) / w.stride[0] + 1;
    w.ow = (g.w + 2 * g.padding - g.dilation * (g.kw - 1) - 1) / w.stride[1] + 1;
    return w;
}

// The window fits into the padded image.
inline bool IsSound(const Geometry &g) {
    return g.h + 2 * g.padding >= g.dilation * (g.kh - 1) + 1 && g.w + 2 * g.padding >= g.dilation * (g.kw - 1) + 1;
}

using Values = std::vector<float>;

inline Values MakeValues(amp_dtype operand, int64_t count, unsigned seed, bool integers) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    Values v;
    for (int64_t i = 0; i < count; i++)
        v.push_back(integers ? float(int(random() % 17) - 8) : amp_round_dtype(operand, normal(random)));
    return v;
}

inline int64_t RoundUp32(int64_t x) { return (x + 31) / 32 * 32; }

// Row-major values in memory of exactly the size that the layout has, so that a sanitizer sees every overrun.
class Packed {
  public:
    Packed(amp_dtype operand, uint32_t layout, int64_t rows, int64_t cols, const Values &values)
        : bytes_(operand == AMP_DT_BF16 ? 2 : 4), layout_(layout), rows_(rows), cols_(cols) {
        int64_t count = layout == AMP_LAYOUT_ROWS ? rows * cols : RoundUp32(rows) * RoundUp32(cols);
        memory_.resize(size_t(count * bytes_));
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols; c++) Store(Index(r, c), values[size_t(r * cols + c)]);
    }
    const void *data() const { return memory_.data(); }
    amp_image image() const {
        if (layout_ == AMP_LAYOUT_ROWS) return {data(), cols_ * bytes_, 0};
        return {data(), 32 * bytes_, RoundUp32(rows_) * 32 * bytes_};
    }

  private:
    int64_t Index(int64_t r, int64_t c) const {
        int64_t panel = c / 32 * RoundUp32(rows_) * 32;
        if (layout_ == AMP_LAYOUT_ROWS) return r * cols_ + c;
        if (layout_ == AMP_LAYOUT_PAIRS) return panel + r / 2 * 64 + c % 32 * 2 + r % 2;
        return panel + r * 32 + c % 32;
    }
    void Store(int64_t at, float value) {
        uint16_t half = amp_f32_to_bf16(value);
        if (bytes_ == 2) memcpy(&memory_[size_t(at * 2)], &half, 2);
        else memcpy(&memory_[size_t(at * 4)], &value, 4);
    }

    int64_t bytes_;
    uint32_t layout_;
    int64_t rows_, cols_;
    std::vector<char> memory_;
};

// The result of an image product by its definition: the sums, and the sums of magnitudes, which bound the error.
struct Sums {
    int64_t rows = 0, cols = 0;
    std::vector<double> value, magnitude;
    Sums(int64_t rows, int64_t cols) : rows(rows), cols(cols), value(size_t(rows * cols)), magnitude(value.size()) {}
    void Add(int64_t r, int64_t c, double product) {
        value[size_t(r * cols + c)] += product;
        magnitude[size_t(r * cols + c)] += std::fabs(product);
    }
};

// Calls f(pixel of x, pixel of y, tap) for every pair that meets.
inline void ForEachMeeting(const amp_model_window &w, int64_t n,
                           const std::function<void(int64_t, int64_t, int64_t)> &f) {
    for (int64_t s = 0; s < n; s++)
        for (int64_t y = 0; y < w.oh; y++)
            for (int64_t x = 0; x < w.ow; x++)
                for (int64_t i = 0; i < w.kh; i++)
                    for (int64_t j = 0; j < w.kw; j++) {
                        int64_t h = y * w.stride[0] - w.padding[0] + i * w.dilation[0];
                        int64_t v = x * w.stride[1] - w.padding[1] + j * w.dilation[1];
                        if (h < 0 || h >= w.h || v < 0 || v >= w.w) continue;
                        f((s * w.h + h) * w.w + v, (s * w.oh + y) * w.ow + x, i * w.kw + j);
                    }
}

// a: x, or dy for CONV_DATA; b: weights [taps * k, cols], or dy for CONV_WEIGHT.
// With groups the weights are stored as in CONV, [taps * inputs of a group, oc], for CONV_DATA too.
inline Sums NaiveGroups(const amp_model_window &w, int64_t n, const Values &a, const Values &b) {
    const int64_t c = w.c, oc = w.oc, inputs = c / w.groups, outputs = oc / w.groups;
    const bool data = w.kind == AMP_WINDOW_CONV_DATA, weight = w.kind == AMP_WINDOW_CONV_WEIGHT;
    Sums out(data ? n * w.h * w.w : weight ? int64_t(w.kh) * w.kw * inputs : n * w.oh * w.ow, data ? c : oc);
    ForEachMeeting(w, n, [&](int64_t x, int64_t y, int64_t tap) {
        for (int64_t o = 0; o < oc; o++)
            for (int64_t j = 0; j < inputs; j++) {
                const int64_t i = o / outputs * inputs + j, row = tap * inputs + j;
                if (data) out.Add(x, i, double(a[size_t(y * oc + o)]) * b[size_t(row * oc + o)]);
                else if (weight) out.Add(row, o, double(a[size_t(x * c + i)]) * b[size_t(y * oc + o)]);
                else out.Add(y, o, double(a[size_t(x * c + i)]) * b[size_t(row * oc + o)]);
            }
    });
    return out;
}

inline Sums NaiveProduct(const amp_model_window &w, int64_t n, const Values &a, const Values &b) {
    const int64_t c = w.c, oc = w.oc;
    if (w.groups > 1) return NaiveGroups(w, n, a, b);
    if (w.kind == AMP_WINDOW_CONV) {
        Sums out(n * w.oh * w.ow, oc);
        ForEachMeeting(w, n, [&](int64_t x, int64_t y, int64_t tap) {
            for (int64_t i = 0; i < c; i++)
                for (int64_t o = 0; o < oc; o++)
                    out.Add(y, o, double(a[size_t(x * c + i)]) * b[size_t((tap * c + i) * oc + o)]);
        });
        return out;
    }
    if (w.kind == AMP_WINDOW_CONV_DATA) {
        Sums out(n * w.h * w.w, c);
        ForEachMeeting(w, n, [&](int64_t x, int64_t y, int64_t tap) {
            for (int64_t o = 0; o < oc; o++)
                for (int64_t i = 0; i < c; i++)
                    out.Add(x, i, double(a[size_t(y * oc + o)]) * b[size_t((tap * oc + o) * c + i)]);
        });
        return out;
    }
    Sums out(int64_t(w.kh) * w.kw * c, oc);
    ForEachMeeting(w, n, [&](int64_t x, int64_t y, int64_t tap) {
        for (int64_t i = 0; i < c; i++)
            for (int64_t o = 0; o < oc; o++)
                out.Add(tap * c + i, o, double(a[size_t(x * c + i)]) * b[size_t(y * oc + o)]);
    });
    return out;
}

#endif
