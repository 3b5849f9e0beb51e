// What ranks are told where another one is silent, late, fails, disagrees or meets for something else; and what is not
// called afterwards.
#include <gmock/gmock.h>

#include <chrono>

#include "tests/base/failing_allocator.h"
#include "tests/runtime/comm/ranks.h"
#include "tests/runtime/comm/values.h"

namespace {

using testing::HasSubstr;
using testing::StartsWith;

double Seconds(const std::function<void()> &body) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

const char *const bucket = "all_reduce bucket 1 (fc2.weight ..)";
constexpr double timeout = 0.4;
constexpr double bound = 20; // of what a busy machine adds; a hang is longer

// Two messages open a comm.
struct Failure : testing::TestWithParam<bool> {
    World world{3};
    Ranks all{&world, false, timeout};
    void SetUp() override { world.own_thread = GetParam(); }
};

TEST_P(Failure, ASilentRankIsToldWithTheOpAndForEver) {
    world.silent_rank = 2;
    world.silent_from = 5;
    all.Run([&](amp_comm *comm) {
        std::vector<unsigned char> data = Brought(AMP_DT_F32, comm->rank, 1000), scalar(8);
        amp_error err = {}, again = {};
        for (int k = 0; k < 2; k++)
            ASSERT_EQ(Do(comm, AMP_COLLECTIVE_BROADCAST, AMP_DT_F64, scalar.data(), 1, &err), 0);
        amp_status status = AMP_OK;
        // from before all are together: the first rank that gives up informs the others, which may have started later
        const double took = Seconds([&] {
            ASSERT_EQ(Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F64, scalar.data(), 1, &err), 0);
            status = Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data.data(), 1000, &err, 0, bucket);
        });
        EXPECT_EQ(status, AMP_PEER_FAILED);
        EXPECT_GE(took, timeout);
        EXPECT_LT(took, timeout + bound);
        const std::string mine = GetParam() ? ": all ranks are in it, and nothing came for 0.4 s: the network or the "
                                              "engine of threads is at fault"
                                            : ": no answer for 0.4 s";
        EXPECT_THAT(std::string(err.message), StartsWith("rank " + std::to_string(comm->rank) + ": "));
        EXPECT_THAT(std::string(err.message), HasSubstr(bucket + mine)); // or: rank 1 says: ..
        uint64_t number = 0;
        EXPECT_EQ(comm->calls->start(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data.data(), 1000, 0, "later",
                                     &number, &again),
                  AMP_PEER_FAILED);
        EXPECT_STREQ(again.message, err.message);
        EXPECT_EQ(comm->calls->wait(comm, 0, &again), AMP_PEER_FAILED);
        EXPECT_EQ(amp_comm_meet(comm, nullptr, 0, nullptr, "later", &again), AMP_PEER_FAILED);
        EXPECT_STREQ(again.message, err.message);
    });
    EXPECT_EQ(world.seen().disconnected, 0);
    EXPECT_EQ(world.seen().abandoned, 3);
    EXPECT_EQ(world.seen().closed, 3);
}

// What is late by less than the timeout is none of it, however often.
TEST_P(Failure, ALateRankIsWaitedFor) {
    world.delayed_rank = 1;
    world.delay = std::chrono::milliseconds(60);
    all.Run([&](amp_comm *comm) {
        amp_error err = {};
        std::vector<unsigned char> data = Brought(AMP_DT_BF16, comm->rank, 100);
        for (int k = 0; k < 10; k++)
            ASSERT_EQ(Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_BF16, data.data(), 100, &err), AMP_OK) << err.message;
    });
    EXPECT_EQ(world.seen().disconnected, 3);
}

TEST_P(Failure, AnEngineThatFailsIsToldAtOnce) {
    world.failing_rank = 1;
    world.failing_from = 5;
    all.Run([&](amp_comm *comm) {
        amp_error err = {};
        std::vector<unsigned char> data = Brought(AMP_DT_F32, comm->rank, 100);
        amp_status status = AMP_OK;
        for (int k = 0; k < 8 && !status; k++)
            status = Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data.data(), 100, &err, 0, bucket);
        EXPECT_EQ(status, AMP_PEER_FAILED);
        if (comm->rank == 1)
            EXPECT_EQ(err.message, "rank 1: " + std::string(bucket) + ": Engine_start: the network is on fire");
        else EXPECT_THAT(std::string(err.message), HasSubstr("no answer f"));
    });
    EXPECT_EQ(world.seen().abandoned, 3);
}

