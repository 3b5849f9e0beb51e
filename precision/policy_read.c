/* policy_read.c: reading a policy file, one statement a line, with every error in it.
 *
 *     file      = { [ statement ] [ "#" comment ] newline }
 *     statement = "policy" STRING | "version" WORD | "algorithm" WORD | "low" "=" WORD | "op" name { "," name } WORD
 *               | ( "masters" | "moments" ) "=" WORD [ "stochastic" | "nearest" ]
 *     name      = WORD | WORD "." WORD | "*"
 */
#include "base/hash.h"
#include "base/names.h"
#include "ir/state_type.h"
#include "ir/words.h"
#include "precision/policy.h"

typedef enum TokenKind {
    TOKEN_END,
    TOKEN_WORD,
    TOKEN_STRING,
    TOKEN_STAR,
    TOKEN_COMMA,
    TOKEN_EQUALS,
    TOKEN_BAD
} TokenKind;

typedef struct Token {
    TokenKind kind;
    const char *text; /* of a string: without its quotes */
    Loc loc;
} Token;

typedef struct Reader {
    Arena *arena;
    Diags *diags;
    const Source *source;
    Policy *policy;
    uint32_t at;
    int line;         /* number of the statement's line */
    uint32_t begin;   /* of the statement's line */
    Token token;      /* the next one */
    const char *form; /* of the statement: "low = f16" */
    bool is_empty;    /* no statement so far */
    Loc has_name, has_version, has_algorithm, has_low, has_masters, has_moments, has_reduce; /* source NULL: not yet */
} Reader;

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static char peek(const Reader *r) { return r->at < r->source->len ? r->source->text[r->at] : '\n'; }

