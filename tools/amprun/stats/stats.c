/* stats.c: see stats.h. */
#include "tools/amprun/stats/stats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

Stats stats_new(const Run *run, int64_t every) { return (Stats){.run = run, .every = every}; }

void stats_free(Stats *s) {
    for (int i = 0; i < s->count; i++) free(s->tensor[i].name);
    free(s->tensor);
    free(s->scratch);
    *s = (Stats){0};
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static amp_status no_memory(amp_error *err) { return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for statistics"); }

/* Steps give tensors in the same order, so the search mostly ends where it begins.  NULL: no memory. */
static NamedStats *find(Stats *s, const char *name) {
    for (int i = 0; i < s->count; i++) {
        NamedStats *at = &s->tensor[(s->next + i) % s->count];
        if (strcmp(at->name, name) != 0) continue;
        s->next = (int)(at - s->tensor) + 1;
        return at;
    }
    if (s->count == s->room) {
        NamedStats *more = realloc(s->tensor, sizeof *more * (size_t)(2 * s->room + 16));
        if (!more) return NULL;
        s->tensor = more;
        s->room = 2 * s->room + 16;
    }
    char *copy = strdup(name);
    if (!copy) return NULL;
    s->tensor[s->count] = (NamedStats){.name = copy};
    s->next = ++s->count;
    return &s->tensor[s->count - 1];
}

static bool make_room(Stats *s, size_t count) {
    if (count <= s->scratch_count) return true;
    float *more = realloc(s->scratch, count * sizeof *more);
    if (!more) return false;
    s->scratch = more;
    s->scratch_count = count;
    return true;
}

static bool is_float(amp_dtype t) { return t >= AMP_DT_F32 && t <= AMP_DT_TF32; }

/* Parameters are told of as the step leaves them. */
static bool is_of_interest(const amp_operand *o) {
    return is_float(o->dtype) && o->count && o->kind == AMP_OPERAND_VALUE && o->written;
}

static amp_status add_operand(Stats *s, const amp_observed_kernel *kernel, int32_t index, const amp_operand *o,
                              amp_error *err) {
    NamedStats *tensor = find(s, o->name);
    if (!tensor || !make_room(s, (size_t)o->count)) return no_memory(err);
    if (tensor->is_seen) return AMP_OK;
    tensor->is_seen = true;
    tensor->stats.dtype = o->dtype;
    AMP_TRY(kernel->read(kernel, index, s->scratch, (size_t)o->count * sizeof *s->scratch, err));
    tensor_stats_add(&tensor->stats, s->scratch, o->count);
    return AMP_OK;
}

static amp_status see_kernel(void *user, const amp_observed_kernel *kernel, amp_error *err) {
    Stats *s = user;
    amp_operand o;
    for (int32_t i = 0; kernel->operand(kernel, i, &o); i++)
        if (is_of_interest(&o)) AMP_TRY(add_operand(s, kernel, i, &o, err));
    return AMP_OK;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void begin_step(Stats *s) {
    for (int i = 0; i < s->count; i++) s->tensor[i].stats = (TensorStats){0};
}

amp_status stats_before(Stats *s, int64_t iteration, bool is_first, amp_error *err) {
    if (!s->every || iteration % s->every) return AMP_OK;
    const amp_observer observer = {.struct_size = sizeof observer, .user = s, .kernel = see_kernel};
    if (is_first) begin_step(s);
    for (int i = 0; i < s->count; i++) s->tensor[i].is_seen = false;
    s->next = 0;
    s->is_on = true;
    return amp_session_observe(s->run->session, &observer, err);
}

static amp_status add_param(Stats *s, const amp_tensor_info *info, amp_error *err) {
    size_t count = 1;
    for (int i = 0; i < info->rank; i++) count *= (size_t)info->dims[i];
    NamedStats *tensor = find(s, info->name);
    if (!tensor || !make_room(s, count)) return no_memory(err);
    tensor->stats.dtype = info->dtype;
    AMP_TRY(amp_params_get(s->run->params, info->name, s->scratch, count, err));
    tensor_stats_add(&tensor->stats, s->scratch, (int64_t)count);
    return AMP_OK;
}

static amp_status add_params(Stats *s, amp_error *err) {
    for (int32_t i = 0; i < s->run->info.param_count; i++) {
        amp_tensor_info info;
        AMP_TRY(amp_model_param_at(s->run->model, i, &info, err));
        if (is_float(info.dtype)) AMP_TRY(add_param(s, &info, err));
    }
    return AMP_OK;
}

int stats_after(Stats *s, bool *is_told) {
    amp_error err = {0};
    *is_told = s->is_on;
    if (!s->is_on) return 0;
    s->is_on = false;
    amp_status status = amp_session_observe(s->run->session, NULL, &err);
    if (!status) status = add_params(s, &err);
    return status ? report_text("--stats: %s", err.message) : 0;
}

void stats_json(FILE *to, const Stats *s, const amp_step_report *report) {
    bool is_first = true;
    fprintf(to, "{\"stats\": %" PRId64 ", ", report->iteration);
    json_number(to, "scale", (double)report->scale);
    fprintf(to, ", \"tensors\": [");
    for (int i = 0; i < s->count; i++) {
        if (!s->tensor[i].stats.count) continue;
        fprintf(to, "%s{\"name\": ", is_first ? "" : ", ");
        json_text(to, s->tensor[i].name);
        fprintf(to, ", ");
        tensor_stats_json(to, &s->tensor[i].stats);
        fputc('}', to);
        is_first = false;
    }
    fprintf(to, "]}");
}
