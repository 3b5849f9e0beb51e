// product_test.cc: matrix products for CUDA: every order and type, at shapes that fit no tile, through the real NVRTC
// and the PTX interpreter, against float64 with the
// error that the model of tensor cores allows (arXiv 2511.10909, 2512.07004), and exactly on small integers.
#include "tests/codegen/cuda/cuda_run.h"

namespace {

struct Matrices { // C = A B: [r, k] x [k, c]
    int64_t r, k, c;
};

struct Case {
    Matrices m;
    bool ta, tb;
};

std::string Int(int64_t v) { return std::to_string(v); }

std::string Dims(int64_t rows, int64_t cols) { return "[" + Int(rows) + ", " + Int(cols) + "]"; }

// The terms of a block of a tensor core's sum, and the bits below the largest term that it keeps; FP32 is a chain of
// fused multiply-adds.
struct Sum {
    int block, bits;
};
Sum SumOf(const std::string &type, int arch) {
    if (type == "f32") return {1, 24};
    if (arch == 75) return {8, 24};
    if (arch < 90) return {type == "tf32" ? 4 : 8, 24};
    return {type == "tf32" ? 8 : 16, 25};
}

class ProductTest : public CudaRunTest {
  protected:
    // One function with a product per case: y0 = a0 b0, ...
    std::string Body(const std::string &type, const std::vector<Case> &cases) {
        std::string inputs, ops, results;
        for (size_t i = 0; i < cases.size(); i++) {
            const Case &x = cases[i];
            const std::string at = Int(static_cast<int64_t>(i));
            inputs += "  input %a" + at + " : " + type + (x.ta ? Dims(x.m.k, x.m.r) : Dims(x.m.r, x.m.k)) + "\n";
            inputs += "  input %b" + at + " : " + type + (x.tb ? Dims(x.m.c, x.m.k) : Dims(x.m.k, x.m.c)) + "\n";
            ops += "  %y" + at + " = contract(%a" + at + ", %b" + at + "; ta = " + (x.ta ? "true" : "false") +
                   ", tb = " + (x.tb ? "true" : "false") + ") : f32" + Dims(x.m.r, x.m.c) + "\n";
            results += "  result y" + at + " = %y" + at + "\n";
        }
        return inputs + ops + results;
    }

    // |whole|: integers so small that every order of the sum is exact.
    static Values DrawOperands(const std::string &type, const std::vector<Case> &cases, bool whole) {
        Values v;
        std::mt19937 engine(whole ? 3 : 4);
        std::normal_distribution<float> normal(0.0f, 1.0f);
        const Dtype t = type == "f16"    ? AMP_DT_F16
                        : type == "bf16" ? AMP_DT_BF16
                        : type == "tf32" ? AMP_DT_TF32
                                         : AMP_DT_F32;
        for (size_t i = 0; i < cases.size(); i++) {
            const Matrices &m = cases[i].m;
            auto fill = [&](const std::string &name, int64_t count) {
                std::vector<double> &x = v[name + Int(static_cast<int64_t>(i))];
                for (int64_t j = 0; j < count; j++)
                    x.push_back(whole ? static_cast<int>(engine() % 17) - 8
                                      : static_cast<double>(amp_round_dtype(t, normal(engine))));
            };
            fill("a", m.r * m.k);
            fill("b", m.k * m.c);
        }
        return v;
    }

    static void CheckSums(const Case &x, const std::vector<double> &a, const std::vector<double> &b,
                          const std::vector<double> &y, Sum sum, bool exact, const std::string &what) {
        ASSERT_EQ(y.size(), static_cast<size_t>(x.m.r * x.m.c)) << what;
        for (int64_t r = 0; r < x.m.r; r++)
            for (int64_t c = 0; c < x.m.c; c++) {
                double want = 0.0, terms = 0.0;
                for (int64_t k = 0; k < x.m.k; k++) {
                    const double p = a[static_cast<size_t>(x.ta ? k * x.m.r + r : r * x.m.k + k)] *
                                     b[static_cast<size_t>(x.tb ? c * x.m.k + k : k * x.m.c + c)];
                    want += p;
                    terms += std::fabs(p);
                }
                const double blocks = std::ceil(static_cast<double>(x.m.k) / sum.block);
                const double bound =
                    blocks * ((sum.block + 1) * std::ldexp(1.0, -sum.bits) + std::ldexp(1.0, -23)) * terms;
                ASSERT_NEAR(y[static_cast<size_t>(r * x.m.c + c)], want, exact ? 0.0 : bound)
                    << what << " (" << r << ", " << c << ")";
            }
    }

    // What the counters say: banks without conflicts, and all terms in tensor cores, or none.
    static void CheckCounters(const ExecCounters &n, const std::vector<Case> &cases, bool tensor_cores,
                              const std::string &what) {
        uint64_t flops = 0;
        for (const Case &x : cases) flops += static_cast<uint64_t>(2 * x.m.r * x.m.k * x.m.c);
        const bool tiny = cases.front().m.k == 1; /* stores of zeros are merged, and no longer made for the banks */
        EXPECT_TRUE(tiny || n.bank_conflicts == 0u) << n.bank_conflicts << " " << what;
        EXPECT_EQ(n.other_flops == 0, tensor_cores) << what;
        EXPECT_EQ(n.tensor_ops > 0, tensor_cores) << what;
        EXPECT_GE(tensor_cores ? n.tensor_flops : n.other_flops, flops) << what;
    }

