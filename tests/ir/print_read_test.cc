// The text form is the IR: what is printed reads back to the same module, and malformed text is refused with its place.
#include <cmath>
#include <limits>

#include "tests/ir/ir_test.h"

namespace {

using PrintRead = IrTest;

Shape Matrix(int64_t rows, int64_t cols) {
    Dim d[] = {dim_const(rows), dim_const(cols)};
    return shape_of(2, d);
}

TEST_F(PrintRead, GoldenTextsAreFixedPoints) {
    for (const char *name : {"graph.ir", "training.ir", "kernels.ir"}) {
        std::string text = Golden(name);
        Module *m = Read(text);
        ASSERT_NE(m, nullptr) << error_;
        EXPECT_EQ(Print(m), text);
        EXPECT_STREQ(ir_verify(m), nullptr);
    }
}

// Compaction of a module that was just read changes nothing, but for what is dead.
TEST_F(PrintRead, ReadingGivesTheIdsThatCompactionGives) {
    Module *m = Read(Golden("kernels.ir"));
    ASSERT_NE(m, nullptr) << error_;
    std::string before = Print(m);
    ir_compact(m);
    EXPECT_EQ(m->states.len, 2); /* "w/f16" is read by no function */
    Module *again = Read(Print(m));
    ASSERT_NE(again, nullptr) << error_;
    const Func *f = m->funcs.data[0], *g = again->funcs.data[0];
    ASSERT_EQ(f->values.len, g->values.len);
    for (int i = 1; i < f->values.len; i++) {
        EXPECT_STREQ(f->values.data[i]->name, g->values.data[i]->name);
        EXPECT_EQ(f->values.data[i]->def.id, g->values.data[i]->def.id);
    }
    for (int i = 0; i < f->body.len; i++) EXPECT_EQ(f->body.data[i].id, g->body.data[i].id);
    EXPECT_EQ(f->buffers.data[3]->state, 2u); /* the state moved up */
    EXPECT_NE(before, Print(m));
}

TEST_F(PrintRead, FieldsSurvive) {
    Module *m = Read(Golden("graph.ir"));
    ASSERT_NE(m, nullptr) << error_;
    EXPECT_EQ(m->stage, STAGE_OPTIMIZER);
    EXPECT_STREQ(m->policy_name, "torch-fp16");
    EXPECT_EQ(m->low, AMP_DT_F16);
    EXPECT_EQ(m->consts.data[1].value, -3);
    EXPECT_TRUE(m->overrides.data[1].is_path);
    EXPECT_STREQ(m->overrides.data[1].because, "embedding outliers, measured \"2.1e4\"");
    EXPECT_TRUE(std::isinf(ir_call_arg(&m->loss_scale, "max")->value.f));
    EXPECT_EQ(ir_call_arg(&m->loss_scale, "interval")->type, ATTR_INT);
    EXPECT_EQ(ir_call_arg(&m->trains.data[0].optimizer, "amsgrad")->type, ATTR_BOOL);
    EXPECT_EQ(m->trains.data[0].optimizer.pos.column, 17);
    const State *moment = ir_state_find(m, "fc1.weight/m");
    EXPECT_EQ(moment->role, STATE_MOMENT);
    EXPECT_STREQ(moment->of, "fc1.weight");
    EXPECT_STREQ(moment->slot, "m");
    const Func *f = ir_func_find(m, "train_step");
    const Op *dropout = ir_def(f, ir_find(f, "3"));
    EXPECT_STREQ(ir_attr(dropout, "key")->s, "drop \"1\"\n");
    EXPECT_STREQ(dropout->reason->relation, "input");
    EXPECT_STREQ(dropout->reason->neighbour, "fc1.linear");
    const Op *gelu = ir_def(f, ir_find(f, "logits"));
    EXPECT_TRUE(gelu->reason->is_override);
    EXPECT_EQ(gelu->reason->where.line, 28);
    EXPECT_STREQ(gelu->reason->because, "outliers");
    EXPECT_STREQ(gelu->pos.file, "my model.amp");
    const Op *assign = ir_op_at(f, f->body.len - 4);
    EXPECT_EQ(assign->code, OP_update_scale);
    EXPECT_STREQ(ir_value(f, ir_op_at(f, f->body.len - 5)->pred)->name, "12");
    EXPECT_EQ(m->decisions.data[0].operands.len, 2);
    ASSERT_EQ(m->decisions.data[0].casts.len, 2);
    EXPECT_STREQ(m->decisions.data[0].casts.data[1].value, "fc1.weight");
    EXPECT_EQ(m->decisions.data[0].casts.data[1].from, AMP_DT_F32);
    EXPECT_EQ(m->decisions.data[0].casts.data[1].to, AMP_DT_F16);
    EXPECT_STREQ(m->removed.data[1].value, "odd/one");
}

TEST_F(PrintRead, TrainingSurvives) {
    Module *m = Read(Golden("training.ir"));
    ASSERT_NE(m, nullptr) << error_;
    EXPECT_TRUE(m->has_train);
    EXPECT_EQ(m->accumulate, 4);
    EXPECT_STREQ(m->eval_precision, "fp32");
    ASSERT_EQ(m->trains.len, 3);
    const Train &gen = m->trains.data[0];
    EXPECT_STREQ(gen.only, "gen.*");
    EXPECT_STREQ(gen.loss, "loss.0");
    EXPECT_EQ(gen.clip_norm, 1.0);
    EXPECT_EQ(gen.clip_value, 0.5);
    EXPECT_EQ(gen.every, 2);
    EXPECT_EQ(gen.ema, 0.999);
    EXPECT_EQ(gen.pos.line, 20);
    const CallArg *lr = ir_call_arg(&gen.optimizer, "lr");
    ASSERT_NE(lr, nullptr);
    ASSERT_NE(lr->call, nullptr);
    EXPECT_STREQ(lr->call->name, "cosine");
    EXPECT_EQ(ir_call_arg(lr->call, "warmup")->value.i, 700);
    EXPECT_EQ(ir_call_arg(&gen.optimizer, "beta2")->call, nullptr);
    ASSERT_EQ(gen.groups.len, 3);
    const TrainGroup &biases = gen.groups.data[0], &all = gen.groups.data[1], &out = gen.groups.data[2];
    EXPECT_STREQ(biases.pattern, "*.bias");
    EXPECT_TRUE(biases.has_lr_scale && biases.has_weight_decay && biases.has_frozen && biases.frozen);
    EXPECT_EQ(biases.lr_scale, 0.1);
    EXPECT_EQ(biases.pos.column, 5);
    EXPECT_TRUE(all.has_lr_scale && !all.has_weight_decay && !all.has_frozen && !all.frozen);
    EXPECT_TRUE(!out.has_lr_scale && out.has_frozen && !out.frozen);
    EXPECT_STREQ(out.optimizer.name, "sgd");
    EXPECT_EQ(ir_call_arg(&out.optimizer, "lr")->call->pos.column, 50);
    EXPECT_EQ(out.optimizer.pos.column, 45);
    EXPECT_EQ(out.pos.column, 5);
    EXPECT_EQ(all.optimizer.name, nullptr);
    EXPECT_EQ(m->trains.data[1].only, nullptr);
    EXPECT_STREQ(m->trains.data[1].optimizer.name, "sgd");
    EXPECT_EQ(m->trains.data[2].optimizer.name, nullptr);
    EXPECT_EQ(ir_state_find(m, "bn.mean/next")->role, STATE_STAGED);
    EXPECT_EQ(ir_state_find(m, "conv.weight/sum")->role, STATE_ACCUMULATOR);
    const Func *f = m->funcs.data[0];
    EXPECT_EQ(f->kernels.data[2]->segment.mul, 392);
    EXPECT_EQ(f->kernels.data[1]->segment.mul, 0);
    EXPECT_EQ(f->kernels.data[3]->kind, KERNEL_SCATTER);
    const Op *conv = ir_def(f, ir_find(f, "1"));
    EXPECT_EQ(ir_attr(conv, "stride")->dims.at[1], 1);
    EXPECT_EQ(ir_attr(conv, "dilation")->dims.count, 2);
    EXPECT_EQ(ir_attr(ir_def(f, ir_find(f, "6")), "before")->i, 100);
}

// The form that modules had before they could have several blocks.
TEST_F(PrintRead, ATrainLineAloneStandsForOneBlock) {
    const char *text = "module \"m\" stage elaborate {\n  train\n  optimizer sgd(lr = 0.1)\n}\n";
    Module *m = Read(text);
    ASSERT_NE(m, nullptr) << error_;
    EXPECT_TRUE(m->has_train);
    ASSERT_EQ(m->trains.len, 1);
    EXPECT_STREQ(m->trains.data[0].loss, "loss");
    EXPECT_EQ(m->accumulate, 1);
    EXPECT_STREQ(m->trains.data[0].optimizer.name, "sgd");
    EXPECT_EQ(Print(m), text);
}

TEST_F(PrintRead, KernelsAndRegionsSurvive) {
    Module *m = Read(Golden("kernels.ir"));
    ASSERT_NE(m, nullptr) << error_;
    const Func *f = m->funcs.data[0];
    const Kernel *k = f->kernels.data[1];
    EXPECT_EQ(k->kind, KERNEL_PRODUCT);
    EXPECT_EQ(k->first, 3);
    EXPECT_EQ(k->count, 5);
    EXPECT_EQ(k->reads.len, 2);
    EXPECT_EQ(k->writes.data[1], 5u);
    EXPECT_EQ(f->buffers.data[2]->first, -1);
    EXPECT_EQ(f->buffers.data[0]->layout, LAYOUT_PANELS);
    const Op *contract = ir_def(f, ir_find(f, "4"));
    EXPECT_STREQ(contract->path, "fc.linear"); /* of its region */
    EXPECT_STREQ(contract->layer, "linear");
    EXPECT_EQ(ir_def(f, ir_find(f, "5"))->path, nullptr);
    EXPECT_TRUE(std::signbit(ir_attr(ir_def(f, ir_find(f, "3")), "value")->f));
}

TEST_F(PrintRead, WhateverIsBuiltReadsBack) {
    Module *m = ir_module_new(&arena_, "odd \"name\"\n\t\\\x01");
    const char *odd[] = {"",         "-",    "at",   "because", "1",   "%x", "a b",   "a/b",
                         "\xc3\xa9", "\xff", "true", "inf",     "nan", "of", "state", "a:1"};
    m->precision_word = "inf";
    State *s = ir_state_new(m, "w/odd \"name\"", STATE_MOMENT, AMP_DT_F32, Matrix(2, 3));
    s->slot = "of";
    s->of = "state";
    s->init.name = "at";
    for (const char *name : odd) {
        AttrValue value = {};
        value.s = name;
        ir_call_set(&arena_, &s->init, *name ? name : "empty", ATTR_SYMBOL, value);
    }
    const double floats[] = {0.1, -0.0, 5e-324, 1.7976931348623157e308, INFINITY, -INFINITY, NAN, 1e22, 1.0 / 3.0};
    Func *f = ir_func_new(m, "f g");
    for (double v : floats) {
        Op *o = ir_op_new(f, OP_const, nullptr, 0);
        ir_attr(o, "value")->f = v;
        ir_add_result(f, arena_printf(&arena_, "r%d", f->results.len), ir_make_results(f, o, AMP_DT_F32, nullptr));
    }
    Val state = ir_use_state(f, s);
    for (const char *name : odd) {
        Val v = ir_emit(f, OP_relu, AMP_DT_F32, *name ? name : nullptr, 1, state);
        Op *o = ir_def(f, v);
        o->path = name;
        o->layer = name;
        o->pos = Pos{name, 3, 4};
        o->reason = ir_reason(m, name);
        o->reason->origin = o->reason->because = o->reason->relation = o->reason->neighbour = name;
        o->reason->is_override = true;
        o->reason->where = Pos{name, 0, 0};
        ir_add_result(f, *name ? name : "none", v);
    }
    ir_compact(m);
    std::string text = Print(m);
    Module *again = Read(text);
    ASSERT_NE(again, nullptr) << error_ << text;
    EXPECT_EQ(Print(again), text);
    for (const char *name : odd) {
        const CallArg *arg = ir_call_arg(&again->states.data[0]->init, *name ? name : "empty");
        ASSERT_NE(arg, nullptr) << name;
        EXPECT_EQ(arg->type, ATTR_SYMBOL) << name;
        EXPECT_STREQ(arg->value.s, name);
    }
    const Func *g = again->funcs.data[0];
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        double v = ir_attr(ir_op_at(g, static_cast<int>(i)), "value")->f;
        bool same = std::isnan(floats[i]) ? std::isnan(v) : memcmp(&v, &floats[i], sizeof v) == 0;
        EXPECT_TRUE(same) << floats[i];
    }
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        const Op *o = ir_op_at(g, static_cast<int>(sizeof floats / sizeof floats[0] + i));
        EXPECT_STREQ(o->path, odd[i]);
        EXPECT_STREQ(o->reason->rule, odd[i]);
        EXPECT_STREQ(o->reason->relation, odd[i]);
        EXPECT_STREQ(o->reason->neighbour, odd[i]);
        EXPECT_STREQ(o->reason->because, odd[i]);
    }
}

