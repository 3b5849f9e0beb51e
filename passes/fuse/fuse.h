/* fuse.h: what the files of the fuse pass share.  docs/design/fuse.md explains the pass with an example.
 *
 *   fuse.c           the pass: what is found before the walk over the body, the walk, the kernels that it writes
 *   fuse_strided.c   what batched products and attention read at strides; fuse_attention.c what attention stores
 *   fuse_order.c     when ops run: before all other kernels, or as late as their users allow
 *   fuse_memory.c    values that are recomputed, or made where they are read, instead of being kept in memory
 *   fuse_place.c     adding an op to a group, with the pending ops that it needs; assigns, which come last
 *   fuse_legality.c  which ops a kernel of each kind accepts
 *   fuse_state.c     groups and homes, and the only functions that change them
 *
 * A file calls only files below it in this list.
 */
#ifndef AMP_PASSES_FUSE_FUSE_H
#define AMP_PASSES_FUSE_FUSE_H

#include "ir/strided.h"
#include "passes/common/common.h"
#include "passes/fuse/kernel_list.h"
#include "targets/target.h"

enum {
    /* Movement has loads and stores of its own for each result: more of it than this makes no kernel faster, and
     * kernels of equally many share one function. */
    FUSE_MAX_MOVES = 16,
    FUSE_MAX_DEPTH = 64 /* pending ops in a row */
};

typedef VEC(int) Ints;

typedef struct Copy { /* of a copied op, in one group */
    Val of, copy;
} Copy;

/* A kernel while it is being formed.  Groups are numbered in the order in which their kernels run, except that early
 * groups run before all others. */
typedef struct Group {
    KernelKind kind;
    Dim rows, cols; /* the space that the kernel walks */
    Dim segment;    /* COLUMN: rows that are reduced together; of mul 0: all of them */
    Val guard;      /* the kernel runs only where this predicate is true; NO_VAL: always */
    bool early;     /* runs before all others and reads nothing that they make */
    OpIds ops;
    VEC(Copy) copies; /* which copied ops have a copy here */
} Group;

/* Node.home of an op that is in no group. */
enum {
    NOWHERE = -2, /* the walk has not reached it; or it is copied, and each reader gets its own copy */
    PENDING = -1  /* it needs only inputs and states: it waits for its first user and joins that user's group */
};

/* What fuse knows about one op. */
typedef struct Node {
    /* Found before the walk (fuse.c). */
    bool copied;   /* the op costs nothing, so every group that reads its result computes it itself */
    Val source;    /* of a copied op: its operand in the original function, before copies replaced it; NO_VAL: none */
    Val guard;     /* the predicate shared by all assigns that depend on the op; NO_VAL: it must always be computed */
    int position;  /* index in the original body */
    int last_user; /* greatest position of a reader, seen through copied ops; body length for a result */

    bool folded; /* a reduction reads the op's result, seen through copied ops */

    int walk;  /* the last walk over pending operands that has been here */
    int depth; /* of a pending op: the length of the chain of pending ops that ends here; its user takes all along */

    /* Found when the walk reaches the op's region (fuse_order.c). */
    int not_before; /* the earliest group that it may join: every user needs something that this group makes; -1: any */
    int meeting_group;   /* the latest group that its users in the region need besides this op; -1: none */
    bool for_fold;       /* every user in the region is a reduction, or needs the result of one */
    bool for_fold_alone; /* every user is a reduction, or for folds alone and reads no other tensor */

    /* Where it is; written by fuse_state.c alone. */
    int home;     /* index of its group, or NOWHERE, or PENDING */
    bool claimed; /* copied: the op itself is in some group; the other groups get clones */
    bool reduced; /* in a column kernel: a reduction's result, or computed from one; known only after all rows */

    /* Memos of questions about a pending op; each holds while Fuse.change equals its |at|. */
    struct {
        int at, group;
    } made; /* fuse_made_in: the latest group that it needs */
    struct {
        int at, group;
        bool fits;
    } fit; /* fuse_fits: whether |group| can take it */
} Node;

typedef struct Fuse {
    Func *f;
    Arena *a;            /* for what is forgotten with it */
    bool fusing;         /* false: every op is a kernel of its own */
    int kernel_ops;      /* the most of a kernel */
    bool *product_reads; /* by value id of the original function: an operand of a product */
    bool *strided; /* by value id of the original function: batched products or attention read its source at strides */
    bool *stored;  /* by value id of the original function: attention's kernel rounds its results, or joins them, so */
    Ints *readers; /* by value id of the original function: the groups that read it, in order */
    int value_count; /* values of the original function */
    int walks;       /* over pending operands, so far */

    /* Written by fuse_state.c alone. */
    VEC(Group) groups;
    VEC(Node) nodes; /* by op id */
    int change;      /* counts the changes of groups and homes, from 1: a memo of an earlier count is stale */
} Fuse;

/* ---- fuse_state.c: reading -------------------------------------------------------------------------------------- */

Fuse fuse_new(Func *f, const PassOptions *options);
void fuse_free(Fuse *z); /* and all that was allocated in its arena */
const Group *fuse_group(const Fuse *z, int g);
int fuse_group_count(const Fuse *z);
Op *fuse_group_op(const Fuse *z, int g, int i);
const Node *fuse_node(const Fuse *z, const Op *o);
/* The group of the op that makes |v|; NOWHERE for inputs and states. */
int fuse_home_of(const Fuse *z, Val v);
bool fuse_is_pending(const Fuse *z, const Op *o); /* |o| may be NULL */
/* The most pending ops in a row that |o| reads. */
int fuse_depth(const Fuse *z, const Op *o);
/* The op that makes |v|, seen through copied ops; NULL: an input or a state.  |data|: not through operands that only
 * give a shape. */
