// reduce_test.cc: sums, maxima and minima along rows and columns: near the float64 interpreter, and of the same bits
// fused and not.
#include "tests/codegen/cuda/cuda_run.h"

namespace {

const char softmax[] = R"(  input %x : f16[N, COLS]
  input %g : f32[COLS]
  input %i : i32[N]
  input %j : i32[N, COLS]
  %f = cast(%x) : f32[N, COLS]
  %m = reduce_max(%f; dims = (1), keep = true) : f32[N, 1]
  %d = sub(%f, %m) : f32[N, COLS]
  %e = exp(%d) : f32[N, COLS]
  %s = reduce_sum(%e; dims = (1), keep = true) : f32[N, 1]
  %y = div(%e, %s) : f32[N, COLS]
  %z = mul(%y, %g) : f32[N, COLS]
  %h = cast(%z) : f16[N, COLS]
  %b = broadcast(%i, %y; dims = (1)) : i32[N, COLS]
  %io = iota(%b) : i32[N, COLS]
  %q = eq(%io, %b) : bool[N, COLS]
  %zero = const(; value = 0.0) : f32
  %p = select(%q, %y, %zero) : f32[N, COLS]
  %t = reduce_sum(%p; dims = (1)) : f32[N]
  %lo = reduce_min(%f; dims = (1)) : f32[N]
  %js = reduce_max(%j; dims = (1)) : i32[N]
  %fin = is_finite(%y) : bool[N, COLS]
  %bad = not(%fin) : bool[N, COLS]
  %any = reduce_or(%bad) : bool
  %ls = log(%s) : f32[N, 1]
  result h = %h
  result t = %t
  result lo = %lo
  result js = %js
  result any = %any
  result ls = %ls
)";

class Reduce : public CudaRunTest {
  protected:
    // Results of the two do not differ in a bit.
    void SameFusedOrNot(const std::string &text, int64_t n) {
        Built fused = Build(text, false), single = Build(text, true);
        ASSERT_TRUE(fused.ptx && single.ptx);
        const Values given = Draw(fused.m, fused.m->funcs.data[0], n);
        ExpectSame(RunOnCuda(fused.cuda, *fused.ptx, n, given), RunOnCuda(single.cuda, *single.ptx, n, given),
                   "not fused: ");
    }

    // Results of one run after another, with blocks in other orders.
    void SameInEveryOrder(const std::string &text, int64_t n) {
        const Built b = Build(text);
        ASSERT_NE(b.ptx, nullptr);
        const Func *f = b.m->funcs.data[0];
        const Values given = Draw(b.m, f, n);
        std::vector<std::vector<double>> first;
        CudaRun run(b.cuda, *b.ptx, f->name, n);
        for (uint64_t seed : {1, 2, 3, 4}) {
            run.Set(given);
            ASSERT_EQ(run.RunToFault(seed), "");
            std::vector<std::vector<double>> got;
            for (int i = 0; i < f->results.len; i++) got.push_back(run.Get(run.BufferOf(f->results.data[i].value)));
            if (first.empty()) first = got;
            EXPECT_EQ(got, first) << "seed " << seed;
        }
    }
};

TEST_F(Reduce, Rows) {
    for (const char *cols : SomeOf({"2", "7", "10", "33", "64", "130", "784", "1000", "1024"}))
        Check(Text(With(softmax, "COLS", cols)), {1, 19}, 2e-3);
}

// A block per row; past a few thousand columns values are computed again in each phase.
TEST_F(Reduce, WideRows) {
    for (const char *cols : SomeOf({"1025", "1536", "4096", "20000"}))
        Check(Text(With(softmax, "COLS", cols)), {3}, 2e-3);
}

TEST_F(Reduce, RowsHaveTheSameBitsFusedOrNot) {
    for (const char *cols : SomeOf({"10", "784", "3000"})) SameFusedOrNot(Text(With(softmax, "COLS", cols)), 9);
}

// A value that a phase in the middle makes, and that a result needs, which waits for the last load of a line: it is
// kept from the phase that makes it, not from the one in which the result might have been written.
TEST_F(Reduce, ResultsThatWaitForALaterPhase) {
    const char text[] = R"(  input %x : f32[N, COLS]
  input %w : f32[N, COLS]
  %s = reduce_sum(%x; dims = (1), keep = true) : f32[N, 1]
  %a = mul(%w, %w) : f32[N, COLS]
  %b = mul(%a, %s) : f32[N, COLS]
  %t = reduce_sum(%b; dims = (1), keep = true) : f32[N, 1]
  %c = mul(%w, %t) : f32[N, COLS]
  %e = sin(%a) : f32[N, COLS]
  result e = %e
  result c = %c
)";
    for (const char *cols : SomeOf({"4", "33", "1000", "3000"})) Check(Text(With(text, "COLS", cols)), {1, 9}, 2e-3);
}

