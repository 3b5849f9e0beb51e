// distribute_test.cc: ranks that exchange their sums make the step of one rank that has all samples, in exact
// arithmetic: the interpreter runs each rank's functions, and the test adds up what reduce_step names.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "targets/target.h"
#include "tests/passes/training_test.h"

namespace {

using Numbers = std::map<std::string, std::vector<double>>;

struct Batch { // of one micro-batch
    int64_t n;
    Numbers inputs; // each |n| times the elements of a sample
};

class DistributeTest : public TrainingTest {
  protected:
    // A module with |body| as its forward function, three inputs and two weights.
    Module *Make(const std::string &header, const std::string &body) {
        return Run(Read(Text(header, body)), STAGE_DISTRIBUTE);
    }

    static std::string Text(const std::string &header, const std::string &body) {
        return "module \"t\" stage elaborate {\n  train\n  optimizer sgd(lr = 0.1)\n" + header +
               "}\nstate %w : f32[3, 4] param = zeros()\nstate %v : f32[3] param = zeros()\n"
               "state %mean : f32[3] buffer = zeros()\n"
               "func forward {\n  input %x : f32[N, 4]\n  input %y : f32[N, 3]\n"
               "  input %t : i32[N]\n  state %w : f32[3, 4]\n  state %v : f32[3]\n" +
               (body.find("%mean") != std::string::npos ? "  state %mean : f32[3]\n" : "") +
               "  %a = linear(%x, %w, %v) : f32[N, 3] @fc.linear\n"
               "  %l = log_softmax(%a) : f32[N, 3] @log_softmax\n" +
               body + "}\n";
    }

    Batch Samples(int64_t n, int64_t first, bool ignored = false) {
        Batch b = {n, {}};
        for (int64_t i = first; i < first + n; i++) {
            for (int j = 0; j < 4; j++) b.inputs["x"].push_back(0.3 * std::sin(double(i * 4 + j)));
            for (int j = 0; j < 3; j++) b.inputs["y"].push_back(0.5 * std::cos(double(i * 3 + j)));
            b.inputs["t"].push_back(ignored || i % 5 == 1 ? -100 : double(i % 3));
        }
        return b;
    }

    static Batch Joined(const std::vector<Batch> &batches) {
        Batch all = {0, {}};
        for (const Batch &b : batches) {
            all.n += b.n;
            for (const auto &[name, numbers] : b.inputs)
                all.inputs[name].insert(all.inputs[name].end(), numbers.begin(), numbers.end());
        }
        return all;
    }

    // States, by name, that keep their values from call to call.
    static Numbers States(const Module *m, double ranks, double first_micro, double capacity) {
        Numbers states;
        for (int i = 0; i < m->states.len; i++) {
            const State *s = m->states.data[i];
            Dim count = dim_const(1);
            shape_count(&s->shape, &count);
            auto &to = states[s->name];
            for (int64_t j = 0; j < count.mul; j++)
                to.push_back(s->role == STATE_PARAM || s->role == STATE_BUFFER ? 0.1 * double(j % 5) - 0.2 : 0);
        }
        for (const auto &[name, value] : std::map<std::string, double>{
                 {"ranks", ranks}, {"first_micro", first_micro}, {"full_batch", capacity}, {"micro", first_micro}})
            if (states.count(name)) states[name] = {value};
        return states;
    }

    // Its results; states are updated.
    Numbers Call(const Func *f, int64_t n, const Numbers &inputs, Numbers *states, const InterpOptions *o = nullptr) {
        std::vector<InterpTensor> given;
        for (int i = 0; i < f->inputs.len; i++) {
            const Value *v = ir_value(f, f->inputs.data[i]);
            InterpTensor t = interp_tensor(&arena_, v->name, &v->shape, {n, 1});
            const Numbers &from = v->kind == VAL_STATE ? *states : inputs;
            EXPECT_EQ(from.at(v->name).size(), size_t(t.count)) << v->name;
            std::copy(from.at(v->name).begin(), from.at(v->name).end(), t.data);
            given.push_back(t);
        }
        std::vector<InterpTensor> results(size_t(f->results.len) + 1);
        EXPECT_EQ(interp_run(f, {n, 1}, o, given.data(), int(given.size()), results.data(), &error_), AMP_OK)
            << error_.message;
        for (const InterpTensor &t : given)
            if (states->count(t.name)) (*states)[t.name] = {t.data, t.data + t.count};
        Numbers out;
        for (int i = 0; i < f->results.len; i++)
            out[f->results.data[i].name] = {results[i].data, results[i].data + results[i].count};
        return out;
    }

    static void AddUp(const Module *m, std::vector<Numbers> *ranks) {
        const Func *f = ir_program(m, PROGRAM_REDUCE_STEP);
        for (int i = 0; i < f->inputs.len; i++) {
            const std::string name = ir_value(f, f->inputs.data[i])->name;
            std::vector<double> sum((*ranks)[0][name].size());
            for (Numbers &r : *ranks)
                for (size_t j = 0; j < sum.size(); j++) sum[j] += r[name][j];
            for (Numbers &r : *ranks) r[name] = sum;
        }
    }

