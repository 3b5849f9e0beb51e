// phase_test.cc: data gradients of convolutions with strides, phase by phase (prelude/product_windows.cuh): a pixel is
// a sum over the taps that meet it. Against the float64 interpreter.
#include "tests/codegen/cuda/planted.h"

namespace {

struct Pair {
    int y, x;
};

// Of the forward convolution, whose images are |height| by |width|.
struct Strided {
    int height, width, channels, outputs;
    Pair window, stride, padding, dilation;
};

std::string Int(int64_t v) { return std::to_string(v); }

std::string Both(Pair p) { return "(" + Int(p.y) + ", " + Int(p.x) + ")"; }

int Outputs(int size, int window, int stride, int padding, int dilation) {
    return (size + 2 * padding - dilation * (window - 1) - 1) / stride + 1;
}

std::string Describe(const Strided &s) {
    return Int(s.height) + " x " + Int(s.width) + " x " + Int(s.channels) + " from " + Int(s.outputs) + " by " +
           Both(s.window) + " / " + Both(s.stride) + " - " + Both(s.padding) + " * " + Both(s.dilation);
}

// With weights that k runs along, and down; after the one a row of numbers and a matrix that are read beside it.
std::string Gradients(const std::string &type, const Strided &s, const std::string &beside = "f32") {
    const std::string x = "[N, " + Int(s.height) + ", " + Int(s.width) + ", " + Int(s.channels) + "]",
                      taps = "[" + Int(s.window.y) + ", " + Int(s.window.x) + ", ", c = Int(s.channels),
                      o = Int(s.outputs);
    const int down = Outputs(s.height, s.window.y, s.stride.y, s.padding.y, s.dilation.y);
    const int across = Outputs(s.width, s.window.x, s.stride.x, s.padding.x, s.dilation.x);
    const std::string attrs = "; stride = " + Both(s.stride) + ", padding = " + Both(s.padding) +
                              ", dilation = " + Both(s.dilation) + ") : f32" + x + "\n";
    return "  input %dy : " + type + "[N, " + Int(down) + ", " + Int(across) + ", " + o + "]\n  input %w : " + type +
           taps + c + ", " + o + "]\n  input %v : " + type + taps + o + ", " + c + "]\n  input %row : f32[" + c +
           "]\n  input %beside : " + beside + x + "\n  %t = permute(%w; dims = (0, 1, 3, 2)) : " + type + taps + o +
           ", " + c + "]\n  %p = conv_data(%dy, %t" + attrs + "  %q = add(%p, %row) : f32" + x +
           (beside == "f32" ? "  %y = mul(%q, %beside) : f32" + x
                            : "  %f = cast(%beside) : f32" + x + "\n  %y = mul(%q, %f) : f32" + x) +
           "\n  %z = conv_data(%dy, %v" + attrs + "  result y = %y\n  result z = %z\n";
}

// Fewer taps than the stride, as many, and more; phases of different size, without pixels, and without taps in one
// direction or both; strides and dilation with a common divisor; channels of whole steps and of others.
const Strided shapes[] = {
    {8, 8, 24, 32, {1, 1}, {2, 2}, {0, 0}, {1, 1}},   {7, 9, 40, 32, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {9, 7, 8, 12, {3, 2}, {2, 1}, {2, 1}, {1, 2}},    {10, 11, 16, 20, {5, 2}, {3, 3}, {1, 0}, {1, 1}},
    {1, 1, 72, 16, {3, 3}, {2, 2}, {1, 1}, {1, 1}},   {13, 12, 16, 16, {3, 3}, {4, 2}, {2, 2}, {2, 2}},
    {3, 2, 16, 16, {1, 1}, {3, 4}, {1, 2}, {1, 1}},   {12, 5, 16, 5, {4, 4}, {2, 4}, {1, 3}, {3, 2}},
    {6, 6, 3, 96, {2, 2}, {2, 2}, {0, 0}, {1, 1}},    {8, 20, 8, 8, {8, 9}, {1, 2}, {4, 4}, {1, 1}},
    {31, 17, 64, 128, {3, 3}, {2, 2}, {1, 1}, {1, 1}}};

const char *const kinds[] = {"f16", "tf32", "f32"}; // a shape has one, in long tests all

class PhaseTest : public CudaRunTest {};

TEST_F(PhaseTest, EachPixelHasItsTaps) {
    for (const std::string type : {"f16", "tf32", "f32", "bf16"})
        for (const Strided &s : shapes) {
            const bool large = s.height > 30;
            if (!InLongTests() && type != (large ? "f16" : kinds[(&s - shapes) % 3])) continue;
            SCOPED_TRACE(type + " " + Describe(s));
            Module *m = PlannedForCuda(Text(Gradients(type, s)));
            ASSERT_NE(m, nullptr);
            const CudaModule *cuda = Emit(m);
            ASSERT_NE(cuda, nullptr);
            EXPECT_NE(Source(cuda).find("RowsOfPhase<Images> in_result"), std::string::npos);
            const LoadedPtx image(Ptx(cuda, 90, false), 90);
            const Func *f = cuda->programs.data[0].func;
            for (int64_t n : large ? std::vector<int64_t>{2} : std::vector<int64_t>{7, 1}) {
                if (n == 1 && !IsTried(static_cast<unsigned>(&s - shapes), 4)) continue;
                Values given = Draw(m, f, n), after = given;
                const Values want = Interpret(f, n, &after), got = RunOnCuda(cuda, image, n, given);
                for (const char *name : {"y", "z"}) Compare(got.at(name), want.at(name), 1e-3, name);
                if (HasFailure()) return;
            }
        }
}

// The terms that a phase's pixels have, in whole tiles: a quarter of all.
TEST_F(PhaseTest, MultipliesWhatMeets) {
    if (TestDriver::Asked()) GTEST_SKIP() << "a GPU counts nothing";
    const int64_t n = 16;
    for (const bool one_tap : {false, true}) {
        const Strided s = {16, 16, 64, 64, {one_tap ? 1 : 3, one_tap ? 1 : 3}, {2, 2}, {!one_tap, !one_tap}, {1, 1}};
        Module *m = PlannedForCuda(Text(Gradients("f16", s)));
        ASSERT_NE(m, nullptr);
        const CudaModule *cuda = Emit(m);
        ASSERT_NE(cuda, nullptr);
        const LoadedPtx image(Ptx(cuda, 90, false), 90);
        ExecCounters counters = {};
        RunOnCuda(cuda, image, n, Draw(m, cuda->programs.data[0].func, n), &counters);
        const int64_t pairs = 8 * 8 * (one_tap ? 1 : 9); // of a pixel and a tap, in an image
        EXPECT_EQ(counters.tensor_flops, static_cast<uint64_t>(2 * 2 * n * pairs * 64 * 64));
        int64_t said = 0;
        for (int i = 0; i < cuda->programs.data[0].kernels.len; i++) {
            const CudaKernelEntry &e = cuda->programs.data[0].kernels.data[i];
            for (int j = 0; j < e.work.len; j++)
                if (e.work.data[j].instruction == AMP_INSTRUCTION_MMA_F16)
                    said += e.work.data[j].operations * dim_eval(e.work.data[j].elements, {n, 1}) *
                            dim_eval(e.work.data[j].terms, {n, 1});
        }
        EXPECT_EQ(said, 2 * 2 * n * pairs * 64 * 64);
    }
}

// What is read beside the sums is asked for in the rows where it is.
TEST_F(PhaseTest, PrefetchesItsRows) {
    Module *m = PlannedForCuda(Text(Gradients("f16", {7, 9, 72, 64, {3, 3}, {2, 2}, {1, 1}, {1, 1}}, "f16")));
    ASSERT_NE(m, nullptr);
    const CudaModule *cuda = Emit(m);
    ASSERT_NE(cuda, nullptr);
    EXPECT_NE(Source(cuda).find("prefetch_rows<"), std::string::npos);
    CudaRunTest::Check(Text(Gradients("f16", {7, 9, 72, 64, {3, 3}, {2, 2}, {1, 1}, {1, 1}}, "f16")), {1, 5}, 1e-3);
}

// Where no tap meets a pixel, not even a weight that is infinite does.
TEST_F(PhaseTest, PixelsWithoutTapsAreZero) {
    const Strided s = {6, 6, 16, 16, {1, 1}, {2, 2}, {0, 0}, {1, 1}};
    Module *m = PlannedForCuda(Text(Gradients("f16", s)));
    ASSERT_NE(m, nullptr);
    const CudaModule *cuda = Emit(m);
    ASSERT_NE(cuda, nullptr);
    const LoadedPtx image(Ptx(cuda, 90, false), 90);
    Values given = Draw(m, cuda->programs.data[0].func, 2);
    given["v"][0] = INFINITY;
    const std::vector<double> z = RunOnCuda(cuda, image, 2, given).at("z");
    for (size_t i = 0; i < z.size(); i++) {
        const size_t pixel = i / 16, y = pixel / 6 % 6, x = pixel % 6;
        if (y % 2 || x % 2) {
            EXPECT_EQ(z[i], 0.0) << y << ", " << x;
        }
    }
}

TEST_F(PhaseTest, SaysWhichStridesAreTooLong) {
    Module *m = PlannedForCuda(Text(Gradients("f16", {600, 600, 8, 8, {1, 1}, {300, 300}, {0, 0}, {1, 1}})));
    ASSERT_NE(m, nullptr);
    const CudaModule *cuda = nullptr;
    amp_error err = {};
    EXPECT_EQ(codegen_cuda(m, &cuda, &err), AMP_UNSUPPORTED);
    EXPECT_NE(std::string(err.message).find("strides of 300 x 300 are not supported for CUDA"), std::string::npos)
        << err.message;
}

class PlantedPhase : public Planted {};

// Pixels, taps and rows of another phase; taps that it has not; a phase that is left out.
TEST_F(PlantedPhase, PhasesAreMistaken) {
    Use(Gradients("f16", {7, 9, 24, 32, {3, 3}, {2, 2}, {1, 1}, {1, 1}}), 5, 80);
    ExpectRight();
    ExpectWrong({{"first_pixel = (first_tap * DILATION + without + PAST_PAD) % STRIDE;",
                  "first_pixel = (first_tap * DILATION + without) % STRIDE;"}});
    ExpectWrong({{"begin = (first_pixel + PAD - first_tap * DILATION) / STRIDE;", "begin = first_pixel / STRIDE;"}});
    ExpectWrong({{"return first_tap + number * TAP_STEP;", "return number * TAP_STEP;"}});
    ExpectFault({{"(TAPS - 1 - first_tap) / TAP_STEP + 1;", "MOST;"}}, EXEC_ILLEGAL_ADDRESS, "past the end");
    ExpectWrong({{"BACK ? -PhaseX::DISTANCE", "BACK ? PhaseX::DISTANCE"}});
    ExpectFault({{"* x.size + x.first_pixel;", "* x.size;"}}, EXEC_LAUNCH_FAILED, "race");
    ExpectUnwritten({{"y.set(number / X::STRIDE, height);", "y.set(number % X::STRIDE, height);"}});
}

// Zeros between the pixels of dy: all taps are multiplied then, most of them with zeros.
Values Spread(Values given, const Strided &s, int64_t n) {
    const int down = Outputs(s.height, s.window.y, s.stride.y, s.padding.y, s.dilation.y),
              across = Outputs(s.width, s.window.x, s.stride.x, s.padding.x, s.dilation.x),
              all_down = Outputs(s.height, s.window.y, 1, s.padding.y, s.dilation.y),
              all_across = Outputs(s.width, s.window.x, 1, s.padding.x, s.dilation.x);
    std::vector<double> all(n * all_down * all_across * s.outputs), &dy = given.at("dy");
    for (size_t i = 0; i < dy.size(); i++) {
        const size_t pixel = i / s.outputs, x = pixel % across * s.stride.x, y = pixel / across % down * s.stride.y;
        all[((pixel / across / down * all_down + y) * all_across + x) * s.outputs + i % s.outputs] = dy[i];
    }
    dy = all;
    return given;
}

// If a tap has whole blocks of a tensor core's sum.
TEST_F(PlantedPhase, BitsAreThoseOfAllTaps) {
    const Strided strided[] = {{7, 9, 24, 32, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
                               {13, 12, 16, 16, {5, 3}, {3, 2}, {2, 2}, {1, 2}}};
    const std::vector<Change> backwards = {
        {"return first_tap + number * TAP_STEP;", "return first_tap + (taps - 1 - number) * TAP_STEP;"},
        {"/ TAP_STEP + 1;", "/ TAP_STEP + 1; begin -= at_least_one(taps) * DISTANCE - DISTANCE;"},
        {"TAP_Y = BACK ? -PhaseY::DISTANCE", "TAP_Y = BACK ? PhaseY::DISTANCE"},
        {"TAP_X = BACK ? -PhaseX::DISTANCE", "TAP_X = BACK ? PhaseX::DISTANCE"},
        {"template <int TAPS_", "INLINE int at_least_one(int x);\ntemplate <int TAPS_"}};
    unsigned number = 0;
    for (const std::string type : {"f16", "tf32", "f32"})
        for (const Strided &s : strided) {
            const unsigned of_type = number / 2, shape = number % 2;
            number++;
            if (!IsTried(of_type + shape, 2)) continue;
            SCOPED_TRACE(type + " " + Describe(s));
            std::string message;
            Values got, changed, all;
            Use(Gradients(type, s), 3, 80);
            ASSERT_EQ(Run(*Compile(Changed({})), 1, &message, &got), EXEC_OK) << message;
            ASSERT_EQ(Run(*Compile(Changed(backwards)), 1, &message, &changed), EXEC_OK) << message;
            CompareAll(changed);
            const Values spread = Spread(given_, s, n_);
            Use(Gradients(type, {s.height, s.width, s.channels, s.outputs, s.window, {1, 1}, s.padding, s.dilation}), 3,
                80);
            given_ = spread;
            ASSERT_EQ(Run(*Compile(Changed({})), 1, &message, &all), EXEC_OK) << message;
            EXPECT_TRUE(got == all);
            ExpectFound("taps from the last to the first", "", [&] { EXPECT_TRUE(changed == all); });
        }
}

} // namespace
