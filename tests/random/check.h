// check.h: runs one program in several ways and says how they differ.
#ifndef AMP_TESTS_RANDOM_CHECK_H
#define AMP_TESTS_RANDOM_CHECK_H

#include <cstdint>
#include <string>

#include "tests/random/program.h"

namespace random_programs {

struct Settings {
    std::string c_compiler; // "": cc
    std::string folder;     // for compiled models
    bool cuda = false;      // on CUDA beside the CPU
};

// What a model lacks to run on CUDA; the message says what.
struct Skipped {
    std::string why;
};

// "" where all agree: without fuse and without layout bit for bit; without simplify, and in FP32 the float64
// interpreter, within a bound.
// A difference beyond the bound counts where it is there with three sets of numbers: one set may lie on a kink (relu at
// 0, equals under
// a maximum), where two right answers differ.
// |settings.cuda|: on CUDA as on the CPU within a bound, with and without fuse, all temporaries in one arena or each in
// its own; throws
// Skipped where the program has no CUDA code.
std::string Check(const Program &p, const Settings &settings);

} // namespace random_programs

#endif
