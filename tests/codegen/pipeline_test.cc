// pipeline_test.cc: a whole training step through the passes, code generation and the C compiler: with and without
// fusion and layouts the same bits on every instruction set, and near what the float64 interpreter makes of the graph.
#include <fstream>
#include <random>
#include <sstream>

#include "passes/passes.h"
#include "tests/codegen/model_runner.h"

namespace {

struct Variant {
    const char *name;
    bool no_fuse, no_layout;
};
const Variant variants[] = {{"fused in panels", false, false},
                            {"plain", true, true},
                            {"one op per kernel", true, false},
                            {"in rows", false, true}};

class PipelineTest : public CodegenTest, public testing::WithParamInterface<const char *> {
  protected:
    // A small multi-layer perceptron with AdamW and a loss scale, after the pass `optimizer`; written with f16.
    const char *model_ = "tests/codegen/models/mlp.ir";

    Module *Graph() {
        std::ifstream file(model_);
        std::stringstream text;
        text << file.rdbuf();
        std::string t = text.str();
        EXPECT_FALSE(t.empty());
        for (size_t at = t.find("f16"); at != std::string::npos; at = t.find("f16", at + strlen(GetParam())))
            t.replace(at, 3, GetParam());
        return Read(t);
    }

    std::unique_ptr<LoadedModel> CompileVariant(const Variant &v, const char *isa = nullptr) {
        Module *m = Graph();
        PassOptions options = {};
        options.without[STAGE_FUSE] = v.no_fuse;
        if (v.no_layout) passes_leave_out(&options, "layout");
        Diags diags;
        diags_init(&diags, &arena_);
        amp_error err = {};
        EXPECT_EQ(passes_run(m, &diags, &options, STAGE_PLAN, nullptr, nullptr, &err), AMP_OK) << err.message;
        return Compile(m, v.no_fuse || v.no_layout ? kUnoptimised : nullptr, isa);
    }

    Values Start() {
        Values v;
        std::mt19937 engine(3);
        std::normal_distribution<float> normal(0.0f, 0.3f);
        const Module *m = Graph();
        for (int i = 0; i < m->states.len; i++) {
            const State *s = m->states.data[i];
            Dim count;
            shape_count(&s->shape, &count);
            std::vector<double> &data = v[s->name];
            data.assign(static_cast<size_t>(count.mul), 0.0);
            for (double &x : data)
                if (s->role == STATE_PARAM) x = static_cast<double>(normal(engine));
        }
        v["scale"] = {1024.0};
        return v;
    }

    Values Batch(int64_t n, uint32_t seed) {
        Values v;
        std::mt19937 engine(seed);
        std::normal_distribution<float> normal(0.0f, 1.0f);
        const Module *m = Graph();
        const Func *f = ir_func_find(m, "train_step");
        for (int i = 0; i < f->inputs.len; i++) {
            const Value *in = ir_value(f, f->inputs.data[i]);
            Dim count;
            if (in->kind != VAL_INPUT || !shape_count(&in->shape, &count)) continue;
            std::vector<double> &data = v[in->name];
            for (int64_t j = 0; j < dim_eval(count, {n, 1}); j++)
                data.push_back(in->dtype == AMP_DT_F32 ? static_cast<double>(normal(engine))
                               : j == 2                ? -100.0
                                                       : static_cast<double>(engine() % 10));
        }
        return v;
    }

    // The states after a step; derived ones are made anew before it.
    Values Step(const LoadedModel &model, int isa, int64_t n, Values values, Values *results) {
        if (model.Program("refresh")) {
            ProgramRun refresh(model, "refresh", isa, n);
            refresh.Set(values);
            refresh.Run();
            Collect(model, "refresh", refresh, &values);
        }
        ProgramRun run(model, "train_step", isa, n);
        run.Set(values);
        run.Run();
        const amp_model_program *p = model.Program("train_step");
        for (uint32_t i = 0; i < p->results.count; i++) {
            auto &r = static_cast<const amp_model_result *>(p->results.data)[i];
            (*results)[r.name] = run.Get(static_cast<uint32_t>(r.buffer));
        }
        for (uint32_t b = 0; b < p->buffers.count; b++) EXPECT_TRUE(run.PaddingIsZero(b)) << run.buffer(b).name;
        Collect(model, "train_step", run, &values);
        return values;
    }

    static void Collect(const LoadedModel &model, const char *program, const ProgramRun &run, Values *values) {
        for (uint32_t b = 0; b < model.Program(program)->buffers.count; b++)
            if (run.buffer(b).kind == AMP_BUFFER_STATE) (*values)[run.buffer(b).name] = run.Get(b);
    }
};

// Bits, so that NaN equals itself.
bool Same(const std::vector<double> &a, const std::vector<double> &b) {
    return a.size() == b.size() && !memcmp(a.data(), b.data(), a.size() * sizeof a[0]);
}

TEST_P(PipelineTest, FusionAndLayoutsDoNotChangeABit) {
    std::vector<std::unique_ptr<LoadedModel>> models;
    const size_t count = std::string(GetParam()) == "bf16"
                             ? 4
                             : 2; /* bf16 has the most layouts; a model of one op per kernel takes seconds to compile */
    for (size_t v = 0; v < count; v++) {
        models.push_back(CompileVariant(variants[v]));
        ASSERT_NE(models.back(), nullptr) << variants[v].name;
    }
    const int64_t n = 37;
    for (int isa = 0; isa < AMP_ISA_COUNT; isa++) {
        if (!HasIsa(isa)) continue;
        Values states[4] = {Start(), Start(), Start(), Start()};
        for (uint32_t step = 0; step < 3; step++) {
            Values results[4];
            for (size_t v = 0; v < count; v++) {
                Values in = Batch(n, step);
                in.insert(states[v].begin(), states[v].end());
                states[v] = Step(*models[v], isa, n, in, &results[v]);
            }
            EXPECT_GT(results[0]["loss"][0], 0.1);
            for (size_t v = 1; v < count; v++) {
                for (const auto &[name, value] : results[0])
                    ASSERT_TRUE(Same(value, results[v][name]))
                        << name << " of " << variants[v].name << ", isa " << isa << ", step " << step;
                for (const auto &[name, value] : Start())
                    ASSERT_TRUE(Same(states[0][name], states[v][name]))
                        << name << " of " << variants[v].name << ", isa " << isa << ", step " << step;
            }
        }
    }
}

// Every sample of one input beside every one of another, by rows and by columns: the sizes that vectors, tiles and
// panels of 32 have to cut.
class SamplesBySamplesTest : public PipelineTest {
  protected:
    SamplesBySamplesTest() { model_ = "tests/codegen/models/contrast.ir"; }

