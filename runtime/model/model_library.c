/* model_library.c: see model_library.h.
 *
 * The system's loader takes names of files only, and takes two names or two files (device and inode) that are equal for
 * one library: it would answer with an old model where a new one has taken its path.  So the bytes go to a file that
 * has no other name: one in memory, which is opened as /proc/self/fd/N; or, where there is no such thing, a temporary
 * one, which is unlinked once it is mapped.  Neither can be written by anybody afterwards.  A process may be forbidden
 * to make files of that size (RLIMIT_FSIZE counts both kinds): then the model's own file is loaded.
 */
#define _GNU_SOURCE /* memfd_create, mkostemps */
#include "runtime/model/model_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amp/model_abi.h"
#include "base/elf.h"
#include "base/file.h"

typedef struct Opening {
    const void *bytes;
    size_t size;     /* of the file */
    size_t loaded;   /* of the copy: what tools read is left out */
    char label[200]; /* the file's name, as debuggers show it */
    void *library;
    char memory[256], file[256]; /* why there is no library from there */
    bool too_large;              /* for a file of this process */
} Opening;

static bool load(Opening *o, const char *path, char why[256]) {
    o->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (o->library) return true;
    const char *reason = dlerror();
    snprintf(why, 256, "%s", reason ? reason : "the system gives no reason");
    return false;
}

/* ---- in memory --------------------------------------------------------------------------------------------------- */

/* The number of a descriptor is given out again, the number of a file's inode only when the library is gone.  So the
 * path spells the inode, which changes nothing of what it leads to: "/." for ones, "/" for zeros. */
static void spell_path(int fd, uint64_t inode, char path[256]) {
    char *at = path + sprintf(path, "/proc/self/fd");
    for (; inode; inode >>= 1) at += sprintf(at, inode & 1 ? "/." : "/");
    sprintf(at, "/%d", fd);
}

#ifdef MFD_CLOEXEC
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* Linux 6.3: no program; it can be mapped as code whatever vm.memfd_noexec says */
#endif

