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
 *                                       %squares = sum_ranks(%square; number = 1)
 *                                       %whole   = global_norm(%b)               on every rank
 *                                       %norm    = sqrt(add(%squares, mul(%whole, %whole)))
 */
#include "passes/training/shares.h"

#include "passes/common/common.h"

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

static Val number(const Gathering *g, double value) {
    Val v = ir_emit(g->f, OP_const, AMP_DT_F32, NULL, 0);
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
    const Val none = number(&g, 0), one = number(&g, 1);
    const Val wrong = explained(&g, ir_emit(f, OP_where, AMP_DT_F32, NULL, 3, finite, none, one), NULL);
    return two(&g, OP_eq, AMP_DT_BOOL, sum(&g, wrong, "ranks whose share is not finite"), none);
}

Val shares_norm(Func *f, Val of_share, Val of_whole, const char *path, const char *name) {
    const Gathering g = {f, path};
    Val squares = NO_VAL;
    if (of_share.id) squares = sum(&g, two(&g, OP_mul, AMP_DT_F32, of_share, of_share), "squares of all shares");
    if (of_whole.id) {
        const Val whole = two(&g, OP_mul, AMP_DT_F32, of_whole, of_whole);
        squares = squares.id ? two(&g, OP_add, AMP_DT_F32, squares, whole) : whole;
    }
    return explained(&g, ir_emit(f, OP_sqrt, AMP_DT_F32, name, 1, squares), NULL);
}
