// amp_onnx_autocast: what it returns, and which arguments it refuses.  tests/checks/onnx_cli.sh has what it says of
// models.
#include "amp/onnx.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "tests/base/failing_allocator.h"
#include "tests/onnx/decide_fixture.h"

namespace {

class AutocastTest : public DecideTest {
  protected:
    void SetUp() override {
        const char *folder = getenv("TEST_TMPDIR");
        path_ = std::string(folder ? folder : "/tmp") + "/autocast_test.onnx";
        Clear()
            .Input("x", {"N", "4"})
            .Output("y")
            .Weight("w", {4, 4})
            .Node("m", "MatMul", {"x", "w"}, {"t"})
            .Node("e", "Exp", {"t"}, {"y"});
        model_.ir_version = 10;
        OnnxWriteOptions options = {};
        options.force = true;
        ASSERT_EQ(onnx_write(&model_, path_.c_str(), &options, &error_), AMP_OK) << error_.message;
        options_.struct_size = sizeof options_;
        counts_.struct_size = sizeof counts_;
    }

    void TearDown() override {
        unlink(path_.c_str());
        unlink((path_ + ".out").c_str());
        amp_compile_result_release(report_);
    }

    amp_status Run() {
        amp_compile_result_release(report_);
        report_ = nullptr;
        return amp_onnx_autocast(path_.c_str(), &options_, &counts_, &report_, &error_);
    }

    std::string Report() const { return static_cast<const char *>(amp_compile_result_data(report_, nullptr)); }
    bool IsWritten() const { return access((path_ + ".out").c_str(), F_OK) == 0; }

    std::string path_;
    amp_onnx_options options_ = {};
    amp_onnx_counts counts_ = {};
    amp_compile_result *report_ = nullptr;
};

TEST_F(AutocastTest, CountsAndReports) {
    const std::string out = path_ + ".out";
    options_.output = out.c_str();
    options_.policy = "torch-fp16";
    ASSERT_EQ(Run(), AMP_OK) << error_.message;
    EXPECT_TRUE(IsWritten());
    EXPECT_EQ(counts_.nodes, 2);
    EXPECT_EQ(counts_.lowered, 1);
    EXPECT_EQ(counts_.kept, 1);
    EXPECT_EQ(counts_.casts_before, 0);
    EXPECT_EQ(counts_.casts, 1);
    EXPECT_EQ(counts_.weight_bytes_before, 64);
    EXPECT_EQ(counts_.weight_bytes, 32);
    EXPECT_EQ(counts_.weights, 1) << "of zeros, too";
    // at N = 32: x 128, t 128, y 128 elements of 4 bytes, t and y again as they are read, w; then x, t in 2
    EXPECT_EQ(counts_.moved_bytes_before, 4 * (128 + 16 + 128 + 128 + 128));
    EXPECT_EQ(counts_.moved_bytes, 2 * (128 + 16 + 128) + (2 + 4) * 128 + 4 * (128 + 128));
    EXPECT_NE(Report().find("1 of 2 nodes in float16, 1 in float32"), std::string::npos) << Report();
    EXPECT_EQ(Run(), AMP_INVALID_ARGUMENT) << "it is there";
    EXPECT_EQ(report_, nullptr);
    options_.force = 1;
    options_.json = 1;
    options_.batch_hint = 1;
    ASSERT_EQ(Run(), AMP_OK) << error_.message;
    EXPECT_EQ(Report().substr(0, 10), "{\"model\":\"");
    EXPECT_EQ(counts_.moved_bytes_before, 4 * (4 + 16 + 4 + 4 + 4));
}

TEST_F(AutocastTest, NothingLoweredIsAnErrorAndWritesNothing) {
    const std::string out = path_ + ".out";
    const char *keep[] = {"MatMul"};
    options_.output = out.c_str();
    options_.keep = keep;
    options_.keep_count = 1;
    EXPECT_EQ(Run(), AMP_UNSUPPORTED);
    EXPECT_NE(std::string(error_.message).find("none of 2 nodes was lowered"), std::string::npos) << error_.message;
    EXPECT_EQ(report_, nullptr);
    EXPECT_FALSE(IsWritten());
}

TEST_F(AutocastTest, ACallerOfAnOlderHeaderGetsWhatItKnows) {
    counts_.struct_size = offsetof(amp_onnx_counts, kept);
    counts_.kept = 77;
    ASSERT_EQ(Run(), AMP_OK) << error_.message;
    EXPECT_EQ(counts_.nodes, 2);
    EXPECT_EQ(counts_.kept, 77);
}

TEST_F(AutocastTest, MemoryThatRunsOutIsAnError) {
    const std::string out = path_ + ".out";
    options_.output = out.c_str();
    options_.force = 1;
    options_.json = 1;
    int failed = 0;
    for (int fail_at = 0;; fail_at++) {
        FailingAllocator allocator(fail_at);
        const amp_allocator a = allocator.get();
        options_.allocator = &a;
        const amp_status status = Run();
        amp_compile_result_release(report_);
        report_ = nullptr;
        if (!status) break;
        ASSERT_EQ(status, AMP_OUT_OF_MEMORY) << error_.message;
        failed++;
    }
    options_.allocator = nullptr;
    EXPECT_GT(failed, 3);
}

TEST_F(AutocastTest, ComparingFreesWhatItTook) {
    const std::string out = path_ + ".out";
    options_.output = out.c_str();
    options_.force = 1;
    ASSERT_EQ(Run(), AMP_OK) << error_.message;
    int failed = 0;
    for (int fail_at = 0;; fail_at++) {
        FailingAllocator allocator(fail_at);
        const amp_allocator a = allocator.get();
        options_.allocator = &a;
        amp_compile_result *told = nullptr;
        const amp_status status = amp_onnx_compare(path_.c_str(), out.c_str(), &options_, &told, &error_);
        amp_compile_result_release(told);
        if (!status) break;
        ASSERT_EQ(status, AMP_OUT_OF_MEMORY) << error_.message;
        failed++;
    }
    options_.allocator = nullptr;
    EXPECT_GT(failed, 3);
    amp_compile_result *none = nullptr;
    EXPECT_EQ(amp_onnx_compare(path_.c_str(), nullptr, &options_, &none, &error_), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(error_.message, "amp_onnx_compare: a model is NULL; give two files");
}

TEST_F(AutocastTest, WrongArguments) {
    EXPECT_EQ(amp_onnx_autocast(nullptr, &options_, nullptr, &report_, &error_), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(error_.message, "amp_onnx_autocast: model is NULL; give a file");
    EXPECT_EQ(amp_onnx_autocast(path_.c_str(), &options_, nullptr, nullptr, &error_), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_onnx_autocast(path_.c_str(), nullptr, nullptr, &report_, &error_), AMP_OK) << "all defaults";
    counts_.struct_size = 0;
    EXPECT_EQ(Run(), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(error_.message, "amp_onnx_counts: struct_size is 0; set it to sizeof(amp_onnx_counts)");
    counts_.struct_size = sizeof counts_;
    options_.keep_count = 1;
    EXPECT_EQ(Run(), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(error_.message, "amp_onnx_options: a list is NULL and has a count");
    options_.keep_count = 0;
    options_.opset = -1;
    EXPECT_EQ(Run(), AMP_INVALID_ARGUMENT);
    options_.opset = 0;
    options_.precision = "fp61";
    EXPECT_EQ(Run(), AMP_BAD_SOURCE);
}

} // namespace