    // One step of |ranks|, each with its micro-batches: what apply_step gives on each.
    std::vector<Numbers> Step(const Module *m, const std::vector<std::vector<Batch>> &ranks, double capacity) {
        std::vector<Numbers> states, results;
        for (size_t r = 0; r < ranks.size(); r++) {
            states.push_back(States(m, double(ranks.size()), double(r * ranks[r].size()), capacity));
            for (const Batch &b : ranks[r]) Call(ir_program(m, PROGRAM_MICRO_STEP), b.n, b.inputs, &states.back());
        }
        AddUp(m, &states);
        for (Numbers &s : states) results.push_back(Call(ir_program(m, PROGRAM_APPLY_STEP), 1, {}, &s));
        return results;
    }

    static void ExpectNear(const Numbers &got, const Numbers &want) {
        for (const auto &[name, numbers] : want) {
            ASSERT_TRUE(got.count(name)) << name;
            for (size_t i = 0; i < numbers.size(); i++)
                EXPECT_NEAR(got.at(name)[i], numbers[i], 1e-12) << name << " " << i;
        }
    }

    // Whatever the ranks and micro-batches, the step is the same as of one rank with all samples at once.
    void ExpectSameStep(const std::string &body, const std::vector<std::vector<Batch>> &ranks, double capacity) {
        const std::string many =
            ranks[0].size() > 1 ? "  accumulate " + std::to_string(ranks[0].size()) + "\n" : std::string();
        const Module *alone = Make("", body), *together = Make(many + "  distribute data\n", body);
        std::vector<Batch> all;
        for (const auto &r : ranks) all.insert(all.end(), r.begin(), r.end());
        const Batch whole = Joined(all);
        Numbers states = States(alone, 1, 0, capacity);
        const Numbers want = Call(Step(alone), whole.n, whole.inputs, &states);
        for (const Numbers &got : Step(together, ranks, capacity)) ExpectNear(got, want);
    }
    using TrainingTest::Step;
};

const char kMse[] = "  %loss = mse_loss(%a, %y) : f32 @mse_loss\n  result loss = %loss\n";
const char kLabels[] = "  %loss = nll_loss(%l, %t) : f32 @nll_loss\n  %acc = accuracy(%a, %t) : f32 @accuracy\n"
                       "  result loss = %loss\n  result metric.acc = %acc\n";
const char kBoth[] = "  %n = nll_loss(%l, %t) : f32 @nll_loss\n  %m = mse_loss(%a, %y) : f32 @mse_loss\n"
                     "  %loss = add(%m, %m) : f32 @add\n  result loss = %loss\n  result loss.labels = %n\n";

TEST_F(DistributeTest, FullBatchesOfSamples) {
    ExpectSameStep(kMse, {{Samples(4, 0)}, {Samples(4, 4)}, {Samples(4, 8)}}, 4);
}

TEST_F(DistributeTest, TheLastBatchIsShort) { ExpectSameStep(kMse, {{Samples(4, 0)}, {Samples(1, 4)}}, 4); }

TEST_F(DistributeTest, MicroBatchesOfEachRank) {
    ExpectSameStep(kMse, {{Samples(4, 0), Samples(4, 4)}, {Samples(4, 8), Samples(3, 12)}}, 4);
}

TEST_F(DistributeTest, LabelsThatAreIgnoredDoNotCount) {
    ExpectSameStep(kLabels, {{Samples(4, 0)}, {Samples(4, 4)}, {Samples(3, 8)}}, 4);
}

TEST_F(DistributeTest, ARankWhoseLabelsAreAllIgnoredAddsNothing) {
    ExpectSameStep(kLabels, {{Samples(4, 0), Samples(2, 4)}, {Samples(4, 6, true), Samples(4, 10, true)}}, 4);
}

TEST_F(DistributeTest, NoLabelAtAll) { ExpectSameStep(kLabels, {{Samples(4, 0, true)}, {Samples(4, 4, true)}}, 4); }

TEST_F(DistributeTest, LossesOfDifferentCounts) { ExpectSameStep(kBoth, {{Samples(4, 0)}, {Samples(2, 4)}}, 4); }

// The weights of the classes are a parameter here, for want of other vectors; it has no gradient by this path.
TEST_F(DistributeTest, ClassesHaveWeights) {
    ExpectSameStep("  %c = relu(%v) : f32[3] @relu\n  %loss = nll_loss(%l, %t, %c) : f32 @nll_loss\n"
                   "  result loss = %loss\n",
                   {{Samples(4, 0)}, {Samples(3, 4)}}, 4);
}

const char kMixture[] = "  %n = nll_loss(%l, %t) : f32 @nll_loss\n  %m = mse_loss(%a, %y) : f32 @mse_loss\n"
                        "  %loss = add(%n, %m) : f32 @add\n  result loss = %loss\n";

// A sum of means over labels and over samples has a backward pass for each.
TEST_F(DistributeTest, TermsOfDifferentCounts) {
    ExpectSameStep(kMixture, {{Samples(4, 0)}, {Samples(4, 4)}, {Samples(3, 8)}}, 4);
    ExpectSameStep(kMixture, {{Samples(4, 0), Samples(2, 4)}, {Samples(4, 6, true), Samples(4, 10, true)}}, 4);
    const Func *micro = ir_program(Make("  distribute data\n", kMixture), PROGRAM_MICRO_STEP);
    EXPECT_NE(Find(micro, OP_count_labels), nullptr);
    EXPECT_NE(Find(micro, OP_count_samples), nullptr);
}

TEST_F(DistributeTest, SumsAreAddedUp) {
    ExpectSameStep("  %d = sub(%a, %y) : f32[N, 3] @sub\n  %s = mul(%d, %d) : f32[N, 3] @mul\n"
                   "  %loss = sum(%s) : f32 @sum\n  result loss = %loss\n",
                   {{Samples(4, 0)}, {Samples(3, 4)}}, 4);
}

TEST_F(DistributeTest, MeansOverWhatDivides) {
    ExpectSameStep("  %q = abs(%y) : f32[N, 3] @abs\n  %p = mul(%a, %q) : f32[N, 3] @mul\n"
                   "  %s = sum(%p) : f32 @sum\n  %c = sum(%q) : f32 @sum_1\n  %loss = div(%s, %c) : f32 @div\n"
                   "  result loss = %loss\n",
                   {{Samples(4, 0)}, {Samples(3, 4)}}, 4);
}

// zero1 has one sum of a gradient.
TEST_F(DistributeTest, SharesOfTermsOfDifferentCountsAreRefused) {
    EXPECT_NE(TryRun(Read(Text("  distribute zero1\n", kMixture)), STAGE_DISTRIBUTE), AMP_OK);
    EXPECT_NE(Diagnostics().find("zero1: the terms of this block's loss"), std::string::npos) << Diagnostics();
}

// A norm of a share is not the norm; who has another optimizer, and what is frozen, does not matter.
TEST_F(DistributeTest, SharesOfWhatIsUpdatedAsAWholeAreRefused) {
    const char *body = "  %loss = mse_loss(%a, %y) : f32 @mse_loss\n  result loss = %loss\n";
    const std::string lamb = "  group \"w\" optimizer lamb(lr = 0.1) at t.amp:5:9\n";
    EXPECT_NE(TryRun(Read(Text(lamb + "  distribute zero1\n", body)), STAGE_DISTRIBUTE), AMP_OK);
    EXPECT_NE(Diagnostics().find("t.amp:5:9: zero1: lamb needs all of w to update an element, and a rank has a share"),
              std::string::npos)
        << Diagnostics();
    EXPECT_NE(Make(lamb + "  group \"w\" frozen\n  distribute zero1\n", body), nullptr);
    EXPECT_NE(Make(lamb + "  distribute data\n", body), nullptr);
}

const char kRunning[] = "  %b = mean(%a; dims = (0)) : f32[3] @b\n  %h = mul(%mean, %mean) : f32[3] @h\n"
                        "  %next = add(%h, %b) : f32[3] @next\n  result update.mean = %next\n";

// What each micro-batch adds is kept, and added in the order of all ranks' micro-batches.
TEST_F(DistributeTest, StatisticsAreThoseOfOneRank) {
    const std::vector<Batch> batches = {Samples(4, 0), Samples(4, 4), Samples(3, 8), Samples(4, 11)};
    const Module *alone = Make("  accumulate 4\n", std::string(kMse) + kRunning);
    Numbers states = States(alone, 1, 0, 4);
    for (size_t i = 0; i < batches.size(); i++) {
        states["micro"] = {double(i)};
        Call(ir_program(alone, PROGRAM_MICRO_STEP), batches[i].n, batches[i].inputs, &states);
    }
    const std::vector<double> want = states["mean/staged"];

    const Module *m = Make("  distribute data\n", std::string(kMse) + kRunning);
    const Func *reduce = ir_program(m, PROGRAM_REDUCE_STEP), *statistics = ir_program(m, PROGRAM_STATISTICS_STEP);
    ASSERT_NE(statistics, nullptr);
    EXPECT_NE(Find(reduce, OP_gather_batches), nullptr);
    Numbers all = States(m, 4, 0, 4);
    for (size_t i = 0; i < batches.size(); i++) {
        Numbers own = States(m, 4, double(i), 4);
        Call(ir_program(m, PROGRAM_MICRO_STEP), batches[i].n, batches[i].inputs, &own);
        all["mean/batch.0"] = own["mean/batch.0"];
        all["micro"] = {double(i)};
        Call(statistics, 1, {}, &all);
    }
    for (size_t j = 0; j < 3; j++) EXPECT_NEAR(all["mean/staged"][j], want[j], 1e-12);
}

// A forward pass that reads the buffer would need what the ranks before it make of theirs.
TEST_F(DistributeTest, BuffersThatTheForwardPassReadsBecomeTheMeanOfTheRanks) {
    const Module *m = Make("  distribute data\n", "  %b = mean(%a; dims = (0)) : f32[3] @b\n"
                                                  "  %c = sub(%a, %mean) : f32[N, 3] @c\n"
                                                  "  %loss = mse_loss(%c, %y) : f32 @mse_loss\n"
                                                  "  %next = add(%mean, %b) : f32[3] @next\n"
                                                  "  result loss = %loss\n  result update.mean = %next\n");
    EXPECT_EQ(ir_program(m, PROGRAM_STATISTICS_STEP), nullptr);
    const std::vector<std::vector<Batch>> ranks = {{Samples(4, 0)}, {Samples(4, 4)}};
    std::vector<double> want(3);
    for (const auto &r : ranks) {
        Numbers states = States(m, 2, 0, 4);
        Call(ir_program(m, PROGRAM_MICRO_STEP), 4, r[0].inputs, &states);
        for (size_t j = 0; j < 3; j++) want[j] += states["mean/staged"][j] / 2;
    }
    for (const Numbers &got : Step(m, ranks, 4)) ExpectNear(got, {{"update.mean", want}});
}

// |layers| products by weights of |width| x |width|, and with biases: the first and the last of each bucket.
static std::string BucketsOf(int layers, int width, const std::function<Module *(const std::string &)> &make,
                             bool bias = false, const std::string &header = "") {
    const std::string d = std::to_string(width), w = "f32[" + d + ", " + d + "]";
    std::string states, uses, body = "  %h0 = relu(%x) : f32[N, " + d + "] @r\n", got;
    for (int i = 0; i < layers; i++) {
        const std::string n = std::to_string(i);
        states += "state %w" + n + " : " + w + " param = zeros()\n";
        uses += "  state %w" + n + " : " + w + "\n";
        if (bias) {
            states += "state %b" + n + " : f32[" + d + "] param = zeros()\n";
            uses += "  state %b" + n + " : f32[" + d + "]\n";
        }
        body += "  %h" + std::to_string(i + 1) + " = linear(%h" + n + ", %w" + n + (bias ? ", %b" + n : "") +
                ") : f32[N, " + d + "] @l" + n + "\n";
    }
    const Module *m =
        make("module \"t\" stage elaborate {\n  train\n  optimizer sgd(lr = 0.1)\n" + header +
             "  distribute data\n}\n" + states + "func forward {\n  input %x : f32[N, " + d + "]\n" + uses + body +
             "  %loss = mean(%h" + std::to_string(layers) + ") : f32 @mean\n  result loss = %loss\n}\n");
    const Func *f = ir_program(m, PROGRAM_REDUCE_STEP);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        EXPECT_EQ(ir_attr(o, "bucket")->i, i);
        got += std::string(i ? ", " : "") + ir_value(f, o->in[0])->name;
        if (o->n_in > 1) got += std::string(" to ") + ir_value(f, o->in[o->n_in - 1])->name;
    }
    return got;
}

