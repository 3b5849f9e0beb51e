/* dtypes.h: the properties of each element type, a row of dtypes.def.  A type has its number of amp_dtype; tables of
 * models hold it as uint32_t, and may hold others. */
#ifndef AMP_BASE_DTYPES_H
#define AMP_BASE_DTYPES_H

#include <stdbool.h>

#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of rows, and AMP_DT_NONE: every type is less. */
enum {
    AMP_DTYPES = 1
#define DTYPE(...) +1
#include "base/dtypes.def"
};

typedef enum amp_dtype_class {
    AMP_CLASS_NONE,
    AMP_CLASS_FLOAT, /* f32 and shorter ones */
    AMP_CLASS_DOUBLE,
    AMP_CLASS_INTEGER,
    AMP_CLASS_BOOL,
    AMP_CLASS_STATE /* 8 bits of a moment: stored, never computed in */
} amp_dtype_class;

/* AMP_CLASS_NONE for an unknown number. */
amp_dtype_class amp_class_of(uint32_t dtype);
static inline bool amp_is_f8(uint32_t dtype) { return amp_class_of(dtype) == AMP_CLASS_STATE; }

/* Bytes of an element in planned buffers and states; amp_dtype_size: in files and arrays. */
size_t amp_storage_size(uint32_t storage);
/* What values of an IR dtype are handed out as: f32 for every short float, else the type itself (bool as one byte). */
amp_dtype amp_readable_dtype(uint32_t dtype);

#ifdef __cplusplus
}
#endif

#endif
