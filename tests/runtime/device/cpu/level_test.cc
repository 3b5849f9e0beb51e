// Which instruction set a model runs in, on machines that are not this one.
#include <gtest/gtest.h>

#include <string>

#include "base/processor.h"
#include "tests/runtime/runtime_c.h"

namespace {

constexpr unsigned kV3 = AMP_CPU_X86_64_V3, kV4 = kV3 | AMP_CPU_X86_64_V4;

// The level's name, or the error.
std::string Choose(unsigned features, const char *isa, const amp_model *model, amp_status expected = AMP_OK) {
    const amp_cpu_level *level = nullptr;
    amp_error err = {};
    const amp_status status = amp_cpu_level_choose(features, isa, model, &level, &err);
    EXPECT_EQ(status, expected) << err.message;
    EXPECT_EQ(amp_cpu_level_choose(features, isa, model, &level, nullptr), expected);
    return status ? err.message : level->name;
}

TEST(Level, IsTheBestOfTheMachine) {
    EXPECT_EQ(Choose(kV4, nullptr, nullptr), "v4");
    EXPECT_EQ(Choose(kV3, nullptr, nullptr), "v3");
    EXPECT_EQ(Choose(0, nullptr, nullptr), "portable");
    EXPECT_EQ(Choose(AMP_CPU_NEON, nullptr, nullptr), "neon");
}

TEST(Level, MayBeNamed) {
    EXPECT_EQ(Choose(kV4, "v3", nullptr), "v3");
    EXPECT_EQ(Choose(kV4, "portable", nullptr), "portable");
    EXPECT_EQ(Choose(kV3, "v4", nullptr, AMP_UNSUPPORTED), "isa v4: this processor does not have it");
    EXPECT_EQ(Choose(kV4, "v5", nullptr, AMP_NOT_FOUND),
              "unknown isa v5; use portable, v3 or v4 (x86-64), or neon (AArch64)");
}

// A model of ampc --isa native.
struct Native {
    amp_model model = {};
    explicit Native(int isa) {
        model.desc.name = "net";
        model.lowest_isa = model.largest_isa = isa;
    }
};

TEST(Level, OfAModelOfOneSet) {
    const Native v4(AMP_ISA_V4), v3(AMP_ISA_V3), portable(AMP_ISA_PORTABLE);
    EXPECT_EQ(Choose(kV4, nullptr, &v4.model), "v4");
    EXPECT_EQ(Choose(kV4, nullptr, &v3.model), "v4") << "its kernels of v3, and products of v4";
    EXPECT_EQ(Choose(kV4, "v3", &v3.model), "v3");
    EXPECT_EQ(Choose(0, nullptr, &portable.model), "portable");
    EXPECT_EQ(Choose(AMP_CPU_NEON, nullptr, &portable.model), "neon");
    EXPECT_EQ(Choose(kV3, nullptr, &v4.model, AMP_UNSUPPORTED),
              "model net was compiled for the instruction set v4 alone (ampc --isa native), which this processor does "
              "not have; compile it on this machine, or without --isa native for every machine");
    EXPECT_EQ(Choose(0, nullptr, &v3.model, AMP_UNSUPPORTED),
              "model net was compiled for the instruction set v3 alone (ampc --isa native), which this processor does "
              "not have; compile it on this machine, or without --isa native for every machine");
    EXPECT_EQ(Choose(kV4, "v3", &v4.model, AMP_UNSUPPORTED),
              "isa v3: model net was compiled for v4 alone (ampc --isa native); compile it without --isa native");
}

} // namespace
