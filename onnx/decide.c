/* decide.c: see decide.h: what is decided at once, its class, and the algorithm `eager`. */
#include "onnx/decide.h"

#include <math.h>
#include <stdio.h>

#include "base/dtypes.h"
#include "onnx/deciding.h"

/* ---- types and values -------------------------------------------------------------------------------------------- */

Dtype onnx_to_dtype(int32_t dtype) {
    switch (dtype) {
    case ONNX_FLOAT: return AMP_DT_F32;
    case ONNX_FLOAT16: return AMP_DT_F16;
    case ONNX_BFLOAT16: return AMP_DT_BF16;
    default: return AMP_DT_NONE;
    }
}

OnnxDtype onnx_from_dtype(Dtype dtype) {
    return dtype == AMP_DT_F16 ? ONNX_FLOAT16 : dtype == AMP_DT_BF16 ? ONNX_BFLOAT16 : ONNX_FLOAT;
}

bool onnx_is_float_value(const OnnxDeciding *d, int32_t value) {
    if (value == ONNX_NONE) return false;
    const OnnxValueType *t = &d->solution->types[value];
    return t->kind == ONNX_KIND_TENSOR && onnx_to_dtype(t->dtype) != AMP_DT_NONE;
}

OnnxDtype onnx_stored(const OnnxDeciding *d, int32_t value) {
    const int32_t group = d->solution->value_groups[value];
    return group == ONNX_NONE ? d->solution->types[value].dtype : d->out->groups[group];
}

bool onnx_has_dims(const OnnxDeciding *d, int32_t value) {
    const OnnxTensor *tensor = d->index->values[value].initializer;
    return tensor ? tensor->dims.len > 0 : d->solution->shapes[value].rank != 0;
}

static bool is_constant_node(const OnnxDeciding *d, int32_t node) {
    return node != ONNX_NONE && onnx_has_trait(d->rows[node], 'C');
}

bool onnx_is_weak(const OnnxDeciding *d, int32_t value) {
    const OnnxValue *v = &d->index->values[value];
    return (v->initializer || is_constant_node(d, v->producer)) && !onnx_has_dims(d, value);
}

int32_t onnx_source_of(const OnnxDeciding *d, int32_t node, int k) {
    const OnnxNodeEntry *n = &d->index->nodes[node];
    const int32_t value = k < n->node->inputs.len ? d->index->operands[n->first_input + k] : ONNX_NONE;
    return value == ONNX_NONE ? ONNX_NONE : d->out->sources[value];
}

int32_t onnx_result_of(const OnnxDeciding *d, int32_t node, int k) {
    const OnnxNodeEntry *n = &d->index->nodes[node];
    return k < n->node->outputs.len ? d->index->operands[n->first_output + k] : ONNX_NONE;
}

static int32_t group_of(const OnnxDeciding *d, int32_t operand) {
    const int32_t group = d->solution->operand_groups[operand];
    return group != ONNX_NONE && d->states[group] == GROUP_SHARED ? ONNX_NONE : group;
}

int32_t onnx_main_group(const OnnxDeciding *d, int32_t node) {
    const OnnxNodeEntry *n = &d->index->nodes[node];
    int32_t group = ONNX_NONE;
    if (n->node->outputs.len) group = group_of(d, n->first_output);
    for (int k = 0; k < n->node->inputs.len && group == ONNX_NONE; k++) group = group_of(d, n->first_input + k);
    return group;
}

const int32_t *onnx_members(const OnnxDeciding *d, const int32_t *node, int *count) {
    const int32_t pattern = d->out->nodes[*node].pattern;
    *count = pattern == ONNX_NONE ? 1 : d->out->patterns.data[pattern].nodes.len;
    return pattern == ONNX_NONE ? node : d->out->patterns.data[pattern].nodes.data;
}

/* ---- before anything is decided ---------------------------------------------------------------------------------- */

