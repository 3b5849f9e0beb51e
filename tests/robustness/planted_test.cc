// Readers with planted faults: what damage.h asks of every reader finds them.
#include "tests/base/planted.h"
#include "tests/robustness/damage.h"

namespace {

using namespace robustness;

// Each byte counts.
const std::string kGood = "planted: 0123456789";

Format Reader(const std::function<Outcome(const std::string &)> &read, bool any_change_fails = true) {
    Format f = {"planted.file", kGood, 8, {"planted"}, read, [](size_t size) { return 10 * size + 100; }};
    f.any_change_fails = any_change_fails;
    return f;
}

Outcome Right(const std::string &bytes) {
    if (bytes == kGood) return {AMP_OK, "", 0};
    return {AMP_BAD_FILE, "planted.file: a byte is damaged", 0};
}

void DamageAll(const Format &f) {
    GoodIsRead(f);
    CutAnywhere(f);
    HeaderBytes(f);
    DataBits(f);
    RandomMutations(f, 1);
}

TEST(PlantedReader, IsFound) {
    if (Stride() > 1) GTEST_SKIP() << "under the address sanitizer not every place is damaged";
    DamageAll(Reader(Right));
    const struct {
        const char *fault, *text;
        Outcome of_damage;
    } faults[] = {
        {"no check", "byte 0 is", {AMP_OK, "", 0}},
        {"much memory", "planted.file, cut to 1 bytes", {AMP_BAD_FILE, "planted.file: a byte is damaged", 1000}},
        {"a defect of its own", "planted.file, cut to 0 bytes", {AMP_INTERNAL, "planted.file: a byte is damaged", 0}},
        {"no name", "does not name the file", {AMP_BAD_FILE, "a byte is damaged", 0}},
        {"no reason", "the message says nothing", {AMP_BAD_FILE, "planted.file", 0}},
    };
    for (const auto &f : faults)
        ExpectFound(f.fault, f.text, [&] {
            DamageAll(Reader([&](const std::string &bytes) { return bytes == kGood ? Right(bytes) : f.of_damage; }));
        });
    ExpectFound("a good file is refused", "a byte is damaged",
                [] { DamageAll(Reader([](const std::string &) { return Right("another"); }, false)); });
    for (auto damage : {CutAnywhere, HeaderBytes, DataBits})
        ExpectFound("no check", "", [&] { damage(Reader([](const std::string &) { return Right(kGood); })); });
    ExpectFound("no check", "mutation 0",
                [] { RandomMutations(Reader([](const std::string &) { return Right(kGood); }), 1); });
    ExpectFound("memory that is not freed", "bytes were not freed", [] {
        PeakAllocator allocator;
        const amp_allocator a = allocator.get();
        free(a.alloc(a.user, 8, 8));
    });
}

} // namespace
