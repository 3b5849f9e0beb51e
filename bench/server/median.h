/* median.h: of the means of several rounds. */
#ifndef AMP_BENCH_SERVER_MEDIAN_H
#define AMP_BENCH_SERVER_MEDIAN_H

#include <stdlib.h>

static inline int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts them. */
static inline double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

#endif
