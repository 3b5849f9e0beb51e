/* data.c: see data.h. */
#include "tools/amprun/data.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/random.h"
#include "base/rounding.h"
#include "runtime/files/safetensors.h"
#include "tools/amprun/idx.h"

/* ---- converting one array to what an input reads ----------------------------------------------------------------- */

static bool is_float(amp_dtype t) { return t == AMP_DT_F32 || t == AMP_DT_F16 || t == AMP_DT_BF16; }

static int64_t elements_per_sample(const amp_tensor_info *info) {
    int64_t count = 1;
    for (int i = 1; i < info->rank; i++) count *= info->dims[i];
    return count;
}

/* The dataset's next column, empty, of |samples| samples. */
static int column_new(Dataset *d, const amp_tensor_info *info, int64_t samples, const char *from) {
    Column *c = &d->column[d->columns];
    *c = (Column){.name = info->name, .dtype = info->dtype, .elements = elements_per_sample(info)};
    if (!is_float(c->dtype) && c->dtype != AMP_DT_I32 && c->dtype != AMP_DT_U8)
        return report_text("%s: the model's input %s is %s, which is not fed from files", from, info->name,
                           amp_dtype_name(c->dtype));
    c->sample_bytes = (size_t)c->elements * amp_dtype_size(c->dtype);
    d->columns++;
    d->count = samples;
    return 0;
}

/* Memory for all samples, to be filled. */
static int column_allocate(const Dataset *d, Column *c, const char *from) {
    c->data = c->owned = malloc(c->sample_bytes * (size_t)d->count + 1);
    return c->data ? 0 : report_text("%s: no memory for %lld samples of %s", from, (long long)d->count, c->name);
}

/* Stores a number as the column's dtype; false where it does not fit. */
static bool store(Column *c, int64_t at, double v) {
    switch (c->dtype) {
    case AMP_DT_F32: ((float *)c->owned)[at] = (float)v; return true;
    case AMP_DT_F16: ((uint16_t *)c->owned)[at] = amp_f32_to_f16((float)v); return true;
    case AMP_DT_BF16: ((uint16_t *)c->owned)[at] = amp_f32_to_bf16((float)v); return true;
    case AMP_DT_I32:
        if (!(v >= -2147483648.0 && v <= 2147483647.0) || v != floor(v)) return false;
        ((int32_t *)c->owned)[at] = (int32_t)v;
        return true;
    case AMP_DT_U8:
        if (!(v >= 0 && v <= 255) || v != floor(v)) return false;
        ((uint8_t *)c->owned)[at] = (uint8_t)v;
        return true;
    default: return false;
    }
}

/* ---- idx --------------------------------------------------------------------------------------------------------- */

static int check_idx(const Dataset *d, const char *path, const IdxArray *array, int64_t per_sample,
                     const amp_tensor_info *info) {
    if (per_sample != elements_per_sample(info))
        return report_text("%s: %lld numbers per sample; the model's input %s takes %lld", path, (long long)per_sample,
                           info->name, (long long)elements_per_sample(info));
    if (d->columns && array->dims[0] != d->count)
        return report_text("%s: %lld samples, but %lld in the images; the two files do not belong together", path,
                           (long long)array->dims[0], (long long)d->count);
    return 0;
}

static int idx_column(Dataset *d, const char *folder, const char *file, const amp_tensor_info *info) {
    char path[4096];
    IdxArray array;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (idx_read(path, &array)) return 1;
    int64_t per_sample = 1;
    for (int i = 1; i < array.rank; i++) per_sample *= array.dims[i];
    Column *c = &d->column[d->columns];
    int failed = check_idx(d, path, &array, per_sample, info) || column_new(d, info, array.dims[0], path) ||
                 column_allocate(d, c, path);
    float unit = is_float(info->dtype) && array.rank > 1 ? 255.0f : 1.0f; /* pixels in [0, 1] */
    for (int64_t i = 0; !failed && i < array.dims[0] * per_sample; i++) store(c, i, array.data[i] / unit);
    free(array.data);
    return failed;
}

