// warp.cc: what lanes of a warp tell each other: shfl, vote, match, redux.
#include <algorithm>

#include "fakecuda/isa/isa.h"

namespace isa {
namespace {

template <class F> std::vector<Want> each(int n, F f) {
    std::vector<Want> all;
    for (int i = 0; i < n; i++) all.push_back(bits(static_cast<uint64_t>(f(i))));
    return all;
}

// The document's definition: the lane that is read, and whether it is in range.
struct Source {
    int lane;
    bool in_range;
};
Source source(const std::string &mode, int lane, int b, int c) {
    int bval = b & 31, cval = c & 31, segments = c >> 8 & 31;
    int max_lane = (lane & segments) | (cval & ~segments), min_lane = lane & segments, j;
    bool in_range;
    if (mode == "up") j = lane - bval, in_range = j >= max_lane;
    else if (mode == "down") j = lane + bval, in_range = j <= max_lane;
    else if (mode == "bfly") j = lane ^ bval, in_range = j <= max_lane;
    else j = min_lane | (bval & ~segments), in_range = j <= max_lane;
    return {in_range ? j : lane, in_range};
}

// One warp, each row another pair of (b, c); the value of lane l is 100 + 3 l.
Case shuffle(const std::string &mode) {
    const int table[][2] = {{1, 31},     {5, 31},  {1, 0},  {16, 31},    {2, 0x181f}, {3, 0x1800}, {1, 0x101f},
                            {9, 0x1000}, {31, 31}, {0, 31}, {6, 0x1c1f}, {3, 0x0007}, {33, 31}};
    Case c;
    c.name = "shfl_" + mode;
    std::string body = "    mad.lo.u32 %r0, %t, 3, 100;\n";
    std::vector<Want> wants;
    int row = 0;
    for (const auto &bc : table) {
        body += "    shfl.sync." + mode + ".b32 %r1|%p, %r0, " + std::to_string(bc[0]) + ", " + std::to_string(bc[1]) +
                ", -1;\n    selp.u32 %r2, 1, 0, %p;\n";
        body += "    mad.wide.u32 %d0, %t, 8, %b0;\n    st.global.v2.u32 [%d0+" + std::to_string(256 * row++) +
                "], {%r1, %r2};\n";
        for (int lane = 0; lane < 32; lane++) {
            Source s = source(mode, lane, bc[0], bc[1]);
            wants.push_back(bits(static_cast<uint64_t>(100 + 3 * s.lane)));
            wants.push_back(bits(s.in_range));
        }
    }
    c.ptx = kernel(75, 1, body);
    c.buffers = {output(4, wants)};
    return c;
}

Case shuffle_by_lane() {
    Case c;
    c.name = "shfl_idx_by_register";
    c.ptx = kernel(75, 1, R"(
    mad.lo.u32 %r0, %t, 7, 5;
    mad.lo.u32 %r1, %t, 11, 3;       // each lane asks another one
    shfl.sync.idx.b32 %r2, %r0, %r1, 31, 0xffffffff;
    mad.wide.u32 %d0, %t, 4, %b0;
    st.global.u32 [%d0], %r2;
)");
    c.buffers = {output(4, each(32, [](int t) { return (t * 11 + 3) % 32 * 7 + 5; }))};
    return c;
}

// Half a warp each does its own, with its own mask, in branches.
Case part_of_a_warp() {
    Case c;
    c.name = "shfl_in_branches";
    c.ptx = kernel(75, 1, R"(
    mov.u32 %r0, %t;
    setp.ge.u32 %p, %t, 16;
    @%p bra UPPER;
    shfl.sync.bfly.b32 %r1, %r0, 1, 31, 0x0000ffff;
    bra JOIN;
UPPER:
    shfl.sync.bfly.b32 %r1, %r0, 3, 31, 0xffff0000;
JOIN:
    bar.warp.sync 0xffffffff;
    shfl.sync.idx.b32 %r2, %r1, 17, 31, 0xffffffff;
    mad.wide.u32 %d0, %t, 8, %b0;
    st.global.v2.u32 [%d0], {%r1, %r2};
)");
    c.buffers = {output(4, each(64, [](int i) { return i % 2 ? 17 ^ 3 : i / 2 < 16 ? (i / 2) ^ 1 : (i / 2) ^ 3; }))};
    return c;
}

Case votes() {
    Case c;
    c.name = "vote_match";
    c.ptx = kernel(75, 1, R"(
    rem.u32 %r0, %t, 5;
    setp.lt.u32 %p, %r0, 2;
    vote.sync.ballot.b32 %r1, %p, 0xffffffff;
    vote.sync.any.pred %q, %p, 0xffffffff;
    selp.u32 %r2, 1, 0, %q;
    vote.sync.all.pred %q, %p, 0xffffffff;
    @%q or.b32 %r2, %r2, 2;
    vote.sync.uni.pred %q, %p, 0xffffffff;
    @%q or.b32 %r2, %r2, 4;
    vote.sync.all.pred %q, !%p, 0xffffffff;
    @%q or.b32 %r2, %r2, 8;
    setp.lt.u32 %p, %t, 99;
    vote.sync.uni.pred %q, %p, 0xffffffff;
    @%q or.b32 %r2, %r2, 16;
    match.any.sync.b32 %r3, %r0, 0xffffffff;
    match.all.sync.b32 %r4|%q, %r0, 0xffffffff;
    @%q or.b32 %r2, %r2, 32;
    mov.u64 %d1, 0x123456789;
    match.all.sync.b64 %r5|%q, %d1, 0xffffffff;
    @%q or.b32 %r2, %r2, 64;
    add.u32 %r4, %r4, %r5;
    activemask.b32 %r6;
    mov.u32 %r7, %lanemask_eq;
    and.b32 %r6, %r6, %r7;
    setp.eq.u32 %q, %r6, %r7;        // at least itself
    @%q or.b32 %r2, %r2, 128;
    mad.wide.u32 %d0, %t, 16, %b0;
    st.global.v4.u32 [%d0], {%r1, %r2, %r3, %r4};
)");
    uint32_t ballot = 0, same[5] = {};
    for (int t = 0; t < 32; t++) {
        if (t % 5 < 2) ballot |= 1u << t;
        same[t % 5] |= 1u << t;
    }
    c.buffers = {output(4, each(128, [&](int i) -> uint64_t {
                            const uint32_t want[4] = {ballot, 1 | 16 | 64 | 128, same[i / 4 % 5], 0xffffffff};
                            return want[i % 4];
                        }))};
    return c;
}

Case votes_of_some() {
    Case c;
    c.name = "vote_of_some_lanes";
    c.ptx = kernel(75, 1, R"(
    mov.u32 %r1, 0;
    setp.ge.u32 %p, %t, 24;
    @%p bra END;                     // these have ended where the others vote
    and.b32 %r0, %t, 1;
    setp.eq.u32 %p, %r0, 0;
    vote.sync.ballot.b32 %r1, %p, 0x00ffffff;
    mad.wide.u32 %d0, %t, 4, %b0;
    st.global.u32 [%d0], %r1;
END:
)");
    c.buffers = {output(4, each(24, [](int) { return 0x00555555; }))};
    return c;
}

Case redux() {
    Case c;
    c.name = "redux";
    c.arch = 80;
    c.ptx = kernel(80, 1, R"(
    mul.lo.u32 %r0, %t, 0x9e3779b9;
    redux.sync.add.u32 %r1, %r0, 0xffffffff;
    redux.sync.min.s32 %r2, %r0, 0xffffffff;
    redux.sync.max.s32 %r3, %r0, 0xffffffff;
    redux.sync.min.u32 %r4, %r0, 0xffffffff;
    redux.sync.max.u32 %r5, %r0, 0xffffffff;
    redux.sync.and.b32 %r6, %r0, 0xffffffff;
    redux.sync.or.b32 %r7, %r0, 0xffffffff;
    redux.sync.xor.b32 %r8, %r0, 0xffffffff;
    mad.wide.u32 %d0, %t, 32, %b0;
    st.global.v4.u32 [%d0], {%r1, %r2, %r3, %r4};
    st.global.v4.u32 [%d0+16], {%r5, %r6, %r7, %r8};
)");
    uint32_t want[8] = {0, 0x7fffffff, 0x80000000, 0xffffffff, 0, 0xffffffff, 0, 0};
    for (uint32_t t = 0; t < 32; t++) {
        uint32_t x = t * 0x9e3779b9u;
        auto s = [](uint32_t v) { return static_cast<int32_t>(v); };
        want[0] += x;
        want[1] = static_cast<uint32_t>(std::min(s(want[1]), s(x)));
        want[2] = static_cast<uint32_t>(std::max(s(want[2]), s(x)));
        want[3] = std::min(want[3], x);
        want[4] = std::max(want[4], x);
        want[5] &= x;
        want[6] |= x;
        want[7] ^= x;
    }
    c.buffers = {output(4, each(256, [&](int i) { return want[i % 8]; }))};
    return c;
}

} // namespace

std::vector<Case> warp_cases() {
    return {shuffle("up"),    shuffle("down"), shuffle("bfly"), shuffle("idx"), shuffle_by_lane(),
            part_of_a_warp(), votes(),         votes_of_some(), redux()};
}

} // namespace isa
