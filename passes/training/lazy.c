/* lazy.c: tables whose rows that a step has read are updated, and no others (`group "table": lazy = true`).
 *
 *   %1 = embedding_grad(%dy, %ids, %table) : f32[V, C]     =>   %2 = reshape(%ids)                       : i32[K, 1]
 *   result grad.table = %1                                      %first, %rows, %3 = distinct_rows(%2, %table)
 *                                                               %4 = reshape(%dy)                        : f32[K, C]
 *                                                               %5 = embedding_grad(%4, %first, %4)      : f32[K, C]
 *                                                               result grad.table = %5
 *
 * Row k of the gradient is the sum over all places with the id of place k where k is the first of them, in the order of
 * the places, and zero elsewhere: its norm is the norm of the whole gradient, and what is not finite there is not
 * finite here.  The optimizer takes such rows of the table and its moments out, and writes them back:
 *
 *   %6 = embedding(%ids, %table)   %7 = embedding(%ids, %"table/m")   ...
 *   %8, %9, ... = adam(%6, %5, ..., %7, ...)               assign(%table, %8, %rows) if %ok   ...
 *
 * What reads the table several times has its places one after the other.
 */
#include "ir/operands.h"
#include "passes/training/training.h"

/* ---- what may be lazy -------------------------------------------------------------------------------------------- */

static const char *remedy = "a lazy table is read by embedding alone; take the parameter out of the group";

static bool check_readers(PassContext *c, const Func *f, const State *s, const TrainGroup *group) {
    const Val table = ir_find(f, s->name);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        for (int n = 0; n < o->n_in; n++) {
            if (o->in[n].id != table.id || (o->code == OP_embedding && n == 1)) continue;
            Diag *diag = place_error(c, group->pos, "group: lazy: %s is read by %s (%s)", s->name,
                                     ir_op_info[o->code].name, o->path ? o->path : "unnamed");
            diag_help(c->diags, diag, "%s", remedy);
            return false;
        }
    }
    return true;
}

/* PyTorch has the same rule for gradients that are sparse: SparseAdam, Adagrad, and SGD without momentum. */
static const char *wrong_optimizer(const Call *call) {
    const bool sums = !strcmp(call->name, "adam") || !strcmp(call->name, "adagrad");
    if (sums) return NULL;
    if (strcmp(call->name, "sgd")) return call->name;
    return train_number(ir_call_arg(call, "momentum"), 0) != 0 ? "sgd with momentum" : NULL;
}

static bool decays(const Train *block, const ParamTraining *t, const Call *optimizer) {
    if (t->weight_decay != NO_BLOCK) return block->groups.data[t->weight_decay].weight_decay != 0;
    const CallArg *arg = ir_call_arg(optimizer, "weight_decay");
    return arg && (arg->call || train_number(arg, 0) != 0);
}

static bool check_update(PassContext *c, const State *s, const TrainGroup *group) {
    const ParamTraining t = ir_param_training(c->m, s->name);
    const Train *block = train_block(c->m, t.block);
    const Call *optimizer = ir_param_optimizer(c->m, &t);
    const char *wrong = wrong_optimizer(optimizer);
    Diag *diag;
    if (wrong) {
        diag = place_error(c, group->pos, "group: lazy: %s changes rows that a step did not read", wrong);
        diag_help(c->diags, diag,
                  "adam, adagrad and sgd without momentum are supported; a group may have an optimizer of its own");
    } else if (block->ema != 0) {
        diag = place_error(c, group->pos, "group: lazy: averages (`ema`) change rows that a step did not read");
        diag_help(c->diags, diag, "leave `ema` out of the train block, or `lazy`");
    } else if (decays(block, &t, optimizer)) {
        diag = place_error(c, group->pos, "group: lazy: weight decay changes rows that a step did not read");
        diag_help(c->diags, diag, "write `weight_decay = 0.0` in the group of %s", s->name);
    } else if (ir_step_is_divided(c->m)) {
        diag = place_error(c, group->pos, "group: lazy: a step of several micro-batches or ranks is not supported");
        diag_help(c->diags, diag, "leave `accumulate` and --distribute out, or `lazy`");
    } else return true;
    return false;
}

