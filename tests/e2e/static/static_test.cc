// Models that are linked into this program train as the model.so of the same text does.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "amp/amp.hpp"

extern "C" {
AMP_STATIC_MODEL(first_net);
AMP_STATIC_MODEL(second_net);
AMP_STATIC_MODEL(net_model);
}

namespace {

const char kFolder[] = "tests/e2e/static/";

amp_model *Load(const std::string &name) {
    amp_model *model = nullptr;
    amp_error err = {};
    EXPECT_EQ(amp_model_load((kFolder + name).c_str(), nullptr, &model, &err), AMP_OK) << err.message;
    return model;
}

amp_model *Open(amp_static_model linked) {
    amp_model *model = nullptr;
    amp_error err = {};
    EXPECT_EQ(amp_model_from_static(linked, nullptr, &model, &err), AMP_OK) << err.message;
    return model;
}

// Three steps of |n| samples; the losses, then fc2.weight.  Releases the model.
std::vector<float> Train(amp_model *model, int classes, const char *isa = nullptr) {
    constexpr int n = 8;
    std::vector<float> x(n * 19), weight(static_cast<size_t>(classes) * 37), out;
    std::vector<int32_t> targets(n);
    for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i % 13) / 13.0f - 0.5f;
    for (int i = 0; i < n; i++) targets[static_cast<size_t>(i)] = i % classes;
    const void *inputs[] = {x.data(), targets.data()};
    amp_error err = {};
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp_params_options p = {};
    p.struct_size = sizeof p, p.seed = 3;
    amp::SessionOptions o;
    o.capacity.n = n, o.threads = 1, o.cpu.isa = isa;
    EXPECT_EQ(amp_params_create(model, &p, &params, &err), AMP_OK) << err.message;
    EXPECT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK) << err.message;
    amp_model_release(model);
    for (int i = 0; i < 3 && session; i++) {
        amp_step_report report = {};
        EXPECT_EQ(amp_step(session, inputs, {n, 0}, &report, &err), AMP_OK) << err.message;
        out.push_back(static_cast<float>(report.loss));
    }
    EXPECT_EQ(amp_params_get(params, "fc2.weight", weight.data(), weight.size(), &err), AMP_OK) << err.message;
    out.insert(out.end(), weight.begin(), weight.end());
    amp_session_release(session);
    amp_params_release(params);
    return out;
}

TEST(StaticModels, TrainAsTheModelSoDoes) {
    const std::vector<float> shared = Train(Load("net.so"), 10), linked = Train(Open(first_net), 10);
    ASSERT_EQ(shared.size(), linked.size());
    EXPECT_EQ(memcmp(shared.data(), linked.data(), shared.size() * sizeof(float)), 0);
    EXPECT_LT(linked[2], linked[0]); // the loss
}

TEST(StaticModels, SeveralInOneProgram) {
    const std::vector<float> second = Train(Open(second_net), 7), again = Train(Open(second_net), 7);
    EXPECT_EQ(second, again);
    EXPECT_EQ(second.size(), 3u + 7 * 37);
    amp_model *first = Open(first_net), *other = Open(second_net);
    amp_tensor_info a = {}, b = {};
    amp_error err = {};
    EXPECT_EQ(amp_model_result_at(first, 0, {1, 0}, &a, &err), AMP_OK);
    EXPECT_EQ(amp_model_result_at(other, 0, {1, 0}, &b, &err), AMP_OK);
    EXPECT_EQ(a.dims[1], 10);
    EXPECT_EQ(b.dims[1], 7);
    amp_model_release(first);
    amp_model_release(other);
}

// The C file is compiled as a program's own, for any processor: other instructions round otherwise.
TEST(StaticModels, AsOneFileOfC) {
    const std::vector<float> shared = Train(Load("net.so"), 10, "portable"),
                             linked = Train(Open(net_model), 10, "portable");
    ASSERT_EQ(shared.size(), linked.size());
    for (size_t i = 0; i < shared.size(); i++) EXPECT_NEAR(shared[i], linked[i], 2e-3) << i;
}

TEST(StaticModels, WrongArguments) {
    amp_error err = {};
    amp_model *model = nullptr;
    EXPECT_EQ(amp_model_from_static(nullptr, nullptr, &model, &err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_model_from_static(first_net, nullptr, nullptr, &err), AMP_INVALID_ARGUMENT);
    amp_static_model none = []() -> const struct amp_model_desc * { return nullptr; };
    EXPECT_EQ(amp_model_from_static(none, nullptr, &model, &err), AMP_BAD_FILE);
    EXPECT_EQ(model, nullptr);
}

// Compiled by the command in the C file: it has no hash, and says so.
TEST(ModelByHand, IsLoaded) { EXPECT_EQ(Train(Load("by_hand.so"), 10).size(), 3u + 10 * 37); }

// --isa native: the bits of the set that it says it has, chosen by name in a model of all sets.
TEST(ModelOfThisMachine, ComputesAsItsSetDoesByName) {
    amp_model *native = Load("native.so");
    const std::string set = amp_model_isa_name(native, 0);
    EXPECT_EQ(amp_model_isa_name(native, 1), nullptr) << "one set alone";
    amp_model_retain(native);
    const std::vector<float> ours = Train(native, 10), named = Train(native, 10, set.c_str()),
                             all = Train(Load("all.so"), 10, set.c_str());
    ASSERT_EQ(all.size(), ours.size());
    EXPECT_EQ(memcmp(all.data(), named.data(), all.size() * sizeof(float)), 0);
    if (set != "portable") { // elsewhere products use what the machine has besides
        EXPECT_EQ(memcmp(all.data(), ours.data(), all.size() * sizeof(float)), 0);
    }
}

// A hash of zeros is damage, not "no hash"; so is any change of a file that has one.
TEST(ModelByHand, AHashOfZerosIsRefused) {
    std::ifstream in(std::string(kFolder) + "by_hand.so", std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const std::string mark = "ampc: no hash, made by hand     ";
    const size_t at = bytes.find(mark);
    ASSERT_NE(at, std::string::npos);
    bytes.replace(at, mark.size(), mark.size(), '\0');
    amp_model *model = nullptr;
    amp_error err = {};
    amp::ModelOptions from;
    from.bytes = bytes.data(), from.size = bytes.size();
    EXPECT_EQ(amp_model_load(nullptr, &from, &model, &err), AMP_BAD_FILE);
}

} // namespace
