// lower_cases.h: functions of one or two graph ops, by theme; every op with a rule has some.
#ifndef AMP_TESTS_PASSES_LOWER_CASES_H
#define AMP_TESTS_PASSES_LOWER_CASES_H

#include <string>
#include <vector>

#include "ir/ir.h"
#include "tests/ops/pointwise.h"

struct LowerCase {
    Opcode code;
    std::string body;
};

// "input %x : TYPE" for each of the types, called x, y, z; `CALL : TYPE` as %r, the result.
inline LowerCase OneOp(Opcode code, const std::vector<std::string> &inputs, const std::string &call,
                       const std::string &type) {
    static const char *const names[] = {"x", "y", "z", "u", "q"};
    std::string body;
    for (size_t i = 0; i < inputs.size(); i++) body += std::string("input %") + names[i] + " : " + inputs[i] + "\n";
    return {code, body + "%r = " + call + " : " + type + "\nresult r = %r\n"};
}

inline std::vector<LowerCase> ElementwiseCases() {
    std::vector<LowerCase> all;
    for (const PointwiseRow &row : PointwiseRows())
        for (const char *t : {"f32[N, 4]", "f16[3]", "f32", "bf16[N, 2, 3, 1]", "f32[1, 1]"}) {
            const std::string x = row.low < 0 ? "%x" : "%pos"; // that is never negative
            all.push_back(
                {row.code, "input " + x + " : " + t + "\n%r = " + row.Call(x) + " : " + t + "\nresult r = %r\n"});
        }
    for (const PointwiseRow &row : SlopeRows())
        all.push_back(OneOp(row.code, {"f32[N, 3]", "f32[N, 3]"}, row.Call("%x, %y"), "f32[N, 3]"));
    for (const char *e : {"0.0", "1.0", "2.0", "3.0", "4.0", "-1.0", "-2.0", "0.5", "-0.5", "1.7", "0.3"})
        all.push_back({OP_pow, std::string("input %pos : f32[N, 3]\n%r = pow(%pos; e = ") + e +
                                   ") : f32[N, 3]\nresult r = %r\n"});
    all.push_back(OneOp(OP_pow, {"f16[N, 3]"}, "pow(%x; e = 3.0)", "f16[N, 3]"));
    all.push_back(OneOp(OP_clamp, {"f32[N, 3]"}, "clamp(%x; low = -0.5, high = 1.0)", "f32[N, 3]"));
    all.push_back(OneOp(OP_clamp, {"f16[N, 3]"}, "clamp(%x; high = 0.0)", "f16[N, 3]"));
    all.push_back(OneOp(OP_clamp, {"f32[N, 3]"}, "clamp(%x)", "f32[N, 3]"));
    const struct {
        Opcode code;
        const char *name;
    } compare[] = {{OP_lt, "lt"}, {OP_le, "le"}, {OP_eq, "eq"}, {OP_ne, "ne"}, {OP_gt, "gt"}, {OP_ge, "ge"}};
    for (const auto &c : compare) {
        all.push_back(OneOp(c.code, {"f32[N, 3]", "f32[3]"}, std::string(c.name) + "(%x, %y)", "bool[N, 3]"));
        all.push_back(OneOp(c.code, {"i32[N, 3]", "i32[N, 1]"}, std::string(c.name) + "(%x, %y)", "bool[N, 3]"));
        all.push_back(OneOp(c.code, {"f16[N, 2, 1]", "f16[1, 5]"}, std::string(c.name) + "(%x, %y)", "bool[N, 2, 5]"));
    }
    const struct {
        Opcode code;
        const char *name;
    } logic[] = {{OP_and, "and"}, {OP_or, "or"}};
    for (const auto &c : logic) {
        all.push_back(OneOp(c.code, {"bool[N, 3]", "bool[N, 3]"}, std::string(c.name) + "(%x, %y)", "bool[N, 3]"));
        all.push_back(OneOp(c.code, {"bool[N, 2, 1]", "bool[5]"}, std::string(c.name) + "(%x, %y)", "bool[N, 2, 5]"));
        all.push_back(OneOp(c.code, {"bool", "bool[N]"}, std::string(c.name) + "(%x, %y)", "bool[N]"));
    }
    all.push_back(OneOp(OP_not, {"bool[N, 3]"}, "not(%x)", "bool[N, 3]"));
    all.push_back(OneOp(OP_where, {"bool[N, 3]", "f32[N, 3]", "f32[N, 1]"}, "where(%x, %y, %z)", "f32[N, 3]"));
    all.push_back(OneOp(OP_where, {"bool[4, 1]", "f16[N, 1, 3]", "f16"}, "where(%x, %y, %z)", "f16[N, 4, 3]"));
    all.push_back(OneOp(OP_where, {"bool[N]", "i32[N]", "i32"}, "where(%x, %y, %z)", "i32[N]"));
    all.push_back({OP_where_grad,
                   "input %x : f32[N, 3]\ninput %c : bool[3]\n%r, %s = where_grad(%x, %c) : f32[N, 3], f32[N, "
                   "3]\nresult r = %r\nresult s = %s\n"});
    for (Opcode code : {OP_maximum, OP_minimum, OP_remainder}) {
        const std::string name = ir_op_info[code].name;
        all.push_back(OneOp(code, {"f32[N, 3]", "f32[3]"}, name + "(%x, %y)", "f32[N, 3]"));
        all.push_back(OneOp(code, {"f16[N, 2, 1]", "f16[1, 5]"}, name + "(%x, %y)", "f16[N, 2, 5]"));
        all.push_back(OneOp(code, {"i32[N, 3]", "i32"}, name + "(%x, %y)", "i32[N, 3]"));
    }
    for (Opcode code : {OP_maximum_grad, OP_minimum_grad}) {
        const std::string name = ir_op_info[code].name;
        all.push_back({code, "input %x : f32[N, 3]\ninput %y : f32[N, 3]\ninput %z : f32[3]\n%r, %s = " + name +
                                 "(%x, %y, %z) : f32[N, 3], f32[N, 3]\nresult r = %r\nresult s = %s\n"});
    }
    for (const char *t : {"[N, 3]", "[N, 3, 5, 2]", "[2, 3]"})
        for (const char *w : {"[3]", "[1]"}) {
            const std::string x = std::string("f16") + t, weight = std::string("f16") + w;
            all.push_back(OneOp(OP_prelu, {x, weight}, "prelu(%x, %y)", x));
            all.push_back({OP_prelu_grad, "input %x : " + x + "\ninput %y : " + x + "\ninput %z : " + weight +
                                              "\n%r, %s = prelu_grad(%x, %y, %z) : " + x + ", " + weight +
                                              "\nresult r = %r\nresult s = %s\n"});
        }
    for (const char *e : {"-0.5", "0.0", "1.0", "2.0", "3.0", "4.0", "-1.0"})
        all.push_back(OneOp(OP_pow_grad, {"f16[N, 3]", "f16[N, 3]"}, std::string("pow_grad(%x, %y; e = ") + e + ")",
                            "f16[N, 3]"));
    // broadcasts that no kernel does by itself
    all.push_back(OneOp(OP_add, {"f32[N, 2, 3]", "f32[2, 3]"}, "add(%x, %y)", "f32[N, 2, 3]"));
    all.push_back(OneOp(OP_mul, {"f16[N, 1, 3]", "f16[2, 1]"}, "mul(%x, %y)", "f16[N, 2, 3]"));
    all.push_back(OneOp(OP_sub, {"f32[N, 2, 3, 4]", "f32[2, 1, 1]"}, "sub(%x, %y)", "f32[N, 2, 3, 4]"));
    all.push_back(OneOp(OP_div, {"f32[2, 3]", "f32[N, 1, 1]"}, "div(%x, %y)", "f32[N, 2, 3]"));
    all.push_back(OneOp(OP_add, {"f32[N, 1, 1, 4]", "f32[N, 2, 3, 1]"}, "add(%x, %y)", "f32[N, 2, 3, 4]"));
    all.push_back(OneOp(OP_add, {"f32[N, 2]", "f32[3, N, 1]"}, "add(%x, %y)", "f32[3, N, 2]"));
    all.push_back(OneOp(OP_add, {"i64", "i64"}, "add(%x, %y)", "i64"));
    all.push_back(OneOp(OP_sub, {"i32[N, 2]", "i32[N, 2]"}, "sub(%x, %y)", "i32[N, 2]"));
    all.push_back(OneOp(OP_mul, {"f64", "f64"}, "mul(%x, %y)", "f64"));
    return all;
}

