/* events.c: see tensorboard.h. */
#include "tools/amprun/tensorboard/tensorboard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "tools/amprun/amprun.h"
#include "tools/amprun/log/log.h"

static int fail(EventFile *f, const char *reason) {
    if (!f->failed) report_text("--tensorboard %s: could not be written: %s", f->folder, reason);
    f->failed = true;
    return 1;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

/* CRC-32C (RFC 3720, appendix B.4), with the mask that TFRecord puts over it: rotated, and a constant added. */
static uint32_t masked_crc(const unsigned char *data, size_t size) {
    const uint32_t polynomial = 0x82F63B78, delta = 0xA282EAD8;
    uint32_t crc = 0xFFFFFFFF;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + delta;
}

static void put_little_endian(unsigned char *out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) out[i] = (unsigned char)(value >> 8 * i);
}

enum { RECORD_HEAD = 12, RECORD_TAIL = 4 };

/* The length in eight bytes, its sum, the event, its sum. */
static void write_record(EventFile *f) {
    const size_t size = f->event.size;
    unsigned char *record = f->event.failed ? NULL : malloc(RECORD_HEAD + size + RECORD_TAIL);
    if (!record) {
        fail(f, "no memory");
        return;
    }
    put_little_endian(record, size, 8);
    put_little_endian(record + 8, masked_crc(record, 8), 4);
    memcpy(record + RECORD_HEAD, f->event.data, size);
    put_little_endian(record + RECORD_HEAD + size, masked_crc(f->event.data, size), 4);
    if (!append_whole(f->fd, record, RECORD_HEAD + size + RECORD_TAIL)) fail(f, strerror(errno));
    free(record);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* event.proto */
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION_LOG = 7 };
enum { SESSION_LOG_STATUS = 1, SESSION_LOG_START = 1 };

static void begin(EventFile *f, int64_t step) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    message_clear(&f->event);
    message_double(&f->event, EVENT_WALL_TIME, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    message_int(&f->event, EVENT_STEP, step);
}

Message *events_begin(EventFile *f, int64_t step) {
    if (!f->is_open || f->failed) return NULL;
    begin(f, step);
    f->summary = message_begin(&f->event, EVENT_SUMMARY);
    return &f->event;
}

void events_end(EventFile *f) {
    message_end(&f->event, f->summary);
    write_record(f);
}

static void write_version(EventFile *f) {
    begin(f, 0);
    message_text(&f->event, EVENT_FILE_VERSION, "brain.Event:2");
    write_record(f);
}

static void write_start(EventFile *f, int64_t first_step) {
    begin(f, first_step);
    const size_t log = message_begin(&f->event, EVENT_SESSION_LOG);
    message_int(&f->event, SESSION_LOG_STATUS, SESSION_LOG_START);
    message_end(&f->event, log);
    write_record(f);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int make_folders(EventFile *f) {
    char path[AMP_FILE_PATH];
    amp_error err = {0};
    if ((size_t)snprintf(path, sizeof path, "%s", f->folder) >= sizeof path) return fail(f, strerror(ENAMETOOLONG));
    if (amp_file_check_links(path, &err)) return f->failed = report_text("--tensorboard %s", err.message);
    for (char *slash = path + 1; *path && (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        if (mkdir(path, 0777) && errno != EEXIST) return fail(f, strerror(errno));
    }
    return mkdir(path, 0777) && errno != EEXIST ? fail(f, strerror(errno)) : 0;
}

/* TensorBoard looks for the first words, and reads in the order of names; the rest keeps runs apart. */
static void name_file(const EventFile *f, char *out, size_t size) {
    struct timespec now;
    char host[256] = "localhost";
    clock_gettime(CLOCK_REALTIME, &now);
    if (gethostname(host, sizeof host - 1) || strchr(host, '/')) snprintf(host, sizeof host, "localhost");
    snprintf(out, size, "%s/events.out.tfevents.%010lld.%06ld.%s.%ld", f->folder, (long long)now.tv_sec,
             now.tv_nsec / 1000, host, (long)getpid());
}

int events_open(EventFile *f, const char *folder, int64_t first_step) {
    char path[AMP_FILE_PATH + 512];
    amp_error err = {0};
    *f = (EventFile){.folder = folder};
    if (make_folders(f)) return 1;
    name_file(f, path, sizeof path);
    if (amp_file_open_in_place(path, O_EXCL, &f->fd, &err))
        return f->failed = report_text("--tensorboard %s", err.message);
    f->is_open = true;
    write_version(f);
    if (!f->failed) write_start(f, first_step);
    return f->failed;
}

int events_close(EventFile *f) {
    if (f->is_open && close(f->fd) && errno != EINTR) fail(f, strerror(errno));
    f->is_open = false;
    message_free(&f->event);
    return f->failed;
}
