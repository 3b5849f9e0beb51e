// rules_test.cc: the table from core op to C has no gaps, and each elementwise expression, on vectors and on scalars,
// computes what the interpreter does: with zeros of both signs, subnormals, infinities and NaN among the operands.

#include <map>
#include <sstream>

#include "codegen/emit.h"
#include "tests/codegen/model_runner.h"

namespace {

// Or calls the function of its name, which takes one float.
TEST(Rules, EveryCoreOpHasOne) {
    for (int code = OP_NONE + 1; code < OP_COUNT; code++) {
        const OpInfo &info = ir_op_info[code];
        if (code == OP_barrier) continue; // the pass fuse takes it out
        // cpu_attention.c writes their kernels as a whole; the third is CUDA's
        if (code == OP_attend || code == OP_attend_grad || code == OP_attend_drop) continue;
        if (info.flags & COLLECTIVE) continue; // no device has code for what ranks exchange
        const EmitEntry &e = emit_rules[code];
        const bool has_row = e.vector || e.scalar || e.build || e.by_walk || e.by_memory;
        const bool is_function = info.core && (info.core[0] == 'f' || info.core[0] == 'd') && info.core[1] == '>';
        EXPECT_EQ(emit_row(static_cast<Opcode>(code)) == &emit_function, !has_row) << info.name;
        EXPECT_TRUE(!info.core || has_row || is_function) << info.name;
        EXPECT_TRUE(info.core || !has_row) << info.name;
    }
}

struct Expression {
    std::string op, operands, result; // operand types: f, i, b
};

std::vector<Expression> MakeExpressions() {
    const std::map<char, std::string> types = {{'f', "f32"}, {'i', "i32"}, {'b', "bool"}};
    std::vector<Expression> all = {{"cast", "f", "f16"},           {"cast", "f", "bf16"},
                                   {"cast", "f", "tf32"},          {"cast", "i", "f32"},
                                   {"cast", "b", "f32"},           {"cast", "b", "i32"},
                                   {"cast", "i", "bool"},          {"dithered_cast", "ff", "bf16"},
                                   {"dithered_cast", "ff", "f16"}, {"dithered_cast", "ff", "f8m"},
                                   {"dithered_cast", "ff", "f8v"}};
    for (int code = OP_NONE + 1; code < OP_COUNT; code++) {
        const OpInfo &info = ir_op_info[code];
        if (!info.core || !(info.flags & ELEMENTWISE) || ir_attr_count(static_cast<Opcode>(code))) continue;
        std::stringstream signatures(info.core);
        for (std::string one; std::getline(signatures, one, '|');) {
            const size_t arrow = one.find('>');
            if (one.find_first_not_of("fib>") == std::string::npos)
                all.push_back({info.name, one.substr(0, arrow), types.at(one[arrow + 1])});
        }
    }
    return all;
}

// Every elementwise core op without attributes, with every combination of types that kernels have vectors for.
const std::vector<Expression> expressions = MakeExpressions();

class ExpressionTest : public CodegenTest {
  protected:
    // All expressions over [N, 37] in one kernel each, and over scalars in another.
    static std::string ModelOf(const std::string &shape, const char *kind) {
        std::string t = "module \"rules\" stage plan {\n}\nfunc infer {\n", kernels, buffers, results;
        const char *const inputs[] = {"f0", "f1", "f2", "i0", "i1", "i2", "b0", "b1", "b2"};
        int buffer = 0;
        for (const char *name : inputs) {
            const std::string type = name[0] == 'f' ? "f32" : name[0] == 'i' ? "i32" : "bool";
            t += "  input %" + std::string(name) + " : " + type + shape + "\n";
            buffers += "  buffer b" + std::to_string(++buffer) + " input %" + name + " " + type + " rows\n";
        }
        int k = 0;
        for (const Expression &e : expressions) {
            const std::string y = "y" + std::to_string(k), out = "b" + std::to_string(++buffer), result = e.result;
            std::string reads, operands;
            for (size_t i = 0; i < e.operands.size(); i++) {
                const int input = (e.operands[i] == 'f' ? 0 : e.operands[i] == 'i' ? 3 : 6) + static_cast<int>(i);
                reads += (i ? ", b" : "b") + std::to_string(input + 1);
                operands += std::string(i ? ", %" : "%") + inputs[input];
            }
            kernels += "  kernel k" + std::to_string(100 + k) + " " + kind + " \"" + e.op + "\" reads " + reads +
                       " writes " + out + " {\n    %" + y + " = " + e.op + "(" + operands + ") : " + result + shape +
                       "\n  }\n";
            buffers += "  buffer " + out + " output %" + y + " " +
                       (result == "bool" || result == "i32" ? result : "f32") + " rows\n";
            results += "  result " + y + " = %" + y + "\n";
            k++;
        }
        return t + kernels + buffers + results + "}\n";
    }

