// hash_test.cc: known answers of FIPS 180-4 (NIST's example values).
#include "base/hash.h"

#include <gtest/gtest.h>

#include <string>

static std::string Hex(const std::string &data) {
    uint8_t digest[32];
    char hex[65];
    amp_sha256_of(data.data(), data.size(), digest);
    amp_sha256_hex(digest, hex);
    return hex;
}

TEST(Sha256, KnownAnswers) {
    EXPECT_EQ(Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(Hex("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnop"
                  "qrstnopqrstu"),
              "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    EXPECT_EQ(Hex(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheSameAsTheWhole) {
    std::string data;
    for (int i = 0; i < 300; i++) data += static_cast<char>(i * 7);
    for (size_t size = 0; size <= data.size(); size += 3) {
        for (size_t piece : {size_t{1}, size_t{55}, size_t{56}, size_t{63}, size_t{64}, size_t{65}}) {
            amp_sha256 s;
            uint8_t digest[32];
            char hex[65];
            amp_sha256_init(&s);
            for (size_t at = 0; at < size; at += piece)
                amp_sha256_update(&s, data.data() + at, size - at < piece ? size - at : piece);
            amp_sha256_final(&s, digest);
            amp_sha256_hex(digest, hex);
            ASSERT_EQ(hex, Hex(data.substr(0, size))) << size << " by " << piece;
        }
    }
}

// Published FNV-1a test values.
TEST(Hash, Fnv1a) {
    EXPECT_EQ(amp_hash32(""), 0x811c9dc5u);
    EXPECT_EQ(amp_hash32("a"), 0xe40c292cu);
    EXPECT_EQ(amp_hash32("foobar"), 0xbf9cf968u);
}
