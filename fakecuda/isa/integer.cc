// integer.cc: addition, multiplication, division, minimum and the like on integers.
#include <algorithm>

#include "fakecuda/isa/lanes.h"

namespace isa {
namespace {

using std::max;
using std::min;
using I128 = __int128;
using U128 = unsigned __int128;

uint32_t u(int64_t x) { return static_cast<uint32_t>(x); }
uint64_t U(I128 x) { return static_cast<uint64_t>(x); }
uint16_t h(int64_t x) { return static_cast<uint16_t>(x); }
int16_t sh(uint16_t x) { return static_cast<int16_t>(x); }
uint32_t clamp32(int64_t x) { return u(min<int64_t>(max<int64_t>(x, INT32_MIN), INT32_MAX)); }
int32_t s24(uint32_t x) { return static_cast<int32_t>(x << 8) >> 8; } // the low 24 bits with their sign
template <class T> T distance(T a, T b) { return a < b ? b - a : a - b; }

const std::vector<uint64_t> kValues = {0,
                                       1,
                                       7,
                                       100,
                                       0x7fff,
                                       0x8000,
                                       0xffff,
                                       0x12345678,
                                       0x7fffffff,
                                       0x80000000,
                                       0xffffffff,
                                       0x100000001,
                                       0x123456789abcdef0,
                                       0x7fffffffffffffff,
                                       0x8000000000000000,
                                       0xffffffffffffffff};

} // namespace

std::vector<Case> integer_cases() {
    std::vector<Case> all;
    all.push_back(lanes("integer_add", 75, pairs(kValues),
                        {
                            {'d', "add.s32 d, a, b;", WANT(bits(i.a + i.b))},
                            {'d', "add.u32 d, a, b;", WANT(bits(i.a + i.b))},
                            {'d', "add.s32 d, a, -5;", WANT(bits(u(int64_t(i.a) - 5)))},
                            {'D', "add.s64 D, A, B;", WANT(bits(i.A + i.B))},
                            {'D', "add.u64 D, A, 0x8000000000000000;", WANT(bits(i.A + (uint64_t(1) << 63)))},
                            {'h', "add.s16 h, ha, hb;", WANT(bits(h(i.ha + i.hb)))},
                            {'d', "add.sat.s32 d, a, b;", WANT(bits(clamp32(int64_t(i.sa) + i.sb)))},
                            {'d', "sub.s32 d, a, b;", WANT(bits(i.a - i.b))},
                            {'D', "sub.u64 D, A, B;", WANT(bits(i.A - i.B))},
                            {'h', "sub.u16 h, ha, hb;", WANT(bits(h(i.ha - i.hb)))},
                            {'d', "sub.sat.s32 d, a, b;", WANT(bits(clamp32(int64_t(i.sa) - i.sb)))},
                            {'d', "neg.s32 d, a;", WANT(bits(0 - i.a))},
                            {'D', "neg.s64 D, A;", WANT(bits(0 - i.A))},
                            {'h', "neg.s16 h, ha;", WANT(bits(h(-i.ha)))},
                            {'d', "abs.s32 d, a;", WANT(bits(u(std::abs(int64_t(i.sa)))))},
                            {'D', "abs.s64 D, A;", WANT(bits(i.sA < 0 ? 0 - i.A : i.A))},
                            {'h', "abs.s16 h, ha;", WANT(bits(h(std::abs(int(sh(i.ha))))))},
                        }));
    all.push_back(lanes(
        "integer_carry", 75, pairs(kValues),
        {
            // 64-bit sums and differences of halves
            {'D',
             "{ .reg .b32 x, y, z, w; mov.b64 {x, y}, A; mov.b64 {z, w}, B; add.cc.u32 x, x, z; addc.u32 y, y, "
             "w; mov.b64 D, {x, y}; }",
             WANT(bits(i.A + i.B))},
            {'D',
             "{ .reg .b32 x, y, z, w; mov.b64 {x, y}, A; mov.b64 {z, w}, B; sub.cc.u32 x, x, z; subc.u32 y, y, "
             "w; mov.b64 D, {x, y}; }",
             WANT(bits(i.A - i.B))},
            {'d', "sub.cc.u32 t, c, 1; add.cc.u32 t, a, b; addc.u32 d, 0, 0;", WANT(bits((uint64_t(i.a) + i.b) >> 32))},
            {'d', "sub.cc.u32 t, c, 1; add.cc.u32 t, a, b; addc.cc.u32 u, t, b; addc.u32 d, 0, 0;",
             WANT(bits((uint64_t(u(int64_t(i.a) + i.b)) + i.b + ((uint64_t(i.a) + i.b) >> 32)) >> 32))},
            {'d', "sub.cc.u32 t, a, b; subc.u32 d, 0, 0;", WANT(bits(i.a < i.b ? 0xffffffff : 0))},
            {'D', "{ .reg .b32 x, y; mad.lo.cc.u32 x, a, b, c; madc.hi.u32 y, a, b, 0; mov.b64 D, {x, y}; }",
             WANT(bits(uint64_t(i.a) * i.b + i.c))},
            {'D', "add.cc.u64 T, A, B; addc.u64 D, 0, 0;", WANT(bits(U((U128(i.A) + i.B) >> 64)))},
        }));
    all.push_back(
        lanes("integer_multiply", 75, pairs(kValues, {3, 0x7fffffff7fffff00, 0xffffffffffffffff}),
              {
                  {'d', "mul.lo.s32 d, a, b;", WANT(bits(i.a * i.b))},
                  {'d', "mul.lo.u32 d, a, b;", WANT(bits(i.a * i.b))},
                  {'d', "mul.hi.s32 d, a, b;", WANT(bits(u((int64_t(i.sa) * i.sb) >> 32)))},
                  {'d', "mul.hi.u32 d, a, b;", WANT(bits((uint64_t(i.a) * i.b) >> 32))},
                  {'D', "mul.wide.s32 D, a, b;", WANT(bits(U(I128(i.sa) * i.sb)))},
                  {'D', "mul.wide.u32 D, a, b;", WANT(bits(uint64_t(i.a) * i.b))},
                  {'D', "mul.lo.s64 D, A, B;", WANT(bits(i.A * i.B))},
                  {'D', "mul.hi.s64 D, A, B;", WANT(bits(U((I128(i.sA) * i.sB) >> 64)))},
                  {'D', "mul.hi.u64 D, A, B;", WANT(bits(U((U128(i.A) * i.B) >> 64)))},
                  {'h', "mul.lo.s16 h, ha, hb;", WANT(bits(h(i.ha * int64_t(i.hb))))},
                  {'h', "mul.hi.s16 h, ha, hb;", WANT(bits(h((sh(i.ha) * sh(i.hb)) >> 16)))},
                  {'h', "mul.hi.u16 h, ha, hb;", WANT(bits(h((uint32_t(i.ha) * i.hb) >> 16)))},
                  {'d', "mul.wide.s16 d, ha, hb;", WANT(bits(u(sh(i.ha) * sh(i.hb))))},
                  {'d', "mul.wide.u16 d, ha, hb;", WANT(bits(uint32_t(i.ha) * i.hb))},
                  {'d', "mad.lo.s32 d, a, b, c;", WANT(bits(i.a * i.b + i.c))},
                  {'d', "mad.hi.s32 d, a, b, c;", WANT(bits(u((int64_t(i.sa) * i.sb) >> 32) + i.c))},
                  // The document has it saturate; devices do not.
                  {'d', "mad.hi.sat.s32 d, a, b, c;", WANT(bits(u((int64_t(i.sa) * i.sb) >> 32) + i.c))},
                  {'D', "mad.wide.s32 D, a, b, C;", WANT(bits(U(I128(i.sa) * i.sb) + i.C))},
                  {'D', "mad.wide.u32 D, a, b, C;", WANT(bits(uint64_t(i.a) * i.b + i.C))},
                  {'D', "mad.lo.s64 D, A, B, C;", WANT(bits(i.A * i.B + i.C))},
                  {'d', "mad.wide.u16 d, ha, hb, c;", WANT(bits(uint32_t(i.ha) * i.hb + i.c))},
                  {'d', "mul24.lo.s32 d, a, b;", WANT(bits(u(int64_t(s24(i.a)) * s24(i.b))))},
                  {'d', "mul24.hi.s32 d, a, b;", WANT(bits(u((int64_t(s24(i.a)) * s24(i.b)) >> 16)))},
                  {'d', "mul24.lo.u32 d, a, b;", WANT(bits(u(int64_t(i.a & 0xffffff) * (i.b & 0xffffff))))},
                  {'d', "mul24.hi.u32 d, a, b;", WANT(bits(u((int64_t(i.a & 0xffffff) * (i.b & 0xffffff)) >> 16)))},
                  {'d', "mad24.lo.u32 d, a, b, c;", WANT(bits(u(int64_t(i.a & 0xffffff) * (i.b & 0xffffff)) + i.c))},
              }));
    // No division by zero and none whose result does not fit: the document leaves both open.
    std::vector<In> divisions;
    for (uint64_t x : kValues)
        for (uint64_t y :
             {1ull, 2ull, 7ull, 0x7fffull, 0x12345ull, 0x100000003ull, 0x7fffffff00000005ull, 0xfffffffffffffff9ull})
            divisions.emplace_back(x, y, 0);
    all.push_back(lanes("integer_divide", 75, divisions,
                        {
                            {'d', "div.s32 d, a, b;", WANT(bits(u(int64_t(i.sa) / i.sb)))},
                            {'d', "div.u32 d, a, b;", WANT(bits(i.a / i.b))},
                            {'d', "rem.s32 d, a, b;", WANT(bits(u(int64_t(i.sa) % i.sb)))},
                            {'d', "rem.u32 d, a, b;", WANT(bits(i.a % i.b))},
                            {'D', "div.s64 D, A, B;", WANT(bits(U(I128(i.sA) / i.sB)))},
                            {'D', "div.u64 D, A, B;", WANT(bits(i.A / i.B))},
                            {'D', "rem.s64 D, A, B;", WANT(bits(U(I128(i.sA) % i.sB)))},
                            {'D', "rem.u64 D, A, B;", WANT(bits(i.A % i.B))},
                            {'h', "div.s16 h, ha, hb;", WANT(bits(h(sh(i.ha) / sh(i.hb))))},
                            {'h', "rem.u16 h, ha, hb;", WANT(bits(h(i.ha % i.hb)))},
                            {'d', "div.u32 d, a, 10;", WANT(bits(i.a / 10))},
                        }));
    all.push_back(lanes("integer_least_greatest", 75, pairs(kValues, {9}),
                        {
                            {'d', "min.s32 d, a, b;", WANT(bits(u(min(i.sa, i.sb))))},
                            {'d', "max.s32 d, a, b;", WANT(bits(u(max(i.sa, i.sb))))},
                            {'d', "min.u32 d, a, b;", WANT(bits(min(i.a, i.b)))},
                            {'d', "max.u32 d, a, b;", WANT(bits(max(i.a, i.b)))},
                            {'D', "min.s64 D, A, B;", WANT(bits(U(min(i.sA, i.sB))))},
                            {'D', "max.u64 D, A, B;", WANT(bits(max(i.A, i.B)))},
                            {'h', "max.s16 h, ha, hb;", WANT(bits(h(max(sh(i.ha), sh(i.hb)))))},
                            {'h', "min.u16 h, ha, hb;", WANT(bits(min(i.ha, i.hb)))},
                            {'d', "sad.s32 d, a, b, c;", WANT(bits(i.c + u(distance<int64_t>(i.sa, i.sb))))},
                            {'d', "sad.u32 d, a, b, c;", WANT(bits(i.c + distance(i.a, i.b)))},
                            {'D', "sad.s64 D, A, B, C;", WANT(bits(i.C + U(distance<I128>(i.sA, i.sB))))},
                            {'h', "sad.u16 h, ha, hb, hc;", WANT(bits(h(i.hc + distance<int>(i.ha, i.hb))))},
                        }));
    auto dot = [](const In &i, int size,
                  bool is_signed) { // sum of products of the bytes, or of halves of a and the low bytes of b
        int64_t sum = int64_t(i.sc);
        for (int k = 0; k < 32 / size; k++) {
            uint32_t x = i.a >> (size * k), y = i.b >> (8 * k);
            int64_t sx = size == 8 ? int64_t(int8_t(x)) : int64_t(int16_t(x)), ux = x & ((1u << size) - 1);
            sum += (is_signed ? sx : ux) * (is_signed ? int64_t(int8_t(y)) : int64_t(y & 0xff));
        }
        return bits(u(sum));
    };
    all.push_back(lanes(
        "integer_dot", 75,
        pairs({0, 0x01020304, 0xff80807f, 0x7f7f8001, 0xffffffff, 0x80000000}, {0, 12345, 0xffffff00}),
        {
            {'d', "dp4a.s32.s32 d, a, b, c;", [=](const In &i) { return dot(i, 8, true); }},
            {'d', "dp4a.u32.u32 d, a, b, c;", [=](const In &i) { return dot(i, 8, false); }},
            {'d', "dp2a.lo.s32.s32 d, a, b, c;", [=](const In &i) { return dot(i, 16, true); }},
            {'d', "dp2a.hi.u32.u32 d, a, b, c;", [=](const In &i) { return dot(In(i.A, i.b >> 16, i.C), 16, false); }},
        }));
    return all;
}

} // namespace isa
