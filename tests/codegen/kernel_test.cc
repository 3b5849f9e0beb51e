// kernel_test.cc: every kind of kernel, in every layout and on every instruction set, against the float64 interpreter.
#include <algorithm>
#include <random>

#include "base/hash.h"
#include "base/random.h"
#include "tests/codegen/model_runner.h"

namespace {

std::vector<double> Normal(size_t count, uint32_t seed, double scale = 1.0) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal(0.0f, 1.0f);
    std::vector<double> v(count);
    for (double &x : v) x = static_cast<double>(static_cast<float>(scale) * normal(engine));
    return v;
}

std::string Int(int64_t v) { return std::to_string(v); }

// |tolerance|: relative, and absolute around zero.
void ExpectNear(const std::vector<double> &got, const std::vector<double> &want, double tolerance,
                const std::string &what) {
    ASSERT_EQ(got.size(), want.size()) << what;
    for (size_t i = 0; i < got.size(); i++) {
        if (std::isnan(want[i]) || std::isinf(want[i])) {
            ASSERT_TRUE(std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i])
                << what << " [" << i << "] " << got[i] << " " << want[i];
            continue;
        }
        ASSERT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::fabs(want[i]))) << what << " [" << i << "]";
    }
}

class KernelTest : public CodegenTest {
  protected:
    // Runs a module's only function on the instruction sets of its text and compares every buffer that holds a result
    // or an assigned state.
    void Check(const std::string &text, const std::vector<int64_t> &n, const std::vector<Values> &given,
               double tolerance) {
        Module *m = Read(text);
        ASSERT_NE(m, nullptr);
        auto model = Compile(m, kUnoptimised, IsaOf(text));
        ASSERT_NE(model, nullptr);
        for (size_t i = 0; i < n.size(); i++) CheckRun(m->funcs.data[0], *model, n[i], given[i], tolerance);
    }

    void CheckRun(const Func *f, const LoadedModel &model, int64_t n, const Values &given, double tolerance) {
        Values after = given;
        const Values results = Interpret(f, n, &after);
        for (int isa = 0; isa < AMP_ISA_COUNT; isa++) {
            if (!model.Runs(isa)) continue;
            ProgramRun run(model, f->name, isa, n);
            run.Set(given);
            run.Run();
            auto *program = model.Program(f->name);
            for (uint32_t b = 0; b < program->buffers.count; b++) {
                const std::string name = run.buffer(b).name,
                                  what = name + " in layout " + Int(run.buffer(b).layout) + ", isa " + Int(isa);
                if (results.count(name)) ExpectNear(run.Get(b), results.at(name), tolerance, what);
                if (run.buffer(b).kind == AMP_BUFFER_STATE) ExpectNear(run.Get(b), after.at(name), tolerance, what);
                EXPECT_TRUE(run.PaddingIsZero(b)) << what;
            }
        }
    }
};

// A copy from rows into every layout and storage, and one with arithmetic.
std::string CopyModel(const std::string &rows, int64_t cols, const std::string &type) {
    const std::string shape = "[" + rows + ", " + Int(cols) + "]";
    const bool short_type = type != "f32";
    std::string t = "module \"copy\" stage plan {\n}\nfunc infer {\n  input %x : f32" + shape + "\n";
    t += "  kernel k00 tile \"copy\" reads b1 writes b2, b3, b4, b5 {\n    %y = cast(%x) : " + type + shape + "\n  }\n";
    t += "  kernel k01 tile \"back\" reads b3 writes b6 {\n    %z = cast(%y) : f32" + shape + "\n  }\n";
    t += "  buffer b1 input %x f32 rows live 0 to 0\n  buffer b2 output %y f32 rows live 0 to 1\n";
    t += "  buffer b3 temp %y " + type + " panels live 0 to 1\n";
    t += "  buffer b4 temp %y " + type + (short_type ? " pairs" : " panels_t") + " live 0 to 1\n";
    t += "  buffer b5 temp %y " + std::string(short_type ? type + " pairs_t" : "f32 rows") + " live 0 to 1\n";
    t += "  buffer b6 output %z f32 rows live 1 to 1\n  result y = %y\n  result z = %z\n}\n";
    return t;
}

