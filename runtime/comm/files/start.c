/* start.c: see start.h. */
#define _GNU_SOURCE /* getrandom */
#include "runtime/comm/files/start.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

enum { NAP = 5000000 /* nanoseconds */, NUMBER_DIGITS = 16 };

static const char format[8] = "ampdist1", prefix[] = "ampc-", invitation[] = "ampc-start";

/* DIR/ampc-start */
typedef struct Invitation {
    char format[8];
    uint64_t number;
    int32_t ranks, made;
} Invitation;

/* hello.R and other */
typedef struct Hello {
    uint64_t mine;
    int32_t rank, ranks;
} Hello;

/* go: the numbers of |count| ranks follow. */
typedef struct Verdict {
    int32_t status, count;
    char why[400];
} Verdict;

/* ---- names and numbers ------------------------------------------------------------------------------------------- */

typedef struct Name {
    char text[AMP_FOLDER_NAME];
} Name;

static Name of_rank(const char *word, int32_t rank) {
    Name n;
    snprintf(n.text, sizeof n.text, "%s.%d", word, rank);
    return n;
}

static Name of_start(uint64_t number) {
    Name n;
    snprintf(n.text, sizeof n.text, "%s%016llx", prefix, (unsigned long long)number);
    return n;
}

/* Never 0. */
static amp_status draw(uint64_t *out, amp_error *err) {
    *out = 0;
    const bool drawn = getrandom(out, sizeof *out, 0) == (ssize_t)sizeof *out;
    *out |= 1;
    if (drawn) return AMP_OK;
    return amp_fail_errno(err, AMP_IO, errno, "the system has no random number for the start of ranks");
}

static void nap(void) {
    const struct timespec t = {.tv_nsec = NAP};
    nanosleep(&t, NULL);
}

static bool is_there(const amp_files_start *s, Name name) {
    bool there;
    char nothing;
    return !amp_folder_read(&s->own, name.text, 0, &nothing, 0, &there, NULL) && there;
}

/* ---- what an earlier start left ---------------------------------------------------------------------------------- */

/* What is written into DIR/ampc-NUMBER: a word, and numbers after points. */
static const struct {
    const char *word;
    int numbers;
} written[] = {{"lock", 0}, {"other", 0}, {"go", 0}, {"hello", 1}, {"left", 1}, {"lane", 3}, {"letter", 3}};

static bool is_written(const char *name) {
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        const size_t head = strlen(written[i].word);
        int numbers = 0;
        if (strncmp(name, written[i].word, head) != 0) continue;
        const char *rest = name + head;
        for (size_t digits; *rest == '.' && (digits = strspn(rest + 1, "0123456789")); rest += 1 + digits) numbers++;
        if (numbers == written[i].numbers && amp_folder_is_suffix(rest)) return true;
    }
    return false;
}

static bool is_start(const char *name) {
    const size_t head = sizeof prefix - 1;
    return !strncmp(name, prefix, head) && strspn(name + head, "0123456789abcdef") == NUMBER_DIGITS &&
           strlen(name) == head + NUMBER_DIGITS;
}

static bool is_invitation(const char *name) {
    const size_t head = sizeof invitation - 1;
    return !strncmp(name, invitation, head) && amp_folder_is_suffix(name + head);
}

static amp_status fail_foreign(const amp_files_start *s, const char *name, amp_error *err) {
    return amp_fail(
        err, AMP_WRONG_STATE,
        "%s holds %s, which is not a file of ranks: give a folder that is empty, or one that does not exist "
        "yet",
        s->given.path, name);
}

