// cache_test.cc: compiled kernels on disk: where, whole or not at all, damaged, too many, full disk, two processes.
#include "runtime/device/cuda/cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/base/failing_allocator.h"
#include "tests/runtime/device/cuda/child.h"

namespace fs = std::filesystem;

namespace {

class CudaCache : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "amp_cache_test.XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
        setenv("AMPC_CACHE_DIR", folder_.c_str(), 1);
        for (const char *other : {"AMPC_CACHE_LIMIT", "XDG_CACHE_HOME"}) unsetenv(other);
        setenv("HOME", (folder_ + "/home").c_str(), 1);
    }
    void TearDown() override { fs::remove_all(folder_); }

    static amp_cuda_cache_key Key(const std::string &source) {
        const char *parts[] = {source.c_str()};
        return amp_cuda_cache_key_of(parts, 1, 13000, 80, true);
    }
    static bool Put(amp_cuda_cache *cache, const std::string &source, const std::string &image) {
        amp_cuda_cache_key key = Key(source);
        amp_cuda_cache_entry entry = {const_cast<char *>(image.data()), image.size(), 1, 32, 1024, 0, 16};
        return amp_cuda_cache_put(cache, &key, &entry);
    }
    // "-": it is not there.
    static std::string Get(amp_cuda_cache *cache, const std::string &source) {
        amp_cuda_cache_key key = Key(source);
        amp_cuda_cache_entry entry;
        if (!amp_cuda_cache_get(cache, &key, &entry)) return "-";
        std::string image(static_cast<char *>(entry.image), entry.size);
        amp_cuda_cache_entry_free(cache, &entry);
        return image;
    }
    std::set<std::string> Files() const {
        std::set<std::string> names;
        for (const auto &entry : fs::directory_iterator(folder_))
            if (entry.is_regular_file()) names.insert(entry.path().filename());
        return names;
    }
    std::string OnlyFile() const {
        EXPECT_EQ(Files().size(), 1u);
        return folder_ + "/" + *Files().begin();
    }
    static std::string ReadAll(const std::string &path) {
        std::ifstream in(path, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), {});
    }
    static void WriteAll(const std::string &path, const std::string &text) {
        std::ofstream(path, std::ios::binary) << text;
    }
    // Opens, puts, closes (which trims).
    bool PutAlone(const std::string &source, const std::string &image) {
        amp_cuda_cache *cache = amp_cuda_cache_open(nullptr);
        bool put = Put(cache, source, image);
        amp_cuda_cache_close(cache);
        return put;
    }
    std::string GetAlone(const std::string &source) {
        amp_cuda_cache *cache = amp_cuda_cache_open(nullptr);
        std::string image = Get(cache, source);
        amp_cuda_cache_close(cache);
        return image;
    }

    std::string folder_;
};

const std::string kBinary("\x7f"
                          "ELF\0\0image\0",
                          12);

} // namespace

TEST_F(CudaCache, GivesBackWhatWasPut) {
    FailingAllocator counting;
    amp_allocator a = counting.get();
    amp_cuda_cache *cache = amp_cuda_cache_open(&a);
    ASSERT_NE(cache, nullptr);
    EXPECT_STREQ(amp_cuda_cache_folder(cache), folder_.c_str());
    EXPECT_EQ(Get(cache, "kernel"), "-");
    EXPECT_TRUE(Put(cache, "kernel", kBinary));
    amp_cuda_cache_key key = Key("kernel");
    amp_cuda_cache_entry entry;
    ASSERT_TRUE(amp_cuda_cache_get(cache, &key, &entry));
    EXPECT_EQ(std::string(static_cast<char *>(entry.image), entry.size), kBinary);
    EXPECT_EQ(entry.is_cubin, 1);
    EXPECT_EQ(entry.registers, 32);
    EXPECT_EQ(entry.shared_bytes, 1024);
    EXPECT_EQ(entry.spill_bytes, 0);
    EXPECT_EQ(entry.stack_bytes, 16);
    amp_cuda_cache_entry_free(cache, &entry);
    EXPECT_TRUE(Put(cache, "kernel", "again")) << "over the old one";
    EXPECT_EQ(Get(cache, "kernel"), "again");
    amp_cuda_cache_close(cache);
    EXPECT_EQ(GetAlone("kernel"), "again") << "in the next process";
}