bool lazy_check(PassContext *c, const Func *forward) {
    bool fits = true;
    for (int i = 0; i < c->m->states.len; i++) {
        const State *s = c->m->states.data[i];
        const TrainGroup *group = s->role == STATE_PARAM ? ir_lazy_group(c->m, s->name) : NULL;
        if (group) fits = check_readers(c, forward, s, group) && check_update(c, s, group) && fits;
    }
    return fits;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

typedef struct Rows { /* what reads of a table add to its gradient, in the order in which the gradient adds them */
    Func *f;
    const Op *maker; /* the last of them */
    VEC(Val) ids, dy;
} Rows;

/* |v|, a gradient of the table, is embedding_grad, or a sum of several. */
static void find_reads(Rows *r, Val v) {
    const Op *o = ir_def(r->f, v);
    for (int i = 0; o->code != OP_embedding_grad && i < o->n_in; i++) find_reads(r, o->in[i]);
    if (o->code != OP_embedding_grad) return;
    r->maker = o;
    vec_push(r->f->module->arena, &r->dy, o->in[0]);
    vec_push(r->f->module->arena, &r->ids, o->in[1]);
}

static Op *explained(const Rows *r, Op *o, const char *word) {
    o->path = arena_printf(r->f->module->arena, "%s.%s", r->maker->path, word);
    o->pos = r->maker->pos;
    o->layer = r->maker->layer;
    o->reason = r->maker->reason;
    return o;
}

static Val reshaped(const Rows *r, Val v, int rank, const Dim *dims, const char *word) {
    Op *o = explained(r, ir_op_new(r->f, OP_reshape, &v, 1), word);
    return ir_result(r->f, o, NULL, ir_dtype(r->f, v), shape_of(rank, dims));
}

/* The places of |v|, a value of a read, as [samples, places, cols]; false: there is no such shape. */
static bool places(const Rows *r, Val v, int64_t cols, Dim out[3]) {
    const Shape *s = ir_shape(r->f, v);
    Dim each = dim_const(1);
    for (int i = 1; i < s->rank; i++)
        if (!dim_mul(each, s->d[i], &each)) return false;
    out[0] = s->rank ? s->d[0] : dim_const(1), out[1] = dim_divided(each, cols), out[2] = dim_const(cols);
    return !each.n && s->rank > (cols > 1);
}

/* Of all reads, sample by sample: [K, cols]; NO_VAL: they are of different samples. */
static Val stacked(const Rows *r, const Val *parts, int count, int64_t cols, const char *word) {
    Val *in = arena_array(r->f->module->arena, Val, count + 1);
    Dim dims[3], all[2], first = dim_const(0), each = dim_const(0);
    for (int i = 0; i < count; i++) {
        if (!places(r, parts[i], cols, dims) || (i && !dim_equal(dims[0], first))) return NO_VAL;
        if (count > 1 && dim_varies(dims[1])) return NO_VAL;
        first = dims[0];
        in[i] = count > 1 ? reshaped(r, parts[i], 3, dims, word) : parts[i];
        dims[1].mul += each.mul;
        each = dims[1];
    }
    if (count > 1) {
        Op *o = explained(r, ir_op_new(r->f, OP_concat, in, count), word);
        ir_attr(o, "dim")->i = 1;
        in[0] = ir_make_results(r->f, o, ir_dtype(r->f, in[0]), NULL);
    }
    all[1] = dim_const(cols);
    return dim_mul(first, each, &all[0]) ? reshaped(r, in[0], 2, all, word) : NO_VAL;
}

/* The gradient of |table|, by row. */
static Val by_row(Rows *r, Val table, Val gradient) {
    const int64_t cols = ir_shape(r->f, table)->d[1].mul;
    find_reads(r, gradient);
    const Val ids = stacked(r, r->ids.data, r->ids.len, 1, "ids"), dy = stacked(r, r->dy.data, r->dy.len, cols, "rows");
    if (!ids.id || !dy.id) return NO_VAL;
    Op *distinct = explained(r, ir_op_new(r->f, OP_distinct_rows, (Val[]){ids, table}, 2), "distinct");
    const Val at = ir_make_results(r->f, distinct, AMP_DT_I32, NULL);
    Op *sum = explained(r, ir_op_new(r->f, OP_embedding_grad, (Val[]){dy, at, dy}, 3), "sums");
    return ir_make_results(r->f, sum, AMP_DT_F32, NULL);
}

bool lazy_gradients(PassContext *c, Func *f) {
    for (int i = 0; i < f->results.len; i++) {
        const State *s = f->results.data[i].kind == RESULT_GRADIENT ? ir_result_state(f, &f->results.data[i]) : NULL;
        const TrainGroup *group = s ? ir_lazy_group(c->m, s->name) : NULL;
        if (!group) continue;
        Rows rows = {.f = f};
        const Val v = by_row(&rows, ir_find(f, s->name), f->results.data[i].value);
        if (!v.id) {
            Diag *diag =
                place_error(c, group->pos, "group: lazy: %s is read for different numbers of samples", s->name);
            diag_help(c->diags, diag, "one table for each of these reads may be lazy");
            return false;
        }
        f->results.data[i].value = v;
    }
    return true;
}

/* ---- updates ----------------------------------------------------------------------------------------------------- */

const Op *lazy_rows(const Func *f, const State *param) {
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (o->code == OP_distinct_rows && ir_state_of(f, o->in[1]) == param) return o;
    }
    return NULL;
}

Val lazy_take(Func *f, const Op *rows, Val state, const Train *block) {
    const char *of = ir_value(f, state)->name;
    const Shape *ids = ir_shape(f, rows->in[0]);
    Op *flat = ir_op_new(f, OP_reshape, rows->in, 1);
    train_explain_update(f->module, block, flat, of, "ids");
    const Val v = ir_result(f, flat, NULL, AMP_DT_I32, shape_of(1, ids->d));
    Op *taken = ir_op_new(f, OP_embedding, (Val[]){v, state}, 2);
    train_explain_update(f->module, block, taken, of, "rows");
    return ir_make_results(f, taken, AMP_DT_F32, NULL);
}
