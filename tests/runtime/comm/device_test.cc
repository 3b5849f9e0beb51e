// Collectives on devices, over an NCCL and a driver of the test's own: what is called, whose fault is whose, what
// counts for the deadline, and that sessions are told before anything is ended.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>

#include "base/alloc.h"
#include "tests/runtime/comm/ranks.h"

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double timeout = 0.5;
const char *const bucket = "bucket 0 (fc1.weight ..)";

// ---- a device ----

struct Stream { // has come to its first |reached| events
    std::atomic<int> reached{1 << 30};
    int recorded = 0;
};
struct Event {
    Stream *stream = nullptr;
    int place = 0;
};
std::atomic<int> events, pushed;
std::string failing_call;       // on rank 1
thread_local int32_t this_rank; // of the caller; the comm's own threads have none
thread_local CuContext current = reinterpret_cast<CuContext>(8);

bool Fails(const char *call) { return this_rank == 1 && failing_call == call; }

CuResult ContextCurrent(CuContext *out) { return *out = current, 0; }
CuResult ContextPush(CuContext) { return pushed++, 0; }
CuResult ContextPop(CuContext *) { return pushed--, 0; }
// The events that are there, as a context would keep them: after a failure they are not destroyed.
std::mutex events_lock;
std::set<Event *> &Events() {
    static auto *all = new std::set<Event *>;
    return *all;
}
CuResult EventCreate(CuEvent *out, unsigned) {
    if (Fails("cuEventCreate")) return CU_OUT_OF_MEMORY;
    std::lock_guard<std::mutex> lock(events_lock);
    return *out = reinterpret_cast<CuEvent>(*Events().insert(new Event).first), events++, 0;
}
CuResult EventDestroy(CuEvent e) {
    std::lock_guard<std::mutex> lock(events_lock);
    Events().erase(reinterpret_cast<Event *>(e));
    return delete reinterpret_cast<Event *>(e), events--, 0;
}
CuResult EventRecord(CuEvent e, CuStream stream) {
    if (Fails("cuEventRecord")) return CU_INVALID_HANDLE;
    auto *s = reinterpret_cast<Stream *>(stream);
    *reinterpret_cast<Event *>(e) = {s, ++s->recorded};
    return 0;
}
CuResult EventQuery(CuEvent e) {
    const auto *event = reinterpret_cast<Event *>(e);
    return event->stream->reached >= event->place ? CU_SUCCESS : CU_NOT_READY;
}
CuResult ErrorName(CuResult, const char **out) { return *out = "CUDA_ERROR", 0; }

// ---- an NCCL ----

struct FakeComm {
    std::atomic<int> polls{2}; // that are in progress still
    std::atomic<int> error{0};
    std::vector<std::string> asked;
    std::atomic<bool> aborted{false}, destroyed{false};
};
FakeComm *comms[4];

