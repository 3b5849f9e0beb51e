// Published weights saved under the names of their file, and read when a tensor of them is damaged.
#include <unistd.h>

#include <cstdio>

#include "tests/runtime/weights.h"

extern "C" {
#include "base/safetensors/weight_files.h"
}

namespace {

// ---- saving under the names of the file -----------------------------------------------------------------------------

amp_status Save(const Grown &g, const std::string &path, const std::string &like, Rules rules, std::string *message) {
    amp_error err = {};
    amp_weights_options o = rules.get();
    o.like = like.c_str();
    amp_status status = amp_params_save(g.params, path.c_str(), &o, &err);
    *message = status ? err.message : "";
    return status;
}

// Name: type, shape and bytes.
std::map<std::string, std::string> Contents(const std::string &path) {
    std::map<std::string, std::string> out;
    amp_safetensors *f = nullptr;
    amp_error err = {};
    EXPECT_EQ(amp_safetensors_open(path.c_str(), nullptr, &f, &err), AMP_OK) << err.message;
    for (int32_t i = 0; f && i < amp_safetensors_count(f); i++) {
        const amp_tensor_view *v = amp_safetensors_at(f, i);
        std::string text = v->dtype_name;
        for (int k = 0; k < v->rank; k++) text += "," + std::to_string(v->dims[k]);
        out[v->name] = text + ":" + std::string((const char *)v->data, v->bytes);
    }
    amp_safetensors_close(f);
    return out;
}

TEST(WeightsSaved, AsTheFileHasThem) {
    Grown g(Gpt());
    std::vector<Tensor> file = GptFile("transformer.", true);
    file.push_back({"transformer.h.0.attn.bias", "I8", {3}, "abc"}); // a mask, not wanted
    file.push_back(F32("lm_head.weight", {12, 4}, 100));             // tied
    file.push_back({"empty", "F4", {0, 3}, ""});
    std::string like = WriteTensors("like.st", file, "\"__metadata__\":{\"format\":\"pt\"}"), saved = TempPath("as.st");
    std::string message;
    Rules rules = {{"*.attn.bias", "empty"}, {"transformer.*=*", "lm_head.weight=wte.weight"}, {"h.*.attn.c_*.weight"}};
    Loaded l = Load(g, like, rules);
    ASSERT_EQ(l.status, AMP_OK) << l.message;
    ASSERT_EQ(Save(g, saved, like, rules, &message), AMP_OK) << message;
    EXPECT_EQ(Contents(saved), Contents(like));
    EXPECT_SAYS(ReadAll(saved), "\"format\":\"pt\"");
    EXPECT_SAYS(ReadAll(saved), "\"amp.format\":\"params 1\"");
    // What was trained is in both names of a tied weight.
    std::vector<float> trained(48, 3.0f);
    ASSERT_EQ(amp_params_set(g.params, "wte.weight", trained.data(), 48, &g.err), AMP_OK);
    ASSERT_EQ(Save(g, saved, like, rules, &message), AMP_OK) << message;
    EXPECT_EQ(Contents(saved)["lm_head.weight"], "F32,12,4:" + Bytes(trained));
    EXPECT_EQ(Contents(saved)["transformer.wte.weight"], "F32,12,4:" + Bytes(trained));
    // ... and must not be ignored.
    rules = {{"*.attn.bias", "empty", "lm_head*"}, {"transformer.*=*"}, {"h.*.attn.c_*.weight"}};
    EXPECT_EQ(Load(g, like, rules).status, AMP_OK);
    EXPECT_EQ(Save(g, saved, like, rules, &message), AMP_MISMATCH);
    EXPECT_SAYS(message, "tensor lm_head.weight is ignored, but has the numbers of wte.weight");
    EXPECT_SAYS(message, "rename 'lm_head.weight=wte.weight' instead of ignoring it");
    // A file that does not fit is refused as in loading, and nothing is written.
    remove(saved.c_str());
    EXPECT_EQ(Save(g, saved, like, {}, &message), AMP_MISMATCH);
    EXPECT_NE(access(saved.c_str(), F_OK), 0);
}

TEST(WeightsSaved, FreshParametersAndOtherTypes) {
    Grown g({{"body.weight", {2, 2}}, {"head.weight", {5, 2}}, {"head.bias", {5}}, {"n", {}, true}});
    std::vector<Tensor> file = With({{"net.body.weight", "BF16", {2, 2}, Bytes<uint16_t>({0x3f80, 0, 0, 0x4000})},
                                     F32("net.head.weight", {1000, 2}, 0),
                                     F32("head.bias", {7}, 0), // another one, which gives way
                                     {"net.zeros", "F32", {2, 2}, std::string(16, '\0')}});
    Rules rules = {{"head.bias", "net.zeros"}, {"net.*=*"}, {}, {"head.*", "n"}};
    std::string like = WriteTensors("fresh.st", file), saved = TempPath("fresh_out.st"), message;
    Loaded l = Load(g, like, rules);
    ASSERT_EQ(l.status, AMP_OK) << l.message;
    ASSERT_EQ(Save(g, saved, like, rules, &message), AMP_OK) << message;
    std::map<std::string, std::string> got = Contents(saved);
    EXPECT_EQ(got["net.body.weight"], "F32,2,2:" + Bytes<float>({1, 0, 0, 2}));
    EXPECT_EQ(got["net.head.weight"], "F32,5,2:" + std::string(40, '\0'));
    EXPECT_EQ(got["head.bias"], "F32,5:" + std::string(20, '\0'));
    EXPECT_EQ(got["n"], "I64:" + std::string(8, '\0'));
    EXPECT_EQ(got.size(), 8u);
    // Over the file itself: it is read before it is replaced.
    ASSERT_EQ(Save(g, like, like, rules, &message), AMP_OK) << message;
    EXPECT_EQ(Contents(like), got);
}

TEST(WeightsSaved, LikeTheShardsOfAnIndex) {
    Shards s;
    Grown g(Gpt());
    std::string index = WriteTemp("like.json", Index(s.map)), saved = TempPath("whole.st"), message;
    ASSERT_EQ(Load(g, index, {{}, {"transformer.*=*"}}).status, AMP_OK);
    ASSERT_EQ(Save(g, saved, index, {{}, {"transformer.*=*"}}, &message), AMP_OK) << message;
    EXPECT_EQ(Contents(saved), Contents(WriteTensors("all.st", GptFile("transformer."))));
}

// Of a file that is too large to be held, a tensor's sum is compared when the tensor is read, if it is.
TEST(WeightsDamaged, AreFoundByWhoReadsThem) {
    std::vector<Named> all, renamed, without;
    for (int i = 0; i < 9; i++) all.push_back({"w" + std::to_string(i), {1024, 1024}});
    without = renamed = all;
    without.pop_back(), renamed.back().name = "v8";
    std::string path = TempPath("damaged.st"), message;
    Grown g(all), h(renamed), k(without);
    std::vector<float> marked(1 << 20, 1.0f);
    marked[777] = 12345.0f;
    ASSERT_EQ(amp_params_set(g.params, "w8", marked.data(), marked.size(), &g.err), AMP_OK);
    ASSERT_EQ(amp_params_save(g.params, path.c_str(), nullptr, &g.err), AMP_OK) << g.err.message;
    EXPECT_EQ(Load(g, path, {{}, {}, {"w8"}}).status, AMP_OK);
    std::string bytes = ReadAll(path);
    const size_t at = bytes.find(Bytes(std::vector<float>{12345.0f}));
    ASSERT_LT(at, bytes.size());
    bytes[at] ^= 4;
    WriteTemp("damaged.st", bytes);
    const struct {
        const Grown *grown;
        Rules rules;
    } readers[] = {{&g, {}}, {&g, {{}, {}, {"w8"}}}, {&h, {{}, {"w8=v8"}}}};
    for (const auto &r : readers) {
        Rules rules = r.rules;
        Loaded l = Load(*r.grown, path, rules);
        EXPECT_EQ(l.status, AMP_BAD_FILE);
        EXPECT_SAYS(l.message, "damaged.st: tensor w8 is not as it was saved (its XXH64 is ");
    }
    EXPECT_EQ(Load(k, path, {{"w8"}}).status, AMP_OK);
    EXPECT_EQ(Save(k, TempPath("copied.st"), path, {{"w8"}}, &message), AMP_BAD_FILE); // it would be copied
    EXPECT_SAYS(message, "damaged.st: tensor w8 is not as it was saved");
    remove(path.c_str());
}

} // namespace
