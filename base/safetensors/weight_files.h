/* weight_files.h: published weights, whose data is read piece by piece: one safetensors file, or the shards that an
 * index lists.
 *
 * An index is what Hugging Face's tools write beside large models, model.safetensors.index.json:
 *
 *     {"metadata": {...}, "weight_map": {"wte.weight": "model-00001-of-00002.safetensors", ...}}
 *
 * A path that ends in .json is one.  Shards are looked for from the folder of the index on; a name that is absolute or
 * leads out of it by .. is refused.  What the index lists and what the shards hold must be the same.
 */
#ifndef AMP_BASE_SAFETENSORS_WEIGHT_FILES_H
#define AMP_BASE_SAFETENSORS_WEIGHT_FILES_H

#include <stdbool.h>

#include "base/safetensors/safetensors.h"

typedef struct amp_weight_files amp_weight_files;

/* By its name: what is read as an index. */
bool amp_weight_files_is_index(const char *path);
/* Reads index and headers.  AMP_NOT_FOUND, AMP_IO, AMP_BAD_FILE, AMP_OUT_OF_MEMORY; AMP_MISMATCH: the index and the
 * shards do not have the same tensors. */
amp_status amp_weight_files_open(const char *path, const amp_allocator *allocator, amp_weight_files **out,
                                 amp_error *err);
/* A safetensors file in memory, as amp_safetensors_parse. */
amp_status amp_weight_files_of_memory(const void *bytes, size_t size, const char *name, const amp_allocator *allocator,
                                      amp_weight_files **out, amp_error *err);
void amp_weight_files_close(amp_weight_files *files); /* NULL is a no-op */

/* Of all shards, in order of name; |data| of the views may be NULL. */
int32_t amp_weight_files_count(const amp_weight_files *files);
const amp_tensor_view *amp_weight_files_at(const amp_weight_files *files, int32_t index);
amp_status amp_weight_files_read(const amp_weight_files *files, int32_t index, size_t from, void *to, size_t bytes,
                                 amp_error *err);
amp_status amp_weight_files_read_next(const amp_weight_files *files, int32_t index, size_t from, void *to, size_t bytes,
                                      amp_xxh64 *sum, amp_error *err); /* as amp_safetensors_read_next */
/* Reads all data, where that is no more than a few MiB: from then on nothing can fail.  AMP_IO, AMP_BAD_FILE,
 * AMP_OUT_OF_MEMORY. */
enum { AMP_WEIGHTS_HELD = 32 << 20 /* bytes */ };
amp_status amp_weight_files_hold_small(amp_weight_files *files, amp_error *err);
/* AMP_IO where one was written to since it was opened. */
amp_status amp_weight_files_check_unchanged(const amp_weight_files *files, amp_error *err);

const char *amp_weight_files_path(const amp_weight_files *files);                      /* as it was given */
const char *amp_weight_files_metadata(const amp_weight_files *files, const char *key); /* of the first; NULL */
/* Every file that is read but |path| itself: none without an index.  NULL out of range. */
const char *amp_weight_files_shard(const amp_weight_files *files, int32_t index);

#endif
