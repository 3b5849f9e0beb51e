// bits.cc: logic, shifts, bit fields, permutations.
#include <algorithm>

#include "fakecuda/isa/lanes.h"

namespace isa {
namespace {

uint32_t u(uint64_t x) { return static_cast<uint32_t>(x); }

// The loops of the document, bit by bit.
// A place or a length: of 64 bits the document does not say what a number above 255 means, and devices take it whole.
uint32_t within(uint32_t x, int bits) { return bits == 32 ? x & 0xff : std::min(x, 0xffu); }

uint64_t extract(uint64_t a, uint32_t pos, uint32_t len, int bits, bool is_signed) {
    pos = within(pos, bits);
    len = within(len, bits);
    int msb = bits - 1;
    bool sign = is_signed && len > 0 && (a >> std::min<int>(static_cast<int>(pos + len) - 1, msb) & 1);
    uint64_t d = 0;
    for (int i = 0; i <= msb; i++) {
        bool inside = i < static_cast<int>(len) && static_cast<int>(pos) + i <= msb;
        bool bit = inside ? a >> (static_cast<int>(pos) + i) & 1 : sign;
        d |= static_cast<uint64_t>(bit) << i;
    }
    return d;
}

uint64_t insert(uint64_t a, uint64_t b, uint32_t pos, uint32_t len, int bits) {
    pos = within(pos, bits);
    len = within(len, bits);
    for (uint32_t i = 0; i < len && pos + i < static_cast<uint32_t>(bits); i++) {
        uint64_t one = uint64_t(1) << (pos + i);
        b = (b & ~one) | (a >> i & 1 ? one : 0);
    }
    return b;
}

uint32_t find(uint64_t a, int bits, bool is_signed, bool shift_amount) {
    if (is_signed && (a >> (bits - 1) & 1)) a = ~a;
    for (int i = bits - 1; i >= 0; i--)
        if (a >> i & 1) return static_cast<uint32_t>(shift_amount ? bits - 1 - i : i);
    return 0xffffffff;
}

uint64_t reversed(uint64_t a, int bits) {
    uint64_t d = 0;
    for (int i = 0; i < bits; i++) d |= (a >> i & 1) << (bits - 1 - i);
    return d;
}

uint32_t zeros(uint64_t a, int bits) {
    uint32_t n = 0;
    while (n < static_cast<uint32_t>(bits) && !(a >> (bits - 1 - static_cast<int>(n)) & 1)) n++;
    return n;
}

uint32_t ones(uint64_t a) {
    uint32_t n = 0;
    for (; a; a >>= 1) n += a & 1;
    return n;
}

uint32_t table_logic(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t d = 0;
    for (int i = 0; i < 32; i++) {
        uint32_t index = (a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1);
        d |= (table >> index & 1) << i;
    }
    return d;
}

// Bytes of {b, a}, picked by four digits: the first is the highest byte's.
uint32_t bytes(const In &i, const int (&pick)[4]) {
    uint64_t both = static_cast<uint64_t>(i.b) << 32 | i.a;
    uint32_t d = 0;
    for (int k : pick) d = d << 8 | (both >> (8 * k) & 0xff);
    return d;
}

uint32_t permuted(const In &i) {
    uint64_t both = static_cast<uint64_t>(i.b) << 32 | i.a;
    uint32_t d = 0;
    for (int k = 3; k >= 0; k--) {
        uint32_t s = i.c >> (4 * k) & 0xf, byte = both >> (8 * (s & 7)) & 0xff;
        d = d << 8 | (s & 8 ? (byte & 0x80 ? 0xff : 0) : byte);
    }
    return d;
}

uint64_t left(uint64_t a, uint32_t n, uint32_t bits) {
    return n >= bits ? 0 : bits == 64 ? a << n : (a << n) & ((uint64_t(1) << bits) - 1);
}
uint64_t right(uint64_t a, uint32_t n, uint32_t bits) { return n >= bits ? 0 : a >> n; }
int64_t signed_right(int64_t a, uint32_t n, uint32_t bits) { return a >> std::min(n, bits - 1); }

uint32_t funnel_left(const In &i, uint32_t n) { return u(((uint64_t(i.b) << 32 | i.a) << n) >> 32); }
uint32_t funnel_right(const In &i, uint32_t n) { return n == 32 ? i.b : u((uint64_t(i.b) << 32 | i.a) >> n); }

const std::vector<uint64_t> kValues = {0,
                                       1,
                                       0x80,
                                       0x12345678,
                                       0x7fffffff,
                                       0x80000000,
                                       0xf0f0a5a5,
                                       0xffffffff,
                                       0x8000000000000001,
                                       0x0123456789abcdef,
                                       0xffffffffffffffff};

} // namespace

std::vector<Case> bit_cases() {
    std::vector<Case> all;
    all.push_back(lanes(
        "bits_logic", 75, pairs(kValues),
        {
            {'d', "and.b32 d, a, b;", WANT(bits(i.a & i.b))},
            {'d', "or.b32 d, a, b;", WANT(bits(i.a | i.b))},
            {'d', "xor.b32 d, a, b;", WANT(bits(i.a ^ i.b))},
            {'d', "not.b32 d, a;", WANT(bits(u(~i.a)))},
            {'d', "cnot.b32 d, a;", WANT(bits(i.a == 0))},
            {'D', "and.b64 D, A, B;", WANT(bits(i.A & i.B))},
            {'D', "xor.b64 D, A, 0xff00ff00ff00ff00;", WANT(bits(i.A ^ 0xff00ff00ff00ff00))},
            {'D', "not.b64 D, A;", WANT(bits(~i.A))},
            {'h', "or.b16 h, ha, hb;", WANT(bits(i.ha | i.hb))},
            {'h', "not.b16 h, ha;", WANT(bits(uint16_t(~i.ha)))},
            {'p', "setp.ne.u32 p, a, 0; setp.ne.u32 q, b, 0; and.pred p, p, q;", WANT(bits(i.a && i.b))},
            {'p', "setp.ne.u32 p, a, 0; setp.ne.u32 q, b, 0; xor.pred p, p, q;", WANT(bits((i.a != 0) != (i.b != 0)))},
            {'p', "setp.ne.u32 q, a, 0; not.pred p, q; mov.pred q, p; or.pred p, q, q;", WANT(bits(i.a == 0))},
        }));
    all.push_back(lanes("bits_lop3", 75,
                        pairs({0, 0xaaaaaaaa, 0xccccffff, 0x12345678, 0xffffffff}, {0xf0f0f0f0, 0x0ff0ffff}),
                        {
                            {'d', "lop3.b32 d, a, b, c, 0x80;", WANT(bits(i.a & i.b & i.c))},
                            {'d', "lop3.b32 d, a, b, c, 0x96;", WANT(bits(i.a ^ i.b ^ i.c))},
                            {'d', "lop3.b32 d, a, b, c, 0xca;", WANT(bits((i.a & i.b) | (~i.a & i.c)))},
                            {'d', "lop3.b32 d, a, b, c, 0x1d;", WANT(bits(table_logic(i.a, i.b, i.c, 0x1d)))},
                            {'d', "lop3.b32 d, a, b, c, 0x00;", WANT(bits(0))},
                            {'d', "lop3.b32 d, a, b, c, 0xff;", WANT(bits(0xffffffff))},
                        }));
    std::vector<In> shifts;
    for (uint64_t x : kValues)
        for (uint64_t n : {0, 1, 5, 15, 16, 31, 32, 33, 63, 64, 65, 200}) shifts.emplace_back(x, ~x * 3, n);
    all.push_back(lanes("bits_shift", 75, shifts,
                        {
                            {'d', "shl.b32 d, a, c;", WANT(bits(left(i.a, i.c, 32)))},
                            {'D', "shl.b64 D, A, c;", WANT(bits(left(i.A, i.c, 64)))},
                            {'h', "shl.b16 h, ha, c;", WANT(bits(left(i.ha, i.c, 16)))},
                            {'d', "shr.u32 d, a, c;", WANT(bits(right(i.a, i.c, 32)))},
                            {'d', "shr.b32 d, a, c;", WANT(bits(right(i.a, i.c, 32)))},
                            {'d', "shr.s32 d, a, c;", WANT(bits(u(uint64_t(signed_right(i.sa, i.c, 32)))))},
                            {'D', "shr.u64 D, A, c;", WANT(bits(right(i.A, i.c, 64)))},
                            {'D', "shr.s64 D, A, c;", WANT(bits(uint64_t(signed_right(i.sA, i.c, 64))))},
                            {'h', "shr.u16 h, ha, c;", WANT(bits(right(i.ha, i.c, 16)))},
                            {'h', "shr.s16 h, ha, c;", WANT(bits(uint16_t(signed_right(int16_t(i.ha), i.c, 16))))},
                            {'d', "shf.l.wrap.b32 d, a, b, c;", WANT(bits(funnel_left(i, i.c & 31)))},
                            {'d', "shf.r.wrap.b32 d, a, b, c;", WANT(bits(funnel_right(i, i.c & 31)))},
                            {'d', "shf.l.clamp.b32 d, a, b, c;", WANT(bits(funnel_left(i, std::min(i.c, 32u))))},
                            {'d', "shf.r.clamp.b32 d, a, b, c;", WANT(bits(funnel_right(i, std::min(i.c, 32u))))},
                        }));
    std::vector<In> fields;
    for (uint64_t x : kValues)
        for (uint64_t pos : {0, 3, 31, 32, 63, 64, 255, 256 + 4})
            for (uint64_t len : {0, 1, 8, 31, 32, 64, 255, 256 + 5}) fields.emplace_back(x, pos, len);
    all.push_back(lanes(
        "bits_fields", 75, fields,
        {
            {'d', "bfe.u32 d, a, b, c;", WANT(bits(extract(i.a, i.b, i.c, 32, false)))},
            {'d', "bfe.s32 d, a, b, c;", WANT(bits(extract(i.a, i.b, i.c, 32, true)))},
            {'D', "bfe.u64 D, A, b, c;", WANT(bits(extract(i.A, i.b, i.c, 64, false)))},
            {'D', "bfe.s64 D, A, b, c;", WANT(bits(extract(i.A, i.b, i.c, 64, true)))},
            {'d', "bfi.b32 d, a, 0x5a5a5a5a, b, c;", WANT(bits(insert(i.a, 0x5a5a5a5a, i.b, i.c, 32)))},
            {'D', "bfi.b64 D, A, 0x5a5a5a5a5a5a5a5a, b, c;", WANT(bits(insert(i.A, 0x5a5a5a5a5a5a5a5a, i.b, i.c, 64)))},
        }));
    all.push_back(lanes("bits_count_find", 75, pairs(kValues),
                        {
                            {'d', "bfind.u32 d, a;", WANT(bits(find(i.a, 32, false, false)))},
                            {'d', "bfind.s32 d, a;", WANT(bits(find(i.a, 32, true, false)))},
                            {'d', "bfind.u64 d, A;", WANT(bits(find(i.A, 64, false, false)))},
                            {'d', "bfind.s64 d, A;", WANT(bits(find(i.A, 64, true, false)))},
                            {'d', "bfind.shiftamt.u32 d, a;", WANT(bits(find(i.a, 32, false, true)))},
                            {'d', "bfind.shiftamt.s64 d, A;", WANT(bits(find(i.A, 64, true, true)))},
                            {'d', "brev.b32 d, a;", WANT(bits(reversed(i.a, 32)))},
                            {'D', "brev.b64 D, A;", WANT(bits(reversed(i.A, 64)))},
                            {'d', "clz.b32 d, a;", WANT(bits(zeros(i.a, 32)))},
                            {'d', "clz.b64 d, A;", WANT(bits(zeros(i.A, 64)))},
                            {'d', "popc.b32 d, a;", WANT(bits(ones(i.a)))},
                            {'d', "popc.b64 d, A;", WANT(bits(ones(i.A)))},
                        }));
    std::vector<In> picks;
    for (uint64_t c : {0x3210, 0x7654, 0x0123, 0x5410, 0x8888, 0xfedc, 0x19a3, 0x0000, 0x7777, 1, 2, 3})
        picks.emplace_back(0x837281f0, 0x04f5c6d7, c);
    auto mode = [](std::vector<std::vector<int>> rows) {
        return [rows](const In &i) {
            const std::vector<int> &r = rows[i.c & 3];
            const int pick[4] = {r[0], r[1], r[2], r[3]};
            return bits(bytes(i, pick));
        };
    };
    // The rows of the document's table, for the selectors 0 to 3.
    all.push_back(
        lanes("bits_permute", 75, picks,
              {
                  {'d', "prmt.b32 d, a, b, c;", WANT(bits(permuted(i)))},
                  {'d', "prmt.b32 d, a, b, 0x5410;", WANT(bits((i.b << 16) | (i.a & 0xffff)))},
                  {'d', "prmt.b32.f4e d, a, b, c;", mode({{3, 2, 1, 0}, {4, 3, 2, 1}, {5, 4, 3, 2}, {6, 5, 4, 3}})},
                  {'d', "prmt.b32.b4e d, a, b, c;", mode({{5, 6, 7, 0}, {6, 7, 0, 1}, {7, 0, 1, 2}, {0, 1, 2, 3}})},
                  {'d', "prmt.b32.rc8 d, a, b, c;", mode({{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}})},
                  {'d', "prmt.b32.ecl d, a, b, c;", mode({{3, 2, 1, 0}, {3, 2, 1, 1}, {3, 2, 2, 2}, {3, 3, 3, 3}})},
                  {'d', "prmt.b32.ecr d, a, b, c;", mode({{0, 0, 0, 0}, {1, 1, 1, 0}, {2, 2, 1, 0}, {3, 2, 1, 0}})},
                  {'d', "prmt.b32.rc16 d, a, b, c;", mode({{1, 0, 1, 0}, {3, 2, 3, 2}, {1, 0, 1, 0}, {3, 2, 3, 2}})},
              }));
    return all;
}

} // namespace isa
