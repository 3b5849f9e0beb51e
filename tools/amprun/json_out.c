/* json_out.c: see json_out.h. */
#include "tools/amprun/json_out.h"

#include <math.h>

void json_number(FILE *to, const char *key, double value) {
    if (isfinite(value)) fprintf(to, "\"%s\": %.9g", key, value);
    else fprintf(to, "\"%s\": \"%s\"", key, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}
