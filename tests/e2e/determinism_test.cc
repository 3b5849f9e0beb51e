// Results are a function of the model and the data: not of threads, fusion, layout, the run, or an interruption.
#include <map>

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

TEST_P(Determinism, FusionAndLayoutDoNotChangeBits) {
    std::string name = GetParam();
    amp_compile_options no_fuse = {}, no_layout = {};
    no_fuse.no_fuse = 1;
    no_layout.no_layout = 1;
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
    amp_session_options o = {};
    o.struct_size = sizeof o;
    o.capacity = 33;
    o.inference = 1;
    o.threads = 2;
    amp_session *infer = nullptr;
    ASSERT_EQ(amp_session_create(r.model, r.params, &o, &infer, &r.err), AMP_OK) << r.err.message;
    e2e::train(r, 2, 64);
    e2e::train(r, 2, 1);
    e2e::train(r, 2, 33);
    e2e::Batch b(33, 19, 10, 5);
    std::vector<float> all(33 * 10), one(10);
    void *outputs[] = {all.data()};
    ASSERT_EQ(amp_infer(infer, b.inputs(), 33, outputs, &r.err), AMP_OK) << r.err.message;
    for (int i : {0, 7, 32}) {
        const void *sample[] = {&b.x[static_cast<size_t>(i) * 19]};
        void *out[] = {one.data()};
        ASSERT_EQ(amp_infer(infer, sample, 1, out, &r.err), AMP_OK) << r.err.message;
        EXPECT_EQ(0, memcmp(one.data(), &all[static_cast<size_t>(i) * 10], 10 * sizeof(float))) << "sample " << i;
    }
    EXPECT_EQ(amp_infer(infer, b.inputs(), 34, outputs, &r.err), AMP_INVALID_ARGUMENT);
    amp_session_release(infer);
}

TEST_P(Determinism, TrainingLearns) {
    const std::string path = plain(GetParam());
    Training r(path, 64);
    ASSERT_TRUE(r.ok());
    e2e::Batch b(45, 19, 10, 1);
    amp_step_report report;
    double first = 0;
    for (int i = 0; i < 200; i++) {
        ASSERT_EQ(amp_step(r.session, b.inputs(), 45, &report, &r.err), AMP_OK) << r.err.message;
        if (i == 0) first = report.loss;
    }
    EXPECT_NEAR(first, 2.3, 0.4);
    EXPECT_LT(report.loss, 0.1);
    double loss, acc;
    ASSERT_EQ(amp_eval(r.session, b.inputs(), 45, &loss, &acc, &r.err), AMP_OK) << r.err.message;
    EXPECT_GT(acc, 0.95);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Determinism, ::testing::Values("fp32", "tf32", "bf16", "fp16"),
                         [](const ::testing::TestParamInfo<const char *> &i) { return std::string(i.param); });

} // namespace
