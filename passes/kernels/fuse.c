/* fuse: groups core ops into kernels (docs/design/kernels.md).
 * needs: lower.  breaks: the order of the body.
 *
 *   %1 = contract(%x, %w; tb = true) : f32[N, 512]        kernel k01 product "fc1: linear + bias + relu" {
 *   %2 = add(%1, %fc1.bias)          : f32[N, 512]   =>     %1 .. %4
 *   %4 = max(%2, %3)                 : f32[N, 512]        }
 *
 * Walks the body once.  An op goes into the kernel that makes its latest input, else into a later one that reads one
 * of its inputs, if that kernel's kind and space take it; else it starts a new kernel.  An op whose users all need
 * something later waits with them (fuse_delay.c).
 *   copied   const, iota, extent, views, and casts that change no number cost nothing: each kernel that needs one has its own;
 *            so do products on CUDA that round an input as they load it
 *   pending  an op that reads only inputs and states waits for its first user, and goes where that goes
 *   hoisted  scalars and counts that depend on no tensor and that tensors need run first (fuse_early.c)
 *   guarded  an op that only assigns under predicate p need runs where p is known, in kernels that p skips
 * Nothing is computed twice but what is copied, and what costs less to make again than to keep (fuse_recompute.c).
 * Without fusion every op that is not copied is a kernel.
 */
#include "passes/kernels/fuse.h"
#include "passes/passes.h"

Node *fuse_node(const Fuse *z, const Op *o) { return &z->nodes.data[o->id.id]; }

int fuse_home_of(const Fuse *z, Val v) {
    const Op *def = ir_def(z->f, v);
    return def ? fuse_node(z, def)->home : NOWHERE;
}

Op *fuse_behind(const Fuse *z, Val v, bool data) {
    Op *def = ir_def(z->f, v);
    while (def && fuse_node(z, def)->copied) {
        Val source = fuse_node(z, def)->source;
        def = source.id && (!data || ir_reads_elements(def, 0)) ? ir_def(z->f, source) : NULL;
    }
    return def;
}

static int latest_input(const Fuse *z, const Op *o, bool data);

int fuse_made_in(const Fuse *z, Val v, bool data) {
    const Op *def = fuse_behind(z, v, data);
    Node *n = def ? fuse_node(z, def) : NULL;
    if (!n || n->home == NOWHERE) return -1;
    if (n->home != PENDING) return z->groups.data[n->home].early ? -1 : n->home;
    if (n->made_at != z->change) n->made = latest_input(z, def, false);
    n->made_at = z->change;
    return n->made;
}

/* The latest kernel among those that make what |o| needs; |data|: leaving out operands that only give a shape. */
static int latest_input(const Fuse *z, const Op *o, bool data) {
    Val guard = fuse_node(z, o)->guard;
    int latest = guard.id ? fuse_made_in(z, guard, true) : -1;
    for (int i = 0; i < o->n_in; i++) {
        int made = data && !ir_reads_elements(o, i) ? -1 : fuse_made_in(z, o->in[i], data);
        if (made > latest) latest = made;
    }
    return latest;
}

static bool is_pending(const Fuse *z, const Op *def) { return def && fuse_node(z, def)->home == PENDING; }

/* ---- placing ----------------------------------------------------------------------------------------------------- */

/* A pending op that needs nothing from any kernel can run before all of them. */
static bool can_be_early(const Fuse *z, const Op *o) {
    return !fuse_node(z, o)->guard.id && latest_input(z, o, false) < 0;
}

static bool can_pull(const Fuse *z, int g, const Op *user, const Op *pending) {
    return fuse_may_feed(z, &z->groups.data[g], user, pending) && fuse_fits(z, g, pending);
}

/* A pending input of |o| that can neither go into group |g| nor run before it. */
static Op *misfit(const Fuse *z, int g, const Op *o) {
    for (int i = 0; i < o->n_in; i++) {
        Op *def = fuse_behind(z, o->in[i], false);
        if (!is_pending(z, def) || (can_be_early(z, def) && !z->groups.data[g].early)) continue;
        if (!can_pull(z, g, o, def)) return def;
    }
    return NULL;
}

bool fuse_fits(const Fuse *z, int g, const Op *o) {
    const Group *group = &z->groups.data[g];
    Node *n = fuse_node(z, o);
    if (n->fits_at == z->change && n->fits_group == g) return n->fits;
    bool in_time = group->guard.id == n->guard.id && latest_input(z, o, false) <= g;
    n->fits = in_time && fuse_accepts(z, group, g, o) && !misfit(z, g, o);
    n->fits_at = z->change;
    n->fits_group = g;
    return n->fits;
}