/* A process that lives has the lock of its start. */
static amp_status remove_start(const amp_files_start *s, const char *name, amp_error *err) {
    amp_folder old;
    bool there, taken;
    if (amp_folder_open(&s->given, name, &old, &there, NULL)) return fail_foreign(s, name, err);
    if (!there) return AMP_OK;
    const int fd = amp_folder_lock(&old, "lock", &taken);
    amp_folder_close(&old);
    if (fd < 0 && taken)
        return amp_fail(err, AMP_WRONG_STATE,
                        "%s is in use: ranks of another start, or another rank 0, are in it; give each start a folder "
                        "of its own",
                        s->given.path);
    amp_folder_remove(&s->given, name, is_written);
    if (fd >= 0) close(fd);
    return AMP_OK;
}

static amp_status clear_entry(void *user, const char *name, amp_error *err) {
    const amp_files_start *s = user;
    if (is_start(name)) return remove_start(s, name, err);
    if (!is_invitation(name)) return fail_foreign(s, name, err);
    if (strlen(name) >= sizeof invitation) amp_folder_unlink(&s->given, name); /* half-written */
    return AMP_OK;
}

/* DIR anew: an earlier start may have removed the one that was open. */
static amp_status open_given(amp_files_start *s, bool *there, amp_error *err) {
    amp_folder now;
    amp_status status = amp_folder_open(NULL, s->given.path, &now, there, err);
    amp_folder_close(&s->given);
    s->given.fd = now.fd;
    return status;
}

/* ---- rank 0 ------------------------------------------------------------------------------------------------------ */

static amp_status fail_gone(const amp_folder *f, amp_error *err) {
    return amp_fail(err, AMP_WRONG_STATE, "%s: another process removes it: start the ranks again", f->path);
}

static amp_status make_own(amp_files_start *s, amp_error *err) {
    bool made, there;
    AMP_TRY(draw(&s->number, err));
    const Name name = of_start(s->number);
    AMP_TRY(amp_folder_make(&s->given, name.text, &made, err));
    AMP_TRY(amp_folder_open(&s->given, name.text, &s->own, &there, err));
    return there ? AMP_OK : fail_gone(&s->own, err);
}

static amp_status make_folders(amp_files_start *s, amp_error *err) {
    bool there, taken;
    AMP_TRY(amp_folder_make(NULL, s->given.path, &s->made, err));
    AMP_TRY(open_given(s, &there, err));
    if (!there) return fail_gone(&s->given, err);
    AMP_TRY(amp_folder_list(&s->given, clear_entry, s, err));
    AMP_TRY(make_own(s, err));
    s->lock = amp_folder_lock(&s->own, "lock", &taken);
    return AMP_OK;
}

static amp_status invite(amp_files_start *s, amp_error *err) {
    Invitation i = {.number = s->number, .ranks = s->ranks, .made = s->made};
    const amp_piece piece = {&i, sizeof i};
    memcpy(i.format, format, sizeof i.format);
    return amp_folder_write(&s->given, invitation, &piece, 1, err);
}

/* "rank 2", "ranks 1, 2, 5 and others" that have not said hello; 0: none. */
static int32_t list_missing(const amp_files_start *s, char *out, size_t size) {
    enum { NAMED = 4 };
    char names[80] = "";
    int32_t count = 0;
    for (int32_t r = 1; r < s->ranks; r++) {
        if (is_there(s, of_rank("hello", r)) || count++ >= NAMED) continue;
        const size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%d", at ? ", " : "", r);
    }
    snprintf(out, size, "rank%s %s%s", count > 1 ? "s" : "", names, count > NAMED ? " and others" : "");
    return count;
}

static amp_status fail_missing(const amp_files_start *s, amp_error *err) {
    char who[100];
    const int32_t count = list_missing(s, who, sizeof who);
    if (!count)
        return amp_fail(
            err, AMP_PEER_FAILED,
            "%s: all ranks joined, but rank 0 has not responded for %.1f s; it may have died, or two processes "
            "use rank %d",
            s->given.path, s->seconds, s->rank);
    return amp_fail(err, AMP_PEER_FAILED,
                    "%s: %s %s not joined for %.1f s: was every rank started, and do all hosts see this folder?",
                    s->given.path, who, count > 1 ? "have" : "has", s->seconds);
}

