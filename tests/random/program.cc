// program.cc: see program.h.
#include "tests/random/program.h"

#include <algorithm>
#include <cstring>

#include "tests/ops/pointwise.h"

namespace random_programs {

namespace {

std::string Number(int v) { return v == kBatch ? "N" : std::to_string(v); }

std::string Shape(const Dims &d) {
    std::string text = "[";
    for (size_t i = 0; i < d.size(); i++) text += (i ? ", " : "") + Number(d[i]);
    return text + "]";
}

std::string Name(int i) { return "v" + std::to_string(i); }

// Ops of tests/ops/pointwise.def that take any number, as calls of @0.  Those with numbers as arguments, those that
// take positive numbers and exp, which overflows, are written out.
std::vector<std::string> UnaryForms() {
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

// ---- making statements ----

struct Generator {
    Random r;
    Program p;

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
    // A dimension but the first, which is N.
    int InnerDim(int v) { return 1 + r.Below(rank(v) - 1); }

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
        if ((fold == "var" || fold == "std") && dims(v)[d] < 2) fold = "mean";
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
            if (rank(v) != 2) return;
            std::string out = Number(1 + r.Below(20)), given = r.Chance(50) ? "dims = 0" : "dims = (0, 1)";
            std::string line = fold + "(@0; " + given + ", keep = true)";
            if (r.Chance(50)) line = "tanh(" + line + ")";
            Add("linear(@0; out = " + out + ") + linear(" + line + "; out = " + out + ")", {v},
                {kBatch, std::stoi(out)});
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
            out = {kBatch, out.back()};
            one = "reshape(" + one + "; shape = [N, 1])";
            each = "reshape(" + each + "; shape = " + Shape(out) + ")";
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
        std::string count = Number(out[d]);
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
            int k = 1 + r.Below(std::min(dims(v)[d], 5));
            Dims chosen = dims(v);
            chosen[d] = k;
            Add("largest(@0; k = " + Number(k) + ", dim = " + at + ")", {v}, chosen);
            break;
        }
        case 0: Add("gather(@0, " + index + "; dim = " + at + ")", {v}, one); break;
        case 1:
            Add("scatter_add(@0, " + index + ", slice(@1; dim = " + at + ", from = 0, to = 1); dim = " + at + ")",
                {v, LikeShape(v)}, dims(v));
            break;
        default:
            Add("@0 * (one_hot(argmax(@0; dim = -1); count = " + Number(dims(v).back()) + ") + 0.5)", {v}, dims(v));
        }
    }
    // Layers over time, and what turns their places.
    void Sequence() {
        int v = OfRank(3);
        if (v < 0) return;
        const Dims d = dims(v);
        if (d[2] % 2 == 0 && r.Chance(40)) {
            Add(r.Chance(50) ? "rotary(@0)" : "rotary(@0; interleaved = true, theta = 50.0)", {v}, d);
            return;
        }
        if (r.Chance(40)) {
            Add("einsum(@0, @1; equation = \"bij,bkj->bik\") * 0.25", {v, LikeShape(v)}, {kBatch, d[1], d[1]});
            return;
        }
        if (d[1] > 6) return;
        static const std::vector<std::string> cells = {"rnn", "lstm", "gru"};
        int hidden = 1 + r.Below(9);
        if (r.Chance(25)) {
            Add("steps(@0; size = " + Number(hidden) + ")", {v}, {kBatch, d[1], hidden});
            return;
        }
        bool both = r.Chance(30);
        std::string more = both ? ", bidirectional = true" : r.Chance(30) ? ", layers = 2" : ", bias = false";
        Add(r.Pick(cells) + "(@0; hidden = " + Number(hidden) + more + ")", {v},
            {kBatch, d[1], both ? 2 * hidden : hidden});
    }
    void Soft() {
        int v = Any();
        if (rank(v) < 2) return;
        if (r.Chance(15)) {
            Add("cumsum(@0; dim = " + std::to_string(InnerDim(v)) + ") * 0.3", {v}, dims(v));
            return;
        }
        if (r.Chance(15)) {
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
        out.back() = 1 + r.Below(40);
        std::string more = r.Chance(30) ? ", bias = false" : "";
        if (r.Chance(25)) more += ", transposed = true";
        Add("linear(@0; out = " + Number(out.back()) + more + ")", {v}, out);
    }
    void Attention() {
        int v = Any();
        if (rank(v) != 3 && rank(v) != 4) return;
        std::string more = r.Chance(50) ? "; causal = true" : r.Chance(50) ? "; scale = 0.25" : "";
        if (r.Chance(30)) more = ", matmul(@0, transpose(@0)) * 0.5" + more;
        if (rank(v) == 4 && dims(v)[1] % 2 == 0 && r.Chance(50)) {
            const std::string keys = "slice(@0; dim = 1, from = 0, to = " + Number(dims(v)[1] / 2) + ")";
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
        if (rank(v) == 3 && r.Chance(50)) {
            Add("tabled(@0)", {v}, out);
            return;
        }
        out.back() = 1 + r.Below(20);
        Add("normed(@0; out = " + Number(out.back()) + ")", {v}, out);
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
        Add("group_norm(@0; groups = " + Number(groups) + more + ")", {v}, d);
    }
    void Norm() {
        int v = Any();
        if (rank(v) < 2) return;
        if (r.Chance(20)) Add("prelu(@0; count = " + Number(dims(v)[1]) + ")", {v}, dims(v));
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
            for (int i = 1; i < rank(v); i++) flat[1] *= dims(v)[i];
            Add("flatten(@0)", {v}, flat);
            break;
        }
        default: {
            if (rank(v) != 2 || size % 2) return;
            out = {kBatch, 2, size / 2};
            if (out[2] % 3 == 0 && r.Chance(50)) out = {kBatch, 2, 3, size / 6};
            Add("reshape(@0; shape = " + Shape(out) + ")", {v}, out);
        }
        }
    }
    void Resize(int v) {
        const Dims d = dims(v);
        if (r.Chance(40)) {
            int high = 1 + r.Below(d[2] + 2), wide = 1 + r.Below(d[3] + 2);
            Add("adaptive_avg_pool2d(@0; out = (" + Number(high) + ", " + Number(wide) + "))", {v},
                {kBatch, d[1], high, wide});
            return;
        }
        if (r.Chance(40)) {
            int high = 1 + r.Below(9), wide = 1 + r.Below(9);
            Add("upsample(@0; size = (" + Number(high) + ", " + Number(wide) +
                    (r.Chance(50) ? "), mode = bilinear)" : "))"),
                {v}, {kBatch, d[1], high, wide});
            return;
        }
        int high = 1 + r.Below(3), wide = 1 + r.Below(3);
        if (high * d[2] > 24 || wide * d[3] > 24) return;
        std::string mode = r.Chance(35) ? "nearest" : r.Chance(50) ? "bilinear" : "bilinear, align_corners = true";
        Add("upsample(@0; scale = (" + Number(high) + ", " + Number(wide) + "), mode = " + mode + ")", {v},
            {kBatch, d[1], high * d[2], wide * d[3]});
    }
    void Image() {
        int v = OfRank(4);
        if (v < 0) return;
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
                {v}, {kBatch, 4, high, wide});
            return;
        }
        int h = (d[2] + 2 * padding - reach) / stride + 1, w = (d[3] + 2 * padding - reach) / stride + 1;
        if (d[2] + 2 * padding < reach || d[3] + 2 * padding < reach) return;
        std::string window = "kernel = " + std::to_string(k) + ", stride = " + std::to_string(stride) +
                             ", padding = " + std::to_string(padding);
        if (kind == 1) Add("max_pool2d(@0; " + window + ")", {v}, {kBatch, d[1], h, w});
        else if (kind == 2) Add("avg_pool2d(@0; " + window + ")", {v}, {kBatch, d[1], h, w});
        else if (kind == 3) Add("global_avg_pool(@0)", {v}, {kBatch, d[1]});
        else {
            int groups = d[1] % 2 == 0 && r.Chance(25) ? 2 : 1, out = groups * (1 + r.Below(9));
            std::string more = groups > 1 ? ", groups = 2" : "";
            if (dilation > 1) more += ", dilation = 2";
            if (r.Chance(40)) more += ", bias = false";
            Add("conv2d(@0; out = " + std::to_string(out) + ", " + window + more + ")", {v}, {kBatch, out, h, w});
        }
    }
    void Line(int v) {
        const Dims d = dims(v);
        int k = 1 + r.Below(3), stride = 1 + r.Below(2), padding = r.Below(2), dilation = 1 + r.Below(2);
        int groups = d[1] % 2 == 0 && r.Chance(40) ? 2 : 1, out = groups * (1 + r.Below(6));
        int reach = dilation * (k - 1) + 1, length = (d[2] + 2 * padding - reach) / stride + 1;
        if (d[2] + 2 * padding < reach) return;
        Add("conv1d(@0; out = " + Number(out) + ", kernel = " + Number(k) + ", stride = " + Number(stride) +
                ", padding = " + Number(padding) + ", dilation = " + Number(dilation) + ", groups = " + Number(groups) +
                ")",
            {v}, {kBatch, out, length});
    }
    void Product() {
        int v = OfRank(3);
        if (v < 0) return;
        if (r.Chance(30)) {
            Line(v);
            return;
        }
        const Dims d = dims(v);
        Add("matmul(@0, transpose(@1)) / 4.0", {v, LikeShape(v)}, {kBatch, d[1], d[1]});
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
            for (int i = 1; i < rank(v); i++) flat[1] *= dims(v)[i];
            v = Add("flatten(@0)", {v}, flat);
        }
        Add("linear(@0; out = " + std::to_string(p.classes) + ")", {v}, {kBatch, p.classes});
    }
};

