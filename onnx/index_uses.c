/* index_uses.c: who reads which value, and who calls which function (index.h). */
#include <stdlib.h>

#include "onnx/index.h"

/* ---- values that are read ---------------------------------------------------------------------------------------- */

/* |name| as the node |reader| of |graph| sees it, or an inner graph of that node.  *late: it is there, and is made by
 * that node or a later one. */
static int32_t find_before(const OnnxIndex *index, int32_t graph, int32_t reader, const char *name, int32_t *late) {
    uint32_t slot;
    *late = ONNX_NONE;
    while (graph != ONNX_NONE) {
        const int32_t value = onnx_find_in(index, graph, name, &slot);
        if (value != ONNX_NONE && index->values[value].producer < reader) return value;
        if (value != ONNX_NONE) {
            *late = value;
            return ONNX_NONE;
        }
        reader = index->graphs[graph].parent_node;
        graph = index->graphs[graph].parent;
    }
    return ONNX_NONE;
}

/* Whether the node |from| reads, by way of others of its graph, an output of the node |to|. */
static bool reads_from(const Indexer *x, int32_t from, int32_t to) {
    const OnnxIndex *index = x->index;
    const int32_t graph = index->nodes[from].graph, first = index->graphs[graph].first_node;
    bool *seen = arena_array(x->arena, bool, index->graphs[graph].nodes->len);
    VEC(int32_t) open = {0};
    uint32_t slot;
    vec_push(x->arena, &open, from);
    while (open.len) {
        const int32_t node = open.data[--open.len];
        const OnnxNames *inputs = &index->nodes[node].node->inputs;
        if (node == to) return true;
        if (seen[node - first]) continue;
        seen[node - first] = true;
        for (int i = 0; i < inputs->len; i++) {
            const int32_t value = onnx_find_in(index, graph, inputs->data[i], &slot);
            const int32_t producer = value == ONNX_NONE ? ONNX_NONE : index->values[value].producer;
            if (producer != ONNX_NONE && !seen[producer - first]) vec_push(x->arena, &open, producer);
        }
    }
    return false;
}

/* The node of |graph| that |node| is, or is in an inner graph of. */
static int32_t node_around(const OnnxIndex *index, int32_t node, int32_t graph) {
    while (index->nodes[node].graph != graph) node = index->graphs[index->nodes[node].graph].parent_node;
    return node;
}

static amp_status fail_late(const Indexer *x, int32_t reader, const char *name, int32_t late) {
    const OnnxIndex *index = x->index;
    const OnnxValue *value = &index->values[late];
    const int32_t around = node_around(index, reader, value->graph);
    const bool is_cycle = reads_from(x, value->producer, around);
    return onnx_index_fail(x, onnx_node_text(index, x->arena, reader), "reads '%s', which %s makes%s", name,
                           onnx_node_text(index, x->arena, value->producer),
                           is_cycle ? ", which reads what it makes in turn: the graph has a cycle"
                                    : " later; nodes must come after those that they read: sort them");
}

static amp_status fail_unknown(const Indexer *x, const char *where, const char *what, const char *name) {
    return onnx_index_fail(x, where, "%s '%s', which nothing makes: no input, initializer or node has this name", what,
                           name);
}

static amp_status resolve_inputs(Indexer *x, int32_t number) {
    OnnxIndex *index = x->index;
    const OnnxNodeEntry *entry = &index->nodes[number];
    int32_t *to = &index->operands[entry->first_input], late;
    for (int i = 0; i < entry->node->inputs.len; i++) {
        const char *name = entry->node->inputs.data[i];
        to[i] = ONNX_NONE;
        if (!*name) continue;
        to[i] = find_before(index, entry->graph, number, name, &late);
        if (late != ONNX_NONE) return fail_late(x, number, name, late);
        if (to[i] == ONNX_NONE) return fail_unknown(x, onnx_node_text(index, x->arena, number), "reads", name);
        index->values[to[i]].uses++;
        index->use_count++;
    }
    return AMP_OK;
}

/* An output sees all nodes of its graph. */
static amp_status resolve_outputs(Indexer *x, int32_t g) {
    OnnxIndex *index = x->index;
    const OnnxGraphEntry *entry = &index->graphs[g];
    int32_t late;
    for (int i = 0; i < entry->output_count; i++) {
        const char *name = entry->graph ? entry->graph->outputs.data[i].name : entry->function->outputs.data[i];
        const int32_t value = find_before(index, g, entry->first_node + entry->nodes->len, name, &late);
        if (late != ONNX_NONE) return fail_late(x, entry->parent_node, name, late);
        if (value == ONNX_NONE) return fail_unknown(x, onnx_graph_text(x, g), "has output", name);
        index->operands[entry->first_output + i] = value;
        index->values[value].is_output = true;
        index->values[value].uses++;
        index->use_count++;
    }
    return AMP_OK;
}

