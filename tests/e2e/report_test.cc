// Reports of steps that no call waited for, on the CPU and on the stand-in for a GPU: the same bits as if a call had
// waited for them, in the order of the steps, however late somebody asks.
#include "tests/e2e/harness.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace {

using e2e::Training;
using Reports = e2e::OnDevice;

// Two losses with names, a metric of samples and one of averages, gradients' norm; steps of |accumulate| micro-batches.
const std::string &model(int accumulate, const std::string &metrics = "metric ppl = exp(loss)") {
    static std::map<std::string, std::string> paths;
    std::string &path = paths[std::to_string(accumulate) + metrics];
    if (path.empty())
        path = e2e::compile_to_file("amp 1\n"
                                    "model two(x: f32[N, 19]) -> logits {\n"
                                    "    h      = relu(linear(x; out = 37) as fc1)\n"
                                    "    logits = linear(h; out = 10) as fc2\n"
                                    "}\n"
                                    "train two {\n"
                                    "    input targets: i32[N]\n"
                                    "    loss fit   = cross_entropy(logits, targets)\n"
                                    "    loss decay = 0.01 * mean(logits * logits)\n"
                                    "    metric acc = accuracy(logits, targets)\n"
                                    "    " +
                                        metrics +
                                        "\n"
                                        "    optimizer = adamw(lr = 0.01)\n"
                                        "    clip_norm = 1.0\n"
                                        "    accumulate = " +
                                        std::to_string(accumulate) +
                                        "\n"
                                        "}\n"
                                        "precision fp16 { loss_scale = dynamic(init = 1024.0, interval = 4) }\n",
                                    "reports" + std::to_string(paths.size()) + ".so");
    return path;
}

// What a call of amp_step left.
struct Told {
    amp_step_report report = {};
    double losses[2] = {}, metrics[2] = {};
    amp_status status = AMP_OK;
};

void expect_same(const Told &a, const Told &b, const std::string &what) {
    SCOPED_TRACE(what);
    EXPECT_EQ(a.status, b.status);
    EXPECT_EQ(memcmp(&a.report.loss, &b.report.loss, sizeof a.report.loss), 0) << a.report.loss << " " << b.report.loss;
    EXPECT_EQ(memcmp(&a.report.grad_norm, &b.report.grad_norm, sizeof a.report.grad_norm), 0)
        << a.report.grad_norm << " " << b.report.grad_norm;
    EXPECT_EQ(a.report.scale, b.report.scale);
    EXPECT_EQ(a.report.skipped, b.report.skipped);
    EXPECT_EQ(a.report.step, b.report.step);
    EXPECT_EQ(a.report.iteration, b.report.iteration);
    EXPECT_EQ(a.report.at_floor, b.report.at_floor);
    EXPECT_EQ(a.report.complete, b.report.complete);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(memcmp(&a.losses[i], &b.losses[i], sizeof a.losses[i]), 0) << a.losses[i] << " " << b.losses[i];
        EXPECT_EQ(memcmp(&a.metrics[i], &b.metrics[i], sizeof a.metrics[i]), 0) << a.metrics[i] << " " << b.metrics[i];
    }
}

// The batch of call |i|; every fifth overflows.
e2e::Batch batch_of(int i) {
    e2e::Batch batch(30 - 7 * (i % 3), 19, 10, 50u + static_cast<uint32_t>(i));
    if (i % 5 == 2) batch.x[17] = std::numeric_limits<float>::infinity();
    return batch;
}

Told waited(Training &r, int i) {
    Told told;
    e2e::Batch batch = batch_of(i);
    told.status = amp_step(r.session, batch.inputs(), {batch.n, 0}, &told.report, &r.err);
    EXPECT_EQ(amp_session_get_losses(r.session, told.losses, &r.err), AMP_OK) << r.err.message;
    EXPECT_EQ(amp_session_get_metrics(r.session, told.metrics, &r.err), AMP_OK) << r.err.message;
    return told;
}

std::vector<Told> waited_all(Training &r, int calls) {
    std::vector<Told> all;
    for (int i = 0; i < calls; i++) all.push_back(waited(r, i));
    return all;
}

void start(Training &r, int i, amp_status expected = AMP_OK) {
    e2e::Batch batch = batch_of(i);
    EXPECT_EQ(amp_step(r.session, batch.inputs(), {batch.n, 0}, nullptr, &r.err), expected) << r.err.message;
}

bool next(Training &r, bool wait, Told *told) {
    int32_t there = -1;
    told->status = amp_session_next_report(r.session, wait, &told->report, told->losses, told->metrics, &there, &r.err);
    EXPECT_TRUE(there == 0 || there == 1) << there;
    return there == 1;
}

