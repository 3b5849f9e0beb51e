/* report.c: see report.h. */
#include "compiler/report/report.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/visible.h"
#include "codegen/kept_text.h"

/* What a caller may add; the page passes over what is not there. */
static const char *const part_names[] = {
    "comparison", /* of amp_compare */
    "lint",       /* of amp_lint */
    "times",      /* of kernels on a GPU: docs/explain.md */
    "layout",     /* what `dot -Tplain` answers for AMP_EXPLAIN_BLOCKS */
    "code",       /* CUDA C of the kernels */
    "run",        /* the lines of a log of amprun train, as an array */
};
enum { PARTS = sizeof part_names / sizeof *part_names };

/* ---- checking ---------------------------------------------------------------------------------------------------- */

static bool is_part(const char *name) {
    for (int i = 0; i < PARTS; i++)
        if (!strcmp(name, part_names[i])) return true;
    return false;
}

static amp_status check_part(const amp_report_part *p, const amp_allocator *a, amp_error *err) {
    static const amp_json_limits limits = {.values = 1 << 28};
    amp_json_document *document = NULL;
    amp_error why = {0};
    if (!p->name || !is_part(p->name))
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "report part '%s': there are comparison, lint, times, layout, code and run",
                        p->name ? p->name : "");
    if (!p->json) return amp_fail(err, AMP_INVALID_ARGUMENT, "report part %s: json is NULL", p->name);
    const amp_status status = amp_json_parse(p->json, p->size, &limits, a, &document, &why);
    amp_json_free(document);
    if (!status) return AMP_OK;
    return amp_fail(err, status == AMP_OUT_OF_MEMORY ? status : AMP_INVALID_ARGUMENT, "report part %s: %s", p->name,
                    why.message);
}

amp_status report_check_parts(const amp_report_part *parts, size_t count, const amp_allocator *a, amp_error *err) {
    if (count && !parts)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_explain_options: parts is NULL, and part_count is not 0");
    for (size_t i = 0; i < count; i++) AMP_TRY(check_part(&parts[i], a, err));
    return AMP_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Names are strangers' words. */
static void put_html(Text *t, const char *s) {
    uint32_t code;
    for (size_t left = strlen(s), len; left; s += len, left -= len) {
        len = utf8_control(s, left, &code);
        if (len) text_printf(t, "\\u%04x", (unsigned)code);
        else if (*s == '&') text_puts(t, "&amp;");
        else if (*s == '<') text_puts(t, "&lt;");
        else if (*s == '>') text_puts(t, "&gt;");
        else text_putc(t, *s);
        if (!len) len = 1;
    }
}

/* In JSON "<" is in strings alone, where it may be written as an escape: so no "</script>" ends the element, and no
 * "<!--" opens a comment. */
static void put_plain(Text *t, const amp_report_part *p) {
    text_printf(t, "<script type=\"application/json\" id=\"part-%s\">", p->name);
    for (size_t i = 0; i < p->size; i++) {
        if (p->json[i] == '<') text_puts(t, "\\u003c");
        else text_putc(t, p->json[i]);
    }
    text_puts(t, "</script>\n");
}

/* Base 64 (RFC 4648). */
static void put_base64(Text *t, const char *bytes, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        uint32_t group = 0;
        char out[4];
        for (size_t k = 0; k < 3; k++) group = group << 8 | (i + k < size ? (uint8_t)bytes[i + k] : 0);
        for (size_t k = 0; k < 4; k++) out[k] = i + k <= size ? digits[group >> (18 - 6 * k) & 63] : '=';
        text_write(t, out, sizeof out);
    }
}

/* A zlib stream, which page/inflate.js reads. */
static void put_packed(Text *t, const amp_report_part *p) {
    Text packed;
    text_init(&packed, t->arena);
    kept_text_pack_small(p->json, p->size, &packed);
    text_printf(t, "<script type=\"application/zlib\" id=\"part-%s\">", p->name);
    put_base64(t, text_str(&packed), packed.len);
    text_puts(t, "</script>\n");
}

/* Of a network of many steps it would be megabytes. */
static void put_part(Text *t, const amp_report_part *p) {
    enum { LARGE = 128 << 10 };
    if (p->size > LARGE) put_packed(t, p);
    else put_plain(t, p);
}

typedef struct Page {
    const char *title;
    const amp_report_part *first, *parts;
    size_t count;
} Page;

static void put_css(Text *t, const Page *p) { (void)p, text_puts(t, report_css); }
static bool is_autocast(const Page *p) { return !strcmp(p->first->name, "autocast"); }
static void put_js(Text *t, const Page *p) { text_puts(t, is_autocast(p) ? autocast_js : report_js); }
static void put_command(Text *t, const Page *p) { text_printf(t, "ampc %s", p->first->name); }
static void put_title(Text *t, const Page *p) { put_html(t, p->title); }
static void put_data(Text *t, const Page *p) {
    put_part(t, p->first);
    for (size_t i = 0; i < p->count; i++) put_part(t, &p->parts[i]);
}

static const struct {
    const char *word;
    void (*put)(Text *t, const Page *p);
} fields[] = {{"{{css}}", put_css},
              {"{{js}}", put_js},
              {"{{title}}", put_title},
              {"{{command}}", put_command},
              {"{{data}}", put_data}};
enum { FIELDS = sizeof fields / sizeof *fields };

/* The field at |at|; -1: none. */
static int field_at(const char *at) {
    for (int i = 0; i < FIELDS; i++)
        if (!strncmp(at, fields[i].word, strlen(fields[i].word))) return i;
    return -1;
}

void report_put(Text *t, const char *title, const amp_report_part *first, const amp_report_part *parts, size_t count) {
    const Page page = {title, first, parts, count};
    const char *at = report_html;
    for (const char *open = strstr(at, "{{"); open; open = strstr(at, "{{")) {
        const int field = field_at(open);
        text_write(t, at, (size_t)(open - at));
        if (field >= 0) fields[field].put(t, &page);
        at = open + (field >= 0 ? strlen(fields[field].word) : 2);
    }
    text_puts(t, at);
}