class LayoutTest : public KernelTest, public testing::WithParamInterface<std::tuple<int, const char *>> {};

TEST_P(LayoutTest, RoundTripsWithZeroPadding) {
    auto [cols, type] = GetParam();
    std::vector<Values> given;
    for (int rows : {1, 31, 33}) given.push_back({{"x", Normal(static_cast<size_t>(rows * cols), 1, 3.0)}});
    Check(CopyModel("N", cols, type), {1, 31, 33}, given, 0.0);
}
INSTANTIATE_TEST_SUITE_P(Sizes, LayoutTest,
                         testing::Combine(testing::Values(1, 10, 32, 33, 80), testing::Values("f32", "f16", "bf16")));

// ---- products ----

struct ProductCase {
    const char *type, *a_layout, *b_layout;
    bool ta, tb;
};

// relu(A B + bias), rounded, in panels and in the layouts of the next products.
std::string ProductModel(const ProductCase &p, int64_t k, int64_t cols) {
    const bool bf16 = std::string(p.type) == "bf16";
    const std::string type = p.type, storage = bf16 ? "bf16" : "f32";
    const std::string a = p.ta ? type + "[" + Int(k) + ", 45]" : type + "[N, " + Int(k) + "]";
    const std::string b =
        p.tb ? type + "[" + Int(cols) + ", " + Int(k) + "]" : type + "[" + Int(k) + ", " + Int(cols) + "]";
    const std::string out = std::string(p.ta ? "[45, " : "[N, ") + Int(cols) + "]";
    std::string t = "module \"product\" stage plan {\n}\n";
    t += "state %w : " + b + " buffer stored " + storage + " " + p.b_layout + "\n";
    t += "state %bias : f32[" + Int(cols) + "] param\n";
    t += "func infer {\n  input %x : f32" + a.substr(type.size()) + "\n  state %w : " + b + "\n  state %bias : f32[" +
         Int(cols) + "]\n";
    t += "  kernel k00 tile \"pack\" reads b1 writes b2 {\n    %a = cast(%x) : " + a + "\n  }\n";
    t += "  kernel k01 product \"linear */ relu\" reads b2, b3, b4 writes b5, b6, b7 {\n    %0 = const(; value = 0.0) "
         ": f32\n";
    t += "    %1 = contract(%a, %w; ta = " + std::string(p.ta ? "true" : "false") +
         ", tb = " + (p.tb ? "true" : "false") + ") : f32" + out + "\n";
    t += "    %2 = add(%1, %bias) : f32" + out + "\n    %3 = maximum(%2, %0) : f32" + out +
         "\n    %y = cast(%3) : " + type + out + "\n  }\n";
    t += "  buffer b1 input %x f32 rows live 0 to 0\n  buffer b2 temp %a " + storage + " " + p.a_layout +
         " live 0 to 1\n";
    t += "  buffer b3 state of w %w " + storage + " " + p.b_layout +
         " live 1 to 1\n  buffer b4 state of bias %bias f32 rows live 1 to 1\n";
    t += "  buffer b5 output %y f32 rows live 1 to 1\n  buffer b6 temp %y " + storage + (bf16 ? " pairs" : " panels") +
         " live 1 to 1\n";
    t += "  buffer b7 temp %y " + storage + (bf16 ? " pairs_t" : " panels_t") + " live 1 to 1\n  result y = %y\n}\n";
    return t;
}

class ProductTest : public KernelTest, public testing::WithParamInterface<ProductCase> {};

