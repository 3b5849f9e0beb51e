/* lint.h: what a model's precision makes slow or unsafe, found in its graph.
 *   lint.c     the table of checks, and running them
 *   check.h    what a check is made of
 *   padding.c  what `pad = true` would cost
 *   findings.c findings that say the same of several ops become one; which are left out
 *   report.c   text for people, JSON for tools
 * A check only states what follows from the graph, the kernels and the bounds that it names. */
#ifndef AMP_COMPILER_LINT_LINT_H
#define AMP_COMPILER_LINT_LINT_H

#include "base/error.h"
#include "base/text.h"
#include "codegen/codegen.h"
#include "ir/ir.h"

/* Of the kernels of a step for CUDA. */
typedef struct LintSizes {
    double bytes; /* of temporaries and of copies of weights */
    int kernels;
} LintSizes;
LintSizes lint_sizes(const Module *planned, int64_t batch); /* NULL: 0 */

typedef struct LintInput {
    const Module *m;             /* after simplify */
    const Func *const *funcs;    /* of it: what a step runs, else infer; NULL after the last */
    const CodegenCopies *copies; /* of its kernels for CUDA; NULL: those are not looked at */
    const CodegenCopies *padded; /* the same with `pad = true`; NULL: it is there, or nothing needs it */
    LintSizes sizes, padded_sizes;
    int64_t batch;      /* what stands for N */
    const char *device; /* on which a step takes so long, in the model's types and in f32; NULL: nobody knows */
    double microseconds, microseconds_f32;
    /* The text of a file that |Pos.file| names; NULL: it is not there. */
    const Source *(*find_source)(void *user, const char *file);
    void *user;
} LintInput;

typedef VEC(const char *) LintPaths;

typedef struct Finding {
    const char *id; /* "sum-overflow" */
    Pos pos;
    LintPaths paths;     /* ops that it is said of */
    const char *text;    /* what is wrong */
    const char *word;    /* what a line of the precision block says of the ops: "f32", "low"; NULL: none helps */
    const char *setting; /* a line that says nothing of ops: "pad = true"; or NULL */
    const char *help;    /* what to do, or what that line brings; NULL: nothing more */
    const char *pattern; /* of all |paths|, for the line */
} Finding;
typedef VEC(Finding) Findings;

/* Findings in the order of the text; none that a line's comment "# lint: allow ID" or one of |allow| leaves out: "ID",
 * or "ID:GLOB" for paths. */
Findings lint_run(const LintInput *in, const char *const *allow, size_t allow_count);
/* Whether each of |allow| begins with the id of a check; else AMP_INVALID_ARGUMENT, and which there are. */
amp_status lint_check_allow(Arena *a, const char *const *allow, size_t count, amp_error *err);

/* Names and one sentence of each check, in order; NULL past the end. */
const char *lint_id(int index);
const char *lint_doc(int index);

/* As compilers print warnings, and a line that counts them. */
void lint_as_text(Text *t, const LintInput *in, const Findings *list);
amp_status lint_as_json(Text *t, const LintInput *in, const Findings *list, amp_error *err);

#endif
