// model.so files: loading, and every damage found before the system's loader sees the file.
#include <algorithm>
#include <cstring>

extern "C" {
#include "base/elf.h"
#include "base/hash.h"
}
#include "tests/base/failing_allocator.h"
#include "tests/runtime/files.h"
#include "tests/runtime/tiny.h"

namespace {

// With the hash in its section, as the compiler writes it.
std::string Sealed(std::string bytes) {
    size_t at, length;
    amp_error err = {};
    EXPECT_EQ(amp_elf_section(bytes.data(), bytes.size(), AMP_MODEL_HASH_SECTION, &at, &length, &err), AMP_OK)
        << err.message;
    memset(&bytes[at], 0, length);
    uint8_t hash[32];
    amp_sha256_of(bytes.data(), bytes.size(), hash);
    memcpy(&bytes[at], hash, 32);
    return bytes;
}

std::string Library() {
    static const std::string bytes = Sealed(ReadAll("tests/runtime/tiny_model.so"));
    return bytes;
}

amp_status Load(const std::string &bytes, amp_error *err, const amp_allocator *a = nullptr) {
    amp::ModelOptions o;
    o.allocator = a;
    amp_model *model = nullptr;
    amp_status status = amp_model_load(WriteTemp("tiny.so", bytes).c_str(), &o, &model, err);
    EXPECT_EQ(model == nullptr, status != AMP_OK);
    amp_model_release(model);
    return status;
}

void ExpectMessage(const amp_error &err, const std::string &part) {
    EXPECT_NE(std::string(err.message).find(part), std::string::npos) << err.message;
}

TEST(ModelFile, LoadsAndTrains) {
    std::string path = WriteTemp("tiny.so", Library());
    amp_error err = {};
    amp_model *model;
    amp_params *params;
    amp_session *session;
    ASSERT_EQ(amp_model_load(path.c_str(), nullptr, &model, &err), AMP_OK) << err.message;
    amp_params_options seed = {sizeof seed, 7, 0};
    ASSERT_EQ(amp_params_create(model, &seed, &params, &err), AMP_OK) << err.message;
    amp::SessionOptions o = TinyOptions(16);
    ASSERT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK) << err.message;
    amp_model_release(model);
    amp_params_release(params);
    Tiny linked(o);
    TinyBatch batch(16);
    amp_step_report a, b;
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(amp_step(session, batch.inputs, {16, 0}, &a, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_step(linked.session, batch.inputs, {16, 0}, &b, &err), AMP_OK) << err.message;
        EXPECT_EQ(a.loss, b.loss);
    }
    amp_session_release(session);
}

TEST(ModelFile, LoadsAndUnloadsManyTimes) {
    amp_error err = {};
    for (int i = 0; i < 200; i++) ASSERT_EQ(Load(Library(), &err), AMP_OK) << err.message;
}

TEST(ModelFile, LikeOneOfEqualBytes) {
    const std::string path = WriteTemp("first.so", Library()), same = WriteTemp("same.so", Library());
    std::string bytes = Library();
    bytes[bytes.find("tiny.amp")] = 'T';
    const std::string other = WriteTemp("other.so", Sealed(bytes));
    amp_error err = {};
    amp_model *first, *again, *in_memory, *unlike;
    amp_params *params;
    amp_session *session;
    ASSERT_EQ(amp_model_load(path.c_str(), nullptr, &first, &err), AMP_OK) << err.message;
    amp::ModelOptions o;
    o.like = first;
    ASSERT_EQ(amp_model_load(same.c_str(), &o, &again, &err), AMP_OK) << err.message;
    ASSERT_EQ(amp_model_load(other.c_str(), &o, &unlike, &err), AMP_OK) << err.message;
    const std::string whole = Library();
    o.bytes = whole.data(), o.size = whole.size();
    ASSERT_EQ(amp_model_load(nullptr, &o, &in_memory, &err), AMP_OK) << err.message;
    EXPECT_EQ(again, first);
    EXPECT_EQ(in_memory, first);
    EXPECT_NE(unlike, first);
    size_t seal, length;
    std::string damaged;
    ASSERT_EQ(amp_elf_section(whole.data(), whole.size(), AMP_MODEL_HASH_SECTION, &seal, &length, &err), AMP_OK);
    o.bytes = nullptr, o.size = 0;
    for (size_t at : {seal, seal + 31, whole.size() / 2}) { // it is checked as any file is
        damaged = whole;
        damaged[at] ^= 1;
        amp_model *none;
        EXPECT_EQ(amp_model_load(WriteTemp("damaged.so", damaged).c_str(), &o, &none, &err), AMP_BAD_FILE) << at;
    }
    amp_model_release(first);
    amp_model_release(unlike);
    amp_model_release(in_memory);
    amp_params_options seed = {sizeof seed, 7, 0};
    ASSERT_EQ(amp_params_create(again, &seed, &params, &err), AMP_OK) << err.message;
    amp::SessionOptions options = TinyOptions(16);
    ASSERT_EQ(amp_session_create(again, params, &options, &session, &err), AMP_OK) << err.message;
    amp_memory_info memory;
    amp_session_get_memory(session, &memory);
    EXPECT_GT(memory.model, 1000u);
    EXPECT_LE(memory.model, 2 * whole.size());
    amp_model_release(again);
    amp_params_release(params);
    amp_session_release(session);
}

