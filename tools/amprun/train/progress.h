/* progress.h: what training prints: one line that moves, where the output is a terminal; elsewhere one plain line per
 * epoch, and one a minute. */
#ifndef AMP_TOOLS_PROGRESS_H
#define AMP_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "amp/base.h"

enum { PROGRESS_LINE = 1024 };

typedef struct Progress {
    FILE *to; /* NULL: nothing is printed */
    bool moving, colour, utf8;
    double start, shown;      /* seconds */
    int64_t steps, samples;   /* since start */
    int64_t skipped;          /* since start */
    char line[PROGRESS_LINE]; /* that has no end yet */
} Progress;

enum { PROGRESS_NUMBERS = 8 };

typedef struct ProgressNumber {
    const char *name; /* "loss", "acc" */
    double value;
} ProgressNumber;

typedef struct ProgressNow {
    int64_t epoch, epochs, batch, batches, steps_left;
    ProgressNumber number[PROGRESS_NUMBERS];
    int numbers;
    float scale;            /* 0: trains unscaled */
    const char *scale_note; /* a word after it; "": none */
} ProgressNow;

/* |to|: standard output or error.  A terminal of the type "dumb" gets no moving line; colours follow NO_COLOR. */
void progress_start(Progress *p, FILE *to);
double progress_rate(const Progress *p); /* samples per second */
/* After each step; draws at most ten times a second, prints a line at most once a minute. */
void progress_step(Progress *p, const ProgressNow *now, int64_t n, bool skipped);
/* Removes the moving line, so that a plain one can be printed. */
void progress_clear(const Progress *p);
/* Prints a line, or adds to one.  Where nobody reads any more (a closed pipe), says so once on standard error and
 * prints nothing from then on. */
void progress_print(Progress *p, const char *format, ...) AMP_PRINTF(2, 3);

#endif
