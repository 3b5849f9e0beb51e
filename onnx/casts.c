/* casts.c: after the nodes: the types of what no node decides, and the casts between them.
 *
 * A weight or a constant is stored in the low type if all its readers want it, so that it is rounded once, and not when
 * the model runs; an input of the model likewise.  What several readers want in several types is cast for those that
 * want another.
 */
#include "onnx/deciding.h"

enum { WANTS_LOW = 1, WANTS_OTHER = 2 };

typedef struct Placing {
    OnnxDeciding *d;
    uint8_t *wants; /* by value */
} Placing;

static int32_t operand_value(const OnnxDeciding *d, int32_t operand) {
    const int32_t value = d->index->operands[operand];
    return value == ONNX_NONE ? ONNX_NONE : d->out->sources[value];
}

static bool is_stored_group(const OnnxDeciding *d, int32_t group) {
    return group != ONNX_NONE && d->states[group] == GROUP_STORED;
}

/* ---- what readers want ------------------------------------------------------------------------------------------- */

static void want(const Placing *p, int32_t operand) {
    const OnnxDeciding *d = p->d;
    const int32_t value = operand_value(d, operand), group = d->solution->operand_groups[operand];
    if (value == ONNX_NONE || !onnx_is_float_value(d, value) || is_stored_group(d, group)) return;
    const bool is_low = group != ONNX_NONE && d->out->groups[group] == d->low;
    p->wants[value] |= is_low ? WANTS_LOW : WANTS_OTHER;
}

static void want_outputs(const Placing *p) {
    const OnnxIndex *x = p->d->index;
    for (int32_t g = 0; g < x->graph_count; g++)
        for (int k = 0; k < x->graphs[g].output_count; k++) want(p, x->graphs[g].first_output + k);
}

/* All its readers want the low type, which it can have. */
static bool can_be_low(const Placing *p, int32_t value, int32_t group) {
    return group != ONNX_NONE && p->d->states[group] != GROUP_SHARED && p->wants[value] == WANTS_LOW &&
           p->d->solution->groups[group].allowed >> p->d->low & 1 && p->d->out->groups[group] == ONNX_FLOAT;
}

/* A node that makes a weight: a constant, or a move that the policy lets follow. */
static bool lower_maker(const Placing *p, int32_t node) {
    OnnxDeciding *d = p->d;
    const OnnxNodeEntry *n = &d->index->nodes[node];
    const bool is_constant = onnx_has_trait(d->rows[node], 'C');
    const OnnxUnit *unit = &d->units[node];
    if (!is_constant && (!unit->is_decided || unit->because || unit->op_class != POLICY_FOLLOW)) return false;
    for (int k = 0; k < n->node->outputs.len; k++) {
        const int32_t value = onnx_result_of(d, node, k);
        if (value == ONNX_NONE) continue;
        if (!d->is_weight[value] || d->index->values[value].is_output) return false;
        if (!can_be_low(p, value, d->solution->value_groups[value])) return false;
    }
    return n->node->outputs.len > 0;
}

static void set_low(OnnxDeciding *d, int32_t node) {
    const int32_t group = onnx_main_group(d, node);
    OnnxDecision *decision = &d->out->nodes[node];
    d->out->groups[group] = (uint8_t)d->low;
    d->states[group] = GROUP_DECIDED;
    decision->fate = ONNX_LOWER;
    decision->reason.relation = decision->reason.neighbour = NULL;
    decision->reason.because = "a weight, and all its readers are low";
}

/* Readers come after makers, so that a walk from the end knows all readers. */
static void lower_weights(const Placing *p) {
    OnnxDeciding *d = p->d;
    for (int32_t n = d->index->node_count - 1; n >= 0; n--) {
        const OnnxNodeEntry *e = &d->index->nodes[n];
        if (d->out->nodes[n].fate == ONNX_DROPPED) continue;
        if (lower_maker(p, n)) set_low(d, n);
        for (int k = 0; k < e->node->inputs.len; k++) want(p, e->first_input + k);
    }
    for (int32_t v = 0; v < d->index->value_count; v++) {
        const OnnxValue *value = &d->index->values[v];
        const int32_t group = d->solution->value_groups[v];
        const bool is_input = value->is_input && !value->graph && !d->options->keep_io;
        if (value->producer != ONNX_NONE || !(is_input || d->is_weight[v]) || !can_be_low(p, v, group)) continue;
        d->out->groups[group] = (uint8_t)d->low;
    }
}

