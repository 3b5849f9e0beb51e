// sectors_test.cc: what a warp asks for is side by side, so that it touches hardly more sectors of 32 bytes than its
// bytes fill: sums, norms, pooling and movement at the sizes of the examples' layers, with fewer rows. (Optimizers:
// conformance/cuda_counters_test.cc; elementwise kernels and softmax: run_test.cc and reduce_test.cc.)
#include "tests/codegen/cuda/cuda_run.h"

namespace {

class Sectors : public CudaRunTest {
  protected:
    // Every launch of |body|, in which TYPE is f16 and f32, touches at most |percent| more than the fewest.
    void Expect(const std::string &body, int64_t n, int percent = 10) {
        if (TestDriver::Asked()) GTEST_SKIP() << "the counters are the interpreter's";
        for (const char *type : {"f16", "f32"}) {
            if (!IsTried(SumOf(body) + (type[1] == '3'), 2)) continue;
            const Built b = Build(Text(With(body, "TYPE", type)));
            ASSERT_NE(b.ptx, nullptr);
            const Func *f = b.m->funcs.data[0];
            CudaRun run(b.cuda, *b.ptx, f->name, n);
            run.Set(Draw(b.m, f, n));
            ASSERT_TRUE(run.Run());
            for (size_t i = 0; i < run.launches().size(); i++) {
                const ExecCounters &c = run.launches()[i];
                const CudaKernelEntry &entry = b.cuda->programs.data[0].kernels.data[i];
                EXPECT_GT(c.ideal_sectors, 0u);
                EXPECT_LE(100 * c.sectors, (100 + percent) * c.ideal_sectors)
                    << type << " " << entry.members.data[0]->title << ": " << c.sectors << " of " << c.ideal_sectors
                    << "\n"
                    << b.cuda->functions.data[entry.forms.data[0].function].source;
            }
        }
    }
};

TEST_F(Sectors, ColumnSums) {
    for (const char *cols : {"64", "96", "768", "1024"})
        Expect(With(R"(  input %x : TYPE[N, COLS]
  %f = cast(%x) : f32[N, COLS]
  %s = reduce_sum(%f; dims = (0)) : f32[COLS]
  result s = %s
)",
                    "COLS", cols),
               40);
}

// A thread loads 8 bytes of f16, 16 of f32, at once.
TEST_F(Sectors, ColumnsAreLoadedWide) {
    if (TestDriver::Asked()) GTEST_SKIP() << "the counters are the interpreter's";
    for (const char *cols : {"32", "64", "96"})
        for (const auto &[type, bytes] : {std::pair<const char *, uint64_t>{"f16", 8}, {"f32", 16}}) {
            const Built b = Build(Text(With(With(R"(  input %x : TYPE[N, 128, COLS]
  %f = cast(%x) : f32[N, 128, COLS]
  %s = reduce_sum(%f; dims = (1)) : f32[N, COLS]
  result s = %s
)",
                                                 "COLS", cols),
                                            "TYPE", type)));
            ASSERT_NE(b.ptx, nullptr);
            const Func *f = b.m->funcs.data[0];
            CudaRun run(b.cuda, *b.ptx, f->name, 3);
            run.Set(Draw(b.m, f, 3));
            ASSERT_TRUE(run.Run());
            const ExecCounters &c = run.launches()[0];
            EXPECT_EQ(c.global_load_bytes, c.global_loads * 32 * bytes) << type << " " << cols;
        }
}

TEST_F(Sectors, BatchNorm) {
    for (const char *cols : {"64", "256", "32"})
        Expect(With(R"(  input %x : TYPE[N, 7, 7, COLS]
  %f = cast(%x) : f32[N, 7, 7, COLS]
  %s = reduce_sum(%f; dims = (1, 2), keep = true) : f32[N, 1, 1, COLS]
  %e = expand(%s) : f32[N, 7, 7, COLS]
  %d = sub(%f, %e) : f32[N, 7, 7, COLS]
  %q = mul(%d, %d) : f32[N, 7, 7, COLS]
  %qs = reduce_sum(%q; dims = (1, 2)) : f32[N, COLS]
  %v = reduce_sum(%qs; dims = (0)) : f32[COLS]
  %y = mul(%f, %v) : f32[N, 7, 7, COLS]
  %h = cast(%y) : TYPE[N, 7, 7, COLS]
  result h = %h
)",
                    "COLS", cols),
               4);
}

