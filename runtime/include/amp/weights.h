/* amp/weights.h: weights of other programs (names, layouts, what fits), copies, and whether they are numbers.
 *
 *     const char *rename[] = {"transformer.*=*", NULL}, *transpose[] = {"h.*.attn.weight", NULL};
 *     amp_weights_options options = {.struct_size = sizeof options, .rename = rename, .transpose = transpose};
 *     if (amp_params_load(params, "gpt2/model.safetensors", &options, &report, &err)) return fail(err.message);
 *
 * Objects, threads, errors and options as in amp/amp.h.
 */
#ifndef AMP_WEIGHTS_H
#define AMP_WEIGHTS_H

#include "amp/amp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum amp_weights_difference {
    AMP_WEIGHTS_MISSING = 0, /* a parameter or buffer that the file does not have */
    AMP_WEIGHTS_EXTRA = 1,   /* a tensor of the file that the model does not have */
    AMP_WEIGHTS_MISFIT = 2,  /* another shape, or a type that is not taken */
    AMP_WEIGHTS_TWICE = 3    /* two tensors of the file for one parameter, with different numbers */
} amp_weights_difference;

/* Lists of strings end with NULL; NULL instead of a list is an empty one.  A glob's * matches any characters, dots
 * included.  Messages name these fields; amprun has options of the same names. */
typedef struct amp_weights_options {
    size_t struct_size;
    const char *const *ignore; /* globs: tensors of the file that are not wanted */
    /* "FROM=TO": tensors of the file whose name FROM matches are taken as TO, where each * is what the * of the same
     * number in FROM matched: "transformer.*=*".  Applied to what is not ignored, one after the other, each to what the
     * ones before made. */
    const char *const *rename;
    /* globs: parameters of two dimensions, by their names in the model, that the file has the other way round, as
     * GPT-2's Conv1D has the weights of linear layers. */
    const char *const *transpose;
    const char *const *fresh; /* globs: parameters and buffers that keep their values, whatever the file has */
    int32_t partial;          /* 1: takes what fits: parameters that the file lacks or has in another shape keep their
                                 values, and tensors that no parameter takes are left; AMP_OK however few fit.  Two
                                 tensors for one parameter, and a rule that matches nothing, are a mismatch still */
    /* Of amp_params_load: the file's |size| bytes, which are only read, during the call; the path then names them in
     * errors (NULL: "params in memory").  NULL, with |size| 0: a file. */
    const void *bytes;
    size_t size;
    /* Of amp_params_save: weights (a file or an index) whose names and layout the file gets, which the rules map to the
     * model's; NULL: the model's own. */
    const char *like;
    void *user;
    /* Called during the call for each difference, before it fails: |name| is the model's of MISSING and MISFIT, else
     * the file's; |why| is in words, and lives during the call. */
    void (*difference)(void *user, const char *name, amp_weights_difference kind, const char *why);
    /* Of amp_params_load, 1: of a checkpoint, the averages of the parameters that have one (`ema`) in place of their
     * values; AMP_MISMATCH if none has.  Rules see the parameter's name. */
    int32_t ema;
} amp_weights_options;

typedef struct amp_weights_report {
    int32_t loaded;                  /* parameters and buffers that were taken from the file */
    int32_t fresh;                   /* that kept their values by the rules */
    int32_t transposed;              /* of those loaded */
    int32_t rounded;                 /* of those loaded: F64 in the file, rounded to f32 */
    int32_t ignored;                 /* tensors of the file */
    int32_t missing, misfits, extra; /* with |partial|: differences by kind; else 0 */
} amp_weights_report;

/* How amp_params_load (amp/amp.h) reads.
 *
 * An index is Hugging Face's model.safetensors.index.json; its shards are in its folder, or below it.  Each parameter
 * has to be there by name and shape, and nothing besides, but for what |options| say.  F32, F16, BF16 and F64 are taken
 * for f32, integers for themselves (I64 for num_batches_tracked).  A weight that the file stores twice (a tied head)
 * may be renamed to one parameter twice.
 * AMP_MISMATCH: the message has all differences, counted, with names that differ in a number alone as one (h.*.bias),
 * and the rename or transpose that mends them, if it finds one.  A rule that matches nothing is a mismatch, too.
 * AMP_INVALID_ARGUMENT: a rule without the form of one.  AMP_NOT_FOUND, AMP_BAD_FILE, AMP_IO: the file; AMP_BAD_FILE
 * also if a tensor is not as it was saved, by a sum that the file has (docs/checkpoint.md).
 * All or nothing; but of more than 32 MiB a tensor that is not as it was saved, a disk that fails, or a file that is
 * cut or written to while its data is read (AMP_IO), leaves the params partly of it.
 * Memory.  Files of up to 32 MiB are read first.  Of larger ones data goes piece by piece to the params, with next to
 * nothing held besides.
 *
 * How amp_params_save writes a file |like| another: what PyTorch's load_state_dict takes with strict=True.  Values are
 * F32 and integers.  Tensors that are ignored are copied from |like|; parameters that are fresh are written as the
 * params have them, under the file's name, or their own if it has none.  AMP_MISMATCH as above; also if a tensor that
 * is ignored has the numbers of one that is taken (a tied weight would be saved as it was before training: rename it).
 * The path may be |like|. */

/* Every parameter and buffer of |to| becomes what it is in |from|, which may be of another model (a newer version of
 * it, say) that has them all, by name, shape and type; else AMP_MISMATCH. */
AMP_API AMP_MUST_USE amp_status amp_params_copy(amp_params *to, const amp_params *from, amp_error *err);
/* Every parameter of |to| becomes to + t (from - to), computed in f32, and every buffer what it is in |from|: a target
 * network that follows another one (t = 0.005 after each step), or an average that the program makes itself.  t goes
 * from 0, which changes nothing, to 1, which copies.  |from| is as in amp_params_copy.  If both live in the memory of
 * one device, the device does it; after an error of the device |to| may have some of them.  Parameters that are stored
 * in 16 bits are rounded to nearest, which loses a small t. */
AMP_API AMP_MUST_USE amp_status amp_params_blend(amp_params *to, const amp_params *from, double t, amp_error *err);
/* New params of the same model with the values of now: one reference, the caller's. */
AMP_API AMP_MUST_USE amp_status amp_params_snapshot(const amp_params *params, amp_params **out, amp_error *err);

/* How many numbers of the parameters and buffers are NaN or infinite, and the name of the first tensor with one (NULL:
 * there is none; |first| may be NULL; it lives as long as the model).
 * Where nothing is scaled (bf16, tf32, fp32), a batch with one infinite value makes all weights NaN, as it does in
 * PyTorch, and amp_step answers AMP_OK: report->loss is NaN from then on, and this says whether the weights still are
 * numbers, before a save replaces good ones.  It reads all of them. */
AMP_API AMP_MUST_USE amp_status amp_params_count_nonfinite(const amp_params *params, int64_t *count, const char **first,
                                                           amp_error *err);

#ifdef __cplusplus
}
#endif
#endif
