/* idx.c: see idx.h.  A file is 0, 0, type, rank, big-endian u32 sizes, data.  zlib reads gzip and plain files alike. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "tools/amprun/amprun.h"
#include "tools/amprun/data/idx.h"

enum { IDX_U8 = 0x08, IDX_LIMIT = 1 << 30, FIRST_ROOM = 64 << 10, LARGEST_READ = 1 << 20 };

static int open_either(const char *path, char *used, size_t size, gzFile *out) {
    amp_error err = {0};
    int fd;
    snprintf(used, size, "%s", path);
    if (access(used, R_OK)) snprintf(used, size, "%s.gz", path);
    if (access(used, R_OK)) return report_text("%s[.gz]: %s", path, strerror(errno));
    if (amp_file_open(used, AMP_FILE_REGULAR, &fd, &err)) return report(&err);
    *out = gzdopen(fd, "rb");
    if (*out) return 0;
    close(fd);
    return report_text("%s: no memory to read it", used);
}

static int report_damaged(const char *path, const char *what) {
    return report_text("%s: damaged gzip data in its %s; fetch the file again", path, what);
}

/* Bytes |done| to |size| of the |total| that the part has. */
static int read_exactly(gzFile f, const char *path, void *to, size_t done, size_t size, size_t total,
                        const char *what) {
    while (done < size) {
        size_t want = size - done < LARGEST_READ ? size - done : LARGEST_READ;
        int got = gzread(f, (char *)to + done, (unsigned)want);
        if (got < 0) return report_damaged(path, what);
        if (got == 0)
            return report_text("%s: ends after %zu of %zu bytes of its %s; the file is cut off", path, done, total,
                               what);
        done += (size_t)got;
    }
    return 0;
}

static int read_header(gzFile f, const char *path, IdxArray *out, size_t *total) {
    unsigned char head[4], size[4];
    if (read_exactly(f, path, head, 0, 4, 4, "header")) return 1;
    if (head[0] || head[1])
        return report_text("%s: is no IDX file: it starts with %02x %02x, not 00 00", path, head[0], head[1]);
    if (head[2] != IDX_U8)
        return report_text("%s: byte 2: element type 0x%02x; only unsigned bytes (0x08) are read", path, head[2]);
    if (head[3] < 1 || head[3] > IDX_MAX_RANK)
        return report_text("%s: byte 3: %d dimensions; 1 to %d are read", path, head[3], IDX_MAX_RANK);
    out->rank = head[3];
    *total = 1;
    for (int i = 0; i < out->rank; i++) {
        if (read_exactly(f, path, size, 0, 4, 4, "header")) return 1;
        out->dims[i] = (int64_t)size[0] << 24 | (int64_t)size[1] << 16 | size[2] << 8 | size[3];
        if (out->dims[i] < 1 || out->dims[i] > IDX_LIMIT || *total * (uint64_t)out->dims[i] > IDX_LIMIT)
            return report_text("%s: dimension %d is %lld: too large or empty", path, i, (long long)out->dims[i]);
        *total *= (size_t)out->dims[i];
    }
    return 0;
}

/* The header is not trusted with the size: memory grows with the bytes that are really there. */
static int read_data(gzFile f, const char *path, size_t total, IdxArray *out) {
    for (size_t done = 0, room = 0; done < total; done = room) {
        room = done ? done * 2 : FIRST_ROOM;
        if (room > total) room = total;
        unsigned char *data = realloc(out->data, room);
        if (!data) return report_text("%s: no memory for %zu bytes", path, room);
        out->data = data;
        if (read_exactly(f, path, data, done, room, total, "data")) return 1;
    }
    return 0;
}

/* zlib compares its checksum when it is asked for what follows the last byte. */
static int check_end(gzFile f, const char *path, size_t total) {
    char beyond;
    int got = gzread(f, &beyond, 1);
    if (got > 0)
        return report_text("%s: has bytes beyond its %zu elements; the header does not fit the data", path, total);
    return got < 0 ? report_damaged(path, "data") : 0;
}

static int read_body(gzFile f, const char *path, IdxArray *out) {
    size_t total = 0;
    return read_header(f, path, out, &total) || read_data(f, path, total, out) || check_end(f, path, total);
}

int idx_read(const char *path, IdxArray *out) {
    char used[4096];
    gzFile f;
    memset(out, 0, sizeof *out);
    if (open_either(path, used, sizeof used, &f)) return 1;
    int failed = read_body(f, used, out);
    if (gzclose(f) != Z_OK && !failed)
        failed = report_text("%s: its gzip data ends too early; fetch the file again", used);
    if (failed) {
        free(out->data);
        out->data = NULL;
    }
    return failed;
}