TEST_F(CudaCache, EveryPartOfTheKeyCounts) {
    auto key = [](std::vector<const char *> parts, int version, int arch, bool cubin) {
        amp_cuda_cache_key key =
            amp_cuda_cache_key_of(parts.data(), static_cast<int>(parts.size()), version, arch, cubin);
        return std::string(reinterpret_cast<char *>(key.bytes), sizeof key.bytes);
    };
    std::set<std::string> keys = {key({"ab", "c"}, 13000, 80, true),  key({"a", "bc"}, 13000, 80, true),
                                  key({"abc"}, 13000, 80, true),      key({"ab", "c", ""}, 13000, 80, true),
                                  key({"ab", "c"}, 12090, 80, true),  key({"ab", "c"}, 13000, 90, true),
                                  key({"ab", "c"}, 13000, 80, false), key({"ab", "d"}, 13000, 80, true)};
    EXPECT_EQ(keys.size(), 8u);
    EXPECT_EQ(key({"ab", "c"}, 13000, 80, true), key({"ab", "c"}, 13000, 80, true));
}

TEST_F(CudaCache, Folders) {
    auto opened = [] {
        amp_cuda_cache *cache = amp_cuda_cache_open(nullptr);
        std::string folder = amp_cuda_cache_folder(cache);
        amp_cuda_cache_close(cache);
        return folder;
    };
    fs::create_directory(folder_ + "/home");
    setenv("XDG_CACHE_HOME", (folder_ + "/xdg").c_str(), 1);
    setenv("AMPC_CACHE_DIR", (folder_ + "/deep/er").c_str(), 1);
    EXPECT_EQ(opened(), folder_ + "/deep/er");
    unsetenv("AMPC_CACHE_DIR");
    EXPECT_EQ(opened(), folder_ + "/xdg/ampc");
    setenv("XDG_CACHE_HOME", "relative", 1);
    EXPECT_EQ(opened(), folder_ + "/home/.cache/ampc") << "a relative XDG_CACHE_HOME does not count";
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "relative", 1);
    EXPECT_EQ(opened(), "");
    EXPECT_FALSE(fs::exists("relative"));
    setenv("HOME", (folder_ + "/missing").c_str(), 1);
    EXPECT_EQ(opened(), "");
    EXPECT_FALSE(fs::exists(folder_ + "/missing")) << "a home that is not there is not made";
    setenv("HOME", (folder_ + "/home").c_str(), 1);
    EXPECT_EQ(opened(), folder_ + "/home/.cache/ampc");
    EXPECT_EQ(fs::status(folder_ + "/home/.cache/ampc").permissions(), fs::perms::owner_all);
    unsetenv("HOME");
    EXPECT_EQ(opened(), "");
    setenv("AMPC_CACHE_DIR", std::string(5000, 'x').c_str(), 1);
    EXPECT_EQ(opened(), "");
}

// Kernels are code: what somebody else could have written is not run.
TEST_F(CudaCache, FoldersAndFilesOfOthersAreNotUsed) {
    ASSERT_TRUE(PutAlone("kernel", "image"));
    const std::string file = OnlyFile();
    for (mode_t mode : {0777, 01777, 0770, 0720, 0702}) {
        ASSERT_EQ(chmod(folder_.c_str(), mode), 0);
        EXPECT_EQ(GetAlone("kernel"), "-") << std::oct << mode;
        EXPECT_FALSE(PutAlone("other", "image"));
    }
    ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
    EXPECT_EQ(GetAlone("kernel"), "image");
    for (mode_t mode : {0666, 0664, 0602}) {
        ASSERT_EQ(chmod(file.c_str(), mode), 0);
        EXPECT_EQ(GetAlone("kernel"), "-") << std::oct << mode;
    }
    ASSERT_EQ(chmod(file.c_str(), 0644), 0);
    EXPECT_EQ(GetAlone("kernel"), "image");
    fs::rename(file, folder_ + "/elsewhere");
    fs::create_symlink(folder_ + "/elsewhere", file);
    EXPECT_EQ(GetAlone("kernel"), "-") << "a link";
    fs::remove(file);
    fs::rename(folder_ + "/elsewhere", file);
    if (chown(file.c_str(), 1, (gid_t)-1) == 0) { /* where the test may: as root */
        EXPECT_EQ(GetAlone("kernel"), "-") << "another user's file";
        ASSERT_EQ(chown(file.c_str(), geteuid(), (gid_t)-1), 0);
        ASSERT_EQ(chown(folder_.c_str(), 1, (gid_t)-1), 0);
        EXPECT_EQ(GetAlone("kernel"), "-") << "another user's folder";
        ASSERT_EQ(chown(folder_.c_str(), geteuid(), (gid_t)-1), 0);
    }
    EXPECT_EQ(GetAlone("kernel"), "image");
}

