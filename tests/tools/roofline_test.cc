// roofline_test.cc: the model of time on made-up kernels, against numbers that were worked out by hand.
#include "tools/roofline/roofline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace {

amp_model_dim Fixed(int64_t v) { return {v, 1, 0, 0}; }
amp_model_dim Of_n(int64_t v) { return {v, 1, 1, 0}; }

// A kernel over buffers of its own.
struct Made {
    std::vector<amp_model_buffer> buffers;
    std::vector<amp_model_state> states;
    std::vector<uint32_t> operands;
    std::vector<uint8_t> access;
    std::vector<amp_model_cuda_work> work;
    amp_model_cuda_grid grid = {};
    amp_model_cuda_part part = {};
    amp_model_cuda_choice choice = {0, {1, 1, 1}, 0};
    amp_model_cuda_kernel kernel = {};

    explicit Made(uint32_t kind) {
        kernel.name = "k00";
        part.kind = kind;
        part.members = 1;
    }
    Made &Buffer(amp_dtype storage, amp_model_dim rows, int64_t cols, int how, uint32_t role = AMP_BUFFER_TEMP) {
        amp_model_buffer b = {};
        b.kind = role;
        b.storage = storage;
        b.rows = rows;
        b.cols = Fixed(cols);
        b.index = AMP_MODEL_NONE;
        buffers.push_back(b);
        return Operand(static_cast<uint32_t>(buffers.size() - 1), how);
    }
    Made &Operand(uint32_t buffer, int how) {
        operands.push_back(buffer);
        access.push_back(static_cast<uint8_t>(how));
        return *this;
    }
    Made &Work(uint32_t instruction, uint32_t operations, amp_model_dim elements, amp_model_dim terms) {
        work.push_back({instruction, operations, elements, terms});
        return *this;
    }
    Made &Blocks(int axis, amp_model_dim extent, int64_t per) {
        grid.extent[axis] = extent;
        grid.per[axis] = per;
        return *this;
    }
    RooflineStatus Time(const char *gpu, int64_t n, KernelTime *out, Form form = FORM_OWN) {
        kernel.operands = {operands.data(), static_cast<uint32_t>(operands.size())};
        kernel.access = access.data();
        kernel.work = {work.data(), static_cast<uint32_t>(work.size())};
        part.operand_count = kernel.operands.count;
        part.work_count = kernel.work.count;
        part.grids = &grid;
        kernel.choices = {&choice, 1};
        if (!kernel.parts.count || kernel.parts.at == &part) kernel.parts = {&part, 1};
        const RooflineTables tables = {buffers.data(), states.data()};
        return roofline_kernel(gpu_named(gpu), &tables, &kernel, {n, 0}, form, out);
    }
};

enum { READ = AMP_ACCESS_READ, WRITE = AMP_ACCESS_WRITE };

TEST(Roofline, BoundByMemory) {
    KernelTime t;
    Made k(AMP_KERNEL_TILE);
    k.Buffer(AMP_DT_F32, Of_n(1), 30000, READ).Buffer(AMP_DT_F16, Of_n(1), 30000, WRITE);
    k.Work(AMP_INSTRUCTION_PLAIN, 2, Of_n(30000), Fixed(1)).Blocks(0, Of_n(30000), 1024);
    ASSERT_EQ(k.Time("H100", 1000, &t), ROOFLINE_OK);
    EXPECT_EQ(t.blocks, 29297); // 30,000,000 / 1024, rounded up
    EXPECT_DOUBLE_EQ(t.flops, 60e6);
    EXPECT_DOUBLE_EQ(t.bytes, 180e6);
    // 180 MB at 0.95 of 3000 GB/s, 60 million operations at 33.45 TFLOP/s in 222 waves of 132, and the start
    const double plain = 60 / 33.45 / (29297 / (222 * 132.0));
    EXPECT_NEAR(t.microseconds, 1.3 + 60 / 0.95 + plain, 1e-9);
    EXPECT_EQ(t.bound, BOUND_MEMORY);
    EXPECT_EQ(t.instruction, static_cast<uint32_t>(AMP_INSTRUCTION_PLAIN));
    EXPECT_STREQ(instruction_name(t.instruction), "-");
    ASSERT_EQ(k.Time("H200", 1000, &t), ROOFLINE_OK);
    EXPECT_NEAR(t.microseconds, 1.3 + 180e6 / (0.95 * 4230e9) * 1e6 + plain, 1e-9);
    ASSERT_EQ(k.Time("H100", 1000, &t, FORM_FP32), ROOFLINE_OK); // the half of it that is f16 doubles
    EXPECT_NEAR(t.microseconds, 1.3 + 80 / 0.95 + plain, 1e-9);
}

