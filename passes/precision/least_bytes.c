/* least_bytes.c: the algorithm `min_cut`: which ops of class `follow` run in the low type, and which in f32, so that a
 * training step moves the fewest bytes.
 *
 * The other classes are fixed, as are parameters and inputs.  docs/policies.md, "What `min_cut` does", has the prices.
 */
#include "passes/precision/casting.h"

#include <math.h>

#include "passes/common/common.h"
#include "passes/precision/min_cut.h"

enum { LOW_SIZE = 2, F32_SIZE = 4 }; /* bytes of an element */

typedef VEC(int) Nodes;

typedef struct Reader {
    const Op *op;
    bool casts; /* where the value is not of the op's type */
} Reader;
typedef VEC(Reader) Readers;

typedef struct Weighing {
    Arena *arena; /* of this algorithm */
    const Func *f;
    const PolicyClass *classes;
    int64_t n;
    MinCut *cut;       /* a node is a value that an op, an input or a state makes: its id */
    bool *is_any_size; /* by op id: any_size.c */
    bool *is_result;   /* by value id: of the function */
    bool *is_aside;    /* by value id: only metrics and updates of buffers need it */
    bool *has_grad;    /* by value id: it depends on a parameter, and the model is trained */
    Readers *readers;  /* by value id: the ops that read its elements, once for each operand */
    double unit;       /* of a price: a byte */
} Weighing;

/* ---- ops and values ---------------------------------------------------------------------------------------------- */

static bool makes_float(const Func *f, const Op *o) { return o->n_out && is_float(ir_dtype(f, o->out[0])); }

static bool is_scalar(const Func *f, const Op *o) { return !ir_shape(f, o->out[0])->rank; }

/* The algorithm chooses its type. */
static bool is_free(const Weighing *w, const Op *o) {
    const PolicyClass op_class = w->classes[o->id.id];
    if (o->code == OP_const || o->code == OP_cast || !makes_float(w->f, o) || w->is_any_size[o->id.id]) return false;
    return op_class == POLICY_WIDEST || op_class == POLICY_FIRST || (op_class == POLICY_FOLLOW && !is_scalar(w->f, o));
}

/* Where operand |i| is not of the op's type: else it is read as it is. */
static bool casts_operand(const Weighing *w, const Op *o, int i) {
    const PolicyClass op_class = w->classes[o->id.id];
    return operand_is_castable(w->f, o, i) && op_class != POLICY_F32_OUT && op_class != POLICY_FIRST &&
           o->code != OP_cast && makes_float(w->f, o);
}

/* Its result is its operand's memory. */
static bool is_view(const Op *o) { return o->code == OP_reshape || o->code == OP_flatten; }

/* It reads its operands from memory in its own type; all others convert as they load. */
static bool reads_own_type(const Op *o) {
    switch (o->code) {
    case OP_reshape:
    case OP_flatten:
    case OP_transpose:
    case OP_permute:
    case OP_slice:
    case OP_pad:
    case OP_concat:
    case OP_stack:
    case OP_expand:
    case OP_embedding:
    case OP_max_pool2d:
    case OP_avg_pool2d:
    case OP_adaptive_avg_pool2d:
    case OP_upsample: return true;
    default: return ir_op_info[o->code].flags & PRODUCT;
    }
}

/* Its gradient needs no operand of its own. */
static bool forgets_operands(const Op *o) {
    switch (o->code) {
    case OP_add:
    case OP_sub:
    case OP_neg:
    case OP_relu:
    case OP_leaky_relu:
    case OP_dropout: return true;
    default: return false;
    }
}