TEST_F(CudaCache, IsOffWithALimitOf0) {
    setenv("AMPC_CACHE_LIMIT", "0", 1);
    amp_cuda_cache *cache = amp_cuda_cache_open(nullptr);
    EXPECT_EQ(cache, nullptr);
    EXPECT_FALSE(Put(cache, "kernel", "image"));
    EXPECT_EQ(Get(cache, "kernel"), "-");
    EXPECT_STREQ(amp_cuda_cache_folder(cache), "");
    amp_cuda_cache_close(cache);
    EXPECT_TRUE(Files().empty());
}

// Every bit that is turned and every byte that is cut off is seen, and the file removed.
TEST_F(CudaCache, DamagedFilesAreRemoved) {
    ASSERT_TRUE(PutAlone("kernel", "the image"));
    const std::string path = OnlyFile(), whole = ReadAll(path);
    amp_cuda_cache *cache = amp_cuda_cache_open(nullptr);
    for (size_t i = 0; i < whole.size(); i++) {
        std::string turned = whole;
        turned[i] ^= static_cast<char>(1 << i % 8);
        for (const std::string &damaged : {turned, whole.substr(0, i), whole + std::string(i + 1, '\0')}) {
            WriteAll(path, damaged);
            ASSERT_EQ(Get(cache, "kernel"), "-") << "byte " << i;
            ASSERT_TRUE(Files().empty()) << "byte " << i;
        }
    }
    EXPECT_TRUE(Put(cache, "kernel", "the image"));
    EXPECT_EQ(Get(cache, "kernel"), "the image");
    // Another kernel's file under this name.
    ASSERT_TRUE(Put(cache, "other", "another image"));
    std::set<std::string> names = Files();
    std::string other = folder_ + "/" + (folder_ + "/" + *names.begin() == path ? *names.rbegin() : *names.begin());
    fs::copy_file(other, path, fs::copy_options::overwrite_existing);
    EXPECT_EQ(Get(cache, "kernel"), "-");
    EXPECT_EQ(Get(cache, "other"), "another image");
    amp_cuda_cache_close(cache);
}

TEST_F(CudaCache, TheLeastRecentlyUsedGoFirst) {
    const std::string image(10000, 'x');
    for (const char *source : {"a", "b", "c", "d"}) ASSERT_TRUE(PutAlone(source, image));
    std::ofstream(folder_ + "/README") << std::string(50000, 'r');
    // Times of the files: a before b before c before d, all long ago.
    for (const auto &name : Files()) {
        if (name == "README") continue;
        fs::last_write_time(folder_ + "/" + name, fs::file_time_type::clock::now() - std::chrono::hours(100));
    }
    amp_cuda_cache *cache = amp_cuda_cache_open(nullptr);
    for (const char *used : {"b", "c", "a"}) {
        EXPECT_EQ(Get(cache, used), image);
        std::this_thread::sleep_for(std::chrono::milliseconds(15));
    }
    amp_cuda_cache_close(cache);
    EXPECT_EQ(Files().size(), 5u) << "nothing was put";
    setenv("AMPC_CACHE_LIMIT", "31000", 1);
    ASSERT_TRUE(PutAlone("e", image));
    EXPECT_EQ(Files().size(), 4u);
    EXPECT_EQ(GetAlone("d"), "-") << "not used since";
    EXPECT_EQ(GetAlone("b"), "-") << "the one used first";
    for (const char *kept : {"c", "a", "e"}) EXPECT_EQ(GetAlone(kept), image) << kept;
    EXPECT_TRUE(fs::exists(folder_ + "/README")) << "not ours";
    EXPECT_FALSE(PutAlone("too large", std::string(31000, 'y')));
    EXPECT_EQ(Files().size(), 4u);
    setenv("AMPC_CACHE_LIMIT", "50", 1);
    EXPECT_FALSE(PutAlone("f", "y"));
    setenv("AMPC_CACHE_LIMIT", "much", 1);
    EXPECT_TRUE(PutAlone("f", "y")) << "no number: the default";
}

TEST_F(CudaCache, HalfWrittenFilesOfTheDeadGo) {
    ASSERT_TRUE(PutAlone("kernel", "image"));
    const std::string kernel = OnlyFile(), fresh = kernel + ".tmp-aaaaaa", old = kernel + ".tmp-bbbbbb";
    for (const std::string &path : {fresh, old}) WriteAll(path, "half");
    fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
    ASSERT_TRUE(PutAlone("other", "image"));
    EXPECT_TRUE(fs::exists(kernel));
    EXPECT_TRUE(fs::exists(fresh)) << "its process may be writing it now";
    EXPECT_FALSE(fs::exists(old));
}

