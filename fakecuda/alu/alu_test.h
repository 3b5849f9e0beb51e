// What the tests of alu/ share: running an instruction on lists of operands, numbers to try, and rounding written from
// the definition.
#pragma once

#include "fakecuda/alu/alu.h"
#include "fakecuda/ptx/ptx.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using Operands = std::array<uint64_t, 4>;
__extension__ typedef __int128 S128;
__extension__ typedef unsigned __int128 U128;
__extension__ typedef __float128 F128;

struct Results {
    std::vector<uint64_t> first, second; // dst[0], dst[1]
};

inline AluContext context(int arch = 90, uint64_t seed = 0) { return AluContext{arch, seed, false}; }

inline AluOp found(const AluContext &c, const std::string &name) {
    AluOp op{};
    const char *why = nullptr;
    int rc = alu_find(&c, name.c_str(), &op, &why);
    EXPECT_EQ(rc, 0) << name << ": " << (why ? why : "not known");
    return op;
}

struct Register { // 32 lanes of 4 or 8 bytes
    alignas(32) uint64_t space[ALU_LANES];
    void set(int lane, int bytes, uint64_t v) {
        if (bytes == 8) space[lane] = v;
        else reinterpret_cast<uint32_t *>(space)[lane] = uint32_t(v);
    }
    uint64_t get(int lane, int bytes) const {
        return bytes == 8 ? space[lane] : reinterpret_cast<const uint32_t *>(space)[lane];
    }
};

// Runs |name| on every case, 32 at a time: with all lanes, with some of them, and with the first operand's register as
// the result's; all must agree.
inline Results run(const AluContext &c, const std::string &name, const std::vector<Operands> &cases) {
    const uint64_t untouched = 0x5a5a5a5a5a5a5a5a;
    AluOp op = found(c, name);
    Results r;
    if (!op.run) { // has failed already
        r.first.assign(cases.size(), 0xdead), r.second.assign(cases.size(), 0xdead);
        return r;
    }
    for (size_t start = 0; start < cases.size(); start += ALU_LANES) {
        int used = int(std::min<size_t>(ALU_LANES, cases.size() - start));
        Register in[4], whole[2], part[2];
        for (int s = 0; s < 4; ++s)
            for (int i = 0; i < ALU_LANES; ++i)
                in[s].set(i, s < op.sources ? op.source_bytes[s] : 4, cases[start + std::min(i, used - 1)][s]);
        for (int k = 0; k < 2; ++k)
            for (int i = 0; i < ALU_LANES; ++i) whole[k].space[i] = part[k].space[i] = untouched;
        const void *src[4] = {in[0].space, in[1].space, in[2].space, in[3].space};
        void *all[2] = {whole[0].space, op.dst_bytes[1] ? whole[1].space : nullptr},
             *some[2] = {part[0].space, op.dst_bytes[1] ? part[1].space : nullptr};
        const uint32_t mask = 0x6d5b3a97u;
        op.run(&c, &op, all, src, 0xffffffffu);
        op.run(&c, &op, some, src, mask);
        for (int k = 0; k < 2 && op.dst_bytes[k]; ++k)
            for (int i = 0; i < ALU_LANES; ++i) {
                int bytes = op.dst_bytes[k];
                uint64_t expected =
                    mask >> i & 1 ? whole[k].get(i, bytes) : untouched & (bytes == 8 ? ~0ull : 0xffffffffull);
                EXPECT_EQ(part[k].get(i, bytes), expected) << name << " lane " << i;
            }
        if (op.dst_bytes[0] == op.source_bytes[0]) {
            Register same = in[0];
            void *to[2] = {same.space, nullptr};
            const void *from[4] = {same.space, in[1].space, in[2].space, in[3].space};
            op.run(&c, &op, to, from, 0xffffffffu);
            for (int i = 0; i < ALU_LANES; ++i)
                EXPECT_EQ(same.get(i, op.dst_bytes[0]), whole[0].get(i, op.dst_bytes[0])) << name << " in place";
        }
        for (int i = 0; i < used; ++i) {
            r.first.push_back(whole[0].get(i, op.dst_bytes[0]));
            if (op.dst_bytes[1]) r.second.push_back(whole[1].get(i, 4));
        }
    }
    return r;
}

inline uint64_t run1(const AluContext &c, const std::string &name, uint64_t a, uint64_t b = 0, uint64_t d = 0,
                     uint64_t e = 0) {
    Results r = run(c, name, {Operands{a, b, d, e}});
    return r.first.empty() ? 0xdeadull : r.first[0];
}

// ---- numbers to try -------------------------------------------------------------------------------------------------

inline uint64_t low(uint64_t x, int bits) { return bits == 64 ? x : x & ((1ull << bits) - 1); }

// Edges of integers of that width, and random ones of every length.
inline std::vector<uint64_t> integers(int bits, int random, uint64_t seed) {
    std::vector<uint64_t> v;
    for (uint64_t x : {0ull, 1ull, 2ull, 3ull, 7ull, ~0ull, ~1ull}) v.push_back(low(x, bits));
    uint64_t top = 1ull << (bits - 1);
    for (uint64_t x : {top, top - 1, top + 1, top >> 1}) v.push_back(low(x, bits));
    std::mt19937_64 g(seed);
    for (int i = 0; i < random; ++i) v.push_back(low(g() >> (g() % bits), bits));
    return v;
}

