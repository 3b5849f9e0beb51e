// scratch.h: a folder of files that a test makes, removed with it.
#ifndef AMP_TESTS_TOOLS_SCRATCH_H
#define AMP_TESTS_TOOLS_SCRATCH_H

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

class ScratchTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "amprun.XXXXXX";
        ASSERT_NE(mkdtemp(&pattern[0]), nullptr);
        folder = pattern;
    }
    void TearDown() override {
        for (const std::string &path : files) unlink(path.c_str());
        rmdir(folder.c_str());
    }

    std::string Path(const std::string &name) {
        files.push_back(folder + "/" + name);
        return files.back();
    }
    std::string Write(const std::string &name, const std::string &bytes) {
        std::string path = Path(name);
        std::ofstream(path, std::ios::binary) << bytes;
        return path;
    }
    std::string WriteGzip(const std::string &name, const std::string &bytes) {
        std::string path = Path(name);
        gzFile f = gzopen(path.c_str(), "wb");
        EXPECT_EQ(gzwrite(f, bytes.data(), static_cast<unsigned>(bytes.size())), static_cast<int>(bytes.size()));
        EXPECT_EQ(gzclose(f), Z_OK);
        return path;
    }

    std::string folder;

  private:
    std::vector<std::string> files;
};

// The bytes of an IDX file: element type, sizes, data.
inline std::string Idx(int type, const std::vector<uint32_t> &sizes, const std::string &data) {
    std::string s = {0, 0, static_cast<char>(type), static_cast<char>(sizes.size())};
    for (uint32_t size : sizes)
        for (int shift = 24; shift >= 0; shift -= 8) s += static_cast<char>(size >> shift & 255);
    return s + data;
}

#endif
