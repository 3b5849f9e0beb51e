/* futex.h: sleeping until a word changes.  No lock is held, so that none can be left locked in a process that forks.
 *
 * The file that includes it defines _GNU_SOURCE. */
#ifndef AMP_BASE_FUTEX_H
#define AMP_BASE_FUTEX_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux's numbers (futex(2)); its header is not there for every C library. */
enum { AMP_FUTEX_WAIT_PRIVATE = 128, AMP_FUTEX_WAKE_PRIVATE = 129 };

/* Sleeps while the word is |seen|; it may also return for no reason. */
static inline void amp_futex_wait(atomic_int *word, int seen) {
    syscall(SYS_futex, word, AMP_FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}
static inline void amp_futex_wake(atomic_int *word, int count) {
    syscall(SYS_futex, word, AMP_FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

#endif
