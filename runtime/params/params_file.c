/* params_file.c: amp_params_load and amp_params_save. */
#include "base/error.h"
#include "runtime/params/params.h"
#include "runtime/files/state_file.h"

static amp_status load(amp_params *p, const amp_state_list *list, const char *path, amp_error *err) {
    amp_safetensors *file;
    AMP_TRY(amp_safetensors_open(path, &p->model->allocator, &file, err));
    amp_status status = amp_state_list_check(list, file, path, err);
    if (!status) {
        amp_state_list_read(list, file, p->states);
        amp_params_changed_on_host(p);
    }
    amp_safetensors_close(file);
    return status;
}

amp_status amp_params_load(amp_params *params, const char *path, amp_error *err) {
    amp_state_list list;
    if (!params || !path) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_load: params or path is NULL");
    AMP_TRY(amp_state_list_make(&list, params->model, AMP_FILE_OF_PARAMS, &params->model->allocator, err));
    amp_status status = load(params, &list, path, err);
    amp_state_list_free(&list);
    return status;
}

amp_status amp_params_save(const amp_params *params, const char *path, amp_error *err) {
    amp_state_list list;
    if (!params || !path) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_save: params or path is NULL");
    const amp_metadata metadata[] = {{AMP_FORMAT_KEY, AMP_FORMAT_PARAMS}, {"amp.model", params->model->desc.name}};
    AMP_TRY(amp_state_list_make(&list, params->model, AMP_FILE_OF_PARAMS, &params->model->allocator, err));
    amp_status status = amp_params_reach_host(params, err);
    if (!status) status = amp_state_list_write(&list, params->states, path, metadata, 2, err);
    amp_state_list_free(&list);
    return status;
}
