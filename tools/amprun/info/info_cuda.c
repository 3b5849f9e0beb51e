/* info_cuda.c: amprun info --kernels and --roofline: the CUDA code of a model, without a GPU; as text and as JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tools/amprun/info/info.h"
#include "tools/roofline/program_time.h"
#include "tools/standard_streams.h"

typedef struct Look {
    const Args *args;
    amp_tables cuda;
    amp_model_info info;
    amp_sizes sizes;
    const Gpu *gpu;             /* of --roofline; else one whose launches are shown */
    const amp_program *program; /* of --roofline; of --kernels, NULL: all */
    KernelTime *times;          /* of its kernels */
    ProgramTime sum[3];         /* by Form; of sum[form].microseconds is 0 where the GPU lacks its instruction */
    int bound[BOUND_COUNT];     /* so many kernels */
    Run run;                    /* with --kernels --device cuda a session, whose choices of products are shown */
} Look;

/* ---- what is looked at ------------------------------------------------------------------------------------------- */

static const char usual_gpu[] = "H100";

static int find_gpu(Look *x) {
    char names[256] = "";
    x->gpu = gpu_named(x->args->roofline ? x->args->roofline : usual_gpu);
    if (x->gpu) return 0;
    for (int i = 0, at = 0; gpu_at(i); i++)
        at += snprintf(names + at, sizeof names - (size_t)at, "%s%s", i ? ", " : "", gpu_at(i)->name);
    report_text("--roofline %s: that GPU is not known; known are %s", x->args->roofline, names);
    return 2;
}

/* A session that looks up what was chosen, and measures nothing. */
static int open_session(Look *x) {
    amp_error err = {0};
    Args a = *x->args;
    a.cuda.products_seconds = -1;
    if (run_open_empty(&x->run, &a, x->sizes.n)) return 1;
    if (a.cuda.products == AMP_PRODUCTS_OWN || !amp_session_tune(x->run.session, x->sizes.n, &err)) return 0;
    return a.cuda.products == AMP_PRODUCTS_FASTEST || a.cuda.choices ? report(&err) : 0; /* all are ampc's own */
}

static int open_model(Look *x) {
    amp_error err = {0};
    if (run_load(&x->run, x->args)) return 1;
    x->info = x->run.info;
    x->sizes.t = x->run.length;
    if (!x->info.has_cuda)
        return report_text(
            "%s: it has no CUDA code, which --kernels and --roofline look at: %s (--target both adds it, "
            "where all ops have CUDA code)",
            x->args->model, x->info.cuda_missing);
    if (amp_model_get_tables(x->run.model, "cuda", &x->cuda, &err)) return report(&err);
    if (info_check_batch(x->args, &x->cuda, x->sizes.n)) return 1;
    const bool all = !x->args->program && x->args->kernels && !x->args->roofline;
    if (!all) x->program = info_program(x->args, &x->cuda);
    if (!all && !x->program) return 1;
    return x->args->kernels && !strcmp(run_target(x->args), "cuda") ? open_session(x) : 0;
}

/* ---- the model of time ------------------------------------------------------------------------------------------- */

/* The step as if in other types; no sum where the GPU cannot. */
static void sum_other_form(Look *x, Form form) {
    if (program_time(x->gpu, &x->cuda, x->program, x->sizes, form, NULL, &x->sum[form]).why)
        x->sum[form].microseconds = 0;
}

static int compute(Look *x) {
    const amp_program *p = x->program;
    char why[256];
    x->times = calloc((size_t)p->kernel_count + 1, sizeof *x->times);
    if (!x->times) return report_text("%s: no memory for %d kernels", x->args->model, p->kernel_count);
    const ProgramRefusal refusal = program_time(x->gpu, &x->cuda, p, x->sizes, FORM_OWN, x->times, &x->sum[FORM_OWN]);
    if (refusal.why) {
        program_refusal_text(&refusal, x->gpu, why, sizeof why);
        return report_text("%s: %s", x->args->model, why);
    }
    for (int32_t i = 0; i < p->kernel_count; i++) x->bound[x->times[i].bound]++;
    sum_other_form(x, FORM_TF32);
    sum_other_form(x, FORM_FP32);
    return 0;
}

/* Of the step's time in another form; 0: there is none to compare with. */
static double ratio(const Look *x, Form form) {
    return x->sum[form].microseconds > 0 ? x->sum[FORM_OWN].microseconds / x->sum[form].microseconds : 0;
}

/* ---- the verdict ------------------------------------------------------------------------------------------------- */

static const double pays_below = 0.95; /* of FP32's time: less is within what the model leaves out */

static bool is_precision(const Look *x, const char *word) { return !strcmp(x->info.precision, word); }

static bool pays(const Look *x) { return ratio(x, FORM_FP32) > 0 && ratio(x, FORM_FP32) < pays_below; }

