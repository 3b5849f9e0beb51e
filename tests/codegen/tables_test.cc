// tables_test.cc: the descriptor says what the module holds.
#include <fstream>
#include <sstream>

#include "passes/passes.h"
#include "amp/version.h"
#include "base/hash.h"
#include "tests/codegen/model_runner.h"

namespace {

class TablesTest : public CodegenTest {
  protected:
    void SetUp() override {
        std::ifstream file("tests/codegen/models/mlp.ir");
        std::stringstream text;
        text << file.rdbuf() << R"(
decision @fc1.linear linear(f16, f16, f16) : f16
  because {lower, torch-f16:4} policy "op matmul, linear lower" at mlp.amp:8:9
)";
        m_ = Read(text.str());
        ASSERT_NE(m_, nullptr);
        PassOptions options = {};
        Diags diags;
        diags_init(&diags, &arena_);
        amp_error err = {};
        ASSERT_EQ(passes_run(m_, &diags, &options, STAGE_PLAN, nullptr, nullptr, &err), AMP_OK) << err.message;
        if (!model_) model_ = Compile(m_); /* once for all tests */
        ASSERT_NE(model_, nullptr);
    }

    template <typename T> std::vector<T> Table(const amp_model_table &t) {
        EXPECT_EQ(t.elem_size, sizeof(T));
        auto *data = static_cast<const T *>(t.data);
        return std::vector<T>(data, data + t.count);
    }
    const amp_model_desc &desc() { return *model_->desc(); }

    Module *m_ = nullptr;
    static std::shared_ptr<LoadedModel> model_;
};
std::shared_ptr<LoadedModel> TablesTest::model_;

TEST_F(TablesTest, Head) {
    EXPECT_EQ(desc().magic, AMP_MODEL_MAGIC);
    EXPECT_EQ(desc().struct_size, sizeof(amp_model_desc));
    EXPECT_STREQ(desc().name, "mlp");
    EXPECT_STREQ(desc().version, AMP_VERSION);
    EXPECT_STREQ(desc().policy, "torch-f16");
    EXPECT_STREQ(desc().low, "f16");
    EXPECT_STREQ(desc().optimizer, "adamw(lr = 0.001)");
    EXPECT_EQ(desc().graph_ops, 1);
}

TEST_F(TablesTest, IrTextParsesBackToItself) {
    const std::string kept = model_->Kept(AMP_MODEL_IR_SECTION);
    Module *again = Read(kept.c_str());
    ASSERT_NE(again, nullptr);
    Text t;
    text_init(&t, &arena_);
    ir_print(&t, again);
    EXPECT_EQ(text_str(&t), kept);
    uint8_t digest[32];
    amp_sha256_of(kept.data(), kept.size(), digest);
    EXPECT_EQ(memcmp(digest, desc().ir_sha256, sizeof digest), 0);
}

// Random bytes do not shrink, so that more than one chunk goes through, and text that repeats does.
TEST_F(TablesTest, KeptTextIsPackedAndComesBack) {
    std::string noise(200000, ' '), text;
    uint32_t seed = 7;
    for (char &c : noise) c = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
    for (int i = 0; i < 20000; i++) text += "  %h = add(%a, %b) # the same line again\n";
    for (const std::string &whole : {std::string(), std::string("a"), text, noise}) {
        Text in, packed, out;
        text_init(&in, &arena_), text_init(&packed, &arena_), text_init(&out, &arena_);
        text_write(&in, whole.data(), whole.size());
        kept_text_pack(&in, &packed);
        ASSERT_TRUE(kept_text_is_packed(text_str(&packed), packed.len));
        ASSERT_TRUE(kept_text_unpack(text_str(&packed), packed.len, &out));
        EXPECT_TRUE(std::string(text_str(&out), out.len) == whole);
        EXPECT_LT(packed.len, whole == text ? whole.size() / 50 : whole.size() + 200);
        for (size_t cut : {size_t{1}, packed.len / 2, packed.len - 1}) {
            text_init(&out, &arena_);
            EXPECT_FALSE(kept_text_unpack(text_str(&packed), cut, &out)) << cut << " of " << packed.len;
        }
        packed.data[packed.len - 1] ^= 1; // of its checksum
        text_init(&out, &arena_);
        EXPECT_FALSE(kept_text_unpack(text_str(&packed), packed.len, &out));
    }
}

