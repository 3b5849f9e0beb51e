/* start.h: how ranks come together in a folder, without believing what an earlier start left there.
 *
 *     DIR/ampc-start           rank 0: the random number of this start, and how many ranks there are
 *     DIR/ampc-NUMBER/lock     held by rank 0 as long as it lives
 *     DIR/ampc-NUMBER/hello.R  rank R: a random number of its own
 *     DIR/ampc-NUMBER/other    a process that was told of another number of ranks
 *     DIR/ampc-NUMBER/go       rank 0: the numbers of all, or why they do not start
 *     DIR/ampc-NUMBER/left.R   rank R has ended; who finds these of all removes everything
 *
 * DIR and DIR/ampc-NUMBER are of this user alone (folder.h).  Of an earlier start only files of these names, and those
 * of files_engine.h, are removed; a DIR that holds anything else is refused.
 *
 * The folder of the start is new, so rank 0 believes what is in it.  Another rank may find an old number first, but no
 * old `go` has the number that it has just drawn; it says hello again when the start is another one.
 */
#ifndef AMP_RUNTIME_COMM_FILES_START_H
#define AMP_RUNTIME_COMM_FILES_START_H

#include "runtime/comm/files/folder.h"

typedef struct amp_files_start {
    int32_t rank, ranks;
    double seconds;   /* that ranks have to come together */
    amp_folder given; /* DIR: |path| is given, |fd| made by joining, as is the rest: */
    amp_folder own;   /* DIR/ampc-NUMBER; none: not yet */
    uint64_t number, mine;
    bool made; /* DIR, by rank 0 */
    int lock;  /* -1: none */
} amp_files_start;

/* |numbers|: memory for one of each rank. */
amp_status amp_files_join(amp_files_start *s, uint64_t *numbers, amp_error *err);
/* Has the system look at the own folder anew. */
void amp_files_refresh(const amp_files_start *s);
/* This rank has nothing more to read or to tell. */
void amp_files_leave(amp_files_start *s);
/* Closes what is open; touches no file. */
void amp_files_close(amp_files_start *s);

#endif
