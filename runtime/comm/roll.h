/* roll.h: the roll call: before the timeout of a collective ends, every rank is asked whether it lives and what it is
 * at, which its thread answers, also while it computes.
 *
 *     no answer                  it has died, hangs or was stopped
 *     in another collective      they make different calls
 *     not there yet, computing   late: it gets the timeout once more
 *     .. loading, saving, ..     that may take twenty timeouts
 *     all are in it              the network, or the library
 *
 * A rank that fails so says it to the others, so that all end with the same reason.
 */
#ifndef AMP_RUNTIME_COMM_ROLL_H
#define AMP_RUNTIME_COMM_ROLL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a rank has last answered. */
typedef struct amp_answer {
    uint64_t round; /* of the question; 0: never */
    uint64_t started;
    int32_t does;
    int64_t step;
    bool differs; /* its collective of the number that was asked for is another one: */
    char what[64];
} amp_answer;

/* What it has asked, and has not been answered. */
typedef struct amp_question {
    bool open;
    uint64_t round, number, count;
    int32_t op, dtype;
} amp_question;

/* Of the driver. */
typedef struct amp_roll {
    uint64_t round; /* of questions */
    int64_t since;  /* |moved| of the wait that they are about */
    int64_t granted;
    int64_t asked; /* when; 0: not yet */
    int64_t read;  /* when letters were last looked for */
    int32_t open;  /* questions of others */
} amp_roll;

#ifdef __cplusplus
}
#endif
#endif
