// model_runner.h: a model.so in a test: compiled, loaded, and its programs walked kernel by kernel, one task after the
// other.
//
// Every buffer has memory of its own that ends at a page which cannot be touched, so that one element past the edge is
// a crash; memory starts as garbage, so that padding which is not written is seen.
#ifndef AMP_TESTS_CODEGEN_MODEL_RUNNER_H
#define AMP_TESTS_CODEGEN_MODEL_RUNNER_H

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "amp/model_abi.h"
#include "base/elf.h"
#include "base/processor.h"
#include "base/rounding.h"
#include "codegen/codegen.h"
#include "codegen/kept_text.h"
#include "ir/interp/interp.h"
#include "ir/ir.h"
#include "runtime/device/cpu/product/attention.h"

// |size| bytes that end where a forbidden page begins.
class GuardedMemory {
  public:
    explicit GuardedMemory(size_t size);
    ~GuardedMemory() { munmap(base_, mapped_); }
    GuardedMemory(const GuardedMemory &) = delete;
    char *data() { return data_; }
    size_t size() const { return size_; }

  private:
    char *base_, *data_;
    size_t size_, mapped_;
};

// T of every run; 1: models have no T.
inline int64_t run_length = 1;

inline int64_t EvalDim(const amp_model_dim &d, int64_t n) {
    int64_t product = d.mul;
    for (int i = 0; i < d.of_n; i++) product *= n;
    for (int i = 0; i < d.of_t; i++) product *= run_length;
    return d.of_n || d.of_t ? product / d.div : product;
}
inline int64_t Up32(int64_t v) { return (v + 31) / 32 * 32; }

size_t StorageSize(uint32_t storage);

// The place of element (r, c); the formulas of docs/design/kernels.md.
int64_t ElementIndex(uint32_t layout, int64_t r, int64_t c, int64_t rows, int64_t cols);

double ReadElement(const char *data, uint32_t storage, bool is_bool, int64_t i);

void WriteElement(char *data, uint32_t storage, int64_t i, double v);

// Whether this machine runs kernels of an instruction set.
bool HasIsa(int isa);

class LoadedModel {
  public:
    LoadedModel(const void *bytes, size_t size);
    ~LoadedModel();
    LoadedModel(const LoadedModel &) = delete;
    const amp_model_desc *desc() const { return desc_; }
    // Whether it has kernels of an instruction set that this machine runs.
    bool Runs(int isa) const;

    const amp_model_program *Program(const std::string &name) const;
    // The text of a section that holds some; "": there is none.
    std::string Kept(const char *section) const;

  private:
    std::string bytes_;
    void *handle_ = nullptr;
    const amp_model_desc *desc_ = nullptr;
};

// Values by name, row-major.
using Values = std::map<std::string, std::vector<double>>;

// One run of a program.  Buffers of one state share memory.
class ProgramRun {
  public:
    ProgramRun(const LoadedModel &model, const std::string &program, int isa, int64_t n, bool watch = true);

    const amp_model_buffer &buffer(uint32_t i) const;
    int64_t Rows(uint32_t i) const { return EvalDim(buffer(i).rows, n_); }
    int64_t Cols(uint32_t i) const { return EvalDim(buffer(i).cols, n_); }

    void Set(const Values &values);

    std::vector<double> Get(uint32_t i) const;
    std::vector<double> Get(const std::string &name) const;
    // The bits of everything that is in memory, for bit-equality.
    std::string Bits(uint32_t i) const { return std::string(memory_[i]->data(), memory_[i]->size()); }

    // Elements past the edge are zero, where a kernel ran that writes the buffer, but those that nothing reads.
    bool PaddingIsZero(uint32_t i) const;

    void Run();

  private:
    int64_t Elements(uint32_t i) const;
    double Element(uint32_t i, int64_t at) const;
    void Each(uint32_t i, const std::function<void(int64_t, int64_t, int64_t)> &visit) const;

