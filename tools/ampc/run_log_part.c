/* run_log_part.c: see report_parts.h. */
#include "tools/ampc/report_parts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

enum { STEPS_DRAWN = 20000 };

typedef enum LineKind { LINE_STEP, LINE_STATS, LINE_OTHER } LineKind;

typedef struct LogLine {
    const char *text;
    size_t length;
    LineKind kind;
} LogLine;

typedef struct LogLines {
    LogLine *line; /* owned */
    size_t count, steps;
    size_t stats; /* 1 + the last line of statistics; 0: none */
} LogLines;

static amp_status kind_of(const char *path, size_t number, LogLine *line, amp_error *err) {
    amp_json_document *document = NULL;
    amp_error why = {0};
    const amp_status status = amp_json_parse(line->text, line->length, NULL, NULL, &document, &why);
    if (status)
        return amp_fail(err, status, "%s: line %zu: %s; is it a log of amprun train?", path, number, why.message);
    const amp_json *root = amp_json_root(document);
    line->kind = amp_json_get(root, "iteration") ? LINE_STEP : amp_json_get(root, "stats") ? LINE_STATS : LINE_OTHER;
    amp_json_free(document);
    return AMP_OK;
}

static size_t count_lines(const char *text) {
    size_t count = 0;
    for (; (text = strchr(text, '\n')); text++) count++;
    return count;
}

static amp_status split(const char *path, const char *text, LogLines *out, amp_error *err) {
    const size_t most = count_lines(text);
    out->line = calloc(most + 1, sizeof *out->line);
    if (!out->line) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its %zu lines", path, most);
    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        LogLine *line = &out->line[out->count];
        *line = (LogLine){.text = text, .length = (size_t)(end - text)};
        if (!line->length) continue;
        AMP_TRY(kind_of(path, out->count + 1, line, err));
        out->count++;
        out->steps += line->kind == LINE_STEP;
        if (line->kind == LINE_STATS) out->stats = out->count;
    }
    return AMP_OK;
}

/* Every step where they are few, else one of so many that as many are left; the last one always. */
static bool is_taken(const LogLines *l, size_t at, size_t step) {
    const size_t between = l->steps / STEPS_DRAWN + 1;
    if (l->line[at].kind == LINE_STEP) return step % between == 0 || step + 1 == l->steps;
    return l->line[at].kind == LINE_OTHER || at + 1 == l->stats;
}

static void join(const LogLines *l, char *to, size_t *size) {
    size_t at = 0, step = 0;
    to[at++] = '[';
    for (size_t i = 0; i < l->count; i++) {
        const bool taken = is_taken(l, i, step);
        step += l->line[i].kind == LINE_STEP;
        if (!taken) continue;
        if (at > 1) to[at++] = ',';
        memcpy(to + at, l->line[i].text, l->line[i].length);
        at += l->line[i].length;
    }
    to[at++] = ']';
    to[at] = 0;
    *size = at;
}

amp_status run_log_part(const char *path, char **out, size_t *size, amp_error *err) {
    char *text = NULL;
    size_t length;
    LogLines lines = {0};
    *out = NULL;
    AMP_TRY(amp_file_read(path, 0, NULL, &text, &length, err));
    amp_status status = split(path, text, &lines, err);
    if (!status) *out = malloc(length + 3); /* a comma for each newline */
    if (!status && !*out) status = amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu bytes", path, length);
    if (!status) join(&lines, *out, size);
    free(lines.line);
    amp_free(NULL, text, length + 1);
    return status;
}
