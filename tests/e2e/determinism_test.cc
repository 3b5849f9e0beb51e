// Results are a function of the model and the data: not of threads, fusion, layout, the run, or an interruption.
#include <algorithm>
#include <cmath>
#include <map>

#include "tests/base/planted.h"
#include "tests/e2e/harness.h"

namespace {

using e2e::Training;

class Determinism : public ::testing::TestWithParam<const char *> {};

// The same small model for several tests, compiled once.
std::string plain(const std::string &precision) {
    static std::map<std::string, std::string> paths;
    std::string &path = paths[precision];
    if (path.empty()) path = e2e::compile_to_file(e2e::mlp(precision), "plain-" + precision + ".so");
    return path;
}

std::vector<float> trained(const std::string &path, int threads, int steps = 5, int64_t n = 45) {
    Training r(path, 64, threads);
    if (!r.ok()) return {};
    e2e::train(r, steps, n);
    return e2e::all_params(r);
}

TEST_P(Determinism, ThreadsDoNotChangeBits) {
    amp_compile_options options = {};
    options.isa = "v4"; // and those below: sessions choose the machine's
    std::string path =
        e2e::compile_to_file(e2e::mlp(GetParam(), 70, 130), std::string("threads-") + GetParam() + ".so", options);
    std::vector<float> one;
    for (int threads : {1, 2, 3, 8}) {
        Training r(path, 200, threads);
        ASSERT_TRUE(r.ok());
        e2e::train(r, 4, 150, 70);
        if (threads == 1) one = e2e::all_params(r);
        else EXPECT_TRUE(e2e::same_bits(one, e2e::all_params(r))) << threads << " threads";
    }
}

TEST_P(Determinism, RunningTwiceGivesTheSameBits) {
    const std::string path = plain(GetParam());
    EXPECT_TRUE(e2e::same_bits(trained(path, 2), trained(path, 2)));
}

// The same samples the other way round: sums are added up in another order.
TEST_P(Determinism, PlantedOrderOfASumIsFound) {
    Training one(plain(GetParam()), 64), other(plain(GetParam()), 64);
    ASSERT_TRUE(one.ok() && other.ok());
    e2e::Batch b(45, 19, 10, 100), turned = b;
    for (int64_t i = 0; i < b.n; i++) {
        turned.y[size_t(i)] = b.y[size_t(b.n - 1 - i)];
        std::copy_n(&b.x[size_t(b.n - 1 - i) * 19], 19, &turned.x[size_t(i) * 19]);
    }
    double loss[2];
    ASSERT_EQ(amp_eval(one.session, b.inputs(), {b.n, 0}, &loss[0], nullptr, &one.err), AMP_OK);
    ASSERT_EQ(amp_eval(other.session, turned.inputs(), {b.n, 0}, &loss[1], nullptr, &other.err), AMP_OK);
    EXPECT_NEAR(loss[0], loss[1], 1e-6);
    ASSERT_EQ(amp_step(one.session, b.inputs(), {b.n, 0}, nullptr, &one.err), AMP_OK);
    ASSERT_EQ(amp_step(other.session, turned.inputs(), {b.n, 0}, nullptr, &other.err), AMP_OK);
    ExpectFound("another order of samples", "same_bits",
                [&] { EXPECT_TRUE(e2e::same_bits(e2e::all_params(one), e2e::all_params(other))); });
}

TEST_P(Determinism, FusionAndLayoutDoNotChangeBits) {
    std::string name = GetParam();
    amp_compile_options no_fuse = {}, no_layout = {};
    no_fuse.no_pass = "fuse";
    no_layout.no_pass = "layout";
    const std::vector<float> as_it_is = trained(plain(name), 1);
    EXPECT_TRUE(
        e2e::same_bits(as_it_is, trained(e2e::compile_to_file(e2e::mlp(name), "nofuse-" + name + ".so", no_fuse), 1)))
        << "--no-pass=fuse";
    EXPECT_TRUE(e2e::same_bits(as_it_is,
                               trained(e2e::compile_to_file(e2e::mlp(name), "nolayout-" + name + ".so", no_layout), 1)))
        << "--no-pass=layout";
}

TEST_P(Determinism, ResumedTrainingEqualsUninterrupted) {
    const std::string path = plain(GetParam());
    std::string checkpoint = e2e::temp_path(std::string("resume-") + GetParam() + ".st");
    Training whole(path, 64), first(path, 64), second(path, 64, 1, 99);
    ASSERT_TRUE(whole.ok() && first.ok() && second.ok());
    e2e::train(whole, 8);
    e2e::train(first, 4);
    ASSERT_EQ(amp_checkpoint_save(first.session, checkpoint.c_str(), "here", &first.err), AMP_OK) << first.err.message;
    char extra[16];
    ASSERT_EQ(amp_checkpoint_load(second.session, checkpoint.c_str(), extra, sizeof extra, &second.err), AMP_OK)
        << second.err.message;
    EXPECT_STREQ(extra, "here");
    e2e::train(second, 4, 45, 19, 10, 4);
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(whole), e2e::all_params(second)));
}

