/* safetensors_types.h: the element types of the format, for its reader and its writer. */
#ifndef AMP_BASE_SAFETENSORS_TYPES_H
#define AMP_BASE_SAFETENSORS_TYPES_H

#include "amp/base.h"

typedef struct amp_tensor_type {
    const char *name;
    unsigned bits;
    amp_dtype dtype; /* AMP_DT_NONE: not computed with here */
} amp_tensor_type;

/* In the reference's order: the writer sorts by it, from the last to the first, which puts larger alignments first. */
enum { AMP_TENSOR_TYPES = 22 };
extern const amp_tensor_type amp_tensor_types[AMP_TENSOR_TYPES];

int amp_tensor_type_named(const char *name); /* -1: none */
int amp_tensor_type_of(amp_dtype dtype);     /* -1: none */

/* The member that is no tensor, and the bytes of the number in front of the header. */
#define AMP_TENSORS_METADATA "__metadata__"
enum { AMP_TENSORS_LENGTH = 8 };

#endif
