/* rewrite.c: see rewrite.h. */
#include "onnx/rewrite.h"

#include <string.h>

#include "base/error.h"

/* A value in a type that is not the one it is made in. */
typedef struct Copy {
    const char *name; /* of the value */
    const char *node; /* of the Cast or Constant */
    struct Copy *next;
    uint8_t dtype;
} Copy;

typedef struct OnnxRewriteState {
    Table taken;        /* names of values and nodes */
    const char **names; /* by value: as it is called now */
    Copy **copies;      /* by value */
    OnnxNodes *nodes;   /* by graph: the new ones */
} OnnxRewriteState;

static int stored(const OnnxRewrite *r, int32_t value) { return r->decisions->stored[value]; }

/* The value that an operand reads, across Casts that go, and in which type. */
static int32_t source_of(const OnnxRewrite *r, int32_t operand) {
    return r->decisions->sources[r->index->operands[operand]];
}

static int read_as(const OnnxRewrite *r, int32_t operand) {
    const int dtype = r->decisions->reads[operand];
    return dtype ? dtype : stored(r, source_of(r, operand));
}

static bool is_dropped(const OnnxRewrite *r, int32_t node) { return r->decisions->nodes[node].fate == ONNX_DROPPED; }

static bool is_weight(const OnnxValue *v) { return (v->initializer || v->sparse) && !v->is_input; }

