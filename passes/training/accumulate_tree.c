/* accumulate_tree.c: sums over the micro-batches of a step in the order of a balanced tree, as a binary counter makes
 * it: level l keeps the sum of 2^l micro-batches until the next 2^l have been added up.
 *
 *   micro-batch   0    1    2    3            0    1    2    3    4    5
 *   level 0       0--.      2--.              0--.      2--.      4--.
 *   the sum          01---------0123             01--------0123------012345
 *
 * Ranks that have m micro-batches each, a power of two, make whole branches of the tree that one rank with those of all
 * makes; so where their sums are added as a tree too, the bits do not depend on the number of ranks.  Rounding errors
 * grow with the depth of the tree and not with the number of micro-batches (N. J. Higham, "The accuracy of floating
 * point summation", 1993).
 *
 *   %x.0   = add(%"w/sum/0", %d.w)                     what is there and the new one
 *   %x     = where(%merges.0, %x.0, %d.w)              the number of the micro-batch ends with 1 in binary
 *   assign(%"w/sum/0", where(%keeps.0, %d.w, %"w/sum/0"))          with 0
 *   ...                                                the same for each level, the last of which is the sum
 */
#include "passes/training/accumulate_tree.h"

struct TreeLevel {
    Val merges; /* what the level keeps is added */
    Val keeps;  /* what has been added up so far is kept */
};

static Val explained(Func *f, Val v, const char *path) {
    Op *o = ir_def(f, v);
    o->path = path;
    o->reason = ir_reason(f->module, "update");
    return v;
}

static Val number(Func *f, double value, const char *path) {
    Val v = ir_emit(f, OP_const, AMP_DT_F32, NULL, 0);
    ir_attr(ir_def(f, v), "value")->f = value;
    return explained(f, v, path);
}

static Val one(Func *f, Opcode code, Dtype t, Val a, const char *path) {
    return explained(f, ir_emit(f, code, t, NULL, 1, a), path);
}

static Val two(Func *f, Opcode code, Dtype t, Val a, Val b, const char *path) {
    return explained(f, ir_emit(f, code, t, NULL, 2, a, b), path);
}

/* |v| modulo |of|, a power of two: whole numbers of f32 are exact. */
static Val remainder_of(Func *f, Val v, int64_t of, const char *path) {
    Val whole =
        one(f, OP_floor, AMP_DT_F32, two(f, OP_mul, AMP_DT_F32, v, number(f, 1.0 / (double)of, path), path), path);
    return two(f, OP_sub, AMP_DT_F32, v, two(f, OP_mul, AMP_DT_F32, whole, number(f, (double)of, path), path), path);
}

static Val equals(Func *f, Val v, int64_t value, const char *path) {
    return two(f, OP_eq, AMP_DT_BOOL, v, number(f, (double)value, path), path);
}

static int levels_of(int64_t micro_batches) {
    int levels = 0;
    while ((int64_t)1 << levels < micro_batches) levels++;
    return levels;
}

/* In the last micro-batch all that is kept is added. */
void accumulate_tree_begin(Split *s, Val first) {
    Func *f = s->micro_step;
    Arena *a = s->m->arena;
    const int64_t last = s->m->accumulate - 1;
    if (s->m->accumulate_order != ORDER_TREE || last < 2) return;
    s->levels = levels_of(s->m->accumulate);
    s->level = arena_array(a, TreeLevel, s->levels);
    Val micro = one(f, OP_cast, AMP_DT_F32, s->micro, "micro.number");
    Val here = two(f, OP_sub, AMP_DT_F32, micro, one(f, OP_cast, AMP_DT_F32, first, "micro.number"), "micro.here");
    Val is_last = equals(f, here, last, "micro.last");
    for (int l = 0; l < s->levels; l++) {
        const char *path = arena_printf(a, "micro.level.%d", l);
        const int64_t half = (int64_t)1 << l, whole = 2 * half;
        Val at = l == s->levels - 1 ? here : remainder_of(f, here, whole, path);
        Val merges = equals(f, at, whole - 1, path), keeps = equals(f, at, half - 1, path);
        if ((last & half) && last % whole != whole - 1) merges = two(f, OP_or, AMP_DT_BOOL, merges, is_last, path);
        if (l == s->levels - 1) keeps = two(f, OP_or, AMP_DT_BOOL, keeps, is_last, path);
        s->level[l] = (TreeLevel){merges, keeps};
    }
}

static const State *level_state(Split *s, const State *sum, int level) {
    if (level == s->levels - 1) return sum;
    const char *name = arena_printf(s->m->arena, "%s/%d", sum->name, level);
    State *state = ir_state_new(s->m, name, STATE_ACCUMULATOR, sum->dtype, sum->shape);
    state->of = sum->of;
    state->slot = arena_printf(s->m->arena, "%s/%d", sum->slot ? sum->slot : "sum", level);
    return state;
}

Val accumulate_tree_next(Split *s, const State *sum, Val v, const char *path) {
    Func *f = s->micro_step;
    for (int l = 0; l < s->levels; l++) {
        const TreeLevel *level = &s->level[l];
        const State *state = level_state(s, sum, l);
        Val kept = ir_use_state(f, state), added = two(f, OP_add, sum->dtype, kept, v, path);
        Val up = explained(f, ir_emit(f, OP_where, sum->dtype, NULL, 3, level->merges, added, v), path);
        Val stays = l == s->levels - 1 ? up : v;
        Val next = explained(f, ir_emit(f, OP_where, sum->dtype, NULL, 3, level->keeps, stays, kept), path);
        if (l == s->levels - 1) return next;
        Op *o = ir_op_new(f, OP_assign, (Val[]){kept, next}, 2);
        o->path = path;
        o->reason = ir_reason(s->m, "update");
        v = up;
    }
    return v;
}
