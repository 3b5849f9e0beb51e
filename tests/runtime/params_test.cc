// Params as a whole: from memory, in part, copied, without initialising, and whether they are still numbers.
#include <map>

#include "tests/runtime/files.h"
#include "tests/runtime/tiny.h"

namespace {

std::vector<float> Values(const amp_params *params, const char *name, size_t count) {
    std::vector<float> out(count);
    amp_error err = {};
    EXPECT_EQ(amp_params_get(params, name, out.data(), count, &err), AMP_OK) << err.message;
    return out;
}

std::vector<float> Weight(const amp_params *p) { return Values(p, "fc.weight", TINY_CLASSES * TINY_FEATURES); }
std::vector<float> Bias(const amp_params *p) { return Values(p, "fc.bias", TINY_CLASSES); }

amp_params *Make(amp_model *model, uint64_t seed, int32_t zeros = 0) {
    amp_params_options o = {sizeof o, seed, zeros};
    amp_params *params = nullptr;
    amp_error err = {};
    EXPECT_EQ(amp_params_create(model, &o, &params, &err), AMP_OK) << err.message;
    return params;
}

TEST(Params, ZerosAreNotInitialised) {
    Tiny tiny(TinyOptions(8));
    amp_params *zeros = Make(tiny.model, 7, 1);
    EXPECT_EQ(Weight(zeros), std::vector<float>(TINY_CLASSES * TINY_FEATURES, 0.0f));
    EXPECT_NE(Weight(zeros), tiny.Weight());
    amp_params_release(zeros);
}

amp_status LoadBytes(amp_params *to, const void *bytes, size_t size, const char *name, amp_error *err) {
    amp_weights_options o = {};
    o.struct_size = sizeof o, o.bytes = bytes, o.size = size;
    return amp_params_load(to, name, &o, nullptr, err);
}

TEST(Params, LoadFromMemory) {
    Tiny tiny(TinyOptions(8));
    std::string path = TempPath("memory.st");
    ASSERT_EQ(amp_params_save(tiny.params, path.c_str(), nullptr, &tiny.err), AMP_OK);
    std::string bytes = ReadAll(path), shifted = "x" + bytes;
    for (const char *at : {bytes.data(), shifted.data() + 1}) { // any alignment
        amp_params *p = Make(tiny.model, 1, 1);
        ASSERT_EQ(LoadBytes(p, at, bytes.size(), nullptr, &tiny.err), AMP_OK) << tiny.err.message;
        EXPECT_EQ(Weight(p), tiny.Weight());
        EXPECT_EQ(Bias(p), tiny.Bias());
        amp_params_release(p);
    }
    std::vector<float> before = tiny.Weight();
    EXPECT_EQ(LoadBytes(tiny.params, bytes.data(), bytes.size() - 1, "w.st", &tiny.err), AMP_BAD_FILE);
    EXPECT_EQ(std::string(tiny.err.message).find("w.st: "), 0u) << tiny.err.message;
    EXPECT_EQ(LoadBytes(tiny.params, bytes.data(), 3, nullptr, &tiny.err), AMP_BAD_FILE);
    EXPECT_EQ(std::string(tiny.err.message).find("params in memory: "), 0u) << tiny.err.message;
    EXPECT_EQ(tiny.Weight(), before);
}

TEST(Params, SnapshotStaysAndCopyGoesBack) {
    Tiny tiny(TinyOptions(8));
    TinyBatch batch(8);
    amp_params *kept = nullptr;
    ASSERT_EQ(amp_params_snapshot(tiny.params, &kept, &tiny.err), AMP_OK) << tiny.err.message;
    std::vector<float> before = tiny.Weight();
    for (int i = 0; i < 3; i++) ASSERT_EQ(amp_step(tiny.session, batch.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK);
    EXPECT_NE(tiny.Weight(), before);
    EXPECT_EQ(Weight(kept), before);
    ASSERT_EQ(amp_params_copy(tiny.params, kept, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(tiny.Weight(), before);
    // What is derived from them follows: both compute the same.
    amp_session *other = nullptr;
    amp::SessionOptions o = TinyOptions(8);
    o.program = "infer";
    ASSERT_EQ(amp_session_create(tiny.model, kept, &o, &other, &tiny.err), AMP_OK);
    std::vector<float> a(8 * TINY_CLASSES), b(8 * TINY_CLASSES);
    void *to_a[] = {a.data()}, *to_b[] = {b.data()};
    ASSERT_EQ(amp_infer(tiny.session, batch.inputs, {8, 0}, to_a, &tiny.err), AMP_OK);
    ASSERT_EQ(amp_infer(other, batch.inputs, {8, 0}, to_b, &tiny.err), AMP_OK);
    EXPECT_EQ(a, b);
    EXPECT_EQ(amp_params_copy(kept, kept, &tiny.err), AMP_OK);
    amp_session_release(other), amp_params_release(kept);
}

// The tiny model with another name for a tensor.
struct Changed {
    explicit Changed(const char *bias) : desc(*amp_model_query()) {
        const auto *from = (const amp_model_state *)desc.states.data;
        states.assign(from, from + desc.states.count);
        for (amp_model_state &s : states)
            if (!strcmp(s.name, "fc.bias")) s.name = bias;
        desc.states.data = states.data();
        amp_error err = {};
        EXPECT_EQ(amp_model_from_desc(&desc, "changed", nullptr, &model, &err), AMP_OK) << err.message;
    }
    ~Changed() { amp_model_release(model); }
    amp_model_desc desc;
    std::vector<amp_model_state> states;
    amp_model *model = nullptr;
};

TEST(Params, CopyNeedsTheSameTensors) {
    Tiny tiny(TinyOptions(8));
    Changed same("fc.bias"), other("fc.other");
    amp_params *p = Make(same.model, 1), *q = Make(other.model, 1);
    ASSERT_EQ(amp_params_copy(p, tiny.params, &tiny.err), AMP_OK) << tiny.err.message; // of another model
    EXPECT_EQ(Weight(p), tiny.Weight());
    std::vector<float> before = Weight(q);
    EXPECT_EQ(amp_params_copy(q, tiny.params, &tiny.err), AMP_MISMATCH);
    EXPECT_NE(std::string(tiny.err.message).find("have no fc.other of the same shape"), std::string::npos)
        << tiny.err.message;
    EXPECT_EQ(Weight(q), before);
    amp_params_release(p), amp_params_release(q);
}

struct Differences {
    std::map<std::string, amp_weights_difference> kind;
    std::map<std::string, std::string> why;
    static void Note(void *user, const char *name, amp_weights_difference kind, const char *why) {
        auto *self = static_cast<Differences *>(user);
        self->kind[name] = kind, self->why[name] = why;
    }
};

TEST(Params, PartialLoadTakesWhatFits) {
    Tiny tiny(TinyOptions(8));
    Changed other("fc.other");
    amp_params *from = Make(other.model, 99), *to = Make(tiny.model, 1);
    std::vector<float> bias(TINY_CLASSES, 3.5f);
    ASSERT_EQ(amp_params_set(from, "fc.other", bias.data(), bias.size(), &tiny.err), AMP_OK);
    std::string path = TempPath("partial.st");
    ASSERT_EQ(amp_params_save(from, path.c_str(), nullptr, &tiny.err), AMP_OK);
    std::vector<float> before = Bias(to);
    Differences seen;
    amp_weights_options o = {};
    o.struct_size = sizeof o, o.partial = 1, o.user = &seen, o.difference = Differences::Note;
    amp_weights_report report = {};
    ASSERT_EQ(amp_params_load(to, path.c_str(), &o, &report, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(report.loaded, 2);
    EXPECT_EQ(report.missing, 1);
    EXPECT_EQ(report.misfits, 0);
    EXPECT_EQ(report.extra, 1);
    EXPECT_EQ(seen.kind.size(), 2u);
    EXPECT_EQ(seen.kind["fc.bias"], AMP_WEIGHTS_MISSING);
    EXPECT_EQ(seen.kind["fc.other"], AMP_WEIGHTS_EXTRA);
    EXPECT_EQ(Weight(to), Weight(from));
    EXPECT_EQ(Bias(to), before);
    // Under another name.
    const char *rename[] = {"fc.other=fc.bias", nullptr}, *ignore[] = {"fc.batches", nullptr};
    seen = {};
    o.rename = rename, o.ignore = ignore;
    ASSERT_EQ(amp_params_load(to, path.c_str(), &o, &report, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(report.loaded, 2);
    EXPECT_EQ(report.ignored, 1);
    EXPECT_EQ(Bias(to), bias);
    EXPECT_EQ(seen.kind.size(), 1u);
    EXPECT_EQ(seen.kind["fc.batches"], AMP_WEIGHTS_MISSING);
    // Another shape: the parameter keeps its value.
    const char *wrong[] = {"fc.weight=fc.bias", "fc.other=fc.weight", nullptr};
    seen = {};
    o.rename = wrong;
    ASSERT_EQ(amp_params_load(to, path.c_str(), &o, &report, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(report.misfits, 2);
    EXPECT_EQ(seen.why["fc.bias"], "the file has f32[10, 40], the model f32[10]");
    EXPECT_EQ(Bias(to), bias);
    // Two tensors for one parameter are no question of what fits.
    const char *twice[] = {"fc.weight=fc.bias", "fc.other=fc.bias", nullptr};
    o.rename = twice;
    EXPECT_EQ(amp_params_load(to, path.c_str(), &o, &report, &tiny.err), AMP_MISMATCH);
    EXPECT_EQ(Bias(to), bias);
    EXPECT_EQ(amp_params_load(to, TempPath("none.st").c_str(), &o, nullptr, &tiny.err), AMP_NOT_FOUND);
    amp_params_release(from), amp_params_release(to);
}

// What only one of loading and saving reads.
TEST(Params, SaveRefusesOptionsOfLoading) {
    Tiny tiny(TinyOptions(8));
    const std::string path = TempPath("refused.st");
    const char *fresh[] = {"fc.bias", nullptr};
    amp_weights_options partial = {}, rules = {};
    partial.struct_size = rules.struct_size = sizeof rules;
    partial.partial = 1, rules.fresh = fresh;
    EXPECT_EQ(amp_params_save(tiny.params, path.c_str(), &partial, &tiny.err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(tiny.err.message, "amp_params_save: bytes, size, partial and ema are of amp_params_load");
    EXPECT_EQ(amp_params_save(tiny.params, path.c_str(), &rules, &tiny.err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(tiny.err.message, "amp_params_save: rules without the weights that they map: set like");
    EXPECT_EQ(amp_params_save(tiny.params, TempPath("w.json").c_str(), nullptr, &tiny.err), AMP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(tiny.err.message).find("w.json: a path that ends in .json is read as an index of weights"),
              std::string::npos)
        << tiny.err.message;
    amp_weights_options like = {};
    like.struct_size = sizeof like, like.like = path.c_str();
    EXPECT_EQ(amp_params_load(tiny.params, path.c_str(), &like, nullptr, &tiny.err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(tiny.err.message, "amp_params_load: like is of amp_params_save");
}

TEST(Params, CountsWhatIsNoNumber) {
    Tiny tiny(TinyOptions(8));
    int64_t count = -1;
    const char *first = "x";
    ASSERT_EQ(amp_params_count_nonfinite(tiny.params, &count, &first, &tiny.err), AMP_OK);
    EXPECT_EQ(count, 0);
    EXPECT_EQ(first, nullptr);
    std::vector<float> bias(TINY_CLASSES, 1.0f);
    bias[3] = NAN, bias[4] = INFINITY, bias[9] = -INFINITY;
    ASSERT_EQ(amp_params_set(tiny.params, "fc.bias", bias.data(), bias.size(), &tiny.err), AMP_OK);
    ASSERT_EQ(amp_params_count_nonfinite(tiny.params, &count, &first, &tiny.err), AMP_OK);
    EXPECT_EQ(count, 3);
    EXPECT_STREQ(first, "fc.bias");
    EXPECT_EQ(amp_params_count_nonfinite(tiny.params, &count, nullptr, &tiny.err), AMP_OK);
}

// Weights are in memory once: as what infers reads them.
TEST(Params, WithoutMastersOnlyVersionsAreRead) {
    Tiny tiny(TinyOptions(8));
    TinyBatch batch(8);
    amp_params *p = nullptr;
    amp_session *session = nullptr;
    ASSERT_EQ(amp_params_snapshot(tiny.params, &p, &tiny.err), AMP_OK);
    EXPECT_EQ(amp_params_drop_masters(p, &tiny.err), AMP_WRONG_STATE) << "nothing was published";
    ASSERT_EQ(amp_params_publish(p, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    amp::SessionOptions o = TinyOptions(8);
    o.program = "infer";
    ASSERT_EQ(amp_session_create(tiny.model, p, &o, &session, &tiny.err), AMP_OK);
    EXPECT_EQ(amp_params_drop_masters(p, &tiny.err), AMP_WRONG_STATE) << "a session reads the masters";
    amp_session_release(session);
    o.published = 1;
    ASSERT_EQ(amp_session_create(tiny.model, p, &o, &session, &tiny.err), AMP_OK) << tiny.err.message;
    ASSERT_EQ(amp_params_drop_masters(p, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(amp_params_drop_masters(p, &tiny.err), AMP_OK) << "again";
    std::vector<float> a(8 * TINY_CLASSES), b(8 * TINY_CLASSES);
    void *to_a[] = {a.data()}, *to_b[] = {b.data()};
    ASSERT_EQ(amp_infer(tiny.session, batch.inputs, {8, 0}, to_a, &tiny.err), AMP_OK);
    ASSERT_EQ(amp_infer(session, batch.inputs, {8, 0}, to_b, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(a, b);
    double loss[2];
    ASSERT_EQ(amp_eval(tiny.session, batch.inputs, {8, 0}, &loss[0], nullptr, &tiny.err), AMP_OK);
    ASSERT_EQ(amp_eval(session, batch.inputs, {8, 0}, &loss[1], nullptr, &tiny.err), AMP_OK);
    EXPECT_EQ(loss[0], loss[1]);

    std::vector<float> bias(TINY_CLASSES);
    std::string path = TempPath("gone.st");
    int64_t count;
    amp_params *copy = nullptr;
    amp_session *other = nullptr;
    EXPECT_EQ(amp_params_get(p, "fc.bias", bias.data(), bias.size(), &tiny.err), AMP_WRONG_STATE);
    EXPECT_EQ(amp_params_set(p, "fc.bias", bias.data(), bias.size(), &tiny.err), AMP_WRONG_STATE);
    ASSERT_EQ(amp_params_save(tiny.params, path.c_str(), nullptr, &tiny.err), AMP_OK);
    EXPECT_EQ(amp_params_load(p, path.c_str(), nullptr, nullptr, &tiny.err), AMP_WRONG_STATE);
    EXPECT_EQ(amp_params_save(p, path.c_str(), nullptr, &tiny.err), AMP_WRONG_STATE);
    EXPECT_EQ(amp_params_copy(tiny.params, p, &tiny.err), AMP_WRONG_STATE);
    EXPECT_EQ(amp_params_copy(p, tiny.params, &tiny.err), AMP_WRONG_STATE);
    EXPECT_EQ(amp_params_snapshot(p, &copy, &tiny.err), AMP_WRONG_STATE);
    EXPECT_EQ(amp_params_count_nonfinite(p, &count, nullptr, &tiny.err), AMP_WRONG_STATE);
    EXPECT_EQ(amp_params_publish(p, nullptr, &tiny.err), AMP_WRONG_STATE);
    o.published = 0;
    EXPECT_EQ(amp_session_create(tiny.model, p, &o, &other, &tiny.err), AMP_WRONG_STATE);
    EXPECT_NE(std::string(tiny.err.message).find("have no masters any more"), std::string::npos) << tiny.err.message;
    o.published = 1;
    ASSERT_EQ(amp_session_create(tiny.model, p, &o, &other, &tiny.err), AMP_OK) << tiny.err.message;
    amp_session_release(session), amp_session_release(other), amp_params_release(p);
}

TEST(Params, DroppedMastersAreFreed) {
    static size_t now; // bytes that are allocated
    now = 0;
    amp_allocator a = {nullptr,
                       [](void *, size_t size, size_t) {
                           now += size;
                           return malloc(size);
                       },
                       [](void *, void *at, size_t size, size_t) {
                           now -= at ? size : 0;
                           free(at);
                       }};
    amp_model *model = nullptr;
    amp_error err = {};
    ASSERT_EQ(amp_model_from_desc(amp_model_query(), "tiny", &a, &model, &err), AMP_OK) << err.message;
    amp_params *p = Make(model, 7);
    ASSERT_EQ(amp_params_publish(p, nullptr, &err), AMP_OK) << err.message;
    size_t before = now;
    ASSERT_EQ(amp_params_drop_masters(p, &err), AMP_OK) << err.message;
    EXPECT_LT(now + TINY_CLASSES * TINY_FEATURES * sizeof(float), before);
    amp_params_release(p), amp_model_release(model);
    EXPECT_EQ(now, 0u);
}

TEST(GradNorm, IsThatOfTheGradients) {
    amp::SessionOptions o = TinyOptions(16);
    Tiny plain(o);
    o.inspect.keep_values = 1;
    Tiny tiny(o);
    TinyBatch batch(16);
    double norm = 0;
    EXPECT_EQ(amp_session_get_grad_norm(tiny.session, &norm, &tiny.err), AMP_WRONG_STATE);
    ASSERT_EQ(amp_step(tiny.session, batch.inputs, {16, 0}, nullptr, &tiny.err), AMP_OK);
    ASSERT_EQ(amp_session_get_grad_norm(tiny.session, &norm, &tiny.err), AMP_OK) << tiny.err.message;
    std::vector<float> grad(TINY_CLASSES * TINY_FEATURES);
    ASSERT_EQ(amp_session_get_value(tiny.session, "grad.fc.weight", nullptr, grad.data(), grad.size() * 4, &tiny.err),
              AMP_OK);
    double sum = 0; // the tiny model keeps this gradient alone
    for (float g : grad) sum += (double)g * g;
    EXPECT_DOUBLE_EQ(norm, std::sqrt(sum));
    EXPECT_GT(norm, 0);
    ASSERT_EQ(amp_step(plain.session, batch.inputs, {16, 0}, nullptr, &plain.err), AMP_OK);
    EXPECT_EQ(amp_session_get_grad_norm(plain.session, &norm, &plain.err), AMP_WRONG_STATE);
    EXPECT_NE(std::string(plain.err.message).find("create the session with grad_norm = 1"), std::string::npos)
        << plain.err.message;
}

} // namespace
