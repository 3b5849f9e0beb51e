/* amp/analyze.h: what an editor shows of a model: what is wrong with its text, as data; what each name means; the shape
 * and dtype of each value, and why it has them.
 *
 *     amp_compile_options model = {.struct_size = sizeof model, .name = "mlp.amp", .text = text, .text_size = size};
 *     amp_analysis *analysis;
 *     amp_analyze(&model, NULL, &analysis, &err);
 *     for (size_t i = 0; i < analysis->diagnostic_count; i++) puts(analysis->diagnostics[i].text);
 *     amp_analysis_release(analysis);
 *
 * Nothing is compiled: it ends with the dtypes, or where it is asked to with the passes that know no target.  A text
 * with errors is analysed too: its names are found as far as it can be read, and what was wrong is in |diagnostics|.
 */
#ifndef AMP_ANALYZE_H
#define AMP_ANALYZE_H

#include "amp/compile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A file, or a text that stands for it. */
typedef struct amp_source_text {
    const char *name, *text; /* UTF-8, |size| bytes */
    size_t size;
} amp_source_text;

typedef struct amp_analyze_options {
    size_t struct_size;
    const amp_source_text *open; /* read in place of the files of these names, which the model includes */
    size_t open_count;
    int32_t all_passes; /* not 0: also what later passes find wrong, which takes longer */
} amp_analyze_options;

/* Bytes begin .. end - 1 of a file; |file| -1: nowhere. */
typedef struct amp_span {
    int32_t file; /* of amp_analysis.files */
    uint32_t begin, end;
} amp_span;

typedef enum amp_severity { AMP_SEVERITY_ERROR = 1, AMP_SEVERITY_WARNING = 2, AMP_SEVERITY_NOTE = 3 } amp_severity;

typedef struct amp_diagnostic_note {
    amp_span span; /* nowhere: |text| is what to do */
    const char *text;
} amp_diagnostic_note;

typedef struct amp_diagnostic {
    amp_severity severity;
    amp_span span; /* nowhere: of the whole model */
    const char *text;
    const amp_diagnostic_note *notes;
    size_t note_count;
} amp_diagnostic;

typedef enum amp_symbol_kind {
    AMP_SYMBOL_FILE = 0,
    AMP_SYMBOL_CONST = 1,
    AMP_SYMBOL_BLOCK = 2,
    AMP_SYMBOL_MODEL = 3,
    AMP_SYMBOL_TRAIN = 4,
    AMP_SYMBOL_PRECISION = 5,
    AMP_SYMBOL_INPUT = 6,      /* of a model or of train */
    AMP_SYMBOL_TENSOR = 7,     /* an argument of a block before ';' */
    AMP_SYMBOL_SETTING = 8,    /* one after it */
    AMP_SYMBOL_VALUE = 9,      /* a = ... */
    AMP_SYMBOL_PARAMETER = 10, /* param */
    AMP_SYMBOL_STATE = 11,
    AMP_SYMBOL_INDEX = 12,   /* of repeat */
    AMP_SYMBOL_METRIC = 13,  /* and a loss that has a name */
    AMP_SYMBOL_OP = 14,      /* built in */
    AMP_SYMBOL_FUNCTION = 15 /* built in: an initialiser, optimizer, schedule, loss scale or type of states */
} amp_symbol_kind;

typedef struct amp_symbol_argument { /* of a block, an op or a function */
    const char *name, *type;         /* "int"; NULL: a tensor */
    const char *initial;             /* as written, "" of what is built in; NULL: it has to be given */
} amp_symbol_argument;

/* What a name in its place declares; each binding of a name is one. */
typedef struct amp_symbol {
    amp_symbol_kind kind;
    int32_t parent; /* the declaration that it is in; -1: none */
    const char *name;
    amp_span span;     /* of the name; nowhere: built in */
    amp_span whole;    /* of the declaration, a block's body included */
    const char *about; /* the comment above a block, the formula of an op; NULL */
    const amp_symbol_argument *arguments;
    size_t argument_count;
    int32_t least, most;             /* tensors that an op takes */
    size_t first_value, value_count; /* of amp_analysis.values */
} amp_symbol;

typedef struct amp_reference {
    amp_span span;  /* of the name */
    amp_span whole; /* of the call, where it is what is called; else |span| */
    int32_t symbol;
} amp_reference;

/* What a name meant each time its line was elaborated. */
typedef struct amp_symbol_value {
    const char *type; /* "f16[N, 512]"; of a name that is no tensor "the int 512" */
    int32_t is_tensor;
    int32_t decision;  /* of the op that makes it; -1: none does */
    const char *casts; /* "f16 for fc1.linear", a line each: in which dtypes it is read; NULL: as it is */
} amp_symbol_value;

/* Why an op has its dtype. */
typedef struct amp_op_decision {
    amp_span span; /* where the call or operation begins */
    const char *path, *op;
    const char *layer;  /* that it is a part of; NULL */
    const char *types;  /* "f16 x f16 x f16 -> f16" */
    const char *shape;  /* of its first result, "[N, 512]"; NULL */
    const char *rule;   /* class of the policy, "lower" */
    const char *reason; /* the policy's file and line, its text, the neighbour that decided */
    amp_span override;  /* the line of the model's precision that decided; else nowhere */
} amp_op_decision;

typedef struct amp_analysis {
    const amp_source_text *files; /* the model, what it includes, policies with errors, and prelude.amp, the layers */
    size_t file_count;
    const amp_diagnostic *diagnostics;
    size_t diagnostic_count;
    const amp_symbol *symbols; /* of a declaration before those in it */
    size_t symbol_count;
    const amp_reference *references;
    size_t reference_count;
    const amp_symbol_value *values;
    size_t value_count;
    const amp_op_decision *decisions;
    size_t decision_count;
    int32_t prelude;     /* of |files| */
    int32_t is_complete; /* not 0: values and decisions are there; 0: errors kept them away, or there is no model */
} amp_analysis;

/* |options| takes name, text, precision, policy, defines, max_ops, overrides, no_files and allocator.  |which| may be
 * NULL.  A model that is refused is no error: see |diagnostics|.  AMP_NOT_FOUND and AMP_IO: of the file |name|, where
 * no text is given; AMP_UNSUPPORTED: it is IR or a model.so; AMP_OUT_OF_MEMORY, AMP_INVALID_ARGUMENT.  The caller
 * releases the analysis, to which everything in it belongs; any number of threads may read it. */
AMP_API AMP_MUST_USE amp_status amp_analyze(const amp_compile_options *options, const amp_analyze_options *which,
                                            amp_analysis **out, amp_error *err);
AMP_API void amp_analysis_release(amp_analysis *analysis); /* NULL is a no-op */

#ifdef __cplusplus
}
#endif
#endif
