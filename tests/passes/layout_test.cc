// layout and plan: every value is stored where and how its readers want it, and is made before it is read.
#include <gtest/gtest.h>

#include <string>

#include "ir/ir.h"
#include "passes/layout/layout.h"
#include "passes/passes.h"
#include "precision/policy.h"
#include "targets/target.h"

namespace {

const char kModel[] = R"(module "mlp" stage elaborate {
  source "mlp.amp" sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  precision fp16
  loss_scale dynamic(init = 65536.0) at mlp.amp:9:9
  train
  optimizer adamw(lr = 0.001) at mlp.amp:8:8
  metric acc
}
state %a.weight : f32[37, 19] param = zeros() at mlp.amp:2:2 from mlp.amp:2:2
state %a.bias   : f32[37]     param = zeros() at mlp.amp:2:2 from mlp.amp:2:2
state %b.weight : f32[1, 37]  param = zeros() at mlp.amp:2:2 from mlp.amp:2:2
func forward {
  input %x        : f32[N, 19]
  input %targets  : i32[N]
  state %a.weight : f32[37, 19]
  state %a.bias   : f32[37]
  state %b.weight : f32[1, 37]
  %1      = linear(%x, %a.weight, %a.bias) : f32[N, 37] @a.linear layer linear at mlp.amp:2:2
  %h      = gelu(%1)                       : f32[N, 37] @gelu at mlp.amp:2:2
  %logits = linear(%h, %b.weight)          : f32[N, 1]  @b.linear layer linear at mlp.amp:3:3
  %2      = log_softmax(%logits)           : f32[N, 1]  @cross_entropy.log_softmax layer cross_entropy at mlp.amp:4:4
  %loss   = nll_loss(%2, %targets)         : f32        @cross_entropy.nll_loss layer cross_entropy at mlp.amp:4:4
  %acc    = accuracy(%logits, %targets)    : f32        @accuracy at mlp.amp:5:5
  result logits     = %logits
  result loss       = %loss
  result metric.acc = %acc
  result again      = %x
}
)";

struct Case {
    const char *precision;
    bool no_fuse, no_layout;
};

class LayoutTest : public ::testing::TestWithParam<Case> {
  protected:
    Arena arena;
    Module *m = nullptr;

    void SetUp() override {
        arena_init(&arena, nullptr);
        compile(GetParam());
    }
    void TearDown() override { arena_free(&arena); }

    static const Source *builtin(void *user, const char *name) {
        return policy_builtin(static_cast<Arena *>(user), name);
    }

    void compile(const Case &c) {
        Diags d;
        diags_init(&d, &arena);
        Source *source = arena_new(&arena, Source);
        *source = Source{"mlp.ir", kModel, sizeof kModel - 1};
        m = ir_read(&arena, &d, source);
        ASSERT_NE(m, nullptr);
        PassOptions o = {};
        o.precision = c.precision;
        o.find_policy = builtin;
        o.user = &arena;
        o.without[STAGE_FUSE] = c.no_fuse;
        if (c.no_layout) passes_leave_out(&o, "layout");
        amp_error err = {};
        ASSERT_EQ(passes_run(m, &d, &o, STAGE_PLAN, nullptr, nullptr, &err), AMP_OK) << err.message;
    }

    // The first thing that is wrong with a function's buffers, or "".
    static std::string fault(const Func *f) {
        std::vector<bool> written(f->buffers.len + 1);
        for (int i = 0; i < f->kernels.len; i++) {
            const Kernel *k = f->kernels.data[i];
            for (int j = 0; j < k->reads.len; j++) {
                uint32_t id = k->reads.data[j];
                const Buffer *b = f->buffers.data[id - 1];
                bool given = b->kind == BUFFER_INPUT || b->kind == BUFFER_STATE;
                if (!given && !written[id]) return std::string(k->name) + " reads " + b->name + " before it is written";
                if (b->kind == BUFFER_TEMP && (i < b->first || i > b->last))
                    return std::string(b->name) + " is read when it is not live";
            }
            for (int j = 0; j < k->writes.len; j++) written[k->writes.data[j]] = true;
            for (int j = 0; j < k->count; j++) {
                const Op *o = ir_op_at(f, k->first + j);
                for (int n = 0; o->code == OP_contract && n < 2; n++)
                    if (!reads_form(f, k, o->in[n], target_product_form(f, o, n)))
                        return std::string(k->name) + ": operand " + ir_value(f, o->in[n])->name +
                               " is not in the form its product reads";
            }
        }
        return "";
    }

    static bool reads_form(const Func *f, const Kernel *k, Val v, Form form) {
        for (int j = 0; j < k->reads.len; j++) {
            const Buffer *b = f->buffers.data[k->reads.data[j] - 1];
            if (b->value.id == v.id && form_equal(Form{b->layout, b->storage}, form)) return true;
        }
        return false;
    }
};

