/* watch.c: amprun watch: a log that is being written, drawn once a second on a terminal that clears its screen. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "tools/amprun/amprun.h"
#include "tools/amprun/watch/run_log.h"
#include "tools/standard_streams.h"

enum { COLUMNS = 80, AXIS = 12, LOSS_ROWS = 8, SCALE_ROWS = 3 };
enum { NUMBERS = 1 + 5 + 1 + 10 + 1 + 9 + 1 + 9 + 1 + 10, LEAST_NAME = 12 }; /* of a tensor's line */

static int columns_of(FILE *to) {
    struct winsize size;
    const bool is_known = !ioctl(fileno(to), TIOCGWINSZ, &size) && size.ws_col > AXIS + 10;
    return (is_known ? size.ws_col : COLUMNS) - AXIS;
}

/* ---- what is drawn ----------------------------------------------------------------------------------------------- */

static void draw_head(FILE *to, const RunLog *l) {
    fprintf(to, "%s, %s: iteration %" PRId64 ", %" PRId64 " updates, %" PRId64 " skipped", l->model, l->policy,
            l->iteration, l->step, l->skipped);
    if (isfinite(l->test_loss)) fprintf(to, ", test loss %.4g after epoch %" PRId64, l->test_loss, l->epoch);
    fputc('\n', to);
}

static void draw_curves(FILE *to, const RunLog *l) {
    const int columns = columns_of(to);
    const bool braille = standard_streams_utf8();
    double *powers = malloc(sizeof *powers * (size_t)(l->count ? l->count : 1));
    fprintf(to, "loss %.6g\n", l->loss[l->count - 1]);
    plot_curve(to, l->loss, l->count, (PlotSize){columns, LOSS_ROWS, braille});
    if (!powers) return;
    for (int i = 0; i < l->count; i++) powers[i] = log2(l->scale[i]);
    if (l->scale[l->count - 1] != 1 || l->skipped) {
        fprintf(to, "loss scale %g%s%s, as a power of 2\n", l->scale[l->count - 1], *l->health ? ", " : "", l->health);
        plot_curve(to, powers, l->count, (PlotSize){columns, SCALE_ROWS, braille});
    }
    free(powers);
}

static double percent(int64_t part, const LoggedTensor *t) { return 100.0 * (double)part / (double)t->count; }

static void draw_tensors(FILE *to, const RunLog *l) {
    if (!l->stats_at) return;
    if (!l->tensor_count) {
        fprintf(to, "in f16 every number of iteration %" PRId64 " would keep its magnitude\n", l->stats_at);
        return;
    }
    const int left = columns_of(to) + AXIS - NUMBERS, width = left < LEAST_NAME ? LEAST_NAME : left > 60 ? 60 : left;
    fprintf(to, "in f16, iteration %" PRId64 ":\n%-*s %-5s %10s %9s %9s %10s\n", l->stats_at, width, "tensor", "type",
            "largest", "to zero", "overflow", "not finite");
    for (int i = 0; i < l->tensor_count; i++) {
        const LoggedTensor *t = &l->tensor[i];
        const int length = (int)strlen(t->name),
                  cut = length > width ? length - width + 3 : 0; /* names differ at the end */
        fprintf(to, "%s%-*s %-5s %10.4g %8.3f%% %8.3f%% %9.3f%%\n", cut ? "..." : "", cut ? width - 3 : width,
                t->name + cut, t->dtype, t->largest, percent(t->flushed, t), percent(t->overflow, t),
                percent(t->broken, t));
    }
}

static void draw(FILE *to, const RunLog *l) {
    draw_head(to, l);
    if (l->count) draw_curves(to, l);
    draw_tensors(to, l);
    if (l->traced_at) fprintf(to, "iteration %" PRId64 " was not finite: %s\n", l->traced_at, l->traced);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static void redraw(const RunLog *l) {
    printf("\033[H\033[J");
    draw(stdout, l);
    fflush(stdout);
}

int command_watch(const Args *a) {
    RunLog l;
    const struct timespec second = {.tv_sec = 1};
    const bool moving = standard_streams_terminal(stdout);
    int failed = run_log_open(&l, a->model);
    if (!failed) failed = run_log_read(&l);
    if (!failed && !moving) draw(stdout, &l);
    while (!failed && moving) { /* until a signal ends it */
        redraw(&l);
        nanosleep(&second, NULL);
        failed = run_log_read(&l);
    }
    run_log_close(&l);
    return failed;
}
