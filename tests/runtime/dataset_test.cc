// amp_dataset: batches in order, whatever the thread is ahead by; the callback's errors; an end that waits for nothing
// but the callback; fork.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/base/failing_allocator.h"
#include "tests/base/sanitizer.h"
#include "tests/runtime/tiny.h"

namespace {

enum { CAPACITY = 8 };

// Batch i has CAPACITY - i % 3 samples, whose numbers are all i; there are |batches|.
struct Source {
    int64_t batches = INT64_MAX;
    int64_t fails_at = -1;
    amp_status status = AMP_IO;
    const char *text = "the tape is torn";
    std::atomic<int> calls{0};
    std::atomic<int> most_threads{0}, inside{0};
    std::vector<int64_t> asked;
    std::thread::id thread;
    std::chrono::milliseconds takes{0};

    static amp_status Fill(void *user, int64_t index, void *const *arrays, amp_sizes room, amp_sizes *sizes,
                           amp_error *err) {
        const int64_t capacity = room.n;
        Source &s = *static_cast<Source *>(user);
        if (++s.inside > 1) s.most_threads++;
        s.thread = std::this_thread::get_id();
        s.asked.push_back(index);
        s.calls++;
        if (s.takes.count()) std::this_thread::sleep_for(s.takes);
        EXPECT_EQ(sizes->n, capacity);
        s.inside--;
        if (index == s.fails_at) {
            snprintf(err->message, sizeof err->message, "%s", s.text);
            return s.status;
        }
        sizes->n = index < s.batches ? capacity - index % 3 : 0;
        float *x = static_cast<float *>(arrays[0]);
        int32_t *targets = static_cast<int32_t *>(arrays[1]);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(x) % 64, 0u);
        for (int64_t i = 0; i < capacity * TINY_FEATURES; i++) x[i] = static_cast<float>(index);
        for (int64_t i = 0; i < capacity; i++) targets[i] = static_cast<int32_t>(index % TINY_CLASSES);
        return AMP_OK;
    }
};

amp_dataset_options Options(Source *source, int32_t ahead) {
    amp_dataset_options o = {};
    o.struct_size = sizeof o;
    o.fill = Source::Fill;
    o.user = source;
    o.capacity.n = CAPACITY;
    o.ahead = ahead;
    return o;
}

class Dataset : public testing::TestWithParam<int32_t> {
  protected:
    void TearDown() override { amp_dataset_release(dataset); }
    void Open(int64_t first = 0) {
        amp_dataset_options o = Options(&source, GetParam());
        o.first = first;
        ASSERT_EQ(amp_dataset_create(tiny.model, &o, &dataset, &err), AMP_OK) << err.message;
    }
    // The next batch is |index|.
    void ExpectNext(int64_t index) {
        EXPECT_EQ(amp_dataset_position(dataset), index);
        ASSERT_EQ(amp_dataset_next(dataset, &inputs, &sizes, &err), AMP_OK) << err.message;
        ASSERT_EQ(sizes.n, CAPACITY - index % 3);
        const float *x = static_cast<const float *>(inputs[0]);
        for (int64_t i = 0; i < CAPACITY * TINY_FEATURES; i++) ASSERT_EQ(x[i], static_cast<float>(index));
        ASSERT_EQ(static_cast<const int32_t *>(inputs[1])[0], index % TINY_CLASSES);
    }

    Tiny tiny{TinyOptions(CAPACITY)};
    Source source; // outlives the dataset
    amp_dataset *dataset = nullptr;
    amp_error err = {};
    const void *const *inputs = nullptr;
    amp_sizes sizes = {};
};

TEST_P(Dataset, BatchesComeInOrder) {
    Open(5);
    for (int64_t i = 5; i < 200; i++) ExpectNext(i);
    EXPECT_EQ(source.most_threads, 0);
    EXPECT_EQ(source.thread == std::this_thread::get_id(), GetParam() == -1);
    amp_dataset_release(dataset);
    dataset = nullptr;
    for (size_t i = 0; i < source.asked.size(); i++) EXPECT_EQ(source.asked[i], static_cast<int64_t>(5 + i));
    const int ahead = GetParam() < 0 ? 0 : GetParam() ? GetParam() : 2;
    EXPECT_LE(source.calls, 195 + ahead);
}

