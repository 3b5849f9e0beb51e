// runtime_c.h: internal C headers of the runtime, for tests in C++, which spells C11's atomic types with std::.
#ifndef AMP_TESTS_RUNTIME_RUNTIME_C_H
#define AMP_TESTS_RUNTIME_RUNTIME_C_H

#include <atomic>

using std::atomic_bool;
using std::atomic_int;
using std::atomic_llong;

extern "C" {
#include "runtime/device.h"
#include "runtime/device/cpu/pool.h"
#include "runtime/initialise.h"
#include "runtime/layout.h"
#include "runtime/memory_plan.h"
#include "runtime/safetensors.h"
}

#endif