// ---- building -----------------------------------------------------------------------------------

TEST_F(PrintRead, NumbersCountFromTheLargestAndNamesAreMadeUnique) {
    Module *m = ir_module_new(&arena_, "m");
    Func *f = ir_func_new(m, "f");
    Val x = ir_add_input(f, "x", AMP_DT_F32, Matrix(2, 2));
    ir_add_input(f, "7", AMP_DT_F32, Matrix(2, 2));
    Val a = ir_emit(f, OP_relu, AMP_DT_F32, nullptr, 1, x);
    EXPECT_STREQ(ir_value(f, a)->name, "8");
    EXPECT_STREQ(ir_value(f, ir_emit(f, OP_relu, AMP_DT_F32, "x", 1, a))->name, "x.1");
    EXPECT_STREQ(ir_value(f, ir_emit(f, OP_relu, AMP_DT_F32, "x", 1, a))->name, "x.2");
    ir_rename(f, a, "renamed");
    EXPECT_EQ(ir_find(f, "renamed").id, a.id);
    EXPECT_EQ(ir_find(f, "8").id, 0u);
    for (int i = 0; i < 100; i++) ir_emit(f, OP_relu, AMP_DT_F32, nullptr, 1, a);
    EXPECT_NE(ir_find(f, "108").id, 0u);
    ir_compact(m); /* none of it is needed */
    EXPECT_EQ(f->body.len, 0);
    EXPECT_STREQ(ir_value(f, ir_emit(f, OP_relu, AMP_DT_F32, nullptr, 1, ir_find(f, "x")))->name, "8");
}

