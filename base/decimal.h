/* decimal.h: decimal text of doubles, the same in every locale (printf and strtod follow the process's). */
#ifndef AMP_BASE_DECIMAL_H
#define AMP_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DECIMAL_MAX = 32,      /* bytes that decimal_format writes at most, NUL included */
    DECIMAL_LONGEST = 1000 /* characters that decimal_parse reads at most */
};

/* The shortest decimal that reads back to the same bits, always with a dot; below 1e-4 and from 1e16 on with an
 * exponent: 0.001, 1.0, 65536.0, 1.0e-08, inf, -inf, nan.  Writes into |out| and returns it. */
char *decimal_format(double v, char out[DECIMAL_MAX]);

/* Reads all |n| bytes as [-+] digits [. digits] [e [-+] digits], correctly rounded; a digit on one side of the dot is
 * enough. False for anything else, and for more than DECIMAL_LONGEST characters.  A value too large gives infinity, one
 * too small zero, as strtod does. */
bool decimal_parse(const char *s, size_t n, double *out);

#ifdef __cplusplus
}
#endif

#endif
