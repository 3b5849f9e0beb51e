// generator.h: makes statements of a random program, one kind a function.
#ifndef AMP_TESTS_RANDOM_GENERATOR_H
#define AMP_TESTS_RANDOM_GENERATOR_H

#include <algorithm>
#include <cstring>

#include "tests/ops/pointwise.h"
#include "tests/random/program.h"

namespace random_programs {

// Ops of tests/ops/pointwise.def that take any number, as calls of @0.  Those with numbers as arguments, those that
// take positive numbers and exp, which overflows, are written out.
inline std::vector<std::string> UnaryForms() {
    std::vector<std::string> forms;
    for (const PointwiseRow &row : PointwiseRows())
        if (row.low < 0 && row.code != OP_exp && !strpbrk(row.attributes, "0123456789"))
            forms.push_back(row.Call("@0"));
    for (const char *form : {"-@0",
                             "exp(clamp(@0; low = -3.0, high = 2.0))",
                             "log(abs(@0) + 0.5)",
                             "sqrt(abs(@0) + 0.25)",
                             "rsqrt(abs(@0) + 0.5)",
                             "pow(abs(@0) + 0.5; e = 1.7)",
                             "pow(@0; e = 2.0)",
                             "pow(abs(@0) + 1.0; e = -0.5)",
                             "clamp(@0; low = -0.7, high = 0.9)",
                             "@0 * 0.5 + 0.1",
                             "log1p(abs(@0))",
                             "reciprocal(abs(@0) + 0.5)",
                             "@0 * floor(sigmoid(@0) * 0.5 + 1.25)",
                             "@0 * sign(abs(@0) + 0.5)",
                             "leaky_relu(@0; slope = 0.2)",
                             "elu(@0; alpha = 1.5)",
                             "prelu(@0)",
                             "1.0 / (abs(@0) + 0.75)",
                             "dropout(@0; p = 0.25)",
                             "@0 * tensor(0.75; shape = [1])"})
        forms.push_back(form);
    return forms;
}

// Makes statements.
struct Generator {
    Random r;
    Program p;

    // What a program is besides its statements.
    void Start(uint64_t state) {
        static const std::vector<std::string> precisions = {"fp32", "fp32", "fp32",           "fp32",
                                                            "bf16", "fp16", "\"torch-bf16\"", "\"torch-fp16\""};
        r.state = state;
        p.precision = r.Pick(precisions);
        p.classes = 1 + r.Below(9);
        p.cross_entropy = r.Chance(70);
        p.n = 2 + r.Below(5);
    }

    const Dims &dims(int v) { return p.statements[v].dims; }
    int rank(int v) { return static_cast<int>(dims(v).size()); }

    int Add(const std::string &text, std::vector<int> operands, Dims d) {
        p.statements.push_back({text, std::move(operands), std::move(d)});
        return static_cast<int>(p.statements.size()) - 1;
    }
    int Any() { return r.Chance(60) ? Last() : r.Below(static_cast<int>(p.statements.size())); }
    int Last() { return static_cast<int>(p.statements.size()) - 1; }
    int OfRank(int wanted) {
        std::vector<int> fit;
        for (int i = 0; i <= Last(); i++)
            if (rank(i) == wanted) fit.push_back(i);
        return fit.empty() ? -1 : r.Pick(fit);
    }
    int LikeShape(int v) {
        std::vector<int> fit;
        for (int i = 0; i <= Last(); i++)
            if (dims(i) == dims(v)) fit.push_back(i);
        return r.Pick(fit);
    }
    // A dimension but the first.
    int InnerDim(int v) { return 1 + r.Below(rank(v) - 1); }
    // Its number at the smallest T.
    int Least(int d) { return d > 0 ? d : Number(d, 2, p.unit); }
    // In a sample, at the largest T.
    int Elements(int v) {
        int count = 1;
        for (int d : dims(v)) count *= d > 0 ? d : Number(d, 1, p.most);
        return count;
    }
    static bool HasBatch(int d) { return d < 0 && Number(d, 2 << 10, 1) != Number(d, 1 << 10, 1); }
    // Whether the dimensions from |from| on are numbers, which some ops ask for.
    bool Sized(int v, int from) {
        return std::all_of(dims(v).begin() + from, dims(v).end(), [](int d) { return d > 0; });
    }

