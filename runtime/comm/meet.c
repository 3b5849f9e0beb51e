/* meet.c: one record of each rank, for all. */
#include <stdio.h>
#include <string.h>

#include "amp/version.h"
#include "base/error.h"
#include "runtime/comm/comm.h"

/* Every version of the library gathers this first, so that versions that differ can tell. */
typedef struct Head {
    char format[8];
    uint64_t meeting; /* its number: as many collectives were before it */
    uint64_t size;
    char what[40];
} Head;
_Static_assert(sizeof(Head) == 64, "the same on every machine and in every version");

static const char format[8] = "ampmeet1";

/* What of the options has to be the same. */
typedef struct Hello {
    char version[32];
    uint32_t ordered;
    uint32_t reserved;
} Hello;

size_t amp_meeting_bytes(int32_t ranks) { return (size_t)ranks * sizeof(Head); }

static amp_status gather(amp_comm_state *c, void *all, size_t size, const char *what, amp_error *err) {
    uint64_t number;
    AMP_TRY(amp_comm_start(&c->head, AMP_COLLECTIVE_ALL_GATHER, AMP_DT_U8, all, size * (size_t)c->head.size, 0, what,
                           &number, err));
    return amp_comm_wait(&c->head, number, err);
}

static amp_status compare(amp_comm_state *c, const Head *mine, amp_error *err) {
    const Head *heads = c->heads;
    for (int32_t r = 0; r < c->head.size; r++) {
        const Head *h = &heads[r];
        if (memcmp(h->format, mine->format, sizeof h->format))
            return amp_comm_fail(c, err, AMP_MISMATCH,
                                 "rank %d has a libamp_comm of another version: give all ranks the same", r);
        if (h->meeting != mine->meeting || h->size != mine->size || strncmp(h->what, mine->what, sizeof h->what))
            return amp_comm_fail(c, err, AMP_PEER_FAILED,
                                 "rank %d meets for '%.*s' (%llu bytes, after %llu collectives), this rank for '%s' "
                                 "(%llu, after %llu): all ranks have to make the same calls in the same order",
                                 r, (int)sizeof h->what, h->what, (unsigned long long)h->size,
                                 (unsigned long long)h->meeting, mine->what, (unsigned long long)mine->size,
                                 (unsigned long long)mine->meeting);
    }
    return AMP_OK;
}

amp_status amp_comm_meet(amp_comm *comm, const void *mine, size_t size, void *all, const char *what, amp_error *err) {
    amp_comm_state *c = (amp_comm_state *)comm;
    if (!c) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_comm_meet: comm is NULL");
    Head head = {.meeting = c->next_number, .size = size};
    if (!what) what = "a meeting";
    if (size && (!mine || !all)) return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: mine or all is NULL", what);
    memcpy(head.format, format, sizeof format);
    snprintf(head.what, sizeof head.what, "%s", what);
    memcpy((Head *)c->heads + c->head.rank, &head, sizeof head);
    AMP_TRY(gather(c, c->heads, sizeof head, what, err));
    AMP_TRY(compare(c, &head, err));
    if (!size) return AMP_OK;
    memmove((unsigned char *)all + (size_t)c->head.rank * size, mine, size);
    return gather(c, all, size, what, err);
}

/* Rank by rank, through the memory of the heads, which has room for it. */
amp_status amp_comm_hello(amp_comm_state *c, amp_error *err) {
    Hello mine = {.ordered = c->head.ordered};
    snprintf(mine.version, sizeof mine.version, "%s", AMP_VERSION);
    AMP_TRY(amp_comm_meet(&c->head, NULL, 0, NULL, "amp_comm_open", err));
    Hello *all = c->heads;
    _Static_assert(sizeof *all <= sizeof(Head), "the memory of the heads has room for it");
    all[c->head.rank] = mine;
    AMP_TRY(gather(c, all, sizeof mine, "amp_comm_open", err));
    for (int32_t r = 0; r < c->head.size; r++) {
        if (strncmp(all[r].version, mine.version, sizeof mine.version))
            return amp_comm_fail(c, err, AMP_MISMATCH, "rank %d has libamp_comm %.*s, this rank %s", r,
                                 (int)sizeof all[r].version, all[r].version, mine.version);
        if (all[r].ordered != mine.ordered)
            return amp_comm_fail(c, err, AMP_MISMATCH,
                                 "rank %d was opened with ordered = %u, this rank with %u: give all ranks the same", r,
                                 (unsigned)all[r].ordered, (unsigned)mine.ordered);
    }
    return AMP_OK;
}