// The last kernel of micro_step that touches the states of each bucket.
static void ExpectInOrderOfKernels(const Module *m) {
    const Func *micro = ir_program(m, PROGRAM_MICRO_STEP), *f = ir_program(m, PROGRAM_REDUCE_STEP);
    std::map<std::string, int> last;
    for (int i = 0; i < micro->buffers.len; i++) {
        const Buffer *b = micro->buffers.data[i];
        if (b->kind == BUFFER_STATE) last[ir_value(micro, b->value)->name] = b->last;
    }
    for (int i = 0, before = -1; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        int complete = -1;
        for (int j = 0; j < o->n_in; j++) complete = std::max(complete, last.at(ir_value(f, o->in[j])->name));
        EXPECT_GE(complete, before) << "bucket " << i;
        before = complete;
    }
}

// Gradients are in the order in which the backward pass makes them.  The first bucket has 1 MiB at most; the others
// have a sixteenth of the whole, but 1 MiB at least and 8 MiB at most, for nothing hides the last one.  What is little
// is sent with what follows.
TEST_F(DistributeTest, Buckets) {
    const auto make = [this](const std::string &text) { return Run(Read(text), STAGE_DISTRIBUTE); };
    const std::string measures = ", samples/sum to loss/sum";
    EXPECT_EQ(BucketsOf(5, 256, make), "w4/sum to w1/sum, w0/sum" + measures);                // of 256 KiB each
    EXPECT_EQ(BucketsOf(5, 1024, make), "w4/sum, w3/sum, w2/sum, w1/sum, w0/sum" + measures); // of 4 MiB
    for (const char *header : {"  accumulate 2\n", "  accumulate 2\n  reduce bf16\n"}) // however they are added up
        EXPECT_EQ(BucketsOf(5, 1024, make, false, header), "w4/sum, w3/sum, w2/sum, w1/sum, w0/sum" + measures);
    EXPECT_EQ(BucketsOf(9, 768, make), // 2.25 MiB; the whole 20
              "w8/sum, w7/sum, w6/sum, w5/sum, w4/sum, w3/sum, w2/sum, w1/sum, w0/sum" + measures);
    EXPECT_EQ(BucketsOf(16, 512, make).find("w15/sum, w14/sum, w13/sum, "), 0u);                       // 1 MiB
    EXPECT_EQ(BucketsOf(36, 512, make).find("w35/sum, w34/sum to w33/sum, w32/sum to w31/sum, "), 0u); // 2.25 of 36
    EXPECT_EQ(BucketsOf(3, 1024, make, true), "w2/sum, b2/sum to w1/sum, b1/sum to w0/sum, b0/sum" + measures);
    EXPECT_EQ(BucketsOf(40, 1024, make).find("w39/sum, w38/sum to w37/sum, w36/sum to w35/sum, "), 0u); // 8 of 160
}

