// barrier.cc: barriers of blocks and warps.
#include "fakecuda/isa/isa.h"

namespace isa {
namespace {

template <class F> std::vector<Want> each(int n, F f) {
    std::vector<Want> all;
    for (int i = 0; i < n; i++) all.push_back(bits(static_cast<uint64_t>(f(i))));
    return all;
}

// A sum by halving, one barrier each round, 256 threads and a block that is no multiple of it.
Case tree() {
    Case c;
    c.name = "barrier_tree_sum";
    c.grid[0] = 2;
    c.block[0] = 256;
    c.ptx = kernel(75, 1, R"(
    .shared .align 4 .u32 s[256];
    mov.u64 %d0, s;
    mad.wide.u32 %d0, %t, 4, %d0;
    mul.lo.u32 %r0, %t, %t;
    st.shared.u32 [%d0], %r0;
    mov.u32 %r1, 128;
ROUND:
    bar.sync 0;
    setp.ge.u32 %p, %t, %r1;
    @%p bra REST;
    mad.wide.u32 %d1, %r1, 4, %d0;
    ld.shared.u32 %r2, [%d1];
    ld.shared.u32 %r3, [%d0];
    add.u32 %r3, %r3, %r2;
    st.shared.u32 [%d0], %r3;
REST:
    shr.u32 %r1, %r1, 1;
    setp.ne.u32 %p, %r1, 0;
    @%p bra ROUND;
    bar.sync 0;
    ld.shared.u32 %r4, [s];
    mov.u32 %r5, %ctaid.x;
    mad.lo.u32 %r5, %r5, 256, %t;
    mad.wide.u32 %d2, %r5, 4, %b0;
    st.global.u32 [%d2], %r4;
)");
    c.buffers = {output(4, each(512, [](int) { return 255 * 256 * 511 / 6; }))};
    return c;
}

// Two warps of four meet at barrier 1, the other two at barrier 2, again and again.
Case named() {
    Case c;
    c.name = "barrier_named";
    c.block[0] = 128;
    c.ptx = kernel(75, 1, R"(
    .shared .align 4 .u32 s[128];
    mov.u64 %d0, s;
    mad.wide.u32 %d1, %t, 4, %d0;
    xor.b32 %r0, %t, 32;             // the partner in the other warp of the pair
    mad.wide.u32 %d2, %r0, 4, %d0;
    shr.u32 %r1, %t, 6;
    add.u32 %r1, %r1, 1;             // which barrier
    mov.u32 %r2, %t;
    mov.u32 %r3, 0;
LOOP:
    st.shared.u32 [%d1], %r2;
    bar.sync %r1, 64;
    ld.shared.u32 %r4, [%d2];
    mad.lo.u32 %r2, %r2, 3, %r4;
    barrier.sync %r1, 64;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p, %r3, 4;
    @%p bra LOOP;
    mad.wide.u32 %d3, %t, 4, %b0;
    st.global.u32 [%d3], %r2;
)");
    uint32_t v[128], next[128];
    for (uint32_t t = 0; t < 128; t++) v[t] = t;
    for (int round = 0; round < 4; round++) {
        for (uint32_t t = 0; t < 128; t++) next[t] = v[t] * 3 + v[t ^ 32];
        for (uint32_t t = 0; t < 128; t++) v[t] = next[t];
    }
    c.buffers = {output(4, each(128, [&](int t) { return v[t]; }))};
    return c;
}

// One warp fills and only arrives, the other waits and reads; then back.
Case arrive() {
    Case c;
    c.name = "barrier_arrive";
    c.block[0] = 64;
    c.ptx = kernel(75, 1, R"(
    .shared .align 4 .u32 s[32];
    and.b32 %r0, %t, 31;
    mov.u64 %d0, s;
    mad.wide.u32 %d0, %r0, 4, %d0;
    mov.u32 %r1, 0;
    setp.ge.u32 %p, %t, 32;
    @%p bra READER;
WRITER:
    mad.lo.u32 %r2, %r1, 100, %r0;
    st.shared.u32 [%d0], %r2;
    bar.arrive 1, 64;                // full
    bar.sync 2, 64;                  // empty
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, 3;
    @%p bra WRITER;
    bra END;
READER:
    bar.sync 1, 64;
    xor.b32 %r3, %r0, 31;
    mov.u64 %d1, s;
    mad.wide.u32 %d1, %r3, 4, %d1;
    ld.shared.u32 %r4, [%d1];
    mad.lo.u32 %r5, %r1, 32, %r0;
    mad.wide.u32 %d2, %r5, 4, %b0;
    st.global.u32 [%d2], %r4;
    bar.arrive 2, 64;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, 3;
    @%p bra READER;
END:
)");
    c.buffers = {output(4, each(96, [](int i) { return i / 32 * 100 + (i % 32 ^ 31); }))};
    return c;
}

Case reductions() {
    Case c;
    c.name = "barrier_reductions";
    c.block[0] = 96;
    c.ptx = kernel(75, 1, R"(
    rem.u32 %r0, %t, 7;
    setp.lt.u32 %p, %r0, 3;
    bar.red.popc.u32 %r1, 0, %p;
    bar.red.or.pred %q, 0, %p;
    selp.u32 %r2, 1, 0, %q;
    bar.red.and.pred %q, 0, %p;
    @%q or.b32 %r2, %r2, 2;
    setp.lt.u32 %p, %t, 96;
    bar.red.and.pred %q, 0, %p;
    @%q or.b32 %r2, %r2, 4;
    barrier.red.or.pred %q, 0, !%p;
    @%q or.b32 %r2, %r2, 8;
    bar.red.popc.u32 %r3, 0, !%p;
    mad.wide.u32 %d0, %t, 16, %b0;
    mov.u32 %r4, 0;
    st.global.v4.u32 [%d0], {%r1, %r2, %r3, %r4};
)");
    int count = 0;
    for (int t = 0; t < 96; t++) count += t % 7 < 3;
    c.buffers = {output(4, each(384, [&](int i) { return i % 4 == 0 ? count : i % 4 == 1 ? 5 : 0; }))};
    return c;
}

// Lanes write to shared memory in one branch; bar.warp.sync brings them together.
Case warp_barrier() {
    Case c;
    c.name = "barrier_of_a_warp";
    c.ptx = kernel(75, 1, R"(
    .shared .align 4 .u32 s[32];
    mov.u64 %d0, s;
    mad.wide.u32 %d1, %t, 4, %d0;
    and.b32 %r0, %t, 1;
    setp.eq.u32 %p, %r0, 0;
    @%p bra EVEN;
    mul.lo.u32 %r1, %t, 10;
    st.shared.u32 [%d1], %r1;
    bra JOIN;
EVEN:
    mul.lo.u32 %r1, %t, 20;
    st.shared.u32 [%d1], %r1;
JOIN:
    bar.warp.sync 0xffffffff;
    xor.b32 %r2, %t, 1;
    mad.wide.u32 %d2, %r2, 4, %d0;
    ld.shared.u32 %r3, [%d2];
    mad.wide.u32 %d3, %t, 4, %b0;
    st.global.u32 [%d3], %r3;
)");
    c.buffers = {output(4, each(32, [](int t) { return (t ^ 1) * ((t ^ 1) % 2 ? 10 : 20); }))};
    return c;
}

// Threads that have ended do not hold others up.
Case with_ended_threads() {
    Case c;
    c.name = "barrier_after_exit";
    c.block[0] = 128;
    c.ptx = kernel(75, 1, R"(
    .shared .align 4 .u32 s[64];
    setp.ge.u32 %p, %t, 64;
    @%p exit;
    mov.u64 %d0, s;
    mad.wide.u32 %d1, %t, 4, %d0;
    st.shared.u32 [%d1], %t;
    bar.sync 0;
    xor.b32 %r0, %t, 63;
    mad.wide.u32 %d2, %r0, 4, %d0;
    ld.shared.u32 %r1, [%d2];
    mad.wide.u32 %d3, %t, 4, %b0;
    st.global.u32 [%d3], %r1;
)");
    c.buffers = {output(4, each(64, [](int t) { return t ^ 63; }))};
    return c;
}

} // namespace

std::vector<Case> barrier_cases() {
    return {tree(), named(), arrive(), reductions(), warp_barrier(), with_ended_threads()};
}

} // namespace isa
