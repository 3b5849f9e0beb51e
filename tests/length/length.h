/* length.h: a model with `size T`, beside the same model compiled with -D T=.. */
#ifndef AMP_TESTS_LENGTH_LENGTH_H
#define AMP_TESTS_LENGTH_LENGTH_H

#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <regex>
#include <sstream>

#include "frontend/frontend.h"
#include "gtest/gtest.h"
#include "ir/interp/interp.h"
#include "passes/passes.h"
#include "precision/policy.h"
#include "targets/target.h"

class LengthTest : public testing::Test {
  protected:
    LengthTest() {
        arena_init(&arena_, nullptr);
        diags_init(&diags_, &arena_);
    }
    ~LengthTest() override { arena_free(&arena_); }

    static const Source *FindPolicy(void *user, const char *name) {
        return policy_builtin(&static_cast<LengthTest *>(user)->arena_, name);
    }

    std::string Diagnostics() {
        Text t;
        text_init(&t, &arena_);
        for (int i = 0; i < diags_.list.len; i++) diag_format(&t, diags_.list.data[i]);
        return text_str(&t);
    }

    static std::string File(const std::string &path) {
        std::ifstream file(path);
        std::stringstream stream;
        stream << file.rdbuf();
        EXPECT_FALSE(stream.str().empty()) << path;
        return stream.str();
    }

    // With -D T=|number|; 0: with any T.  NULL: it has errors.
    Module *Elaborate(const std::string &text, int64_t number) {
        auto *source = arena_new(&arena_, Source);
        *source = {"model.amp", arena_strdup(&arena_, text.c_str()), text.size()};
        auto *define = arena_new(&arena_, FrontendDefine);
        *define = {"T", arena_printf(&arena_, "%lld", static_cast<long long>(number))};
        FrontendOptions options = {};
        options.defines = define;
        options.define_count = number ? 1 : 0;
        Module *m = frontend_compile(&arena_, &diags_, source, &options);
        if (m) ir_compact(m);
        return m;
    }

    Module *Compile(const std::string &text, int64_t number, Stage last, const Target *target = nullptr) {
        Module *m = Elaborate(text, number);
        PassOptions passes = {};
        passes.find_policy = FindPolicy;
        passes.user = this;
        passes.target = target;
        amp_error error = {};
        if (m && passes_run(m, &diags_, &passes, last, nullptr, nullptr, &error) != AMP_OK) m = nullptr;
        EXPECT_NE(m, nullptr) << Diagnostics() << error.message << "\n" << text;
        return m;
    }

    // The lines of the functions, with |number| for T.
    std::string Functions(Module *m, int64_t number) {
        Text t;
        text_init(&t, &arena_);
        for (int i = 0; i < m->funcs.len; i++) {
            for (int k = 1; k < m->funcs.data[i]->values.len; k++) {
                Value *v = m->funcs.data[i]->values.data[k];
                for (int d = 0; v && d < v->shape.rank; d++) {
                    Dim &dim = v->shape.d[d], batch = dim_const(dim_eval({dim.mul, 1, 0, dim.t, 0, 0}, {1, number}));
                    if (dim.n) dim_mul(batch, dim_n(1, dim.div), &batch);
                    else batch.mul /= dim_varies(dim) ? dim.div : 1;
                    dim = batch;
                }
            }
        }
        ir_print(&t, m);
        std::istringstream lines(text_str(&t));
        std::string functions, line;
        bool began = false;
        while (std::getline(lines, line)) {
            began = began || line.rfind("func ", 0) == 0;
            const bool is_original = line.rfind("  \"", 0) == 0; /* the module as it was elaborated */
            if (began && !is_original) functions += line + "\n";
        }
        return functions;
    }

    std::vector<InterpTensor> Numbers(const Func *f, Sizes at) {
        std::mt19937 rng(7);
        std::normal_distribution<double> normal(0.0, 0.5);
        std::vector<InterpTensor> given;
        for (int i = 0; i < f->inputs.len; i++) {
            const Value *v = ir_value(f, f->inputs.data[i]);
            InterpTensor t = interp_tensor(&arena_, v->name, &v->shape, at);
            const bool ones = !strcmp(v->name, "mask") || !strcmp(v->name, "counts");
            const State *state = v->kind == VAL_STATE ? ir_state_of(f, f->inputs.data[i]) : nullptr;
            const bool is_param = !state || state->role == STATE_PARAM; /* others may be variances */
            for (int64_t j = 0; j < t.count; j++)
                t.data[j] = v->dtype == AMP_DT_I32   ? double((j * 5 + 2) % 7)
                            : v->dtype == AMP_DT_I64 ? 1.0
                            : ones                   ? double(j % 3 != 2)
                            : is_param               ? normal(rng)
                                                     : std::fabs(normal(rng));
            given.push_back(t);
        }
        return given;
    }

    std::map<std::string, std::vector<double>> Evaluate(const Func *f, Sizes at) {
        std::vector<InterpTensor> given = Numbers(f, at), results(size_t(f->results.len) + 1);
        InterpOptions exact = {};
        amp_error error = {};
        EXPECT_EQ(interp_run(f, at, &exact, given.data(), int(given.size()), results.data(), &error), AMP_OK)
            << error.message;
        std::map<std::string, std::vector<double>> out;
        for (int i = 0; i < f->results.len; i++)
            out[f->results.data[i].name] = {results[i].data, results[i].data + results[i].count};
        return out;
    }

    // On CUDA a number of keys keeps the bits of attention's dropout, which T cannot: so without this dropout.
    static std::string WithoutBits(std::string text) {
        static const std::regex drops("(attention\\([^\n]*), p = 0\\.1");
        return std::regex_replace(text, drops, "$1");
    }

    void ExpectSameDecisions(const std::string &original, int64_t t) {
        for (const Target *target : targets) {
            const std::string text = target->keeps_dropout ? WithoutBits(original) : original;
            Module *any = Compile(text, 0, STAGE_DROP_VIEWS, target), *one = Compile(text, t, STAGE_DROP_VIEWS, target);
            ASSERT_TRUE(any && one);
            EXPECT_EQ(Functions(any, t), Functions(one, t)) << target->name << ", T = " << t << "\n" << text;
        }
    }

    // Graph or core level, all functions: loss, results and gradients.
    void ExpectSameNumbers(const std::string &text, int64_t t, Stage stage) {
        Module *any = Compile(text, 0, stage), *one = Compile(text, t, stage);
        ASSERT_TRUE(any && one);
        ASSERT_EQ(any->funcs.len, one->funcs.len);
        for (int i = 0; i < any->funcs.len; i++) {
            const Func *f = any->funcs.data[i];
            EXPECT_EQ(Evaluate(f, {3, t}), Evaluate(one->funcs.data[i], {3, 1})) << f->name << ", T = " << t << "\n"
                                                                                 << text;
        }
    }

    Arena arena_;
    Diags diags_;
};

#endif