// A maximum over zeros of both signs, infinities and NaN: all lanes of a row agree.
TEST_F(Reduce, SpecialNumbers) {
    Built b = Build(Text(R"(  input %x : f32[N, 40]
  %m = reduce_max(%x; dims = (1), keep = true) : f32[N, 1]
  %l = reduce_min(%x; dims = (1), keep = true) : f32[N, 1]
  %d = sub(%x, %m) : f32[N, 40]
  %t = mul(%x, %l) : f32[N, 40]
  result m = %m
  result l = %l
  result d = %d
  result t = %t
)"));
    ASSERT_NE(b.ptx, nullptr);
    Values given;
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 40; c++)
            given["x"].push_back(r == 0              ? (c % 3 ? 0.0 : -0.0)
                                 : r == 1 && c == 17 ? NAN
                                 : r == 2 && c == 39 ? -INFINITY
                                                     : c);
    Values got = RunOnCuda(b.cuda, *b.ptx, 4, given);
    EXPECT_EQ(got["m"][0], 0.0);
    EXPECT_TRUE(std::isnan(got["m"][1]) && std::isnan(got["l"][1]));
    EXPECT_EQ(got["l"][2], -INFINITY);
    EXPECT_EQ(got["m"][2], 38.0);
    EXPECT_EQ(got["m"][3], 39.0);
    for (int c = 0; c < 40; c++) EXPECT_EQ(got["d"][static_cast<size_t>(120 + c)], c - 39.0);
}

const char columns[] = R"(  input %x : f16[N, COLS]
  input %y : f32[N]
  input %c : f32[COLS]
  input %r : f32[N, 1]
  %f = cast(%x) : f32[N, COLS]
  %g = add(%f, %c) : f32[N, COLS]
  %k = mul(%g, %r) : f32[N, COLS]
  %s = reduce_sum(%k; dims = (0)) : f32[COLS]
  %h = cast(%s) : f16[COLS]
  %m = reduce_max(%f; dims = (0)) : f32[COLS]
  %w = add(%m, %c) : f32[COLS]
  %t = reduce_sum(%y; dims = (0)) : f32
  %n = extent(%y) : f32
  %mean = div(%t, %n) : f32
  %fin = is_finite(%k) : bool[N, COLS]
  %bad = not(%fin) : bool[N, COLS]
  %any = reduce_or(%bad) : bool
  result h = %h
  result w = %w
  result mean = %mean
  result any = %any
)";

TEST_F(Reduce, Columns) {
    for (const char *cols : SomeOf({"1", "7", "10", "33", "512"}))
        Check(Text(With(columns, "COLS", cols)), {1, 7, 600}, 5e-3);
}

TEST_F(Reduce, ColumnsHaveTheSameBitsFusedOrNot) {
    for (const char *cols : SomeOf({"3", "40"})) SameFusedOrNot(Text(With(columns, "COLS", cols)), 333);
}

// Per sample, and the squares around the mean of each.
TEST_F(Reduce, Segments) {
    for (const char *cols : SomeOf({"1", "5", "48"}))
        Check(Text(With(R"(  input %x : f32[N, 14, 14, COLS]
  input %small : f32[N, 3, COLS]
  %count = const(; value = 196.0) : f32
  %s = reduce_sum(%x; dims = (1, 2)) : f32[N, COLS]
  %m = div(%s, %count) : f32[N, COLS]
  %m4 = reshape(%m) : f32[N, 1, 1, COLS]
  %me = expand(%m4) : f32[N, 14, 14, COLS]
  %d = sub(%x, %me) : f32[N, 14, 14, COLS]
  %dd = mul(%d, %d) : f32[N, 14, 14, COLS]
  %v = reduce_sum(%dd; dims = (1, 2)) : f32[N, COLS]
  %all = reduce_sum(%v; dims = (0)) : f32[COLS]
  %sm = reduce_max(%small; dims = (1)) : f32[N, COLS]
  result m = %m
  result v = %v
  result d = %d
  result all = %all
  result sm = %sm
)",
                        "COLS", cols)),
              {1, 6}, 1e-4);
}

