// What `ampc explain` says of a selection of ops, of casts and their bytes, and of two models compared.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "amp/compile.h"
#include "codegen/kept_text.h"

namespace {

amp_compile_options Options(const char *name, const std::string &text) {
    amp_compile_options o = {};
    o.struct_size = sizeof o, o.name = name, o.text = text.data(), o.text_size = text.size();
    return o;
}

// What the call answers: the text, or the message of the error.
template <class Call> std::string Told(Call call, amp_status expected) {
    amp_compile_result *result = nullptr;
    amp_error err = {};
    EXPECT_EQ(call(&result, &err), expected) << err.message;
    const std::string told = result ? static_cast<const char *>(amp_compile_result_data(result, nullptr)) : err.message;
    amp_compile_result_release(result);
    return told;
}

std::string ExplainOps(const std::string &text, const amp_explain_options &like, amp_status expected = AMP_OK) {
    amp_explain_options which = like;
    which.struct_size = sizeof which;
    const amp_compile_options o = Options("m.amp", text);
    return Told([&](auto *out, auto *err) { return amp_explain(&o, &which, out, err); }, expected);
}

std::string Compare(const amp_compile_options &before, const amp_compile_options &after, bool json = false,
                    const amp_explain_options &like = {}, amp_status expected = AMP_OK) {
    amp_explain_options which = like;
    which.struct_size = sizeof which;
    if (json) which.form = AMP_EXPLAIN_JSON;
    return Told([&](auto *out, auto *err) { return amp_compare(&before, &after, &which, out, err); }, expected);
}

const std::string two_layers = R"(amp 1
model m(x: f32[N, 16]) -> y {
    h = gelu(linear(x; out = 32) as fc1)
    y = linear(h; out = 4) as fc2
}
train m {
    input t: i32[N]
    loss = cross_entropy(y, t)
    optimizer = sgd(0.1)
}
precision fp16 {
    loss_scale = none
}
)";

std::string WithOverride(const char *line) {
    std::string text = two_layers;
    return text.insert(text.rfind('}'), line);
}

void ExpectAll(const std::string &told, std::initializer_list<const char *> parts) {
    for (const char *part : parts) EXPECT_NE(told.find(part), std::string::npos) << part << "\n" << told;
}

// Each is elements x (bytes of both dtypes): x 16 N x 6, fc1.weight 512 x 6, h 32 N x 6, its gradient the same.
TEST(Explain, CountsTheBytesOfCasts) {
    const std::string text = WithOverride("    \"fc2.*\": f32\n");
    ExpectAll(ExplainOps(text, {}), {"x                    f32 -> f16   96 N bytes   in kernel",
                                     "fc1.weight           f32 -> f16   3072 bytes",
                                     "backward   d.h.f32              f32 -> f16   192 N bytes",
                                     "f32 -> f16               4       1   288 N + 3264",
                                     "all                      5       2   480 N + 3264"});
    amp_explain_options which = {};
    which.form = AMP_EXPLAIN_JSON;
    ExpectAll(ExplainOps(text, which),
              {"\"name\":\"fc1.linear.cast_2\",\"value\":\"x\",\"from\":\"f32\",\"to\":\"f16\",\"for\":\"fc1.linear\","
               "\"function\":\"train_step\",\"phase\":\"forward\",\"bytes\":\"96 N\",\"bytes_by_power_of_n\":[0,96]",
               "\"file\":\"m.amp\",\"line\":3", "\"count\":5,\"fused\":2,\"bytes\":\"480 N + 3264\""});
}

TEST(Explain, CastsOfTheModelItselfAreListedToo) {
    ExpectAll(ExplainOps("amp 1\nmodel m(x: i32[N, 4]) -> y {\n    y = abs(to_f32(x))\n}\n", {}),
              {"other casts\n             x                    i32 -> f32   32 N bytes", "m.amp:3"});
}

