// core_pass_test.h: what the tests of simplify, lower and fuse share: texts to modules, passes with verification, and
// runs in the reference interpreter.
#ifndef AMP_TESTS_PASSES_CORE_PASS_TEST_H
#define AMP_TESTS_PASSES_CORE_PASS_TEST_H

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/rounding.h"
#include "ir/interp/interp.h"
#include "passes/passes.h"

// Everything that a function left: its results, then its states.
using Outcome = std::map<std::string, std::vector<double>>;

class CorePassTest : public testing::Test {
  protected:
    CorePassTest() { arena_init(&arena_, nullptr); }
    ~CorePassTest() override { arena_free(&arena_); }

    Module *Read(const std::string &text) { return ReadIn(&arena_, text); }

    Module *ReadIn(Arena *arena, const std::string &text) {
        auto *source = arena_new(arena, Source);
        *source = Source{"test.ir", arena_strndup(arena, text.data(), text.size()), text.size()};
        diags_init(&diags_, arena);
        Module *m = ir_read(arena, &diags_, source);
        EXPECT_NE(m, nullptr) << Diagnostics();
        const char *wrong = m ? ir_verify(m) : nullptr;
        EXPECT_EQ(nullptr, wrong) << wrong << "\n" << text;
        return m;
    }

    // A function `f` of a module with |stage|: its inputs, states, ops and results.
    static std::string FuncText(const std::string &stage, const std::string &body, const std::string &states = "") {
        return "module \"t\" stage " + stage + " {\n}\n" + states + "func f {\n" + body + "}\n";
    }

    Module *ReadFunc(const std::string &stage, const std::string &body, const std::string &states = "") {
        return Read(FuncText(stage, body, states));
    }

    static std::string File(const std::string &path) {
        std::ifstream file(path);
        std::stringstream text;
        text << file.rdbuf();
        EXPECT_FALSE(text.str().empty()) << path;
        return text.str();
    }

    static std::string Golden(const std::string &name) { return File("tests/passes/golden/" + name); }

    std::string Diagnostics() {
        Text t;
        text_init(&t, &arena_);
        for (int i = 0; i < diags_.list.len; i++) diag_format(&t, diags_.list.data[i]);
        return text_str(&t);
    }

    // The passes from |first| to |last|, whatever the module's stage is.
    bool Run(Module *m, Stage first, Stage last) {
        PassContext c = {m, &diags_, &options_, nullptr};
        amp_error err = {};
        for (int stage = first; stage <= last; stage++) {
            const amp_status status = pass_run(&c, Stage(stage), &err);
            if (status == AMP_BAD_SOURCE) return false;
            EXPECT_EQ(status, AMP_OK) << err.message << "\n" << Print(m);
            const char *wrong = status ? nullptr : ir_verify(m); // after the compaction
            EXPECT_EQ(nullptr, wrong) << wrong << "\n" << Print(m);
            if (status || wrong) return false;
        }
        return true;
    }
    bool Run(Module *m, Stage pass) { return Run(m, pass, pass); }

    std::string Print(const Module *m) {
        Text t;
        text_init(&t, &arena_);
        ir_print(&t, m);
        return text_str(&t);
    }

    // The ops of a function, one a line, without types, paths and reasons: "%y = cast(%x)".
    static std::string Ops(const Func *f) {
        std::string text;
        Text t;
        Arena *a = f->module->arena;
        text_init(&t, a);
        ir_print_func(&t, f);
        std::istringstream lines(text_str(&t));
        for (std::string line; std::getline(lines, line);) {
            std::istringstream words(line);
            std::string first;
            words >> first;
            bool is_op = first[0] == '%' || first.compare(0, 7, "assign(") == 0;
            if (is_op) text += Squeeze(line) + "\n";
        }
        return text;
    }

