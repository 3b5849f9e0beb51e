/* language_doc_test.cc: docs/language.md against the parser: its grammar is parser.y's, its words are
 * parse.c's, its examples compile. */
#include <set>

#include "gtest/gtest.h"
#include "ir/ir.h"
#include "tests/base/pattern.h"
#include "tests/frontend/compile_model.h"
#include "tests/golden/golden.h"

namespace {

std::string Doc() { return golden::Read("docs/language.md"); }

/* The text between ``` lines of that kind. */
std::vector<std::string> Fenced(const std::string &doc, const std::string &kind) {
    std::vector<std::string> blocks;
    std::string open = "```" + kind + "\n";
    for (size_t at = doc.find(open); at != std::string::npos; at = doc.find(open, at)) {
        at += open.size();
        size_t end = doc.find("```", at);
        blocks.push_back(doc.substr(at, end - at));
        at = end;
    }
    return blocks;
}

/* Past a quoted character, a comment or a balanced { } of C at |at|; |at| itself if there is none. */
size_t SkipCode(const std::string &s, size_t at) {
    if (s.compare(at, 2, "/*") == 0) return s.find("*/", at) + 2;
    if (s[at] == '"') return s.find('"', at + 1) + 1;
    if (s[at] == '\'') return at + 3;
    if (s[at] != '{') return at;
    for (at++; s[at] != '}';) {
        size_t next = SkipCode(s, at);
        at = next == at ? at + 1 : next;
    }
    return at + 1;
}

/* The rules of parser.y without actions, comments and precedence: "name: a b", its alternatives below, with single
 * spaces. */
std::string Rules(const std::string &grammar) {
    size_t begin = grammar.find("\n%%\n") + 4, end = grammar.find("\n%%\n", begin);
    std::string text = grammar.substr(begin, end - begin), bare;
    for (size_t at = 0; at < text.size();) {
        size_t next = SkipCode(text, at);
        if (text[at] == '\'') bare += text.substr(at, next - at);
        else if (next == at) bare += text[next++];
        else bare += ' ';
        at = next;
    }
    bare = Replaced(bare, "%prec \\w+", "");
    bare = Replaced(bare, "%empty", "nothing");
    bare = Replaced(bare, "\\s+", " ");
    bare = Replaced(bare, " ?; ?(?!')", "\n");
    bare = Replaced(bare, "^ ", "");
    return Replaced(bare, " ?\\| ", "\n    | ");
}

TEST(LanguageDoc, GrammarIsTheParsers) {
    std::vector<std::string> grammars = Fenced(Doc(), "grammar");
    ASSERT_EQ(grammars.size(), 1u);
    EXPECT_EQ(grammars[0], Rules(golden::Read("frontend/parser.y")));
}

std::set<std::string> Matches(const std::string &text, const std::string &pattern) {
    const std::vector<std::string> found = EachMatch(text, pattern, 1);
    return {found.begin(), found.end()};
}

/* The `words` of the paragraph that begins with |title|. */
std::set<std::string> WordsOf(const std::string &doc, const std::string &title) {
    size_t at = doc.find(title);
    EXPECT_NE(at, std::string::npos) << title;
    at += title.size();
    return Matches(doc.substr(at, doc.find("\n\n", at) - at), "`([A-Za-z_0-9]+)`");
}

std::set<std::string> TableWords(const std::string &source, const std::string &table) {
    size_t at = source.find("static const Word " + table);
    return Matches(source.substr(at, source.find("};\n", at) - at), "\"(\\w+)\"");
}

TEST(LanguageDoc, WordsAreTheLexers) {
    std::string tokens = golden::Read("frontend/parse.c");
    EXPECT_EQ(WordsOf(Doc(), "Reserved words:"), TableWords(tokens, "reserved"));
    EXPECT_EQ(WordsOf(Doc(), "Words that begin statements:"), TableWords(tokens, "contextual"));
}

TEST(LanguageDoc, ExamplesCompile) {
    std::vector<std::string> examples = Fenced(Doc(), "amp");
    EXPECT_GE(examples.size(), 3u);
    for (const std::string &example : examples) {
        CompiledModel model = CompileModel("example.amp", example);
        EXPECT_TRUE(model.good) << example << model.text;
    }
}

TEST(LanguageDoc, CallsThatAreBuilt) {
    std::set<std::string> calls = WordsOf(Doc(), "Supported calls:");
    EXPECT_GE(calls.size(), 50u);
    for (const std::string &call : calls) {
        CompiledModel model =
            CompileModel("m.amp", "amp 1\nmodel m(x: f32[N, 4]) -> y { y = " + call + "(x; nothing = 1) }\n");
        EXPECT_EQ(model.text.find("there is no block"), std::string::npos) << call << ": " << model.text;
    }
}

} // namespace