TEST_F(PrintRead, NamesBecomeKindsOnce) {
    Module *m = Read(R"(module "m" stage optimizer { }
state %w : f32[2] param
state %step.1 : i64 counter
state %scale : f32 scaler
state %seed : f32 buffer
func train_step {
  state %w : f32[2]
  input %x : f32[2]
  %y = relu(%x) : f32[2]
  result loss.1 = %y
  result grad.w = %y
  result grad.v = %y
  result y = %y
}
func step { }
)");
    ASSERT_NE(m, nullptr) << error_;
    const Func *f = ir_program(m, PROGRAM_TRAIN_STEP);
    ASSERT_EQ(f, m->funcs.data[0]);
    EXPECT_EQ(ir_program(m, PROGRAM_EVAL), nullptr);
    EXPECT_EQ(m->funcs.data[1]->kind, PROGRAM_OTHER);
    EXPECT_EQ(ir_result_of_kind(f, RESULT_LOSS, 1), &f->results.data[0]);
    EXPECT_EQ(ir_result_of_kind(f, RESULT_LOSS, NO_BLOCK), nullptr);
    EXPECT_EQ(ir_result_of_kind(f, RESULT_MODEL, NO_BLOCK), &f->results.data[3]);
    EXPECT_EQ(ir_result_state(f, &f->results.data[1]), ir_state_find(m, "w"));
    EXPECT_EQ(ir_result_state(f, &f->results.data[2]), nullptr);
    EXPECT_EQ(ir_result_state(f, &f->results.data[3]), nullptr);
    EXPECT_EQ(ir_state_find(m, "step.1")->counter.kind, COUNTER_STEP);
    EXPECT_EQ(ir_state_find(m, "step.1")->counter.block, 1);
    EXPECT_EQ(ir_state_find(m, "scale")->counter.kind, COUNTER_SCALE);
    EXPECT_EQ(ir_state_find(m, "seed")->counter.kind, COUNTER_NONE); // a buffer of the model's own
    EXPECT_EQ(ir_counter(m, COUNTER_STEP, 1), ir_state_find(m, "step.1"));
    const State *micro = ir_counter(m, COUNTER_MICRO, NO_BLOCK);
    EXPECT_EQ(micro->role, STATE_COUNTER);
    EXPECT_EQ(micro->dtype, AMP_DT_I64);
}

