/* amprun.c: what the commands of amprun share. */
#include "amp/train.h"
#include "tools/amprun/amprun.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dtypes.h"
#include "base/file.h"
#include "base/text.h"
#include "base/visible.h"
#include "base/safetensors/safetensors.h"
#include "tools/amprun/weights.h"
#include "tools/standard_streams.h"
#include "tools/outputs.h"

/* ---- what went wrong --------------------------------------------------------------------------------------------- */

/* One line on standard error. */

static char rank_prefix[24], last_text[400];

const char *report_last(void) { return last_text; }

void report_as_rank(int32_t rank) {
    static char line[4096];
    rank_prefix[0] = 0;
    if (rank < 0) return;
    setvbuf(stderr, line, _IOLBF, sizeof line); /* whole lines: other ranks write there too */
    snprintf(rank_prefix, sizeof rank_prefix, "rank %d: ", rank);
}

int report_text(const char *format, ...) {
    char text[4 * AMP_FILE_PATH];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(last_text, sizeof last_text, "%.*s", (int)sizeof last_text - 1, text);
    const bool says_rank = !strncmp(text, rank_prefix, strlen(rank_prefix));
    char line[sizeof text + sizeof rank_prefix + 16];
    snprintf(line, sizeof line, "amprun: %s%s\n", says_rank ? "" : rank_prefix, text);
    print_wrapped(stderr, line);
    return 1;
}

int report(const amp_error *err) { return report_text("%s", err->message); }

/* ---- a model with its params and one session --------------------------------------------------------------------- */

static bool warnings_are_told;

void report_warnings(bool always) { warnings_are_told = always; }

/* What the library says: of numbers always, the rest with --verbose.  Warnings name themselves. */
static void on_log(void *user, amp_log_level level, const char *text) {
    if (level != AMP_LOG_NUMBERS && !user && !(level == AMP_LOG_WARNING && warnings_are_told)) return;
    report_text("%s%s", level == AMP_LOG_WARNING ? "warning: " : "", text);
}

amp_session_options run_options(const Args *a, int64_t capacity, const char *program) {
    return (amp_session_options){
        .struct_size = sizeof(amp_session_options),
        .capacity = {capacity, a->length},
        .tokens = a->tokens,
        .device = a->device,
        .threads = (int32_t)a->threads,
        .program = program,
        .seed = a->seed,
        .precision = a->precision,
        .log = on_log,
        .log_user = a->verbose ? (void *)(uintptr_t)a : NULL,
        .comm = a->comm,
        .cpu = &a->cpu,
        .cuda = &a->cuda,
        .inspect = &a->inspect,
    };
}

amp_session_options run_options_again(const Args *a, int64_t capacity, uint64_t seed) {
    amp_session_options options = run_options(a, capacity, NULL);
    options.seed = seed;
    options.log = NULL;
    options.comm = NULL;
    return options;
}

const char *run_target(const Args *a) { return a->device && !strcmp(a->device, "cuda") ? "cuda" : "cpu"; }

int run_load(Run *r, const Args *a) {
    amp_error err = {0};
    if (amp_model_load(a->model, NULL, &r->model, &err)) return report(&err);
    amp_model_get_info(r->model, &r->info);
    r->length = a->length ? a->length : r->info.length_most;
    if (a->tokens && !r->length)
        return report_text("%s: has no `size T`, which --tokens is for; --batch says how large a batch is", a->model);
    return 0;
}

static int open_params(Run *r, const Args *a, bool trains) {
    amp_error err = {0};
    bool all_are_read = a->weights && !weights_leave_some(a);
    amp_params_options params = {.struct_size = sizeof params, .seed = a->seed, .zeros = all_are_read};
    if (run_load(r, a)) return 1;
    if (amp_params_create(r->model, &params, &r->params, &err)) return report(&err);
    return weights_load(r, a, a->ema && !trains);
}

int run_open(Run *r, const Args *a, int64_t capacity, const char *program) {
    amp_error err = {0};
    const amp_session_options options = run_options(a, capacity, program);
    if (open_params(r, a, !program)) return 1;
    return amp_session_create(r->model, r->params, &options, &r->session, &err) ? report(&err) : 0;
}

int run_open_empty(Run *r, const Args *a, int64_t capacity) {
    amp_error err = {0};
    const amp_params_options zeros = {.struct_size = sizeof zeros, .zeros = 1};
    const amp_session_options options = run_options(a, capacity, NULL);
    if (amp_params_create(r->model, &zeros, &r->params, &err)) return report(&err);
    return amp_session_create(r->model, r->params, &options, &r->session, &err) ? report(&err) : 0;
}

int run_plan(Run *r, const Args *a, int64_t capacity) {
    amp_error err = {0};
    const amp_session_options options = run_options(a, capacity, NULL);
    if (run_load(r, a)) return 1;
    return amp_session_plan(r->model, NULL, &options, &r->memory, &err) ? report(&err) : 0;
}

void run_close(Run *r) {
    amp_session_release(r->session);
    amp_params_release(r->params);
    amp_model_release(r->model);
}

void *with_room(void *items, int64_t count, int64_t *room, size_t size) {
    const int64_t more = 2 * *room + 64;
    if (count < *room) return items;
    void *grown = realloc(items, (size_t)more * size);
    if (grown) *room = more;
    return grown;
}

/* ---- numbers in JSON --------------------------------------------------------------------------------------------- */

