/* prelude_parts.c: see prelude_parts.h. */
#include "codegen/cuda/prelude_parts.h"

#include <ctype.h>

#include "base/arena.h"
#include "base/text.h"

typedef VEC(const char *) Names;
typedef VEC(int) Numbers;

typedef struct Paragraph {
    const char *text;
    int length;
    Numbers needs; /* paragraphs that define a name of this one */
} Paragraph;

struct CudaPrelude {
    Arena *arena;
    const char *text;
    VEC(Paragraph) paragraphs;
    Table definers; /* name -> Numbers */
    Table macros;   /* name -> Names: the x of each x##suffix in its body */
    Table texts;    /* that were asked for: a digit for each paragraph -> text */
};

/* ---- tokens: identifiers and single characters; comments, strings and numbers are passed over -------------------- */

typedef struct Token {
    const char *at;
    int length; /* 0: the end */
    bool is_name;
} Token;

static bool starts_name(char c) { return isalpha((unsigned char)c) || c == '_'; }
static bool goes_on(char c) { return isalnum((unsigned char)c) || c == '_'; }

static const char *skip_number(const char *s, const char *end) {
    while (s < end && (goes_on(*s) || *s == '.')) s++;
    return s;
}

static const char *skip_quoted(const char *s, const char *end) {
    const char quote = *s++;
    while (s < end && *s != quote) s += *s == '\\' ? 2 : 1;
    return s < end ? s + 1 : end;
}

static const char *skip_comment(const char *s, const char *end) {
    const char *stop = s[1] == '*' ? "*/" : "\n";
    const char *found = strstr(s + 2, stop);
    return found && found < end ? found + strlen(stop) : end;
}

static const char *skip_silent(const char *s, const char *end) {
    for (;;) {
        if (s >= end) return end;
        if (*s == '/' && (s[1] == '*' || s[1] == '/')) s = skip_comment(s, end);
        else if (*s == '"' || *s == '\'') s = skip_quoted(s, end);
        else if (isdigit((unsigned char)*s)) s = skip_number(s, end);
        else if (*s == ' ') s++;
        else return s;
    }
}

static Token next_token(const char *s, const char *end) {
    s = skip_silent(s, end);
    Token t = {.at = s, .is_name = s < end && starts_name(*s)};
    if (s < end) t.length = 1;
    while (t.is_name && s + t.length < end && goes_on(s[t.length])) t.length++;
    return t;
}

static const char *after(Token t) { return t.at + t.length; }
static bool is_text(Token t, const char *text) {
    return t.length == (int)strlen(text) && !strncmp(t.at, text, (size_t)t.length);
}
static bool begins(Token t, const char *text) { return t.is_name && !strncmp(t.at, text, strlen(text)); }

/* ---- what a paragraph defines ------------------------------------------------------------------------------------ */

typedef struct Reader {
    CudaPrelude *p;
    int paragraph;
    const char *end;
    int braces, angles; /* open now; angles: of template< .. > */
    bool in_enum;
    bool in_directive; /* a line that begins with #, and those that continue it */
} Reader;

static void define(Reader *r, const char *name) {
    Arena *a = r->p->arena;
    Numbers *definers = table_get(&r->p->definers, name);
    if (!definers)
        table_set(a, &r->p->definers, arena_strdup(a, name), definers = (Numbers *)arena_alloc(a, sizeof *definers));
    if (!definers->len || definers->data[definers->len - 1] != r->paragraph) vec_push(a, definers, r->paragraph);
}

static const char *name_of(const Reader *r, Token t) { return arena_strndup(r->p->arena, t.at, (size_t)t.length); }

/* After `#define NAME`: the prefixes of the names that its body pastes. */
static void read_macro(Reader *r, Token name) {
    Names *prefixes = (Names *)arena_alloc(r->p->arena, sizeof *prefixes);
    define(r, name_of(r, name));
    table_set(r->p->arena, &r->p->macros, name_of(r, name), prefixes);
    for (Token t = next_token(after(name), r->end); t.length && !(*t.at == '\n' && t.at[-1] != '\\');
         t = next_token(after(t), r->end))
        if (t.is_name && !strncmp(after(t), "##", 2)) vec_push(r->p->arena, prefixes, name_of(r, t));
}

/* `DEFINE_X(suffix, ..)` defines what it pastes. */
static void read_definitions(Reader *r, Token name) {
    const Names *prefixes = table_get(&r->p->macros, name_of(r, name));
    Token suffix = next_token(after(next_token(after(name), r->end)), r->end);
    for (int i = 0; prefixes && i < prefixes->len; i++)
        define(r, arena_printf(r->p->arena, "%s%s", prefixes->data[i], name_of(r, suffix)));
}

/* A name outside of all braces that is being declared is followed by one of these. */
static void read_name(Reader *r, Token t, Token next) {
    bool declared = next.length && strchr("({;=[:<", *next.at);
    if (r->in_enum && r->braces == 1) define(r, name_of(r, t));
    if (r->braces || r->angles || r->in_directive) return;
    if (begins(t, "DEFINE_")) read_definitions(r, t);
    else if (is_text(t, "enum")) r->in_enum = true;
    else if (declared && !is_text(t, "template")) define(r, name_of(r, t));
}

/* Brackets count as braces: parameters are not declared outside. */
static void read_mark(Reader *r, Token before, Token t) {
    char c = *t.at;
    if (c == '\n') r->in_directive = r->in_directive && t.at[-1] == '\\';
    else if (c == '#') r->in_directive = true;
    if (r->in_directive) return;
    if (c == '{' || c == '(') r->braces++;
    else if (c == '}' || c == ')') r->braces--;
    else if (c == '<' && (r->angles || is_text(before, "template"))) r->angles++;
    else if (c == '>' && r->angles) r->angles--;
    if (!r->braces && (c == ';' || c == '}')) r->in_enum = false;
}

