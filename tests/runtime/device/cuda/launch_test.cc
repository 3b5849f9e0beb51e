// launch_test.cc: which function and grid a kernel is launched with, by n and the device.
#include <gtest/gtest.h>

#include "runtime/model/cuda_launch.h"

namespace {

amp_model_cuda_grid Tiles(int64_t per) {
    amp_model_cuda_grid grid = {};
    grid.extent[0] = {3, 1, 1}; // rows, 3 * n
    grid.extent[1] = {300, 1, 0};
    grid.per[0] = grid.per[1] = per;
    return grid;
}

const amp_model_cuda_choice choices[] = {{7, {128, 1, 1}, 0}, {8, {64, 1, 1}, 0}, {9, {16, 1, 1}, 0}};

const int32_t kShared = 64 << 10; // of a block

TEST(CudaLaunch, HasBlocksForTheWholeExtentAndAtLeastOne) {
    const amp_model_cuda_grid tiles = Tiles(128);
    int64_t grid[3];
    amp_cuda_grid(&tiles, 100, grid);
    EXPECT_EQ(grid[0], 3);
    EXPECT_EQ(grid[1], 3);
    EXPECT_EQ(grid[2], 1);
}

TEST(CudaLaunch, TakesTheFirstChoiceThatFillsTheDevice) {
    const amp_model_cuda_grid grids[] = {Tiles(128), Tiles(64), Tiles(16)};
    const amp_model_cuda_part alone = {AMP_KERNEL_PRODUCT, 1, 0, 0, 0, grids + 2},
                              part = {AMP_KERNEL_PRODUCT, 1, 0, 0, 0, grids};
    amp_model_cuda_kernel k = {};
    auto function = [&k](int64_t n, int multiprocessors) {
        return amp_cuda_launch_choose(&k, n, multiprocessors, kShared).choice->function;
    };
    k.parts = {&alone, 1};
    k.choices = {choices + 2, 1};
    EXPECT_EQ(function(1 << 20, 132), 9u) << "there is no choice";
    k.parts = {&part, 1};
    k.choices = {choices, 3};
    EXPECT_EQ(function(1, 132), 9u);
    EXPECT_EQ(amp_cuda_launch_choose(&k, 1, 132, kShared).grid[1], 19); // its own: of 300 columns
    EXPECT_EQ(function(554, 132), 9u);                                  // 26 x 5 tiles of 64
    EXPECT_EQ(function(555, 132), 8u);                                  // 27 x 5
    EXPECT_EQ(function(555, 136), 9u) << "a larger device";
    EXPECT_EQ(function(1878, 132), 7u); // 45 x 3 of 128
    EXPECT_EQ(function(1 << 20, 132), 7u);
    EXPECT_EQ(function(1, 1), 7u) << "a small device";
}

// Kernels in one launch have their blocks one after another, and choose together.
TEST(CudaLaunch, AddsUpTheBlocksOfParts) {
    const amp_model_cuda_grid rows[] = {Tiles(128), Tiles(64)}, columns[] = {Tiles(150), Tiles(100)};
    const amp_model_cuda_part parts[] = {{0, 1, 0, 0, 0, rows}, {0, 1, 0, 0, 0, columns}};
    amp_model_cuda_kernel k = {};
    k.parts = {parts, 2};
    k.choices = {choices, 2};
    amp_cuda_used used = amp_cuda_launch_choose(&k, 100, 14, kShared);
    EXPECT_EQ(used.choice->function, 8u); // 3 x 3 and 2 x 2 would be 13
    EXPECT_EQ(used.index, 1u);
    EXPECT_EQ(used.grid[0], 5 * 5 + 3 * 3);
    EXPECT_EQ(used.grid[1], 1);
    EXPECT_EQ(used.grid[2], 1);
    used = amp_cuda_launch_choose(&k, 100, 13, kShared);
    EXPECT_EQ(used.choice->function, 7u);
    EXPECT_EQ(used.index, 0u);
    EXPECT_EQ(used.grid[0], 13);
    const amp_cuda_part_place place = amp_cuda_place_part(&k, 1, 1, 100);
    EXPECT_EQ(place.first, 5 * 5);
    EXPECT_EQ(place.x, 3);
    EXPECT_EQ(place.y, 3);
    used = amp_cuda_launch_choose(&k, int64_t{1} << 40, INT32_MAX, kShared);
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
    EXPECT_EQ(amp_cuda_launch_choose(&k, 100, 1, kShared).grid[0], 9);
    part.superstep = 0;
    EXPECT_FALSE(amp_cuda_places_parts(&k));
    EXPECT_EQ(amp_cuda_launch_choose(&k, 100, 1, kShared).grid[0], 3);
}

// A part of few larger tiles would be at work when all others are done.
TEST(CudaLaunch, EachPartWithLargerTilesHasBlocksEnough) {
    const amp_model_cuda_grid same[] = {Tiles(20), Tiles(20)}, larger[] = {Tiles(300), Tiles(100)};
    const amp_model_cuda_part parts[] = {{0, 1, 0, 0, 0, same}, {0, 1, 0, 0, 0, larger}};
    amp_model_cuda_kernel k = {};
    k.parts = {parts, 2};
    k.choices = {choices, 2};
    EXPECT_EQ(amp_cuda_launch_choose(&k, 100, 5, kShared).index, 1u) << "one of 226 blocks is large";
    EXPECT_EQ(amp_cuda_launch_choose(&k, 100, 4, kShared).index, 0u);
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
        EXPECT_EQ(amp_cuda_launch_choose(&k, n, 1 << 20, 227 << 10).index, 0u);
        EXPECT_EQ(amp_cuda_launch_choose(&k, n, 1 << 20, (200 << 10) + AMP_CUDA_FIXED_SHARED).index, 0u);
        EXPECT_EQ(amp_cuda_launch_choose(&k, n, 1 << 20, 200 << 10).index, 1u) << "functions have some of their own";
        EXPECT_EQ(amp_cuda_launch_choose(&k, n, 1 << 20, 99 << 10).index, 2u);
        EXPECT_EQ(amp_cuda_launch_choose(&k, n, 1 << 20, 0).index, 2u);
    }
}

} // namespace