/* Only a group that one node has alone can change with it. */
static void find_shared_groups(OnnxDeciding *d) {
    const OnnxIndex *x = d->index;
    int32_t *owners = arena_array(d->arena, int32_t, d->solution->group_count + 1);
    for (int32_t n = 0; n < x->node_count; n++) {
        const OnnxNodeEntry *e = &x->nodes[n];
        for (int k = 0; k < e->node->inputs.len + e->node->outputs.len; k++) {
            const int inputs = e->node->inputs.len;
            const int32_t operand = k < inputs ? e->first_input + k : e->first_output + k - inputs;
            const int32_t group = d->solution->operand_groups[operand];
            if (group == ONNX_NONE) continue;
            if (owners[group] && owners[group] != n + 1) d->states[group] = GROUP_SHARED;
            owners[group] = n + 1;
        }
    }
    for (int32_t g = 0; g < x->graph_count; g++) {
        const OnnxGraphEntry *e = &x->graphs[g];
        for (int k = 0; k < e->input_count + e->output_count; k++) {
            const int32_t operand = k < e->input_count ? e->first_input + k : e->first_output + k - e->input_count;
            const int32_t group = d->solution->operand_groups[operand];
            if (group != ONNX_NONE && owners[group]) d->states[group] = GROUP_SHARED;
        }
    }
}

/* An output of the model is of the type that it is computed in, unless that has to stay. */
static void free_outputs(OnnxDeciding *d) {
    const OnnxGraphEntry *e = d->index->graphs;
    for (int k = 0; k < e->output_count && !d->options->keep_io; k++) {
        const int32_t group = group_of(d, e->first_output + k);
        if (group != ONNX_NONE) d->states[group] = GROUP_STORED;
    }
}

static OnnxDecision as_it_is(const char *rule, const char *because) {
    return (OnnxDecision){.pattern = ONNX_NONE, .reason = {.rule = rule, .because = because}};
}

/* What a cast between float types makes is what it reads, unless somebody outside knows it by its name. */
static void drop_casts(OnnxDeciding *d) {
    for (int32_t v = 0; v < d->index->value_count; v++) d->out->sources[v] = v;
    for (int32_t n = 0; n < d->index->node_count; n++) {
        const OnnxNode *node = d->index->nodes[n].node;
        const bool is_known = onnx_is_default_domain(node->domain) || !strcmp(node->domain, "com.microsoft");
        d->rows[n] = is_known && d->solution->schemas[n] ? onnx_row(node->op_type) : NULL;
        d->out->nodes[n] = as_it_is("kept", "it has no float that could have another type");
        if (!d->rows[n] || strcmp(d->rows[n]->names, "cast")) continue;
        const int32_t from = onnx_source_of(d, n, 0), to = onnx_result_of(d, n, 0);
        if (!onnx_is_float_value(d, from) || !onnx_is_float_value(d, to) || d->index->values[to].is_output) continue;
        d->out->sources[to] = from;
        d->out->nodes[n] = as_it_is("cast", "types are decided anew");
        d->out->nodes[n].fate = ONNX_DROPPED;
    }
}

/* It moves elements of weights alone. */
static bool moves_weights(const OnnxDeciding *d, int32_t node) {
    bool moves = onnx_has_trait(d->rows[node], 'M') && onnx_is_float_value(d, onnx_source_of(d, node, 0));
    for (int k = 0; k < d->index->nodes[node].node->inputs.len && moves; k++) {
        const int32_t value = onnx_source_of(d, node, k);
        moves = !onnx_is_float_value(d, value) || d->is_weight[value];
    }
    return moves;
}

/* The IR version from which on an initializer is an input only if a caller may replace it. */
enum { INPUTS_ARE_DEFAULTS = 4 };

