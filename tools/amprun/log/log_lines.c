/* log_lines.c: see log.h. */
#include "tools/amprun/log/log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/visible.h"
#include "tools/amprun/amprun.h"

/* ---- values ------------------------------------------------------------------------------------------------------ */

double log_number(const amp_json *object, const char *key) {
    const amp_json *v = amp_json_get(object, key);
    if (v && v->kind == AMP_JSON_NUMBER) return v->number.value;
    if (v && v->kind == AMP_JSON_STRING) return strtod(v->string.data, NULL);
    return NAN;
}

int64_t log_whole(const amp_json *object, const char *key) {
    const amp_json *v = amp_json_get(object, key);
    return v && v->kind == AMP_JSON_NUMBER && v->number.is_integer ? v->number.integer : 0;
}

bool log_truth(const amp_json *object, const char *key) {
    const amp_json *v = amp_json_get(object, key);
    return v && v->kind == AMP_JSON_BOOL && v->boolean;
}

const char *log_string(const amp_json *object, const char *key) {
    const amp_json *v = amp_json_get(object, key);
    return v && v->kind == AMP_JSON_STRING ? v->string.data : "";
}

void log_text(const amp_json *object, const char *key, char *out, size_t size) {
    snprintf(out, size, "%s", log_string(object, key));
    uint32_t code;
    for (size_t left = strlen(out), len; left; out += len, left -= len) {
        len = utf8_control(out, left, &code);
        if (len) memset(out, '?', len);
        else len = 1;
    }
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

int log_lines_open(LogLines *l, const char *path) {
    amp_error err = {0};
    int fd;
    *l = (LogLines){.path = path};
    if (amp_file_open(path, AMP_FILE_ANY, &fd, &err))
        return report_text("%s; amprun train --log writes such a file", err.message);
    l->file = fdopen(fd, "r");
    if (l->file) return 0;
    close(fd);
    return report_text("%s: no memory to read it", path);
}

void log_lines_close(LogLines *l) {
    if (l->file) fclose(l->file);
    free(l->line);
    *l = (LogLines){0};
}

static int parse_line(LogLines *l, LineTaker *take, void *user) {
    static const amp_json_limits limits = {.values = 100000000}; /* statistics of a large model are a long line */
    amp_error err = {0};
    amp_json_document *document = NULL;
    l->count++;
    if (amp_json_parse(l->line, l->length, &limits, NULL, &document, &err))
        return report_text("%s: line %lld: %s; is it a log of amprun train?", l->path, (long long)l->count,
                           err.message);
    const int failed = take(user, amp_json_root(document));
    amp_json_free(document);
    return failed;
}

static int append(LogLines *l, int c) {
    char *line = with_room(l->line, (int64_t)l->length, &l->room, 1);
    if (!line) return report_text("%s: no memory for a line of %zu bytes", l->path, l->length);
    l->line = line;
    line[l->length++] = (char)c;
    return 0;
}

/* A line that is being written is gone on with the next time. */
int log_lines_read(LogLines *l, LineTaker *take, void *user) {
    int c, failed = 0;
    clearerr(l->file);
    while (!failed && (c = getc(l->file)) != EOF) {
        if (c != '\n') {
            failed = append(l, c);
            continue;
        }
        failed = l->length ? parse_line(l, take, user) : 0;
        l->length = 0;
    }
    return !failed && ferror(l->file) ? report_text("%s: cannot be read: %s", l->path, strerror(errno)) : failed;
}
