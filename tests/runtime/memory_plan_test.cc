// Memory plans: nothing that lives together overlaps, and the peak is near what any plan must have.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/base/failing_allocator.h"
#include "tests/runtime/runtime_c.h"

namespace {

struct Program {
    std::vector<amp_model_buffer> buffers;
    amp_program program = {};

    // |units| of 128 bytes, live from |first| to |last|
    void Add(uint32_t kind, int64_t units, int first, int last) {
        amp_model_buffer b = {};
        b.name = "b";
        b.kind = kind;
        b.dtype = b.storage = AMP_DT_F32;
        b.first_kernel = first, b.last_kernel = last;
        b.rows = {1, 1, 0, 0};
        b.cols = {units * 32, 1, 0, 0};
        buffers.push_back(b);
    }
    const amp_program *Get() {
        program.name = "p";
        program.buffers = buffers.data();
        program.buffer_count = (int)buffers.size();
        return &program;
    }
};

size_t LowerBound(const Program &p, const amp_memory_plan &plan, int kernels) {
    size_t peak = 0;
    for (int k = 0; k < kernels; k++) {
        size_t live = 0;
        for (size_t i = 0; i < p.buffers.size(); i++)
            if (p.buffers[i].kind == AMP_BUFFER_TEMP && p.buffers[i].first_kernel <= k && k <= p.buffers[i].last_kernel)
                live += plan.bytes[i];
        peak = std::max(peak, live);
    }
    return peak;
}

void ExpectNoOverlap(const Program &p, const amp_memory_plan &plan, bool separate) {
    for (size_t i = 0; i < p.buffers.size(); i++) {
        const amp_model_buffer &a = p.buffers[i];
        if (a.kind != AMP_BUFFER_TEMP) continue;
        ASSERT_EQ(plan.offset[i] % 64, 0u);
        ASSERT_LE(plan.offset[i] + plan.bytes[i], plan.arena);
        for (size_t j = 0; j < i; j++) {
            const amp_model_buffer &b = p.buffers[j];
            bool together = separate || (a.first_kernel <= b.last_kernel && b.first_kernel <= a.last_kernel);
            if (b.kind != AMP_BUFFER_TEMP || !together) continue;
            ASSERT_TRUE(plan.offset[i] + plan.bytes[i] <= plan.offset[j] ||
                        plan.offset[j] + plan.bytes[j] <= plan.offset[i])
                << i << " and " << j;
        }
    }
}

amp_status Plan(amp_memory_plan *plan, const amp_program *program, int64_t capacity, bool separate,
                const amp_allocator *allocator, amp_error *err) {
    const amp_memory_plan_options options = {{{capacity, 0}, 0, 0}, separate, AMP_MEMORY_ALIGN, false};
    return amp_memory_plan_make(plan, program, &options, allocator, err);
}

unsigned Next(unsigned *state) { return (*state = *state * 1664525u + 1013904223u) >> 8; }

TEST(MemoryPlan, RandomProgramsNeverOverlap) {
    unsigned state = 1;
    double worst = 0;
    for (int round = 0; round < 300; round++) {
        Program p;
        int kernels = 1 + (int)(Next(&state) % 40);
        for (unsigned i = 0, count = 1 + Next(&state) % 60; i < count; i++) {
            int first = (int)(Next(&state) % (unsigned)kernels);
            int last = std::min(kernels - 1, first + (int)(Next(&state) % 8));
            p.Add(AMP_BUFFER_TEMP, 1 + Next(&state) % 50, first, last);
        }
        amp_allocator a = {};
        amp_memory_plan plan;
        amp_error err = {};
        ASSERT_EQ(Plan(&plan, p.Get(), 1, false, &a, &err), AMP_OK) << err.message;
        ExpectNoOverlap(p, plan, false);
        size_t bound = LowerBound(p, plan, kernels);
        ASSERT_GE(plan.arena, bound);
        worst = std::max(worst, (double)plan.arena / (double)bound);
        amp_memory_plan_free(&plan, &a);
        ASSERT_EQ(Plan(&plan, p.Get(), 1, true, &a, &err), AMP_OK) << err.message;
        ExpectNoOverlap(p, plan, true);
        amp_memory_plan_free(&plan, &a);
    }
    EXPECT_LT(worst, 1.35); // greedy by size is near the bound
}

TEST(MemoryPlan, AChainOfEqualLayersTakesTwo) {
    Program p;
    for (int i = 0; i < 10; i++) p.Add(AMP_BUFFER_TEMP, 8, i, i + 1);
    amp_allocator a = {};
    amp_memory_plan plan;
    amp_error err = {};
    ASSERT_EQ(Plan(&plan, p.Get(), 1, false, &a, &err), AMP_OK);
    EXPECT_EQ(plan.arena, 2u * 8 * 128);
    amp_memory_plan_free(&plan, &a);
}

// One after the other in the first one's place, which is taken as long as the last one lives.
TEST(MemoryPlan, APlaceIsShared) {
    Program p;
    p.Add(AMP_BUFFER_TEMP, 8, 3, 5); // its index is no matter
    p.Add(AMP_BUFFER_TEMP, 8, 0, 2);
    p.Add(AMP_BUFFER_TEMP, 8, 2, 3);
    p.Add(AMP_BUFFER_TEMP, 4, 4, 5);
    p.Add(AMP_BUFFER_TEMP, 8, 6, 7);
    p.buffers[0].place = p.buffers[2].place = 2;
    amp_allocator a = {};
    amp_memory_plan plan;
    amp_error err = {};
    ASSERT_EQ(Plan(&plan, p.Get(), 1, false, &a, &err), AMP_OK);
    EXPECT_EQ(plan.offset[0], plan.offset[1]);
    EXPECT_EQ(plan.offset[2], plan.offset[1]);
    EXPECT_NE(plan.offset[3], plan.offset[1]) << "in use until kernel 5";
    EXPECT_EQ(plan.arena, 12u * 128);
    amp_memory_plan_free(&plan, &a);
    ASSERT_EQ(Plan(&plan, p.Get(), 1, true, &a, &err), AMP_OK);
    ExpectNoOverlap(p, plan, true);
    amp_memory_plan_free(&plan, &a);
}

// Another shape of the same elements: it is the same memory also where buffers share nothing.
TEST(MemoryPlan, ARenamedBufferIsNeverSeparate) {
    Program p;
    p.Add(AMP_BUFFER_TEMP, 8, 1, 5);
    p.Add(AMP_BUFFER_TEMP, 8, 0, 2);
    p.Add(AMP_BUFFER_TEMP, 4, 4, 5);
    p.buffers[0].place = 2;
    p.buffers[0].renamed = 1;
    for (bool separate : {false, true}) {
        amp_allocator a = {};
        amp_memory_plan plan;
        amp_error err = {};
        ASSERT_EQ(Plan(&plan, p.Get(), 1, separate, &a, &err), AMP_OK);
        EXPECT_EQ(plan.offset[0], plan.offset[1]);
        EXPECT_NE(plan.offset[2], plan.offset[1]) << "in use until kernel 5";
        EXPECT_EQ(plan.arena, 12u * 128);
        amp_memory_plan_free(&plan, &a);
    }
}

TEST(MemoryPlan, OtherKindsLieOneAfterTheOther) {
    Program p;
    for (uint32_t kind : {AMP_BUFFER_FLAG, AMP_BUFFER_OUTPUT, AMP_BUFFER_WATCH})
        for (int i = 0; i < 3; i++) p.Add(kind, 2, 0, 0);
    amp_allocator a = {};
    amp_memory_plan plan;
    amp_error err = {};
    ASSERT_EQ(Plan(&plan, p.Get(), 1, false, &a, &err), AMP_OK);
    EXPECT_EQ(plan.arena, 0u);
    EXPECT_EQ(plan.flags, 768u);
    EXPECT_EQ(plan.outputs, 768u);
    EXPECT_EQ(plan.watched, 768u);
    for (int i = 0; i < 9; i++) EXPECT_EQ(plan.offset[i], 256u * (i % 3));
    amp_memory_plan_free(&plan, &a);
}

TEST(MemoryPlan, GrowsWithTheCapacityAndRefusesTooMuch) {
    Program p;
    p.Add(AMP_BUFFER_TEMP, 1, 0, 0);
    p.buffers[0].rows = {3, 1, 1, 0};
    amp_allocator a = {};
    amp_memory_plan plan;
    amp_error err = {};
    ASSERT_EQ(Plan(&plan, p.Get(), 5, false, &a, &err), AMP_OK);
    EXPECT_EQ(plan.arena, 15u * 128);
    amp_memory_plan_free(&plan, &a);
    p.buffers[0].rows = {(int64_t)1 << 38, 1, 0, 0};
    p.buffers[0].cols = {(int64_t)1 << 38, 1, 0, 0};
    EXPECT_EQ(Plan(&plan, p.Get(), 5, false, &a, &err), AMP_INVALID_ARGUMENT);
}

// Of buffers of k * n^a * t^b numbers, in rows and in panels, each has the bytes that it takes at most in any call.
TEST(MemoryPlan, EachBufferIsPlannedAtItsLargest) {
    Program p;
    for (uint32_t layout : {AMP_LAYOUT_ROWS, AMP_LAYOUT_PANELS})
        for (uint16_t n : {0, 1})
            for (uint16_t t : {0, 1, 2})
                for (uint16_t in_cols = 0; in_cols <= t; in_cols++) {
                    p.Add(AMP_BUFFER_TEMP, 1, 0, 0);
                    amp_model_buffer &b = p.buffers.back();
                    b.layout = layout;
                    b.rows = {3, 1, n, static_cast<uint16_t>(t - in_cols)};
                    b.cols = {5, 1, 0, in_cols};
                }
    amp_allocator a = {};
    amp_error err = {};
    const auto bytes = [&](const amp_capacity &capacity) {
        amp_memory_plan plan;
        const amp_memory_plan_options options = {capacity, false, AMP_MEMORY_ALIGN, true};
        EXPECT_EQ(amp_memory_plan_make(&plan, p.Get(), &options, &a, &err), AMP_OK) << err.message;
        std::vector<size_t> out(plan.bytes, plan.bytes + plan.count);
        amp_memory_plan_free(&plan, &a);
        return out;
    };
    for (int64_t unit : {1, 4})
        for (int64_t tokens : {0, 4, 7, 30, 100, 256, 1000}) {
            const amp_capacity capacity = {{13, 32}, tokens, unit};
            std::vector<size_t> most(p.buffers.size());
            for (int64_t n = 1; n <= 13; n++)
                for (int64_t t = unit; t <= 32; t += unit) {
                    if (tokens && n * t > tokens) continue;
                    const std::vector<size_t> at = bytes({{n, t}, 0, unit});
                    for (size_t i = 0; i < at.size(); i++) most[i] = std::max(most[i], at[i]);
                }
            EXPECT_EQ(bytes(capacity), most) << tokens << " tokens, unit " << unit;
        }
}

TEST(MemoryPlan, RunsOutOfMemoryCleanly) {
    Program p;
    p.Add(AMP_BUFFER_TEMP, 1, 0, 0);
    for (int fail = 0; fail < 4; fail++) {
        FailingAllocator failing(fail);
        amp_allocator a = failing.get();
        amp_memory_plan plan;
        amp_error err = {};
        EXPECT_EQ(Plan(&plan, p.Get(), 1, false, &a, &err), AMP_OUT_OF_MEMORY);
    }
}

} // namespace
