/* recorded.c: see suggesting.h: reading a log. */
#include "tools/amprun/suggest/suggesting.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/amprun/log/log.h"

void recorded_close(Recorded *r) {
    char *const text[] = {r->folder,    r->path,    r->sha256, r->data, r->resume,
                          r->eval_data, r->weights, r->device, r->isa};
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) free(text[i]);
    for (int i = 0; i < r->rule_count; i++) free(r->rule[i]);
    for (int i = 0; i < r->tensor_count; i++) free(r->tensor[i].name);
    free(r->tensor);
    free(r->stats);
    free(r->step);
    *r = (Recorded){0};
}

static int no_memory(const Recorded *r) { return report_text("%s: no memory for what it says", r->log); }

/* ---- the first line ---------------------------------------------------------------------------------------------- */

static int take_rules(Recorded *r, const amp_json *line, const char *key, const char *rules[RULES_MOST + 1]) {
    const amp_json *list = amp_json_get(line, key);
    if (!list || list->kind != AMP_JSON_ARRAY) return 0;
    for (size_t i = 0; i < list->array.count && i < RULES_MOST; i++) {
        const amp_json *one = &list->array.items[i];
        char *copy = strdup(one->kind == AMP_JSON_STRING ? one->string.data : "");
        if (!copy) return no_memory(r);
        rules[i] = r->rule[r->rule_count++] = copy;
    }
    return 0;
}

static uint64_t seed_of(const amp_json *line) {
    const char *text = log_string(line, "seed");
    return *text ? strtoull(text, NULL, 10) : (uint64_t)log_whole(line, "seed");
}

/* "cuda:1" is the second one. */
static void split_device(Recorded *r) {
    char *colon = strchr(r->device, ':');
    if (!colon) return;
    r->cuda_device = (int32_t)strtol(colon + 1, NULL, 10);
    *colon = 0;
}

static int take_head(Recorded *r, const amp_json *line) {
    const struct {
        const char *key;
        char **to;
    } texts[] = {{"folder", &r->folder},   {"path", &r->path},     {"sha256", &r->sha256},
                 {"data", &r->data},       {"resume", &r->resume}, {"eval_data", &r->eval_data},
                 {"weights", &r->weights}, {"device", &r->device}, {"isa", &r->isa}};
    if (r->has_head) return 0;
    r->has_head = true;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i].to = strdup(log_string(line, texts[i].key));
        if (!*texts[i].to) return no_memory(r);
    }
    split_device(r);
    r->batch = log_whole(line, "batch");
    r->tokens = log_whole(line, "tokens");
    r->length = log_whole(line, "length");
    r->samples = log_whole(line, "samples");
    r->threads = log_whole(line, "threads");
    r->seed = seed_of(line);
    r->eval_split = log_number(line, "eval_split");
    return take_rules(r, line, "ignore", r->rules.ignore) || take_rules(r, line, "rename", r->rules.rename) ||
           take_rules(r, line, "transpose", r->rules.transpose) || take_rules(r, line, "fresh", r->rules.fresh);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static int refuse_gap(const Recorded *r, int64_t iteration) {
    if (r->count)
        return report_text("%s: iteration %" PRId64 " comes after %" PRId64 ", so that steps are missing; give the log "
                           "of a whole training",
                           r->log, iteration, r->count);
    if (r->resume && *r->resume)
        return report_text("%s: begins at iteration %" PRId64 ", as the training went on from %s: its first steps "
                           "cannot be taken again; give the log of the whole training, which --resume goes on with, or "
                           "train from the start",
                           r->log, iteration, r->resume);
    return report_text("%s: begins at iteration %" PRId64 ": its first steps cannot be taken again; give the log of a "
                       "whole training",
                       r->log, iteration);
}

static int take_step(Recorded *r, const amp_json *line) {
    const int64_t iteration = log_whole(line, "iteration");
    if (iteration != r->count + 1) return refuse_gap(r, iteration);
    RecordedStep *steps = with_room(r->step, r->count, &r->room, sizeof *steps);
    if (!steps) return no_memory(r);
    r->step = steps;
    steps[r->count++] = (RecordedStep){log_number(line, "loss"), log_number(line, "scale"), log_truth(line, "skipped")};
    return 0;
}

bool recorded_is_bad(const Recorded *r, int64_t iteration) {
    if (iteration < 1 || iteration > r->count) return false;
    const RecordedStep *step = &r->step[iteration - 1];
    return step->skipped || !isfinite(step->loss);
}

