// Sessions of a rank whose comm is the test's own, which brings the records of another rank: what is named before the
// first step, what a rank is said to be at, and what a step that fails leaves.
#include <gmock/gmock.h>

#include <functional>

#include "runtime/device/comm_calls.h"
#include "tests/e2e/harness.h"

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Rank 0 of two.  The other one has nothing to add to sums, and the same to say, unless |answer| changes it.
struct Peer : amp_comm {
    std::function<void(std::string *record, const std::string &what)> answer;
    std::vector<std::string> records; // of this rank, as it brought them
    std::vector<std::string> did;
    uint64_t started = 0;
    bool dead = false; // the last message that was started never arrives

    Peer() : amp_comm{&Calls(), 0, 2, false} {}
    void Gather(char *mine, size_t size) {
        std::string record(mine, size);
        if (answer) answer(&record, "what ranks have in common");
        memcpy(mine + size, record.data(), size);
    }
    static Peer *Of(amp_comm *comm) { return static_cast<Peer *>(comm); }
    static const amp_comm_calls &Calls() {
        static const amp_comm_calls calls = [] {
            amp_comm_calls c = {};
            c.start = [](amp_comm *comm, amp_collective_op op, amp_dtype, void *data, size_t count, int32_t,
                         const char *what, uint64_t *number, amp_error *) {
                if (op == AMP_COLLECTIVE_ALL_GATHER && !strcmp(what, "what ranks have in common"))
                    Of(comm)->Gather(static_cast<char *>(data), count / 2);
                *number = Of(comm)->started++;
                return AMP_OK;
            };
            c.wait = [](amp_comm *comm, uint64_t number, amp_error *err) {
                if (!Of(comm)->dead || number + 1 < Of(comm)->started) return AMP_OK;
                snprintf(err->message, sizeof err->message, "rank 0: no answer from rank 1");
                return err->code = AMP_PEER_FAILED;
            };
            c.meet = [](amp_comm *comm, const void *mine, size_t size, void *all, const char *what, amp_error *) {
                std::string record(static_cast<const char *>(mine), size);
                Of(comm)->records.push_back(record);
                memcpy(all, mine, size);
                if (Of(comm)->answer) Of(comm)->answer(&record, what);
                memcpy(static_cast<char *>(all) + size, record.data(), size);
                return AMP_OK;
            };
            c.does = [](amp_comm *comm, amp_rank_does what, int64_t step) {
                static const char *const words[] = {"computes", "loads", "saves", "evaluates"};
                Of(comm)->did.push_back(std::string(words[what]) + " " + std::to_string(step));
            };
            return c;
        }();
        return calls;
    }
};

struct Rank {
    Peer peer;
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp_error err = {};
    amp::SessionOptions options;

