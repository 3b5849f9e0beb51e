// file_test.cc: whole files in, atomic replacement.
#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "base/file_reader.h"
#include "tests/base/failing_allocator.h"

// fchmod is called through here: what was open to whom before it.
static int mode_seen_at_fchmod = -1;
extern "C" int fchmod(int fd, mode_t mode) {
    struct stat st;
    if (fstat(fd, &st) == 0) mode_seen_at_fchmod = st.st_mode & 07777;
    return (int)syscall(SYS_fchmod, fd, mode);
}

class FileTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "amp_file_test.XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override {
        for (const std::string &name : Names()) unlink(Path(name).c_str());
        rmdir(folder_.c_str());
    }

    std::string Path(const std::string &name) const { return folder_ + "/" + name; }
    void Put(const std::string &name, const std::string &content) const { std::ofstream(Path(name)) << content; }
    std::string Get(const std::string &name) const {
        std::ifstream in(Path(name), std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), {});
    }
    mode_t Mode(const std::string &name) const {
        struct stat st;
        return stat(Path(name).c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
    }
    std::set<std::string> Names() const {
        std::set<std::string> names;
        DIR *dir = opendir(folder_.c_str());
        while (dirent *entry = readdir(dir))
            if (entry->d_name[0] != '.') names.insert(entry->d_name);
        closedir(dir);
        return names;
    }
    using NameSet = std::set<std::string>;

    std::string folder_;
    amp_error err_ = {};
};

TEST_F(FileTest, ReadsWholeFilesWithANulBehind) {
    FailingAllocator counting;
    amp_allocator a = counting.get();
    for (size_t n : {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, size_t{300000}}) {
        std::string content(n, 'x');
        if (n > 1) content[n / 2] = '\0';
        Put("in", content);
        char *data = nullptr;
        size_t size = 0;
        ASSERT_EQ(amp_file_read(Path("in").c_str(), 0, &a, &data, &size, &err_), AMP_OK) << err_.message;
        EXPECT_EQ(std::string(data, size), content);
        EXPECT_EQ(data[size], '\0');
        amp_free(&a, data, size + 1);
    }
}

TEST_F(FileTest, ReadsFilesThatDoNotSayTheirSize) {
    char *data = nullptr;
    size_t size = 0;
    if (access("/proc/self/status", R_OK) != 0) GTEST_SKIP() << "no /proc here";
    ASSERT_EQ(amp_file_read("/proc/self/status", 0, nullptr, &data, &size, &err_), AMP_OK) << err_.message;
    EXPECT_GT(size, 0u);
    amp_free(nullptr, data, size + 1);
}

TEST_F(FileTest, ADeviceWithoutAnEndIsNotReadForever) {
    char *data = nullptr;
    size_t size = 0;
    EXPECT_EQ(amp_file_read("/dev/zero", 0, nullptr, &data, &size, &err_), AMP_BAD_FILE);
    EXPECT_STREQ(err_.message, "/dev/zero: the file is larger than 16777216 bytes, the most that is read here");
    ASSERT_EQ(amp_file_read("/dev/null", 0, nullptr, &data, &size, &err_), AMP_OK) << err_.message;
    EXPECT_EQ(size, 0u);
    amp_free(nullptr, data, size + 1);
}

TEST_F(FileTest, ReadErrorsSayWhat) {
    char *data = nullptr;
    size_t size = 0;
    EXPECT_EQ(amp_file_read(Path("none").c_str(), 0, nullptr, &data, &size, &err_), AMP_NOT_FOUND);
    EXPECT_EQ(std::string(err_.message), Path("none") + ": cannot open: No such file or directory");
    EXPECT_EQ(amp_file_read(folder_.c_str(), 0, nullptr, &data, &size, &err_), AMP_IO);
    EXPECT_EQ(std::string(err_.message), folder_ + ": cannot read: Is a directory");
    Put("in", "123456");
    EXPECT_EQ(amp_file_read(Path("in").c_str(), 5, nullptr, &data, &size, &err_), AMP_BAD_FILE);
    EXPECT_EQ(std::string(err_.message), Path("in") + ": the file is larger than 5 bytes, the most that is read here");
    EXPECT_EQ(data, nullptr);
    ASSERT_EQ(amp_file_read(Path("in").c_str(), 6, nullptr, &data, &size, &err_), AMP_OK);
    amp_free(nullptr, data, size + 1);
}

