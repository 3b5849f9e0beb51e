// Every op that is differentiated: gradients made by autodiff, run in the float64 interpreter, against central
// differences.
#include <cmath>
#include <random>
#include <set>

#include "ir/interp/interp.h"
#include "passes/training/gradient.h"
#include "tests/base/planted.h"
#include "tests/passes/gradient_cases.h"
#include "tests/passes/pass_test.h"

namespace {

constexpr int64_t kBatch = 3;
constexpr double kStep = 1e-6;

class GradientCheckTest : public PassTest {
  protected:
    // The case as a module: every parameter reaches the loss, a sum of %y weighted by the input %r.
    static std::string Model(const GradientCase &c) {
        std::string states, inputs, type;
        std::istringstream lines(c.given);
        for (std::string line; std::getline(lines, line);) {
            std::string kind = "param", rest = line;
            for (const char *word : {"in ", "ids ", "mask ", "buffer "})
                if (line.rfind(word, 0) == 0) kind = word, rest = line.substr(strlen(word));
            std::string declared = "%" + rest.substr(0, rest.find(' ')) + " : " + rest.substr(rest.find(' ') + 1);
            bool is_state = kind == "param" || kind == "buffer ";
            if (is_state) states += "state " + declared + " " + kind + " = zeros()\n";
            inputs += (is_state ? "state " : "input ") + declared + "\n";
        }
        type = std::string("f32") + c.y;
        return "module \"t\" stage elaborate {\n  train\n}\n" + states + "func forward {\n" + inputs +
               "input %r : " + type + "\n" + c.body + "\n%q = mul(%y, %r) : " + type +
               "\n%loss = sum(%q) : f32\nresult loss = %loss\n}\n";
    }

    static bool IsIn(const GradientCase &c, const std::string &kind, const std::string &name) {
        return ("\n" + std::string(c.given)).find("\n" + kind + " " + name + " ") != std::string::npos;
    }

    std::vector<InterpTensor> Numbers(const Func *f, const GradientCase &c) {
        std::mt19937 rng(11);
        std::uniform_real_distribution<double> numbers(c.low, c.high), weights(0.5, 1.5);
        std::vector<InterpTensor> given;
        for (int i = 0; i < f->inputs.len; i++) {
            const Value *v = ir_value(f, f->inputs.data[i]);
            InterpTensor t = interp_tensor(&arena_, v->name, &v->shape, {kBatch, 1});
            for (int64_t j = 0; j < t.count; j++)
                t.data[j] = v->dtype == AMP_DT_I32       ? double((j * 3 + 1) % 4)
                            : IsIn(c, "mask", v->name)   ? double(j * 5 % 7 < 3)
                            : !strcmp(v->name, "r")      ? weights(rng)
                            : IsIn(c, "buffer", v->name) ? 1.0
                                                         : numbers(rng);
            given.push_back(t);
        }
        return given;
    }

    std::map<std::string, std::vector<double>> Evaluate(const Func *f, std::vector<InterpTensor> given) {
        InterpOptions exact = {};
        std::vector<InterpTensor> results(size_t(f->results.len) + 1);
        EXPECT_EQ(interp_run(f, {kBatch, 1}, &exact, given.data(), int(given.size()), results.data(), &error_), AMP_OK)
            << error_.message;
        std::map<std::string, std::vector<double>> out;
        for (int i = 0; i < f->results.len; i++)
            out[f->results.data[i].name] = {results[i].data, results[i].data + results[i].count};
        return out;
    }

    double Slope(const Func *f, const std::vector<InterpTensor> &given, double *number) {
        double at = *number;
        *number = at + kStep;
        double above = Evaluate(f, given)["loss"][0];
        *number = at - kStep;
        double below = Evaluate(f, given)["loss"][0];
        *number = at;
        return (above - below) / (2 * kStep);
    }

    // How many numbers were checked. |sign|: of the gradients.
    int Check(const GradientCase &c, double sign = 1) {
        Module *m = Run(Read(Model(c)), STAGE_AUTODIFF);
        const Func *f = m ? ir_func_find(m, "train_step") : nullptr;
        if (HasFailure() || !f) {
            ADD_FAILURE() << Model(c);
            return 0;
        }
        std::vector<InterpTensor> given = Numbers(f, c);
        auto results = Evaluate(f, given);
        int checked = 0;
        for (InterpTensor &t : given) {
            auto gradient = results.find("grad." + std::string(t.name));
            if (gradient == results.end()) continue;
            for (int64_t j = 0; j < t.count; j++, checked++) {
                double slope = Slope(f, given, &t.data[j]);
                EXPECT_NEAR(sign * gradient->second[size_t(j)], slope, 1e-7 + 1e-6 * std::fabs(slope))
                    << precision_ << ": " << t.name << "[" << j << "] of\n"
                    << Model(c);
            }
        }
        return checked;
    }

    void CheckAll() {
        for (const GradientCase &c : GradientCases()) {
            EXPECT_GT(Check(c), 0) << Model(c);
            if (HasFailure()) return;
        }
    }
};

TEST_F(GradientCheckTest, EveryGradientIsTheSlope) { CheckAll(); }

TEST_F(GradientCheckTest, PlantedSignIsFound) {
    ExpectFound("a gradient of the other sign", "[0] of", [this] { Check(GradientCases()[0], -1); });
}

// The same through every cast that autocast makes: without rounding, casts change nothing.
TEST_F(GradientCheckTest, MixedPrecisionChangesNoFormula) {
    for (const char *precision : {"fp16", "bf16", "tf32"}) {
        precision_ = precision;
        CheckAll();
    }
}

// Classes of a policy that no built-in one gives these ops.
TEST_F(GradientCheckTest, NoClassChangesAFormula) {
    for (const char *op_class : {"lower", "f32_out", "widest", "first"}) {
        policies_["p"] = std::string("policy \"p\"\nalgorithm eager\nlow = f16\nop add lower\nop * ") + op_class + "\n";
        policy_ = "p";
        CheckAll();
    }
}

TEST_F(GradientCheckTest, EveryOpHasACase) {
    std::set<int> seen;
    for (const GradientCase &c : GradientCases()) {
        Module *m = Read(Model(c));
        ASSERT_NE(m, nullptr) << Model(c);
        const Func *f = ir_func_find(m, "forward");
        for (int i = 0; i < f->body.len; i++) {
            const Op *o = ir_op_at(f, i);
            const bool is_frozen = o->code == OP_batch_norm && ir_attr(o, "frozen")->b;
            seen.insert(is_frozen ? OP_batch_norm_eval : o->code);
        }
    }
    for (int code = OP_NONE + 1; code < OP_COUNT; code++) {
        const Gradient *gradient = gradient_of(static_cast<Opcode>(code));
        if (code == OP_sum_ranks) continue; // of several ranks: distribute_test.cc
        EXPECT_TRUE(!gradient || seen.count(code)) << ir_op_info[code].name;
    }
}

} // namespace
