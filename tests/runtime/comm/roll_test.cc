// The roll call: which rank is named, and how long it may take, where one is dead, late, busy or in another collective.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>

#include "tests/runtime/comm/ranks.h"

namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr double timeout = 0.5;
const char *const bucket = "all_reduce bucket 1 (fc2.weight ..)";

struct Roll : testing::Test {
    World world{3};
    Ranks all{&world, false, timeout};
    static void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }
    static amp_status AllReduce(amp_comm *comm, std::string *said, size_t count = 10, const char *what = bucket) {
        std::vector<float> data(count, 1);
        amp_error err = {};
        amp_status status = Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data.data(), count, &err, 0, what);
        *said = err.message;
        return status;
    }
};

TEST_F(Roll, NamesTheDeadRankOnAllOthers) {
    world.dead_rank = 2;
    world.dead_from = 4;
    all.Run([&](amp_comm *comm) {
        std::string said;
        amp_status status = AMP_OK;
        const auto begin = std::chrono::steady_clock::now();
        for (int k = 0; k < 9 && !status; k++) status = AllReduce(comm, &said);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        EXPECT_EQ(status, AMP_PEER_FAILED);
        if (comm->rank == 2) return;
        const std::string why = std::string(bucket) + ": no answer from rank 2 for 0.5 s: died, hangs or was stopped";
        const std::string me = "rank " + std::to_string(comm->rank), other = "rank " + std::to_string(1 - comm->rank);
        EXPECT_THAT(said, AnyOf(me + ": " + why, me + ": " + other + " says: " + why));
        EXPECT_GE(took.count(), timeout);
        EXPECT_LT(took.count(), 3 * timeout);
    });
    EXPECT_EQ(world.seen().abandoned, 3);
}

TEST_F(Roll, NamesSeveral) {
    World four(4);
    four.dead_rank = 1;
    four.dead_from = 2;
    Ranks ranks(&four, false, timeout);
    ranks.Run([&](amp_comm *comm) {
        std::string said;
        if (comm->rank == 3) return; // releases, which the others do not
        EXPECT_EQ(AllReduce(comm, &said), AMP_PEER_FAILED);
        EXPECT_THAT(said, comm->rank == 1 ? HasSubstr("rank 1") : HasSubstr("no answer from rank 1 for"));
    });
}

// A rank that computes for longer than the timeout gets it once more, and no longer.
TEST_F(Roll, ComputingMayTakeTwoTimeouts) {
    all.Run([&](amp_comm *comm) {
        std::string said;
        amp_comm_does(comm, AMP_RANK_COMPUTES, 7);
        if (comm->rank == 1) Sleep(1.6 * timeout);
        ASSERT_EQ(AllReduce(comm, &said), AMP_OK) << said;
        if (comm->rank == 1) Sleep(3 * timeout);
        EXPECT_EQ(AllReduce(comm, &said), AMP_PEER_FAILED);
        EXPECT_THAT(said,
                    HasSubstr(std::string(bucket) + ": rank 1 is alive, but has not joined for 1.0 s: it computes in "
                                                    "step 7; if a rank may be this late, set a longer"));
        EXPECT_EQ(said.find(" says: ") != std::string::npos || comm->rank != 1, true);
    });
}

TEST_F(Roll, SavingMayTakeTwenty) {
    all.Run([&](amp_comm *comm) {
        std::string said;
        for (amp_rank_does does : {AMP_RANK_LOADS, AMP_RANK_SAVES, AMP_RANK_EVALUATES}) {
            amp_comm_does(comm, comm->rank == 0 ? does : AMP_RANK_COMPUTES, -1);
            if (comm->rank == 0) Sleep(2.6 * timeout);
            ASSERT_EQ(AllReduce(comm, &said), AMP_OK) << said;
        }
    });
    EXPECT_EQ(world.seen().disconnected, 3);
}

TEST_F(Roll, NamesTheRankInAnotherCollective) {
    all.Run([&](amp_comm *comm) {
        std::string said;
        const bool other = comm->rank == 2;
        EXPECT_EQ(AllReduce(comm, &said, other ? 20 : 10, other ? "all_reduce bucket 2 (fc1.bias)" : bucket),
                  AMP_PEER_FAILED);
        EXPECT_THAT(said, AnyOf(HasSubstr(std::string(bucket) + ": rank 2 is in all_reduce bucket 2 (fc1.bias) "
                                                                "instead: all ranks have to make the same calls"),
                                HasSubstr("all_reduce bucket 2 (fc1.bias): rank 0 is in " + std::string(bucket))));
    });
    EXPECT_EQ(world.seen().mismatches.size(), 1u);
}

// A rank that ends by itself: all others say why, long before their timeout, whether they wait or come later.
TEST_F(Roll, GivingUpIsToldToAll) {
    Ranks slow(&world, false, 20);
    std::atomic<int> have_sums{0};
    slow.Run([&](amp_comm *comm) {
        std::string said;
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_EQ(AllReduce(comm, &said), AMP_OK) << said;
        have_sums++;
        while (have_sums < 3) Sleep(0.001); // lest rank 1 gives up while another still takes its sum
        if (comm->rank == 1) amp_comm_give_up(comm, "data.csv, line 7: no number");
        if (comm->rank == 2) Sleep(0.3);
        EXPECT_EQ(AllReduce(comm, &said), AMP_PEER_FAILED);
        const std::string who = "rank " + std::to_string(comm->rank);
        EXPECT_EQ(said, comm->rank == 1 ? "rank 1: data.csv, line 7: no number"
                                        : who + ": rank 1 says: data.csv, line 7: no number");
        amp_comm_give_up(comm, "not the first");
        EXPECT_EQ(AllReduce(comm, &said), AMP_PEER_FAILED);
        EXPECT_EQ(said.find("not the first"), std::string::npos);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        EXPECT_LT(took.count(), 10);
    });
    EXPECT_EQ(world.seen().abandoned, 3);
}

// Ranks that sleep between collectives answer nothing wrong and cost nothing.
TEST_F(Roll, PausesBetweenCollectives) {
    all.Run([&](amp_comm *comm) {
        std::string said;
        for (int k = 0; k < 3; k++) {
            Sleep(1.5 * timeout);
            ASSERT_EQ(AllReduce(comm, &said), AMP_OK) << said;
        }
    });
}

} // namespace
