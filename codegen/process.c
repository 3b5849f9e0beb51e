/* process.c: see process.h. */
#define _POSIX_C_SOURCE 200809L /* posix_spawn, waitpid */
#include "codegen/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { PROCESS_AT_ONCE = 4 };

static int open_files(posix_spawn_file_actions_t *actions, const char *log) {
    int error = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    if (!error) error = posix_spawn_file_actions_addopen(actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!error) error = posix_spawn_file_actions_adddup2(actions, 1, 2);
    return error;
}

/* A compiler is a driver with children: it starts with no signal ignored or blocked, whatever this program does. */
static int reset_signals(posix_spawnattr_t *attributes) {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int error = posix_spawnattr_setsigdefault(attributes, &all);
    if (!error) error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error) error = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    return error;
}

/* 0, or errno. */
static int start(const ProcessJob *job, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = open_files(&actions, job->log);
        if (!error) error = reset_signals(&attributes);
        if (!error) error = posix_spawnp(pid, job->argv[0], &actions, &attributes, (char *const *)job->argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* The wait status.  The call returns when the child has ended, also where somebody else took its status. */
static int finish(pid_t pid, const char *output) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return errno == ECHILD && !access(output, F_OK) ? 0 : -1;
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
            int status = finish(pids[finished], jobs[finished].output);
            if (status) note(&result, PROCESS_FAILED, finished, status);
            finished++;
        } else {
            break;
        }
    }
    return result;
}
