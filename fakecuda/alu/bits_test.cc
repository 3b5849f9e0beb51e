// Logic, shifts, fields, counts and byte permutation, against the document's definitions.
#include "fakecuda/alu/alu_test.h"

#include <functional>

namespace {

void check(const std::string &name, const std::vector<Operands> &cases,
           const std::function<uint64_t(const Operands &)> &reference) {
    Results r = run(context(), name, cases);
    ASSERT_EQ(r.first.size(), cases.size());
    for (size_t i = 0; i < cases.size(); ++i)
        ASSERT_EQ(r.first[i], reference(cases[i]))
            << name << " " << std::hex << cases[i][0] << " " << cases[i][1] << " " << cases[i][2] << " " << cases[i][3];
}

std::vector<Operands> random_words(int count, uint64_t seed) {
    std::mt19937_64 g(seed);
    std::vector<Operands> v;
    for (int i = 0; i < count; ++i) v.push_back({uint32_t(g()), uint32_t(g()), uint32_t(g()), uint32_t(g())});
    return v;
}

const int kWidths[] = {16, 32, 64};
std::string b(int bits) { return ".b" + std::to_string(bits); }

TEST(Bits, Logic) {
    for (int bits : kWidths) {
        std::vector<uint64_t> v = integers(bits, 20, 1);
        std::vector<Operands> cases = pairs(v, v);
        check("and" + b(bits), cases, [](const Operands &o) { return o[0] & o[1]; });
        check("or" + b(bits), cases, [](const Operands &o) { return o[0] | o[1]; });
        check("xor" + b(bits), cases, [](const Operands &o) { return o[0] ^ o[1]; });
        check("not" + b(bits), cases, [&](const Operands &o) { return low(~o[0], bits); });
        check("cnot" + b(bits), cases, [](const Operands &o) -> uint64_t { return o[0] == 0; });
    }
    std::vector<Operands> truth = pairs({0, 1}, {0, 1});
    check("and.pred", truth, [](const Operands &o) { return o[0] & o[1]; });
    check("or.pred", truth, [](const Operands &o) { return o[0] | o[1]; });
    check("xor.pred", truth, [](const Operands &o) { return o[0] ^ o[1]; });
    check("not.pred", truth, [](const Operands &o) { return 1 - o[0]; });
    check("mov.pred", truth, [](const Operands &o) { return o[0]; });
    // NVRTC writes true as an immediate of -1.
    std::vector<Operands> immediate = pairs({0, 1}, {0, 0xffffffff});
    check("and.pred", immediate, [](const Operands &o) { return o[0] && o[1]; });
    check("or.pred", immediate, [](const Operands &o) { return o[0] || o[1]; });
    check("xor.pred", immediate, [](const Operands &o) { return !o[0] != !o[1]; });
}

TEST(Bits, ShiftsClamp) {
    for (int bits : kWidths) {
        std::vector<Operands> cases =
            pairs(integers(bits, 20, 2), {0, 1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 0xffffffff});
        check("shl" + b(bits), cases,
              [&](const Operands &o) { return o[1] >= uint64_t(bits) ? 0 : low(o[0] << o[1], bits); });
        auto logical = [&](const Operands &o) { return o[1] >= uint64_t(bits) ? 0 : o[0] >> o[1]; };
        check("shr" + b(bits), cases, logical);
        check("shr.u" + std::to_string(bits), cases, logical);
        check("shr.s" + std::to_string(bits), cases, [&](const Operands &o) {
            return low(uint64_t(as_integer(o[0], bits, true) >> std::min<uint64_t>(o[1], bits)), bits);
        });
    }
}

TEST(Bits, Lop3IsItsTable) {
    std::vector<Operands> cases;
    for (uint64_t table = 0; table < 256; ++table) cases.push_back({0xf0f01234u, 0xccccabcdu, 0xaaaa5678u, table});
    check("lop3.b32", cases, [](const Operands &o) {
        uint64_t r = 0;
        for (int i = 0; i < 32; ++i)
            r |= (o[3] >> ((o[0] >> i & 1) * 4 + (o[1] >> i & 1) * 2 + (o[2] >> i & 1)) & 1) << i;
        return r;
    });
    // The document's way to make the table: apply the function to 0xf0, 0xcc, 0xaa.
    EXPECT_EQ(run1(context(), "lop3.b32", 0x12345678, 0x9abcdef0, 0x0f1e2d3c, ((0xf0 & 0xcc) ^ ~0xaa) & 0xff),
              uint32_t((0x12345678u & 0x9abcdef0u) ^ ~0x0f1e2d3cu));
}

TEST(Bits, FunnelShift) {
    std::vector<Operands> cases = random_words(640, 3);
    for (size_t i = 0; i < cases.size(); ++i) cases[i][2] = i % 3 ? cases[i][2] % 70 : cases[i][2];
    for (bool clamp : {false, true}) {
        auto amount = [=](const Operands &o) { return clamp ? std::min<uint64_t>(o[2], 32) : o[2] & 31; };
        std::string mode = clamp ? ".clamp.b32" : ".wrap.b32";
        check("shf.l" + mode, cases,
              [&](const Operands &o) { return low((o[1] << amount(o)) | (o[0] >> (32 - amount(o))), 32); });
        check("shf.r" + mode, cases,
              [&](const Operands &o) { return low((o[1] << (32 - amount(o))) | (o[0] >> amount(o)), 32); });
    }
}

TEST(Bits, Counts) {
    for (int bits : {32, 64}) {
        std::vector<Operands> cases = pairs(integers(bits, 100, 4), {0});
        auto highest = [](uint64_t x) {
            int n = -1;
            for (; x; x >>= 1) ++n;
            return n;
        };
        check("popc" + b(bits), cases, [](Operands o) {
            uint64_t n = 0;
            for (; o[0]; o[0] >>= 1) n += o[0] & 1;
            return n;
        });
        check("clz" + b(bits), cases, [&](const Operands &o) -> uint64_t { return bits - 1 - highest(o[0]); });
        check("brev" + b(bits), cases, [&](const Operands &o) {
            uint64_t r = 0;
            for (int i = 0; i < bits; ++i) r |= (o[0] >> i & 1) << (bits - 1 - i);
            return r;
        });
        for (bool is_signed : {false, true})
            for (bool amount : {false, true})
                check(std::string("bfind") + (amount ? ".shiftamt" : "") + (is_signed ? ".s" : ".u") +
                          std::to_string(bits),
                      cases, [&](const Operands &o) -> uint64_t {
                          uint64_t a = is_signed && o[0] >> (bits - 1) ? low(~o[0], bits) : o[0];
                          int h = highest(a);
                          return h < 0 ? 0xffffffffu : uint32_t(amount ? bits - 1 - h : h);
                      });
    }
}

TEST(Bits, Fields) {
    const std::vector<uint64_t> at = {0, 1, 7, 31, 32, 33, 63, 64, 200, 255, 256 + 3},
                                lengths = {0, 1, 5, 31, 32, 33, 63, 64, 255, 256 + 4};
    for (int bits : {32, 64}) {
        auto within = [bits](uint64_t x) { return int(bits == 32 ? x & 0xff : std::min<uint64_t>(x, 0xff)); };
        std::vector<Operands> extract, insert;
        for (uint64_t a : integers(bits, 10, 5))
            for (uint64_t p : at)
                for (uint64_t l : lengths) {
                    extract.push_back({a, p, l, 0});
                    insert.push_back({a, low(a * 0x9e3779b97f4a7c15ull, bits), p, l});
                }
        for (bool is_signed : {false, true})
            check(std::string("bfe") + (is_signed ? ".s" : ".u") + std::to_string(bits), extract,
                  [&](const Operands &o) {
                      int pos = within(o[1]), len = within(o[2]);
                      bool sign = is_signed && len && o[0] >> std::min(pos + len - 1, bits - 1) & 1;
                      uint64_t d = 0;
                      for (int i = 0; i < bits; ++i)
                          d |= uint64_t(i < len && pos + i < bits ? o[0] >> (pos + i) & 1 : sign) << i;
                      return d;
                  });
        check("bfi" + b(bits), insert, [&](const Operands &o) {
            int pos = within(o[2]), len = within(o[3]);
            uint64_t f = o[1];
            for (int i = 0; i < len && pos + i < bits; ++i)
                f = (f & ~(1ull << (pos + i))) | (o[0] >> i & 1) << (pos + i);
            return f;
        });
    }
}

TEST(Bits, PermuteBytes) {
    std::vector<Operands> cases = random_words(640, 6);
    check("prmt.b32", cases, [](const Operands &o) {
        uint64_t pair = o[1] << 32 | o[0], r = 0;
        for (int i = 0; i < 4; ++i) {
            uint64_t control = o[2] >> (4 * i) & 15, byte = pair >> (8 * (control & 7)) & 0xff;
            if (control & 8) byte = byte & 0x80 ? 0xff : 0;
            r |= byte << (8 * i);
        }
        return r;
    });
    // The document's tables: for selector 0..3, the source bytes of bytes 3, 2, 1, 0.
    const struct {
        const char *mode;
        int bytes[4][4];
    } tables[] = {
        {"f4e", {{3, 2, 1, 0}, {4, 3, 2, 1}, {5, 4, 3, 2}, {6, 5, 4, 3}}},
        {"b4e", {{5, 6, 7, 0}, {6, 7, 0, 1}, {7, 0, 1, 2}, {0, 1, 2, 3}}},
        {"rc8", {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},
        {"ecl", {{3, 2, 1, 0}, {3, 2, 1, 1}, {3, 2, 2, 2}, {3, 3, 3, 3}}},
        {"ecr", {{0, 0, 0, 0}, {1, 1, 1, 0}, {2, 2, 1, 0}, {3, 2, 1, 0}}},
        {"rc16", {{1, 0, 1, 0}, {3, 2, 3, 2}, {1, 0, 1, 0}, {3, 2, 3, 2}}},
    };
    for (const auto &t : tables)
        check(std::string("prmt.b32.") + t.mode, cases, [&](const Operands &o) {
            uint64_t pair = o[1] << 32 | o[0], r = 0;
            for (int i = 0; i < 4; ++i) r |= (pair >> (8 * t.bytes[o[2] & 3][3 - i]) & 0xff) << (8 * i);
            return r;
        });
}

TEST(Bits, MasksAndExtensions) {
    std::vector<Operands> cases;
    for (uint64_t a : {0u, 1u, 5u, 16u, 31u, 32u, 33u, 63u, 64u, 0xffffffffu})
        for (uint64_t n : {0u, 1u, 3u, 16u, 27u, 31u, 32u, 33u, 64u, 0xffffffffu}) cases.push_back({a, n, 0, 0});
    for (bool clamp : {false, true})
        check(clamp ? "bmsk.clamp.b32" : "bmsk.wrap.b32", cases, [&](const Operands &o) {
            uint64_t from = clamp ? o[0] : o[0] & 31, count = clamp ? o[1] : o[1] & 31, r = 0;
            for (uint64_t i = 0; i < 32; ++i) r |= uint64_t(i >= from && i < from + count) << i;
            return r;
        });
    EXPECT_EQ(run1(context(), "bmsk.wrap.b32", 1, 2), 6u);

    std::vector<Operands> extend;
    for (uint64_t a : integers(32, 30, 7))
        for (uint64_t n : {0u, 1u, 7u, 8u, 31u, 32u, 33u, 40u, 0xffffffffu}) extend.push_back({a, n, 0, 0});
    for (bool clamp : {false, true})
        for (bool is_signed : {false, true})
            check(std::string("szext") + (clamp ? ".clamp" : ".wrap") + (is_signed ? ".s32" : ".u32"), extend,
                  [&](const Operands &o) {
                      uint64_t n = clamp ? std::min<uint64_t>(o[1], 32) : o[1] & 31;
                      return n == 0 ? 0 : low(uint64_t(as_integer(o[0], int(n), is_signed)), 32);
                  });
}

TEST(Bits, FindNthSet) { // the document's examples
    AluContext c = context();
    EXPECT_EQ(run1(c, "fns.b32", 0xaaaaaaaa, 3, 1), 3u);
    EXPECT_EQ(run1(c, "fns.b32", 0xaaaaaaaa, 3, uint32_t(-1)), 3u);
    EXPECT_EQ(run1(c, "fns.b32", 0xaaaaaaaa, 2, 1), 3u);
    EXPECT_EQ(run1(c, "fns.b32", 0xaaaaaaaa, 2, uint32_t(-1)), 1u);
    EXPECT_EQ(run1(c, "fns.b32", 0xaaaaaaaa, 2, 0), 0xffffffffu);
    EXPECT_EQ(run1(c, "fns.b32", 0xaaaaaaaa, 3, 0), 3u);
    EXPECT_EQ(run1(c, "fns.b32", 0xaaaaaaaa, 0, 16), 31u);
    EXPECT_EQ(run1(c, "fns.b32", 0xaaaaaaaa, 0, 17), 0xffffffffu);
}

TEST(Bits, MovesAndChoices) {
    for (int bits : kWidths) {
        std::vector<Operands> cases;
        std::vector<uint64_t> v = integers(bits, 5, 8);
        for (size_t i = 0; i < 64; ++i) cases.push_back({v[i % v.size()], v[(i / 3) % v.size()], i & 1, 0});
        check("mov" + b(bits), cases, [](const Operands &o) { return o[0]; });
        check("selp" + b(bits), cases, [](const Operands &o) { return o[2] ? o[0] : o[1]; });
        for (size_t i = 0; i < 64; ++i) cases[i][2] = uint32_t(int32_t(i) - 32);
        check("slct" + b(bits) + ".s32", cases, [](const Operands &o) { return int32_t(o[2]) >= 0 ? o[0] : o[1]; });
        std::vector<uint64_t> f = floats(13, 9);
        for (size_t i = 0; i < 64; ++i) cases[i][2] = f[i];
        check("slct" + b(bits) + ".f32", cases, [](const Operands &o) { return f32_of(o[2]) >= 0 ? o[0] : o[1]; });
        check("slct.ftz" + b(bits) + ".f32", cases,
              [](const Operands &o) { return f32_of(o[2]) >= 0 || std::fabs(f32_of(o[2])) < 0x1p-126f ? o[0] : o[1]; });
    }
    EXPECT_EQ(run1(context(), "mov.f32", 0x7fc12345), 0x7fc12345u); // bits stay, NaN too
    EXPECT_EQ(run1(context(), "selp.f32", 0x7fc12345, 1, 1), 0x7fc12345u);
}

} // namespace
