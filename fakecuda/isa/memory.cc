// memory.cc: loads and stores of every width and space, addresses, variables, special registers.
#include <cstring>

#include "fakecuda/isa/isa.h"

namespace isa {
namespace {

template <class T> T at(const std::vector<uint8_t> &v, size_t offset) {
    T x;
    memcpy(&x, v.data() + offset, sizeof x);
    return x;
}

template <class F> std::vector<Want> each(int n, F f) {
    std::vector<Want> all;
    for (int i = 0; i < n; i++) all.push_back(bits(static_cast<uint64_t>(f(i))));
    return all;
}

Case loads() {
    Case c;
    c.name = "memory_loads";
    c.block[0] = 1;
    c.ptx = kernel(75, 2, R"(
    ld.global.u8 %r0, [%b1+1];
    cvt.u64.u32 %d0, %r0;
    st.global.u64 [%b0], %d0;
    ld.global.s8 %r0, [%b1+5];       // a byte with its sign, in 32 bits
    cvt.u64.u32 %d0, %r0;
    st.global.u64 [%b0+8], %d0;
    ld.global.s8 %d0, [%b1+5];       // and in 64
    st.global.u64 [%b0+16], %d0;
    ld.global.u16 %d0, [%b1+6];
    st.global.u64 [%b0+24], %d0;
    ld.global.s16 %r0, [%b1+6];
    cvt.u64.u32 %d0, %r0;
    st.global.u64 [%b0+32], %d0;
    ld.global.s32 %d0, [%b1+4];
    st.global.u64 [%b0+40], %d0;
    ld.global.b64 %d0, [%b1+8];
    st.global.b64 [%b0+48], %d0;
    ld.global.v2.u8 {%h0, %h1}, [%b1+2];
    cvt.u32.u16 %r0, %h0;
    cvt.u32.u16 %r1, %h1;
    mov.b64 %d0, {%r0, %r1};
    st.global.u64 [%b0+56], %d0;
    ld.global.v4.u16 {%h0, %h1, %h2, %h3}, [%b1+8];
    mov.b64 %d0, {%h3, %h2, %h1, %h0};
    st.global.u64 [%b0+64], %d0;
    ld.global.nc.v4.u32 {%r0, _, %r2, %r3}, [%b1+16];
    mov.b64 %d0, {%r0, %r3};
    st.global.u64 [%b0+72], %d0;
    ld.global.nc.v2.f64 {%e0, %e1}, [%b1+16];
    st.global.f64 [%b0+80], %e1;
    add.u64 %d1, %b1, 64;
    ld.global.f32 %f0, [%d1+-32];
    mov.b32 %r0, %f0;
    cvt.u64.u32 %d0, %r0;
    st.global.u64 [%b0+88], %d0;
)");
    std::vector<uint8_t> v; // the top bit of each byte is set: signs show
    for (int i = 0; i < 64; i++) v.push_back(static_cast<uint8_t>(0x81 + i));
    c.buffers = {
        output(8, {bits(v[1]), bits(static_cast<uint32_t>(static_cast<int8_t>(v[5]))),
                   bits(static_cast<uint64_t>(static_cast<int8_t>(v[5]))), bits(at<uint16_t>(v, 6)),
                   bits(static_cast<uint32_t>(at<int16_t>(v, 6))), bits(static_cast<uint64_t>(at<int32_t>(v, 4))),
                   bits(at<uint64_t>(v, 8)), bits(v[2] | static_cast<uint64_t>(v[3]) << 32),
                   bits(at<uint16_t>(v, 14) | static_cast<uint64_t>(at<uint16_t>(v, 12)) << 16 |
                        static_cast<uint64_t>(at<uint16_t>(v, 10)) << 32 |
                        static_cast<uint64_t>(at<uint16_t>(v, 8)) << 48),
                   bits(at<uint32_t>(v, 16) | static_cast<uint64_t>(at<uint32_t>(v, 28)) << 32),
                   bits(at<uint64_t>(v, 24)), bits(at<uint32_t>(v, 32))}),
        input(v)};
    return c;
}

Case stores() {
    Case c;
    c.name = "memory_stores";
    c.block[0] = 1;
    c.ptx = kernel(75, 1, R"(
    mov.u64 %d0, 0x1122334455667788;
    mov.u32 %r0, 0xaabbccdd;
    st.global.u8 [%b0], %r0;         // the low part of a wider register
    st.global.u8 [%b0+1], %d0;
    st.global.u16 [%b0+2], %d0;
    st.global.b32 [%b0+4], %d0;
    st.global.v2.b32 [%b0+8], {%r0, 7};
    st.global.v4.f32 [%b0+16], {0f3F800000, 0f40000000, 0fBF800000, 1.5};
    mov.u16 %h0, 0x1234;
    st.global.v4.u8 [%b0+32], {%h0, 1, 2, %h0};
    st.global.v2.u64 [%b0+48], {%d0, 0xffffffffffffffff};
    st.global.f64 [%b0+64], 0d3FF8000000000000;
    st.global.b16 [%b0+72], %h0;
)");
    std::vector<uint8_t> want(80, 0xA5);
    auto put = [&](size_t where, const std::vector<uint8_t> &b) { memcpy(&want[where], b.data(), b.size()); };
    put(0, {0xdd, 0x88, 0x88, 0x77, 0x88, 0x77, 0x66, 0x55, 0xdd, 0xcc, 0xbb, 0xaa, 7, 0, 0, 0});
    put(16, {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x80, 0xbf, 0, 0, 0xc0, 0x3f, 0x34, 1, 2, 0x34});
    put(48, {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xff, 0xff, 0xff, 0xff, 0xff,
             0xff, 0xff, 0xff, 0,    0,    0,    0,    0,    0,    0xf8, 0x3f, 0x34, 0x12});
    c.buffers = {output(1, each(80, [&](int i) { return want[static_cast<size_t>(i)]; }))};
    return c;
}

// Every thread writes its slot, another thread reads it after the barrier: static, demoted and dynamic shared memory.
Case shared() {
    Case c;
    c.name = "memory_shared";
    c.block[0] = 64;
    c.dynamic_shared = 64 * 8;
    c.ptx = kernel(75, 1, R"(
    .shared .align 4 .b8 inside[256];
    mov.u32 %r0, outside;
    shl.b32 %r1, %t, 2;
    add.u32 %r0, %r0, %r1;
    mul.lo.u32 %r2, %t, %t;
    st.shared.u32 [%r0], %r2;        // 32-bit addresses
    mov.u64 %d0, inside;
    cvt.u64.u32 %d1, %r1;
    add.u64 %d0, %d0, %d1;
    add.u32 %r2, %r2, 1000;
    st.shared.u32 [%d0], %r2;        // and 64-bit ones
    mov.u32 %r3, dynamic;
    shl.b32 %r4, %t, 3;
    add.u32 %r3, %r3, %r4;
    st.shared.u64 [%r3], %d1;
    bar.sync 0;
    xor.b32 %r5, %t, 63;             // the thread of the other end
    shl.b32 %r6, %r5, 2;
    mov.u32 %r0, outside;
    add.u32 %r0, %r0, %r6;
    ld.shared.u32 %r7, [%r0];
    cvt.u64.u32 %d2, %r6;
    mov.u64 %d0, inside;
    add.u64 %d0, %d0, %d2;
    ld.shared.u32 %r8, [%d0];
    mov.u32 %r3, dynamic;
    shl.b32 %r4, %r5, 3;
    add.u32 %r3, %r3, %r4;
    ld.shared.u32 %r9, [%r3];
    ld.shared.u32 %r10, [outside+12];
    mad.wide.u32 %d3, %t, 16, %b0;
    st.global.v4.u32 [%d3], {%r7, %r8, %r9, %r10};
)",
                   ".extern .shared .align 16 .b8 dynamic[];\n.shared .align 16 .u32 outside[64];\n");
    c.buffers = {output(4, each(256, [](int i) {
                            int other = 63 - i / 4, square = other * other;
                            return i % 4 == 0 ? square : i % 4 == 1 ? square + 1000 : i % 4 == 2 ? other * 4 : 9;
                        }))};
    return c;
}

Case local() {
    Case c;
    c.name = "memory_local";
    c.ptx = kernel(75, 1, R"(
    .local .align 8 .b8 stack[64];
    .reg .b64 %at, %generic;
    mov.u64 %at, stack;
    cvta.local.u64 %generic, %at;
    mov.u32 %r0, 0;
FILL:                                // stack[i] = i * 3 + t, by local and by generic addresses in turn
    mad.lo.u32 %r1, %r0, 3, %t;
    shl.b32 %r2, %r0, 2;
    cvt.u64.u32 %d0, %r2;
    and.b32 %r3, %r0, 1;
    setp.eq.u32 %p, %r3, 0;
    add.u64 %d1, %at, %d0;
    add.u64 %d2, %generic, %d0;
    @%p st.local.u32 [%d1], %r1;
    @!%p st.u32 [%d2], %r1;
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p, %r0, 16;
    @%p bra FILL;
    and.b32 %r4, %t, 15;             // each lane reads another element
    shl.b32 %r4, %r4, 2;
    cvt.u64.u32 %d0, %r4;
    add.u64 %d1, %at, %d0;
    ld.local.u32 %r5, [%d1];
    ld.local.v2.u32 {%r6, %r7}, [stack+8];
    add.u32 %r6, %r6, %r7;
    mad.wide.u32 %d3, %t, 8, %b0;
    st.global.v2.u32 [%d3], {%r5, %r6};
)");
    c.buffers = {output(4, each(64, [](int i) {
                            int t = i / 2;
                            return i % 2 ? (6 + t) + (9 + t) : (t % 16) * 3 + t;
                        }))};
    return c;
}

Case variables() {
    Case c;
    c.name = "memory_variables";
    c.block[0] = 1;
    c.ptx = kernel(75, 1, R"(
    ld.const.f32 %f0, [numbers+4];
    mov.b32 %r0, %f0;
    st.global.u32 [%b0], %r0;
    ld.global.u32 %r0, [counter];
    add.u32 %r0, %r0, 1;
    st.global.u32 [counter], %r0;
    ld.global.u32 %r0, [counter];
    st.global.u32 [%b0+4], %r0;
    ld.global.u64 %d0, [pointer];    // generic address of bytes+3
    ld.u8 %r0, [%d0];
    st.global.u32 [%b0+8], %r0;
    mov.u64 %d0, bytes;
    ld.global.u8 %r0, [%d0+7];       // after a short list: zero
    st.global.u32 [%b0+12], %r0;
    ld.global.u8 %r0, [bytes+4];
    st.global.u32 [%b0+16], %r0;
    ld.const.u32 %r0, [grid+20];     // grid[2][1]
    st.global.u32 [%b0+20], %r0;
    ld.global.s64 %d0, [negative];
    st.global.u32 [%b0+24], %d0;
    ld.global.u32 %r0, [empty];
    st.global.u32 [%b0+28], %r0;
)",
                   R"(.const .align 4 .f32 numbers[4] = { 0f3F800000, 0f40490FDB, -2.5 };
.global .align 4 .u32 counter = 41;
.global .align 4 .b8 bytes[8] = { 1, 2, 3, 200, 133 };
.global .align 8 .u64 pointer = generic(bytes)+3;
.const .u32 grid[3][2] = { {1, 2}, {3, 4}, {5, 6} };
.global .s64 negative = -3;
.global .u32 empty;
)");
    c.buffers = {
        output(4, {bits(0x40490FDB), bits(42), bits(200), bits(0), bits(133), bits(6), bits(0xfffffffd), bits(0)})};
    return c;
}

