/* any_size.c: which ops the algorithm `min_cut` leaves in f32 because what they read may be of any size.
 *
 * A number that a caller gives, or that an op of the f32 list made, may be more than the low type holds: a price,
 * a sum, an exponential.  What is computed from it stays f32 up to the next op that is lowered by the lists or whose
 * result is bounded, as under `eager`.  What products, embeddings and parameters make is taken to be of the size that
 * training keeps it in.
 */
#include "precision/least_bytes.h"

static bool is_listed(PolicyClass op_class) {
    return op_class != POLICY_FOLLOW && op_class != POLICY_WIDEST && op_class != POLICY_FIRST;
}

/* A scalar never decides the type of an op, and is none of the operands here. */
static bool reads_any_size(const BytesGraph *g, const BytesOp *o, const bool *is_any_size) {
    bool reads = false, has_operand = false;
    for (int i = 0; i < o->reads.len; i++) {
        const BytesRead *read = &o->reads.data[i];
        if (!read->is_castable) continue;
        if (!has_operand || o->op_class != POLICY_FIRST)
            reads = reads || (is_any_size[read->value] && g->values[read->value].has_dims);
        has_operand = true;
    }
    return reads || !has_operand; /* arange, full: as long, or as large, as they are written */
}

bool *any_size_find(Arena *a, const BytesGraph *g) {
    bool *is_any_size = arena_array(a, bool, g->value_count);
    bool *found = arena_array(a, bool, g->op_count);
    for (int v = 0; v < g->value_count; v++) is_any_size[v] = g->values[v].is_given;
    for (int i = 0; i < g->op_count; i++) {
        const BytesOp *o = &g->ops[i];
        if (o->is_constant || !o->outs.len || !g->values[o->outs.data[0]].is_float) continue;
        if (o->is_cast) { /* written, for the range of f32 */
            is_any_size[o->outs.data[0]] = g->values[o->outs.data[0]].is_f32;
            continue;
        }
        const bool reads = reads_any_size(g, o, is_any_size);
        found[i] = reads && !is_listed(o->op_class);
        if (o->bounds_result || o->op_class == POLICY_LOWER) continue;
        for (int k = 0; k < o->outs.len; k++) is_any_size[o->outs.data[k]] = reads || is_listed(o->op_class);
    }
    return found;
}
