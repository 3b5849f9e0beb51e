/* process.c: see process.h. */
#define _POSIX_C_SOURCE 200809L /* posix_spawn, waitpid */
#include "codegen/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>
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
static int set_attributes(posix_spawnattr_t *attributes, bool own_group) {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int error = posix_spawnattr_setsigdefault(attributes, &all);
    if (!error) error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error) error = posix_spawnattr_setpgroup(attributes, 0);
    short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    if (own_group) flags |= POSIX_SPAWN_SETPGROUP;
    if (!error) error = posix_spawnattr_setflags(attributes, flags);
    return error;
}

/* 0, or errno. */
static int start(const ProcessJob *job, bool own_group, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = open_files(&actions, job->log);
        if (!error) error = set_attributes(&attributes, own_group);
        if (!error) error = posix_spawnp(pid, job->argv[0], &actions, &attributes, (char *const *)job->argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

enum { CANCEL_POLL_MS = 10, CANCEL_PATIENCE_MS = 1000 };

typedef struct Running {
    const ProcessJob *jobs;
    const ProcessCancel *cancel;
    pid_t pids[PROCESS_MAX_JOBS];
    int started, finished;
    ProcessResult result;
} Running;

static void note(Running *r, ProcessEnd end, int job, int reason) {
    if (r->result.end == PROCESS_OK) r->result = (ProcessResult){end, job, reason};
}

/* Compilers end, and remove what is half written, when they are asked to; what does not is ended all the same. */
static void end_all(const Running *r, int signal_number) {
    for (int i = r->finished; i < r->started; i++) kill(-r->pids[i], signal_number);
}

/* For the oldest job, or until the jobs are to end. */
static void wait_a_little(Running *r, int *patience) {
    nanosleep(&(struct timespec){.tv_nsec = CANCEL_POLL_MS * 1000000}, NULL);
    if (r->result.end != PROCESS_CANCELLED) {
        if (!r->cancel->cancelled(r->cancel->user)) return;
        r->result = (ProcessResult){PROCESS_CANCELLED, r->finished, 0};
        end_all(r, SIGTERM);
        *patience = CANCEL_PATIENCE_MS;
    }
    *patience -= CANCEL_POLL_MS;
    if (*patience < 0) end_all(r, SIGKILL);
}

/* The wait status of the oldest job.  Returns when it has ended, also where somebody else took its status. */
static int finish(Running *r) {
    int status = 0, patience = CANCEL_PATIENCE_MS, options = r->cancel->cancelled ? WNOHANG : 0;
    for (;;) {
        pid_t ended = waitpid(r->pids[r->finished], &status, options);
        if (ended > 0) return status;
        if (ended == 0) wait_a_little(r, &patience);
        else if (errno != EINTR) return errno == ECHILD && !access(r->jobs[r->finished].output, F_OK) ? 0 : -1;
    }
}

ProcessResult process_run(const ProcessJob *jobs, int count, const ProcessCancel *cancel) {
    Running r = {.jobs = jobs, .cancel = cancel, .result = {PROCESS_OK, 0, 0}};
    if (cancel->cancelled && cancel->cancelled(cancel->user)) return (ProcessResult){PROCESS_CANCELLED, 0, 0};
    while (r.finished < count) {
        bool room = r.started < count && r.started - r.finished < PROCESS_AT_ONCE && r.result.end == PROCESS_OK;
        if (room) {
            int error = start(&jobs[r.started], cancel->cancelled != NULL, &r.pids[r.started]);
            if (error) note(&r, PROCESS_NOT_STARTED, r.started, error);
            else r.started++;
        } else if (r.finished < r.started) {
            int status = finish(&r);
            if (status) note(&r, PROCESS_FAILED, r.finished, status);
            r.finished++;
        } else {
            break;
        }
    }
    return r.result;
}