Case generic() {
    Case c;
    c.name = "memory_generic";
    c.block[0] = 1;
    c.ptx = kernel(75, 1, R"(
    .shared .align 8 .b8 s[16];
    .local .align 8 .b8 l[16];
    .reg .b64 %s, %l, %c, %g, %x;
    mov.u64 %s, s;
    cvta.shared.u64 %s, %s;
    mov.u64 %l, l;
    cvta.local.u64 %l, %l;
    cvta.const.u64 %c, value;
    cvta.global.u64 %g, %b0;
    mov.u32 %r0, 11;
    st.u32 [%s], %r0;                // the generic address finds its space
    mov.u32 %r0, 22;
    st.u32 [%l+4], %r0;
    ld.shared.u32 %r1, [s];
    ld.local.u32 %r2, [l+4];
    ld.u32 %r3, [%c];
    st.v2.u32 [%g], {%r1, %r2};
    st.u32 [%g+8], %r3;
    cvta.to.shared.u64 %x, %s;
    ld.shared.u32 %r4, [%x];
    st.u32 [%g+12], %r4;
    mov.u32 %r5, 0;
    isspacep.shared %p, %s;
    @%p or.b32 %r5, %r5, 1;
    isspacep.local %p, %l;
    @%p or.b32 %r5, %r5, 2;
    isspacep.global %p, %g;
    @%p or.b32 %r5, %r5, 8;
    isspacep.global %p, %s;
    @%p or.b32 %r5, %r5, 16;
    isspacep.shared %p, %g;
    @%p or.b32 %r5, %r5, 32;
    isspacep.local %p, %s;
    @%p or.b32 %r5, %r5, 64;
    st.u32 [%g+16], %r5;
)",
                   ".const .u32 value = 33;\n");
    c.buffers = {output(4, {bits(11), bits(22), bits(33), bits(11), bits(11)})};
    return c;
}

