/* safetensors.h: reading untrusted safetensors files strictly, and writing them.
 *
 * Format: https://github.com/huggingface/safetensors, README, "Format".  Stricter than the reference reader where that
 * closes a loophole: see runtime/README.md.
 */
#ifndef AMP_BASE_SAFETENSORS_H
#define AMP_BASE_SAFETENSORS_H

#include <stdbool.h>

#include "amp/base.h"
#include "base/file.h"
#include "base/hash.h"

enum { AMP_SAFETENSORS_MAX_RANK = 8 };

typedef struct amp_tensor_view {
    const char *name;
    amp_dtype dtype;        /* AMP_DT_NONE: a type that this library does not compute with (I8, F8_E4M3, ...) */
    const char *dtype_name; /* as the file says: "F32" */
    int32_t rank;
    int64_t dims[AMP_SAFETENSORS_MAX_RANK];
    const void *data; /* any alignment: copy, do not cast.  NULL: only the file's header was read */
    size_t bytes;
    uint64_t begin; /* of what was read: its first byte, counted from the first of all data */
    uint64_t sum;   /* and what the file says of it, where it has sums (safetensors_sums.h) */
} amp_tensor_view;

typedef struct amp_safetensors amp_safetensors;

/* Reads the whole file; errors name the file, the place and the rule.  Close with amp_safetensors_close (NULL is a
 * no-op).  AMP_BAD_FILE also where a sum that the file has of its metadata or of a tensor is another one. */
amp_status amp_safetensors_open(const char *path, const amp_allocator *allocator, amp_safetensors **out,
                                amp_error *err);
/* The same, but only the header of a regular file is read: |data| of the views is NULL.  The file stays open, and
 * amp_safetensors_read reads what is asked for and compares its sums then.  |kinds|: of files that are taken. */
amp_status amp_safetensors_open_header(const char *path, amp_file_kinds kinds, const amp_allocator *allocator,
                                       amp_safetensors **out, amp_error *err);
/* The same of bytes in memory, which stay the caller's and must outlive the result; |name| names them in errors. */
amp_status amp_safetensors_parse(const void *bytes, size_t size, const char *name, const amp_allocator *allocator,
                                 amp_safetensors **out, amp_error *err);
void amp_safetensors_close(amp_safetensors *file);

/* |bytes| bytes of a tensor of |file|, from byte |from| of it on, however the file was opened.  AMP_IO; AMP_BAD_FILE:
 * those are all, and have another sum than the file says. */
amp_status amp_safetensors_read(const amp_safetensors *file, const amp_tensor_view *tensor, size_t from, void *to,
                                size_t bytes, amp_error *err);
/* The same of a tensor that is read piece by piece, in order: |sum| is the sum of the pieces before, and is compared
 * after the last. */
amp_status amp_safetensors_read_next(const amp_safetensors *file, const amp_tensor_view *tensor, size_t from, void *to,
                                     size_t bytes, amp_xxh64 *sum, amp_error *err);
/* Reads the data that is not in memory yet, so that nothing of the file can fail any more, and closes it.  AMP_IO,
 * AMP_BAD_FILE, AMP_OUT_OF_MEMORY: it is as it was. */
amp_status amp_safetensors_hold(amp_safetensors *file, amp_error *err);
/* AMP_IO if only the file's header was read, and the file was written to since. */
amp_status amp_safetensors_check_unchanged(const amp_safetensors *file, amp_error *err);

int32_t amp_safetensors_count(const amp_safetensors *file);
const amp_tensor_view *amp_safetensors_at(const amp_safetensors *file, int32_t index);      /* in order of name */
const amp_tensor_view *amp_safetensors_find(const amp_safetensors *file, const char *name); /* NULL when absent */
const char *amp_safetensors_metadata(const amp_safetensors *file, const char *key);         /* NULL when absent */

typedef struct amp_metadata {
    const char *key, *value;
} amp_metadata;

/* Replaces |path| atomically.  Tensors are written by descending alignment, then by name; data starts at a multiple
 * of 64.  The type is |dtype|, or where that is AMP_DT_NONE the one named by |dtype_name|.  Sums are added to the
 * metadata, but of what goes to a device or a pipe: they are known when the data is written, and stand before it. */
amp_status amp_safetensors_write(const char *path, const amp_tensor_view *tensors, int32_t count,
                                 const amp_metadata *metadata, int32_t metadata_count, const amp_allocator *allocator,
                                 amp_error *err);

/* The same, of tensors that are not in memory (their |data| is not looked at): |data| writes exactly the bytes of
 * tensor |index| to |file|, once for each, in the order of the file. */
typedef amp_status amp_tensor_data(void *user, int32_t index, amp_file_writer *file, amp_error *err);
amp_status amp_safetensors_write_from(const char *path, const amp_tensor_view *tensors, int32_t count,
                                      const amp_metadata *metadata, int32_t metadata_count, amp_tensor_data *data,
                                      void *user, const amp_allocator *allocator, amp_error *err);

/* |count| elements of |from| as f32 (F32, F16, BF16, F64 and the integer types); false: this dtype cannot be converted.
 */
bool amp_tensor_to_f32(const amp_tensor_view *from, float *to, size_t count);

#endif
