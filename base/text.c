/* text.c: building text in an arena. */
#include "base/text.h"

#include <stdio.h>

#include "base/decimal.h"
#include "base/utf8.h"

/* Words longer than this are never near another. */
enum { MAX_WORD = 64 };

enum { LONG_TEXT = 1 << 20 };

void text_init(Text *t, Arena *a) { *t = (Text){.arena = a}; }

/* Room for |n| more bytes and the NUL. */
static void text_reserve(Text *t, size_t n) {
    size_t needed;
    if (!amp_size_add(t->len, n, &needed) || !amp_size_add(needed, 1, &needed)) arena_jump_(t->arena);
    if (needed <= t->cap) return;
    size_t cap = t->cap ? t->cap : 64;
    while (cap < needed) cap = cap > SIZE_MAX / 2 ? needed : cap * 2;
    Arena *own = cap >= LONG_TEXT ? arena_child(t->arena) : NULL;
    char *data = arena_alloc(own ? own : t->arena, cap);
    if (t->len) memcpy(data, t->data, t->len);
    if (t->own) arena_free(t->own);
    t->own = own;
    t->data = data;
    t->cap = cap;
}

void text_write(Text *t, const char *s, size_t n) {
    text_reserve(t, n);
    if (n) memcpy(t->data + t->len, s, n);
    t->len += n;
    t->data[t->len] = '\0';
}

void text_putc(Text *t, char c) { text_write(t, &c, 1); }

void text_puts(Text *t, const char *s) { text_write(t, s, strlen(s)); }

void text_vprintf(Text *t, const char *fmt, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    if (n > 0) {
        text_reserve(t, (size_t)n);
        vsnprintf(t->data + t->len, (size_t)n + 1, fmt, again);
        t->len += (size_t)n;
    }
    va_end(again);
}

void text_printf(Text *t, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    text_vprintf(t, fmt, args);
    va_end(args);
}

/* Characters since the last newline. */
static int text_column(const Text *t) {
    size_t begin = t->len;
    while (begin > 0 && t->data[begin - 1] != '\n') begin--;
    int column = 0;
    for (size_t at = begin; at < t->len; column++) {
        size_t len = utf8_char_len(t->data + at, t->len - at);
        at += len ? len : 1;
    }
    return column;
}

void text_pad_to(Text *t, int column) {
    int spaces = column - text_column(t);
    text_printf(t, "%*s", spaces > 1 ? spaces : 1, "");
}

const char *text_str(const Text *t) { return t->data ? t->data : ""; }

void text_put_double(Text *t, double v) {
    char buffer[DECIMAL_MAX];
    text_puts(t, decimal_format(v, buffer));
}

void text_put_quoted(Text *t, const char *s) {
    static const char escapes[128] = {['"'] = '"', ['\\'] = '\\', ['\n'] = 'n', ['\t'] = 't'};
    text_putc(t, '"');
    for (size_t n = strlen(s), len; n > 0; s += len, n -= len) {
        len = utf8_char_len(s, n);
        unsigned char c = (unsigned char)*s;
        if (len == 1 && escapes[c]) text_printf(t, "\\%c", escapes[c]);
        else if (len == 0 || c < 0x20 || c == 0x7F) text_printf(t, "\\x%02x", c);
        else text_write(t, s, len);
        if (len == 0) len = 1;
    }
    text_putc(t, '"');
}

/* On a mismatch, the last '*' takes one character more; earlier ones never need to. */
bool text_glob_match(const char *glob, const char *s) {
    const char *star = NULL, *after_star = NULL;
    while (*s) {
        if (*glob == '*') {
            star = ++glob;
            after_star = s;
        } else if (*glob == *s) {
            glob++, s++;
        } else if (star) {
            glob = star;
            s = ++after_star;
        } else {
            return false;
        }
    }
    while (*glob == '*') glob++;
    return *glob == '\0';
}

static int min_int(int a, int b) { return a < b ? a : b; }

/* Edit distance with swaps of neighbours (optimal string alignment): row i holds the distances of the first i
 * characters of |a| to every prefix of |b|, and needs the two rows before it. */
static int edit_distance(const char *a, int a_len, const char *b, int b_len) {
    int rows[3][MAX_WORD + 1];
    for (int j = 0; j <= b_len; j++) rows[0][j] = j;
    for (int i = 1; i <= a_len; i++) {
        int *row = rows[i % 3], *before = rows[(i + 2) % 3], *two_before = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= b_len; j++) {
            int replace = before[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = min_int(replace, min_int(before[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = min_int(row[j], two_before[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

/* Near means: at most a third of the longer word changed, at least one letter allowed. */
const char *text_nearest(const char *word, const char *const *candidates, int count) {
    const char *best = NULL;
    int best_distance = 0;
    size_t word_len = strlen(word);
    if (word_len > MAX_WORD) return NULL;
    for (int i = 0; i < count; i++) {
        size_t len = strlen(candidates[i]);
        if (len > MAX_WORD) continue;
        size_t longer = len > word_len ? len : word_len;
        int distance = edit_distance(word, (int)word_len, candidates[i], (int)len);
        if (distance > (longer < 3 ? 1 : (int)longer / 3) || (size_t)distance >= longer) continue;
        if (best && distance >= best_distance) continue;
        best = candidates[i];
        best_distance = distance;
    }
    return best;
}