TEST_F(PrintRead, AStateTakesItsNameFromAValue) {
    Module *m = ir_module_new(&arena_, "m");
    State *s = ir_state_new(m, "step", STATE_COUNTER, AMP_DT_I64, shape_scalar());
    Func *f = ir_func_new(m, "f");
    Val x = ir_add_input(f, "step", AMP_DT_F32, shape_scalar());
    Val v = ir_use_state(f, s);
    EXPECT_STREQ(ir_value(f, v)->name, "step");
    EXPECT_STREQ(ir_value(f, x)->name, "step.1");
    EXPECT_EQ(ir_use_state(f, s).id, v.id);
    EXPECT_EQ(ir_state_of(f, v), s);
    EXPECT_EQ(f->inputs.len, 2);
}

TEST_F(PrintRead, CompactionDropsDeadOpsFromKernelsToo) {
    Module *m = Read(R"(module "m" stage fuse { }
func f {
  input %x : f32[4]
  kernel k00 tile "a" {
    %1 = neg(%x) : f32[4]
    %2 = exp(%x) : f32[4]
  }
  kernel k01 tile "dead" {
    %3 = log(%2) : f32[4]
  }
  result y = %1
}
)");
    ASSERT_NE(m, nullptr) << error_;
    ir_compact(m);
    EXPECT_EQ(Print(m), R"(module "m" stage fuse {
}

func f {
  input %x : f32[4]
  kernel k00 tile "a" {
    %1 = neg(%x) : f32[4]
  }
  result y = %1
}
)");
}

