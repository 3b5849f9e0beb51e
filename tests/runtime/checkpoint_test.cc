// Checkpoints and files of params: bit-exact, all or nothing, and clear about what does not fit.
#include <cstring>
#include <functional>

#include "tests/runtime/files.h"
#include "tests/runtime/runtime_c.h"
#include "tests/runtime/tiny.h"

namespace {

void Train(Tiny &tiny, unsigned from, unsigned to) {
    for (unsigned i = from; i < to; i++) {
        TinyBatch batch(20, i);
        amp_step_report report;
        ASSERT_EQ(amp_step(tiny.session, batch.inputs, {batch.n, 0}, &report, &tiny.err), AMP_OK) << tiny.err.message;
    }
}

std::vector<float> Momentum(const Tiny &tiny) {
    std::vector<float> out(TINY_CLASSES * TINY_FEATURES);
    amp_error err = {};
    EXPECT_EQ(amp_session_get_moment(tiny.session, "fc.weight/momentum", out.data(), out.size(), &err), AMP_OK)
        << err.message;
    return out;
}

// Reads a file, changes its list of tensors and metadata, and writes it again.
struct Edited {
    std::vector<amp_tensor_view> tensors;
    std::vector<amp_metadata> metadata;
};

std::string Edit(const std::string &from, const std::string &name, const std::function<void(Edited &)> &change) {
    amp_safetensors *f = nullptr;
    amp_error err = {};
    EXPECT_EQ(amp_safetensors_open(from.c_str(), nullptr, &f, &err), AMP_OK) << err.message;
    Edited e;
    for (int i = 0; i < amp_safetensors_count(f); i++) e.tensors.push_back(*amp_safetensors_at(f, i));
    const char *format = amp_safetensors_metadata(f, "amp.format");
    if (format) e.metadata.push_back({"amp.format", format});
    change(e);
    std::string path = TempPath(name);
    EXPECT_EQ(amp_safetensors_write(path.c_str(), e.tensors.data(), (int)e.tensors.size(), e.metadata.data(),
                                    (int)e.metadata.size(), nullptr, &err),
              AMP_OK)
        << err.message;
    amp_safetensors_close(f);
    return path;
}

amp_tensor_view &Find(Edited &e, const char *name) {
    for (amp_tensor_view &v : e.tensors)
        if (!strcmp(v.name, name)) return v;
    ADD_FAILURE() << name;
    return e.tensors[0];
}

void Erase(Edited &e, const char *name) { e.tensors.erase(e.tensors.begin() + (&Find(e, name) - e.tensors.data())); }

TEST(Checkpoint, GoesOnBitForBit) {
    std::string path = TempPath("exact.st");
    Tiny straight(TinyOptions(32)), first(TinyOptions(32)), second(TinyOptions(32));
    Train(straight, 0, 20);
    Train(first, 0, 9);
    ASSERT_EQ(amp_checkpoint_save(first.session, path.c_str(), "batch 9", &first.err), AMP_OK) << first.err.message;
    char extra[16];
    ASSERT_EQ(amp_checkpoint_load(second.session, path.c_str(), extra, sizeof extra, &second.err), AMP_OK)
        << second.err.message;
    EXPECT_STREQ(extra, "batch 9");
    amp_scaler_state a, b;
    ASSERT_EQ(amp_session_get_scaler(first.session, &a, &first.err), AMP_OK);
    ASSERT_EQ(amp_session_get_scaler(second.session, &b, &first.err), AMP_OK);
    EXPECT_EQ(memcmp(&a, &b, sizeof a), 0);
    EXPECT_EQ(b.growth_tracker, 9 % TINY_INTERVAL);
    Train(second, 9, 20);
    EXPECT_EQ(straight.Weight(), second.Weight());
    EXPECT_EQ(straight.Bias(), second.Bias());
    EXPECT_EQ(Momentum(straight), Momentum(second));
}

TEST(Checkpoint, HasTheDocumentedNames) {
    std::string path = TempPath("names.st");
    Tiny tiny(TinyOptions(32));
    ASSERT_EQ(amp_checkpoint_save(tiny.session, path.c_str(), nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    amp_safetensors *f = nullptr;
    ASSERT_EQ(amp_safetensors_open(path.c_str(), nullptr, &f, &tiny.err), AMP_OK) << tiny.err.message;
    const struct {
        const char *name;
        amp_dtype dtype;
        int rank;
    } expected[] = {{"fc.weight", AMP_DT_F32, 2},
                    {"fc.bias", AMP_DT_F32, 1},
                    {"fc.batches", AMP_DT_I64, 0},
                    {"optim/fc.weight/momentum", AMP_DT_F32, 2},
                    {"optim/fc.bias/momentum", AMP_DT_F32, 1},
                    {"counter/step", AMP_DT_I64, 0},
                    {"counter/iteration", AMP_DT_I64, 0},
                    {"counter/seed", AMP_DT_I64, 0},
                    {"scaler/scale", AMP_DT_F32, 0},
                    {"scaler/growth_tracker", AMP_DT_I32, 0},
                    {"scaler/floor_hits", AMP_DT_I32, 0}};
    EXPECT_EQ(amp_safetensors_count(f), 11);
    for (const auto &e : expected) {
        const amp_tensor_view *v = amp_safetensors_find(f, e.name);
        ASSERT_NE(v, nullptr) << e.name;
        EXPECT_EQ(v->dtype, e.dtype) << e.name;
        EXPECT_EQ(v->rank, e.rank) << e.name;
    }
    EXPECT_STREQ(amp_safetensors_metadata(f, "amp.format"), "checkpoint 1");
    EXPECT_STREQ(amp_safetensors_metadata(f, "amp.model"), "tiny");
    EXPECT_EQ(amp_safetensors_metadata(f, "amp.extra"), nullptr);
    std::vector<float> rows(TINY_CLASSES * TINY_FEATURES);
    ASSERT_TRUE(amp_tensor_to_f32(amp_safetensors_find(f, "fc.weight"), rows.data(), rows.size()));
    EXPECT_EQ(rows, tiny.Weight());
    amp_safetensors_close(f);
}

TEST(Checkpoint, ToleratesWhatOtherToolsLeaveOut) {
    std::string path = TempPath("whole.st");
    Tiny tiny(TinyOptions(32));
    ASSERT_EQ(amp_checkpoint_save(tiny.session, path.c_str(), nullptr, &tiny.err), AMP_OK);
    std::string other = Edit(path, "other.st", [](Edited &e) { Erase(e, "counter/seed"); });
    char extra[1] = {'x'};
    EXPECT_EQ(amp_checkpoint_load(tiny.session, other.c_str(), extra, 1, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(extra[0], '\0');
}

TEST(Checkpoint, IsAllOrNothing) {
    std::string path = TempPath("old.st");
    Tiny tiny(TinyOptions(32));
    ASSERT_EQ(amp_checkpoint_save(tiny.session, path.c_str(), "four", &tiny.err), AMP_OK);
    Train(tiny, 0, 3);
    std::vector<float> before = tiny.Weight(), momentum = Momentum(tiny);
    const struct {
        const char *message;
        amp_status status;
        std::function<void(Edited &)> change;
    } cases[] = {
        {"parameter fc.weight: the file has f32[40, 10], the model f32[10, 40]", AMP_MISMATCH,
         [](Edited &e) { std::swap(Find(e, "fc.weight").dims[0], Find(e, "fc.weight").dims[1]); }},
        {"tensor scaler/scale: is not in the file; the model has f32[]", AMP_MISMATCH,
         [](Edited &e) { Erase(e, "scaler/scale"); }},
        {"tensor more: is not in the model tiny", AMP_MISMATCH,
         [](Edited &e) {
             Find(e, "fc.batches").name = "more", e.tensors.push_back(Find(e, "counter/seed")),
                     e.tensors.back().name = "fc.batches";
         }},
        {"(and 2 more)", AMP_MISMATCH,
         [](Edited &e) { Erase(e, "scaler/scale"), Erase(e, "counter/step"), Erase(e, "optim/fc.bias/momentum"); }},
        {"counter/step: the file has f64[], the model i64[]", AMP_MISMATCH,
         [](Edited &e) { Find(e, "counter/step").dtype = AMP_DT_F64; }},
        {"not a checkpoint but a file of params", AMP_MISMATCH, [](Edited &e) { e.metadata.clear(); }},
        {"amp.format is checkpoint 2", AMP_UNSUPPORTED, [](Edited &e) { e.metadata[0].value = "checkpoint 2"; }},
        {"counter/step is -1", AMP_BAD_FILE,
         [](Edited &e) {
             static const int64_t minus = -1;
             Find(e, "counter/step").data = &minus;
         }},
        {"scaler/scale is nan", AMP_BAD_FILE,
         [](Edited &e) {
             static const float nothing = NAN;
             Find(e, "scaler/scale").data = &nothing;
         }},
        {"scaler/scale is 0; a loss scale is a number from 2^-126", AMP_BAD_FILE,
         [](Edited &e) {
             static const float nothing = 0;
             Find(e, "scaler/scale").data = &nothing;
         }},
        {"scaler/scale is 9.99995e-41", AMP_BAD_FILE,
         [](Edited &e) {
             static const float tiny = 1e-40f;
             Find(e, "scaler/scale").data = &tiny;
         }},
        {"scaler/scale is inf", AMP_BAD_FILE,
         [](Edited &e) {
             static const float all = INFINITY;
             Find(e, "scaler/scale").data = &all;
         }},
        {"counter/iteration is 4611686018427387904; counters count from 0 to at most 2^53", AMP_BAD_FILE,
         [](Edited &e) {
             static const int64_t many = INT64_C(1) << 62;
             Find(e, "counter/iteration").data = &many;
         }},
        {"scaler/floor_hits is 2147483647", AMP_BAD_FILE,
         [](Edited &e) {
             static const int32_t many = INT32_MAX;
             Find(e, "scaler/floor_hits").data = &many;
         }},
        {"scaler/growth_tracker is -7", AMP_BAD_FILE,
         [](Edited &e) {
             static const int32_t minus = -7;
             Find(e, "scaler/growth_tracker").data = &minus;
         }},
    };
    for (const auto &c : cases) {
        std::string changed = Edit(path, "changed.st", c.change);
        EXPECT_EQ(amp_checkpoint_load(tiny.session, changed.c_str(), nullptr, 0, &tiny.err), c.status) << c.message;
        EXPECT_NE(std::string(tiny.err.message).find(c.message), std::string::npos) << tiny.err.message;
        EXPECT_NE(std::string(tiny.err.message).find("changed.st: "), std::string::npos) << tiny.err.message;
    }
    char extra[4];
    EXPECT_EQ(amp_checkpoint_load(tiny.session, path.c_str(), extra, sizeof extra, &tiny.err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_checkpoint_load(tiny.session, TempPath("none.st").c_str(), nullptr, 0, &tiny.err), AMP_NOT_FOUND);
    EXPECT_EQ(tiny.Weight(), before);
    EXPECT_EQ(Momentum(tiny), momentum);
}

TEST(ParamsFile, RoundTripRefreshesDerivedStates) {
    std::string path = TempPath("params.st");
    Tiny trained(TinyOptions(32)), other(TinyOptions(32));
    Train(trained, 0, 5);
    ASSERT_EQ(amp_params_save(trained.params, path.c_str(), nullptr, &trained.err), AMP_OK) << trained.err.message;
    TinyBatch batch(32);
    double a, b;
    ASSERT_EQ(amp_eval(other.session, batch.inputs, {32, 0}, &b, nullptr, &other.err), AMP_OK);
    ASSERT_EQ(amp_params_load(other.params, path.c_str(), nullptr, nullptr, &other.err), AMP_OK) << other.err.message;
    EXPECT_EQ(trained.Weight(), other.Weight());
    ASSERT_EQ(amp_eval(trained.session, batch.inputs, {32, 0}, &a, nullptr, &other.err), AMP_OK);
    ASSERT_EQ(amp_eval(other.session, batch.inputs, {32, 0}, &b, nullptr, &other.err), AMP_OK);
    EXPECT_EQ(a, b);
}

TEST(ParamsFile, TakesCheckpointsAndOtherFloats) {
    std::string path = TempPath("full.st");
    Tiny trained(TinyOptions(32)), other(TinyOptions(32));
    Train(trained, 0, 5);
    ASSERT_EQ(amp_checkpoint_save(trained.session, path.c_str(), nullptr, &trained.err), AMP_OK);
    ASSERT_EQ(amp_params_load(other.params, path.c_str(), nullptr, nullptr, &other.err), AMP_OK) << other.err.message;
    EXPECT_EQ(trained.Weight(), other.Weight());
    static const uint16_t halves[TINY_CLASSES] = {0x3c00, 0x4000};
    std::string half = Edit(path, "half.st", [](Edited &e) {
        Find(e, "fc.bias").dtype = AMP_DT_F16, Find(e, "fc.bias").data = halves,
                Find(e, "fc.bias").bytes = sizeof halves;
    });
    ASSERT_EQ(amp_params_load(other.params, half.c_str(), nullptr, nullptr, &other.err), AMP_OK) << other.err.message;
    EXPECT_EQ(other.Bias()[0], 1);
    EXPECT_EQ(other.Bias()[1], 2);
    std::string plain = Edit(path, "plain.st", [](Edited &e) { e.metadata.clear(); });
    EXPECT_EQ(amp_params_load(other.params, plain.c_str(), nullptr, nullptr, &other.err),
              AMP_MISMATCH); // "counter/step" and more
    EXPECT_NE(std::string(other.err.message).find("8 tensors are not in the model"), std::string::npos)
        << other.err.message;
}

} // namespace
