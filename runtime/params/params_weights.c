/* params_weights.c: params from and to safetensors files: all of them, under their own names or the names of
 * published weights. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/files/weight_copy.h"
#include "runtime/files/weight_report.h"
#include "runtime/params/params.h"

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static bool has_fresh(const amp_weight_match *m) {
    for (int32_t e = 0; e < m->entry_count; e++)
        if (m->fresh[e]) return true;
    return false;
}

static amp_status load_match(amp_params *p, amp_weight_files *files, const amp_weight_match *m,
                             amp_weights_report *report, amp_error *err) {
    AMP_TRY(amp_weight_report(m, err));
    AMP_TRY(amp_weight_files_hold_small(files, err));
    AMP_TRY(amp_weight_check_range(m, err));
    if (has_fresh(m)) AMP_TRY(amp_params_reach_host(p, err)); /* their values of now */
    amp_status status = amp_weight_load(m, p->states, report, err);
    if (status != AMP_OUT_OF_MEMORY) amp_params_changed_on_host(p);
    return status;
}

static amp_status load_files(amp_params *p, amp_weight_files *files, const amp_weights_options *options,
                             amp_weights_report *report, amp_error *err) {
    amp_state_list list;
    amp_weight_match match;
    amp_weights_report made;
    AMP_TRY(amp_state_list_make(&list, p->model, AMP_FILE_OF_PARAMS, &p->model->allocator, err));
    amp_status status = amp_weight_match_make(&match, &list, files, options, err);
    if (!status) {
        status = load_match(p, files, &match, &made, err);
        amp_weight_match_free(&match);
    }
    if (!status && report) *report = made;
    amp_state_list_free(&list);
    return status;
}

static amp_status load_path(amp_params *p, const char *path, const amp_weights_options *options,
                            amp_weights_report *report, const char *call, amp_error *err) {
    amp_weight_files *files;
    AMP_TRY(amp_params_check_masters(p, call, err));
    AMP_TRY(amp_weight_files_open(path, &p->model->allocator, &files, err));
    amp_status status = load_files(p, files, options, report, err);
    amp_weight_files_close(files);
    return status;
}

static const amp_weights_options as_they_are = {.struct_size = sizeof as_they_are};

amp_status amp_params_load(amp_params *params, const char *path, amp_error *err) {
    if (!params || !path) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_load: params or path is NULL");
    return load_path(params, path, &as_they_are, NULL, "amp_params_load", err);
}

amp_status amp_params_load_weights(amp_params *params, const char *path, const amp_weights_options *options,
                                   amp_weights_report *report, amp_error *err) {
    amp_weights_options o;
    if (!params || !path) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_load_weights: params or path is NULL");
    AMP_TRY(amp_options_read(&o, sizeof o, options, "amp_weights_options", err));
    return load_path(params, path, &o, report, "amp_params_load_weights", err);
}

amp_status amp_params_load_memory(amp_params *params, const void *bytes, size_t size, const char *name,
                                  amp_error *err) {
    amp_weight_files *files;
    if (!params || !bytes)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_load_memory: params or bytes is NULL");
    AMP_TRY(amp_params_check_masters(params, "amp_params_load_memory", err));
    if (!name) name = "params in memory";
    AMP_TRY(amp_weight_files_of_memory(bytes, size, name, &params->model->allocator, &files, err));
    amp_status status = load_files(params, files, &as_they_are, NULL, err);
    amp_weight_files_close(files);
    return status;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

amp_status amp_params_save(const amp_params *params, const char *path, amp_error *err) {
    amp_state_list list;
    if (!params || !path) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_save: params or path is NULL");
    AMP_TRY(amp_params_check_masters(params, "amp_params_save", err));
    const amp_metadata metadata[] = {{AMP_FORMAT_KEY, AMP_FORMAT_PARAMS}, {"amp.model", params->model->desc.name}};
    AMP_TRY(amp_state_list_make(&list, params->model, AMP_FILE_OF_PARAMS, &params->model->allocator, err));
    amp_status status = amp_params_reach_host(params, err);
    if (!status) status = amp_state_list_write(&list, params->states, NULL, path, metadata, 2, err);
    amp_state_list_free(&list);
    return status;
}

/* "format", which says to Python's tools whose tensors these are ("pt"), is taken from the files. */
static amp_status save_match(const amp_params *p, const amp_weight_match *m, const char *path, amp_error *err) {
    const char *format = amp_weight_files_metadata(m->files, "format");
    const amp_metadata metadata[] = {
        {AMP_FORMAT_KEY, AMP_FORMAT_PARAMS}, {"amp.model", p->model->desc.name}, {"format", format}};
    AMP_TRY(amp_weight_report(m, err));
    AMP_TRY(amp_params_reach_host(p, err));
    return amp_weight_save(m, p->states, path, metadata, format ? 3 : 2, err);
}

static amp_status save_like(const amp_params *p, const char *path, const amp_weight_files *files,
                            const amp_weights_options *options, amp_error *err) {
    amp_state_list list;
    amp_weight_match match;
    AMP_TRY(amp_state_list_make(&list, p->model, AMP_FILE_OF_PARAMS, &p->model->allocator, err));
    amp_status status = amp_weight_match_make(&match, &list, files, options, err);
    if (!status) {
        status = save_match(p, &match, path, err);
        amp_weight_match_free(&match);
    }
    amp_state_list_free(&list);
    return status;
}

amp_status amp_params_save_weights(const amp_params *params, const char *path, const char *like,
                                   const amp_weights_options *options, amp_error *err) {
    amp_weights_options o;
    amp_weight_files *files;
    if (!params || !path || !like)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_save_weights: params, path or like is NULL");
    AMP_TRY(amp_options_read(&o, sizeof o, options, "amp_weights_options", err));
    AMP_TRY(amp_params_check_masters(params, "amp_params_save_weights", err));
    AMP_TRY(amp_weight_files_open(like, &params->model->allocator, &files, err));
    amp_status status = save_like(params, path, files, &o, err);
    amp_weight_files_close(files);
    return status;
}
