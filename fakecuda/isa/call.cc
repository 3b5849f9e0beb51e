// call.cc: functions: parameter blocks, structures, recursion, pointers to functions, registers as parameters.
#include "fakecuda/isa/isa.h"

namespace isa {
namespace {

template <class F> std::vector<Want> each(int n, F f) {
    std::vector<Want> all;
    for (int i = 0; i < n; i++) all.push_back(bits(static_cast<uint64_t>(f(i))));
    return all;
}

const char kStore[] = R"(
    mad.wide.u32 %d7, %t, 4, %b0;
    st.global.u32 [%d7], %r0;
)";

Case direct() {
    Case c;
    c.name = "call_values_and_structures";
    c.ptx = kernel(75, 1, R"(
    {
        .param .b32 x;
        .param .align 8 .b8 s[16];
        .param .b32 result;
        st.param.b32 [x], %t;
        st.param.b32 [s], 10;
        st.param.b32 [s+4], %t;
        st.param.b64 [s+8], 1000;
        call.uni (result), combine, (x, s);
        ld.param.b32 %r0, [result];
    }
)" + std::string(kStore),
                   R"(.func (.param .b32 result) combine(.param .b32 x, .param .align 8 .b8 s[16])
{
    .reg .b32 %r<5>;
    .reg .b64 %d;
    ld.param.b32 %r0, [x];
    ld.param.v2.b32 {%r1, %r2}, [s];
    ld.param.b64 %d, [s+8];
    cvt.u32.u64 %r3, %d;
    mad.lo.u32 %r0, %r0, %r1, %r2;
    add.u32 %r0, %r0, %r3;
    st.param.b32 [result], %r0;
    ret;
}
)");
    c.buffers = {output(4, each(32, [](int t) { return t * 10 + t + 1000; }))};
    return c;
}

Case large_result() {
    Case c;
    c.name = "call_structure_result";
    c.ptx = kernel(75, 1, R"(
    {
        .param .b32 x;
        .param .align 16 .b8 result[16];
        st.param.b32 [x], %t;
        call (result), spread, (x);
        ld.param.v4.b32 {%r1, %r2, %r3, %r4}, [result];
    }
    mul.lo.u32 %r0, %r1, %r2;
    add.u32 %r0, %r0, %r3;
    sub.u32 %r0, %r0, %r4;
)" + std::string(kStore),
                   R"(.func (.param .align 16 .b8 result[16]) spread(.param .b32 x)
{
    .reg .b32 %r<5>;
    ld.param.b32 %r0, [x];
    add.u32 %r1, %r0, 1;
    shl.b32 %r2, %r0, 4;
    st.param.v2.b32 [result], {%r0, %r1};
    st.param.b32 [result+8], %r2;
    st.param.b32 [result+12], 3;
    ret;
}
)");
    c.buffers = {output(4, each(32, [](int t) { return t * (t + 1) + t * 16 - 3; }))};
    return c;
}

// Each lane recurses to another depth.
Case recursion() {
    Case c;
    c.name = "call_recursion";
    c.ptx = kernel(75, 1, R"(
    and.b32 %r1, %t, 7;
    {
        .param .b32 n;
        .param .b32 result;
        st.param.b32 [n], %r1;
        call (result), factorial, (n);
        ld.param.b32 %r0, [result];
    }
)" + std::string(kStore),
                   R"(.func (.param .b32 result) factorial(.param .b32 n)
{
    .reg .b32 %r<4>;
    .reg .pred %p;
    ld.param.b32 %r0, [n];
    mov.u32 %r2, 1;
    setp.le.u32 %p, %r0, 1;
    @%p bra DONE;
    sub.u32 %r1, %r0, 1;
    {
        .param .b32 less;
        .param .b32 inner;
        st.param.b32 [less], %r1;
        call (inner), factorial, (less);
        ld.param.b32 %r2, [inner];
    }
    mul.lo.u32 %r2, %r2, %r0;        // the caller's registers are as before
DONE:
    st.param.b32 [result], %r2;
    ret;
}
)");
    c.buffers = {output(4, each(32, [](int t) {
                            int product = 1;
                            for (int k = 2; k <= t % 8; k++) product *= k;
                            return product;
                        }))};
    return c;
}

// Lanes call different functions through a table, by a prototype.
Case indirect() {
    Case c;
    c.name = "call_indirect";
    c.ptx = kernel(75, 1, R"(
    and.b32 %r1, %t, 1;
    mov.u64 %d0, table;
    mad.wide.u32 %d0, %r1, 8, %d0;
    ld.global.u64 %d1, [%d0];
    {
        .param .b32 x;
        .param .b32 result;
        st.param.b32 [x], %t;
    prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
        call (result), %d1, (x), prototype;
        ld.param.b32 %r0, [result];
    }
)" + std::string(kStore),
                   R"(.func (.param .b32 result) twice(.param .b32 x)
{
    .reg .b32 %r;
    ld.param.b32 %r, [x];
    shl.b32 %r, %r, 1;
    st.param.b32 [result], %r;
    ret;
}
.func (.param .b32 result) negated(.param .b32 x)
{
    .reg .b32 %r;
    ld.param.b32 %r, [x];
    neg.s32 %r, %r;
    st.param.b32 [result], %r;
    ret;
}
.global .align 8 .u64 table[2] = { twice, negated };
)");
    c.buffers = {output(4, each(32, [](int t) { return static_cast<uint32_t>(t % 2 ? -t : 2 * t); }))};
    return c;
}

Case by_registers() {
    Case c;
    c.name = "call_registers";
    c.ptx = kernel(75, 1, R"(
    setp.gt.u32 %p, %t, 20;
    mov.u32 %r0, 7;
    @%p call (%r0), add_scaled, (%t, 100);
)" + std::string(kStore),
                   R"(.func (.reg .b32 result) add_scaled(.reg .b32 x, .reg .b32 y)
{
    mad.lo.u32 result, x, 3, y;
    ret;
}
)");
    c.buffers = {output(4, each(32, [](int t) { return t > 20 ? t * 3 + 100 : 7; }))};
    return c;
}

// A function stores through a generic pointer to the caller's local memory.
Case pointers() {
    Case c;
    c.name = "call_pointer_to_local";
    c.ptx = kernel(75, 1, R"(
    .local .align 4 .b8 slot[8];
    .reg .b64 %at;
    mov.u64 %at, slot;
    cvta.local.u64 %at, %at;
    {
        .param .b64 to;
        .param .b32 x;
        st.param.b64 [to], %at;
        st.param.b32 [x], %t;
        call.uni put, (to, x);
    }
    ld.local.u32 %r0, [slot+4];
)" + std::string(kStore),
                   R"(.func put(.param .b64 to, .param .b32 x)
{
    .reg .b64 %d;
    .reg .b32 %r;
    ld.param.b64 %d, [to];
    ld.param.b32 %r, [x];
    add.u32 %r, %r, 500;
    st.u32 [%d+4], %r;
    ret;
}
)");
    c.buffers = {output(4, each(32, [](int t) { return t + 500; }))};
    return c;
}

} // namespace

std::vector<Case> call_cases() {
    return {direct(), large_result(), recursion(), indirect(), by_registers(), pointers()};
}

} // namespace isa
