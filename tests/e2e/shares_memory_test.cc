// shares_memory_test.cc: ranks with a share of the moments each (zero1) write and read checkpoints with one whole
// moment at a time, on rank 0.
#include <gmock/gmock.h>

#include "tests/base/counted_memory.h"
#include "tests/e2e/ranks.h"

namespace {

using e2e::Batch;

constexpr int kLayers = 12, kWidth = 128, kClasses = 5;
constexpr int64_t kCapacity = 4;
constexpr size_t kMoment = kWidth * kWidth * sizeof(float), kMoments = 2 * kLayers * kMoment;

std::string Text() {
    std::string text = "amp 1\nmodel deep(x: f32[N, 128]) -> logits {\n    h = x\n";
    for (int i = 0; i < kLayers; i++) text += "    h = relu(linear(h; out = 128) as fc" + std::to_string(i) + ")\n";
    return text +
           "    logits = linear(h; out = 5) as last\n}\ntrain deep {\n    input targets: i32[N]\n"
           "    loss = cross_entropy(logits, targets)\n    optimizer = adamw(lr = 0.01)\n}\nprecision fp32 { }\n";
}

// A session of a rank all of whose memory is counted.
struct CountedRank {
    Counter memory;
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp_error err = {};

    CountedRank(const std::string &path, amp_comm *comm) {
        const amp_allocator allocator = memory.allocator();
        amp_model_options m = {};
        m.struct_size = sizeof m;
        m.allocator = &allocator;
        amp::SessionOptions o;
        o.capacity.n = kCapacity;
        o.threads = 1;
        o.comm = comm;
        if (amp_model_load(path.c_str(), &m, &model, &err) || amp_params_create(model, nullptr, &params, &err)) return;
        (void)!amp_session_create(model, params, &o, &session, &err);
    }
    CountedRank(const CountedRank &) = delete;
    ~CountedRank() {
        amp_session_release(session);
        amp_params_release(params);
        amp_model_release(model);
    }

    void Step(uint32_t seed) {
        Batch b(kCapacity, kWidth, kClasses, seed);
        ASSERT_EQ(amp_step(session, b.inputs(), {b.n, 0}, nullptr, &err), AMP_OK) << err.message;
    }

    // What the call takes beside what there is.
    size_t Takes(const std::function<amp_status()> &call) {
        const size_t before = memory.most = memory.live;
        EXPECT_EQ(call(), AMP_OK) << err.message;
        EXPECT_EQ(memory.live, before);
        return memory.most - before;
    }
};

TEST(SharedCheckpoints, HoldOneWholeMomentAtATime) {
    constexpr int32_t ranks = 2;
    // The moment, the tensor as it is in the file, and as f32; pieces of what is written.
    constexpr size_t bound = 3 * kMoment + (128 << 10);
    static_assert(bound < kMoments / ranks / 2, "less than the moments of the other rank");
    amp_compile_options options = {};
    options.distribute = "zero1";
    const std::string model = e2e::compile_to_file(Text(), "deep.so", options), path = e2e::temp_path("deep.st");
    e2e::Network network(ranks);
    e2e::on_ranks(ranks, [&](int32_t rank) {
        CountedRank r(model, network.Comm(rank));
        ASSERT_TRUE(r.session) << r.err.message;
        for (uint32_t step = 0; step < 3; step++) r.Step(step * ranks + static_cast<uint32_t>(rank));
        EXPECT_LT(r.Takes([&] { return amp_checkpoint_save(r.session, path.c_str(), nullptr, &r.err); }), bound);
        r.Step(77);
        EXPECT_LT(r.Takes([&] { return amp_checkpoint_load(r.session, path.c_str(), nullptr, 0, &r.err); }), bound);
        const std::string again = path + ".again";
        ASSERT_EQ(amp_checkpoint_save(r.session, again.c_str(), nullptr, &r.err), AMP_OK) << r.err.message;
        EXPECT_TRUE(rank || e2e::read_tensors(again) == e2e::read_tensors(path));
    });
}

// Rank 0 cannot write: the others, which have nothing to write, do not wait for it.
TEST(SharedCheckpoints, ThatCannotBeWrittenHoldNobody) {
    amp_compile_options options = {};
    options.distribute = "zero1";
    const std::string model = e2e::compile_to_file(Text(), "deep.so", options);
    e2e::Network network(2);
    e2e::on_ranks(2, [&](int32_t rank) {
        CountedRank r(model, network.Comm(rank));
        ASSERT_TRUE(r.session) << r.err.message;
        r.Step(static_cast<uint32_t>(rank));
        for (const char *path : {"/no/such/folder/deep.st", "/dev/full"})
            EXPECT_EQ(amp_checkpoint_save(r.session, path, nullptr, &r.err) == AMP_OK, rank != 0) << path;
        r.Step(static_cast<uint32_t>(2 + rank));
    });
}

} // namespace
