/* types_groups.c: which operands change their type together: a union-find over operands, and over initializers, which
 * no operand defines. */
#include <string.h>

#include "onnx/solve.h"

enum { FLOATS = 1u << ONNX_FLOAT | 1u << ONNX_FLOAT16 | 1u << ONNX_BFLOAT16 };

/* What the root of a group knows. */
typedef struct Member {
    uint32_t allowed;
    int32_t parent, node;
    const char *variable, *attribute;
} Member;

typedef struct Groups {
    const OnnxSolver *s;
    Member *members;
    int32_t operands, count;
} Groups;

static int32_t root_of(Groups *g, int32_t m) {
    while (g->members[m].parent != m) {
        g->members[m].parent = g->members[g->members[m].parent].parent;
        m = g->members[m].parent;
    }
    return m;
}

static int32_t value_of(const Groups *g, int32_t m) {
    return m < g->operands ? g->s->index->operands[m] : m - g->operands;
}

/* The type of a member that may be in a group: of floats. */
static OnnxValueType type_of(const Groups *g, int32_t m) {
    int32_t v = value_of(g, m);
    OnnxValueType type = v == ONNX_NONE ? (OnnxValueType){.kind = 0} : g->s->out->types[v];
    return onnx_is_float(type.dtype) ? type : (OnnxValueType){.kind = 0};
}

static void join(Groups *g, int32_t a, int32_t b) {
    if (a == ONNX_NONE || b == ONNX_NONE || !type_of(g, a).kind || !type_of(g, b).kind) return;
    a = root_of(g, a);
    b = root_of(g, b);
    if (a == b) return;
    if (a > b) {
        int32_t swap = a;
        a = b;
        b = swap;
    }
    Member *x = &g->members[a], *y = &g->members[b];
    x->allowed &= y->allowed;
    if (!x->attribute) x->attribute = y->attribute;
    if (x->node == ONNX_NONE) {
        x->node = y->node;
        x->variable = y->variable;
    }
    y->parent = a;
}

static int32_t definition(const Groups *g, int32_t v) {
    const OnnxValue *value = &g->s->index->values[v];
    if (value->producer != ONNX_NONE) return g->s->index->nodes[value->producer].first_output + value->output;
    if (value->output != ONNX_NONE) return g->s->index->graphs[value->graph].first_input + value->output;
    return g->operands + v;
}

/* A member keeps the type that it has. */
static void fix(Groups *g, int32_t m) { g->members[root_of(g, m)].allowed &= 1u << type_of(g, m).dtype; }

