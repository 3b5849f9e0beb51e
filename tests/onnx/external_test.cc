// external_test.cc: which files a model may name as its external data.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/onnx/onnx_bytes.h"

using namespace onnx_test;

namespace {

class OnnxExternal : public testing::Test {
  protected:
    OnnxExternal() {
        EXPECT_EQ(mkdir((folder_ / "model").c_str(), 0755), 0);
        EXPECT_EQ(mkdir((folder_ / "model/in").c_str(), 0755), 0);
        Put(folder_ / "secret", "12345678");
        Put(folder_ / "model/w", "12345678");
        Put(folder_ / "model/in/w", "abcdefgh");
    }
    // What is said of a tensor of two floats with these entries; "": it is taken.
    std::string Said(const std::vector<Bytes> &props) {
        Put(folder_ / "model/m.onnx",
            Model(Graph({Node("Relu", {"x"}, {"y"})}, {"x"}, {"y"}, {External("w", {2}, props)})).text);
        auto r = Reading::File(folder_ / "model/m.onnx");
        double values[2];
        if (!r.status) {
            EXPECT_EQ(onnx_data_doubles(&r.model, &r.model.graph->initializers.data[0], values, 2, &r.err), AMP_OK);
            return "";
        }
        EXPECT_EQ(r.Message().rfind(folder_ / "model/m.onnx: ", 0), 0u) << r.Message();
        return r.Message();
    }
    std::string Of(const std::string &location) { return Said({Prop("location", location)}); }
    void ExpectSaid(const std::string &said, const std::string &text) {
        EXPECT_NE(said.find(text), std::string::npos) << said << "\nlacks: " << text;
    }

    Folder folder_;
};

TEST_F(OnnxExternal, FilesBelowTheModel) {
    EXPECT_EQ(Of("w"), "");
    EXPECT_EQ(Of("./w"), "");
    EXPECT_EQ(Of("in/w"), "");
    EXPECT_EQ(Of("in//./w"), "");
    ExpectSaid(Of("other"), "cannot open its external data 'other', which belongs beside it: No such file");
    ExpectSaid(Of("w/w"), "cannot open its external data 'w/w'");
}

// CVE-2022-25882, CVE-2024-27318: ways out by ".."
TEST_F(OnnxExternal, WaysOut) {
    for (const char *out :
         {"../secret", "in/../../secret", "in/../w", "..", "in/..", "/etc/passwd", "", ".", "in/", "/"})
        ExpectSaid(Of(out), std::string("external data '") + out + "' is not named by a path below the model's folder");
    ExpectSaid(Of(folder_ / "model/w"), "is not named by a path below");
    ExpectSaid(Of(std::string(300, 'w')), "is not named by a path below");
    ExpectSaid(Of(std::string("w\0x", 3)), "value has a byte 0");
}

// CVE-2026-27489, CVE-2026-34447: links.
TEST_F(OnnxExternal, Links) {
    ASSERT_EQ(symlink("../secret", (folder_ / "model/link").c_str()), 0);
    ASSERT_EQ(symlink("w", (folder_ / "model/inner").c_str()), 0);
    ASSERT_EQ(symlink("..", (folder_ / "model/up").c_str()), 0);
    ASSERT_EQ(symlink("in", (folder_ / "model/again").c_str()), 0);
    ASSERT_EQ(link((folder_ / "secret").c_str(), (folder_ / "model/hard").c_str()), 0);
    for (const char *way : {"link", "inner", "up/secret", "again/w"})
        ExpectSaid(Of(way), "is, or is reached by, a symbolic link");
    ExpectSaid(Of("hard"), "external data 'hard' has several names (hard links)");
}

TEST_F(OnnxExternal, WhatIsNoFile) {
    ASSERT_EQ(mkfifo((folder_ / "model/pipe").c_str(), 0644), 0);
    ExpectSaid(Of("pipe"), "external data 'pipe' is no regular file");
    ExpectSaid(Of("in"), "external data 'in' is no regular file");
}

// CVE-2026-34445: other keys.
TEST_F(OnnxExternal, Keys) {
    const Bytes w = Prop("location", "w");
    EXPECT_EQ(Said({w, Prop("offset", "0"), Prop("length", "8"), Prop("checksum", "1")}), "");
    ExpectSaid(Said({w, Prop("__class__", "x")}), "external data has key '__class__'; the keys are location, offset,");
    ExpectSaid(Said({w, w}), "external data has key 'location' twice; the keys are");
    ExpectSaid(Said({}), "external data has no location");
    ExpectSaid(Said({Prop("offset", "0")}), "external data has no location");
    for (const char *no_number : {"-1", "+1", "0x10", "", " 1", "1.0", "9223372036854775808", "99999999999999999999"}) {
        ExpectSaid(Said({w, Prop("offset", no_number)}),
                   "external data: offset '" + std::string(no_number) + "' is no");
        ExpectSaid(Said({w, Prop("length", no_number)}),
                   "external data: length '" + std::string(no_number) + "' is no");
    }
}

TEST_F(OnnxExternal, Places) {
    const Bytes w = Prop("location", "w");
    ExpectSaid(Said({w, Prop("offset", "1")}), "external data 'w' has 8 bytes; 8 from byte 1 on are not there");
    ExpectSaid(Said({w, Prop("offset", "9223372036854775807")}), "8 from byte 9223372036854775807 on are not there");
    ExpectSaid(Said({w, Prop("length", "4")}),
               "external data has length 4, and by the tensor's sizes and type float32 8");
    ExpectSaid(Said({w, Prop("length", "9223372036854775807")}), "external data has length 9223372036854775807, and");
}

TEST_F(OnnxExternal, OneValue) {
    const Bytes tensor = External("w", {2}, {Prop("location", "w")}).Text(9, "12345678");
    Put(folder_ / "model/m.onnx", Model(Graph({Node("Relu", {"x"}, {"y"})}, {"x"}, {"y"}, {tensor})).text);
    auto r = Reading::File(folder_ / "model/m.onnx");
    EXPECT_EQ(r.status, AMP_BAD_FILE);
    ExpectSaid(r.Message(), "it has elements here and in external data; a tensor has one");
}

// The file is looked for again whenever it is read, and what it then is is checked again.
TEST_F(OnnxExternal, AFileThatIsReplaced) {
    const Bytes a = External("a", {2}, {Prop("location", "w")}), b = External("b", {2}, {Prop("location", "in/w")});
    Put(folder_ / "model/m.onnx", Model(Graph({Node("Relu", {"x"}, {"y"})}, {"x"}, {"y"}, {a, b})).text);
    auto r = Reading::File(folder_ / "model/m.onnx");
    ASSERT_EQ(r.status, AMP_OK) << r.Message();
    ASSERT_EQ(unlink((folder_ / "model/w").c_str()), 0);
    ASSERT_EQ(symlink("../secret", (folder_ / "model/w").c_str()), 0);
    double values[2];
    EXPECT_EQ(onnx_data_doubles(&r.model, &r.model.graph->initializers.data[0], values, 2, &r.err), AMP_BAD_FILE);
    ExpectSaid(r.Message(), "is, or is reached by, a symbolic link");
    Put(folder_ / "model/in/w", "1234");
    EXPECT_EQ(onnx_data_doubles(&r.model, &r.model.graph->initializers.data[1], values, 2, &r.err), AMP_IO);
    ExpectSaid(r.Message(), "it was cut while it was read");
}

} // namespace
