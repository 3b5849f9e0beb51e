// lower_test.h: what the tests of lowering share: functions of graph ops against their core form in the reference
// interpreter.
#ifndef AMP_TESTS_PASSES_LOWER_TEST_H
#define AMP_TESTS_PASSES_LOWER_TEST_H

#include "tests/passes/core_pass_test.h"

class LowerPassTest : public CorePassTest {
  protected:
    // The same results from |core|, at several batch sizes and from random inputs; states that lowering added are given
    // to both.
    void Compare(const Module *graph, const Module *core, bool round, double tolerance) {
        const Func *f = graph->funcs.data[0], *g = core->funcs.data[0];
        const int64_t batches[] = {5, 1, 4};
        for (unsigned seed = 0; seed < 3; seed++) {
            int64_t n = batches[seed];
            std::vector<InterpTensor> a = Inputs(f, n, round, seed), b = Inputs(g, n, round, seed);
            for (const char *name : {"seed", "iteration", "micro"})
                for (InterpTensor &t : b)
                    if (!strcmp(t.name, name)) a.push_back(t);
            ExpectEqual(Interpret(f, n, round, a), Interpret(g, n, round, b), tolerance);
        }
    }

    Module *Lower(const std::string &body, const std::string &states = "", bool *ok = nullptr) {
        Module *m = ReadFunc("simplify", body, states);
        bool ran = m && Run(m, STAGE_LOWER);
        if (ok) *ok = ran;
        else EXPECT_TRUE(ran) << Diagnostics() << body;
        return m;
    }

    // In exact arithmetic; and every operand of an elementwise op fits its kernel's rows and columns.
    Module *ExpectSame(const std::string &body, const std::string &states = "", double tolerance = 1e-12) {
        SCOPED_TRACE(body);
        bool had_failed = HasFailure();
        Module *graph = ReadFunc("simplify", body, states), *core = Lower(body, states);
        if (!graph || !core) return core;
        Compare(graph, core, false, tolerance);
        for (int i = 0; i < core->funcs.len; i++) ExpectWalkable(core->funcs.data[i]);
        if (HasFailure() && !had_failed) ADD_FAILURE() << Ops(core->funcs.data[0]);
        return core;
    }

    static int Count(const Func *f, Opcode code) {
        int n = 0;
        for (int i = 0; i < f->body.len; i++) n += ir_op_at(f, i)->code == code;
        return n;
    }

    // docs/design/kernels.md: which operands fit, and what reductions fold.
    static void ExpectWalkable(const Func *f) {
        for (int i = 0; i < f->body.len; i++) {
            const Op *o = ir_op_at(f, i);
            if (ir_op_info[o->code].flags & ELEMENTWISE) ExpectOperandsFit(f, o);
            if (ir_op_info[o->code].flags & REDUCE && o->code != OP_reduce_or) ExpectOneRun(f, o);
        }
    }

  private:
    static std::string TypeOf(const Func *f, Val v) {
        Text t;
        text_init(&t, f->module->arena);
        type_print(&t, ir_dtype(f, v), ir_shape(f, v));
        return text_str(&t);
    }

    static void ExpectOperandsFit(const Func *f, const Op *o) {
        Dim rows, cols, r, c;
        if (!o->n_out) return;
        ASSERT_TRUE(shape_matrix(ir_shape(f, o->out[0]), &rows, &cols));
        for (int i = 0; i < o->n_in; i++) {
            if (o->code == OP_broadcast || o->code == OP_iota || (o->code == OP_random && i == 0)) continue;
            ASSERT_TRUE(shape_matrix(ir_shape(f, o->in[i]), &r, &c));
            EXPECT_TRUE((dim_equal(r, rows) || dim_is_one(r)) && (dim_equal(c, cols) || dim_is_one(c)))
                << ir_op_info[o->code].name << ": " << TypeOf(f, o->in[i]) << " beside " << TypeOf(f, o->out[0]);
        }
    }

    static void ExpectOneRun(const Func *f, const Op *o) {
        const Shape *s = ir_shape(f, o->in[0]);
        const Dims *dims = &ir_attr(o, "dims")->dims;
        ASSERT_GT(dims->count, 0);
        int first = static_cast<int>(dims->at[0]), last = static_cast<int>(dims->at[dims->count - 1]);
        EXPECT_EQ(last - first + 1, dims->count);
        bool row = dims->count == 1 && last == s->rank - 1;
        EXPECT_TRUE(row || last == s->rank - 2) << TypeOf(f, o->in[0]) << " folded from " << first << " to " << last;
        EXPECT_TRUE(s->rank == 1 || !s->d[s->rank - 1].n) << TypeOf(f, o->in[0]);
        for (int d = first; d <= last && first > 0; d++) EXPECT_FALSE(s->d[d].n) << "a segment of N rows";
    }
};

#endif