static int read_idx(Dataset *d, const char *folder, Part part, const DataInputs *inputs) {
    static const char *const files[2][2] = {{"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
                                            {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}};
    if (inputs->model_inputs != 1 || inputs->train_inputs > 1)
        return report_text("idx:%s: feeds one model input and one train input; %s has %d and %d: use safetensors:FILE",
                           folder, inputs->model, inputs->model_inputs, inputs->train_inputs);
    for (int i = 0; i < inputs->count; i++)
        if (idx_column(d, folder, files[part][i], &inputs->input[i])) return 1;
    return 0;
}

/* ---- safetensors ------------------------------------------------------------------------------------------------- */

static double element(const amp_tensor_view *t, int64_t i) {
    const char *at = (const char *)t->data + (size_t)i * amp_dtype_size(t->dtype);
    union {
        float f;
        double d;
        uint16_t h;
        int32_t i;
        int64_t l;
        uint8_t u;
    } x;
    memcpy(&x, at, amp_dtype_size(t->dtype));
    switch (t->dtype) {
    case AMP_DT_F32: return x.f;
    case AMP_DT_F64: return x.d;
    case AMP_DT_F16: return amp_f16_to_f32(x.h);
    case AMP_DT_BF16: return amp_bf16_to_f32(x.h);
    case AMP_DT_I32: return x.i;
    case AMP_DT_I64: return (double)x.l;
    default: return x.u;
    }
}

static int tensor_column(Dataset *d, const char *path, const amp_tensor_view *t, const amp_tensor_info *info) {
    int64_t per_sample = 1;
    for (int i = 1; t && i < t->rank; i++) per_sample *= t->dims[i];
    if (!t) return report_text("%s: has no array named %s, which the model reads", path, info->name);
    if (t->dtype == AMP_DT_NONE)
        return report_text("%s: %s is %s, which is not read; store it as F32 or I32", path, t->name, t->dtype_name);
    if (t->rank < 1 || t->dims[0] < 1)
        return report_text("%s: %s holds no samples; its first dimension counts them", path, t->name);
    if (per_sample != elements_per_sample(info))
        return report_text("%s: %s has %lld numbers per sample, the model's input takes %lld", path, t->name,
                           (long long)per_sample, (long long)elements_per_sample(info));
    if (d->columns && t->dims[0] != d->count)
        return report_text("%s: %s has %lld samples, but %s has %lld", path, t->name, (long long)t->dims[0],
                           d->column[0].name, (long long)d->count);
    Column *c = &d->column[d->columns];
    if (column_new(d, info, t->dims[0], path)) return 1;
    if (t->dtype == c->dtype && d->map) {
        c->data = t->data;
        return 0;
    }
    if (column_allocate(d, c, path)) return 1;
    for (int64_t i = 0; i < d->count * per_sample; i++)
        if (!store(c, i, element(t, i)))
            return report_text("%s: %s[%lld] is %g, which does not fit %s", path, t->name, (long long)i, element(t, i),
                               amp_dtype_name(info->dtype));
    return 0;
}

/* Maps a regular file; what cannot be mapped (a pipe) is read. */
static int open_tensors(Dataset *d, const char *path, amp_safetensors **out) {
    amp_error err = {0};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
        void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map != MAP_FAILED) d->map = map, d->map_size = (size_t)st.st_size;
    }
    if (fd >= 0) close(fd);
    amp_status status = d->map ? amp_safetensors_parse(d->map, d->map_size, path, NULL, out, &err)
                               : amp_safetensors_open(path, NULL, out, &err);
    return status ? report(&err) : 0;
}

static int read_tensors(Dataset *d, const char *path, const DataInputs *inputs) {
    amp_safetensors *file = NULL;
    if (open_tensors(d, path, &file)) return 1;
    int failed = 0;
    for (int i = 0; !failed && i < inputs->count; i++)
        failed = tensor_column(d, path, amp_safetensors_find(file, inputs->input[i].name), &inputs->input[i]);
    amp_safetensors_close(file);
    return failed;
}

/* ---- datasets ---------------------------------------------------------------------------------------------------- */

int data_read(Dataset *d, const char *spec, Part part, const DataInputs *inputs) {
    memset(d, 0, sizeof *d);
    d->spec = strdup(spec);
    if (!d->spec) return report_text("--data %s: no memory", spec);
    if (!strncmp(spec, "idx:", 4)) return read_idx(d, spec + 4, part, inputs);
    if (!strncmp(spec, "safetensors:", 12)) return read_tensors(d, spec + 12, inputs);
    return report_text("--data %s: write idx:DIR or safetensors:FILE", spec);
}

