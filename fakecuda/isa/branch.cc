// branch.cc: divergence and reconvergence, loops, early ends, predicated instructions, indirect branches.
#include "fakecuda/isa/isa.h"

namespace isa {
namespace {

template <class F> std::vector<Want> each(int n, F f) {
    std::vector<Want> all;
    for (int i = 0; i < n; i++) all.push_back(bits(static_cast<uint64_t>(f(i))));
    return all;
}

Case make(const char *name, int threads, const std::string &body, std::vector<Want> wants,
          const std::string &before = "") {
    Case c;
    c.name = name;
    c.block[0] = static_cast<uint32_t>(threads);
    c.ptx = kernel(75, 1, body + R"(
    mad.wide.u32 %d7, %t, 4, %b0;
    st.global.u32 [%d7], %r0;
)",
                   before);
    c.buffers = {output(4, std::move(wants))};
    return c;
}

Case nested() {
    return make("branch_nested", 64, R"(
    mov.u32 %r0, 1;
    and.b32 %r1, %t, 1;
    setp.eq.u32 %p, %r1, 0;
    @%p bra EVEN;
    and.b32 %r1, %t, 2;
    setp.eq.u32 %p, %r1, 0;
    @%p bra ODD_LOW;
    add.u32 %r0, %r0, 10;
    bra ODD_END;
ODD_LOW:
    add.u32 %r0, %r0, 20;
ODD_END:
    mul.lo.u32 %r0, %r0, 2;
    bra JOIN;
EVEN:
    setp.lt.u32 %p, %t, 40;
    @!%p bra JOIN;
    add.u32 %r0, %r0, 300;
JOIN:
    add.u32 %r0, %r0, %t;
)",
                each(64, [](int t) { return t % 2 ? (t & 2 ? 11 : 21) * 2 + t : (t < 40 ? 301 : 1) + t; }));
}

// The number of iterations is the lane's number; after the loop all vote together.
Case loops() {
    return make("branch_loops", 32, R"(
    mov.u32 %r0, 0;
    mov.u32 %r1, 0;
OUTER:                               // for r1 = 0..t%7: for r2 = 0..r1: sum += r1 * r2 + 1
    mov.u32 %r2, 0;
INNER:
    mad.lo.u32 %r3, %r1, %r2, 1;
    add.u32 %r0, %r0, %r3;
    add.u32 %r2, %r2, 1;
    setp.le.u32 %p, %r2, %r1;
    @%p bra INNER;
    rem.u32 %r4, %t, 7;
    add.u32 %r1, %r1, 1;
    setp.le.u32 %p, %r1, %r4;
    @%p bra OUTER;
    setp.gt.u32 %p, %r0, 10;
    vote.sync.ballot.b32 %r5, %p, 0xffffffff;
    popc.b32 %r5, %r5;
    mad.lo.u32 %r0, %r5, 1000, %r0;
)",
                [] {
                    int sums[32], above = 0;
                    for (int t = 0; t < 32; t++) {
                        sums[t] = 0;
                        for (int a = 0; a <= t % 7; a++)
                            for (int b = 0; b <= a; b++) sums[t] += a * b + 1;
                        above += sums[t] > 10;
                    }
                    return each(32, [&](int t) { return above * 1000 + sums[t]; });
                }());
}

// continue, break and a return out of the middle of a loop.
Case leaves() {
    return make("branch_leaves_loop", 64, R"(
    mov.u32 %r0, 0;
    mov.u32 %r1, 0;
LOOP:
    setp.ge.u32 %p, %r1, 50;
    @%p bra DONE;
    add.u32 %r1, %r1, 1;
    and.b32 %r2, %r1, 3;
    and.b32 %r3, %t, 3;
    setp.eq.u32 %p, %r2, %r3;
    @%p bra LOOP;                    // continue
    add.u32 %r0, %r0, %r1;
    setp.gt.u32 %p, %r0, 400;
    setp.gt.u32 %q, %t, 59;
    and.pred %p, %p, %q;
    @%p bra SMALL;                   // out of two levels
    setp.le.u32 %p, %r1, %t;
    @%p bra LOOP;
    bra DONE;                        // break
SMALL:
    mov.u32 %r0, 7;
DONE:
    add.u32 %r0, %r0, 5000;
)",
                each(64, [](int t) {
                    int sum = 0, k = 0;
                    while (k < 50) {
                        k++;
                        if ((k & 3) == (t & 3)) continue;
                        sum += k;
                        if (sum > 400 && t > 59) {
                            sum = 7;
                            break;
                        }
                        if (!(k <= t)) break;
                    }
                    return sum + 5000;
                }));
}

