/* saving.c: see training.h. */
#include "amp/train.h"
#include "tools/amprun/train/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dtypes.h"
#include "base/file.h"
#include "base/file_reader.h"
#include "base/safetensors/safetensors.h"
#include "tools/amprun/weights.h"

static bool is_float(amp_dtype t) { return amp_class_of(t) == AMP_CLASS_FLOAT || amp_class_of(t) == AMP_CLASS_DOUBLE; }

static void count_tensor(const Run *run, const amp_tensor_info *info, int64_t *nans, int64_t *infinite) {
    amp_error err = {0};
    size_t count = tensor_bytes(info) / sizeof(float);
    float *data = is_float(info->dtype) ? malloc(count * sizeof *data + 1) : NULL;
    if (data && !amp_params_get(run->params, info->name, data, count, &err))
        for (size_t i = 0; i < count; i++) {
            *nans += isnan(data[i]) != 0;
            *infinite += isinf(data[i]) != 0;
        }
    free(data);
}

int64_t saving_damage(const Run *run, int64_t *infinite) {
    amp_error err = {0};
    amp_tensor_info info;
    int64_t nans = 0, now = 0;
    for (int i = 0; i < run->info.param_count; i++)
        if (!amp_model_param_at(run->model, i, &info, &err)) count_tensor(run, &info, &nans, &now);
    if (*infinite < 0) *infinite = now;
    return nans + (now > *infinite ? now - *infinite : 0);
}

int saving_params(const Run *run, const Args *a, const char *option, const char *path) {
    amp_error err = {0};
    return weights_save(run, a, path, &err) ? report_text("%s %s", option, err.message) : 0;
}

int saving_schema(const char *schema, const char *option, const char *path) {
    amp_error err = {0};
    struct stat st;
    char beside[AMP_FILE_PATH];
    if (!schema || stat(path, &st) || !S_ISREG(st.st_mode)) return 0; /* nothing is beside a device */
    if (snprintf(beside, sizeof beside, "%s.schema", path) >= (int)sizeof beside)
        return report_text("%s %s: the name is too long for its schema", option, path);
    return amp_file_replace(beside, schema, strlen(schema), NULL, &err) ? report_text("%s %s", option, err.message) : 0;
}

int saving_checkpoint(const Run *run, const char *path, const Position *position) {
    amp_error err = {0};
    amp_scaler_state scaler;
    char *extra = position_write(position);
    if (!extra) return 1;
    /* Setting the scaler as it is drops micro-batches, which a checkpoint cannot hold. */
    bool failed = amp_session_get_scaler(run->session, &scaler, &err);
    if (!failed && run->info.accumulate > 1) failed = amp_session_set_scaler(run->session, &scaler, &err);
    failed = failed || amp_checkpoint_save(run->session, path, extra, &err);
    free(extra);
    return failed ? report_text("--checkpoint %s", err.message) : 0;
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

/* A checkpoint goes on under other sums: the user may want to compare them, or may have taken the wrong model. */
static int tell_other_sums(const Run *r, const char *path) {
    amp_error err = {0};
    amp_safetensors *file;
    if (!amp_file_is_regular(path)) return 0; /* a pipe has been read */
    if (amp_safetensors_open_header(path, AMP_FILE_REGULAR, NULL, &file, &err)) return report(&err);
    const char *of_file = amp_safetensors_metadata(file, "amp.sums"), *sums = r->info.sums;
    if (of_file && strcmp(of_file, sums))
        report_text("%s: was trained with the sums %s, and goes on with those of the model, %s (ampc --sums)", path,
                    of_file, sums);
    amp_safetensors_close(file);
    return 0;
}

int resume_from(const Run *r, const char *path) {
    amp_error err = {0};
    report_warnings(true); /* that products are others */
    const amp_status status = amp_checkpoint_load(r->session, path, NULL, 0, &err);
    report_warnings(false);
    if (status) return report(&err);
    return tell_other_sums(r, path);
}
