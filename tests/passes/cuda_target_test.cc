// cuda_target_test.cc: fuse, layout and plan for CUDA: what docs/design/cuda.md asks of kernels and buffers.
#include <algorithm>
#include <cstring>

#include "ir/places.h"
#include "passes/fuse/kernel_check.h"
#include "passes/launch/launch.h"
#include "passes/launch/plan_check.h"
#include "precision/policy.h"
#include "targets/target.h"
#include "tests/passes/pass_test.h"

namespace {

const Source *BuiltinPolicy(void *arena, const char *name) { return policy_builtin(static_cast<Arena *>(arena), name); }

class CudaTargetTest : public PassTest {
  protected:
    Module *PlannedText(const std::string &text) {
        PassOptions o = {};
        o.target = &target_cuda;
        amp_error err = {};
        Module *m = Read(text);
        EXPECT_EQ(AMP_OK, passes_run(m, &diags_, &o, STAGE_PLAN, nullptr, nullptr, &err)) << err.message;
        return m;
    }
    Module *Planned(const std::string &file, const char *precision, bool no_fuse = false) {
        Module *m = Read(File("tests/passes/" + file));
        PassOptions o = {};
        o.precision = precision;
        o.find_policy = BuiltinPolicy;
        o.user = &arena_;
        o.without[STAGE_FUSE] = no_fuse;
        o.target = &target_cuda;
        amp_error err = {};
        EXPECT_EQ(AMP_OK, passes_run(m, &diags_, &o, STAGE_PLAN, nullptr, nullptr, &err))
            << err.message << Diagnostics();
        return m;
    }

    static bool Updates(const Func *f, const Kernel *k) {
        for (int i = 0; i < k->count; i++) {
            const Op *o = ir_op_at(f, k->first + i);
            if (o->region && !strcmp(f->regions.data[o->region - 1].op, "adamw") && ir_shape(f, o->out[0])->rank)
                return true;
        }
        return false;
    }
};

const char *const kModels[] = {"mlp.ir", "images.ir", "tokens.ir", "cnn.ir"};
const char *const kPrecisions[] = {"fp16", "bf16", "tf32", "fp32"};

TEST_F(CudaTargetTest, EverythingIsDenseAndInItsOwnType) {
    for (const char *model : kModels)
        for (const char *precision : kPrecisions) {
            SCOPED_TRACE(std::string(model) + " " + precision);
            const Module *m = Planned(model, precision);
            for (int i = 0; i < m->states.len; i++)
                EXPECT_EQ(LAYOUT_ROWS, m->states.data[i]->layout) << m->states.data[i]->name;
            for (int i = 0; i < m->funcs.len; i++) {
                const Func *f = m->funcs.data[i];
                for (int j = 0; j < f->buffers.len; j++) {
                    const Buffer *b = f->buffers.data[j];
                    Dtype t = ir_dtype(f, b->value);
                    EXPECT_EQ(LAYOUT_ROWS, b->layout) << b->name;
                    if (b->kind != BUFFER_TEMP && b->kind != BUFFER_STATE) continue;
                    EXPECT_EQ(t == AMP_DT_TF32 ? AMP_DT_F32 : t, b->storage) << b->name;
                }
            }
        }
}

// The optimizer is elementwise and alone: its kernels can become one launch.
TEST_F(CudaTargetTest, TheOptimizerStandsInKernelsOfItsOwn) {
    for (const char *precision : kPrecisions) {
        const Module *m = Planned("mlp.ir", precision);
        const Func *f = ir_func_find(m, "train_step");
        int updates = 0;
        for (int i = 0; i < f->kernels.len; i++) {
            const Kernel *k = f->kernels.data[i];
            if (!Updates(f, k)) continue;
            updates++;
            EXPECT_EQ(KERNEL_TILE, k->kind) << precision << " " << k->title;
        }
        EXPECT_EQ(4, updates) << precision; /* weights and biases of two layers */
    }
}

TEST_F(CudaTargetTest, KernelsKeepTheRulesOfFusion) {
    for (const char *model : kModels)
        for (bool no_fuse : {false, true}) {
            const Module *m = Planned(model, "fp16", no_fuse);
            for (int i = 0; i < m->funcs.len; i++) {
                const char *wrong = kernel_check(m->funcs.data[i]);
                EXPECT_EQ(nullptr, wrong) << model << ": " << wrong;
            }
        }
}

// What is one launch keeps what each kernel makes.
TEST_F(CudaTargetTest, NothingTakesAPlaceInAJoinedFunction) {
    const Func *f = ir_func_find(Planned("mlp.ir", "fp16"), "train_step");
    ASSERT_TRUE(f->joined);
    for (int i = 0; i < f->buffers.len; i++) EXPECT_EQ(0u, f->buffers.data[i]->place) << f->buffers.data[i]->name;
}

// Softmax with cross-entropy writes the gradient over the logits, where nothing else reads them.
TEST_F(CudaTargetTest, TheGradientTakesThePlaceOfTheLogits) {
    for (const char *precision : kPrecisions) {
        const Module *m = Planned("mlp.ir", precision);
        Func *f = ir_func_find(m, "train_step");
        int taken = 0;
        f->joined = false; // a launch for each kernel
        plan_buffers(f);
        for (int i = 0; i < f->buffers.len; i++) {
            const Buffer *b = f->buffers.data[i];
            if (!b->place) continue;
            const Buffer *in = f->buffers.data[b->place - 1];
            EXPECT_EQ(b->first, in->last) << b->name;
            EXPECT_EQ(b->storage, in->storage) << b->name;
            taken += !strcmp(ir_value(f, in->value)->name, "logits");
        }
        EXPECT_EQ(1, taken) << precision;
    }
}

TEST_F(CudaTargetTest, TheTargetIsPartOfTheText) {
    Module *m = Planned("mlp.ir", "bf16");
    Text text;
    text_init(&text, &arena_);
    ir_print(&text, m);
    EXPECT_NE(nullptr, strstr(text_str(&text), "\n  target cuda\n"));
    Module *again = Read(text_str(&text));
    ASSERT_NE(nullptr, again) << Diagnostics();
    EXPECT_STREQ("cuda", again->target);
    EXPECT_EQ(STAGE_PLAN, again->stage);
}

TEST_F(CudaTargetTest, ThePitchOfLongRowsIsPartOfTheText) {
    const std::string text = R"(module "m" stage lower {
}
func infer {
  input %x : f16[N, 24]
  input %w : f16[24, 257]
  %1 = contract(%x, %w) : f32[N, 257]
  %2 = cast(%1)         : f16[N, 257]
  %3 = contract(%2, %w; tb = true) : f32[N, 24]
  result y = %3
}
)";
    Module *m = PlannedText(text);
    const std::string planned = Print(m), pitch = "f16 rows pitch 264 live";
    const size_t at = planned.find(pitch);
    ASSERT_NE(std::string::npos, at) << planned;
    EXPECT_EQ(planned, Print(Read(planned)));
    std::string other = planned;
    PassOptions o = {};
    o.target = &target_cuda;
    amp_error err = {};
    m = Read(other.replace(at, pitch.size(), "f16 rows pitch 272 live"));
    EXPECT_EQ(AMP_BAD_SOURCE, passes_run(m, &diags_, &o, STAGE_PLAN, nullptr, nullptr, &err));
    EXPECT_NE(nullptr, strstr(err.message, "but the ops need")) << err.message;
}

