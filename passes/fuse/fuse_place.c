/* fuse_place.c: adding an op to a group, with the pending ops that it needs; and assigns.
 *
 * A pending op that the new op reads joins the same group if it can be an operand there.  If it cannot, it gets a
 * kernel of its own first: before all others if it depends on nothing that kernels make, else just before the new
 * op's group; so do those for which a kernel that begins with the new op has no room.  A copied op that it reads is
 * copied into the group.
 */
#include "passes/fuse/fuse.h"

/* ---- does it fit ------------------------------------------------------------------------------------------------ */

/* A pending op that needs nothing from any kernel can run before all of them. */
static bool can_be_early(const Fuse *z, const Op *o) {
    return !fuse_node(z, o)->guard.id && fuse_latest_input(z, o, false) < 0;
}

static bool may_hold(const Fuse *z, int g, const Op *o);

static bool can_pull(const Fuse *z, int g, const Op *user, const Op *pending) {
    return fuse_may_feed(z, g, user, pending) && may_hold(z, g, pending);
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

/* But for room, which is asked once for all that an op brings along: were each of them asked for as it is added, the
 * last of them could find none, and would come after what reads it. */
static bool may_hold(const Fuse *z, int g, const Op *o) {
    bool fits;
    if (fuse_recall_fit(z, g, o, &fits)) return fits;
    bool in_time = fuse_group(z, g)->guard.id == fuse_node(z, o)->guard.id && fuse_latest_input(z, o, false) <= g;
    fits = in_time && fuse_accepts(z, g, o) && !misfit(z, g, o);
    fuse_remember_fit(z, g, o, fits);
    return fits;
}

/* Adds what |o| takes of group |g|, with the pending ops that it brings along. */
static void add_load(Fuse *z, int g, const Op *o, int walk, FuseLoad *sum) {
    const FuseLoad own = fuse_load_of(z, g, o);
    sum->ops += own.ops;
    sum->moves += own.moves;
    for (int i = 0; i < o->n_in; i++) {
        const Op *def = fuse_maker(z, o->in[i], false);
        if (!fuse_is_pending(z, def) || !can_pull(z, g, o, def) || !fuse_visit(z, def, walk)) continue;
        add_load(z, g, def, walk, sum);
    }
}

static FuseLoad load_of(Fuse *z, int g, const Op *o) {
    FuseLoad sum = {0};
    add_load(z, g, o, ++z->walks, &sum);
    return sum;
}

bool fuse_fits(Fuse *z, int g, const Op *o) { return may_hold(z, g, o) && fuse_has_room(z, g, load_of(z, g, o)); }

/* Of the pending operands of |o| that come along into group |g| the one that brings most; NULL: none does. */
static Op *heaviest(Fuse *z, int g, const Op *o) {
    Op *found = NULL;
    for (int i = 0, most = 0; i < o->n_in; i++) {
        Op *def = fuse_maker(z, o->in[i], false);
        if (!fuse_is_pending(z, def) || !can_pull(z, g, o, def)) continue;
        const FuseLoad load = load_of(z, g, def);
        const int weight = load.ops * FUSE_MAX_MOVES + load.moves * z->kernel_ops;
        if (weight > most) found = def, most = weight;
    }
    return found;
}

/* ---- adding it -------------------------------------------------------------------------------------------------- */

static void note_reader(Fuse *z, Val v, int g) {
    if ((int)v.id >= z->value_count) return;
    Ints *r = &z->readers[v.id];
    if (!r->len || r->data[r->len - 1] != g) vec_push(z->a, r, g);
}

static Val settle(Fuse *z, int g, const Op *user, Val v);
static void append(Fuse *z, int g, Op *o);

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
        if (can_pull(z, g, user, def)) append(z, g, def);
        else fuse_flush(z, def);
    }
    note_reader(z, v, g);
    return v;
}

static void append(Fuse *z, int g, Op *o) {
    for (int i = 0; i < o->n_in; i++)
        if (o->code != OP_assign || i) o->in[i] = settle(z, g, o, o->in[i]);
    fuse_put(z, g, o, fuse_is_reduced(z, g, o));
}

/* What |o| brings along, but for pending ops that cannot be in the group: these get their kernels before anything joins
 * it, because what joins may be an operand of theirs (a vector beside its own transpose), and they would come after. */
static void flush_before(Fuse *z, int g, const Op *o, int walk) {
    for (int i = o->code == OP_assign; i < o->n_in; i++) {
        Op *def = fuse_maker(z, o->in[i], false);
        if (!fuse_is_pending(z, def)) continue;
        if (!can_pull(z, g, o, def)) {
            if (can_be_early(z, def) && !fuse_group(z, g)->early) fuse_flush(z, def);
        } else if (fuse_visit(z, def, walk)) {
            flush_before(z, g, def, walk);
        }
    }
}

