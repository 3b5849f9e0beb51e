/* log_lines.h: reading a log of amprun train (log.h): its lines, and the values in them. */
#ifndef AMP_TOOLS_AMPRUN_LOG_LINES_H
#define AMP_TOOLS_AMPRUN_LOG_LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"

typedef struct LogLines {
    const char *path;
    FILE *file;
    char *line; /* what is read of the line so far */
    size_t length, room;
    int64_t count;
} LogLines;

/* Takes a line, which lives as long as the call.  Reports and returns 1 to end the reading. */
typedef int LineTaker(void *user, const amp_json *line);

/* Report and return 1 on failure; in any case log_lines_close frees everything. */
int log_lines_open(LogLines *l, const char *path);
/* Gives |take| each line that is whole and was not read before: a log may still be written. */
int log_lines_read(LogLines *l, LineTaker *take, void *user);
void log_lines_close(LogLines *l);

/* What is not there, or of another type: NaN, 0, false, "". */
double log_number(const amp_json *object, const char *key); /* infinities and NaN are strings in a log */
int64_t log_whole(const amp_json *object, const char *key);
bool log_truth(const amp_json *object, const char *key);
const char *log_string(const amp_json *object, const char *key);
/* Without control characters, which a terminal would obey. */
void log_text(const amp_json *object, const char *key, char *out, size_t size);

#endif
