// parts_test.cc: values that are parts of the rows of others (passes/launch/parts.c), made and read by every kind of
// kernel, against the interpreter.
#include "ir/places.h"
#include "tests/codegen/cuda/cuda_run.h"

namespace {

class PartsTest : public CudaRunTest {
  protected:
    // Checks the model, in which |parts| buffers are parts, and |still| kernels have nothing to do.
    void CheckParts(const std::string &body, int parts, int still, double tolerance) {
        const Module *m = PlannedForCuda(Text(body));
        ASSERT_NE(m, nullptr);
        const Func *f = m->funcs.data[0];
        int found = 0, stand = 0;
        for (int i = 0; i < f->buffers.len; i++) found += f->buffers.data[i]->is_part;
        for (int i = 0; i < f->kernels.len; i++) stand += ir_is_still(f, f->kernels.data[i]);
        EXPECT_EQ(parts, found);
        EXPECT_EQ(still, stand);
        CudaRunTest::Check(Text(body), {1, 3}, tolerance, false, 75);
    }
};

// As a UNet: a convolution reads what two kernels have made side by side; the gradients of both are read where its
// gradient is, by windows with and without a stride, by sums and by products.
TEST_F(PartsTest, Images) {
    CheckParts(R"(  input %x : f16[N, 6, 4, 8]
  input %low : f16[N, 3, 2, 24]
  input %w1 : f16[3, 3, 8, 8]
  input %wup : f16[2, 2, 24, 16]
  input %w2 : f16[3, 3, 24, 32]
  input %w3 : f16[1, 1, 8, 16]
  input %w4 : f16[3, 3, 16, 8]
  input %dy : f16[N, 6, 4, 32]
  %1 = conv(%x, %w1; padding = (1, 1)) : f32[N, 6, 4, 8]
  %left = cast(%1) : f16[N, 6, 4, 8]
  %2 = conv_data(%low, %wup; stride = (2, 2)) : f32[N, 6, 4, 16]
  %up = cast(%2) : f16[N, 6, 4, 16]
  %both = concat(%left, %up; dim = 3) : f16[N, 6, 4, 24]
  %y = conv(%both, %w2; padding = (1, 1)) : f32[N, 6, 4, 32]
  %left.f32 = cast(%left) : f32[N, 6, 4, 8]
  %pooled, %which = window_max(%left.f32; kernel = (2, 2), stride = (2, 2)) : f32[N, 3, 2, 8], i32[N, 3, 2, 8]
  %narrow = conv(%left, %w3) : f32[N, 6, 4, 16]
  %wide = conv(%up, %w4; padding = (1, 1), stride = (2, 1)) : f32[N, 3, 4, 8]
  %dw2 = conv_weight(%both, %dy; padding = (1, 1)) : f32[3, 3, 24, 32]
  %w2t = permute(%w2; dims = (0, 1, 3, 2)) : f16[3, 3, 32, 24]
  %3 = conv_data(%dy, %w2t; padding = (1, 1)) : f32[N, 6, 4, 24]
  %d = cast(%3) : f16[N, 6, 4, 24]
  %dleft = slice(%d; dim = 3, from = 0, to = 8) : f16[N, 6, 4, 8]
  %dup = slice(%d; dim = 3, from = 8, to = 24) : f16[N, 6, 4, 16]
  %wupt = permute(%wup; dims = (0, 1, 3, 2)) : f16[2, 2, 16, 24]
  %dlow = conv(%dup, %wupt; stride = (2, 2)) : f32[N, 3, 2, 24]
  %dwup = conv_weight(%dup, %low; stride = (2, 2)) : f32[2, 2, 16, 24]
  %dw1 = conv_weight(%x, %dleft; padding = (1, 1)) : f32[3, 3, 8, 8]
  %w1t = permute(%w1; dims = (0, 1, 3, 2)) : f16[3, 3, 8, 8]
  %dx = conv_data(%dleft, %w1t; padding = (1, 1)) : f32[N, 6, 4, 8]
  %dup.f32 = cast(%dup) : f32[N, 6, 4, 16]
  %bias = reduce_sum(%dup.f32; dims = (0, 1, 2)) : f32[16]
  %mean = reduce_sum(%left.f32; dims = (1, 2)) : f32[N, 8]
  result y = %y
  result pooled = %pooled
  result narrow = %narrow
  result wide = %wide
  result dw2 = %dw2
  result dlow = %dlow
  result dwup = %dwup
  result dw1 = %dw1
  result dx = %dx
  result bias = %bias
  result mean = %mean
  result which = %which
)",
               4, 3, 3e-2);
}