bool is_on_host() { return !e2e::device(); }

TEST_F(Reports, HaveTheBitsOfStepsThatAreWaitedFor) {
    for (int accumulate : {1, 3})
        for (const char *metric :
             {"metric ppl = exp(loss)", "metric top = accuracy(logits, targets)", "metric ppl = exp(fit)"}) {
            Training asked(model(accumulate, metric), 30), late(model(accumulate, metric), 30);
            ASSERT_TRUE(asked.ok() && late.ok());
            const int calls = 24;
            std::vector<Told> expected = waited_all(asked, calls), told;
            Told one;
            for (int i = 0; i < calls; i++) {
                start(late, i);
                while (next(late, i - static_cast<int>(told.size()) >= 5, &one)) told.push_back(one);
                EXPECT_TRUE(!is_on_host() || told.size() == i + 1u) << "there when amp_step returns";
            }
            while (next(late, true, &one)) told.push_back(one);
            ASSERT_EQ(told.size(), expected.size());
            int skipped = 0, complete = 0;
            for (int i = 0; i < calls; i++) {
                expect_same(told[i], expected[i],
                            "accumulate " + std::to_string(accumulate) + ", call " + std::to_string(i));
                const double fit = told[i].losses[0];
                if (strstr(metric, "fit") && std::isfinite(fit)) {
                    EXPECT_NEAR(told[i].metrics[1] / std::exp(fit), 1, 1e-5) << "call " << i;
                }
                skipped += told[i].report.skipped, complete += told[i].report.complete;
            }
            EXPECT_GT(skipped, 2);
            EXPECT_EQ(complete, calls / accumulate);
            EXPECT_TRUE(e2e::same_bits(e2e::all_params(asked), e2e::all_params(late)));
        }
}

// Somebody who comes late finds the last ones; waiting for all of them at once is as good.
TEST_F(Reports, OfTheLastCallsAreKept) {
    Training asked(model(1), 30), late(model(1), 30);
    ASSERT_TRUE(asked.ok() && late.ok());
    const int calls = AMP_KEPT_REPORTS + 5;
    std::vector<Told> expected = waited_all(asked, calls);
    for (int i = 0; i < calls; i++) start(late, i);
    Told told;
    for (int i = calls - AMP_KEPT_REPORTS; i < calls; i++) {
        ASSERT_TRUE(next(late, true, &told)) << i;
        expect_same(told, expected[static_cast<size_t>(i)], "call " + std::to_string(i));
    }
    EXPECT_FALSE(next(late, true, &told)) << "each is given once";
    EXPECT_EQ(told.status, AMP_OK);
}

// Dropped while their metrics are being computed.
TEST_F(Reports, AreDroppedInTheMiddleToo) {
    Training asked(model(1), 30), late(model(1), 30);
    ASSERT_TRUE(asked.ok() && late.ok());
    const int calls = 6 * AMP_KEPT_REPORTS;
    std::vector<Told> expected = waited_all(asked, calls);
    Told told;
    int64_t last = 0;
    for (int i = 0; i < calls; i++) {
        start(late, i);
        if (i % 11 != 10) continue;
        for (int more = 0; more < 3 && next(late, more != 1, &told); more++) {
            EXPECT_GT(told.report.iteration, last);
            last = told.report.iteration;
            expect_same(told, expected[static_cast<size_t>(last) - 1], "iteration " + std::to_string(last));
        }
    }
    EXPECT_GT(last, calls - 2 * AMP_KEPT_REPORTS);
}

// Steps with a report, evaluation, counters and checkpoints leave what is kept as it is.
TEST_F(Reports, StayWhatTheyWere) {
    Training asked(model(1), 30), late(model(1), 30);
    ASSERT_TRUE(asked.ok() && late.ok());
    std::vector<Told> expected = waited_all(asked, 3);
    e2e::Batch other(30, 19, 10, 9);
    double loss, metrics[2], losses[2];
    amp_scaler_state scaler;
    const std::string path = e2e::temp_path("reports.ckpt");
    Told told;
    for (int i = 0; i < 3; i++) {
        start(late, i);
        ASSERT_EQ(amp_session_get_metrics(late.session, metrics, &late.err), AMP_OK) << late.err.message;
        ASSERT_EQ(amp_eval(late.session, other.inputs(), {30, 0}, &loss, metrics, &late.err), AMP_OK)
            << late.err.message;
    }
    ASSERT_EQ(amp_session_get_scaler(late.session, &scaler, &late.err), AMP_OK);
    ASSERT_EQ(amp_checkpoint_save(late.session, path.c_str(), "", &late.err), AMP_OK) << late.err.message;
    amp_step_report report;
    ASSERT_EQ(amp_step(late.session, other.inputs(), {30, 0}, &report, &late.err), AMP_OK) << late.err.message;
    ASSERT_EQ(amp_session_get_losses(late.session, losses, &late.err), AMP_OK);
    ASSERT_EQ(amp_checkpoint_load(late.session, path.c_str(), nullptr, 0, &late.err), AMP_OK) << late.err.message;
    scaler.scale = 2;
    ASSERT_EQ(amp_session_set_scaler(late.session, &scaler, &late.err), AMP_OK) << late.err.message;
    for (int i = 0; i < 3; i++) {
        ASSERT_TRUE(next(late, true, &told)) << i;
        expect_same(told, expected[static_cast<size_t>(i)], "call " + std::to_string(i));
    }
    EXPECT_FALSE(next(late, true, &told)) << "who waited for a report has it";
}

