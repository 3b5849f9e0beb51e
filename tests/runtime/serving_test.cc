// Hand-over while serving: sessions in threads of their own read versions of params, while the params change.
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/base/failing_allocator.h"
#include "tests/runtime/tiny.h"

namespace {

enum { SERVERS = 4, SWAPS = 1000, STEPS = 200, N = 3 };

void ExpectMessage(const amp_error &err, const char *part) {
    EXPECT_NE(std::string(err.message).find(part), std::string::npos) << err.message;
}

amp::SessionOptions PublishedOptions() {
    amp::SessionOptions o = TinyOptions(N);
    o.published = 1;
    return o;
}

// One more version.  Version k: the first column of the weight is the even number up to k, the bias 4096 k.
void Publish(const Tiny &tiny, int k, amp_publish_report *report = nullptr) {
    amp_error err = {};
    std::vector<float> weight(TINY_CLASSES * TINY_FEATURES), bias(TINY_CLASSES, 4096.0f * (float)k);
    for (int c = 0; c < TINY_CLASSES; c++) weight[c * TINY_FEATURES] = (float)(k & ~1);
    ASSERT_EQ(amp_params_set(tiny.params, "fc.weight", weight.data(), weight.size(), &err), AMP_OK) << err.message;
    ASSERT_EQ(amp_params_set(tiny.params, "fc.bias", bias.data(), bias.size(), &err), AMP_OK) << err.message;
    ASSERT_EQ(amp_params_publish(tiny.params, report, &err), AMP_OK) << err.message;
}

// What version k answers to ones, exactly.
float AnswerOf(uint64_t k) { return (float)(k & ~(uint64_t)1) + 4096.0f * (float)k; }

struct Server { // a session that asks the same again and again
    explicit Server(const Tiny &tiny) : x(N * TINY_FEATURES, 1.0f), logits(N * TINY_CLASSES) {
        amp_error err = {};
        amp::SessionOptions o = PublishedOptions();
        EXPECT_EQ(amp_session_create(tiny.model, tiny.params, &o, &session, &err), AMP_OK) << err.message;
    }
    ~Server() { amp_session_release(session); }
    Server(const Server &) = delete;
    Server &operator=(const Server &) = delete;

    uint64_t Ask() {
        const void *inputs[] = {x.data(), nullptr};
        void *outputs[] = {logits.data()};
        return amp_infer(session, inputs, {N, 0}, outputs, nullptr) ? 0 : amp_session_version(session);
    }