// A reshape in front of a product copies nothing: it is its operand's memory, for as long as either is read; what is
// written over operands stays off it until then.
TEST_F(CudaTargetTest, AReshapeAloneHasTheMemoryOfItsOperand) {
    const std::string text = R"(module "m" stage lower {
}
func infer {
  input %x : f32[N, 4, 6, 8]
  input %w : f32[192, 24]
  input %v : f32[48, 24]
  %1 = permute(%x; dims = (0, 3, 1, 2)) : f32[N, 8, 4, 6]
  %2 = reshape(%1) : f32[N, 192]
  %3 = contract(%2, %w) : f32[N, 24]
  %4 = reshape(%1) : f32[4 * N, 48]
  %5 = contract(%4, %v) : f32[4 * N, 24]
  %6 = neg(%1) : f32[N, 8, 4, 6]
  %7 = permute(%6; dims = (0, 2, 1, 3)) : f32[N, 4, 8, 6]
  result a = %3
  result b = %5
  result c = %7
}
)";
    Module *m = PlannedText(text);
    const Func *f = m->funcs.data[0];
    int still = 0, renamed = 0, last = 0, negated = 0;
    for (int i = 0; i < f->kernels.len; i++) still += ir_is_still(f, f->kernels.data[i]);
    for (int i = 0; i < f->buffers.len; i++) {
        const Buffer *b = f->buffers.data[i];
        const std::string name = ir_value(f, b->value)->name;
        if (name == "6") negated = b->place ? b->first : f->kernels.len;
        if (!ir_is_renamed(f, b)) continue;
        renamed++;
        last = std::max(last, b->last);
        EXPECT_STREQ("1", ir_value(f, f->buffers.data[b->place - 1]->value)->name);
        EXPECT_EQ(b->last, f->buffers.data[b->place - 1]->last) << "one memory has one end";
    }
    EXPECT_EQ(2, still);
    EXPECT_EQ(2, renamed);
    EXPECT_GE(negated, last) << "the operand is overwritten while its other names are read";
    EXPECT_EQ(Print(m), Print(Read(Print(m))));
}

