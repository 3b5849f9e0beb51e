/* evidence.h: how large what each op reads and makes was in some steps of a training, looked at or recorded. */
#ifndef AMP_TOOLS_AMPRUN_SUGGEST_EVIDENCE_H
#define AMP_TOOLS_AMPRUN_SUGGEST_EVIDENCE_H

#include "tools/amprun/suggest/lines.h"
#include "tools/amprun/suggest/recorded.h"
#include "tools/amprun/trace/twin.h"

enum { EVIDENCE_MOST = 4096 };

typedef struct OpEvidence {
    char path[LINE_TEXT];
    int64_t count;                  /* numbers that were looked at, 0 where all that is known is recorded */
    double largest;                 /* magnitude */
    double flushed;                 /* the largest part of a tensor's numbers that f16 would make zero */
    int64_t largest_at, flushed_at; /* the iterations that say so */
    bool is_alone;                  /* it makes a single number */
    bool is_recorded;               /* its result is in the statistics */
    const RecordedTensor *overflow; /* what it makes, or reads as a cast makes it, with infinities; NULL: none */
    const RecordedTensor *tiny; /* what it makes, a large part of which f16 holds with few bits; NULL: it does not */
    const RecordedTensor *reads_tiny; /* what it reads of that kind */
} OpEvidence;

typedef struct Evidence {
    OpEvidence *op; /* by the order in which they were met; owned */
    int count;
} Evidence;

void evidence_free(Evidence *e);
/* NULL: nothing is known of the op. */
const OpEvidence *evidence_find(const Evidence *e, const char *path);
/* After a step of |twin|, the |iteration| of the training. */
amp_status evidence_add(Evidence *e, const Twin *twin, int64_t iteration, amp_error *err);
/* What the log says of the ops that |trace| has seen in a step of the same model. */
amp_status evidence_add_recorded(Evidence *e, const amp_trace *trace, const Recorded *r, amp_error *err);

/* Proposes `low` for every op that |model| leaves in f32 though f16 would hold all that it read and made with room to
 * spare, but for losses and metrics, and for those that |kept| names.  |dated|: with the iterations. */
void evidence_propose(const Evidence *e, const amp_model *model, const Lines *kept, bool dated, Lines *out);
/* Proposes `f32` for every op that |model| lowers and of which the statistics have infinities, though the loss may be
 * finite; and |tiny| for those that lose what is small. */
void evidence_propose_f32(const Evidence *e, const amp_model *model, const Lines *kept, Lines *overflow, Lines *tiny);

bool evidence_has_tiny(const Evidence *e);
/* "11 of 2048 numbers are infinite at iteration 2 (mul in the log)", of an op with |overflow|. */
void evidence_say_overflow(const OpEvidence *e, char *out, size_t size);

#endif
