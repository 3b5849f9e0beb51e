/* thread.h: starting a thread of the library's. */
#ifndef AMP_BASE_THREAD_H
#define AMP_BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* With |stack| bytes of stack, and signals blocked, so that the program's handlers run on its own threads; but faults
 * (SIGSEGV and such), which can only be told to the thread that makes them.  0, or an errno. */
int amp_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *arg);

#endif
