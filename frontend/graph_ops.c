/* graph_ops.c: calls that become ops of the graph: the table of those with static arguments, and how they are made. */
#include "frontend/graph_ops.h"
#include <math.h>

/* clang-format off */
#define NEEDS(name, type) {name, type, true, ANY_VALUE, {NULL}}
#define NEEDS_FROM(name, type, range) {name, type, true, range, {NULL}}
#define MAY(name, type) {name, type, false, ANY_VALUE, {NULL}}
#define MAY_FROM(name, type, range) {name, type, false, range, {NULL}}
#define ONE_OF(name, ...) {name, STATIC_SYMBOL, false, ANY_VALUE, {__VA_ARGS__}}
#define DIM_ARG MAY("dim", STATIC_INT)
#define REDUCED_ARGS MAY("dims", STATIC_DIMS), MAY("keep", STATIC_BOOL)
#define EPS_ARG MAY_FROM("eps", STATIC_FLOAT, AT_LEAST_0)
#define WINDOW_ARGS NEEDS_FROM("kernel", STATIC_PAIR, AT_LEAST_1), MAY_FROM("stride", STATIC_PAIR, AT_LEAST_1), \
                    MAY_FROM("padding", STATIC_PAIR, AT_LEAST_0)

static const GraphOp graph_ops[] = {
    {"linear", OP_linear, .args = {MAY("transposed", STATIC_BOOL)}},
    {"conv2d", OP_conv2d,
     .args = {MAY_FROM("stride", STATIC_PAIR, AT_LEAST_1), MAY_FROM("padding", STATIC_PAIR, AT_LEAST_0),
              MAY_FROM("dilation", STATIC_PAIR, AT_LEAST_1), MAY_FROM("groups", STATIC_INT, AT_LEAST_1)}},

    {"gelu", OP_gelu, .args = {ONE_OF("approximate", "none", "tanh")}},
    {"pow", OP_pow, .args = {NEEDS("e", STATIC_FLOAT)}},
    {"clamp", OP_clamp, .args = {NEEDS("low", STATIC_FLOAT), NEEDS("high", STATIC_FLOAT)}},
    {"dropout", OP_dropout, .args = {MAY_FROM("p", STATIC_FLOAT, BELOW_1)}},
    {.name = "to_f32", .code = OP_cast},

    {"reshape", OP_reshape, .args = {NEEDS("shape", STATIC_SHAPE)}, .prepare = graph_prepare_reshape},
    {"flatten", OP_flatten, .args = {MAY("from", STATIC_INT)}, .prepare = graph_prepare_flatten},
    {"transpose", OP_transpose, .args = {MAY("a", STATIC_INT), MAY("b", STATIC_INT)},
     .prepare = graph_prepare_transpose},
    {"permute", OP_permute, .args = {NEEDS("dims", STATIC_DIMS)}, .prepare = graph_prepare_permute},
    {"slice", OP_slice,
     .args = {NEEDS("dim", STATIC_INT), NEEDS("from", STATIC_INT), NEEDS("to", STATIC_INT)},
     .prepare = graph_prepare_slice},
    {"pad", OP_pad, .args = {NEEDS("dim", STATIC_INT), NEEDS_FROM("before", STATIC_INT, AT_LEAST_0),
                                           NEEDS_FROM("after", STATIC_INT, AT_LEAST_0), MAY("value", STATIC_FLOAT)},
     .prepare = graph_prepare_fixed_dim},
    {"concat", OP_concat, .args = {NEEDS("dim", STATIC_INT)}, .prepare = graph_prepare_fixed_dim},
    {"stack", OP_stack, .args = {NEEDS("dim", STATIC_INT)}, .prepare = graph_prepare_stack},
    {"zeros", OP_full, .args = {NEEDS("shape", STATIC_SHAPE)}, .prepare = graph_prepare_full},
    {"full", OP_full, .args = {NEEDS("shape", STATIC_SHAPE), NEEDS("value", STATIC_FLOAT)},
     .prepare = graph_prepare_full},
    {"arange", OP_arange, .args = {NEEDS_FROM("count", STATIC_INT, AT_LEAST_1)}, .prepare = graph_prepare_arange},

    {"max_pool2d", OP_max_pool2d, .args = {WINDOW_ARGS}, .prepare = graph_prepare_pool},
    {"avg_pool2d", OP_avg_pool2d, .args = {WINDOW_ARGS}, .prepare = graph_prepare_pool},
    {"batch_norm", OP_batch_norm, .results = 3, .args = {EPS_ARG}},
    {"layer_norm", OP_layer_norm, .args = {EPS_ARG}},

    {"sum", OP_sum, .args = {REDUCED_ARGS}, .prepare = graph_prepare_dims},
    {"mean", OP_mean, .args = {REDUCED_ARGS}, .prepare = graph_prepare_dims},
    {"max", OP_max, .args = {REDUCED_ARGS}, .prepare = graph_prepare_dims},
    {"min", OP_min, .args = {REDUCED_ARGS}, .prepare = graph_prepare_dims},
    {"var", OP_var, .args = {REDUCED_ARGS, MAY_FROM("correction", STATIC_INT, AT_LEAST_0)},
     .prepare = graph_prepare_dims},
    {"argmax", OP_argmax, .args = {DIM_ARG}, .prepare = graph_prepare_dim},
    {"softmax", OP_softmax, .args = {DIM_ARG}, .prepare = graph_prepare_dim},
    {"log_softmax", OP_log_softmax, .args = {DIM_ARG}, .prepare = graph_prepare_dim},

    {"nll_loss", OP_nll_loss, .takes = "fl",
     .args = {MAY_FROM("label_smoothing", STATIC_FLOAT, BELOW_1), MAY("ignore", STATIC_INT)}},
    {"accuracy", OP_accuracy, .takes = "fl"},
    {"top_k_accuracy", OP_top_k_accuracy, .takes = "fl", .args = {NEEDS_FROM("k", STATIC_INT, AT_LEAST_1)},
     .prepare = graph_prepare_top_k},
};
/* clang-format on */