// While the caller holds a batch, the thread fills |ahead| others, and no more.
TEST_P(Dataset, TheQueueIsBounded) {
    const int ahead = GetParam() < 0 ? 0 : GetParam() ? GetParam() : 2;
    Open();
    ExpectNext(0);
    for (int i = 0; i < 2000 && source.calls < 1 + ahead; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(source.calls, 1 + ahead);
    for (int64_t i = 0; i < CAPACITY; i++) EXPECT_EQ(static_cast<const int32_t *>(inputs[1])[i], 0) << "still batch 0";
}

TEST_P(Dataset, ModelsTrainOnThem) {
    Open();
    for (int i = 0; i < 20; i++) {
        ASSERT_EQ(amp_dataset_next(dataset, &inputs, &sizes, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_step(tiny.session, inputs, sizes, nullptr, &err), AMP_OK) << err.message;
    }
}

TEST_P(Dataset, TheEnd) {
    source.batches = 3;
    Open();
    for (int64_t i = 0; i < 3; i++) ExpectNext(i);
    for (int again = 0; again < 3; again++) {
        ASSERT_EQ(amp_dataset_next(dataset, &inputs, &sizes, &err), AMP_OK) << err.message;
        EXPECT_EQ(sizes.n, 0);
        EXPECT_EQ(inputs, nullptr);
        EXPECT_EQ(amp_dataset_position(dataset), 3);
    }
    ASSERT_EQ(amp_dataset_seek(dataset, 1, &err), AMP_OK);
    ExpectNext(1);
    EXPECT_EQ(amp_dataset_seek(dataset, -1, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "batch -1: they are counted from 0");
    ExpectNext(2);
}

// Batches before a failure are given first; then its text, again and again; then the batch itself, once it can be had.
TEST_P(Dataset, ErrorsAreTheCallbacks) {
    source.fails_at = 2;
    Open();
    for (int64_t i = 0; i < 2; i++) ExpectNext(i);
    for (int again = 0; again < 2; again++) {
        EXPECT_EQ(amp_dataset_next(dataset, &inputs, &sizes, &err), AMP_IO);
        EXPECT_STREQ(err.message, "batch 2: the tape is torn");
        EXPECT_EQ(inputs, nullptr);
        EXPECT_EQ(sizes.n, 0);
        EXPECT_EQ(amp_dataset_position(dataset), 2);
    }
    source.text = "";
    EXPECT_EQ(amp_dataset_next(dataset, &inputs, &sizes, &err), AMP_IO);
    EXPECT_STREQ(err.message, "batch 2: the callback gave no reason");
    source.status = static_cast<amp_status>(-7);
    EXPECT_EQ(amp_dataset_next(dataset, &inputs, &sizes, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "batch 2: the callback gave no reason (status -7, which amp_status does not have)");
    EXPECT_EQ(amp_dataset_next(dataset, &inputs, &sizes, nullptr), AMP_INVALID_ARGUMENT);
    source.fails_at = -1;
    for (int64_t i = 2; i < 6; i++) ExpectNext(i);
}

TEST_P(Dataset, CountsThatCannotBe) {
    for (const int64_t count : {int64_t{-1}, int64_t{CAPACITY + 1}, INT64_MAX}) {
        amp_dataset_options o = Options(&source, GetParam());
        o.user = const_cast<int64_t *>(&count);
        o.fill = [](void *user, int64_t, void *const *, amp_sizes, amp_sizes *sizes, amp_error *) {
            sizes->n = *static_cast<int64_t *>(user);
            return AMP_OK;
        };
        amp_dataset *wrong = nullptr;
        ASSERT_EQ(amp_dataset_create(tiny.model, &o, &wrong, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_dataset_next(wrong, &inputs, &sizes, &err), AMP_INVALID_ARGUMENT);
        EXPECT_EQ(std::string(err.message), "batch 0: the callback says that it has " + std::to_string(count) +
                                                " samples; there is room for 8 (capacity)");
        amp_dataset_release(wrong);
    }
}

// Released in all states: unused, full, in the middle of a fill.
TEST_P(Dataset, AnEndAtAnyTime) {
    source.takes = std::chrono::milliseconds(3);
    for (int batches = 0; batches < 4; batches++) {
        amp_dataset_options o = Options(&source, GetParam());
        amp_dataset *d = nullptr;
        ASSERT_EQ(amp_dataset_create(tiny.model, &o, &d, &err), AMP_OK);
        amp_dataset_retain(d);
        for (int i = 0; i < batches; i++) ASSERT_EQ(amp_dataset_next(d, &inputs, &sizes, &err), AMP_OK);
        amp_dataset_release(d);
        if (batches == 3) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        amp_dataset_release(d);
        EXPECT_EQ(source.inside, 0);
        const int calls = source.calls;
        if (batches == 2) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        EXPECT_EQ(source.calls, calls) << "nothing is called after the release";
    }
}

TEST_P(Dataset, TheModelsOwnInputsAlone) {
    amp_dataset_options o = Options(&source, GetParam());
    o.program = "infer";
    o.fill = [](void *, int64_t, void *const *arrays, amp_sizes capacity, amp_sizes *, amp_error *) {
        memset(arrays[0], 0, sizeof(float) * TINY_FEATURES * static_cast<size_t>(capacity.n));
        return AMP_OK;
    };
    ASSERT_EQ(amp_dataset_create(tiny.model, &o, &dataset, &err), AMP_OK) << err.message;
    ASSERT_EQ(amp_dataset_next(dataset, &inputs, &sizes, &err), AMP_OK) << err.message;
    std::vector<float> logits(CAPACITY * TINY_CLASSES);
    void *outputs[] = {logits.data()};
    EXPECT_EQ(sizes.n, CAPACITY);
    EXPECT_EQ(amp_infer(tiny.session, inputs, sizes, outputs, &err), AMP_OK) << err.message;
}

// Signals go to the program's own threads.
TEST_P(Dataset, TheThreadBlocksSignals) {
    amp_dataset_options o = Options(&source, GetParam());
    static std::atomic<int> blocked{-1};
    o.fill = [](void *, int64_t, void *const *, amp_sizes, amp_sizes *, amp_error *) {
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        blocked = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGINT) && !sigismember(&mask, SIGSEGV);
        return AMP_OK;
    };
    ASSERT_EQ(amp_dataset_create(tiny.model, &o, &dataset, &err), AMP_OK);
    ASSERT_EQ(amp_dataset_next(dataset, &inputs, &sizes, &err), AMP_OK);
    EXPECT_EQ(blocked, GetParam() == -1 ? 0 : 1);
}

// Both processes go on, the child with a thread of its own.
TEST_P(Dataset, AForkedProcessGoesOn) {
    if (amp_test_thread_sanitizer) GTEST_SKIP() << "the sanitizer does not let a child start threads";
    Open();
    for (int64_t i = 0; i < 4; i++) ExpectNext(i);
    const int ahead = GetParam() < 0 ? 0 : GetParam() ? GetParam() : 2;
    while (source.calls < 4 + ahead) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(5)); // this source does not bear a fork in a fill
    const pid_t child = fork();
    for (int64_t i = 4; i < 40 && !HasFailure(); i++) ExpectNext(i);
    if (!child) {
        amp_dataset_release(dataset);
        _exit(HasFailure());
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_P(Dataset, AForkedProcessMayReleaseIt) {
    Open();
    ExpectNext(0);
    const pid_t child = fork();
    if (!child) {
        amp_dataset_release(dataset);
        _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    ExpectNext(1);
}

INSTANTIATE_TEST_SUITE_P(Ahead, Dataset, testing::Values(-1, 0, 1, 7));

double ProcessorSeconds() {
    rusage use = {};
    getrusage(RUSAGE_SELF, &use);
    return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

// Whoever waits sleeps: the thread for room, the caller for a slow source.
TEST(DatasetThread, NobodySpins) {
    Tiny tiny(TinyOptions(CAPACITY));
    Source source;
    source.takes = std::chrono::milliseconds(30);
    amp_dataset_options o = Options(&source, 2);
    amp_dataset *d = nullptr;
    const void *const *inputs;
    amp_sizes sizes;
    ASSERT_EQ(amp_dataset_create(tiny.model, &o, &d, &tiny.err), AMP_OK);
    const double before = ProcessorSeconds();
    for (int i = 0; i < 5; i++) ASSERT_EQ(amp_dataset_next(d, &inputs, &sizes, &tiny.err), AMP_OK);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_LT(ProcessorSeconds() - before, 0.15) << "of 0.45 s or more that passed";
    amp_dataset_release(d);
}

TEST(DatasetOptions, AreChecked) {
    Tiny tiny(TinyOptions(CAPACITY));
    Source source;
    amp_dataset *d = reinterpret_cast<amp_dataset *>(1);
    const auto refused = [&](amp_dataset_options o, const std::string &text) {
        d = reinterpret_cast<amp_dataset *>(1);
        EXPECT_EQ(amp_dataset_create(tiny.model, &o, &d, &tiny.err), AMP_INVALID_ARGUMENT);
        EXPECT_EQ(d, nullptr);
        EXPECT_NE(std::string(tiny.err.message).find(text), std::string::npos) << tiny.err.message;
    };
    amp_dataset_options o = Options(&source, 0);
    o.fill = nullptr;
    refused(o, "the function fill in it, is NULL");
    o = Options(&source, -2);
    refused(o, "ahead is -2; it must be from 1 to 1024, 0 (2) or -1 (none)");
    o = Options(&source, 0);
    o.capacity.n = -1;
    refused(o, "capacity is -1");
    o = Options(&source, 0);
    o.first = -3;
    refused(o, "first is -3; batches are counted from 0");
    o = Options(&source, 0);
    o.program = "train";
    refused(o, "program train: must be NULL (all of them) or infer");
    o = Options(&source, 0);
    o.capacity.t = 1;
    refused(o, "amp_dataset_options: capacity: t is 1, but tiny has no size T; set it to 0");
    o = Options(&source, 0);
    o.struct_size = 0;
    refused(o, "struct_size");
}

TEST(DatasetMemory, EveryFailureUnwinds) {
    for (int allowed = 0;; allowed++) {
        FailingAllocator failing;
        amp_allocator allocator = failing.get();
        Tiny tiny(TinyOptions(CAPACITY), &allocator);
        Source source;
        amp_dataset_options o = Options(&source, 3);
        amp_dataset *d = nullptr;
        failing.fail_after(allowed);
        const amp_status status = amp_dataset_create(tiny.model, &o, &d, &tiny.err);
        failing.fail_after(-1);
        amp_dataset_release(d);
        if (!status) break;
        ASSERT_EQ(status, AMP_OUT_OF_MEMORY);
        ASSERT_EQ(d, nullptr);
        ASSERT_LT(allowed, 100);
    }
}

} // namespace
