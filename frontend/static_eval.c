/* static_eval.c: arithmetic on what is known at compile time.
 *
 * Ints are exact: overflow and division with a remainder are errors.  Sizes can depend on N and T as k * N * T / m, the
 * form that products and quotients by ints have. */
#include "frontend/elaborate.h"

#include <math.h>

static Item item_bool(bool b) { return (Item){.kind = ITEM_BOOL, .b = b}; }
static Item item_float(double f) { return (Item){.kind = ITEM_FLOAT, .f = f}; }
static bool is_number(const Item *item) {
    return (item->kind == ITEM_INT && !dim_varies(item->i)) || item->kind == ITEM_FLOAT;
}
static double as_double(const Item *item) { return item->kind == ITEM_INT ? (double)item->i.mul : item->f; }

static Item overflow(Elab *e, const Expr *x) {
    return elab_error_item(e, x->loc, "the result does not fit in 64 bits");
}

/* "roll: " where the expression is one of a layer of the prelude. */
static const char *layer_prefix(Elab *e) {
    return e->frame && e->frame->layer ? arena_printf(e->a, "%s: ", e->frame->layer) : "";
}

static Item division_by_zero(Elab *e, const Expr *x) {
    const char *layer = layer_prefix(e);
    if (!*layer) return elab_error_item(e, x->loc, "division by zero");
    return elab_error_item(e, x->loc, "%s%s divides by zero", layer, loc_text(e->a, x->loc));
}

/* ---- ints ------------------------------------------------------------------------------------------------- */

static Item refuse_sum(Elab *e, const Expr *x, Dim a, Dim b) {
    const char *size = a.t || b.t ? "T" : "N";
    Diag *diag = elab_error(e, x->loc, "a size that depends on %s is k * %s or %s / k; %s is neither", size, size, size,
                            loc_text(e->a, x->loc));
    if (a.t || b.t) elab_help_one_length(e, diag);
    return ERROR_ITEM;
}

static Item int_sum(Elab *e, const Expr *x, Dim a, Dim b) {
    int64_t v;
    bool subtract = x->operation.op == OPERATOR_SUB;
    if (dim_varies(a) || dim_varies(b)) return refuse_sum(e, x, a, b);
    if (subtract ? __builtin_sub_overflow(a.mul, b.mul, &v) : __builtin_add_overflow(a.mul, b.mul, &v))
        return overflow(e, x);
    return item_int(v);
}

static Item int_product(Elab *e, const Expr *x, Dim a, Dim b) {
    Item product = {.kind = ITEM_INT};
    if (a.n && b.n)
        return elab_error_item(e, x->loc, "a size can depend on N only once; %s uses it twice", loc_text(e->a, x->loc));
    if (a.t + b.t > LARGEST_POWER)
        return elab_error_item(e, x->loc, "a size can depend on T twice, as T * T; %s uses it more often",
                               loc_text(e->a, x->loc));
    if ((dim_varies(a) && b.mul <= 0) || (dim_varies(b) && a.mul <= 0))
        return elab_error_item(e, x->loc, "%s can be multiplied only by positive integers", a.n || b.n ? "N" : "T");
    return dim_mul(a, b, &product.i) ? product : overflow(e, x);
}

static Item int_quotient(Elab *e, const Expr *x, Dim a, Dim b) {
    if (dim_varies(b)) return elab_error_item(e, x->loc, "%s cannot be a divisor", b.n ? "N" : "T");
    if (b.mul == 0) return division_by_zero(e, x);
    if (dim_varies(a)) {
        int64_t div;
        if (b.mul < 0)
            return elab_error_item(e, x->loc, "%s can be divided only by positive integers", a.n ? "N" : "T");
        if (__builtin_mul_overflow(a.div, b.mul, &div)) return overflow(e, x);
        const Item quotient = {.kind = ITEM_INT, .i = dim_divided(a, b.mul)};
        return elab_quotient_is_whole(e, x, quotient.i) ? quotient : ERROR_ITEM;
    }
    if (b.mul == -1) return a.mul == INT64_MIN ? overflow(e, x) : item_int(-a.mul);
    if (a.mul % b.mul == 0) return (Item){.kind = ITEM_INT, .i = dim_divided(a, b.mul)};
    const char *layer = layer_prefix(e);
    const char *text = arena_printf(e->a, "%lld / %lld", (long long)a.mul, (long long)b.mul);
    const char *written = loc_text(e->a, x->loc);
    Diag *diag = strcmp(text, written)
                     ? elab_error(e, x->loc, "%s%s is %s, which leaves a remainder", layer, written, text)
                     : elab_error(e, x->loc, "%s%s leaves a remainder", layer, text);
    if (!*layer)
        diag_help(e->d, diag, "%lld.0 / %lld.0 is a fraction; (%lld - %lld %% %lld) / %lld rounds down",
                  (long long)a.mul, (long long)b.mul, (long long)a.mul, (long long)a.mul, (long long)b.mul,
                  (long long)b.mul);
    return ERROR_ITEM;
}