NcclResult Ask(NcclComm comm, const char *call, const void *send, const void *receive, size_t count, int type) {
    if (Fails(call)) return NCCL_SYSTEM_ERROR;
    const auto offset = static_cast<const char *>(send) - static_cast<const char *>(receive);
    reinterpret_cast<FakeComm *>(comm)->asked.push_back(std::string(call) + " " + std::to_string(count) + " of type " +
                                                        std::to_string(type) + " at " + std::to_string(offset));
    return NCCL_OK;
}
NcclResult GetUniqueId(NcclId *id) {
    snprintf(id->internal, sizeof id->internal, "the id");
    return failing_call == "ncclGetUniqueId" ? NCCL_INTERNAL_ERROR : NCCL_OK;
}
NcclResult CommInit(NcclComm *out, int, NcclId id, int rank, NcclConfig *config) {
    EXPECT_STREQ(id.internal, "the id");
    EXPECT_EQ(config->blocking, 0);
    EXPECT_EQ(config->size, sizeof *config);
    if (Fails("ncclCommInitRankConfig")) return NCCL_INVALID_USAGE;
    return *out = reinterpret_cast<NcclComm>(comms[rank]), NCCL_IN_PROGRESS;
}
int count_of_given = 2;
NcclResult CommCount(NcclComm, int *out) {
    if (Fails("ncclCommCount")) return NCCL_SYSTEM_ERROR;
    return *out = count_of_given, NCCL_OK;
}
NcclResult CommRank(NcclComm comm, int *out) {
    if (Fails("ncclCommUserRank")) return NCCL_SYSTEM_ERROR;
    return *out = reinterpret_cast<FakeComm *>(comm) == comms[1], NCCL_OK;
}
NcclResult AsyncError(NcclComm comm, NcclResult *state) {
    if (Fails("ncclCommGetAsyncError")) return NCCL_SYSTEM_ERROR;
    auto *c = reinterpret_cast<FakeComm *>(comm);
    EXPECT_FALSE(c->aborted);
    *state = c->error ? c->error.load() : c->polls-- > 0 ? NCCL_IN_PROGRESS : NCCL_OK;
    return NCCL_OK;
}
NcclResult GroupStart() { return Fails("ncclGroupStart") ? NCCL_SYSTEM_ERROR : NCCL_OK; }
NcclResult GroupEnd() { return Fails("ncclGroupEnd") ? NCCL_SYSTEM_ERROR : NCCL_IN_PROGRESS; }
NcclResult AllReduce(const void *send, void *receive, size_t count, int type, int op, NcclComm comm, void *) {
    EXPECT_EQ(op, NCCL_SUM);
    return Ask(comm, "ncclAllReduce", send, receive, count, type);
}
NcclResult ReduceScatter(const void *send, void *receive, size_t count, int type, int, NcclComm comm, void *) {
    return Ask(comm, "ncclReduceScatter", send, receive, count, type);
}
NcclResult AllGather(const void *send, void *receive, size_t count, int type, NcclComm comm, void *) {
    return Ask(comm, "ncclAllGather", send, receive, count, type);
}
NcclResult Broadcast(const void *send, void *receive, size_t count, int type, int root, NcclComm comm, void *) {
    return Ask(comm, root == 1 ? "ncclBroadcast" : "a wrong root", send, receive, count, type);
}
NcclResult Finalize(NcclComm) { return NCCL_IN_PROGRESS; }
NcclResult Destroy(NcclComm comm) { return reinterpret_cast<FakeComm *>(comm)->destroyed = true, NCCL_OK; }
NcclResult Abort(NcclComm comm) {
    reinterpret_cast<FakeComm *>(comm)->aborted = true;
    return failing_call == "ncclCommAbort" ? NCCL_SYSTEM_ERROR : NCCL_OK;
}
const char *ErrorString(NcclResult) { return "an error"; }
const char *LastError(NcclComm) { return "its text\n"; }

// What a session has of a comm.
struct User {
    amp_comm_user head = {};
    int32_t rank = 0;
    std::atomic<int> told{0};
    bool before_abort = false;
    std::string why;
    static void Failed(amp_comm_user *user, const amp_error *why) {
        auto *u = reinterpret_cast<User *>(user);
        u->why = why->message;
        u->before_abort = !comms[u->rank]->aborted;
        u->told++;
    }
};

struct Device : testing::Test {
    World world{2};
    Ranks all{&world, false, timeout};
    FakeComm fakes[2];
    Stream streams[2];
    User users[2];
    int32_t version[2] = {22809, 22809};
    bool given[2] = {};
    float data[64] = {};

    void SetUp() override {
        failing_call.clear();
        count_of_given = 2;
        events = pushed = 0;
        for (int32_t r = 0; r < 2; r++) {
            comms[r] = &fakes[r];
            users[r].rank = r;
            users[r].head.failed = User::Failed;
        }
    }
    void TearDown() override { EXPECT_EQ(pushed, 0); }

