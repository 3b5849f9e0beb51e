/* weight_copies.c: copies of weights in another dtype or layout become states, so that no step casts or packs them: the
 * kernel that updates a weight writes its copies while the tile is in cache, and the function "refresh" recomputes them
 * after the weights have been loaded or set.
 *
 *   %w.h = cast(%fc1.weight) : f16           in `train_step`, `eval`, `infer`: reads the state
 *                                              %"fc1.weight/f16.panels_t" instead
 *   %3   = contract(%x.h, %w.h; tb = true)   in `train_step`:  assign(%fc1.weight, %w) if %ok
 *                                                              %9 = cast(%w) : f16
 *                                                              assign(%"fc1.weight/f16.panels_t", %9) if %ok
 * Under `pad = true` the rows of a copy that tensor cores read begin at multiples of 16 bytes (State.pitch), and zeros
 * are written past the columns; the masters stay as the model has them.
 */
#include "base/arena.h"
#include "ir/words.h"
#include "passes/layout/layout.h"

enum { MAX_CHAIN = 4 };

typedef struct Chain { /* casts from a parameter to a value */
    State *param;
    int count;
    Dtype to[MAX_CHAIN];
} Chain;

typedef struct Derived {
    State *state;
    Chain chain;
} Derived;

typedef VEC(Derived *) DerivedList;

typedef struct Derivation {
    Module *m;
    Table by_state; /* name of the derived state -> Derived */
    Table by_param; /* name of the parameter -> DerivedList, in order of making */
} Derivation;

/* The copies of a parameter. */
static const DerivedList *copies_of(const Derivation *d, const State *param) {
    static const DerivedList none = {0};
    const DerivedList *list = table_get(&d->by_param, param->name);
    return list ? list : &none;
}

static Derived *add_derived(Derivation *d, const char *name, State *s, const Chain *c) {
    Arena *a = d->m->arena;
    DerivedList *list = table_get(&d->by_param, c->param->name);
    Derived *x = arena_new(a, Derived);
    *x = (Derived){s, *c};
    if (!list) {
        list = arena_new(a, DerivedList);
        *list = (DerivedList){0};
        table_set(a, &d->by_param, c->param->name, list);
    }
    vec_push(a, list, x);
    table_set(a, &d->by_state, name, x);
    return x;
}

/* Whether |v| is a parameter, or made from one by casts alone. */
static bool find_chain(const Func *f, Val v, Chain *out) {
    Dtype to[MAX_CHAIN];
    int count = 0;
    for (const Op *o = ir_def(f, v); o; o = ir_def(f, v)) {
        if (o->code != OP_cast || count == MAX_CHAIN) return false;
        to[count++] = ir_dtype(f, v);
        v = o->in[0];
    }
    if (ir_value(f, v)->kind != VAL_STATE) return false;
    *out = (Chain){.param = ir_state_of(f, v), .count = count};
    for (int i = 0; i < count; i++) out->to[i] = to[count - 1 - i];
    return out->param->role == STATE_PARAM;
}

static bool chain_equal(const Chain *a, const Chain *b) {
    return a->param == b->param && a->count == b->count && !memcmp(a->to, b->to, sizeof a->to[0] * (size_t)a->count);
}

/* "fc1.weight/f16.panels_t", "fc1.weight/f16.rows.304" */
static const char *derived_name(Arena *a, const Chain *c, Form form, int64_t pitch) {
    Text t;
    text_init(&t, a);
    text_printf(&t, "%s/", c->param->name);
    for (int i = 0; i < c->count; i++) text_printf(&t, "%s.", amp_dtype_name(c->to[i]));
    text_puts(&t, ir_layout_names[form.layout]);
    if (pitch) text_printf(&t, ".%lld", (long long)pitch);
    return text_str(&t);
}

static Derived *derive(Derivation *d, const Chain *c, Form form, int64_t pitch) {
    const char *name = derived_name(d->m->arena, c, form, pitch);
    Derived *known = table_get(&d->by_state, name);
    if (known) return known;
    Dtype t = c->count ? c->to[c->count - 1] : c->param->dtype;
    State *s = ir_state_new(d->m, name, STATE_DERIVED, t, c->param->shape);
    s->of = c->param->name;
    s->hwio = c->param->hwio;
    s->storage = form.storage;
    s->layout = form.layout;
    s->pitch = pitch;
    s->pos = c->param->pos;
    return add_derived(d, name, s, c);
}

