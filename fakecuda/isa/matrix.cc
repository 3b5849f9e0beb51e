// matrix.cc: ldmatrix, stmatrix, movmatrix, mma.  l: lane, g = l / 4, q = l % 4, as in the document's figures.
#include "fakecuda/isa/isa.h"
#include "fakecuda/isa/numbers.h"

namespace isa {
namespace {

using Half = uint16_t;

// Four 8x8 matrices of distinct numbers; element (row, col) of matrix j.
Half element(int j, int row, int col) { return static_cast<Half>(j * 4096 + row * 256 + col + 1); }
std::vector<Half> four_matrices() {
    std::vector<Half> all;
    for (int j = 0; j < 4; j++)
        for (int row = 0; row < 8; row++)
            for (int col = 0; col < 8; col++) all.push_back(element(j, row, col));
    return all;
}
// What lane l holds of matrix j: its row g, columns 2q and 2q + 1; transposed: column g, rows 2q and 2q + 1.
uint32_t fragment(int j, int l, bool transposed) {
    int g = l / 4, q = l % 4;
    Half low = transposed ? element(j, 2 * q, g) : element(j, g, 2 * q),
         high = transposed ? element(j, 2 * q + 1, g) : element(j, g, 2 * q + 1);
    return low | static_cast<uint32_t>(high) << 16;
}

// Fills shared memory; %r0: the address of the row that this lane gives.  The matrices are in reverse order of their
// use, so that addresses matter.
const char kFill[] = R"(
    .shared .align 16 .b8 s[512];
    mov.u32 %r0, s;
    shl.b32 %r1, %t, 4;
    add.u32 %r2, %r0, %r1;
    cvt.u64.u32 %d0, %r1;
    add.u64 %d0, %b1, %d0;
    ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d0];
    st.shared.v4.u32 [%r2], {%r4, %r5, %r6, %r7};
    bar.sync 0;
    xor.b32 %r3, %t, 24;             // matrix 3 first
    shl.b32 %r3, %r3, 4;
    add.u32 %r0, %r0, %r3;
    mov.u32 %r4, 0;
    mov.u32 %r5, 0;
    mov.u32 %r6, 0;
    mov.u32 %r7, 0;
)";

Case load(int count, bool transposed) {
    Case c;
    c.name = "ldmatrix_x" + std::to_string(count) + (transposed ? "_trans" : "");
    std::string body = kFill, regs = count == 1 ? "{%r4}" : count == 2 ? "{%r4, %r5}" : "{%r4, %r5, %r6, %r7}";
    body += "    ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) + (transposed ? ".trans" : "") + ".shared.b16 " +
            regs + ", [%r0];\n";
    body += "    mad.wide.u32 %d1, %t, 16, %b0;\n    st.global.v4.u32 [%d1], {%r4, %r5, %r6, %r7};\n";
    c.ptx = kernel(75, 2, body);
    std::vector<Want> wants;
    for (int l = 0; l < 32; l++)
        for (int j = 0; j < 4; j++) wants.push_back(bits(j < count ? fragment(3 - j, l, transposed) : 0));
    c.buffers = {output(4, wants), input(four_matrices())};
    return c;
}

// Registers to rows and back by plain loads.
Case store(int count, bool transposed) {
    Case c;
    c.name = "stmatrix_x" + std::to_string(count) + (transposed ? "_trans" : "");
    c.arch = 90;
    std::string body = kFill, regs = count == 1 ? "{%r4}" : count == 2 ? "{%r4, %r5}" : "{%r4, %r5, %r6, %r7}";
    body += R"(
    mad.wide.u32 %d1, %t, 16, %b2;
    ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d1];
    bar.sync 0;
)";
    body += "    stmatrix.sync.aligned.m8n8.x" + std::to_string(count) + (transposed ? ".trans" : "") +
            ".shared.b16 [%r0], " + regs + ";\n";
    body += R"(
    bar.sync 0;
    ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];
    mad.wide.u32 %d1, %t, 16, %b0;
    st.global.v4.u32 [%d1], {%r4, %r5, %r6, %r7};
)";
    c.ptx = kernel(90, 3, body);
    std::vector<Half> before(256, 0x7777);
    std::vector<uint32_t> registers;
    for (int l = 0; l < 32; l++)
        for (int j = 0; j < 4; j++) registers.push_back(fragment(j, l, transposed));
    std::vector<Want> wants;
    for (int j = 3; j >= 0; j--) // in memory, the last comes first
        for (int row = 0; row < 8; row++)
            for (int col = 0; col < 8; col++) wants.push_back(bits(j < count ? element(j, row, col) : 0x7777));
    c.buffers = {output(2, wants), input(before), input(registers)};
    return c;
}

