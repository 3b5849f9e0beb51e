// attention_joined_test.cc: gradients of attention that its kernel stores beside each other, as columns of one matrix.
#include "tests/codegen/cuda/cuda_run.h"

namespace {

struct Join {
    std::string type;    // of the factors
    std::string order;   // of the gradients: a of queries, b of keys, c of values
    bool before, clears; // rounded before they are joined; a zero is added
    bool after;          // rounded afterwards
    int width = 8, v_width = 8, heads = 2;
};

class AttentionJoinedTest : public CudaRunTest {
  protected:
    static constexpr int LENGTH = 37;

    static std::string Rows(int64_t cols) { return "[N, " + Int(LENGTH) + ", " + Int(cols) + "]"; }
    static std::string Int(int64_t v) { return std::to_string(v); }

    // Gradients so small that some of them are no zero before they are rounded.
    static std::string Attention(const Join &j) {
        const std::string heads = "[N, " + Int(j.heads) + ", " + Int(LENGTH) + ", ",
                          of_v = heads + Int(j.v_width) + "]";
        const std::string q = j.type + heads + Int(j.width) + "]", v = j.type + of_v;
        const std::string y = Rows(j.heads * j.v_width), x = Rows(j.heads * j.width);
        return "  input %q : " + q + "\n  input %k : " + q + "\n  input %v : " + v + "\n  input %d : f32" + of_v +
               "\n  %e = const(; value = 0.0000001) : f32\n  %f = mul(%d, %e) : f32" + of_v +
               "\n  %g = cast(%f) : " + v + "\n  %y, %l = attend(%q, %k, %v; scale = 0.3, causal = true) : f32" + y +
               ", f32" + heads + "1]" + "\n  %r = cast(%y) : " + j.type + y +
               "\n  %a, %b, %c = attend_grad(%g, %q, %k, %v, %r, %l; scale = 0.3, causal = true) : f32" + x + ", f32" +
               x + ", f32" + y + "\n";
    }

    static std::string Joined(const Join &j) {
        std::string ops, all, is = "%o", type = j.before ? j.type : "f32";
        int64_t cols = 0;
        for (const char part : j.order) {
            const std::string name = std::string("%") + part;
            const int64_t own = j.heads * (part == 'c' ? j.v_width : j.width);
            if (j.before) ops += "  " + name + "r = cast(" + name + ") : " + type + Rows(own) + "\n";
            all += (all.empty() ? "" : ", ") + name + (j.before ? "r" : "");
            cols += own;
        }
        ops += "  %o = concat(" + all + "; dim = 2) : " + type + Rows(cols) + "\n";
        auto widen = [&](const std::string &to) {
            if (type != "f32") ops += "  " + to + " = cast(" + is + ") : f32" + Rows(cols) + "\n", is = to;
            type = "f32";
        };
        if (j.clears) {
            widen("%w");
            ops += "  %zero = const() : f32\n  %s = add(" + is + ", %zero) : f32" + Rows(cols) + "\n";
            is = "%s";
        }
        if (j.after) {
            ops += "  %t = cast(" + is + ") : " + j.type + Rows(cols) + "\n";
            is = "%t";
            type = j.type;
        }
        widen("%x");
        return ops + "  %much = const(; value = 1000000.0) : f32\n  %u = mul(" + is + ", %much) : f32" + Rows(cols) +
               "\n  result u = %u\n";
    }

    static std::string Text(const std::string &body) {
        return "module \"core\" stage lower {\n}\nfunc infer {\n" + body + "}\n";
    }

    // Of the kernel that puts the gradients beside each other.
    static KernelKind Joins(const Built &b) {
        const Func *f = b.m->funcs.data[0];
        for (int i = 0; i < f->kernels.len; i++)
            for (int k = 0; k < f->kernels.data[i]->count; k++)
                if (ir_op_at(f, f->kernels.data[i]->first + k)->code == OP_concat) return f->kernels.data[i]->kind;
        return KERNEL_SCALAR;
    }

    Values Run(const Built &b) {
        const Func *f = b.m->funcs.data[0];
        return RunOnCuda(b.cuda, *b.ptx, 2, Draw(b.m, f, 2));
    }
};

// One kernel makes them, with the bits of those that put them there one after the other: signs of zeros, too.
TEST_F(AttentionJoinedTest, TheSameBitsInOneKernel) {
    for (const Join &j : SomeOf<Join>({{"f16", "abc", true, true, true},
                                       {"f16", "cab", true, false, false, 16, 24},
                                       {"f16", "ba", true, true, false},
                                       {"f16", "abc", false, true, true},
                                       {"bf16", "abc", true, true, true},
                                       {"tf32", "abc", false, true, false},
                                       {"tf32", "acb", true, true, true}})) {
        SCOPED_TRACE(j.type + " " + j.order);
        const std::string text = Text(Attention(j) + Joined(j));
        const Built fused = Build(text), apart = Build(text, true);
        ASSERT_TRUE(fused.ptx && apart.ptx);
        EXPECT_EQ(Joins(fused), KERNEL_ATTENTION) << Print(fused.m);
        ExpectSame(Run(fused), Run(apart), "");
        if (HasFailure()) return;
    }
}

TEST_F(AttentionJoinedTest, WhatOthersReadIsStoredByItself) {
    const Join j = {"f16", "abc", true, true, true};
    for (const std::string &more :
         {"  %z = exp(%a) : f32" + Rows(16) + "\n  result z = %z\n",
          "  %h = cast(%br) : f32" + Rows(16) + "\n  %z = exp(%h) : f32" + Rows(16) + "\n  result z = %z\n"}) {
        const std::string text = Text(Attention(j) + Joined(j) + more);
        const Built fused = Build(text), apart = Build(text, true);
        ASSERT_TRUE(fused.ptx && apart.ptx);
        EXPECT_EQ(Joins(fused), KERNEL_TILE);
        ExpectSame(Run(fused), Run(apart), "");
    }
}

// A user reads f32 of what is rounded: another kernel makes it.
TEST_F(AttentionJoinedTest, AResultOfTheFunction) {
    const Join j = {"f16", "abc", true, true, true};
    const std::string text = Text(Attention(j) + Joined(j) + "  result t = %t\n");
    const Built fused = Build(text), apart = Build(text, true);
    ASSERT_TRUE(fused.ptx && apart.ptx);
    ExpectSame(Run(fused), Run(apart), "");
}

// Two neighbouring columns are stored at once: rows of odd length would not be aligned.
TEST_F(AttentionJoinedTest, OddRowsAreNotJoined) {
    const Join j = {"f16", "abc", true, true, true, 7, 8, 1};
    const std::string text = Text(Attention(j) + Joined(j));
    const Built fused = Build(text), apart = Build(text, true);
    ASSERT_TRUE(fused.ptx && apart.ptx);
    EXPECT_EQ(Joins(fused), KERNEL_TILE);
    ExpectSame(Run(fused), Run(apart), "");
}

} // namespace
