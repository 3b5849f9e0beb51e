/* explain.h: what the files of amp_explain share.
 *   explain.c         the calls
 *   explain_source.c  finds the modules: compiled from source, or read out of a model.so
 *   explain_select.c  which ops are asked for, and in what order they are told
 *   explain_facts.c   what the modules tell about one op
 *   explain_fold.c    which of them are told of once, for the repetitions of a loop
 *   explain_text.c    text for people
 *   explain_json.c    JSON for tools; every op of the graph
 *   explain_params.c  how each parameter is trained
 *   explain_graph.c   the ops as a graph by blocks (explain_graph.h); explain_dot.c draws it for Graphviz
 *   explain_programs.c  kernels and buffers
 *   explain_report.c  JSON in a page (report/)
 */
#ifndef AMP_COMPILER_EXPLAIN_H
#define AMP_COMPILER_EXPLAIN_H

#include "amp/compile.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "compiler/casts.h"
#include "compiler/compile_session.h"
#include "compiler/tensor_cores.h"
#include "ir/ir.h"

typedef VEC(int) ExplainNumbers;

/* ---- the modules (explain_source.c) ------------------------------------------------------------------------------ */

typedef struct ExplainSource {
    const char *name;      /* of the file: "mlp.amp" */
    const Module *m;       /* after plan, for the CPU */
    const Module *graph;   /* after simplify, as the ops that a person knows; NULL: IR of a later stage that lost it */
    const Module *cuda;    /* after plan, for CUDA; NULL: there is no machine code to tell of */
    const char *cuda_uses; /* the lines of AMP_MODEL_CUDA_USES_SECTION */
    TensorCores cores;     /* explain_open_cores; none before */
} ExplainSource;

/* Opens the session and compiles, or reads, what is to be explained; it lives as long as the session. */
amp_status explain_open(Session *s, ExplainSource *out, amp_error *err);
/* And which products tensor cores make on CUDA; unknown for a model.so without CUDA code and for IR that lost its
 * graph. */
amp_status explain_open_cores(Session *s, ExplainSource *x, amp_error *err);

/* ---- which ops (explain_select.c) -------------------------------------------------------------------------------- */

typedef struct ExplainSelection {
    amp_explain_options want; /* path, dtype, op, rule */
    bool all;                 /* none of them is given */
    Table paths;              /* of the ops that are selected; empty where all are */
} ExplainSelection;

/* Checks the options and puts 32 in place of batch 0.  |from| NULL: the defaults.  AMP_INVALID_ARGUMENT. */
amp_status explain_read_options(const amp_explain_options *from, amp_explain_options *out, amp_error *err);
/* The ops that |want| names, of one or two modules.  AMP_NOT_FOUND: none, and what there is. */
amp_status explain_select(const amp_explain_options *want, const ExplainSource *const *sources, int count,
                          ExplainSelection *out, amp_error *err);
bool explain_selects(const ExplainSelection *s, const char *path); /* an op of the forward graph */
bool explain_selects_cast(const ExplainSelection *s, const Cast *c);
bool explain_selects_row(const ExplainSelection *s, const Func *f, const Op *o); /* any op of the step */
bool explain_selects_param(const ExplainSelection *s, const char *name);

/* ---- facts (explain_facts.c) ------------------------------------------------------------------------------------- */

typedef struct ExplainUse { /* of a kernel, for an architecture */
    char arch[16];          /* "sm_90" */
    int registers, shared_bytes, spill_bytes, stack_bytes;
} ExplainUse;
typedef VEC(ExplainUse) ExplainUses;

