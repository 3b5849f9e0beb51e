// Sums in the metadata: what is damaged or edited is refused, what other programs may do with a file is not.
#include "tests/runtime/runtime_c.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/files.h"

extern "C" {
#include "base/safetensors/weight_files.h"
}

namespace {

using Metadata = std::map<std::string, std::string>;

struct Tensor {
    amp_dtype dtype;
    std::vector<int64_t> dims;
    std::string data;
    bool operator==(const Tensor &o) const { return dtype == o.dtype && dims == o.dims && data == o.data; }
};
using Tensors = std::map<std::string, Tensor>;

struct File {
    Metadata metadata;
    Tensors tensors;
};

const File kFile = {{{"amp.format", "params 1"}, {"amp.extra", "at \"3\"\n"}, {"format", "pt"}},
                    {{"a", {AMP_DT_F32, {2, 3}, "abcdefghijklmnopqrstuvwx"}},
                     {"\xc3\xa4 \"b\"", {AMP_DT_F16, {2}, "wxyz"}},
                     {"counter/step", {AMP_DT_I64, {}, std::string(8, '\1')}},
                     {"none", {AMP_DT_F64, {0, 7}, ""}}}};

std::string Save(const File &file, const std::string &name = "sums.st") {
    std::vector<amp_tensor_view> views;
    std::vector<amp_metadata> metadata;
    for (const auto &[key, value] : file.metadata) metadata.push_back({key.c_str(), value.c_str()});
    for (const auto &[key, t] : file.tensors) {
        amp_tensor_view v = {};
        v.name = key.c_str(), v.dtype = t.dtype, v.rank = (int32_t)t.dims.size(), v.data = t.data.data();
        v.bytes = t.data.size();
        for (size_t i = 0; i < t.dims.size(); i++) v.dims[i] = t.dims[i];
        views.push_back(v);
    }
    amp_error err = {};
    std::string path = TempPath(name);
    EXPECT_EQ(amp_safetensors_write(path.c_str(), views.data(), (int)views.size(), metadata.data(),
                                    (int)metadata.size(), nullptr, &err),
              AMP_OK)
        << err.message;
    return path;
}

// As the reference writes: no spaces, and in another order than ours.
std::string SaveAsOthers(const File &file) {
    std::string header, data;
    auto quoted = [](const std::string &text) {
        std::string out = "\"";
        for (char c : text) out += c == '"' ? "\\\"" : c == '\n' ? "\\n" : std::string(1, c);
        return out + "\"";
    };
    for (const auto &[name, t] : file.tensors) {
        const char *dtype = t.dtype == AMP_DT_F32   ? "F32"
                            : t.dtype == AMP_DT_F16 ? "F16"
                            : t.dtype == AMP_DT_I64 ? "I64"
                                                    : "F64";
        std::string dims;
        for (int64_t d : t.dims) dims += (dims.empty() ? "" : ",") + std::to_string(d);
        header += (header.empty() ? "" : ",") + quoted(name) + ":{\"dtype\":\"" + dtype + "\",\"shape\":[" + dims +
                  "],\"data_offsets\":[" + std::to_string(data.size()) + "," +
                  std::to_string(data.size() + t.data.size()) + "]}";
        data += t.data;
    }
    std::string metadata;
    for (auto m = file.metadata.rbegin(); m != file.metadata.rend(); ++m)
        metadata += (metadata.empty() ? "" : ",") + quoted(m->first) + ":" + quoted(m->second);
    if (!metadata.empty()) header += ",\"__metadata__\":{" + metadata + "}";
    header = "{" + header + "}";
    std::string length(8, '\0');
    for (int i = 0; i < 8; i++) length[(size_t)i] = (char)(header.size() >> 8 * i);
    return WriteTemp("others.st", length + header + data);
}

enum How { WHOLE, BY_TENSORS, BY_PIECES };

// |out|: what the file has, where it is read without an error.
amp_status Load(const std::string &path, How how, File *out, amp_error *err) {
    amp_safetensors *f = nullptr;
    amp_status status = how == WHOLE ? amp_safetensors_open(path.c_str(), nullptr, &f, err)
                                     : amp_safetensors_open_header(path.c_str(), AMP_FILE_REGULAR, nullptr, &f, err);
    *out = {};
    for (int i = 0; !status && i < amp_safetensors_count(f); i++) {
        const amp_tensor_view *v = amp_safetensors_at(f, i);
        Tensor t = {v->dtype, std::vector<int64_t>(v->dims, v->dims + v->rank), std::string(v->bytes, '\0')};
        amp_xxh64 sum;
        if (how == WHOLE) t.data.assign((const char *)v->data, v->bytes);
        else if (how == BY_TENSORS) status = amp_safetensors_read(f, v, 0, &t.data[0], v->bytes, err);
        else
            for (size_t at = 0, n; !status && (at < v->bytes || at == 0); at += n ? n : 1) {
                n = std::min<size_t>(v->bytes - at, 7);
                status = amp_safetensors_read_next(f, v, at, &t.data[at], n, &sum, err);
            }
        out->tensors[v->name] = t;
    }
    for (const auto &[key, value] : kFile.metadata) {
        const char *is = f ? amp_safetensors_metadata(f, key.c_str()) : nullptr;
        if (is) out->metadata[key] = is;
    }
    amp_safetensors_close(f);
    return status;
}

// All of the metadata, the sums too.
Metadata MetadataOf(const std::string &path) {
    Metadata all = kFile.metadata;
    amp_safetensors *f = nullptr;
    amp_error err = {};
    EXPECT_EQ(amp_safetensors_open(path.c_str(), nullptr, &f, &err), AMP_OK) << err.message;
    std::vector<std::string> keys = {"amp.xxh64"};
    for (const auto &t : kFile.tensors) keys.push_back("amp.xxh64/" + t.first);
    for (const std::string &key : keys)
        if (const char *sum = amp_safetensors_metadata(f, key.c_str())) all[key] = sum;
    amp_safetensors_close(f);
    return all;
}

TEST(Sums, AreThoseOfTheDocumentation) {
    Metadata all = MetadataOf(Save(kFile));
    uint64_t total = 0;
    char digits[17];
    auto sum = [](const std::string &text) {
        amp_xxh64 h;
        amp_xxh64_init(&h);
        amp_xxh64_update(&h, text.data(), text.size());
        return amp_xxh64_final(&h);
    };
    for (const auto &[key, value] : all)
        if (!key.compare(0, 4, "amp.") && key != "amp.xxh64") total += sum(key + '\0' + value + '\0');
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)total);
    EXPECT_EQ(all["amp.xxh64"], digits);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)sum("F32 2 3\nabcdefghijklmnopqrstuvwx"));
    EXPECT_EQ(all["amp.xxh64/a"], digits);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)sum("F64 0 7\n"));
    EXPECT_EQ(all["amp.xxh64/none"], digits);
    EXPECT_EQ(all.size(), kFile.metadata.size() + 1 + kFile.tensors.size());
}

