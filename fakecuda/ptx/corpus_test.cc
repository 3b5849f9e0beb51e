// What NVRTC really emits for the CUDA sources of corpus/, by both of its code generators; then the same texts damaged.
#include "fakecuda/ptx/parse_ptx.h"

#include <dlfcn.h>

#include <fstream>
#include <random>
#include <sstream>
#include <vector>

using namespace ptx_test;

namespace {

// The few calls of NVRTC that are needed here.
struct Nvrtc {
    void *library = nullptr;
    int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *);
    int (*compile)(void *, int, const char *const *);
    int (*log_size)(void *, size_t *);
    int (*log)(void *, char *);
    int (*ptx_size)(void *, size_t *);
    int (*ptx)(void *, char *);
    int (*destroy)(void **);
    std::string include;

    Nvrtc() {
        for (const char *name :
             {"libnvrtc.so.13", "/usr/local/cuda-13.0/lib/libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13"})
            if (!library && (library = dlopen(name, RTLD_NOW | RTLD_LOCAL))) {
            }
        if (!library) return;
        find("nvrtcCreateProgram", create);
        find("nvrtcCompileProgram", compile);
        find("nvrtcGetProgramLogSize", log_size);
        find("nvrtcGetProgramLog", log);
        find("nvrtcGetPTXSize", ptx_size);
        find("nvrtcGetPTX", ptx);
        find("nvrtcDestroyProgram", destroy);
        Dl_info info;
        if (!dladdr(reinterpret_cast<void *>(create), &info)) return;
        std::string path = info.dli_fname;
        for (const char *up : {"/../include", "/../../include", "/../../../include"}) {
            std::string folder = path.substr(0, path.rfind('/')) + up;
            if (std::ifstream(folder + "/cuda_fp16.h")) include = folder;
        }
    }

    template <class F> void find(const char *name, F &f) { f = reinterpret_cast<F>(dlsym(library, name)); }

    std::string run(const std::string &source, const std::string &arch, const std::string &option) const {
        void *program = nullptr;
        EXPECT_EQ(create(&program, source.c_str(), "corpus.cu", 0, nullptr, nullptr), 0);
        std::string a = "-arch=compute_" + arch, i = "-I" + include;
        const char *options[] = {a.c_str(), i.c_str(), option.c_str()};
        std::string text;
        size_t size = 0;
        if (compile(program, option.empty() ? 2 : 3, options) != 0) {
            log_size(program, &size);
            text.resize(size);
            log(program, &text[0]);
            ADD_FAILURE() << text;
            text.clear();
        } else {
            ptx_size(program, &size);
            text.resize(size);
            ptx(program, &text[0]);
            text.resize(size - 1);
        }
        destroy(&program);
        return text;
    }
};

const Nvrtc &nvrtc() {
    static Nvrtc n;
    return n;
}

#define NEED_NVRTC()                                                                                                   \
    if (!nvrtc().library) GTEST_SKIP() << "NVRTC is not installed";                                                    \
    if (nvrtc().include.empty()) GTEST_SKIP() << "the headers of CUDA are not installed"

