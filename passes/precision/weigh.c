/* weigh.c: a function as the algorithm `min_cut` sees it. */
#include "passes/common/common.h"
#include "passes/precision/casting.h"

typedef struct Weighed {
    Arena *arena;
    const Func *f;
    const PolicyClass *classes;
    BytesGraph *g;
} Weighed;

static double elements_at(const Func *f, Val v, int64_t n) {
    const Shape *s = ir_shape(f, v);
    Elements e;
    if (!shape_elements(s, &e)) return 0.0;
    double all = (double)e.mul, parts = (double)e.div;
    for (int i = 0; i < s->rank; i++) {
        for (int k = 0; k < s->d[i].t + s->d[i].sized; k++) all *= ASSUMED_T;
        parts *= (double)dim_given(s->d[i]);
    }
    double count = all / parts;
    for (int i = 0; i < e.batches; i++) count *= (double)n;
    return count;
}

/* Metrics and updates of buffers do not lower what they read. */
static void find_asides(const Weighed *w) {
    BytesValue *values = w->g->values;
    for (int v = 0; v < w->f->values.len; v++) values[v].is_aside = true;
    for (int i = 0; i < w->f->results.len; i++) {
        const Result *r = &w->f->results.data[i];
        if (r->kind == RESULT_MODEL || r->kind == RESULT_LOSS) values[r->value.id].is_aside = false;
    }
    for (int i = w->f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(w->f, i);
        bool is_aside = true;
        for (int k = 0; k < o->n_out; k++) is_aside = is_aside && values[o->out[k].id].is_aside;
        for (int k = 0; k < o->n_in && !is_aside; k++) values[o->in[k].id].is_aside = false;
    }
}

static void find_gradients(const Weighed *w) {
    BytesValue *values = w->g->values;
    if (!w->f->module->has_train) return;
    for (int i = 0; i < w->f->inputs.len; i++) {
        const State *s = ir_state_of(w->f, w->f->inputs.data[i]);
        values[w->f->inputs.data[i].id].has_grad = s && s->role == STATE_PARAM;
    }
    for (int i = 0; i < w->f->body.len; i++) {
        const Op *o = ir_op_at(w->f, i);
        bool has_grad = false;
        for (int k = 0; k < o->n_in; k++) has_grad = has_grad || values[o->in[k].id].has_grad;
        if (!has_grad || ir_op_info[o->code].flags & NO_GRADIENT) continue;
        for (int k = 0; k < o->n_out; k++) values[o->out[k].id].has_grad = values[o->out[k].id].is_float;
    }
}

static void add_values(const Weighed *w, int64_t n) {
    const bool *is_result = ir_results(w->f, w->arena);
    w->g->values[0].maker = -1;
    for (int v = 1; v < w->f->values.len; v++) {
        const Val val = {(uint32_t)v};
        w->g->values[v] = (BytesValue){.elements = elements_at(w->f, val, n),
                                       .maker = -1,
                                       .is_float = is_float(ir_dtype(w->f, val)),
                                       .is_f32 = ir_dtype(w->f, val) == AMP_DT_F32,
                                       .is_result = is_result[v],
                                       .has_dims = ir_shape(w->f, val)->rank > 0};
    }
    for (int i = 0; i < w->f->inputs.len; i++) {
        const Val v = w->f->inputs.data[i];
        w->g->values[v.id].is_given = !ir_state_of(w->f, v) && w->g->values[v.id].is_float;
    }
}

static void add_op(const Weighed *w, int i) {
    const Func *f = w->f;
    const Op *o = ir_op_at(f, i);
    BytesOp *op = &w->g->ops[i];
    *op = bytes_op(o->code, w->classes[o->id.id]);
    for (int k = 0; k < o->n_out; k++) {
        vec_push(w->arena, &op->outs, (int)o->out[k].id);
        w->g->values[o->out[k].id].maker = i;
        w->g->values[o->out[k].id].is_weak = op->is_constant;
    }
    for (int k = 0; k < o->n_in; k++) {
        if (!is_float(ir_dtype(f, o->in[k])) || !ir_reads_elements(o, k)) continue;
        const BytesRead read = {(int)o->in[k].id, operand_is_castable(f, o, k),
                                o->n_out && shape_equal(ir_shape(f, o->in[k]), ir_shape(f, o->out[0]))};
        vec_push(w->arena, &op->reads, read);
    }
}

LeastBytes *least_bytes_of(const Func *f, const PolicyClass *classes, int64_t n) {
    Arena *arena = arena_child(f->module->arena);
    BytesGraph g = {arena_array(arena, BytesValue, f->values.len), arena_array(arena, BytesOp, f->body.len + 1),
                    f->values.len, f->body.len};
    const Weighed w = {arena, f, classes, &g};
    LeastBytes *found = arena_array(f->module->arena, LeastBytes, f->ops.len);
    add_values(&w, n);
    for (int i = 0; i < f->body.len; i++) add_op(&w, i);
    find_asides(&w);
    find_gradients(&w);
    const LeastBytes *by_position = least_bytes(arena, &g);
    for (int i = 0; i < f->body.len; i++) found[ir_op_at(f, i)->id.id] = by_position[i];
    arena_free(arena);
    return found;
}
