/* lane.h: one collective as the messages that it takes.
 *
 *     sums that the engine adds     sum, in pieces of a gigabyte
 *     f16, bf16, ordered            exchange parts, add own part by rank, gather parts; small ones: gather all, add all
 *     a part larger than a piece    its pieces are packed into staging memory and out of it
 */
#ifndef AMP_RUNTIME_COMM_LANE_H
#define AMP_RUNTIME_COMM_LANE_H

#include "runtime/comm/engine.h"
#include "runtime/device/comm_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_collective {
    struct amp_collective *next;
    uint64_t number;
    amp_collective_op op;
    amp_dtype dtype;
    void *data;
    size_t count;
    int32_t root;
    const char *what;
    struct amp_flight *flight; /* of a collective on a device, which is on its way by itself; else NULL */
    struct amp_staging *grown; /* what the lane gets when this begins; NULL: what it has is enough */
} amp_collective;

enum { AMP_STAGING_ALIGN = 64 };

/* Memory of a lane: its header, included in |size|; the bytes follow, as aligned as this is. */
typedef struct amp_staging {
    struct amp_staging *next;
    size_t size;
    unsigned char reserved[AMP_STAGING_ALIGN - sizeof(void *) - sizeof(size_t)];
} amp_staging;

/* Bytes; the same on all ranks.  Tests make them small. */
typedef struct amp_lane_limits {
    size_t message; /* one that needs no staging */
    size_t staging; /* of a lane */
    size_t small;   /* of all ranks together: gathered whole rather than exchanged and gathered */
} amp_lane_limits;
extern const amp_lane_limits amp_lane_default_limits;

/* What does not change while the comm lives. */
typedef struct amp_lane_world {
    const amp_engine_type *engine;
    int32_t rank, size;
    bool ordered;
    const amp_lane_limits *limits;
} amp_lane_world;

typedef struct amp_lane {
    amp_collective *now; /* NULL: none */
    amp_staging *staging;
    bool done; /* |now| is */
    /* Of the way through it: elements before |at| are done (of each part, where pieces are packed), |width| are under
     * way, and |body| of these travel as parts. */
    int32_t step;
    size_t at, width, body;
} amp_lane;

/* Bytes of staging that it takes.  Sizes that overflow were refused. */
size_t amp_lane_staging(const amp_lane_world *w, const amp_collective *c);
/* Makes the next message of the lane's collective, after what the last one brought was taken; false: it is done. */
bool amp_lane_next(const amp_lane_world *w, amp_lane *lane, amp_message *out);

#ifdef __cplusplus
}
#endif
#endif
