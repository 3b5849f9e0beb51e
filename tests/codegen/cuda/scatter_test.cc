// scatter_test.cc: rows added up by id, the gradient of a table: ids of every kind against float64, the same bits in
// any order of blocks, and no long chain where one id repeats.
#include "tests/codegen/cuda/cuda_run.h"

namespace {

const char table[] = R"(  input %dy : f32[N, COLS]
  input %ids : i32[N]
  %dt = scatter(%dy, %ids) : f32[COUNT, COLS]
  result dt = %dt
)";

class Scatter : public CudaRunTest {
  protected:
    std::string Of(int count, int cols, const char *body = table) {
        return Text(With(With(body, "COUNT", std::to_string(count)), "COLS", std::to_string(cols)));
    }

    using Ids = double (*)(int64_t row, int64_t rows, int64_t count, uint32_t random);
    Values Given(const Built &b, int64_t rows, int64_t count, Ids ids) {
        Values given = Draw(b.m, b.m->funcs.data[0], rows);
        std::mt19937 engine(7);
        std::vector<double> &all = given.at("ids");
        for (size_t i = 0; i < all.size(); i++) all[i] = ids(static_cast<int64_t>(i), rows, count, engine());
        return given;
    }

    // Near float64, bit for bit the same in any order of blocks, and what a run leaves in memory does not count.
    void Expect(const Built &b, int64_t rows, const Values &given, const std::string &what) {
        const Func *f = b.m->funcs.data[0];
        CudaRun run(b.cuda, *b.ptx, f->name, rows);
        Values after = given, first;
        const std::vector<double> want = Interpret(f, rows, &after).at("dt");
        run.Set(given);
        for (uint64_t seed : {1, 2}) {
            ASSERT_EQ(run.RunToFault(seed), "") << what;
            Values got = {{"dt", run.Get(run.BufferOf(f->results.data[0].value))}};
            if (first.empty()) Compare(first["dt"] = got["dt"], want, 1e-4, what);
            ExpectSame(got, first, what + " seed " + std::to_string(seed) + " ");
        }
    }

    // Instructions of the longest warp, of the only launch.
    uint64_t LongestWarp(const std::string &text, int64_t rows, int64_t count, Ids ids) {
        const Built b = Build(text);
        if (!b.ptx) return 0;
        CudaRun run(b.cuda, *b.ptx, b.m->funcs.data[0]->name, rows);
        run.Set(Given(b, rows, count, ids));
        EXPECT_TRUE(run.Run());
        EXPECT_EQ(run.launches().size(), 1u);
        return run.launches()[0].longest_warp;
    }
};

double Equal(int64_t, int64_t, int64_t count, uint32_t) { return static_cast<double>(count / 2); }
double Random(int64_t, int64_t, int64_t count, uint32_t random) { return static_cast<double>(random % count); }

const struct Kind {
    const char *name;
    double (*ids)(int64_t row, int64_t rows, int64_t count, uint32_t random);
} kinds[] = {
    {"equal", Equal},
    {"random", Random},
    {"ascending",
     [](int64_t r, int64_t rows, int64_t count, uint32_t) { return std::floor(double(r * count) / double(rows)); }},
    {"descending", [](int64_t r, int64_t, int64_t count, uint32_t) { return double(count - 1 - r % count); }},
    {"padded",
     [](int64_t r, int64_t, int64_t count, uint32_t random) { return r % 128 < 50 ? double(random % count) : 0.0; }},
    {"of one block", [](int64_t, int64_t, int64_t count, uint32_t random) { return double(random % 40 * 64 % count); }},
    {"outside",
     [](int64_t, int64_t, int64_t count, uint32_t random) { return double(random % (3 * count)) - double(count); }},
};

// One row, fewer than a warp, parts that do not come out even, several lists; one column and parts of 32.
TEST_F(Scatter, IdsOfEveryKind) {
    const struct Size {
        int count, cols;
        std::vector<int64_t> rows;
    } sizes[] = {
        {2, 40, {1, 31, 1025, 2600}}, {17, 5, {33, 1000}},   {64, 32, {1537}},
        {65, 33, {1, 1025}},          {3000, 1, {77, 2049}}, {1, 33, {700}},
    };
    unsigned number = 0;
    for (const Size &s : sizes) {
        const Built b = Build(Of(s.count, s.cols));
        ASSERT_NE(b.ptx, nullptr);
        for (int64_t rows : s.rows)
            for (const Kind &k : kinds) {
                if (!IsTried(number++, 2)) continue;
                const std::string what = std::to_string(s.count) + " x " + std::to_string(s.cols) + ", " +
                                         std::to_string(rows) + " rows, " + k.name + " ";
                Expect(b, rows, Given(b, rows, s.count, k.ids), what);
                if (HasFailure()) {
                    ADD_FAILURE() << Functions(b.cuda);
                    return;
                }
            }
    }
}

