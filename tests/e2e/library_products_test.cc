// Products that cuBLASLt makes in place of ampc's own launches, on its stand-in: ampc's kernels give the same bits,
// whichever algorithm is the fastest by a scripted clock; what fails or is wrong is never taken.
#include <cmath>
#include <fstream>

#include "cuda_sdk/cublaslt_api.h"
#include "tests/base/failing_allocator.h"
#include "tests/base/planted.h"
#include "tests/e2e/library_products.h"

namespace {

// ---- the same bits --------------------------------------------------------------------------------------------------

struct Case {
    const char *name;
    std::string precision, settings;
    std::vector<std::string> served; // parts of what the session says of its products
    std::string text = "";
    int64_t width = 32;
};
void PrintTo(const Case &c, std::ostream *out) { *out << c.name; }

class Bits : public LibraryProducts, public ::testing::WithParamInterface<Case> {};

TEST_P(Bits, AreThoseOfOwnKernels) {
    const Case &c = GetParam();
    const std::string path =
        c.text.empty() ? Model(c.precision, c.settings) : Compiled(c.text + Training() + "precision " + c.precision);
    Asked a = Asked::Own();
    a.width = c.width;
    a.infers = c.text.empty() && c.precision[0] == 'f';
    const Outcome own = Live(path, a);
    EXPECT_EQ(own.Captured(), 0);
    a.products = AMP_PRODUCTS_SAME_BITS;
    for (const bool separate : {false, true}) {
        if (separate && (getenv("AMP_PLANTINGS") ? c.precision != "bf16 { }" : c.name != std::string("bf16"))) break;
        SCOPED_TRACE(separate ? "separate" : "planned");
        a.separate = separate;
        BeginTimes(own, 100, "cublasLt4=1");
        const Outcome library = Live(path, a);
        ExpectSame(own, library);
        EXPECT_EQ(library.Took(0), !c.served.empty());
        for (const std::string &part : separate ? std::vector<std::string>{} : c.served)
            EXPECT_TRUE(library.Says(AMP_LOG_INFO, part)) << part;
        ExpectClean();
    }
}

// Two heads, whose matrices are columns of q, k and v.
const std::string kHeads = "amp 1\nblock heads(x) {\n"
                           "    return transpose(reshape(x; shape = [dim(x, 0), dim(x, 1), 2, 8]); a = 1, b = 2)\n}\n"
                           "model m(x: f32[N, 8, 16]) -> y {\n"
                           "    q = heads(linear(x; out = 16) as fcq)\n    k = heads(linear(x; out = 16) as fck)\n"
                           "    v = heads(linear(x; out = 16) as fcv)\n";
const std::string kAttention = "    seen = matmul(softmax(matmul(q, transpose(k; a = 2, b = 3)); dim = 3), v)\n";
const std::string kJoined =
    "    z = linear(reshape(transpose(seen; a = 1, b = 2); shape = [dim(x, 0), 8, 16]); out = 16)\n"
    "    y = linear(mean(z; dims = 1); out = 16) as fc4\n}\n";

// With TF32 numbers that a kernel rounds itself are none that the library rounds: fc1.
std::vector<Case> Cases() {
    return {{"fp16",
             "fp16 { loss_scale = dynamic(init = 1024.0) }",
             "",
             {"fc2: linear + bias + gelu, 1 product of 16 x 32 x 32", "fc3: linear + bias + dropout + add, ",
              "fc4: linear + bias, ", "fc3.linear.grad.input: matmul + add + gelu_grad, ",
              "fc3.linear.grad.weight: matmul + all_finite + unscale, and 1 more, 2 products of 32 x 32 x 16"}},
            {"bf16",
             "bf16 { }",
             "    accumulate = 2\n",
             {"fc2: linear + bias + gelu, ", "fc2.linear.grad.input: matmul, "}},
            {"tf32",
             "tf32 { }",
             "",
             {"fc4: linear + bias, ", "fc4.linear.grad.weight: matmul; fc4.linear.grad.input: matmul + gelu_grad, "},
             kSmall},
            {"fp32", "fp32 { }", "", {"fc4: linear + bias, 1 product of 16 x 16 x 32"}, kSmall},
            {"heads",
             "fp32 { }",
             "",
             {"reshape: reshape + transpose + attention, 32 products of 8 x 8 x 8",
              "reshape_3.grad: reshape + transpose + attention_grad; reshape: reshape + transpose + attention_grad, 64",
              "attention.grad.query: attention_grad + reshape + transpose, and 1 more, 64 products of 8 x 8 x 8"},
             kHeads + "    seen = attention(q, k, v)\n" + kJoined,
             32},
            {"batches",
             "bf16 { }",
             "",
             {"transpose: transpose + matmul, 16 products of 8 x 8 x 16",
              "permute: permute + matmul, 8 products of 16 x 24 x 16",
              "permute_1.grad: permute + matmul, 8 products of 16 x 16 x 24",
              "matmul.grad.b: matmul; matmul.grad.a: matmul + add, 32 products of 8 x 16 x 8"},
             "amp 1\nmodel m(x: f32[N, 8, 16]) -> y {\n"
             "    param each: f32[8, 16, 24] = normal(std = 0.1)\n"
             "    a = linear(x; out = 16) as fc1\n    b = linear(x; out = 16) as fc2\n"
             "    c = matmul(softmax(matmul(a, transpose(b; a = 1, b = 2)); dim = 2), a)\n"
             "    d = gelu(einsum(c, each; equation = \"ntc,tcd->ntd\"))\n"
             "    y = linear(mean(linear(d; out = 16) as fc3; dims = 1); out = 16) as fc4\n}\n",
             128},
            {"chain",
             "fp16 { loss_scale = dynamic(init = 1024.0) }",
             "",
             {"fc5.linear.grad.input: matmul + add, and 1 more, 2 products of 16 x 32 x 32"},
             "amp 1\nmodel m(x: f32[N, 32]) -> y {\n"
             "    h = gelu(linear(x; out = 32) as fc1)\n"
             "    a = gelu(linear(h; out = 32) as fc2) * tanh(linear(h; out = 32) as fc3)\n"
             "    b = linear(h; out = 32) as fc5\n    y = linear(a * b + h; out = 16) as fc4\n}\n"},
            {"parts",
             "bf16 { }",
             "",
             {"fc2: linear + bias, 1 product of 256 x 32 x 32",
              "fc2.linear.grad.weight_1: matmul; fc2.linear.grad.input: matmul, 2 products of 32 x 32 x 64"},
             "amp 1\nmodel m(x: f32[N, 16, 32]) -> y {\n"
             "    a = linear(x; out = 32) as fc1\n    b = linear(a; out = 32) as fc2\n"
             "    y = linear(mean(b; dims = 1); out = 16) as fc4\n}\n",
             512},
            {"filled",
             "bf16 { }",
             "",
             {"fc2: linear + bias + gelu, 1 product of 16 x 300 x 32"},
             "amp 1\nmodel m(x: f32[N, 32]) -> y {\n"
             "    a = gelu(linear(linear(x; out = 32) as fc1; out = 300) as fc2)\n"
             "    y = linear(linear(a; out = 300) as fc3; out = 16) as fc4\n}\n"}};
}
INSTANTIATE_TEST_SUITE_P(Of, Bits, ::testing::ValuesIn(Cases()), [](const auto &info) { return info.param.name; });

TEST_F(LibraryProducts, PlantedBitIsFound) {
    const Outcome own = Live(Small(), Asked::Own());
    Outcome other = own;
    other.params[7] = std::nextafter(other.params[7], 9.0f);
    ExpectFound("another bit of a weight", "other weights", [&] { ExpectSame(own, other); });
}

// Evaluation and inference have choices of their own where a session is made for them.
TEST_F(LibraryProducts, InferenceHasTheSameBits) {
    Asked a = Asked::Own();
    a.program = "infer";
    const std::string path = Model(Cases()[0].precision);
    const Outcome own = Live(path, a);
    a.products = AMP_PRODUCTS_SAME_BITS;
    BeginTimes(own, 100, "cublasLt4=1");
    const Outcome library = Live(path, a);
    ExpectSame(own, library);
    EXPECT_TRUE(library.Took(0));
    ExpectClean();
}

// A number of samples that no session was made for has choices of its own if they are on disk; else some of another's.
TEST_F(LibraryProducts, OtherNumbersOfSamples) {
    Asked a = Asked::Own();
    a.sizes = {8, 8, 8};
    const Outcome own = Live(Small(), a);
    a.products = AMP_PRODUCTS_SAME_BITS;
    BeginTimes(own, 100, "cublasLt4=1");
    const Outcome unknown = Live(Small(), a);
    ExpectSame(own, unknown);
    EXPECT_TRUE(unknown.Took(0));
    Asked small;
    small.capacity = 8;
    small.sizes = a.sizes;
    EXPECT_TRUE(Live(Small(), small).Took(0));
    const Outcome known = Live(Small(), a);
    ExpectSame(own, known);
    EXPECT_TRUE(known.Took(0));
    EXPECT_GT(known.captured[0], unknown.captured[0]) << "gradients of weights, whose sums go over the samples";
    ExpectClean();
}

// ---- products of a batch --------------------------------------------------------------------------------------------

// A product of each sample with itself, and one of all.
class Batches : public LibraryProducts {
  protected:
    static std::string Model() {
        return Compiled("amp 1\nmodel m(x: f32[N, 8, 32]) -> y {\n"
                        "    a = linear(x; out = 32) as fc1\n"
                        "    s = matmul(a, transpose(a; a = 1, b = 2))\n"
                        "    y = linear(reshape(s; shape = [dim(x, 0), 64]); out = 16) as fc4\n}\n" +
                        Training() + "precision bf16 { }\n");
    }
    static Asked Inference(int32_t products) {
        Asked a;
        a.products = products;
        a.program = "infer";
        a.width = 256;
        return a;
    }
};

// The workspace of the algorithm that splits k grows with the batch.
TEST_F(Batches, TheFastestIsTaken) {
    const Outcome own = Live(Model(), Inference(AMP_PRODUCTS_OWN));
    const struct {
        const char *times;
        size_t taken;
        int32_t products;
        uint64_t workspace;
    } rows[] = {
        {"cublasLt0=3,cublasLt2=1,cublasLt3=5", 0, AMP_PRODUCTS_SAME_BITS, 0},
        {"cublasLt0=5,cublasLt2=1,cublasLt3=3", 3, AMP_PRODUCTS_SAME_BITS, 1 << 20},
        {"cublasLt0=5,cublasLt1=3,cublasLt2=1,cublasLt3=6", 1, AMP_PRODUCTS_FASTEST, 16 * 8 * 8 * 2 * sizeof(float)}};
    for (const auto &row : rows) {
        SCOPED_TRACE(row.times);
        Forget();
        BeginTimes(own, 100, row.times);
        const Outcome o = Live(Model(), Inference(row.products));
        ASSERT_EQ(o.status, AMP_OK) << o.message;
        if (row.products == AMP_PRODUCTS_SAME_BITS) ExpectSame(own, o);
        EXPECT_TRUE(o.Took(row.taken));
        EXPECT_EQ(o.bytes - own.bytes, row.workspace);
        ASSERT_EQ(o.choices.size(), 2u);
        EXPECT_EQ(o.choices[0].products, 16);
        EXPECT_EQ(o.choices[1].products, 1);
        ExpectClean();
    }
}

// As many as there are samples.
TEST_F(Batches, AtOtherNumbersOfSamples) {
    Asked a = Asked::Own();
    a.width = 256;
    a.sizes = {8, 8, 12};
    a.infers = false;
    const Outcome own = Live(Model(), a);
    a.products = AMP_PRODUCTS_SAME_BITS;
    BeginTimes(own, 100, "cublasLt4=1");
    const Outcome o = Live(Model(), a);
    ExpectSame(own, o);
    EXPECT_TRUE(o.Took(0));
    for (const int64_t n : {8, 12})
        EXPECT_EQ(std::count_if(o.later.begin(), o.later.end(),
                                [&](const Choice &c) { return c.n == n && c.products == n && c.algorithm == 0; }),
                  3)
            << n;
    ExpectClean();
}

// What is wrong in one product of the batch is never taken.
TEST_F(Batches, PlantingsAreNeverTaken) {
    const Outcome own = Live(Model(), Inference(AMP_PRODUCTS_OWN));
    for (int i = 0; i < 16; i += getenv("AMP_PLANTINGS") ? 1 : 3) {
        const std::string kind = i % 2 ? "value" : "ulp", number = ":" + std::to_string(i * 101 + 1);
        const bool both = i % 4 == 3;
        Forget();
        BeginTimes(own, 100, "cublasLt0=1,cublasLt3=2");
        Fault(kind + ":0" + number + (both ? "," + kind + ":3" + number : ""));
        SCOPED_TRACE(getenv("FAKECUDA_CUBLASLT"));
        const Outcome o = Live(Model(), Inference(AMP_PRODUCTS_SAME_BITS));
        ExpectSame(own, o);
        ASSERT_EQ(o.choices.size(), 2u);
        EXPECT_EQ(o.choices[0].algorithm, both ? -1 : 3);
    }
    ExpectClean();
}

// A head has a call for all samples.  Choices are read again from disk; if one of the calls fails, the launch is ours.
TEST_F(Batches, SeveralCallsInPlaceOfALaunch) {
    const std::string model = Compiled(kHeads + kAttention + kJoined + Training() + "precision bf16 { }\n");
    Asked a = Inference(AMP_PRODUCTS_OWN);
    a.width = 128;
    const Outcome own = Live(model, a);
    a.products = AMP_PRODUCTS_SAME_BITS;
    int64_t calls = 0;
    for (int i = 0; i < 6; i++) {
        BeginTimes(own, 100, "cublasLt4=1");
        if (i) Fault("fail:cublasLtMatmulAlgoGetHeuristic:1"); // which is not asked any more
        if (i > 1) a.fails_later = "fail:cublasLtMatmul:" + std::to_string(i);
        SCOPED_TRACE(a.fails_later);
        const Outcome o = Live(model, a);
        ExpectSame(own, o);
        EXPECT_TRUE(o.Took(0));
        EXPECT_EQ(o.Says(AMP_LOG_WARNING, "cuBLASLt fails at n = 16: its products are ampc's own"), i > 1);
        if (!i) calls = o.captured[0];
        EXPECT_EQ(o.captured[0]<calls, i> 1);
        ExpectClean();
        unsetenv("FAKECUDA_CUBLASLT");
    }
}

// FP16 counts what overflows in runs 1, 2, 4 ..: those have own launches, whose kernels count.
TEST_F(LibraryProducts, CountsOfRunsThatAreLookedAt) {
    for (const bool all : {false, true}) {
        SCOPED_TRACE(all ? "all" : "some");
        Asked a = Asked::Own();
        a.factor = 60000;
        a.looks_at_all = all;
        const Outcome own = Live(Small(), a);
        a.products = AMP_PRODUCTS_SAME_BITS;
        BeginTimes(own, 100, "cublasLt4=1");
        const Outcome library = Live(Small(), a);
        ExpectSame(own, library);
        EXPECT_FALSE(own.said[AMP_LOG_NUMBERS].empty());
        EXPECT_EQ(own.said[AMP_LOG_NUMBERS], library.said[AMP_LOG_NUMBERS]);
        EXPECT_EQ(library.Took(0), !all);
    }
    ExpectClean();
}

// ---- by the clock ---------------------------------------------------------------------------------------------------

TEST_F(LibraryProducts, TheFastestIsTaken) {
    const struct {
        const char *times;
        int own, taken; // -1: ours
        int32_t products;
    } rows[] = {
        {"cublasLt0=5,cublasLt2=1,cublasLt3=3", 100, 3, AMP_PRODUCTS_SAME_BITS},
        {"cublasLt0=3,cublasLt2=1,cublasLt3=5", 100, 0, AMP_PRODUCTS_SAME_BITS},
        {"cublasLt0=300,cublasLt2=1,cublasLt3=200", 100, -1, AMP_PRODUCTS_SAME_BITS},
        {"cublasLt0=1,cublasLt3=1", 100, -1, AMP_PRODUCTS_OWN},
        {"cublasLt0=5,cublasLt1=3,cublasLt2=1,cublasLt3=6", 100, 1, AMP_PRODUCTS_FASTEST}, // 0 where k is too short
        {"cublasLt0=3,cublasLt1=5,cublasLt2=1,cublasLt3=4", 100, 0, AMP_PRODUCTS_FASTEST},
        {"cublasLt0=5,cublasLt1=4,cublasLt2=1,cublasLt3=3", 100, 3, AMP_PRODUCTS_FASTEST},
        {"cublasLt0=300,cublasLt1=300,cublasLt2=1,cublasLt3=300", 100, -1, AMP_PRODUCTS_FASTEST},
    };
    Asked a = Asked::Own();
    const Outcome own = Live(Small(), a);
    for (const auto &row : rows) {
        SCOPED_TRACE(std::string(row.times) + " products " + std::to_string(row.products));
        Forget();
        a.products = row.products;
        BeginTimes(own, row.own, row.times);
        const Outcome o = Live(Small(), a);
        ASSERT_EQ(o.status, AMP_OK) << o.message;
        if (row.taken != 1) ExpectSame(own, o);
        for (int i = 0; i < 5; i++)
            EXPECT_EQ(o.captured[static_cast<size_t>(i)] > 0, i == row.taken || (row.taken == 1 && i == 0)) << i;
        EXPECT_EQ(o.bytes - own.bytes, row.taken == 3 ? 1u << 20 : row.taken == 1 ? 16 * 16 * 2 * sizeof(float) : 0);
        ExpectClean();
    }
}

// ---- on disk --------------------------------------------------------------------------------------------------------

// The choices of a process before: none is asked for again, which would fail.
TEST_F(LibraryProducts, ChoicesAreReadFromDisk) {
    const char *const no_asking = "fail:cublasLtMatmulAlgoGetHeuristic:1";
    const Outcome own = Live(Small(), Asked::Own());
    auto once = [&](const char *fault) {
        BeginTimes(own, 100, "cublasLt0=5,cublasLt3=3");
        Fault(fault);
        const Outcome o = Live(Small(), {});
        ExpectSame(own, o);
        ExpectClean();
        unsetenv("FAKECUDA_CUBLASLT");
        return o;
    };
    EXPECT_EQ(Choices().size(), 0u);
    EXPECT_TRUE(once("").Took(3));
    const std::vector<std::string> kept = Choices();
    ASSERT_EQ(kept.size(), 2u) << "fc4, and both its gradients";
    const Outcome again = once(no_asking);
    EXPECT_TRUE(again.Took(3));
    EXPECT_EQ(again.bytes - own.bytes, 1u << 20);
    EXPECT_FALSE(again.Says(AMP_LOG_WARNING, "cuBLASLt"));

    // Damaged, cut, empty: what is not whole is measured anew, and written.
    for (int damage = 0; damage < 3; damage++) {
        SCOPED_TRACE(damage);
        for (const std::string &path : kept) {
            struct stat st;
            ASSERT_EQ(stat(path.c_str(), &st), 0);
            if (damage == 0) {
                std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
                file.seekp(-3, std::ios::end);
                file.put('\x5a');
            } else ASSERT_EQ(truncate(path.c_str(), damage == 1 ? st.st_size - 9 : 0), 0);
        }
        EXPECT_TRUE(once("").Took(3));
        EXPECT_TRUE(once(no_asking).Took(3));
    }
    // Of another version, or another driver, they are not known: the failure is met.
    const std::string version = std::string("version:13020,") + no_asking;
    EXPECT_LT(once(version.c_str()).Captured(), again.Captured());
    begin({{"DRIVER_VERSION", "13010"}});
    Fault(no_asking);
    EXPECT_LT(Live(Small(), {}).Captured(), again.Captured());
    unsetenv("FAKECUDA_DRIVER_VERSION");
}

TEST_F(LibraryProducts, AFolderThatCannotBeWritten) {
    const Outcome own = Live(Small(), Asked::Own());
    setenv("AMPC_CACHE_DIR", "/proc/none", 1);
    for (int i = 0; i < 2; i++) {
        BeginTimes(own, 100, "cublasLt4=1");
        const Outcome o = Live(Small(), {});
        ExpectSame(own, o);
        EXPECT_TRUE(o.Took(0));
    }
    setenv("AMPC_CACHE_DIR", cache_.c_str(), 1);
    ExpectClean();
}

// ---- without the library --------------------------------------------------------------------------------------------

// The stand-in without one of its calls.
std::string Lacking(const char *symbol) {
    std::ifstream from(kLibrary, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(from)), {});
    const std::string path = e2e::temp_path("libcublasLt-lacking.so");
    for (size_t at = 0; (at = bytes.find(symbol, at)) != std::string::npos;) bytes[at] = 'X';
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
}

