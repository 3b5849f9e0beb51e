// cuda_ops_test.cc: every graph op that has CUDA code, through lower, fuse, layout, plan, code generation and NVRTC,
// run by the PTX interpreter, against the reference
// interpreter.  One case may be several ops; the cases follow the pass `lower`, whole steps of small models come
// after them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

#include "codegen/codegen.h"
#include "precision/policy.h"
#include "targets/target.h"
#include "tests/base/planted.h"
#include "tests/codegen/cuda/cuda_run.h"
#include "tests/passes/lower_cases.h"
#include "tests/passes/lower_test.h"

namespace {

const Source *BuiltinPolicy(void *arena, const char *name) { return policy_builtin(static_cast<Arena *>(arena), name); }

// AMP_CUDA_ARCHS ("75,80,86,89,90,120" in the long tests), else ArchsOf of 80 and 90; of a device those that it has.
std::vector<int> CudaArchs(const std::string &what) {
    std::vector<int> asked, archs;
    const char *list = getenv("AMP_CUDA_ARCHS");
    std::istringstream words(list ? list : "");
    for (std::string word; std::getline(words, word, ',');) asked.push_back(std::stoi(word));
    for (int arch : list ? asked : ArchsOf(what, {80, 90}))
        if (!TestDriver::Asked() || arch <= TestDriver::Get().info.arch) archs.push_back(arch);
    return archs;
}

// Opened once; NULL where it is not installed.
const amp_nvrtc *Nvrtc() {
    static amp_nvrtc *nvrtc = [] {
        amp_nvrtc *opened = nullptr;
        amp_error err = {};
        return amp_nvrtc_open(nullptr, &opened, &err) ? nullptr : opened;
    }();
    return nvrtc;
}

struct Built {
    std::string what;
    const Module *module;
    const CudaModule *cuda;
};

class CudaOpsTest : public LowerPassTest {
  protected:
    void SetUp() override {
        if (!Nvrtc()) GTEST_SKIP() << "NVRTC is not installed: CUDA kernels are NOT tested";
        if (TestDriver::Asked() && !TestDriver::Get().why.empty()) FAIL() << TestDriver::Get().why;
    }

    // The module at stage plan and its CUDA code; false: an op has none yet, whose message is noted.
    bool Build(Module *m, const std::string &what, const std::string &prefix, Built *out) {
        PassOptions o = {};
        o.target = &target_cuda;
        o.describe = codegen_cuda_describe;
        o.find_policy = BuiltinPolicy;
        o.user = &arena_;
        o.precision = precision_.empty() ? nullptr : precision_.c_str();
        o.without[STAGE_FUSE] = no_fuse_;
        amp_error err = {};
        if (passes_run(m, &diags_, &o, STAGE_LAST, nullptr, nullptr, &err)) {
            ADD_FAILURE() << what << ": " << err.message;
            return false;
        }
        for (int i = 0; i < m->funcs.len; i++) // the names of kernels must differ between cases
            m->funcs.data[i]->name = arena_strdup(&arena_, (prefix + m->funcs.data[i]->name).c_str());
        const CudaModule *cuda = nullptr;
        const amp_status status = codegen_cuda(m, &cuda, &err);
        if (status == AMP_UNSUPPORTED) missing_.push_back(what.substr(0, what.find('\n')) + ": " + err.message);
        else if (status) ADD_FAILURE() << what << ": " << err.message;
        if (!status)
            for (int i = 0; i < m->funcs.len; i++) WatchAll(m->funcs.data[i]);
        *out = {what, m, cuda};
        return !status;
    }

    // Every value that crosses kernels is compared, in order: the first one that is wrong names its kernel.  The memory
    // of distinct_rows, its last result, is written for the ids that there are.
    void WatchAll(Func *f) {
        for (int i = 0; i < f->buffers.len; i++) {
            const Buffer *b = f->buffers.data[i];
            const Op *o = ir_def(f, b->value);
            if (o && o->code == OP_distinct_rows && o->out[2].id == b->value.id) continue;
            if (b->kind == BUFFER_TEMP || b->kind == BUFFER_FLAG)
                ir_add_result(f, arena_printf(&arena_, "%%%s", ir_value(f, b->value)->name), b->value);
        }
    }

