// attention_cases.h: core IR with attention and its gradient, of sizes, types and attributes that tests choose.
#ifndef AMP_TESTS_CODEGEN_ATTENTION_CASES_H
#define AMP_TESTS_CODEGEN_ATTENTION_CASES_H

#include <string>
#include <vector>

namespace attention {

struct Sizes {
    int heads, key_heads, queries, keys, width, v_width;
};

inline std::string Int(int number) { return std::to_string(number); }

inline std::string HeadShape(int heads, int length, int width, const char *lead = "N, ") {
    return "[" + std::string(lead) + Int(heads) + ", " + Int(length) + ", " + Int(width) + "]";
}

// attend and attend_grad of one set of operands.
struct Case {
    Sizes s;
    std::string attrs;
    std::string mask = ""; // the type of a fourth operand
    std::string type = "f32";
    bool drops = false;
    bool keeps = false; // the bits of dropout, for the gradient
};

// Values of case |n| end in it.
inline std::string Both(const Case &c, int n) {
    const Sizes &s = c.s;
    const std::string q = c.type + HeadShape(s.heads, s.queries, s.width),
                      k = c.type + HeadShape(s.key_heads, s.keys, s.width),
                      v = c.type + HeadShape(s.key_heads, s.keys, s.v_width),
                      dy = c.type + HeadShape(s.heads, s.queries, s.v_width),
                      y = "f32[N, " + Int(s.queries) + ", " + Int(s.heads * s.v_width) + "]",
                      sums = "f32" + HeadShape(s.heads, s.queries, 1);
    const std::string counters = c.drops ? ", %seed, %step" : "", bits = c.keeps ? ", %d#" : counters,
                      mask = c.mask.empty() ? "" : ", %m#";
    std::string text =
        "  input %q# : " + q + "\n  input %k# : " + k + "\n  input %v# : " + v + "\n  input %g# : " + dy +
        (c.mask.empty() ? "" : "\n  input %m# : " + c.mask) + "\n  %y#, %l#" +
        (c.keeps ? ", %d# = attend_drop" : " = attend") + "(%q#, %k#, %v#" + mask + counters + c.attrs + ") : " + y +
        ", " + sums + (c.keeps ? ", i32" + HeadShape(s.heads, (s.keys + 63) / 64 * 2, s.queries) : "") +
        "\n  %r# = cast(%y#) : " + c.type + y.substr(3) +
        "\n  %a#, %b#, %c# = attend_grad(%g#, %q#, %k#, %v#, %r#, %l#" + mask + bits + c.attrs + ") : f32[N, " +
        Int(s.queries) + ", " + Int(s.heads * s.width) + "], f32[N, " + Int(s.keys) + ", " +
        Int(s.key_heads * s.width) + "], f32[N, " + Int(s.keys) + ", " + Int(s.key_heads * s.v_width) +
        "]\n  result y# = %y#\n  result l# = %l#\n  result a# = %a#\n  result b# = %b#\n  result c# = %c#\n";
    for (size_t at; (at = text.find('#')) != std::string::npos;) text.replace(at, 1, Int(n));
    return text;
}

// All of them, each with results of its own, and the counters that those which drop read.
inline std::string All(const std::vector<Case> &cases) {
    std::string text = "  input %seed : i64\n  input %step : i64\n";
    for (size_t i = 0; i < cases.size(); i++) text += Both(cases[i], static_cast<int>(i));
    return text;
}

} // namespace attention

#endif
