// compare.cc: setp, set, selp, slct.
#include "fakecuda/isa/lanes.h"

namespace isa {
namespace {

const float kInf = INFINITY, kNaN = NAN, kTiny = 1e-40f; // subnormal

template <class T> bool unordered(T a, T b) { return std::isnan(a) || std::isnan(b); }

Want p(bool b) { return bits(b); }

const std::vector<uint64_t> kValues = {0,
                                       1,
                                       5,
                                       0x7fff,
                                       0x8000,
                                       0x7fffffff,
                                       0x80000000,
                                       0xffffffff,
                                       0x7fffffffffffffff,
                                       0x8000000000000000,
                                       0xffffffffffffffff};

} // namespace

std::vector<Case> compare_cases() {
    std::vector<Case> all;
    all.push_back(lanes("compare_integers", 75, pairs(kValues),
                        {
                            {'p', "setp.eq.s32 p, a, b;", WANT(p(i.a == i.b))},
                            {'p', "setp.ne.s32 p, a, b;", WANT(p(i.a != i.b))},
                            {'p', "setp.lt.s32 p, a, b;", WANT(p(i.sa < i.sb))},
                            {'p', "setp.le.s32 p, a, b;", WANT(p(i.sa <= i.sb))},
                            {'p', "setp.gt.s32 p, a, b;", WANT(p(i.sa > i.sb))},
                            {'p', "setp.ge.s32 p, a, b;", WANT(p(i.sa >= i.sb))},
                            {'p', "setp.lt.u32 p, a, b;", WANT(p(i.a < i.b))},
                            {'p', "setp.le.u32 p, a, b;", WANT(p(i.a <= i.b))},
                            {'p', "setp.gt.u32 p, a, b;", WANT(p(i.a > i.b))},
                            {'p', "setp.ge.u32 p, a, b;", WANT(p(i.a >= i.b))},
                            {'p', "setp.lo.u32 p, a, b;", WANT(p(i.a < i.b))},
                            {'p', "setp.ls.u32 p, a, b;", WANT(p(i.a <= i.b))},
                            {'p', "setp.hi.u32 p, a, b;", WANT(p(i.a > i.b))},
                            {'p', "setp.hs.u32 p, a, b;", WANT(p(i.a >= i.b))},
                            {'p', "setp.eq.b32 p, a, b;", WANT(p(i.a == i.b))},
                            {'p', "setp.lt.s64 p, A, B;", WANT(p(i.sA < i.sB))},
                            {'p', "setp.ge.u64 p, A, B;", WANT(p(i.A >= i.B))},
                            {'p', "setp.ne.b64 p, A, B;", WANT(p(i.A != i.B))},
                            {'p', "setp.gt.s16 p, ha, hb;", WANT(p(int16_t(i.ha) > int16_t(i.hb)))},
                            {'p', "setp.le.u16 p, ha, hb;", WANT(p(i.ha <= i.hb))},
                            {'p', "setp.lt.s32 p, a, -1;", WANT(p(i.sa < -1))},
                        }));
    all.push_back(
        lanes("compare_combined", 75, pairs({0, 1, 2, 0xffffffff}, {0, 1}),
              {
                  {'p', "setp.lt.s32 p|q, a, b;", WANT(p(i.sa < i.sb))},
                  {'d', "setp.lt.s32 p|q, a, b; selp.u32 d, 1, 0, q;", WANT(p(!(i.sa < i.sb)))},
                  {'p', "setp.ne.u32 r, c, 0; setp.lt.and.s32 p, a, b, r;", WANT(p(i.sa < i.sb && i.c))},
                  {'p', "setp.ne.u32 r, c, 0; setp.lt.or.s32 p, a, b, r;", WANT(p(i.sa < i.sb || i.c))},
                  {'p', "setp.ne.u32 r, c, 0; setp.lt.xor.s32 p, a, b, r;", WANT(p((i.sa < i.sb) != (i.c != 0)))},
                  {'p', "setp.ne.u32 r, c, 0; setp.lt.and.s32 p, a, b, !r;", WANT(p(i.sa < i.sb && !i.c))},
                  {'d', "setp.ne.u32 r, c, 0; setp.lt.and.s32 p|q, a, b, r; selp.u32 d, 1, 0, q;",
                   WANT(p(!(i.sa < i.sb) && i.c))},
                  {'d', "setp.ne.u32 r, c, 0; setp.lt.or.s32 _|q, a, b, r; selp.u32 d, 1, 0, q;",
                   WANT(p(!(i.sa < i.sb) || i.c))},
                  {'d', "set.gt.u32.s32 d, a, b;", WANT(bits(i.sa > i.sb ? 0xffffffff : 0))},
                  {'d', "set.gt.s32.u32 d, a, b;", WANT(bits(i.a > i.b ? 0xffffffff : 0))},
                  {'f', "set.le.f32.s32 f, a, b;", WANT(exact(i.sa <= i.sb ? 1.f : 0.f))},
                  {'d', "setp.ne.u32 r, c, 0; set.eq.and.u32.u32 d, a, b, r;",
                   WANT(bits(i.a == i.b && i.c ? 0xffffffff : 0))},
              }));
    const std::vector<In> single = float_pairs({0.f, -0.f, 1.f, -1.f, 2.f, kTiny, -kTiny, kInf, -kInf, kNaN});
    auto flush = [](const In &i) { return floats(flushed(i.fa), flushed(i.fb)); };
    all.push_back(
        lanes("compare_floats", 75, single,
              {
                  {'p', "setp.eq.f32 p, fa, fb;", WANT(p(i.fa == i.fb))},
                  {'p', "setp.ne.f32 p, fa, fb;", WANT(p(!unordered(i.fa, i.fb) && i.fa != i.fb))},
                  {'p', "setp.lt.f32 p, fa, fb;", WANT(p(i.fa < i.fb))},
                  {'p', "setp.le.f32 p, fa, fb;", WANT(p(i.fa <= i.fb))},
                  {'p', "setp.gt.f32 p, fa, fb;", WANT(p(i.fa > i.fb))},
                  {'p', "setp.ge.f32 p, fa, fb;", WANT(p(i.fa >= i.fb))},
                  {'p', "setp.equ.f32 p, fa, fb;", WANT(p(unordered(i.fa, i.fb) || i.fa == i.fb))},
                  {'p', "setp.neu.f32 p, fa, fb;", WANT(p(unordered(i.fa, i.fb) || i.fa != i.fb))},
                  {'p', "setp.ltu.f32 p, fa, fb;", WANT(p(unordered(i.fa, i.fb) || i.fa < i.fb))},
                  {'p', "setp.leu.f32 p, fa, fb;", WANT(p(unordered(i.fa, i.fb) || i.fa <= i.fb))},
                  {'p', "setp.gtu.f32 p, fa, fb;", WANT(p(unordered(i.fa, i.fb) || i.fa > i.fb))},
                  {'p', "setp.geu.f32 p, fa, fb;", WANT(p(unordered(i.fa, i.fb) || i.fa >= i.fb))},
                  {'p', "setp.num.f32 p, fa, fb;", WANT(p(!unordered(i.fa, i.fb)))},
                  {'p', "setp.nan.f32 p, fa, fb;", WANT(p(unordered(i.fa, i.fb)))},
                  {'p', "setp.lt.ftz.f32 p, fa, fb;", [=](const In &i) { return p(flush(i).fa < flush(i).fb); }},
                  {'p', "setp.eq.ftz.f32 p, fa, fb;", [=](const In &i) { return p(flush(i).fa == flush(i).fb); }},
                  {'p', "setp.gt.f32 p, fa, 0f3F800000;", WANT(p(i.fa > 1))},
                  {'d', "setp.lt.f32 p|q, fa, fb; selp.u32 d, 1, 0, q;", WANT(p(!(i.fa < i.fb)))},
                  {'d', "set.lt.u32.f32 d, fa, fb;", WANT(bits(i.fa < i.fb ? 0xffffffff : 0))},
                  {'f', "set.neu.f32.f32 f, fa, fb;", WANT(exact(i.fa == i.fb ? 0.f : 1.f))},
              }));
    all.push_back(lanes("compare_doubles", 75, double_pairs({0., -0., 1., -1., 1e-310, INFINITY, -INFINITY, NAN}),
                        {
                            {'p', "setp.lt.f64 p, ea, eb;", WANT(p(i.ea < i.eb))},
                            {'p', "setp.ne.f64 p, ea, eb;", WANT(p(!unordered(i.ea, i.eb) && i.ea != i.eb))},
                            {'p', "setp.geu.f64 p, ea, eb;", WANT(p(unordered(i.ea, i.eb) || i.ea >= i.eb))},
                            {'p', "setp.num.f64 p, ea, eb;", WANT(p(!unordered(i.ea, i.eb)))},
                            {'d', "set.le.s32.f64 d, ea, eb;", WANT(bits(i.ea <= i.eb ? 0xffffffff : 0))},
                        }));
    all.push_back(lanes(
        "compare_halves", 75, pairs({0, 0x8000, 0x3c00, 0xbc00, 1, 0x7c00, 0xfc00, 0x7e00}),
        {
            {'p', "setp.lt.f16 p, ha, hb;", WANT(p(f16_value(i.ha) < f16_value(i.hb)))},
            {'p', "setp.eq.f16 p, ha, hb;", WANT(p(f16_value(i.ha) == f16_value(i.hb)))},
            {'p', "setp.geu.f16 p, ha, hb;", WANT(p(!(f16_value(i.ha) < f16_value(i.hb))))},
            {'p', "setp.nan.f16 p, ha, hb;", WANT(p(unordered(f16_value(i.ha), f16_value(i.hb))))},
            // f16x2: p of the low halves, q of the high ones
            {'d',
             "{ .reg .b32 x, y; mov.b32 x, {ha, hb}; mov.b32 y, {hb, ha}; setp.lt.f16x2 p|q, x, y; selp.u32 d, 1, 0, "
             "p; @q or.b32 d, d, 2; }",
             WANT(bits((f16_value(i.ha) < f16_value(i.hb) ? 1 : 0) | (f16_value(i.hb) < f16_value(i.ha) ? 2 : 0)))},
        }));
    all.push_back(
        lanes("compare_select", 75,
              pairs({5, 0xfffffffff0000001}, {0, 1, 0x7fffffff, 0x80000000, bits_of(-0.f), bits_of(2.f), bits_of(-2.f),
                                              bits_of(kNaN), bits_of(kInf), 0x80000001}),
              {
                  {'d', "setp.ne.u32 p, c, 0; selp.b32 d, a, b, p;", WANT(bits(i.c ? i.a : i.b))},
                  {'D', "setp.ne.u32 p, c, 0; selp.u64 D, A, 9, p;", WANT(bits(i.c ? i.A : 9))},
                  {'h', "setp.ne.u32 p, c, 0; selp.u16 h, ha, hb, p;", WANT(bits(i.c ? i.ha : i.hb))},
                  {'f', "setp.ne.u32 p, c, 0; selp.f32 f, 0f3F800000, 0f40000000, p;", WANT(exact(i.c ? 1.f : 2.f))},
                  {'e', "setp.ne.u32 p, c, 0; selp.f64 e, 0d3FF0000000000000, 0d4000000000000000, p;",
                   WANT(exact(i.c ? 1. : 2.))},
                  {'d', "slct.b32.s32 d, a, b, c;", WANT(bits(i.sc >= 0 ? i.a : i.b))},
                  {'D', "slct.u64.s32 D, A, B, c;", WANT(bits(i.sc >= 0 ? i.A : i.B))},
                  {'d', "slct.s32.f32 d, a, b, fc;", WANT(bits(i.fc >= 0 ? i.a : i.b))},
                  // with .ftz the small negative is -0, which is not below 0
                  {'d', "slct.ftz.u32.f32 d, a, b, fc;", WANT(bits(flushed(i.fc) >= 0 ? i.a : i.b))},
              }));
    return all;
}

} // namespace isa
