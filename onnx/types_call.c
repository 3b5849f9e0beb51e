/* types_call.c: calls of local functions: the body is solved once for each combination of types that calls have. */
#include <string.h>

#include "onnx/solve.h"

enum { DEEPEST_CALL = 100 };

/* What the types of the results depend on: the function, the types of the inputs and the attributes. */
static const char *call_key(OnnxSolver *s, int32_t node, int32_t body) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    Text t;
    text_init(&t, s->arena);
    text_printf(&t, "%d", (int)body);
    for (int i = 0; i < e->node->inputs.len; i++) {
        int32_t v = s->index->operands[e->first_input + i];
        OnnxValueType type = v == ONNX_NONE ? (OnnxValueType){.kind = 0} : s->out->types[v];
        text_printf(&t, " %d.%d.%d", type.kind, type.dtype, type.key);
    }
    for (int i = 0; i < e->node->attributes.len; i++) {
        const char *name = e->node->attributes.data[i].name;
        const OnnxAttribute *a = onnx_solver_attribute(s, e->node, name);
        if (a && a->type == ONNX_ATTR_INT) text_printf(&t, " %s=%lld", name, (long long)a->i);
        else text_printf(&t, " %s@%p", name, (const void *)a);
    }
    return text_str(&t);
}

static amp_status solve_body(OnnxSolver *s, int32_t node, int32_t body) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    const OnnxGraphEntry *g = &s->index->graphs[body];
    OnnxCall call = {e->node, g->function, s->call, s->call ? s->call->depth + 1 : 1};
    if (call.depth > DEEPEST_CALL)
        return onnx_node_fail(s, AMP_UNSUPPORTED, node, "calls of local functions are more than %d deep", DEEPEST_CALL);
    for (int i = 0; i < g->input_count; i++) {
        int32_t from = i < e->node->inputs.len ? s->index->operands[e->first_input + i] : ONNX_NONE;
        s->out->types[s->index->operands[g->first_input + i]] =
            from == ONNX_NONE ? (OnnxValueType){.kind = 0} : s->out->types[from];
    }
    s->call = &call;
    amp_status status = onnx_solve_graph(s, body);
    s->call = call.around;
    return status;
}

static const OnnxValueType *results_of(OnnxSolver *s, int32_t body) {
    const OnnxGraphEntry *g = &s->index->graphs[body];
    OnnxValueType *types = arena_array(s->arena, OnnxValueType, g->output_count + 1);
    for (int i = 0; i < g->output_count; i++) {
        int32_t v = s->index->operands[g->first_output + i];
        if (v != ONNX_NONE) types[i] = s->out->types[v];
    }
    return types;
}

amp_status onnx_type_call(OnnxSolver *s, int32_t node) {
    const OnnxNodeEntry *e = &s->index->nodes[node];
    int32_t body = 1 + e->function;
    const OnnxGraphEntry *g = &s->index->graphs[body];
    if (e->node->inputs.len > g->input_count || e->node->outputs.len > g->output_count)
        return onnx_node_fail(s, AMP_BAD_FILE, node,
                              "it has %d inputs and %d outputs, and the local function %d and %d", e->node->inputs.len,
                              e->node->outputs.len, g->input_count, g->output_count);
    const char *key = call_key(s, node, body);
    const OnnxValueType *types = table_get(&s->calls, key);
    if (!types) {
        s->differs[body] |= s->called[body];
        s->called[body] = true;
        AMP_TRY(solve_body(s, node, body));
        table_set(s->arena, &s->calls, key, (void *)(types = results_of(s, body)));
    }
    for (int i = 0; i < e->node->outputs.len; i++) {
        int32_t v = s->index->operands[e->first_output + i];
        if (v == ONNX_NONE) continue;
        if (types[i].kind) AMP_TRY(onnx_set_type(s, node, v, types[i]));
        else AMP_TRY(onnx_type_by_statement(s, node, v));
    }
    return AMP_OK;
}
