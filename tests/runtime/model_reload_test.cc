// A model is a private copy of the file that was loaded: what happens to the file afterwards changes nothing, and a
// file that has replaced it is loaded as what it is now.
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>

extern "C" {
#include "base/elf.h"
#include "base/hash.h"
}
#include "tests/base/sanitizer.h"
#include "tests/runtime/files.h"
#include "tests/runtime/tiny.h"

namespace {

// The tiny model under another name of four letters, with its hash.
std::string Named(const std::string &name) {
    std::string bytes = ReadAll("tests/runtime/tiny_model.so"), from = std::string("tiny\0", 5);
    size_t hash_at = 0, length = 0, found = 0;
    EXPECT_EQ(name.size(), 4u);
    // Linkers may keep it as the end of a longer string.
    for (size_t at = 0; (at = bytes.find(from, at)) != std::string::npos; found++) bytes.replace(at, 4, name);
    EXPECT_GT(found, 0u);
    EXPECT_EQ(amp_elf_section(bytes.data(), bytes.size(), AMP_MODEL_HASH_SECTION, &hash_at, &length, nullptr), AMP_OK);
    memset(&bytes[hash_at], 0, length);
    uint8_t hash[32];
    amp_sha256_of(bytes.data(), bytes.size(), hash);
    memcpy(&bytes[hash_at], hash, 32);
    return bytes;
}

std::string Numbered(int i) { return "m" + std::to_string(100 + i); }

std::string NameOf(const amp_model *model) {
    amp_model_info info;
    amp_model_get_info(model, &info);
    return info.name;
}

amp_model *Load(const std::string &path) {
    amp_model *model = nullptr;
    amp_error err = {};
    EXPECT_EQ(amp_model_load(path.c_str(), nullptr, &model, &err), AMP_OK) << err.message;
    return model;
}

// As ampc puts a new model in the place of an old one.
std::string Replace(const std::string &name, const std::string &bytes) {
    std::string path = TempPath(name), next = WriteTemp(name + ".new", bytes);
    EXPECT_EQ(rename(next.c_str(), path.c_str()), 0);
    return path;
}

struct Serving {
    explicit Serving(amp_model *model) {
        amp_error err = {};
        amp_params_options seed = {sizeof seed, 7, 0};
        amp::SessionOptions o = TinyOptions(16);
        EXPECT_EQ(amp_params_create(model, &seed, &params, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK) << err.message;
    }
    ~Serving() {
        amp_session_release(session);
        amp_params_release(params);
    }
    double Step() {
        TinyBatch batch(16);
        amp_step_report report = {};
        amp_error err = {};
        EXPECT_EQ(amp_step(session, batch.inputs, {16, 0}, &report, &err), AMP_OK) << err.message;
        return report.loss;
    }
    amp_params *params = nullptr;
    amp_session *session = nullptr;
};

int DescriptorCount() {
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir)) count++;
    closedir(dir);
    return count;
}

amp_status LoadBytes(const void *bytes, size_t size, const char *name, amp_model **out, amp_error *err) {
    amp::ModelOptions from;
    from.bytes = bytes, from.size = size;
    return amp_model_load(name, &from, out, err);
}

std::string Maps() { return ReadAll("/proc/self/maps"); }
size_t LineCount(const std::string &text) { return (size_t)std::count(text.begin(), text.end(), '\n'); }

long ResidentPages() {
    long size = 0, resident = 0;
    sscanf(ReadAll("/proc/self/statm").c_str(), "%ld %ld", &size, &resident);
    return resident;
}

TEST(ModelReload, TheNewOneIsLoadedWhileTheOldOneServes) {
    std::string path = Replace("live.so", Named("old1"));
    amp_model *old = Load(path);
    Serving serving(old);
    int descriptors = 0;
    size_t mappings = 0;
    long pages = 0;
    for (int i = 0; i < 100; i++) {
        Replace("live.so", Named(Numbered(i)));
        amp_model *now = Load(path);
        ASSERT_EQ(NameOf(now), Numbered(i));
        if (i % 10 == 0) Serving(now).Step();
        amp_model_release(now);
        ASSERT_EQ(NameOf(old), "old1");
        if (i == 20) descriptors = DescriptorCount(), mappings = LineCount(Maps()), pages = ResidentPages();
    }
    serving.Step();
    EXPECT_EQ(DescriptorCount(), descriptors);
    if (!amp_test_address_sanitizer) {
        EXPECT_LE(LineCount(Maps()), mappings + 2); // the heap's own
        EXPECT_LE(ResidentPages(), pages + 256); // a megabyte; the file has more than a page, and 80 were loaded since
    }
    amp_model_release(old);
}

