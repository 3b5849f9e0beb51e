/* verdict.c: see tracer.h. */
#include "tools/amprun/trace/tracer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/standard_streams.h"

/* ---- for people -------------------------------------------------------------------------------------------------- */

static void print_row(FILE *to, const char *head) { fprintf(to, "  %-10s ", head); }

static const char *largest_of(amp_dtype t) {
    return t == AMP_DT_F16 ? "f16 holds 65504 at most" : "f32, bf16 and tf32 hold 3.4e38 at most";
}

static void print_range(FILE *to, const amp_trace_range *r) {
    if (isnan(r->least)) fprintf(to, "no finite number");
    else fprintf(to, "%.4g to %.4g", r->least, r->largest);
    if (r->nans) fprintf(to, ", %" PRId64 " NaN", r->nans);
    if (r->infinities) fprintf(to, ", %" PRId64 " infinite", r->infinities);
    if (r->zeros) fprintf(to, ", %" PRId64 " zero", r->zeros);
}

static void print_place(FILE *to, const amp_trace_finding *f) {
    fprintf(to, "%s", f->path);
    if (*f->op && strcmp(f->op, f->path) != 0) fprintf(to, " (%s)", f->op);
    if (f->file) fprintf(to, "  %s:%d", f->file, f->line);
    fputc('\n', to);
}

static void print_count(FILE *to, const amp_trace_range *r) {
    fprintf(to, "%" PRId64 " of %" PRId64 " numbers are not finite", r->nans + r->infinities, r->count);
}

static void print_overflow(FILE *to, const amp_trace_finding *f) {
    print_count(to, &f->result);
    fprintf(to, ": %s", largest_of(f->result.dtype));
    if (!f->exact.name) return;
    fprintf(to, ", and before it is rounded the result is ");
    print_range(to, &f->exact);
}

static void print_what(FILE *to, const Verdict *v) {
    const amp_trace_finding *f = &v->finding;
    switch (f->fault) {
    case AMP_TRACE_DATA:
        print_count(to, &f->result);
        fprintf(to, " in this input");
        if (v->place[0]) fprintf(to, ", the first in %s of the data", v->place);
        else if (v->sample >= 0)
            fprintf(to, ", the first in sample %" PRId64 " of the batch, counted from 0", v->sample);
        break;
    case AMP_TRACE_STATE:
        print_count(to, &f->result);
        fprintf(to, " before the step begins");
        break;
    case AMP_TRACE_OVERFLOW: print_overflow(to, f); break;
    default: print_count(to, &f->result); fprintf(to, ": the op has no finite result for what it reads");
    }
    fputc('\n', to);
}

static void print_inputs(FILE *to, const amp_trace_finding *f) {
    for (int32_t i = 0; i < f->input_count; i++) {
        print_row(to, i ? "" : "reads");
        fprintf(to, "%-24s %-5s ", f->inputs[i].name, amp_dtype_name(f->inputs[i].dtype));
        print_range(to, &f->inputs[i]);
        fputc('\n', to);
    }
}

static void print_decision(FILE *to, const amp_trace_finding *f) {
    if (!f->reason) return;
    print_row(to, "dtype");
    fprintf(to, "%s", amp_dtype_name(f->result.dtype));
    if (strcmp(f->decided, f->path) != 0) fprintf(to, ", as %s", f->decided);
    fprintf(to, " %s", f->reason);
    if (f->policy_text) fprintf(to, "   %s", f->policy_text);
    fputc('\n', to);
}

static void print_fp32(FILE *to, const Verdict *v) {
    if (v->fp32 == ANSWER_UNKNOWN) return;
    print_row(to, "in fp32");
    if (v->fp32 == ANSWER_YES) fprintf(to, "the step is finite, its loss %.6g\n", v->fp32_loss);
    else fprintf(to, "the step is not finite either\n");
}

static void print_lines(FILE *to, const Verdict *v) {
    for (int i = 0; i < v->line_count; i++) {
        print_row(to, i ? "" : "mend");
        fprintf(to, "\"%s\": f32%s\n", v->line[i],
                i ? "" : "   in the precision block: tried on this step, it is finite then");
    }
}

typedef struct Remedy {
    const char *op, *text;
} Remedy;

#define SUBTRACT "subtract the largest number first, as softmax(..; dim = 1), log_softmax and logsumexp do"
#define BOUND "keep what it reads away from there: a clamp, maximum(x, 1e-6), or an epsilon"
#define DIVIDE "divide what it reads by its size first, by a norm or a constant"
#define AVERAGE "inputs or weights of a smaller range, or a mean in place of the sum"

static const Remedy remedies[] = {
    {"exp", SUBTRACT}, {"expm1", SUBTRACT}, {"sinh", SUBTRACT},  {"cosh", SUBTRACT},  {"log", BOUND},
    {"log1p", BOUND},  {"sqrt", BOUND},     {"rsqrt", BOUND},    {"div", BOUND},      {"reciprocal", BOUND},
    {"mul", DIVIDE},   {"pow", DIVIDE},     {"square", DIVIDE},  {"var", DIVIDE},     {"std", DIVIDE},
    {"sum", AVERAGE},  {"linear", AVERAGE}, {"matmul", AVERAGE}, {"conv1d", AVERAGE}, {"conv2d", AVERAGE},
};

static const char *remedy_of(const char *op) {
    for (size_t i = 0; i < sizeof remedies / sizeof *remedies; i++)
        if (!strcmp(remedies[i].op, op)) return remedies[i].text;
    return NULL;
}