static void find_weights(OnnxDeciding *d) {
    for (int32_t v = 0; v < d->index->value_count; v++) {
        const OnnxValue *value = &d->index->values[v];
        d->is_weight[v] = value->initializer && (!value->is_input || d->model->ir_version < INPUTS_ARE_DEFAULTS);
    }
    for (int32_t n = 0; n < d->index->node_count; n++) {
        const bool makes = onnx_has_trait(d->rows[n], 'C') || moves_weights(d, n);
        for (int k = 0; k < d->index->nodes[n].node->outputs.len && makes; k++)
            if (onnx_result_of(d, n, k) != ONNX_NONE) d->is_weight[onnx_result_of(d, n, k)] = true;
    }
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

void onnx_collect_reads(OnnxDeciding *d, int32_t node) {
    int count;
    const int32_t *members = onnx_members(d, &node, &count);
    d->reads.len = 0;
    for (int i = 0; i < count; i++) {
        const OnnxNodeEntry *n = &d->index->nodes[members[i]];
        const OnnxRow *row = d->rows[members[i]];
        const int32_t main = onnx_main_group(d, members[i]);
        for (int k = 0; k < n->node->inputs.len; k++) {
            OnnxRead read = {n->first_input + k, members[i], onnx_source_of(d, members[i], k), false};
            if (!onnx_is_float_value(d, read.value)) continue;
            const int32_t maker = d->index->values[read.value].producer, group = group_of(d, read.operand);
            if (count > 1 && maker != ONNX_NONE && d->out->nodes[maker].pattern == d->out->nodes[node].pattern)
                continue;
            const bool is_along = group != ONNX_NONE && (group == main || onnx_has_trait(row, 'A'));
            read.is_castable = is_along && !(k && onnx_has_trait(row, 'L')) && !onnx_is_weak(d, read.value);
            vec_push(d->arena, &d->reads, read);
        }
    }
}

void onnx_give_type(OnnxDeciding *d, int32_t node, OnnxDtype dtype) {
    int count;
    const int32_t *members = onnx_members(d, &node, &count);
    for (int i = 0; i < count; i++) {
        const OnnxNodeEntry *n = &d->index->nodes[members[i]];
        const int32_t main = onnx_main_group(d, members[i]);
        const int inputs = n->node->inputs.len;
        for (int k = 0; k < inputs + n->node->outputs.len; k++) {
            const int32_t group = group_of(d, k < inputs ? n->first_input + k : n->first_output + k - inputs);
            if (group == ONNX_NONE || d->states[group] == GROUP_DECIDED) continue;
            const bool is_along = group == main || (k < inputs && onnx_has_trait(d->rows[members[i]], 'A'));
            if (is_along && d->solution->groups[group].allowed >> dtype & 1) {
                d->states[group] = GROUP_DECIDED;
                d->out->groups[group] = (uint8_t)dtype;
            } else d->states[group] = k < inputs ? GROUP_STORED : GROUP_KEPT;
        }
        OnnxDecision *decision = &d->out->nodes[members[i]];
        decision->fate = dtype == ONNX_FLOAT ? ONNX_IN_F32 : ONNX_LOWER;
    }
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

/* "7.1e4" */
static const char *magnitude(Arena *a, double x) {
    int exponent = x > 0.0 ? (int)floor(log10(x)) : 0;
    double digits = round(x / pow(10.0, exponent) * 10.0) / 10.0;
    if (digits >= 10.0) digits /= 10.0, exponent++;
    return arena_printf(a, "%.1fe%d", digits, exponent);
}

const char *onnx_range_fault(Arena *arena, const OnnxValue *value, OnnxMagnitude range, int32_t dtype) {
    const double most = dtype == ONNX_FLOAT16 ? 65504.0 : dtype == ONNX_BFLOAT16 ? 0x1.fep127 : 0x1.fffffep127;
    const double least = dtype == ONNX_FLOAT16 ? 0x1p-24 : dtype == ONNX_BFLOAT16 ? 0x1p-133 : 0x1p-149;
    const char *kind = value->initializer ? "weight" : "value";
    if (range.largest > most)
        return arena_printf(arena, "range: %s %s has %s > %s", kind, value->name, magnitude(arena, range.largest),
                            dtype == ONNX_FLOAT16 ? "65504" : magnitude(arena, most));
    if (range.largest > 0.0 && range.largest <= least / 2.0)
        return arena_printf(arena, "range: %s %s has at most %s, which becomes 0", kind, value->name,
                            magnitude(arena, range.largest));
    return NULL;
}

static const char *fault_of(const OnnxDeciding *d, int32_t value) {
    if (value == ONNX_NONE || !d->options->ranges) return NULL;
    return onnx_range_fault(d->arena, &d->index->values[value], d->options->ranges[value], (int32_t)d->low);
}

/* A mask of attention may be as large as f32 has it: minus infinity is what is meant. */
static bool is_mask(const OnnxDeciding *d, const OnnxRead *read) {
    const OnnxNodeEntry *n = &d->index->nodes[read->node];
    if (!strcmp(n->node->op_type, "Attention")) return read->operand - n->first_input == 3;
    const int32_t pattern = d->out->nodes[read->node].pattern;
    return pattern != ONNX_NONE && !strcmp(d->out->patterns.data[pattern].op, "attention") &&
           !strcmp(n->node->op_type, "Add");
}

/* What of the unit's numbers the low type does not hold; NULL: nothing is known to. */
static const char *range_of(OnnxDeciding *d, int32_t node) {
    int count;
    const char *fault = NULL;
    const int32_t *members = onnx_members(d, &node, &count);
    if (!d->options->ranges) return NULL;
    onnx_collect_reads(d, node);
    for (int i = 0; i < d->reads.len && !fault; i++) {
        const OnnxRead *read = &d->reads.data[i];
        const int32_t group = group_of(d, read->operand);
        const bool is_along = read->is_castable || (group != ONNX_NONE && group == onnx_main_group(d, read->node));
        if (is_along && !is_mask(d, read)) fault = fault_of(d, read->value);
    }
    for (int i = 0; i < count && !fault; i++)
        for (int k = 0; k < d->index->nodes[members[i]].node->outputs.len && !fault; k++)
            if (onnx_is_float_value(d, onnx_result_of(d, members[i], k)))
                fault = fault_of(d, onnx_result_of(d, members[i], k));
    return fault;
}

/* The member whose types at this opset have no low one; ONNX_NONE: there is none. */
static int32_t barred_member(const OnnxDeciding *d, int32_t node) {
    int count;
    const int32_t *members = onnx_members(d, &node, &count);
    for (int i = 0; i < count; i++) {
        const int32_t group = onnx_main_group(d, members[i]);
        if (group != ONNX_NONE && !(d->solution->groups[group].allowed >> d->low & 1)) return members[i];
    }
    return ONNX_NONE;
}

static bool keeps(const OnnxDeciding *d, const char *keep, int32_t node) {
    const OnnxNode *n = d->index->nodes[node].node;
    return !strcmp(keep, n->op_type) || (*n->name && text_glob_match(keep, n->name));
}

static const char *kept_by(const OnnxDeciding *d, int32_t node, const char *op, bool *used) {
    int count;
    const char *by = NULL;
    const int32_t *members = onnx_members(d, &node, &count);
    for (int k = 0; k < d->options->keep_count; k++) {
        const char *keep = d->options->keeps[k];
        bool does = op && !strcmp(keep, op);
        for (int i = 0; i < count && !does; i++) does = keeps(d, keep, members[i]);
        if (!does) continue;
        used[k] = true;
        if (!by) by = arena_printf(d->arena, "kept by --keep %s", keep);
    }
    return by;
}

static bool is_f32_class(PolicyClass c) {
    return c == POLICY_F32 || c == POLICY_F32_OUT || c == POLICY_DENY || c == POLICY_NONE;
}

static PolicyClass f32_class(const OnnxDeciding *d) {
    return d->options->policy->algorithm == ALGORITHM_PAINT ? POLICY_DENY : POLICY_F32;
}

/* Dims beside batch and channels, of what a convolution or pooling reads. */
static int spatial_dims(const OnnxDeciding *d, int32_t node) {
    const int32_t x = onnx_source_of(d, node, 0);
    const int dims = x == ONNX_NONE ? 2 : d->solution->shapes[x].rank - 2;
    return dims >= 1 && dims <= 3 ? dims : 2;
}

const OnnxNamed *onnx_name_of(OnnxDeciding *d, const char *names, int dims) {
    const char *key = strchr(names, '#') ? arena_printf(d->arena, "%d %s", dims, names) : names;
    const OnnxNamed *found = table_get(&d->named, key);
    if (found) return found;
    OnnxNamed *named = arena_new(d->arena, OnnxNamed);
    *named = onnx_named(d->arena, d->options->policy, names, dims);
    table_set(d->arena, &d->named, key, named);
    return named;
}

static const OnnxNamed *name_of_node(OnnxDeciding *d, int32_t node) {
    return onnx_name_of(d, d->rows[node]->names, spatial_dims(d, node));
}

/* A pattern that may be low is f32 if the policy keeps one of its ops there: a gelu that is written with a power. */
static void limit_by_members(OnnxDeciding *d, int32_t node, OnnxUnit *unit) {
    int count;
    const int32_t *members = onnx_members(d, &node, &count);
    for (int i = 0; i < count && count > 1 && unit->op_class == POLICY_FOLLOW; i++) {
        const PolicyLine *line = name_of_node(d, members[i])->line;
        if (!is_f32_class(line->op_class)) continue;
        unit->op_class = line->op_class;
        unit->named.line = line;
    }
}

static void classify(OnnxDeciding *d, int32_t node, bool *used) {
    OnnxUnit *unit = &d->units[node];
    const int32_t pattern = d->out->nodes[node].pattern, barred = barred_member(d, node);
    unit->named =
        pattern == ONNX_NONE ? *name_of_node(d, node) : *onnx_name_of(d, d->out->patterns.data[pattern].op, 0);
    unit->op_class = unit->named.line->op_class;
    limit_by_members(d, node, unit);
    unit->is_decided = onnx_main_group(d, node) != ONNX_NONE;
    unit->because = kept_by(d, node, unit->named.name, used);
    if (unit->because || is_f32_class(unit->op_class) || d->low == ONNX_FLOAT)
        ;
    else if (barred != ONNX_NONE)
        unit->because = arena_printf(d->arena, "%s is no type of %s at opset %lld", onnx_dtype_name((int32_t)d->low),
                                     d->index->nodes[barred].node->op_type,
                                     (long long)onnx_opset(&d->model->opsets, d->index->nodes[barred].node->domain));
    else unit->because = range_of(d, node);
    if (unit->because) unit->op_class = f32_class(d);
}

static const char *name_of_maker(const OnnxDeciding *d, int32_t value) {
    const int32_t maker = d->index->values[value].producer;
    const char *name = maker == ONNX_NONE ? "" : d->index->nodes[maker].node->name;
    return *name ? name : d->index->values[value].name;
}

/* What all nodes of the unit say, but for the neighbour that decided. */
static void explain(OnnxDeciding *d, int32_t node) {
    int count;
    const OnnxUnit *unit = &d->units[node];
    const int32_t *members = onnx_members(d, &node, &count);
    const bool by_policy = !unit->because;
    for (int i = 0; i < count; i++) {
        OnnxDecision *decision = &d->out->nodes[members[i]];
        if (decision->fate == ONNX_DROPPED || onnx_main_group(d, members[i]) == ONNX_NONE) continue;
        decision->op = unit->named.name;
        decision->policy_text = by_policy ? unit->named.line->text : NULL;
        decision->reason = (Reason){.rule = policy_class_words[unit->op_class], .because = unit->because};
        if (!by_policy) continue;
        decision->reason.origin = d->options->policy->name;
        decision->reason.line = unit->named.line->line;
    }
}

/* Whatever it reads, it reads as it is stored. */
static void read_as_stored(OnnxDeciding *d, int32_t node) {
    const OnnxNodeEntry *n = &d->index->nodes[node];
    d->out->nodes[node] = as_it_is("kept", "it reads its operand as it is stored");
    for (int k = 0; k < n->node->inputs.len; k++) {
        const int32_t group = group_of(d, n->first_input + k);
        if (group != ONNX_NONE) d->states[group] = GROUP_STORED;
    }
}

static void classify_all(OnnxDeciding *d, bool *used) {
    for (int32_t n = 0; n < d->index->node_count; n++) {
        int count;
        OnnxDecision *decision = &d->out->nodes[n];
        const int32_t *members = onnx_members(d, &n, &count);
        const OnnxNode *node = d->index->nodes[n].node;
        if (decision->fate == ONNX_DROPPED) continue;
        const bool is_whole = decision->pattern != ONNX_NONE;
        if (!d->rows[n] || (!is_whole && onnx_has_trait(d->rows[n], 'S'))) kept_by(d, n, NULL, used);
        if (!d->rows[n]) {
            *decision = as_it_is("kept", arena_printf(d->arena, "%s is unknown to policies", node->op_type));
        } else if (onnx_has_trait(d->rows[n], 'C')) {
            *decision = as_it_is("kept", "a constant, which some reader wants as it is");
        } else if (!is_whole && onnx_has_trait(d->rows[n], 'S')) {
            read_as_stored(d, n);
        } else if (members[count - 1] == n) {
            classify(d, n, used);
            if (d->units[n].is_decided) explain(d, n);
        }
    }
}

/* ---- eager ------------------------------------------------------------------------------------------------------- */

OpTypes onnx_types_of(OnnxDeciding *d, int32_t node, PolicyClass op_class) {
    d->operands.len = 0;
    onnx_collect_reads(d, node);
    for (int i = 0; i < d->reads.len; i++) {
        const OnnxRead *read = &d->reads.data[i];
        const Operand operand = {onnx_to_dtype((int32_t)onnx_stored(d, read->value)), read->is_castable,
                                 onnx_has_dims(d, read->value)};
        vec_push(d->arena, &d->operands, operand);
    }
    return op_types(op_class, onnx_to_dtype((int32_t)d->low), d->operands.data, d->operands.len, 0);
}

void onnx_follow(OnnxDeciding *d, int32_t node, int read) {
    int count;
    const int32_t *members = onnx_members(d, &node, &count);
    for (int i = 0; i < count && read >= 0; i++) {
        d->out->nodes[members[i]].reason.relation = "input";
        d->out->nodes[members[i]].reason.neighbour = name_of_maker(d, d->reads.data[read].value);
    }
}

void onnx_decide_by_class(OnnxDeciding *d, int32_t node) {
    const OpTypes t = onnx_types_of(d, node, d->units[node].op_class);
    onnx_give_type(d, node, onnx_from_dtype(t.out));
    onnx_follow(d, node, t.forced_by);
}

/* Each unit from the types that its inputs have by then. */
static void decide_eagerly(OnnxDeciding *d) {
    for (int32_t n = 0; n < d->index->node_count; n++)
        if (d->units[n].is_decided) onnx_decide_by_class(d, n);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static amp_status check_bans(const OnnxDeciding *d) {
    for (int32_t n = 0; n < d->index->node_count; n++) {
        const OnnxUnit *unit = &d->units[n];
        if (!unit->is_decided || unit->op_class != POLICY_BANNED) continue;
        return amp_fail(
            d->err, AMP_INVALID_ARGUMENT,
            "%s: %s: policy %s bans %s, in line %d: %s; keep it in f32 with --keep %s, or use another policy",
            d->model->path, onnx_node_text(d->index, d->arena, n), d->options->policy->name, unit->named.name,
            unit->named.line->line, unit->named.line->text, d->index->nodes[n].node->op_type);
    }
    return AMP_OK;
}

static amp_status check_keeps(const OnnxDeciding *d, const bool *used) {
    for (int k = 0; k < d->options->keep_count; k++) {
        const char *keep = d->options->keeps[k];
        if (used[k]) continue;
        const char **names = arena_array(d->arena, const char *, 2 * d->index->node_count + 1);
        int count = 0;
        for (int32_t n = 0; n < d->index->node_count; n++) {
            names[count++] = d->index->nodes[n].node->op_type;
            if (*d->index->nodes[n].node->name) names[count++] = d->index->nodes[n].node->name;
        }
        const char *nearest = text_nearest(keep, names, count);
        return amp_fail(d->err, AMP_INVALID_ARGUMENT, "%s: --keep %s names no op and no node%s%s%s", d->model->path,
                        keep, nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
    }
    return AMP_OK;
}

static amp_status check_policy(const OnnxDeciding *d) {
    const Policy *p = d->options->policy;
    if (p->low == AMP_DT_F16 || p->low == AMP_DT_BF16 || p->low == AMP_DT_F32) return AMP_OK;
    return amp_fail(d->err, AMP_UNSUPPORTED,
                    "%s: ONNX has no type %s, the low one of policy %s; use one of f16 or bf16", d->model->path,
                    amp_dtype_name(p->low), p->name);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void count_nodes(OnnxDecisions *out, int32_t nodes) {
    for (int32_t n = 0; n < nodes; n++) {
        out->lowered += out->nodes[n].fate == ONNX_LOWER;
        out->f32 += out->nodes[n].fate == ONNX_IN_F32;
    }
}

amp_status onnx_decide(const OnnxModel *model, const OnnxIndex *index, const OnnxSolution *solution,
                       const OnnxDecideOptions *options, Arena *arena, OnnxDecisions *decisions, amp_error *err) {
    OnnxDeciding d = {.model = model, .index = index, .solution = solution, .options = options};
    bool *used = arena_array(arena, bool, options->keep_count + 1);
    d.arena = arena;
    d.out = decisions;
    d.err = err;
    AMP_TRY(check_policy(&d));
    d.low = onnx_from_dtype(options->policy->low);
    d.rows = arena_array(arena, const OnnxRow *, index->node_count + 1);
    d.units = arena_array(arena, OnnxUnit, index->node_count + 1);
    d.states = arena_array(arena, uint8_t, solution->group_count + 1);
    d.is_weight = arena_array(arena, bool, index->value_count + 1);
    *decisions = (OnnxDecisions){.nodes = arena_array(arena, OnnxDecision, index->node_count + 1),
                                 .groups = arena_array(arena, uint8_t, solution->group_count + 1),
                                 .sources = arena_array(arena, int32_t, index->value_count + 1)};
    for (int32_t g = 0; g < solution->group_count; g++) decisions->groups[g] = solution->groups[g].dtype;
    find_shared_groups(&d);
    free_outputs(&d);
    drop_casts(&d);
    find_weights(&d);
    onnx_find_patterns(&d);
    classify_all(&d, used);
    AMP_TRY(check_keeps(&d, used));
    AMP_TRY(check_bans(&d));
    if (options->policy->algorithm == ALGORITHM_PAINT) onnx_decide_by_paint(&d);
    else if (options->policy->algorithm == ALGORITHM_MIN_CUT && d.low != ONNX_FLOAT) onnx_decide_by_bytes(&d);
    else decide_eagerly(&d);
    onnx_place_casts(&d);
    count_nodes(decisions, index->node_count);
    return AMP_OK;
}
