/* process.h: running other programs, a few at a time. */
#ifndef AMP_CODEGEN_PROCESS_H
#define AMP_CODEGEN_PROCESS_H

#include "base/error.h"

typedef struct ProcessJob {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in PATH */
    const char *log;         /* file for what it prints */
} ProcessJob;

typedef enum ProcessEnd { PROCESS_OK, PROCESS_NOT_STARTED, PROCESS_FAILED } ProcessEnd;

typedef struct ProcessResult {
    ProcessEnd end;
    int job;    /* the first that did not end well */
    int reason; /* NOT_STARTED: errno; FAILED: the wait status */
} ProcessResult;

enum { PROCESS_AT_ONCE = 4, PROCESS_MAX_JOBS = 8 };

/* Runs all jobs, and waits for every one that was started.  Thread-safe. */
ProcessResult process_run(const ProcessJob *jobs, int count);

#endif
