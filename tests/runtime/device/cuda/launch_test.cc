// launch_test.cc: which function and grid a kernel is launched with, by n and the device.
#include <gtest/gtest.h>

#include "runtime/model/cuda_launch.h"

namespace {

amp_model_cuda_launch Tiles(int64_t per) {
    amp_model_cuda_launch launch = {};
    launch.extent[0] = {3, 1, 1}; // rows, 3 * n
    launch.extent[1] = {300, 1, 0};
    launch.per[0] = launch.per[1] = per;
    return launch;
}

TEST(CudaLaunch, HasBlocksForTheWholeExtentAndAtLeastOne) {
    const amp_model_cuda_launch launch = Tiles(128);
    int64_t grid[3];
    amp_cuda_launch_grid(&launch, 100, grid);
    EXPECT_EQ(grid[0], 3);
    EXPECT_EQ(grid[1], 3);
    EXPECT_EQ(grid[2], 1);
}

TEST(CudaLaunch, TakesTheFirstChoiceThatFillsTheDevice) {
    const amp_model_cuda_choice choices[] = {{7, Tiles(128)}, {8, Tiles(64)}};
    amp_model_cuda_kernel k = {};
    k.function = 9;
    k.launch = Tiles(16);
    EXPECT_EQ(amp_cuda_launch_choose(&k, 1 << 20, 132).function, 9u) << "there is no choice";
    k.choices = choices;
    k.choice_count = 2;
    EXPECT_EQ(amp_cuda_launch_choose(&k, 1, 132).function, 9u);
    EXPECT_EQ(amp_cuda_launch_choose(&k, 1, 132).launch->per[0], 16);
    EXPECT_EQ(amp_cuda_launch_choose(&k, 554, 132).function, 9u); // 26 x 5 tiles of 64
    EXPECT_EQ(amp_cuda_launch_choose(&k, 555, 132).function, 8u); // 27 x 5
    EXPECT_EQ(amp_cuda_launch_choose(&k, 555, 136).function, 9u) << "a larger device";
    EXPECT_EQ(amp_cuda_launch_choose(&k, 1878, 132).function, 7u); // 45 x 3 of 128
    EXPECT_EQ(amp_cuda_launch_choose(&k, 1 << 20, 132).function, 7u);
    EXPECT_EQ(amp_cuda_launch_choose(&k, 1, 1).function, 7u) << "a small device";
}

// Kernels in one launch have their blocks one after another, and choose together.
TEST(CudaLaunch, AddsUpTheBlocksOfParts) {
    const amp_model_cuda_launch rows[] = {Tiles(64), Tiles(128)}, columns[] = {Tiles(100), Tiles(150)};
    const amp_model_cuda_part parts[] = {{0, 0, 0, 0, rows}, {0, 0, 0, 0, columns}};
    const amp_model_cuda_choice choice = {7, Tiles(1)};
    amp_model_cuda_kernel k = {};
    k.function = 9;
    k.parts = parts;
    k.part_count = 2;
    k.choices = &choice;
    k.choice_count = 1;
    amp_cuda_used used = amp_cuda_launch_choose(&k, 100, 14);
    EXPECT_EQ(used.function, 9u); // 3 x 3 and 2 x 2 would be 13
    EXPECT_EQ(used.form, 0u);
    EXPECT_EQ(used.grid[0], 5 * 5 + 3 * 3);
    EXPECT_EQ(used.grid[1], 1);
    EXPECT_EQ(used.grid[2], 1);
    used = amp_cuda_launch_choose(&k, 100, 13);
    EXPECT_EQ(used.function, 7u);
    EXPECT_EQ(used.form, 1u);
    EXPECT_EQ(used.grid[0], 13);
    const amp_cuda_part_place place = amp_cuda_place_part(&k, 0, 1, 100);
    EXPECT_EQ(place.first, 5 * 5);
    EXPECT_EQ(place.x, 3);
    EXPECT_EQ(place.y, 3);
    used = amp_cuda_launch_choose(&k, int64_t{1} << 40, INT32_MAX);
    EXPECT_GT(used.grid[0], INT32_MAX) << "more than CUDA has";
}

// A part of few larger tiles would be at work when all others are done.
TEST(CudaLaunch, EachPartWithLargerTilesHasBlocksEnough) {
    const amp_model_cuda_launch same[] = {Tiles(20), Tiles(20)}, larger[] = {Tiles(100), Tiles(300)};
    const amp_model_cuda_part parts[] = {{0, 0, 0, 0, same}, {0, 0, 0, 0, larger}};
    const amp_model_cuda_choice choice = {7, Tiles(1)};
    amp_model_cuda_kernel k = {};
    k.function = 9;
    k.parts = parts;
    k.part_count = 2;
    k.choices = &choice;
    k.choice_count = 1;
    EXPECT_EQ(amp_cuda_launch_choose(&k, 100, 5).form, 0u) << "one of 226 blocks is large";
    EXPECT_EQ(amp_cuda_launch_choose(&k, 100, 4).form, 1u);
}

} // namespace
