#include "tests/codegen/cuda/cuda_model.h"

void CudaModelTest::SetUpTestSuite() {
    amp_error err = {};
    if (!nvrtc_ && amp_nvrtc_open(nullptr, &nvrtc_, &err)) why_ = err.message;
}

void CudaModelTest::SetUp() {
    if (!nvrtc_) GTEST_SKIP() << why_;
}

Module *CudaModelTest::PlannedForCuda(const std::string &text, bool no_fuse) {
    Module *m = Read(text);
    if (!m) return nullptr;
    PassOptions options = {};
    options.without[STAGE_FUSE] = no_fuse;
    options.target = &target_cuda;
    options.describe = codegen_cuda_describe;
    Diags diags;
    diags_init(&diags, &arena_);
    amp_error err = {};
    const Stage last = STAGE_LAST;
    EXPECT_EQ(passes_run(m, &diags, &options, last, nullptr, nullptr, &err), AMP_OK) << err.message;
    EXPECT_EQ(m->stage, last);
    for (int i = 0; m->stage == last && i < m->funcs.len; i++)
        EXPECT_EQ(nullptr, parts_check(m->funcs.data[i])) << parts_check(m->funcs.data[i]);
    return m;
}

const CudaModule *CudaModelTest::Emit(const Module *m) {
    const CudaModule *cuda = nullptr;
    amp_error err = {};
    EXPECT_EQ(codegen_cuda(m, &cuda, &err), AMP_OK) << err.message << "\n" << Print(m);
    return cuda;
}

const CudaModule *CudaModelTest::EmitAlone(const Module *m) {
    using Launches = decltype(Func::launches);
    std::vector<Launches> shared;
    for (int i = 0; i < m->funcs.len; i++) {
        Launches &of = m->funcs.data[i]->launches, batches = {};
        for (int l = 0; l < of.len; l++)
            for (int p = 0; p < of.data[l].parts.len && !m->funcs.data[i]->joined; p++)
                AddBatch(of.data[l].parts.data[p], &batches);
        shared.push_back(of);
        of = batches;
    }
    const CudaModule *cuda = Emit(m);
    for (int i = 0; i < m->funcs.len; i++) m->funcs.data[i]->launches = shared[static_cast<size_t>(i)];
    return cuda;
}

void CudaModelTest::AddBatch(const LaunchPart &part, decltype(Func::launches) *to) {
    Launch batch = {};
    if (part.form != PART_BATCH || part.kernels.len == 1) return;
    batch.first = part.kernels.data[0];
    batch.count = part.kernels.len;
    vec_push(&arena_, &batch.parts, part);
    batch.parts.data[0].stage = 0;
    vec_push(&arena_, to, batch);
}

std::string CudaModelTest::Source(const CudaModule *cuda) {
    struct Text t;
    text_init(&t, &arena_);
    codegen_cuda_text(cuda, &t);
    return text_str(&t);
}

std::string CudaModelTest::Functions(const CudaModule *cuda) {
    std::string all;
    for (int i = 0; i < cuda->functions.len; i++) all += std::string(cuda->functions.data[i].source) + "\n";
    return all;
}

std::string CudaModelTest::Ptx(const CudaModule *cuda, int arch, bool cubin) {
    const std::string source = Source(cuda), key = source + std::to_string(arch) + (quick_ ? " quick" : "");
    static std::map<std::string, std::string> compiled; // cases compile what they have looked at before they run it
    if (const auto found = compiled.find(key); found != compiled.end() && !cubin) return found->second;
    amp_nvrtc_job job = {};
    job.source = source.c_str();
    job.name = "model.cu";
    job.arch = arch;
    job.cubin = cubin;
    if (quick_) CompileQuickly(nvrtc_, &job);
    amp_nvrtc_result result = {};
    amp_error err = {};
    if (amp_nvrtc_compile(nvrtc_, &job, &result, &err)) {
        ADD_FAILURE() << "sm_" << arch << ": " << err.message << "\n" << Functions(cuda);
        return "";
    }
    const std::string log(result.log ? result.log : "", result.log_size), ptx(result.ptx);
    EXPECT_EQ(log.find("warning"), std::string::npos) << log << Functions(cuda);
    for (int i = 0; i < result.use_count; i++) {
        const amp_nvrtc_kernel_use &u = result.uses[i];
        EXPECT_EQ(u.spill_stores + u.spill_loads, 0) << "sm_" << arch << " " << u.name << "\n" << Functions(cuda);
    }
    EXPECT_EQ(result.use_count, cubin ? cuda->functions.len : 0);
    amp_nvrtc_result_free(nvrtc_, &result);
    if (!cubin) compiled[key] = ptx;
    return ptx;
}

void CudaModelTest::CompileForAll(const std::string &text) {
    for (bool no_fuse : {false, true}) {
        if (no_fuse && !UnfusedToo(text)) break;
        Module *m = PlannedForCuda(text, no_fuse);
        ASSERT_NE(m, nullptr);
        const CudaModule *cuda = Emit(m);
        ASSERT_NE(cuda, nullptr);
        for (int arch : ArchsOf(text, {75, 80, 90, 120})) Ptx(cuda, arch);
        if (HasFailure()) return;
    }
}

void CudaModelTest::Check(const std::string &text, const std::vector<int64_t> &batches, double tolerance) {
    (void)batches, (void)tolerance;
    for (bool no_fuse : {false, true}) {
        if (no_fuse && !UnfusedToo(text)) break;
        Module *m = PlannedForCuda(text, no_fuse);
        ASSERT_NE(m, nullptr);
        const CudaModule *cuda = nullptr;
        amp_error err = {};
        if (codegen_cuda(m, &cuda, &err)) {
            const std::string message = err.message;
            if (message.find(" is not supported") != std::string::npos) GTEST_SKIP() << message;
            FAIL() << message;
        }
        for (int arch : ArchsOf(text, {75, 90})) Ptx(cuda, arch);
        if (HasFailure()) return;
    }
}