inline std::vector<LowerCase> ProductCases() {
    std::vector<LowerCase> all = {
        OneOp(OP_linear, {"f32[N, 2, 3]", "f32[4, 3]", "f32[4]"}, "linear(%x, %y, %z)", "f32[N, 2, 4]"),
        OneOp(OP_linear, {"f16[3]", "f16[4, 3]"}, "linear(%x, %y)", "f16[4]"),
        OneOp(OP_linear, {"f16[2, N, 1, 3]", "f16[3, 1]"}, "linear(%x, %y; transposed = true)", "f16[2, N, 1, 1]"),
        OneOp(OP_matmul, {"f32[N, 2, 3]", "f32[3, 4]"}, "matmul(%x, %y)", "f32[N, 2, 4]"),
        {OP_matmul, "input %x : f32[N, 2, 3]\ninput %y : f32[4, 3]\n%t = transpose(%y) : f32[3, 4]\n"
                    "%r = matmul(%x, %t) : f32[N, 2, 4]\nresult r = %r\n"},
        {OP_matmul,
         "input %x : f32[N, 3]\ninput %y : f32[N, 2]\n%t = transpose(%x) : f32[3, N]\n%h = cast(%t) : f16[3, N]\n"
         "%u = cast(%y) : f16[N, 2]\n%r = matmul(%h, %u) : f16[3, 2]\nresult r = %r\n"},
        OneOp(OP_matmul, {"f32[N, 2, 3]", "f32[4, 3]"}, "matmul(%x, %y; tb = true)", "f32[N, 2, 4]"),
        OneOp(OP_matmul, {"f32[N, 2, 3]", "f32[N, 3, 4]"}, "matmul(%x, %y)", "f32[N, 2, 4]"),
        OneOp(OP_matmul, {"f16[N, 3, 2]", "f16[N, 3, 4]"}, "matmul(%x, %y; ta = true)", "f16[N, 2, 4]"),
        OneOp(OP_matmul, {"bf16[N, 5, 2, 3]", "bf16[N, 5, 4, 3]"}, "matmul(%x, %y; tb = true)", "bf16[N, 5, 2, 4]"),
        OneOp(OP_matmul, {"f32[N, 5, 3, 2]", "f32[5, 4, 3]"}, "matmul(%x, %y; ta = true, tb = true)",
              "f32[N, 5, 2, 4]"),
        OneOp(OP_matmul, {"f32[2, 3]", "f32[N, 3, 4]"}, "matmul(%x, %y)", "f32[N, 2, 4]"),
        OneOp(OP_matmul, {"f32[N, 3, 2]", "f32[3, 4]"}, "matmul(%x, %y; ta = true)", "f32[N, 2, 4]"),
        OneOp(OP_matmul, {"f32[N, 1, 2, 3]", "f32[1, 5, 3, 1]"}, "matmul(%x, %y)", "f32[N, 5, 2, 1]"),
    };
    return all;
}

inline std::string Pairs(int stride, int padding, int dilation, int groups) {
    auto pair = [](const char *name, int v) {
        return std::string(name) + " = (" + std::to_string(v) + ", " + std::to_string(v) + ")";
    };
    return pair("stride", stride) + ", " + pair("padding", padding) + ", " + pair("dilation", dilation) +
           ", groups = " + std::to_string(groups);
}

