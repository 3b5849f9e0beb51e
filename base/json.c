/* json.c: reading untrusted JSON, by recursive descent with limits; writing JSON. */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "base/visible.h"

enum { DEFAULT_DEPTH = 32, DEFAULT_VALUES = 1000000 };

struct amp_json_document {
    amp_allocator allocator;
    Arena arena; /* of the values and strings */
    amp_json root;
};

/* The members of the containers that are still open, innermost last; array items have an empty key.  When a container
 * closes, its part is copied to memory of the exact size: memory stays in proportion to the text. */
typedef VEC(amp_json_member) MemberStack;

typedef struct Parser {
    const char *text;
    size_t len, at;
    amp_json_limits limits;
    size_t values;
    int depth;
    MemberStack open;
    Arena scratch;
    Arena *arena;
    amp_error *err;
} Parser;

static amp_status parse_value(Parser *p, amp_json *out);

static amp_status fail_at(Parser *p, size_t offset, const char *what) {
    return amp_fail(p->err, AMP_BAD_FILE, "byte %zu: %s", offset, what);
}

static amp_status fail_memory(amp_error *err) {
    return amp_fail(err, AMP_OUT_OF_MEMORY, "out of memory while reading JSON");
}

static int peek(const Parser *p) { return p->at < p->len ? (unsigned char)p->text[p->at] : -1; }

static void skip_space(Parser *p) {
    for (int c = peek(p); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(p)) p->at++;
}

static bool take(Parser *p, char c) {
    if (peek(p) != c) return false;
    p->at++;
    return true;
}

/* Numbers: number = [-] int [. digits] [(e|E) [+|-] digits], int without leading zeros (RFC 8259, section 6). */
static bool take_digits(Parser *p) {
    size_t begin = p->at;
    while (peek(p) >= '0' && peek(p) <= '9') p->at++;
    return p->at > begin;
}

static bool scan_number(Parser *p, bool *is_integer) {
    *is_integer = true;
    take(p, '-');
    if (!take(p, '0') && !take_digits(p)) return false;
    if (take(p, '.')) {
        *is_integer = false;
        if (!take_digits(p)) return false;
    }
    if (take(p, 'e') || take(p, 'E')) {
        *is_integer = false;
        if (!take(p, '-')) take(p, '+');
        if (!take_digits(p)) return false;
    }
    return true;
}

/* Counted downwards, because the negative range is the larger one. */
static bool int64_from_digits(const char *s, size_t n, int64_t *out) {
    bool negative = n > 0 && *s == '-';
    int64_t value = 0;
    for (size_t i = negative; i < n; i++) {
        int digit = s[i] - '0';
        if (value < (INT64_MIN + digit) / 10) return false;
        value = value * 10 - digit;
    }
    if (!negative && value == INT64_MIN) return false;
    *out = negative ? value : -value;
    return true;
}

static amp_status parse_number(Parser *p, amp_json *out) {
    size_t begin = p->at;
    amp_json_number *number = &out->number;
    out->kind = AMP_JSON_NUMBER;
    if (!scan_number(p, &number->is_integer)) return fail_at(p, p->at, "a digit is missing here");
    const char *s = p->text + begin;
    size_t n = p->at - begin;
    if (!decimal_parse(s, n, &number->value)) return fail_at(p, begin, "this number has too many digits");
    if (!isfinite(number->value)) return fail_at(p, begin, "this number is too large for a double");
    number->integer = 0;
    if (number->is_integer && !int64_from_digits(s, n, &number->integer))
        return fail_at(p, begin, "this integer does not fit into 64 bits");
    return AMP_OK;
}

/* Strings */
static bool take_hex4(Parser *p, uint32_t *out) {
    *out = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        int c = peek(p);
        static const char digits[] = "0123456789abcdef";
        int lower = c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c;
        const char *digit = lower > 0 ? strchr(digits, lower) : NULL;
        if (!digit) return false;
        *out = *out << 4 | (uint32_t)(digit - digits);
    }
    return true;
}

/* The four digits of \uXXXX, and a second escape for the other half of a surrogate pair. */
static amp_status parse_unicode_escape(Parser *p, uint32_t *code) {
    size_t begin = p->at - 2;
    uint32_t low;
    if (!take_hex4(p, code)) return fail_at(p, begin, "\\u needs four hexadecimal digits");
    if (*code == 0) return fail_at(p, begin, "a string may not hold U+0000");
    if (*code < 0xD800 || *code > 0xDFFF) return AMP_OK;
    if (*code > 0xDBFF || !take(p, '\\') || !take(p, 'u') || !take_hex4(p, &low) || low < 0xDC00 || low > 0xDFFF)
        return fail_at(p, begin, "a surrogate without its other half");
    *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
    return AMP_OK;
}

