// pointwise.h: the rows of pointwise.def.
#ifndef AMP_TESTS_OPS_POINTWISE_H
#define AMP_TESTS_OPS_POINTWISE_H

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ir/ir.h"

struct ErrorBounds {
    double of_16_bits, of_f32, constant = 0, linear = 0, largest = INFINITY;
};

struct PointwiseRow {
    Opcode code;
    const char *attributes;
    bool is_slope;
    double low, high;
    long double (*exact)(long double x);
    ErrorBounds bounds;

    const char *name() const { return ir_op_info[code].name; }
    // "gelu(%x; approximate = tanh)"
    std::string Call(const std::string &operands) const {
        return std::string(name()) + "(" + operands + attributes + ")";
    }
};

namespace pointwise {

inline long double Phi(long double x) { return 0.5L * erfcl(-x / sqrtl(2.0L)); }
inline long double Density(long double x) { return expl(-x * x / 2) / sqrtl(2.0L * acosl(-1.0L)); }
inline long double Sigmoid(long double x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }
inline long double HardSigmoid(long double x) { return std::isnan(x) ? x : std::min(std::max(x + 3, 0.0L), 6.0L) / 6; }
inline long double SoftTanh(long double x) { return tanhl(log1pl(expl(x))); }
inline long double TanhGelu(long double x) {
    return x * Sigmoid(2 * sqrtl(2 / acosl(-1.0L)) * (x + static_cast<long double>(0.044715) * x * x * x));
}
inline long double TanhGeluSlope(long double x) {
    const long double k = 2 * sqrtl(2 / acosl(-1.0L)), a = static_cast<long double>(0.044715);
    const long double s = Sigmoid(k * (x + a * x * x * x)), t = Sigmoid(-k * (x + a * x * x * x));
    return s + x * s * t * k * (1 + 3 * a * x * x);
}

inline const std::vector<PointwiseRow> &AllRows() {
    static const std::vector<PointwiseRow> rows = {
#define POINTWISE(op, attributes, low, high, torch, exact, ...)                                                        \
    {OP_##op, attributes, false, low, high, [](long double x) -> long double { return exact; }, {__VA_ARGS__}},
#define SLOPE(op, attributes, exact, ...)                                                                              \
    {OP_##op, attributes, true, 0, 0, [](long double x) -> long double { return exact; }, {__VA_ARGS__}},
#include "tests/ops/pointwise.def"
#undef POINTWISE
#undef SLOPE
    };
    return rows;
}

} // namespace pointwise

inline std::vector<PointwiseRow> RowsOf(bool slopes) {
    std::vector<PointwiseRow> rows;
    for (const PointwiseRow &row : pointwise::AllRows())
        if (row.is_slope == slopes) rows.push_back(row);
    return rows;
}
inline std::vector<PointwiseRow> PointwiseRows() { return RowsOf(false); }
inline std::vector<PointwiseRow> SlopeRows() { return RowsOf(true); }

#endif