    explicit Rank(const std::string &path) {
        options.struct_size = sizeof options;
        options.capacity.n = 45;
        options.threads = 1;
        options.seed = 3;
        options.comm = &peer;
        EXPECT_EQ(amp_model_load(path.c_str(), nullptr, &model, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_params_create(model, nullptr, &params, &err), AMP_OK) << err.message;
    }
    Rank(const Rank &) = delete;
    ~Rank() {
        amp_session_release(session);
        amp_params_release(params);
        amp_model_release(model);
    }
    amp_status Join() { return amp_session_create(model, params, &options, &session, &err); }
    amp_status Step(uint32_t seed) {
        e2e::Batch batch(45, 19, 10, seed);
        return amp_step(session, batch.inputs(), {batch.n, 0}, nullptr, &err);
    }
    std::vector<float> Weights() {
        std::vector<float> w(19 * 37);
        EXPECT_EQ(amp_params_get(params, "fc1.weight", w.data(), w.size(), &err), AMP_OK) << err.message;
        return w;
    }
};

// The perceptron with rate |rate|, compiled for |precision|.
std::string Model(const std::string &name, const char *precision = "fp32", const std::string &rate = "1.0") {
    amp_compile_options options = {};
    options.distribute = "data";
    options.precision = precision;
    return e2e::compile_to_file(e2e::mlp("fp32", 19, 37, 10, "sgd(lr = " + rate + ")"), name, options);
}

// What a rank brings to the first meeting.
std::string RecordOf(Rank &rank) {
    EXPECT_EQ(rank.Join(), AMP_OK) << rank.err.message;
    return rank.peer.records.empty() ? "" : rank.peer.records[0];
}

std::string Refusal(const std::string &path, const std::string &record) {
    Rank rank(path);
    rank.peer.answer = [&](std::string *mine, const std::string &what) {
        EXPECT_EQ(mine->size(), record.size());
        if (what == "what ranks train") *mine = record;
    };
    EXPECT_EQ(rank.Join(), AMP_MISMATCH);
    EXPECT_EQ(rank.session, nullptr);
    return rank.err.message;
}

TEST(Peers, AreNamedBeforeTheFirstStep) {
    const std::string path = Model("peer.so");
    Rank policy(Model("policy.so", "bf16")), other(Model("text.so", "fp32", "0.5")), seed(path), batch(path),
        same(path);
    seed.options.seed = 4;
    batch.options.capacity.n = 46;
    std::string version = RecordOf(same);
    ASSERT_GT(version.size(), 32u);
    version.replace(0, 32, std::string("0.0.1").append(27, '\0'));
    EXPECT_THAT(Refusal(path, version),
                StartsWith("rank 1 has another version of ampc than rank 0: 0.0.1 instead of "));
    EXPECT_THAT(Refusal(path, RecordOf(policy)), StartsWith("rank 1 has another policy (SHA-256) than rank 0: "));
    EXPECT_THAT(Refusal(path, RecordOf(other)), StartsWith("rank 1 has another model text (SHA-256) than rank 0: "));
    EXPECT_THAT(Refusal(path, RecordOf(seed)), StartsWith("rank 1 has another seed than rank 0: 4 instead of 3"));
    EXPECT_THAT(Refusal(path, RecordOf(batch)), StartsWith("rank 1 has another capacity (samples of a micro-batch)"));
}

TEST(Peers, WeightsThatDiffer) {
    Rank rank(Model("weights.so"));
    rank.peer.answer = [&](std::string *mine, const std::string &what) {
        if (what == "hashes of the weights") (*mine)[5] ^= 1;
    };
    EXPECT_EQ(rank.Join(), AMP_MISMATCH);
    EXPECT_THAT(std::string(rank.err.message), StartsWith("weights of rank 1 differ from rank 0's"));
}

// Ranks that have loaded different files find it before they take a step.
TEST(Peers, CheckpointsThatDiffer) {
    Rank rank(Model("loaded.so"));
    const std::string file = e2e::temp_path("loaded.ck");
    ASSERT_EQ(rank.Join(), AMP_OK) << rank.err.message;
    ASSERT_EQ(amp_checkpoint_save(rank.session, file.c_str(), nullptr, &rank.err), AMP_OK) << rank.err.message;
    ASSERT_EQ(amp_checkpoint_load(rank.session, file.c_str(), nullptr, 0, &rank.err), AMP_OK) << rank.err.message;
    rank.peer.answer = [&](std::string *mine, const std::string &what) {
        if (what == "hashes of the weights") (*mine)[5] ^= 1;
    };
    EXPECT_EQ(amp_checkpoint_load(rank.session, file.c_str(), nullptr, 0, &rank.err), AMP_MISMATCH);
    EXPECT_THAT(std::string(rank.err.message), StartsWith("weights of rank 1 differ from rank 0's"));
}

TEST(Peers, AreToldWhatARankDoes) {
    Rank rank(Model("does.so"));
    const std::string file = e2e::temp_path("does.ck");
    e2e::Batch batch(45, 19, 10, 1);
    double loss;
    ASSERT_EQ(rank.Join(), AMP_OK) << rank.err.message;
    for (uint32_t i = 0; i < 2; i++) ASSERT_EQ(rank.Step(i), AMP_OK) << rank.err.message;
    ASSERT_EQ(amp_eval(rank.session, batch.inputs(), {batch.n, 0}, &loss, nullptr, &rank.err), AMP_OK)
        << rank.err.message;
    ASSERT_EQ(amp_checkpoint_save(rank.session, file.c_str(), nullptr, &rank.err), AMP_OK) << rank.err.message;
    ASSERT_EQ(rank.Step(2), AMP_OK) << rank.err.message;
    ASSERT_EQ(amp_checkpoint_load(rank.session, file.c_str(), nullptr, 0, &rank.err), AMP_OK) << rank.err.message;
    EXPECT_THAT(rank.peer.did,
                ElementsAre("computes 1", "computes 2", "evaluates 2", "saves 2", "computes 3", "loads 3"));
}

// Before the step changes anything.
TEST(Peers, ThatDriftAreNamed) {
    Rank rank(Model("drift.so"));
    size_t at = 0;
    ASSERT_EQ(rank.Join(), AMP_OK) << rank.err.message;
    ASSERT_EQ(rank.Step(1), AMP_OK) << rank.err.message;
    const std::vector<float> before = rank.Weights();
    rank.peer.answer = [&](std::string *mine, const std::string &what) {
        if (what == "what ranks have in common") (*mine)[at] ^= 1;
    };
    EXPECT_EQ(rank.Step(2), AMP_MISMATCH);
    EXPECT_THAT(std::string(rank.err.message),
                StartsWith("step 2: rank 1 has drifted from rank 0: another loss scale, step number or learning rate"));
    at = 8;
    EXPECT_EQ(rank.Step(2), AMP_MISMATCH);
    EXPECT_THAT(std::string(rank.err.message), StartsWith("step 2: rank 1 has drifted from rank 0: other weights"));
    EXPECT_TRUE(e2e::same_bits(before, rank.Weights()));
}

// Nothing of a step is kept before all ranks have brought theirs, and what is there can be saved.
TEST(Peers, AStepThatFailsChangesNothing) {
    Rank rank(Model("torn.so"));
    ASSERT_EQ(rank.Join(), AMP_OK) << rank.err.message;
    ASSERT_EQ(rank.Step(1), AMP_OK) << rank.err.message;
    const std::vector<float> before = rank.Weights();
    rank.peer.dead = true;
    EXPECT_EQ(rank.Step(2), AMP_PEER_FAILED);
    EXPECT_THAT(std::string(rank.err.message), HasSubstr("no answer from rank 1"));
    EXPECT_TRUE(e2e::same_bits(before, rank.Weights()));
    const std::string file = e2e::temp_path("torn.ck");
    EXPECT_EQ(amp_checkpoint_save(rank.session, file.c_str(), nullptr, &rank.err), AMP_OK) << rank.err.message;
    rank.peer.dead = false;
    ASSERT_EQ(rank.Step(2), AMP_OK) << rank.err.message;
    EXPECT_FALSE(e2e::same_bits(before, rank.Weights()));
}

} // namespace
