// diag_test.cc: the exact text of messages.
#include "base/diag.h"

#include <gtest/gtest.h>

#include <string>

class DiagTest : public testing::Test {
  protected:
    void SetUp() override {
        arena_init(&arena_, nullptr);
        diags_init(&diags_, &arena_);
    }
    void TearDown() override { arena_free(&arena_); }

    void SetText(const std::string &text) {
        text_ = text;
        source_ = {"mlp.amp", text_.data(), text_.size()};
    }
    Loc At(size_t begin, size_t end) const {
        return {&source_, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
    }
    // Where |part| is.
    Loc Find(const std::string &part) const { return At(text_.find(part), text_.find(part) + part.size()); }
    std::string Format(const Diag *diag) {
        Text t;
        text_init(&t, &arena_);
        diag_format(&t, diag);
        return text_str(&t);
    }

    Arena arena_;
    Diags diags_;
    std::string text_;
    Source source_;
};

TEST_F(DiagTest, WholeMessage) {
    SetText("input x: f32[N, 784]\nparam w2: f32[512, 10]\n\n\n\n\n\n\n    h = matmul(x, w2)\n");
    Diag *d = diag_error(&diags_, Find("x, w2"), "matmul: inner dimensions differ: %d and %d", 784, 512);
    diag_note(&diags_, d, Find("x: f32"), "x is f32[N, 784]");
    diag_note(&diags_, d, Find("w2: f32"), "w2 is f32[512, 10]");
    diag_help(&diags_, d, "did you mean %s?", "w1");
    EXPECT_EQ(Format(d), "mlp.amp:9:16: error: matmul: inner dimensions differ: 784 and 512\n"
                         "   9 |     h = matmul(x, w2)\n"
                         "     |                ^~~~~\n"
                         "  mlp.amp:1:7: x is f32[N, 784]\n"
                         "  mlp.amp:2:7: w2 is f32[512, 10]\n"
                         "  help: did you mean w1?\n");
}

TEST_F(DiagTest, WarningAndNowhere) {
    Diag *d = diag_warning(&diags_, Loc{}, "no policy given");
    diag_help(&diags_, d, "use --policy=torch-fp16");
    EXPECT_EQ(Format(d), "warning: no policy given\n  help: use --policy=torch-fp16\n");
    EXPECT_EQ(diags_.errors, 0);
    EXPECT_EQ(diags_.list.len, 1);
}

TEST_F(DiagTest, TabsKeepTheCaretInPlace) {
    SetText("\tx\t= y");
    EXPECT_EQ(Format(diag_error(&diags_, Find("y"), "e")), "mlp.amp:1:6: error: e\n   1 | \tx\t= y\n     | \t \t  ^\n");
}

TEST_F(DiagTest, ColumnsCountCharacters) {
    SetText("# \xC3\xA9\xE2\x82\xAC bad");
    EXPECT_EQ(Format(diag_error(&diags_, Find("bad"), "e")),
              "mlp.amp:1:6: error: e\n   1 | # \xC3\xA9\xE2\x82\xAC bad\n     |      ^~~\n");
}

TEST_F(DiagTest, DamagedAndControlBytesAreShownAsQuestionMarks) {
    SetText(std::string("a\xFF\x1B[0m\0z\xC2\x9Bq", 11));
    EXPECT_EQ(Format(diag_error(&diags_, Find("q"), "e")),
              "mlp.amp:1:10: error: e\n   1 | a??[0m?z?q\n     |          ^\n");
}

TEST_F(DiagTest, EmptyRangeEndOfFileAndEmptyLine) {
    SetText("ab\n\ncd");
    EXPECT_EQ(Format(diag_error(&diags_, At(6, 6), "e")), "mlp.amp:3:3: error: e\n   3 | cd\n     |   ^\n");
    EXPECT_EQ(Format(diag_error(&diags_, At(3, 3), "e")), "mlp.amp:2:1: error: e\n   2 |\n     | ^\n");
    EXPECT_EQ(Format(diag_error(&diags_, At(900, 1000), "e")), "mlp.amp:3:3: error: e\n   3 | cd\n     |   ^\n");
    SetText("");
    EXPECT_EQ(Format(diag_error(&diags_, At(0, 0), "e")), "mlp.amp:1:1: error: e\n   1 |\n     | ^\n");
}

TEST_F(DiagTest, RangeOverLinesIsMarkedToTheEndOfTheFirst) {
    SetText("block a {\r\n  x\r\n}\r\n");
    EXPECT_EQ(Format(diag_error(&diags_, At(6, 18), "e")),
              "mlp.amp:1:7: error: e\n   1 | block a {\n     |       ^~~\n");
}

TEST_F(DiagTest, LongLinesAreCutAroundTheCaret) {
    SetText(std::string(500, 'a') + "X" + std::string(500, 'b'));
    EXPECT_EQ(Format(diag_error(&diags_, Find("X"), "e")), "mlp.amp:1:501: error: e\n   1 | ..." +
                                                               std::string(60, 'a') + "X" + std::string(99, 'b') +
                                                               "...\n     |    " + std::string(60, ' ') + "^\n");
    std::string marks = Format(diag_error(&diags_, At(0, 1001), "e"));
    EXPECT_EQ(marks, "mlp.amp:1:1: error: e\n   1 | " + std::string(160, 'a') + "...\n     | ^" +
                         std::string(159, '~') + "\n");
}

TEST_F(DiagTest, LargeLineNumbersKeepTheBarsAligned) {
    SetText(std::string(12344, '\n') + "bad");
    EXPECT_EQ(Format(diag_error(&diags_, Find("bad"), "e")), "mlp.amp:12345:1: error: e\n12345 | bad\n      | ^~~\n");
}

TEST_F(DiagTest, FurtherErrorsAreCountedNotKept) {
    SetText("x");
    for (int i = 0; i < 30; i++) diag_help(&diags_, diag_error(&diags_, At(0, 1), "%d", i), "h");
    EXPECT_EQ(diags_.errors, 30);
    EXPECT_EQ(diags_.list.len, 20);
    EXPECT_STREQ(diags_.list.data[19]->text, "19");
}

TEST_F(DiagTest, JoinedLocations) {
    SetText("a + b * c");
    Loc joined = loc_join(Find("b"), Find("a"));
    EXPECT_EQ(joined.begin, 0u);
    EXPECT_EQ(joined.end, 5u);
    EXPECT_EQ(loc_join(Loc{}, Find("c")).begin, 8u);
    EXPECT_EQ(loc_join(Find("c"), Loc{}).begin, 8u);
    EXPECT_EQ(loc_join(Loc{}, Loc{}).source, nullptr);
}

TEST_F(DiagTest, LineAndColumn) {
    SetText("ab\ncd\n");
    const int expected[][2] = {{1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}, {2, 3}, {3, 1}};
    for (size_t i = 0; i < 7; i++) {
        int line, column;
        loc_line_column(At(i, i + 1), &line, &column);
        EXPECT_EQ(line, expected[i][0]) << i;
        EXPECT_EQ(column, expected[i][1]) << i;
    }
}
