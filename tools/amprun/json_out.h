/* json_out.h: numbers in the JSON lines that amprun writes. */
#ifndef AMP_TOOLS_JSON_OUT_H
#define AMP_TOOLS_JSON_OUT_H

#include <stdio.h>

/* "key": number, with nine digits, enough for any f32.  JSON has no infinities: they and NaN become strings. */
void json_number(FILE *to, const char *key, double value);

#endif
