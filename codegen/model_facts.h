/* model_facts.h: what the descriptor tells of a module that no single field of the IR says. */
#ifndef AMP_CODEGEN_MODEL_FACTS_H
#define AMP_CODEGEN_MODEL_FACTS_H

#include "base/error.h"
#include "ir/ir.h"

typedef struct ModelInput {
    const Value *value;
    int kind;            /* AMP_INPUT_* */
    int64_t index_bound; /* > 0: classes or rows of a table, each in [0, bound) or equal to index_ignore */
    int64_t index_ignore;
} ModelInput;
typedef VEC(ModelInput) ModelInputs;

/* The inputs of all functions, once each: those of "infer" first, then those of "eval" and of the step, then the averages
 * that "metrics" reads.  AMP_UNSUPPORTED: see model_indexes. */
amp_status model_inputs(const Module *m, ModelInputs *out, amp_error *err);
int model_input_index(const ModelInputs *inputs, const char *name); /* -1: none */

/* index_facts.c: fills the bounds of inputs that are used as indexes.  AMP_UNSUPPORTED where an embedding's ids are
 * computed, so that a check of inputs says nothing about them. */
amp_status model_indexes(const Module *m, ModelInputs *inputs, amp_error *err);

/* An initialiser with its arguments by position, in the order of the language's reference. */
typedef struct ModelInit {
    const char *name; /* NULL: zeros */
    int count;
    double args[4];
} ModelInit;
bool model_init(const Call *c, ModelInit *out); /* false: an initialiser or argument that is not known */

/* Whether the step scales its loss: then it has the result "ok". */
bool model_is_scaled(const Module *m);

#endif
