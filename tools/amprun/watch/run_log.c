/* run_log.c: see run_log.h. */
#include "tools/amprun/watch/run_log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tools/amprun/amprun.h"

int run_log_open(RunLog *l, const char *path) {
    *l = (RunLog){.test_loss = NAN};
    l->file = fopen(path, "r");
    return l->file ? 0 : report_text("%s: %s; amprun train --log writes such a file", path, strerror(errno));
}

void run_log_close(RunLog *l) {
    if (l->file) fclose(l->file);
    free(l->line);
    free(l->loss);
    free(l->scale);
    *l = (RunLog){0};
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Infinities and NaN are strings. */
static double number(const amp_json *object, const char *key) {
    const amp_json *v = amp_json_get(object, key);
    if (v && v->kind == AMP_JSON_NUMBER) return v->number.value;
    if (v && v->kind == AMP_JSON_STRING) return strtod(v->string.data, NULL);
    return NAN;
}

static int64_t whole(const amp_json *object, const char *key) {
    const amp_json *v = amp_json_get(object, key);
    return v && v->kind == AMP_JSON_NUMBER && v->number.is_integer ? v->number.integer : 0;
}

static bool truth(const amp_json *object, const char *key) {
    const amp_json *v = amp_json_get(object, key);
    return v && v->kind == AMP_JSON_BOOL && v->boolean;
}

/* Without control characters, which a terminal would obey. */
static void text(const amp_json *object, const char *key, char *out, size_t size) {
    const amp_json *v = amp_json_get(object, key);
    snprintf(out, size, "%s", v && v->kind == AMP_JSON_STRING ? v->string.data : "");
    for (; *out; out++)
        if ((unsigned char)*out < 0x20 || *out == 0x7F) *out = '?';
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static int take_step(RunLog *l, const amp_json *line) {
    if (l->count == l->capacity) {
        const int room = 2 * l->capacity + 1024;
        double *loss = realloc(l->loss, sizeof *loss * (size_t)room);
        if (loss) l->loss = loss;
        double *scale = realloc(l->scale, sizeof *scale * (size_t)room);
        if (scale) l->scale = scale;
        if (!loss || !scale) return report_text("no memory for %d steps", room);
        l->capacity = room;
    }
    l->loss[l->count] = number(line, "loss");
    l->scale[l->count++] = number(line, "scale");
    l->iteration = whole(line, "iteration");
    l->step = whole(line, "step");
    l->skipped += truth(line, "skipped");
    text(line, "scale_is", l->health, sizeof l->health);
    return 0;
}

static double lost(const LoggedTensor *t) {
    return t->count ? (double)(t->flushed + t->overflow) / (double)t->count : 0;
}

/* Into its place, if it is among the first. */
static void place_tensor(RunLog *l, const LoggedTensor *t) {
    int at = l->tensor_count;
    while (at > 0 && lost(&l->tensor[at - 1]) < lost(t)) at--;
    if (at == TENSORS_SHOWN) return;
    if (l->tensor_count < TENSORS_SHOWN) l->tensor_count++;
    memmove(&l->tensor[at + 1], &l->tensor[at], sizeof *t * (size_t)(l->tensor_count - 1 - at));
    l->tensor[at] = *t;
}

static void take_stats(RunLog *l, const amp_json *line) {
    const amp_json *tensors = amp_json_get(line, "tensors");
    l->stats_at = whole(line, "stats");
    l->tensor_count = 0;
    for (size_t i = 0; tensors && tensors->kind == AMP_JSON_ARRAY && i < tensors->array.count; i++) {
        const amp_json *t = &tensors->array.items[i], *f16 = amp_json_get(t, "f16");
        LoggedTensor tensor = {.count = whole(t, "count"),
                               .flushed = whole(f16, "flushed"),
                               .overflow = whole(f16, "overflow"),
                               .largest = number(t, "largest")};
        text(t, "name", tensor.name, sizeof tensor.name);
        text(t, "dtype", tensor.dtype, sizeof tensor.dtype);
        if (lost(&tensor) > 0) place_tensor(l, &tensor);
    }
}

static void take_trace(RunLog *l, const amp_json *line) {
    char fault[32], path[128], file[64];
    if (truth(line, "expected")) return;
    text(line, "fault", fault, sizeof fault);
    text(line, "path", path, sizeof path);
    text(line, "file", file, sizeof file);
    l->traced_at = whole(line, "traced");
    snprintf(l->traced, sizeof l->traced, "%s %s", fault, path);
    const size_t length = strlen(l->traced);
    if (*file) snprintf(l->traced + length, sizeof l->traced - length, "  %s:%d", file, (int)whole(line, "line"));
}

static int take_line(RunLog *l, const amp_json *line) {
    if (amp_json_get(line, "iteration")) return take_step(l, line);
    if (amp_json_get(line, "stats")) take_stats(l, line);
    if (amp_json_get(line, "traced")) take_trace(l, line);
    if (amp_json_get(line, "epoch")) {
        l->epoch = whole(line, "epoch");
        l->test_loss = number(line, "test_loss");
    }
    if (amp_json_get(line, "model")) {
        text(line, "model", l->model, sizeof l->model);
        text(line, "policy", l->policy, sizeof l->policy);
    }
    return 0;
}

static int parse_line(RunLog *l, const char *path) {
    amp_error err = {0};
    amp_json_document *document = NULL;
    l->lines++;
    if (amp_json_parse(l->line, l->length, NULL, NULL, &document, &err))
        return report_text("%s: line %lld: %s; is it a log of amprun train?", path, (long long)l->lines, err.message);
    const int failed = take_line(l, amp_json_root(document));
    amp_json_free(document);
    return failed;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int append(RunLog *l, int c) {
    if (l->length == l->room) {
        char *more = realloc(l->line, 2 * l->room + 4096);
        if (!more) return report_text("no memory for a line of %zu bytes", l->length);
        l->line = more;
        l->room = 2 * l->room + 4096;
    }
    l->line[l->length++] = (char)c;
    return 0;
}

/* A line that is being written is gone on with the next time. */
int run_log_read(RunLog *l, const char *path) {
    int c, failed = 0;
    clearerr(l->file);
    while (!failed && (c = getc(l->file)) != EOF) {
        if (c != '\n') {
            failed = append(l, c);
            continue;
        }
        failed = l->length ? parse_line(l, path) : 0;
        l->length = 0;
    }
    return failed || ferror(l->file) ? report_text("%s: cannot be read", path) && 1 : 0;
}
