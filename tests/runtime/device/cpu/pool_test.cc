// The pool: every task of every run is done once, runs are in order, sleepers are woken, and no thread waits for a
// thread that holds no task.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <set>
#include <vector>

#include "tests/base/failing_allocator.h"
#include "tests/base/sanitizer.h"
#include "tests/runtime/runtime_c.h"

namespace {

class Pool : public ::testing::TestWithParam<int> {
  protected:
    void SetUp() override {
        amp_error err = {};
        amp_allocator a = allocator_.get();
        ASSERT_EQ(amp_pool_create(GetParam(), &a, &pool, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_pool_threads(pool), GetParam());
    }
    void TearDown() override { amp_pool_destroy(pool); }

    // A call of one run.
    void Call(amp_pool_task task, void *ctx, int64_t count, int threads = 0) {
        amp_error err = {};
        ASSERT_EQ(amp_pool_begin(pool, threads ? threads : GetParam(), &err), AMP_OK) << err.message;
        amp_pool_run(pool, task, ctx, count);
        amp_pool_end(pool);
    }

    FailingAllocator allocator_;
    amp_pool *pool = nullptr;
};

struct Rounds {
    std::vector<int> values; // plain: only the order of runs protects them
    std::vector<int> wrong;
    int round;
};

void Increment(void *ctx, int64_t i, int32_t) {
    Rounds *r = (Rounds *)ctx;
    r->values[i]++;
}

// Each task reads what all tasks of the run before wrote.
void Compare(void *ctx, int64_t i, int32_t) {
    Rounds *r = (Rounds *)ctx;
    for (int value : r->values) r->wrong[i] += value != r->round + 1;
}

TEST_P(Pool, RunsFollowEachOther) {
    Rounds r = {std::vector<int>(13), std::vector<int>(13), 0};
    amp_error err = {};
    int calls = GetParam() <= 2 ? 200 : 20;
    for (int call = 0; call < calls; call++) {
        ASSERT_EQ(amp_pool_begin(pool, GetParam(), &err), AMP_OK) << err.message;
        for (int i = 0; i < 20; i++, r.round++) {
            amp_pool_run(pool, Increment, &r, 13);
            amp_pool_run(pool, Compare, &r, 13);
        }
        amp_pool_end(pool);
    }
    for (int wrong : r.wrong) EXPECT_EQ(wrong, 0);
    for (int value : r.values) EXPECT_EQ(value, calls * 20);
}

void Count(void *ctx, int64_t i, int32_t) { (*(std::vector<int> *)ctx)[i]++; }

TEST_P(Pool, ManyShortCallsRunEachTaskOnce) {
    for (int call = 0; call < (GetParam() <= 2 ? 2000 : 100); call++) {
        std::vector<int> done(call % 38);
        Call(Count, &done, done.size(), call % 5 == 4 ? 1 : 0);
        for (int d : done) ASSERT_EQ(d, 1);
    }
}

// Long enough for workers to fall asleep on the futex between calls.
TEST_P(Pool, WakesSleepers) {
    for (int call = 0; call < 12; call++) {
        std::vector<int> done(9);
        usleep(call % 3 == 0 ? 15000 : 4000);
        Call(Count, &done, 9);
        for (int d : done) ASSERT_EQ(d, 1);
    }
}

// Tasks so long that every thread comes to take one, and that whoever has none sleeps meanwhile.
void Sleep(void *ctx, int64_t i, int32_t thread) {
    usleep(4000);
    (*(std::vector<int> *)ctx)[i] = thread;
}

TEST_P(Pool, EveryThreadTakesPart) {
    std::vector<int> by(GetParam() + 1);
    std::set<int> seen;
    for (int tries = 0; (int)seen.size() < GetParam() && tries < 500; tries++) {
        Call(Sleep, &by, by.size());
        seen.insert(by.begin(), by.end());
    }
    EXPECT_EQ((int)seen.size(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Threads, Pool, ::testing::Values(1, 2, 3, 8));

// ---- two threads ----------------------------------------------------------------------------------------------------

class TwoThreads : public Pool {
  protected:
    // Runs |task| until the worker has done one.
    void OnWorker(void (*task)(void *, int64_t, int32_t), std::atomic_int *reached, void *ctx) {
        for (int tries = 0; !*reached && tries < 1000; tries++) Call(task, ctx, 2);
        ASSERT_TRUE(*reached);
    }
};
INSTANTIATE_TEST_SUITE_P(Two, TwoThreads, ::testing::Values(2));

double Now(clockid_t clock = CLOCK_MONOTONIC) {
    timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

struct Found {
    std::atomic_int reached{0};
    pid_t thread = 0;
    sigset_t blocked;
};

void FindWorker(void *ctx, int64_t, int32_t thread) {
    usleep(2000);
    if (!thread) return;
    Found *f = (Found *)ctx;
    f->thread = (pid_t)syscall(SYS_gettid);
    pthread_sigmask(SIG_SETMASK, nullptr, &f->blocked);
    f->reached = 1;
}

std::atomic_int held;

// What stops the worker here is what the system does when another process has the processor.
void Hold(int) {
    held = 1;
    timespec half = {0, 500000000};
    nanosleep(&half, nullptr);
    held = 0;
}

TEST_P(TwoThreads, DoNotWaitForAWorkerThatIsNotRunning) {
    if (amp_test_address_sanitizer || amp_test_thread_sanitizer)
        GTEST_SKIP() << "a handler that sleeps is not for sanitizers";
    struct sigaction hold = {}, before;
    hold.sa_handler = Hold;
    sigaction(SIGTRAP, &hold, &before);
    Found f;
    OnWorker(FindWorker, &f.reached, &f);
    held = 0;
    syscall(SYS_tgkill, getpid(), f.thread, SIGTRAP);
    while (!held) usleep(100);
    std::vector<int> done(20);
    int calls = 0;
    for (; held && calls < 100; calls++) Call(Count, &done, 20);
    EXPECT_EQ(calls, 100) << "the worker was waited for";
    while (held) usleep(1000);
    for (int d : done) EXPECT_EQ(d, 100);
    sigaction(SIGTRAP, &before, nullptr);
}

TEST_P(TwoThreads, WorkersLeaveSignalsToTheProgram) {
    Found f;
    OnWorker(FindWorker, &f.reached, &f);
    for (int s : {SIGUSR1, SIGTERM, SIGINT, SIGALRM, SIGCHLD}) EXPECT_TRUE(sigismember(&f.blocked, s)) << s;
    for (int s : {SIGSEGV, SIGBUS, SIGFPE}) EXPECT_FALSE(sigismember(&f.blocked, s)) << s;
    sigset_t mine;
    pthread_sigmask(SIG_SETMASK, nullptr, &mine);
    EXPECT_FALSE(sigismember(&mine, SIGUSR1));
}

// A worker that span for 2 ms after each call would take 200 ms.
TEST_P(TwoThreads, SleepBetweenCallsThatAreFarApart) {
    std::vector<int> done(8);
    double start = Now(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < 100; i++) {
        usleep(2000);
        Call(Count, &done, 8);
    }
    EXPECT_LT(Now(CLOCK_PROCESS_CPUTIME_ID) - start, 0.1);
    EXPECT_EQ(done[0], 100);
}

// In the child there is the thread that forked, and no worker.
TEST_P(TwoThreads, StartAgainInAForkedChild) {
    if (amp_test_address_sanitizer || amp_test_thread_sanitizer)
        GTEST_SKIP() << "sanitizers have no threads after fork";
    std::vector<int> done(50);
    for (int i = 0; i < 10; i++) Call(Count, &done, 50);
    usleep(5000);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        Found f;
        OnWorker(FindWorker, &f.reached, &f);
        for (int i = 0; i < 10; i++) Call(Count, &done, 50);
        bool good = f.reached == 1;
        for (int d : done) good = good && d == 20;
        amp_pool_destroy(pool);
        _exit(good ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    Call(Count, &done, 50);
    EXPECT_EQ(done[0], 11);
}

// Nor is there a thread to wait for when the pool goes.
TEST_P(TwoThreads, AreFreedInAForkedChild) {
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        amp_pool_destroy(pool);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST_P(TwoThreads, RefuseAForkInTheMiddleOfACall) {
    amp_error err = {};
    ASSERT_EQ(amp_pool_begin(pool, 2, &err), AMP_OK);
    pid_t child = fork();
    if (child == 0) _exit(amp_pool_begin(pool, 2, &err) == AMP_WRONG_STATE ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    amp_pool_end(pool);
}

TEST(PoolCreate, ZeroThreadsMeansOnePerProcessor) {
    amp_pool *pool;
    amp_error err = {};
    amp_allocator a = {};
    ASSERT_EQ(amp_pool_create(0, &a, &pool, &err), AMP_OK) << err.message;
    EXPECT_GE(amp_pool_threads(pool), 1);
    EXPECT_GT(amp_pool_bytes(pool), 0u);
    amp_pool_destroy(pool);
    amp_pool_destroy(nullptr);
}

TEST(PoolCreate, RunsOutOfMemoryCleanly) {
    for (int fail = 0; fail < 2; fail++) {
        FailingAllocator failing(fail);
        amp_allocator a = failing.get();
        amp_pool *pool;
        amp_error err = {};
        EXPECT_EQ(amp_pool_create(3, &a, &pool, &err), AMP_OUT_OF_MEMORY);
        EXPECT_EQ(pool, nullptr);
    }
}

} // namespace
