/* evidence.c: see evidence.h. */
#include "tools/amprun/suggest/evidence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* f16 ends at 65504: an eighth of it is left for steps that nobody looked at.  Of what becomes zero, a thousandth. */
#define LARGEST_SAFE 8192.0
#define FLUSHED_SAFE 0.001

void evidence_free(Evidence *e) {
    free(e->op);
    *e = (Evidence){0};
}

/* ---- collecting -------------------------------------------------------------------------------------------------- */

static void add_range(OpEvidence *e, const amp_trace_range *r) {
    const int64_t numbers = r->count - r->zeros - r->nans - r->infinities;
    const double largest = fmax(fabs(r->least), fabs(r->largest));
    e->count += r->count;
    if (r->nans || r->infinities) e->largest = INFINITY;
    if (isfinite(largest)) e->largest = fmax(e->largest, largest);
    if (numbers > 0) e->flushed = fmax(e->flushed, (double)r->flushed / (double)numbers);
}

static OpEvidence *find(Evidence *e, const char *path) {
    for (int i = 0; i < e->count; i++)
        if (!strcmp(e->op[i].path, path)) return &e->op[i];
    OpEvidence *new = &e->op[e->count++];
    *new = (OpEvidence){.count = 0};
    snprintf(new->path, sizeof new->path, "%s", path);
    return new;
}

amp_status evidence_add(Evidence *e, const Twin *twin, amp_error *err) {
    amp_trace_op op = {.struct_size = sizeof op};
    if (!e->op) e->op = calloc(EVIDENCE_MOST, sizeof *e->op);
    if (!e->op) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for what ops read");
    for (int32_t i = 0; e->count < EVIDENCE_MOST; i++) {
        const amp_status status = amp_trace_op_at(twin->trace, i, &op, err);
        if (status == AMP_NOT_FOUND) return AMP_OK;
        if (status) return status;
        OpEvidence *found = find(e, op.path);
        found->is_alone = op.result.count == 1;
        add_range(found, &op.result);
        for (int32_t j = 0; j < op.input_count; j++) add_range(found, &op.inputs[j]);
    }
    return AMP_OK;
}

/* ---- proposing --------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

static bool is_loss_or_metric(const amp_decision *d) {
    return ends_with(d->op, "_loss") || ends_with(d->op, "accuracy") || !strcmp(d->op, "bce_with_logits") ||
           !strcmp(d->op, "kl_div") || strstr(d->path, "cross_entropy") == d->path;
}

static bool may_be_lower(const amp_decision *d) {
    return d->dtype == AMP_DT_F32 && strcmp(d->rule, "lower") != 0 && !is_loss_or_metric(d);
}

static bool is_left_in_f32(const amp_model *model, const char *path) {
    amp_decision d;
    amp_error err;
    for (int32_t i = 0; !amp_model_decision_at(model, i, &d, &err); i++)
        if (!strcmp(d.path, path)) return may_be_lower(&d);
    return false;
}

static bool is_safe(const OpEvidence *e) {
    return !e->is_alone && e->count && e->largest <= LARGEST_SAFE && e->flushed <= FLUSHED_SAFE;
}

void evidence_propose(const Evidence *e, const amp_model *model, const Lines *kept, Lines *out) {
    for (int i = 0; i < e->count; i++) {
        const OpEvidence *op = &e->op[i];
        char why[LINE_TEXT];
        if (!is_safe(op) || lines_have(kept, op->path) || !is_left_in_f32(model, op->path)) continue;
        snprintf(why, sizeof why, "up to %.4g, %.3g %% would become zero in f16", op->largest, 100 * op->flushed);
        if (!lines_add(out, op->path, "low", why)) return;
    }
}
