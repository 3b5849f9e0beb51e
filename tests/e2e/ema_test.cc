// ema_test.cc: averages of weights (`ema` of a train block) against their formula: what skipped steps, buffers, blocks
// and micro-batches do to them; what evaluates with them; params that follow others (amp_params_blend).
#include "tests/base/planted.h"
#include "tests/e2e/harness.h"

#include <cmath>

#include "amp/inspect.h"
#include "amp/serve.h"
#include "amp/train.h"
#include "amp/weights.h"

namespace {

using e2e::Batch;
using e2e::Training;
using Ema = e2e::OnDevice;

constexpr int kIn = 19, kClasses = 10;
constexpr int64_t kBatch = 24;
constexpr size_t kWeights = 16 * kIn;

std::string Text(const std::string &precision, const std::string &train) {
    return "amp 1\nmodel m(x: f32[N, 19]) -> logits {\n"
           "    h = relu(batch_norm(linear(x; out = 16) as fc1) as bn)\n    logits = linear(h; out = 10) as fc2\n}\n"
           "train m {\n    input targets: i32[N]\n    loss = cross_entropy(logits, targets)\n"
           "    optimizer = adamw(lr = 0.05)\n    group \"bn.bias\": frozen = true\n" +
           train + "}\nprecision " + precision + " { }\n";
}

std::string Compile(const std::string &precision, const std::string &train = "    ema = 0.75\n") {
    return e2e::compile_to_file(Text(precision, train), "ema-" + precision + (train.empty() ? "-none.so" : ".so"));
}

amp_step_report Step(Training &r, int step, bool overflows = false) {
    Batch b(kBatch, kIn, kClasses, uint32_t(100 + step));
    if (overflows) b.x[3] = 1e30f;
    amp_step_report report = {};
    EXPECT_EQ(amp_step(r.session, b.inputs(), {b.n, 0}, &report, &r.err), AMP_OK) << r.err.message;
    return report;
}

std::vector<float> Average(Training &r, const std::string &of = "fc1.weight", size_t count = kWeights) {
    std::vector<float> data(count);
    EXPECT_EQ(amp_session_get_moment(r.session, (of + "/ema").c_str(), data.data(), count, &r.err), AMP_OK)
        << r.err.message;
    return data;
}

std::vector<float> Param(Training &r, const char *name = "fc1.weight", size_t count = kWeights,
                         const amp_params *params = nullptr) {
    std::vector<float> data(count);
    EXPECT_EQ(amp_params_get(params ? params : r.params, name, data.data(), count, &r.err), AMP_OK) << r.err.message;
    return data;
}

amp_params *Snapshot(Training &r) {
    amp_params *copy = nullptr;
    EXPECT_EQ(amp_params_snapshot(r.params, &copy, &r.err), AMP_OK) << r.err.message;
    return copy;
}

amp_session *Serve(Training &r, amp_params *params, int32_t published = 0) {
    amp_session *session = nullptr;
    amp::SessionOptions o;
    o.capacity.n = kBatch;
    o.threads = 1;
    o.device = published ? nullptr : e2e::device();
    o.program = published ? nullptr : "infer";
    o.published = published;
    EXPECT_EQ(amp_session_create(r.model, params, &o, &session, &r.err), AMP_OK) << r.err.message;
    return session;
}

std::vector<float> Logits(Training &r, amp_session *session) {
    std::vector<float> out(kBatch * kClasses);
    void *to[] = {out.data()};
    Batch b(kBatch, kIn, kClasses, 7);
    EXPECT_EQ(amp_infer(session, b.inputs(), {b.n, 0}, to, &r.err), AMP_OK) << r.err.message;
    return out;
}

// ---- the average ----------------------------------------------------------------------------------------------------

// torch.optim.swa_utils.get_ema_multi_avg_fn: a copy in the first update, then average + (1 - decay) (w - average).
// Steps 0 and 3 overflow in f16.
void Follow(const std::string &precision, float share = 0.25f) {
    Training r(Compile(precision), kBatch);
    ASSERT_TRUE(r.ok());
    std::vector<float> expected(kWeights);
    for (int step = 0, updates = 0; step < 6; step++) {
        const bool overflows = precision == "fp16" && step % 3 == 0;
        ASSERT_EQ(Step(r, step, overflows).skipped, overflows);
        const std::vector<float> w = Param(r), average = Average(r);
        if (!overflows && !updates++) expected = w;
        else if (!overflows)
            for (size_t i = 0; i < kWeights; i++) expected[i] += share * (w[i] - expected[i]);
        for (size_t i = 0; i < kWeights; i++) ASSERT_NEAR(average[i], expected[i], 1e-6) << "step " << step << " " << i;
    }
}

TEST_F(Ema, FollowsTheFormulaInSingle) { Follow("fp32"); }
TEST_F(Ema, CountsNoSkippedStep) { Follow("fp16"); }
TEST_F(Ema, OfOtherDecayIsFound) {
    ExpectFound("another decay", "step ", [] { Follow("bf16", 0.26f); });
}

// Once a step, of the weights that it made.
TEST(EmaOfMicroBatches, CountsUpdates) {
    Training r(Compile("fp32", "    ema = 0.5\n    accumulate = 2\n"), kBatch);
    ASSERT_TRUE(r.ok());
    EXPECT_FALSE(Step(r, 0).complete);
    EXPECT_EQ(Average(r), std::vector<float>(kWeights));
    EXPECT_TRUE(Step(r, 1).complete);
    const std::vector<float> first = Param(r);
    EXPECT_EQ(Average(r), first);
    Step(r, 2), Step(r, 3);
    const std::vector<float> second = Param(r), average = Average(r);
    for (size_t i = 0; i < kWeights; i++) ASSERT_NEAR(average[i], (first[i] + second[i]) / 2, 1e-6);
}

// A block keeps its own, from its own first update on; what is of no such block is what it is.
TEST(EmaOfBlocks, IsOfEachAlone) {
    const std::string path = e2e::compile_to_file(
        "amp 1\nmodel m(x: f32[N, 19]) -> a, b {\n    a = linear(x; out = 16) as g\n"
        "    b = linear(x; out = 16) as d\n}\n"
        "train m for \"g.*\" {\n    loss g = mean(a * a)\n    optimizer = sgd(0.1)\n    ema = 0.5\n"
        "    every = 3\n}\ntrain m for \"d.*\" {\n    loss d = mean(b * b)\n"
        "    optimizer = sgd(0.1)\n}\n",
        "ema-blocks.so");
    Training r(path, kBatch);
    ASSERT_TRUE(r.ok());
    for (int step = 1; step <= 6; step++) {
        Batch b(kBatch, kIn, kClasses, uint32_t(step));
        const std::vector<float> before = Param(r, "g.weight");
        ASSERT_EQ(amp_step(r.session, b.inputs(), {b.n, 0}, nullptr, &r.err), AMP_OK) << r.err.message;
        amp_params *to = Snapshot(r);
        ASSERT_EQ(amp_session_get_averages(r.session, to, &r.err), AMP_OK) << r.err.message;
        EXPECT_EQ(Param(r, "d.weight", kWeights, to), Param(r, "d.weight"));
        const std::vector<float> w = Param(r, "g.weight"), average = Param(r, "g.weight", kWeights, to);
        EXPECT_EQ(average == w, step < 6) << step;
        EXPECT_EQ(Average(r, "g.weight") == std::vector<float>(kWeights), step < 3) << "before its first update";
        amp_params_release(to);
    }
    amp_error err = {};
    EXPECT_EQ(amp_session_get_moment(r.session, "d.weight/ema", std::vector<float>(kWeights).data(), kWeights, &err),
              AMP_NOT_FOUND);
}

TEST(EmaOfNone, IsAnErrorAndTakesNoMemory) {
    Training r(Compile("fp32", ""), kBatch), with(Compile("fp32"), kBatch);
    ASSERT_TRUE(r.ok() && with.ok());
    amp_memory_info none, averages;
    amp_session_get_memory(r.session, &none);
    amp_session_get_memory(with.session, &averages);
    // As much as one of adamw's two moments.
    EXPECT_LE(2 * (averages.moments - none.moments), none.moments);
    EXPECT_GT(2 * (averages.moments - none.moments), none.moments - 1024) << "besides are only counters";
    EXPECT_EQ(amp_session_get_averages(r.session, r.params, &r.err), AMP_WRONG_STATE);
    EXPECT_STREQ(r.err.message, "m keeps no averages; write `ema = 0.999` in its train block");
}

// ---- who takes them -------------------------------------------------------------------------------------------------

// Params of their own: parameters are the averages, frozen ones and buffers what training has.
TEST_F(Ema, EvaluatesPublishesAndSaves) {
    Training r(Compile("fp16"), kBatch);
    ASSERT_TRUE(r.ok());
    amp_params *to = Snapshot(r);
    ASSERT_EQ(amp_session_get_averages(r.session, to, &r.err), AMP_OK) << r.err.message;
    EXPECT_TRUE(e2e::same_bits(e2e::values_of(r.model, to), e2e::all_params(r))) << "before the first step";
    amp_session *serves = Serve(r, to);
    for (int step = 0; step < 4; step++) Step(r, step);
    ASSERT_EQ(amp_session_get_averages(r.session, to, &r.err), AMP_OK) << r.err.message;
    EXPECT_EQ(Param(r, "fc1.weight", kWeights, to), Average(r));
    EXPECT_EQ(Param(r, "bn.weight", 16, to), Average(r, "bn.weight", 16));
    EXPECT_NE(Param(r, "bn.weight", 16, to), Param(r, "bn.weight", 16));
    for (const char *name : {"bn.bias", "bn.running_mean", "bn.running_var"})
        EXPECT_EQ(Param(r, name, 16, to), Param(r, name, 16)) << name;
    EXPECT_EQ(Param(r, "bn.num_batches_tracked", 1, to), std::vector<float>{4});
    const std::vector<float> averaged = Logits(r, serves);
    EXPECT_NE(averaged, Logits(r, r.session));
    amp_session_release(serves);
    // A session whose params are set to the numbers computes the same: the 16-bit copies follow.
    const std::string file = e2e::temp_path("averages.st");
    ASSERT_EQ(amp_params_save(to, file.c_str(), nullptr, &r.err), AMP_OK) << r.err.message;
    Training other(Compile("fp16"), kBatch, 1, 9);
    ASSERT_EQ(amp_params_load(other.params, file.c_str(), nullptr, nullptr, &r.err), AMP_OK) << r.err.message;
    EXPECT_TRUE(e2e::same_bits(Logits(other, other.session), averaged));
    if (!e2e::device()) {
        ASSERT_EQ(amp_params_publish(to, nullptr, &r.err), AMP_OK) << r.err.message;
        amp_session *published = Serve(r, to, 1);
        EXPECT_TRUE(e2e::same_bits(Logits(r, published), averaged));
        amp_session_release(published);
    }
    // Into its own: training goes on from them.
    ASSERT_EQ(amp_session_get_averages(r.session, r.params, &r.err), AMP_OK) << r.err.message;
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(r), e2e::values_of(r.model, to)));
    EXPECT_TRUE(e2e::same_bits(Logits(r, r.session), averaged));
    amp_params_release(to);
}

