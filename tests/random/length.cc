// length.cc: programs with a T, of the statements of other programs and of these.
#include "tests/random/generator.h"

namespace random_programs {

namespace {

struct LengthGenerator : Generator {
    const std::string &Fold() {
        static const std::vector<std::string> folds = {"mean", "sum", "max", "min", "logsumexp"};
        return r.Pick(folds);
    }
    // Numbers of the places 0 to T - 1: a ramp, rows of a table, an embedding.
    void Places() {
        int v = Any();
        const Dims &d = dims(v);
        const std::string most = Word(p.most);
        if (d.back() == kLength && rank(v) > 1) {
            Add("@0 + to_f32(arange(; count = T)) * 0.01", {v}, d);
        } else if (rank(v) > 1 && d[d.size() - 2] == kLength && d.back() > 0) {
            const std::string table = "embedding(arange(; count = T); count = " + most + ", dim = ";
            Add(r.Chance(50) ? "@0 + " + table + Word(d.back()) + ")" : "placed(@0; most = " + most + ")", {v}, d);
        }
    }
    // What comes in besides: words, and which of them count.
    void Given() {
        int v = Any();
        const Dims &d = dims(v);
        if (rank(v) < 2 || d[0] != kBatch || d[1] != kLength) return;
        const std::string mask =
            rank(v) > 2 ? "reshape(mask; shape = [N, T, " + std::string(rank(v) > 3 ? "1, " : "") + "1])" : "mask";
        if (rank(v) == 3 && d[2] > 0 && r.Chance(40))
            Add("@0 + embedding(ids; count = 7, dim = " + Word(d[2]) + ")", {v}, d);
        else if (r.Chance(50)) Add("@0 * " + mask, {v}, d);
        else Add("where(" + mask + " > 0.3 or @0 < 0.1, @0, @0 * 0.25)", {v}, d);
    }
    // At parts of T, at numbers that each T has, and at any numbers of a dimension that is one.
    void Cut() {
        int v = Any();
        if (rank(v) < 2) return;
        int at = r.Below(rank(v)), d = dims(v)[at], from = 0, to = d;
        Dims out = dims(v);
        std::string begin = "0", end;
        if (d > 0) {
            from = r.Below(d), to = from + 1 + r.Below(d - from);
            begin = Word(from), end = Word(to), out[at] = to - from;
        } else if (Number(d, 1, p.unit) % 2 == 0 && (Number(d, 1, 1) || d == kLength) && r.Chance(50)) {
            out[at] = Over(d, 2);
            const bool second = r.Chance(50);
            begin = second ? Word(out[at]) : "0", end = Word(second ? d : out[at]);
        } else {
            out[at] = d == kLength ? 1 + r.Below(std::min(p.unit, 8)) : 1;
            if (d != kLength) return;
            from = r.Below(std::min(p.unit, 8) - out[at] + 1);
            begin = Word(from), end = Word(from + out[at]);
        }
        Add("slice(@0; dim = " + std::to_string(at) + ", from = " + begin + ", to = " + end + ")", {v}, out);
    }
    void Join() {
        int v = Any();
        if (rank(v) < 2) return;
        int at = InnerDim(v);
        Dims out = dims(v);
        if (r.Chance(60) || rank(v) > 3) {
            out[at] = Times(out[at], 2);
            Add("concat(@0, @1; dim = " + std::to_string(at) + ")", {v, LikeShape(v)}, out);
        } else {
            out.insert(out.begin() + at, 2);
            Add("stack(@0, @1; dim = " + std::to_string(at) + ")", {v, LikeShape(v)}, out);
        }
    }
    void Transpose() {
        int v = Any();
        if (rank(v) < 2) return;
        int a = r.Chance(20) ? 0 : InnerDim(v), b = InnerDim(v);
        Dims out = dims(v);
        std::swap(out[a], out[b]);
        Add("transpose(@0; a = " + std::to_string(a) + ", b = " + std::to_string(b) + ")", {v}, out);
    }
    // Tokens as samples and back, patches, heads, flat samples.
    void Reshape() {
        int v = Any();
        const Dims d = dims(v);
        Dims out;
        if (d[0] == kTokens) {
            out = d, out[0] = kLength, out.insert(out.begin(), kBatch);
        } else if (rank(v) == 3 && d[0] == kBatch && d[1] == kLength && r.Chance(60)) {
            out = {kTokens, d[2]};
        } else if (rank(v) == 3 && d[1] == kLength && d[2] > 0 && p.unit > 1 && r.Chance(50)) {
            out = {d[0], Over(d[1], p.unit), d[2] * p.unit};
        } else if (rank(v) == 3 && d[2] > 0 && d[2] % 2 == 0 && r.Chance(70)) {
            out = {d[0], d[1], 2, d[2] / 2};
        } else if (rank(v) > 2) {
            out = {d[0], 1};
            for (int i = 1; i < rank(v); i++) out[1] = Times(out[1], d[i]);
        } else return;
        Add("reshape(@0; shape = " + ShapeText(out) + ")", {v}, out);
    }
    // Scores of T x T, of C x C, and of N x N.
    void Scores() {
        int v = Any();
        const Dims d = dims(v);
        if (rank(v) < 2 || rank(v) > 4) return;
        const std::string scores = r.Chance(20) && rank(v) == 3 ? "einsum(@0, @1; equation = \"bij,bkj->bik\") * 0.25"
                                                                : "matmul(@0, transpose(@1)) / 4.0";
        Dims square = d;
        square.back() = d[d.size() - 2];
        const int other = LikeShape(v);
        switch (r.Below(3)) {
        case 0: Add(scores, {v, other}, square); break;
        case 1: Add("matmul(softmax(" + scores + "; dim = -1), @0)", {v, other}, d); break;
        default: {
            const int back = r.Chance(50) ? -1 : -2;
            Add("matmul(@0, softmax(matmul(transpose(@0), @1) / 4.0; dim = " + std::to_string(back) + "))", {v, other},
                d);
        }
        }
    }
    void Attend() {
        int v = Any();
        const Dims d = dims(v);
        if (rank(v) < 3 || rank(v) > 4 || d.back() < 0 || HasBatch(d[rank(v) - 2])) return;
        const bool masked = d[0] == kBatch && d[rank(v) - 2] == kLength && r.Chance(40);
        std::string more = r.Chance(50) ? "causal = true" : r.Chance(50) ? "scale = 0.25" : "";
        std::string mask =
            rank(v) == 4 ? ", reshape(mask; shape = [N, 1, 1, T])" : ", reshape(mask; shape = [N, 1, T])";
        if (rank(v) == 3 && r.Chance(60)) {
            const int heads = d[2] % 2 ? 1 : 2;
            if (r.Chance(30)) more = more.empty() || more[0] == 's' ? "p = 0.2" : more + ", p = 0.2";
            else if (more[0] == 's') more = "";
            Add("self_attention(@0" + (masked ? ", reshape(mask; shape = [N, 1, 1, T]) * 2.0" : std::string()) +
                    "; heads = " + std::to_string(heads) + (more.empty() ? "" : ", " + more) + ")",
                {v}, d);
            return;
        }
        if (!masked) mask = "";
        else mask += r.Chance(50) ? " > -1.4" : "";
        Add("attention(@0, @0 * 0.5, tanh(@0)" + mask + (more.empty() ? "" : "; " + more) + ")", {v}, d);
    }
    void Norms() {
        int v = Any();
        const Dims &d = dims(v);
        if (rank(v) < 2) return;
        if (d.back() > 1 && r.Chance(60)) {
            Add(r.Chance(50)   ? "layer_norm(@0)"
                : r.Chance(50) ? "layer_norm(@0; bias = false)"
                               : "rms_norm(@0)",
                {v}, d);
        } else if (d[1] > 0) {
            Add(r.Chance(60) ? "batch_norm(@0)" : "prelu(@0; count = " + Word(d[1]) + ")", {v}, d);
        }
    }
    // Over T, whatever dimension that is; with what is left broadcast back or not.
    void OverLength() {
        int v = Any();
        for (int i = 1; i < rank(v); i++) {
            if (dims(v)[i] > 0) continue;
            const std::string at = std::to_string(i);
            Dims out = dims(v);
            if (r.Chance(30)) {
                Add("@0 * (tanh(" + Fold() + "(@0; dims = " + at + ", keep = true)) + 0.5)", {v}, out);
            } else if (r.Chance(30)) {
                Add(std::string(r.Chance(50) ? "softmax" : "log_softmax") + "(@0; dim = " + at + ")", {v}, out);
            } else {
                out.erase(out.begin() + i);
                Add(Fold() + "(@0; dims = " + at + ")", {v}, out);
            }
            return;
        }
    }