/* The node, if it is a Constant. */
static const OnnxNode *constant_of(const OnnxRewrite *r, int32_t value) {
    const int32_t node = r->index->values[value].producer;
    const OnnxNode *n = node == ONNX_NONE ? NULL : r->index->nodes[node].node;
    return n && !strcmp(n->op_type, "Constant") && onnx_is_default_domain(n->domain) ? n : NULL;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static void take_names(OnnxRewrite *r) {
    OnnxRewriteState *s = r->state;
    for (int32_t i = 0; i < r->index->value_count; i++) {
        s->names[i] = r->index->values[i].name;
        table_set(r->arena, &s->taken, s->names[i], s);
    }
    for (int32_t i = 0; i < r->index->node_count; i++) table_set(r->arena, &s->taken, r->index->nodes[i].node->name, s);
}

static const char *new_name(OnnxRewrite *r, const char *base, const char *end) {
    const char *name = arena_printf(r->arena, "%s_%s", base, end);
    for (int i = 2; table_get(&r->state->taken, name); i++) name = arena_printf(r->arena, "%s_%s_%d", base, end, i);
    table_set(r->arena, &r->state->taken, name, r->state);
    return name;
}

static const char *short_name(int dtype) {
    return dtype == ONNX_FLOAT16 ? "f16" : dtype == ONNX_BFLOAT16 ? "bf16" : "f32";
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static const Copy *find_copy(const OnnxRewrite *r, int32_t root, int dtype) {
    const Copy *c = r->state->copies[root];
    while (c && c->dtype != dtype) c = c->next;
    return c;
}

static const Copy *add_copy(OnnxRewrite *r, int32_t root, int dtype, const char *name, const char *node) {
    Copy *c = arena_new(r->arena, Copy), **at = &r->state->copies[root];
    *c = (Copy){.name = name, .node = node, .dtype = (uint8_t)dtype};
    while (*at) at = &(*at)->next;
    *at = c;
    return c;
}

/* The name of the value that an operand reads, in the type that it reads.  A Cast that is there gives its names, so
 * that a second rewriting changes nothing. */
static const char *read_name(OnnxRewrite *r, int32_t operand) {
    const int32_t value = r->index->operands[operand], root = source_of(r, operand);
    const OnnxValue *v = &r->index->values[value];
    const int dtype = read_as(r, operand);
    if (stored(r, root) == dtype) return r->state->names[root];
    const Copy *found = find_copy(r, root, dtype);
    if (found) return found->name;
    if (value != root && r->solution->types[value].dtype == dtype && !v->is_output)
        return add_copy(r, root, dtype, v->name, r->index->nodes[v->producer].node->name)->name;
    const char *name = new_name(r, r->state->names[root], short_name(dtype));
    return add_copy(r, root, dtype, name, new_name(r, name, "cast"))->name;
}

/* An output of the model keeps its name, so what it is made of may need another. */
static amp_status name_output(OnnxRewrite *r, int32_t operand, amp_error *err) {
    OnnxRewriteState *s = r->state;
    const int32_t value = source_of(r, operand);
    const OnnxValue *v = &r->index->values[value];
    const int from = stored(r, value), to = read_as(r, operand);
    if (from == to || find_copy(r, value, to)) return AMP_OK; /* the latter: it is there twice */
    if (v->is_input || value != r->index->operands[operand])
        return amp_fail(err, AMP_INTERNAL, "%s: output '%s' cannot be cast", r->model->path, v->name);
    s->names[value] = new_name(r, v->name, short_name(from));
    add_copy(r, value, to, v->name, new_name(r, v->name, "cast"));
    return AMP_OK;
}

/* ---- what reads values ------------------------------------------------------------------------------------------- */

static void rename_node(OnnxRewrite *r, const OnnxNodeEntry *e) {
    for (int i = 0; i < e->node->inputs.len; i++)
        if (r->index->operands[e->first_input + i] != ONNX_NONE)
            e->node->inputs.data[i] = read_name(r, e->first_input + i);
    for (int i = 0; i < e->node->outputs.len; i++) {
        const int32_t value = r->index->operands[e->first_output + i];
        if (value != ONNX_NONE) e->node->outputs.data[i] = r->state->names[value];
    }
}

/* An output of an inner graph or a function goes by its position. */
static void rename_output(OnnxRewrite *r, int32_t graph, int32_t i) {
    const OnnxGraphEntry *g = &r->index->graphs[graph];
    const char *name = read_name(r, g->first_output + i);
    if (g->graph) g->graph->outputs.data[i].name = name;
    else g->function->outputs.data[i] = name;
}

static amp_status name_all(OnnxRewrite *r, amp_error *err) {
    const OnnxIndex *x = r->index;
    for (int32_t i = 0; i < x->graphs[0].output_count; i++) AMP_TRY(name_output(r, x->graphs[0].first_output + i, err));
    for (int32_t i = 0; i < x->node_count; i++)
        if (!is_dropped(r, i)) rename_node(r, &x->nodes[i]);
    for (int32_t g = 1; g < x->graph_count; g++)
        for (int32_t i = 0; i < x->graphs[g].output_count; i++) rename_output(r, g, i);
    return AMP_OK;
}

/* ---- what makes values ------------------------------------------------------------------------------------------- */

static void convert_tensor(OnnxRewrite *r, OnnxTensor *t, int dtype) {
    t->data_type = dtype;
    r->converted += dtype != t->data.type;
}

/* The number of a Constant, in whichever attribute it is. */
static void convert_constant(OnnxRewrite *r, OnnxNode *node, int dtype) {
    for (int i = 0; i < node->attributes.len; i++) {
        OnnxAttribute *a = &node->attributes.data[i];
        if (!strcmp(a->name, "value")) convert_tensor(r, a->t, dtype);
        if (!strcmp(a->name, "sparse_value")) convert_tensor(r, a->sparse->values, dtype);
        const bool one = !strcmp(a->name, "value_float");
        if ((!one && strcmp(a->name, "value_floats") != 0) || dtype == ONNX_FLOAT) continue;
        const int64_t count = one ? 1 : a->floats.len;
        float *numbers = arena_array(r->arena, float, count + 1);
        if (one) numbers[0] = a->f;
        else if (count) memcpy(numbers, a->floats.data, sizeof *numbers * (size_t)count);
        OnnxTensor *t = arena_new(r->arena, OnnxTensor);
        *t = onnx_tensor_of(r->arena, "", ONNX_FLOAT, &count, one ? 0 : 1, numbers);
        convert_tensor(r, t, dtype);
        *a = (OnnxAttribute){.name = "value", .ref_name = "", .t = t, .type = ONNX_ATTR_TENSOR};
    }
}

/* |node| again, with attributes of its own. */
static OnnxNode copy_constant(OnnxRewrite *r, const OnnxNode *node) {
    OnnxNode copy = *node;
    memset(&copy.outputs, 0, sizeof copy.outputs);
    memset(&copy.attributes, 0, sizeof copy.attributes);
    for (int i = 0; i < node->attributes.len; i++) {
        OnnxAttribute a = node->attributes.data[i];
        if (a.type == ONNX_ATTR_TENSOR) *(a.t = arena_new(r->arena, OnnxTensor)) = *node->attributes.data[i].t;
        if (a.type == ONNX_ATTR_SPARSE_TENSOR) {
            const OnnxSparseTensor *from = node->attributes.data[i].sparse;
            *(a.sparse = arena_new(r->arena, OnnxSparseTensor)) = *from;
            *(a.sparse->values = arena_new(r->arena, OnnxTensor)) = *from->values;
        }
        vec_push(r->arena, &copy.attributes, a);
    }
    return copy;
}

static void put_copy(OnnxRewrite *r, int32_t root, const Copy *c) {
    OnnxNodes *to = &r->state->nodes[r->index->values[root].graph];
    const OnnxNode *constant = constant_of(r, root);
    OnnxNode node = onnx_node(r->arena, "Cast", c->node);
    if (constant) {
        node = copy_constant(r, constant);
        node.name = c->node;
        convert_constant(r, &node, c->dtype);
        r->doubled++;
    } else {
        vec_push(r->arena, &node.inputs, r->state->names[root]);
        vec_push(r->arena, &node.attributes, onnx_attribute_of_int("to", c->dtype));
        r->casts++;
    }
    vec_push(r->arena, &node.outputs, c->name);
    vec_push(r->arena, to, node);
}

static OnnxTensor *weight_tensor(const OnnxValue *v) { return v->initializer ? v->initializer : v->sparse->values; }

/* Beside a weight, the same in another type.  Weights are converted before any is added, which moves them. */
static void add_weight(OnnxRewrite *r, int32_t value, const Copy *c) {
    const OnnxValue *v = &r->index->values[value];
    OnnxGraph *g = r->index->graphs[v->graph].graph;
    OnnxTensor copy = *weight_tensor(v);
    copy.name = c->name;
    convert_tensor(r, &copy, c->dtype);
    r->doubled++;
    if (v->initializer) vec_push(r->arena, &g->initializers, copy);
    if (v->initializer) return;
    OnnxSparseTensor sparse = *v->sparse;
    *(sparse.values = arena_new(r->arena, OnnxTensor)) = copy;
    vec_push(r->arena, &g->sparse_initializers, sparse);
}

/* Copies of what no node makes come before all nodes. */
static void put_first(OnnxRewrite *r) {
    const OnnxIndex *x = r->index;
    for (int32_t i = 0; i < x->value_count; i++) {
        const OnnxValue *v = &x->values[i];
        if (!v->initializer && !v->sparse) continue;
        OnnxTensor *t = weight_tensor(v);
        if (onnx_is_float(t->data_type)) convert_tensor(r, t, stored(r, i));
        t->name = r->state->names[i];
    }
    for (int32_t i = 0; i < x->value_count; i++)
        for (const Copy *c = x->values[i].producer == ONNX_NONE ? r->state->copies[i] : NULL; c; c = c->next) {
            if (is_weight(&x->values[i])) add_weight(r, i, c);
            else put_copy(r, i, c);
        }
}

static void put_nodes(OnnxRewrite *r) {
    const OnnxIndex *x = r->index;
    for (int32_t i = 0; i < x->node_count; i++) {
        const OnnxNodeEntry *e = &x->nodes[i];
        if (is_dropped(r, i)) {
            r->dropped++;
            continue;
        }
        vec_push(r->arena, &r->state->nodes[e->graph], *e->node);
        for (int k = 0; k < e->node->outputs.len; k++) {
            const int32_t value = x->operands[e->first_output + k];
            if (value == ONNX_NONE) continue;
            for (const Copy *c = r->state->copies[value]; c; c = c->next) put_copy(r, value, c);
        }
    }
    for (int32_t g = 0; g < x->graph_count; g++) *x->graphs[g].nodes = r->state->nodes[g];
}

/* ---- types of values, and attributes that state one -------------------------------------------------------------- */

static void set_type(OnnxType *type, int dtype) {
    while (type && type->kind != ONNX_TYPE_TENSOR && type->kind != ONNX_TYPE_SPARSE) {
        if (type->kind == ONNX_TYPE_NONE || type->kind == ONNX_TYPE_OPAQUE) return;
        type = type->element ? type->element->type : NULL;
    }
    if (type && type->tensor && onnx_is_float(type->tensor->elem_type)) type->tensor->elem_type = dtype;
}

/* Of values that are not made any more nothing is stated. */
static void set_infos(OnnxRewrite *r, int32_t graph, OnnxValueInfos *infos) {
    int kept = 0;
    for (int i = 0; i < infos->len; i++) {
        OnnxValueInfo info = infos->data[i];
        const int32_t value = onnx_find(r->index, graph, info.name);
        if (value != ONNX_NONE && r->index->values[value].graph == graph) {
            if (r->decisions->sources[value] != value) continue;
            info.name = r->state->names[value];
            set_type(info.type, stored(r, value));
        }
        infos->data[kept++] = info;
    }
    infos->len = kept;
}

static void set_types(OnnxRewrite *r) {
    for (int32_t i = 0; i < r->index->graph_count; i++) {
        const OnnxGraphEntry *e = &r->index->graphs[i];
        set_infos(r, i, e->graph ? &e->graph->value_infos : &e->function->value_infos);
        if (!e->graph) continue;
        for (int k = 0; k < e->input_count; k++)
            set_type(e->graph->inputs.data[k].type, stored(r, r->index->operands[e->first_input + k]));
        for (int k = 0; k < e->output_count; k++)
            set_type(e->graph->outputs.data[k].type, read_as(r, e->first_output + k));
    }
}

static void set_attribute(OnnxRewrite *r, OnnxNode *node, const char *name, int dtype) {
    OnnxAttribute *a = onnx_attribute(node, name);
    if (!strcmp(node->op_type, "Constant")) convert_constant(r, node, dtype);
    else if (a && a->type == ONNX_ATTR_TENSOR) convert_tensor(r, a->t, dtype);
    else if (a) a->i = dtype;
    else if (!strcmp(name, "value")) { /* of ConstantOfShape: the zero that it makes without one */
        static const float zero = 0.0f;
        static const int64_t one = 1;
        OnnxTensor *t = arena_new(r->arena, OnnxTensor);
        *t = onnx_tensor_of(r->arena, "", ONNX_FLOAT, &one, 1, &zero);
        convert_tensor(r, t, dtype);
        vec_push(r->arena, &node->attributes,
                 ((OnnxAttribute){.name = "value", .ref_name = "", .t = t, .type = ONNX_ATTR_TENSOR}));
    } else {
        vec_push(r->arena, &node->attributes, onnx_attribute_of_int(name, dtype));
    }
}

static void set_attributes(OnnxRewrite *r) {
    for (int32_t i = 0; i < r->solution->group_count; i++) {
        const OnnxGroup *g = &r->solution->groups[i];
        if (g->attribute && g->node != ONNX_NONE && r->decisions->groups[i] != g->dtype)
            set_attribute(r, r->index->nodes[g->node].node, g->attribute, r->decisions->groups[i]);
    }
}

/* ---- reasons ----------------------------------------------------------------------------------------------------- */

enum { NODES_HAVE_METADATA = 10 }; /* from this IR version on */

static void set_reasons(OnnxRewrite *r) {
    if (r->policy) onnx_set_prop(r->arena, &r->model->metadata, "ampc.policy", r->policy);
    for (int32_t i = 0; i < r->index->node_count && r->model->ir_version >= NODES_HAVE_METADATA; i++) {
        const OnnxDecision *d = &r->decisions->nodes[i];
        OnnxProps *props = &r->index->nodes[i].node->metadata;
        if (d->fate != ONNX_LOWER && d->fate != ONNX_IN_F32) continue;
        Text t;
        text_init(&t, r->arena);
        ir_print_reason(&t, &d->reason);
        onnx_set_prop(r->arena, props, "ampc.type", onnx_dtype_name(d->fate == ONNX_LOWER ? r->low : ONNX_FLOAT));
        onnx_set_prop(r->arena, props, "ampc.because", text_str(&t));
    }
}

amp_status onnx_rewrite(OnnxRewrite *r, amp_error *err) {
    const OnnxIndex *x = r->index;
    OnnxRewriteState *s = arena_new(r->arena, OnnxRewriteState);
    s->names = arena_array(r->arena, const char *, x->value_count + 1);
    s->copies = arena_array(r->arena, Copy *, x->value_count + 1);
    s->nodes = arena_array(r->arena, OnnxNodes, x->graph_count);
    r->state = s;
    take_names(r);
    AMP_TRY(name_all(r, err));
    set_attributes(r);
    set_types(r);
    set_reasons(r);
    put_first(r);
    put_nodes(r);
    return AMP_OK;
}
