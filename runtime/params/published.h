/* published.h: versions of params, which inference sessions read while the params are trained on.
 *
 *     params->states --amp_published_add--> newest version    holds references on tensors; what did not change
 *                                              |              is shared with the version before
 *     session A  --amp_published_newest--------+
 *     session B  -- an older version, until its next call
 *
 * A version is never written once it is published.  It has one reference for being the newest and one from each session
 * that reads it; whoever drops the last one frees it.  One thread adds, any number of them read.
 */
#ifndef AMP_RUNTIME_PARAMS_PUBLISHED_H
#define AMP_RUNTIME_PARAMS_PUBLISHED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "amp/serve.h"
#include "runtime/model/model.h"

typedef struct amp_published_tensor { /* of one state, in one or several versions */
    atomic_int versions;
    void *memory;
} amp_published_tensor;

typedef struct amp_params_version {
    atomic_int references;
    uint64_t number;
    amp_published_tensor **tensors; /* by state of the model: those that evaluation or inference reads, else NULL */
} amp_params_version;

typedef struct amp_published {
    const amp_model *model;       /* outlives it */
    pthread_mutex_t lock;         /* taking a reference on the newest version, and replacing it: no more than that */
    amp_params_version *newest;   /* NULL: nothing was published */
    atomic_uint_least64_t number; /* of the newest */
    atomic_uint_least64_t bytes;  /* of all versions that are alive */
    atomic_int alive;
} amp_published;

amp_status amp_published_make(const amp_model *model, amp_published **out, amp_error *err);
void amp_published_free(amp_published *published); /* NULL is a no-op */

/* A version with the values of |states| (by state of the model) becomes the newest. */
amp_status amp_published_add(amp_published *published, void *const *states, amp_publish_report *report, amp_error *err);

/* The newest version, with a reference; the one on |held| (may be NULL) is given up.  Takes no lock where |held| is the
 * newest.  NULL where nothing was published. */
amp_params_version *amp_published_newest(amp_published *published, amp_params_version *held);
void amp_published_drop(amp_published *published, amp_params_version *version); /* NULL is a no-op */

#endif
