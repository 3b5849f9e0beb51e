/* batch.c: neighbours of equal code that do not need one another are one launch, over a table of their operands.
 *
 *   kernel k40 { update of fc1.weight }         launch { stage { part k40, k41 } }
 *   kernel k41 { update of fc2.weight }    =>
 */
#include "passes/launch/share.h"

void batch_grow(Sharing *s, Launch *l) {
    const KernelFacts *first = &s->facts[l->first];
    if (l->count > 1 || first->batch == BATCH_NONE) return;
    for (int k = l->first + 1; k < s->f->kernels.len; k++) {
        if (!share_is_independent(s->f, l, k) || !share_is_same(first, &s->facts[k])) return;
        share_add(s->f, l, 0, PART_BATCH, 0, k);
    }
}

bool pass_batch(PassContext *c) { return share_launches(c, batch_grow); }
