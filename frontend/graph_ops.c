/* graph_ops.c: calls and operators that become ops of the graph: a table of what the language calls how, and with
 * which tensors. */
#include "frontend/elaborate.h"

/* ---- tables ---------------------------------------------------------------------------------------------- */

typedef struct AttrCheck { /* what an attribute may be, beyond its type */
    const char *attr;
    double min, below;    /* floats: min <= value < below */
    const char *words[4]; /* symbols: one of these */
} AttrCheck;

struct GraphOp {
    const char *name;
    Opcode code;
    bool last_is_labels;  /* the last operand is i32, one label per row */
    const char *attrs[3]; /* those that a call may give, of the op's */
    AttrCheck check;
};

static const GraphOp graph_ops[] = {
    {.name = "linear", .code = OP_linear, .attrs = {"transposed"}},
    {.name = "matmul", .code = OP_matmul},
    {.name = "relu", .code = OP_relu},
    {.name = "gelu", .code = OP_gelu, .attrs = {"approximate"}, .check = {"approximate", .words = {"none", "tanh"}}},
    {.name = "sigmoid", .code = OP_sigmoid},
    {.name = "tanh", .code = OP_tanh},
    {.name = "exp", .code = OP_exp},
    {.name = "log", .code = OP_log},
    {.name = "sqrt", .code = OP_sqrt},
    {.name = "neg", .code = OP_neg},
    {.name = "dropout", .code = OP_dropout, .attrs = {"p"}, .check = {"p", .below = 1.0}},
    {.name = "sum", .code = OP_sum, .attrs = {"dims", "keep"}},
    {.name = "mean", .code = OP_mean, .attrs = {"dims", "keep"}},
    {.name = "softmax", .code = OP_softmax, .attrs = {"dim"}},
    {.name = "log_softmax", .code = OP_log_softmax, .attrs = {"dim"}},
    {.name = "nll_loss",
     .code = OP_nll_loss,
     .last_is_labels = true,
     .attrs = {"label_smoothing", "ignore"},
     .check = {"label_smoothing", .below = 1.0}},
    {.name = "accuracy", .code = OP_accuracy, .last_is_labels = true},
    {.name = "to_f32", .code = OP_cast},
};

enum { GRAPH_OP_COUNT = sizeof graph_ops / sizeof graph_ops[0] };

/* Of the language, not built yet. */
static const char *const future_calls[] = {
    "abs",
    "adaptive_avg_pool2d",
    "arange",
    "argmax",
    "attention",
    "avg_pool2d",
    "batch_norm",
    "bce_with_logits",
    "clamp",
    "concat",
    "conv2d",
    "conv_transpose2d",
    "cos",
    "embedding",
    "erf",
    "flatten",
    "full",
    "global_avg_pool",
    "group_norm",
    "layer_norm",
    "max",
    "max_pool2d",
    "min",
    "mse_loss",
    "pad",
    "permute",
    "pow",
    "reshape",
    "rms_norm",
    "rsqrt",
    "self_attention",
    "silu",
    "sin",
    "slice",
    "softplus",
    "stack",
    "top_k_accuracy",
    "transpose",
    "var",
    "where",
    "zeros",
};

enum { FUTURE_CALL_COUNT = sizeof future_calls / sizeof future_calls[0] };

static const Opcode operator_ops[OPERATOR_COUNT] = {
    [OPERATOR_ADD] = OP_add, [OPERATOR_SUB] = OP_sub, [OPERATOR_MUL] = OP_mul,
    [OPERATOR_DIV] = OP_div, [OPERATOR_NEG] = OP_neg,
};

const GraphOp *find_graph_op(const char *name) {
    for (int i = 0; i < GRAPH_OP_COUNT; i++)
        if (!strcmp(graph_ops[i].name, name)) return &graph_ops[i];
    return NULL;
}

bool graph_op_takes(const GraphOp *op, int tensors) {
    return tensors >= ir_op_info[op->code].in_min && tensors <= ir_op_info[op->code].in_max;
}

bool is_future_call(const char *name) {
    for (int i = 0; i < FUTURE_CALL_COUNT; i++)
        if (!strcmp(future_calls[i], name)) return true;
    return false;
}

