/* shares.c: which weights ranks divide among them (zero1), and what apply_step knows of their whole gradients.
 *
 *   %ok = all_finite(%a, %b)       =>   %ok      = all_finite(%a, %b)
 *                                       %none    = const(; value = 0) : f32      %one = const(; value = 1) : f32
 *                                       %wrong   = where(%ok, %none, %one) : f32
 *                                       %wrongs  = sum_ranks(%wrong; number = 0)
 *                                       %all_ok  = eq(%wrongs, %none)            replaces %ok
 *
 *   %norm = global_norm(%a, %b)    =>   %share   = global_norm(%a)               divided
 *                                       %square  = mul(%share, %share)
 *                                       %near    = cast(%square) : f32           infinite above f32
 *                                       %far     = cast(mul(%square, 2^-192)) : f32
 *                                       %sums    = sum_ranks(stack(%near, %far); number = 1)
 *                                       %squares = %sums[0] if that is finite, else %sums[1] * 2^192
 *                                       %whole   = global_norm(%b)               on every rank
 *                                       %norm    = sqrt(add(%squares, mul(%whole, %whole)))
 */
#include "passes/training/training.h"

#include <math.h>

enum { TILE = 32 };

/* ---- which ------------------------------------------------------------------------------------------------------- */

static bool has_shares(const Module *m) { return m->distribution == DISTRIBUTE_ZERO1; }

/* What a product makes is stored in tiles; else rows may be of any length. */
bool shares_fit(const Func *f, const State *param, Val gradient, bool tiles) {
    Dim rows, cols;
    const Op *maker = ir_def(f, gradient);
    if (!shape_matrix(&param->shape, &rows, &cols)) return true; /* a number */
    if (!tiles && param->shape.rank > 3) return false;           /* weights of convolutions are turned */
    if (dim_is_one(rows) || cols.mul % TILE == 0) return true;
    return tiles && maker && ir_op_info[maker->code].flags & PRODUCT;
}

bool shares_have(const Module *m, const State *param) {
    const Func *f = ir_program(m, PROGRAM_GATHER_STEP);
    for (int i = 0; f && i < f->body.len; i++)
        for (int j = 0; j < ir_op_at(f, i)->n_in; j++)
            if (ir_state_of(f, ir_op_at(f, i)->in[j]) == param) return true;
    return false;
}

/* ---- of all ------------------------------------------------------------------------------------------------------ */

typedef struct Gathering {
    Func *f;
    const char *path;
} Gathering;

static Val explained(const Gathering *g, Val v, const char *because) {
    Op *o = ir_def(g->f, v);
    o->path = arena_printf(g->f->module->arena, "%s.ranks", g->path);
    o->reason = ir_reason(g->f->module, "distribute");
    o->reason->because = because;
    return v;
}

static Val number(const Gathering *g, Dtype t, double value) {
    Val v = ir_emit(g->f, OP_const, t, NULL, 0);
    ir_attr(ir_def(g->f, v), "value")->f = value;
    return explained(g, v, NULL);
}

static Val two(const Gathering *g, Opcode code, Dtype t, Val a, Val b) {
    return explained(g, ir_emit(g->f, code, t, NULL, 2, a, b), NULL);
}

static Val sum(const Gathering *g, Val v, const char *because) {
    int64_t before = 0;
    for (int i = 0; i < g->f->body.len; i++) before += ir_op_at(g->f, i)->code == OP_sum_ranks;
    Val all = explained(g, ir_emit(g->f, OP_sum_ranks, AMP_DT_F32, NULL, 1, v), because);
    ir_attr(ir_def(g->f, all), "number")->i = before;
    return all;
}

Val shares_all(Func *f, Val finite, const char *path) {
    const Gathering g = {f, path};
    if (!has_shares(f->module) || !finite.id) return finite;
    const Val none = number(&g, AMP_DT_F32, 0), one = number(&g, AMP_DT_F32, 1);
    const Val wrong = explained(&g, ir_emit(f, OP_where, AMP_DT_F32, NULL, 3, finite, none, one), NULL);
    return two(&g, OP_eq, AMP_DT_BOOL, sum(&g, wrong, "ranks whose share is not finite"), none);
}

/* Element |i| of a vector, as a scalar. */
static Val element(const Gathering *g, Val vector, int64_t i) {
    Op *o = ir_op_new(g->f, OP_slice, &vector, 1);
    ir_attr(o, "from")->i = i;
    ir_attr(o, "to")->i = i + 1;
    Val one = explained(g, ir_make_results(g->f, o, AMP_DT_F32, NULL), NULL);
    o = ir_op_new(g->f, OP_reshape, &one, 1);
    return explained(g, ir_result(g->f, o, NULL, AMP_DT_F32, shape_scalar()), NULL);
}

static Val square(const Gathering *g, Val v) { return two(g, OP_mul, AMP_DT_F64, v, v); }
static Val cast(const Gathering *g, Val v, Dtype t) {
    return explained(g, ir_emit(g->f, OP_cast, t, NULL, 1, v), NULL);
}

/* Ranks add f32: the squares as they are, and beside them squares that are as much smaller as they may be above f32. */
static Val squares_of_all(const Gathering *g, Val of_share) {
    const double apart = ldexp(1, 192);
    const Val own = square(g, of_share), near = cast(g, own, AMP_DT_F32);
    const Val far = cast(g, two(g, OP_mul, AMP_DT_F64, own, number(g, AMP_DT_F64, 1 / apart)), AMP_DT_F32);
    const Val sums = sum(g, two(g, OP_stack, AMP_DT_F32, near, far), "squares of all shares");
    const Val near_sum = element(g, sums, 0), far_sum = cast(g, element(g, sums, 1), AMP_DT_F64);
    const Val large = two(g, OP_mul, AMP_DT_F64, far_sum, number(g, AMP_DT_F64, apart));
    const Val fits = two(g, OP_lt, AMP_DT_BOOL, near_sum, number(g, AMP_DT_F32, INFINITY));
    return explained(g, ir_emit(g->f, OP_where, AMP_DT_F64, NULL, 3, fits, cast(g, near_sum, AMP_DT_F64), large), NULL);
}

Val shares_norm(Func *f, Val of_share, Val of_whole, const char *path) {
    const Gathering g = {f, path};
    Val squares = of_share.id ? squares_of_all(&g, of_share) : NO_VAL;
    if (of_whole.id) {
        const Val whole = square(&g, of_whole);
        squares = squares.id ? two(&g, OP_add, AMP_DT_F64, squares, whole) : whole;
    }
    return explained(&g, ir_emit(f, OP_sqrt, AMP_DT_F64, NULL, 1, squares), NULL);
}