// What several phases read is read again where shared memory does not hold it.
TEST(Roofline, RowsThatAreReadAgain) {
    KernelTime t;
    Made k(AMP_KERNEL_ROW);
    k.Buffer(AMP_DT_F16, Of_n(1), 50000, READ | 2 * AMP_ACCESS_AGAIN).Buffer(AMP_DT_F16, Of_n(1), 50000, WRITE);
    k.Buffer(AMP_DT_F32, Fixed(1), 50000, READ).Blocks(0, Of_n(1), 1);
    const std::pair<uint32_t, double> held[] = {{0, 400e3}, {50000, 300e3}, {100000, 200e3}, {100544, 200e3}};
    for (const auto &[shared, bytes] : held) {
        k.choice.shared_bytes = shared;
        ASSERT_EQ(k.Time("H200", 1000, &t), ROOFLINE_OK);
        EXPECT_DOUBLE_EQ(t.bytes, 1000 * bytes + 200e3) << shared;
        EXPECT_NEAR(t.microseconds, 1.3 + t.bytes / 4230e9 * 1e6, 1e-9);
    }
}

// 4096 x 4096 x 4096 in tiles of 128 x 128: 1024 blocks, 8 waves of 132 multiprocessors, the last one not full.
TEST(Roofline, BoundByTensorCores) {
    KernelTime t;
    Made k(AMP_KERNEL_PRODUCT);
    k.Buffer(AMP_DT_F16, Of_n(1), 4096, READ).Buffer(AMP_DT_F16, Fixed(4096), 4096, READ);
    k.Buffer(AMP_DT_F16, Of_n(1), 4096, WRITE);
    k.Work(AMP_INSTRUCTION_MMA_F16, 2, Of_n(4096), Fixed(4096)).Blocks(0, Of_n(1), 128).Blocks(1, Fixed(4096), 128);
    ASSERT_EQ(k.Time("h100", 4096, &t), ROOFLINE_OK);
    EXPECT_EQ(t.blocks, 1024);
    EXPECT_EQ(t.used.grid[0], 32);
    EXPECT_EQ(t.used.grid[1], 32);
    EXPECT_EQ(t.used.grid[2], 1);
    EXPECT_DOUBLE_EQ(t.flops, 2.0 * 4096 * 4096 * 4096);
    EXPECT_DOUBLE_EQ(t.bytes, 3 * 2.0 * 4096 * 4096);
    EXPECT_EQ(t.bound, BOUND_TENSOR_CORES);
    EXPECT_STREQ(instruction_name(t.instruction), "mma f16");
    EXPECT_DOUBLE_EQ(t.waves, 1024.0 / 1056);
    EXPECT_EQ(t.other_tiles, INFINITY);
    // 137.44 GFLOP at 989.4 * 0.6 * 0.78 = 463.04 TFLOP/s: 296.82 us; / (1024 / 1056); 100.66 MB: 33.55 us; 3 us
    const double memory = 3 + 3 * 2.0 * 4096 * 4096 / 3e6;
    EXPECT_NEAR(t.microseconds, 306.09 + memory, 0.02);
    // Smaller tiles reach less of the rate.
    k.Blocks(0, Of_n(1), 64).Blocks(1, Fixed(4096), 64);
    ASSERT_EQ(k.Time("H100", 4096, &t), ROOFLINE_OK);
    EXPECT_EQ(t.blocks, 4096); // 32 waves: filled by 4096 / 4224
    EXPECT_NEAR(t.microseconds, memory + 137438.953472 / (989.4 * 0.6 * 0.5) / (4096.0 / 4224), 1e-3);
}

