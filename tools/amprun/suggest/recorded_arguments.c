/* recorded_arguments.c: see suggesting.h: the arguments of a training from its log. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/amprun/data/data.h"
#include "tools/amprun/log/log.h"
#include "tools/amprun/suggest/suggesting.h"

enum { NUMBER_MOST = INT32_MAX };

/* ---- files ------------------------------------------------------------------------------------------------------- */

static bool is_relative(const Recorded *r, const char *path) { return *r->folder && *path && *path != '/'; }

/* Before the last |rest| bytes of |*text| goes the folder, where they are a relative path. */
static bool put_folder(const Recorded *r, char **text, size_t rest) {
    const size_t head = strlen(*text) - rest;
    char *whole = NULL;
    if (!is_relative(r, *text + head)) return true;
    if (asprintf(&whole, "%.*s%s/%s", (int)head, *text, r->folder, *text + head) < 0) return false;
    free(*text);
    *text = whole;
    return true;
}

static bool place_path(const Recorded *r, char **path) { return put_folder(r, path, strlen(*path)); }

/* "csv:visits.csv,schema=visits.schema": the file after the kind, and that of a schema. */
static bool place_data(const Recorded *r, char **spec) {
    const char *schema = strstr(*spec, ",schema=");
    if (schema && !put_folder(r, spec, strlen(schema + strlen(",schema=")))) return false;
    const char *colon = strchr(*spec, ':');
    return !colon || put_folder(r, spec, strlen(colon + 1));
}

static bool place_files(Recorded *r) {
    return place_path(r, &r->path) && place_path(r, &r->weights) && place_data(r, &r->data);
}

static int take_model(const Recorded *r, Args *a) {
    char sha256[65];
    if (!*r->path) return report_text("%s: does not say where its model is; give MODEL.so as an argument", r->log) + 1;
    if (access(r->path, R_OK))
        return report_text("%s: %s; %s was trained with it: compile it again, or give MODEL.so as an argument", r->path,
                           strerror(errno), r->log);
    if (*r->sha256 && strcmp(file_sha256(r->path, sha256), r->sha256) != 0)
        return report_text("%s: is another model than the one of %s (its SHA-256 is %.12s..., not %.12s...); compile "
                           "that one again, train this one again, or give it as an argument all the same",
                           r->path, r->log, sha256, r->sha256);
    a->model = r->path;
    return 0;
}

static int take_data(const Recorded *r, Args *a) {
    char file[AMP_FILE_PATH];
    bool is_there = false, has_files = false;
    if (!*r->data) return report_text("%s: does not say what was trained on; give --data SPEC", r->log) + 1;
    for (int i = 0; i < 8 && data_file(r->data, i, file, sizeof file); i++) {
        has_files = true;
        is_there |= !access(file, R_OK);
    }
    if (has_files && !is_there)
        return report_text("%s: cannot be read; %s was trained on it: put it back, or give --data SPEC", r->data,
                           r->log);
    a->data = r->data;
    return 0;
}

static int take_weights(const Recorded *r, Args *a) {
    if (access(r->weights, R_OK))
        return report_text("%s: %s; %s was trained from these weights: put them back, or give --weights F", r->weights,
                           strerror(errno), r->log);
    a->weights = r->weights;
    a->rules = r->rules;
    return 0;
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

/* What a damaged log says is not taken. */
static void take_numbers(const Recorded *r, Args *a) {
    if (!a->batch && r->batch > 0 && r->batch <= NUMBER_MOST) a->batch = r->batch;
    if (r->tokens > 0) a->tokens = r->tokens;
    if (r->length > 0) a->length = r->length;
    if (!a->threads && r->threads > 0 && r->threads <= NUMBER_MOST) a->threads = r->threads;
    if (!a->seed_given) a->seed = r->seed;
    if (isfinite(r->eval_split) && r->eval_split > 0 && r->eval_split <= NUMBER_MOST) a->eval_split = r->eval_split;
}

int recorded_arguments(Recorded *r, Args *a) {
    int failed = place_files(r) ? 0 : report_text("%s: no memory for the files that it names", r->log);
    if (!failed && !a->model) failed = take_model(r, a);
    if (!failed && !a->data) failed = take_data(r, a);
    if (!failed && !a->weights && *r->weights) failed = take_weights(r, a);
    if (failed) return failed;
    take_numbers(r, a);
    if (!a->device && *r->device) a->device = r->device, a->cuda.index = r->cuda_device;
    if (!a->cpu.isa && *r->isa) a->cpu.isa = r->isa;
    if (*r->eval_data) a->eval_data = r->eval_data;
    return 0;
}
