/* expect.h: what tests of the language's rules say about a model: that it holds a line of IR, that it is refused with a
 * message. */
#ifndef AMP_TESTS_FRONTEND_EXPECT_H
#define AMP_TESTS_FRONTEND_EXPECT_H

#include "gtest/gtest.h"
#include "tests/base/pattern.h"
#include "tests/frontend/compile_model.h"

/* The elaborated module with single spaces, checked and read back; "" and a failure where the model is refused. */
inline std::string Ir(const std::string &text, const CompileSettings &settings = {}) {
    CompiledModel model = CompileModel("m.amp", "amp 1\n" + text, settings);
    EXPECT_TRUE(model.good) << text << "\n" << model.text;
    EXPECT_EQ(model.broken, "") << text;
    EXPECT_EQ(model.reread, model.good ? model.text : "") << text;
    return model.good ? Replaced(model.text, " +", " ") : "";
}

/* The diagnostics of a model that must be refused. */
inline std::string Errors(const std::string &text, const CompileSettings &settings = {}) {
    CompiledModel model = CompileModel("m.amp", "amp 1\n" + text, settings);
    EXPECT_FALSE(model.good) << text << "\n" << model.text;
    return model.good ? "" : model.text;
}

inline bool Holds(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

#define EXPECT_HOLDS(text, part) EXPECT_PRED2(Holds, text, part)
#define EXPECT_LACKS(text, part) EXPECT_FALSE(Holds(text, part)) << text << "\nholds " << (part)

/* A model of x: f32[N, 4] with one result, y. */
inline std::string Model(const std::string &body) { return "model m(x: f32[N, 4]) -> y {\n" + body + "\n}\n"; }

/* The same, trained by one parameter. */
inline std::string Trained(const std::string &train, const std::string &rest = "") {
    return "model m(x: f32[N, 4]) -> y {\n param w: f32[4] = ones()\n y = x * w\n}\ntrain m {\n" + train + "\n}\n" +
           rest;
}

inline const char *kLoss = "loss = mean(y * y)\noptimizer = sgd(0.1)\n";

#endif