Case constant_space() {
    Case c;
    c.name = "memory_isspacep_const";
    c.block[0] = 1;
    c.ptx = kernel(75, 1, R"(
    mov.u64 %d0, value;
    cvta.const.u64 %d0, %d0;
    mov.u32 %r0, 0;
    isspacep.const %p, %d0;
    @%p or.b32 %r0, %r0, 1;
    cvta.global.u64 %d1, %b0;
    isspacep.const %p, %d1;
    @%p or.b32 %r0, %r0, 2;
    st.global.u32 [%b0], %r0;
)",
                   ".const .u32 value = 33;\n");
    c.buffers = {output(4, {bits(1)})};
    return c;
}

// One warp hands a value to another: the reader spins on a flag.  Orders and scopes of every kind.
Case message(const char *name, const char *store, const char *load) {
    Case c;
    c.name = name;
    c.block[0] = 64;
    std::string body = R"(
    setp.ne.u32 %p, %t, 0;
    setp.ne.u32 %q, %t, 32;
    @!%p bra SEND;
    @!%q bra RECEIVE;
    bra END;
SEND:
    mov.u32 %r0, 1234;
    st.global.u32 [%b0], %r0;
    mov.u32 %r1, 1;
    STORE
    bra END;
RECEIVE:
    LOAD
    setp.eq.u32 %p, %r2, 0;
    @%p bra RECEIVE;
    ld.global.u32 %r3, [%b0];
    st.global.u32 [%b0+8], %r3;
END:
)";
    body.replace(body.find("STORE"), 5, store);
    body.replace(body.find("LOAD"), 4, load);
    c.ptx = kernel(75, 1, body);
    c.buffers = {changed(input(std::vector<uint32_t>{0, 0, 0}), 4, {bits(1234), bits(1), bits(1234)})};
    return c;
}

