// The text form is the IR: what a pass prints parses back to the same text, and going on from it gives the same model.so.
#include "tests/e2e/harness.h"

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
    ASSERT_EQ(dumps.by_pass.size(), 10u);
    for (auto &[pass, text] : dumps.by_pass) {
        amp_compile_options again = {};
        again.emit = AMP_EMIT_IR;
        again.stop_after = pass.c_str();
        e2e::Compiled c = e2e::compile(text, again, "dump.ir");
        EXPECT_EQ(c.status, AMP_OK) << pass << ": " << c.message << c.diagnostics;
        EXPECT_EQ(c.bytes, text) << pass;
    }
}

TEST_P(Restart, AfterAnyPassTheModelIsTheSame) {
    Dumps dumps;
    amp_compile_options o = with_dump(&dumps), again = {};
    o.isa = again.isa = "portable"; // three times faster
    e2e::Compiled whole = e2e::compile(e2e::mlp(GetParam()), o);
    ASSERT_EQ(whole.status, AMP_OK) << whole.message;
    for (auto &[pass, text] : dumps.by_pass) {
        e2e::Compiled rest = e2e::compile(text, again, "dump.ir");
        EXPECT_EQ(rest.status, AMP_OK) << pass << ": " << rest.message << rest.diagnostics;
        EXPECT_TRUE(rest.bytes == whole.bytes) << "restarted after " << pass;
    }
}

TEST(Restart, CompilingTwiceGivesTheSameBytes) {
    EXPECT_TRUE(e2e::compile(e2e::mlp("fp16")).bytes == e2e::compile(e2e::mlp("fp16")).bytes);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Restart, ::testing::Values("fp32", "tf32", "bf16", "fp16"),
                         [](const ::testing::TestParamInfo<const char *> &i) { return std::string(i.param); });

}  // namespace
