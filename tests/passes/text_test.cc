// text_test.cc: passes as text: cases/*.ir hold IR before a pass and what it becomes. README.md has the format.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "codegen/codegen.h"
#include "ir/words.h"
#include "passes/fuse/kernel_check.h"
#include "passes/launch/plan_check.h"
#include "precision/policy.h"
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
        ReadOptions();
        if (HasFatalFailure()) return;
        const Module *before = ReadCase(), *m = RunPasses();
        if (!before || HasFatalFailure()) return;
        if (m) CheckModule(before, m);
        const std::string text = Show(m);
        CheckText(text);
        if (m) CheckWithout(text);
    }

  private:
    bool Has(const char *option) const { return case_.options.count(option) != 0; }
    std::string Get(const char *option) const { return Has(option) ? case_.options.at(option) : ""; }
    bool IsModule() const { return case_.before.find("module ") != std::string::npos; }

    static Stage StageOf(const std::string &name) {
        for (int s = 0; s < STAGE_COUNT; s++)
            if (name == ir_stage_names[s]) return static_cast<Stage>(s);
        return STAGE_COUNT;
    }

    void ReadOptions() {
        precision_ = Get("precision");
        policy_ = Get("policy");
        options_.precision = precision_.empty() ? nullptr : precision_.c_str();
        options_.policy = policy_.empty() ? nullptr : policy_.c_str();
        options_.find_policy = [](void *arena, const char *name) {
            return policy_builtin(static_cast<Arena *>(arena), name);
        };
        options_.user = &arena_;
        options_.target = target_find(Has("target") ? Get("target").c_str() : nullptr);
        ASSERT_NE(options_.target, nullptr) << Get("target");
        options_.describe = codegen_cuda_describe;
        ASSERT_TRUE(!Has("no_pass") || passes_leave_out(&options_, Get("no_pass").c_str())) << Get("no_pass");
        const std::string pass = Get("pass"); // "lower", or "target..fuse": from one to another
        const size_t dots = pass.find("..");
        first_ = StageOf(pass.substr(0, dots));
        last_ = StageOf(IsModule() ? Get("until") : dots == std::string::npos ? pass : pass.substr(dots + 2));
        ASSERT_TRUE((IsModule() || first_ != STAGE_COUNT) && last_ != STAGE_COUNT) << "no pass " << pass;
    }

    // The case after its passes.  NULL: they have found errors, which the case shows.
    Module *RunPasses() {
        Module *m = ReadCase();
        amp_error err = {};
        bool ok = m != nullptr;
        if (m && IsModule()) ok = passes_run(m, &diags_, &options_, last_, nullptr, nullptr, &err) == AMP_OK;
        else if (m) ok = Run(m, first_, last_);
        messages_ = Diagnostics();
        EXPECT_TRUE(ok || ShowsMessages()) << err.message << messages_;
        return ok ? m : nullptr;
    }

    void CheckModule(const Module *before, const Module *m) {
        ASSERT_NE(nullptr, FuncOf(m)) << Get("func");
        CheckValues(before, m);
        if (Has("kernels")) CheckKernels(m);
        CheckCounts(m);
        CheckRoundTrip(m);
    }

    // Every stage is also text that is read again.
    void CheckRoundTrip(const Module *m) {
        const std::string text = Print(m);
        const Module *again = Read(text);
        ASSERT_NE(again, nullptr);
        EXPECT_EQ(text, Print(again));
    }

    // The pass that the case is about: the one of its file's name, else the last one.  Left out, it leaves another
    // text; the same one, where the case shows what stays as it is.
    void CheckWithout(const std::string &text) {
        const Stage named = StageOf(case_.file.substr(0, case_.file.find('.')));
        const Stage pass = named <= last_ ? named : last_;
        if (passes[pass].left_out != PASS_SKIPPED || options_.without[pass]) {
            EXPECT_FALSE(Has("same")) << "the pass " << ir_stage_names[pass] << " is not left out";
            return;
        }
        options_.without[pass] = true;
        const std::string without = Show(RunPasses());
        if (Has("same")) EXPECT_EQ(text, without) << "the pass " << ir_stage_names[pass] << " makes a difference";
        else EXPECT_NE(text, without) << "the pass " << ir_stage_names[pass] << " makes no difference";
    }

    // Lines that begin in the first column are the module's states; the others are the body of its function.
    Module *ReadCase() {
        std::string states, body;
        for (const std::string &line : SplitLines(case_.before)) {
            if (line.empty() || line[0] == '#') continue;
            (line[0] == ' ' && !IsModule() ? body : states) += line + "\n";
        }
        if (IsModule()) return Read(states);
        const bool has_target = StageOf(Get("stage")) >= STAGE_TARGET;
        Module *m = Read("module \"t\" stage " + Get("stage") + " {\n" +
                         (has_target ? std::string("  target ") + options_.target->name + "\n" : "") + "}\n" + states +
                         "func f {\n" + body + "}\n");
        if (m) ir_compact(m);
        return m;
    }

    // The function that a case is about; NULL: there is none.
    const Func *FuncOf(const Module *m) const {
        for (int i = 0; i < m->funcs.len; i++)
            if (!Has("func") || Get("func") == m->funcs.data[i]->name) return m->funcs.data[i];
        return nullptr;
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
        const Func *f = FuncOf(m);
        const char *wrong = kernel_check(f);
        EXPECT_EQ(nullptr, wrong) << wrong << "\n" << Print(m);
        const char *shared = m->stage >= STAGE_PLAN ? parts_check(f) : nullptr;
        EXPECT_EQ(nullptr, shared) << shared;
        for (int i = 0; i < f->kernels.len; i++)
            EXPECT_EQ("k" + std::string(i < 10 ? "0" : "") + std::to_string(i), f->kernels.data[i]->name);
    }

    // count.permute=3: there are 3 ops of that name.
    void CheckCounts(const Module *m) {
        for (const auto &option : case_.options) {
            if (option.first.compare(0, 6, "count.") != 0) continue;
            const Func *f = FuncOf(m);
            int count = 0;
            for (int i = 0; i < f->body.len; i++)
                count += option.first.substr(6) == ir_op_info[ir_op_at(f, i)->code].name;
            EXPECT_EQ(std::stoi(option.second), count) << option.first << "\n" << Ops(f);
        }
    }

    // ---- what is compared ----

    std::vector<std::string> Shown() const {
        std::vector<std::string> words;
        std::istringstream in(Has("show") ? Get("show") : IsModule() ? "module" : "ops");
        for (std::string word; std::getline(in, word, ',');) words.push_back(word);
        return words;
    }

    bool ShowsMessages() const {
        const std::vector<std::string> words = Shown();
        return std::find(words.begin(), words.end(), "messages") != words.end();
    }

    // Without a module: the passes have found errors.
    std::string Show(const Module *m) {
        std::string text;
        for (const std::string &word : Shown()) {
            if (word == "messages") text += messages_;
            else if (m) text += ShowOne(m, word);
        }
        for (int i = 0; m && !IsModule() && i < m->removed.len; i++)
            text += std::string("removed ") + m->removed.data[i].func + " %" + m->removed.data[i].value + ": " +
                    m->removed.data[i].what + "\n";
        text.erase(text.find_last_not_of('\n') + 1);
        return text;
    }

    std::string ShowOne(const Module *m, const std::string &what) {
        if (what == "module") return Squeezed(Print(m));
        if (what == "header") return Lines(Print(m), {"target", "sums", "plain"});
        if (what == "states") return Lines(Print(m), {"state"});
        if (what == "functions") return Lines(Print(m), {"func"});
        const Func *f = FuncOf(m);
        if (!f) return "  no function " + Get("func") + "\n";
        if (what == "kernels") return Kernels(f);
        if (what == "buffers") return Buffers(f);
        if (what == "launches") return Launches(f);
        if (what == "memory") return Memory(f);
        EXPECT_EQ(what, "ops");
        return Body(f);
    }

    // The words of a line, one space apart.
    static std::string Joined(const std::string &line) {
        std::istringstream words(line);
        std::string text;
        for (std::string word; words >> word;) text += (text.empty() ? "" : " ") + word;
        return text;
    }

    // Lines of a module that begin with one of these words, up to its first function's body.
    static std::string Lines(const std::string &module, const std::vector<std::string> &firsts) {
        std::string text;
        bool in_function = false;
        for (const std::string &line : SplitLines(module)) {
            const std::string joined = Joined(line), first = joined.substr(0, joined.find(' '));
            in_function = (in_function || first == "func") && line != "}";
            if (in_function && first != "func") continue;
            if (std::find(firsts.begin(), firsts.end(), first) != firsts.end()) text += "  " + joined + "\n";
        }
        return text;
    }

    // Ops and results as they are printed, without the columns.
    std::string Body(const Func *f) {
        Text t;
        text_init(&t, &arena_);
        ir_print_func(&t, f);
        std::string text;
        for (const std::string &line : SplitLines(text_str(&t))) {
            const std::string joined = Joined(line), first = joined.substr(0, joined.find(' '));
            const bool has_effect = first.find('(') != std::string::npos; // "assign(%w,", "all_reduce(%w)"
            if (first[0] == '%' || first == "result" || has_effect) text += "  " + joined + "\n";
        }
        return text;
    }

    // As they are printed.
    std::string Launches(const Func *f) {
        Text t;
        text_init(&t, &arena_);
        ir_print_func(&t, f);
        std::string text;
        for (const std::string &line : SplitLines(text_str(&t)))
            if (line.compare(0, 8, "  launch") == 0) text += line + "\n";
        return text;
    }

    // A module as it is printed, its columns one space apart; without the hash of its policy, and without decisions,
    // which repeat what is said of each op.
    static std::string Squeezed(const std::string &module) {
        std::string text;
        for (const std::string &line : SplitLines(module)) {
            if (line.find("  policy ") == 0 || line.find("decision ") == 0) continue;
            const size_t indent = std::min(line.find_first_not_of(' '), line.size());
            text += line.substr(0, indent) + Joined(line) + "\n";
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
            if (k->segment.mul) text += " (segments of " + std::to_string(k->segment.mul) + ")";
            if (k->pred.id) text += std::string(" if %") + ir_value(f, k->pred)->name;
            text += "\n";
        }
        return text;
    }

    // "  product reads b01 b02 writes b03" of each kernel, then "  b03 temp %1 f32 panels" of each buffer.
    static std::string Buffers(const Func *f) {
        std::string text;
        for (int i = 0; i < f->kernels.len; i++) {
            const Kernel *k = f->kernels.data[i];
            text += std::string("  ") + ir_kernel_kind_names[k->kind] + " reads";
            for (int j = 0; j < k->reads.len; j++) text += " " + BufferName(f, k->reads.data[j]);
            text += " writes";
            for (int j = 0; j < k->writes.len; j++) text += " " + BufferName(f, k->writes.data[j]);
            text += "\n";
        }
        for (int i = 0; i < f->buffers.len; i++) {
            const Buffer *b = f->buffers.data[i];
            text += std::string("  ") + b->name + " " + ir_buffer_kind_names[b->kind] + " %" +
                    ir_value(f, b->value)->name + " " + amp_dtype_name(b->storage) + " " + ir_layout_names[b->layout];
            if (b->pitch) text += " pitch " + std::to_string(b->pitch);
            if (b->first >= 0) text += " live " + std::to_string(b->first) + " to " + std::to_string(b->last);
            if (b->place) text += " in " + BufferName(f, b->place);
            text += "\n";
        }
        return text;
    }

    static std::string BufferName(const Func *f, uint32_t number) { return f->buffers.data[number - 1]->name; }

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

    // In a file that has the name of a pass, what it leaves as it is is not written again: CheckWithout sees that.
    void CheckText(const std::string &text) {
        if (Has("same") && StageOf(case_.file.substr(0, case_.file.find('.'))) != STAGE_COUNT) {
            EXPECT_EQ(case_.after, "") << case_.file << ", " << case_.name << ": leave out the --- and what follows";
            return;
        }
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
    std::string precision_, policy_, messages_;
    Stage first_ = STAGE_COUNT, last_ = STAGE_COUNT;
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

TEST(TextCases, AreThere) { EXPECT_GE(registered, 270); }

// What it does, what it leaves alone, and an edge.
TEST(TextCases, EveryPassForATargetHasSome) {
    for (int stage = STAGE_TARGET; stage < STAGE_COUNT; stage++) {
        const std::string name = ir_stage_names[stage];
        const std::vector<std::string> files = golden::Cases(kFolder, ".ir");
        ASSERT_TRUE(std::find(files.begin(), files.end(), name) != files.end()) << "no cases of the pass " << name;
        EXPECT_GE(ReadCases(name + ".ir").size(), 3u) << name;
    }
}

} // namespace
