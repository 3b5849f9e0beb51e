/* data.c: see data.h. */
#include "tools/amprun/data/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "tools/amprun/data/csv.h"
#include "tools/amprun/data/data_column.h"

/* ---- datasets ---------------------------------------------------------------------------------------------------- */

static bool is_tokens(const char *spec) { return !strncmp(spec, "tokens:", 7); }

bool data_is_table(const char *spec) { return !strncmp(spec, "csv:", 4); }

bool data_splits_itself(const char *spec) { return is_tokens(spec) || data_is_table(spec); }

int data_read(Dataset *d, const char *spec, Part part, const DataInputs *inputs) {
    *d = (Dataset){.spec = strdup(spec), .length = inputs->length, .unit = inputs->unit};
    if (!d->spec) return report_text("--data %s: no memory", spec);
    if (!strncmp(spec, "idx:", 4)) return arrays_read_idx(d, spec + 4, part, inputs);
    if (!strncmp(spec, "safetensors:", 12)) return arrays_read_tensors(d, spec + 12, inputs);
    if (is_tokens(spec)) return tokens_read(d, spec, part, inputs);
    if (data_is_table(spec)) return csv_read(d, spec, part, inputs);
    return report_text("--data %s: write idx:DIR, safetensors:FILE, tokens:FILE or csv:FILE", spec);
}

int data_open(Dataset *d, const char *spec, Part part, const amp_model *model, amp_sizes sample, int count,
              const DataOptions *options) {
    amp_error err = {0};
    amp_model_info info;
    amp_model_get_info(model, &info);
    if (count > DATA_MAX_INPUTS)
        return report_text("%s: has %d inputs; more than %d cannot be fed from files", info.name, count,
                           DATA_MAX_INPUTS);
    DataInputs inputs = {.model = info.name,
                         .count = count,
                         .model_inputs = info.model_input_count,
                         .train_inputs = info.input_count - info.model_input_count,
                         .length = sample.t,
                         .unit = info.length_unit};
    const amp_sizes unit = {1, info.length_unit};
    if (options) inputs.options = *options;
    for (int i = 0; i < count; i++)
        if (amp_model_input_at(model, i, sample, &inputs.input[i], &err) ||
            amp_model_input_at(model, i, unit, &inputs.at_unit[i], &err) ||
            amp_model_get_index_range(model, i, &inputs.bound[i], &inputs.ignored[i], &err))
            return report(&err);
    return data_read(d, spec, part, &inputs);
}

void data_close(Dataset *d) {
    for (int i = 0; i < d->columns && !d->borrowed; i++) free(d->column[i].owned);
    if (!d->borrowed) mapped_close(&d->file);
    if (!d->borrowed) csv_close(d->csv);
    if (!d->borrowed) free(d->tokens.starts);
    if (!d->borrowed) free(d->lengths);
    if (!d->borrowed) free(d->spec);
    free(d->rows);
    memset(d, 0, sizeof *d);
}

int64_t data_held_out(const Dataset *d, double asked) {
    return asked < 1 ? (int64_t)(asked * (double)d->count + 0.5) : (int64_t)asked;
}

int data_split(Dataset *d, int64_t held, Dataset *out) {
    *out = *d;
    d->rows = malloc(sizeof *d->rows * (size_t)d->count + 1);
    out->rows = malloc(sizeof *out->rows * (size_t)held + 1);
    out->borrowed = true;
    if (!d->rows || !out->rows) return report_text("%s: no memory for the split", d->spec);
    shuffle(d->rows, d->count, 0, INT32_MAX); /* no epoch of a training is that one */
    d->count -= held;
    out->count = held;
    memcpy(out->rows, d->rows + d->count, sizeof *out->rows * (size_t)held);
    return 0;
}

const char *data_schema(const Dataset *d) { return d->csv ? d->csv->text : NULL; }

int data_find_schema(const char *spec, const char *weights, char name[AMP_FILE_PATH], char **text) {
    amp_error err = {0};
    char *file = NULL;
    size_t size = 0;
    *text = NULL;
    if (!data_is_table(spec) || snprintf(name, AMP_FILE_PATH, "%s.schema", weights) >= AMP_FILE_PATH) return 0;
    if (access(name, F_OK)) return 0;
    if (amp_file_read_regular(name, 0, NULL, &file, &size, &err)) return report(&err);
    *text = strdup(file);
    amp_free(NULL, file, size + 1);
    return *text ? 0 : report_text("%s: no memory", name);
}

