// atomic.cc: atom and red of every operation, on global and shared memory, alone and contended.
#include <algorithm>

#include "fakecuda/isa/isa.h"
#include "fakecuda/isa/numbers.h"

namespace isa {
namespace {

// One operation: each lane has its own word, so that what comes back is known too.
struct Atom {
    const char *name, *operation, *type; // the kernel's, "add", "u32"
    int bytes;
    uint64_t (*result)(uint64_t old, uint64_t x);
};

uint32_t u(uint64_t x) { return static_cast<uint32_t>(x); }
int32_t s(uint64_t x) { return static_cast<int32_t>(x); }
int64_t S(uint64_t x) { return static_cast<int64_t>(x); }
uint64_t U(int64_t x) { return static_cast<uint64_t>(x); }

uint16_t half_sum(uint64_t x, uint64_t y) {
    return shortened(kHalf, odd_fma(1, f16_value(static_cast<uint16_t>(x)), f16_value(static_cast<uint16_t>(y))));
}

const Atom kAtoms[] = {
    {"add_u32", "add", "u32", 4, [](uint64_t o, uint64_t x) -> uint64_t { return u(o + x); }},
    {"add_s32", "add", "s32", 4, [](uint64_t o, uint64_t x) -> uint64_t { return u(o + x); }},
    {"add_u64", "add", "u64", 8, [](uint64_t o, uint64_t x) -> uint64_t { return o + x; }},
    {"add_f32", "add", "f32", 4,
     [](uint64_t o, uint64_t x) -> uint64_t { return bits_of(float_of(u(o)) + float_of(u(x))); }},
    {"add_f64", "add", "f64", 8,
     [](uint64_t o, uint64_t x) -> uint64_t { return bits_of(double_of(o) + double_of(x)); }},
    {"add_f16x2", "add.noftz", "f16x2", 4,
     [](uint64_t o, uint64_t x) -> uint64_t { return half_sum(o, x) | u(half_sum(o >> 16, x >> 16)) << 16; }},
    {"min_s32", "min", "s32", 4, [](uint64_t o, uint64_t x) -> uint64_t { return u(U(std::min(s(o), s(x)))); }},
    {"max_s32", "max", "s32", 4, [](uint64_t o, uint64_t x) -> uint64_t { return u(U(std::max(s(o), s(x)))); }},
    {"min_u32", "min", "u32", 4, [](uint64_t o, uint64_t x) -> uint64_t { return std::min(u(o), u(x)); }},
    {"max_u64", "max", "u64", 8, [](uint64_t o, uint64_t x) -> uint64_t { return std::max(o, x); }},
    {"min_s64", "min", "s64", 8, [](uint64_t o, uint64_t x) -> uint64_t { return U(std::min(S(o), S(x))); }},
    {"inc_u32", "inc", "u32", 4, [](uint64_t o, uint64_t x) -> uint64_t { return u(o) >= u(x) ? 0 : u(o) + 1; }},
    {"dec_u32", "dec", "u32", 4,
     [](uint64_t o, uint64_t x) -> uint64_t { return u(o) == 0 || u(o) > u(x) ? u(x) : u(o) - 1; }},
    {"and_b32", "and", "b32", 4, [](uint64_t o, uint64_t x) -> uint64_t { return u(o & x); }},
    {"or_b32", "or", "b32", 4, [](uint64_t o, uint64_t x) -> uint64_t { return u(o | x); }},
    {"xor_b64", "xor", "b64", 8, [](uint64_t o, uint64_t x) -> uint64_t { return o ^ x; }},
    {"exch_b32", "exch", "b32", 4, [](uint64_t, uint64_t x) -> uint64_t { return u(x); }},
    {"exch_b64", "exch", "b64", 8, [](uint64_t, uint64_t x) -> uint64_t { return x; }},
};

// Values on which float sums are exact or plainly rounded, without subnormals.
uint64_t sample(const Atom &a, int lane, int which) {
    std::string type = a.type;
    double x = which ? lane * 0.75 - 7 : 100.5 - lane * 3;
    if (type == "f32") return bits_of(static_cast<float>(x));
    if (type == "f64") return bits_of(x);
    if (type == "f16x2") return shortened(kHalf, x) | static_cast<uint32_t>(shortened(kHalf, x * 3 + 1)) << 16;
    uint64_t w =
        (static_cast<uint64_t>(lane) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(which) * 0x92345678abcdef01u) >>
        (lane % 3 ? 0 : 60);
    return a.bytes == 4 ? static_cast<uint32_t>(w) : w;
}

void put(std::vector<uint8_t> &bytes, uint64_t x, int width) {
    for (int k = 0; k < width; k++) bytes.push_back(static_cast<uint8_t>(x >> (8 * k)));
}

// b0: the words; b1: operands; b2: what came back; b3: words for red.  In shared memory the words are copied there and
// back.
Case single(const Atom &a, bool in_shared) {
    Case c;
    std::string space = in_shared ? "shared" : "global", b = "b" + std::to_string(8 * a.bytes),
                reg = a.bytes == 8 ? "%d" : "%r";
    std::string operation = a.operation, type = a.type, size = std::to_string(a.bytes);
    bool has_red = operation != "exch";
    c.name = std::string("atom_") + space + "_" + a.name;
    std::string body = "    mul.lo.u32 %r7, %t, " + size +
                       ";\n    cvt.u64.u32 %d7, %r7;\n    add.u64 %d4, %b0, %d7;\n    add.u64 %d5, %b1, %d7;\n    "
                       "add.u64 %d6, %b2, %d7;\n";
    body += "    add.u64 %d3, %b3, %d7;\n    ld.global." + b + " " + reg + "1, [%d5];\n";
    auto word = [&](const char *global, bool with_result) {
        std::string at = global, one = with_result ? "atom." + space + "." + operation + "." + type + " " + reg + "0, ["
                                                   : "red." + space + "." + operation + "." + type + " [";
        std::string text;
        if (!in_shared) return "    " + one + at + "], " + reg + "1;\n";
        text += "    mov.u64 %d2, words;\n    add.u64 %d2, %d2, %d7;\n    ld.global." + b + " " + reg + "0, [" + at +
                "];\n    st.shared." + b + " [%d2], " + reg + "0;\n";
        text += "    mov." + b + " " + reg + "0, 0;\n    " + one + "%d2], " + reg + "1;\n";
        std::string other = a.bytes == 8 ? "%d0" : "%r2"; // not the register of the result
        if (a.bytes == 8 && with_result) text += "    st.global.b64 [%d6], %d0;\n";
        text += "    ld.shared." + b + " " + other + ", [%d2];\n    st.global." + b + " [" + at + "], " + other + ";\n";
        return text;
    };
    body += word("%d4", true);
    if (!(in_shared && a.bytes == 8)) body += "    st.global." + b + " [%d6], " + reg + "0;\n";
    if (has_red) body += word("%d3", false);
    c.ptx = kernel(75, 4, body, in_shared ? ".shared .align 8 .b8 words[256];\n" : "");
    std::vector<uint8_t> words, operands;
    std::vector<Want> after, back, reduced;
    for (int lane = 0; lane < 32; lane++) {
        uint64_t old = sample(a, lane, 0), x = sample(a, lane, 1);
        put(words, old, a.bytes);
        put(operands, x, a.bytes);
        after.push_back(bits(a.result(old, x)));
        back.push_back(bits(old));
        reduced.push_back(bits(has_red ? a.result(old, x) : old));
    }
    c.buffers = {changed(input(words), a.bytes, after), input(operands), output(a.bytes, back),
                 changed(input(words), a.bytes, reduced)};
    return c;
}

// Several blocks on the same words: totals that do not depend on the order.
Case contended(const char *name, const char *space_setup, const std::string &before) {
    Case c;
    c.name = name;
    c.grid[0] = 3;
    c.block[0] = 96;
    c.ptx = kernel(75, 1, space_setup, before);
    return c;
}

Case totals() {
    Case c = contended("atom_contended_global", R"(
    add.u32 %r0, %t, 1;
    red.global.add.u32 [%b0], %r0;
    red.global.max.u32 [%b0+4], %r0;
    red.global.min.s32 [%b0+8], %r0;
    mov.u32 %r1, 1;
    and.b32 %r2, %t, 31;
    shl.b32 %r1, %r1, %r2;
    red.global.or.b32 [%b0+12], %r1;
    red.global.xor.b32 [%b0+16], %r1;
    not.b32 %r3, %r1;
    red.global.and.b32 [%b0+20], %r3;
    red.global.inc.u32 [%b0+24], 9;
    cvt.rn.f32.u32 %f0, %r0;
    red.global.add.f32 [%b0+28], %f0;
    atom.global.add.u32 %r4, [%b0+32], 1;  // a ticket each: the tickets add up
    red.global.add.u32 [%b0+36], %r4;
)",
                       "");
    const uint32_t sum = 3 * 96 * 97 / 2, tickets = 288 * 287 / 2;
    c.buffers = {changed(input(std::vector<uint32_t>{0, 0, 0xffffff00, 0, 0xffffffff, 0xffffffff, 0, 0, 0, 0}), 4,
                         {bits(sum), bits(96), bits(0xffffff00), bits(0xffffffff), bits(0), bits(0), bits(288 % 10),
                          exact(static_cast<float>(sum)), bits(288), bits(tickets)})};
    return c;
}

Case shared_totals() {
    Case c = contended("atom_contended_shared", R"(
    .shared .align 8 .b8 s[16];
    setp.ne.u32 %p, %t, 0;
    @%p bra READY;
    st.shared.u64 [s], 0;
    st.shared.u64 [s+8], 0;
READY:
    bar.sync 0;
    atom.shared.add.u32 %r0, [s], 2;
    red.shared.add.u64 [s+8], 3;
    mov.u64 %d0, s;
    cvta.shared.u64 %d0, %d0;
    atom.add.u32 %r1, [%d0+4], 5;    // by its generic address
    bar.sync 0;
    @%p bra END;
    ld.shared.v2.u32 {%r0, %r1}, [s];
    ld.shared.u64 %d1, [s+8];
    cvt.u32.u64 %r2, %d1;
    red.global.add.u32 [%b0], %r0;
    red.global.add.u32 [%b0+4], %r1;
    red.global.add.u32 [%b0+8], %r2;
END:
)",
                       "");
    c.buffers = {
        changed(input(std::vector<uint32_t>{0, 0, 0}), 4, {bits(3 * 96 * 2), bits(3 * 96 * 5), bits(3 * 96 * 3)})};
    return c;
}