/* "FP16" */
static const char *low_name(const Look *x) {
    return is_precision(x, "fp16") ? "FP16" : is_precision(x, "bf16") ? "BF16" : "TF32";
}

static int most_common_bound(const Look *x) {
    int most = 0;
    for (int i = 1; i < BOUND_COUNT; i++)
        if (x->bound[i] > x->bound[most]) most = i;
    return most;
}

static void tell_verdict(const Look *x, char *out, size_t size) {
    static const char *const by[BOUND_COUNT] = {"memory", "tensor cores", "arithmetic", "too few blocks", "launches"};
    const double of_fp32 = ratio(x, FORM_FP32), of_tf32 = ratio(x, FORM_TF32);
    char tf32[64] = "";
    if (is_precision(x, "fp32")) {
        snprintf(out, size, "the model computes in FP32: compile it with --precision fp16 or bf16 to compare");
        return;
    }
    if (of_tf32 > 0 && !is_precision(x, "tf32")) snprintf(tf32, sizeof tf32, " and %.2f of TF32's", of_tf32);
    if (pays(x)) {
        snprintf(out, size, "%s takes %.2f of FP32's modelled time%s", low_name(x), of_fp32, tf32);
        return;
    }
    const int most = most_common_bound(x);
    snprintf(out, size,
             "%s does not pay at this batch: it takes %.2f of FP32's modelled time%s; %d of %d kernels are bound by %s",
             low_name(x), of_fp32, tf32, x->bound[most], x->program->kernel_count, by[most]);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void print_kernel_time(const Look *x, int32_t i) {
    const amp_model_cuda_kernel *k = &x->program->cuda_kernels[i];
    const KernelTime *t = &x->times[i];
    char flops[16], bytes[16];
    print_plain_line("%-9s %-8s %-11s %8" PRId64 "  %7s  %7s %9.1f %6.1f%%  %-14s  %s", k->name,
                     kernel_kind_name(cuda_kernel_kind(k)), instruction_name(t->instruction), t->blocks,
                     scaled(t->flops, flops), scaled(t->bytes, bytes), t->microseconds,
                     100 * t->microseconds / x->sum[FORM_OWN].microseconds, bound_names[t->bound],
                     k->title ? k->title : "");
}

static void print_other_form(const Look *x, const char *name, Form form) {
    char bytes[16];
    if (x->sum[form].microseconds > 0)
        print_plain_line("%-46s %7s %9.1f", name, scaled(x->sum[form].bytes, bytes), x->sum[form].microseconds);
}

static void print_roofline(const Look *x) {
    const ProgramTime *sum = &x->sum[FORM_OWN];
    char flops[16], bytes[16], verdict[256];
    print_plain_line("%s at batch %" PRId64 " on %s: a model of the time, not a measurement", x->program->name,
                     x->sizes.n, x->gpu->full);
    print_plain_line("%-9s %-8s %-11s %8s  %7s  %7s %9s %7s  %-14s  %s", "kernel", "kind", "products", "blocks",
                     "FLOPs  ", "bytes  ", "us", "share", "bound by", "title");
    for (int32_t i = 0; i < x->program->kernel_count; i++) print_kernel_time(x, i);
    print_plain_line("%-20s %4d launches  %7s  %7s %9.1f", "step", x->program->kernel_count, scaled(sum->flops, flops),
                     scaled(sum->bytes, bytes), sum->microseconds);
    if (!is_precision(x, "fp32")) {
        if (!is_precision(x, "tf32")) print_other_form(x, "as if in TF32", FORM_TF32);
        print_other_form(x, "as if in FP32", FORM_FP32);
    }
    tell_verdict(x, verdict, sizeof verdict);
    print_plain_line("verdict  %s", verdict);
}

static amp_cuda_used choice_of(const Look *x, const amp_model_cuda_kernel *k) {
    return amp_cuda_launch_choose(k, x->sizes, x->gpu->multiprocessors, x->gpu->shared);
}

static int users_of(const Look *x, uint32_t function) {
    int users = 0;
    for (int32_t i = 0; i < x->cuda.program_count; i++)
        for (int32_t j = 0; j < x->cuda.programs[i].kernel_count; j++)
            users += choice_of(x, &x->cuda.programs[i].cuda_kernels[j]).choice->function == function;
    return users;
}

static int64_t threads_of(const amp_cuda_used *used) {
    const uint32_t *block = used->choice->block;
    return (int64_t)block[0] * block[1] * block[2];
}

/* Who makes the products of kernel |k| of |p|: "-" of one that has none that cuBLASLt could make; NULL: not known. */
static const char *by_of(const Look *x, const amp_program *p, const amp_model_cuda_kernel *k, char text[48]) {
    amp_product_choice c;
    if (!x->run.session) return NULL;
    snprintf(text, 48, k->products.count ? "own" : "-");
    for (int32_t i = 0; !amp_session_choice_at(x->run.session, i, &c, NULL); i++)
        if (c.n == x->sizes.n && !strcmp(c.program, p->name) && !strcmp(c.kernel, k->name)) product_by(&c, text, 48);
    return text;
}

static void print_kernel(const Look *x, const amp_program *p, const amp_model_cuda_kernel *k) {
    char blocks[80], shared[32] = "-", text[48], column[64] = "";
    const char *by = by_of(x, p, k, text);
    if (by) snprintf(column, sizeof column, "%-12s ", by);
    const amp_cuda_used used = choice_of(x, k);
    const int users = users_of(x, used.choice->function);
    snprintf(blocks, sizeof blocks, "%" PRId64 " x %" PRId64 " x %" PRId64, used.grid[0], used.grid[1], used.grid[2]);
    if (users > 1) snprintf(shared, sizeof shared, "by %d", users);
    print_plain_line(
        "%-9s %-8s %-18s %7" PRId64 "  %-6s  %-24s %s%s%s%s%s", k->name, kernel_kind_name(cuda_kernel_kind(k)), blocks,
        threads_of(&used), shared, x->cuda.functions[used.choice->function].entry, column, k->title ? k->title : "",
        by && k->no_call ? " (no call: " : "", by && k->no_call ? k->no_call : "", by && k->no_call ? ")" : "");
}

static void print_kernels(const Look *x) {
    for (int32_t i = 0; i < x->cuda.program_count; i++) {
        const amp_program *p = &x->cuda.programs[i];
        if (x->args->program && p != x->program) continue;
        print_plain_line("%s at batch %" PRId64 " on %s: %d kernels", p->name, x->sizes.n, x->gpu->name,
                         p->kernel_count);
        if (!p->kernel_count) continue;
        print_plain_line("%-9s %-8s %-18s %7s  %-6s  %-24s %s%s", "kernel", "kind", "blocks", "threads", "shared",
                         "function", x->run.session ? "by           " : "", "title");
        for (int32_t j = 0; j < p->kernel_count; j++) print_kernel(x, p, &p->cuda_kernels[j]);
    }
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_kernel_names(amp_json_writer *w, const amp_model_cuda_kernel *k) {
    amp_json_put_string(w, "name", k->name);
    amp_json_put_string(w, "title", k->title ? k->title : "");
    amp_json_put_string(w, "kind", kernel_kind_name(cuda_kernel_kind(k)));
}

static void put_ratio(amp_json_writer *w, const char *key, double value, bool there) {
    if (value > 0 && there) amp_json_put_double(w, key, value);
    else amp_json_put_null(w, key);
}

/* Of products on tensor cores elements and terms, and the kernel's sizes, among which are rows, k and columns. */
static void put_products(amp_json_writer *w, const Look *x, const amp_model_cuda_kernel *k, uint32_t choice) {
    amp_json_begin_array(w, "products");
    for (uint32_t i = 0; i < k->work.count; i++) {
        const amp_model_cuda_work *work = &k->work.at[i];
        if (work->instruction < AMP_INSTRUCTION_MMA_F16) continue;
        amp_json_begin_array(w, NULL);
        amp_json_put_int(w, NULL, (int64_t)dim_at(&work->elements, x->sizes));
        amp_json_put_int(w, NULL, (int64_t)dim_at(&work->terms, x->sizes));
        amp_json_end_array(w);
    }
    amp_json_end_array(w);
    amp_json_begin_array(w, "sizes");
    for (uint32_t i = 0; i < k->sizes.count; i++) amp_json_put_int(w, NULL, (int64_t)dim_at(&k->sizes.at[i], x->sizes));
    amp_json_end_array(w);
    amp_json_begin_array(w, "tile");
    for (int axis = 0; axis < 2; axis++) amp_json_put_int(w, NULL, k->parts.at->grids[choice].per[axis]);
    amp_json_end_array(w);
}

static void put_kernel_time(amp_json_writer *w, const Look *x, int32_t i) {
    const KernelTime *t = &x->times[i];
    amp_json_begin_object(w, NULL);
    put_kernel_names(w, &x->program->cuda_kernels[i]);
    amp_json_put_string(w, "instruction", t->instruction ? instruction_name(t->instruction) : NULL);
    amp_json_put_int(w, "blocks", t->blocks);
    amp_json_put_double(w, "flops", t->flops);
    amp_json_put_double(w, "bytes", t->bytes);
    amp_json_put_double(w, "microseconds", t->microseconds);
    amp_json_put_double(w, "share", t->microseconds / x->sum[FORM_OWN].microseconds);
    amp_json_put_string(w, "bound", bound_names[t->bound]);
    amp_json_put_double(w, "waves", t->waves);
    put_ratio(w, "microseconds_in_other_tiles", t->other_tiles, t->other_tiles < INFINITY);
    if (t->instruction >= AMP_INSTRUCTION_MMA_F16) put_products(w, x, &x->program->cuda_kernels[i], t->used.index);
    amp_json_end_object(w);
}

static void put_roofline(amp_json_writer *w, const Look *x) {
    const ProgramTime *sum = &x->sum[FORM_OWN];
    const bool low = !is_precision(x, "fp32");
    char verdict[256];
    tell_verdict(x, verdict, sizeof verdict);
    amp_json_begin_object(w, "roofline");
    amp_json_put_string(w, "gpu", x->gpu->name);
    amp_json_put_string(w, "source", x->gpu->source);
    amp_json_put_bool(w, "measured", false);
    amp_json_put_string(w, "program", x->program->name);
    amp_json_put_int(w, "batch", x->sizes.n);
    amp_json_put_int(w, "launches", x->program->kernel_count);
    amp_json_put_double(w, "flops", sum->flops);
    amp_json_put_double(w, "bytes", sum->bytes);
    amp_json_put_double(w, "microseconds", sum->microseconds);
    put_ratio(w, "microseconds_in_tf32", x->sum[FORM_TF32].microseconds, low && !is_precision(x, "tf32"));
    put_ratio(w, "microseconds_in_fp32", x->sum[FORM_FP32].microseconds, low);
    amp_json_put_bool(w, "pays", low && pays(x));
    amp_json_put_string(w, "verdict", verdict);
    amp_json_begin_array(w, "kernels");
    for (int32_t i = 0; i < x->program->kernel_count; i++) put_kernel_time(w, x, i);
    amp_json_end_array(w);
    amp_json_end_object(w);
}

/* Choices of one function differ in shared memory. */
static int functions_of(const amp_model_cuda_kernel *k) {
    int count = 0;
    for (uint32_t i = 0; i < k->choices.count; i++)
        count += !i || k->choices.at[i].function != k->choices.at[i - 1].function;
    return count;
}

static void put_kernel(amp_json_writer *w, const Look *x, const amp_program *p, const amp_model_cuda_kernel *k) {
    char text[48];
    const char *by = by_of(x, p, k, text);
    const amp_cuda_used used = choice_of(x, k);
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "program", p->name);
    put_kernel_names(w, k);
    amp_json_put_string(w, "function", x->cuda.functions[used.choice->function].entry);
    amp_json_put_int(w, "users", users_of(x, used.choice->function));
    amp_json_begin_array(w, "blocks");
    for (int axis = 0; axis < 3; axis++) amp_json_put_int(w, NULL, used.grid[axis]);
    amp_json_end_array(w);
    amp_json_put_int(w, "threads", threads_of(&used));
    amp_json_put_int(w, "functions", functions_of(k));
    amp_json_put_int(w, "parts", k->parts.count);
    if (by) amp_json_put_string(w, "by", by);
    if (k->no_call) amp_json_put_string(w, "no_call", k->no_call);
    amp_json_end_object(w);
}

static void put_kernels(amp_json_writer *w, const Look *x) {
    amp_json_put_int(w, "batch", x->sizes.n);
    amp_json_put_string(w, "gpu", x->gpu->name);
    amp_json_begin_array(w, "kernels");
    for (int32_t i = 0; i < x->cuda.program_count; i++) {
        const amp_program *p = &x->cuda.programs[i];
        if (x->args->program && p != x->program) continue;
        for (int32_t j = 0; j < p->kernel_count; j++) put_kernel(w, x, p, &p->cuda_kernels[j]);
    }
    amp_json_end_array(w);
}

static int print_json(const Look *x) {
    amp_json_writer w;
    amp_json_writer_init(&w, NULL);
    amp_json_begin_object(&w, NULL);
    amp_json_put_string(&w, "model", x->info.name);
    amp_json_put_string(&w, "precision", x->info.precision);
    if (x->args->kernels) put_kernels(&w, x);
    if (x->args->roofline) put_roofline(&w, x);
    return json_print(&w);
}

static int print_text(const Look *x) {
    if (x->args->kernels) print_kernels(x);
    if (x->args->kernels && x->args->roofline) print_plain_line("%s", "");
    if (x->args->roofline) print_roofline(x);
    return 0;
}

int command_info_cuda(const Args *a) {
    Look x = {.args = a, .sizes.n = a->batch ? a->batch : 1};
    int failed = find_gpu(&x);
    if (!failed) failed = open_model(&x);
    if (!failed && a->roofline) failed = compute(&x);
    if (!failed) failed = a->as_json ? print_json(&x) : print_text(&x);
    free(x.times);
    run_close(&x.run);
    return failed;
}
