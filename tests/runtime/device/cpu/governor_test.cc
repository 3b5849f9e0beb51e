// The governor, on machines that are made up: what one thread and all threads take is given, so nothing here depends on
// the machine that runs the test.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "tests/runtime/runtime_c.h"

namespace {

using Times = std::function<int64_t(bool alone, int64_t call)>; // ns of a call

struct Total {
    int64_t ns = 0, calls = 0, alone = 0;
    double PerCall() const { return (double)ns / calls; }
};

class Governor : public ::testing::Test {
  protected:
    Total Run(const Times &times, int64_t seconds) {
        Total t;
        for (; t.ns < seconds * 1000000000; t.calls++) {
            bool alone = amp_governor_runs_alone(&g);
            int64_t ns = times(alone, t.calls);
            amp_governor_record(&g, alone, ns, 2);
            t.ns += ns;
            t.alone += alone;
        }
        return t;
    }
    amp_governor g = amp_governor_make(nullptr, {1, 0});
};

TEST_F(Governor, BeginsWithAllThreads) {
    EXPECT_FALSE(amp_governor_runs_alone(&g));
    EXPECT_TRUE(amp_governor_is_worth_waking(&g));
}

// However long a call takes: the better way, but for a few percent.
TEST_F(Governor, TakesTheBetterWay) {
    for (int64_t call : {20000, 150000, 4000000, 200000000})
        for (double all : {0.1, 0.5, 0.8, 1.0, 1.3, 5.0, 20.0}) {
            int64_t seconds = 60 + call / 100000; // the first calls are not of its choice
            g = amp_governor_make(nullptr, {1, 0});
            Total t = Run([&](bool alone, int64_t) { return alone ? call : (int64_t)(call * all); }, seconds);
            EXPECT_LT(t.PerCall(), call * (all < 1 ? all : 1) * 1.05) << call << " ns, all threads " << all;
        }
}

TEST_F(Governor, FollowsAMachineThatBecomesBusyAndIdle) {
    auto idle = [](bool alone, int64_t) { return alone ? 200000 : 110000; };
    auto busy = [](bool alone, int64_t) { return alone ? 220000 : 3000000; };
    for (int i = 0; i < 3; i++) {
        EXPECT_LT(Run(idle, 20).PerCall(), 110000 * 1.1) << i;
        EXPECT_LT(Run(busy, 20).PerCall(), 220000 * 1.1) << i;
    }
}

// Slices of a scheduler: most calls are fast, some lose milliseconds.  The mean counts.
TEST_F(Governor, CountsInterruptions) {
    auto bad = [](bool alone, int64_t i) { return alone ? (i % 40 ? 150000 : 3000000) : (i % 20 ? 90000 : 6000000); };
    EXPECT_LT(Run(bad, 20).PerCall(), (39 * 150000 + 3000000) / 40 * 1.08);
    g = amp_governor_make(nullptr, {1, 0});
    auto good = [](bool alone, int64_t i) { return alone ? (i % 20 ? 150000 : 3000000) : (i % 40 ? 90000 : 3000000); };
    EXPECT_LT(Run(good, 20).PerCall(), (39 * 90000 + 3000000) / 40 * 1.08);
}

// One hiccup costs about what it takes itself.
TEST_F(Governor, ForgivesAHiccup) {
    auto idle = [](bool alone, int64_t) { return alone ? 200000 : 110000; };
    Run(idle, 5);
    amp_governor_record(&g, amp_governor_runs_alone(&g), 50000000, 2);
    EXPECT_LT(Run(idle, 2).PerCall(), 110000 * 1.12);
}

// Calls of 10,000 different sizes: each class of them learns the better way.
TEST_F(Governor, SharesWhatCallsOfManyLengthsTake) {
    std::map<int64_t, amp_governor> governors;
    int64_t spent = 0, best = 0;
    uint32_t random = 1;
    const auto next = [&](uint32_t most) {
        return static_cast<int64_t>(1 + (random = random * 1664525 + 1013904223) / 65536 % most);
    };
    for (int i = 0; i < 200000; i++) {
        const amp_sizes sizes = {next(32), next(512)};
        const int64_t alone = sizes.n * sizes.t * 500, all = alone / 2 + 300000;
        const amp_sizes class_of = amp_governor_sizes(sizes);
        EXPECT_EQ(class_of.t, 1);
        amp_governor &governor = governors.emplace(class_of.n, amp_governor_make(nullptr, class_of)).first->second;
        const bool is_alone = amp_governor_runs_alone(&governor);
        const int64_t ns = is_alone ? alone : all;
        amp_governor_record(&governor, is_alone, amp_governor_time(sizes, ns), 2);
        spent += ns, best += std::min(alone, all);
    }
    EXPECT_LE(governors.size(), 15u);
    EXPECT_LT(static_cast<double>(spent), 1.03 * static_cast<double>(best));
    const amp_sizes without = amp_governor_sizes({19, 0});
    EXPECT_EQ(without.n, 19);
    EXPECT_EQ(amp_governor_time({19, 0}, 777), 777);
}

TEST_F(Governor, DoesNotWakeWorkersForLittle) {
    for (int i = 0; i < 3; i++) amp_governor_record(&g, false, 5000000, 4);
    EXPECT_TRUE(amp_governor_is_worth_waking(&g));
    amp_governor_record(&g, false, 100000, 4); // 0.4 ms at most
    EXPECT_FALSE(amp_governor_is_worth_waking(&g));
    amp_governor_record_let_sleep(&g, 3000000);
    EXPECT_TRUE(amp_governor_is_worth_waking(&g));
    amp_governor_record_let_sleep(&g, 300000);
    EXPECT_FALSE(amp_governor_is_worth_waking(&g));
}

} // namespace
