// isa.h: kernels written by hand in PTX, what they are run with, and what NVIDIA's PTX ISA document says comes out.
//
// A table without any driver in it: the interpreter's test runs it, and so can a program on a GPU.
#ifndef FAKECUDA_ISA_ISA_H
#define FAKECUDA_ISA_ISA_H

#include <cstdint>
#include <string>
#include <vector>

namespace isa {

enum class Format { kBits, kF16, kBf16, kF32, kF64 };

// What one element of a buffer must be.
struct Want {
    enum Kind { kBits, kNan, kNear, kOneOf, kAny } kind = kBits;
    uint64_t bits = 0;
    Format format = Format::kBits;   // kNan, kNear
    double value = 0, tolerance = 0; // kNear: at most so far away
    uint64_t other = 0;              // kOneOf: this or |bits|
};

inline Want bits(uint64_t b) {
    Want w;
    w.bits = b;
    return w;
}
inline Want either(uint64_t a, uint64_t b) {
    Want w;
    w.kind = Want::kOneOf;
    w.bits = a;
    w.other = b;
    return w;
}
inline Want anything() {
    Want w;
    w.kind = Want::kAny;
    return w;
}
inline Want nan(Format f) {
    Want w;
    w.kind = Want::kNan;
    w.format = f;
    return w;
}
inline Want near(Format f, double value, double tolerance) {
    Want w;
    w.kind = Want::kNear;
    w.format = f;
    w.value = value;
    w.tolerance = tolerance;
    return w;
}
Want exact(float x); // its bits, or any NaN
Want exact(double x);

// Device memory that the kernel gets a pointer to.  Every byte is written before the launch.
struct Buffer {
    std::vector<uint8_t> before;
    int width = 4;           // bytes of an element
    std::vector<Want> after; // elements from the start; empty: not looked at
};
Buffer input(const std::vector<uint8_t> &bytes);
template <class T> Buffer input(const std::vector<T> &values) {
    auto *p = reinterpret_cast<const uint8_t *>(values.data());
    return input(std::vector<uint8_t>(p, p + values.size() * sizeof(T)));
}
Buffer output(int width, std::vector<Want> after); // filled with bytes 0xA5 before
Buffer changed(Buffer before, int width, std::vector<Want> after);

// What is wrong with |actual|, which has as many bytes as |before|; "": nothing.
std::string difference(const Buffer &b, const uint8_t *actual);

enum class End { kDone, kTrap, kAssert, kIllegalAddress, kMisaligned };

struct Case {
    std::string name;
    int arch = 75;   // the least that has all of its instructions
    std::string ptx; // one entry named k, whose parameters are pointers to |buffers| in order, then |scalars|
    uint32_t grid[3] = {1, 1, 1}, block[3] = {32, 1, 1};
    uint32_t dynamic_shared = 0;
    std::vector<Buffer> buffers;
    std::vector<uint8_t> scalars; // starts at the next multiple of 8
    End end = End::kDone;
};

// ".version ..", ".target sm_ARCH", and |items|.
std::string module(int arch, const std::string &items);
// An entry k with |buffers| parameters: registers %p, %q: predicates; %h0-7: b16; %r0-15: b32; %f0-7: f32; %d0-7: b64;
// %e0-3: f64.  The pointers are in %b0, %b1, .. (global), and %t is the thread's index in its block.
std::string kernel(int arch, int buffers, const std::string &body, const std::string &before = "");

std::vector<Case> all_cases();

// Families, one file each.
std::vector<Case> integer_cases();
std::vector<Case> bit_cases();
std::vector<Case> compare_cases();
std::vector<Case> convert_cases();
std::vector<Case> float_cases();
std::vector<Case> half_cases();
std::vector<Case> approximate_cases();
std::vector<Case> memory_cases();
std::vector<Case> call_cases();
std::vector<Case> atomic_cases();
std::vector<Case> warp_cases();
std::vector<Case> barrier_cases();
std::vector<Case> branch_cases();
std::vector<Case> async_cases();
std::vector<Case> matrix_cases();
std::vector<Case> fault_cases();

} // namespace isa

#endif
