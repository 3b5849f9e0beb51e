#include "tests/codegen/core_model.h"

std::string CoreModelTest::Text(const std::string &body, const std::string &states) {
    return "module \"core\" stage lower {\n}\n" + states + "func infer {\n" + body + "}\n";
}

std::string CoreModelTest::Sorted(const std::string &body) {
    std::string parts[3], line;
    for (std::istringstream lines(body); std::getline(lines, line);)
        parts[line.find("  input ") == 0 ? 0 : line.find("  result ") == 0 ? 2 : 1] += line + "\n";
    return parts[0] + parts[1] + parts[2];
}

Module *CoreModelTest::Planned(const std::string &text, bool no_fuse, bool no_layout) {
    Module *m = Read(text);
    if (!m) return nullptr;
    PassOptions options = {};
    options.without[STAGE_FUSE] = no_fuse;
    if (no_layout) passes_leave_out(&options, "layout");
    Diags diags;
    diags_init(&diags, &arena_);
    amp_error err = {};
    EXPECT_EQ(passes_run(m, &diags, &options, STAGE_PLAN, nullptr, nullptr, &err), AMP_OK) << err.message;
    for (int i = 0; i < m->funcs.len && !no_fuse; i++)
        EXPECT_EQ(kernel_check(m->funcs.data[i]), nullptr) << kernel_check(m->funcs.data[i]) << Print(m);
    return m;
}

std::string CoreModelTest::Print(const Module *m) {
    struct Text t;
    text_init(&t, &arena_);
    ir_print(&t, m);
    return text_str(&t);
}

Values CoreModelTest::Draw(const Module *m, const Func *f, int64_t n) {
    Values v;
    std::mt19937 engine(static_cast<uint32_t>(n) + 5);
    std::normal_distribution<float> normal(0.0f, 1.0f);
    for (int i = 0; i < f->inputs.len; i++) {
        const Value *x = ir_value(f, f->inputs.data[i]);
        const InterpTensor t = interp_tensor(m->arena, x->name, &x->shape, {n, run_length});
        std::vector<double> &data = v[x->name];
        for (int64_t j = 0; j < t.count; j++) {
            const bool whole = x->dtype == AMP_DT_I32 || x->dtype == AMP_DT_I64 || x->dtype == AMP_DT_U8;
            data.push_back(whole                     ? engine() % 5
                           : x->dtype == AMP_DT_BOOL ? engine() % 2
                                                     : static_cast<double>(amp_round_dtype(x->dtype, normal(engine))));
        }
    }
    return v;
}

void CoreModelTest::Check(const std::string &text, const std::vector<int64_t> &batches, double tolerance) {
    Values first[AMP_ISA_COUNT][8];
    const size_t hash = std::hash<std::string>()(text);
    const int other = 1 + static_cast<int>(hash % 3);
    const bool all = getenv("AMP_VARIANTS"), optimised = all || hash / 3 % 3 == 0, alone = hash / 9 % 2;
    for (int variant = 0; variant < 4; variant++) {
        if (variant && (variant != other || alone) && !all) continue;
        const bool no_fuse = variant & 1, no_layout = variant & 2;
        Module *m = Planned(text, no_fuse, no_layout);
        ASSERT_NE(m, nullptr);
        auto model = Compile(m, variant || !optimised ? kUnoptimised : nullptr, every_isa_ ? nullptr : IsaOf(text));
        ASSERT_NE(model, nullptr) << Print(m);
        for (size_t i = 0; i < batches.size(); i++) {
            const Values given = Draw(m, m->funcs.data[0], batches[i]);
            Values after = given;
            const Values want = Interpret(m->funcs.data[0], batches[i], &after);
            for (int isa = 0; isa < AMP_ISA_COUNT; isa++)
                if (model->Runs(isa))
                    CheckRun(m, *model, batches[i], isa, tolerance, variant, given, want, &first[isa][i]);
        }
        if (HasFailure()) {
            ADD_FAILURE() << Print(m);
            return;
        }
    }
}

void CoreModelTest::CheckRun(const Module *m, const LoadedModel &model, int64_t n, int isa, double tolerance,
                             int variant, const Values &given, const Values &want, Values *first) {
    const Func *f = m->funcs.data[0];
    ProgramRun run(model, f->name, isa, n);
    run.Set(given);
    run.Run();
    Values got;
    auto *program = model.Program(f->name);
    auto *results = static_cast<const amp_model_result *>(program->results.data);
    for (uint32_t i = 0; i < program->results.count; i++) {
        const uint32_t b = static_cast<uint32_t>(results[i].buffer);
        got[results[i].name] = run.Get(b);
        const std::string value = ir_value(f, f->results.data[i].value)->name;
        Compare(got[results[i].name], want.at(value), tolerance,
                std::string(results[i].name) + ", isa " + std::to_string(isa) + ", variant " + std::to_string(variant) +
                    ", n " + std::to_string(n));
    }
    for (uint32_t b = 0; b < program->buffers.count; b++)
        EXPECT_TRUE(run.PaddingIsZero(b)) << run.buffer(b).name << " variant " << variant;
    if (variant == 0) *first = got;
    for (const auto &entry : got) {
        const std::vector<double> &other = first->at(entry.first);
        ASSERT_EQ(other.size(), entry.second.size());
        for (size_t i = 0; i < other.size(); i++)
            ASSERT_TRUE(other[i] == entry.second[i] || (std::isnan(other[i]) && std::isnan(entry.second[i])))
                << entry.first << "[" << i << "] differs in variant " << variant << ": " << entry.second[i] << " "
                << other[i];
    }
}

void CoreModelTest::Compare(const std::vector<double> &got, const std::vector<double> &want, double tolerance,
                            const std::string &what) {
    ASSERT_EQ(got.size(), want.size()) << what;
    for (size_t i = 0; i < got.size(); i++) {
        if (std::isnan(want[i]) && std::isnan(got[i])) continue;
        if (got[i] == want[i]) continue;
        ASSERT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::fabs(want[i]))) << what << " [" << i << "]";
    }
}
