/* sync.c: batch norm over the batches of all ranks.
 *
 *   %y, %m, %v, %r = batch_norm(%x, %w, %b, ..; sync = true)
 *     =>
 *   %sums, %squares = batch_norm_sums(%x)                    of this rank's batch: [C + 1] and [C]
 *   %sums.all       = sum_ranks(%sums; number = 0)           because {sync, of bn.batch_norm, "sums and counts .."}
 *   %around         = batch_norm_squares(%x, %sums, %sums.all, %squares)
 *   %squares.all    = sum_ranks(%around; number = 1)         because {sync, of bn.batch_norm, "squares around .."}
 *   %y, %m, %v, %r  = batch_norm(%x, %w, %b, .., %sums.all, %squares.all)
 *   ...
 *   %d.x, %d.w, %d.b = batch_norm_grad(%d.y, %x, %w, %m, %r)
 *     =>
 *   %both     = batch_norm_grad_sums(%d.y, %x, %m, %r)       d weight and d bias: [2 C]
 *   %both.all = sum_ranks(%both; number = 2)                 because {sync, of bn.batch_norm, "d weight and .."}
 *   %d.x, %d.w, %d.b = batch_norm_grad(%d.y, %x, %w, %m, %r, %sums.all, %both, %both.all)
 *
 * Ranks differentiate the sum of their losses; step_mean.c gives each its share of it.  So d x of a rank has
 * the sums over all ranks, and d weight and d bias stay its own: reduce_step adds them as it adds other gradients.
 *
 * Counts are added with the sums: batches may differ in size.  Where `checkpoint` computes a norm again, the copy reads
 * what was added for the original.
 */
#include "passes/training/training.h"

typedef struct Expanding {
    Module *m;
    Func *f;
    const Op *of; /* the op of the graph */
    int at;       /* its position in the body */
} Expanding;

/* ---- ops --------------------------------------------------------------------------------------------------------- */

static Op *explain(Expanding *x, Op *o, const char *what, const char *because) {
    o->path = arena_printf(x->m->arena, "%s.%s", x->of->path ? x->of->path : "batch_norm", what);
    o->layer = x->of->layer;
    o->pos = x->of->pos;
    o->reason = ir_reason(x->m, "sync");
    o->reason->relation = x->of->path ? "of" : NULL;
    o->reason->neighbour = x->of->path;
    o->reason->because = because;
    return o;
}

static Op *emit(Expanding *x, Opcode code, const char *what, const Val *in, int n_in) {
    Op *o = ir_op_new(x->f, code, in, n_in);
    ir_make_results(x->f, o, AMP_DT_F32, NULL);
    return explain(x, o, what, NULL);
}

static Val add_ranks(Expanding *x, Val v, const char *what, const char *because) {
    Val all = ir_emit(x->f, OP_sum_ranks, AMP_DT_F32, NULL, 1, v);
    explain(x, ir_def(x->f, all), what, because);
    return all;
}

