// held_row_test.cc: rows too long for registers are held in shared memory: read once, and of the same bits however much
// of a row is held.
#include "tests/codegen/cuda/planted.h"

namespace {

const char cross_entropy[] = R"(  input %x : TYPE[N, COLS]
  input %i : i32[N]
  %f = cast(%x) : f32[N, COLS]
  %m = reduce_max(%f; dims = (1), keep = true) : f32[N, 1]
  %d = sub(%f, %m) : f32[N, COLS]
  %e = exp(%d) : f32[N, COLS]
  %s = reduce_sum(%e; dims = (1), keep = true) : f32[N, 1]
  %l = log(%s) : f32[N, 1]
  %p = sub(%d, %l) : f32[N, COLS]
  %b = broadcast(%i, %p; dims = (1)) : i32[N, COLS]
  %io = iota(%b) : i32[N, COLS]
  %q = eq(%io, %b) : bool[N, COLS]
  %zero = const(; value = 0.0) : f32
  %one = const(; value = 1.0) : f32
  %t = select(%q, %p, %zero) : f32[N, COLS]
  %loss = reduce_sum(%t; dims = (1)) : f32[N]
  %y = exp(%p) : f32[N, COLS]
  %h = select(%q, %one, %zero) : f32[N, COLS]
  %g = sub(%y, %h) : f32[N, COLS]
  %o = cast(%g) : TYPE[N, COLS]
  result loss = %loss
  result o = %o
)";

// Two operands of different types, one of them no more than a number of a column besides.
const char softmax_gradient[] = R"(  input %x : f16[N, COLS]
  input %dy : f32[N, COLS]
  input %c : f32[COLS]
  %y = cast(%x) : f32[N, COLS]
  %z = mul(%dy, %c) : f32[N, COLS]
  %p = mul(%y, %z) : f32[N, COLS]
  %s = reduce_sum(%p; dims = (1), keep = true) : f32[N, 1]
  %d = sub(%z, %s) : f32[N, COLS]
  %g = mul(%y, %d) : f32[N, COLS]
  result g = %g
)";

// Rows of a temporary, which begin at multiples of 16 bytes.
const char with_pitch[] = R"(  input %a : f16[N, 8]
  input %w : f16[8, COLS]
  %1 = contract(%a, %w) : f32[N, COLS]
  %2 = cast(%1) : f16[N, COLS]
  %f = cast(%2) : f32[N, COLS]
  %m = reduce_max(%f; dims = (1), keep = true) : f32[N, 1]
  %d = sub(%f, %m) : f32[N, COLS]
  %e = exp(%d) : f32[N, COLS]
  %s = reduce_sum(%e; dims = (1), keep = true) : f32[N, 1]
  %y = div(%e, %s) : f32[N, COLS]
  %z = cast(%y) : f16[N, COLS]
  %u = contract(%z, %w; tb = true) : f32[N, 8]
  result u = %u
)";

class HeldRow : public Planted {
  protected:
    void SetUp() override {
        CudaRunTest::SetUp();
        quick_ = false; // rows are long
    }

    // The kernel that holds its rows.
    const CudaKernelEntry *Held(const CudaModule *cuda) {
        const CudaProgram &p = cuda->programs.data[0];
        for (int i = 0; i < p.kernels.len; i++)
            if (p.kernels.data[i].body.again) return &p.kernels.data[i];
        ADD_FAILURE() << "no kernel holds its rows";
        return nullptr;
    }
    std::vector<int> SharedOf(const CudaModule *cuda) {
        std::vector<int> bytes;
        const CudaKernelEntry *e = Held(cuda);
        for (int i = 0; e && i < e->forms.len; i++) {
            EXPECT_EQ(e->forms.data[i].function, e->forms.data[0].function) << "one function serves all";
            bytes.push_back(e->forms.data[(i + 1) % e->forms.len].launch.shared_bytes);
        }
        return bytes;
    }
    // Bytes of shared memory give the bits that none gives, and all of them are near float64.
    void SameBits(const std::string &body, const std::vector<int> &held, int arch,
                  const std::vector<Change> &changes = {}) {
        Use(body, 3, arch);
        const auto ptx = Compile(Changed(changes));
        ASSERT_NE(ptx, nullptr);
        Values none;
        std::string message;
        ASSERT_EQ(Run(*ptx, 1, &message, &none, [](CudaRun *run) { run->SetShared(0); }), EXEC_OK) << message;
        CompareAll(none);
        for (int bytes : held) {
            Values got;
            auto set = [bytes](CudaRun *run) { run->SetShared(bytes); };
            ASSERT_EQ(Run(*ptx, 2, &message, &got, set), EXEC_OK) << bytes << ": " << message;
            EXPECT_EQ(got, none) << bytes << " bytes held";
        }
        Values own;
        ASSERT_EQ(Run(*ptx, 3, &message, &own), EXEC_OK) << message;
        EXPECT_EQ(own, none) << "as it is launched";
    }
};

std::string WithSize(const char *body, const char *type, const char *cols) {
    std::string text = body;
    for (const auto &[word, by] : {std::pair<const char *, const char *>{"TYPE", type}, {"COLS", cols}})
        for (size_t at; (at = text.find(word)) != std::string::npos;) text.replace(at, strlen(word), by);
    return text;
}

