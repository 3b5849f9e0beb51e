/* tune.c: amprun tune: measures who makes the products of a model, for several numbers of samples. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/amprun/amprun.h"
#include "tools/outputs.h"
#include "tools/standard_streams.h"

static int check_files(const Args *a) {
    Outputs files = {.tool = "amprun", .force = a->force};
    outputs_input(&files, "the model", a->model);
    outputs_input_but(&files, "--choices", a->cuda.choices, "-o");
    outputs_output(&files, "-o", a->choices_out, OUTPUT_CHOICES);
    const int wrong = outputs_check(&files);
    outputs_free(&files);
    return wrong;
}

/* Of one number also its halves: what the last batch of an epoch may have is never far from one of them. */
static int fill_sizes(Args *a, const Run *run) {
    amp_error err = {0};
    amp_tables tables;
    if (amp_model_get_tables(run->model, "cuda", &tables, &err)) return report(&err);
    if (!a->size_count) a->sizes[a->size_count++] = a->batch = DEFAULT_BATCH;
    for (int i = 0; i < a->size_count; i++)
        if (a->sizes[i] % tables.batch_multiple)
            return report_text("--batch %" PRId64 ": %s takes multiples of %" PRId64 " samples", a->sizes[i], a->model,
                               tables.batch_multiple);
    if (a->size_count > 1) return 0;
    for (int64_t half = a->sizes[0] / 2; half > 0 && half % tables.batch_multiple == 0; half /= 2)
        a->sizes[a->size_count++] = half;
    return 0;
}

static void print_choice(const amp_product_choice *c) {
    char products[96], by[48] = "own", own[24] = "-", library[24] = "-";
    snprintf(products, sizeof products, "%" PRId32 " of %" PRId64 " x %" PRId64 " x %" PRId64, c->products, c->rows,
             c->cols, c->k);
    product_by(c, by, sizeof by);
    if (c->own > 0) snprintf(own, sizeof own, "%.1f", c->own);
    if (c->library > 0) snprintf(library, sizeof library, "%.1f", c->library);
    print_plain_line("%7" PRId64 "  %-12s %-9s %-30s %9s %10s  %-16s %s", c->n, c->program, c->kernel, products, own,
                     library, c->measured ? by : "not measured", c->title);
}

/* Choices at other numbers of samples were found on the way. */
static bool is_asked_for(const Args *a, int64_t n) {
    for (int i = 0; i < a->size_count; i++)
        if (a->sizes[i] == n) return true;
    return false;
}

static void print_choices(const Args *a, const Run *run) {
    amp_product_choice c;
    int all = 0, served = 0, unmeasured = 0;
    print_plain_line("%7s  %-12s %-9s %-30s %9s %10s  %-16s %s", "batch", "program", "kernel", "products", "own us",
                     "library us", "by", "title");
    for (int32_t i = 0; !amp_session_choice_at(run->session, i, &c, NULL); i++) {
        if (!is_asked_for(a, c.n)) continue;
        print_choice(&c);
        all++;
        served += c.algorithm >= 0;
        unmeasured += !c.measured;
    }
    if (!all && a->cuda.products != AMP_PRODUCTS_FASTEST)
        print_plain_line("%s has no launch of products alone that is worth it, from 2 GFLOP on", run->info.name);
    print_plain_line("cuBLASLt makes %d of %d launches of products that it could make", served, all);
    if (unmeasured)
        print_plain_line("%d were not measured: --seconds ended, or memory was short; amprun tune goes on with them",
                         unmeasured);
}

static int tune(Args *a, Run *run) {
    amp_error err = {0};
    if (strcmp(run_target(a), "cuda"))
        return report_text("--device %s: products are chosen on cuda alone", a->device), 2;
    if (run_load(run, a) || fill_sizes(a, run) || run_open_empty(run, a, a->batch)) return 1;
    for (int i = 0; i < a->size_count; i++)
        if (amp_session_tune(run->session, a->sizes[i], &err)) return report(&err);
    print_choices(a, run);
    if (a->choices_out && amp_session_save_choices(run->session, a->choices_out, &err)) return report(&err);
    return 0;
}

int command_tune(const Args *given) {
    Args a = *given;
    Run run = {0};
    if (!a.device) a.device = "cuda";
    if (a.cuda.products_seconds == 0) a.cuda.products_seconds = INFINITY;
    const int wrong = check_files(&a);
    if (wrong) return wrong;
    const int failed = tune(&a, &run);
    run_close(&run);
    return failed;
}
