// What `ampc lint` reports of problems that are planted: each of them, in its line, and nothing else; whether the lines
// that it advises help; what the call refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "amp/compile.h"
#include "tests/base/pattern.h"
#include "tests/golden/golden.h"

namespace {

const char kFolder[] = "tests/lint/planted";

// The options of a case, as `ampc lint` takes them.
struct Settings {
    std::string precision, policy, target;
    int64_t batch = 0;
    double microseconds = 0, microseconds_f32 = 0; // 0: not known
    std::vector<std::string> allow;
};

Settings SettingsOf(const std::string &text) {
    Settings settings;
    const std::vector<std::string> words = golden::Options(text);
    for (size_t i = 0; i + 1 < words.size(); i += 2) {
        if (words[i] == "--precision") settings.precision = words[i + 1];
        else if (words[i] == "--policy") settings.policy = words[i + 1];
        else if (words[i] == "--batch") settings.batch = std::stoll(words[i + 1]);
        else if (words[i] == "--step-us") settings.microseconds = std::stod(words[i + 1]);
        else if (words[i] == "--step-us-f32") settings.microseconds_f32 = std::stod(words[i + 1]);
        else if (words[i] == "--allow") settings.allow.push_back(words[i + 1]);
        else ADD_FAILURE() << "unknown option " << words[i];
    }
    return settings;
}

amp_compile_options OptionsOf(const std::string &name, const std::string &text, const Settings &settings) {
    amp_compile_options o = {};
    o.struct_size = sizeof o, o.name = name.c_str(), o.text = text.data(), o.text_size = text.size();
    o.precision = settings.precision.empty() ? nullptr : settings.precision.c_str();
    o.policy = settings.policy.empty() ? nullptr : settings.policy.c_str();
    o.target = settings.target.empty() ? nullptr : settings.target.c_str();
    return o;
}

struct Told {
    amp_status status;
    std::string text; // or the error's message
    int32_t count;
};

Told Lint(const std::string &name, const std::string &text, const Settings &settings, bool json = false) {
    std::vector<const char *> allow;
    for (const std::string &word : settings.allow) allow.push_back(word.c_str());
    amp_lint_options which = {};
    which.struct_size = sizeof which, which.json = json, which.batch = settings.batch;
    which.device = settings.microseconds > 0 ? "H100" : nullptr;
    which.microseconds = settings.microseconds, which.microseconds_f32 = settings.microseconds_f32;
    which.allow = allow.data(), which.allow_count = allow.size();
    const amp_compile_options o = OptionsOf(name, text, settings);
    amp_compile_result *result = nullptr;
    amp_error err = {};
    Told told = {};
    told.status = amp_lint(&o, &which, &told.count, &result, &err);
    told.text = result ? static_cast<const char *>(amp_compile_result_data(result, nullptr)) : err.message;
    amp_compile_result_release(result);
    return told;
}

typedef std::multiset<std::pair<int, std::string>> Places; // line, id

// "# planted: ID, ID" at the end of a line.
Places PlantedIn(const std::string &text) {
    Places places;
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); number++) {
        const size_t mark = line.find("# planted: ");
        if (mark == std::string::npos) continue;
        std::istringstream ids(line.substr(mark + 11));
        for (std::string id; std::getline(ids, id, ',');) places.insert({number, id.substr(id.find_first_not_of(' '))});
    }
    return places;
}

struct Finding {
    int line;
    std::string id, message, advice; // advice: a line of the precision block, or ""
};

std::vector<Finding> FindingsOf(const std::string &told) {
    const char *const finding = R"(:(\d+):\d+: warning: ([a-z0-9-]+): (.*))",
                      *const advice = "^  help: `(.*)' in the precision block.*$";
    std::vector<Finding> list;
    std::istringstream lines(told);
    for (std::string line; std::getline(lines, line);) {
        const std::vector<std::string> found = FirstMatch(line, finding), help = FirstMatch(line, advice);
        if (!found.empty()) list.push_back({std::stoi(found[1]), found[2], found[3], ""});
        else if (!help.empty() && !list.empty()) list.back().advice = help[1];
    }
    return list;
}

Places PlacesOf(const std::vector<Finding> &list) {
    Places places;
    for (const Finding &f : list) places.insert({f.line, f.id});
    return places;
}

class Planted : public testing::TestWithParam<std::string> {
  protected:
    const std::string name = GetParam() + ".amp", text = golden::Read(std::string(kFolder) + "/" + name);
    const Settings settings = SettingsOf(text);
};

TEST_P(Planted, IsFoundAndNothingElse) {
    const Told told = Lint(name, text, settings);
    ASSERT_EQ(told.status, AMP_OK) << told.text;
    EXPECT_EQ(PlacesOf(FindingsOf(told.text)), PlantedIn(text)) << told.text;
    EXPECT_EQ(static_cast<size_t>(told.count), PlantedIn(text).size());
    golden::Check(kFolder, GetParam(), {".out", told.text}, {".out"});
}