TEST_F(Sectors, LayerNorm) {
    for (const char *cols : {"64", "768", "784", "1600"})
        Expect(With(R"(  input %x : TYPE[N, COLS]
  input %g : f32[COLS]
  %f = cast(%x) : f32[N, COLS]
  %s = reduce_sum(%f; dims = (1), keep = true) : f32[N, 1]
  %d = sub(%f, %s) : f32[N, COLS]
  %q = mul(%d, %d) : f32[N, COLS]
  %v = reduce_sum(%q; dims = (1), keep = true) : f32[N, 1]
  %n = div(%d, %v) : f32[N, COLS]
  %y = mul(%n, %g) : f32[N, COLS]
  %h = cast(%y) : TYPE[N, COLS]
  result h = %h
)",
                    "COLS", cols),
               16);
}

TEST_F(Sectors, Pooling) {
    for (const char *cols : {"32", "64", "256"})
        for (const char *window :
             {"kernel = (2, 2), stride = (2, 2)", "kernel = (3, 3), stride = (2, 2), padding = (1, 1)"}) {
            const std::string sizes = With(With(R"(  input %x : TYPE[N, 8, 8, COLS]
  input %dy : TYPE[N, 4, 4, COLS]
  input %i : i32[N, 4, 4, COLS]
  %xf = cast(%x) : f32[N, 8, 8, COLS]
  %df = cast(%dy) : f32[N, 4, 4, COLS]
  %yf, %j = window_max(%xf; WINDOW) : f32[N, 4, 4, COLS], i32[N, 4, 4, COLS]
  %sf = window_sum(%xf; WINDOW) : f32[N, 4, 4, COLS]
  %gf = window_max_grad(%df, %i; WINDOW) : f32[N, 8, 8, COLS]
  %hf = window_sum_grad(%df; WINDOW) : f32[N, 8, 8, COLS]
  %y = cast(%yf) : TYPE[N, 4, 4, COLS]
  %s = cast(%sf) : TYPE[N, 4, 4, COLS]
  %g = cast(%gf) : TYPE[N, 8, 8, COLS]
  %h = cast(%hf) : TYPE[N, 8, 8, COLS]
)",
                                                "COLS", cols),
                                           "WINDOW", window);
            Expect(sizes + "  result y = %y\n  result j = %j\n", 3);
            Expect(sizes + "  result s = %s\n", 3);
            Expect(sizes + "  result g = %g\n", 3);
            Expect(sizes + "  result h = %h\n", 3);
        }
}

// An elementwise op that is made where the window reads it, with an operand for each channel.
TEST_F(Sectors, PoolingOfWhatIsMadeThere) {
    Expect(R"(  input %x : TYPE[N, 8, 8, 64]
  input %b : f32[64]
  %f = cast(%x) : f32[N, 8, 8, 64]
  %a = add(%f, %b) : f32[N, 8, 8, 64]
  %yf, %i = window_max(%a; kernel = (2, 2), stride = (2, 2)) : f32[N, 4, 4, 64], i32[N, 4, 4, 64]
  %y = cast(%yf) : TYPE[N, 4, 4, 64]
  result y = %y
)",
           3);
}

TEST_F(Sectors, Movement) {
    for (const char *result :
         {"permute(%x; dims = (0, 2, 1, 3)) : TYPE[N, 4, 6, 64]", "reshape(%x) : TYPE[N, 6, 8, 32]",
          "slice(%x; dim = 1, from = 2, to = 5) : TYPE[N, 3, 4, 64]",
          "slice(%x; dim = 3, from = 16, to = 48) : TYPE[N, 6, 4, 32]",
          "pad(%x; dim = 2, before = 1, after = 2, value = 0.0) : TYPE[N, 6, 7, 64]",
          "pad(%x; dim = 3, before = 16, after = 16, value = 1.0) : TYPE[N, 6, 4, 96]",
          "concat(%x, %z; dim = 2) : TYPE[N, 6, 5, 64]", "concat(%x, %w; dim = 3) : TYPE[N, 6, 4, 96]",
          "gather(%t, %i) : TYPE[N, 5, 64]", "expand(%z) : TYPE[N, 6, 7, 64]",
          "resample(%f; mode = nearest) : f32[N, 12, 8, 64]", "resample(%f; mode = bilinear) : f32[N, 9, 8, 64]"})
        Expect(With(R"(  input %x : TYPE[N, 6, 4, 64]
  input %z : TYPE[N, 6, 1, 64]
  input %w : TYPE[N, 6, 4, 32]
  input %t : TYPE[50, 64]
  input %i : i32[N, 5]
  %f = cast(%x) : f32[N, 6, 4, 64]
  %y = RESULT
  result y = %y
)",
                    "RESULT", result),
               5);
}

TEST_F(Sectors, Depthwise) {
    Expect(R"(  input %x : f32[N, 8, 8, 64]
  input %w : f32[3, 3, 1, 64]
  %y = conv(%x, %w; stride = (1, 1), padding = (1, 1), dilation = (1, 1), groups = 64) : f32[N, 8, 8, 64]
  %h = cast(%y) : TYPE[N, 8, 8, 64]
  result h = %h
)",
           3);
}

} // namespace
