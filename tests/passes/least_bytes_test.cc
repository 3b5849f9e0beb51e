// least_bytes_test.cc: the algorithm `min_cut` against every other choice of types, priced as docs/policies.md says,
// and against `eager` with the same lists.
#include "passes/precision/casting.h"

#include <algorithm>
#include <ctime>
#include <random>
#include <set>

#include "tests/base/sanitizer.h"
#include "tests/passes/pass_test.h"

namespace {

using Labels = std::map<std::string, bool>; // of ops by path: f32
using Choice = std::vector<bool>;           // of the ops that have one, in order: f32

bool IsOneOf(const Op *o, const std::set<std::string> &names) { return names.count(ir_op_info[o->code].name); }

// docs/policies.md, "What `min_cut` does", added up.
class PricedGraph {
  public:
    PricedGraph(const Func *f, const Policy *p, int64_t n)
        : f_(f), facts_(f->ops.len), readers_(f->values.len), is_result_(f->values.len), is_graded_(f->values.len),
          elements_(f->values.len) {
        Classify(p);
        FindAsides();
        for (int i = 0; i < f->body.len; i++) {
            const Op *o = ir_op_at(f, i);
            for (int k = 0; k < o->n_in; k++) readers_[o->in[k].id].emplace_back(o, operand_is_castable(f, o, k));
        }
        for (int i = 0; i < f->inputs.len; i++) {
            const State *s = ir_state_of(f, f->inputs.data[i]);
            is_graded_[f->inputs.data[i].id] = f->module->has_train && s && s->role == STATE_PARAM;
        }
        for (int i = 0; i < f->body.len; i++) {
            const Op *o = ir_op_at(f, i);
            for (int k = 0; k < o->n_in; k++)
                if (is_graded_[o->in[k].id]) is_graded_[o->out[0].id] = true;
        }
        for (int v = 1; v < f->values.len; v++) {
            Elements e;
            shape_elements(&f->values.data[v]->shape, &e);
            elements_[v] = static_cast<double>(e.mul) / static_cast<double>(e.div) * (is_graded_[v] ? 2.0 : 1.0);
            for (int i = 0; i < e.batches; i++) elements_[v] *= static_cast<double>(n);
        }
    }

    // The ops that have a choice.
    const std::vector<std::string> &Free() const { return free_; }

    Choice ChoiceOf(const Labels &labels) const {
        Choice choice;
        for (const std::string &path : free_) choice.push_back(labels.at(path));
        return choice;
    }

    // {bytes, casts}; bytes < 0: not allowed.
    std::pair<double, int> Price(const Choice &choice) const {
        std::pair<double, int> price = {0.0, 0};
        for (int i = 0; i < f_->body.len; i++) {
            const Op *o = ir_op_at(f_, i);
            const OpFacts &facts = facts_[o->id.id];
            if (facts.free < 0 || !facts.never_lowers || choice[facts.free]) continue;
            for (int k = 0; k < o->n_in; k++)
                if (operand_is_castable(f_, o, k) && IsF32(o->in[k].id, choice)) return {-1.0, 0};
        }
        for (int v = 1; v < f_->values.len; v++)
            if (f_->values.data[v]->dtype == AMP_DT_F32) AddValue(v, choice, &price);
        return price;
    }

  private:
    struct OpFacts {
        PolicyClass op_class;
        int free; // its index in a choice; -1: it has none
        bool is_reshape, is_rigid /* reads memory in its own type */, never_lowers;
    };

