// damage.h: damaged versions of a good file: cut anywhere, header bytes changed, random mutations from a seed.
//
// AMP_MUTATIONS is the number of random mutations of each kind of file (500 where it is not set, 200 under the
// sanitizers); AMP_SEED shifts the seed.
// AMP_KEEP=1 writes each damaged file to last.NAME in TEST_TMPDIR before it is read, to have the one that crashes.
#ifndef AMP_TESTS_ROBUSTNESS_DAMAGE_H
#define AMP_TESTS_ROBUSTNESS_DAMAGE_H

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "amp/base.h"
#include "tests/base/sanitizer.h"

namespace robustness {

inline long FromEnvironment(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? atol(text) : otherwise;
}
// Under the sanitizers, where everything takes many times as long, every tenth place and mutation, until AMP_MUTATIONS
// asks for more; which tenth depends on AMP_SEED.
inline size_t Stride() { return amp_test_address_sanitizer && !FromEnvironment("AMP_MUTATIONS", 0) ? 10 : 1; }
inline size_t FirstPlace() { return (size_t)FromEnvironment("AMP_SEED", 0) % Stride(); }
inline long MutationCount() { return FromEnvironment("AMP_MUTATIONS", amp_test_address_sanitizer ? 200 : 500); }

// A counter that SplitMix64 (Steele, Lea, Flood, 2014) makes random.
class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed + 0x9e3779b97f4a7c15u * (uint64_t)FromEnvironment("AMP_SEED", 0)) {}
    uint64_t Next() {
        uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
    size_t Below(size_t n) { return n ? (size_t)(Next() % n) : 0; }

  private:
    uint64_t state_;
};

// One to four random changes, most of them within the first |header| bytes.  |words| are pieces that mean something in
// the format.
class Mutator {
  public:
    Mutator(std::string good, size_t header, std::vector<std::string> words, uint64_t seed)
        : good_(std::move(good)), header_(std::min(header, good_.size())), words_(std::move(words)), random_(seed) {}

    std::string Next() {
        std::string s = good_;
        for (size_t i = 0, n = 1 + random_.Below(4); i < n; i++) Change(s);
        return s;
    }

  private:
    size_t Place(const std::string &s) {
        return random_.Below((random_.Below(8) ? std::min(header_, s.size()) : s.size()) + 1);
    }

    void Change(std::string &s) {
        size_t at = Place(s), length = std::min(s.size() - at, 1 + random_.Below(16));
        switch (random_.Below(9)) {
        case 0:
            if (at < s.size()) s[at] = (char)(s[at] ^ 1 << random_.Below(8));
            break;
        case 1:
            if (at < s.size()) s[at] = (char)random_.Next();
            break;
        case 2: s.insert(at, 1, (char)random_.Next()); break;
        case 3: s.erase(at, length); break;
        case 4: s.insert(at, s.substr(at, length)); break;
        case 5: s.insert(at, s.substr(Place(s), 1 + random_.Below(64))); break;
        case 6: s.resize(at); break;
        case 7:
            if (!words_.empty()) s.insert(at, words_[random_.Below(words_.size())]);
            break;
        default: Number(s, at); break;
        }
    }
    // The next run of digits becomes one that readers get wrong.
    void Number(std::string &s, size_t at) {
        static const char *const numbers[] = {"0",
                                              "1",
                                              "-1",
                                              "2147483648",
                                              "4294967296",
                                              "9223372036854775807",
                                              "9223372036854775808",
                                              "18446744073709551616",
                                              "1e400",
                                              "0.5",
                                              "99999999",
                                              "00",
                                              "-9223372036854775808"};
        size_t begin = s.find_first_of("0123456789", at);
        if (begin == std::string::npos) return;
        size_t end = std::min(s.find_first_not_of("0123456789", begin), s.size());
        s.replace(begin, end - begin, numbers[random_.Below(sizeof numbers / sizeof *numbers)]);
    }

    std::string good_;
    size_t header_;
    std::vector<std::string> words_;
    Random random_;
};

// An allocator that knows the most bytes that were out at once; everything must come back.
class PeakAllocator {
  public:
    ~PeakAllocator() { EXPECT_EQ(now_, 0u) << "bytes were not freed"; }
    amp_allocator get() { return {this, Alloc, Free}; }
    size_t peak() const { return peak_; }

  private:
    static void *Alloc(void *user, size_t size, size_t align) {
        auto *self = static_cast<PeakAllocator *>(user);
        if (size > kMost - self->now_) return nullptr; // no damaged file may come near
        void *p = aligned_alloc(std::max<size_t>(align, 16), (size + align + 15) & ~(std::max<size_t>(align, 16) - 1));
        if (p) self->peak_ = std::max(self->peak_, self->now_ += size);
        return p;
    }
    static void Free(void *user, void *p, size_t size, size_t) {
        static_cast<PeakAllocator *>(user)->now_ -= size;
        free(p);
    }
    static constexpr size_t kMost = (size_t)2 << 30;
    size_t now_ = 0, peak_ = 0;
};

