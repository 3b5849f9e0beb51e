// move_test.cc: ops that make their result from memory: movement, tables, batched products, convolutions in groups.
#include "tests/codegen/core_model.h"

namespace {

TEST_F(CoreModelTest, Permute) {
    Check(Text(R"(  input %x : f32[N, 5, 6, 37]
  input %i : i32[N, 3, 4]
  input %b : bool[4, 40]
  %two = const(; value = 2.0) : f32
  %x2 = mul(%x, %two) : f32[N, 5, 6, 37]
  %nchw = permute(%x2; dims = (0, 3, 1, 2)) : f32[N, 37, 5, 6]
  %nhwc = permute(%nchw; dims = (0, 2, 3, 1)) : f32[N, 5, 6, 37]
  %keep = permute(%x; dims = (1, 0, 2, 3)) : f32[5, N, 6, 37]
  %keep2 = add(%keep, %two) : f32[5, N, 6, 37]
  %h = cast(%x) : f16[N, 5, 6, 37]
  %hp = permute(%h; dims = (0, 3, 2, 1)) : f16[N, 37, 6, 5]
  %sum = reduce_sum(%nchw; dims = (3)) : f32[N, 37, 5]
  %ip = permute(%i; dims = (2, 0, 1)) : i32[4, N, 3]
  %bt = permute(%b; dims = (1, 0)) : bool[40, 4]
  result nchw = %nchw
  result nhwc = %nhwc
  result keep = %keep2
  result hp = %hp
  result sum = %sum
  result ip = %ip
  result bt = %bt
)"),
          {1, 4}, 1e-5);
}

// What a product reads is stored in panels, also where it is one number a row; a trained [1, C] does as a master.
TEST_F(CoreModelTest, OneNumberPerRowOrColumnInPanels) {
    Check(Text(R"(  input %x : f32[N, 40]
  input %w : f32[1, 5]
  state %p : f32[1, 40]
  state %q : f32[1, 70]
  input %u : f32[N, 70]
  %m = reduce_max(%x; dims = (1)) : f32[N]
  %v = reshape(%m) : f32[N, 1]
  %y = contract(%v, %w) : f32[N, 5]
  %e = eq(%x, %v) : bool[N, 40]
  %f = cast(%e) : f32[N, 40]
  %s = reduce_sum(%f; dims = (1), keep = true) : f32[N, 1]
  %g = div(%f, %s) : f32[N, 40]
  %h = add(%x, %p) : f32[N, 40]
  %k = mul(%u, %q) : f32[N, 70]
  %l = reduce_sum(%k; dims = (1), keep = true) : f32[N, 1]
  %o = sub(%k, %l) : f32[N, 70]
  result y = %y
  result g = %g
  result h = %h
  result k = %k
  result o = %o
)",
               "state %p : f32[1, 40] param = zeros()\nstate %q : f32[1, 70] param = zeros()\n"),
          {1, 4, 37}, 1e-5);
}

// The number of an element is its number in its own tensor, whatever kernel draws for it.
TEST_F(CoreModelTest, RandomNumbersOfOnePerRowColumnAndSegment) {
    Check(Text(R"(  input %x : f32[N, 6, 40]
  input %seed : i64
  input %step : i64
  %half = const(; value = 0.5) : f32
  %s = reduce_sum(%x; dims = (2), keep = true) : f32[N, 6, 1]
  %r = random(%s, %seed, %step; key = "rows") : f32[N, 6, 1]
  %a = mul(%s, %r) : f32[N, 6, 1]
  %b = add(%x, %a) : f32[N, 6, 40]
  %t = reduce_sum(%x; dims = (0, 1)) : f32[40]
  %q = random(%t, %seed, %step; key = "columns") : f32[40]
  %c = mul(%t, %q) : f32[40]
  %u = reduce_sum(%x; dims = (1)) : f32[N, 40]
  %p = random(%u, %seed, %step; key = "segments") : f32[N, 40]
  %d = mul(%u, %p) : f32[N, 40]
  %o = random(%half, %seed, %step; key = "one") : f32
  %e = mul(%x, %o) : f32[N, 6, 40]
  result a = %a
  result b = %b
  result c = %c
  result d = %d
  result e = %e
)"),
          {1, 4, 37}, 1e-5);
}

