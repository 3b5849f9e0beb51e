// async.cc: cp.async: sizes, groups, filling with zeros.
#include "fakecuda/isa/isa.h"

namespace isa {
namespace {

std::vector<uint8_t> counting(int n) {
    std::vector<uint8_t> v;
    for (int i = 0; i < n; i++) v.push_back(static_cast<uint8_t>(i * 7 + i / 256 + 1));
    return v;
}

// Three groups of one size each; the third waits for all.
Case groups() {
    Case c;
    c.name = "cp_async_groups";
    c.arch = 80;
    c.ptx = kernel(80, 2, R"(
    .shared .align 16 .b8 s[1024];
    mov.u32 %r0, s;
    shl.b32 %r1, %t, 4;
    add.u32 %r2, %r0, %r1;           // 16 bytes of this thread
    cvt.u64.u32 %d0, %r1;
    add.u64 %d1, %b1, %d0;
    cp.async.cg.shared.global [%r2], [%d1], 16;
    cp.async.commit_group;
    shl.b32 %r3, %t, 3;
    add.u32 %r4, %r0, %r3;
    add.u32 %r4, %r4, 512;           // 8 bytes
    cvt.u64.u32 %d2, %r3;
    add.u64 %d3, %b1, %d2;
    cp.async.ca.shared.global [%r4], [%d3+512], 8;
    cp.async.commit_group;
    shl.b32 %r5, %t, 2;
    add.u32 %r6, %r0, %r5;
    add.u32 %r6, %r6, 768;           // 4 bytes
    cvt.u64.u32 %d4, %r5;
    add.u64 %d5, %b1, %d4;
    cp.async.ca.shared.global [%r6], [%d5+768], 4;
    cp.async.commit_group;
    add.u64 %d6, %b0, %d0;
    cp.async.wait_group 2;           // the oldest is there
    ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [%r2];
    st.global.v4.u32 [%d6], {%r8, %r9, %r10, %r11};
    cp.async.wait_group 1;
    ld.shared.v2.u32 {%r8, %r9}, [%r4];
    add.u64 %d6, %b0, %d2;
    st.global.v2.u32 [%d6+512], {%r8, %r9};
    cp.async.wait_all;
    bar.sync 0;
    xor.b32 %r7, %r5, 124;           // of the thread at the other end
    add.u32 %r6, %r0, %r7;
    ld.shared.u32 %r8, [%r6+768];
    add.u64 %d6, %b0, %d4;
    st.global.u32 [%d6+768], %r8;
)");
    std::vector<uint8_t> v = counting(896);
    std::vector<Want> wants;
    for (size_t i = 0; i < 768; i++) wants.push_back(bits(v[i]));
    for (size_t i = 0; i < 128; i++) wants.push_back(bits(v[768 + ((i / 4 * 4) ^ 124) + i % 4]));
    c.buffers = {output(1, wants), input(v)};
    return c;
}

// Fewer bytes are read than written: zeros after them.  A thread that reads none may have any address inside.
Case zeros() {
    Case c;
    c.name = "cp_async_zero_fill";
    c.arch = 80;
    c.block[0] = 16;
    c.ptx = kernel(80, 2, R"(
    .shared .align 16 .b8 s[256];
    mov.u32 %r0, s;
    shl.b32 %r1, %t, 4;
    add.u32 %r0, %r0, %r1;
    cvt.u64.u32 %d0, %r1;
    add.u64 %d1, %b1, %d0;
    mov.u32 %r2, 0xffffffff;
    st.shared.v4.u32 [%r0], {%r2, %r2, %r2, %r2};
    cp.async.ca.shared.global [%r0], [%d1], 16, %t; // t of 16 bytes
    cp.async.commit_group;
    cp.async.wait_group 0;
    ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [%r0];
    add.u64 %d2, %b0, %d0;
    st.global.v4.u32 [%d2], {%r8, %r9, %r10, %r11};
)");
    std::vector<uint8_t> v = counting(256);
    std::vector<Want> wants;
    for (size_t i = 0; i < 256; i++) wants.push_back(bits(i % 16 < i / 16 ? v[i] : 0));
    c.buffers = {output(1, wants), input(v)};
    return c;
}

// Two buffers in turn: a copy runs while the block before it is summed.
Case pipeline() {
    Case c;
    c.name = "cp_async_pipeline";
    c.arch = 80;
    c.ptx = kernel(80, 2, R"(
    .shared .align 16 .b8 s[1024];
    .reg .b32 %base, %sum, %k, %stage;
    mov.u32 %base, s;
    shl.b32 %r1, %t, 4;
    add.u32 %base, %base, %r1;
    cvt.u64.u32 %d0, %r1;
    add.u64 %d1, %b1, %d0;
    mov.u32 %sum, 0;
    mov.u32 %k, 0;
    cp.async.cg.shared.global [%base], [%d1], 16;
    cp.async.commit_group;
LOOP:
    add.u32 %k, %k, 1;
    setp.lt.u32 %p, %k, 5;
    and.b32 %stage, %k, 1;
    mad.lo.u32 %r2, %stage, 512, %base;
    mad.wide.u32 %d2, %k, 512, %d1;
    @%p cp.async.cg.shared.global [%r2], [%d2], 16;
    cp.async.commit_group;           // empty in the last round
    cp.async.wait_group 1;
    bar.sync 0;
    xor.b32 %stage, %stage, 1;
    mad.lo.u32 %r2, %stage, 512, %base;
    ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];
    add.u32 %r4, %r4, %r5;
    add.u32 %r6, %r6, %r7;
    add.u32 %r4, %r4, %r6;
    mad.lo.u32 %sum, %sum, 3, %r4;
    bar.sync 0;
    @%p bra LOOP;
    mad.wide.u32 %d3, %t, 4, %b0;
    st.global.u32 [%d3], %sum;
)");
    std::vector<uint32_t> v;
    for (uint32_t i = 0; i < 5 * 128; i++) v.push_back(i * i + 5);
    std::vector<Want> wants;
    for (size_t t = 0; t < 32; t++) {
        uint32_t sum = 0;
        for (size_t k = 0; k < 5; k++) {
            uint32_t four = 0;
            for (size_t i = 0; i < 4; i++) four += v[k * 128 + t * 4 + i];
            sum = sum * 3 + four;
        }
        wants.push_back(bits(sum));
    }
    c.buffers = {output(4, wants), input(v)};
    return c;
}

} // namespace

std::vector<Case> async_cases() { return {groups(), zeros(), pipeline()}; }

} // namespace isa
