// with_fakecuda_test.cc: tools/with-fakecuda, and under it a program that knows nothing of the stand-in.
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "base/json.h"

namespace {

struct Ran {
    int status;
    std::string text;
};

std::string variable(const char *name, const char *otherwise) { return getenv(name) ? getenv(name) : otherwise; }

// The exit status, and stdout and stderr together.
Ran run(const std::string &command) {
    FILE *out = popen(("(" + command + ") 2>&1").c_str(), "r");
    std::string text;
    for (int c; out && (c = fgetc(out)) != EOF;) text += static_cast<char>(c);
    int status = out ? pclose(out) : -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

// Under the address sanitizer without its search for leaks: NVRTC leaves the pool of its own C++ library behind.
std::string tool(const std::string &arguments) {
    return "ASAN_OPTIONS=detect_leaks=0 FAKECUDA_LIBRARY=" + variable("FAKECUDA_LIBRARY", "fakecuda/libcuda.so.1") +
           " tools/with-fakecuda " + arguments;
}

const std::string kProgram = variable("FAKECUDA_POINTWISE", "fakecuda/driver/pointwise");

TEST(WithFakecuda, CommandLine) {
    Ran help = run(tool("--help"));
    EXPECT_EQ(0, help.status);
    EXPECT_NE(std::string::npos, help.text.find("--report FILE")) << help.text;
    EXPECT_EQ(std::string::npos, help.text.find("pipefail")) << help.text;
    EXPECT_EQ(2, run(tool("")).status);
    EXPECT_EQ(2, run(tool("--nothing true")).status);
    EXPECT_EQ(2, run(tool("--arch")).status);
    EXPECT_EQ(2, run("FAKECUDA_LIBRARY=/nowhere/libcuda.so.1 tools/with-fakecuda true").status);
    EXPECT_EQ(2, run("FAKECUDA_LIBRARY=tools/with-fakecuda tools/with-fakecuda true").status);
    EXPECT_EQ(0, run(tool("true")).status);
    EXPECT_EQ(7, run(tool("--arch 80 --verbose sh -c 'exit 7'")).status);
    EXPECT_EQ("80 3 cuInit:1 1 1\n",
              run(tool("--arch 80 --seed 3 --fail cuInit:1 --exact --verbose -- sh -c 'echo $FAKECUDA_ARCH "
                       "$FAKECUDA_SEED $FAKECUDA_FAIL $FAKECUDA_EXACT $FAKECUDA_VERBOSE'"))
                  .text);
}

class Pointwise : public ::testing::Test {
  protected:
    void SetUp() override {
        char folder[] = "/tmp/fakecuda_test_XXXXXX";
        ASSERT_TRUE(mkdtemp(folder));
        folder_ = folder;
        Ran first = run(tool(kProgram));
        if (first.status == 77) GTEST_SKIP() << first.text;
    }
    void TearDown() override {
        unlink((folder_ + "/r.json").c_str());
        rmdir(folder_.c_str());
    }
    // Runs it; its report is in |report_|.
    Ran with(const std::string &options, const std::string &mode = "") {
        Ran ran = run(tool("--report " + folder_ + "/r.json " + options + " " + kProgram + " " + mode));
        std::ifstream in(folder_ + "/r.json");
        std::stringstream text;
        text << in.rdbuf();
        report_ = text.str();
        return ran;
    }
    int64_t total(const char *key) {
        amp_json_document *document = nullptr;
        amp_error error = {};
        EXPECT_EQ(AMP_OK, amp_json_parse(report_.data(), report_.size(), nullptr, nullptr, &document, &error))
            << error.message;
        if (!document) return -1;
        int64_t value = amp_json_get(amp_json_get(amp_json_root(document), "totals"), key)->number.integer;
        amp_json_free(document);
        return value;
    }
    bool has(const std::string &text) { return report_.find(text) != std::string::npos; }
    std::string folder_, report_;
};

TEST_F(Pointwise, IsRightOnEveryDevice) {
    for (const char *arch : {"75", "80", "86", "89", "90", "120"}) {
        Ran ran = with(std::string("--arch ") + arch);
        EXPECT_EQ(0, ran.status) << arch << ran.text;
        EXPECT_EQ(3, total("launches"));
        EXPECT_EQ(3, total("graph_launches"));
        EXPECT_EQ(4, total("host_synchronisations")) << report_;
        EXPECT_EQ(3 * 4000, total("bytes_host_to_device"));
        EXPECT_EQ(3 * 4000, total("global_load_bytes"));
        EXPECT_EQ(3 * 4000, total("global_store_bytes"));
        EXPECT_EQ(8000, total("peak_bytes"));
        EXPECT_TRUE(has("\"leaks\":[]")) << report_;
        EXPECT_TRUE(has("\"faults\":[]")) << report_;
        EXPECT_TRUE(has("\"misuse\":[]")) << report_;
    }
}

TEST_F(Pointwise, WhoDoesNotWaitIsWrong) { EXPECT_EQ(1, with("", "early").status); }

TEST_F(Pointwise, PastTheEnd) {
    Ran ran = with("--verbose", "past");
    EXPECT_EQ(2, ran.status);
    EXPECT_NE(std::string::npos, ran.text.find("CUDA_ERROR_ILLEGAL_ADDRESS")) << ran.text;
    EXPECT_TRUE(has("scale_shift")) << report_;
    EXPECT_NE(std::string::npos, ran.text.find("block (3,0,0), thread (232,0,0)")) << ran.text;
}

TEST_F(Pointwise, OnRequest) {
    Ran ran = with("--fail cuGraphLaunch:2:719");
    EXPECT_EQ(2, ran.status);
    EXPECT_NE(std::string::npos, ran.text.find("cu.graph_launch(exec, stream): CUDA_ERROR_LAUNCH_FAILED")) << ran.text;
    EXPECT_TRUE(has("cuGraphLaunch: call 2")) << report_;
}

} // namespace