    void Check(const Module *m, const LoadedModel &model, int64_t n, const Values &given) {
        Values copy = given;
        const Values want = Interpret(m->funcs.data[0], n, &copy);
        for (int isa = 0; isa < AMP_ISA_COUNT; isa++) {
            if (!HasIsa(isa)) continue;
            ProgramRun run(model, "infer", isa, n);
            run.Set(given);
            run.Run();
            for (size_t k = 0; k < expressions.size(); k++) {
                const std::string name = "y" + std::to_string(k);
                const std::vector<double> got = run.Get(name), &expected = want.at(name);
                for (size_t i = 0; i < got.size(); i++) {
                    const bool same = std::isnan(expected[i])
                                          ? std::isnan(got[i])
                                          : got[i] == expected[i] || std::fabs(got[i] - expected[i]) <=
                                                                         4e-7 * std::fabs(expected[i]) + 1e-44;
                    ASSERT_TRUE(same) << expressions[k].op << "(" << expressions[k].operands
                                      << ") : " << expressions[k].result << " [" << i << "]: " << got[i] << " for "
                                      << expected[i] << " of " << given.at("f0")[i] << ", " << given.at("f1")[i]
                                      << ", isa " << isa;
                }
            }
        }
    }
};

const float specials[] = {0.0f,     -0.0f, 1.0f,   -1.0f,    0.5f,      -2.5f, 3.0f,  1e-40f,  -1e-45f, 65519.0f,
                          70000.0f, 3e38f, -3e38f, INFINITY, -INFINITY, NAN,   88.9f, -104.5f, 1e-8f};
enum { SPECIALS = sizeof specials / sizeof specials[0] };

Values Operands(size_t count, size_t first) {
    Values v;
    for (size_t i = first; i < first + count; i++) {
        v["f0"].push_back(static_cast<double>(specials[i % SPECIALS]));
        v["f1"].push_back(static_cast<double>(specials[i / SPECIALS % SPECIALS]));
        v["f2"].push_back(static_cast<double>(i) * 0.25);
        for (const char *name : {"i0", "i1", "i2"})
            v[name].push_back(static_cast<double>(static_cast<int>(i * 7 + static_cast<size_t>(name[1]) * 3) % 11 - 5));
        for (const char *name : {"b0", "b1", "b2"}) v[name].push_back(static_cast<double>(i >> (name[1] - '0') & 1));
    }
    return v;
}

TEST_F(ExpressionTest, OnVectors) {
    const Module *m = Read(ModelOf("[N, 37]", "tile"));
    ASSERT_NE(m, nullptr);
    auto model = Compile(m);
    ASSERT_NE(model, nullptr);
    Check(m, *model, 10, Operands(370, 0));
}

TEST_F(ExpressionTest, OnScalars) {
    const Module *m = Read(ModelOf("", "scalar"));
    ASSERT_NE(m, nullptr);
    auto model = Compile(m);
    ASSERT_NE(model, nullptr);
    for (size_t i = 0; i < SPECIALS * 3; i++) Check(m, *model, 1, Operands(1, i * 5));
}

TEST_F(ExpressionTest, WhatIsNotBuiltIsNamed) {
    const char text[] = R"(module "wide" stage plan {
}
state %c : i64 counter
func infer {
  state %c : i64
  kernel k00 scalar "log of a double" reads b1 writes b2 {
    %1 = cast(%c) : f64
    %2 = cast(%1) : f32
    %y = reduce_max(%2; dims = (0)) : f32
  }
  buffer b1 state of c %c i64 rows live 0 to 0
  buffer b2 output %y f32 rows live 0 to 0
  result y = %y
}
)";
    Source source = {"wide.ir", text, strlen(text)};
    Diags diags;
    diags_init(&diags, &arena_);
    Module *m = ir_read(&arena_, &diags, &source);
    ASSERT_NE(m, nullptr);
    Text c;
    text_init(&c, &arena_);
    amp_error err = {};
    EXPECT_EQ(codegen_c(m, nullptr, nullptr, &c, &err), AMP_UNSUPPORTED);
    EXPECT_STREQ(
        err.message,
        "kernel k00 of infer (log of a double): reduce_max: %y is f32, which does not fit what the kernel walks");
}

TEST_F(ExpressionTest, OnlyPlannedModulesAreEmitted) {
    Module *m = ir_module_new(&arena_, "early");
    m->stage = STAGE_FUSE;
    Text c;
    text_init(&c, &arena_);
    amp_error err = {};
    EXPECT_EQ(codegen_c(m, nullptr, nullptr, &c, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "module early is at stage fuse: C can be emitted after the pass plan");
}

} // namespace