    // Numbers that an op may meet: small ones, and for i32 labels of ten classes with a few that are ignored.
    static double Draw(std::mt19937 &rng, Dtype t, const std::string &name) {
        if (t == AMP_DT_I32 && name.compare(0, 3, "ids") == 0) return rng() % 5;
        if (t == AMP_DT_I32) return rng() % 8 == 0 ? -100.0 : static_cast<double>(rng() % 5);
        if (t == AMP_DT_I64) return 3;
        if (t == AMP_DT_BOOL) return rng() % 2;
        double x = std::uniform_real_distribution<double>(-2, 2)(rng);
        bool positive = name.find('v') == name.size() - 1 || name.compare(0, 3, "pos") == 0 || name == "scale" ||
                        name.find("_var") != name.npos;
        return positive ? std::fabs(x) + 0.01 : x;
    }

    // Random inputs and states: the same for the same seed and the same name.
    std::vector<InterpTensor> Inputs(const Func *f, int64_t n, bool round, unsigned seed) {
        std::vector<InterpTensor> given;
        for (int i = 0; i < f->inputs.len; i++) {
            const Value *v = ir_value(f, f->inputs.data[i]);
            const State *s = v->kind == VAL_STATE ? ir_state_of(f, f->inputs.data[i]) : nullptr;
            InterpTensor t = interp_tensor(f->module->arena, v->name, s ? &s->shape : &v->shape, {n, 1});
            std::mt19937 rng(seed + static_cast<unsigned>(std::hash<std::string>()(v->name)));
            for (int64_t j = 0; j < t.count; j++) {
                double x = Draw(rng, v->dtype, v->name);
                t.data[j] = round ? Rounded(v->dtype, x) : x;
            }
            given.push_back(t);
        }
        return given;
    }

    Outcome Interpret(const Func *f, int64_t n, bool round, unsigned seed) {
        return Interpret(f, n, round, Inputs(f, n, round, seed));
    }

    Outcome Interpret(const Func *f, int64_t n, bool round, std::vector<InterpTensor> given) {
        InterpOptions options = {round, nullptr, nullptr};
        std::vector<InterpTensor> results(static_cast<size_t>(f->results.len) + 1);
        amp_error err;
        amp_status status =
            interp_run(f, {n, 1}, &options, given.data(), static_cast<int>(given.size()), results.data(), &err);
        EXPECT_EQ(AMP_OK, status) << err.message;
        Outcome out;
        if (status) return out;
        for (int i = 0; i < f->results.len; i++)
            out[f->results.data[i].name] = std::vector<double>(results[i].data, results[i].data + results[i].count);
        for (const InterpTensor &t : given)
            if (ir_state_find(f->module, t.name)) out[std::string("state ") + t.name] = {t.data, t.data + t.count};
        return out;
    }

    static double Rounded(Dtype t, double x) {
        return t == AMP_DT_F64 || t == AMP_DT_I64 || t == AMP_DT_I32 ? x : amp_round_dtype(t, static_cast<float>(x));
    }

    // |tolerance| 0: the same bits, NaN for NaN.
    static void ExpectEqual(const Outcome &want, const Outcome &got, double tolerance) {
        for (const auto &entry : want) {
            if (entry.first.compare(0, 6, "state ") == 0 && !got.count(entry.first)) continue; // no longer read
            ASSERT_TRUE(got.count(entry.first)) << entry.first;
            const std::vector<double> &other = got.at(entry.first);
            ASSERT_EQ(entry.second.size(), other.size()) << entry.first;
            for (size_t i = 0; i < other.size(); i++) {
                double a = entry.second[i], b = other[i];
                bool same = (std::isnan(a) && std::isnan(b)) || a == b ||
                            std::fabs(a - b) <= tolerance * std::fmax(1, std::fabs(a));
                EXPECT_TRUE(same) << entry.first << "[" << i << "]: " << a << " and " << b;
            }
        }
    }

    static std::string Squeeze(const std::string &line) {
        std::string text;
        size_t end = line.find(") if ") != std::string::npos ? line.size() : line.rfind(')');
        size_t close = 0;
        int depth = 0;
        for (size_t i = 0; i < line.size() && !close; i++) {
            if (line[i] == '(') depth++;
            if (line[i] == ')' && --depth == 0) close = i + 1;
        }
        if (close) end = close;
        for (char c : line.substr(0, end))
            if (c != ' ' || (!text.empty() && text.back() != ' ')) text += c;
        return text;
    }

    Arena arena_;
    Diags diags_ = {};
    PassOptions options_ = {};
};

#endif
