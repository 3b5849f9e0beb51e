// setp and set: every operator on every type, joined with a predicate, with a second result.
#include "fakecuda/alu/alu_test.h"

namespace {

struct Type {
    const char *name;
    char kind; // b, u, s, f
    int bits;
};
const Type kTypes[] = {{"b16", 'b', 16}, {"b32", 'b', 32}, {"b64", 'b', 64}, {"u16", 'u', 16}, {"u32", 'u', 32},
                       {"u64", 'u', 64}, {"s16", 's', 16}, {"s32", 's', 32}, {"s64", 's', 64}, {"f16", 'f', 16},
                       {"bf16", 'f', 0}, {"f32", 'f', 32}, {"f64", 'f', 64}};

std::vector<std::string> operators(char kind) {
    std::vector<std::string> v = {"eq", "ne"};
    if (kind != 'b')
        for (const char *s : {"lt", "le", "gt", "ge"}) v.push_back(s);
    if (kind == 'u')
        for (const char *s : {"lo", "ls", "hi", "hs"}) v.push_back(s);
    if (kind == 'f')
        for (const char *s : {"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}) v.push_back(s);
    return v;
}

template <class T> bool holds(const std::string &o, T a, T b, bool unordered) {
    if (o == "num") return !unordered;
    if (o == "nan") return unordered;
    if (unordered) return o.size() == 3; // those that end in u
    std::string base = o.substr(0, 2);
    if (base == "eq") return a == b;
    if (base == "ne") return a != b;
    if (base == "lt" || base == "lo") return a < b;
    if (base == "le" || base == "ls") return a <= b;
    if (base == "gt" || base == "hi") return a > b;
    return a >= b;
}

double as_double(const Type &t, uint64_t x, bool ftz) {
    if (t.bits == 64) return f64_of(x);
    if (t.bits == 32) return ftz && !(x & 0x7f800000) ? 0 : double(f32_of(x));
    const Shape &f = t.bits ? F16 : BF16;
    if (is_nan(f, x)) return NAN;
    return ftz && !(x & 0x7c00) ? 0 : double(value(f, x));
}

bool expected(const Type &t, const std::string &o, uint64_t a, uint64_t b, bool ftz = false) {
    if (t.kind == 'f') {
        double x = as_double(t, a, ftz), y = as_double(t, b, ftz);
        return holds(o, x, y, std::isnan(x) || std::isnan(y));
    }
    bool is_signed = t.kind == 's';
    return holds(o, as_integer(a, t.bits, is_signed), as_integer(b, t.bits, is_signed), false);
}

std::vector<uint64_t> values(const Type &t) {
    if (t.kind != 'f') return integers(t.bits, 12, 1);
    std::vector<uint64_t> v;
    if (t.bits == 32) return floats(8, 2);
    if (t.bits == 64)
        for (double d : {0., -0., 1., -1., 5e-324, -5e-324, 1e300, 1.0000000000000002, double(INFINITY),
                         -double(INFINITY), double(NAN)})
            v.push_back(bits_of(d));
    else
        for (uint64_t x : {0x0000, 0x8000, 0x0001, 0x8001, 0x3c00, 0x3c01, 0xbc00, 0x3f80, 0xbf80, 0x7c00, 0xfc00,
                           0x7f80, 0xff80, 0x7fff, 0x7c01, 0x03ff})
            v.push_back(x);
    return v;
}

TEST(Compare, EveryOperatorOfEveryType) {
    for (const Type &t : kTypes) {
        std::vector<uint64_t> v = values(t);
        std::vector<Operands> cases = pairs(v, v);
        for (size_t i = 0; i < cases.size(); ++i) cases[i][2] = i & 1;
        for (const std::string &o : operators(t.kind)) {
            Results plain = run(context(), "setp." + o + "." + t.name, cases),
                    mask = run(context(), "set." + o + ".u32." + t.name, cases);
            ASSERT_EQ(plain.first.size(), cases.size());
            for (size_t i = 0; i < cases.size(); ++i) {
                uint64_t e = expected(t, o, cases[i][0], cases[i][1]);
                ASSERT_EQ(plain.first[i], e)
                    << o << "." << t.name << std::hex << " " << cases[i][0] << " " << cases[i][1];
                ASSERT_EQ(plain.second[i], 1 - e) << o << "." << t.name;
                ASSERT_EQ(mask.first[i], e ? 0xffffffffu : 0u) << o << "." << t.name;
            }
            for (const char *join : {"and", "or", "xor"}) {
                Results joined = run(context(), "setp." + o + "." + join + "." + t.name, cases);
                for (size_t i = 0; i < cases.size(); ++i) {
                    uint64_t p = expected(t, o, cases[i][0], cases[i][1]), q = 1 - p, c = cases[i][2];
                    auto with = [&](uint64_t x) { return *join == 'a' ? x & c : *join == 'o' ? x | c : x ^ c; };
                    ASSERT_EQ(joined.first[i], with(p)) << o << join << t.name;
                    ASSERT_EQ(joined.second[i], with(q)) << o << join << t.name;
                }
            }
        }
    }
}

TEST(Compare, FlushToZero) {
    for (const Type &t : kTypes) {
        if (t.kind != 'f' || t.bits == 64 || t.bits == 0) continue;
        std::vector<Operands> cases = pairs(values(t), values(t));
        for (const std::string &o : operators('f')) {
            Results r = run(context(), "setp." + o + ".ftz." + t.name, cases);
            for (size_t i = 0; i < cases.size(); ++i)
                ASSERT_EQ(r.first[i], uint64_t(expected(t, o, cases[i][0], cases[i][1], true))) << o << t.name;
        }
    }
    EXPECT_EQ(run1(context(), "setp.eq.ftz.f32", 1, 0x80000000), 1u);
    EXPECT_EQ(run1(context(), "setp.eq.f32", 1, 0x80000000), 0u);
}

TEST(Compare, TwoHalves) { // p is of the lower halves, q of the upper ones
    Results r = run(context(), "setp.lt.f16x2",
                    {Operands{0x3c004000, 0x40003c00, 0, 0}, Operands{0x40003c00, 0x3c004000, 0, 0},
                     Operands{0x7fff3c00, 0x3c003c00, 0, 0}});
    EXPECT_EQ(r.first, (std::vector<uint64_t>{0, 1, 0}));
    EXPECT_EQ(r.second, (std::vector<uint64_t>{1, 0, 0}));
    r = run(context(), "setp.geu.or.bf16x2",
            {Operands{0x3f804000, 0x40003f80, 0, 0}, Operands{0x7fff3f80, 0x3f804000, 1, 0}});
    EXPECT_EQ(r.first, (std::vector<uint64_t>{1, 1}));
    EXPECT_EQ(r.second, (std::vector<uint64_t>{0, 1}));
}

TEST(Compare, ResultsOfSet) {
    AluContext c = context();
    EXPECT_EQ(run1(c, "set.lt.f32.s32", uint32_t(-1), 1), 0x3f800000u);
    EXPECT_EQ(run1(c, "set.lt.f32.u32", uint32_t(-1), 1), 0u);
    EXPECT_EQ(run1(c, "set.gt.s32.f64", bits_of(2.0), bits_of(1.0)), 0xffffffffu);
    EXPECT_EQ(run1(c, "set.gt.and.s32.f64", bits_of(2.0), bits_of(1.0), 0), 0u);
    EXPECT_EQ(run1(c, "set.eq.u16.f16", 0x3c00, 0x3c00), 0xffffu);
    EXPECT_EQ(run1(c, "set.eq.f16.f16", 0x3c00, 0x3c00), 0x3c00u);
    EXPECT_EQ(run1(c, "set.eq.f16x2.f16x2", 0x3c00aaaa, 0x3c00bbbb), 0x3c000000u);
    EXPECT_EQ(run1(c, "set.ne.u32.f16x2", 0x3c003c00, 0x3c004000), 0x0000ffffu);
    EXPECT_EQ(run1(c, "set.eq.bf16x2.bf16x2", 0x3f803f80, 0x3f803f80), 0x3f803f80u);
}

} // namespace
