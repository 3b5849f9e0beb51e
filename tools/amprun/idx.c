/* idx.c: see idx.h.  A file is 0, 0, type, rank, big-endian u32 sizes, data.  zlib reads gzip and plain files alike. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "tools/amprun/amprun.h"
#include "tools/amprun/idx.h"

enum { IDX_U8 = 0x08, IDX_LIMIT = 1 << 30 };

static gzFile open_either(const char *path, char *used, size_t size) {
    snprintf(used, size, "%s", path);
    if (access(used, R_OK)) snprintf(used, size, "%s.gz", path);
    return gzopen(used, "rb");
}

static int read_exactly(gzFile f, const char *path, void *to, size_t size, const char *what) {
    size_t done = 0;
    while (done < size) {
        size_t want = size - done < (1u << 20) ? size - done : (1u << 20);
        int got = gzread(f, (char *)to + done, (unsigned)want);
        if (got < 0) return report_text("%s: damaged gzip data in its %s; fetch the file again", path, what);
        if (got == 0)
            return report_text("%s: ends after %zu of %zu bytes of its %s; the file is cut off", path, done, size,
                               what);
        done += (size_t)got;
    }
    return 0;
}

static int read_header(gzFile f, const char *path, IdxArray *out, size_t *total) {
    unsigned char head[4], size[4];
    if (read_exactly(f, path, head, 4, "header")) return 1;
    if (head[0] || head[1])
        return report_text("%s: is no IDX file: it starts with %02x %02x, not 00 00", path, head[0], head[1]);
    if (head[2] != IDX_U8)
        return report_text("%s: byte 2: element type 0x%02x; only unsigned bytes (0x08) are read", path, head[2]);
    if (head[3] < 1 || head[3] > IDX_MAX_RANK)
        return report_text("%s: byte 3: %d dimensions; 1 to %d are read", path, head[3], IDX_MAX_RANK);
    out->rank = head[3];
    *total = 1;
    for (int i = 0; i < out->rank; i++) {
        if (read_exactly(f, path, size, 4, "header")) return 1;
        out->dims[i] = (int64_t)size[0] << 24 | (int64_t)size[1] << 16 | size[2] << 8 | size[3];
        if (out->dims[i] < 1 || out->dims[i] > IDX_LIMIT || *total * (uint64_t)out->dims[i] > IDX_LIMIT)
            return report_text("%s: dimension %d is %lld: too large or empty", path, i, (long long)out->dims[i]);
        *total *= (size_t)out->dims[i];
    }
    return 0;
}

static int read_body(gzFile f, const char *path, IdxArray *out) {
    size_t total = 0;
    char beyond;
    if (read_header(f, path, out, &total)) return 1;
    out->data = malloc(total);
    if (!out->data) return report_text("%s: no memory for %zu bytes", path, total);
    if (read_exactly(f, path, out->data, total, "data")) return 1;
    return gzread(f, &beyond, 1) > 0
               ? report_text("%s: has bytes beyond its %zu elements; the header does not fit the data", path, total)
               : 0;
}

int idx_read(const char *path, IdxArray *out) {
    char used[4096];
    memset(out, 0, sizeof *out);
    errno = 0;
    gzFile f = open_either(path, used, sizeof used);
    if (!f) return report_text("%s[.gz]: %s", path, errno ? strerror(errno) : "cannot be read");
    int failed = read_body(f, used, out);
    gzclose(f);
    if (failed) {
        free(out->data);
        out->data = NULL;
    }
    return failed;
}
