// ir_test.h: what the tests of ir/ share: an arena per test, texts to modules and back.
#ifndef AMP_TESTS_IR_IR_TEST_H
#define AMP_TESTS_IR_IR_TEST_H

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "ir/ir.h"

class IrTest : public testing::Test {
  protected:
    IrTest() { arena_init(&arena_, nullptr); }
    ~IrTest() override { arena_free(&arena_); }

    // nullptr and the first message in error_ where the text is malformed.
    Module *Read(const std::string &text) {
        auto *source = arena_new(&arena_, Source);
        *source = Source{"test.ir", arena_strndup(&arena_, text.data(), text.size()), text.size()};
        auto *diags = arena_new(&arena_, Diags);
        diags_init(diags, &arena_);
        Module *m = ir_read(&arena_, diags, source);
        EXPECT_EQ(m == nullptr, diags->errors > 0);
        error_.clear();
        if (diags->list.len > 0) {
            Text t;
            text_init(&t, &arena_);
            diag_format(&t, diags->list.data[0]);
            error_ = text_str(&t);
        }
        return m;
    }

    std::string Print(const Module *m) {
        Text t;
        text_init(&t, &arena_);
        ir_print(&t, m);
        return text_str(&t);
    }

    std::string Verify(const std::string &text) {
        Module *m = Read(text);
        if (!m) return "unreadable: " + error_;
        const char *wrong = ir_verify(m);
        return wrong ? wrong : "";
    }

    static std::string Golden(const std::string &name) {
        std::ifstream file("tests/ir/golden/" + name);
        std::stringstream text;
        text << file.rdbuf();
        EXPECT_FALSE(text.str().empty()) << name;
        return text.str();
    }

    Arena arena_;
    std::string error_;
};

#endif