    void ExpectNear(const Values &results, const Values &expected, const Func *f, double tolerance) {
        for (int i = 0; i < f->results.len; i++) {
            const std::string name = f->results.data[i].name;
            const std::vector<double> &a = results.at(name),
                                      &b = expected.at(ir_value(f, f->results.data[i].value)->name);
            ASSERT_EQ(a.size(), b.size()) << name;
            for (size_t j = 0; j < a.size(); j++)
                ASSERT_NEAR(a[j], b[j], tolerance * std::max(1.0, std::fabs(b[j]))) << name;
        }
    }
};

TEST_P(SamplesBySamplesTest, ForAnyNumberOfThem) {
    const bool exact = std::string(GetParam()) == "f32";
    const char *isa_of_type = IsaOf(std::string("samples ") + GetParam()); // another one each
    auto fused = CompileVariant(variants[0], isa_of_type), plain = CompileVariant(variants[1], isa_of_type);
    ASSERT_TRUE(fused && plain);
    const Module *m = Graph();
    const Func *f = ir_func_find(m, "train_step");
    for (int64_t n : {1, 2, 31, 32, 33, 70}) {
        SCOPED_TRACE(n);
        Values in = Batch(n, static_cast<uint32_t>(n)), given = Start();
        in.insert(given.begin(), given.end());
        given = in;
        const Values expected = Interpret(f, n, &given);
        for (int isa = 0; isa < AMP_ISA_COUNT; isa++) {
            if (!fused->Runs(isa)) continue;
            Values results, of_plain;
            Step(*fused, isa, n, in, &results);
            Step(*plain, isa, n, in, &of_plain);
            for (const auto &[name, value] : results)
                ASSERT_TRUE(Same(value, of_plain[name])) << name << ", isa " << isa;
            ExpectNear(results, expected, f, exact ? 2e-5 : 3e-2);
        }
    }
}

class InterpreterTest : public PipelineTest {};

TEST_P(InterpreterTest, IsFollowed) {
    auto model = CompileVariant(variants[0], HasIsa(AMP_ISA_V3) ? "portable" : nullptr);
    ASSERT_NE(model, nullptr);
    const Module *m = Graph();
    const Func *f = ir_func_find(m, "train_step");
    const int64_t n = 37;
    const bool exact = std::string(GetParam()) == "f32";
    Values want = Start(), got = Start();
    for (uint32_t step = 0; step < 3; step++) {
        Values results, in = Batch(n, step), given;
        in.insert(got.begin(), got.end());
        got = Step(*model, AMP_ISA_PORTABLE, n, in, &results);
        for (int i = 0; i < f->inputs.len; i++) {
            const char *name = ir_value(f, f->inputs.data[i])->name;
            given[name] = want.count(name) ? want[name] : Batch(n, step)[name];
        }
        const Values expected = Interpret(f, n, &given);
        for (const auto &[name, value] : given)
            if (want.count(name)) want[name] = value;
        for (int i = 0; i < f->results.len; i++) {
            const std::string name = f->results.data[i].name, value = ir_value(f, f->results.data[i].value)->name;
            const std::vector<double> &a = results[name], &b = expected.at(value);
            ASSERT_EQ(a.size(), b.size()) << name;
            for (size_t j = 0; j < a.size(); j++)
                ASSERT_NEAR(a[j], b[j], (exact ? 2e-5 : 3e-2) * std::max(1.0, std::fabs(b[j])))
                    << name << " step " << step;
        }
    }
    /* Adam divides by the root of the second moment: where that is near nothing, a rounding moves a weight by as
     * much as a step. */
    for (const auto &[name, value] : want)
        for (size_t j = 0; j < value.size(); j++)
            ASSERT_NEAR(got[name][j], value[j], (exact ? 1e-4 : 1e-2) * std::max(1.0, std::fabs(value[j]))) << name;
}

static std::string TypeName(const testing::TestParamInfo<const char *> &info) { return info.param; }
/* One op per kernel is slow to compile: the two types whose rounding and layouts could differ. */
INSTANTIATE_TEST_SUITE_P(Types, PipelineTest, testing::Values("f16", "bf16"), TypeName);
INSTANTIATE_TEST_SUITE_P(Types, SamplesBySamplesTest, testing::Values("f32", "f16", "bf16"), TypeName);
INSTANTIATE_TEST_SUITE_P(Types, InterpreterTest, testing::Values("f32", "tf32", "f16", "bf16"), TypeName);

} // namespace
