// parse_ptx.cc: operands in words.
#include "fakecuda/ptx/parse_ptx.h"

#include <cinttypes>

namespace ptx_test {
namespace {

std::string offset(int64_t n) { return n == 0 ? "" : (n > 0 ? "+" : "") + std::to_string(n); }

std::string number(const char *format, uint64_t bits) {
    char text[40];
    snprintf(text, sizeof text, format, bits);
    return text;
}

std::string items(const PtxFunction &f, const PtxOperand &o) {
    std::string text;
    for (int i = 0; i < o.count; i++) text += (i ? ", " : "") + show(f, o.items[i]);
    return text;
}

} // namespace

std::string show(const PtxFunction &f, const PtxOperand &o) {
    switch (o.kind) {
    case PTX_OP_REGISTER: return f.registers[o.index].name + std::string("#") + std::to_string(o.index);
    case PTX_OP_INTEGER: return std::to_string(static_cast<int64_t>(o.bits));
    case PTX_OP_FLOAT: return o.is_double ? number("0d%016" PRIx64, o.bits) : number("0f%08" PRIx64, o.bits);
    case PTX_OP_SPECIAL: return "special " + std::to_string(o.index);
    case PTX_OP_VARIABLE: return std::string(o.variable->name) + offset(o.offset);
    case PTX_OP_ADDRESS: return "[" + show(f, *o.base) + offset(o.offset) + "]";
    case PTX_OP_VECTOR: return "{" + items(f, o) + "}";
    case PTX_OP_PAIR: return show(f, o.items[0]) + "|" + show(f, o.items[1]);
    case PTX_OP_SINK: return "_";
    case PTX_OP_NOT: return "!" + items(f, o);
    case PTX_OP_LABEL: return "to " + std::to_string(o.index);
    case PTX_OP_FUNCTION: return std::string("function ") + o.name;
    case PTX_OP_LIST: return "(" + items(f, o) + ")";
    case PTX_OP_PROTOTYPE: return std::string("prototype ") + o.name;
    }
    return "?";
}

std::string shown(const Module &m, int i) {
    const PtxFunction &f = kernel(m);
    std::string text;
    for (int n = 0; n < f.code[i].operand_count; n++) text += (n ? ", " : "") + show(f, f.code[i].operands[n]);
    return text;
}

} // namespace ptx_test
