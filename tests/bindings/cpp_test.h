// cpp_test.h: a small classifier, compiled by amp/compile.hpp and used by amp/amp.hpp.
#ifndef AMP_TESTS_BINDINGS_CPP_TEST_H
#define AMP_TESTS_BINDINGS_CPP_TEST_H

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "amp/amp.hpp"
#include "amp/compile.hpp"

namespace cpp_test {

inline const char model_text[] = "amp 1\n"
                                 "const HIDDEN = 8\n"
                                 "model rings(x: f32[N, 2]) -> logits, hidden {\n"
                                 "    hidden = relu(linear(x; out = HIDDEN) as first)\n"
                                 "    logits = linear(hidden; out = 3) as last\n"
                                 "}\n"
                                 "train rings {\n"
                                 "    input targets: i32[N]\n"
                                 "    loss = cross_entropy(logits, targets)\n"
                                 "    metric acc = accuracy(logits, targets)\n"
                                 "    metric worst = max(logits)\n"
                                 "    optimizer = adamw(lr = 0.01)\n"
                                 "}\n"
                                 "precision fp16 { loss_scale = dynamic(init = 16.0, min = 1.0) }\n";

inline amp::CompileOptions quick() {
    amp::CompileOptions options;
    options.isa = "portable";
    options.target = "cpu";
    return options;
}

// The model.so, compiled once.
inline const std::string &model_bytes() {
    static const std::string bytes(amp::compile_text(model_text, "rings.amp", quick()).text());
    return bytes;
}

inline amp::Model load() { return amp::Model::from_memory(model_bytes().data(), model_bytes().size(), "rings"); }

inline amp::SessionOptions for_samples(int64_t capacity) {
    amp::SessionOptions options;
    options.capacity.n = capacity;
    options.threads = 1;
    return options;
}

// Whether |run| throws amp::Error with |status| and a message that has |text|.
template <class Run>::testing::AssertionResult Throws(amp_status status, const std::string &text, Run run) {
    try {
        run();
    } catch (const amp::Error &error) {
        if (error.status() != status)
            return ::testing::AssertionFailure() << amp_status_name(error.status()) << ": " << error.what();
        if (std::string(error.what()).find(text) == std::string::npos)
            return ::testing::AssertionFailure() << "says: " << error.what();
        return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << "nothing was thrown";
}

} // namespace cpp_test
#endif