static void add_use(OnnxIndex *index, int32_t value, int32_t node, int32_t input) {
    if (value == ONNX_NONE) return;
    OnnxValue *v = &index->values[value];
    index->uses[v->first_use + v->uses++] = (OnnxUse){.node = node, .input = input};
}

static void list_uses(Indexer *x) {
    OnnxIndex *index = x->index;
    int32_t at = 0;
    index->uses = arena_array(x->arena, OnnxUse, index->use_count);
    for (int32_t v = 0; v < index->value_count; v++) {
        index->values[v].first_use = at;
        at += index->values[v].uses;
        index->values[v].uses = 0;
    }
    for (int32_t n = 0; n < index->node_count; n++)
        for (int i = 0; i < index->nodes[n].node->inputs.len; i++)
            add_use(index, index->operands[index->nodes[n].first_input + i], n, i);
    for (int32_t g = 0; g < index->graph_count; g++)
        for (int i = 0; i < index->graphs[g].output_count; i++)
            add_use(index, index->operands[index->graphs[g].first_output + i], ONNX_NONE, g);
}

amp_status onnx_index_uses(Indexer *x) {
    for (int32_t n = 0; n < x->index->node_count; n++) AMP_TRY(resolve_inputs(x, n));
    for (int32_t g = 0; g < x->index->graph_count; g++) AMP_TRY(resolve_outputs(x, g));
    list_uses(x);
    return AMP_OK;
}

/* ---- functions that are called ----------------------------------------------------------------------------------- */

typedef struct Callee {
    const char *domain, *name, *overload;
    int32_t function;
} Callee;

static const char *plain_domain(const char *domain) { return onnx_is_default_domain(domain) ? "" : domain; }

static int by_name(const void *a, const void *b) {
    const Callee *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (!order) order = strcmp(x->domain, y->domain);
    return order ? order : strcmp(x->overload, y->overload);
}

static amp_status list_functions(Indexer *x, Callee **sorted) {
    const OnnxFunctions *functions = &x->model->functions;
    *sorted = arena_array(x->arena, Callee, functions->len);
    for (int i = 0; i < functions->len; i++) {
        const OnnxFunction *f = &functions->data[i];
        (*sorted)[i] = (Callee){plain_domain(f->domain), f->name, f->overload, i};
    }
    qsort(*sorted, (size_t)functions->len, sizeof **sorted, by_name);
    for (int i = 1; i < functions->len; i++) {
        const Callee *c = &(*sorted)[i];
        if (!by_name(c - 1, c))
            return onnx_index_fail(x, "functions", "two have the name '%s' of domain '%s'", c->name, c->domain);
    }
    return AMP_OK;
}

/* Functions that are called by none are taken away, until all are; |open| has room for all. */
static amp_status check_calls(Indexer *x, int32_t *open) {
    const OnnxIndex *index = x->index;
    const int count = x->model->functions.len;
    int32_t *callers = arena_array(x->arena, int32_t, count), *first = arena_array(x->arena, int32_t, count + 1);
    int32_t *callees = arena_array(x->arena, int32_t, index->node_count), left = 0, done = 0;
    for (int32_t n = 0; n < index->node_count; n++) {
        const OnnxFunction *caller = index->graphs[index->nodes[n].graph].function;
        if (index->nodes[n].function == ONNX_NONE || !caller) continue;
        callers[index->nodes[n].function]++;
        first[caller - x->model->functions.data + 1]++;
    }
    for (int i = 0; i < count; i++) first[i + 1] += first[i];
    int32_t *next = arena_array(x->arena, int32_t, count);
    for (int32_t n = 0; n < index->node_count; n++) {
        const OnnxFunction *caller = index->graphs[index->nodes[n].graph].function;
        if (index->nodes[n].function == ONNX_NONE || !caller) continue;
        const int64_t from = caller - x->model->functions.data;
        callees[first[from] + next[from]++] = index->nodes[n].function;
    }
    for (int i = 0; i < count; i++)
        if (!callers[i]) open[left++] = i;
    for (; done < left; done++)
        for (int32_t i = first[open[done]]; i < first[open[done] + 1]; i++)
            if (!--callers[callees[i]]) open[left++] = callees[i];
    if (done == count) return AMP_OK;
    int at = 0;
    while (!callers[at]) at++;
    return onnx_index_fail(x, "functions", "'%s' is called by functions that call each other in a circle",
                           x->model->functions.data[at].name);
}

amp_status onnx_index_calls(Indexer *x) {
    OnnxIndex *index = x->index;
    const int count = x->model->functions.len;
    Callee *sorted;
    if (!count) return AMP_OK;
    AMP_TRY(list_functions(x, &sorted));
    for (int32_t n = 0; n < index->node_count; n++) {
        const OnnxNode *node = index->nodes[n].node;
        const Callee wanted = {plain_domain(node->domain), node->op_type, node->overload, 0};
        const Callee *found = bsearch(&wanted, sorted, (size_t)count, sizeof *sorted, by_name);
        if (found) index->nodes[n].function = found->function;
    }
    return check_calls(x, arena_array(x->arena, int32_t, count));
}
