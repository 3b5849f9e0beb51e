// The cache of compiled kernels as amprun's users meet it: filled by one run and taken by the next, damaged in every
// entry, on a disk that is full, filled by several processes
// at once.  Whatever happens to it, training gives the same bytes.
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <sstream>

#include "tests/e2e/harness.h"
#include "tests/tools/scratch.h"

namespace {

enum { IN = 6, CLASSES = 3, SAMPLES = 24 };

std::string Slurp(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream all;
    all << file.rdbuf();
    return all.str();
}

std::string Or(const char *variable, const char *otherwise) {
    const char *given = getenv(variable);
    return given ? given : otherwise;
}

class CudaCache : public ScratchTest {
  protected:
    static void SetUpTestSuite() { model_ = e2e::compile_to_file(e2e::mlp("fp16", IN, 136, CLASSES), "cuda-cache.so"); }
    // One cache for all tests; each leaves it whole.
    static void TearDownTestSuite() {
        for (const std::string &path : Entries(Folder())) unlink(path.c_str());
        rmdir(Folder().c_str());
        unlink(model_.c_str());
    }
    static std::string Folder() { return testing::TempDir() + "cuda-cache-" + std::to_string(getpid()); }

    void SetUp() override {
        ScratchTest::SetUp();
        cache_ = Folder();
        library_ = Or("FAKECUDA_LIBRARY", "fakecuda/libcuda.so.1");
        data_ = Write("data.safetensors", Samples());
        const int status = Train("first", "");
        if (status && Said("first").find("NVRTC") != std::string::npos) GTEST_SKIP() << Said("first");
        ASSERT_EQ(status, 0) << Said("first");
        entries_ = Entries();
        ASSERT_GT(entries_.size(), 5u);
        want_ = Slurp(Path("first"));
        ASSERT_FALSE(want_.empty());
    }

    static std::string Samples() {
        const std::string head = "{\"x\":{\"dtype\":\"F32\",\"shape\":[24,6],\"data_offsets\":[0,576]},"
                                 "\"targets\":{\"dtype\":\"I32\",\"shape\":[24],\"data_offsets\":[576,672]}}";
        std::string out;
        for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(head.size() >> shift & 255);
        e2e::Batch batch(SAMPLES, IN, CLASSES, 9);
        out += head;
        out.append(reinterpret_cast<const char *>(batch.x.data()), batch.x.size() * 4);
        out.append(reinterpret_cast<const char *>(batch.y.data()), batch.y.size() * 4);
        return out;
    }

    // Three steps on the stand-in; |before|: shell text in front of the command.  What is learned goes to file |name|.
    std::string Command(const std::string &name, const std::string &before) {
        const std::string saved = Path(name), said = Path(name + ".log");
        const size_t slash = library_.rfind('/');
        return before + " LD_LIBRARY_PATH=" + library_.substr(0, slash) + " AMPC_CACHE_DIR=" + cache_ + " " +
               Or("AMPRUN", "tools/amprun") + " train " + model_ + " --device cuda --data safetensors:" + data_ +
               " --steps 3 --batch 8 --seed 4 --quiet --save " + saved + " > " + said + " 2>&1";
    }
    int Train(const std::string &name, const std::string &before) {
        const int status = system(Command(name, before).c_str());
        return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + status;
    }
    std::string Said(const std::string &name) { return Slurp(folder + "/" + name + ".log"); }
    void ExpectSame(const std::string &name, const std::string &before) {
        EXPECT_EQ(Train(name, before), 0) << Said(name);
        EXPECT_TRUE(Slurp(folder + "/" + name) == want_) << name << ": other numbers\n" << Said(name);
    }
    // Every kernel is there, and sound: none is written anew.
    void ExpectFull(const std::string &name) {
        const std::vector<ino_t> before = Files();
        ExpectSame(name, "");
        EXPECT_EQ(Entries(), entries_);
        EXPECT_EQ(Files(), before) << "some were compiled";
    }
    std::vector<ino_t> Files() {
        std::vector<ino_t> out;
        for (const std::string &path : Entries()) {
            struct stat s = {};
            EXPECT_EQ(stat(path.c_str(), &s), 0) << path;
            out.push_back(s.st_ino);
        }
        return out;
    }