    amp_nccl *Nccl(int32_t rank) {
        auto *n = static_cast<amp_nccl *>(amp_alloc_zeroed(nullptr, sizeof(amp_nccl)));
        n->calls = {nullptr,    GetUniqueId, CommInit,  CommCount,     CommRank,  AsyncError,
                    GroupStart, GroupEnd,    AllReduce, ReduceScatter, AllGather, Broadcast,
                    Finalize,   Destroy,     Abort,     ErrorString,   LastError};
        n->cuda = {ContextCurrent, ContextPush, ContextPop, EventCreate,
                   EventDestroy,   EventRecord, EventQuery, ErrorName};
        n->version = version[rank];
        n->given = given[rank] ? reinterpret_cast<NcclComm>(comms[rank]) : nullptr;
        snprintf(n->name, sizeof n->name, "the NCCL of the test");
        pthread_mutex_init(&n->lock, nullptr);
        return n;
    }

    // In each rank: attached, unless that fails, which |failed| is told.
    void Run(const std::function<void(amp_comm *)> &body,
             const std::function<void(amp_comm *, const amp_error &)> &failed = nullptr) {
        std::atomic<int> opened{0};
        all.Run([&](amp_comm *comm) {
            amp_error err = {};
            this_rank = comm->rank;
            for (opened++; opened < world.ranks;) Sleep(0.001); // lest one fails while another still opens
            ASSERT_EQ(amp_comm_use_nccl(reinterpret_cast<amp_comm_state *>(comm), Nccl(comm->rank), &err), AMP_OK);
            amp_status status = comm->calls->attach(comm, &users[comm->rank].head, &err);
            if (status && failed) return failed(comm, err);
            ASSERT_EQ(status, AMP_OK) << err.message;
            body(comm);
            comm->calls->detach(comm, &users[comm->rank].head);
        });
    }
    // A step: what is enqueued is used.
    amp_status Enqueue(amp_comm *comm, amp_error *err) {
        const amp_status status = EnqueueUnused(comm, err);
        return status ? status : comm->calls->use(comm, err);
    }
    amp_status EnqueueUnused(amp_comm *comm, amp_error *err) {
        fakes[comm->rank].polls = 2;
        const amp_device_collective list[] = {{AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data, 10, 0, bucket, 0, nullptr}};
        return comm->calls->enqueue(comm, list, 1, &streams[comm->rank], err);
    }
    static amp_status Wait(amp_comm *comm, amp_error *err) { // for all so far
        return amp_comm_meet(comm, nullptr, 0, nullptr, "the end", err);
    }
    void AwaitAbort(amp_comm *comm) { // by the thread
        for (int k = 0; k < 200 && !fakes[comm->rank].aborted; k++) Sleep(0.01);
    }
    static void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }
};

// In place, parts as NCCL wants them, in one group; what is not added is bytes.
TEST_F(Device, CallsNcclInPlace) {
    Run([&](amp_comm *comm) {
        amp_error err = {};
        const amp_device_collective list[] = {
            {AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data, 10, 0, bucket, 0, nullptr},
            {AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F16, data, 12, 0, "b", 0, nullptr},
            {AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_BF16, data, 14, 0, "c", 0, nullptr},
            {AMP_COLLECTIVE_ALL_REDUCE_TREE, AMP_DT_F64, data, 16, 0, "d", 0, nullptr},
            {AMP_COLLECTIVE_REDUCE_SCATTER, AMP_DT_F32, data, 10, 0, "e", 0, nullptr},
            {AMP_COLLECTIVE_ALL_GATHER, AMP_DT_F16, data, 10, 0, "f", 0, nullptr},
            {AMP_COLLECTIVE_BROADCAST, AMP_DT_I32, data, 3, 1, nullptr, 0, nullptr},
        };
        ASSERT_EQ(comm->calls->enqueue(comm, list, 7, &streams[comm->rank], &err), AMP_OK) << err.message;
        ASSERT_EQ(Wait(comm, &err), AMP_OK) << err.message;
        EXPECT_EQ(reinterpret_cast<amp_comm_state *>(comm)->flights->users, 0);
    });
    EXPECT_THAT(fakes[0].asked, ElementsAre("ncclAllReduce 10 of type 7 at 0", "ncclAllReduce 12 of type 6 at 0",
                                            "ncclAllReduce 14 of type 9 at 0", "ncclAllReduce 16 of type 8 at 0",
                                            "ncclReduceScatter 5 of type 7 at 0", "ncclAllGather 10 of type 1 at 0",
                                            "ncclBroadcast 12 of type 1 at 0"));
    EXPECT_THAT(fakes[1].asked, testing::Contains("ncclReduceScatter 5 of type 7 at -20"));
    EXPECT_THAT(fakes[1].asked, testing::Contains("ncclAllGather 10 of type 1 at 10"));
    EXPECT_EQ(events, 0);
    for (const FakeComm &f : fakes) EXPECT_TRUE(f.destroyed && !f.aborted);
    EXPECT_EQ(users[0].told + users[1].told, 0);
}