Case move() {
    Case c;
    c.name = "movmatrix_trans";
    c.ptx = kernel(75, 2, R"(
    mad.wide.u32 %d1, %t, 4, %b1;
    ld.global.u32 %r0, [%d1];
    movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r0;
    mad.wide.u32 %d0, %t, 4, %b0;
    st.global.u32 [%d0], %r1;
)");
    std::vector<uint32_t> in;
    std::vector<Want> wants;
    for (int l = 0; l < 32; l++) {
        in.push_back(fragment(1, l, false));
        wants.push_back(bits(fragment(1, l, true)));
    }
    c.buffers = {output(4, wants), input(in)};
    return c;
}

// ---- products: D = A B + C, whose numbers are so small that every order of adding them is exact

enum class Type { kF16, kBf16, kTf32, kF32 };
int type_bytes(Type t) { return t == Type::kF16 || t == Type::kBf16 ? 2 : 4; }

uint32_t encoded(Type t, double x) {
    if (t == Type::kF16) return shortened(kHalf, x);
    if (t == Type::kBf16) return shortened(kBfloat, x);
    return bits_of(static_cast<float>(x));
}

struct Index {
    int row, col;
};

struct Shape {
    const char *name, *full;
    int arch, k;
    Type ab, cd;
    Index (*a)(int l, int i), (*b)(int l, int i); // the element of register order i: of A (row, k), of B (k, column)
};

// Elements of C and D, all shapes m16n8.
Index accumulator(int l, int i) { return {l / 4 + 8 * (i >> 1), 2 * (l % 4) + (i & 1)}; }

const Shape kShapes[] = {
    {"mma_m16n8k8_f16_f32", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 75, 8, Type::kF16, Type::kF32,
     [](int l, int i) -> Index {
         return {l / 4 + 8 * (i >> 1), 2 * (l % 4) + (i & 1)};
     },
     [](int l, int i) -> Index {
         return {2 * (l % 4) + i, l / 4};
     }},
    {"mma_m16n8k8_f16_f16", "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", 75, 8, Type::kF16, Type::kF16,
     [](int l, int i) -> Index {
         return {l / 4 + 8 * (i >> 1), 2 * (l % 4) + (i & 1)};
     },
     [](int l, int i) -> Index {
         return {2 * (l % 4) + i, l / 4};
     }},
    {"mma_m16n8k8_bf16", "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", 80, 8, Type::kBf16, Type::kF32,
     [](int l, int i) -> Index {
         return {l / 4 + 8 * (i >> 1), 2 * (l % 4) + (i & 1)};
     },
     [](int l, int i) -> Index {
         return {2 * (l % 4) + i, l / 4};
     }},
    {"mma_m16n8k16_f16_f32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 80, 16, Type::kF16, Type::kF32,
     [](int l, int i) -> Index {
         return {l / 4 + 8 * ((i >> 1) & 1), 2 * (l % 4) + (i & 1) + 8 * (i >> 2)};
     },
     [](int l, int i) -> Index {
         return {2 * (l % 4) + (i & 1) + 8 * (i >> 1), l / 4};
     }},
    {"mma_m16n8k16_f16_f16", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", 80, 16, Type::kF16, Type::kF16,
     [](int l, int i) -> Index {
         return {l / 4 + 8 * ((i >> 1) & 1), 2 * (l % 4) + (i & 1) + 8 * (i >> 2)};
     },
     [](int l, int i) -> Index {
         return {2 * (l % 4) + (i & 1) + 8 * (i >> 1), l / 4};
     }},
    {"mma_m16n8k16_bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 80, 16, Type::kBf16, Type::kF32,
     [](int l, int i) -> Index {
         return {l / 4 + 8 * ((i >> 1) & 1), 2 * (l % 4) + (i & 1) + 8 * (i >> 2)};
     },
     [](int l, int i) -> Index {
         return {2 * (l % 4) + (i & 1) + 8 * (i >> 1), l / 4};
     }},
    {"mma_m16n8k4_tf32", "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", 80, 4, Type::kTf32, Type::kF32,
     [](int l, int i) -> Index {
         return {l / 4 + 8 * i, l % 4};
     },
     [](int l, int) -> Index {
         return {l % 4, l / 4};
     }},
    {"mma_m16n8k8_tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 80, 8, Type::kTf32, Type::kF32,
     [](int l, int i) -> Index {
         return {l / 4 + 8 * (i & 1), l % 4 + 4 * (i >> 1)};
     },
     [](int l, int i) -> Index {
         return {l % 4 + 4 * i, l / 4};
     }},
};

double a_at(int row, int k) { return (row * 3 + k * 5) % 9 - 4; }
double b_at(int k, int col) { return (k * 7 + col * 2) % 11 - 5 + ((k + col) % 3 == 0 ? 0.5 : 0); }
double c_at(int row, int col) { return row - 2 * col; }

