// pitch_test.cc: long rows that are no multiple of 16 bytes (passes/layout/pitch.c), in every kind of kernel that
// makes or reads one, against the interpreter. Each buffer is an allocation of its own, and what was never written
// cannot be read: the fill of a row counts as any other element.
#include "tests/codegen/cuda/cuda_run.h"

namespace {

class PitchTest : public CudaRunTest {
  protected:
    // How many buffers have rows of |pitch| elements.
    int CountOf(const std::string &body, int64_t pitch) {
        const Module *m = PlannedForCuda(Text(body));
        int count = 0;
        for (int i = 0; m && i < m->funcs.data[0]->buffers.len; i++)
            count += m->funcs.data[0]->buffers.data[i]->pitch == pitch;
        return count;
    }

    // In each type, and at widths of rows that a warp and that a block goes along; each width of each type at length.
    void CheckTypes(const std::string &body, const std::vector<std::string> &types, double tolerance) {
        for (size_t t = 0; t < types.size(); t++)
            for (const std::string cols : {"257", "1036"}) {
                const std::string &type = types[t];
                if (!InLongTests() && (cols == "257") == (t % 2 == 0)) continue;
                SCOPED_TRACE(type + " " + cols);
                const std::string typed = With(With(body, "TYPE", type), "COLS", cols);
                EXPECT_GT(CountOf(typed, (std::stoi(cols) + 7) / 8 * 8), 0);
                CudaRunTest::Check(Text(typed), {1, 33}, tolerance, false, type == "f16" ? 75 : 80);
                if (HasFailure()) return;
            }
    }
};

// As the logits of a language model: written by a product, read along rows, and then by both products of its gradient.
const char loss_model[] = R"(  input %x : TYPE[N, 40]
  input %w : TYPE[COLS, 40]
  input %bias : f32[COLS]
  input %slope : f32[N, COLS]
  %1 = contract(%x, %w; tb = true) : f32[N, COLS]
  %2 = add(%1, %bias) : f32[N, COLS]
  %logits = cast(%2) : TYPE[N, COLS]
  %l = cast(%logits) : f32[N, COLS]
  %3 = reduce_max(%l; dims = (1), keep = true) : f32[N, 1]
  %4 = sub(%l, %3) : f32[N, COLS]
  %5 = exp(%4) : f32[N, COLS]
  %6 = reduce_sum(%5; dims = (1), keep = true) : f32[N, 1]
  %7 = div(%5, %6) : f32[N, COLS]
  %8 = mul(%7, %slope) : f32[N, COLS]
  %9 = reduce_sum(%8; dims = (1), keep = true) : f32[N, 1]
  %10 = sub(%slope, %9) : f32[N, COLS]
  %11 = mul(%10, %5) : f32[N, COLS]
  %d = cast(%11) : TYPE[N, COLS]
  %dx = contract(%d, %w) : f32[N, 40]
  %dw = contract(%d, %x; ta = true) : f32[COLS, 40]
  %d.f32 = cast(%d) : f32[N, COLS]
  %dbias = reduce_sum(%d.f32; dims = (0)) : f32[COLS]
  result dx = %dx
  result dw = %dw
  result dbias = %dbias
)";

TEST_F(PitchTest, Loss) { CheckTypes(loss_model, {"f16", "bf16", "tf32"}, 2e-2); }

TEST_F(PitchTest, LossInF32) {
    std::string body = With(loss_model, "TYPE", "f32");
    for (const char *cast : {"%logits = cast(%2)", "%l = cast(%logits)", "%d = cast(%11)", "%d.f32 = cast(%d)"})
        body = With(body, cast, With(cast, "cast", "neg"));
    CheckTypes(body, {"f32"}, 1e-4);
}