// As plan lets them: each phase reads again what it needs, so a result is written last.
TEST_F(Reduce, ResultsMayTakeThePlaceOfOperands) {
    const std::string row = R"(  input %x : f32[N, COLS]
  input %z : f32[N, COLS]
  %a = reduce_sum(%x; dims = (1), keep = true) : f32[N, 1]
  %d = sub(%x, %a) : f32[N, COLS]
  %e = mul(%d, %d) : f32[N, COLS]
  %b = reduce_sum(%e; dims = (1), keep = true) : f32[N, 1]
  %f = mul(%z, %b) : f32[N, COLS]
  %h = cast(%f) : f32[N, COLS]
  result d = %d
  result h = %h
)";
    for (const char *cols : SomeOf({"10", "1000", "20000"})) {
        const std::string text = Text(With(row, "COLS", cols));
        Built b = Build(text);
        ASSERT_NE(b.ptx, nullptr);
        ASSERT_EQ(b.cuda->programs.data[0].kernels.len, 1) << Print(b.m);
        const Func *f = b.m->funcs.data[0];
        const Values given = Draw(b.m, f, 3);
        const Values want = RunOnCuda(b.cuda, *b.ptx, 3, given);
        for (const char *of : {"x", "z"}) {
            CudaRun run(b.cuda, *b.ptx, f->name, 3);
            run.Share("d", of);
            run.Set(given);
            ASSERT_TRUE(run.Run());
            EXPECT_EQ(run.Get(run.BufferOf(ir_find(f, "d"))), want.at("d")) << cols << " in the place of " << of;
            EXPECT_EQ(run.Get(run.BufferOf(f->results.data[1].value)), want.at("h"))
                << cols << " in the place of " << of;
        }
    }
}

// What a warp asks for is side by side, in rows and in columns.
TEST_F(Reduce, SectorsAreIdeal) {
    if (TestDriver::Asked()) GTEST_SKIP() << "the counters are the interpreter's";
    Built b = Build(Text(R"(  input %x : f16[N, 784]
  input %y : f32[N, 512]
  %f = cast(%x) : f32[N, 784]
  %m = reduce_max(%f; dims = (1), keep = true) : f32[N, 1]
  %d = sub(%f, %m) : f32[N, 784]
  %h = cast(%d) : f16[N, 784]
  %hr = reshape(%h) : f16[N, 28, 28]
  %s = reduce_sum(%y; dims = (0)) : f32[512]
  result h = %hr
  result s = %s
)"));
    ASSERT_NE(b.ptx, nullptr);
    ExecCounters counters = {};
    RunOnCuda(b.cuda, *b.ptx, 64, Draw(b.m, b.m->funcs.data[0], 64), &counters);
    EXPECT_GT(counters.ideal_sectors, 0u);
    EXPECT_LE(counters.sectors, counters.ideal_sectors + counters.ideal_sectors / 25) << Functions(b.cuda);
    EXPECT_EQ(counters.bank_conflicts, 0u);
}

// A mean and the squares around it, over one row a sample: one kernel, which goes over the rows twice.
TEST_F(Reduce, ColumnsAgainWithWhatTheyReduced) {
    const char text[] = R"(  input %a : f32[N, 24]
  input %w : f32[24, COLS]
  %x = contract(%a, %w) : f32[N, COLS]
  %s = reduce_sum(%x; dims = (0)) : f32[COLS]
  %n = extent(%a; dims = (0)) : f32
  %m = div(%s, %n) : f32[COLS]
  %d = sub(%x, %m) : f32[N, COLS]
  %q = mul(%d, %d) : f32[N, COLS]
  %v = reduce_sum(%q; dims = (0)) : f32[COLS]
  %r = sqrt(%v) : f32[COLS]
  %top = reduce_max(%d; dims = (0)) : f32[COLS]
  result m = %m
  result r = %r
  result top = %top
)";
    for (const char *cols : SomeOf({"1", "7", "40"})) {
        const std::string given = Text(With(text, "COLS", cols));
        const Built b = Build(given);
        ASSERT_NE(b.ptx, nullptr);
        EXPECT_EQ(b.cuda->programs.data[0].kernels.len, 2) << Functions(b.cuda);
        Check(given, {1, 19, 130, 300}, 1e-3);
        for (int64_t n : {19, 700}) SameFusedOrNot(given, n);
    }
}