// What has N last is read where it is stored, n numbers a row.
TEST_F(CoreModelTest, RowsOfNNumbers) {
    Check(Text(R"(  input %x : f32[3, N]
  input %z : f32[2, 3, 2 * N]
  input %i : i32[2, N]
  input %table : f32[5, 4]
  %two = const(; value = 2.0) : f32
  %p = permute(%x; dims = (1, 0)) : f32[N, 3]
  %p2 = mul(%p, %two) : f32[N, 3]
  %q = permute(%z; dims = (2, 0, 1)) : f32[2 * N, 2, 3]
  %s = reduce_sum(%q; dims = (2)) : f32[2 * N, 2]
  %r = reshape(%x) : f32[N, 3]
  %r2 = mul(%r, %two) : f32[N, 3]
  %rows = gather(%table, %i) : f32[2, N, 4]
  result p = %p2
  result s = %s
  result r = %r2
  result rows = %rows
)"),
          {1, 4, 37}, 1e-5);
}

TEST_F(CoreModelTest, Reshape) {
    Check(Text(R"(  input %x : f32[N, 4, 3, 10]
  input %w : f32[5, 120]
  input %v : f32[6]
  input %g : f32[N]
  %k = const(; value = 0.5) : f32
  %a = reshape(%x) : f32[N, 120]
  %y = contract(%a, %w; tb = true) : f32[N, 5]
  %b = mul(%x, %k) : f32[N, 4, 3, 10]
  %c = reshape(%b) : f32[N, 2, 60]
  %d = add(%c, %k) : f32[N, 2, 60]
  %e = reshape(%d) : f32[N, 120]
  %f = contract(%e, %w; tb = true) : f32[N, 5]
  %m = reshape(%v) : f32[6, 1]
  %mm = mul(%m, %k) : f32[6, 1]
  %gg = reshape(%g) : f32[N, 1]
  %z = mul(%a, %gg) : f32[N, 120]
  %back = reshape(%z) : f32[4 * N, 30]
  %s = reduce_max(%back; dims = (1)) : f32[4 * N]
  %s4 = reshape(%s) : f32[N, 4]
  result y = %y
  result f = %f
  result m = %mm
  result back = %back
  result s = %s4
)"),
          {1, 5}, 2e-5);
}

TEST_F(CoreModelTest, SliceConcatPadExpand) {
    Check(Text(R"(  input %x : f32[N, 5, 40]
  input %p : f32[N, 5, 9]
  input %q : f32[5, 40]
  input %e : f32[N, 1, 40]
  input %i : i32[N, 7]
  input %c : f32[40]
  %k = const(; value = 1.5) : f32
  %big = mul(%x, %k) : f32[N, 5, 40]
  %s0 = slice(%big; dim = 1, from = 1, to = 4) : f32[N, 3, 40]
  %s1 = slice(%big; dim = 2, from = 32, to = 39) : f32[N, 5, 7]
  %s2 = slice(%big; dim = 2, from = 3, to = 36) : f32[N, 5, 33]
  %c0 = concat(%s0, %x; dim = 1) : f32[N, 8, 40]
  %c1 = concat(%s1, %p, %s2; dim = 2) : f32[N, 5, 49]
  %d0 = pad(%big; dim = 1, before = 1, after = 2, value = -3.0) : f32[N, 8, 40]
  %d1 = pad(%big; dim = 2, before = 2, after = 1) : f32[N, 5, 43]
  %di = pad(%i; dim = 1, before = 0, after = 3, value = 9.0) : i32[N, 10]
  %qe = expand(%q) : f32[N, 5, 40]
  %ee = expand(%e) : f32[N, 5, 40]
  %ce = expand(%c) : f32[N, 5, 40]
  %a = add(%qe, %ee) : f32[N, 5, 40]
  %b = add(%a, %ce) : f32[N, 5, 40]
  %all = mul(%b, %x) : f32[N, 5, 40]
  result s0 = %s0
  result c0 = %c0
  result c1 = %c1
  result d0 = %d0
  result d1 = %d1
  result di = %di
  result all = %all
)"),
          {1, 3}, 1e-6);
}

