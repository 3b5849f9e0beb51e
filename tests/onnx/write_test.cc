// write_test.cc: models that are written: the same bytes, elements of other types, external data, whole files.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/rounding.h"
#include "tests/base/planted.h"
#include "tests/onnx/onnx_bytes.h"

using namespace onnx_test;

namespace {

std::string Written(const std::string &model) {
    Folder folder;
    Reading r(model);
    EXPECT_EQ(r.status, AMP_OK) << r.Message();
    EXPECT_EQ(r.Write(folder / "out.onnx"), AMP_OK) << r.Message();
    return Get(folder / "out.onnx");
}

std::vector<std::string> Names(const std::string &folder) {
    std::vector<std::string> names;
    DIR *dir = opendir(folder.c_str());
    while (dirent *entry = readdir(dir))
        if (entry->d_name[0] != '.') names.push_back(entry->d_name);
    closedir(dir);
    std::sort(names.begin(), names.end());
    return names;
}

std::vector<double> Doubles(Reading &r, int initializer) {
    const OnnxTensor &t = r.model.graph->initializers.data[initializer];
    std::vector<double> values(onnx_elements(&t));
    EXPECT_EQ(onnx_data_doubles(&r.model, &t, values.data(), values.size(), &r.err), AMP_OK) << r.Message();
    return values;
}

Bytes WithWeights(const std::vector<Bytes> &weights) {
    return Model(Graph({Node("Relu", {"x"}, {"y"})}, {"x"}, {"y"}, weights));
}

void CompareBytes(const std::string &a, const std::string &b) {
    size_t at = 0;
    while (at < a.size() && at < b.size() && a[at] == b[at]) at++;
    EXPECT_TRUE(a == b) << "they differ from byte " << at << " of " << a.size() << " and " << b.size();
}

TEST(OnnxWrite, TheSameBytes) {
    const std::string everything = Everything().text;
    CompareBytes(Written(everything), everything);
    CompareBytes(Written(WithWeights({}).text), WithWeights({}).text);
    std::string other = everything;
    other.back() ^= 1;
    ExpectFound("a changed byte", "they differ from byte", [&] { CompareBytes(Written(everything), other); });
}

// Unknown fields keep their bytes, also a number with zeros that it does not need.
TEST(OnnxWrite, WhatIsNotUnderstoodKeepsItsBytes) {
    const std::string odd("\xa0\x06\x81\x80\x00\xa2\x06\x03odd", 11);
    const std::string model = Model(Graph({Node("Relu", {"x"}, {"y"}).Raw(odd)})).Raw(odd).text;
    CompareBytes(Written(model), model);
}

// Fields in another order, lists in another form: the same model, in the usual form.
TEST(OnnxWrite, OtherOrdersBecomeTheUsual) {
    const Bytes shuffled = Bytes().Text(13, "doc").Int(20, 7).Text(8, Bytes().Varint(1).Varint(2).text).Text(1, "a");
    const Bytes usual = Bytes().Text(1, "a").Int(8, 1).Int(8, 2).Text(13, "doc").Int(20, 7);
    CompareBytes(Written(Model(Graph({Node("Relu", {"x"}, {"y"}).Put(5, shuffled)})).text),
                 Model(Graph({Node("Relu", {"x"}, {"y"}).Put(5, usual)})).text);
}

TEST(OnnxWrite, NothingIsReplacedUnlessAsked) {
    Folder folder;
    Reading r(Everything().text);
    Put(folder / "out.onnx", "old");
    EXPECT_EQ(r.Write(folder / "out.onnx"), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(r.Message(),
              (folder / "out.onnx") + ": is there already, and is not replaced unless that is asked for (force)");
    EXPECT_EQ(Get(folder / "out.onnx"), "old");
    EXPECT_EQ(r.Write(folder / "out.onnx", {true, ONNX_EXTERNAL_AUTO}), AMP_OK) << r.Message();
    CompareBytes(Get(folder / "out.onnx"), Everything().text);
    Put(folder / "b.onnx.data", "old");
    Reading large(WithWeights({Tensor("w", {1024}, Floats(std::vector<float>(1024, 1)))}).text);
    EXPECT_EQ(large.Write(folder / "b.onnx", {false, ONNX_EXTERNAL_ALWAYS}), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(Names(folder.path), (std::vector<std::string>{"b.onnx.data", "out.onnx"}));
    EXPECT_EQ(r.Write("/nowhere/out.onnx"), AMP_NOT_FOUND);
}

TEST(OnnxWrite, AModelReplacesItself) {
    Folder folder;
    const std::vector<float> values(1000, 1.5f);
    Put(folder / "m.onnx", WithWeights({Tensor("w", {1000}, Floats(values))}).text);
    auto r = Reading::File(folder / "m.onnx");
    r.model.graph->initializers.data[0].data_type = ONNX_FLOAT16;
    ASSERT_EQ(r.Write(folder / "m.onnx", {true, ONNX_EXTERNAL_ALWAYS}), AMP_OK) << r.Message();
    auto second = Reading::File(folder / "m.onnx");
    second.model.graph->initializers.data[0].data_type = ONNX_FLOAT;
    ASSERT_EQ(second.Write(folder / "m.onnx", {true, ONNX_EXTERNAL_AUTO}), AMP_OK) << second.Message();
    auto third = Reading::File(folder / "m.onnx");
    ASSERT_EQ(third.status, AMP_OK) << third.Message();
    EXPECT_EQ(Doubles(third, 0), std::vector<double>(1000, 1.5));
    EXPECT_EQ(Names(folder.path), (std::vector<std::string>{"m.onnx", "m.onnx.data"}));
}

// ---- other types ----------------------------------------------------------------------------------------------------

TEST(OnnxWrite, ElementsAreConverted) {
    const float inf = std::numeric_limits<float>::infinity();
    const std::vector<float> values = {0, -0.0f, 1, 1.0009765f, 65504, 65520, -1e9f, inf, 1e-8f, 6e-8f, 0.1f};
    const int64_t count = (int64_t)values.size();
    for (int type : {ONNX_FLOAT16, ONNX_BFLOAT16, ONNX_DOUBLE, ONNX_FLOAT}) {
        Reading r(WithWeights({Tensor("w", {count}, Floats(values)),
                               Bytes().Int(1, count).Int(2, 1).Text(4, Floats(values)).Text(8, "v")})
                      .text);
        for (int i = 0; i < 2; i++) r.model.graph->initializers.data[i].data_type = type;
        Folder folder;
        ASSERT_EQ(r.Write(folder / "o.onnx"), AMP_OK) << r.Message();
        auto back = Reading::File(folder / "o.onnx");
        ASSERT_EQ(back.status, AMP_OK) << back.Message();
        for (int i = 0; i < 2; i++) {
            EXPECT_EQ(back.model.graph->initializers.data[i].data_type, type);
            const std::vector<double> got = Doubles(back, i);
            for (int64_t k = 0; k < count; k++) {
                float wanted = values[k];
                if (type == ONNX_FLOAT16) wanted = amp_round_f16(wanted);
                if (type == ONNX_BFLOAT16) wanted = amp_round_bf16(wanted);
                EXPECT_EQ(got[k], (double)wanted) << type << ": " << k;
                EXPECT_EQ(std::signbit(got[k]), std::signbit(wanted));
            }
        }
    }
}

// Half way between two numbers of f16, but for bits that f32 has no more: rounded once, not twice.
TEST(OnnxWrite, DoublesAreRoundedOnce) {
    const double up = 1 + 0x1p-11 + 0x1p-40, down = 1 + 0x1p-11 - 0x1p-40, values[] = {up, down, -up, 1e300, 1e-300};
    Reading r(WithWeights({Tensor("w", {5}, std::string((const char *)values, 40), ONNX_DOUBLE)}).text);
    r.model.graph->initializers.data[0].data_type = ONNX_FLOAT16;
    Folder folder;
    ASSERT_EQ(r.Write(folder / "o.onnx"), AMP_OK) << r.Message();
    auto back = Reading::File(folder / "o.onnx");
    const double wanted[] = {1 + 0x1p-10, 1, -1 - 0x1p-10, INFINITY, 0};
    EXPECT_EQ(Doubles(back, 0), std::vector<double>(wanted, wanted + 5));
}

TEST(OnnxWrite, WhatCannotBeConverted) {
    Reading r(WithWeights({Tensor("w", {1}, "1234", ONNX_INT32)}).text);
    r.model.graph->initializers.data[0].data_type = ONNX_FLOAT16;
    Folder folder;
    EXPECT_EQ(r.Write(folder / "o.onnx"), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(r.Message(), "m.onnx: tensor 'w' cannot be converted from int32 to float16");
    EXPECT_TRUE(Names(folder.path).empty());
}

TEST(OnnxWrite, WhatIsMade) {
    Reading r(WithWeights({}).text);
    Arena *a = &r.arena;
    static const float two[2] = {1, 2};
    const int64_t dims[] = {2};
    OnnxNode cast = onnx_node(a, "Cast", "cast");
    vec_push(a, &cast.inputs, "w");
    vec_push(a, &cast.outputs, "c");
    vec_push(a, &cast.attributes, onnx_attribute_of_int("to", ONNX_FLOAT16));
    onnx_set_prop(a, &cast.metadata, "why", "one");
    onnx_set_prop(a, &cast.metadata, "why", "two");
    vec_push(a, &r.model.graph->nodes, cast);
    vec_push(a, &r.model.graph->initializers, onnx_tensor_of(a, "w", ONNX_FLOAT, dims, 1, two));
    OnnxValueInfo info = {};
    info.name = "c", info.type = onnx_tensor_type(a, ONNX_FLOAT16, nullptr);
    vec_push(a, &r.model.graph->value_infos, info);
    Folder folder;
    ASSERT_EQ(r.Write(folder / "o.onnx"), AMP_OK) << r.Message();
    const Bytes node = Node("Cast", {"w"}, {"c"}, "cast").Put(5, IntAttribute("to", 10)).Put(9, Prop("why", "two"));
    Bytes graph;
    graph.Put(1, Node("Relu", {"x"}, {"y"})).Put(1, node).Text(2, "main");
    graph.Put(5, Tensor("w", {2}, Floats({1, 2}))).Put(11, Info("x", 1, {"N", "2"})).Put(12, Info("y", 1, {"N", "2"}));
    graph.Put(13, Bytes().Text(1, "c").Put(2, Bytes().Put(1, Bytes().Int(1, 10))));
    CompareBytes(Get(folder / "o.onnx"), Model(graph).text);
}

// ---- external data --------------------------------------------------------------------------------------------------

TEST(OnnxWrite, LargeInitializersLeaveTheModel) {
    std::vector<float> small(255, 1), large(256, 2), huge(1 << 18, 3);
    Folder folder;
    Reading r(WithWeights({Tensor("small", {255}, Floats(small)), Tensor("large", {256}, Floats(large)),
                           Tensor("huge", {1 << 18}, Floats(huge)), Tensor("last", {256}, Floats(large))})
                  .text);
    r.model.graph->initializers.data[3].data_type = ONNX_BFLOAT16; // 512 bytes: stays
    ASSERT_EQ(r.Write(folder / "o.onnx", {false, ONNX_EXTERNAL_ALWAYS}), AMP_OK) << r.Message();
    const auto props = [](const char *offset, const char *length) {
        return std::vector<Bytes>{Prop("location", "o.onnx.data"), Prop("offset", offset), Prop("length", length)};
    };
    std::string bf16;
    for (int i = 0; i < 256; i++) bf16 += std::string("\0\x40", 2);
    CompareBytes(
        Get(folder / "o.onnx"),
        WithWeights({Tensor("small", {255}, Floats(small)), External("large", {256}, props("0", "1024")),
                     External("huge", {1 << 18}, props("4096", "1048576")), Tensor("last", {256}, bf16, ONNX_BFLOAT16)})
            .text);
    CompareBytes(Get(folder / "o.onnx.data"), Floats(large) + std::string(3072, '\0') + Floats(huge));
    auto back = Reading::File(folder / "o.onnx");
    ASSERT_EQ(back.status, AMP_OK) << back.Message();
    EXPECT_EQ(Doubles(back, 2), std::vector<double>(1 << 18, 3));
    // And back: the same model, without external data.
    ASSERT_EQ(back.Write(folder / "inline.onnx", {false, ONNX_EXTERNAL_NEVER}), AMP_OK) << back.Message();
    CompareBytes(Get(folder / "inline.onnx"),
                 WithWeights({Tensor("small", {255}, Floats(small)), Tensor("large", {256}, Floats(large)),
                              Tensor("huge", {1 << 18}, Floats(huge)), Tensor("last", {256}, bf16, ONNX_BFLOAT16)})
                     .text);
    EXPECT_EQ(Names(folder.path), (std::vector<std::string>{"inline.onnx", "o.onnx", "o.onnx.data"}));
}

// Whatever fails, neither file is there, and what was there is as it was.
TEST(OnnxWrite, FilesThatCannotBeWritten) {
    Folder folder;
    Reading r(WithWeights({Tensor("w", {1024}, Floats(std::vector<float>(1024, 1)))}).text);
    const OnnxWriteOptions external = {true, ONNX_EXTERNAL_ALWAYS};
    ASSERT_EQ(mkdir((folder / "o.onnx.data").c_str(), 0755), 0);
    Put(folder / "o.onnx", "old");
    EXPECT_EQ(r.Write(folder / "o.onnx", external), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(r.Message().rfind(folder / "o.onnx.data: not a regular file", 0), 0u) << r.Message();
    EXPECT_EQ(Get(folder / "o.onnx"), "old");
    EXPECT_EQ(Names(folder.path), (std::vector<std::string>{"o.onnx", "o.onnx.data"}));
    EXPECT_EQ(r.Write("/dev/null", external), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(r.Message(),
              "/dev/null: is no regular file, beside which external data could be written; name another path");
    // The largest file that this process may write: the model fits, its data does not.
    const struct rlimit most = {2000, RLIM_INFINITY};
    struct rlimit before;
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &most), 0);
    EXPECT_EQ(r.Write(folder / "p.onnx", external), AMP_IO);
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_NE(r.Message().find("File too large"), std::string::npos) << r.Message();
    EXPECT_EQ(Names(folder.path), (std::vector<std::string>{"o.onnx", "o.onnx.data"}));
}

TEST(OnnxWrite, NoDataFileWithoutLargeTensors) {
    Folder folder;
    Reading r(WithWeights({Tensor("w", {2}, Floats({1, 2}))}).text);
    ASSERT_EQ(r.Write(folder / "o.onnx", {false, ONNX_EXTERNAL_ALWAYS}), AMP_OK) << r.Message();
    EXPECT_EQ(Names(folder.path), (std::vector<std::string>{"o.onnx"}));
}

// A model that was written to after it was read has other elements than it had.
TEST(OnnxWrite, AModelThatChangedIsNotCopied) {
    Folder folder;
    Put(folder / "m.onnx", WithWeights({Tensor("w", {1024}, Floats(std::vector<float>(1024, 1)))}).text);
    auto r = Reading::File(folder / "m.onnx");
    Put(folder / "m.onnx",
        WithWeights({Tensor("w", {1024}, Floats(std::vector<float>(1024, 2))), Tensor("v", {0}, "")}).text);
    EXPECT_EQ(r.Write(folder / "o.onnx"), AMP_IO);
    EXPECT_EQ(r.Message(), (folder / "m.onnx") + ": was written to while it was read; read it again once it is whole");
    EXPECT_EQ(Names(folder.path), (std::vector<std::string>{"m.onnx"}));
}

// Data of another model is not lost, not even by force.
TEST(OnnxWrite, DataThatAnotherModelNeedsIsKept) {
    Folder folder;
    Put(folder / "b.onnx.data", Floats(std::vector<float>(300, 1)));
    Put(folder / "a.onnx", WithWeights({External("w", {300}, {Prop("location", "b.onnx.data")})}).text);
    auto r = Reading::File(folder / "a.onnx");
    ASSERT_EQ(r.status, AMP_OK) << r.Message();
    EXPECT_EQ(r.Write(folder / "b.onnx", {true, ONNX_EXTERNAL_AUTO}), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(r.Message(), (folder / "b.onnx.data") + ": has external data of " + (folder / "a.onnx") +
                               ", which would lose it; write the model to another path");
    EXPECT_EQ(Get(folder / "b.onnx.data").size(), 1200u);
}

// Which is known before an element is read.
TEST(OnnxWrite, TwoGigabytesAreTooMuchForOneFile) {
    Folder folder;
    Reading r(WithWeights({}).text);
    const int64_t dims[] = {1 << 29};
    vec_push(&r.arena, &r.model.graph->initializers, onnx_tensor_of(&r.arena, "w", ONNX_FLOAT, dims, 1, &dims));
    EXPECT_EQ(r.Write(folder / "o.onnx", {false, ONNX_EXTERNAL_NEVER}), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(r.Message(), (folder / "o.onnx") + ": would have 2147483749 bytes without external data; readers of "
                                                 "protobuf take at most 2147483647");
    EXPECT_TRUE(Names(folder.path).empty());
}

} // namespace