inline std::vector<LowerCase> ImageCases() {
    std::vector<LowerCase> all;
    struct Conv {
        const char *x, *w, *y;
        int stride, padding, dilation, groups;
        const char *outputs;
    };
    const Conv convs[] = {
        {"[N, 3, 5, 6]", "[4, 3, 3, 3]", "[N, 4, 5, 6]", 1, 1, 1, 1, "4"},
        {"[N, 1, 5, 5]", "[2, 1, 1, 1]", "[N, 2, 5, 5]", 1, 0, 1, 1, "2"},
        {"[N, 2, 7, 6]", "[3, 2, 3, 2]", "[N, 3, 3, 3]", 2, 0, 1, 1, "3"},
        {"[N, 16, 7, 5]", "[32, 16, 3, 3]", "[N, 32, 4, 3]", 2, 1, 1, 1, "32"},
        {"[N, 3, 7, 5]", "[20, 3, 1, 1]", "[N, 20, 3, 2]", 3, 0, 1, 1, "20"},
        {"[N, 4, 7, 7]", "[6, 2, 3, 3]", "[N, 6, 5, 5]", 1, 1, 2, 2, "6"},
        {"[N, 3, 4, 4]", "[3, 1, 3, 3]", "[N, 3, 4, 4]", 1, 1, 1, 3, "3"},
        {"[2, 1, 1, 1]", "[1, 1, 1, 1]", "[2, 1, 1, 1]", 1, 0, 1, 1, "1"},
    };
    for (const Conv &c : convs)
        for (const std::string t : {"f32", "f16"}) {
            std::string attrs = Pairs(c.stride, c.padding, c.dilation, c.groups), bias = t + "[" + c.outputs + "]";
            all.push_back(OneOp(OP_conv2d, {t + c.x, t + c.w, bias}, "conv2d(%x, %y, %z; " + attrs + ")", t + c.y));
            all.push_back(OneOp(OP_conv2d, {t + c.x, t + c.w}, "conv2d(%x, %y; " + attrs + ")", t + c.y));
            all.push_back(OneOp(OP_conv2d_input_grad, {t + c.y, t + c.w, t + c.x},
                                "conv2d_input_grad(%x, %y, %z; " + attrs + ")", t + c.x));
            all.push_back(OneOp(OP_conv2d_weight_grad, {t + c.y, t + c.x, t + c.w},
                                "conv2d_weight_grad(%x, %y, %z; " + attrs + ")", t + c.w));
        }
    struct Transposed {
        const char *x, *w, *y, *attrs, *outputs;
    };
    const Transposed transposed[] = {
        {"[N, 3, 4, 5]", "[3, 4, 2, 2]", "[N, 4, 8, 10]", "stride = (2, 2)", "4"},
        {"[N, 2, 3, 4]", "[2, 5, 3, 3]", "[N, 5, 3, 4]", "padding = (1, 1)", "5"},
        {"[N, 5, 4, 5]", "[5, 4, 3, 3]", "[N, 4, 7, 5]", "stride = (2, 1), padding = (1, 1)", "4"},
        {"[N, 4, 3, 2]", "[4, 3, 3, 2]", "[N, 6, 8, 7]",
         "stride = (2, 3), padding = (1, 0), output_padding = (1, 2), dilation = (2, 1), groups = 2", "6"},
        {"[2, 1, 1, 1]", "[1, 1, 1, 1]", "[2, 1, 1, 1]", "groups = 1", "1"},
        {"[N, 2, 3, 2]", "[2, 3, 2, 2]", "[N, 3, 8, 13]",
         "stride = (1, 2), padding = (1, 0), output_padding = (3, 4), dilation = (4, 6)", "3"},
    };
    for (const Transposed &c : transposed)
        for (const std::string t : {"f32", "f16"}) {
            const std::string attrs = c.attrs;
            all.push_back(OneOp(OP_conv_transpose2d, {t + c.x, t + c.w, t + "[" + c.outputs + "]"},
                                "conv_transpose2d(%x, %y, %z; " + attrs + ")", t + c.y));
            all.push_back(
                OneOp(OP_conv_transpose2d, {t + c.x, t + c.w}, "conv_transpose2d(%x, %y; " + attrs + ")", t + c.y));
        }
    struct Pool {
        const char *x, *y, *attrs;
    };
    const Pool pools[] = {
        {"[N, 3, 4, 6]", "[N, 3, 2, 3]", "kernel = (2, 2), stride = (2, 2)"},
        {"[N, 2, 5, 5]", "[N, 2, 3, 3]", "kernel = (3, 3), stride = (2, 2), padding = (1, 1)"},
        {"[N, 1, 4, 3]", "[N, 1, 2, 1]", "kernel = (3, 3), stride = (1, 1)"},
        {"[N, 5, 1, 1]", "[N, 5, 1, 1]", "kernel = (1, 1), stride = (1, 1)"},
    };
    for (const Pool &p : pools)
        for (const std::string t : {"f32", "bf16"}) {
            std::string a = p.attrs, x = t + p.x, y = t + p.y;
            all.push_back({OP_max_pool2d, "input %x : " + x + "\ninput %dy : " + y + "\n%r, %w = max_pool2d(%x; " + a +
                                              ") : " + y + ", i32" + p.y + "\n%d = max_pool2d_grad(%dy, %w, %x; " + a +
                                              ") : " + x + "\nresult r = %r\nresult w = %w\nresult d = %d\n"});
            all.push_back({OP_max_pool2d_grad, all.back().body});
            all.push_back(OneOp(OP_avg_pool2d, {x}, "avg_pool2d(%x; " + a + ")", y));
            all.push_back(OneOp(OP_avg_pool2d_grad, {y, x}, "avg_pool2d_grad(%x, %y; " + a + ")", x));
        }
    const struct {
        const char *x, *y, *call;
    } resized[] = {{"[N, 3, 5, 6]", "[N, 3, 2, 4]", "adaptive_avg_pool2d; out = (2, 4)"},
                   {"[N, 3, 4, 6]", "[N, 3, 2, 3]", "adaptive_avg_pool2d; out = (2, 3)"},
                   {"[2, 1, 3, 2]", "[2, 1, 1, 1]", "adaptive_avg_pool2d; out = (1, 1)"},
                   {"[N, 2, 3, 4]", "[N, 2, 5, 4]", "adaptive_avg_pool2d; out = (5, 4)"},
                   {"[N, 3, 2, 4]", "[N, 3, 4, 12]", "upsample; scale = (2, 3)"},
                   {"[N, 3, 5, 4]", "[N, 3, 7, 9]", "upsample; size = (7, 9)"},
                   {"[N, 3, 5, 4]", "[N, 3, 3, 1]", "upsample; size = (3, 1)"},
                   {"[N, 3, 5, 4]", "[N, 3, 10, 3]", "upsample; size = (10, 3)"},
                   {"[N, 3, 5, 4]", "[N, 3, 3, 7]", "upsample; size = (3, 7), mode = bilinear"},
                   {"[N, 3, 5, 4]", "[N, 3, 1, 9]", "upsample; size = (1, 9), mode = bilinear, align_corners = true"},
                   {"[N, 3, 2, 4]", "[N, 3, 4, 8]", "upsample; scale = (2, 2), mode = bilinear"},
                   {"[2, 1, 3, 1]", "[2, 1, 9, 4]", "upsample; scale = (3, 4), mode = bilinear"},
                   {"[N, 3, 3, 2]", "[N, 3, 6, 4]", "upsample; scale = (2, 2), mode = bilinear, align_corners = true"}};
    for (const auto &z : resized)
        for (const std::string t : {"f32", "f16"}) {
            const std::string call = z.call, op = call.substr(0, call.find(';')), attrs = call.substr(call.find(';'));
            all.push_back(OneOp(ir_opcode(op.c_str()), {t + z.x}, op + "(%x" + attrs + ")", t + z.y));
            all.push_back(OneOp(ir_opcode((op + "_grad").c_str()), {t + z.y, t + z.x},
                                op + "_grad(%x, %y" + attrs + ")", t + z.x));
        }
    for (const char *x : {"f32[N, 3, 4, 5]", "f16[N, 1, 1, 1]", "f32[2, 3, 1, 2]"}) {
        std::string t = x, pooled = t.substr(0, t.find(',', t.find(',') + 1)) + "]";
        all.push_back(OneOp(OP_global_avg_pool, {t}, "global_avg_pool(%x)", pooled));
        all.push_back(OneOp(OP_global_avg_pool_grad, {pooled, t}, "global_avg_pool_grad(%x, %y)", t));
    }
    return all;
}