TEST_P(Failure, MeetingForSomethingElse) {
    all.Run([&](amp_comm *comm) {
        amp_error err = {};
        std::vector<char> records(3 * 16);
        std::string mine(16, static_cast<char>('a' + comm->rank));
        ASSERT_EQ(amp_comm_meet(comm, mine.data(), 16, records.data(), "hello", &err), AMP_OK) << err.message;
        EXPECT_EQ(std::string(records.begin(), records.end()),
                  std::string(16, 'a') + std::string(16, 'b') + std::string(16, 'c'));
        const char *what = comm->rank == 1 ? "checkpoint" : "hello";
        EXPECT_EQ(amp_comm_meet(comm, mine.data(), 16, records.data(), what, &err), AMP_PEER_FAILED);
        if (comm->rank == 1)
            EXPECT_THAT(std::string(err.message),
                        StartsWith("rank 1: rank 0 meets for 'hello' (16 bytes, after 4 collectives), this "
                                   "rank for 'checkpoint' (16, after 4)"));
        else EXPECT_THAT(std::string(err.message), HasSubstr(": rank 1 meets for 'checkpoint'"));
    });
    EXPECT_EQ(world.seen().abandoned, 3);
}

TEST_P(Failure, MeetingWithAnotherSize) {
    all.Run([&](amp_comm *comm) {
        amp_error err = {};
        char mine[16] = {}, records[3 * 16];
        EXPECT_EQ(amp_comm_meet(comm, mine, comm->rank ? 16 : 8, records, "hello", &err), AMP_PEER_FAILED);
        EXPECT_THAT(std::string(err.message), HasSubstr("all ranks have to make the same calls in the same order"));
    });
}

// A rank that gives up while the others go on: they are told why.
TEST_P(Failure, ReleasedByOneRank) {
    all.Run([&](amp_comm *comm) {
        amp_error err = {};
        char mine[16] = {}, records[3 * 16];
        if (comm->rank == 1) return;
        EXPECT_EQ(amp_comm_meet(comm, mine, 16, records, "hello", &err), AMP_PEER_FAILED);
        EXPECT_THAT(std::string(err.message), HasSubstr(": rank 1 meets for 'amp_comm_release'"));
    });
}