Op *fuse_maker(const Fuse *z, Val v, bool data);
/* The group that makes |v|, seen through copied ops, or -1 if every kernel can read it (inputs, states, results of
 * early groups).  Of a pending op: the latest group that it needs. */
int fuse_made_in(const Fuse *z, Val v, bool data);
/* The latest group that the op waits for (Op.after); -1: none. */
int fuse_opened_in(const Fuse *z, const Op *o);
/* The latest group among those that make the operands and the guard of |o|, or that it waits for; |data|:
 * operands that only give a shape do not count. */
int fuse_latest_input(const Fuse *z, const Op *o, bool data);
/* The memo of fuse_fits; false: nothing is known since the last change. */
bool fuse_recall_fit(const Fuse *z, int g, const Op *o, bool *fits);
void fuse_remember_fit(const Fuse *z, int g, const Op *o, bool fits);

/* ---- fuse_state.c: writing; each change makes the memos stale --------------------------------------------------- */

/* For the fields found before and during the walk; homes and groups change through the functions below. */
Node *fuse_edit(Fuse *z, const Op *o);
int fuse_push_group(Fuse *z, Group group);
void fuse_pop_group(Fuse *z);
void fuse_set_kind(Fuse *z, int g, KernelKind kind, Dim segment);
/* Whether |walk| is here for the first time.  Walks are numbered by Fuse.walks; no memo depends on them. */
bool fuse_visit(Fuse *z, const Op *o, int walk);
/* Its operands have been placed, or are pending. */
void fuse_set_pending(Fuse *z, const Op *o);
/* Appends the op to the group, which becomes its home. */
void fuse_put(Fuse *z, int g, const Op *o, bool reduced);
/* The same for |copy|, which group |g| reads instead of the copied op |of|. */
void fuse_put_copy(Fuse *z, int g, const Op *of, const Op *copy);
/* Replaces the group's ops; each of them is at home there from now on. */
void fuse_set_ops(Fuse *z, int g, OpIds ops);
/* A new op like |o| with a result of its own, in no group. */
Op *fuse_clone(Fuse *z, const Op *o);
/* A cast of |v| to its own dtype, pending. */
Op *fuse_new_copy(Fuse *z, Val v);

/* ---- fuse_legality.c -------------------------------------------------------------------------------------------- */

/* How a reduction walks: along a row, down the rows, or to a flag.  [N] is rows of one column, [C] is one row. */
typedef enum Reduction { REDUCTION_NONE, REDUCTION_ROW, REDUCTION_COLUMN, REDUCTION_FLAG } Reduction;
Reduction fuse_reduction(const Func *f, const Op *o);
bool fuse_is_scalar(const Func *f, const Op *o);
/* Kind and space of a kernel that starts with |o|. */
Group fuse_group_for(const Func *f, const Op *o);
/* What ops take of a kernel's room. */
typedef struct FuseLoad {
    int ops, moves;
} FuseLoad;
FuseLoad fuse_load_of(const Fuse *z, int g, const Op *o);
/* Whether the group can take so much more. */
bool fuse_has_room(const Fuse *z, int g, FuseLoad more);
/* Whether a kernel of the group's kind and space can hold the op, if it has room. */
bool fuse_accepts(const Fuse *z, int g, const Op *o);
/* Whether an op that is computed in the group may be an operand of |user| there. */
bool fuse_may_feed(const Fuse *z, int g, const Op *user, const Op *o);
/* Whether the group's code can assign element (r, c) of a state from |value|. */
bool fuse_accepts_assign(const Fuse *z, int g, Val value);
/* Makes a tile kernel the row or column kernel that reduction |o| of its values needs; false: it cannot become one. */
bool fuse_convert(Fuse *z, int g, const Op *o);
/* What Node.reduced would be in the group. */
bool fuse_is_reduced(const Fuse *z, int g, const Op *o);

/* ---- fuse_place.c ----------------------------------------------------------------------------------------------- */

/* Whether the group can take the op and the pending ops that it needs, and has room for all of them. */
bool fuse_fits(Fuse *z, int g, const Op *o);
/* Adds the op; pending ops that it needs join the group too, or get kernels before it. */
void fuse_append(Fuse *z, int g, Op *o);
/* Adds the op if the group can take it, if need be as a row or column kernel. */
bool fuse_join(Fuse *z, int g, Op *o);
/* A new group for |o|, which is not added yet; before it, groups for pending ops that |o| needs and that it cannot
 * hold. */
int fuse_open(Fuse *z, const Op *o);
int fuse_open_early(Fuse *z, const Op *o);
/* Gives a pending op a kernel. */
void fuse_flush(Fuse *z, Op *o);

/* Gives what is still pending a kernel, then places the assigns. */
void fuse_place_assigns(Fuse *z, const OpId *body, int count);

/* ---- fuse_strided.c --------------------------------------------------------------------------------------------- */

/* Sets Fuse.strided. */
void fuse_find_strided(Fuse *z);

/* ---- fuse_attention.c -------------------------------------------------------------------------------------------- */

/* By value id: whether the kernel of the attention that it comes from stores it so. */
bool *attention_stored(const Func *f, Arena *a);

/* ---- fuse_order.c ----------------------------------------------------------------------------------------------- */

/* Places what runs before all other kernels. */
void fuse_hoist(Fuse *z);
/* Sets not_before and meeting_group of the ops of the region that starts at body[at]; their operands from other regions
 * have been placed. */
void fuse_delay(Fuse *z, const OpId *body, int count, int at);

/* ---- fuse_memory.c ---------------------------------------------------------------------------------------------- */

void fuse_recompute(Fuse *z);
void fuse_inline(Fuse *z);

#endif