inline std::vector<LowerCase> NormCases() {
    std::vector<LowerCase> all;
    for (const std::string x : {"f32[N, 3, 4, 5]", "f16[N, 3, 2, 2]", "f32[N, 3]", "f32[N, 3, 5]", "f32[N, 3, 1, 1]",
                                "f32[4, 3, 2]", "f32[N, 3, 9, 8]", "f32[N, 3, 2, 3, 2]", "f32[N, 3, 32, 32]"}) {
        std::string w =
            "input %x : " + x + "\ninput %w0 : f32[3]\ninput %b0 : f32[3]\ninput %m0 : f32[3]\ninput %v : f32[3]\n";
        all.push_back({OP_batch_norm,
                       w + "%r, %m, %u, %s = batch_norm(%x, %w0, %b0, %m0, %v; eps = 0.01) : " + x +
                           ", f32[3], f32[3], f32[3]\nresult r = %r\nresult m = %m\nresult u = %u\nresult s = %s\n"});
        all.push_back(
            {OP_batch_norm, w + "%r, %m, %u, %s = batch_norm(%x, %w0, %b0, %m0, %v; eps = 0.01, frozen = true) : " + x +
                                ", f32[3], f32[3], f32[3]\nresult r = %r\nresult m = %m\n"});
        all.push_back(
            {OP_batch_norm_eval_grad, "input %y : " + x + "\n" + w +
                                          "%r, %s, %t = batch_norm_eval_grad(%y, %x, %w0, %m0, %v; eps = 0.01) : " + x +
                                          ", f32[3], f32[3]\nresult r = %r\nresult s = %s\nresult t = %t\n"});
        all.push_back({OP_batch_norm_eval,
                       w + "%r = batch_norm_eval(%x, %w0, %b0, %m0, %v; eps = 0.01) : " + x + "\nresult r = %r\n"});
        all.push_back({OP_batch_norm_grad, "input %y : " + x + "\n" + w +
                                               "%r, %s, %t = batch_norm_grad(%y, %x, %w0, %m0, %v) : " + x +
                                               ", f32[3], f32[3]\nresult r = %r\nresult s = %s\nresult t = %t\n"});
        // of two ranks, one with %x and one with %y: sums count what they like, so only the norm can be compared
        const std::string sums =
            "input %y : " + x + "\n" + w +
            "%p, %q = batch_norm_sums(%x) : f32[4], f32[3]\n"
            "%p.1, %q.1 = batch_norm_sums(%y) : f32[4], f32[3]\n%all = add(%p, %p.1) : f32[4]\n"
            "%e = batch_norm_squares(%x, %p, %all, %q) : f32[3]\n"
            "%e.1 = batch_norm_squares(%y, %p.1, %all, %q.1) : f32[3]\n%d = add(%e, %e.1) : f32[3]\n";
        const std::string norm = sums +
                                 "%r, %m, %u, %s = batch_norm(%x, %w0, %b0, %m0, %v, %all, %d; eps = 0.01) : " + x +
                                 ", f32[3], f32[3], f32[3]\n";
        const std::string results = "result r = %r\nresult m = %m\nresult u = %u\nresult s = %s\n";
        for (const Opcode code : {OP_batch_norm_sums, OP_batch_norm_squares}) all.push_back({code, norm + results});
        all.push_back({OP_batch_norm_grad_sums,
                       norm +
                           "%g = batch_norm_grad_sums(%y, %x, %m, %s) : f32[6]\n%g.1 = add(%g, %g) : f32[6]\n"
                           "%dx, %dw, %db = batch_norm_grad(%y, %x, %w0, %m, %s, %all, %g, %g.1) : " +
                           x + ", f32[3], f32[3]\nresult g = %g\nresult dx = %dx\nresult dw = %dw\nresult db = %db\n"});
    }
    for (const std::string x : {"f32[N, 6, 4, 5]", "f16[N, 6, 2, 2]", "bf16[N, 6, 3]", "f32[2, 6, 1, 3]",
                                "f32[N, 6, 9, 8]", "f32[4, 6, N]", "f32[N, 6, 2, 3, 2]"}) {
        std::string lead = x.substr(x.find('[') + 1, x.find(',') - x.find('[') - 1);
        std::string w = "input %x : " + x + "\ninput %w0 : f32[6]\ninput %b0 : f32[6]\n";
        for (const std::string groups : {"1", "2", "6"}) {
            std::string each = "f32[" + lead + ", 6]";
            std::string types = x + ", " + each + ", " + each + "\nresult r = %r\nresult m = %m\nresult s = %s\n";
            all.push_back(
                {OP_group_norm, w + "%r, %m, %s = group_norm(%x, %w0, %b0; groups = " + groups + ") : " + types});
            all.push_back({OP_group_norm_grad,
                           "input %y : " + x + "\n" + w + "input %m0 : " + each + "\ninput %v : " + each +
                               "\n%r, %s, %t = group_norm_grad(%y, %x, %w0, %m0, %v; groups = " + groups + ") : " + x +
                               ", f32[6], f32[6]\nresult r = %r\nresult s = %s\nresult t = %t\n"});
            if (groups == "6")
                all.push_back({OP_instance_norm, w + "%r, %m, %s = instance_norm(%x, %w0; eps = 0.1) : " + types});
        }
    }
    all.push_back({OP_group_norm,
                   "input %x : f32[N, 6]\ninput %w0 : f32[6]\n%r, %m, %s = group_norm(%x, %w0; groups = 2) "
                   ": f32[N, 6], f32[N, 6], f32[N, 6]\nresult r = %r\nresult m = %m\nresult s = %s\n"});
    for (const std::string rows : {"N, ", "N, 2, ", "N, 70, ", "", "2, 3, "}) {
        std::string x = "f32[" + rows + "4]", one = "f32[" + rows + "1]";
        std::string w = "input %x : " + x + "\ninput %w0 : f32[4]\ninput %b0 : f32[4]\n";
        std::string types = x + ", " + one + ", " + one + "\nresult r = %r\nresult m = %m\nresult s = %s\n";
        all.push_back({OP_layer_norm, w + "%r, %m, %s = layer_norm(%x, %w0, %b0) : " + types});
        all.push_back({OP_layer_norm, w + "%r, %m, %s = layer_norm(%x, %w0; eps = 0.1) : " + types});
        all.push_back({OP_layer_norm_grad, "input %y : " + x + "\n" + w + "input %m0 : " + one + "\ninput %v : " + one +
                                               "\n%r, %s, %t = layer_norm_grad(%y, %x, %w0, %m0, %v) : " + x +
                                               ", f32[4], f32[4]\nresult r = %r\nresult s = %s\nresult t = %t\n"});
        all.push_back({OP_rms_norm, w + "%r, %m = rms_norm(%x, %w0; eps = 0.1) : " + x + ", " + one +
                                        "\n%r2 = add(%r, %b0) : " + x + "\nresult r = %r2\nresult m = %m\n"});
        all.push_back({OP_rms_norm_grad, "input %y : " + x + "\ninput %x : " + x + "\ninput %w0 : f32[4]\ninput %v : " +
                                             one + "\n%r, %s = rms_norm_grad(%y, %x, %w0, %v) : " + x +
                                             ", f32[4]\nresult r = %r\nresult s = %s\n"});
    }
    return all;
}