TEST_P(ProductTest, WithBiasAndRelu) {
    const ProductCase p = GetParam();
    const int64_t k = 37, cols = 41, n = 35, rows = p.ta ? 45 : n;
    Values given;
    given["x"] = Normal(static_cast<size_t>(k * rows), 2);
    given["w"] = Normal(static_cast<size_t>(k * cols), 3);
    for (double &x : given["w"])
        x = std::string(p.type) == "bf16" ? static_cast<double>(amp_round_bf16(static_cast<float>(x))) : x;
    given["bias"] = Normal(static_cast<size_t>(cols), 4);
    const double tolerance = std::string(p.type) == "f32" ? 2e-6 : std::string(p.type) == "bf16" ? 8e-3 : 1e-3;
    Check(ProductModel(p, k, cols), {n}, {given}, tolerance);
}
INSTANTIATE_TEST_SUITE_P(Forms, ProductTest,
                         testing::Values(ProductCase{"f32", "panels", "panels", false, false},
                                         ProductCase{"f32", "panels", "panels_t", false, true},
                                         ProductCase{"f32", "panels", "panels", true, false},
                                         ProductCase{"tf32", "panels", "panels_t", true, true},
                                         ProductCase{"f16", "panels", "panels_t", false, true},
                                         ProductCase{"bf16", "panels", "pairs", false, false},
                                         ProductCase{"bf16", "panels", "pairs_t", false, true},
                                         ProductCase{"bf16", "pairs", "pairs", true, false},
                                         ProductCase{"bf16", "pairs", "pairs_t", true, true}));

// ---- rows and columns ----

// log_softmax, its largest column, and its gradient in the layouts that products read: three phases.
std::string RowModel(int64_t cols) {
    const std::string full = "[N, " + Int(cols) + "]";
    std::string t = "module \"row\" stage plan {\n}\nfunc infer {\n  input %x : f32" + full +
                    "\n  input %shift : f32[" + Int(cols) + "]\n  input %gain : f32[N]\n";
    t += "  kernel k00 row \"log_softmax\" reads b1, b2, b3 writes b4, b5, b6, b7, b8, b9, b10, b11 {\n";
    t += "    %1 = add(%x, %shift) : f32" + full + "\n    %2 = reduce_max(%1; dims = (1), keep = true) : f32[N, 1]\n";
    t += "    %3 = sub(%1, %2) : f32" + full + "\n    %4 = exp(%3) : f32" + full +
         "\n    %5 = reduce_sum(%4; dims = (1), keep = true) : f32[N, 1]\n";
    t += "    %6 = log(%5) : f32[N, 1]\n    %y = sub(%3, %6) : f32" + full + "\n";
    t += "    %i = iota(%x) : i32" + full +
         "\n    %big = const(; value = 1000000.0) : i32\n    %at = eq(%1, %2) : bool" + full + "\n";
    t += "    %7 = select(%at, %i, %big) : i32" + full + "\n    %best = reduce_min(%7; dims = (1)) : i32[N]\n";
    t += "    %g = broadcast(%gain, %x; dims = (1)) : f32" + full + "\n    %8 = mul(%y, %g) : f32" + full +
         "\n    %d = cast(%8) : bf16" + full + "\n";
    t += "    %s = reduce_sum(%8; dims = (1)) : f32[N]\n  }\n";
    t += "  buffer b1 input %x f32 rows live 0 to 0\n  buffer b2 input %shift f32 rows live 0 to 0\n  buffer b3 input "
         "%gain f32 rows live 0 to 0\n";
    t += "  buffer b4 output %y f32 rows live 0 to 0\n  buffer b5 temp %d bf16 pairs live 0 to 0\n  buffer b6 temp %8 "
         "f32 panels_t live 0 to 0\n";
    t += "  buffer b7 temp %d bf16 pairs_t live 0 to 0\n  buffer b8 output %best i32 rows live 0 to 0\n  buffer b9 "
         "output %s f32 rows live 0 to 0\n";
    t += "  buffer b10 temp %d bf16 panels live 0 to 0\n  buffer b11 output %8 f32 rows live 0 to 0\n";
    t += "  result y = %y\n  result d = %d\n  result e = %8\n  result best = %best\n  result s = %s\n}\n";
    return t;
}

