// isa.cc: the table and how results are compared.
#include "fakecuda/isa/isa.h"

#include <cinttypes>
#include <cmath>
#include <cstring>

#include "fakecuda/isa/numbers.h"

namespace isa {

Want exact(float x) { return std::isnan(x) ? nan(Format::kF32) : bits(bits_of(x)); }
Want exact(double x) { return std::isnan(x) ? nan(Format::kF64) : bits(bits_of(x)); }

Buffer input(const std::vector<uint8_t> &bytes) {
    Buffer b;
    b.before = bytes;
    return b;
}

Buffer output(int width, std::vector<Want> after) {
    return changed(input(std::vector<uint8_t>(after.size() * static_cast<size_t>(width), 0xA5)), width, after);
}

Buffer changed(Buffer before, int width, std::vector<Want> after) {
    before.width = width;
    before.after = std::move(after);
    return before;
}

namespace {

double value(Format f, uint64_t b) {
    switch (f) {
    case Format::kF16: return f16_value(static_cast<uint16_t>(b));
    case Format::kBf16: return bf16_value(static_cast<uint16_t>(b));
    case Format::kF32: return float_of(static_cast<uint32_t>(b));
    default: return double_of(b);
    }
}

// Of what is wanted counts what an element holds.
bool fits(const Want &w, uint64_t got, int width) {
    uint64_t mask = width == 8 ? ~uint64_t(0) : (uint64_t(1) << (8 * width)) - 1;
    switch (w.kind) {
    case Want::kBits: return got == (w.bits & mask);
    case Want::kOneOf: return got == (w.bits & mask) || got == (w.other & mask);
    case Want::kNan: return std::isnan(value(w.format, got));
    case Want::kNear: return std::fabs(value(w.format, got) - w.value) <= w.tolerance;
    case Want::kAny: return true;
    }
    return false;
}

std::string words(const Want &w) {
    char text[120];
    if (w.kind == Want::kNan) return "a NaN";
    if (w.kind == Want::kNear) snprintf(text, sizeof text, "%.17g within %.3g", w.value, w.tolerance);
    else if (w.kind == Want::kOneOf) snprintf(text, sizeof text, "0x%" PRIx64 " or 0x%" PRIx64, w.bits, w.other);
    else snprintf(text, sizeof text, "0x%" PRIx64, w.bits);
    return text;
}

} // namespace

std::string difference(const Buffer &b, const uint8_t *actual) {
    std::string text;
    int wrong = 0;
    for (size_t i = 0; i < b.after.size(); i++) {
        uint64_t got = 0;
        memcpy(&got, actual + i * static_cast<size_t>(b.width), static_cast<size_t>(b.width));
        if (fits(b.after[i], got, b.width)) continue;
        char line[100];
        snprintf(line, sizeof line, "element %zu is 0x%" PRIx64, i, got);
        if (wrong++ < 10) text += std::string(line) + ", wanted " + words(b.after[i]) + "\n";
    }
    if (wrong > 10) text += std::to_string(wrong) + " in all\n";
    return text;
}

std::string module(int arch, const std::string &items) {
    return ".version 8.1\n.target sm_" + std::to_string(arch) + "\n.address_size 64\n" + items;
}

std::string kernel(int arch, int buffers, const std::string &body, const std::string &before) {
    std::string text = before + ".visible .entry k(", loads;
    for (int i = 0; i < buffers; i++) {
        std::string n = std::to_string(i);
        text += (i ? ", .param .u64 k_" : ".param .u64 k_") + n;
        loads += "    ld.param.u64 %b" + n + ", [k_" + n + "];\n    cvta.to.global.u64 %b" + n + ", %b" + n + ";\n";
    }
    text += ")\n{\n    .reg .pred %p, %q;\n    .reg .b16 %h<8>;\n    .reg .b32 %r<16>;\n    .reg .b32 %t;\n    .reg "
            ".f32 %f<8>;\n"
            "    .reg .b64 %d<8>;\n    .reg .b64 %b<8>;\n    .reg .f64 %e<4>;\n";
    return module(arch, text + loads + "    mov.u32 %t, %tid.x;\n" + body + "    ret;\n}\n");
}

std::vector<Case> all_cases() {
    std::vector<Case> all;
    for (auto *family : {integer_cases, bit_cases, compare_cases, convert_cases, float_cases, half_cases,
                         approximate_cases, memory_cases, call_cases, atomic_cases, warp_cases, barrier_cases,
                         branch_cases, async_cases, matrix_cases, fault_cases})
        for (Case &c : family()) all.push_back(std::move(c));
    return all;
}

} // namespace isa