inline std::vector<LowerCase> AttentionCases() {
    std::vector<LowerCase> all;
    struct {
        std::string lead, heads, groups, mask, attrs;
    } const kinds[] = {{"N, ", "2", "2", "", ""},
                       {"N, ", "4", "2", "", "; scale = 0.5, causal = true"},
                       {"N, ", "2", "1", "N, 1, 1, 5", "; causal = true"},
                       {"", "6", "3", "3, 5", ""},
                       {"N, 2, ", "3", "1", "1, 5", "; scale = 2.0"},
                       {"", "N", "N", "N, 3, 5", "; causal = true"},
                       {"N, ", "4", "2", "bool", "; causal = true"},
                       {"N, ", "2", "2", "", "; p = 0.25, key = \"k\""}};
    for (const auto &kind : kinds) {
        std::string q = "f32[" + kind.lead + kind.heads + ", 3, 4]", k = "f32[" + kind.lead + kind.groups + ", 5, 4]",
                    v = "f32[" + kind.lead + kind.groups + ", 5, 2]", y = "f32[" + kind.lead + kind.heads + ", 3, 2]",
                    sums = "f32[" + kind.lead + kind.heads + ", 3, 1]";
        std::string in = "input %q : " + q + "\ninput %k : " + k + "\ninput %v : " + v + "\n";
        std::string mask = kind.mask.empty() ? "" : ", %m";
        bool chooses = kind.mask == "bool";
        if (!mask.empty()) in += chooses ? "input %m : bool[N, 1, 1, 5]\n" : "input %m : f32[" + kind.mask + "]\n";
        all.push_back({OP_attention, in + "%r, %s = attention(%q, %k, %v" + mask + kind.attrs + ") : " + y + ", " +
                                         sums + "\nresult r = %r\nresult s = %s\n"});
        in += "input %g : " + y + "\ninput %y : " + y + "\ninput %l : " + sums + "\n";
        std::string call = "(%g, %q, %k, %v, %y, %l" + mask + kind.attrs + ") : ";
        all.push_back({OP_attention_grad, in + "%r, %s, %t = attention_grad" + call + q + ", " + k + ", " + v +
                                              "\nresult r = %r\nresult s = %s\nresult t = %t\n"});
        if (mask.empty() || chooses) continue;
        std::string scores = "f32[" + kind.lead + kind.heads + ", 3, 5]";
        all.push_back({OP_attention_mask_grad, in + "%r = attention_mask_grad" + call + scores + "\nresult r = %r\n"});
    }
    return all;
}