class RowTest : public KernelTest, public testing::WithParamInterface<int> {};
TEST_P(RowTest, PhasesAndLayouts) {
    const int64_t cols = GetParam(), n = 35;
    Values given;
    given["x"] = Normal(static_cast<size_t>(n * cols), 5, 4.0);
    given["shift"] = Normal(static_cast<size_t>(cols), 6);
    given["gain"] = Normal(static_cast<size_t>(n), 7, 0.1);
    given["gain"][3] = 1.0;
    Check(RowModel(cols), {n}, {given}, 6e-3);
}
/* The last is too wide to be kept between phases. */
INSTANTIATE_TEST_SUITE_P(Widths, RowTest, testing::Values(1, 10, 16, 33, 64, 6001));

// The gradient of a bias with its update, and the mean over the batch.
TEST_F(KernelTest, Columns) {
    const int64_t n = 77, cols = 43;
    std::string t = R"(module "column" stage plan {
}
state %b : f32[43] param
state %lr : f32 buffer
func train_step {
  input %g : f16[N, 43]
  input %loss : f32[N]
  state %b : f32[43]
  state %lr : f32
  kernel k00 column "bias: gradient + sgd" reads b1, b3, b4 writes b3, b5 {
    %1 = cast(%g) : f32[N, 43]
    %2 = reduce_sum(%1; dims = (0)) : f32[43]
    %3 = mul(%2, %lr) : f32[43]
    %4 = sub(%b, %3) : f32[43]
    assign(%b, %4)
  }
  kernel k01 column "mean" reads b2 writes b6 {
    %5 = reduce_sum(%loss; dims = (0)) : f32
    %6 = extent(%loss; dims = (0)) : f32
    %mean = div(%5, %6) : f32
  }
  buffer b1 input %g f16 rows live 0 to 0
  buffer b2 input %loss f32 rows live 1 to 1
  buffer b3 state of b %b f32 rows live 0 to 0
  buffer b4 state of lr %lr f32 rows live 0 to 0
  buffer b5 watch %2 f32 rows live 0 to 0
  buffer b6 output %mean f32 rows live 1 to 1
  result grad.b = %2
  result loss = %mean
}
)";
    Values given;
    given["g"] = Normal(static_cast<size_t>(n * cols), 8);
    for (double &x : given["g"]) x = static_cast<double>(amp_round_f16(static_cast<float>(x)));
    given["loss"] = Normal(static_cast<size_t>(n), 9);
    given["b"] = Normal(static_cast<size_t>(cols), 10);
    given["lr"] = {0.125};
    Check(t, {n}, {given}, 5e-6);
}

// ---- scalars, predicates, flags, watched values, random numbers ----

TEST_F(KernelTest, ScalarsOfEveryType) {
    std::string t = R"(module "scalar" stage plan {
}
state %step : i64 counter
state %scale : f32 scaler scale
state %tracker : i32 scaler growth_tracker
func train_step {
  state %step : i64
  state %scale : f32
  state %tracker : i32
  kernel k00 scalar "scalars" reads b1, b2, b3 writes b1, b3, b4, b5, b6, b7 {
    %t = increment(%step) : i64
    %p = power(%t; base = 0.999) : f64
    %one = const(; value = 1.0) : f64
    %bc = sub(%one, %p) : f64
    %r = sqrt(%bc) : f64
    %root = cast(%r) : f32
    %wide = cast(%scale) : f64
    %q = div(%one, %wide) : f64
    %inverse = cast(%q) : f32
    %i = const(; value = 1.0) : i32
    %next = add(%tracker, %i) : i32
    %limit = const(; value = 3.0) : i32
    %grow = le(%limit, %next) : bool
    %fine = is_finite(%scale) : bool
    %both = and(%grow, %fine) : bool
    %zero = const(; value = 0.0) : i32
    %tr = select(%both, %zero, %next) : i32
    %e = exp(%inverse) : f32
    %h = cast(%e) : f16
    assign(%step, %t)
    assign(%tracker, %tr)
  }
  buffer b1 state of step %step i64 rows live 0 to 0
  buffer b2 state of scale %scale f32 rows live 0 to 0
  buffer b3 state of tracker %tracker i32 rows live 0 to 0
  buffer b4 output %root f32 rows live 0 to 0
  buffer b5 output %inverse f32 rows live 0 to 0
  buffer b6 output %both bool rows live 0 to 0
  buffer b7 output %h f32 rows live 0 to 0
  result root = %root
  result inverse = %inverse
  result both = %both
  result h = %h
}
)";
    for (double tracker : {0.0, 2.0}) Check(t, {1}, {{{"step", {41}}, {"scale", {3.0}}, {"tracker", {tracker}}}}, 1e-7);
}

