/* info_batch.c: amprun info --batch auto --memory BYTES: the largest batch that fits, of a model or of two side by
 * side; as text and as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "tools/amprun/info/info.h"
#include "tools/standard_streams.h"

typedef struct Side {
    const char *file;
    amp_model *model;
    amp_model_info info;
    LargestBatch found;
} Side;

enum { SIDES_MOST = 2 };

typedef struct Sides {
    const Args *args;
    Side side[SIDES_MOST];
    int count;
} Sides;

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static int refuse(const Args *a, const Side *s) {
    const amp_memory_info *m = &s->found.memory;
    if (m->device)
        return report_text("%s: --memory %" PRIu64 ": a batch of the smallest size takes %" PRIu64
                           " bytes of the device; give as much",
                           s->file, a->memory, m->device);
    return report_text(
        "%s: --memory %" PRIu64 ": a batch of the smallest size takes %" PRIu64 " bytes: weights %" PRIu64
        ", copies %" PRIu64 ", moments %" PRIu64 ", activations %" PRIu64 ", outputs %" PRIu64 ", scratch %" PRIu64
        "; give as much, or lower what is largest of it (docs/seeing-precision.md)",
        s->file, a->memory, m->total, m->params, m->derived, m->moments, m->activations, m->outputs, m->scratch);
}

static int find(Side *s, const Args *a) {
    amp_error err = {0};
    const int64_t batch = a->batch ? a->batch : DEFAULT_BATCH;
    amp_session_options options = run_options(a, a->tokens_auto ? batch : 0, NULL);
    if (a->tokens_auto) options.tokens = -1;
    if (amp_model_load(s->file, NULL, &s->model, &err)) return report(&err);
    amp_model_get_info(s->model, &s->info);
    if (a->tokens_auto && !s->info.length_unit)
        return report_text("%s: --tokens auto: has no `size T`; --batch auto finds the largest batch", s->file);
    if (largest_batch(s->model, &options, a->memory, &s->found, &err)) return report(&err);
    return s->found.batch ? 0 : refuse(a, s);
}

/* Not every batch that could fit was tried. */
static bool is_open(const LargestBatch *f) { return f->next && f->bound > f->next + LARGEST_BATCH_LOOK; }

static double ratio(const Sides *x) { return (double)x->side[0].found.batch / (double)x->side[1].found.batch; }

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void print_row(const Sides *x, const char *name, uint64_t (*value)(const Side *s)) {
    printf("%-12s", name);
    for (int i = 0; i < x->count; i++) {
        const uint64_t v = value(&x->side[i]);
        if (v) printf(" %20" PRIu64, v);
        else printf(" %20s", "-");
    }
    printf("\n");
}

static uint64_t batch_of(const Side *s) { return (uint64_t)s->found.batch; }
static uint64_t next_of(const Side *s) { return (uint64_t)s->found.next; }
static uint64_t device_of(const Side *s) { return s->found.memory.device; }
static uint64_t next_total_of(const Side *s) { return s->found.next_total; }

static void print_kinds(const Sides *x) {
    MemoryKind kinds[SIDES_MOST][MEMORY_KINDS];
    for (int i = 0; i < x->count; i++) memory_kinds(&x->side[i].found.memory, kinds[i]);
    for (int kind = 0; kind < MEMORY_KINDS; kind++) {
        printf("%-12s", kinds[0][kind].name);
        for (int i = 0; i < x->count; i++) printf(" %20" PRIu64, kinds[i][kind].bytes);
        printf("\n");
    }
    if (x->side[0].found.memory.device) print_row(x, "on device", device_of);
}

static int print_text(const Sides *x) {
    for (int i = 0; i < x->count; i++)
        print_plain_line("model %c      %s (%s)", 'a' + i, x->side[i].file, x->side[i].info.policy);
    printf("memory       at most %" PRIu64 " bytes\n%-12s", x->args->memory, "");
    for (int i = 0; i < x->count; i++) printf(" %20c", 'a' + i);
    printf("\n");
    print_row(x, x->args->tokens_auto ? "tokens" : "batch", batch_of);
    print_kinds(x);
    print_row(x, x->args->tokens_auto ? "next tokens" : "next batch", next_of);
    print_row(x, "would take", next_total_of);
    if (x->count == SIDES_MOST)
        printf("a / b        %.3f times the %s\n", ratio(x), x->args->tokens_auto ? "tokens" : "batch");
    for (int i = 0; i < x->count; i++)
        if (is_open(&x->side[i].found))
            printf("%c: batches from %" PRId64 " to %" PRId64 " were not all tried; larger ones cannot fit\n", 'a' + i,
                   x->side[i].found.next, x->side[i].found.bound);
    return 0;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_or_null(amp_json_writer *w, const char *key, uint64_t value) {
    if (value) amp_json_put_int(w, key, (int64_t)value);
    else amp_json_put_null(w, key);
}

static void put_side(amp_json_writer *w, const Side *s, bool tokens) {
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "file", s->file);
    amp_json_put_string(w, "model", s->info.name);
    amp_json_put_string(w, "policy", s->info.policy);
    amp_json_put_string(w, "precision", s->info.precision);
    amp_json_put_int(w, "accumulate", s->info.accumulate);
    amp_json_put_int(w, tokens ? "tokens" : "batch", s->found.batch);
    memory_put(w, &s->found.memory);
    put_or_null(w, tokens ? "next_tokens" : "next_batch", next_of(s));
    put_or_null(w, "next_total", next_total_of(s));
    put_or_null(w, "no_batch_fits_above", (uint64_t)s->found.bound);
    amp_json_end_object(w);
}

static int print_json(const Sides *x) {
    amp_json_writer w;
    amp_json_writer_init(&w, NULL);
    amp_json_begin_object(&w, NULL);
    amp_json_put_int(&w, "limit", (int64_t)x->args->memory);
    amp_json_begin_array(&w, "models");
    for (int i = 0; i < x->count; i++) put_side(&w, &x->side[i], x->args->tokens_auto);
    amp_json_end_array(&w);
    if (x->count == SIDES_MOST) amp_json_put_double(&w, "ratio", ratio(x));
    return json_print(&w);
}

int command_info_batch(const Args *a) {
    Sides x = {.args = a, .side = {{.file = a->model}, {.file = a->against}}, .count = a->against ? 2 : 1};
    int failed = 0;
    for (int i = 0; !failed && i < x.count; i++) failed = find(&x.side[i], a);
    if (!failed) failed = a->as_json ? print_json(&x) : print_text(&x);
    for (int i = 0; i < x.count; i++) amp_model_release(x.side[i].model);
    return failed;
}