static void note_reader(Fuse *z, Val v, int g) {
    if ((int)v.id >= z->value_count) return;
    Ints *r = &z->readers[v.id];
    if (!r->len || r->data[r->len - 1] != g) vec_push(z->a, r, g);
}

static Val settle(Fuse *z, int g, const Op *user, Val v);

Op *fuse_clone(Fuse *z, const Op *o) {
    Op *copy = op_like(z->f, o, o->in);
    z->f->body.len--; /* it belongs to a kernel */
    ir_result(z->f, copy, NULL, ir_dtype(z->f, o->out[0]), *ir_shape(z->f, o->out[0]));
    vec_push(z->a, &z->nodes, ((Node){.home = NOWHERE, .meets = -1}));
    return copy;
}

static Val copy_into(Fuse *z, int g, const Op *user, Op *o) {
    for (int i = 0; i < z->groups.data[g].copies.len; i++)
        if (z->groups.data[g].copies.data[i].of.id == o->out[0].id) return z->groups.data[g].copies.data[i].copy;
    Node *n = fuse_node(z, o);
    Val source = n->source;
    Op *copy = n->claimed ? fuse_clone(z, o) : o;
    fuse_node(z, o)->claimed = true;
    if (source.id) copy->in[0] = settle(z, g, user, source);
    fuse_node(z, copy)->home = g;
    vec_push(z->a, &z->groups.data[g].ops, copy->id);
    vec_push(z->a, &z->groups.data[g].copies, ((Copy){o->out[0], copy->out[0]}));
    return copy->out[0];
}

/* |v| as |user| in group |g| reads it. */
static Val settle(Fuse *z, int g, const Op *user, Val v) {
    Op *def = ir_def(z->f, v);
    if (def && fuse_node(z, def)->copied) return copy_into(z, g, user, def);
    if (is_pending(z, def)) {
        if (can_pull(z, g, user, def)) fuse_append(z, g, def);
        else fuse_flush(z, def);
    }
    note_reader(z, v, g);
    return v;
}

void fuse_append(Fuse *z, int g, Op *o) {
    for (int i = 0; i < o->n_in; i++)
        if (o->code != OP_assign || i) o->in[i] = settle(z, g, o, o->in[i]);
    z->change++;
    fuse_node(z, o)->folded = fuse_is_folded(z, &z->groups.data[g], g, o);
    fuse_node(z, o)->home = g;
    vec_push(z->a, &z->groups.data[g].ops, o->id);
}

static int open_group(Fuse *z, const Op *o, bool early) {
    Group group = fuse_group_for(z->f, o);
    group.guard = fuse_node(z, o)->guard;
    group.early = early;
    for (;;) {
        vec_push(z->a, &z->groups, group);
        z->change++;
        Op *before = misfit(z, z->groups.len - 1, o);
        if (!before) return z->groups.len - 1;
        z->groups.len--;
        fuse_flush(z, before);
    }
}

int fuse_open(Fuse *z, const Op *o) { return open_group(z, o, false); }
int fuse_open_early(Fuse *z, const Op *o) { return open_group(z, o, true); }

void fuse_flush(Fuse *z, Op *o) {
    bool early = can_be_early(z, o);
    fuse_node(z, o)->home = NOWHERE;
    fuse_append(z, open_group(z, o, early), o);
}

/* Whether group |g| takes the op, if need be as a row or column kernel. */
static bool join(Fuse *z, int g, Op *o) {
    if (g < 0 || g >= z->groups.len || z->groups.data[g].early) return false;
    KernelKind was = z->groups.data[g].kind;
    int64_t segment = z->groups.data[g].segment;
    if (!fuse_fits(z, g, o) && !(fuse_convert(z, g, o) && fuse_fits(z, g, o))) {
        z->groups.data[g].kind = was;
        z->groups.data[g].segment = segment;
        z->change++;
        return false;
    }
    fuse_append(z, g, o);
    return true;
}

/* A kernel behind |latest| that reads one of the op's inputs already. */
static bool join_reader(Fuse *z, int latest, Op *o) {
    for (int i = 0; i < o->n_in; i++) {
        Val v = o->in[i];
        const Op *def = ir_def(z->f, v);
        if (def && fuse_node(z, def)->copied) v = fuse_node(z, def)->source;
        if (!v.id || (int)v.id >= z->value_count || !ir_shape(z->f, v)->rank || !ir_reads_elements(o, i)) continue;
        for (int r = 0; r < z->readers[v.id].len; r++)
            if (z->readers[v.id].data[r] > latest && join(z, z->readers[v.id].data[r], o)) return true;
    }
    return false;
}

