/* csv_forms.c: see csv_table.h. */
#include "tools/amprun/data/csv_table.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

/* ---- parts of a cell: each function returns where the part ends, or NULL ----------------------------------------- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_letter(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }

static const char *skip_sign(const char *s) { return s + (*s == '-' || *s == '+'); }

/* From |least| to |most| digits, and no more. */
static const char *digits(const char *s, int least, int most) {
    int n = 0;
    while (s && n <= most && is_digit(s[n])) n++;
    return s && n >= least && n <= most ? s + n : NULL;
}

static const char *any_digits(const char *s) {
    while (is_digit(*s)) s++;
    return s;
}

static const char *text(const char *s, const char *wanted) {
    size_t n = strlen(wanted);
    return s && !strncmp(s, wanted, n) ? s + n : NULL;
}

/* 12.5 or 12,5 or 12. */
static const char *with_point(const char *s, char point) {
    const char *whole = any_digits(s), *end = *whole == point ? any_digits(whole + 1) : whole;
    return end > s + (*whole == point) ? end : NULL;
}

/* 1,234,567.8 with |separator| and |point|. */
static const char *grouped(const char *s, const char *separator, char point) {
    const char *at = digits(s, 1, 3), *next;
    int groups = 0;
    while (at && (next = digits(text(at, separator), 3, 3))) at = next, groups++;
    if (!groups) return NULL;
    return *at == point ? any_digits(at + 1) : at;
}

static const char *any_grouped(const char *s) {
    static const struct {
        const char *separator;
        char point;
    } ways[] = {{",", '.'},           {".", ','}, {"'", '.'},        {"\xe2\x80\x99", '.'}, {"_", '.'},
                {" ", '.'},           {" ", ','}, {"\xc2\xa0", ','}, {"\xc2\xa0", '.'},     {"\xe2\x80\xaf", ','},
                {"\xe2\x80\xaf", '.'}};
    const char *longest = NULL;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const char *end = grouped(s, ways[i].separator, ways[i].point);
        if (end && (!longest || end > longest)) longest = end;
    }
    return longest;
}

/* A number as any of these writes it. */
static const char *any_number(const char *s) {
    s = skip_sign(s);
    const char *ends[] = {with_point(s, '.'), with_point(s, ','), any_grouped(s)}, *longest = NULL;
    for (int i = 0; i < 3; i++)
        if (ends[i] && (!longest || ends[i] > longest)) longest = ends[i];
    return longest;
}

static const char *skip_spaces(const char *s) {
    for (const char *next;
         s && ((next = text(s, " ")) || (next = text(s, "\xc2\xa0")) || (next = text(s, "\xe2\x80\xaf")));)
        s = next;
    return s;
}

/* One of |words|, which ends with NULL, in any case of its letters. */
static const char *word_of(const char *s, const char *const *words) {
    for (; s && *words; words++)
        if (!strncasecmp(s, *words, strlen(*words))) return s + strlen(*words);
    return NULL;
}

static bool ends(const char *s) { return s && !*s; }

/* ---- the forms --------------------------------------------------------------------------------------------------- */

/* csv_number takes those that are finite. */
static bool has_large(const char *s) {
    double v;
    return decimal_parse(s, strlen(s), &v);
}

static bool has_group(const char *s) { return ends(any_grouped(skip_sign(s))); }

static bool has_comma(const char *s) {
    const char *first = skip_sign(s), *at = strchr(s, ',') ? with_point(first, ',') : NULL;
    if (at && (*at | 32) == 'e') at = digits(skip_sign(at + 1), 1, 9);
    return ends(at);
}

static bool has_percent(const char *s) {
    const char *number = text(s, "%");
    if (number && ends(any_number(skip_spaces(number)))) return true;
    number = skip_spaces(any_number(s));
    const char *per_mille = text(number, "\xe2\x80\xb0");
    return ends(per_mille ? per_mille : text(number, "%"));
}

static const char *const currencies[] = {
    "US$",          "$",   "\xe2\x82\xac", "\xc2\xa3",  "\xc2\xa5", "\xe2\x82\xb9", "\xe2\x82\xa9",
    "\xe2\x82\xbd", "R$",  "EUR",          "USD",       "GBP",      "JPY",          "CHF",
    "CNY",          "INR", "SEK",          "NOK",       "DKK",      "PLN",          "CAD",
    "AUD",          "Fr.", "kr",           "z\xc5\x82", NULL};

/* $ 1,234.50, 12 EUR, -$5, and (5), as accountants write less than nothing. */
static bool has_currency(const char *s) {
    const char *within = text(s, "("), *first = skip_sign(within ? within : s), *sign = word_of(first, currencies);
    const char *at = any_number(sign ? skip_spaces(sign) : first);
    if (!sign) sign = word_of(skip_spaces(at), currencies), at = sign ? sign : at;
    if (within) return ends(text(at, ")"));
    return sign && ends(at);
}

/* 12:30, 12:30:15.5, 7:05 pm, with a zone. */
static const char *time_of(const char *s) {
    static const char *const halves[] = {"am", "pm", "a.m.", "p.m.", "Z", NULL};
    const char *at = digits(s, 1, 3), *next;
    if (!(at = digits(text(at, ":"), 2, 2))) return NULL;
    if ((next = digits(text(at, ":"), 2, 2))) at = *next == '.' || *next == ',' ? any_digits(next + 1) : next;
    if ((next = word_of(skip_spaces(at), halves))) return next;
    if ((next = digits(*at == '-' || *at == '+' ? at + 1 : NULL, 2, 2)))
        at = (at = digits(text(next, ":") ? next + 1 : next, 2, 2)) ? at : next;
    return at;
}