TEST(Explain, Filters) {
    amp_explain_options which = {};
    const std::string text = WithOverride("    \"fc2.*\": f32\n");
    const auto paths = [&] {
        std::string found;
        const std::string told = ExplainOps(text, which);
        for (const char *path :
             {"fc1.linear ", "gelu ", "fc2.linear ", "cross_entropy.log_softmax ", "cross_entropy.nll_loss "})
            if (told.find("\n" + std::string(path)) != std::string::npos) found += path;
        return found;
    };
    which.dtype = "f16";
    EXPECT_EQ(paths(), "fc1.linear gelu ");
    which.dtype = nullptr, which.op = "linear";
    EXPECT_EQ(paths(), "fc1.linear fc2.linear ");
    which.op = "cross_entropy"; // a layer
    EXPECT_EQ(paths(), "cross_entropy.log_softmax cross_entropy.nll_loss ");
    which.op = nullptr, which.rule = "override";
    EXPECT_EQ(paths(), "fc2.linear ");
    which.rule = "follow", which.dtype = "f16";
    EXPECT_EQ(paths(), "gelu ");
    which.path = "fc*", which.rule = nullptr;
    EXPECT_EQ(paths(), "fc1.linear ");
    ExpectAll(ExplainOps(text, which), {"all                      3       0   96 N + 3264"}); // of those ops alone
}

const std::string normed = R"(amp 1
block average(x) -> y {
    state mean: f32[36] = zeros()
    y = x + mean
    update mean = 0.5 * mean
}
model m(x: f32[N, 16]) -> y {
    h = average(batch_norm(linear(x; out = 36) as fc1) as bn1) as own
    y = linear(h; out = 8) as fc2
}
train m {
    input t: i32[N]
    loss = cross_entropy(y, t)
    optimizer = sgd(0.1)
}
precision fp16 {
    loss_scale = none
}
)";

// Ops of a layer of the library whose results nothing but updates of buffers reads; ops of a person's block are listed.
TEST(Explain, OpsThatKeepStatisticsAreFoldedIntoTheirLayer) {
    amp_explain_options which = {};
    const std::string folded = ExplainOps(normed, which);
    ExpectAll(folded,
              {"\nbn1.batch_norm ", "  statistics 7 ops keep them: mul, mul_1, add, mul_2, mul_3, add_1, increment\n",
               "\nown.mul "});
    EXPECT_EQ(folded.find("\nbn1.mul"), std::string::npos) << folded;
    which.all = 1;
    const std::string all = ExplainOps(normed, which);
    ExpectAll(all, {"\nbn1.batch_norm ", "\nbn1.mul ", "\nbn1.add_1 ", "\nbn1.increment "});
    EXPECT_EQ(all.find("statistics"), std::string::npos) << all;
    which.all = 0, which.path = "bn1.mul*"; // without its layer there is nothing to fold into
    ExpectAll(ExplainOps(normed, which), {"\nbn1.mul ", "\nbn1.mul_3 "});
    which.path = nullptr, which.form = AMP_EXPLAIN_JSON;
    ExpectAll(ExplainOps(normed, which),
              {"\"path\":\"bn1.mul\",", "\"folded_into\":\"bn1.batch_norm\"", "\"folded_into\":null",
               "{\"model\":\"m\",\"schema\":\"ampc.explain\",\"version\":1,"});
}

TEST(Explain, SaysWhichProductsTensorCoresMake) {
    const std::string text = WithOverride("    \"fc2.*\": f32\n");
    ExpectAll(ExplainOps(text, {}), {"  on CUDA    tensor cores\n",
                                     "  on CUDA    no tensor cores: its factors are f32; they multiply f16, bf16 and "
                                     "tf32\n"});
    ExpectAll(ExplainOps(normed, {}),
              {"  on CUDA    tensor cores, slowly\n             36 is no multiple of 8: rows are "
               "copied 4 elements at a time, not 8, for 1 product of a step; 40 in place of 36: "
               "11.1 % more bytes and operations there\n"});
    amp_explain_options which = {};
    which.form = AMP_EXPLAIN_JSON;
    ExpectAll(ExplainOps(normed, which),
              {"\"tensor_cores\":{\"eligible\":true,\"why\":null,\"narrow\":[{\"size\":36,\"padded\":40,\"head\":false,"
               "\"bytes_a_copy\":8,\"products\":1,\"worth_padding\":true,\"problem\":\"36 is no multiple of 8: ",
               "\"tensor_cores\":null"});
    ExpectAll(ExplainOps(text, which), {"\"tensor_cores\":{\"eligible\":false,\"why\":\"its factors are f32; "});
}

