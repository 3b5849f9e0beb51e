/* cache.c: see cache.h.  A file is a header (what it is, its key, the SHA-256 of all that follows), a description of
 * the image, the image.  The order of use is kept in the files' modification times. */
#define _XOPEN_SOURCE 700 /* utimensat, fstatat, unlinkat */
#include "runtime/device/cuda/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"

/* A cached kernel's name is 64 letters of its key and this; while it is written, also what base/file.h adds. */
#define KERNEL_SUFFIX ".kernel"

enum {
    KEY_LETTERS = 64,
    NAME_ROOM = 96,
    FOLDER_MODE = 0700, /* as the XDG base directory specification asks */
    FOLDER_ROOM = PATH_MAX - NAME_ROOM,
    ABANDONED_SECONDS = 3600 /* a half-written file that old belongs to a process that died */
};
static const long long default_limit = 512ll << 20;

struct amp_cuda_cache {
    amp_allocator allocator;
    long long limit;
    int grown; /* by __atomic_ calls: something was put */
    char folder[PATH_MAX];
};

typedef struct Description { /* of the image after it */
    uint64_t size;
    int32_t is_cubin, registers, shared_bytes, spill_bytes, stack_bytes, reserved;
} Description;

typedef struct Header {
    char magic[8];
    uint8_t key[32], checksum[32]; /* SHA-256 of description and image */
    Description description;
} Header;

static const char magic[8] = "AMPKRN1";

/* ---- keeping the folder within its limit ---- */

typedef struct CachedKernel {
    struct timespec used;
    long long size;
    char name[KEY_LETTERS + sizeof KERNEL_SUFFIX];
} CachedKernel;

static bool begins_like_ours(const char *name) {
    static const char suffix[] = KERNEL_SUFFIX;
    return strspn(name, "0123456789abcdef") == KEY_LETTERS && !strncmp(name + KEY_LETTERS, suffix, sizeof suffix - 1);
}

static bool is_kernel(const char *name) {
    return begins_like_ours(name) && strlen(name) == KEY_LETTERS + strlen(KERNEL_SUFFIX);
}

static size_t count_kernels(DIR *dir) {
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(dir));) count += is_kernel(entry->d_name);
    rewinddir(dir);
    return count;
}

static void remove_abandoned(DIR *dir, const char *name, const struct stat *st) {
    if (time(NULL) - st->st_mtim.tv_sec > ABANDONED_SECONDS) unlinkat(dirfd(dir), name, 0);
}