inline std::vector<LowerCase> MoveCases() {
    return {
        OneOp(OP_reshape, {"f32[N, 2, 3]"}, "reshape(%x)", "f32[N, 6]"),
        OneOp(OP_reshape, {"i32[N, 6]"}, "reshape(%x)", "i32[2 * N, 3]"),
        OneOp(OP_reshape, {"f16[N, 2, 3, 4]"}, "reshape(%x)", "f16[N, 4, 3, 2]"),
        OneOp(OP_detach, {"f16[N, 2, 3, 4]"}, "detach(%x)", "f16[N, 2, 3, 4]"),
        OneOp(OP_barrier, {"f16[N, 2, 3, 4]", "f32[7]"}, "barrier(%x, %y)", "f16[N, 2, 3, 4]"),
        OneOp(OP_flatten, {"f32[N, 2, 3, 4]"}, "flatten(%x)", "f32[N, 24]"),
        OneOp(OP_flatten, {"f16[N, 2, 3]"}, "flatten(%x; from = 0)", "f16[6 * N]"),
        OneOp(OP_transpose, {"f32[N, 2, 3]"}, "transpose(%x)", "f32[N, 3, 2]"),
        OneOp(OP_transpose, {"f16[N, 2, 3, 4]"}, "transpose(%x; a = 1, b = -1)", "f16[N, 4, 3, 2]"),
        OneOp(OP_permute, {"f32[N, 2, 3, 4]"}, "permute(%x; dims = (0, 3, 1, 2))", "f32[N, 4, 2, 3]"),
        OneOp(OP_permute, {"f32[N, 2, 1]"}, "permute(%x; dims = (0, 2, 1))", "f32[N, 1, 2]"),
        OneOp(OP_slice, {"f32[N, 5]"}, "slice(%x; dim = 1, from = 1, to = 4)", "f32[N, 3]"),
        OneOp(OP_slice, {"f16[N, 5, 2]"}, "slice(%x; dim = 1, from = 4, to = 5)", "f16[N, 1, 2]"),
        OneOp(OP_pad, {"f32[N, 5]"}, "pad(%x; dim = 1, before = 1, after = 2, value = 3.0)", "f32[N, 8]"),
        OneOp(OP_pad, {"f32[N, 5, 2]"}, "pad(%x; dim = 1, after = 1)", "f32[N, 6, 2]"),
        OneOp(OP_concat, {"f32[N, 2]", "f32[N, 3]", "f32[N, 1]"}, "concat(%x, %y, %z; dim = 1)", "f32[N, 6]"),
        OneOp(OP_concat, {"f16[N, 2, 3]", "f16[N, 1, 3]"}, "concat(%x, %y; dim = 1)", "f16[N, 3, 3]"),
        OneOp(OP_stack, {"f32[N, 2]", "f32[N, 2]"}, "stack(%x, %y; dim = 1)", "f32[N, 2, 2]"),
        OneOp(OP_stack, {"f32[N, 2]", "f32[N, 2]"}, "stack(%x, %y; dim = -1)", "f32[N, 2, 2]"),
        OneOp(OP_expand, {"f32[3]"}, "expand(%x)", "f32[N, 3]"),
        OneOp(OP_expand, {"f32[N, 1, 3]"}, "expand(%x)", "f32[N, 2, 3]"),
        OneOp(OP_full, {}, "full(; value = 0.1)", "f16[N, 3]"),
        OneOp(OP_full, {}, "full(; value = 7.0)", "i32[2, 3]"),
        OneOp(OP_full, {}, "full(; value = 0.5)", "f32"),
        OneOp(OP_arange, {}, "arange()", "i32[5]"),
        OneOp(OP_tensor, {}, "tensor(; values = [0.1, 7.0, 7.0, -0.0, inf])", "f32[5]"),
        OneOp(OP_tensor, {}, "tensor(; values = [0.1, 7.0, 7.0, 3.5, 0.3, -1.0])", "f16[2, 3]"),
        OneOp(OP_tensor, {}, "tensor(; values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])", "f32[2, 2, 1, 2]"),
        OneOp(OP_tensor, {}, "tensor(; values = [3.0, 3.0, 3.0])", "i32[3, 1]"),
        OneOp(OP_tensor, {}, "tensor(; values = [0.5])", "f32"),
        {OP_embedding,
         "input %ids : i32[N, 3]\ninput %x : f32[5, 4]\n%r = embedding(%ids, %x) : f32[N, 3, 4]\nresult r = %r\n"},
        {OP_embedding,
         "input %ids : i32[N]\ninput %x : f16[5, 1]\n%r = embedding(%ids, %x) : f16[N, 1]\nresult r = %r\n"},
        {OP_distinct_rows, "input %ids : i32[N, 1]\ninput %x : f32[5, 4]\n"
                           "%r, %q, %m = distinct_rows(%ids, %x) : i32[N], i32[N], i32[5]\nresult r = %r\n"
                           "result q = %q\n"},
        {OP_embedding_grad, "input %ids : i32[N, 3]\ninput %x : f32[5, 4]\ninput %y : f16[N, 3, 4]\n"
                            "%r = embedding_grad(%y, %ids, %x) : f16[5, 4]\nresult r = %r\n"},
    };
}

