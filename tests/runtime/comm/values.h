// values.h: what ranks bring to a collective, and what has to come out.
#ifndef AMP_TESTS_RUNTIME_COMM_VALUES_H
#define AMP_TESTS_RUNTIME_COMM_VALUES_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/rounding.h"

// Numbers of many magnitudes and both signs, whose sums depend on the order.
inline double Value(int32_t rank, size_t i) {
    uint64_t x = (static_cast<uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u;
    x ^= x >> 29, x *= 0x94d049bb133111ebu, x ^= x >> 32;
    const double m = static_cast<double>(x >> 12) / (1ull << 52) - 0.5;
    return std::ldexp(m, static_cast<int>(x % 9) - 4);
}

inline void Put(amp_dtype dtype, void *to, size_t i, double v) {
    switch (dtype) {
    case AMP_DT_F32: static_cast<float *>(to)[i] = static_cast<float>(v); break;
    case AMP_DT_F64: static_cast<double *>(to)[i] = v; break;
    case AMP_DT_F16: static_cast<uint16_t *>(to)[i] = amp_f32_to_f16(static_cast<float>(v)); break;
    case AMP_DT_BF16: static_cast<uint16_t *>(to)[i] = amp_f32_to_bf16(static_cast<float>(v)); break;
    case AMP_DT_U8: static_cast<uint8_t *>(to)[i] = static_cast<uint8_t>(std::ldexp(v, 6)); break;
    case AMP_DT_I32: static_cast<int32_t *>(to)[i] = static_cast<int32_t>(std::ldexp(v, 20)); break;
    default: static_cast<int64_t *>(to)[i] = static_cast<int64_t>(std::ldexp(v, 40)); break;
    }
}

inline double Get(amp_dtype dtype, const void *from, size_t i) {
    switch (dtype) {
    case AMP_DT_F32: return static_cast<double>(static_cast<const float *>(from)[i]);
    case AMP_DT_F64: return static_cast<const double *>(from)[i];
    case AMP_DT_F16: return static_cast<double>(amp_f16_to_f32(static_cast<const uint16_t *>(from)[i]));
    case AMP_DT_BF16: return static_cast<double>(amp_bf16_to_f32(static_cast<const uint16_t *>(from)[i]));
    case AMP_DT_U8: return static_cast<double>(static_cast<const uint8_t *>(from)[i]);
    case AMP_DT_I32: return static_cast<double>(static_cast<const int32_t *>(from)[i]);
    default: return static_cast<double>(static_cast<const int64_t *>(from)[i]);
    }
}

inline std::vector<unsigned char> Brought(amp_dtype dtype, int32_t rank, size_t count) {
    std::vector<unsigned char> out(count * amp_dtype_size(dtype));
    for (size_t i = 0; i < count; i++) Put(dtype, out.data(), i, Value(rank, i));
    return out;
}

struct Sum {
    double exact, magnitude; // in float64 of what the ranks brought, after its rounding to the type; of absolute values
};

inline Sum SumOf(amp_dtype dtype, int32_t ranks, size_t i) {
    Sum sum = {0, 0};
    for (int32_t r = 0; r < ranks; r++) {
        double one = 0;
        Put(dtype, &one, 0, Value(r, i));
        const double v = Get(dtype, &one, 0);
        sum.exact += v, sum.magnitude += std::fabs(v);
    }
    return sum;
}

// How far a sum of that type may be from the exact one: each addition rounds once, short types once more at the end.
inline double Bound(amp_dtype dtype, int32_t ranks, const Sum &sum) {
    const double last = dtype == AMP_DT_F16    ? std::fabs(sum.exact) * 0x1p-11 + 0x1p-25
                        : dtype == AMP_DT_BF16 ? std::fabs(sum.exact) * 0x1p-8
                                               : 0;
    return sum.magnitude * ranks * (dtype == AMP_DT_F64 ? 0x1p-53 : 0x1p-24) * 1.01 + last * 1.01;
}

// The bits of adding from left to right.
inline void LeftToRight(amp_dtype dtype, int32_t ranks, size_t i, void *out) {
    double sum = 0;
    for (int32_t r = 0; r < ranks; r++) {
        double one = 0;
        Put(dtype, &one, 0, Value(r, i));
        const double v = Get(dtype, &one, 0);
        if (!r) sum = v;
        else if (dtype == AMP_DT_F64) sum += v;
        else sum = static_cast<double>(static_cast<float>(sum) + static_cast<float>(v));
    }
    Put(dtype, out, 0, sum);
}

#endif
