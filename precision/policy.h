/* policy.h: policy files: which op runs in which precision.  docs/policies.md is the reference.
 *
 *     policy "torch-fp16"
 *     version 2.12
 *     algorithm eager
 *     low = f16
 *     op matmul, linear     lower
 *     op *                  follow
 */
#ifndef AMP_PRECISION_POLICY_H
#define AMP_PRECISION_POLICY_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum PolicyClass {
    POLICY_LOWER,
    POLICY_F32_OUT,
    POLICY_F32,
    POLICY_WIDEST,
    POLICY_FIRST,
    POLICY_FOLLOW,
    POLICY_BANNED,
    POLICY_ALLOW, /* from here on of algorithm `paint`: PaintList */
    POLICY_INFER,
    POLICY_DENY,
    POLICY_CLEAR,
    POLICY_NONE,
    POLICY_CLASS_COUNT
} PolicyClass;
extern const char *const policy_class_words[POLICY_CLASS_COUNT];
/* false: |word| is no class. */
bool policy_class_of(const char *word, PolicyClass *out);

typedef enum PolicyAlgorithm { ALGORITHM_EAGER, ALGORITHM_PAINT, ALGORITHM_MIN_CUT, ALGORITHM_COUNT } PolicyAlgorithm;
extern const char *const policy_algorithm_words[ALGORITHM_COUNT];

typedef struct PolicyLine { /* op LIST CLASS */
    PolicyClass op_class;
    int line;
    const char *text; /* as written, without comment */
    Loc class_loc;
} PolicyLine;

typedef struct PolicyEntry { /* one name of a list */
    const char *name;        /* "softmax", "cross_entropy", "cross_entropy.log_softmax" or "*" */
    const PolicyLine *line;
    Loc loc;
} PolicyEntry;

typedef struct Policy {
    const Source *source;
    char sha256[65]; /* of the text */
    const char *name;
    PolicyAlgorithm algorithm;
    const char *version;   /* of what it describes: "2.12"; NULL: it says none */
    Dtype low;             /* f16, bf16, tf32 or f32 */
    Call masters, moments; /* as in a Module, where the model does not say: of a system that keeps them so */
    Dtype reduce;          /* likewise; NONE: it says nothing */
    Pos reduce_pos;
    VEC(PolicyEntry) entries;
} Policy;

/* NULL when the text has errors, which are in |d|. */
const Policy *policy_read(Arena *a, Diags *d, const Source *text);

/* The line for an op: the most specific of layer.op, layer, op and *.  Never NULL: every policy has a line for *. */
const PolicyLine *policy_line(const Policy *p, const char *op, const char *layer);

/* The line for an op of a function.  Under algorithm `paint` an op that no model names has its own line, else the
 * line of the op that it is the gradient or another form of: conv2d's for conv2d_weight_grad, batch_norm's for
 * batch_norm_eval. */
const PolicyLine *policy_line_of(const Policy *p, Opcode code, const char *layer);
/* The same of an op of the backward pass.  A layer's line speaks of its forward op, so here the op's own comes first:
 * the additions and reshapes in the gradient of a linear layer are no products. */
const PolicyLine *policy_line_of_gradient(const Policy *p, Opcode code, const char *layer);

/* Whether a policy of this algorithm may give the class. */
bool policy_class_fits(PolicyClass op_class, PolicyAlgorithm algorithm);

/* Whether |pattern| ("softmax", "cross_entropy", "cross_entropy.log_softmax") names the op. */
bool policy_names_op(const char *pattern, const char *op, const char *layer);
/* Ops, layers and other names that a policy or an override may use. */
const char *const *policy_op_names(Arena *a, int *count);
/* Whether |pattern| names an op, a layer or layer.op of the language; if not, |nearest| (may be NULL) is the closest
 * name, or NULL. */
bool policy_knows(Arena *a, const char *pattern, const char **nearest);
/* Whether |name| is an op that the language lacks and other systems list (foreign_ops.def): of policy files alone. */
bool policy_is_foreign(const char *name);
/* The one whose name is the most like |word|, or NULL. */
const char *policy_nearest_foreign(const char *word);

/* The built-in policy of a precision that names none, by its low type: "min-cast" for f16. */
const char *policy_default(Dtype low);

/* The text of a built-in policy ("torch-fp16": the newest; "torch-fp16@2.11", "torch-fp16@2.12"), or NULL. */
const Source *policy_builtin(Arena *a, const char *name);
/* Of "torch-fp16@2.9": "2.12, 2.11"; empty where the policy is not built in, has none, or none is named. */
const char *policy_versions_beside(Arena *a, const char *name);

/* ---- the built-in policies --------------------------------------------------------------------------------------- */

/* Made from policies/ by embed.sh when the library is built. */
typedef struct PolicyFile {
    const char *name, *file_name; /* "torch-fp16", "torch-fp16.policy"; "torch-fp16@2.11", .. */
    const char *version;          /* "2.12"; "": it has none */
    const char *text;
} PolicyFile;

extern const PolicyFile policy_files[];
extern const int policy_file_count;

#ifdef __cplusplus
}
#endif

#endif
