// training_test.h: what the tests of scale and optimizer share: the MLP with other options, its states, single steps in
// the reference interpreter.
#ifndef AMP_TESTS_PASSES_TRAINING_TEST_H
#define AMP_TESTS_PASSES_TRAINING_TEST_H

#include <cmath>

#include "ir/interp/interp.h"
#include "tests/passes/pass_test.h"

class TrainingTest : public PassTest {
  protected:
    std::string train_; // what the MLP's train block sets besides

    // The MLP with header lines and another optimizer.
    Module *RunMlp(const std::string &header = "", const std::string &optimizer = "adamw(lr = 0.001)",
                   Stage last = STAGE_OPTIMIZER) {
        std::string text = File("tests/passes/mlp.ir");
        const std::string written = "adamw(lr = 0.001)";
        text.replace(text.find(written), written.size(), optimizer);
        text.replace(text.find("  train\n"), 8, header + "  train" + train_ + "\n");
        return Run(Read(text), last);
    }

    static const Op *Find(const Func *f, Opcode code) {
        for (int i = 0; i < f->body.len; i++)
            if (ir_op_at(f, i)->code == code) return ir_op_at(f, i);
        return nullptr;
    }

    static std::string States(const Module *m, StateRole role) {
        std::string names;
        for (int i = 0; i < m->states.len; i++)
            if (m->states.data[i]->role == role)
                names += std::string(names.empty() ? "" : " ") + m->states.data[i]->name;
        return names;
    }

    static bool HasResult(const Func *f, const char *name) {
        for (int i = 0; i < f->results.len; i++)
            if (!strcmp(f->results.data[i].name, name)) return true;
        return false;
    }

    const Func *Step(const Module *m) { return ir_func_find(m, "train_step"); }

    // Runs train_step with rounding: inputs x, states all |number| but for those given; targets 0.  Returns the states
    // after it.
    // A state's first value: the v of constant(v), else 0.
    static double Initial(const State *s) {
        const CallArg *v = ir_call_arg(&s->init, "v");
        return v ? v->value.f : 0;
    }

    // What an optimizer's operand is at first: a constant, or the rate of the text, times the factor of a group.
    static double Rate(const Func *f, const Op *o, int operand) {
        const Op *def = ir_def(f, o->in[operand]);
        if (!def) return Initial(ir_state_of(f, o->in[operand]));
        if (def->code == OP_mul) return Rate(f, def, 0) * Rate(f, def, 1);
        EXPECT_TRUE(def->code == OP_const || def->code == OP_settable_rate) << ir_op_info[def->code].name;
        if (def->code == OP_settable_rate) {
            EXPECT_EQ(ir_attr(def, "v")->f, Rate(f, def, 0));
        }
        return ir_attr(def, def->code == OP_const ? "value" : "v")->f;
    }

    std::map<std::string, std::vector<double>> RunStep(const Func *f, std::map<std::string, double> numbers) {
        std::vector<InterpTensor> given;
        for (int i = 0; i < f->inputs.len; i++) {
            const Value *v = ir_value(f, f->inputs.data[i]);
            InterpTensor t = interp_tensor(&arena_, v->name, &v->shape, {4, 1});
            auto number = numbers.find(v->name);
            for (int64_t j = 0; j < t.count; j++)
                t.data[j] = number != numbers.end() ? number->second : 0.01 * double(j % 7 - 3);
            if (number == numbers.end() && (v->dtype == AMP_DT_I32 || strchr(v->name, '/')))
                for (int64_t j = 0; j < t.count; j++) t.data[j] = 0;
            const State *state = v->kind == VAL_STATE ? ir_state_of(f, f->inputs.data[i]) : nullptr;
            if (state && state->counter.kind == COUNTER_LEARNING_RATE) t.data[0] = Initial(state);
            given.push_back(t);
        }
        InterpOptions rounded = {true, nullptr, nullptr};
        std::vector<InterpTensor> results(size_t(f->results.len) + 1);
        EXPECT_EQ(interp_run(f, {4, 1}, &rounded, given.data(), int(given.size()), results.data(), &error_), AMP_OK)
            << error_.message;
        std::map<std::string, std::vector<double>> out;
        for (const InterpTensor &t : given) out[t.name] = {t.data, t.data + t.count};
        for (int i = 0; i < f->results.len; i++)
            out[f->results.data[i].name] = {results[i].data, results[i].data + results[i].count};
        return out;
    }
};

#endif
