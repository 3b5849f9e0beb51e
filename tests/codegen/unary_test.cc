// unary_test.cc: every unary op of the language over all 65,536 inputs of each 16-bit type, through the whole compiler:
// how far its results are from the exact ones, in units of the last place of the result's type (codegen/README.md).
#include <functional>

#include "passes/passes.h"
#include "tests/codegen/model_runner.h"

namespace {

using Exact = std::function<long double(long double)>;

long double Phi(long double x) { return 0.5L * erfcl(-x / sqrtl(2.0L)); }
long double Density(long double x) { return expl(-x * x / 2) / sqrtl(2.0L * acosl(-1.0L)); }
long double Sigmoid(long double x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }
long double TanhGelu(long double x) {
    return x * Sigmoid(2 * sqrtl(2 / acosl(-1.0L)) * (x + static_cast<long double>(0.044715) * x * x * x));
}
long double TanhGeluSlope(long double x) {
    const long double k = 2 * sqrtl(2 / acosl(-1.0L)), a = static_cast<long double>(0.044715);
    const long double s = Sigmoid(k * (x + a * x * x * x)), t = Sigmoid(-k * (x + a * x * x * x));
    return s + x * s * t * k * (1 + 3 * a * x * x);
}

// At infinities the formulas above are infinity times zero, which is NaN; so it is in PyTorch, and here.
struct Case {
    const char *op; // "gelu(%x)"; a gradient is of dy = 1
    Exact exact;
    double bound16, bound32; // of results of the input's type, and of f32
    // Where 1 + erf(x) and its like cancel, the error is that of a number of this size: |constant| + |linear| * |x|.
    double constant = 0, linear = 0;
    double largest = INFINITY; // of |x|: beyond it PyTorch's formula, and ours, is infinity times zero
};

const std::vector<Case> &Cases() {
    static const std::vector<Case> cases = {
        {"exp(%x)", [](long double x) { return expl(x); }, 0.51, 1.0},
        {"log(%x)", [](long double x) { return logl(x); }, 0.51, 1.0},
        {"sqrt(%x)", [](long double x) { return sqrtl(x); }, 0.5, 0.5},
        {"tanh(%x)", [](long double x) { return tanhl(x); }, 0.51, 1.5},
        {"sigmoid(%x)", Sigmoid, 0.51, 2.5},
        {"gelu(%x)", [](long double x) { return x * Phi(x); }, 0.75, 2.0, 0, 0.5},
        {"gelu(%x; approximate = tanh)", [](long double x) { return TanhGelu(x); }, 0.75, 2.0, 0, 0.5},
        {"silu(%x)", [](long double x) { return x * Sigmoid(x); }, 0.51, 3.0},
        {"softplus(%x)", [](long double x) { return x > 20 ? x : log1pl(expl(x)); }, 0.51, 3.0},
        {"erf(%x)", [](long double x) { return erfl(x); }, 0.51, 2.5},
        {"rsqrt(%x)", [](long double x) { return 1 / sqrtl(x); }, 0.51, 1.5},
        {"abs(%x)", [](long double x) { return fabsl(x); }, 0.0, 0.0},
        {"neg(%x)", [](long double x) { return -x; }, 0.0, 0.0},
        {"relu(%x)", [](long double x) { return std::isnan(x) ? x : std::max(x, 0.0L); }, 0.0, 0.0},
        {"clamp(%x; low = -1.5, high = 2.0)",
         [](long double x) { return std::isnan(x) ? x : std::min(std::max(x, -1.5L), 2.0L); }, 0.0, 0.0},
        {"pow(%x; e = 2.0)", [](long double x) { return powl(x, 2.0L); }, 0.51, 0.51},
        {"pow(%x; e = 3.0)", [](long double x) { return powl(x, 3.0L); }, 0.51, 1.5},
        {"pow(%x; e = 0.5)", [](long double x) { return powl(x, 0.5L); }, 0.51, 0.51},
        {"pow(%x; e = -1.0)", [](long double x) { return powl(x, -1.0L); }, 0.51, 0.51},
        {"pow(%x; e = 1.7)", [](long double x) { return powl(x, static_cast<long double>(1.7)); }, 0.51, 0.51},
        {"relu_grad(%one, %x)", [](long double x) { return x > 0           ? 1.0L
                                                           : std::isnan(x) ? 1.0L
                                                                           : 0.0L; }, 0.0, 0.0},
        {"gelu_grad(%one, %x)", [](long double x) { return Phi(x) + x * Density(x); }, 0.75, 2.0, 0.5},
        {"gelu_grad(%one, %x; approximate = tanh)", [](long double x) { return TanhGeluSlope(x); }, 1.25, 2.5, 2.0, 0,
         1e18},
        {"sigmoid_grad(%one, %x)", [](long double y) { return y * (1 - y); }, 0.51, 2.0},
        {"tanh_grad(%one, %x)", [](long double y) { return 1 - y * y; }, 0.51, 2.0},
        {"abs_grad(%one, %x)", [](long double x) { return static_cast<long double>((x > 0) - (x < 0)); }, 0.0, 0.0},
        {"silu_grad(%one, %x)", [](long double x) { return Sigmoid(x) * (1 + x * Sigmoid(-x)); }, 0.51, 5.0, 0.25,
         0.25},
        {"softplus_grad(%one, %x)", [](long double x) { return x > 20 ? 1.0L : Sigmoid(x); }, 0.51, 3.0},
        {"erf_grad(%one, %x)", [](long double x) { return 2 / sqrtl(acosl(-1.0L)) * expl(-x * x); }, 0.51, 4.0},
        {"clamp_grad(%one, %x; low = -1.5, high = 2.0)",
         [](long double x) { return x > -1.5L && x < 2.0L ? 1.0L : 0.0L; }, 0.0, 0.0},
        {"pow_grad(%one, %x; e = 3.0)", [](long double x) { return 3 * x * x; }, 0.51, 2.0},
        /* of y = 1 / sqrt(x), which is at most 2.6e22: the cube overflows f32 from 7e12 on, half of it a little later */
        {"rsqrt_grad(%one, %x)",
         [](long double y) { return fabsl(y * y * y) > 0x1.fffffep127L ? -INFINITY * y : -0.5L * y * y * y; }, 0.51,
         2.0},
    };
    return cases;
}

// |got - want| in units of the last place, of a type with |digits| and the least exponent |lowest|, near |want|.
double Ulps(double got, long double want, long double size, int digits, int lowest, long double largest) {
    if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : INFINITY;
    if (got == 0 && fabsl(want) < 0x1p-119L) return 0; /* 1 / (1 + e^-x) and its like underflow to 0, as PyTorch's do */
    int exponent = 0;
    frexpl(std::max(fabsl(want), size), &exponent);
    const long double unit = ldexpl(1.0L, std::max(std::isinf(want) ? 0 : exponent, lowest) - digits);
    if (std::isinf(got) && got == static_cast<double>(want)) return 0;
    if (std::isinf(got)) return fabsl(want) > largest && (want > 0) == (got > 0) ? 0 : INFINITY;
    if (std::isinf(want)) return got == static_cast<double>(want) ? 0 : INFINITY;
    return static_cast<double>(fabsl(static_cast<long double>(got) - want) / unit);
}

class UnaryTest : public CodegenTest, public testing::WithParamInterface<const char *> {
  protected:
    // All ops on one input; each once with results of its type and once with f32 results.
    std::string Graph() const {
        const std::string t = GetParam(), shape = "[N, 512]";
        std::string ops, results;
        for (size_t i = 0; i < Cases().size(); i++) {
            const std::string call = Cases()[i].op, number = std::to_string(i);
            ops += "  %s" + number + " = " + call + " : " + t + shape + "\n";
            std::string wide = call;
            wide.replace(wide.find("%x"), 2, "%w");
            ops += "  %f" + number + " = " + wide + " : f32" + shape + "\n";
            results += "  result s" + number + " = %s" + number + "\n  result f" + number + " = %f" + number + "\n";
        }
        return "module \"unary\" stage simplify {\n}\nfunc infer {\n  input %x : " + t + shape +
               "\n  input %one : " + t + shape + "\n  %w = cast(%x) : f32" + shape + "\n" + ops + results + "}\n";
    }
};

TEST_P(UnaryTest, StaysWithinItsBounds) {
    Module *m = Read(Graph());
    ASSERT_NE(m, nullptr);
    PassOptions options = {};
    Diags diags;
    diags_init(&diags, &arena_);
    amp_error err = {};
    ASSERT_EQ(passes_run(m, &diags, &options, STAGE_PLAN, nullptr, nullptr, &err), AMP_OK) << err.message;
    auto model = Compile(m);
    ASSERT_NE(model, nullptr);
    const bool f16 = std::string(GetParam()) == "f16";
    Values given;
    for (uint32_t h = 0; h < 65536; h++) {
        given["x"].push_back(static_cast<double>(f16 ? amp_f16_to_f32(static_cast<uint16_t>(h))
                                                     : amp_bf16_to_f32(static_cast<uint16_t>(h))));
        given["one"].push_back(1.0);
    }
    for (int isa = 0; isa < AMP_ISA_COUNT; isa++) {
        if (!HasIsa(isa)) continue;
        ProgramRun run(*model, "infer", isa, 128);
        run.Set(given);
        run.Run();
        for (size_t i = 0; i < Cases().size(); i++)
            for (bool wide : {false, true}) {
                const Case &c = Cases()[i];
                const std::vector<double> got = run.Get((wide ? "f" : "s") + std::to_string(i));
                double worst = 0, where = 0;
                for (size_t j = 0; j < got.size(); j++) {
                    const long double want = c.exact(static_cast<long double>(given["x"][j]));
                    const long double x = fabsl(static_cast<long double>(given["x"][j]));
                    const long double size =
                        static_cast<long double>(c.constant) + static_cast<long double>(c.linear) * x;
                    if (std::isfinite(x) && x > static_cast<long double>(c.largest)) continue;
                    /* a sum that cancels was rounded in f32 */
                    const long double size16 = size * 0x1p-12L;
                    const double e =
                        wide  ? Ulps(got[j], want, std::isfinite(size) ? size : 0, 24, -125, 0x1.fffffep127L)
                        : f16 ? Ulps(got[j], want, std::isfinite(size) ? size16 : 0, 11, -13, 65519.99L)
                              : Ulps(got[j], want, std::isfinite(size) ? size16 * 0.125L : 0, 8, -125, 0x1.fep127L);
                    if (!(e <= worst)) worst = e, where = given["x"][j];
                }
                RecordProperty(std::string(c.op) + (wide ? ", f32" : ""), std::to_string(worst));
                EXPECT_LE(worst, wide ? c.bound32 : c.bound16)
                    << c.op << " of " << GetParam() << (wide ? " in f32" : "") << " at " << where << ", isa " << isa;
            }
    }
}

INSTANTIATE_TEST_SUITE_P(Types, UnaryTest, testing::Values("f16", "bf16"));

} // namespace
