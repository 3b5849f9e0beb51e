// Every collective over the engine of threads, and over files: sums against float64, ordered ones bit by bit, all
// types, sizes, pieces.
#include <unistd.h>

#include <mutex>

#include "tests/runtime/comm/ranks.h"
#include "tests/runtime/comm/values.h"

namespace {

const amp_dtype summed[] = {AMP_DT_F32, AMP_DT_F64, AMP_DT_F16, AMP_DT_BF16};
const amp_dtype moved[] = {AMP_DT_F32, AMP_DT_F16, AMP_DT_BF16, AMP_DT_F64, AMP_DT_I32, AMP_DT_I64, AMP_DT_U8};

// Small pieces, so that a few thousand elements take every way; small: what is gathered whole.
struct Way {
    const char *name;
    amp_lane_limits limits;
    size_t most; // elements, lest it take long
};
const Way ways[] = {{"default", {size_t{1} << 30, size_t{32} << 20, size_t{64} << 10}, 1031},
                    {"exchanged", {size_t{1} << 30, size_t{32} << 20, 0}, 1031},
                    {"pieces", {4096, 2048, 256}, 1031},
                    {"tiny pieces", {96, 40, 0}, 130}};

class Collective : public testing::TestWithParam<std::tuple<int, bool, int, bool>> {
  protected:
    int32_t ranks() const { return std::get<0>(GetParam()); }
    bool ordered() const { return std::get<1>(GetParam()); }
    const Way &way() const { return ways[std::get<2>(GetParam())]; }
    bool files() const { return std::get<3>(GetParam()); }

    void SetUp() override {
        if (files()) folder_ = testing::TempDir() + "collective-" + std::to_string(getpid());
    }
    void TearDown() override {
        if (!files()) return;
        EXPECT_NE(access(folder_.c_str(), F_OK), 0) << "files were left";
    }

    // In each rank, over the count; then that nothing but what was meant was started.
    void Each(const std::function<void(amp_comm *, size_t)> &body, bool parts) {
        World world(ranks());
        Ranks all(&world, ordered());
        all.folder = folder_;
        all.limits = way().limits;
        all.Run([&](amp_comm *comm) {
            for (size_t count : {0, 1, 7, 130, 1031})
                if (count <= way().most) body(comm, parts ? count * static_cast<size_t>(ranks()) : count);
        });
        if (files()) return;
        EXPECT_EQ(world.seen().mismatches, std::vector<std::string>());
        EXPECT_LE(world.seen().most_at_once, int{AMP_LANES});
        EXPECT_EQ(world.seen().disconnected, ranks());
        EXPECT_EQ(world.seen().abandoned, 0);
        EXPECT_EQ(world.seen().closed, ranks());
        EXPECT_LE(world.seen().largest, std::max(way().limits.message, size_t{64} * static_cast<size_t>(ranks())));
    }

