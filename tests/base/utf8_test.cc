// utf8_test.cc: well-formed and damaged UTF-8.
#include "base/text.h"

#include <gtest/gtest.h>

#include <string>

TEST(Utf8, EveryScalarValueIsOneCharacter) {
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        if (code >= 0xD800 && code <= 0xDFFF) continue;
        char bytes[4];
        size_t len = utf8_encode(code, bytes);
        ASSERT_EQ(len, code < 0x80 ? 1u : code < 0x800 ? 2u : code < 0x10000 ? 3u : 4u);
        ASSERT_EQ(utf8_char_len(bytes, len), len) << code;
        for (size_t cut = 0; cut < len; cut++) ASSERT_EQ(utf8_char_len(bytes, cut), 0u) << code;
    }
}

TEST(Utf8, KnownBytes) {
    char bytes[4];
    EXPECT_EQ(std::string(bytes, utf8_encode(0xE9, bytes)), "\xC3\xA9");
    EXPECT_EQ(std::string(bytes, utf8_encode(0x20AC, bytes)), "\xE2\x82\xAC");
    EXPECT_EQ(std::string(bytes, utf8_encode(0x1F525, bytes)), "\xF0\x9F\x94\xA5");
}

TEST(Utf8, DamagedSequencesAreRefused) {
    for (const char *bad : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80",
                            "\xED\xBF\xBF", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                            "\xF5\x80\x80\x80", "\xFF", "\xC3(", "\xE2\x82(", "\xF0\x9F\x94("})
        EXPECT_EQ(utf8_char_len(bad, std::string(bad).size()), 0u) << std::hex << +static_cast<unsigned char>(bad[0]);
}

TEST(Utf8, CutNeverSplits) {
    const char *text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x94\xA5z";
    const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
    for (size_t limit = 0; limit <= 10; limit++) EXPECT_EQ(utf8_cut(text, limit), expected[limit]) << limit;
}
