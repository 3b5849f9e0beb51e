// shares_test.cc: ranks with a share of the moments each (zero1) make the steps of ranks with all of them (data), and
// hold what amprun info says that they hold.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "amp/model_abi.h"
#include "tests/e2e/ranks.h"

namespace {

using e2e::Batch;
using e2e::Training;

constexpr int kFeatures = 70, kClasses = 5;
constexpr int64_t kCapacity = 16;

struct Case {
    const char *name, *precision; // the word and its block
    const char *train;            // lines of the train block
    int32_t ranks;
    const char *order = "left";
    bool exact = true; // the same bits; else norms are added in another order
};

// Weights of one tile and of many, vectors, a weight in rows that ranks divide (table) and one that they do not (gain).
std::string Text(const Case &c) {
    return std::string("amp 1\nmodel small(x: f32[N, 70]) -> logits {\n"
                       "    param table: f32[3, 2, 32] = normal(std = 0.1)\n"
                       "    param gain: f32[70, 1] = ones()\n"
                       "    h = x * reshape(gain; shape = [70])\n"
                       "    h = relu(batch_norm(linear(h; out = 96) as fc1) as bn)\n"
                       "    h = reshape(h; shape = [N, 3, 32]) + reshape(sum(table; dims = 1); shape = [3, 32])\n"
                       "    h = dropout(reshape(h; shape = [N, 96]); p = 0.1) as drop\n"
                       "    logits = linear(h; out = 5) as fc2\n}\n"
                       "train small {\n    input targets: i32[N]\n    loss = cross_entropy(logits, targets)\n"
                       "    metric acc = accuracy(logits, targets)\n    ") +
           c.train + "\n}\nprecision " + c.precision + "\n";
}

std::string Compile(const Case &c, const char *distribute) {
    amp_compile_options options = {};
    options.distribute = distribute;
    options.accumulate_order = c.order;
    return e2e::compile_to_file(Text(c), std::string(c.name) + "-" + distribute + ".so", options);
}

struct Course {
    std::vector<amp_step_report> reports;
    std::vector<float> params, averages;
    std::string tensors; // of the checkpoint that rank 0 has written
    uint64_t moments = 0;
};

void Step(Training &t, int32_t rank, int32_t ranks, int step, Course *c) {
    Batch b(kCapacity, kFeatures, kClasses, static_cast<uint32_t>(100 + step * ranks + rank));
    if (step == 5 && rank == ranks - 1) b.x[kFeatures + 3] = 1e30f; // f16 overflows: all skip
    amp_step_report report;
    ASSERT_EQ(amp_step(t.session, b.inputs(), {b.n, 0}, &report, &t.err), AMP_OK) << t.err.message;
    if (report.complete) c->reports.push_back(report);
}

void Save(Training &t, const std::string &path) {
    ASSERT_EQ(amp_checkpoint_save(t.session, path.c_str(), "", &t.err), AMP_OK) << t.err.message;
}

void Load(Training &t, const std::string &path) {
    ASSERT_EQ(amp_checkpoint_load(t.session, path.c_str(), nullptr, 0, &t.err), AMP_OK) << t.err.message;
}

std::vector<Course> Train(const Case &c, const std::string &model, int steps, const std::string &from = "") {
    std::vector<Course> courses(static_cast<size_t>(c.ranks));
    e2e::Network network(c.ranks);
    const std::string path = e2e::temp_path(std::string(c.name) + ".st");
    std::remove((path + ".not-written").c_str());
    e2e::on_ranks(c.ranks, [&](int32_t rank) {
        Course &course = courses[static_cast<size_t>(rank)];
        Training t(model, kCapacity, 1, 3, false, nullptr, network.Comm(rank));
        ASSERT_TRUE(t.ok());
        if (!from.empty()) Load(t, from);
        amp_memory_info memory;
        amp_session_get_memory(t.session, &memory);
        course.moments = memory.moments;
        const int first = from.empty() ? 0 : 100;
        for (int s = first; s < first + steps; s++) Step(t, rank, c.ranks, s, &course);
        Save(t, rank ? path + ".not-written" : path);
        course.params = e2e::all_params(t);
        if (strstr(c.train, "ema")) course.averages = e2e::averages(t);
    });
    courses[0].tensors = e2e::read_tensors(path);
    EXPECT_FALSE(std::ifstream(path + ".not-written").good() && model.find("zero1") != std::string::npos);
    return courses;
}

void ExpectClose(const std::vector<float> &a, const std::vector<float> &b) {
    ASSERT_EQ(a.size(), b.size());
    double worst = 0;
    for (size_t i = 0; i < a.size(); i++) worst = std::max(worst, std::fabs(double(a[i]) - b[i]));
    EXPECT_LT(worst, 2e-4);
}

void ExpectSame(const Case &c, const Course &got, const Course &want) {
    ASSERT_EQ(got.reports.size(), want.reports.size());
    for (size_t i = 0; i < want.reports.size(); i++) {
        const amp_step_report &a = got.reports[i], &b = want.reports[i];
        EXPECT_EQ(a.skipped, b.skipped) << i;
        EXPECT_EQ(a.scale, b.scale) << i;
        EXPECT_TRUE(!c.exact || a.loss == b.loss || (a.loss != a.loss && b.loss != b.loss)) << i;
        EXPECT_TRUE(c.exact || a.skipped || std::fabs(a.grad_norm / b.grad_norm - 1) < 1e-5) << i;
    }
    EXPECT_TRUE(!c.exact || e2e::same_bits(got.params, want.params));
    ExpectClose(got.params, want.params);
    EXPECT_TRUE(!c.exact || e2e::same_bits(got.averages, want.averages));
}

class Shares : public ::testing::TestWithParam<Case> {};

TEST_P(Shares, MakeTheStepsOfWholeStates) {
    const Case &c = GetParam();
    const auto whole = Train(c, Compile(c, "data"), 8);
    const auto shared = Train(c, Compile(c, "zero1"), 8);
    for (const Course &of : shared) ExpectSame(c, of, whole[0]);
    ASSERT_EQ(shared[0].tensors.size(), whole[0].tensors.size());
    EXPECT_TRUE(!c.exact || shared[0].tensors == whole[0].tensors) << "another checkpoint";
}

const Case cases[] = {
    {"fp32", "fp32 { }", "optimizer = adamw(lr = 0.01)", 2},
    {"fp32by3", "fp32 { }", "optimizer = adamw(lr = 0.01)", 3},
    {"fp16", "fp16 { loss_scale = dynamic(init = 65536.0, interval = 3) }",
     "optimizer = adam(lr = 0.01)\n    ema = 0.9", 2},
    {"fp16by5", "fp16 { loss_scale = dynamic(init = 65536.0, interval = 3) }", "optimizer = adam(lr = 0.01)", 5},
    {"bf16", "bf16 { }", "optimizer = sgd(lr = 0.05, momentum = 0.9)\n    accumulate = 2", 2, "tree"},
    {"sums", "bf16 { }", "optimizer = adagrad(lr = 0.05, initial_accumulator_value = 0.1)", 2},
    {"plain", "bf16 { }", "optimizer = sgd(lr = 0.05)", 3},
    {"low", "bf16 {\n    masters = bf16\n    moments = bf16\n}", "optimizer = adamw(lr = 0.01)", 3},
    {"low8", "bf16 { moments = f8 }", "optimizer = adamw(lr = 0.01)", 2},
    {"clipped", "fp32 { }", "optimizer = sgd(lr = 0.05, momentum = 0.9)\n    clip_norm = 0.1", 3, "left", false},
};
INSTANTIATE_TEST_SUITE_P(Models, Shares, ::testing::ValuesIn(cases),
                         [](const ::testing::TestParamInfo<Case> &i) { return std::string(i.param.name); });

// Squares that f32 does not hold, of a rank's share or of all.
TEST(SharesOfClipping, LargeGradientsAreClippedToTheNorm) {
    for (const char *distribute : {"data", "zero1"}) {
        amp_compile_options options = {};
        options.distribute = distribute;
        const std::string model =
            e2e::compile_to_file("amp 1\nmodel m(x: f32[N, 64]) -> y {\n    param w: f32[64, 64] = zeros()\n"
                                 "    param gain: f32[64, 1] = zeros()\n    y = matmul(x, w) + matmul(x, "
                                 "gain)\n}\ntrain m {\n    input t: f32[N, 1]\n    loss = mean(y * t)\n"
                                 "    optimizer = sgd(1.0)\n    clip_norm = 1.0\n}\nprecision fp32 { }\n",
                                 std::string("large-") + distribute + ".so", options);
        for (float size : {1e10f, 3e19f, 1e30f, 3e38f}) {
            SCOPED_TRACE(testing::Message() << distribute << " " << size);
            e2e::Network network(3);
            e2e::on_ranks(3, [&](int32_t rank) {
                Training t(model, kCapacity, 1, 3, false, nullptr, network.Comm(rank));
                ASSERT_TRUE(t.ok());
                const std::vector<float> x(kCapacity * 64, 1), y(kCapacity, size);
                const void *inputs[] = {x.data(), y.data()};
                amp_step_report report = {};
                ASSERT_EQ(amp_step(t.session, inputs, {kCapacity, 0}, &report, &t.err), AMP_OK) << t.err.message;
                const double g = size / 64.0, norm = std::sqrt(64 * 64 * g * g + 64.0 * size * size);
                if (norm > std::numeric_limits<float>::max()) EXPECT_EQ(report.grad_norm, INFINITY);
                else EXPECT_NEAR(report.grad_norm / norm, 1, 1e-5);
                std::vector<float> w(64 * 64), gain(64);
                ASSERT_EQ(amp_params_get(t.params, "w", w.data(), w.size(), &t.err), AMP_OK);
                ASSERT_EQ(amp_params_get(t.params, "gain", gain.data(), gain.size(), &t.err), AMP_OK);
                for (float v : w) ASSERT_NEAR(v, -g / norm, 1e-7);
                for (float v : gain) ASSERT_NEAR(v, -size / norm, 1e-6);
            });
        }
    }
}

// A checkpoint is whole: other numbers of ranks go on from it, and so does one rank alone, with the bits of ranks that
// have all states.
TEST(SharedCheckpoints, AreGoneOnFromByAnyNumberOfRanks) {
    Case c = cases[2];
    const auto first = Train(c, Compile(c, "zero1"), 4);
    const std::string path = e2e::temp_path("went-on.st");
    ASSERT_EQ(std::rename(e2e::temp_path(std::string(c.name) + ".st").c_str(), path.c_str()), 0);
    for (int32_t ranks : {2, 3}) {
        c.ranks = ranks;
        const auto shared = Train(c, Compile(c, "zero1"), 3, path), whole = Train(c, Compile(c, "data"), 3, path);
        ASSERT_EQ(shared[0].reports.size(), 3u);
        for (const Course &of : shared) ExpectSame(c, of, whole[0]);
        EXPECT_TRUE(shared[0].tensors == whole[0].tensors) << "another checkpoint";
    }
    Training alone(Compile(c, "zero1"), kCapacity);
    ASSERT_TRUE(alone.ok());
    EXPECT_EQ(amp_session_has_shares(alone.session), 0);
    Load(alone, path);
    Save(alone, path + ".again");
    EXPECT_TRUE(e2e::read_tensors(path + ".again") == first[0].tensors);
}

// Moments by name are whole, on every rank.
TEST(SharedMoments, AreReadAndSetAsWholeOnes) {
    const Case &c = cases[1];
    e2e::Network network(c.ranks);
    const std::string model = Compile(c, "zero1");
    e2e::on_ranks(c.ranks, [&](int32_t rank) {
        Training t(model, kCapacity, 1, 3, false, nullptr, network.Comm(rank));
        ASSERT_TRUE(t.ok());
        EXPECT_EQ(amp_session_has_shares(t.session), 1);
        for (const char *name : {"fc1.weight/m", "table/v", "fc2.bias/m", "gain/m"}) {
            const size_t count = !strcmp(name, "fc1.weight/m") ? 96 * 70
                                 : name[0] == 't'              ? 192
                                 : name[0] == 'g'              ? 70
                                                               : 5;
            std::vector<float> set(count), got(count, -1);
            for (size_t i = 0; i < count; i++) set[i] = static_cast<float>(i) / 8;
            ASSERT_EQ(amp_session_set_moment(t.session, name, set.data(), count, &t.err), AMP_OK) << t.err.message;
            ASSERT_EQ(amp_session_get_moment(t.session, name, got.data(), count, &t.err), AMP_OK) << t.err.message;
            EXPECT_TRUE(e2e::same_bits(got, set)) << name << " on rank " << rank;
        }
    });
}

// The states that a rank holds, less those that it holds under data: of moments its share.
TEST(SharedMemory, IsKnownAhead) {
    for (const Case &c : cases) {
        const std::string model = Compile(c, "zero1");
        const e2e::Inspected told(model, kCapacity, c.ranks), whole(Compile(c, "data"), kCapacity, c.ranks);
        for (uint64_t moments : whole.moments) EXPECT_EQ(moments, whole.all_moments) << c.name;
        EXPECT_EQ(told.all_moments, whole.all_moments) << c.name;
        // Two moments: parts are rounded up to whole units of 1024 elements; gain, of 96 x 32 in panels, all have.
        for (uint64_t moments : told.moments)
            EXPECT_LE(moments, told.all_moments / static_cast<uint64_t>(c.ranks) + 2 * (2 * 4096 + 12288)) << c.name;
        e2e::Network network(c.ranks);
        e2e::on_ranks(c.ranks, [&](int32_t rank) {
            Training t(model, kCapacity, 1, 3, false, nullptr, network.Comm(rank));
            ASSERT_TRUE(t.ok());
            amp_memory_info memory;
            amp_session_get_memory(t.session, &memory);
            if (rank) return;
            EXPECT_EQ(memory.moments, told.memory.moments) << c.name;
            EXPECT_EQ(memory.params, told.memory.params) << c.name;
            EXPECT_EQ(memory.total, told.total) << c.name;
        });
    }
}

// If a step reads only copies of weights in 16 bits, a rank keeps its share of their masters: between steps they
// are whole on all ranks, within one they are away, and when the session ends the params have them again.
TEST(SharedMasters, AreWholeBetweenSteps) {
    Case c = cases[4];
    std::vector<std::vector<float>> after(2);
    const e2e::Inspected told(Compile(c, "zero1"), kCapacity, 2), whole(Compile(c, "data"), kCapacity, 2);
    EXPECT_LT(told.memory.params, whole.memory.params * 3 / 4); // gain and vectors are whole
    const std::string model = Compile(c, "zero1");
    e2e::Network network(2);
    e2e::on_ranks(2, [&](int32_t rank) {
        Training t(model, kCapacity, 1, 3, false, nullptr, network.Comm(rank));
        ASSERT_TRUE(t.ok());
        const size_t count = 96 * 70;
        std::vector<float> set(count), got(count);
        for (size_t i = 0; i < count; i++) set[i] = static_cast<float>(i % 7) / 64;
        ASSERT_EQ(amp_params_set(t.params, "fc1.weight", set.data(), count, &t.err), AMP_OK) << t.err.message;
        Course course;
        Step(t, rank, 2, 0, &course);
        EXPECT_EQ(amp_params_get(t.params, "fc1.weight", got.data(), count, &t.err), AMP_WRONG_STATE);
        EXPECT_THAT(t.err.message, testing::HasSubstr("the weights of small are not here: a step of ranks"));
        EXPECT_EQ(amp_params_set(t.params, "fc1.weight", set.data(), count, &t.err), AMP_WRONG_STATE);
        Step(t, rank, 2, 1, &course);
        ASSERT_EQ(amp_params_get(t.params, "fc1.weight", got.data(), count, &t.err), AMP_OK) << t.err.message;
        double furthest = 0;
        for (size_t i = 0; i < count; i++) furthest = std::max(furthest, std::fabs(double(got[i]) - set[i]));
        EXPECT_GT(furthest, 0);
        EXPECT_LT(furthest, 0.1);
        const std::vector<float> before = e2e::all_params(t);
        amp_session_release(t.session);
        t.session = nullptr;
        after[static_cast<size_t>(rank)] = e2e::all_params(t);
        EXPECT_TRUE(e2e::same_bits(after[static_cast<size_t>(rank)], before));
    });
    EXPECT_TRUE(e2e::same_bits(after[0], after[1]));
}

// Other sessions on the params: one that was there before keeps masters whole; later ones are refused.
TEST(SharedMasters, AndOtherSessions) {
    const Case &c = cases[2];
    const std::string model = Compile(c, "zero1");
    for (bool before : {false, true}) {
        e2e::Network network(2);
        e2e::on_ranks(2, [&](int32_t rank) {
            amp_error err = {};
            amp::SessionOptions o;
            o.capacity.n = kCapacity;
            o.threads = 1;
            o.program = "infer";
            amp_model *loaded = nullptr;
            amp_params *params = nullptr;
            amp_session *serves = nullptr, *trains = nullptr;
            ASSERT_EQ(amp_model_load(model.c_str(), nullptr, &loaded, &err), AMP_OK) << err.message;
            ASSERT_EQ(amp_params_create(loaded, nullptr, &params, &err), AMP_OK) << err.message;
            if (before) {
                ASSERT_EQ(amp_session_create(loaded, params, &o, &serves, &err), AMP_OK) << err.message;
            }
            o.program = nullptr;
            o.comm = network.Comm(rank);
            ASSERT_EQ(amp_session_create(loaded, params, &o, &trains, &err), AMP_OK) << err.message;
            o.comm = nullptr;
            o.program = "infer";
            if (!before) {
                EXPECT_EQ(amp_session_create(loaded, params, &o, &serves, &err), AMP_WRONG_STATE);
                EXPECT_THAT(err.message, testing::HasSubstr("a session has shares of the masters (zero1)"));
            }
            Batch b(kCapacity, kFeatures, kClasses, 7);
            std::vector<float> own(kCapacity * kClasses), other(own.size());
            void *to[] = {own.data()}, *to_other[] = {other.data()};
            ASSERT_EQ(amp_step(trains, b.inputs(), {b.n, 0}, nullptr, &err), AMP_OK) << err.message;
            ASSERT_EQ(amp_infer(trains, b.inputs(), {b.n, 0}, to, &err), AMP_OK) << err.message;
            amp_session_release(trains);
            if (!before) {
                ASSERT_EQ(amp_session_create(loaded, params, &o, &serves, &err), AMP_OK) << err.message;
            }
            ASSERT_EQ(amp_infer(serves, b.inputs(), {b.n, 0}, to_other, &err), AMP_OK) << err.message;
            EXPECT_TRUE(e2e::same_bits(own, other));
            amp_session_release(serves);
            amp_params_release(params);
            amp_model_release(loaded);
        });
    }
}

// A model whose tables would give ranks wrong shares is refused when it is loaded.
struct Tables {
    std::vector<amp_model_collective> collectives;
    std::vector<amp_model_state> states;
    std::vector<amp_model_program> programs;
    std::vector<amp_model_kernel> apply;
    amp_model_cuda cuda;
    std::vector<amp_model_cuda_program> cuda_programs;
    std::vector<amp_model_cuda_kernel> cuda_apply;
    amp_model_cuda_part part;
    amp_model_cuda_grid grid;

