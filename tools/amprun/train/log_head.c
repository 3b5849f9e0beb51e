/* log_head.c: see training.h.  Files are told as they were given, and the folder in which they were. */
#include "tools/amprun/train/training.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"

const char *file_sha256(const char *path, char out[65]) {
    amp_error err = {0};
    uint8_t digest[32];
    char *data = NULL;
    size_t size = 0;
    out[0] = 0;
    if (amp_file_read_regular(path, 0, NULL, &data, &size, &err)) return out;
    amp_sha256_of(data, size, digest);
    amp_free(NULL, data, size + 1);
    amp_sha256_hex(digest, out);
    return out;
}

/* Nothing, where there is nothing to say. */
static void put_text(FILE *to, const char *key, const char *value) {
    if (!value || !*value) return;
    fprintf(to, ", \"%s\": ", key);
    json_text(to, value);
}

static void put_rules(FILE *to, const char *key, const char *const *rules) {
    if (!rules[0]) return;
    fprintf(to, ", \"%s\": [", key);
    for (int i = 0; rules[i]; i++) {
        if (i) fprintf(to, ", ");
        json_text(to, rules[i]);
    }
    fputc(']', to);
}

/* An integer of JSON that is larger than an int64 is one that many readers do not read. */
static void put_seed(FILE *to, uint64_t seed) {
    fprintf(to, seed > INT64_MAX ? ", \"seed\": \"%" PRIu64 "\"" : ", \"seed\": %" PRIu64, seed);
}

static void put_device(FILE *to, const Args *a) {
    char device[32];
    const char *name = a->device ? a->device : "cpu";
    if (a->cuda.index) snprintf(device, sizeof device, "%s:%d", name, (int)a->cuda.index);
    put_text(to, "device", a->cuda.index ? device : name);
}

static void put_weights(FILE *to, const Args *a) {
    if (!a->weights) return;
    put_text(to, "weights", a->weights);
    put_rules(to, "ignore", a->rules.ignore);
    put_rules(to, "rename", a->rules.rename);
    put_rules(to, "transpose", a->rules.transpose);
    put_rules(to, "fresh", a->rules.fresh);
}

void log_head(FILE *to, const Training *t) {
    amp_memory_info m;
    const Args *a = t->args;
    char folder[AMP_FILE_PATH], sha256[65];
    amp_session_get_memory(t->run.session, &m);
    fprintf(to, "{\"model\": ");
    json_text(to, t->run.info.name);
    put_text(to, "policy", t->run.info.policy);
    fprintf(to, ", \"batch\": %" PRId64 ", \"peak_bytes\": %" PRIu64, t->batch, m.total);
    if (t->tokens) fprintf(to, ", \"tokens\": %" PRId64, t->tokens);
    if (a->length) fprintf(to, ", \"length\": %" PRId64, a->length);
    put_text(to, "folder", getcwd(folder, sizeof folder));
    put_text(to, "path", a->model);
    put_text(to, "sha256", file_sha256(a->model, sha256));
    put_text(to, "data", a->data);
    fprintf(to, ", \"samples\": %" PRId64, t->train.count);
    put_text(to, "eval_data", a->eval_data);
    if (a->eval_split > 0) fprintf(to, ", \"eval_split\": %.17g", a->eval_split);
    put_seed(to, t->position.seed);
    put_device(to, a);
    fprintf(to, ", \"threads\": %" PRId64, a->threads);
    put_text(to, "isa", a->cpu.isa);
    put_weights(to, a);
    put_text(to, "resume", a->resume);
    fputc('}', to);
}
