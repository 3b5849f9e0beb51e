// compile_test.cc: what is emitted for CUDA is CUDA C for every architecture, without warnings and spills.
#include "tests/codegen/cuda/cuda_model.h"

namespace {

TEST_F(CudaModelTest, Elementwise) {
    CompileForAll(Text(R"(  input %x : f32[N, 784]
  input %h : f16[N, 784]
  input %b : bf16[N, 784]
  input %i : i32[N, 784]
  input %p : bool[N, 784]
  input %c : f32[784]
  input %r : f32[N, 1]
  input %s : f32
  %hf = cast(%h) : f32[N, 784]
  %bf = cast(%b) : f32[N, 784]
  %a = add(%x, %hf) : f32[N, 784]
  %e = exp(%a) : f32[N, 784]
  %l = log(%bf) : f32[N, 784]
  %t = tanh(%l) : f32[N, 784]
  %f = erf(%t) : f32[N, 784]
  %q = sqrt(%f) : f32[N, 784]
  %d = div(%q, %s) : f32[N, 784]
  %w = pow(%d; e = 1.5) : f32[N, 784]
  %h2 = cast(%e) : f16[N, 784]
  %b2 = cast(%w) : bf16[N, 784]
  %t2 = cast(%w) : tf32[N, 784]
  %m = maximum(%x, %s) : f32[N, 784]
  %sel = select(%p, %m, %x) : f32[N, 784]
  %fi = is_finite(%sel) : bool[N, 784]
  %nf = not(%fi) : bool[N, 784]
  %any = reduce_or(%nf) : bool
  %pc = add(%x, %c) : f32[N, 784]
  %pr = mul(%pc, %r) : f32[N, 784]
  %xi = cast(%x) : i32[N, 784]
  %ii = add(%xi, %i) : i32[N, 784]
  result h2 = %h2
  result b2 = %b2
  result t2 = %t2
  result sel = %sel
  result any = %any
  result pr = %pr
  result ii = %ii
)"));
}

TEST_F(CudaModelTest, Softmax) {
    for (const char *cols : {"10", "33", "1000", "1024", "1536", "20000"}) {
        std::string body = R"(  input %x : f16[N, C]
  input %g : f32[C]
  %f = cast(%x) : f32[N, C]
  %m = reduce_max(%f; dims = (1), keep = true) : f32[N, 1]
  %d = sub(%f, %m) : f32[N, C]
  %e = exp(%d) : f32[N, C]
  %s = reduce_sum(%e; dims = (1), keep = true) : f32[N, 1]
  %y = div(%e, %s) : f32[N, C]
  %z = mul(%y, %g) : f32[N, C]
  %h = cast(%z) : f16[N, C]
  result h = %h
  result s = %s
)";
        for (size_t at; (at = body.find(", C]")) != std::string::npos;)
            body.replace(at, 4, std::string(", ") + cols + "]");
        for (size_t at; (at = body.find("[C]")) != std::string::npos;)
            body.replace(at, 3, std::string("[") + cols + "]");
        CompileForAll(Text(body));
    }
}

TEST_F(CudaModelTest, Columns) {
    CompileForAll(Text(R"(  input %x : f16[N, 512]
  input %y : f32[N]
  input %z : f32[N, 10]
  input %b : f32[N, 14, 14, 48]
  %f = cast(%x) : f32[N, 512]
  %s = reduce_sum(%f; dims = (0)) : f32[512]
  %h = cast(%s) : f16[512]
  %t = reduce_sum(%y; dims = (0)) : f32
  %n = extent(%y) : f32
  %mean = div(%t, %n) : f32
  %m = reduce_max(%z; dims = (0)) : f32[10]
  %p = reduce_sum(%b; dims = (1, 2)) : f32[N, 48]
  %c = const(; value = 196.0) : f32
  %q = div(%p, %c) : f32[N, 48]
  result h = %h
  result mean = %mean
  result m = %m
  result q = %q
)"));
}

} // namespace
