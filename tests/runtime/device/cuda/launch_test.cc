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
    const amp_model_cuda_choice choices[] = {{7, 0, Tiles(128)}, {8, 0, Tiles(64)}};
    amp_model_cuda_kernel k = {};
    k.function = 9;
    k.launch = Tiles(16);
    EXPECT_EQ(amp_cuda_launch_choose(&k, 1 << 20, 132).function, 9u) << "there is no choice";
    k.choices = choices;
    k.choice_count = 2;
    EXPECT_EQ(amp_cuda_launch_choose(&k, 1, 132).function, 9u);
    EXPECT_EQ(amp_cuda_launch_choose(&k, 1, 132).launch.per[0], 16);
    EXPECT_EQ(amp_cuda_launch_choose(&k, 554, 132).function, 9u); // 26 x 5 tiles of 64
    EXPECT_EQ(amp_cuda_launch_choose(&k, 555, 132).function, 8u); // 27 x 5
    EXPECT_EQ(amp_cuda_launch_choose(&k, 555, 136).function, 9u) << "a larger device";
    EXPECT_EQ(amp_cuda_launch_choose(&k, 1878, 132).function, 7u); // 45 x 3 of 128
    EXPECT_EQ(amp_cuda_launch_choose(&k, 1 << 20, 132).function, 7u);
    EXPECT_EQ(amp_cuda_launch_choose(&k, 1, 1).function, 7u) << "a small device";
}

} // namespace
