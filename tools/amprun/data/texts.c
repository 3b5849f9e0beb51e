/* texts.c: see data_column.h. */
#include "tools/amprun/data/data_column.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* ---- where texts are --------------------------------------------------------------------------------------------- */

typedef struct Cutting {
    const TokenText *text;
    int64_t all;              /* tokens of the file */
    int64_t first, last;      /* the texts to take */
    int64_t texts, samples;   /* of the file; of these texts */
    int64_t *starts, *length; /* of the samples; NULL: they are only counted */
} Cutting;

/* A text of |count| tokens from |at| on: all of them and the separator are predicted, the first from the separator. */
static void take_text(Cutting *c, int64_t at, int64_t count) {
    const bool taken = c->texts >= c->first && c->texts < c->last;
    c->texts++;
    for (int64_t from = 0; taken && from <= count; from += c->text->window) {
        const int64_t left = count + 1 - from;
        if (c->starts) {
            c->starts[c->samples] = at - 1 + from;
            c->length[c->samples] = left < c->text->window ? left : c->text->window;
        }
        c->samples++;
    }
}

static void cut(void *ctx) {
    Cutting *c = ctx;
    int64_t from = 0;
    c->texts = c->samples = 0;
    for (int64_t at = 0; at <= c->all; at++) {
        if (at < c->all && token_at(c->text, at) != c->text->separator) continue;
        if (at > from) take_text(c, from, at - from);
        from = at + 1;
    }
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int take_separator(TokenText *text, const char *spec, const char *value) {
    double id;
    if (!decimal_parse(value, strlen(value), &id) || id < 0 || id >= (double)((int64_t)1 << 8 * text->bytes) ||
        id != (double)(int64_t)id)
        return report_text(
            "--data %s: split=%s: the id of the token that ends a text is wanted, such as 10, the end of "
            "a line of bytes",
            spec, value);
    text->separator = (int64_t)id;
    return 0;
}

/* The texts of the part: the last ones are held out. */
static int choose(const Dataset *d, const char *path, Part part, double held, Cutting *c) {
    const int64_t tail = held < 1 ? (int64_t)((double)c->texts * held + 0.5) : (int64_t)held;
    const bool is_tail = part == PART_TEST && held > 0;
    if (c->texts < 2)
        return report_text("%s: is one text: no token is the separator %" PRId64 " (split=%" PRId64 ")", path,
                           d->tokens.separator, d->tokens.separator);
    if (held > 0 && (tail < 1 || tail >= c->texts))
        return report_text("%s: of its %" PRId64 " texts %" PRId64
                           " would be held out: say otherwise (held=P), or give "
                           "a longer file",
                           path, c->texts, tail);
    c->first = is_tail ? c->texts - tail : 0;
    c->last = is_tail ? c->texts : c->texts - tail;
    return 0;
}

static int cut_file(Cutting *c, const char *path) {
    return mapped_read(cut, c) ? 0 : report_text("%s: the file has become shorter while it was read", path);
}

int texts_read(Dataset *d, const char *path, const char *separator, Part part, double held) {
    TokenText *text = &d->tokens;
    Cutting c = {.text = text, .all = (int64_t)d->file.size / text->bytes};
    if (take_separator(text, d->spec, separator) || cut_file(&c, path) || choose(d, path, part, held, &c) ||
        cut_file(&c, path))
        return 1;
    text->starts = c.starts = malloc(sizeof *c.starts * (size_t)c.samples);
    d->lengths = c.length = malloc(sizeof *c.length * (size_t)c.samples);
    if (!text->starts || !d->lengths) return report_text("%s: no memory for where its texts are", path);
    if (cut_file(&c, path)) return 1;
    text->count = c.all; /* what is checked */
    d->count = c.samples;
    d->has_test = held > 0;
    return 0;
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

static int64_t id_at(const TokenText *text, int64_t at, int64_t all) {
    return at < 0 || at >= all ? text->separator : token_at(text, at);
}

static char *put(const Column *c, int64_t id, char *to) {
    if (c->dtype == AMP_DT_I32) *(int32_t *)to = (int32_t)id;
    else if (c->dtype == AMP_DT_I64) *(int64_t *)to = id;
    else *(uint8_t *)to = (uint8_t)id;
    return to + amp_dtype_size(c->dtype);
}

void texts_gather(const Dataset *d, const int64_t *index, amp_sizes sizes, void *const *batch) {
    const TokenText *text = &d->tokens;
    const int64_t t = sizes.t ? sizes.t : text->window;
    for (int c = 0; c < d->columns; c++) {
        char *to = batch[c];
        for (int64_t i = 0; i < sizes.n; i++) {
            const int64_t row = index[i], length = d->lengths[row];
            for (int64_t k = 0; k < length; k++)
                to = put(&d->column[c], id_at(text, text->starts[row] + c + k, text->count), to);
            to = lengths_pad(&d->column[c], t - length, to);
        }
    }
}
