// Sections of ELF files: found in sound ones, and damage never reads outside.
#include "base/elf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

void Put(std::string *s, size_t at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) (*s)[at + i] = (char)(value >> 8 * i);
}

// Header, 16 bytes of content, section names, three section headers: none, ".data.x", names.
std::string Minimal() {
    const std::string names("\0.data.x\0.names\0", 16);
    std::string s(64, '\0');
    memcpy(&s[0], "\177ELF\2\1\1", 7);
    Put(&s, 18, 62, 2);
    s += "0123456789abcdef" + names;
    size_t table = s.size();
    Put(&s, 40, table, 8);
    Put(&s, 58, 64, 2);
    Put(&s, 60, 3, 2);
    Put(&s, 62, 2, 2);
    s += std::string(3 * 64, '\0');
    Put(&s, table + 64, 1, 4), Put(&s, table + 68, 1, 4), Put(&s, table + 88, 64, 8), Put(&s, table + 96, 16, 8);
    Put(&s, table + 128, 9, 4), Put(&s, table + 132, 3, 4), Put(&s, table + 152, 80, 8), Put(&s, table + 160, 16, 8);
    return s;
}

// On memory of exactly that size, so that sanitizers see a byte too many.
amp_status Find(const std::string &file, const char *name, size_t *offset, size_t *length, amp_error *err) {
    std::unique_ptr<char[]> copy(new char[file.size()]);
    memcpy(copy.get(), file.data(), file.size());
    return amp_elf_section(copy.get(), file.size(), name, offset, length, err);
}

TEST(Elf, FindsSections) {
    size_t offset, length;
    amp_error err = {};
    ASSERT_EQ(Find(Minimal(), ".data.x", &offset, &length, &err), AMP_OK) << err.message;
    EXPECT_EQ(offset, 64u);
    EXPECT_EQ(length, 16u);
    EXPECT_EQ(Find(Minimal(), ".data", &offset, &length, &err), AMP_NOT_FOUND) << "names are compared whole";
    EXPECT_STREQ(err.message, "no section .data");
    EXPECT_EQ(amp_elf_machine(Minimal().data(), Minimal().size()), 62);
    EXPECT_EQ(amp_elf_machine("short", 5), -1);
}

// Two segments in the first 64 + 2 * 56 + 16 bytes, and |more| that none has.
std::string WithSegments(const std::string &more) {
    std::string s = Minimal().substr(0, 64) + std::string(2 * 56, '\0') + std::string(16, 'x') + more;
    Put(&s, 32, 64, 8), Put(&s, 54, 56, 2), Put(&s, 56, 2, 2);
    Put(&s, 64 + 8, 0, 8), Put(&s, 64 + 32, 100, 8);            // the headers
    Put(&s, 64 + 56 + 8, 176, 8), Put(&s, 64 + 56 + 32, 16, 8); // the 16 bytes
    return s;
}

TEST(Elf, LoadsWhatItsSegmentsHave) {
    const auto loaded = [](const std::string &file) {
        std::unique_ptr<char[]> copy(new char[file.size()]);
        memcpy(copy.get(), file.data(), file.size());
        return amp_elf_loaded(copy.get(), file.size());
    };
    std::string file = WithSegments("what tools read");
    EXPECT_EQ(loaded(WithSegments("")), 192u);
    EXPECT_EQ(loaded(file), 192u);
    EXPECT_EQ(loaded(Minimal()), Minimal().size()) << "no segments";
    EXPECT_EQ(loaded("short"), 5u);
    for (size_t at : {64 + 8, 64 + 56 + 8, 64 + 32, 32, 56}) {
        std::string wrong = file;
        Put(&wrong, at, 60000, 2);
        EXPECT_EQ(loaded(wrong), wrong.size()) << at;
    }
    for (size_t cut = 0; cut < file.size(); cut++) EXPECT_LE(loaded(file.substr(0, cut)), cut);
}

TEST(Elf, FindsSegmentsByType) {
    std::string file = WithSegments("");
    Put(&file, 64 + 56, 0x6474E552, 4), Put(&file, 64 + 56 + 16, 4096, 8), Put(&file, 64 + 56 + 40, 24, 8);
    const auto find = [](const std::string &of, uint64_t *address, uint64_t *length) {
        std::unique_ptr<char[]> copy(new char[of.size()]);
        memcpy(copy.get(), of.data(), of.size());
        return amp_elf_segment(copy.get(), of.size(), 0x6474E552, address, length);
    };
    uint64_t address, length;
    ASSERT_TRUE(find(file, &address, &length));
    EXPECT_EQ(address, 4096u);
    EXPECT_EQ(length, 24u);
    EXPECT_FALSE(find(WithSegments(""), &address, &length)) << "none of that type";
    EXPECT_FALSE(find(Minimal(), &address, &length)) << "no segments";
    for (size_t cut = 0; cut < 64 + 2 * 56; cut++) EXPECT_FALSE(find(file.substr(0, cut), &address, &length)) << cut;
}

TEST(Elf, NamesTheDamage) {
    const struct {
        size_t at;
        uint64_t value;
        int bytes;
        const char *message;
    } cases[] = {
        {0, 'x', 1, "not an ELF64"},
        {4, 1, 1, "not an ELF64"},
        {5, 2, 1, "not an ELF64"},
        {58, 63, 2, "no section headers"},
        {60, 0, 2, "no section headers"},
        {60, 9, 2, "end after the file"},
        {40, UINT64_MAX, 8, "end after"},
        {62, 3, 2, "names section 3 for names, but there are 3"},
        {96 + 152, 1 << 20, 8, "the ELF section names are outside the file"},
        {96 + 96, 1000, 8, "section .data.x is outside the file"},
        {96 + 88, UINT64_MAX, 8, ".data.x is outside the file"},
    };
    for (const auto &c : cases) {
        std::string s = Minimal();
        Put(&s, c.at, c.value, c.bytes);
        size_t offset, length;
        amp_error err = {};
        EXPECT_EQ(Find(s, ".data.x", &offset, &length, &err), AMP_BAD_FILE) << c.message;
        EXPECT_NE(std::string(err.message).find(c.message), std::string::npos) << c.message << " | " << err.message;
    }
}

TEST(Elf, CutOrChangedAnywhereNeverReadsOutside) {
    std::string whole = Minimal();
    size_t offset, length;
    for (size_t n = 0; n < whole.size(); n++)
        EXPECT_NE(Find(whole.substr(0, n), ".data.x", &offset, &length, nullptr), AMP_OK) << n;
    for (size_t i = 0; i < whole.size(); i++)
        for (int value : {0, 1, 0x7f, 0x80, 0xff}) {
            std::string changed = whole;
            changed[i] = (char)value;
            if (!Find(changed, ".data.x", &offset, &length, nullptr)) {
                EXPECT_LE(offset + length, whole.size());
            }
        }
}

} // namespace
