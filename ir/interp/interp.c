/* interp.c: runs a function op by op: finds inputs, checks each op's shapes, calls its function, rounds, writes
 * states. */
#include "ir/interp/interp.h"

#include <math.h>

#include "base/dtypes.h"
#include "ir/interp/ops.h"

enum { MOST_ELEMENTS = 1 << 28 }; /* of one tensor */

typedef struct Interp {
    const Func *f;
    Arena *a;
    Sizes sizes;
    bool round;
    InterpTensor *given;
    int given_count;
    InterpTensor **values; /* by id; NULL: not computed yet */
    uint64_t seed, iteration, micro, full_batch;
    const InterpOptions *options;
    amp_error *err;
} Interp;

/* ---- inputs ---------------------------------------------------------------------------------- */

static InterpTensor *find_given(const Interp *it, const char *name) {
    for (int i = 0; i < it->given_count; i++)
        if (!strcmp(it->given[i].name, name)) return &it->given[i];
    return NULL;
}

static bool has_shape(const InterpTensor *t, const Shape *s, Sizes at) {
    if (t->rank != s->rank) return false;
    int64_t count = 1;
    for (int i = 0; i < s->rank; i++) {
        if (t->dims[i] != dim_eval(s->d[i], at)) return false;
        count *= t->dims[i];
    }
    return count == t->count;
}

/* Between [O, I, KH, KW] and [KH, KW, I, O]. */
static void turn(const InterpTensor *oihw, const InterpTensor *hwio, bool forth) {
    const int64_t *d = oihw->dims;
    for (int64_t o = 0, from = 0; o < d[0]; o++)
        for (int64_t i = 0; i < d[1]; i++)
            for (int64_t tap = 0; tap < d[2] * d[3]; tap++, from++) {
                const int64_t to = (tap * d[1] + i) * d[0] + o;
                if (forth) hwio->data[to] = oihw->data[from];
                else oihw->data[from] = hwio->data[to];
            }
}

/* Between columns as the user counts them, and State.pixels. */
static void turn_columns(const InterpTensor *user, const InterpTensor *value, int64_t pixels, bool forth) {
    const int64_t columns = user->dims[1], channels = columns / pixels;
    for (int64_t i = 0; i < user->count; i++) {
        const int64_t c = i % columns, to = i - c + c % pixels * channels + c / pixels;
        if (forth) value->data[to] = user->data[i];
        else user->data[i] = value->data[to];
    }
}

static bool is_turned(const State *s) { return s && (s->hwio || s->pixels); }

static InterpTensor *turned_state(const Interp *it, const Value *value, const State *s, const InterpTensor *given) {
    InterpTensor *t = arena_new(it->a, InterpTensor);
    *t = interp_tensor(it->a, value->name, &value->shape, it->sizes);
    if (s->hwio) turn(given, t, true);
    else turn_columns(given, t, s->pixels, true);
    return t;
}

static amp_status take_inputs(Interp *it) {
    for (int i = 0; i < it->f->inputs.len; i++) {
        Val v = it->f->inputs.data[i];
        const Value *value = ir_value(it->f, v);
        InterpTensor *t = find_given(it, value->name);
        const State *s = value->kind == VAL_STATE ? ir_state_of(it->f, v) : NULL;
        const Shape *shape = s ? &s->shape : &value->shape;
        if (!t) return amp_fail(it->err, AMP_INVALID_ARGUMENT, "%s: input %%%s is not given", it->f->name, value->name);
        if (!has_shape(t, shape, it->sizes))
            return amp_fail(it->err, AMP_INVALID_ARGUMENT, "%s: input %%%s must have shape %s at N = %lld", it->f->name,
                            value->name, shape_text(it->a, shape), (long long)it->sizes.n);
        it->values[v.id] = is_turned(s) ? turned_state(it, value, s, t) : t;
    }
    return AMP_OK;
}

static uint64_t counter(const Interp *it, CounterKind kind) {
    const InterpTensor *t = find_given(it, amp_counter_word(kind));
    return t && t->count == 1 ? (uint64_t)(int64_t)t->data[0] : 0;
}

