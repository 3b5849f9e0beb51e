/* amp/compile.h: the embeddable compiler: model text in, model.so (or C, or IR) out.
 *
 * Nothing is printed; diagnostics arrive by callback; one call uses one thread, and any number of calls may run at the
 * same time. Making a model.so runs a C compiler (|c_compiler|, "cc"), in a temporary folder that is removed again.
 * The program may ignore SIGCHLD, or reap all children in a handler of its own.
 * Rounding modes and flush-to-zero of the calling thread are put aside for the call.  Where less than 2 MiB of its
 * stack are left, the call runs on a thread of its own while the caller waits, and callbacks arrive there.
 */
#ifndef AMP_COMPILE_H
#define AMP_COMPILE_H

#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* SO: model.so.  C: one file, and O: one object, that are linked into a program, which opens the model by
 * amp_model_from_static; C's first lines say how to compile it.  CU: the CUDA kernels as one text for people; PTX: the
 * same compiled for the first of |gpu_arch|, by NVRTC. */
typedef enum amp_emit {
    AMP_EMIT_SO = 0,
    AMP_EMIT_C = 1,
    AMP_EMIT_IR = 2,
    AMP_EMIT_CU = 3,
    AMP_EMIT_PTX = 4,
    AMP_EMIT_O = 5
} amp_emit;

typedef struct amp_define {
    const char *name, *value; /* const NAME = VALUE, an integer or float as the language writes it */
} amp_define;

/* A line `"PATH": WORD because "BECAUSE"` of the precision block. */
typedef struct amp_override {
    const char *path, *word; /* a glob on paths of ops; "f32", "low", a class of the policy */
    const char *because;     /* NULL: nothing */
} amp_override;

