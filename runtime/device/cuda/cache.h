/* cache.h: compiled kernels on disk: one file per key in $AMPC_CACHE_DIR, or $XDG_CACHE_HOME/ampc, or ~/.cache/ampc.
 *
 * No failure here is an error of the caller's: what cannot be read is compiled again, what cannot be written (a full
 * disk, a folder without permission) is not kept.  A file is written beside and renamed, so that another process sees
 * all of it or none; each has a checksum, and a damaged one is removed.  Beyond AMPC_CACHE_LIMIT bytes (default 512
 * MiB; 0: no cache) the files that were least recently used go.
 *
 * Cached kernels are code: folder and files must belong to the user or to root, and no other user may write to them;
 * others are not used.  A HOME that is relative or not there does not count.
 */
#ifndef AMP_RUNTIME_DEVICE_CUDA_CACHE_H
#define AMP_RUNTIME_DEVICE_CUDA_CACHE_H

#include <stdbool.h>

#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_cuda_cache amp_cuda_cache;

typedef struct amp_cuda_cache_key {
    uint8_t bytes[32];
} amp_cuda_cache_key;

typedef struct amp_cuda_cache_entry {
    void *image; /* from the cache's allocator: amp_cuda_cache_entry_free */
    size_t size;
    int32_t is_cubin;
    int32_t registers, shared_bytes, spill_bytes, stack_bytes; /* -1: not known */
} amp_cuda_cache_entry;

/* NULL where the cache is off, no folder is known or memory is out: every call below takes NULL.  get and put may be
 * called from several threads and processes. */
amp_cuda_cache *amp_cuda_cache_open(const amp_allocator *allocator);
/* Removes what is beyond the limit, if anything was put; how many kernels those were. */
int amp_cuda_cache_close(amp_cuda_cache *cache);
const char *amp_cuda_cache_folder(const amp_cuda_cache *cache); /* "" for NULL */

/* |parts|: the texts that the image depends on, in order. */
amp_cuda_cache_key amp_cuda_cache_key_of(const char *const *parts, int part_count, int nvrtc_version, int arch,
                                         bool is_cubin);

bool amp_cuda_cache_get(amp_cuda_cache *cache, const amp_cuda_cache_key *key, amp_cuda_cache_entry *out);
/* Whether it was kept. */
bool amp_cuda_cache_put(amp_cuda_cache *cache, const amp_cuda_cache_key *key, const amp_cuda_cache_entry *entry);
void amp_cuda_cache_entry_free(const amp_cuda_cache *cache, amp_cuda_cache_entry *entry);

#ifdef __cplusplus
}
#endif
#endif
