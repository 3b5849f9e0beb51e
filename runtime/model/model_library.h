/* model_library.h: checked bytes as a library that the system has loaded: a private copy, which no file backs. */
#ifndef AMP_RUNTIME_MODEL_MODEL_LIBRARY_H
#define AMP_RUNTIME_MODEL_MODEL_LIBRARY_H

#include "base/error.h"

/* Every call loads a library of its own, whatever is loaded already under that name.  |name| names it in errors; what
 * follows its last slash names it to debuggers. */
amp_status amp_library_open(const void *bytes, size_t size, const char *name, void **out, amp_error *err);
/* Where no copy can be made because a file of that size would be over the process's limit (ulimit -f): the file at
 * |path| itself, which holds |bytes|.  Else as amp_library_open. */
amp_status amp_library_open_file(const char *path, const void *bytes, size_t size, void **out, amp_error *err);
/* Does what a loader has left undone that does not know AMP_MODEL_ADDRESSES_SECTION of the |bytes| that it loaded. */
amp_status amp_library_add_addresses(void *library, const void *bytes, size_t size, const char *name, amp_error *err);
/* The memory that such a library takes: the copy, and of that once more what the loader writes to. */
size_t amp_library_bytes(const void *bytes, size_t size);
/* NULL where it has none. */
void *amp_library_symbol(void *library, const char *symbol);
void amp_library_close(void *library); /* NULL is a no-op */

#endif
