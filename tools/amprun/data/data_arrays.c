/* data_arrays.c: samples from files of arrays: idx and safetensors. */
#include "tools/amprun/data/data_column.h"

#include <stdlib.h>
#include <string.h>

#include "base/rounding.h"
#include "base/safetensors/safetensors.h"
#include "tools/amprun/data/idx.h"

/* ---- idx --------------------------------------------------------------------------------------------------------- */

static int check_idx(const Dataset *d, const char *path, const IdxArray *array, int64_t per_sample,
                     const amp_tensor_info *info) {
    if (per_sample != column_elements(info))
        return report_text("%s: %lld numbers per sample; the model's input %s takes %lld", path, (long long)per_sample,
                           info->name, (long long)column_elements(info));
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
    float unit = column_is_float(info->dtype) && array.rank > 1 ? 255.0f : 1.0f; /* pixels in [0, 1] */
    for (int64_t i = 0; !failed && i < array.dims[0] * per_sample; i++) column_store(c, i, array.data[i] / unit);
    free(array.data);
    return failed;
}

int arrays_read_idx(Dataset *d, const char *folder, Part part, const DataInputs *inputs) {
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
    switch (t->dtype) {
#define ELEMENT(id, file, to_number)                                                                                   \
    case AMP_DT_##id: {                                                                                                \
        file x;                                                                                                        \
        memcpy(&x, at, sizeof x);                                                                                      \
        return (double)to_number(x);                                                                                   \
    }
#define DTYPE(id, name, class, kind, stored, file, memory) ELEMENT(id, file, )
#define CODED_DTYPE(id, name, class, kind, stored, file, memory) ELEMENT(id, file, amp_##name##_to_f32)
#include "base/dtypes.def"
    default: return 0;
    }
}

/* What remedies numbers of another length. */
static int refuse_size(const char *path, const amp_tensor_view *t, const DataInputs *inputs, int input,
                       int64_t per_sample) {
    const bool has_length = lengths_concern(inputs, input);
    return report_text("%s: %s has %lld numbers per sample, the model's input takes %lld%s", path, t->name,
                       (long long)per_sample, (long long)column_elements(&inputs->input[input]),
                       has_length ? ": say what T is with --length, or what each sample's is in an array `lengths`"
                                  : "");
}

static int tensor_column(Dataset *d, const char *path, const amp_tensor_view *t, const DataInputs *inputs, int input) {
    const amp_tensor_info *info = &inputs->input[input];
    const bool padded = d->lengths && lengths_concern(inputs, input);
    int64_t per_sample = 1;
    for (int i = 1; t && i < t->rank; i++) per_sample *= t->dims[i];
    if (!t) return report_text("%s: has no array named %s, which the model reads", path, info->name);
    if (t->dtype == AMP_DT_NONE)
        return report_text("%s: %s is %s, which is not read; store it as F32 or I32", path, t->name, t->dtype_name);
    if (t->rank < 1 || t->dims[0] < 1)
        return report_text("%s: %s holds no samples; its first dimension counts them", path, t->name);
    if (!padded && per_sample != column_elements(info)) return refuse_size(path, t, inputs, input, per_sample);
    if (d->lengths && t->dims[0] != d->count)
        return report_text("%s: %s has %lld samples, but lengths %lld", path, t->name, (long long)t->dims[0],
                           (long long)d->count);
    if (d->columns && t->dims[0] != d->count)
        return report_text("%s: %s has %lld samples, but %s has %lld", path, t->name, (long long)t->dims[0],
                           d->column[0].name, (long long)d->count);
    Column *c = &d->column[d->columns];
    if (column_new(d, info, t->dims[0], path)) return 1;
    if (padded && lengths_take_column(d, c, inputs, input, t->dims, t->rank, path)) return 1;
    if (t->dtype == c->dtype) {
        c->data = t->data;
        return 0;
    }
    if (column_allocate(d, c, path)) return 1;
    for (int64_t i = 0; i < d->count * per_sample; i++)
        if (!column_store(c, i, element(t, i)))
            return report_text("%s: %s[%lld] is %g, which does not fit %s", path, t->name, (long long)i, element(t, i),
                               amp_dtype_name(info->dtype));
    return 0;
}

/* An array that says so of each sample. */
static int take_lengths(Dataset *d, const char *path, const amp_tensor_view *t) {
    if (!t) return 0;
    if (t->rank != 1 || t->dims[0] < 1 || (t->dtype != AMP_DT_I32 && t->dtype != AMP_DT_I64))
        return report_text("%s: lengths is to have one I32 or I64 for each sample", path);
    d->count = t->dims[0];
    d->lengths = malloc(sizeof *d->lengths * (size_t)d->count);
    if (!d->lengths) return report_text("%s: no memory for the lengths of its samples", path);
    for (int64_t i = 0; i < d->count; i++) {
        const double length = element(t, i);
        if (length < 1 || length > (double)d->length)
            return report_text("%s: lengths[%lld] is %g; T is from 1 to %lld (--length, and `size T` of the model): "
                               "leave the sample out, or cut it",
                               path, (long long)i, length, (long long)d->length);
        d->lengths[i] = (int64_t)length;
    }
    return 0;
}

static int open_tensors(Dataset *d, const char *path, amp_safetensors **out) {
    amp_error err = {0};
    if (mapped_open(&d->file, path, &err)) return report(&err);
    return amp_safetensors_parse(d->file.data, d->file.size, path, NULL, out, &err) ? report(&err) : 0;
}

int arrays_read_tensors(Dataset *d, const char *path, const DataInputs *inputs) {
    amp_safetensors *file = NULL;
    if (open_tensors(d, path, &file)) return 1;
    int failed = inputs->length ? take_lengths(d, path, amp_safetensors_find(file, "lengths")) : 0;
    for (int i = 0; !failed && i < inputs->count; i++)
        failed = tensor_column(d, path, amp_safetensors_find(file, inputs->input[i].name), inputs, i);
    amp_safetensors_close(file);
    return failed;
}
