/* convert.c: see convert.h. */
#include "onnx/convert.h"

#include "base/rounding.h"

static bool is_float(int32_t type) {
    return type == ONNX_FLOAT || type == ONNX_DOUBLE || type == ONNX_FLOAT16 || type == ONNX_BFLOAT16;
}

bool onnx_can_convert(int32_t from, int32_t to) { return is_float(from) && is_float(to); }

/* To the bits below it: so that rounding the result once more gives what rounding |x| alone does (round to odd). */
static float narrow(double x) {
    float near = (float)x;
    uint32_t bits;
    if ((double)near == x || x != x) return near;
    memcpy(&bits, &near, sizeof bits);
    if (bits & 1) return near;
    const bool is_above = x < 0 ? (double)near < x : (double)near > x; /* in magnitude; infinity is even, too */
    bits = is_above ? bits - 1 : bits + 1;
    memcpy(&near, &bits, sizeof near);
    return near;
}

static double load(int32_t type, const char *at) {
    uint16_t half;
    float single;
    double value;
    if (type == ONNX_DOUBLE) return memcpy(&value, at, sizeof value), value;
    if (type == ONNX_FLOAT) return memcpy(&single, at, sizeof single), (double)single;
    memcpy(&half, at, sizeof half);
    return (double)(type == ONNX_FLOAT16 ? amp_f16_to_f32(half) : amp_bf16_to_f32(half));
}

static size_t store(int32_t type, double value, char *to) {
    const float single = (float)value;
    if (type == ONNX_DOUBLE) return memcpy(to, &value, sizeof value), sizeof value;
    if (type == ONNX_FLOAT) return memcpy(to, &single, sizeof single), sizeof single;
    const uint16_t half = type == ONNX_FLOAT16 ? amp_f32_to_f16(narrow(value)) : amp_f32_to_bf16(narrow(value));
    memcpy(to, &half, sizeof half);
    return sizeof half;
}

/* The usual case, in a loop of its own. */
static size_t convert_f32(const char *from, size_t count, int32_t type, char *out) {
    for (size_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, from + 4 * i, sizeof value);
        const uint16_t half = type == ONNX_FLOAT16 ? amp_f32_to_f16(value) : amp_f32_to_bf16(value);
        memcpy(out + 2 * i, &half, sizeof half);
    }
    return 2 * count;
}

size_t onnx_convert(int32_t from, int32_t to, const void *elements, size_t count, void *out) {
    const size_t step = (size_t)onnx_dtype_bits(from) / 8;
    size_t bytes = 0;
    if (from == ONNX_FLOAT && (to == ONNX_FLOAT16 || to == ONNX_BFLOAT16)) return convert_f32(elements, count, to, out);
    for (size_t i = 0; i < count; i++)
        bytes += store(to, load(from, (const char *)elements + step * i), (char *)out + bytes);
    return bytes;
}
