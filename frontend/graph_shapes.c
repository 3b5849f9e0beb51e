/* graph_shapes.c: dimensions and shapes given as arguments: negative dimensions are resolved, and all are checked. */
#include "frontend/graph_ops.h"

static int arg_index(const GraphCall *c, const char *name) {
    int i = 0;
    while (strcmp(c->op->args[i].name, name)) i++;
    return i;
}

static const Value *operand(const GraphCall *c) { return ir_value(c->e->f, c->o->in[0]); }

static const char *shape_text(Elab *e, const Shape *s) {
    Text t;
    text_init(&t, e->a);
    shape_print(&t, s);
    return text_str(&t);
}

/* As in a shape of one dimension, without its brackets. */
static const char *dim_text(Elab *e, Dim d) {
    Shape s = shape_of(1, &d);
    const char *text = shape_text(e, &s);
    return arena_strndup(e->a, text + 1, strlen(text) - 2);
}

/* ---- dimensions by number --------------------------------------------------------------------------------- */

/* A dimension below |rank|; negative ones count from the end. */
static bool resolve(const GraphCall *c, const char *arg, int rank, int64_t *dim) {
    int64_t i = *dim < 0 ? *dim + rank : *dim;
    if (i >= 0 && i < rank) {
        *dim = i;
        return true;
    }
    Item x = item_tensor(c->o->in[0]);
    elab_error(c->e, c->locs[arg_index(c, arg)], "%s: dimension %lld does not exist; the tensor is %s", c->op->name,
               (long long)*dim, item_describe(c->e, &x));
    return false;
}

/* Checked but not resolved: these ops accept negative dimensions, as in their defaults. */
static bool exists(const GraphCall *c, const char *arg, int rank) {
    int64_t dim = ir_attr(c->o, arg)->i;
    return resolve(c, arg, rank, &dim);
}

bool graph_prepare_dim(GraphCall *c) { return exists(c, "dim", operand(c)->shape.rank); }

bool graph_prepare_fixed_dim(GraphCall *c) {
    const Shape *s = &operand(c)->shape;
    AttrValue *dim = ir_attr(c->o, "dim");
    if (!resolve(c, "dim", s->rank, &dim->i)) return false;
    if (!s->d[dim->i].n) return true;
    elab_error(c->e, c->locs[arg_index(c, "dim")], "%s: dimension %lld depends on the batch N", c->op->name,
               (long long)dim->i);
    return false;
}

bool graph_prepare_stack(GraphCall *c) {
    const Shape *s = &operand(c)->shape;
    if (s->rank < MAX_RANK) return resolve(c, "dim", s->rank + 1, &ir_attr(c->o, "dim")->i);
    elab_error(c->e, c->x->loc, "stack adds a dimension, and a tensor has at most %d", MAX_RANK);
    return false;
}

bool graph_prepare_dims(GraphCall *c) {
    Dims *dims = &ir_attr(c->o, "dims")->dims;
    bool seen[MAX_RANK] = {false};
    for (int i = 0; i < dims->count; i++) {
        if (!resolve(c, "dims", operand(c)->shape.rank, &dims->at[i])) return false;
        if (seen[dims->at[i]]) {
            elab_error(c->e, c->locs[arg_index(c, "dims")], "%s: dimension %lld appears twice in dims", c->op->name,
                       (long long)dims->at[i]);
            return false;
        }
        seen[dims->at[i]] = true;
    }
    return true;
}

bool graph_prepare_permute(GraphCall *c) {
    int rank = operand(c)->shape.rank;
    if (!graph_prepare_dims(c)) return false;
    if (ir_attr(c->o, "dims")->dims.count == rank) return true;
    Item x = item_tensor(c->o->in[0]);
    elab_error(c->e, c->locs[arg_index(c, "dims")],
               "permute: dims must name each of the %d dimensions once; the tensor is %s", rank,
               item_describe(c->e, &x));
    return false;
}

bool graph_prepare_transpose(GraphCall *c) {
    int rank = operand(c)->shape.rank;
    return exists(c, "a", rank) && exists(c, "b", rank);
}