static bool has_time(const char *s) { return ends(time_of(skip_sign(s))); }

/* 2024-01-31, 31.1.24, 1/31/2024, 2024-01. */
static const char *numeric_date(const char *s) {
    const char *at = digits(s, 1, 4), *next;
    if (!at || !*at || !strchr("-/.", *at)) return NULL;
    const char separator[] = {*at, '\0'};
    if (!(next = digits(at + 1, 1, 2))) return NULL;
    const char *last = text(next, separator), *end = digits(last, 1, 4);
    if (end && (at - s == 4 || end - last == 4 || end - last == 2)) return end;
    return at - s == 4 && next - at == 3 && *at != '.' ? next : NULL;
}

/* 31 Jan 2024, January 31, 2024, Mon 3-Feb: a month, digits, and little else. */
static bool has_month(const char *s) {
    static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
                                         "aug", "sep", "oct", "nov", "dec", NULL};
    static const char *const days[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun", "am", "pm", NULL};
    bool month = false, digit = false;
    while (*s) {
        if (is_letter(*s)) {
            if (word_of(s, months)) month = true;
            else if (!word_of(s, days)) return false;
            while (is_letter(*s)) s++;
        } else if (is_digit(*s) || strchr(" ,-./:'", *s)) digit |= is_digit(*s++);
        else return false;
    }
    return month && digit;
}

static bool has_date(const char *s) {
    const char *at = numeric_date(s);
    if (ends(at)) return true;
    at = at ? *at == 'T' || *at == ' ' ? skip_spaces(at + 1) : NULL : NULL;
    return (at && ends(time_of(at))) || has_month(s);
}

/* 0x1f, #ff0080; and 1f3a without either, if it has a digit and a letter. */
static bool has_hexadecimal(const char *s) {
    const char *first = text(s, "0x"), *at;
    if (!first && !(first = text(s, "0X")) && !(first = text(s, "#"))) first = s;
    bool letter = first != s, digit = first != s;
    for (at = first; is_digit(*at) || ((*at | 32) >= 'a' && (*at | 32) <= 'f'); at++)
        is_digit(*at) ? (digit = true) : (letter = true);
    return at > first && ends(at) && letter && digit && (first != s || at - first > 3);
}

/* 12 kg, 5cm, 20 m/s, 37 degrees. */
static bool has_unit(const char *s) {
    const char *unit = skip_spaces(any_number(s));
    if (!unit || !*unit || is_digit(*unit)) return false;
    for (const char *at = unit; *at; at++)
        if (!is_letter(*at) && !strchr("/^.\"' \xc2\xb5\xb0\xb2\xb3", *at) && !is_digit(*at)) return false;
    return is_letter(*unit) || strchr("'\"\xc2", *unit);
}

/* 10-20, 1/2, 3 x 4, [1, 2], 12.5.3: digits and signs alone. */
static bool has_several(const char *s) {
    bool digit = false;
    for (; *s; s++)
        if (is_digit(*s)) digit = true;
        else if (!strchr(" ,;.:-+/*x()[]{}<>=~|", *s)) return false;
    return digit;
}

static bool has_other_characters(const char *s) {
    static const char *const infinite[] = {"infinity", "inf", "1.#inf", NULL};
    static const char *const minus[] = {"\xe2\x88\x92", "\xe2\x80\x93", "\xe2\x80\x94", NULL};
    const char *number = word_of(s, minus);
    if (number) return ends(any_number(skip_spaces(number)));
    if (ends(word_of(skip_sign(s), infinite))) return true;
    for (; *s; s += 3) /* full-width digits */
        if (strncmp(s, "\xef\xbc", 2) || (unsigned char)s[2] < 0x8b || (unsigned char)s[2] > 0x99) return false;
    return true;
}

#define ALONE "write the number alone in each cell, and `number` in the schema"
const CsvForm csv_form[CSV_FORMS] = {
    {"numbers above 1.8e308", "write smaller ones, and `number` in the schema"},
    {"numbers with separated thousands", "write them without separators, as 1234.5, and `number` in the schema"},
    {"numbers with a decimal comma", "write `decimal ,` and `number` in the schema"},
    {"percentages", ALONE},
    {"amounts of money", ALONE},
    {"dates", "write what counts of them as numbers: the year, the month, days since one of them"},
    {"times", "write them as numbers, such as seconds or hours"},
    {"hexadecimal numbers", "write them as decimal numbers, and `number` in the schema"},
    {"numbers with a unit", ALONE},
    {"several numbers in a cell", "give each a column of its own, and `number` in the schema"},
    {"numbers in other characters", "write them as -1234.5, and `number` in the schema"},
};

unsigned csv_forms_of(const char *cell) {
    static bool (*const has[CSV_FORMS])(const char *) = {
        has_large, has_group,       has_comma, has_percent, has_currency,        has_date,
        has_time,  has_hexadecimal, has_unit,  has_several, has_other_characters};
    unsigned forms = 0;
    for (int i = 0; i < CSV_FORMS && *cell; i++) forms |= (unsigned)has[i](cell) << i;
    return forms;
}

const CsvForm *csv_form_of(const char *cell) {
    unsigned forms = csv_forms_of(cell);
    for (int i = 0; i < CSV_FORMS; i++)
        if (forms >> i & 1) return &csv_form[i];
    return NULL;
}
