/* index.c: nodes and values of a model by numbers, and the checks that make these mean something (onnx.h).  Time and
 * memory are linear in the model: names are found by a hash with a seed, which no file can have been made for. */
#include "onnx/index.h"

#include "base/file.h"

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void put_graph(Text *t, const OnnxIndex *index, int32_t graph) {
    const OnnxGraphEntry *g = &index->graphs[graph];
    if (g->parent != ONNX_NONE) {
        const OnnxNodeEntry *n = &index->nodes[g->parent_node];
        put_graph(t, index, g->parent);
        text_printf(t, "node %d '%s' (%s), ", (int)(g->parent_node - index->graphs[n->graph].first_node), n->node->name,
                    n->node->op_type);
    } else if (g->function) {
        text_printf(t, "function '%s', ", g->function->name);
    }
}

const char *onnx_node_text(const OnnxIndex *index, Arena *arena, int32_t node) {
    const OnnxNodeEntry *n = &index->nodes[node];
    Text t;
    text_init(&t, arena);
    put_graph(&t, index, n->graph);
    text_printf(&t, "node %d '%s' (%s)", (int)(node - index->graphs[n->graph].first_node), n->node->name,
                n->node->op_type);
    return text_str(&t);
}

const char *onnx_graph_text(const Indexer *x, int32_t graph) {
    Text t;
    text_init(&t, x->arena);
    put_graph(&t, x->index, graph);
    text_puts(&t, "graph");
    if (x->index->graphs[graph].graph) text_printf(&t, " '%s'", x->index->graphs[graph].graph->name);
    return text_str(&t);
}

amp_status onnx_index_fail(const Indexer *x, const char *where, const char *format, ...) {
    amp_error what = {0};
    va_list args;
    va_start(args, format);
    amp_vfail(&what, AMP_BAD_FILE, format, args);
    va_end(args);
    return amp_fail(x->err, AMP_BAD_FILE, "%s: %s: %s", x->model->path, where, what.message);
}

/* ---- graphs and nodes -------------------------------------------------------------------------------------------- */

static void add_graph(Indexer *x, OnnxGraph *graph, OnnxFunction *function, int32_t parent, int32_t parent_node) {
    const OnnxGraphEntry entry = {
        .graph = graph,
        .function = function,
        .nodes = graph ? &graph->nodes : &function->nodes,
        .parent = parent,
        .parent_node = parent_node,
        .input_count = graph ? graph->inputs.len : function->inputs.len,
        .output_count = graph ? graph->outputs.len : function->outputs.len,
        .depth = parent == ONNX_NONE ? 0 : x->graphs.data[parent].depth + 1,
    };
    vec_push(x->arena, &x->graphs, entry);
}

static void add_inner_graphs(Indexer *x, const OnnxNode *node, int32_t graph, int32_t number) {
    OnnxFunction *function = x->graphs.data[graph].function;
    for (int i = 0; i < node->attributes.len; i++) {
        OnnxAttribute *a = &node->attributes.data[i];
        if (a->type == ONNX_ATTR_GRAPH && a->g) add_graph(x, a->g, function, graph, number);
        for (int k = 0; a->type == ONNX_ATTR_GRAPHS && k < a->graphs.len; k++)
            add_graph(x, &a->graphs.data[k], function, graph, number);
    }
}

/* A node's graphs follow each other, and all graphs of one follow all of those before it. */
static void list_graphs(Indexer *x) {
    const OnnxModel *model = x->model;
    int32_t nodes = 0;
    add_graph(x, model->graph, NULL, ONNX_NONE, ONNX_NONE);
    for (int i = 0; i < model->functions.len; i++) add_graph(x, NULL, &model->functions.data[i], ONNX_NONE, ONNX_NONE);
    for (int32_t g = 0; g < x->graphs.len; g++) {
        const OnnxNodes *list = x->graphs.data[g].nodes;
        x->graphs.data[g].first_node = nodes;
        for (int i = 0; i < list->len; i++) add_inner_graphs(x, &list->data[i], g, nodes + i);
        nodes += list->len;
    }
    x->index->graphs = x->graphs.data;
    x->index->graph_count = x->graphs.len;
    x->index->node_count = nodes;
}

