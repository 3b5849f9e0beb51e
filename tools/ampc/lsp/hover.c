/* hover.c: what is told of the word under the cursor: a value's shape, dtype and why; a call's ops; a keyword. */
#include "base/text.h"
#include "tools/ampc/lsp/server.h"

enum { MOST_DECISIONS = 12 };

static bool is_call(const amp_symbol *s) {
    return s->kind == AMP_SYMBOL_BLOCK || s->kind == AMP_SYMBOL_OP || s->kind == AMP_SYMBOL_FUNCTION;
}

/* Ops of repeated layers, or of a loop's steps: the first, without what differs. */
typedef struct AlikeOps {
    amp_op_decision first;
    int count;
} AlikeOps;

static void add_alike(Arena *arena, Table *by_key, const amp_op_decision *d) {
    const char *key = arena_printf(arena, "%s %s %s", text_path_key(arena, d->path), d->types, d->rule);
    AlikeOps *to = table_get(by_key, key);
    if (!to) {
        to = arena_new(arena, AlikeOps);
        to->first = *d;
        table_set(arena, by_key, key, to);
    }
    to->count++;
    if (to->count > 1) to->first.path = text_path_pattern(arena, d->path);
    if (to->first.shape && (!d->shape || strcmp(to->first.shape, d->shape) != 0)) to->first.shape = NULL;
    if (strcmp(to->first.reason, d->reason) != 0) { /* "min-cast.policy:23 op * follow", without what each adds */
        const char *own = strstr(to->first.reason, " because ");
        if (own) to->first.reason = arena_strndup(arena, to->first.reason, (size_t)(own - to->first.reason));
    }
}

/* The decisions of ops that begin at |at|, which is where their call begins. */
static void tell_decisions(Text *t, const amp_analysis *a, amp_span at, Arena *arena) {
    Table by_key = {0};
    int more = 0;
    for (size_t i = 0; i < a->decision_count; i++) {
        const amp_op_decision *d = &a->decisions[i];
        if (d->span.file == at.file && d->span.begin == at.begin) add_alike(arena, &by_key, d);
    }
    for (int i = 0; i < by_key.entries.len; i++) {
        AlikeOps *ops = by_key.entries.data[i].value;
        if (i >= MOST_DECISIONS) {
            more += ops->count;
            continue;
        }
        if (ops->count > 1) ops->first.path = arena_printf(arena, "%s, %d ops:", ops->first.path, ops->count);
        text_puts(t, t->len ? "\n\n" : "");
        describe_decision(t, &ops->first, true);
    }
    if (more) text_printf(t, "\n\nand %d more ops: `ampc explain` lists them", more);
}

/* A comment as Markdown: a shape in it is code, or editors would take it for a link. */
static void tell_about(Text *t, const char *about) {
    bool is_code = false;
    while (*about) {
        const size_t shape = *about == '[' && !is_code ? strcspn(about, "]()\n`") : 0;
        if (*about == '`') is_code = !is_code;
        if (shape && about[shape] == ']') {
            text_printf(t, "`%.*s`", (int)shape + 1, about);
            about += shape + 1;
        } else {
            text_putc(t, *about++);
        }
    }
}

static void tell_call(Text *t, const View *v, const amp_symbol *s, amp_span call, Arena *a) {
    text_printf(t, "```amp\n%s\n```", describe_signature(a, s));
    if (s->about) text_putc(t, '\n');
    if (s->about) tell_about(t, s->about);
    if (call.begin != s->span.begin || call.file != s->span.file) tell_decisions(t, v->analysis, call, a);
}