TEST_F(Device, RefusesWhatIsWrong) {
    Run([&](amp_comm *comm) {
        amp_error err = {};
        const amp_device_collective bad = {AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_I32, data, 10, 0, bucket, 0, nullptr};
        EXPECT_EQ(comm->calls->enqueue(comm, &bad, 1, &streams[comm->rank], &err), AMP_INVALID_ARGUMENT);
        EXPECT_THAT(err.message, HasSubstr("i32 cannot be summed"));
        User other;
        current = reinterpret_cast<CuContext>(16);
        EXPECT_EQ(comm->calls->attach(comm, &other.head, &err), AMP_UNSUPPORTED);
        EXPECT_THAT(err.message, HasSubstr("all sessions of one comm must use one CUDA context"));
        current = reinterpret_cast<CuContext>(8);
        EXPECT_EQ(Enqueue(comm, &err), AMP_OK) << err.message; // all the same
    });
}

TEST_F(Device, AllRanksHaveOneVersion) {
    version[1] = 21800;
    Run([](amp_comm *) { FAIL(); },
        [](amp_comm *, const amp_error &err) {
            EXPECT_EQ(err.code, AMP_MISMATCH);
            EXPECT_THAT(err.message, HasSubstr("rank 1 has version 21800 of NCCL, rank 0 version 22809"));
        });
}

// Each call that fails on rank 1 is named on both, at once.
class Failing : public Device, public testing::WithParamInterface<const char *> {};
TEST_P(Failing, IsNamedOnAllRanks) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string call = GetParam(), by = call == "ncclGetUniqueId" ? "rank 0" : "rank 1";
    failing_call = call;
    auto check = [&](amp_comm *comm, const amp_error &err) {
        const std::string me = "rank " + std::to_string(comm->rank);
        EXPECT_EQ(err.code, AMP_PEER_FAILED);
        EXPECT_THAT(err.message, HasSubstr(call));
        EXPECT_THAT(err.message, HasSubstr(me == by ? me + ": " : me + ": " + by + " says: "));
    };
    Run(
        [&](amp_comm *comm) {
            amp_error err = {};
            amp_status status = AMP_OK;
            for (int k = 0; k < 3 && !status; k++) status = Enqueue(comm, &err);
            if (!status) status = Wait(comm, &err);
            ASSERT_EQ(status, AMP_PEER_FAILED);
            if (err.code && call.find("cuEventCreate")) check(comm, err);
        },
        check);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(took.count(), 4);
}
INSTANTIATE_TEST_SUITE_P(Calls, Failing,
                         testing::Values("ncclGetUniqueId", "ncclCommInitRankConfig", "ncclCommGetAsyncError",
                                         "ncclGroupStart", "ncclAllReduce", "ncclGroupEnd"));

// A communicator of the program is used and stays as it is.
TEST_F(Device, TakesACommunicatorOfTheProgram) {
    given[0] = given[1] = true;
    failing_call = "ncclGetUniqueId"; // on both ranks: neither this nor ncclCommInitRankConfig is called
    Run([&](amp_comm *comm) {
        amp_error err = {};
        ASSERT_EQ(Enqueue(comm, &err), AMP_OK) << err.message;
        ASSERT_EQ(Wait(comm, &err), AMP_OK) << err.message;
    });
    for (const FakeComm &f : fakes) {
        EXPECT_THAT(f.asked, ElementsAre("ncclAllReduce 10 of type 7 at 0"));
        EXPECT_FALSE(f.destroyed || f.aborted);
    }
}

