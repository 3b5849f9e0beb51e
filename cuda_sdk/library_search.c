/* library_search.c: see library_search.h.  Folders are looked for without running anything: a python3 says by its own
 * place where its packages are. */
#define _GNU_SOURCE /* RTLD_NODELETE, dlinfo, realpath */
#include "cuda_sdk/library_search.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lists, below a prefix; globs. */
static const char toolkit_folders[] = "lib64\0lib\0targets/*/lib\0";
static const char site_folders[] = "lib/python3*/site-packages\0lib/python3*/dist-packages\0"
                                   "local/lib/python3*/dist-packages\0"
                                   "versions/*/lib/python3*/site-packages\0"; /* pyenv, whose python3 is a script */

/* After |at| of a list. */
static const char *next(const char *at) { return at + strlen(at) + 1; }

typedef struct Search {
    const amp_library_places *places;
    amp_library_accept accept;
    void *ctx, *library;
    amp_error broken;   /* the first library that is there and cannot be used; code AMP_OK: none */
    char searched[420]; /* for the message */
} Search;

static void note_place(Search *s, const char *fmt, ...) {
    size_t used = strlen(s->searched), room = sizeof s->searched - used;
    int n = snprintf(s->searched + used, room, "%s", used ? ", " : "");
    va_list args;
    va_start(args, fmt);
    if ((size_t)n < room) vsnprintf(s->searched + used + n, room - (size_t)n, fmt, args);
    va_end(args);
}

static void note_broken(Search *s, const char *path, const char *why) {
    if (s->broken.code == AMP_OK)
        amp_fail(&s->broken, AMP_BAD_FILE, "%s cannot be used as %s: %s", path, s->places->title, why);
}

/* dlclose of NVRTC leaks memory of the C++ library inside it; opening it or cuBLASLt again takes time. */
static void keep_loaded(const char *path) {
    void *again = dlopen(path, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    if (again) dlclose(again);
}

static bool try_library(Search *s, const char *path) {
    bool is_name = !strchr(path, '/');
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        if (!why) why = "it cannot be opened";
        /* Of a name, the loader says "No such file" where it knows none; everything else is about a file. */
        if (!is_name || !strstr(why, strerror(ENOENT))) note_broken(s, path, why);
        return false;
    }
    amp_error err = {0};
    if (s->accept(s->ctx, library, &err)) {
        note_broken(s, path, err.message);
        dlclose(library);
        return false;
    }
    keep_loaded(path);
    s->library = library;
    return true;
}

static bool try_folder(Search *s, const char *folder) {
    for (const char *name = s->places->names; *name; name = next(name)) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof path, "%s/%s", folder, name);
        if (n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0 && try_library(s, path)) return true;
    }
    return false;
}

/* The folders <prefix>/<below>; only |below| is a glob; the last in the alphabet is the newest version. */
static bool try_below(Search *s, const char *prefix, const char *below) {
    char pattern[2 * PATH_MAX], *to = pattern;
    if (strlen(prefix) >= PATH_MAX / 2) return false;
    for (const char *from = prefix; *from; *to++ = *from++)
        if (strchr("*?[]\\", *from)) *to++ = '\\';
    snprintf(to, PATH_MAX, "/%s", below);
    glob_t found;
    bool done = false;
    if (glob(pattern, 0, NULL, &found)) return false;
    for (size_t i = found.gl_pathc; i-- > 0 && !done;) done = try_folder(s, found.gl_pathv[i]);
    globfree(&found);
    return done;
}

static bool try_each_below(Search *s, const char *prefix, const char *folders) {
    for (const char *below = folders; *below; below = next(below))
        if (try_below(s, prefix, below)) return true;
    return false;
}

static bool try_python(Search *s, const char *prefix) {
    for (const char *site = site_folders; *site; site = next(site))
        for (const char *wheel = s->places->wheels; *wheel; wheel = next(wheel)) {
            char below[200];
            snprintf(below, sizeof below, "%s/%s", site, wheel);
            if (try_below(s, prefix, below)) return true;
        }
    return false;
}

/* Cuts /prefix/bin/python3 to /prefix. */
static bool cut_to_prefix(char *path) {
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(path, '/');
        if (!slash) return false;
        *slash = '\0';
    }
    return true;
}

/* The first python3 of PATH: /usr/bin/python3 -> /usr.  |real|: with links resolved: a virtual environment's
 * python3 is a link. */
