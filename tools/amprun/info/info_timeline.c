/* info_timeline.c: amprun info --timeline: the bytes that are alive while each kernel of a program runs, and what they
 * are where they are most; as text and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tools/amprun/info/info.h"
#include "tools/standard_streams.h"

typedef struct Timeline {
    const Args *args;
    amp_sizes sizes;
    amp_model_info info;
    const amp_program *program;
    LiveBytes live;
    uint64_t arena;        /* what the plan takes for it */
    const LiveBuffer **at; /* those that are alive at the peak, the largest first */
    int32_t at_count;
} Timeline;

/* ---- what is looked at ------------------------------------------------------------------------------------------- */

static int open_model(Timeline *t, amp_model **model) {
    amp_error err = {0};
    amp_tables tables;
    if (amp_model_load(t->args->model, NULL, model, &err)) return report(&err);
    amp_model_get_info(*model, &t->info);
    if (info_tables(t->args, *model, &tables) || info_check_batch(t->args, &tables, t->sizes.n)) return 1;
    t->sizes.t = t->args->length ? t->args->length : tables.length_most;
    t->program = info_program(t->args, &tables);
    return !t->program;
}

static int largest_first(const void *a, const void *b) {
    const LiveBuffer *x = *(const LiveBuffer *const *)a, *y = *(const LiveBuffer *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->buffer - y->buffer;
}

static int list_peak(Timeline *t) {
    const LiveBytes *l = &t->live;
    t->at = calloc((size_t)l->count + 1, sizeof *t->at);
    if (!t->at) return report_text("%s: no memory for %d buffers", t->args->model, l->count);
    for (int32_t i = 0; i < l->count; i++)
        if (l->buffers[i].first <= l->peak && l->peak <= l->buffers[i].last) t->at[t->at_count++] = &l->buffers[i];
    qsort(t->at, (size_t)t->at_count, sizeof *t->at, largest_first);
    return 0;
}

static int compute(Timeline *t) {
    amp_error err = {0};
    if (amp_program_plan(t->program, t->sizes, &t->arena, NULL, &err)) return report(&err);
    if (live_bytes_make(&t->live, t->program, t->sizes, &err)) return report(&err);
    return list_peak(t);
}

static const char *kernel_name(const Timeline *t, int32_t i) {
    if (i < 0) return "the start";
    return t->program->cuda_kernels ? t->program->cuda_kernels[i].name : t->program->kernels[i].name;
}

static const char *kernel_title(const Timeline *t, int32_t i) {
    const char *title = t->program->cuda_kernels ? t->program->cuda_kernels[i].title : t->program->kernels[i].title;
    return title ? title : "";
}

static const amp_model_buffer *value_at_peak(const Timeline *t, int32_t i) {
    return &t->program->buffers[live_buffer_at(&t->live, t->at[i], t->live.peak)];
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void print_kernel(const Timeline *t, int32_t i) {
    static const char bar[] = "########################";
    const int most = (int)sizeof bar - 1;
    const double share = (double)t->live.alive[i] / (double)(t->live.peak_bytes + !t->live.peak_bytes);
    print_plain_line("%-9s %16" PRIu64 "  %-*.*s %s  %s", kernel_name(t, i), t->live.alive[i], most,
                     (int)(share * most + 0.5), bar, i == t->live.peak ? "<" : " ", kernel_title(t, i));
}

static int print_text(const Timeline *t) {
    print_plain_line("%s at batch %" PRId64 ": bytes of activations that are alive while each kernel runs",
                     t->program->name, t->sizes.n);
    for (int32_t i = 0; i < t->program->kernel_count; i++) print_kernel(t, i);
    printf("peak      %16" PRIu64 "; planned in %" PRIu64 "\n", t->live.peak_bytes, t->arena);
    if (t->live.peak < 0) return 0;
    print_plain_line("alive in %s:", kernel_name(t, t->live.peak));
    for (int32_t i = 0; i < t->at_count; i++) {
        const amp_model_buffer *b = value_at_peak(t, i);
        print_plain_line("          %16" PRIu64 "  %-4s  %s to %s  %s", t->at[i]->bytes,
                         amp_dtype_name((amp_dtype)b->storage), kernel_name(t, b->first_kernel),
                         kernel_name(t, b->last_kernel), b->name);
    }
    return 0;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_kernels(amp_json_writer *w, const Timeline *t) {
    amp_json_begin_array(w, "kernels");
    for (int32_t i = 0; i < t->program->kernel_count; i++) {
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "name", kernel_name(t, i));
        amp_json_put_string(w, "title", kernel_title(t, i));
        amp_json_put_int(w, "alive", (int64_t)t->live.alive[i]);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

static void put_peak(amp_json_writer *w, const Timeline *t) {
    amp_json_begin_object(w, "peak");
    amp_json_put_int(w, "bytes", (int64_t)t->live.peak_bytes);
    amp_json_put_int(w, "kernel", t->live.peak);
    amp_json_begin_array(w, "buffers");
    for (int32_t i = 0; i < t->at_count; i++) {
        const amp_model_buffer *b = value_at_peak(t, i);
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "name", b->name);
        amp_json_put_string(w, "dtype", amp_dtype_name((amp_dtype)b->storage));
        amp_json_put_int(w, "bytes", (int64_t)t->at[i]->bytes);
        amp_json_put_int(w, "first_kernel", b->first_kernel);
        amp_json_put_int(w, "last_kernel", b->last_kernel);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
    amp_json_end_object(w);
}

static int print_json(const Timeline *t) {
    amp_json_writer w;
    amp_json_writer_init(&w, NULL);
    amp_json_begin_object(&w, NULL);
    amp_json_put_string(&w, "model", t->info.name);
    amp_json_put_string(&w, "policy", t->info.policy);
    amp_json_put_string(&w, "device", t->program->cuda_kernels ? "cuda" : "cpu");
    amp_json_put_string(&w, "program", t->program->name);
    amp_json_put_int(&w, "batch", t->sizes.n);
    amp_json_put_int(&w, "planned", (int64_t)t->arena);
    put_peak(&w, t);
    put_kernels(&w, t);
    return json_print(&w);
}

int command_info_timeline(const Args *a) {
    Timeline t = {.args = a, .sizes.n = a->batch ? a->batch : 1};
    amp_model *model = NULL;
    int failed = open_model(&t, &model);
    if (!failed) failed = compute(&t);
    if (!failed) failed = a->as_json ? print_json(&t) : print_text(&t);
    free(t.at);
    live_bytes_free(&t.live);
    amp_model_release(model);
    return failed;
}
