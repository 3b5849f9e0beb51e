// Published weights by name: renamed, transposed, in shards; every difference in words.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <map>

#include "tests/base/failing_allocator.h"
#include "tests/runtime/weights.h"

extern "C" {
#include "base/safetensors/weight_files.h"
#include "runtime/files/weight_names.h"
}

namespace {

TEST(Weights, ExactFilesLoadWithoutRules) {
    Grown g(Gpt());
    Loaded l = Load(g, WriteTensors("exact.st", GptFile("")));
    ASSERT_EQ(l.status, AMP_OK) << l.message;
    EXPECT_EQ(l.report.loaded, 17);
    EXPECT_EQ(l.report.ignored + l.report.fresh + l.report.transposed + l.report.rounded, 0);
    EXPECT_EQ(g.Get("wte.weight", 48), Ramp(48, 100));
    EXPECT_EQ(g.Get("h.2.attn.c_proj.weight", 16), Ramp(16, 1400));
    EXPECT_EQ(g.Get("fc.weight", 400), Ramp(400, 0.5f)); // stored in panels
}

// ---- names ----------------------------------------------------------------------------------------------------------

TEST(Weights, RenamesCarryStarsOver) {
    const struct {
        const char *rule, *name, *want; // NULL: does not match
    } cases[] = {
        {"transformer.*=*", "transformer.h.0.x", "h.0.x"},
        {"*=transformer.*", "h.0.x", "transformer.h.0.x"},
        {"model.layers.*.self_attn.*=h.*.attn.*", "model.layers.11.self_attn.q.weight", "h.11.attn.q.weight"},
        {"*.gamma=*.weight", "a.gamma", "a.weight"},
        {"*.gamma=*.weight", "a.gamma.b", nullptr},
        {"a*b*c=x*y*z", "aabbcc", "xaybcz"}, // the first as little as it can, the last what is left
        {"a*a=*", "a", nullptr},
        {"a*a=*b", "aa", "b"},
        {"lm_head.weight=wte.weight", "lm_head.weight", "wte.weight"},
        {"lm_head.weight=wte.weight", "lm_head.weights", nullptr},
        {"**=*x*", "ab", "xab"},
    };
    for (const auto &c : cases) {
        char out[64] = "";
        size_t bytes = 0;
        ASSERT_EQ(amp_rename_check(c.rule, nullptr), AMP_OK) << c.rule;
        EXPECT_EQ(amp_rename_apply(c.rule, c.name, out, sizeof out, &bytes), c.want != nullptr) << c.rule;
        if (!c.want) continue;
        EXPECT_STREQ(out, c.want) << c.rule;
        EXPECT_EQ(bytes, strlen(c.want) + 1) << c.rule;
        EXPECT_TRUE(amp_rename_apply(c.rule, c.name, out, 2, &bytes));
        EXPECT_EQ(strlen(out), 1u) << c.rule;
    }
    char pattern[16];
    EXPECT_STREQ(amp_name_pattern("h.11.ln_1.0", pattern, sizeof pattern), "h.*.ln_1.*");
    EXPECT_STREQ(amp_name_pattern("h.1a.2", pattern, 5), "h.1a");
    EXPECT_EQ(amp_name_pattern_compare("h.1.x", "h.23.x"), 0);
    EXPECT_NE(amp_name_pattern_compare("h.1.x", "h.1x.x"), 0);
}

TEST(Weights, RulesThatAreNoneOrMatchNothingAreRefused) {
    Grown g(Gpt());
    std::string path = WriteTensors("rules.st", GptFile("transformer."));
    const struct {
        Rules rules;
        amp_status status;
        const char *message;
    } cases[] = {
        {{{}, {"transformer"}}, AMP_INVALID_ARGUMENT, "rename 'transformer': FROM=TO is wanted"},
        {{{}, {"=a"}}, AMP_INVALID_ARGUMENT, "FROM=TO is wanted"},
        {{{}, {"a="}}, AMP_INVALID_ARGUMENT, "FROM=TO is wanted"},
        {{{}, {"a.*=b"}}, AMP_INVALID_ARGUMENT, "has 1 * before the = and 0 after it"},
        {{{}, {"*****************=*****************"}}, AMP_INVALID_ARGUMENT, "has 17 *; at most 16"},
        {{{}, {"bert.*=*"}}, AMP_MISMATCH, "rules.st: rename 'bert.*=*' matches none of the names of its 17 tensors"},
        {{{}, {"transformer.*=*", "transformer.h.*=h.*"}}, AMP_MISMATCH, "17 tensors, renamed; one is fc.batches"},
        {{{"lm_head*"}}, AMP_MISMATCH, "ignore 'lm_head*' matches none of the names of its 17 tensors; one is fc.ba"},
        {{{}, {"transformer.*=*"}, {"h.*.bias"}}, AMP_MISMATCH, "matches no parameter of tiny with two dimensions"},
        {{{}, {"transformer.*=*"}, {}, {"head.*"}}, AMP_MISMATCH, "fresh 'head.*' matches no parameter of tiny"},
    };
    for (const auto &c : cases) {
        Rules rules = c.rules;
        Loaded l = Load(g, path, rules);
        EXPECT_EQ(l.status, c.status) << c.message;
        EXPECT_SAYS(l.message, c.message);
        EXPECT_EQ(g.Get("wte.weight", 48), std::vector<float>(48)) << "nothing was loaded";
    }
    // In order: what is ignored is not renamed, and each rule applies to what those before it made.
    std::vector<Tensor> file = GptFile("transformer.");
    file.push_back(F32("transformer.wpe.weight", {3}, 0));
    path = WriteTensors("order.st", file);
    Loaded l = Load(g, path, {{"transformer.wpe*"}, {"transformer.*=x.*", "x.h.*=h.*", "x.*=*"}});
    ASSERT_EQ(l.status, AMP_OK) << l.message;
    EXPECT_EQ(l.report.ignored, 1);
    EXPECT_EQ(g.Get("h.0.ln_1.weight", 4), Ramp(4, 300));
}

// ---- differences, and what would mend them --------------------------------------------------------------------------

TEST(Weights, ProposesPrefixes) {
    Grown g(Gpt());
    Loaded l = Load(g, WriteTensors("prefix.st", GptFile("transformer.")));
    EXPECT_EQ(l.status, AMP_MISMATCH);
    EXPECT_SAYS(l.message, "prefix.st: does not fit the model tiny: 14 parameters are not in it, 14 tensors are not in "
                           "the model. Try rename 'transformer.*=*'. Not in the file: h.*.attn.c_attn.bias (3); ");
    EXPECT_SAYS(l.message, "Not in the model: transformer.h.*.attn.c_attn.bias (3); ");
    ASSERT_EQ(Load(g, TempPath("prefix.st"), {{}, {"transformer.*=*"}}).status, AMP_OK);

    std::vector<Named> longer;
    for (Named n : Gpt()) n.name = "transformer." + n.name, longer.push_back(n);
    Grown other(longer);
    std::string path = WriteTensors("bare.st", GptFile(""));
    EXPECT_SAYS(Load(other, path).message, "Try rename 'h.*=transformer.h.*' rename ");
    ASSERT_EQ(
        Load(other, path, {{}, {"h.*=transformer.h.*", "wte.*=transformer.wte.*", "ln_f.*=transformer.ln_f.*"}}).status,
        AMP_OK);
}

TEST(Weights, ProposesOtherNamesOfBlocks) {
    std::vector<Tensor> file;
    for (Tensor t : GptFile("")) {
        size_t at = t.name.find(".attn.");
        if (t.name.compare(0, 2, "h.") == 0) {
            if (at != std::string::npos) t.name.replace(at, 6, ".self_attention.");
            t.name = "model.layers." + t.name.substr(2);
        }
        file.push_back(t);
    }
    Grown g(Gpt());
    std::string path = WriteTensors("llama.st", file);
    Loaded l = Load(g, path);
    EXPECT_SAYS(l.message, "rename 'model.layers.*.self_attention.*=h.*.attn.*'");
    EXPECT_SAYS(l.message, "rename 'model.layers.*=h.*'");
    ASSERT_EQ(Load(g, path, {{}, {"model.layers.*.self_attention.*=h.*.attn.*", "model.layers.*=h.*"}}).status, AMP_OK);

    Grown norms({{"norm.weight", {4}}, {"norm.bias", {4}}});
    path = WriteTensors("gamma.st", With({F32("norm.gamma", {4}, 1), F32("norm.beta", {4}, 9)}));
    l = Load(norms, path);
    EXPECT_SAYS(l.message, "Try rename '*.gamma=*.weight' rename '*.beta=*.bias'. ");
    ASSERT_EQ(Load(norms, path, {{}, {"*.gamma=*.weight", "*.beta=*.bias"}}).status, AMP_OK);
    EXPECT_EQ(norms.Get("norm.bias", 4), Ramp(4, 9));
}

TEST(Weights, ProposesTransposing) {
    Grown g(Gpt());
    std::string path = WriteTensors("conv1d.st", GptFile("transformer.", true));
    Loaded l = Load(g, path);
    EXPECT_EQ(l.status, AMP_MISMATCH);
    EXPECT_SAYS(l.message, "Try rename 'transformer.*=*' transpose 'h.*.attn.c_attn.weight' transpose "
                           "'h.*.attn.c_proj.weight', or linear(...; transposed = true) in the model");
    EXPECT_SAYS(l.message, "likely h.*.attn.c_proj.weight, too, which is square");
    l = Load(g, path, {{}, {"transformer.*=*"}});
    EXPECT_SAYS(l.message, "conv1d.st: does not fit the model tiny: 3 have another shape or type. Try transpose ");
    EXPECT_SAYS(l.message, "h.*.attn.c_attn.weight (3): the file has f32[4, 12], the model f32[12, 4]");
    l = Load(g, path, {{}, {"transformer.*=*"}, {"h.*.attn.c_*.weight"}});
    ASSERT_EQ(l.status, AMP_OK) << l.message;
    EXPECT_EQ(l.report.transposed, 6);
    std::vector<float> got = g.Get("h.1.attn.c_attn.weight", 48), square = g.Get("h.1.attn.c_proj.weight", 16);
    for (int row = 0; row < 12; row++)
        for (int col = 0; col < 4; col++) EXPECT_EQ(got[row * 4 + col], 800 + (float)(col * 12 + row));
    for (int row = 0; row < 4; row++)
        for (int col = 0; col < 4; col++) EXPECT_EQ(square[row * 4 + col], 1000 + (float)(col * 4 + row));
    // Panels, halves, and more than one piece.
    Tensor half = {"fc.weight", "F16", {TINY_FEATURES, TINY_CLASSES}, std::string(800, '\0')};
    half.bytes[2 * (3 * TINY_CLASSES + 7) + 1] = 0x3c; // 1 at [3, 7]
    Grown tiny({});
    l = Load(tiny,
             WriteTensors("half.st", {half, F32("fc.bias", {10}, 1), {"fc.batches", "I64", {}, std::string(8, '\0')}}),
             {{}, {}, {"fc.weight"}});
    ASSERT_EQ(l.status, AMP_OK) << l.message;
    std::vector<float> weight = tiny.Get("fc.weight", 400), want(400);
    want[7 * TINY_FEATURES + 3] = 1;
    EXPECT_EQ(weight, want);
    // The other way round: the file has what the model has.
    l = Load(tiny, WriteTensors("straight.st", With({})), {{}, {}, {"fc.weight"}});
    EXPECT_SAYS(l.message, "the file has f32[10, 40], the model f32[10, 40], which transpose turns");
}

TEST(Weights, TiedWeightsAreFoundAndTaken) {
    Grown g(Gpt());
    std::vector<Tensor> file = GptFile("");
    file.push_back(F32("lm_head.weight", {12, 4}, 100)); // wte's
    std::string path = WriteTensors("tied.st", file);
    Loaded l = Load(g, path);
    EXPECT_SAYS(l.message, "tied.st: tensor lm_head.weight: is not in the model tiny; the file has f32[12, 4]. Try "
                           "rename 'lm_head.weight=wte.weight' (the same numbers)");
    l = Load(g, path, {{}, {"lm_head.weight=wte.weight"}});
    ASSERT_EQ(l.status, AMP_OK) << l.message;
    EXPECT_EQ(l.report.loaded, 17);
    file.back() = F32("lm_head.weight", {12, 4}, 101);
    path = WriteTensors("untied.st", file);
    EXPECT_SAYS(Load(g, path).message, "Try ignore 'lm_head.weight', where that is meant");
    l = Load(g, path, {{}, {"lm_head.weight=wte.weight"}});
    EXPECT_EQ(l.status, AMP_MISMATCH);
    EXPECT_SAYS(l.message, "tensor wte.weight: is wte.weight, as lm_head.weight is, with other numbers; ignore one");
    EXPECT_EQ(Load(g, path, {{"lm_head.weight"}}).status, AMP_OK);
}

// What partial accepts is not in the message, and nothing of it is proposed.
TEST(Weights, PartialRefusesTwoTensorsForOneParameterAlone) {
    Grown g(Gpt());
    std::vector<Tensor> file = GptFile("");
    file.erase(file.begin());                           // wte.weight
    file.push_back(F32("first.weight", {12, 4}, 100));  // one for wte.weight
    file.push_back(F32("second.weight", {12, 4}, 101)); // another one
    file.push_back(F32("unknown.weight", {5}, 0));
    const std::string path = WriteTensors("partly.st", file);
    Rules rules({}, {"first.*=wte.*", "second.*=wte.*"});
    amp_error err = {};
    amp_weights_options o = rules.get();
    o.partial = 1;
    ASSERT_EQ(amp_params_load(g.params, path.c_str(), &o, nullptr, &err), AMP_MISMATCH);
    EXPECT_STREQ(
        err.message + std::string(err.message).find("partly.st"),
        "partly.st: tensor second.weight: is wte.weight, as first.weight is, with other numbers; ignore one of "
        "them");
    EXPECT_EQ(rules.why.size(), 2u);
    EXPECT_EQ(rules.why.count("unknown.weight"), 1u);
}

TEST(Weights, SizeWithoutBytesIsRefused) {
    Grown g(Gpt());
    amp_error err = {};
    amp_weights_options o = {};
    o.struct_size = sizeof o, o.size = 8;
    const std::string path = WriteTensors("sized.st", GptFile(""));
    EXPECT_EQ(amp_params_load(g.params, path.c_str(), &o, nullptr, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "amp_params_load: size is given without bytes: set both or neither");
    EXPECT_EQ(amp_params_save(g.params, path.c_str(), &o, &err), AMP_INVALID_ARGUMENT);
}

TEST(Weights, AllDifferencesAreReportedAtOnce) {
    Grown g({{"a", {2}}, {"b.0.w", {3}}, {"b.1.w", {3}}, {"head.weight", {5, 3}}, {"n", {}, true}});
    std::vector<Tensor> file = With({F32("a", {3}, 0),
                                     F32("b.0.w", {3}, 0),
                                     F32("extra.4", {1}, 0),
                                     F32("head.weight", {1000, 3}, 0),
                                     {"n", "I32", {}, std::string(4, '\1')}});
    Rules rules;
    Loaded l = Load(g, WriteTensors("many.st", file), rules);
    EXPECT_EQ(l.status, AMP_MISMATCH);
    EXPECT_SAYS(l.message, "1 parameter is not in it, 1 tensor is not in the model, 3 have another shape or type");
    EXPECT_SAYS(l.message, "Not in the file: b.1.w. Not in the model: extra.4. Another shape or type: a: the file has "
                           "f32[3], the model f32[2]; head.weight: the file has f32[1000, 3], the model f32[5, 3]; n: "
                           "the file has i32[], the model i64[]");
    EXPECT_EQ(rules.kind.size(), 5u);
    EXPECT_EQ(rules.kind["b.1.w"], AMP_WEIGHTS_MISSING);
    EXPECT_EQ(rules.kind["extra.4"], AMP_WEIGHTS_EXTRA);
    EXPECT_EQ(rules.kind["a"], AMP_WEIGHTS_MISFIT);
    EXPECT_EQ(rules.why["b.1.w"], "is not in the file; the model has f32[3]");
    EXPECT_EQ(g.Get("b.0.w", 3), std::vector<float>(3)) << "nothing was loaded";
    // A new head, and an older file without counters.
    file.erase(file.begin(), file.begin() + 1);
    file.push_back(F32("a", {2}, 7)), file.push_back(F32("b.1.w", {3}, 8));
    std::string path = WriteTensors("head.st", file);
    l = Load(g, path, {{"extra*"}, {}, {}, {"head.*", "n"}});
    ASSERT_EQ(l.status, AMP_OK) << l.message;
    EXPECT_EQ(l.report.fresh, 2);
    EXPECT_EQ(g.Get("b.1.w", 3), Ramp(3, 8));
    EXPECT_EQ(g.Get("head.weight", 15), std::vector<float>(15));
}

TEST(Weights, ProposesTheEndThatAllHave) {
    std::vector<Named> names;
    std::vector<Tensor> file;
    for (const char *block : {"a.bn1", "a.bn2", "b.0.bn1", "b.1.bn1", "c.bn"}) {
        names.push_back({std::string(block) + ".running_mean", {2}});
        names.push_back({std::string(block) + ".num_batches_tracked", {}, true});
        file.push_back(F32(std::string(block) + ".running_mean", {2}, 0));
    }
    Grown g(names);
    std::string path = WriteTensors("old.st", With(file));
    EXPECT_SAYS(Load(g, path).message, "5 parameters are not in it. Try fresh '*.num_batches_tracked', where that is");
    EXPECT_EQ(Load(g, path, {{}, {}, {}, {"*.num_batches_tracked"}}).status, AMP_OK);
}

TEST(Weights, TenThousandNames) {
    std::vector<Named> names;
    std::vector<Tensor> file, other;
    for (int i = 0; i < 10000; i++) {
        std::string odd(1, (char)('a' + i % 26)), name = "block" + std::to_string(i) + "." + odd + ".weight";
        names.push_back({name, {2}});
        file.push_back(F32("net." + name, {2}, (float)i));
        other.push_back(F32("x" + std::to_string(i * 7919 % 10007) + odd, {2}, (float)i));
    }
    Grown g(names);
    auto start = std::chrono::steady_clock::now();
    Rules rules;
    Loaded l = Load(g, WriteTensors("10000.st", With(file)), rules);
    EXPECT_SAYS(l.message, "10000 parameters are not in it, 10000 tensors are not in the model. Try rename 'net.*=*'.");
    EXPECT_LT(l.message.size(), sizeof(amp_error::message) - 1) << "not cut";
    EXPECT_EQ(rules.kind.size(), 20000u);
    EXPECT_EQ(Load(g, TempPath("10000.st"), {{}, {"net.*=*"}}).status, AMP_OK);
    EXPECT_EQ(g.Get("block9999.p.weight", 2), Ramp(2, 9999));
    l = Load(g, WriteTensors("other.st", With(other)));
    EXPECT_EQ(l.status, AMP_MISMATCH);
    EXPECT_EQ(l.message.find("rename '"), std::string::npos) << l.message;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

// ---- types ----------------------------------------------------------------------------------------------------------

TEST(Weights, FloatsAreConvertedAndCountersKept) {
    Grown g({{"h", {2}}, {"b", {2}}, {"d", {2}}, {"n", {}, true}});
    std::vector<Tensor> file = With({{"h", "F16", {2}, Bytes<uint16_t>({0x3c00, 0xc000})},
                                     {"b", "BF16", {2}, Bytes<uint16_t>({0x3f80, 0x7f80})},
                                     {"d", "F64", {2}, Bytes<double>({0.1, -1e-60})},
                                     {"n", "I64", {}, Bytes<int64_t>({123456789012})}});
    Loaded l = Load(g, WriteTensors("types.st", file));
    ASSERT_EQ(l.status, AMP_OK) << l.message;
    EXPECT_EQ(l.report.rounded, 1);
    EXPECT_EQ(g.Get("h", 2), (std::vector<float>{1, -2}));
    EXPECT_EQ(g.Get("b", 2), (std::vector<float>{1, INFINITY}));
    EXPECT_EQ(g.Get("d", 2), (std::vector<float>{0.1f, -0.0f}));
    file[2].bytes = Bytes<double>({INFINITY, 1e300});
    file[0].bytes = Bytes<uint16_t>({0, 0});
    l = Load(g, WriteTensors("large.st", file));
    EXPECT_EQ(l.status, AMP_MISMATCH);
    EXPECT_SAYS(l.message, "large.st: tensor d: its element 1 is 1e+300, but f32 ends at 3.40282e+38");
    EXPECT_EQ(g.Get("h", 2), (std::vector<float>{1, -2})) << "nothing was loaded";
    // Types that are not computed with are named, or ignored; nothing may have any shape.
    file[2] = {"d", "I8", {2}, "ab"};
    file.push_back({"none", "F8_E4M3", {0, 7}, ""});
    std::string path = WriteTensors("odd.st", file);
    l = Load(g, path, {{"none"}});
    EXPECT_SAYS(l.message, "parameter d: the file has I8[2], the model f32[2]");
    EXPECT_EQ(Load(g, path, {{"none", "d"}, {}, {}, {"d"}}).status, AMP_OK);
}

TEST(Weights, ShardsOfAnIndex) {
    Shards s;
    Grown g(Gpt());
    Loaded l = Load(g, WriteTemp("model.safetensors.index.json", Index(s.map)), {{}, {"transformer.*=*"}});
    ASSERT_EQ(l.status, AMP_OK) << l.message;
    EXPECT_EQ(l.report.loaded, 17);
    EXPECT_EQ(g.Get("h.2.attn.c_proj.weight", 16), Ramp(16, 1400));
    EXPECT_EQ(g.Get("wte.weight", 48), Ramp(48, 100));
    amp_error err = {};
    EXPECT_EQ(amp_params_load(g.params, TempPath("model.safetensors.index.json").c_str(), nullptr, nullptr, &err),
              AMP_MISMATCH);
    EXPECT_SAYS(std::string(err.message), "index.json: does not fit the model tiny: 14 parameters are not in it");
}

TEST(Weights, WrongIndexesAreRefused) {
    Shards s;
    Grown g(Gpt());
    auto changed = [&](const std::string &name, const std::string &shard) {
        auto map = s.map;
        for (auto &m : map)
            if (m.first == name) m.second = shard;
        return Index(map);
    };
    auto without = s.map, with = s.map;
    without.erase(without.begin());
    with.push_back({"more", "s1.safetensors"});
    std::string deep(100, '[');
    const struct {
        std::string text;
        amp_status status;
        const char *message;
    } cases[] = {
        {"", AMP_BAD_FILE, "i.json: not a sound index of weights: byte 0: "},
        {"[]", AMP_BAD_FILE, "it has no object weight_map"},
        {"{\"weight_map\":[]}", AMP_BAD_FILE, "it has no object weight_map"},
        {"{\"weight_map\":{}}", AMP_BAD_FILE, "its weight_map is empty"},
        {"{\"weight_map\":{\"a\":1}}", AMP_BAD_FILE, "weight_map: a is a number; the name of a file is wanted"},
        {"{\"weight_map\":{\"a\":\"x\",\"a\":\"y\"}}", AMP_BAD_FILE, "a"},
        {"{\"weight_map\":{\"a\":\"\"}}", AMP_BAD_FILE, "a has an empty file name"},
        {Index(s.map).substr(0, 200), AMP_BAD_FILE, "not a sound index"},
        {"{\"metadata\":" + deep, AMP_BAD_FILE, "not a sound index"},
        {Text({}), AMP_BAD_FILE, "not a sound index"},
        {changed("transformer.wte.weight", "/etc/passwd"), AMP_BAD_FILE, "is in /etc/passwd; only files in the folder"},
        {changed("transformer.wte.weight", "../s1.safetensors"), AMP_BAD_FILE, "only files in the folder of the index"},
        {changed("transformer.wte.weight", "below/../s1.safetensors"), AMP_BAD_FILE, "only files in the folder"},
        {changed("transformer.wte.weight", "below/.."), AMP_BAD_FILE, "only files in the folder"},
        {changed("transformer.wte.weight", "gone.safetensors"), AMP_NOT_FOUND,
         "gone.safetensors: cannot open: No such file or directory; "},
        {changed("transformer.wte.weight", "below/s2.safetensors"), AMP_MISMATCH,
         "lists tensor transformer.wte.weight, which "},
        {Index(with), AMP_MISMATCH, "i.json lists tensor more, which "},
        {Index(without), AMP_MISMATCH, "which "},
        {changed("transformer.wte.weight", "i.json"), AMP_BAD_FILE, "i.json: not a sound safetensors file"},
        {changed("transformer.wte.weight", "below"), AMP_IO, "below: cannot read: Is a directory"},
    };
    for (const auto &c : cases) {
        Loaded l = Load(g, WriteTemp("i.json", c.text), {{}, {"transformer.*=*"}});
        EXPECT_EQ(l.status, c.status) << c.message << ": " << l.message;
        EXPECT_SAYS(l.message, c.message);
    }
    Loaded named = Load(g, WriteTemp("index.txt", Index(s.map)));
    EXPECT_EQ(named.status, AMP_BAD_FILE);
    EXPECT_SAYS(named.message, "begins with text, and not with the size of its header; the index of several files is "
                               "read where its name ends in .json");
    // A name in two shards is listed for one of them; a shard that was cut.
    WriteTensors("s1.safetensors", GptFile("transformer."));
    Loaded l = Load(g, WriteTemp("i.json", Index(s.map)), {{}, {"transformer.*=*"}});
    EXPECT_EQ(l.status, AMP_MISMATCH);
    EXPECT_SAYS(l.message, ", which " + TempPath("i.json") + " lists as in below/s2.safetensors (and 7 more)");
    WriteTemp("s1.safetensors", Text(GptFile("transformer.")).substr(0, 3000));
    l = Load(g, TempPath("i.json"), {{}, {"transformer.*=*"}});
    EXPECT_EQ(l.status, AMP_BAD_FILE);
    EXPECT_SAYS(l.message, "s1.safetensors: not a sound safetensors file: ");
    EXPECT_SAYS(l.message, "i.json has 9 tensors there, the first is ");
}

// ---- files that change while they are read --------------------------------------------------------------------------

TEST(Weights, FilesThatChangeWhileTheyAreRead) {
    std::string path = WriteTensors("changing.st", {F32("a", {1000}, 5)});
    amp_weight_files *files = nullptr;
    amp_error err = {};
    std::vector<float> got(1000);
    ASSERT_EQ(amp_weight_files_open(path.c_str(), nullptr, &files, &err), AMP_OK) << err.message;
    EXPECT_EQ(amp_weight_files_at(files, 0)->data, nullptr) << "not held";
    // Replaced, as saving does: what was opened is read on.
    WriteTensors("new.st", {F32("a", {1000}, 7)});
    ASSERT_EQ(rename(TempPath("new.st").c_str(), path.c_str()), 0);
    EXPECT_EQ(amp_weight_files_read(files, 0, 0, got.data(), 4000, &err), AMP_OK) << err.message;
    EXPECT_EQ(got, Ramp(1000, 5));
    EXPECT_EQ(amp_weight_files_check_unchanged(files, &err), AMP_OK) << err.message;
    amp_weight_files_close(files);
    // Cut, and written to.
    ASSERT_EQ(amp_weight_files_open(path.c_str(), nullptr, &files, &err), AMP_OK) << err.message;
    ASSERT_EQ(truncate(path.c_str(), 1000), 0);
    EXPECT_EQ(amp_weight_files_read(files, 0, 0, got.data(), 4000, &err), AMP_IO);
    EXPECT_SAYS(std::string(err.message), "changing.st: ends at byte 1000 of 40");
    EXPECT_EQ(amp_weight_files_check_unchanged(files, &err), AMP_IO);
    EXPECT_SAYS(std::string(err.message), "changing.st: was written to while it was read");
    amp_weight_files_close(files);
}

TEST(Weights, AShardThatIsNoFileIsNotWaitedFor) {
    const std::string index = WriteTemp("special.json", R"({"weight_map": {"wte.weight": "special.st"}})"),
                      shard = TempPath("special.st");
    alarm(20);
    for (const auto &[kind, said] : {std::pair{S_IFIFO, "is a pipe; only a regular file is read here"},
                                     {S_IFSOCK, "is a socket; only a regular file is read here"},
                                     {S_IFDIR, "cannot read: Is a directory"}}) {
        remove(shard.c_str());
        ASSERT_EQ(kind == S_IFDIR ? mkdir(shard.c_str(), 0700) : mknod(shard.c_str(), kind | 0600, 0), 0);
        Grown g(Gpt());
        Loaded l = Load(g, index);
        EXPECT_NE(l.status, AMP_OK);
        EXPECT_SAYS(l.message, "special.st: " + std::string(said));
    }
    alarm(0);
    remove(shard.c_str());
}

TEST(Weights, PipesAreReadWhole) {
    std::string path = TempPath("pipe.st"), bytes = Text(GptFile(""));
    remove(path.c_str());
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    Grown g(Gpt());
    if (pid_t child = fork(); child == 0) {
        FILE *to = fopen(path.c_str(), "wb");
        _exit(!to || fwrite(bytes.data(), 1, bytes.size(), to) != bytes.size() || fclose(to));
    }
    Loaded l = Load(g, path);
    EXPECT_EQ(l.status, AMP_OK) << l.message;
    EXPECT_EQ(g.Get("wte.weight", 48), Ramp(48, 100));
    remove(path.c_str());
}

// ---- memory ---------------------------------------------------------------------------------------------------------

// By this process, so far; 0 where the system does not count.
size_t BytesRead() {
    std::string text = ReadAll("/proc/self/io");
    size_t at = text.find("rchar: ");
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + 7));
}

TEST(Weights, TheFileIsReadOnceAndNotHeld) {
    static size_t now, most;
    now = most = 0;
    amp_allocator a = {nullptr,
                       [](void *, size_t size, size_t align) -> void * {
                           now += size;
                           most = std::max(most, now);
                           return aligned_alloc(align, (size + align - 1) / align * align);
                       },
                       [](void *, void *at, size_t size, size_t) {
                           now -= at ? size : 0;
                           free(at);
                       }};
    enum { COUNT = 12, FLOATS = 1 << 20 };
    std::vector<Named> names;
    std::vector<Tensor> file;
    for (int i = 0; i < COUNT; i++) {
        names.push_back({"w" + std::to_string(i), {1024, FLOATS / 1024}});
        file.push_back(F32(names.back().name, names.back().dims, (float)i));
    }
    std::string path = WriteTensors("big.st", With(file));
    {
        Grown g(names, &a);
        size_t before = most = now, read = BytesRead();
        Loaded l = Load(g, path, {{}, {}, {"w1", "w2"}});
        ASSERT_EQ(l.status, AMP_OK) << l.message;
        read = BytesRead() - read;
        EXPECT_LE(read, COUNT * FLOATS * sizeof(float) + (1 << 16)) << "once";
        EXPECT_LE(most - before, (size_t)1 << 20) << "a piece, and tables";
        EXPECT_EQ(now, before);
        amp_error err = {};
        most = now;
        ASSERT_EQ(amp_params_save(g.params, TempPath("big2.st").c_str(), nullptr, &err), AMP_OK) << err.message;
        EXPECT_LE(most - before, (size_t)1 << 20);
    }
    EXPECT_EQ(now, 0u);
    remove(path.c_str()), remove(TempPath("big2.st").c_str());
}

TEST(Weights, EveryAllocationMayFail) {
    Shards s;
    std::string index = WriteTemp("oom.json", Index(s.map)), saved = TempPath("oom.out");
    for (int fail = 0;; fail++) {
        ASSERT_LT(fail, 1000);
        FailingAllocator failing;
        amp_allocator a = failing.get();
        Grown g(Gpt(), &a);
        failing.fail_after(fail);
        Loaded l = Load(g, index, {{}, {"transformer.*=*"}});
        if (!l.status) {
            amp_error err = {};
            Rules rules = {{}, {"transformer.*=*"}};
            amp_weights_options o = rules.get();
            o.like = index.c_str();
            l.status = amp_params_save(g.params, saved.c_str(), &o, &err);
            l.message = err.message;
        }
        bool loaded = !l.status;
        if (loaded) { // a mismatch is reported without proposals, if need be
            failing.fail_after(fail % 40);
            Loaded wrong = Load(g, index);
            EXPECT_TRUE(wrong.status == AMP_OUT_OF_MEMORY || wrong.status == AMP_MISMATCH) << wrong.message;
        }
        failing.fail_after(-1);
        if (loaded && fail % 40 == 39) break;
        if (!loaded) {
            ASSERT_EQ(l.status, AMP_OUT_OF_MEMORY) << fail << ": " << l.message;
        }
    }
}

} // namespace
