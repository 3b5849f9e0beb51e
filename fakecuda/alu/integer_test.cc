// Integer instructions against wide arithmetic.
#include "fakecuda/alu/alu_test.h"

#include <functional>

namespace {

struct Type {
    const char *name;
    int bits;
    bool is_signed;
};
const Type kTypes[] = {{"u16", 16, false}, {"u32", 32, false}, {"u64", 64, false},
                       {"s16", 16, true},  {"s32", 32, true},  {"s64", 64, true}};

using Binary = std::function<S128(S128, S128, const Type &)>;

void check_binary(const std::string &opcode, const Binary &reference, bool only_signed = false, int result_factor = 1) {
    for (const Type &t : kTypes) {
        if ((only_signed && !t.is_signed) || (result_factor == 2 && t.bits == 64)) continue;
        std::vector<uint64_t> v = integers(t.bits, 40, 1);
        std::vector<Operands> cases = pairs(v, v);
        Results r = run(context(), opcode + "." + t.name, cases);
        ASSERT_EQ(r.first.size(), cases.size());
        for (size_t i = 0; i < cases.size(); ++i) {
            S128 a = as_integer(cases[i][0], t.bits, t.is_signed), b = as_integer(cases[i][1], t.bits, t.is_signed);
            ASSERT_EQ(r.first[i], low(uint64_t(reference(a, b, t)), t.bits * result_factor))
                << opcode << "." << t.name << " " << cases[i][0] << " " << cases[i][1];
        }
    }
}

S128 upper(S128 a, S128 b, const Type &t) { // of the product's 2 * bits
    if (t.bits < 64) return (a * b) >> t.bits;
    // schoolbook: 64 x 64 bits through four products of 32
    U128 ua = U128(uint64_t(a)), ub = U128(uint64_t(b));
    uint64_t high = uint64_t((ua * ub) >> 64);
    if (t.is_signed && a < 0) high -= uint64_t(b);
    if (t.is_signed && b < 0) high -= uint64_t(a);
    return S128(high);
}

TEST(Integer, SumsAndExtremes) {
    check_binary("add", [](S128 a, S128 b, const Type &) { return a + b; });
    check_binary("sub", [](S128 a, S128 b, const Type &) { return a - b; });
    check_binary("min", [](S128 a, S128 b, const Type &) { return a < b ? a : b; });
    check_binary("max", [](S128 a, S128 b, const Type &) { return a > b ? a : b; });
    check_binary(
        "abs", [](S128 a, S128, const Type &) { return a < 0 ? -a : a; }, true);
    check_binary(
        "neg", [](S128 a, S128, const Type &) { return -a; }, true);
}

TEST(Integer, Products) {
    check_binary("mul.lo", [](S128 a, S128 b, const Type &) { return S128(U128(a) * U128(b)); });
    check_binary("mul.hi", upper);
    check_binary(
        "mul.wide", [](S128 a, S128 b, const Type &) { return a * b; }, false, 2);
}

TEST(Integer, Quotients) {
    check_binary("div", [](S128 a, S128 b, const Type &) { return b == 0 ? S128(-1) : a / b; });
    check_binary("rem", [](S128 a, S128 b, const Type &) { return b == 0 ? a : a % b; });
}

TEST(Integer, Saturation) {
    auto clamp = [](S128 x) { return x < INT32_MIN ? S128(INT32_MIN) : x > INT32_MAX ? S128(INT32_MAX) : x; };
    std::vector<uint64_t> v = integers(32, 40, 2);
    std::vector<Operands> cases = pairs(v, v);
    for (Operands &o : cases) o[2] = uint32_t(o[0] * 0x9e3779b9u + o[1]);
    Results add = run(context(), "add.sat.s32", cases), sub = run(context(), "sub.sat.s32", cases),
            mad = run(context(), "mad.hi.sat.s32", cases);
    Results relu = run(context(), "max.relu.s32", cases), low_relu = run(context(), "min.relu.s32", cases);
    for (size_t i = 0; i < cases.size(); ++i) {
        S128 a = int32_t(cases[i][0]), b = int32_t(cases[i][1]), c = int32_t(cases[i][2]);
        ASSERT_EQ(add.first[i], uint32_t(clamp(a + b)));
        ASSERT_EQ(sub.first[i], uint32_t(clamp(a - b)));
        ASSERT_EQ(mad.first[i], uint32_t(((a * b) >> 32) + c)); // as an H200 does; the document has it saturate
        ASSERT_EQ(relu.first[i], uint32_t(std::max(std::max(a, b), S128(0))));
        ASSERT_EQ(low_relu.first[i], uint32_t(std::max(std::min(a, b), S128(0))));
    }
}

TEST(Integer, ProductAndSum) {
    for (const Type &t : kTypes) {
        std::vector<uint64_t> v = integers(t.bits, 30, 3);
        std::vector<Operands> cases = pairs(v, v);
        for (size_t i = 0; i < cases.size(); ++i) cases[i][2] = low(cases[i][0] * 0x9e3779b97f4a7c15ull ^ i, t.bits);
        Results lo = run(context(), std::string("mad.lo.") + t.name, cases),
                hi = run(context(), std::string("mad.hi.") + t.name, cases);
        Results sad = run(context(), std::string("sad.") + t.name, cases);
        for (size_t i = 0; i < cases.size(); ++i) {
            S128 a = as_integer(cases[i][0], t.bits, t.is_signed), b = as_integer(cases[i][1], t.bits, t.is_signed),
                 c = as_integer(cases[i][2], t.bits, t.is_signed);
            ASSERT_EQ(lo.first[i], low(uint64_t(U128(a) * U128(b)) + uint64_t(c), t.bits)) << t.name;
            ASSERT_EQ(hi.first[i], low(uint64_t(upper(a, b, t)) + uint64_t(c), t.bits)) << t.name;
            ASSERT_EQ(sad.first[i], low(uint64_t(c + (a < b ? b - a : a - b)), t.bits)) << t.name;
        }
        if (t.bits == 64) continue;
        for (Operands &o : cases) o[2] = o[2] * 0x10001;
        Results wide = run(context(), std::string("mad.wide.") + t.name, cases);
        for (size_t i = 0; i < cases.size(); ++i) {
            S128 a = as_integer(cases[i][0], t.bits, t.is_signed), b = as_integer(cases[i][1], t.bits, t.is_signed);
            ASSERT_EQ(wide.first[i], low(uint64_t(a * b) + low(cases[i][2], 2 * t.bits), 2 * t.bits)) << t.name;
        }
    }
}

// Numbers of 128 bits in two words: the carry goes from the first instruction to the second.
TEST(Integer, CarryChains) {
    AluContext c = context();
    AluOp add = found(c, "add.cc.u64"), addc = found(c, "addc.cc.u64"), sub = found(c, "sub.cc.u64"),
          subc = found(c, "subc.u64");
    EXPECT_TRUE(add.carry_out && !add.carry_in && addc.carry_in && addc.carry_out && subc.carry_in && !subc.carry_out);
    EXPECT_EQ(add.sources, 2);
    EXPECT_EQ(addc.sources, 2);
    std::mt19937_64 g(4);
    for (int round = 0; round < 200; ++round) {
        Register a0, a1, b0, b1, d0, d1, flag;
        for (int i = 0; i < ALU_LANES; ++i)
            a0.space[i] = g() | (i % 3 ? 0 : ~0ull), a1.space[i] = g(), b0.space[i] = g() | (i % 5 ? 0 : ~0ull),
            b1.space[i] = g() | (i % 7 ? 0 : ~0ull);
        for (int subtract = 0; subtract < 2; ++subtract) {
            void *first[2] = {d0.space, flag.space}, *second[2] = {d1.space, flag.space};
            const void *in0[4] = {a0.space, b0.space, nullptr, nullptr},
                       *in1[4] = {a1.space, b1.space, nullptr, flag.space};
            AluOp &one = subtract ? sub : add, &two = subtract ? subc : addc;
            one.run(&c, &one, first, in0, 0xffffffffu);
            two.run(&c, &two, second, in1, 0xffffffffu);
            for (int i = 0; i < ALU_LANES; ++i) {
                U128 a = U128(a1.space[i]) << 64 | a0.space[i], b = U128(b1.space[i]) << 64 | b0.space[i],
                     r = subtract ? a - b : a + b;
                ASSERT_EQ(d0.space[i], uint64_t(r));
                ASSERT_EQ(d1.space[i], uint64_t(r >> 64));
                if (!subtract) {
                    ASSERT_EQ(flag.get(i, 4), r < a ? 1u : 0u);
                }
            }
        }
    }
}

// A product of two 64-bit numbers as four of 32 bits, the way of the document's example.
TEST(Integer, MadCarries) {
    AluContext c = context();
    const char *names[] = {"mul.lo.u32",     "mul.hi.u32", "mad.lo.cc.u32", "madc.hi.u32", "mad.lo.cc.u32",
                           "madc.hi.cc.u32", "addc.u32",   "mad.lo.cc.u32", "madc.hi.u32"};
    std::mt19937_64 g(5);
    for (int round = 0; round < 100; ++round) {
        uint64_t a = g(), b = g() | (round % 3 ? 0 : 0xffffffff00000000ull);
        uint32_t x0 = uint32_t(a), x1 = uint32_t(a >> 32), y0 = uint32_t(b), y1 = uint32_t(b >> 32);
        Register reg[4], flag, out;
        auto step = [&](const char *name, uint32_t p, uint32_t q, uint32_t r) {
            AluOp op = found(c, name);
            reg[0].set(0, 4, p), reg[1].set(0, 4, q), reg[2].set(0, 4, r);
            void *dst[2] = {out.space, op.carry_out ? flag.space : nullptr};
            const void *src[4] = {reg[0].space, reg[1].space, reg[2].space, op.carry_in ? flag.space : nullptr};
            op.run(&c, &op, dst, src, 1);
            return uint32_t(out.get(0, 4));
        };
        uint32_t z0 = step(names[0], x0, y0, 0), z1 = step(names[1], x0, y0, 0);
        z1 = step(names[2], x0, y1, z1);
        uint32_t z2 = step(names[3], x0, y1, 0);
        z1 = step(names[4], x1, y0, z1);
        z2 = step(names[5], x1, y0, z2);
        uint32_t z3 = step(names[6], 0, 0, 0);
        z2 = step(names[7], x1, y1, z2);
        z3 = step(names[8], x1, y1, z3);
        U128 product = U128(a) * b;
        ASSERT_EQ(uint64_t(z1) << 32 | z0, uint64_t(product));
        ASSERT_EQ(uint64_t(z3) << 32 | z2, uint64_t(product >> 64));
    }
}

TEST(Integer, Of24Bits) {
    std::vector<uint64_t> v = integers(32, 40, 6);
    std::vector<Operands> cases = pairs(v, v);
    for (size_t i = 0; i < cases.size(); ++i) cases[i][2] = uint32_t(i * 0x9e3779b9u);
    for (bool is_signed : {false, true})
        for (bool high : {false, true}) {
            std::string end = std::string(high ? ".hi" : ".lo") + (is_signed ? ".s32" : ".u32");
            Results mul = run(context(), "mul24" + end, cases), mad = run(context(), "mad24" + end, cases);
            for (size_t i = 0; i < cases.size(); ++i) {
                S128 t = as_integer(cases[i][0], 24, is_signed) * as_integer(cases[i][1], 24, is_signed);
                uint32_t half = uint32_t(t >> (high ? 16 : 0));
                ASSERT_EQ(mul.first[i], half);
                ASSERT_EQ(mad.first[i], uint32_t(half + cases[i][2]));
            }
        }
}

TEST(Integer, DotProducts) {
    std::mt19937_64 g(7);
    std::vector<Operands> cases;
    for (int i = 0; i < 640; ++i) cases.push_back({uint32_t(g()), uint32_t(g()), uint32_t(g()), 0});
    for (bool sa : {false, true})
        for (bool sb : {false, true}) {
            std::string types = std::string(sa ? ".s32" : ".u32") + (sb ? ".s32" : ".u32");
            Results four = run(context(), "dp4a" + types, cases), lo = run(context(), "dp2a.lo" + types, cases),
                    hi = run(context(), "dp2a.hi" + types, cases);
            for (size_t i = 0; i < cases.size(); ++i) {
                S128 d4 = S128(cases[i][2]), dl = d4, dh = d4;
                for (int k = 0; k < 4; ++k) {
                    S128 b = as_integer(cases[i][1] >> (8 * k), 8, sb);
                    d4 += as_integer(cases[i][0] >> (8 * k), 8, sa) * b;
                    (k < 2 ? dl : dh) += as_integer(cases[i][0] >> (16 * (k % 2)), 16, sa) * b;
                }
                ASSERT_EQ(four.first[i], uint32_t(d4));
                ASSERT_EQ(lo.first[i], uint32_t(dl));
                ASSERT_EQ(hi.first[i], uint32_t(dh));
            }
        }
}

TEST(Integer, PairsOf16Bits) {
    std::mt19937_64 g(8);
    std::vector<Operands> cases;
    for (int i = 0; i < 640; ++i) cases.push_back({uint32_t(g()), uint32_t(g()), 0, 0});
    Results add = run(context(), "add.s16x2", cases), min = run(context(), "min.s16x2", cases),
            max = run(context(), "max.u16x2", cases);
    Results relu = run(context(), "max.relu.s16x2", cases);
    for (size_t i = 0; i < cases.size(); ++i)
        for (int h = 0; h < 32; h += 16) {
            uint16_t a = uint16_t(cases[i][0] >> h), b = uint16_t(cases[i][1] >> h);
            ASSERT_EQ(uint16_t(add.first[i] >> h), uint16_t(a + b));
            ASSERT_EQ(uint16_t(min.first[i] >> h), uint16_t(std::min(int16_t(a), int16_t(b))));
            ASSERT_EQ(uint16_t(max.first[i] >> h), std::max(a, b));
            ASSERT_EQ(uint16_t(relu.first[i] >> h), uint16_t(std::max<int>({int16_t(a), int16_t(b), 0})));
        }
}

// Registers may be wider than a 16-bit instruction: what is above does not count.
TEST(Integer, WiderRegistersAreChopped) {
    EXPECT_EQ(run1(context(), "add.s16", 0xffff0003, 0x12340004), 7u);
    EXPECT_EQ(run1(context(), "max.s16", 0x0001ffff, 0x00000001), 1u);
    EXPECT_EQ(run1(context(), "mul.wide.s16", 0x1234ffff, 2), 0xfffffffeu);
    AluOp op = found(context(), "neg.s16");
    EXPECT_EQ(op.dst_bits, 16);
    EXPECT_TRUE(op.dst_signed);
}

} // namespace
