// The learning rate that the program sets: the bits of a rate in the text, at every step; in checkpoints; by block.
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

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

double Scale(const Training &t, int32_t group) {
    double scale = -1;
    EXPECT_EQ(amp_session_get_lr_scale(t.session, group, &scale, nullptr), AMP_OK);
    return scale;
}

// |steps| steps, with the rate of |rates| before each where there are some.
std::vector<float> Trained(Training &t, int steps, const std::vector<double> &rates = {}) {
    for (int i = 0; i < steps; i++) {
        Batch b(11, 7, 3, (unsigned)(i + 1));
        if (!rates.empty()) {
            EXPECT_EQ(amp_session_set_lr(t.session, 0, rates[(size_t)i], &t.err), AMP_OK) << t.err.message;
        }
        EXPECT_EQ(amp_step(t.session, b.inputs(), {11, 0}, nullptr, &t.err), AMP_OK) << t.err.message;
    }
    return all_params(t);
}

TEST_F(LearningRate, HasTheBitsOfASchedule) {
    Training text(compile_to_file(With("fp16", "adamw(lr = step(base = 0.02, every = 2, gamma = 0.5))"), "text.so"),
                  16);
    ASSERT_TRUE(text.ok());
    std::vector<float> expected = Trained(text, 5);
    for (const char *lr : {"0.5", "settable(0.5)", "constant(0.5)", "cosine(peak = 0.5, warmup = 3, steps = 9)"}) {
        Training set(compile_to_file(With("fp16", "adamw(lr = " + std::string(lr) + ")"), "set.so"), 16);
        ASSERT_TRUE(set.ok());
        EXPECT_EQ(Trained(set, 5, {0.02, 0.02, 0.01, 0.01, 0.005}), expected) << lr;
        EXPECT_EQ(Rate(set), 0.005);
    }
}

TEST_F(LearningRate, IsTheNumberOfTheTextUntilItIsSet) {
    if (device()) GTEST_SKIP() << "the same on the device";
    for (const char *rest :
         {"sgd(lr = %s, momentum = 0.9, weight_decay = 0.1)", "adamw(lr = %s, weight_decay = 0.1)"}) {
        char number[128], schedule[128];
        snprintf(number, sizeof number, rest, "0.03");
        snprintf(schedule, sizeof schedule, rest, "step(base = 0.03, every = 9, gamma = 0.5)");
        Training a(compile_to_file(With("fp16", number), "number.so"), 16);
        Training b(compile_to_file(With("fp16", schedule), "schedule.so"), 16);
        ASSERT_TRUE(a.ok() && b.ok());
        EXPECT_EQ(Rate(a), 0.03);
        EXPECT_EQ(Trained(a, 3), Trained(b, 3)) << number;
        std::vector<float> before = all_params(a);
        EXPECT_EQ(Trained(a, 2, {0, 0}), before) << "a rate of 0 keeps the weights";
        EXPECT_EQ(Trained(b, 2, {0, 0}), before) << "beside a schedule, too";
    }
}

// The schedule goes on counting; the rate comes back where it would have been.
TEST_F(LearningRate, ReplacesAScheduleUntilItIsGivenBack) {
    if (device()) GTEST_SKIP() << "the same on the device";
    Training t(compile_to_file(With("fp32", "sgd(lr = step(base = 0.5, every = 2, gamma = 0.5))"), "given.so"), 16);
    ASSERT_TRUE(t.ok());
    EXPECT_EQ(Rate(t), 0) << "no step yet";
    Trained(t, 1);
    EXPECT_EQ(Rate(t), 0.5);
    Trained(t, 3, {0.75, 0.25, 0.125});
    EXPECT_EQ(Rate(t), 0.125);
    ASSERT_EQ(amp_session_set_lr(t.session, 0, AMP_LR_OF_MODEL, &t.err), AMP_OK) << t.err.message;
    EXPECT_EQ(Rate(t), 0.25) << "what the schedule said in the last step";
    Trained(t, 1);
    EXPECT_EQ(Rate(t), 0.125) << "the fifth step";
}

