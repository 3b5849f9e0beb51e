// What kernels leave in memory: the order of neighbours, and matrices that panels would mostly pad.
#include "targets/target.h"
#include "tests/passes/core_pass_test.h"

namespace {

class SequenceTest : public CorePassTest {
  protected:
    Func *Plan(const std::string &body, const std::string &states = "") {
        Module *m = ReadFunc("lower", body, states);
        ir_compact(m);
        EXPECT_TRUE(Run(m, STAGE_TARGET, STAGE_PLAN)) << Diagnostics();
        return m->funcs.data[0];
    }

    // "dx dw": the first value of each kernel.
    static std::string Order(const Func *f) {
        std::string text;
        for (int i = 0; i < f->kernels.len; i++) {
            const Kernel *k = f->kernels.data[i];
            EXPECT_EQ("k" + std::string(i < 10 ? "0" : "") + std::to_string(i), k->name);
            text += std::string(i ? " " : "") + ir_value(f, ir_op_at(f, k->first)->out[0])->name;
        }
        return text;
    }

    static const Buffer *BufferOf(const Func *f, const std::string &name) {
        for (int i = 0; i < f->buffers.len; i++)
            if (ir_value(f, f->buffers.data[i]->value)->name == name) return f->buffers.data[i];
        return nullptr;
    }
};

const char kChain[] = "  %x = contract(%a, %u) : f32[N, 64]\n"
                      "  %dy = contract(%x, %w) : f32[N, 64]\n"
                      "  %dx = contract(%dy, %w; tb = true) : f32[N, 64]\n";
const char kInputs[] = "  input %a : f32[N, 64]\n  input %u : f32[64, 64]\n  input %w : f32[64, 64]\n";

// Nothing reads x after dw; dx, which is as large, then takes its place.
TEST_F(SequenceTest, WhatFreesMoreRunsFirst) {
    const Func *f = Plan(std::string(kInputs) + kChain +
                         "  %dw = contract(%dy, %x; ta = true) : f32[64, 64]\n"
                         "  %da = contract(%dx, %u; tb = true) : f32[N, 64]\n"
                         "  result dw = %dw\n  result da = %da\n");
    const std::string order = Order(f);
    EXPECT_LT(order.find("dw"), order.find("dx")) << order;
    EXPECT_LT(order.find("dy"), order.find("dw")) << order;
    EXPECT_EQ(BufferOf(f, "x")->last + 1, BufferOf(f, "dx")->first);
}

// dw comes first no longer where a later kernel reads x: it would leave as much in memory as it found.
TEST_F(SequenceTest, WhatFreesNothingStays) {
    const Func *f = Plan(std::string(kInputs) + kChain +
                         "  %dw = contract(%dy, %x; ta = true) : f32[64, 64]\n"
                         "  %da = contract(%dx, %u; tb = true) : f32[N, 64]\n"
                         "  %b = contract(%x, %u; tb = true) : f32[N, 64]\n"
                         "  result dw = %dw\n  result da = %da\n  result b = %b\n");
    const std::string order = Order(f);
    EXPECT_LT(order.find("dx"), order.find("dw")) << order;
}

// The sum of an input waits for its reader, and does not live from the first kernel on.
TEST_F(SequenceTest, WhatReadsNoTemporaryRunsBeforeItsReader) {
    const Func *f = Plan(std::string(kInputs) + "  %early = reduce_sum(%a; dims = (0)) : f32[64]\n" + kChain +
                         "  %y = mul(%dx, %early) : f32[N, 64]\n"
                         "  %dw = contract(%dy, %y; ta = true) : f32[64, 64]\n"
                         "  result dw = %dw\n");
    const std::string order = Order(f);
    EXPECT_LT(order.find("dy"), order.find("early")) << order;
    ASSERT_NE(nullptr, BufferOf(f, "early"));
    EXPECT_EQ(BufferOf(f, "early")->first + 1, BufferOf(f, "early")->last);
}

// But not past one that asks for its shape alone, and so for no buffer.
TEST_F(SequenceTest, WhatWaitsIsMadeBeforeItsShapeIsAskedFor) {
    const Func *f = Plan(std::string(kInputs) + "  %early = reduce_sum(%a; dims = (1), keep = true) : f32[N, 1]\n"
                                                "  %count = extent(%early; dims = (0)) : f32\n"
                                                "  %x = contract(%a, %u) : f32[N, 64]\n"
                                                "  %each = div(%x, %count) : f32[N, 64]\n"
                                                "  %y = mul(%each, %early) : f32[N, 64]\n"
                                                "  %dw = contract(%y, %x; ta = true) : f32[64, 64]\n"
                                                "  result dw = %dw\n");
    const std::string order = Order(f);
    EXPECT_LT(order.find("early"), order.find("count")) << order;
}

// Nor past the kernel that writes a state which it reads.
TEST_F(SequenceTest, WhatWaitsReadsAStateBeforeItsAssign) {
    const Func *f = Plan("  input %a : f32[N, 64]\n  input %u : f32[64, 64]\n  state %w : f32[64, 64]\n"
                         "  %early = reduce_sum(%w; dims = (0)) : f32[64]\n"
                         "  %dw = contract(%a, %a; ta = true) : f32[64, 64]\n"
                         "  %new = sub(%w, %dw) : f32[64, 64]\n  assign(%w, %new)\n"
                         "  %dx = contract(%a, %u) : f32[N, 64]\n"
                         "  %y = mul(%dx, %early) : f32[N, 64]\n  result y = %y\n",
                         "state %w : f32[64, 64] param\n");
    const std::string order = Order(f);
    EXPECT_LT(order.find("early"), order.find("dw")) << order;
}

// A kernel that reads a state runs before the one that writes it, whatever is in memory.
TEST_F(SequenceTest, AReaderOfAStateStaysBeforeItsAssign) {
    const Func *f = Plan("  input %a : f32[N, 64]\n  input %u : f32[64, 64]\n  state %w : f32[64, 64]\n"
                         "  %x = contract(%a, %u) : f32[N, 64]\n"
                         "  %dy = contract(%x, %w) : f32[N, 64]\n"
                         "  %dx = contract(%dy, %w; tb = true) : f32[N, 64]\n"
                         "  %dw = contract(%dy, %x; ta = true) : f32[64, 64]\n"
                         "  %new = sub(%w, %dw) : f32[64, 64]\n  assign(%w, %new)\n"
                         "  %da = contract(%dx, %u; tb = true) : f32[N, 64]\n  result da = %da\n",
                         "state %w : f32[64, 64] param\n");
    const std::string order = Order(f);
    EXPECT_LT(order.find("dx"), order.find("dw")) << order;
}

// 2 rows of 128 are 1 KiB, in panels 16; 64 rows are whole panels.
TEST_F(SequenceTest, AMatrixOfFewRowsIsStoredInRows) {
    const Func *f = Plan("  input %a : f32[N, 2]\n  input %c : f32[N, 64]\n  input %b : f32[N, 128]\n"
                         "  input %s : f32[2, 128]\n  input %t : f32[64, 128]\n  %k = const(; value = 2.0) : f32\n"
                         "  %few = contract(%a, %b; ta = true) : f32[2, 128]\n"
                         "  %many = contract(%c, %b; ta = true) : f32[64, 128]\n"
                         "  %p = mul(%few, %s) : f32[2, 128]\n  %q = reduce_sum(%p; dims = (0, 1)) : f32\n"
                         "  %v = mul(%many, %t) : f32[64, 128]\n  %w = reduce_sum(%v; dims = (0, 1)) : f32\n"
                         "  %g = mul(%few, %q) : f32[2, 128]\n  %h = mul(%many, %w) : f32[64, 128]\n"
                         "  result g = %g\n  result h = %h\n");
    ASSERT_NE(nullptr, BufferOf(f, "few"));
    ASSERT_NE(nullptr, BufferOf(f, "many"));
    EXPECT_EQ(LAYOUT_ROWS, BufferOf(f, "few")->layout);
    EXPECT_EQ(LAYOUT_PANELS, BufferOf(f, "many")->layout);
}

} // namespace