TEST_P(Failure, LeavingTogether) {
    all.Run([&](amp_comm *comm) {
        amp_error err = {};
        EXPECT_EQ(amp_comm_leave(comm, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_comm_leave(comm, &err), AMP_WRONG_STATE);
        EXPECT_STREQ(err.message, "amp_comm_release: this comm has left the other ranks already");
    });
    EXPECT_EQ(world.seen().disconnected, 3);
    EXPECT_EQ(world.seen().abandoned, 0);
}

TEST(Leaving, SaysWhoDoesNot) {
    World world(3);
    world.own_thread = true;
    Ranks all(&world, false, timeout);
    all.Run([&](amp_comm *comm) {
        amp_error err = {};
        if (comm->rank == 1) return std::this_thread::sleep_for(std::chrono::milliseconds(2500));
        EXPECT_EQ(amp_comm_leave(comm, &err), AMP_PEER_FAILED);
        EXPECT_THAT(std::string(err.message), HasSubstr("amp_comm_release: rank 1 is alive, but has not joined for"));
    });
    EXPECT_EQ(world.seen().disconnected, 0);
    EXPECT_EQ(world.seen().abandoned, 3);
}

TEST_P(Failure, SumsInAnotherOrder) {
    std::vector<std::thread> threads;
    for (int32_t r = 0; r < 3; r++)
        threads.emplace_back([this, r] {
            Ranks mine(&world, r == 2, timeout);
            amp_comm *comm = nullptr;
            amp_error err = {};
            EXPECT_EQ(mine.Open(r, &comm, &err), AMP_MISMATCH);
            EXPECT_EQ(comm, nullptr);
            EXPECT_THAT(std::string(err.message),
                        HasSubstr(r == 2 ? "rank 0 was opened with ordered = 0, this rank with 1"
                                         : "rank 2 was opened with ordered = 1, this rank with 0"));
        });
    for (std::thread &t : threads) t.join();
    EXPECT_EQ(world.seen().abandoned, 3);
    EXPECT_EQ(world.seen().closed, 3);
}

TEST_P(Failure, RanksThatCannotBeJoined) {
    world.connect_status = AMP_UNSUPPORTED;
    amp_comm *comm = nullptr;
    amp_error err = {};
    EXPECT_EQ(all.Open(0, &comm, &err), AMP_UNSUPPORTED);
    EXPECT_STREQ(err.message, "the ranks cannot be joined");
    EXPECT_EQ(world.seen().closed, 1);
    EXPECT_EQ(world.seen().disconnected, 0);
}

TEST_P(Failure, WrongArgumentsStartNothing) {
    all.Run([&](amp_comm *comm) {
        amp_error err = {};
        float data[6] = {};
        uint64_t number = 99;
        auto start = [&](int op, amp_dtype dtype, void *p, size_t count, int32_t root) {
            return comm->calls->start(comm, static_cast<amp_collective_op>(op), dtype, p, count, root, "w", &number,
                                      &err);
        };
        EXPECT_EQ(start(6, AMP_DT_F32, data, 6, 0), AMP_INVALID_ARGUMENT);
        EXPECT_STREQ(err.message, "w: there is no collective 6");
        EXPECT_EQ(start(AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_I32, data, 6, 0), AMP_INVALID_ARGUMENT);
        EXPECT_STREQ(err.message, "w: i32 cannot be summed; f32, f64, f16 and bf16 can");
        EXPECT_EQ(start(AMP_COLLECTIVE_BROADCAST, AMP_DT_NONE, data, 6, 0), AMP_INVALID_ARGUMENT);
        EXPECT_STREQ(err.message, "w: none is not a type of elements");
        EXPECT_EQ(start(AMP_COLLECTIVE_ALL_GATHER, AMP_DT_F32, data, 5, 0), AMP_INVALID_ARGUMENT);
        EXPECT_STREQ(err.message, "w: 5 elements do not divide by 3 ranks");
        EXPECT_EQ(start(AMP_COLLECTIVE_BROADCAST, AMP_DT_F32, data, 6, 3), AMP_INVALID_ARGUMENT);
        EXPECT_STREQ(err.message, "w: rank 3 is not one of the 3 ranks");
        EXPECT_EQ(start(AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, nullptr, 6, 0), AMP_INVALID_ARGUMENT);
        EXPECT_STREQ(err.message, "w: data is NULL");
        EXPECT_EQ(start(AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F64, data, SIZE_MAX / 4, 0), AMP_INVALID_ARGUMENT);
        EXPECT_THAT(std::string(err.message), HasSubstr("are more than memory can hold"));
        EXPECT_EQ(comm->calls->wait(comm, 70, &err), AMP_INVALID_ARGUMENT);
        EXPECT_STREQ(err.message, "collective 70 was not started: 2 were");
        EXPECT_EQ(amp_comm_meet(comm, nullptr, 4, data, "m", &err), AMP_INVALID_ARGUMENT);
        EXPECT_EQ(number, 99u);
        EXPECT_EQ(Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data, 6, &err), AMP_OK) << "and all goes on";
    });
    EXPECT_EQ(world.seen().disconnected, 3);
}

INSTANTIATE_TEST_SUITE_P(Threads, Failure, testing::Bool(),
                         [](const auto &info) { return info.param ? "OwnThread" : "CallersThread"; });

// The library does not come back from a call: who waits is told, and what the thread may touch stays.
static amp_comm *kept[3]; // what stays for threads is no leak

TEST(Hang, IsToldByWhoWaits) {
    World world(2);
    world.hanging_rank = 0;
    world.hanging_from = 4;
    world.hangs = std::chrono::milliseconds(1600);
    Ranks all(&world, false, timeout);
    all.Run([&](amp_comm *comm) {
        if (comm->rank == 0) kept[0] = comm;
        amp_error err = {};
        float data[100] = {};
        amp_status status = AMP_OK;
        const double took = Seconds([&] {
            for (int k = 0; k < 8 && !status; k++)
                status = Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data, 100, &err, 0, bucket);
        });
        EXPECT_EQ(status, AMP_PEER_FAILED);
        EXPECT_LT(took, 1.5);
        if (comm->rank == 0) {
            EXPECT_THAT(std::string(err.message),
                        HasSubstr("a call of the engine of threads has not returned for 0.6 s"));
        }
    });
    std::this_thread::sleep_for(world.hangs); // the thread ends before the world does
    EXPECT_EQ(world.seen().disconnected, 0);
}