TEST_F(HeldRow, BitsDoNotDependOnWhatIsHeld) {
    for (const char *type : {"f16", "f32"})
        for (const char *cols : {"26000", "26003"})
            SameBits(WithSize(cross_entropy, type, cols), {10, 64, 4096, 52016, 81000}, 90);
    SameBits(WithSize(cross_entropy, "f16", "26003"), {4096, 33000}, 80);
    SameBits(WithSize(cross_entropy, "f16", "26002"), {4096, 52016}, 75); // no asynchronous copies
    SameBits(WithSize(cross_entropy, "bf16", "25000"), {20000}, 89);
}

TEST_F(HeldRow, SeveralOperandsAreHeldSideBySide) {
    for (const char *cols : {"9000", "9001"}) SameBits(WithSize(softmax_gradient, "", cols), {60, 20000, 60000}, 90);
}

TEST_F(HeldRow, RowsOfAPitch) {
    for (const char *cols : {"26001", "26004"}) SameBits(WithSize(with_pitch, "", cols), {100, 30000}, 90);
}

// Of a device with 64, 99, 163 and 227 KiB, less what functions have of their own, and of no more than a row takes.
TEST_F(HeldRow, ADeviceHoldsWhatItHasRoomFor) {
    auto shared = [this](const char *type, const char *cols) {
        return SharedOf(Emit(PlannedForCuda(Text(WithSize(cross_entropy, type, cols)))));
    };
    EXPECT_EQ(shared("f16", "26000"), std::vector<int>({52000}));
    EXPECT_EQ(shared("f16", "50257"), std::vector<int>({100544, 65024}));
    EXPECT_EQ(shared("f32", "50257"), std::vector<int>({201088, 166400, 100864, 65024}));
    EXPECT_EQ(shared("f16", "200000"), std::vector<int>({231936, 166400, 100864, 65024}));
}

// An element comes from memory once where the row fits, twice at most where half of it does.
TEST_F(HeldRow, ARowIsReadOnceAndWrittenOnce) {
    if (TestDriver::Asked()) GTEST_SKIP() << "the counters are the interpreter's";
    const uint64_t row = uint64_t{3} * 50257 * 2;
    for (int arch : {90, 80, 89, 75}) {
        Use(WithSize(cross_entropy, "f16", "50257"), 3, arch);
        const auto ptx = Compile(Changed({}));
        ASSERT_NE(ptx, nullptr);
        auto bytes = [&](int shared, uint64_t *stored) {
            CudaRun run(cuda_, *ptx, func_->name, n_);
            run.Set(given_);
            run.SetShared(shared);
            EXPECT_EQ(run.RunToFault(1), "");
            *stored = run.counters().global_store_bytes;
            return run.counters().global_load_bytes;
        };
        uint64_t stored = 0;
        const uint64_t own = bytes(-1, &stored), none = bytes(0, &stored);
        EXPECT_NEAR(static_cast<double>(none), 3.0 * static_cast<double>(row), 20000) << "three passes";
        EXPECT_NEAR(static_cast<double>(stored), 2.0 * static_cast<double>(row), 20000) << "results are f32";
        if (arch == 75) EXPECT_LT(own, 2 * row);
        else EXPECT_NEAR(static_cast<double>(own), static_cast<double>(row), 20000) << "sm_" << arch;
    }
}

TEST_F(HeldRow, PlantedFaultsAreFound) {
    if (TestDriver::Asked()) GTEST_SKIP() << "a GPU would not say what is wrong";
    Use(WithSize(cross_entropy, "f16", "26004"), 3, 90);
    ExpectRight();
    ExpectFault({{"get_i32(b1 + r);\n    await_copies<0>();\n", "get_i32(b1 + r);\n"}}, EXEC_LAUNCH_FAILED,
                "a cp.async is in flight");
    ExpectFault({{"c0 < held && c0 < COLS;", "c0 + 1024 < held && c0 < COLS;"}}, EXEC_LAUNCH_FAILED,
                "of shared memory: uninitialised");
    // each thread copies what another one reads: that would take a barrier
    ExpectFault({{"for (int32_t c0 = lane * 4; c0 < held", "for (int32_t c0 = (lane ^ 32) * 4; c0 < held"}},
                EXEC_LAUNCH_FAILED, "race in shared memory at .*with no barrier between|a cp.async is in flight");
    const std::string past = "of shared memory, .* past the end of its";
    auto half = [](CudaRun *run) { run->SetShared(24576); };
    ExpectFault({{"if (c0 >= held) row0", "if (c0 < held) row0"}}, EXEC_ILLEGAL_ADDRESS, past, half);
    ExpectFault({{"end = held < 26004 ? held : 26004;", "end = held < 26004 ? held + 4 : 26004;"}},
                EXEC_ILLEGAL_ADDRESS, past, half);
    // two operands in one place
    Use(WithSize(softmax_gradient, "", "9000"), 3, 90);
    ExpectRight();
    ExpectFault({{"held_row + held * 2)", "held_row + held * 0)"}}, EXEC_LAUNCH_FAILED,
                "race in shared memory|a cp.async is in flight|uninitialised");
}

// What is held is summed without what the sum has lost.
TEST_F(HeldRow, SumsOfOtherBitsAreFound) {
    if (TestDriver::Asked()) GTEST_SKIP() << "a GPU cannot hold as much as it is told to";
    const std::string body = WithSize(softmax_gradient, "", "9000");
    Use(body, 3, 90);
    const std::string source = Source(cuda_), adds = source.substr(source.find("plus_kept(s"));
    const std::string sum = adds.substr(10, adds.find(',') - 10), call = adds.substr(0, adds.find(';') + 1);
    Change change = {call, call + " if (held) " + sum + ".lost = 0.0f;"};
    ExpectFound(change.by, "20000 bytes held", [&] { SameBits(body, {20000}, 90, {change}); });
}

} // namespace