// Enough operands for halves of them to be told apart first; of unequal sizes, along a middle and the last dimension.
TEST_F(CoreModelTest, ConcatOfMany) {
    std::string text = "  input %x : f32[N, 7, 40]\n", middle, last;
    int size = 0; // of each result's concatenated dimension
    for (int n = 0; n < 21; n++) {
        const std::string at = std::to_string(n % 3), count = std::to_string(1 + n % 4), k = std::to_string(n);
        const std::string to = std::to_string(n % 3 + 1 + n % 4);
        text += "  %m" + k + " = slice(%x; dim = 1, from = " + at + ", to = " + to + ") : f32[N, " + count + ", 40]\n" +
                "  %l" + k + " = slice(%x; dim = 2, from = " + at + ", to = " + to + ") : f32[N, 7, " + count + "]\n";
        middle += (n ? ", %m" : "%m") + k;
        last += (n ? ", %l" : "%l") + k;
        size += 1 + n % 4;
    }
    text += "  %y = concat(" + middle + "; dim = 1) : f32[N, " + std::to_string(size) + ", 40]\n" + "  %z = concat(" +
            last + "; dim = 2) : f32[N, 7, " + std::to_string(size) + "]\n  result y = %y\n  result z = %z\n";
    Check(Text(text), {1, 3}, 0.0);
}

// Many operands of one form are found by their number: parts of one place and of two, in the order in which they are
// made and in another.
TEST_F(CoreModelTest, ConcatOfManyAlike) {
    for (int size : {1, 2}) {
        const std::string part = ", " + std::to_string(size) + ", 40]",
                          all = ", " + std::to_string(12 * size) + ", 40]";
        std::string text = "  input %x : f32[N" + part + "\n", forward, mixed;
        for (int n = 0; n < 12; n++) {
            const std::string k = std::to_string(n);
            text += "  %k" + k + " = const(; value = " + k + ".5) : f32\n  %p" + k + " = mul(%x, %k" + k + ") : f32[N" +
                    part + "\n";
            forward += (n ? ", %p" : "%p") + k;
            mixed += (n ? ", %p" : "%p") + std::to_string(n * 5 % 12);
        }
        text += "  %y = concat(" + forward + "; dim = 1) : f32[N" + all + "\n  %z = concat(" + mixed +
                "; dim = 1) : f32[N" + all + "\n  result y = %y\n  result z = %z\n";
        Check(Text(text), {1, 3, 33}, 0.0);
    }
}

// Slices along a middle dimension, in kernels that differ by where they begin alone.
TEST_F(CoreModelTest, SlicesOfMany) {
    std::string text =
        "  input %x : f32[N, 40, 33]\n  %k = const(; value = 1.5) : f32\n  %b = mul(%x, %k) : f32[N, 40, 33]\n";
    for (int n = 0; n < 40; n++) {
        const std::string k = std::to_string(n), to = std::to_string(n + 1);
        text += "  %s" + k + " = slice(%b; dim = 1, from = " + k + ", to = " + to + ") : f32[N, 1, 33]\n";
    }
    for (int n = 0; n < 40; n += 3) text += "  result s" + std::to_string(n) + " = %s" + std::to_string(n) + "\n";
    Check(Text(text), {1, 35}, 0.0);
}