// Memory that is never given back, and that is no leak.
static void *Keep(void *, size_t size, size_t align) {
    static auto *blocks = new std::vector<void *>; // there when leaks are looked for
    blocks->push_back(aligned_alloc(align, (size + align - 1) / align * align));
    return blocks->back();
}
static void KeepOn(void *, void *, size_t, size_t) {}

// MPI_Init_thread and MPI_Finalize wait for other ranks, and may do so for ever.
TEST(Hang, WhileRanksJoinAndLeave) {
    static World world(1), other(1);                       // for threads that end later
    world.connect_takes = std::chrono::milliseconds(1800); // a second longer than it is waited for
    Ranks joins(&world, false, 0.5);
    amp_comm *comm = nullptr;
    amp_error err = {};
    const amp_allocator keeps = {nullptr, Keep, KeepOn};
    EXPECT_EQ(joins.Open(0, &comm, &err, &keeps), AMP_PEER_FAILED);
    EXPECT_STREQ(err.message, "the engine of threads: the ranks did not connect within 0.5 s: was every rank "
                              "started, and can their hosts reach each other?");
    EXPECT_EQ(comm, nullptr);

    other.disconnect_takes = std::chrono::milliseconds(900);
    Ranks leaves(&other, false, 0.1);
    ASSERT_EQ(leaves.Open(0, &comm, &err), AMP_OK) << err.message;
    kept[1] = comm;
    EXPECT_LT(Seconds([&] { EXPECT_EQ(amp_comm_leave(comm, &err), AMP_PEER_FAILED); }), 0.8);
    EXPECT_STREQ(err.message,
                 "rank 0: amp_comm_release: the engine of threads has not disconnected this rank within 0.2 s: "
                 "another rank has died, hangs or was stopped");
    amp_comm_release(comm);
    std::this_thread::sleep_for(std::chrono::milliseconds(1000));
    EXPECT_EQ(world.seen().abandoned, 1);
    EXPECT_EQ(other.seen().disconnected, 1);
    EXPECT_EQ(world.seen().closed + other.seen().closed, 0) << "what a thread was in stays";
}

// Every allocation fails in turn: the call says so, nothing was started, and the ranks go on together.
TEST(Memory, EachAllocationFails) {
    for (int fail_at = 0;; fail_at++) {
        FailingAllocator memory(fail_at);
        amp_allocator allocator = memory.get();
        World world(1);
        world.sums = 0;
        Ranks all(&world);
        amp_comm *comm = nullptr;
        amp_error err = {};
        amp_status status = all.Open(0, &comm, &err, &allocator);
        amp_comm_release(comm);
        if (!status) break;
        EXPECT_EQ(status, AMP_OUT_OF_MEMORY);
        EXPECT_THAT(std::string(err.message), HasSubstr("no memory"));
        ASSERT_LT(fail_at, 100);
    }
    World world(3);
    world.sums = 0; // everything needs staging
    Ranks all(&world);
    std::vector<std::thread> threads;
    for (int32_t r = 0; r < 3; r++)
        threads.emplace_back([&, r] {
            FailingAllocator memory;
            amp_allocator allocator = memory.get();
            amp_comm *comm = nullptr;
            amp_error err = {};
            ASSERT_EQ(all.Open(r, &comm, &err, &allocator), AMP_OK) << err.message;
            std::vector<float> data(50000, 1);
            for (size_t count : {100, 2000, 50000}) // each outgrows what there is
                for (int more = 0;; more++) {
                    memory.fail_after(more);
                    uint64_t number = 0;
                    amp_status status = comm->calls->start(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data.data(),
                                                           count, 0, bucket, &number, &err);
                    memory.fail_after(-1);
                    if (!status) {
                        ASSERT_EQ(comm->calls->wait(comm, number, &err), AMP_OK) << err.message;
                        break;
                    }
                    ASSERT_EQ(status, AMP_OUT_OF_MEMORY);
                    ASSERT_THAT(err.message, StartsWith(bucket));
                    ASSERT_LT(more, 10);
                }
            EXPECT_EQ(data[0], 27);
            // What the lanes have now is enough: nothing more is allocated.
            for (int k = 0; k < 2 * AMP_LANES; k++)
                ASSERT_EQ(Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data.data(), 50000, &err), AMP_OK);
            const int calls = memory.calls();
            for (int k = 0; k < 2 * AMP_LANES; k++)
                ASSERT_EQ(Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data.data(), 50000, &err), AMP_OK);
            EXPECT_EQ(memory.calls(), calls);
            amp_comm_release(comm);
        });
    for (std::thread &t : threads) t.join();
    EXPECT_EQ(world.seen().disconnected, 3);
}