/* Where to find what is told about an op. */
typedef struct ExplainFacts {
    const Module *m;
    const Func *f;      /* the function that has the most to tell: the step, else infer; NULL: none */
    const Func *cuda;   /* the same for CUDA */
    Table kernels;      /* path -> ExplainNumbers: kernels of |f| that run something that came from it */
    Table cuda_kernels; /* the same of |cuda| */
    Table uses;         /* name of a kernel of |cuda| -> ExplainUses */
    Table casts;        /* "value type" -> kernels that cast the value to it */
    Table copies;       /* "parameter type" -> states */
    Table removed;      /* path -> of m->removed: roundings that were removed from gradients of the op */
    Table cores;        /* path of the forward pass -> of |cores.copies| */
    Table narrow;       /* the same -> of |narrow_sizes| */
    const TensorCores *tensor_cores;
    NarrowSizes narrow_sizes;
    Table layer_of;       /* path of an op that only keeps statistics -> path of its layer's op */
    Table keepers;        /* path of a layer's op -> of m->decisions: those ops */
    Casts graph_casts;    /* all of the step; none where the graph is lost */
    Table casts_of_value; /* "value type" -> the first of graph_casts */
    Table casts_of_asker; /* path -> of graph_casts */
} ExplainFacts;
ExplainFacts explain_facts(const ExplainSource *s);
const ExplainNumbers *explain_kernels(const ExplainFacts *x, const char *path);
const ExplainNumbers *explain_cuda_kernels(const ExplainFacts *x, const char *path);
const ExplainUses *explain_uses(const ExplainFacts *x, const Kernel *k); /* |k| of |cuda| */
const ExplainNumbers *explain_removed(const ExplainFacts *x, const char *path);

/* Whether tensor cores make the products of an op, on CUDA. */
typedef enum CoresKind { CORES_UNKNOWN, CORES_NO_PRODUCT, CORES_YES, CORES_FULL_PRECISION, CORES_NO } CoresKind;
CoresKind explain_cores(const ExplainFacts *x, const Decision *d);
const char *explain_cores_why(CoresKind kind); /* why not; NULL: nothing is against it */
const ExplainNumbers *explain_narrow(const ExplainFacts *x, const char *path); /* of narrow_sizes */

/* Where the op is told of: "bn1.batch_norm" of "bn1.mul"; NULL: by itself. */
const char *explain_layer_of(const ExplainFacts *x, const char *path);
const ExplainNumbers *explain_keepers(const ExplainFacts *x, const char *path); /* of m->decisions */

const Cast *explain_cast_of(const ExplainFacts *x, const CastNote *note); /* NULL: the graph has none any more */
const ExplainNumbers *explain_casts_for(const ExplainFacts *x, const char *path); /* of graph_casts */

/* Where and how often a cast happens. */
typedef enum CastPlaceKind {
    PLACE_UNKNOWN,
    PLACE_STATE,  /* a weight's copy in a low precision is a state of its own */
    PLACE_KERNEL, /* that does nothing else */
    PLACE_FUSED,
    PLACE_NOWHERE
} CastPlaceKind;
typedef struct CastPlace {
    CastPlaceKind kind;
    const char *kernel; /* KERNEL, FUSED */
} CastPlace;
CastPlace explain_place(const ExplainFacts *x, const Cast *c);
CastPlace explain_note_place(const ExplainFacts *x, const Decision *d, const CastNote *note);
const char *explain_place_text(const ExplainFacts *x, CastPlace place); /* NULL: unknown; no kernel: of several */
/* Of the casts that are selected. */
CastTotals explain_cast_totals(const ExplainFacts *x, const ExplainSelection *which);

/* ---- what is told (explain_select.c) ----------------------------------------------------------------------------- */

/* Of m->decisions, those that are selected, in the order of the model.  |fold|: without those that are told with their
 * layer. */
ExplainNumbers explain_selected(const ExplainFacts *x, const ExplainSelection *which, bool fold);
/* The same in the order that is asked for. */
ExplainNumbers explain_told(const ExplainFacts *x, const ExplainSelection *which, bool fold);
/* Of graph_casts. */
ExplainNumbers explain_told_casts(const ExplainFacts *x, const ExplainSelection *which);

