/* inline.c: local functions, put in where they are called.
 *
 *     y = f(x)    with f(a): b = Relu(a), c = Abs(b)     becomes     f/b = Relu(x), y = Abs(f/b)
 *
 * Names of a body get the call's name before them, and a number if that is taken. */
#include "onnx/inline.h"

#include <string.h>

#include "onnx/opset.h"
#include "onnx/schema.h"

enum { DEEPEST = 200, MOST_MORE = 200000 };

typedef struct Inliner {
    OnnxModel *model;
    Arena *arena;
    amp_error *err;
    Table functions; /* by "domain:name:overload": those that can be put in */
    Table names;     /* of all values */
    int64_t nodes, most, numbers;
} Inliner;

/* What names mean in a body: of a function, or of a graph in it. */
typedef struct Scope {
    Table names;
    const struct Scope *around;
    const OnnxFunction *function;
    const OnnxNode *call;
    const char *prefix;
} Scope;

static const char function_is_here[] = "";

/* ---- names ------------------------------------------------------------------------------------------------------- */

static const char *key_of(Arena *a, const char *domain, const char *name, const char *overload) {
    return arena_printf(a, "%s:%s:%s", onnx_is_default_domain(domain) ? "" : domain, name, overload ? overload : "");
}

static void take_name(Inliner *x, const char *name) {
    if (*name) table_set(x->arena, &x->names, name, (void *)function_is_here);
}

/* The names that nodes, inputs and initializers of |graph| and of those inside define. */
static void collect_names(Inliner *x, const OnnxGraph *graph) {
    for (int i = 0; i < graph->inputs.len; i++) take_name(x, graph->inputs.data[i].name);
    for (int i = 0; i < graph->initializers.len; i++) take_name(x, graph->initializers.data[i].name);
    for (int i = 0; i < graph->sparse_initializers.len; i++)
        take_name(x, graph->sparse_initializers.data[i].values->name);
    for (int i = 0; i < graph->nodes.len; i++) {
        const OnnxNode *n = &graph->nodes.data[i];
        for (int k = 0; k < n->outputs.len; k++) take_name(x, n->outputs.data[k]);
        for (int k = 0; k < n->attributes.len; k++) {
            const OnnxAttribute *a = &n->attributes.data[k];
            if (a->type == ONNX_ATTR_GRAPH && a->g) collect_names(x, a->g);
            for (int j = 0; a->type == ONNX_ATTR_GRAPHS && j < a->graphs.len; j++) collect_names(x, &a->graphs.data[j]);
        }
    }
}

static const char *lookup(const Scope *scope, const char *name) {
    for (; scope; scope = scope->around) {
        const char *found = table_get(&scope->names, name);
        if (found) return found;
    }
    return name;
}

