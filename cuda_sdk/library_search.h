/* library_search.h: opens one of NVIDIA's libraries where it is installed: in the file or folder that a variable names
 * (where it is set, nowhere else); else in the loader's path, the toolkit (CUDA_HOME, CUDA_PATH, /usr/local/cuda*), or
 * the wheels of PyPI in VIRTUAL_ENV, beside the python3 of PATH or in ~/.local. */
#ifndef AMP_CUDA_SDK_LIBRARY_SEARCH_H
#define AMP_CUDA_SDK_LIBRARY_SEARCH_H

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A list is its strings one after another, each with its zero, and an empty one: "a\0b\0". */
typedef struct amp_library_places {
    const char *variable;
    const char *names;   /* a list: of files, the first choice first */
    const char *wheels;  /* a list: folders below Python's packages, as globs */
    const char *title;   /* for errors: "NVIDIA's NVRTC (libnvrtc.so.13 or .12)" */
    const char *package; /* of PyPI */
} amp_library_places;

/* Says whether an opened library is usable; if not, the search goes on. */
typedef amp_status (*amp_library_accept)(void *ctx, void *library, amp_error *err);

/* Opens the first library that |accept| takes.  AMP_NOT_FOUND: there is none; AMP_BAD_FILE: none but one that cannot
 * be used, with its file.  Its code stays in the process, also if the caller closes it. */
amp_status amp_library_search(const amp_library_places *places, amp_library_accept accept, void *ctx, void **library,
                              amp_error *err);

/* Fills |calls|, which consists of pointers to functions, in the order of |symbols|, a list.  AMP_BAD_FILE names the
 * first that is missing. */
amp_status amp_library_fill(void *library, const char *symbols, void *calls, amp_error *err);

/* The file of an opened library; "" if the loader does not say. */
void amp_library_path(void *library, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