std::string file(const std::string &name) {
    std::ifstream in("fakecuda/ptx/corpus/" + name + ".cu");
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

// Counts instructions without the parser: statements between semicolons that are no directives.
int count_instructions(const std::string &ptx) {
    std::string text;
    std::istringstream lines(ptx);
    for (std::string line; std::getline(lines, line);) {
        line = line.substr(0, line.find("//"));
        size_t start = line.find_first_not_of(" \t");
        bool is_line_directive =
            start != std::string::npos && (line.compare(start, 4, ".loc") == 0 || line.compare(start, 5, ".file") == 0);
        if (line.find(".section") != std::string::npos) break; /* they come last */
        if (!is_line_directive) text += line + "\n";
    }
    int count = 0;
    std::istringstream statements(text);
    for (std::string s; std::getline(statements, s, ';');) {
        for (size_t at;;) { /* braces and labels before it */
            at = s.find_first_not_of(" \t\r\n{}");
            s = at == std::string::npos ? "" : s.substr(at);
            at = s.find_first_of(": \t\n");
            if (at == std::string::npos || s[at] != ':' || s[at + 1] == ':') break;
            s = s.substr(at + 1);
        }
        bool is_end = s.empty() && statements.eof();
        count += !s.empty() && s[0] != '.' && s.find(".callprototype") == std::string::npos && !is_end;
    }
    return count;
}

void check_operand(const PtxModule &m, const PtxFunction &f, const PtxOperand &o) {
    if (o.kind == PTX_OP_REGISTER) {
        ASSERT_GE(o.index, 0);
        ASSERT_LT(o.index, f.register_count);
        ASSERT_STREQ(o.name, f.registers[o.index].name);
    }
    if (o.kind == PTX_OP_LABEL) {
        ASSERT_GE(o.index, 0);
        ASSERT_LE(o.index, f.count);
    }
    if (o.kind == PTX_OP_FUNCTION) {
        ASSERT_TRUE(ptx_function(&m, o.name)) << o.name;
    }
    if (o.variable) {
        auto in = [&](const PtxVariable *list, int count) { return o.variable >= list && o.variable < list + count; };
        ASSERT_TRUE(in(m.variables, m.variable_count) || in(f.params, f.param_count) || in(f.results, f.result_count) ||
                    in(f.locals, f.local_count))
            << o.name;
        ASSERT_STREQ(o.name, o.variable->name);
    }
    if (o.base) check_operand(m, f, *o.base);
    for (int i = 0; i < o.count; i++) check_operand(m, f, o.items[i]);
}

void check_module(const PtxModule &m) {
    for (int n = 0; n < m.function_count; n++) {
        const PtxFunction &f = m.functions[n];
        for (int i = 0; i < f.count; i++)
            for (int k = 0; k < f.code[i].operand_count; k++) check_operand(m, f, f.code[i].operands[k]);
    }
}

class Corpus : public testing::TestWithParam<std::tuple<const char *, const char *>> {};

TEST_P(Corpus, EveryInstructionIsRead) {
    NEED_NVRTC();
    std::string source = file(std::get<0>(GetParam()));
    ASSERT_FALSE(source.empty());
    for (const char *option : {"", "-lineinfo", "--use_fast_math", "--fmad=false"}) {
        std::string ptx = nvrtc().run(source, std::get<1>(GetParam()), option);
        Module m = parse(ptx);
        ASSERT_TRUE(m) << option << ": " << last_message();
        EXPECT_EQ(std::to_string(m->target), std::get<1>(GetParam()));
        int count = 0;
        for (int i = 0; i < m->function_count; i++) count += m->functions[i].count;
        EXPECT_GT(count, 100);
        EXPECT_EQ(count, count_instructions(ptx));
        check_module(*m);
    }
}

INSTANTIATE_TEST_SUITE_P(All, Corpus,
                         testing::Combine(testing::Values("control", "math", "pointwise", "product", "reduce"),
                                          testing::Values("75", "80", "90", "120")),
                         [](const auto &info) {
                             return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
                         });

TEST(Corpus, CommentsOfInlineAssemblySayWhereCodeComesFrom) {
    NEED_NVRTC();
    Module m = parse(nvrtc().run(file("control"), "90", ""));
    ASSERT_TRUE(m) << last_message();
    const PtxFunction *f = ptx_function(m.get(), "control");
    ASSERT_TRUE(f);
    EXPECT_EQ(f->code[0].origin, nullptr);
    EXPECT_STREQ(f->code[f->count - 1].origin, "%12 = relu");
}

// Pieces of real text moved, doubled, cut and overwritten: parsed or refused, never more.
TEST(Damage, NothingBreaksTheParser) {
    std::ifstream seed("fakecuda/ptx/corpus/seed.ptx");
    std::stringstream read;
    read << seed.rdbuf();
    const std::string text = read.str();
    ASSERT_TRUE(parse(text)) << last_message();
    std::mt19937 random(7);
    auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
    const char *pieces[] = {"{",        "}",      "(",      ")", "[", "]",      ";",
                            ",",        "|",      "!",      "@", "_", "%r1",    "%p1",
                            ".reg",     ".b32",   ".align", "=", ":", ".entry", ".func",
                            "call",     "bra",    "<",      ">", "-", "0f",     "99999999999999999999",
                            "generic(", ".param", "\"",     "/*"};
    int refused = 0;
    for (int round = 0; round < 4000; round++) {
        std::string t = text;
        for (size_t n = 1 + below(3); n > 0; n--) {
            size_t at = below(t.size()), length = below(40);
            switch (below(5)) {
            case 0: t.erase(at, length); break;
            case 1: t.insert(at, t.substr(below(t.size()), length)); break;
            case 2: t[at] = static_cast<char>(random()); break;
            case 3: t.insert(at, pieces[below(sizeof pieces / sizeof *pieces)]); break;
            default: t.resize(at + 1); break;
            }
        }
        Module m = parse(t);
        if (m) check_module(*m);
        else {
            refused++;
            ASSERT_EQ(last_message().substr(0, 4), "ptx:");
        }
    }
    EXPECT_GT(refused, 2000);
}

} // namespace
