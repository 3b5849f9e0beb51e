/* run_log.c: see run_log.h. */
#include "tools/amprun/watch/run_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    if (l->count == l->capacity) {
        const int room = 2 * l->capacity + 1024;
        double *loss = realloc(l->loss, sizeof *loss * (size_t)room);
        if (loss) l->loss = loss;
        double *scale = realloc(l->scale, sizeof *scale * (size_t)room);
        if (scale) l->scale = scale;
        if (!loss || !scale) return report_text("no memory for %d steps", room);
        l->capacity = room;
    }
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

static void take_stats(RunLog *l, const amp_json *line) {
    const amp_json *tensors = amp_json_get(line, "tensors");
    l->stats_at = log_whole(line, "stats");
    l->tensor_count = 0;
    for (size_t i = 0; tensors && tensors->kind == AMP_JSON_ARRAY && i < tensors->array.count; i++) {
        const amp_json *t = &tensors->array.items[i], *f16 = amp_json_get(t, "f16");
        LoggedTensor tensor = {.count = log_whole(t, "count"),
                               .flushed = log_whole(f16, "flushed"),
                               .overflow = log_whole(f16, "overflow"),
                               .broken = log_whole(t, "infinities") + log_whole(t, "nans"),
                               .largest = log_number(t, "largest")};
        log_text(t, "name", tensor.name, sizeof tensor.name);
        log_text(t, "dtype", tensor.dtype, sizeof tensor.dtype);
        if (lost(&tensor) > 0) place_tensor(l, &tensor);
    }
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
    if (amp_json_get(line, "stats")) take_stats(l, line);
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
