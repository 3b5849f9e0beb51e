// Damaged safetensors files, read as arrays, as params and as checkpoints.
#include <cstring>

#include "tests/robustness/damage.h"
#include "tests/runtime/tiny.h"

namespace {

using namespace robustness;

const std::vector<std::string> kWords = {"{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         ":",
                                         "\"",
                                         "null",
                                         "\\u0000",
                                         "\\ud800",
                                         "\"F32\"",
                                         "\"U8\"",
                                         "\"shape\"",
                                         "\"data_offsets\"",
                                         "\"dtype\"",
                                         "\"__metadata__\"",
                                         "\xff",
                                         "[[[[",
                                         "0,0,0,0,0,0,0,0,0",
                                         "\"F4\"",
                                         " "};

// The bound of runtime/README.md.
size_t Most(size_t size) { return size + 96 * size + (1 << 20); }

size_t HeaderOf(const std::string &file) { return 8 + (unsigned char)file[0] + 256 * (unsigned char)file[1]; }

std::string Arrays() {
    static const unsigned char bytes[64] = {1, 2, 3};
    const struct {
        const char *name;
        amp_dtype dtype;
        std::vector<int64_t> dims;
    } tensors[] = {{"images", AMP_DT_F32, {2, 3}},    {"labels", AMP_DT_I64, {2}},  {"half", AMP_DT_F16, {3}},
                   {"brain", AMP_DT_BF16, {1, 1, 2}}, {"mask", AMP_DT_BOOL, {5}},   {"none", AMP_DT_F64, {0, 7}},
                   {"one", AMP_DT_I32, {}},           {"u\xc3\xa4", AMP_DT_U8, {4}}};
    std::vector<amp_tensor_view> views;
    for (const auto &t : tensors) {
        amp_tensor_view v = {};
        v.name = t.name, v.dtype = t.dtype, v.rank = (int32_t)t.dims.size(), v.data = bytes;
        v.bytes = amp_dtype_size(t.dtype);
        for (size_t i = 0; i < t.dims.size(); i++) v.dims[i] = t.dims[i], v.bytes *= (size_t)t.dims[i];
        views.push_back(v);
    }
    amp_metadata metadata[] = {{"made", "here"}, {"line", "a\nb"}};
    amp_error err = {};
    std::string path = Temporary("good.safetensors");
    EXPECT_EQ(amp_safetensors_write(path.c_str(), views.data(), (int)views.size(), metadata, 2, nullptr, &err), AMP_OK)
        << err.message;
    return Read(path);
}

// Every byte of every tensor is looked at: a wrong place shows under the address sanitizer.
void LookAt(const amp_safetensors *file) {
    unsigned sum = 0;
    std::vector<float> numbers;
    for (int i = 0; i < amp_safetensors_count(file); i++) {
        const amp_tensor_view *v = amp_safetensors_at(file, i);
        ASSERT_NE(amp_safetensors_find(file, v->name), nullptr);
        for (size_t k = 0; k < v->bytes; k++) sum += ((const unsigned char *)v->data)[k];
        size_t count = 1;
        for (int d = 0; d < v->rank; d++) count *= (size_t)v->dims[d];
        numbers.resize(std::min<size_t>(count, v->bytes) + 1);
        amp_tensor_to_f32(v, numbers.data(), std::min<size_t>(count, v->bytes));
    }
    volatile unsigned kept = sum;
    (void)kept;
    amp_safetensors_metadata(file, "made");
}

Outcome ReadArrays(const std::string &bytes) {
    PeakAllocator allocator;
    amp_allocator a = allocator.get();
    amp_safetensors *file = nullptr;
    amp_error err = {};
    amp_status status = amp_safetensors_open(Write("arrays.safetensors", bytes).c_str(), &a, &file, &err);
    EXPECT_EQ(file == nullptr, status != AMP_OK);
    if (file) LookAt(file);
    amp_safetensors_close(file);
    return {status, err.message, allocator.peak()};
}

Format ArraysFormat() {
    std::string good = Arrays();
    return {"arrays.safetensors", good, HeaderOf(good), kWords, ReadArrays, Most};
}

TEST(Safetensors, GoodIsRead) { GoodIsRead(ArraysFormat()); }
TEST(Safetensors, CutAnywhere) {
    Format f = ArraysFormat();
    CutAnywhere(f);
    for (size_t n = 0; n < f.good.size(); n++) EXPECT_EQ(f.read(f.good.substr(0, n)).status, AMP_BAD_FILE) << n;
}
TEST(Safetensors, HeaderBytes) { HeaderBytes(ArraysFormat()); }
TEST(Safetensors, RandomMutations) { RandomMutations(ArraysFormat(), 1); }

// A header that is as dense as headers can be, and one that only looks like it.
TEST(Safetensors, MemoryStaysInProportion) {
    std::string dense = "{", commas = "{\"a\":[";
    for (int i = 0; i < 20000; i++)
        dense += (i ? ",\"" : "\"") + std::to_string(i) +
                 "\":{\"dtype\":\"U8\",\"shape\":[0,0,0,0,0,0,0,0],\"data_offsets\":[0,0]}";
    for (int i = 0; i < 1000000; i++) commas += "0,";
    for (const std::string &header :
         {dense + "}", commas + "0]}", std::string(1 << 20, '['), std::string(1 << 20, '{')}) {
        std::string length(8, '\0');
        for (int i = 0; i < 8; i++) length[(size_t)i] = (char)(header.size() >> 8 * i);
        Outcome o = ReadArrays(length + header);
        EXPECT_EQ(o.status, AMP_BAD_FILE);
        EXPECT_LE(o.peak, Most(header.size()))
            << header.substr(0, 10) << ": " << o.peak / header.size() << " times the header";
    }
}

// ---- params and checkpoints: all or nothing
// --------------------------------------------------------------------------

struct States {
    States() : tiny(TinyOptions(8)) {
        TinyBatch batch(8);
        for (int i = 0; i < 3; i++) EXPECT_EQ(amp_step(tiny.session, batch.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK);
    }
    std::vector<float> All() const {
        std::vector<float> all = tiny.Weight(), bias = tiny.Bias(), m(bias.size());
        amp_error err = {};
        EXPECT_EQ(amp_session_get_moment(tiny.session, "fc.bias/momentum", m.data(), m.size(), &err), AMP_OK);
        all.insert(all.end(), bias.begin(), bias.end());
        all.insert(all.end(), m.begin(), m.end());
        return all;
    }
    Tiny tiny;
};

// Loads into |states|; a file that is refused must change nothing.
Outcome Load(States &states, const std::string &bytes, bool checkpoint) {
    amp_error err = {};
    std::string path = Write(checkpoint ? "state.ckpt" : "state.params", bytes);
    std::vector<float> before = states.All();
    char extra[64];
    amp_status status = checkpoint ? amp_checkpoint_load(states.tiny.session, path.c_str(), extra, sizeof extra, &err)
                                   : amp_params_load(states.tiny.params, path.c_str(), nullptr, nullptr, &err);
    std::string message = err.message;
    std::vector<float> after = states.All();
    EXPECT_TRUE(!status || !memcmp(before.data(), after.data(), before.size() * sizeof(float)))
        << "changed by a file that was refused: " << message;
    TinyBatch batch(2);
    double loss; // whatever was loaded can be computed with
    EXPECT_EQ(amp_eval(states.tiny.session, batch.inputs, {2, 0}, &loss, nullptr, &err), AMP_OK) << err.message;
    if (checkpoint && !status) {
        amp_status stepped = amp_step(states.tiny.session, batch.inputs, {2, 0}, nullptr, &err);
        EXPECT_TRUE(stepped == AMP_OK || stepped == AMP_SCALE_AT_FLOOR) << err.message;
    }
    return {status, message, 0};
}

Format StateFormat(bool checkpoint) {
    static States states;
    std::string path = Temporary("good.state");
    amp_error err = {};
    EXPECT_EQ(checkpoint ? amp_checkpoint_save(states.tiny.session, path.c_str(), "at 3", &err)
                         : amp_params_save(states.tiny.params, path.c_str(), nullptr, &err),
              AMP_OK)
        << err.message;
    std::string good = Read(path);
    return {checkpoint ? "state.ckpt" : "state.params",
            good,
            HeaderOf(good),
            kWords,
            [checkpoint](const std::string &bytes) { return Load(states, bytes, checkpoint); },
            Most,
            61,
            true};
}

TEST(Params, GoodIsRead) { GoodIsRead(StateFormat(false)); }
TEST(Params, CutAnywhere) { CutAnywhere(StateFormat(false)); }
TEST(Params, HeaderBytes) { HeaderBytes(StateFormat(false)); }
TEST(Params, DataBits) { DataBits(StateFormat(false)); }
TEST(Params, RandomMutations) { RandomMutations(StateFormat(false), 2); }
TEST(Checkpoint, GoodIsRead) { GoodIsRead(StateFormat(true)); }
TEST(Checkpoint, CutAnywhere) { CutAnywhere(StateFormat(true)); }
TEST(Checkpoint, HeaderBytes) { HeaderBytes(StateFormat(true)); }
TEST(Checkpoint, DataBits) { DataBits(StateFormat(true)); }
TEST(Checkpoint, RandomMutations) { RandomMutations(StateFormat(true), 3); }

} // namespace
