// lanes.h: cases that try single instructions on a list of inputs, one thread per input.
//
// Statements read the input's three 64-bit words A, B, C as .b64, their low parts as a, b, c (.b32), fa, fb, fc (.f32),
// ha, hb, hc (.b16), and all 64 bits as ea, eb, ec (.f64).  They write one of D (.b64), d (.b32), h (.b16), f (.f32), e
// (.f64), p (.pred).  p, q, r, t, u, T are free for use.
#ifndef FAKECUDA_ISA_LANES_H
#define FAKECUDA_ISA_LANES_H

#include <functional>

#include "fakecuda/isa/isa.h"
#include "fakecuda/isa/numbers.h"

namespace isa {

struct In {
    uint64_t A, B, C;
    uint32_t a, b, c;
    int32_t sa, sb, sc;
    int64_t sA, sB, sC;
    float fa, fb, fc;
    double ea, eb, ec;
    uint16_t ha, hb, hc;
    In(uint64_t x, uint64_t y, uint64_t z);
};
// f32 inputs.
inline In floats(float x, float y = 0, float z = 0) { return In(bits_of(x), bits_of(y), bits_of(z)); }
inline In doubles(double x, double y = 0, double z = 0) { return In(bits_of(x), bits_of(y), bits_of(z)); }

struct Op {
    char result; // D d h f e p
    const char *statement;
    std::function<Want(const In &)> want;
};

// Every pair (or triple) of |values|.
std::vector<In> pairs(const std::vector<uint64_t> &values, const std::vector<uint64_t> &third = {0});
std::vector<In> float_pairs(const std::vector<float> &values, const std::vector<float> &third = {0});
std::vector<In> double_pairs(const std::vector<double> &values, const std::vector<double> &third = {0});

Case lanes(const std::string &name, int arch, const std::vector<In> &inputs, const std::vector<Op> &ops);

#define WANT(...)                                                                                                      \
    [](const In &i) -> Want {                                                                                          \
        (void)i;                                                                                                       \
        return __VA_ARGS__;                                                                                            \
    }

} // namespace isa

#endif
