// amp/amp.hpp: lifetimes, exceptions, checks of arrays, and the same numbers as amp/amp.h.
#include <dlfcn.h>

#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>

#include "tests/bindings/counted_new.h"
#include "tests/bindings/cpp_test.h"

namespace {

using namespace cpp_test;

const std::vector<float> x = {0.5f, -1, 2, 0.25f, -0.5f, 1, 1, 1}; // four samples
const std::vector<int32_t> targets = {0, 1, 2, 1};

struct Trained {
    amp::Model model = load();
    amp::Params params{model, 7};
    amp::Session session{model, params, for_samples(4)};
};

std::vector<float> train_in_c(int steps) {
    amp_error err;
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp_params_options seed = {};
    seed.struct_size = sizeof seed;
    seed.seed = 7;
    amp::SessionOptions options;
    options.capacity.n = 4;
    options.threads = 1;
    const void *inputs[] = {x.data(), targets.data()};
    std::vector<float> weights(16);
    amp::ModelOptions from;
    from.bytes = model_bytes().data(), from.size = model_bytes().size();
    EXPECT_EQ(amp_model_load(nullptr, &from, &model, &err), AMP_OK);
    EXPECT_EQ(amp_params_create(model, &seed, &params, &err), AMP_OK);
    EXPECT_EQ(amp_session_create(model, params, &options, &session, &err), AMP_OK);
    for (int i = 0; i < steps; i++) EXPECT_EQ(amp_step(session, inputs, {4, 0}, nullptr, &err), AMP_OK) << err.message;
    EXPECT_EQ(amp_params_get(params, "first.weight", weights.data(), weights.size(), &err), AMP_OK) << err.message;
    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
    return weights;
}

TEST(CppRuntime, TrainsToTheBitsOfC) {
    Trained t;
    for (int i = 0; i < 20; i++) t.session.step({x, targets});
    EXPECT_EQ(t.params.get("first.weight"), train_in_c(20));
    EXPECT_EQ(t.session.scaler().step, 20);
}

// A copy is the same object; each keeps what it needs alive.
TEST(CppRuntime, ObjectsLiveAsLongAsOneCopyDoes) {
    std::unique_ptr<amp::Session> session;
    std::unique_ptr<amp::Params> shared;
    {
        Trained t;
        amp::Session copy = t.session;
        session = std::make_unique<amp::Session>(copy);
        shared = std::make_unique<amp::Params>(t.params);
        EXPECT_EQ(session->get(), t.session.get());
    }
    const std::vector<float> before = shared->get("last.weight");
    session->step({x, targets});
    EXPECT_NE(shared->get("last.weight"), before);
    amp::Session moved = std::move(*session);
    EXPECT_EQ(session->get(), nullptr);
    session.reset();
    amp::Session assigned = Trained().session;
    assigned = moved;
    assigned = std::move(moved);
    shared.reset();
    EXPECT_EQ(assigned.step({x, targets}).step, 2);
    amp::Model model = assigned.model(), &same = model;
    model = same;
    EXPECT_STREQ(model.info().name, "rings");
}

TEST(CppRuntime, AdoptTakesTheReference) {
    amp_model *c = nullptr;
    amp::ModelOptions from;
    from.bytes = model_bytes().data(), from.size = model_bytes().size();
    ASSERT_EQ(amp_model_load(nullptr, &from, &c, nullptr), AMP_OK);
    const amp::Model model = amp::Model::adopt(c);
    EXPECT_EQ(model.get(), c);
    EXPECT_EQ(model.info().param_count, 4);
}

// Arrays of every kind, with n given and with n found.
TEST(CppRuntime, ArraysOfEveryKind) {
    Trained t;
    float c_array[2][2] = {{1, 2}, {3, 4}};
    std::vector<std::array<float, 2>> points = {{1, 2}, {3, 4}};
    std::array<int32_t, 2> labels = {0, 2};
    const float *pointer = c_array[0];
    const void *untyped = pointer;
    const double loss = t.session.evaluate({c_array, labels}).loss;
    EXPECT_EQ(t.session.evaluate({points, labels}).loss, loss);
    EXPECT_EQ(t.session.evaluate({pointer, labels}).loss, loss); // n from the labels
    EXPECT_EQ(t.session.evaluate({untyped, labels.data()}, 2).loss, loss);
    EXPECT_EQ(t.session.evaluate({{pointer, 4}, labels}, 2).loss, loss);
    EXPECT_EQ(t.session.evaluate(std::vector<amp::Input>{c_array, labels}).loss, loss);
    EXPECT_EQ(t.session.step({c_array, labels}).loss, loss);
    EXPECT_TRUE(t.session.start_step({c_array, labels}));
}

TEST(CppRuntime, WhatAnArrayShouldBeIsSaid) {
    Trained t;
    std::vector<float> small(7), output(12);
    std::vector<double> wide(8);
    const auto step = [&](amp::Inputs inputs, int64_t n) { return [=, &t] { t.session.step(inputs, n); }; };
    const amp_status wrong = AMP_INVALID_ARGUMENT;
    EXPECT_TRUE(Throws(wrong, "input 'x' is f32[4, 2], 8 numbers; an array of 7 was given", step({small, targets}, 4)));
    EXPECT_TRUE(Throws(wrong, "input 'x' is f32[3, 2], 6 numbers; an array of 7 was given", step({small, targets}, 0)));
    EXPECT_TRUE(Throws(wrong, "input 'targets' is i32[3], 3 numbers; an array of 4", step({x.data(), targets}, 3)));
    EXPECT_TRUE(Throws(wrong, "an array of f64 was given", step({wide, targets}, 4)));
    EXPECT_TRUE(Throws(wrong, "an array of i32 was given", step({targets.data(), targets}, 4)));
    EXPECT_TRUE(Throws(wrong, "a null pointer was given", step({nullptr, targets}, 4)));
    EXPECT_TRUE(Throws(wrong, "which are 2; 1 were given", step({x}, 4)));
    EXPECT_TRUE(Throws(wrong, "number of samples", step({x.data(), targets.data()}, 0)));
    EXPECT_TRUE(Throws(wrong, "number of samples", step({std::vector<float>(), targets}, -1)));
    EXPECT_TRUE(Throws(wrong, "capacity", [&] { t.session.infer({std::vector<float>(10)}); }));
    EXPECT_TRUE(Throws(wrong, "result 'hidden' is f32[4, 8]", [&] { t.session.infer({x}, {output, output}); }));
    EXPECT_TRUE(Throws(wrong, "which are 2; 1 were given", [&] { t.session.infer({x}, {output}); }));
    EXPECT_TRUE(Throws(wrong, "parameter 'last.bias' is f32[3]", [&] { t.params.set("last.bias", small); }));
    EXPECT_EQ(t.session.scaler().iteration, 0); // nothing was done
}

TEST(CppRuntime, Infers) {
    Trained t;
    std::vector<float> logits(12), hidden(32);
    t.session.infer({x}, {logits, hidden});
    const std::vector<amp::Tensor> results = t.session.infer({x});
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(results[0].to<float>(), logits);
    EXPECT_EQ(results[1].to<float>(), hidden);
    EXPECT_EQ(results[1].name(), "hidden");
    EXPECT_EQ(results[1].shape(), (std::vector<int64_t>{4, 8}));
    EXPECT_EQ(t.session.infer_first({x}), logits);
    EXPECT_TRUE(Throws(AMP_INVALID_ARGUMENT, "logits is f32[4, 3]", [&] { results[0].to<int32_t>(); }));
}

TEST(CppRuntime, NamesAndMetrics) {
    Trained t;
    EXPECT_EQ(t.model.param_names(),
              (std::vector<std::string>{"first.weight", "first.bias", "last.weight", "last.bias"}));
    EXPECT_EQ(t.model.metric_names(), (std::vector<std::string>{"acc", "worst"}));
    t.session.step({x, targets});
    EXPECT_EQ(t.session.metric("acc"), t.session.metrics()[0]);
    EXPECT_EQ(t.session.metric("worst"), t.session.metrics()[1]);
    EXPECT_TRUE(Throws(AMP_NOT_FOUND, "no metric 'accuracy'", [&] { t.session.metric("accuracy"); }));
    EXPECT_TRUE(Throws(AMP_NOT_FOUND, "no parameter 'third.weight'", [&] { t.params.get("third.weight"); }));
    const amp::Evaluation one = t.session.evaluate({x, targets});
    t.session.evaluate_begin();
    EXPECT_TRUE(Throws(AMP_WRONG_STATE, "no batch since amp_eval_begin", [&] { t.session.evaluate_end(); }));
    t.session.evaluate({x, targets});
    const std::vector<double> sums = t.session.evaluation_sums();
    t.session.add_evaluation(sums);
    const amp::Evaluation twice = t.session.evaluate_end();
    EXPECT_NEAR(twice.loss, one.loss, 1e-12);
    EXPECT_NEAR(twice.metrics[0], one.metrics[0], 1e-12);
    EXPECT_TRUE(Throws(AMP_INVALID_ARGUMENT, "each sum", [&] { t.session.add_evaluation({1.0}); }));
    int count = 0;
    for (const amp::Decision &why : t.model.decisions()) count += why.reason[0] == '{';
    EXPECT_EQ(count, t.model.info().decision_count);
    EXPECT_GT(count, 2);
    EXPECT_THROW(t.model.decisions()[count], amp::Error);
    EXPECT_GT(t.session.memory().total, t.session.memory().params);
}

TEST(CppRuntime, ParamsAndOptimizerState) {
    Trained t;
    const std::vector<float> bias = {1, -2, 3};
    t.params.set("last.bias", bias);
    EXPECT_EQ(t.params.get("last.bias"), bias);
    t.session.step({x, targets});
    EXPECT_NE(t.session.moment("last.bias/m"), std::vector<float>(3));
    t.session.set_moment("last.bias/m", bias);
    EXPECT_EQ(t.session.moment("last.bias/m"), bias);
    const std::string path = std::string(::testing::TempDir()) + "/weights.safetensors";
    t.params.save(path);
    amp::Params other(t.model, 8);
    EXPECT_NE(other.get("first.weight"), t.params.get("first.weight"));
    other.load(path);
    EXPECT_EQ(other.get("first.weight"), t.params.get("first.weight"));
    EXPECT_TRUE(Throws(AMP_NOT_FOUND, "no/such.safetensors", [&] { other.load("no/such.safetensors"); }));
}

std::string bytes_of(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(CppRuntime, ParamsFromElsewhere) {
    Trained t;
    const std::string path = std::string(::testing::TempDir()) + "/elsewhere.safetensors";
    t.params.save(path);
    const std::string bytes = bytes_of(path);
    amp::ParamsOptions zeros;
    zeros.zeros = 1;
    amp::Params other(t.model, zeros), copied(t.model, zeros);
    EXPECT_EQ(other.get("last.bias"), std::vector<float>(3));
    other.load_memory(bytes.data(), bytes.size());
    EXPECT_EQ(other.get("first.weight"), t.params.get("first.weight"));
    copied.assign(other);
    EXPECT_EQ(copied.get("first.weight"), t.params.get("first.weight"));

    amp::Params kept = t.params.snapshot(), same = t.params;
    t.session.step({x, targets});
    EXPECT_EQ(same.get("first.weight"), t.params.get("first.weight"));
    EXPECT_EQ(kept.get("first.weight"), other.get("first.weight"));
    EXPECT_NE(kept.get("first.weight"), t.params.get("first.weight"));

    EXPECT_EQ(t.params.count_nonfinite(), 0);
    t.params.set("last.bias", std::vector<float>{1, std::numeric_limits<float>::infinity(), 3});
    EXPECT_EQ(t.params.count_nonfinite(), 1);
}

TEST(CppRuntime, AveragesAndBlends) {
    std::string text = model_text;
    text.replace(text.find("    optimizer"), 0, "    ema = 0.5\n");
    const amp::Compiled so = amp::compile_text(text, "rings.amp", quick());
    amp::Model model = amp::Model::from_memory(so.data(), so.size());
    amp::Params params(model, 7), averages = params.snapshot(), target = params.snapshot();
    amp::Session session(model, params, for_samples(4));
    session.step({x, targets});
    session.averages(averages);
    EXPECT_EQ(averages.get("last.bias"), params.get("last.bias")) << "the first is a copy";
    session.step({x, targets});
    session.averages(averages);
    EXPECT_EQ(averages.get("last.bias"), session.moment("last.bias/ema"));
    EXPECT_NE(averages.get("last.bias"), params.get("last.bias"));
    const std::string path = std::string(::testing::TempDir()) + "/averages.ckpt";
    session.save_checkpoint(path);
    amp::WeightRules rules;
    rules.ema = true;
    target.load(path, rules);
    EXPECT_EQ(target.get("first.weight"), averages.get("first.weight"));
    target.blend(params, 0);
    EXPECT_EQ(target.get("first.weight"), averages.get("first.weight"));
    target.blend(params, 0.5);
    EXPECT_NE(target.get("first.weight"), averages.get("first.weight"));
    target.blend(params, 1);
    EXPECT_EQ(target.get("first.weight"), params.get("first.weight"));
    EXPECT_TRUE(Throws(AMP_INVALID_ARGUMENT, "t is 2", [&] { target.blend(params, 2); }));
}

TEST(CppRuntime, LoadsWhatFits) {
    Trained t;
    const std::string path = std::string(::testing::TempDir()) + "/wide.safetensors";
    amp::CompileOptions wide = quick();
    wide.constants = {{"HIDDEN", "5"}};
    const amp::Compiled so = amp::compile_text(model_text, "wide.amp", wide);
    amp::Params(amp::Model::from_memory(so.data(), so.size()), 3).save(path);
    amp::WeightRules rules;
    rules.partial = true;
    int misfits = 0;
    const amp::WeightsReport report =
        t.params.load(path, rules, [&](const char *, amp_weights_difference kind, const char *) {
            misfits += kind == AMP_WEIGHTS_MISFIT;
        });
    EXPECT_EQ(report.loaded, 1);
    EXPECT_EQ(report.misfits, 3);
    EXPECT_EQ(misfits, 3);
    EXPECT_EQ(t.params.load(path, rules).loaded, 1);
    EXPECT_THROW(t.params.load(path, rules, [](const char *, amp_weights_difference, const char *) { throw 3; }), int);
}

TEST(CppRuntime, PublishedWeights) {
    Trained t;
    const std::string path = ::testing::TempDir() + "weights.st", saved = ::testing::TempDir() + "weights_saved.st";
    t.params.save(path);
    amp::WeightRules rules;
    rules.rename = {"last.*=tail.*"};
    std::vector<std::string> different;
    EXPECT_THROW(
        t.params.load(path, rules,
                      [&](const char *name, amp_weights_difference, const char *) { different.push_back(name); }),
        amp::Error);
    EXPECT_EQ(different.size(), 4u);
    EXPECT_THROW(t.params.load(path, rules, [](const char *, amp_weights_difference, const char *) { throw 3; }), int);
    rules.rename.push_back("tail.*=last.*");
    rules.fresh = {"first.bias"};
    const amp::WeightsReport report = t.params.load(path, rules);
    EXPECT_EQ(report.loaded, 3);
    EXPECT_EQ(report.fresh, 1);
    rules.like = path;
    t.params.save(saved, rules);
    EXPECT_EQ(t.params.load(saved).loaded, 4);
}

TEST(CppRuntime, PublishedVersions) {
    Trained t;
    EXPECT_EQ(t.params.publish().version, 1u);
    amp::SessionOptions options = for_samples(4);
    options.published = 1;
    amp::Session serving(t.model, t.params, options);
    const std::vector<float> first = serving.infer_first({x});
    t.session.step({x, targets});
    EXPECT_EQ(serving.infer_first({x}), first);
    EXPECT_EQ(t.params.publish().version, 2u);
    EXPECT_NE(serving.infer_first({x}), first);
    EXPECT_EQ(serving.version(), 2u);
    EXPECT_TRUE(Throws(AMP_WRONG_STATE, "", [&] { t.params.drop_masters(); })); // the training session is alive
}

TEST(CppRuntime, TheLearningRateOfATrainingRun) {
    std::string text = model_text;
    text.replace(text.find("    optimizer"), 0, "    group \"last.*\": lr_scale = 0.5\n");
    const amp::Compiled so = amp::compile_text(text, "rings.amp", quick());
    amp::Model model = amp::Model::from_memory(so.data(), so.size());
    amp::Params params(model, 7);
    amp::Session session(model, params, for_samples(4));
    EXPECT_EQ(session.lr(), 0.01);
    EXPECT_EQ(session.lr_scale(0), 0.5);
    EXPECT_STREQ(model.group(0).pattern, "last.*");
    EXPECT_TRUE(Throws(AMP_INVALID_ARGUMENT, "group 1", [&] { (void)model.group(1); }));
    EXPECT_EQ(model.training(0).block, 0);
    session.set_lr(0);
    const std::vector<float> before = params.get("last.bias");
    session.step({x, targets});
    EXPECT_EQ(session.lr(), 0);
    EXPECT_EQ(params.get("last.bias"), before);
    session.set_lr(AMP_LR_OF_MODEL);
    session.set_lr_scale(0, 0);
    session.step({x, targets});
    EXPECT_EQ(session.lr(), 0.01);
    EXPECT_EQ(params.get("last.bias"), before);
    EXPECT_TRUE(Throws(AMP_INVALID_ARGUMENT, "", [&] { session.set_lr(-2); }));
    EXPECT_TRUE(Throws(AMP_INVALID_ARGUMENT, "group 1", [&] { session.set_lr_scale(1, 0.1); }));
}

TEST(CppRuntime, ACheckpointGoesOn) {
    Trained t;
    const std::string path = std::string(::testing::TempDir()) + "/state.checkpoint";
    t.session.step({x, targets});
    t.session.save_checkpoint(path, "epoch 3");
    t.session.step({x, targets});
    Trained again;
    EXPECT_TRUE(Throws(AMP_INVALID_ARGUMENT, "extra", [&] { again.session.load_checkpoint(path, 3); }));
    EXPECT_EQ(again.session.load_checkpoint(path), "epoch 3");
    Trained copy;
    copy.session.copy_checkpoint(again.session);
    for (Trained *goes_on : {&again, &copy}) {
        goes_on->session.step({x, targets});
        EXPECT_EQ(goes_on->params.get("first.weight"), t.params.get("first.weight"));
        EXPECT_EQ(goes_on->session.scaler().step, 2);
    }
}

TEST(CppRuntime, ReportsOfStepsThatWereStarted) {
    Trained waits, starts;
    amp::LateReport late;
    EXPECT_FALSE(starts.session.next_report(late, true)) << "no step yet";
    for (int i = 0; i < 3; i++) {
        const amp::StepReport report = waits.session.step({x, targets});
        EXPECT_TRUE(starts.session.start_step({x, targets}));
        ASSERT_TRUE(starts.session.next_report(late));
        EXPECT_EQ(late.report.loss, report.loss);
        EXPECT_EQ(late.report.iteration, report.iteration);
        EXPECT_EQ(late.metrics, waits.session.metrics());
        EXPECT_EQ(late.losses, waits.session.losses());
    }
    EXPECT_FALSE(starts.session.next_report(late)) << "each is given once";
}

// What ampc's own scale says by a status is in the report.
TEST(CppRuntime, TheScaleAtItsFloorIsNoException) {
    Trained t;
    std::vector<float> infinite(8, std::numeric_limits<float>::infinity());
    amp::StepReport report{};
    for (int i = 0; i < 6; i++) report = t.session.step({infinite, targets});
    EXPECT_EQ(report.at_floor, 1);
    EXPECT_EQ(report.iteration, 6);
    EXPECT_FALSE(t.session.start_step({x, targets}));
    amp::LateReport late;
    ASSERT_TRUE(t.session.next_report(late, true));
    EXPECT_EQ(late.report.at_floor, 1);
    EXPECT_EQ(late.report.iteration, 7);
    amp::Scaler scaler = t.session.scaler();
    scaler.floor_hits = 0;
    t.session.set_scaler(scaler);
    EXPECT_EQ(t.session.step({x, targets}).at_floor, 0);
}

TEST(CppRuntime, ValuesOfAStep) {
    amp::Model model = load();
    amp::SessionOptions options = for_samples(4);
    options.inspect.keep_values = 1;
    amp::Session session(model, amp::Params(model), options);
    session.step({x, targets});
    EXPECT_EQ(session.value("grad.last.weight").shape(), (std::vector<int64_t>{3, 8}));
    int finite = 0;
    for (const std::string &name : session.value_names()) {
        const amp::Tensor value = session.value(name);
        if (value.dtype() == AMP_DT_F32)
            for (float number : value.to<float>()) finite += std::isfinite(number);
    }
    EXPECT_GT(finite, 24);
    EXPECT_GT(session.grad_norm(), 0);
    EXPECT_TRUE(Throws(AMP_NOT_FOUND, "nothing", [&] { session.value("nothing"); }));
}

TEST(CppRuntime, AFileOrItsBytes) {
    const std::string path = std::string(::testing::TempDir()) + "/rings.so";
    std::ofstream(path, std::ios::binary) << model_bytes();
    EXPECT_STREQ(amp::Model(path).info().name, "rings");
    const amp::Model first(path);
    amp::ModelOptions like;
    like.like = first.get();
    EXPECT_EQ(amp::Model(path, like).get(), first.get());
    EXPECT_TRUE(Throws(AMP_NOT_FOUND, "no/such.so", [] { amp::Model("no/such.so"); }));
    EXPECT_TRUE(Throws(AMP_BAD_FILE, "mine", [] { amp::Model::from_memory("text", 4, "mine"); }));
    EXPECT_STREQ(amp::version(), AMP_VERSION);
}

// What a linked model's name is: the function by which a model.so is asked for its tables.
TEST(CppRuntime, AModelOfTheProgramItself) {
    const std::string path = std::string(::testing::TempDir()) + "/linked.so";
    std::ofstream(path, std::ios::binary) << model_bytes();
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto linked = reinterpret_cast<amp_static_model>(dlsym(library, "amp_model_query"));
    {
        const amp::Model model = amp::Model::from_static(linked);
        amp::Params params(model, 7);
        amp::Session session(model, params, for_samples(4));
        for (int i = 0; i < 20; i++) session.step({x, targets});
        EXPECT_EQ(params.get("first.weight"), train_in_c(20));
    }
    dlclose(library);
    EXPECT_TRUE(Throws(AMP_BAD_FILE, "not a model of ampc",
                       [] { amp::Model::from_static([]() -> const amp_model_desc * { return nullptr; }); }));
}

TEST(CppRuntime, StepsAllocateNothing) {
    Trained t;
    std::vector<float> logits(12), hidden(32);
    std::vector<double> metrics(2);
    t.session.step({x, targets});
    const long before = allocations;
    t.session.step({x, targets});
    t.session.evaluate({x, targets}, 4, metrics.data());
    t.session.infer({x}, {logits, hidden});
    EXPECT_EQ(allocations, before);
}

// Batches of a function, on a thread; what it throws arrives where next is called.
TEST(Dataset, FillsBatchesAhead) {
    amp::Model model = load();
    amp::Params params(model, 7);
    amp::Session session(model, params, for_samples(4));
    amp::DatasetOptions options;
    options.capacity.n = 4;
    bool broken = true;
    const auto fill = [&broken](int64_t index, void *const *arrays, amp::Sizes capacity) -> int64_t {
        if (index == 5 && broken) throw std::runtime_error("a torn tape");
        if (index == 7) return 0;
        std::copy(x.begin(), x.end(), static_cast<float *>(arrays[0]));
        std::copy(targets.begin(), targets.end(), static_cast<int32_t *>(arrays[1]));
        return capacity.n - index % 2;
    };
    amp::Dataset first(model, fill, options), data = std::move(first);
    std::vector<double> losses;
    for (int64_t i = 0; i < 5; i++) {
        amp::Dataset::Batch batch = data.next();
        ASSERT_EQ(batch.sizes.n, 4 - i % 2);
        losses.push_back(session.step(batch.inputs, batch.sizes).loss);
    }
    EXPECT_THROW(data.next(), std::runtime_error);
    broken = false;
    EXPECT_EQ(data.position(), 5);
    int64_t batches = 0;
    while (amp::Dataset::Batch batch = data.next()) batches++;
    EXPECT_EQ(batches, 2);
    data.seek(6);
    EXPECT_EQ(data.next().sizes.n, 4);
    amp::Params again(model, 7);
    amp::Session by_hand(model, again, for_samples(4));
    for (int64_t i = 0; i < 5; i++) {
        const amp::Input arrays[] = {x.data(), targets.data()};
        EXPECT_EQ(by_hand.step({arrays[0], arrays[1]}, 4 - i % 2).loss, losses[static_cast<size_t>(i)]);
    }
    EXPECT_TRUE(Throws(AMP_INVALID_ARGUMENT, "capacity is -1", [&] {
        options.capacity.n = -1;
        amp::Dataset none(model, fill, options);
    }));
}

} // namespace