Case parameters() {
    Case c;
    c.name = "memory_parameters";
    c.block[0] = 1;
    c.ptx = module(75,
                   R"(.visible .entry k(.param .u64 out, .param .u8 byte, .param .s16 half, .param .f32 x,
    .param .align 8 .b8 block[24], .param .align 16 .b8 v[16], .param .u32 last)
{
    .reg .b64 %o, %at;
    .reg .b32 %r<8>;
    .reg .f32 %f<5>;
    ld.param.u64 %o, [out];
    cvta.to.global.u64 %o, %o;
    ld.param.u8 %r0, [byte];
    ld.param.s16 %r1, [half];
    ld.param.f32 %f0, [x];
    ld.param.u32 %r2, [block+8];
    mov.b64 %at, block;              // by its address in .param
    ld.param.u32 %r3, [%at+20];
    ld.param.v4.f32 {%f1, %f2, %f3, %f4}, [v];
    ld.param.u32 %r4, [last];
    st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3};
    st.global.v4.f32 [%o+16], {%f0, %f1, %f2, %f4};
    st.global.u32 [%o+32], %r4;
    ret;
}
)");
    std::vector<uint8_t> s(76, 0);
    auto put = [&](size_t offset, auto value) { memcpy(&s[offset - 8], &value, sizeof value); }; // after the pointer
    put(8, uint8_t(200));
    put(10, int16_t(-5));
    put(12, 2.5f);
    for (int i = 0; i < 6; i++) put(16 + 4 * static_cast<size_t>(i), 100 + i);
    for (int i = 0; i < 4; i++) put(48 + 4 * static_cast<size_t>(i), static_cast<float>(i + 1));
    put(64, 77);
    s.resize(60);
    c.scalars = s;
    c.buffers = {output(4, {bits(200), bits(0xfffffffb), bits(102), bits(105), exact(2.5f), exact(1.f), exact(2.f),
                            exact(4.f), bits(77)})};
    return c;
}

