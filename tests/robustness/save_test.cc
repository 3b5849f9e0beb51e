// Saving on a system that fails: each system call of a save fails in turn, with each error, once and from then on; and
// the process is killed before and after each of them, and at random moments.  The old or the new file is whole,
// always.
//
// The functions of the C library that reach files are replaced here; the libraries under test are linked statically, so
// that their calls come here.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#include "tests/base/planted.h"
#include "tests/robustness/damage.h"
#include "tests/runtime/tiny.h"

namespace {

using namespace robustness;

// ---- system calls that fail
// ------------------------------------------------------------------------------------------

enum Kind { OPEN, READ, WRITE, FSYNC, CLOSE, RENAME, CHMOD, UNLINK };
const char *const kKindNames[] = {"open", "read", "write", "fsync", "close", "rename", "fchmod", "unlink"};

struct Fault {
    bool active = false; // whether calls are counted at all
    long at = -1;        // the call that fails; -1: none
    int error = 0;       // 0: a short write
    bool forever = false;
    long calls = 0;
    std::vector<Kind> kinds; // of each call
} fault;

// Whether this call is the one that fails; sets errno.
bool Fails(Kind kind) {
    if (!fault.active) return false;
    long call = fault.calls++;
    fault.kinds.push_back(kind);
    if (fault.at < 0 || !(call == fault.at || (fault.forever && call > fault.at))) return false;
    errno = fault.error;
    return true;
}

} // namespace

extern "C" {

ssize_t write(int fd, const void *data, size_t size) {
    if (Fails(WRITE)) {
        if (errno) return -1;
        size = size > 1 ? size / 2 : size; // a short write is no error
    }
    return syscall(SYS_write, fd, data, size);
}
ssize_t read(int fd, void *data, size_t size) {
    if (Fails(READ)) {
        if (errno) return -1;
        size = size > 1 ? size / 2 : size;
    }
    return syscall(SYS_read, fd, data, size);
}
ssize_t pread(int fd, void *data, size_t size, off_t at) {
    if (Fails(READ)) {
        if (errno) return -1;
        size = size > 1 ? size / 2 : size;
    }
    return syscall(SYS_pread64, fd, data, size, at);
}
int fsync(int fd) { return Fails(FSYNC) && errno ? -1 : (int)syscall(SYS_fsync, fd); }
int close(int fd) {
    if (!Fails(CLOSE) || !errno) return (int)syscall(SYS_close, fd);
    int error = errno; // the descriptor is gone all the same, as on Linux
    syscall(SYS_close, fd);
    errno = error;
    return -1;
}
int rename(const char *from, const char *to) {
    return Fails(RENAME) && errno ? -1 : (int)syscall(SYS_rename, from, to);
}
int fchmod(int fd, mode_t mode) { return Fails(CHMOD) && errno ? -1 : (int)syscall(SYS_fchmod, fd, mode); }
int unlink(const char *path) noexcept { return Fails(UNLINK) && errno ? -1 : (int)syscall(SYS_unlink, path); }
int open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return Fails(OPEN) && errno ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

} // extern "C"