// Reductions over every set of dims of several shapes, with their gradients.
inline std::vector<LowerCase> ReductionCases() {
    std::vector<LowerCase> all;
    const std::vector<std::vector<std::string>> shapes = {
        {"N", "3"},      {"N", "2", "3"}, {"N", "2", "3", "4"}, {"2", "N", "3"},
        {"2", "3", "N"}, {"N", "1", "3"}, {"N", "3", "1"},      {"4"},
        {"N"},           {"3", "2"},      {"N", "1", "1", "2"}, {"N", "70", "2"},
        {"1", "1"},      {"3", "2", "4"}};
    for (const auto &shape : shapes)
        for (unsigned set = 0; set < (1u << shape.size()); set++) {
            std::string x, kept, gone, dims;
            for (size_t d = 0; d < shape.size(); d++) {
                bool folded = set == 0 || (set >> d & 1u);
                x += (d ? ", " : "") + shape[d];
                kept += (d ? ", " : "") + (folded ? "1" : shape[d]);
                if (!folded) gone += (gone.empty() ? "" : ", ") + shape[d];
                if (set >> d & 1u) dims += (dims.empty() ? "" : ", ") + std::to_string(d);
            }
            std::string full = "f32[" + x + "]", keep = "f32[" + kept + "]",
                        rest = gone.empty() ? "f32" : "f32[" + gone + "]";
            std::string attr = set ? "; dims = (" + dims + ")" : "", also = set ? attr + ", " : "; ";
            all.push_back(OneOp(OP_sum, {full}, "sum(%x" + attr + ")", rest));
            all.push_back(OneOp(OP_mean, {full}, "mean(%x" + also + "keep = true)", keep));
            all.push_back(OneOp(OP_max, {full}, "max(%x" + also + "keep = true)", keep));
            all.push_back(OneOp(OP_min, {full}, "min(%x" + attr + ")", rest));
            all.push_back(OneOp(OP_var, {full}, "var(%x" + also + "correction = 0)", rest));
            all.push_back(OneOp(OP_broadcast_to, {rest, full}, "broadcast_to(%x, %y" + also + "mean = true)", full));
            all.push_back(OneOp(OP_broadcast_to, {keep, full}, "broadcast_to(%x, %y" + attr + ")", full));
            all.push_back(OneOp(OP_var_grad, {rest, full}, "var_grad(%x, %y" + also + "correction = 0)", full));
            all.push_back(OneOp(OP_sum_to, {full, keep}, "sum_to(%x, %y)", keep));
            all.push_back({OP_extreme_grad, "input %x : " + full + "\ninput %d : " + rest + "\n%m = max(%x" + attr +
                                                ") : " + rest + "\n%r = extreme_grad(%d, %x, %m" + attr +
                                                ") : " + full + "\nresult r = %r\n"});
        }
    const struct {
        const char *x, *dims, *y;
        bool keep;
    } folds[] = {{"f32[N, 3]", "dims = (1)", "f32[N]", false},
                 {"f16[N, 2, 3, 4]", "dims = (2, 3), keep = true", "f16[N, 2, 1, 1]", true},
                 {"f32[N, 2, 3, 4]", "dims = (1)", "f32[N, 3, 4]", false},
                 {"f32[N, 40, 3]", "dims = (0, 1)", "f32[3]", false},
                 {"f32[5]", "keep = true", "f32[1]", true},
                 {"f32[N, 70]", "keep = false", "f32", false}};
    const struct {
        Opcode fold, gradient;
        const char *attributes;
        bool reads_y;
    } kinds[] = {{OP_logsumexp, OP_logsumexp_grad, "", true},
                 {OP_norm, OP_norm_grad, "", true},
                 {OP_norm, OP_norm_grad, ", p = 1.0", true},
                 {OP_norm, OP_norm_grad, ", p = 3.0", true},
                 {OP_norm, OP_norm_grad, ", p = 0.5", true},
                 {OP_norm, OP_norm_grad, ", p = 0.0", true},
                 {OP_norm, OP_norm_grad, ", p = inf", true},
                 {OP_prod, OP_prod_grad, "", false},
                 {OP_std, OP_std_grad, "", true}};
    for (const auto &f : folds)
        for (const auto &k : kinds) {
            const std::string dims = f.dims, only = dims.substr(0, dims.find("keep")), also = k.attributes;
            std::string left = only.substr(0, only.find_last_not_of(", ") + 1) + also;
            if (left.substr(0, 2) == ", ") left = left.substr(2);
            const std::string fold =
                std::string("%m = ") + ir_op_info[k.fold].name + "(%x; " + dims + also + ") : " + f.y;
            all.push_back({k.fold, std::string("input %x : ") + f.x + "\n" + fold + "\nresult r = %m\n"});
            all.push_back({k.gradient, std::string("input %x : ") + f.x + "\ninput %d : " + f.y + "\n" + fold +
                                           "\n%r = " + ir_op_info[k.gradient].name + "(%d, %x" +
                                           (k.reads_y ? ", %m" : "") + (left.empty() ? "" : "; " + left) +
                                           ") : " + f.x + "\nresult r = %r\n"});
        }
    all.push_back(OneOp(OP_var, {"f16[N, 4]"}, "var(%x; dims = (1), keep = true)", "f16[N, 1]"));
    all.push_back(OneOp(OP_std, {"f16[N, 4]"}, "std(%x; dims = (1), correction = 0)", "f16[N]"));
    all.push_back(OneOp(OP_var, {"f32[3, 1]"}, "var(%x; dims = (1))", "f32[3]"));
    all.push_back(OneOp(OP_sum_to, {"f32[N, 2, 3, 4]", "f32[2, 1, 1]"}, "sum_to(%x, %y)", "f32[2, 1, 1]"));
    all.push_back(OneOp(OP_sum_to, {"f32[N, 2, 3, 4]", "f32[4]"}, "sum_to(%x, %y)", "f32[4]"));
    all.push_back(OneOp(OP_sum_to, {"f32[N, 2, 3, 4]", "f32[3, 1]"}, "sum_to(%x, %y)", "f32[3, 1]"));
    return all;
}

