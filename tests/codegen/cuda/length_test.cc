// length_test.cc: values whose last dimension is N or T: rows, columns and products of a length that kernels are told.
#include <functional>

#include "tests/codegen/cuda/cuda_run.h"

namespace {

const char softmax[] = R"(  input %x : f16[N, COLS]
  input %g : f32[1, COLS]
  input %i : i32[N, 1]
  %f = cast(%x) : f32[N, COLS]
  %m = reduce_max(%f; dims = (1), keep = true) : f32[N, 1]
  %d = sub(%f, %m) : f32[N, COLS]
  %e = exp(%d) : f32[N, COLS]
  %s = reduce_sum(%e; dims = (1), keep = true) : f32[N, 1]
  %y = div(%e, %s) : f32[N, COLS]
  %z = mul(%y, %g) : f32[N, COLS]
  %h = cast(%z) : f16[N, COLS]
  %io = iota(%y) : i32[N, COLS]
  %q = eq(%io, %i) : bool[N, COLS]
  %zero = const(; value = 0.0) : f32
  %p = select(%q, %y, %zero) : f32[N, COLS]
  %t = reduce_sum(%p; dims = (1)) : f32[N]
  %mean = reduce_mean(%f; dims = (1)) : f32[N]
  %fin = is_finite(%y) : bool[N, COLS]
  %bad = not(%fin) : bool[N, COLS]
  %any = reduce_or(%bad) : bool
  result h = %h
  result t = %t
  result mean = %mean
  result any = %any
)";

const char columns[] = R"(  input %x : f16[N, COLS]
  input %c : f32[1, COLS]
  input %r : f32[N, 1]
  %f = cast(%x) : f32[N, COLS]
  %g = add(%f, %c) : f32[N, COLS]
  %k = mul(%g, %r) : f32[N, COLS]
  %s = reduce_sum(%k; dims = (0), keep = true) : f32[1, COLS]
  %h = cast(%s) : f16[1, COLS]
  %m = reduce_max(%f; dims = (0), keep = true) : f32[1, COLS]
  %w = add(%m, %c) : f32[1, COLS]
  result h = %h
  result w = %w
)";

const char joined[] = R"(  input %a : f16[N, COLS, 24]
  input %b : f16[24, 24]
  %p = contract(%a, %b; tb = true) : f32[N, COLS, 24]
  %h = cast(%p) : f16[N, COLS, 24]
  %q = contract(%h, %b; tb = true) : f32[N, COLS, 24]
  %s = reduce_sum(%q; dims = (0, 1), keep = true) : f32[1, 1, 24]
  result q = %q
  result s = %s
)";

const char labels[] = R"(  input %a : f32[N * COLS, 1]
  input %i : i32[N, COLS]
  %m = reduce_max(%a; dims = (1), keep = true) : f32[N * COLS, 1]
  %f = reshape(%m) : f32[N * COLS]
  %j = reshape(%i) : i32[N * COLS]
  %k = cast(%j) : f32[N * COLS]
  %y = add(%f, %k) : f32[N * COLS]
  result y = %y
)";

const char samples[] = R"(  input %x : f32[N, COLS, 24]
  %m = reduce_mean(%x; dims = (1)) : f32[N, 24]
  %s = reduce_sum(%m; dims = (0)) : f32[24]
  result s = %s
)";

const char products[] = R"(  input %a : f16[N, 24]
  input %b : f16[COLS, 24]
  input %c : f32[1, COLS]
  %p = contract(%a, %b; tb = true) : f32[N, COLS]
  %q = add(%p, %c) : f32[N, COLS]
  %h = cast(%q) : f16[N, COLS]
  %y = contract(%h, %b) : f32[N, 24]
  %z = contract(%h, %a; ta = true) : f32[COLS, 24]
  result h = %h
  result y = %y
  result z = %z
)";

const char moves[] = R"(  input %x : f32[N, COLS]
  input %c : f32[N, 3, COLS]
  %t = permute(%x; dims = (1, 0)) : f32[COLS, N]
  %e = exp(%t) : f32[COLS, N]
  %s = reduce_sum(%c; dims = (1)) : f32[N, COLS]
  %d = sub(%s, %x) : f32[N, COLS]
  %u = permute(%e; dims = (1, 0)) : f32[N, COLS]
  %v = mul(%u, %d) : f32[N, COLS]
  result e = %e
  result v = %v
)";