// Training goes on to the same averages, and a file of a checkpoint serves as one of them.
TEST(EmaOfACheckpoint, GoesOnAndIsLoaded) {
    const std::string path = Compile("fp16"), file = e2e::temp_path("ema.ckpt");
    Training whole(path, kBatch), first(path, kBatch), second(path, kBatch, 1, 8);
    ASSERT_TRUE(whole.ok() && first.ok() && second.ok());
    amp_weights_options o = {};
    o.struct_size = sizeof o;
    o.ema = 1;
    ASSERT_EQ(amp_checkpoint_save(first.session, file.c_str(), nullptr, &first.err), AMP_OK) << first.err.message;
    ASSERT_EQ(amp_params_load(second.params, file.c_str(), &o, nullptr, &second.err), AMP_OK) << second.err.message;
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(second), e2e::all_params(first))) << "before the first step";
    for (int step = 0; step < 6; step++) Step(whole, step, step == 2);
    for (int step = 0; step < 4; step++) Step(first, step, step == 2);
    ASSERT_EQ(amp_checkpoint_save(first.session, file.c_str(), nullptr, &first.err), AMP_OK) << first.err.message;
    ASSERT_EQ(amp_checkpoint_load(second.session, file.c_str(), nullptr, 0, &second.err), AMP_OK) << second.err.message;
    for (int step = 4; step < 6; step++) Step(second, step);
    EXPECT_TRUE(e2e::same_bits(e2e::averages(second), e2e::averages(whole)));

    amp_weights_report report = {};
    ASSERT_EQ(amp_params_load(second.params, file.c_str(), &o, &report, &second.err), AMP_OK) << second.err.message;
    EXPECT_EQ(report.loaded, 9);
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(second), e2e::averages(first)));
    const char *rename[] = {"bn.weight=x", "bn.bias=bn.weight", "x=bn.bias", nullptr};
    o.rename = rename;
    ASSERT_EQ(amp_params_load(second.params, file.c_str(), &o, &report, &second.err), AMP_OK) << second.err.message;
    EXPECT_EQ(Param(second, "bn.bias", 16), Average(first, "bn.weight", 16)) << "rules see the parameter's name";
    o.rename = nullptr;
    const std::string plain = e2e::temp_path("plain.st");
    ASSERT_EQ(amp_params_save(first.params, plain.c_str(), nullptr, &first.err), AMP_OK);
    EXPECT_EQ(amp_params_load(second.params, plain.c_str(), &o, nullptr, &second.err), AMP_MISMATCH);
    EXPECT_EQ(second.err.message, plain +
                                      ": ema: it has no averages (optim/NAME/ema), which checkpoints have of models "
                                      "with `ema = ...` in a train block");
}

