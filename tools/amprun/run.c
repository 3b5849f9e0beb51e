/* run.c: a model with its params and one session. */
#include "tools/amprun/amprun.h"

static amp_status open_session(Run *r, const Args *a, int64_t capacity, bool inference, bool keep_values,
                               amp_error *err) {
    amp_session_options options = {
        .struct_size = sizeof options,
        .capacity = capacity,
        .device = a->device,
        .cuda_device = a->cuda_device,
        .threads = (int32_t)a->threads,
        .inference = inference,
        .seed = a->seed,
        .isa = a->isa,
        .keep_values = keep_values,
        .precision = a->precision,
    };
    return amp_session_create(r->model, r->params, &options, &r->session, err);
}

int run_open(Run *r, const Args *a, int64_t capacity, bool inference, bool keep_values) {
    amp_error err = {0};
    amp_params_options params = {.struct_size = sizeof params, .seed = a->seed};
    if (amp_model_load(a->model, NULL, &r->model, &err)) return report(&err);
    amp_model_get_info(r->model, &r->info);
    if (amp_params_create(r->model, &params, &r->params, &err)) return report(&err);
    if (a->weights && amp_params_load(r->params, a->weights, &err)) return report(&err);
    if (open_session(r, a, capacity, inference, keep_values, &err)) return report(&err);
    return 0;
}

void run_close(Run *r) {
    amp_session_release(r->session);
    amp_params_release(r->params);
    amp_model_release(r->model);
}
