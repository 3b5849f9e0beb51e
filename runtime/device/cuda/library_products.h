/* library_products.h: products that NVIDIA's cuBLASLt makes in place of launches, chosen by measurement.
 *
 * If the library can make all products of a launch (amp_model_cuda_kernel.products), the launch is measured when a
 * session is created, at its capacity, against each of the library's algorithms.  The fastest that is right takes its
 * place: with the same bits or, if the session asks for the fastest, with the same numbers but for rounding.  The
 * choice is kept beside the cache of kernels (cache.h), where later sessions find it.  No run waits for a
 * measurement: at another number of samples it takes what was chosen at the nearest one, if that is right there, too.
 * If the library fails, the launch is ours.
 *
 * library_products.c makes the calls, library_choices.c chooses, library_trial.c measures, choice_file.c is about
 * files and other ranks.
 *
 * All calls by the session's thread, inside the context, and, but for amp_cuda_products_enqueue, outside of a
 * capture. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_LIBRARY_PRODUCTS_H
#define AMP_RUNTIME_DEVICE_CUDA_LIBRARY_PRODUCTS_H

#include "base/safetensors/safetensors.h"
#include "cuda_sdk/cublaslt.h"
#include "runtime/device/cuda/cache.h"
#include "runtime/device/cuda/launch.h"

typedef struct amp_cuda_choice amp_cuda_choice; /* of a launch: ours, or an algorithm for each product */

typedef struct amp_cuda_products {
    amp_cuda_context *context;
    const amp_allocator *allocator;
    const amp_log *log;
    CuStream stream; /* for measurements: nothing else runs there */
    int32_t mode;    /* AMP_PRODUCTS_* */
    amp_cublaslt library;
    CublasLtHandle handle; /* NULL: not opened, or |given_up| */
    bool given_up;
    CuPointer workspace; /* launches have it in turn */
    size_t workspace_bytes;
    bool captured;                /* a graph has its address: it stays where it is */
    bool failed;                  /* a call, in a capture that may have ended by it */
    double seconds, most_seconds; /* of measurements: so far, and from which on no other begins */
    double deadline;              /* of the one under way, by amp_nanoseconds, in seconds */
    bool said_late;
    int64_t capacity; /* the largest n that was to be measured */
    const amp_model *model;
    amp_cuda_cache_key *code; /* by function of the model: a hash of what it is compiled from; zeros: not known yet */
    amp_safetensors *pinned;  /* amp_cuda_options.choices; NULL: none */
    bool agreed;              /* with other ranks: nothing is taken from disk any more */
    amp_cuda_choice *choices; /* the last comes first */
} amp_cuda_products;

/* |options| as the session has them.  The library is opened once a launch may be worth it, or if |options| name a file
 * of choices, which is read. */
amp_status amp_cuda_products_make(amp_cuda_products *products, const amp_cuda_options *options,
                                  amp_cuda_context *context, const amp_model *model, CuStream stream,
                                  const amp_log *log, const amp_allocator *allocator, amp_error *err);
void amp_cuda_products_free(amp_cuda_products *products); /* zeros: a no-op */

/* Chooses for the launches of |run| (its program, n and needed kernels): what was chosen before, or is on disk; with
 * |measure| what is fastest now.  AMP_NOT_FOUND: the session asks for the fastest, and there is no library. */
amp_status amp_cuda_products_choose(const amp_cuda_launching *launching, const amp_run *run, bool measure,
                                    amp_error *err);

/* Whether kernel |kernel| of |run| has no choice yet, and products that are worth one. */
bool amp_cuda_products_may_take(const amp_cuda_launching *launching, const amp_run *run, int32_t kernel);

/* What is measured from now on may be another choice: no graph has one of before. */
void amp_cuda_products_forget_graphs(amp_cuda_products *products);

/* ---- what was chosen (amp_device_choice_calls) ------------------------------------------------------------------- */

amp_status amp_cuda_products_check(amp_cuda_products *products, amp_error *err);
bool amp_cuda_choice_at(const amp_cuda_products *products, int32_t index, struct amp_product_choice *out);
amp_status amp_cuda_choices_save(const amp_cuda_products *products, const char *path, amp_error *err);
amp_status amp_cuda_choices_share(const amp_cuda_launching *launching, struct amp_comm *comm, amp_error *err);
void amp_cuda_choices_name(const amp_cuda_products *products, char name[AMP_CHOICES_NAME]);

/* ---- in place of a launch ---------------------------------------------------------------------------------------- */

/* NULL: the own launch.  A run that is looked at counts in its kernels (amp_run.looked_at). */
amp_cuda_choice *amp_cuda_products_find(const amp_cuda_launching *launching, const amp_run *run, int32_t kernel);
/* The calls, without what follows them.  |*done| false: one failed, and the own launch is to make all. */
amp_status amp_cuda_products_enqueue(const amp_cuda_launching *launching, const amp_run *run, int32_t kernel,
                                     amp_cuda_choice *choice, CuStream stream, bool *done, amp_error *err);

#endif
