/* thread.c: see thread.h. */
#define _POSIX_C_SOURCE 200809L /* pthread_sigmask */
#include "base/thread.h"

#include <signal.h>

static void block_signals(sigset_t *before) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

int amp_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *arg) {
    pthread_attr_t attributes;
    sigset_t before;
    int failed = pthread_attr_init(&attributes);
    if (failed) return failed;
    failed = pthread_attr_setstacksize(&attributes, stack);
    block_signals(&before); /* a new thread has the mask of the one that makes it */
    if (!failed) failed = pthread_create(thread, &attributes, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failed;
}