    std::vector<amp_nvrtc_kernel_use> Uses(const CudaModule *cuda, int arch) {
        const std::string source = Source(cuda);
        amp_nvrtc_job job = {};
        job.source = source.c_str();
        job.name = "products.cu";
        job.arch = arch;
        job.cubin = true;
        amp_nvrtc_result result = {};
        amp_error err = {};
        EXPECT_EQ(amp_nvrtc_compile(nvrtc_, &job, &result, &err), AMP_OK) << err.message;
        std::vector<amp_nvrtc_kernel_use> uses(result.uses, result.uses + result.use_count);
        EXPECT_EQ(result.use_count, cuda->functions.len);
        amp_nvrtc_result_free(nvrtc_, &result);
        return uses;
    }

    static std::string Describe(const std::string &type, int arch, const Case &x) {
        return type + " sm_" + Int(arch) + " " + Int(x.m.r) + " x " + Int(x.m.k) + " x " + Int(x.m.c) + " ta " +
               Int(x.ta) + " tb " + Int(x.tb);
    }

    void Check(const std::string &type, const std::vector<int> &archs, const std::vector<Case> &cases) {
        Module *m = PlannedForCuda(Text(Body(type, cases)));
        ASSERT_NE(m, nullptr);
        const CudaModule *cuda = Emit(m);
        ASSERT_NE(cuda, nullptr);
        const bool tensor_cores = type != "f32";
        for (int arch : archs) {
            if (TestDriver::Asked() && arch > TestDriver::Get().info.arch) continue;
            const int sums = TestDriver::Asked() ? TestDriver::Get().info.arch : arch; // whose tensor cores add
            const LoadedPtx image(Ptx(cuda, arch, false), arch);
            for (bool whole : {true, false}) {
                if (HasFailure()) return;
                Values given = DrawOperands(type, cases, whole);
                ExecCounters counters = {};
                const bool one_form = whole && !InLongTests(); // others have its bits: with random numbers
                const Values got = one_form ? RunOnDevice(cuda, image, 1, given, 0, &counters)
                                            : RunOnCuda(cuda, image, 1, given, &counters);
                for (size_t i = 0; i < cases.size() && !HasFailure(); i++) {
                    const std::string at = Int(static_cast<int64_t>(i)), what = Describe(type, arch, cases[i]);
                    CheckSums(cases[i], given["a" + at], given["b" + at], got.at("y" + at), SumOf(type, sums), whole,
                              what);
                }
                if (!TestDriver::Asked()) CheckCounters(counters, cases, tensor_cores, type + " sm_" + Int(arch));
            }
        }
    }