std::string registers(const char *prefix, int from, int count) {
    std::string text = "{";
    for (int i = 0; i < count; i++) text += (i ? ", %" : "%") + std::string(prefix) + std::to_string(from + i);
    return text + "}";
}

Case product(const Shape &s) {
    Case c;
    c.name = s.name;
    c.arch = s.arch;
    int a_elements = 16 * s.k / 32, b_elements = 8 * s.k / 32, per_register = 4 / type_bytes(s.ab);
    int a_registers = a_elements / per_register, b_registers = b_elements / per_register,
        d_registers = s.cd == Type::kF32 ? 4 : 2;
    // Registers are in memory as [lane][register].
    std::string body;
    const struct {
        const char *buffer, *prefix;
        int from, count;
    } loads[] = {{"%b1", "a", 0, a_registers}, {"%b2", "x", 0, b_registers}, {"%b3", "c", 0, d_registers}};
    body += "    .reg .b32 %a<4>, %x<2>;\n    .reg ." + std::string(s.cd == Type::kF32 ? "f32" : "b32") +
            " %c<4>, %y<4>;\n";
    for (const auto &l : loads) {
        body += "    mad.wide.u32 %d0, %t, " + std::to_string(4 * l.count) + ", " + l.buffer + ";\n";
        for (int i = 0; i < l.count; i++)
            body += "    ld.global.b32 %" + std::string(l.prefix) + std::to_string(i) + ", [%d0+" +
                    std::to_string(4 * i) + "];\n";
    }
    body += "    " + std::string(s.full) + " " + registers("y", 0, d_registers) + ", " +
            registers("a", 0, a_registers) + ", " + registers("x", 0, b_registers) + ", " +
            registers("c", 0, d_registers) + ";\n";
    body += "    mad.wide.u32 %d0, %t, " + std::to_string(4 * d_registers) + ", %b0;\n";
    for (int i = 0; i < d_registers; i++)
        body += "    st.global.b32 [%d0+" + std::to_string(4 * i) + "], %y" + std::to_string(i) + ";\n";
    c.ptx = kernel(s.arch, 4, body);

    std::vector<uint8_t> a, b, cc;
    std::vector<Want> wants;
    auto put = [](std::vector<uint8_t> &to, Type t, double x) {
        uint32_t e = encoded(t, x);
        for (int k = 0; k < type_bytes(t); k++) to.push_back(static_cast<uint8_t>(e >> (8 * k)));
    };
    for (int l = 0; l < 32; l++) {
        for (int i = 0; i < a_elements; i++) put(a, s.ab, a_at(s.a(l, i).row, s.a(l, i).col));
        for (int i = 0; i < b_elements; i++) put(b, s.ab, b_at(s.b(l, i).row, s.b(l, i).col));
        for (int i = 0; i < 4; i++) {
            Index at = accumulator(l, i);
            put(cc, s.cd, c_at(at.row, at.col));
            double sum = c_at(at.row, at.col);
            for (int k = 0; k < s.k; k++) sum += a_at(at.row, k) * b_at(k, at.col);
            wants.push_back(bits(encoded(s.cd, sum)));
        }
    }
    c.buffers = {output(type_bytes(s.cd), wants), input(a), input(b), input(cc)};
    return c;
}

// Infinities and NaN go through as in the exact sum.
Case special_products() {
    Case c = product(kShapes[3]);
    c.name = "mma_infinity_nan";
    std::vector<uint8_t> &a = c.buffers[1].before;
    auto set = [&](int l, int i, uint16_t bits_) {
        size_t at = (static_cast<size_t>(l) * 8 + static_cast<size_t>(i)) * 2;
        a[at] = static_cast<uint8_t>(bits_);
        a[at + 1] = static_cast<uint8_t>(bits_ >> 8);
    };
    set(0, 0, 0x7c00); // row 0, k 0: +Inf
    set(4, 0, 0x7e00); // row 1, k 0: NaN
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++) {
            Index at = accumulator(l, i);
            Want &w = c.buffers[0].after[static_cast<size_t>(l * 4 + i)];
            double x = b_at(0, at.col);
            if (at.row == 1) w = nan(Format::kF32);
            if (at.row == 0) w = x == 0 ? nan(Format::kF32) : exact(x > 0 ? INFINITY : -INFINITY);
        }
    return c;
}

} // namespace

std::vector<Case> matrix_cases() {
    std::vector<Case> all;
    for (int count : {1, 2, 4})
        for (bool transposed : {false, true}) {
            all.push_back(load(count, transposed));
            all.push_back(store(count, transposed));
        }
    all.push_back(move());
    for (const Shape &s : kShapes) all.push_back(product(s));
    all.push_back(special_products());
    return all;
}

} // namespace isa
