// ranks_test.cc: sessions of several ranks make the steps of one rank with as many micro-batches (the twin), bit for
// bit; what amp_session_create says where ranks do not agree.
#include <cstdio>
#include <gmock/gmock.h>

#include <limits>

#include "tests/base/planted.h"
#include "tests/e2e/ranks.h"

namespace {

using e2e::Batch;
using e2e::Training;

constexpr int kFeatures = 21, kClasses = 5;
constexpr int64_t kCapacity = 16;

// With all whose sums are not the sums of its parts: labels that are ignored, batch norm, dropout, clipping.
std::string Text(const std::string &precision, int accumulate, const std::string &more = "") {
    return "amp 1\nmodel small(x: f32[N, 21]) -> logits {\n"
           "    h = relu(batch_norm(linear(x; out = 33) as fc1) as bn)\n"
           "    logits = linear(dropout(h; p = 0.1) as drop; out = 5) as fc2\n}\n"
           "train small {\n    input targets: i32[N]\n    loss = cross_entropy(logits, targets)\n"
           "    metric acc = accuracy(logits, targets)\n    optimizer = adamw(lr = 0.01)\n    clip_norm = 1.0\n"
           "    accumulate = " +
           std::to_string(accumulate) + more + "\n}\nprecision " + precision +
           (precision == "fp16" ? " { loss_scale = dynamic(init = 65536.0, interval = 3) }\n" : " { }\n");
}

std::string Compile(const std::string &precision, int accumulate, const char *order = "left") {
    amp_compile_options options = {};
    options.distribute = "data";
    options.accumulate_order = order;
    return e2e::compile_to_file(Text(precision, accumulate),
                                "ranks-" + precision + "-" + std::to_string(accumulate) + order + ".so", options);
}

// Of a rank in a step: every seventh label is ignored, and the last rank's batches are short.
struct Samples : Batch {
    Samples(int32_t rank, int32_t ranks, int step)
        : Batch(kCapacity - (ranks > 1 && rank + 1 == ranks ? step % 4 : 0), kFeatures, kClasses,
                static_cast<uint32_t>(100 + step * ranks + rank)) {
        for (size_t i = 0; i < y.size(); i += 7) y[i] = -100;
    }
};

// What a session is after its steps, and what it has told.
struct Course {
    std::vector<amp_step_report> reports;
    std::vector<float> params;
    std::string tensors; // of its checkpoint: moments, counters and the scale, too
};

void Finish(Training &t, const std::string &name, Course *c) {
    const std::string path = e2e::temp_path(name);
    ASSERT_EQ(amp_checkpoint_save(t.session, path.c_str(), "", &t.err), AMP_OK) << t.err.message;
    c->params = e2e::all_params(t);
    c->tensors = e2e::read_tensors(path);
}

using Change = std::function<void(Samples &, int32_t rank, int step)>;

void StepOnce(Training &t, int32_t rank, int32_t ranks, int step, const Change &change, Course *c) {
    Samples b(rank, ranks, step);
    if (change) change(b, rank, step);
    amp_step_report report;
    ASSERT_EQ(amp_step(t.session, b.inputs(), {b.n, 0}, &report, &t.err), AMP_OK) << t.err.message;
    if (report.complete) c->reports.push_back(report);
}

// A step is |micro| batches of each rank.
std::vector<Course> OfRanks(const std::string &model, int32_t ranks, int steps, int micro, const Change &change) {
    std::vector<Course> courses(static_cast<size_t>(ranks));
    e2e::Network network(ranks);
    e2e::on_ranks(ranks, [&](int32_t rank) {
        Course &c = courses[static_cast<size_t>(rank)];
        Training t(model, kCapacity, 1, 3, false, nullptr, network.Comm(rank));
        ASSERT_TRUE(t.ok());
        for (int s = 0; s < steps * micro; s++) StepOnce(t, rank, ranks, s, change, &c);
        Finish(t, "rank" + std::to_string(rank) + ".st", &c);
    });
    return courses;
}

Course OfTwin(const std::string &model, int32_t ranks, int steps, int micro, const Change &change) {
    Course c;
    Training t(model, kCapacity);
    EXPECT_TRUE(t.ok());
    for (int s = 0; s < steps && t.ok(); s++)
        for (int32_t rank = 0; rank < ranks; rank++)
            for (int j = 0; j < micro; j++) StepOnce(t, rank, ranks, s * micro + j, change, &c);
    Finish(t, "twin.st", &c);
    return c;
}

void ExpectSame(const Course &got, const Course &want, const std::string &who) {
    ASSERT_EQ(got.reports.size(), want.reports.size()) << who;
    for (size_t i = 0; i < want.reports.size(); i++) {
        const amp_step_report &a = got.reports[i], &b = want.reports[i];
        EXPECT_TRUE(!memcmp(&a.loss, &b.loss, sizeof a.loss) || (a.loss != a.loss && b.loss != b.loss))
            << who << ", step " << i << ": loss " << a.loss << ", not " << b.loss;
        EXPECT_TRUE(!memcmp(&a.grad_norm, &b.grad_norm, sizeof a.loss) || a.skipped)
            << who << ", step " << i << ": norm " << a.grad_norm << ", not " << b.grad_norm;
        EXPECT_EQ(a.scale, b.scale) << who << ", step " << i;
        EXPECT_EQ(a.skipped, b.skipped) << who << ", step " << i;
        EXPECT_EQ(a.step, b.step) << who << ", step " << i;
    }
    EXPECT_TRUE(e2e::same_bits(got.params, want.params)) << who;
    EXPECT_TRUE(got.tensors == want.tensors) << who << ": another checkpoint";
}

// Precision, ranks, micro-batches of each; several of them are added as a tree.
class Ranks : public ::testing::TestWithParam<std::tuple<const char *, int, int>> {
  protected:
    const std::string precision_ = std::get<0>(GetParam());
    const int32_t ranks_ = std::get<1>(GetParam());
    const int micro_ = std::get<2>(GetParam());

