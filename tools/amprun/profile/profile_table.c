/* profile_table.c: see profile.h. */
#include "tools/amprun/profile/profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/standard_streams.h"

enum { ROWS_MOST = 30 };

/* What a kernel would take if nothing else held it up, in seconds. */
typedef struct Bounds {
    double memory, compute, launch;
} Bounds;

typedef struct Row {
    const amp_program *program;
    const char *title;
    int64_t calls, nanoseconds;
    double bytes, flops;
    Bounds bounds;
} Row;

typedef struct Table {
    const Recording *recording;
    const Peaks *peaks;
    Row *row;
    int32_t rows;
    double launch; /* seconds of a kernel that does next to nothing; 0: not known */
    int64_t kernel_time, call_time;
    FILE *to;
} Table;

static const char *title_of(const RecordedKernel *k) {
    const char *title =
        k->program->cuda_kernels ? k->program->cuda_kernels[k->index].title : k->program->kernels[k->index].title;
    return title ? title : "";
}

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

static Bounds bounds_of(const Peaks *p, const KernelWork *w) {
    const double flops = p->flops[w->instruction];
    return (Bounds){.memory = p->bytes > 0 ? w->bytes / p->bytes : 0, .compute = flops > 0 ? w->flops / flops : 0};
}

static double longest(const Bounds *b) { return b->memory > b->compute ? b->memory : b->compute; }

