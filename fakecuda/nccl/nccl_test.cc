// The stand-in for NCCL: ranks are processes that the test forks, each with a stand-in for the driver.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/rounding.h"
#include "fakecuda/driver/fakecuda.h"
#include "runtime/comm/nccl/nccl_api.h"
#include "runtime/device/cuda/driver_api.h"

namespace {

struct Shared { // by all ranks of a test
    NcclId id;
    std::atomic<int> made, step;
};

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (condition) break;                                                                                          \
        fprintf(stderr, "rank %d, line %d: %s; %s\n", rank, __LINE__, #condition, nccl.get_last_error(nullptr));       \
        _exit(1);                                                                                                      \
    } while (0)

// One rank, in its process.
struct Rank {
    int rank, ranks;
    Shared *shared;
    void *driver = nullptr, *library = nullptr;
    CudaDriver cu = {};
    NcclApi nccl = {};
    CuContext context = nullptr;
    CuStream stream = nullptr;
    NcclComm comm = nullptr;

    template <class F> static void Find(void *in, const char *symbol, F *out) {
        void *found = dlsym(in, symbol);
        if (!found) _exit(2);
        memcpy(out, &found, sizeof found);
    }
    void Load() {
        driver = dlopen("fakecuda/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        library = dlopen("fakecuda/nccl/libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
        if (!driver || !library) fprintf(stderr, "%s\n", dlerror()), _exit(2);
#define FIND(name, symbol, parameters) Find(driver, #symbol, &cu.name);
        CUDA_DRIVER_CALLS(FIND)
#undef FIND
#define FIND(name, symbol, parameters) Find(library, #symbol, &nccl.name);
        NCCL_CALLS(FIND)
        NCCL_TEXTS(FIND)
#undef FIND
    }
    void Start(int device) {
        CHECK(!cu.init(0) && !cu.primary_retain(&context, device) && !cu.context_push(context));
        CHECK(!cu.stream_create(&stream, CU_STREAM_NON_BLOCKING));
        if (!rank) {
            CHECK(!nccl.get_unique_id(&shared->id));
            shared->made = 1;
        }
        while (!shared->made) usleep(100);
        NcclConfig config = {sizeof config,  NCCL_CONFIG_MAGIC, NCCL_CONFIG_VERSION, 0,
                             NCCL_UNDEFINED, NCCL_UNDEFINED,    NCCL_UNDEFINED,      nullptr};
        CHECK(nccl.comm_init(&comm, ranks, shared->id, rank, &config) == NCCL_IN_PROGRESS);
    }
    int Poll() { // until it is no more in progress
        NcclResult state = NCCL_IN_PROGRESS;
        while (state == NCCL_IN_PROGRESS) {
            CHECK(!nccl.get_async_error(comm, &state));
            usleep(100);
        }
        return state;
    }
    void Finish() {
        CHECK(nccl.comm_finalize(comm) == NCCL_IN_PROGRESS && Poll() == NCCL_OK && !nccl.comm_destroy(comm));
        CHECK(!cu.stream_destroy(stream) && !cu.primary_release(0 + rank));
    }
    void Meet() {
        const int all = shared->step.load() / ranks * ranks + ranks;
        for (shared->step++; shared->step < all;) usleep(100);
    }
    CuPointer Put(const std::vector<unsigned char> &bytes) {
        CuPointer p = 0;
        CHECK(!cu.mem_alloc(&p, bytes.size()) && !cu.copy_in(p, bytes.data(), bytes.size(), stream));
        return p;
    }
    std::vector<unsigned char> Get(CuPointer p, size_t bytes) {
        std::vector<unsigned char> out(bytes);
        CHECK(!cu.copy_out(out.data(), p, bytes, stream) && !cu.stream_sync(stream));
        return out;
    }
};

// All of |ranks| processes end well.
void OnRanks(int ranks, const std::function<void(Rank &)> &body, const char *faults = "") {
    auto *shared =
        static_cast<Shared *>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(shared, MAP_FAILED);
    std::vector<pid_t> children;
    for (int r = 0; r < ranks; r++) {
        pid_t child = fork();
        if (child) {
            children.push_back(child);
            continue;
        }
        alarm(60);
        setenv("FAKECUDA_DEVICES", "8", 1);
        setenv("FAKECUDA_NCCL", faults, 1);
        Rank rank{r, ranks, shared};
        rank.Load();
        body(rank);
        _exit(0);
    }
    for (pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
    }
    munmap(shared, sizeof *shared);
}

void *At(CuPointer p) { return reinterpret_cast<void *>(static_cast<uintptr_t>(p)); }

// ---- values ----

// Element i of what rank r brings: sums of halves are rounded.
float Value(int r, size_t i) { return static_cast<float>((i * 7 + static_cast<size_t>(r) * 1013) % 2039) / 8 + 300; }

std::vector<unsigned char> Brought(int type, int r, size_t from, size_t count) {
    const size_t size = type == NCCL_FLOAT64 ? 8 : type == NCCL_FLOAT32 ? 4 : 2;
    std::vector<unsigned char> out(count * size);
    for (size_t i = 0; i < count; i++) {
        const float v = Value(r, from + i);
        const double wide = v;
        const uint16_t half = type == NCCL_FLOAT16 ? amp_f32_to_f16(v) : amp_f32_to_bf16(v);
        memcpy(&out[i * size],
               size == 8   ? static_cast<const void *>(&wide)
               : size == 4 ? static_cast<const void *>(&v)
                           : &half,
               size);
    }
    return out;
}

double Number(int type, const unsigned char *at) {
    double d;
    float f;
    uint16_t h;
    if (type == NCCL_FLOAT64) return memcpy(&d, at, 8), d;
    if (type == NCCL_FLOAT32) return memcpy(&f, at, 4), f;
    memcpy(&h, at, 2);
    return type == NCCL_FLOAT16 ? amp_f16_to_f32(h) : amp_bf16_to_f32(h);
}

// From the first rank to the last, rounded to the type at each.
double Sum(int type, int ranks, size_t i) {
    double sum = 0;
    for (int r = 0; r < ranks; r++) {
        const auto round = type == NCCL_FLOAT16 ? amp_round_f16 : amp_round_bf16;
        if (type == NCCL_FLOAT64) sum += Value(r, i);
        else if (type == NCCL_FLOAT32) sum = static_cast<float>(sum) + Value(r, i);
        else sum = round(static_cast<float>(sum) + round(Value(r, i)));
    }
    return sum;
}

class Values : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Values, testing::Values(1, 2, 3, 5));

// Sums of every type, of less than a piece and of several; in place, as the product asks.
TEST_P(Values, SumsAndParts) {
    OnRanks(GetParam(), [](Rank &self) {
        const int rank = self.rank, ranks = self.ranks;
        NcclApi &nccl = self.nccl;
        self.Start(rank);
        CHECK(self.Poll() == NCCL_OK);
        for (int type : {NCCL_FLOAT32, NCCL_FLOAT64, NCCL_FLOAT16, NCCL_BFLOAT16})
            for (size_t count : {size_t{1}, size_t{1000}, size_t{700000}}) {
                const auto mine = Brought(type, rank, 0, count);
                const size_t size = mine.size() / count;
                CuPointer p = self.Put(mine);
                CHECK(nccl.all_reduce(At(p), At(p), count, type, NCCL_SUM, self.comm, self.stream) == NCCL_IN_PROGRESS);
                CHECK(self.Poll() == NCCL_OK);
                const auto got = self.Get(p, mine.size());
                for (size_t i = 0; i < count; i++) CHECK(Number(type, &got[i * size]) == Sum(type, ranks, i));
                CHECK(!self.cu.mem_free(p));
            }
        const size_t part = 300001, all = part * static_cast<size_t>(ranks);
        CuPointer p = self.Put(Brought(NCCL_FLOAT32, rank, 0, all));
        const CuPointer own = p + part * 4 * static_cast<size_t>(rank);
        CHECK(nccl.group_start() == NCCL_OK);
        CHECK(nccl.reduce_scatter(At(p), At(own), part, NCCL_FLOAT32, NCCL_SUM, self.comm, self.stream) == NCCL_OK);
        CHECK(nccl.all_gather(At(own), At(p), part * 4, NCCL_UINT8, self.comm, self.stream) == NCCL_OK);
        CHECK(nccl.group_end() == NCCL_IN_PROGRESS && self.Poll() == NCCL_OK);
        auto got = self.Get(p, all * 4);
        for (size_t i = 0; i < all; i++) CHECK(Number(NCCL_FLOAT32, &got[i * 4]) == Sum(NCCL_FLOAT32, ranks, i));
        CHECK(!self.cu.copy_in(p, Brought(NCCL_FLOAT32, rank, 5, all).data(), all * 4, self.stream));
        CHECK(nccl.broadcast(At(p), At(p), all * 4, NCCL_UINT8, ranks - 1, self.comm, self.stream) == NCCL_IN_PROGRESS);
        CHECK(self.Poll() == NCCL_OK);
        got = self.Get(p, all * 4);
        CHECK(got == Brought(NCCL_FLOAT32, ranks - 1, 5, all));
        CHECK(!self.cu.mem_free(p));
        self.Finish();
    });
}

// ---- order ----

// It is in its stream once it was polled for, and then the stream waits for the other rank, but no host does.
TEST(Order, StreamsWaitAndHostsDoNot) {
    OnRanks(2, [](Rank &self) {
        const int rank = self.rank;
        NcclApi &nccl = self.nccl;
        CuEvent early, late;
        self.Start(rank);
        CHECK(self.Poll() == NCCL_OK);
        CHECK(!self.cu.event_create(&early, 0) && !self.cu.event_create(&late, 0));
        CuPointer p = self.Put(Brought(NCCL_FLOAT32, rank, 0, 10));
        if (rank) {
            self.Meet(); // rank 0 has looked
            CHECK(nccl.all_reduce(At(p), At(p), 10, NCCL_FLOAT32, NCCL_SUM, self.comm, self.stream) ==
                  NCCL_IN_PROGRESS);
            CHECK(self.Poll() == NCCL_OK && !self.cu.stream_sync(self.stream));
        } else {
            CHECK(nccl.all_reduce(At(p), At(p), 10, NCCL_FLOAT32, NCCL_SUM, self.comm, self.stream) ==
                  NCCL_IN_PROGRESS);
            CHECK(!self.cu.event_record(early, self.stream) && !self.cu.event_sync(early)); // goes past it
            CHECK(self.Poll() == NCCL_OK && !self.cu.event_record(late, self.stream));
            for (int k = 0; k < 1000; k++) CHECK(self.cu.event_query(late) == CU_NOT_READY);
            self.Meet();
            CHECK(!self.cu.event_sync(late));
        }
        const auto got = self.Get(p, 40);
        for (size_t i = 0; i < 10; i++) CHECK(Number(NCCL_FLOAT32, &got[i * 4]) == Sum(NCCL_FLOAT32, 2, i));
        char *text = nullptr;
        int (*report)(char **) = nullptr;
        Rank::Find(self.driver, "fakecuda_report_json", &report);
        report(&text);
        CHECK(strstr(text, "\"ncclAllReduce\":{\"calls\":1,\"bytes\":40,\"early\":0,\"captured\":0}"));
    });
}

// On a stream that waits for a part of a graph they come before its end, and after what they wait for.
TEST(Order, BesideAGraph) {
    OnRanks(2, [](Rank &self) {
        const int rank = self.rank;
        NcclApi &nccl = self.nccl;
        CudaDriver &cu = self.cu;
        CuEvent e;
        CuStream own;
        CuGraph graph;
        CuGraphExec exec;
        self.Start(rank);
        CHECK(self.Poll() == NCCL_OK);
        CuPointer p = self.Put(std::vector<unsigned char>(4)), q = self.Put(std::vector<unsigned char>(4));
        CHECK(!cu.event_create(&e, CU_EVENT_DISABLE_TIMING) && !cu.stream_create(&own, CU_STREAM_NON_BLOCKING));
        CHECK(!cu.stream_sync(self.stream) && !cu.capture_begin(self.stream, CU_CAPTURE_THREAD_LOCAL));
        CHECK(!cu.fill32(p, 0x3f800000, 1, self.stream)); // 1.0f
        CHECK(!cu.event_record_flags(e, self.stream, CU_EVENT_RECORD_EXTERNAL));
        for (int i = 0; i < 100; i++) CHECK(!cu.fill32(q, 7, 1, self.stream));
        CHECK(!cu.capture_end(self.stream, &graph) && !cu.graph_instantiate(&exec, graph, 0));
        CHECK(!cu.graph_launch(exec, self.stream) && !cu.stream_wait(own, e, 0));
        CHECK(nccl.all_reduce(At(p), At(p), 1, NCCL_FLOAT32, NCCL_SUM, self.comm, own) == NCCL_IN_PROGRESS);
        CHECK(self.Poll() == NCCL_OK && !cu.event_record(e, own) && !cu.stream_wait(self.stream, e, 0));
        const auto got = self.Get(p, 4);
        CHECK(Number(NCCL_FLOAT32, got.data()) == 2);
        CHECK(nccl.all_reduce(At(p), At(p), 1, NCCL_FLOAT32, NCCL_SUM, self.comm, self.stream) == NCCL_IN_PROGRESS);
        CHECK(self.Poll() == NCCL_OK && !cu.stream_sync(self.stream));
        char *text = nullptr;
        int (*report)(char **) = nullptr;
        Rank::Find(self.driver, "fakecuda_report_json", &report);
        report(&text);
        CHECK(strstr(text, "\"ncclAllReduce\":{\"calls\":2,\"bytes\":8,\"early\":1,\"captured\":0}"));
    });
}

// In a capture they are made by each launch, whose other nodes wait for them; and the graph has to go before the
// communicator.
TEST(Order, InsideAGraph) {
    OnRanks(3, [](Rank &self) {
        const int rank = self.rank;
        NcclApi &nccl = self.nccl;
        CudaDriver &cu = self.cu;
        CuGraph graph;
        CuGraphExec exec;
        self.Start(rank);
        CHECK(self.Poll() == NCCL_OK);
        CuPointer in = self.Put(std::vector<unsigned char>(4)), sum = self.Put(std::vector<unsigned char>(4)),
                  out = self.Put(std::vector<unsigned char>(4));
        CHECK(!cu.stream_sync(self.stream) && !cu.capture_begin(self.stream, CU_CAPTURE_THREAD_LOCAL));
        for (int i = 0; i < 2; i++) { // then 3 x the sum: a place that is also added up
            CHECK(nccl.all_reduce(At(i ? sum : in), At(sum), 1, NCCL_FLOAT32, NCCL_SUM, self.comm, self.stream) ==
                  NCCL_IN_PROGRESS);
            CHECK(self.Poll() == NCCL_OK);
        }
        CHECK(!cu.copy(out, sum, 4, self.stream));
        CHECK(!cu.capture_end(self.stream, &graph) && !cu.graph_instantiate(&exec, graph, 0));
        CHECK(!cu.graph_destroy(graph));
        for (int step = 0; step < 4; step++) {
            const float mine = static_cast<float>(step + rank);
            CHECK(!cu.copy_in(in, &mine, 4, self.stream));
            if (rank == step % 3) usleep(3000);
            CHECK(!cu.graph_launch(exec, self.stream));
            const auto got = self.Get(out, 4);
            CHECK(Number(NCCL_FLOAT32, got.data()) == 9 * step + 9);
        }
        char *text = nullptr;
        int (*report)(char **) = nullptr;
        Rank::Find(self.driver, "fakecuda_report_json", &report);
        report(&text);
        CHECK(strstr(text, "\"ncclAllReduce\":{\"calls\":2,\"bytes\":8,\"early\":0,\"captured\":2}"));
        CHECK(!strstr(text, "graphs hold collectives"));
        if (rank) CHECK(!cu.graph_exec_destroy(exec));
        CHECK(nccl.comm_finalize(self.comm) == NCCL_IN_PROGRESS);
        report(&text);
        CHECK(!strstr(text, "ncclCommFinalize while graphs hold collectives") == (rank > 0));
    });
}

// ---- failures ----

TEST(Failures, AbortEndsWhatWaitsForNobody) {
    OnRanks(2, [](Rank &self) {
        const int rank = self.rank;
        NcclApi &nccl = self.nccl;
        self.Start(rank);
        CHECK(self.Poll() == NCCL_OK);
        CuPointer p = self.Put(Brought(NCCL_FLOAT32, rank, 0, 10));
        if (!rank) {
            CHECK(nccl.all_reduce(At(p), At(p), 10, NCCL_FLOAT32, NCCL_SUM, self.comm, self.stream) ==
                  NCCL_IN_PROGRESS);
            CHECK(self.Poll() == NCCL_OK);
        }
        CHECK(nccl.comm_abort(self.comm) == NCCL_OK);
        const auto got = self.Get(p, 40);
        CHECK((got == Brought(NCCL_FLOAT32, rank, 0, 10)) == (rank == 1)); // nothing of use is left
    });
}

// What NCCL would hang in, or mix up.
TEST(Failures, RanksThatDifferAreToldApart) {
    for (const char *fault : {"count:1:1", "order:1:1"})
        OnRanks(
            2,
            [](Rank &self) {
                const int rank = self.rank;
                NcclApi &nccl = self.nccl;
                NcclResult state = NCCL_OK;
                self.Start(rank);
                CHECK(self.Poll() == NCCL_OK);
                CuPointer p = self.Put(Brought(NCCL_FLOAT32, rank, 0, 10));
                CHECK(nccl.all_reduce(At(p), At(p), 10, NCCL_FLOAT32, NCCL_SUM, self.comm, self.stream) ==
                      NCCL_IN_PROGRESS);
                (void)self.Poll();
                while (!state) CHECK(!nccl.get_async_error(self.comm, &state) && self.cu.stream_query(self.stream));
                CHECK(state == NCCL_INVALID_USAGE && strstr(nccl.get_last_error(nullptr), "rank 1 is in collective"));
                CHECK(nccl.comm_abort(self.comm) == NCCL_OK && !self.cu.stream_sync(self.stream));
            },
            fault);
}

TEST(Failures, OneDeviceIsForOneRank) {
    OnRanks(2, [](Rank &self) {
        const int rank = self.rank;
        NcclApi &nccl = self.nccl;
        self.Start(0);
        CHECK(self.Poll() == NCCL_INVALID_USAGE && strstr(nccl.get_last_error(nullptr), "Duplicate GPU detected"));
        CHECK(nccl.comm_abort(self.comm) == NCCL_OK);
    });
}

TEST(Failures, CallsAreRefused) {
    OnRanks(1, [](Rank &self) {
        const int rank = self.rank;
        NcclApi &nccl = self.nccl;
        float host[4] = {};
        self.Start(0);
        CHECK(nccl.all_reduce(host, host, 4, NCCL_FLOAT32, NCCL_SUM, self.comm, self.stream) == NCCL_INVALID_ARGUMENT);
        CHECK(self.Poll() == NCCL_OK);
        CHECK(nccl.all_reduce(host, host, 4, NCCL_FLOAT32, 1, self.comm, self.stream) == NCCL_INVALID_ARGUMENT);
        CHECK(nccl.all_reduce(host, host, 4, 11, NCCL_SUM, self.comm, self.stream) == NCCL_INVALID_ARGUMENT);
        CHECK(nccl.group_end() == NCCL_INVALID_USAGE);
        CHECK(!self.cu.capture_begin(self.stream, CU_CAPTURE_THREAD_LOCAL));
        CHECK(self.cu.stream_sync(self.stream)); // which ends the capture
        CHECK(nccl.all_reduce(host, host, 4, NCCL_FLOAT32, NCCL_SUM, self.comm, self.stream) == NCCL_IN_PROGRESS);
        CHECK(self.Poll() == NCCL_UNHANDLED_CUDA_ERROR);
        CuGraph graph = nullptr;
        CHECK(self.cu.capture_end(self.stream, &graph));
        CHECK(nccl.all_reduce(host, host, 4, NCCL_FLOAT32, NCCL_SUM, self.comm, self.stream) == NCCL_IN_PROGRESS);
        CHECK(self.Poll() == NCCL_OK && self.cu.stream_sync(self.stream) == CU_ILLEGAL_ADDRESS);
    });
    OnRanks(
        1,
        [](Rank &self) {
            const int rank = self.rank;
            NcclApi &nccl = self.nccl;
            int version = 0;
            CHECK(nccl.get_version(&version) == NCCL_SYSTEM_ERROR);
            CHECK(strstr(nccl.get_last_error(nullptr), "FAKECUDA_NCCL: late:x:1: no fault that is known"));
        },
        "late:x:1");
    OnRanks(
        1,
        [](Rank &self) {
            const int rank = self.rank;
            NcclApi &nccl = self.nccl;
            int version = 0;
            CHECK(nccl.get_version(&version) == NCCL_OK && nccl.get_version(&version) == NCCL_SYSTEM_ERROR);
            CHECK(nccl.get_version(&version) == NCCL_OK && version == 22809);
        },
        "fail:ncclGetVersion:2");
}

} // namespace
