/* run_log.c: see run_log.h. */
#include "tools/amprun/watch/run_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "tools/amprun/amprun.h"

int run_log_open(RunLog *l, const char *path) {
    *l = (RunLog){.test_loss = NAN};
    return log_lines_open(&l->lines, path);
}

void run_log_close(RunLog *l) {
    log_lines_close(&l->lines);
    free(l->loss);
    free(l->scale);
    *l = (RunLog){0};
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static int take_step(RunLog *l, const amp_json *line) {
    double *loss = with_room(l->loss, l->count, &l->loss_room, sizeof *loss);
    if (loss) l->loss = loss;
    double *scale = with_room(l->scale, l->count, &l->scale_room, sizeof *scale);
    if (scale) l->scale = scale;
    if (!loss || !scale) return report_text("no memory for %d steps", l->count + 1);
    l->loss[l->count] = log_number(line, "loss");
    l->scale[l->count++] = log_number(line, "scale");
    l->iteration = log_whole(line, "iteration");
    l->step = log_whole(line, "step");
    l->skipped += log_truth(line, "skipped");
    log_text(line, "scale_is", l->health, sizeof l->health);
    return 0;
}

static double lost(const LoggedTensor *t) {
    return t->count ? (double)(t->flushed + t->overflow + t->broken) / (double)t->count : 0;
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

/* Tensors of repeated layers, of a loop's steps: one line. */
typedef struct AlikeTensors {
    LoggedTensor sum; /* the largest of their largest */
    const char *pattern;
    int tensors;
} AlikeTensors;

static void add_tensor(Arena *a, Table *by_key, const amp_json *t) {
    const amp_json *f16 = amp_json_get(t, "f16");
    LoggedTensor own = {.largest = log_number(t, "largest")};
    log_text(t, "name", own.name, sizeof own.name);
    log_text(t, "dtype", own.dtype, sizeof own.dtype);
    const char *key = arena_printf(a, "%s %s", own.dtype, text_path_key(a, own.name));
    AlikeTensors *to = table_get(by_key, key);
    if (!to) {
        to = arena_new(a, AlikeTensors);
        to->sum = own;
        table_set(a, by_key, key, to);
    }
    to->tensors++;
    to->pattern = text_path_pattern(a, own.name);
    to->sum.count += log_whole(t, "count");
    to->sum.flushed += log_whole(f16, "flushed");
    to->sum.overflow += log_whole(f16, "overflow");
    to->sum.broken += log_whole(t, "infinities") + log_whole(t, "nans");
    if (!(own.largest <= to->sum.largest)) to->sum.largest = own.largest;
}

static void place_tensors(RunLog *l, const Table *by_key) {
    for (int i = 0; i < by_key->entries.len; i++) {
        AlikeTensors *t = by_key->entries.data[i].value;
        if (t->tensors > 1) snprintf(t->sum.name, sizeof t->sum.name, "%.80s (%d)", t->pattern, t->tensors);
        if (lost(&t->sum) > 0) place_tensor(l, &t->sum);
    }
}

static int take_stats(RunLog *l, const amp_json *line) {
    const amp_json *tensors = amp_json_get(line, "tensors");
    Arena arena;
    Table by_key = {0};
    l->stats_at = log_whole(line, "stats");
    l->tensor_count = 0;
    arena_init(&arena, NULL);
    if (setjmp(arena.out_of_memory)) {
        arena_free(&arena);
        return report_text("no memory for statistics");
    }
    for (size_t i = 0; tensors && tensors->kind == AMP_JSON_ARRAY && i < tensors->array.count; i++)
        add_tensor(&arena, &by_key, &tensors->array.items[i]);
    place_tensors(l, &by_key);
    arena_free(&arena);
    return 0;
}

static void take_trace(RunLog *l, const amp_json *line) {
    char fault[32], path[128], file[64];
    if (log_truth(line, "expected")) return;
    log_text(line, "fault", fault, sizeof fault);
    log_text(line, "path", path, sizeof path);
    log_text(line, "file", file, sizeof file);
    l->traced_at = log_whole(line, "traced");
    snprintf(l->traced, sizeof l->traced, "%s %s", fault, path);
    const size_t length = strlen(l->traced);
    if (*file) snprintf(l->traced + length, sizeof l->traced - length, "  %s:%d", file, (int)log_whole(line, "line"));
}

static int take_line(void *user, const amp_json *line) {
    RunLog *l = user;
    if (amp_json_get(line, "iteration")) return take_step(l, line);
    if (amp_json_get(line, "stats") && take_stats(l, line)) return 1;
    if (amp_json_get(line, "traced")) take_trace(l, line);
    if (amp_json_get(line, "epoch")) {
        l->epoch = log_whole(line, "epoch");
        l->test_loss = log_number(line, "test_loss");
    }
    if (amp_json_get(line, "model")) {
        log_text(line, "model", l->model, sizeof l->model);
        log_text(line, "policy", l->policy, sizeof l->policy);
    }
    return 0;
}

int run_log_read(RunLog *l) { return log_lines_read(&l->lines, take_line, l); }
