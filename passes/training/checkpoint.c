/* checkpoint.c: copies of the ops of `checkpoint` blocks, for the backward pass.
 *
 *   %h = relu(%x)      checkpoint "1"      =>   %h       = relu(%x)
 *   %y = linear(%h, %w)                         %y       = linear(%h, %w)
 *                                               ...
 *                                               %x.again = barrier(%x, %d.h, %h)
 *                                               %h.again = relu(%x.again)              @relu.again
 *                                               %d.x     = relu_grad(%d.h, %h.again)
 *
 * An op is copied when a backward op asks for its result, with the ops of the block that it needs (Chen et al. 2016,
 * "Training deep nets with sublinear memory cost").  What comes from outside the block is read through a barrier: it
 * waits for the gradient that arrives at the block, so that no copy runs before, and for the block's own result, since
 * the gradient may be a constant.  Not copied:
 *   - what the backward pass of later ops has read already: it is in memory anyway, and is read through a barrier too;
 *   - casts of parameters, which the layout pass keeps beside the parameters.
 * Random ops keep their key, so they draw the same numbers.
 *
 * Blocks nest: in the backward pass of the outer one its copies stand for the values of the inner one, until that is
 * reached and has copies of its own.
 */
#include "passes/training/training.h"

typedef struct Level { /* a block; number 0 is the function itself */
    int parent, depth;
    int first;    /* the op of the body that it begins with */
    Val after[2]; /* what its copies wait for; NO_VAL: the backward pass has not reached it */
} Level;

typedef struct Again { /* of a forward value */
    Val now;           /* is used in its place; NO_VAL: itself */
    int level;         /* of |now| */
    bool read;         /* a backward op, or a barrier, reads |now|: it is in memory */
    Val barrier;       /* of it, as the copies of level |barrier_level| read it */
    int barrier_level;
} Again;

struct Checkpoints {
    Func *f;
    const char *word;
    VEC(Level) levels;
    int *level_of;   /* by position in the body: the innermost block */
    int *asked;      /* by position: the level for which a copy is wanted now */
    Again *again;    /* by value id */
    int values, ops; /* of the forward part */
};

/* ---- the blocks -------------------------------------------------------------------------------------------------- */

static int level_named(Checkpoints *c, Table *numbers, const char *name, int position) {
    Arena *a = c->f->module->arena;
    if (!name) return 0;
    int number = (int)(intptr_t)table_get(numbers, name);
    if (number) return number;
    const char *dot = strrchr(name, '.');
    int parent = level_named(c, numbers, dot ? arena_strndup(a, name, (size_t)(dot - name)) : NULL, position);
    vec_push(a, &c->levels, ((Level){parent, c->levels.data[parent].depth + 1, position, {NO_VAL, NO_VAL}}));
    number = c->levels.len - 1;
    table_set(a, numbers, name, (void *)(intptr_t)number);
    return number;
}

Checkpoints *checkpoints_new(Func *f, int forward_ops, const char *word) {
    Arena *a = f->module->arena;
    Checkpoints *c = arena_new(a, Checkpoints);
    Table numbers = {0};
    *c = (Checkpoints){.f = f, .word = word, .values = f->values.len, .ops = forward_ops};
    c->level_of = arena_array(a, int, forward_ops + 1);
    vec_push(a, &c->levels, ((Level){0}));
    for (int i = 0; i < forward_ops; i++) c->level_of[i] = level_named(c, &numbers, ir_op_at(f, i)->checkpoint, i);
    if (c->levels.len == 1) return NULL;
    c->asked = arena_array(a, int, forward_ops + 1);
    c->again = arena_array(a, Again, c->values);
    return c;
}

static int position_of(const Op *o) { return (int)o->id.id - 1; }

static bool is_inside(const Checkpoints *c, int level, int outer) {
    while (c->levels.data[level].depth > c->levels.data[outer].depth) level = c->levels.data[level].parent;
    return level == outer;
}

/* The gradient that was made last, among the gradients of the block's values. */
static Val latest_gradient(const Checkpoints *c, int first, int last, const Val *gradient) {
    Val latest = NO_VAL;
    for (int i = first; i <= last; i++) {
        const Op *o = ir_op_at(c->f, i);
        for (int r = 0; r < o->n_out; r++)
            if (gradient[o->out[r].id].id > latest.id) latest = gradient[o->out[r].id];
    }
    return latest;
}

void checkpoints_reach(Checkpoints *c, const Op *o, const Val *gradient) {
    int position = position_of(o);
    for (int level = c->level_of[position]; level; level = c->levels.data[level].parent) {
        Level *l = &c->levels.data[level];
        Val y = o->out[0];
        if (l->after[0].id) break;
        l->after[0] = latest_gradient(c, l->first, position, gradient);
        l->after[1] = c->again[y.id].now.id ? c->again[y.id].now : y;
    }
}

/* ---- which values ------------------------------------------------------------------------------------------------ */

static bool is_cast_of_param(const Func *f, const Op *o) {
    const State *s = o->code == OP_cast ? ir_state_of(f, o->in[0]) : NULL;
    return s && s->role == STATE_PARAM;
}

/* The innermost of |level| and the blocks around it whose copies stand for |v|; 0: |v| is kept as it is.  What ranks
 * have added up is small, and they would wait for each other again. */
static int level_for(const Checkpoints *c, Val v, int level) {
    const Op *o = ir_def(c->f, v);
    if (!o || o->code == OP_sum_ranks || is_cast_of_param(c->f, o)) return 0;
    while (level && !is_inside(c, c->level_of[position_of(o)], level)) level = c->levels.data[level].parent;
    return level;
}

