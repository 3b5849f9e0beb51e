// The engine "files": how ranks come together in a folder, and what they say where they do not. The values that it
// brings are tested in collective_test.cc.
#include <dirent.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "runtime/comm/files/folder.h"
#include "tests/base/failing_allocator.h"
#include "tests/runtime/comm/ranks.h"

namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

std::vector<std::string> Entries(const std::string &folder) {
    std::vector<std::string> names;
    DIR *all = opendir(folder.c_str());
    for (const dirent *e; all && (e = readdir(all));)
        if (e->d_name[0] != '.') names.emplace_back(e->d_name);
    if (all) closedir(all);
    std::sort(names.begin(), names.end());
    return names;
}

// One process, as it was told.
struct Process {
    int32_t rank, ranks;
    double comes_after = 0;
    double seconds = 20; // that it waits for others
    amp_status status = AMP_OK;
    std::string said = "";
    double took = 0;
};

struct Files : testing::Test {
    void SetUp() override {
        folder = testing::TempDir() + "files-" + std::to_string(getpid());
        ASSERT_EQ(system(("rm -rf " + folder).c_str()), 0);
    }
    amp_engine *Engine(const Process &p) {
        const amp_files_options o = {folder.c_str(), p.rank, p.ranks, p.seconds};
        const amp_allocator a = amp_allocator_or_default(nullptr);
        amp_engine *engine = nullptr;
        EXPECT_EQ(amp_files_engine_open(&o, &a, &engine, nullptr), AMP_OK);
        return engine;
    }
    // Each opens, adds up, lets |body| do more, and releases.
    void Run(std::vector<Process *> all, const std::function<void(Process *, amp_comm *)> &body = nullptr) {
        std::vector<std::thread> threads;
        for (Process *p : all)
            threads.emplace_back([this, p, &body] {
                Sleep(p->comes_after);
                const auto begin = std::chrono::steady_clock::now();
                amp_comm_options options = {};
                options.timeout = timeout;
                amp_comm *comm = nullptr;
                amp_error err = {};
                p->status = amp_comm_open_engine(Engine(*p), &options, &amp_lane_default_limits, &comm, &err);
                p->said = err.message;
                if (!p->status) {
                    float one = 1;
                    p->status = Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, &one, 1, &err);
                    EXPECT_EQ(one, static_cast<float>(p->ranks));
                    if (body) body(p, comm);
                }
                ended++;
                p->took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
                amp_comm_release(comm);
            });
        for (std::thread &t : threads) t.join();
    }
    // A start whose processes were killed: its files stay, its lock does not.
    void Crash(int32_t ranks) {
        std::vector<std::thread> threads;
        for (int32_t r = 0; r < ranks; r++)
            threads.emplace_back([this, r, ranks] {
                amp_engine *e = Engine({r, ranks});
                amp_error err = {};
                EXPECT_EQ(e->type->connect(e, &err), AMP_OK) << err.message;
                e->type->close(e);
            });
        for (std::thread &t : threads) t.join();
    }

    std::string folder;
    double timeout = 20;
    std::atomic<int> ended{0}; // processes, but for their release
};

TEST_F(Files, NothingIsLeft) {
    Process zero{0, 2}, one{1, 2};
    Run({&zero, &one});
    EXPECT_EQ(zero.status, AMP_OK) << zero.said;
    EXPECT_EQ(one.status, AMP_OK) << one.said;
    EXPECT_NE(access(folder.c_str(), F_OK), 0) << "which it has made";
    ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
    for (int k = 0; k < 2; k++) { // one start after the other
        Run({&zero, &one});
        EXPECT_EQ(zero.status, AMP_OK) << zero.said;
        EXPECT_EQ(Entries(folder), std::vector<std::string>());
        EXPECT_EQ(access(folder.c_str(), F_OK), 0) << "which was there before";
    }
}