    void Classify(const Policy *p) {
        for (int i = 0; i < f_->body.len; i++) {
            const Op *o = ir_op_at(f_, i);
            OpFacts &facts = facts_[o->id.id];
            facts.op_class = policy_line(p, ir_op_info[o->code].name, o->layer)->op_class;
            facts.is_reshape = IsOneOf(o, {"reshape", "flatten"});
            facts.is_rigid =
                IsOneOf(o, {"matmul", "linear", "conv2d", "conv_transpose2d", "attention", "reshape", "flatten",
                            "slice", "concat", "stack", "transpose", "permute", "pad", "expand", "embedding"});
            facts.never_lowers = facts.op_class == POLICY_WIDEST;
            facts.free = -1;
            const bool follows = facts.op_class == POLICY_FOLLOW && ir_shape(f_, o->out[0])->rank;
            if (ReadsAnySize(o)) continue;
            if (ir_dtype(f_, o->out[0]) != AMP_DT_F32 || !(follows || facts.op_class == POLICY_WIDEST)) continue;
            facts.free = static_cast<int>(free_.size());
            free_.push_back(o->path);
        }
    }

    // What is computed from inputs, and from what the lists keep in f32, up to the next product or bounded result.
    bool ReadsAnySize(const Op *o) {
        const bool listed = facts_[o->id.id].op_class == POLICY_F32 || facts_[o->id.id].op_class == POLICY_F32_OUT;
        bool reads = false;
        for (int k = 0; k < o->n_in; k++)
            reads = reads || any_size_.count(o->in[k].id) || !(ir_def(f_, o->in[k]) || ir_state_of(f_, o->in[k]));
        const bool is_small = IsOneOf(o, {"sigmoid", "softmax"}) || facts_[o->id.id].op_class == POLICY_LOWER;
        if ((reads || listed) && !is_small && ir_shape(f_, o->out[0])->rank) any_size_.insert(o->out[0].id);
        return reads && !listed && facts_[o->id.id].op_class != POLICY_LOWER;
    }

    // What neither the loss nor a result of the model needs.
    void FindAsides() {
        std::set<uint32_t> needed;
        for (int i = 0; i < f_->results.len; i++) {
            const Result &r = f_->results.data[i];
            is_result_[r.value.id] = true;
            if (r.kind == RESULT_MODEL || r.kind == RESULT_LOSS) needed.insert(r.value.id);
        }
        for (int i = f_->body.len - 1; i >= 0; i--) {
            const Op *o = ir_op_at(f_, i);
            if (!needed.count(o->out[0].id)) facts_[o->id.id].never_lowers = true;
            else
                for (int k = 0; k < o->n_in; k++) needed.insert(o->in[k].id);
        }
    }

    bool OpIsF32(const Op *o, const Choice &choice) const {
        const OpFacts &facts = facts_[o->id.id];
        return facts.free >= 0 ? choice[facts.free] : facts.op_class != POLICY_LOWER;
    }
    bool IsF32(uint32_t v, const Choice &choice) const {
        const Op *maker = ir_def(f_, Val{v});
        return !maker || v != maker->out[0].id || OpIsF32(maker, choice);
    }

    void AddValue(int v, const Choice &choice, std::pair<double, int> *price) const {
        const Op *maker = ir_def(f_, Val{static_cast<uint32_t>(v)});
        const bool is_f32 = IsF32(v, choice), has_maker = maker && !facts_[maker->id.id].is_reshape;
        const double own = elements_[v] * (is_f32 ? 4 : 2), other = elements_[v] * (is_f32 ? 2 : 4);
        bool casts = false, needs_other = false, alike = has_maker && !is_result_[v];
        int flexible = 0, rigid = 0, first = -1;
        double rigid_reads = 0.0;
        for (const auto &reader : readers_[v]) {
            const OpFacts &facts = facts_[reader.first->id.id];
            const bool casting = reader.second && facts.op_class != POLICY_F32_OUT && facts.op_class != POLICY_FIRST &&
                                 ir_dtype(f_, reader.first->out[0]) == AMP_DT_F32;
            const bool reads_f32 = OpIsF32(reader.first, choice);
            casts = casts || (casting && reads_f32 != is_f32);
            if (!facts.is_rigid || !casting) {
                flexible++;
                continue;
            }
            if (!facts.is_reshape) rigid_reads += elements_[v] * (reads_f32 ? 4 : 2);
            needs_other = needs_other || reads_f32 != is_f32;
            alike = alike && facts.free < 0 && (!rigid++ || reads_f32 == first);
            first = reads_f32;
        }
        price->second += casts;
        if (InRegisters(v, maker, has_maker)) return;
        price->first += rigid_reads;
        if (alike && !flexible && first >= 0) return; // written in the one type that is read, whatever computed it
        price->first += own * (flexible + has_maker);
        if (needs_other) price->first += has_maker ? other : own + other;
    }