// A pipe without a writer would be waited for.
TEST_F(FileTest, OnlyRegularFilesAreReadWhereAFileNamesThem) {
    alarm(20);
    ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
    ASSERT_EQ(mknod(Path("socket").c_str(), S_IFSOCK | 0600, 0), 0);
    int fd = 0;
    const std::string rest = "; only a regular file is read here: copy what it gives to one";
    const std::pair<std::string, std::string> cases[] = {{Path("pipe"), ": is a pipe" + rest},
                                                         {Path("socket"), ": is a socket" + rest},
                                                         {"/dev/null", ": is a device" + rest},
                                                         {folder_, ": cannot read: Is a directory"}};
    for (const auto &[path, what] : cases) {
        char *data = nullptr;
        size_t size = 0;
        EXPECT_EQ(amp_file_read_regular(path.c_str(), 0, nullptr, &data, &size, &err_), AMP_IO);
        EXPECT_EQ(err_.message, path + what);
        EXPECT_EQ(amp_file_open(path.c_str(), AMP_FILE_REGULAR, &fd, &err_), AMP_IO);
        EXPECT_EQ(fd, -1);
        EXPECT_EQ(amp_file_check_regular(path.c_str(), &err_), AMP_IO);
        amp_file_reader reader;
        EXPECT_EQ(amp_file_reader_open(path.c_str(), &reader, &err_), AMP_IO);
        EXPECT_EQ(err_.message, path + what);
    }
    EXPECT_EQ(amp_file_open(Path("socket").c_str(), AMP_FILE_ANY, &fd, &err_), AMP_IO);
    EXPECT_EQ(err_.message, Path("socket") + ": is a socket" + rest);
    EXPECT_EQ(amp_file_open(folder_.c_str(), AMP_FILE_ANY, &fd, &err_), AMP_IO);
    ASSERT_EQ(amp_file_open("/dev/null", AMP_FILE_ANY, &fd, &err_), AMP_OK) << err_.message;
    close(fd);
    alarm(0);
}

TEST_F(FileTest, ReadRunsOutOfMemoryCleanly) {
    Put("in", std::string(100, 'x'));
    FailingAllocator failing(0);
    amp_allocator a = failing.get();
    char *data = nullptr;
    size_t size = 0;
    EXPECT_EQ(amp_file_read(Path("in").c_str(), 0, &a, &data, &size, &err_), AMP_OUT_OF_MEMORY);
    EXPECT_EQ(data, nullptr);
}

TEST_F(FileTest, ReplaceWritesNewAndOldFiles) {
    mode_t mask = umask(027);
    EXPECT_EQ(amp_file_replace(Path("out").c_str(), "one", 3, nullptr, &err_), AMP_OK) << err_.message;
    umask(mask);
    EXPECT_EQ(Get("out"), "one");
    EXPECT_EQ(Mode("out"), 0640u);
    ASSERT_EQ(chmod(Path("out").c_str(), 0604), 0);
    EXPECT_EQ(amp_file_replace(Path("out").c_str(), "second", 6, nullptr, &err_), AMP_OK) << err_.message;
    EXPECT_EQ(Get("out"), "second");
    EXPECT_EQ(Mode("out"), 0604u);
    EXPECT_EQ(Names(), NameSet{"out"});
}

TEST_F(FileTest, OldContentStaysUntilCommit) {
    Put("out", "old");
    FailingAllocator counting;
    amp_allocator a = counting.get();
    amp_file_writer *w = nullptr;
    ASSERT_EQ(amp_file_writer_open(Path("out").c_str(), &a, &w, &err_), AMP_OK) << err_.message;
    ASSERT_EQ(amp_file_writer_write(w, "new ", 4, &err_), AMP_OK);
    ASSERT_EQ(amp_file_writer_write(w, "content", 7, &err_), AMP_OK);
    EXPECT_EQ(Get("out"), "old");
    EXPECT_EQ(Names().size(), 2u);
    EXPECT_EQ(Names().count("out"), 1u);
    ASSERT_EQ(amp_file_writer_commit(w, &err_), AMP_OK) << err_.message;
    EXPECT_EQ(Get("out"), "new content");
    EXPECT_EQ(Names(), NameSet{"out"});
}