// ---- shapes -------------------------------------------------------------------------------------

TEST_F(PrintRead, DimensionsAreReduced) {
    EXPECT_TRUE(dim_equal(dim_n(4, 2), dim_n(2, 1)));
    EXPECT_EQ(dim_eval(dim_n(3, 2), {10, 1}), 15);
    Dim out;
    EXPECT_TRUE(dim_mul(dim_n(1, 2), dim_const(4), &out));
    EXPECT_TRUE(dim_equal(out, dim_n(2, 1)));
    EXPECT_FALSE(dim_mul(dim_n(1, 1), dim_n(1, 1), &out));
    EXPECT_TRUE(dim_times(dim_n(1, 1), dim_n(1, 1), &out));
    EXPECT_FALSE(dim_times(out, dim_n(1, 1), &out)) << "N * N * N";
    EXPECT_TRUE(dim_mul(dim_n(3, 2), dim_t(4, 1), &out));
    EXPECT_EQ(dim_eval(out, {10, 7}), 420);
    EXPECT_TRUE(dim_equal(dim_divided(out, 12), Dim({1, 2, 1, 1, 0, 0})));
    EXPECT_TRUE(dim_mul(out, dim_t(1, 1), &out));
    EXPECT_FALSE(dim_mul(out, dim_t(1, 1), &out)) << "T * T * T";
    EXPECT_FALSE(dim_mul(dim_const(INT64_MAX), dim_const(2), &out));
}

