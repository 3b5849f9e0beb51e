/* graph_ops.c: calls that become ops of the graph: the table of those with static arguments, and how they are made. */
#include "frontend/elaborate.h"

#include <float.h>
#include <math.h>

enum { MAX_GRAPH_ARGS = 5 };

typedef enum ArgRange { ANY_VALUE, AT_LEAST_0, AT_LEAST_1, BELOW_1, ABOVE_0, AN_ORDER, A_LABEL } ArgRange;

typedef struct GraphArg { /* a static argument of a call; sets the attribute of that name, if the op has one */
    const char *name;
    StaticType type;
    bool required;
    ArgRange range;
    const char *words[3]; /* symbols: one of these */
    bool may_be_batch;    /* an int: also k * N and N / k */
} GraphArg;

typedef struct GraphCall GraphCall;

/* Which tensors an op takes, a letter each; the last letter applies to all further tensors:
 *   f  floats                         v  floats or i32, one type for all v: integers next to a float become floats
 *   t  anything, one type for all t   l  i32 labels    i  i32 indexes    c  a condition: bool
 *   m  a mask: a float, or bool */
struct GraphOp {
    const char *name;
    Opcode code;
    const char *takes; /* NULL: as the op's types say */
    int results;       /* that a call returns; others are for the backward pass; 0 means 1 */
    GraphArg args[MAX_GRAPH_ARGS];
    bool (*prepare)(GraphCall *c); /* sets attributes and result types that are not simply argument values; or NULL */
    Item (*along_batch)(GraphCall *c, const BatchMove *m); /* where the dimension "dim" varies; or NULL */
    Item (*several)(GraphCall *c, const Loc *operands);    /* makes several ops instead; or NULL */
    const char *about;                                     /* of several: what they make */
    int least, most;                                       /* tensors that it takes, if its op takes another number */
};

struct GraphCall {
    Elab *e;
    const GraphOp *op;
    const Expr *x;
    Op *o;
    Item items[MAX_GRAPH_ARGS]; /* by argument; ITEM_NONE: not given */
    Loc locs[MAX_GRAPH_ARGS];   /* where given, else of the call */
};

/* ---- dimensions and shapes as arguments: negative ones are resolved, all are checked --------------------- */

static int arg_index(const GraphCall *c, const char *name) {
    int i = 0;
    while (strcmp(c->op->args[i].name, name)) i++;
    return i;
}

static const Value *operand(const GraphCall *c) { return ir_value(c->e->f, c->o->in[0]); }