    bool InRegisters(int v, const Op *maker, bool has_maker) const {
        if (is_result_[v] || !has_maker || readers_[v].size() != 1) return false;
        const Op *reader = readers_[v][0].first;
        const bool is_rigid = facts_[reader->id.id].is_rigid;
        if (is_rigid || !shape_equal(&f_->values.data[v]->shape, ir_shape(f_, reader->out[0]))) return false;
        if (is_graded_[v] && !IsOneOf(reader, {"add", "sub", "neg", "relu", "leaky_relu", "dropout"})) return false;
        return ir_op_info[reader->code].flags & ELEMENTWISE || !facts_[maker->id.id].is_rigid;
    }

    const Func *f_;
    std::vector<OpFacts> facts_;                                    // by op id
    std::vector<std::vector<std::pair<const Op *, bool>>> readers_; // by value id: and whether they may cast
    std::vector<bool> is_result_, is_graded_;                       // by value id
    std::vector<double> elements_;                                  // by value id: with the gradient's
    std::vector<std::string> free_;
    std::set<uint32_t> any_size_; // values
};

// Values of [N, 8], [N, 2, 4] and [N, 4].
class RandomGraph {
  public:
    RandomGraph(unsigned seed, int ops) : random_(seed) {
        const bool trains = Below(2);
        head_ = std::string("module \"t\" stage elaborate {\n") +
                (trains ? "  train\n  optimizer sgd(lr = 0.1)\n" : "") +
                "}\nstate %w : f32[8, 8] param = zeros()\nstate %b : f32[8] param = zeros()\n"
                "state %m : f32[8] buffer = zeros()\n"
                "func forward {\n  input %x : f32[N, 8]\n  input %t : f32[N, 8]\n  state %w : f32[8, 8]\n"
                "  state %b : f32[8]\n  state %m : f32[8]\n";
        Make("matmul(%x, %w)", "[N, 8]", &wide_);
        while (count_ < ops) Add();
        NeedAll();
        std::string tail;
        const std::string last = wide_.back(), other = wide_[Below(static_cast<int>(wide_.size()))];
        body_ += "  %far = mean(%" + last + "; dims = (0)) : f32[8] @far\n";
        body_ += "  %next = add(%far, %m) : f32[8] @next\n";
        body_ += "  %off = sub(%" + other + ", %t) : f32[N, 8] @off\n";
        body_ += "  %metric = mean(%off) : f32 @metric\n";
        body_ += "  %loss = mean(%" + last + ") : f32 @loss\n";
        tail += "  result y = %" + other + "\n";
        text_ = head_ + body_ + tail +
                "  result loss = %loss\n  result metric.off = %metric\n  result update.m = %next\n}\n";
    }
    std::string text_;

