// The table of processors whose bf16 instruction is slow (base/processor.c) beside a clock: of the two ways to multiply
// bf16 by AVX-512, the one that it chooses is not the slower one on this machine.
#include <gtest/gtest.h>

#include <time.h>

#include <algorithm>
#include <vector>

#include "runtime/device/cpu/product/product.h"

namespace {

double Seconds() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

constexpr int64_t kRows = 256, kCols = 256, kUnits = 256;

// Operations a second of a product of zeros, the best of some.
double Rate(const amp_product_kernels *kernels) {
    const std::vector<uint32_t> a(kRows * kUnits), b(kUnits * kCols);
    std::vector<float> scratch(amp_product_scratch_bytes(kernels) / sizeof(float) + 16);
    float *aligned = scratch.data() + 16 - reinterpret_cast<uintptr_t>(scratch.data()) / sizeof(float) % 16;
    amp_product p{};
    p.a = a.data(), p.b = b.data();
    p.m = kRows, p.n = kCols, p.k = kUnits;
    p.a_block_stride = kRows * 16, p.a_tile_stride = 32 * 16, p.b_panel_stride = kUnits * 32;
    p.epilogue = [](void *, const float *, int64_t, int64_t, int64_t) {};
    double best = 1e30;
    for (int round = 0; round < 50; round++) {
        const double start = Seconds();
        for (int64_t task = 0; task < amp_product_tasks(&p); task++) amp_product_task(kernels, &p, task, aligned);
        best = std::min(best, Seconds() - start);
    }
    return 4.0 * double(kRows * kCols * kUnits) / best;
}

TEST(Bf16Rate, TheTableChoosesTheFasterWay) {
    const amp_product_kernels *by_bf16 = amp_product_select(AMP_DT_BF16, "avx512_bf16", nullptr),
                              *by_f32 = amp_product_select(AMP_DT_BF16, "avx512", nullptr),
                              *chosen = amp_product_select(AMP_DT_BF16, nullptr, nullptr);
    if (!by_bf16) GTEST_SKIP() << "this machine has no AVX512_BF16";
    const double bf16 = Rate(by_bf16), f32 = Rate(by_f32);
    EXPECT_GE(chosen == by_bf16 ? bf16 / f32 : f32 / bf16, 0.95)
        << "bf16 by its instruction: " << bf16 * 1e-9 << " GFLOP/s, as f32: " << f32 * 1e-9;
}

// On every machine: what is widened ahead costs little beside the products.
TEST(Bf16Rate, WidenedProductsHaveNearlyTheRateOfF32) {
    const amp_product_kernels *kernels = amp_product_select(AMP_DT_BF16, nullptr, nullptr);
    if (!kernels->widening) GTEST_SKIP() << "bf16 are not widened ahead on this machine";
    double ratio = 0; // a unit of f32 is half the work; others compute here, too
    for (int attempt = 0; attempt < 5 && ratio < 0.85; attempt++)
        ratio = std::max(ratio, Rate(kernels) / (Rate(kernels->widening->f32) / 2));
    EXPECT_GE(ratio, 0.85);
}

} // namespace