TEST_F(Files, NothingPilesUp) {
    Process zero{0, 3}, one{1, 3}, two{2, 3};
    size_t most = 0;
    Run({&zero, &one, &two}, [&](Process *p, amp_comm *comm) {
        std::vector<float> data(100000, 1);
        for (int k = 0; k < 12; k++) {
            amp_error err = {};
            ASSERT_EQ(Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data.data(), data.size(), &err), AMP_OK);
            ASSERT_EQ(Do(comm, AMP_COLLECTIVE_BROADCAST, AMP_DT_F32, data.data(), data.size(), &err, k % 3), AMP_OK);
            for (const std::string &name : Entries(folder))
                if (!p->rank && name != "ampc-start") most = std::max(most, Entries(folder + "/" + name).size());
        }
    });
    EXPECT_GE(most, 3u * AMP_LANES);
    EXPECT_LE(most, 3u * (2 * AMP_LANES + 2) + 2)
        << "two of each rank and lane, one that is written, what start.h lists";
}

TEST_F(Files, LateRanksAreWaitedFor) {
    for (int32_t late = 0; late < 3; late++) {
        Process all[] = {{0, 3}, {1, 3}, {2, 3}};
        all[late].comes_after = 0.4;
        Run({&all[0], &all[1], &all[2]});
        for (const Process &p : all) EXPECT_EQ(p.status, AMP_OK) << p.said;
    }
}

TEST_F(Files, ARankThatDoesNotComeIsNamed) {
    Process zero{0, 4}, two{2, 4};
    zero.seconds = 0.6;
    two.comes_after = 0.2;
    Run({&zero, &two});
    for (const Process *p : {&zero, &two}) {
        EXPECT_EQ(p->status, AMP_PEER_FAILED);
        EXPECT_EQ(p->said, folder +
                               ": ranks 1, 3 have not joined for 0.6 s: was every rank started, and do all hosts see "
                               "this folder?");
        EXPECT_LT(p->took, 5);
    }
    Process three{3, 4}, one{1, 4};
    three.seconds = one.seconds = 0.6;
    Run({&three, &one});
    for (const Process *p : {&one, &three}) {
        EXPECT_EQ(p->status, AMP_PEER_FAILED);
        EXPECT_EQ(p->said,
                  folder + ": rank 0 has not joined for 0.6 s: was it started, and does its host see this folder?");
        EXPECT_LT(p->took, 5);
    }
}

// Rank 0 came last, so its time is over after theirs.
TEST_F(Files, AMissingRankIsNamedByEveryRank) {
    Process zero{0, 3}, one{1, 3};
    zero.comes_after = 0.3;
    zero.seconds = 1.6;
    one.seconds = 1.2;
    Run({&zero, &one});
    EXPECT_THAT(zero.said, HasSubstr(": rank 2 has not joined for 1.6 s"));
    EXPECT_THAT(one.said, HasSubstr(": rank 2 has not joined for 1.2 s"));
}

TEST_F(Files, RanksThatDisagreeOnTheirNumberAreTold) {
    Process zero{0, 2}, one{1, 2}, two{2, 3};
    one.comes_after = 0.2;
    one.seconds = 0.6;
    Run({&zero, &one, &two});
    for (const Process *p : {&zero, &two}) {
        EXPECT_EQ(p->status, AMP_MISMATCH);
        EXPECT_EQ(p->said,
                  "a process was started as rank 2 of 3, and rank 0 as one of 2: start all with the same number "
                  "of ranks (WORLD_SIZE, SLURM_NTASKS, --dist-rank)");
        EXPECT_LT(p->took, 10);
    }
    EXPECT_NE(one.status, AMP_OK);
    EXPECT_LT(one.took, 10);
}

TEST_F(Files, TwoProcessesOfOneRank) {
    Process zero{0, 2}, one{1, 2}, again{1, 2};
    again.comes_after = 0.3;
    again.seconds = 0.6;
    Run({&zero, &one, &again}, [this](Process *, amp_comm *) {
        while (!ended) Sleep(0.01);
    });
    EXPECT_EQ(zero.status, AMP_OK) << zero.said;
    EXPECT_EQ(one.status, AMP_OK) << one.said;
    EXPECT_EQ(again.status, AMP_PEER_FAILED);
    EXPECT_THAT(again.said, HasSubstr("two processes use rank 1"));
}