// Rows: a part that a row kernel makes, one that products read as A, down and beside their sums, and one of integers;
// concats of concats; a slice of a concat.
TEST_F(PartsTest, Rows) {
    CheckParts(R"(  input %x : f16[4 * N, 48]
  input %w : f16[48, 16]
  input %v : f16[32, 24]
  input %dy : f16[4 * N, 24]
  %1 = contract(%x, %w) : f32[4 * N, 16]
  %a = cast(%1) : f16[4 * N, 16]
  %2 = cast(%x) : f32[4 * N, 48]
  %3 = reduce_max(%2; dims = (1), keep = true) : f32[4 * N, 1]
  %4 = contract(%x, %w) : f32[4 * N, 16]
  %5 = mul(%4, %3) : f32[4 * N, 16]
  %b = cast(%5) : f16[4 * N, 16]
  %ab = concat(%a, %b; dim = 1) : f16[4 * N, 32]
  %square = mul(%2, %2) : f32[4 * N, 48]
  %x2 = cast(%square) : f16[4 * N, 48]
  %all = concat(%ab, %x2; dim = 1) : f16[4 * N, 80]
  %6 = contract(%ab, %v) : f32[4 * N, 24]
  %dv = contract(%ab, %dy; ta = true) : f32[32, 24]
  %cut = slice(%all; dim = 1, from = 8, to = 24) : f16[4 * N, 16]
  %7 = contract(%cut, %w; tb = true) : f32[4 * N, 48]
  %8 = contract(%x, %w) : f32[4 * N, 16]
  %cut.f32 = cast(%cut) : f32[4 * N, 16]
  %9 = add(%8, %cut.f32) : f32[4 * N, 16]
  %a.f32 = cast(%a) : f32[4 * N, 16]
  %10 = reduce_max(%a.f32; dims = (1)) : f32[4 * N]
  result six = %6
  result dv = %dv
  result seven = %7
  result nine = %9
  result ten = %10
)",
               5, 3, 3e-2);
}

// One row of several: the rows of the first token, which lie a sample's rows apart.
TEST_F(PartsTest, OneRowOfSeveral) {
    CheckParts(R"(  input %x : f16[N, 5, 24]
  input %w : f16[24, 32]
  input %v : f16[32, 8]
  %1 = contract(%x, %w) : f32[N, 5, 32]
  %y = cast(%1) : f16[N, 5, 32]
  %second = slice(%y; dim = 1, from = 1, to = 2) : f16[N, 1, 32]
  %2 = contract(%second, %v) : f32[N, 1, 8]
  %3 = contract(%y, %v) : f32[N, 5, 8]
  result two = %2
  result three = %3
)",
               1, 1, 3e-2);
}

// What no vector begins or ends at, what a user sees, what has a place already, and one operand twice are copied.
TEST_F(PartsTest, WhatIsCopied) {
    for (const char *body : {R"(  input %x : f16[N, 24]
  input %w : f16[24, 12]
  %1 = contract(%x, %w) : f32[N, 12]
  %a = cast(%1) : f16[N, 12]
  %e = exp(%1) : f32[N, 12]
  %b = cast(%e) : f16[N, 12]
  %both = concat(%a, %b; dim = 1) : f16[N, 24]
  %2 = contract(%both, %w) : f32[N, 12]
  result two = %2
)",
                             R"(  input %x : f16[N, 24]
  input %w : f16[24, 16]
  input %v : f16[32, 8]
  %1 = contract(%x, %w) : f32[N, 16]
  %a = cast(%1) : f16[N, 16]
  %both = concat(%a, %a; dim = 1) : f16[N, 32]
  %2 = contract(%both, %v) : f32[N, 8]
  result two = %2
)",
                             R"(  input %x : f16[N, 16]
  input %y : f16[N, 16]
  input %v : f16[32, 8]
  %both = concat(%x, %y; dim = 1) : f16[N, 32]
  %2 = contract(%both, %v) : f32[N, 8]
  result two = %2
)"})
        CheckParts(body, 0, 0, 3e-2);
}

} // namespace