/* An operand that reads: what is no tensor can't be cast on its way. */
static void read_by(Groups *g, int32_t operand) {
    int32_t v = value_of(g, operand);
    if (v == ONNX_NONE || g->s->out->types[v].kind == ONNX_KIND_TENSOR) return;
    join(g, operand, definition(g, v));
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static void take_param(Groups *g, int32_t node, const OnnxSchema *schema, const OnnxParam *p, int32_t m,
                       int32_t *first) {
    OnnxValueType type = type_of(g, m);
    if (!type.kind) return;
    if (!p || p->variable < 0) {
        fix(g, m);
        return;
    }
    const OnnxVariable *v = &schema->variable[p->variable];
    Member *member = &g->members[root_of(g, m)];
    member->allowed &= type.kind == ONNX_KIND_MAP || type.kind == ONNX_KIND_MAP_SEQUENCE ? 0 : v->allowed.of[type.kind];
    if (member->node == ONNX_NONE) {
        member->node = node;
        member->variable = v->name;
    }
    if (p->mixed) return;
    if (first[p->variable] == ONNX_NONE) first[p->variable] = m;
    else join(g, first[p->variable], m);
}

/* The attribute that says the type of a constant. */
static const char *constant_attribute(const OnnxNode *n) {
    for (int i = 0; i < n->attributes.len; i++)
        if (strncmp(n->attributes.data[i].name, "value", 5) == 0) return n->attributes.data[i].name;
    return "value";
}

static const char *attribute_of(const Groups *g, const OnnxNode *n, const OnnxSchema *schema, int variable) {
    const OnnxVariable *v = &schema->variable[variable];
    if (v->attribute && (v->default_variable < 0 || onnx_solver_int(g->s, n, v->attribute, 0))) return v->attribute;
    if (strcmp(schema->op, "Constant") == 0) return constant_attribute(n);
    if (strcmp(schema->op, "ConstantOfShape") == 0) return "value";
    return strcmp(schema->op, "SequenceEmpty") == 0 ? "dtype" : NULL;
}

/* Variables that outputs have alone: stated by an attribute, or equal to another. */
static void take_stated(Groups *g, const OnnxNode *n, const OnnxSchema *schema, const int32_t *inputs,
                        const int32_t *first) {
    for (int i = 0; i < schema->variables; i++) {
        if (inputs[i] != ONNX_NONE || first[i] == ONNX_NONE) continue;
        const char *attribute = attribute_of(g, n, schema, i);
        Member *member = &g->members[root_of(g, first[i])];
        if (attribute) member->attribute = attribute;
        else if (schema->variable[i].default_variable >= 0)
            join(g, first[i], first[schema->variable[i].default_variable]);
        else if (strcmp(schema->op, "Optional") == 0 && n->inputs.len == 0) member->allowed = 0;
    }
}

/* The elements of a sequence and what is put in or taken out. */
static void take_elements(Groups *g, const OnnxSchema *schema, const int32_t *first) {
    bool nested = false;
    for (int i = 0; i < schema->variables; i++) {
        const uint32_t *of = schema->variable[i].allowed.of;
        nested |= !of[ONNX_KIND_TENSOR] && (of[ONNX_KIND_SEQUENCE] || of[ONNX_KIND_OPTIONAL]);
    }
    nested |= strcmp(schema->op, "OptionalGetElement") == 0;
    for (int i = 1; nested && i < schema->variables; i++)
        for (int k = 0; k < i; k++) join(g, first[i], first[k]);
}

static void take_schema(Groups *g, int32_t node, const OnnxSchema *schema) {
    const OnnxNodeEntry *e = &g->s->index->nodes[node];
    int32_t first[ONNX_VARIABLES], inputs[ONNX_VARIABLES];
    for (int i = 0; i < ONNX_VARIABLES; i++) first[i] = ONNX_NONE;
    for (int i = 0; i < e->node->inputs.len; i++)
        take_param(g, node, schema, onnx_param(schema->input, schema->inputs, i), e->first_input + i, first);
    memcpy(inputs, first, sizeof inputs);
    for (int i = 0; i < e->node->outputs.len; i++)
        take_param(g, node, schema, onnx_param(schema->output, schema->outputs, i), e->first_output + i, first);
    take_stated(g, e->node, schema, inputs, first);
    take_elements(g, schema, first);
}

static void fix_operands(Groups *g, const OnnxNodeEntry *e) {
    for (int i = 0; i < e->node->inputs.len; i++) fix(g, e->first_input + i);
    for (int i = 0; i < e->node->outputs.len; i++) fix(g, e->first_output + i);
}

/* The node's inputs from |in| on are inputs of |body|, and its outputs are the body's from |out| on.  Of these the
 * first |carried| go round. */
static void take_body(Groups *g, const OnnxNodeEntry *e, int32_t body, int in, int out, int64_t carried) {
    const OnnxGraphEntry *b = &g->s->index->graphs[body];
    for (int i = in; i < e->node->inputs.len && i < b->input_count; i++)
        join(g, e->first_input + i, b->first_input + i);
    for (int i = 0; i < e->node->outputs.len && i + out < b->output_count; i++)
        join(g, e->first_output + i, b->first_output + out + i);
    for (int i = 0; i < carried && i + in < b->input_count && i + out < b->output_count; i++)
        join(g, b->first_input + in + i, b->first_output + out + i);
}

static void take_graphs(Groups *g, int32_t node) {
    const OnnxNodeEntry *e = &g->s->index->nodes[node];
    const char *op = e->node->op_type;
    for (int i = 0; i < e->graph_count; i++) {
        if (strcmp(op, "If") == 0) take_body(g, e, e->first_graph + i, INT32_MAX, 0, 0);
        else if (strcmp(op, "Loop") == 0) take_body(g, e, e->first_graph, 2, 1, e->node->inputs.len - 2);
        else if (strcmp(op, "Scan") == 0)
            take_body(g, e, e->first_graph, 0, 0,
                      e->node->inputs.len - onnx_solver_int(g->s, e->node, "num_scan_inputs", 0));
        else take_body(g, e, e->first_graph, 0, 0, 0);
    }
}

static void take_node(Groups *g, int32_t node) {
    const OnnxNodeEntry *e = &g->s->index->nodes[node];
    for (int i = 0; i < e->node->inputs.len; i++) read_by(g, e->first_input + i);
    if (!g->s->out->schemas[node]) {
        fix_operands(g, e);
        return;
    }
    take_schema(g, node, g->s->out->schemas[node]);
    take_graphs(g, node);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* What it is at last: numbers for the groups that have a choice. */
static void number(Groups *g, OnnxSolution *out, Arena *arena) {
    int32_t *numbers = arena_array(arena, int32_t, g->count);
    VEC(OnnxGroup) groups = {NULL, 0, 0};
    for (int32_t m = 0; m < g->count; m++) {
        int32_t root = root_of(g, m);
        const Member *member = &g->members[root];
        OnnxValueType type = type_of(g, m);
        numbers[m] = ONNX_NONE;
        if (m >= g->operands && definition(g, m - g->operands) != m) continue;
        if (!type.kind || !(member->allowed & ~(1u << type.dtype))) continue;
        if (root == m) {
            numbers[m] = groups.len;
            vec_push(arena, &groups,
                     ((OnnxGroup){.allowed = member->allowed,
                                  .dtype = type.dtype,
                                  .attribute = member->attribute,
                                  .node = member->node,
                                  .variable = member->variable ? member->variable : ""}));
        } else {
            numbers[m] = numbers[root];
        }
    }
    out->operand_groups = numbers;
    out->groups = groups.data;
    out->group_count = groups.len;
}

void onnx_find_groups(OnnxSolver *s) {
    const OnnxIndex *index = s->index;
    Groups g = {.s = s, .operands = index->operand_count, .count = index->operand_count + index->value_count};
    g.members = arena_array(s->arena, Member, g.count);
    for (int32_t m = 0; m < g.count; m++) g.members[m] = (Member){.allowed = FLOATS, .parent = m, .node = ONNX_NONE};
    for (int32_t i = 0; i < index->graph_count; i++) {
        const OnnxGraphEntry *e = &index->graphs[i];
        for (int k = 0; k < e->output_count; k++) read_by(&g, e->first_output + k);
        for (int k = 0; e->function && k < e->input_count; k++) fix(&g, e->first_input + k);
        for (int k = 0; e->function && k < e->output_count; k++) fix(&g, e->first_output + k);
        for (int k = 0; k < e->nodes->len; k++) {
            if (e->function) fix_operands(&g, &index->nodes[e->first_node + k]);
            else take_node(&g, e->first_node + k);
        }
    }
    number(&g, s->out, s->arena);
    s->out->value_groups = arena_array(s->arena, int32_t, index->value_count);
    for (int32_t v = 0; v < index->value_count; v++)
        s->out->value_groups[v] = s->out->operand_groups[definition(&g, v)];
}
