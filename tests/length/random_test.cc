/* random_test.cc: random models with a T.  AMP_LENGTH_PROGRAMS is how many, from the seed AMP_LENGTH_SEED on. */
#include <cstdlib>

#include "tests/length/length.h"

namespace {

using Dims = std::vector<std::string>;

int64_t FromEnvironment(const char *name, int64_t otherwise) {
    const char *text = getenv(name);
    return text ? atoll(text) : otherwise;
}

struct Tensor {
    std::string name;
    Dims dims; // the first is N
};

class Program {
  public:
    explicit Program(uint64_t seed) : rng_(seed) {}

    std::string Text() {
        values_ = {{"x", {"N", "T", "8"}}, {"mask", {"N", "T"}}};
        body_ += "    m = reshape(mask; shape = [N, T, 1])\n";
        values_.push_back({"m", {"N", "T", "1"}});
        const int count = 4 + Pick(10);
        for (int i = 0; i < count; i++) Step(values_[size_t(Pick(int(values_.size())))]);
        std::string loss;
        for (size_t i = 3; i < values_.size(); i++)
            loss += (loss.empty() ? "" : " + ") + std::string("mean(tanh(") + values_[i].name + "))";
        if (loss.empty()) loss = "mean(x * tanh(w))", body_ += "    param w: f32[8] = ones()\n";
        const char *const words[] = {"fp32", "fp16", "bf16"};
        return "amp 1\nsize T = 256, unit = 4\nmodel random(x: f32[N, T, 8], mask: f32[N, T]) -> y {\n    param first: "
               "f32[8] = "
               "ones()\n    x = x * first\n" +
               body_ + "    y = " + loss +
               " + mean(x) + mean(m)\n}\ntrain random {\n    loss = y\n    optimizer = sgd(lr = 0.1)\n" +
               (Pick(3) ? "" : "    accumulate = 2\n") + "}\nprecision " + words[Pick(3)] + " { }\n";
    }

  private:
    int Pick(int count) { return int(rng_() % uint64_t(count)); }

    void Add(const std::string &expression, const Dims &dims) {
        const std::string name = "v" + std::to_string(values_.size());
        body_ += "    " + name + " = " + expression + "\n";
        values_.push_back({name, dims});
    }

    static bool IsNumber(const std::string &dim) { return dim.find_first_of("NT") == std::string::npos; }

    void Reduce(const Tensor &x) {
        const char *const ops[] = {"sum", "mean", "max", "logsumexp", "var"};
        const int dim = 1 + Pick(int(x.dims.size()) - 1);
        Dims dims = x.dims;
        const bool keep = x.dims.size() == 2 || Pick(2);
        if (keep) dims[size_t(dim)] = "1";
        else dims.erase(dims.begin() + dim);
        std::string op = ops[Pick(5)];
        if (op == "var" && x.dims[size_t(dim)] == "1") op = "sum";
        Add(op + "(" + x.name + "; dims = " + std::to_string(dim) + (keep ? ", keep = true)" : ")"), dims);
    }

    void Linear(const Tensor &x) {
        Dims dims = x.dims;
        dims.back() = std::to_string(4 * (1 + Pick(3)));
        if (IsNumber(x.dims.back()))
            Add("linear(" + x.name + "; out = " + dims.back() + ") as l" + std::to_string(values_.size()), dims);
    }

    void Transpose(const Tensor &x) {
        Dims dims = x.dims;
        if (dims.size() < 3) return;
        std::swap(dims[1], dims[2]);
        Add("transpose(" + x.name + "; a = 1, b = 2)", dims);
    }

    void Join(const Tensor &x) {
        Dims dims = x.dims;
        if (dims.size() < 3 || dims[1].find('*') != std::string::npos) return;
        dims[1] = IsNumber(dims[1]) ? std::to_string(2 * std::stoi(dims[1])) : "2 * " + dims[1];
        Add("concat(" + x.name + ", tanh(" + x.name + "); dim = 1)", dims);
    }

    void Cut(const Tensor &x) {
        Dims dims = x.dims;
        if (dims.size() < 3 || dims[1] != "T" || dims[2] == "1") return; // a column may be one of several views
        const bool first = Pick(2);
        dims[1] = first ? "1" : "T / 2";
        Add("slice(" + x.name + (first ? "; dim = 1, from = 0, to = 1)" : "; dim = 1, from = T / 2, to = T)"), dims);
    }

    void Patches(const Tensor &x) {
        if (x.dims != Dims{"N", "T", "8"}) return;
        Add("reshape(" + x.name + "; shape = [N, T / 4, 32])", {"N", "T / 4", "32"});
    }

    void Scores(const Tensor &x) {
        if (x.dims.size() != 3) return;
        Add("matmul(" + x.name + ", transpose(" + x.name + "; a = 1, b = 2))", {"N", x.dims[1], x.dims[1]});
        const Tensor scores = values_.back();
        Add("matmul(softmax(" + scores.name + "), " + x.name + ")", x.dims);
    }

    void Attention(const Tensor &x) {
        if (x.dims.size() != 3 || !IsNumber(x.dims[2]) || std::stoi(x.dims[2]) % 4) return;
        Add("self_attention(" + x.name + "; heads = 2, causal = true, p = 0.1) as a" + std::to_string(values_.size()),
            x.dims);
    }

    void Norm(const Tensor &x) {
        const std::string as = ") as n" + std::to_string(values_.size());
        if (IsNumber(x.dims.back()) && x.dims.back() != "1" && Pick(2)) Add("layer_norm(" + x.name + as, x.dims);
        else if (x.dims.size() == 3 && IsNumber(x.dims[1])) Add("batch_norm(" + x.name + as, x.dims);
    }

    void Places(const Tensor &x) {
        if (x.dims.size() < 2 || x.dims.back() != "T") return;
        Add(x.name + " + to_f32(arange(; count = T)) * 0.01", x.dims);
    }

    void Step(const Tensor given) {
        const Tensor &x = given;
        switch (Pick(13)) {
        case 0: Add("gelu(" + x.name + ")", x.dims); break;
        case 1: Add("dropout(" + x.name + "; p = 0.2)", x.dims); break;
        case 2: Add(x.name + " * sigmoid(" + x.name + ")", x.dims); break;
        case 3: Reduce(x); break;
        case 4: Linear(x); break;
        case 5: Transpose(x); break;
        case 6: Join(x); break;
        case 7: Cut(x); break;
        case 8: Patches(x); break;
        case 9: Scores(x); break;
        case 10: Attention(x); break;
        case 11: Norm(x); break;
        default: Places(x); break;
        }
    }

    std::mt19937_64 rng_;
    std::vector<Tensor> values_;
    std::string body_;
};

class RandomLength : public LengthTest {};

TEST_F(RandomLength, IsTheModelOfOneLength) {
    const int64_t seed = FromEnvironment("AMP_LENGTH_SEED", 1), count = FromEnvironment("AMP_LENGTH_PROGRAMS", 16);
    for (int64_t i = seed; i < seed + count && !HasFailure(); i++) {
        const std::string text = Program(uint64_t(i)).Text();
        ExpectSameDecisions(text, i % 3 ? 16 : 192);
        ExpectSameNumbers(text, i % 2 ? 8 : 12, i % 2 ? STAGE_LOWER : STAGE_AUTODIFF);
        if (HasFailure()) ADD_FAILURE() << "seed " << i;
    }
}

} // namespace