static bool is_made(const Checkpoints *c, Val v, int level) {
    return c->again[v.id].now.id && c->levels.data[c->again[v.id].level].depth >= c->levels.data[level].depth;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static Val value_at(Checkpoints *c, Val v, int level);

static const char *path_again(const Checkpoints *c, const Op *o, int level) {
    Text t;
    text_init(&t, c->f->module->arena);
    text_printf(&t, "%s.%s", o->path ? o->path : ir_op_info[o->code].name, c->word);
    if (c->levels.data[level].depth > 1) text_printf(&t, "_%d", c->levels.data[level].depth - 1);
    return text_str(&t);
}

static const char *name_again(const Checkpoints *c, Val v) {
    return is_numbered(c->f, v) ? NULL : arena_printf(c->f->module->arena, "%s.again", ir_value(c->f, v)->name);
}

static Val behind_barrier(Checkpoints *c, const Op *o, Val v, Val now, int level) {
    const Level *l = &c->levels.data[level];
    Op *barrier = ir_op_new(c->f, OP_barrier, (Val[]){now, l->after[0], l->after[1]}, 3);
    barrier->path = arena_printf(c->f->module->arena, "%s.barrier", path_again(c, o, level));
    barrier->layer = o->layer;
    barrier->pos = o->pos;
    barrier->reason = ir_reason(c->f->module, "checkpoint");
    c->again[v.id].read = true;
    return ir_make_results(c->f, barrier, ir_dtype(c->f, v), name_again(c, v));
}

/* Operand |v| of |o|, from outside the block. */
static Val from_outside(Checkpoints *c, const Op *o, Val v, int level) {
    Again *a = &c->again[v.id];
    if (a->barrier.id && a->barrier_level == level) return a->barrier;
    Val now = value_at(c, v, c->levels.data[level].parent);
    a->barrier_level = level;
    return a->barrier = behind_barrier(c, o, v, now, level);
}

/* Parameters are in memory all the time, so a barrier is needed only where nothing else says when the op runs. */
static bool reads_states_alone(const Func *f, const Op *o) {
    for (int i = 0; i < o->n_in; i++)
        if (ir_value(f, o->in[i])->kind != VAL_STATE) return false;
    return true;
}

static Val operand_again(Checkpoints *c, const Op *o, int i, int level) {
    Val v = o->in[i];
    if (!ir_reads_elements(o, i)) return v;
    if (level_for(c, v, level) == level) return c->again[v.id].now;
    const Op *def = ir_def(c->f, v);
    bool state = ir_value(c->f, v)->kind == VAL_STATE && !reads_states_alone(c->f, o);
    return state || (def && is_cast_of_param(c->f, def)) ? v : from_outside(c, o, v, level);
}

/* Its operands have been made. */
static void copy_op(Checkpoints *c, const Op *o, int level) {
    Val *in = arena_array(c->f->module->arena, Val, o->n_in + 1);
    for (int i = 0; i < o->n_in; i++) in[i] = operand_again(c, o, i, level);
    Op *copy = op_like(c->f, o, in);
    AttrValue *key = ir_attr(copy, "key");
    if (key && (!key->s || !*key->s)) key->s = o->path;
    copy->path = path_again(c, o, level);
    copy->checkpoint = NULL;
    copy->reason = ir_reason(c->f->module, "checkpoint");
    copy->reason->relation = o->path ? "of" : NULL;
    copy->reason->neighbour = o->path;
    for (int r = 0; r < o->n_out; r++) {
        Val v = o->out[r];
        Val now = ir_result(c->f, copy, name_again(c, v), ir_dtype(c->f, v), *ir_shape(c->f, v));
        if (is_made(c, v, level)) continue;
        c->again[v.id].now = now;
        c->again[v.id].level = level;
        c->again[v.id].read = false;
    }
}

/* Marks the op that makes |v|, unless that is there: where it has been read, the value of the block around is. */
static void ask(Checkpoints *c, Val v, int level) {
    Again *a = &c->again[v.id];
    const Op *o = ir_def(c->f, v);
    if (level_for(c, v, level) != level || is_made(c, v, level)) return;
    if (a->read) {
        a->now = behind_barrier(c, o, v, a->now.id ? a->now : v, level);
        a->level = level;
    } else c->asked[position_of(o)] = level;
}

/* |v| and what it needs, in the order of the body. */
static void make(Checkpoints *c, Val v, int level) {
    int last = position_of(ir_def(c->f, v)), first = c->levels.data[level].first;
    ask(c, v, level);
    for (int i = last; i >= first; i--)
        for (int n = 0; n < ir_op_at(c->f, i)->n_in && c->asked[i] == level; n++)
            if (ir_reads_elements(ir_op_at(c->f, i), n)) ask(c, ir_op_at(c->f, i)->in[n], level);
    for (int i = first; i <= last; i++) {
        if (c->asked[i] != level) continue;
        c->asked[i] = 0;
        copy_op(c, ir_op_at(c->f, i), level);
    }
}

/* The value to use for |v| in the backward pass of |level|. */
static Val value_at(Checkpoints *c, Val v, int level) {
    level = level_for(c, v, level);
    if (!level) return v;
    if (!is_made(c, v, level)) make(c, v, level);
    return c->again[v.id].now;
}

Val checkpoints_read(Checkpoints *c, const Op *o, Val v) {
    if ((int)v.id >= c->values) return v;
    Val now = value_at(c, v, c->level_of[position_of(o)]);
    c->again[v.id].read = true;
    return now;
}

void checkpoints_forget(Module *m) {
    for (int i = 0; i < m->funcs.len; i++)
        for (int j = 0; j < m->funcs.data[i]->body.len; j++) ir_op_at(m->funcs.data[i], j)->checkpoint = NULL;
}