TEST_F(TablesTest, InputsInOrderWithTheBoundOfLabels) {
    const auto inputs = Table<amp_model_input>(desc().inputs);
    ASSERT_EQ(inputs.size(), 2u);
    EXPECT_STREQ(inputs[0].name, "x");
    EXPECT_EQ(inputs[0].index_bound, 0);
    EXPECT_EQ(inputs[0].rank, 2u);
    EXPECT_TRUE(inputs[0].dims[0].of_n);
    EXPECT_EQ(inputs[0].dims[1].mul, 16);
    EXPECT_STREQ(inputs[1].name, "targets");
    EXPECT_EQ(inputs[1].dtype, static_cast<uint32_t>(AMP_DT_I32));
    EXPECT_EQ(inputs[1].index_bound, 10);
    EXPECT_EQ(inputs[1].index_ignore, -100);
}

TEST_F(TablesTest, StatesPointAtTheirParameters) {
    const auto states = Table<amp_model_state>(desc().states);
    ASSERT_EQ(states.size(), static_cast<size_t>(m_->states.len));
    for (size_t i = 0; i < states.size(); i++) {
        const State *s = m_->states.data[i];
        EXPECT_STREQ(states[i].name, s->name);
        EXPECT_EQ(states[i].role, static_cast<uint32_t>(s->role));
        EXPECT_EQ(states[i].layout, static_cast<uint32_t>(s->layout));
        const bool has_of = s->role == STATE_MOMENT || s->role == STATE_DERIVED;
        ASSERT_EQ(states[i].of >= 0, has_of) << s->name;
        if (has_of) {
            EXPECT_STREQ(states[static_cast<size_t>(states[i].of)].name, s->of);
        }
        EXPECT_STREQ(states[i].slot, s->slot);
    }
    EXPECT_STREQ(states[0].init, "zeros");
}

TEST_F(TablesTest, ProgramsAreWhole) {
    const auto programs = Table<amp_model_program>(desc().programs);
    ASSERT_GE(programs.size(), 2u);
    EXPECT_STREQ(programs[0].name, "train_step");
    EXPECT_STREQ(programs.back().name, "refresh");
    size_t products = 0, updates = 0, predicates = 0;
    for (const auto &p : programs) {
        const auto buffers = Table<amp_model_buffer>(p.buffers);
        for (const auto &b : buffers) {
            EXPECT_EQ(b.kind == AMP_BUFFER_STATE || b.kind == AMP_BUFFER_INPUT || b.kind == AMP_BUFFER_LOOK,
                      b.index >= 0)
                << b.name;
            if (b.kind == AMP_BUFFER_INPUT) {
                EXPECT_STREQ(Table<amp_model_input>(desc().inputs)[static_cast<size_t>(b.index)].name, b.name);
            }
            if (b.kind == AMP_BUFFER_STATE) {
                EXPECT_STREQ(Table<amp_model_state>(desc().states)[static_cast<size_t>(b.index)].name, b.name);
            }
        }
        for (const auto &k : Table<amp_model_kernel>(p.kernels)) {
            for (uint32_t i = 0; i < k.operand_count; i++) ASSERT_LT(k.operands[i], buffers.size());
            EXPECT_NE(k.run[AMP_ISA_PORTABLE], nullptr);
#if defined(__x86_64__)
            for (amp_kernel_fn run : k.run) EXPECT_NE(run, nullptr);
#endif
            ASSERT_LT(k.predicate, static_cast<int32_t>(buffers.size()));
            predicates += k.predicate >= 0;
            updates += k.update_count;
            if (k.kind != AMP_KERNEL_PRODUCT) continue;
            products++;
            ASSERT_LT(static_cast<uint32_t>(k.product.a), k.operand_count);
            ASSERT_LT(static_cast<uint32_t>(k.product.b), k.operand_count);
            EXPECT_EQ(buffers[k.operands[k.product.b]].storage, k.product.operand);
        }
        for (const auto &r : Table<amp_model_result>(p.results))
            ASSERT_LT(static_cast<size_t>(r.buffer), buffers.size());
    }
    EXPECT_GE(products, 5u);
    EXPECT_EQ(updates, 6u); /* two weights with two moments */
    EXPECT_GE(predicates, 4u);
}

TEST_F(TablesTest, DecisionsKeepTheirReasons) {
    const auto decisions = Table<amp_model_decision>(desc().decisions);
    ASSERT_EQ(decisions.size(), 1u);
    EXPECT_STREQ(decisions[0].path, "fc1.linear");
    EXPECT_EQ(decisions[0].out, static_cast<uint32_t>(AMP_DT_F16));
    EXPECT_STREQ(decisions[0].reason->rule, "lower");
    EXPECT_STREQ(decisions[0].reason->text, "{lower, torch-f16:4}");
    EXPECT_STREQ(decisions[0].reason->policy_text, "op matmul, linear lower");
    EXPECT_EQ(decisions[0].line, 8);
}

} // namespace
