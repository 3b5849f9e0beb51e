// Which kernels amp_product_select gives, and what it says where it gives none.
#include <gtest/gtest.h>

#include "base/processor.h"
#include "tests/runtime/device/cpu/packed_operands.h"

namespace {

TEST(ProductSelect, PortableRunsEverywhere) {
    for (amp_dtype operand : {AMP_DT_F32, AMP_DT_BF16}) {
        const amp_product_kernels *kernels = amp_product_select(operand, "portable", nullptr);
        ASSERT_NE(kernels, nullptr);
        EXPECT_STREQ(kernels->name, "portable");
        EXPECT_EQ(kernels->operand, operand);
    }
}

TEST(ProductSelect, BestIsTheLastThatTheMachineRuns) {
    for (amp_dtype operand : {AMP_DT_F32, AMP_DT_BF16}) {
        const amp_product_kernels *best = nullptr;
        for (const char *isa : {"portable", "avx2", "avx512", "avx512_bf16"})
            if (const amp_product_kernels *kernels = amp_product_select(operand, isa, nullptr)) best = kernels;
        if (amp_product_has_slow_bf16()) continue;
        EXPECT_EQ(amp_product_select(operand, nullptr, nullptr), best);
    }
}

// By a table of processors: whether its bf16 instruction is slow never depends on a clock.
TEST(ProductSelect, SlowBf16IsMultipliedAsF32) {
    EXPECT_EQ(amp_product_bf16_is_slow("GenuineIntel", 0x000c06f2), true) << "Emerald Rapids";
    EXPECT_EQ(amp_product_bf16_is_slow("GenuineIntel", 0x000806f8), true) << "Sapphire Rapids";
    EXPECT_EQ(amp_product_bf16_is_slow("GenuineIntel", 0x0005065b), false) << "Cooper Lake";
    EXPECT_EQ(amp_product_bf16_is_slow("AuthenticAMD", 0x00a10f11), false) << "Zen 4";
    EXPECT_EQ(amp_product_bf16_is_slow("AuthenticAMD", 0x000c06f2), false) << "another vendor";
#ifdef __x86_64__
    const unsigned has = AMP_CPU_X86_64_V3 | AMP_CPU_X86_64_V4 | AMP_CPU_AVX512_BF16;
    const auto name = [](bool slow, amp_dtype operand, const char *isa) {
        return std::string(amp_product_select_for(has, slow, operand, isa, nullptr)->name);
    };
    EXPECT_EQ(name(false, AMP_DT_BF16, nullptr), "avx512_bf16");
    EXPECT_EQ(name(true, AMP_DT_BF16, nullptr), "avx512");
    EXPECT_EQ(name(true, AMP_DT_F32, nullptr), "avx512");
    EXPECT_EQ(name(true, AMP_DT_BF16, "avx512_bf16"), "avx512_bf16") << "who asks for it gets it";
#endif
}

TEST(ProductSelect, F32HasNoBf16Instructions) {
    const amp_product_kernels *kernels = amp_product_select(AMP_DT_F32, "avx512_bf16", nullptr);
    if (!kernels) GTEST_SKIP() << "this machine has no AVX-512 BF16";
    EXPECT_STREQ(kernels->name, "avx512");
}

TEST(ProductSelect, UnknownNameIsNotFound) {
    amp_error err;
    EXPECT_EQ(amp_product_select(AMP_DT_F32, "avx1024", &err), nullptr);
    EXPECT_EQ(err.code, AMP_NOT_FOUND);
    EXPECT_NE(std::string(err.message).find("\"avx1024\""), std::string::npos) << err.message;
    EXPECT_NE(std::string(err.message).find("\"portable\""), std::string::npos) << err.message;
}

TEST(ProductSelect, OtherOperandsAreRefused) {
    amp_error err;
    for (amp_dtype operand : {AMP_DT_NONE, AMP_DT_F16, AMP_DT_TF32, AMP_DT_F64, AMP_DT_I32}) {
        EXPECT_EQ(amp_product_select(operand, nullptr, &err), nullptr);
        EXPECT_EQ(err.code, AMP_INVALID_ARGUMENT);
    }
    amp_product_select(AMP_DT_F16, nullptr, &err);
    EXPECT_STREQ(err.message, "the CPU multiplies matrices of f32 or bf16, not of f16");
}

} // namespace
