/* findings.c: findings that say the same of several ops become one; which are left out; their order. */
#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "compiler/lint/lint.h"

void lint_add_at(Lint *x, Pos pos, const char *path, const char *word, const char *help, const char *text) {
    Finding f = {.id = x->id, .pos = pos, .text = text, .word = word, .help = help};
    vec_push(x->arena, &f.paths, path ? path : "");
    vec_push(x->arena, x->out, f);
}

void lint_add(Lint *x, const Op *o, const char *word, const char *help, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(x->arena, format, args);
    va_end(args);
    lint_add_at(x, o->pos, o->path, word, help, text);
}

/* ---- several as one ---------------------------------------------------------------------------------------------- */

/* The text, with each name in the form that is equal for repeated layers: "h.*.mul", "lstm.mul". */
static void put_words(Text *t, const char *words) {
    while (*words) {
        const size_t length = strcspn(words, " ,:;"), more = strspn(words + length, " ,:;");
        const bool is_number = isdigit((unsigned char)words[0]) || words[0] == '-';
        const char *word = arena_strndup(t->arena, words, length);
        text_puts(t, is_number ? word : text_path_key(t->arena, word));
        text_write(t, words + length, more);
        words += length + more;
    }
}

static const char *or_none(const char *s) { return s ? s : ""; }

static const char *key_of(Arena *a, const Finding *f) {
    Text t;
    text_init(&t, a);
    text_printf(&t, "%s\n%s\n%d\n%d\n", f->id, or_none(f->pos.file), f->pos.line, f->pos.column);
    put_words(&t, or_none(f->text));
    text_printf(&t, "\n%s\n%s\n%s", or_none(f->word), or_none(f->setting), or_none(f->help));
    return text_str(&t);
}

static void merge(Arena *a, Findings *list) {
    Table first = {0}; /* key -> a place in |list| */
    int kept = 0;
    for (int i = 0; i < list->len; i++) {
        const Finding now = list->data[i];
        const char *key = key_of(a, &now);
        Finding *same = table_get(&first, key);
        if (same) {
            vec_push(a, &same->paths, now.paths.data[0]);
            continue;
        }
        table_set(a, &first, key, &list->data[kept]);
        list->data[kept++] = now;
    }
    list->len = kept;
}

/* One glob that matches all: where they differ, from the first difference to the last one. */
static const char *pattern_of(Arena *a, const LintPaths *paths) {
    const char *first = paths->data[0];
    size_t head = strlen(first), tail = head;
    for (int i = 1; i < paths->len; i++) {
        const char *path = paths->data[i];
        const size_t length = strlen(path);
        size_t h = 0, t = 0;
        while (h < head && path[h] == first[h]) h++;
        head = h;
        while (t < tail && t < length - head && path[length - 1 - t] == first[strlen(first) - 1 - t]) t++;
        tail = t;
    }
    if (head + tail >= strlen(first)) return paths->len == 1 ? first : arena_printf(a, "%.*s*", (int)head, first);
    return arena_printf(a, "%.*s*%s", (int)head, first, first + strlen(first) - tail);
}

/* ---- what is allowed --------------------------------------------------------------------------------------------- */

static bool is_allowed_by(const Finding *f, const char *allow) {
    const size_t length = strcspn(allow, ":");
    if (strlen(f->id) != length || strncmp(f->id, allow, length)) return false;
    if (!allow[length]) return true;
    for (int i = 0; i < f->paths.len; i++)
        if (!text_glob_match(allow + length + 1, f->paths.data[i])) return false;
    return true;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '-'; }

/* The line's comment says "lint: allow ID". */
static bool is_allowed_there(const LintInput *in, const Finding *f) {
    static const char mark[] = "lint: allow";
    const Source *source = f->pos.line ? session_find_source(in->session, f->pos.file) : NULL;
    if (!source) return false;
    const char *at = source->text + loc_at(source, f->pos.line, 1).begin;
    const char *end = at + strcspn(at, "\n"), *comment = memchr(at, '#', (size_t)(end - at));
    const char *allow = comment ? strstr(comment, mark) : NULL;
    if (!allow || allow >= end) return false;
    for (const char *word = allow + sizeof mark - 1; word < end; word++) {
        const size_t length = strlen(f->id);
        if (!is_word(word[-1]) && !strncmp(word, f->id, length) && !is_word(word[length])) return true;
    }
    return false;
}

static void leave_out(const LintInput *in, Findings *list) {
    int kept = 0;
    for (int i = 0; i < list->len; i++) {
        bool allowed = is_allowed_there(in, &list->data[i]);
        for (size_t k = 0; k < in->want.allow_count; k++)
            allowed = allowed || is_allowed_by(&list->data[i], in->want.allow[k]);
        if (!allowed) list->data[kept++] = list->data[i];
    }
    list->len = kept;
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* What has no place comes first. */
static bool is_before(const Finding *a, const Finding *b) {
    const int files = strcmp(a->pos.file ? a->pos.file : "", b->pos.file ? b->pos.file : "");
    if (files) return files < 0;
    return a->pos.line != b->pos.line ? a->pos.line < b->pos.line : a->pos.column < b->pos.column;
}

static void put_in_order(Findings *list) {
    for (int i = 1; i < list->len; i++) {
        const Finding now = list->data[i];
        int at = i;
        for (; at && is_before(&now, &list->data[at - 1]); at--) list->data[at] = list->data[at - 1];
        list->data[at] = now;
    }
}

void findings_finish(Arena *a, const LintInput *in, Findings *list) {
    leave_out(in, list);
    merge(a, list);
    put_in_order(list);
    for (int i = 0; i < list->len; i++) list->data[i].pattern = pattern_of(a, &list->data[i].paths);
}
