/* fuse_assign.c: assigns.  They write a state in place, so they come last: behind every reader of the old value, and
 * of casts of it (which the layout pass turns into copies that are written with the parameter).  The same kernel may
 * read it before, element by element. */
#include "passes/kernels/fuse.h"

enum { LATE = 1 << 30 }; /* kernels that are not early come behind all that are */

typedef struct Effects {
    Fuse *z;
    uint32_t *root; /* by value: the state that it is, or is a cast of */
    int *last;      /* by state: when it is read last */
    int *whole;     /* by state: when a product or a move reads it last, at other places than its own */
    int known;
} Effects;

/* When a group runs: 0 is before all. */
static int when(const Fuse *z, int g) { return g < 0 ? 0 : 1 + g + (z->groups.data[g].early ? 0 : LATE); }

/* When |v| is there. */
static int when_made(const Fuse *z, Val v) {
    const Op *def = fuse_behind(z, v, true);
    return def ? when(z, fuse_node(z, def)->home) : 0;
}

static uint32_t root_of(const Effects *e, Val v) { return (int)v.id < e->known ? e->root[v.id] : 0; }

static void note_reads(Effects *e, const Op *o, int g) {
    for (int i = o->code == OP_assign ? 1 : 0; i < o->n_in; i++) {
        uint32_t root = ir_reads_elements(o, i) ? root_of(e, o->in[i]) : 0;
        int now = when(e->z, g);
        if (now > e->last[root]) e->last[root] = now;
        if (!ir_reads_memory(e->z->f, o, i)) continue;
        if (now > e->whole[root]) e->whole[root] = now;
        root = root_of(e, ir_memory_source(e->z->f, o->in[i]));
        if (now > e->whole[root]) e->whole[root] = now;
    }
}

/* Only copies of parameters are kept beside them. */
static void note_root(Effects *e, const Op *o) {
    uint32_t root = o->code == OP_cast ? e->root[o->in[0].id] : 0;
    if (root && ir_state_of(e->z->f, (Val){root})->role == STATE_PARAM) e->root[o->out[0].id] = root;
}

static Effects find_readers(Fuse *z) {
    const Func *f = z->f;
    Effects e = {.z = z, .known = f->values.len};
    e.root = arena_array(z->a, uint32_t, f->values.len + 1);
    e.last = arena_array(z->a, int, f->values.len + 1);
    e.whole = arena_array(z->a, int, f->values.len + 1);
    for (int i = 0; i < f->inputs.len; i++)
        if (ir_value(f, f->inputs.data[i])->kind == VAL_STATE) e.root[f->inputs.data[i].id] = f->inputs.data[i].id;
    for (int i = 1; i < f->ops.len; i++) note_root(&e, ir_op(f, (OpId){(uint32_t)i}));
    for (int g = 0; g < z->groups.len; g++)
        for (int i = 0; i < z->groups.data[g].ops.len; i++) note_reads(&e, ir_op(f, z->groups.data[g].ops.data[i]), g);
    return e;
}

static bool is_pending(const Fuse *z, const Op *o) { return o && fuse_node(z, o)->home == PENDING; }

/* Whether what is pending behind |v| reads a state other than |target|. */
static bool reads_other_state(const Fuse *z, Val v, Val target) {
    const Value *value = ir_value(z->f, v);
    if (value->kind == VAL_STATE) return v.id != target.id;
    const Op *o = ir_def(z->f, v);
    if (!o || (fuse_node(z, o)->home != PENDING && !fuse_node(z, o)->copied)) return false;
    for (int i = 0; i < o->n_in; i++)
        if (ir_reads_elements(o, i) && reads_other_state(z, o->in[i], target)) return true;
    return false;
}

/* assign(a, %b): the old b, which an assign to b would overwrite: a copy is made first. */
static void copy_state(Fuse *z, Op *assign) {
    Val v = assign->in[1];
    if (ir_value(z->f, v)->kind != VAL_STATE) return;
    Op *copy = ir_op_new(z->f, OP_cast, &v, 1);
    z->f->body.len--;
    ir_result(z->f, copy, NULL, ir_dtype(z->f, v), *ir_shape(z->f, v));
    copy->path = assign->path;
    copy->pos = assign->pos;
    vec_push(z->a, &z->nodes, ((Node){.home = PENDING, .wait = -1}));
    assign->in[1] = copy->out[0];
    fuse_flush(z, copy);
}

