/* onnx_autocast.h: one call of amp_onnx_autocast.
 *   onnx_autocast.c  reads, decides, rewrites, writes
 *   onnx_counts.c    casts, weights and bytes before and after
 *   onnx_report.c    what is told: text, JSON and HTML
 *   onnx_compare.c   what differs between two models */
#ifndef AMP_COMPILER_ONNX_AUTOCAST_H
#define AMP_COMPILER_ONNX_AUTOCAST_H

#include "amp/onnx.h"
#include "base/text.h"
#include "compiler/compile_session.h"
#include "onnx/decide.h"
#include "onnx/inline.h"
#include "onnx/onnx.h"
#include "onnx/opset.h"
#include "onnx/ranges.h"
#include "onnx/rewrite.h"
#include "onnx/types.h"

typedef struct Autocast {
    const char *name; /* of the model's file */
    const amp_onnx_options *options;
    const Policy *policy;
    int low;     /* OnnxDtype */
    Arena arena; /* of all that follows */
    OnnxModel model;
    OnnxIndex index; /* of the model as it was read */
    OnnxSolution solution;
    OnnxMagnitude *ranges; /* by value */
    OnnxLoss *losses;      /* the same, of weights */
    OnnxDecisions decisions;
    bool *is_copied; /* by value: it is cast to the low type */
    amp_onnx_counts counts;
    int64_t unknown_ranges; /* names of the ranges' file that no value has */
    int64_t unknown_sizes;  /* operands whose bytes are not counted */
} Autocast;

/* ---- onnx_autocast.c --------------------------------------------------------------------------------------------- */

/* Index, with functions put in, and types of the model that was read. */
amp_status autocast_solve(Autocast *a, Arena *arena, amp_error *err);
/* Reads and checks options into |o|, and calls |work_it|. */
amp_status autocast_call(const char *name, const char *model, const amp_onnx_options *given, amp_onnx_options *o,
                         SessionRun *work_it, const void *arguments, amp_compile_result **out, amp_error *err);

/* ---- onnx_counts.c ----------------------------------------------------------------------------------------------- */

void autocast_count(Autocast *a); /* before anything is rewritten: nodes, casts, bytes that are moved */
bool autocast_is_cast(const Autocast *a, int32_t node); /* between float types */
int64_t autocast_weight_bytes(const Autocast *a);
/* Converted weights and what they lose, after the rewriting. */
void autocast_count_weights(Autocast *a);
bool autocast_is_converted(const Autocast *a, int32_t value);

/* ---- onnx_report.c ----------------------------------------------------------------------------------------------- */

typedef struct ReasonGroup { /* nodes with the same answer for the same reason */
    const OnnxDecision *like;
    int64_t nodes;
} ReasonGroup;
typedef VEC(ReasonGroup) ReasonGroups;

void autocast_tell_bytes(Text *t, double bytes); /* "12.5 MB" */
ReasonGroups autocast_groups(Autocast *a);       /* the largest first */
void autocast_as_text(Autocast *a, Text *t);
amp_status autocast_as_json(Autocast *a, Text *t, amp_error *err);
amp_status autocast_as_html(Autocast *a, Text *t, amp_error *err);
/* "float16"; what a decision comes to. */
const char *autocast_type_of(const Autocast *a, const OnnxDecision *d);

#endif