    static double ToleranceOf(const Func *f) {
        double tolerance = 2e-5;
        for (int i = 1; i < f->values.len; i++) {
            const Dtype t = f->values.data[i]->dtype;
            const double of = t == AMP_DT_BF16 ? 2e-2 : t == AMP_DT_F16 ? 3e-3 : t == AMP_DT_TF32 ? 3e-3 : 0;
            tolerance = std::max(tolerance, of);
        }
        return tolerance;
    }

    static double Largest(const std::vector<double> &values) {
        double largest = 0;
        for (double x : values)
            if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
        return largest;
    }

    // A sum that cancels (the gradient of a bias before a batch norm is 0) is as exact as its terms are large: what a
    // number may be
    // off by does not go below a share of |floor|.
    static double FloorOf(const Func *f, const Values &want) {
        double floor = 0.01;
        for (int i = 0; i < f->results.len; i++)
            if (!strncmp(f->results.data[i].name, "grad.", 5))
                floor = std::max(floor, 0.1 * Largest(want.at(f->results.data[i].name)));
        return floor;
    }

    static void Near(const std::string &what, const std::vector<double> &want, const std::vector<double> &got,
                     double tolerance, double floor) {
        ASSERT_EQ(want.size(), got.size()) << what;
        const double largest = Largest(want);
        for (size_t i = 0; i < want.size(); i++) {
            if (want[i] == got[i] || (std::isnan(want[i]) && std::isnan(got[i]))) continue;
            ASSERT_LE(std::fabs(want[i] - got[i]), tolerance * std::max(std::fabs(want[i]), 0.2 * largest + floor))
                << what << "[" << i << "]: " << got[i] << ", not " << want[i];
        }
    }

    // [O, I, KH, KW] as it is stored, [KH, KW, I, O]; |shape| is the value's.
    static std::vector<double> Hwio(const std::vector<double> &plain, const Shape *shape) {
        const int64_t taps = shape->d[0].mul * shape->d[1].mul, in = shape->d[2].mul, out = shape->d[3].mul;
        std::vector<double> hwio(plain.size());
        for (int64_t o = 0, at = 0; o < out; o++)
            for (int64_t i = 0; i < in; i++)
                for (int64_t tap = 0; tap < taps; tap++, at++)
                    hwio[static_cast<size_t>((tap * in + i) * out + o)] = plain[static_cast<size_t>(at)];
        return hwio;
    }

    // The elements of a state, which are given and come back as a file has them, as they lie in memory.
    static std::vector<double> InMemory(const Func *f, Val v, const std::vector<double> &values) {
        const bool hwio = ir_value(f, v)->kind == VAL_STATE && ir_state_of(f, v)->hwio;
        return hwio ? Hwio(values, ir_shape(f, v)) : values;
    }

    // Results, what crosses kernels, and states of one function, against the reference interpreter with its roundings.
    void CheckFunction(const LoadedPtx &image, const Built &b, const CudaProgram &program, int64_t n, unsigned seed) {
        const Func *f = program.func;
        std::vector<InterpTensor> given = Inputs(f, n, true, seed);
        Values before;
        for (size_t i = 0; i < given.size(); i++)
            before[given[i].name] = InMemory(f, f->inputs.data[i], {given[i].data, given[i].data + given[i].count});
        CudaRun run(b.cuda, image, f->name, n);
        run.Set(before);
        const Outcome want = Interpret(f, n, true, given); // which writes the states
        ASSERT_TRUE(run.Run()) << b.what;
        const double tolerance = ToleranceOf(f), floor = FloorOf(f, want);
        for (int i = 0; i < f->results.len; i++) {
            const Result *r = &f->results.data[i];
            const int buffer = run.BufferOf(r->value);
            const std::vector<double> &values = want.at(r->name);
            if (buffer >= 0)
                Near(r->name, r->hwio ? Hwio(values, ir_shape(f, r->value)) : values, run.Get(buffer), tolerance,
                     floor);
        }
        for (int i = 0; i < f->inputs.len; i++) {
            const Value *v = ir_value(f, f->inputs.data[i]);
            auto state = want.find(std::string("state ") + v->name);
            const int buffer = run.BufferOf(f->inputs.data[i]);
            if (v->kind == VAL_STATE && state != want.end() && buffer >= 0)
                Near(v->name, InMemory(f, f->inputs.data[i], state->second), run.Get(buffer), tolerance, floor);
        }
    }