TEST(ModelReload, ManyVersionsLiveAtOnce) {
    std::vector<amp_model *> models;
    for (int i = 0; i < 40; i++) models.push_back(Load(Replace("many.so", Named(Numbered(i)))));
    for (int i = 0; i < 40; i++) EXPECT_EQ(NameOf(models[i]), Numbered(i));
    // In any order, and the places of those that are gone are taken again.
    for (int i = 0; i < 40; i += 2) amp_model_release(models[i]);
    for (int i = 0; i < 40; i += 2) models[i] = Load(Replace("many.so", Named(Numbered(100 + i))));
    for (int i = 0; i < 40; i++) EXPECT_EQ(NameOf(models[i]), Numbered(i % 2 ? i : 100 + i));
    for (amp_model *m : models) amp_model_release(m);
}

// A daemon closes all descriptors, and numbers are given out again.
TEST(ModelReload, NoDescriptorStaysOpen) {
    int before = DescriptorCount();
    amp_model *model = Load(WriteTemp("open.so", Named("open")));
    EXPECT_EQ(DescriptorCount(), before);
    amp_model_release(model);
}

TEST(ModelReload, RelativeNamesToo) {
    char here[4096];
    ASSERT_TRUE(getcwd(here, sizeof here));
    std::string a = Named("aaaa"), b = Named("bbbb");
    ASSERT_EQ(chdir(::testing::TempDir().c_str()), 0);
    for (const char *name : {"relative.so", "./relative.so"}) {
        std::ofstream("relative.so", std::ios::binary) << a;
        amp_model *old = Load(name);
        std::ofstream("next.so", std::ios::binary) << b;
        ASSERT_EQ(rename("next.so", "relative.so"), 0);
        amp_model *now = Load(name);
        EXPECT_EQ(NameOf(old), "aaaa");
        EXPECT_EQ(NameOf(now), "bbbb");
        amp_model_release(old), amp_model_release(now);
    }
    ASSERT_EQ(chdir(here), 0);
}

TEST(ModelReload, OverwritingTheFileInPlaceChangesNothing) {
    std::string path = WriteTemp("place.so", Named("here"));
    amp_model *model = Load(path);
    double loss;
    {
        Serving untouched(model);
        loss = untouched.Step();
    }
    Serving serving(model);
    WriteTemp("place.so", std::string(ReadAll(path).size(), '\xcc'));
    ASSERT_EQ(truncate(path.c_str(), 0), 0);
    EXPECT_EQ(serving.Step(), loss);
    EXPECT_EQ(NameOf(model), "here");
    amp_model_release(model);
}

// The system's loader would expand these.
TEST(ModelReload, DollarsInANameAreLetters) {
    for (const char *name : {"$LIB.so", "$ORIGIN.so", "${PLATFORM}.so"}) {
        amp_model *model = Load(WriteTemp(name, Named("cash")));
        EXPECT_EQ(NameOf(model), "cash");
        amp_model_release(model);
    }
}

TEST(ModelReload, MappingsHaveTheNameOfTheFile) {
    amp_model *model = Load(WriteTemp("telling_name.so", Named("name")));
    EXPECT_NE(Maps().find("telling_name.so"), std::string::npos);
    amp_model_release(model);
    EXPECT_EQ(Maps().find("telling_name.so"), std::string::npos);
    std::string longest(250, 'x');
    amp_model_release(Load(WriteTemp(longest + ".so", Named("long"))));
}

TEST(ModelMemory, LoadsBytes) {
    std::string bytes = Named("mem1");
    amp_model *model = nullptr;
    amp_error err = {};
    ASSERT_EQ(LoadBytes(bytes.data(), bytes.size(), "embedded", &model, &err), AMP_OK) << err.message;
    bytes.assign(bytes.size(), '\0'); // they are the caller's again
    EXPECT_EQ(NameOf(model), "mem1");
    Serving(model).Step();
    EXPECT_NE(Maps().find("embedded"), std::string::npos);
    amp_model_release(model);
}

