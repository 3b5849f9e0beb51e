#include "fakecuda/isa/lanes.h"

namespace isa {

In::In(uint64_t x, uint64_t y, uint64_t z)
    : A(x), B(y), C(z), a(static_cast<uint32_t>(x)), b(static_cast<uint32_t>(y)), c(static_cast<uint32_t>(z)),
      sa(static_cast<int32_t>(a)), sb(static_cast<int32_t>(b)), sc(static_cast<int32_t>(c)),
      sA(static_cast<int64_t>(x)), sB(static_cast<int64_t>(y)), sC(static_cast<int64_t>(z)), fa(float_of(a)),
      fb(float_of(b)), fc(float_of(c)), ea(double_of(x)), eb(double_of(y)), ec(double_of(z)),
      ha(static_cast<uint16_t>(x)), hb(static_cast<uint16_t>(y)), hc(static_cast<uint16_t>(z)) {}

std::vector<In> pairs(const std::vector<uint64_t> &values, const std::vector<uint64_t> &third) {
    std::vector<In> all;
    for (uint64_t x : values)
        for (uint64_t y : values)
            for (uint64_t z : third) all.emplace_back(x, y, z);
    return all;
}

std::vector<In> float_pairs(const std::vector<float> &values, const std::vector<float> &third) {
    std::vector<In> all;
    for (float x : values)
        for (float y : values)
            for (float z : third) all.push_back(floats(x, y, z));
    return all;
}

std::vector<In> double_pairs(const std::vector<double> &values, const std::vector<double> &third) {
    std::vector<In> all;
    for (double x : values)
        for (double y : values)
            for (double z : third) all.push_back(doubles(x, y, z));
    return all;
}

namespace {

const char kBefore[] = R"(.visible .entry k(.param .u64 k_out, .param .u64 k_in)
{
    .reg .pred p, q, r, inside;
    .reg .b16 h, ha, hb, hc;
    .reg .b32 d, a, b, c, t, u, index, count;
    .reg .f32 f, fa, fb, fc;
    .reg .b64 D, A, B, C, T, out, in;
    .reg .f64 e, ea, eb, ec;
    ld.param.u64 out, [k_out];
    ld.param.u64 in, [k_in];
    cvta.to.global.u64 out, out;
    cvta.to.global.u64 in, in;
    mov.u32 index, %ctaid.x;
    mov.u32 count, %ntid.x;
    mov.u32 t, %tid.x;
    mad.lo.u32 index, index, count, t;
    setp.ge.u32 inside, index, COUNT;
    @inside bra END;
    mul.wide.u32 T, index, 24;
    add.u64 in, in, T;
    mul.wide.u32 T, index, 8;
    add.u64 out, out, T;
    ld.global.b64 A, [in];
    ld.global.b64 B, [in+8];
    ld.global.b64 C, [in+16];
    cvt.u32.u64 a, A;
    cvt.u32.u64 b, B;
    cvt.u32.u64 c, C;
    cvt.u16.u64 ha, A;
    cvt.u16.u64 hb, B;
    cvt.u16.u64 hc, C;
    mov.b32 fa, a;
    mov.b32 fb, b;
    mov.b32 fc, c;
    mov.b64 ea, A;
    mov.b64 eb, B;
    mov.b64 ec, C;
)";

const char *widen(char result) {
    switch (result) {
    case 'd': return "cvt.u64.u32 D, d;";
    case 'h': return "cvt.u64.u16 D, h;";
    case 'f': return "mov.b32 d, f; cvt.u64.u32 D, d;";
    case 'e': return "mov.b64 D, e;";
    case 'p': return "selp.b64 D, 1, 0, p;";
    default: return "";
    }
}

} // namespace

Case lanes(const std::string &name, int arch, const std::vector<In> &inputs, const std::vector<Op> &ops) {
    Case c;
    c.name = name;
    c.arch = arch;
    size_t n = inputs.size();
    std::string text = kBefore;
    text.replace(text.find("COUNT"), 5, std::to_string(n));
    std::vector<Want> wants;
    std::vector<uint64_t> words;
    for (const In &i : inputs) words.insert(words.end(), {i.A, i.B, i.C});
    for (size_t k = 0; k < ops.size(); k++) {
        text += "    " + std::string(ops[k].statement) + "\n    " + widen(ops[k].result) + "\n    st.global.b64 [out+" +
                std::to_string(k * n * 8) + "], D;\n";
        for (const In &i : inputs) wants.push_back(ops[k].want(i));
    }
    c.ptx = module(arch, text + "END:\n    ret;\n}\n");
    c.block[0] = 64;
    c.grid[0] = static_cast<uint32_t>((n + 63) / 64);
    c.buffers = {output(8, wants), input(words)};
    return c;
}

} // namespace isa