// Sums of every kind, a result for each element, and one that is made of the sums.
const char many_rows[] = R"(  input %x : f16[N, COLS]
  input %w : f32[COLS]
  %f = cast(%x) : f32[N, COLS]
  %s = reduce_sum(%f; dims = (0)) : f32[COLS]
  %q = mul(%f, %f) : f32[N, COLS]
  %t = reduce_sum(%q; dims = (0)) : f32[COLS]
  %top = reduce_max(%f; dims = (0)) : f32[COLS]
  %m = mul(%s, %w) : f32[COLS]
  %h = mul(%f, %w) : f32[N, COLS]
  result m = %m
  result t = %t
  result top = %top
  result h = %h
)";

// Several blocks have the rows of a column: 2,048 each of one column, 256 of 32 columns.
TEST_F(Reduce, ColumnsOfManyRowsAreInParts) {
    for (const auto &[cols, sizes] : {std::pair<const char *, std::vector<int64_t>>{"1", {1, 2048, 2049, 5000}},
                                      {"7", {293, 3000}},
                                      {"40", {255, 256, 257, 1000}},
                                      {"96", {1, 513}}}) {
        SCOPED_TRACE(cols);
        const std::string given = Text(With(many_rows, "COLS", cols));
        const Built b = Build(given);
        ASSERT_NE(b.ptx, nullptr);
        const CudaProgram &p = b.cuda->programs.data[0];
        const CudaKernelEntry &e = p.kernels.data[p.kernels.len - 1];
        EXPECT_TRUE(e.body.partials) << Functions(b.cuda);
        EXPECT_EQ(e.forms.data[0].launch.per[0], cols == std::string("1") ? 2048 : 256);
        Check(given, sizes, 2e-3);
    }
}

// Wide rows fill a device by themselves.
TEST_F(Reduce, ColumnsOfWideRowsAreNot) {
    const Built b = Build(Text(With(many_rows, "COLS", "4096")));
    ASSERT_NE(b.ptx, nullptr);
    EXPECT_FALSE(b.cuda->programs.data[0].kernels.data[0].body.partials);
}

// Whatever the order of blocks, and again: tickets are zero after each launch.
TEST_F(Reduce, ColumnsInPartsHaveTheSameBits) { SameInEveryOrder(Text(With(many_rows, "COLS", "40")), 1500); }

// The mean, squares around it, and their fourth power as a share: sums that need the sums before them.
const char phases_over_rows[] = R"(  input %x : f16[N, COLS]
  %f = cast(%x) : f32[N, COLS]
  %s = reduce_sum(%f; dims = (0)) : f32[COLS]
  %n = extent(%x; dims = (0)) : f32
  %m = div(%s, %n) : f32[COLS]
  %d = sub(%f, %m) : f32[N, COLS]
  %q = mul(%d, %d) : f32[N, COLS]
  %v = reduce_sum(%q; dims = (0)) : f32[COLS]
  %one = const(; value = 1.0) : f32
  %w = add(%v, %one) : f32[COLS]
  %z = div(%q, %w) : f32[N, COLS]
  %k = reduce_sum(%z; dims = (0)) : f32[COLS]
  %top = reduce_max(%d; dims = (0)) : f32[COLS]
  result m = %m
  result w = %w
  result k = %k
  result top = %top
)";

TEST_F(Reduce, PhasesOverManyRowsAreInParts) {
    for (const auto &[cols, sizes] : {std::pair<const char *, std::vector<int64_t>>{"1", {1, 2048, 5000}},
                                      {"7", {293, 3000}},
                                      {"40", {1, 255, 256, 257, 1000}},
                                      {"96", {513}}}) {
        SCOPED_TRACE(cols);
        const std::string given = Text(With(phases_over_rows, "COLS", cols));
        const Built b = Build(given);
        ASSERT_NE(b.ptx, nullptr);
        const CudaProgram &p = b.cuda->programs.data[0];
        const CudaKernelEntry &e = p.kernels.data[p.kernels.len - 1];
        EXPECT_TRUE(e.body.partials) << Functions(b.cuda);
        EXPECT_EQ(e.forms.data[0].launch.extent[2].mul, 3 * ((atoi(cols) + 31) / 32)) << "a block for each phase";
        Check(given, sizes, 2e-3);
    }
    SameFusedOrNot(Text(With(phases_over_rows, "COLS", "40")), 700);
}

// Counters of what has begun, of parts that are kept and of the last block are zero after each launch.
TEST_F(Reduce, PhasesInPartsHaveTheSameBits) { SameInEveryOrder(Text(With(phases_over_rows, "COLS", "40")), 900); }