    std::vector<Course> ExpectSameAsTwin(int steps, const Change &change = {}) {
        const char *order = micro_ > 1 ? "tree" : "left";
        const Course twin = OfTwin(Compile(precision_, ranks_ * micro_, order), ranks_, steps, micro_, change);
        std::vector<Course> courses = OfRanks(Compile(precision_, micro_, order), ranks_, steps, micro_, change);
        EXPECT_EQ(twin.reports.size(), static_cast<size_t>(steps));
        EXPECT_GT(twin.tensors.size(), 2 * sizeof(float) * twin.params.size());
        for (size_t r = 0; r < courses.size(); r++) ExpectSame(courses[r], twin, "rank " + std::to_string(r));
        return courses;
    }
};

TEST_P(Ranks, MakeTheStepsOfTheirTwin) { ExpectSameAsTwin(8); }

// All skip what one cannot take, and have the same scale afterwards.
TEST_P(Ranks, SkipTogetherWhereOneOverflows) {
    const int32_t last = ranks_ - 1, micro = micro_;
    const auto courses = ExpectSameAsTwin(10, [last, micro](Samples &b, int32_t rank, int step) {
        if ((step == 4 * micro && rank == last) || (step == 8 * micro - 1 && rank == 0)) b.x[kFeatures + 3] = 1e30f;
    });
    if (precision_ != "fp16") return;
    for (const Course &c : courses) {
        for (size_t i = 0; i < c.reports.size(); i++) EXPECT_EQ(c.reports[i].skipped, i == 4 || i == 7) << i;
        EXPECT_EQ(c.reports.back().step, 8);
        EXPECT_EQ(c.reports[5].scale, c.reports[4].scale / 2);
    }
}

INSTANTIATE_TEST_SUITE_P(Precisions, Ranks,
                         ::testing::Combine(::testing::Values("fp32", "bf16", "fp16"), ::testing::Values(2, 3),
                                            ::testing::Values(1)),
                         [](const ::testing::TestParamInfo<std::tuple<const char *, int, int>> &i) {
                             return std::string(std::get<0>(i.param)) + "_" + std::to_string(std::get<1>(i.param));
                         });
// In their twins 4, 8, 12 and 5 times 2 are a whole tree, a deep one, and trees with branches of unequal size.
INSTANTIATE_TEST_SUITE_P(MicroBatches, Ranks,
                         ::testing::Values(std::make_tuple("fp32", 2, 2), std::make_tuple("fp16", 2, 4),
                                           std::make_tuple("bf16", 3, 4), std::make_tuple("fp16", 5, 2)),
                         [](const ::testing::TestParamInfo<std::tuple<const char *, int, int>> &i) {
                             return std::string(std::get<0>(i.param)) + "_" + std::to_string(std::get<1>(i.param)) +
                                    "_of_" + std::to_string(std::get<2>(i.param));
                         });

TEST(RanksThatDiffer, PlantedSampleIsFound) {
    const Change change = [](Samples &b, int32_t rank, int step) {
        if (rank == 1 && step == 1) b.x[3] += 1e-3f;
    };
    const Course twin = OfTwin(Compile("fp32", 2), 2, 2, 1, {});
    const Course got = OfRanks(Compile("fp32", 1), 2, 2, 1, change)[0];
    ExpectFound("another sample of rank 1", "rank 0: another checkpoint", [&] { ExpectSame(got, twin, "rank 0"); });
}

// Dropout of attention counts from the place of the first sample among all ranks' samples; the number of the
// micro-batch is 0 then, a constant.
std::string AttentionText(const std::string &name, amp_emit emit) {
    amp_compile_options options = {};
    options.distribute = "data";
    options.emit = emit;
    std::ifstream in(e2e::compile_to_file("amp 1\nmodel attends(x: f32[N, 64]) -> logits {\n"
                                          "    h = reshape(x; shape = [N, 4, 16])\n"
                                          "    h = self_attention(h; heads = 2, p = 0.25) as attn\n"
                                          "    logits = linear(reshape(h; shape = [N, 64]); out = 5) as fc\n}\n"
                                          "train attends {\n    input targets: i32[N]\n"
                                          "    loss = cross_entropy(logits, targets)\n"
                                          "    optimizer = adamw(lr = 0.01)\n}\nprecision bf16 { }\n",
                                          name, options));
    return {std::istreambuf_iterator<char>(in), {}};
}

TEST(RanksThatAttend, ReadNoCounterThatIsNone) {
    const std::string c = AttentionText("attends.c", AMP_EMIT_C);
    EXPECT_NE(c.find(".micro = INT64_C(0), .first = *(const int64_t *)a->buffer["), std::string::npos);
    EXPECT_EQ(c.find("buffer[-1]"), std::string::npos);
    const std::string cuda = AttentionText("attends.cu", AMP_EMIT_CU);
    EXPECT_NE(cuda.find("rule.micro = INT64_C(0);"), std::string::npos);
    EXPECT_NE(cuda.find("rule.first = *b"), std::string::npos);
}

// ---- what a step moves, and what it takes ---------------------------------------------------------------------------

TEST(WhatRanksExchange, IsKnownAhead) {
    for (int accumulate : {1, 2})
        for (int32_t ranks : {2, 3}) {
            const std::string model = Compile("bf16", accumulate, "tree");
            const e2e::Inspected told(model, kCapacity, ranks);
            e2e::Network network(ranks);
            e2e::on_ranks(ranks, [&](int32_t rank) {
                Training t(model, kCapacity, 1, 3, false, nullptr, network.Comm(rank));
                ASSERT_TRUE(t.ok());
                amp_memory_info memory;
                amp_session_get_memory(t.session, &memory);
                EXPECT_EQ(memory.total, told.total) << "rank " << rank << " of " << ranks;
                network.Begin(rank, 0);
                Course c;
                for (int micro = 0; micro < accumulate; micro++) StepOnce(t, rank, ranks, micro, {}, &c);
                ASSERT_EQ(c.reports.size(), 1u);
            });
            ASSERT_EQ(network.transfers().size(), told.messages.size());
            EXPECT_EQ(told.messages.size(), 4u); // gradients, statistics, measures, and what ranks compare
            for (size_t i = 0; i < told.messages.size(); i++) {
                EXPECT_EQ(network.transfers()[i].bytes, told.messages[i].bytes) << told.messages[i].what;
                EXPECT_EQ(network.transfers()[i].what, told.messages[i].what);
            }
        }
}

// ---- what ranks do not agree on -------------------------------------------------------------------------------------

struct Setting {
    std::string model;
    int64_t capacity = kCapacity;
    uint64_t seed = 3;
    bool inference = false;
};

// What amp_session_create says to a rank that it answers with |status|.
std::string Answer(const Setting &s, amp_comm *comm, amp_status status) {
    amp_error err = {};
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp::SessionOptions o;
    o.capacity.n = s.capacity;
    o.seed = s.seed;
    o.program = s.inference ? "infer" : nullptr;
    o.threads = 1;
    o.comm = comm;
    EXPECT_EQ(amp_model_load(s.model.c_str(), nullptr, &model, &err), AMP_OK) << err.message;
    EXPECT_EQ(amp_params_create(model, nullptr, &params, &err), AMP_OK) << err.message;
    EXPECT_EQ(amp_session_create(model, params, &o, &session, &err), status);
    EXPECT_EQ(session == nullptr, status != AMP_OK);
    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
    return err.message;
}

void ExpectRefused(const Setting &first, const Setting &second, const std::string &why) {
    e2e::Network network(2);
    e2e::on_ranks(2, [&](int32_t rank) {
        const std::string said = Answer(rank ? second : first, network.Comm(rank), AMP_MISMATCH);
        EXPECT_EQ(said.compare(0, why.size(), why), 0) << "rank " << rank << ": " << said;
        EXPECT_NE(said.find("start all ranks with the same model, options and version"), std::string::npos);
    });
}

TEST(RanksThatDiffer, AreRefused) {
    amp_compile_options options = {};
    options.distribute = "data";
    const Setting same = {Compile("fp32", 1)};
    Setting other = same;
    other.capacity = 8;
    ExpectRefused(same, other, "rank 1 has another capacity (samples of a micro-batch) than rank 0: 8 instead of 16");
    other = same;
    other.seed = 4;
    ExpectRefused(same, other, "rank 1 has another seed than rank 0: 4 instead of 3");
    other = same;
    other.model = Compile("bf16", 1);
    ExpectRefused(same, other, "rank 1 has another model text (SHA-256) than rank 0: ");
    other.model = e2e::compile_to_file(e2e::mlp("fp32"), "another.so", options);
    ExpectRefused(same, other, "rank 1 has another model than rank 0: mlp instead of small");
    other.model = Compile("fp32", 2);
    ExpectRefused(same, other, "rank 1 has another model text (SHA-256) than rank 0: ");
    // the same text by another policy, and without fusion
    options.precision = "fp16";
    other.model = e2e::compile_to_file(Text("fp32", 1), "precision.so", options);
    ExpectRefused(same, other, "rank 1 has another policy (SHA-256) than rank 0: ");
    options.precision = nullptr;
    options.no_pass = "fuse";
    other.model = e2e::compile_to_file(Text("fp32", 1), "unfused.so", options);
    ExpectRefused(same, other, "rank 1 has another compilation of the model (SHA-256 of its IR) than rank 0: ");
}

TEST(RanksThatDiffer, NeedAModelThatCanBeDivided) {
    Setting alone = {e2e::compile_to_file(Text("fp32", 1), "alone.so")};
    e2e::Network network(2);
    EXPECT_THAT(Answer(alone, network.Comm(0), AMP_INVALID_ARGUMENT),
                testing::HasSubstr("small was compiled to train alone, and there are 2 ranks; compile it with "
                                   "--distribute data"));
    alone.inference = true; // trains nothing, and so asks no rank
    Answer(alone, network.Comm(0), AMP_OK);
}

// Ordered sums promise the bits of the twin.
void ExpectNoOrder(const std::string &model, const char *why) {
    e2e::Network network(2);
    e2e::on_ranks(2, [&](int32_t rank) {
        const std::string said = Answer({model}, network.Comm(rank), AMP_INVALID_ARGUMENT);
        EXPECT_NE(said.find(why), std::string::npos) << said;
    });
}

TEST(RanksInOrder, NeedAnOrderThatDoesNotDependOnThem) {
    ExpectNoOrder(Compile("fp32", 2), "compile the model with --accumulate-order tree");
    ExpectNoOrder(Compile("fp32", 3, "tree"), "each has 3 micro-batches");
}

// A program that sets a learning rate or a weight on one rank alone.
TEST(RanksThatDrift, AreNamed) {
    for (const bool weight : {false, true}) {
        const std::string model = Compile("fp32", 1);
        e2e::Network network(2);
        e2e::on_ranks(2, [&](int32_t rank) {
            Training t(model, kCapacity, 1, 3, false, nullptr, network.Comm(rank));
            ASSERT_TRUE(t.ok());
            Samples b(rank, 2, 0);
            ASSERT_EQ(amp_step(t.session, b.inputs(), {b.n, 0}, nullptr, &t.err), AMP_OK) << t.err.message;
            if (rank == 1 && weight) {
                const std::vector<float> w(33 * 5, 0.25f);
                ASSERT_EQ(amp_params_set(t.params, "fc2.weight", w.data(), w.size(), &t.err), AMP_OK) << t.err.message;
            } else if (rank == 1) {
                ASSERT_EQ(amp_session_set_lr(t.session, 0, 0.5, &t.err), AMP_OK) << t.err.message;
            }
            amp_status status = AMP_OK;
            for (int step = 0; step < 20 && !status; step++) // each compares one weight
                status = amp_step(t.session, b.inputs(), {b.n, 0}, nullptr, &t.err);
            EXPECT_EQ(status, AMP_MISMATCH);
            EXPECT_NE(strstr(t.err.message, weight ? "rank 1 has drifted from rank 0: other weights"
                                                   : "rank 1 has drifted from rank 0: another loss scale"),
                      nullptr)
                << t.err.message;
        });
    }
}

// Whatever a rank had before.
TEST(RanksThatStart, HaveTheWeightsOfTheFirst) {
    const std::string model = Compile("fp32", 1);
    e2e::Network network(2);
    std::vector<std::vector<float>> before(2), after(2);
    e2e::on_ranks(2, [&](int32_t rank) {
        amp_error err = {};
        Training own(model, kCapacity, 1, 3 + static_cast<uint64_t>(rank));
        ASSERT_TRUE(own.ok());
        before[static_cast<size_t>(rank)] = e2e::all_params(own);
        amp::SessionOptions o;
        o.capacity.n = kCapacity;
        o.threads = 1;
        o.comm = network.Comm(rank);
        amp_session *session = nullptr;
        ASSERT_EQ(amp_session_create(own.model, own.params, &o, &session, &err), AMP_OK) << err.message;
        after[static_cast<size_t>(rank)] = e2e::all_params(own);
        amp_session_release(session);
    });
    EXPECT_FALSE(e2e::same_bits(before[0], before[1]));
    EXPECT_TRUE(e2e::same_bits(after[0], before[0]));
    EXPECT_TRUE(e2e::same_bits(after[1], before[0]));
}

} // namespace
