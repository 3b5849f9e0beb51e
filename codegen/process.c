/* process.c: see process.h. */
#define _POSIX_C_SOURCE 200809L /* posix_spawn, waitpid */

#include "codegen/process.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>

extern char **environ;

/* 0, or errno. */
static int start(const ProcessJob *job, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!error) error = posix_spawn_file_actions_addopen(&actions, 1, job->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (!error) error = posix_spawnp(pid, job->argv[0], &actions, NULL, (char *const *)job->argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* The wait status; not zero where it cannot be known. */
static int finish(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return status;
}

static void note(ProcessResult *r, ProcessEnd end, int job, int reason) {
    if (r->end == PROCESS_OK) *r = (ProcessResult){end, job, reason};
}

ProcessResult process_run(const ProcessJob *jobs, int count) {
    ProcessResult result = {PROCESS_OK, 0, 0};
    pid_t pids[PROCESS_MAX_JOBS];
    int started = 0, finished = 0;
    while (finished < count) {
        bool room = started < count && started - finished < PROCESS_AT_ONCE && result.end == PROCESS_OK;
        if (room) {
            int error = start(&jobs[started], &pids[started]);
            if (error) note(&result, PROCESS_NOT_STARTED, started, error);
            else started++;
        } else if (finished < started) {
            int status = finish(pids[finished]);
            if (status) note(&result, PROCESS_FAILED, finished, status);
            finished++;
        } else {
            break;
        }
    }
    return result;
}
