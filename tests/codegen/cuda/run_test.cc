// run_test.cc: elementwise kernels for CUDA compute the bits of the CPU's, whatever the types, sizes and operands.
#include "base/hash.h"
#include "base/random.h"
#include "tests/codegen/cuda/cuda_run.h"
#include "tests/ops/pointwise.h"

namespace {

// Every type, and every kind of operand, beside f32 and 16-bit results.
const char elementwise[] = R"(  input %x : f32[N, COLS]
  input %h : f16[N, COLS]
  input %b : bf16[N, COLS]
  input %i : i32[N, COLS]
  input %p : bool[N, COLS]
  input %u : u8[N, COLS]
  input %c : f32[COLS]
  input %r : f32[N, 1]
  input %s : f32
  %hf = cast(%h) : f32[N, COLS]
  %bf = cast(%b) : f32[N, COLS]
  %a = add(%x, %hf) : f32[N, COLS]
  %e = exp(%a) : f32[N, COLS]
  %ab = abs(%bf) : f32[N, COLS]
  %l = log(%ab) : f32[N, COLS]
  %t = tanh(%l) : f32[N, COLS]
  %f = erf(%x) : f32[N, COLS]
  %q = sqrt(%ab) : f32[N, COLS]
  %d = div(%q, %e) : f32[N, COLS]
  %w = pow(%ab; e = 1.5) : f32[N, COLS]
  %h2 = cast(%e) : f16[N, COLS]
  %b2 = cast(%d) : bf16[N, COLS]
  %t2 = cast(%w) : tf32[N, COLS]
  %m = maximum(%x, %s) : f32[N, COLS]
  %n = minimum(%m, %t) : f32[N, COLS]
  %sel = select(%p, %n, %f) : f32[N, COLS]
  %fi = is_finite(%l) : bool[N, COLS]
  %nf = not(%fi) : bool[N, COLS]
  %any = reduce_or(%nf) : bool
  %pc = add(%x, %c) : f32[N, COLS]
  %pr = mul(%pc, %r) : f32[N, COLS]
  %io = iota(%x; dim = 1) : i32[N, COLS]
  %ir = iota(%x; dim = 0) : i32[N, COLS]
  %ii = add(%io, %i) : i32[N, COLS]
  %ij = mul(%ii, %ir) : i32[N, COLS]
  %lt = lt(%x, %hf) : bool[N, COLS]
  %xi = cast(%x) : i32[N, COLS]
  %uf = cast(%u) : f32[N, COLS]
  %ux = mul(%uf, %s) : f32[N, COLS]
  %rm = remainder(%x, %hf) : f32[N, COLS]
  %rs = remainder(%t, %s) : f32[N, COLS]
  %ri = remainder(%ii, %i) : i32[N, COLS]
  result h2 = %h2
  result b2 = %b2
  result t2 = %t2
  result sel = %sel
  result any = %any
  result pr = %pr
  result ij = %ij
  result lt = %lt
  result xi = %xi
  result ux = %ux
  result rm = %rm
  result rs = %rs
  result ri = %ri
)";

TEST_F(CudaRunTest, Elementwise) {
    for (const char *cols : SomeOf({"7", "1", "33", "10", "784", "1000"}))
        Check(Text(With(elementwise, "COLS", cols)), {1, 10}, 2e-2, true);
}

// Without cvt.rn.bf16.f32 and cvt.rn.f16x2.f32.
TEST_F(CudaRunTest, ElementwiseOnTuring) { Check(Text(With(elementwise, "COLS", "36")), {7}, 2e-2, true, 75); }