static int file_in_memory(const char *label) {
    int fd = memfd_create(label, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    return fd < 0 && errno == EINVAL ? memfd_create(label, MFD_CLOEXEC) : fd;
}
#else
static int file_in_memory(const char *label) {
    (void)label;
    errno = ENOSYS;
    return -1;
}
#endif

static bool open_in_memory(Opening *o) {
    char path[256];
    struct stat st;
    int fd = file_in_memory(o->label);
    errno = fd < 0 ? errno : 0;
    if (fd < 0 || amp_fd_write(fd, o->bytes, o->loaded) < o->loaded || fstat(fd, &st)) {
        o->too_large |= errno == EFBIG;
        snprintf(o->memory, sizeof o->memory, "no file in memory: %s", strerror(errno));
        if (fd >= 0) close(fd);
        return false;
    }
    spell_path(fd, (uint64_t)st.st_ino, path);
    bool done = load(o, path, o->memory);
    close(fd);
    return done;
}

/* ---- in a temporary file ----------------------------------------------------------------------------------------- */

/* The loader expands what follows a dollar. */
static bool can_hold(const char *folder) {
    return folder && folder[0] == '/' && !strchr(folder, '$') && strlen(folder) < PATH_MAX - 256;
}

static bool open_in_folder(Opening *o, const char *folder) {
    char path[PATH_MAX];
    if (!can_hold(folder)) return false;
    snprintf(path, sizeof path, "%s/amp-XXXXXX-%s", folder, o->label);
    int fd = mkostemps(path, (int)strlen(o->label) + 1, O_CLOEXEC);
    bool written = fd >= 0 && amp_fd_write(fd, o->bytes, o->loaded) == o->loaded;
    o->too_large |= !written && errno == EFBIG;
    if (!written) snprintf(o->file, sizeof o->file, "a temporary file in %.100s: %s", folder, strerror(errno));
    if (fd >= 0) close(fd);
    bool done = written && load(o, path, o->file);
    if (fd >= 0) unlink(path);
    return done;
}

static bool open_in_file(Opening *o) {
    return open_in_folder(o, getenv("TMPDIR")) || open_in_folder(o, "/dev/shm") || open_in_folder(o, "/var/tmp") ||
           open_in_folder(o, "/tmp");
}

/* ---- the model's own file ---------------------------------------------------------------------------------------- */

static bool holds(int fd, const char *bytes, size_t size) {
    char part[16 << 10];
    for (;;) {
        ssize_t n = read(fd, part, sizeof part);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n == 0 && size == 0;
        if ((size_t)n > size || memcmp(part, bytes, (size_t)n)) return false;
        bytes += n, size -= (size_t)n;
    }
}

/* By its number, so that what is loaded is what was compared, whatever takes the path meanwhile. */
static bool open_itself(Opening *o, const char *path) {
    char spelled[256], why[256];
    struct stat st;
    int fd;
    bool same = !amp_file_open(path, AMP_FILE_REGULAR, &fd, NULL) && !fstat(fd, &st) && holds(fd, o->bytes, o->size);
    if (same) spell_path(fd, (uint64_t)st.st_ino, spelled);
    bool done = same && load(o, spelled, why);
    if (fd >= 0) close(fd);
    return done;
}

/* ---- either ------------------------------------------------------------------------------------------------------ */

static void set_label(Opening *o, const char *name) {
    const char *slash = strrchr(name, '/');
    snprintf(o->label, sizeof o->label, "%s", slash ? slash + 1 : name);
    for (char *c = o->label; *c; c++)
        if (*c == '$') *c = '_';
}

static amp_status open_library(const char *name, const char *path, const void *bytes, size_t size, void **out,
                               amp_error *err) {
    Opening o = {.bytes = bytes, .size = size, .loaded = amp_elf_loaded(bytes, size)};
    *out = NULL;
    set_label(&o, name);
    if (open_in_memory(&o) || open_in_file(&o) || (o.too_large && path && open_itself(&o, path))) {
        *out = o.library;
        return AMP_OK;
    }
    if (o.too_large)
        return amp_fail(
            err, AMP_IO,
            "%s: the system cannot load it: a copy of %zu bytes is over this process's limit of the size of "
            "files (RLIMIT_FSIZE); raise it to %zu or more (ulimit -f %zu), load the model as a file, or link "
            "it into the program (ampc --emit o)",
            name, o.loaded, o.loaded, (o.loaded + 1023) / 1024);
    return amp_fail(err, AMP_IO,
                    "%s: the system cannot load it: %s; %s; mount /proc, or let TMPDIR be a folder of a file system "
                    "that may hold programs",
                    name, o.memory, o.file);
}

amp_status amp_library_open(const void *bytes, size_t size, const char *name, void **out, amp_error *err) {
    return open_library(name, NULL, bytes, size, out, err);
}

amp_status amp_library_open_file(const char *path, const void *bytes, size_t size, void **out, amp_error *err) {
    return open_library(path, path, bytes, size, out, err);
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* The words of a library that were constant once it was loaded. */
typedef struct Words {
    uint64_t base, first, bytes; /* of the library, and in the file's own terms */
} Words;

static bool move(const Words *w, uint64_t address) {
    uint64_t value, offset = address - w->first;
    if (offset > w->bytes || sizeof value > w->bytes - offset) return false;
    char *word = (char *)(uintptr_t)(w->base + address);
    memcpy(&value, word, sizeof value);
    value += w->base;
    memcpy(word, &value, sizeof value);
    return true;
}

/* DT_RELR: an even number is the address of a word, the bits of an odd one from the second on say which of the next 63
 * words there are more. */
static bool move_all(const Words *w, const char *packed, size_t size) {
    uint64_t code, next = 0;
    bool inside = true;
    for (; inside && size >= sizeof code; packed += sizeof code, size -= sizeof code) {
        memcpy(&code, packed, sizeof code);
        if (code & 1) {
            for (uint64_t bits = code >> 1, at = next; inside && bits; bits >>= 1, at += sizeof code)
                if (bits & 1) inside = move(w, at);
            next += 63 * sizeof code;
        } else {
            inside = move(w, code);
            next = code + sizeof code;
        }
    }
    return inside;
}

enum { CONSTANT_AFTER_LOADING = 0x6474E552 }; /* PT_GNU_RELRO */

amp_status amp_library_add_addresses(void *library, const void *bytes, size_t size, const char *name, amp_error *err) {
    struct link_map *map = NULL;
    Words w;
    size_t at, length;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) || !map ||
        amp_elf_section(bytes, size, AMP_MODEL_ADDRESSES_SECTION, &at, &length, NULL) ||
        !amp_elf_segment(bytes, size, CONSTANT_AFTER_LOADING, &w.first, &w.bytes))
        return amp_fail(err, AMP_BAD_FILE, "%s: its addresses cannot be found; compile the model again", name);
    w.base = map->l_addr;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = (w.base + w.first) / page * page;
    const uint64_t to = (w.base + w.first + w.bytes) / page * page;
    void *pages = (void *)(uintptr_t)from;
    if (mprotect(pages, to - from, PROT_READ | PROT_WRITE))
        return amp_fail_errno(err, AMP_IO, errno, "%s: its tables cannot be written", name);
    if (!move_all(&w, (const char *)bytes + at, length))
        return amp_fail(err, AMP_BAD_FILE, "%s: an address is outside its tables: it is damaged", name);
    if (mprotect(pages, to - from, PROT_READ))
        return amp_fail_errno(err, AMP_IO, errno, "%s: its tables cannot be protected", name);
    return AMP_OK;
}

size_t amp_library_bytes(const void *bytes, size_t size) {
    uint64_t first, written = 0;
    (void)amp_elf_segment(bytes, size, CONSTANT_AFTER_LOADING, &first, &written);
    return amp_elf_loaded(bytes, size) + (size_t)written;
}

void *amp_library_symbol(void *library, const char *symbol) { return dlsym(library, symbol); }

void amp_library_close(void *library) {
    if (library) dlclose(library);
}