static bool at_blank(const Reader *r) { return peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\r'; }

static bool is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

static TokenKind scan_string(Reader *r) {
    r->at++;
    while (peek(r) != '"' && peek(r) != '\n' && peek(r) != '\0') r->at++;
    if (peek(r) != '"') return TOKEN_BAD;
    r->at++;
    return TOKEN_STRING;
}

static TokenKind scan(Reader *r) {
    char c = peek(r);
    if (c == '\n' || c == '#') return TOKEN_END;
    if (c == '"') return scan_string(r);
    if (is_word_char(c)) {
        while (is_word_char(peek(r))) r->at++;
        return TOKEN_WORD;
    }
    r->at++;
    return c == '*' ? TOKEN_STAR : c == ',' ? TOKEN_COMMA : c == '=' ? TOKEN_EQUALS : TOKEN_BAD;
}

static void advance(Reader *r) {
    while (at_blank(r)) r->at++;
    uint32_t begin = r->at;
    Token *t = &r->token;
    t->kind = scan(r);
    t->loc = (Loc){r->source, begin, r->at > begin ? r->at : begin + 1};
    bool quoted = t->kind == TOKEN_STRING;
    t->text = arena_strndup(r->arena, r->source->text + begin + quoted, r->at - begin - (quoted ? 2u : 0u));
}

static const char *found(const Reader *r) {
    if (r->token.kind == TOKEN_END) return "the end of the line";
    if (r->token.kind == TOKEN_STRING) return arena_printf(r->arena, "\"%s\"", r->token.text);
    if (r->token.kind == TOKEN_BAD)
        return *r->token.text == '"' ? "a text without its second '\"'" : "a character that no policy has";
    return arena_printf(r->arena, "'%s'", r->token.text);
}

/* The error that the next token is not what was wanted. */
static Diag *expected(Reader *r, const char *wanted) {
    Diag *diag = diag_error(r->diags, r->token.loc, "expected %s, found %s", wanted, found(r));
    if (r->form) diag_help(r->diags, diag, "such a line is '%s'", r->form);
    return diag;
}

/* The next token if it is of a kind; else an error that says what was wanted. */
static bool take(Reader *r, TokenKind kind, const char *wanted, Token *out) {
    if (r->token.kind != kind) {
        expected(r, wanted);
        return false;
    }
    if (out) *out = r->token;
    advance(r);
    return true;
}

static void help_nearest(Reader *r, Diag *diag, const char *word, const char *const *words, int count) {
    const char *nearest = text_nearest(word, words, count);
    if (nearest) {
        diag_help(r->diags, diag, "did you mean %s?", nearest);
        return;
    }
    Text t;
    text_init(&t, r->arena);
    for (int i = 0; i < count; i++) text_printf(&t, "%s%s", i ? ", " : "", words[i]);
    diag_help(r->diags, diag, "one of %s", text_str(&t));
}

/* A statement that may occur once in a file. */
static bool is_second(Reader *r, Loc *first, Loc here, const char *what) {
    if (!first->source) {
        *first = here;
        return false;
    }
    Diag *diag = diag_error(r->diags, here, "a second line '%s'", what);
    diag_note(r->diags, diag, *first, "the first is here");
    diag_help(r->diags, diag, "keep one of them");
    return true;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

static void read_name(Reader *r, Loc here) {
    Token name;
    if (is_second(r, &r->has_name, here, "policy")) return;
    if (!take(r, TOKEN_STRING, "the policy's name in quotes", &name)) return;
    if (!*name.text)
        diag_help(r->diags, diag_error(r->diags, name.loc, "the policy's name is empty"),
                  "write one between the quotes");
    r->policy->name = name.text;
}

static void read_version(Reader *r, Loc here) {
    Token word;
    if (is_second(r, &r->has_version, here, "version") || !take(r, TOKEN_WORD, "a version such as 2.12", &word)) return;
    r->policy->version = word.text;
}

static void read_algorithm(Reader *r, Loc here) {
    Token word;
    if (is_second(r, &r->has_algorithm, here, "algorithm") || !take(r, TOKEN_WORD, "an algorithm", &word)) return;
    for (int i = 0; i < ALGORITHM_COUNT; i++)
        if (!strcmp(word.text, policy_algorithm_words[i])) {
            r->policy->algorithm = (PolicyAlgorithm)i;
            return;
        }
    Diag *diag = diag_error(r->diags, word.loc, "unknown algorithm %s", word.text);
    help_nearest(r, diag, word.text, policy_algorithm_words, ALGORITHM_COUNT);
}

static void read_low(Reader *r, Loc here) {
    const char *words[AMP_PRECISION_COUNT];
    Token word;
    if (is_second(r, &r->has_low, here, "low") || !take(r, TOKEN_EQUALS, "'='", NULL) ||
        !take(r, TOKEN_WORD, "a type", &word) || amp_low_type_of(word.text, &r->policy->low))
        return;
    for (int i = 0; i < AMP_PRECISION_COUNT; i++) words[i] = amp_dtype_name(amp_precisions[i].low);
    Diag *diag = diag_error(r->diags, word.loc, "unknown low type %s", word.text);
    help_nearest(r, diag, word.text, words, AMP_PRECISION_COUNT);
}

/* "f16", "bf16 nearest", "f8" */
static bool make_state_type(Arena *a, const char *type, const char *rounding, Call *out) {
    const CallArg argument = {.name = "rounding", .type = ATTR_SYMBOL, .value.s = rounding};
    StateType read;
    out->name = type;
    if (!strcmp(type, STATE_TYPE_F8)) return !strcmp(rounding, ROUNDING_STOCHASTIC); /* which needs no word */
    vec_push(a, &out->args, argument);
    return ir_state_type(out, &read);
}

static void read_state_type(Reader *r, Loc here, const char *what, Loc *first, Call *out) {
    static const char *const types[] = {"bf16", "f16", STATE_TYPE_F8};
    static const char *const roundings[] = {ROUNDING_STOCHASTIC, ROUNDING_NEAREST};
    enum { TYPES = sizeof types / sizeof *types, ROUNDINGS = sizeof roundings / sizeof *roundings };
    Token type, rounding = {.text = ROUNDING_STOCHASTIC};
    if (is_second(r, first, here, what) || !take(r, TOKEN_EQUALS, "'='", NULL) || !take(r, TOKEN_WORD, "a type", &type))
        return;
    if (r->token.kind == TOKEN_WORD && !take(r, TOKEN_WORD, "a rounding", &rounding)) return;
    const char *file = strrchr(r->source->name, '/');
    *out = (Call){.pos = {file ? file + 1 : r->source->name, r->line, 1}};
    if (make_state_type(r->arena, type.text, rounding.text, out)) return;
    bool is_type = false;
    for (int i = 0; i < TYPES; i++) is_type = is_type || !strcmp(type.text, types[i]);
    const Token *wrong = is_type ? &rounding : &type;
    Diag *diag = diag_error(r->diags, wrong->loc, "%s cannot be %s%s", what, is_type ? "rounded " : "", wrong->text);
    if (!is_type) help_nearest(r, diag, wrong->text, types, TYPES);
    else if (!strcmp(type.text, STATE_TYPE_F8)) diag_help(r->diags, diag, "f8 is always rounded stochastically");
    else help_nearest(r, diag, wrong->text, roundings, ROUNDINGS);
}

static void read_masters(Reader *r, Loc here) {
    read_state_type(r, here, "masters", &r->has_masters, &r->policy->masters);
}

static void read_moments(Reader *r, Loc here) {
    read_state_type(r, here, "moments", &r->has_moments, &r->policy->moments);
}

static void read_reduce(Reader *r, Loc here) {
    static const char *const types[] = {"f32", "bf16", "f16"};
    enum { TYPES = sizeof types / sizeof *types };
    Token type;
    if (is_second(r, &r->has_reduce, here, "reduce") || !take(r, TOKEN_EQUALS, "'='", NULL) ||
        !take(r, TOKEN_WORD, "a type", &type))
        return;
    const char *file = strrchr(r->source->name, '/');
    r->policy->reduce_pos = (Pos){file ? file + 1 : r->source->name, r->line, 1};
    for (int i = 0; i < TYPES; i++)
        if (!strcmp(type.text, types[i])) r->policy->reduce = word_dtype(type.text);
    if (r->policy->reduce) return;
    help_nearest(r, diag_error(r->diags, type.loc, "ranks cannot exchange gradients in %s", type.text), type.text,
                 types, TYPES);
}

/* The statement without its comment and surrounding blanks. */
static const char *statement_text(const Reader *r, uint32_t end) {
    const char *text = r->source->text;
    uint32_t begin = r->begin;
    while (begin < end && (text[begin] == ' ' || text[begin] == '\t')) begin++;
    return arena_strndup(r->arena, text + begin, end - begin);
}

/* "relu_grad" or "softmax.sum_to". */
static bool is_backward_name(const char *name) {
    const char *dot = strchr(name, '.');
    const Opcode code = ir_opcode(dot ? dot + 1 : name);
    return code != OP_NONE && ir_op_info[code].flags & BACKWARD;
}

/* false: the error is in the diagnostics. */
static bool check_op_name(Reader *r, Token name) {
    const char *near[2] = {NULL, NULL};
    if (policy_is_foreign(name.text) || policy_knows(r->arena, name.text, &near[0]) || is_backward_name(name.text))
        return true;
    near[1] = policy_nearest_foreign(name.text);
    PolicyClass ignored;
    const bool is_class = policy_class_of(name.text, &ignored);
    const char *nearest = near[0] && near[1] ? text_nearest(name.text, near, 2) : near[0] ? near[0] : near[1];
    Diag *diag = diag_error(r->diags, name.loc, "unknown op %s", name.text);
    if (is_class)
        diag_help(r->diags, diag, "%s is a class; write it once, after the names, without a comma", name.text);
    else if (nearest) diag_help(r->diags, diag, "did you mean %s?", nearest);
    else diag_help(r->diags, diag, "an op, a layer, or LAYER.OP, as in the table of 'ampc explain'");
    return false;
}

static void add_entry(Reader *r, const PolicyLine *line, Token name) {
    if (name.kind == TOKEN_WORD && !check_op_name(r, name)) return;
    for (int i = 0; i < r->policy->entries.len; i++) {
        const PolicyEntry *e = &r->policy->entries.data[i];
        if (strcmp(e->name, name.text)) continue;
        Diag *diag = diag_error(r->diags, name.loc, "%s is listed twice", name.text);
        diag_note(r->diags, diag, e->loc, "here it is %s", policy_class_words[e->line->op_class]);
        diag_help(r->diags, diag, "keep one of them");
        return;
    }
    PolicyEntry entry = {name.text, line, name.loc};
    vec_push(r->arena, &r->policy->entries, entry);
}

static bool take_op_name(Reader *r, Token *out) {
    if (r->token.kind != TOKEN_STAR) return take(r, TOKEN_WORD, "the name of an op, without quotes", out);
    *out = r->token;
    advance(r);
    return true;
}

/* Of the classes that the algorithm has; of all where it is not known yet. */
static void help_nearest_class(Reader *r, Diag *diag, const char *word) {
    const char *words[POLICY_CLASS_COUNT];
    int count = 0;
    for (int i = 0; i < POLICY_CLASS_COUNT; i++)
        if (!r->has_algorithm.source || policy_class_fits((PolicyClass)i, r->policy->algorithm))
            words[count++] = policy_class_words[i];
    help_nearest(r, diag, word, words, count);
}

/* The class after the list that ends in |last|. */
static bool take_class(Reader *r, Token last, PolicyClass *out) {
    const Token word = r->token;
    if (word.kind != TOKEN_WORD) {
        Diag *diag = expected(r, "',' or a class");
        if (word.kind == TOKEN_STAR)
            diag_help(r->diags, diag, "a policy names ops and layers; a path is for the precision block of a model");
        if (policy_class_of(last.text, out))
            diag_help(r->diags, diag, "%s is a class; write it once, after the names, without a comma", last.text);
        return false;
    }
    if (policy_class_of(word.text, out)) return true;
    Diag *diag = diag_error(r->diags, word.loc, "unknown class %s", word.text);
    if (policy_is_foreign(word.text) || policy_knows(r->arena, word.text, NULL))
        diag_help(r->diags, diag, "commas separate the names of a list: %s, %s", last.text, word.text);
    else if (amp_low_type_of(word.text, NULL))
        diag_help(r->diags, diag, "the class of the low type is %s",
                  policy_class_words[r->policy->algorithm == ALGORITHM_PAINT ? POLICY_ALLOW : POLICY_LOWER]);
    else help_nearest_class(r, diag, word.text);
    return false;
}

static void read_ops(Reader *r, Loc here) {
    (void)here;
    VEC(Token) names = {0};
    Token name;
    do {
        if (names.len) advance(r); /* the comma */
        if (!take_op_name(r, &name)) return;
        vec_push(r->arena, &names, name);
    } while (r->token.kind == TOKEN_COMMA);
    PolicyClass op_class;
    const Token word = r->token;
    if (!take_class(r, name, &op_class)) return;
    advance(r);
    PolicyLine *line = arena_new(r->arena, PolicyLine);
    *line = (PolicyLine){op_class, r->line, statement_text(r, word.loc.end), word.loc};
    for (int i = 0; i < names.len; i++) add_entry(r, line, names.data[i]);
}

static const struct {
    const char *word;
    void (*read)(Reader *r, Loc here);
    const char *form;
} statements[] = {
    {"policy", read_name, "policy \"NAME\""},
    {"version", read_version, "version 2.12"},
    {"algorithm", read_algorithm, "algorithm eager"},
    {"low", read_low, "low = f16"},
    {"op", read_ops, "op exp, log f32"},
    {"masters", read_masters, "masters = bf16 nearest"},
    {"moments", read_moments, "moments = bf16 stochastic"},
    {"reduce", read_reduce, "reduce = bf16"},
};
static const char *const statement_words[] = {"policy", "version", "algorithm", "low",
                                              "op",     "masters", "moments",   "reduce"};
enum { STATEMENTS = sizeof statements / sizeof *statements };

static void read_statement(Reader *r) {
    Token first;
    int errors = r->diags->errors;
    if (r->token.kind == TOKEN_END) return;
    r->is_empty = false;
    r->form = NULL;
    if (!take(r, TOKEN_WORD, "policy, version, algorithm, low, op, masters, moments or reduce", &first)) return;
    for (int i = 0; i < STATEMENTS; i++) {
        if (strcmp(first.text, statements[i].word)) continue;
        r->form = statements[i].form;
        statements[i].read(r, first.loc);
        if (r->diags->errors == errors) take(r, TOKEN_END, "the end of the line", NULL);
        return;
    }
    Diag *diag = diag_error(r->diags, first.loc, "a policy has no line '%s'", first.text);
    help_nearest(r, diag, first.text, statement_words, STATEMENTS);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static bool lists_everything(const Policy *p) {
    for (int i = 0; i < p->entries.len; i++)
        if (!strcmp(p->entries.data[i].name, "*")) return true;
    return false;
}

/* The words of the algorithm's classes. */
static const char *class_list(Arena *a, PolicyAlgorithm algorithm) {
    Text list;
    text_init(&list, a);
    for (int i = 0, n = 0; i < POLICY_CLASS_COUNT; i++)
        if (policy_class_fits((PolicyClass)i, algorithm))
            text_printf(&list, "%s%s", n++ ? ", " : "", policy_class_words[i]);
    return text_str(&list);
}

/* An algorithm has classes of its own, and one alone decides the backward pass. */
static void check_entries(Reader *r) {
    const Policy *p = r->policy;
    const PolicyLine *told = NULL; /* a line's class is told once */
    for (int i = 0; i < p->entries.len; i++) {
        const PolicyEntry *e = &p->entries.data[i];
        if (is_backward_name(e->name) && p->algorithm != ALGORITHM_PAINT) {
            Diag *diag = diag_error(r->diags, e->loc, "%s is an op of the backward pass", e->name);
            diag_help(r->diags, diag, "only algorithm paint decides it; under %s it has the type of its forward op",
                      policy_algorithm_words[p->algorithm]);
        }
        if (e->line == told || policy_class_fits(e->line->op_class, p->algorithm)) continue;
        told = e->line;
        Diag *diag = diag_error(r->diags, told->class_loc, "class %s does not belong to algorithm %s",
                                policy_class_words[told->op_class], policy_algorithm_words[p->algorithm]);
        diag_help(r->diags, diag, "one of %s", class_list(r->arena, p->algorithm));
    }
}

static void check_complete(Reader *r) {
    const struct {
        bool missing;
        const char *line;
    } needed[] = {
        {!r->has_name.source, "policy \"NAME\""},
        {!r->has_algorithm.source, "algorithm eager"},
        {!r->has_low.source, "low = f16"},
        {!lists_everything(r->policy), r->policy->algorithm == ALGORITHM_PAINT ? "op * none" : "op * follow"},
    };
    Loc start = {r->source, 0, 0};
    if (r->is_empty) {
        Diag *diag = diag_error(r->diags, start, "the policy is empty");
        diag_help(r->diags, diag,
                  "copy a built-in one, or begin with the lines 'policy \"NAME\"', 'algorithm eager', "
                  "'low = f16' and 'op * follow'");
        return;
    }
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (needed[i].missing) diag_error(r->diags, start, "the policy lacks a line such as '%s'", needed[i].line);
    if (r->has_algorithm.source) check_entries(r);
}

enum { MAX_BYTES = 1 << 20 };

/* Whether it can be a policy at all, rather than a model.so or weights under a wrong name. */
static bool is_text(Diags *d, const Source *text) {
    if (text->len > MAX_BYTES) {
        diag_error(d, (Loc){0}, "%s: %zu bytes are too many for a policy, which has at most %d", text->name, text->len,
                   MAX_BYTES);
        return false;
    }
    for (uint32_t i = 0; i < text->len; i++) {
        const unsigned char c = (unsigned char)text->text[i];
        if ((c >= ' ' && c != 0x7f) || c == '\n' || c == '\r' || c == '\t') continue;
        Diag *diag = diag_error(d, (Loc){text, i, i + 1}, "byte 0x%02x is not text", c);
        diag_help(d, diag, "a policy is a text file: is this another file?");
        return false;
    }
    return true;
}

/* What some editors put before UTF-8. */
static uint32_t byte_order_mark(const Source *text) {
    return text->len >= 3 && !memcmp(text->text, "\xef\xbb\xbf", 3) ? 3 : 0;
}

const Policy *policy_read(Arena *a, Diags *d, const Source *text) {
    Policy *p = arena_new(a, Policy);
    int errors = d->errors;
    p->source = text;
    if (!is_text(d, text)) return NULL;
    Reader r = {.arena = a, .diags = d, .source = text, .policy = p, .at = byte_order_mark(text), .is_empty = true};
    while (r.at < text->len) {
        r.line++;
        r.begin = r.at;
        advance(&r);
        read_statement(&r);
        while (peek(&r) != '\n') r.at++;
        r.at++;
    }
    if (d->errors == errors) check_complete(&r);
    if (d->errors != errors) return NULL;
    uint8_t digest[32];
    amp_sha256_of(text->text, text->len, digest);
    amp_sha256_hex(digest, p->sha256);
    return p;
}
