/* scaled.c: see scaled.h. */
#include "tools/roofline/scaled.h"

#include <stdio.h>

const char *scaled(double v, char out[16]) {
    static const char prefixes[] = " kMGTP";
    int i = 0;
    while (v >= 999.5 && prefixes[i + 1]) v /= 1000, i++;
    snprintf(out, 16, v < 9.995 && i ? "%.2f %c" : v < 99.95 && i ? "%.1f %c" : "%.0f %c", v, prefixes[i]);
    return out;
}
