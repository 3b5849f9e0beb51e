// The stand-in for cuBLASLt: its algorithms, graphs, scripted times, and what it says of wrong use.  Numbers of all
// kinds of products: tests/cuda_sdk/cublaslt_conformance_test.cc.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/rounding.h"
#include "fakecuda/driver/stand_in.h"
#include "tests/cuda_sdk/lt_product.h"

namespace {

class CublasLt : public StandIn {
  protected:
    void SetUp() override {
        StandIn::SetUp();
        unsetenv("FAKECUDA_CUBLASLT");
        void *library = dlopen("fakecuda/cublaslt/libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
        ASSERT_TRUE(library) << dlerror();
#define FIND(name, symbol, parameters) Find(library, #symbol, &lt.name);
        CUBLASLT_CALLS(FIND)
#undef FIND
    }
    template <class F> void Find(void *in, const char *symbol, F *out) {
        void *found = dlsym(in, symbol);
        ASSERT_TRUE(found) << symbol;
        memcpy(out, &found, sizeof found);
    }
    // Operands of the default shape, B turned, as |s| has them, and a stream.
    void Begin(std::vector<std::pair<std::string, std::string>> environment = {}) {
        start(environment);
        OK(lt.create(&handle));
        s = stream();
        shape.b_turned = true;
        std::mt19937 random(7);
        std::normal_distribution<float> normal;
        std::vector<uint16_t> host(static_cast<size_t>(shape.size_a() + shape.size_b()));
        for (uint16_t &x : host) x = amp_f32_to_f16(normal(random));
        a = alloc(host.size() * 2);
        b = a + static_cast<uint64_t>(shape.size_a()) * 2;
        d = alloc(kBytes);
        workspace = alloc(kWorkspace);
        OK(cu.copy_in(a, host.data(), host.size() * 2, s));
        OK(cu.stream_sync(s));
    }
    std::vector<uint32_t> Result(const CublasLtFound &f) {
        LtProduct product(lt, shape);
        EXPECT_EQ(LT_OK, product.Run(handle, f.algo, a, b, d, s, 0, workspace, kWorkspace));
        return read(d, kBytes / 4, s);
    }
    std::vector<CublasLtFound> Ask() {
        std::vector<CublasLtFound> found;
        LtProduct product(lt, shape);
        EXPECT_EQ(LT_OK, product.Ask(handle, &found, kWorkspace));
        return found;
    }
    static constexpr size_t kBytes = 16 * 8 * 4, kWorkspace = 1 << 20;
    CublasLtApi lt = {};
    CublasLtHandle handle = nullptr;
    CuStream s = nullptr;
    CuPointer a = 0, b = 0, d = 0, workspace = 0;
    LtShape shape;
};

// D[16][8] = A[16][32] B[8][32]^T by two mma.m16n8k16 in ascending order, one warp.
const char *const kMma = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry product(.param .u64 a, .param .u64 b, .param .u64 d)
{
    .reg .b32 %r<12>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<12>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [d];
    mov.u32 %r1, %tid.x;
    shr.u32 %r2, %r1, 2;
    and.b32 %r3, %r1, 3;
    shl.b32 %r4, %r2, 6;
    shl.b32 %r5, %r3, 2;
    add.u32 %r4, %r4, %r5;
    cvt.u64.u32 %rd4, %r4;
    add.u64 %rd1, %rd1, %rd4;
    add.u64 %rd2, %rd2, %rd4;
    mov.f32 %f0, 0f00000000;
    mov.f32 %f1, 0f00000000;
    mov.f32 %f2, 0f00000000;
    mov.f32 %f3, 0f00000000;
    ld.global.u32 %r6, [%rd1];
    ld.global.u32 %r7, [%rd1+512];
    ld.global.u32 %r8, [%rd1+16];
    ld.global.u32 %r9, [%rd1+528];
    ld.global.u32 %r10, [%rd2];
    ld.global.u32 %r11, [%rd2+16];
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
        {%f0,%f1,%f2,%f3}, {%r6,%r7,%r8,%r9}, {%r10,%r11}, {%f0,%f1,%f2,%f3};
    ld.global.u32 %r6, [%rd1+32];
    ld.global.u32 %r7, [%rd1+544];
    ld.global.u32 %r8, [%rd1+48];
    ld.global.u32 %r9, [%rd1+560];
    ld.global.u32 %r10, [%rd2+32];
    ld.global.u32 %r11, [%rd2+48];
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
        {%f0,%f1,%f2,%f3}, {%r6,%r7,%r8,%r9}, {%r10,%r11}, {%f0,%f1,%f2,%f3};
    shl.b32 %r2, %r2, 5;
    shl.b32 %r3, %r3, 3;
    add.u32 %r2, %r2, %r3;
    cvt.u64.u32 %rd4, %r2;
    add.u64 %rd3, %rd3, %rd4;
    st.global.f32 [%rd3], %f0;
    st.global.f32 [%rd3+4], %f1;
    st.global.f32 [%rd3+256], %f2;
    st.global.f32 [%rd3+260], %f3;
    ret;
}
)";

TEST_F(CublasLt, OnlyTheOrderOfKernelsHasTheirBits) {
    for (const char *arch : {"80", "90"}) {
        Begin({{"ARCH", arch}});
        CuFunction kernel = function_of(module_of(kMma), "product");
        OK(launch(kernel, 32, s, {&a, &b, &d}));
        const std::vector<uint32_t> ours = read(d, kBytes / 4, s);
        const std::vector<CublasLtFound> found = Ask();
        ASSERT_EQ(found.size(), 5u);
        const int32_t wanted_split[] = {1, 2, 1, 1, 1};
        for (int32_t i = 0; i < 5; i++) {
            int32_t id = -1, split = 0;
            uint32_t reduction = 9;
            OK(lt.algo_config(&found[i].algo, LT_ALGO_ID, &id, sizeof id, nullptr));
            OK(lt.algo_config(&found[i].algo, LT_ALGO_SPLIT_K, &split, sizeof split, nullptr));
            OK(lt.algo_config(&found[i].algo, LT_ALGO_REDUCTION, &reduction, sizeof reduction, nullptr));
            EXPECT_EQ(id, i);
            EXPECT_EQ(split, wanted_split[i]);
            EXPECT_EQ(reduction, i == 1 ? 2u : 0u);
            if (i == 4) break;
            EXPECT_EQ(Result(found[i]) == ours, i == 0 || i == 3) << "algorithm " << i;
        }
        LtProduct product(lt, shape);
        EXPECT_EQ(LT_EXECUTION_FAILED, product.Run(handle, found[4].algo, a, b, d, s));
        std::vector<uint32_t> wrong = Result(found[2]);
        wrong[0] = ours[0];
        EXPECT_EQ(wrong, ours) << "one element of it is wrong";
        EXPECT_TRUE(report().lines("misuse").empty());
    }
}

TEST_F(CublasLt, WhatTheHeuristicLeavesOut) {
    Begin();
    std::vector<CublasLtFound> found;
    LtProduct product(lt, shape);
    OK(product.Ask(handle, &found)); // without a workspace
    ASSERT_EQ(found.size(), 5u);
    for (size_t i = 0; i < 5; i++) EXPECT_EQ(found[i].state, i == 1 || i == 3 ? LT_NOT_SUPPORTED : LT_OK);
    product.SetPreference(LT_PREFER_REDUCTION, uint32_t{0});
    OK(product.Ask(handle, &found, kWorkspace));
    ASSERT_EQ(found.size(), 4u);
    for (const CublasLtFound &f : found) EXPECT_EQ(f.state, LT_OK);
    EXPECT_EQ(found[2].workspace, kWorkspace);
    product.SetDesc(LT_DESC_EPILOGUE, uint32_t{32}); // GELU
    EXPECT_EQ(LT_NOT_SUPPORTED, product.Ask(handle, &found));
    EXPECT_TRUE(found.empty());
    EXPECT_TRUE(report().lines("misuse").empty());
}

TEST_F(CublasLt, AGraphRunsItAtEachLaunch) {
    Begin();
    const std::vector<CublasLtFound> found = Ask();
    const std::vector<uint32_t> wanted = Result(found[0]);
    LtProduct product(lt, shape);
    CuGraph graph;
    CuGraphExec exec;
    OK(cu.capture_begin(s, 0));
    OK(product.Run(handle, found[0].algo, a, b, d, s, 1));
    OK(cu.capture_end(s, &graph));
    size_t nodes = 0;
    OK(cu.graph_node_count(graph, nullptr, &nodes));
    EXPECT_EQ(nodes, 1u);
    OK(cu.graph_instantiate(&exec, graph, 0));
    EXPECT_EQ(read(d, kBytes / 4, s), wanted) << "a capture runs nothing";
    OK(cu.fill8(d, 0, kBytes, s));
    for (int i = 0; i < 3; i++) OK(cu.graph_launch(exec, s)); // each adds the product
    const std::vector<uint32_t> got = read(d, kBytes / 4, s);
    for (size_t i = 0; i < got.size(); i++) {
        float one, three;
        memcpy(&one, &wanted[i], 4), memcpy(&three, &got[i], 4);
        EXPECT_EQ(three, one + one + one);
    }
    OK(cu.graph_exec_destroy(exec));
    OK(cu.graph_destroy(graph));
}

TEST_F(CublasLt, TimesAreThoseOfTheScript) {
    Begin({{"TIMES", "cublasLt0=40,product=70"}});
    CuFunction kernel = function_of(module_of(kMma), "product");
    const std::vector<CublasLtFound> found = Ask();
    LtProduct product(lt, shape);
    CuEvent events[] = {event(0), event(0), event(0)};
    float apart = 0;
    OK(cu.event_record(events[0], s));
    OK(product.Run(handle, found[0].algo, a, b, d, s));
    OK(cu.event_record(events[1], s));
    OK(launch(kernel, 32, s, {&a, &b, &d}));
    OK(cu.event_record(events[2], s));
    OK(cu.stream_sync(s));
    OK(cu.event_elapsed(&apart, events[0], events[1]));
    EXPECT_NEAR(apart, 0.040, 0.002);
    OK(cu.event_elapsed(&apart, events[1], events[2]));
    EXPECT_NEAR(apart, 0.070, 0.005);
    for (const char *bad : {"product", "product=", "product=1;", "=3", "product=1,,"}) {
        begin({{"TIMES", bad}});
        EXPECT_NE(CU_SUCCESS, cu.init(0)) << bad;
    }
}

// FAKECUDA_CUBLASLT: in which element of a run, counted from the first, an algorithm is wrong; -1: in none.
TEST_F(CublasLt, ResultsAreWrongOnRequest) {
    Begin();
    const std::vector<CublasLtFound> found = Ask();
    const std::vector<uint32_t> right = Result(found[0]);
    const struct {
        const char *fault;
        std::vector<int> at; // of each run
    } rows[] = {
        {"", {-1}},
        {"value:0:5", {5 * 49 % 128, 5 * 49 % 128}}, // 2654435761 % 128 is 49
        {"value:3:5", {-1}},
        {"ulp:0:9", {9 * 49 % 128}},
        {"later:0:2", {-1, 2 * 49 % 128, 2 * 49 % 128}},
        {"rows:0:15", {15 * 8}},
        {"rows:0:16", {-1}},
        {"tie:0:0", {-1}}, // results in f32 have none
    };
    for (const auto &row : rows) {
        setenv("FAKECUDA_CUBLASLT", row.fault, 1);
        for (int at : row.at) {
            std::vector<uint32_t> got = Result(found[0]);
            if (at >= 0) {
                EXPECT_NE(got[static_cast<size_t>(at)], right[static_cast<size_t>(at)]) << row.fault;
                got[static_cast<size_t>(at)] = right[static_cast<size_t>(at)];
            }
            EXPECT_EQ(got, right) << row.fault;
        }
    }
    shape.out = LT_F16; // a sum of integers and halves: 2049 is between 2048 and 2050
    std::vector<uint16_t> host(static_cast<size_t>(shape.size_a() + shape.size_b()), 0);
    for (int64_t row = 0; row < shape.m; row++) host[static_cast<size_t>(row * shape.k)] = amp_f32_to_f16(2048);
    for (int64_t row = 0; row < shape.m; row++) host[static_cast<size_t>(row * shape.k + 1)] = amp_f32_to_f16(row % 3);
    for (int64_t i = 0; i < shape.n * shape.k; i++) host[static_cast<size_t>(shape.size_a() + i)] = amp_f32_to_f16(1);
    OK(cu.copy_in(a, host.data(), host.size() * 2, s));
    for (const char *fault : {"", "tie:0:0"}) {
        setenv("FAKECUDA_CUBLASLT", fault, 1);
        const std::vector<uint32_t> got = Result(found[0]);
        for (size_t row = 0; row < 16; row++) {
            const uint32_t last = row % 3 == 2 || (row % 3 == 1 && *fault); // 2050, or a tie that is rounded up
            EXPECT_EQ(got[row * 4] & 0xFFFF, amp_f32_to_f16(2048) + last) << fault << row;
        }
    }
    EXPECT_TRUE(report().lines("misuse").empty());
}

TEST_F(CublasLt, CallsFailOnRequest) {
    Begin();
    int number = 0;
    setenv("FAKECUDA_CUBLASLT", "fail:cublasLtGetProperty:2,version:12040", 1);
    OK(lt.get_property(LT_MAJOR, &number));
    EXPECT_EQ(number, 12);
    EXPECT_EQ(LT_INTERNAL_ERROR, lt.get_property(LT_MINOR, &number));
    OK(lt.get_property(LT_MINOR, &number));
    EXPECT_EQ(number, 4);
    setenv("FAKECUDA_CUBLASLT", "fail:cublasLtMatrixLayoutDestroy:1", 1);
    CublasLtLayout layout;
    OK(lt.layout_create(&layout, LT_F16, 8, 8, 8));
    EXPECT_EQ(LT_INTERNAL_ERROR, lt.layout_destroy(layout)) << "it is destroyed all the same";
    EXPECT_TRUE(report().lines("misuse").empty());
    for (const char *bad : {"fail:cublasLtNone:1", "value:5:1", "wrong:0:1", "later:0"}) {
        setenv("FAKECUDA_CUBLASLT", bad, 1);
        OK(lt.get_property(LT_MAJOR, &number));
        EXPECT_TRUE(report().mentions("misuse", std::string("FAKECUDA_CUBLASLT: ") + bad)) << bad;
    }
}

// Each is the call's error and a line of the report.
TEST_F(CublasLt, WrongUseIsNamed) {
    Begin();
    const std::vector<CublasLtFound> found = Ask();
    LtProduct product(lt, shape);
    std::vector<CublasLtFound> none;
    auto run = [&](const CublasLtAlgo &algo, uint64_t at, size_t bytes = 0) {
        return product.Run(handle, algo, a, b, at, s, 0, workspace, bytes);
    };
    CuGraph graph;
    CuContext popped;
    LtShape narrow = shape, crossed = shape, empty = shape, apart = shape;
    narrow.gap = -1;
    empty.batch = 0;
    crossed.batch = apart.batch = 2;
    apart.k = 12; // 24 bytes from one row of 12 to the next
    apart.beside = true;
    auto stride_of_d = [&](LtProduct *p, int64_t stride) {
        EXPECT_EQ(LT_OK, lt.layout_set(p->d, LT_LAYOUT_STRIDE, &stride, sizeof stride));
        return p->Ask(handle, &none);
    };
    const struct {
        const char *text;
        CublasLtResult result;
        std::function<CublasLtResult()> wrong;
    } cases[] = {
        {"cublasLtMatmul: C is not aligned to the 16 bytes that the heuristic was told", LT_INVALID_VALUE,
         [&] { return run(found[0].algo, d + 8); }},
        {"cublasLtMatmul: C is NULL", LT_INVALID_VALUE, [&] { return run(found[0].algo, 0); }},
        {"cublasLtMatmul: an algorithm that no heuristic gave", LT_INVALID_VALUE, [&] { return run({}, d); }},
        {"cublasLtMatmul: the algorithm needs a workspace of 1048576 bytes, and 4096 are given", LT_INVALID_VALUE,
         [&] { return run(found[3].algo, d, 4096); }},
        {"cublasLtMatmulAlgoGetHeuristic: the leading dimension 31 of A is below its 32 rows", LT_INVALID_VALUE,
         [&] { return LtProduct(lt, narrow).Ask(handle, &none); }},
        {"cublasLtMatmulAlgoGetHeuristic: the batch of A has 0 matrices", LT_INVALID_VALUE,
         [&] { return LtProduct(lt, empty).Ask(handle, &none); }},
        {"cublasLtMatmulAlgoGetHeuristic: at a stride of 120 the matrices of D overlap", LT_INVALID_VALUE,
         [&] {
             LtProduct two(lt, crossed);
             EXPECT_EQ(LT_OK, stride_of_d(&two, 128));
             return stride_of_d(&two, 120);
         }},
        {"cublasLtMatmul: A's stride of 24 bytes is not aligned to the 16 that the heuristic was told",
         LT_INVALID_VALUE,
         [&] {
             LtProduct two(lt, apart);
             EXPECT_EQ(LT_OK, two.Ask(handle, &none));
             return two.Run(handle, none[0].algo, a, b, d, s);
         }},
        {"cublasLtMatmulAlgoGetHeuristic: the epilogue adds a bias, and its pointer is NULL", LT_INVALID_VALUE,
         [&] {
             LtProduct biased(lt, shape, this);
             biased.SetDesc(LT_DESC_BIAS, static_cast<void *>(nullptr));
             return biased.Ask(handle, &none);
         }},
        {"cublasLtMatmulAlgoGetHeuristic: a stream of the context is being captured", LT_INTERNAL_ERROR,
         [&] {
             EXPECT_EQ(CU_SUCCESS, cu.capture_begin(s, 2));
             const CublasLtResult result = product.Ask(handle, &none);
             EXPECT_EQ(CU_SUCCESS, cu.capture_end(s, &graph));
             return result;
         }},
        {"cublasLtMatmul: the current context is not the one that the handle was made in", LT_INVALID_VALUE,
         [&] {
             EXPECT_EQ(CU_SUCCESS, cu.context_pop(&popped));
             const CublasLtResult result = run(found[0].algo, d);
             EXPECT_EQ(CU_SUCCESS, cu.context_push(popped));
             return result;
         }},
        {"cublasLtMatmulDescSetAttribute: attribute 3 has 4 bytes, and 8 are given", LT_INVALID_VALUE,
         [&] { return lt.desc_set(product.desc, LT_DESC_TRANS_A, &found[0].workspace, 8); }},
        {"cublasLtDestroy: no handle", LT_INVALID_VALUE,
         [&] { return lt.destroy(reinterpret_cast<CublasLtHandle>(this)); }},
        {"cublasLtMatmul: a destroyed handle", LT_INVALID_VALUE,
         [&] {
             EXPECT_EQ(LT_OK, lt.destroy(handle));
             return run(found[0].algo, d);
         }},
    };
    for (const auto &c : cases) {
        EXPECT_FALSE(report().mentions("misuse", c.text)) << c.text;
        EXPECT_EQ(c.result, c.wrong()) << c.text;
        EXPECT_TRUE(report().mentions("misuse", c.text)) << c.text;
    }
}

} // namespace