// On CUDA one kernel makes sums of all layers' biases, after the last product: they go last, in one message.  A bucket
// has a sixteenth of the whole there, too, but up to 64 MiB, and the first is none of 1 MiB.
TEST_F(DistributeTest, BucketsOnCudaFollowItsKernels) {
    const Module *made = nullptr;
    const auto make = [&](const std::string &text) {
        PassOptions o = {};
        o.target = &target_cuda;
        o.find_policy = FindPolicy;
        o.user = this;
        Module *m = Read(text);
        EXPECT_EQ(passes_run(m, &diags_, &o, STAGE_PLAN, nullptr, nullptr, &error_), AMP_OK) << error_.message;
        return made = m, m;
    };
    const std::string measures = ", samples/sum to loss/sum";
    EXPECT_EQ(BucketsOf(3, 1024, make), "w2/sum, w1/sum, w0/sum" + measures);
    EXPECT_EQ(BucketsOf(3, 1024, make, true), "w2/sum, w1/sum, w0/sum, b2/sum to b0/sum" + measures);
    ExpectInOrderOfKernels(made);
    EXPECT_EQ(BucketsOf(40, 1024, make).find("w39/sum to w38/sum, w37/sum to w36/sum, "), 0u); // 8 of 160
    EXPECT_EQ(BucketsOf(24, 4096, make).find("w23/sum, w22/sum, w21/sum, "), 0u);              // 64 of 1536
    ExpectInOrderOfKernels(made);
}

