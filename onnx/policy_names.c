/* policy_names.c: what each op of ONNX is for a policy: the rows of policy_names.def. */
#include <stdlib.h>

#include "onnx/deciding.h"

static const OnnxRow rows[] = {
#define NAME(op, names, traits) {#op, names, traits},
#include "onnx/policy_names.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

static int by_op(const void *op, const void *row) { return strcmp(op, ((const OnnxRow *)row)->op); }

const OnnxRow *onnx_row(const char *op) { return bsearch(op, rows, ROWS, sizeof *rows, by_op); }

bool onnx_has_trait(const OnnxRow *row, char trait) { return row && strchr(row->traits, trait); }

OnnxNamed onnx_named(Arena *a, const Policy *p, const char *names, int dims) {
    const PolicyLine *otherwise = policy_line(p, "*", NULL);
    OnnxNamed named = {NULL, otherwise, OP_NONE};
    for (const char *at = names; *at;) {
        const size_t length = strcspn(at, " ");
        char *name = arena_strndup(a, at, length);
        if (strchr(name, '#')) *strchr(name, '#') = (char)('0' + dims);
        const PolicyLine *line = policy_line(p, name, NULL);
        if (named.line == otherwise && (line != otherwise || !at[length])) {
            named.name = name;
            named.line = line;
        }
        named.code = ir_opcode(name);
        at += length + (at[length] == ' ');
    }
    return named;
}