/* An existing copy that elementwise code can read, made for a product. */
static Derived *find_readable(const Derivation *d, const Chain *c) {
    const DerivedList *copies = copies_of(d, c->param);
    for (int i = 0; i < copies->len; i++) {
        Derived *x = copies->data[i];
        const Layout layout = x->state->layout;
        if (chain_equal(&x->chain, c) && !x->state->pitch && (layout == LAYOUT_PANELS || layout == LAYOUT_ROWS))
            return x;
    }
    return NULL;
}

/* Of the copy that the product reads as operand |i|; 0: it is dense. */
static int64_t copy_pitch(const Func *f, const Op *o, int i) {
    const bool by_taps = o->code == OP_conv_data && ir_attr(o, "tb")->b; /* which have no gaps */
    Dim rows, cols;
    if (!f->module->pad || by_taps || o->code == OP_batch_contract || ir_dtype(f, o->in[i]) == AMP_DT_F32) return 0;
    if (!shape_matrix(ir_shape(f, o->in[i]), &rows, &cols) || dim_is_one(rows)) return 0;
    return target_pitch(target_of(f->module), f->module, cols.mul, READ_BY_TENSOR_CORES);
}

static void derive_for_product(Derivation *d, const Func *f, Op *o, int i) {
    Chain c;
    Form form = target_product_form(f, o, i);
    const int64_t pitch = copy_pitch(f, o, i);
    if (!find_chain(f, o->in[i], &c)) return;
    const bool is_master = !c.count && form_equal(form, (Form){c.param->layout, c.param->storage});
    if (is_master && !pitch) return;
    o->in[i] = ir_use_state((Func *)f, derive(d, &c, form, pitch)->state);
}

/* Only the end of a chain of casts is a reader, unless this kernel itself uses an intermediate cast. */
static void derive_for_elementwise(Derivation *d, const Func *f, Op *o, int i) {
    Chain c;
    if (!find_chain(f, o->in[i], &c) || !c.count) return;
    Derived *x = find_readable(d, &c);
    if (!x) {
        const Shape shape = ir_state_shape(c.param);
        bool panels = is_matrix(&shape) && target_of(f->module)->has_tiles;
        Form form = {panels ? LAYOUT_PANELS : LAYOUT_ROWS, plain_storage(c.to[c.count - 1])};
        x = derive(d, &c, form, 0);
    }
    o->in[i] = ir_use_state((Func *)f, x->state);
}

/* Whether op |o| is a cast inside a chain whose end is read by other kernels only. */
static bool is_link(const KernelList *l, const Op *o, const bool *used_in_kernel) {
    Chain c;
    return o->code == OP_cast && find_chain(l->f, o->out[0], &c) && !used_in_kernel[o->out[0].id];
}

static bool *values_used_in_their_kernel(const KernelList *l, const int *maker) {
    bool *used = arena_array(l->f->module->arena, bool, l->f->values.len + 1);
    for (int i = 0; i < l->at.len; i++)
        for (int j = 0; j < l->at.data[i].ops.len; j++) {
            const Op *o = ir_op(l->f, l->at.data[i].ops.data[j]);
            for (int n = 0; n < o->n_in; n++)
                if (maker[o->in[n].id] == i) used[o->in[n].id] = true;
        }
    return used;
}

typedef enum Readers { PRODUCTS, OTHERS } Readers;

static void derive_reads(Derivation *d, KernelList *l, Readers readers) {
    int *maker = kernel_list_makers(l);
    int known = l->f->values.len; /* values made below are states, which no kernel makes */
    bool *used = values_used_in_their_kernel(l, maker);
    for (int i = 0; i < l->at.len; i++)
        for (int j = 0; j < l->at.data[i].ops.len; j++) {
            Op *o = ir_op(l->f, l->at.data[i].ops.data[j]);
            bool product = ir_is_product(o);
            if (product != (readers == PRODUCTS) || (!product && is_link(l, o, used))) continue;
            for (int n = 0; n < o->n_in; n++) {
                if ((int)o->in[n].id < known && maker[o->in[n].id] == i) continue; /* in a register */
                if (product) derive_for_product(d, l->f, o, n);
                else derive_for_elementwise(d, l->f, o, n);
            }
        }
}