// What it would take in tiles that were not chosen; a long block beside many others is waited for.
TEST(Roofline, OtherTiles) {
    KernelTime t;
    Made k(AMP_KERNEL_PRODUCT);
    k.Buffer(AMP_DT_F16, Fixed(4096), 768, READ).Work(AMP_INSTRUCTION_MMA_F16, 2, Fixed(4096 * 768), Fixed(768));
    k.Blocks(0, Fixed(4096), 128).Blocks(1, Fixed(768), 128);
    const amp_model_cuda_grid small = Made(0).Blocks(0, Fixed(4096), 64).Blocks(1, Fixed(768), 64).grid,
                              grids[] = {k.grid, small}, alone[] = {k.grid, k.grid};
    const amp_model_cuda_choice choices[] = {{0, {128, 1, 1}, 0}, {1, {128, 1, 1}, 0}};
    amp_model_cuda_part part = {AMP_KERNEL_PRODUCT, 1, 1, 1, 0, grids};
    auto time = [&] {
        const RooflineTables tables = {k.buffers.data(), nullptr};
        k.kernel.choices = {choices, 2};
        return roofline_kernel(gpu_named("H200"), &tables, &k.kernel, {1, 0}, FORM_OWN, &t);
    };
    k.kernel.parts = {&part, 1};
    ASSERT_EQ(k.Time("H200", 1, &t), ROOFLINE_OK);
    ASSERT_EQ(time(), ROOFLINE_OK);
    EXPECT_EQ(t.used.index, 0u); // 192 for 264 places; 768 for 792
    const double gflop = 2.0 * 4096 * 768 * 768 / 1e9, rate = 989.4 * 0.6, memory = t.bytes / 4.23e6;
    EXPECT_NEAR(t.microseconds, 3 + memory + gflop / (rate * 0.78) * 1e3 * 264 / 192, 1e-6);
    EXPECT_NEAR(t.other_tiles, 3 + memory + gflop / (rate * 0.5) * 1e3 * 792 / 768, 1e-6);
    part.grids = alone;
    ASSERT_EQ(time(), ROOFLINE_OK);
    EXPECT_EQ(t.other_tiles, INFINITY);
    // beside one block of 64 x 64 sums of 2^22 terms, at half of the rate of a multiprocessor
    const amp_model_cuda_grid one = Made(0).Blocks(0, Fixed(64), 64).Blocks(1, Fixed(64), 64).grid, both[] = {one, one};
    const amp_model_cuda_part parts[] = {part, {AMP_KERNEL_PRODUCT, 1, 0, 1, 0, both}};
    k.Work(AMP_INSTRUCTION_MMA_F16, 2, Fixed(64 * 64), Fixed(1 << 22));
    k.kernel.work = {k.work.data(), 2};
    k.kernel.parts = {parts, 2};
    ASSERT_EQ(time(), ROOFLINE_OK);
    EXPECT_NEAR(t.microseconds, 3 + memory + 2.0 * 64 * 64 * (1 << 22) / 1e9 / (rate * 0.5) * 1e3 * 132, 1e-3);
}

TEST(Roofline, KindsForPeople) {
    Made k(AMP_KERNEL_ROW);
    k.kernel.parts = {&k.part, 1};
    EXPECT_EQ(cuda_kernel_kind(&k.kernel), static_cast<uint32_t>(AMP_KERNEL_ROW));
    k.part.superstep = 1;
    EXPECT_EQ(cuda_kernel_kind(&k.kernel), static_cast<uint32_t>(AMP_KERNEL_PRODUCT));
}

// Two products in one launch: the bytes of both, an operand that both read twice; each at the rate of its tiles.
TEST(Roofline, KernelsOfALaunch) {
    KernelTime t;
    Made k(AMP_KERNEL_PRODUCT);
    k.Buffer(AMP_DT_F16, Fixed(4096), 4096, READ).Buffer(AMP_DT_F16, Of_n(1), 4096, WRITE).Operand(0, READ);
    k.Buffer(AMP_DT_F32, Fixed(64), 4096, WRITE);
    k.Work(AMP_INSTRUCTION_MMA_F16, 2, Of_n(4096), Fixed(4096));
    k.Work(AMP_INSTRUCTION_MMA_F16, 2, Fixed(64 * 4096), Of_n(1));
    const amp_model_cuda_grid large = Made(0).Blocks(0, Of_n(1), 128).Blocks(1, Fixed(4096), 128).grid,
                              small = Made(0).Blocks(0, Fixed(64), 64).Blocks(1, Fixed(4096), 64).grid;
    const amp_model_cuda_part parts[] = {{AMP_KERNEL_PRODUCT, 1, 2, 1, 0, &large},
                                         {AMP_KERNEL_PRODUCT, 1, 2, 1, 0, &small}};
    k.kernel.parts = {parts, 2};
    ASSERT_EQ(k.Time("H100", 4096, &t), ROOFLINE_OK);
    EXPECT_EQ(t.blocks, 1024 + 64);
    EXPECT_DOUBLE_EQ(t.bytes, 3 * 2.0 * 4096 * 4096 + 4.0 * 64 * 4096);
    EXPECT_DOUBLE_EQ(t.flops, 2.0 * 4096 * 4096 * (4096 + 64));
    // 1088 blocks are 9 waves of 132
    const double products = (137438.953472 / 0.78 + 2147.483648 / 0.5) / (989.4 * 0.6) / (1088.0 / 1188);
    EXPECT_NEAR(t.microseconds, 3 + t.bytes / 3e6 + products, 1e-3);
    EXPECT_EQ(t.bound, BOUND_TENSOR_CORES);
}

