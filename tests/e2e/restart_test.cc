// The text form is the IR: what a pass prints parses back to the same text, and going on from it gives the same model.
#include "tests/base/planted.h"
#include "tests/e2e/harness.h"

#include <cstring>
#include <map>

namespace {

struct Dumps {
    std::map<std::string, std::string> by_pass;
};

amp_compile_options with_dump(Dumps *dumps) {
    amp_compile_options o = {};
    o.user = dumps;
    o.dump = [](void *user, const char *pass, const char *text, size_t size) {
        static_cast<Dumps *>(user)->by_pass[pass].assign(text, size);
    };
    o.diagnostic = [](void *, const char *text, int32_t) { ADD_FAILURE() << text; };
    return o;
}

class Restart : public ::testing::TestWithParam<const char *> {};

TEST_P(Restart, EveryDumpParsesBackToItsText) {
    Dumps dumps;
    amp_compile_options o = with_dump(&dumps);
    o.emit = AMP_EMIT_IR;
    ASSERT_EQ(e2e::compile(e2e::mlp(GetParam()), o).status, AMP_OK);
    size_t passes = 0;
    while (amp_compile_pass(int32_t(passes))) passes++;
    ASSERT_EQ(dumps.by_pass.size(), passes);
    for (auto &[pass, text] : dumps.by_pass) {
        amp_compile_options again = {};
        again.emit = AMP_EMIT_IR;
        again.stop_after = pass.c_str();
        e2e::Compiled c = e2e::compile(text, again, "dump.ir");
        EXPECT_EQ(c.status, AMP_OK) << pass << ": " << c.message << c.diagnostics;
        EXPECT_EQ(c.bytes, text) << pass;
    }
}

// |text|, after |pass|, becomes the model |whole|.
void expect_restarts(const std::string &pass, const std::string &text, const std::string &whole) {
    amp_compile_options again = {};
    again.emit = AMP_EMIT_C;
    again.target = "cpu";
    e2e::Compiled rest = e2e::compile(text, again, "dump.ir");
    EXPECT_EQ(rest.status, AMP_OK) << pass << ": " << rest.message << rest.diagnostics;
    EXPECT_TRUE(rest.bytes == whole) << "restarted after " << pass;
}

TEST_P(Restart, AfterAnyPassTheModelIsTheSame) {
    Dumps dumps;
    amp_compile_options o = with_dump(&dumps);
    o.emit = AMP_EMIT_C; // the same model.so is made from it: CompilingTwiceGivesTheSameBytes
    o.target = "cpu";    // from fuse on the text is one target's
    e2e::Compiled whole = e2e::compile(e2e::mlp(GetParam()), o);
    ASSERT_EQ(whole.status, AMP_OK) << whole.message;
    for (auto &[pass, text] : dumps.by_pass) expect_restarts(pass, text, whole.bytes);
    std::string planted = dumps.by_pass.at("lower");
    planted.replace(planted.find("= maximum("), 10, "= minimum(");
    ExpectFound("another op", "restarted after lower", [&] { expect_restarts("lower", planted, whole.bytes); });
}

// As long as the text is every target's, so is what is made of it; after that, CUDA code is left out or refused.
TEST(Restart, WithCudaCodeUpToLower) {
    Dumps dumps;
    amp_compile_options o = with_dump(&dumps), again = {}, cuda = {};
    o.emit = again.emit = AMP_EMIT_C;
    o.target = again.target = "both";
    cuda.target = "cuda";
    e2e::Compiled whole = e2e::compile(e2e::mlp("fp16"), o);
    ASSERT_EQ(whole.status, AMP_OK) << whole.message;
    bool behind_lower = false;
    for (int i = 0; const char *pass = amp_compile_pass(i); i++) {
        const std::string text = dumps.by_pass.at(pass);
        e2e::Compiled rest = e2e::compile(text, again, "dump.ir"), only = e2e::compile(text, cuda, "dump.ir");
        EXPECT_EQ(rest.status, AMP_OK) << pass << ": " << rest.message;
        EXPECT_EQ(rest.bytes == whole.bytes, !behind_lower) << pass;
        EXPECT_EQ(only.status, behind_lower ? AMP_INVALID_ARGUMENT : AMP_OK) << pass << ": " << only.message;
        if (behind_lower) {
            EXPECT_NE(only.message.find("start from stage lower"), std::string::npos) << only.message;
        }
        behind_lower = behind_lower || !strcmp(pass, "lower");
    }
}

TEST(Restart, CompilingTwiceGivesTheSameBytes) {
    EXPECT_TRUE(e2e::compile(e2e::mlp("fp16")).bytes == e2e::compile(e2e::mlp("fp16")).bytes);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Restart, ::testing::Values("fp32", "tf32", "bf16", "fp16"),
                         [](const ::testing::TestParamInfo<const char *> &i) { return std::string(i.param); });

} // namespace
