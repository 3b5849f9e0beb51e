// What an observer of a session is told (amp_session_observe): every kernel, in order, with the values that a session
// with keep_values has, and nothing changes.  On the CPU, and on the stand-in for CUDA.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
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
    EXPECT_EQ(amp_session_get_value(t.session, name, &info, nullptr, 0, &t.err), AMP_OK) << t.err.message;
    size_t count = 1;
    for (int i = 0; i < info.rank; i++) count *= static_cast<size_t>(info.dims[i]);
    std::vector<float> data(count);
    EXPECT_EQ(amp_session_get_value(t.session, name, &info, data.data(), count * sizeof(float), &t.err), AMP_OK)
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
    ASSERT_EQ(amp_step(seen.session, batch.inputs(), {45, 0}, &report, &seen.err), AMP_OK) << seen.err.message;
    ASSERT_EQ(amp_step(kept.session, batch.inputs(), {45, 0}, &other, &kept.err), AMP_OK) << kept.err.message;
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
    Training t(e2e::compile_to_file(e2e::mlp("fp16", 19, 136, 10), "observed_failing.so"), 45);
    ASSERT_TRUE(t.ok());
    Notes notes;
    notes.fail_at = 2;
    const amp_observer observer = observer_of(notes);
    ASSERT_EQ(amp_session_observe(t.session, &observer, &t.err), AMP_OK);
    Batch batch(45, 19, 10, 100);
    amp_step_report report;
    EXPECT_EQ(amp_step(t.session, batch.inputs(), {45, 0}, &report, &t.err), AMP_CANCELLED);
    EXPECT_STREQ(t.err.message, "enough");
    EXPECT_EQ(notes.kernels.size(), 3u);
    ASSERT_EQ(amp_session_observe(t.session, nullptr, &t.err), AMP_OK);
    EXPECT_EQ(amp_step(t.session, batch.inputs(), {45, 0}, &report, &t.err), AMP_OK) << t.err.message;
}

// ---- counting ----

uint32_t bits_of(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits & 0x7FFFFFFF;
}

const std::vector<uint32_t> &bounds() {
#define AS_ELEMENT(bound) bound,
    static const std::vector<uint32_t> list = {AMP_BIN_BOUNDS(AS_ELEMENT)};
#undef AS_ELEMENT
    return list;
}

// As amp/observe.h says it.
amp_number_bins bins_of(const std::vector<float> &data) {
    amp_number_bins bins = {};
    for (const float number : data) {
        const uint32_t bits = bits_of(number);
        uint32_t bin = bits >> 23;
        for (const uint32_t bound : bounds()) bin += bound <= bits;
        bins.count[bin]++;
        if (bits < 0x7F800000 && bits > bins.largest) bins.largest = bits;
    }
    return bins;
}

void expect_same(const amp_number_bins &bins, const amp_number_bins &expected, const std::string &name) {
    EXPECT_EQ(bins.largest, expected.largest) << name;
    for (int b = 0; b < AMP_NUMBER_BINS; b++) EXPECT_EQ(bins.count[b], expected.count[b]) << name << ", bin " << b;
}

struct Counts {
    bool reads = false;
    std::map<std::string, amp_number_bins> counted; // stay where they are
    std::map<std::string, std::vector<float>> read;
};