TEST_F(FileTest, AbandonedWriterLeavesNothing) {
    Put("out", "old");
    amp_file_writer *w = nullptr;
    ASSERT_EQ(amp_file_writer_open(Path("out").c_str(), nullptr, &w, &err_), AMP_OK);
    ASSERT_EQ(amp_file_writer_write(w, "new", 3, &err_), AMP_OK);
    amp_file_writer_abandon(w);
    amp_file_writer_abandon(nullptr);
    EXPECT_EQ(Get("out"), "old");
    EXPECT_EQ(Names(), NameSet{"out"});
}

TEST_F(FileTest, TwoWritersOfOnePathDoNotMeet) {
    amp_file_writer *a = nullptr, *b = nullptr;
    ASSERT_EQ(amp_file_writer_open(Path("out").c_str(), nullptr, &a, &err_), AMP_OK);
    ASSERT_EQ(amp_file_writer_open(Path("out").c_str(), nullptr, &b, &err_), AMP_OK);
    ASSERT_EQ(amp_file_writer_write(a, "a", 1, &err_), AMP_OK);
    ASSERT_EQ(amp_file_writer_write(b, "bb", 2, &err_), AMP_OK);
    ASSERT_EQ(amp_file_writer_commit(a, &err_), AMP_OK);
    EXPECT_EQ(Get("out"), "a");
    ASSERT_EQ(amp_file_writer_commit(b, &err_), AMP_OK);
    EXPECT_EQ(Get("out"), "bb");
    EXPECT_EQ(Names(), NameSet{"out"});
}

TEST_F(FileTest, ALinkStaysALink) {
    Put("real", "old");
    ASSERT_EQ(symlink("real", Path("link").c_str()), 0);
    EXPECT_EQ(amp_file_replace(Path("link").c_str(), "new", 3, nullptr, &err_), AMP_OK) << err_.message;
    EXPECT_EQ(Get("real"), "new");
    struct stat st;
    ASSERT_EQ(lstat(Path("link").c_str(), &st), 0);
    EXPECT_TRUE(S_ISLNK(st.st_mode));
}

// A link to what is not there yet is followed, over several links and relative to each link's folder.
TEST_F(FileTest, ALinkToNothingStaysALink) {
    ASSERT_EQ(symlink("second", Path("first").c_str()), 0);
    ASSERT_EQ(symlink("real", Path("second").c_str()), 0);
    EXPECT_EQ(amp_file_replace(Path("first").c_str(), "new", 3, nullptr, &err_), AMP_OK) << err_.message;
    EXPECT_EQ(Get("real"), "new");
    EXPECT_EQ(Names(), (NameSet{"first", "second", "real"}));
    struct stat st;
    for (const char *link : {"first", "second"}) {
        ASSERT_EQ(lstat(Path(link).c_str(), &st), 0);
        EXPECT_TRUE(S_ISLNK(st.st_mode)) << link;
    }
    ASSERT_EQ(symlink("circle", Path("circle").c_str()), 0);
    EXPECT_EQ(amp_file_replace(Path("circle").c_str(), "new", 3, nullptr, &err_), AMP_IO);
    EXPECT_NE(std::string(err_.message).find("Too many levels of symbolic links"), std::string::npos) << err_.message;
}