const char flag_model[] = R"(module "flag" stage plan {
}
state %w : f32[40, 50] param stored f32 panels
func train_step {
  input %g : f32[40, 50]
  state %w : f32[40, 50]
  kernel k00 tile "finite?" reads b1 writes b2, b6 {
    %1 = is_finite(%g) : bool[40, 50]
    %2 = not(%1) : bool[40, 50]
    %bad = reduce_or(%2) : bool
    %g2 = cast(%g) : f32[40, 50]
  }
  kernel k01 scalar "ok" reads b2 writes b3 {
    %ok = not(%bad) : bool
  }
  kernel k02 tile "w: update" if %ok reads b1, b4 writes b4, b5 {
    %3 = sub(%w, %g) : f32[40, 50]
    assign(%w, %3) if %ok
  }
  buffer b1 input %g f32 rows live 0 to 2
  buffer b2 flag %bad bool rows live 0 to 1
  buffer b3 output %ok bool rows live 1 to 2
  buffer b4 state of w %w f32 panels live 2 to 2
  buffer b5 watch %3 f32 panels live 2 to 2
  buffer b6 watch %g2 f32 panels live 0 to 0
  result ok = %ok
}
)";

TEST_F(KernelTest, FlagsAndPredicates) {
    Values given;
    given["g"] = Normal(2000, 11);
    given["w"] = Normal(2000, 12);
    Check(flag_model, {1}, {given}, 0.0);
    for (size_t bad : {size_t{0}, size_t{1999}, size_t{777}}) {
        Values one = given;
        one["g"][bad] = bad % 2 ? INFINITY : NAN;
        Check(flag_model, {1}, {one}, 0.0);
    }
}

TEST_F(KernelTest, WatchedValuesMayBeAbsent) {
    auto model = Compile(Read(flag_model));
    ASSERT_NE(model, nullptr);
    ProgramRun with(*model, "train_step", AMP_ISA_PORTABLE, 1),
        without(*model, "train_step", AMP_ISA_PORTABLE, 1, false);
    const Values given = {{"g", Normal(2000, 11)}, {"w", Normal(2000, 12)}};
    for (ProgramRun *run : {&with, &without}) {
        run->Set(given);
        run->Run();
    }
    EXPECT_EQ(with.Get("g2"), given.at("g"));
    EXPECT_EQ(with.Get("w"), without.Get("w"));
}

TEST_F(KernelTest, RandomNumbersAreThoseOfTheBase) {
    std::string t = R"(module "random" stage plan {
}
state %seed : i64 counter
state %iteration : i64 counter
func infer {
  input %x : f32[N, 27]
  state %seed : i64
  state %iteration : i64
  kernel k00 tile "random" reads b2, b3 writes b4 {
    %r = random(%x, %seed, %iteration; key = "drop") : f32[N, 27]
  }
  buffer b1 input %x f32 rows
  buffer b2 state of seed %seed i64 rows live 0 to 0
  buffer b3 state of iteration %iteration i64 rows live 0 to 0
  buffer b4 output %r f32 rows live 0 to 0
  result r = %r
}
)";
    auto model = Compile(Read(t));
    ASSERT_NE(model, nullptr);
    for (int isa = 0; isa < AMP_ISA_COUNT; isa++) {
        if (!HasIsa(isa)) continue;
        ProgramRun run(*model, "infer", isa, 37);
        run.Set({{"seed", {123456789012345}}, {"iteration", {7}}});
        run.Run();
        const std::vector<double> got = run.Get("r");
        for (size_t i = 0; i < got.size(); i++)
            ASSERT_EQ(got[i], static_cast<double>(
                                  amp_random_unit(amp_random_u32(123456789012345, amp_hash32("drop"), 7, 0, i))))
                << i << " isa " << isa;
    }
}

} // namespace