TEST_P(Determinism, OneModelManyBatchSizesAndSessions) {
    const std::string path = plain(GetParam());
    Training r(path, 64);
    ASSERT_TRUE(r.ok());
    amp::SessionOptions o;
    o.capacity.n = 33;
    o.program = "infer";
    o.threads = 2;
    amp_session *infer = nullptr;
    ASSERT_EQ(amp_session_create(r.model, r.params, &o, &infer, &r.err), AMP_OK) << r.err.message;
    e2e::train(r, 2, 64);
    e2e::train(r, 2, 1);
    e2e::train(r, 2, 33);
    e2e::Batch b(33, 19, 10, 5);
    std::vector<float> all(33 * 10), one(10);
    void *outputs[] = {all.data()};
    ASSERT_EQ(amp_infer(infer, b.inputs(), {33, 0}, outputs, &r.err), AMP_OK) << r.err.message;
    for (int i : {0, 7, 32}) {
        const void *sample[] = {&b.x[static_cast<size_t>(i) * 19]};
        void *out[] = {one.data()};
        ASSERT_EQ(amp_infer(infer, sample, {1, 0}, out, &r.err), AMP_OK) << r.err.message;
        EXPECT_EQ(0, memcmp(one.data(), &all[static_cast<size_t>(i) * 10], 10 * sizeof(float))) << "sample " << i;
    }
    EXPECT_EQ(amp_infer(infer, b.inputs(), {34, 0}, outputs, &r.err), AMP_INVALID_ARGUMENT);
    amp_session_release(infer);
}

// Images in panels, strides, groups, tokens, norms.
std::string images(const std::string &precision) {
    return "amp 1\nmodel images(x: f32[N, 3, 9, 7]) -> logits {\n"
           "    h = relu(batch_norm(conv2d(x; out = 33, kernel = 3, padding = 1)))\n"
           "    h = relu(conv2d(h; out = 64, kernel = 3, stride = 2, padding = 1))\n"
           "    h = conv2d(h; out = 64, kernel = 3, padding = 1, groups = 2)\n"
           "    t = layer_norm(permute(reshape(h; shape = [N, 64, 20]); dims = (0, 2, 1)))\n"
           "    s = softmax(matmul(linear(t; out = 40), transpose(linear(t; out = 40))) * 0.15)\n"
           "    logits = linear(mean(matmul(s, t); dims = 1); out = 5)\n}\n"
           "train images {\n    input targets: i32[N]\n    loss = cross_entropy(logits, targets)\n"
           "    optimizer = sgd(lr = 0.01)\n}\nprecision " +
           precision + " { }\n";
}

// In the session's memory, past the rows of a smaller call.
TEST_P(Determinism, WhatALargerCallLeftDoesNotMatter) {
    struct {
        std::string path;
        int in, classes;
    } const cases[] = {{plain(GetParam()), 19, 10},
                       {e2e::compile_to_file(images(GetParam()), std::string("images-") + GetParam() + ".so"), 189, 5}};
    for (const auto &c : cases) {
        Training clean(c.path, 64), used(c.path, 64);
        ASSERT_TRUE(clean.ok() && used.ok());
        for (int64_t n : {33, 1, 6}) {
            e2e::Batch none(64, c.in, c.classes, 7);
            none.x.assign(none.x.size(), NAN);
            double loss;
            ASSERT_EQ(amp_eval(used.session, none.inputs(), {64, 0}, &loss, nullptr, &used.err), AMP_OK);
            EXPECT_TRUE(std::isnan(loss));
            EXPECT_EQ(e2e::train(clean, 1, n, c.in, c.classes), e2e::train(used, 1, n, c.in, c.classes)) << n;
        }
        EXPECT_TRUE(e2e::same_bits(e2e::all_params(clean), e2e::all_params(used))) << c.path;
    }
}

TEST_P(Determinism, TrainingLearns) {
    const std::string path = plain(GetParam());
    Training r(path, 64);
    ASSERT_TRUE(r.ok());
    e2e::Batch b(45, 19, 10, 1);
    amp_step_report report;
    double first = 0;
    for (int i = 0; i < 200; i++) {
        ASSERT_EQ(amp_step(r.session, b.inputs(), {45, 0}, &report, &r.err), AMP_OK) << r.err.message;
        if (i == 0) first = report.loss;
    }
    EXPECT_NEAR(first, 2.3, 0.4);
    EXPECT_LT(report.loss, 0.1);
    double loss, acc;
    ASSERT_EQ(amp_eval(r.session, b.inputs(), {45, 0}, &loss, &acc, &r.err), AMP_OK) << r.err.message;
    EXPECT_GT(acc, 0.95);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Determinism, ::testing::Values("fp32", "tf32", "bf16", "fp16"),
                         [](const ::testing::TestParamInfo<const char *> &i) { return std::string(i.param); });

} // namespace