    static std::vector<Case> EveryOrder(const std::vector<Matrices> &shapes) {
        std::vector<Case> cases;
        for (const Matrices &m : shapes)
            for (int order = 0; order < 4; order++) cases.push_back({m, (order & 2) != 0, (order & 1) != 0});
        return cases;
    }
};

const std::vector<Matrices> small_shapes = {{7, 10, 30}, {16, 8, 16}, {64, 64, 64}, {65, 33, 17}};

// |others|: whose code is the same as for an architecture before them, for the long tests.
std::vector<int> Archs(std::vector<int> archs, const std::vector<int> &others) {
    if (InLongTests()) archs.insert(archs.end(), others.begin(), others.end());
    return archs;
}

TEST_F(ProductTest, F16) { Check("f16", Archs({75, 90}, {80, 120}), EveryOrder(small_shapes)); }
TEST_F(ProductTest, Bf16) { Check("bf16", Archs({80}, {90}), EveryOrder(small_shapes)); }
TEST_F(ProductTest, Tf32) { Check("tf32", Archs({80}, {120}), EveryOrder(small_shapes)); }
TEST_F(ProductTest, F32) { Check("f32", Archs({90}, {75}), EveryOrder(small_shapes)); }

// One chain of fused multiply-adds over ascending k, as the CPU makes it.
TEST_F(ProductTest, F32HasTheBitsOfTheCpu) {
    CudaRunTest::Check(Text(R"(  input %x : f32[N, 70]
  input %w : f32[33, 70]
  input %dy : f32[N, 33]
  %y = contract(%x, %w; tb = true) : f32[N, 33]
  %dx = contract(%dy, %w) : f32[N, 70]
  %dw = contract(%dy, %x; ta = true) : f32[33, 70]
  result y = %y
  result dx = %dx
  result dw = %dw
)"),
                       {1, 65}, 1e-4, true);
}

// Inputs in f32 are rounded while they are loaded, in every order: whole vectors of them, or single elements.
TEST_F(ProductTest, RoundsInputsWhileItLoadsThem) {
    unsigned number = 0;
    for (const std::string t : {"f16", "bf16", "tf32"})
        for (int cols : {64, 36, 33}) {
            if (!IsTried(number++, 2)) continue;
            const std::string c = Int(cols), x = "[N, " + c + "]", w = "[" + c + ", 48]", v = "[48, " + c + "]",
                              dy = "[N, 48]";
            std::string lines;
            for (const auto &[name, dims] :
                 {std::pair<std::string, std::string>{"x", x}, {"w", w}, {"v", v}, {"dy", dy}})
                lines += "  input %" + name + " : f32" + dims + "\n";
            for (const auto &[name, dims] :
                 {std::pair<std::string, std::string>{"x", x}, {"w", w}, {"v", v}, {"dy", dy}})
                lines += "  %" + name + ".low = cast(%" + name + ") : " + t + dims + "\n";
            lines += "  %y = contract(%x.low, %w.low) : f32" + dy +
                     "\n  %z = contract(%x.low, %v.low; tb = true) : f32" + dy +
                     "\n  %dw = contract(%x.low, %dy.low; ta = true) : f32" + w +
                     "\n  %dv = contract(%dy.low, %x.low; ta = true) : f32" + v + "\n";
            for (const char *name : {"y", "z", "dw", "dv"})
                lines += std::string("  result ") + name + " = %" + name + "\n";
            Module *m = PlannedForCuda(Text(lines));
            ASSERT_NE(m, nullptr);
            const CudaModule *cuda = Emit(m);
            ASSERT_NE(cuda, nullptr);
            SCOPED_TRACE(t + " " + c);
            EXPECT_EQ(cuda->programs.data[0].func->kernels.len, 4) << "no kernel casts alone";
            const LoadedPtx image(Ptx(cuda, 80, false), 80);
            for (int64_t n : {1, 65}) {
                const Func *f = cuda->programs.data[0].func;
                Values given = Draw(m, f, n), after = given;
                const Values want = Interpret(f, n, &after), got = RunOnCuda(cuda, image, n, given);
                for (const char *name : {"y", "z", "dw", "dv"}) Compare(got.at(name), want.at(name), 1e-4, name);
                if (HasFailure()) return;
            }
        }
}

// What others read too is cast by a kernel, once.
TEST_F(ProductTest, KeepsACastThatOthersRead) {
    const Module *m = PlannedForCuda(Text(R"(  input %x : f32[N, 32]
  input %w : f16[32, 32]
  %a = cast(%x) : f16[N, 32]
  %y = contract(%a, %w) : f32[N, 32]
  result y = %y
  result a = %a
)"));
    ASSERT_NE(m, nullptr);
    const Func *f = m->funcs.data[0];
    ASSERT_EQ(f->kernels.len, 2);
    EXPECT_EQ(f->kernels.data[0]->kind, KERNEL_TILE);
    EXPECT_EQ(f->kernels.data[1]->count, 1) << "the product alone";
}

// A batch: heads side by side in rows of |head| elements each, more queries than keys share, results that are put
// together again for two readers, and a batch whose rows are samples.
std::string Batches(const std::string &t, int head) {
    const auto type = [&](const std::string &dims) { return " : " + t + "[" + dims + "]\n"; };
    const std::string h = Int(head), rows = "N, 70, 4, " + h, heads = "N, 4, 70, " + h,
                      merged = "N, 70, " + Int(4 * head);
    return "  input %x" + type("N, 70, " + Int(6 * head)) + "  input %g" + type("4, N, " + h) + "  input %p" +
           type("N, 4, 70, 70") + "  input %w" + type("4, " + h + ", 40") +
           "  %q = slice(%x; dim = 2, from = 0, to = " + Int(4 * head) + ")" + type(merged) +
           "  %k = slice(%x; dim = 2, from = " + Int(4 * head) + ", to = " + Int(5 * head) + ")" + type("N, 70, " + h) +
           "  %v = slice(%x; dim = 2, from = " + Int(5 * head) + ", to = " + Int(6 * head) + ")" + type("N, 70, " + h) +
           "  %q4 = reshape(%q)" + type(rows) + "  %qh = permute(%q4; dims = (0, 2, 1, 3))" + type(heads) +
           "  %k1 = reshape(%k)" + type("N, 1, 70, " + h) + "  %kh = expand(%k1)" + type(heads) +
           "  %v1 = reshape(%v)" + type("N, 1, 70, " + h) + "  %vh = expand(%v1)" + type(heads) +
           "  %s = batch_contract(%qh, %kh; tb = true) : f32[N, 4, 70, 70]\n  %y = batch_contract(%p, %vh) : f32[" +
           heads + "]\n  %yl = cast(%y)" + type(heads) + "  %m = permute(%yl; dims = (0, 2, 1, 3))" + type(rows) +
           "  %z = reshape(%m)" + type(merged) + "  %z2 = reshape(%m)" + type("70 * N, " + Int(4 * head)) +
           "  %dk = batch_contract(%p, %qh; ta = true) : f32[" + heads +
           "]\n  %o = batch_contract(%g, %w) : f32[4, N, 40]\n" +
           "  %dw = batch_contract(%g, %g; ta = true) : f32[4, " + h + ", " + h + "]\n" + "  %c = cast(%z) : f32[" +
           merged + "]\n  %c2 = cast(%z2) : f32[70 * N, " + Int(4 * head) + "]\n" +
           "  result s = %s\n  result c = %c\n  result c2 = %c2\n  result dk = %dk\n  result o = %o\n  result dw = "
           "%dw\n";
}

TEST_F(ProductTest, Batches) {
    for (const std::string t : {"f16", "bf16", "tf32", "f32"})
        for (int head : {24, 20, 7}) {
            if (head == 20 && t != "f16") continue;
            if (!InLongTests() && head == (t == "bf16" || t == "f32" ? 24 : 7)) continue;
            SCOPED_TRACE(t + " " + Int(head));
            Module *m = PlannedForCuda(Text(Batches(t, head)));
            ASSERT_NE(m, nullptr);
            const CudaModule *cuda = Emit(m);
            ASSERT_NE(cuda, nullptr);
            const Func *f = cuda->programs.data[0].func;
            int products = 0;
            for (int i = 0; i < f->kernels.len; i++) products += f->kernels.data[i]->kind == KERNEL_PRODUCT;
            EXPECT_EQ(products, 5);
            if (t != "tf32") {
                EXPECT_EQ(f->kernels.len, 5) << "nothing is only moved";
            }
            const LoadedPtx image(Ptx(cuda, 80, false), 80);
            for (int64_t n : {1, 3}) {
                if (n > 1 && head != 20) continue;
                Values given = Draw(m, f, n), after = given;
                ExecCounters counters = {};
                const Values want = Interpret(f, n, &after), got = RunOnCuda(cuda, image, n, given, &counters);
                for (const char *name : {"s", "c", "c2", "dk", "o", "dw"})
                    Compare(got.at(name), want.at(name), t == "bf16" ? 8e-3 : 1e-3, name);
                if (!TestDriver::Asked()) {
                    EXPECT_EQ(counters.other_flops == 0, t != "f32");
                    EXPECT_EQ(counters.bank_conflicts, 0u);
                }
                if (HasFailure()) return;
            }
        }
}

struct ConvolutionShape {
    int height, width, channels, out, window[2], stride[2], padding[2], dilation[2];

    int Out(int axis) const {
        const int size = axis ? width : height;
        return (size + 2 * padding[axis] - dilation[axis] * (window[axis] - 1) - 1) / stride[axis] + 1;
    }
};

// A convolution and its gradients, one by the transposed weights of conv.
std::string Convolution(const std::string &t, const ConvolutionShape &s) {
    const std::string c = Int(s.channels), o = Int(s.out), taps = Int(s.window[0]) + ", " + Int(s.window[1]) + ", ";
    const auto both = [](const int(&pair)[2]) { return "(" + Int(pair[0]) + ", " + Int(pair[1]) + ")"; };
    const std::string attrs =
        "; stride = " + both(s.stride) + ", padding = " + both(s.padding) + ", dilation = " + both(s.dilation);
    const auto cast = [&](const std::string &name, const std::string &dims) {
        return "  %" + name + ".low = cast(%" + name + ") : " + t + dims + "\n";
    };
    const std::string x = "[N, " + Int(s.height) + ", " + Int(s.width) + ", " + c + "]",
                      w = "[" + taps + c + ", " + o + "]", w2 = "[" + taps + o + ", " + c + "]",
                      y = "[N, " + Int(s.Out(0)) + ", " + Int(s.Out(1)) + ", " + o + "]";
    return "  input %x : f32" + x + "\n  input %w : f32" + w + "\n  input %v : f32" + w2 + "\n  input %dy : f32" + y +
           "\n" + cast("x", x) + cast("w", w) + cast("v", w2) + cast("dy", y) + "  %y = conv(%x.low, %w.low" + attrs +
           ") : f32" + y + "\n" + "  %dx = conv_data(%dy.low, %v.low" + attrs + ") : f32" + x + "\n" +
           "  %t = permute(%w.low; dims = (0, 1, 3, 2)) : " + t + w2 + "\n  %dz = conv_data(%dy.low, %t" + attrs +
           ") : f32" + x + "\n" + "  %dw = conv_weight(%x.low, %dy.low" + attrs + ") : f32" + w + "\n" +
           "  result y = %y\n  result dx = %dx\n  result dz = %dz\n  result dw = %dw\n";
}

// With strides, padding and dilation that differ by axis.
std::string Convolution(const std::string &t, int channels, int out) {
    return Convolution(t, {9, 7, channels, out, {3, 2}, {2, 1}, {2, 1}, {1, 2}});
}

// Windows in every type: channels side by side in 16 bytes, in 8, and alone, in tiles of any width.
TEST_F(ProductTest, Convolutions) {
    for (const std::string t : {"f16", "bf16", "tf32", "f32"})
        for (auto [channels, out] : {std::pair(8, 12), {4, 12}, {3, 64}, {19, 21}}) {
            if (channels == 19 && t[0] != 'f') continue;
            const bool few = t == "f16" ? channels == 8 || channels == 19 : channels == (t == "tf32" ? 3 : 4);
            if (!few && !InLongTests()) continue;
            Module *m = PlannedForCuda(Text(Convolution(t, channels, out)));
            ASSERT_NE(m, nullptr);
            const CudaModule *cuda = Emit(m);
            ASSERT_NE(cuda, nullptr);
            if (t != "f32") { // whose casts are kernels
                EXPECT_EQ(cuda->programs.data[0].func->kernels.len, 5) << "four products, and a sum of parts";
            }
            SCOPED_TRACE(t + " " + Int(channels));
            for (int arch : t == "f16" || t == "f32" ? Archs({90}, {75}) : Archs({80}, {})) {
                const LoadedPtx image(Ptx(cuda, arch, channels == 8 || InLongTests()), arch);
                for (int64_t n : {1, 5}) {
                    const Func *f = cuda->programs.data[0].func;
                    Values given = Draw(m, f, n), after = given;
                    const Values want = Interpret(f, n, &after), got = RunOnCuda(cuda, image, n, given);
                    for (const char *name : {"y", "dx", "dz", "dw"}) Compare(got.at(name), want.at(name), 1e-4, name);
                    if (HasFailure()) return;
                }
            }
        }
}

// Images whose sizes decide how the places of windows are computed: with as many rows as their windows have strides,
// and with others; with so few windows that a step meets several images; with numbers too large for division by a
// multiplication; with channels that are parameters.
TEST_F(ProductTest, ConvolutionsOfImagesOfManySizes) {
    const ConvolutionShape shapes[] = {
        {8, 8, 64, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}},   {16, 16, 64, 24, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
        {14, 6, 72, 16, {3, 3}, {2, 2}, {1, 1}, {1, 1}},  {7, 9, 96, 16, {3, 3}, {1, 1}, {0, 0}, {1, 1}},
        {4, 4, 64, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}},   {1, 1, 64, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
        {1, 32800, 8, 8, {1, 3}, {1, 1}, {0, 1}, {1, 1}}, {3, 32800, 8, 8, {3, 1}, {1, 1}, {0, 0}, {1, 1}},
    };
    for (const std::string t : {"f16", "f32"})
        for (const ConvolutionShape &shape : shapes) {
            const bool wide = shape.width > 1000,
                       slow = t == "f32" ? wide || shape.height > 4 : wide && shape.height == 1;
            const bool alike = &shape == shapes + 2 || &shape == shapes + (t == "f32" ? 5 : 4);
            if ((slow || alike) && !InLongTests()) continue;
            Module *m = PlannedForCuda(Text(Convolution(t, shape)));
            ASSERT_NE(m, nullptr);
            const CudaModule *cuda = Emit(m);
            ASSERT_NE(cuda, nullptr);
            SCOPED_TRACE(t + " " + Int(shape.height) + " x " + Int(shape.width) + " x " + Int(shape.channels));
            const LoadedPtx image(Ptx(cuda, 90, InLongTests()), 90);
            for (int64_t n : {1, 3}) {
                const bool slow_at_3 = wide || (t == "f32" && shape.height > 4);
                if (n > 1 ? slow_at_3 : !slow_at_3 && !InLongTests()) continue;
                const Func *f = cuda->programs.data[0].func;
                Values given = Draw(m, f, n), after = given;
                const Values want = Interpret(f, n, &after), got = RunOnCuda(cuda, image, n, given);
                for (const char *name : {"y", "dx", "dz", "dw"}) Compare(got.at(name), want.at(name), 1e-4, name);
                if (HasFailure()) return;
            }
        }
}

// Windows of one pixel at every pixel: products of dense matrices.
std::string OnePixel(int channels) {
    const std::string c = Int(channels), x = " : f16[N, 9, 7, " + c + "]\n", y = "[N, 9, 7, 12]\n";
    return "  input %x" + x + "  input %w : f16[1, 1, " + c + ", 12]\n  input %v : f16[1, 1, 12, " + c +
           "]\n  input %dy : f16" + y + "  %y = conv(%x, %w) : f32" + y + "  %dx = conv_data(%dy, %v) : f32[N, 9, 7, " +
           c + "]\n  %dw = conv_weight(%x, %dy) : f32[1, 1, " + c +
           ", 12]\n  result y = %y\n  result dx = %dx\n  result dw = %dw\n";
}

TEST_F(ProductTest, WindowsOfOnePixel) {
    for (int channels : {16, 3}) {
        SCOPED_TRACE(channels);
        Module *m = PlannedForCuda(Text(OnePixel(channels)));
        ASSERT_NE(m, nullptr);
        const CudaModule *cuda = Emit(m);
        ASSERT_NE(cuda, nullptr);
        for (int i = 0; i < cuda->functions.len; i++)
            EXPECT_EQ(strstr(cuda->functions.data[i].source, "Windows<"), nullptr);
        const LoadedPtx image(Ptx(cuda, 80, false), 80);
        const Func *f = cuda->programs.data[0].func;
        Values given = Draw(m, f, 5), after = given;
        const Values want = Interpret(f, 5, &after), got = RunOnCuda(cuda, image, 5, given);
        for (const char *name : {"y", "dx", "dw"}) Compare(got.at(name), want.at(name), 1e-4, name);
    }
}

// Sums over rows in parts, and their second sum with what follows it; |rows| a sample.
std::string Parts(const std::string &t, int rows, int parts) {
    const std::string p = Int(parts), k = Int(rows), attrs = "stride = (2, 1), padding = (2, 1), dilation = (1, 2)";
    return "  input %x : " + t + "[N, " + k + ", 70]\n  input %dy : " + t + "[N, " + k + ", 33]\n  input %i : " + t +
           "[N, 9, 7, 3]\n  input %g : " + t + "[N, 6, 7, 20]\n  input %s : f32\n  %p = contract(%x, %dy; ta = true, " +
           "parts = " + p + ") : f32[" + p + ", 70, 33]\n  %w = sum_parts(%p) : f32[70, 33]\n" +
           "  %u = mul(%w, %s) : f32[70, 33]\n  %fin = is_finite(%w) : bool[70, 33]\n" +
           "  %not = not(%fin) : bool[70, 33]\n  %bad = reduce_or(%not) : bool\n" + "  %q = conv_weight(%i, %g; " +
           attrs + ", parts = " + p + ") : f32[" + p + ", 3, 2, 3, 20]\n" +
           "  %v = sum_parts(%q) : f32[3, 2, 3, 20]\n  result p = %p\n  result u = %u\n  result bad = %bad\n" +
           "  result q = %q\n  result v = %v\n";
}

// Batches with parts past the end of k, with one that is cut, and with whole ones.
TEST_F(ProductTest, Parts) {
    for (const std::string t : {"f16", "bf16", "tf32", "f32"}) {
        SCOPED_TRACE(t);
        CudaRunTest::Check(Text(Parts(t, 64, 3)), {1, 2, 3}, 1e-4, false, 80);
        if (HasFailure()) return;
    }
    CudaRunTest::Check(Text(Parts("f16", 50, 5)), {1, 7}, 1e-4, false, 90);
}

// Of a long k, in each order of both operands: many rows, which depend on n, or few.
std::string LongParts(const std::string &t, int parts, int columns) {
    const std::string p = Int(parts), c = Int(columns);
    const auto product = [&](const char *name, const char *a, const char *b, const std::string &attrs,
                             const std::string &rows) {
        return std::string("  %p") + name + " = contract(" + a + ", " + b + "; " + attrs + "parts = " + p + ") : f32[" +
               p + ", " + rows + ", " + c + "]\n  %s" + name + " = sum_parts(%p" + name + ") : f32[" + rows + ", " + c +
               "]\n  %y" + name + " = tanh(%s" + name + ") : f32[" + rows + ", " + c + "]\n  result y" + name +
               " = %y" + name + "\n";
    };
    return "  input %x : " + t + "[N, 328]\n  input %w : " + t + "[328, " + c + "]\n  input %v : " + t + "[" + c +
           ", 328]\n  input %z : " + t + "[328, 48]\n" + product("1", "%x", "%w", "", "N") +
           product("2", "%x", "%v", "tb = true, ", "N") + product("3", "%z", "%v", "ta = true, tb = true, ", "48");
}

TEST_F(ProductTest, PartsOfALongK) {
    for (const std::string t : {"f16", "bf16", "tf32", "f32"})
        for (int columns : {10, 72}) {
            if (!InLongTests() && (t == "bf16" || (columns == 10) == (t == "f16" || t == "tf32"))) continue;
            SCOPED_TRACE(t + " " + Int(columns));
            CudaRunTest::Check(Text(LongParts(t, 4, columns)), {1, 70}, 1e-4, false, t == "f16" ? 90 : 80);
            if (HasFailure()) return;
        }
}

// The parts of a product are side by side, then one kernel adds them and does the rest; both sums share a launch.
TEST_F(ProductTest, PartsAreBlocks) {
    const Built b = Build(Text(Parts("f16", 50, 5)));
    ASSERT_TRUE(b.ptx);
    const CudaProgram &p = b.cuda->programs.data[0];
    ASSERT_EQ(p.kernels.len, 2);
    const CudaKernelEntry &products = p.kernels.data[0];
    ASSERT_EQ(products.parts.len, 2);
    for (int i = 0; i < products.parts.len; i++) {
        const CudaLaunch &launch = products.parts.data[i].launches.data[0];
        const int64_t down = (dim_eval(launch.extent[0], {7, 1}) + launch.per[0] - 1) / launch.per[0];
        EXPECT_EQ(products.parts.data[i].kind, KERNEL_PRODUCT);
        EXPECT_EQ(down % 5, 0);
        EXPECT_GE(down, 5);
    }
}

// In whichever order blocks run: the same bits.
TEST_F(ProductTest, PartsAreAddedInOrder) {
    const Built b = Build(Text(Parts("f16", 50, 5)));
    ASSERT_TRUE(b.ptx);
    const Func *f = b.m->funcs.data[0];
    const Values given = Draw(b.m, f, 7);
    Values first;
    for (uint64_t seed : {1, 2, 3, 4}) {
        CudaRun run(b.cuda, *b.ptx, f->name, 7);
        run.Set(given);
        ASSERT_EQ(run.RunToFault(seed), "");
        Values got;
        for (int i = 0; i < f->results.len; i++)
            got[f->results.data[i].name] = run.Get(run.BufferOf(f->results.data[i].value));
        if (first.empty()) first = got;
        else EXPECT_EQ(got, first);
    }
}

TEST_F(ProductTest, OneElement) {
    for (const char *type : {"f16", "f32"}) Check(type, {75}, EveryOrder({{1, 1, 1}}));
    for (const char *type : {"bf16", "tf32"}) Check(type, {90}, EveryOrder({{1, 1, 1}}));
}

TEST_F(ProductTest, LongAndWide) {
    quick_ = false;
    Check("f16", {90}, {{{3, 1000, 129}, false, false}, {{3, 1000, 129}, true, true}, {{2, 8, 50257}, false, true}});
    Check("f16", {75}, {{{3, 1000, 129}, false, true}, {{2, 8, 50257}, true, false}});
    Check("f32", {80}, {{{3, 1000, 129}, true, false}, {{2, 8, 50257}, false, false}});
}

// A layer: the product's own tiles, k in many steps.
TEST_F(ProductTest, Layer) {
    quick_ = false;
    Check("f16", {80}, {{{128, 784, 512}, false, true}});
    Check("f32", {80}, {{{128, 200, 512}, false, true}});
}

// ---- what follows the sums ----

// Every kind of operand and result that an epilogue may have; the numbers are small integers, so that nothing is
// rounded but where the IR says so.
std::string EpilogueModel(int64_t cols) {
    const std::string c = Int(cols), full = "[N, " + c + "]";
    std::string t = R"(module "epilogue" stage plan {
  target cuda
}
state %w : f16[24, C] buffer
state %bias : f16[C] buffer
state %seed : i64 counter
state %iteration : i64 counter
func infer {
  input %x : f16[N, 24]
  input %res : f32[N, C]
  input %rs : f32[N, 1]
  input %s : f32
  state %w : f16[24, C]
  state %bias : f16[C]
  state %seed : i64
  state %iteration : i64
  kernel k00 product "all of it" reads b1, b2, b3, b4, b5, b6, b7, b8 writes b9, b10, b11, b12, b13, b14 {
    %0 = const(; value = 0.0) : f32
    %half = const(; value = 0.5) : f32
    %p = contract(%x, %w) : f32[N, C]
    %bf = cast(%bias) : f32[C]
    %1 = add(%p, %bf) : f32[N, C]
    %y = cast(%1) : f16[N, C]
    %yf = cast(%y) : f32[N, C]
    %2 = maximum(%yf, %0) : f32[N, C]
    %r = random(%2, %seed, %iteration; key = "drop") : f32[N, C]
    %keep = lt(%r, %half) : bool[N, C]
    %3 = mul(%2, %rs) : f32[N, C]
    %4 = select(%keep, %3, %0) : f32[N, C]
    %5 = add(%4, %res) : f32[N, C]
    %6 = mul(%5, %s) : f32[N, C]
    %z = cast(%6) : bf16[N, C]
    %fin = is_finite(%6) : bool[N, C]
    %nf = not(%fin) : bool[N, C]
    %bad = reduce_or(%nf) : bool
  }
  buffer b1 input %x f16 rows live 0 to 0
  buffer b2 input %res f32 rows live 0 to 0
  buffer b3 input %rs f32 rows live 0 to 0
  buffer b4 input %s f32 rows live 0 to 0
  buffer b5 state of w %w f16 rows live 0 to 0
  buffer b6 state of bias %bias f16 rows live 0 to 0
  buffer b7 state of seed %seed i64 rows live 0 to 0
  buffer b8 state of iteration %iteration i64 rows live 0 to 0
  buffer b9 temp %y f16 rows live 0 to 0
  buffer b10 output %keep bool rows live 0 to 0
  buffer b11 output %6 f32 rows live 0 to 0
  buffer b12 temp %z bf16 rows live 0 to 0
  buffer b13 watch %4 f32 rows live 0 to 0
  buffer b14 flag %bad bool rows live 0 to 0
  result y = %y
  result keep = %keep
  result sum = %6
  result z = %z
  result masked = %4
  result bad = %bad
}
)";
    for (size_t at; (at = t.find("C]")) != std::string::npos;) t.replace(at, 1, c);
    return t;
}

