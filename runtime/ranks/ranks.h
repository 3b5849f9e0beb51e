/* ranks.h: a session that trains together with sessions of other ranks.  A session that trains alone has no amp_ranks,
 * and calls nothing of this folder.
 *
 *   life      amp_ranks_join          before states have memory: this rank learns its shares
 *             amp_ranks_meet          when the session is made, and after each load: all ranks get rank 0's weights
 *             amp_ranks_leave
 *   runs      amp_ranks_before_run    before the device runs a program
 *             amp_ranks_after_run     after micro_step and apply_step: ranks exchange gradients, then weights
 *             amp_ranks_take_params   when somebody has set params
 *   moments   amp_ranks_gather, _keep   one moment that ranks share
 *             amp_ranks_save, _load     all of them, in a checkpoint
 *
 * Ranks see of the session what it gives to amp_ranks_join.  All ranks make the same calls in the same order.
 */
#ifndef AMP_RUNTIME_RANKS_RANKS_H
#define AMP_RUNTIME_RANKS_RANKS_H

#include <stdbool.h>

#include "base/alloc.h"
#include "runtime/device/comm_calls.h"
#include "runtime/device/device.h"
#include "runtime/files/state_file.h"
#include "runtime/memory/bound_program.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/messages.h"
#include "runtime/params/params.h"

/* ---- what ranks see of a session --------------------------------------------------------------------------------- */

typedef struct amp_session_states { /* each by state of the model: session.h */
    void **held, **bound, **host;
    amp_state_block *blocks; /* in place of the model's, where ranks have shares; NULL: those */
} amp_session_states;

typedef amp_status amp_states_change(void *user, void *const *states, amp_error *err);

/* Everything lives as long as the session, and outlives its ranks. */
typedef struct amp_ranked_session {
    amp_session *session;   /* for |change_states| */
    const amp_model *model; /* as the device runs it */
    amp_params *params;
    amp_device *device;
    amp_counted_allocator *memory;
    amp_session_states *states;
    amp_bound_program *programs;
    int32_t program_count;
    int64_t capacity;
    uint64_t seed;
    const char *products; /* by what bits of products may differ: "fastest", or "same bits" */
    bool keeps_gradients;
    bool sizes_only; /* memory is counted and not allocated, and there are no other ranks to meet */
    /* Calls |change| with the states of a checkpoint, on the host's memory, and takes over what it has written. */
    amp_status (*change_states)(amp_session *session, amp_states_change *change, void *user, amp_error *err);
} amp_ranked_session;

/* ---- what a session sees of its ranks ---------------------------------------------------------------------------- */

typedef struct amp_ranks {
    amp_comm *comm; /* which rank this is, and of how many */
    amp_ranked_session session;
    amp_share *shares; /* by state: this rank's share of a moment or master; NULL: it has all of each */
    void **masters;    /* by state: of a PARAM, where apply_step finds the rank's share of it; NULL: none are shared */
    bool are_current;  /* the masters are what a step has left and were not set since; of a device */
    bool run_each;     /* statistics_step runs for one micro-batch of all ranks at a time; else once for all of them */
    struct amp_exchange *exchange; /* NULL until they meet */
} amp_ranks;

static inline bool amp_ranks_has_share(const amp_ranks *ranks, int32_t state, uint32_t role) {
    return ranks && ranks->shares && ranks->session.model->states[state].role == role && ranks->shares[state].end >= 0;
}
/* Of a moment, and of a master. */
static inline bool amp_ranks_share_moment(const amp_ranks *ranks, int32_t state) {
    return amp_ranks_has_share(ranks, state, AMP_STATE_MOMENT);
}
static inline bool amp_ranks_share_master(const amp_ranks *ranks, int32_t state) {
    return amp_ranks_has_share(ranks, state, AMP_STATE_PARAM);
}
/* Bytes of memory of a share of a master. */
static inline size_t amp_master_bytes(amp_share share) {
    const size_t bytes = (size_t)(share.end - share.first) * sizeof(float), align = AMP_MEMORY_ALIGN;
    return (bytes + align - 1) / align * align;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

/* |comm| has several ranks, and the session trains.  Where ranks have shares this makes session->states->blocks, which
 * the session frees.  If the model was compiled to train alone: AMP_INVALID_ARGUMENT; of a planned session no ranks. */
amp_status amp_ranks_join(const amp_ranked_session *session, amp_comm *comm, amp_ranks **out, amp_error *err);
/* All ranks get rank 0's weights, moments and counters.  The first time they agree before it on what they train, and
 * have shares of masters after it. */
amp_status amp_ranks_meet(amp_ranks *ranks, amp_error *err);
/* Before the memory of states is freed. */
void amp_ranks_leave(amp_ranks *ranks);

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* Sets in |run| what ranks do meanwhile.  |micro|: which micro-batch of the step it is, or comes next. */
amp_status amp_ranks_before_run(amp_ranks *ranks, amp_run *run, int64_t micro, amp_error *err);
/* After micro_step with micro-batch |micro|, and after apply_step.  The last micro-batch waits for all messages of the
 * step (a device waits, and the host does not, where collectives run on it).  Weights and statistics change after that
 * only: if a rank fails, the others still have the last step's and can save them. */
amp_status amp_ranks_after_run(amp_ranks *ranks, const amp_program *program, int64_t micro, amp_error *err);
/* Calls amp_params_reach_device, and copies what was set to this rank's shares of masters. */
amp_status amp_ranks_take_params(amp_ranks *ranks, amp_error *err);

/* ---- moments ----------------------------------------------------------------------------------------------------- */

/* All of a moment that ranks share, into memory of amp_state_bytes; all ranks call it. */
amp_status amp_ranks_gather(const amp_ranks *ranks, int32_t moment, char *whole, amp_error *err);
/* Copies this rank's share of |whole| to its moment. */
amp_status amp_ranks_keep(amp_ranks *ranks, int32_t moment, const char *whole, amp_error *err);

/* Writes a file; |moments|: where whole moments come from; NULL: the session has them. */
typedef amp_status amp_ranks_write(void *user, const amp_state_source *moments, amp_error *err);
/* If ranks have shares rank 0 writes, and the others send it theirs; else each rank that calls it writes. */
amp_status amp_ranks_save(amp_ranks *ranks, amp_ranks_write *write, void *user, amp_error *err);
/* An entry that is such a moment, in the same order on all ranks: rank 0 reads it, each keeps its share. */
amp_status amp_ranks_load(amp_ranks *ranks, const amp_state_list *list, int32_t entry, const amp_safetensors *file,
                          amp_error *err);

#endif