// Full precision has nothing to be found, but for what is planted in it.
TEST_P(Planted, IsNoProblemInF32) {
    if (settings.precision == "fp32") return;
    if (text.find("precision \"") != std::string::npos) return; // its lines name the low type
    Settings full = settings;
    full.policy = "", full.precision = "fp32";
    EXPECT_EQ(Lint(name, text, full).count, 0);
}

// ---- advice -------------------------------------------------------------------------------------------------------

// The model with one more line in its precision block, below all others.
std::string WithLine(const std::string &text, const std::string &line, const Settings &settings) {
    const std::string word = settings.precision.empty() ? "\"" + settings.policy + "\"" : settings.precision;
    const size_t block = text.find("\nprecision ");
    if (block == std::string::npos) return text + "\nprecision " + word + " {\n    " + line + "\n}\n";
    std::string changed = text;
    return changed.insert(changed.rfind('}'), "    " + line + "\n");
}

// Casts of the forward pass.
int CastsIn(const std::string &name, const std::string &text, const Settings &settings) {
    amp_compile_options o = OptionsOf(name, text, settings);
    o.emit = AMP_EMIT_IR, o.stop_after = "simplify";
    amp_compile_result *result = nullptr;
    amp_error err = {};
    EXPECT_EQ(amp_compile(&o, &result, &err), AMP_OK) << err.message;
    if (!result) return -1;
    std::istringstream lines(static_cast<const char *>(amp_compile_result_data(result, nullptr)));
    amp_compile_result_release(result);
    int count = 0;
    bool in_step = false;
    for (std::string line; std::getline(lines, line);) {
        if (line.compare(0, 5, "func ") == 0) in_step = line.find("train_step") != std::string::npos;
        count += in_step && line.find("= cast(") != std::string::npos && !HasMatch(line, R"(@[^ ]*\.grad[._ ])");
    }
    return count;
}