// Tile kernels, with operands that are dense, one for each row or column, random numbers, and a flag.
TEST_F(PitchTest, Tiles) {
    CheckTypes(R"(  input %x : TYPE[N, 24]
  input %w : TYPE[24, COLS]
  input %v : TYPE[COLS, 24]
  input %scale : f32[COLS]
  input %row : f32[N, 1]
  input %dense : f32[N, COLS]
  input %seed : i64
  input %iteration : i64
  %1 = contract(%x, %w) : f32[N, COLS]
  %y = cast(%1) : TYPE[N, COLS]
  %y.f32 = cast(%y) : f32[N, COLS]
  %sum = reduce_sum(%y.f32; dims = (0), keep = true) : f32[1, COLS]
  %2 = mul(%y.f32, %scale) : f32[N, COLS]
  %3 = add(%2, %sum) : f32[N, COLS]
  %4 = add(%3, %row) : f32[N, COLS]
  %r = random(%4, %seed, %iteration; key = "drop") : f32[N, COLS]
  %5 = add(%4, %r) : f32[N, COLS]
  %6 = add(%5, %dense) : f32[N, COLS]
  %7 = is_finite(%6) : bool[N, COLS]
  %8 = not(%7) : bool[N, COLS]
  %bad = reduce_or(%8) : bool
  %z = cast(%6) : TYPE[N, COLS]
  %s = contract(%z, %v) : f32[N, 24]
  %t = contract(%z, %x; ta = true) : f32[COLS, 24]
  result bad = %bad
  result six = %6
  result s = %s
  result t = %t
)",
               {"f16", "bf16"}, 3e-2);
}

// What moves finds elements of rows at a pitch, and writes such rows.
TEST_F(PitchTest, Movement) {
    CheckTypes(R"(  input %x : TYPE[6, 24]
  input %y : TYPE[N, 24]
  input %w : TYPE[24, COLS]
  input %v : TYPE[COLS, 16]
  %1 = contract(%x, %w) : f32[6, COLS]
  %a = cast(%1) : TYPE[6, COLS]
  %2 = contract(%y, %w) : f32[N, COLS]
  %b = cast(%2) : TYPE[N, COLS]
  %cut = slice(%b; dim = 1, from = 3, to = 20) : TYPE[N, 17]
  %t = permute(%a; dims = (1, 0)) : TYPE[COLS, 6]
  %turned = contract(%t, %x) : f32[COLS, 24]
  %both = concat(%a, %a; dim = 0) : TYPE[12, COLS]
  %p = contract(%both, %v) : f32[12, 16]
  %flat = reshape(%b) : TYPE[COLS * N]
  result cut = %cut
  result turned = %turned
  result p = %p
  result flat = %flat
)",
               {"f16", "bf16"}, 1e-2);
}

// A reshape and a sum of parts find elements by their number, in whatever kernel they are: their operands are dense.
TEST_F(PitchTest, ReadByNumber) {
    const std::string by_rows = R"(  input %x : f16[N, 24]
  input %w : f16[24, 805]
  input %m : f32[N, 35, 23]
  %y = contract(%x, %w) : f32[N, 805]
  %r = reshape(%y) : f32[N, 35, 23]
  %p = mul(%r, %m) : f32[N, 35, 23]
  %s = reduce_sum(%p; dims = (2), keep = true) : f32[N, 35, 1]
  result s = %s
)",
                      by_columns = R"(  input %x : f16[N, 24]
  input %w : f16[24, 805]
  input %m : f32[N, 35, 23]
  %y = contract(%x, %w) : f32[N, 805]
  %r = reshape(%y) : f32[N, 35, 23]
  %p = mul(%r, %m) : f32[N, 35, 23]
  %s = reduce_sum(%p; dims = (0, 1)) : f32[23]
  result s = %s
)",
                      parts_by_rows = R"(  input %x : f16[N, 20]
  input %dy : f16[N, 805]
  %parts = contract(%x, %dy; ta = true, parts = 3) : f32[3, 20, 805]
  %dw = sum_parts(%parts) : f32[20, 805]
  %m = reduce_max(%dw; dims = (1), keep = true) : f32[20, 1]
  %d = sub(%dw, %m) : f32[20, 805]
  result d = %d
)";
    for (const std::string &body : {by_rows, by_columns, parts_by_rows}) {
        CudaRunTest::Check(Text(body), {1, 5, 200}, 1e-3, false, 80);
        EXPECT_EQ(CountOf(body, 808), 0);
    }
}

