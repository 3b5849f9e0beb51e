/* params.c: see params.h and amp/amp.h. */
#include "runtime/params/params.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/files/state_file.h"
#include "runtime/model/state.h"

static amp_status fill(amp_params *p, uint64_t seed, amp_error *err) {
    AMP_TRY(amp_params_make_residency(p, err));
    AMP_TRY(amp_states_alloc(p->model, amp_state_lives_in_params, NULL, &p->memory.allocator, &p->states, err));
    return amp_states_initialise(p->model, p->states, seed, &p->memory.allocator, err);
}

amp_status amp_params_create(amp_model *model, const amp_params_options *options, amp_params **out, amp_error *err) {
    amp_params_options o;
    if (out) *out = NULL;
    if (!model || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_create: model or out is NULL");
    AMP_TRY(amp_options_read(&o, sizeof o, options, "amp_params_options", err));
    amp_params *p = amp_alloc_zeroed(&model->allocator, sizeof *p);
    if (!p) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its params", model->desc.name);
    if (pthread_mutex_init(&p->refreshing, NULL)) {
        amp_free(&model->allocator, p, sizeof *p);
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: the system gives no lock for its params", model->desc.name);
    }
    amp_counted_allocator_init(&p->memory, &model->allocator);
    atomic_init(&p->references, 1);
    atomic_init(&p->stale, true);
    p->model = model;
    amp_model_retain(model);
    amp_status status = fill(p, o.seed, err);
    if (status) amp_params_release(p);
    else *out = p;
    return status;
}

void amp_params_retain(amp_params *params) {
    if (params) atomic_fetch_add_explicit(&params->references, 1, memory_order_relaxed);
}

void amp_params_release(amp_params *p) {
    if (!p || atomic_fetch_sub_explicit(&p->references, 1, memory_order_acq_rel) != 1) return;
    amp_model *model = p->model;
    amp_params_free_residency(p);
    amp_states_free(model, p->states, &p->memory.allocator);
    pthread_mutex_destroy(&p->refreshing);
    amp_free(&model->allocator, p, sizeof *p);
    amp_model_release(model);
}

/* ---- get and set ------------------------------------------------------------------------------------------------- */

static amp_status find(const amp_params *p, const char *name, const void *data, size_t count, int32_t *index,
                       amp_error *err) {
    if (!p || !name || !data) return amp_fail(err, AMP_INVALID_ARGUMENT, "params, name or data is NULL");
    *index = amp_model_state_index(p->model, name);
    if (*index < 0 || !amp_state_is_param(&p->model->states[*index]))
        return amp_fail(err, AMP_NOT_FOUND, "%s has no parameter %s; amp_model_param_at lists those that it has",
                        p->model->desc.name, name);
    return amp_state_check_count(&p->model->states[*index], "parameter", count, err);
}

amp_status amp_params_get(const amp_params *params, const char *name, float *data, size_t count, amp_error *err) {
    int32_t i;
    AMP_TRY(find(params, name, data, count, &i, err));
    AMP_TRY(amp_params_reach_host(params, err));
    amp_state_get_f32(&params->model->states[i], params->states[i], data);
    return AMP_OK;
}

amp_status amp_params_set(amp_params *params, const char *name, const float *data, size_t count, amp_error *err) {
    int32_t i;
    AMP_TRY(find(params, name, data, count, &i, err));
    AMP_TRY(amp_params_reach_host(params, err));
    amp_state_set_f32(&params->model->states[i], params->states[i], data);
    amp_params_changed_on_host(params);
    return AMP_OK;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

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