// Equal ones as a batch, and beside sums of other shapes in a bundle.
TEST_F(Reduce, PhasesInPartsShareALaunch) {
    std::string inputs = "  input %n : f32[N, 3]\n", ops = R"(  %rows = extent(%n; dims = (0)) : f32
  %t = reduce_sum(%n; dims = (0)) : f32[3]
)",
                results = "  result t = %t\n";
    for (const auto &[name, cols] : {std::pair<const char *, const char *>{"a", "40"}, {"b", "40"}, {"c", "8"}}) {
        const auto add = [&](std::string *to, const char *line) {
            *to += With(With(line, "NAME", name), "COLS", cols);
        };
        add(&inputs, "  input %NAME : f32[N, COLS]\n");
        add(&ops, R"(  %sNAME = reduce_sum(%NAME; dims = (0)) : f32[COLS]
  %mNAME = div(%sNAME, %rows) : f32[COLS]
  %dNAME = sub(%NAME, %mNAME) : f32[N, COLS]
  %qNAME = mul(%dNAME, %dNAME) : f32[N, COLS]
  %vNAME = reduce_sum(%qNAME; dims = (0)) : f32[COLS]
)");
        add(&results, "  result mNAME = %mNAME\n  result vNAME = %vNAME\n");
    }
    const std::string given = Text(inputs + ops + results);
    const Built b = Build(given);
    ASSERT_NE(b.ptx, nullptr);
    EXPECT_EQ(b.cuda->programs.data[0].kernels.len, 1) << Functions(b.cuda);
    Check(given, {1, 300, 1100}, 2e-3);
    SameFusedOrNot(given, 700);
}

// More sums than a block keeps: one block makes all parts.
TEST_F(Reduce, PartsOfManySumsHaveTheSameBits) {
    SameFusedOrNot(Text(R"(  input %x : f32[N, 40]
  %a = reduce_sum(%x; dims = (0)) : f32[40]
  %b = reduce_max(%x; dims = (0)) : f32[40]
  %c = reduce_min(%x; dims = (0)) : f32[40]
  %q = mul(%x, %x) : f32[N, 40]
  %d = reduce_sum(%q; dims = (0)) : f32[40]
  %r = mul(%q, %x) : f32[N, 40]
  %e = reduce_sum(%r; dims = (0)) : f32[40]
  result a = %a
  result b = %b
  result c = %c
  result d = %d
  result e = %e
)"),
                   700);
}

// In a bundle, where a block may have more threads than a part takes.
TEST_F(Reduce, ColumnsInPartsOfABundle) {
    const std::string given = Text(R"(  input %x : f16[N, 40]
  input %y : f16[N, 3]
  input %z : f16[N, 40]
  %f = cast(%x) : f32[N, 40]
  %s = reduce_sum(%f; dims = (0)) : f32[40]
  %g = cast(%y) : f32[N, 3]
  %t = reduce_sum(%g; dims = (0)) : f32[3]
  %h = cast(%z) : f32[N, 40]
  %u = reduce_sum(%h; dims = (0)) : f32[40]
  result s = %s
  result t = %t
  result u = %u
)");
    const Built b = Build(given);
    ASSERT_NE(b.ptx, nullptr);
    EXPECT_EQ(b.cuda->programs.data[0].kernels.len, 1) << Functions(b.cuda);
    EXPECT_GT(b.cuda->programs.data[0].kernels.data[0].parts.len, 1);
    Check(given, {1, 700, 2500}, 2e-3);
}