TEST_F(LearningRate, IsInCheckpoints) {
    if (device()) GTEST_SKIP() << "the same on the device";
    for (const char *optimizer : {"adamw(lr = 0.5)", "adamw(lr = linear(peak = 0.5, warmup = 2, steps = 9))"}) {
        std::string path = compile_to_file(With("fp32", optimizer), "kept.so"), file = temp_path("kept.ck");
        Training a(path, 16), b(path, 16);
        ASSERT_TRUE(a.ok() && b.ok());
        Trained(a, 2, {0.01, 0.02});
        ASSERT_EQ(amp_checkpoint_save(a.session, file.c_str(), nullptr, &a.err), AMP_OK) << a.err.message;
        ASSERT_EQ(amp_checkpoint_load(b.session, file.c_str(), nullptr, 0, &b.err), AMP_OK) << b.err.message;
        EXPECT_EQ(Rate(b), 0.02);
        EXPECT_EQ(Trained(a, 2), Trained(b, 2));
    }
}

// So a text that is changed between two runs counts, unless the program set the rate.
TEST_F(LearningRate, OfTheTextIsInNoCheckpoint) {
    if (device()) GTEST_SKIP() << "the same on the device";
    std::string file = temp_path("text.ck"), group = "\n    group \"*.bias\": lr_scale = ";
    Training a(compile_to_file(With("fp32", "sgd(lr = 0.5)" + group + "0.5"), "first.so"), 16);
    Training b(compile_to_file(With("fp32", "sgd(lr = 0.25)" + group + "0.125"), "second.so"), 16);
    ASSERT_TRUE(a.ok() && b.ok());
    Trained(a, 1);
    ASSERT_EQ(amp_session_set_lr(b.session, 0, 0.125, &b.err), AMP_OK) << b.err.message;
    ASSERT_EQ(amp_checkpoint_save(a.session, file.c_str(), nullptr, &a.err), AMP_OK) << a.err.message;
    ASSERT_EQ(amp_checkpoint_load(b.session, file.c_str(), nullptr, 0, &b.err), AMP_OK) << b.err.message;
    EXPECT_EQ(Rate(b), 0.25) << "loading drops what was set before";
    EXPECT_EQ(Scale(b, 0), 0.125);
    ASSERT_EQ(amp_session_set_lr_scale(a.session, 0, 0.75, &a.err), AMP_OK) << a.err.message;
    ASSERT_EQ(amp_checkpoint_save(a.session, file.c_str(), nullptr, &a.err), AMP_OK) << a.err.message;
    ASSERT_EQ(amp_checkpoint_load(b.session, file.c_str(), nullptr, 0, &b.err), AMP_OK) << b.err.message;
    EXPECT_EQ(Rate(b), 0.25);
    EXPECT_EQ(Scale(b, 0), 0.75);
}

