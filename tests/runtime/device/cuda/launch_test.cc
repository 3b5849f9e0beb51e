// launch_test.cc: which function and grid a kernel is launched with, by n and the device.
#include <gtest/gtest.h>

#include "runtime/model/cuda_launch.h"

namespace {

amp_model_cuda_grid Tiles(int64_t per) {
    amp_model_cuda_grid grid = {};
    grid.extent[0] = {3, 1, 1, 0}; // rows, 3 * n
    grid.extent[1] = {300, 1, 0, 0};
    grid.per[0] = grid.per[1] = per;
    return grid;
}

const amp_model_cuda_choice choices[] = {{7, {128, 1, 1}, 0}, {8, {64, 1, 1}, 0}, {9, {16, 1, 1}, 0}};

const int32_t kShared = 64 << 10; // of a block

TEST(CudaLaunch, HasBlocksForTheWholeExtentAndAtLeastOne) {
    const amp_model_cuda_grid tiles = Tiles(128);
    int64_t grid[3];
    amp_cuda_grid(&tiles, {100, 0}, grid);
    EXPECT_EQ(grid[0], 3);
    EXPECT_EQ(grid[1], 3);
    EXPECT_EQ(grid[2], 1);
}

// A product of f16 with k terms, in tiles of 128 x 128 or 64 x 64.
struct Product {
    amp_model_cuda_grid grids[2] = {};
    amp_model_cuda_part part = {AMP_KERNEL_PRODUCT, 1, 0, 1, 0, grids};
    amp_model_cuda_work work;
    amp_model_cuda_kernel kernel = {};