    void LengthInputs() {
        static const std::vector<int> units = {1, 1, 1, 2, 4, 8};
        p.unit = r.Pick(units);
        p.most = p.unit * (2 + r.Below(r.Chance(15) ? 300 / p.unit : 40 / p.unit));
        if (r.Chance(20)) Add("", {}, {kBatch, 1 + r.Below(20)});
        int kind = r.Below(8), width = p.most > 40 ? 1 + r.Below(8) : 1 + r.Below(24);
        if (kind == 0) Add("", {}, {kBatch, kLength});
        else if (kind == 1) Add("", {}, {kBatch, width, kLength});
        else if (kind == 2) Add("", {}, {kBatch, 1 + r.Below(4), kLength, 1 + r.Below(8)});
        else Add("", {}, {kBatch, kLength, r.Chance(50) ? width : 8});
    }
    // As the language has it: one dimension but the last depends on N.
    bool IsAllowed(int v) {
        const Dims &d = dims(v);
        return rank(v) == 0 || std::count_if(d.begin(), d.end() - 1, HasBatch) <= 1;
    }
    // No T is left but of tokens.
    void Settle() {
        int v = Last();
        if (dims(v)[0] == kBatch && rank(v) == 3 && dims(v)[1] == kLength && dims(v)[2] > 0 && r.Chance(50)) {
            if (r.Chance(40))
                v = Add("reshape(@0; shape = [N * T, " + Word(dims(v)[2]) + "])", {v}, {kTokens, dims(v)[2]});
        } else if (dims(v)[0] != kBatch && !(dims(v)[0] == kTokens && Sized(v, 1) && rank(v) == 2)) {
            Dims first = dims(0);
            v = Add("@0 * (tanh(mean(@1)) + 0.5)", {0, v}, first);
        }
        const bool tokens = dims(v)[0] == kTokens || (rank(v) == 3 && dims(v)[1] == kLength && r.Chance(50));
        for (int i = 1; i < rank(v) && !tokens;) {
            if (dims(v)[i] > 0) {
                i++;
                continue;
            }
            Dims out = dims(v);
            out.erase(out.begin() + i);
            v = Add(Fold() + "(@0; dims = " + std::to_string(i) + ")", {v}, out);
        }
        if (!tokens || rank(v) == 1) return Finish();
        Dims out = dims(v);
        if (out.back() < 0) {
            v = Add("reshape(@0; shape = [N * T, 1])", {Add("mean(@0; dims = -1)", {v}, {out[0], out[1]})},
                    {kTokens, 1});
            out = dims(v);
        }
        out.back() = p.classes;
        Add("linear(@0; out = " + std::to_string(p.classes) + ")", {v}, out);
    }
};

} // namespace

Program GenerateWithLength(uint64_t seed) {
    LengthGenerator g;
    g.Start(seed * 0x9FB21C651E98DF25ull + 3);
    g.LengthInputs();
    g.Add("prelu(@0)", {g.Last()}, g.dims(g.Last())); // a parameter: what follows has gradients
    using L = LengthGenerator;
    for (int i = 0, count = 2 + g.r.Below(10); i < count; i++) {
        void (L::*const kinds[])() = {
            &L::Unary,     &L::Binary,     &L::Broadcast, &L::Reduce,    &L::Soft,    &L::Linear,  &L::Linear,
            &L::Attention, &L::Image,      &L::Wide,      &L::Losses,    &L::Lookup,  &L::Indexed, &L::Sequence,
            &L::Moments,   &L::Parameters, &L::Places,    &L::Places,    &L::Given,   &L::Given,   &L::Cut,
            &L::Cut,       &L::Join,       &L::Transpose, &L::Transpose, &L::Reshape, &L::Reshape, &L::Reshape,
            &L::Scores,    &L::Scores,     &L::Attend,    &L::Attend,    &L::Norms,   &L::Norms,   &L::OverLength};
        (g.*kinds[g.r.Below(sizeof kinds / sizeof kinds[0])])();
        const bool large = g.Elements(g.Last()) > (g.p.most > 40 ? 20000 : 4096);
        if (large || !g.IsAllowed(g.Last())) g.p.statements.pop_back();
    }
    g.Settle();
    g.p.pad = g.p.precision != "fp32" && g.r.Chance(50);
    return g.p;
}

} // namespace random_programs