/* A new name for |name| in |scope|, which it has from here on. */
static const char *define(Inliner *x, Scope *scope, const char *name) {
    if (!scope || !*name) return name;
    const char *known = table_get(&scope->names, name);
    if (known) return known; /* an output of the function */
    const char *fresh = arena_printf(x->arena, "%s/%s", scope->prefix, name);
    while (table_get(&x->names, fresh))
        fresh = arena_printf(x->arena, "%s/%s_%lld", scope->prefix, name, (long long)++x->numbers);
    take_name(x, fresh);
    table_set(x->arena, &scope->names, name, (void *)fresh);
    return fresh;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static amp_status expand(Inliner *x, const OnnxNodes *from, Scope *scope, OnnxNodes *to, OnnxGraph *into, int depth);

static const OnnxAttribute *attribute_named(const OnnxAttributes *list, const char *name) {
    for (int i = 0; i < list->len; i++)
        if (strcmp(list->data[i].name, name) == 0) return &list->data[i];
    return NULL;
}

static amp_status copy_graph(Inliner *x, const OnnxGraph *from, Scope *around, OnnxGraph *to, int depth) {
    Scope scope = {.around = around, .function = around->function, .call = around->call, .prefix = around->prefix};
    *to = *from;
    memset(&to->nodes, 0, sizeof to->nodes);
    memset(&to->inputs, 0, sizeof to->inputs);
    memset(&to->outputs, 0, sizeof to->outputs);
    memset(&to->initializers, 0, sizeof to->initializers);
    memset(&to->value_infos, 0, sizeof to->value_infos);
    for (int i = 0; i < from->inputs.len; i++) {
        vec_push(x->arena, &to->inputs, from->inputs.data[i]);
        to->inputs.data[i].name = define(x, &scope, from->inputs.data[i].name);
    }
    for (int i = 0; i < from->initializers.len; i++) {
        vec_push(x->arena, &to->initializers, from->initializers.data[i]);
        to->initializers.data[i].name = define(x, &scope, from->initializers.data[i].name);
    }
    AMP_TRY(expand(x, &from->nodes, &scope, &to->nodes, to, depth + 1));
    for (int i = 0; i < from->outputs.len; i++) {
        vec_push(x->arena, &to->outputs, from->outputs.data[i]);
        to->outputs.data[i].name = lookup(&scope, from->outputs.data[i].name);
    }
    for (int i = 0; i < from->value_infos.len; i++) {
        vec_push(x->arena, &to->value_infos, from->value_infos.data[i]);
        to->value_infos.data[to->value_infos.len - 1].name = lookup(&scope, from->value_infos.data[i].name);
    }
    return AMP_OK;
}

/* The attribute that |a| of a body is in this call: false if the call has none. */
static amp_status copy_attribute(Inliner *x, OnnxAttribute a, Scope *scope, OnnxAttributes *to, int depth) {
    if (a.ref_name && *a.ref_name) {
        const OnnxAttribute *given = attribute_named(&scope->call->attributes, a.ref_name);
        if (!given) given = attribute_named(&scope->function->defaults, a.ref_name);
        if (!given) return AMP_OK;
        const char *name = a.name;
        a = *given;
        a.name = name;
    } else if (a.type == ONNX_ATTR_GRAPH && a.g) {
        OnnxGraph *graph = arena_new(x->arena, OnnxGraph);
        AMP_TRY(copy_graph(x, a.g, scope, graph, depth));
        a.g = graph;
    } else if (a.type == ONNX_ATTR_GRAPHS) {
        OnnxGraph *graphs = arena_array(x->arena, OnnxGraph, a.graphs.len + 1);
        for (int i = 0; i < a.graphs.len; i++) AMP_TRY(copy_graph(x, &a.graphs.data[i], scope, &graphs[i], depth));
        a.graphs.data = graphs;
        a.graphs.cap = a.graphs.len;
    }
    if (a.type == ONNX_ATTR_TENSOR && a.t) {
        OnnxTensor *t = arena_new(x->arena, OnnxTensor);
        *t = *a.t;
        a.t = t;
    }
    vec_push(x->arena, to, a);
    return AMP_OK;
}

/* Node |from| of a body as it is in this call. */
static amp_status copy_node(Inliner *x, const OnnxNode *from, Scope *scope, OnnxNode *to, int depth) {
    *to = *from;
    memset(&to->inputs, 0, sizeof to->inputs);
    memset(&to->outputs, 0, sizeof to->outputs);
    memset(&to->attributes, 0, sizeof to->attributes);
    memset(&to->metadata, 0, sizeof to->metadata);
    to->name = arena_printf(x->arena, "%s/%s", scope->prefix, *from->name ? from->name : from->op_type);
    for (int i = 0; i < from->inputs.len; i++) vec_push(x->arena, &to->inputs, lookup(scope, from->inputs.data[i]));
    for (int i = 0; i < from->attributes.len; i++)
        AMP_TRY(copy_attribute(x, from->attributes.data[i], scope, &to->attributes, depth));
    for (int i = 0; i < from->outputs.len; i++)
        vec_push(x->arena, &to->outputs, define(x, scope, from->outputs.data[i]));
    for (int i = 0; i < from->metadata.len; i++) vec_push(x->arena, &to->metadata, from->metadata.data[i]);
    return AMP_OK;
}

/* Of the model's own graphs: nothing is copied, but what their graphs call is put in. */
static amp_status expand_graphs(Inliner *x, OnnxNode *n, int depth) {
    for (int i = 0; i < n->attributes.len; i++) {
        OnnxAttribute *a = &n->attributes.data[i];
        int count = a->type == ONNX_ATTR_GRAPH ? a->g != NULL : a->type == ONNX_ATTR_GRAPHS ? a->graphs.len : 0;
        for (int k = 0; k < count; k++) {
            OnnxGraph *g = a->type == ONNX_ATTR_GRAPH ? a->g : &a->graphs.data[k];
            OnnxNodes nodes = {NULL, 0, 0};
            AMP_TRY(expand(x, &g->nodes, NULL, &nodes, g, depth + 1));
            g->nodes = nodes;
        }
    }
    return AMP_OK;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void push_identity(Inliner *x, OnnxNodes *to, const char *from, const char *name) {
    OnnxNode n = onnx_node(x->arena, "Identity", name);
    vec_push(x->arena, &n.inputs, from);
    vec_push(x->arena, &n.outputs, name);
    vec_push(x->arena, to, n);
}

/* What the function says of its values, but for its inputs and outputs, the first |given| names. */
static void push_infos(Inliner *x, const OnnxFunction *f, const Scope *scope, int given, OnnxGraph *into) {
    Table infos = {.slot_count = 0};
    for (int i = 0; i < f->value_infos.len; i++)
        table_set(x->arena, &infos, f->value_infos.data[i].name, &f->value_infos.data[i]);
    for (int i = given; infos.entries.len && i < scope->names.entries.len; i++) {
        const OnnxValueInfo *info = table_get(&infos, scope->names.entries.data[i].key);
        if (!info) continue;
        vec_push(x->arena, &into->value_infos, *info);
        into->value_infos.data[into->value_infos.len - 1].name = scope->names.entries.data[i].value;
    }
}

static amp_status put_in(Inliner *x, const OnnxNode *call, const OnnxFunction *f, OnnxNodes *to, OnnxGraph *into,
                         int depth) {
    Scope scope = {.function = f, .call = call, .prefix = *call->name ? call->name : f->name};
    for (int i = 0; i < f->inputs.len; i++)
        table_set(x->arena, &scope.names, f->inputs.data[i],
                  (void *)(i < call->inputs.len ? call->inputs.data[i] : function_is_here));
    for (int i = 0; i < f->outputs.len && i < call->outputs.len; i++)
        if (*call->outputs.data[i] && !table_get(&scope.names, f->outputs.data[i]))
            table_set(x->arena, &scope.names, f->outputs.data[i], (void *)call->outputs.data[i]);
    int given = scope.names.entries.len;
    AMP_TRY(expand(x, &f->nodes, &scope, to, into, depth + 1));
    /* An output that is an input, or twice the same. */
    for (int i = 0; i < f->outputs.len && i < call->outputs.len; i++) {
        const char *made = lookup(&scope, f->outputs.data[i]);
        if (*call->outputs.data[i] && strcmp(made, call->outputs.data[i]) != 0)
            push_identity(x, to, made, call->outputs.data[i]);
    }
    push_infos(x, f, &scope, given, into);
    return AMP_OK;
}

static amp_status expand(Inliner *x, const OnnxNodes *from, Scope *scope, OnnxNodes *to, OnnxGraph *into, int depth) {
    if (depth > DEEPEST)
        return amp_fail(x->err, AMP_UNSUPPORTED, "%s: graphs and calls of local functions are more than %d deep",
                        x->model->path, DEEPEST);
    for (int i = 0; i < from->len; i++) {
        OnnxNode n = from->data[i];
        if (scope) AMP_TRY(copy_node(x, &from->data[i], scope, &n, depth));
        else AMP_TRY(expand_graphs(x, &n, depth));
        if (++x->nodes > x->most)
            return amp_fail(x->err, AMP_UNSUPPORTED, "%s: with its local functions put in it has more than %lld nodes",
                            x->model->path, (long long)x->most);
        const OnnxFunction *f = table_get(&x->functions, key_of(x->arena, n.domain, n.op_type, n.overload));
        if (f) AMP_TRY(put_in(x, &n, f, to, into, depth));
        else vec_push(x->arena, to, n);
    }
    return AMP_OK;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* Do the function's nodes mean the same in the model's opsets?  What it imports alone, the model imports too. */
static bool same_opsets(Inliner *x, const OnnxFunction *f) {
    for (int i = 0; i < f->opsets.len; i++) {
        const OnnxOpset *own = &f->opsets.data[i];
        const int64_t version = onnx_opset(&x->model->opsets, own->domain);
        if (!version || version == own->version) continue;
        if (!onnx_is_default_domain(own->domain) || own->version > version || own->version < ONNX_OLDEST_OPSET ||
            !onnx_means_the_same(&f->nodes, own->version, version))
            return false;
    }
    for (int i = 0; i < f->opsets.len; i++)
        if (!onnx_opset(&x->model->opsets, f->opsets.data[i].domain))
            vec_push(x->arena, &x->model->opsets, f->opsets.data[i]);
    return true;
}

amp_status onnx_inline_functions(OnnxModel *model, Arena *arena, amp_error *err) {
    Inliner x = {.model = model, .arena = arena, .err = err, .most = MOST_MORE + (int64_t)model->graph->nodes.len};
    bool all = true;
    for (int i = 0; i < model->functions.len; i++) {
        OnnxFunction *f = &model->functions.data[i];
        if (same_opsets(&x, f)) table_set(arena, &x.functions, key_of(arena, f->domain, f->name, f->overload), f);
        else all = false;
    }
    if (!x.functions.entries.len) return AMP_OK;
    collect_names(&x, model->graph);
    OnnxNodes nodes = {NULL, 0, 0};
    AMP_TRY(expand(&x, &model->graph->nodes, NULL, &nodes, model->graph, 0));
    model->graph->nodes = nodes;
    if (all) memset(&model->functions, 0, sizeof model->functions);
    return AMP_OK;
}
