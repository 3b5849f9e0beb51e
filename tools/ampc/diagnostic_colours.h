/* diagnostic_colours.h: diagnostics of libampc on a terminal. */
#ifndef AMP_TOOLS_DIAGNOSTIC_COLOURS_H
#define AMP_TOOLS_DIAGNOSTIC_COLOURS_H

#include <stdio.h>

/* |text| as amp_compile_options.diagnostic gives it.  Where |to| takes colours (standard_streams_colour), the words
 * error, warning, note and help are coloured, and the carets below a line of the model. */
void print_diagnostic(FILE *to, const char *text);

#endif