TEST_P(LayoutTest, EveryValueIsMadeBeforeItIsReadAndInTheFormItsReaderWants) {
    for (int i = 0; i < m->funcs.len; i++) EXPECT_EQ(fault(m->funcs.data[i]), "") << m->funcs.data[i]->name;
}

TEST_P(LayoutTest, AFaultIsSeen) {
    Func *f = ir_func_find(m, "train_step");
    for (int i = 0; i < f->kernels.len; i++)
        if (f->kernels.data[i]->kind == KERNEL_PRODUCT) {
            Buffer *b = f->buffers.data[f->kernels.data[i]->reads.data[0] - 1];
            Layout was = b->layout;
            b->layout = was == LAYOUT_ROWS ? LAYOUT_PANELS : LAYOUT_ROWS;
            EXPECT_NE(fault(f), "");
            b->layout = was;
            break;
        }
    EXPECT_EQ(fault(f), "");
}

// A panel of 32 columns would be mostly padding, and 16-bit values would be stored twice.
TEST_P(LayoutTest, NarrowOperandsAreDense) {
    int narrow = 0;
    const Func *f = ir_func_find(m, "train_step");
    for (int i = 0; i < f->buffers.len; i++) {
        const Buffer *b = f->buffers.data[i];
        const Value *v = ir_value(f, b->value);
        if (v->shape.rank != 2 || !v->shape.d[0].n || v->shape.d[1].n || v->shape.d[1].mul >= 32) continue;
        EXPECT_EQ(b->layout, LAYOUT_ROWS) << v->name;
        narrow++;
    }
    EXPECT_GT(narrow, 0);
}

TEST_P(LayoutTest, WeightsAreNeitherCastNorPackedInAStep) {
    const Func *f = ir_func_find(m, "infer");
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (o->code != OP_cast || ir_value(f, o->in[0])->kind != VAL_STATE) continue;
        bool of_param = ir_state_of(f, o->in[0])->role == STATE_PARAM;
        EXPECT_EQ(of_param, GetParam().no_layout && of_param) << o->path;
    }
}

TEST_P(LayoutTest, EveryCopyOfAWeightIsWrittenWithItAndByRefresh) {
    int derived = 0;
    for (int s = 0; s < m->states.len; s++) {
        const State *state = m->states.data[s];
        if (state->role != STATE_DERIVED) continue;
        derived++;
        for (const char *name : {"train_step", "refresh"}) {
            const Func *f = ir_func_find(m, name);
            ASSERT_NE(f, nullptr);
            const Op *copy = nullptr, *master = nullptr;
            for (int i = 0; i < f->body.len; i++) {
                const Op *o = ir_op_at(f, i);
                if (o->code != OP_assign) continue;
                if (ir_state_of(f, o->in[0]) == state) copy = o;
                if (!strcmp(ir_state_of(f, o->in[0])->name, state->of)) master = o;
            }
            ASSERT_NE(copy, nullptr) << state->name << " in " << name;
            if (!strcmp(name, "train_step")) {
                ASSERT_NE(master, nullptr) << state->name;
                EXPECT_EQ(copy->pred.id, master->pred.id) << state->name;
            }
        }
    }
    EXPECT_EQ(derived == 0, GetParam().no_layout);
}

TEST_P(LayoutTest, ResultsAreRowMajorFloats) {
    for (int i = 0; i < m->funcs.len; i++) {
        const Func *f = m->funcs.data[i];
        for (int b = 0; b < f->buffers.len; b++)
            if (f->buffers.data[b]->kind == BUFFER_OUTPUT) {
                EXPECT_EQ(f->buffers.data[b]->layout, LAYOUT_ROWS);
                EXPECT_NE(f->buffers.data[b]->storage, AMP_DT_F16);
                EXPECT_NE(f->buffers.data[b]->storage, AMP_DT_BF16);
            }
    }
}

TEST_P(LayoutTest, WithoutLayoutOnlyPackedOperandsLeaveRowMajor) {
    if (!GetParam().no_layout) return;
    for (int i = 0; i < m->funcs.len; i++) {
        const Func *f = m->funcs.data[i];
        for (int b = 0; b < f->buffers.len; b++) {
            const Op *def = ir_def(f, f->buffers.data[b]->value);
            bool copy = def && def->code == OP_cast && ir_dtype(f, def->in[0]) == ir_dtype(f, def->out[0]);
            EXPECT_TRUE(copy || f->buffers.data[b]->layout == LAYOUT_ROWS) << f->buffers.data[b]->name;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, LayoutTest,
                         ::testing::Values(Case{"fp16", false, false}, Case{"fp16", true, false},
                                           Case{"fp16", false, true}, Case{"fp16", true, true},
                                           Case{"bf16", false, false}, Case{"bf16", true, true},
                                           Case{"fp32", false, false}, Case{"fp32", true, false},
                                           Case{"fp32", false, true}, Case{"tf32", false, false}));

} // namespace
