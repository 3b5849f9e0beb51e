// prelude_test.cc: a kernel brings those functions of the prelude that it needs (codegen/cuda/prelude_parts.h), and no
// text lacks one.
#include <set>

#include "codegen/cuda/prelude_parts.h"
#include "tests/base/pattern.h"
#include "tests/codegen/cuda/cuda_model.h"
#include "tests/codegen/cuda/quick_compile.h"

namespace {

class PreludeTest : public CudaModelTest {
  protected:
    std::string For(const std::string &text, const std::string &source) {
        const char *kept = arena_strdup(&arena_, text.c_str());
        return cuda_prelude_for(cuda_prelude_split(&arena_, kept), source.c_str(), nullptr);
    }

    std::string Error(const std::string &source, int arch) {
        const char *options[] = {"--fdevice-syntax-only"};
        amp_nvrtc_job job = {};
        job.source = source.c_str();
        job.name = "prelude.cu";
        job.arch = arch;
        job.options = options;
        job.option_count = 1;
        amp_nvrtc_result result = {};
        amp_error err = {};
        const bool failed = amp_nvrtc_compile(nvrtc_, &job, &result, &err) != AMP_OK;
        amp_nvrtc_result_free(nvrtc_, &result);
        return failed ? err.message : "";
    }
};

TEST_F(PreludeTest, WhatIsNamedAndWhatThatNames) {
    const std::string a = "int a() { return 1; }\n", b = "int b() {\n    return a();\n}\n",
                      c = "int c() { return b() + d; }\n";
    EXPECT_EQ(For(a + "\n" + b + "\n" + c, "x = a();"), a);
    EXPECT_EQ(For(a + "\n" + b + "\n" + c, "x = b();"), a + b);
    EXPECT_EQ(For(a + "\n" + b + "\n" + c, "x = c() + a();"), a + b + c);
    EXPECT_EQ(For(a + "\n" + b + "\n" + c, "x = 1;"), "");
}

TEST_F(PreludeTest, WhatIsNoUse) {
    const std::string a = "int a(int from) { int local = from; return local; }\n";
    for (const char *source : {"/* a */", "// a\n", "\"a\"", "0x1a", "ab", "local", "from", "1.a", "'a'"})
        EXPECT_EQ(For(a, source), "") << source;
    for (const char *source : {"a", "(a)", "-a;", "/* */a", "x\n#if a\n"}) EXPECT_EQ(For(a, source), a) << source;
}

TEST_F(PreludeTest, WhatIsDefined) {
    const std::pair<const char *, const char *> cases[] = {
        {"typedef unsigned int word;\n", "word"},
        {"#define UNIT(x) \\\n    ((x) + 1)\n", "UNIT"},
        {"enum Order { FIRST, LAST = 3 };\n", "Order LAST"},
        {"enum { STEP = 16 };\n", "STEP"},
        {"template <class T, int V> struct Tile {\n    int v;\n\n    T at;\n};\n", "Tile<int, 3>"},
        {"template <> struct Part<2> { typedef int Type; };\n", "Part"},
        {"struct Plus;\n", "Plus"},
        {"const float half = 0.5f;\n", "half"},
        {"#if ARCH >= 800\n\n#define ASYNC 1\n\n#else\n#define ASYNC 0\n#endif\n", "ASYNC"},
    };
    for (const auto &[text, name] : cases) EXPECT_EQ(For(std::string("int other;\n\n") + text, name), text);
    for (const char *name : {"T", "V", "at", "Type", "x", "unsigned", "class"})
        for (const auto &[text, defined] : cases) EXPECT_EQ(For(text, name), "") << name << " of " << defined;
}

TEST_F(PreludeTest, WhatMacrosDefine) {
    const std::string macro = "#define DEFINE_BOTH(name, type) \\\n    type load_##name(type x) { return x; } \\\n    "
                              "type store_##name(type x) { return twice(x); }\n";
    const std::string f = "DEFINE_BOTH(f32, float)\n", i = "DEFINE_BOTH(i32, int)\n",
                      twice = "int twice(int x) { return 2 * x; }\n";
    const std::string text = twice + "\n" + macro + "\n" + f + "\n" + i;
    EXPECT_EQ(For(text, "load_f32(x)"), twice + macro + f);
    EXPECT_EQ(For(text, "store_i32(x)"), twice + macro + i);
    EXPECT_EQ(For(text, "float name"), "");
}

// An overload in another paragraph may be meant, too.
TEST_F(PreludeTest, EveryDefinition) {
    const std::string a = "int a(int x);\n", b = "int b;\n", c = "int a(float x);\n";
    EXPECT_EQ(For(a + "\n" + b + "\n" + c, "a(1)"), a + c);
}

TEST_F(PreludeTest, EqualNeedsAreOneText) {
    CudaPrelude *p = cuda_prelude_split(&arena_, cuda_prelude);
    CudaRanges ranges = {};
    const std::string text = cuda_prelude_for(p, "exp_f32(x)", &ranges);
    EXPECT_EQ(cuda_prelude_for(p, "exp_f32(x)", nullptr),
              cuda_prelude_for(p, "float y = exp_f32(exp_f32(x))", nullptr));
    std::string parts;
    for (int i = 0; i < ranges.len; i++) parts.append(cuda_prelude + ranges.data[i].at, ranges.data[i].size);
    EXPECT_EQ(parts, text);
    EXPECT_NE(cuda_prelude_for(p, "exp_f32(x)", nullptr), cuda_prelude_for(p, "log_f32(x)", nullptr));
}

// Each name of the prelude: what it brings is complete.
TEST_F(PreludeTest, OfEachNameCompiles) {
    CudaPrelude *p = cuda_prelude_split(&arena_, cuda_prelude);
    const std::string text = Replaced(std::string(cuda_prelude), R"(/\*[^]*?\*/)", " ");
    std::set<std::string> texts;
    for (const std::string &name : EachMatch(text, "[A-Za-z_][A-Za-z_0-9]*"))
        texts.insert(cuda_prelude_for(p, name.c_str(), nullptr));
    EXPECT_GT(texts.size(), 60u);
    for (const std::string &t : texts)
        for (int arch : ArchsOf(t, {75, 90})) ASSERT_EQ(Error(t, arch), "") << t;
}

// The whole is not more than its parts: what defines nothing is comment.
TEST_F(PreludeTest, AllNamesBringAll) {
    CudaPrelude *p = cuda_prelude_split(&arena_, cuda_prelude);
    const std::string all = cuda_prelude_for(p, cuda_prelude, nullptr);
    EXPECT_GT(all.size() * 10, strlen(cuda_prelude) * 9);
    EXPECT_EQ(Error(all, 90), "");
}

// A trivial kernel is not made to read what products need.
TEST_F(PreludeTest, OfElementwiseKernels) {
    const CudaModule *cuda = Emit(PlannedForCuda(R"(module "core" stage lower {
}
func infer {
  input %x : f32[N, 64]
  %e = neg(%x) : f32[N, 64]
  result y = %e
}
)"));
    ASSERT_NE(cuda, nullptr);
    ASSERT_EQ(cuda->functions.len, 1);
    const std::string prelude = cuda->functions.data[0].prelude;
    EXPECT_LT(prelude.size(), strlen(cuda_prelude) / 8) << prelude;
    EXPECT_EQ(prelude.find("mma"), std::string::npos);
    EXPECT_EQ(Error(prelude + cuda->functions.data[0].source, 75), "");
}

} // namespace