/* ---- statistics -------------------------------------------------------------------------------------------------- */

/* Lines have tensors in the same order, so the search mostly ends where it begins. */
static RecordedTensor *find(Recorded *r, const char *name) {
    for (int i = 0; i < r->tensor_count; i++) {
        const int at = (r->next + i) % r->tensor_count;
        if (strcmp(r->tensor[at].name, name) != 0) continue;
        r->next = at + 1;
        return &r->tensor[at];
    }
    return NULL;
}

const RecordedTensor *recorded_find(const Recorded *r, const char *name) {
    for (int i = 0; i < r->tensor_count; i++)
        if (!strcmp(r->tensor[i].name, name)) return &r->tensor[i];
    return NULL;
}

static RecordedTensor *add_tensor(Recorded *r, const char *name) {
    RecordedTensor *tensors = with_room(r->tensor, r->tensor_count, &r->tensor_room, sizeof *tensors);
    if (!tensors) return NULL;
    r->tensor = tensors;
    char *copy = strdup(name);
    if (!copy) return NULL;
    r->tensor[r->tensor_count] = (RecordedTensor){.name = copy};
    r->next = ++r->tensor_count;
    return &r->tensor[r->tensor_count - 1];
}

static void take_part(double part, int64_t iteration, double *most, int64_t *at) {
    if (*at && part <= *most) return;
    *most = part;
    *at = iteration;
}

static void take_counts(RecordedTensor *t, const amp_json *line, int64_t iteration) {
    const amp_json *f16 = amp_json_get(line, "f16");
    const int64_t count = log_whole(line, "count"), infinite = log_whole(line, "infinities");
    const int64_t numbers = count - log_whole(line, "zeros") - log_whole(line, "nans") - infinite;
    const double largest = log_number(line, "largest");
    const bool is_f16 = !strcmp(t->dtype, "f16");
    const int64_t infinities = is_f16 ? infinite : infinite + log_whole(f16, "overflow");
    take_part(isfinite(largest) ? largest : 0, iteration, &t->largest, &t->largest_at);
    if (numbers > 0) {
        take_part((double)log_whole(f16, "flushed") / (double)numbers, iteration, &t->flushed, &t->flushed_at);
        take_part((double)log_whole(f16, "subnormal") / (double)numbers, iteration, &t->tiny, &t->tiny_at);
    }
    if (infinities <= t->infinities) return;
    t->infinities = infinities;
    t->count = count;
    t->infinities_at = iteration;
}

static int note_stats(Recorded *r, int64_t iteration) {
    int64_t *stats = with_room(r->stats, r->stats_count, &r->stats_room, sizeof *stats);
    if (!stats) return no_memory(r);
    r->stats = stats;
    stats[r->stats_count++] = iteration;
    return 0;
}

static int take_stats(Recorded *r, const amp_json *line) {
    const amp_json *tensors = amp_json_get(line, "tensors");
    const int64_t iteration = log_whole(line, "stats");
    for (size_t i = 0; tensors && tensors->kind == AMP_JSON_ARRAY && i < tensors->array.count; i++) {
        const amp_json *one = &tensors->array.items[i];
        const char *name = log_string(one, "name");
        RecordedTensor *t = find(r, name);
        if (!t) t = add_tensor(r, name);
        if (!t) return no_memory(r);
        log_text(one, "dtype", t->dtype, sizeof t->dtype);
        take_counts(t, one, iteration);
    }
    return note_stats(r, iteration);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int take_line(void *user, const amp_json *line) {
    Recorded *r = user;
    if (amp_json_get(line, "iteration")) return take_step(r, line);
    if (amp_json_get(line, "stats")) return take_stats(r, line);
    if (amp_json_get(line, "model")) return take_head(r, line);
    return 0;
}

static int check(const Recorded *r) {
    if (!r->has_head)
        return report_text("%s: does not say which model was trained, as the first line of a log of amprun train does",
                           r->log);
    if (!r->count) return report_text("%s: has no steps; train with --log FILE --stats 100", r->log);
    return r->stats_count ? 0 : report_text("%s: has no statistics; train with --log FILE --stats 100", r->log);
}

int recorded_open(Recorded *r, const char *log) {
    LogLines lines = {0};
    *r = (Recorded){.log = log};
    int failed = log_lines_open(&lines, log);
    if (!failed) failed = log_lines_read(&lines, take_line, r);
    log_lines_close(&lines);
    return failed || check(r);
}