namespace {

// ---- what is saved
// ---------------------------------------------------------------------------------------------------

// A folder of its own, with the files that saves make of two different states.
class SaveTest : public testing::TestWithParam<bool> {
  protected:
    SaveTest() : first_(TinyOptions(8)), second_(TinyOptions(8)) {}
    void SetUp() override {
        std::string pattern = testing::TempDir() + "save.XXXXXX";
        ASSERT_NE(mkdtemp(&pattern[0]), nullptr);
        folder_ = pattern;
        TinyBatch batch(8);
        for (int i = 0; i < 2; i++) ASSERT_EQ(amp_step(second_.session, batch.inputs, {8, 0}, nullptr, &err_), AMP_OK);
        ASSERT_EQ(Save(first_), AMP_OK) << err_.message;
        old_ = Read(Path());
        ASSERT_EQ(Save(second_), AMP_OK) << err_.message;
        new_ = Read(Path());
        ASSERT_NE(old_, new_);
        Restore();
    }
    void TearDown() override {
        fault = {};
        for (const std::string &name : Names()) unlink((folder_ + "/" + name).c_str());
        rmdir(folder_.c_str());
    }
    std::string Path() const { return folder_ + "/state"; }
    amp_status Save(const Tiny &from) {
        return GetParam() ? amp_checkpoint_save(from.session, Path().c_str(), "position", &err_)
                          : amp_params_save(from.params, Path().c_str(), nullptr, &err_);
    }
    // The old file, and nothing else.
    void Restore() {
        for (const std::string &name : Names()) unlink((folder_ + "/" + name).c_str());
        std::ofstream(Path(), std::ios::binary) << old_;
    }
    std::vector<std::string> Names() const {
        std::vector<std::string> names;
        DIR *d = opendir(folder_.c_str());
        while (dirent *e = readdir(d))
            if (e->d_name[0] != '.') names.push_back(e->d_name);
        closedir(d);
        return names;
    }
    // Loads what is there; it must be the one or the other.
    void ExpectWhole(const std::string &when) {
        std::string now = Read(Path());
        ASSERT_TRUE(now == old_ || now == new_)
            << when << ": " << now.size() << " bytes that are neither the old nor the new file";
        amp_error err = {};
        char extra[16];
        amp_status status = GetParam() ? amp_checkpoint_load(first_.session, Path().c_str(), extra, sizeof extra, &err)
                                       : amp_params_load(first_.params, Path().c_str(), nullptr, nullptr, &err);
        ASSERT_EQ(status, AMP_OK) << when << ": " << err.message;
    }