/* "8", "2 * N", "3 * N * N / 4" */
static const char *count_text(Elab *e, const Shape *s) {
    Elements n;
    if (!shape_elements(s, &n)) return "too many";
    Text t;
    text_init(&t, e->a);
    const int sizes = n.batches + n.lengths;
    if (n.mul != 1 || !sizes) text_printf(&t, "%lld", (long long)n.mul);
    for (int i = 0; i < sizes; i++) text_printf(&t, "%s%s", i || n.mul != 1 ? " * " : "", i < n.batches ? "N" : "T");
    if (n.div != 1) text_printf(&t, " / %lld", (long long)n.div);
    return text_str(&t);
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

/* Checks that "dim" is one of the operand's. */
static bool prepare_dim(GraphCall *c) { return exists(c, "dim", operand(c)->shape.rank); }

static Diag *refuse_dim(GraphCall *c, Dim d, int dim) {
    const bool is_batch = d.n != 0;
    Diag *diag = elab_error(c->e, c->locs[arg_index(c, "dim")], "%s: dimension %d depends on %s", c->op->name, dim,
                            is_batch ? "the batch N" : "the size T");
    if (!is_batch && c->op->code != OP_slice) elab_help_one_length(c->e, diag);
    return diag;
}

/* The same, and that it is a number. */
static bool prepare_fixed_dim(GraphCall *c) {
    const Shape *s = &operand(c)->shape;
    AttrValue *dim = ir_attr(c->o, "dim");
    if (!resolve(c, "dim", s->rank, &dim->i)) return false;
    if (!dim_varies(s->d[dim->i])) return true;
    refuse_dim(c, s->d[dim->i], (int)dim->i);
    return false;
}

static bool prepare_stack(GraphCall *c) {
    const Shape *s = &operand(c)->shape;
    if (s->rank < MAX_RANK) return resolve(c, "dim", s->rank + 1, &ir_attr(c->o, "dim")->i);
    elab_error(c->e, c->x->loc, "stack adds a dimension, and a tensor has at most %d", MAX_RANK);
    return false;
}

static bool prepare_dims(GraphCall *c) {
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

/* Elements that a reduction goes over; 0: that depends on N. */
static int64_t reduced_count(const GraphCall *c) {
    const Shape *s = &operand(c)->shape;
    const Dims *dims = &ir_attr(c->o, "dims")->dims;
    int64_t count = 1;
    for (int i = 0; i < (dims->count ? dims->count : s->rank); i++) {
        const Dim d = s->d[dims->count ? dims->at[i] : i];
        count *= dim_varies(d) ? 0 : d.mul;
    }
    return count;
}

static bool prepare_var(GraphCall *c) {
    if (!prepare_dims(c)) return false;
    const int64_t count = reduced_count(c), correction = ir_attr(c->o, "correction")->i;
    if (!count || count > correction) return true;
    Diag *diag = elab_error(c->e, c->locs[arg_index(c, "correction")],
                            "%s: the variance of %lld element%s with correction = %lld is NaN", c->op->name,
                            (long long)count, count == 1 ? "" : "s", (long long)correction);
    diag_help(c->e->d, diag, "correction = 0 divides by the number of elements: the variance of one element is then 0");
    return false;
}

static bool prepare_permute(GraphCall *c) {
    int rank = operand(c)->shape.rank;
    if (!prepare_dims(c)) return false;
    if (ir_attr(c->o, "dims")->dims.count == rank) return true;
    Item x = item_tensor(c->o->in[0]);
    elab_error(c->e, c->locs[arg_index(c, "dims")],
               "permute: dims must name each of the %d dimensions once; the tensor is %s", rank,
               item_describe(c->e, &x));
    return false;
}

static bool prepare_transpose(GraphCall *c) {
    int rank = operand(c)->shape.rank;
    return exists(c, "a", rank) && exists(c, "b", rank);
}

static bool prepare_flatten(GraphCall *c) {
    return resolve(c, "from", operand(c)->shape.rank, &ir_attr(c->o, "from")->i);
}

/* Of a dimension that is a number: so is |arg|. */
static bool is_number(GraphCall *c, const char *arg) {
    int i = arg_index(c, arg);
    const char *what = arena_printf(c->e->a, "%s: %s", c->op->name, arg);
    return item_convert(c->e, c->locs[i], what, STATIC_INT, &c->items[i]);
}

static bool prepare_slice(GraphCall *c) {
    if (!prepare_fixed_dim(c) || !is_number(c, "from") || !is_number(c, "to")) return false;
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

/* ---- along the batch --------------------------------------------------------------------------------------- */

static bool is_part_of_batch(const GraphCall *c, const char *arg) {
    const Item *item = &c->items[arg_index(c, arg)];
    return dim_is_sized(item->i) || item->i.mul == 0;
}

/* A few places that a dimension [T] has, whatever T is. */
static bool is_at_places(const GraphCall *c) {
    enum { MOST_PLACES = 8 };
    const Dim from = c->items[arg_index(c, "from")].i, to = c->items[arg_index(c, "to")].i;
    if (dim_is_sized(from) || dim_is_sized(to) || from.mul < 0 || from.mul >= to.mul) return false;
    if (operand(c)->dtype != AMP_DT_F32) return false;
    return to.mul <= c->e->least_length && to.mul - from.mul <= MOST_PLACES;
}

/* The dimension |dim| of the call where it varies in some operand, or is cut at a size; else -1.  A T that is a number
 * goes the way of one that is none, where it can. */
static int batch_dim(const GraphCall *c) {
    int64_t dim = ir_attr(c->o, "dim")->i;
    bool all_sized = true;
    if (dim < 0) dim += operand(c)->shape.rank;
    for (int i = 0; i < c->o->n_in; i++) {
        const Shape *s = ir_shape(c->e->f, c->o->in[i]);
        if (dim >= 0 && dim < s->rank && dim_varies(s->d[dim])) return (int)dim;
        all_sized = all_sized && dim >= 0 && dim < s->rank && s->d[dim].sized;
    }
    if (c->o->code != OP_slice) return all_sized ? (int)dim : -1;
    if (all_sized) return (is_part_of_batch(c, "from") && is_part_of_batch(c, "to")) || is_at_places(c) ? (int)dim : -1;
    const bool cuts = dim >= 0 && dim < operand(c)->shape.rank && dim_is_sized(c->items[arg_index(c, "to")].i);
    return cuts ? (int)dim : -1;
}

static Item concat_batch(GraphCall *c, const BatchMove *m) { return elab_concat_batch(c->e, m); }

/* The first elements of a dimension that is a number, as the first T rows of a table of 1,024. */
static Item slice_to_size(GraphCall *c, const BatchMove *m, Dim from, Dim to) {
    const Shape *s = &operand(c)->shape;
    const int64_t size = s->d[m->dim].mul, most = dim_eval(to, (Sizes){1, c->e->m->length.most});
    const Loc at = c->locs[arg_index(c, "to")];
    if (to.n) return elab_error_varies(c->e, at, to, "slice: to");
    if (dim_is_sized(from) || from.mul != 0 || m->dim)
        return elab_error_item(c->e, at,
                               "slice: T can end a slice of the first dimension that begins at 0, or of a "
                               "dimension that depends on T");
    if (most <= size) return elab_slice_to_size(c->e, m, to);
    const Item end = {.kind = ITEM_INT, .i = to};
    return elab_error_item(c->e, at, "slice: %s is not within a dimension of size %lld: T is at most %lld",
                           item_describe(c->e, &end), (long long)size, (long long)c->e->m->length.most);
}

/* T itself, or at least T: it has the places that T has. */
static bool is_length(Dim d) { return d.t + d.sized == 1 && (dim_varies(d) ? d.div == 1 : d.mul % dim_given(d) == 0); }

static Item slice_batch(GraphCall *c, const BatchMove *m) {
    const Dim size = operand(c)->shape.d[m->dim];
    const Dim from = c->items[arg_index(c, "from")].i, to = c->items[arg_index(c, "to")].i;
    if (!dim_is_sized(size)) return slice_to_size(c, m, from, to);
    if (is_part_of_batch(c, "from") && is_part_of_batch(c, "to")) return elab_slice_batch(c->e, m, from, to);
    if (!size.n && is_length(size) && is_at_places(c)) return elab_slice_places(c->e, m, from.mul, to.mul);
    Diag *diag = refuse_dim(c, size, m->dim);
    if (size.n)
        diag_help(c->e->d, diag, "cut it at 0 and multiples of N: slice(x; dim = %d, from = N, to = 2 * N)", m->dim);
    else {
        diag_help(c->e->d, diag, "cut it at 0 and parts of T: slice(x; dim = %d, from = 0, to = T / 2)", m->dim);
        elab_help_one_length(c->e, diag);
    }
    return ERROR_ITEM;
}

/* ---- several ops ------------------------------------------------------------------------------------------- */

/* Policies name its ops as a layer's. */
static Item make_einsum(GraphCall *c, const Loc *operands) {
    Frame *frame = c->e->frame;
    const char *outer = frame->layer;
    int i = arg_index(c, "equation");
    if (!outer) frame->layer = c->op->name;
    Item sum = elab_einsum(c->e, c->x, c->o, operands, c->locs[i], c->items[i].s);
    frame->layer = outer;
    return sum;
}

static Item make_i32(GraphCall *c, const Loc *operands) { return elab_to_i32(c->e, c->x->loc, c->o->in[0], operands); }

/* ---- windows ---------------------------------------------------------------------------------------------- */

/* The default stride is the kernel size.  Padding of more than half a window would produce empty windows. */
static bool prepare_pool(GraphCall *c) {
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

static bool prepare_upsample(GraphCall *c) {
    int size = arg_index(c, "size");
    if (c->items[size].kind == ITEM_NONE || c->items[arg_index(c, "scale")].kind == ITEM_NONE) return true;
    elab_error(c->e, c->locs[size], "upsample: give scale or size, not both");
    return false;
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

static bool prepare_reshape(GraphCall *c) {
    Shape shape;
    const Value *x = operand(c);
    if (!stated_shape(c, &shape)) return false;
    if (shape_same_count(&x->shape, &shape)) return state_result(c, x->dtype, shape);
    const char *text =
        arena_printf(c->e->a, "reshape: %s has %s elements, but %s has %s", shape_text(c->e->a, &shape),
                     count_text(c->e, &shape), shape_text(c->e->a, &x->shape), count_text(c->e, &x->shape));
    Diag *diag = elab_error_text(c->e, c->locs[arg_index(c, "shape")], text);
    elab_note_operand(c->e, diag, c->o->in[0], c->x->call.args.data[0].loc);
    elab_note_calls(c->e, diag);
    return false;
}

/* What is padded with is a number of the tensor's type. */
static bool prepare_pad(GraphCall *c) {
    if (!prepare_fixed_dim(c)) return false;
    int value = arg_index(c, "value");
    Dtype t = operand(c)->dtype;
    if (c->items[value].kind == ITEM_NONE || elab_type_holds(t, c->items[value].f)) return true;
    elab_error(c->e, c->locs[value], "pad: value must be a number that %s holds; this is %s", amp_dtype_name(t),
               item_describe(c->e, &c->items[value]));
    return false;
}

static bool prepare_full(GraphCall *c) {
    Shape shape;
    return stated_shape(c, &shape) && state_result(c, AMP_DT_F32, shape);
}

static bool prepare_tensor(GraphCall *c) {
    const int shape = arg_index(c, "shape"), type = arg_index(c, "type");
    return elab_type_numbers(c->e, c->x, c->o, &c->items[type], &c->items[shape], c->locs[shape]);
}

static bool prepare_arange(GraphCall *c) {
    Item count = c->items[arg_index(c, "count")];
    Item list = {.kind = ITEM_LIST};
    list.items.at = &count;
    list.items.count = 1;
    Shape shape;
    return elab_shape_of_list(c->e, c->locs[0], &list, &shape) && state_result(c, AMP_DT_I32, shape);
}

/* ---- classes ---------------------------------------------------------------------------------------------- */

static bool prepare_top_k(GraphCall *c) {
    const Shape *s = &operand(c)->shape;
    int64_t k = ir_attr(c->o, "k")->i;
    if (!s->rank || dim_varies(s->d[s->rank - 1]) || k <= s->d[s->rank - 1].mul)
        return true; /* ir_infer checks the shape */
    elab_error(c->e, c->locs[arg_index(c, "k")], "%s: k is %lld, but there are only %lld classes", c->op->name,
               (long long)k, (long long)s->d[s->rank - 1].mul);
    return false;
}

/* Each of the k largest is two reductions of the remaining elements: code that takes the C compiler 0.1 to 0.2 s, as
 * long as this number of ops. */
enum { COST_OF_LARGEST = 800 };

static bool prepare_largest(GraphCall *c) {
    if (!prepare_fixed_dim(c)) return false;
    int64_t k = ir_attr(c->o, "k")->i, dim = ir_attr(c->o, "dim")->i, size = operand(c)->shape.d[dim].mul;
    if (k <= size)
        return size == 1 || elab_charge_each(c->e, c->locs[arg_index(c, "k")], "top_k: k", k, COST_OF_LARGEST);
    elab_error(c->e, c->locs[arg_index(c, "k")], "%s: k is %lld, but dimension %lld has %lld elements", c->op->name,
               (long long)k, (long long)dim, (long long)size);
    return false;
}

/* ---- the table ------------------------------------------------------------------------------------------- */

/* clang-format off */
#define NEEDS(name, type) {name, type, true, ANY_VALUE, {NULL}}
#define NEEDS_FROM(name, type, range) {name, type, true, range, {NULL}}
#define NEEDS_SIZE(name, range) {name, STATIC_INT, true, range, {NULL}, true}
#define MAY(name, type) {name, type, false, ANY_VALUE, {NULL}}
#define MAY_FROM(name, type, range) {name, type, false, range, {NULL}}
#define ONE_OF(name, ...) {name, STATIC_SYMBOL, false, ANY_VALUE, {__VA_ARGS__}}
#define DIM_ARG MAY("dim", STATIC_INT)
#define REDUCED_ARGS MAY("dims", STATIC_DIMS), MAY("keep", STATIC_BOOL)
#define CORRECTION_ARG MAY_FROM("correction", STATIC_INT, AT_LEAST_0)
#define EPS_ARG MAY_FROM("eps", STATIC_FLOAT, AT_LEAST_0)
#define WINDOW_ARGS NEEDS_FROM("kernel", STATIC_PAIR, AT_LEAST_1), MAY_FROM("stride", STATIC_PAIR, AT_LEAST_1), \
                    MAY_FROM("padding", STATIC_PAIR, AT_LEAST_0)

static const GraphOp graph_ops[] = {
    {"linear", OP_linear, .args = {MAY("transposed", STATIC_BOOL)}},
    {"einsum", OP_matmul, .least = 1, .most = 2, .args = {NEEDS("equation", STATIC_STRING)}, .several = make_einsum},
    {"conv2d", OP_conv2d,
     .args = {MAY_FROM("stride", STATIC_PAIR, AT_LEAST_1), MAY_FROM("padding", STATIC_PAIR, AT_LEAST_0),
              MAY_FROM("dilation", STATIC_PAIR, AT_LEAST_1), MAY_FROM("groups", STATIC_INT, AT_LEAST_1)}},
    {"conv_transpose2d", OP_conv_transpose2d,
     .args = {MAY_FROM("stride", STATIC_PAIR, AT_LEAST_1), MAY_FROM("padding", STATIC_PAIR, AT_LEAST_0),
              MAY_FROM("output_padding", STATIC_PAIR, AT_LEAST_0), MAY_FROM("dilation", STATIC_PAIR, AT_LEAST_1),
              MAY_FROM("groups", STATIC_INT, AT_LEAST_1)}},
    {"attention", OP_attention, .takes = "fffm",
     .args = {MAY("causal", STATIC_BOOL), MAY_FROM("scale", STATIC_FLOAT, AT_LEAST_0),
              MAY_FROM("p", STATIC_FLOAT, BELOW_1)}},

    {"gelu", OP_gelu, .args = {ONE_OF("approximate", "none", "tanh")}},
    {"leaky_relu", OP_leaky_relu, .args = {MAY("slope", STATIC_FLOAT)}},
    {"elu", OP_elu, .args = {MAY("alpha", STATIC_FLOAT)}},
    {"pow", OP_pow, .args = {NEEDS("e", STATIC_FLOAT)}},
    {"clamp", OP_clamp, .args = {NEEDS("low", STATIC_FLOAT), NEEDS("high", STATIC_FLOAT)}},
    {"dropout", OP_dropout, .args = {MAY_FROM("p", STATIC_FLOAT, BELOW_1)}},
    {.name = "to_f32", .code = OP_cast},
    {.name = "to_i32", .code = OP_cast, .several = make_i32,
     .about = "whole numbers, such as floor makes, as i32; -2^31 where i32 does not hold them; no gradient"},

    {"reshape", OP_reshape, .args = {NEEDS("shape", STATIC_SHAPE)}, .prepare = prepare_reshape},
    {"flatten", OP_flatten, .args = {MAY("from", STATIC_INT)}, .prepare = prepare_flatten},
    {"transpose", OP_transpose, .args = {MAY("a", STATIC_INT), MAY("b", STATIC_INT)},
     .prepare = prepare_transpose},
    {"permute", OP_permute, .args = {NEEDS("dims", STATIC_DIMS)}, .prepare = prepare_permute},
    {"slice", OP_slice,
     .args = {NEEDS("dim", STATIC_INT), NEEDS_SIZE("from", ANY_VALUE), NEEDS_SIZE("to", ANY_VALUE)},
     .prepare = prepare_slice, .along_batch = slice_batch},
    {"pad", OP_pad, .args = {NEEDS("dim", STATIC_INT), NEEDS_FROM("before", STATIC_INT, AT_LEAST_0),
                                           NEEDS_FROM("after", STATIC_INT, AT_LEAST_0), MAY("value", STATIC_FLOAT)},
     .prepare = prepare_pad},
    {"concat", OP_concat, .args = {NEEDS("dim", STATIC_INT)}, .prepare = prepare_fixed_dim,
     .along_batch = concat_batch},
    {"stack", OP_stack, .args = {NEEDS("dim", STATIC_INT)}, .prepare = prepare_stack},
    {"zeros", OP_full, .args = {NEEDS("shape", STATIC_SHAPE)}, .prepare = prepare_full},
    {"full", OP_full, .args = {NEEDS("shape", STATIC_SHAPE), NEEDS("value", STATIC_FLOAT)},
     .prepare = prepare_full},
    {"tensor", OP_tensor, .least = 1, .most = MANY,
     .args = {MAY("shape", STATIC_SHAPE), ONE_OF("type", "f32", "i32")}, .prepare = prepare_tensor},
    {"arange", OP_arange, .args = {NEEDS_SIZE("count", AT_LEAST_1)}, .prepare = prepare_arange},

    {"max_pool2d", OP_max_pool2d, .args = {WINDOW_ARGS}, .prepare = prepare_pool},
    {"avg_pool2d", OP_avg_pool2d, .args = {WINDOW_ARGS}, .prepare = prepare_pool},
    {"adaptive_avg_pool2d", OP_adaptive_avg_pool2d, .args = {NEEDS_FROM("out", STATIC_PAIR, AT_LEAST_1)}},
    {"upsample", OP_upsample,
     .args = {MAY_FROM("scale", STATIC_PAIR, AT_LEAST_1), MAY_FROM("size", STATIC_PAIR, AT_LEAST_1),
              ONE_OF("mode", "nearest", "bilinear"), MAY("align_corners", STATIC_BOOL)},
     .prepare = prepare_upsample},
    {"batch_norm", OP_batch_norm, .least = 5, .most = 5, .results = 3,
     .args = {EPS_ARG, MAY("sync", STATIC_BOOL), MAY("frozen", STATIC_BOOL)}},
    {"layer_norm", OP_layer_norm, .args = {EPS_ARG}},
    {"group_norm", OP_group_norm, .args = {NEEDS_FROM("groups", STATIC_INT, AT_LEAST_1), EPS_ARG}},
    {"instance_norm", OP_instance_norm, .args = {EPS_ARG}},
    {"rms_norm", OP_rms_norm, .args = {EPS_ARG}},

    {"sum", OP_sum, .args = {REDUCED_ARGS}, .prepare = prepare_dims},
    {"mean", OP_mean, .args = {REDUCED_ARGS}, .prepare = prepare_dims},
    {"max", OP_max, .args = {REDUCED_ARGS}, .prepare = prepare_dims},
    {"min", OP_min, .args = {REDUCED_ARGS}, .prepare = prepare_dims},
    {"var", OP_var, .args = {REDUCED_ARGS, CORRECTION_ARG}, .prepare = prepare_var},
    {"std", OP_std, .args = {REDUCED_ARGS, CORRECTION_ARG}, .prepare = prepare_var},
    {"logsumexp", OP_logsumexp, .args = {REDUCED_ARGS}, .prepare = prepare_dims},
    {"norm", OP_norm, .args = {MAY_FROM("p", STATIC_FLOAT, AN_ORDER), REDUCED_ARGS}, .prepare = prepare_dims},
    {"prod", OP_prod, .args = {REDUCED_ARGS}, .prepare = prepare_dims},
    {"cumsum", OP_cumsum, .args = {NEEDS("dim", STATIC_INT)}, .prepare = prepare_fixed_dim},
    {"argmax", OP_argmax, .args = {DIM_ARG}, .prepare = prepare_dim},
    {"top_k", OP_top_k, .results = 2, .args = {NEEDS_FROM("k", STATIC_INT, AT_LEAST_1), DIM_ARG},
     .prepare = prepare_largest},
    {"softmax", OP_softmax, .args = {DIM_ARG}, .prepare = prepare_dim},
    {"log_softmax", OP_log_softmax, .args = {DIM_ARG}, .prepare = prepare_dim},

    {"nll_loss", OP_nll_loss, .takes = "flf",
     .args = {MAY_FROM("label_smoothing", STATIC_FLOAT, BELOW_1), MAY_FROM("ignore", STATIC_INT, A_LABEL)}},
    {"smooth_l1_loss", OP_smooth_l1_loss, .args = {MAY_FROM("beta", STATIC_FLOAT, AT_LEAST_0)}},
    {"huber_loss", OP_huber_loss, .args = {MAY_FROM("delta", STATIC_FLOAT, ABOVE_0)}},
    {"kl_div", OP_kl_div, .args = {ONE_OF("reduction", "batchmean", "mean")}},
    {"accuracy", OP_accuracy, .takes = "fl", .args = {MAY_FROM("ignore", STATIC_INT, A_LABEL)}},
    {"top_k_accuracy", OP_top_k_accuracy, .takes = "fl",
     .args = {NEEDS_FROM("k", STATIC_INT, AT_LEAST_1), MAY_FROM("ignore", STATIC_INT, A_LABEL)},
     .prepare = prepare_top_k},
};
/* clang-format on */

enum { GRAPH_OP_COUNT = sizeof graph_ops / sizeof graph_ops[0] };

/* The calls that take tensors alone, from the op table. */
static const GraphOp plain_calls[OP_COUNT] = {
#define OP(id, ...) [OP_##id] = {.name = #id, .code = OP_##id},
#include "ir/ops.def"
};

const GraphOp *graph_op_find(const char *name) {
    for (int i = 0; i < GRAPH_OP_COUNT; i++)
        if (!strcmp(graph_ops[i].name, name)) return &graph_ops[i];
    Opcode code = ir_opcode(name);
    return ir_op_info[code].flags & CALL ? &plain_calls[code] : NULL;
}

void graph_op_tensors(const GraphOp *op, int *least, int *most) {
    OpArity arity = ir_op_arity(op->code);
    *least = op->least ? op->least : arity.in_min;
    *most = op->most ? op->most : arity.in_max;
}

const char *graph_op_setting(const GraphOp *op) { return op->args[0].name; }

bool graph_op_takes(const GraphOp *op, int tensors) {
    int least, most;
    graph_op_tensors(op, &least, &most);
    return tensors >= least && tensors <= most;
}

/* The calls of the table, then the plain ones. */
const GraphOp *graph_op_at(int index) {
    if (index < GRAPH_OP_COUNT) return &graph_ops[index];
    index -= GRAPH_OP_COUNT;
    for (int code = OP_NONE + 1; code < OP_COUNT; code++)
        if (ir_op_info[code].flags & CALL && index-- == 0) return &plain_calls[code];
    return NULL;
}

const char *graph_op_name(const GraphOp *op) { return op->name; }

const char *graph_op_about(const GraphOp *op) { return op->several ? op->about : ir_op_info[op->code].doc; }

bool graph_op_argument(const GraphOp *op, int index, CallSetting *out) {
    if (index >= MAX_GRAPH_ARGS || !op->args[index].name) return false;
    const GraphArg *arg = &op->args[index];
    *out = (CallSetting){arg->name, static_type_names[arg->type], arg->required};
    return true;
}

/* ---- static arguments ------------------------------------------------------------------------------------- */

static const struct {
    double min, below; /* NAN: even inf */
    const char *text;
    bool or_zero;
} ranges[] = {
    [ANY_VALUE] = {0, 0, NULL},
    [AT_LEAST_0] = {0.0, INFINITY, "at least 0"},
    [AT_LEAST_1] = {1.0, INFINITY, "at least 1"},
    [BELOW_1] = {0.0, 1.0, "at least 0.0 and less than 1.0"},
    [ABOVE_0] = {FLT_MIN, INFINITY, "above 0"}, /* as f32, which kernels compute in */
    [AN_ORDER] = {FLT_MIN, NAN, "at least 0", .or_zero = true},
    [A_LABEL] = {INT32_MIN, INT32_MAX + 1.0, "a number that i32 holds"},
};

static bool in_range(ArgRange range, const Item *item) {
    if (range == ANY_VALUE) return true;
    for (int i = 0; item->kind == ITEM_TUPLE && i < item->items.count; i++)
        if (!in_range(range, &item->items.at[i])) return false;
    if (item->kind != ITEM_INT && item->kind != ITEM_FLOAT) return true;
    double v = item->kind == ITEM_INT ? (double)item->i.mul : item->f;
    if (v == 0.0 && ranges[range].or_zero) return true;
    return v >= ranges[range].min && !(v >= ranges[range].below);
}

static bool check_word(Elab *e, Loc loc, const GraphArg *arg, const char *word) {
    Text t;
    text_init(&t, e->a);
    for (int i = 0; i < 3 && arg->words[i]; i++) {
        if (!strcmp(arg->words[i], word)) return true;
        text_printf(&t, "%s%s", i ? ", " : "", arg->words[i]);
    }
    Diag *diag = elab_error(e, loc, "%s cannot be '%s'", arg->name, word);
    diag_help(e->d, diag, "%s is one of %s", arg->name, text_str(&t));
    return false;
}

static bool check_arg(Elab *e, Loc loc, const GraphArg *arg, const Item *item) {
    if (item->kind == ITEM_SYMBOL) return check_word(e, loc, arg, item->s);
    if (in_range(arg->range, item)) return true;
    bool infinite = item->kind == ITEM_FLOAT && item->f == INFINITY; /* which is not below what is too large */
    elab_error(e, loc, "%s must be %s; this is %s", arg->name, infinite ? "finite" : ranges[arg->range].text,
               item_describe(e, item));
    return false;
}

static void set_attr(AttrValue *value, const Item *item) {
    switch (item->kind) {
    case ITEM_INT: value->i = item->i.mul; break;
    case ITEM_FLOAT: value->f = item->f; break;
    case ITEM_BOOL: value->b = item->b; break;
    case ITEM_SYMBOL:
    case ITEM_STRING: value->s = item->s; break;
    case ITEM_TUPLE:
        value->dims = (Dims){.count = item->items.count};
        for (int i = 0; i < item->items.count; i++) value->dims.at[i] = item->items.at[i].i.mul;
        break;
    default: break;
    }
}

static Item eval_arg(Elab *e, const GraphArg *arg, const Expr *given, const char *what) {
    if (!arg->may_be_batch) return elab_eval_static(e, given, what, arg->type);
    Item item = elab_eval(e, given);
    if (item.kind != ITEM_INT || !dim_varies(item.i)) item_convert(e, given->loc, what, arg->type, &item);
    return item;
}

static bool take_arg(GraphCall *c, const StaticArgs *args, int i, const Expr *given) {
    Elab *e = c->e;
    const GraphArg *arg = &c->op->args[i];
    const char *what = arena_printf(e->a, "%s: %s", c->op->name, arg->name);
    c->locs[i] = given ? given->loc : c->x->loc;
    c->items[i] = (Item){.kind = ITEM_NONE};
    if (!given) {
        if (arg->required) elab_error_missing(e, args, arg->name, arg->type);
        return !arg->required;
    }
    c->items[i] = eval_arg(e, arg, given, what);
    if (c->items[i].kind == ITEM_ERROR || !check_arg(e, given->loc, arg, &c->items[i])) return false;
    AttrValue *attr = ir_attr(c->o, arg->name);
    if (attr) set_attr(attr, &c->items[i]);
    return true;
}

static bool take_args(GraphCall *c) {
    StaticArgs args = {.call = c->x};
    Table names = {0};
    const Expr *given[MAX_GRAPH_ARGS];
    bool good = true;
    int count = 0;
    for (; count < MAX_GRAPH_ARGS && c->op->args[count].name; count++) {
        table_set(c->e->a, &names, c->op->args[count].name, c);
        given[count] = elab_take_static(&args, c->op->args[count].name);
    }
    elab_reject_statics(c->e, &args, &names);
    for (int i = 0; i < count; i++) good = take_arg(c, &args, i, given[i]) && good;
    return good && !args.rejected;
}

/* ---- making the op ---------------------------------------------------------------------------------------- */

/* Each dropout draws its own mask: its key is its path. */
static void set_key(const Op *o) {
    AttrValue *key = ir_op_info[o->code].flags & RANDOM ? ir_attr(o, "key") : NULL;
    if (key) key->s = o->path;
}

typedef struct CallOperands {
    Val *in;
    const Loc *locs;
    int count;
    const Numbers *numbers; /* of tensor(..), whose operands they are not */
    bool good;              /* else only the arguments are checked */
} CallOperands;

static void emit_call(Elab *e, const GraphOp *op, const Expr *x, const CallOperands *given, Item *out, int results) {
    GraphCall c = {.e = e, .op = op, .x = x, .o = ir_op_new(e->f, op->code, given->in, given->count)};
    if (given->numbers) ir_attr(c.o, "values")->numbers = given->numbers;
    bool good = take_args(&c) && given->good;
    BatchMove move = {
        .o = c.o, .loc = x->loc, .operands = given->locs, .dim = good && op->along_batch ? batch_dim(&c) : -1};
    if (move.dim >= 0) {
        out[0] = op->along_batch(&c, &move);
        return;
    }
    if (op->several) {
        if (good) out[0] = op->several(&c, given->locs);
        return;
    }
    good = good && (!op->prepare || op->prepare(&c));
    if (good) elab_emit_results(e, x->loc, c.o, given->locs, out, results);
    set_key(c.o);
}

/* The scope that `as` gives the op, or else the current one. */
static const char *scope_of_op(Elab *e, const Expr *x) {
    const char *outer = e->frame->scope;
    if (!x->call.as) return outer;
    const char *path = elab_path(e, x->call.as);
    return path ? elab_join_path(e, outer, path) : NULL;
}

int elab_graph_op(Elab *e, const GraphOp *op, const Expr *x, const Item *tensors, int count, Item *out) {
    Loc *locs = arena_array(e->a, Loc, count + 1);
    CallOperands given = {.in = arena_array(e->a, Val, count + 1), .locs = locs, .count = count};
    for (int i = 0; i < count; i++) locs[i] = x->call.args.data[i].loc;
    const char *outer = e->frame->scope, *scope = scope_of_op(e, x);
    int results = op->results ? op->results : 1;
    for (int i = 0; i < results; i++) out[i] = ERROR_ITEM;
    if (elab_refuse_sharing(e, x)) return results;
    if (scope) e->frame->scope = scope;
    if (op->code == OP_tensor) given.numbers = elab_numbers(e, x->loc, tensors, locs, count), given.count = 0;
    else given.good = elab_take_operands(e, op->code, op->takes, tensors, locs, count, given.in);
    given.good = scope && (given.good || given.numbers);
    bool is_f32 = given.good && op->code == OP_cast && !op->several && ir_dtype(e->f, given.in[0]) == AMP_DT_F32;
    if (is_f32) out[0] = item_tensor(given.in[0]);
    else emit_call(e, op, x, &given, out, results);
    e->frame->scope = outer;
    return results;
}