TEST_F(PrintRead, DimensionsOfTwoSizesReadBack) {
    const char *shapes[] = {"[N, T, 4 * T]",
                            "[N * T, 3]",
                            "[2 * N * T * T / 3]",
                            "[T * T / 2, T=64, 3 * T=64]",
                            "[T=64 * N, 7]",
                            "[N / 2, 2 * T=64 * T=64 * N, T / 8]",
                            "[T=64 / 16, 5 * T=64 * N / 32, T=7 * N / 3]"};
    for (const char *text : shapes) {
        const std::string source = "module \"m\" stage lower {\n  length 1024 unit 8\n}\n\nfunc f {\n  input %x : f32" +
                                   std::string(text) + "\n}\n";
        Module *m = Read(source.c_str());
        ASSERT_TRUE(m) << text;
        EXPECT_STREQ(shape_text(&arena_, ir_shape(m->funcs.data[0], Val{1})), text);
        EXPECT_EQ(m->length.most, 1024);
        EXPECT_EQ(m->length.unit, 8);
    }
}

TEST_F(PrintRead, ASizeThatHasANumberIsThatNumber) {
    Module *m = Read("module \"m\" stage lower { length 64 } func f { input %x : f32[N, T=64, 8] }");
    ASSERT_TRUE(m);
    const Shape *s = ir_shape(m->funcs.data[0], Val{1});
    EXPECT_TRUE(dim_equal(s->d[1], dim_const(64)));
    EXPECT_FALSE(dim_varies(s->d[1]));
    EXPECT_TRUE(dim_is_sized(s->d[1]));
    EXPECT_TRUE(dim_is_sized(dim_divided(s->d[1], 8)));
    EXPECT_FALSE(dim_is_sized(s->d[2]));
    Dim count;
    ASSERT_TRUE(shape_count(s, &count));
    EXPECT_EQ(count.sized, 1);
    EXPECT_EQ(dim_assumed(count, 3), 3 * ASSUMED_T * 8);
    EXPECT_EQ(dim_assumed(dim_divided(s->d[1], 16), 3), ASSUMED_T / 16);
}

TEST_F(PrintRead, MatricesAsKernelsSeeThem) {
    struct {
        Shape shape;
        Dim rows, cols;
    } cases[] = {
        {shape_scalar(), dim_const(1), dim_const(1)},
        {Shape{1, {dim_const(5)}}, dim_const(1), dim_const(5)},
        {Shape{1, {dim_n(1, 1)}}, dim_n(1, 1), dim_const(1)},
        {Shape{3, {dim_n(1, 1), dim_const(3), dim_const(5)}}, dim_n(3, 1), dim_const(5)},
    };
    for (const auto &c : cases) {
        Dim rows, cols;
        ASSERT_TRUE(shape_matrix(&c.shape, &rows, &cols));
        EXPECT_TRUE(dim_equal(rows, c.rows));
        EXPECT_TRUE(dim_equal(cols, c.cols));
    }
}

// ---- malformed text -----------------------------------------------------------------------------

std::string InFunc(const std::string &lines) {
    return "module \"m\" stage lower { }\nfunc f {\n  input %x : f32[4]\n" + lines + "\n}\n";
}

