/* progress.c: see progress.h. */
#include "tools/amprun/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 24, BAR_LEAST = 6, LINE = 512 };

double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_start(Progress *p, bool quiet) {
    *p = (Progress){.moving = !quiet && isatty(STDOUT_FILENO), .quiet = quiet, .start = seconds_now()};
}

double progress_rate(const Progress *p) {
    double seconds = seconds_now() - p->start;
    return seconds > 0 ? (double)p->samples / seconds : 0;
}

static int terminal_width(void) {
    struct winsize size;
    return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : 80;
}

/* What is right of the bar, its fields |gap| apart. */
static void format_fields(char out[LINE], const Progress *p, const ProgressNow *now, const char *gap, bool count) {
    double per_step = p->steps ? (seconds_now() - p->start) / (double)p->steps : 0;
    int64_t left = (int64_t)(per_step * (double)now->steps_left + 0.5);
    char batch[64] = "", metric[128] = "", scale[128] = "";
    if (count) snprintf(batch, sizeof batch, "%lld/%lld%s", (long long)now->batch, (long long)now->batches, gap);
    if (now->metric) snprintf(metric, sizeof metric, "%s%s %.3f", gap, now->metric, now->metric_value);
    if (now->scale > 0)
        snprintf(scale, sizeof scale, "%sscale %g%sskipped %lld", gap, now->scale, gap, (long long)p->skipped);
    snprintf(out, LINE, "%sloss %.3f%s%s%s%.0f/s%s%lld:%02lld left", batch, now->loss, metric, scale, gap,
             progress_rate(p), gap, (long long)(left / 60), (long long)(left % 60));
}

static void draw_bar(int width, int64_t batch, int64_t batches) {
    const char *no_colour = getenv("NO_COLOR"); /* https://no-color.org: set and not empty */
    bool colour = !no_colour || !*no_colour;
    int64_t done = batches ? batch * width / batches : 0;
    fputs(colour ? "\033[32m" : "", stdout);
    for (int i = 0; i < width; i++) fputs(i < done ? "━" : "─", stdout);
    fputs(colour ? "\033[0m" : "", stdout);
}

/* How a line is made narrower, step by step, until a bar fits. */
static const struct {
    const char *gap;
    bool count; /* of batches, which the bar shows too */
    int bar;    /* columns, at least */
} forms[] = {{"  ", true, BAR}, {" ", true, BAR_LEAST}, {" ", false, BAR_LEAST}};

/* One line, never wider than the terminal, or the next would not replace it. */
static void draw(const Progress *p, const ProgressNow *now) {
    char epoch[64], fields[LINE];
    const char *gap = "";
    int bar = 0, room = terminal_width() - 1;
    room -= snprintf(epoch, sizeof epoch, "epoch %lld/%lld", (long long)now->epoch, (long long)now->epochs);
    for (size_t i = 0; i < sizeof forms / sizeof *forms && (!i || bar < forms[i - 1].bar); i++) {
        gap = forms[i].gap;
        format_fields(fields, p, now, gap, forms[i].count);
        bar = room - (int)(strlen(fields) + 2 * strlen(gap));
    }
    printf("\r\033[K%s%s", epoch, gap);
    if (bar >= BAR_LEAST) {
        draw_bar(bar < BAR ? bar : BAR, now->batch, now->batches);
        fputs(gap, stdout);
    }
    room -= (int)strlen(gap);
    printf("%.*s", room > 0 ? room : 0, fields);
    fflush(stdout);
}

void progress_step(Progress *p, const ProgressNow *now, int64_t n, bool skipped) {
    p->steps++;
    p->samples += n;
    p->skipped += skipped;
    double t = seconds_now();
    if (!p->moving || (t - p->shown < 0.1 && now->batch < now->batches)) return;
    p->shown = t;
    draw(p, now);
}

void progress_clear(Progress *p) {
    if (p->moving) fputs("\r\033[K", stdout);
}
