/* plot.c: see run_log.h. */
#include "tools/amprun/watch/run_log.h"

#include <math.h>
#include <string.h>

enum { MOST_COLUMNS = 200, MOST_ROWS = 50, ACROSS = 2, DOWN = 4, BRAILLE = 0x2800 };

/* The bit of a point of a character (Unicode, "Braille Patterns"): by column, by row; and of one in ASCII. */
static const unsigned char bits[ACROSS][DOWN] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};

static const char ascii[] = {' ', '\'', '.', ':'};

typedef struct Range {
    double least, largest;
} Range;

static double mean_of(const double *values, int from, int to) {
    double sum = 0;
    int finite = 0;
    for (int i = from; i < to; i++) {
        if (!isfinite(values[i])) continue;
        sum += values[i];
        finite++;
    }
    return finite ? sum / finite : NAN;
}

/* By point; returns how many there are. */
static int take_points(const double *values, int count, int most, double *points) {
    const int used = count < most ? count : most;
    for (int i = 0; i < used; i++)
        points[i] = mean_of(values, (int)((long long)i * count / used), (int)((long long)(i + 1) * count / used));
    return used;
}

static bool find_range(const double *points, int count, Range *out) {
    *out = (Range){INFINITY, -INFINITY};
    for (int i = 0; i < count; i++) {
        if (!isfinite(points[i])) continue;
        out->least = fmin(out->least, points[i]);
        out->largest = fmax(out->largest, points[i]);
    }
    return out->least <= out->largest;
}

static void put_character(FILE *to, unsigned char dots, bool braille) {
    if (!braille) {
        fputc(ascii[dots], to);
        return;
    }
    const unsigned code = BRAILLE + dots;
    fputc((int)(0xE0 | code >> 12), to);
    fputc((int)(0x80 | (code >> 6 & 0x3F)), to);
    fputc((int)(0x80 | (code & 0x3F)), to);
}

void plot_curve(FILE *to, const double *values, int count, PlotSize size) {
    unsigned char dots[MOST_ROWS][MOST_COLUMNS] = {{0}};
    double points[ACROSS * MOST_COLUMNS];
    Range range;
    if (size.columns > MOST_COLUMNS) size.columns = MOST_COLUMNS;
    if (size.rows > MOST_ROWS) size.rows = MOST_ROWS;
    const int across = size.braille ? ACROSS : 1, down = size.braille ? DOWN : 2;
    const int used = take_points(values, count, across * size.columns, points), height = down * size.rows;
    if (!find_range(points, used, &range)) return;
    const bool is_flat = range.largest <= range.least;
    const double span = is_flat ? 1 : range.largest - range.least;
    if (is_flat) range.largest += 0.5; /* in the middle, with its value beside it */
    for (int i = 0; i < used; i++) {
        if (!isfinite(points[i])) continue;
        const int y = (int)((range.largest - points[i]) / span * (height - 1) + 0.5);
        dots[y / down][i / across] |= bits[i % across][y % down];
    }
    for (int row = 0; row < size.rows; row++) {
        if (is_flat ? row == (int)(0.5 * (height - 1) + 0.5) / down : row == size.rows - 1)
            fprintf(to, "%10.4g ", range.least);
        else if (row == 0 && !is_flat) fprintf(to, "%10.4g ", range.largest);
        else fprintf(to, "%10s ", "");
        for (int column = 0; column < (used + across - 1) / across; column++)
            put_character(to, dots[row][column], size.braille);
        fputc('\n', to);
    }
}