TEST_F(LibraryProducts, WithoutTheLibrary) {
    const struct {
        std::string path;
        const char *fault, *why;
        amp_status status; // of "fastest"
    } rows[] = {
        {"/proc/none", "", "pip install nvidia-cublas", AMP_NOT_FOUND},
        {Lacking("cublasLtMatmulAlgoConfigGetAttribute"), "", "it has no cublasLtMatmulAlgoConfigGetAttribute",
         AMP_BAD_FILE},
        {kLibrary, "version:14000", "it is of CUDA 14, and one of CUDA 11 to 13 is needed", AMP_BAD_FILE},
        {kLibrary, "version:10010", "it is of CUDA 10, and one of CUDA 11 to 13 is needed", AMP_BAD_FILE},
    };
    const Outcome own = Live(Small(), Asked::Own());
    for (const auto &row : rows) {
        SCOPED_TRACE(row.why);
        BeginTimes(own, 100, "cublasLt4=1");
        setenv("CUBLASLT_PATH", row.path.c_str(), 1);
        Fault(row.fault);
        Asked a;
        const Outcome o = Live(Small(), a);
        ExpectSame(own, o);
        EXPECT_EQ(o.Captured(), 0);
        EXPECT_EQ(
            std::count_if(o.said[AMP_LOG_INFO].begin(), o.said[AMP_LOG_INFO].end(),
                          [](const std::string &line) { return !line.rfind("matrix products are ampc's own: ", 0); }),
            1);
        EXPECT_TRUE(o.Says(AMP_LOG_INFO, row.why));
        a.products = AMP_PRODUCTS_FASTEST;
        const Outcome fastest = Live(Small(), a);
        EXPECT_EQ(fastest.status, row.status);
        EXPECT_NE(fastest.message.find(row.why), std::string::npos) << fastest.message;
        ExpectClean();
    }
}

