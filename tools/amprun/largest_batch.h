/* largest_batch.h: the largest batch whose session fits in so many bytes. */
#ifndef AMP_TOOLS_AMPRUN_LARGEST_BATCH_H
#define AMP_TOOLS_AMPRUN_LARGEST_BATCH_H

#include <stdbool.h>

#include "amp/amp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct LargestBatch {
    int64_t batch;          /* fits; 0: not even the smallest does, and |memory| is what that would take */
    amp_memory_info memory; /* of a session of that batch */
    int64_t next;           /* the next one, which does not fit; 0: a call takes no larger one */
    uint64_t next_total;    /* bytes that it would take; 0: more than memory can address, or than the device has */
    int64_t bound;          /* no larger batch fits, however its memory is planned; 0: not known (device memory) */
} LargestBatch;

/* Where temporaries are is found by a heuristic, so that a batch can take less than a smaller one.  A larger batch that
 * fits is looked for up to |bound|, but among no more than LARGEST_BATCH_LOOK. */
enum { LARGEST_BATCH_LOOK = 256 };

/* What is limited: a device's own memory where there is one, else all that the session and its params take. */
uint64_t largest_batch_bytes(const amp_memory_info *memory);

/* Of sessions with |options|, but for their capacity.  The errors of amp_session_plan. */
amp_status largest_batch(amp_model *model, const amp_session_options *options, uint64_t limit, LargestBatch *out,
                         amp_error *err);

#ifdef __cplusplus
}
#endif
#endif
