/* fuzz.c: see fuzz.h. */
#define _GNU_SOURCE
#include "tests/fuzz/fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t now, limit;

void fuzz_fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "fuzz: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    abort();
}

static void *take(void *user, size_t size, size_t align) {
    (void)user;
    if (size > limit - now)
        fuzz_fail("%zu bytes are out and %zu more are asked for; the limit is %zu", now, size, limit);
    now += size;
    size_t step = align < 16 ? 16 : align;
    return aligned_alloc(step, (size + step - 1) / step * step);
}

static void give(void *user, void *p, size_t size, size_t align) {
    (void)user, (void)align;
    now -= size;
    free(p);
}

amp_allocator fuzz_allocator(size_t most) {
    limit = most;
    return (amp_allocator){.alloc = take, .free = give};
}

void fuzz_check_freed(void) {
    if (now) fuzz_fail("%zu bytes were not freed", now);
}

const char *fuzz_file(const uint8_t *data, size_t size) {
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("input", 0);
        if (fd < 0) fuzz_fail("no memory file");
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (ftruncate(fd, 0) || (size && pwrite(fd, data, size, 0) != (ssize_t)size)) fuzz_fail("the memory file is full");
    return path;
}
