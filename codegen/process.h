/* process.h: running other programs, a few at a time. */
#ifndef AMP_CODEGEN_PROCESS_H
#define AMP_CODEGEN_PROCESS_H

#include <stdint.h>

typedef struct ProcessJob {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in PATH */
    const char *log;         /* file for what it prints */
    const char *output;      /* file that it makes, and removes where it fails */
} ProcessJob;

/* Asked while jobs run: other than 0 ends them.  All zeros: jobs are never cancelled. */
typedef struct ProcessCancel {
    int32_t (*cancelled)(void *user);
    void *user;
} ProcessCancel;

typedef enum ProcessEnd { PROCESS_OK, PROCESS_NOT_STARTED, PROCESS_FAILED, PROCESS_CANCELLED } ProcessEnd;

typedef struct ProcessResult {
    ProcessEnd end;
    int job;    /* the first that did not end well */
    int reason; /* NOT_STARTED: errno; FAILED: the wait status, or -1 where it is not known */
} ProcessResult;

enum { PROCESS_MAX_JOBS = 8 };

/* Runs at most PROCESS_MAX_JOBS jobs, and waits for every one that was started.  Thread-safe.
 * Where the program that this is part of ignores SIGCHLD, or waits for children of its own by waitpid(-1), the system
 * has no exit status for us any more: then the job's output says whether it ended well.
 * Jobs that may be cancelled run in process groups of their own, which are ended with all that the jobs started. */
ProcessResult process_run(const ProcessJob *jobs, int count, const ProcessCancel *cancel);

#endif