class EpilogueTest : public ProductTest {
  protected:
    static std::vector<double> Whole(int64_t count, uint32_t seed) {
        std::mt19937 engine(seed);
        std::vector<double> v;
        for (int64_t i = 0; i < count; i++) v.push_back(static_cast<int>(engine() % 9) - 4);
        return v;
    }

    const CudaModule *EmitPlanned(const std::string &text) {
        Module *m = Read(text);
        return m ? Emit(m) : nullptr;
    }

    // |watch| false: the session does not keep values that only a watch buffer holds.
    void CheckResults(const CudaModule *cuda, const LoadedPtx &image, int64_t n, const Values &given, bool watch) {
        const Func *f = cuda->programs.data[0].func;
        Values after = given;
        const Values want = Interpret(f, n, &after);
        CudaRun run(cuda, image, f->name, n, watch);
        run.Set(given);
        ASSERT_TRUE(run.Run());
        for (int i = 0; i < f->buffers.len; i++) {
            const std::string name = ir_value(f, run.buffer(i)->value)->name;
            const BufferKind kind = run.buffer(i)->kind;
            if (kind == BUFFER_STATE) Compare(run.Get(i), after.at(name), 0.0, name + ", n " + Int(n));
            else if (kind != BUFFER_INPUT && (watch || kind != BUFFER_WATCH))
                Compare(run.Get(i), want.at(name), 0.0, name + ", n " + Int(n));
        }
    }
};