// fc1 casts 96 N + 3264 bytes, fc2 76800 + 2400.
TEST(Explain, SortsByTheBytesOfCasts) {
    const std::string wide = std::string(two_layers).replace(two_layers.find("out = 4"), 7, "out = 400");
    amp_explain_options which = {};
    EXPECT_LT(ExplainOps(wide, which).find("\nfc1.linear "), ExplainOps(wide, which).find("\nfc2.linear "));
    which.sort = "bytes";
    EXPECT_GT(ExplainOps(wide, which).find("\nfc1.linear "), ExplainOps(wide, which).find("\nfc2.linear "));
    which.batch = 1000000; // the casts of x are of the batch, the casts of weights are not
    EXPECT_LT(ExplainOps(wide, which).find("\nfc1.linear "), ExplainOps(wide, which).find("\nfc2.linear "));
    which.form = AMP_EXPLAIN_JSON;
    const std::string json = ExplainOps(wide, which);
    EXPECT_LT(json.find("\"value\":\"x\""), json.find("\"value\":\"fc2.weight\"")) << json;
}

// Blocks of one thing are that thing; casts are on the edges.
TEST(Explain, DrawsTheGraph) {
    amp_explain_options which = {};
    which.form = AMP_EXPLAIN_DOT;
    const std::string text = R"(amp 1
block half(x) -> y { y = gelu(linear(x; out = 16) as fc) + x }
model m(x: f32[N, 16]) -> y {
    h = half(x) as a
    y = linear(h; out = 4) as fc2
}
precision fp16 { "a.gelu": f32 }
)";
    ExpectAll(ExplainOps(text, which),
              {"/* Drawn by ampc explain, for Graphviz. */\ndigraph \"m\" {\n",
               "  \"input:x\" [label=\"x\\nf32\", fillcolor=\"#ffd9d2\", shape=ellipse]\n",
               "  subgraph \"cluster_1\" {\n    label=\"a\"\n    \"a.fc.linear\" [label=\"fc.linear\\nf16\"",
               "\n  \"fc2.linear\" [label=\"fc2.linear\\nf16\"",
               "  \"input:x\" -> \"a.fc.linear\" [label=\"f32 -> f16\"",
               "  \"a.fc.linear\" -> \"a.gelu\" [label=\"f16 -> f32\""});
    which.form = AMP_EXPLAIN_BLOCKS; // the model's: x, a, fc2.linear; a's: fc.linear, gelu, add
    const std::string drawings = ExplainOps(text, which);
    ExpectAll(drawings,
              {"digraph b0 { ", "\nn0\nn1\nn2\nn0->n1\nn1->n2\n}\ndigraph b1 { ", "\nn0\nn1\nn2\nn0->n1\nn1->n2\n}\n"});
    which.form = AMP_EXPLAIN_JSON;
    ExpectAll(
        ExplainOps(text, which),
        {"\"graph\":{\"blocks\":[{\"path\":\"\",\"in\":null,\"children\":[{\"name\":\"x\",\"input\":\"f32\"},{\"name\":"
         "\"a\",\"block\":1},{\"name\":\"fc2.linear\",\"op\":\"fc2.linear\"}]},{\"path\":\"a\",\"in\":0,",
         "{\"input\":\"x\",\"to\":\"a.fc.linear\",\"dtype\":\"f16\",\"cast_from\":\"f32\"}",
         "\"programs\":[{\"target\":\"cpu\",\"function\":\"infer\",\"kernels\":[{\"name\":\"k00\"",
         "{\"target\":\"cuda\",\"function\":\"infer\""});
}

