/* accumulate_tree.c: sums over the micro-batches of a step in the order of a balanced tree, as a binary counter makes
 * it: level l keeps the sum of 2^l micro-batches until the next 2^l have been added up.
 *
 *   micro-batch   0    1    2    3            0    1    2    3    4    5
 *   level 0       0--.      2--.              0--.      2--.      4--.
 *   the sum          01---------0123             01--------0123------012345
 *
 * Ranks that have m micro-batches each, a power of two, make whole branches of the tree that one rank with all
 * micro-batches makes; so if their sums are added as a tree too, the bits do not depend on the number of ranks.
 * Rounding errors grow with the depth of the tree and not with the number of micro-batches (N. J. Higham, "The accuracy
 * of floating point summation", 1993).
 *
 *   %x.0   = add(%"w/sum/0", %d.w)                     what is there and the new one
 *   %x     = where(%merges.0, %x.0, %d.w)              the number of the micro-batch ends with 1 in binary
 *   assign(%"w/sum/0", where(%keeps.0, %d.w, %"w/sum/0"))          with 0
 *   ...                                                the same for each level; the last level is the sum
 */
#include "passes/training/training.h"

struct TreeLevel {
    Val merges; /* what the level keeps is added */
    Val keeps;  /* what has been added up so far is kept */
};

static Val one(Split *s, Opcode code, Val a, const char *path) {
    return accumulate_explain(s, ir_emit(s->micro_step, code, AMP_DT_F32, NULL, 1, a), path);
}

static Val two(Split *s, Opcode code, Dtype t, Val a, Val b, const char *path) {
    return accumulate_explain(s, ir_emit(s->micro_step, code, t, NULL, 2, a, b), path);
}

static Val number(Split *s, double value, const char *path) {
    return accumulate_number(s->micro_step, AMP_DT_F32, value, path);
}

/* |v| modulo |of|, a power of two: whole numbers of f32 are exact. */
static Val remainder_of(Split *s, Val v, int64_t of, const char *path) {
    Val whole = one(s, OP_floor, two(s, OP_mul, AMP_DT_F32, v, number(s, 1.0 / (double)of, path), path), path);
    return two(s, OP_sub, AMP_DT_F32, v, two(s, OP_mul, AMP_DT_F32, whole, number(s, (double)of, path), path), path);
}

static Val equals(Split *s, Val v, int64_t value, const char *path) {
    return two(s, OP_eq, AMP_DT_BOOL, v, number(s, (double)value, path), path);
}

static int levels_of(int64_t micro_batches) {
    int levels = 0;
    while ((int64_t)1 << levels < micro_batches) levels++;
    return levels;
}

/* In the last micro-batch all that is kept is added. */
void accumulate_tree_begin(Split *s, Val first) {
    Arena *a = s->m->arena;
    const int64_t last = s->m->accumulate - 1;
    if (s->m->accumulate_order != ORDER_TREE || last < 2) return;
    s->levels = levels_of(s->m->accumulate);
    s->level = arena_array(a, TreeLevel, s->levels);
    Val micro = one(s, OP_cast, s->micro, "micro.number");
    Val here = two(s, OP_sub, AMP_DT_F32, micro, one(s, OP_cast, first, "micro.number"), "micro.here");
    Val is_last = equals(s, here, last, "micro.last");
    for (int l = 0; l < s->levels; l++) {
        const char *path = arena_printf(a, "micro.level.%d", l);
        const int64_t half = (int64_t)1 << l, whole = 2 * half;
        Val at = l == s->levels - 1 ? here : remainder_of(s, here, whole, path);
        Val merges = equals(s, at, whole - 1, path), keeps = equals(s, at, half - 1, path);
        if ((last & half) && last % whole != whole - 1) merges = two(s, OP_or, AMP_DT_BOOL, merges, is_last, path);
        if (l == s->levels - 1) keeps = two(s, OP_or, AMP_DT_BOOL, keeps, is_last, path);
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
        Val kept = ir_use_state(f, state), added = two(s, OP_add, sum->dtype, kept, v, path);
        Val up = accumulate_explain(s, ir_emit(f, OP_where, sum->dtype, NULL, 3, level->merges, added, v), path);
        Val stays = l == s->levels - 1 ? up : v;
        Val next = accumulate_explain(s, ir_emit(f, OP_where, sum->dtype, NULL, 3, level->keeps, stays, kept), path);
        if (l == s->levels - 1) return next;
        accumulate_assign(s, f, kept, next);
        v = up;
    }
    return v;
}