// What is left of an earlier start, with as many ranks or with others, is taken for nothing, also by ranks that come
// before rank 0 and find it alone; and it is removed.
TEST_F(Files, AnEarlierStartIsNotBelieved) {
    for (int32_t before : {2, 3}) {
        for (double late : {0.0, 0.3}) {
            Crash(before);
            ASSERT_EQ(Entries(folder).size(), 2u);
            Process zero{0, 2}, one{1, 2};
            zero.comes_after = late;
            one.comes_after = 0.3 - late;
            Run({&zero, &one}, [this](Process *, amp_comm *) { EXPECT_EQ(Entries(folder).size(), 2u); });
            EXPECT_EQ(zero.status, AMP_OK) << zero.said;
            EXPECT_EQ(one.status, AMP_OK) << one.said;
            EXPECT_EQ(Entries(folder), std::vector<std::string>());
        }
    }
    Crash(2);
    Process alone{1, 2};
    alone.seconds = 0.6;
    Run({&alone});
    EXPECT_THAT(alone.said, HasSubstr(": rank 0 has not joined for 0.6 s"));
}

// A late rank says hello to an earlier start while rank 0 removes its folder: it was listed before the file came.
TEST_F(Files, AFolderIsRemovedThatIsWrittenToMeanwhile) {
    static amp_folder late;
    static int writes;
    amp_folder given;
    bool made, there;
    ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
    ASSERT_EQ(amp_folder_open(nullptr, folder.c_str(), &given, &there, nullptr), AMP_OK);
    ASSERT_EQ(amp_folder_make(&given, "old", &made, nullptr), AMP_OK);
    ASSERT_EQ(amp_folder_open(&given, "old", &late, &there, nullptr), AMP_OK);
    ASSERT_EQ(amp_folder_write(&late, "lock", nullptr, 0, nullptr), AMP_OK);
    writes = 2;
    amp_folder_remove(&given, "old", [](const char *) {
        if (writes) {
            const std::string name = "hello." + std::to_string(writes--);
            EXPECT_EQ(amp_folder_write(&late, name.c_str(), nullptr, 0, nullptr), AMP_OK);
        }
        return true;
    });
    EXPECT_EQ(writes, 0);
    EXPECT_EQ(Entries(folder).size(), 0u);
    amp_folder_close(&late);
    amp_folder_close(&given);
}

TEST_F(Files, AFolderInUseIsRefused) {
    Process zero{0, 2}, one{1, 2}, other{0, 2};
    other.comes_after = 0.3;
    Run({&zero, &one, &other}, [this](Process *, amp_comm *comm) {
        while (!ended) Sleep(0.01);
        float two = 2;
        amp_error err = {};
        ASSERT_EQ(Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, &two, 1, &err), AMP_OK) << err.message;
        EXPECT_EQ(two, 4);
    });
    EXPECT_EQ(zero.status, AMP_OK) << zero.said;
    EXPECT_EQ(other.status, AMP_WRONG_STATE);
    EXPECT_EQ(other.said, folder +
                              " is in use: ranks of another start, or another rank 0, are in it; give each start a "
                              "folder of its own");
}

TEST_F(Files, AFolderWithOtherFilesIsRefused) {
    ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
    std::ofstream(folder + "/thesis.tex") << "\\begin{document}";
    Process alone{0, 1};
    Run({&alone});
    EXPECT_EQ(alone.status, AMP_WRONG_STATE);
    EXPECT_EQ(alone.said, folder + " holds thesis.tex, which is not a file of ranks: give a folder that is empty, or "
                                   "one that does not exist yet");
    EXPECT_EQ(Entries(folder), std::vector<std::string>{"thesis.tex"});
    folder += "/thesis.tex";
    Run({&alone});
    EXPECT_EQ(alone.said, folder + ": cannot be read: Not a directory");
    folder += "/deeper";
    Run({&alone});
    EXPECT_EQ(alone.status, AMP_IO);
    EXPECT_EQ(alone.said, folder + ": cannot be made: Not a directory");
}

