// The reader and the verifier survive damaged text: every truncation, and bytes replaced all over.
#include "tests/ir/ir_test.h"

namespace {

class Robustness : public testing::TestWithParam<const char *> {
  protected:
    // Reads, and verifies and prints what could be read; whatever comes out must not crash.
    static void Try(const std::string &text) {
        Arena arena;
        arena_init(&arena, nullptr);
        Source source = {"damaged.ir", text.data(), text.size()};
        Diags diags;
        diags_init(&diags, &arena);
        Module *m = ir_read(&arena, &diags, &source);
        Text out;
        text_init(&out, &arena);
        if (m) {
            ir_verify(m);
            ir_compact(m);
            ir_print(&out, m);
        } else {
            ASSERT_GT(diags.list.len, 0);
            diag_format(&out, diags.list.data[0]);
        }
        arena_free(&arena);
    }

    static std::string Text_() {
        std::ifstream file(std::string("tests/ir/golden/") + GetParam());
        std::stringstream text;
        text << file.rdbuf();
        return text.str();
    }
};

TEST_P(Robustness, EveryTruncation) {
    std::string text = Text_();
    ASSERT_FALSE(text.empty());
    for (size_t n = 0; n < text.size(); n++) Try(text.substr(0, n));
}

TEST_P(Robustness, ReplacedBytes) {
    std::string text = Text_();
    ASSERT_FALSE(text.empty());
    const char bytes[] = {'\0', '"', '%', '9', '-', ' ', '\n', '}', '\xff', '\\'};
    uint32_t random = 12345;
    for (size_t i = 0; i < text.size(); i++) {
        random = random * 1664525u + 1013904223u;
        std::string damaged = text;
        damaged[i] = bytes[(random >> 16) % sizeof bytes];
        Try(damaged);
    }
}

INSTANTIATE_TEST_SUITE_P(Golden, Robustness, testing::Values("graph.ir", "training.ir", "kernels.ir"),
                         [](const auto &info) {
                             return std::string(info.param, strchr(info.param, '.') - info.param);
                         });

} // namespace
