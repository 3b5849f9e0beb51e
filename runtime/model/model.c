/* model.c: a model's tables: checking their sizes, looking things up, and what it reports about itself. */
#include "runtime/model/model.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/model_tables.h"
#include "runtime/model/state.h"

enum { TABLE_LIMIT = 1 << 24 /* elements; more is damage */ };

/* ---- tables ------------------------------------------------------------------------------------------------------ */

amp_status amp_model_check_size(uint32_t given, size_t size, const char *what, const char *where, amp_error *err) {
    if (given == size) return AMP_OK;
    return amp_fail(err, AMP_BAD_FILE,
                    "%s: %s is damaged, or of another build of ampc (%u bytes, not %zu): compile its .amp again with "
                    "this one",
                    where, what, given, size);
}

amp_status amp_model_check_table(const amp_model_table *t, size_t elem_size, const char *what, const char *where,
                                 amp_error *err) {
    if (!t->count || (t->count <= TABLE_LIMIT && t->data && t->elem_size == elem_size)) return AMP_OK;
    return amp_fail(err, AMP_BAD_FILE,
                    "%s: the table of %s is damaged, or of another build of ampc (%u elements of %u bytes): compile "
                    "its .amp again with this one",
                    where, what, t->count, t->elem_size);
}

amp_status amp_model_make_programs(amp_model *m, uint32_t count, const char *where, amp_error *err) {
    m->programs = amp_alloc_zeroed(&m->allocator, count * sizeof *m->programs);
    if (!m->programs) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its programs", where);
    m->program_count = (int32_t)count;
    return AMP_OK;
}

static bool is_divided(const amp_model *m) { return m->accumulate > 1 || m->desc.collectives.count; }

void amp_model_find_programs(amp_model *m) {
    m->accumulate = m->desc.accumulate > 1 ? m->desc.accumulate : 1;
    m->train_step = amp_model_program_of(m, is_divided(m) ? AMP_PROGRAM_MICRO_STEP : AMP_PROGRAM_TRAIN_STEP);
    if (is_divided(m)) m->apply_step = amp_model_program_of(m, AMP_PROGRAM_APPLY_STEP);
    m->eval = amp_model_program_of(m, AMP_PROGRAM_EVAL);
    m->infer = amp_model_program_of(m, AMP_PROGRAM_INFER);
    m->eval_fp32 = amp_model_program_of(m, AMP_PROGRAM_EVAL_FP32);
    m->infer_fp32 = amp_model_program_of(m, AMP_PROGRAM_INFER_FP32);
    m->figures = amp_model_program_of(m, AMP_PROGRAM_FIGURES);
    m->metrics = amp_model_program_of(m, AMP_PROGRAM_METRICS);
    m->refresh = amp_model_program_of(m, AMP_PROGRAM_REFRESH);
    if (is_divided(m)) m->statistics_step = amp_model_program_of(m, AMP_PROGRAM_STATISTICS_STEP);
}

/* ---- looking things up ------------------------------------------------------------------------------------------- */

bool amp_model_trains(const amp_model *m) { return m->train_step && (!is_divided(m) || m->apply_step); }

bool amp_model_has_fp32(const amp_model *m) { return m->infer_fp32 || (m->desc.low && !strcmp(m->desc.low, "f32")); }

const amp_program *amp_model_program_of(const amp_model *model, uint32_t kind) {
    for (int32_t i = 0; i < model->program_count; i++)
        if (model->programs[i].kind == kind) return &model->programs[i];
    return NULL;
}

bool amp_program_uses_state(const amp_program *p, int32_t state) {
    for (int32_t i = 0; p && i < p->buffer_count; i++)
        if (p->buffers[i].kind == AMP_BUFFER_STATE && p->buffers[i].index == state) return true;
    return false;
}

int32_t amp_model_state_index(const amp_model *model, const char *name) {
    for (int32_t i = 0; i < model->state_count; i++)
        if (!strcmp(model->states[i].name, name)) return i;
    return -1;
}

int32_t amp_model_counter(const amp_model *model, uint32_t counter) { return model->counters[counter]; }

int32_t amp_program_result(const amp_program *program, uint32_t kind) {
    for (int32_t i = 0; i < program->result_count; i++)
        if (program->results[i].kind == kind && program->results[i].index == AMP_MODEL_NONE) return i;
    return -1;
}

int64_t amp_model_dim_at(const amp_model_dim *dim, amp_sizes sizes) {
    int64_t product = dim->mul;
    for (int i = 0; i < dim->of_n; i++) product *= sizes.n;
    for (int i = 0; i < dim->of_t; i++) product *= sizes.t;
    return dim->of_n || dim->of_t ? product / dim->div : product;
}

