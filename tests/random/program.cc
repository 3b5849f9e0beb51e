// program.cc: see program.h.
#include "tests/random/program.h"

#include <numeric>

#include "tests/random/generator.h"

namespace random_programs {

namespace {

struct Product { // mul * N^n * T^t / div
    int mul, div, n, t;
};

Product Unpacked(int dim) {
    if (dim > 0) return {dim, 1, 0, 0};
    return {-dim >> 10, -dim >> 4 & 63, -dim >> 2 & 3, -dim & 3};
}

int Packed(Product p) {
    const int common = std::gcd(p.mul, p.div);
    p.mul /= common, p.div /= common;
    return p.n || p.t ? Dimension(p.mul, p.div, p.n, p.t) : p.mul;
}

std::string Name(int i) { return "v" + std::to_string(i); }

void ReplaceOperands(std::string *text, const std::vector<int> &operands) {
    for (size_t i = 0; i < operands.size(); i++) {
        std::string hole = "@" + std::to_string(i);
        for (size_t at; (at = text->find(hole)) != std::string::npos;)
            text->replace(at, hole.size(), Name(operands[i]));
    }
}

// A statement makes one value, top_k two.
const char kLargest[] = "block largest(x; k: int, dim: int) {\n    v, i = top_k(x; k = k, dim = dim)\n"
                        "    return v * (to_f32(i) * 0.125 + 0.5)\n}\n";

// A weight by its direction and size; a table that is centred, with sums over both of its dimensions.
const char kNormed[] = "block normed(x; out: int) {\n"
                       "    param direction: f32[out, dim(x, -1)] = normal(std = 0.3)\n"
                       "    param size: f32[out] = ones()\n"
                       "    length = sqrt(sum(direction * direction; dims = 1, keep = true) + 0.01)\n"
                       "    return matmul(x, transpose(direction / length * reshape(size; shape = [out, 1])))\n}\n";
const char kTabled[] = "block tabled(x) {\n"
                       "    param table: f32[dim(x, 1), dim(x, 2)] = normal(std = 0.5)\n"
                       "    off = table - mean(table; dims = (0, 1), keep = true)\n"
                       "    return x * (softmax(off; dim = 0) + off * mean(off * off))\n}\n";

// Rows of a table, one a place.
const char kPlaced[] = "block placed(x; most: int) {\n"
                       "    param table: f32[most, dim(x, -1)] = normal(std = 0.5)\n"
                       "    return x + slice(table; dim = 0, from = 0, to = dim(x, -2))\n}\n";

// A recurrent cell of the program's own.
const char kSteps[] = "block place(x; t: int) {\n"
                      "    return reshape(slice(x; dim = 1, from = t, to = t + 1); shape = [dim(x, 0), dim(x, 2)])\n}\n"
                      "block cell(x, h; size: int) {\n"
                      "    f = sigmoid(linear(concat(x, h; dim = 1); out = size) as keep)\n"
                      "    return f * h + (1.0 - f) * tanh(linear(x; out = size) as new)\n}\n"
                      "block steps(x; size: int) {\n"
                      "    h = cell(place(x; t = 0), zeros(; shape = [dim(x, 0), size]); size = size) as cell\n"
                      "    y = stack(h; dim = 1)\n"
                      "    repeat t in 1..dim(x, 1) {\n        h = cell(place(x; t = t), h) sharing cell\n"
                      "        y = concat(y, stack(h; dim = 1); dim = 1)\n    }\n    return y\n}\n";

// Not every text names all of its operands.
std::vector<bool> Read(const Program &p) {
    std::vector<bool> read(p.statements.size());
    read.back() = true;
    for (size_t i = p.statements.size(); i-- > 0;)
        for (size_t o = 0; read[i] && o < p.statements[i].operands.size(); o++)
            if (p.statements[i].text.find("@" + std::to_string(o)) != std::string::npos)
                read[p.statements[i].operands[o]] = true;
    return read;
}

// Braces around runs of |lines|: each part of [from, to) is left alone, put into a checkpoint, or cut in two.
void PutIntoCheckpoints(std::vector<std::string> *lines, size_t from, size_t to, int depth, Random *r) {
    if (from >= to) return;
    if (to - from > 1 && r->Chance(60)) {
        size_t middle = from + 1 + r->Below(static_cast<int>(to - from - 1));
        PutIntoCheckpoints(lines, from, middle, depth, r);
        PutIntoCheckpoints(lines, middle, to, depth, r);
    } else if (depth < 3 && r->Chance(70)) {
        PutIntoCheckpoints(lines, from, to, depth + 1, r);
        (*lines)[from] = "    checkpoint {\n" + (*lines)[from];
        (*lines)[to - 1] += "    }\n";
    }
}

} // namespace

std::string Word(int dim) {
    const Product p = Unpacked(dim);
    std::string text = p.mul > 1 || !(p.n || p.t) ? std::to_string(p.mul) : "";
    for (int i = 0; i < p.n; i++) text += text.empty() ? "N" : " * N";
    for (int i = 0; i < p.t; i++) text += text.empty() ? "T" : " * T";
    return p.div > 1 ? text + " / " + std::to_string(p.div) : text;
}

std::string ShapeText(const Dims &d) {
    std::string text = "[";
    for (size_t i = 0; i < d.size(); i++) text += (i ? ", " : "") + Word(d[i]);
    return text + "]";
}

int Number(int dim, int n, int t) {
    const Product p = Unpacked(dim);
    int number = p.mul;
    for (int i = 0; i < p.n; i++) number *= n;
    for (int i = 0; i < p.t; i++) number *= t;
    return number / p.div;
}

int Times(int a, int b) {
    const Product p = Unpacked(a), q = Unpacked(b);
    return Packed({p.mul * q.mul, p.div * q.div, p.n + q.n, p.t + q.t});
}

int Over(int dim, int by) {
    const Product p = Unpacked(dim);
    return Packed({p.mul, p.div * by, p.n, p.t});
}

// What inputs of the model and of the loss are called, and what they are.
constexpr struct { const char *name, *type; } kGiven[] = {{"ids", "i32[N, T]"}, {"mask", "f32[N, T]"}};

std::string Program::Text(uint64_t checkpoints) const {
    std::vector<bool> read = Read(*this);
    std::string inputs, body;
    std::vector<std::string> lines;
    for (size_t i = 0; i < statements.size(); i++) {
        const Statement &s = statements[i];
        if (!read[i]) continue;
        if (s.text.empty()) {
            inputs += (inputs.empty() ? "" : ", ") + Name(static_cast<int>(i)) + ": f32" + ShapeText(s.dims);
            continue;
        }
        std::string text = s.text;
        ReplaceOperands(&text, s.operands);
        lines.push_back("    " + Name(static_cast<int>(i)) + " = " + text + "\n");
    }
    Random r{checkpoints};
    if (checkpoints) PutIntoCheckpoints(&lines, 0, lines.size(), 0, &r);
    for (const std::string &line : lines) body += line;
    for (auto [name, type] : kGiven)
        if (body.find(name) != std::string::npos)
            inputs += (inputs.empty() ? "" : ", ") + std::string(name) + ": " + type;
    std::string last = Name(static_cast<int>(statements.size()) - 1);
    const Dims &made = statements.back().dims;
    const bool tokens = made[0] == kTokens || made.size() == 3; // each has a target
    const std::string both = last + (made[0] == kTokens ? ", reshape(targets; shape = [N * T])" : ", targets");
    std::string loss = cross_entropy ? "cross_entropy(" + both + ")"
                                     : "mean(" + last + " * " + last + ") + 0.0 * cross_entropy(" + both + ")";
    loss += " + 0.01 * accuracy(" + both + ") + 0.01 * top_k_accuracy(" + both +
            "; k = " + std::to_string((classes + 1) / 2) + ")";
    std::string blocks;
    if (body.find("largest(") != std::string::npos) blocks += kLargest;
    if (body.find("steps(") != std::string::npos) blocks += kSteps;
    if (body.find("normed(") != std::string::npos) blocks += kNormed;
    if (body.find("placed(") != std::string::npos) blocks += kPlaced;
    if (body.find("tabled(") != std::string::npos) blocks += kTabled;
    const std::string size = "size T = " + std::to_string(most) + ", unit = " + std::to_string(unit) + "\n";
    return "amp 1\n" + (most ? size : "") + blocks + "model m(" + inputs + ") -> " + last + " {\n" + body +
           "}\ntrain m {\n    input targets: i32[N" + (tokens ? ", T" : "") + "]\n    loss = " + loss +
           "\n    optimizer = sgd(0.0)\n}\nprecision " + precision + " {\n" +
           (Half("fp16") ? "    loss_scale = static(16.0)\n" : "") + (pad ? "    pad = true\n" : "") + "}\n";
}

Program Generate(uint64_t seed) {
    Generator g;
    g.Start(seed * 0x2545F4914F6CDD1Dull + 1);
    g.Inputs();
    if (g.r.Chance(50)) g.Add("prelu(@0)", {g.Last()}, g.dims(g.Last())); // a parameter: what follows has gradients
    for (int i = 0, count = 2 + g.r.Below(9); i < count; i++) {
        void (Generator::*const kinds[])() = {
            &Generator::Unary,     &Generator::Unary,  &Generator::Binary,  &Generator::Broadcast, &Generator::Reduce,
            &Generator::Soft,      &Generator::Linear, &Generator::Norm,    &Generator::Attention, &Generator::Movement,
            &Generator::Movement,  &Generator::Image,  &Generator::Image,   &Generator::Product,   &Generator::Wide,
            &Generator::Losses,    &Generator::Lookup, &Generator::Indexed, &Generator::Sequence,  &Generator::Moments,
            &Generator::Parameters};
        (g.*kinds[g.r.Below(sizeof kinds / sizeof kinds[0])])();
        if (g.Elements(g.Last()) > 4096) g.p.statements.pop_back();
    }
    g.Finish();
    g.p.pad = g.p.precision != "fp32" && g.r.Chance(50);
    return g.p;
}

std::vector<Program> Smaller(const Program &p) {
    std::vector<Program> out;
    std::vector<bool> read = Read(p);
    for (size_t i = p.statements.size() - 1; i-- > 0;) {
        if (p.statements[i].text.empty() || !read[i]) continue;
        Program q = p;
        q.statements[i] = {"", {}, p.statements[i].dims};
        out.push_back(q);
    }
    if (p.pad) {
        out.push_back(p);
        out.back().pad = false;
    }
    if (p.n > 2) {
        out.push_back(p);
        out.back().n = 2;
    }
    return out;
}

} // namespace random_programs
