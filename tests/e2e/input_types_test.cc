// Inputs of low types: a model that reads f16 or bf16 does what it does with the same numbers as f32.
#include "tests/e2e/harness.h"

namespace {

using e2e::Training;

constexpr int kSamples = 21, kWidth = 19, kSteps = 2;

struct Type {
    const char *name;
    int exponent_bits, mantissa_bits;
};
constexpr Type kHalf = {"f16", 5, 10}, kBfloat = {"bf16", 8, 7};

// The bits of v, one of 1/64 to 127/64 with either sign and seven significant bits at most, which every type holds.
uint16_t Encode(const Type &type, float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    if (!(bits << 1)) return 0;
    int32_t exponent = static_cast<int32_t>(bits >> 23 & 0xff) - 127 + (1 << (type.exponent_bits - 1)) - 1;
    uint32_t mantissa = (bits & 0x7fffff) >> (23 - type.mantissa_bits);
    return static_cast<uint16_t>(bits >> 31 << 15 | static_cast<uint32_t>(exponent) << type.mantissa_bits | mantissa);
}

std::string Model(const std::string &type, const std::string &precision) {
    return "amp 1\nmodel m(x: " + type +
           "[N, 19]) -> y {\n    y = linear(relu(linear(x; out = 33) as fc1) + (linear(layer_norm(x) as ln; out = 33) "
           "as fc2); out = 10) as fc3\n}\n"
           "train m {\n    input labels: i32[N]\n    loss = cross_entropy(y, labels)\n"
           "    optimizer = adamw(lr = 0.01)\n}\nprecision " +
           precision + " { }\n";
}

// Parameters after some steps.
std::vector<float> Trained(const Type *type, const std::string &precision) {
    Training r(e2e::compile_to_file(Model(type ? type->name : "f32", precision), "input_types.so"), kSamples);
    if (!r.ok()) return {};
    for (uint32_t step = 0; step < kSteps; step++) {
        e2e::Batch batch(kSamples, kWidth, 10, 7 + step);
        std::vector<uint16_t> low;
        for (float &x : batch.x) {
            x = static_cast<float>(static_cast<int>(x * 127)) / 64;
            if (type) low.push_back(Encode(*type, x));
        }
        const void *inputs[] = {type ? static_cast<const void *>(low.data()) : batch.x.data(), batch.y.data()};
        EXPECT_EQ(amp_step(r.session, inputs, {kSamples, 0}, nullptr, &r.err), AMP_OK) << r.err.message;
    }
    return e2e::all_params(r);
}

class InputTypes : public e2e::OnDevice {};

TEST_F(InputTypes, LowOnesAreTakenAsTheyAre) {
    for (const std::string precision : {"fp32", "fp16", "bf16"}) {
        const std::vector<float> wanted = Trained(nullptr, precision);
        ASSERT_FALSE(wanted.empty());
        for (const Type *type : {&kHalf, &kBfloat})
            EXPECT_TRUE(e2e::same_bits(Trained(type, precision), wanted)) << type->name << " in " << precision;
    }
}

// So that a host knows what to hand over.
TEST_F(InputTypes, AreInTheSignature) {
    Training r(e2e::compile_to_file(Model("bf16", "fp32"), "input_types.so"), 1);
    ASSERT_TRUE(r.ok());
    amp_tensor_info x;
    ASSERT_EQ(amp_model_input_at(r.model, 0, {1, 0}, &x, &r.err), AMP_OK) << r.err.message;
    EXPECT_EQ(x.dtype, AMP_DT_BF16);
}

} // namespace