// Counts are scalars that come from a column kernel: what adds them up is no part of the scalars before all kernels.
TEST_F(DistributeTest, KernelsComeAfterWhatTheyRead) {
    for (const char *body : {kMse, kLabels, kBoth}) Run(Make("  accumulate 2\n  distribute data\n", body), STAGE_PLAN);
}

// ---- what ranks add up in the middle of a step ----------------------------------------------------------------------

// Ranks that take turns: one computes while the others wait for what it has to add.
class Turns {
  public:
    explicit Turns(int ranks) : ranks_(ranks) {}
    InterpOptions Options() { return {false, Add, this}; }
    void Run(const std::function<void(int rank)> &body) {
        std::vector<std::thread> threads;
        for (int r = 0; r < ranks_; r++)
            threads.emplace_back([&, r] {
                hold_.lock();
                body(r);
                hold_.unlock();
            });
        for (std::thread &t : threads) t.join();
    }
    size_t sums() const { return sums_.size(); }

  private:
    static void Add(void *user, double *data, int64_t count) {
        Turns *t = static_cast<Turns *>(user);
        std::unique_lock<std::mutex> hold(t->hold_, std::adopt_lock);
        if (!t->here_++) t->sums_.emplace_back(count);
        const size_t at = t->sums_.size() - 1;
        EXPECT_EQ(t->sums_[at].size(), size_t(count)) << "ranks add up different values";
        for (int64_t i = 0; i < count; i++) t->sums_[at][size_t(i)] += data[i];
        if (t->here_ == t->ranks_) t->here_ = 0, t->done_++, t->all_.notify_all();
        else t->all_.wait(hold, [&] { return t->done_ > at; });
        std::copy(t->sums_[at].begin(), t->sums_[at].end(), data);
        hold.release();
    }
    const int ranks_;
    int here_ = 0;
    size_t done_ = 0;
    std::deque<std::vector<double>> sums_;
    std::mutex hold_;
    std::condition_variable all_;
};

class SyncTest : public DistributeTest {
  protected:
    // Norms of rows, of images (more rows than one a sample) and, where |twice|, another beside the first.
    Module *MakeNorm(const std::string &header, Stage stage, bool sync = true, bool twice = false) {
        const std::string s = sync ? "; sync = true" : "", c = ", f32[3], f32[3], f32[3]", norm = "%o, %mean, %var";
        std::string text =
            "module \"t\" stage elaborate {\n  train\n  optimizer sgd(lr = 0.1)\n" + header +
            "}\nstate %w : f32[3, 4] param = zeros()\nstate %o : f32[3] param = zeros()\n"
            "state %k : f32[3, 5, 4] param = zeros()\nstate %bn.mean : f32[3] buffer = zeros()\n"
            "state %bn.var : f32[3] buffer = zeros()\nstate %bn.count : i64 buffer = zeros()\n"
            "func forward {\n  input %x : f32[N, 4]\n  input %y : f32[N, 3]\n  state %w : f32[3, 4]\n"
            "  state %o : f32[3]\n  state %k : f32[3, 5, 4]\n  state %bn.mean : f32[3]\n  state %bn.var : f32[3]\n"
            "  state %bn.count : i64\n"
            "  %a = linear(%x, %w, %o) : f32[N, 3] @fc.linear\n"
            "  %b, %m, %v, %r = batch_norm(%a, %o, %o, %bn.mean, %bn.var" +
            s + ") : f32[N, 3]" + c +
            " @bn.batch_norm\n"
            "  %t = reshape(%b) : f32[N, 3, 1, 1] @t\n  %i = mul(%t, %k) : f32[N, 3, 5, 4] @i\n"
            "  %j, %m.1, %v.1, %r.1 = batch_norm(%i, %o, %o, %bn.mean, %bn.var" +
            s + ") : f32[N, 3, 5, 4]" + c + " @im.batch_norm\n  %p = mean(%j; dims = (2, 3)) : f32[N, 3] @p\n";
        if (twice)
            text += "  %d, %m.2, %v.2, %r.2 = batch_norm(%a, %o, %o, %bn.mean, %bn.var" + s + ") : f32[N, 3]" + c +
                    " @side.batch_norm\n  %p.1 = add(%p, %d) : f32[N, 3] @p.1\n"
                    "  %loss = mse_loss(%p.1, %y) : f32 @mse_loss\n";
        else text += "  %loss = mse_loss(%p, %y) : f32 @mse_loss\n";
        text += "  %next = add(%bn.mean, %m) : f32[3] @bn.next\n  %sq = mul(%bn.var, %bn.var) : f32[3] @bn.sq\n"
                "  %next.1 = add(%sq, %v) : f32[3] @bn.next.1\n  %count = increment(%bn.count) : i64 @bn.increment\n"
                "  result loss = %loss\n  result update.bn.mean = %next\n  result update.bn.var = %next.1\n"
                "  result update.bn.count = %count\n}\n";
        return Run(Read(text), stage);
    }

