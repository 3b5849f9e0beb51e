/* standard_streams.h: descriptors 0, 1 and 2 of a tool, and text of others on a terminal. */
#ifndef AMP_TOOLS_STANDARD_STREAMS_H
#define AMP_TOOLS_STANDARD_STREAMS_H

#include "amp/base.h"

#include <stdbool.h>
#include <stdio.h>

/* Opens /dev/null on each of 0, 1 and 2 that is closed: the next file that is opened would get its number, and be
 * written by what was meant for a stream.  Called first in main. */
void standard_streams_open(void);

/* Called right after a write to standard output, with whether it failed: errno is kept for the message. */
void standard_streams_note(bool failed);

/* Flushes standard output.  Reports as |tool| and returns 1 where what was printed has not arrived. */
int standard_streams_flush(const char *tool);

/* Whether text may have characters that are not ASCII, by the locale, which this sets for characters alone. */
bool standard_streams_utf8(void);
/* Whether |to| is a terminal that takes moves of the cursor and colours: not of the type "dumb". */
bool standard_streams_terminal(FILE *to);
/* Columns of such a terminal; 0: it is none. */
int standard_streams_width(FILE *to);
/* --color: "auto", "always" or "never"; false: another word. */
bool standard_streams_colour_when(const char *when);
/* What --color says; auto, which is also what there is without it: a terminal, and NO_COLOR (https://no-color.org) is
 * not set, or empty. */
bool standard_streams_colour(FILE *to);

/* Text that may hold what others have written, names of a model say: control characters but newline and tab, which
 * could be commands to a terminal, become \\xNN. */
void print_plain(FILE *to, const char *text, size_t size);
/* The same of lines; what is wider than the terminal goes on below, indented.  False: it could not be written. */
bool print_wrapped(FILE *to, const char *text);
/* A line of such text on standard output; the first 4 KiB of it. */
void print_plain_line(const char *format, ...) AMP_PRINTF(1, 2);

#endif