TEST_F(EpilogueTest, EveryKindOfOperandAndResult) {
    for (int64_t cols : {10, 33, 36})
        for (int arch : {75, 80}) {
            const CudaModule *cuda = EmitPlanned(EpilogueModel(cols));
            ASSERT_NE(cuda, nullptr);
            const LoadedPtx image(Ptx(cuda, arch, false), arch);
            for (int64_t n : {1, 70}) {
                Values given = {{"x", Whole(n * 24, 1)},    {"res", Whole(n * cols, 2)},
                                {"rs", Whole(n, 3)},        {"s", {3}},
                                {"w", Whole(24 * cols, 4)}, {"bias", Whole(cols, 5)},
                                {"seed", {12345678912}},    {"iteration", {7}}};
                CheckResults(cuda, image, n, given, n != 1);
                given["res"].back() = INFINITY;
                CheckResults(cuda, image, n, given, true);
                if (HasFailure()) return;
            }
        }
}

// A gradient over n rows, added to what a state holds, where the kernel's predicate is true.
TEST_F(EpilogueTest, AccumulatesIntoAState) {
    const CudaModule *cuda = EmitPlanned(R"(module "accumulate" stage plan {
  target cuda
}
state %sum : f32[20, 40] buffer
func train_step {
  input %x : f16[N, 20]
  input %dy : f16[N, 40]
  input %ok : bool
  state %sum : f32[20, 40]
  kernel k00 product "gradient" if %ok reads b1, b2, b4 writes b4 {
    %g = contract(%x, %dy; ta = true) : f32[20, 40]
    %1 = add(%sum, %g) : f32[20, 40]
    assign(%sum, %1) if %ok
  }
  buffer b1 input %x f16 rows live 0 to 0
  buffer b2 input %dy f16 rows live 0 to 0
  buffer b3 input %ok bool rows live 0 to 0
  buffer b4 state of sum %sum f32 rows live 0 to 0
}
)");
    ASSERT_NE(cuda, nullptr);
    const LoadedPtx image(Ptx(cuda, 90, false), 90);
    for (double ok : {1.0, 0.0})
        for (int64_t n : {1, 100}) {
            const Values given = {
                {"x", Whole(n * 20, 1)}, {"dy", Whole(n * 40, 2)}, {"ok", {ok}}, {"sum", Whole(800, 3)}};
            CheckResults(cuda, image, n, given, true);
        }
}