enum { GRAPH_OP_COUNT = sizeof graph_ops / sizeof graph_ops[0] };

/* The calls that take tensors alone are those of the op table. */
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
    *least = arity.in_min;
    *most = arity.in_max;
}

bool graph_op_takes(const GraphOp *op, int tensors) {
    int least, most;
    graph_op_tensors(op, &least, &most);
    return tensors >= least && tensors <= most;
}

bool graph_op_is_unsupported(const char *name) {
    for (int i = 0; i < ir_op_word_count; i++)
        if (!strcmp(ir_op_words[i].name, name)) return ir_op_words[i].kind == UNSUPPORTED;
    return false;
}

const char *const *graph_op_names(Elab *e, int *count) {
    const char **names = arena_array(e->a, const char *, GRAPH_OP_COUNT + OP_COUNT + ir_op_word_count);
    *count = 0;
    for (int i = 0; i < GRAPH_OP_COUNT; i++) names[(*count)++] = graph_ops[i].name;
    for (int code = OP_NONE + 1; code < OP_COUNT; code++)
        if (ir_op_info[code].flags & CALL) names[(*count)++] = ir_op_info[code].name;
    for (int i = 0; i < ir_op_word_count; i++)
        if (ir_op_words[i].kind == UNSUPPORTED) names[(*count)++] = ir_op_words[i].name;
    return names;
}

/* ---- static arguments ------------------------------------------------------------------------------------- */

static const struct {
    double min, below;
    const char *text;
} ranges[] = {
    [ANY_VALUE] = {0, 0, NULL},
    [AT_LEAST_0] = {0.0, INFINITY, "at least 0"},
    [AT_LEAST_1] = {1.0, INFINITY, "at least 1"},
    [BELOW_1] = {0.0, 1.0, "at least 0.0 and less than 1.0"},
};

static bool in_range(ArgRange range, const Item *item) {
    if (range == ANY_VALUE) return true;
    for (int i = 0; item->kind == ITEM_TUPLE && i < item->items.count; i++)
        if (!in_range(range, &item->items.at[i])) return false;
    if (item->kind != ITEM_INT && item->kind != ITEM_FLOAT) return true;
    double v = item->kind == ITEM_INT ? (double)item->i.mul : item->f;
    return v >= ranges[range].min && v < ranges[range].below;
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
    elab_error(e, loc, "%s must be %s; this is %s", arg->name, ranges[arg->range].text, item_describe(e, item));
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
    c->items[i] = elab_eval_static(e, given, what, arg->type);
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
    bool good; /* else only the arguments are checked */
} CallOperands;

static void emit_call(Elab *e, const GraphOp *op, const Expr *x, const CallOperands *given, Item *out, int results) {
    GraphCall c = {.e = e, .op = op, .x = x, .o = ir_op_new(e->f, op->code, given->in, given->count)};
    bool good = take_args(&c) && given->good && (!op->prepare || op->prepare(&c));
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
    if (scope) e->frame->scope = scope;
    given.good = elab_take_operands(e, op->code, op->takes, tensors, locs, count, given.in) && scope;
    bool is_f32 = given.good && op->code == OP_cast && ir_dtype(e->f, given.in[0]) == AMP_DT_F32;
    if (is_f32) out[0] = item_tensor(given.in[0]);
    else emit_call(e, op, x, &given, out, results);
    e->frame->scope = outer;
    return results;
}