const char *const *call_names(Elab *e, int *count) {
    const char **names = arena_array(e->a, const char *, GRAPH_OP_COUNT + FUTURE_CALL_COUNT);
    *count = 0;
    for (int i = 0; i < GRAPH_OP_COUNT; i++) names[(*count)++] = graph_ops[i].name;
    for (int i = 0; i < FUTURE_CALL_COUNT; i++) names[(*count)++] = future_calls[i];
    return names;
}

/* ---- attributes ------------------------------------------------------------------------------------------ */

static const AttrSpec *find_spec(const Op *o, const char *attr) {
    const AttrSpec *spec = ir_op_info[o->code].attrs;
    while (strcmp(spec->name, attr)) spec++;
    return spec;
}

static const StaticType attr_types[] = {
    [ATTR_INT] = STATIC_INT,       [ATTR_FLOAT] = STATIC_FLOAT,   [ATTR_BOOL] = STATIC_BOOL,
    [ATTR_SYMBOL] = STATIC_SYMBOL, [ATTR_STRING] = STATIC_STRING, [ATTR_DIMS] = STATIC_DIMS,
};

static AttrValue attr_value(AttrType type, const Item *item) {
    AttrValue value = {0};
    switch (type) {
    case ATTR_INT: value.i = item->i.mul; break;
    case ATTR_FLOAT: value.f = item->f; break;
    case ATTR_BOOL: value.b = item->b; break;
    case ATTR_SYMBOL:
    case ATTR_STRING: value.s = item->s; break;
    case ATTR_DIMS:
        value.dims.count = item->items.count;
        for (int i = 0; i < item->items.count; i++) value.dims.at[i] = item->items.at[i].i.mul;
        break;
    case ATTR_END: break;
    }
    return value;
}

static bool check_word(Elab *e, const Expr *x, const AttrCheck *check, const char *word) {
    int count = 0;
    while (count < 4 && check->words[count]) count++;
    for (int i = 0; i < count; i++)
        if (!strcmp(check->words[i], word)) return true;
    Diag *diag = report(e, x->loc, "%s cannot be '%s'", check->attr, word);
    Text t;
    text_init(&t, e->a);
    for (int i = 0; i < count; i++) text_printf(&t, "%s%s", i ? ", " : "", check->words[i]);
    diag_help(e->d, diag, "%s is one of %s", check->attr, text_str(&t));
    return false;
}

static bool check_attr(Elab *e, const Expr *x, const AttrCheck *check, AttrType type, const AttrValue *value) {
    if (type == ATTR_SYMBOL) return check_word(e, x, check, value->s);
    if (value->f >= check->min && value->f < check->below) return true;
    Text t;
    text_init(&t, e->a);
    text_printf(&t, "%s must be at least ", check->attr);
    text_put_double(&t, check->min);
    text_puts(&t, " and less than ");
    text_put_double(&t, check->below);
    text_puts(&t, "; this is ");
    text_put_double(&t, value->f);
    report(e, x->loc, "%s", text_str(&t));
    return false;
}

static bool set_attrs(Elab *e, const GraphOp *op, const Expr *call, Op *o) {
    StaticArgs args = {.call = call};
    Table names = {0};
    bool good = true;
    for (int i = 0; i < 3 && op->attrs[i]; i++) {
        const char *attr = op->attrs[i];
        const AttrSpec *spec = find_spec(o, attr);
        table_set(e->a, &names, attr, o);
        const Expr *x = take_static(&args, attr);
        if (!x) continue;
        Item item = evaluate_static(e, x, attr, attr_types[spec->type]);
        if (item.kind == ITEM_ERROR) {
            good = false;
            continue;
        }
        AttrValue value = attr_value(spec->type, &item);
        if (op->check.attr && !strcmp(op->check.attr, attr))
            good = check_attr(e, x, &op->check, spec->type, &value) && good;
        *ir_attr(o, attr) = value;
    }
    reject_statics(e, &args, &names);
    return good;
}

/* ---- operands -------------------------------------------------------------------------------------------- */

static const char *operand_noun(Opcode code) {
    int flags = ir_op_info[code].flags;
    return flags & PRODUCT ? "a product" : flags & REDUCE ? "a reduction" : ir_op_info[code].name;
}

