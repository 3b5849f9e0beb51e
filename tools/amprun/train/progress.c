/* progress.c: see progress.h. */
#include "tools/amprun/train/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "tools/amprun/amprun.h"
#include "tools/standard_streams.h"

enum { BAR = 24, BAR_LEAST = 6, LINE = PROGRESS_LINE, QUIET_SECONDS = 60 };

void progress_start(Progress *p, FILE *to) {
    *p = (Progress){.to = to, .start = amp_seconds()};
    p->shown = p->start;
    p->moving = to && standard_streams_terminal(to);
    p->colour = to && standard_streams_colour(to);
    p->utf8 = standard_streams_utf8();
}

double progress_rate(const Progress *p) {
    double seconds = amp_seconds() - p->start;
    return seconds > 0 ? (double)p->samples / seconds : 0;
}

/* ---- plain lines ------------------------------------------------------------------------------------------------- */

/* Later writes succeed, and so does the flush at the end of the program. */
static void give_up_reader(FILE *to) {
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    dup2(fd, fileno(to));
    close(fd);
    clearerr(to);
}

static void check_written(Progress *p, bool failed) {
    if (!failed) return;
    int reason = errno;
    report_text("standard output: %s; training goes on and prints nothing more", strerror(reason));
    if (reason == EPIPE) give_up_reader(p->to);
    else standard_streams_note(true);
    p->to = NULL;
    p->moving = false;
}

static void print_text(Progress *p, const char *text) {
    const bool failed = standard_streams_width(p->to) ? !print_wrapped(p->to, text) : fputs(text, p->to) < 0;
    check_written(p, (fflush(p->to) != 0) | failed);
}

void progress_print(Progress *p, const char *format, ...) {
    va_list args;
    char *text = NULL;
    if (!p->to) return;
    va_start(args, format);
    const int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0) return;
    const size_t at = strlen(p->line);
    const bool fits = at + (size_t)length < sizeof p->line;
    if (fits) memcpy(p->line + at, text, (size_t)length + 1);
    if (!fits || strchr(text, '\n')) {
        print_text(p, p->line);
        *p->line = '\0';
    }
    if (!fits && p->to) print_text(p, text);
    free(text);
}

/* What is written next may go to another stream of the same terminal. */
void progress_clear(const Progress *p) {
    if (!p->moving) return;
    fputs("\r\033[K", p->to);
    fflush(p->to);
}

/* ---- the line that moves ----------------------------------------------------------------------------------------- */

/* What is right of the bar, its fields |gap| apart. */
static void format_fields(char out[LINE], const Progress *p, const ProgressNow *now, const char *gap, bool count) {
    double per_step = p->steps ? (amp_seconds() - p->start) / (double)p->steps : 0;
    int64_t left = (int64_t)(per_step * (double)now->steps_left + 0.5);
    int at = 0;
    if (count) at += snprintf(out, LINE, "%lld/%lld%s", (long long)now->batch, (long long)now->batches, gap);
    for (int i = 0; i < now->numbers && at < LINE / 2; i++)
        at += snprintf(out + at, LINE - (size_t)at, "%.64s %.3f%s", now->number[i].name, now->number[i].value, gap);
    if (at >= LINE) at = LINE - 1;
    if (now->scale > 0)
        at += snprintf(out + at, LINE - (size_t)at, "scale %.10g%s%s%sskipped %lld%s", now->scale,
                       *now->scale_note ? " " : "", now->scale_note, gap, (long long)p->skipped, gap);
    snprintf(out + at, LINE - (size_t)at, "%.0f/s%s%lld:%02lld left", progress_rate(p), gap, (long long)(left / 60),
             (long long)(left % 60));
}

static void draw_bar(const Progress *p, int width, int64_t batch, int64_t batches) {
    int64_t done = batches ? batch * width / batches : 0;
    fputs(p->colour ? "\033[32m" : "", p->to);
    for (int i = 0; i < width; i++) fputs(i < done ? (p->utf8 ? "━" : "=") : p->utf8 ? "─" : "-", p->to);
    fputs(p->colour ? "\033[0m" : "", p->to);
}

/* How a line is made narrower, step by step, until a bar fits. */
static const struct {
    const char *gap;
    bool count; /* of batches, which the bar shows too */
    int bar;    /* columns, at least */
} forms[] = {{"  ", true, BAR}, {" ", true, BAR_LEAST}, {" ", false, BAR_LEAST}};

/* One line, never wider than the terminal, or the next would not replace it. */
static void draw(Progress *p, const ProgressNow *now) {
    char epoch[64], fields[LINE];
    const char *gap = "";
    int bar = 0, room = standard_streams_width(p->to) - 1;
    room -= snprintf(epoch, sizeof epoch, "epoch %lld/%lld", (long long)now->epoch, (long long)now->epochs);
    for (size_t i = 0; i < sizeof forms / sizeof *forms && (!i || bar < forms[i - 1].bar); i++) {
        gap = forms[i].gap;
        format_fields(fields, p, now, gap, forms[i].count);
        bar = room - (int)(strlen(fields) + 2 * strlen(gap));
    }
    fprintf(p->to, "\r\033[K%s%s", epoch, gap);
    if (bar >= BAR_LEAST) {
        draw_bar(p, bar < BAR ? bar : BAR, now->batch, now->batches);
        fputs(gap, p->to);
    }
    room -= (int)strlen(gap);
    const bool failed = fprintf(p->to, "%.*s", room > 0 ? room : 0, fields) < 0;
    check_written(p, (fflush(p->to) != 0) | failed);
}

/* In a file, and in the log of a CI that ends what is silent for long: between the lines of epochs. */
static void print_sign_of_life(Progress *p, const ProgressNow *now) {
    char fields[LINE];
    format_fields(fields, p, now, "  ", true);
    progress_print(p, "  epoch %lld/%lld  %s\n", (long long)now->epoch, (long long)now->epochs, fields);
}

void progress_step(Progress *p, const ProgressNow *now, int64_t n, bool skipped) {
    p->steps++;
    p->samples += n;
    p->skipped += skipped;
    double t = amp_seconds();
    if (!p->to || (p->moving ? t - p->shown < 0.1 && now->batch < now->batches : t - p->shown < QUIET_SECONDS)) return;
    p->shown = t;
    (p->moving ? draw : print_sign_of_life)(p, now);
}
