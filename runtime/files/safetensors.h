/* safetensors.h: reading untrusted safetensors files strictly, and writing them.
 *
 * Format: https://github.com/huggingface/safetensors, README, "Format".  Stricter than the reference reader where that
 * closes a loophole: see runtime/README.md.
 */
#ifndef AMP_RUNTIME_FILES_SAFETENSORS_H
#define AMP_RUNTIME_FILES_SAFETENSORS_H

#include <stdbool.h>

#include "amp/base.h"

enum { AMP_SAFETENSORS_MAX_RANK = 8 };

typedef struct amp_tensor_view {
    const char *name;
    amp_dtype dtype;        /* AMP_DT_NONE: a type that this library does not compute with (I8, F8_E4M3, ...) */
    const char *dtype_name; /* as the file says: "F32" */
    int32_t rank;
    int64_t dims[AMP_SAFETENSORS_MAX_RANK];
    const void *data; /* any alignment: copy, do not cast */
    size_t bytes;
} amp_tensor_view;

typedef struct amp_safetensors amp_safetensors;

/* Reads the whole file; errors name the file, the place and the rule.  Close with amp_safetensors_close (NULL is a
 * no-op). */
amp_status amp_safetensors_open(const char *path, const amp_allocator *allocator, amp_safetensors **out,
                                amp_error *err);
/* The same of bytes in memory, which stay the caller's and must outlive the result; |name| names them in errors. */
amp_status amp_safetensors_parse(const void *bytes, size_t size, const char *name, const amp_allocator *allocator,
                                 amp_safetensors **out, amp_error *err);
void amp_safetensors_close(amp_safetensors *file);

int32_t amp_safetensors_count(const amp_safetensors *file);
const amp_tensor_view *amp_safetensors_at(const amp_safetensors *file, int32_t index);      /* in order of name */
const amp_tensor_view *amp_safetensors_find(const amp_safetensors *file, const char *name); /* NULL when absent */
const char *amp_safetensors_metadata(const amp_safetensors *file, const char *key);         /* NULL when absent */

typedef struct amp_metadata {
    const char *key, *value;
} amp_metadata;

/* Replaces |path| atomically.  Tensors are written by descending alignment, then by name; data starts at a multiple
 * of 64. */
amp_status amp_safetensors_write(const char *path, const amp_tensor_view *tensors, int32_t count,
                                 const amp_metadata *metadata, int32_t metadata_count, const amp_allocator *allocator,
                                 amp_error *err);

/* |count| elements of |from| as f32 (F32, F16, BF16, F64 and the integer types); false: this dtype cannot be converted.
 */
bool amp_tensor_to_f32(const amp_tensor_view *from, float *to, size_t count);

#endif