// Blocks of many things have them in runs.
TEST(Explain, WideBlocksAreSplit) {
    std::string text = "amp 1\nmodel m(x: f32[N, 4]) -> y {\n    y = x\n";
    for (int i = 0; i < 130; i++) text += "    y = y + 1.0\n";
    amp_explain_options which = {};
    which.form = AMP_EXPLAIN_JSON;
    ExpectAll(
        ExplainOps(text + "}\n", which),
        {"\"children\":[{\"name\":\"(1-64)\",\"block\":1},{\"name\":\"(65-128)\",\"block\":2},{\"name\":\"(129-131)\","
         "\"block\":3}]},{\"path\":\"(1-64)\",\"in\":0,\"children\":[{\"name\":\"x\",\"input\":\"f32\"}"});
}

// 100 steps of a network whose state is not in the first.
const std::string loop = R"(amp 1
const T = 100
model m(x: f32[N, T, 8]) -> y {
    h = zeros(; shape = [N, 8])
    repeat t in 0..T { h = tanh(reshape(slice(x; dim = 1, from = t, to = t + 1); shape = [N, 8]) + 0.5 * h) }
    y = linear(h; out = 4) as fc
}
precision fp16 { loss_scale = none }
)";

TEST(Explain, TellsOfALoopOnce) {
    amp_explain_options which = {};
    const std::string told = ExplainOps(loop, which);
    EXPECT_LT(std::count(told.begin(), told.end(), '\n'), 70) << told;
    // Ops that are in different kernels are told once, with a line for each kind of kernel.
    ExpectAll(told,
              {"\ntanh*, 99 ops               f32 -> f32                                                  m.amp:5\n",
               "  kernel     k00  slice*: slice + reshape + full + mul + add + tanh\n"
               "             k02 to k14, 5 kernels  tanh*: tanh\n"
               "             k16 to k20, 5 kernels  slice*: slice + reshape + add + tanh + mul\n"});
    // The first step reads the constant; what is told of it apart differs.
    ExpectAll(told, {"\ntanh*, ", " ops ", "slice*, ", "\nfc.linear "});
    which.all = 1;
    const std::string each = ExplainOps(loop, which);
    EXPECT_GT(std::count(each.begin(), each.end(), '\n'), 1500);
    ExpectAll(each, {"\ntanh ", "\ntanh_99 "});
    which = {};
    which.path = "tanh_7"; // what is asked for alone has its own name
    ExpectAll(ExplainOps(loop, which), {"tanh_7 "});
}

TEST(Explain, JsonHasGroups) {
    amp_explain_options which = {};
    which.form = AMP_EXPLAIN_JSON;
    const std::string told = ExplainOps(loop, which);
    ExpectAll(told, {"\"path\":\"fc.linear\"", "\"group\":null", "\"group\":0", "\"groups\":[\"", "\"tanh*\""});
    // The drawing has a block for each op of the loop's body, not for runs of steps.
    ExpectAll(told, {"\"name\":\"tanh*\",\"block\":", "\"path\":\"tanh*\",\"in\":0"});
    which.all = 1;
    EXPECT_EQ(ExplainOps(loop, which).find("\"name\":\"tanh*\",\"block\":"), std::string::npos);
}

size_t Count(const std::string &text, const std::string &part) {
    size_t count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) count++;
    return count;
}

// Whatever a model's text says, it ends no element and begins none; and the same input gives the same page.
TEST(Explain, AReportIsOnePage) {
    amp_explain_options which = {};
    which.form = AMP_EXPLAIN_HTML;
    const std::string comment = "# </script><script>alert(1)</script> <!-- {{js}} & \"quotes\" \xe2\x80\xa8 \xc3\xa9\n";
    const std::string own = ExplainOps(two_layers, which), hostile = ExplainOps(two_layers + comment, which);
    EXPECT_EQ(own.find("<!DOCTYPE html>"), 0u);
    ExpectAll(own, {"<meta name=\"generator\" content=\"ampc explain\">", "<title>m: ampc explain</title>", "</html>\n",
                    "<script type=\"application/json\" id=\"part-explain\">{\"model\":\"m\",",
                    "\"sources\":[{\"file\":\"m.amp\",\"text\":\"amp 1\\nmodel m("});
    for (const char *open : {"</script", "<script", "<!--", "// main.js: starts the page"})
        EXPECT_EQ(Count(own, open), Count(hostile, open)) << open;
    ExpectAll(hostile, {"\\u003c/script>\\u003cscript>alert(1)"});
    EXPECT_EQ(own.find("\"rows\":"), std::string::npos);
    EXPECT_EQ(own, ExplainOps(two_layers, which));
}