Case early_exit() {
    Case c = make("branch_early_exit", 64, R"(
    mov.u32 %r0, 3;
    and.b32 %r1, %t, 3;
    setp.eq.u32 %p, %r1, 1;
    @%p exit;
    setp.eq.u32 %p, %r1, 2;
    @%p ret;
    add.u32 %r0, %r0, %t;
)",
                  {});
    std::vector<Want> wants;
    for (int t = 0; t < 64; t++)
        wants.push_back(bits(t % 4 == 1 || t % 4 == 2 ? 0xA5A5A5A5 : static_cast<uint32_t>(3 + t)));
    c.buffers = {output(4, wants)};
    return c;
}

Case predicated() {
    return make("predicated_instructions", 32, R"(
    mov.u32 %r0, 0;
    setp.lt.u32 %p, %t, 10;
    setp.gt.u32 %q, %t, 4;
    @%p add.u32 %r0, %r0, 1;
    @!%p add.u32 %r0, %r0, 2;
    @%q mad.lo.u32 %r0, %t, 10, %r0;
    and.pred %p, %p, %q;
    @%p mov.u32 %r0, 77;
    mov.u64 %d0, 0;                  // an address that may not be read
    @%p ld.global.u32 %r1, [%b0];
    setp.gt.u32 %p, %t, 1000;
    @%p ld.global.u32 %r0, [%d0];
    @%p st.global.u32 [%d0], %r0;
    @%p trap;
    @%p bra NOWHERE;
NOWHERE:
)",
                each(32, [](int t) { return t > 4 && t < 10 ? 77 : (t < 10 ? 1 : 2) + (t > 4 ? t * 10 : 0); }));
}

Case table() {
    return make("branch_table", 32, R"(
    rem.u32 %r1, %t, 5;
targets: .branchtargets ZERO, ONE, TWO, ONE, LAST;
    brx.idx %r1, targets;
ZERO:
    mov.u32 %r0, 100;
    bra END;
ONE:
    mov.u32 %r0, 200;
TWO:
    mov.u32 %r0, 300;
    bra END;
LAST:
    mov.u32 %r0, 400;
END:
)",
                each(32, [](int t) {
                    const int want[5] = {100, 300, 300, 300, 400};
                    return want[t % 5];
                }));
}

// Names in braces are their own.
Case scopes() {
    return make("scopes_of_braces", 32, R"(
    mov.u32 %r0, %t;
    {
        .reg .pred %p;
        .reg .b32 %r0, mine;
        mov.u32 %r0, 1000;
        setp.gt.u32 %p, %t, 20;
        @%p bra DONE;
        add.u32 %r0, %r0, 1;
    DONE:
        mov.u32 %r1, %r0;
    }
    {
        setp.gt.u32 %p, %t, 10;
        @%p bra DONE;
        add.u32 %r1, %r1, 10;
    DONE:
    }
    add.u32 %r0, %r0, %r1;
)",
                each(32, [](int t) { return t + (t > 20 ? 1000 : 1001) + (t > 10 ? 0 : 10); }));
}

// A divergent loop around a barrier of the warp: all lanes come to each round.
Case rounds() {
    return make("branch_rounds_with_sync", 32, R"(
    mov.u32 %r0, %t;
    mov.u32 %r1, 0;
ROUND:
    and.b32 %r2, %r0, 1;
    setp.eq.u32 %p, %r2, 0;
    @%p bra HALVE;
    mad.lo.u32 %r0, %r0, 3, 1;
    bra MEET;
HALVE:
    shr.u32 %r0, %r0, 1;
MEET:
    bar.warp.sync 0xffffffff;
    shfl.sync.down.b32 %r3, %r0, 1, 31, 0xffffffff;
    add.u32 %r0, %r0, %r3;
    and.b32 %r0, %r0, 0xffff;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, 6;
    @%p bra ROUND;
)",
                [] {
                    uint32_t v[32], w[32];
                    for (uint32_t t = 0; t < 32; t++) v[t] = t;
                    for (int k = 0; k < 6; k++) {
                        for (int t = 0; t < 32; t++) w[t] = v[t] % 2 ? v[t] * 3 + 1 : v[t] / 2;
                        for (int t = 0; t < 32; t++) v[t] = (w[t] + w[t < 31 ? t + 1 : t]) & 0xffff;
                    }
                    return each(32, [&](int t) { return v[t]; });
                }());
}

} // namespace

std::vector<Case> branch_cases() {
    return {nested(), loops(), leaves(), early_exit(), predicated(), table(), scopes(), rounds()};
}

} // namespace isa