// Of the graph, causal.
const char attention[] = R"(  input %q : f16[N, 2, COLS, 24]
  input %k : f16[N, 2, COLS, 24]
  input %v : f16[N, 2, COLS, 16]
  input %g : f16[N, 2, COLS, 16]
  %y, %sums = attention(%q, %k, %v; causal = true) : f16[N, 2, COLS, 16], f32[N, 2, COLS, 1]
  %dq, %dk, %dv = attention_grad(%g, %q, %k, %v, %y, %sums; causal = true)
      : f16[N, 2, COLS, 24], f16[N, 2, COLS, 24], f16[N, 2, COLS, 16]
  result y = %y
  result dq = %dq
  result dk = %dk
  result dv = %dv
)";

// Two lengths, which no kernel of attention takes.
const char cross[] = R"(  input %q : f16[N, 2, COLS, 24]
  input %k : f16[N, 2, 2 * COLS, 24]
  %y, %sums = attention(%q, %k, %k) : f16[N, 2, COLS, 24], f32[N, 2, COLS, 1]
  result y = %y
)";

// What surrounds attention: rows of all positions, their statistics, the gradient of a weight.
const char block[] = R"(  input %x : f32[N, COLS, 24]
  input %w : f32[24, 40]
  input %b : f32[40]
  input %g : f32[24]
  %n, %mean, %rstd = layer_norm(%x, %g, %g) : f32[N, COLS, 24], f32[N, COLS, 1], f32[N, COLS, 1]
  %h = cast(%n) : f16[N, COLS, 24]
  %wh = cast(%w) : f16[24, 40]
  %bh = cast(%b) : f16[40]
  %y = matmul(%h, %wh) : f16[N, COLS, 40]
  %z = add(%y, %bh) : f16[N, COLS, 40]
  %a = gelu(%z) : f16[N, COLS, 40]
  %f = cast(%a) : f32[N, COLS, 40]
  %dw = matmul(%h, %a; ta = true) : f16[N, 24, 40]
  %dws = sum(%dw; dims = (0)) : f16[24, 40]
  %pooled = mean(%f; dims = (1)) : f32[N, 40]
  result a = %a
  result pooled = %pooled
  result dws = %dws
)";

// attend and its gradient; a length is a number or COLS.
struct Heads {
    const char *type;
    int heads, key_heads;
    std::string queries, keys;
    int width, v_width;
    std::string attrs, mask;
    bool drops;
};

// |words| of bits for a query, which the gradient reads; 0: it draws them again.
std::string Both(const Heads &c, int words) {
    const auto of = [](const std::string &type, int heads, const std::string &length, int width) {
        return type + "[N, " + std::to_string(heads) + ", " + length + ", " + std::to_string(width) + "]";
    };
    const auto together = [](const std::string &length, int width) {
        return "f32[N, " + length + ", " + std::to_string(width) + "]";
    };
    const std::string y = together(c.queries, c.heads * c.v_width), mask = c.mask.empty() ? "" : ", %m",
                      counters = c.drops ? ", %seed, %step" : "";
    std::string text = c.drops ? "  input %seed : i64\n  input %step : i64\n" : "";
    if (!c.mask.empty()) text += "  input %m : " + c.mask + "\n";
    text += "  input %q : " + of(c.type, c.heads, c.queries, c.width) + "\n";
    text += "  input %k : " + of(c.type, c.key_heads, c.keys, c.width) + "\n";
    text += "  input %v : " + of(c.type, c.key_heads, c.keys, c.v_width) + "\n";
    text += "  input %g : " + of(c.type, c.heads, c.queries, c.v_width) + "\n";
    text += std::string("  %y, %l") + (words ? ", %d = attend_drop" : " = attend") + "(%q, %k, %v" + mask + counters;
    text += c.attrs + ") : " + y + ", " + of("f32", c.heads, c.queries, 1);
    if (words) text += ", i32[N, " + std::to_string(c.heads) + ", " + std::to_string(words) + ", " + c.queries + "]";
    text += "\n  %r = cast(%y) : " + std::string(c.type) + y.substr(3);
    text += "\n  %a, %b, %c = attend_grad(%g, %q, %k, %v, %r, %l" + mask + (words ? ", %d" : counters) + c.attrs;
    text += ") : " + together(c.queries, c.heads * c.width) + ", " + together(c.keys, c.key_heads * c.width) + ", " +
            together(c.keys, c.key_heads * c.v_width) + "\n";
    for (const char *r : {"y", "l", "a", "b", "c"}) text += std::string("  result ") + r + " = %" + r + "\n";
    return text;
}

const std::string scale = "; scale = 0.3", wide = "; scale = 0.08", causal = scale + ", causal = true",
                  drops = ", p = 0.25, key = \"k\"";

