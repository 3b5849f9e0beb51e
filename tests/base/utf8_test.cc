// utf8_test.cc: well-formed and damaged UTF-8.
#include "base/text.h"
#include "base/visible.h"

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

TEST(Utf8, ControlsAndWhatTurnsTheDirection) {
    std::string found;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        if (code >= 0xD800 && code <= 0xDFFF) continue;
        char bytes[4];
        uint32_t control = 0;
        const size_t len = utf8_encode(code, bytes);
        if (!utf8_control(bytes, len, &control)) continue;
        ASSERT_EQ(utf8_control(bytes, len, &control), len);
        ASSERT_EQ(control, code);
        char word[16];
        snprintf(word, sizeof word, "%X ", code);
        if (code >= 0xA0) found += word;
    }
    EXPECT_EQ(found, "61C 200E 200F 202A 202B 202C 202D 202E 2066 2067 2068 2069 ");
    uint32_t code;
    for (uint32_t c = 0; c < 0xA0; c++) {
        char bytes[4];
        const size_t len = utf8_encode(c, bytes);
        EXPECT_EQ(utf8_control(bytes, len, &code) != 0, c < 0x20 || c >= 0x7F) << c;
    }
    EXPECT_EQ(utf8_control("\xE2\x80", 2, &code), 0u) << "cut off";
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