TEST_F(Device, ACommunicatorOfTheProgramEndsWithAFailure) {
    given[0] = given[1] = true;
    streams[0].reached = streams[1].reached = 1;
    std::atomic<int> there{0};
    Run([&](amp_comm *comm) {
        amp_error err = {};
        ASSERT_EQ(Enqueue(comm, &err), AMP_OK) << err.message;
        for (there++; there < 2;) Sleep(0.001);
        if (comm->rank == 1) fakes[1].error = NCCL_REMOTE_ERROR;
        EXPECT_EQ(Wait(comm, &err), AMP_PEER_FAILED);
        AwaitAbort(comm);
    });
    for (const FakeComm &f : fakes) EXPECT_TRUE(f.aborted && !f.destroyed);
}

TEST_F(Device, CommunicatorsOfTheProgramHaveTheSameRanks) {
    given[0] = given[1] = true;
    count_of_given = 3;
    const std::string why = "the program's communicator of NCCL has this process as rank ";
    Run([](amp_comm *) { FAIL(); },
        [&](amp_comm *, const amp_error &err) {
            EXPECT_THAT(err.message, testing::AnyOf(HasSubstr(why + "0 of 3, the comm as 0 of 2: give both the same"),
                                                    HasSubstr(why + "1 of 3, the comm as 1 of 2: give both the same")));
        });
    for (const FakeComm &f : fakes) EXPECT_FALSE(f.aborted || f.destroyed);
}

TEST_F(Device, AllRanksHaveACommunicatorOfTheProgramOrNone) {
    given[1] = true;
    Run([](amp_comm *) { FAIL(); },
        [](amp_comm *, const amp_error &err) {
            EXPECT_EQ(err.code, AMP_MISMATCH);
            EXPECT_THAT(err.message,
                        HasSubstr("rank 1 was given a communicator of NCCL, rank 0 was not: all call amp_"));
        });
}

// An error that comes later, while the stream has not come through: users are told, and only then it is ended.
TEST_F(Device, TellsUsersBeforeItAborts) {
    streams[0].reached = streams[1].reached = 1;
    std::atomic<int> there{0};
    Run([&](amp_comm *comm) {
        amp_error err = {};
        ASSERT_EQ(Enqueue(comm, &err), AMP_OK) << err.message;
        for (there++; there < 2;) Sleep(0.001);
        if (comm->rank == 1) fakes[1].error = NCCL_REMOTE_ERROR;
        EXPECT_EQ(Wait(comm, &err), AMP_PEER_FAILED);
        EXPECT_THAT(err.message, HasSubstr(std::string(bucket) + ": ncclCommGetAsyncError: an error (6): its text; the "
                                                                 "NCCL of the test"));
        EXPECT_EQ(Enqueue(comm, &err), AMP_PEER_FAILED);
        AwaitAbort(comm);
    });
    for (const User &u : users) {
        EXPECT_EQ(u.told, 1);
        EXPECT_TRUE(u.before_abort);
        EXPECT_THAT(u.why, HasSubstr("ncclCommGetAsyncError"));
    }
    for (const FakeComm &f : fakes) EXPECT_TRUE(f.aborted && !f.destroyed);
}

// Where nothing is under way, what a failure ends is nothing, and weights are whole.
TEST_F(Device, TellsNobodyWhereNothingIsUnderWay) {
    std::atomic<int> have_waited{0};
    Run([&](amp_comm *comm) {
        amp_error err = {};
        ASSERT_EQ(Enqueue(comm, &err), AMP_OK) << err.message;
        ASSERT_EQ(Wait(comm, &err), AMP_OK) << err.message;
        for (have_waited++; have_waited < 2;) Sleep(0.001); // lest rank 1 gives up while rank 0 still waits
        if (comm->rank == 1) amp_comm_give_up(comm, "its data end");
        EXPECT_EQ(Wait(comm, &err), AMP_PEER_FAILED);
        EXPECT_THAT(err.message, HasSubstr("its data end"));
        AwaitAbort(comm);
    });
    EXPECT_EQ(users[0].told + users[1].told, 0);
    EXPECT_TRUE(fakes[0].aborted && fakes[1].aborted);
}

