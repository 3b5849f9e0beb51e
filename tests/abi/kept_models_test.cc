// Models that released versions compiled: this version loads them and computes what those computed, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "amp/amp.h"

namespace {

enum { SAMPLES = 6, FEATURES = 12, CLASSES = 3 };

struct Kept {
    const char *path, *compiler;
    // Of four steps (the third one overflows and is skipped): the loss's bits.
    uint32_t losses[4];
    uint64_t weights, logits; // FNV-1a of all params after them, and of the results of infer
    float scale;
    int64_t step;
};

const Kept kKept[] = {
    {"tests/abi/v0_1.so",
     "0.1.0",
     {1066220203, 1066348544, 0, 1066445483},
     15203128635221973911u,
     244698523150295493u,
     1024,
     3},
};

uint64_t Fnv(const void *data, size_t size, uint64_t hash = 14695981039346656037u) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return hash;
}

struct Batch {
    explicit Batch(unsigned seed) : x(SAMPLES * FEATURES), targets(SAMPLES) {
        unsigned state = seed;
        auto next = [&state] { return (state = state * 1664525u + 1013904223u) >> 8; };
        for (float &v : x) v = (float)(int)(next() % 2048) / 1024 - 1;
        for (int &t : targets) t = (int)(next() % CLASSES);
        inputs[0] = x.data(), inputs[1] = targets.data();
    }
    std::vector<float> x;
    std::vector<int> targets;
    const void *inputs[2];
};

uint64_t Weights(amp_model *model, amp_params *params) {
    uint64_t hash = Fnv("", 0);
    amp_tensor_info info;
    for (int i = 0; amp_model_param_at(model, i, &info, nullptr) == AMP_OK; i++) {
        size_t count = 1;
        for (int d = 0; d < info.rank; d++) count *= (size_t)info.dims[d];
        std::vector<float> data(count);
        EXPECT_EQ(amp_params_get(params, info.name, data.data(), count, nullptr), AMP_OK);
        hash = Fnv(data.data(), count * sizeof(float), Fnv(info.name, strlen(info.name), hash));
    }
    return hash;
}

class KeptModels : public ::testing::TestWithParam<Kept> {};

TEST_P(KeptModels, LoadsAndComputesTheSameBits) {
#ifndef __x86_64__
    GTEST_SKIP() << "the kept models are for x86-64";
#endif
    const Kept &kept = GetParam();
    amp_error err = {};
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp_model_info info;
    ASSERT_EQ(amp_model_load(kept.path, nullptr, &model, &err), AMP_OK) << err.message;
    amp_model_get_info(model, &info);
    EXPECT_STREQ(info.compiler_version, kept.compiler);
    EXPECT_EQ(info.has_cuda, 1);
    amp_params_options seed = {};
    seed.struct_size = sizeof seed, seed.seed = 11;
    ASSERT_EQ(amp_params_create(model, &seed, &params, &err), AMP_OK) << err.message;
    amp_session_options o = {};
    o.struct_size = sizeof o, o.capacity = SAMPLES, o.threads = 1, o.seed = 5, o.isa = "portable";
    ASSERT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK) << err.message;
    amp_step_report report = {};
    for (unsigned i = 0; i < 4; i++) {
        Batch batch(i + 1);
        if (i == 2) batch.x[3] = INFINITY;
        ASSERT_EQ(amp_step(session, batch.inputs, SAMPLES, &report, &err), AMP_OK) << err.message;
        EXPECT_EQ(report.skipped, i == 2);
        float loss = (float)report.loss;
        uint32_t bits;
        memcpy(&bits, &loss, sizeof bits);
        if (i != 2) {
            EXPECT_EQ(bits, kept.losses[i]) << "step " << i << ": " << loss;
        }
    }
    amp_scaler_state scaler = {};
    ASSERT_EQ(amp_session_get_scaler(session, &scaler, &err), AMP_OK);
    EXPECT_EQ(scaler.scale, kept.scale);
    EXPECT_EQ(scaler.step, kept.step);
    EXPECT_EQ(Weights(model, params), kept.weights);
    amp_param_training training;
    EXPECT_EQ(amp_model_param_training(model, 0, &training, &err), AMP_UNSUPPORTED);
    EXPECT_NE(strstr(err.message, "compile the model again"), nullptr) << err.message;
    EXPECT_EQ(amp_session_set_lr(session, 0, 0.1, &err), AMP_UNSUPPORTED);
    EXPECT_NE(strstr(err.message, "compile the model again"), nullptr) << err.message;
    EXPECT_EQ(amp_session_set_lr_scale(session, 0, 0.1, &err), AMP_UNSUPPORTED);
    EXPECT_NE(strstr(err.message, "compile the model again"), nullptr) << err.message;
    Batch batch(9);
    std::vector<float> logits(SAMPLES * CLASSES);
    void *outputs[] = {logits.data()};
    ASSERT_EQ(amp_infer(session, batch.inputs, SAMPLES, outputs, &err), AMP_OK) << err.message;
    EXPECT_EQ(Fnv(logits.data(), logits.size() * sizeof(float)), kept.logits);
    amp_session_release(session), amp_params_release(params), amp_model_release(model);
}

INSTANTIATE_TEST_SUITE_P(Released, KeptModels, ::testing::ValuesIn(kKept),
                         [](const auto &i) { return "v" + std::to_string(i.index); });

} // namespace