// 64 x 64 sums a warp, such that two blocks of four warps run on a multiprocessor.
bool HasLargeWarps(const CudaModule *cuda, const std::string &entry) {
    return std::any_of(cuda->functions.data, cuda->functions.data + cuda->functions.len, [&](const CudaFunction &f) {
        return f.entry == entry && strstr(f.source, ", 128, 128, 2, 2, ");
    });
}

// Registers and spills, as ptxas counts them: the largest tiles in every order, copies element by element, and windows
// whose every element is a copy.
TEST_F(ProductTest, FitsInRegisters) {
    std::vector<Case> cases = EveryOrder({{4096, 512, 1024}});
    cases.push_back({{100, 33, 7}, false, true});
    cases.push_back({{3000, 33, 1001}, true, false});
    for (const char *type : {"f16", "tf32", "f32"}) {
        for (const bool convolution : {false, true}) {
            Module *m = PlannedForCuda(Text(convolution ? Convolution(type, 21, 50) : Body(type, cases)));
            ASSERT_NE(m, nullptr);
            const CudaModule *cuda = Emit(m);
            ASSERT_NE(cuda, nullptr);
            for (int arch : {75, 90}) {
                if (arch == 75 && std::string(type) == "tf32") continue;
                // in f16 on others: checks/sass.sh
                if (!InLongTests() && (arch == 75) != (type[0] == 'f' && type[1] == '1')) continue;
                if (!InLongTests() && convolution != (std::string(type) == "tf32")) continue;
                for (const amp_nvrtc_kernel_use &use : Uses(cuda, arch)) {
                    const std::string what = type + std::string(" sm_") + Int(arch) + " " + use.name;
                    EXPECT_EQ(use.spill_loads + use.spill_stores + use.stack_bytes, 0) << what;
                    EXPECT_LE(use.registers, convolution || HasLargeWarps(cuda, use.name) ? 255 : 168) << what;
                }
            }
        }
    }
}