const std::vector<Heads> self = {
    {"f16", 4, 2, "COLS", "COLS", 24, 16, causal, "", false},
    {"bf16", 2, 2, "COLS", "COLS", 16, 16, scale, "f32[N, 1, 1, COLS]", false},
    {"tf32", 2, 1, "COLS", "COLS", 8, 8, causal, "bool[COLS, COLS]", false},
    {"f16", 1, 1, "COLS", "COLS", 80, 80, wide + ", causal = true", "", false},
    {"bf16", 1, 1, "COLS", "COLS", 160, 144, wide, "", false},
};

const std::vector<Heads> other = {
    {"f16", 2, 1, "COLS", "150", 16, 24, scale, "f32[2, COLS, 150]", false},
    {"bf16", 2, 1, "20", "COLS", 8, 8, causal, "bool[N, 1, 1, COLS]", false},
    {"tf32", 2, 2, "150", "COLS", 16, 16, scale, "", false},
};

const std::vector<Heads> dropped = {
    {"f16", 2, 1, "COLS", "COLS", 16, 16, causal + drops, "", true},
    {"tf32", 1, 1, "COLS", "COLS", 160, 160, wide + drops, "", true},
    {"f16", 2, 1, "12", "COLS", 8, 8, scale + drops, "", true},
};

class Length : public CudaRunTest {
  protected:
    void TearDown() override {
        run_length = 1;
        CudaRunTest::TearDown();
    }
    static std::string OfT(const std::string &body, int unit) {
        return "module \"core\" stage lower {\n  length 1024 unit " + std::to_string(unit) + "\n}\nfunc infer {\n" +
               With(body, "COLS", "T") + "}\n";
    }
    static std::string AsGraph(std::string text) {
        return text.replace(text.find("stage lower"), 11, "stage simplify");
    }
    // Near the interpreter; a few of |lengths|, and in long tests all.
    void CheckHeads(const Heads &c, int unit, std::initializer_list<int64_t> lengths, int64_t n) {
        const std::string text = OfT(Both(c, 0), unit), type = c.type;
        for (int64_t t : SomeOf<int64_t>(lengths)) {
            if (t % unit) continue;
            SCOPED_TRACE(text + std::to_string(t));
            run_length = t;
            Check(text, {n}, type == "bf16" ? 4e-2 : 4e-3, false, type == "f16" ? 90 : 80);
        }
    }
    // Several have their places by Check; what a sample's bits are does not depend on them.
    static int64_t Samples() { return IsTried(1, 2) ? 2 : 1; }
    // At each T the bits of the module in which T has that number.
    void SameAsFixed(const std::string &body, int unit, const std::vector<int64_t> &lengths, int64_t n,
                     bool graph = false) {
        SameAs([&](int64_t) { return body; }, body, unit, lengths, n, graph);
    }
    void SameAs(const std::function<std::string(int64_t)> &of, const std::string &body, int unit,
                const std::vector<int64_t> &lengths, int64_t n, bool graph = false) {
        const Built open = Build(graph ? AsGraph(OfT(body, unit)) : OfT(body, unit));
        ASSERT_NE(open.ptx, nullptr);
        for (int64_t t : lengths) {
            run_length = 1;
            const std::string text = Text(With(of(t), "COLS", ("T=" + std::to_string(t)).c_str()));
            const Built fixed = Build(graph ? AsGraph(text) : text);
            ASSERT_NE(fixed.ptx, nullptr);
            const Values given = Draw(fixed.m, fixed.m->funcs.data[0], n);
            const Values want = RunOnCuda(fixed.cuda, *fixed.ptx, n, given);
            run_length = t;
            ExpectSame(RunOnCuda(open.cuda, *open.ptx, n, given), want, "T = " + std::to_string(t) + ": ");
        }
    }
};

TEST_F(Length, ColumnsThatNCounts) {
    for (const char *body : {softmax, columns, products, moves})
        Check(Text(With(body, "COLS", "N")), {1, 19, 130}, 5e-3);
}

TEST_F(Length, ColumnsThatTCounts) {
    for (const char *body : {softmax, columns, products, moves})
        for (int unit : {1, 8})
            for (int64_t t : {1, 7, 8, 33, 200}) {
                if (t % unit) continue;
                SCOPED_TRACE(t);
                run_length = t;
                Check(OfT(body, unit), {1, 19}, 5e-3);
            }
}

TEST_F(Length, BitsAreThoseOfAFixedLength) {
    SameAsFixed(softmax, 1, {1}, 19);
    SameAsFixed(samples, 1, {200}, 19);
    for (const char *body : {softmax, columns, products, moves})
        for (int unit : {1, 8}) SameAsFixed(body, unit, SomeOf<int64_t>({200, 8, 1024, 64}), 19);
}