// As if in TF32: half of the rate; in FP32: multiply-adds, at 0.4 of 66.9 TFLOP/s.
TEST(Roofline, OtherTypes) {
    KernelTime own, tf32, fp32;
    Made k(AMP_KERNEL_PRODUCT);
    k.Buffer(AMP_DT_F16, Fixed(4096), 4096, READ);
    k.Work(AMP_INSTRUCTION_MMA_BF16, 2, Of_n(4096), Fixed(4096)).Blocks(0, Of_n(1), 128).Blocks(1, Fixed(4096), 128);
    ASSERT_EQ(k.Time("H100", 4096, &own), ROOFLINE_OK);
    ASSERT_EQ(k.Time("H100", 4096, &tf32, FORM_TF32), ROOFLINE_OK);
    ASSERT_EQ(k.Time("H100", 4096, &fp32, FORM_FP32), ROOFLINE_OK);
    auto computes = [](const KernelTime &t) { return t.microseconds - 3 - t.bytes / 3e6; };
    EXPECT_NEAR(computes(tf32) / computes(own), 2, 1e-9);
    EXPECT_NEAR(computes(fp32) / computes(own), 989.4 * 0.6 * 0.78 / (66.9 * 0.4), 1e-9);
    EXPECT_DOUBLE_EQ(tf32.bytes, 2 * own.bytes);
    EXPECT_EQ(tf32.bound, BOUND_TENSOR_CORES);
    EXPECT_EQ(fp32.bound, BOUND_ARITHMETIC);
    EXPECT_STREQ(instruction_name(tf32.instruction), "mma tf32");
    EXPECT_STREQ(instruction_name(fp32.instruction), "fma");
}

// A batch of products is in the elements, and in the blocks of the third axis.
TEST(Roofline, BatchOfProducts) {
    KernelTime t;
    Made k(AMP_KERNEL_PRODUCT);
    k.Buffer(AMP_DT_F16, Of_n(12 * 128), 64, READ);
    k.Work(AMP_INSTRUCTION_MMA_F16, 2, Of_n(12 * 128 * 128), Fixed(64));
    k.Blocks(0, Fixed(128), 64).Blocks(1, Fixed(128), 64).Blocks(2, Of_n(12), 1);
    ASSERT_EQ(k.Time("A100", 8, &t), ROOFLINE_OK);
    EXPECT_EQ(t.blocks, 2 * 2 * 96);
    EXPECT_DOUBLE_EQ(t.flops, 2.0 * 8 * 12 * 128 * 128 * 64);
}

// A loop for each element instead of tiles, and functions: both by instructions in f32.
TEST(Roofline, BoundByArithmetic) {
    KernelTime t;
    Made k(AMP_KERNEL_ROW);
    k.Buffer(AMP_DT_F16, Of_n(1), 1024, READ);
    k.Work(AMP_INSTRUCTION_FMA, 2, Of_n(1024), Fixed(1000)).Work(AMP_INSTRUCTION_PLAIN, 50, Of_n(1024), Fixed(1));
    k.Blocks(0, Of_n(1), 4);
    ASSERT_EQ(k.Time("H100", 132 * 4 * 100, &t), ROOFLINE_OK);
    const double elements = 1024.0 * 52800;
    EXPECT_DOUBLE_EQ(t.flops, elements * 2050);
    const double computes = (elements * 2000 / (66.9e12 * 0.05) + elements * 50 / (66.9e12 * 0.5)) * 1e6;
    EXPECT_NEAR(t.microseconds, 1.3 + t.bytes / 3e6 + computes, 1e-3);
    EXPECT_EQ(t.bound, BOUND_ARITHMETIC);
}

