/* completion.c: what can stand at the cursor: arguments of the call that it is in, names that are bound above it,
 * blocks, layers and ops, words of the language, policies. */
#include "tools/ampc/lsp/server.h"

typedef enum ItemKind { /* CompletionItemKind of the protocol */
                        ITEM_FUNCTION = 3,
                        ITEM_VARIABLE = 6,
                        ITEM_PROPERTY = 10,
                        ITEM_KEYWORD = 14,
                        ITEM_FILE = 17,
                        ITEM_CONSTANT = 21
} ItemKind;

typedef struct Completion {
    Request *r;
    const Document *d;
    size_t offset;     /* of the cursor */
    size_t line;       /* where its line begins */
    const char *quote; /* of the string that it is in; NULL: none */
    View v;
    size_t at;  /* of the cursor, in the analysis */
    Table told; /* labels */
} Completion;

static void put_item(Completion *c, const char *label, ItemKind kind, const char *detail, const char *about,
                     const char *insert) {
    amp_json_writer *w = c->r->w;
    if (table_get(&c->told, label)) return;
    table_set(c->r->arena, &c->told, label, c);
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "label", label);
    amp_json_put_int(w, "kind", kind);
    if (detail) amp_json_put_string(w, "detail", detail);
    if (about) amp_json_put_string(w, "documentation", about);
    if (insert) amp_json_put_string(w, "insertText", insert);
    amp_json_end_object(w);
}

/* ---- where the cursor is ----------------------------------------------------------------------------------------- */

/* Strings end on their line.  False: the cursor is in a comment. */
static bool find_line(Completion *c) {
    const char *text = c->d->text.text;
    for (c->line = c->offset; c->line > 0 && text[c->line - 1] != '\n';) c->line--;
    for (const char *at = text + c->line; at < text + c->offset; at++) {
        if (*at == '"') c->quote = c->quote ? NULL : at;
        if (*at == '#' && !c->quote) return false;
    }
    return true;
}

/* Whether the line begins with |word|, and nothing but spaces is between it and |until|. */
static bool follows(const Completion *c, const char *word, const char *until) {
    const char *at = c->d->text.text + c->line, *begin;
    at += strspn(at, " \t");
    const size_t length = strlen(word);
    if (strncmp(at, word, length) != 0 || language_word_char(at[length])) return false;
    for (begin = at + length; begin < until && (*begin == ' ' || *begin == '\t');) begin++;
    return begin >= until && at + length < until;
}

/* Where the word that is being written begins. */
static const char *word_begin(const Completion *c) {
    const char *text = c->d->text.text, *at = text + c->offset;
    while (at > text && language_word_char(at[-1])) at--;
    return at;
}

/* The name before the innermost '(' that is open at the cursor; a brace ends the search. */
static bool find_callee(const Completion *c, const char **name, size_t *length) {
    const char *text = c->d->text.text;
    int depth = 0;
    for (const char *at = text + c->offset; at > text;) {
        at--;
        if (*at == '{' || *at == '}') return false;
        if (*at == ')' || *at == ']') depth++;
        if ((*at != '(' && *at != '[') || depth-- > 0) continue;
        const char *begin = at;
        while (begin > text && language_word_char(begin[-1])) begin--;
        *name = begin;
        *length = (size_t)(at - begin);
        return *at == '(' && begin < at;
    }
    return false;
}

/* ---- what can stand there ---------------------------------------------------------------------------------------- */

static void put_arguments(Completion *c) {
    const char *name;
    size_t length;
    if (!find_callee(c, &name, &length)) return;
    for (size_t i = 0; i < c->v.analysis->symbol_count; i++) {
        const amp_symbol *s = &c->v.analysis->symbols[i];
        if (!s->argument_count || strlen(s->name) != length || memcmp(s->name, name, length) != 0) continue;
        for (size_t k = 0; k < s->argument_count; k++) {
            const amp_symbol_argument *a = &s->arguments[k];
            const char *insert = arena_printf(c->r->arena, "%s = ", a->name);
            if (a->type) put_item(c, a->name, ITEM_PROPERTY, a->type, a->initial, insert);
        }
    }
}

/* The declaration of the analysis whose text is around the cursor; -1: none. */
static int enclosing(const Completion *c) {
    for (size_t i = 0; c->v.analysis && i < c->v.analysis->symbol_count; i++) {
        const amp_symbol *s = &c->v.analysis->symbols[i];
        if (s->parent >= 0 || s->kind == AMP_SYMBOL_FILE || s->whole.file != c->v.file) continue;
        if (s->whole.begin <= c->at && c->at <= s->whole.end) return (int)i;
    }
    return -1;
}

