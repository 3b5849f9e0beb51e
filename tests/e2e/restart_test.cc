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

// A model.so also carries the graph as text, for explain.  A run that starts behind lower has no graph to carry.
bool has_graph(const std::string &pass) {
    return pass != "lower" && pass != "fuse" && pass != "layout" && pass != "plan";
}

std::string c_text(const std::string &text, const char *name) {
    amp_compile_options o = {};
    o.emit = AMP_EMIT_C;
    e2e::Compiled c = e2e::compile(text, o, name);
    EXPECT_EQ(c.status, AMP_OK) << c.message << c.diagnostics;
    return c.bytes;
}

std::string without(std::string text, const char *from, const char *to) {
    size_t begin = text.find(from), end = text.find(to, begin);
    EXPECT_TRUE(begin != std::string::npos && end != std::string::npos) << from;
    return end == std::string::npos ? text : text.erase(begin, end + strlen(to) - begin);
}

TEST_P(Restart, AfterAnyPassTheModelIsTheSame) {
    Dumps dumps;
    amp_compile_options o = with_dump(&dumps);
    e2e::Compiled whole = e2e::compile(e2e::mlp(GetParam()), o);
    ASSERT_EQ(whole.status, AMP_OK) << whole.message;
    std::string no_graph = without(c_text(e2e::mlp(GetParam()), "mlp.amp"), "static const char graph_text[]", ";\n\n");
    no_graph = without(no_graph, ".graph_text = graph_text, ", ",\n    ");
    for (auto &[pass, text] : dumps.by_pass) {
        if (has_graph(pass)) {
            e2e::Compiled rest = e2e::compile(text, {}, "dump.ir");
            EXPECT_EQ(rest.status, AMP_OK) << pass << ": " << rest.message << rest.diagnostics;
            EXPECT_TRUE(rest.bytes == whole.bytes) << "restarted after " << pass;
        } else {
            EXPECT_TRUE(c_text(text, "dump.ir") == no_graph) << "restarted after " << pass;
        }
    }
}

TEST(Restart, CompilingTwiceGivesTheSameBytes) {
    EXPECT_TRUE(e2e::compile(e2e::mlp("fp16")).bytes == e2e::compile(e2e::mlp("fp16")).bytes);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Restart, ::testing::Values("fp32", "tf32", "bf16", "fp16"),
                         [](const ::testing::TestParamInfo<const char *> &i) { return std::string(i.param); });

} // namespace