int64_t amp_model_state_elements(const amp_model_state *state) {
    int64_t count = 1;
    for (uint32_t i = 0; i < state->rank; i++) count *= state->dims[i];
    return count;
}

/* ---- measures ---------------------------------------------------------------------------------------------------- */

static bool is_named_loss(const amp_model_result *r) { return r->kind == AMP_RESULT_NAMED_LOSS; }

static bool is_loss(const amp_model_result *r) {
    return is_named_loss(r) || (r->kind == AMP_RESULT_LOSS && r->index != AMP_MODEL_NONE);
}

static bool is_metric(const amp_model_result *r) { return r->kind == AMP_RESULT_METRIC; }
static bool is_mean(const amp_model_result *r) { return r->kind == AMP_RESULT_MEAN; }

/* |*index| counts down over the results that are such. */
static const amp_model_result *find(const amp_program *p, bool (*is)(const amp_model_result *), int32_t *index) {
    for (int32_t i = 0; p && i < p->result_count; i++)
        if (is(&p->results[i]) && (*index)-- == 0) return &p->results[i];
    return NULL;
}

static const amp_program *measuring(const amp_model *m) { return m->eval ? m->eval : m->train_step; }

/* A metric of averages is computed from it: metrics' inputs are in the table of all inputs. */
static bool is_averaged(const amp_model *m, const amp_model_result *r) {
    for (int32_t i = m->input_count; i < m->all_input_count; i++)
        if (!strcmp(m->inputs[i].name, r->name)) return true;
    return false;
}

/* Where the model names losses, the sums of its blocks ("loss.0") say nothing new. */
static const amp_model_result *loss_at(const amp_model *m, int32_t index) {
    int32_t first = 0;
    const amp_program *p = measuring(m);
    bool names = find(p, is_named_loss, &first) != NULL;
    for (int32_t i = 0; p && i < p->result_count; i++) {
        const amp_model_result *r = &p->results[i];
        if (is_loss(r) && (!names || is_named_loss(r) || is_averaged(m, r)) && index-- == 0) return r;
    }
    return NULL;
}

static const amp_model_result *metric_at(const amp_model *m, int32_t index) {
    const amp_model_result *r = find(measuring(m), is_metric, &index);
    return r ? r : find(m->metrics, is_metric, &index);
}

/* "acc" of "metric.acc" */
static const char *own_name(const amp_model_result *r) {
    const char *dot = r ? strchr(r->name, '.') : NULL;
    return dot ? dot + 1 : r ? r->name : NULL;
}

const char *amp_metric_name(const amp_model *m, int32_t index) { return own_name(metric_at(m, index)); }

const char *amp_loss_name(const amp_model *m, int32_t index) { return own_name(loss_at(m, index)); }

int32_t amp_metric_count(const amp_model *m) {
    int32_t count = 0;
    while (metric_at(m, count)) count++;
    return count;
}

int32_t amp_loss_count(const amp_model *m) {
    int32_t count = 0;
    while (loss_at(m, count)) count++;
    return count;
}

int32_t amp_measure_count(const amp_model *m) { return 1 + amp_loss_count(m) + amp_metric_count(m); }

int32_t amp_summed_count(const amp_model *m) {
    int32_t means = 0;
    for (int32_t i = 0; m->eval && i < m->eval->result_count; i++) means += is_mean(&m->eval->results[i]);
    return amp_measure_count(m) + means;
}

/* The name of its result. */
static const char *measure_name(const amp_model *m, int32_t measure) {
    const amp_program *p = measuring(m);
    const int32_t losses = amp_loss_count(m), loss = p ? amp_program_result(p, AMP_RESULT_LOSS) : -1;
    int32_t mean = measure - amp_measure_count(m);
    const amp_model_result *r = measure == 0        ? (loss < 0 ? NULL : &p->results[loss])
                                : measure <= losses ? loss_at(m, measure - 1)
                                : mean < 0          ? metric_at(m, measure - 1 - losses)
                                                    : find(p, is_mean, &mean);
    return r ? r->name : "";
}

int32_t amp_measure_named(const amp_model *m, const char *text) {
    int32_t count = amp_summed_count(m);
    for (int32_t i = 0; i < count; i++)
        if (!strcmp(text, measure_name(m, i))) return i;
    return -1;
}

int32_t amp_measure_result(const amp_model *m, const amp_program *p, int32_t measure) {
    const char *wanted = measure_name(m, measure);
    for (int32_t i = 0; i < p->result_count; i++)
        if (p->results[i].kind != AMP_RESULT_GRADIENT && !strcmp(p->results[i].name, wanted)) return i;
    return -1;
}