    std::vector<std::string> Entries() { return Entries(cache_); }
    static std::vector<std::string> Entries(const std::string &cache) {
        std::vector<std::string> out;
        DIR *folder_of = opendir(cache.c_str());
        if (!folder_of) return out;
        while (dirent *e = readdir(folder_of))
            if (e->d_name[0] != '.') out.push_back(cache + "/" + e->d_name);
        closedir(folder_of);
        std::sort(out.begin(), out.end());
        return out;
    }
    void Clear() {
        for (const std::string &path : Entries()) unlink(path.c_str());
    }

    std::string cache_, library_, data_, want_;
    std::vector<std::string> entries_;
    static inline std::string model_;
};

TEST_F(CudaCache, TheSecondRunCompilesNothing) { ExpectFull("again"); }

TEST_F(CudaCache, DamagedEntriesAreBuiltAnew) {
    const std::string other = Slurp(entries_[0]);
    struct Damage {
        std::function<std::string(std::string)> apply;
    };
    const Damage damages[] = {
        {[](const std::string &) { return std::string(); }},
        {[](const std::string &s) { return s.substr(0, s.size() / 2); }},
        {[](const std::string &s) { return s.substr(0, s.size() - 1); }},
        {[](const std::string &s) { return s + "x"; }},
        {[](std::string s) { return s[0] ^= 1, s; }},
        {[](std::string s) { return s[s.size() / 2] ^= 0x20, s; }},
        {[](std::string s) { return s[s.size() - 1] ^= 0x40, s; }},
        {[](const std::string &s) { return std::string(s.size(), '\0'); }},
        {[&](const std::string &s) { return s == other ? s + s : other; }},
    };
    const size_t kinds = sizeof damages / sizeof *damages;
    ASSERT_GE(entries_.size(), kinds) << "each damage hits at least one";
    for (size_t round = 0; round < 2 && !HasFailure(); round++) {
        for (size_t i = 0; i < entries_.size(); i++) {
            const Damage &d = damages[(i + 4 * round) % kinds];
            const std::string damaged = d.apply(Slurp(entries_[i]));
            std::ofstream(entries_[i], std::ios::binary) << damaged;
        }
        ExpectSame("damaged", "");
        ExpectFull("rebuilt");
    }
}

// No file may grow beyond |blocks| of 512 bytes, as if the disk were full.
// A file system of its own that is full, in a name space of its own.
TEST_F(CudaCache, FullDisk) {
    if (system("unshare -rm sh -c 'mount -t tmpfs -o size=16k tmpfs /tmp' >/dev/null 2>&1"))
        GTEST_SKIP() << "this system does not allow mounting a file system";
    Clear();
    for (const char *size : {"4k", "64k"}) {
        const std::string script =
            Write("full.sh", "mkdir -p " + cache_ + "\nmount -t tmpfs -o mode=700,size=" + size + " tmpfs " + cache_ +
                                 "\n" + Command("full", "") + "\nstatus=$?\ncp -r " + cache_ + " " + cache_ +
                                 ".seen\nexit $status\n");
        const int status = system(("unshare -rm sh " + script).c_str());
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << Said("full") << " " << status;
        EXPECT_TRUE(Slurp(folder + "/full") == want_) << "other numbers";
        for (const std::string &path : Entries(cache_ + ".seen")) // only what is whole
            EXPECT_NE(std::find(entries_.begin(), entries_.end(), cache_ + path.substr(path.rfind('/'))),
                      entries_.end())
                << path << " is left over";
        EXPECT_LT(Entries(cache_ + ".seen").size(), entries_.size()) << "the disk was not full";
        std::filesystem::remove_all(cache_ + ".seen");
    }
    ExpectSame("later", "");
    ExpectFull("then");
    EXPECT_EQ(Entries(), entries_);
}

TEST_F(CudaCache, AFolderThatCannotBe) {
    const std::string file = Write("file", "no folder");
    const std::string cache = cache_;
    cache_ = file + "/cache";
    ExpectSame("without", "");
    cache_ = cache;
}

TEST_F(CudaCache, ThreeProcessesFillIt) {
    Clear();
    std::vector<pid_t> children;
    for (int i = 0; i < 3; i++) {
        const std::string command = Command("at-once-" + std::to_string(i), "");
        children.push_back(fork());
        if (children.back() == 0) execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    }
    for (pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    for (int i = 0; i < 3; i++) EXPECT_TRUE(Slurp(folder + "/at-once-" + std::to_string(i)) == want_);
    EXPECT_EQ(Entries(), entries_);
    ExpectFull("after");
}

} // namespace
