// parse_ptx.h: what the parser's tests share.
#ifndef FAKECUDA_PTX_PARSE_PTX_H
#define FAKECUDA_PTX_PARSE_PTX_H

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "fakecuda/ptx/ptx.h"

namespace ptx_test {

using Module = std::unique_ptr<PtxModule, decltype(&ptx_free)>;

inline std::string &last_message() {
    static std::string message;
    return message;
}

// Null where the text is refused; last_message() says why.
inline Module parse(const std::string &text) {
    char message[512];
    PtxModule *m = ptx_parse(text.data(), text.size(), message, sizeof message);
    last_message() = message;
    return Module(m, ptx_free);
}

const char kHeader[] = ".version 8.0\n.target sm_90\n.address_size 64\n";

inline Module parse_items(const std::string &items) { return parse(kHeader + items); }

// |body| in a kernel k(.param .u64 p) with some registers.
inline Module parse_body(const std::string &body) {
    return parse_items(
        ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .f32 %f<8>; "
        ".reg .b64 %rd<8>; .reg .f64 %fd<4>;\n" +
        body + "\n}\n");
}

inline const PtxFunction &kernel(const Module &m) { return *ptx_function(m.get(), "k"); }

inline const PtxInstruction &instruction(const Module &m, int i) { return kernel(m).code[i]; }

// "%r3", "4", "[%rd1-32]", "{%f1, 0f3f800000}": an operand as the parser understood it.
std::string show(const PtxFunction &f, const PtxOperand &o);

// The operands of instruction |i|, separated by ", ".
std::string shown(const Module &m, int i);

} // namespace ptx_test

#endif