// ---- what is wrong is never taken -----------------------------------------------------------------------------------

struct Planting {
    const char *kind;
    int count;
    uint64_t first, step; // of the numbers
};
void PrintTo(const Planting &p, std::ostream *out) { *out << p.kind; }

class Plantings : public LibraryProducts, public ::testing::WithParamInterface<Planting> {};

// Of one algorithm the next one is taken, of both none.  One in five; the long tests plant all.
TEST_P(Plantings, AreNeverTaken) {
    const Planting &p = GetParam();
    Asked a = Asked::Own();
    a.infers = false;
    const Outcome own = Live(Small(), a);
    a.products = AMP_PRODUCTS_SAME_BITS;
    for (int i = 0; i < p.count; i += getenv("AMP_PLANTINGS") ? 1 : 5) {
        const std::string number = ":" + std::to_string(p.first + static_cast<uint64_t>(i / 2) * p.step);
        const bool both = i % 2;
        Forget();
        BeginTimes(own, 100, "cublasLt0=1,cublasLt3=2");
        Fault(p.kind + (":0" + number) + (both ? "," + (p.kind + (":3" + number)) : ""));
        SCOPED_TRACE(getenv("FAKECUDA_CUBLASLT"));
        const Outcome o = Live(Small(), a);
        ExpectSame(own, o);
        // the gradient of the weight is f32, which has no ties
        EXPECT_EQ(o.captured[0], !both && !strcmp(p.kind, "tie") ? 1 : 0);
        EXPECT_EQ(o.captured[3] > 0, !both);
    }
    ExpectClean();
}

