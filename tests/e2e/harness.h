// harness.h: compiling a model from text, loading and stepping it through the public headers only.
#ifndef AMP_TESTS_E2E_HARNESS_H
#define AMP_TESTS_E2E_HARNESS_H

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "amp/amp.hpp"
#include "amp/compile.h"

namespace e2e {

// A small multi-layer perceptron whose widths are multiples of nothing.
std::string mlp(const std::string &precision, int in = 19, int hidden = 37, int classes = 10,
                const std::string &optimizer = "adamw(lr = 0.01)");

// Two views of each sample, brought near each other and away from all others' (CLIP).
std::string contrast(int width, const std::string &optimizer = "adamw(lr = 0.01)");

// Two views of each sample through one network: each of 2 N has to find its other one among all (SimCLR).
std::string views(const std::string &optimizer = "adamw(lr = 0.01)");

inline std::string temp_path(const std::string &name) { return std::string(::testing::TempDir()) + "/" + name; }

// Where sessions run: AMP_TEST_DEVICE, or the CPU.
inline const char *device() { return getenv("AMP_TEST_DEVICE"); }

// Bytes of the emitted file; fails the test and returns "" on an error.
struct Compiled {
    amp_status status;
    std::string bytes, message, diagnostics;
};

// For one instruction set and without optimisation, unless |options| ask for instruction sets: what a model does is the
// same (tests/codegen, determinism_test).
Compiled compile(const std::string &text, amp_compile_options options = {}, const char *name = "mlp.amp");

// Compiles to a file and returns its path.
std::string compile_to_file(const std::string &text, const std::string &name, amp_compile_options options = {});

// A model, its params and a training session; everything is released with it.
struct Training {
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp_error err = {};

    Training(const std::string &path, int64_t capacity, int32_t threads = 1, uint64_t seed = 3,
             bool keep_values = false, const char *isa = nullptr, amp_comm *comm = nullptr);
    Training(const Training &) = delete;
    ~Training();
    bool ok() const { return session != nullptr; }
};

// Tests that also run on CUDA, where NVRTC is installed.
class OnDevice : public ::testing::Test {
  protected:
    void SetUp() override;

  private:
    static std::string Missing();
};

// n samples of |width| floats in [-1, 1) and labels in [0, classes), from a seed.
struct Batch {
    std::vector<float> x;
    std::vector<int32_t> y;
    int64_t n;
    Batch(int64_t n, int64_t width, int classes, uint32_t seed);
    static uint32_t next(uint32_t &state) { return state = state * 1664525u + 1013904223u; }
    const void *const *inputs();
    const void *pointers[2];
};

// Every parameter and buffer, concatenated in the model's order.
std::vector<float> values_of(const amp_model *model, const amp_params *params);
std::vector<float> all_params(const Training &r);
// The same of its averages.
std::vector<float> averages(Training &r);

bool same_bits(const std::vector<float> &a, const std::vector<float> &b);

// Steps over batches seeded 100, 101, ...; returns the losses.
std::vector<double> train(Training &r, int steps, int64_t n = 45, int in = 19, int classes = 10, int from = 0);

} // namespace e2e
#endif