  private:
    int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    std::string Any(const std::vector<std::string> &of) {
        const int last = static_cast<int>(of.size()) - 1; // mostly what is new
        const std::string &name = of[Below(2) ? last : Below(last + 1)];
        used_.insert(name);
        return "%" + name;
    }
    void Make(const std::string &call, const std::string &shape, std::vector<std::string> *to,
              const std::string &layer = "") {
        const std::string name = "v" + std::to_string(count_++);
        body_ += "  %" + name + " = " + call + " : f32" + shape + " @" + name + layer + "\n";
        to->push_back(name);
    }
    // What is read by no op is added up.
    void NeedAll() {
        std::string sum = wide_.back();
        for (const std::string &name : wide_) {
            if (name == sum || used_.count(name)) continue;
            Make("add(%" + sum + ", %" + name + ")", "[N, 8]", &wide_more_);
            sum = wide_more_.back();
        }
        wide_.insert(wide_.end(), wide_more_.begin(), wide_more_.end());
    }
    void Add() {
        static const char *const unary[] = {"relu", "gelu", "neg", "sigmoid", "exp", "softmax", "abs", "dropout"};
        static const char *const binary[] = {"add", "mul", "sub", "maximum"};
        switch (Below(13)) {
        case 0:
        case 1:
        case 2: return Make(std::string(unary[Below(8)]) + "(" + Any(wide_) + ")", "[N, 8]", &wide_);
        case 3:
        case 4:
            return Make(std::string(binary[Below(4)]) + "(" + Any(wide_) + ", " + Any(wide_) + ")", "[N, 8]", &wide_);
        case 5: return Make("matmul(" + Any(wide_) + ", %w)", "[N, 8]", &wide_);
        case 6: return Make(std::string(binary[Below(4)]) + "(" + Any(wide_) + ", %b)", "[N, 8]", &wide_);
        case 7: return Make("reshape(" + Any(wide_) + ")", "[N, 2, 4]", &deep_);
        case 8:
            if (deep_.empty()) return Make("slice(" + Any(wide_) + "; dim = 1, from = 0, to = 4)", "[N, 4]", &narrow_);
            return Make(Below(2) ? "flatten(" + Any(deep_) + ")" : "reshape(" + Any(deep_) + ")", "[N, 8]", &wide_);
        case 9: return Make("slice(" + Any(wide_) + "; dim = 1, from = 4, to = 8)", "[N, 4]", &narrow_);
        case 10:
            if (narrow_.empty()) return Make("neg(" + Any(wide_) + ")", "[N, 8]", &wide_);
            return Make("concat(" + Any(narrow_) + ", " + Any(narrow_) + "; dim = 1)", "[N, 8]", &wide_);
        case 11:
            if (Below(3)) return Make("matmul(" + Any(wide_) + ", %w)", "[N, 8]", &wide_);
            return Make(std::string(binary[Below(4)]) + "(" + Any(wide_) + ", %t)", "[N, 8]", &wide_);
        default: return Make("add(" + Any(wide_) + ", " + Any(wide_) + ")", "[N, 8]", &wide_, " layer bilinear");
        }
    }

    std::mt19937 random_;
    std::string head_, body_;
    int count_ = 0;
    std::set<std::string> used_;
    std::vector<std::string> wide_, wide_more_, deep_, narrow_;
};

class LeastBytesTest : public PassTest {
  protected:
    Labels LabelsUnder(const std::string &text, const std::string &policy) {
        policy_ = policy;
        Module *m = Run(Graph(text), STAGE_AUTOCAST);
        Labels labels;
        for (int i = 0; m && i < m->decisions.len; i++)
            labels[m->decisions.data[i].path] = m->decisions.data[i].out == AMP_DT_F32;
        return labels;
    }

    std::string MinCast() { return File("precision/policies/min-cast.policy"); }
    std::string Eager() {
        std::string text = MinCast();
        return text.replace(text.find("min_cut\nlow"), 7, "eager");
    }
    const Policy *Lists() { return policy_read(&arena_, &diags_, NewSource("min-cast.policy", MinCast())); }

