// coverage.h: which ops of ir/ops.def the programs hold, after autodiff has added their gradients.
#ifndef AMP_TESTS_RANDOM_COVERAGE_H
#define AMP_TESTS_RANDOM_COVERAGE_H

#include <cstdint>
#include <string>
#include <vector>

namespace random_programs {

// Names of ops of the language, and of the ops of their gradients, that none of the programs of seeds |first| ...
// |first| + |count| - 1 holds; in the order of the table.  Nothing is run.
std::vector<std::string> OpsWithoutProgram(uint64_t first, int count);

} // namespace random_programs

#endif
