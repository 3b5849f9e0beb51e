/* cache_trim.c: see cache_trim.h. */
#define _XOPEN_SOURCE 700 /* fstatat, unlinkat */
#include "runtime/device/cuda/cache_trim.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"

enum {
    KEY_LETTERS = 64,
    ABANDONED_SECONDS = 3600 /* a half-written file that old belongs to a process that died */
};

typedef struct Kernel {
    struct timespec used;
    long long size;
    char name[KEY_LETTERS + sizeof AMP_CUDA_CACHE_SUFFIX];
} Kernel;

static bool begins_like_ours(const char *name) {
    static const char suffix[] = AMP_CUDA_CACHE_SUFFIX;
    return strspn(name, "0123456789abcdef") == KEY_LETTERS && !strncmp(name + KEY_LETTERS, suffix, sizeof suffix - 1);
}

static bool is_kernel(const char *name) {
    return begins_like_ours(name) && strlen(name) == KEY_LETTERS + strlen(AMP_CUDA_CACHE_SUFFIX);
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
static size_t list_kernels(DIR *dir, Kernel *kernels, size_t room) {
    size_t count = 0;
    struct stat st;
    for (struct dirent *entry; (entry = readdir(dir));) {
        const char *name = entry->d_name;
        if (!begins_like_ours(name) || fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
            continue;
        if (!is_kernel(name)) remove_abandoned(dir, name, &st);
        else if (count < room) {
            Kernel *k = &kernels[count++];
            k->used = st.st_mtim;
            k->size = st.st_size;
            strcpy(k->name, name);
        }
    }
    return count;
}

static int older_first(const void *a, const void *b) {
    const Kernel *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void remove_beyond(DIR *dir, Kernel *kernels, size_t count, long long limit) {
    long long bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += kernels[i].size;
    if (bytes <= limit) return;
    qsort(kernels, count, sizeof *kernels, older_first);
    for (size_t i = 0; i < count && bytes > limit; i++) {
        unlinkat(dirfd(dir), kernels[i].name, 0);
        bytes -= kernels[i].size;
    }
}

void amp_cuda_cache_trim(const char *folder, long long limit, const amp_allocator *allocator) {
    DIR *dir = opendir(folder);
    if (!dir) return;
    size_t room = count_kernels(dir);
    Kernel *kernels = amp_alloc(allocator, (room + 1) * sizeof *kernels);
    if (kernels) remove_beyond(dir, kernels, list_kernels(dir, kernels, room), limit);
    amp_free(allocator, kernels, (room + 1) * sizeof *kernels);
    closedir(dir);
}
