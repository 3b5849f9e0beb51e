/* amp/serve.h: versions of weights: training writes the params while inference reads them.
 *
 *     amp_params_publish(params, NULL, &err);                             after steps, by the thread that trains
 *     amp_session_options options = {.struct_size = sizeof options, .published = 1};
 *     amp_session_create(model, params, &options, &session, &err);        threads that serve, each its own
 *
 * Objects, threads, errors and options as in amp/amp.h.
 */
#ifndef AMP_SERVE_H
#define AMP_SERVE_H

#include "amp/amp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Hand-over while serving: training writes the params, inference reads a version of them.
 *
 * Publishes the values that the params have now: they become the newest version, which sessions with published = 1 read
 * from their next call on, each call exactly one version.  A version holds what evaluation and inference read (weights
 * in the types that products read, no masters besides) and never changes.  Tensors that have the bytes of the version
 * before are shared with it, only the others are copied.
 * Threads.  To be called by the thread that uses the params, between its other calls; other threads may meanwhile make,
 * use and release sessions with published = 1.  A call of such a session costs one more atomic load, and where there
 * is a new version a lock that is held for a few instructions.  Copying holds no lock.
 * Memory.  A version is freed with the last session that reads it: when that takes a newer one or is released (so the
 * model's allocator must be usable by the threads of all of them).  At most one version per session is alive, and the
 * newest.  A session that is not called keeps the version that it read last.
 * |report| may be NULL.  AMP_UNSUPPORTED: the params live in the memory of a device "cuda".  AMP_OUT_OF_MEMORY: the
 * version before stays the newest. */
typedef struct amp_publish_report {
    uint64_t version;       /* 1 for the first */
    uint64_t copied_bytes;  /* of tensors that changed */
    uint64_t shared_bytes;  /* of those that did not */
    uint64_t bytes_alive;   /* that all versions take which are alive */
    int32_t versions_alive; /* this one included */
    int32_t reserved;
} amp_publish_report;
AMP_API AMP_MUST_USE amp_status amp_params_publish(amp_params *params, amp_publish_report *report, amp_error *err);
/* For programs that only infer: frees the f32 masters, so that weights are in memory once, as the version that was
 * published has them.  From then on only sessions with published = 1 use the params; every call that reads or writes
 * values answers AMP_WRONG_STATE, as this one does while a session without published is alive, and where nothing was
 * published.  A second call does nothing. */
AMP_API AMP_MUST_USE amp_status amp_params_drop_masters(amp_params *params, amp_error *err);

/* The version that the last amp_infer or amp_eval of a session with published = 1 read, or that it was created with; 0
 * for any other session.  By the session's thread. */
AMP_API uint64_t amp_session_version(const amp_session *session);

#ifdef __cplusplus
}
#endif
#endif