TEST_F(CudaCache, AnUnwritableFolderIsNoError) {
    const std::string file = folder_ + "/file";
    WriteAll(file, "a file, not a folder");
    setenv("AMPC_CACHE_DIR", file.c_str(), 1);
    EXPECT_EQ(amp_cuda_cache_open(nullptr), nullptr);
    setenv("AMPC_CACHE_DIR", (file + "/below").c_str(), 1);
    EXPECT_EQ(amp_cuda_cache_open(nullptr), nullptr);
    setenv("AMPC_CACHE_DIR", "/proc/1/fdinfo", 1); // root cannot create files there either
    EXPECT_FALSE(PutAlone("kernel", "image"));
    EXPECT_EQ(GetAlone("kernel"), "-");
    // A folder is where the file should be.
    setenv("AMPC_CACHE_DIR", folder_.c_str(), 1);
    fs::remove(file);
    ASSERT_TRUE(PutAlone("kernel", "image"));
    const std::string path = OnlyFile();
    fs::remove(path);
    fs::create_directory(path);
    EXPECT_EQ(GetAlone("kernel"), "-");
    EXPECT_FALSE(PutAlone("kernel", "image"));
}

// A limit on the size of files simulates a full disk: writing fails in the middle.
TEST_F(CudaCache, AFullDiskIsNoErrorAndLeavesNothing) {
    std::string result = InChild([&]() -> std::string {
        signal(SIGXFSZ, SIG_IGN);
        rlimit limit = {4096, 4096};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit";
        bool small = PutAlone("small", "image"), large = PutAlone("large", std::string(100000, 'x'));
        return std::string(small ? "kept " : "lost ") + (large ? "kept " : "lost ") + GetAlone("small") + " " +
               GetAlone("large");
    });
    EXPECT_EQ(result, "kept lost image -");
    EXPECT_EQ(Files().size(), 1u) << "the half-written file is gone";
}

TEST_F(CudaCache, MemoryRunsOut) {
    bool done = false;
    for (int fail_at = 0; fail_at < 50 && !done; fail_at++) {
        FailingAllocator failing(fail_at);
        amp_allocator a = failing.get();
        amp_cuda_cache *cache = amp_cuda_cache_open(&a);
        bool put = Put(cache, "kernel", "image");
        std::string got = Get(cache, "kernel");
        EXPECT_TRUE(got == "-" || got == "image");
        amp_cuda_cache_close(cache);
        done = put && got == "image" && failing.calls() < fail_at;
    }
    EXPECT_TRUE(done);
    EXPECT_EQ(GetAlone("kernel"), "image") << "running out of memory is no damage";
}

// Several processes write and read the same kernels: whoever sees one sees all of it.
TEST_F(CudaCache, ProcessesFillItAtOnce) {
    constexpr int kProcesses = 4, kRounds = 60, kKernels = 3;
    auto image = [](int kernel, int process) { return std::string(20000 + kernel, static_cast<char>('a' + process)); };
    std::vector<std::thread> waiting;
    std::vector<std::string> results(kProcesses);
    for (int p = 0; p < kProcesses; p++)
        waiting.emplace_back([&, p] {
            results[p] = InChild([&]() -> std::string {
                amp_cuda_cache *cache = amp_cuda_cache_open(nullptr);
                int hits = 0;
                for (int round = 0; round < kRounds; round++) {
                    int kernel = round % kKernels;
                    std::string source = "kernel " + std::to_string(kernel), seen = Get(cache, source);
                    if (seen != "-") {
                        hits++;
                        if (seen != image(kernel, seen[0] - 'a')) return "a part or a mixture of files";
                    } else if (round >= kKernels) {
                        return "lost in round " + std::to_string(round);
                    }
                    if (!Put(cache, source, image(kernel, p))) return "not put";
                }
                amp_cuda_cache_close(cache);
                return hits >= kRounds - kKernels ? "good" : "few hits";
            });
        });
    for (std::thread &thread : waiting) thread.join();
    for (int p = 0; p < kProcesses; p++) EXPECT_EQ(results[p], "good");
    EXPECT_EQ(Files().size(), static_cast<size_t>(kKernels)) << "no half-written file stays";
}