TEST(ModelMemory, RefusesDamageByName) {
    std::string bytes = Named("mem2"), changed = bytes;
    changed[changed.size() / 2] ^= 1;
    amp_model *model = nullptr;
    amp_error err = {};
    EXPECT_EQ(LoadBytes(changed.data(), changed.size(), "part.so", &model, &err), AMP_BAD_FILE);
    EXPECT_EQ(std::string(err.message).find("part.so: the file is damaged"), 0u) << err.message;
    EXPECT_EQ(LoadBytes(bytes.data(), bytes.size() - 1, nullptr, &model, &err), AMP_BAD_FILE);
    EXPECT_EQ(std::string(err.message).find("model in memory: "), 0u) << err.message;
    EXPECT_EQ(LoadBytes(bytes.data(), 0, nullptr, &model, &err), AMP_BAD_FILE);
    EXPECT_EQ(amp_model_load(nullptr, nullptr, &model, &err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(LoadBytes(bytes.data(), 9, nullptr, nullptr, &err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(model, nullptr);
}

// ---- systems that lack something: in a child, which a filter of system calls makes such a system --------------------

// Calls of |number| fail with |code| from now on, in this process.
void Forbid(unsigned number, unsigned code) {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(77);
}

// 0 where |body| holds, 77 where this machine has no such filters.
int InChild(const std::function<bool()> &body) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(body() && !::testing::Test::HasFailure() ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int EntriesOf(const std::string &folder) {
    int count = 0;
    DIR *dir = opendir(folder.c_str());
    while (readdir(dir)) count++;
    closedir(dir);
    return count;
}

TEST(ModelReload, WithoutFilesInMemoryATemporaryFileServes) {
    std::string folder = TempPath("tmp"), path = Replace("nomem.so", Named("old1"));
    mkdir(folder.c_str(), 0700);
    int result = InChild([&] {
        setenv("TMPDIR", folder.c_str(), 1);
        Forbid(SYS_memfd_create, ENOSYS);
        amp_model *old = Load(path), *now = Load(Replace("nomem.so", Named("new1")));
        EXPECT_EQ(NameOf(old), "old1");
        EXPECT_EQ(NameOf(now), "new1");
        EXPECT_NE(Maps().find(folder), std::string::npos);
        EXPECT_EQ(EntriesOf(folder), 2); // . and ..
        Serving(old).Step();
        setenv("TMPDIR", "no/such/folder", 1);
        amp_model_release(Load(path)); // in another folder
        amp_model_release(old), amp_model_release(now);
        return true;
    });
    if (result == 77) GTEST_SKIP() << "no filters of system calls here";
    EXPECT_EQ(result, 0);
}

// Files in memory count for the limit (ulimit -f), whose signal would end the program.
TEST(ModelReload, UnderALimitOfTheSizeOfFilesTheFileItselfServes) {
    std::string path = Replace("limit.so", Named("old1")), next = WriteTemp("limit.so.next", Named("new1")),
                bytes = Named("none");
    int result = InChild([&] {
        rlimit limit = {4096, 4096};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
        amp_model *old = Load(path), *again = Load(path);
        EXPECT_NE(Maps().find(path), std::string::npos);
        EXPECT_EQ(rename(next.c_str(), path.c_str()), 0);
        amp_model *now = Load(path);
        EXPECT_EQ(NameOf(old), "old1");
        EXPECT_EQ(NameOf(again), "old1");
        EXPECT_EQ(NameOf(now), "new1");
        Serving(old).Step(), Serving(now).Step();
        amp_model_release(old), amp_model_release(now), amp_model_release(again);
        amp_model *model = nullptr;
        amp_error err = {};
        EXPECT_EQ(LoadBytes(bytes.data(), bytes.size(), "no.so", &model, &err), AMP_IO);
        std::string message = err.message;
        for (const char *part : {"no.so: the system cannot load it: ", "RLIMIT_FSIZE", "ulimit -f ", "ampc --emit o"})
            EXPECT_NE(message.find(part), std::string::npos) << message;
        return true;
    });
    EXPECT_EQ(result, 0);
}

TEST(ModelReload, SaysWhatItTriedWhereNothingWorks) {
    std::string bytes = Named("none");
    int result = InChild([&] {
        setenv("TMPDIR", "/no/such/folder", 1);
        Forbid(SYS_openat, EROFS);
        Forbid(SYS_open, EROFS);
        amp_model *model = nullptr;
        amp_error err = {};
        EXPECT_EQ(LoadBytes(bytes.data(), bytes.size(), "no.so", &model, &err), AMP_IO);
        std::string message = err.message;
        for (const char *part : {"no.so: the system cannot load it: ", "a temporary file in /tmp: ", "TMPDIR"})
            EXPECT_NE(message.find(part), std::string::npos) << message;
        return true;
    });
    if (result == 77) GTEST_SKIP() << "no filters of system calls here";
    EXPECT_EQ(result, 0);
}

} // namespace