/* ---- ops ------------------------------------------------------------------------------------- */

static amp_status bad_op(const Interp *it, const Op *o, const char *what) {
    return amp_fail(it->err, AMP_INVALID_ARGUMENT, "%s: %s (%s): %s", it->f->name, ir_op_info[o->code].name,
                    o->path ? o->path : "no path", what);
}

static bool evaluates(const Shape *s, Sizes at) {
    int64_t count = 1;
    for (int i = 0; i < s->rank; i++) {
        int64_t d = dim_eval(s->d[i], at);
        if (d < 1 || __builtin_mul_overflow(count, d, &count) || count > MOST_ELEMENTS) return false;
    }
    return true;
}

/* The shapes that the op functions rely on. */
static amp_status check_op(const Interp *it, const Op *o) {
    InferredTypes types;
    const char *wrong = ir_infer(it->f, o, o->n_out ? ir_dtype(it->f, o->out[0]) : AMP_DT_F32, &types);
    if (wrong) return bad_op(it, o, wrong);
    if (types.count != o->n_out) return bad_op(it, o, "has the wrong number of results");
    for (int i = 0; i < o->n_in; i++)
        if (!it->values[o->in[i].id]) return bad_op(it, o, "reads a value that is not computed before it");
    for (int i = 0; i < o->n_out; i++) {
        if (!shape_equal(ir_shape(it->f, o->out[i]), &types.shape[i]))
            return bad_op(it, o, "a result's shape does not match its operands");
        if (!evaluates(&types.shape[i], it->sizes))
            return bad_op(it, o, "a result is too large, or its shape is not whole at this N");
    }
    return AMP_OK;
}

static bool is_integer(Dtype t) { return amp_class_of(t) == AMP_CLASS_INTEGER; }

/* Into the dtype of the value: integers and booleans always, floats where values are rounded. */
static void finish_value(const Interp *it, Val v) {
    Dtype t = ir_dtype(it->f, v);
    InterpTensor *x = it->values[v.id];
    for (int64_t i = 0; i < x->count; i++)
        x->data[i] = is_integer(t)      ? trunc(x->data[i])
                     : t == AMP_DT_BOOL ? x->data[i] != 0
                                        : interp_round(it->round, t, x->data[i]);
}

InterpFn *const interp_ops[OP_COUNT] = {
#define OP(name, ...) [OP_##name] = interp_op_##name,
#include "ir/ops.def"
};