// ---- params that follow others --------------------------------------------------------------------------------------

// A target network, on the device where both live: of the parameters t of the way, buffers as they are.
TEST_F(Ema, BlendFollowsATraining) {
    Training r(Compile("fp16"), kBatch);
    ASSERT_TRUE(r.ok());
    amp_params *target = Snapshot(r);
    amp_session *serves = Serve(r, target);
    std::vector<float> expected = Param(r);
    for (int step = 0; step < 3; step++) {
        Step(r, step);
        ASSERT_EQ(amp_params_blend(target, r.params, 0.25, &r.err), AMP_OK) << r.err.message;
        const std::vector<float> w = Param(r), got = Param(r, "fc1.weight", kWeights, target);
        for (size_t i = 0; i < kWeights; i++) expected[i] += 0.25f * (w[i] - expected[i]);
        EXPECT_TRUE(e2e::same_bits(got, expected)) << step;
        EXPECT_EQ(Param(r, "bn.running_mean", 16, target), Param(r, "bn.running_mean", 16));
        EXPECT_EQ(Param(r, "bn.num_batches_tracked", 1, target), std::vector<float>{float(step + 1)});
    }
    EXPECT_NE(Logits(r, serves), Logits(r, r.session));
    ASSERT_EQ(amp_params_blend(target, r.params, 1, &r.err), AMP_OK) << r.err.message;
    EXPECT_TRUE(e2e::same_bits(Logits(r, serves), Logits(r, r.session))) << "what is derived follows";
    EXPECT_TRUE(e2e::same_bits(e2e::values_of(r.model, target), e2e::all_params(r)));
    ASSERT_EQ(amp_session_get_averages(r.session, target, &r.err), AMP_OK) << r.err.message;
    EXPECT_EQ(Param(r, "fc1.weight", kWeights, target), Average(r));
    EXPECT_NE(Logits(r, serves), Logits(r, r.session));
    amp_session_release(serves);
    amp_params_release(target);
}

TEST(EmaBlend, NamesWhatDiffers) {
    Training a(Compile("fp32", ""), kBatch);
    std::string text = Text("fp32", "");
    text.replace(text.find("out = 16"), 8, "out = 17");
    Training b(e2e::compile_to_file(text, "ema-17.so"), kBatch);
    ASSERT_TRUE(a.ok() && b.ok());
    const std::vector<float> before = e2e::all_params(a);
    EXPECT_EQ(amp_params_blend(a.params, b.params, 0.5, &a.err), AMP_MISMATCH);
    EXPECT_STREQ(a.err.message, "amp_params_blend: the params that are read have no fc1.weight of the same shape and "
                                "type: f32[17, 19], not f32[16, 19]");
    for (const double t : {-0.1, 1.5, double(NAN)})
        EXPECT_EQ(amp_params_blend(a.params, a.params, t, &a.err), AMP_INVALID_ARGUMENT) << t;
    EXPECT_STREQ(a.err.message,
                 "amp_params_blend: t is nan, and goes from 0, which changes nothing, to 1, which copies");
    EXPECT_EQ(amp_params_blend(a.params, a.params, 0.5, &a.err), AMP_OK);
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(a), before));
}

} // namespace