/* Fills up to |room| kernels; there may be more by now, which the next call sees. */
static size_t list_kernels(DIR *dir, CachedKernel *kernels, size_t room) {
    size_t count = 0;
    struct stat st;
    for (struct dirent *entry; (entry = readdir(dir));) {
        const char *name = entry->d_name;
        if (!begins_like_ours(name) || fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
            continue;
        if (!is_kernel(name)) remove_abandoned(dir, name, &st);
        else if (count < room) {
            CachedKernel *k = &kernels[count++];
            k->used = st.st_mtim;
            k->size = st.st_size;
            strcpy(k->name, name);
        }
    }
    return count;
}

static int older_first(const void *a, const void *b) {
    const CachedKernel *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int remove_beyond(DIR *dir, CachedKernel *kernels, size_t count, long long limit) {
    long long bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += kernels[i].size;
    int removed = 0;
    if (bytes <= limit) return 0;
    qsort(kernels, count, sizeof *kernels, older_first);
    for (size_t i = 0; i < count && bytes > limit; i++) {
        removed += !unlinkat(dirfd(dir), kernels[i].name, 0);
        bytes -= kernels[i].size;
    }
    return removed;
}

/* Removes the kernels that were used longest ago until |limit| bytes are left, and what processes that died left
 * half-written.  Files of other names stay.  Failures are ignored: the next call does it. */
static int trim(const char *folder, long long limit, const amp_allocator *allocator) {
    DIR *dir = opendir(folder);
    int removed = 0;
    if (!dir) return 0;
    size_t room = count_kernels(dir);
    CachedKernel *kernels = amp_alloc(allocator, (room + 1) * sizeof *kernels);
    if (kernels) removed = remove_beyond(dir, kernels, list_kernels(dir, kernels, room), limit);
    amp_free(allocator, kernels, (room + 1) * sizeof *kernels);
    closedir(dir);
    return removed;
}

/* ---- where ---- */

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static long long limit_asked_for(void) {
    const char *text = environment("AMPC_CACHE_LIMIT");
    if (!text) return default_limit;
    char *end;
    errno = 0;
    long long limit = strtoll(text, &end, 10);
    return *end || errno || limit < 0 ? default_limit : limit;
}

static bool is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* XDG_CACHE_HOME counts only where it is absolute: so its specification.  A home that is relative, or that is not
 * there, does not count: nothing is made in its place. */
static bool find_folder(char folder[PATH_MAX]) {
    const char *own = environment("AMPC_CACHE_DIR"), *xdg = environment("XDG_CACHE_HOME"), *home = environment("HOME");
    int n = -1;
    if (own) n = snprintf(folder, FOLDER_ROOM, "%s", own);
    else if (xdg && *xdg == '/') n = snprintf(folder, FOLDER_ROOM, "%s/ampc", xdg);
    else if (home && *home == '/' && is_folder(home)) n = snprintf(folder, FOLDER_ROOM, "%s/.cache/ampc", home);
    return n > 0 && n < FOLDER_ROOM;
}

static bool make_folders(const char *path) {
    char part[PATH_MAX];
    strcpy(part, path);
    for (char *slash = part + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(part, FOLDER_MODE); /* whether the last one is there counts alone */
    }
    mkdir(part, FOLDER_MODE);
    return is_folder(part);
}

/* What is run must be this user's or the administrator's, and no other user may have written it. */
static bool is_trusted(const struct stat *st) {
    return (st->st_uid == geteuid() || st->st_uid == 0) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

static bool is_trusted_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && is_trusted(&st);
}

amp_cuda_cache *amp_cuda_cache_open(const amp_allocator *allocator) {
    long long limit = limit_asked_for();
    if (limit == 0) return NULL;
    amp_cuda_cache *cache = amp_alloc_zeroed(allocator, sizeof *cache);
    if (!cache) return NULL;
    cache->allocator = amp_allocator_or_default(allocator);
    cache->limit = limit;
    if (find_folder(cache->folder) && make_folders(cache->folder) && is_trusted_folder(cache->folder)) return cache;
    amp_free(allocator, cache, sizeof *cache);
    return NULL;
}

int amp_cuda_cache_close(amp_cuda_cache *cache) {
    if (!cache) return 0;
    amp_allocator allocator = cache->allocator;
    int removed = cache->grown ? trim(cache->folder, cache->limit, &allocator) : 0;
    amp_free(&allocator, cache, sizeof *cache);
    return removed;
}

const char *amp_cuda_cache_folder(const amp_cuda_cache *cache) { return cache ? cache->folder : ""; }

static void file_of(const amp_cuda_cache *cache, const amp_cuda_cache_key *key, char path[PATH_MAX]) {
    char hex[65];
    amp_sha256_hex(key->bytes, hex);
    snprintf(path, PATH_MAX, "%.*s/%s" KERNEL_SUFFIX, FOLDER_ROOM, cache->folder, hex);
}

/* ---- keys ---- */

static void hash_number(amp_sha256 *hash, uint64_t number) { amp_sha256_update(hash, &number, sizeof number); }

amp_cuda_cache_key amp_cuda_cache_key_of(const char *const *parts, int part_count, int nvrtc_version, int arch,
                                         bool is_cubin) {
    amp_sha256 hash;
    amp_cuda_cache_key key;
    amp_sha256_init(&hash);
    amp_sha256_update(&hash, magic, sizeof magic);
    hash_number(&hash, (uint64_t)nvrtc_version);
    hash_number(&hash, (uint64_t)arch);
    hash_number(&hash, is_cubin);
    for (int i = 0; i < part_count; i++) {
        size_t size = strlen(parts[i]);
        hash_number(&hash, size); /* so that no two lists of parts have the same bytes */
        amp_sha256_update(&hash, parts[i], size);
    }
    amp_sha256_final(&hash, key.bytes);
    return key;
}

/* ---- get ---- */

static void checksum_of(const Description *description, const void *image, uint8_t out[32]) {
    amp_sha256 hash;
    amp_sha256_init(&hash);
    amp_sha256_update(&hash, description, sizeof *description);
    amp_sha256_update(&hash, image, description->size);
    amp_sha256_final(&hash, out);
}

static bool is_whole(const Header *h, const amp_cuda_cache_key *key, const char *image, size_t size) {
    uint8_t checksum[32];
    if (memcmp(h->magic, magic, sizeof magic) || memcmp(h->key, key->bytes, sizeof h->key)) return false;
    if (size == 0 || h->description.size != size) return false;
    checksum_of(&h->description, image, checksum);
    return !memcmp(checksum, h->checksum, sizeof checksum);
}

static bool take_image(const amp_cuda_cache *cache, const amp_cuda_cache_key *key, const char *data, size_t size,
                       amp_cuda_cache_entry *out, bool *damaged) {
    Header h;
    *damaged = true;
    if (size < sizeof h) return false;
    memcpy(&h, data, sizeof h);
    if (!is_whole(&h, key, data + sizeof h, size - sizeof h)) return false;
    *damaged = false;
    const Description *d = &h.description;
    void *image = amp_alloc(&cache->allocator, d->size);
    if (!image) return false;
    memcpy(image, data + sizeof h, d->size);
    *out = (amp_cuda_cache_entry){image,           d->size,        d->is_cubin,   d->registers,
                                  d->shared_bytes, d->spill_bytes, d->stack_bytes};
    return true;
}

static bool read_whole(int fd, char *data, size_t size) {
    for (size_t at = 0; at < size;) {
        ssize_t n = read(fd, data + at, size - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += (size_t)n;
    }
    return true;
}

/* The bytes of a regular file that may be trusted: the file that was looked at is the one that is read.  Free with
 * amp_free(a, *data, *size + 1). */
static bool read_trusted(const char *path, const amp_allocator *a, char **data, size_t *size) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    *data = NULL;
    if (fd < 0) return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && is_trusted(&st)) {
        *size = (size_t)st.st_size;
        *data = amp_alloc(a, *size + 1);
    }
    bool done = *data && read_whole(fd, *data, *size);
    if (*data && !done) {
        amp_free(a, *data, *size + 1);
        *data = NULL;
    }
    close(fd);
    return done;
}

bool amp_cuda_cache_get(amp_cuda_cache *cache, const amp_cuda_cache_key *key, amp_cuda_cache_entry *out) {
    char path[PATH_MAX], *data;
    size_t size;
    *out = (amp_cuda_cache_entry){0};
    if (!cache) return false;
    file_of(cache, key, path);
    if (!read_trusted(path, &cache->allocator, &data, &size)) return false;
    bool damaged, found = take_image(cache, key, data, size, out, &damaged);
    amp_free(&cache->allocator, data, size + 1);
    if (damaged) unlink(path);
    if (found) utimensat(AT_FDCWD, path, NULL, 0); /* used now */
    return found;
}

void amp_cuda_cache_entry_free(const amp_cuda_cache *cache, amp_cuda_cache_entry *entry) {
    if (cache) amp_free(&cache->allocator, entry->image, entry->size);
    *entry = (amp_cuda_cache_entry){0};
}

/* ---- put ---- */

bool amp_cuda_cache_put(amp_cuda_cache *cache, const amp_cuda_cache_key *key, const amp_cuda_cache_entry *entry) {
    if (!cache || entry->size == 0 || entry->size + sizeof(Header) > (unsigned long long)cache->limit) return false;
    Header h = {.description = {entry->size, entry->is_cubin, entry->registers, entry->shared_bytes, entry->spill_bytes,
                                entry->stack_bytes, 0}};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.key, key->bytes, sizeof h.key);
    checksum_of(&h.description, entry->image, h.checksum);
    char path[PATH_MAX];
    file_of(cache, key, path);
    amp_file_writer *writer;
    if (amp_file_writer_open(path, &cache->allocator, &writer, NULL)) return false;
    if (amp_file_writer_write(writer, &h, sizeof h, NULL) ||
        amp_file_writer_write(writer, entry->image, entry->size, NULL)) {
        amp_file_writer_abandon(writer);
        return false;
    }
    if (amp_file_writer_commit(writer, NULL)) return false;
    __atomic_store_n(&cache->grown, 1, __ATOMIC_RELAXED);
    return true;
}
