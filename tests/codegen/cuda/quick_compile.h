// quick_compile.h: how tests that run kernels have them compiled.  NVRTC takes most of their time, so they ask it for
// few optimisations: the CUDA C is the same, and what it means does not depend on them.  With AMP_CUDA_ARCHS, as the
// long tests set it, and on a real device kernels are compiled as the runtime compiles them; with
// AMP_KERNELS_AS=cubin to machine code, which is what users load.
#ifndef AMP_TESTS_CODEGEN_CUDA_QUICK_COMPILE_H
#define AMP_TESTS_CODEGEN_CUDA_QUICK_COMPILE_H

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "cuda_sdk/nvrtc.h"
#include "tests/codegen/cuda/driver_device.h"

inline bool InLongTests() { return getenv("AMP_CUDA_ARCHS"); }

inline unsigned SumOf(const std::string &text) {
    unsigned sum = 0;
    for (unsigned char c : text) sum = 31 * sum + c;
    return sum;
}

// The architectures of |archs| on which a case is tried: all in long tests and on a device, else one, by its text.
inline std::vector<int> ArchsOf(const std::string &text, const std::vector<int> &archs) {
    return InLongTests() || TestDriver::Asked() ? archs : std::vector<int>{archs[SumOf(text) % archs.size()]};
}

// Whether case |number| of some that are alike is tried: all there, else one in |every|.
inline bool IsTried(unsigned number, unsigned every) {
    return InLongTests() || TestDriver::Asked() || number % every == 0;
}

// Whether a case is tried without fusion, too, which takes a kernel for each op: always there, else one in three.
inline bool UnfusedToo(const std::string &text) { return IsTried(SumOf(text), 3); }

// Sizes and types that are alike: all of them there, else every second.
template <typename T = const char *> std::vector<T> SomeOf(std::initializer_list<T> all) {
    std::vector<T> some;
    for (size_t i = 0; i < all.size(); i++)
        if (IsTried(static_cast<unsigned>(i), 2)) some.push_back(all.begin()[i]);
    return some;
}

inline bool AsCubins() {
    const char *as = getenv("AMP_KERNELS_AS");
    return as && !strcmp(as, "cubin");
}

// "mid" for what runs once (see AMP_NVRTC_QUICK), but for products in FP32, whose sums it keeps in memory.
inline void CompileQuickly(const amp_nvrtc *nvrtc, amp_nvrtc_job *job) {
    static const char *const options[] = {"--Ofast-compile=mid", AMP_NVRTC_QUICK};
    if (job->cubin || amp_nvrtc_version(nvrtc) < AMP_NVRTC_QUICK_VERSION || InLongTests() || TestDriver::Asked())
        return;
    job->options = options + (strstr(job->source, "typedef FmaSums<") != nullptr);
    job->option_count = 1;
}

#endif