// What a row kernel makes of each of its rows is a matrix to whoever reads it: its elements follow one another.
TEST_F(PitchTest, NumbersOfRows) {
    const std::string body = R"(  input %x : f32[N, 257, 40]
  input %w : f16[24, 257]
  %1 = reduce_sum(%x; dims = (2)) : f32[N, 257]
  %2 = cast(%1) : f16[N, 257]
  %y = contract(%2, %w; tb = true) : f32[N, 24]
  result y = %y
)";
    CudaRunTest::Check(Text(body), {1, 33}, 2e-2, false, 75);
}

// Enough operands for a thread to make one element.
TEST_F(PitchTest, SingleElements) {
    std::string inputs, sums;
    for (int i = 0; i < 45; i++) {
        const std::string k = std::to_string(i);
        inputs += "  input %x" + k + " : f32[N, 257]\n";
        if (i)
            sums += "  %s" + k + " = add(%" + (i > 1 ? "s" : "x") + std::to_string(i - 1) + ", %x" + k +
                    ") : f32[N, 257]\n";
    }
    const std::string body = inputs + "  input %w : f16[24, 257]\n" + sums + R"(  %h = cast(%s44) : f16[N, 257]
  %y = contract(%h, %w; tb = true) : f32[N, 24]
  result y = %y
)";
    EXPECT_EQ(CountOf(body, 264), 1);
    CudaRunTest::Check(Text(body), {1, 33}, 2e-2, false, 75);
}

// ---- `pad = true`: short rows that tensor cores read ----------------------------------------------------------------

class PadTest : public PitchTest {
  protected:
    static std::string Padded(const std::string &body, const std::string &type, bool pad = true) {
        std::string text = Text(body);
        const size_t header = text.find("{\n") + 2;
        return text.insert(header, "  policy \"p\" low " + type + "\n" + (pad ? "  pad\n" : ""));
    }
    // Of the copies that products of tensor cores make, the fewest bytes.
    int LeastCopy(const std::string &text) {
        const Module *m = PlannedForCuda(text);
        CodegenCopies copies;
        EXPECT_EQ(codegen_cuda_copies(m, &copies, nullptr), AMP_OK);
        int least = copies.len ? 16 : 0;
        for (int i = 0; i < copies.len; i++) least = std::min(least, copies.data[i].bytes);
        return least;
    }
};

// What only a user has is dense: here inputs are rounded, so that all that products read is the program's own.
const char padded_model[] = R"(  input %x : f32[N, 30]
  input %w : f32[COLS, 30]
  input %slope : f32[N, COLS]
  input %x2 : f32[N, 30]
  %a = neg(%x) : f32[N, 30]
  %x.h = cast(%a) : TYPE[N, 30]
  %b = neg(%w) : f32[COLS, 30]
  %w.h = cast(%b) : TYPE[COLS, 30]
  %1 = contract(%x.h, %w.h; tb = true) : f32[N, COLS]
  %y = cast(%1) : TYPE[N, COLS]
  %y.f32 = cast(%y) : f32[N, COLS]
  %3 = reduce_max(%y.f32; dims = (1), keep = true) : f32[N, 1]
  %4 = sub(%y.f32, %3) : f32[N, COLS]
  %5 = exp(%4) : f32[N, COLS]
  %6 = reduce_sum(%5; dims = (1), keep = true) : f32[N, 1]
  %7 = div(%5, %6) : f32[N, COLS]
  %8 = mul(%7, %slope) : f32[N, COLS]
  %d = cast(%8) : TYPE[N, COLS]
  %dx = contract(%d, %w.h) : f32[N, 30]
  %dw = contract(%d, %x.h; ta = true) : f32[COLS, 30]
  %d.f32 = cast(%d) : f32[N, COLS]
  %dbias = reduce_sum(%d.f32; dims = (0)) : f32[COLS]
  %x3 = cast(%x2) : TYPE[N, 30]
  %direct = contract(%x3, %w.h; tb = true) : f32[N, COLS]
  result y = %y.f32
  result dx = %dx
  result dw = %dw
  result dbias = %dbias
  result direct = %direct
)";

