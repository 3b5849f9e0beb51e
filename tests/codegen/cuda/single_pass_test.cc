// single_pass_test.cc: sums of sums in the launch of the first: which kernels share one, that the oracle agrees, and
// that the bits are the same as with two launches.
#include "tests/codegen/cuda/cuda_run.h"

namespace {

// As a batch norm's statistics: each sample has 50 rows.
const char statistics[] = R"(  input %x : f16[N, 50, COLS]
  input %w : f32[COLS]
  %f = cast(%x) : f32[N, 50, COLS]
  %s = reduce_sum(%f; dims = (1)) : f32[N, COLS]
  %q = mul(%f, %f) : f32[N, 50, COLS]
  %t = reduce_sum(%q; dims = (1)) : f32[N, COLS]
  %ss = reduce_sum(%s; dims = (0)) : f32[COLS]
  %ts = reduce_sum(%t; dims = (0)) : f32[COLS]
  %m = mul(%ss, %w) : f32[COLS]
  %v = sub(%ts, %m) : f32[COLS]
  result v = %v
  result m = %m
  result s = %s
)";

class SinglePass : public CudaRunTest {
  protected:
    // By launch: how many kernels it has, and its tickets.
    static std::vector<std::pair<int, int>> Launches(const CudaModule *cuda) {
        const CudaProgram &p = cuda->programs.data[0];
        std::vector<std::pair<int, int>> all;
        for (int i = 0; i < p.kernels.len; i++)
            all.emplace_back(p.kernels.data[i].members.len, p.kernels.data[i].tickets);
        return all;
    }
    using Expected = std::vector<std::pair<int, int>>;
};

TEST_F(SinglePass, BothPassesAreOneLaunch) {
    for (const auto &[cols, tickets] : {std::pair<const char *, int>{"5", 1}, {"32", 1}, {"70", 3}, {"96", 3}}) {
        const Built b = Build(Text(With(statistics, "COLS", cols)));
        ASSERT_NE(b.ptx, nullptr);
        EXPECT_EQ(Launches(b.cuda), (Expected{{2, tickets}})) << Functions(b.cuda);
        Check(Text(With(statistics, "COLS", cols)), {1, 2, 33}, 2e-3);
    }
}

// However many rows a sample has: as many rows at once in both passes, fewer of a sample of few.
TEST_F(SinglePass, PassesHaveEquallyManyRows) {
    quick_ = false;
    for (const auto &[cols, rows, tickets] : {std::tuple<const char *, const char *, int>{"40", "7000", 2},
                                              {"17", "16384", 1},
                                              {"64", "5", 2},
                                              {"72", "33", 3}}) {
        std::string text = With(statistics, "COLS", cols);
        for (size_t at; (at = text.find(" 50,")) != std::string::npos;)
            text.replace(at, 4, std::string(" ") + rows + ",");
        const Built b = Build(Text(text));
        ASSERT_NE(b.ptx, nullptr);
        EXPECT_EQ(Launches(b.cuda), (Expected{{2, tickets}})) << Functions(b.cuda);
        Check(Text(text), {1, 3}, 2e-2);
    }
}