    std::string folder_;
};

void CheckSum(amp_comm *comm, amp_dtype dtype, const void *data, size_t i, size_t of) {
    const uint32_t of_engine = reinterpret_cast<amp_comm_state *>(comm)->engine->type->sums;
    if (comm->ordered || !(of_engine >> dtype & 1)) {
        double wanted = 0;
        LeftToRight(dtype, comm->size, of, &wanted);
        const size_t size = amp_dtype_size(dtype);
        ASSERT_EQ(memcmp(static_cast<const char *>(data) + i * size, &wanted, size), 0)
            << amp_dtype_name(dtype) << " " << of << ": " << Get(dtype, data, i) << ", not " << Get(dtype, &wanted, 0);
    }
    const Sum sum = SumOf(dtype, comm->size, of);
    ASSERT_LE(std::fabs(Get(dtype, data, i) - sum.exact), Bound(dtype, comm->size, sum)) << amp_dtype_name(dtype);
}

TEST_P(Collective, AllReduce) {
    Each(
        [](amp_comm *comm, size_t count) {
            for (amp_dtype dtype : summed) {
                std::vector<unsigned char> data = Brought(dtype, comm->rank, count);
                amp_error err = {};
                ASSERT_EQ(Do(comm, AMP_COLLECTIVE_ALL_REDUCE, dtype, data.data(), count, &err), AMP_OK) << err.message;
                for (size_t i = 0; i < count; i++) CheckSum(comm, dtype, data.data(), i, i);
            }
        },
        false);
}

TEST_P(Collective, ReduceScatter) {
    Each(
        [](amp_comm *comm, size_t count) {
            for (amp_dtype dtype : summed) {
                std::vector<unsigned char> data = Brought(dtype, comm->rank, count);
                amp_error err = {};
                ASSERT_EQ(Do(comm, AMP_COLLECTIVE_REDUCE_SCATTER, dtype, data.data(), count, &err), AMP_OK)
                    << err.message;
                const size_t part = count / static_cast<size_t>(comm->size);
                const size_t begin = part * static_cast<size_t>(comm->rank);
                for (size_t i = begin; i < begin + part; i++) CheckSum(comm, dtype, data.data(), i, i);
            }
        },
        true);
}

TEST_P(Collective, AllGather) {
    Each(
        [](amp_comm *comm, size_t count) {
            for (amp_dtype dtype : moved) {
                std::vector<unsigned char> data = Brought(dtype, comm->rank, count);
                amp_error err = {};
                ASSERT_EQ(Do(comm, AMP_COLLECTIVE_ALL_GATHER, dtype, data.data(), count, &err), AMP_OK) << err.message;
                const size_t part = data.size() / static_cast<size_t>(comm->size);
                for (int32_t r = 0; r < comm->size; r++) {
                    const auto of = Brought(dtype, r, count);
                    const size_t at = part * static_cast<size_t>(r);
                    ASSERT_TRUE(std::equal(of.begin() + at, of.begin() + at + part, data.begin() + at));
                }
            }
        },
        true);
}

TEST_P(Collective, Broadcast) {
    Each(
        [](amp_comm *comm, size_t count) {
            for (amp_dtype dtype : moved)
                for (int32_t root = 0; root < comm->size; root++) {
                    std::vector<unsigned char> data = Brought(dtype, comm->rank, count);
                    amp_error err = {};
                    ASSERT_EQ(Do(comm, AMP_COLLECTIVE_BROADCAST, dtype, data.data(), count, &err, root), AMP_OK);
                    ASSERT_EQ(data, Brought(dtype, root, count));
                }
        },
        false);
}

// Started one after the other and waited for at the end, while ranks are late in turn: lanes overtake one another, and
// what the ranks start in a lane is the same all the same (mismatches, above).
TEST_P(Collective, ManyAtOnce) {
    World world(ranks());
    world.delayed_rank = ranks() - 1;
    world.delay = std::chrono::milliseconds(1);
    Ranks all(&world, ordered());
    all.folder = folder_;
    all.limits = way().limits;
    all.Run([&](amp_comm *comm) {
        constexpr size_t many = 24;
        std::vector<std::vector<unsigned char>> data(many);
        std::vector<uint64_t> numbers(many);
        amp_error err = {};
        for (size_t k = 0; k < many; k++) {
            data[k] = Brought(summed[k % 4], comm->rank, k * 5);
            ASSERT_EQ(comm->calls->start(comm, AMP_COLLECTIVE_ALL_REDUCE, summed[k % 4], data[k].data(), k * 5, 0,
                                         "many", &numbers[k], &err),
                      AMP_OK);
            EXPECT_EQ(numbers[k], numbers[0] + k);
        }
        for (size_t k = 0; k < many; k++) {
            ASSERT_EQ(comm->calls->wait(comm, numbers[k], &err), AMP_OK) << err.message;
            for (size_t i = 0; i < k * 5; i++) CheckSum(comm, summed[k % 4], data[k].data(), i, i);
        }
    });
    EXPECT_EQ(world.seen().mismatches, std::vector<std::string>());
    EXPECT_EQ(world.seen().most_at_once, ranks() > 1 && !files() ? int{AMP_LANES} : 0);
}

std::string NameOf(const testing::TestParamInfo<std::tuple<int, bool, int, bool>> &info) {
    std::string name = ways[std::get<2>(info.param)].name;
    for (char &c : name) c = c == ' ' ? '_' : c;
    return std::to_string(std::get<0>(info.param)) + "_" + name + (std::get<1>(info.param) ? "_ordered" : "");
}
INSTANTIATE_TEST_SUITE_P(All, Collective,
                         testing::Combine(testing::Values(1, 2, 3, 5), testing::Bool(), testing::Values(0, 1, 2, 3),
                                          testing::Values(false)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Files, Collective,
                         testing::Combine(testing::Values(1, 2, 4), testing::Values(false), testing::Values(0, 1, 2),
                                          testing::Values(true)),
                         NameOf);

// The engine's own order is another one: the two must differ somewhere, or the tests above show nothing.
TEST(OrderedSums, DifferFromOthers) {
    size_t differ = 0;
    for (bool ordered : {false, true}) {
        World world(3);
        Ranks all(&world, ordered);
        all.Run([&](amp_comm *comm) {
            std::vector<unsigned char> data = Brought(AMP_DT_F32, comm->rank, 1000);
            amp_error err = {};
            ASSERT_EQ(Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data.data(), 1000, &err), AMP_OK);
            for (size_t i = 0; i < 1000 && !comm->rank; i++) {
                float wanted;
                LeftToRight(AMP_DT_F32, 3, i, &wanted);
                differ += (wanted != reinterpret_cast<float *>(data.data())[i]) != ordered;
            }
        });
    }
    EXPECT_GT(differ, 1000u);
}

// An engine that adds f16 itself is asked to, unless sums are ordered.
TEST(OrderedSums, EngineAddsWhatItCan) {
    for (bool ordered : {false, true}) {
        World world(2);
        world.sums = 0;
        Ranks all(&world, ordered);
        all.Run([&](amp_comm *comm) {
            std::vector<unsigned char> data = Brought(AMP_DT_F32, comm->rank, 100);
            amp_error err = {};
            ASSERT_EQ(Do(comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data.data(), 100, &err), AMP_OK);
            for (size_t i = 0; i < 100; i++) {
                float wanted;
                LeftToRight(AMP_DT_F32, 2, i, &wanted);
                ASSERT_EQ(reinterpret_cast<float *>(data.data())[i], wanted);
            }
        });
    }
}

} // namespace