int Elements(const Dims &d) {
    int count = 1;
    for (int i : d) count *= i == kBatch ? 1 : i;
    return count;
}

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

std::string Program::Text(uint64_t checkpoints) const {
    std::vector<bool> read = Read(*this);
    std::string inputs, body;
    std::vector<std::string> lines;
    for (size_t i = 0; i < statements.size(); i++) {
        const Statement &s = statements[i];
        if (!read[i]) continue;
        if (s.text.empty()) {
            inputs += (inputs.empty() ? "" : ", ") + Name(static_cast<int>(i)) + ": f32" + Shape(s.dims);
            continue;
        }
        std::string text = s.text;
        ReplaceOperands(&text, s.operands);
        lines.push_back("    " + Name(static_cast<int>(i)) + " = " + text + "\n");
    }
    Random r{checkpoints};
    if (checkpoints) PutIntoCheckpoints(&lines, 0, lines.size(), 0, &r);
    for (const std::string &line : lines) body += line;
    std::string last = Name(static_cast<int>(statements.size()) - 1);
    std::string loss = cross_entropy ? "cross_entropy(" + last + ", targets)"
                                     : "mean(" + last + " * " + last + ") + 0.0 * cross_entropy(" + last + ", targets)";
    loss += " + 0.01 * accuracy(" + last + ", targets) + 0.01 * top_k_accuracy(" + last +
            ", targets; k = " + std::to_string((classes + 1) / 2) + ")";
    std::string blocks;
    if (body.find("largest(") != std::string::npos) blocks += kLargest;
    if (body.find("steps(") != std::string::npos) blocks += kSteps;
    if (body.find("normed(") != std::string::npos) blocks += kNormed;
    if (body.find("tabled(") != std::string::npos) blocks += kTabled;
    return "amp 1\n" + blocks + "model m(" + inputs + ") -> " + last + " {\n" + body +
           "}\ntrain m {\n    input targets: i32[N]\n    loss = " + loss + "\n    optimizer = sgd(0.0)\n}\nprecision " +
           precision + " {\n" + (Half("fp16") ? "    loss_scale = static(16.0)\n" : "") +
           (pad ? "    pad = true\n" : "") + "}\n";
}

Program Generate(uint64_t seed) {
    Generator g{{seed * 0x2545F4914F6CDD1Dull + 1}, {}};
    static const std::vector<std::string> precisions = {"fp32", "fp32", "fp32",           "fp32",
                                                        "bf16", "fp16", "\"torch-bf16\"", "\"torch-fp16\""};
    g.p.precision = g.r.Pick(precisions);
    g.p.classes = 1 + g.r.Below(9);
    g.p.cross_entropy = g.r.Chance(70);
    g.p.n = 2 + g.r.Below(5);
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
        if (Elements(g.dims(g.Last())) > 4096) g.p.statements.pop_back();
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
