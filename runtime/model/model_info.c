/* model_info.c: what the library and a model report about themselves. */
#include <string.h>

#include "base/error.h"
#include "runtime/model/state.h"

const char *amp_version(void) { return AMP_VERSION; }

void amp_model_get_info(const amp_model *m, amp_model_info *out) {
    *out = (amp_model_info){0};
    if (!m) return;
    *out = (amp_model_info){
        .name = m->desc.name,
        .policy = m->desc.policy,
        .precision = m->desc.precision,
        .optimizer = m->desc.optimizer,
        .scaler = m->desc.scaler,
        .source_name = m->desc.source_name,
        .compiler_version = m->desc.compiler_version,
        .can_train = amp_model_trains(m),
        .input_count = m->input_count,
        .model_input_count = m->model_input_count,
        .result_count = m->infer ? m->infer->result_count : 0,
        .metric_count = amp_metric_count(m),
        .decision_count = m->decision_count,
        .accumulate = m->accumulate,
        .loss_count = amp_loss_count(m),
        .has_fp32 = amp_model_has_fp32(m),
        .has_cuda = m->cuda != NULL,
        .cuda_kernels = m->cuda ? m->cuda->function_count : 0,
        .cuda_missing = m->cuda                ? NULL
                        : m->desc.cuda_missing ? m->desc.cuda_missing
                                               : "it was compiled without",
    };
    for (int32_t i = 0; i < m->state_count; i++) {
        const amp_model_state *s = &m->states[i];
        out->param_count += amp_state_is_param(s);
        if (s->role == AMP_STATE_PARAM) out->param_elements += amp_model_state_elements(s);
    }
}

static amp_status check_index(const amp_model *m, int32_t index, int32_t count, const char *what, const void *out,
                              amp_error *err) {
    if (!m || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "model or out is NULL");
    if (index >= 0 && index < count) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT, "%s has no %s %d; there are %d", m->desc.name, what, index, count);
}

static amp_status describe(const char *name, uint32_t dtype, const amp_model_dim *dims, uint32_t rank, int64_t n,
                           amp_tensor_info *out, amp_error *err) {
    if (n < 0 || n > AMP_BATCH_LIMIT)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "n is %lld; it must be from 0 to %d", (long long)n, AMP_BATCH_LIMIT);
    *out = (amp_tensor_info){.name = name, .dtype = (amp_dtype)dtype, .rank = (int32_t)rank};
    for (uint32_t i = 0; i < rank; i++) out->dims[i] = amp_model_dim_at(&dims[i], n);
    return AMP_OK;
}

amp_status amp_model_input_at(const amp_model *m, int32_t index, int64_t n, amp_tensor_info *out, amp_error *err) {
    AMP_TRY(check_index(m, index, m ? m->input_count : 0, "input", out, err));
    const amp_model_input *in = &m->inputs[index];
    return describe(in->name, in->dtype, in->dims, in->rank, n, out, err);
}

amp_status amp_model_result_at(const amp_model *m, int32_t index, int64_t n, amp_tensor_info *out, amp_error *err) {
    AMP_TRY(check_index(m, index, m && m->infer ? m->infer->result_count : 0, "result", out, err));
    const amp_model_result *r = &m->infer->results[index];
    return describe(r->name, amp_readable_dtype(r->dtype), r->dims, r->rank, n, out, err);
}

amp_status amp_model_param_at(const amp_model *m, int32_t index, amp_tensor_info *out, amp_error *err) {
    int32_t at = -1, count = 0;
    for (int32_t i = 0; m && i < m->state_count; i++)
        if (amp_state_is_param(&m->states[i]) && count++ == index) at = i;
    AMP_TRY(check_index(m, index, count, "parameter", out, err));
    const amp_model_state *s = &m->states[at];
    *out = (amp_tensor_info){.name = s->name, .dtype = (amp_dtype)s->dtype, .rank = (int32_t)s->rank};
    memcpy(out->dims, s->dims, s->rank * sizeof *s->dims);
    return AMP_OK;
}

const char *amp_model_metric_at(const amp_model *model, int32_t index) {
    return model && index >= 0 ? amp_metric_name(model, index) : NULL;
}

const char *amp_model_loss_at(const amp_model *model, int32_t index) {
    return model && index >= 0 ? amp_loss_name(model, index) : NULL;
}

amp_status amp_model_decision_at(const amp_model *m, int32_t index, amp_decision *out, amp_error *err) {
    AMP_TRY(check_index(m, index, m ? m->decision_count : 0, "decision", out, err));
    const amp_model_decision *d = &m->decisions[index];
    *out = (amp_decision){
        .path = d->path,
        .op = d->op,
        .dtype = (amp_dtype)d->out,
        .rule = d->rule,
        .reason = d->reason,
        .policy_text = d->policy_text,
        .because = d->because,
        .file = d->file,
        .line = d->line,
        .column = d->column,
    };
    return AMP_OK;
}