// A loop of many steps: what would be megabytes is packed, and the page's own program unpacks it.
TEST(Explain, LargePartsOfAReportArePacked) {
    amp_explain_options which = {};
    which.form = AMP_EXPLAIN_HTML;
    const std::string page = ExplainOps("amp 1\nmodel m(x: f32[N, 300, 4]) -> y {\n    h = zeros(; shape = [N, 4])\n"
                                        "    repeat t in 0..300 { h = tanh(reshape(slice(x; dim = 1, from = t, to = "
                                        "t + 1); shape = [N, 4]) + h) }\n    y = h * 2.0\n}\nprecision fp16 { }\n",
                                        which);
    const std::string open = "<script type=\"application/zlib\" id=\"part-explain\">";
    const size_t from = page.find(open) + open.size(), to = page.find('<', from);
    ASSERT_NE(page.find(open), std::string::npos);
    std::string bytes;
    static const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t held = 0;
    for (size_t i = from, bits = 0; i < to && page[i] != '='; i++) {
        held = held << 6 | (uint32_t)digits.find(page[i]);
        if ((bits += 6) >= 8) bytes += (char)(held >> (bits -= 8));
    }
    Arena arena;
    Text text;
    arena_init(&arena, nullptr);
    text_init(&text, &arena);
    ASSERT_TRUE(kept_text_unpack(bytes.data(), bytes.size(), &text));
    EXPECT_EQ(std::string(text_str(&text)).find("{\"model\":\"m\","), 0u);
    EXPECT_GT(text.len, 256u << 10);
    arena_free(&arena);
    EXPECT_LT(page.size(), 256u << 10);
}

TEST(Explain, PartsOfAReport) {
    amp_explain_options which = {};
    which.form = AMP_EXPLAIN_HTML;
    const std::string lint = R"({"findings":["</script>"]})", broken = "{\"findings\":";
    amp_report_part part = {"lint", lint.data(), lint.size()};
    which.parts = &part, which.part_count = 1;
    ExpectAll(ExplainOps(two_layers, which),
              {"<script type=\"application/json\" id=\"part-lint\">{\"findings\":[\"\\u003c/script>\"]}</script>\n"});
    part = {"lint", broken.data(), broken.size()};
    ExpectAll(ExplainOps(two_layers, which, AMP_INVALID_ARGUMENT), {"report part lint: byte "});
    part = {"weather", lint.data(), lint.size()};
    EXPECT_EQ(ExplainOps(two_layers, which, AMP_INVALID_ARGUMENT),
              "report part 'weather': there are comparison, lint, times, layout, code and run");
    part = {"lint", nullptr, 0};
    EXPECT_EQ(ExplainOps(two_layers, which, AMP_INVALID_ARGUMENT), "report part lint: json is NULL");
    which.parts = nullptr;
    EXPECT_EQ(ExplainOps(two_layers, which, AMP_INVALID_ARGUMENT),
              "amp_explain_options: parts is NULL, and part_count is not 0");
}

TEST(Explain, WrongOrdersAndFormsAreRefused) {
    amp_explain_options which = {};
    which.sort = "size";
    EXPECT_EQ(ExplainOps(two_layers, which, AMP_INVALID_ARGUMENT), "unknown sort key 'size'; use 'bytes'");
    which.sort = nullptr, which.form = 77;
    EXPECT_EQ(ExplainOps(two_layers, which, AMP_INVALID_ARGUMENT), "amp_explain_options: unknown form 77");
    which.form = 0, which.batch = -1;
    EXPECT_EQ(ExplainOps(two_layers, which, AMP_INVALID_ARGUMENT),
              "amp_explain_options: batch is -1; it must be positive, or 0 for 32");
}

