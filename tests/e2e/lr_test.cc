// The learning rate that the program sets: the bits of a rate in the text, at every step; in checkpoints; by block.
#include <cmath>

#include "tests/e2e/harness.h"

namespace {

using namespace e2e;

class LearningRate : public OnDevice {};

std::string With(const char *precision, const std::string &optimizer) { return mlp(precision, 7, 9, 3, optimizer); }

double Rate(const Training &t, int32_t block = 0) {
    double lr = -1;
    EXPECT_EQ(amp_session_get_lr(t.session, block, &lr, nullptr), AMP_OK);
    return lr;
}

// |steps| steps, with the rate of |rates| before each where there are some.
std::vector<float> Trained(Training &t, int steps, const std::vector<double> &rates = {}) {
    for (int i = 0; i < steps; i++) {
        Batch b(11, 7, 3, (unsigned)(i + 1));
        if (!rates.empty()) {
            EXPECT_EQ(amp_session_set_lr(t.session, 0, rates[(size_t)i], &t.err), AMP_OK) << t.err.message;
        }
        EXPECT_EQ(amp_step(t.session, b.inputs(), 11, nullptr, &t.err), AMP_OK) << t.err.message;
    }
    return all_params(t);
}

TEST_F(LearningRate, HasTheBitsOfASchedule) {
    Training text(compile_to_file(With("fp16", "adamw(lr = step(base = 0.02, every = 2, gamma = 0.5))"), "text.so"),
                  16);
    Training set(compile_to_file(With("fp16", "adamw(lr = settable(0.5))"), "set.so"), 16);
    ASSERT_TRUE(text.ok() && set.ok());
    EXPECT_EQ(Rate(set), 0.5);
    EXPECT_EQ(Trained(text, 5), Trained(set, 5, {0.02, 0.02, 0.01, 0.01, 0.005}));
    EXPECT_EQ(Rate(set), 0.005);
}

TEST_F(LearningRate, IsTheNumberOfTheTextUntilItIsSet) {
    if (device()) GTEST_SKIP() << "the same on the device";
    for (const char *rest : {"sgd(lr = %s)", "sgd(lr = %s, momentum = 0.9, weight_decay = 0.1)", "adam(lr = %s)",
                             "adamw(lr = %s, weight_decay = 0.1)"}) {
        char number[128], settable[128];
        snprintf(number, sizeof number, rest, "0.03");
        snprintf(settable, sizeof settable, rest, "settable(0.03)");
        Training a(compile_to_file(With("fp16", number), "number.so"), 16);
        Training b(compile_to_file(With("fp16", settable), "settable.so"), 16);
        ASSERT_TRUE(a.ok() && b.ok());
        EXPECT_EQ(Trained(a, 3), Trained(b, 3)) << settable;
        std::vector<float> before = all_params(b);
        EXPECT_EQ(Trained(b, 2, {0, 0}), before) << "a rate of 0 keeps the weights";
    }
}

TEST_F(LearningRate, IsInCheckpoints) {
    if (device()) GTEST_SKIP() << "the same on the device";
    std::string path = compile_to_file(With("fp32", "adamw(lr = settable(0.5))"), "kept.so"),
                file = temp_path("kept.ck");
    Training a(path, 16), b(path, 16);
    ASSERT_TRUE(a.ok() && b.ok());
    Trained(a, 2, {0.01, 0.02});
    ASSERT_EQ(amp_checkpoint_save(a.session, file.c_str(), nullptr, &a.err), AMP_OK) << a.err.message;
    ASSERT_EQ(amp_checkpoint_load(b.session, file.c_str(), nullptr, 0, &b.err), AMP_OK) << b.err.message;
    EXPECT_EQ(Rate(b), 0.02);
    EXPECT_EQ(Trained(a, 2), Trained(b, 2));
}

TEST_F(LearningRate, SaysWhatCannotBeSet) {
    if (device()) GTEST_SKIP() << "the same on the device";
    Training fixed(compile_to_file(With("fp32", "sgd(lr = 0.1)"), "fixed.so"), 16);
    Training set(compile_to_file(With("fp32", "sgd(lr = settable(0.1))"), "set.so"), 16);
    ASSERT_TRUE(fixed.ok() && set.ok());
    EXPECT_EQ(amp_session_set_lr(fixed.session, 0, 0.1, &fixed.err), AMP_UNSUPPORTED);
    EXPECT_NE(strstr(fixed.err.message, "write `lr = settable(0.001)`"), nullptr) << fixed.err.message;
    for (double wrong : {-1.0, (double)NAN, (double)INFINITY})
        EXPECT_EQ(amp_session_set_lr(set.session, 0, wrong, &set.err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_session_set_lr(set.session, 1, 0.1, &set.err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_session_set_lr(set.session, -1, 0.1, &set.err), AMP_INVALID_ARGUMENT);
}

// Two blocks, the second of which is settable, and a group of it with a factor.
TEST_F(LearningRate, IsOfABlock) {
    if (device()) GTEST_SKIP() << "the same on the device";
    auto text = [](const std::string &rate) {
        return "amp 1\nmodel two(x: f32[N, 7]) -> a, b {\n    a = linear(x; out = 3) as left\n"
               "    b = linear(x; out = 3) as right\n}\ntrain two for \"left.*\" {\n    input t: i32[N]\n"
               "    loss = cross_entropy(a, t)\n    optimizer = sgd(lr = 0.1)\n}\n"
               "train two for \"right.*\" {\n    input u: i32[N]\n    loss = cross_entropy(b, u)\n"
               "    optimizer = adamw(lr = " +
               rate + ")\n    group \"*.bias\": lr_scale = 0.5\n}\nprecision fp32 { }\n";
    };
    auto train = [](Training &t) {
        for (unsigned i = 0; i < 3; i++) {
            Batch b(11, 7, 3, i + 1);
            const void *inputs[] = {b.x.data(), b.y.data(), b.y.data()};
            EXPECT_EQ(amp_step(t.session, inputs, 11, nullptr, &t.err), AMP_OK) << t.err.message;
        }
        return all_params(t);
    };
    Training fixed(compile_to_file(text("step(base = 0.25, every = 9, gamma = 0.5)"), "two.so"), 16);
    Training set(compile_to_file(text("settable(1.0)"), "of.so"), 16);
    ASSERT_TRUE(fixed.ok() && set.ok());
    EXPECT_EQ(amp_session_set_lr(set.session, 0, 0.25, &set.err), AMP_INVALID_ARGUMENT);
    EXPECT_NE(strstr(set.err.message, "train block 0 has no settable learning rate"), nullptr) << set.err.message;
    ASSERT_EQ(amp_session_set_lr(set.session, 1, 0.25, &set.err), AMP_OK) << set.err.message;
    EXPECT_EQ(Rate(set, 1), 0.25);
    EXPECT_EQ(train(fixed), train(set));
}

} // namespace
