/* log.h: the file of --log: lines of JSON, each written at once as a whole.
 *
 * The first line says what is trained, and all that decides its numbers (log_head.h), then there is one for each step
 * ({"iteration": ...) and one for each evaluation ({"epoch": ...), in order.  A run that is killed leaves whole lines.
 */
#ifndef AMP_TOOLS_LOG_H
#define AMP_TOOLS_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

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

#endif
