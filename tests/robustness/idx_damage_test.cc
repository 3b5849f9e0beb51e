// Damaged IDX files, plain and gzip.
#include <zlib.h>

#include "tests/robustness/damage.h"
#include "tests/robustness/idx_counted.h"

namespace {

using namespace robustness;

// deflate makes at most 1,032 bytes of one (zlib.net/zlib_tech.html); the reader doubles its array.
constexpr size_t kDeflate = 1032;

std::string Images() {
    std::string s = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5};
    for (int i = 0; i < 60; i++) s += (char)(i * 7);
    return s;
}

std::string Gzip(const std::string &bytes) {
    std::string path = Temporary("made.gz");
    gzFile f = gzopen(path.c_str(), "wb");
    EXPECT_EQ(gzwrite(f, bytes.data(), (unsigned)bytes.size()), (int)bytes.size());
    EXPECT_EQ(gzclose(f), Z_OK);
    return Read(path);
}

Outcome ReadAs(const std::string &name, const std::string &bytes) {
    std::string path = Write(name, bytes);
    IdxArray array = {};
    size_t peak;
    const char *message = idx_counted(path.c_str(), &array, &peak);
    size_t count = 1, sum = 0;
    for (int i = 0; i < array.rank; i++) count *= (size_t)array.dims[i];
    for (size_t i = 0; !message && i < count; i++) sum += array.data[i];
    volatile size_t kept = sum;
    (void)kept;
    EXPECT_EQ(array.data == nullptr, message != nullptr);
    free(array.data);
    return {message ? AMP_BAD_FILE : AMP_OK, message ? message : "", peak};
}

Format Plain() {
    return {"images.idx",
            Images(),
            16,
            {},
            [](const std::string &b) { return ReadAs("images.idx", b); },
            [](size_t size) { return 2 * size + (64 << 10); }};
}

Format Zipped() {
    std::string good = Gzip(Images());
    return {"images.idx.gz",
            good,
            good.size(),
            {},
            [](const std::string &b) { return ReadAs("images.idx.gz", b); },
            [](size_t size) { return 2 * kDeflate * size + (64 << 10); }};
}

TEST(Idx, GoodIsRead) { GoodIsRead(Plain()); }
TEST(Idx, CutAnywhere) {
    Format f = Plain();
    f.any_change_fails = true;
    CutAnywhere(f);
}
TEST(Idx, HeaderBytes) { // every byte of the header counts, so every change is seen
    Format f = Plain();
    f.any_change_fails = true;
    HeaderBytes(f);
}
TEST(Idx, RandomMutations) { RandomMutations(Plain(), 11); }

TEST(IdxGzip, GoodIsRead) { GoodIsRead(Zipped()); }
TEST(IdxGzip, CutAnywhere) {
    Format f = Zipped();
    f.any_change_fails = true;
    CutAnywhere(f);
}
TEST(IdxGzip, EveryByte) { HeaderBytes(Zipped()); }
TEST(IdxGzip, RandomMutations) { RandomMutations(Zipped(), 12); }

// The file says a gigabyte and has nothing.
TEST(Idx, SizesAreNotBelieved) {
    std::string huge = {0, 0, 8, 2, 0, 0, 0x40, 0, 0, 0, (char)0x80, 0};
    Outcome plain = ReadAs("images.idx", huge), zipped = ReadAs("images.idx.gz", Gzip(huge));
    for (const Outcome &o : {plain, zipped}) {
        EXPECT_NE(o.message.find("cut off"), std::string::npos) << o.message;
        EXPECT_LE(o.peak, (size_t)64 << 10);
    }
}

// A damaged number in the data of a gzip file changes no byte that reaches the model.
TEST(IdxGzip, DataIsChecked) {
    std::string good = Gzip(Images());
    int accepted = 0;
    for (size_t i = 10; i < good.size(); i++) {
        std::string changed = good;
        changed[i] = (char)(changed[i] ^ 1);
        IdxArray array = {};
        size_t peak;
        std::string path = Write("images.idx.gz", changed);
        if (idx_counted(path.c_str(), &array, &peak)) continue;
        accepted++;
        EXPECT_EQ(std::string((char *)array.data, 60), Images().substr(16)) << "byte " << i;
        free(array.data);
    }
    EXPECT_LT(accepted, 4);
}

} // namespace