    static Numbers NormStates(const Module *m, double ranks, double first, double capacity) {
        Numbers states = States(m, ranks, first, capacity);
        states["o"] = {0.7, -1.1, 0.4}; // a weight of zero would hide what comes after it
        states["bn.count"] = {5};
        return states;
    }

    // What all have after micro_step and the sums of reduce_step, by rank.
    std::vector<Numbers> MicroSteps(const Module *m, const std::vector<std::vector<Batch>> &ranks, size_t *sums) {
        Turns turns(static_cast<int>(ranks.size()));
        const InterpOptions o = turns.Options();
        std::vector<Numbers> states;
        for (size_t r = 0; r < ranks.size(); r++)
            states.push_back(NormStates(m, double(ranks.size()), double(r * ranks[r].size()), 4));
        turns.Run([&](int r) {
            for (const Batch &b : ranks[size_t(r)])
                Call(ir_program(m, PROGRAM_MICRO_STEP), b.n, b.inputs, &states[size_t(r)], &o);
        });
        AddUp(m, &states);
        *sums = turns.sums();
        return states;
    }

    static int SumsIn(const Module *m) {
        int count = 0;
        for (int i = 0; i < m->funcs.len; i++)
            for (int j = 0; j < m->funcs.data[i]->body.len; j++)
                count += ir_op_at(m->funcs.data[i], j)->code == OP_sum_ranks;
        return count;
    }

    // As one rank with all samples of each micro-batch; then how the step goes on is as without sync.
    void ExpectWhole(const std::vector<std::vector<Batch>> &ranks, bool twice = false) {
        const size_t micros = ranks[0].size();
        const std::string many = micros > 1 ? "  accumulate " + std::to_string(micros) + "\n" : std::string();
        const Module *alone = MakeNorm(many + "  distribute data\n", STAGE_DISTRIBUTE, false, twice);
        const Module *together = MakeNorm(many + "  distribute data\n", STAGE_DISTRIBUTE, true, twice);
        EXPECT_EQ(SumsIn(alone), 0);
        EXPECT_EQ(SumsIn(together), twice ? 9 : 6);
        Numbers one = NormStates(alone, 1, 0, 4 * double(ranks.size()));
        for (size_t i = 0; i < micros; i++) {
            std::vector<Batch> parts;
            for (const auto &r : ranks) parts.push_back(r[i]);
            const Batch all = Joined(parts);
            one["micro"] = {double(i)};
            Call(ir_program(alone, PROGRAM_MICRO_STEP), all.n, all.inputs, &one);
            const Func *statistics = ir_program(alone, PROGRAM_STATISTICS_STEP);
            one["micro"] = {double(i)};
            Call(statistics, 1, {}, &one);
        }
        const Numbers want = Call(ir_program(alone, PROGRAM_APPLY_STEP), 1, {}, &one);
        size_t sums = 0;
        for (Numbers &s : MicroSteps(together, ranks, &sums))
            ExpectNear(Call(ir_program(together, PROGRAM_APPLY_STEP), 1, {}, &s), want);
        EXPECT_EQ(sums, micros * (twice ? 9 : 6));
        EXPECT_EQ(ir_program(together, PROGRAM_STATISTICS_STEP), nullptr);
        for (Stage stage : {STAGE_LOWER, STAGE_FUSE}) ExpectSameAt(stage, many, ranks, twice);
    }

    // Lowered, and in kernels.
    void ExpectSameAt(Stage stage, const std::string &many, const std::vector<std::vector<Batch>> &ranks, bool twice) {
        SCOPED_TRACE(ir_stage_names[stage]);
        size_t sums = 0, again = 0;
        const Module *graph = MakeNorm(many + "  distribute data\n", STAGE_DISTRIBUTE, true, twice);
        const Module *core = MakeNorm(many + "  distribute data\n", stage, true, twice);
        EXPECT_EQ(SumsIn(core), SumsIn(graph));
        const auto want = MicroSteps(graph, ranks, &sums), got = MicroSteps(core, ranks, &again);
        EXPECT_EQ(again, sums);
        for (size_t r = 0; r < want.size(); r++)
            for (const auto &[name, numbers] : want[r]) {
                if (name.find('/') == std::string::npos) continue;
                ExpectNear(got[r], {{name, numbers}});
            }
    }
};

TEST_F(SyncTest, NormsAreThoseOfTheWholeBatch) { ExpectWhole({{Samples(4, 0)}, {Samples(4, 4)}}); }

TEST_F(SyncTest, BatchesDifferInSize) { ExpectWhole({{Samples(4, 0)}, {Samples(1, 4)}, {Samples(3, 5)}}); }

TEST_F(SyncTest, EachMicroBatchByItself) {
    ExpectWhole({{Samples(4, 0), Samples(3, 4)}, {Samples(2, 7), Samples(4, 9)}});
}

TEST_F(SyncTest, NormsBesideEachOtherKeepTheirOrder) { ExpectWhole({{Samples(4, 0)}, {Samples(3, 4)}}, true); }

// Nothing of it is left where the model trains alone, nor in evaluation.
TEST_F(SyncTest, AloneItIsTheSame) {
    const std::string with = ir_text(MakeNorm("", STAGE_DISTRIBUTE)),
                      without = ir_text(MakeNorm("", STAGE_DISTRIBUTE, false));
    EXPECT_EQ(with, without);
    const Module *m = MakeNorm("  distribute data\n", STAGE_DISTRIBUTE);
    EXPECT_EQ(Find(ir_program(m, PROGRAM_EVAL), OP_sum_ranks), nullptr);
    EXPECT_NE(Find(ir_program(m, PROGRAM_EVAL), OP_batch_norm_eval), nullptr);
}

