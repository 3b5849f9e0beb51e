// fault.cc: kernels that end badly.  On a GPU each of them takes its context with it.
#include "fakecuda/isa/isa.h"

namespace isa {
namespace {

Case make(const char *name, End end, const std::string &body, const std::string &before = "") {
    Case c;
    c.name = name;
    c.end = end;
    c.ptx = kernel(75, 1, body, before);
    c.buffers = {output(4, std::vector<Want>(32, anything()))};
    return c;
}

} // namespace

std::vector<Case> fault_cases() {
    return {
        make("fault_trap", End::kTrap, R"(
    setp.eq.u32 %p, %t, 17;
    @%p trap;
)"),
        make("fault_assert", End::kAssert, R"(
    setp.ne.u32 %p, %t, 3;
    @%p bra FINE;
    {
        .param .b64 message;
        .param .b64 file;
        .param .b32 line;
        .param .b64 function;
        .param .b64 width;
        mov.u64 %d0, text;
        cvta.global.u64 %d0, %d0;
        st.param.b64 [message], %d0;
        st.param.b64 [file], %d0;
        st.param.b32 [line], 12;
        st.param.b64 [function], %d0;
        st.param.b64 [width], 1;
        call.uni __assertfail, (message, file, line, function, width);
    }
FINE:
)",
             R"(.extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line,
    .param .b64 function, .param .b64 width);
.global .align 1 .b8 text[8] = { 120, 32, 62, 32, 48 };
)"),
        make("fault_null_pointer", End::kIllegalAddress, R"(
    mov.u64 %d0, 0;
    ld.global.u32 %r0, [%d0];
    st.global.u32 [%b0], %r0;
)"),
        make("fault_misaligned", End::kMisaligned, R"(
    mad.wide.u32 %d0, %t, 0, %b0;
    ld.global.u32 %r0, [%d0+2];
    st.global.u32 [%b0], %r0;
)"),
    };
}

} // namespace isa
