// inspect_test.cc: amp/inspect.h on the model written by hand; of ranks: tests/e2e/ranks_test.cc and shares_test.cc; of
// devices: tests/runtime/device/cuda/inspect_cuda_test.cc.
#include <algorithm>
#include <cstdlib>

#include "amp/inspect.h"
#include "tests/runtime/tiny.h"

namespace {

TEST(Tables, AreTheModels) {
    Tiny t(TinyOptions(4));
    amp_tables tables;
    for (const char *device : {"cpu", static_cast<const char *>(nullptr)}) {
        ASSERT_EQ(amp_model_get_tables(t.model, device, &tables, &t.err), AMP_OK) << t.err.message;
        EXPECT_EQ(tables.program_count, static_cast<int32_t>(amp_model_query()->programs.count));
        EXPECT_EQ(tables.states, amp_model_query()->states.data);
        EXPECT_STREQ(tables.train_step->name, "train_step");
        EXPECT_STREQ(tables.infer->name, "infer");
        EXPECT_EQ(tables.apply_step, nullptr);
        EXPECT_NE(tables.infer->kernels, nullptr);
        EXPECT_EQ(tables.infer->cuda_kernels, nullptr);
        EXPECT_EQ(tables.batch_multiple, 1);
        EXPECT_EQ(tables.batch_most, 1 << 24);
    }
    EXPECT_EQ(amp_model_get_tables(t.model, "cuda", &tables, &t.err), AMP_UNSUPPORTED);
    EXPECT_NE(std::string(t.err.message).find("the model has no CUDA code"), std::string::npos) << t.err.message;
    EXPECT_EQ(tables.programs, nullptr);
    EXPECT_EQ(amp_model_get_tables(t.model, "tpu", &tables, &t.err), AMP_NOT_FOUND);
    EXPECT_STREQ(t.err.message, "device tpu: this build has cpu, cuda and null");
}

// What is alive at once fits in the temporaries, and these are no more than all together.
TEST(ProgramPlan, HasSizesAndTheirBlock) {
    Tiny t(TinyOptions(4));
    amp_tables tables;
    ASSERT_EQ(amp_model_get_tables(t.model, "cpu", &tables, &t.err), AMP_OK);
    const amp_program *p = tables.train_step;
    std::vector<uint64_t> bytes(static_cast<size_t>(p->buffer_count)), sizes(bytes.size());
    uint64_t temporaries = 0, most = 0, all = 0;
    ASSERT_EQ(amp_program_plan(p, {100, 0}, &temporaries, bytes.data(), &t.err), AMP_OK) << t.err.message;
    ASSERT_EQ(amp_program_plan(p, {100, 0}, nullptr, sizes.data(), &t.err), AMP_OK) << t.err.message;
    EXPECT_EQ(bytes, sizes);
    for (int32_t k = 0; k < p->kernel_count; k++) {
        uint64_t alive = 0;
        for (int32_t i = 0; i < p->buffer_count; i++) {
            const amp_model_buffer &b = p->buffers[i];
            if (b.kind == AMP_BUFFER_TEMP && b.first_kernel <= k && k <= b.last_kernel) alive += bytes[i];
        }
        most = std::max(most, alive);
    }
    for (int32_t i = 0; i < p->buffer_count; i++) {
        EXPECT_EQ(bytes[i] % 64, 0u);
        if (p->buffers[i].kind == AMP_BUFFER_TEMP) all += bytes[i];
        if (p->buffers[i].kind != AMP_BUFFER_INPUT || p->buffers[i].index) continue;
        EXPECT_GE(bytes[i], 100 * TINY_FEATURES * sizeof(float));
    }
    EXPECT_GE(temporaries, most);
    EXPECT_LE(temporaries, all);
    EXPECT_GT(most, 0u);
}

TEST(ProgramPlan, TakesSizesOfCallsAlone) {
    Tiny t(TinyOptions(4));
    amp_tables tables;
    uint64_t temporaries = 7;
    ASSERT_EQ(amp_model_get_tables(t.model, "cpu", &tables, &t.err), AMP_OK);
    for (int64_t n : {int64_t{0}, int64_t{-1}, tables.batch_most + 1}) {
        EXPECT_EQ(amp_program_plan(tables.infer, {n, 0}, &temporaries, nullptr, &t.err), AMP_INVALID_ARGUMENT);
        EXPECT_EQ(t.err.message, "amp_program_plan: n is " + std::to_string(n) + ": must be from 1 to 16777216");
        EXPECT_EQ(temporaries, 0u);
    }
}

// A model that trains alone sends nothing, and a rank of it has all that it has alone.
TEST(RankMessages, OfAModelThatTrainsAlone) {
    Tiny t(TinyOptions(4));
    amp_rank_message message;
    amp_rank_state state;
    amp_memory_info of_rank, alone;
    const amp_session_options o = TinyOptions(4);
    EXPECT_EQ(amp_model_message_at(t.model, "cpu", 2, 0, &message, &t.err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(t.err.message, "tiny: its ranks send no message 0 in a step");
    EXPECT_EQ(amp_model_message_at(t.model, "cpu", 0, 0, &message, &t.err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(t.err.message, "0 ranks: there is at least one");
    ASSERT_EQ(amp_model_rank_state(t.model, "cpu", 0, 1, 2, &state, &t.err), AMP_OK) << t.err.message;
    EXPECT_EQ(state.held, state.bytes);
    EXPECT_EQ(amp_model_rank_state(t.model, "cpu", 0, 2, 2, &state, &t.err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(t.err.message, "there is no rank 2 of 2");
    EXPECT_EQ(amp_model_rank_state(t.model, "cpu", 99, 0, 2, &state, &t.err), AMP_INVALID_ARGUMENT);
    ASSERT_EQ(amp_session_plan(t.model, nullptr, &o, &alone, &t.err), AMP_OK) << t.err.message;
    ASSERT_EQ(amp_session_plan_rank(t.model, &o, 1, 2, &of_rank, &t.err), AMP_OK) << t.err.message;
    EXPECT_EQ(of_rank.total, alone.total);
    EXPECT_EQ(amp_session_plan_rank(t.model, &o, 2, 2, &of_rank, &t.err), AMP_INVALID_ARGUMENT);
    amp_session_options on_cuda = o;
    on_cuda.device = "cuda";
    EXPECT_EQ(amp_session_plan_rank(t.model, &on_cuda, 0, 2, &of_rank, &t.err), AMP_UNSUPPORTED);
    EXPECT_STREQ(t.err.message, "device cuda: memory of a rank is planned for the device cpu alone");
}

TEST(CpuRates, AreMeasured) {
    amp_error err = {};
    amp_cpu_rates rates;
    amp_measure_options o = {};
    o.struct_size = sizeof o;
    o.isa = "portable";
    o.threads = 2;
    o.memory = 1;
    ASSERT_EQ(amp_cpu_measure(&o, &rates, &err), AMP_OK) << err.message;
    EXPECT_STREQ(rates.level, "portable");
    EXPECT_STREQ(rates.f32_by, "portable");
    EXPECT_STREQ(rates.bf16_by, "portable");
    EXPECT_EQ(rates.other_by, nullptr);
    EXPECT_EQ(rates.threads, 2);
    EXPECT_GE(rates.processors, 1);
    for (double rate : {rates.f32, rates.bf16, rates.bytes}) EXPECT_GT(rate, 1e6);
}

TEST(CpuRates, OfAnotherInstructionSet) {
    amp_error err = {};
    amp_cpu_rates rates;
    amp_measure_options o = {};
    o.struct_size = sizeof o;
    o.isa = "v9";
    EXPECT_EQ(amp_cpu_measure(&o, &rates, &err), AMP_NOT_FOUND);
    EXPECT_STREQ(err.message, "unknown isa v9; use portable, v3 or v4 (x86-64), or neon (AArch64)");
    EXPECT_EQ(rates.level, nullptr);
    EXPECT_GE(rates.processors, 1);
    o.isa = nullptr;
    o.threads = -1;
    EXPECT_EQ(amp_cpu_measure(&o, &rates, &err), AMP_INVALID_ARGUMENT);
    o.struct_size = 0;
    EXPECT_EQ(amp_cpu_measure(&o, &rates, &err), AMP_INVALID_ARGUMENT);
}

} // namespace
