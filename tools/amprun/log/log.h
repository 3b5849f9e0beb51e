/* log.h: the file of --log: lines of JSON, each written at once as a whole.
 *
 * The first line says what is trained, and all that decides its numbers (log_head.c), then there is one for each step
 * ({"iteration": ...) and one for each evaluation ({"epoch": ...), in order.  A run that is killed leaves whole lines.
 */
#ifndef AMP_TOOLS_LOG_H
#define AMP_TOOLS_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"

/* Zeroed: nothing is logged. */
typedef struct Log {
    const char *path;
    int fd;
    FILE *line; /* the line that is being put together */
    char *text;
    size_t size;
    bool started; /* the file has a first line already */
    bool failed;  /* and that was reported: nothing more is written */
} Log;

/* Opens |path| ("-": standard output) and empties it.  Reports and returns 1 on failure. */
int log_open(Log *l, const char *path);
/* Opens it to go on after |iteration| steps: cuts a half line, and the lines of later steps and of later evaluations,
 * those after more than |epochs| epochs; they come again. */
int log_go_on(Log *l, const char *path, int64_t iteration, int64_t epochs);

/* Where to print a line, without its newline; NULL: nothing is logged. */
FILE *log_line(Log *l);
/* Writes the line.  The first failure is reported; training goes on without the log. */
void log_end_line(Log *l);

void log_sync(Log *l); /* to the disk, before a checkpoint that is newer */
int log_close(Log *l); /* 1: some lines are missing */

/* Writes all |size| bytes, or none: of a record of which the disk takes only a part, that part is taken back.  False:
 * errno says why. */
bool append_whole(int fd, const void *data, size_t size);

/* Of a file, as sha256sum prints it; "": it cannot be read. */
const char *file_sha256(const char *path, char out[65]);

/* ---- log_lines.c: reading a log of amprun train: its lines, and the values in them ------------------------------- */

typedef struct LogLines {
    const char *path;
    FILE *file;
    char *line; /* what is read of the line so far */
    size_t length;
    int64_t room;
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