// A sum down [8192, 768] by 24 blocks has 24 of 132 parts of the bandwidth.
TEST(Roofline, BoundByTooFewBlocks) {
    KernelTime t;
    Made k(AMP_KERNEL_COLUMN);
    k.Buffer(AMP_DT_F16, Of_n(1), 768, READ).Work(AMP_INSTRUCTION_PLAIN, 1, Of_n(768), Fixed(1));
    k.Blocks(0, Fixed(768), 32);
    ASSERT_EQ(k.Time("H100", 8192, &t), ROOFLINE_OK);
    EXPECT_EQ(t.blocks, 24);
    EXPECT_DOUBLE_EQ(t.bytes, 12582912);
    EXPECT_NEAR(t.microseconds, 1.3 + 4.194304 / 0.75 * 132 / 24, 1e-9); // the additions are within that
    EXPECT_EQ(t.bound, BOUND_BLOCKS);
    k.kernel.waits.tickets = 24; // sums of these follow in the same launch
    ASSERT_EQ(k.Time("H100", 8192, &t), ROOFLINE_OK);
    EXPECT_NEAR(t.microseconds, 4 + 4.194304 / 0.7 * 132 / 24, 1e-9);
}

TEST(Roofline, BoundByLaunch) {
    KernelTime t;
    Made k(AMP_KERNEL_SCALAR);
    k.Buffer(AMP_DT_F32, Fixed(1), 1, READ | WRITE).Work(AMP_INSTRUCTION_PLAIN, 40, Fixed(1), Fixed(1));
    ASSERT_EQ(k.Time("T4", 1, &t), ROOFLINE_OK);
    EXPECT_EQ(t.blocks, 1);
    EXPECT_DOUBLE_EQ(t.bytes, 8); // read and written
    EXPECT_NEAR(t.microseconds, 1.3, 0.01);
    EXPECT_EQ(t.bound, BOUND_LAUNCH);
    EXPECT_STREQ(bound_names[t.bound], "launch");
    Made copy(AMP_KERNEL_TILE); // no arithmetic at all
    copy.Buffer(AMP_DT_F32, Of_n(1), 8, READ);
    ASSERT_EQ(copy.Time("T4", 1, &t), ROOFLINE_OK);
    EXPECT_EQ(t.flops, 0);
    EXPECT_EQ(t.bound, BOUND_LAUNCH);
}

// An optimizer's kernel: p, m, v read and written, a gradient read, a copy of p in f16 written: 30 bytes an element.
// In other types there is no such copy.
TEST(Roofline, StatesInPlaceAndCopiesOfWeights) {
    KernelTime t;
    Made k(AMP_KERNEL_TILE);
    k.states.resize(2);
    k.states[0].role = AMP_STATE_PARAM;
    k.states[1].role = AMP_STATE_DERIVED;
    for (int i = 0; i < 3; i++) k.Buffer(AMP_DT_F32, Fixed(1000), 1000, READ | WRITE, AMP_BUFFER_STATE);
    k.Buffer(AMP_DT_F32, Fixed(1000), 1000, READ);
    k.Buffer(AMP_DT_F16, Fixed(1000), 1000, WRITE, AMP_BUFFER_STATE);
    for (int i = 0; i < 3; i++) k.buffers[i].index = 0;
    k.buffers[4].index = 1;
    k.Blocks(0, Fixed(1000000), 1024);
    ASSERT_EQ(k.Time("H100", 1, &t), ROOFLINE_OK);
    EXPECT_DOUBLE_EQ(t.bytes, 30e6);
    ASSERT_EQ(k.Time("H100", 1, &t, FORM_TF32), ROOFLINE_OK);
    EXPECT_DOUBLE_EQ(t.bytes, 28e6);
}

TEST(Roofline, BuffersCountOnce) {
    KernelTime t;
    Made k(AMP_KERNEL_TILE);
    k.Buffer(AMP_DT_BOOL, Fixed(100), 1, READ); // one int32 each
    k.Operand(0, READ);
    k.Buffer(AMP_DT_F32, Fixed(100), 1, WRITE, AMP_BUFFER_WATCH); // it is not asked for
    ASSERT_EQ(k.Time("H100", 1, &t), ROOFLINE_OK);
    EXPECT_DOUBLE_EQ(t.bytes, 400);
}

