/* fuse_place.c: adding an op to a group, with the pending ops that it needs.
 *
 * A pending op that the new op reads joins the same group if it can be an operand there.  If it cannot, it gets a
 * kernel of its own first: before all others if it depends on nothing that kernels make, else just before the new
 * op's group.  A copied op that it reads is copied into the group.
 */
#include "passes/kernels/fuse.h"

/* ---- does it fit ------------------------------------------------------------------------------------------------ */

/* A pending op that needs nothing from any kernel can run before all of them. */
static bool can_be_early(const Fuse *z, const Op *o) {
    return !fuse_node(z, o)->guard.id && fuse_latest_input(z, o, false) < 0;
}

static bool can_pull(const Fuse *z, int g, const Op *user, const Op *pending) {
    return fuse_may_feed(z, g, user, pending) && fuse_fits(z, g, pending);
}

/* A pending operand of |o| that can neither join group |g| nor run before it; NULL: there is none. */
static Op *misfit(const Fuse *z, int g, const Op *o) {
    for (int i = 0; i < o->n_in; i++) {
        Op *def = fuse_maker(z, o->in[i], false);
        if (!fuse_is_pending(z, def) || (can_be_early(z, def) && !fuse_group(z, g)->early)) continue;
        if (!can_pull(z, g, o, def)) return def;
    }
    return NULL;
}

bool fuse_fits(const Fuse *z, int g, const Op *o) {
    bool fits;
    if (fuse_recall_fit(z, g, o, &fits)) return fits;
    bool in_time = fuse_group(z, g)->guard.id == fuse_node(z, o)->guard.id && fuse_latest_input(z, o, false) <= g;
    fits = in_time && fuse_accepts(z, g, o) && !misfit(z, g, o);
    fuse_remember_fit(z, g, o, fits);
    return fits;
}

/* ---- adding it -------------------------------------------------------------------------------------------------- */

static void note_reader(Fuse *z, Val v, int g) {
    if ((int)v.id >= z->value_count) return;
    Ints *r = &z->readers[v.id];
    if (!r->len || r->data[r->len - 1] != g) vec_push(z->a, r, g);
}

static Val settle(Fuse *z, int g, const Op *user, Val v);

static Val copy_into(Fuse *z, int g, const Op *user, Op *o) {
    const Group *group = fuse_group(z, g);
    for (int i = 0; i < group->copies.len; i++)
        if (group->copies.data[i].of.id == o->out[0].id) return group->copies.data[i].copy;
    Val source = fuse_node(z, o)->source;
    Op *copy = fuse_node(z, o)->claimed ? fuse_clone(z, o) : o;
    if (source.id) copy->in[0] = settle(z, g, user, source);
    fuse_put_copy(z, g, o, copy);
    return copy->out[0];
}

/* |v| as |user| in group |g| reads it. */
static Val settle(Fuse *z, int g, const Op *user, Val v) {
    Op *def = ir_def(z->f, v);
    if (def && fuse_node(z, def)->copied) return copy_into(z, g, user, def);
    if (fuse_is_pending(z, def)) {
        if (can_pull(z, g, user, def)) fuse_append(z, g, def);
        else fuse_flush(z, def);
    }
    note_reader(z, v, g);
    return v;
}

void fuse_append(Fuse *z, int g, Op *o) {
    for (int i = 0; i < o->n_in; i++)
        if (o->code != OP_assign || i) o->in[i] = settle(z, g, o, o->in[i]);
    fuse_put(z, g, o, fuse_is_reduced(z, g, o));
}

bool fuse_join(Fuse *z, int g, Op *o) {
    if (g < 0 || g >= fuse_group_count(z) || fuse_group(z, g)->early) return false;
    Group was = *fuse_group(z, g);
    if (!fuse_fits(z, g, o) && !(fuse_convert(z, g, o) && fuse_fits(z, g, o))) {
        fuse_set_kind(z, g, was.kind, was.segment);
        return false;
    }
    fuse_append(z, g, o);
    return true;
}

static int open_group(Fuse *z, const Op *o, bool early) {
    Group group = fuse_group_for(z->f, o);
    group.guard = fuse_node(z, o)->guard;
    group.early = early;
    for (;;) {
        int g = fuse_push_group(z, group);
        Op *before = misfit(z, g, o);
        if (!before) return g;
        fuse_pop_group(z);
        fuse_flush(z, before);
    }
}

int fuse_open(Fuse *z, const Op *o) { return open_group(z, o, false); }
int fuse_open_early(Fuse *z, const Op *o) { return open_group(z, o, true); }

void fuse_flush(Fuse *z, Op *o) {
    int g = open_group(z, o, can_be_early(z, o));
    fuse_append(z, g, o);
}