// A matrix that is read beside the sums is asked for when the block begins, a row of numbers is not; and its tiles have
// eight warps.
TEST_F(ProductTest, PrefetchesWhatIsReadBesideTheSums) {
    const std::string product = "  input %a : f16[N, 512]\n  input %b : f16[512, 256]\n  input %row : f32[256]\n"
                                "  input %beside : f16[N, 256]\n"
                                "  %s = contract(%a, %b) : f32[N, 256]\n";
    const std::string rest = "  %f = cast(%beside) : f32[N, 256]\n  %y = add(%s, %f) : f32[N, 256]\n  result y = %y\n",
                      bias = "  %y = add(%s, %row) : f32[N, 256]\n  result y = %y\n";
    for (const bool beside : {true, false}) {
        const std::string text = product + (beside ? rest : bias);
        const CudaModule *cuda = Emit(PlannedForCuda(Text(text)));
        ASSERT_NE(cuda, nullptr);
        int large = 0;
        for (int i = 0; i < cuda->functions.len; i++) {
            const std::string source = cuda->functions.data[i].source;
            if (source.find("matrices.run(") == std::string::npos) continue; // what follows a library's call
            EXPECT_EQ(source.find("prefetch_tile<") != std::string::npos, beside) << source;
            if (source.find(", 128, 128, ") == std::string::npos) continue;
            large++;
            EXPECT_NE(source.find(beside ? ", 128, 128, 2, 4, " : ", 128, 128, 2, 2, "), std::string::npos) << source;
        }
        EXPECT_EQ(large, 1);
        CudaRunTest::Check(Text(text), {1, 130}, 2e-2);
    }
}

TEST_F(ProductTest, SaysWhatItCannotDo) {
    const CudaModule *cuda = nullptr;
    amp_error err = {};
    Module *m = PlannedForCuda(Text(Convolution("f16", {32768, 32768, 8, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}})));
    ASSERT_NE(m, nullptr);
    EXPECT_EQ(codegen_cuda(m, &cuda, &err), AMP_UNSUPPORTED);
    EXPECT_NE(std::string(err.message).find("images of 32768 x 32768 pixels are not supported for CUDA"),
              std::string::npos)
        << err.message;
}

} // namespace
