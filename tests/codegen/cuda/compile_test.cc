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

// More pointers, or values of a thread, than it has registers.
TEST_F(CudaModelTest, OfManyOperands) {
    constexpr int kMany = 64;
    std::string inputs, names, slices, results, counters, scalars;
    for (int i = 0; i < kMany; i++) {
        const std::string at = std::to_string(i);
        inputs += "  input %x" + at + " : f16[N, 1, 256]\n";
        names += (i ? ", %x" : "%x") + at;
        slices += "  %s" + at + " = slice(%x; dim = 1, from = " + at + ", to = " + std::to_string(i + 1) +
                  ") : f16[N, 1, 256]\n";
        counters += "  input %c" + at + " : i64\n";
        scalars += "  %n" + at + " = increment(%c" + at + ") : i64\n";
        results += "  result s" + at + " = %s" + at + "\n";
    }
    CompileForAll(Text(inputs + "  %y = concat(" + names + "; dim = 1) : f16[N, 64, 256]\n  result y = %y\n"));
    CompileForAll(Text("  input %x : f16[N, 64, 256]\n" + slices + results));
    // One thread makes some scalars each, in the launch of the elements.
    results = "  result y = %y\n";
    for (int i = 0; i < kMany; i++) results += "  result n" + std::to_string(i) + " = %n" + std::to_string(i) + "\n";
    CompileForAll(Text("  input %x : f32[33, 24]\n  input %n : f32[N]\n" + counters + scalars +
                       "  %y = exp(%x) : f32[33, 24]\n" + results + "  result n = %n\n"));
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

// The statistics of a batch norm, whose two passes are one function.
TEST_F(CudaModelTest, BatchNorm) {
    CompileForAll(Text(R"(  input %x : f16[N, 56, 56, 64]
  input %weight : f32[64]
  input %mean : f32[64]
  input %var : f32[64]
  input %count : f32
  input %less : f32
  %f = cast(%x) : f32[N, 56, 56, 64]
  %s = reduce_sum(%f; dims = (1, 2), keep = true) : f32[N, 1, 1, 64]
  %pixels = const(; value = 3136.0) : f32
  %m = div(%s, %pixels) : f32[N, 1, 1, 64]
  %e = expand(%m) : f32[N, 56, 56, 64]
  %d = sub(%f, %e) : f32[N, 56, 56, 64]
  %q = mul(%d, %d) : f32[N, 56, 56, 64]
  %qs = reduce_sum(%q; dims = (1, 2)) : f32[N, 64]
  %r = reshape(%m) : f32[N, 64]
  %ms = reduce_sum(%r; dims = (0)) : f32[64]
  %n = extent(%x; dims = (0)) : f32
  %new = div(%ms, %n) : f32[64]
  %tenth = const(; value = 0.1) : f32
  %rest = const(; value = 0.9) : f32
  %a = mul(%tenth, %new) : f32[64]
  %b = mul(%rest, %mean) : f32[64]
  %running_mean = add(%b, %a) : f32[64]
  %dm = sub(%r, %new) : f32[N, 64]
  %dq = mul(%dm, %dm) : f32[N, 64]
  %dqs = reduce_sum(%dq; dims = (0)) : f32[64]
  %qss = reduce_sum(%qs; dims = (0)) : f32[64]
  %between = mul(%dqs, %pixels) : f32[64]
  %all = add(%qss, %between) : f32[64]
  %v = div(%all, %count) : f32[64]
  %eps = const(; value = 1.0e-05) : f32
  %ve = add(%v, %eps) : f32[64]
  %std = sqrt(%ve) : f32[64]
  %one = const(; value = 1.0) : f32
  %inverse = div(%one, %std) : f32[64]
  %unbiased = div(%all, %less) : f32[64]
  %scale = mul(%inverse, %weight) : f32[64]
  %g = mul(%tenth, %unbiased) : f32[64]
  %h = mul(%rest, %var) : f32[64]
  %running_var = add(%h, %g) : f32[64]
  result new = %new
  result running_mean = %running_mean
  result inverse = %inverse
  result scale = %scale
  result running_var = %running_var
)"));
}

} // namespace