int32_t amp_measure_count_result(const amp_model *m, const amp_program *p, uint32_t kind, int32_t measure) {
    const char *of = measure_name(m, measure);
    for (int32_t i = 0; i < p->result_count; i++)
        if (p->results[i].kind == kind && !strcmp(own_name(&p->results[i]), of)) return i;
    return -1;
}

/* ---- what the library and a model report about themselves -------------------------------------------------------- */

const char *amp_version(void) { return AMP_VERSION; }

void amp_model_get_info(const amp_model *m, amp_model_info *out) {
    if (!out) return;
    *out = (amp_model_info){0};
    if (!m) return;
    *out = (amp_model_info){
        .name = m->desc.name,
        .policy = m->desc.policy,
        .precision = m->desc.precision,
        .optimizer = m->desc.optimizer,
        .scaler = m->desc.scaler,
        .source_name = m->desc.source_name,
        .compiler_version = m->desc.version,
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
        .sums = m->desc.sums ? m->desc.sums : "ieee",
        .length_most = m->desc.length_most,
        .length_unit = m->desc.length_unit,
        .least_batch = m->desc.least_batch > 1 ? m->desc.least_batch : 1,
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

amp_status amp_length_check(const amp_model *m, int64_t t, int64_t least, int64_t most, const char *call,
                            amp_error *err) {
    const int64_t unit = m->desc.length_unit;
    if (!unit && !t) return AMP_OK;
    if (!unit)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: t is %lld, but %s has no size T; set it to 0", call,
                        (long long)t, m->desc.name);
    if (t >= least && t <= most && t % unit == 0) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: t is %lld; it must be from %lld to %lld and a multiple of %lld",
                    call, (long long)t, (long long)(least ? unit : 0), (long long)most, (long long)unit);
}

static int64_t samples_at(const amp_capacity *c, int64_t t) {
    const int64_t n = c->tokens && t ? c->tokens / t : c->most.n;
    return n < c->most.n ? n : c->most.n;
}

bool amp_capacity_next(const amp_capacity *c, amp_sizes *at) {
    const int64_t unit = c->unit ? c->unit : 1;
    int64_t t = c->most.t;
    if (at->n && (!c->tokens || at->n == c->most.n)) return false;
    if (at->n || (c->tokens && t > c->tokens)) t = c->tokens / (at->n + 1) / unit * unit;
    if (at->n && !t) return false;
    *at = (amp_sizes){samples_at(c, t), t};
    return true;
}

amp_status amp_tokens_check(const amp_model *m, int64_t tokens, const char *options, amp_error *err) {
    const int64_t unit = m->desc.length_unit;
    if (!tokens || (unit && tokens >= unit)) return AMP_OK;
    if (!unit)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: tokens is %lld, but %s has no size T; set it to 0", options,
                        (long long)tokens, m->desc.name);
    return amp_fail(err, AMP_INVALID_ARGUMENT,
                    "%s: tokens is %lld; it must be 0 (any n * t) or at least %lld, the unit of T", options,
                    (long long)tokens, (long long)unit);
}

amp_status amp_program_check(const char *program, amp_error *err) {
    if (!program || !strcmp(program, "infer")) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT, "program %s: must be NULL (all of them) or infer", program);
}

static amp_status describe(const amp_model *m, const char *name, uint32_t dtype, const amp_model_dim *dims,
                           uint32_t rank, amp_sizes sizes, amp_tensor_info *out, amp_error *err) {
    const int64_t n = sizes.n;
    AMP_TRY(amp_length_check(m, sizes.t, 0, m->desc.length_most, "the sizes of a tensor", err));
    if (n < 0 || n > AMP_BATCH_LIMIT)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "n is %lld; it must be from 0 to %d", (long long)n, AMP_BATCH_LIMIT);
    *out = (amp_tensor_info){.name = name, .dtype = (amp_dtype)dtype, .rank = (int32_t)rank};
    for (uint32_t i = 0; i < rank; i++) out->dims[i] = amp_model_dim_at(&dims[i], sizes);
    return AMP_OK;
}

amp_status amp_model_input_at(const amp_model *m, int32_t index, amp_sizes sizes, amp_tensor_info *out,
                              amp_error *err) {
    AMP_TRY(check_index(m, index, m ? m->input_count : 0, "input", out, err));
    const amp_model_input *in = &m->inputs[index];
    return describe(m, in->name, in->dtype, in->dims, in->rank, sizes, out, err);
}

amp_status amp_model_get_index_range(const amp_model *m, int32_t index, int64_t *count, int64_t *ignored,
                                     amp_error *err) {
    AMP_TRY(check_index(m, index, m ? m->input_count : 0, "input", count, err));
    *count = m->inputs[index].index_bound;
    if (ignored) *ignored = *count ? m->inputs[index].index_ignore : INT64_MIN;
    return AMP_OK;
}

