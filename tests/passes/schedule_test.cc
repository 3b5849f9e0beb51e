// Schedules: what the reference interpreter says of the graph op and of its core form, against the formulas of the
// language,
// at every step, at the edges, and past the end.
#include "tests/passes/core_pass_test.h"

namespace {

const double kPi = 3.14159265358979323846;

using Formula = double (*)(double s);

struct Case {
    const char *op;
    Formula formula;
};

double WarmUp(double s, double peak, double warmup) { return peak * (s + 1) / warmup; }

double HalfCosine(double from, double to, double done) { return to + (from - to) * (1 + std::cos(kPi * done)) / 2; }

// torch.optim.lr_scheduler.OneCycleLR: phases end at 0.3 * steps - 1 and steps - 1.
double OneCycle(double s, double peak, double steps) {
    double top = 0.3 * steps - 1, last = steps - 1;
    s = std::fmin(s, last);
    return s <= top ? HalfCosine(peak / 25, peak, s / top)
                    : HalfCosine(peak, peak / 25 / 1e4, (s - top) / (last - top));
}

const Case kCases[] = {
    {"constant_rate(; v = 0.25)", [](double) { return 0.25; }},
    {"cosine_rate(%step; peak = 0.6, warmup = 7, steps = 20)",
     [](double s) { return s < 7    ? WarmUp(s, 0.6, 7)
                           : s < 20 ? HalfCosine(0.6, 0, (s - 7) / 13)
                                    : 0.0; }},
    {"cosine_rate(%step; peak = 0.6, steps = 20, floor = 0.1)",
     [](double s) { return s < 20 ? HalfCosine(0.6, 0.1, s / 20) : 0.1; }},
    {"cosine_rate(%step; peak = 0.6, warmup = 5, steps = 5, floor = 0.1)",
     [](double s) { return s < 5 ? WarmUp(s, 0.6, 5) : 0.1; }},
    {"step_rate(%step; base = 0.5, every = 3, gamma = 0.1)",
     [](double s) { return 0.5 * std::pow(0.1, std::floor(s / 3)); }},
    {"step_rate(%step; base = 0.5, every = 1, gamma = 0.9)", [](double s) { return 0.5 * std::pow(0.9, s); }},
    {"step_rate(%step; base = 0.5, every = 49, gamma = 0.9)",
     [](double s) { return 0.5 * std::pow(0.9, std::floor(s / 49)); }},
    {"linear_rate(%step; peak = 0.3, warmup = 4, steps = 10)",
     [](double s) { return s < 4    ? WarmUp(s, 0.3, 4)
                           : s < 10 ? 0.3 * (10 - s) / 6
                                    : 0.0; }},
    {"linear_rate(%step; peak = 0.3, steps = 10)", [](double s) { return s < 10 ? 0.3 * (10 - s) / 10 : 0.0; }},
    {"one_cycle_rate(%step; peak = 0.1, steps = 30)", [](double s) { return OneCycle(s, 0.1, 30); }},
    {"one_cycle_rate(%step; peak = 0.1, steps = 3)", [](double s) { return OneCycle(s, 0.1, 3); }},
    {"one_cycle_rate(%step; peak = 0.1, steps = 1)", [](double) { return 0.1 / 25 / 1e4; }},
};

class ScheduleTest : public CorePassTest {
  protected:
    double At(Module *m, double s) {
        const Func *f = m->funcs.data[0];
        std::vector<InterpTensor> given = Inputs(f, 1, true, 0);
        for (InterpTensor &t : given) t.data[0] = s; // the counter is all it reads
        return Interpret(f, 1, true, given)["r"][0];
    }

    Module *Schedule(const char *op) {
        std::string counter = strstr(op, "%step") ? "state %step : i64\n" : "";
        return ReadFunc("simplify", counter + "%r = " + op + " : f64\nresult r = %r\n", "state %step : i64 counter\n");
    }
};

TEST_F(ScheduleTest, EveryStepFollowsTheFormula) {
    for (const Case &c : kCases) {
        SCOPED_TRACE(c.op);
        Module *graph = Schedule(c.op), *core = Schedule(c.op);
        ASSERT_TRUE(Run(core, STAGE_LOWER)) << Diagnostics();
        for (double s :
             {0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 19., 20., 21., 29., 30., 48., 49., 97., 98., 1e6}) {
            double want = c.formula(s);
            EXPECT_NEAR(At(graph, s), want, 1e-14 * (std::fabs(want) + 1)) << "graph, step " << s;
            EXPECT_NEAR(At(core, s), want, 1e-14 * (std::fabs(want) + 1)) << "core, step " << s;
        }
    }
}

} // namespace