inline std::string Read(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}
inline std::string Temporary(const std::string &name) { return testing::TempDir() + name; }
inline std::string Write(const std::string &name, const std::string &bytes) {
    std::string path = Temporary(name);
    unlink(path.c_str()); // some file systems write a file that is cut to nothing and filled again to the disk at once
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
}

// What a reader made of a file.
struct Outcome {
    amp_status status;
    std::string message;
    size_t peak; // bytes of memory
};

struct Format {
    std::string name, good; // |name| is part of every message
    size_t header;          // bytes that are changed one by one
    std::vector<std::string> words;
    std::function<Outcome(const std::string &)> read;
    std::function<size_t(size_t)> most; // bytes of memory for a file of the given size
    size_t stride = 1;                  // of truncations after the header
    bool any_change_fails = false;      // the file has a checksum
    int share = 1;                      // good files of this kind, which share the mutations
};

inline void Check(const Format &f, const std::string &bytes, const std::string &what) {
    static const bool keep = FromEnvironment("AMP_KEEP", 0);
    if (keep) Write("last." + f.name, bytes);
    Outcome o = f.read(bytes);
    EXPECT_LE(o.peak, f.most(bytes.size())) << f.name << ", " << what;
    if (o.status == AMP_OK) return;
    EXPECT_NE(o.status, AMP_INTERNAL) << f.name << ", " << what << ": " << o.message;
    size_t at = o.message.find(f.name);
    EXPECT_NE(at, std::string::npos) << what << ": the message does not name the file: " << o.message;
    if (at != std::string::npos) {
        EXPECT_GT(o.message.size(), at + f.name.size() + 8) << what << ": the message says nothing: " << o.message;
    }
    if (testing::Test::HasFailure()) Write("failed." + f.name, bytes); // in TEST_TMPDIR, to look at
}

inline void CutAnywhere(const Format &f) {
    for (size_t n = FirstPlace(); n < f.good.size() && !testing::Test::HasFailure();
         n += Stride() * (n < f.header ? 1 : f.stride)) {
        Check(f, f.good.substr(0, n), "cut to " + std::to_string(n) + " bytes");
        if (f.any_change_fails) {
            EXPECT_NE(f.read(f.good.substr(0, n)).status, AMP_OK) << "cut to " << n;
        }
    }
}

// Each bit of each byte of the header, and the values that end strings, nest and count; without AMP_MUTATIONS of each
// byte one value in three, other ones of its neighbours.
inline void HeaderBytes(const Format &f) {
    for (size_t i = FirstPlace(); i < f.header && !testing::Test::HasFailure(); i += Stride()) {
        std::vector<unsigned char> values = {0, 0xff, 0x7f, 0x80, '"', '{', '9', '\n'};
        for (int bit = 0; bit < 8; bit++) values.push_back((unsigned char)(f.good[i] ^ 1 << bit));
        const bool all = FromEnvironment("AMP_MUTATIONS", 0) || f.header < 16;
        for (size_t v = 0; v < values.size(); v++) {
            if (!all && (i + v) % 3) continue;
            const unsigned char value = values[v];
            std::string changed = f.good;
            changed[i] = (char)value;
            Check(f, changed, "byte " + std::to_string(i) + " is " + std::to_string(value));
            if (f.any_change_fails && changed != f.good) {
                EXPECT_NE(f.read(changed).status, AMP_OK) << "byte " << i << " is " << (int)value;
            }
        }
    }
}

// A bit of each byte after the header.
inline void DataBits(const Format &f) {
    for (size_t i = f.header + FirstPlace(); i < f.good.size() && !testing::Test::HasFailure(); i += Stride()) {
        std::string changed = f.good;
        changed[i] = (char)(changed[i] ^ 1 << i % 8);
        Check(f, changed, "byte " + std::to_string(i) + " is changed");
        if (f.any_change_fails) {
            EXPECT_NE(f.read(changed).status, AMP_OK) << "byte " << i;
        }
    }
}

inline void RandomMutations(const Format &f, uint64_t seed) {
    Mutator mutator(f.good, f.header, f.words, seed);
    const long count = (MutationCount() + f.share - 1) / f.share;
    for (long i = 0; i < count && !testing::Test::HasFailure(); i++) {
        std::string changed = mutator.Next();
        Check(f, changed, "mutation " + std::to_string(i) + " of seed " + std::to_string(seed));
        if (f.any_change_fails && changed != f.good) {
            EXPECT_NE(f.read(changed).status, AMP_OK) << "mutation " << i;
        }
    }
}

inline void GoodIsRead(const Format &f) {
    Outcome o = f.read(f.good);
    EXPECT_EQ(o.status, AMP_OK) << o.message;
}

} // namespace robustness
#endif