TEST_F(PadTest, CopiesAreOf16Bytes) {
    unsigned number = 0;
    for (const std::string type : {"f16", "bf16", "tf32"})
        for (const std::string cols : {"10", "28", "100", "197", "300"}) {
            if (!IsTried(number++, 3)) continue;
            SCOPED_TRACE(type + " " + cols);
            const std::string body = With(With(padded_model, "TYPE", type), "COLS", cols);
            EXPECT_EQ(LeastCopy(Padded(body, type)), 16);
            EXPECT_LT(LeastCopy(Padded(body, type, false)), 16);
            CudaRunTest::Check(Padded(body, type), {1, 33}, 2e-2, false, type == "f16" ? 75 : 80);
            if (HasFailure()) return;
        }
}

// The words that a warp asks of global memory: fewer, for as many sums.
TEST_F(PadTest, ProductsAskForLessOften) {
    if (TestDriver::Asked()) GTEST_SKIP() << "the counters are the interpreter's";
    uint64_t loads[2], stores[2], flops[2];
    for (int pad = 0; pad < 2; pad++) {
        const std::string body = With(With(padded_model, "TYPE", "f16"), "COLS", "197");
        const Built b = Build(Padded(body, "f16", pad));
        ASSERT_NE(b.ptx, nullptr);
        CudaRun run(b.cuda, *b.ptx, b.m->funcs.data[0]->name, 256);
        run.Set(Draw(b.m, b.m->funcs.data[0], 256));
        ASSERT_TRUE(run.Run());
        loads[pad] = stores[pad] = flops[pad] = 0;
        for (const ExecCounters &c : run.launches()) {
            if (!c.tensor_ops) continue;
            loads[pad] += c.global_loads, stores[pad] += c.global_stores, flops[pad] += c.tensor_flops;
        }
    }
    std::printf("197 columns: products ask %llu times for what they read, padded %llu times\n",
                (unsigned long long)loads[0], (unsigned long long)loads[1]);
    EXPECT_EQ(flops[0], flops[1]);
    EXPECT_LT(3 * loads[1], loads[0]);
}

// Fewer columns than half of 16 bytes stay as they are, and so does what tensor cores do not read.
TEST_F(PadTest, WhichRows) {
    const auto count = [&](const std::string &cols, int64_t pitch, const char *type) {
        const Module *m = PlannedForCuda(Padded(With(With(padded_model, "TYPE", type), "COLS", cols), type));
        int found = 0;
        for (int i = 0; m && i < m->funcs.data[0]->buffers.len; i++)
            found += m->funcs.data[0]->buffers.data[i]->pitch == pitch;
        return found;
    };
    EXPECT_EQ(count("10", 16, "f16"), 1) << "the gradient: a product reads it";
    EXPECT_EQ(count("10", 12, "tf32"), 1) << "16 bytes are 4 elements";
    EXPECT_EQ(count("5", 8, "f16"), 1);
    EXPECT_EQ(count("4", 8, "f16"), 0);
    EXPECT_EQ(count("3", 4, "f16"), 0);
    EXPECT_EQ(count("16", 16, "f16"), 0);
}

// ---- images ---------------------------------------------------------------------------------------------------------

