/* params_weights.c: params from and to safetensors files: all of them, under their own names or the names of
 * published weights. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/files/weight_copy.h"
#include "runtime/files/weight_report.h"
#include "runtime/params/params.h"

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* Some parameter or buffer keeps its value. */
static bool keeps_some(const amp_weight_match *m) {
    for (int32_t e = 0; e < m->entry_count; e++)
        if (m->tensor_of[e] < 0) return true;
    return false;
}

static amp_status load_match(amp_params *p, amp_weight_files *files, const amp_weight_match *m,
                             amp_weights_report *report, amp_error *err) {
    AMP_TRY(amp_weight_report(m, err));
    AMP_TRY(amp_weight_files_hold_small(files, err));
    AMP_TRY(amp_weight_check_range(m, err));
    if (keeps_some(m)) AMP_TRY(amp_params_reach_host(p, err)); /* their values of now */
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

amp_status amp_params_load(amp_params *params, const char *path, const amp_weights_options *options,
                           amp_weights_report *report, amp_error *err) {
    amp_weights_options o;
    amp_weight_files *files;
    AMP_TRY(amp_options_read(&o, sizeof o, options, "amp_weights_options", err));
    if (!params || !(path || o.bytes))
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "amp_params_load: params is NULL, or path is NULL and the options have no bytes");
    if (o.like) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_load: like is of amp_params_save");
    if (o.size && !o.bytes)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_load: size is given without bytes: set both or neither");
    AMP_TRY(amp_params_check_masters(params, "amp_params_load", err));
    const amp_allocator *a = &params->model->allocator;
    if (o.bytes) AMP_TRY(amp_weight_files_of_memory(o.bytes, o.size, path ? path : "params in memory", a, &files, err));
    else AMP_TRY(amp_weight_files_open(path, a, &files, err));
    amp_status status = load_files(params, files, &o, report, err);
    amp_weight_files_close(files);
    return status;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static amp_status save_as_named(const amp_params *p, const char *path, amp_error *err) {
    amp_state_list list;
    const amp_metadata metadata[] = {{AMP_FORMAT_KEY, AMP_FORMAT_PARAMS}, {"amp.model", p->model->desc.name}};
    AMP_TRY(amp_state_list_make(&list, p->model, AMP_FILE_OF_PARAMS, &p->model->allocator, err));
    amp_status status = amp_params_reach_host(p, err);
    if (!status) status = amp_state_list_write(&list, p->states, NULL, path, metadata, 2, err);
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

/* What only loading does would be forgotten without a word. */
static amp_status check_saving(const amp_weights_options *o, amp_error *err) {
    if (o->bytes || o->size || o->partial || o->ema)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "amp_params_save: bytes, size, partial and ema are of amp_params_load");
    const bool rules = (o->ignore && *o->ignore) || (o->rename && *o->rename) || (o->transpose && *o->transpose) ||
                       (o->fresh && *o->fresh);
    if (rules && !o->like)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "amp_params_save: rules without the weights that they map: set like");
    return AMP_OK;
}

amp_status amp_params_save(const amp_params *params, const char *path, const amp_weights_options *options,
                           amp_error *err) {
    amp_weights_options o;
    amp_weight_files *files;
    if (!params || !path) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_save: params or path is NULL");
    AMP_TRY(amp_options_read(&o, sizeof o, options, "amp_weights_options", err));
    AMP_TRY(check_saving(&o, err));
    if (amp_weight_files_is_index(path))
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "%s: a path that ends in .json is read as an index of weights; choose another name", path);
    AMP_TRY(amp_params_check_masters(params, "amp_params_save", err));
    if (!o.like) return save_as_named(params, path, err);
    AMP_TRY(amp_weight_files_open(o.like, &params->model->allocator, &files, err));
    amp_status status = save_like(params, path, files, &o, err);
    amp_weight_files_close(files);
    return status;
}
