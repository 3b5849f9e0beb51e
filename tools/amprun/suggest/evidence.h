/* evidence.h: how large what each op reads and makes was in some steps of a training. */
#ifndef AMP_TOOLS_AMPRUN_SUGGEST_EVIDENCE_H
#define AMP_TOOLS_AMPRUN_SUGGEST_EVIDENCE_H

#include "tools/amprun/suggest/lines.h"
#include "tools/amprun/trace/twin.h"

enum { EVIDENCE_MOST = 4096 };

typedef struct OpEvidence {
    char path[LINE_TEXT];
    int64_t count;  /* numbers that were looked at */
    double largest; /* magnitude */
    double flushed; /* the largest part of a tensor's numbers that f16 would make zero */
    bool is_alone;  /* it makes a single number */
} OpEvidence;

typedef struct Evidence {
    OpEvidence *op; /* by the order of execution; owned */
    int count;
} Evidence;

void evidence_free(Evidence *e);
/* After a step of |twin|. */
amp_status evidence_add(Evidence *e, const Twin *twin, amp_error *err);
/* Proposes `low` for every op that |model| leaves in f32 though f16 would hold all that it read and made with room to
 * spare, but for losses and metrics, and for those that |kept| names. */
void evidence_propose(const Evidence *e, const amp_model *model, const Lines *kept, Lines *out);

#endif
