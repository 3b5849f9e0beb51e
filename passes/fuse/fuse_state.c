/* fuse_state.c: groups and homes, and the only functions that change them.
 *
 * Two questions about a pending op (which group makes what it needs, does it fit a group) are asked many times during
 * the walk and walk over all pending ops that it reads, so their answers are kept in its node.  A change of any group
 * may make an answer wrong.  Every function below that changes one therefore counts Fuse.change, and an answer of
 * another count is not used.
 */
#include "passes/fuse/fuse.h"

/* ---- reading ---------------------------------------------------------------------------------------------------- */

const Group *fuse_group(const Fuse *z, int g) { return &z->groups.data[g]; }

int fuse_group_count(const Fuse *z) { return z->groups.len; }

Op *fuse_group_op(const Fuse *z, int g, int i) { return ir_op(z->f, z->groups.data[g].ops.data[i]); }

static Node *node(const Fuse *z, const Op *o) { return &z->nodes.data[o->id.id]; }

const Node *fuse_node(const Fuse *z, const Op *o) { return node(z, o); }

int fuse_home_of(const Fuse *z, Val v) {
    const Op *def = ir_def(z->f, v);
    return def ? node(z, def)->home : NOWHERE;
}

bool fuse_is_pending(const Fuse *z, const Op *o) { return o && node(z, o)->home == PENDING; }

int fuse_depth(const Fuse *z, const Op *o) {
    int depth = 0;
    for (int i = 0; i < o->n_in; i++) {
        const Op *def = fuse_maker(z, o->in[i], false);
        if (fuse_is_pending(z, def) && node(z, def)->depth > depth) depth = node(z, def)->depth;
    }
    return depth;
}

Op *fuse_maker(const Fuse *z, Val v, bool data) {
    Op *def = ir_def(z->f, v);
    while (def && node(z, def)->copied) {
        Val source = node(z, def)->source;
        def = source.id && (!data || ir_reads_elements(def, 0)) ? ir_def(z->f, source) : NULL;
    }
    return def;
}

int fuse_made_in(const Fuse *z, Val v, bool data) {
    const Op *def = fuse_maker(z, v, data);
    Node *n = def ? node(z, def) : NULL;
    if (!n || n->home == NOWHERE) return -1;
    if (n->home != PENDING) return z->groups.data[n->home].early ? -1 : n->home;
    if (n->made.at != z->change) n->made.group = fuse_latest_input(z, def, false);
    n->made.at = z->change;
    return n->made.group;
}

int fuse_opened_in(const Fuse *z, const Op *o) {
    int latest = -1;
    for (int i = 0; o->after && i < o->after->count; i++) {
        int made = fuse_made_in(z, o->after->at[i], true);
        if (made > latest) latest = made;
    }
    return latest;
}

int fuse_latest_input(const Fuse *z, const Op *o, bool data) {
    Val guard = node(z, o)->guard;
    int latest = guard.id ? fuse_made_in(z, guard, true) : -1;
    for (int i = 0; i < o->n_in; i++) {
        int made = data && !ir_reads_elements(o, i) ? -1 : fuse_made_in(z, o->in[i], data);
        if (made > latest) latest = made;
    }
    int opened = fuse_opened_in(z, o);
    return opened > latest ? opened : latest;
}

bool fuse_recall_fit(const Fuse *z, int g, const Op *o, bool *fits) {
    const Node *n = node(z, o);
    *fits = n->fit.fits;
    return n->fit.at == z->change && n->fit.group == g;
}

void fuse_remember_fit(const Fuse *z, int g, const Op *o, bool fits) {
    Node *n = node(z, o);
    n->fit.at = z->change;
    n->fit.group = g;
    n->fit.fits = fits;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static void add_node(Fuse *z, int home) {
    vec_push(z->a, &z->nodes, ((Node){.home = home, .not_before = -1, .meeting_group = -1}));
}

Fuse fuse_new(Func *f, const PassOptions *options) {
    Arena *a = arena_child(f->module->arena);
    Fuse z = {.f = f, .a = a, .fusing = !f->module->plain[STAGE_FUSE], .value_count = f->values.len, .change = 1};
    z.kernel_ops = options->kernel_ops ? options->kernel_ops : KERNEL_MAX_OPS;
    z.readers = arena_array(a, Ints, f->values.len + 1);
    z.product_reads = arena_array(a, bool, f->values.len + 1);
    for (int i = 0; i < f->ops.len; i++) add_node(&z, NOWHERE);
    return z;
}

void fuse_free(Fuse *z) { arena_free(z->a); }

Node *fuse_edit(Fuse *z, const Op *o) {
    z->change++;
    return node(z, o);
}

bool fuse_visit(Fuse *z, const Op *o, int walk) {
    const bool first = node(z, o)->walk != walk;
    node(z, o)->walk = walk;
    return first;
}

int fuse_push_group(Fuse *z, Group group) {
    z->change++;
    vec_push(z->a, &z->groups, group);
    return z->groups.len - 1;
}

void fuse_pop_group(Fuse *z) {
    z->change++;
    z->groups.len--;
}

void fuse_set_kind(Fuse *z, int g, KernelKind kind, Dim segment) {
    z->change++;
    z->groups.data[g].kind = kind;
    z->groups.data[g].segment = segment;
}

/* No memo becomes stale: ops that read |o| come later in the body and have not been looked up yet. */
void fuse_set_pending(Fuse *z, const Op *o) {
    node(z, o)->home = PENDING;
    node(z, o)->depth = 1 + fuse_depth(z, o);
}

void fuse_put(Fuse *z, int g, const Op *o, bool reduced) {
    z->change++;
    node(z, o)->home = g;
    node(z, o)->reduced = reduced;
    vec_push(z->a, &z->groups.data[g].ops, o->id);
}

void fuse_put_copy(Fuse *z, int g, const Op *of, const Op *copy) {
    node(z, of)->claimed = true;
    fuse_put(z, g, copy, false);
    vec_push(z->a, &z->groups.data[g].copies, ((Copy){of->out[0], copy->out[0]}));
}

void fuse_set_ops(Fuse *z, int g, OpIds ops) {
    z->change++;
    z->groups.data[g].ops = ops;
    for (int i = 0; i < ops.len; i++) z->nodes.data[ops.data[i].id].home = g;
}

/* ir_op_new appends to the body; here the op belongs to a group instead. */
static void take_off_body(Fuse *z, int home) {
    z->f->body.len--;
    add_node(z, home);
}

Op *fuse_clone(Fuse *z, const Op *o) {
    Op *copy = op_like(z->f, o, o->in);
    ir_result(z->f, copy, NULL, ir_dtype(z->f, o->out[0]), *ir_shape(z->f, o->out[0]));
    take_off_body(z, NOWHERE);
    return copy;
}

Op *fuse_new_copy(Fuse *z, Val v) {
    Op *copy = ir_op_new(z->f, OP_cast, &v, 1);
    ir_result(z->f, copy, NULL, ir_dtype(z->f, v), *ir_shape(z->f, v));
    take_off_body(z, PENDING);
    return copy;
}