TEST(Explain, AFilterThatMatchesNothingNamesWhatThereIs) {
    amp_explain_options which = {};
    which.dtype = "fp16";
    EXPECT_EQ(ExplainOps(two_layers, which, AMP_NOT_FOUND),
              "m.amp: no op reads or makes 'fp16'; there are f16, f32, i32");
    which.dtype = nullptr, which.op = "conv2d";
    EXPECT_EQ(ExplainOps(two_layers, which, AMP_NOT_FOUND),
              "m.amp: no op is a 'conv2d'; there are linear, gelu, log_softmax, nll_loss");
    which.op = nullptr, which.rule = "override";
    EXPECT_EQ(ExplainOps(two_layers, which, AMP_NOT_FOUND),
              "m.amp: no op has its dtype by rule 'override'; there are lower, follow, f32_out, f32");
    which.rule = "lower", which.path = "gelu";
    EXPECT_EQ(ExplainOps(two_layers, which, AMP_NOT_FOUND),
              "m.amp: no op that the other filters leave has its dtype by rule 'lower'; there are follow");
}

// The graph goes along with later stages as text: a cast of nothing there is an error, not a crash.
TEST(Explain, AGraphThatIsNotValidIsRefused) {
    amp_compile_options o = Options("m.amp", two_layers);
    o.emit = AMP_EMIT_IR, o.stop_after = "plan";
    std::string ir = Told([&](auto *out, auto *err) { return amp_compile(&o, out, err); }, AMP_OK);
    const size_t graph = ir.find("\ngraph\n"), cast = ir.find("cast(%x)", graph);
    ASSERT_NE(cast, std::string::npos);
    ir.replace(cast, 8, "cast()");
    const amp_compile_options damaged = Options("m.ir", ir);
    ExpectAll(Told([&](auto *out, auto *err) { return amp_explain(&damaged, nullptr, out, err); }, AMP_BAD_SOURCE),
              {"m.ir: ", "its module of stage simplify is not valid: ", "fc1.linear.cast"});
}

TEST(Explain, ADecisionWithoutAReasonIsRefused) {
    amp_compile_options o = Options("m.amp", two_layers);
    o.emit = AMP_EMIT_IR, o.stop_after = "plan";
    std::string ir = Told([&](auto *out, auto *err) { return amp_compile(&o, out, err); }, AMP_OK);
    const size_t because = ir.find("because {", ir.find("\ndecision @fc1.linear"));
    ir.erase(because, ir.find('}', because) + 1 - because);
    const amp_compile_options damaged = Options("m.ir", ir), good = Options("m.amp", two_layers);
    ExpectAll(Told([&](auto *out, auto *err) { return amp_explain(&damaged, nullptr, out, err); }, AMP_BAD_SOURCE),
              {"m.ir: error: decision 1 (fc1.linear) has no path, op or reason; autocast writes all three"});
    ExpectAll(Compare(damaged, good, false, {}, AMP_BAD_SOURCE), {"m.ir: error: decision 1"});
}

// Two ops, and what each asks for: h in f32 instead of the factors in f16.
TEST(Compare, OneOverrideIsADozenLines) {
    const std::string text = WithOverride("    \"fc2.*\": f32 because \"measured\"\n");
    amp_compile_options before = Options("plain.amp", two_layers), after = Options("careful.amp", text);
    before.policy = after.policy = "torch-fp16";
    const std::string told = Compare(before, after);
    ExpectAll(told,
              {"before   plain.amp", "after    careful.amp", "\nfc2.linear                          f16 -> f32",
               "careful.amp:4\n  before   torch-fp16.policy:8   op matmul, linear",
               "  after    override at careful.amp:13   f32   because \"measured\"\n",
               "\ncross_entropy.log_softmax           f16 -> f32",
               "  both     torch-fp16.policy:19   op cross_entropy.log_softmax, gather.sum, scatter_add.sum follow   "
               "(input fc2.linear)\n",
               "\n2 of 5 ops changed\n", "  gone   f32 -> f16  forward        fc2.bias, fc2.weight   792 bytes\n",
               "  came   f16 -> f32  forward        h   192 N bytes\n", "  before     7 casts", "144 N + 4056 bytes",
               "  after      5 casts", "480 N + 3264 bytes"});
    EXPECT_LE(std::count(told.begin(), told.end(), '\n'), 18);
    const std::string json = Compare(before, after, true);
    ExpectAll(json, {"\"same\":false,\"matched\":5,\"changed\":[{\"path\":\"fc2.linear\"", "\"override\":true",
                     "\"casts_came\":[{\"name\":\"fc2.linear.cast\",\"value\":\"h\"", "\"only_after\":[]"});
}