// Each sample's sums, made by a launch that has no second pass, are the input of one that has no first.
TEST_F(SinglePass, HasTheBitsOfTwoLaunches) {
    const Built both = Build(Text(With(statistics, "COLS", "70")));
    const Built first = Build(Text(R"(  input %x : f16[N, 50, 70]
  %f = cast(%x) : f32[N, 50, 70]
  %s = reduce_sum(%f; dims = (1)) : f32[N, 70]
  %q = mul(%f, %f) : f32[N, 50, 70]
  %t = reduce_sum(%q; dims = (1)) : f32[N, 70]
  result s = %s
  result t = %t
)"));
    const Built second = Build(Text(R"(  input %s : f32[N, 70]
  input %t : f32[N, 70]
  input %w : f32[70]
  %ss = reduce_sum(%s; dims = (0)) : f32[70]
  %ts = reduce_sum(%t; dims = (0)) : f32[70]
  %m = mul(%ss, %w) : f32[70]
  %v = sub(%ts, %m) : f32[70]
  result v = %v
  result m = %m
)"));
    ASSERT_TRUE(both.ptx && first.ptx && second.ptx);
    EXPECT_EQ(Launches(first.cuda), (Expected{{1, 0}}));
    EXPECT_EQ(Launches(second.cuda), (Expected{{1, 0}}));
    for (int64_t n : {1, 37, 300}) {
        Values given = Draw(both.m, both.m->funcs.data[0], n);
        const Values got = RunOnCuda(both.cuda, *both.ptx, n, given);
        for (const auto &sums : RunOnCuda(first.cuda, *first.ptx, n, given)) given[sums.first] = sums.second;
        ExpectSame(got, RunOnCuda(second.cuda, *second.ptx, n, given), "two launches: ");
    }
}

// Counters are zero again after each launch, whatever the order of blocks.
TEST_F(SinglePass, RunsAgain) {
    const Built b = Build(Text(With(statistics, "COLS", "70")));
    ASSERT_NE(b.ptx, nullptr);
    const Func *f = b.m->funcs.data[0];
    CudaRun run(b.cuda, *b.ptx, f->name, 9);
    for (uint64_t seed : {1, 2, 4}) {
        Values given = Draw(b.m, f, 9);
        for (double &x : given.at("x")) x *= static_cast<double>(seed);
        Values after = given;
        const Values want = Interpret(f, 9, &after);
        run.Set(given);
        ASSERT_EQ(run.RunToFault(seed), "");
        for (int i = 0; i < f->results.len; i++) {
            const Result &r = f->results.data[i];
            Compare(run.Get(run.BufferOf(r.value)), want.at(ir_value(f, r.value)->name), 2e-3, r.name);
        }
    }
}

// Kernels that add what one first pass has made for each of them.
TEST_F(SinglePass, TwoSecondPassesShareAFirst) {
    const char text[] = R"(  input %x : f32[N, 20, 40]
  input %y : f32[N, 20, 40]
  %s = reduce_sum(%x; dims = (1)) : f32[N, 40]
  %p = mul(%x, %y) : f32[N, 20, 40]
  %t = reduce_sum(%p; dims = (1)) : f32[N, 40]
  %ss = reduce_sum(%s; dims = (0)) : f32[40]
  %ts = reduce_sum(%t; dims = (0)) : f32[40]
  result ss = %ss
  result ts = %ts
)";
    const Built b = Build(Text(text));
    ASSERT_NE(b.ptx, nullptr);
    EXPECT_EQ(Launches(b.cuda)[0].second, 2) << Functions(b.cuda);
    EXPECT_EQ(Launches(b.cuda).size(), 1u) << Functions(b.cuda);
    Check(Text(text), {1, 40}, 1e-4);
}

// Keys of random numbers are sizes of the launch, too; a runtime takes 16.
TEST_F(SinglePass, SizesOfBothPasses) {
    std::string body = "  input %x : f32[N, 20, 40]\n  state %seed : i64\n  state %step : i64\n"
                       "  %t0 = reduce_sum(%x; dims = (1)) : f32[N, 40]\n";
    for (int i = 0; i < EMIT_MOST_KEYS + 1; i++)
        body += With(With(R"(  %r# = random(%t0, %seed, %step; key = "a#") : f32[N, 40]
  %tNEXT = mul(%t#, %r#) : f32[N, 40]
)",
                          "NEXT", std::to_string(i + 1)),
                     "#", std::to_string(i));
    body += "  %y = reduce_sum(%t" + std::to_string(EMIT_MOST_KEYS + 1) + "; dims = (0)) : f32[40]\n  result y = %y\n";
    const std::string text = Text(body, "state %seed : i64 counter\nstate %step : i64 counter\n");
    const Built b = Build(text);
    ASSERT_NE(b.ptx, nullptr);
    EXPECT_EQ(Launches(b.cuda), (Expected{{2, 2}})) << Functions(b.cuda);
    EXPECT_EQ(b.cuda->programs.data[0].kernels.data[0].body.sizes.len, 3 + 2 + EMIT_MOST_KEYS);
    Check(text, {1, 9}, 1e-4);
}

// A state that the first reads and the second writes, sums that are read at other places, other columns: two launches.
TEST_F(SinglePass, KernelsThatMayNotShareALaunch) {
    const char state[] = R"(  state %m : f32[40]
  input %x : f32[N, 20, 40]
  %d = sub(%x, %m) : f32[N, 20, 40]
  %s = reduce_sum(%d; dims = (1)) : f32[N, 40]
  %ss = reduce_sum(%s; dims = (0)) : f32[40]
  assign(%m, %ss)
)";
    const char moved[] = R"(  input %x : f32[40, 20, 40]
  input %w : f32[N]
  %s = reduce_sum(%x; dims = (1)) : f32[40, 40]
  %p = permute(%s; dims = (1, 0)) : f32[40, 40]
  %q = mul(%p, %p) : f32[40, 40]
  %ss = reduce_sum(%q; dims = (0)) : f32[40]
  %e = extent(%w) : f32
  %r = mul(%ss, %e) : f32[40]
  result r = %r
)";
    const char other[] = R"(  input %x : f32[N, 20, 40]
  input %y : f32[N, 40]
  %s = reduce_sum(%x; dims = (1)) : f32[N, 40]
  %ys = reduce_sum(%y; dims = (0)) : f32[40]
  result s = %s
  result ys = %ys
)";
    for (const std::string &text : {Text(state, "state %m : f32[40] buffer\n"), Text(moved), Text(other)}) {
        const Built b = Build(text);
        ASSERT_NE(b.ptx, nullptr);
        for (const auto &launch : Launches(b.cuda)) EXPECT_EQ(launch.second, 0) << Functions(b.cuda);
    }
    Check(Text(moved), {2}, 1e-3);
}

} // namespace