// As Linux has it where fs.protected_symlinks is set.
TEST_F(FileTest, TheLinkOfAnotherUserInASharedFolderIsNotFollowed) {
    Put("real", "old");
    if (chown(Path("real").c_str(), 12345, 12345) || chown(Path("real").c_str(), 0, 0))
        GTEST_SKIP() << "files cannot be given to another user here";
    const std::string shared = Path("shared");
    ASSERT_EQ(mkdir(shared.c_str(), 0700), 0);
    ASSERT_EQ(symlink("../real", (shared + "/file").c_str()), 0);
    ASSERT_EQ(symlink("../none", (shared + "/new").c_str()), 0);
    ASSERT_EQ(symlink("..", (shared + "/folder").c_str()), 0);
    ASSERT_EQ(symlink("shared/file", Path("own").c_str()), 0);
    ASSERT_EQ(chmod(shared.c_str(), 01777), 0);
    const std::string paths[] = {shared + "/file", shared + "/new", shared + "/folder/real", Path("own")};
    int fd = -1;
    for (const uid_t owner : {12345, 0}) {
        for (const char *link : {"file", "new", "folder"})
            ASSERT_EQ(lchown((shared + "/" + link).c_str(), owner, owner), 0);
        for (const std::string &path : paths) {
            const amp_status wanted = owner ? AMP_INVALID_ARGUMENT : AMP_OK;
            EXPECT_EQ(amp_file_replace(path.c_str(), "new", 3, nullptr, &err_), wanted) << path;
            EXPECT_EQ(amp_file_try(path.c_str(), &err_), wanted) << path;
            EXPECT_EQ(amp_file_open_in_place(path.c_str(), O_TRUNC, &fd, &err_), wanted) << path;
            if (!owner) {
                EXPECT_EQ(write(fd, "log", 3), 3);
                close(fd);
                continue;
            }
            EXPECT_NE(
                std::string(err_.message)
                    .find(
                        " is a symbolic link that another user (12345) has made in a folder that all may write to, so "
                        "it is not followed; name the file itself"),
                std::string::npos)
                << err_.message;
            EXPECT_EQ(Get("real"), "old");
            EXPECT_FALSE(Names().count("none"));
        }
    }
    EXPECT_EQ(Get("real"), "log");
    EXPECT_EQ(Get("none"), "log");
    for (const char *link : {"file", "new", "folder"}) unlink((shared + "/" + link).c_str());
    rmdir(shared.c_str());
}

TEST_F(FileTest, TheTargetIsTheSameHoweverItIsWritten) {
    char there[AMP_FILE_PATH], other[AMP_FILE_PATH];
    ASSERT_EQ(symlink("real", Path("link").c_str()), 0);
    for (bool exists : {false, true}) {
        if (exists) Put("real", "old");
        ASSERT_EQ(amp_file_target(Path("real").c_str(), there, &err_), AMP_OK) << err_.message;
        for (const char *name : {"link", "./real", "../" /* and the folder's name */}) {
            std::string path = Path(name);
            if (path.back() == '/') path += folder_.substr(folder_.rfind('/') + 1) + "/real";
            ASSERT_EQ(amp_file_target(path.c_str(), other, &err_), AMP_OK) << err_.message;
            EXPECT_STREQ(there, other) << path;
        }
    }
}

TEST_F(FileTest, AWriteProtectedFileIsNotReplaced) {
    Put("out", "old");
    ASSERT_EQ(chmod(Path("out").c_str(), 0444), 0);
    EXPECT_EQ(amp_file_replace(Path("out").c_str(), "new", 3, nullptr, &err_), AMP_IO);
    EXPECT_NE(std::string(err_.message).find("is write-protected (mode 0444), so it is not replaced; chmod +w it"),
              std::string::npos)
        << err_.message;
    EXPECT_EQ(amp_file_try(Path("out").c_str(), &err_), AMP_IO);
    EXPECT_EQ(Get("out"), "old");
    EXPECT_EQ(Names(), NameSet{"out"});
}

// Somebody could open it before it gets its mode, and would have it open when the content comes.
TEST_F(FileTest, TheTemporaryOfAPrivateFileIsPrivateFromTheStart) {
    Put("out", "old");
    ASSERT_EQ(chmod(Path("out").c_str(), 0600), 0);
    amp_file_writer *w = nullptr;
    mode_seen_at_fchmod = -1;
    ASSERT_EQ(amp_file_writer_open(Path("out").c_str(), nullptr, &w, &err_), AMP_OK) << err_.message;
    EXPECT_EQ(mode_seen_at_fchmod, 0600);
    amp_file_writer_abandon(w);
}

TEST_F(FileTest, NamesOfAnyLengthThatTheSystemTakes) {
    for (size_t length : {1, 64, 65, 244, 245, 254, 255}) {
        std::string name(length, 'n');
        EXPECT_EQ(amp_file_replace(Path(name).c_str(), "new", 3, nullptr, &err_), AMP_OK) << err_.message;
        EXPECT_EQ(Get(name), "new");
    }
    EXPECT_EQ(amp_file_replace(Path(std::string(256, 'n')).c_str(), "new", 3, nullptr, &err_), AMP_IO);
    EXPECT_NE(std::string(err_.message).find("File name too long"), std::string::npos) << err_.message;
    std::string letters = "x";
    while (letters.size() < 254) letters += "\xc3\xa4"; // not cut inside a letter: some file systems refuse that
    amp_file_writer *w = nullptr;
    ASSERT_EQ(amp_file_writer_open(Path(letters).c_str(), nullptr, &w, &err_), AMP_OK) << err_.message;
    for (const std::string &name : Names()) {
        size_t suffix = name.find(".tmp-");
        EXPECT_TRUE(suffix == std::string::npos || suffix % 2 == 1) << name;
    }
    amp_file_writer_abandon(w);
}