/* As torch.remainder, of tensors: with the sign of the divisor. */
static Item int_remainder(Elab *e, const Expr *x, Dim a, Dim b) {
    if (dim_varies(a) || dim_varies(b)) {
        Diag *diag = elab_error(e, x->loc, "a remainder is of numbers; a size that depends on %s has none",
                                a.t || b.t ? "T" : "N");
        if (a.t || b.t) elab_help_one_length(e, diag);
        return ERROR_ITEM;
    }
    if (b.mul == 0) return division_by_zero(e, x);
    const int64_t rest = b.mul == -1 ? 0 : a.mul % b.mul;
    return item_int(rest && (rest < 0) != (b.mul < 0) ? rest + b.mul : rest);
}

static Item (*const int_operations[OPERATOR_COUNT])(Elab *, const Expr *, Dim, Dim) = {
    [OPERATOR_ADD] = int_sum,
    [OPERATOR_SUB] = int_sum,
    [OPERATOR_MUL] = int_product,
    [OPERATOR_DIV] = int_quotient,
    [OPERATOR_REMAINDER] = int_remainder,
};

/* ---- floats ----------------------------------------------------------------------------------------------- */

static Item float_operation(Elab *e, const Expr *x, double a, double b) {
    switch (x->operation.op) {
    case OPERATOR_ADD: return item_float(a + b);
    case OPERATOR_SUB: return item_float(a - b);
    case OPERATOR_MUL: return item_float(a * b);
    default: break;
    }
    if (b == 0.0) return division_by_zero(e, x);
    if (x->operation.op == OPERATOR_DIV) return item_float(a / b);
    const double rest = fmod(a, b);
    return item_float(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
}

/* ---- comparisons and logic -------------------------------------------------------------------------------- */

static bool equal(const Item *a, const Item *b) {
    if (is_number(a) && is_number(b))
        return a->kind == ITEM_INT && b->kind == ITEM_INT ? a->i.mul == b->i.mul : as_double(a) == as_double(b);
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case ITEM_INT: return dim_equal(a->i, b->i);
    case ITEM_BOOL: return a->b == b->b;
    case ITEM_SYMBOL:
    case ITEM_STRING: return !strcmp(a->s, b->s);
    case ITEM_TUPLE:
    case ITEM_LIST:
        if (a->items.count != b->items.count) return false;
        for (int i = 0; i < a->items.count; i++)
            if (!equal(&a->items.at[i], &b->items.at[i])) return false;
        return true;
    default: return true; /* none */
    }
}

static Item compare(Elab *e, const Expr *x, const Item *a, const Item *b) {
    Operator op = x->operation.op;
    if (op == OPERATOR_EQ || op == OPERATOR_NE) return item_bool(equal(a, b) == (op == OPERATOR_EQ));
    if (!is_number(a) || !is_number(b)) {
        Diag *diag = elab_error(e, x->loc, "%s compares numbers, not %s and %s", operator_spelling[op],
                                item_describe(e, a), item_describe(e, b));
        if ((a->kind == ITEM_INT && a->i.t) || (b->kind == ITEM_INT && b->i.t)) elab_help_one_length(e, diag);
        return ERROR_ITEM;
    }
    bool ints = a->kind == ITEM_INT && b->kind == ITEM_INT;
    bool less = ints ? a->i.mul < b->i.mul : as_double(a) < as_double(b);
    bool same = equal(a, b);
    switch (op) {
    case OPERATOR_LT: return item_bool(less);
    case OPERATOR_LE: return item_bool(less || same);
    case OPERATOR_GT: return item_bool(!less && !same);
    default: return item_bool(!less);
    }
}

