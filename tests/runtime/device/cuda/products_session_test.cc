// Products of a library that are no products of the buffers at the session's number of samples: none is asked for.
#include <unistd.h>

#include <functional>

#include "tests/runtime/device/cuda/on_stand_in.h"

namespace {

// k00, with a product that fits its buffers: D [n / 2][20] = A [n / 2][20] B [20][20] of the first columns
// of x, the weights and the logits, as if these had rows of 20.
struct WithProduct : AlteredTiny {
    WithProduct() {
        programs_[0].kernels.data = kernels_.data();
        cuda.programs.data = programs_.data();
        product.a = 0, product.b = 1, product.result = 3, product.parts = 1, product.cols = 20;
        product.instruction = AMP_INSTRUCTION_MMA_TF32;
        product.batch = {1, 1, 0, 0};
        product.rows = {1, 2, 1, 0}, product.k = {20, 1, 0, 0};
        product.pitch[0] = {40, 1, 0, 0}, product.pitch[1] = product.pitch[2] = {20, 1, 0, 0};
        kernels_[1].products = {&product, 1};
    }
    amp_model_cuda_product product = {};

  private:
    template <typename T> static std::vector<T> Of(const amp_model_table &t) {
        return std::vector<T>((const T *)t.data, (const T *)t.data + t.count);
    }
    std::vector<amp_model_cuda_program> programs_ = Of<amp_model_cuda_program>(cuda.programs);
    std::vector<amp_model_cuda_kernel> kernels_ = Of<amp_model_cuda_kernel>(programs_[0].kernels);
};

// Two products of half the rows each.
void Halve(amp_model_cuda_product *p) {
    p->rows = {1, 4, 1, 0}, p->batch = {2, 1, 0, 0};
    p->stride[0] = {80, 1, 0, 0}, p->stride[2] = {40, 1, 0, 0};
}

class ProductsOfTables : public OnStandIn {
  protected:
    static void SetUpTestSuite() { // where no choice is known
        const std::string folder = ::testing::TempDir() + "cuda-products-cache-" + std::to_string(getpid());
        setenv("AMPC_CACHE_DIR", folder.c_str(), 1);
        setenv("AMPC_PRODUCTS_FROM", "0", 1);
        setenv("CUBLASLT_PATH", "fakecuda/cublaslt/libcublasLt.so.13", 1);
    }
    static void TearDownTestSuite() {
        unsetenv("AMPC_PRODUCTS_FROM");
        unsetenv("CUBLASLT_PATH");
    }
    // How often the library ran.
    int64_t Calls(const std::function<void(amp_model_cuda_product &)> &damage) {
        begin({{"TIMES", "linear=100"}});
        int64_t calls = 0;
        {
            WithProduct tiny;
            damage(tiny.product);
            tiny.Make();
            amp::SessionOptions options = CudaOptions(8);
            EXPECT_EQ(amp_session_create(tiny.model, tiny.params, &options, &tiny.session, &tiny.err), AMP_OK)
                << tiny.err.message;
            Report r = report();
            const amp_json *outside = amp_json_get(r.root(), "outside");
            for (size_t i = 0; i < outside->object.count; i++)
                calls += Report::number(&outside->object.members[i].value, "calls");
        }
        ExpectNoLeak();
        return calls;
    }
};

TEST_F(ProductsOfTables, ThatDoNotFitAreNotAskedFor) {
    const struct {
        const char *what;
        std::function<void(amp_model_cuda_product &)> damage;
    } rows[] = {
        {"A has more lines",
         [](auto &p) {
             p.rows = {21, 1, 1, 0};
         }},
        {"A is longer",
         [](auto &p) {
             p.pitch[0] = {120, 1, 0, 0};
         }},
        {"lines of A overlap",
         [](auto &p) {
             p.pitch[0] = {16, 1, 0, 0};
         }},
        {"lines of A are not aligned",
         [](auto &p) {
             p.pitch[0] = {38, 1, 0, 0};
         }},
        {"B is longer",
         [](auto &p) {
             p.pitch[1] = {24, 1, 0, 0};
         }},
        {"B has more lines",
         [](auto &p) {
             p.k = {24, 1, 0, 0};
         }},
        {"D is longer",
         [](auto &p) {
             p.pitch[2] = {40, 1, 0, 0};
         }},
        {"D has more lines",
         [](auto &p) {
             p.rows = {1, 1, 1, 0};
         }},
        {"D is wider", [](auto &p) { p.cols = 24; }},
        {"D is as wide as numbers go", [](auto &p) { p.cols = INT64_MAX; }},
        {"lines whose number overflows",
         [](auto &p) {
             p.rows = {int64_t{1} << 38, 1, 1, 0};
         }},
        {"the same, and turned",
         [](auto &p) {
             p.a_turned = 1, p.pitch[0] = p.k = {int64_t{1} << 38, 1, 1, 0};
         }},
        {"turned, A has lines of n / 2 in 40",
         [](auto &p) {
             p.a_turned = 1, p.k = {400, 1, 0, 0};
         }},
        {"parts that are no multiple of 64", [](auto &p) { p.parts = 2; }},
        {"a bias of 10", [](auto &p) { p.bias = 3; }},
        {"A begins later", [](auto &p) { p.first[0].mul = 200; }},
        {"B begins later", [](auto &p) { p.first[1].mul = 4; }},
        {"D begins later", [](auto &p) { p.first[2].mul = 4; }},
        {"A begins between parts of 16 bytes", [](auto &p) { p.first[0].mul = 2; }},
        {"a batch whose D is longer", [](auto &p) { Halve(&p), p.batch.mul = 3; }},
        {"a batch without end", [](auto &p) { Halve(&p), p.batch.mul = int64_t{1} << 38; }},
        {"a batch whose A is longer", [](auto &p) { Halve(&p), p.stride[0].mul = 264; }},
        {"a batch whose B is longer", [](auto &p) { Halve(&p), p.stride[1].mul = 4; }},
        {"a batch whose results overlap", [](auto &p) { Halve(&p), p.stride[2].mul = 20; }},
        {"a batch whose results are all one", [](auto &p) { Halve(&p), p.stride[2].mul = 0; }},
        {"a batch that is not aligned", [](auto &p) { Halve(&p), p.stride[0].mul = 82; }},
    };
    EXPECT_GT(Calls([](auto &p) { Halve(&p); }), 0)
        << "two products of half the rows each, that the others are made of";
    EXPECT_GT(Calls([](auto &) {}), 0) << "the product that the others are made of";
    for (const auto &row : rows) EXPECT_EQ(Calls(row.damage), 0) << row.what;
}

} // namespace
