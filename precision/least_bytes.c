/* least_bytes.c: see least_bytes.h. */
#include "precision/least_bytes.h"

#include <math.h>

#include "precision/min_cut.h"

enum { LOW_SIZE = 2, F32_SIZE = 4 }; /* bytes of an element */

typedef VEC(int) Nodes;

typedef struct Reader {
    const BytesOp *op;
    const BytesRead *read;
    bool casts; /* where the value is not of the op's type */
} Reader;
typedef VEC(Reader) Readers;

typedef struct Weighing {
    Arena *arena; /* of this algorithm */
    const BytesGraph *g;
    MinCut *cut;       /* a node is a value */
    bool *is_any_size; /* by op: any_size.c */
    Readers *readers;  /* by value: the ops that read its elements, once for each operand */
    double unit;       /* of a price: a byte */
} Weighing;

/* ---- ops and values ---------------------------------------------------------------------------------------------- */

static const BytesValue *value(const Weighing *w, int v) { return &w->g->values[v]; }

static const BytesOp *maker_of(const Weighing *w, int v) {
    return value(w, v)->maker < 0 ? NULL : &w->g->ops[value(w, v)->maker];
}

static int result_of(const BytesOp *o) { return o->outs.data[0]; }

static bool makes_float(const Weighing *w, const BytesOp *o) { return o->outs.len && value(w, result_of(o))->is_float; }

static bool is_scalar(const Weighing *w, const BytesOp *o) { return !value(w, result_of(o))->has_dims; }

/* The algorithm chooses its type. */
static bool is_free(const Weighing *w, const BytesOp *o) {
    if (o->is_constant || o->is_cast || !makes_float(w, o) || w->is_any_size[o - w->g->ops]) return false;
    return o->op_class == POLICY_WIDEST || o->op_class == POLICY_FIRST ||
           (o->op_class == POLICY_FOLLOW && !is_scalar(w, o));
}

/* Where an operand is not of the op's type: else it is read as it is. */
static bool casts_operand(const Weighing *w, const BytesOp *o, const BytesRead *read) {
    return read->is_castable && o->op_class != POLICY_F32_OUT && o->op_class != POLICY_FIRST && !o->is_cast &&
           makes_float(w, o);
}