// Any bit: it is refused, or what is read is the same, but for what others have put into the metadata.
TEST(Sums, NoBitChangesWhatIsRead) {
    std::string good = ReadAll(Save(kFile));
    File wanted = kFile;
    wanted.metadata.erase("format");
    int harmless = 0;
    for (size_t bit = 0; bit < 8 * good.size(); bit++) {
        std::string bad = good;
        bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
        std::string path = WriteTemp("flipped.st", bad);
        for (How how : {WHOLE, BY_TENSORS, BY_PIECES}) {
            File read;
            amp_error err = {};
            if (Load(path, how, &read, &err)) {
                ASSERT_NE(strstr(err.message, "flipped.st: "), nullptr) << err.message;
                continue;
            }
            read.metadata.erase("format");
            ASSERT_TRUE(read.tensors == wanted.tensors && read.metadata == wanted.metadata) << "byte " << bit / 8;
            harmless++;
        }
    }
    EXPECT_LT(harmless, 3 * 8 * 24); // changes of "format" and its value
}

TEST(Sums, AFileThatOthersSaveAgainIsSound) {
    File file = {MetadataOf(Save(kFile)), kFile.tensors}, read;
    file.metadata["format"] = "np", file.metadata["made by"] = "somebody";
    amp_error err = {};
    EXPECT_NE(ReadAll(SaveAsOthers(file)).find("amp.xxh64/counter/step"), std::string::npos);
    for (How how : {WHOLE, BY_TENSORS, BY_PIECES}) {
        ASSERT_EQ(Load(SaveAsOthers(file), how, &read, &err), AMP_OK) << err.message;
        EXPECT_TRUE(read.tensors == kFile.tensors);
    }
}