// Equal kernels over fixed shapes are brought together and launched as one, wherever they were; others are not.
TEST_F(Reduce, EqualRowsShareALaunch) {
    const Built b = Build(Text(R"(  input %a : f32[70, 40]
  input %b : f32[70, 40]
  input %c : f32[70, 40]
  input %d : f32[9, 40]
  input %x : f32[N, 40]
  %aa = mul(%a, %a) : f32[70, 40]
  %as = reduce_sum(%aa; dims = (1)) : f32[70]
  %dd = mul(%d, %d) : f32[9, 40]
  %ds = reduce_sum(%dd; dims = (1)) : f32[9]
  %bb = mul(%b, %b) : f32[70, 40]
  %bs = reduce_sum(%bb; dims = (1)) : f32[70]
  %xs = reduce_sum(%x; dims = (1)) : f32[N]
  %cc = mul(%c, %c) : f32[70, 40]
  %cs = reduce_sum(%cc; dims = (1)) : f32[70]
  %ass = reduce_sum(%as; dims = (0)) : f32
  result as = %as
  result bs = %bs
  result cs = %cs
  result ds = %ds
  result xs = %xs
  result ass = %ass
)"));
    ASSERT_NE(b.ptx, nullptr);
    const CudaProgram *p = &b.cuda->programs.data[0];
    std::vector<int> members;
    for (int i = 0; i < p->kernels.len; i++) {
        const CudaKernelEntry &e = p->kernels.data[i];
        for (int part = 0; part < e.parts.len; part++) members.push_back(e.parts.data[part].members); // of other shapes
    }
    EXPECT_EQ(members, (std::vector<int>{3, 1, 1, 1}));
    for (int64_t n : {1, 5}) {
        Values given = Draw(b.m, p->func, n), after = given;
        const Values want = Interpret(p->func, n, &after), got = RunOnCuda(b.cuda, *b.ptx, n, given);
        for (const char *name : {"as", "bs", "cs", "ds", "xs", "ass"}) Compare(got.at(name), want.at(name), 1e-5, name);
    }
}

// So do sums of columns whose rows depend on n, with and without segments, and tiles of one shape that move elements.
TEST_F(Reduce, EqualColumnsAndMovesShareALaunch) {
    const Built b = Build(Text(R"(  input %a : f32[N, 6, 40]
  input %b : f32[N, 6, 40]
  input %c : f32[N, 40]
  input %d : f32[N, 40]
  input %w : f32[3, 5, 7]
  input %v : f32[3, 5, 7]
  %ap = permute(%a; dims = (0, 2, 1)) : f32[N, 40, 6]
  %wp = permute(%w; dims = (0, 2, 1)) : f32[3, 7, 5]
  %as = reduce_sum(%a; dims = (1)) : f32[N, 40]
  %cs = reduce_sum(%c; dims = (0)) : f32[40]
  %bp = permute(%b; dims = (0, 2, 1)) : f32[N, 40, 6]
  %vp = permute(%v; dims = (0, 2, 1)) : f32[3, 7, 5]
  %bs = reduce_sum(%b; dims = (1)) : f32[N, 40]
  %ds = reduce_sum(%d; dims = (0)) : f32[40]
  result ap = %ap
  result bp = %bp
  result as = %as
  result bs = %bs
  result cs = %cs
  result ds = %ds
  result wp = %wp
  result vp = %vp
)"));
    ASSERT_NE(b.ptx, nullptr);
    const CudaProgram *p = &b.cuda->programs.data[0];
    std::vector<int> members;
    for (int i = 0; i < p->kernels.len; i++) {
        const CudaKernelEntry &e = p->kernels.data[i];
        for (int part = 0; part < e.parts.len; part++) members.push_back(e.parts.data[part].members); // beside others
    }
    EXPECT_EQ(members, (std::vector<int>{2, 2, 2, 2})) << Functions(b.cuda);
    for (int64_t n : {1, 5, 70}) {
        Values given = Draw(b.m, p->func, n), after = given;
        const Values want = Interpret(p->func, n, &after), got = RunOnCuda(b.cuda, *b.ptx, n, given);
        for (int i = 0; i < p->func->results.len; i++) {
            const char *name = p->func->results.data[i].name;
            Compare(got.at(name), want.at(name), 1e-5, name);
        }
    }
}

// Sums of as many parts are one launch, whatever the size of a part.
TEST_F(Reduce, SumsOfPartsShareALaunch) {
    const Built b = Build(Text(R"(  input %x : f32[N, 64, 64]
  input %y : f32[N, 64, 32]
  input %z : f32[N, 64, 2]
  %a = contract(%x, %x; ta = true) : f32[64, 64]
  %b = contract(%x, %y; ta = true) : f32[64, 32]
  %c = contract(%x, %z; ta = true) : f32[64, 2]
  result a = %a
  result b = %b
  result c = %c
)"));
    ASSERT_NE(b.ptx, nullptr);
    const CudaProgram *p = &b.cuda->programs.data[0];
    ASSERT_EQ(p->kernels.len, 2) << Functions(b.cuda); // the products are one, too
    EXPECT_EQ(p->kernels.data[1].members.len, 3) << Functions(b.cuda);
    for (int64_t n : {1, 9}) {
        Values given = Draw(b.m, p->func, n), after = given;
        const Values want = Interpret(p->func, n, &after), got = RunOnCuda(b.cuda, *b.ptx, n, given);
        for (const char *name : {"a", "b", "c"}) Compare(got.at(name), want.at(name), 2e-3, name);
    }
}

} // namespace