static void find_readers(Weighing *w) {
    for (int i = 0; i < w->g->op_count; i++) {
        const BytesOp *o = &w->g->ops[i];
        for (int k = 0; k < o->reads.len; k++) {
            const BytesRead *read = &o->reads.data[k];
            Reader reader = {o, read, casts_operand(w, o, read)};
            vec_push(w->arena, &w->readers[read->value], reader);
        }
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

static Traffic traffic_of(const Weighing *w, int v) {
    const BytesOp *maker = maker_of(w, v);
    Traffic t = {.elements = value(w, v)->elements * (value(w, v)->has_grad ? 2.0 : 1.0),
                 .has_maker = maker && !maker->is_view};
    for (int i = 0; i < w->readers[v].len; i++) {
        const Reader *reader = &w->readers[v].data[i];
        if (!reader->op->reads_own_type || !reader->casts) t.converting++;
        else vec_push(w->arena, &t.own, result_of(reader->op));
        if (reader->casts) vec_push(w->arena, &t.all, result_of(reader->op));
    }
    return t;
}

/* One kernel makes and reads it, and nothing else needs it. */
static bool stays_in_registers(const Weighing *w, int v, const Traffic *t) {
    if (value(w, v)->is_result || !t->has_maker || w->readers[v].len != 1 || !t->converting) return false;
    const Reader *reader = &w->readers[v].data[0];
    if (value(w, v)->has_grad && !reader->op->forgets_operands) return false;
    return reader->read->same_shape && (reader->op->is_elementwise || !maker_of(w, v)->reads_own_type);
}

/* All |nodes| are fixed, to one type. */
static bool are_fixed_alike(const Weighing *w, const Nodes *nodes) {
    int low = 0;
    for (int i = 0; i < nodes->len; i++) {
        const BytesOp *o = maker_of(w, nodes->data[i]);
        if (is_free(w, o)) return false;
        low += o->op_class == POLICY_LOWER;
    }
    return nodes->len && (!low || low == nodes->len);
}

/* Each reader reads it in its own type. */
static void weigh_weight(const Weighing *w, int v) {
    const double elements = value(w, v)->elements;
    Nodes nodes = {0};
    for (int i = 0; i < w->readers[v].len; i++) {
        const Reader *reader = &w->readers[v].data[i];
        if (!reader->casts) continue;
        vec_push(w->arena, &nodes, result_of(reader->op));
        if (!reader->op->is_view)
            min_cut_node(w->cut, result_of(reader->op), price_of(w, LOW_SIZE * elements),
                         price_of(w, F32_SIZE * elements));
    }
    min_cut_cast(w->cut, v, nodes.data, nodes.len, 1, 1);
}

static void weigh_value(const Weighing *w, int v) {
    if (value(w, v)->is_weight) {
        weigh_weight(w, v);
        return;
    }
    const Traffic t = traffic_of(w, v);
    min_cut_cast(w->cut, v, t.all.data, t.all.len, 1, 1);
    if (stays_in_registers(w, v, &t)) return;
    const int64_t low = price_of(w, LOW_SIZE * t.elements), f32 = price_of(w, F32_SIZE * t.elements);
    for (int i = 0; i < t.own.len; i++)
        if (!maker_of(w, t.own.data[i])->is_view) min_cut_node(w->cut, t.own.data[i], low, f32);
    /* What only readers of one type need is stored in that type, whatever computes it. */
    if (t.has_maker && !t.converting && !value(w, v)->is_result && are_fixed_alike(w, &t.own)) return;
    const int passes = t.converting + t.has_maker;
    min_cut_node(w->cut, v, passes * low, passes * f32);
    if (t.has_maker) min_cut_cast(w->cut, v, t.own.data, t.own.len, low, f32);
    else min_cut_cast(w->cut, v, t.own.data, t.own.len, low + f32, low + f32);
}

/* ---- the choice -------------------------------------------------------------------------------------------------- */

static void fix_types(const Weighing *w) {
    for (int v = 0; v < w->g->value_count; v++)
        if (!maker_of(w, v) && !value(w, v)->is_weight) min_cut_fix(w->cut, v, value(w, v)->is_f32);
    for (int i = 0; i < w->g->op_count; i++) {
        const BytesOp *o = &w->g->ops[i];
        const bool is_low = o->is_cast ? !value(w, result_of(o))->is_f32 : o->op_class == POLICY_LOWER;
        for (int k = 0; k < o->outs.len; k++)
            if (k || !is_free(w, o)) min_cut_fix(w->cut, o->outs.data[k], k || !is_low);
    }
}

/* f32 where one of its operands is. */
static bool never_lowers(const Weighing *w, const BytesOp *o) {
    return o->op_class == POLICY_WIDEST || value(w, result_of(o))->is_aside;
}

static void tie_types(const Weighing *w) {
    for (int i = 0; i < w->g->op_count; i++) {
        const BytesOp *o = &w->g->ops[i];
        const bool is_first = o->op_class == POLICY_FIRST;
        if (!is_free(w, o) || !(is_first || never_lowers(w, o))) continue;
        for (int k = 0; k < o->reads.len; k++) {
            const BytesRead *read = &o->reads.data[k];
            if (!read->is_castable) continue;
            min_cut_implies(w->cut, read->value, result_of(o));
            if (!is_first) continue;
            min_cut_implies(w->cut, result_of(o), read->value);
            break;
        }
    }
}

/* As many bits for casts as the bytes of the whole step leave. */
static double unit_for(const Weighing *w) {
    double bytes = 1.0;
    for (int v = 0; v < w->g->value_count; v++)
        bytes += 4.0 * F32_SIZE * value(w, v)->elements * (2.0 + w->readers[v].len);
    return ldexp(1.0, 59 - (int)ceil(log2(bytes)) < 20 ? 59 - (int)ceil(log2(bytes)) : 20);
}

static bool reads_f32(const BytesOp *o, const bool *is_f32) {
    bool reads = false;
    for (int k = 0; k < o->reads.len; k++)
        reads = reads || (o->reads.data[k].is_castable && is_f32[o->reads.data[k].value]);
    return reads;
}

static LeastBytes answer(const Weighing *w, const BytesOp *o, const bool *is_f32) {
    if (!o->outs.len || !makes_float(w, o)) return (LeastBytes){0};
    if (o->op_class == POLICY_FOLLOW && is_scalar(w, o)) return (LeastBytes){.is_decided = true, .is_f32 = true};
    if (!is_free(w, o) || o->op_class == POLICY_FIRST) return (LeastBytes){0};
    const int node = result_of(o);
    const int64_t more = min_cut_other(w->cut, node);
    const double bytes = round((double)more / w->unit);
    return (LeastBytes){.is_decided = true,
                        .is_f32 = is_f32[node],
                        .is_forced = is_f32[node] && never_lowers(w, o) && reads_f32(o, is_f32),
                        .other_bytes = bytes,
                        .other_casts = more - (int64_t)(bytes * w->unit)};
}

LeastBytes *least_bytes(Arena *a, const BytesGraph *g) {
    Arena *arena = arena_child(a);
    LeastBytes *found = arena_array(a, LeastBytes, g->op_count);
    Weighing w = {.arena = arena, .g = g, .cut = min_cut_new(arena, g->value_count)};
    bool *is_f32 = arena_array(arena, bool, g->value_count);
    w.is_any_size = any_size_find(arena, g);
    w.readers = arena_alloc(arena, sizeof *w.readers * (size_t)g->value_count);
    find_readers(&w);
    w.unit = unit_for(&w);
    fix_types(&w);
    tie_types(&w);
    for (int v = 0; v < g->value_count; v++)
        if (value(&w, v)->is_float && !value(&w, v)->is_weak) weigh_value(&w, v);
    min_cut_solve(w.cut, is_f32);
    for (int i = 0; i < g->op_count; i++) found[i] = answer(&w, &g->ops[i], is_f32);
    arena_free(arena);
    return found;
}

const char *least_bytes_because(Arena *a, const LeastBytes *b, Dtype low, int64_t n, int64_t t) {
    const char *at = t ? arena_printf(a, "N = %lld, T = %lld", (long long)n, (long long)t)
                       : arena_printf(a, "N = %lld", (long long)n);
    const char *other = amp_dtype_name(b->is_f32 ? low : AMP_DT_F32);
    if (b->other_bytes > 0.0) return arena_printf(a, "%s would move %.0f bytes more at %s", other, b->other_bytes, at);
    if (b->other_casts > 0)
        return arena_printf(a, "%s would move as many bytes, and need %lld more cast%s", other,
                            (long long)b->other_casts, b->other_casts == 1 ? "" : "s");
    return arena_printf(a, "%s would move as many bytes", other);
}