TEST_F(LearningRate, SaysWhatCannotBeSet) {
    if (device()) GTEST_SKIP() << "the same on the device";
    Training set(compile_to_file(With("fp32", "sgd(lr = 0.1)\n    group \"*.bias\": weight_decay = 0.0"), "set.so"),
                 16);
    ASSERT_TRUE(set.ok());
    for (double wrong : {-0.5, (double)NAN, (double)INFINITY})
        EXPECT_EQ(amp_session_set_lr(set.session, 0, wrong, &set.err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_session_set_lr(set.session, 1, 0.1, &set.err), AMP_INVALID_ARGUMENT);
    EXPECT_NE(strstr(set.err.message, "train block 1 trains nothing, or is none"), nullptr) << set.err.message;
    EXPECT_EQ(amp_session_set_lr(set.session, -1, 0.1, &set.err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_session_set_lr_scale(set.session, 0, 0.1, &set.err), AMP_INVALID_ARGUMENT);
    EXPECT_NE(strstr(set.err.message, "write `lr_scale = 1.0` in its line"), nullptr) << set.err.message;
    EXPECT_EQ(Rate(set), 0.1);
}

// Two blocks, and groups of both.
std::string Two(const char *left, const char *right, const char *left_bias, const char *right_bias) {
    return std::string("amp 1\nmodel two(x: f32[N, 7]) -> a, b {\n    a = linear(x; out = 3) as left\n"
                       "    b = linear(x; out = 3) as right\n}\ntrain two for \"left.*\" {\n    input t: i32[N]\n"
                       "    loss = cross_entropy(a, t)\n    optimizer = sgd(lr = ") +
           left + ")\n    group \"*.bias\": lr_scale = " + left_bias +
           "\n}\ntrain two for \"right.*\" {\n    input u: i32[N]\n    loss = cross_entropy(b, u)\n"
           "    optimizer = adamw(lr = " +
           right + ")\n    group \"*.weight\": weight_decay = 0.1\n    group \"*.bias\": lr_scale = " + right_bias +
           ", weight_decay = 0.0\n}\nprecision fp16 { }\n";
}

std::vector<float> TrainTwo(Training &t) {
    for (unsigned i = 0; i < 3; i++) {
        Batch b(11, 7, 3, i + 1);
        const void *inputs[] = {b.x.data(), b.y.data(), b.y.data()};
        EXPECT_EQ(amp_step(t.session, inputs, {11, 0}, nullptr, &t.err), AMP_OK) << t.err.message;
    }
    return all_params(t);
}

TEST_F(LearningRate, IsOfABlockAndOfAGroup) {
    Training fixed(compile_to_file(Two("0.1", "step(base = 0.25, every = 9, gamma = 0.5)", "0.5", "0.0"), "two.so"),
                   16);
    Training set(compile_to_file(Two("1.0", "settable(1.0)", "2.0", "1.0"), "of.so"), 16);
    ASSERT_TRUE(fixed.ok() && set.ok());
    ASSERT_EQ(amp_session_set_lr(set.session, 0, 0.1, &set.err), AMP_OK) << set.err.message;
    ASSERT_EQ(amp_session_set_lr(set.session, 1, 0.25, &set.err), AMP_OK) << set.err.message;
    ASSERT_EQ(amp_session_set_lr_scale(set.session, 0, 0.5, &set.err), AMP_OK) << set.err.message;
    EXPECT_EQ(amp_session_set_lr_scale(set.session, 1, 0.5, &set.err), AMP_INVALID_ARGUMENT) << "sets no lr_scale";
    ASSERT_EQ(amp_session_set_lr_scale(set.session, 2, 0, &set.err), AMP_OK) << set.err.message;
    EXPECT_EQ(Rate(set, 0), 0.1);
    EXPECT_EQ(Rate(set, 1), 0.25);
    EXPECT_EQ(Scale(set, 0), 0.5);
    EXPECT_EQ(Scale(set, 2), 0);
    EXPECT_EQ(TrainTwo(fixed), TrainTwo(set));
    ASSERT_EQ(amp_session_set_lr_scale(set.session, 0, AMP_LR_OF_MODEL, &set.err), AMP_OK) << set.err.message;
    EXPECT_EQ(Scale(set, 0), 2.0);
}

// The block's rate is another's: a program sets the group's factor.
TEST_F(LearningRate, OfAGroupsOptimizerIsTheTextsTimesItsFactor) {
    const auto model = [](const char *group, const char *name) {
        return compile_to_file(With("fp16", std::string("sgd(lr = 0.1)\n    group \"*.weight\": optimizer = ") + group),
                               name);
    };
    Training fixed(model("adamw(lr = 0.02)", "fixed.so"), 16),
        set(model("adamw(lr = 1.0), lr_scale = 0.5", "of.so"), 16);
    ASSERT_TRUE(fixed.ok() && set.ok());
    ASSERT_EQ(amp_session_set_lr_scale(set.session, 0, 0.02, &set.err), AMP_OK) << set.err.message;
    EXPECT_EQ(Trained(fixed, 3), Trained(set, 3));
    EXPECT_EQ(Rate(set), 0.1);
    amp_param_training weight, bias;
    ASSERT_EQ(amp_model_param_training_at(set.model, 0, &weight, &set.err), AMP_OK) << set.err.message;
    ASSERT_EQ(amp_model_param_training_at(set.model, 1, &bias, &set.err), AMP_OK) << set.err.message;
    EXPECT_EQ(strncmp(weight.optimizer, "adamw(lr = 1.0", 14), 0) << weight.optimizer;
    EXPECT_EQ(strncmp(bias.optimizer, "sgd(lr = 0.1", 12), 0) << bias.optimizer;
    EXPECT_EQ(weight.optimizer_group, 0);
    EXPECT_EQ(bias.optimizer_group, -1);
    amp_group_info group;
    ASSERT_EQ(amp_model_group_at(set.model, 0, &group, &set.err), AMP_OK) << set.err.message;
    EXPECT_EQ(group.sets_optimizer, 1);
}

// As the f32 that a step computes with.
TEST_F(LearningRate, IsFinite) {
    if (device()) GTEST_SKIP() << "the same on the device";
    Training t(compile_to_file(Two("0.1", "step(base = 0.25, every = 9, gamma = 0.5)", "0.5", "0.0"), "finite.so"), 16);
    ASSERT_TRUE(t.ok());
    const char *message = "it must be at least 0, and finite as an f32: at most 3.4e38";
    for (double wrong : {3.5e38, 1e39, 1e308, std::numeric_limits<double>::infinity(), std::nan(""), -0.5, -1e-300}) {
        for (int block : {0, 1}) {
            EXPECT_EQ(amp_session_set_lr(t.session, block, wrong, &t.err), AMP_INVALID_ARGUMENT) << wrong;
            EXPECT_NE(std::string(t.err.message).find(message), std::string::npos) << t.err.message;
        }
        EXPECT_EQ(amp_session_set_lr_scale(t.session, 0, wrong, &t.err), AMP_INVALID_ARGUMENT) << wrong;
        EXPECT_NE(std::string(t.err.message).find(message), std::string::npos) << t.err.message;
    }
    EXPECT_EQ(Rate(t, 0), 0.1);
    EXPECT_EQ(Scale(t, 0), 0.5);
    EXPECT_EQ(amp_session_set_lr(t.session, 0, 3.4e38, &t.err), AMP_OK) << t.err.message;
    // in a checkpoint
    const double rate = 0.123456789, large = 1e39;
    const std::string path = temp_path("large.st");
    ASSERT_EQ(amp_session_set_lr(t.session, 0, rate, &t.err), AMP_OK) << t.err.message;
    ASSERT_EQ(amp_checkpoint_save(t.session, path.c_str(), nullptr, &t.err), AMP_OK) << t.err.message;
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    std::string bytes = text.str();
    const size_t at = bytes.find(std::string(reinterpret_cast<const char *>(&rate), sizeof rate));
    ASSERT_NE(at, std::string::npos);
    bytes.replace(at, sizeof large, reinterpret_cast<const char *>(&large), sizeof large);
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_EQ(amp_checkpoint_load(t.session, path.c_str(), nullptr, 0, &t.err), AMP_BAD_FILE) << t.err.message;
    EXPECT_EQ(Rate(t, 0), rate);
}

// What a program reads to find the group that it wants to set.
TEST(ModelTraining, SaysWhichBlockAndGroupsAParameterHas) {
    if (device()) GTEST_SKIP();
    Training t(compile_to_file(Two("0.1", "0.2", "0.5", "0.0"), "facts.so"), 8);
    ASSERT_TRUE(t.ok());
    std::map<std::string, amp_param_training> facts;
    amp_tensor_info info;
    for (int i = 0; !amp_model_param_at(t.model, i, &info, nullptr); i++)
        ASSERT_EQ(amp_model_param_training_at(t.model, i, &facts[info.name], &t.err), AMP_OK) << t.err.message;
    ASSERT_EQ(facts.size(), 4u);
    const struct {
        const char *name, *only;
        int32_t block, lr_scale, weight_decay;
    } want[] = {{"left.weight", "left.*", 0, -1, -1},
                {"left.bias", "left.*", 0, 0, -1},
                {"right.weight", "right.*", 1, -1, 1},
                {"right.bias", "right.*", 1, 2, 2}};
    for (const auto &w : want) {
        const amp_param_training &f = facts[w.name];
        EXPECT_EQ(f.trained, 1) << w.name;
        EXPECT_EQ(f.block, w.block) << w.name;
        EXPECT_STREQ(f.only, w.only);
        EXPECT_EQ(f.lr_scale_group, w.lr_scale) << w.name;
        EXPECT_EQ(f.weight_decay_group, w.weight_decay) << w.name;
        EXPECT_EQ(f.frozen_group, -1);
    }
    EXPECT_EQ(strncmp(facts["right.bias"].optimizer, "adamw(lr = 0.2", 14), 0) << facts["right.bias"].optimizer;
    amp_group_info group;
    ASSERT_EQ(amp_model_group_at(t.model, 1, &group, &t.err), AMP_OK) << t.err.message;
    EXPECT_STREQ(group.pattern, "*.weight");
    EXPECT_EQ(group.block, 1);
    EXPECT_EQ(group.sets_lr_scale, 0);
    EXPECT_EQ(group.sets_weight_decay, 1);
    EXPECT_EQ(group.weight_decay, 0.1);
    EXPECT_EQ(group.line, 16);
    EXPECT_EQ(group.sets_optimizer, 0);
    EXPECT_EQ(facts["right.bias"].optimizer_group, -1);
    EXPECT_EQ(amp_model_group_at(t.model, 3, &group, &t.err), AMP_INVALID_ARGUMENT);
}

} // namespace
