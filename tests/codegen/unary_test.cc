// unary_test.cc: every unary op of the language over all 65,536 inputs of each 16-bit type, through the whole compiler:
// how far its results are from the exact ones, in units of the last place of the result's type (codegen/README.md).
#include <algorithm>

#include "passes/passes.h"
#include "tests/codegen/model_runner.h"
#include "tests/ops/pointwise.h"

namespace {

// At infinities many formulas are infinity times zero, which is NaN; so it is in PyTorch, and here.
const std::vector<PointwiseRow> &Cases() { return pointwise::AllRows(); }

// A gradient is of dy = 1.
std::string CallOf(const PointwiseRow &row, const std::string &x) { return row.Call(row.is_slope ? "%one, " + x : x); }

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
            const std::string number = std::to_string(i);
            ops += "  %s" + number + " = " + CallOf(Cases()[i], "%x") + " : " + t + shape + "\n";
            ops += "  %f" + number + " = " + CallOf(Cases()[i], "%w") + " : f32" + shape + "\n";
            results += "  result s" + number + " = %s" + number + "\n  result f" + number + " = %f" + number + "\n";
        }
        return "module \"unary\" stage simplify {\n}\nfunc infer {\n  input %x : " + t + shape +
               "\n  input %one : " + t + shape + "\n  %w = cast(%x) : f32" + shape + "\n" + ops + results + "}\n";
    }

    static bool IsF16() { return std::string(GetParam()) == "f16"; }

    static std::vector<double> Inputs() {
        std::vector<double> x;
        for (uint32_t h = 0; h < 65536; h++)
            x.push_back(static_cast<double>(IsF16() ? amp_f16_to_f32(static_cast<uint16_t>(h))
                                                    : amp_bf16_to_f32(static_cast<uint16_t>(h))));
        return x;
    }

    // How far one of |got| is from |exact|, at most, in units of the last place. |wide|: results are f32.
    static double Worst(const PointwiseRow &c, bool wide, const std::vector<double> &in,
                        const std::vector<long double> &exact, const std::vector<double> &got, double *where) {
        double worst = 0;
        for (size_t j = 0; j < got.size(); j++) {
            const long double want = exact[j], x = fabsl(static_cast<long double>(in[j]));
            const long double size =
                static_cast<long double>(c.bounds.constant) + static_cast<long double>(c.bounds.linear) * x;
            if (std::isfinite(x) && x > static_cast<long double>(c.bounds.largest)) continue;
            /* a sum that cancels was rounded in f32 */
            const long double size16 = size * 0x1p-12L;
            const double e = wide ? Ulps(got[j], want, std::isfinite(size) ? size : 0, 24, -125, 0x1.fffffep127L)
                             : IsF16()
                                 ? Ulps(got[j], want, std::isfinite(size) ? size16 : 0, 11, -13, 65519.99L)
                                 : Ulps(got[j], want, std::isfinite(size) ? size16 * 0.125L : 0, 8, -125, 0x1.fep127L);
            if (!(e <= worst)) worst = e, *where = in[j];
        }
        return worst;
    }
};

// Right results of relu, and one of them a unit off.
TEST_P(UnaryTest, PlantedUnitIsFound) {
    const auto row = std::find_if(Cases().begin(), Cases().end(), [](auto &c) { return c.code == OP_relu; });
    const std::vector<double> in = Inputs();
    std::vector<long double> exact;
    for (double x : in) exact.push_back(row->exact(static_cast<long double>(x)));
    std::vector<double> got(exact.begin(), exact.end());
    const size_t one = IsF16() ? 0x3c00 : 0x3f80;
    double where = 0;
    EXPECT_LE(Worst(*row, false, in, exact, got, &where), row->bounds.of_16_bits);
    got[one] = in[one + 1];
    EXPECT_GT(Worst(*row, false, in, exact, got, &where), row->bounds.of_16_bits);
    EXPECT_EQ(where, 1.0);
    got[one] = static_cast<double>(std::nextafter(1.0f, 2.0f));
    EXPECT_GT(Worst(*row, true, in, exact, got, &where), row->bounds.of_f32);
}

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
    Values given;
    given["x"] = Inputs();
    given["one"].assign(given["x"].size(), 1.0);
    std::vector<std::vector<long double>> exact(Cases().size()); // once for all instruction sets
    for (size_t i = 0; i < Cases().size(); i++)
        for (double x : given["x"]) exact[i].push_back(Cases()[i].exact(static_cast<long double>(x)));
    for (int isa = 0; isa < AMP_ISA_COUNT; isa++) {
        if (!HasIsa(isa)) continue;
        ProgramRun run(*model, "infer", isa, 128);
        run.Set(given);
        run.Run();
        for (size_t i = 0; i < Cases().size(); i++)
            for (bool wide : {false, true}) {
                const PointwiseRow &c = Cases()[i];
                const std::string call = CallOf(c, "%x");
                const std::vector<double> got = run.Get((wide ? "f" : "s") + std::to_string(i));
                double where = 0;
                const double worst = Worst(c, wide, given["x"], exact[i], got, &where);
                RecordProperty(call + (wide ? ", f32" : ""), std::to_string(worst));
                EXPECT_LE(worst, wide ? c.bounds.of_f32 : c.bounds.of_16_bits)
                    << call << " of " << GetParam() << (wide ? " in f32" : "") << " at " << where << ", isa " << isa;
            }
    }
}

INSTANTIATE_TEST_SUITE_P(Types, UnaryTest, testing::Values("f16", "bf16"));

} // namespace
