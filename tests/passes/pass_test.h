// pass_test.h: what the tests of passes share: an arena per test, modules from text, runs up to a stage, diagnostics as
// text.
#ifndef AMP_TESTS_PASSES_PASS_TEST_H
#define AMP_TESTS_PASSES_PASS_TEST_H

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "passes/passes.h"
#include "precision/policy.h"

class PassTest : public testing::Test {
  protected:
    PassTest() {
        arena_init(&arena_, nullptr);
        diags_init(&diags_, &arena_);
    }
    ~PassTest() override { arena_free(&arena_); }

    static std::string File(const std::string &path) {
        std::ifstream file(path);
        std::stringstream text;
        text << file.rdbuf();
        EXPECT_FALSE(text.str().empty()) << path;
        return text.str();
    }

    const Source *NewSource(const std::string &name, const std::string &text) {
        auto *source = arena_new(&arena_, Source);
        *source =
            Source{arena_strdup(&arena_, name.c_str()), arena_strndup(&arena_, text.data(), text.size()), text.size()};
        return source;
    }

    // A module that must be readable.
    Module *Read(const std::string &text) {
        Module *m = ir_read(&arena_, &diags_, NewSource("test.ir", text));
        EXPECT_NE(m, nullptr) << Diagnostics();
        return m;
    }

    Module *ReadFile(const std::string &path) { return Read(File(path)); }

    // Policies that the test adds to the built-in ones, by name.
    std::map<std::string, std::string> policies_;
    std::string precision_, policy_;

    amp_status TryRun(Module *m, Stage last) {
        PassOptions o = {};
        o.precision = precision_.empty() ? nullptr : precision_.c_str();
        o.policy = policy_.empty() ? nullptr : policy_.c_str();
        o.find_policy = FindPolicy;
        o.user = this;
        error_ = {};
        return passes_run(m, &diags_, &o, last, nullptr, nullptr, &error_);
    }

    // A run that must succeed.
    Module *Run(Module *m, Stage last) {
        if (!m) return nullptr;
        EXPECT_EQ(TryRun(m, last), AMP_OK) << error_.message << "\n" << Diagnostics();
        return m;
    }

    std::string Diagnostics() {
        Text t;
        text_init(&t, &arena_);
        for (int i = 0; i < diags_.list.len; i++) diag_format(&t, diags_.list.data[i]);
        return text_str(&t);
    }

    std::string Print(const Module *m) {
        Text t;
        text_init(&t, &arena_);
        ir_print(&t, m);
        return text_str(&t);
    }

    // "relu(f16) : f16 {follow, torch-fp16:24, input fc1.linear}" by path.
    std::map<std::string, std::string> Decisions(const Module *m) {
        std::map<std::string, std::string> all;
        for (int i = 0; i < m->decisions.len; i++) {
            const Decision *d = &m->decisions.data[i];
            Text t;
            text_init(&t, &arena_);
            text_printf(&t, "%s(", d->op);
            for (int j = 0; j < d->operands.len; j++)
                text_printf(&t, "%s%s", j ? ", " : "", amp_dtype_name(d->operands.data[j]));
            text_printf(&t, ") : %s ", amp_dtype_name(d->out));
            ir_print_reason(&t, d->reason);
            all[d->path] = text_str(&t);
        }
        return all;
    }

    static const Source *FindPolicy(void *user, const char *name) {
        auto *test = static_cast<PassTest *>(user);
        auto own = test->policies_.find(name);
        return own == test->policies_.end() ? policy_builtin(&test->arena_, name)
                                            : test->NewSource(own->first, own->second);
    }

    Arena arena_;
    Diags diags_;
    amp_error error_ = {};
};

#endif