TEST_F(CoreModelTest, TablesByIds) {
    Check(Text(R"(  input %t : f32[6, 37]
  input %ids : i32[N, 3]
  input %dy : f32[N, 3, 37]
  input %narrow : f32[6, 8]
  input %dn : f32[N, 3, 8]
  %two = const(; value = 2.0) : f32
  %t2 = mul(%t, %two) : f32[6, 37]
  %y = gather(%t2, %ids) : f32[N, 3, 37]
  %d = sub(%y, %dy) : f32[N, 3, 37]
  %sq = mul(%d, %d) : f32[N, 3, 37]
  %row = reduce_sum(%sq; dims = (2)) : f32[N, 3]
  %dt = scatter(%d, %ids) : f32[6, 37]
  %dt2 = mul(%dt, %two) : f32[6, 37]
  %g = gather(%narrow, %ids) : f32[N, 3, 8]
  %ds = scatter(%dn, %ids) : f32[6, 8]
  result d = %d
  result row = %row
  result dt = %dt2
  result g = %g
  result ds = %ds
)"),
          {1, 30}, 1e-5);
}

// Rows of a table that are read, each once, and written back.
TEST_F(CoreModelTest, RowsOfATable) {
    for (const char *size : {"[9, 37]", "[40, 64]", "[70, 5]"}) {
        const std::string table = size, cols = table.substr(table.find(','));
        std::string text = R"(  input %ids : i32[N, 3]
  input %dy : f32[N, 3COLS
  input %limit : f32
  state %w : f32TABLE
  %far = const(; value = 9.0) : f32
  %ok = lt(%limit, %far) : bool
  %column = reshape(%ids) : i32[3*N, 1]
  %line = reshape(%ids) : i32[3*N]
  %d = reshape(%dy) : f32[3*NCOLS
  %first, %rows, %seen = distinct_rows(%column, %w) : i32[3*N], i32[3*N], i32ROWS]
  %sums = scatter(%d, %first) : f32[3*NCOLS
  %had = gather(%w, %line) : f32[3*NCOLS
  %next = sub(%had, %sums) : f32[3*NCOLS
  assign(%w, %next, %rows) if %ok
  result first = %first
  result rows = %rows
  result sums = %sums
)";
        for (size_t at; (at = text.find("COLS")) != std::string::npos;) text.replace(at, 4, cols);
        text.replace(text.find("TABLE"), 5, table);
        text.replace(text.find("ROWS"), 4, table.substr(0, table.find(',')));
        Check(Text(text, "state %w : f32" + table + " param\n"), {1, 30}, 1e-5);
    }
}

// What there is beside the elements: bytes, powers, indexes along any dimension, random numbers of a micro-batch.
TEST_F(CoreModelTest, BytesPowersAndIndexes) {
    Check(Text(R"(  input %x : u8[N, 3, 40]
  input %i : i32[N, 3, 40]
  input %y : f32[N, 3, 4, 5]
  input %seed : i64
  input %step : i64
  input %micro : i64
  %f = cast(%x) : f32[N, 3, 40]
  %k = const(; value = 0.25) : f32
  %s = mul(%f, %k) : f32[N, 3, 40]
  %z = const(; value = -1.5) : f32
  %t = add(%s, %z) : f32[N, 3, 40]
  %a = abs(%t) : f32[N, 3, 40]
  %p = pow(%a; e = 1.7) : f32[N, 3, 40]
  %n = neg(%i) : i32[N, 3, 40]
  %ia = abs(%n) : i32[N, 3, 40]
  %i0 = iota(%y; dim = 0) : i32[N, 3, 4, 5]
  %i1 = iota(%y; dim = 1) : i32[N, 3, 4, 5]
  %i2 = iota(%y; dim = 2) : i32[N, 3, 4, 5]
  %i3 = iota(%y; dim = 3) : i32[N, 3, 4, 5]
  %j = add(%i0, %i1) : i32[N, 3, 4, 5]
  %j2 = mul(%i2, %i3) : i32[N, 3, 4, 5]
  %j3 = add(%j, %j2) : i32[N, 3, 4, 5]
  %r = random(%y, %seed, %step, %micro; key = "drop") : f32[N, 3, 4, 5]
  result p = %p
  result t = %t
  result ia = %ia
  result j = %j3
  result r = %r
)"),
          {1, 3}, 1e-6);
}

// Drawn by sample: of a row for each sample and token, of scores, of one column, of samples that do not lead.
const char kDrawn[] = R"(  input %a : f32[N, COLS, 12]
  input %b : f32[N, 2, COLS, COLS]
  input %c : f32[COLS, N, 12]
  input %d : f32[N, COLS, 1]
  input %e : f32[COLS, COLS, 3]
  input %seed : i64
  input %step : i64
  input %micro : i64
  %first = const(; value = 2199023255552.0) : i64
  %ra = random(%a, %seed, %step; key = "a") : f32[N, COLS, 12]
  %rb = random(%b, %seed, %step, %micro, %first; key = "b") : f32[N, 2, COLS, COLS]
  %rc = random(%c, %seed, %step, %micro, %first; key = "c") : f32[COLS, N, 12]
  %rd = random(%d, %seed, %step; key = "d") : f32[N, COLS, 1]
  %re = random(%e, %seed, %step; key = "e") : f32[COLS, COLS, 3]
  %ad = add(%ra, %d) : f32[N, COLS, 12]
  %y = mul(%ad, %rd) : f32[N, COLS, 12]
  %m = reduce_max(%rb; dims = (3), keep = true) : f32[N, 2, COLS, 1]
  %z = sub(%rb, %m) : f32[N, 2, COLS, COLS]
  result ra = %ra
  result rb = %rb
  result rc = %rc
  result re = %re
  result y = %y
  result z = %z
)";

// Samples are columns.
const char kDrawnByColumn[] = R"(  input %a : f32[12, N]
  input %b : f32[COLS, N]
  input %seed : i64
  input %step : i64
  %ra = random(%a, %seed, %step; key = "a") : f32[12, N]
  %rb = random(%b, %seed, %step; key = "b") : f32[COLS, N]
  result ra = %ra
  result rb = %rb
)";

// |body| with T, and with the number of this call.
void CheckLengths(const std::function<void(const std::string &)> &check, const std::string &body) {
    for (int64_t length : {5, 8}) {
        SCOPED_TRACE(length);
        std::string open = body, fixed = body;
        for (size_t at; (at = open.find("COLS")) != std::string::npos;) open.replace(at, 4, "T");
        for (size_t at; (at = fixed.find("COLS")) != std::string::npos;)
            fixed.replace(at, 4, "T=" + std::to_string(length));
        run_length = length;
        check("module \"core\" stage lower {\n  length 1024 unit 1\n}\nfunc infer {\n" + open + "}\n");
        run_length = 1;
        check("module \"core\" stage lower {\n}\nfunc infer {\n" + fixed + "}\n");
    }
}

TEST_F(CoreModelTest, RandomNumbersOfSamples) {
    CheckLengths([&](const std::string &text) { Check(text, {1, 3}, 1e-6); }, kDrawn);
}

TEST_F(CoreModelTest, RandomNumbersOfSamplesThatAreColumns) {
    CheckLengths([&](const std::string &text) { Check(text, {1, 19}, 1e-6); }, kDrawnByColumn);
}

TEST_F(CoreModelTest, BatchedProducts) {
    Check(Text(R"(  input %q : f32[N, 2, 5, 8]
  input %k : f32[N, 2, 7, 8]
  input %v : f32[N, 2, 7, 33]
  %h = cast(%v) : bf16[N, 2, 7, 33]
  %s = batch_contract(%q, %k; tb = true) : f32[N, 2, 5, 7]
  %m = reduce_max(%s; dims = (3), keep = true) : f32[N, 2, 5, 1]
  %c = sub(%s, %m) : f32[N, 2, 5, 7]
  %p = exp(%c) : f32[N, 2, 5, 7]
  %y = batch_contract(%p, %v) : f32[N, 2, 5, 33]
  %ph = cast(%p) : bf16[N, 2, 5, 7]
  %yh = batch_contract(%ph, %h) : f32[N, 2, 5, 33]
  %dv = batch_contract(%p, %y; ta = true) : f32[N, 2, 7, 33]
  result s = %s
  result y = %y
  result yh = %yh
  result dv = %dv
)"),
          {1, 3}, 2e-5);
}

// Operands that are other values at strides: heads side by side, parts of a row, one operand for all of a dim, matrices
// that are transposed in memory; also of one row, and of one column.
TEST_F(CoreModelTest, BatchedProductsOfWhatIsMoved) {
    Check(Text(R"(  input %x : f32[N, 5, 72]
  input %w : f32[2, 3, 7]
  input %i : f32[N, 6]
  %q = slice(%x; dim = 2, from = 0, to = 24) : f32[N, 5, 24]
  %k = slice(%x; dim = 2, from = 24, to = 48) : f32[N, 5, 24]
  %v = slice(%x; dim = 2, from = 48, to = 72) : f32[N, 5, 24]
  %q4 = reshape(%q) : f32[N, 5, 8, 3]
  %k4 = reshape(%k) : f32[N, 5, 8, 3]
  %v4 = reshape(%v) : f32[N, 5, 8, 3]
  %qh = permute(%q4; dims = (0, 2, 1, 3)) : f32[N, 8, 5, 3]
  %kh = permute(%k4; dims = (0, 2, 3, 1)) : f32[N, 8, 3, 5]
  %vh = permute(%v4; dims = (0, 2, 1, 3)) : f32[N, 8, 5, 3]
  %s = batch_contract(%qh, %kh) : f32[N, 8, 5, 5]
  %p = add(%s, %s) : f32[N, 8, 5, 5]
  %y = batch_contract(%p, %vh) : f32[N, 8, 5, 3]
  %m = permute(%y; dims = (0, 2, 1, 3)) : f32[N, 5, 8, 3]
  %z = reshape(%m) : f32[N, 5, 24]
  %t = add(%z, %z) : f32[N, 5, 24]
  %zh = cast(%m) : bf16[N, 5, 8, 3]
  %zq = permute(%zh; dims = (0, 2, 1, 3)) : bf16[N, 8, 5, 3]
  %zz = batch_contract(%zq, %zq; ta = true) : f32[N, 8, 3, 3]
  %we = reshape(%w) : f32[1, 2, 3, 7]
  %wn = expand(%we) : f32[N, 2, 3, 7]
  %i4 = reshape(%i) : f32[N, 2, 1, 3]
  %iw = batch_contract(%i4, %wn) : f32[N, 2, 1, 7]
  %o = batch_contract(%i4, %i4; ta = true) : f32[N, 2, 3, 3]
  %d = batch_contract(%i4, %i4; tb = true) : f32[N, 2, 1, 1]
  result s = %s
  result t = %t
  result zz = %zz
  result iw = %iw
  result o = %o
  result d = %d
)"),
          {1, 3}, 2e-5);
}

// What moves results: heads put together again, also through a cast and where a panel has several of them; transposes
// of the products; and what is read before it is moved, which stays as it is.
TEST_F(CoreModelTest, ResultsOfBatchedProductsThatAreMoved) {
    Check(Text(R"(  input %p : f32[N, 3, 5, 7]
  input %v : f32[N, 3, 7, 20]
  input %w : f32[60, 4]
  %y = batch_contract(%p, %v) : f32[N, 3, 5, 20]
  %h = cast(%y) : bf16[N, 3, 5, 20]
  %m = permute(%h; dims = (0, 2, 1, 3)) : bf16[N, 5, 3, 20]
  %z = reshape(%m) : bf16[N, 5, 60]
  %f = cast(%z) : f32[N, 5, 60]
  %o = contract(%f, %w) : f32[N, 5, 4]
  %t = batch_contract(%p, %v) : f32[N, 3, 5, 20]
  %tt = permute(%t; dims = (0, 1, 3, 2)) : f32[N, 3, 20, 5]
  %tm = permute(%tt; dims = (0, 2, 1, 3)) : f32[N, 20, 3, 5]
  %tz = reshape(%tm) : f32[N, 20, 15]
  %d = batch_contract(%p, %p; ta = true) : f32[N, 3, 7, 7]
  %dd = add(%d, %d) : f32[N, 3, 7, 7]
  %dm = permute(%d; dims = (0, 2, 1, 3)) : f32[N, 7, 3, 7]
  %dz = reshape(%dm) : f32[N, 7, 21]
  result f = %f
  result o = %o
  result tz = %tz
  result dd = %dd
  result dz = %dz
)"),
          {1, 3, 11}, 2e-5);
}

// The data gradient reads the weights of conv where they lie: whole, rounded, and in groups.
TEST_F(CoreModelTest, WeightsOfConvolutionsAreReadTransposed) {
    Check(Text(R"(  input %x : f32[N, 4, 5, 32]
  input %w : f32[3, 2, 32, 6]
  input %wg : f32[3, 3, 8, 64]
  input %dy : f32[N, 4, 4, 6]
  input %dyg : f32[N, 4, 5, 64]
  %t = permute(%w; dims = (0, 1, 3, 2)) : f32[3, 2, 6, 32]
  %dx = conv_data(%dy, %t; padding = (1, 0)) : f32[N, 4, 5, 32]
  %w.h = cast(%w) : bf16[3, 2, 32, 6]
  %y.h = cast(%dy) : bf16[N, 4, 4, 6]
  %t.h = permute(%w.h; dims = (0, 1, 3, 2)) : bf16[3, 2, 6, 32]
  %dx.h = conv_data(%y.h, %t.h; padding = (1, 0)) : f32[N, 4, 5, 32]
  %yg = conv(%x, %wg; padding = (1, 1), groups = 4) : f32[N, 4, 5, 64]
  %split = reshape(%wg) : f32[3, 3, 8, 4, 16]
  %turned = permute(%split; dims = (0, 1, 4, 3, 2)) : f32[3, 3, 16, 4, 8]
  %tg = reshape(%turned) : f32[3, 3, 16, 32]
  %dxg = conv_data(%dyg, %tg; padding = (1, 1), groups = 4) : f32[N, 4, 5, 32]
  %dwg = conv_weight(%x, %dyg; padding = (1, 1), groups = 4) : f32[3, 3, 8, 64]
  result yg = %yg
  result dx = %dx
  result dx.h = %dx.h
  result dxg = %dxg
  result dwg = %dwg
)"),
          {1, 3}, 2e-5);
}

TEST_F(CoreModelTest, ConvolutionInGroups) {
    Check(Text(R"(  input %x : f32[N, 6, 5, 34]
  input %wd : f32[3, 3, 1, 34]
  input %w2 : f32[3, 2, 17, 6]
  input %w2t : f32[3, 2, 3, 34]
  input %w32 : f32[1, 1, 17, 64]
  %y = conv(%x, %wd; stride = (2, 1), padding = (1, 1), groups = 34) : f32[N, 3, 5, 34]
  %dx = conv_data(%y, %wd; stride = (2, 1), padding = (1, 1), groups = 34) : f32[N, 6, 5, 34]
  %dw = conv_weight(%x, %y; stride = (2, 1), padding = (1, 1), groups = 34) : f32[3, 3, 1, 34]
  %y2 = conv(%x, %w2; padding = (1, 0), dilation = (1, 2), groups = 2) : f32[N, 6, 3, 6]
  %dx2 = conv_data(%y2, %w2t; padding = (1, 0), dilation = (1, 2), groups = 2) : f32[N, 6, 5, 34]
  %dw2 = conv_weight(%x, %y2; padding = (1, 0), dilation = (1, 2), groups = 2) : f32[3, 2, 17, 6]
  %y3 = conv(%x, %w32; groups = 2) : f32[N, 6, 5, 64]
  result y = %y
  result dx = %dx
  result dw = %dw
  result y2 = %y2
  result dx2 = %dx2
  result dw2 = %dw2
  result y3 = %y3
)"),
          {1, 2}, 1e-4);
}

} // namespace