static void read_paragraph(CudaPrelude *p, int index) {
    const Paragraph *paragraph = &p->paragraphs.data[index];
    Reader r = {.p = p, .paragraph = index, .end = paragraph->text + paragraph->length};
    Token before = {.at = paragraph->text};
    for (Token t = next_token(paragraph->text, r.end); t.length; before = t, t = next_token(after(t), r.end)) {
        if (!t.is_name) read_mark(&r, before, t);
        else if (r.in_directive && is_text(before, "define")) read_macro(&r, t);
        else read_name(&r, t, next_token(after(t), r.end));
    }
}

/* ---- what a text needs ------------------------------------------------------------------------------------------- */

/* Calls |add| for each paragraph that defines a name of the text. */
static void each_definer(const CudaPrelude *p, const char *text, const char *end, void (*add)(void *to, int paragraph),
                         void *to) {
    char name[128];
    for (Token t = next_token(text, end); t.length; t = next_token(after(t), end)) {
        if (!t.is_name || t.length >= (int)sizeof name) continue;
        memcpy(name, t.at, (size_t)t.length);
        name[t.length] = 0;
        const Numbers *definers = table_get(&p->definers, name);
        for (int i = 0; definers && i < definers->len; i++) add(to, definers->data[i]);
    }
}

typedef struct Needs {
    CudaPrelude *p;
    int paragraph;
} Needs;

static void add_need(void *to, int paragraph) {
    Needs *n = to;
    Numbers *needs = &n->p->paragraphs.data[n->paragraph].needs;
    for (int i = 0; i < needs->len; i++)
        if (needs->data[i] == paragraph) return;
    if (paragraph != n->paragraph) vec_push(n->p->arena, needs, paragraph);
}

typedef struct Choice {
    const CudaPrelude *p;
    char *chosen; /* '0' or '1' for each paragraph, and NUL */
} Choice;

static void choose(void *to, int paragraph) {
    Choice *c = to;
    if (c->chosen[paragraph] == '1') return;
    c->chosen[paragraph] = '1';
    const Numbers *needs = &c->p->paragraphs.data[paragraph].needs;
    for (int i = 0; i < needs->len; i++) choose(c, needs->data[i]);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int depth_change(Token t) {
    if (*t.at == '{') return 1;
    return *t.at == '}' ? -1 : 0;
}

/* #if and #endif; an #else changes nothing. */
static int condition_change(Token before, Token t) {
    if (*before.at != '#') return 0;
    if (begins(t, "if")) return 1;
    return is_text(t, "endif") ? -1 : 0;
}

static void cut(CudaPrelude *p, const char *from, const char *to) {
    Paragraph paragraph = {.text = from, .length = (int)(to - from)};
    if (to > from) vec_push(p->arena, &p->paragraphs, paragraph);
}

static void cut_all(CudaPrelude *p, const char *text) {
    const char *end = text + strlen(text), *from = text;
    int depth = 0;
    Token before = {.at = text};
    for (Token t = next_token(text, end); t.length; before = t, t = next_token(after(t), end)) {
        depth += depth_change(t) + condition_change(before, t);
        if (depth || *t.at != '\n' || t.at[1] != '\n') continue;
        cut(p, from, t.at + 1);
        from = t.at + 2;
    }
    cut(p, from, end);
}

CudaPrelude *cuda_prelude_split(Arena *a, const char *text) {
    CudaPrelude *p = arena_new(a, CudaPrelude);
    p->arena = a;
    p->text = text;
    cut_all(p, text);
    for (int i = 0; i < p->paragraphs.len; i++) read_paragraph(p, i);
    for (int i = 0; i < p->paragraphs.len; i++) {
        const Paragraph *paragraph = &p->paragraphs.data[i];
        each_definer(p, paragraph->text, paragraph->text + paragraph->length, add_need, &(Needs){p, i});
    }
    return p;
}

static const char *text_of(const CudaPrelude *p, const char *chosen) {
    Text t;
    text_init(&t, p->arena);
    for (int i = 0; i < p->paragraphs.len; i++)
        if (chosen[i] == '1') text_write(&t, p->paragraphs.data[i].text, (size_t)p->paragraphs.data[i].length);
    return text_str(&t);
}

static void find_ranges(const CudaPrelude *p, const char *chosen, CudaRanges *out) {
    for (int i = 0; i < p->paragraphs.len; i++) {
        const Paragraph *of = &p->paragraphs.data[i];
        const amp_model_cuda_range range = {(uint32_t)(of->text - p->text), (uint32_t)of->length};
        if (chosen[i] == '1') vec_push(p->arena, out, range);
    }
}

const char *cuda_prelude_for(CudaPrelude *p, const char *source, CudaRanges *ranges) {
    Choice c = {.p = p, .chosen = arena_array(p->arena, char, p->paragraphs.len + 1)};
    memset(c.chosen, '0', (size_t)p->paragraphs.len);
    each_definer(p, source, source + strlen(source), choose, &c);
    if (ranges) find_ranges(p, c.chosen, ranges);
    const char *text = table_get(&p->texts, c.chosen);
    if (text) return text;
    text = text_of(p, c.chosen);
    table_set(p->arena, &p->texts, c.chosen, (void *)(uintptr_t)text);
    return text;
}
