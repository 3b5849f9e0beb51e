/* training_rules_test.cc: the chapters on training and on precision of docs/language.md. */
#include "tests/frontend/expect.h"

namespace {

const char kSgd[] = "optimizer = sgd(0.1)\n";

std::string WithLoss(const std::string &rest) { return Trained("loss = mean(y * y)\n" + rest); }

/* ---- statements ------------------------------------------------------------------------------------------------- */

TEST(Training, InputsLossMetricOptimizer) {
    std::string ir = Ir(Trained("input t: f32[N, 4]\nloss = mse_loss(y, t)\nmetric err = sum(abs(y - t); dims = 1)\n"
                                "metric size = mean(w * w)\noptimizer = sgd(lr = 0.1)"));
    EXPECT_HOLDS(ir, "input %t : f32[N, 4]");
    EXPECT_HOLDS(ir, "result loss = %loss");
    EXPECT_HOLDS(ir, "%err = mean("); /* a value per sample counts by its mean */
    EXPECT_HOLDS(ir, "result metric.size = %size");
    EXPECT_HOLDS(ir, "metric err\n metric size\n");
    EXPECT_HOLDS(ir, "train loss loss at");
}

TEST(Training, TheLossIsAScalar) {
    EXPECT_HOLDS(Errors(Trained(std::string("loss = y\n") + kSgd)), "the loss is one float; this is f32[N, 4]");
    EXPECT_HOLDS(Errors(Trained(std::string("loss = argmax(mean(y; dims = 0))\n") + kSgd)),
                 "the loss is one float; this is i32");
    EXPECT_HOLDS(Errors(Trained(kSgd)), "train needs `loss = ...`");
    EXPECT_HOLDS(Errors(Trained("loss = mean(y)")), "train needs `optimizer = ...`");
}

TEST(Training, SeesTheModelsBodyAndNamesOfItsOwn) {
    std::string model =
        "model m(x: f32[N, 4]) -> y {\n param w: f32[4] = ones()\n h = x * w\n y = relu(h)\n}\ntrain m { ";
    Ir(model + "loss = mean(x * y) + sum(w)\noptimizer = sgd(0.1) }\n");
    EXPECT_HOLDS(Ir(model + "loss = mean(h)\noptimizer = sgd(0.1) }\n"), "%loss = mean(%h)");
    EXPECT_HOLDS(Ir(model + "d = y - x\nloss = mean(d * h)\noptimizer = sgd(0.1) }\n"), "%d = sub(%y, %x)");
    EXPECT_HOLDS(Errors(model + "loss = mean(hh)\noptimizer = sgd(0.1) }\n"),
                 "train sees the names of the model's body, and the names, losses and metrics above");
}

TEST(Training, SeveralLossesAreSummedAndReportedApart) {
    std::string ir = Ir(Trained(std::string("loss a = mean(y)\nloss b = mean(y * y)\nmetric s = loss + a\n") + kSgd));
    EXPECT_HOLDS(ir, "result loss.a = %a");
    EXPECT_HOLDS(ir, "result loss.b = %b");
    EXPECT_HOLDS(ir, "%loss = add(%a, %b)");
    EXPECT_HOLDS(ir, "result loss = %loss");
    EXPECT_HOLDS(Errors(WithLoss(std::string("loss b = mean(y)\n") + kSgd)),
                 "several losses are written as `loss NAME = ...`");
    EXPECT_HOLDS(Errors(Trained(std::string("loss a = mean(y)\nloss a = mean(x)\n") + kSgd)), "'a' is declared twice");
}

TEST(Training, MetricsOfAverages) {
    std::string ir = Ir(WithLoss(
        std::string("metric size = mean(abs(y))\nmetric ppl = exp(loss)\nmetric both = ppl + 2.0 * size\n") + kSgd));
    std::string averages = ir.substr(ir.find("func metrics"));
    EXPECT_HOLDS(averages, "input %loss : f32");
    EXPECT_HOLDS(averages, "input %metric.size : f32");
    EXPECT_HOLDS(averages, "%ppl = exp(%loss) : f32");
    EXPECT_HOLDS(averages, "%both = add(%ppl, ");
    EXPECT_HOLDS(averages, "result metric.ppl = %ppl");
    EXPECT_LACKS(averages, "input %metric.ppl");
    EXPECT_LACKS(ir.substr(0, ir.find("func metrics")), "result metric.ppl");
    EXPECT_HOLDS(ir, "metric size\n metric ppl\n metric both\n");
}

TEST(Training, AveragesAndTensorsDoNotMix) {
    std::string errors = Errors(WithLoss(std::string("metric p = exp(loss) + mean(y)\n") + kSgd));
    EXPECT_HOLDS(errors, "'y' is a per-batch value and cannot be mixed with averages");
    EXPECT_HOLDS(Errors(Trained(std::string("loss a = mean(y)\nloss b = a * a\n") + kSgd)), "only metrics can read it");
    EXPECT_HOLDS(Errors(Trained(std::string("metric p = exp(loss)\nloss = mean(y)\n") + kSgd)),
                 "there is no 'loss' here");
}

TEST(Training, GroupsClipAndAccumulate) {
    std::string ir = Ir(WithLoss("optimizer = adamw(0.1)\ngroup \"*\": lr_scale = 0.5, weight_decay = 0\n"
                                 "group \"w\": frozen = true\ngroup \"*\": frozen = false\n"
                                 "group \"w\": lazy = true\ngroup \"*\": frozen = false, lazy = false\n"
                                 "clip_norm = 1\nclip_value = 0.5\naccumulate = 4\nema = 0.9"));
    EXPECT_HOLDS(ir, "train loss loss clip_norm 1.0 clip_value 0.5 ema 0.9 at");
    EXPECT_HOLDS(ir, "group \"*\" lr_scale 0.5 weight_decay 0.0 at");
    EXPECT_HOLDS(ir, "group \"w\" frozen at");
    EXPECT_HOLDS(ir, "group \"*\" frozen false at");
    EXPECT_HOLDS(ir, "group \"w\" lazy at");
    EXPECT_HOLDS(ir, "group \"*\" frozen false lazy false at");
    EXPECT_HOLDS(ir, "accumulate 4");
}

TEST(Training, GroupsHaveOptimizers) {
    const std::string two = "model m(x: f32[N, 4]) -> y {\n y = linear(linear(x; out = 4) as a; out = 4) as b\n}\n"
                            "train m {\nloss = mean(y)\noptimizer = sgd(0.1)\n";
    EXPECT_HOLDS(
        Ir(two + "group \"*.bias\": optimizer = lion(step(base = 0.5, every = 2, gamma = 0.5)), lr_scale = 2\n}"),
        "group \"*.bias\" lr_scale 2.0 optimizer lion(lr = step(base = 0.5, every = 2, gamma = 0.5) at m.amp:8:34, "
        "beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0) at m.amp:8:29 at m.amp:8:1");
    const char *other = "7:1: error: optimizer: groups give another to all parameters that train m changes";
    EXPECT_HOLDS(Errors(two + "group \"*\": optimizer = lion()\n}"), other);
    EXPECT_HOLDS(Errors(two + "group \"a.*\": optimizer = lion()\ngroup \"b.*\": frozen = true\n}"), other);
    EXPECT_HOLDS(Ir(two + "group \"a.*\": optimizer = lion()\ngroup \"b.weight\": frozen = true\n}"), "optimizer lion");
}

TEST(Training, WrongGroupsClipAndAccumulate) {
    auto with = [](const char *line) { return Errors(WithLoss(std::string(kSgd) + line)); };
    EXPECT_HOLDS(with("group \"v\": frozen = true"), "no parameter that is trained here matches \"v\"");
    EXPECT_HOLDS(with("group \"w\": lr = 0.5"), "a group has no setting 'lr'");
    EXPECT_HOLDS(with("group \"w\": lr_scale = -1"), "group: lr_scale must be finite and at least 0");
    EXPECT_HOLDS(with("group \"w\": frozen = 1"), "group: frozen must be of type bool");
    EXPECT_HOLDS(with("group \"w\": lazy = 1"), "group: lazy must be of type bool");
    EXPECT_HOLDS(with("group \"w\": frozen = true, frozen = false"), "group: 'frozen' is given twice");
    EXPECT_HOLDS(with("group \"w\": lr_scale = constant(1.0)"), "an optimizer's lr and weight_decay take schedules");
    EXPECT_HOLDS(with("group \"w\": optimizer = 1"), "an optimizer is expected here, for example adamw(lr = 0.001)");
    EXPECT_HOLDS(with("group \"w\": optimizer = sgd(settable(0.1))"),
                 "an optimizer that a group gives is not settable");
    EXPECT_HOLDS(with("clip_norm = 0"), "clip_norm must be more than 0; this is the float 0.0");
    EXPECT_HOLDS(with("clip_norm = 1e39"),
                 "clip_norm must be finite as an f32, or inf, which clips nothing; this is the float 1.0e+39");
    EXPECT_HOLDS(with("clip_value = inf"), "clip_value must be finite and more than 0; this is the float inf");
    EXPECT_HOLDS(with("accumulate = 0"), "accumulate is the number of micro-batches of a step");
    EXPECT_HOLDS(with("accumulate = 2.0"), "accumulate must be of type int");
    EXPECT_HOLDS(with("clip_norm = 1\nclip_norm = 2"), "clip_norm is set twice");
    for (const char *decay : {"1.5", "1", "0", "-0.5", "inf"})
        EXPECT_HOLDS(with(("ema = " + std::string(decay)).c_str()),
                     "ema is the share of an average that a step keeps, more than 0 and less than 1; this is the");
    EXPECT_HOLDS(Errors(WithLoss("ema = 0.9")), "train needs `optimizer = ...`");
}

// One line freezes the last parameter: it is named.
TEST(Training, ABlockTrainsSomething) {
    const std::string two = "model m(x: f32[N, 4]) -> y {\n y = linear(linear(x; out = 4) as a; out = 4) as b\n}\n",
                      head = "loss = mean(y)\noptimizer = sgd(0.1)\n";
    const auto with = [&](const std::string &groups) { return two + "train m {\n" + head + groups + "}\n"; };
    const auto messages = [](const std::string &text) { return CompileModel("m.amp", "amp 1\n" + text).text; };
    const char *nothing = "train m trains nothing: its groups freeze all of its parameters, the last here";
    EXPECT_HOLDS(Errors(with("group \"*\": frozen = true\n")), std::string("8:1: error: ") + nothing);
    EXPECT_HOLDS(Errors(with("group \"a.*\": frozen = true\ngroup \"b.weight\": frozen = true, lr_scale = 0\n"
                             "group \"*.bias\": frozen = true\ngroup \"*\": weight_decay = 0\n")),
                 std::string("10:1: error: ") + nothing);
    EXPECT_HOLDS(Errors(with("group \"*\": frozen = true\n")), "a later group may take some back");
    EXPECT_HOLDS(Ir(with("group \"*\": frozen = true\ngroup \"b.bias\": frozen = false\n")), "frozen false");
    const std::string blocks = two + "train m for \"a.*\" {\n" + head + "}\ntrain m for \"b.*\" {\n" + head +
                               "group \"*\": frozen = true\n}\n";
    EXPECT_HOLDS(Errors(blocks), std::string("12:1: error: ") + nothing);
    const char *still = "warning: train m changes no parameter: lr_scale is 0 for all that no group freezes";
    EXPECT_HOLDS(messages(with("group \"*\": lr_scale = 0.0\n")), std::string("8:1: ") + still);
    EXPECT_HOLDS(messages(with("group \"a.*\": frozen = true\ngroup \"b.*\": lr_scale = 0\n")),
                 std::string("9:1: ") + still);
    EXPECT_LACKS(messages(with("group \"*\": lr_scale = 0\ngroup \"a.bias\": lr_scale = 1\n")), "warning");
}

TEST(Training, AnInputMayBeOneNumber) {
    for (const char *type : {"f32", "f32[]"}) {
        const std::string ir = Ir("model m(x: f32[N, 4], k: " + std::string(type) +
                                  ") -> y {\n y = linear(x * k; out = 4) as a\n}\ntrain m {\ninput c: " + type +
                                  "\nloss = c * mean(y)\noptimizer = sgd(0.1)\n}\n");
        EXPECT_HOLDS(ir, "input %c : f32\n");
        EXPECT_HOLDS(ir, "input %k : f32\n");
    }
}

TEST(Training, AnUpdateInEachKthStepIsOfOneBlockAmongSeveral) {
    const std::string gen = "train m for \"gen.*\" { loss = mean(y)\noptimizer = sgd(0.1)\n",
                      disc = "}\ntrain m for \"disc.*\" { loss = mean(y)\noptimizer = sgd(0.1)\nevery = 1 }\n",
                      two = "model m(x: f32[N, 4]) -> y {\n y = linear(linear(x; out = 4) as gen.a; out = 4) as "
                            "disc.b\n}\n";
    EXPECT_HOLDS(Ir(two + gen + "every = 5\n" + disc), "train for \"gen.*\" loss loss.0 every 5 at");
    EXPECT_HOLDS(Errors(two + gen + "every = 0\n" + disc), "every is a number of steps, 1 to 2147483647; this is 0");
    EXPECT_HOLDS(Errors(two + gen + "every = 0.5\n" + disc), "every must be of type int");
    EXPECT_HOLDS(Errors(WithLoss(std::string(kSgd) + "every = 5")), "this is the only train block");
}

/* ---- several blocks --------------------------------------------------------------------------------------------- */

const char kTwo[] = "model m(x: f32[N, 4]) -> y {\n y = linear(linear(x; out = 4) as gen.a; out = 4) as disc.b\n}\n";

TEST(Training, SeveralBlocksWithAnOptimizerEach) {
    std::string ir = Ir(std::string(kTwo) + "train m for \"gen.*\" { loss = mean(y)\noptimizer = sgd(0.1) }\n"
                                            "train m for \"disc.*\" { loss = mean(y * y)\noptimizer = adam(0.1) }\n");
    EXPECT_HOLDS(ir, "train for \"gen.*\" loss loss.0 at");
    EXPECT_HOLDS(ir, "optimizer sgd(");
    EXPECT_HOLDS(ir, "train for \"disc.*\" loss loss.1 at");
    EXPECT_HOLDS(ir, "optimizer adam(");
    EXPECT_HOLDS(ir, "result loss.0 = ");
    EXPECT_HOLDS(ir, "result loss.1 = ");
    EXPECT_HOLDS(ir, "result loss = ");
}

TEST(Training, BlocksShareInputsOfOneType) {
    std::string first = "train m for \"gen.*\" { input t: f32[N, 4]\nloss = mse_loss(y, t)\noptimizer = sgd(0.1) }\n";
    std::string second = "train m for \"disc.*\" { input t: TYPE\nloss = mean(y * t)\noptimizer = sgd(0.1) }\n";
    std::string ir = Ir(kTwo + first + Replaced(second, "TYPE", "f32[N, 4]"));
    EXPECT_EQ(ir.find("input %t"), ir.rfind("input %t"));
    EXPECT_HOLDS(Errors(kTwo + first + Replaced(second, "TYPE", "f32[4]")),
                 "another train block declares 't' as f32[N, 4]");
}

TEST(Training, AParameterBelongsToOneBlock) {
    std::string block = " { loss = mean(y)\noptimizer = sgd(0.1) }\n";
    EXPECT_HOLDS(Errors(std::string(kTwo) + "train m for \"gen.*\"" + block + "train m for \"*.weight\"" + block),
                 "parameter 'gen.a.weight' is trained by two train blocks");
    EXPECT_HOLDS(Errors(std::string(kTwo) + "train m" + block + "train m" + block),
                 "say which parameters each one trains");
    EXPECT_HOLDS(Errors(std::string(kTwo) + "train m for \"dist.*\"" + block), "no parameter matches \"dist.*\"");
    Ir(std::string(kTwo) + "train m for \"gen.*\"" + block); /* the others are not trained */
}

/* ---- optimizers and schedules ----------------------------------------------------------------------------------- */

TEST(Training, OptimizersHavePyTorchsDefaults) {
    EXPECT_HOLDS(Ir(WithLoss("optimizer = sgd(0.1)")),
                 "sgd(lr = 0.1, momentum = 0.0, nesterov = false, weight_decay = 0.0)");
    EXPECT_HOLDS(Ir(WithLoss("optimizer = adam(0.1)")),
                 "adam(lr = 0.1, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.0)");
    EXPECT_HOLDS(Ir(WithLoss("optimizer = adamw(0.1)")), "weight_decay = 0.01)");
    EXPECT_HOLDS(Ir(WithLoss("optimizer = lamb()")),
                 "lamb(lr = 0.001, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-06, weight_decay = 0.01)");
    EXPECT_HOLDS(Ir(WithLoss("optimizer = adafactor()")),
                 "adafactor(lr = 0.01, beta2_decay = -0.8, eps1 = 1.1920928955078125e-07, eps2 = 0.001, d = 1.0, "
                 "weight_decay = 0.0)");
    EXPECT_HOLDS(Ir(WithLoss("optimizer = muon()")),
                 "muon(lr = 0.001, weight_decay = 0.1, momentum = 0.95, nesterov = true, ns_steps = 5, eps = 1.0e-07, "
                 "adjust_lr = original)");
    EXPECT_HOLDS(Ir(WithLoss("optimizer = lion()")),
                 "lion(lr = 0.0001, beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0)");
    EXPECT_HOLDS(Ir(WithLoss("optimizer = adagrad()")),
                 "adagrad(lr = 0.01, lr_decay = 0.0, weight_decay = 0.0, initial_accumulator_value = 0.0, eps = ");
    EXPECT_HOLDS(
        Ir(WithLoss("optimizer = rmsprop(0.1)")),
        "rmsprop(lr = 0.1, alpha = 0.99, eps = 1.0e-08, weight_decay = 0.0, momentum = 0.0, centered = false)");
}

TEST(Training, SchedulesStandForRates) {
    for (const char *schedule : {"constant(v = 0.5)", "cosine(peak = 0.5, warmup = 3, steps = 20, floor = 0.0)",
                                 "step(base = 0.5, every = 3, gamma = 0.5)",
                                 "linear(peak = 0.5, warmup = 0, steps = 20)", "one_cycle(peak = 0.5, steps = 20)"}) {
        EXPECT_HOLDS(Ir(WithLoss(std::string("optimizer = sgd(lr = ") + schedule + ")")),
                     std::string("sgd(lr = ") + schedule);
        EXPECT_HOLDS(Ir(WithLoss(std::string("optimizer = adamw(0.1, weight_decay = ") + schedule + ")")),
                     std::string("weight_decay = ") + schedule);
    }
    EXPECT_HOLDS(Ir(WithLoss("optimizer = sgd(lr = min(0.5, 0.25))")), "sgd(lr = 0.25");
    EXPECT_HOLDS(Ir(WithLoss("optimizer = sgd(lr = settable(0.5))")), "sgd(lr = settable(v = 0.5)");
    EXPECT_HOLDS(Errors(WithLoss("optimizer = sgd(0.1, weight_decay = settable(0.5))")),
                 "weight_decay: only lr can be settable");
}

TEST(Training, WrongSchedules) {
    auto with = [](const char *lr) { return Errors(WithLoss(std::string("optimizer = adamw(lr = ") + lr + ")")); };
    EXPECT_HOLDS(with("0.1, beta1 = constant(0.5)"), "adamw: beta1 is a number, not constant(...)");
    EXPECT_HOLDS(with("cosin(0.1, 1, 2)"), "'cosin' is not a schedule");
    EXPECT_HOLDS(with("cosin(0.1, 1, 2)"), "did you mean 'cosine'?");
    EXPECT_HOLDS(with("cosine(peak = 0.1)"), "cosine needs the argument 'warmup'");
    EXPECT_HOLDS(with("cosine(0.1, warmup = 30, steps = 20)"), "cosine: warmup is 30, more than steps, which is 20");
    EXPECT_HOLDS(with("step(0.1, every = 0, gamma = 0.5)"), "step: every must be at least 1; this is the int 0");
    EXPECT_HOLDS(with("one_cycle(peak = -0.1, steps = 3)"), "one_cycle: peak must be finite and at least 0");
}

// In a step they are f32.
TEST(Training, NumbersAreFiniteAsF32) {
    const char *const optimizers[] = {"sgd(V)",
                                      "sgd(0.1, momentum = V)",
                                      "sgd(0.1, weight_decay = V)",
                                      "adam(V)",
                                      "adam(0.1, eps = V)",
                                      "adamw(0.1, weight_decay = V)",
                                      "rmsprop(0.1, momentum = V)",
                                      "adagrad(lr_decay = V)",
                                      "adafactor(V)",
                                      "lamb(V)",
                                      "lion(V)",
                                      "sgd(constant(V))",
                                      "sgd(settable(V))",
                                      "sgd(cosine(V, warmup = 1, steps = 9))",
                                      "sgd(cosine(0.1, warmup = 1, steps = 9, floor = V))",
                                      "sgd(step(V, every = 2, gamma = 0.5))",
                                      "sgd(step(0.1, every = 2, gamma = V))",
                                      "sgd(linear(V, warmup = 1, steps = 9))",
                                      "sgd(one_cycle(V, steps = 9))",
                                      "sgd(0.1, weight_decay = constant(V))"};
    const char *const lines[] = {"group \"w\": lr_scale = V", "group \"w\": weight_decay = V", "clip_norm = V",
                                 "clip_value = V"};
    std::vector<std::string> blocks;
    for (const char *o : optimizers) blocks.push_back(WithLoss(std::string("optimizer = ") + o));
    for (const char *l : lines) blocks.push_back(WithLoss(std::string(kSgd) + l));
    for (const std::string &block : blocks) {
        const auto with = [&](const char *v) {
            std::string text = block;
            return text.replace(text.find("V"), 1, v);
        };
        SCOPED_TRACE(block);
        for (const char *large : {"3.5e38", "1.0e39", "1.0e308"}) {
            const std::string errors = Errors(with(large));
            EXPECT_HOLDS(errors, "this is the float ");
            EXPECT_HOLDS(errors, "it is infinite as an f32: the largest is 3.4e38");
        }
        EXPECT_HOLDS(Ir(with("3.4e38")), "3.4e+38");
    }
}

/* ---- precision --------------------------------------------------------------------------------------------------- */

TEST(Precision, Words) {
    for (const char *word : {"fp16", "bf16", "tf32", "fp32"})
        EXPECT_HOLDS(Ir(Model("y = relu(x)") + "precision " + word + " { }\n"), std::string("precision ") + word);
    EXPECT_HOLDS(Ir(Model("y = relu(x)") + "precision \"torch-fp16\" { }\n"), "precision file torch-fp16");
    EXPECT_HOLDS(Errors(Model("y = relu(x)") + "precision fp8 { }\n"),
                 "precision is fp16, bf16, tf32, fp32 or a policy in quotes");
}

TEST(Precision, LossScale) {
    auto with = [](const std::string &scale) {
        return Model("y = relu(x)") + "precision fp16 { loss_scale = " + scale + " }\n";
    };
    EXPECT_HOLDS(Ir(with("dynamic(65536.0)")),
                 "dynamic(init = 65536.0, growth = 2.0, backoff = 0.5, interval = 2000, min = 1.0, max = 16777216.0)");
    EXPECT_HOLDS(Ir(with("dynamic(65536.0, min = 0.25, max = inf)")), "min = 0.25, max = inf");
    EXPECT_HOLDS(Ir(with("static(1024.0)")), "loss_scale static(v = 1024.0)");
    EXPECT_HOLDS(Ir(with("none")), "loss_scale none()");
    EXPECT_HOLDS(Errors(with("dynamic(2.0, growth = 1.0)")), "growth must be finite and more than 1");
    EXPECT_HOLDS(Errors(with("dynamic(2.0, backoff = 1.0)")), "backoff must be more than 0 and less than 1");
    EXPECT_HOLDS(Errors(with("dynamic(2.0, interval = 0)")), "interval must be at least 1");
    EXPECT_HOLDS(Errors(with("dynamic(0.5)")), "min is 1.0, more than init, which is 0.5");
    EXPECT_HOLDS(Ir(with("static(8.5e37)")), "loss_scale static(v = 8.5e+37)");
    /* As f32, 1.0e-46 is 0 and 1.0e39 is inf. */
    for (const char *v : {"0.0", "-1.0", "1.0e-46", "1.0e-40", "9.0e37", "1.0e39", "inf"}) {
        EXPECT_HOLDS(Errors(with(std::string("static(") + v + ")")),
                     "static: v must be from 2^-126 (1.2e-38) to 2^126");
        EXPECT_HOLDS(Errors(with(std::string("dynamic(") + v + ", max = inf)")), "dynamic: init must be from 2^-126");
    }
    for (const char *v : {"0.0", "1.0e-46", "1.0e-60"})
        EXPECT_HOLDS(Errors(with(std::string("dynamic(1.0, min = ") + v + ")")), "dynamic: min must be from 2^-126");
}

TEST(Precision, EvalPrecision) {
    EXPECT_HOLDS(Ir(Model("y = relu(x)") + "precision fp16 { eval_precision = fp32 }\n"), "eval_precision fp32");
    EXPECT_HOLDS(Errors(Model("y = relu(x)") + "precision fp16 { eval_precision = bf16 }\n"),
                 "eval_precision cannot be 'bf16'");
}

TEST(Precision, TypesOfStates) {
    auto with = [](const std::string &lines) { return Model("y = relu(x)") + "precision bf16 {\n" + lines + "\n}\n"; };
    EXPECT_HOLDS(Ir(with("moments = bf16")), "moments bf16(rounding = stochastic) at");
    EXPECT_HOLDS(Ir(with("moments = bf16(nearest)")), "moments bf16(rounding = nearest) at");
    EXPECT_HOLDS(Ir(with("masters = bf16(rounding = stochastic)")), "masters bf16(rounding = stochastic) at");
    EXPECT_HOLDS(Ir(with("moments = f32")), "moments f32() at");
    EXPECT_HOLDS(Errors(with("moments = fp16")), "'fp16' is not a type of states");
    EXPECT_HOLDS(Errors(with("moments = bf16(up)")), "bf16: rounding cannot be 'up'");
    EXPECT_HOLDS(Errors(with("moments = bf16(up)")), "the choices are stochastic, nearest");
    EXPECT_HOLDS(Errors(with("moments = f32(nearest)")), "f32 takes 0 arguments");
    EXPECT_HOLDS(Ir(with("moments = f8")), "moments f8() at");
    EXPECT_HOLDS(Errors(with("moments = f8(nearest)")), "f8 takes 0 arguments");
    EXPECT_HOLDS(Errors(with("moments = e5m2")), "'e5m2' is not a type of states");
    EXPECT_HOLDS(Errors(with("masters = 16")), "a type of states is expected here, for example bf16 or");
    EXPECT_HOLDS(Errors(with("masters = bf16\nmasters = bf16")), "masters is set twice");
    EXPECT_HOLDS(Errors(with("moment = bf16")), "did you mean 'moments'");
}

TEST(Precision, Pad) {
    auto with = [](const std::string &lines) { return Model("y = relu(x)") + "precision bf16 {\n" + lines + "\n}\n"; };
    EXPECT_HOLDS(Ir(with("pad = true")), "\n pad\n");
    EXPECT_HOLDS(Ir("const WIDE = true\n" + with("pad = WIDE")), "\n pad\n");
    EXPECT_EQ(Ir(with("pad = false")).find("\n pad"), std::string::npos);
    EXPECT_EQ(Ir(with("")).find("\n pad"), std::string::npos);
}

TEST(Precision, OverridesByOpAndByPathInOrder) {
    std::string ir =
        Ir(Model("y = softmax(x)") + "precision fp16 {\n softmax: f32\n \"h.*\": low because \"measured\"\n}\n");
    EXPECT_HOLDS(ir, "override op softmax : f32 at");
    EXPECT_HOLDS(ir, "override path \"h.*\" : \"low\" because \"measured\" at");
}

} // namespace
