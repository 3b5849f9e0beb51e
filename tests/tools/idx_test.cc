// idx_test.cc: IDX files, good and bad.
#include "tools/amprun/data/idx.h"

#include <sys/stat.h>

#include <cstring>

#include "tests/tools/scratch.h"

class IdxTest : public ScratchTest {
  protected:
    void TearDown() override {
        free(array.data);
        ScratchTest::TearDown();
    }
    std::string Bytes() const {
        size_t count = 1;
        for (int i = 0; i < array.rank; i++) count *= static_cast<size_t>(array.dims[i]);
        return std::string(reinterpret_cast<char *>(array.data), count);
    }
    // What reading says on standard error; reading has to fail.
    std::string Failure(const std::string &path) {
        testing::internal::CaptureStderr();
        EXPECT_EQ(idx_read(path.c_str(), &array), 1);
        EXPECT_EQ(array.data, nullptr);
        return testing::internal::GetCapturedStderr();
    }

    IdxArray array = {};
};

constexpr int kUnsignedByte = 8;

TEST_F(IdxTest, PlainFile) {
    std::string path = Write("a", Idx(kUnsignedByte, {2, 3}, "abcdef"));
    ASSERT_EQ(idx_read(path.c_str(), &array), 0);
    EXPECT_EQ(array.rank, 2);
    EXPECT_EQ(array.dims[0], 2);
    EXPECT_EQ(array.dims[1], 3);
    EXPECT_EQ(Bytes(), "abcdef");
}

TEST_F(IdxTest, APipeIsNotWaitedFor) {
    alarm(20);
    for (const char *name : {"pipe", "gzipped.gz"}) {
        std::string path = Path(name);
        ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
        EXPECT_EQ(Failure(folder + "/" + std::string(name, strcspn(name, "."))),
                  "amprun: " + path + ": is a pipe; only a regular file is read here: copy what it gives to one\n");
    }
    EXPECT_NE(Failure(folder).find(": cannot read: Is a directory"), std::string::npos);
    EXPECT_NE(Failure("/dev/null").find("/dev/null: is a device"), std::string::npos);
    alarm(0);
}

TEST_F(IdxTest, GzipUnderThePlainName) {
    WriteGzip("a.gz", Idx(kUnsignedByte, {3}, "xyz"));
    ASSERT_EQ(idx_read((folder + "/a").c_str(), &array), 0);
    EXPECT_EQ(array.rank, 1);
    EXPECT_EQ(Bytes(), "xyz");
}

TEST_F(IdxTest, PlainComesBeforeGzip) {
    WriteGzip("a.gz", Idx(kUnsignedByte, {1}, "z"));
    Write("a", Idx(kUnsignedByte, {1}, "p"));
    ASSERT_EQ(idx_read((folder + "/a").c_str(), &array), 0);
    EXPECT_EQ(Bytes(), "p");
}

TEST_F(IdxTest, MissingFileNamesBothNames) {
    EXPECT_EQ(Failure(folder + "/none"), "amprun: " + folder + "/none[.gz]: No such file or directory\n");
}

TEST_F(IdxTest, EveryTruncationIsSeen) {
    const std::string whole = Idx(kUnsignedByte, {2, 3}, "abcdef");
    for (size_t size = 0; size < whole.size(); size++) {
        std::string message = Failure(Write("cut", whole.substr(0, size)));
        EXPECT_NE(message.find("/cut: ends after "), std::string::npos) << size << ": " << message;
        EXPECT_NE(message.find("cut off"), std::string::npos) << size << ": " << message;
    }
}

TEST_F(IdxTest, TruncatedGzip) {
    std::string noise;
    for (unsigned i = 0, x = 1; i < 4096; i++) noise += static_cast<char>((x = x * 1664525u + 1013904223u) >> 24);
    std::string path = WriteGzip("a.gz", Idx(kUnsignedByte, {4096}, noise));
    ASSERT_EQ(truncate(path.c_str(), 2000), 0);
    EXPECT_NE(Failure(folder + "/a").find("/a.gz: "), std::string::npos);
}

TEST_F(IdxTest, DamagedGzip) {
    std::string path = WriteGzip("a.gz", Idx(kUnsignedByte, {64}, std::string(64, 'a')));
    std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(-6, std::ios::end); // in the checksum
    f.put('\x55');
    f.close();
    EXPECT_NE(Failure(folder + "/a").find("damaged gzip data"), std::string::npos);
}

struct BadFile {
    const char *what;
    std::string bytes, message;
};

TEST_F(IdxTest, BadHeadersNameThePlace) {
    const BadFile files[] = {
        {"magic", "PK\3\4" + std::string(20, 'x'), "is no IDX file: it starts with 50 4b, not 00 00"},
        {"type", Idx(0x0d, {1}, "abcd"), "byte 2: element type 0x0d; only unsigned bytes (0x08) are read"},
        {"rank 0", Idx(kUnsignedByte, {}, "a"), "byte 3: 0 dimensions; 1 to 4 are read"},
        {"rank 5", Idx(kUnsignedByte, {1, 1, 1, 1, 1}, "a"), "byte 3: 5 dimensions; 1 to 4 are read"},
        {"empty", Idx(kUnsignedByte, {0}, ""), "dimension 0 is 0: too large or empty"},
        {"huge", Idx(kUnsignedByte, {0xffffffffu}, "a"), "dimension 0 is 4294967295: too large or empty"},
        {"product", Idx(kUnsignedByte, {65536, 65536}, "a"), "dimension 1 is 65536: too large or empty"},
        {"beyond", Idx(kUnsignedByte, {2}, "abc"), "has bytes beyond its 2 elements"},
    };
    for (const BadFile &file : files) {
        std::string path = Write("bad", file.bytes), message = Failure(path);
        EXPECT_NE(message.find(path + ": " + file.message), std::string::npos) << file.what << ": " << message;
    }
}