static void mark_behind(const Fuse *z, Val v, bool *marked) {
    const Op *o = ir_def(z->f, v);
    if (!o || (fuse_node(z, o)->home != PENDING && !fuse_node(z, o)->copied)) return;
    marked[o->id.id] = true;
    for (int i = 0; i < o->n_in; i++) mark_behind(z, o->in[i], marked);
}

/* All but |own|.  An op whose user is pending as well comes with that. */
static void flush_pending(Fuse *z, const OpId *body, int count, const bool *own) {
    bool *comes = arena_array(z->a, bool, z->f->ops.len + 1);
    for (int i = 0; i < count; i++) {
        const Op *o = ir_op(z->f, body[i]);
        for (int n = 0; n < o->n_in && is_pending(z, o) && !own[o->id.id]; n++) {
            const Op *def = fuse_behind(z, o->in[n], false);
            if (def) comes[def->id.id] = true;
        }
    }
    for (int i = 0; i < count; i++) {
        Op *o = ir_op(z->f, body[i]);
        if (is_pending(z, o) && !own[o->id.id] && !comes[o->id.id]) fuse_flush(z, o);
    }
}

/* What is pending gets a kernel now, so that all readers are known, unless it only serves an assign to the state that
 * it reads. */
static void settle_pending(Fuse *z, const OpId *body, int count) {
    bool *own = arena_array(z->a, bool, z->f->ops.len + count + 1);
    for (int i = 0; i < count; i++) {
        Op *o = ir_op(z->f, body[i]);
        if (o->code != OP_assign) continue;
        copy_state(z, o);
        if (!reads_other_state(z, o->in[1], o->in[0])) mark_behind(z, o->in[1], own);
        else if (is_pending(z, fuse_behind(z, o->in[1], true))) fuse_flush(z, fuse_behind(z, o->in[1], true));
    }
    flush_pending(z, body, count, own);
}

/* Whether the assign may stand in group |g|. */
static bool fits(const Effects *e, int g, const Op *o) {
    const Fuse *z = e->z;
    const Group *group = &z->groups.data[g];
    uint32_t state = o->in[0].id;
    const Op *def = fuse_behind(z, o->in[1], false);
    int now = when(z, g);
    if (group->guard.id != o->pred.id || (o->pred.id && now <= when_made(z, o->pred))) return false;
    if (now < e->last[state] || now <= e->whole[state] || now < when_made(z, o->in[1])) return false;
    if (is_pending(z, def) && !fuse_fits(z, g, def)) return false;
    return fuse_accepts_assign(z, group, o->in[1]);
}

/* The kernel that makes the value, else, for scalars, the first that may: else a new one. */
static int find_group(const Effects *e, const Op *o) {
    const Fuse *z = e->z;
    const Op *def = fuse_behind(z, o->in[1], true);
    int home = def ? fuse_node(z, def)->home : NOWHERE;
    if (home >= 0 && fits(e, home, o)) return home;
    bool scalar = !ir_shape(z->f, o->in[1])->rank;
    for (int g = 0; g < z->groups.len && scalar; g++)
        if (z->groups.data[g].kind == KERNEL_SCALAR && fits(e, g, o)) return g;
    return -1;
}

void fuse_place_effects(Fuse *z, const OpId *body, int count) {
    settle_pending(z, body, count);
    Effects e = find_readers(z);
    for (int i = 0; i < count; i++) {
        Op *o = ir_op(z->f, body[i]);
        if (o->code != OP_assign) continue;
        int g = z->fusing ? find_group(&e, o) : -1;
        if (g < 0) {
            fuse_node(z, o)->guard = o->pred;
            g = fuse_open(z, o);
        }
        int from = z->groups.data[g].ops.len;
        fuse_append(z, g, o);
        for (int j = from; j < z->groups.data[g].ops.len; j++)
            note_reads(&e, ir_op(z->f, z->groups.data[g].ops.data[j]), g);
    }
}