amp_status count(void *user, const amp_observed_kernel *kernel, amp_error *err) {
    Counts &counts = *static_cast<Counts *>(user);
    amp_operand operand;
    for (int32_t i = 0; kernel->operand(kernel, i, &operand); i++) {
        const bool is_float = operand.dtype >= AMP_DT_F32 && operand.dtype <= AMP_DT_TF32;
        amp_number_bins other = {};
        if (operand.kind == AMP_OPERAND_INPUT) {
            EXPECT_EQ(kernel->count_numbers(kernel, i, &other, err), AMP_UNSUPPORTED);
            continue;
        }
        if (!is_float && operand.count) {
            EXPECT_EQ(kernel->count_numbers(kernel, i, &other, err), AMP_INVALID_ARGUMENT) << operand.name;
        }
        if (!operand.written || !is_float || !operand.count) continue;
        const std::string name = operand.name + std::string(" ") + std::to_string(operand.buffer);
        EXPECT_EQ(kernel->count_numbers(kernel, i, &counts.counted[name], err), AMP_OK) << err->message;
        if (!counts.reads) continue;
        std::vector<float> &data = counts.read[name];
        data.resize(static_cast<size_t>(operand.count));
        EXPECT_EQ(kernel->read(kernel, i, data.data(), data.size() * sizeof(float), err), AMP_OK) << err->message;
    }
    EXPECT_EQ(kernel->count_numbers(kernel, kernel->operand_count, &counts.counted[""], err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(kernel->count_numbers(kernel, 0, nullptr, err), AMP_INVALID_ARGUMENT);
    return AMP_OK;
}

amp_observer counter_of(Counts &counts) {
    amp_observer o = {};
    o.struct_size = sizeof o;
    o.user = &counts;
    o.kernel = count;
    o.does_not_wait = 1;
    return o;
}

void count_step(Training &t, Counts &counts, int64_t n) {
    const amp_observer observer = counter_of(counts);
    ASSERT_EQ(amp_session_observe(t.session, &observer, &t.err), AMP_OK) << t.err.message;
    Batch batch(n, 19, 10, 100);
    amp_step_report report;
    ASSERT_EQ(amp_step(t.session, batch.inputs(), {n, 0}, &report, &t.err), AMP_OK) << t.err.message;
    ASSERT_EQ(amp_session_observe(t.session, nullptr, &t.err), AMP_OK) << t.err.message;
}

TEST_F(ObserveTest, CountsTheNumbersThatAreRead) {
    for (const std::string precision : {"fp16", "bf16", "fp32"}) {
        if (e2e::device() && precision != "fp16" && !getenv("FAKECUDA_DEVICES")) continue; // in on_cuda_all_test
        const std::string path = e2e::compile_to_file(e2e::mlp(precision), "counted_" + precision + ".so");
        for (const int64_t n : {45, 600}) { // 600: more than one block of a panel
            if (e2e::device() && n > 45) continue;
            Training t(path, n, 2);
            ASSERT_TRUE(t.ok());
            Counts counts;
            counts.reads = true;
            count_step(t, counts, n);
            EXPECT_GT(counts.read.size(), 5u);
            for (const auto &[name, data] : counts.read)
                expect_same(counts.counted[name], bins_of(data), precision + " " + name);
        }
    }
}

// Where nothing is waited for between kernels.
TEST_F(ObserveTest, CountsTheSameWithoutReading) {
    const std::string path = e2e::compile_to_file(e2e::mlp("fp16"), "counted_alone.so");
    Training one(path, 45), other(path, 45);
    ASSERT_TRUE(one.ok() && other.ok());
    Counts read, alone;
    read.reads = true;
    count_step(one, read, 45);
    count_step(other, alone, 45);
    ASSERT_EQ(alone.counted.size(), read.counted.size());
    for (const auto &[name, bins] : alone.counted) expect_same(bins, read.counted[name], name);
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(one), e2e::all_params(other)));
}

// Each bound, what is next to it, and zero; two counts in one.
TEST_F(ObserveTest, CountsAParameterByEveryBound) {
    Training t(e2e::compile_to_file(e2e::mlp("fp32"), "counted_param.so"), 1);
    ASSERT_TRUE(t.ok());
    std::vector<float> data(19 * 37);
    for (size_t i = 0; i < data.size(); i++) {
        const uint32_t bound = bounds()[i % (bounds().size() - 1)]; // the last one is of NaN
        const uint32_t bits = (bound + static_cast<uint32_t>(i / 9 % 3) - 1) | static_cast<uint32_t>(i % 2) << 31;
        memcpy(&data[i], &bits, sizeof bits);
    }
    data.back() = 0;
    ASSERT_EQ(amp_params_set(t.params, "fc1.weight", data.data(), data.size(), &t.err), AMP_OK) << t.err.message;
    amp_number_bins bins = {}, expected = bins_of(data);
    for (int64_t &count : expected.count) count *= 2;
    for (int i = 0; i < 2; i++)
        ASSERT_EQ(amp_session_count_param(t.session, "fc1.weight", &bins, &t.err), AMP_OK) << t.err.message;
    ASSERT_EQ(amp_session_observe(t.session, nullptr, &t.err), AMP_OK) << t.err.message;
    expect_same(bins, expected, "fc1.weight");
    EXPECT_EQ(amp_session_count_param(t.session, "fc9.weight", &bins, &t.err), AMP_NOT_FOUND);
}

// More tensors than a device has places for.
TEST_F(ObserveTest, CountsManyTensors) {
    Training t(e2e::compile_to_file(e2e::mlp("fp32"), "counted_many.so"), 1);
    ASSERT_TRUE(t.ok());
    enum { TIMES = 1100 };
    std::vector<amp_number_bins> bins(TIMES, amp_number_bins());
    for (amp_number_bins &b : bins)
        ASSERT_EQ(amp_session_count_param(t.session, "fc2.bias", &b, &t.err), AMP_OK) << t.err.message;
    ASSERT_EQ(amp_session_observe(t.session, nullptr, &t.err), AMP_OK) << t.err.message;
    for (const amp_number_bins &b : bins) expect_same(b, bins[0], "fc2.bias");
    EXPECT_EQ(std::accumulate(bins[0].count, bins[0].count + AMP_NUMBER_BINS, int64_t{0}), 37);
}

