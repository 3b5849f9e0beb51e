// tiny.h: the model of tiny_model.h with its params and sessions, batches for it, and the same training in double.
#ifndef AMP_TESTS_RUNTIME_TINY_H
#define AMP_TESTS_RUNTIME_TINY_H

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "amp/amp.hpp"
#include "tests/runtime/runtime_c.h"
#include "tests/runtime/tiny_model.h"

inline amp::SessionOptions TinyOptions(int64_t capacity) {
    amp::SessionOptions o;
    o.capacity.n = capacity;
    o.threads = 1;
    return o;
}

// Model, params (seed 7) and one session; everything is released at the end.
class Tiny {
  public:
    explicit Tiny(const amp_session_options &options, const amp_allocator *allocator = nullptr,
                  const amp_model_desc *desc = amp_model_query()) {
        amp_params_options seed = {sizeof seed, 7, 0};
        EXPECT_EQ(amp_model_from_desc(desc, "tiny", allocator, &model, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_params_create(model, &seed, &params, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_session_create(model, params, &options, &session, &err), AMP_OK) << err.message;
    }
    ~Tiny() {
        amp_model_release(model); // on purpose first: sessions keep what they need
        amp_params_release(params);
        amp_session_release(session);
    }
    Tiny(const Tiny &) = delete;
    Tiny &operator=(const Tiny &) = delete;

    std::vector<float> Get(const char *name, size_t count) const {
        std::vector<float> out(count);
        amp_error e = {};
        EXPECT_EQ(amp_params_get(params, name, out.data(), count, &e), AMP_OK) << e.message;
        return out;
    }
    std::vector<float> Weight() const { return Get("fc.weight", TINY_CLASSES * TINY_FEATURES); }
    std::vector<float> Bias() const { return Get("fc.bias", TINY_CLASSES); }

    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp_error err = {};
};

struct TinyBatch {
    // Numbers in [-1, 1] from a linear congruential generator; one target in 16 is ignored.
    explicit TinyBatch(int64_t n, unsigned seed = 1) : n(n), x(n * TINY_FEATURES), targets(n) {
        unsigned state = seed * 2654435761u + 1;
        auto next = [&state] { return state = state * 1664525u + 1013904223u; };
        for (float &v : x) v = (int)(next() >> 8) / 8388608.0f - 1;
        for (int &t : targets) t = (next() >> 28) ? (int)((next() >> 10) % TINY_CLASSES) : (int)TINY_IGNORE;
        inputs[0] = x.data();
        inputs[1] = targets.data();
    }
    TinyBatch(const TinyBatch &) = delete;

    int64_t n;
    std::vector<float> x;
    std::vector<int> targets;
    const void *inputs[2];
};

// What the tiny model computes, in double.
struct TinyReference {
    std::vector<double> w, b, mw, mb;

    explicit TinyReference(const Tiny &t) : mw(TINY_CLASSES * TINY_FEATURES), mb(TINY_CLASSES) {
        std::vector<float> weight = t.Weight(), bias = t.Bias();
        w.assign(weight.begin(), weight.end());
        b.assign(bias.begin(), bias.end());
    }

    std::vector<double> Logits(const TinyBatch &batch) const {
        std::vector<double> z(batch.n * TINY_CLASSES);
        for (int64_t i = 0; i < batch.n; i++)
            for (int c = 0; c < TINY_CLASSES; c++) {
                double sum = b[c];
                for (int k = 0; k < TINY_FEATURES; k++)
                    sum += batch.x[i * TINY_FEATURES + k] * w[c * TINY_FEATURES + k];
                z[i * TINY_CLASSES + c] = sum;
            }
        return z;
    }

    // Loss and accuracy; the gradients of w and b are left in gw and gb.
    double Gradients(const TinyBatch &batch) {
        std::vector<double> z = Logits(batch);
        double loss = 0;
        gw.assign(w.size(), 0);
        gb.assign(b.size(), 0);
        accuracy = 0;
        for (int64_t i = 0; i < batch.n; i++) {
            const double *row = &z[i * TINY_CLASSES];
            double sum = 0;
            int best = 0, target = batch.targets[i];
            for (int c = 0; c < TINY_CLASSES; c++) {
                sum += std::exp(row[c]);
                if (row[c] > row[best]) best = c;
            }
            if (target == TINY_IGNORE) continue;
            loss += std::log(sum) - row[target];
            accuracy += best == target;
            for (int c = 0; c < TINY_CLASSES; c++) {
                double d = (std::exp(row[c]) / sum - (c == target)) / (double)batch.n;
                gb[c] += d;
                for (int k = 0; k < TINY_FEATURES; k++) gw[c * TINY_FEATURES + k] += d * batch.x[i * TINY_FEATURES + k];
            }
        }
        accuracy /= (double)batch.n;
        return loss / (double)batch.n;
    }

    double Step(const TinyBatch &batch) {
        double loss = Gradients(batch);
        Update(w, mw, gw);
        Update(b, mb, gb);
        return loss;
    }

    static void Update(std::vector<double> &p, std::vector<double> &m, const std::vector<double> &g) {
        for (size_t i = 0; i < p.size(); i++) {
            m[i] = TINY_MOMENTUM * m[i] + g[i];
            p[i] -= TINY_LEARNING_RATE * m[i];
        }
    }

    std::vector<double> gw, gb;
    double accuracy = 0;
};

inline void ExpectNear(const std::vector<float> &a, const std::vector<double> &b, double tolerance) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); i++) ASSERT_NEAR(a[i], b[i], tolerance) << "element " << i;
}

#endif