/* The cast of |v| to |t| among the kernel's ops [from, to), so that copies in two layouts share their rounding. */
static Val find_cast(const KernelList *l, const KernelOps *k, int from, int to, Val v, Dtype t) {
    for (int i = from; i < to; i++) {
        const Op *o = ir_op(l->f, k->ops.data[i]);
        if (o->code == OP_cast && o->in[0].id == v.id && ir_dtype(l->f, o->out[0]) == t) return o->out[0];
    }
    return NO_VAL;
}

/* Where a copy is written, and which assign causes it. */
typedef struct CopyPlace {
    KernelOps *kernel;
    int first, position; /* ops from |first| on were made for copies; the next goes to |position| */
    const Op *cause;     /* the assign of the weight; NULL in "refresh" */
} CopyPlace;

static void describe(Op *o, const CopyPlace *at, const State *copy) {
    o->path = at->cause ? at->cause->path : copy->name;
    o->pos = at->cause ? at->cause->pos : copy->pos;
}

/* Emits the casts of the chain, starting from |v|, then the assign. */
static void write_copy(KernelList *l, CopyPlace *at, const Derived *x, Val v) {
    for (int i = 0; i < x->chain.count; i++) {
        Val made = find_cast(l, at->kernel, at->first, at->position, v, x->chain.to[i]);
        if (!made.id) {
            Op *cast = kernel_list_unary(l, at->kernel, at->position++, OP_cast, v, x->chain.to[i], NULL);
            describe(cast, at, x->state);
            cast->reason = ir_reason(l->f->module, "update");
            made = cast->out[0];
        }
        v = made;
    }
    Val pred = at->cause ? at->cause->pred : NO_VAL;
    describe(kernel_list_assign(l, at->kernel, at->position++, ir_use_state(l->f, x->state), v, pred), at, x->state);
}

/* Writes the copies of each weight after its assign. */
static void update_copies(const Derivation *d, KernelList *l) {
    for (int i = 0; i < l->at.len; i++)
        for (int j = 0; j < l->at.data[i].ops.len; j++) {
            KernelOps *k = &l->at.data[i];
            const Op *o = ir_op(l->f, k->ops.data[j]);
            if (o->code != OP_assign) continue;
            const State *target = ir_state_of(l->f, o->in[0]);
            CopyPlace at = {k, j + 1, j + 1, o};
            const DerivedList *copies = copies_of(d, target);
            for (int x = 0; x < copies->len; x++) write_copy(l, &at, copies->data[x], o->in[1]);
            j = at.position - 1;
        }
}

/* The function "refresh": one kernel per weight, which makes all its copies. */
static void add_refresh(const Derivation *d) {
    Module *m = d->m;
    KernelList l = kernel_list_open(ir_program_new(m, PROGRAM_REFRESH));
    for (int s = 0; s < m->states.len; s++) {
        State *param = m->states.data[s];
        CopyPlace at = {0};
        const DerivedList *copies = copies_of(d, param);
        for (int x = 0; x < copies->len; x++) {
            const char *title = arena_printf(m->arena, "%s: copies", param->name);
            if (!at.kernel) at.kernel = kernel_list_insert(&l, l.at.len, KERNEL_TILE, title, param->pos);
            write_copy(&l, &at, copies->data[x], ir_use_state(l.f, param));
        }
    }
    kernel_list_close(&l);
}

bool pass_weight_copies(PassContext *c) {
    Module *m = c->m;
    Derivation d = {.m = m};
    const int count = m->funcs.len;
    KernelList *lists = arena_array(m->arena, KernelList, count + 1);
    for (int i = 0; i < count; i++) lists[i] = kernel_list_open(m->funcs.data[i]);
    for (int i = 0; i < count; i++) derive_reads(&d, &lists[i], PRODUCTS);
    for (int i = 0; i < count; i++) derive_reads(&d, &lists[i], OTHERS);
    for (int i = 0; i < count; i++) {
        update_copies(&d, &lists[i]);
        kernel_list_close(&lists[i]);
    }
    if (d.by_state.entries.len) add_refresh(&d);
    return true;
}