typedef struct amp_compile_options {
    size_t struct_size;

    /* ---- the model ---- */
    /* The model: |text| (UTF-8, |text_size| bytes) under the name |name|, or where text is NULL the file |name|.  A
     * name that ends in ".ir", or text that starts with "module", is IR: only the passes that are left run.  A model.so
     * (by its content) is compiled again from the module that it keeps, under its own policy unless |policy| or
     * |precision| says another. */
    const char *name, *text;
    size_t text_size;
    const amp_define *defines;
    size_t define_count;
    /* Not 0: the model reads no files: `include` is an error, and its precision names a built-in policy.  For services
     * that compile text of strangers, who could otherwise read files of the service in messages.  |policy| may still
     * be a file. */
    int32_t no_files;
    int64_t max_ops; /* what a program may cost: an op 1, a parameter 20 more, top_k 800 k, each 15 kB; 0: 250,000 */

    /* ---- types of ops ---- */
    const char *precision;      /* "fp16", "bf16", "tf32", "fp32"; NULL: as the model says */
    const char *eval_precision; /* "fp32": also FP32 forms of eval and infer; NULL: as the model says */
    const char *policy;         /* built-in name or file; NULL: the precision's default */
    /* Lines that the precision block has besides its own, after them: the last one counts.  Not of IR that has its
     * dtypes already. */
    const amp_override *overrides;
    size_t override_count;
    /* The batch for which a policy of algorithm `min_cut` counts the bytes that a step moves; 0: 32. */
    int64_t batch_hint;
    /* How the CPU adds up products of f16, bf16 and tf32: "ieee", f32 multiply-adds, or "sm_80" or "sm_90", what tensor
     * cores of that architecture give in the model's CUDA code, bit for bit, slowly (docs/design/sums.md).  NULL: as IR
     * says, else "ieee". */
    const char *sums;

    /* ---- what it runs on, and how it trains ---- */
    /* "cpu", "cuda" or "both"; NULL: "both", and "cpu" of AMP_EMIT_C and AMP_EMIT_O without |gpu_arch|.  A model always
     * has kernels for the CPU.  "both": CUDA code too, where every op has some; where one has not, the model says which
     * when it is asked to run on CUDA.  "cuda": the same, but that is an error; and what is dumped or emitted as IR is
     * CUDA's. */
    const char *target;
    /* The largest instruction set that kernels are compiled for: "portable", "v3" (AVX2) or "v4" (AVX-512); NULL:
     * "v4".  Smaller ones are always there, and a session takes the best that its processor has.  "native": the best of
     * this machine alone; a processor that lacks it does not run the model, and says so.  A model for other processors
     * than x86-64 has one set, "portable". */
    const char *isa;
    /* Compile the CUDA code now, by NVRTC, for these architectures: "sm_80,sm_90".  NULL: when the model is loaded. */
    const char *gpu_arch;
    /* "data": several processes (ranks) may train the model together, each on samples of its own; it also trains alone.
     * "zero1": the same, and each keeps a share of the optimizer's moments alone.  "none": not.
     * NULL: as the model says (`data_parallel = true` in its train block) */
    const char *distribute;
    /* In which order a step adds its micro-batches: "left", one after the other; "tree", pairs, pairs of pairs, ..,
     * which takes log2(accumulate) - 1 sums more of each gradient.  Ranks of which each has a power of two of them then
     * get the bits of one rank with all.  NULL: as IR says, else "left" */
    const char *accumulate_order;

    /* ---- what is made of it ---- */
    amp_emit emit;
    const char *output; /* file to write; NULL: only into the result */
    /* With AMP_EMIT_C and AMP_EMIT_O: the model's name in the program, a name of C; NULL: the model's own and "_model".
     * Models of one program need different ones. */
    const char *symbol;
    /* Not 0: the model keeps no text of its IR, a part of the file that tools alone read: it can be neither explained,
     * compared, traced nor compiled again.  Of a model, as C or as an object too. */
    int32_t no_ir;
    const char *stop_after; /* a pass; only with AMP_EMIT_IR */
    /* Passes and groups of passes to leave out, with commas between: "fuse", "layout,simplify"; NULL: none.
     * docs/ir.md lists which can be. */
    const char *no_pass;
    /* NULL: "cc".  A program, or several words as a shell splits them: "ccache gcc".  Flags are chosen for the
     * processor that it makes code for (-dumpmachine). */
    const char *c_compiler;

    /* ---- memory, and callbacks, which get |user| ---- */
    const amp_allocator *allocator;
    /* One error or warning with its notes, formatted with caret, newline at the end.  NULL: the first goes into
     * amp_error. */
    void (*diagnostic)(void *user, const char *text, int32_t is_error);
    /* The module after each pass, as text that lives until the call returns; of IR that was read, first as it was
     * read. */
    void (*dump)(void *user, const char *pass, const char *text, size_t size);
    /* Seconds of each pass; of a module's "copy" for a second target, and of its passes together ("passes cuda"); of
     * "codegen" (the C file), "codegen cuda", "nvrtc KERNEL sm_NN" and "cc".  Together they take the time of the call,
     * but for reading and writing files and what the callbacks take. */
    void (*timing)(void *user, const char *pass, double seconds);
    /* Each file that was read: the model, what it includes, policies; for build systems.  |path| is as it was opened
     * and lives until the callback returns; a file that two lines name is told twice. */
    void (*dependency)(void *user, const char *path);
    /* Before each stage: "read" of IR, passes by their names (those from fuse on once for each target), "codegen cuda",
     * "nvrtc KERNEL sm_NN" (for each kernel and architecture of |gpu_arch|; of those that several threads compile at
     * once, some are left out), "codegen" and "cc".  |index| of |count| stages are done; it only grows, and |count| is
     * the same in all calls until NVRTC's kernels are known, which it then counts.  Called with |user|, by the thread
     * of the call.  An answer other than 0 ends the call with AMP_CANCELLED, before the stage begins. */
    int32_t (*progress)(void *user, const char *stage, int32_t index, int32_t count);
    /* Asked some 100 times a second while C compilers run, and just before: where it answers other than 0 they are
     * ended, the temporary folder is removed, and the call fails with AMP_CANCELLED.  It is called with |user|. */
    int32_t (*cancelled)(void *user);
    void *user;
} amp_compile_options;

