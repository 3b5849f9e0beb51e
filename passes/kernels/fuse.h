/* fuse.h: what the files of the fuse pass share.
 *   fuse.c          the pass: which ops are copied, hoisted or guarded; finding a kernel for each op
 *   fuse_early.c    what runs before all other kernels
 *   fuse_delay.c     keeping the ops of a region together
 *   fuse_legality.c    which ops a kernel of a kind takes
 *   fuse_assign.c  assigns: placed last, behind every reader of the state
 *   fuse_recompute.c  what is made again rather than kept in memory
 *   fuse_inline.c     what pooling computes where it reads it
 *   fuse_title.c    "fc1: linear + bias + relu"
 */
#ifndef AMP_PASSES_KERNELS_FUSE_H
#define AMP_PASSES_KERNELS_FUSE_H

#include "passes/kernels/kernel_list.h"
#include "passes/common/rewrite.h"
#include "targets/target.h"

typedef struct Copy { /* of a free op, in one kernel */
    Val of, copy;
} Copy;

typedef struct Group { /* a kernel while it is being formed */
    KernelKind kind;
    Dim rows, cols;
    int64_t segment; /* COLUMN: rows that are reduced together; 0: all */
    Val guard;       /* the kernel runs only where this is true */
    bool early;      /* runs before all others: reads nothing that they make */
    VEC(OpId) ops;
    VEC(Copy) copies;
} Group;

enum { NOWHERE = -2, PENDING = -1 }; /* Node.home before an op has a group */

typedef struct Node {        /* of an op */
    int home;                /* index of its group; PENDING: goes where its first user goes */
    int wait;                /* goes into no group before this one: what its users need besides is made there */
    int meets;               /* the group that makes what its users in the region need besides; -1: none */
    Val guard;               /* only assigns with this predicate need it */
    bool copied;             /* costs nothing: copied into each kernel that uses it */
    bool claimed;            /* copied: the op itself stands in a kernel, further ones get clones */
    Val source;              /* copied: its input, before any rewriting */
    int position, last_user; /* in the body */
    int made_at, made;       /* pending: what fuse_made_in found, and at which Fuse.change */
    int fits_at, fits_group; /* pending: whether it fits that group, and at which Fuse.change */
    bool fits;
    bool folded; /* in a column kernel: the result of a fold, or made from one */
} Node;

typedef VEC(int) Ints;

typedef struct Fuse {
    Func *f;
    Arena *a;
    bool fusing; /* false: every op is a kernel of its own */
    VEC(Group) groups;
    VEC(Node) nodes;     /* by op id */
    bool *product_reads; /* by value id, of the function as it came: an operand of a product */
    Ints *readers;       /* by value id, of the function as it came: groups that read it */
    int value_count;
    int change; /* counts changes of groups: what was found before may be wrong after */
} Fuse;

/* fuse.c */
Node *fuse_node(const Fuse *z, const Op *o);
/* The group that holds the op that makes |v|; NOWHERE for inputs and states. */
int fuse_home_of(const Fuse *z, Val v);
/* The group that makes |v|, or -1 where every kernel can read it: inputs, states, what early kernels make.  For what
 * is pending: the latest group that it needs.  |data|: its data, not only its shape. */
int fuse_made_in(const Fuse *z, Val v, bool data);
/* Whether group |g| takes the op and the pending ops it needs. */
bool fuse_fits(const Fuse *z, int g, const Op *o);
/* Adds the op, pulling in or placing what it needs. */
void fuse_append(Fuse *z, int g, Op *o);
/* A new group for an op that found none; before it, groups for pending ops that it needs and cannot hold. */
int fuse_open(Fuse *z, const Op *o);
/* The same for one that runs before all others. */
int fuse_open_early(Fuse *z, const Op *o);
/* Gives a pending op a kernel. */
void fuse_flush(Fuse *z, Op *o);
/* A copy of the op, with a result of its own, in no group. */
Op *fuse_clone(Fuse *z, const Op *o);
/* The op behind |v|, through what is copied; |data|: not through what only takes its shape. */
Op *fuse_behind(const Fuse *z, Val v, bool data);

/* fuse_legality.c */
typedef enum Fold { FOLD_NONE, FOLD_ROW, FOLD_COLUMN, FOLD_FLAG } Fold;
Fold fuse_fold(const Func *f, const Op *o);
bool fuse_is_scalar(const Func *f, const Op *o);
/* Kind and space of a kernel that starts with |o|. */
Group fuse_group_for(const Func *f, const Op *o);
/* Whether the kind and space of |g| take the op itself. */
bool fuse_accepts(const Fuse *z, const Group *g, int index, const Op *o);
/* Whether an op that is computed in |g| may be an operand of |user| there. */
bool fuse_may_feed(const Fuse *z, const Group *g, const Op *user, const Op *o);
/* Whether code in |g| may write the element (r, c) of a state from |value|. */
bool fuse_accepts_assign(const Fuse *z, const Group *g, Val value);
/* A tile kernel becomes the row or column kernel that fold |o| of its values needs; false: it cannot. */
bool fuse_convert(Fuse *z, int g, const Op *o);
bool fuse_is_folded(const Fuse *z, const Group *g, int index, const Op *o);

/* fuse_early.c */
void fuse_hoist(Fuse *z);

/* fuse_delay.c */
/* Sets Node.wait for the ops of the region that starts at body[at], all of whose inputs have their groups. */
void fuse_find_waits(Fuse *z, const OpId *body, int count, int at);

/* fuse_assign.c */
void fuse_place_effects(Fuse *z, const OpId *body, int count);

/* fuse_recompute.c */
void fuse_recompute(Fuse *z);

/* fuse_inline.c */
void fuse_inline(Fuse *z);

/* fuse_title.c */
const char *fuse_title(const Func *f, const Group *g);

#endif