// A line that is advised is accepted, and what it was for is told no more; a cast that could go goes.
TEST_P(Planted, IsMendedByTheLineThatIsAdvised) {
    const int casts = text.find("train m") == std::string::npos ? 0 : CastsIn(name, text, settings);
    for (const Finding &f : FindingsOf(Lint(name, text, settings).text)) {
        if (f.advice.empty()) continue;
        const std::string changed = WithLine(text, f.advice, settings);
        const Told after = Lint(name, changed, settings);
        ASSERT_EQ(after.status, AMP_OK) << f.advice << "\n" << after.text;
        for (const Finding &left : FindingsOf(after.text))
            EXPECT_FALSE(left.line == f.line && left.id == f.id && left.message == f.message) << after.text;
        const std::vector<std::string> m = FirstMatch(f.message, R"((\d+) casts?$)");
        if (f.id == "cast" && !m.empty()) {
            EXPECT_EQ(casts - CastsIn(name, changed, settings), std::stoi(m[1])) << f.advice;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Files, Planted, testing::ValuesIn(golden::Cases(kFolder, ".amp")),
                         [](const testing::TestParamInfo<std::string> &info) { return info.param; });

TEST(PlantedFiles, HoldEveryCheckAndMany) {
    std::set<std::string> ids;
    size_t count = 0;
    for (const std::string &name : golden::Cases(kFolder, ".amp"))
        for (const auto &place : PlantedIn(golden::Read(std::string(kFolder) + "/" + name + ".amp"))) {
            ids.insert(place.second);
            count++;
        }
    EXPECT_GE(count, 40u);
    const char *about = nullptr;
    for (int32_t i = 0; amp_lint_check(i, &about); i++) {
        EXPECT_EQ(ids.count(amp_lint_check(i, nullptr)), 1u) << amp_lint_check(i, nullptr);
        EXPECT_GT(std::string(about).size(), 20u);
    }
    EXPECT_EQ(amp_lint_check(-1, nullptr), nullptr);
}

// ---- sizes that mend what is told of them ---------------------------------------------------------------------------

TEST(Lint, IsSilentWhereSizesArePadded) {
    const std::string name = "alignment.amp", text = golden::Read(std::string(kFolder) + "/" + name);
    std::string padded =
        Replaced(text, "IN = 30, HIDDEN = 100, HEADS = 3, WIDTH = 60", "IN = 32, HIDDEN = 104, HEADS = 4, WIDTH = 64");
    padded = Replaced(padded, "\\[N, 36, 8, 8\\]", "[N, 40, 8, 8]");
    EXPECT_EQ(Lint(name, padded, SettingsOf(text)).text, "alignment.amp: 0 findings\n");
}

TEST(Lint, LeavesOutWhatOnlyCudaHas) {
    const std::string name = "alignment.amp", text = golden::Read(std::string(kFolder) + "/" + name);
    Settings cpu = SettingsOf(text);
    cpu.target = "cpu";
    EXPECT_EQ(Lint(name, text, cpu).count, 0);
    cpu.target = "cuda";
    EXPECT_EQ(Lint(name, text, cpu).count, 6);
}

const char kExp[] = "amp 1\nmodel m(x: f32[N, 8]) -> y { y = exp(x) }\n";
const Settings kPure = {"", "pure-fp16", "", 0, 0, 0, {}};

TEST(Lint, CountsSumsForTheBatchThatIsAskedFor) {
    const std::string text = "amp 1\nmodel m(x: f32[N, 64]) -> y { y = x + sum(x) }\n";
    Settings settings = kPure;
    EXPECT_EQ(Lint("m.amp", text, settings).count, 0); // 2,048 elements
    settings.batch = 1024;
    EXPECT_NE(Lint("m.amp", text, settings).text.find("a sum of 65536 elements (at N = 1024), if they are at most 1"),
              std::string::npos);
}

// A model of time is no better than a twentieth.
TEST(Lint, SaysThatALowerTypeDoesNotPayWhereItGainsLittle) {
    const std::string name = "no_gain.amp", text = golden::Read(std::string(kFolder) + "/" + name);
    Settings settings = SettingsOf(text);
    settings.microseconds = 0.94 * settings.microseconds_f32;
    EXPECT_EQ(Lint(name, text, settings).count, 0);
    settings.microseconds = 0.96 * settings.microseconds_f32;
    EXPECT_EQ(Lint(name, text, settings).count, 1);
    settings.precision = "fp32";
    EXPECT_EQ(Lint(name, text, settings).count, 0);
}

TEST(Lint, WritesJson) {
    const Told told = Lint("m.amp", kExp, kPure, true);
    EXPECT_EQ(told.count, 1);
    EXPECT_EQ(
        told.text.substr(0, told.text.find(",\"checks\":")),
        "{\"model\":\"m.amp\",\"policy\":\"pure-fp16\",\"batch\":32,\"findings\":[{\"id\":\"exp-overflow\","
        "\"file\":\"m.amp\",\"line\":2,\"column\":34,\"message\":\"exp of what nothing bounds: its result is f16, "
        "which is infinite above x = 11.1\",\"line_to_add\":\"\\\"exp\\\": f32\",\"help\":\"or bound it: clamp(x; "
        "low = -20.0, high = 11.0)\",\"paths\":[\"exp\"]}]");
}

// IR of a stage before lower, which has no text to quote.
TEST(Lint, ReadsIr) {
    amp_compile_options o = OptionsOf("m.amp", kExp, kPure);
    const std::string text = kExp;
    o.text = text.data(), o.emit = AMP_EMIT_IR, o.stop_after = "simplify";
    amp_compile_result *result = nullptr;
    ASSERT_EQ(amp_compile(&o, &result, nullptr), AMP_OK);
    const std::string ir = static_cast<const char *>(amp_compile_result_data(result, nullptr));
    amp_compile_result_release(result);
    EXPECT_EQ(Lint("m.ir", Replaced(ir, "\n  (source|policy) [^\n]*", ""), {}).text.substr(0, 21),
              "m.amp:2:34: warning: ");
    EXPECT_EQ(Lint("m.ir", ir, {}).text.substr(0, 60), "m.amp:2:34: warning: exp-overflow: exp: exp of what nothing ");
}

// ---- what is refused ------------------------------------------------------------------------------------------------

TEST(LintRefuses, ChecksThatAreNone) {
    Settings settings = kPure;
    settings.allow = {"exp-overflow", "exp-overlow:h.*"};
    const Told told = Lint("m.amp", kExp, settings);
    EXPECT_EQ(told.status, AMP_INVALID_ARGUMENT);
    EXPECT_EQ(told.text.find("allow exp-overlow:h.*: no check has this name; there are alignment, cast, "), 0u)
        << told.text;
}

TEST(LintRefuses, WrongOptions) {
    const std::string text = kExp;
    amp_compile_options o = OptionsOf("m.amp", text, kPure);
    amp_compile_result *result = nullptr;
    amp_error err = {};
    EXPECT_EQ(amp_lint(&o, nullptr, nullptr, nullptr, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "amp_lint: out is NULL");
    EXPECT_EQ(amp_lint(nullptr, nullptr, nullptr, &result, &err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_lint(&o, nullptr, nullptr, &result, &err), AMP_OK) << err.message;
    amp_compile_result_release(result);
    amp_lint_options which = {};
    which.struct_size = sizeof which, which.allow_count = 1;
    int32_t count = 7;
    EXPECT_EQ(amp_lint(&o, &which, &count, &result, &err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(count, 0);
    EXPECT_EQ(result, nullptr);
    which.allow_count = 0, which.batch = -1;
    EXPECT_EQ(amp_lint(&o, &which, &count, &result, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "amp_lint_options: batch is -1; it must be positive, or 0 for 32");
    which.batch = 0, which.microseconds = NAN;
    EXPECT_EQ(amp_lint(&o, &which, &count, &result, &err), AMP_INVALID_ARGUMENT);
    o.target = "gpu";
    EXPECT_EQ(amp_lint(&o, nullptr, nullptr, &result, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "unknown target 'gpu'; use cpu, cuda or both");
}

TEST(LintRefuses, ModelsWithErrors) {
    const Told told = Lint("m.amp", "amp 1\nmodel m(x: f32[N, 8]) -> y { y = epx(x) }\n", kPure);
    EXPECT_EQ(told.status, AMP_BAD_SOURCE);
    EXPECT_EQ(told.text.find("m.amp:2:34: error: "), 0u) << told.text;
}

} // namespace