// No 16-bit operands beside operands of one type: whole words, and what is left of them at the end.
TEST_F(CudaRunTest, SixteenBitVectors) {
    for (const char *type : {"f16", "bf16"})
        for (const char *cols : SomeOf({"3", "8", "100"}))
            Check(Text(With(With(R"(  input %x : TYPE[N, COLS]
  input %y : TYPE[N, COLS]
  %xf = cast(%x) : f32[N, COLS]
  %yf = cast(%y) : f32[N, COLS]
  %s = add(%xf, %yf) : f32[N, COLS]
  %h = cast(%s) : TYPE[N, COLS]
  %hf = cast(%h) : f32[N, COLS]
  %t = mul(%hf, %xf) : f32[N, COLS]
  %z = cast(%t) : TYPE[N, COLS]
  %zp = reshape(%z) : TYPE[N, 1, COLS]
  result h = %h
  result zp = %zp
)",
                                 "COLS", cols),
                            "TYPE", type)),
                  {1, 5, 37}, 2e-2, true);
}

// Random numbers are the base's, element by element; more keys in a kernel than it has parameters for.
TEST_F(CudaRunTest, Random) {
    const int kKeys = EMIT_MOST_KEYS + 2;
    std::string draws, results;
    for (int i = 0; i < kKeys; i++) {
        const std::string number = std::to_string(i);
        draws += "  %r" + number + " = random(%x, %seed, %iteration; key = \"drop" + number + "\") : f32[N, 27]\n" +
                 "  %t" + number + " = add(%r" + number + ", %c) : f32[N, 27]\n";
        results += "  result r" + number + " = %r" + number + "\n  result t" + number + " = %t" + number + "\n";
    }
    Built b = Build(Text(R"(  input %x : f32[N, 27]
  input %c : f32[27]
  state %seed : i64
  state %iteration : i64
)" + draws + results,
                         "state %seed : i64 counter\nstate %iteration : i64 counter\n"));
    ASSERT_NE(b.ptx, nullptr);
    Values got = RunOnCuda(b.cuda, *b.ptx, 37,
                           {{"seed", {123456789012345}}, {"iteration", {7}}, {"c", std::vector<double>(27, 0.0)}});
    for (int i = 0; i < kKeys; i++)
        for (const char *kind : {"r", "t"}) {
            const std::vector<double> &drawn = got[kind + std::to_string(i)];
            const uint32_t key = amp_hash32(("drop" + std::to_string(i)).c_str());
            ASSERT_EQ(drawn.size(), 37u * 27u);
            for (size_t e = 0; e < drawn.size(); e++)
                ASSERT_EQ(drawn[e], static_cast<double>(amp_random_unit(amp_random_u32(123456789012345, key, 7, 0, e))))
                    << kind << i << " " << e;
        }
}

// Layers that differ in the keys of their dropout alone.
TEST_F(CudaRunTest, RandomKeysShareAFunction) {
    std::string layers = "  input %x0 : f16[N, 64]\n  input %w : f16[64, 64]\n  state %seed : i64\n"
                         "  state %iteration : i64\n";
    for (int i = 0; i < 3; i++)
        layers += With(With(R"(  %p# = contract(%x#, %w) : f32[N, 64]
  %r# = random(%p#, %seed, %iteration; key = "layer#") : f32[N, 64]
  %d# = mul(%p#, %r#) : f32[N, 64]
  %xNEXT = cast(%d#) : f16[N, 64]
)",
                            "NEXT", std::to_string(i + 1)),
                       "#", std::to_string(i));
    Module *m = PlannedForCuda(
        Text(layers + "  result y = %x3\n", "state %seed : i64 counter\nstate %iteration : i64 counter\n"));
    ASSERT_NE(m, nullptr);
    const CudaModule *cuda = EmitAlone(m);
    EXPECT_EQ(cuda->programs.data[0].kernels.len, 3);
    int products = 0;
    for (int i = 0; i < cuda->functions.len; i++)
        products += strstr(cuda->functions.data[i].source, "matrices.run(") != nullptr;
    EXPECT_LE(products, 2) << "one for each tile";
}