amp_status amp_model_result_at(const amp_model *m, int32_t index, amp_sizes sizes, amp_tensor_info *out,
                               amp_error *err) {
    AMP_TRY(check_index(m, index, m && m->infer ? m->infer->result_count : 0, "result", out, err));
    const amp_model_result *r = &m->infer->results[index];
    return describe(m, r->name, amp_readable_dtype(r->dtype), r->dims, r->rank, sizes, out, err);
}

/* The state of parameter or buffer |index|, -1: none; and how many there are. */
static int32_t find_param(const amp_model *m, int32_t index, int32_t *count) {
    int32_t at = -1;
    *count = 0;
    for (int32_t i = 0; m && i < m->state_count; i++)
        if (amp_state_is_param(&m->states[i]) && (*count)++ == index) at = i;
    return at;
}

amp_status amp_model_param_training_at(const amp_model *m, int32_t index, amp_param_training *out, amp_error *err) {
    int32_t count, at = find_param(m, index, &count);
    AMP_TRY(check_index(m, index, count, "parameter", out, err));
    const amp_model_state *s = &m->states[at];
    *out = (amp_param_training){.trained = s->train_block && !s->frozen_group,
                                .block = (int32_t)s->train_block - 1,
                                .lr_scale_group = (int32_t)s->lr_scale_group - 1,
                                .weight_decay_group = (int32_t)s->weight_decay_group - 1,
                                .frozen_group = (int32_t)s->frozen_group - 1,
                                .optimizer_group = (int32_t)s->optimizer_group - 1};
    if (!s->train_block) return AMP_OK;
    out->only = m->trains[out->block].only;
    out->optimizer = s->optimizer_group ? m->groups[out->optimizer_group].optimizer : m->trains[out->block].optimizer;
    return AMP_OK;
}

amp_status amp_model_group_at(const amp_model *m, int32_t index, amp_group_info *out, amp_error *err) {
    AMP_TRY(check_index(m, index, m ? m->group_count : 0, "group", out, err));
    const amp_model_group *g = &m->groups[index];
    *out = (amp_group_info){.pattern = g->pattern,
                            .block = (int32_t)g->train_block,
                            .sets_lr_scale = (g->sets & AMP_GROUP_LR_SCALE) != 0,
                            .sets_weight_decay = (g->sets & AMP_GROUP_WEIGHT_DECAY) != 0,
                            .frozen = (g->sets & AMP_GROUP_FROZEN) != 0,
                            .lr_scale = g->lr_scale,
                            .weight_decay = g->weight_decay,
                            .line = (int32_t)g->line,
                            .sets_optimizer = (g->sets & AMP_GROUP_OPTIMIZER) != 0};
    return AMP_OK;
}

amp_status amp_model_param_at(const amp_model *m, int32_t index, amp_tensor_info *out, amp_error *err) {
    int32_t count, at = find_param(m, index, &count);
    AMP_TRY(check_index(m, index, count, "parameter", out, err));
    const amp_model_state *s = &m->states[at];
    *out = (amp_tensor_info){.name = s->name, .dtype = (amp_dtype)s->dtype, .rank = (int32_t)s->rank};
    memcpy(out->dims, s->dims, s->rank * sizeof *s->dims);
    return AMP_OK;
}

const char *amp_model_metric_name(const amp_model *model, int32_t index) {
    return model && index >= 0 ? amp_metric_name(model, index) : NULL;
}

const char *amp_model_isa_name(const amp_model *model, int32_t index) {
    static const char *const words[AMP_ISA_COUNT] = AMP_ISA_WORDS;
    if (!model || index < 0 || index > model->largest_isa - model->lowest_isa) return NULL;
    return words[model->lowest_isa + index];
}

const char *amp_model_loss_name(const amp_model *model, int32_t index) {
    return model && index >= 0 ? amp_loss_name(model, index) : NULL;
}

amp_status amp_model_decision_at(const amp_model *m, int32_t index, amp_decision *out, amp_error *err) {
    AMP_TRY(check_index(m, index, m ? m->decision_count : 0, "decision", out, err));
    const amp_model_decision *d = &m->decisions[index];
    *out = (amp_decision){
        .path = d->path,
        .op = d->op,
        .dtype = (amp_dtype)d->out,
        .rule = d->reason->rule,
        .reason = d->reason->text,
        .policy_text = d->reason->policy_text,
        .because = d->reason->because,
        .file = d->file,
        .line = d->line,
        .column = d->column,
    };
    return AMP_OK;
}