/* ---- what is read as it is stored -------------------------------------------------------------------------------- */

/* All operands of such a group have one type: f32 if what they read differs. */
static void settle_stored(OnnxDeciding *d, bool *known, int32_t operand) {
    const int32_t group = d->solution->operand_groups[operand], value = operand_value(d, operand);
    if (!is_stored_group(d, group) || value == ONNX_NONE || !onnx_is_float_value(d, value)) return;
    const OnnxDtype stored = onnx_stored(d, value);
    if (known[group] && d->out->groups[group] != stored) d->out->groups[group] = ONNX_FLOAT;
    else if (d->solution->groups[group].allowed >> stored & 1) d->out->groups[group] = (uint8_t)stored;
    known[group] = true;
}

static void settle_all(OnnxDeciding *d) {
    bool *known = arena_array(d->arena, bool, d->solution->group_count + 1);
    for (int32_t n = 0; n < d->index->node_count; n++)
        for (int k = 0; k < d->index->nodes[n].node->inputs.len; k++)
            settle_stored(d, known, d->index->nodes[n].first_input + k);
    for (int k = 0; k < d->index->graphs[0].output_count; k++)
        settle_stored(d, known, d->index->graphs[0].first_output + k);
}

/* ---- casts ------------------------------------------------------------------------------------------------------- */

typedef struct Wanted { /* of a value: the first node that wants it in a type */
    int32_t by[2];
    uint8_t dtype[2]; /* 0: none */
} Wanted;

static void read_operand(OnnxDeciding *d, Wanted *wanted, int32_t operand, int32_t node) {
    const int32_t value = operand_value(d, operand), group = d->solution->operand_groups[operand];
    if (value == ONNX_NONE || !onnx_is_float_value(d, value)) return;
    const int32_t original = d->index->operands[operand];
    const uint8_t dtype = group == ONNX_NONE ? d->solution->types[original].dtype : d->out->groups[group];
    if (dtype == d->out->stored[value]) return;
    d->out->reads[operand] = dtype;
    for (int i = 0; i < 2; i++) {
        if (wanted[value].dtype[i] == dtype) return;
        if (wanted[value].dtype[i]) continue;
        wanted[value].dtype[i] = dtype;
        wanted[value].by[i] = node;
        return;
    }
}

static void list_casts(OnnxDeciding *d) {
    const OnnxIndex *x = d->index;
    Wanted *wanted = arena_array(d->arena, Wanted, x->value_count + 1);
    for (int32_t n = 0; n < x->node_count; n++)
        for (int k = 0; k < x->nodes[n].node->inputs.len && d->out->nodes[n].fate != ONNX_DROPPED; k++)
            read_operand(d, wanted, x->nodes[n].first_input + k, n);
    for (int32_t g = 0; g < x->graph_count; g++)
        for (int k = 0; k < x->graphs[g].output_count; k++)
            read_operand(d, wanted, x->graphs[g].first_output + k, ONNX_NONE);
    for (int32_t v = 0; v < x->value_count; v++)
        for (int i = 0; i < 2 && wanted[v].dtype[i]; i++) {
            const OnnxCast cast = {v, wanted[v].dtype[i], x->values[v].initializer && d->is_weight[v],
                                   x->values[v].graph, wanted[v].by[i]};
            vec_push(d->arena, &d->out->casts, cast);
        }
}

void onnx_place_casts(OnnxDeciding *d) {
    const Placing p = {d, arena_array(d->arena, uint8_t, d->index->value_count + 1)};
    want_outputs(&p);
    if (d->low != ONNX_FLOAT) lower_weights(&p);
    settle_all(d);
    d->out->stored = arena_array(d->arena, uint8_t, d->index->value_count + 1);
    d->out->reads = arena_array(d->arena, uint8_t, d->index->operand_count + 1);
    for (int32_t v = 0; v < d->index->value_count; v++) d->out->stored[v] = (uint8_t)onnx_stored(d, v);
    list_casts(d);
}