// The gradient of a sum over ranks is the sum over ranks of the gradients: what ranks differentiate is the sum of their
// losses, so no rank counts twice.  By central differences of the loss of all.
TEST_F(SyncTest, TheGradientOfASumOverRanks) {
    const std::string text = "module \"t\" stage autocast {\n  train\n  optimizer sgd(lr = 0.1)\n  distribute data\n}\n"
                             "state %w : f32[4] param = zeros()\nfunc forward {\n  input %x : f32[N, 4]\n"
                             "  input %y : f32[N, 4]\n  state %w : f32[4]\n"
                             "  %a = mul(%x, %w) : f32[N, 4] @a\n  %s = sum(%a; dims = (0)) : f32[4] @s\n"
                             "  %all = sum_ranks(%s) : f32[4] @all\n  %q = mul(%all, %all) : f32[4] @q\n"
                             "  %b = mul(%a, %q) : f32[N, 4] @b\n  %loss = mse_loss(%b, %y) : f32 @mse_loss\n"
                             "  result loss = %loss\n}\n";
    const Module *m = Run(Read(text), STAGE_DISTRIBUTE);
    EXPECT_EQ(SumsIn(m), 2);
    const std::vector<Batch> ranks = {Samples(4, 0), Samples(2, 4), Samples(4, 6)};
    const auto step = [&](const std::vector<double> &w) {
        Turns turns(3);
        const InterpOptions o = turns.Options();
        std::vector<Numbers> states;
        for (int r = 0; r < 3; r++) states.push_back(States(m, 3, r, 4));
        turns.Run([&](int r) {
            Batch b = ranks[size_t(r)];
            states[size_t(r)]["w"] = w;
            b.inputs["y"].resize(size_t(b.n) * 4, 0.25);
            Call(ir_program(m, PROGRAM_MICRO_STEP), b.n, b.inputs, &states[size_t(r)], &o);
        });
        AddUp(m, &states);
        return Call(ir_program(m, PROGRAM_APPLY_STEP), 1, {}, &states[0]);
    };
    const std::vector<double> at = {0.9, -1.2, 0.7, 1.1};
    const Numbers got = step(at);
    for (size_t i = 0; i < 4; i++) {
        std::vector<double> more = at, less = at;
        more[i] += 1e-5, less[i] -= 1e-5;
        const double slope = (step(more).at("loss")[0] - step(less).at("loss")[0]) / 2e-5;
        EXPECT_GT(std::fabs(slope), 1e-5);
        EXPECT_NEAR(got.at("grad.w")[i], slope, 1e-8);
    }
}

// What the verifier says of sums that ranks could not make together.
TEST_F(SyncTest, WrongSums) {
    const char *const head = "input %x : f32[N, 4]\n  input %v : f32[4]\n  input %m : f32[2, 2]\n  ";
    const struct {
        const char *header, *func, *body, *says;
    } cases[] = {
        {"  distribute data\n", "eval", "%a = sum_ranks(%v) : f32[4] @a\n", "in eval: ranks wait for each other"},
        {"  distribute data\n", "apply_step", "%a = sum_ranks(%v) : f32[4] @a\n", "in apply_step"},
        {"", "micro_step", "%a = sum_ranks(%v) : f32[4] @a\n", "the model is not distributed"},
        // in another order, twice, and one that is lost
        {"  distribute data\n", "micro_step",
         "%a = sum_ranks(%v; number = 1) : f32[4] @a\n  %b = sum_ranks(%v) : f32[4] @b\n",
         "has number 1, and is number 0"},
        {"  distribute data\n", "micro_step", "%a = sum_ranks(%v) : f32[4] @a\n  %b = sum_ranks(%v) : f32[4] @b\n",
         "has number 0, and is number 1"},
        {"  distribute data\n", "micro_step",
         "%a = sum_ranks(%v) : f32[4] @a\n  %b = sum_ranks(%v; number = 2) : f32[4] @b\n",
         "has number 2, and is number 1"},
        {"  distribute data\n", "micro_step", "%a = sum_ranks(%m) : f32[2, 2] @a\n", "adds vectors or scalars"},
        {"  distribute data\n", "micro_step",
         "%b = sum(%x; dims = (1)) : f32[N] @b\n  %a = sum_ranks(%b) : f32[N] @a\n", "which differs between ranks"},
    };
    for (const auto &c : cases) {
        Module *m = Read("module \"t\" stage distribute {\n  train\n" + std::string(c.header) + "}\nfunc " + c.func +
                         " {\n  " + head + c.body + "}\n");
        const char *wrong = ir_verify(m);
        ASSERT_NE(wrong, nullptr) << c.body;
        EXPECT_NE(std::string(wrong).find(c.says), std::string::npos) << wrong;
    }
}

// A norm beside another needs nothing of it: only the numbers tell that it has moved before it.
TEST_F(SyncTest, AnotherOrder) {
    Module *m = MakeNorm("  distribute data\n", STAGE_DISTRIBUTE, true, true);
    const Func *f = ir_program(m, PROGRAM_MICRO_STEP);
    const auto is = [&](int i, int number) {
        return ir_op_at(f, i)->code == OP_sum_ranks && ir_attr(ir_op_at(f, i), "number")->i == number;
    };
    int first = 0, other = 0;
    while (!is(first, 0)) first++;
    while (!is(other, 4)) other++;
    EXPECT_EQ(ir_op_at(f, other - 1)->out[0].id, ir_op_at(f, other)->in[0].id);
    EXPECT_EQ(ir_verify(m), nullptr);
    std::rotate(f->body.data + first, f->body.data + other - 1, f->body.data + other + 1);
    const char *wrong = ir_verify(m);
    ASSERT_NE(wrong, nullptr);
    EXPECT_NE(strstr(wrong, "has number 4, and is number 0 in the function"), nullptr) << wrong;
}