TEST_F(Reports, NeedNoLossesAndMetrics) {
    Training asked(model(1), 30), late(model(1), 30);
    ASSERT_TRUE(asked.ok() && late.ok());
    std::vector<Told> expected = waited_all(asked, 6);
    for (int i = 0; i < 6; i++) start(late, i);
    amp_step_report report;
    int32_t there;
    for (int i = 0; i < 4; i++) {
        ASSERT_EQ(amp_session_next_report(late.session, 1, &report, nullptr, nullptr, &there, &late.err), AMP_OK);
        ASSERT_EQ(there, 1);
        EXPECT_EQ(memcmp(&report.loss, &expected[static_cast<size_t>(i)].report.loss, sizeof report.loss), 0);
    }
    Told told;
    ASSERT_TRUE(next(late, true, &told)) << "asked for metrics after others were given without";
    expect_same(told, expected[4], "call 4");
}

TEST_F(Reports, SayThatTheScaleIsAtItsFloor) {
    Training asked(model(1), 30), late(model(1), 30);
    ASSERT_TRUE(asked.ok() && late.ok());
    const amp_scaler_state low = {1, 0, 0, 0, 0, 0};
    ASSERT_EQ(amp_session_set_scaler(asked.session, &low, &asked.err), AMP_OK);
    ASSERT_EQ(amp_session_set_scaler(late.session, &low, &late.err), AMP_OK);
    std::vector<Told> expected;
    std::vector<std::string> messages;
    for (int i = 0; i < 4; i++) { // call 2 overflows
        e2e::Batch batch = batch_of(i);
        Told t;
        t.status = amp_step(asked.session, batch.inputs(), {batch.n, 0}, &t.report, &asked.err);
        messages.push_back(t.status ? asked.err.message : "");
        ASSERT_EQ(amp_session_get_losses(asked.session, t.losses, &asked.err), AMP_OK);
        ASSERT_EQ(amp_session_get_metrics(asked.session, t.metrics, &asked.err), AMP_OK);
        expected.push_back(t);
    }
    for (int i = 0; i < 4; i++) {
        e2e::Batch batch = batch_of(i);
        const amp_status status = amp_step(late.session, batch.inputs(), {batch.n, 0}, nullptr, &late.err);
        EXPECT_TRUE(status == AMP_OK || (status == AMP_SCALE_AT_FLOOR && i >= 2)) << i << ": " << late.err.message;
        EXPECT_TRUE(!is_on_host() || status == expected[static_cast<size_t>(i)].status) << i;
    }
    Told told;
    for (size_t i = 0; i < 4; i++) {
        ASSERT_TRUE(next(late, true, &told)) << i;
        expect_same(told, expected[i], "call " + std::to_string(i));
        EXPECT_EQ(told.status, i < 2 ? AMP_OK : AMP_SCALE_AT_FLOOR);
        EXPECT_EQ(told.status ? late.err.message : "", messages[i]);
    }
}

TEST_F(Reports, OfCallsThatFailedAreNone) {
    Training r(model(1), 30);
    ASSERT_TRUE(r.ok());
    Told told;
    EXPECT_FALSE(next(r, true, &told)) << "no step yet";
    EXPECT_EQ(told.status, AMP_OK) << r.err.message;
    e2e::Batch batch(30, 19, 10, 1);
    EXPECT_EQ(amp_step(r.session, batch.inputs(), {31, 0}, nullptr, &r.err), AMP_INVALID_ARGUMENT);
    EXPECT_FALSE(next(r, true, &told));
    EXPECT_EQ(amp_session_next_report(r.session, 0, nullptr, nullptr, nullptr, nullptr, &r.err), AMP_INVALID_ARGUMENT);
    EXPECT_NE(strstr(r.err.message, "report is NULL"), nullptr) << r.err.message;
}

} // namespace
