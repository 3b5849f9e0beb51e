// runtime_c.h: internal C headers of the runtime, for tests in C++, which spells C11's atomic types with std::; clang
// has C's own in C++ too.
#ifndef AMP_TESTS_RUNTIME_RUNTIME_C_H
#define AMP_TESTS_RUNTIME_RUNTIME_C_H

#include <atomic>

#if defined(__clang__)
#include <stdatomic.h>
#else
using std::atomic_bool;
using std::atomic_int;
using std::atomic_llong;
#endif

extern "C" {
#include "runtime/device/device.h"
#include "runtime/device/cpu/governor.h"
#include "runtime/device/cpu/level.h"
#include "runtime/device/cpu/pool.h"
#include "runtime/model/messages.h"
#include "runtime/model/state.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/memory/memory_plan.h"
#include "base/safetensors/safetensors.h"
}

#endif