    // All functions compiled together, for one architecture; their names differ.
    static std::string Image(const std::vector<Built> &built, int arch) {
        std::string source = cuda_prelude, image;
        for (const Built &b : built)
            for (int f = 0; f < b.cuda->functions.len; f++)
                if (b.cuda->functions.data[f].min_arch <= arch) source += b.cuda->functions.data[f].source;
        amp_nvrtc_job job = {};
        job.source = source.c_str();
        job.name = "conformance.cu";
        job.arch = arch;
        job.cubin = AsCubins();
        CompileQuickly(Nvrtc(), &job);
        amp_nvrtc_result result = {};
        amp_error err = {};
        if (amp_nvrtc_compile(Nvrtc(), &job, &result, &err)) ADD_FAILURE() << err.message << "\n" << source;
        else if (job.cubin) image.assign(result.cubin, result.cubin_size);
        else image = result.ptx;
        amp_nvrtc_result_free(Nvrtc(), &result);
        return image;
    }

    void Check(const std::vector<Built> &built, const std::vector<int64_t> &batches, int arch) {
        SCOPED_TRACE("sm_" + std::to_string(arch));
        LoadedPtx loaded(Image(built, arch), arch);
        if (!loaded.loaded()) return;
        for (const Built &b : built) {
            SCOPED_TRACE(b.what);
            for (int p = 0; p < b.cuda->programs.len; p++) {
                if (!Runs(b, b.cuda->programs.data[p], arch)) continue;
                for (size_t i = 0; i < batches.size(); i++)
                    CheckFunction(loaded, b, b.cuda->programs.data[p], batches[i], static_cast<unsigned>(i));
            }
        }
    }

    // Some products need more than an architecture has.
    static bool Runs(const Built &b, const CudaProgram &program, int arch) {
        for (int i = 0; i < program.kernels.len; i++)
            if (b.cuda->functions.data[program.kernels.data[i].forms.data[0].function].min_arch > arch) return false;
        return true;
    }

    // Each of |cases| at |n| samples, on one architecture by its text.
    void CheckLarge(const std::vector<LowerCase> &cases, int64_t n) {
        int index = 0;
        for (const LowerCase &c : cases) {
            Built b;
            Module *m = ReadFunc("simplify", c.body);
            if (!m || !Build(m, c.body, "l" + std::to_string(index++) + "_", &b)) continue;
            for (int arch : CudaArchs(b.what)) Check({b}, {n}, arch);
        }
    }

    // A case without its sizes and numbers: the ops, their types and their attributes.
    static std::string KindOf(const std::string &body) {
        std::string kind;
        bool in_shape = false, in_number = false;
        for (char c : body) {
            in_shape = (in_shape || c == '[') && c != ']';
            in_number = isdigit(c) && (in_number || kind.empty() || !isalnum(kind.back()));
            if (!in_shape && !in_number) kind += c;
        }
        return kind;
    }

    // Of many cases that are alike one in |every|, by its text, or of each kind the first and one in |every|; all in
    // long tests and on a device.
    void CheckCases(const std::vector<LowerCase> &cases, unsigned every = 1, bool of_each_kind = false) {
        std::map<int, std::vector<Built>> built; // by architecture
        std::map<std::string, unsigned> of_kind;
        int index = 0;
        for (const LowerCase &c : cases) {
            const unsigned number = of_each_kind ? of_kind[KindOf(c.body)]++ : SumOf(c.body);
            if (number % every && !TakesLong()) continue;
            Built b;
            Module *m = ReadFunc("simplify", c.body);
            if (!m || !Build(m, c.body, "c" + std::to_string(index++) + "_", &b)) continue;
            for (int arch : CudaArchs(b.what)) {
                built[arch].push_back(b);
                if (built[arch].size() < 50) continue;
                Check(built[arch], {5, 1, 33}, arch);
                built[arch].clear();
            }
        }
        for (const auto &[arch, rest] : built)
            if (!rest.empty()) Check(rest, {5, 1, 33}, arch);
    }

