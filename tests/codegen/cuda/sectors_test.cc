// sectors_test.cc: what a warp asks for lies side by side, so that it touches hardly more sectors of 32 bytes than its
// bytes fill: sums and norms at the sizes of the examples' layers, with fewer rows. (Optimizers:
// conformance/cuda_counters_test.cc; elementwise kernels and softmax: run_test.cc and reduce_test.cc.)
#include "tests/codegen/cuda/cuda_run.h"

namespace {

class Sectors : public CudaRunTest {
  protected:
    // Every launch of |body|, in which TYPE is f16 and f32, touches at most |percent| more than the fewest.
    void Expect(const std::string &body, int64_t n, int percent = 10) {
        if (TestDriver::Asked()) GTEST_SKIP() << "the counters are the interpreter's";
        for (const char *type : {"f16", "f32"}) {
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
                    << b.cuda->functions.data[entry.function].source;
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

} // namespace
