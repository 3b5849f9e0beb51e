// damage_test.cc: models that are cut anywhere, or changed at random, are refused by a message that names the file,
// or read: then they can be written, and read again.
#include <gtest/gtest.h>

#include <csetjmp>
#include <cstdio>

#include "tests/base/failing_allocator.h"
#include "tests/onnx/onnx_bytes.h"
#include "tests/robustness/damage.h"

using namespace onnx_test;

namespace {

size_t accepted, indexed;

// A file of a byte may have messages of as much as a struct's bytes; no field has more memory a byte.
size_t Most(size_t size) { return 400 * size + (1 << 16); }

void Check(const std::string &bytes, const std::string &path) {
    Reading r(bytes, "/nowhere/m.onnx");
    EXPECT_LT(r.arena.used, Most(bytes.size()));
    if (r.status) {
        EXPECT_TRUE(r.status == AMP_BAD_FILE || r.status == AMP_NOT_FOUND) << r.Message();
        EXPECT_EQ(r.Message().rfind("/nowhere/m.onnx: ", 0), 0u) << r.Message();
        return;
    }
    accepted++;
    if (r.Index()) EXPECT_EQ(r.Message().rfind("/nowhere/m.onnx: ", 0), 0u) << r.Message();
    else indexed++;
    ASSERT_EQ(r.Write(path, {true, ONNX_EXTERNAL_NEVER}), AMP_OK) << r.Message();
    const std::string once = Get(path);
    Reading again(once);
    ASSERT_EQ(again.status, AMP_OK) << again.Message();
    ASSERT_EQ(again.Write(path, {true, ONNX_EXTERNAL_NEVER}), AMP_OK) << again.Message();
    EXPECT_TRUE(Get(path) == once) << "written twice, it differs";
}

TEST(OnnxDamage, CutAtEachByte) {
    const std::string good = Everything().text;
    Folder folder("/dev/shm/"); // nothing waits for a disk
    accepted = 0;
    for (size_t size = 0; size < good.size(); size++) Check(good.substr(0, size), folder / "cut");
    // At the end of a field of the model itself, from its graph on.
    EXPECT_EQ(accepted, 9u);
}

const std::vector<std::string> kWords = {std::string("\0", 1),
                                         "\x08",
                                         "\x0a",
                                         "\x12",
                                         "\x1a",
                                         "\x22",
                                         "\x2a",
                                         "\x32",
                                         "\x3a",
                                         "\x42",
                                         "\x4a",
                                         "\x6a",
                                         "\x72",
                                         "\xa0\x01",
                                         "\xaa\x01",
                                         "\xff",
                                         std::string(9, '\xff') + "\x01",
                                         "\x80\x80\x80\x80\x08",
                                         "\x0b",
                                         "\x0c",
                                         Prop("location", "../../etc/passwd").text,
                                         Prop("offset", "-1").text,
                                         "y",
                                         "x"};

void Mutate(const std::function<std::string()> &next, size_t accepted_least) {
    Folder folder("/dev/shm/");
    accepted = indexed = 0;
    const long count = robustness::FromEnvironment("AMP_MUTATIONS", 5000) / 2;
    for (long i = 0; i < count && !testing::Test::HasFailure(); i++) Check(next(), folder / "mutation");
    EXPECT_GT(accepted, (size_t)count / accepted_least);
    printf("%ld mutations: %zu were read, %zu of these are graphs\n", count, accepted, indexed);
}

// Of bytes: most have lengths that are wrong then.
TEST(OnnxDamage, Mutations) {
    const std::string good = Everything().text;
    robustness::Mutator mutator(good, good.size(), kWords, 18);
    Mutate([&] { return mutator.Next(); }, 50);
}

// A message as a tree, whatever its fields mean: what looks like a message is taken for one.
struct Tree {
    uint64_t tag = 0;
    std::string value; // of a leaf, as it is stored after the tag, and a length
    std::vector<Tree> fields;
    bool has_fields = false;
};

bool Take(const std::string &bytes, size_t *at, uint64_t *value) {
    *value = 0;
    for (int shift = 0; *at < bytes.size() && shift < 63; shift += 7) {
        const uint8_t byte = (uint8_t)bytes[(*at)++];
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

bool Parse(const std::string &bytes, std::vector<Tree> *fields) {
    uint64_t tag, length;
    for (size_t at = 0; at < bytes.size();) {
        if (!Take(bytes, &at, &tag) || tag < 8) return false;
        const size_t start = at;
        if ((tag & 7) == 0 && !Take(bytes, &at, &length)) return false;
        if ((tag & 7) == 1) at += 8;
        if ((tag & 7) == 5) at += 4;
        if ((tag & 7) == 2 && (!Take(bytes, &at, &length) || length > bytes.size() - at)) return false;
        if ((tag & 7) == 3 || (tag & 7) == 4 || (tag & 7) > 5 || at > bytes.size()) return false;
        Tree t;
        t.tag = tag;
        t.value = (tag & 7) == 2 ? bytes.substr(at, length) : bytes.substr(start, at - start);
        if ((tag & 7) == 2) at += length;
        t.has_fields = (tag & 7) == 2 && Parse(t.value, &t.fields) && !t.fields.empty();
        fields->push_back(t);
    }
    return true;
}

std::string Text(const std::vector<Tree> &fields) {
    Bytes b;
    for (const Tree &t : fields) {
        const std::string value = t.has_fields ? Text(t.fields) : t.value;
        b.Varint(t.tag);
        if ((t.tag & 7) == 2) b.Varint(value.size());
        b.Raw(value);
    }
    return b.text;
}

// The fields of a message that is chosen at random, the deeper the rarer.
std::vector<Tree> *Choose(std::vector<Tree> *fields, robustness::Random &random) {
    while (!fields->empty() && random.Below(8)) {
        Tree &t = (*fields)[random.Below(fields->size())];
        if (t.has_fields) fields = &t.fields;
    }
    return fields;
}

void Change(std::vector<Tree> *model, robustness::Random &random) {
    std::vector<Tree> *fields = Choose(model, random);
    if (fields->empty()) return;
    const size_t at = random.Below(fields->size());
    Tree &t = (*fields)[at];
    switch (random.Below(7)) {
    case 0: fields->erase(fields->begin() + (long)at); break;
    case 1: fields->insert(fields->begin() + (long)random.Below(fields->size()), Tree(t)); break;
    case 2: std::swap(t, (*fields)[random.Below(fields->size())]); break;
    case 3: t.tag = (1 + random.Below(26)) << 3 | (t.tag & 7); break;
    case 4: {
        const std::vector<Tree> *from = Choose(model, random); // a piece of another message
        if (!from->empty()) fields->push_back(Tree((*from)[random.Below(from->size())]));
        break;
    }
    case 5:
        t.has_fields = false;
        if ((t.tag & 7) == 2) t.value = kWords[random.Below(kWords.size())];
        break;
    default:
        if ((t.tag & 7) == 0) t.value = Bytes().Varint(random.Next() >> random.Below(64)).text;
        else if (!t.value.empty()) t.value[random.Below(t.value.size())] ^= (char)(1 << random.Below(8));
    }
}

// Of fields: taken away, twice, changed, moved, given another number; lengths are right again.
TEST(OnnxDamage, MutationsOfFields) {
    std::vector<Tree> good;
    ASSERT_TRUE(Parse(Everything().text, &good));
    ASSERT_TRUE(Text(good) == Everything().text);
    robustness::Random random(18);
    Mutate(
        [&] {
            std::vector<Tree> model = good;
            for (size_t i = 0, n = 1 + random.Below(4); i < n; i++) Change(&model, random);
            return Text(model);
        },
        10);
}

// Without memory, wherever that is, the arena jumps, and the file is closed.
TEST(OnnxDamage, MemoryRunsOut) {
    Folder folder;
    const std::string path = folder / "m.onnx"; // no temporary: a jump would lose it
    Put(path, Everything().text);
    for (int fail_at = 0;; fail_at++) {
        FailingAllocator allocator(fail_at);
        const amp_allocator a = allocator.get();
        volatile bool failed = true;
        Arena arena;
        OnnxModel model = {};
        OnnxIndex index;
        arena_init(&arena, &a);
        if (!setjmp(arena.out_of_memory)) {
            EXPECT_EQ(onnx_read(path.c_str(), &arena, &model, nullptr), AMP_OK);
            EXPECT_EQ(onnx_index(&model, &arena, &index, nullptr), AMP_OK);
            failed = false;
        }
        onnx_close(&model);
        arena_free(&arena);
        if (!failed) break;
    }
}

} // namespace
