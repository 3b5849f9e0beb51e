/* files_engine.c: see files_engine.h.
 *
 *     DIR/ampc-NUMBER/lane.L.N.R       what rank R brings to message N of lane L: a head, and its elements
 *     DIR/ampc-NUMBER/letter.TO.R.N    letter N of rank R to rank TO, which removes it
 *
 * Every rank writes a file for every message, if only its head, and a message is done when the files of all have been
 * read.  So when message N is done all ranks have come to it and have read message N - 1, whose own file is removed.
 */
#define _POSIX_C_SOURCE 200809L
#include "runtime/comm/files/files_engine.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "runtime/comm/files/start.h"

enum { SHORTEST = 50000, LONGEST = 5000000 /* nanoseconds between looks */ };

typedef struct Lane {
    amp_message now;
    uint64_t number; /* messages started */
    int32_t next;    /* the rank whose file is read next */
    int64_t since;   /* when it was started */
    int64_t looked;
} Lane;

/* What a rank counts of another one. */
typedef struct Peer {
    uint64_t sent, received; /* letters */
} Peer;

typedef struct FilesEngine {
    amp_engine head;
    amp_files_start start;
    char name[AMP_FOLDER_MOST + 16];
    Lane lanes[AMP_LANES];
    Peer *peers;
    uint64_t *numbers; /* of the start */
} FilesEngine;

/* Of a message's file.  All but |rank| is the same on all ranks, or they make different calls. */
typedef struct Head {
    uint64_t number, count;
    int32_t op, dtype, root, ranks;
    unsigned char reserved[32]; /* so that elements begin at a multiple of a cache line */
} Head;
_Static_assert(sizeof(Head) == 64, "elements are aligned");

typedef struct Name {
    char text[AMP_FOLDER_NAME];
} Name;

static Name message_name(int32_t lane, uint64_t number, int32_t rank) {
    Name n;
    snprintf(n.text, sizeof n.text, "lane.%d.%llu.%d", lane, (unsigned long long)number, rank);
    return n;
}

static Name letter_name(int32_t to, int32_t from, uint64_t number) {
    Name n;
    snprintf(n.text, sizeof n.text, "letter.%d.%d.%llu", to, from, (unsigned long long)number);
    return n;
}

/* ---- joining and leaving ----------------------------------------------------------------------------------------- */

static amp_status connect_ranks(amp_engine *engine, amp_error *err) {
    FilesEngine *e = (FilesEngine *)engine;
    AMP_TRY(amp_files_join(&e->start, e->numbers, err));
    engine->rank = e->start.rank;
    engine->size = e->start.ranks;
    return AMP_OK;
}

static void leave_ranks(amp_engine *engine) { amp_files_leave(&((FilesEngine *)engine)->start); }