typedef struct amp_compile_result amp_compile_result;

/* AMP_BAD_SOURCE: errors in the model, policy or IR, all of them reported.  AMP_NOT_FOUND, AMP_IO, AMP_OUT_OF_MEMORY,
 * AMP_UNSUPPORTED (no C compiler), AMP_CANCELLED, AMP_INTERNAL, AMP_INVALID_ARGUMENT (an option; |out| is NULL). */
AMP_API AMP_MUST_USE amp_status amp_compile(const amp_compile_options *options, amp_compile_result **out,
                                            amp_error *err);
/* The bytes that were emitted, and a NUL after them.  They live as long as the result.  |size| may be NULL. */
AMP_API const void *amp_compile_result_data(const amp_compile_result *result, size_t *size);
AMP_API void amp_compile_result_release(amp_compile_result *result); /* NULL is a no-op */

/* ---- explain: why each op has its dtype -------------------------------------------------------------------------- */

typedef enum amp_explain_form {
    AMP_EXPLAIN_TEXT = 0,
    AMP_EXPLAIN_JSON = 1,   /* docs/explain.md has its members */
    AMP_EXPLAIN_DOT = 2,    /* a drawing for Graphviz, with a cluster for each block */
    AMP_EXPLAIN_BLOCKS = 3, /* a drawing for each block: `dot -Tplain` makes of it the places of a report's "layout" */
    AMP_EXPLAIN_HTML = 4    /* a report in one file, which reads nothing else: the JSON but for its rows, and |parts| */
} amp_explain_form;

/* What a report has besides, as JSON of |size| bytes.  |name|: "comparison" (JSON of amp_compare), "lint" (of
 * amp_lint), "layout", "times" and "code": docs/explain.md. */
typedef struct amp_report_part {
    const char *name, *json;
    size_t size;
} amp_report_part;

/* Of which ops, and in which form.  An op has to match each field that is set; NULL leaves nothing out. */
typedef struct amp_explain_options {
    size_t struct_size;
    const char *path;  /* a glob: "fc1*" */
    const char *dtype; /* "f16": ops that read or make it */
    const char *op;    /* "linear", or the layer that it belongs to, "cross_entropy" */
    const char *rule;  /* the policy's class that decided, "lower"; or "override": a line of the model's precision */
    const char *sort;  /* "bytes": what casts most first; NULL: in the order of the model */
    int64_t batch;     /* that stands for N where bytes are compared; 0: 32 */
    int32_t all;       /* not 0: text tells of each op by itself: of repeated layers, of those that keep statistics */
    int32_t form;      /* amp_explain_form */
    const amp_report_part *parts; /* of a report; no other form reads them */
    size_t part_count;
} amp_explain_options;

/* What `ampc explain` tells.  |name| may be a model, an IR file or a model.so.  |which| NULL: all ops, as text.
 * Errors: those of amp_compile; AMP_NOT_FOUND: no op matches, and the message says what there is;
 * AMP_INVALID_ARGUMENT: there is no such order or form. */
AMP_API AMP_MUST_USE amp_status amp_explain(const amp_compile_options *options, const amp_explain_options *which,
                                            amp_compile_result **out, amp_error *err);

/* What `ampc explain A --against B` tells: which ops have another dtype in |after| than in |before|, why on each side,
 * the casts that came and went, and totals.  Ops are matched by their paths.  Both may be models, IR or model.so, and
 * the same file under two policies.  Models that do not differ are no error: the text and the JSON's "same" say so.
 * Forms are text and JSON, in the order of the model; |batch| and |all| do not count. */
AMP_API AMP_MUST_USE amp_status amp_compare(const amp_compile_options *before, const amp_compile_options *after,
                                            const amp_explain_options *which, amp_compile_result **out, amp_error *err);

