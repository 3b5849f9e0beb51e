/* fuse_delay.c: an op whose result only meets something later waits for it, so that no tensor lies in memory in between.
 *
 *   %m = lt(%zero, %y)         y is an activation, kept anyway; the mask would be one more tensor
 *   %d = select(%m, %dy, ..)   so lt waits for the kernel that makes dy, and stays in a register
 *
 * Looks at one region: the core ops of one graph op.  Results of folds and scalars are small: they do not wait.
 * What folds is tried in the kernel that its users need besides: there its result stays in a register too.
 */
#include "passes/kernels/fuse.h"

typedef struct Run { /* the ops of the region: body[from .. to) */
    const OpId *body;
    int from, to;
    int *bound; /* by position: the latest group that it or the ops before it in the region need */
    int *wait;  /* by position; NOBODY: no user yet */
} Run;

enum { NOBODY = INT32_MAX };

/* Position in the run of the op that makes |v|, or -1. */
static int position_of(const Fuse *z, const Run *run, Val v) {
    const Op *def = fuse_behind(z, v, true);
    int position = def ? fuse_node(z, def)->position : -1;
    return position >= run->from && position < run->to ? position - run->from : -1;
}

static void find_bounds(const Fuse *z, Run *run) {
    for (int i = run->from; i < run->to; i++) {
        const Op *o = ir_op(z->f, run->body[i]);
        int *bound = &run->bound[i - run->from];
        *bound = -1;
        for (int n = 0; n < o->n_in; n++) {
            if (!ir_reads_elements(o, n)) continue;
            int inside = position_of(z, run, o->in[n]);
            int made = inside >= 0 ? run->bound[inside] : fuse_made_in(z, o->in[n], true);
            if (made > *bound) *bound = made;
        }
    }
}

static bool is_small(const Fuse *z, const Op *o) {
    return fuse_fold(z->f, o) != FOLD_NONE || (o->n_out && !ir_shape(z->f, o->out[0])->rank);
}

/* From the last op to the first: an op waits as long as the user that waits least. */
static void find_waits(Fuse *z, Run *run) {
    for (int i = run->to - 1; i >= run->from; i--) {
        const Op *o = ir_op(z->f, run->body[i]);
        int at = i - run->from;
        bool used_outside = fuse_node(z, o)->last_user >= run->to;
        bool free_to_wait = run->wait[at] != NOBODY && !used_outside && !is_small(z, o);
        int until = free_to_wait && run->wait[at] > run->bound[at] ? run->wait[at] : run->bound[at];
        fuse_node(z, o)->wait = until;
        fuse_node(z, o)->meets = run->wait[at] == NOBODY ? -1 : run->wait[at];
        for (int n = 0; n < o->n_in; n++) {
            int inside = ir_reads_elements(o, n) ? position_of(z, run, o->in[n]) : -1;
            if (inside >= 0 && until < run->wait[inside]) run->wait[inside] = until;
        }
    }
}

void fuse_find_waits(Fuse *z, const OpId *body, int count, int at) {
    Run run = {.body = body, .from = at, .to = at};
    uint32_t region = ir_op(z->f, body[at])->region;
    while (run.to < count && ir_op(z->f, body[run.to])->region == region) run.to++;
    run.bound = arena_array(z->a, int, run.to - run.from);
    run.wait = arena_array(z->a, int, run.to - run.from);
    for (int i = 0; i < run.to - run.from; i++) run.wait[i] = NOBODY;
    find_bounds(z, &run);
    find_waits(z, &run);
}
