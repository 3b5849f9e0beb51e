/* params.h: f32 masters, saved buffers, and the copies derived from them; and where they live. */
#ifndef AMP_RUNTIME_PARAMS_PARAMS_H
#define AMP_RUNTIME_PARAMS_PARAMS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "amp/serve.h"
#include "amp/weights.h"
#include "base/alloc.h"
#include "runtime/memory/device_memory.h"
#include "runtime/model/model.h"
#include "runtime/model/state.h"
#include "runtime/params/published.h"

/* ---- where params live ------------------------------------------------------------------------------------------- */

/* On the host, or in the memory of the device that used them last.
 *
 * Sessions of one home share it.  A session elsewhere moves the params to its own memory, which is refused while
 * sessions of the old home are alive.  The host's copies stay; they and the device's are made equal when either is
 * needed and the other is newer.  Values go by name through row-major f32: layouts may differ. */

/* What sessions of one more model bind: the params' own memory of every parameter and buffer, and its own copies that
 * are derived from them (low types, layouts), unless it derives the same ones. */
typedef struct amp_params_form {
    struct amp_params_form *next;
    const amp_model *model; /* as the device runs it */
    int32_t users;          /* it is freed with the last one */
    void **states, **own;   /* by state of |model|; |own| NULL: it derives the same copies */
    atomic_bool stale;      /* of |own| */
} amp_params_form;

typedef struct amp_params_user { /* a session that is alive: it works on the params where they live */
    struct amp_params_user *next;
    amp_params_form *form; /* NULL: its model is the one whose states are there */
    bool entered, trains;
    int64_t capacity;
} amp_params_user;

typedef struct amp_params_residency {
    amp_device_memory *memory; /* NULL: the host's */
    amp_model *model;          /* whose states are there */
    void **states;             /* by state of |model|: PARAM, BUFFER and DERIVED */
    uint64_t bytes;
    atomic_bool host_outdated, device_outdated;
    amp_params_user *users;
    amp_params_form *forms;
} amp_params_residency;

/* A session that runs |model| on |memory| begins.  AMP_WRONG_STATE: another home has sessions.  AMP_UNSUPPORTED: the
 * model stores a parameter in another layout than they have it. */
amp_status amp_params_enter(amp_params *params, amp_params_user *user, amp_device_memory *memory, amp_model *model,
                            amp_error *err);
void amp_params_leave(amp_params *params, amp_params_user *user);

/* The parameters and buffers of |model| are theirs, by name, shape and type; AMP_MISMATCH says what differs. */
amp_status amp_params_check_model(const amp_params *params, const amp_model *model, amp_error *err);
/* By state of the user's model, where they live: PARAM, BUFFER and DERIVED. */
void **amp_params_states(const amp_params *params, const amp_params_user *user);
/* The derived states that the user reads are to be made again. */
atomic_bool *amp_params_stale(amp_params *params, const amp_params_user *user);
void amp_params_make_stale(amp_params *params); /* everyone's */
/* The user has written masters, and its derived states with them. */
void amp_params_written_by(amp_params *params, const amp_params_user *user);

/* forms.c; the lock |refreshing| is held. */
amp_status amp_params_take_form(amp_params *params, amp_params_user *user, amp_model *model, amp_error *err);
void amp_params_drop_form(amp_params *params, amp_params_user *user);
amp_status amp_params_make_residency(amp_params *params, amp_error *err); /* on the host */
void amp_params_free_residency(amp_params *params);

/* The memory of the PARAM is given back: its values are in |memory| from now on, where they are copied to, until it is
 * taken back; NULL: of params without values, whose memory is no longer counted. */
void amp_params_lend(amp_params *params, int32_t state, void *memory);
/* To memory of its own.  Where there is none, or values are |away|, the params have no masters any more. */
void amp_params_take_back(amp_params *params, int32_t state);

/* The same of a device that they live on: |memory| of it, which has the values already; the host keeps its own. */
void amp_params_lend_on_device(amp_params *params, int32_t state, void *memory);
void amp_params_take_back_on_device(amp_params *params, int32_t state, void *memory); /* NULL: there is none */

/* AMP_WRONG_STATE after amp_params_drop_masters, and while values are |away|; |call| is the function's name. */
amp_status amp_params_check_masters(const amp_params *params, const char *call, amp_error *err);

/* Both are there, with masters, and |from| has every tensor of |to| by name, shape and type; AMP_MISMATCH: the message
 * names the first that it lacks. */
amp_status amp_params_check_pair(const amp_params *to, const amp_params *from, const char *call, amp_error *err);

/* The host has, or the device has, the newest values. */
amp_status amp_params_reach_host(const amp_params *params, amp_error *err);
amp_status amp_params_reach_device(amp_params *params, amp_error *err);
bool amp_params_set_on_host(const amp_params *params); /* since they have reached the device */
/* PARAM and BUFFER states were written there, in part after reaching it, or all of them. */
void amp_params_changed_on_host(amp_params *params);
void amp_params_changed_on_device(amp_params *params);

/* ---- params ------------------------------------------------------------------------------------------------------ */

struct amp_params {
    atomic_int references;
    amp_model *model;
    amp_counted_allocator memory;
    void **states;    /* on the host, by state of the model: PARAM, BUFFER and DERIVED; else NULL.  Of
                      amp_params_create_sizes, and without masters: NULL */
    const char *away; /* why the masters are not to be read or set now; NULL: they are here */
    int32_t lent;     /* masters that are in memory of a session */
    amp_published *published;
    amp_params_residency *residency; /* apart, because where values are is no part of what callers see as const */
    /* Derived states are recomputed before the next run.  The lock is for sessions that share the params and start at
     * the same time. */
    atomic_bool stale;
    pthread_mutex_t refreshing;
};

/* Params without values, whose |memory| counts them all the same: what sessions are planned with. */
amp_status amp_params_create_sizes(amp_model *model, amp_params **out, amp_error *err);

#endif
