/* step_report.c: see step_cost.h. */
#include "tools/ampc/step_cost.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tools/roofline/program_time.h"
#include "tools/standard_streams.h"

/* ---- rows -------------------------------------------------------------------------------------------------------- */

typedef enum Unit { COUNT, BYTES, MICROSECONDS } Unit;

typedef struct Row {
    const char *text, *key; /* in the table; in JSON */
    Unit unit;
    bool of_gpu, of_time; /* known only where the model has CUDA code; where the GPU has its instructions */
    size_t field;         /* of StepCost, a double */
} Row;

static const Row rows[] = {
    {"kernels on the CPU", "cpu_kernels", COUNT, false, false, offsetof(StepCost, cpu_kernels)},
    {"temporaries on the CPU", "cpu_temporaries", BYTES, false, false, offsetof(StepCost, cpu_temporaries)},
    {"launches on the GPU", "launches", COUNT, true, false, offsetof(StepCost, launches)},
    {"temporaries on the GPU", "temporaries", BYTES, true, false, offsetof(StepCost, temporaries)},
    {"bytes moved on the GPU", "bytes", BYTES, true, true, offsetof(StepCost, bytes)},
    {"modelled time", "microseconds", MICROSECONDS, true, true, offsetof(StepCost, microseconds)},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Below 0: not known. */
static double value_of(const Row *r, const StepCost *s) {
    double value;
    if ((r->of_gpu && *s->no_cuda) || (r->of_time && *s->no_time)) return -1;
    memcpy(&value, (const char *)s + r->field, sizeof value);
    return value;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static const char *value_text(Unit unit, double v, char out[32]) {
    char number[16];
    if (v < 0) return "-";
    if (unit == COUNT) snprintf(out, 32, "%.0f", v);
    else if (unit == BYTES) snprintf(out, 32, "%sB", scaled(v, number));
    else if (v < 1000) snprintf(out, 32, "%.1f us", v);
    else snprintf(out, 32, "%.2f ms", v / 1000);
    return out;
}

static void print_row(const Row *r, const StepPair *p) {
    const double before = value_of(r, &p->before), after = value_of(r, &p->after);
    char texts[2][32], ratio[32] = "", note[80] = "";
    if (r->of_gpu && before < 0 && after < 0) return;
    if (before >= 0 && before == after) snprintf(ratio, sizeof ratio, "same");
    else if (before > 0 && after >= 0) snprintf(ratio, sizeof ratio, "%.2f", after / before);
    if (r->unit == MICROSECONDS) snprintf(note, sizeof note, "%16s   a model, not a measurement", ratio);
    else if (*ratio) snprintf(note, sizeof note, "%16s", ratio);
    print_plain_line("  %-28s%14s%14s%s", r->text, value_text(r->unit, before, texts[0]),
                     value_text(r->unit, after, texts[1]), note);
}

/* "train_step at batch 32, on H100": what is compared. */
static void print_heading(const StepPair *p) {
    const bool same = !strcmp(p->before.program, p->after.program);
    char what[128];
    snprintf(what, sizeof what, "%s at batch %" PRId64 " on %s", same ? p->after.program : "a step", p->batch,
             p->gpu->name);
    print_plain_line("%-36s%8s%14s%16s", what, "before", "after", "after/before");
    if (!same) print_plain_line("  %-28s%14s%14s", "program", p->before.program, p->after.program);
    if (p->before.micro_batches > 1 || p->after.micro_batches > 1)
        print_plain_line("  %-28s%14" PRId64 "%14" PRId64, "micro-batches of a step", p->before.micro_batches,
                         p->after.micro_batches);
}

static void print_reason(const char *what, const char *side, const char *reason) {
    if (*reason) print_plain_line("  %s, %s: %s", what, side, reason);
}

void step_report_print(const StepPair *p) {
    print_plain_line("%s", "");
    if (*p->missing.message) {
        print_plain_line("steps are not compared: %s", p->missing.message);
        return;
    }
    print_heading(p);
    for (int i = 0; i < ROWS; i++) print_row(&rows[i], p);
    print_reason("no CUDA code", "before", p->before.no_cuda);
    print_reason("no CUDA code", "after", p->after.no_cuda);
    print_reason("no time", "before", p->before.no_time);
    print_reason("no time", "after", p->after.no_time);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_value(amp_json_writer *w, const Row *r, double value) {
    if (value < 0) amp_json_put_null(w, r->key);
    else if (r->unit == MICROSECONDS) amp_json_put_double(w, r->key, value);
    else amp_json_put_int(w, r->key, (int64_t)value);
}

static void put_reason(amp_json_writer *w, const char *key, const char *reason) {
    amp_json_put_string(w, key, *reason ? reason : NULL);
}

static void put_side(amp_json_writer *w, const char *key, const StepCost *s) {
    amp_json_begin_object(w, key);
    amp_json_put_string(w, "program", s->program);
    amp_json_put_int(w, "micro_batches", s->micro_batches);
    for (int i = 0; i < ROWS; i++) put_value(w, &rows[i], value_of(&rows[i], s));
    put_reason(w, "no_cuda", s->no_cuda);
    put_reason(w, "no_time", s->no_time);
    amp_json_end_object(w);
}

/* null: a side is not known, or was nothing. */
static void put_ratio(amp_json_writer *w, const Row *r, const StepPair *p) {
    const double before = value_of(r, &p->before), after = value_of(r, &p->after);
    if (before > 0 && after >= 0) amp_json_put_double(w, r->key, after / before);
    else amp_json_put_null(w, r->key);
}

void step_report_put(amp_json_writer *w, const char *key, const StepPair *p) {
    amp_json_begin_object(w, key);
    amp_json_put_int(w, "batch", p->batch);
    amp_json_put_string(w, "gpu", p->gpu->name);
    amp_json_put_bool(w, "measured", false);
    put_reason(w, "missing", p->missing.message);
    if (!*p->missing.message) {
        put_side(w, "before", &p->before);
        put_side(w, "after", &p->after);
        amp_json_begin_object(w, "ratio");
        for (int i = 0; i < ROWS; i++) put_ratio(w, &rows[i], p);
        amp_json_end_object(w);
    }
    amp_json_end_object(w);
}