// Sanitizers make the file large and the hash slow: at most some 300 places.
size_t Stride(const std::string &file, size_t least) { return std::max(least, file.size() / 300); }

TEST(ModelFile, CutAnywhereIsDamage) {
    std::string whole = Library();
    ASSERT_GT(whole.size(), 1000u);
    amp_error err = {};
    for (size_t n = 0; n < whole.size(); n += Stride(whole, 64))
        ASSERT_EQ(Load(whole.substr(0, n), &err), AMP_BAD_FILE) << n;
    ASSERT_EQ(Load(whole + '\0', &err), AMP_BAD_FILE);
}

TEST(ModelFile, ChangedAnywhereIsDamage) {
    std::string whole = Library();
    amp_error err = {};
    for (size_t i = 0; i < whole.size(); i += Stride(whole, 61)) {
        std::string changed = whole;
        changed[i] ^= (char)(1 << i % 8);
        ASSERT_EQ(Load(changed, &err), AMP_BAD_FILE) << i;
        ExpectMessage(err, "tiny.so: ");
        ExpectMessage(err, "damaged");
    }
}

TEST(ModelFile, OtherFilesAreToldApart) {
    amp_error err = {};
    amp_model *model;
    EXPECT_EQ(amp_model_load(TempPath("missing.so").c_str(), nullptr, &model, &err), AMP_NOT_FOUND);
    ExpectMessage(err, "missing.so: cannot open");
    EXPECT_EQ(Load("", &err), AMP_BAD_FILE);
    EXPECT_EQ(Load("amp 1\nmodel ...", &err), AMP_BAD_FILE);
    ExpectMessage(err, "tiny.so: the text of a model; compile it: ampc model.amp");
    EXPECT_EQ(Load("\xff\namp 1\n", &err), AMP_BAD_FILE);
    ExpectMessage(err, "not a model of ampc");
    EXPECT_EQ(amp_model_load("/bin/sh", nullptr, &model, &err), AMP_BAD_FILE);
    ExpectMessage(err, "no section .amp.sha256");
    EXPECT_EQ(amp_model_load(::testing::TempDir().c_str(), nullptr, &model, &err), AMP_IO);
    EXPECT_EQ(amp_model_load(nullptr, nullptr, &model, &err), AMP_INVALID_ARGUMENT);
}

TEST(ModelFile, WithoutTheSymbolOrForAnotherMachine) {
    std::string renamed = Library();
    for (size_t at; (at = renamed.find("amp_model_query")) != std::string::npos;) renamed[at] = 'X';
    amp_error err = {};
    EXPECT_EQ(Load(Sealed(renamed), &err), AMP_BAD_FILE);
    EXPECT_EQ(std::string(err.message).find("damaged"), std::string::npos) << err.message;
    std::string other = Library();
    other[18] = (char)243; // RISC-V
    EXPECT_EQ(Load(Sealed(other), &err), AMP_UNSUPPORTED);
    ExpectMessage(err, "compiled for another processor (ELF machine 243");
}

TEST(ModelFile, RunsOutOfMemoryCleanly) {
    for (int fail = 0;; fail++) {
        FailingAllocator failing(fail);
        amp_allocator a = failing.get();
        amp_error err = {};
        amp_status status = Load(Library(), &err, &a);
        if (status == AMP_OK) break;
        ASSERT_EQ(status, AMP_OUT_OF_MEMORY) << err.message;
        ASSERT_LT(fail, 200);
    }
}

} // namespace