static Item logic(Elab *e, const Expr *x, const Item *a, const Item *b) {
    if (a->kind != ITEM_BOOL || b->kind != ITEM_BOOL)
        return elab_error_item(e, x->loc, "'%s' combines conditions, not %s and %s", operator_spelling[x->operation.op],
                               item_describe(e, a), item_describe(e, b));
    return item_bool(x->operation.op == OPERATOR_AND ? a->b && b->b : a->b || b->b);
}

/* ---- operators -------------------------------------------------------------------------------------------- */

Item elab_static_binary(Elab *e, const Expr *x, Item left, Item right) {
    Operator op = x->operation.op;
    if (op == OPERATOR_AND || op == OPERATOR_OR) return logic(e, x, &left, &right);
    if (op >= OPERATOR_EQ && op <= OPERATOR_GE) return compare(e, x, &left, &right);
    if (left.kind == ITEM_INT && right.kind == ITEM_INT) return int_operations[op](e, x, left.i, right.i);
    if (is_number(&left) && is_number(&right)) return float_operation(e, x, as_double(&left), as_double(&right));
    return elab_error_item(e, x->loc, "%s needs two numbers, not %s and %s", operator_spelling[op],
                           item_describe(e, &left), item_describe(e, &right));
}

Item elab_static_unary(Elab *e, const Expr *x, Item operand) {
    if (x->operation.op == OPERATOR_NOT) {
        if (operand.kind == ITEM_BOOL) return item_bool(!operand.b);
        return elab_error_item(e, x->loc, "'not' needs a condition, not %s", item_describe(e, &operand));
    }
    if (operand.kind == ITEM_FLOAT) return item_float(-operand.f);
    if (operand.kind == ITEM_INT && !dim_varies(operand.i))
        return operand.i.mul == INT64_MIN ? overflow(e, x) : item_int(-operand.i.mul);
    return elab_error_item(e, x->loc, "'-' needs a number, not %s", item_describe(e, &operand));
}

/* ---- builtins --------------------------------------------------------------------------------------------- */

static bool need_tensor(Elab *e, const Expr *call, const Item *item) {
    if (item->kind == ITEM_TENSOR) return true;
    elab_error(e, call->loc, "%s needs a tensor, not %s", call->call.callee->text, item_describe(e, item));
    return false;
}

/* The entry of a pair or list at an index; negative indexes count from the end. */
static Item list_entry(Elab *e, const Expr *call, const Item *list, int64_t i) {
    int64_t at = i < 0 ? i + list->items.count : i;
    if (at >= 0 && at < list->items.count) return list->items.at[at];
    return elab_error_item(e, call->loc, "%s has no entry %lld", item_describe(e, list), (long long)i);
}

static Item builtin_dim(Elab *e, const Expr *call, const Item *args) {
    bool is_list = args[0].kind == ITEM_TUPLE || args[0].kind == ITEM_LIST;
    if (!is_list && !need_tensor(e, call, &args[0])) return ERROR_ITEM;
    if (args[1].kind != ITEM_INT || dim_varies(args[1].i))
        return elab_error_item(e, call->loc, "dim needs the number of a dimension");
    if (is_list) return list_entry(e, call, &args[0], args[1].i.mul);
    const Shape *s = ir_shape(e->f, args[0].tensor);
    int64_t i = args[1].i.mul < 0 ? args[1].i.mul + s->rank : args[1].i.mul;
    if (i >= 0 && i < s->rank) return (Item){.kind = ITEM_INT, .i = s->d[i]};
    return elab_error_item(e, call->loc, "%s%s has no dimension %lld", layer_prefix(e), item_describe(e, &args[0]),
                           (long long)args[1].i.mul);
}

static Item builtin_rank(Elab *e, const Expr *call, const Item *args) {
    return need_tensor(e, call, &args[0]) ? item_int(ir_shape(e->f, args[0].tensor)->rank) : ERROR_ITEM;
}

/* The name of a tensor's type, a symbol. */
static Item builtin_dtype(Elab *e, const Expr *call, const Item *args) {
    if (!need_tensor(e, call, &args[0])) return ERROR_ITEM;
    return (Item){.kind = ITEM_SYMBOL, .s = amp_dtype_name(ir_dtype(e->f, args[0].tensor))};
}