// A folder that is not only this user's decides what is written and removed, so it is refused, by every rank.
TEST_F(Files, AFolderThatOthersMayWriteToIsRefused) {
    for (const mode_t mode : {01777, 0775, 0702}) {
        ASSERT_TRUE(!mkdir(folder.c_str(), 0700) || errno == EEXIST);
        ASSERT_EQ(chmod(folder.c_str(), mode), 0);
        Process zero{0, 2}, one{1, 2};
        Run({&zero, &one});
        for (const Process *p : {&zero, &one}) {
            EXPECT_EQ(p->status, AMP_WRONG_STATE);
            EXPECT_THAT(p->said, StartsWith(folder + ": other users may write to it (mode "));
            EXPECT_THAT(p->said, HasSubstr("chmod go-w it, or give a folder that is not there yet"));
        }
        EXPECT_EQ(Entries(folder), std::vector<std::string>());
    }
    ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
    if (chown(folder.c_str(), 4711, 4711)) return; // not root, or in a sandbox
    Process alone{0, 1};
    Run({&alone});
    EXPECT_EQ(alone.status, AMP_WRONG_STATE);
    EXPECT_THAT(alone.said, StartsWith(folder + " belongs to another user (4711, and this is 0)"));
}

TEST_F(Files, NewFoldersAreOfThisUserAlone) {
    const mode_t before = umask(0);
    Process zero{0, 2}, one{1, 2};
    Run({&zero, &one}, [this](Process *p, amp_comm *) {
        struct stat st;
        ASSERT_EQ(stat(folder.c_str(), &st), 0);
        EXPECT_EQ(st.st_mode & 07777, 0700u);
        for (const std::string &name : Entries(folder)) {
            if (p->rank || stat((folder + "/" + name).c_str(), &st)) continue;
            EXPECT_EQ(st.st_mode & 0077, 0u) << name;
        }
    });
    umask(before);
    EXPECT_EQ(zero.status, AMP_OK) << zero.said;
    EXPECT_EQ(one.status, AMP_OK) << one.said;
}

// A home with files, and links to it wherever a start looks for its own.
TEST_F(Files, LinksAreNotFollowed) {
    const std::string home = folder + ".home", diary = home + "/diary";
    ASSERT_EQ(system(("rm -rf " + home).c_str()), 0);
    ASSERT_EQ(mkdir(home.c_str(), 0700), 0);
    std::ofstream(diary) << "dear diary";
    const auto held = [&] {
        std::string text;
        std::getline(std::ifstream(diary), text);
        return text;
    };
    ASSERT_EQ(symlink(home.c_str(), folder.c_str()), 0);
    Process zero{0, 1};
    Run({&zero});
    EXPECT_EQ(zero.status, AMP_WRONG_STATE);
    EXPECT_EQ(zero.said, folder + " is a symbolic link: give the folder that it leads to");
    ASSERT_EQ(unlink(folder.c_str()), 0);

    ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
    const std::string start = folder + "/ampc-0123456789abcdef";
    ASSERT_EQ(symlink(home.c_str(), start.c_str()), 0);
    Run({&zero});
    EXPECT_EQ(zero.status, AMP_WRONG_STATE);
    EXPECT_THAT(zero.said, HasSubstr(" holds ampc-0123456789abcdef, which is not a file of ranks"));
    EXPECT_EQ(Entries(home), std::vector<std::string>{"diary"});
    ASSERT_EQ(unlink(start.c_str()), 0);

    // In a start that may be an earlier one: only what a start writes is removed.
    ASSERT_EQ(mkdir(start.c_str(), 0700), 0);
    std::ofstream(start + "/left.1") << "";
    std::ofstream(start + "/lane.0.7.1~0123abcd") << "";
    std::ofstream(start + "/left.txt") << "a poem";
    ASSERT_EQ(symlink(diary.c_str(), (start + "/go").c_str()), 0);
    ASSERT_EQ(symlink(diary.c_str(), (folder + "/ampc-start").c_str()), 0);
    Run({&zero});
    EXPECT_EQ(zero.status, AMP_OK) << zero.said;
    EXPECT_THAT(Entries(start), testing::ElementsAre("go", "left.txt"));
    EXPECT_EQ(Entries(home), std::vector<std::string>{"diary"});
    EXPECT_EQ(held(), "dear diary");
}