// A step that ends between its collectives and its update has used nothing of them: weights are whole.  It may fail in
// any call, before or after the others have come.
struct Unused : Device {
    void Fail(amp_comm *comm, std::atomic<int> *there) {
        amp_error err = {};
        for (++*there; *there < 2;) Sleep(0.001);
        if (comm->rank == 1) amp_comm_give_up(comm, "its data end");
        EXPECT_EQ(Wait(comm, &err), AMP_PEER_FAILED);
        EXPECT_EQ(comm->calls->use(comm, &err), AMP_PEER_FAILED);
        EXPECT_THAT(err.message, HasSubstr("its data end"));
        EXPECT_TRUE(fakes[comm->rank].aborted) << "what was under way has ended";
    }
};

TEST_F(Unused, TellsNobody) {
    streams[0].reached = streams[1].reached = 3; // the first collective is done, the second is under way
    std::atomic<int> there{0};
    Run([&](amp_comm *comm) {
        amp_error err = {};
        ASSERT_EQ(Enqueue(comm, &err), AMP_OK) << err.message;
        ASSERT_EQ(EnqueueUnused(comm, &err), AMP_OK) << err.message;
        Fail(comm, &there);
    });
    EXPECT_EQ(users[0].told + users[1].told, 0);
}

TEST_F(Unused, TellsUsersOfTheOneBefore) {
    streams[0].reached = streams[1].reached = 1; // the first is under way
    std::atomic<int> there{0};
    Run([&](amp_comm *comm) {
        amp_error err = {};
        ASSERT_EQ(Enqueue(comm, &err), AMP_OK) << err.message;
        ASSERT_EQ(EnqueueUnused(comm, &err), AMP_OK) << err.message;
        Fail(comm, &there);
    });
    for (const User &u : users) EXPECT_TRUE(u.told == 1 && u.before_abort);
}

// Where the work could not be launched it is not there.
TEST_F(Unused, TellsNobodyOfWorkThatHasDeparted) {
    streams[0].reached = streams[1].reached = 1;
    std::atomic<int> there{0};
    Run([&](amp_comm *comm) {
        amp_error err = {};
        ASSERT_EQ(comm->calls->depart(comm, "micro_step", 10, &streams[comm->rank], &err), AMP_OK) << err.message;
        Fail(comm, &there);
    });
    EXPECT_EQ(users[0].told + users[1].told, 0);
}

TEST_F(Unused, TellsUsersOfWorkThatHasArrived) {
    streams[0].reached = streams[1].reached = 1;
    std::atomic<int> there{0};
    Run([&](amp_comm *comm) {
        amp_error err = {};
        ASSERT_EQ(comm->calls->depart(comm, "micro_step", 10, &streams[comm->rank], &err), AMP_OK) << err.message;
        ASSERT_EQ(comm->calls->arrive(comm, &streams[comm->rank], &err), AMP_OK) << err.message;
        Fail(comm, &there);
    });
    for (const User &u : users) EXPECT_TRUE(u.told == 1 && u.before_abort);
}

// A host would wait for the stream for ever.
TEST_F(Unused, TellsUsersOfWhatCannotBeEnded) {
    streams[0].reached = streams[1].reached = 1;
    failing_call = "ncclCommAbort";
    std::atomic<int> there{0};
    Run([&](amp_comm *comm) {
        amp_error err = {};
        ASSERT_EQ(EnqueueUnused(comm, &err), AMP_OK) << err.message;
        Fail(comm, &there);
    });
    EXPECT_EQ(users[0].told, 1);
    EXPECT_EQ(users[1].told, 1);
}

// A device that computes waits for no rank: the clock does not run.
TEST_F(Device, ComputingTakesAsLongAsItTakes) {
    streams[0].reached = streams[1].reached = 0;
    Run([&](amp_comm *comm) {
        amp_error err = {};
        ASSERT_EQ(Enqueue(comm, &err), AMP_OK) << err.message;
        Sleep(3 * timeout);
        streams[comm->rank].reached = 2;
        EXPECT_EQ(Wait(comm, &err), AMP_OK) << err.message;
    });
}