// What is not finite, in f32 and as f16 and bf16 round it.
std::string squares(const std::string &precision) {
    return "amp 1\n"
           "model squares(x: f32[N, 3]) -> y {\n"
           "    h = linear(x; out = 3) as fc\n"
           "    y = h * h\n"
           "}\n"
           "train squares {\n"
           "    input target: f32[N, 3]\n"
           "    loss      = mse_loss(y, target)\n"
           "    optimizer = sgd(lr = 0.1)\n"
           "}\n"
           "precision " +
           precision + " { }\n";
}

TEST_F(ObserveTest, CountsInfinitiesAndNaN) {
    for (const std::string precision : {"fp16", "bf16", "fp32"}) {
        Training t(e2e::compile_to_file(squares(precision), "counted_broken_" + precision + ".so"), 1);
        ASSERT_TRUE(t.ok());
        const float x[] = {3e38f, -3e38f, NAN}, target[3] = {};
        const void *const inputs[] = {x, target};
        Counts counts;
        counts.reads = true;
        const amp_observer observer = counter_of(counts);
        ASSERT_EQ(amp_session_observe(t.session, &observer, &t.err), AMP_OK);
        amp_step_report report;
        ASSERT_EQ(amp_step(t.session, inputs, {1, 0}, &report, &t.err), AMP_OK) << t.err.message;
        ASSERT_EQ(amp_session_observe(t.session, nullptr, &t.err), AMP_OK);
        int64_t nans = 0;
        for (const auto &[name, data] : counts.read) {
            expect_same(counts.counted[name], bins_of(data), precision + " " + name);
            nans += counts.counted[name].count[AMP_NUMBER_BINS - 1];
        }
        EXPECT_GT(nans, 0) << precision;
    }
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

// Results that are NULL.  |late| is a head of its own; |mid| is a result that |logits| is computed from.
const char kHeads[] = R"(amp 1
model heads(x: f32[N, 19]) -> logits, mid, late {
    mid    = relu(linear(x; out = 37) as fc1)
    logits = linear(mid; out = 10) as fc2
    a      = tanh(linear(mid; out = 24) as fc3)
    late   = softmax(linear(a; out = 5) as fc4)
}
)";

struct Answers {
    std::vector<float> logits, mid, late;
    size_t kernels;
};

Answers infer(Training &t, bool logits, bool mid, bool late) {
    const int64_t n = 33;
    Answers a = {std::vector<float>(33 * 10, -7), std::vector<float>(33 * 37, -7), std::vector<float>(33 * 5, -7), 0};
    const auto count = [](void *user, const amp_observed_kernel *, amp_error *) {
        return ++*static_cast<size_t *>(user), AMP_OK;
    };
    amp_observer observer = {};
    observer.struct_size = sizeof observer, observer.user = &a.kernels, observer.kernel = count;
    Batch batch(n, 19, 10, 5);
    void *outputs[] = {logits ? a.logits.data() : nullptr, mid ? a.mid.data() : nullptr,
                       late ? a.late.data() : nullptr};
    EXPECT_EQ(amp_infer(t.session, batch.inputs(), {n, 0}, outputs, &t.err), AMP_OK) << t.err.message;
    const Answers plain = a;
    EXPECT_EQ(amp_session_observe(t.session, &observer, &t.err), AMP_OK);
    EXPECT_EQ(amp_infer(t.session, batch.inputs(), {n, 0}, outputs, &t.err), AMP_OK) << t.err.message;
    EXPECT_EQ(amp_session_observe(t.session, nullptr, &t.err), AMP_OK);
    EXPECT_TRUE(a.logits == plain.logits && a.mid == plain.mid && a.late == plain.late);
    return a;
}

TEST_F(ObserveTest, AResultThatIsNotWantedIsNotComputed) {
    Training t(e2e::compile_to_file(kHeads, "heads.so"), 40);
    ASSERT_TRUE(t.ok());
    const Answers all = infer(t, true, true, true);
    const std::vector<float> untouched_logits(33 * 10, -7), untouched_late(33 * 5, -7);
    for (int again = 0; again < 2; again++) {
        const Answers first = infer(t, true, false, false), late = infer(t, false, false, true),
                      none = infer(t, false, false, false), mid = infer(t, false, true, false);
        EXPECT_EQ(first.logits, all.logits);
        EXPECT_EQ(first.late, untouched_late);
        EXPECT_EQ(late.late, all.late);
        EXPECT_EQ(late.logits, untouched_logits);
        EXPECT_EQ(mid.mid, all.mid);
        EXPECT_LT(mid.kernels, first.kernels);
        EXPECT_LT(first.kernels, late.kernels);
        EXPECT_LE(late.kernels, all.kernels); // one launch may have both heads
        EXPECT_EQ(none.kernels, 0u);
        const Answers whole = infer(t, true, true, true);
        EXPECT_TRUE(whole.logits == all.logits && whole.mid == all.mid && whole.late == all.late);
        EXPECT_EQ(whole.kernels, all.kernels);
    }
}

} // namespace