void fuse_append(Fuse *z, int g, Op *o) {
    flush_before(z, g, o, ++z->walks);
    append(z, g, o);
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
        if (!before && !fuse_has_room(z, g, load_of(z, g, o))) before = heaviest(z, g, o);
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

/* ---- assigns ---------------------------------------------------------------------------------------------------- */

/* An assign writes a state in place, so it comes after every reader of the old value, and of casts of it (which the
 * layout pass turns into copies that are written together with the parameter).  Its own kernel may read the old value
 * first, element by element.
 *
 *   k01 { %g = contract(%dy, %x; ta = true) }      k01 { %g = contract(%dy, %x; ta = true)
 *   k02 { %d = contract(%dy, %w) }            =>         %n = sub(%w, %g) }           still reads the old %w
 *   %n = sub(%w, %g)                               k02 { %d = contract(%dy, %w) }
 *   assign(%w, %n)                                 k03 { assign(%w, %n) }             after k02
 */

enum { LATE = 1 << 30 }; /* kernels that are not early run after all that are */

typedef struct Readers { /* when states are read */
    Fuse *z;
    uint32_t *root; /* by value id: the state that it is, or is a cast of; 0: neither */
    int *last;      /* by state's value id: when it is read last */
    int *whole;     /* by state's value id: when a product or movement, which reads other elements too, reads it last */
    int known;      /* values of |root| */
} Readers;

/* When a group runs: 0 is before all. */
static int when(const Fuse *z, int g) { return g < 0 ? 0 : 1 + g + (fuse_group(z, g)->early ? 0 : LATE); }

/* When |v| has been made. */
static int when_made(const Fuse *z, Val v) {
    const Op *def = fuse_maker(z, v, true);
    return def ? when(z, fuse_node(z, def)->home) : 0;
}

/* When everything that |v| is computed from has been made, where it is pending itself. */
static int when_needed(const Fuse *z, Val v) {
    const Op *def = fuse_maker(z, v, true);
    int latest = fuse_is_pending(z, def) ? 0 : when_made(z, v);
    for (int i = 0; fuse_is_pending(z, def) && i < def->n_in; i++) {
        int needed = ir_reads_elements(def, i) ? when_needed(z, def->in[i]) : 0;
        if (needed > latest) latest = needed;
    }
    return latest;
}

static uint32_t root_of(const Readers *r, Val v) { return (int)v.id < r->known ? r->root[v.id] : 0; }

static void note_reads(Readers *r, const Op *o, int g) {
    for (int i = o->code == OP_assign ? 1 : 0; i < o->n_in; i++) {
        uint32_t root = ir_reads_elements(o, i) ? root_of(r, o->in[i]) : 0;
        int now = when(r->z, g);
        if (now > r->last[root]) r->last[root] = now;
        if (!ir_reads_memory(r->z->f, o, i)) continue;
        if (now > r->whole[root]) r->whole[root] = now;
        root = root_of(r, ir_memory_source(r->z->f, o->in[i]));
        if (now > r->whole[root]) r->whole[root] = now;
    }
}

/* The layout pass keeps copies of parameters only. */
static void note_root(Readers *r, const Op *o) {
    uint32_t root = o->code == OP_cast ? r->root[o->in[0].id] : 0;
    if (root && ir_state_of(r->z->f, (Val){root})->role == STATE_PARAM) r->root[o->out[0].id] = root;
}

static Readers find_readers(Fuse *z) {
    const Func *f = z->f;
    Readers r = {.z = z, .known = f->values.len};
    r.root = arena_array(z->a, uint32_t, f->values.len + 1);
    r.last = arena_array(z->a, int, f->values.len + 1);
    r.whole = arena_array(z->a, int, f->values.len + 1);
    for (int i = 0; i < f->inputs.len; i++)
        if (ir_value(f, f->inputs.data[i])->kind == VAL_STATE) r.root[f->inputs.data[i].id] = f->inputs.data[i].id;
    for (int i = 1; i < f->ops.len; i++) note_root(&r, ir_op(f, (OpId){(uint32_t)i}));
    for (int g = 0; g < fuse_group_count(z); g++)
        for (int i = 0; i < fuse_group(z, g)->ops.len; i++) note_reads(&r, fuse_group_op(z, g, i), g);
    return r;
}

/* Whether |v|, or the pending ops that it is computed from, reads a state other than |target|. */
static bool reads_other_state(const Fuse *z, Val v, Val target) {
    const Value *value = ir_value(z->f, v);
    if (value->kind == VAL_STATE) return v.id != target.id;
    const Op *o = ir_def(z->f, v);
    if (!o || (!fuse_is_pending(z, o) && !fuse_node(z, o)->copied)) return false;
    for (int i = 0; i < o->n_in; i++)
        if (ir_reads_elements(o, i) && reads_other_state(z, o->in[i], target)) return true;
    return false;
}

/* assign(a, %b) reads the old b, which an assign to b would overwrite: a copy is made first. */
static void copy_state(Fuse *z, Op *assign) {
    Val v = assign->in[1];
    if (ir_value(z->f, v)->kind != VAL_STATE) return;
    Op *copy = fuse_new_copy(z, v);
    copy->path = assign->path;
    copy->pos = assign->pos;
    assign->in[1] = copy->out[0];
    fuse_flush(z, copy);
}

static void mark_pending_makers(const Fuse *z, Val v, bool *marked) {
    const Op *o = ir_def(z->f, v);
    if (!o || (!fuse_is_pending(z, o) && !fuse_node(z, o)->copied)) return;
    marked[o->id.id] = true;
    for (int i = 0; i < o->n_in; i++) mark_pending_makers(z, o->in[i], marked);
}

/* All but |own|.  An op whose user is pending too joins that user's kernel. */
static void flush_pending(Fuse *z, const OpId *body, int count, const bool *own) {
    bool *comes = arena_array(z->a, bool, z->f->ops.len + 1);
    for (int i = 0; i < count; i++) {
        const Op *o = ir_op(z->f, body[i]);
        for (int n = 0; n < o->n_in && fuse_is_pending(z, o) && !own[o->id.id]; n++) {
            const Op *def = fuse_maker(z, o->in[n], false);
            if (def) comes[def->id.id] = true;
        }
    }
    for (int i = 0; i < count; i++) {
        Op *o = ir_op(z->f, body[i]);
        if (fuse_is_pending(z, o) && !own[o->id.id] && !comes[o->id.id]) fuse_flush(z, o);
    }
}

/* Pending ops get kernels now, so that all readers of states are known; except those that only serve an assign to the
 * state that they read. */
static void settle_pending(Fuse *z, const OpId *body, int count) {
    bool *own = arena_array(z->a, bool, z->f->ops.len + count + 1);
    for (int i = 0; i < count; i++) {
        Op *o = ir_op(z->f, body[i]);
        if (o->code != OP_assign) continue;
        copy_state(z, o);
        if (!reads_other_state(z, o->in[1], o->in[0])) mark_pending_makers(z, o->in[1], own);
        else if (fuse_is_pending(z, fuse_maker(z, o->in[1], true))) fuse_flush(z, fuse_maker(z, o->in[1], true));
    }
    flush_pending(z, body, count, own);
}

/* Whether the assign may be in group |g|. */
static bool fits(const Readers *r, int g, const Op *o) {
    Fuse *z = r->z;
    const Group *group = fuse_group(z, g);
    uint32_t state = o->in[0].id;
    const Op *def = fuse_maker(z, o->in[1], false);
    int now = when(z, g);
    if (group->guard.id != o->pred.id || (o->pred.id && now <= when_made(z, o->pred))) return false;
    if (now < r->last[state] || now <= r->whole[state] || now < when_needed(z, o->in[1])) return false;
    if (fuse_is_pending(z, def) && !fuse_fits(z, g, def)) return false;
    return fuse_accepts_assign(z, g, o->in[1]);
}

/* The group that makes the value; else, for scalars, the first that may; -1: a new one. */
static int find_group(const Readers *r, const Op *o) {
    const Fuse *z = r->z;
    const Op *def = fuse_maker(z, o->in[1], true);
    if (ir_is_row_assign(o)) return -1;
    int home = def ? fuse_node(z, def)->home : NOWHERE;
    if (home >= 0 && fits(r, home, o)) return home;
    bool scalar = !ir_shape(z->f, o->in[1])->rank;
    for (int g = 0; g < fuse_group_count(z) && scalar; g++)
        if (fuse_group(z, g)->kind == KERNEL_SCALAR && fits(r, g, o)) return g;
    return -1;
}

void fuse_place_assigns(Fuse *z, const OpId *body, int count) {
    settle_pending(z, body, count);
    Readers r = find_readers(z);
    for (int i = 0; i < count; i++) {
        Op *o = ir_op(z->f, body[i]);
        if (o->code != OP_assign) continue;
        int g = z->fusing ? find_group(&r, o) : -1;
        if (g < 0) {
            fuse_edit(z, o)->guard = o->pred;
            g = fuse_open(z, o);
        }
        int from = fuse_group(z, g)->ops.len;
        fuse_append(z, g, o);
        for (int j = from; j < fuse_group(z, g)->ops.len; j++) note_reads(&r, fuse_group_op(z, g, j), g);
    }
}
