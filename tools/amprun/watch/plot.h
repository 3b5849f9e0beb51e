/* plot.h: a curve in characters: in braille two by four points each, else one by two in ASCII. */
#ifndef AMP_TOOLS_AMPRUN_WATCH_PLOT_H
#define AMP_TOOLS_AMPRUN_WATCH_PLOT_H

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PlotSize {
    int columns, rows; /* of characters, without the axis */
    bool braille;
} PlotSize;

/* |count| values from left to right, as many as points or more: the mean of those that fall on one point.  Values that
 * are not finite leave gaps.  Rows of text, each with a newline; the largest and smallest value stand beside the first
 * and last.  Nothing where no value is finite. */
void plot_curve(FILE *to, const double *values, int count, PlotSize size);

#ifdef __cplusplus
}
#endif

#endif