    amp_model_collective &Of(uint32_t op) {
        return *std::find_if(collectives.begin(), collectives.end(), [op](const auto &c) { return c.op == op; });
    }
    amp_model_state &State(const char *name) {
        return *std::find_if(states.begin(), states.end(), [name](const auto &s) { return !strcmp(s.name, name); });
    }
    amp_model_kernel &Kernel(const char *title) {
        return *std::find_if(apply.begin(), apply.end(), [title](const auto &k) { return strstr(k.title, title); });
    }
    amp_model_cuda_kernel &CudaUpdate() {
        return *std::find_if(cuda_apply.begin(), cuda_apply.end(), [](const auto &k) { return k.shares; });
    }
    amp_model_cuda_part &CudaPart() {
        amp_model_cuda_kernel &k = CudaUpdate();
        part = *k.parts.at;
        grid = *part.grids;
        part.grids = &grid;
        k.parts.at = &part;
        return part;
    }
};

template <typename T> std::vector<T> CopyOf(const amp_model_table &t) {
    EXPECT_EQ(t.elem_size, sizeof(T));
    return {static_cast<const T *>(t.data), static_cast<const T *>(t.data) + t.count};
}

template <typename T> void Put(amp_model_table *to, const std::vector<T> &from) {
    *to = {static_cast<uint32_t>(from.size()), sizeof(T), from.data()};
}

const amp_model_desc *damaged; // what amp_model_from_static is given

std::string Refusal(const amp_model_desc *desc, const std::function<void(Tables &)> &damage) {
    Tables t = {CopyOf<amp_model_collective>(desc->collectives),
                CopyOf<amp_model_state>(desc->states),
                CopyOf<amp_model_program>(desc->programs),
                {},
                *desc->cuda,
                CopyOf<amp_model_cuda_program>(desc->cuda->programs),
                {},
                {},
                {}};
    auto is_apply = [](const auto &p) { return p.kind == AMP_PROGRAM_APPLY_STEP; };
    auto apply = std::find_if(t.programs.begin(), t.programs.end(), is_apply);
    auto cuda_apply = std::find_if(t.cuda_programs.begin(), t.cuda_programs.end(), is_apply);
    t.apply = CopyOf<amp_model_kernel>(apply->kernels);
    t.cuda_apply = CopyOf<amp_model_cuda_kernel>(cuda_apply->kernels);
    damage(t);
    Put(&apply->kernels, t.apply);
    Put(&cuda_apply->kernels, t.cuda_apply);
    Put(&t.cuda.programs, t.cuda_programs);
    amp_model_desc copy = *desc;
    copy.cuda = &t.cuda;
    Put(&copy.collectives, t.collectives);
    Put(&copy.states, t.states);
    Put(&copy.programs, t.programs);
    amp_error err = {};
    amp_model *model = nullptr;
    damaged = &copy;
    const amp_status status = amp_model_from_static([]() { return damaged; }, nullptr, &model, &err);
    amp_model_release(model);
    return status ? err.message : "";
}

TEST(WrongShares, AreRefused) {
    const Case c = {"damage", "fp32 { }", "optimizer = adamw(lr = 0.01)", 2};
    void *library = dlopen(Compile(c, "zero1").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    auto query = reinterpret_cast<amp_model_query_fn>(dlsym(library, AMP_MODEL_SYMBOL));
    const amp_model_desc *desc = query();
    static const int32_t other[] = {0, 1, 2, 3, 4, 5, 6};
    const struct {
        const char *says;
        std::function<void(Tables &)> damage;
    } cases[] = {
        {"", [](Tables &) {}},
        {"gathers weights that no REDUCE_SCATTER has shares of",
         [](Tables &t) { t.Of(AMP_EXCHANGE_REDUCE_SCATTER).op = AMP_EXCHANGE_ALL_REDUCE; }},
        {"it has 1 REDUCE_SCATTER and 0 ALL_GATHER", [](Tables &t) { t.collectives.pop_back(); }},
        {"gathers other weights than those of collective 0",
         [](Tables &t) { t.Of(AMP_EXCHANGE_ALL_GATHER).state_count--; }},
        {"cannot exchange the state", [](Tables &t) { t.Of(AMP_EXCHANGE_ALL_GATHER).states = other + 5; }},
        {"cannot run for a share of fc1.weight", [](Tables &t) { t.Kernel("fc1.weight").kind = AMP_KERNEL_ROW; }},
        {"cannot run for a share of ", [](Tables &t) { t.CudaUpdate().shares = 0; }},
        {"cannot run for a share", [](Tables &t) { t.CudaPart().kind = AMP_KERNEL_ROW; }},
        {"cannot run for a share", [](Tables &t) { t.CudaPart(), t.grid.per[0] = 0; }},
        {"cannot run for a share",
         [](Tables &t) {
             t.CudaPart().members = 1, t.CudaUpdate().elements = {nullptr, 0};
         }},
    };
    for (const auto &x : cases) EXPECT_THAT(Refusal(desc, x.damage), testing::HasSubstr(x.says));
    EXPECT_EQ(Refusal(desc, cases[0].damage), "");
    dlclose(library);
}

// What a session with shares does not do.
TEST(SharesRefuse, WhatNeedsWholeGradients) {
    const Case &c = cases[0];
    amp_error err = {};
    e2e::Network network(2);
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp::SessionOptions o;
    o.capacity.n = kCapacity;
    o.inspect.grad_norm = 1;
    o.comm = network.Comm(0);
    ASSERT_EQ(amp_model_load(Compile(c, "zero1").c_str(), nullptr, &model, &err), AMP_OK) << err.message;
    ASSERT_EQ(amp_params_create(model, nullptr, &params, &err), AMP_OK) << err.message;
    EXPECT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_UNSUPPORTED);
    EXPECT_THAT(err.message, testing::HasSubstr("keep_values and grad_norm need whole gradients"));
    amp_params_release(params);
    amp_model_release(model);
}

} // namespace