// Pixels of few channels, whose windows products read: an image that is made channels last, and one of a convolution's
// own results, which is pooled too.  Of the weights no more is there than before.
const char image_model[] = R"(  input %x : TYPE[N, CH, 9, 7]
  input %e : TYPE[N, CH, 9, 7]
  input %w : TYPE[3, 3, CH, 24]
  input %v : TYPE[3, 3, 24, CH]
  input %wt : TYPE[3, 3, CH, 10]
  input %dy : TYPE[N, 5, 7, 24]
  input %point : TYPE[1, 1, CH, 10]
  input %dpoint : TYPE[N, 9, 7, 10]
  %p = permute(%x; dims = (0, 2, 3, 1)) : TYPE[N, 9, 7, CH]
  %y = conv(%p, %w; stride = (2, 1), padding = (1, 1)) : f32[N, 5, 7, 24]
  %dw = conv_weight(%p, %dy; stride = (2, 1), padding = (1, 1)) : f32[3, 3, CH, 24]
  %points = conv(%p, %point) : f32[N, 9, 7, 10]
  %dw.points = conv_weight(%p, %dpoint) : f32[1, 1, CH, 10]
  %1 = conv(%dy, %v; padding = (1, 1)) : f32[N, 5, 7, CH]
  %small = const(; value = 0.015625) : f32
  %2 = mul(%1, %small) : f32[N, 5, 7, CH]
  %z = cast(%2) : TYPE[N, 5, 7, CH]
  %again = conv(%z, %wt; padding = (0, 1)) : f32[N, 3, 7, 10]
  %z.f32 = cast(%z) : f32[N, 5, 7, CH]
  %pool = window_sum(%z.f32; kernel = (2, 2), stride = (2, 2)) : f32[N, 2, 3, CH]
  %d = permute(%e; dims = (0, 2, 3, 1)) : TYPE[N, 9, 7, CH]
  %dx = conv_data(%d, %wt; padding = (1, 1)) : f32[N, 9, 7, 10]
  result y = %y
  result dw = %dw
  result points = %points
  result dw.points = %dw.points
  result again = %again
  result pool = %pool
  result dx = %dx
)";

TEST_F(PitchTest, Pixels) {
    for (const std::string type : {"f16", "bf16", "tf32", "f32"})
        for (const std::string channels : {"3", "21"}) {
            if (!InLongTests() && (channels == "3") == (type == "bf16" || type == "f32")) continue;
            SCOPED_TRACE(type + " " + channels);
            std::string body = With(With(image_model, "TYPE", type), "CH", channels);
            if (type == "f32") body = With(body, " cast(", " neg(");
            EXPECT_EQ(CountOf(body, (std::stoi(channels) + 3) / 4 * 4), 3);
            CudaRunTest::Check(Text(body), {1, 5}, type == "f32" ? 1e-4 : 3e-2, false, type == "f16" ? 75 : 80);
            if (HasFailure()) return;
        }
}

// Parts of a weight's gradient, each with rows that are not there.
TEST_F(PitchTest, PartsOfAWeight) {
    const std::string body = R"(  input %x : f16[N, 3, 32, 32]
  input %dy : f16[N, 32, 32, 40]
  %p = permute(%x; dims = (0, 2, 3, 1)) : f16[N, 32, 32, 3]
  %parts = conv_weight(%p, %dy; padding = (1, 1), parts = 3) : f32[3, 3, 3, 3, 40]
  %dw = sum_parts(%parts) : f32[3, 3, 3, 40]
  result dw = %dw
)";
    EXPECT_EQ(CountOf(body, 4), 1);
    CudaRunTest::Check(Text(body), {1, 2}, 1e-3, false, 80);
}

TEST_F(PitchTest, WhichRows) {
    const auto body = [](const std::string &cols) { return With(With(loss_model, "TYPE", "f16"), "COLS", cols); };
    EXPECT_EQ(CountOf(body("257"), 264), 2) << "the logits and their gradient";
    EXPECT_EQ(CountOf(body("264"), 264), 0) << "whole rows";
    EXPECT_EQ(CountOf(body("255"), 256), 0) << "short rows";
}

} // namespace
