// Attention by tiles: the memory of a session grows with the length, not with its square; threads change no bit,
// whichever way the backward pass is divided; IR that has it in one piece is the CPU's.
#include "tests/e2e/harness.h"

namespace {

using e2e::Training;

std::string attends(int length, const std::string &precision = "fp32") {
    const std::string t = std::to_string(length);
    return "amp 1\nmodel attends(x: f32[N, " + t + " * 16]) -> logits {\n    h = linear(reshape(x; shape = [N, " + t +
           ", 16]); out = 32) as fc\n    h = h + (self_attention(h; heads = 2, causal = true, p = 0.2) as attn)\n"
           "    logits = linear(mean(h; dims = (1)); out = 10) as head\n}\n"
           "train attends {\n    input targets: i32[N]\n    loss = cross_entropy(logits, targets)\n"
           "    optimizer = adamw(lr = 0.01)\n}\nprecision " +
           precision + " { }\n";
}

size_t memory(int length) {
    std::string path = e2e::compile_to_file(attends(length), "attends-" + std::to_string(length) + ".so");
    Training r(path, 2, 2);
    EXPECT_TRUE(r.ok());
    amp_memory_info m = {};
    amp_session_get_memory(r.session, &m);
    return m.total;
}

TEST(Attention, MemoryGrowsWithTheLength) {
    const size_t one = memory(512), two = memory(1024), four = memory(2048);
    EXPECT_LT(four - two, 21 * (two - one) / 10);
    EXPECT_LT(four, (size_t)2048 * 2048 * 4); // less than the scores of one head
}

// 4 heads: d k and d v by blocks of keys, d q by groups of queries; 300 heads: one walk each.
TEST(Attention, ThreadsDoNotChangeBits) {
    amp_compile_options options = {};
    options.isa = "v4"; // and those below
    for (const char *precision : {"fp32", "bf16", "fp16"}) {
        std::string path =
            e2e::compile_to_file(attends(70, precision), std::string("attends-") + precision + ".so", options);
        for (int64_t n : {2, 150}) {
            std::vector<float> one;
            for (int threads : {1, 3}) {
                Training r(path, 150, threads);
                ASSERT_TRUE(r.ok());
                e2e::train(r, 2, n, 70 * 16);
                if (threads == 1) one = e2e::all_params(r);
                else EXPECT_TRUE(e2e::same_bits(one, e2e::all_params(r))) << precision << ", " << threads << " threads";
            }
        }
    }
}

TEST(Attention, InOnePieceIsTheTargetsOwn) {
    amp_compile_options ir = {}, cuda = {}, cpu = {};
    ir.emit = AMP_EMIT_IR, ir.stop_after = "lower", ir.target = "cpu";
    cuda.target = "cuda", cpu.target = "cpu";
    e2e::Compiled lowered = e2e::compile(attends(8), ir);
    ASSERT_EQ(lowered.status, AMP_OK) << lowered.message;
    EXPECT_NE(lowered.bytes.find("attend_grad("), std::string::npos);
    EXPECT_EQ(e2e::compile(lowered.bytes, cpu, "lower.ir").status, AMP_OK);
    e2e::Compiled both = e2e::compile(lowered.bytes, {}, "lower.ir"),
                  only = e2e::compile(lowered.bytes, cuda, "lower.ir");
    EXPECT_EQ(both.status, AMP_OK) << both.message;
    EXPECT_NE(both.diagnostics.find("the model gets no CUDA code: with attention, from stage lower on IR is one"),
              std::string::npos)
        << both.diagnostics;
    EXPECT_EQ(only.status, AMP_INVALID_ARGUMENT);
    EXPECT_NE(only.message.find("start from stage simplify or before"), std::string::npos) << only.message;
    cuda.emit = AMP_EMIT_IR;
    e2e::Compiled dumped = e2e::compile(lowered.bytes, cuda, "lower.ir");
    EXPECT_EQ(dumped.status, AMP_BAD_SOURCE);
    EXPECT_NE((dumped.diagnostics + dumped.message).find("has no kernel for attention in one piece"), std::string::npos)
        << dumped.diagnostics << dumped.message;
    ir.target = "cuda";
    e2e::Compiled products = e2e::compile(attends(8), ir);
    EXPECT_EQ(products.bytes.find("attend("), std::string::npos);
    EXPECT_NE(products.bytes.find("batch_contract("), std::string::npos);
}

} // namespace
