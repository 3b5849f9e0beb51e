/* start.c: see start.h. */
#define _GNU_SOURCE /* getrandom */
#include "runtime/comm/files/start.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
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

/* ---- paths and numbers ------------------------------------------------------------------------------------------- */

typedef struct Path {
    char text[AMP_FOLDER_PATH + 64];
} Path;

static Path in_folder(const amp_files_start *s, const char *name) {
    Path p;
    snprintf(p.text, sizeof p.text, "%s/%s", s->folder, name);
    return p;
}

static Path in_own(const amp_files_start *s, const char *name, int32_t rank) {
    Path p;
    if (rank < 0) snprintf(p.text, sizeof p.text, "%s/%s", s->own, name);
    else snprintf(p.text, sizeof p.text, "%s/%s.%d", s->own, name, rank);
    return p;
}

static void name_own(amp_files_start *s, uint64_t number) {
    s->number = number;
    snprintf(s->own, sizeof s->own, "%s/%s%016llx", s->folder, prefix, (unsigned long long)number);
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

static bool is_there(Path path) {
    bool there;
    char nothing;
    return !amp_folder_read(path.text, 0, &nothing, 0, &there, NULL) && there;
}

/* ---- what an earlier start left ---------------------------------------------------------------------------------- */

static bool is_start(const char *name) {
    const size_t head = sizeof prefix - 1;
    return !strncmp(name, prefix, head) && strspn(name + head, "0123456789abcdef") == NUMBER_DIGITS &&
           strlen(name) == head + NUMBER_DIGITS;
}

/* A process that lives has the lock of its start. */
static amp_status remove_start(const amp_files_start *s, const char *name, amp_error *err) {
    char lock[AMP_FOLDER_PATH + 64];
    bool taken;
    Path old = in_folder(s, name);
    snprintf(lock, sizeof lock, "%.*s/lock", AMP_FOLDER_PATH, old.text);
    const int fd = amp_folder_lock(lock, &taken);
    if (fd < 0 && taken)
        return amp_fail(err, AMP_WRONG_STATE,
                        "%s is in use: ranks of another start, or another rank 0, are in it; give each start a folder "
                        "of its own",
                        s->folder);
    amp_folder_remove(old.text);
    if (fd >= 0) close(fd);
    return AMP_OK;
}

static amp_status clear_folder(const amp_files_start *s, amp_error *err) {
    DIR *all = opendir(s->folder);
    amp_status status = AMP_OK;
    if (!all) return amp_fail_errno(err, AMP_IO, errno, "%s: cannot be read", s->folder);
    for (const struct dirent *e; !status && (e = readdir(all));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (is_start(e->d_name)) status = remove_start(s, e->d_name, err);
        else if (strncmp(e->d_name, invitation, sizeof invitation - 1))
            status = amp_fail(err, AMP_WRONG_STATE,
                              "%s holds %s, which no start of ranks has left: give a folder that is empty, or that is "
                              "not there yet",
                              s->folder, e->d_name);
    }
    closedir(all);
    return status;
}

/* ---- rank 0 ------------------------------------------------------------------------------------------------------ */

static amp_status make_folders(amp_files_start *s, amp_error *err) {
    bool taken;
    uint64_t number;
    s->made = !mkdir(s->folder, 0777);
    if (!s->made && errno != EEXIST) return amp_fail_errno(err, AMP_IO, errno, "%s: cannot be made", s->folder);
    AMP_TRY(clear_folder(s, err));
    AMP_TRY(draw(&number, err));
    name_own(s, number);
    if (mkdir(s->own, 0777)) return amp_fail_errno(err, AMP_IO, errno, "%s: cannot be made", s->own);
    s->lock = amp_folder_lock(in_own(s, "lock", -1).text, &taken);
    return AMP_OK;
}

static amp_status invite(amp_files_start *s, amp_error *err) {
    Invitation i = {.number = s->number, .ranks = s->ranks, .made = s->made};
    const amp_piece piece = {&i, sizeof i};
    memcpy(i.format, format, sizeof i.format);
    return amp_folder_write(in_folder(s, invitation).text, &piece, 1, err);
}

/* "rank 2", "ranks 1, 2, 5 and others" that have not said hello; 0: none. */
static int32_t list_missing(const amp_files_start *s, char *out, size_t size) {
    enum { NAMED = 4 };
    char names[80] = "";
    int32_t count = 0;
    for (int32_t r = 1; r < s->ranks; r++) {
        if (is_there(in_own(s, "hello", r)) || count++ >= NAMED) continue;
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
            "%s: all ranks have come, and rank 0 does not go on for %.1f s: it has died or hangs, or another "
            "process is rank %d, too",
            s->folder, s->seconds, s->rank);
    return amp_fail(err, AMP_PEER_FAILED,
                    "%s: %s %s not come for %.1f s: was every rank started, and do all hosts see this folder?",
                    s->folder, who, count > 1 ? "have" : "has", s->seconds);
}

/* Tells all that have come: to start, or why not. */
static amp_status tell(const amp_files_start *s, const uint64_t *numbers, amp_status status, const amp_error *why,
                       amp_error *err) {
    Verdict v = {.status = (int32_t)status, .count = s->ranks};
    if (status) snprintf(v.why, sizeof v.why, "%.*s", (int)sizeof v.why - 1, why->message);
    const amp_piece pieces[] = {{&v, sizeof v}, {numbers, (size_t)s->ranks * sizeof *numbers}};
    return amp_folder_write(in_own(s, "go", -1).text, pieces, 2, err);
}

/* A process that was told of other numbers: its own goes where a rank has none, so that it believes what it is told. */
static amp_status look_for_other(const amp_files_start *s, uint64_t *numbers, amp_error *err) {
    Hello other;
    bool there;
    if (amp_folder_read(in_own(s, "other", -1).text, 0, &other, sizeof other, &there, NULL) || !there) return AMP_OK;
    numbers[0] = other.mine;
    return amp_fail(
        err, AMP_MISMATCH,
        "a process was started as rank %d of %d, and rank 0 as one of %d: start all with the same number of "
        "ranks (WORLD_SIZE, SLURM_NTASKS, --dist-rank)",
        other.rank, other.ranks, s->ranks);
}

/* Takes the numbers of those that have come since; a number is never 0.  |*all|: nobody is missing. */
static amp_status take_hellos(const amp_files_start *s, uint64_t *numbers, bool *all, amp_error *err) {
    *all = true;
    for (int32_t r = 1; r < s->ranks; r++) {
        Hello h;
        bool there;
        if (numbers[r]) continue;
        AMP_TRY(amp_folder_read(in_own(s, "hello", r).text, 0, &h, sizeof h, &there, err));
        if (there) numbers[r] = h.mine;
        *all = *all && there;
    }
    return AMP_OK;
}

static amp_status gather_hellos(const amp_files_start *s, uint64_t *numbers, amp_error *err) {
    const int64_t end = amp_nanoseconds() + (int64_t)(s->seconds * 1e9);
    for (bool all;; nap()) {
        amp_folder_refresh(s->own);
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
    AMP_TRY(amp_folder_read(in_folder(s, invitation).text, 0, &i, sizeof i, &there, err));
    if (!there || (s->own[0] && i.number == s->number)) return AMP_OK;
    if (memcmp(i.format, format, sizeof i.format))
        return amp_fail(err, AMP_MISMATCH, "%s: rank 0 has a libamp_comm of another version: give all ranks the same",
                        s->folder);
    AMP_TRY(draw(&s->mine, err));
    name_own(s, i.number);
    s->made = i.made != 0;
    const Hello mine = {s->mine, s->rank, s->ranks};
    const amp_piece piece = {&mine, sizeof mine};
    const Path path = i.ranks == s->ranks ? in_own(s, "hello", s->rank) : in_own(s, "other", -1);
    if (amp_folder_write(path.text, &piece, 1, NULL)) s->own[0] = '\0';
    return AMP_OK;
}

/* |*go|: rank 0 has spoken to this process. */
static amp_status listen(const amp_files_start *s, uint64_t *numbers, bool *go, amp_error *err) {
    const Path path = in_own(s, "go", -1);
    Verdict v;
    bool there;
    AMP_TRY(amp_folder_read(path.text, 0, &v, sizeof v, &there, err));
    if (!there) return AMP_OK;
    v.why[sizeof v.why - 1] = '\0';
    for (int32_t r = 0; r < v.count && !*go; r++) {
        AMP_TRY(
            amp_folder_read(path.text, sizeof v + (size_t)r * sizeof *numbers, numbers, sizeof *numbers, &there, err));
        *go = there && numbers[0] == s->mine;
    }
    return *go && v.status ? amp_fail(err, (amp_status)v.status, "%s", v.why) : AMP_OK;
}

/* Rank 0 of the start that this one has said hello to lives. */
static bool is_led(const amp_files_start *s) {
    bool taken = false;
    const int fd = s->own[0] ? amp_folder_lock(in_own(s, "lock", -1).text, &taken) : -1;
    if (fd >= 0) close(fd);
    return taken;
}

static amp_status follow(amp_files_start *s, uint64_t *numbers, amp_error *err) {
    const int64_t end = amp_nanoseconds() + (int64_t)(s->seconds * 1e9);
    for (bool go = false;; nap()) {
        amp_folder_refresh(s->folder);
        AMP_TRY(answer(s, err));
        if (s->own[0]) {
            amp_folder_refresh(s->own);
            AMP_TRY(listen(s, numbers, &go, err));
        }
        if (go) return AMP_OK;
        if (amp_nanoseconds() < end) continue;
        if (is_led(s)) return fail_missing(s, err);
        return amp_fail(err, AMP_PEER_FAILED,
                        "%s: rank 0 has not come for %.1f s: was it started, and does its host see this folder?",
                        s->folder, s->seconds);
    }
}

/* ---- joining and leaving ----------------------------------------------------------------------------------------- */

amp_status amp_files_join(amp_files_start *s, uint64_t *numbers, amp_error *err) {
    return s->rank ? follow(s, numbers, err) : lead(s, numbers, err);
}

void amp_files_leave(amp_files_start *s) {
    Invitation i;
    bool there;
    if (!s->own[0]) return;
    (void)amp_folder_write(in_own(s, "left", s->rank).text, NULL, 0, NULL);
    amp_folder_refresh(s->own);
    bool all = true;
    for (int32_t r = 0; r < s->ranks && all; r++) all = is_there(in_own(s, "left", r));
    if (all) {
        const Path path = in_folder(s, invitation);
        amp_folder_remove(s->own);
        if (!amp_folder_read(path.text, 0, &i, sizeof i, &there, NULL) && there && i.number == s->number)
            unlink(path.text);
        if (s->made) rmdir(s->folder);
    }
    s->own[0] = '\0';
}