static int by_value(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Such kernels would take less than a microsecond: what they take is what any kernel takes to start and to end. */
static const double next_to_nothing = 1e-6;

static bool find_launch(Table *t) {
    const Recording *r = t->recording;
    int64_t *times = malloc(((size_t)r->kernels + 1) * sizeof *times);
    int32_t count = 0;
    if (!times) return false;
    for (int32_t i = 0; i < r->kernels; i++) {
        const Bounds b = bounds_of(t->peaks, &r->kernel[i].work);
        if (longest(&b) < next_to_nothing) times[count++] = r->kernel[i].end - r->kernel[i].begin;
    }
    qsort(times, (size_t)count, sizeof *times, by_value);
    t->launch = count && t->peaks->bytes > 0 ? 1e-9 * (double)times[count / 2] : 0;
    free(times);
    return true;
}

static const char *bound_name(const Row *r, const Peaks *p) {
    if (!(p->bytes > 0)) return "-";
    if (r->bounds.launch > longest(&r->bounds)) return "launch";
    return r->bounds.compute > r->bounds.memory ? "compute" : "memory";
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static int by_title(const void *a, const void *b) {
    const Row *x = a, *y = b;
    if (x->program != y->program) return x->program < y->program ? -1 : 1;
    return strcmp(x->title, y->title);
}

static int longest_first(const void *a, const void *b) {
    const Row *x = a, *y = b;
    if (x->nanoseconds != y->nanoseconds) return x->nanoseconds < y->nanoseconds ? 1 : -1;
    return strcmp(x->title, y->title);
}

static void add_up(Row *sum, const Row *r) {
    sum->calls += r->calls;
    sum->nanoseconds += r->nanoseconds;
    sum->bytes += r->bytes;
    sum->flops += r->flops;
    sum->bounds.memory += r->bounds.memory;
    sum->bounds.compute += r->bounds.compute;
    sum->bounds.launch += r->bounds.launch;
}

static Row row_of(const Table *t, const RecordedKernel *k) {
    Row row = {.program = k->program,
               .title = title_of(k),
               .calls = 1,
               .nanoseconds = k->end - k->begin,
               .bytes = k->work.bytes,
               .flops = k->work.flops,
               .bounds = bounds_of(t->peaks, &k->work)};
    row.bounds.launch = t->launch;
    return row;
}

static bool make_rows(Table *t) {
    const Recording *r = t->recording;
    t->row = malloc(((size_t)r->kernels + 1) * sizeof *t->row);
    if (!t->row) return false;
    for (int32_t i = 0; i < r->kernels; i++) t->row[i] = row_of(t, &r->kernel[i]);
    qsort(t->row, (size_t)r->kernels, sizeof *t->row, by_title);
    for (int32_t i = 0; i < r->kernels; i++) {
        Row *last = t->rows ? &t->row[t->rows - 1] : NULL;
        t->kernel_time += t->row[i].nanoseconds;
        if (last && !by_title(last, &t->row[i])) add_up(last, &t->row[i]);
        else t->row[t->rows++] = t->row[i];
    }
    qsort(t->row, (size_t)t->rows, sizeof *t->row, longest_first);
    for (int32_t i = 0; i < r->calls; i++) t->call_time += r->call[i].end - r->call[i].begin;
    return true;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static double per_step(const Table *t, double all) { return all / t->recording->steps; }

static void print_time(const Table *t, int64_t nanoseconds) {
    fprintf(t->to, "%10.4f %6.1f%%", 1e-6 * per_step(t, (double)nanoseconds),
            t->call_time ? 100 * (double)nanoseconds / (double)t->call_time : 0);
}

static void print_row(const Table *t, const Row *r, const char *bound, const char *title) {
    const double seconds = 1e-9 * (double)r->nanoseconds, best = longest(&r->bounds);
    char share[16] = "-";
    if (seconds > 0 && best > 0) snprintf(share, sizeof share, "%.0f%%", 100 * best / seconds);
    print_time(t, r->nanoseconds);
    fprintf(t->to, " %6.4g %8.2f %9.2f %8s  %-8s  ", per_step(t, (double)r->calls),
            seconds > 0 ? 1e-9 * r->bytes / seconds : 0, seconds > 0 ? 1e-9 * r->flops / seconds : 0, share, bound);
    print_plain(t->to, title, strlen(title));
    fputc('\n', t->to);
}

static void print_others(const Table *t, int32_t first) {
    char title[64];
    Row sum = {0};
    for (int32_t i = first; i < t->rows; i++) add_up(&sum, &t->row[i]);
    snprintf(title, sizeof title, "(%d others)", t->rows - first);
    print_row(t, &sum, "", title);
}

static void print_rows(const Table *t) {
    const int32_t shown = t->rows > ROWS_MOST ? ROWS_MOST - 1 : t->rows;
    Row sum = {0};
    fprintf(t->to, "%10s %7s %6s %8s %9s %8s  %-8s  %s\n", "ms", "share", "calls", "GB/s", "GFLOP/s", "of peak",
            "bound by", "op");
    for (int32_t i = 0; i < shown; i++) print_row(t, &t->row[i], bound_name(&t->row[i], t->peaks), t->row[i].title);
    if (shown < t->rows) print_others(t, shown);
    for (int32_t i = 0; i < t->rows; i++) add_up(&sum, &t->row[i]);
    print_row(t, &sum, "", "(all kernels)");
}

static void print_head(const Table *t) {
    const Recording *r = t->recording;
    const RecordedCall *first = &r->call[0], *last = &r->call[r->calls - 1];
    int32_t skipped = 0;
    for (int32_t i = 0; i < r->calls; i++) skipped += r->call[i].skipped;
    fprintf(t->to, "profile of step %" PRId64 " to %" PRId64 ": kernels one by one; per step\n", first->iteration,
            last->iteration);
    if (skipped) fprintf(t->to, "%d of them were skipped, and their updates did not run\n", skipped);
    fprintf(t->to, "peaks: %s", t->peaks->source);
    if (t->launch > 0) fprintf(t->to, "; a launch takes %.2f us", 1e6 * t->launch);
    fputc('\n', t->to);
}

static void print_foot(const Table *t, double plain_seconds) {
    print_time(t, t->call_time - t->kernel_time);
    fprintf(t->to, " outside kernels\n");
    print_time(t, t->call_time);
    fprintf(t->to, " step");
    if (plain_seconds > 0) fprintf(t->to, "; one before that was not profiled took %.4f ms", 1e3 * plain_seconds);
    fputc('\n', t->to);
}

bool profile_table_print(const Recording *r, const Peaks *peaks, double plain_seconds, FILE *to) {
    Table t = {.recording = r, .peaks = peaks, .to = to};
    const bool is_made = find_launch(&t) && make_rows(&t);
    if (is_made) {
        print_head(&t);
        print_rows(&t);
        print_foot(&t, plain_seconds);
    }
    free(t.row);
    return is_made;
}