    Product(int64_t rows, int64_t cols, int64_t k, uint32_t instruction = AMP_INSTRUCTION_MMA_F16)
        : work{instruction, 2, {rows * cols, 1, 0, 0}, {k, 1, 0, 0}} {
        for (int i = 0; i < 2; i++) {
            grids[i].extent[0] = {rows, 1, 0, 0};
            grids[i].extent[1] = {cols, 1, 0, 0};
            grids[i].per[0] = grids[i].per[1] = i ? 64 : 128;
        }
        kernel.choices = {choices, 2};
        kernel.parts = {&part, 1};
        kernel.work = {&work, 1};
    }
    int64_t Tile(int multiprocessors) {
        return grids[amp_cuda_launch_choose(&kernel, {1, 0}, multiprocessors, kShared).index].per[0];
    }
};

// A tile of 64 x 64 takes 1 / 0.5, one of 128 x 128 4 / 0.78; the multiprocessor with the most tiles decides.
TEST(CudaLaunch, TakesTheTilesThatAreDoneFirst) {
    const struct {
        int64_t rows, cols; // of 128
        int tile[4];        // with 132, 108, 82 and 20 multiprocessors
    } cases[] = {
        {4, 2, {64, 64, 64, 64}},        // 32 small ones: 2, 2, 2, 4 against 5.1
        {11, 3, {64, 64, 64, 128}},      // 132: 2, 4, 4, 14 against 5.1, 5.1, 5.1, 10.3
        {25, 4, {128, 128, 128, 128}},   // 100: 5.1, 5.1, 10.3, 25.6 against 400 small ones: 8, 8, 10, 40
        {17, 8, {64, 128, 128, 128}},    // 136: 10.3 against 10; 10.3 against 12
        {32, 6, {128, 128, 128, 128}},   // 192: 10.3 against 12
        {512, 32, {128, 128, 128, 128}}, // many
    };
    const int devices[] = {132, 108, 82, 20};
    for (const auto &c : cases)
        for (int i = 0; i < 4; i++) {
            if (c.rows == 25 && devices[i] == 82) continue; // 10.26 against 10
            EXPECT_EQ(Product(128 * c.rows, 128 * c.cols, 768).Tile(devices[i]), c.tile[i])
                << c.rows << " x " << c.cols << " tiles, " << devices[i] << " multiprocessors";
        }
    EXPECT_EQ(Product(128 * 25, 512, 768).Tile(82), 64);
    EXPECT_EQ(Product(128 * 17, 1024, 768, AMP_INSTRUCTION_FMA).Tile(132), 64);
    EXPECT_EQ(Product(128 * 32, 4096, 768, AMP_INSTRUCTION_FMA).Tile(132), 128) << "small ones read more";
}

TEST(CudaLaunch, CountsWhatTilesHaveBeyondTheEdges) {
    EXPECT_EQ(Product(64, 128 * 132, 768).Tile(132), 64) << "half of each large tile is empty";
    EXPECT_EQ(Product(128, 128 * 132, 768).Tile(132), 128);
    const amp_model_cuda_grid tiles = Tiles(128); // of 3 * n rows and 300 columns
    EXPECT_DOUBLE_EQ(amp_cuda_tile_share(&tiles, {128, 0}, AMP_INSTRUCTION_MMA_F16), 0.78 * 300 / 384);
    EXPECT_DOUBLE_EQ(amp_cuda_tile_share(&tiles, {100, 0}, AMP_INSTRUCTION_MMA_F16), 0.78 * 300 / 384 * 300 / 384);
    EXPECT_DOUBLE_EQ(amp_cuda_filled(192, 132), 192 / 264.0);
    EXPECT_DOUBLE_EQ(amp_cuda_filled(132, 132), 1);
    EXPECT_DOUBLE_EQ(amp_cuda_filled(int64_t{1} << 40, 1), 1);
}

TEST(CudaLaunch, TablesThatAreDamagedChooseAsWell) {
    Product p(1024, 1024, 1024);
    p.work.elements = {1, 0, 1, 0}; // n / 0
    EXPECT_NE(amp_cuda_launch_choose(&p.kernel, {7, 0}, 132, kShared).choice, nullptr);
    p.grids[0].extent[0] = {1, 0, 0, 0};
    EXPECT_NE(amp_cuda_launch_choose(&p.kernel, {7, 0}, 132, kShared).choice, nullptr);
    p.grids[0].per[0] = p.grids[0].per[1] = INT64_MIN;
    EXPECT_DOUBLE_EQ(amp_cuda_tile_share(&p.grids[0], {7, 0}, AMP_INSTRUCTION_MMA_F16), 0.5);
}

// Kernels in one launch have their blocks one after another.
TEST(CudaLaunch, AddsUpTheBlocksOfParts) {
    const amp_model_cuda_grid rows = Tiles(64), columns = Tiles(100);
    const amp_model_cuda_part parts[] = {{0, 1, 0, 0, 0, &rows}, {0, 1, 0, 0, 0, &columns}};
    amp_model_cuda_kernel k = {};
    k.parts = {parts, 2};
    k.choices = {choices, 1};
    amp_cuda_used used = amp_cuda_launch_choose(&k, {100, 0}, 14, kShared);
    EXPECT_EQ(used.index, 0u);
    EXPECT_EQ(used.grid[0], 5 * 5 + 3 * 3);
    EXPECT_EQ(used.grid[1], 1);
    EXPECT_EQ(used.grid[2], 1);
    const amp_cuda_part_place place = amp_cuda_place_part(&k, 0, 1, {100, 0});
    EXPECT_EQ(place.first, 5 * 5);
    EXPECT_EQ(place.x, 3);
    EXPECT_EQ(place.y, 3);
    used = amp_cuda_launch_choose(&k, {int64_t{1} << 40, 0}, INT32_MAX, kShared);
    EXPECT_GT(used.grid[0], INT32_MAX) << "more than CUDA has";
}

// One part of a superstep, too: its function is told where its blocks begin.
TEST(CudaLaunch, APartOfASuperstepIsPlaced) {
    const amp_model_cuda_grid grid = Tiles(100);
    amp_model_cuda_part part = {AMP_KERNEL_ROW, 1, 0, 0, 1, &grid};
    amp_model_cuda_kernel k = {};
    k.parts = {&part, 1};
    k.choices = {choices, 1};
    EXPECT_TRUE(amp_cuda_places_parts(&k));
    EXPECT_EQ(amp_cuda_launch_choose(&k, {100, 0}, 1, kShared).grid[0], 9);
    part.superstep = 0;
    EXPECT_FALSE(amp_cuda_places_parts(&k));
    EXPECT_EQ(amp_cuda_launch_choose(&k, {100, 0}, 1, kShared).grid[0], 3);
}

// 8 large tiles of a long k would be at work when 256 small ones beside them are done; not where those take longer.
TEST(CudaLaunch, ALongBlockMayDecide) {
    Product beside(1024, 1024, 128), few(128, 1024, 1024);
    beside.grids[0] = beside.grids[1];
    const amp_model_cuda_part parts[] = {beside.part, few.part};
    const amp_model_cuda_work work[] = {beside.work, few.work};
    amp_model_cuda_kernel k = few.kernel;
    k.parts = {parts, 2};
    k.work = {work, 2};
    EXPECT_EQ(amp_cuda_launch_choose(&k, {1, 0}, 132, kShared).index, 1u);
    EXPECT_EQ(amp_cuda_launch_choose(&k, {1, 0}, 20, kShared).index, 0u);
    // If it is another part's, whose tiles are the same, more blocks move more bytes.
    Product longest(64, 64, 1 << 20);
    longest.grids[0] = longest.grids[1];
    const amp_model_cuda_part others[] = {longest.part, few.part};
    const amp_model_cuda_work of_others[] = {longest.work, few.work};
    k.parts = {others, 2};
    k.work = {of_others, 2};
    EXPECT_EQ(amp_cuda_launch_choose(&k, {1, 0}, 20, kShared).index, 1u);
}

// Shared memory decides, and not the number of blocks, which is the same; one choice is right everywhere.
TEST(CudaLaunch, TakesTheFirstChoiceWhoseSharedMemoryTheDeviceHas) {
    const amp_model_cuda_choice held[] = {
        {7, {256, 1, 1}, 200 << 10}, {7, {256, 1, 1}, 100 << 10}, {7, {256, 1, 1}, 60 << 10}};
    const amp_model_cuda_grid grids[] = {Tiles(1), Tiles(1), Tiles(1)};
    const amp_model_cuda_part part = {AMP_KERNEL_ROW, 1, 0, 0, 0, grids};
    amp_model_cuda_kernel k = {};
    k.parts = {&part, 1};
    k.choices = {held, 3};
    for (int64_t n : {1, 1000}) {
        EXPECT_EQ(amp_cuda_launch_choose(&k, {n, 0}, 1 << 20, 227 << 10).index, 0u);
        EXPECT_EQ(amp_cuda_launch_choose(&k, {n, 0}, 1 << 20, (200 << 10) + AMP_CUDA_FIXED_SHARED).index, 0u);
        EXPECT_EQ(amp_cuda_launch_choose(&k, {n, 0}, 1 << 20, 200 << 10).index, 1u)
            << "functions have some of their own";
        EXPECT_EQ(amp_cuda_launch_choose(&k, {n, 0}, 1 << 20, 99 << 10).index, 2u);
        EXPECT_EQ(amp_cuda_launch_choose(&k, {n, 0}, 1 << 20, 0).index, 2u);
    }
}

} // namespace
