/* descriptor.h: the descriptor of amp/model_abi.h as C text.
 *   descriptor.c    the whole; what no target makes: inputs, training, decisions
 *   table_rows.c    rows that each target's tables have: states, buffers, results
 *   model_facts.c   what the descriptor holds and no single field of the IR does
 *   cpu/cpu_kernels.c, cuda/launch/cuda_tables.c   kernels and programs of a target
 */
#ifndef AMP_CODEGEN_DESCRIPTOR_H
#define AMP_CODEGEN_DESCRIPTOR_H

#include "base/text.h"
#include "codegen/codegen.h"

/* The C function of every kernel of the CPU: kernels with equal bodies share one function. */
typedef struct KernelName {
    const Kernel *kernel;
    const char *function; /* "train_step_k03" */
    bool first;           /* the first one that has it */
} KernelName;
typedef VEC(KernelName) KernelNames;

/* descriptor.c: the tables of a module after plan; |cuda| NULL: for the CPU alone.  |no_ir|: without the IR's text. */
amp_status descriptor_emit(const Module *m, const KernelNames *names, const CodegenCuda *cuda, bool no_ir, Text *out,
                           amp_error *err);

/* ---- model_facts.c ----------------------------------------------------------------------------------------------- */

typedef struct ModelInput {
    const Value *value;
    int kind;            /* AMP_INPUT_* */
    int64_t index_bound; /* > 0: classes or rows of a table, each in [0, bound) or equal to index_ignore */
    int64_t index_ignore;
} ModelInput;
typedef VEC(ModelInput) ModelInputs;

/* The inputs of all functions, once each: first the inputs of "infer", then of "eval" and of the step, then the
 * averages that "metrics" reads; inputs that are used as indexes have their bounds.  AMP_UNSUPPORTED if an embedding's
 * ids are computed, because a check of inputs says nothing about them. */
amp_status model_inputs(const Module *m, ModelInputs *out, amp_error *err);
int model_input_index(const ModelInputs *inputs, const char *name); /* -1: none */

/* An initialiser with its arguments by position, in the order of the language's reference. */
typedef struct ModelInit {
    const char *name; /* NULL: zeros */
    int count;
    double args[4];
} ModelInit;
bool model_init(const Call *c, ModelInit *out); /* false: an initialiser or argument that is not known */

/* The decision of the op that makes it; -1: none. */
int model_decision_of(const Module *m, const Func *f, Val v);
/* By value: an op of the forward pass divides by it, or by its root, or takes its logarithm. */
bool *model_divisors(const Func *f);
/* Whether the step scales its loss: then it has the result "ok". */
bool model_is_scaled(const Module *m);

/* ---- rows of tables ---------------------------------------------------------------------------------------------- */

typedef struct TableWriter {
    const Module *m;
    Text *t;
    amp_error *err;
    const char *prefix; /* of the names of arrays: "", "cuda_" */
    ModelInputs inputs;
    Table states; /* by name: 1 + index in the table of states */
    Table dims;   /* of buffers, by their text: the name of their array */
    int dims_count;
} TableWriter;

void table_put_dim(Text *t, Dim d);
void table_put_dims(Text *t, const Shape *s);
/* `.field = "value", `; 0 for NULL */
void table_put_field(Text *t, const char *field, const char *value);
/* A table's row in its owner; an empty table has no array. */
void table_put(Text *t, const char *field, const char *type, const char *array, int count);
/* `static const uint32_t name[] = {..};`; nothing where there are none */
void table_put_numbers(Text *t, const char *name, const uint32_t *numbers, int count);
/* "train_step", with the prefix */
const char *table_func_name(const TableWriter *x, const Func *f);
int table_state_index(const TableWriter *x, const char *name); /* AMP_MODEL_NONE where |name| is NULL or no state's */
/* `static const amp_model_state states[] = {..};` */
amp_status table_put_states(TableWriter *x);
/* |position|: of each kernel of the function in its table; NULL: its own index. */
void table_put_buffers(TableWriter *x, const Func *f, const int *position);
amp_status table_put_results(TableWriter *x, const Func *f);
/* Its row of programs, which names these tables and the table of its kernels. */
void table_put_program(TableWriter *x, const Func *f, const char *kernel_type, int kernels);

/* collectives.c: the module's collectives; how many there are. */
int table_put_collectives(TableWriter *x);

#endif