static void close_engine(amp_engine *engine) {
    FilesEngine *e = (FilesEngine *)engine;
    const amp_allocator allocator = engine->allocator;
    const size_t ranks = (size_t)e->start.ranks;
    amp_files_close(&e->start);
    amp_free(&allocator, e->peers, ranks * sizeof *e->peers);
    amp_free(&allocator, e->numbers, ranks * sizeof *e->numbers);
    amp_free(&allocator, e, sizeof *e);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static size_t part_of(const FilesEngine *e, const amp_message *m) {
    return m->count / (size_t)e->start.ranks * amp_dtype_size(m->dtype);
}

static char *part_at(const FilesEngine *e, const amp_message *m, void *of, int32_t rank) {
    return (char *)of + (size_t)rank * part_of(e, m);
}

static Head head_of(const FilesEngine *e, const Lane *l) {
    return (Head){.number = l->number,
                  .count = l->now.count,
                  .op = (int32_t)l->now.op,
                  .dtype = (int32_t)l->now.dtype,
                  .root = l->now.op == AMP_FROM_RANK ? l->now.rank : 0,
                  .ranks = e->start.ranks};
}

/* What this rank brings. */
static amp_piece brings(const FilesEngine *e, const amp_message *m) {
    const int32_t rank = e->start.rank;
    const size_t bytes = m->count * amp_dtype_size(m->dtype);
    if (m->op == AMP_GATHER) return (amp_piece){part_at(e, m, m->data, rank), part_of(e, m)};
    if (m->op == AMP_FROM_RANK && m->rank != rank) return (amp_piece){NULL, 0};
    return (amp_piece){m->data, bytes};
}

static amp_status start_message(amp_engine *engine, int32_t lane, const amp_message *message, amp_error *err) {
    FilesEngine *e = (FilesEngine *)engine;
    Lane *l = &e->lanes[lane];
    const int32_t rank = e->start.rank;
    *l = (Lane){.now = *message, .number = l->number + 1, .since = amp_nanoseconds()};
    const Head head = head_of(e, l);
    const amp_piece pieces[] = {{&head, sizeof head}, brings(e, message)};
    AMP_TRY(amp_folder_write(&e->start.own, message_name(lane, l->number, rank).text, pieces, 2, err));
    if (message->op == AMP_EXCHANGE)
        memcpy(part_at(e, message, message->to, rank), part_at(e, message, message->data, rank), part_of(e, message));
    return AMP_OK;
}

/* Where what |from| brings goes, and where in its elements that begins; no bytes: nowhere. */
typedef struct Taken {
    char *to;
    size_t offset, bytes;
} Taken;

static Taken takes(const FilesEngine *e, const amp_message *m, int32_t from) {
    const size_t part = part_of(e, m);
    if (m->op == AMP_GATHER) return (Taken){part_at(e, m, m->data, from), 0, part};
    if (m->op == AMP_EXCHANGE) return (Taken){part_at(e, m, m->to, from), (size_t)e->start.rank * part, part};
    if (m->rank == from) return (Taken){m->data, 0, m->count * amp_dtype_size(m->dtype)};
    return (Taken){NULL, 0, 0};
}

/* Reads what |from| brings.  Where it makes another call, nothing comes, and the roll call says so. */
static amp_status take_from(FilesEngine *e, int32_t lane, int32_t from, bool *came, amp_error *err) {
    const Lane *l = &e->lanes[lane];
    const Name name = message_name(lane, l->number, from);
    const Head wanted = head_of(e, l);
    const Taken t = takes(e, &l->now, from);
    Head head;
    AMP_TRY(amp_folder_read(&e->start.own, name.text, 0, &head, sizeof head, came, err));
    if (!*came) return AMP_OK;
    *came = !memcmp(&head, &wanted, sizeof head);
    if (!*came || !t.bytes) return AMP_OK;
    AMP_TRY(amp_folder_read(&e->start.own, name.text, sizeof head + t.offset, t.to, t.bytes, came, err));
    return *came ? AMP_OK : amp_fail(err, AMP_IO, "%s/%s: was removed while it was read", e->start.own.path, name.text);
}

/* Seldom enough: the longer it has waited, the less a little more matters. */
static bool is_time_to_look(Lane *l) {
    const int64_t now = amp_nanoseconds(), waited = (now - l->since) / 8;
    const int64_t gap = waited < SHORTEST ? SHORTEST : waited > LONGEST ? LONGEST : waited;
    if (l->looked && now - l->looked < gap) return false;
    l->looked = now;
    return true;
}

static amp_status test_message(amp_engine *engine, int32_t lane, bool *done, amp_error *err) {
    FilesEngine *e = (FilesEngine *)engine;
    Lane *l = &e->lanes[lane];
    *done = false;
    if (!is_time_to_look(l)) return AMP_OK;
    if (amp_nanoseconds() - l->since > LONGEST) amp_files_refresh(&e->start);
    for (bool came = true; l->next < e->start.ranks && came; l->next += came)
        if (l->next != e->start.rank) AMP_TRY(take_from(e, lane, l->next, &came, err));
    *done = l->next == e->start.ranks;
    if (*done) amp_folder_unlink(&e->start.own, message_name(lane, l->number - 1, e->start.rank).text);
    return AMP_OK;
}

/* ---- letters ----------------------------------------------------------------------------------------------------- */

static amp_status send_letter(amp_engine *engine, int32_t to, amp_letter *letter, amp_error *err) {
    FilesEngine *e = (FilesEngine *)engine;
    const amp_piece piece = {letter->bytes, sizeof letter->bytes};
    AMP_TRY(amp_folder_write(&e->start.own, letter_name(to, e->start.rank, e->peers[to].sent).text, &piece, 1, err));
    e->peers[to].sent++;
    return AMP_OK;
}

static amp_status letter_sent(amp_engine *engine, amp_letter *letter, amp_error *err) {
    (void)engine, (void)err;
    letter->leaves = false;
    return AMP_OK;
}

static amp_status receive_letter(amp_engine *engine, unsigned char bytes[AMP_LETTER_BYTES], bool *came,
                                 amp_error *err) {
    FilesEngine *e = (FilesEngine *)engine;
    *came = false;
    for (int32_t from = 0; from < e->start.ranks && !*came; from++) {
        const Name name = letter_name(e->start.rank, from, e->peers[from].received);
        if (from == e->start.rank) continue;
        AMP_TRY(amp_folder_read(&e->start.own, name.text, 0, bytes, AMP_LETTER_BYTES, came, err));
        if (!*came) continue;
        amp_folder_unlink(&e->start.own, name.text);
        e->peers[from].received++;
    }
    return AMP_OK;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static const amp_engine_type type = {
    .name = "files",
    .sums = 0, /* ranks exchange parts, and the lanes add them, by rank */
    .connect = connect_ranks,
    .start = start_message,
    .test = test_message,
    .send = send_letter,
    .sent = letter_sent,
    .receive = receive_letter,
    .disconnect = leave_ranks,
    .abandon = leave_ranks,
    .close = close_engine,
};

amp_status amp_files_engine_open(const amp_files_options *options, const amp_allocator *allocator, amp_engine **out,
                                 amp_error *err) {
    const size_t length = strlen(options->folder), ranks = (size_t)options->ranks;
    *out = NULL;
    if (!length || length > AMP_FOLDER_MOST)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "the name of a folder where ranks meet has 1 to %d bytes, not %zu",
                        AMP_FOLDER_MOST, length);
    FilesEngine *e = amp_alloc_zeroed(allocator, sizeof *e);
    if (!e) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the engine \"files\"");
    e->head.type = &type;
    e->head.allocator = *allocator;
    e->head.own_thread = true;
    e->head.library = e->name;
    e->head.connect_seconds = (int32_t)options->seconds + 2; /* so that who waits hears which rank is missing */
    e->start.rank = options->rank;
    e->start.ranks = options->ranks;
    e->start.seconds = options->seconds;
    e->start.given.fd = e->start.own.fd = e->start.lock = -1;
    memcpy(e->start.given.path, options->folder, length + 1);
    snprintf(e->name, sizeof e->name, "the folder %s", options->folder);
    e->peers = amp_alloc_zeroed(allocator, ranks * sizeof *e->peers);
    e->numbers = amp_alloc_zeroed(allocator, ranks * sizeof *e->numbers);
    if (!e->peers || !e->numbers) {
        close_engine(&e->head);
        return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for %d ranks", options->ranks);
    }
    *out = &e->head;
    return AMP_OK;
}
