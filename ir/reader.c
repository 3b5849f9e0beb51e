/* reader.c: the tokens of the text form, and the parts that many of its lines have: types, places, calls, reasons. */
#include "ir/reader.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text.h"

enum { LONGEST_SOURCE = 1 << 28 }; /* offsets are 32 bits */

/* ---- errors ------------------------------------------------------------------------------------------------------ */

void reader_fail(Reader *r, Loc loc, const char *fmt, ...) {
    if (r->failed) return;
    va_list args;
    va_start(args, fmt);
    diag_error(r->diags, loc, "%s", arena_vprintf(r->a, fmt, args));
    va_end(args);
    r->failed = true;
    r->token = (Token){.kind = TOKEN_END, .loc = loc, .text = ""};
}

void reader_expected(Reader *r, const char *what) {
    const Token *t = &r->token;
    if (t->kind == TOKEN_END) reader_fail(r, t->loc, "expected %s, found the end of the text", what);
    else
        reader_fail(r, t->loc, "expected %s, found '%.*s'", what, (int)(t->loc.end - t->loc.begin),
                    r->source->text + t->loc.begin);
}

/* ---- characters -------------------------------------------------------------------------------------------------- */

/* '\0' after the end; a NUL in the text is a character that no token takes. */
static char peek(const Reader *r, uint32_t ahead) {
    size_t at = (size_t)r->at + ahead;
    return at < r->source->len ? r->source->text[at] : '\0';
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static void skip_space(Reader *r) {
    for (;;) {
        char c = peek(r, 0);
        if (c == ' ' || c == '\n' || c == '\t' || c == '\r') r->at++;
        else if (c == '/' && peek(r, 1) == '/')
            while (r->at < r->source->len && peek(r, 0) != '\n') r->at++;
        else return;
    }
}

static Loc loc_from(const Reader *r, uint32_t begin) { return (Loc){r->source, begin, r->at}; }

static void set_token(Reader *r, TokenKind kind, uint32_t begin, const char *text) {
    if (!r->failed) r->token = (Token){kind, loc_from(r, begin), text};
}

static const char *slice(const Reader *r, uint32_t begin) {
    return arena_strndup(r->a, r->source->text + begin, r->at - begin);
}

static int hex_digit(char c) {
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* After the backslash.  '\0': no escape. */
static char read_escape(Reader *r) {
    char c = peek(r, 0);
    r->at++;
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case '"':
    case '\\': return c;
    case 'x': {
        int high = hex_digit(peek(r, 0)), low = high < 0 ? -1 : hex_digit(peek(r, 1));
        if (low < 0) return '\0';
        r->at += 2;
        return (char)(high * 16 + low);
    }
    default: return '\0';
    }
}

/* At the opening quote. */
static const char *read_quoted(Reader *r) {
    uint32_t begin = r->at++;
    Text t;
    text_init(&t, r->a);
    while (peek(r, 0) != '"') {
        uint32_t at = r->at;
        char c = peek(r, 0);
        if (r->at >= r->source->len || c == '\n') {
            reader_fail(r, loc_from(r, begin), "this string has no closing quote");
            return "";
        }
        r->at++;
        if (c == '\\') c = read_escape(r);
        if (c == '\0') {
            if (r->at > r->source->len) r->at = (uint32_t)r->source->len;
            reader_fail(r, loc_from(r, at), "not a character of a string; escapes are \\\" \\\\ \\n \\t \\xNN");
            return "";
        }
        text_putc(&t, c);
    }
    r->at++;
    return text_str(&t);
}

static void read_value(Reader *r) {
    uint32_t begin = r->at++;
    uint32_t name = r->at;
    const char *text;
    if (peek(r, 0) == '"') text = read_quoted(r);
    else {
        while (value_name_char(peek(r, 0))) r->at++;
        text = slice(r, name);
    }
    set_token(r, TOKEN_VALUE, begin, text);
    if (!*text) reader_fail(r, loc_from(r, begin), "a value needs a name");
}

static void read_digits(Reader *r) {
    while (is_digit(peek(r, 0))) r->at++;
}

static void read_number(Reader *r) {
    uint32_t begin = r->at;
    if (peek(r, 0) == '-') r->at++;
    if (peek(r, 0) == 'i') r->at += 3;
    read_digits(r);
    if (peek(r, 0) == '.') {
        r->at++;
        read_digits(r);
    }
    if (peek(r, 0) == 'e') {
        r->at += peek(r, 1) == '-' || peek(r, 1) == '+' ? 2 : 1;
        read_digits(r);
    }
    set_token(r, TOKEN_NUMBER, begin, slice(r, begin));
    if (word_goes_on(peek(r, 0))) reader_fail(r, loc_from(r, begin), "a number ends here, and a letter follows");
}

static bool number_starts(const Reader *r) {
    if (is_digit(peek(r, 0))) return true;
    return peek(r, 0) == '-' && (is_digit(peek(r, 1)) || (peek(r, 1) == 'i' && peek(r, 2) == 'n' && peek(r, 3) == 'f'));
}

void reader_next(Reader *r) {
    if (r->failed) return;
    skip_space(r);
    uint32_t begin = r->at;
    char c = peek(r, 0);
    if (r->at >= r->source->len) set_token(r, TOKEN_END, begin, "");
    else if (word_starts(c)) {
        while (word_goes_on(peek(r, 0))) r->at++;
        set_token(r, TOKEN_WORD, begin, slice(r, begin));
    } else if (number_starts(r)) read_number(r);
    else if (c == '%') read_value(r);
    else if (c == '"') {
        const char *text = read_quoted(r);
        set_token(r, TOKEN_STRING, begin, text);
    } else {
        r->at++;
        set_token(r, TOKEN_PUNCT, begin, slice(r, begin));
    }
}

void reader_start(Reader *r, Arena *a, Diags *d, const Source *source) {
    *r = (Reader){.a = a, .diags = d, .source = source};
    if (source->len > LONGEST_SOURCE)
        reader_fail(r, (Loc){0}, "%s: longer than %d bytes", source->name, LONGEST_SOURCE);
    reader_next(r);
}

/* ---- small steps ------------------------------------------------------------------------------------------------- */

bool reader_at_punct(const Reader *r, char punct) { return r->token.kind == TOKEN_PUNCT && r->token.text[0] == punct; }

bool reader_take(Reader *r, char punct) {
    if (!reader_at_punct(r, punct)) return false;
    reader_next(r);
    return true;
}

bool reader_at_word(const Reader *r, const char *word) {
    return r->token.kind == TOKEN_WORD && !strcmp(r->token.text, word);
}

bool reader_take_word(Reader *r, const char *word) {
    if (!reader_at_word(r, word)) return false;
    reader_next(r);
    return true;
}

void reader_need(Reader *r, char punct) {
    if (!reader_take(r, punct)) reader_expected(r, (char[]){'\'', punct, '\'', '\0'});
}

void reader_need_word(Reader *r, const char *word) {
    if (!reader_take_word(r, word)) reader_expected(r, arena_printf(r->a, "'%s'", word));
}

const char *reader_name(Reader *r, const char *what) {
    const char *text = r->token.text;
    if (r->token.kind == TOKEN_STRING || (r->token.kind == TOKEN_WORD && !word_is_reserved(text))) {
        reader_next(r);
        return text;
    }
    reader_expected(r, what);
    return "";
}

const char *reader_optional_name(Reader *r, const char *what) {
    return reader_take(r, '-') ? NULL : reader_name(r, what);
}

const char *reader_string(Reader *r, const char *what) {
    const char *text = r->token.text;
    if (r->token.kind == TOKEN_STRING) {
        reader_next(r);
        return text;
    }
    reader_expected(r, what);
    return "";
}

int64_t reader_int(Reader *r, const char *what, int64_t least, int64_t most) {
    char *end = NULL;
    errno = 0;
    long long v = r->token.kind == TOKEN_NUMBER ? strtoll(r->token.text, &end, 10) : 0;
    if (!end || *end || errno) {
        reader_expected(r, what);
        return least;
    }
    if (v < least || v > most) {
        reader_fail(r, r->token.loc, "%s must be from %lld to %lld", what, (long long)least, (long long)most);
        return least;
    }
    reader_next(r);
    return v;
}

double reader_float(Reader *r, const char *what) {
    static const double infinity = 1.0 / 0.0;
    double v = 0.0;
    const Token *t = &r->token;
    if (reader_at_word(r, "inf")) v = infinity;
    else if (reader_at_word(r, "nan")) v = infinity - infinity;
    else if (t->kind == TOKEN_NUMBER && !strcmp(t->text, "-inf")) v = -infinity;
    else if (t->kind != TOKEN_NUMBER || !decimal_parse(t->text, strlen(t->text), &v)) {
        reader_expected(r, what);
        return 0.0;
    }
    reader_next(r);
    return v;
}

bool reader_bool(Reader *r) {
    if (reader_take_word(r, "true")) return true;
    if (!reader_take_word(r, "false")) reader_expected(r, "'true' or 'false'");
    return false;
}

int reader_choice(Reader *r, const char *what, const char *const *names, int count) {
    int i = r->token.kind == TOKEN_WORD ? word_index(r->token.text, names, count) : -1;
    if (i < 0) {
        reader_expected(r, what);
        return 0;
    }
    reader_next(r);
    return i;
}

/* ---- types, dims and places -------------------------------------------------------------------------------------- */

Dtype reader_dtype(Reader *r) {
    Dtype t = r->token.kind == TOKEN_WORD ? word_dtype(r->token.text) : AMP_DT_NONE;
    if (t == AMP_DT_NONE) reader_expected(r, "a type (f32, f16, bf16, tf32, f64, i32, i64, u8, bool)");
    else reader_next(r);
    return t;
}

/* N, T, or T=64: made of a T that is 64 */
static bool take_size(Reader *r, Dim *size) {
    const bool is_n = reader_at_word(r, "N");
    if (!is_n && !reader_at_word(r, "T")) return false;
    *size = is_n ? dim_n(1, 1) : dim_t(1, 1);
    reader_next(r);
    if (!is_n && reader_take(r, '=')) *size = dim_sized(reader_int(r, "the number of T", 1, INT32_MAX));
    return true;
}

/* 512, N, 4 * N, N / 2, 3 * N * T * T / 2, 4 * T=64 * N */
Dim reader_dim(Reader *r) {
    Dim d = dim_const(1), size;
    if (take_size(r, &size)) d = size;
    else d.mul = reader_int(r, "a dimension", 1, INT64_MAX);
    while (reader_take(r, '*')) {
        if (!take_size(r, &size)) {
            reader_expected(r, "N or T");
            return d;
        }
        if (!dim_times(d, size, &d)) reader_fail(r, r->token.loc, "a dimension has N and T at most twice each");
    }
    if ((!dim_varies(d) && !d.sized) || !reader_take(r, '/')) return d;
    return dim_divided(d, reader_int(r, "a divisor", 1, INT64_MAX));
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
        s.d[s.rank++] = reader_dim(r);
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

const Numbers *reader_numbers(Reader *r) {
    Numbers *numbers = arena_new(r->a, Numbers);
    reader_need(r, '[');
    while (!r->failed && !reader_take(r, ']')) {
        if (numbers->count) reader_need(r, ',');
        if (numbers->count == MOST_NUMBERS) {
            reader_fail(r, r->token.loc, "at most %d numbers", MOST_NUMBERS);
            return numbers;
        }
        numbers->at[numbers->count++] = reader_float(r, "a number");
    }
    return numbers;
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

/* After the name.  An argument may be a schedule; a schedule's are numbers. */
static Call read_arguments(Reader *r, const char *name, bool takes_calls) {
    Call c = {.name = name};
    reader_need(r, '(');
    while (!r->failed && !reader_take(r, ')')) {
        if (c.args.len) reader_need(r, ',');
        Loc loc = r->token.loc;
        CallArg arg = {.name = reader_name(r, "an argument's name")};
        if (c.args.len == MOST_ARGUMENTS) reader_fail(r, loc, "at most %d arguments", MOST_ARGUMENTS);
        if (ir_call_arg(&c, arg.name)) reader_fail(r, loc, "argument %s is given twice", arg.name);
        reader_need(r, '=');
        read_argument_value(r, &arg);
        if (takes_calls && arg.type == ATTR_SYMBOL && reader_at_punct(r, '(')) {
            arg.call = arena_new(r->a, Call);
            *arg.call = read_arguments(r, arg.value.s, false);
            arg.call->pos = reader_at(r);
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
        if (reason->is_override) reader_fail(r, loc, "the reason has this part already");
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
    if (*slot) reader_fail(r, loc, "the reason has this part already");
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