const char *verdict_advice(const Verdict *v) {
    const char *remedy = v->finding.op ? remedy_of(v->finding.op) : NULL;
    switch (v->finding.fault) {
    case AMP_TRACE_DATA: return "clean the data, or leave the sample out";
    case AMP_TRACE_STATE: return "go on from an older checkpoint, or from weights that are finite";
    case AMP_TRACE_UNDEFINED:
        return remedy ? remedy : "keep what the op reads away from there: an epsilon, max(x, 1e-6), another form";
    default: break;
    }
    /* Before the first update no rate has spoiled anything. */
    if (!v->updates) return remedy ? remedy : "inputs or first weights of a smaller range";
    return remedy && v->fp32 == ANSWER_NO ? remedy : "a lower learning rate, clip_norm, or inputs of a smaller range";
}

static void print_head(FILE *to, const Verdict *v) {
    fprintf(to, "amprun: iteration %" PRId64 ": ", v->iteration);
    if (!isfinite(v->loss)) fprintf(to, "the loss is %s", isnan(v->loss) ? "NaN" : "infinite");
    else if (v->is_state) fprintf(to, "the new value of a state is not finite (loss %.6g)", v->loss);
    else fprintf(to, "gradients are not finite (loss %.6g, loss scale %g)", v->loss, (double)v->scale);
    if (v->is_repeated) fprintf(to, ", as before: %s %s", amp_trace_fault_name(v->finding.fault), v->finding.path);
    if (v->is_expected) fprintf(to, ": too large at this loss scale alone; the step is skipped, as it should be");
    fputc('\n', to);
}

static void print_body(FILE *to, const Verdict *v) {
    if (!v->finding.fault) {
        fprintf(to, "  replayed without fusion, the step is finite: where it came from is not known\n");
        return;
    }
    print_row(to, amp_trace_fault_name(v->finding.fault));
    print_place(to, &v->finding);
    print_row(to, "");
    print_what(to, v);
    print_inputs(to, &v->finding);
    print_decision(to, &v->finding);
    print_fp32(to, v);
    print_lines(to, v);
    if (v->line_count || v->is_expected) return;
    print_row(to, "mend");
    fprintf(to, "%s\n", verdict_advice(v));
}

static void print_all(FILE *to, const Verdict *v) {
    print_head(to, v);
    if (!v->is_repeated) print_body(to, v);
    if (v->is_last) fprintf(to, "  nothing more is traced: that was enough to act on\n");
}

void verdict_print(FILE *to, const Verdict *v) {
    char *text = NULL;
    size_t size;
    FILE *memory = standard_streams_width(to) ? open_memstream(&text, &size) : NULL;
    print_all(memory ? memory : to, v);
    if (memory && !fclose(memory)) print_wrapped(to, text);
    free(text);
}

/* ---- for tools --------------------------------------------------------------------------------------------------- */

static void json_pair(FILE *to, const char *key, const char *text) {
    fprintf(to, ", \"%s\": ", key);
    if (text) json_text(to, text);
    else fprintf(to, "null");
}

static void json_range(FILE *to, const amp_trace_range *r) {
    fprintf(to, "{\"name\": ");
    json_text(to, r->name);
    json_pair(to, "dtype", amp_dtype_name(r->dtype));
    fprintf(to,
            ", \"count\": %" PRId64 ", \"nans\": %" PRId64 ", \"infinities\": %" PRId64 ", \"zeros\": %" PRId64 ", ",
            r->count, r->nans, r->infinities, r->zeros);
    json_number(to, "least", r->least);
    json_more(to, "largest", r->largest);
    fputc('}', to);
}

static void json_finding(FILE *to, const amp_trace_finding *f) {
    json_pair(to, "path", f->path);
    json_pair(to, "op", f->op);
    json_pair(to, "file", f->file);
    fprintf(to, ", \"line\": %d, \"gradient\": %s", f->line, f->is_gradient ? "true" : "false");
    json_pair(to, "decided", f->decided);
    json_pair(to, "reason", f->reason);
    fprintf(to, ", \"result\": ");
    json_range(to, &f->result);
    if (f->exact.name) {
        fprintf(to, ", \"exact\": ");
        json_range(to, &f->exact);
    }
    fprintf(to, ", \"reads\": [");
    for (int32_t i = 0; i < f->input_count; i++) {
        if (i) fprintf(to, ", ");
        json_range(to, &f->inputs[i]);
    }
    fputc(']', to);
}

void verdict_json(FILE *to, const Verdict *v) {
    static const char *const answers[] = {"null", "false", "true"};
    fprintf(to, "{\"traced\": %" PRId64 ", ", v->iteration);
    json_number(to, "loss", v->loss);
    json_more(to, "scale", (double)v->scale);
    json_pair(to, "fault", amp_trace_fault_name(v->finding.fault));
    if (v->place[0]) json_pair(to, "place", v->place);
    fprintf(to, ", \"expected\": %s", v->is_expected ? "true" : "false");
    if (v->finding.fault) json_finding(to, &v->finding);
    fprintf(to, ", \"fp32_finite\": %s, \"mend\": [", answers[v->fp32]);
    for (int i = 0; i < v->line_count; i++) {
        if (i) fprintf(to, ", ");
        json_text(to, v->line[i]);
    }
    fprintf(to, "]}");
}