int data_open(Dataset *d, const char *spec, Part part, const amp_model *model, int count) {
    amp_error err = {0};
    amp_model_info info;
    amp_model_get_info(model, &info);
    if (count > DATA_MAX_INPUTS)
        return report_text("%s: has %d inputs; more than %d cannot be fed from files", info.name, count,
                           DATA_MAX_INPUTS);
    DataInputs inputs = {.model = info.name,
                         .count = count,
                         .model_inputs = info.model_input_count,
                         .train_inputs = info.input_count - info.model_input_count};
    for (int i = 0; i < count; i++)
        if (amp_model_input_at(model, i, 1, &inputs.input[i], &err)) return report(&err);
    return data_read(d, spec, part, &inputs);
}

void data_close(Dataset *d) {
    for (int i = 0; i < d->columns && !d->borrowed; i++) free(d->column[i].owned);
    if (d->map && !d->borrowed) munmap(d->map, d->map_size);
    if (!d->borrowed) free(d->spec);
    d->spec = NULL;
    d->map = NULL;
    free(d->rows);
    d->rows = NULL;
    d->columns = 0;
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

bool data_file(const char *spec, int index, char *path, size_t size) {
    static const char *const folder_files[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                               "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
    if (!strncmp(spec, "safetensors:", 12)) return !index && snprintf(path, size, "%s", spec + 12) > 0;
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

static int64_t row_of(const Dataset *d, int64_t sample) { return d->rows ? d->rows[sample] : sample; }

/* A mapped file that somebody cuts while it is read ends in SIGBUS: here, and nowhere else, that is an error of the
 * file, and what was trained is kept. */
static sigjmp_buf cut_file;

static void on_cut_file(int number) {
    (void)number;
    siglongjmp(cut_file, 1);
}

static void gather(const Dataset *d, const int64_t *index, int64_t n, void *const *batch) {
    for (int c = 0; c < d->columns; c++) {
        size_t bytes = d->column[c].sample_bytes;
        for (int64_t i = 0; i < n; i++)
            memcpy((char *)batch[c] + (size_t)i * bytes, d->column[c].data + (size_t)row_of(d, index[i]) * bytes,
                   bytes);
    }
}

int data_gather(const Dataset *d, const int64_t *index, int64_t n, void *const *batch) {
    struct sigaction action = {.sa_handler = on_cut_file}, before;
    if (!d->map) {
        gather(d, index, n, batch);
        return 0;
    }
    sigemptyset(&action.sa_mask);
    if (sigsetjmp(cut_file, 1)) {
        signal(SIGBUS, SIG_DFL);
        return report_text("%s: the file has become shorter while it was read; give it again in full", d->spec);
    }
    sigaction(SIGBUS, &action, &before);
    gather(d, index, n, batch);
    sigaction(SIGBUS, &before, NULL);
    return 0;
}

static bool is_infinite_at(const Column *c, const char *at) {
    uint16_t half;
    float single;
    if (c->dtype == AMP_DT_F32) return memcpy(&single, at, sizeof single), !isfinite(single);
    if (c->dtype == AMP_DT_F16) return memcpy(&half, at, sizeof half), (half & 0x7c00) == 0x7c00;
    return false;
}

static bool has_infinite(const Column *c, const char *sample) {
    size_t size = c->sample_bytes / (size_t)c->elements;
    for (int64_t i = 0; i < c->elements; i++)
        if (is_infinite_at(c, sample + (size_t)i * size)) return true;
    return false;
}

void data_describe_infinite(const Dataset *d, void *const *batch, char *text, size_t size) {
    for (int64_t i = 0; i < d->count; i++) {
        if (data_gather(d, &i, 1, batch)) return;
        for (int c = 0; c < d->columns; c++) {
            if (!has_infinite(&d->column[c], batch[c])) continue;
            snprintf(text, size, "%s: %s, sample %lld, has a NaN or an infinity", d->spec, d->column[c].name,
                     (long long)row_of(d, i));
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
    return report_text("%s: %.*s%lld%s", d->spec, (int)(at - err->message) + (int)sizeof word - 1, err->message,
                       (long long)row_of(d, index[sample]), end);
}

/* ---- the order of samples ---------------------------------------------------------------------------------------- */

void shuffle(int64_t *order, int64_t count, uint64_t seed, int64_t epoch) {
    uint32_t path = amp_hash32("data.shuffle");
    for (int64_t i = 0; i < count; i++) order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        uint64_t word = amp_random_u32(seed, path, (uint32_t)epoch, 0, (uint64_t)i);
        int64_t j = (int64_t)((word * (uint64_t)(i + 1)) >>
                              32); /* Lemire 2019, without the rejection: the bias is below 2^-16 */
        int64_t swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}