static void tell_symbol(Text *t, const View *v, const amp_symbol *s, amp_span call, Arena *a) {
    static const char *const kinds[] = {"file",  "const",           "block",    "model",   "train", "precision",
                                        "input", "tensor argument", "argument", "value",   "param", "state",
                                        "index", "metric",          "op",       "function"};
    if (is_call(s)) {
        tell_call(t, v, s, call, a);
        return;
    }
    describe_values(t, v->analysis, s, true);
    if (!t->len) text_printf(t, "%s `%s`", kinds[s->kind], s->name);
    if (s->about) text_puts(t, "\n\n");
    if (s->about) tell_about(t, s->about);
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *sign, *op;
} operators[] = {{"==", "eq"}, {"!=", "ne"}, {"<=", "le"}, {">=", "ge"}, {"+", "add"}, {"-", "sub"},
                 {"-", "neg"}, {"*", "mul"}, {"/", "div"}, {"<", "lt"},  {">", "gt"}};

/* An op of an operator has the place of its left operand, which is in this line. */
static void tell_operator(Text *t, const View *v, const Document *d, size_t offset) {
    const TextShift back = text_shift_reverse(&v->shift);
    size_t begin = offset, moved, line;
    while (begin > 0 && d->text.text[begin - 1] != '\n') begin--;
    if (!text_shift_move(&back, offset, &moved) || !text_shift_move(&back, begin, &line)) return;
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        if (strncmp(d->text.text + offset, operators[i].sign, strlen(operators[i].sign)) != 0) continue;
        for (size_t k = 0; k < v->analysis->decision_count; k++) {
            const amp_op_decision *of = &v->analysis->decisions[k];
            if (of->span.file != v->file || of->span.begin < line || of->span.begin > moved) continue;
            if (strcmp(of->op, operators[i].op) != 0) continue;
            text_puts(t, t->len ? "\n\n" : "");
            describe_decision(t, of, true);
        }
    }
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static amp_span word_at(const Document *d, size_t offset) {
    size_t begin = offset, end = offset;
    while (begin > 0 && language_word_char(d->text.text[begin - 1])) begin--;
    while (end < d->text.size && language_word_char(d->text.text[end])) end++;
    return (amp_span){0, (uint32_t)begin, (uint32_t)end};
}

/* Of a comment or of a string nothing is told but what a symbol says. */
static bool is_code(const Document *d, size_t offset) {
    size_t at = offset;
    bool in_string = false;
    while (at > 0 && d->text.text[at - 1] != '\n') at--;
    for (; at < offset; at++) {
        if (d->text.text[at] == '"') in_string = !in_string;
        if (d->text.text[at] == '#' && !in_string) return false;
    }
    return !in_string;
}

static amp_span tell(Text *t, const Request *r, const Document *d, size_t offset) {
    const View views[] = {document_values(&r->server->documents, d), document_names(d)};
    amp_span name, call, word = word_at(d, offset);
    for (int i = 0; i < 2; i++) {
        const amp_symbol *s = view_symbol_at(&views[i], offset, &name, &call);
        if (!s || !view_place(&views[i], name, &name)) continue;
        tell_symbol(t, &views[i], s, call, r->arena);
        return name;
    }
    if (!is_code(d, offset)) return word;
    const LanguageWord *known = language_word_find(d->text.text + word.begin, word.end - word.begin);
    if (known) text_puts(t, known->about);
    else if (word.begin == word.end && views[0].analysis) {
        tell_operator(t, &views[0], d, offset);
        word.end++;
    }
    return word;
}

const char *answer_hover(Request *r) {
    const Document *d = request_document(r);
    size_t offset;
    Text t;
    if (!d) return "textDocument: is not open";
    if (!request_position(r, d, &offset)) return "position: line and character, from 0";
    text_init(&t, r->arena);
    const amp_span span = tell(&t, r, d, offset);
    if (!t.len) {
        amp_json_put_null(r->w, "result");
        return NULL;
    }
    amp_json_begin_object(r->w, "result");
    amp_json_begin_object(r->w, "contents");
    amp_json_put_string(r->w, "kind", "markdown");
    amp_json_put_string(r->w, "value", text_str(&t));
    amp_json_end_object(r->w);
    put_range(r->w, "range", &d->text, span, r->server->encoding);
    amp_json_end_object(r->w);
    return NULL;
}
