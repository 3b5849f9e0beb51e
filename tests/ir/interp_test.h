// interp_test.h: runs functions given as text, or single ops, in the interpreter; values as vectors of doubles.
#ifndef AMP_TESTS_IR_INTERP_TEST_H
#define AMP_TESTS_IR_INTERP_TEST_H

#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "ir/interp/interp.h"
#include "tests/ir/ir_test.h"

using Values = std::vector<double>;

class Interp : public IrTest {
  protected:
    // Runs function f of |lines| (as in a text, types and all) with N = n; inputs in the order of the function.
    std::map<std::string, Values> Run(const std::string &stage, const std::string &lines, std::vector<Values> inputs,
                                      int64_t n = 1, bool round = false, const std::string &states = "") {
        std::map<std::string, Values> out;
        Module *m = Read("module \"m\" stage " + stage + " { }\n" + states + "\nfunc f {\n" + lines + "\n}\n");
        EXPECT_NE(m, nullptr) << error_;
        if (!m) return out;
        const char *wrong = ir_verify(m);
        EXPECT_STREQ(wrong, nullptr);
        if (wrong) return out;
        const Func *f = m->funcs.data[0];
        EXPECT_EQ(static_cast<size_t>(f->inputs.len), inputs.size());
        std::vector<InterpTensor> given;
        for (int i = 0; i < f->inputs.len; i++) {
            const Value *v = ir_value(f, f->inputs.data[i]);
            given.push_back(interp_tensor(&arena_, v->name, &v->shape, {n, 1}));
            EXPECT_EQ(static_cast<size_t>(given[i].count), inputs[i].size()) << v->name;
            for (int64_t j = 0; j < given[i].count; j++) given[i].data[j] = inputs[i][j];
        }
        std::vector<InterpTensor> results(f->results.len);
        InterpOptions options = {round, nullptr, nullptr};
        amp_error err = {};
        EXPECT_EQ(interp_run(f, {n, 1}, &options, given.data(), static_cast<int>(given.size()), results.data(), &err),
                  AMP_OK)
            << err.message;
        if (err.code) return out;
        for (const auto &r : results) out[r.name] = Values(r.data, r.data + r.count);
        for (const auto &g : given) out["after " + std::string(g.name)] = Values(g.data, g.data + g.count);
        return out;
    }

    // One result y of one op over inputs a, b, c.
    Values Op(const std::string &stage, const std::string &types, const std::string &op, const std::string &result,
              std::vector<Values> inputs, int64_t n = 1) {
        std::string lines;
        char name = 'a';
        std::stringstream each(types);
        for (std::string type; std::getline(each, type, ';');)
            lines += std::string("input %") + name++ + " : " + type + "\n";
        return Run(stage, lines + "%y = " + op + " : " + result + "\nresult y = %y", std::move(inputs), n)["y"];
    }

    static void ExpectNear(const Values &got, const Values &want, double tolerance = 1e-12) {
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); i++) {
            if (std::isnan(want[i])) {
                EXPECT_TRUE(std::isnan(got[i])) << i;
            } else if (std::isinf(want[i])) {
                EXPECT_EQ(got[i], want[i]) << i;
            } else {
                EXPECT_NEAR(got[i], want[i], tolerance) << i;
            }
        }
    }

    // d sum(weights * forward(x)) / dx by central differences.
    static Values Differences(const std::function<Values(const Values &)> &forward, Values x, const Values &weights) {
        const double h = 1e-5;
        Values slope;
        auto value = [&](const Values &at) {
            Values y = forward(at);
            double sum = 0;
            for (size_t i = 0; i < y.size(); i++) sum += weights[i] * y[i];
            return sum;
        };
        for (size_t i = 0; i < x.size(); i++) {
            double x0 = x[i];
            x[i] = x0 + h;
            double up = value(x);
            x[i] = x0 - h;
            double down = value(x);
            x[i] = x0;
            slope.push_back((up - down) / (2 * h));
        }
        return slope;
    }
};

#endif