TEST_F(Length, AFunctionInOneLaunch) {
    const std::string text = OfT(joined, 1);
    const Module *m = PlannedForCuda(text);
    ASSERT_NE(m, nullptr);
    EXPECT_TRUE(m->funcs.data[0]->joined) << Print(m);
    for (int64_t t : {1, 33}) {
        run_length = t;
        Check(text, {5}, 5e-3);
    }
}

// Rows of one column read what a reshape made a vector of.
TEST_F(Length, LabelsOfTokens) {
    run_length = 33;
    Check(OfT(labels, 1), {5}, 5e-3);
}

TEST_F(Length, PartsOfATransformer) {
    for (const char *body : {attention, block})
        for (int unit : {1, 8})
            for (int64_t t : {1, 7, 8, 33, 64}) {
                if (t % unit) continue;
                SCOPED_TRACE(t);
                run_length = t;
                Check(AsGraph(OfT(body, unit)), {1, 3}, 1e-2);
            }
}

TEST_F(Length, OneLengthIsAKernelTwoAreProducts) {
    const auto attends = [&](const char *body) {
        const Module *m = PlannedForCuda(AsGraph(OfT(body, 1)));
        return m && Print(m).find("attend(") != std::string::npos;
    };
    EXPECT_TRUE(attends(attention));
    EXPECT_FALSE(attends(cross));
    run_length = 33;
    Check(AsGraph(OfT(cross, 1)), {2}, 1e-2);
}

TEST_F(Length, BitsOfATransformerAreThoseOfAFixedLength) {
    for (const char *body : {attention, block})
        for (int unit : {1, 8}) SameAsFixed(body, unit, SomeOf<int64_t>({64, 8, 200}), Samples(), true);
}

// A number of keys keeps the bits; for T keys the gradient draws again.
TEST_F(Length, BitsOfDropoutAreThoseOfAFixedLength) {
    SameAsFixed(With(attention, "true)", "true, p = 0.25, key = \"a\")"), 8, {16}, 3, true);
}

// About the edges of tiles.
TEST_F(Length, Attention) {
    for (const Heads &c : self) CheckHeads(c, 1, {1, 7, 16, 33, 64, 200}, 2);
    for (const Heads &c : other) CheckHeads(c, 1, {1, 7, 16, 33, 64, 200}, 2);
}

TEST_F(Length, AttentionHasTheBitsOfAFixedLength) {
    unsigned number = 0;
    for (const Heads &c : self)
        if (IsTried(number++, 2)) SameAsFixed(Both(c, 0), 1, SomeOf<int64_t>({64, 7, 200}), Samples());
    for (const Heads &c : other)
        if (IsTried(number++, 2)) SameAsFixed(Both(c, 0), 1, SomeOf<int64_t>({33, 64, 200}), Samples());
    for (int unit : {8, 128}) SameAsFixed(Both(self[0], 0), unit, {128}, Samples());
}

TEST_F(Length, AttentionWithDropout) {
    for (const Heads &c : dropped)
        for (int unit : SomeOf<int>({4, 1})) CheckHeads(c, unit, {1, 7, 16, 64, 100}, 2);
}

// A fixed length keeps its bits of dropout.
TEST_F(Length, DropoutHasTheBitsOfAFixedLength) {
    for (const Heads &c : dropped)
        for (int unit : SomeOf<int>({1, 4})) {
            const auto fixed = [&](int64_t t) { return Both(c, static_cast<int>((t + 63) / 64 * 2)); };
            SameAs(fixed, Both(c, 0), unit, SomeOf<int64_t>({unit, 64, 100}), Samples());
        }
}

TEST_F(Length, KeysOfAFixedNumberKeepTheBitsOfDropout) {
    const Heads c = {"f16", 2, 1, "COLS", "70", 16, 16, scale + drops, "", true};
    for (int64_t t : {1, 33, 200}) {
        run_length = t;
        Check(OfT(Both(c, 4), 1), {2}, 4e-3);
    }
    SameAsFixed(Both(c, 4), 1, {64}, 2);
}

// Their machine code holds everything in registers.
TEST_F(Length, AttentionSpillsNothing) {
    for (const char *type : {"f16", "tf32"})
        for (int width : SomeOf({64, 128}))
            for (bool d : {false, true}) {
                const Heads c = {type, 2, 1, "COLS", "COLS", width, width, causal + (d ? drops : ""), "", d};
                const Module *m = PlannedForCuda(OfT(Both(c, 0), 8));
                ASSERT_NE(m, nullptr);
                const CudaModule *cuda = Emit(m);
                ASSERT_NE(cuda, nullptr);
                for (int arch : SomeOf({80, 90})) Ptx(cuda, arch);
            }
}

} // namespace
