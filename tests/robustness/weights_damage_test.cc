// Damaged indexes of sharded weights.
#include "tests/robustness/damage.h"

#include "tests/runtime/runtime_c.h"

extern "C" {
#include "base/safetensors/weight_files.h"
}

namespace {

using namespace robustness;

const std::vector<std::string> kWords = {"{",    "}",     "[",          "]",        ",",       ":",    "\"",
                                         "../",  "\"a\"", "\"/\"",      "\\u0000",  "\\ud800", "null", "\xff",
                                         "[[[[", "{\"",   "weight_map", "metadata", ".",       "..",   "0"};

const char *const kNames[2][3] = {{"a", "h.0.w", "h.1.w"}, {"b", "h.2.w", "empty"}};

std::string Shard(int i) { return "shard" + std::to_string(i) + ".safetensors"; }

std::string Index() {
    static const float values[6] = {1, 2, 3, 4, 5, 6};
    std::string map;
    amp_error err = {};
    for (int i = 0; i < 2; i++) {
        std::vector<amp_tensor_view> views;
        for (const char *name : kNames[i]) {
            amp_tensor_view v = {};
            v.name = name, v.dtype = AMP_DT_F32, v.rank = 2, v.data = values;
            v.dims[0] = strcmp(name, "empty") ? 2 : 0, v.dims[1] = 3, v.bytes = (size_t)v.dims[0] * 12;
            views.push_back(v);
            map += std::string(map.empty() ? "" : ", ") + "\"" + name + "\": \"" + Shard(i) + "\"";
        }
        EXPECT_EQ(amp_safetensors_write(Temporary(Shard(i)).c_str(), views.data(), 3, nullptr, 0, nullptr, &err),
                  AMP_OK)
            << err.message;
    }
    return "{\"metadata\": {\"total_size\": 120}, \"weight_map\": {" + map + "}}";
}

// What is accepted has the six tensors of the shards, and every byte of them can be read.
Outcome ReadIndex(const std::string &text) {
    PeakAllocator allocator;
    amp_allocator a = allocator.get();
    amp_weight_files *files = nullptr;
    amp_error err = {};
    amp_status status = amp_weight_files_open(Write("damaged.index.json", text).c_str(), &a, &files, &err);
    EXPECT_EQ(files == nullptr, status != AMP_OK);
    for (int32_t i = 0; files && i < amp_weight_files_count(files); i++) {
        const amp_tensor_view *v = amp_weight_files_at(files, i);
        std::vector<char> bytes(v->bytes + 1);
        EXPECT_EQ(amp_weight_files_read(files, i, 0, bytes.data(), v->bytes, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_weight_files_read(files, i, 1, bytes.data(), v->bytes, &err), AMP_INTERNAL);
    }
    amp_weight_files_close(files);
    return {status, err.message, allocator.peak()};
}

// A parsed value takes some 100 bytes, and the shards their tables.
size_t Most(size_t size) { return 200 * size + (1 << 17); }

Format IndexFormat() {
    std::string good = Index();
    return {"damaged.index.json", good, good.size(), kWords, ReadIndex, Most};
}

TEST(WeightIndex, GoodIsRead) { GoodIsRead(IndexFormat()); }
TEST(WeightIndex, CutAnywhere) {
    Format f = IndexFormat();
    CutAnywhere(f);
    for (size_t n = 0; n < f.good.size(); n++) EXPECT_EQ(f.read(f.good.substr(0, n)).status, AMP_BAD_FILE) << n;
}
TEST(WeightIndex, EveryByte) { HeaderBytes(IndexFormat()); }
TEST(WeightIndex, RandomMutations) { RandomMutations(IndexFormat(), 4); }

} // namespace