    Tiny first_, second_;
    std::string folder_, old_, new_;
    amp_error err_ = {};
};

TEST_P(SaveTest, PlantedHalfOfAFileIsFound) {
    ExpectWhole("the old file");
    std::ofstream(Path(), std::ios::binary) << new_.substr(0, new_.size() / 2);
    ExpectFound("half a file", "neither the old nor the new file", [this] { ExpectWhole("planted"); });
}

// ---- errors
// ----------------------------------------------------------------------------------------------------------

TEST_P(SaveTest, EveryCallFails) {
    fault = {};
    fault.active = true;
    ASSERT_EQ(Save(second_), AMP_OK) << err_.message;
    fault.active = false;
    std::vector<Kind> kinds = fault.kinds;
    for (Kind needed : {OPEN, WRITE, FSYNC, CLOSE, RENAME})
        ASSERT_TRUE(std::count(kinds.begin(), kinds.end(), needed)) << "a save makes no " << kKindNames[needed];
    ASSERT_EQ(std::count(kinds.begin(), kinds.end(), FSYNC), 2) << "the file and its folder";
    size_t renamed = (size_t)(std::find(kinds.begin(), kinds.end(), RENAME) - kinds.begin());

    for (int error : {EIO, ENOSPC, EDQUOT, EROFS, EINTR, 0})
        for (bool forever : {false, true})
            for (size_t i = 0; i < kinds.size(); i++) {
                if (forever && error == EINTR) continue; // that is waiting, not failing
                std::string what = std::string(kKindNames[kinds[i]]) + " (call " + std::to_string(i) + ") fails with " +
                                   (error ? strerror(error) : "a short write") + (forever ? " for ever" : " once");
                Restore();
                fault = {};
                fault.active = true, fault.at = (long)i, fault.error = error, fault.forever = forever;
                amp_status status = Save(second_);
                fault.active = false;
                if (error == 0 || error == EINTR) { // written on, called again
                    EXPECT_EQ(status, AMP_OK) << what << ": " << err_.message;
                    EXPECT_EQ(Read(Path()), new_) << what;
                } else if (status == AMP_OK) { // a close after everything is on the disk
                    EXPECT_EQ(kinds[i], CLOSE) << what << " and the save says that all is well";
                    EXPECT_EQ(Read(Path()), new_) << what;
                } else {
                    EXPECT_EQ(status, AMP_IO) << what << ": " << err_.message;
                    EXPECT_NE(std::string(err_.message).find(Path()), std::string::npos) << err_.message;
                    EXPECT_NE(std::string(err_.message).find(strerror(error)), std::string::npos) << err_.message;
                    EXPECT_EQ(Read(Path()), i <= renamed ? old_ : new_) << what;
                    bool cleaned = !forever || kinds[i] == OPEN;
                    EXPECT_TRUE(!cleaned || Names().size() == 1) << what << ": a temporary file is left";
                }
                ExpectWhole(what);
                if (HasFailure()) return;
            }
}

TEST_P(SaveTest, EveryCallOfLoadingFails) {
    fault = {};
    fault.active = true;
    auto load = [this] {
        char extra[16];
        return GetParam() ? amp_checkpoint_load(first_.session, Path().c_str(), extra, sizeof extra, &err_)
                          : amp_params_load(first_.params, Path().c_str(), nullptr, nullptr, &err_);
    };
    ASSERT_EQ(load(), AMP_OK) << err_.message;
    fault.active = false;
    std::vector<Kind> kinds = fault.kinds;
    ASSERT_GE(std::count(kinds.begin(), kinds.end(), READ), 2);
    for (int error : {EIO, EACCES, EINTR, 0})
        for (size_t i = 0; i < kinds.size(); i++) {
            std::string what = std::string(kKindNames[kinds[i]]) + " (call " + std::to_string(i) + ") fails with " +
                               (error ? strerror(error) : "a short read");
            std::vector<float> before = first_.Weight();
            fault = {};
            fault.active = true, fault.at = (long)i, fault.error = error;
            amp_status status = load();
            fault.active = false;
            if (error == 0 || error == EINTR || kinds[i] == CLOSE) {
                EXPECT_EQ(status, AMP_OK) << what << ": " << err_.message;
                continue;
            }
            EXPECT_EQ(status, AMP_IO) << what;
            EXPECT_NE(std::string(err_.message).find(Path()), std::string::npos) << err_.message;
            EXPECT_NE(std::string(err_.message).find(strerror(error)), std::string::npos) << err_.message;
            EXPECT_EQ(first_.Weight(), before) << what;
        }
}

// ---- death
// -----------------------------------------------------------------------------------------------------------

// Whether the child is killed at its |stop|-th stop at a system call; false: it ended before.
bool KillAtStop(long stop, const std::function<void()> &work) {
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        raise(SIGSTOP);
        work();
        syscall(SYS_exit_group, 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    for (long i = 0;; i++) {
        if (ptrace(PTRACE_SYSCALL, child, nullptr, nullptr)) break;
        waitpid(child, &status, 0);
        if (!WIFSTOPPED(status)) return false;
        if (i < stop) continue;
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        return true;
    }
    return false;
}

bool CanTrace() {
    pid_t child = fork();
    if (child == 0) syscall(SYS_exit_group, ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) ? 1 : 0);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_P(SaveTest, KilledAtEverySystemCall) {
    if (!CanTrace()) GTEST_SKIP() << "this machine allows no ptrace";
    long stops = 0, seen_old = 0, seen_new = 0;
    for (;; stops++) {
        Restore();
        bool killed = KillAtStop(stops, [this] { (void)Save(second_); });
        ExpectWhole("killed at stop " + std::to_string(stops));
        if (HasFailure()) return;
        (Read(Path()) == old_ ? seen_old : seen_new)++;
        if (!killed) break;
        ASSERT_EQ(Save(second_), AMP_OK) << "a save after a killed one: " << err_.message;
        EXPECT_EQ(Read(Path()), new_);
    }
    printf("%ld stops at system calls: %ld times the old file, %ld times the new one\n", stops, seen_old, seen_new);
    EXPECT_GT(stops, 10);
    EXPECT_GT(seen_old, 5);
    EXPECT_GT(seen_new, 1);
}

// Saves one file after the other until it is killed at a random moment.
TEST_P(SaveTest, KilledAtRandomMoments) {
    Random random(41);
    long seen_old = 0, kills = FromEnvironment("AMP_KILLS", 100);
    for (long i = 0; i < kills; i++) {
        Restore();
        pid_t child = fork();
        if (child == 0)
            for (;;) {
                (void)Save(second_);
                (void)Save(first_);
            }
        timespec t = {0, (long)random.Below(3000000)};
        nanosleep(&t, nullptr);
        kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        std::string now = Read(Path());
        ASSERT_TRUE(now == old_ || now == new_) << "kill " << i << " left neither the old nor the new file";
        seen_old += now == old_;
    }
    printf("%ld kills: %ld times the old file\n", kills, seen_old);
}

INSTANTIATE_TEST_SUITE_P(Files, SaveTest, testing::Bool(),
                         [](const auto &info) { return std::string(info.param ? "Checkpoint" : "Params"); });

} // namespace
