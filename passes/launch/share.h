/* share.h: what the passes have in common that let kernels share a launch: supersteps, batch, chain, single_pass,
 * bundle.
 *
 * Each goes over a function's launches, also of single kernels, and makes some of them larger.  A kernel's
 * facts (ir/kernel_facts.h) come from code generation. */
#ifndef AMP_PASSES_LAUNCH_SHARE_H
#define AMP_PASSES_LAUNCH_SHARE_H

#include "ir/kernel_facts.h"
#include "passes/passes.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Sharing {
    Func *f;
    const KernelFacts *facts; /* by kernel */
    const Launch *launches;   /* before the pass */
    int count, next;          /* of them; the first after the one at hand */
} Sharing;

/* Calls |grow| for each launch in turn, which may add to it what comes after it. */
bool share_launches(PassContext *c, void (*grow)(Sharing *s, Launch *l));
/* The launch that begins with kernel |first|, maybe of that one alone. */
Launch share_launch_at(Sharing *s, int first);
/* Kernel |kernel| becomes a member of part |part|, which may be the next one, of stage |stage| and form |form|. */
void share_add(const Func *f, Launch *l, int part, PartForm form, int stage, int kernel);
/* Whether |l| and kernel |k| may run at the same time. */
bool share_is_independent(const Func *f, const Launch *l, int k);
/* Whether an op of |k| reads elements of |v| at other places than its own. */
bool share_moves(const Func *f, const Kernel *k, Val v);
/* Stage by stage, and in each those parts first whose sums grow with n, as a weight gradient's: their blocks take
 * longest, and the last of them would have the device to themselves. */
void share_order_parts(const KernelFacts *facts, Launch *l);
/* Whether the two are launched as a batch where they are neighbours. */
bool share_is_same(const KernelFacts *a, const KernelFacts *b);

/* How each pass makes |l| larger; bundle: whether parts of these kernels may be one launch. */
void supersteps_grow(Sharing *s, Launch *l);
void batch_grow(Sharing *s, Launch *l);
void chain_grow(Sharing *s, Launch *l);
void single_pass_grow(Sharing *s, Launch *l);
bool bundle_fits(const Sharing *s, const Launch *l);

/* Of a module that was read: the first launch that no pass makes of its kernels, or NULL.  Blocks would run beside
 * others whose results they read. */
const char *share_check(PassContext *c);

#ifdef __cplusplus
}
#endif

#endif
