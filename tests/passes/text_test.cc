// text_test.cc: passes as text: cases/*.ir hold IR before a pass and what it becomes. README.md has the format.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "ir/words.h"
#include "passes/fuse/kernel_check.h"
#include "passes/launch/plan_check.h"
#include "passes/precision/policy.h"
#include "targets/target.h"
#include "tests/golden/golden.h"
#include "tests/passes/lower_test.h"

namespace {

const char kFolder[] = "tests/passes/cases";

struct Case {
    std::string file, name, before, after;
    std::map<std::string, std::string> options; // of the file, then of the case
};

std::vector<std::string> SplitLines(const std::string &text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

// "pass=simplify" is an option with a value, "kernels" one without.
void AddOptions(const std::string &text, std::map<std::string, std::string> *options) {
    for (const std::string &word : golden::Options(text)) {
        size_t equals = word.find('=');
        (*options)[word.substr(0, equals)] = equals == std::string::npos ? "yes" : word.substr(equals + 1);
    }
}

// The cases of a file: what is before the first `## NAME` belongs to all of them.
std::vector<Case> ReadCases(const std::string &file) {
    std::vector<Case> cases;
    std::string head, *part = &head;
    for (const std::string &line : SplitLines(golden::Read(std::string(kFolder) + "/" + file))) {
        if (line.compare(0, 3, "## ") == 0) {
            cases.push_back({file, line.substr(3), "", "", {}});
            part = &cases.back().before;
        } else if (line == "---" && !cases.empty()) {
            part = &cases.back().after;
        } else {
            *part += line + "\n";
        }
    }
    for (Case &c : cases) {
        AddOptions(head, &c.options);
        AddOptions(c.before, &c.options);
        c.after.erase(c.after.find_last_not_of('\n') + 1);
    }
    return cases;
}

class TextTest : public LowerPassTest {
  public:
    explicit TextTest(const Case &c) : case_(c) {}

    void TestBody() override {
        if (case_.before.find("module ") != std::string::npos) CheckModule();
        else CheckPasses();
    }

  private:
    // A whole module, from its stage up to another.
    void CheckModule() {
        std::string text;
        for (const std::string &line : SplitLines(case_.before))
            if (!line.empty() && line[0] != '#') text += line + "\n";
        const std::string precision = Get("precision"), policy = Get("policy");
        options_.precision = precision.empty() ? nullptr : precision.c_str();
        options_.policy = policy.empty() ? nullptr : policy.c_str();
        options_.find_policy = [](void *arena, const char *name) {
            return policy_builtin(static_cast<Arena *>(arena), name);
        };
        options_.user = &arena_;
        ASSERT_TRUE(Has("until"));
        const Stage until = StageOf(Get("until"));
        ASSERT_NE(until, STAGE_COUNT) << Get("until");
        Module *m = Read(text);
        ASSERT_NE(m, nullptr) << Diagnostics();
        amp_error err = {};
        ASSERT_EQ(passes_run(m, &diags_, &options_, until, nullptr, nullptr, &err), AMP_OK)
            << err.message << Diagnostics();
        CheckText(Squeezed(Print(m)));
    }

    void CheckPasses() {
        Module *before = ReadCase(), *m = ReadCase();
        ASSERT_TRUE(m && before);
        ASSERT_TRUE(!Has("no_pass") || passes_leave_out(&options_, Get("no_pass").c_str())) << Get("no_pass");
        options_.target = target_find(Has("target") ? Get("target").c_str() : nullptr);
        ASSERT_NE(options_.target, nullptr) << Get("target");
        const std::string passes = Get("pass"); // "lower", or "target..fuse": from one to another
        const size_t dots = passes.find("..");
        const Stage first = StageOf(passes.substr(0, dots)),
                    last = dots == std::string::npos ? first : StageOf(passes.substr(dots + 2));
        ASSERT_TRUE(first != STAGE_COUNT && last != STAGE_COUNT) << "no pass " << passes;
        ASSERT_TRUE(Run(m, first, last)) << Diagnostics();
        CheckValues(before, m);
        if (Has("kernels")) CheckKernels(m);
        CheckText(Show(m));
        CheckCounts(m);
    }

    bool Has(const char *option) const { return case_.options.count(option) != 0; }
    std::string Get(const char *option) const { return Has(option) ? case_.options.at(option) : ""; }

    static Stage StageOf(const std::string &name) {
        for (int s = 0; s < STAGE_COUNT; s++)
            if (name == ir_stage_names[s]) return static_cast<Stage>(s);
        return STAGE_COUNT;
    }

    // Lines that begin in the first column are the module's states; the others are the body of its function.
    Module *ReadCase() {
        std::string states, body;
        for (const std::string &line : SplitLines(case_.before)) {
            if (line.empty() || line[0] == '#') continue;
            (line[0] == ' ' ? body : states) += line + "\n";
        }
        Module *m = ReadFunc(Get("stage"), body, states);
        if (m) ir_compact(m);
        return m;
    }

    // values=bits: the same bits, with rounding; values=exact: the same in exact arithmetic, and operands fit kernels.
    void CheckValues(const Module *before, const Module *m) {
        ASSERT_TRUE(!Has("values") || Get("values") == "bits" || Get("values") == "exact" || Get("values") == "none");
        if (Get("values") == "bits")
            for (unsigned seed = 0; seed < 3; seed++)
                ExpectEqual(Interpret(before->funcs.data[0], 5, true, seed), Interpret(m->funcs.data[0], 5, true, seed),
                            0);
        if (Get("values") != "exact") return;
        Compare(before, m, false, 1e-12);
        ExpectWalkable(m->funcs.data[0]);
    }

    void CheckKernels(const Module *m) {
        const Func *f = m->funcs.data[0];
        const char *wrong = kernel_check(f);
        EXPECT_EQ(nullptr, wrong) << wrong << "\n" << Print(m);
        const char *shared = m->stage == STAGE_PLAN ? parts_check(f) : nullptr;
        EXPECT_EQ(nullptr, shared) << shared;
        for (int i = 0; i < f->kernels.len; i++)
            EXPECT_EQ("k" + std::string(i < 10 ? "0" : "") + std::to_string(i), f->kernels.data[i]->name);
    }

    // count.permute=3: so many ops of that name.
    void CheckCounts(const Module *m) {
        for (const auto &option : case_.options) {
            if (option.first.compare(0, 6, "count.") != 0) continue;
            const Func *f = m->funcs.data[0];
            int count = 0;
            for (int i = 0; i < f->body.len; i++)
                count += option.first.substr(6) == ir_op_info[ir_op_at(f, i)->code].name;
            EXPECT_EQ(std::stoi(option.second), count) << option.first << "\n" << Ops(f);
        }
    }

    // ---- what is compared ----

    std::string Show(const Module *m) {
        const Func *f = m->funcs.data[0];
        std::string text = Get("show") == "kernels" ? Kernels(f) : Get("show") == "memory" ? Memory(f) : Body(f);
        for (int i = 0; i < m->removed.len; i++)
            text += std::string("removed ") + m->removed.data[i].func + " %" + m->removed.data[i].value + ": " +
                    m->removed.data[i].what + "\n";
        text.erase(text.find_last_not_of('\n') + 1);
        return text;
    }

    // Ops and results as they are printed, without the columns.
    std::string Body(const Func *f) {
        Text t;
        text_init(&t, &arena_);
        ir_print_func(&t, f);
        std::string text;
        for (const std::string &line : SplitLines(text_str(&t))) {
            std::istringstream words(line);
            std::string first, word, joined;
            words >> first;
            if (first[0] != '%' && first != "result" && first.compare(0, 7, "assign(") != 0) continue;
            for (joined = "  " + first; words >> word;) joined += " " + word;
            text += joined + "\n";
        }
        return text;
    }

    // A module as it is printed, its columns one space apart; without the hash of its policy, and without decisions,
    // which repeat what is said of each op.
    static std::string Squeezed(const std::string &module) {
        std::string text;
        for (const std::string &line : SplitLines(module)) {
            if (line.find("  policy ") == 0 || line.find("decision ") == 0) continue;
            const size_t indent = std::min(line.find_first_not_of(' '), line.size());
            std::istringstream words(line);
            std::string word, joined;
            while (words >> word) joined += (joined.empty() ? "" : " ") + word;
            text += line.substr(0, indent) + joined + "\n";
        }
        text.erase(text.find_last_not_of('\n') + 1);
        return text;
    }

    // "  product: %1 %2": what each kernel makes; copied constants left out, assigned states after a =.
    static std::string Kernels(const Func *f) {
        std::string text;
        for (int i = 0; i < f->kernels.len; i++) {
            const Kernel *k = f->kernels.data[i];
            text += std::string("  ") + ir_kernel_kind_names[k->kind] + ":";
            for (int j = 0; j < k->count; j++) {
                const Op *o = ir_op_at(f, k->first + j);
                if (o->code == OP_assign) text += std::string(" =%") + ir_value(f, o->in[0])->name;
                else if (o->code != OP_const) text += std::string(" %") + ir_value(f, o->out[0])->name;
            }
            if (k->segment) text += " (segments of " + std::to_string(k->segment) + ")";
            if (k->pred.id) text += std::string(" if %") + ir_value(f, k->pred)->name;
            text += "\n";
        }
        return text;
    }

    // "  %a: pitch 24 part 8 in %b": how the rows of each temporary lie, where they are not dense or its own.
    static std::string Memory(const Func *f) {
        std::string text;
        for (int i = 0; i < f->buffers.len; i++) {
            const Buffer *b = f->buffers.data[i];
            if (!b->pitch && !b->place) continue;
            text += std::string("  %") + ir_value(f, b->value)->name + ":";
            if (b->pitch) text += " pitch " + std::to_string(b->pitch);
            if (b->is_part) text += " part " + std::to_string(b->column);
            if (b->place) text += std::string(" in %") + ir_value(f, f->buffers.data[b->place - 1]->value)->name;
            text += "\n";
        }
        return text;
    }

    void CheckText(const std::string &text) {
        std::string root = golden::BlessRoot();
        if (root.empty()) {
            EXPECT_EQ(case_.after, text) << case_.file << ", " << case_.name;
            return;
        }
        // Every other line of the file stays as it is.
        std::string path = root + "/" + kFolder + "/" + case_.file, out;
        enum { OTHERS, BEFORE, AFTER } part = OTHERS;
        for (const std::string &line : SplitLines(golden::Read(path))) {
            if (line.compare(0, 3, "## ") == 0) part = line == "## " + case_.name ? BEFORE : OTHERS;
            if (part != AFTER) out += line + "\n";
            if (part != BEFORE || line != "---") continue;
            part = AFTER;
            out += text + "\n\n";
        }
        out.erase(out.find_last_not_of('\n') + 1);
        std::ofstream file(path, std::ios::binary);
        file << out << "\n";
        EXPECT_TRUE(file.good()) << "cannot write " << path;
    }

    const Case case_;
};

// A suite per file, a test per case.
int RegisterAll() {
    int count = 0;
    for (const std::string &name : golden::Cases(kFolder, ".ir"))
        for (const Case &c : ReadCases(name + ".ir")) {
            const std::string suite = name + "_text";
            testing::RegisterTest(suite.c_str(), c.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                                  [c]() -> TextTest * { return new TextTest(c); });
            count++;
        }
    return count;
}

const int registered = RegisterAll();

TEST(TextCases, AreThere) { EXPECT_GE(registered, 90); }

} // namespace
