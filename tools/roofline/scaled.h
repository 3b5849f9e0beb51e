/* scaled.h: large numbers for people: "12.3 M". */
#ifndef AMP_TOOLS_SCALED_H
#define AMP_TOOLS_SCALED_H

/* Three digits and a prefix, " " for none.  Writes into |out| and returns it. */
const char *scaled(double v, char out[16]);

#endif