static void read_also(Expanding *x, Op *o, const Val *more, int count) {
    Val *in = arena_array(x->m->arena, Val, o->n_in + count);
    memcpy(in, o->in, sizeof *in * (size_t)o->n_in);
    memcpy(in + o->n_in, more, sizeof *in * (size_t)count);
    o->in = in;
    o->n_in += count;
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

enum { PLAIN_OPERANDS = 5, SUMS = 5, SQUARES = 6 };

static bool is_expanded(const Op *o) { return o && o->code == OP_batch_norm && o->n_in > PLAIN_OPERANDS; }

/* The norm that a checkpoint computes again by this op; NULL: it is none. */
static const Op *original_of(const Expanding *x) {
    const Reason *r = x->of->reason;
    if (!r || strcmp(r->rule, "checkpoint") || !r->neighbour) return NULL;
    for (int i = 0; i < x->at; i++) {
        const Op *o = ir_op_at(x->f, i);
        if (is_expanded(o) && o->path && !strcmp(o->path, r->neighbour)) return o;
    }
    return NULL;
}

static void expand_norm(Expanding *x, Op *o) {
    const Op *original = original_of(x);
    if (original) {
        read_also(x, o, (Val[]){original->in[SUMS], original->in[SQUARES]}, 2);
        return;
    }
    const Op *own = emit(x, OP_batch_norm_sums, "sums", o->in, 1);
    Val sums = add_ranks(x, own->out[0], "sums.ranks", "sums and counts of all ranks");
    const Op *around = emit(x, OP_batch_norm_squares, "squares", (Val[]){o->in[0], own->out[0], sums, own->out[1]}, 4);
    Val squares = add_ranks(x, around->out[0], "squares.ranks", "squares around the mean of all ranks");
    read_also(x, o, (Val[]){sums, squares}, 2);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* The norm that this is the gradient of, found by its mean. */
static const Op *norm_of(const Func *f, const Op *grad) {
    const Op *o = ir_def(f, grad->in[3]);
    while (o && o->code == OP_barrier) o = ir_def(f, o->in[0]);
    return o;
}

/* Without d x, the sums of all ranks are not needed. */
static bool is_read(const Func *f, Val v) {
    for (int i = 0; i < f->body.len; i++)
        for (int j = 0; j < ir_op_at(f, i)->n_in; j++)
            if (ir_op_at(f, i)->in[j].id == v.id) return true;
    for (int i = 0; i < f->results.len; i++)
        if (f->results.data[i].value.id == v.id) return true;
    return false;
}

static void expand_grad(Expanding *x, Op *o) {
    const Op *norm = norm_of(x->f, o);
    if (!is_expanded(norm) || !is_read(x->f, o->out[0])) return;
    const Op *own = emit(x, OP_batch_norm_grad_sums, "sums", (Val[]){o->in[0], o->in[1], o->in[3], o->in[4]}, 4);
    Val all = add_ranks(x, own->out[0], "sums.ranks", "d weight and d bias of all ranks");
    read_also(x, o, (Val[]){norm->in[SUMS], own->out[0], all}, 3);
}

/* ---- the functions ----------------------------------------------------------------------------------------------- */

static void expand_func(Module *m, Func *f) {
    for (int i = 0; i < f->body.len; i++) {
        const int before = f->body.len;
        Op *o = ir_op_at(f, i);
        Expanding x = {m, f, o, i};
        if (o->code == OP_batch_norm && ir_attr(o, "sync")->b) expand_norm(&x, o);
        else if (o->code == OP_batch_norm_grad) expand_grad(&x, o);
        else continue;
        accumulate_move_last(f, f->body.len - before, i);
        i += f->body.len - before;
    }
}

static void number_sums(const Func *f) {
    int64_t number = 0;
    for (int i = 0; i < f->body.len; i++)
        if (ir_op_at(f, i)->code == OP_sum_ranks) ir_attr(ir_op_at(f, i), "number")->i = number++;
}

/* Alone, the sum over ranks is what there is. */
static void remove_sums(Func *f) {
    Renames renames = renames_new(f);
    int kept = 0;
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        renames_apply(&renames, o);
        if (o->code == OP_sum_ranks) renames.to[o->out[0].id] = o->in[0];
        else f->body.data[kept++] = o->id;
    }
    f->body.len = kept;
    renames_apply_results(&renames, f);
}

void sync_expand(Module *m) {
    Func *step = ir_program(m, PROGRAM_TRAIN_STEP);
    if (step && m->distribution) {
        expand_func(m, step);
        number_sums(step);
    } else if (step) remove_sums(step);
    for (int i = 0; i < m->funcs.len; i++)
        for (int j = 0; j < m->funcs.data[i]->body.len; j++) {
            Op *o = ir_op_at(m->funcs.data[i], j);
            if (o->code == OP_batch_norm) ir_attr(o, "sync")->b = false;
        }
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* By value: the same on all ranks; and made of what they have added up. */
typedef struct Equal {
    const Split *s;
    bool *is, *added;
} Equal;

/* Counters of micro-batches are a rank's own, but for the question whether this is its first. */
static bool is_equal_input(const Func *f, Val v) {
    if (ir_value(f, v)->kind != VAL_STATE) return false;
    const State *s = ir_state_of(f, v);
    if (s->role == STATE_COUNTER) return s->counter.kind != COUNTER_MICRO && s->counter.kind != COUNTER_FIRST_MICRO;
    return s->role != STATE_ACCUMULATOR;
}

/* Statistics of a norm over all ranks are made of their sums alone. */
static void visit_norm(Equal *e, const Op *o) {
    for (int r = 1; r < o->n_out && is_expanded(o); r++) {
        e->is[o->out[r].id] = e->is[o->in[SUMS].id] && e->is[o->in[SQUARES].id];
        e->added[o->out[r].id] = true;
    }
}

static void visit(Equal *e, const Op *o) {
    const bool sums = o->code == OP_sum_ranks;
    bool is = !(ir_op_info[o->code].flags & RANDOM), added = sums;
    for (int i = 0; i < o->n_in; i++) {
        is = is && e->is[o->in[i].id];
        added = added || e->added[o->in[i].id];
    }
    for (int r = 0; r < o->n_out; r++) {
        e->is[o->out[r].id] = is || sums || o->out[r].id == e->s->first.id;
        e->added[o->out[r].id] = added;
    }
    if (o->code == OP_batch_norm) visit_norm(e, o);
}

static size_t scope_length(const char *name) { return strrchr(name, '.') ? (size_t)(strrchr(name, '.') - name) : 0; }

/* The running mean of a norm; within a step, the one that the micro-batch before has left. */
static const State *running_mean(const Func *f, const Op *norm) {
    const Op *now = ir_def(f, norm->in[3]);
    return ir_state_of(f, now && now->code == OP_where ? now->in[1] : norm->in[3]);
}

/* A buffer of a block whose norm is over all ranks: it counts batches. */
static bool is_beside_norm(const Func *f, const State *buffer) {
    const size_t length = scope_length(buffer->name);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        const State *mean = is_expanded(o) ? running_mean(f, o) : NULL;
        if (mean && scope_length(mean->name) == length && !strncmp(mean->name, buffer->name, length)) return true;
    }
    return false;
}

bool sync_is_equal(const Split *s, const State *buffer, Val next) {
    const Func *f = s->micro_step;
    Equal e = {s, arena_array(s->m->arena, bool, f->values.len + 1), arena_array(s->m->arena, bool, f->values.len + 1)};
    if (!s->m->distribution) return false;
    for (int i = 0; i < f->inputs.len; i++) e.is[f->inputs.data[i].id] = is_equal_input(f, f->inputs.data[i]);
    for (int i = 0; i < f->body.len; i++) visit(&e, ir_op_at(f, i));
    return e.is[next.id] && (e.added[next.id] || is_beside_norm(f, buffer));
}