static amp_status parse_escape(Parser *p, char *out, size_t *len) {
    static const char simple[128] = {
        ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};
    int c = peek(p);
    p->at++;
    if (c == 'u') {
        uint32_t code;
        AMP_TRY(parse_unicode_escape(p, &code));
        *len += utf8_encode(code, out + *len);
        return AMP_OK;
    }
    if (c < 0 || c > 127 || !simple[c])
        return fail_at(p, p->at - 2, "an unknown escape; JSON has \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    out[(*len)++] = simple[c];
    return AMP_OK;
}

/* Where the closing quote is; escapes are not checked yet. */
static amp_status find_string_end(Parser *p, size_t *end) {
    *end = p->at;
    for (size_t at = p->at, step; at < p->len; at += step) {
        unsigned char c = (unsigned char)p->text[at];
        step = utf8_char_len(p->text + at, p->len - at);
        *end = at;
        if (c == '"') return AMP_OK;
        if (c < 0x20) return fail_at(p, at, "a control character in a string; write it as \\uXXXX");
        if (step == 0) return fail_at(p, at, "invalid UTF-8");
        if (c == '\\') step = p->len - at > 1 && (unsigned char)p->text[at + 1] < 0x80 ? 2 : 1;
    }
    return fail_at(p, p->len, "the text ends inside a string");
}

/* An escape is never shorter than the bytes that it encodes, so the room between the quotes is enough. */
static amp_status parse_string(Parser *p, amp_json_string *out) {
    size_t end, len = 0;
    if (!take(p, '"')) return fail_at(p, p->at, "expected a string");
    AMP_TRY(find_string_end(p, &end));
    char *data = arena_alloc(p->arena, end - p->at + 1);
    while (p->at < end) {
        if (take(p, '\\')) AMP_TRY(parse_escape(p, data, &len));
        else data[len++] = p->text[p->at++];
    }
    p->at = end + 1;
    data[len] = '\0';
    *out = (amp_json_string){.data = data, .len = len};
    return AMP_OK;
}

/* Objects and arrays */
static int compare_strings(const char *a, size_t a_len, const char *b, size_t b_len) {
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

static int compare_keys(const void *a, const void *b) {
    const amp_json_member *x = *(const amp_json_member *const *)a, *y = *(const amp_json_member *const *)b;
    int order = compare_strings(x->key.data, x->key.len, y->key.data, y->key.len);
    return order ? order : (x > y) - (x < y);
}

static amp_status sort_members(Parser *p, amp_json_object *object) {
    const amp_json_member **sorted = arena_array(p->arena, const amp_json_member *, object->count);
    for (size_t i = 0; i < object->count; i++) sorted[i] = &object->members[i];
    if (object->count > 1) qsort(sorted, object->count, sizeof *sorted, compare_keys);
    object->sorted = sorted;
    for (size_t i = 1; i < object->count; i++) {
        const amp_json_string *a = &sorted[i - 1]->key, *b = &sorted[i]->key;
        if (compare_strings(a->data, a->len, b->data, b->len) == 0)
            return amp_fail(p->err, AMP_BAD_FILE, "byte %zu: the key \"%s\" is there twice", sorted[i]->value.offset,
                            b->data);
    }
    return AMP_OK;
}

/* The members from |first| on leave the stack. */
static amp_status close_object(Parser *p, int first, amp_json *out) {
    size_t count = (size_t)(p->open.len - first);
    amp_json_member *members = arena_array(p->arena, amp_json_member, count);
    if (count) memcpy(members, p->open.data + first, count * sizeof *members);
    p->open.len = first;
    out->object = (amp_json_object){.members = members, .count = count};
    return sort_members(p, &out->object);
}

static void close_array(Parser *p, int first, amp_json *out) {
    size_t count = (size_t)(p->open.len - first);
    amp_json *items = arena_array(p->arena, amp_json, count);
    for (size_t i = 0; i < count; i++) items[i] = p->open.data[(size_t)first + i].value;
    p->open.len = first;
    out->array = (amp_json_array){.items = items, .count = count};
}

static amp_status parse_member(Parser *p, bool in_object) {
    amp_json_member member = {.key = {.len = 0}};
    skip_space(p);
    if (in_object) {
        if (peek(p) != '"') return fail_at(p, p->at, "expected a key in double quotes");
        AMP_TRY(parse_string(p, &member.key));
        skip_space(p);
        if (!take(p, ':')) return fail_at(p, p->at, "expected ':' after the key");
    }
    AMP_TRY(parse_value(p, &member.value));
    vec_push(&p->scratch, &p->open, member);
    return AMP_OK;
}

static amp_status parse_container(Parser *p, amp_json *out) {
    bool in_object = p->text[p->at++] == '{';
    char closing = in_object ? '}' : ']';
    int first = p->open.len;
    out->kind = in_object ? AMP_JSON_OBJECT : AMP_JSON_ARRAY;
    if (p->depth == p->limits.depth) return fail_at(p, out->offset, "nested too deeply");
    p->depth++;
    skip_space(p);
    if (!take(p, closing)) {
        do {
            AMP_TRY(parse_member(p, in_object));
            skip_space(p);
        } while (take(p, ','));
        if (!take(p, closing)) return fail_at(p, p->at, in_object ? "expected ',' or '}'" : "expected ',' or ']'");
    }
    p->depth--;
    if (in_object) return close_object(p, first, out);
    close_array(p, first, out);
    return AMP_OK;
}

/* null, true, false */
static amp_status parse_word(Parser *p, amp_json *out) {
    static const struct Word {
        const char *text;
        amp_json_kind kind;
        bool boolean;
    } words[] = {{"null", AMP_JSON_NULL, false}, {"true", AMP_JSON_BOOL, true}, {"false", AMP_JSON_BOOL, false}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t len = strlen(words[i].text);
        if (p->len - p->at < len || memcmp(p->text + p->at, words[i].text, len) != 0) continue;
        out->kind = words[i].kind;
        out->boolean = words[i].boolean;
        p->at += len;
        return AMP_OK;
    }
    return fail_at(p, p->at, p->at == p->len ? "the text ends where a value should be" : "expected a value");
}

static amp_status parse_value(Parser *p, amp_json *out) {
    memset(out, 0, sizeof *out);
    skip_space(p);
    out->offset = p->at;
    if (p->values++ == p->limits.values) return fail_at(p, p->at, "too many values");
    int c = peek(p);
    if (c == '{' || c == '[') return parse_container(p, out);
    if (c == '-' || (c >= '0' && c <= '9')) return parse_number(p, out);
    if (c != '"') return parse_word(p, out);
    out->kind = AMP_JSON_STRING;
    return parse_string(p, &out->string);
}

static amp_status parse_text(Parser *p, amp_json *root) {
    AMP_TRY(parse_value(p, root));
    skip_space(p);
    return p->at == p->len ? AMP_OK : fail_at(p, p->at, "something follows the value");
}

/* The parser, with both arenas' guards set; they only jump back to here. */
static amp_status parse_guarded(Parser *p, amp_json_document *document) {
    if (setjmp(p->scratch.out_of_memory)) return fail_memory(p->err);
    if (setjmp(document->arena.out_of_memory)) return fail_memory(p->err);
    return parse_text(p, &document->root);
}

amp_status amp_json_parse(const char *text, size_t len, const amp_json_limits *limits, const amp_allocator *a,
                          amp_json_document **out, amp_error *err) {
    *out = NULL;
    amp_json_document *document = amp_alloc_zeroed(a, sizeof *document);
    if (!document) return fail_memory(err);
    document->allocator = amp_allocator_or_default(a);
    arena_init(&document->arena, a);
    Parser p = {.text = text, .len = len, .arena = &document->arena, .err = err};
    p.limits.depth = limits && limits->depth ? limits->depth : DEFAULT_DEPTH;
    p.limits.values = limits && limits->values ? limits->values : DEFAULT_VALUES;
    arena_init(&p.scratch, a);
    amp_status status = parse_guarded(&p, document);
    arena_free(&p.scratch);
    if (status) {
        amp_json_free(document);
        return status;
    }
    *out = document;
    return AMP_OK;
}

void amp_json_free(amp_json_document *document) {
    if (!document) return;
    amp_allocator allocator = document->allocator;
    arena_free(&document->arena);
    amp_free(&allocator, document, sizeof *document);
}

const amp_json *amp_json_root(const amp_json_document *document) { return &document->root; }

const amp_json *amp_json_get(const amp_json *json, const char *key) {
    if (!json || json->kind != AMP_JSON_OBJECT) return NULL;
    size_t key_len = strlen(key), low = 0, high = json->object.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const amp_json_member *member = json->object.sorted[middle];
        int order = compare_strings(key, key_len, member->key.data, member->key.len);
        if (order == 0) return &member->value;
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

const char *amp_json_kind_name(amp_json_kind kind) {
    static const char *const names[] = {"null", "boolean", "number", "string", "array", "object"};
    return names[kind];
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

enum { FIRST_BYTES = 256 };

void amp_json_writer_init(amp_json_writer *w, const amp_allocator *a) {
    *w = (amp_json_writer){.allocator = amp_allocator_or_default(a)};
}

void amp_json_writer_free(amp_json_writer *w) {
    amp_free(&w->allocator, w->data, w->bytes);
    *w = (amp_json_writer){.allocator = w->allocator};
}

amp_status amp_json_writer_status(const amp_json_writer *w, amp_error *err) {
    if (!w->out_of_memory) return AMP_OK;
    return amp_fail(err, AMP_OUT_OF_MEMORY, "out of memory while writing JSON");
}

/* Room for |n| more bytes and the NUL. */
static bool reserve(amp_json_writer *w, size_t n) {
    size_t needed;
    if (w->out_of_memory) return false;
    if (amp_size_add(w->size, n, &needed) && amp_size_add(needed, 1, &needed)) {
        if (needed <= w->bytes) return true;
        size_t bytes = w->bytes ? w->bytes : FIRST_BYTES;
        while (bytes < needed) bytes = bytes > SIZE_MAX / 2 ? needed : bytes * 2;
        char *data = amp_alloc(&w->allocator, bytes);
        if (data) {
            if (w->size) memcpy(data, w->data, w->size);
            amp_free(&w->allocator, w->data, w->bytes);
            w->data = data;
            w->bytes = bytes;
            return true;
        }
    }
    w->out_of_memory = true;
    return false;
}

static void put(amp_json_writer *w, const char *s, size_t n) {
    if (!reserve(w, n)) return;
    memcpy(w->data + w->size, s, n);
    w->size += n;
    w->data[w->size] = '\0';
}

static void put_text(amp_json_writer *w, const char *s) { put(w, s, strlen(s)); }

/* Two-character escapes where JSON has them, \u00XX for the other control characters. */
static void put_char(amp_json_writer *w, const char *s, size_t len) {
    static const char escapes[128] = {
        ['"'] = '"', ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    uint32_t code;
    char escaped[8];
    if (len == 0) {
        put_text(w, "\xEF\xBF\xBD"); /* U+FFFD */
    } else if (len == 1 && escapes[(unsigned char)*s]) {
        put(w, (const char[]){'\\', escapes[(unsigned char)*s]}, 2);
    } else if (utf8_control(s, len, &code)) {
        snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)(code & 0xFFFF));
        put_text(w, escaped);
    } else {
        put(w, s, len);
    }
}

static void put_quoted(amp_json_writer *w, const char *s) {
    put_text(w, "\"");
    for (size_t n = strlen(s), len; n > 0; s += len ? len : 1, n -= len ? len : 1) {
        len = utf8_char_len(s, n);
        put_char(w, s, len);
    }
    put_text(w, "\"");
}

/* A comma, unless something was just opened; no value ends in an opening bracket, a string ends in '"'. */
static void begin_value(amp_json_writer *w, const char *key) {
    if (w->size && !strchr("{[", w->data[w->size - 1])) put_text(w, ",");
    if (!key) return;
    put_quoted(w, key);
    put_text(w, ":");
}

static void put_value(amp_json_writer *w, const char *key, const char *text) {
    begin_value(w, key);
    put_text(w, text);
}

void amp_json_begin_object(amp_json_writer *w, const char *key) { put_value(w, key, "{"); }
void amp_json_end_object(amp_json_writer *w) { put_text(w, "}"); }
void amp_json_begin_array(amp_json_writer *w, const char *key) { put_value(w, key, "["); }
void amp_json_end_array(amp_json_writer *w) { put_text(w, "]"); }

void amp_json_put_null(amp_json_writer *w, const char *key) { put_value(w, key, "null"); }

void amp_json_put_bool(amp_json_writer *w, const char *key, bool value) { put_value(w, key, value ? "true" : "false"); }

void amp_json_put_int(amp_json_writer *w, const char *key, int64_t value) {
    char buffer[24];
    snprintf(buffer, sizeof buffer, "%" PRId64, value);
    put_value(w, key, buffer);
}

void amp_json_put_double(amp_json_writer *w, const char *key, double value) {
    char buffer[DECIMAL_MAX];
    put_value(w, key, isfinite(value) ? decimal_format(value, buffer) : "null");
}

void amp_json_put_string(amp_json_writer *w, const char *key, const char *value) {
    if (!value) {
        amp_json_put_null(w, key);
        return;
    }
    begin_value(w, key);
    if (value) put_quoted(w, value);
    else put_text(w, "null");
}