/* The last kernel, where it came from the same graph op: what they make meets soon. */
static bool join_sibling(Fuse *z, int latest, Op *o) {
    int last = z->groups.len - 1;
    if (last <= latest || !z->groups.data[last].ops.len || !o->region) return false;
    const Group *g = &z->groups.data[last];
    return ir_op(z->f, g->ops.data[g->ops.len - 1])->region == o->region && join(z, last, o);
}

static void place(Fuse *z, Op *o) {
    int made = latest_input(z, o, true), wait = fuse_node(z, o)->wait, latest = made > wait ? made : wait;
    bool fold = fuse_fold(z->f, o) != FOLD_NONE, scalar = fuse_is_scalar(z->f, o);
    bool leaf = !fold;
    for (int i = 0; i < o->n_in && leaf; i++) leaf = !ir_reads_elements(o, i) || fuse_made_in(z, o->in[i], true) < 0;
    if (z->fusing && !ir_is_product(o)) {
        if (leaf) {
            fuse_node(z, o)->home = PENDING;
            return;
        }
        if (join(z, latest, o) || (fold && join(z, fuse_node(z, o)->meets, o)) || join_reader(z, latest, o)) return;
        if ((fold || scalar) && join(z, z->groups.len - 1, o)) return;
        if (join_sibling(z, latest, o)) return;
    }
    fuse_append(z, fuse_open(z, o), o);
}

/* ---- what the walk needs to know --------------------------------------------------------------------------------- */

static bool is_free(const Fuse *z, const Op *o) {
    if (o->code == OP_const || o->code == OP_iota || o->code == OP_extent) return true;
    if (!z->fusing) return false;
    if (!is_widening(z->f, o)) return ir_is_view(z->f, o);
    Dtype from = ir_dtype(z->f, o->in[0]);
    return (is_float(from) || from == AMP_DT_U8) && is_float(ir_dtype(z->f, o->out[0]));
}

/* An operand that only gives its shape may as well be what was widened. */
static void look_through_casts(const Fuse *z, Op *o) {
    for (int i = 0; i < o->n_in; i++) {
        if (ir_reads_elements(o, i)) continue;
        for (const Op *def = ir_def(z->f, o->in[i]); def && is_widening(z->f, def); def = ir_def(z->f, o->in[i]))
            o->in[i] = def->in[0];
    }
}

/* Operand |i| of |o| must be in memory, or, where it is no product, what it is a view or an exact widening of. */
static void mark_operand(const Fuse *z, const Op *o, int i, bool *in_memory) {
    if (!ir_reads_memory(z->f, o, i)) return;
    in_memory[ir_is_product(o) ? o->in[i].id : ir_memory_source(z->f, o->in[i]).id] = true;
}

/* By value: whether something else than a product reads it. */
static bool *find_read_elsewhere(const Fuse *z) {
    const Func *f = z->f;
    bool *read = arena_array(z->a, bool, f->values.len + 1);
    for (int i = 0; i < f->results.len; i++) read[f->results.data[i].value.id] = true;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        for (int n = 0; n < o->n_in; n++)
            if (!ir_is_product(o)) read[o->in[n].id] = true;
    }
    return read;
}

/* Results, predicates and operands of products and of moves must be in memory. */
static void find_copied(Fuse *z) {
    const Func *f = z->f;
    bool *in_memory = arena_array(z->a, bool, f->values.len + 1);
    for (int i = 0; i < f->results.len; i++) in_memory[f->results.data[i].value.id] = true;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        in_memory[o->pred.id] = true;
        for (int n = 0; n < o->n_in; n++) {
            mark_operand(z, o, n, in_memory);
            if (ir_is_product(o)) z->product_reads[o->in[n].id] = true;
        }
    }
    const bool *read_elsewhere = find_read_elsewhere(z);
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        look_through_casts(z, o);
        bool on_load = z->fusing && target_rounds_on_load(f, o) && !read_elsewhere[o->out[0].id];
        if (!on_load && (!is_free(z, o) || in_memory[o->out[0].id])) continue;
        fuse_node(z, o)->copied = true;
        fuse_node(z, o)->source = o->n_in ? o->in[0] : NO_VAL;
    }
}

static void find_users(Fuse *z) {
    const Func *f = z->f;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        fuse_node(z, o)->position = i;
        for (int n = 0; n < o->n_in; n++) {
            Op *def = fuse_behind(z, o->in[n], false);
            if (def) fuse_node(z, def)->last_user = i;
        }
    }
    for (int i = 0; i < f->results.len; i++) {
        Op *def = fuse_behind(z, f->results.data[i].value, false);
        if (def) fuse_node(z, def)->last_user = f->body.len;
    }
}

