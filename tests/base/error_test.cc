// error_test.cc: filling an amp_error.
#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

TEST(Error, CodeAndMessage) {
    amp_error err = {};
    EXPECT_EQ(amp_fail(&err, AMP_MISMATCH, "%s: %d", "fc1.weight", 10), AMP_MISMATCH);
    EXPECT_EQ(err.code, AMP_MISMATCH);
    EXPECT_STREQ(err.message, "fc1.weight: 10");
    EXPECT_EQ(amp_fail(nullptr, AMP_IO, "unseen"), AMP_IO);
    EXPECT_EQ(amp_fail_errno(nullptr, AMP_IO, ENOENT, "unseen"), AMP_IO);
}

TEST(Error, AnErrorCanBeWrappedInItself) {
    amp_error err = {};
    amp_fail(&err, AMP_BAD_FILE, "byte 7: expected a value");
    amp_fail(&err, err.code, "%s: header: %s", "w.safetensors", err.message);
    EXPECT_STREQ(err.message, "w.safetensors: header: byte 7: expected a value");
}

TEST(Error, ErrnoIsAppended) {
    amp_error err = {};
    amp_fail_errno(&err, AMP_NOT_FOUND, ENOENT, "%s: cannot open", "a.amp");
    EXPECT_STREQ(err.message, "a.amp: cannot open: No such file or directory");
    amp_fail_errno(&err, AMP_IO, 987654, "x");
    EXPECT_NE(std::string(err.message).find("987654"), std::string::npos);
}

TEST(Error, LongMessagesAreCut) {
    amp_error err = {};
    std::string fits(1019, 'x');
    amp_fail(&err, AMP_IO, "%s", fits.c_str());
    EXPECT_EQ(err.message, fits);
    amp_fail(&err, AMP_IO, "%sy", fits.c_str());
    EXPECT_EQ(err.message, std::string(1016, 'x') + "...");
}

TEST(Error, ACutDoesNotSplitACharacter) {
    amp_error err = {};
    for (size_t ascii = 1010; ascii < 1019; ascii++) {
        std::string text(ascii, 'x');
        for (int i = 0; i < 10; i++) text += "\xF0\x9F\x94\xA5";
        amp_fail(&err, AMP_IO, "%s", text.c_str());
        std::string message = err.message;
        ASSERT_EQ(message.substr(message.size() - 3), "...");
        size_t kept = message.size() - 3;
        EXPECT_EQ(text.substr(0, kept), message.substr(0, kept));
        EXPECT_TRUE(kept < ascii || (kept - ascii) % 4 == 0) << ascii;
        EXPECT_GT(kept, 1012u);
    }
}

// What a damaged file calls its tensors must not move the cursor of a terminal.
TEST(Error, ControlCharactersAreMasked) {
    amp_error err = {};
    amp_fail(&err, AMP_BAD_FILE, "tensor %s:\n\tno", "\x1b[2J\x07\r\x7fw\xc3\xa9");
    EXPECT_STREQ(err.message, "tensor ?[2J???w\xc3\xa9:\n\tno");
    amp_fail(&err, AMP_BAD_FILE, "file a%sb", "\xe2\x80\xae\xc2\x9b\xd8\x9c");
    EXPECT_STREQ(err.message, "file a???????b") << "what turns the direction of text, and C1";
}

TEST(Error, StatusNames) {
    EXPECT_STREQ(amp_status_name(AMP_OK), "AMP_OK");
    EXPECT_STREQ(amp_status_name(AMP_SCALE_AT_FLOOR), "AMP_SCALE_AT_FLOOR");
    for (int code = AMP_OK; code <= AMP_PEER_FAILED; code++)
        EXPECT_EQ(std::string(amp_status_name(static_cast<amp_status>(code))).substr(0, 4), "AMP_") << code;
    EXPECT_STREQ(amp_status_name(static_cast<amp_status>(AMP_PEER_FAILED + 1)), "unknown status");
    EXPECT_STREQ(amp_status_name(static_cast<amp_status>(-1)), "unknown status");
}
