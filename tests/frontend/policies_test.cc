// What `ampc policy` prints, through the library: the list of the built-in policies, one, and what differs between two.
#include <gtest/gtest.h>

#include <fstream>
#include <initializer_list>
#include <string>

#include "amp/compile.h"

namespace {

struct Answer {
    amp_status status;
    std::string told, heard; // the result or the message; the diagnostics
};

template <class Call> Answer Ask(bool json, Call call) {
    Answer a = {};
    amp_compile_result *result = nullptr;
    amp_error err = {};
    amp_policy_options o = {};
    o.struct_size = sizeof o, o.json = json;
    o.diagnostic = [](void *user, const char *text, int32_t) { *static_cast<std::string *>(user) += text; };
    o.user = &a.heard;
    a.status = call(&o, &result, &err);
    EXPECT_EQ(result == nullptr, a.status != AMP_OK);
    a.told = result ? static_cast<const char *>(amp_compile_result_data(result, nullptr)) : err.message;
    amp_compile_result_release(result);
    return a;
}

Answer List(bool json = false) { return Ask(json, amp_policy_list); }
Answer TextOf(const char *policy) {
    return Ask(false, [&](auto *o, auto *out, auto *err) { return amp_policy_text(policy, o, out, err); });
}
Answer Check(const char *policy, bool json = false) {
    return Ask(json, [&](auto *o, auto *out, auto *err) { return amp_policy_check(policy, o, out, err); });
}
Answer Diff(const char *before, const char *after, bool json = false) {
    return Ask(json, [&](auto *o, auto *out, auto *err) { return amp_policy_diff(before, after, o, out, err); });
}

std::string Written(const char *name, const std::string &text) {
    const std::string path = testing::TempDir() + name;
    std::ofstream(path) << text;
    return path;
}

void ExpectAll(const std::string &told, std::initializer_list<const char *> parts) {
    for (const char *part : parts) EXPECT_NE(told.find(part), std::string::npos) << part << "\n" << told;
}

// Each that is built in has a row, with what a person chooses by, and its text is what a compilation reads.
TEST(Policies, TheListHasEach) {
    const std::string text = List().told, json = List(true).told;
    ExpectAll(text,
              {"policy                     version   algorithm   low    default of\n",
               "\ntf32                                 eager       tf32   tf32\n    Everything in f32; products read ",
               "\nfp32                                 eager       f32    fp32\n    Everything in f32.\n"});
    ASSERT_NE(amp_policy_name(0), nullptr);
    EXPECT_EQ(amp_policy_name(-1), nullptr);
    for (int i = 0; amp_policy_name(i); i++) {
        const std::string name = amp_policy_name(i);
        ExpectAll("\n" + text, {("\n" + name + " ").c_str()});
        ExpectAll(json, {("{\"policy\":\"" + name + "\",\"version\":").c_str()});
        EXPECT_EQ(Check(name.c_str()).status, AMP_OK) << name;
        ExpectAll(TextOf(name.c_str()).told, {("policy \"" + name + "\"\n").c_str()});
    }
    ExpectAll(json, {"{\"policies\":[",
                     "\"algorithm\":\"eager\",\"low\":\"tf32\",\"precision\":\"tf32\",\"masters\":null,\"moments\":"
                     "null,\"file\":\"tf32.policy\"",
                     "\"masters\":\"f16(rounding = nearest)\",\"moments\":null,\"file\":\"pure-fp16.policy\"",
                     "\"summary\":\"Everything in f32.\",\"default_of\":[\"fp32\"]"});
    for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
        EXPECT_LE(end - begin, 108u) << text.substr(begin, end - begin);
}

// A copy is the text to the byte, of a newer version by its number too; a damaged file is shown as it is.
TEST(Policies, TheTextIsTheFile) {
    EXPECT_EQ(TextOf("torch-fp16@2.12").told, TextOf("torch-fp16").told);
    EXPECT_NE(TextOf("torch-fp16@2.11").told, TextOf("torch-fp16").told);
    const std::string damaged = Written("damaged.policy", "low = f8\n");
    EXPECT_EQ(TextOf(damaged.c_str()).told, "low = f8\n");
}

TEST(Policies, CheckSaysWhatItIsOrWhatIsWrong) {
    const std::string good = Written("own.policy", "policy \"own\"\nversion 7\nalgorithm eager\nlow = bf16\n"
                                                   "op exp, log f32\nop * follow\n");
    EXPECT_EQ(Check(good.c_str()).told, good +
                                            ": policy \"own\", version 7, algorithm eager, low bf16; it lists 2 names, "
                                            "and all others are follow\n");
    EXPECT_EQ(Check(good.c_str(), true).told,
              "{\"policy\":\"own\",\"version\":\"7\",\"algorithm\":\"eager\",\"low\":\"bf16\",\"precision\":\"bf16\","
              "\"masters\":null,\"moments\":null,\"file\":\"" +
                  good + "\",\"names\":2,\"others\":\"follow\",\"summary\":\"\",\"default_of\":[]}\n");
    const std::string wrong =
        Written("wrong.policy", "policy \"wrong\"\nalgorithm eager\nlow = f16\nop softmx f32\nop exp "
                                "lowr\nop * follow\n");
    const Answer a = Check(wrong.c_str());
    EXPECT_EQ(a.status, AMP_BAD_SOURCE);
    EXPECT_EQ(a.told, wrong + ":4:4: error: unknown op softmx (and 1 more)");
    ExpectAll(a.heard, {":4:4: error: unknown op softmx\n", "help: did you mean softmax?\n",
                        ":5:8: error: unknown class lowr\n"});
}

TEST(Policies, OnesThatAreNotThere) {
    for (const Answer &a : {TextOf("nosuch"), Check("nosuch"), Diff("nosuch", "fp32"), Diff("fp32", "nosuch")}) {
        EXPECT_EQ(a.status, AMP_BAD_SOURCE);
        ExpectAll(a.heard, {"nosuch: error: there is no policy nosuch: neither a built-in one nor a file\n",
                            "help: built-in policies: ", "fp32, "});
    }
    ExpectAll(Check("torch-fp16@9").heard, {"torch-fp16@9: error: policy torch-fp16 has no version 9\n", "2.12"});
    ExpectAll(Check("bf16").heard, {"bf16 is a precision; its policy is min-cast-bf16"});
    const Answer none = Check(nullptr);
    EXPECT_EQ(none.status, AMP_INVALID_ARGUMENT);
    EXPECT_EQ(none.told, "policy is NULL; give a built-in name or a file");
    amp_error err = {};
    amp_compile_result *result = nullptr;
    amp_policy_options wrong = {};
    EXPECT_EQ(amp_policy_check("fp32", nullptr, nullptr, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "amp_policy_check: out is NULL");
    EXPECT_EQ(amp_policy_list(&wrong, &result, &err), AMP_INVALID_ARGUMENT) << "struct_size is 0";
    EXPECT_EQ(amp_policy_diff("fp32", nullptr, nullptr, &result, &err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(result, nullptr);
    EXPECT_EQ(amp_policy_text("fp32", nullptr, &result, &err), AMP_OK) << err.message;
    amp_compile_result_release(result);
}

const char head[] = "algorithm eager\nlow = f16\n";

// A name that one side does not list is decided there by a wider one; a layer that it does not list, by its ops.
TEST(Policies, DiffGoesByWhatDecides) {
    const std::string before = Written("before.policy", std::string("policy \"one\"\n") + head +
                                                            "op exp, softmax f32\nop mean f32\nop cross_entropy f32\n"
                                                            "op einsum f32_out\nop * follow\n");
    const std::string after = Written("after.policy", std::string("version 2\npolicy \"two\"\n") + head +
                                                          "op exp f32_out\nop log follow\nop tanh f32\n"
                                                          "op einsum.mul lower\nop mean, softmax f32\nop * follow\n");
    const std::string told = Diff(before.c_str(), after.c_str()).told;
    ExpectAll(told,
              {("before   " + before).c_str(), " policy one, algorithm eager, low f16\n",
               " policy two, version 2, algorithm eager, low f16\n\nexp                                 f32      ",
               "before.policy:4", "f32_out  ", "after.policy:5\ncross_entropy    ", " -        by its ops\neinsum   ",
               "\ntanh                                follow   ", "before.policy:8 (not listed)",
               "\neinsum.mul                          f32_out  ", "before.policy:7 (not listed)",
               "\n5 of 9 names changed their class\nversion     none -> 2\n"});
    for (const char *same : {"\nmean", "\nsoftmax", "\nlog ", "\n* ", "\nlow ", "\nalgorithm "})
        EXPECT_EQ(told.find(same), std::string::npos) << same << told;
    ExpectAll(
        Diff(before.c_str(), after.c_str(), true).told,
        {"{\"before\":{\"policy\":\"one\",\"version\":null,",
         "\"same\":false,\"names\":9,\"changed\":[{\"name\":\"exp\",",
         "{\"name\":\"cross_entropy\",\"foreign\":false,\"before\":{\"class\":\"f32\",\"line\":6,\"listed\":true},"
         "\"after\":{\"class\":null,\"line\":null,\"listed\":false}}"});
}

// Ops that the language lacks are counted for people, and listed for tools.
TEST(Policies, DiffCountsForeignOps) {
    const std::string before =
        Written("before.policy", std::string("policy \"one\"\n") + head + "op exp, lstm_cell f32\nop * follow\n");
    const std::string after =
        Written("after.policy", std::string("policy \"two\"\n") + head + "op exp lower\nop * follow\n");
    const std::string told = Diff(before.c_str(), after.c_str()).told;
    ExpectAll(told, {"\nexp ",
                     "\n2 of 3 names changed their class, 1 of them ops that no model here has; --json lists them\n"});
    EXPECT_EQ(told.find("lstm_cell"), std::string::npos) << told;
    ExpectAll(Diff(before.c_str(), after.c_str(), true).told,
              {"{\"name\":\"lstm_cell\",\"foreign\":true,\"before\":{\"class\":\"f32\",\"line\":4,\"listed\":true},"
               "\"after\":{\"class\":\"follow\",\"line\":5,\"listed\":false}}"});
}

TEST(Policies, DiffOfTheHead) {
    ExpectAll(Diff("fp32", "tf32").told, {"low         f32 -> tf32   what is lowered has another dtype\n"});
    const std::string cut = Written("cut.policy", "policy \"cut\"\nalgorithm min_cut\nlow = f32\nop * follow\n");
    ExpectAll(Diff("fp32", cut.c_str()).told,
              {"\n* (all other ops)                   f32      fp32.policy:7 ", "follow   ", "1 of 1 names changed",
               "algorithm   eager -> min_cut   ops of the same class may have another dtype\n"});
    const std::string same = Diff("fp32", "fp32").told;
    ExpectAll(same, {"\n\nno difference: 0 of 1 names changed their class\n"});
    ExpectAll(Diff("fp32", "fp32", true).told, {"\"same\":true"});
    const std::string wide = Written("wide.policy", "policy \"wide\"\nalgorithm eager\nlow = f16\nop * lower\n"
                                                    "op accuracy, top_k_accuracy f32_out\nmasters = f16\n");
    const Answer states = Diff(wide.c_str(), "pure-fp16");
    ExpectAll(
        states.told,
        {"low f16, masters f16(rounding = stochastic)\n",
         "\n0 of 3 names changed their class\nmasters     f16(rounding = stochastic) -> f16(rounding = nearest)\n"});
    ExpectAll(Diff(wide.c_str(), "pure-fp16", true).told, {"\"same\":false"});
}

} // namespace