void json_text(FILE *to, const char *text) {
    size_t left = strlen(text);
    uint32_t code;
    fputc('"', to);
    while (left) {
        size_t n = utf8_char_len(text, left);
        if (!n) fputs("\\ufffd", to);
        else if (utf8_control(text, left, &code)) fprintf(to, "\\u%04x", (unsigned)code);
        else if (*text == '"' || *text == '\\') fprintf(to, "\\%c", *text);
        else fwrite(text, 1, n, to);
        text += n ? n : 1;
        left -= n ? n : 1;
    }
    fputc('"', to);
}

void json_number(FILE *to, const char *key, double value) {
    json_text(to, key);
    if (isfinite(value)) fprintf(to, ": %.9g", value);
    else fprintf(to, ": \"%s\"", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

void json_more(void *to, const char *key, double value) {
    fputs(", ", to);
    json_number(to, key, value);
}

void each_loss(const Run *run, const char *prefix, const double *losses, MeasurePutter *put, void *to) {
    char name[512];
    for (int i = 0; i < run->info.loss_count; i++) {
        snprintf(name, sizeof name, "%sloss.%s", prefix, amp_model_loss_name(run->model, i));
        put(to, name, losses[i]);
    }
}

void each_metric(const Run *run, const char *prefix, const double *metrics, MeasurePutter *put, void *to) {
    char name[512];
    for (int i = 0; i < run->info.metric_count; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, amp_model_metric_name(run->model, i));
        put(to, name, metrics[i]);
    }
}

int json_print(amp_json_writer *w) {
    amp_error err = {0};
    amp_json_end_object(w);
    const int failed = amp_json_writer_status(w, &err) ? report(&err) : 0;
    if (!failed) standard_streams_note(printf("%s\n", w->data) < 0);
    amp_json_writer_free(w);
    return failed;
}

const char *kernel_kind_name(uint32_t kind) {
    static const char *const names[] = {
#define KERNEL(id, word, ...) #word,
#include "base/kernels.def"
#undef KERNEL
    };
    return kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}

void product_by(const amp_product_choice *c, char *text, size_t size) {
    if (c->algorithm < 0) snprintf(text, size, "own");
    else snprintf(text, size, "cublasLt %" PRId32, c->algorithm);
}

/* ---- tensors into a file ----------------------------------------------------------------------------------------- */

static size_t element_count(const amp_tensor_info *info) {
    size_t count = 1;
    for (int i = 0; i < info->rank; i++) count *= (size_t)info->dims[i];
    return count;
}

size_t tensor_bytes(const amp_tensor_info *info) {
    return element_count(info) * amp_dtype_size(amp_readable_dtype(info->dtype));
}

void *tensors_out_add(TensorsOut *out, const char *name, const amp_tensor_info *info, const char *note) {
    amp_tensor_view *view = realloc(out->view, sizeof *view * (size_t)(out->count + 1));
    if (view) out->view = view;
    amp_metadata *metadata = realloc(out->metadata, sizeof *metadata * (size_t)(out->metadata_count + 1));
    if (metadata) out->metadata = metadata;
    size_t bytes = tensor_bytes(info);
    char *copy = strdup(name);
    void *data = calloc(bytes + 1, 1);
    if (!view || !metadata || !copy || !data) {
        free(copy);
        free(data);
        report_text("no memory for %s", name);
        return NULL;
    }
    amp_tensor_view *v = &out->view[out->count++];
    *v = (amp_tensor_view){
        .name = copy, .dtype = amp_readable_dtype(info->dtype), .rank = info->rank, .data = data, .bytes = bytes};
    memcpy(v->dims, info->dims, sizeof info->dims);
    if (note) out->metadata[out->metadata_count++] = (amp_metadata){copy, note};
    return data;
}

/* Through a temporary file: the writer replaces files, and standard output may be anything. */
static int write_to_stdout(const TensorsOut *out, const amp_metadata *metadata, int32_t count) {
    amp_error err = {0};
    char path[AMP_FILE_PATH], *data = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%s/amprun-XXXXXX", temporary_folder());
    int fd = mkstemp(path);
    if (fd < 0) return report_text("%s: %s", path, strerror(errno));
    close(fd);
    bool failed = amp_safetensors_write(path, out->view, out->count, metadata, count, NULL, &err) ||
                  amp_file_read(path, 0, NULL, &data, &size, &err);
    unlink(path);
    if (failed) return report(&err);
    standard_streams_note(fwrite(data, 1, size, stdout) != size);
    amp_free(NULL, data, size + 1);
    return 0;
}

int tensors_out_write(TensorsOut *out, const char *path) {
    amp_error err = {0};
    int32_t count = out->metadata_count;
    amp_metadata *metadata = calloc((size_t)count + 1, sizeof *metadata);
    if (!metadata) return report_text("%s: no memory to write it", path);
    metadata[0] = (amp_metadata){"amp.format", "tensors 1"};
    if (count) memcpy(metadata + 1, out->metadata, sizeof *metadata * (size_t)count);
    int failed = 0;
    if (!strcmp(path, "-")) failed = write_to_stdout(out, metadata, count + 1);
    else if (amp_safetensors_write(path, out->view, out->count, metadata, count + 1, NULL, &err)) failed = report(&err);
    free(metadata);
    return failed;
}

void tensors_out_free(TensorsOut *out) {
    for (int i = 0; i < out->count; i++) {
        free((void *)out->view[i].name);
        free((void *)out->view[i].data);
    }
    free(out->view);
    free(out->metadata);
}