inline std::vector<Operands> pairs(const std::vector<uint64_t> &a, const std::vector<uint64_t> &b) {
    std::vector<Operands> v;
    for (uint64_t x : a)
        for (uint64_t y : b) v.push_back({x, y, 0, 0});
    return v;
}

inline S128 as_integer(uint64_t x, int bits, bool is_signed) {
    x = low(x, bits);
    return is_signed && x >> (bits - 1) & 1 ? S128(x) - (S128(1) << bits) : S128(x);
}

inline uint32_t bits_of(float f) {
    uint32_t x;
    memcpy(&x, &f, 4);
    return x;
}
inline uint64_t bits_of(double f) {
    uint64_t x;
    memcpy(&x, &f, 8);
    return x;
}
inline float f32_of(uint64_t x) {
    uint32_t y = uint32_t(x);
    float f;
    memcpy(&f, &y, 4);
    return f;
}
inline double f64_of(uint64_t x) {
    double f;
    memcpy(&f, &x, 8);
    return f;
}

// Edges of f32, and random ones: of any bits, and near 1.
inline std::vector<uint64_t> floats(int random, uint64_t seed) {
    std::vector<uint64_t> v;
    for (uint32_t x : {0u, 1u, 2u, 0x007fffffu, 0x00800000u, 0x00800001u, 0x3f7fffffu, 0x3f800000u, 0x3f800001u,
                       0x33800000u, 0x34000000u, 0x7f7fffffu, 0x7f800000u, 0x7fc00000u, 0x7f800001u, 0x40000000u,
                       0x40400000u, 0x4b000000u, 0x3effffffu})
        v.push_back(x), v.push_back(x | 0x80000000u);
    std::mt19937_64 g(seed);
    for (int i = 0; i < random; ++i)
        v.push_back(uint32_t(g())),
            v.push_back(low(g(), 23) | (0x3f000000u + uint32_t(g() % 4) * 0x800000u) | uint32_t(g() & 1) << 31);
    return v;
}

inline bool is_nan32(uint64_t x) { return (x & 0x7fffffff) > 0x7f800000; }

// ---- rounding, from its definition ----------------------------------------------------------------------------------

struct Shape {
    int bits, digits, emin;
    uint64_t nan;
};
constexpr Shape F16{16, 11, -14, 0x7fff}, BF16{16, 8, -126, 0x7fff}, F32{32, 24, -126, 0x7fffffff},
    TF32{19, 11, -126, 0x3ffff};

// The value of a finite number or infinity.
inline F128 value(const Shape &f, uint64_t bits) {
    int fraction_bits = f.digits - 1, top = (1 << (f.bits - f.digits)) - 1, e = int(bits >> fraction_bits) & top;
    F128 v = F128(low(bits, fraction_bits));
    if (e == top) v = F128(INFINITY);
    else if (e) v += F128(1ull << fraction_bits);
    int scale = f.emin - fraction_bits + (e ? e - 1 : 0);
    F128 unit = F128(std::ldexp(1.0, scale / 2)) * F128(std::ldexp(1.0, scale - scale / 2));
    return (bits >> (f.bits - 1) & 1 ? -1 : 1) * v * unit;
}
inline bool is_nan(const Shape &f, uint64_t bits) {
    return low(bits, f.bits - 1) > uint64_t((1 << (f.bits - f.digits)) - 1) << (f.digits - 1);
}

// |mode|: "rn", "rz", "rm", "rp", "rna".  Finds by bisection the two values around an exact number; no
// formula in common with what is tested.
inline uint64_t rounded(const Shape &f, F128 x, const std::string &mode) {
    if (x != x) return f.nan;
    uint64_t sign = std::signbit(double(x)) ? 1ull << (f.bits - 1) : 0, inf = uint64_t((1 << (f.bits - f.digits)) - 1)
                                                                              << (f.digits - 1);
    F128 m = x < 0 ? -x : x;
    if (m == 0) return sign;
    if (m > F128(1e300) && m > value(f, inf - 1) * 4)
        return (mode == "rz" || (mode == "rm" && !sign) || (mode == "rp" && sign)) && m != F128(INFINITY)
                   ? sign | (inf - 1)
                   : sign | inf;
    uint64_t below = 0,
             above = inf; // value(below) <= m < value(above), infinity counts as the next power of two
    F128 limit = value(f, inf - 1) + (value(f, inf - 1) - value(f, inf - 2));
    auto at = [&](uint64_t b) { return b == inf ? limit : value(f, b); };
    bool over = m >= limit;
    while (!over && above - below > 1) {
        uint64_t middle = (above + below) / 2;
        (at(middle) <= m ? below : above) = middle;
    }
    if (over) below = inf - 1, above = inf;
    F128 down = m - at(below), up = at(above) - m;
    bool exact = down == 0;
    if (mode == "rz") above = below;
    else if (mode == "rm" && !sign) above = below;
    else if (mode == "rp" && sign) above = below;
    else if (mode == "rn" && (down < up || (down == up && below % 2 == 0))) above = below;
    else if (mode == "rna" && down < up) above = below;
    return sign | (exact ? below : above);
}