TEST_F(FileTest, DevicesAndPipesAreWrittenAsTheyAre) {
    EXPECT_EQ(amp_file_replace("/dev/null", "new", 3, nullptr, &err_), AMP_OK) << err_.message;
    struct stat st;
    ASSERT_EQ(stat("/dev/null", &st), 0);
    EXPECT_TRUE(S_ISCHR(st.st_mode));
    EXPECT_EQ(amp_file_replace("/dev/full", "new", 3, nullptr, &err_), AMP_IO);
    EXPECT_STREQ(err_.message, "/dev/full: cannot write: No space left on device");
    ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
    EXPECT_EQ(amp_file_try(Path("pipe").c_str(), &err_), AMP_OK) << "and does not wait for a reader";
    int fd = open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
    EXPECT_EQ(amp_file_replace(Path("pipe").c_str(), "new", 3, nullptr, &err_), AMP_OK) << err_.message;
    char got[4] = {};
    EXPECT_EQ(read(fd, got, sizeof got), 3);
    EXPECT_STREQ(got, "new");
    close(fd);
    EXPECT_EQ(Names(), NameSet{"pipe"});
}

TEST_F(FileTest, TryingLeavesNothing) {
    EXPECT_EQ(amp_file_try(Path("out").c_str(), &err_), AMP_OK) << err_.message;
    EXPECT_EQ(amp_file_try(Path("no/out").c_str(), &err_), AMP_NOT_FOUND);
    EXPECT_EQ(amp_file_try(folder_.c_str(), &err_), AMP_INVALID_ARGUMENT);
    EXPECT_TRUE(Names().empty());
}

TEST_F(FileTest, WriterErrorsSayWhat) {
    amp_file_writer *w = nullptr;
    EXPECT_EQ(amp_file_writer_open(Path("no/out").c_str(), nullptr, &w, &err_), AMP_NOT_FOUND);
    EXPECT_EQ(w, nullptr);
    EXPECT_NE(std::string(err_.message).find("no/out"), std::string::npos);
    EXPECT_NE(std::string(err_.message).find(": cannot create: No such file or directory"), std::string::npos);
    EXPECT_EQ(amp_file_writer_open(folder_.c_str(), nullptr, &w, &err_), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(err_.message), folder_ + ": not a regular file, so it is not replaced; name another path");
    EXPECT_EQ(amp_file_writer_open((folder_ + "/").c_str(), nullptr, &w, &err_), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_file_writer_open(Path("none/").c_str(), nullptr, &w, &err_), AMP_IO);
    EXPECT_EQ(amp_file_writer_open("", nullptr, &w, &err_), AMP_NOT_FOUND);
    EXPECT_EQ(amp_file_writer_open(std::string(10000, 'x').c_str(), nullptr, &w, &err_), AMP_IO);
    FailingAllocator failing(0);
    amp_allocator a = failing.get();
    EXPECT_EQ(amp_file_writer_open(Path("out").c_str(), &a, &w, &err_), AMP_OUT_OF_MEMORY);
    EXPECT_TRUE(Names().empty());
}

// A file size limit simulates a full disk: the write fails part way, and the old file must survive a commit.
TEST_F(FileTest, AFailedWriteIsNeverCommitted) {
    Put("out", "old");
    amp_file_writer *w = nullptr;
    ASSERT_EQ(amp_file_writer_open(Path("out").c_str(), nullptr, &w, &err_), AMP_OK);
    rlimit before, small;
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1000;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0); // whose signal would end the program
    std::string content(5000, 'x');
    amp_status write_status = amp_file_writer_write(w, content.data(), content.size(), &err_);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    sigset_t pending;
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
    EXPECT_EQ(write_status, AMP_IO);
    EXPECT_EQ(std::string(err_.message), Path("out") + ": cannot write: File too large");
    EXPECT_EQ(amp_file_writer_commit(w, &err_), AMP_IO);
    EXPECT_EQ(Get("out"), "old");
    EXPECT_EQ(Names(), NameSet{"out"});
}
