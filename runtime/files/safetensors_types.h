/* safetensors_types.h: the element types of the format, shared by the reader and the writer. */
#ifndef AMP_RUNTIME_FILES_SAFETENSORS_TYPES_H
#define AMP_RUNTIME_FILES_SAFETENSORS_TYPES_H

#include "amp/base.h"

/* In the reference's order: the writer sorts by it, from the last to the first, which puts larger alignments first. */
static const struct amp_safetensors_type {
    const char *name;
    unsigned bits;
    amp_dtype dtype; /* AMP_DT_NONE: not computed with here */
} amp_safetensors_types[] = {
    {"BOOL", 8, AMP_DT_BOOL},
    {"F4", 4, AMP_DT_NONE},
    {"F6_E2M3", 6, AMP_DT_NONE},
    {"F6_E3M2", 6, AMP_DT_NONE},
    {"U8", 8, AMP_DT_U8},
    {"I8", 8, AMP_DT_NONE},
    {"F8_E5M2", 8, AMP_DT_NONE},
    {"F8_E4M3", 8, AMP_DT_NONE},
    {"F8_E8M0", 8, AMP_DT_NONE},
    {"F8_E4M3FNUZ", 8, AMP_DT_NONE},
    {"F8_E5M2FNUZ", 8, AMP_DT_NONE},
    {"I16", 16, AMP_DT_NONE},
    {"U16", 16, AMP_DT_NONE},
    {"F16", 16, AMP_DT_F16},
    {"BF16", 16, AMP_DT_BF16},
    {"I32", 32, AMP_DT_I32},
    {"U32", 32, AMP_DT_NONE},
    {"F32", 32, AMP_DT_F32},
    {"C64", 64, AMP_DT_NONE},
    {"F64", 64, AMP_DT_F64},
    {"I64", 64, AMP_DT_I64},
    {"U64", 64, AMP_DT_NONE},
};

enum { AMP_SAFETENSORS_TYPES = sizeof amp_safetensors_types / sizeof *amp_safetensors_types };

/* The format's limit for the JSON text (safetensors, MAX_HEADER_SIZE). */
enum { AMP_SAFETENSORS_MAX_HEADER = 100000000, AMP_SAFETENSORS_LENGTH = 8 /* bytes of the number in front */ };

#define AMP_SAFETENSORS_METADATA "__metadata__"

#endif