// Buckets of a step, each with events of its own: the second one's device still computes while the first one travels,
// and it may do so for as long as it takes.
TEST_F(Device, BucketsOfAStepComeInTurn) {
    streams[0].reached = streams[1].reached = 1; // the first may begin
    Run([&](amp_comm *comm) {
        amp_error err = {};
        for (int bucket = 0; bucket < 3; bucket++) ASSERT_EQ(Enqueue(comm, &err), AMP_OK) << err.message;
        EXPECT_GE(events, 6); // two a bucket
        Sleep(timeout / 4);
        streams[comm->rank].reached = 2; // it has come
        Sleep(3 * timeout);
        streams[comm->rank].reached = 6;
        EXPECT_EQ(Wait(comm, &err), AMP_OK) << err.message;
    });
    EXPECT_THAT(fakes[0].asked, testing::SizeIs(3));
    EXPECT_EQ(users[0].told + users[1].told, 0);
    EXPECT_EQ(events, 0);
}

// Rank 0 is there, rank 1's device computes: twice the timeout, and it is named.
TEST_F(Device, NamesTheRankWhoseDeviceIsLate) {
    streams[0].reached = 1;
    streams[1].reached = 0;
    const auto begin = std::chrono::steady_clock::now();
    Run([&](amp_comm *comm) {
        amp_error err = {};
        amp_comm_does(comm, AMP_RANK_COMPUTES, 7);
        ASSERT_EQ(Enqueue(comm, &err), AMP_OK) << err.message;
        EXPECT_EQ(Wait(comm, &err), AMP_PEER_FAILED);
        EXPECT_THAT(err.message, HasSubstr("rank 1 is alive, but has not joined for 1.0 s: it computes in step 7"));
    });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(took.count(), 2 * timeout);
    EXPECT_LT(took.count(), 8 * timeout);
}

// Both are there and nothing comes.  A second step that is enqueued after the first does not stop the clock.
TEST_F(Device, NamesNcclWhereNothingComes) {
    streams[0].reached = streams[1].reached = 1;
    Run([&](amp_comm *comm) {
        amp_error err = {};
        for (int step = 0; step < 2; step++) ASSERT_EQ(Enqueue(comm, &err), AMP_OK) << err.message;
        EXPECT_EQ(Wait(comm, &err), AMP_PEER_FAILED);
        EXPECT_THAT(err.message, HasSubstr(std::string(bucket) + ": all ranks are in it, and nothing came for 0.5 s: "
                                                                 "the network or the NCCL of the test is at fault"));
        AwaitAbort(comm);
    });
    EXPECT_EQ(users[0].told + users[1].told, 2);
}

// A call of NCCL that waits for a rank that does not come.
TEST_F(Device, NamesTheRankThatEnqueuesNothing) {
    fakes[0].polls = fakes[1].polls = 2;
    Run([&](amp_comm *comm) {
        amp_error err = {};
        amp_comm_does(comm, AMP_RANK_COMPUTES, 3);
        if (comm->rank == 1) return Sleep(4 * timeout);
        fakes[0].polls = 1 << 30;
        const amp_device_collective list[] = {{AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data, 10, 0, bucket, 0, nullptr}};
        EXPECT_EQ(comm->calls->enqueue(comm, list, 1, &streams[0], &err), AMP_PEER_FAILED);
        EXPECT_THAT(err.message, HasSubstr(std::string(bucket) + ": rank 1 is alive, but has not joined for 1.0 s"));
    });
    EXPECT_TRUE(fakes[0].aborted);
}

// ---- the library ----

TEST(NcclLibrary, IsNamedWhereItIsMissingOrNone) {
    amp_nccl n;
    amp_error err = {};
    EXPECT_EQ(amp_nccl_open(&n, "/nowhere/libnccl.so.2", &err), AMP_NOT_FOUND);
    EXPECT_THAT(err.message, HasSubstr("the NCCL library cannot be opened: /nowhere/libnccl.so.2"));
    EXPECT_EQ(amp_nccl_open(&n, "libm.so.6", &err), AMP_BAD_FILE);
    EXPECT_STREQ(err.message, "libm.so.6 is no NCCL of version 2.18 or newer: it has no ncclGetVersion");
}

} // namespace
