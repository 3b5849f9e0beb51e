// files.h: files that tests read and write.
#ifndef AMP_TESTS_RUNTIME_FILES_H
#define AMP_TESTS_RUNTIME_FILES_H

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

inline std::string TempPath(const std::string &name) { return ::testing::TempDir() + name; }

inline std::string WriteTemp(const std::string &name, const std::string &bytes) {
    std::string path = TempPath(name);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    return path;
}

// "" where there is no such file.
inline std::string ReadAll(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

#endif
