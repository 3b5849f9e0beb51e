/* parse.c: one source file to its raw tree: checks that the file is text, and hands the parser its tokens. */
#include "frontend/tokens.h"

#include <math.h>

#include "base/text.h"

enum { MAX_SOURCE_BYTES = 4 << 20 };

typedef struct PendingToken {
    int token;
    AMP_YYSTYPE value;
    Loc loc;
} PendingToken;

/* ---- words ------------------------------------------------------------------------------------------------ */

typedef struct Word {
    const char *text;
    int token;
} Word;

/* Reserved everywhere except as names of arguments and in paths, where the grammar accepts them. */
static const Word reserved[] = {
    {"repeat", REPEAT}, {"in", IN},           {"if", IF},     {"else", ELSE}, {"return", RETURN},
    {"as", AS},         {"because", BECAUSE}, {"none", NONE}, {"true", TRUE}, {"false", FALSE},
    {"and", AND},       {"or", OR},           {"not", NOT},   {"N", BATCH},
};

/* Keywords where a statement can begin, unless one of "= , : ." follows. */
static const Word contextual[] = {
    {"amp", AMP},     {"include", INCLUDE},       {"const", CONST},     {"block", BLOCK}, {"model", MODEL},
    {"train", TRAIN}, {"precision", PRECISION},   {"param", PARAM},     {"state", STATE}, {"update", UPDATE},
    {"init", INIT},   {"inline", INLINE},         {"input", INPUT},     {"loss", LOSS},   {"metric", METRIC},
    {"group", GROUP}, {"checkpoint", CHECKPOINT}, {"require", REQUIRE}, {"size", SIZE},
};

static int find_word(const Word *words, size_t count, const char *text, int otherwise) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(words[i].text, text)) return words[i].token;
    return otherwise;
}

#define FIND(words, text, otherwise) find_word(words, sizeof words / sizeof words[0], text, otherwise)

static void tokens_recover(Parse *p);

/* ---- values of tokens ------------------------------------------------------------------------------------- */

void token_place(Parse *p, Loc *loc, uint32_t length) {
    *loc = (Loc){p->source, p->at, p->at + length};
    p->at += length;
}

static const char *token_text(Parse *p, const Loc *loc) {
    return arena_strndup(p->arena, p->source->text + loc->begin, loc->end - loc->begin);
}

int token_bad(Parse *p, const Loc *loc, const char *message) {
    if (!p->lost) diag_error(p->diags, *loc, "%s", message);
    tokens_recover(p);
    return AMP_YYerror;
}

int token_word(Parse *p, AMP_YYSTYPE *value, const Loc *loc) {
    value->name = name_new(p->arena, *loc, token_text(p, loc));
    return FIND(reserved, value->name->text, NAME);
}

int token_int(Parse *p, AMP_YYSTYPE *value, const Loc *loc) {
    value->i = 0;
    for (uint32_t i = loc->begin; i < loc->end; i++) {
        int digit = p->source->text[i] - '0';
        if (__builtin_mul_overflow(value->i, 10, &value->i) || __builtin_add_overflow(value->i, digit, &value->i))
            return token_bad(p, loc, "the integer does not fit in 64 bits");
    }
    return INTEGER;
}

int token_float(Parse *p, AMP_YYSTYPE *value, const Loc *loc) {
    if (!decimal_parse(p->source->text + loc->begin, loc->end - loc->begin, &value->f))
        return token_bad(p, loc, "the number is too long");
    if (isinf(value->f))
        return token_bad(p, loc, "the number is too large for a float, which ends at 1.8e308; infinity is written inf");
    return FLOAT;
}

int token_string(Parse *p, AMP_YYSTYPE *value, const Loc *loc) {
    const char *from = p->source->text + loc->begin + 1, *end = p->source->text + loc->end - 1;
    char *text = arena_alloc(p->arena, (size_t)(end - from) + 1), *to = text;
    for (; from < end; from++) {
        if (*from == '\\' && *++from != '"' && *from != '\\')
            return token_bad(p, loc, "a backslash in a string must be followed by \" or \\");
        *to++ = *from;
    }
    value->name = name_new(p->arena, *loc, text);
    return STRING;
}

/* ---- brackets --------------------------------------------------------------------------------------------- */

static const struct Bracket *tokens_open_bracket(const Parse *p) {
    return p->brackets.len ? &p->brackets.data[p->brackets.len - 1] : NULL;
}

static bool in_parentheses(const Parse *p) {
    const struct Bracket *b = tokens_open_bracket(p);
    return b && b->open != '{';
}

static void open_bracket(Parse *p, char c, Loc loc) {
    struct Bracket b = {c, loc};
    if (p->brackets.len == MAX_NESTING) parse_too_deep(p, loc);
    else vec_push(p->arena, &p->brackets, b);
}

/* Closes the innermost bracket of its kind and all brackets left open inside it. */
static void close_bracket(Parse *p, char open) {
    for (int i = p->brackets.len - 1; i >= 0; i--) {
        if (p->brackets.data[i].open != open) continue;
        if (i + 1 < p->brackets.len) p->unclosed = p->brackets.data[i + 1];
        p->brackets.len = i;
        return;
    }
}

