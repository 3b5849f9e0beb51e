/* text.c: building text in an arena; decimal text of doubles; UTF-8 that may be damaged. */
#define _POSIX_C_SOURCE 200809L
#include "base/text.h"
#include "base/visible.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    uint32_t code;
    for (size_t n = strlen(s), len; n > 0; s += len, n -= len) {
        len = utf8_char_len(s, n);
        const size_t bytes = len ? utf8_control(s, n, &code) : 1; /* that are written as such */
        if (len == 1 && escapes[(unsigned char)*s]) text_printf(t, "\\%c", escapes[(unsigned char)*s]);
        else if (!bytes) text_write(t, s, len);
        else
            for (size_t i = 0; i < bytes; i++) text_printf(t, "\\x%02x", (unsigned char)s[i]);
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

/* What of a part counts repetitions: all of it, or from an underscore to the end. */
static size_t counting_length(const char *part, size_t length) {
    size_t digits = 0;
    while (digits < length && part[length - 1 - digits] >= '0' && part[length - 1 - digits] <= '9') digits++;
    if (!digits || digits == length) return digits;
    return digits + 1 < length && part[length - 1 - digits] == '_' ? digits + 1 : 0;
}

/* |for_number|: in place of a number after an underscore; NULL: the number stays. */
static const char *without_numbers(Arena *a, const char *path, const char *for_number) {
    Text t;
    text_init(&t, a);
    while (true) {
        const size_t length = strcspn(path, ".");
        size_t counts = counting_length(path, length);
        if (!for_number && counts < length) counts = 0;
        text_write(&t, path, length - counts);
        if (counts) text_puts(&t, counts == length ? "*" : for_number);
        path += length;
        if (!*path) return text_str(&t);
        text_putc(&t, *path++);
    }
}

const char *text_path_pattern(Arena *a, const char *path) { return without_numbers(a, path, "*"); }

const char *text_path_key(Arena *a, const char *path) { return without_numbers(a, path, ""); }

const char *text_path_layers(Arena *a, const char *path) { return without_numbers(a, path, NULL); }

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

static int lower_of(char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; }

static bool differs_in_case_only(const char *a, const char *b) {
    while (*a && lower_of(*a) == lower_of(*b)) a++, b++;
    return !*a && !*b;
}

/* Near means: at most a third of the longer word changed, at least one letter allowed; or any letters' case. */
const char *text_nearest(const char *word, const char *const *candidates, int count) {
    const char *best = NULL;
    int best_distance = 0;
    size_t word_len = strlen(word);
    if (word_len > MAX_WORD) return NULL;
    for (int i = 0; i < count; i++) {
        size_t len = strlen(candidates[i]);
        if (len > MAX_WORD) continue;
        size_t longer = len > word_len ? len : word_len;
        if (differs_in_case_only(word, candidates[i])) return candidates[i];
        int distance = edit_distance(word, (int)word_len, candidates[i], (int)len);
        if (distance > (longer < 3 ? 1 : (int)longer / 3) || (size_t)distance >= longer) continue;
        if (best && distance >= best_distance) continue;
        best = candidates[i];
        best_distance = distance;
    }
    return best;
}

/* ---- decimal text of doubles ------------------------------------------------------------------------------------- */

/* 17 significant digits tell any two doubles apart (DBL_DECIMAL_DIG). */
enum { MAX_DIGITS = 17, DIGITS_BUFFER = MAX_DIGITS + 16 };

/* |v| = 0.d0 d1 d2 ... * 10^point */
typedef struct Digits {
    char digits[MAX_DIGITS + 1];
    int count, point;
} Digits;

/* printf and strtod follow the thread's locale, so the C locale is put in its place for the moment.  Asking glibc and
 * musl for "C" with all categories allocates nothing; should it fail, the process's locale stays. */
typedef struct CLocale {
    locale_t own, before;
} CLocale;

static CLocale c_locale_enter(void) {
    locale_t own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return (CLocale){.own = own, .before = own ? uselocale(own) : (locale_t)0};
}

static void c_locale_leave(CLocale c) {
    if (!c.own) return;
    uselocale(c.before);
    freelocale(c.own);
}

/* Writes |v| with |n| digits, "d.ddde-308", so that strtod reads it back, or returns false.  printf gives the nearest
 * such decimal.  Below a power of two doubles are twice as close as above it, so there the next decimal up may read
 * back where the nearest, just below, does not; a last digit 9 would carry, into a decimal already tried with fewer
 * digits. */
static bool try_digits(double v, int n, char buffer[DIGITS_BUFFER]) {
    snprintf(buffer, DIGITS_BUFFER, "%.*e", n - 1, v);
    if (strtod(buffer, NULL) == v) return true;
    char *last = strchr(buffer, 'e') - 1;
    if (*last == '9') return false;
    ++*last;
    return strtod(buffer, NULL) == v;
}

/* The fewest digits that strtod reads back as |v| >= 0.  Trailing zeros only remain in "0". */
static Digits shortest_digits(double v) {
    Digits d = {.count = 0};
    char buffer[DIGITS_BUFFER];
    CLocale c = c_locale_enter();
    for (int n = 1; n <= MAX_DIGITS && !try_digits(v, n, buffer); n++) continue;
    c_locale_leave(c);
    const char *at = buffer;
    for (; *at != 'e'; at++)
        if (*at != '.') d.digits[d.count++] = *at;
    d.point = atoi(at + 1) + 1;
    return d;
}

static char *put(char *at, const char *s, int n) {
    memcpy(at, s, (size_t)n);
    return at + n;
}

static char *put_zeros(char *at, int n) {
    memset(at, '0', (size_t)n);
    return at + n;
}

/* Digits with the dot after the first |point| of them, padded with zeros on either side. */
static char *put_fixed(char *at, const Digits *d, int point) {
    int whole = point < 0 ? 0 : point < d->count ? point : d->count;
    at = put(at, d->digits, whole);
    at = put_zeros(at, point > whole ? point - whole : whole == 0);
    *at++ = '.';
    at = put_zeros(at, point < 0 ? -point : 0);
    at = put(at, d->digits + whole, d->count - whole);
    return whole == d->count ? put_zeros(at, 1) : at;
}

char *decimal_format(double v, char out[DECIMAL_MAX]) {
    if (isnan(v)) return strcpy(out, "nan");
    char *at = out;
    if (signbit(v)) *at++ = '-';
    if (isinf(v)) {
        strcpy(at, "inf");
        return out;
    }
    Digits d = shortest_digits(fabs(v));
    bool fixed = d.point > -4 && d.point <= 16;
    at = put_fixed(at, &d, fixed ? d.point : 1);
    *at = '\0';
    if (!fixed) snprintf(at, (size_t)(out + DECIMAL_MAX - at), "e%+03d", d.point - 1);
    return out;
}

static const char *skip_digits(const char *s, const char *end) {
    while (s < end && *s >= '0' && *s <= '9') s++;
    return s;
}

static const char *skip_sign(const char *s, const char *end) { return s < end && (*s == '-' || *s == '+') ? s + 1 : s; }

static bool is_decimal(const char *s, const char *end) {
    const char *whole = skip_sign(s, end), *at = skip_digits(whole, end);
    ptrdiff_t digits = at - whole;
    if (at < end && *at == '.') {
        const char *fraction = at + 1;
        at = skip_digits(fraction, end);
        digits += at - fraction;
    }
    if (digits == 0) return false;
    if (at < end && (*at == 'e' || *at == 'E')) {
        const char *exponent = skip_sign(at + 1, end);
        at = skip_digits(exponent, end);
        if (at == exponent) return false;
    }
    return at == end;
}

bool decimal_parse(const char *s, size_t n, double *out) {
    char buffer[DECIMAL_LONGEST + 1];
    if (n > DECIMAL_LONGEST || !is_decimal(s, s + n)) return false;
    memcpy(buffer, s, n);
    buffer[n] = '\0';
    CLocale c = c_locale_enter();
    *out = strtod(buffer, NULL);
    c_locale_leave(c);
    return true;
}

/* ---- UTF-8 ------------------------------------------------------------------------------------------------------- */

/* Well-formed sequences by first byte; only the second byte's range depends on the first (Unicode 15.0, table 3-7). */
static const struct Sequence {
    uint8_t first_lo, first_hi, second_lo, second_hi, len;
} sequences[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3},
    {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
};

static bool is_continuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

size_t utf8_char_len(const char *s, size_t n) {
    const uint8_t *u = (const uint8_t *)s;
    if (n == 0) return 0;
    if (u[0] < 0x80) return 1;
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++) {
        const struct Sequence *q = &sequences[i];
        if (u[0] < q->first_lo || u[0] > q->first_hi) continue;
        if (n < q->len || u[1] < q->second_lo || u[1] > q->second_hi) return 0;
        for (size_t k = 2; k < q->len; k++)
            if (!is_continuation(u[k])) return 0;
        return q->len;
    }
    return 0;
}

size_t utf8_control(const char *s, size_t n, uint32_t *code) {
    static const uint16_t ranges[][2] = {{0, 0x1F},        {0x7F, 0x9F},     {0x61C, 0x61C},
                                         {0x200E, 0x200F}, {0x202A, 0x202E}, {0x2066, 0x2069}};
    const uint8_t *u = (const uint8_t *)s;
    const size_t len = utf8_char_len(s, n);
    if (!len || len > 3) return 0;
    *code = len == 1 ? u[0] : len == 2 ? u[0] & 0x1Fu : u[0] & 0xFu;
    for (size_t i = 1; i < len; i++) *code = *code << 6 | (u[i] & 0x3Fu);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (*code >= ranges[i][0] && *code <= ranges[i][1]) return len;
    return 0;
}

size_t utf8_encode(uint32_t code, char out[4]) {
    static const uint8_t lead[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(lead[len] | code);
    return len;
}

size_t utf8_cut(const char *s, size_t limit) {
    size_t cut = limit;
    while (cut > 0 && limit - cut < 4 && is_continuation((uint8_t)s[cut])) cut--;
    return cut;
}
