// The check of painting against TensorFlow: its files agree; a planted fault is told with graph, node and both answers;
// what is no file of that kind is refused with file, line and remedy.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/parity/paint_check.h"

namespace {

const char kDecisions[] = "tests/parity/oracle/tf_amp.jsonl"; // 61 graphs in FP16, 59 of them in BF16

struct Said {
    int status;
    std::string out, err;
};

Said Check(const std::vector<std::string> &paths) {
    std::stringstream out, err;
    const int status = paint_vectors::CheckFiles(paths, out, err);
    return {status, out.str(), err.str()};
}

// A file with that text; messages name it "F".
Said CheckText(const std::string &text) {
    const char *folder = std::getenv("TEST_TMPDIR");
    const std::string path = std::string(folder ? folder : "/tmp") + "/paint_check.jsonl";
    std::ofstream(path, std::ios::binary) << text;
    Said said = Check({path});
    if (said.err.compare(0, path.size(), path) == 0) said.err.replace(0, path.size(), "F");
    return said;
}

std::string Replaced(std::string text, const std::string &from, const std::string &to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// mm reads x and is read by y, which keeps f32 because it is on no list.
const char kSmall[] = R"({"kind":"node","node":"x","op":"Placeholder","inputs":[],"in_attr":[],"out_attr":["dtype"],)"
                      R"("attrs":{"dtype":"float32"},"skipped":"must be preserved"})"
                      "\n"
                      R"({"kind":"node","node":"mm","op":"MatMul","inputs":["x:0","x:0"],"in_attr":["T","T"],)"
                      R"("out_attr":["T"],"attrs":{"T":"float32"},"list":"allow","f16_allowed":{"T":true},)"
                      R"("changed":{"T":"float16"},"paint":{"T":"ALLOW@1"}})"
                      "\n"
                      R"({"kind":"node","node":"y","op":"Square","inputs":["mm:0"],"in_attr":["T"],"out_attr":["T"],)"
                      R"("attrs":{"T":"float32"},"list":null})"
                      "\n"
                      R"({"kind":"graph","graph":"small","mode":"fp16","casts":[)"
                      R"({"src":"x:0","to":"float16","consumers":["mm:1","mm:0"]},)"
                      R"({"src":"mm:0","to":"float32","consumers":["y:0"]}]})"
                      "\n";

// ---- agreement -----------------------------------------------------------------------------------------------------

TEST(PaintCheck, AgreesWithTensorFlow) {
    Said both = Check({kDecisions});
    EXPECT_EQ(both.out, "120 graphs agree, 0 differ: 3428 nodes, 783 casts, 0 differences\n");
    EXPECT_EQ(both.status, 0);
    EXPECT_EQ(both.err, "");
}

TEST(PaintCheck, AgreesWithASmallFile) {
    Said said = CheckText(kSmall);
    EXPECT_EQ(said.status, 0) << said.out << said.err;
    EXPECT_EQ(said.out, "1 graphs agree, 0 differ: 3 nodes, 2 casts, 0 differences\n");
    std::string text = kSmall;
    text.pop_back();
    EXPECT_EQ(CheckText(text).status, 0) << "no newline at the end";
}

// ---- planted faults ------------------------------------------------------------------------------------------------

struct Fault {
    const char *from, *to, *difference;
};

const Fault kFaults[] = {
    {R"("changed":{"T":"float16"})", R"("changed":{})", "node mm (MatMul): low types: expected nothing, ours T"},
    {R"("list":null)", R"("changed":{"T":"float16"})", "node y (Square): low types: expected T, ours nothing"},
    {"ALLOW@1", "ALLOW@3", "node mm (MatMul): paint of T: expected ALLOW@3, ours ALLOW@1"},
    {R"("paint":{"T":"ALLOW@1"})", R"("paint":{})", "node mm (MatMul): paint of T: expected nothing, ours ALLOW@1"},
    {R"("list":null)", R"("paint":{"T":"DENY@2"})", "node y (Square): paint of T: expected DENY@2, ours nothing"},
    {R"("list":null)", R"("paint":{"U":"DENY@2"})", "node y (Square): paint of U: expected DENY@2, ours no such type"},
    {R"("to":"float16")", R"("to":"float32")", "cast of x:0 to f32 for: expected mm:0 mm:1, ours nothing"},
    {R"("consumers":["mm:1","mm:0"])", R"("consumers":["mm:1"])",
     "cast of x:0 to low for: expected mm:1, ours mm:0 mm:1"},
    {R"({"src":"mm:0","to":"float32","consumers":["y:0"]})",
     R"({"src":"x:0","to":"float16","consumers":["mm:0","mm:1"]})",
     "cast of x:0 to low for: expected mm:0 mm:1, ours nothing"}, // twice
    {R"(,{"src":"mm:0","to":"float32","consumers":["y:0"]})", "",
     "cast of mm:0 to f32 for: expected nothing, ours y:0"},
};

TEST(PaintCheck, FaultsAreTold) {
    for (const Fault &fault : kFaults) {
        Said said = CheckText(Replaced(kSmall, fault.from, fault.to));
        EXPECT_EQ(said.status, 1) << fault.to;
        EXPECT_EQ(said.err, "");
        EXPECT_NE(said.out.find(std::string("small: ") + fault.difference + "\n"), std::string::npos) << said.out;
        EXPECT_NE(said.out.find("0 graphs agree, 1 differ: 3 nodes, "), std::string::npos) << said.out;
    }
}

// Every row of TensorFlow's files that holds a decision: without it, it is the one node that is told.
TEST(PaintCheck, EveryFlippedRowIsTold) {
    int flipped = 0;
    for (const paint_vectors::Graph &graph : paint_vectors::ReadGraphs(kDecisions))
        for (size_t i = 0; i < graph.nodes.size(); i++) {
            if (graph.nodes[i].changed.empty()) continue;
            paint_vectors::Graph wrong = graph;
            wrong.nodes[i].changed.clear();
            const auto lines = paint_vectors::Differences(wrong);
            ASSERT_EQ(lines.size(), 1u) << graph.name;
            ASSERT_EQ(lines[0].find(graph.name + ": node " + graph.nodes[i].name + " ("), 0u) << lines[0];
            flipped++;
        }
    EXPECT_GT(flipped, 1000);
}

// What the vertices are told matters: the files do not agree with a graph that has other vertices.
TEST(PaintCheck, EveryPropertyOfAVertexIsNeeded) {
    const std::vector<std::pair<const char *, void (*)(paint_vectors::Node *)>> changes = {
        {"list", [](paint_vectors::Node *n) { n->list = n->list == PAINT_LIST_INFER ? PAINT_LIST_CLEAR : n->list; }},
        {"deny", [](paint_vectors::Node *n) { n->list = n->list == PAINT_LIST_DENY ? PAINT_LIST_NONE : n->list; }},
        {"skipped", [](paint_vectors::Node *n) { n->may_change = true; }},
        {"f16_allowed", [](paint_vectors::Node *n) { n->admits_low.clear(); }},
        {"f16_kernel", [](paint_vectors::Node *n) { n->has_low_kernel.clear(); }},
        {"existing casts", [](paint_vectors::Node *n) { n->op = n->op == "Cast" ? "Other" : n->op; }},
    };
    for (const auto &change : changes) {
        size_t differences = 0;
        for (paint_vectors::Graph graph : paint_vectors::ReadGraphs(kDecisions)) {
            for (paint_vectors::Node &node : graph.nodes) change.second(&node);
            differences += paint_vectors::Differences(graph).size();
        }
        EXPECT_GT(differences, 0u) << change.first;
    }
}

// ---- bad files -----------------------------------------------------------------------------------------------------

struct Bad {
    const char *from, *to, *message;
};

#define FORMAT "; tests/parity/oracle/README.md says what a row is\n"

const Bad kBad[] = {
    {R"("out_attr":["dtype"],)", R"("out_attr":["dtype)",
     "F:1: byte 89: expected ',' or ']'; each line is one row of JSON: is the file cut off?\n"},
    {R"("kind":"node",)", "", "F:1: field \"kind\" is missing" FORMAT},
    {R"("kind":"graph")", R"("kind":"grape")",
     "F:4: field \"kind\" is \"grape\"; rows are of kind node or graph" FORMAT},
    {R"("mode":"fp16")", R"("modes":["fp16","fp8"])", "F:4: field \"modes\" holds \"fp8\", not fp16 or bf16" FORMAT},
    {R"("node":"mm",)", "", "F:2: field \"node\" is missing" FORMAT},
    {R"("node":"mm")", R"("node":"")", "F:2: field \"node\" is empty" FORMAT},
    {R"("op":"MatMul")", R"("op":7)",
     "F:2: field \"op\" holds a value of kind number where one of kind string belongs" FORMAT},
    {R"("in_attr":[],)", "", "F:1: field \"in_attr\" is missing" FORMAT},
    {R"("in_attr":["T","T"])", R"("in_attr":["T",""])", "F:2: field \"in_attr\" holds an empty name" FORMAT},
    {R"("in_attr":["T","T"])", R"("in_attr":["T",["T"]])",
     "F:2: field \"in_attr\" holds a value of kind array where one of kind string belongs" FORMAT},
    {R"("in_attr":["T","T"])", R"("in_attr":["T","U"])",
     "F:2: field \"in_attr\" names \"U\", which is not in \"attrs\"" FORMAT},
    {R"("out_attr":["dtype"])", R"("out_attr":["T"])",
     "F:1: field \"out_attr\" names \"T\", which is not in \"attrs\"" FORMAT},
    {R"("attrs":{"dtype":"float32"})", R"("attrs":{"dtype":null})",
     "F:1: field \"attrs\" holds a value of kind null where one of kind string belongs" FORMAT},
    {R"("list":"allow")", R"("list":"allowed")",
     "F:2: field \"list\" is \"allowed\"; the lists are allow, infer, deny and clear" FORMAT},
    {R"("f16_allowed":{"T":true})", R"("f16_allowed":{"T":1})",
     "F:2: field \"f16_allowed\" holds a value of kind number where one of kind boolean belongs" FORMAT},
    {R"("changed":{"T":"float16"})", R"("changed":["T"])",
     "F:2: field \"changed\" holds a value of kind array where one of kind object belongs" FORMAT},
    {R"("inputs":["x:0","x:0"])", R"("inputs":["x:0"])",
     "F:2: field \"inputs\" has 1 entries, \"in_attr\" has 2" FORMAT},
    {R"("inputs":["mm:0"])", R"("inputs":["mm"])", "F:3: field \"inputs\" holds \"mm\", which is no NODE:PORT" FORMAT},
    {R"("inputs":["mm:0"])", R"("inputs":["mm:-1"])",
     "F:3: field \"inputs\" holds \"mm:-1\", which is no NODE:PORT" FORMAT},
    {R"("inputs":["mm:0"])", R"("inputs":["mm:99999999999"])",
     "F:3: field \"inputs\" holds \"mm:99999999999\", which is no NODE:PORT" FORMAT},
    {R"("inputs":["mm:0"])", R"("inputs":["mm:1"])",
     "F:3: node y (Square) reads mm:1, but that node has 1 ports; mend one of the two\n"},
    {R"("inputs":["mm:0"])", R"("inputs":["gone:0"])",
     "F:3: node y (Square) reads gone:0, but its graph has no such node; is a row missing, or the row that ends a "
     "graph?\n"},
    {R"("node":"y")", R"("node":"mm")", "F:3: a second node mm (Square) in one graph; names must differ\n"},
    {R"("op":"Square")", R"("op":"Cast")",
     "F:3: node y (Cast) must have one port, of the attribute DstT, as in TensorFlow" FORMAT},
    {R"("op":"MatMul")", R"("op":"NextIteration")",
     "F:3: node y (Square) reads the NextIteration mm; only a Merge may, by its attribute T, as in TensorFlow" FORMAT},
    {R"("casts":[)", R"("cast":[)", "F:4: field \"casts\" is missing" FORMAT},
    {R"("graph":"small",)", "", "F:4: field \"graph\" is missing" FORMAT},
    {R"({"src":"mm:0","to":"float32","consumers":["y:0"]})", R"("mm:0")",
     "F:4: field \"casts\" holds a value of kind string where one of kind object belongs" FORMAT},
    {R"("to":"float32",)", "", "F:4: field \"to\" is missing" FORMAT},
    {R"("consumers":["y:0"])", R"("consumers":"y:0")",
     "F:4: field \"consumers\" holds a value of kind string where one of kind array belongs" FORMAT},
};

TEST(PaintCheck, BadFilesAreRefused) {
    for (const Bad &bad : kBad) {
        Said said = CheckText(Replaced(kSmall, bad.from, bad.to));
        EXPECT_EQ(said.status, 2) << bad.message;
        EXPECT_EQ(said.err, bad.message);
        EXPECT_EQ(said.out, "");
    }
}

TEST(PaintCheck, FilesWithoutTheirEndAreRefused) {
    const std::string small = kSmall;
    const std::string without_end = small.substr(0, small.find(R"({"kind":"graph")"));
    EXPECT_EQ(CheckText(without_end).err,
              "F:3: the file ends inside a graph: the row of kind graph is missing; is the file cut off?\n");
    EXPECT_EQ(CheckText("").err, "F: holds no graph" FORMAT);
    EXPECT_EQ(CheckText("[]\n").err, "F:1: a row is an object of JSON" FORMAT);
    EXPECT_EQ(CheckText(small + "\n" + small).status, 2) << "an empty line";
    const Said missing = Check({"no/such/file.jsonl"});
    EXPECT_EQ(missing.status, 2);
    EXPECT_NE(missing.err.find("no/such/file.jsonl"), std::string::npos) << missing.err;
    // wherever it is cut: an error, or, between two graphs, fewer of them
    for (size_t size = 0; size < small.size(); size += 7) {
        const Said said = CheckText(small + small.substr(0, size));
        EXPECT_EQ(said.status, size == 0 ? 0 : 2) << size;
    }
}

// Whatever bytes change: an answer, and never a crash.
TEST(PaintCheck, DamagedFilesAreAnswered) {
    std::mt19937 random(1);
    const std::string small = kSmall, characters = "\"{}[]:,0a\\\n \xff";
    int statuses[3] = {};
    for (int round = 0; round < 600; round++) {
        std::string text = small;
        for (unsigned edits = 1 + random() % 3; edits; edits--) {
            const size_t at = random() % text.size();
            const char c = characters[random() % characters.size()];
            if (random() % 3 == 0) text.erase(at, 1 + random() % 20);
            else if (random() % 2) text[at] = c;
            else text.insert(at, 1, c);
        }
        const Said said = CheckText(text);
        ASSERT_TRUE(said.status >= 0 && said.status <= 2) << text;
        ASSERT_EQ(said.status == 2, !said.err.empty()) << text;
        statuses[said.status]++;
    }
    for (int count : statuses) EXPECT_GT(count, 0);
}

} // namespace