// A tile kernel that makes 100 elements of an operand of a million reads no more of it; as many for each term of a sum.
TEST(Roofline, ASliceReadsWhatItMakes) {
    KernelTime t;
    Made k(AMP_KERNEL_TILE);
    k.Buffer(AMP_DT_F16, Fixed(1000000), 1, READ);
    k.Buffer(AMP_DT_F16, Fixed(100), 1, WRITE);
    k.Blocks(0, Fixed(100), 256);
    ASSERT_EQ(k.Time("H100", 1, &t), ROOFLINE_OK);
    EXPECT_DOUBLE_EQ(t.bytes, 400);
    k.Work(AMP_INSTRUCTION_PLAIN, 1, Fixed(100), Fixed(9));
    ASSERT_EQ(k.Time("H100", 1, &t), ROOFLINE_OK);
    EXPECT_DOUBLE_EQ(t.bytes, 2000);
}

TEST(Roofline, WhatIsNotKnown) {
    KernelTime t;
    Made bf16(AMP_KERNEL_PRODUCT);
    bf16.Work(AMP_INSTRUCTION_MMA_BF16, 2, Of_n(64), Fixed(64));
    EXPECT_EQ(bf16.Time("T4", 64, &t), ROOFLINE_NO_INSTRUCTION);
    EXPECT_STREQ(instruction_name(t.instruction), "mma bf16");
    EXPECT_EQ(bf16.Time("A100", 64, &t), ROOFLINE_OK);
    EXPECT_EQ(bf16.Time("T4", 64, &t, FORM_TF32), ROOFLINE_NO_INSTRUCTION);
    EXPECT_EQ(bf16.Time("T4", 64, &t, FORM_FP32), ROOFLINE_OK);
    bf16.work[0].instruction = 99;
    EXPECT_EQ(bf16.Time("H100", 64, &t), ROOFLINE_UNKNOWN);
    EXPECT_STREQ(instruction_name(99), "unknown");

    Made old(AMP_KERNEL_TILE);
    old.Buffer(AMP_DT_F32, Fixed(1), 1, READ);
    EXPECT_EQ(old.Time("H100", 1, &t), ROOFLINE_OK);
    const RooflineTables tables = {old.buffers.data(), nullptr};
    old.kernel.access = nullptr;
    EXPECT_EQ(roofline_kernel(gpu_at(0), &tables, &old.kernel, {1, 0}, FORM_OWN, &t), ROOFLINE_UNKNOWN);
    old.kernel.access = old.access.data();
    amp_model_cuda_work damaged = {AMP_INSTRUCTION_PLAIN, 1, {1, 0, 1, 0}, Fixed(1)}; // n / 0
    old.kernel.work = {&damaged, 1};
    old.part.work_count = 1;
    EXPECT_EQ(roofline_kernel(gpu_at(0), &tables, &old.kernel, {1, 0}, FORM_OWN, &t), ROOFLINE_UNKNOWN);
}

TEST(Gpus, NamesAreTolerant) {
    for (const char *name : {"RTX4090", "rtx 4090", "Rtx-4090", "RTX_4090"}) {
        ASSERT_NE(gpu_named(name), nullptr) << name;
        EXPECT_STREQ(gpu_named(name)->name, "RTX4090");
    }
    for (const char *name : {"", "H", "H10", "H1000", "4090", "RTX4090 Ti"})
        EXPECT_EQ(gpu_named(name), nullptr) << name;
}

// Every row is complete, and its numbers are in the units of gpus.h.
TEST(Gpus, Table) {
    int count = 0;
    for (; gpu_at(count); count++) {
        const Gpu &g = *gpu_at(count);
        EXPECT_EQ(gpu_named(g.name), &g);
        EXPECT_GE(g.multiprocessors, 40);
        EXPECT_GT(g.fp16, g.fp32) << g.name; // TFLOP/s
        EXPECT_LT(g.fp16, 1000);
        EXPECT_GT(g.copy, 200); // GB/s
        EXPECT_LT(g.copy, 4800);
        EXPECT_GE(g.launch, 1); // microseconds
        EXPECT_LT(g.launch, 5);
        EXPECT_GT(g.mma_share, 0.5);
        EXPECT_LE(g.mma_share, 1);
        EXPECT_EQ(g.bf16 == 0, g.tf32 == 0);
        EXPECT_NE(g.source, nullptr);
    }
    EXPECT_EQ(count, 5);
    EXPECT_EQ(gpu_at(-1), nullptr);
}

} // namespace