bool data_file(const char *spec, int index, char *path, size_t size) {
    static const char *const folder_files[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                               "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
    if (!strncmp(spec, "safetensors:", 12)) return !index && snprintf(path, size, "%s", spec + 12) > 0;
    if (is_tokens(spec)) return !index && tokens_file(spec, path, size);
    if (data_is_table(spec)) return csv_file(spec, index, path, size);
    if (strncmp(spec, "idx:", 4) || index > 7) return false;
    snprintf(path, size, "%s/%s%s", spec + 4, folder_files[index % 4], index < 4 ? "" : ".gz");
    return true;
}

void *const *data_batch_new(const Dataset *d, int64_t n) {
    void **batch = calloc((size_t)d->columns + 1, sizeof *batch);
    for (int i = 0; batch && i < d->columns; i++) {
        batch[i] = malloc(d->column[i].sample_bytes * (size_t)n + 1);
        if (!batch[i]) {
            data_batch_free(d, batch);
            return NULL;
        }
    }
    return batch;
}

void data_batch_free(const Dataset *d, void *const *batch) {
    for (int i = 0; batch && i < d->columns; i++) free(batch[i]);
    free((void *)batch);
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

static int64_t row_of(const Dataset *d, int64_t sample) { return d->rows ? d->rows[sample] : sample; }

static bool is_windows(const Dataset *d) { return d->tokens.window && !d->tokens.starts; }

static int64_t sample_at(const Dataset *d, int64_t at) {
    return is_windows(d) ? d->tokens.first + at * d->tokens.window : at;
}

int64_t data_length(const Dataset *d, int64_t sample) {
    if (!d->lengths || !d->length) return d->length;
    return (d->lengths[row_of(d, sample)] + d->unit - 1) / d->unit * d->unit;
}

void data_order(const Dataset *d, uint64_t seed, int64_t epoch, int64_t *order) {
    if (d->lengths && d->length) {
        lengths_order(d, seed, epoch, order);
        return;
    }
    if (epoch != DATA_IN_ORDER) shuffle(order, d->count, seed, epoch);
    for (int64_t i = 0; epoch == DATA_IN_ORDER && i < d->count; i++) order[i] = sample_at(d, i);
    if (is_windows(d) && epoch != DATA_IN_ORDER) tokens_order(d, seed, epoch, order);
}

static void copy_column(const Dataset *d, const Column *c, const int64_t *index, amp_sizes sizes, char *to) {
    size_t bytes = c->sample_bytes;
    for (int64_t i = 0; i < sizes.n; i++) {
        const int64_t row = row_of(d, index[i]);
        if (c->rank) to = lengths_copy(c, row, d->lengths[row], sizes.t, d->unit, to);
        else memcpy(to + (size_t)i * bytes, c->data + (size_t)row * bytes, bytes);
    }
}

typedef struct Gathering {
    const Dataset *data;
    const int64_t *index;
    amp_sizes sizes;
    void *const *batch;
} Gathering;

static void gather(void *ctx) {
    const Gathering *g = ctx;
    const Dataset *d = g->data;
    if (d->tokens.starts) texts_gather(d, g->index, g->sizes, g->batch);
    else if (d->tokens.window) tokens_gather(d, g->index, g->sizes.n, g->batch);
    else
        for (int c = 0; c < d->columns; c++) copy_column(d, &d->column[c], g->index, g->sizes, g->batch[c]);
}

amp_status data_fill(const Dataset *d, const int64_t *index, amp_sizes sizes, void *const *batch, amp_error *err) {
    Gathering g = {d, index, sizes, batch};
    if (mapped_read(gather, &g)) return AMP_OK;
    return amp_fail(err, AMP_IO, "%s: the file has become shorter while it was read; give it again in full", d->spec);
}

int data_gather(const Dataset *d, const int64_t *index, amp_sizes sizes, void *const *batch) {
    amp_error err = {0};
    return data_fill(d, index, sizes, batch, &err) ? report(&err) : 0;
}

const char *data_place(const Dataset *d, int64_t sample, char out[64]) {
    if (d->tokens.starts) snprintf(out, 64, "the text from token %lld", (long long)d->tokens.starts[sample] + 1);
    else if (d->tokens.window) snprintf(out, 64, "the window from token %lld", (long long)sample);
    else if (d->csv) snprintf(out, 64, "line %lld", (long long)d->csv->lines[sample]);
    else snprintf(out, 64, "sample %lld", (long long)row_of(d, sample));
    return out;
}

static bool is_infinite_at(const Column *c, const char *at) {
    uint16_t half;
    float single;
    if (c->dtype == AMP_DT_F32) return memcpy(&single, at, sizeof single), !isfinite(single);
    uint16_t exponent = c->dtype == AMP_DT_F16 ? 0x7c00 : 0x7f80;
    if (!column_is_float(c->dtype)) return false;
    return memcpy(&half, at, sizeof half), (half & exponent) == exponent;
}

static bool has_infinite(const Column *c, const char *sample) {
    const size_t size = amp_dtype_size(c->dtype);
    for (size_t at = 0; at < c->sample_bytes; at += size)
        if (is_infinite_at(c, sample + at)) return true;
    return false;
}

void data_describe_infinite(const Dataset *d, void *const *batch, char *text, size_t size) {
    for (int64_t i = 0; i < d->count; i++) {
        char place[64];
        int64_t sample = sample_at(d, i);
        if (data_gather(d, &sample, (amp_sizes){1, d->length}, batch)) return;
        for (int c = 0; c < d->columns; c++) {
            if (!has_infinite(&d->column[c], batch[c])) continue;
            snprintf(text, size, "%s: %s, %s, has a NaN or an infinity", d->spec, d->column[c].name,
                     data_place(d, sample, place));
            return;
        }
    }
}

int data_report(const Dataset *d, const int64_t *index, int64_t n, const amp_error *err) {
    static const char word[] = "sample ";
    const char *at = strstr(err->message, word);
    char *end = NULL;
    long long sample = at ? strtoll(at + sizeof word - 1, &end, 10) : -1;
    if (!at || end == at + sizeof word - 1 || sample < 0 || sample >= n) return report(err);
    char place[64];
    return report_text("%s: %.*s%s%s", d->spec, (int)(at - err->message), err->message,
                       data_place(d, index[sample], place), end);
}