// A loop around cas, as libraries build what the hardware lacks; and a lock that lanes of one warp take in turn.
Case exchanges() {
    Case c = contended("atom_compare_and_swap", R"(
    ld.volatile.global.u32 %r0, [%b0];
AGAIN:
    add.u32 %r1, %r0, %t;
    atom.global.cas.b32 %r2, [%b0], %r0, %r1;
    setp.ne.u32 %p, %r2, %r0;
    mov.u32 %r0, %r2;
    @%p bra AGAIN;
    mov.u64 %d0, 7;
    cvt.u64.u32 %d1, %t;
    atom.global.cas.b64 %d2, [%b0+8], %d0, %d1; // no thread finds a 7
    atom.global.cas.b32 %r3, [%b0+16], 5, 6;    // one finds a 5, all leave a 6
    setp.eq.u32 %p, %r3, 5;
    @%p red.global.add.u32 [%b0+20], 1;
)",
                       "");
    c.buffers = {changed(input(std::vector<uint32_t>{10, 0, 9, 0, 5, 0}), 4,
                         {bits(10 + 3 * 95 * 96 / 2), bits(0), bits(9), bits(0), bits(6), bits(1)})};
    return c;
}

} // namespace

std::vector<Case> atomic_cases() {
    std::vector<Case> all;
    for (const Atom &a : kAtoms) {
        all.push_back(single(a, false));
        if (a.type != std::string("f16x2")) all.push_back(single(a, true));
    }
    all.push_back(totals());
    all.push_back(shared_totals());
    all.push_back(exchanges());
    return all;
}

} // namespace isa