bool graph_prepare_flatten(GraphCall *c) {
    return resolve(c, "from", operand(c)->shape.rank, &ir_attr(c->o, "from")->i);
}

bool graph_prepare_slice(GraphCall *c) {
    if (!graph_prepare_fixed_dim(c)) return false;
    int64_t size = operand(c)->shape.d[ir_attr(c->o, "dim")->i].mul;
    int64_t *from = &ir_attr(c->o, "from")->i, *to = &ir_attr(c->o, "to")->i;
    int64_t given_from = *from, given_to = *to;
    if (*from < 0) *from += size;
    if (*to < 0) *to += size;
    if (*from >= 0 && *from < *to && *to <= size) return true;
    elab_error(c->e, c->locs[arg_index(c, *to > size ? "to" : "from")],
               "slice: %lld..%lld is not within a dimension of size %lld", (long long)given_from, (long long)given_to,
               (long long)size);
    return false;
}

/* ---- windows ---------------------------------------------------------------------------------------------- */

/* The default stride is the kernel size.  Padding of more than half a window would produce empty windows. */
bool graph_prepare_pool(GraphCall *c) {
    const Dims *kernel = &ir_attr(c->o, "kernel")->dims, *padding = &ir_attr(c->o, "padding")->dims;
    if (c->items[arg_index(c, "stride")].kind == ITEM_NONE) ir_attr(c->o, "stride")->dims = *kernel;
    for (int i = 0; i < 2; i++) {
        if (padding->at[i] <= kernel->at[i] / 2) continue;
        elab_error(c->e, c->locs[arg_index(c, "padding")], "%s: padding %lld is more than half the kernel size %lld",
                   c->op->name, (long long)padding->at[i], (long long)kernel->at[i]);
        return false;
    }
    return true;
}

/* ---- stated shapes ---------------------------------------------------------------------------------------- */

static bool stated_shape(GraphCall *c, Shape *out) {
    int i = arg_index(c, "shape");
    return elab_shape_of_list(c->e, c->locs[i], &c->items[i], out);
}

static bool state_result(GraphCall *c, Dtype dtype, Shape shape) {
    ir_result(c->e->f, c->o, NULL, dtype, shape);
    return true;
}

bool graph_prepare_reshape(GraphCall *c) {
    Shape shape;
    Dim before, after;
    const Value *x = operand(c);
    if (!stated_shape(c, &shape)) return false;
    if (shape_count(&x->shape, &before) && shape_count(&shape, &after) && dim_equal(before, after))
        return state_result(c, x->dtype, shape);
    const char *text = arena_printf(c->e->a, "reshape: %s has %s elements, but %s has %s", shape_text(c->e, &shape),
                                    dim_text(c->e, after), shape_text(c->e, &x->shape), dim_text(c->e, before));
    Diag *diag = elab_error_text(c->e, c->locs[arg_index(c, "shape")], text);
    elab_note_operand(c->e, diag, c->o->in[0], c->x->call.args.data[0].loc);
    elab_note_calls(c->e, diag);
    return false;
}

bool graph_prepare_full(GraphCall *c) {
    Shape shape;
    return stated_shape(c, &shape) && state_result(c, AMP_DT_F32, shape);
}

bool graph_prepare_arange(GraphCall *c) {
    Item count = c->items[arg_index(c, "count")];
    Item list = {.kind = ITEM_LIST};
    list.items.at = &count;
    list.items.count = 1;
    Shape shape;
    return elab_shape_of_list(c->e, c->locs[0], &list, &shape) && state_result(c, AMP_DT_I32, shape);
}

/* ---- classes ---------------------------------------------------------------------------------------------- */

bool graph_prepare_top_k(GraphCall *c) {
    const Shape *s = &operand(c)->shape;
    int64_t k = ir_attr(c->o, "k")->i;
    if (!s->rank || s->d[s->rank - 1].n || k <= s->d[s->rank - 1].mul) return true; /* ir_infer checks the shape */
    elab_error(c->e, c->locs[arg_index(c, "k")], "%s: k is %lld, but there are only %lld classes", c->op->name,
               (long long)k, (long long)s->d[s->rank - 1].mul);
    return false;
}