/* Which predicate all the assigns share that need an op; by value: 0 none yet, ALWAYS: more than one, or none. */
static void find_guards(Fuse *z) {
    enum { ALWAYS = -1 };
    const Func *f = z->f;
    int64_t *need = arena_array(z->a, int64_t, f->values.len + 1);
    int *position = arena_array(z->a, int, f->values.len + 1);
    for (int i = 0; i < f->results.len; i++) need[f->results.data[i].value.id] = ALWAYS;
    for (int i = 0; i < f->body.len; i++)
        for (int r = 0; r < ir_op_at(f, i)->n_out; r++) position[ir_op_at(f, i)->out[r].id] = i;
    for (int i = f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, i);
        Node *n = fuse_node(z, o);
        int64_t guard = o->n_out ? need[o->out[0].id] : o->pred.id ? (int64_t)o->pred.id : ALWAYS;
        for (int r = 1; r < o->n_out; r++)
            if (need[o->out[r].id] != guard) guard = ALWAYS;
        if (guard > 0 && (position[guard] > i || n->home >= 0)) guard = ALWAYS;
        if (guard > 0 && !n->copied) n->guard = (Val){(uint32_t)guard};
        if (o->pred.id) need[o->pred.id] = ALWAYS;
        for (int j = 0; j < o->n_in; j++) {
            int64_t *of_input = &need[o->in[j].id];
            *of_input = *of_input && *of_input != guard ? ALWAYS : guard;
        }
    }
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static Pos first_place(const Func *f, const Group *g) {
    for (int i = 0; i < g->ops.len; i++)
        if (ir_op(f, g->ops.data[i])->pos.line) return ir_op(f, g->ops.data[i])->pos;
    return (Pos){0};
}

static void write_kernels(Fuse *z) {
    Func *f = z->f;
    KernelList list = {.f = f};
    for (int late = 0; late < 2; late++)
        for (int i = 0; i < z->groups.len; i++) {
            const Group *g = &z->groups.data[i];
            if (g->early == late || !g->ops.len) continue;
            KernelOps *k = kernel_list_insert(&list, list.at.len, g->kind, fuse_title(f, g), first_place(f, g));
            k->kernel->pred = g->guard;
            k->kernel->segment = g->segment;
            for (int j = 0; j < g->ops.len; j++) vec_push(z->a, &k->ops, g->ops.data[j]);
        }
    kernel_list_close(&list);
}

/* Waits are found at the start of a region, and again behind a fold over rows, when it is known which kernel that stands in. */
static bool begins_run(const Func *f, const OpId *body, int i) {
    const Op *before = i ? ir_op(f, body[i - 1]) : NULL;
    return !before || before->region != ir_op(f, body[i])->region || fuse_fold(f, before) == FOLD_COLUMN;
}

static void fuse_func(Func *f, bool fusing) {
    Fuse z = {.f = f, .a = f->module->arena, .fusing = fusing, .change = 1, .value_count = f->values.len};
    z.readers = arena_array(z.a, Ints, f->values.len + 1);
    z.product_reads = arena_array(z.a, bool, f->values.len + 1);
    for (int i = 0; i < f->ops.len; i++) vec_push(z.a, &z.nodes, ((Node){.home = NOWHERE, .wait = -1}));
    find_copied(&z);
    find_users(&z);
    if (fusing) fuse_hoist(&z);
    if (fusing) find_guards(&z);
    int count = f->body.len;
    OpId *body = f->body.data;
    f->body.data = NULL; /* clones are appended and taken off again */
    f->body.len = f->body.cap = 0;
    for (int i = 0; i < count; i++) {
        Op *o = ir_op(f, body[i]);
        if (fusing && o->region && begins_run(f, body, i)) fuse_find_waits(&z, body, count, i);
        bool effect = ir_op_info[o->code].flags & EFFECT;
        if (!effect && !fuse_node(&z, o)->copied && fuse_node(&z, o)->home == NOWHERE) place(&z, o);
    }
    fuse_place_effects(&z, body, count);
    if (fusing) {
        fuse_recompute(&z);
        fuse_inline(&z);
    }
    write_kernels(&z);
}

bool pass_fuse(PassContext *c) {
    target_set(c->m, c->options->target ? c->options->target : targets[0]);
    for (int i = 0; i < c->m->funcs.len; i++) fuse_func(c->m->funcs.data[i], !c->options->no_fuse);
    return true;
}