/* ---- repetitions (explain_fold.c) -------------------------------------------------------------------------------- */

/* Ops of one line of the model that differ in the numbers of their paths, and of whose text nothing else differs. */
typedef struct ExplainGroup {
    const char *name;   /* a glob that matches all: "h.*.mlp.fc"; of one op, its path */
    ExplainNumbers ops; /* of m->decisions */
} ExplainGroup;
typedef VEC(ExplainGroup *) ExplainGroups;
/* In the order of their first ops.  |each|: each op by itself. */
ExplainGroups explain_groups(const ExplainFacts *x, const ExplainNumbers *told, bool each);

/* A glob for both: |name|, a path or what this made of some, and another path of the same key (text_path_key). */
const char *explain_join_names(Arena *a, const char *name, const char *path);
/* |path| of what an op of a group named |group| refers to, named as the group is: "h.*.add_1" where that is "h.*.mul",
 * "lstm.add*" where it is "lstm.mul*". */
const char *explain_name_like(Arena *a, const char *group, const char *path);

/* Lines; those with an equal pattern are printed once, with their number: pattern -> FoldedLine. */
typedef struct FoldedLine {
    const char *text;
    int count;
} FoldedLine;
void explain_fold_line(Arena *a, Table *lines, const char *pattern, const char *text);
void explain_tell_lines(Text *t, const char *title, const Table *lines); /* nothing where there are none */

/* ---- reports ----------------------------------------------------------------------------------------------------- */

void explain_as_text(Text *t, const ExplainSource *s, const ExplainSelection *which);
/* Prints an op, or the ops of a group; for a group that is still empty, what its ops must have in common. */
void explain_tell_decision(Text *t, const ExplainFacts *x, const Decision *d, const ExplainGroup *group);
/* ", masters f16(rounding = nearest)"; nothing where they are f32. */
void explain_tell_state_type(Text *t, const char *what, const Call *type);
/* Policy, low type, types of states; |file|: the policy's, told where it is not named after it; or NULL. */
void explain_tell_precision(Text *t, const Module *m, const char *file);
/* Kernels and buffers of a step, of each target (explain_programs.c). */
void explain_put_programs(amp_json_writer *w, const ExplainSource *s);
/* The JSON without rows, "batch" and "sources" in their place, inside of a page (explain_report.c). */
amp_status explain_as_report(Text *t, Session *session, const ExplainSource *s, const ExplainSelection *which,
                             amp_error *err);
amp_status explain_as_json(Text *t, const ExplainSource *s, const ExplainSelection *which, amp_error *err);

/* What comparisons say in the same words. */
void explain_tell_reason(Text *t, const Module *m, const Decision *d); /* one line, without its end */
/* A line for each pair of dtypes, and one for all. */
void explain_tell_totals(Text *t, Arena *a, const CastTotals *totals);
void explain_put_place(amp_json_writer *w, Pos pos);           /* file, line, column */
void explain_put_types(amp_json_writer *w, const Decision *d); /* dtype, operands */
void explain_put_reason(amp_json_writer *w, Arena *a, const Decision *d);
void explain_put_cast(amp_json_writer *w, const ExplainFacts *x, const Cast *c);
void explain_put_totals(amp_json_writer *w, const char *key, Arena *a, const CastTotals *totals);
/* The members of a report but for the rows. */
void explain_put_members(amp_json_writer *w, const ExplainSource *s, const ExplainSelection *which);
/* JSON that |put| writes into one object, as text. */
amp_status explain_json_text(Text *t, Arena *a, void (*put)(amp_json_writer *w, const void *of), const void *of,
                             amp_error *err);

/* The parameters that are selected: train block, groups, what these set.  As text only where there are groups, or
 * blocks for some parameters. */
void explain_params_as_text(Text *t, const Module *m, const ExplainSelection *which);
void explain_params_as_json(amp_json_writer *w, const Module *m, const ExplainSelection *which);

#endif