// In kernels: one that is skipped, or shared.
TEST_F(SyncTest, WrongKernels) {
    const auto wrong = [this](const std::function<void(Func * f)> &change) {
        Module *m = MakeNorm("  distribute data\n", STAGE_FUSE, true, true);
        change(ir_program(m, PROGRAM_MICRO_STEP));
        const char *said = ir_verify(m);
        return std::string(said ? said : "nothing");
    };
    const auto collectives = [](Func *f) {
        std::vector<int> at;
        for (int i = 0; i < f->kernels.len; i++)
            if (f->kernels.data[i]->kind == KERNEL_COLLECTIVE) at.push_back(i);
        EXPECT_EQ(at.size(), 9u);
        return at;
    };
    EXPECT_EQ(wrong([](Func *) {}), "nothing");
    EXPECT_NE(wrong([&](Func *f) {
                  f->kernels.data[collectives(f)[1]]->kind = KERNEL_TILE;
              }).find("a collective is a kernel of its own"),
              std::string::npos);
    EXPECT_NE(wrong([&](Func *f) {
                  Val flag = ir_new_value(f, "flag", AMP_DT_BOOL, shape_scalar(), VAL_INPUT);
                  vec_push(f->module->arena, &f->inputs, flag);
                  f->kernels.data[collectives(f)[1]]->pred = flag;
              }).find("has a predicate: all ranks take part"),
              std::string::npos);
}

// What the verifier says of a reduce_step that ranks could not make together.
TEST_F(DistributeTest, WrongExchanges) {
    const struct {
        const char *states, *func, *says;
    } cases[] = {
        {"state %s : f32[4] accumulator\n", "func eval {\n  state %s : f32[4]\n  all_reduce(%s) @b\n}\n",
         "only reduce_step exchanges states"},
        {"state %s : f32[4] accumulator\n",
         "func reduce_step {\n  state %s : f32[4]\n  all_reduce(%s) @b\n  all_reduce(%s; bucket = 1) @c\n}\n",
         "exchanged twice"},
        {"state %s : f32[4] accumulator\n", "func reduce_step {\n  state %s : f32[4]\n  all_reduce(%s, %s) @b\n}\n",
         "exchanged twice"},
        {"state %s : f32[4] param\n", "func reduce_step {\n  state %s : f32[4]\n  all_reduce(%s) @b\n}\n",
         "is neither a sum of a step nor a staged buffer"},
        {"state %s : f32[4] accumulator\n",
         "func reduce_step {\n  state %s : f32[4]\n  %r = relu(%s) : f32[4] @r\n  all_reduce(%s) @b\n}\n",
         "is not a collective"},
        {"state %s : f32[4] accumulator\nstate %d : f64 accumulator\n",
         "func reduce_step {\n  state %s : f32[4]\n  state %d : f64\n  all_reduce(%s, %d) @b\n}\n", "all_reduce"},
    };
    for (const auto &c : cases) {
        Module *m = Read(std::string("module \"t\" stage distribute {\n}\n") + c.states + c.func);
        const char *wrong = ir_verify(m);
        ASSERT_NE(wrong, nullptr) << c.func;
        EXPECT_NE(std::string(wrong).find(c.says), std::string::npos) << wrong;
    }
}

// The same of shares.
TEST_F(DistributeTest, WrongShares) {
    const struct {
        const char *word, *func, *says;
    } cases[] = {
        {"data", "func gather_step {\n  state %w : f32[4]\n  all_gather(%w) @b\n}\n", "every rank has all states"},
        {"data", "func reduce_step {\n  state %s : f32[4]\n  reduce_scatter(%s) @b\n}\n", "every rank has all states"},
        {"zero1", "func reduce_step {\n  state %w : f32[4]\n  all_gather(%w) @b\n}\n",
         "only gather_step gathers weights"},
        {"zero1", "func gather_step {\n  state %s : f32[4]\n  reduce_scatter(%s) @b\n}\n",
         "only reduce_step exchanges states"},
        {"zero1", "func gather_step {\n  state %s : f32[4]\n  all_gather(%s) @b\n}\n", "is not a parameter"},
        {"zero1", "func gather_step {\n  state %w : f32[4]\n  %r = relu(%w) : f32[4] @r\n  all_gather(%w) @b\n}\n",
         "is not a collective, but is in gather_step"},
        {"zero1", "func eval {\n  state %w : f32[4]\n  %r = sum_ranks(%w) : f32[4] @r\n}\n",
         "ranks wait for each other in micro_step alone"},
    };
    for (const auto &c : cases) {
        Module *m = Read(std::string("module \"t\" stage distribute {\n  distribute ") + c.word +
                         "\n}\nstate %w : f32[4] param\nstate %s : f32[4] accumulator\n" + c.func);
        const char *wrong = ir_verify(m);
        ASSERT_NE(wrong, nullptr) << c.func;
        EXPECT_NE(std::string(wrong).find(c.says), std::string::npos) << wrong;
    }
}

} // namespace