INSTANTIATE_TEST_SUITE_P(Of, Plantings,
                         ::testing::Values(Planting{"value", 28, 1, 1}, Planting{"ulp", 28, 100, 7},
                                           Planting{"tie", 2, 0, 0}, Planting{"later", 26, 2, 4},
                                           Planting{"rows", 16, 0, 2}),
                         [](const auto &info) { return info.param.kind; });

// Along k of 512 equal lines of a pattern would meet, and hide in which order sums are added.
TEST_F(LibraryProducts, AnotherOrderOfLongSumsIsFound) {
    const std::string model = Compiled("amp 1\nmodel m(x: f32[N, 32]) -> y {\n"
                                       "    y = linear(gelu(linear(x; out = 512) as fc1); out = 64) as fc2\n}\n" +
                                       Training() + "precision fp16 { loss_scale = dynamic(init = 1024.0) }\n");
    Asked a = Asked::Own();
    a.infers = false;
    const Outcome own = Live(model, a);
    a.products = AMP_PRODUCTS_SAME_BITS;
    BeginTimes(own, 100, "cublasLt0=1,cublasLt3=300");
    Fault("order:0:0");
    ExpectSame(own, Live(model, a));
    ExpectClean();
}

// What is wrong after all measurements is used: the comparison sees it.
TEST_F(LibraryProducts, PlantedLateErrorIsFound) {
    Asked a = Asked::Own();
    a.infers = false;
    const Outcome own = Live(Small(), a);
    a.products = AMP_PRODUCTS_SAME_BITS;
    a.fails_later = "value:0:8";
    BeginTimes(own, 100, "cublasLt4=1");
    const Outcome late = Live(Small(), a);
    EXPECT_TRUE(late.Took(0));
    ExpectFound("another value in a run", "other weights", [&] { ExpectSame(own, late); });
}