/* There are no braces inside parentheses: a brace there means that a closing parenthesis is missing. */
static void track_bracket(Parse *p, int token, Loc loc) {
    while (token == '{' && in_parentheses(p)) p->unclosed = p->brackets.data[--p->brackets.len];
    if (p->recovering && (token == '{' || token == '}')) p->lost = true;
    if (token == '(' || token == '[' || token == '{') open_bracket(p, (char)token, loc);
    if (token == ')') close_bracket(p, '(');
    if (token == ']') close_bracket(p, '[');
    if (token == '}') close_bracket(p, '{');
}

static void tokens_recover(Parse *p) {
    p->recovering = true;
    while (in_parentheses(p)) p->brackets.len--;
}

/* ---- the stream ------------------------------------------------------------------------------------------- */

static void scan(Parse *p, PendingToken *t) {
    if (p->pending) {
        *t = *p->pending;
        p->pending = NULL;
        return;
    }
    do t->token = amp_scan_lex(&t->value, &t->loc, p->scanner);
    while (t->token == NEWLINE && in_parentheses(p));
    if (t->token == END) t->loc = (Loc){p->source, (uint32_t)p->source->len, (uint32_t)p->source->len};
}

/* Reads one token ahead, which decides whether the word before it is a keyword. */
static bool keyword_follows(Parse *p) {
    PendingToken *next = arena_new(p->arena, PendingToken);
    scan(p, next);
    p->pending = next;
    return next->token != '=' && next->token != ',' && next->token != ':' && next->token != '.';
}

static bool statement_begins(const Parse *p) {
    return p->previous == NEWLINE || p->previous == '{' || p->previous == END;
}

static bool begins_declaration(int token) {
    return token == INCLUDE || token == CONST || token == SIZE || token == INLINE || token == BLOCK || token == MODEL ||
           token == TRAIN || token == PRECISION;
}

int amp_yylex(AMP_YYSTYPE *value, AMP_YYLTYPE *loc, Parse *p) {
    PendingToken t;
    do scan(p, &t);
    while (t.token == NEWLINE && statement_begins(p)); /* empty lines */
    if (t.token == NAME && (statement_begins(p) || p->previous == INLINE)) {
        int keyword = FIND(contextual, t.value.name->text, NAME);
        if (keyword != NAME && keyword_follows(p)) t.token = keyword;
    }
    if (t.token == NAME && p->previous == ')' && !strcmp(t.value.name->text, "sharing")) t.token = SHARING;
    if (t.token == NEWLINE) p->recovering = false;
    if (begins_declaration(t.token)) p->lost = false;
    track_bracket(p, t.token, t.loc);
    if (p->too_deep) t.token = END;
    p->previous = t.token;
    *value = t.value;
    *loc = t.loc;
    return t.token;
}

/* ---- errors ----------------------------------------------------------------------------------------------- */

void parse_too_deep(Parse *p, Loc loc) {
    if (!p->too_deep)
        diag_help(p->diags, diag_error(p->diags, loc, "nested more than %d levels deep", MAX_NESTING),
                  "bind parts of it to names");
    p->too_deep = p->lost = true;
}

/* An open bracket on an earlier line is a more likely cause than the unexpected word: a brace, where the file ends or
 * the word begins a declaration. */
static void note_open_bracket(Parse *p, Diag *diag, Loc loc) {
    const struct Bracket *b = p->unclosed.open ? &p->unclosed : tokens_open_bracket(p);
    if (!b) return;
    if (b->open == '{' && loc.begin != p->source->len && !begins_declaration(p->previous)) return;
    if (memchr(p->source->text + b->loc.begin, '\n', loc.begin - b->loc.begin))
        diag_note(p->diags, diag, b->loc, "this '%c' is not closed", b->open);
}

Diag *parse_syntax_error(Parse *p, Loc loc, const char *unexpected, const char *expected) {
    Diag *diag = NULL;
    if (!p->lost) {
        diag = expected ? diag_error(p->diags, loc, "unexpected %s, expected %s", unexpected, expected)
                        : diag_error(p->diags, loc, "unexpected %s", unexpected);
        note_open_bracket(p, diag, loc);
        p->unclosed = (struct Bracket){0};
    }
    tokens_recover(p);
    return diag;
}

/* ---- the file --------------------------------------------------------------------------------------------- */

/* Text is UTF-8 without NUL bytes; the first byte that is not is reported. */
static bool check_bytes(Diags *d, const Source *source) {
    if (source->len > MAX_SOURCE_BYTES) {
        diag_error(d, (Loc){source, 0, 0}, "the file has %zu bytes; a model may have at most %d", source->len,
                   MAX_SOURCE_BYTES);
        return false;
    }
    for (size_t at = 0, n; at < source->len; at += n) {
        n = utf8_char_len(source->text + at, source->len - at);
        if (n && source->text[at]) continue;
        Loc loc = {source, (uint32_t)at, (uint32_t)at + 1};
        if (n) diag_error(d, loc, "a NUL byte; the file is not text");
        else diag_error(d, loc, "byte 0x%02x is not UTF-8; save the file as UTF-8", (unsigned char)source->text[at]);
        return false;
    }
    return true;
}

File *frontend_parse_part(Arena *a, Diags *d, const Source *source) {
    if (!check_bytes(d, source)) return NULL;
    Parse p = {.arena = a, .diags = d, .source = source, .file = arena_new(a, File)};
    p.file->source = source;
    amp_scan_begin(&p);
    amp_yyparse(&p);
    return p.file;
}

File *frontend_parse(Arena *a, Diags *d, const Source *source) {
    int errors = d->errors;
    File *file = frontend_parse_part(a, d, source);
    return d->errors == errors ? file : NULL;
}