/* Whether a size is a number, and depends neither on N nor on T. */
static Item builtin_fixed(Elab *e, const Expr *call, const Item *args) {
    if (args[0].kind == ITEM_INT) return item_bool(!dim_varies(args[0].i));
    return elab_error_item(e, call->loc, "fixed needs a size, not %s", item_describe(e, &args[0]));
}

static Item builtin_given(Elab *e, const Expr *call, const Item *args) {
    (void)e;
    (void)call;
    return item_bool(args[0].kind != ITEM_NONE);
}

/* min and max. */
static Item smaller_or_larger(Elab *e, const Expr *call, const Item *args, bool smaller) {
    if (!is_number(&args[0]) || !is_number(&args[1]))
        return elab_error_item(e, call->loc, "%s needs two numbers, not %s and %s", call->call.callee->text,
                               item_describe(e, &args[0]), item_describe(e, &args[1]));
    bool ints = args[0].kind == ITEM_INT && args[1].kind == ITEM_INT;
    bool first_less = ints ? args[0].i.mul < args[1].i.mul : as_double(&args[0]) < as_double(&args[1]);
    Item chosen = first_less == smaller ? args[0] : args[1];
    return ints ? chosen : item_float(as_double(&chosen));
}

static Item builtin_min(Elab *e, const Expr *call, const Item *args) { return smaller_or_larger(e, call, args, true); }
static Item builtin_max(Elab *e, const Expr *call, const Item *args) { return smaller_or_larger(e, call, args, false); }

static Item builtin_sqrt(Elab *e, const Expr *call, const Item *args) {
    if (!is_number(&args[0]) || as_double(&args[0]) < 0)
        return elab_error_item(e, call->loc, "sqrt needs a non-negative number, not %s", item_describe(e, &args[0]));
    return item_float(sqrt(as_double(&args[0])));
}

static Item builtin_log(Elab *e, const Expr *call, const Item *args) {
    if (!is_number(&args[0]) || !(as_double(&args[0]) > 0))
        return elab_error_item(e, call->loc, "%slog needs a positive number, not %s", layer_prefix(e),
                               item_describe(e, &args[0]));
    return item_float(log(as_double(&args[0])));
}

typedef struct Builtin {
    const char *name;
    int args;
    bool of_tensors; /* else an op of the same name takes tensors */
    Item (*evaluate)(Elab *, const Expr *, const Item *);
} Builtin;

static const Builtin builtins[] = {
    {"dim", 2, true, builtin_dim},  {"rank", 1, true, builtin_rank},   {"given", 1, true, builtin_given},
    {"min", 2, false, builtin_min}, {"max", 2, false, builtin_max},    {"sqrt", 1, false, builtin_sqrt},
    {"log", 1, false, builtin_log}, {"dtype", 1, true, builtin_dtype}, {"fixed", 1, true, builtin_fixed},
};

static const Builtin *find_builtin(const char *name) {
    for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++)
        if (!strcmp(builtins[i].name, name)) return &builtins[i];
    return NULL;
}

bool elab_is_static_builtin(const char *name, const Item *args, int count) {
    const Builtin *b = find_builtin(name);
    if (!b || b->of_tensors) return b != NULL;
    for (int i = 0; i < count; i++)
        if (!item_is_static(&args[i]) && args[i].kind != ITEM_ERROR) return false;
    return true;
}

Item elab_static_builtin(Elab *e, const Expr *call, const Item *args, int count) {
    const Builtin *b = find_builtin(call->call.callee->text);
    if (elab_refuse_sharing(e, call)) return ERROR_ITEM;
    if (call->call.has_semicolon || call->call.as)
        return elab_error_item(e, call->loc, "%s is computed at compile time; it takes neither ';' nor 'as'", b->name);
    if (count != b->args)
        return elab_error_item(e, call->loc, "%s takes %d argument%s, not %d", b->name, b->args,
                               b->args == 1 ? "" : "s", count);
    for (int i = 0; i < count; i++)
        if (args[i].kind == ITEM_ERROR) return ERROR_ITEM;
    return b->evaluate(e, call, args);
}