TEST(Options, AreChecked) {
    amp_error err = {};
    amp_comm *comm = nullptr;
    amp_comm_options o = {};
    EXPECT_EQ(amp_comm_open(&o, &comm, &err), AMP_INVALID_ARGUMENT);
    EXPECT_THAT(std::string(err.message), HasSubstr("set it to sizeof(amp_comm_options)"));
    o.struct_size = sizeof o;
    EXPECT_EQ(amp_comm_open(&o, nullptr, &err), AMP_INVALID_ARGUMENT);
    o.engine = "nccl";
    o.ordered = 1;
    EXPECT_EQ(amp_comm_open(&o, &comm, &err), AMP_UNSUPPORTED);
    EXPECT_STREQ(err.message, "the engine \"nccl\" adds in an order of its own: leave ordered out (--reduce fast), or "
                              "take the engine \"mpi\", which goes by the host's memory");
    o.ordered = 0;
    o.engine = "gloo";
    EXPECT_EQ(amp_comm_open(&o, &comm, &err), AMP_NOT_FOUND);
    EXPECT_STREQ(err.message, "there is no engine \"gloo\"; \"mpi\", \"nccl\" and \"files\" are there");
    o.engine = nullptr;
    for (double wrong : {-1.0, 0.001, 1e7, static_cast<double>(NAN)}) {
        o.timeout = wrong;
        EXPECT_EQ(amp_comm_open(&o, &comm, &err), AMP_INVALID_ARGUMENT);
        EXPECT_THAT(std::string(err.message), HasSubstr("it must be from 0.01 to 1e+06 seconds, or 0 (30)"));
    }
    o.timeout = 0;
    o.ordered = 2;
    EXPECT_EQ(amp_comm_open(&o, &comm, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "ordered is 2; it must be 0 or 1");
    o.ordered = 0;
    o.library = "/nowhere/libmpi.so";
    EXPECT_EQ(amp_comm_open(&o, &comm, &err), AMP_NOT_FOUND);
    EXPECT_THAT(std::string(err.message), StartsWith("the MPI library cannot be opened: /nowhere/libmpi.so: "));
    o.library = "libm.so.6";
    EXPECT_EQ(amp_comm_open(&o, &comm, &err), AMP_BAD_FILE);
    EXPECT_THAT(std::string(err.message), HasSubstr("is no MPI of version 3 or newer: it has no MPI_Initialized"));
    EXPECT_EQ(amp_comm_from_mpi(nullptr, 8, &o, &comm, &err), AMP_INVALID_ARGUMENT);
    o.folder = "meeting";
    EXPECT_EQ(amp_comm_from_mpi("comm", 8, &o, &comm, &err), AMP_INVALID_ARGUMENT);
    EXPECT_THAT(std::string(err.message),
                StartsWith("folder is \"meeting\", and the ranks of the engine \"mpi\" meet"));
    o.engine = "nccl";
    EXPECT_EQ(amp_comm_from_mpi("comm", 8, &o, &comm, &err), AMP_INVALID_ARGUMENT);
    EXPECT_THAT(std::string(err.message),
                StartsWith("amp_comm_from_mpi: folder is \"meeting\", and the ranks of mpi_"));
    EXPECT_EQ(amp_comm_from_nccl(nullptr, &o, &comm, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "amp_comm_from_nccl: nccl_comm or out is NULL");
    o.engine = "files";
    EXPECT_EQ(amp_comm_from_nccl(&err, &o, &comm, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "amp_comm_from_nccl: engine is \"files\"; it must be \"nccl\", or NULL");
    EXPECT_EQ(comm, nullptr);
    EXPECT_EQ(amp_comm_rank(nullptr), 0);
    EXPECT_EQ(amp_comm_size(nullptr), 1);
    EXPECT_EQ(amp_comm_meet(nullptr, nullptr, 0, nullptr, "m", &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "amp_comm_meet: comm is NULL");
    EXPECT_EQ(amp_comm_leave(nullptr, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "amp_comm_leave: comm is NULL");
    amp_comm_does(nullptr, AMP_RANK_LOADS, -1);
    amp_comm_give_up(nullptr, "it ends");
    amp_comm_release(nullptr);
}

TEST(Options, OfFoldersAreChecked) {
    for (const char *v : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE", "SLURM_NTASKS", "RANK"}) unsetenv(v);
    amp_error err = {};
    amp_comm *comm = nullptr;
    amp_comm_options o = {};
    o.struct_size = sizeof o;
    o.engine = "files";
    EXPECT_EQ(amp_comm_open(&o, &comm, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "the engine \"files\" needs the folder where ranks meet (amp_comm_options.folder, "
                              "--dist-folder)");
    o.engine = "mpi";
    o.ranks = 2;
    EXPECT_EQ(amp_comm_open(&o, &comm, &err), AMP_INVALID_ARGUMENT);
    EXPECT_THAT(std::string(err.message), StartsWith("rank and ranks are given without folder"));
    o.engine = "files";
    const std::string folder = testing::TempDir() + "options";
    o.folder = folder.c_str();
    const int32_t wrong[][2] = {{-1, 2}, {2, 2}, {1, 0}, {0, -1}};
    for (const auto &of : wrong) {
        o.rank = of[0], o.ranks = of[1];
        EXPECT_EQ(amp_comm_open(&o, &comm, &err), AMP_INVALID_ARGUMENT);
        EXPECT_EQ(std::string(err.message), "rank is " + std::to_string(of[0]) + " of " + std::to_string(of[1]) +
                                                " ranks; it must be from 0 to ranks - 1, or both 0 (by the launcher)");
    }
    o.rank = o.ranks = 0;
    EXPECT_EQ(amp_comm_open(&o, &comm, &err), AMP_INVALID_ARGUMENT);
    EXPECT_THAT(std::string(err.message), StartsWith("nothing says which rank this process is, and of how many: start "
                                                     "it with torchrun (RANK, WORLD_SIZE), srun"));
    setenv("WORLD_SIZE", "2", 1);
    EXPECT_EQ(amp_comm_open(&o, &comm, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "WORLD_SIZE says that 2 processes were started, but not which one of them this is");
    setenv("WORLD_SIZE", "1", 1);
    setenv("RANK", "0", 1);
    ASSERT_EQ(amp_comm_open(&o, &comm, &err), AMP_OK) << err.message;
    EXPECT_EQ(amp_comm_size(comm), 1);
    amp_comm_release(comm);
    unsetenv("WORLD_SIZE");
    unsetenv("RANK");
    o.rank = 0, o.ranks = 1;
    ASSERT_EQ(amp_comm_open(&o, &comm, &err), AMP_OK) << err.message;
    amp_comm_release(comm);
    const std::string longest(4000, 'x');
    o.folder = longest.c_str();
    EXPECT_EQ(amp_comm_open(&o, &comm, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "the name of a folder where ranks meet has 1 to 3000 bytes, not 4000");
}

// The engine of threads itself: a rank that has left has its memory back.
TEST(ThreadEngine, NothingReachesARankThatHasLeft) {
    for (bool leaves : {false, true}) {
        World world(2);
        float data[2] = {1, 2};
        amp_engine *engines[2];
        amp_error err = {};
        auto start = [&](int32_t rank) {
            const amp_message message = {AMP_SUM_ALL, AMP_DT_F32, &data[rank], nullptr, 1, 0};
            ASSERT_EQ(engines[rank]->type->start(engines[rank], 0, &message, &err), AMP_OK);
        };
        for (int32_t rank = 0; rank < 2; rank++) {
            engines[rank] = world.Engine(rank);
            ASSERT_EQ(engines[rank]->type->connect(engines[rank], &err), AMP_OK);
        }
        start(0);
        if (leaves) engines[0]->type->abandon(engines[0]);
        start(1);
        bool done = false;
        ASSERT_EQ(engines[1]->type->test(engines[1], 0, &done, &err), AMP_OK);
        EXPECT_EQ(done, !leaves);
        EXPECT_EQ(data[0], leaves ? 1 : 3);
        EXPECT_EQ(data[1], leaves ? 2 : 3);
        for (amp_engine *engine : engines) engine->type->close(engine);
    }
}

} // namespace