static bool is_train(const Completion *c, int declaration) {
    return declaration >= 0 && c->v.analysis->symbols[declaration].kind == AMP_SYMBOL_TRAIN;
}

/* Names bound above the cursor, the last binding first; train sees those of the model. */
static void put_names(Completion *c, int declaration) {
    const amp_analysis *a = c->v.analysis;
    for (size_t i = a->symbol_count; i-- > 0;) {
        const amp_symbol *s = &a->symbols[i];
        const bool in_it = s->parent >= 0 && s->parent == declaration && s->span.end <= c->at;
        const bool in_model =
            is_train(c, declaration) && s->parent >= 0 && a->symbols[s->parent].kind == AMP_SYMBOL_MODEL;
        const bool is_const = s->kind == AMP_SYMBOL_CONST && s->span.file == c->v.file;
        if (in_it || in_model || is_const)
            put_item(c, s->name, is_const ? ITEM_CONSTANT : ITEM_VARIABLE, describe_types(c->r->arena, a, s), NULL,
                     NULL);
    }
}

static void put_callees(Completion *c) {
    for (size_t i = c->v.analysis->symbol_count; i-- > 0;) { /* blocks of the text hide layers, and these ops */
        const amp_symbol *s = &c->v.analysis->symbols[i];
        if (s->kind == AMP_SYMBOL_BLOCK || s->kind == AMP_SYMBOL_OP || s->kind == AMP_SYMBOL_FUNCTION)
            put_item(c, s->name, ITEM_FUNCTION, describe_signature(c->r->arena, s), s->about, NULL);
    }
}

/* |begins|: the word is the first of its line. */
static void put_words(Completion *c, bool begins, bool is_top) {
    const LanguageWord *word;
    for (size_t i = 0; (word = language_word(i)); i++) {
        const bool fits = word->place == WORD_DECLARES                             ? begins && is_top
                          : word->place == WORD_BEGINS || word->place == WORD_SETS ? begins && !is_top
                          : word->place == WORD_PRECISION                          ? false
                                                                                   : !begins;
        if (fits) put_item(c, word->name, ITEM_KEYWORD, NULL, word->about, NULL);
    }
}

static void put_precisions(Completion *c) {
    const LanguageWord *word;
    for (size_t i = 0; (word = language_word(i)); i++)
        if (word->place == WORD_PRECISION) put_item(c, word->name, ITEM_KEYWORD, NULL, word->about, NULL);
}

static void put_policies(Completion *c) {
    for (int32_t i = 0; amp_policy_name(i); i++) put_item(c, amp_policy_name(i), ITEM_CONSTANT, "policy", NULL, NULL);
}

/* Braces that are open at the cursor. */
static bool is_in_braces(const Completion *c) {
    int depth = 0;
    bool in_string = false, in_comment = false;
    for (const char *at = c->d->text.text; at < c->d->text.text + c->offset; at++) {
        if (*at == '\n') in_string = in_comment = false;
        if (*at == '"' && !in_comment) in_string = !in_string;
        if (*at == '#' && !in_string) in_comment = true;
        if (!in_string && !in_comment) depth += (*at == '{') - (*at == '}');
    }
    return depth > 0;
}

/* The text as it is, or where an error took the declaration away the last one that had none. */
static int choose_view(Completion *c, bool in_braces) {
    c->v = document_names(c->d);
    c->at = c->offset;
    const int declaration = enclosing(c);
    if (declaration >= 0 || !in_braces || !c->d->complete) return declaration;
    c->v = document_values(&c->r->server->documents, c->d);
    const TextShift back = text_shift_reverse(&c->v.shift);
    if (!text_shift_move(&back, c->offset, &c->at)) c->at = back.before;
    return enclosing(c);
}

static void put_code(Completion *c) {
    const char *word = word_begin(c), *line = c->d->text.text + c->line;
    const bool begins = line + strspn(line, " \t") >= word, in_braces = is_in_braces(c);
    if (follows(c, "precision", word)) {
        put_precisions(c);
        return;
    }
    const int declaration = choose_view(c, in_braces);
    if (c->v.analysis && !begins) put_arguments(c);
    if (c->v.analysis) put_names(c, declaration);
    if (c->v.analysis && !begins) put_callees(c);
    put_words(c, begins, !in_braces);
}

const char *answer_completion(Request *r) {
    Completion c = {.r = r, .d = request_document(r)};
    if (!c.d) return "textDocument: is not open";
    if (!request_position(r, c.d, &c.offset)) return "position: line and character, from 0";
    amp_json_begin_array(r->w, "result");
    if (find_line(&c)) {
        if (!c.quote) put_code(&c);
        else if (follows(&c, "precision", c.quote)) put_policies(&c);
    }
    amp_json_end_array(r->w);
    return NULL;
}