    // Rows of panels past the last one keep what they hold.
    void EachOfPadding(uint32_t i, const std::function<void(int64_t)> &visit) const;
    void ClearPadding(uint32_t i);

    void RunKernel(const amp_model_kernel &k);

    // The runtime's own tiles (runtime/device/cpu/product/attention.h), one task after the other.
    struct Step {
        amp_kernel_fn run;
        amp_kernel_args args;
    };
    amp_attention_rows AttentionRows(const amp_model_attention &x, const amp_model_attention_operand &o,
                                     const std::vector<void *> &operands, int64_t size) const;
    void RunAttention(const amp_model_kernel &k, const std::vector<void *> &operands);

    // f32 sums with k ascending; columns past the edge are zero, as the padding of B is.
    void Product(const amp_model_kernel &k, const amp_kernel_args &args, float *acc) const;
    // Product (batch, row, column) of each element of the result, by the definitions in amp/model_abi.h.
    void BatchProduct(const amp_model_kernel &k, uint32_t a, uint32_t b, const amp_kernel_args &args, float *acc) const;
    float BatchElement(const amp_model_kernel &k, uint32_t a, uint32_t b, const std::vector<int64_t> &at, int64_t row,
                       int64_t col) const;
    double BatchAt(const amp_model_batch_operand &x, uint32_t i, const std::vector<int64_t> &at, int64_t row,
                   int64_t col) const;
    // One element of conv, conv_data or conv_weight, by the definitions in amp/model_abi.h.
    void ImageProduct(const amp_model_kernel &k, uint32_t a, uint32_t b, int64_t cols, const amp_kernel_args &args,
                      float *acc) const;
    // The pixel of x under tap (kh, kw) of y's pixel, or -1.
    static int64_t Under(const amp_model_window &g, int64_t n, int64_t oy, int64_t ox, int64_t kh, int64_t kw);
    // The pixel of y whose tap (kh, kw) is on x's pixel, or -1.
    static int64_t Over(const amp_model_window &g, int64_t n, int64_t y, int64_t x, int64_t kh, int64_t kw);
    static int64_t Groups(const amp_model_window &g) { return std::max(g.groups, 1); }
    // The weight between channel |i| that is summed over and column |col| of the result; 0 where their groups differ.
    float WeightAt(const amp_model_kernel &k, uint32_t b, int64_t tap, int64_t i, int64_t col) const;
    float PixelElement(const amp_model_kernel &k, uint32_t a, uint32_t b, int64_t row, int64_t col) const;
    float WeightElement(const amp_model_window &g, uint32_t a, uint32_t b, int64_t row, int64_t col) const;
    double ImageAt(uint32_t i, int64_t pixel, int64_t channel, int64_t channels) const;
    double At(uint32_t i, int64_t r, int64_t c) const;

    const amp_model_program *program_;
    int isa_;
    int64_t n_;
    std::vector<std::unique_ptr<GuardedMemory>> memory_;
};

// An arena, IR text, and the model compiled from it.
class CodegenTest : public testing::Test {
  protected:
    CodegenTest();
    ~CodegenTest() override { arena_free(&arena_); }

    Module *Read(const std::string &text);

    // Half the time of the usual compiler, and not a bit of difference (CoreModelTest compares them).
    static constexpr const char *kUnoptimised = "tests/random/cc_unoptimised";

    // The instruction sets that a case is compiled for, by its text: the portable one, those up to v3, or the best of
    // this machine; NULL, all of them, with AMP_VARIANTS.
    static const char *IsaOf(const std::string &text);

    std::unique_ptr<LoadedModel> Compile(const Module *m, const char *c_compiler = nullptr, const char *isa = nullptr);

    // The reference: what the function computes in double, rounded at the same places.  States that it assigns come
    // back in |given|.
    Values Interpret(const Func *f, int64_t n, Values *given);

    Arena arena_;
};

#endif