TEST(Compare, NoDifferenceSaysSo) {
    const std::string redundant = WithOverride("    \"fc1.linear\": low\n"); // another line, the same dtypes
    const amp_compile_options a = Options("a.amp", two_layers), b = Options("b.amp", redundant);
    ExpectAll(Compare(a, a), {"no difference: 0 of 5 ops changed\n"});
    ExpectAll(Compare(a, b), {"no difference: 0 of 5 ops changed; same dtypes by another line: 1\n"});
    ExpectAll(Compare(a, b, true), {"\"same\":true", "\"other_reason\":[{\"path\":\"fc1.linear\""});
}

// A product under fp16 reads a cast of the master, of its own type; under bf16 the master itself.
TEST(Explain, TypesOfStates) {
    std::string text = WithOverride("    masters = bf16\n");
    ExpectAll(ExplainOps(text, {}), {"m: policy min-cast, low precision f16, masters bf16(rounding = stochastic)\n",
                                     "fc1.weight           bf16 -> f16   2048 bytes"});
    std::string eight = WithOverride("    moments = f8\n");
    eight.replace(eight.find("sgd(0.1)"), 8, "adamw(0.1)");
    ExpectAll(ExplainOps(eight, {}), {"low precision f16, moments f8()\n"});
    text.replace(text.find("precision fp16"), 14, "precision bf16");
    EXPECT_EQ(ExplainOps(text, {}).find(" fc1.weight           "), std::string::npos) << ExplainOps(text, {});
}

TEST(Explain, PaddedRows) {
    ExpectAll(ExplainOps(WithOverride("    pad = true\n"), {}),
              {"m: policy min-cast, low precision f16, rows padded for tensor cores\n"});
}

TEST(Compare, OnePrecisionAgainstAnother) {
    amp_compile_options before = Options("m.amp", two_layers);
    const amp_compile_options after = Options("m.amp", two_layers);
    before.precision = "fp32";
    ExpectAll(Compare(before, after),
              {"policy fp32, low precision f32", "4 of 5 ops changed", "fc1.linear                          f32 -> f16",
               "before   fp32.policy:7   op * f32", "before     0 casts, 0 fused       0 bytes"});
    amp_explain_options which = {};
    which.op = "gelu";
    ExpectAll(Compare(before, after, false, which), {"1 of 1 ops changed"});
    which.op = "conv2d";
    EXPECT_EQ(Compare(before, after, false, which, AMP_NOT_FOUND),
              "m.amp: no op is a 'conv2d'; there are linear, gelu, log_softmax, nll_loss");
}

TEST(Compare, IsTextOrJson) {
    const amp_compile_options o = Options("m.amp", two_layers);
    for (const amp_explain_form form : {AMP_EXPLAIN_DOT, AMP_EXPLAIN_BLOCKS, AMP_EXPLAIN_HTML}) {
        amp_explain_options which = {};
        which.form = form;
        ExpectAll(Compare(o, o, false, which, AMP_INVALID_ARGUMENT), {"a comparison is text or JSON"});
    }
}

TEST(Compare, OpsOfOneSideAreListedApart) {
    std::string text = two_layers;
    text.replace(text.find("gelu"), 4, "tanh");
    const amp_compile_options before = Options("a.amp", two_layers), after = Options("b.amp", text);
    const std::string told = Compare(before, after);
    ExpectAll(told, {"only before   gelu                  gelu f16",
                     "a.amp:3\nonly after    tanh                  tanh f16"});
    EXPECT_EQ(told.find("no difference"), std::string::npos) << told;
    ExpectAll(Compare(before, after, true), {"\"only_before\":[{\"path\":\"gelu\"", "\"same\":false"});
}