    // Norms without fusion and steps of every precision: full/cuda.sh.
    static bool TakesLong() { return getenv("AMP_CUDA_ARCHS") || TestDriver::Asked(); }

    void TearDown() override {
        std::set<std::string> once(missing_.begin(), missing_.end());
        for (const std::string &text : once) std::printf("no CUDA code: %s\n", text.c_str());
    }

    bool no_fuse_ = false;
    std::string precision_;
    std::vector<std::string> missing_;
};

// Images and attention have tests of their kernels, too: tests/codegen/cuda.
TEST_F(CudaOpsTest, Elementwise) { CheckCases(ElementwiseCases()); }
TEST_F(CudaOpsTest, Products) { CheckCases(ProductCases()); }
TEST_F(CudaOpsTest, Images) { CheckCases(ImageCases(), 2); }
TEST_F(CudaOpsTest, Attention) { CheckCases(AttentionCases(), 2); }
TEST_F(CudaOpsTest, Norms) { CheckCases(NormCases(), 4, true); }
TEST_F(CudaOpsTest, Moves) { CheckCases(MoveCases()); }
TEST_F(CudaOpsTest, Reductions) { CheckCases(ReductionCases(), 12, true); }
TEST_F(CudaOpsTest, Lines) { CheckCases(LineCases()); }
TEST_F(CudaOpsTest, Losses) { CheckCases(LossCases()); }

// Rows that registers do not hold; of a vocabulary; past what shared memory of an sm_80 has.
TEST_F(CudaOpsTest, LongRows) {
    std::vector<LowerCase> cases;
    for (const char *cols : {"26001", "50257"}) {
        const std::string x = std::string("f32[N, ") + cols + "]";
        cases.push_back(OneOp(OP_softmax, {x}, "softmax(%x; dim = 1)", x));
        cases.push_back(OneOp(OP_log_softmax, {x}, "log_softmax(%x; dim = 1)", x));
        cases.push_back(OneOp(OP_softmax_grad, {x, x}, "softmax_grad(%x, %y; dim = 1)", x));
        cases.push_back(OneOp(OP_log_softmax_grad, {x, x}, "log_softmax_grad(%x, %y; dim = 1)", x));
    }
    CheckLarge(cases, 3);
}

// The interpreter has another op than the kernel.
TEST_F(CudaOpsTest, PlantedOpIsFound) {
    Built b;
    const char body[] = "input %x : f32[N, 4]\n%r = exp(%x) : f32[N, 4]\nresult r = %r\n";
    ASSERT_TRUE(Build(ReadFunc("simplify", body), "exp", "p_", &b));
    ASSERT_EQ(ir_op_at(b.module->funcs.data[0], 0)->code, OP_exp);
    ir_op_at(b.module->funcs.data[0], 0)->code = OP_neg;
    ExpectFound("another op", "r[0]: ", [&] { Check({b}, {5}, CudaArchs(b.what)[0]); });
}

// Norms take a kernel for each op, which takes long: full/cuda.sh.
TEST_F(CudaOpsTest, WithoutFusion) {
    no_fuse_ = true;
    if (TakesLong()) CheckCases(NormCases());
    CheckCases(LossCases(), 3);
}

// Whole training steps.
class CudaStepsTest : public CudaOpsTest,
                      public ::testing::WithParamInterface<std::tuple<const char *, const char *>> {};

TEST_P(CudaStepsTest, StepOfASmallModel) {
    const std::string file = std::string(std::get<0>(GetParam())) + ".ir";
    Built b;
    precision_ = std::get<1>(GetParam());
    if (file != "mlp.ir" && !TakesLong() && (precision_ == "tf32" || precision_ == "bf16"))
        return; // as mlp.ir has them
    Module *m = Read(File("tests/passes/" + file));
    if (!m || !Build(m, file + " " + precision_, "m_", &b)) return;
    for (int arch : CudaArchs(b.what)) Check({b}, {5}, arch);
}

INSTANTIATE_TEST_SUITE_P(Models, CudaStepsTest,
                         ::testing::Combine(::testing::Values("mlp", "images", "tokens"),
                                            ::testing::Values("fp32", "tf32", "bf16", "fp16")),
                         [](const auto &info) {
                             return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
                         });

} // namespace
