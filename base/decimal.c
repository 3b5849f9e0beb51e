/* decimal.c: decimal text of doubles, the same in every locale. */
#define _POSIX_C_SOURCE 200809L
#include "base/decimal.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
