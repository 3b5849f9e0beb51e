// print_ops.cc: prints what //onnx knows of each op at each opset, for tests/checks/full/onnx_ops.py.
#include <cstdio>
#include <cstring>

#include "onnx/schema.h"

static void print_params(const OnnxSchema *s, const OnnxParam *params, int count) {
    for (int i = 0; i < count; i++) {
        const OnnxParam &p = params[i];
        printf("%s%s%s", i ? " " : "", p.variable < 0 ? onnx_dtype_name(p.dtype) : s->variable[p.variable].name,
               p.optional     ? "?"
               : p.mixed      ? "**"
               : p.any_number ? "*"
                              : "");
    }
}

// domain;op;opset;since;inputs;outputs;T=word of each kind,..;...
static void print_schema(const char *domain, const OnnxSchema *s, int opset) {
    printf("%s;%s;%d;%d;", domain, s->op, opset, s->since);
    print_params(s, s->input, s->inputs);
    printf(";");
    print_params(s, s->output, s->outputs);
    for (int i = 0; i < s->variables; i++) {
        printf(";%s=", s->variable[i].name);
        for (int kind = 1; kind < ONNX_KINDS; kind++)
            printf("%s%u", kind > 1 ? "," : "", s->variable[i].allowed.of[kind]);
    }
    printf("\n");
}

int main() {
    Arena arena;
    arena_init(&arena, nullptr);
    OnnxSchemas s;
    onnx_schemas_init(&s, &arena);
    for (int i = 0; i < s.ops.entries.len; i++) {
        char domain[64];
        snprintf(domain, sizeof domain, "%s", s.ops.entries.data[i].key);
        char *colon = strchr(domain, ':');
        *colon = 0;
        for (int opset = *domain ? 1 : ONNX_OLDEST_OPSET; opset <= ONNX_NEWEST_OPSET; opset++)
            if (const OnnxSchema *schema = onnx_schema(&s, domain, colon + 1, opset))
                print_schema(domain, schema, opset);
    }
    arena_free(&arena);
}