// ---- what fails -----------------------------------------------------------------------------------------------------

// While a session is made, and while its graph is.
TEST_F(LibraryProducts, CallsOfTheLibraryFail) {
    Asked a = Asked::Own();
    a.infers = false;
    const Outcome own = Live(Small(), a);
    a.products = AMP_PRODUCTS_SAME_BITS;
    std::vector<std::string> faults, later;
#define EACH(name, symbol, parameters)                                                                                 \
    for (int k = 1; k <= 3; k++) faults.push_back("fail:" #symbol ":" + std::to_string(k));
    CUBLASLT_CALLS(EACH)
#undef EACH
    for (const char *call : {"MatmulDescCreate:1", "MatrixLayoutCreate:2", "MatrixLayoutSetAttribute:3", "Matmul:1",
                             "Matmul:2", "Matmul:3", "MatmulDescDestroy:2", "Destroy:1"})
        later.push_back(std::string("fail:cublasLt") + call);
    for (size_t i = 0; i < faults.size() + later.size(); i++) {
        const bool is_in_short = i < faults.size() ? i % 3 == i / 3 % 3 : i % 2; // 1st, 2nd or 3rd
        if (!is_in_short && !getenv("AMP_PLANTINGS")) continue;
        Forget();
        BeginTimes(own, 100, "cublasLt4=1");
        Fault(i < faults.size() ? faults[i] : "");
        a.fails_later = i < faults.size() ? "" : later[i - faults.size()];
        SCOPED_TRACE(i < faults.size() ? faults[i] : a.fails_later + " later");
        const Outcome o = Live(Small(), a);
        ExpectSame(own, o);
        EXPECT_EQ(o.captured[2], 0);
        const bool fails = !a.fails_later.empty() && a.fails_later.find("Destroy") == std::string::npos;
        EXPECT_EQ(o.Says(AMP_LOG_WARNING, "cuBLASLt fails at n = 16: its products are ampc's own"), fails);
        ExpectClean();
        unsetenv("FAKECUDA_CUBLASLT");
    }
}

// Each call of the driver that measurements make fails: an error, or own kernels, and no leak.
TEST_F(LibraryProducts, CallsOfTheDriverFail) {
    Asked a = Asked::Own();
    a.infers = false;
    const Outcome own = Live(Small(), a);
    a.products = AMP_PRODUCTS_SAME_BITS;
    BeginTimes(own, 100, "cublasLt0=5,cublasLt3=3");
    const Outcome sound = Live(Small(), a);
    ASSERT_TRUE(sound.Took(3));
    int tried = 0, failed = 0, unmeasured = 0;
    for (const auto &call : sound.calls) {
        const auto before = own.calls.find(call.first);
        const int64_t first = before == own.calls.end() ? 0 : before->second;
        if (call.second - first < 1) continue;
        // the first, one in between, the last; as memory that is short, and as a device that has failed
        for (const int64_t k : {first + 1, (first + call.second) / 2 + 1, call.second})
            for (const char *error : {"2", "719"}) {
                if (tried++ % 11 && !getenv("AMP_PLANTINGS")) continue;
                const std::string plan = call.first + ":" + std::to_string(k) + ":" + error;
                SCOPED_TRACE(plan);
                Forget();
                BeginTimes(own, 100, "cublasLt0=5,cublasLt3=3");
                ASSERT_EQ(set_fail(plan.c_str()), 0);
                FailingAllocator counting;
                const amp_allocator allocator = counting.get();
                a.allocator = &allocator;
                const Outcome o = Live(Small(), a);
                set_fail("");
                failed += o.status != AMP_OK;
                if (o.status == AMP_OK) ExpectSame(own, o);
                else EXPECT_FALSE(o.message.empty());
                ExpectClean();
                if (!o.Says(AMP_LOG_INFO, "its products were not measured")) continue;
                BeginTimes(own, 100, "cublasLt0=5,cublasLt3=3"); // the next session measures them
                EXPECT_TRUE(Live(Small(), a).Took(3));
                unmeasured++;
            }
    }
    EXPECT_GT(failed, 2);
    EXPECT_GT(unmeasured, 2);
    EXPECT_GT(tried, 60);
}

TEST_F(LibraryProducts, MemoryOfTheHostRunsOut) {
    Asked a = Asked::Own();
    a.infers = false;
    int calls[2];
    Outcome outcomes[2];
    for (int i = 0; i < 2; i++) {
        FailingAllocator counting;
        const amp_allocator allocator = counting.get();
        a.allocator = &allocator;
        a.products = i ? AMP_PRODUCTS_SAME_BITS : AMP_PRODUCTS_OWN;
        if (i) BeginTimes(outcomes[0], 100, "cublasLt4=1");
        outcomes[i] = Live(Small(), a);
        calls[i] = counting.calls();
    }
    EXPECT_TRUE(outcomes[1].Took(0));
    ASSERT_GT(calls[1], calls[0] + 10);
    for (int fail = 0; fail < calls[1]; fail += getenv("AMP_PLANTINGS") ? 3 : calls[1] / 14 + 1) {
        SCOPED_TRACE(fail);
        Forget();
        BeginTimes(outcomes[0], 100, "cublasLt4=1");
        FailingAllocator failing(fail);
        const amp_allocator allocator = failing.get();
        a.allocator = &allocator;
        const Outcome o = Live(Small(), a);
        if (o.status == AMP_OK) ExpectSame(outcomes[0], o);
        else EXPECT_EQ(o.status, AMP_OUT_OF_MEMORY) << o.message;
        ExpectClean();
    }
}

} // namespace