// ---- while they train ----

// A rank that was killed or stopped: it writes and reads nothing any more.
amp_engine_type Silent(const amp_engine_type &like) {
    amp_engine_type type = like;
    type.start = [](amp_engine *, int32_t, const amp_message *, amp_error *) { return AMP_OK; };
    type.test = [](amp_engine *, int32_t, bool *done, amp_error *) { return *done = false, AMP_OK; };
    type.receive = [](amp_engine *, unsigned char *, bool *came, amp_error *) { return *came = false, AMP_OK; };
    type.send = [](amp_engine *, int32_t, amp_letter *, amp_error *) { return AMP_OK; };
    return type;
}

TEST_F(Files, ADeadRankIsNamedOnAllOthers) {
    World world(3);
    Ranks all(&world, false, 0.5);
    all.folder = folder;
    amp_engine_type silent;
    all.Run([&](amp_comm *comm) {
        amp_engine *engine = reinterpret_cast<amp_comm_state *>(comm)->engine;
        std::vector<float> data(10, 1);
        amp_error err = {};
        const auto begin = std::chrono::steady_clock::now(); // what rank 1 sends last comes after it
        ASSERT_EQ(Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data.data(), data.size(), &err), AMP_OK);
        if (comm->rank == 1) {
            Sleep(0.2); // the others have read what it wrote
            silent = Silent(*engine->type);
            engine->type = &silent;
        }
        EXPECT_EQ(Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data.data(), data.size(), &err), AMP_PEER_FAILED);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        if (comm->rank == 1) return;
        EXPECT_THAT(err.message, HasSubstr("bucket 0 (fc1.weight ..): no answer from rank 1 for"));
        EXPECT_GE(took.count(), 0.5);
        EXPECT_LT(took.count(), 10);
    });
}

TEST_F(Files, WhyARankGivesUpIsToldToAll) {
    World world(3);
    Ranks all(&world);
    all.folder = folder;
    std::atomic<int> have_sums{0};
    all.Run([&](amp_comm *comm) {
        float one = 1;
        amp_error err = {};
        ASSERT_EQ(Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, &one, 1, &err), AMP_OK) << err.message;
        have_sums++;
        while (have_sums < 3) Sleep(0.001);
        if (comm->rank == 1) amp_comm_give_up(comm, "data.csv, line 7: no number");
        EXPECT_EQ(Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, &one, 1, &err), AMP_PEER_FAILED);
        EXPECT_THAT(err.message, HasSubstr(comm->rank == 1 ? "rank 1: data.csv, line 7: no number"
                                                           : ": rank 1 says: data.csv, line 7: no number"));
    });
}

TEST_F(Files, ARankInAnotherCollectiveIsNamed) {
    World world(2);
    Ranks all(&world, false, 0.5);
    all.folder = folder;
    all.Run([&](amp_comm *comm) {
        std::vector<float> data(20, 1);
        amp_error err = {};
        EXPECT_EQ(Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data.data(), comm->rank ? 20 : 10, &err, 0,
                     comm->rank ? "bucket 2 (fc1.bias)" : "bucket 1 (fc2.weight ..)"),
                  AMP_PEER_FAILED);
        EXPECT_THAT(err.message,
                    AnyOf(HasSubstr("bucket 1 (fc2.weight ..): rank 1 is in bucket 2 (fc1.bias) instead"),
                          HasSubstr("bucket 2 (fc1.bias): rank 0 is in bucket 1 (fc2.weight ..) instead")));
    });
}

TEST_F(Files, MemoryThatEndsIsAnError) {
    for (int fails = 0; fails < 3; fails++) {
        FailingAllocator memory(fails);
        const amp_allocator a = memory.get();
        const amp_files_options o = {folder.c_str(), 0, 2, 1};
        amp_engine *engine = nullptr;
        amp_error err = {};
        EXPECT_EQ(amp_files_engine_open(&o, &a, &engine, &err), AMP_OUT_OF_MEMORY);
        EXPECT_THAT(err.message, StartsWith("no memory for "));
        EXPECT_EQ(engine, nullptr);
    }
}

} // namespace