// Parts are in the text, and what is read may not have them elsewhere.
TEST_F(CudaTargetTest, PartsOfRowsArePartOfTheText) {
    const std::string text = R"(module "m" stage lower {
}
func infer {
  input %x : f16[N, 16]
  input %w : f16[16, 8]
  input %v : f16[24, 8]
  %1 = contract(%x, %w) : f32[N, 8]
  %a = cast(%1) : f16[N, 8]
  %2 = contract(%x, %w) : f32[N, 8]
  %b = cast(%2) : f16[N, 8]
  %3 = contract(%x, %w) : f32[N, 8]
  %c = cast(%3) : f16[N, 8]
  %all = concat(%a, %b, %c; dim = 1) : f16[N, 24]
  %y = contract(%all, %v) : f32[N, 8]
  result y = %y
}
)";
    const std::string planned = Print(PlannedText(text)), part = "rows pitch 24 part 8 ";
    const size_t at = planned.find(part);
    ASSERT_NE(std::string::npos, at) << planned;
    EXPECT_EQ(planned, Print(Read(planned)));
    PassOptions o = {};
    o.target = &target_cuda;
    for (const auto &[wrong, says] : {std::pair{"rows pitch 24 part 16", "but the ops need"},
                                      {"rows pitch 24 part 4", "does not fit into rows of 24 elements"},
                                      {"rows pitch 24 part 24", "does not fit into rows of 24 elements"}}) {
        std::string other = planned;
        amp_error err = {};
        Module *m = Read(other.replace(at, part.size(), std::string(wrong) + " "));
        EXPECT_EQ(AMP_BAD_SOURCE, passes_run(m, &diags_, &o, STAGE_PLAN, nullptr, nullptr, &err)) << wrong;
        EXPECT_NE(nullptr, strstr(err.message, says)) << err.message;
    }
}

// What no plan may be, whoever made it.
TEST_F(CudaTargetTest, PartsThatLieOnOthersAreFound) {
    const std::string text = R"(module "m" stage lower {
}
func infer {
  input %x : f16[N, 16]
  input %w : f16[16, 8]
  input %v : f16[16, 8]
  %1 = contract(%x, %w) : f32[N, 8]
  %a = cast(%1) : f16[N, 8]
  %2 = contract(%x, %w) : f32[N, 8]
  %b = cast(%2) : f16[N, 8]
  %both = concat(%a, %b; dim = 1) : f16[N, 16]
  %y = contract(%both, %v) : f32[N, 8]
  result y = %y
}
)";
    const auto wrong = [&](void (*damage)(Buffer * a, Buffer * b)) -> std::string {
        Module *m = PlannedText(text);
        Func *f = m->funcs.data[0];
        std::vector<Buffer *> parts;
        for (int i = 0; i < f->buffers.len; i++)
            if (f->buffers.data[i]->is_part) parts.push_back(f->buffers.data[i]);
        EXPECT_EQ(2u, parts.size());
        EXPECT_EQ(nullptr, parts_check(f));
        damage(parts[0], parts[1]);
        const char *found = parts_check(f);
        return found ? found : "";
    };
    EXPECT_EQ("kernel k01 writes buffer b04 over others", wrong([](Buffer *, Buffer *b) { b->column = 0; }));
    EXPECT_EQ("kernel k02 moves nothing, but its result is not in place",
              wrong([](Buffer *a, Buffer *b) { std::swap(a->column, b->column); }));
    EXPECT_EQ("buffer b04 lives longer than its memory", wrong([](Buffer *, Buffer *b) { b->last++; }));
}

TEST_F(CudaTargetTest, ATargetThatDoesNotExistIsAnError) {
    Module *m = Read("module \"m\" stage plan {\n  target tpu\n}\n");
    PassOptions o = {};
    amp_error err = {};
    EXPECT_EQ(AMP_BAD_SOURCE, passes_run(m, &diags_, &o, STAGE_PLAN, nullptr, nullptr, &err));
    EXPECT_STREQ("module m is not valid: there is no target tpu; the targets are cpu, cuda", err.message);
}

} // namespace