// Every function over patterns of bits: subnormals, infinities, NaN, and numbers of every size.
TEST_F(CudaRunTest, FunctionsOverAllSizes) {
    std::string functions;
    for (const PointwiseRow &row : PointwiseRows()) {
        if (!ir_op_info[row.code].core || *row.attributes) continue;
        const std::string name = std::string("f.") + row.name();
        functions += "  %" + name + " = " + row.Call("%x") + " : f32[N, 64]\n  result " + name + " = %" + name + "\n";
    }
    const std::string text = Text(R"(  input %x : f32[N, 64]
)" + functions + R"(  %p = pow(%x; e = 1.7) : f32[N, 64]
  %m = pow(%x; e = -3.0) : f32[N, 64]
  %h = cast(%x) : f16[N, 64]
  %b = cast(%x) : bf16[N, 64]
  %t32 = cast(%x) : tf32[N, 64]
  %u = sin(%x) : f32[N, 64]
  %bd = dithered_cast(%x, %u) : bf16[N, 64]
  %hd = dithered_cast(%x, %u) : f16[N, 64]
  %md = dithered_cast(%x, %u) : f8m[N, 64]
  %vd = dithered_cast(%x, %u) : f8v[N, 64]
  %mdf = cast(%md) : f32[N, 64]
  %vdf = cast(%vd) : f32[N, 64]
  result md = %mdf
  result vd = %vdf
  %bdf = cast(%bd) : f32[N, 64]
  %hdf = cast(%hd) : f32[N, 64]
  result bd = %bdf
  result hd = %hdf
  %i = cast(%x) : i32[N, 64]
  %one = const(; value = 1.0) : f32
  %d = div(%one, %x) : f32[N, 64]
  %hf = cast(%h) : f32[N, 64]
  %bf = cast(%b) : f32[N, 64]
  %tf = cast(%t32) : f32[N, 64]
  result p = %p
  result m = %m
  result h = %hf
  result b = %bf
  result t32 = %tf
  result i = %i
  result d = %d
)");
    const int64_t n = 200;
    Values given;
    std::mt19937 engine(17);
    for (int64_t i = 0; i < n * 64; i++) {
        static const uint32_t special[] = {0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x3F800000};
        const uint32_t any = static_cast<uint32_t>(engine()), near_one = (any & 0x87FFFFFFu) | 0x38000000u;
        /* ties of f16 and tf32, of bf16 */
        const uint32_t patterns[] = {any, near_one, (near_one & ~0x1FFFu) | 0x1000u, (near_one & ~0xFFFFu) | 0x8000u};
        const uint32_t bits = i < 16 ? static_cast<uint32_t>(i % 2) << 31 | special[i / 2] : patterns[i % 4];
        float x;
        memcpy(&x, &bits, 4);
        given["x"].push_back(static_cast<double>(x));
    }
    const auto cpu = HasIsa(AMP_ISA_V3) ? CompileForCpu(text) : nullptr;
    for (int arch : {75, 90}) {
        Built b = Build(text, false, arch);
        ASSERT_NE(b.ptx, nullptr);
        if (cpu) ExpectBitsOfCpu(*cpu, b.m, n, given, RunOnCuda(b.cuda, *b.ptx, n, given), IsNear(b.cuda), "");
    }
}

// 128-bit accesses, each warp's side by side: no sector is touched twice.
TEST_F(CudaRunTest, SectorsAreIdeal) {
    if (TestDriver::Asked()) GTEST_SKIP() << "the counters are the interpreter's";
    Built b = Build(Text(R"(  input %x : f32[N, 784]
  input %y : f16[N, 784]
  input %c : f32[784]
  input %r : f32[N, 1]
  %yf = cast(%y) : f32[N, 784]
  %s = add(%x, %yf) : f32[N, 784]
  %h = cast(%s) : f16[N, 784]
  %z = mul(%x, %c) : f32[N, 784]
  %w = add(%z, %r) : f32[N, 784]
  %hr = reshape(%h) : f16[N, 28, 28]
  result h = %hr
  result w = %w
)"));
    ASSERT_NE(b.ptx, nullptr);
    ExecCounters counters = {};
    RunOnCuda(b.cuda, *b.ptx, 64, Draw(b.m, b.m->funcs.data[0], 64), &counters);
    EXPECT_GT(counters.ideal_sectors, 0u);
    EXPECT_LE(counters.sectors, counters.ideal_sectors + counters.ideal_sectors / 50) << Functions(b.cuda);
}

} // namespace
