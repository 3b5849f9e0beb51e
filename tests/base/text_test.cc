// text_test.cc: building text, globs, "did you mean".
#include "base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

class TextTest : public testing::Test {
  protected:
    void SetUp() override {
        arena_init(&arena_, nullptr);
        text_init(&t_, &arena_);
    }
    void TearDown() override { arena_free(&arena_); }
    std::string Str() const { return std::string(t_.data ? t_.data : "", t_.len); }

    Arena arena_;
    Text t_;
};

TEST_F(TextTest, Builds) {
    EXPECT_STREQ(text_str(&t_), "");
    text_puts(&t_, "conv");
    text_putc(&t_, '2');
    text_write(&t_, "dxyz", 1);
    text_printf(&t_, "(%d, %s)", 3, "x");
    EXPECT_STREQ(text_str(&t_), "conv2d(3, x)");
    EXPECT_EQ(t_.len, 12u);
    text_printf(&t_, "%s", "");
    EXPECT_EQ(t_.len, 12u);
}

TEST_F(TextTest, GrowsAndKeepsNulBytes) {
    std::string expected;
    for (int i = 0; i < 5000; i++) {
        text_write(&t_, "ab\0", 3);
        text_printf(&t_, "%d", i);
        expected += std::string("ab\0", 3) + std::to_string(i);
    }
    EXPECT_EQ(Str(), expected);
    EXPECT_EQ(t_.data[t_.len], '\0');
}

TEST_F(TextTest, PadsToAColumnOfTheCurrentLine) {
    text_puts(&t_, "first line\nab");
    text_pad_to(&t_, 6);
    text_puts(&t_, "x");
    text_pad_to(&t_, 3); /* already past: one space */
    text_puts(&t_, "y\n\xC3\xA9");
    text_pad_to(&t_, 3);
    text_puts(&t_, "z");
    EXPECT_EQ(Str(), "first line\nab    x y\n\xC3\xA9  z");
}

TEST_F(TextTest, Doubles) {
    for (double v : {0.001, 1.0, 65536.0, 1e-8, HUGE_VAL, -HUGE_VAL, std::nan("")}) {
        text_put_double(&t_, v);
        text_putc(&t_, ' ');
    }
    EXPECT_EQ(Str(), "0.001 1.0 65536.0 1.0e-08 inf -inf nan ");
}

TEST_F(TextTest, Quoted) {
    text_put_quoted(&t_, "a\"b\\c\nd\te\x01\x7F\r\xC3\xA9\xFFz");
    EXPECT_EQ(Str(), "\"a\\\"b\\\\c\\nd\\te\\x01\\x7f\\x0d\xC3\xA9\\xffz\"");
}

TEST(TextGlob, Table) {
    const struct {
        const char *glob, *s;
        bool match;
    } table[] = {
        {"fc1.linear", "fc1.linear", true},
        {"fc1.linear", "fc1.linea", false},
        {"fc1", "fc1.linear", false},
        {"*", "", true},
        {"*", "a.b.c", true},
        {"", "", true},
        {"", "a", false},
        {"encoder.*", "encoder.0.q", true},
        {"encoder.*", "encoder", false},
        {"*.weight", "a.b.weight", true},
        {"*.weight", "weight", false},
        {"a*b*c", "aXbYbZc", true},
        {"a*b*c", "acb", false},
        {"**", "x", true},
        {"*a", "aaa", true},
        {"a?c", "abc", false},
        {"[ab]", "a", false},
        {"*ab*ab", "ababab", true},
    };
    for (const auto &row : table) EXPECT_EQ(text_glob_match(row.glob, row.s), row.match) << row.glob << " " << row.s;
}

TEST_F(TextTest, PatternsAndKeysOfPaths) {
    const struct {
        const char *path, *pattern, *key, *layers;
    } table[] = {
        {"h.11.mlp.fc", "h.*.mlp.fc", "h.*.mlp.fc", "h.*.mlp.fc"},
        {"lstm.mul", "lstm.mul", "lstm.mul", "lstm.mul"},
        {"lstm.mul_12", "lstm.mul*", "lstm.mul", "lstm.mul_12"},
        {"a_1.0.b_2_3", "a*.*.b_2*", "a.*.b_2", "a_1.*.b_2_3"},
        {"conv2d", "conv2d", "conv2d", "conv2d"},
        {"_7", "_7", "_7", "_7"},
        {"x7._8", "x7._8", "x7._8", "x7._8"},
        {"", "", "", ""},
        {".", ".", ".", "."},
    };
    for (const auto &row : table) {
        EXPECT_STREQ(text_path_pattern(&arena_, row.path), row.pattern);
        EXPECT_STREQ(text_path_key(&arena_, row.path), row.key);
        EXPECT_STREQ(text_path_layers(&arena_, row.path), row.layers);
        EXPECT_TRUE(text_glob_match(row.pattern, row.path)) << row.path;
    }
}

TEST(TextGlob, ManyStarsStayFast) {
    std::string glob, s(20000, 'a');
    for (int i = 0; i < 200; i++) glob += "*a";
    EXPECT_FALSE(text_glob_match((glob + "b").c_str(), s.c_str()));
}

TEST(TextNearest, Table) {
    const char *const names[] = {"matmul", "conv2d", "relu", "gelu", "softmax", "log_softmax", "x", "w1", "w2"};
    const struct {
        const char *word, *nearest;
    } table[] = {
        {"matmlu", "matmul"},
        {"conv2", "conv2d"},
        {"relu", "relu"},
        {"rleu", "relu"},
        {"selu", "relu"},
        {"sofmax", "softmax"},
        {"logsoftmax", "log_softmax"},
        {"embedding", nullptr},
        {"y", nullptr},
        {"w3", "w1"},
        {"", nullptr},
    };
    for (const auto &row : table) EXPECT_STREQ(text_nearest(row.word, names, 9), row.nearest) << row.word;
    EXPECT_EQ(text_nearest("matmul", names, 0), nullptr);
}

TEST(TextNearest, LongWordsAreNeverNear) {
    std::string longest(64, 'a'), longer(65, 'a');
    const char *candidate = longest.c_str();
    EXPECT_EQ(text_nearest(longest.c_str(), &candidate, 1), candidate);
    EXPECT_EQ(text_nearest(longer.c_str(), &candidate, 1), nullptr);
}

// Long texts lie in arenas of their own, which are given back when the text outgrows them.
TEST(Text, LongTextsDoNotPileUp) {
    Arena a;
    arena_init(&a, nullptr);
    if (setjmp(a.out_of_memory)) FAIL();
    Text t;
    text_init(&t, &a);
    const int lines = 1 << 20;
    for (int i = 0; i < lines; i++) text_puts(&t, "0123456789abcde\n");
    EXPECT_EQ(t.len, static_cast<size_t>(lines) * 16);
    for (int i : {0, 1, lines / 2, lines - 1}) EXPECT_EQ(memcmp(text_str(&t) + i * 16, "0123456789abcde\n", 16), 0);
    EXPECT_LT(a.used, 3u << 20); /* what it was before it was long, and the records of its arenas */
    arena_free(&a);
}