inline std::vector<LowerCase> LineCases() {
    std::vector<LowerCase> all;
    struct Line {
        const char *type;
        int rank;
        const char *without[4];
    };
    const Line lines[] = {{"[N, 4]", 2, {"[4]", "[N]"}},
                          {"[N, 3, 4]", 3, {"[3, 4]", "[N, 4]", "[N, 3]"}},
                          {"[5]", 1, {""}},
                          {"[N, 2, 3, 4]", 4, {"[2, 3, 4]", "[N, 3, 4]", "[N, 2, 4]", "[N, 2, 3]"}},
                          {"[N, 1]", 2, {"[1]", "[N]"}}};
    all.push_back(OneOp(OP_cumsum, {"f32[N, 7]"}, "cumsum(%x; dim = 1)", "f32[N, 7]"));
    all.push_back(OneOp(OP_cumsum, {"f16[N, 5, 3]"}, "cumsum(%x; dim = -2, reverse = true)", "f16[N, 5, 3]"));
    all.push_back(OneOp(OP_cumsum, {"f32[40]"}, "cumsum(%x; dim = 0)", "f32[40]"));
    all.push_back(OneOp(OP_cumsum, {"f32[N, 1]"}, "cumsum(%x)", "f32[N, 1]"));
    const struct {
        const char *x, *y, *arguments, *dim;
    } chosen[] = {{"f32[N, 7]", "[N, 3]", "k = 3", ""},
                  {"f16[N, 5, 3]", "[N, 5, 3]", "k = 5, dim = -2", "; dim = 1"},
                  {"f32[4, N]", "[2, N]", "k = 2, dim = 0", "; dim = 0"},
                  {"f32[40]", "[1]", "k = 1", ""},
                  {"f32[N, 3, 1]", "[N, 3, 1]", "k = 1, dim = 2", ""},
                  {"f32[N, 2, 3, 4]", "[N, 2, 2, 4]", "k = 2, dim = 2", "; dim = 2"}};
    for (const auto &c : chosen) {
        const std::string dtype = std::string(c.x).substr(0, 3), x = c.x, y = dtype + c.y;
        const std::string body = "input %x : " + x + "\ninput %dy : " + y + "\n%v, %i = top_k(%x; " + c.arguments +
                                 ") : " + y + ", i32" + c.y + "\n";
        all.push_back({OP_top_k, body + "%t = tanh(%dy) : " + y + "\nresult v = %v\nresult i = %i\nresult t = %t\n"});
        all.push_back({OP_top_k_grad,
                       body + "%d = top_k_grad(%dy, %i, %x" + c.dim + ") : " + x + "\nresult v = %v\nresult d = %d\n"});
    }
    for (const Line &line : lines)
        for (int dim = 0; dim < line.rank; dim++) {
            std::string x = std::string("f32") + line.type, attr = "; dim = " + std::to_string(dim) + ")";
            all.push_back(OneOp(OP_softmax, {x}, "softmax(%x" + attr, x));
            all.push_back(OneOp(OP_log_softmax, {x}, "log_softmax(%x" + attr, x));
            all.push_back(OneOp(OP_softmax_grad, {x, x}, "softmax_grad(%x, %y" + attr, x));
            all.push_back(OneOp(OP_log_softmax_grad, {x, x}, "log_softmax_grad(%x, %y" + attr, x));
            all.push_back(OneOp(OP_argmax, {x}, "argmax(%x" + attr, std::string("i32") + line.without[dim]));
        }
    return all;
}

inline std::vector<LowerCase> LossCases() {
    std::vector<LowerCase> all;
    struct Rows {
        const char *x, *t;
    };
    const Rows rows[] = {
        {"[N, 5]", "[N]"}, {"[N, 2, 5]", "[N, 2]"}, {"[8, 5]", "[8]"}, {"[5]", ""}, {"[N, 2, 3, 5]", "[N, 2, 3]"}};
    for (const Rows &r : rows) {
        std::string x = std::string("f32") + r.x, t = std::string("i32") + r.t;
        for (const std::string a : {"", "; label_smoothing = 0.1, ignore = 2"}) {
            all.push_back(OneOp(OP_nll_loss, {x, t}, "nll_loss(%x, %y" + a + ")", "f32"));
            all.push_back(OneOp(OP_nll_loss_grad, {"f32", x, t}, "nll_loss_grad(%x, %y, %z" + a + ")", x));
        }
        for (const std::string a : {"", "; label_smoothing = 0.1, ignore = 2"}) {
            all.push_back(OneOp(OP_nll_loss, {x, t, "f32[5]"}, "nll_loss(%x, %y, %z" + a + ")", "f32"));
            all.push_back(
                OneOp(OP_nll_loss_grad, {"f32", x, t, "f32[5]"}, "nll_loss_grad(%x, %y, %z, %u" + a + ")", x));
        }
        all.push_back(OneOp(OP_accuracy, {x, t}, "accuracy(%x, %y)", "f32"));
        for (const char *k : {"1", "2", "5", "9"})
            all.push_back(
                OneOp(OP_top_k_accuracy, {x, t}, std::string("top_k_accuracy(%x, %y; k = ") + k + ")", "f32"));
    }
    const struct {
        Opcode loss, gradient;
        const char *attributes;
    } pairs[] = {{OP_l1_loss, OP_l1_loss_grad, ""},
                 {OP_smooth_l1_loss, OP_smooth_l1_loss_grad, "; beta = 0.5"},
                 {OP_smooth_l1_loss, OP_smooth_l1_loss_grad, "; beta = 0.0"},
                 {OP_huber_loss, OP_huber_loss_grad, "; delta = 0.5"},
                 {OP_kl_div, OP_kl_div_grad, ""},
                 {OP_kl_div, OP_kl_div_grad, "; reduction = mean"}};
    for (const std::string x : {"f32[N, 3]", "f16[N, 2, 3, 4]", "f32[4]"})
        for (const auto &p : pairs) {
            const std::string pos = p.loss == OP_kl_div ? "%pos" : "%y", also = p.attributes;
            const std::string given = "input %x : " + x + "\ninput " + pos + " : " + x + "\n";
            all.push_back({p.loss, given + "%r = " + ir_op_info[p.loss].name + "(%x, " + pos + also +
                                       ") : " + x.substr(0, 3) + "\nresult r = %r\n"});
            all.push_back({p.gradient, "input %g : f32\n" + given + "%r, %s = " + ir_op_info[p.gradient].name +
                                           "(%g, %x, " + pos + also + ") : " + x + ", " + x +
                                           "\nresult r = %r\nresult s = %s\n"});
        }
    for (const std::string x : {"f32[N, 3]", "f32[N]", "f16[N, 2, 3, 4]", "f32[4]", "f32"}) {
        for (const std::string op : {"mse_loss", "bce_with_logits"}) {
            bool mse = op == "mse_loss";
            all.push_back(OneOp(mse ? OP_mse_loss : OP_bce_with_logits, {x, x}, op + "(%x, %y)", x.substr(0, 3)));
            all.push_back({mse ? OP_mse_loss_grad : OP_bce_with_logits_grad,
                           "input %g : f32\ninput %x : " + x + "\ninput %y : " + x + "\n%r, %s = " + op +
                               "_grad(%g, %x, %y) : " + x + ", " + x + "\nresult r = %r\nresult s = %s\n"});
        }
    }
    return all;
}

#endif
