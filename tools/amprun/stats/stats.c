/* stats.c: see stats.h. */
#include "tools/amprun/stats/stats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtypes.h"
#include "base/error.h"

Stats stats_new(const Run *run, int64_t every) { return (Stats){.run = run, .every = every}; }

void stats_free(Stats *s) {
    for (int i = 0; i < s->count; i++) {
        free(s->tensor[i]->name);
        free(s->tensor[i]);
    }
    free(s->tensor);
    *s = (Stats){0};
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static amp_status no_memory(amp_error *err) { return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for statistics"); }

static NamedStats *add_tensor(Stats *s, const char *name) {
    NamedStats **tensors = with_room(s->tensor, s->count, &s->room, sizeof *tensors);
    if (!tensors) return NULL;
    s->tensor = tensors;
    NamedStats *added = calloc(1, sizeof *added);
    if (added) added->name = strdup(name);
    if (!added || !added->name) {
        free(added);
        return NULL;
    }
    s->tensor[s->count] = added;
    s->next = ++s->count;
    return added;
}

/* Steps give tensors in the same order, so the search mostly ends where it begins.  NULL: no memory. */
static NamedStats *find(Stats *s, const char *name) {
    for (int i = 0; i < s->count; i++) {
        const int at = (s->next + i) % s->count;
        if (strcmp(s->tensor[at]->name, name) != 0) continue;
        s->next = at + 1;
        return s->tensor[at];
    }
    return add_tensor(s, name);
}

static bool is_float(amp_dtype t) { return amp_class_of(t) == AMP_CLASS_FLOAT; }

/* Numbers that follow the loss scale: how large they are says nothing of the model. */
static bool is_of_scaler(const char *name) {
    return !strcmp(name, "d.loss") || !strncmp(name, "d.loss.s", 8) || !strcmp(name, "inverse_scale") ||
           !strncmp(name, "scaler.", 7);
}

/* Parameters are told of as the step leaves them. */
static bool is_of_interest(const amp_operand *o) {
    return is_float(o->dtype) && o->count && o->kind == AMP_OPERAND_VALUE && o->written && !is_of_scaler(o->name);
}

static amp_status add_operand(Stats *s, const amp_observed_kernel *kernel, int32_t index, const amp_operand *o,
                              amp_error *err) {
    NamedStats *tensor = find(s, o->name);
    if (!tensor) return no_memory(err);
    if (tensor->is_seen) return AMP_OK;
    tensor->is_seen = true;
    tensor->dtype = o->dtype;
    return kernel->count_numbers(kernel, index, &tensor->bins, err);
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
    for (int i = 0; i < s->count; i++) {
        s->tensor[i]->bins = (amp_number_bins){0};
        s->tensor[i]->stats = (TensorStats){0};
    }
}

amp_status stats_before(Stats *s, int64_t iteration, bool is_first, amp_error *err) {
    if (!s->every || iteration % s->every) return AMP_OK;
    const amp_observer observer = {.struct_size = sizeof observer, .user = s, .kernel = see_kernel, .does_not_wait = 1};
    if (is_first) begin_step(s);
    for (int i = 0; i < s->count; i++) s->tensor[i]->is_seen = false;
    s->next = 0;
    s->is_on = true;
    return amp_session_observe(s->run->session, &observer, err);
}

static amp_status add_param(Stats *s, const amp_tensor_info *info, amp_error *err) {
    NamedStats *tensor = find(s, info->name);
    if (!tensor) return no_memory(err);
    tensor->dtype = info->dtype;
    return amp_session_count_param(s->run->session, info->name, &tensor->bins, err);
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
    amp_status status = add_params(s, &err);
    if (!status) status = amp_session_observe(s->run->session, NULL, &err);
    for (int i = 0; i < s->count; i++) s->tensor[i]->stats = tensor_stats_of(s->tensor[i]->dtype, &s->tensor[i]->bins);
    return status ? report_text("--stats: %s", err.message) : 0;
}

int stats_broken(Stats *s) {
    int count = 0;
    for (int i = s->count - 1; i >= 0; i--) {
        if (!s->tensor[i]->stats.infinities && !s->tensor[i]->stats.nans) continue;
        s->broken = i;
        count++;
    }
    return count;
}

void stats_json(FILE *to, const Stats *s, const amp_step_report *report) {
    bool is_first = true;
    fprintf(to, "{\"stats\": %" PRId64 ", ", report->iteration);
    json_number(to, "scale", (double)report->scale);
    fprintf(to, ", \"tensors\": [");
    for (int i = 0; i < s->count; i++) {
        if (!s->tensor[i]->stats.count) continue;
        fprintf(to, "%s{\"name\": ", is_first ? "" : ", ");
        json_text(to, s->tensor[i]->name);
        fprintf(to, ", ");
        tensor_stats_json(to, &s->tensor[i]->stats);
        fputc('}', to);
        is_first = false;
    }
    fprintf(to, "]}");
}