static double elements_at(const Weighing *w, Val v) {
    Elements e;
    if (!shape_elements(ir_shape(w->f, v), &e)) return 0.0;
    double count = (double)e.mul / (double)e.div;
    for (int i = 0; i < e.batches; i++) count *= (double)w->n;
    return count;
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

static void find_readers(Weighing *w) {
    for (int i = 0; i < w->f->body.len; i++) {
        const Op *o = ir_op_at(w->f, i);
        for (int k = 0; k < o->n_in; k++)
            if (is_float(ir_dtype(w->f, o->in[k])) && ir_reads_elements(o, k)) {
                Reader reader = {o, casts_operand(w, o, k)};
                vec_push(w->arena, &w->readers[o->in[k].id], reader);
            }
    }
}

/* Metrics and updates of buffers do not lower what they read. */
static void find_asides(Weighing *w) {
    for (int v = 0; v < w->f->values.len; v++) w->is_aside[v] = true;
    for (int i = 0; i < w->f->results.len; i++) {
        const Result *r = &w->f->results.data[i];
        if (r->kind == RESULT_MODEL || r->kind == RESULT_LOSS) w->is_aside[r->value.id] = false;
    }
    for (int i = w->f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(w->f, i);
        bool is_aside = true;
        for (int k = 0; k < o->n_out; k++) is_aside = is_aside && w->is_aside[o->out[k].id];
        for (int k = 0; k < o->n_in && !is_aside; k++) w->is_aside[o->in[k].id] = false;
    }
}

static void find_gradients(Weighing *w) {
    if (!w->f->module->has_train) return;
    for (int i = 0; i < w->f->inputs.len; i++) {
        const State *s = ir_state_of(w->f, w->f->inputs.data[i]);
        w->has_grad[w->f->inputs.data[i].id] = s && s->role == STATE_PARAM;
    }
    for (int i = 0; i < w->f->body.len; i++) {
        const Op *o = ir_op_at(w->f, i);
        bool has_grad = false;
        for (int k = 0; k < o->n_in; k++) has_grad = has_grad || w->has_grad[o->in[k].id];
        if (!has_grad || ir_op_info[o->code].flags & NO_GRADIENT) continue;
        for (int k = 0; k < o->n_out; k++) w->has_grad[o->out[k].id] = is_float(ir_dtype(w->f, o->out[k]));
    }
}

/* ---- prices ------------------------------------------------------------------------------------------------------ */

/* A price counts bytes in its high bits and casts in its low ones: bytes decide, then casts. */
static int64_t price_of(const Weighing *w, double bytes) { return (int64_t)(bytes * w->unit); }

typedef struct Traffic { /* of one value */
    double elements;     /* that pass each time it is read or written, its gradient's included */
    bool has_maker;      /* a kernel makes it, and converts as it stores */
    Nodes own;           /* readers that need it in their own type */
    Nodes all;           /* readers that cast it */
    int converting;      /* how many readers convert as they load */
} Traffic;

static Traffic traffic_of(const Weighing *w, Val v) {
    const Op *maker = ir_def(w->f, v);
    Traffic t = {.elements = elements_at(w, v) * (w->has_grad[v.id] ? 2.0 : 1.0),
                 .has_maker = maker && !is_view(maker)};
    for (int i = 0; i < w->readers[v.id].len; i++) {
        const Reader *reader = &w->readers[v.id].data[i];
        const int node = (int)reader->op->out[0].id;
        if (!reads_own_type(reader->op) || !reader->casts) t.converting++;
        else vec_push(w->arena, &t.own, node);
        if (reader->casts) vec_push(w->arena, &t.all, node);
    }
    return t;
}

/* One kernel makes and reads it, and nothing else needs it. */
static bool stays_in_registers(const Weighing *w, Val v, const Traffic *t) {
    if (w->is_result[v.id] || !t->has_maker || w->readers[v.id].len != 1 || !t->converting) return false;
    const Op *reader = w->readers[v.id].data[0].op, *maker = ir_def(w->f, v);
    if (w->has_grad[v.id] && !forgets_operands(reader)) return false;
    if (!shape_equal(ir_shape(w->f, v), ir_shape(w->f, reader->out[0]))) return false;
    return ir_op_info[reader->code].flags & ELEMENTWISE || !reads_own_type(maker);
}

/* All |nodes| are fixed, to one type. */
static bool are_fixed_alike(const Weighing *w, const Nodes *nodes) {
    int low = 0;
    for (int i = 0; i < nodes->len; i++) {
        const Op *o = ir_def(w->f, (Val){(uint32_t)nodes->data[i]});
        if (is_free(w, o)) return false;
        low += w->classes[o->id.id] == POLICY_LOWER;
    }
    return nodes->len && (!low || low == nodes->len);
}

static void weigh_value(const Weighing *w, Val v) {
    const Traffic t = traffic_of(w, v);
    const int node = (int)v.id;
    min_cut_cast(w->cut, node, t.all.data, t.all.len, 1, 1);
    if (stays_in_registers(w, v, &t)) return;
    const int64_t low = price_of(w, LOW_SIZE * t.elements), f32 = price_of(w, F32_SIZE * t.elements);
    for (int i = 0; i < t.own.len; i++)
        if (!is_view(ir_def(w->f, (Val){(uint32_t)t.own.data[i]}))) min_cut_node(w->cut, t.own.data[i], low, f32);
    /* What only readers of one type need is stored in that type, whatever computes it. */
    if (t.has_maker && !t.converting && !w->is_result[v.id] && are_fixed_alike(w, &t.own)) return;
    const int passes = t.converting + t.has_maker;
    min_cut_node(w->cut, node, passes * low, passes * f32);
    if (t.has_maker) min_cut_cast(w->cut, node, t.own.data, t.own.len, low, f32);
    else min_cut_cast(w->cut, node, t.own.data, t.own.len, low + f32, low + f32);
}

/* ---- the choice -------------------------------------------------------------------------------------------------- */

static void fix_types(const Weighing *w) {
    for (int i = 0; i < w->f->inputs.len; i++)
        min_cut_fix(w->cut, (int)w->f->inputs.data[i].id, ir_dtype(w->f, w->f->inputs.data[i]) == AMP_DT_F32);
    for (int i = 0; i < w->f->body.len; i++) {
        const Op *o = ir_op_at(w->f, i);
        const bool is_low = o->code == OP_cast ? amp_dtype_size(ir_dtype(w->f, o->out[0])) == LOW_SIZE
                                               : w->classes[o->id.id] == POLICY_LOWER;
        for (int k = 0; k < o->n_out; k++)
            if (k || !is_free(w, o)) min_cut_fix(w->cut, (int)o->out[k].id, k || !is_low);
    }
}

/* f32 where one of its operands is. */
static bool never_lowers(const Weighing *w, const Op *o) {
    return w->classes[o->id.id] == POLICY_WIDEST || w->is_aside[o->out[0].id];
}

static void tie_types(const Weighing *w) {
    for (int i = 0; i < w->f->body.len; i++) {
        const Op *o = ir_op_at(w->f, i);
        const bool is_first = w->classes[o->id.id] == POLICY_FIRST;
        if (!is_free(w, o) || !(is_first || never_lowers(w, o))) continue;
        for (int k = 0; k < o->n_in; k++) {
            if (!operand_is_castable(w->f, o, k)) continue;
            min_cut_implies(w->cut, (int)o->in[k].id, (int)o->out[0].id);
            if (!is_first) continue;
            min_cut_implies(w->cut, (int)o->out[0].id, (int)o->in[k].id);
            break;
        }
    }
}

/* As many bits for casts as the bytes of the whole step leave. */
static double unit_for(const Weighing *w) {
    double bytes = 1.0;
    for (int v = 1; v < w->f->values.len; v++)
        bytes += 4.0 * F32_SIZE * elements_at(w, (Val){(uint32_t)v}) * (2.0 + w->readers[v].len);
    return ldexp(1.0, 59 - (int)ceil(log2(bytes)) < 20 ? 59 - (int)ceil(log2(bytes)) : 20);
}

static bool reads_f32(const Weighing *w, const Op *o, const bool *is_f32) {
    bool reads = false;
    for (int k = 0; k < o->n_in; k++) reads = reads || (operand_is_castable(w->f, o, k) && is_f32[o->in[k].id]);
    return reads;
}

LeastBytes *least_bytes(const Func *f, const PolicyClass *classes, int64_t n) {
    Arena *arena = arena_child(f->module->arena);
    const int values = f->values.len;
    LeastBytes *found = arena_array(f->module->arena, LeastBytes, f->ops.len);
    Weighing w = {.arena = arena, .f = f, .classes = classes, .n = n, .cut = min_cut_new(arena, values)};
    bool *is_f32 = arena_array(arena, bool, values);
    w.is_any_size = any_size_find(arena, f, classes);
    w.is_result = ir_results(f, arena);
    w.has_grad = arena_array(arena, bool, values);
    w.readers = arena_alloc(arena, sizeof *w.readers * (size_t)values);
    w.is_aside = arena_array(arena, bool, values);
    find_readers(&w);
    find_asides(&w);
    find_gradients(&w);
    w.unit = unit_for(&w);
    fix_types(&w);
    tie_types(&w);
    for (int v = 1; v < values; v++) {
        const Op *def = ir_def(f, (Val){(uint32_t)v});
        if (is_float(ir_dtype(f, (Val){(uint32_t)v})) && !(def && def->code == OP_const))
            weigh_value(&w, (Val){(uint32_t)v});
    }
    min_cut_solve(w.cut, is_f32);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (classes[o->id.id] == POLICY_FOLLOW && makes_float(f, o) && is_scalar(f, o))
            found[o->id.id] = (LeastBytes){.is_decided = true, .is_f32 = true};
        if (!is_free(&w, o) || classes[o->id.id] == POLICY_FIRST) continue;
        const int node = (int)o->out[0].id;
        const int64_t more = min_cut_other(w.cut, node);
        const double bytes = round((double)more / w.unit);
        found[o->id.id] = (LeastBytes){.is_decided = true,
                                       .is_f32 = is_f32[node],
                                       .is_forced = is_f32[node] && never_lowers(&w, o) && reads_f32(&w, o, is_f32),
                                       .other_bytes = bytes,
                                       .other_casts = more - (int64_t)(bytes * w.unit)};
    }
    arena_free(arena);
    return found;
}
