/* buckets.h: gradients that ranks send in one message. */
#ifndef AMP_PASSES_COMMON_BUCKETS_H
#define AMP_PASSES_COMMON_BUCKETS_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In a message; no batch changes them. */
int64_t state_bytes(const State *s);

typedef VEC(const State *) StateList;

/* "2 of 6 gradients, 20.5 KB" */
const char *bucket_text(Arena *a, const StateList *states, int of, const char *what);

/* A state that ranks add up, and the place in a function after which it is complete. */
typedef struct ReadyState {
    const State *sum;
    int at;
    bool fits; /* ranks may have shares of it */
} ReadyState;

/* By place; what is complete at one place stays as it is. */
void buckets_sort(ReadyState *list, int count);
/* Bytes of a bucket of the sorted |list|, at most |largest|. */
int64_t buckets_size(const ReadyState *list, int count, int64_t largest);
/* How many of |list|, from its first on, are the next bucket of |room| bytes; *|bytes|: of them. */
int buckets_take(const ReadyState *list, int count, int64_t room, int64_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
