/* passes.h: the passes, and the table that runs them.
 *
 * A pass takes a verified module of the stage before it and leaves a verified module of its own stage.  What a user can
 * get wrong (policy, overrides) is reported in the diagnostics; every other failure is a bug, and the verifier, which
 * runs after each pass, names it.
 */
#ifndef AMP_PASSES_PASSES_H
#define AMP_PASSES_PASSES_H

#include "ir/kernel_facts.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PASSES_BATCH_HINT = 32 };

typedef struct PassOptions {
    /* precision; NULL: as the model says */
    const char *precision; /* "fp16", "bf16", "tf32", "fp32" */
    const char *policy;    /* built-in name or file */
    /* Finds the text of a policy by built-in name or file name, relative to the model; the source lives as long as the
     * module.  NULL when absent. */
    const Source *(*find_policy)(void *user, const char *name);
    /* Called before each pass; any result but AMP_OK ends the run.  May be NULL. */
    amp_status (*begin)(void *user, Stage stage, amp_error *err);
    void *user;
    int64_t batch_hint; /* the batch for which a policy of algorithm `min_cut` counts bytes; 0: the module's, else
                           PASSES_BATCH_HINT */
    bool without[STAGE_COUNT]; /* passes to leave out, which their rows must allow */
    DescribeKernels describe;  /* of the target's code generation; NULL: every kernel has a launch of its own */
    int kernel_ops;            /* the most ops of a kernel, for tests, whose models are small; 0: KERNEL_MAX_OPS */
    /* NULL: the first of targets/.  A module that is past stage target keeps its own. */
    const struct Target *target;
} PassOptions;

typedef struct PassContext {
    Module *m;
    Diags *diags;
    const PassOptions *options;
    KernelFacts **facts; /* launch: by function, once they are known; else NULL */
} PassContext;

/* The policy of a compilation: from the options, else from the model, else of full precision.  NULL: the errors are in
 * the diagnostics.
 *   --policy P       a built-in policy's name or a file; with --precision X too, X must agree with its low type
 *   --precision X    fp16, bf16, tf32 or fp32: the default policy of that word
 *   precision X {    the same, in the model; a string there is P */
const struct Policy *policy_select(PassContext *c);

/* false: errors are in the diagnostics. */
typedef bool (*PassFn)(PassContext *c);

/* One for each stage but elaborate, which is the front end's. */
#define STAGE(id, name, ...) bool pass_##name(PassContext *c);
#include "ir/stages.def"
#undef STAGE

/* What becomes of a pass that PassOptions.without names. */
typedef enum LeftOut {
    PASS_NEEDED,  /* it cannot be left out */
    PASS_SKIPPED, /* it does not run */
    PASS_PLAIN    /* it runs in its plain form, as Module.plain says from then on */
} LeftOut;

typedef struct Pass {
    PassFn run;
    const char *group; /* its folder: passes of a group can be left out together */
    LeftOut left_out;
    const char *does; /* for readers: a line */
    size_t trait;     /* a bool of Target: it runs for targets that have it alone; 0: for all */
} Pass;
extern const Pass passes[STAGE_COUNT]; /* by the stage that it leaves; [STAGE_ELABORATE].run is NULL: the front end */

/* Adds the pass, or the passes of the group, |name| to what is left out; false: there is none that can be. */
bool passes_leave_out(PassOptions *o, const char *name);
/* "simplify, turn_columns, ..., layout (masters, weight_copies, pack)": what it takes. */
const char *passes_optional(Arena *a);

/* One pass, then the verifier and ir_compact; returns what passes_run does. */
amp_status pass_run(PassContext *c, Stage stage, amp_error *err);

/* Runs every pass after the module's stage up to |last|.  |after| (may be NULL) is called after each, with the
 * verified and compacted module and the seconds it took.  AMP_BAD_SOURCE: errors are in the diagnostics;
 * AMP_INTERNAL: the verifier's message is in |err|. */
typedef void (*PassObserver)(void *user, const Module *m, double seconds);
amp_status passes_run(Module *m, Diags *diags, const PassOptions *options, Stage last, PassObserver after, void *user,
                      amp_error *err);

#ifdef __cplusplus
}
#endif

#endif