TEST_F(PrintRead, MalformedTextIsRefusedWithItsPlace) {
    std::string many;
    for (int i = 0; i < 64; i++) many += "0.5, ";
    const struct {
        std::string text, message;
    } cases[] = {
        {"", "expected 'module', found the end of the text"},
        {"module \"m\" stage nonsense { }", "expected a stage, found 'nonsense'"},
        {"module \"m\" stage lower { source \"a\" sha256 \"" + std::string(65, '0') + "\" }",
         "a SHA-256 has 64 hexadecimal digits"},
        {"module \"m\" stage lower { } nonsense",
         "expected 'state', 'func', 'decision', 'removed', 'graph', 'elaborated' or 'policy_file', found 'nonsense'"},
        {"module \"m\" stage lower { } elaborated 2 policy \"p\" \"module\"",
         "the elaborated text has version 2, and this ampc reads versions up to 1: use the ampc that wrote it, or a "
         "later one"},
        {"module \"m\" stage lower { const x = 9223372036854775808 }",
         "expected an integer, found '9223372036854775808'"},
        {"module \"m\" stage lower { } state %a : f32 param state %a : f32 param", "state a is defined twice"},
        {"module \"m\" stage lower { } func f { } func f { }", "function f is defined twice"},
        {"module \"m\" stage lower { group \"*\" frozen }", "`group` must follow its `train` line"},
        {"module \"m\" stage lower { optimizer sgd(lr = 0.1) }", "`optimizer` must follow its `train` line"},
        {"module \"m\" stage lower { train for \"g*\" }", "expected 'loss', found '}'"},
        {"module \"m\" stage lower { accumulate 0 }", "the number of micro-batches must be from 1 to 2147483647"},
        {"module \"m\" stage lower { optimizer sgd(lr = cosine(peak = step(base = 1))) }", "expected ',', found '('"},
        {"module \"m\" stage lower { length 0 }", "the largest T must be from 1 to 1048576"},
        {"module \"m\" stage lower { length 12 unit 8 }", "the largest T must be a multiple of its unit"},
        {"module \"m\" stage lower { } func f { input %x : f32[N * 3] }", "expected N or T, found '3'"},
        {"module \"m\" stage lower { } func f { input %x : f32[N * N * N] }",
         "a dimension has N and T at most twice each"},
        {"module \"m", "this string has no closing quote"},
        {"module \"\\q\"", "not a character of a string; escapes are \\\" \\\\ \\n \\t \\xNN"},
        {"module \"\\x00\"", "not a character of a string; escapes are \\\" \\\\ \\n \\t \\xNN"},
        {InFunc("  %1 = neg(%y) : f32[4]"), "%y is not defined before this line"},
        {InFunc("  %x = neg(%x) : f32[4]"), "%x is defined twice"},
        {InFunc("  %1, %1 = sgd(%x, %x, %x) : f32[4], f32[4]"), "%1 is defined twice"},
        {InFunc("  %1 = nonsense(%x) : f32[4]"), "no op is called nonsense"},
        {InFunc("  %1, %2 = neg(%x) : f32[4], f32[4]"), "neg has 1 results, this line names 2"},
        {InFunc("  %1 = neg(%x; dim = 3) : f32[4]"), "neg has no attribute dim"},
        {InFunc("  %1 = iota(%x; dim = 0, dim = 0) : i32[4]"), "attribute dim is given twice"},
        {InFunc("  %1 = iota(%x; dim = 0.5) : i32[4]"), "expected an integer, found '0.5'"},
        {InFunc("  %1 = const(; value = 1x) : f32"), "a number ends here, and a letter follows"},
        {InFunc("  %1 = neg(%x) : f31[4]"),
         "expected a type (f32, f16, bf16, tf32, f64, i32, i64, u8, bool), found 'f31'"},
        {InFunc("  %1 = neg(%x) : f32[0]"), "a dimension must be from 1 to 9223372036854775807"},
        {InFunc("  %1 = neg(%x) : f32[1, 1, 1, 1, 1, 1, 1, 1, 1]"), "a shape has at most 8 dimensions"},
        {InFunc("  %1 = neg(%x) : f32[]"), "expected a dimension, found ']'"},
        {InFunc("  %1 = reduce_sum(%x; dims = (0, 0, 0, 0, 0, 0, 0, 0, 0)) : f32"), "at most 8 dims"},
        {InFunc("  %1 = tensor(; values = [1.0, 2.0 3.0]) : f32[3]"), "expected ',', found '3.0'"},
        {InFunc("  %1 = tensor(; values = [" + many + "0.5]) : f32[65]"), "at most 64 numbers"},
        {InFunc("  %1 = neg(%x) : f32[4] #1"), "a region's number must be from 1 to 0"},
        {InFunc("  region #2 softmax"), "the next region's number must be from 1 to 1"},
        {InFunc("  %1 = neg(%x) : f32[4]\n  input %y : f32"), "inputs and states must come before the first op"},
        {InFunc("  kernel k tile \"\" {\n result y = %x }"), "a kernel can hold only ops"},
        {InFunc("  kernel k tile \"\" reads b { }"), "no buffer of this function is called b"},
        {InFunc("  buffer b temp %x f32 rows\n  buffer b temp %x f32 rows"), "buffer b is defined twice"},
        {InFunc("  buffer b state of s %x f32 rows"), "no state is called s"},
        {InFunc("  buffer b temp %x f32 rows in c\n  buffer c temp %x f32 rows"),
         "no buffer before this one is called c"},
        {InFunc("  %1 = neg(%x) : f32[4] because {r, a:1, b:2}"), "the reason has this part already"},
        {InFunc("  %1 = neg(%x) : f32[4] because {r, a}"), "expected ':' and a line, or a path, found '}'"},
        {InFunc("  % = neg(%x) : f32[4]"), "a value needs a name"},
    };
    for (const auto &c : cases) {
        EXPECT_EQ(Read(c.text), nullptr) << c.text;
        EXPECT_NE(error_.find("error: " + c.message + "\n"), std::string::npos) << c.text << "\n" << error_;
    }
}