static bool python_prefix(char prefix[PATH_MAX], bool real) {
    const char *path = getenv("PATH");
    for (const char *end; path && *path; path = *end ? end + 1 : end) {
        char file[PATH_MAX];
        end = path + strcspn(path, ":");
        int n = snprintf(file, sizeof file, "%.*s/python3", (int)(end - path), path);
        if (*path != '/' || n < 0 || (size_t)n >= sizeof file || access(file, X_OK) != 0) continue;
        if (!real) return cut_to_prefix(strcpy(prefix, file));
        return realpath(file, prefix) && cut_to_prefix(prefix);
    }
    return false;
}

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* The library itself, its folder, or one that holds a toolkit or a wheel (`pip install --target`). */
static bool search_named(Search *s, const char *path) {
    struct stat st;
    note_place(s, "%s=%s", s->places->variable, path);
    if (stat(path, &st) != 0) return false;
    if (!S_ISDIR(st.st_mode)) {
        char file[PATH_MAX]; /* the loader takes only a path with a slash for a path */
        return realpath(path, file) && try_library(s, file);
    }
    return try_folder(s, path) || try_each_below(s, path, s->places->wheels) ||
           try_each_below(s, path, toolkit_folders);
}

static bool search_loader(Search *s) {
    note_place(s, "the loader's path");
    for (const char *name = s->places->names; *name; name = next(name))
        if (try_library(s, name)) return true;
    return false;
}

static bool search_toolkits(Search *s) {
    for (const char *variable = "CUDA_HOME\0CUDA_PATH\0"; *variable; variable = next(variable)) {
        const char *prefix = environment(variable);
        if (!prefix) continue;
        note_place(s, "%s=%s", variable, prefix);
        if (try_each_below(s, prefix, toolkit_folders)) return true;
    }
    note_place(s, "/usr/local/cuda*");
    for (const char *folder = toolkit_folders; *folder; folder = next(folder)) {
        char below[64];
        snprintf(below, sizeof below, "cuda*/%s", folder);
        if (try_below(s, "/usr/local", below)) return true;
    }
    return false;
}

static bool search_wheels(Search *s) {
    char prefix[PATH_MAX];
    const char *virtual_env = environment("VIRTUAL_ENV");
    if (virtual_env) {
        note_place(s, "VIRTUAL_ENV=%s", virtual_env);
        if (try_python(s, virtual_env)) return true;
    }
    for (int real = 0; real < 2; real++)
        if (python_prefix(prefix, real)) {
            if (!real) note_place(s, "Python's packages in %s", prefix);
            if (try_python(s, prefix)) return true;
        }
    const char *home = environment("HOME");
    if (!home || *home != '/' || snprintf(prefix, sizeof prefix, "%s/.local", home) >= (int)sizeof prefix) return false;
    note_place(s, "in ~/.local");
    return try_python(s, prefix);
}

amp_status amp_library_search(const amp_library_places *places, amp_library_accept accept, void *ctx, void **library,
                              amp_error *err) {
    Search s = {.places = places, .accept = accept, .ctx = ctx};
    const char *named = environment(places->variable);
    bool found = named ? search_named(&s, named) : search_loader(&s) || search_toolkits(&s) || search_wheels(&s);
    *library = s.library;
    if (found) return AMP_OK;
    if (s.broken.code) return amp_fail(err, s.broken.code, "%s", s.broken.message);
    return amp_fail(err, AMP_NOT_FOUND,
                    "%s was not found: install it with `pip install %s` or with the CUDA toolkit, or set %s to its "
                    "folder; searched: %s",
                    places->title, places->package, places->variable, s.searched);
}

/* ---- an opened library ------------------------------------------------------------------------------------------- */

amp_status amp_library_fill(void *library, const char *symbols, void *calls, amp_error *err) {
    char *to = calls;
    for (const char *symbol = symbols; *symbol; symbol = next(symbol)) {
        void *address = dlsym(library, symbol);
        if (!address) return amp_fail(err, AMP_BAD_FILE, "it has no %s", symbol);
        memcpy(to, &address, sizeof address); /* POSIX: pointers to functions are like those to data */
        to += sizeof address;
    }
    return AMP_OK;
}

void amp_library_path(void *library, char *out, size_t size) {
    struct link_map *map = NULL;
    *out = '\0';
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name) snprintf(out, size, "%s", map->l_name);
}