// As every file was before there were sums.
TEST(Sums, AFileWithoutSumsIsReadAsItIs) {
    File file = kFile, read;
    amp_error err = {};
    file.tensors["a"].data[0] = 'z';
    for (bool metadata : {true, false}) {
        if (!metadata) file.metadata.clear();
        ASSERT_EQ(Load(SaveAsOthers(file), WHOLE, &read, &err), AMP_OK) << err.message;
        EXPECT_TRUE(read.tensors == file.tensors);
    }
}

TEST(Sums, WhatWasEditedIsRefusedByName) {
    const File sound = {MetadataOf(Save(kFile)), kFile.tensors};
    const struct {
        const char *message;
        void (*edit)(File &);
    } cases[] = {
        {"others.st: tensor a is not as it was saved (its XXH64 is ", [](File &f) { f.tensors["a"].data[3] = '?'; }},
        {"tensor a is not as it was saved",
         [](File &f) {
             f.tensors["a"].dims = {3, 2};
         }},
        {"tensor counter/step is not as it was saved", [](File &f) { f.tensors["counter/step"].dtype = AMP_DT_F64; }},
        {"tensor none is not as it was saved",
         [](File &f) {
             f.tensors["none"].dims = {0, 8};
         }},
        {"amp.xxh64/a = ", [](File &f) { f.tensors.erase("a"); }},
        {"amp.xxh64/a = ", [](File &f) { f.tensors["A"] = f.tensors["a"], f.tensors.erase("a"); }},
        {"sums of 4 of 5 tensors", [](File &f) { f.tensors["new"] = f.tensors["a"]; }},
        {"its metadata is not as it was saved", [](File &f) { f.metadata["amp.extra"] = "at 4"; }},
        {"its metadata is not as it was saved", [](File &f) { f.metadata.erase("amp.extra"); }},
        {"its metadata is not as it was saved", [](File &f) { f.metadata["amp.new"] = ""; }},
        {"sums of 4 of 4 tensors, and none of its metadata", [](File &f) { f.metadata.erase("amp.xxh64"); }},
        {"sums of 3 of 4 tensors, and one of its metadata", [](File &f) { f.metadata.erase("amp.xxh64/a"); }},
        {"amp.xxh64/a = 12 is the sum of no tensor", [](File &f) { f.metadata["amp.xxh64/a"] = "12"; }},
    };
    for (const auto &c : cases) {
        File file = sound, read;
        c.edit(file);
        for (How how : {WHOLE, BY_TENSORS, BY_PIECES}) {
            amp_error err = {};
            EXPECT_EQ(Load(SaveAsOthers(file), how, &read, &err), AMP_BAD_FILE) << c.message;
            EXPECT_NE(strstr(err.message, c.message), nullptr) << err.message;
            EXPECT_NE(strstr(err.message, "save it without the entries of __metadata__ that begin with amp.xxh64"),
                      nullptr)
                << err.message;
        }
        for (auto m = file.metadata.begin(); m != file.metadata.end();) // the remedy
            m = m->first.compare(0, 9, "amp.xxh64") ? std::next(m) : file.metadata.erase(m);
        amp_error err = {};
        EXPECT_EQ(Load(SaveAsOthers(file), WHOLE, &read, &err), AMP_OK) << c.message << ": " << err.message;
    }
}

TEST(Sums, TextThatIsNotUtf8IsThatOfTheFile) {
    File file = kFile, read;
    amp_error err = {};
    file.metadata["amp.extra"] = "\xff \xc3( \xe4";
    file.tensors["\xe4"] = file.tensors["a"];
    ASSERT_EQ(Load(Save(file), BY_TENSORS, &read, &err), AMP_OK) << err.message;
    EXPECT_EQ(read.metadata["amp.extra"], "\xef\xbf\xbd \xef\xbf\xbd( \xef\xbf\xbd");
}

// What goes to a pipe cannot be written over: it has no sums.
TEST(Sums, APipeGetsNone) {
    std::string path = TempPath("pipe"), bytes;
    unlink(path.c_str());
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    std::thread reader([&] { bytes = ReadAll(path); });
    Save(kFile, "pipe");
    reader.join();
    unlink(path.c_str());
    File read;
    amp_error err = {};
    EXPECT_EQ(bytes.find("amp.xxh64"), std::string::npos);
    ASSERT_EQ(Load(WriteTemp("piped.st", bytes), WHOLE, &read, &err), AMP_OK) << err.message;
    EXPECT_TRUE(read.tensors == kFile.tensors && read.metadata == kFile.metadata);
}

} // namespace
