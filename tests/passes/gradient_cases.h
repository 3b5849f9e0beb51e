// gradient_cases.h: one small function for each op that is differentiated, and for each of its attributes: shapes of
// size
// 1, odd ones, broadcast ones.
//
// given:  "a f32[2, 3]" is a parameter, "in x f32[N, 3]" an input, "ids i i32[4]" an input of small integers,
//         "mask c bool[2, 3]" an input of 0 and 1, in lines of their own
// body:   ops that make %y
// y:      its shape
//
// Ops that compute an element from one element are rows of tests/ops/pointwise.def.
#ifndef AMP_TESTS_PASSES_GRADIENT_CASES_H
#define AMP_TESTS_PASSES_GRADIENT_CASES_H

#include "tests/ops/pointwise.h"

struct GradientCase {
    std::string given, body, y;
    double low = 0.4, high = 1.6; // of all numbers
};

const GradientCase kGradientCases[] = {
    // products
    {"a f32[5, 4]\nw f32[3, 4]\nb f32[3]", "%y = linear(%a, %w, %b) : f32[5, 3]", "[5, 3]", -1, 1},
    {"a f32[5, 4]\nw f32[4, 3]\nb f32[3]", "%y = linear(%a, %w, %b; transposed = true) : f32[5, 3]", "[5, 3]", -1, 1},
    {"a f32[2, 3, 4]\nw f32[5, 4]\nb f32[5]", "%y = linear(%a, %w, %b) : f32[2, 3, 5]", "[2, 3, 5]", -1, 1},
    {"a f32[2, 1, 3, 4]\nw f32[4, 1]\nb f32[1]", "%y = linear(%a, %w, %b; transposed = true) : f32[2, 1, 3, 1]",
     "[2, 1, 3, 1]", -1, 1},
    {"a f32[4]\nw f32[3, 4]", "%y = linear(%a, %w) : f32[3]", "[3]", -1, 1},
    {"in x f32[N, 3, 4]\na f32[4]\nw f32[5, 4]\nb f32[5]",
     "%h = mul(%x, %a) : f32[N, 3, 4]\n%y = linear(%h, %w, %b) : f32[N, 3, 5]", "[N, 3, 5]", -1, 1},
    {"a f32[5, 4]\nb f32[4, 3]", "%y = matmul(%a, %b) : f32[5, 3]", "[5, 3]", -1, 1},
    {"a f32[4, 5]\nb f32[4, 3]", "%y = matmul(%a, %b; ta = true) : f32[5, 3]", "[5, 3]", -1, 1},
    {"a f32[5, 4]\nb f32[3, 4]", "%y = matmul(%a, %b; tb = true) : f32[5, 3]", "[5, 3]", -1, 1},
    {"a f32[4, 5]\nb f32[3, 4]", "%y = matmul(%a, %b; ta = true, tb = true) : f32[5, 3]", "[5, 3]", -1, 1},
    {"a f32[2, 5, 4]\nb f32[2, 4, 3]", "%y = matmul(%a, %b) : f32[2, 5, 3]", "[2, 5, 3]", -1, 1},
    {"a f32[2, 4, 5]\nb f32[2, 4, 3]", "%y = matmul(%a, %b; ta = true) : f32[2, 5, 3]", "[2, 5, 3]", -1, 1},
    {"a f32[2, 5, 4]\nb f32[2, 3, 4]", "%y = matmul(%a, %b; tb = true) : f32[2, 5, 3]", "[2, 5, 3]", -1, 1},
    {"a f32[2, 4, 5]\nb f32[2, 3, 4]", "%y = matmul(%a, %b; ta = true, tb = true) : f32[2, 5, 3]", "[2, 5, 3]", -1, 1},
    {"a f32[2, 5, 4]\nb f32[4, 3]", "%y = matmul(%a, %b) : f32[2, 5, 3]", "[2, 5, 3]", -1, 1},
    {"a f32[2, 5, 4]\nb f32[3, 4]", "%y = matmul(%a, %b; tb = true) : f32[2, 5, 3]", "[2, 5, 3]", -1, 1},
    {"a f32[2, 4, 5]\nb f32[4, 3]", "%y = matmul(%a, %b; ta = true) : f32[2, 5, 3]", "[2, 5, 3]", -1, 1},
    {"a f32[5, 4]\nb f32[2, 4, 3]", "%y = matmul(%a, %b) : f32[2, 5, 3]", "[2, 5, 3]", -1, 1},
    {"a f32[3, 1, 2, 4]\nb f32[2, 4, 1]", "%y = matmul(%a, %b) : f32[3, 2, 2, 1]", "[3, 2, 2, 1]", -1, 1},
    {"a f32[2, 3, 5, 5]\nw f32[4, 3, 3, 3]\nb f32[4]", "%y = conv2d(%a, %w, %b) : f32[2, 4, 3, 3]", "[2, 4, 3, 3]", -1,
     1},
    {"a f32[1, 1, 4, 3]\nw f32[1, 1, 1, 1]", "%y = conv2d(%a, %w) : f32[1, 1, 4, 3]", "[1, 1, 4, 3]", -1, 1},
    {"a f32[2, 2, 5, 6]\nw f32[3, 2, 3, 2]\nb f32[3]",
     "%y = conv2d(%a, %w, %b; stride = (2, 1), padding = (1, 0)) : f32[2, 3, 3, 5]", "[2, 3, 3, 5]", -1, 1},
    {"a f32[2, 2, 7, 6]\nw f32[3, 2, 3, 2]",
     "%y = conv2d(%a, %w; padding = (0, 2), dilation = (2, 3)) : f32[2, 3, 3, 7]", "[2, 3, 3, 7]", -1, 1},
    {"a f32[2, 4, 5, 4]\nw f32[6, 2, 3, 3]\nb f32[6]",
     "%y = conv2d(%a, %w, %b; stride = (2, 2), padding = (1, 1), groups = 2) : f32[2, 6, 3, 2]", "[2, 6, 3, 2]", -1, 1},
    {"a f32[1, 3, 5, 5]\nw f32[3, 1, 3, 3]", "%y = conv2d(%a, %w; padding = (1, 1), groups = 3) : f32[1, 3, 5, 5]",
     "[1, 3, 5, 5]", -1, 1},
    {"in x f32[N, 2, 4, 4]\ns f32[2, 1, 1]\nw f32[3, 2, 2, 2]\nb f32[3]",
     "%h = mul(%x, %s) : f32[N, 2, 4, 4]\n%y = conv2d(%h, %w, %b; stride = (3, 3)) : f32[N, 3, 1, 1]", "[N, 3, 1, 1]",
     -1, 1},

    {"a f32[2, 3, 2, 3]\nw f32[3, 4, 3, 2]\nb f32[4]", "%y = conv_transpose2d(%a, %w, %b) : f32[2, 4, 4, 4]",
     "[2, 4, 4, 4]", -1, 1},
    {"a f32[2, 4, 3, 2]\nw f32[4, 3, 3, 2]\nb f32[6]",
     "%y = conv_transpose2d(%a, %w, %b; stride = (2, 3), padding = (1, 0), output_padding = (1, 2), dilation = (2, 1), "
     "groups = 2) : f32[2, 6, 8, 7]",
     "[2, 6, 8, 7]", -1, 1},
    {"a f32[1, 2, 2, 2]\nw f32[2, 3, 2, 2]\nb f32[3]",
     "%y = conv_transpose2d(%a, %w, %b; stride = (1, 2), padding = (1, 0), output_padding = (2, 4), dilation = (3, 5)) "
     ": "
     "f32[1, 3, 5, 12]",
     "[1, 3, 5, 12]", -1, 1},
    {"in x f32[N, 2, 2, 2]\ns f32[2, 1, 1]\nw f32[2, 3, 2, 2]",
     "%h = mul(%x, %s) : f32[N, 2, 2, 2]\n%y = conv_transpose2d(%h, %w; stride = (2, 2)) : f32[N, 3, 4, 4]",
     "[N, 3, 4, 4]", -1, 1},

    {"a f32[2, 2, 3, 4]\nk f32[2, 2, 5, 4]\nv f32[2, 2, 5, 3]",
     "%y, %1 = attention(%a, %k, %v) : f32[2, 2, 3, 3], f32[2, 2, 3, 1]", "[2, 2, 3, 3]", -1, 1},
    {"a f32[4, 3, 2]\nk f32[2, 3, 2]\nv f32[2, 3, 1]",
     "%y, %1 = attention(%a, %k, %v; causal = true, scale = 0.7) : f32[4, 3, 1], f32[4, 3, 1]", "[4, 3, 1]", -1, 1},
    {"in x f32[N, 2, 3, 4]\ns f32[4]\nm f32[3, 3]",
     "%h = mul(%x, %s) : f32[N, 2, 3, 4]\n%y, %1 = attention(%h, %h, %h, %m) : f32[N, 2, 3, 4], f32[N, 2, 3, 1]",
     "[N, 2, 3, 4]", -1, 1},
    {"a f32[2, 3, 2]\nk f32[2, 4, 2]\nmask c bool[2, 3, 4]",
     "%y, %1 = attention(%a, %k, %k, %c) : f32[2, 3, 2], f32[2, 3, 1]", "[2, 3, 2]", -1, 1},
    {"a f32[2, 3, 2]\nk f32[1, 4, 2]\nv f32[1, 4, 2]\nm f32[2, 1, 4]",
     "%y, %1 = attention(%a, %k, %v, %m; causal = true) : f32[2, 3, 2], f32[2, 3, 1]", "[2, 3, 2]", -1, 1},

    // arithmetic
    {"a f32[3, 4]\nb f32[3, 4]", "%y = add(%a, %b) : f32[3, 4]", "[3, 4]", -1, 1},
    {"a f32[3, 1]\nb f32[1, 4]", "%y = add(%a, %b) : f32[3, 4]", "[3, 4]", -1, 1},
    {"a f32[2, 1, 4]\nb f32[3, 1]", "%y = sub(%a, %b) : f32[2, 3, 4]", "[2, 3, 4]", -1, 1},
    {"a f32[2, 3]\nb f32", "%y = sub(%b, %a) : f32[2, 3]", "[2, 3]", -1, 1},
    {"a f32[2, 3]\nb f32[3]", "%y = mul(%a, %b) : f32[2, 3]", "[2, 3]", -1, 1},
    {"a f32[1]\nb f32", "%y = mul(%a, %b) : f32[1]", "[1]", -1, 1},
    {"a f32[2, 3]\nb f32[2, 1]", "%y = div(%a, %b) : f32[2, 3]", "[2, 3]"},
    {"a f32[3]\nb f32[2, 3]", "%y = div(%a, %b) : f32[2, 3]", "[2, 3]"},
    {"a f32[2, 3]", "%y = abs(%a) : f32[2, 3]", "[2, 3]", -1, 1},
    {"a f32[2, 3]", "%y = pow(%a; e = 2.5) : f32[2, 3]", "[2, 3]"},
    {"a f32[2, 3]", "%y = pow(%a; e = 3.0) : f32[2, 3]", "[2, 3]", -1, 1},
    {"a f32[2, 3]", "%y = pow(%a; e = 0.0) : f32[2, 3]", "[2, 3]"},
    {"a f32[4, 5]", "%y = clamp(%a; low = -0.4, high = 0.3) : f32[4, 5]", "[4, 5]", -1, 1},
    {"a f32[4, 5]", "%y = clamp(%a; low = 0.1) : f32[4, 5]", "[4, 5]", -1, 1},
    {"a f32[4, 5]", "%y = clamp(%a; high = 0.1) : f32[4, 5]", "[4, 5]", -1, 1},
    {"mask m f32[3, 4]\na f32[3, 4]\nb f32[3, 4]",
     "%h = const(; value = 0.5) : f32\n%c = lt(%m, %h) : bool[3, 4]\n%y = where(%c, %a, %b) : f32[3, 4]", "[3, 4]", -1,
     1},
    {"mask m f32[3, 1]\na f32[4]\nb f32[2, 3, 1]",
     "%h = const(; value = 0.5) : f32\n%c = lt(%m, %h) : bool[3, 1]\n%y = where(%c, %a, %b) : f32[2, 3, 4]",
     "[2, 3, 4]", -1, 1},
    {"mask m f32[2, 3, 4]\na f32[4]\nb f32",
     "%h = const(; value = 0.5) : f32\n%c = lt(%m, %h) : bool[2, 3, 4]\n%y = where(%c, %a, %b) : f32[2, 3, 4]",
     "[2, 3, 4]", -1, 1},
    {"a f32[2, 3]", "%y = cast(%a) : f32[2, 3]", "[2, 3]", -1, 1},

    // activations
    {"a f32[3, 4]", "%y = relu(%a) : f32[3, 4]", "[3, 4]", -1, 1},
    {"a f32[3, 4]\nb f32[3, 4]", "%y = maximum(%a, %b) : f32[3, 4]", "[3, 4]", -1, 1},
    {"a f32[3, 1]\nb f32[2, 1, 4]", "%y = minimum(%a, %b) : f32[2, 3, 4]", "[2, 3, 4]", -1, 1},
    {"a f32[3, 4]\nw f32[4]", "%y = prelu(%a, %w) : f32[3, 4]", "[3, 4]", -1, 1},
    {"a f32[2, 3, 2, 5]\nw f32[3]", "%y = prelu(%a, %w) : f32[2, 3, 2, 5]", "[2, 3, 2, 5]", -1, 1},
    {"in x f32[N, 5]\na f32[5]\nw f32[1]", "%h = mul(%x, %a) : f32[N, 5]\n%y = prelu(%h, %w) : f32[N, 5]", "[N, 5]", -1,
     1},
    {"a f32[3, 4]", "%y = softplus(%a) : f32[3, 4]", "[3, 4]", 21, 25},
    {"a f32[5, 7]", "%y = dropout(%a; p = 0.4, key = \"k\") : f32[5, 7]", "[5, 7]", -1, 1},
    {"a f32[5, 7]", "%h = dropout(%a; p = 0.4) : f32[5, 7] @d\n%y = mul(%h, %h) : f32[5, 7]", "[5, 7]", -1, 1},

    // movement
    {"a f32[2, 6]", "%y = reshape(%a) : f32[3, 1, 4]", "[3, 1, 4]", -1, 1},
    {"a f32[1]", "%y = reshape(%a) : f32", "", -1, 1},
    {"in x f32[N, 6]\na f32[6]", "%h = mul(%x, %a) : f32[N, 6]\n%y = reshape(%h) : f32[2 * N, 3]", "[2 * N, 3]", -1, 1},
    {"a f32[2, 3, 4]", "%y = flatten(%a) : f32[2, 12]", "[2, 12]", -1, 1},
    {"a f32[2, 3, 1, 4]", "%y = flatten(%a; from = 2) : f32[2, 3, 4]", "[2, 3, 4]", -1, 1},
    {"a f32[2, 3, 4]", "%y = transpose(%a) : f32[2, 4, 3]", "[2, 4, 3]", -1, 1},
    {"a f32[2, 3, 4]", "%y = transpose(%a; a = 0, b = 2) : f32[4, 3, 2]", "[4, 3, 2]", -1, 1},
    {"a f32[2, 3, 4]", "%y = permute(%a; dims = (2, 0, 1)) : f32[4, 2, 3]", "[4, 2, 3]", -1, 1},
    {"a f32[2, 3, 4, 5]", "%y = permute(%a; dims = (1, 3, 0, 2)) : f32[3, 5, 2, 4]", "[3, 5, 2, 4]", -1, 1},
    {"a f32[4, 5]", "%y = slice(%a; dim = 0, from = 1, to = 3) : f32[2, 5]", "[2, 5]", -1, 1},
    {"a f32[4, 5]", "%y = slice(%a; dim = -1, from = 0, to = 5) : f32[4, 5]", "[4, 5]", -1, 1},
    {"a f32[2, 5, 3]", "%y = slice(%a; dim = 1, from = 4, to = 5) : f32[2, 1, 3]", "[2, 1, 3]", -1, 1},
    {"a f32[2, 3]", "%y = pad(%a; dim = 1, before = 2, after = 1) : f32[2, 6]", "[2, 6]", -1, 1},
    {"a f32[2, 1, 3]", "%y = pad(%a; dim = -2, before = 0, after = 2, value = 3.0) : f32[2, 3, 3]", "[2, 3, 3]", -1, 1},
    {"a f32[2, 3]\nb f32[2, 1]\nc f32[2, 4]", "%y = concat(%a, %b, %c; dim = 1) : f32[2, 8]", "[2, 8]", -1, 1},
    {"a f32[2, 3, 2]\nb f32[1, 3, 2]", "%y = concat(%a, %b, %a; dim = 0) : f32[5, 3, 2]", "[5, 3, 2]", -1, 1},
    {"a f32[2, 3]", "%y = concat(%a; dim = -1) : f32[2, 3]", "[2, 3]", -1, 1},
    {"a f32[2, 3]\nb f32[2, 3]", "%y = stack(%a, %b) : f32[2, 2, 3]", "[2, 2, 3]", -1, 1},
    {"a f32[2, 3]\nb f32[2, 3]", "%y = stack(%a, %b, %a; dim = -1) : f32[2, 3, 3]", "[2, 3, 3]", -1, 1},
    {"a f32\nb f32", "%y = stack(%a, %b) : f32[2]", "[2]", -1, 1},
    {"a f32[3, 1]", "%y = expand(%a) : f32[2, 3, 4]", "[2, 3, 4]", -1, 1},
    {"a f32", "%y = expand(%a) : f32[2, 3]", "[2, 3]", -1, 1},
    {"a f32[4]", "%y = expand(%a) : f32[N, 4]", "[N, 4]", -1, 1},
    {"ids i i32[5]\nt f32[4, 3]", "%y = embedding(%i, %t) : f32[5, 3]", "[5, 3]", -1, 1},
    {"ids i i32[N, 2]\nt f32[4, 1]", "%y = embedding(%i, %t) : f32[N, 2, 1]", "[N, 2, 1]", -1, 1},

    // pooling
    {"a f32[2, 3, 4, 6]",
     "%y, %w = max_pool2d(%a; kernel = (2, 2), stride = (2, 2)) : f32[2, 3, 2, 3], i32[2, 3, 2, 3]", "[2, 3, 2, 3]", -1,
     1},
    {"a f32[2, 1, 5, 7]",
     "%y, %w = max_pool2d(%a; kernel = (3, 2), stride = (1, 2), padding = (1, 1)) : f32[2, 1, 5, 4], i32[2, 1, 5, 4]",
     "[2, 1, 5, 4]", -1, 1},
    {"a f32[1, 2, 3, 3]", "%y, %w = max_pool2d(%a) : f32[1, 2, 3, 3], i32[1, 2, 3, 3]", "[1, 2, 3, 3]", -1, 1},
    {"a f32[2, 3, 4, 6]", "%y = avg_pool2d(%a; kernel = (2, 3), stride = (2, 3)) : f32[2, 3, 2, 2]", "[2, 3, 2, 2]", -1,
     1},
    {"a f32[2, 1, 5, 7]", "%y = avg_pool2d(%a; kernel = (3, 2), stride = (1, 2), padding = (1, 1)) : f32[2, 1, 5, 4]",
     "[2, 1, 5, 4]", -1, 1},
    {"a f32[2, 3, 4, 5]", "%y = global_avg_pool(%a) : f32[2, 3]", "[2, 3]", -1, 1},
    {"a f32[2, 1, 1, 1]", "%y = global_avg_pool(%a) : f32[2, 1]", "[2, 1]", -1, 1},

    // normalisation
    {"a f32[4, 3]\nw f32[3]\nb f32[3]\nbuffer m f32[3]\nbuffer v f32[3]",
     "%y, %1, %2, %3 = batch_norm(%a, %w, %b, %m, %v) : f32[4, 3], f32[3], f32[3], f32[3]", "[4, 3]", -1, 1},
    {"a f32[2, 3, 2, 3]\nw f32[3]\nb f32[3]\nbuffer m f32[3]\nbuffer v f32[3]",
     "%y, %1, %2, %3 = batch_norm(%a, %w, %b, %m, %v; eps = 0.1) : f32[2, 3, 2, 3], f32[3], f32[3], f32[3]",
     "[2, 3, 2, 3]", -1, 1},
    {"a f32[5, 1, 3]\nw f32[1]\nb f32[1]\nbuffer m f32[1]\nbuffer v f32[1]",
     "%y, %1, %2, %3 = batch_norm(%a, %w, %b, %m, %v; eps = 0.001) : f32[5, 1, 3], f32[1], f32[1], f32[1]", "[5, 1, 3]",
     -1, 1},
    {"a f32[4, 5]\nw f32[5]\nb f32[5]", "%y, %1, %2 = layer_norm(%a, %w, %b) : f32[4, 5], f32[4, 1], f32[4, 1]",
     "[4, 5]", -1, 1},
    {"a f32[2, 3, 5]\nw f32[5]",
     "%y, %1, %2 = layer_norm(%a, %w; eps = 0.1) : f32[2, 3, 5], f32[2, 3, 1], f32[2, 3, 1]", "[2, 3, 5]", -1, 1},
    {"a f32[2, 2, 5, 4]", "%y = adaptive_avg_pool2d(%a; out = (2, 3)) : f32[2, 2, 2, 3]", "[2, 2, 2, 3]", -1, 1},
    {"a f32[1, 2, 4, 4]", "%y = adaptive_avg_pool2d(%a; out = (2, 1)) : f32[1, 2, 2, 1]", "[1, 2, 2, 1]", -1, 1},
    {"a f32[2, 2, 2, 3]", "%y = upsample(%a; scale = (2, 1)) : f32[2, 2, 4, 3]", "[2, 2, 4, 3]", -1, 1},
    {"a f32[2, 2, 2, 3]", "%y = upsample(%a; scale = (2, 3), mode = bilinear) : f32[2, 2, 4, 9]", "[2, 2, 4, 9]", -1,
     1},
    {"a f32[1, 2, 3, 2]", "%y = upsample(%a; mode = bilinear, align_corners = true) : f32[1, 2, 6, 4]", "[1, 2, 6, 4]",
     -1, 1},
    {"a f32[2, 4, 2, 3]\nw f32[4]\nb f32[4]",
     "%y, %1, %2 = group_norm(%a, %w, %b; groups = 2) : f32[2, 4, 2, 3], f32[2, 4], f32[2, 4]", "[2, 4, 2, 3]", -1, 1},
    {"a f32[3, 6]\nw f32[6]",
     "%y, %1, %2 = group_norm(%a, %w; groups = 3, eps = 0.1) : f32[3, 6], f32[3, 6], f32[3, 6]", "[3, 6]", -1, 1},
    {"a f32[2, 3, 4]\nw f32[3]\nb f32[3]",
     "%y, %1, %2 = instance_norm(%a, %w, %b) : f32[2, 3, 4], f32[2, 3], f32[2, 3]", "[2, 3, 4]", -1, 1},
    {"a f32[4, 5]\nw f32[5]", "%y, %1 = rms_norm(%a, %w) : f32[4, 5], f32[4, 1]", "[4, 5]", -1, 1},
    {"a f32[2, 3, 5]\nw f32[5]", "%y, %1 = rms_norm(%a, %w; eps = 0.1) : f32[2, 3, 5], f32[2, 3, 1]", "[2, 3, 5]", -1,
     1},
    {"a f32[3, 4]", "%y = softmax(%a) : f32[3, 4]", "[3, 4]", -1, 1},
    {"a f32[2, 3, 4]", "%y = softmax(%a; dim = 1) : f32[2, 3, 4]", "[2, 3, 4]", -1, 1},
    {"a f32[3, 1]", "%y = softmax(%a; dim = 0) : f32[3, 1]", "[3, 1]", -1, 1},
    {"a f32[3, 4]", "%y = log_softmax(%a) : f32[3, 4]", "[3, 4]", -1, 1},
    {"a f32[2, 3, 4]", "%y = log_softmax(%a; dim = 0) : f32[2, 3, 4]", "[2, 3, 4]", -1, 1},

    // reductions
    {"a f32[2, 3, 4]", "%y = sum(%a) : f32", "", -1, 1},
    {"a f32[2, 3, 4]", "%y = sum(%a; dims = (0, 2)) : f32[3]", "[3]", -1, 1},
    {"a f32[2, 3, 4]", "%y = sum(%a; dims = (-2), keep = true) : f32[2, 1, 4]", "[2, 1, 4]", -1, 1},
    {"a f32[2, 3, 4]", "%y = mean(%a) : f32", "", -1, 1},
    {"a f32[2, 3, 4]", "%y = mean(%a; dims = (1, 2)) : f32[2]", "[2]", -1, 1},
    {"a f32[2, 3, 4]", "%y = mean(%a; dims = (0), keep = true) : f32[1, 3, 4]", "[1, 3, 4]", -1, 1},
    {"a f32[2, 3, 4]", "%y = max(%a) : f32", "", -1, 1},
    {"a f32[2, 3, 4]", "%y = max(%a; dims = (1)) : f32[2, 4]", "[2, 4]", -1, 1},
    {"a f32[2, 3, 4]", "%y = max(%a; dims = (0, 2), keep = true) : f32[1, 3, 1]", "[1, 3, 1]", -1, 1},
    {"a f32[2, 3, 4]", "%y = min(%a) : f32", "", -1, 1},
    {"a f32[2, 3, 4]", "%y = min(%a; dims = (-1)) : f32[2, 3]", "[2, 3]", -1, 1},
    {"a f32[2, 1, 4]", "%y = min(%a; dims = (1), keep = true) : f32[2, 1, 4]", "[2, 1, 4]", -1, 1},
    {"a f32[2, 3, 4]", "%y = var(%a) : f32", "", -1, 1},
    {"a f32[2, 3, 4]", "%y = var(%a; dims = (0, 1), correction = 0) : f32[4]", "[4]", -1, 1},
    {"a f32[2, 3, 4]", "%y = var(%a; dims = (2), correction = 2, keep = true) : f32[2, 3, 1]", "[2, 3, 1]", -1, 1},

    // losses
    {"a f32[5, 4]\nids t i32[5]", "%y = nll_loss(%a, %t) : f32", "", -1, 1},
    {"a f32[5, 4]\nids t i32[5]", "%y = nll_loss(%a, %t; label_smoothing = 0.2, ignore = 1) : f32", "", -1, 1},
    {"a f32[2, 3, 4]\nids t i32[2, 3]", "%y = nll_loss(%a, %t; label_smoothing = 0.1) : f32", "", -1, 1},
    {"a f32[3, 4]\nb f32[3, 4]", "%y = mse_loss(%a, %b) : f32", "", -1, 1},
    {"a f32\nb f32", "%y = mse_loss(%a, %b) : f32", "", -1, 1},
    {"a f32[3, 4]\nb f32[3, 4]", "%y = bce_with_logits(%a, %b) : f32", "", -2, 2},
    {"a f32[1]\nb f32[1]", "%y = bce_with_logits(%a, %b) : f32", "", -2, 2},
    {"a f32[5, 4]\nids t i32[5]\nbuffer w f32[4]", "%y = nll_loss(%a, %t, %w) : f32", "", 0.4, 1.6},
    {"a f32[2, 3, 4]\nids t i32[2, 3]\nbuffer w f32[4]",
     "%y = nll_loss(%a, %t, %w; label_smoothing = 0.2, ignore = 1) : f32", "", 0.4, 1.6},
    {"a f32[3, 4]\nb f32[3, 4]", "%y = l1_loss(%a, %b) : f32", "", -1, 1},
    {"a f32[3, 4]\nb f32[3, 4]", "%y = smooth_l1_loss(%a, %b; beta = 0.5) : f32", "", -1, 1},
    {"a f32[5]\nb f32[5]", "%y = smooth_l1_loss(%a, %b; beta = 0.0) : f32", "", -1, 1},
    {"a f32[3, 4]\nb f32[3, 4]", "%y = huber_loss(%a, %b; delta = 0.6) : f32", "", -1, 1},
    {"a f32[3, 4]\nb f32[3, 4]", "%y = kl_div(%a, %b) : f32", ""},
    {"a f32[2, 3]\nb f32[2, 3]", "%y = kl_div(%a, %b; reduction = mean) : f32", ""},

    // folds
    {"a f32[2, 5]", "%y = cumsum(%a; dim = 1) : f32[2, 5]", "[2, 5]", -1, 1},
    {"a f32[3, 2, 2]", "%y = cumsum(%a; dim = 0, reverse = true) : f32[3, 2, 2]", "[3, 2, 2]", -1, 1},
    {"a f32[2, 3, 4]", "%y = logsumexp(%a; dims = (2)) : f32[2, 3]", "[2, 3]", -1, 1},
    {"a f32[2, 3, 4]", "%y = logsumexp(%a; dims = (0, 1), keep = true) : f32[1, 1, 4]", "[1, 1, 4]", -1, 1},
    {"a f32[2, 3]", "%y = logsumexp(%a) : f32", "", -1, 1},
    {"a f32[3, 6]", "%y, %w = top_k(%a; k = 2) : f32[3, 2], i32[3, 2]", "[3, 2]", -1, 1},
    {"a f32[2, 4, 3]", "%y, %w = top_k(%a; k = 3, dim = 1) : f32[2, 3, 3], i32[2, 3, 3]", "[2, 3, 3]", -1, 1},
    {"a f32[2, 3, 4]", "%y = norm(%a; dims = (1), p = inf) : f32[2, 4]", "[2, 4]", -1, 1},
    {"a f32[2, 3]", "%y = norm(%a; p = 0.0) : f32", "", -1, 1},
    {"a f32[2, 3, 4]", "%y = norm(%a; dims = (1)) : f32[2, 4]", "[2, 4]", -1, 1},
    {"a f32[2, 3]", "%y = norm(%a; p = 1.0) : f32", "", -1, 1},
    {"a f32[2, 3]", "%y = norm(%a; dims = (1), keep = true, p = 3.0) : f32[2, 1]", "[2, 1]", -1, 1},
    {"a f32[2, 3]", "%y = norm(%a; dims = (0), p = 0.5) : f32[3]", "[3]"},
    {"a f32[2, 3, 4]", "%y = prod(%a; dims = (2)) : f32[2, 3]", "[2, 3]", -1, 1},
    {"a f32[2, 3]", "%y = prod(%a) : f32", ""},
    {"a f32[2, 3, 2]", "%y = prod(%a; dims = (0, 2), keep = true) : f32[1, 3, 1]", "[1, 3, 1]", -1, 1},
};

inline std::vector<GradientCase> GradientCases() {
    std::vector<GradientCase> all(std::begin(kGradientCases), std::end(kGradientCases));
    for (const PointwiseRow &row : PointwiseRows())
        all.push_back({"a f32[3, 4]", "%y = " + row.Call("%a") + " : f32[3, 4]", "[3, 4]", row.low, row.high});
    return all;
}

#endif
