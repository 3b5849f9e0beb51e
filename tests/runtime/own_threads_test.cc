// Sessions on threads of the application: the bits of the session's own threads, however the tasks are run.
#include <atomic>
#include <thread>

#include "tests/runtime/tiny.h"

namespace {

enum { STEPS = 10, CAPACITY = 1000 };

struct Asked {
    std::atomic<int> runs{0}, tasks{0}, most{0};
};

void Count(void *user, int count) {
    Asked *asked = static_cast<Asked *>(user);
    asked->runs++;
    asked->tasks += count;
    if (count > asked->most) asked->most = count;
}

void InOrder(void *user, amp_task task, void *ctx, int32_t count) {
    Count(user, count);
    for (int32_t i = 0; i < count; i++) task(ctx, i);
}

void Backwards(void *user, amp_task task, void *ctx, int32_t count) {
    Count(user, count);
    for (int32_t i = count; i-- > 0;) task(ctx, i);
}

void AllAtOnce(void *user, amp_task task, void *ctx, int32_t count) {
    Count(user, count);
    std::vector<std::thread> threads;
    for (int32_t i = 1; i < count; i++) threads.emplace_back(task, ctx, i);
    task(ctx, 0);
    for (std::thread &t : threads) t.join();
}

void OnAnotherThread(void *user, amp_task task, void *ctx, int32_t count) {
    std::thread([=] { InOrder(user, task, ctx, count); }).join();
}

// A pool that has been shut down: the session's thread does it all.
void None(void *user, amp_task, void *, int32_t count) { Count(user, count); }

std::vector<float> Train(const amp_session_options &options) {
    Tiny tiny(options);
    for (unsigned i = 0; i < STEPS; i++) {
        TinyBatch batch(CAPACITY - i % 3, i);
        amp_error err = {};
        EXPECT_EQ(amp_step(tiny.session, batch.inputs, {batch.n, 0}, nullptr, &err), AMP_OK) << err.message;
    }
    std::vector<float> trained = tiny.Weight(), bias = tiny.Bias();
    trained.insert(trained.end(), bias.begin(), bias.end());
    return trained;
}

TEST(OwnThreads, TheBitsAreThoseOfAnyThreads) {
    const std::vector<float> wanted = Train(TinyOptions(CAPACITY));
    for (auto run : {InOrder, Backwards, AllAtOnce, OnAnotherThread, None})
        for (int threads : {2, 3, 7}) {
            Asked asked;
            amp::SessionOptions o = TinyOptions(CAPACITY);
            o.threads = threads;
            o.cpu.run_tasks = run;
            o.cpu.user = &asked;
            EXPECT_EQ(Train(o), wanted);
            EXPECT_GT(asked.runs, 0);
            EXPECT_GE(asked.tasks, 2 * asked.runs) << "one task alone is not worth a call";
            EXPECT_LE(asked.most, threads);
        }
}

TEST(OwnThreads, OneThreadNeedsNone) {
    Asked asked;
    amp::SessionOptions o = TinyOptions(CAPACITY);
    o.cpu.run_tasks = InOrder;
    o.cpu.user = &asked;
    EXPECT_EQ(Train(o), Train(TinyOptions(CAPACITY)));
    EXPECT_EQ(asked.runs, 0);
}

} // namespace