    void Unary() {
        static const std::vector<std::string> forms = UnaryForms();
        int v = Any();
        Add(r.Pick(forms), {v}, dims(v));
    }
    void Binary() {
        static const std::vector<std::string> forms = {
            "@0 + @1", "@0 - @1", "@0 * @1", "@0 / (abs(@1) + 0.5)", "where(@0 > @1, @0, @1 * 0.5)",
            "maximum(@0, @1 * 0.5)", "minimum(@0 * 0.5, @1)", "where(@0 < @1 or not (@0 == 0.25), @0, @1 * 0.5)",
            "where(@0 != @1 and @1 >= 0.1, @1, @0 * 0.5)", "where(@0 <= 0.1, @0, @1)",
            // far from where the remainder jumps
            "@1 + (@0 + 900.0) % 2048.0 * 0.001"};
        int v = Any();
        Add(r.Pick(forms), {v, LikeShape(v)}, dims(v));
    }
    // A reduction with kept dims, broadcast back.
    void Broadcast() {
        static const std::vector<std::string> folds = {"mean", "sum", "max", "min", "var", "std"};
        int v = Any();
        if (rank(v) < 2) return;
        int d = InnerDim(v);
        std::string fold = r.Pick(folds);
        if ((fold == "var" || fold == "std") && Least(dims(v)[d]) < 2) fold = "mean";
        std::string reduced = fold + "(@0; dims = " + std::to_string(r.Chance(50) ? d : d - rank(v)) + ", keep = true)";
        // not all of it: means of what is left would be roundings alone, whose largest is anybody's
        Add(r.Chance(50) ? "@0 - " + reduced + " * 0.75" : "@0 * (" + reduced + " + 0.5)", {v}, dims(v));
    }
    void Reduce() {
        static const std::vector<std::string> folds = {"mean", "sum", "max", "min", "logsumexp", "norm"};
        int v = Any();
        if (rank(v) < 3) return;
        int d = InnerDim(v);
        Dims out = dims(v);
        out.erase(out.begin() + d);
        Add(r.Pick(folds) + "(@0; dims = " + std::to_string(d) + ")", {v}, out);
    }
    // Over samples, over several dimensions, over all.
    void Wide() {
        static const std::vector<std::string> folds = {"mean", "sum", "max", "min"};
        int v = Any();
        if (rank(v) < 2) return;
        std::string fold = r.Pick(folds), d = std::to_string(InnerDim(v));
        switch (r.Below(4)) {
        case 0: Add("@0 - " + fold + "(@0; dims = 0, keep = true) * 0.25", {v}, dims(v)); break;
        case 1: Add("@0 * (" + fold + "(@0; dims = (0, " + d + "), keep = true) * 0.25 + 0.5)", {v}, dims(v)); break;
        case 2: {
            if (rank(v) != 2 || !Sized(v, 1)) return;
            std::string out = Word(1 + r.Below(20)), given = r.Chance(50) ? "dims = 0" : "dims = (0, 1)";
            std::string line = fold + "(@0; " + given + ", keep = true)";
            if (r.Chance(50)) line = "tanh(" + line + ")";
            Add("linear(@0; out = " + out + ") + linear(" + line + "; out = " + out + ")", {v},
                {dims(v)[0], std::stoi(out)});
            break;
        }
        default: {
            if (rank(v) < 3) return;
            Dims out = dims(v);
            bool keep = r.Chance(50);
            if (keep) out[1] = out[2] = 1;
            else out.erase(out.begin() + 1, out.begin() + 3);
            Add(fold + "(@0; dims = (1, 2)" + (keep ? ", keep = true)" : ")"), {v}, out);
        }
        }
    }
    // What there is of each sample alone, beside what there is of each sample and channel: of other kernels.
    void Moments() {
        static const std::vector<std::string> folds = {"mean", "max", "sum"};
        int v = Any();
        if (rank(v) < 3) return;
        Dims out = dims(v);
        for (int i = 1; i + 1 < rank(v); i++) out[i] = 1;
        const std::string keep = ", keep = true)",
                          rows = "; dims = " + std::string(rank(v) > 3 ? "(1, 2)" : "1") + keep;
        std::string one = "tanh(" + r.Pick(folds) + "(" + r.Pick(folds) + "(@0" + rows + "; dims = -1" + keep + ")";
        std::string each = r.Pick(folds) + "(@0 * @0" + rows;
        if (r.Chance(30)) {
            out = {out[0], out.back()};
            one = "reshape(" + one + "; shape = " + ShapeText({out[0], 1}) + ")";
            each = "reshape(" + each + "; shape = " + ShapeText(out) + ")";
        }
        const std::string sign = r.Chance(50) ? " * " : " - ";
        Add(r.Chance(50) ? each + sign + one : one + sign + each, {v}, out);
    }
    // Losses, as factors of what goes on.
    void Losses() {
        static const std::vector<std::string> scalars = {"tanh(mean(@0))",
                                                         "tanh(mse_loss(@0, @1))",
                                                         "tanh(bce_with_logits(@0, sigmoid(@1)))",
                                                         "tanh(l1_loss(@0, @1))",
                                                         "tanh(smooth_l1_loss(@0, @1; beta = 0.5))",
                                                         "tanh(huber_loss(@0, @1))",
                                                         "dice_loss(sigmoid(@0), sigmoid(@1))",
                                                         "tanh(kl_div(@0, sigmoid(@1); reduction = mean))",
                                                         "tanh(mean(cosine_similarity(@0 + 0.5, @1 + 0.3)))",
                                                         "tanh(mean(prod(sigmoid(@0) + 0.5; dims = 1)))"};
        int v = Any();
        if (rank(v) < 2) return;
        const std::string &scalar = r.Pick(scalars);
        std::vector<int> operands = {v};
        if (scalar.find("@1") != std::string::npos) operands.push_back(LikeShape(v));
        Add("@0 * (" + scalar + " + 0.5)", operands, dims(v));
    }
    // The place of the largest number, looked up in a table; and a mean, so that what comes before is trained.
    void Lookup() {
        int v = Any();
        if (rank(v) < 2 || rank(v) > 3) return;
        int d = InnerDim(v), width = 1 + r.Below(12);
        Dims out = dims(v);
        if (out[d] < 0) return;
        std::string count = Word(out[d]);
        out.erase(out.begin() + d);
        out.push_back(width);
        Add("embedding(argmax(@0; dim = " + std::to_string(d) + "); count = " + count +
                ", dim = " + std::to_string(width) + ") * (tanh(mean(@0)) + 0.5)",
            {v}, out);
    }
    // By indexes that are computed: the place of the largest number.
    void Indexed() {
        int v = Any();
        if (rank(v) < 2) return;
        int d = InnerDim(v);
        const std::string at = std::to_string(d), index = "stack(argmax(@0; dim = " + at + "); dim = " + at + ")";
        Dims one = dims(v);
        one[d] = 1;
        switch (r.Below(4)) {
        case 3: {
            if (dims(v)[d] < 0) return;
            int k = 1 + r.Below(std::min(dims(v)[d], 5));
            Dims chosen = dims(v);
            chosen[d] = k;
            Add("largest(@0; k = " + Word(k) + ", dim = " + at + ")", {v}, chosen);
            break;
        }
        case 0: Add("gather(@0, " + index + "; dim = " + at + ")", {v}, one); break;
        case 1:
            if (dims(v)[d] == kBatch) return; // no slice is along N
            Add("scatter_add(@0, " + index + ", slice(@1; dim = " + at + ", from = 0, to = 1); dim = " + at + ")",
                {v, LikeShape(v)}, dims(v));
            break;
        default:
            if (dims(v).back() < 0) return;
            Add("@0 * (one_hot(argmax(@0; dim = -1); count = " + Word(dims(v).back()) + ") + 0.5)", {v}, dims(v));
        }
    }
    // Layers over time, and what turns their places.
    void Sequence() {
        int v = OfRank(3);
        if (v < 0) return;
        const Dims d = dims(v);
        if (d[2] > 0 && d[2] % 2 == 0 && r.Chance(40)) {
            Add(r.Chance(50) ? "rotary(@0)" : "rotary(@0; interleaved = true, theta = 50.0)", {v}, d);
            return;
        }
        if (r.Chance(40)) {
            Add("einsum(@0, @1; equation = \"bij,bkj->bik\") * 0.25", {v, LikeShape(v)}, {d[0], d[1], d[1]});
            return;
        }
        if (d[1] > 6 || !Sized(v, 1)) return;
        static const std::vector<std::string> cells = {"rnn", "lstm", "gru"};
        int hidden = 1 + r.Below(9);
        if (r.Chance(25)) {
            Add("steps(@0; size = " + Word(hidden) + ")", {v}, {d[0], d[1], hidden});
            return;
        }
        bool both = r.Chance(30);
        std::string more = both ? ", bidirectional = true" : r.Chance(30) ? ", layers = 2" : ", bias = false";
        Add(r.Pick(cells) + "(@0; hidden = " + Word(hidden) + more + ")", {v},
            {d[0], d[1], both ? 2 * hidden : hidden});
    }
    void Soft() {
        int v = Any();
        if (rank(v) < 2) return;
        if (r.Chance(15)) {
            if (!Sized(v, 1)) return;
            Add("cumsum(@0; dim = " + std::to_string(InnerDim(v)) + ") * 0.3", {v}, dims(v));
            return;
        }
        if (r.Chance(15)) {
            if (!Sized(v, 1)) return;
            Add("roll(@0; shift = 1, dim = " + std::to_string(InnerDim(v)) + ")", {v}, dims(v));
            return;
        }
        if (rank(v) > 2 && r.Chance(15)) {
            Add(r.Chance(50) ? "tril(@0)" : "triu(@0; diagonal = 1)", {v}, dims(v));
            return;
        }
        std::string op = r.Chance(50) ? "softmax" : "log_softmax";
        Add(op + "(@0; dim = " + std::to_string(r.Chance(60) ? -1 : InnerDim(v)) + ")", {v}, dims(v));
    }
    void Linear() {
        int v = Any();
        if (rank(v) != 2 && rank(v) != 3) return;
        Dims out = dims(v);
        if (out.back() < 0) return;
        out.back() = 1 + r.Below(40);
        std::string more = r.Chance(30) ? ", bias = false" : "";
        if (r.Chance(25)) more += ", transposed = true";
        Add("linear(@0; out = " + Word(out.back()) + more + ")", {v}, out);
    }
    void Attention() {
        int v = Any();
        if ((rank(v) != 3 && rank(v) != 4) || dims(v).back() < 0 || HasBatch(dims(v)[rank(v) - 2])) return;
        std::string more = r.Chance(50) ? "; causal = true" : r.Chance(50) ? "; scale = 0.25" : "";
        if (r.Chance(30)) more = ", matmul(@0, transpose(@0)) * 0.5" + more;
        if (rank(v) == 4 && dims(v)[1] > 0 && dims(v)[1] % 2 == 0 && r.Chance(50)) {
            const std::string keys = "slice(@0; dim = 1, from = 0, to = " + Word(dims(v)[1] / 2) + ")";
            const bool causal = r.Chance(50);
            Add("attention(@0, " + keys + ", tanh(" + keys + ")" + (causal ? "; causal = true)" : ")"), {v}, dims(v));
            return;
        }
        Add("attention(@0, @0, tanh(@0)" + more + ")", {v}, dims(v));
    }
    // Parameters that are computed with before they meet a value.
    void Parameters() {
        int v = Any();
        if (rank(v) != 2 && rank(v) != 3) return;
        Dims out = dims(v);
        if (out.back() < 0) return;
        if (rank(v) == 3 && Sized(v, 1) && r.Chance(50)) {
            Add("tabled(@0)", {v}, out);
            return;
        }
        out.back() = 1 + r.Below(20);
        Add("normed(@0; out = " + Word(out.back()) + ")", {v}, out);
    }
    void GroupNorm(int v) {
        const Dims d = dims(v);
        int elements = 1;
        for (int i = 2; i < rank(v); i++) elements *= d[i];
        if (elements > 1 && r.Chance(40)) {
            Add(r.Chance(50) ? "instance_norm(@0)" : "instance_norm(@0; affine = true)", {v}, d);
            return;
        }
        int groups = 1 + r.Below(d[1]);
        while (d[1] % groups) groups--;
        if (elements * (d[1] / groups) < 2) return;
        std::string more = r.Chance(30) ? ", affine = false" : r.Chance(30) ? ", bias = false" : "";
        Add("group_norm(@0; groups = " + Word(groups) + more + ")", {v}, d);
    }
    void Norm() {
        int v = Any();
        if (rank(v) < 2 || !Sized(v, 1)) return;
        if (r.Chance(20)) Add("prelu(@0; count = " + Word(dims(v)[1]) + ")", {v}, dims(v));
        else if (r.Chance(20)) Add("rms_norm(@0)", {v}, dims(v));
        else if (r.Chance(25)) GroupNorm(v);
        else if (r.Chance(60)) Add(r.Chance(50) ? "layer_norm(@0)" : "layer_norm(@0; bias = false)", {v}, dims(v));
        else Add(r.Chance(75) ? "batch_norm(@0)" : "batch_norm(@0; frozen = true)", {v}, dims(v));
    }
    void Movement() {
        int v = Any();
        if (rank(v) < 2) return;
        int d = InnerDim(v), size = dims(v)[d];
        Dims out = dims(v);
        switch (r.Below(8)) {
        case 6: {
            if (rank(v) != 4) return;
            out = {kBatch, dims(v)[2], dims(v)[3], dims(v)[1]};
            Add("permute(@0; dims = (0, 2, 3, 1))", {v}, out);
            break;
        }
        case 0: {
            if (rank(v) < 3) return;
            int e = InnerDim(v);
            std::swap(out[d], out[e]);
            Add("transpose(@0; a = " + std::to_string(d) + ", b = " + std::to_string(e) + ")", {v}, out);
            break;
        }
        case 1: {
            int from = r.Below(size), to = from + 1 + r.Below(size - from);
            out[d] = to - from;
            Add("slice(@0; dim = " + std::to_string(d) + ", from = " + std::to_string(from) +
                    ", to = " + std::to_string(to) + ")",
                {v}, out);
            break;
        }
        case 2: {
            int before = r.Below(3), after = r.Below(3);
            out[d] = size + before + after;
            Add("pad(@0; dim = " + std::to_string(d) + ", before = " + std::to_string(before) +
                    ", after = " + std::to_string(after) + (r.Chance(30) ? ", value = 0.5)" : ")"),
                {v}, out);
            break;
        }
        case 3: {
            int other = LikeShape(v);
            out[d] = 2 * size;
            Add("concat(@0, @1; dim = " + std::to_string(d) + ")", {v, other}, out);
            break;
        }
        case 4: {
            if (rank(v) > 3) return;
            int other = LikeShape(v);
            out.insert(out.begin() + d, 2);
            Add("stack(@0, @1; dim = " + std::to_string(d) + ")", {v, other}, out);
            break;
        }
        case 5: {
            if (rank(v) < 3) return;
            Dims flat = {kBatch, 1};
            for (int i = 1; i < rank(v); i++) flat[1] = Times(flat[1], dims(v)[i]);
            Add("flatten(@0)", {v}, flat);
            break;
        }
        default: {
            if (rank(v) != 2 || size % 2) return;
            out = {kBatch, 2, size / 2};
            if (out[2] % 3 == 0 && r.Chance(50)) out = {kBatch, 2, 3, size / 6};
            Add("reshape(@0; shape = " + ShapeText(out) + ")", {v}, out);
        }
        }
    }
    void Resize(int v) {
        const Dims d = dims(v);
        if (r.Chance(40)) {
            int high = 1 + r.Below(d[2] + 2), wide = 1 + r.Below(d[3] + 2);
            Add("adaptive_avg_pool2d(@0; out = (" + Word(high) + ", " + Word(wide) + "))", {v},
                {d[0], d[1], high, wide});
            return;
        }
        if (r.Chance(40)) {
            int high = 1 + r.Below(9), wide = 1 + r.Below(9);
            Add("upsample(@0; size = (" + Word(high) + ", " + Word(wide) +
                    (r.Chance(50) ? "), mode = bilinear)" : "))"),
                {v}, {d[0], d[1], high, wide});
            return;
        }
        int high = 1 + r.Below(3), wide = 1 + r.Below(3);
        if (high * d[2] > 24 || wide * d[3] > 24) return;
        std::string mode = r.Chance(35) ? "nearest" : r.Chance(50) ? "bilinear" : "bilinear, align_corners = true";
        Add("upsample(@0; scale = (" + Word(high) + ", " + Word(wide) + "), mode = " + mode + ")", {v},
            {d[0], d[1], high * d[2], wide * d[3]});
    }
    void Image() {
        int v = OfRank(4);
        if (v < 0 || !Sized(v, 1)) return;
        const Dims d = dims(v);
        if (r.Chance(30)) {
            Resize(v);
            return;
        }
        int kind = r.Below(4), k = 1 + r.Below(3), stride = 1 + r.Below(2), padding = r.Below((k + 1) / 2 + 1);
        if (kind) padding = std::min(padding, k / 2);
        int dilation = kind == 0 && r.Chance(20) ? 2 : 1, reach = dilation * (k - 1) + 1;
        if (kind == 0 && r.Chance(25)) {
            int more = r.Below(std::max(stride, dilation));
            int high = (d[2] - 1) * stride - 2 * padding + reach + more, wide = high + (d[3] - d[2]) * stride;
            if (high < 1 || wide < 1 || high > 24 || wide > 24) return;
            Add("conv_transpose2d(@0; out = 4, kernel = " + std::to_string(k) + ", stride = " + std::to_string(stride) +
                    ", padding = " + std::to_string(padding) + ", output_padding = " + std::to_string(more) +
                    ", dilation = " + std::to_string(dilation) + ")",
                {v}, {d[0], 4, high, wide});
            return;
        }
        int h = (d[2] + 2 * padding - reach) / stride + 1, w = (d[3] + 2 * padding - reach) / stride + 1;
        if (d[2] + 2 * padding < reach || d[3] + 2 * padding < reach) return;
        std::string window = "kernel = " + std::to_string(k) + ", stride = " + std::to_string(stride) +
                             ", padding = " + std::to_string(padding);
        if (kind == 1) Add("max_pool2d(@0; " + window + ")", {v}, {d[0], d[1], h, w});
        else if (kind == 2) Add("avg_pool2d(@0; " + window + ")", {v}, {d[0], d[1], h, w});
        else if (kind == 3) Add("global_avg_pool(@0)", {v}, {d[0], d[1]});
        else {
            int groups = d[1] % 2 == 0 && r.Chance(25) ? 2 : 1, out = groups * (1 + r.Below(9));
            std::string more = groups > 1 ? ", groups = 2" : "";
            if (dilation > 1) more += ", dilation = 2";
            if (r.Chance(40)) more += ", bias = false";
            Add("conv2d(@0; out = " + std::to_string(out) + ", " + window + more + ")", {v}, {d[0], out, h, w});
        }
    }
    void Line(int v) {
        const Dims d = dims(v);
        int k = 1 + r.Below(3), stride = 1 + r.Below(2), padding = r.Below(2), dilation = 1 + r.Below(2);
        int groups = d[1] % 2 == 0 && r.Chance(40) ? 2 : 1, out = groups * (1 + r.Below(6));
        int reach = dilation * (k - 1) + 1, length = (d[2] + 2 * padding - reach) / stride + 1;
        if (d[2] + 2 * padding < reach) return;
        Add("conv1d(@0; out = " + Word(out) + ", kernel = " + Word(k) + ", stride = " + Word(stride) +
                ", padding = " + Word(padding) + ", dilation = " + Word(dilation) + ", groups = " + Word(groups) + ")",
            {v}, {d[0], out, length});
    }
    void Product() {
        int v = OfRank(3);
        if (v < 0) return;
        if (r.Chance(30)) {
            Line(v);
            return;
        }
        const Dims d = dims(v);
        Add("matmul(@0, transpose(@1)) / 4.0", {v, LikeShape(v)}, {d[0], d[1], d[1]});
    }

    void Inputs() {
        int kind = r.Below(3);
        if (kind == 0) Add("", {}, {kBatch, 1 + r.Below(40)});
        if (kind == 1) Add("", {}, {kBatch, 1 + r.Below(6), 1 + r.Below(36)});
        if (kind == 2) Add("", {}, {kBatch, 1 + r.Below(5), 3 + r.Below(6), 3 + r.Below(6)});
    }
    // [N, classes] at the end, whatever the last value is.
    void Finish() {
        int v = Last();
        if (rank(v) == 1) v = Add("reshape(@0; shape = [N, 1])", {v}, {kBatch, 1});
        if (rank(v) > 2) {
            Dims flat = {kBatch, 1};
            for (int i = 1; i < rank(v); i++) flat[1] = Times(flat[1], dims(v)[i]);
            v = Add("flatten(@0)", {v}, flat);
        }
        Add("linear(@0; out = " + std::to_string(p.classes) + ")", {v}, {kBatch, p.classes});
    }
};

} // namespace random_programs

#endif
