// hash_test.cc: known answers of FIPS 180-4 (NIST's example values), and of xxHash.
#include "base/hash.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/processor.h"

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

// The hash of all hashes of 0 to 300 bytes, which do not lie at multiples of anything, by Python's hashlib.
TEST(Sha256, EveryLengthAsHashlibHasIt) {
    std::string data, all;
    for (int i = 0; i < 400; i++) data += static_cast<char>(i * 7 + (i >> 8));
    for (size_t size = 0; size <= 300; size++) {
        uint8_t digest[32];
        amp_sha256_of(data.data() + size % 7, size, digest);
        all.append(reinterpret_cast<char *>(digest), sizeof digest);
    }
    EXPECT_EQ(Hex(all), "c3f9659256018ccd9f7df5dfef5877b1de8aaed87607ee9f7a21a1c9b4f331ca");
}

TEST(Sha256, InstructionsOfTheProcessorGiveTheSame) {
    if (!(amp_cpu_features() & AMP_CPU_SHA)) GTEST_SKIP() << "the processor has none";
    uint8_t data[16 + 64 * 9];
    for (size_t i = 0; i < sizeof data; i++) data[i] = static_cast<uint8_t>(i * i + i / 5);
    for (size_t blocks = 0; blocks <= 9; blocks++) {
        for (size_t at = 0; at < 16; at++) {
            uint32_t plain[8] = {1, 2, 3, 4, 5, 0xffffffff, 7, 0x80000000}, fast[8];
            memcpy(fast, plain, sizeof fast);
            amp_sha256_blocks(plain, data + at, blocks, 0);
            amp_sha256_blocks(fast, data + at, blocks, AMP_CPU_SHA);
            ASSERT_EQ(memcmp(plain, fast, sizeof fast), 0) << blocks << " blocks at " << at;
        }
    }
}

// FIPS 180-4's "abc", padded by hand.
TEST(Sha256, PlainCodeKnowsTheAnswer) {
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const uint32_t wanted[8] = {0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223,
                                0xb00361a3, 0x96177a9c, 0xb410ff61, 0xf20015ad};
    uint8_t block[64] = {'a', 'b', 'c', 0x80};
    block[63] = 24;
    amp_sha256_blocks(state, block, 1, 0);
    EXPECT_EQ(memcmp(state, wanted, sizeof wanted), 0);
}

// Published FNV-1a test values.
TEST(Hash, Fnv1a) {
    EXPECT_EQ(amp_hash32(""), 0x811c9dc5u);
    EXPECT_EQ(amp_hash32("a"), 0xe40c292cu);
    EXPECT_EQ(amp_hash32("foobar"), 0xbf9cf968u);
}

static uint64_t Xxh64(const std::string &data, size_t piece) {
    amp_xxh64 h;
    amp_xxh64_init(&h);
    for (size_t at = 0; at < data.size(); at += piece)
        amp_xxh64_update(&h, data.data() + at, data.size() - at < piece ? data.size() - at : piece);
    return amp_xxh64_final(&h);
}

TEST(Xxh64, KnownAnswers) {
    EXPECT_EQ(Xxh64("", 1), 0xef46db3751d8e999u);
    EXPECT_EQ(Xxh64("a", 1), 0xd24ec4f1a98c6e5bu);
    EXPECT_EQ(Xxh64("abc", 3), 0x44bc2cf5ad770999u);
    EXPECT_EQ(Xxh64("Nobody inspects the spammish repetition", 39), 0xfbcea83c8a378bf1u);
}

// The sum of all sums of 0 to 300 bytes, which do not lie at multiples of anything, by Python's xxhash.
TEST(Xxh64, EveryLengthInPiecesAsPythonHasIt) {
    std::string data;
    for (int i = 0; i < 400; i++) data += static_cast<char>(i * 7 + (i >> 8));
    for (size_t piece : {size_t{1}, size_t{31}, size_t{32}, size_t{33}, size_t{301}}) {
        std::string all;
        for (size_t size = 0; size <= 300; size++) {
            uint64_t sum = Xxh64(data.substr(size % 7, size), piece);
            for (int i = 0; i < 8; i++) all += static_cast<char>(sum >> 8 * i);
        }
        EXPECT_EQ(Xxh64(all, piece), 0x952e3ccfb02c24ddu) << piece;
    }
}