/* ---- policies: what `ampc policy` tells -------------------------------------------------------------------------- */

/* Names of the built-in policies in order, those with a version too; NULL past the end.  Static storage. */
AMP_API const char *amp_policy_name(int32_t index);

typedef struct amp_policy_options {
    size_t struct_size;
    int32_t json; /* not 0: JSON instead of text */
    int32_t reserved;
    const amp_allocator *allocator;
    /* As in amp_compile_options. */
    void (*diagnostic)(void *user, const char *text, int32_t is_error);
    void (*dependency)(void *user, const char *path);
    void *user;
} amp_policy_options;

/* A policy is a built-in name or a file; NULL options are all defaults.  AMP_BAD_SOURCE: there is no such policy, or it
 * has errors, all of them reported; AMP_INVALID_ARGUMENT: a policy or |out| is NULL; AMP_OUT_OF_MEMORY.  The caller
 * releases the result. */

/* The built-in ones: version, algorithm, low type, the precision whose default each is, and the first sentence of its
 * file. */
AMP_API AMP_MUST_USE amp_status amp_policy_list(const amp_policy_options *options, amp_compile_result **out,
                                                amp_error *err);
/* The text as it is, errors and all: a file to copy and change. */
AMP_API AMP_MUST_USE amp_status amp_policy_text(const char *policy, const amp_policy_options *options,
                                                amp_compile_result **out, amp_error *err);
/* Reads it as a compilation does, and says what it is. */
AMP_API AMP_MUST_USE amp_status amp_policy_check(const char *policy, const amp_policy_options *options,
                                                 amp_compile_result **out, amp_error *err);
/* Which names (ops, layers, ops of layers) have another class in |after| than in |before|, with the lines, and what
 * else differs.  Policies that do not differ are no error. */
AMP_API AMP_MUST_USE amp_status amp_policy_diff(const char *before, const char *after,
                                                const amp_policy_options *options, amp_compile_result **out,
                                                amp_error *err);

/* ---- lint: what `ampc lint` tells -------------------------------------------------------------------------------- */

typedef struct amp_lint_options {
    size_t struct_size;
    /* What not to tell: "ID", or "ID:GLOB" for ops whose paths match.  In a model, a comment "# lint: allow ID" in the
     * line of the op does the same. */
    const char *const *allow;
    size_t allow_count;
    int64_t batch; /* samples of the step whose sums are counted; 0: 32 */
    int32_t json;  /* not 0: JSON instead of text */
    /* What a step of |batch| takes in the model's types and in f32, by a measurement or a model of time, and on what,
     * "H100".  Where the lower type gains less than a twentieth, the check no-gain says so.  NULL: it is not known. */
    const char *device;
    double microseconds, microseconds_f32;
} amp_lint_options;

/* What the model's precision makes slow or unsafe, each with its place and what to do.  |name| may be a model, or IR up
 * to stage simplify; |target| "cpu" leaves out what is said of CUDA's kernels; nothing is written.  |which| NULL:
 * everything, as text.  |count| (may be NULL): how many findings there are, which are no error.  Errors: those of
 * amp_compile; AMP_INVALID_ARGUMENT: |allow| names no check, |batch| or a time is negative.  The caller releases the
 * result. */
AMP_API AMP_MUST_USE amp_status amp_lint(const amp_compile_options *options, const amp_lint_options *which,
                                         int32_t *count, amp_compile_result **out, amp_error *err);
/* Names of the checks in order, and in |about| (may be NULL) a sentence on each; NULL past the end.  Static storage. */
AMP_API const char *amp_lint_check(int32_t index, const char **about);

/* The library's version.  Static storage. */
AMP_API const char *amp_compile_version(void);

/* Names of the passes in order; NULL past the end. */
AMP_API const char *amp_compile_pass(int32_t index);

#ifdef __cplusplus
}
#endif
#endif