static void list_nodes(Indexer *x) {
    OnnxIndex *index = x->index;
    int32_t operands = 0;
    index->nodes = arena_array(x->arena, OnnxNodeEntry, index->node_count);
    for (int32_t g = 0; g < index->graph_count; g++) {
        OnnxGraphEntry *entry = &index->graphs[g];
        for (int i = 0; i < entry->nodes->len; i++) {
            OnnxNode *node = &entry->nodes->data[i];
            index->nodes[entry->first_node + i] = (OnnxNodeEntry){.node = node,
                                                                  .graph = g,
                                                                  .first_input = operands,
                                                                  .first_output = operands + node->inputs.len,
                                                                  .function = ONNX_NONE};
            operands += node->inputs.len + node->outputs.len;
        }
        entry->first_input = operands;
        entry->first_output = operands + entry->input_count;
        operands += entry->input_count + entry->output_count;
    }
    for (int32_t g = index->graph_count - 1; g > 0; g--) {
        if (index->graphs[g].parent_node == ONNX_NONE) continue;
        OnnxNodeEntry *node = &index->nodes[index->graphs[g].parent_node];
        node->first_graph = g;
        node->graph_count++;
    }
    index->operand_count = operands;
    index->operands = arena_array(x->arena, int32_t, operands);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static uint32_t slot_of(const OnnxIndex *index, int32_t graph, const char *name) {
    uint64_t hash = index->seed ^ (uint32_t)graph * 0x9E3779B97F4A7C15u;
    for (; *name; name++) hash = ((hash ^ (uint8_t)*name) * 0xFF51AFD7ED558CCDu) ^ hash >> 29;
    return (uint32_t)(hash >> 32) & (index->slot_count - 1);
}

int32_t onnx_find_in(const OnnxIndex *index, int32_t graph, const char *name, uint32_t *slot) {
    for (*slot = slot_of(index, graph, name); index->slots[*slot]; *slot = (*slot + 1) & (index->slot_count - 1)) {
        const int32_t value = index->slots[*slot] - 1;
        if (index->values[value].graph == graph && !strcmp(index->values[value].name, name)) return value;
    }
    return ONNX_NONE;
}

int32_t onnx_find(const OnnxIndex *index, int32_t graph, const char *name) {
    uint32_t slot;
    int32_t value = ONNX_NONE;
    for (; graph != ONNX_NONE && value == ONNX_NONE; graph = index->graphs[graph].parent)
        value = onnx_find_in(index, graph, name, &slot);
    return value;
}

static void make_table(Indexer *x) {
    OnnxIndex *index = x->index;
    size_t most = 0;
    for (int32_t g = 0; g < index->graph_count; g++) {
        const OnnxGraph *graph = index->graphs[g].graph;
        most += (size_t)index->graphs[g].input_count;
        if (graph) most += (size_t)graph->initializers.len + (size_t)graph->sparse_initializers.len;
        for (int i = 0; i < index->graphs[g].nodes->len; i++)
            most += (size_t)index->graphs[g].nodes->data[i].outputs.len;
    }
    index->values = arena_array(x->arena, OnnxValue, most);
    for (index->slot_count = 16; index->slot_count < 2 * most && index->slot_count < 1u << 31;) index->slot_count *= 2;
    index->slots = arena_array(x->arena, int32_t, index->slot_count);
    index->seed = (uint64_t)amp_nanoseconds() * 0x9E3779B97F4A7C15u ^ (uintptr_t)index->slots;
}

/* The value |name| of |graph|, made if it is new. */
static OnnxValue *define(Indexer *x, int32_t graph, const char *name, bool *is_new) {
    OnnxIndex *index = x->index;
    uint32_t slot;
    const int32_t found = onnx_find_in(index, graph, name, &slot);
    *is_new = found == ONNX_NONE;
    if (!*is_new) return &index->values[found];
    index->slots[slot] = ++index->value_count;
    OnnxValue *value = &index->values[index->value_count - 1];
    *value = (OnnxValue){.name = name, .graph = graph, .producer = ONNX_NONE, .output = ONNX_NONE};
    return value;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static amp_status define_inputs(Indexer *x, int32_t g) {
    const OnnxGraphEntry *entry = &x->index->graphs[g];
    bool is_new;
    for (int i = 0; i < entry->input_count; i++) {
        OnnxValueInfo *info = entry->graph ? &entry->graph->inputs.data[i] : NULL;
        const char *name = info ? info->name : entry->function->inputs.data[i];
        if (!*name) return onnx_index_fail(x, onnx_graph_text(x, g), "input %d has no name", i);
        OnnxValue *value = define(x, g, name, &is_new);
        if (!is_new) return onnx_index_fail(x, onnx_graph_text(x, g), "two inputs have the name '%s'", name);
        value->is_input = true;
        value->output = i;
        value->info = info;
        x->index->operands[entry->first_input + i] = (int32_t)(value - x->index->values);
    }
    return AMP_OK;
}

static amp_status define_initializers(Indexer *x, int32_t g) {
    const OnnxGraph *graph = x->index->graphs[g].graph;
    bool is_new;
    const int dense = graph ? graph->initializers.len : 0, sparse = graph ? graph->sparse_initializers.len : 0;
    for (int i = 0; i < dense + sparse; i++) {
        OnnxTensor *tensor = i < dense ? &graph->initializers.data[i] : NULL;
        OnnxSparseTensor *other = i < dense ? NULL : &graph->sparse_initializers.data[i - dense];
        const char *name = tensor ? tensor->name : other->values ? other->values->name : "";
        if (!*name)
            return onnx_index_fail(x, onnx_graph_text(x, g), "%sinitializer %d has no name", tensor ? "" : "sparse ",
                                   tensor ? i : i - dense);
        OnnxValue *value = define(x, g, name, &is_new);
        if (value->initializer || value->sparse)
            return onnx_index_fail(x, onnx_graph_text(x, g), "two initializers have the name '%s'", name);
        value->initializer = tensor;
        value->sparse = other;
    }
    return AMP_OK;
}

static amp_status fail_twice(const Indexer *x, int32_t node, const OnnxValue *value) {
    const char *first = value->is_input ? "an input of the graph" : "an initializer";
    if (value->producer != ONNX_NONE) first = onnx_node_text(x->index, x->arena, value->producer);
    return onnx_index_fail(x, onnx_node_text(x->index, x->arena, node),
                           "output '%s' has the name of %s%s; a name has one value", value->name,
                           value->producer != ONNX_NONE ? "an output of " : "", first);
}

static amp_status define_outputs(Indexer *x, int32_t g) {
    OnnxIndex *index = x->index;
    const OnnxGraphEntry *entry = &index->graphs[g];
    bool is_new;
    for (int i = 0; i < entry->nodes->len; i++) {
        const int32_t number = entry->first_node + i;
        const OnnxNodeEntry *node = &index->nodes[number];
        if (!*node->node->op_type)
            return onnx_index_fail(x, onnx_node_text(x->index, x->arena, number), "has no op_type");
        for (int k = 0; k < node->node->outputs.len; k++) {
            const char *name = node->node->outputs.data[k];
            index->operands[node->first_output + k] = ONNX_NONE;
            if (!*name) continue;
            OnnxValue *value = define(x, g, name, &is_new);
            if (!is_new) return fail_twice(x, number, value);
            value->producer = number;
            value->output = k;
            index->operands[node->first_output + k] = (int32_t)(value - index->values);
        }
    }
    return AMP_OK;
}

static void take_infos(Indexer *x, int32_t g) {
    const OnnxGraphEntry *entry = &x->index->graphs[g];
    const OnnxValueInfos *lists[] = {entry->graph ? &entry->graph->outputs : NULL,
                                     entry->graph ? &entry->graph->value_infos : &entry->function->value_infos};
    uint32_t slot;
    for (int list = 0; list < 2; list++)
        for (int i = 0; lists[list] && i < lists[list]->len; i++) {
            OnnxValueInfo *info = &lists[list]->data[i];
            const int32_t value = onnx_find_in(x->index, g, info->name, &slot);
            if (value != ONNX_NONE && !x->index->values[value].info) x->index->values[value].info = info;
        }
}

static amp_status define_values(Indexer *x) {
    for (int32_t g = 0; g < x->index->graph_count; g++) {
        AMP_TRY(define_inputs(x, g));
        AMP_TRY(define_initializers(x, g));
        AMP_TRY(define_outputs(x, g));
        take_infos(x, g);
    }
    return AMP_OK;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

amp_status onnx_index(const OnnxModel *model, Arena *arena, OnnxIndex *index, amp_error *err) {
    Indexer x = {.model = model, .index = index, .arena = arena, .err = err};
    *index = (OnnxIndex){0};
    list_graphs(&x);
    list_nodes(&x);
    make_table(&x);
    AMP_TRY(define_values(&x));
    AMP_TRY(onnx_index_uses(&x));
    return onnx_index_calls(&x);
}
