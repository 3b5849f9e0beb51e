// packed_operands.h: matrices of a product in the layouts that runtime/device/cpu/product reads, and their product in
// float64.
#ifndef AMP_TESTS_RUNTIME_DEVICE_CPU_PACKED_OPERANDS_H
#define AMP_TESTS_RUNTIME_DEVICE_CPU_PACKED_OPERANDS_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "base/rounding.h"
#include "runtime/device/cpu/product/product.h"

// An operand type and the instruction set whose kernels multiply it.
struct Target {
    amp_dtype operand;
    const char *isa;
};

inline std::ostream &operator<<(std::ostream &out, const Target &t) {
    return out << amp_dtype_name(t.operand) << "_" << t.isa;
}

// Row-major values, each one that the operand type holds exactly.
struct Matrix {
    int64_t rows = 0, cols = 0;
    std::vector<float> values;

    float &at(int64_t r, int64_t c) { return values[size_t(r * cols + c)]; }
    // Zero past the edge, as in padded layouts.
    float padded(int64_t r, int64_t c) const { return r < rows && c < cols ? values[size_t(r * cols + c)] : 0.0f; }
};

inline Matrix make_matrix(amp_dtype operand, int64_t rows, int64_t cols, const std::function<float()> &next) {
    Matrix m{rows, cols, {}};
    for (int64_t i = 0; i < rows * cols; i++) m.values.push_back(amp_round_dtype(operand, next()));
    return m;
}

inline Matrix integers(amp_dtype operand, int64_t rows, int64_t cols, unsigned seed) {
    std::mt19937 random(seed);
    return make_matrix(operand, rows, cols, [&] { return float(int(random() % 17) - 8); });
}

inline Matrix normals(amp_dtype operand, int64_t rows, int64_t cols, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    return make_matrix(operand, rows, cols, [&] { return normal(random); });
}

inline int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

// k values of an operand in a unit of four bytes.
inline int64_t per_unit(amp_dtype operand) { return operand == AMP_DT_BF16 ? 2 : 1; }
inline int64_t units_of(amp_dtype operand, int64_t k) { return (k + per_unit(operand) - 1) / per_unit(operand); }

using Units = std::vector<uint32_t>;

inline uint32_t make_unit(amp_dtype operand, float even, float odd) {
    if (operand == AMP_DT_BF16) return uint32_t(amp_f32_to_bf16(even)) | uint32_t(amp_f32_to_bf16(odd)) << 16;
    uint32_t bits;
    memcpy(&bits, &even, sizeof bits);
    return bits;
}

// A [m, k] with k units in |form|; every dimension is rounded up to 32 values.
inline Units pack_a(amp_dtype operand, const Matrix &a, amp_product_form form) {
    const int64_t per = per_unit(operand), block = 32 / per;
    const int64_t rows = round_up(a.rows, 32), k = round_up(a.cols, 32) / per;
    Units out(size_t(rows * k));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t u = 0; u < k; u++) {
            int64_t at = form == AMP_PRODUCT_BLOCKED ? u / block * rows * block + r * block + u % block
                                                     : r / 32 * k * 32 + u * 32 + r % 32;
            out[size_t(at)] = make_unit(operand, a.padded(r, u * per), a.padded(r, u * per + 1));
        }
    return out;
}

// B [k, n] as panels of 32 columns; k is rounded up to 32 values.
inline Units pack_b(amp_dtype operand, const Matrix &b) {
    const int64_t per = per_unit(operand), k = round_up(b.rows, 32) / per, cols = round_up(b.cols, 32);
    Units out(size_t(k * cols));
    for (int64_t u = 0; u < k; u++)
        for (int64_t c = 0; c < cols; c++)
            out[size_t(c / 32 * k * 32 + u * 32 + c % 32)] =
                make_unit(operand, b.padded(u * per, c), b.padded(u * per + 1, c));
    return out;
}

// Row-major, without padding; its memory ends with its last element.
inline std::vector<unsigned char> dense(amp_dtype operand, const Matrix &m) {
    const size_t size = operand == AMP_DT_BF16 ? 2 : 4;
    std::vector<unsigned char> out(m.values.size() * size);
    for (size_t i = 0; i < m.values.size(); i++) {
        const uint32_t unit = make_unit(operand, m.values[i], 0);
        memcpy(&out[i * size], &unit, size);
    }
    out.shrink_to_fit();
    return out;
}

inline Matrix transposed(const Matrix &m) {
    Matrix out{m.cols, m.rows, {}};
    for (int64_t c = 0; c < m.cols; c++)
        for (int64_t r = 0; r < m.rows; r++) out.values.push_back(m.padded(r, c));
    return out;
}

// Element (r, c) of A * B in float64, and the bound of the error of summing it in f32 in any order, with any number of
// roundings per product up to two.
struct Exact {
    double value = 0, bound = 0;
};

inline Exact exact_product(const Matrix &a, const Matrix &b, int64_t r, int64_t c) {
    double value = 0, magnitude = 0;
    for (int64_t k = 0; k < a.cols; k++) {
        double product = double(a.padded(r, k)) * double(b.padded(k, c));
        value += product;
        magnitude += std::fabs(product);
    }
    // Higham, Accuracy and Stability of Numerical Algorithms, (3.5): gamma_n sum |a||b|, with n = k + 1 roundings.
    return {value, std::ldexp(double(a.cols + 1), -24) * 1.01 * magnitude};
}

// A product with all its strides, over operands packed here.
struct PackedProduct {
    Units a, b;
    amp_product product{};

    PackedProduct(amp_dtype operand, const Matrix &am, const Matrix &bm, amp_product_form form)
        : a(pack_a(operand, am, form)), b(pack_b(operand, bm)) {
        const int64_t per = per_unit(operand), k = round_up(am.cols, 32) / per, rows = round_up(am.rows, 32);
        product.a = a.data();
        product.b = b.data();
        product.form = form;
        product.m = am.rows;
        product.n = bm.cols;
        product.k = units_of(operand, am.cols);
        product.a_block_stride = rows * 32 / per;
        product.a_tile_stride = form == AMP_PRODUCT_BLOCKED ? 32 * 32 / per : k * 32;
        product.b_panel_stride = k * 32;
    }

    // The tile of the first 32 rows and columns.
    amp_product_tile tile(float *c) const {
        amp_product_tile t{};
        t.a = a.data();
        t.b = b.data();
        t.c = c;
        t.form = product.form;
        t.a_block_stride = product.a_block_stride;
        t.k = product.k;
        t.rows = product.m < 32 ? product.m : 32;
        return t;
    }
};

#endif
