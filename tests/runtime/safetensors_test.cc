// Accepts what the format allows, and refuses everything else by name of the rule.
#include "tests/runtime/runtime_c.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tests/base/failing_allocator.h"
#include "tests/runtime/files.h"

namespace {

std::string File(const std::string &header, const std::string &data) {
    std::string length(8, '\0');
    for (int i = 0; i < 8; i++) length[i] = (char)(header.size() >> 8 * i);
    return length + header + data;
}

std::string Tensor(const std::string &name, const std::string &dtype, const std::string &shape, int begin, int end) {
    return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
           std::to_string(begin) + "," + std::to_string(end) + "]}";
}

amp_status Open(const std::string &bytes, amp_safetensors **out, amp_error *err, const amp_allocator *a = nullptr) {
    return amp_safetensors_open(WriteTemp("in.safetensors", bytes).c_str(), a, out, err);
}

const std::string eight(8, 'x');

TEST(SafetensorsRead, FindsTensorsAndMetadata) {
    float values[3] = {1.5f, -0.0f, NAN};
    std::string data((const char *)values, sizeof values);
    std::string header =
        "{\"__metadata__\":{\"k\":\"v\"}," + Tensor("b", "F32", "3", 1, 13) + "," + Tensor("a", "U8", "", 0, 1) + "}  ";
    amp_safetensors *f;
    amp_error err = {};
    ASSERT_EQ(Open(File(header, "\7" + data), &f, &err), AMP_OK) << err.message;
    ASSERT_EQ(amp_safetensors_count(f), 2);
    EXPECT_STREQ(amp_safetensors_at(f, 0)->name, "a");
    EXPECT_EQ(amp_safetensors_at(f, 2), nullptr);
    EXPECT_STREQ(amp_safetensors_metadata(f, "k"), "v");
    EXPECT_EQ(amp_safetensors_metadata(f, "none"), nullptr);
    EXPECT_EQ(amp_safetensors_find(f, "c"), nullptr);
    const amp_tensor_view *b = amp_safetensors_find(f, "b");
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(b->rank, 1);
    EXPECT_EQ(b->dims[0], 3);
    float read[3];
    ASSERT_TRUE(amp_tensor_to_f32(b, read, 3)); // begins at an odd address
    EXPECT_EQ(memcmp(read, values, sizeof read), 0);
    EXPECT_FALSE(amp_tensor_to_f32(b, read, 4));
    amp_safetensors_close(f);
}

std::string Commas(int count) {
    std::string zeros = "0";
    for (int i = 1; i < count; i++) zeros += ",0";
    return zeros;
}

struct Case {
    const char *name;
    std::string bytes;
    const char *message; // nullptr: accepted
};

std::vector<Case> Cases() {
    std::string a = Tensor("a", "F32", "2", 0, 8);
    std::string deep = "{\"a\":{\"dtype\":\"F32\",\"shape\":[[2]],\"data_offsets\":[0,8]}}";
    std::string huge = File("{" + a + "}", eight);
    huge.replace(0, 8, std::string("\x01\xe1\xf5\x05\0\0\0\0", 8)); // 100,000,001
    std::string overflow = Tensor("a", "F32", "4294967296,4294967296", 0, 8);
    return {
        {"plain", File("{" + a + "}", eight), nullptr},
        {"no tensors", File("{}", ""), nullptr},
        {"spaces after the header", File("{" + a + "}   ", eight), nullptr},
        {"rank 0", File("{" + Tensor("a", "F64", "", 0, 8) + "}", eight), nullptr},
        {"one empty tensor", File("{" + a + "," + Tensor("e", "F32", "0", 8, 8) + "}", eight), nullptr},
        {"unknown to us, not to the format", File("{" + Tensor("a", "F8_E4M3", "8", 0, 8) + "}", eight), nullptr},
        {"empty file", "", "has only 0 bytes"},
        {"seven bytes", "1234567", "has only 7 bytes"},
        {"header longer than the file", File("{" + a + "}", "").substr(0, 30), "ends after the file"},
        {"header above the limit", huge, "at most 100000000"},
        {"empty header", File("", eight), "must begin with {"},
        {"space before", File(" {" + a + "}", eight), "must begin with {"},
        {"an array", File("[]", ""), "must begin with {"},
        {"newline at the end", File("{" + a + "}\n", eight), "must end with }"},
        {"not UTF-8", File("{\"\xff\":1}", ""), "header, byte"},
        {"broken JSON", File("{" + a + ",}", eight), "header, byte"},
        {"too deep", File(deep, eight), "header, byte"},
        {"duplicate tensor", File("{" + a + "," + a + "}", eight), "header, byte"},
        {"duplicate key",
         File("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,8]}}", eight),
         "header, byte"},
        {"metadata is no object", File("{\"__metadata__\":3}", ""), "__metadata__ is no object"},
        {"metadata is no string", File("{\"__metadata__\":{\"a\":1}}", ""), "only strings"},
        {"no dtype", File("{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", eight), "has no dtype"},
        {"entry is a number", File("{\"a\":1}", eight), "has no dtype"},
        {"no shape", File("{\"a\":{\"dtype\":\"F32\",\"x\":1,\"data_offsets\":[0,8]}}", eight), "has no shape"},
        {"unknown key", File("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", eight),
         "keys that the format does not know"},
        {"unknown dtype", File("{" + Tensor("a", "F33", "2", 0, 8) + "}", eight), "unknown dtype F33"},
        {"negative dimension", File("{" + Tensor("a", "F32", "-2", 0, 8) + "}", eight), "dimension"},
        {"fractional dimension", File("{" + Tensor("a", "F32", "2.0", 0, 8) + "}", eight), "dimension"},
        {"nine dimensions", File("{" + Tensor("a", "F32", "1,1,1,1,1,1,1,1,2", 0, 8) + "}", eight), "9 dimensions"},
        {"shape overflows", File("{" + overflow + "}", eight), "more elements than memory"},
        {"shape overflows beside a zero",
         File("{" + Tensor("a", "F32", "0,4611686018427387904,4611686018427387904", 0, 0) + "}", ""),
         "more elements than memory"},
        {"more values than tensors have", File("{\"a\":[" + Commas(4000) + "]}", ""), "too many values"},
        {"size differs from shape", File("{" + Tensor("a", "F32", "3", 0, 8) + "}", eight), "do not take 8 bytes"},
        {"half a byte", File("{" + Tensor("a", "F4", "3", 0, 1) + "}", "x"), "do not take"},
        {"begin after end", File("{" + Tensor("a", "F32", "2", 8, 0) + "}", eight), "is at bytes 8 to 0"},
        {"end after the file", File("{" + Tensor("a", "F32", "3", 0, 12) + "}", eight), "is at bytes 0 to 12 of 8"},
        {"three offsets", File("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,9]}}", eight),
         "must be two numbers"},
        {"hole at the start", File("{" + Tensor("a", "F32", "1", 4, 8) + "}", eight), "begins at byte 4"},
        {"hole between", File("{" + Tensor("a", "U8", "2", 0, 2) + "," + Tensor("b", "U8", "4", 4, 8) + "}", eight),
         "b begins at byte 4, but the one before it ends at 2"},
        {"overlap", File("{" + Tensor("a", "U8", "4", 0, 4) + "," + Tensor("b", "U8", "6", 2, 8) + "}", eight),
         "b begins at byte 2"},
        {"two names for the same bytes", File("{" + a + "," + Tensor("b", "F32", "2", 0, 8) + "}", eight),
         "begins at byte 0"},
        {"empty tensors at one place",
         File("{" + Tensor("e", "F32", "0", 0, 0) + "," + Tensor("g", "F32", "0", 0, 0) + "," + a + "}", eight),
         "are at the same place"},
        {"bytes after the last tensor", File("{" + a + "}", eight + "y"), "1 bytes follow"},
        {"data without tensors", File("{}", eight), "8 bytes follow"},
    };
}

TEST(SafetensorsRead, HoldsEveryRule) {
    for (const Case &c : Cases()) {
        amp_safetensors *f = nullptr;
        amp_error err = {};
        FailingAllocator counting;
        amp_allocator allocator = counting.get();
        amp_status status = Open(c.bytes, &f, &err, &allocator);
        amp_safetensors_close(f);
        if (!c.message) {
            EXPECT_EQ(status, AMP_OK) << c.name << ": " << err.message;
            continue;
        }
        EXPECT_EQ(status, AMP_BAD_FILE) << c.name;
        EXPECT_EQ(f, nullptr);
        EXPECT_NE(std::string(err.message).find(c.message), std::string::npos) << c.name << ": " << err.message;
        EXPECT_NE(std::string(err.message).find("in.safetensors: "), std::string::npos) << err.message;
    }
}

TEST(SafetensorsRead, CutOrChangedAnywhereNeverCrashes) {
    std::string good =
        File("{" + Tensor("a", "F32", "2", 0, 8) + "," + Tensor("b", "I64", "1", 8, 16) + "}", std::string(16, 'x'));
    amp_safetensors *f;
    amp_error err = {};
    for (size_t n = 0; n < good.size(); n++) EXPECT_EQ(Open(good.substr(0, n), &f, &err), AMP_BAD_FILE) << n;
    for (size_t i = 0; i < good.size(); i++)
        for (int bit = 0; bit < 8; bit++) {
            std::string changed = good;
            changed[i] ^= (char)(1 << bit);
            if (Open(changed, &f, &err) == AMP_OK) amp_safetensors_close(f);
        }
}

TEST(SafetensorsRead, RunsOutOfMemoryCleanly) {
    std::string good = File("{" + Tensor("a", "F32", "2", 0, 8) + "}", eight);
    for (int fail = 0;; fail++) {
        FailingAllocator failing(fail);
        amp_allocator allocator = failing.get();
        amp_safetensors *f;
        amp_error err = {};
        amp_status status = Open(good, &f, &err, &allocator);
        if (status == AMP_OK) {
            amp_safetensors_close(f);
            break;
        }
        ASSERT_EQ(status, AMP_OUT_OF_MEMORY) << err.message;
        ASSERT_LT(fail, 100);
    }
}

TEST(SafetensorsRead, ConvertsToF32) {
    const struct {
        amp_dtype dtype;
        std::vector<unsigned char> bytes;
        float value;
    } cases[] = {{AMP_DT_F16, {0x00, 0x3e}, 1.5f},
                 {AMP_DT_BF16, {0xc0, 0x3f}, 1.5f},
                 {AMP_DT_I32, {0xfe, 255, 255, 255}, -2},
                 {AMP_DT_U8, {200}, 200},
                 {AMP_DT_BOOL, {1}, 1},
                 {AMP_DT_I64, {3, 0, 0, 0, 0, 0, 0, 0}, 3},
                 {AMP_DT_F64, {0, 0, 0, 0, 0, 0, 0xf8, 0x3f}, 1.5f}};
    for (const auto &c : cases) {
        amp_tensor_view v = {};
        v.dtype = c.dtype;
        v.data = c.bytes.data();
        v.bytes = c.bytes.size();
        float value = 0;
        ASSERT_TRUE(amp_tensor_to_f32(&v, &value, 1)) << amp_dtype_name(c.dtype);
        EXPECT_EQ(value, c.value) << amp_dtype_name(c.dtype);
    }
    amp_tensor_view unknown = {};
    float value;
    EXPECT_FALSE(amp_tensor_to_f32(&unknown, &value, 1));
}

TEST(SafetensorsWrite, SortsAlignsAndReadsBack) {
    const float f32[2] = {1, 2};
    const int64_t i64 = -5;
    const unsigned char u8[3] = {1, 2, 3};
    amp_tensor_view views[4] = {};
    views[0].name = "u", views[0].dtype = AMP_DT_U8, views[0].rank = 1, views[0].dims[0] = 3, views[0].data = u8,
    views[0].bytes = 3;
    views[1].name = "z", views[1].dtype = AMP_DT_F32, views[1].rank = 1, views[1].dims[0] = 2, views[1].data = f32,
    views[1].bytes = 8;
    views[2].name = "step", views[2].dtype = AMP_DT_I64, views[2].data = &i64, views[2].bytes = 8;
    views[3] = views[1];
    views[3].name = "\xc3\xa4 \"quoted\"";
    amp_metadata metadata[] = {{"key", "line\nbreak"}};
    std::string path = TempPath("out.safetensors");
    amp_error err = {};
    ASSERT_EQ(amp_safetensors_write(path.c_str(), views, 4, metadata, 1, nullptr, &err), AMP_OK) << err.message;
    std::string bytes = ReadAll(path);
    size_t header = (unsigned char)bytes[0] + 256 * (unsigned char)bytes[1];
    EXPECT_EQ((8 + header) % 64, 0u);
    size_t step_at = bytes.find("step\":{"), z = bytes.find("z\":{"), quoted = bytes.find("quoted\\\"\":{");
    EXPECT_LT(step_at, z); // wider types first, then by name
    EXPECT_LT(z, quoted);
    EXPECT_LT(quoted, bytes.find("u\":{"));
    EXPECT_LT(quoted, bytes.size());
    amp_safetensors *f;
    ASSERT_EQ(amp_safetensors_open(path.c_str(), nullptr, &f, &err), AMP_OK) << err.message;
    EXPECT_EQ(amp_safetensors_count(f), 4);
    EXPECT_STREQ(amp_safetensors_metadata(f, "key"), "line\nbreak");
    const amp_tensor_view *step = amp_safetensors_find(f, "step");
    ASSERT_NE(step, nullptr);
    EXPECT_EQ(step->rank, 0);
    EXPECT_EQ(memcmp(step->data, &i64, 8), 0);
    EXPECT_EQ(memcmp(amp_safetensors_find(f, views[3].name)->data, f32, 8), 0);
    amp_safetensors_close(f);
}

TEST(SafetensorsWrite, RefusesWhatItCannotWrite) {
    amp_tensor_view v = {};
    amp_error err = {};
    std::string path = TempPath("refused.safetensors");
    v.name = "x", v.dtype = AMP_DT_TF32;
    EXPECT_EQ(amp_safetensors_write(path.c_str(), &v, 1, nullptr, 0, nullptr, &err), AMP_INVALID_ARGUMENT);
    v.dtype = AMP_DT_F32, v.bytes = 8;
    EXPECT_EQ(amp_safetensors_write(path.c_str(), &v, 1, nullptr, 0, nullptr, &err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(ReadAll(path), "");
}

} // namespace
