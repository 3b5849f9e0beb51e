// The pool: every thread runs every job, barriers separate what they should, nobody sleeps through a job.
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "tests/base/failing_allocator.h"
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

    FailingAllocator allocator_;
    amp_pool *pool = nullptr;
};

struct Sum {
    amp_pool *pool;
    int threads, barriers;
    std::vector<int> by_thread; // plain: only barriers order them
    std::vector<int> wrong;
};

// Each thread adds to its own number; after each barrier every thread reads all of them.
void AddAndCompare(void *ctx, int32_t thread) {
    Sum *s = (Sum *)ctx;
    for (int i = 0; i < s->barriers; i++) {
        int before = s->by_thread[thread]++;
        amp_pool_barrier(s->pool);
        for (int value : s->by_thread) s->wrong[thread] += value != before + 1;
        amp_pool_barrier(s->pool);
    }
}

TEST_P(Pool, BarriersOrderThousandsOfRounds) {
    int n = GetParam();
    Sum s = {pool, n, 20, std::vector<int>(n), std::vector<int>(n)};
    int jobs = n <= 2 ? 300 : 20; // with more threads than processors every barrier sleeps
    for (int i = 0; i < jobs; i++) amp_pool_run(pool, AddAndCompare, &s);
    for (int i = 0; i < n; i++) {
        EXPECT_EQ(s.by_thread[i], jobs * 20);
        EXPECT_EQ(s.wrong[i], 0);
    }
}

struct Tasks {
    std::atomic_int next{0};
    std::vector<int> done;
};

void TakeTasks(void *ctx, int32_t thread) {
    (void)thread;
    Tasks *t = (Tasks *)ctx;
    for (int i; (i = t->next.fetch_add(1)) < (int)t->done.size();) t->done[i]++;
}

TEST_P(Pool, ManyShortJobsRunEachTaskOnce) {
    for (int job = 0; job < (GetParam() <= 2 ? 2000 : 100); job++) {
        Tasks t;
        t.done.assign(37, 0);
        amp_pool_run(pool, TakeTasks, &t);
        for (int d : t.done) ASSERT_EQ(d, 1);
    }
}

// Long enough for workers to fall asleep on the futex between jobs.
TEST_P(Pool, WakesSleepers) {
    for (int job = 0; job < 12; job++) {
        Tasks t;
        t.done.assign(9, 0);
        usleep(job % 3 == 0 ? 15000 : 4000);
        amp_pool_run(pool, TakeTasks, &t);
        for (int d : t.done) ASSERT_EQ(d, 1);
    }
}

struct Slow {
    amp_pool *pool;
    std::vector<int> seen;
};

// One thread is late, so that the others sleep in the barrier.
void WaitForTheLast(void *ctx, int32_t thread) {
    Slow *s = (Slow *)ctx;
    if (thread == amp_pool_threads(s->pool) - 1) usleep(8000);
    s->seen[thread]++;
    amp_pool_barrier(s->pool);
}

TEST_P(Pool, WakesSleepersInBarriers) {
    for (int job = 0; job < 8; job++) {
        Slow s = {pool, std::vector<int>(GetParam())};
        amp_pool_run(pool, WaitForTheLast, &s);
        for (int v : s.seen) EXPECT_EQ(v, 1);
    }
}

INSTANTIATE_TEST_SUITE_P(Threads, Pool, ::testing::Values(1, 2, 3, 8));

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
