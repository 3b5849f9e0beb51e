/* convert.h: elements of one floating type as another. */
#ifndef AMP_ONNX_CONVERT_H
#define AMP_ONNX_CONVERT_H

#include "onnx/onnx.h"

/* Rounds to nearest, ties to even; what is too large becomes infinity. */
bool onnx_can_convert(int32_t from, int32_t to);
/* |count| elements, raw; returns the bytes that they take. */
size_t onnx_convert(int32_t from, int32_t to, const void *elements, size_t count, void *out);

#endif