Case special_registers() {
    Case c;
    c.name = "special_registers";
    c.grid[0] = 2, c.grid[1] = 3, c.grid[2] = 2;
    c.block[0] = 4, c.block[1] = 5, c.block[2] = 2;
    c.dynamic_shared = 48;
    c.ptx = kernel(75, 1, R"(
    .reg .b32 %x, %y, %z, %block, %thread, %base;
    mov.u32 %x, %ctaid.x;
    mov.u32 %y, %ctaid.y;
    mov.u32 %z, %ctaid.z;
    mov.u32 %r0, %nctaid.y;
    mad.lo.u32 %block, %z, %r0, %y;
    mov.u32 %r0, %nctaid.x;
    mad.lo.u32 %block, %block, %r0, %x;
    mov.u32 %x, %tid.x;
    mov.u32 %y, %tid.y;
    mov.u32 %z, %tid.z;
    mov.u32 %r0, %ntid.y;
    mad.lo.u32 %thread, %z, %r0, %y;
    mov.u32 %r0, %ntid.x;
    mad.lo.u32 %thread, %thread, %r0, %x;
    mad.lo.u32 %r0, %block, 40, %thread;
    mad.wide.u32 %d0, %r0, 32, %b0;
    mov.u32 %r0, %laneid;
    mov.u32 %r1, %lanemask_lt;
    mov.u32 %r2, %lanemask_ge;
    mov.u32 %r3, %lanemask_eq;
    st.global.v4.u32 [%d0], {%r0, %r1, %r2, %r3};
    mov.u32 %r0, %nctaid.z;
    mov.u32 %r1, %ntid.z;
    mov.u32 %r2, %lanemask_le;
    mov.u32 %r3, %lanemask_gt;
    st.global.v4.u32 [%d0+16], {%r0, %r1, %r2, %r3};
)");
    c.buffers = {output(4, each(12 * 40 * 8, [](int i) -> uint64_t {
                            uint32_t lane = static_cast<uint32_t>(i / 8 % 40 % 32), one = 1u << lane;
                            const uint32_t want[8] = {lane, one - 1, ~(one - 1),      one,
                                                      2,    2,       one | (one - 1), ~(one | (one - 1))};
                            return want[i % 8];
                        }))};
    return c;
}

Case sizes_and_clocks() {
    Case c;
    c.name = "special_sizes_clocks";
    c.block[0] = 1;
    c.dynamic_shared = 48;
    c.ptx = kernel(75, 1, R"(
    mov.u32 %r0, %dynamic_smem_size;
    st.global.u32 [%b0], %r0;
    mov.u64 %d0, %clock64;
    mov.u32 %r1, %clock;
    nanosleep.u32 20;
    mov.u64 %d1, %clock64;
    setp.ge.u64 %p, %d1, %d0;
    selp.u32 %r0, 1, 0, %p;
    st.global.u32 [%b0+4], %r0;
    mov.u64 %d0, %globaltimer;
    mov.u64 %d1, %globaltimer;
    setp.ge.u64 %p, %d1, %d0;
    selp.u32 %r0, 1, 0, %p;
    st.global.u32 [%b0+8], %r0;
    mov.u32 %r0, WARP_SZ;
    st.global.u32 [%b0+12], %r0;
)",
                   ".extern .shared .align 16 .b8 dynamic[];\n");
    c.buffers = {output(4, {bits(48), bits(1), bits(1), bits(32)})};
    return c;
}

} // namespace

std::vector<Case> memory_cases() {
    return {loads(),
            stores(),
            shared(),
            local(),
            variables(),
            generic(),
            constant_space(),
            parameters(),
            special_registers(),
            sizes_and_clocks(),
            message("memory_release_acquire", "st.release.gpu.global.u32 [%b0+4], %r1;",
                    "ld.acquire.gpu.global.u32 %r2, [%b0+4];"),
            message("memory_volatile_fence", "membar.cta;\n    st.volatile.global.u32 [%b0+4], %r1;",
                    "ld.volatile.global.u32 %r2, [%b0+4];\n    membar.cta;"),
            message("memory_relaxed_fence", "fence.acq_rel.cta;\n    st.relaxed.cta.global.u32 [%b0+4], %r1;",
                    "ld.relaxed.cta.global.u32 %r2, [%b0+4];\n    fence.acq_rel.cta;"),
            message("memory_exchange", "membar.gl;\n    atom.global.exch.b32 %r4, [%b0+4], %r1;",
                    "atom.global.or.b32 %r2, [%b0+4], 0;\n    fence.sc.gpu;")};
}

} // namespace isa