// What a model.so keeps is read whatever the rest of its text is.
TEST_F(PrintRead, WhatItIsCompiledFromAgain) {
    const std::string other =
        "module \"m\" stage of_another_version {\n  policy \"torch-fp16\" origin \"mine\" sha\n}\n??\n";
    const struct {
        std::string text, policy, model, policy_text;
        bool good;
    } cases[] = {
        {other + "\nelaborated 1 policy \"p\"\n  \"a\"\n  \"b\"\n\npolicy_file\n  \"c\"\n", "p", "a\nb\n", "c\n", true},
        {other + "\nelaborated\n  \"a\"\n\npolicy_file\n  \"c\"\n", "mine", "a\n", "c\n", true}, // before 0.1.0
        {other + "\nelaborated 1\n  \"a\"\n", "mine", "a\n", "", true},
        {other, "", "", "", true},
        {other + "\nelaborated 7 policy \"p\"\n  \"a\"\n", "", "", "", false},
        {other + "\nelaborated 1 policy \"p\"\n  \"a\n", "", "", "", false},
    };
    for (const auto &c : cases) {
        const Source source = {"m.so", c.text.c_str(), c.text.size()};
        KeptSource kept;
        Diags diags;
        diags_init(&diags, &arena_);
        EXPECT_EQ(ir_read_kept(&arena_, &diags, &source, &kept), c.good) << c.text;
        if (!c.good) continue;
        EXPECT_EQ(kept.policy ? kept.policy : "", c.policy);
        EXPECT_EQ(kept.model_text ? kept.model_text : "", c.model);
        EXPECT_EQ(kept.policy_text ? kept.policy_text : "", c.policy_text);
    }
}

TEST_F(PrintRead, TheCaretStandsUnderTheWord) {
    EXPECT_EQ(Read(InFunc("  %1 = neg(%y) : f32[4]")), nullptr);
    EXPECT_EQ(error_, "test.ir:4:12: error: %y is not defined before this line\n"
                      "   4 |   %1 = neg(%y) : f32[4]\n"
                      "     |            ^~\n");
}

} // namespace
