/* evidence.c: see suggesting.h. */
#include "tools/amprun/suggest/suggesting.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* f16 ends at 65504: an eighth of it is left for steps that nobody looked at.  Of what becomes zero, a thousandth. */
#define LARGEST_SAFE 8192.0
#define FLUSHED_SAFE 0.001
/* Where so much is subnormal, much may be zero that should not be. */
#define TINY_LARGE 0.25

void evidence_free(Evidence *e) {
    free(e->op);
    *e = (Evidence){0};
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* ---- collecting -------------------------------------------------------------------------------------------------- */

const OpEvidence *evidence_find(const Evidence *e, const char *path) {
    for (int i = 0; i < e->count; i++)
        if (!strcmp(e->op[i].path, path)) return &e->op[i];
    return NULL;
}

/* NULL: there are as many as are kept. */
static OpEvidence *find(Evidence *e, const char *path) {
    const OpEvidence *found = evidence_find(e, path);
    if (found) return &e->op[found - e->op];
    if (e->count == EVIDENCE_MOST) return NULL;
    OpEvidence *new = &e->op[e->count++];
    *new = (OpEvidence){.count = 0};
    snprintf(new->path, sizeof new->path, "%s", path);
    return new;
}

static void add_largest(OpEvidence *e, double largest, int64_t iteration) {
    if (e->largest_at && largest <= e->largest) return;
    e->largest = largest;
    e->largest_at = iteration;
}

static void add_flushed(OpEvidence *e, double part, int64_t iteration) {
    if (e->flushed_at && part <= e->flushed) return;
    e->flushed = part;
    e->flushed_at = iteration;
}

static void add_range(OpEvidence *e, const amp_trace_range *r, int64_t iteration) {
    const int64_t numbers = r->count - r->zeros - r->nans - r->infinities;
    const double largest = fmax(fabs(r->least), fabs(r->largest));
    e->count += r->count;
    if (r->nans || r->infinities) add_largest(e, INFINITY, iteration);
    if (isfinite(largest)) add_largest(e, largest, iteration);
    if (numbers > 0) add_flushed(e, (double)r->flushed / (double)numbers, iteration);
}

static bool make_room(Evidence *e) {
    if (!e->op) e->op = calloc(EVIDENCE_MOST, sizeof *e->op);
    return e->op != NULL;
}

static amp_status no_memory(amp_error *err) { return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for what ops read"); }

/* What is too small in f16 helps in f32 only where it is read so, too. */
static void add_read(const Evidence *e, OpEvidence *of, const char *maker) {
    const OpEvidence *made = maker ? evidence_find(e, maker) : NULL;
    if (made && made->tiny) of->reads_tiny = made->tiny;
}

amp_status evidence_add(Evidence *e, const Twin *twin, int64_t iteration, amp_error *err) {
    amp_trace_op op = {.struct_size = sizeof op};
    if (!make_room(e)) return no_memory(err);
    for (int32_t i = 0;; i++) {
        const amp_status status = amp_trace_op_at(twin->trace, i, &op, err);
        if (status == AMP_NOT_FOUND) return AMP_OK;
        if (status) return status;
        OpEvidence *found = find(e, op.path);
        if (!found) continue;
        found->is_alone = op.result.count == 1;
        add_range(found, &op.result, iteration);
        for (int32_t j = 0; j < op.input_count; j++) {
            add_range(found, &op.inputs[j], iteration);
            add_read(e, found, op.inputs[j].decided);
        }
    }
}

/* ---- what is recorded -------------------------------------------------------------------------------------------- */

/* NULL: no statistics have it. */
static const RecordedTensor *add_tensor(OpEvidence *e, const Recorded *r, const char *name) {
    const RecordedTensor *t = name ? recorded_find(r, name) : NULL;
    if (!t) return NULL;
    add_largest(e, t->infinities ? INFINITY : t->largest, t->infinities ? t->infinities_at : t->largest_at);
    if (t->flushed_at) add_flushed(e, t->flushed, t->flushed_at);
    return t;
}

static void add_op(OpEvidence *e, const Recorded *r, const amp_trace_op *op) {
    const RecordedTensor *result = add_tensor(e, r, op->result.name), *read = NULL;
    for (int32_t i = 0; i < op->input_count; i++) {
        const RecordedTensor *t = add_tensor(e, r, op->inputs[i].name);
        if (t && t->infinities) read = t;
    }
    e->is_recorded = result != NULL;
    e->is_alone = op->result.count == 1;
    if (result && result->infinities && !read) e->overflow = result;
    /* What a cast makes is the fault of the op that asked for it. */
    if (read && ends_with(read->name, ".f16")) e->overflow = read;
    if (result && !strcmp(result->dtype, "f16") && result->tiny >= TINY_LARGE) e->tiny = result;
}

amp_status evidence_add_recorded(Evidence *e, const amp_trace *trace, const Recorded *r, amp_error *err) {
    amp_trace_op op = {.struct_size = sizeof op};
    if (!make_room(e)) return no_memory(err);
    for (int32_t i = 0;; i++) {
        const amp_status status = amp_trace_op_at(trace, i, &op, err);
        if (status == AMP_NOT_FOUND) return AMP_OK;
        if (status) return status;
        OpEvidence *found = find(e, op.path);
        if (found) add_op(found, r, &op);
    }
}

/* ---- proposing --------------------------------------------------------------------------------------------------- */

static bool is_loss_or_metric(const amp_decision *d) {
    return ends_with(d->op, "_loss") || ends_with(d->op, "accuracy") || !strcmp(d->op, "bce_with_logits") ||
           !strcmp(d->op, "kl_div") || strstr(d->path, "cross_entropy") == d->path;
}

static bool may_be_lower(const amp_decision *d) {
    return d->dtype == AMP_DT_F32 && strcmp(d->rule, "lower") != 0 && !is_loss_or_metric(d);
}

static bool is_safe(const OpEvidence *e) {
    return !e->is_alone && e->count && e->largest <= LARGEST_SAFE && e->flushed <= FLUSHED_SAFE;
}

static void say_range(const OpEvidence *e, bool dated, char why[LINE_TEXT]) {
    if (!dated) snprintf(why, LINE_TEXT, "up to %.4g, %.3g %% would become zero in f16", e->largest, 100 * e->flushed);
    else if (e->flushed > 0)
        snprintf(why, LINE_TEXT, "%sup to %.4g at iteration %" PRId64 ", %.3g %% would become zero in f16 at %" PRId64,
                 e->is_recorded ? "" : "not in the log: ", e->largest, e->largest_at, 100 * e->flushed, e->flushed_at);
    else
        snprintf(why, LINE_TEXT, "%sup to %.4g at iteration %" PRId64 ", none would become zero in f16",
                 e->is_recorded ? "" : "not in the log: ", e->largest, e->largest_at);
}

void evidence_propose(const Evidence *e, const amp_model *model, const Lines *kept, bool dated, Lines *out) {
    amp_decision d;
    amp_error err;
    for (int32_t i = 0; !amp_model_decision_at(model, i, &d, &err); i++) {
        const OpEvidence *op = evidence_find(e, d.path);
        char why[LINE_TEXT];
        if (!op || !is_safe(op) || !may_be_lower(&d) || lines_have(kept, d.path) || lines_have(out, d.path)) continue;
        say_range(op, dated, why);
        if (!lines_add(out, d.path, "low", why)) return;
    }
}

void evidence_say_overflow(const OpEvidence *e, char *out, size_t size) {
    const RecordedTensor *t = e->overflow;
    snprintf(out, size, "%" PRId64 " of %" PRId64 " numbers are infinite at iteration %" PRId64 " (%s in the log)",
             t->infinities, t->count, t->infinities_at, t->name);
}

bool evidence_has_tiny(const Evidence *e) {
    for (int i = 0; i < e->count; i++)
        if (e->op[i].tiny) return true;
    return false;
}

static bool is_low(const amp_decision *d) { return d->dtype == AMP_DT_F16 || !strcmp(d->rule, "lower"); }

void evidence_propose_f32(const Evidence *e, const amp_model *model, const Lines *kept, Lines *overflow, Lines *tiny) {
    amp_decision d;
    amp_error err;
    for (int32_t i = 0; !amp_model_decision_at(model, i, &d, &err); i++) {
        const OpEvidence *op = evidence_find(e, d.path);
        char why[LINE_TEXT];
        if (!op || !is_low(&d) || lines_have(kept, d.path)) continue;
        const RecordedTensor *small = op->tiny ? op->tiny : op->reads_tiny;
        if (op->overflow && !lines_have(overflow, d.path)) {
            evidence_say_overflow(op, why, sizeof why);
            (void)lines_add(overflow, d.path, "f32", why);
        } else if (small && !lines_have(tiny, d.path)) {
            snprintf(why, sizeof why, "%.3g %% of what it %s is subnormal at iteration %" PRId64 " (%s in the log)",
                     100 * small->tiny, op->tiny ? "makes" : "reads", small->tiny_at, small->name);
            (void)lines_add(tiny, d.path, "f32", why);
        }
    }
}