/* Ops take floats, but for labels. */
static bool check_operand(Elab *e, const Op *o, Val v, Loc loc, bool is_label) {
    Dtype dtype = ir_dtype(e->f, v);
    Item item = item_tensor(v);
    if (is_label && dtype != AMP_DT_I32) {
        report(e, loc, "%s: labels are i32; this is %s", ir_op_info[o->code].name, item_describe(e, &item));
        return false;
    }
    if (is_label || dtype == AMP_DT_F32) return true;
    Diag *diag = report(e, loc, "%s takes floats; this is %s", operand_noun(o->code), item_describe(e, &item));
    diag_help(e->d, diag, "convert it: to_f32(%s)", loc_text(e->a, loc));
    return false;
}

static bool check_operands(Elab *e, const Op *o, const Loc *locs, bool last_is_labels) {
    bool good = true;
    for (int i = 0; i < o->n_in; i++)
        good = check_operand(e, o, o->in[i], locs[i], last_is_labels && i == o->n_in - 1) && good;
    return good;
}

/* A dropout's mask is its own: drawn under its path. */
static void set_key(const Op *o) {
    AttrValue *key = ir_op_info[o->code].flags & RANDOM ? ir_attr(o, "key") : NULL;
    if (key) key->s = o->path;
}

static bool all_there(const Val *in, int count) {
    for (int i = 0; i < count; i++)
        if (!in[i].id) return false;
    return true;
}

static Item emit_call(Elab *e, const GraphOp *op, const Expr *call, const Val *in, const Loc *locs, int count) {
    Op *o = ir_op_new(e->f, op->code, in, count);
    bool good = set_attrs(e, op, call, o) && all_there(in, count);
    if (good && op->code != OP_cast) good = check_operands(e, o, locs, op->last_is_labels);
    if (!good) return ERROR_ITEM;
    Item result = emit_op(e, call->loc, o, locs);
    set_key(o);
    return result;
}

Item elaborate_graph_op(Elab *e, const GraphOp *op, const Expr *call, const Item *tensors, int count) {
    Val *in = arena_array(e->a, Val, count + 1);
    Loc *locs = arena_array(e->a, Loc, count + 1);
    for (int i = 0; i < count; i++) {
        locs[i] = call->call.args.data[i].loc;
        in[i] = as_tensor(e, locs[i], &tensors[i]);
    }
    if (op->code == OP_cast && in[0].id && ir_dtype(e->f, in[0]) == AMP_DT_F32) return item_tensor(in[0]);
    if (!call->call.as) return emit_call(e, op, call, in, locs, count);
    const char *path = path_text(e, call->call.as), *outer = e->frame->scope;
    if (!path) return ERROR_ITEM;
    e->frame->scope = join_path(e, outer, path);
    Item result = emit_call(e, op, call, in, locs, count);
    e->frame->scope = outer;
    return result;
}

/* ---- operators ------------------------------------------------------------------------------------------- */

/* A number beside an integer tensor makes it floats where it is one itself. */
static Val operand_of(Elab *e, const Expr *x, const Item *item, const Item *other) {
    Val v = as_tensor(e, x->loc, item);
    if (!v.id || ir_dtype(e->f, v) != AMP_DT_I32) return v;
    bool beside_float = other && (other->kind == ITEM_FLOAT ||
                                  (other->kind == ITEM_TENSOR && ir_dtype(e->f, other->tensor) == AMP_DT_F32));
    if (!beside_float) return v;
    Item cast = emit_op(e, x->loc, ir_op_new(e->f, OP_cast, &v, 1), &x->loc);
    return cast.kind == ITEM_TENSOR ? cast.tensor : NO_VAL;
}

Item tensor_operation(Elab *e, const Expr *x, const Item *left, const Item *right) {
    Opcode code = operator_ops[x->operation.op];
    const char *spelling = operator_spelling[x->operation.op];
    if (!code) {
        report_not_built(e, x->loc, arena_printf(e->a, "'%s' of tensors", spelling));
        return ERROR_ITEM;
    }
    Loc locs[2] = {x->operation.left->loc, right ? x->operation.right->loc : x->loc};
    Val in[2] = {operand_of(e, x->operation.left, left, right)};
    if (right) in[1] = operand_of(e, x->operation.right, right, left);
    if (!in[0].id || (right && !in[1].id)) return ERROR_ITEM;
    Op *o = ir_op_new(e->f, code, in, right ? 2 : 1);
    return check_operands(e, o, locs, false) ? emit_op(e, x->loc, o, locs) : ERROR_ITEM;
}