    amp_session *session = nullptr;
    std::vector<float> x, logits;
};

TEST(Serving, EveryAnswerBelongsToOneVersion) {
    Tiny tiny(TinyOptions(N));
    Publish(tiny, 1);
    std::atomic<bool> stop{false};
    std::atomic<int> ready{0};
    std::vector<int64_t> asked(SERVERS), wrong(SERVERS), seen(SERVERS);
    std::vector<std::thread> threads;
    for (int i = 0; i < SERVERS; i++)
        threads.emplace_back([&, i] {
            Server server(tiny);
            uint64_t before = 0;
            for (ready++; !stop; asked[i]++) {
                uint64_t version = server.Ask();
                for (float v : server.logits) wrong[i] += v != AnswerOf(version);
                wrong[i] += version < before;
                seen[i] += version != before;
                before = version;
            }
            wrong[i] += server.Ask() != SWAPS + 1; // the newest, once nothing is published any more
        });
    while (ready < SERVERS) std::this_thread::yield();
    int most_alive = 0;
    for (int k = 2; k <= SWAPS + 1; k++) {
        amp_publish_report report;
        Publish(tiny, k, &report);
        ASSERT_EQ(report.version, (uint64_t)k);
        EXPECT_EQ(report.shared_bytes > 0, k % 2 == 1) << "an odd version has the weight of the one before";
        EXPECT_GT(report.copied_bytes, 0u);
        most_alive = std::max(most_alive, report.versions_alive);
        if (k % 16 == 0) std::this_thread::yield();
    }
    stop = true;
    for (std::thread &t : threads) t.join();
    for (int i = 0; i < SERVERS; i++) {
        EXPECT_EQ(wrong[i], 0) << i;
        EXPECT_GT(asked[i], 0) << i;
        EXPECT_GT(seen[i], 1) << i;
    }
    EXPECT_LE(most_alive, SERVERS + 1) << "one per session, and the newest";
}

// Answers of training's own session are compared with those that servers got of the same version.
TEST(Serving, TrainingWritesTheNextVersion) {
    Tiny tiny(TinyOptions(8));
    ASSERT_EQ(amp_params_publish(tiny.params, nullptr, nullptr), AMP_OK);
    std::vector<std::vector<float>> answers(STEPS + 2);
    std::atomic<bool> stop{false};
    typedef std::pair<uint64_t, std::vector<float>> Answer;
    std::vector<std::vector<Answer>> got(SERVERS);
    std::vector<std::thread> threads;
    for (int i = 0; i < SERVERS; i++)
        threads.emplace_back([&, i] {
            Server server(tiny);
            do {
                uint64_t version = server.Ask();
                if (got[i].empty() || got[i].back().first != version) got[i].emplace_back(version, server.logits);
                else if (got[i].back().second != server.logits) got[i].emplace_back(0, server.logits);
            } while (!stop);
        });
    TinyBatch batch(8);
    std::vector<float> ones(N * TINY_FEATURES, 1.0f);
    for (uint64_t version = 1;; version++) {
        answers[version].resize(N * TINY_CLASSES);
        const void *inputs[] = {ones.data(), nullptr};
        void *outputs[] = {answers[version].data()};
        amp_publish_report report;
        ASSERT_EQ(amp_infer(tiny.session, inputs, {N, 0}, outputs, nullptr), AMP_OK);
        if (version > STEPS) break;
        ASSERT_EQ(amp_step(tiny.session, batch.inputs, {8, 0}, nullptr, nullptr), AMP_OK);
        ASSERT_EQ(amp_params_publish(tiny.params, &report, nullptr), AMP_OK);
        ASSERT_EQ(report.version, version + 1);
    }
    stop = true;
    for (std::thread &t : threads) t.join();
    for (const auto &list : got)
        for (const Answer &a : list) {
            ASSERT_GT(a.first, 0u) << "two answers of one version differ";
            EXPECT_EQ(a.second, answers[a.first]) << "version " << a.first;
        }
    EXPECT_NE(answers[1], answers[STEPS + 1]);
}

// One version per session and the newest: the others are freed, and all of them with the params.
TEST(Serving, MemoryIsBounded) {
    Tiny tiny(TinyOptions(N));
    amp_publish_report first, report;
    Publish(tiny, 1, &first);
    EXPECT_EQ(first.versions_alive, 1);
    EXPECT_EQ(first.shared_bytes, 0u);
    {
        Server idle(tiny);
        for (int k = 2; k < 50; k++) Publish(tiny, 2 * k, &report); // no tensor is shared
        EXPECT_EQ(report.versions_alive, 2);
        EXPECT_EQ(report.bytes_alive, 2 * first.bytes_alive);
        EXPECT_EQ(amp_session_version(idle.session), 1u);
        EXPECT_EQ(idle.logits, std::vector<float>(N * TINY_CLASSES));
        EXPECT_EQ(idle.Ask(), 49u);
        EXPECT_EQ(idle.logits[0], AnswerOf(2 * 49));
        ASSERT_EQ(amp_params_publish(tiny.params, &report, nullptr), AMP_OK);
        EXPECT_EQ(report.copied_bytes, 0u) << "nothing changed";
        EXPECT_EQ(report.shared_bytes, first.copied_bytes);
        EXPECT_LT(report.bytes_alive, first.bytes_alive + first.copied_bytes) << "the tensors are there once";
        amp_memory_info info;
        amp_session_get_memory(idle.session, &info);
        EXPECT_EQ(info.params + info.derived, first.copied_bytes);
    }
    Publish(tiny, 3, &report);
    EXPECT_EQ(report.versions_alive, 1);
    EXPECT_EQ(report.bytes_alive, first.bytes_alive);
}

TEST(Serving, VersionsOutliveEverybodyElse) {
    Tiny *tiny = new Tiny(TinyOptions(N));
    Publish(*tiny, 1);
    Server server(*tiny);
    delete tiny;
    EXPECT_EQ(server.Ask(), 1u);
    EXPECT_EQ(server.logits[0], AnswerOf(1));
}

TEST(Serving, EvaluationReadsVersionsToo) {
    Tiny tiny(TinyOptions(8));
    amp::SessionOptions o = PublishedOptions();
    o.capacity.n = 8;
    amp_session *session;
    ASSERT_EQ(amp_params_publish(tiny.params, nullptr, &tiny.err), AMP_OK);
    ASSERT_EQ(amp_session_create(tiny.model, tiny.params, &o, &session, &tiny.err), AMP_OK) << tiny.err.message;
    TinyBatch batch(8);
    double published, live, trained;
    ASSERT_EQ(amp_eval(tiny.session, batch.inputs, {8, 0}, &live, nullptr, &tiny.err), AMP_OK);
    ASSERT_EQ(amp_step(tiny.session, batch.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK);
    ASSERT_EQ(amp_eval(tiny.session, batch.inputs, {8, 0}, &trained, nullptr, &tiny.err), AMP_OK);
    ASSERT_EQ(amp_eval(session, batch.inputs, {8, 0}, &published, nullptr, &tiny.err), AMP_OK);
    EXPECT_EQ(published, live);
    EXPECT_NE(published, trained);
    ASSERT_EQ(amp_params_publish(tiny.params, nullptr, &tiny.err), AMP_OK);
    ASSERT_EQ(amp_eval(session, batch.inputs, {8, 0}, &published, nullptr, &tiny.err), AMP_OK);
    EXPECT_EQ(published, trained);
    EXPECT_EQ(amp_step(session, batch.inputs, {8, 0}, nullptr, &tiny.err), AMP_WRONG_STATE);
    ExpectMessage(tiny.err, "amp_step: the session was created with published = 1");
    amp_session_release(session);
}

TEST(Serving, WhatIsRefused) {
    Tiny tiny(TinyOptions(8));
    amp::SessionOptions o = PublishedOptions();
    amp_session *session;
    EXPECT_EQ(amp_session_create(tiny.model, tiny.params, &o, &session, &tiny.err), AMP_WRONG_STATE);
    ExpectMessage(tiny.err, "nothing was published; call amp_params_publish before");
    EXPECT_EQ(amp_params_publish(nullptr, nullptr, &tiny.err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_session_version(nullptr), 0u);
    EXPECT_EQ(amp_session_version(tiny.session), 0u);
}

// Each allocation of publishing fails in turn: the version before stays, and nothing is lost.
TEST(Serving, OutOfMemoryKeepsTheVersionBefore) {
    FailingAllocator memory;
    {
        amp_allocator allocator = memory.get();
        Tiny tiny(TinyOptions(N), &allocator);
        Publish(tiny, 1);
        Server server(tiny);
        std::vector<float> bias(TINY_CLASSES, 7);
        ASSERT_EQ(amp_params_set(tiny.params, "fc.bias", bias.data(), bias.size(), &tiny.err), AMP_OK);
        int failed = 0;
        for (;; failed++) {
            memory.fail_after(failed);
            amp_status status = amp_params_publish(tiny.params, nullptr, &tiny.err);
            memory.fail_after(-1);
            if (!status) break;
            ASSERT_EQ(status, AMP_OUT_OF_MEMORY) << tiny.err.message;
            EXPECT_EQ(server.Ask(), 1u);
            EXPECT_EQ(server.logits[0], AnswerOf(1));
        }
        EXPECT_GT(failed, 2);
        EXPECT_EQ(server.Ask(), 2u);
        EXPECT_EQ(server.logits[0], 7);
    }
}

} // namespace
