// core_model.h: core IR through fuse, layout, plan, code generation and the C compiler, with and without fusion and
// layouts: near the float64 interpreter, and the same bits whatever the variant.
#ifndef AMP_TESTS_CODEGEN_CORE_MODEL_H
#define AMP_TESTS_CODEGEN_CORE_MODEL_H

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <sstream>

#include "passes/fuse/kernel_check.h"
#include "passes/passes.h"
#include "tests/codegen/model_runner.h"

class CoreModelTest : public CodegenTest {
  protected:
    // |body|: inputs, states, ops and results of a function `infer`.
    static std::string Text(const std::string &body, const std::string &states = "");

    // Lines of a function in the order that the text form wants: inputs, ops, results.
    static std::string Sorted(const std::string &body);

    Module *Planned(const std::string &text, bool no_fuse, bool no_layout);

    std::string Print(const Module *m);

    // Numbers by name: i* small integers, b* bools, others normal.
    Values Draw(const Module *m, const Func *f, int64_t n);

    // The first variant is compiled as users have it, the others without optimisation: not a bit of
    // difference either.  Each case has one of the others, by its text, and one in three cases the optimised first;
    // with AMP_VARIANTS all have all.
    // |tolerance|: relative, and absolute around zero.
    void Check(const std::string &text, const std::vector<int64_t> &batches, double tolerance);

    void CheckRun(const Module *m, const LoadedModel &model, int64_t n, int isa, double tolerance, int variant,
                  const Values &given, const Values &want, Values *first);

    static void Compare(const std::vector<double> &got, const std::vector<double> &want, double tolerance,
                        const std::string &what);

    bool every_isa_ = false; // else the ones that its text chooses
};

#endif