static amp_status run_op(Interp *it, const Op *o) {
    InterpFn *fn = interp_ops[o->code];
    if (!fn) return bad_op(it, o, "the interpreter does not know this op");
    AMP_TRY(check_op(it, o));
    const InterpTensor **in = arena_array(it->a, const InterpTensor *, o->n_in + 1);
    InterpTensor **out = arena_array(it->a, InterpTensor *, o->n_out + 1);
    for (int i = 0; i < o->n_in; i++) in[i] = it->values[o->in[i].id];
    for (int i = 0; i < o->n_out; i++) {
        out[i] = arena_new(it->a, InterpTensor);
        *out[i] = interp_tensor(it->a, ir_value(it->f, o->out[i])->name, ir_shape(it->f, o->out[i]), it->sizes);
        it->values[o->out[i].id] = out[i];
    }
    fn(&(Running){it->f, o, in, out, it->round, it->seed, it->iteration, it->micro, it->full_batch, it->a, it->options,
                  it->sizes});
    for (int i = 0; i < o->n_out; i++) finish_value(it, o->out[i]);
    return AMP_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

/* A result may be a state that the function writes: its old value is the result. */
static amp_status copy_results(Interp *it, InterpTensor *results) {
    for (int i = 0; i < it->f->results.len; i++) {
        const Result *r = &it->f->results.data[i];
        const InterpTensor *t = ir_value(it->f, r->value) ? it->values[r->value.id] : NULL;
        if (!t) return amp_fail(it->err, AMP_INVALID_ARGUMENT, "%s: result %s is not computed", it->f->name, r->name);
        results[i] = *t;
        results[i].name = r->name;
        results[i].data = arena_array(it->a, double, t->count + 1);
        if (r->hwio) {
            const int64_t plain[] = {t->dims[3], t->dims[2], t->dims[0], t->dims[1]};
            memcpy(results[i].dims, plain, sizeof plain);
            turn(&results[i], t, false);
        } else if (r->pixels) {
            turn_columns(&results[i], t, r->pixels, false);
        } else {
            memcpy(results[i].data, t->data, sizeof(double) * (size_t)t->count);
        }
    }
    return AMP_OK;
}

static bool is_written(const Interp *it, const Op *o) {
    return o->code == OP_assign && (!o->pred.id || it->values[o->pred.id]->data[0] != 0);
}

static void write_rows(InterpTensor *state, const double *from, const InterpTensor *rows) {
    const int64_t width = state->dims[1];
    for (int64_t k = 0; k < rows->count; k++) {
        const double row = rows->data[k];
        if (row < 0 || row >= (double)state->dims[0]) continue;
        memcpy(state->data + (int64_t)row * width, from + k * width, sizeof *from * (size_t)width);
    }
}

/* Copies first, so that one state may be assigned another's old value. */
static void write_states(Interp *it) {
    VEC(const double *) sources = {0};
    for (int i = 0; i < it->f->body.len; i++) {
        const Op *o = ir_op_at(it->f, i);
        if (!is_written(it, o)) continue;
        const InterpTensor *t = it->values[o->in[1].id];
        double *copy = arena_array(it->a, double, t->count + 1);
        memcpy(copy, t->data, sizeof(double) * (size_t)t->count);
        vec_push(it->a, &sources, copy);
    }
    for (int i = 0, k = 0; i < it->f->body.len; i++) {
        const Op *o = ir_op_at(it->f, i);
        if (!is_written(it, o)) continue;
        InterpTensor *state = it->values[o->in[0].id];
        if (o->n_in == 3) write_rows(state, sources.data[k++], it->values[o->in[2].id]);
        else memcpy(state->data, sources.data[k++], sizeof(double) * (size_t)state->count);
        const State *s = ir_state_of(it->f, o->in[0]);
        if (s->hwio) turn(find_given(it, s->name), state, false);
        if (s->pixels) turn_columns(find_given(it, s->name), state, s->pixels, false);
    }
}

static amp_status check_predicates(const Interp *it) {
    for (int i = 0; i < it->f->body.len; i++) {
        const Op *o = ir_op_at(it->f, i);
        if (o->pred.id && !(ir_value(it->f, o->pred) && it->values[o->pred.id]))
            return bad_op(it, o, "its predicate is not computed");
    }
    return AMP_OK;
}

amp_status interp_run(const Func *f, Sizes at, const InterpOptions *options, InterpTensor *given, int given_count,
                      InterpTensor *results, amp_error *err) {
    Interp it = {.f = f,
                 .a = f->module->arena,
                 .sizes = at,
                 .round = options && options->round,
                 .options = options,
                 .given = given,
                 .given_count = given_count,
                 .err = err};
    if (at.n < 1) return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: N must be at least 1", f->name);
    if (at.t < 1) return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: T must be at least 1", f->name);
    it.values = arena_array(it.a, InterpTensor *, f->values.len);
    it.seed = counter(&it, COUNTER_SEED);
    it.iteration = counter(&it, COUNTER_ITERATION);
    it.micro = counter(&it, COUNTER_MICRO);
    it.full_batch = counter(&it, COUNTER_FULL_BATCH);
    AMP_TRY(take_inputs(&it));
    for (int i = 0; i < f->body.len; i++) AMP_TRY(run_op(&it, ir_op_at(f, i)));
    AMP_TRY(check_predicates(&it));
    AMP_TRY(copy_results(&it, results));
    write_states(&it);
    return AMP_OK;
}
