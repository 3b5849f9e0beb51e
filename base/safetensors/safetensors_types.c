/* safetensors_types.c: see safetensors_types.h. */
#include "base/safetensors/safetensors_types.h"

#include <string.h>

const amp_tensor_type amp_tensor_types[AMP_TENSOR_TYPES] = {
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

int amp_tensor_type_named(const char *name) {
    for (int i = 0; i < AMP_TENSOR_TYPES; i++)
        if (!strcmp(amp_tensor_types[i].name, name)) return i;
    return -1;
}

int amp_tensor_type_of(amp_dtype dtype) {
    for (int i = 0; i < AMP_TENSOR_TYPES; i++)
        if (dtype != AMP_DT_NONE && amp_tensor_types[i].dtype == dtype) return i;
    return -1;
}