// Rows in f16 that begin at multiples of 8 elements.
TEST_F(Scatter, RowsWithAPitch) {
    const Built b = Build(Of(20, 257, R"(  input %x : f32[N, COLS]
  input %ids : i32[N]
  %sq = mul(%x, %x) : f32[N, COLS]
  %half = cast(%sq) : f16[N, COLS]
  %dy = cast(%half) : f32[N, COLS]
  %dt = scatter(%dy, %ids) : f32[COUNT, COLS]
  result dt = %dt
)"));
    ASSERT_NE(b.ptx, nullptr);
    Expect(b, 90, Given(b, 90, 20, Equal), "equal ");
    Expect(b, 90, Given(b, 90, 20, Random), "random ");
}

// Tables of different sizes share a launch, and so do equal ones, as a batch.
TEST_F(Scatter, TablesShareALaunch) {
    const std::string text = Text(R"(  input %da : f32[N, 5]
  input %db : f32[N, 40]
  input %dc : f32[N, 5]
  input %a : i32[N]
  input %b : i32[N]
  input %c : i32[N]
  %x = scatter(%da, %a) : f32[9, 5]
  %xx = mul(%x, %x) : f32[9, 5]
  %xs = reduce_sum(%xx; dims = (1)) : f32[9]
  %y = scatter(%db, %b) : f32[17, 40]
  %yy = mul(%y, %y) : f32[17, 40]
  %ys = reduce_sum(%yy; dims = (1)) : f32[17]
  %z = scatter(%dc, %c) : f32[9, 5]
  result x = %x
  result xs = %xs
  result y = %y
  result ys = %ys
  result z = %z
)");
    const Built b = Build(text);
    ASSERT_NE(b.ptx, nullptr);
    const CudaProgram &p = b.cuda->programs.data[0];
    int launches = 0;
    for (int i = 0; i < p.kernels.len; i++) launches += p.kernels.data[i].members.data[0]->kind == KERNEL_SCATTER;
    EXPECT_EQ(launches, 1) << Functions(b.cuda);
    Check(text, {1, 700}, 1e-4);
    ExpectTheBitsOf(b.m, b.cuda, EmitAlone(b.m), {600}, 90, 1e-4);
}

// Equal ones alone.
TEST_F(Scatter, EqualTablesAreABatch) {
    const std::string text = Text(R"(  input %da : f32[N, 40]
  input %db : f32[N, 40]
  input %a : i32[N]
  input %b : i32[N]
  %x = scatter(%da, %a) : f32[70, 40]
  %y = scatter(%db, %b) : f32[70, 40]
  result x = %x
  result y = %y
)");
    const Built b = Build(text);
    ASSERT_NE(b.ptx, nullptr);
    EXPECT_EQ(b.cuda->programs.data[0].kernels.len, 1) << Functions(b.cuda);
    Check(text, {1, 700}, 1e-4);
}

// What a session watches, beside what it keeps, or nothing.
TEST_F(Scatter, WatchedValuesMayBeAbsent) {
    Module *m = Read(R"(module "watch" stage plan {
  target cuda
}
func train_step {
  input %dy : f32[N, 40]
  input %ids : i32[N]
  kernel k00 scatter "dt" reads b1, b2 writes b3, b4 {
    %dt = scatter(%dy, %ids) : f32[6, 40]
  }
  buffer b1 input %dy f32 rows live 0 to 0
  buffer b2 input %ids i32 rows live 0 to 0
  buffer b3 output %dt f32 rows live 0 to 0
  buffer b4 watch %dt f32 rows live 0 to 0
  result dt = %dt
}
)");
    ASSERT_NE(m, nullptr);
    const CudaModule *cuda = Emit(m);
    ASSERT_NE(cuda, nullptr);
    const LoadedPtx ptx(Ptx(cuda, 80, false), 80);
    Values given = Draw(m, m->funcs.data[0], 600), after = given;
    const std::vector<double> want = Interpret(m->funcs.data[0], 600, &after).at("dt");
    for (bool watch : {false, true}) {
        CudaRun run(cuda, ptx, "train_step", 600, watch);
        run.Set(given);
        ASSERT_EQ(run.RunToFault(5), "");
        Compare(run.Get(2), want, 1e-5, "output");
        if (watch) {
            EXPECT_EQ(run.Get(3), run.Get(2));
        }
    }
}

// One id that repeats is shared among the warps of a block: the tables of examples/tabular, of bytes, of kinds of
// tokens and of words, where all ids are equal.
TEST_F(Scatter, NoWarpAddsUpARepeatedIdAlone) {
    if (TestDriver::Asked()) GTEST_SKIP() << "the counters are the interpreter's";
    quick_ = false;
    const struct Size {
        const char *name;
        int count, cols;
        int64_t rows;
        uint64_t equal, random; // bounds
    } sizes[] = {
        {"tabular", 17, 16, 1024, 1200, 1200},
        {"bytes", 256, 128, 4096, 4800, 2400},
        {"kinds of tokens", 2, 64, 4096, 4800, 4800},
        {"words", 5000, 64, 4096, 4800, 3600},
    };
    for (const Size &s : sizes) {
        EXPECT_LE(LongestWarp(Of(s.count, s.cols), s.rows, s.count, Equal), s.equal) << s.name << ", equal ids";
        EXPECT_LE(LongestWarp(Of(s.count, s.cols), s.rows, s.count, Random), s.random) << s.name << ", random ids";
    }
}

} // namespace
