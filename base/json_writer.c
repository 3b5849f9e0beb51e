/* json_writer.c: writing JSON. */
#include "base/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/utf8.h"

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
    unsigned char c = (unsigned char)*s;
    char escaped[8];
    if (len == 0) {
        put_text(w, "\xEF\xBF\xBD"); /* U+FFFD */
    } else if (len == 1 && (escapes[c] || c < 0x20)) {
        snprintf(escaped, sizeof escaped, escapes[c] ? "\\%c" : "\\u%04x", escapes[c] ? escapes[c] : c);
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
    begin_value(w, key);
    put_quoted(w, value);
}