// Ops of repeated layers are told once; what differs among them, the op that they follow or a number, beside it.
TEST(Compare, RepeatedLayersAreToldOnce) {
    const std::string text = R"(amp 1
block layer(x) -> y { y = x + gelu(linear(x; out = 16) as fc) }
model m(ids: i32[N]) -> y {
    h = embedding(ids; count = 8, dim = 16) as table
    repeat i in 0..3 { h = layer(h) as h[i] }
    y = linear(h; out = 4) as head
}
)";
    amp_compile_options before = Options("m.amp", text), after = Options("m.amp", text);
    before.policy = "torch-fp16", after.policy = "min-cast";
    const std::string told = Compare(before, after);
    ExpectAll(told,
              {"\nh.*.add, 3 ops                      f32 -> f16        ", "   (input h.*.add)\n           torch-fp16",
               "   (input table.embedding)   for h.0.add\n  after    min-cast",
               "f32 would move 3072 bytes more at N = 32\"\n", "and need 3 more casts\"   for h.2.add\n",
               "\n4 of 11 ops changed", "  gone   f16 -> f32  forward        h.*.gelu (3)   288 N bytes\n"});
    ExpectAll(Compare(before, after, true), {"\"changed\":[{\"path\":\"table.embedding\"", "{\"path\":\"h.0.add\"",
                                             "{\"path\":\"h.1.add\"", "{\"path\":\"h.2.add\""});
    std::string shorter = text;
    shorter.replace(shorter.find("0..3"), 4, "0..1");
    const amp_compile_options one = Options("one.amp", shorter), three = Options("m.amp", text);
    ExpectAll(Compare(one, three), {"only after    h.*.fc.linear, 2 ops  linear f32     ", " m.amp:2\n"});
    const std::string overridden = text + "precision fp16 { \"h.1.*\": f32 }\n";
    amp_compile_options some = Options("m.amp", overridden), all = Options("m.amp", text);
    some.policy = all.policy = "torch-fp16";
    const std::string alone = Compare(all, some); // one op is no pattern
    ExpectAll(alone, {"\nh.1.fc.linear                       f16 -> f32", "(input h.1.fc.linear)"});
    EXPECT_EQ(alone.find(" ops  "), std::string::npos) << alone;

    std::string sized = text; // bytes are counted for a T that no number decides
    sized.replace(sized.find("i32[N]"), 6, "i32[N, T]").insert(6, "size T = 64\n");
    before = Options("m.amp", sized), after = before;
    before.policy = "torch-fp16", after.policy = "min-cast";
    ExpectAll(Compare(before, after), {"f32 would move 393216 bytes more at N = 32, T = 128\"\n"});
}

// An option that IR, which has been through autocast, cannot follow is refused, and so compared with nothing.
TEST(Compare, WhatIsCompiledAlreadyCannotBeCompiledOtherwise) {
    amp_compile_options o = Options("m.amp", two_layers);
    o.emit = AMP_EMIT_IR, o.stop_after = "plan";
    const std::string ir = Told([&](auto *out, auto *err) { return amp_compile(&o, out, err); }, AMP_OK);
    const amp_compile_options planned = Options("m.ir", ir), source = Options("m.amp", two_layers);
    ExpectAll(Compare(planned, source), {"no difference: 0 of 5 ops changed\n"});
    amp_compile_options other = planned;
    other.precision = "fp32";
    ExpectAll(Compare(other, planned, false, {}, AMP_INVALID_ARGUMENT),
              {"precision fp32: m.ir is at stage plan and has its dtypes already; give the model"});
    const amp_define define = {"HIDDEN", "3"};
    other = planned, other.defines = &define, other.define_count = 1;
    ExpectAll(Compare(planned, other, false, {}, AMP_INVALID_ARGUMENT), {"define HIDDEN: m.ir is IR"});
    other = source, other.policy = "nosuch";
    ExpectAll(Compare(other, source, false, {}, AMP_BAD_SOURCE), {"m.amp", "there is no policy nosuch"});
}

} // namespace