/* Sends to all that have come: to start, or why not. */
static amp_status tell(const amp_files_start *s, const uint64_t *numbers, amp_status status, const amp_error *why,
                       amp_error *err) {
    Verdict v = {.status = (int32_t)status, .count = s->ranks};
    if (status) snprintf(v.why, sizeof v.why, "%.*s", (int)sizeof v.why - 1, why->message);
    const amp_piece pieces[] = {{&v, sizeof v}, {numbers, (size_t)s->ranks * sizeof *numbers}};
    return amp_folder_write(&s->own, "go", pieces, 2, err);
}

/* A process that was told of other numbers: its own goes where a rank has none, so that it believes what it is told. */
static amp_status look_for_other(const amp_files_start *s, uint64_t *numbers, amp_error *err) {
    Hello other;
    bool there;
    if (amp_folder_read(&s->own, "other", 0, &other, sizeof other, &there, NULL) || !there) return AMP_OK;
    numbers[0] = other.mine;
    return amp_fail(
        err, AMP_MISMATCH,
        "a process was started as rank %d of %d, and rank 0 as one of %d: start all with the same number of "
        "ranks (WORLD_SIZE, SLURM_NTASKS, --dist-rank)",
        other.rank, other.ranks, s->ranks);
}

/* Takes the numbers of the ranks that have come since; a number is never 0.  |*all|: no rank is missing. */
static amp_status take_hellos(const amp_files_start *s, uint64_t *numbers, bool *all, amp_error *err) {
    *all = true;
    for (int32_t r = 1; r < s->ranks; r++) {
        Hello h;
        bool there;
        if (numbers[r]) continue;
        AMP_TRY(amp_folder_read(&s->own, of_rank("hello", r).text, 0, &h, sizeof h, &there, err));
        if (there) numbers[r] = h.mine;
        *all = *all && there;
    }
    return AMP_OK;
}

static amp_status gather_hellos(const amp_files_start *s, uint64_t *numbers, amp_error *err) {
    const int64_t end = amp_nanoseconds() + (int64_t)(s->seconds * 1e9);
    for (bool all;; nap()) {
        amp_files_refresh(s);
        AMP_TRY(look_for_other(s, numbers, err));
        AMP_TRY(take_hellos(s, numbers, &all, err));
        if (all) return AMP_OK;
        if (amp_nanoseconds() > end) return fail_missing(s, err);
    }
}

static amp_status lead(amp_files_start *s, uint64_t *numbers, amp_error *err) {
    amp_error why;
    AMP_TRY(make_folders(s, err));
    AMP_TRY(invite(s, err));
    amp_status status = gather_hellos(s, numbers, &why), told = tell(s, numbers, status, &why, err);
    return status ? amp_fail(err, status, "%s", why.message) : told;
}

/* ---- the others -------------------------------------------------------------------------------------------------- */

/* Answers an invitation that is another one than the last.  One whose folder is gone is an old one. */
static amp_status answer(amp_files_start *s, amp_error *err) {
    Invitation i;
    bool there;
    AMP_TRY(amp_folder_read(&s->given, invitation, 0, &i, sizeof i, &there, err));
    if (!there || (s->own.fd >= 0 && i.number == s->number)) return AMP_OK;
    if (memcmp(i.format, format, sizeof i.format))
        return amp_fail(err, AMP_MISMATCH, "%s: rank 0 has a libamp_comm of another version: give all ranks the same",
                        s->given.path);
    AMP_TRY(draw(&s->mine, err));
    amp_folder_close(&s->own);
    s->number = i.number;
    s->made = i.made != 0;
    AMP_TRY(amp_folder_open(&s->given, of_start(i.number).text, &s->own, &there, err));
    if (!there) return AMP_OK;
    const Hello mine = {s->mine, s->rank, s->ranks};
    const amp_piece piece = {&mine, sizeof mine};
    const Name hello = of_rank("hello", s->rank);
    if (amp_folder_write(&s->own, i.ranks == s->ranks ? hello.text : "other", &piece, 1, NULL))
        amp_folder_close(&s->own);
    return AMP_OK;
}

