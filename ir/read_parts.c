/* read_parts.c: the parts that many lines have: types, places, calls, reasons. */
#include "ir/reader.h"

Dtype reader_dtype(Reader *r) {
    Dtype t = r->token.kind == TOKEN_WORD ? word_dtype(r->token.text) : AMP_DT_NONE;
    if (t == AMP_DT_NONE) reader_expected(r, "a type (f32, f16, bf16, tf32, f64, i32, i64, u8, bool)");
    else reader_next(r);
    return t;
}

/* 512, N, 4 * N, N / 2, 3 * N / 2 */
static Dim read_dim(Reader *r) {
    int64_t mul = 1, div = 1;
    if (!reader_at_word(r, "N")) {
        mul = reader_int(r, "a dimension", 1, INT64_MAX);
        if (!reader_take(r, '*')) return dim_const(mul);
    }
    reader_need_word(r, "N");
    if (reader_take(r, '/')) div = reader_int(r, "a divisor", 1, INT64_MAX);
    return dim_n(mul, div);
}

Shape reader_type(Reader *r, Dtype *t) {
    Shape s = shape_scalar();
    *t = reader_dtype(r);
    if (!reader_take(r, '[')) return s;
    do {
        if (s.rank == MAX_RANK) {
            reader_fail(r, r->token.loc, "a shape has at most %d dimensions", MAX_RANK);
            return s;
        }
        s.d[s.rank++] = read_dim(r);
    } while (reader_take(r, ','));
    reader_need(r, ']');
    return s;
}

Pos reader_place(Reader *r) {
    Pos pos = {.file = reader_optional_name(r, "a file name")};
    reader_need(r, ':');
    pos.line = (int)reader_int(r, "a line", 0, INT32_MAX);
    reader_need(r, ':');
    pos.column = (int)reader_int(r, "a column", 0, INT32_MAX);
    return pos;
}

Pos reader_at(Reader *r) { return reader_take_word(r, "at") ? reader_place(r) : (Pos){0}; }

Dims reader_dims(Reader *r) {
    Dims dims = {0};
    reader_need(r, '(');
    while (!r->failed && !reader_take(r, ')')) {
        if (dims.count) reader_need(r, ',');
        if (dims.count == MAX_RANK) {
            reader_fail(r, r->token.loc, "at most %d dims", MAX_RANK);
            return dims;
        }
        dims.at[dims.count++] = reader_int(r, "a number", INT32_MIN, INT32_MAX);
    }
    return dims;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static bool is_integer(const char *number) { return !number[strspn(number, "-0123456789")]; }

enum { MOST_ARGUMENTS = 64 };

static void read_argument_value(Reader *r, CallArg *arg) {
    const Token *t = &r->token;
    if (reader_at_word(r, "true") || reader_at_word(r, "false")) {
        arg->type = ATTR_BOOL;
        arg->value.b = reader_bool(r);
    } else if (t->kind == TOKEN_NUMBER && is_integer(t->text)) {
        arg->type = ATTR_INT;
        arg->value.i = reader_int(r, "an integer", INT64_MIN, INT64_MAX);
    } else if (t->kind == TOKEN_NUMBER || reader_at_word(r, "inf") || reader_at_word(r, "nan")) {
        arg->type = ATTR_FLOAT;
        arg->value.f = reader_float(r, "a number");
    } else {
        arg->type = ATTR_SYMBOL;
        arg->value.s = reader_name(r, "a value");
    }
}

/* Behind the name.  An argument may be a schedule; a schedule's are numbers. */
static Call read_arguments(Reader *r, const char *name, bool takes_calls) {
    Call c = {.name = name};
    reader_need(r, '(');
    while (!r->failed && !reader_take(r, ')')) {
        if (c.args.len) reader_need(r, ',');
        Loc loc = r->token.loc;
        CallArg arg = {.name = reader_name(r, "an argument's name")};
        if (c.args.len == MOST_ARGUMENTS) reader_fail(r, loc, "at most %d arguments", MOST_ARGUMENTS);
        if (ir_call_arg(&c, arg.name)) reader_fail(r, loc, "argument %s stands twice", arg.name);
        reader_need(r, '=');
        read_argument_value(r, &arg);
        if (takes_calls && arg.type == ATTR_SYMBOL && reader_at_punct(r, '(')) {
            arg.call = arena_new(r->a, Call);
            *arg.call = read_arguments(r, arg.value.s, false);
            arg.type = ATTR_FLOAT; /* what the schedule gives */
            arg.value = (AttrValue){0};
        }
        vec_push(r->a, &c.args, arg);
    }
    return c;
}

Call reader_call(Reader *r) {
    const char *name = reader_name(r, "a name");
    return read_arguments(r, name, true);
}

/* ---- reasons ----------------------------------------------------------------------------------------------------- */

/* One of: override PLACE, "words", ORIGIN:LINE, RELATION NEIGHBOUR. */
static void read_reason_item(Reader *r, Reason *reason) {
    Loc loc = r->token.loc;
    if (reader_take_word(r, "override")) {
        if (reason->is_override) reader_fail(r, loc, "this stands twice in the reason");
        reason->is_override = true;
        reason->where = reader_place(r);
        return;
    }
    bool quoted = r->token.kind == TOKEN_STRING;
    const char *name = reader_take_word(r, "of") ? "of" : reader_name(r, "a part of a reason");
    const char **slot;
    if (reader_take(r, ':')) {
        slot = &reason->origin;
        reason->line = (int)reader_int(r, "a line", 0, INT32_MAX);
    } else if (r->token.kind == TOKEN_WORD || r->token.kind == TOKEN_STRING ||
               (r->token.kind == TOKEN_PUNCT && r->token.text[0] == '-')) {
        slot = &reason->relation;
        reason->neighbour = reader_optional_name(r, "a path");
    } else if (quoted) {
        slot = &reason->because;
    } else {
        reader_expected(r, "':' and a line, or a path");
        return;
    }
    if (*slot) reader_fail(r, loc, "this stands twice in the reason");
    *slot = name;
}

Reason *reader_because(Reader *r) {
    if (!reader_take_word(r, "because")) return NULL;
    reader_need(r, '{');
    Reason *reason = arena_new(r->a, Reason);
    reason->rule = reader_optional_name(r, "a rule");
    while (!r->failed && reader_take(r, ',')) read_reason_item(r, reason);
    reader_need(r, '}');
    return reason;
}

void reader_origin(Reader *r, const char **path, const char **layer) {
    if (!reader_take(r, '@')) return;
    *path = reader_optional_name(r, "a path");
    if (reader_take_word(r, "layer")) *layer = reader_name(r, "a layer");
}