    Module *Graph(const std::string &text) {
        Module *m = Read(text);
        ir_compact(m);
        return m;
    }
};

TEST_F(LeastBytesTest, EqualsExhaustiveSearch) {
    int tried = 0, mixed = 0, sixteen = 0;
    for (unsigned seed = 0; seed < 120; seed++) {
        const RandomGraph graph(seed, 4 + static_cast<int>(seed % 14));
        const Module *m = Graph(graph.text_);
        ASSERT_NE(m, nullptr) << graph.text_;
        const PricedGraph priced(m->funcs.data[0], Lists(), PASSES_BATCH_HINT);
        const size_t free = priced.Free().size();
        if (free > 11 && (free != 16 || sixteen++)) continue; // of sixteen, 65,536 choices: once
        tried++;
        const Choice found = priced.ChoiceOf(LabelsUnder(graph.text_, "min-cast"));
        const auto price = priced.Price(found);
        ASSERT_GE(price.first, 0.0) << graph.text_;
        const auto f32 = std::count(found.begin(), found.end(), true);
        mixed += f32 > 0 && f32 < static_cast<int>(free);
        for (unsigned bits = 0; bits < 1u << free; bits++) {
            Choice choice(free);
            for (size_t i = 0; i < free; i++) choice[i] = bits >> i & 1;
            const auto other = priced.Price(choice);
            if (other.first < 0.0) continue;
            ASSERT_FALSE(other < price) << "seed " << seed << ", choice " << bits << ": " << other.first << " bytes, "
                                        << other.second << " casts; found " << price.first << ", " << price.second
                                        << "\n"
                                        << graph.text_;
            ASSERT_TRUE(other != price || std::count(choice.begin(), choice.end(), true) >= f32)
                << "seed " << seed << "\n"
                << graph.text_;
        }
    }
    EXPECT_GE(sixteen, 1);
    EXPECT_GE(tried, 40);
    EXPECT_GE(mixed, 20);
}

TEST_F(LeastBytesTest, NeverMovesMoreThanEagerWithTheSameLists) {
    policies_["eager"] = Eager();
    int less = 0;
    for (unsigned seed = 1000; seed < 2000; seed++) {
        const RandomGraph graph(seed, 5 + static_cast<int>(seed % 40));
        const Module *m = Graph(graph.text_);
        ASSERT_NE(m, nullptr) << graph.text_;
        const PricedGraph priced(m->funcs.data[0], Lists(), PASSES_BATCH_HINT);
        const auto found = priced.Price(priced.ChoiceOf(LabelsUnder(graph.text_, "min-cast")));
        const auto other = priced.Price(priced.ChoiceOf(LabelsUnder(graph.text_, "eager")));
        ASSERT_GE(other.first, 0.0) << graph.text_;
        ASSERT_FALSE(other < found) << "seed " << seed << "\n" << graph.text_;
        less += found.first < other.first;
    }
    EXPECT_GE(less, 300);
}

// What the lists keep in f32 stays there.
TEST_F(LeastBytesTest, KeepsWhatTheListsKeep) {
    for (unsigned seed = 0; seed < 50; seed++) {
        const RandomGraph graph(seed, 30);
        policy_ = "min-cast";
        const Module *m = Run(Graph(graph.text_), STAGE_AUTOCAST);
        for (int i = 0; i < m->decisions.len; i++) {
            const Decision &d = m->decisions.data[i];
            const std::string rule = d.reason->rule;
            if (rule == "follow" || rule == "widest") continue;
            EXPECT_EQ(d.out, rule == "lower" ? AMP_DT_F16 : AMP_DT_F32) << d.path;
        }
    }
}

// What is computed from the caller's numbers, or from what the lists keep in f32, is as `eager` has it: f16 may not
// hold it.  A product, or a bounded result, ends that.
TEST_F(LeastBytesTest, NumbersOfAnySizeStayF32) {
    const char text[] = "module \"t\" stage elaborate {\n}\nstate %w : f32[8, 8] param = zeros()\n"
                        "state %b : f32[8] param = zeros()\n"
                        "func forward {\n  input %x : f32[N, 8]\n  input %t : f32[N, 8]\n  state %w : f32[8, 8]\n"
                        "  state %b : f32[8]\n"
                        "  %scaled = mul(%x, %b) : f32[N, 8] @scaled\n"
                        "  %h = matmul(%scaled, %w) : f32[N, 8] @h\n  %biased = add(%h, %b) : f32[N, 8] @biased\n"
                        "  %d = sub(%biased, %t) : f32[N, 8] @d\n  %square = mul(%d, %d) : f32[N, 8] @square\n"
                        "  %e = exp(%biased) : f32[N, 8] @e\n  %twice = add(%e, %e) : f32[N, 8] @twice\n"
                        "  %small = sigmoid(%twice) : f32[N, 8] @small\n"
                        "  %next = matmul(%small, %w) : f32[N, 8] @next\n"
                        "  %shown = relu(%next) : f32[N, 8] @shown\n  %last = matmul(%shown, %w) : f32[N, 8] @last\n"
                        "  result y = %last\n  result square = %square\n}\n";
    const Labels f32 = LabelsUnder(text, "min-cast");
    for (const char *op : {"scaled", "d", "square", "e", "twice", "small"}) EXPECT_TRUE(f32.at(op)) << op;
    for (const char *op : {"h", "biased", "next", "shown", "last"}) EXPECT_FALSE(f32.at(op)) << op;
    policies_["eager"] = Eager();
    for (const auto &op : LabelsUnder(text, "eager")) EXPECT_LE(f32.at(op.first), op.second) << op.first;
}

TEST_F(LeastBytesTest, ReasonsSayWhatTheOtherTypeCosts) {
    const char text[] = "module \"t\" stage elaborate {\n}\nstate %w : f32[8, 8] param = zeros()\n"
                        "func forward {\n  input %x : f32[N, 8]\n  state %w : f32[8, 8]\n"
                        "  %h = matmul(%x, %w) : f32[N, 8] @h\n  %r = gelu(%h) : f32[N, 8] @r\n"
                        "  %e = softmax(%r) : f32[N, 8] @e\n  %s = neg(%e) : f32[N, 8] @s\n"
                        "  %p = softplus(%s) : f32[N, 8] @p\n  %m = mean(%p) : f32 @m\n  result y = %m\n}\n";
    policy_ = "min-cast";
    const auto decisions = Decisions(Run(Read(text), STAGE_AUTOCAST));
    EXPECT_EQ(decisions.at("h"), "matmul(f16, f16) : f16 {lower, min-cast:7}");
    EXPECT_EQ(decisions.at("r"),
              "gelu(f16) : f16 {follow, min-cast:23, \"f32 would move as many bytes, and need 1 more cast\"}");
    EXPECT_EQ(decisions.at("s"),
              "neg(f32) : f32 {follow, min-cast:23, \"f16 would move as many bytes, and need 2 more casts\"}");
    EXPECT_EQ(decisions.at("m"), "mean(f32) : f32 {follow, min-cast:23}");
}

TEST_F(LeastBytesTest, TheBatchIsRecorded) {
    policy_ = "min-cast";
    const std::string text = Print(Run(Read(RandomGraph(1, 5).text_), STAGE_AUTOCAST));
    EXPECT_NE(text.find("low f16 batch_hint 32"), std::string::npos) << text.substr(0, 400);
    EXPECT_EQ(Print(Read(text)), text);
    policy_ = "torch-fp16";
    EXPECT_EQ(Print(Run(Read(RandomGraph(1, 5).text_), STAGE_AUTOCAST)).find("batch_hint"), std::string::npos);
}

TEST_F(LeastBytesTest, AGraphOfAHundredThousandOps) {
    const RandomGraph graph(7, 100000);
    Module *m = Read(graph.text_);
    policy_ = "min-cast";
    const std::clock_t start = std::clock(); // of the processor: other programs do not count
    Run(m, STAGE_AUTOCAST);
    const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_LT(took, amp_test_address_sanitizer ? 100.0 : 10.0);
    RecordProperty("seconds", std::to_string(took));
}

} // namespace
