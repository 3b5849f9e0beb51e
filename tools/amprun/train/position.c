/* position.c: see training.h. */
#include "tools/amprun/train/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/safetensors/safetensors.h"

char *position_write(const Position *p) {
    amp_json_writer w;
    amp_json_writer_init(&w, NULL);
    amp_json_begin_object(&w, NULL);
    amp_json_put_int(&w, "amprun", 1);
    amp_json_put_int(&w, "seed", (int64_t)p->seed);
    amp_json_put_int(&w, "batch", p->batch);
    if (p->tokens) amp_json_put_int(&w, "tokens", p->tokens);
    amp_json_put_int(&w, "samples", p->samples);
    amp_json_put_int(&w, "ranks", p->ranks);
    amp_json_put_int(&w, "evaluated", p->evaluated);
    amp_json_put_double(&w, "epoch_loss", p->epoch_loss);
    amp_json_put_int(&w, "epoch_samples", p->epoch_samples);
    amp_json_put_int(&w, "epoch_skipped", p->epoch_skipped);
    amp_json_put_string(&w, "metric", p->metric);
    amp_json_put_double(&w, "best", p->best);
    amp_json_put_int(&w, "stale", p->stale);
    scale_watch_put(&w, &p->scale);
    if (p->schema) amp_json_put_string(&w, "schema", p->schema);
    amp_json_end_object(&w);
    char *text = w.out_of_memory ? NULL : strdup(w.data);
    if (!text) report_text("no memory for a checkpoint");
    amp_json_writer_free(&w);
    return text;
}

/* What is not there, or of another type, stays. */
static void take_int(const amp_json *from, const char *key, int64_t *to) {
    const amp_json *v = amp_json_get(from, key);
    if (v && v->kind == AMP_JSON_NUMBER && v->number.is_integer) *to = v->number.integer;
}

static double double_of(const amp_json *from, const char *key) {
    const amp_json *v = amp_json_get(from, key);
    return v && v->kind == AMP_JSON_NUMBER ? v->number.value : NAN;
}

static void take(const amp_json *from, Position *p) {
    const amp_json *metric = amp_json_get(from, "metric"), *schema = amp_json_get(from, "schema");
    int64_t seed = (int64_t)p->seed;
    take_int(from, "seed", &seed);
    p->seed = (uint64_t)seed;
    take_int(from, "batch", &p->batch);
    take_int(from, "tokens", &p->tokens);
    take_int(from, "samples", &p->samples);
    take_int(from, "ranks", &p->ranks);
    take_int(from, "evaluated", &p->evaluated);
    take_int(from, "epoch_samples", &p->epoch_samples);
    take_int(from, "epoch_skipped", &p->epoch_skipped);
    take_int(from, "stale", &p->stale);
    scale_watch_take(from, &p->scale);
    p->epoch_loss = double_of(from, "epoch_loss");
    p->best = double_of(from, "best");
    if (metric && metric->kind == AMP_JSON_STRING) snprintf(p->metric, sizeof p->metric, "%s", metric->string.data);
    if (schema && schema->kind == AMP_JSON_STRING) p->schema = strdup(schema->string.data);
    if (p->batch < 1 || p->samples < 1) p->batch = p->samples = 0; /* an application's JSON, or a damaged file */
}

int position_read(const char *path, Position *p) {
    amp_error err = {0};
    amp_safetensors *file;
    amp_json_document *document = NULL;
    if (amp_safetensors_open_header(path, AMP_FILE_REGULAR, NULL, &file, &err)) return report(&err);
    const char *extra = amp_safetensors_metadata(file, "amp.extra");
    if (extra && !amp_json_parse(extra, strlen(extra), NULL, NULL, &document, NULL)) {
        if (amp_json_get(amp_json_root(document), "amprun")) take(amp_json_root(document), p);
        amp_json_free(document);
    }
    amp_safetensors_close(file);
    return 0;
}
