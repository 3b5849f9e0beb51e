// What an observer of a session is told (amp_session_observe): every kernel, in order, with the values that a session
// with keep_values has, and nothing changes.  On the CPU, and on the stand-in for CUDA.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/e2e/harness.h"

namespace {

using e2e::Batch;
using e2e::Training;

using ObserveTest = e2e::OnDevice;

// What was written, by name; only floats.
struct Notes {
    std::map<std::string, std::vector<float>> values;
    std::vector<int32_t> kernels;
    std::vector<std::string> inputs, states;
    int32_t fail_at = -1;
};

void add_once(std::vector<std::string> &list, const char *name) {
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
}

amp_status note(void *user, const amp_observed_kernel *kernel, amp_error *err) {
    Notes &notes = *static_cast<Notes *>(user);
    notes.kernels.push_back(kernel->index);
    EXPECT_STREQ(kernel->program, "train_step");
    if (kernel->index == notes.fail_at) {
        snprintf(err->message, sizeof err->message, "enough");
        return AMP_CANCELLED;
    }
    amp_operand operand;
    for (int32_t i = 0; kernel->operand(kernel, i, &operand); i++) {
        if (operand.kind == AMP_OPERAND_INPUT) add_once(notes.inputs, operand.name);
        if (operand.kind == AMP_OPERAND_STATE) add_once(notes.states, operand.name);
        const bool is_float = operand.dtype >= AMP_DT_F32 && operand.dtype <= AMP_DT_TF32;
        if (!operand.written || !is_float || !operand.count) continue;
        std::vector<float> &data = notes.values[operand.name];
        data.resize(static_cast<size_t>(operand.count));
        EXPECT_EQ(kernel->read(kernel, i, data.data(), data.size() * sizeof(float), err), AMP_OK) << err->message;
        EXPECT_EQ(kernel->read(kernel, i, data.data(), 1, err), AMP_INVALID_ARGUMENT);
    }
    EXPECT_EQ(kernel->read(kernel, kernel->operand_count, nullptr, 0, err), AMP_INVALID_ARGUMENT);
    return AMP_OK;
}

amp_observer observer_of(Notes &notes) {
    amp_observer o = {};
    o.struct_size = sizeof o;
    o.user = &notes;
    o.kernel = note;
    return o;
}

std::vector<float> kept_value(Training &t, const char *name) {
    amp_tensor_info info;
    EXPECT_EQ(amp_session_value(t.session, name, &info, nullptr, 0, &t.err), AMP_OK) << t.err.message;
    size_t count = 1;
    for (int i = 0; i < info.rank; i++) count *= static_cast<size_t>(info.dims[i]);
    std::vector<float> data(count);
    EXPECT_EQ(amp_session_value(t.session, name, &info, data.data(), count * sizeof(float), &t.err), AMP_OK)
        << t.err.message;
    return data;
}

TEST_F(ObserveTest, ToldEveryKernelAndTheValuesOfTheStep) {
    const std::string path = e2e::compile_to_file(e2e::mlp("fp16"), "observed.so");
    Training seen(path, 45), kept(path, 45, 1, 3, true);
    ASSERT_TRUE(seen.ok() && kept.ok());
    Notes notes;
    const amp_observer observer = observer_of(notes);
    ASSERT_EQ(amp_session_observe(seen.session, &observer, &seen.err), AMP_OK) << seen.err.message;
    Batch batch(45, 19, 10, 100);
    amp_step_report report, other;
    ASSERT_EQ(amp_step(seen.session, batch.inputs(), 45, &report, &seen.err), AMP_OK) << seen.err.message;
    ASSERT_EQ(amp_step(kept.session, batch.inputs(), 45, &other, &kept.err), AMP_OK) << kept.err.message;
    EXPECT_EQ(report.loss, other.loss);
    for (size_t i = 0; i < notes.kernels.size(); i++) EXPECT_EQ(notes.kernels[i], static_cast<int32_t>(i));
    std::sort(notes.inputs.begin(), notes.inputs.end());
    EXPECT_EQ(notes.inputs, (std::vector<std::string>{"targets", "x"}));
    EXPECT_NE(std::find(notes.states.begin(), notes.states.end(), "fc1.weight"), notes.states.end());
    int compared = 0;
    for (const auto &[name, data] : notes.values) {
        EXPECT_TRUE(e2e::same_bits(data, kept_value(kept, name.c_str()))) << name;
        compared++;
    }
    EXPECT_GT(compared, 5);
}

TEST_F(ObserveTest, ChangesNoBitAndEndsWhenItIsTakenAway) {
    const std::string path = e2e::compile_to_file(e2e::mlp("fp16"), "observed_bits.so");
    Training seen(path, 45), alone(path, 45);
    ASSERT_TRUE(seen.ok() && alone.ok());
    Notes notes;
    const amp_observer observer = observer_of(notes);
    ASSERT_EQ(amp_session_observe(seen.session, &observer, &seen.err), AMP_OK);
    e2e::train(seen, 2);
    ASSERT_EQ(amp_session_observe(seen.session, nullptr, &seen.err), AMP_OK);
    const size_t told = notes.kernels.size();
    e2e::train(seen, 2, 45, 19, 10, 2);
    EXPECT_EQ(notes.kernels.size(), told);
    e2e::train(alone, 4);
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(seen), e2e::all_params(alone)));
}

TEST_F(ObserveTest, AnObserverThatFailsEndsTheStep) {
    Training t(e2e::compile_to_file(e2e::mlp("fp16"), "observed_failing.so"), 45);
    ASSERT_TRUE(t.ok());
    Notes notes;
    notes.fail_at = 2;
    const amp_observer observer = observer_of(notes);
    ASSERT_EQ(amp_session_observe(t.session, &observer, &t.err), AMP_OK);
    Batch batch(45, 19, 10, 100);
    amp_step_report report;
    EXPECT_EQ(amp_step(t.session, batch.inputs(), 45, &report, &t.err), AMP_CANCELLED);
    EXPECT_STREQ(t.err.message, "enough");
    EXPECT_EQ(notes.kernels.size(), 3u);
    ASSERT_EQ(amp_session_observe(t.session, nullptr, &t.err), AMP_OK);
    EXPECT_EQ(amp_step(t.session, batch.inputs(), 45, &report, &t.err), AMP_OK) << t.err.message;
}

TEST_F(ObserveTest, RefusesAnObserverWithoutAFunction) {
    Training t(e2e::compile_to_file(e2e::mlp("fp16"), "observed_wrong.so"), 1);
    ASSERT_TRUE(t.ok());
    amp_observer observer = {};
    EXPECT_EQ(amp_session_observe(t.session, &observer, &t.err), AMP_INVALID_ARGUMENT);
    observer.struct_size = sizeof observer;
    EXPECT_EQ(amp_session_observe(t.session, &observer, &t.err), AMP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(t.err.message).find("kernel"), std::string::npos) << t.err.message;
}

} // namespace