/* |*go|: rank 0 has spoken to this process. */
static amp_status listen(const amp_files_start *s, uint64_t *numbers, bool *go, amp_error *err) {
    Verdict v;
    bool there;
    AMP_TRY(amp_folder_read(&s->own, "go", 0, &v, sizeof v, &there, err));
    if (!there) return AMP_OK;
    v.why[sizeof v.why - 1] = '\0';
    for (int32_t r = 0; r < v.count && !*go; r++) {
        AMP_TRY(amp_folder_read(&s->own, "go", sizeof v + (size_t)r * sizeof *numbers, numbers, sizeof *numbers, &there,
                                err));
        *go = there && numbers[0] == s->mine;
    }
    return *go && v.status ? amp_fail(err, (amp_status)v.status, "%s", v.why) : AMP_OK;
}

/* Rank 0 of the start that this one has said hello to lives. */
static bool is_led(const amp_files_start *s) {
    bool taken = false;
    const int fd = s->own.fd >= 0 ? amp_folder_lock(&s->own, "lock", &taken) : -1;
    if (fd >= 0) close(fd);
    return taken;
}

static amp_status look(amp_files_start *s, uint64_t *numbers, bool *go, amp_error *err) {
    bool there;
    AMP_TRY(open_given(s, &there, err));
    if (!there) return AMP_OK;
    AMP_TRY(answer(s, err));
    if (s->own.fd < 0) return AMP_OK;
    amp_files_refresh(s);
    return listen(s, numbers, go, err);
}

static amp_status follow(amp_files_start *s, uint64_t *numbers, amp_error *err) {
    const int64_t end = amp_nanoseconds() + (int64_t)(s->seconds * 1e9);
    for (bool go = false;; nap()) {
        AMP_TRY(look(s, numbers, &go, err));
        if (go) return AMP_OK;
        if (amp_nanoseconds() < end) continue;
        if (is_led(s)) return fail_missing(s, err);
        return amp_fail(err, AMP_PEER_FAILED,
                        "%s: rank 0 has not joined for %.1f s: was it started, and does its host see this folder?",
                        s->given.path, s->seconds);
    }
}

/* ---- joining and leaving ----------------------------------------------------------------------------------------- */

amp_status amp_files_join(amp_files_start *s, uint64_t *numbers, amp_error *err) {
    return s->rank ? follow(s, numbers, err) : lead(s, numbers, err);
}

void amp_files_refresh(const amp_files_start *s) { amp_folder_refresh(&s->given, of_start(s->number).text); }

/* All have left: what is of this start goes. */
static void remove_all(const amp_files_start *s) {
    Invitation i;
    bool there;
    amp_folder_remove(&s->given, of_start(s->number).text, is_written);
    if (!amp_folder_read(&s->given, invitation, 0, &i, sizeof i, &there, NULL) && there && i.number == s->number)
        amp_folder_unlink(&s->given, invitation);
    if (s->made) rmdir(s->given.path);
}

void amp_files_leave(amp_files_start *s) {
    if (s->own.fd < 0) return;
    (void)amp_folder_write(&s->own, of_rank("left", s->rank).text, NULL, 0, NULL);
    amp_files_refresh(s);
    bool all = true;
    for (int32_t r = 0; r < s->ranks && all; r++) all = is_there(s, of_rank("left", r));
    if (all) remove_all(s);
    amp_folder_close(&s->own);
}

void amp_files_close(amp_files_start *s) {
    if (s->lock >= 0) close(s->lock);
    s->lock = -1;
    amp_folder_close(&s->own);
    amp_folder_close(&s->given);
}
